//! `veil-lab bench yao --ands N`, and `ag`, its like against a malicious party: so many ANDs over the cycles of a netlist, then over the rows of a batch, each party a process of its own that reads
//! its values from files, over TLS on loopback; and how much memory each of them took.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use miette::{IntoDiagnostic, Result, miette};
use veil_circuit::generate::{Aim, aes128_encrypt, aes128_expand_key};
use veil_circuit::{Builder, Circuit, Flavour, Initial, Per, bristol};
use veil_cli::commands::run::{Finished, LocalArgs, execute};
use veil_cli::devices::{DevicesArgs, Registry};
use veil_cli::launch::inspect::InspectArgs;
use veil_cli::links::LinkArgs;
use veil_cli::prepare::{JobArgs, SecurityArgs};
use veil_cli::room::RoomArgs;
use veil_engine::{Memory, Settings};
use veil_job::{Adversary, Word};
use veil_link::LinkKind;
use veil_math::Ring;
use veil_session::Peer;

use super::{BenchArgs, short};

/// What a party may take, in MB, however many ANDs there are. A program that is built for tests has 4 MB more of its own pages.
const MOST_MB: f64 = if cfg!(debug_assertions) { 68.0 } else { 64.0 };

/// The same against a malicious party, over cycles and in a batch, of which two chunks at once have the arrays of a batch of products each. A program that is built for tests
/// has more pages, and its assertions more memory.
const MOST_MB_MALICIOUS: [f64; 2] = if cfg!(debug_assertions) {
    [84.0, 124.0]
} else {
    [64.0, 104.0]
};

/// ANDs of a block of AES-128 under an expanded key.
const BLOCK: u64 = 5120;

/// Reads a number of ANDs: in digits, or such as 1e9.
pub(super) fn ands(text: &str) -> Result<u64, String> {
    let digits = text.parse().ok();
    let power = || {
        let (factor, exponent) = text.split_once(['e', 'E'])?;
        let (factor, exponent): (u64, u32) = (factor.parse().ok()?, exponent.parse().ok()?);
        factor.checked_mul(10u64.checked_pow(exponent)?)
    };
    let number = digits.or_else(power).filter(|number| *number > 0);
    number.ok_or_else(|| format!("`{text}` is no number of ANDs; write 1000000000 or 1e9"))
}

/// A row of results.
#[derive(Clone, Debug, serde::Serialize)]
struct Row {
    bench: &'static str,
    part: &'static str,
    tables: &'static str,
    link: &'static str,
    net: String,
    ands: u64,
    cycles: u64,
    rows: u64,
    /// From the first message to the last.
    seconds: f64,
    rate_per_s: f64,
    /// Largest memory of each process, in MB of 10^6 bytes.
    garbler_mb: f64,
    evaluator_mb: f64,
    /// What `veil explain` says that the working memory of a party is at most.
    declared_mb: f64,
}

/// Where the ANDs are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A block of a chain in every cycle: its state is in registers, and the message comes in cycle by cycle.
    Cycles,
    /// A block in every row.
    Batch,
}

/// Measures, and prints a row for each part.
pub(super) fn run(
    args: &BenchArgs,
    adversary: Adversary,
    registry: &Arc<dyn Registry>,
) -> Result<()> {
    let blocks = args.ands.unwrap_or(BLOCK).div_ceil(BLOCK);
    if !args.json {
        println!("{HEADER}");
    }
    let mut over = None;
    for part in [Part::Cycles, Part::Batch] {
        let row = measure(part, blocks, adversary, args, registry)?;
        if args.json {
            println!("{}", serde_json::to_string(&row).into_diagnostic()?);
        } else {
            print(&row);
        }
        let took = row.garbler_mb.max(row.evaluator_mb);
        let most = match (adversary, part) {
            (Adversary::SemiHonest, _) => MOST_MB,
            (_, Part::Cycles) => MOST_MB_MALICIOUS[0],
            (_, Part::Batch) => MOST_MB_MALICIOUS[1],
        };
        over = over.or((took > most).then_some((row.part, took, most)));
    }
    match over {
        Some((part, took, most)) => Err(miette!(
            help = "`veil explain` of such a job says what working memory is declared; `veil run --processes` prints what was taken",
            "{part}: a party took {took:.1} MB of memory, and {most} MB should do for any number of ANDs"
        )),
        None => Ok(()),
    }
}

const HEADER: &str =
    "part    tables             ands       s      AND/s   garbler MB   evaluator MB   declared MB";

fn print(row: &Row) {
    println!(
        "{:<7} {:<12} {:>10} {:>7.1} {:>10} {:>12.1} {:>14.1} {:>13.1}",
        row.part,
        row.tables,
        row.ands,
        row.seconds,
        short(row.rate_per_s),
        row.garbler_mb,
        row.evaluator_mb,
        row.declared_mb,
    );
}

