//! `veil-lab bench psi --opens size`: what is computed of the keys that two lists have in common, half of each, next to what the hashes of its gates allow.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use miette::{IntoDiagnostic, Result, miette};
use veil_cli::devices::Registry;
use veil_engine::Data;
use veil_job::{DataError, ProtocolKind, Sink, Slice, Source, Word};
use veil_program::{Job, OfCommon, Output, Shows, Words};
use veil_protocol::{Options, Plan};
use veil_session::PartyId;

use super::measure::{Course, measure_program};
use super::workload::streams;
use super::{BenchArgs, HEADER};

/// Keys of each list, unless another number is asked for: as many as there may be.
const KEYS: u64 = 1 << 16;

/// What is opened, by its word.
pub(super) fn opens(word: &str) -> Result<Shows, String> {
    let all = [Shows::Keys, Shows::Size, Shows::Sums, Shows::Columns];
    let found = all.into_iter().find(|shows| shows.word() == word);
    found.ok_or_else(|| format!("`{word}` is none of keys, size, sums and columns"))
}

/// A job that opens this of two lists of so many keys.
fn job(shows: Shows, count: u64) -> String {
    let value = ", { name = \"value\", type = \"integer\", min = 0, max = 65535 }";
    let [own, other] = match shows {
        Shows::Keys | Shows::Size => ["", ""],
        Shows::Sums => [value, value],
        Shows::Columns => ["", value],
    };
    let table = |owner: &str, values: &str| {
        format!(
            "[[table]]\nname = \"of_{owner}\"\nowner = \"{owner}\"\nrows = {count}\nfile = \"{owner}.csv\"\ncolumn = [{{ name = \"key\", type = \"key\" }}{values}]\n"
        )
    };
    format!(
        "version = 1\nkind = \"psi\"\nname = \"bench psi\"\nowners = [\"a\", \"b\"]\nparties = [\"a\", \"b\"]\n{}{}[intersection]\nopens = \"{}\"\nto = \"a\"\n",
        table("a", own),
        table("b", other),
        shows.word()
    )
}

/// The value of a key.
fn value(key: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48
}

/// Writes both lists: the second half of the first one is the first half of the second one.
fn write(folder: &Path, count: u64) -> Result<()> {
    for (owner, first) in [("a", 0), ("b", count / 2)] {
        let mut text = "key,value\n".to_owned();
        for key in first..first + count {
            let _ = writeln!(text, "{key},{}", value(key));
        }
        fs::write(folder.join(format!("{owner}.csv")), text).into_diagnostic()?;
    }
    Ok(())
}

/// Takes the result of a run, and compares it.
struct Compared {
    output: Output,
    shows: Shows,
    count: u64,
}

impl Compared {
    fn is_right(&self) -> bool {
        let Output::OfCommon(sink) = &self.output else {
            return false;
        };
        let both = self.count / 2..self.count;
        let sum: u64 = both.clone().map(value).sum();
        match sink.found() {
            Some(OfCommon::Numbers { size, sums }) => {
                let right = sums
                    .iter()
                    .all(|(_, found)| *found == Some(sum.to_string()));
                *size == Some(self.count - self.count / 2)
                    && right
                    && sums.is_empty() == (self.shows == Shows::Size)
            }
            Some(OfCommon::Keys(keys)) => {
                let row = |key: u64| vec![key.to_string(), value(key).to_string()];
                both.map(row).eq(keys.keys.iter().cloned())
            }
            None => false,
        }
    }
}

impl Sink for Compared {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        self.output.put(port, slice, values)
    }

    fn finish(&self) -> Result<(), DataError> {
        self.output.finish()?;
        if self.is_right() {
            Ok(())
        } else {
            Err(DataError::own("the result is not that of both lists"))
        }
    }
}

/// Runs the command: an operation is a key of either list.
pub(super) fn run(args: &BenchArgs, registry: &Arc<dyn Registry>, shows: Shows) -> Result<()> {
    let count = args.batch.unwrap_or(KEYS).max(2);
    let device = args.devices(registry)?;
    let folder = tempfile::tempdir().into_diagnostic()?;
    let file = folder.path().join("job.toml");
    fs::write(&file, job(shows, count)).into_diagnostic()?;
    write(folder.path(), count)?;
    let mut job = Job::load(&file, BTreeMap::new()).into_diagnostic()?;
    if args.adversary.is_some() {
        let words = Words {
            adversary: args.adversary,
            ..Words::default()
        };
        job.choose(words).into_diagnostic()?;
    }
    let sources: Vec<Arc<dyn Source>> = (job.holders().into_iter())
        .map(|holder| job.source(holder).map(Arc::from))
        .collect::<Result<_, _>>()
        .into_diagnostic()?;
    let circuit = &job.spec().circuit;
    let ands = circuit.stats().muls * circuit.clock.cycles;
    let ops = 2.0 * count as f64;
    if !args.json {
        println!(
            "{} of two lists of {count} keys: {ands} ANDs in {} cycles, {}",
            shows.word(),
            circuit.clock.cycles,
            job.spec().security.adversary.word()
        );
        println!("{HEADER}");
    }
    let options = Options {
        lanes: 1,
        chunk_rows: None,
    };
    let plan = Plan::new(Arc::new(job.spec().clone()), options).into_diagnostic()?;
    let plan = Arc::new(plan);
    let mut rows = Vec::new();
    for &carrier in &args.link {
        let course = Course {
            name: "psi",
            batch: count,
            ops,
            // Streams are of a bit of a block.
            blocks_per_op: streams(ProtocolKind::Yao) / 128.0 * ands as f64 / ops,
            gather_seconds: 0.0,
            program: Arc::new(Arc::clone(&plan).into()),
            data: &|peer, _| {
                let sink = || {
                    let output = job.sink(peer, folder.path());
                    Arc::new(Compared {
                        output: output.expect("the command has written the files"),
                        shows,
                        count,
                    }) as Arc<dyn Sink>
                };
                let party = peer.party().unwrap_or(PartyId::TWO[0]);
                Data {
                    source: sources.get(party.index()).map(Arc::clone),
                    sink: (party == PartyId::TWO[0]).then(sink),
                    ..Data::default()
                }
            },
        };
        rows.push(measure_program(&course, &args.setup(&device, carrier, 1))?);
        args.show(&rows[rows.len() - 1])?;
    }
    if rows.is_empty() {
        return Err(miette!("no link was asked for"));
    }
    args.draw(&rows)
}
