//! Makes a large table of two owners, and the job that computes on it.
//!
//! ```text
//! cargo run --release -p veil-program --example table_generate -- ROWS FOLDER
//! ```
//!
//! The people are invented: a person number, a region, a gender, an age, pay and hours, some of them missing. One owner
//! holds the first half of the rows, the other one the rest.

use std::{
    env, fs,
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
    process::ExitCode,
};

const REGIONS: [&str; 8] = [
    "north",
    "north-east",
    "east",
    "south-east",
    "south",
    "south-west",
    "west",
    "north-west",
];

const JOB: &str = r#"# Sum, mean and variance by group, over a table of two owners.
version = 1
kind = "stats"
name = "large table"
owners = ["north-mill", "south-mill"]
parties = ["university", "union", "ministry"]
recipients = ["press"]

column = [
    { name = "region", type = "category", values = [REGIONS] },
    { name = "gender", type = "category", values = ["f", "m"], missing = "drop-pair" },
    { name = "age", type = "integer", min = 0, max = 120 },
    # Up to this pay, the squares of ten million rows fit Z_2^64.
    { name = "pay", type = "decimal", scale = 2, min = 0, max = "9000.00", unit = "EUR", missing = "drop-pair" },
    { name = "hours", type = "decimal", scale = 1, min = 0, max = "80.0", missing = "drop-pair" },
]
block = [
    { name = "north", rows = NORTH, holds = { north-mill = ["region", "gender", "age", "pay", "hours"] }, files = { north-mill = "north.csv" } },
    { name = "south", rows = SOUTH, holds = { south-mill = ["region", "gender", "age", "pay", "hours"] }, files = { south-mill = "south.csv" } },
]
analysis = [
    { name = "hours by region", kind = "sum", of = "hours", by = "region", to = "press" },
    { name = "age by region", kind = "mean", of = "age", by = "region", to = "press" },
    { name = "pay by gender", kind = "variance", of = "pay", by = "gender", to = "press" },
]
"#;

/// The next number of `SplitMix64`.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn table(file: &Path, first: u64, rows: u64) -> io::Result<()> {
    let mut into = BufWriter::with_capacity(1 << 20, File::create(file)?);
    writeln!(into, "person id,region,gender,age,pay,hours")?;
    let mut state = first;
    for person in first..first + rows {
        let random = next(&mut state);
        let take = |from: u32, below: u64| (random >> from & 0xffff) % below;
        let region = REGIONS[take(0, 8) as usize];
        let gender = match take(3, 50) {
            0 => "",
            even if even % 2 == 0 => "f",
            _ => "m",
        };
        write!(into, "{person},{region},{gender},{},", 18 + take(16, 50))?;
        if take(32, 33) > 0 {
            let pay = next(&mut state) % 900_001;
            write!(into, "{}.{:02}", pay / 100, pay % 100)?;
        }
        let hours = take(40, 500);
        if hours == 0 {
            into.write_all(b",\n")?;
        } else {
            writeln!(into, ",{}.{}", hours / 10, hours % 10)?;
        }
    }
    into.into_inner()?.sync_data()
}

fn generate(rows: u64, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let north = rows.div_ceil(2);
    table(&folder.join("north.csv"), 1, north)?;
    table(&folder.join("south.csv"), 1 + north, rows - north)?;
    let regions = REGIONS.map(|region| format!("\"{region}\"")).join(", ");
    let job = JOB
        .replace("REGIONS", &regions)
        .replace("NORTH", &north.to_string())
        .replace("SOUTH", &(rows - north).to_string());
    fs::write(folder.join("job.toml"), job)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let rows = arguments.first().and_then(|rows| rows.parse().ok());
    let (Some(rows @ 2..), Some(folder)) = (rows, arguments.get(1)) else {
        eprintln!("usage: table_generate ROWS FOLDER, with at least 2 rows");
        return ExitCode::from(2);
    };
    match generate(rows, folder.as_ref()) {
        Ok(()) => {
            println!("{folder}/job.toml: {rows} rows of two owners");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot write to {folder}: {error}; give a folder with enough space");
            ExitCode::FAILURE
        }
    }
}
