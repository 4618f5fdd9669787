//! One trace of a run whose participants are processes of this machine, each of which writes its own.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::write::{create, not_complete};
use crate::failure::Failure;

/// A trace file, and the files that become its sections when the run is over.
pub(crate) struct Gathering {
    path: PathBuf,
    file: File,
    parts: Vec<PathBuf>,
}

impl Gathering {
    /// Creates the file; nothing is in it before the run is over.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        Ok(Gathering {
            path: path.to_owned(),
            file: create(path)?,
            parts: Vec::new(),
        })
    }

    /// Where in `folder` one more process writes its trace.
    pub(crate) fn part(&mut self, folder: &Path) -> PathBuf {
        let part = folder.join(format!("{}.jsonl", self.parts.len()));
        self.parts.push(part.clone());
        part
    }

    /// The run is over, well or not: joins what the processes have written.
    pub(crate) fn finish(self) {
        if let Err(error) = join(&self.file, &self.parts) {
            not_complete(&self.path, &error);
        }
    }
}

fn join(file: &File, parts: &[PathBuf]) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    let (mut line, mut torn) = (Vec::new(), false);
    for part in parts {
        let mut part = match File::open(part) {
            Ok(part) => BufReader::new(part),
            // Its process failed before it began to write.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        loop {
            line.clear();
            part.read_until(b'\n', &mut line)?;
            // Half a line is not taken: another section follows.
            if line.last() != Some(&b'\n') {
                torn |= !line.is_empty();
                break;
            }
            out.write_all(&line)?;
        }
    }
    out.flush()?;
    if torn {
        let why =
            "a participant was killed while it wrote, or the disk of the temporary folder is full";
        return Err(io::Error::other(why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_of_all_parts_follow_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all");
        let mut gathering = Gathering::create(&path).unwrap();
        for text in ["a\nb\nhal", "", "c\n"] {
            std::fs::write(gathering.part(folder.path()), text).unwrap();
        }
        gathering.part(folder.path());
        let error = join(&gathering.file, &gathering.parts).unwrap_err();
        assert!(error.to_string().contains("while it wrote"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nb\nc\n");
        join(&gathering.file, &gathering.parts[1..]).unwrap();
    }
}
