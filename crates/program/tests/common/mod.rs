//! Jobs with their files in a folder of their own.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]

use std::{collections::BTreeMap, fs, path::PathBuf};

use veil_job::{Holder, Sink, Source, evaluate};
use veil_program::{Job, Output, stats::StatsResult};
use veil_session::Peer;

/// Everyone who supplies values, and the values.
pub type Sources = Vec<(Holder, Box<dyn Source>)>;

/// A dataset of a, b and c that goes to b, d and e.
pub const RESHARE: &str = r#"version = 1
kind = "reshare"
name = "pay 2025 to others"
owners = ["a", "b", "c"]
parties = ["b", "d", "e"]

[reshare]
dataset = "pay 2025"
as = "pay of 2025"
plan = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
ring = 128
schema = '"region": category, ["north", "south"], missing "refuse"; "pay": integer, 0 to 9, missing "refuse"'
port = [{ name = "region", width = 2 }, { name = "pay", width = 2 }]
block = [{ name = "mill", rows = 70 }, { name = "harbour", rows = 30 }]
"#;

/// A folder that goes away with the test.
pub struct Case {
    pub folder: tempfile::TempDir,
}

impl Case {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let case = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for (name, text) in files {
            case.write(name, text.as_bytes());
        }
        case
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub fn load(&self) -> Result<Job, String> {
        Job::load(&self.path("job.toml"), BTreeMap::new())
            .map_err(|error| self.shorten(&error.to_string()))
    }

    /// A message with the folder left out.
    pub fn shorten(&self, message: &str) -> String {
        message.replace(&format!("{}/", self.folder.path().display()), "")
    }

    /// Reads the data of every holder.
    pub fn sources(&self, job: &Job) -> Result<Sources, String> {
        let source = |holder| {
            Ok((
                holder,
                job.source(holder)
                    .map_err(|error| self.shorten(&error.to_string()))?,
            ))
        };
        job.holders().into_iter().map(source).collect()
    }

    /// Evaluates the job for one recipient, whose files go to the folder `out`.
    pub fn evaluate(&self, job: &Job, peer: Peer) -> Result<Output, String> {
        let sources = self.sources(job)?;
        let sources: Vec<_> = sources
            .iter()
            .map(|(holder, source)| (*holder, source.as_ref()))
            .collect();
        let output = job
            .sink(peer, &self.path("out"))
            .map_err(|error| self.shorten(&error.to_string()))?;
        evaluate(job.spec(), &sources, &[(peer, &output as &dyn Sink)])
            .map_err(|error| self.shorten(&error.to_string()))?;
        Ok(output)
    }

    /// Evaluates a statistics job for recipient 0 through its circuit, and compares with the clear statistics.
    pub fn statistics(&self) -> StatsResult {
        let job = self.load().unwrap();
        let peer = Peer::Recipient(0);
        let output = self.evaluate(&job, peer).unwrap();
        let result = output.statistics().unwrap().clone();
        let clear = job.clear_statistics(peer).unwrap().unwrap();
        assert_eq!(result.analyses, clear.analyses);
        assert_eq!(result.recipient, clear.recipient);
        let spec = job.spec();
        let mine = spec
            .audiences
            .iter()
            .zip(&spec.opened)
            .filter(|(audience, _)| audience.includes(peer));
        let mine: Vec<&String> = mine.map(|(_, sentence)| sentence).collect();
        assert_eq!(
            result
                .opened
                .iter()
                .map(|opened| &opened.what)
                .collect::<Vec<_>>(),
            mine
        );
        self.between_two(&result);
        result
    }

    /// Two parties compute the same, by a circuit of bits.
    fn between_two(&self, want: &StatsResult) {
        let file = self.path("job.toml");
        let text = fs::read_to_string(&file).unwrap();
        let three = "parties = [\"p\", \"q\", \"c\"]";
        if !text.contains(three) {
            return;
        }
        let text = text.replace(three, "parties = [\"p\", \"c\"]");
        let job = Job::parse(&text, &file, BTreeMap::new()).unwrap();
        assert_eq!(job.spec().circuit.ring, veil_math::Ring::Bits);
        let output = self.evaluate(&job, Peer::Recipient(0)).unwrap();
        let result = output.statistics().unwrap();
        assert_eq!(result.analyses, want.analyses);
        assert_eq!(result.opened, want.opened);
    }
}
