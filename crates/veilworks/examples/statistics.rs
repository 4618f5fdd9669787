//! Runs a job file with all its participants in this process, and prints what each recipient gets.
//!
//! ```text
//! cargo run --package veilworks --example statistics -- JOB.toml
//! ```

use veilworks::{Error, Job, Local};

fn main() -> Result<(), Error> {
    let job = Job::read(std::env::args().nth(1).unwrap_or_else(|| "job.toml".into()))?;
    let outcome = Local::of(&job).run()?;
    for name in job.participants() {
        if let Some(statistics) = outcome.statistics(name) {
            println!("{statistics}");
        }
    }
    Ok(())
}