/// A message authentication code over blocks of every cycle, CBC-MAC, under a key of the job: key, state and output as in AES-128.
fn chain() -> Circuit {
    const BITS: u32 = 128;
    let mut b = Builder::new(Ring::Bits);
    let key = b.input("key", BITS, Per::Job);
    let block = b.input("block", BITS, Per::Cycle);
    let state = [(); BITS as usize].map(|()| b.register(Initial::Constant(false)));
    let keys = aes128_expand_key(&mut b, &key, Aim::Size);
    let mixed: Vec<_> = state.iter().zip(block).map(|(s, m)| b.xor(*s, m)).collect();
    let next = aes128_encrypt(&mut b, &keys, &mixed, Aim::Size);
    for (register, next) in state.into_iter().zip(&next) {
        b.set_next(register, *next);
    }
    b.output("out", &next);
    b.finish().expect("few gates, and ports of other names")
}

/// The job of a part, between two parties that supply all of it.
fn job(part: Part, blocks: u64, adversary: Adversary) -> String {
    let (circuit, per) = match part {
        Part::Cycles => (
            format!("file = \"chain.txt\", cycles = {blocks}, rows = 1"),
            "cycle",
        ),
        Part::Batch => (format!("make = \"aes128\", rows = {blocks}"), "row"),
    };
    let adversary = adversary.word();
    format!(
        "version = 1\nkind = \"circuit\"\nadversary = \"{adversary}\"\nname = \"{blocks} blocks\"\nowners = [\"garbler\", \"evaluator\"]\n\
         parties = [\"garbler\", \"evaluator\"]\ncircuit = {{ {circuit} }}\n\
         input = [{{ port = \"key\", owner = \"garbler\", per = \"job\", format = \"hex\", file = \"key.hex\" }},\n\
         {{ port = \"block\", owner = \"evaluator\", per = \"{per}\", format = \"binary\", file = \"blocks\" }}]\n\
         output = [{{ port = \"out\", of = \"last\", to = \"evaluator\", format = \"binary\", file = \"out\" }}]\n"
    )
}

/// Writes the job of a part and its data.
fn write(part: Part, blocks: u64, adversary: Adversary, folder: &Path) -> std::io::Result<()> {
    fs::write(folder.join("job.toml"), job(part, blocks, adversary))?;
    fs::write(folder.join("key.hex"), "000102030405060708090a0b0c0d0e0f\n")?;
    let mut file = BufWriter::new(File::create(folder.join("blocks"))?);
    for block in 0..u128::from(blocks) {
        file.write_all(&block.to_be_bytes())?;
    }
    file.flush()?;
    if part == Part::Cycles {
        let mut file = BufWriter::new(File::create(folder.join("chain.txt"))?);
        let written = bristol::write(&chain(), Flavour::Sequential, &mut file);
        written.map_err(std::io::Error::other)?;
        file.flush()?;
    }
    Ok(())
}

fn measure(
    part: Part,
    blocks: u64,
    adversary: Adversary,
    args: &BenchArgs,
    registry: &Arc<dyn Registry>,
) -> Result<Row> {
    let folder = tempfile::tempdir().into_diagnostic()?;
    write(part, blocks, adversary, folder.path()).into_diagnostic()?;
    let local = LocalArgs {
        stock: false,
        job: JobArgs {
            job: folder.path().join("job.toml"),
            data: vec![],
            align_key: None,
            lanes: Some(1),
            security: SecurityArgs {
                tables: args.tables,
                ..SecurityArgs::default()
            },
        },
        timeout: 60,
        net: args.net,
        link: LinkArgs::default(),
        headless: false,
        processes: true,
        out: Some(folder.path().join("out")),
        stores: None,
        devices: DevicesArgs::default(),
        room: RoomArgs::default(),
        inspect: InspectArgs::default(),
        json: false,
    };
    let Finished { plan, outcome, .. } = execute(&local, false, registry)?;
    let took = |name: &str| {
        let mut all = outcome.participants.iter();
        let own = all.find(|took| took.name == name);
        own.ok_or_else(|| miette!("`{name}` did not say what it took"))
    };
    let parties = [took("garbler")?, took("evaluator")?];
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let [garbler, evaluator] = parties.map(|took| took.peak_bytes.map(megabytes));
    let unknown = || miette!("this system does not say how much memory a process took");
    let declared = plan.parties().iter().map(|party| {
        let protocol = veil_protocol::protocol(Arc::clone(&plan), Peer::Party(*party));
        Memory::new(&plan, &*protocol, Settings::default().window, LinkKind::Tls).total()
    });
    let (rows, cycles) = (plan.job.rows(), plan.cycle_count());
    let seconds = parties.iter().map(|took| took.seconds).fold(0.0, f64::max);
    Ok(Row {
        bench: if adversary == Adversary::SemiHonest {
            "yao"
        } else {
            "ag"
        },
        part: match part {
            Part::Cycles => "cycles",
            Part::Batch => "batch",
        },
        tables: Word::word(plan.job.security.tables),
        link: "tls",
        net: args
            .net
            .map_or_else(|| "none".to_owned(), |net| net.to_string()),
        ands: plan.products() * rows,
        cycles,
        rows,
        seconds,
        rate_per_s: (plan.products() * rows) as f64 / seconds,
        garbler_mb: garbler.ok_or_else(unknown)?,
        evaluator_mb: evaluator.ok_or_else(unknown)?,
        declared_mb: megabytes(declared.max().unwrap_or(0)),
    })
}
