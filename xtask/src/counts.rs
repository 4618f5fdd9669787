//! Do the device's hot loops take as many instructions per element as they did?
//!
//! A count depends on the compiler and on no clock, neighbour or cache, so that a change of a few per cent shows on any machine.
//! Each loop runs n and 2n times under callgrind; the difference leaves out what comes before and after it. It runs so on values of two seeds:
//! as many instructions on both, or a branch depends on a value.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::MetadataCommand;
use serde::Deserialize;

use crate::tree::{self, Failure};

const FILE: &str = "bench/instructions.toml";

/// Compilers give the same code for the same source; what is left is where a loop happens to be aligned and split.
const TOLERANCE: f64 = 0.03;

/// Half of the longer run: the shortest loop then takes some 10^4 instructions.
const TIMES: u64 = 4;

/// What `--check` compares with.
#[derive(Deserialize, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
struct Baseline {
    rustc: String,
    instructions: Counts,
}

/// Instructions per element, by instruction set and loop.
type Counts = BTreeMap<String, BTreeMap<String, f64>>;

/// Why loops could not be counted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum CountsError {
    /// A program failed.
    #[error("{what} failed:\n{output}")]
    Command {
        /// Which, and for what.
        what: String,
        /// What it said.
        output: String,
    },
    /// Something printed another format than expected.
    #[error("{what} gave what this cannot read: {text:?}")]
    Format {
        /// Which program or file.
        what: &'static str,
        /// What it gave.
        text: String,
    },
    /// The baseline is no valid TOML.
    #[error("{FILE}: {0}")]
    Baseline(#[from] Box<toml::de::Error>),
    /// The baseline could not be written.
    #[error("{FILE} cannot be written: {0}")]
    Write(std::io::Error),
}

/// Compares the counts with the baseline.
pub(crate) fn check() -> Result<String, Failure> {
    if let Some(reason) = unable() {
        return Ok(reason);
    }
    let baseline = tree::read(&tree::root().join(FILE))?;
    let baseline: Baseline =
        toml::from_str(&baseline).map_err(|e| CountsError::Baseline(e.into()))?;
    let rustc = rustc()?;
    let counts = count()?;
    let (findings, better) = compare(&baseline.instructions, &counts);
    let loops: usize = counts.values().map(BTreeMap::len).sum();
    if rustc != baseline.rustc {
        let all = [findings, better].concat();
        return Ok(format!(
            "counts: SKIPPED, for {FILE} was written with rustc {}, and this is {rustc}; {} of {loops} loops differ\n{}",
            baseline.rustc,
            all.len(),
            all.join("\n")
        ));
    }
    Failure::unless_empty(
        &findings,
        "Find out what made the loop longer. If the price is right, say why in the commit and record it: \
         cargo xtask counts --write.",
    )?;
    Ok(format!(
        "counts: {loops} loops take as many instructions as recorded, within {:.0} %{}",
        TOLERANCE * 100.0,
        better.iter().fold(String::new(), |all, one| all
            + "\nbetter; record it with --write: "
            + one)
    ))
}

/// Prints the counts.
pub(crate) fn print() -> Result<String, Failure> {
    match unable() {
        Some(reason) => Ok(reason),
        None => Ok(text(&rustc()?, &count()?)),
    }
}

/// Records the counts.
pub(crate) fn write() -> Result<String, Failure> {
    if let Some(reason) = unable() {
        return Ok(reason);
    }
    let text = text(&rustc()?, &count()?);
    let path = tree::root().join(FILE);
    std::fs::write(path, text).map_err(CountsError::Write)?;
    Ok(format!("counts: wrote {FILE}; see git diff"))
}

/// Why this machine cannot count, if it cannot.
fn unable() -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        return Some("counts: SKIPPED, the baselines are of x86-64".into());
    }
    let there = Command::new("valgrind")
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success());
    (!there).then(|| "counts: SKIPPED, valgrind is not installed (apt-get install valgrind)".into())
}

/// Loops that take more instructions than recorded, or are in one list only; and those that take fewer.
fn compare(recorded: &Counts, counted: &Counts) -> (Vec<String>, Vec<String>) {
    let (mut findings, mut better) = (Vec::new(), Vec::new());
    for (isa, name, now) in entries(counted) {
        let Some(then) = recorded.get(isa).and_then(|loops| loops.get(name)) else {
            findings.push(format!("{isa} {name}: not recorded"));
            continue;
        };
        let line = format!("{isa} {name}: {now:.4} instructions per element, recorded {then:.4}");
        if now > then * (1.0 + TOLERANCE) {
            findings.push(line);
        } else if now < then * (1.0 - TOLERANCE) {
            better.push(line);
        }
    }
    let gone = entries(recorded).filter(|(isa, name, _)| {
        !counted
            .get(*isa)
            .is_some_and(|loops| loops.contains_key(*name))
    });
    findings.extend(
        gone.map(|(isa, name, _)| {
            format!("{isa} {name}: recorded, but there is no such loop here")
        }),
    );
    (findings, better)
}

fn entries(counts: &Counts) -> impl Iterator<Item = (&str, &str, f64)> {
    counts.iter().flat_map(|(isa, loops)| {
        loops
            .iter()
            .map(move |(name, n)| (isa.as_str(), name.as_str(), *n))
    })
}

/// The file.
fn text(rustc: &str, counts: &Counts) -> String {
    let mut lines = vec![
        "# Instructions per element of the device's hot loops, counted by callgrind. A loop is what it is in".into(),
        "# crates/device/examples/hot_loops.rs. Written by `cargo xtask counts --write`, compared by --check.".into(),
        format!("rustc = \"{rustc}\""),
    ];
    for (isa, loops) in counts {
        lines.extend([String::new(), format!("[instructions.{isa}]")]);
        lines.extend(loops.iter().map(|(name, n)| format!("{name} = {n:.4}")));
    }
    lines.join("\n") + "\n"
}

