//! Invents the data of the pay-gap study: people, what their employer knows of them, what the office knows.
//!
//! ```text
//! cargo run --release -p pay-gap -- FOLDER [FACTOR]
//! ```
//!
//! Writes the job and its tables into FOLDER, always the same ones; FACTOR makes the tables that many times longer.

use std::{env, error::Error, fs, io::Write, path::Path};

const JOB: &str = include_str!("job.toml");

/// Name in file names, people, share of women, and how well it pays.
const EMPLOYERS: [(&str, u64, f64, f64); 3] = [
    ("north-mill", 2400, 0.28, 1.00),
    ("harbour-works", 1700, 0.35, 1.08),
    ("city-clinic", 900, 0.71, 0.94),
];

/// What women earn of what men with the same education, tenure and region earn here.
const ADJUSTED_GAP: f64 = 0.94;

/// `SplitMix64`: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. For invented data
/// only: it hides nothing.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to 1.
    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// About standard normal: twelve uniform numbers have variance 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    fn happens(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }
}

/// A line of the employer's table and one of the office's.
fn person(random: &mut Random, women: f64, level: f64) -> (String, String) {
    let woman = random.happens(women);
    let region = match random.uniform() {
        x if x < 0.45 => "coast",
        x if x < 0.75 => "inland",
        _ => "capital",
    };
    let education = (12.2 + 2.6 * random.normal()).round().clamp(8.0, 22.0);
    // Tenure is skewed: many are new. Women of these employers joined a little later.
    let tenure = (-(1.0 - random.uniform()).ln() * if woman { 6.5 } else { 8.0 })
        .floor()
        .min(45.0);
    let place = match region {
        "capital" => 1.14,
        "inland" => 0.95,
        _ => 1.0,
    };
    let gap = if woman { ADJUSTED_GAP } else { 1.0 };
    let typical = 21_500.0 * (0.048 * education + 0.011 * tenure).exp() * level * place * gap;
    // Multiplied noise: few earn very much.
    let pay = (typical * (0.22 * random.normal()).exp()).min(499_999.0);
    let cents = (pay * 100.0).round() as u64;

    let unless = |missing: bool, text: String| if missing { String::new() } else { text };
    let pay = unless(
        random.happens(0.012),
        format!("{}.{:02}", cents / 100, cents % 100),
    );
    let education = unless(random.happens(0.03), education.to_string());
    let gender = unless(
        random.happens(0.008),
        if woman { "women" } else { "men" }.to_owned(),
    );
    (
        format!("{pay},{tenure}"),
        format!("{education},{gender},{region}"),
    )
}

fn write(file: &Path, header: &str, lines: &[String]) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::BufWriter::new(fs::File::create(file)?);
    writeln!(out, "{header}")?;
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(out.flush()?)
}

/// Writes the job and its tables.
pub(crate) fn generate(folder: &Path, factor: u64) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    let mut random = Random(2025);
    let mut job = JOB.to_owned();
    for (name, people, women, level) in EMPLOYERS {
        let rows = people * factor;
        job = job.replace(&format!("rows = {people}\n"), &format!("rows = {rows}\n"));
        let (own, office): (Vec<_>, Vec<_>) =
            (0..rows).map(|_| person(&mut random, women, level)).unzip();
        write(&folder.join(format!("{name}.csv")), "pay,tenure", &own)?;
        write(
            &folder.join(format!("office-{name}.csv")),
            "education,gender,region",
            &office,
        )?;
        println!("{rows:>9} people of {name}");
    }
    fs::write(folder.join("job.toml"), job)?;
    println!("the job and its tables are in {}", folder.display());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let folder = arguments
        .next()
        .ok_or("usage: pay-gap-generate FOLDER [FACTOR]")?;
    let factor: u64 = arguments.next().map_or(Ok(1), |factor| factor.parse())?;
    if !(1..=10_000).contains(&factor) {
        return Err("FACTOR is a number from 1 to 10000".into());
    }
    generate(Path::new(&folder), factor)
}
