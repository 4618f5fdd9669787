//! A folder with a job, and the command in it.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod between;
pub(crate) mod byzantine;
pub(crate) mod deployment;
pub(crate) mod homes;
pub(crate) mod line;
pub(crate) mod network;
pub(crate) mod relay;
pub(crate) mod traced;

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;

/// The first job of the front page.
pub(crate) const WAGES: &str = r#"version = 1
kind = "stats"
name = "wages of two firms"
owners = ["ann", "bob"]
parties = ["ann", "bob", "carol"]
column = [{ name = "wage", type = "integer", min = 0, max = 20000 }]
block = [{ name = "north", rows = 2, holds = { ann = ["wage"] }, files = { ann = "ann.csv" } },
         { name = "south", rows = 3, holds = { bob = ["wage"] }, files = { bob = "bob.csv" } }]
analysis = [{ name = "mean wage", kind = "mean", of = "wage", to = "carol" }]
"#;

/// AES of a counter, under the key of an owner.
const BLOCKS: &str = r#"version = 1
kind = "circuit"
name = "blocks"
owners = ["ann"]
parties = ["a", "b", "c"]
recipients = ["eve"]
circuit = { make = "aes128", rows = 4096 }
input = [{ port = "key", owner = "ann", per = "job", format = "hex", file = "key.hex" },
         { port = "block", owner = "ann", format = "counter", start = "00000000000000000000000000000000" }]
output = [{ port = "out", to = "eve", format = "binary", file = "blocks" }]
"#;

/// A folder of its own for a test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    /// A folder with the first job and its data.
    pub(crate) fn wages() -> Self {
        let folder = Self::new();
        folder.write("wages.toml", WAGES);
        folder.write("ann.csv", "wage\n3100\n2900\n");
        folder.write("bob.csv", "wage\n4000\n3500\n2500\n");
        folder
    }

    /// A folder with a job of many rounds, and its data.
    pub(crate) fn blocks() -> Self {
        let folder = Self::new();
        folder.write("key.hex", "000102030405060708090a0b0c0d0e0f\n");
        folder.write("job.toml", BLOCKS);
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.at(name), text).unwrap();
    }

    /// Replaces text of a file that must have it.
    pub(crate) fn replace(&self, name: &str, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.at(name)).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        self.write(name, text.replace(from, to));
    }

    /// Runs `veil` in the folder, with arguments separated by blanks.
    pub(crate) fn veil(&self, arguments: &str) -> Output {
        veil()
            .args(arguments.split_whitespace())
            .current_dir(self.path())
            .output()
            .unwrap()
    }

    /// Runs `veil`, which must succeed, and gives what it printed.
    pub(crate) fn succeed(&self, arguments: &str) -> String {
        let output = self.veil(arguments);
        assert!(
            output.status.success(),
            "veil {arguments}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// Runs `veil`, which must fail with this code, say all of `parts`, print nothing else and leave no file.
    pub(crate) fn fail(&self, arguments: &str, code: i32, parts: &[&str]) {
        let before = self.everything();
        let output = self.veil(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "veil {arguments}: {said}");
        for part in parts {
            assert!(
                said.contains(part),
                "veil {arguments} does not say `{part}` but:\n{said}"
            );
        }
        assert_eq!(text(&output.stdout), "", "veil {arguments}");
        assert_eq!(
            self.everything(),
            before,
            "veil {arguments} left something behind"
        );
    }

    /// All files and folders below this one.
    pub(crate) fn everything(&self) -> Vec<PathBuf> {
        let mut all = Vec::new();
        let mut open = vec![self.path().to_owned()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path.clone());
                }
                all.push(path);
            }
        }
        all.sort();
        all
    }
}

/// The command.
pub(crate) fn veil() -> Command {
    Command::new(crate::PROGRAM)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