/// Builds the loops and counts all of them.
fn count() -> Result<Counts, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = [
        "build",
        "--release",
        "--quiet",
        "--locked",
        "--package",
        "veil-device",
        "--example",
        "hot_loops",
    ];
    // Baselines hold for the flags of the workspace, whatever else this shell asks for.
    output(
        "building the loops",
        Command::new(cargo).args(arguments).env_remove("RUSTFLAGS"),
    )?;
    let target: PathBuf = MetadataCommand::new()
        .current_dir(tree::root())
        .no_deps()
        .exec()?
        .target_directory
        .into();
    let program = target.join("release/examples/hot_loops");
    let (mut counts, mut depend) = (Counts::new(), Vec::new());
    for line in output("listing the loops", &mut Command::new(&program))?.lines() {
        let format = || CountsError::Format {
            what: "hot_loops",
            text: line.into(),
        };
        let [isa, name, elements] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format().into());
        };
        let elements: f64 = elements.parse().map_err(|_| format())?;
        let more = |seed| -> Result<u64, Failure> {
            let [once, twice] = [TIMES, 2 * TIMES]
                .map(|times| instructions(&program, &target, isa, name, (times, seed)));
            Ok(twice?.saturating_sub(once?))
        };
        let (more, other) = (more(0)?, more(1)?);
        if more != other {
            depend.push(format!(
                "{isa} {name}: {more} instructions on some values, {other} on others"
            ));
        }
        counts
            .entry(isa.into())
            .or_default()
            .insert(name.into(), more as f64 / (TIMES as f64 * elements));
    }
    Failure::unless_empty(
        &depend,
        "A branch depends on a value, which may be secret: find it.",
    )?;
    Ok(counts)
}

/// Instructions of the whole program.
fn instructions(
    program: &Path,
    target: &Path,
    isa: &str,
    name: &str,
    (times, seed): (u64, u8),
) -> Result<u64, Failure> {
    let profile = target.join(format!("hot_loops.{}.callgrind", std::process::id()));
    let mut command = Command::new("valgrind");
    command
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", profile.display()));
    let (times, seed) = (times.to_string(), seed.to_string());
    command.arg(program).args([isa, name, &times, &seed]);
    output(&format!("counting {isa} {name}"), &mut command)?;
    let text = tree::read(&profile)?;
    // What is left of it does no harm.
    let _ = std::fs::remove_file(&profile);
    totals(&text).ok_or_else(|| {
        let text = text.lines().take(5).collect::<Vec<_>>().join("\n");
        CountsError::Format {
            what: "callgrind",
            text,
        }
        .into()
    })
}

/// The line `totals: N` of a profile.
fn totals(profile: &str) -> Option<u64> {
    profile
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))?
        .trim()
        .parse()
        .ok()
}

/// Version of the compiler, such as `1.95.0`.
fn rustc() -> Result<String, Failure> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let text = output("rustc --version", Command::new(rustc).arg("--version"))?;
    let version = text.split(' ').nth(1).map(str::to_owned);
    version.ok_or_else(|| {
        CountsError::Format {
            what: "rustc --version",
            text,
        }
        .into()
    })
}

fn output(what: &str, command: &mut Command) -> Result<String, Failure> {
    let failed = |output: String| CountsError::Command {
        what: what.into(),
        output,
    };
    let output = command
        .current_dir(tree::root())
        .output()
        .map_err(|e| failed(e.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(list: &[(&str, &str, f64)]) -> Counts {
        let mut counts = Counts::new();
        for (isa, name, n) in list {
            counts
                .entry((*isa).into())
                .or_default()
                .insert((*name).into(), *n);
        }
        counts
    }

    #[test]
    fn what_is_written_is_read() {
        let counts = counts(&[
            ("avx2", "and", 0.25),
            ("avx2", "xor", 0.5),
            ("portable", "and", 2.0),
        ]);
        let read: Baseline = toml::from_str(&text("1.2.3", &counts)).expect("TOML");
        assert_eq!(
            read,
            Baseline {
                rustc: "1.2.3".into(),
                instructions: counts
            }
        );
    }

    #[test]
    fn longer_and_missing_loops_are_found_and_shorter_ones_told() {
        let recorded = counts(&[
            ("a", "same", 1.0),
            ("a", "longer", 1.0),
            ("a", "shorter", 1.0),
            ("a", "gone", 1.0),
        ]);
        let counted = counts(&[
            ("a", "same", 1.029),
            ("a", "longer", 1.031),
            ("a", "shorter", 0.9),
            ("b", "new", 1.0),
        ]);
        let (findings, better) = compare(&recorded, &counted);
        let starts = |lines: &[String], want: &[&str]| {
            assert_eq!(lines.len(), want.len(), "{lines:?}");
            lines
                .iter()
                .zip(want)
                .for_each(|(line, want)| assert!(line.starts_with(want), "{line}"));
        };
        starts(
            &findings,
            &[
                "a longer: 1.0310",
                "b new: not recorded",
                "a gone: recorded, but",
            ],
        );
        starts(&better, &["a shorter: 0.9000"]);
    }

    #[test]
    fn totals_of_a_profile() {
        assert_eq!(totals("version: 1\nsummary: 7\n\ntotals: 123\n"), Some(123));
        assert_eq!(totals("version: 1\n"), None);
    }
}
