//! Checks of the project itself: `cargo xtask layers|links|words|gen|curves|counts`; and its release notes: `cargo xtask changelog`.
//!
//! For contributors to the project; `make test` runs all of them, `make check` all but the last. Each prints what it looked at, or
//! every finding with its file and line, and then exits with 1.
//!
//! Promises to read only what git tracks or would track, and to change nothing but the baselines, release notes and what is generated, where it is told to.

mod changelog;
mod counts;
mod curves;
mod generate;
mod layers;
mod links;
mod tree;
mod words;

use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask COMMAND

Commands:
  layers  dependencies between the crates follow the list in ARCHITECTURE.md
  links   relative links in Markdown lead somewhere, and docs/SUMMARY.md to every page of the book
  counts  instructions per element of the device's hot loops; --check compares them with bench/instructions.toml,
          --write records them there (takes valgrind)
  gen     writes what is made from the descriptions of registers; --check compares it with what is there
  curves  writes the polynomials of functions, with proved bounds, into crates/numeric; --check compares them
  changelog
          the notes of what is not released, joined from news/; --release VERSION writes them into CHANGELOG.md and removes
          the fragments
  words   no file holds a leftover: a path of one machine, a marker of unfinished work";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["layers"] => layers::run(),
        ["links"] => links::run(),
        ["words"] => words::run(),
        ["changelog"] => changelog::print(),
        ["changelog", "--release", version] => changelog::release(version),
        ["gen"] => generate::write(),
        ["gen", "--check"] => generate::check(),
        ["curves"] => curves::write(),
        ["curves", "--check"] => curves::check(),
        ["counts"] => counts::print(),
        ["counts", "--check"] => counts::check(),
        ["counts", "--write"] => counts::write(),
        ["help" | "--help" | "-h"] => Ok(USAGE.to_owned()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
