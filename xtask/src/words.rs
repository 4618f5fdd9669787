//! Does a file hold a leftover that does not belong in the project?

use std::path::Path;

use crate::tree::{self, Failure};

/// What must not appear, and why. This file is the only one that may say them.
const FORBIDDEN: &[(&str, &str)] = &[
    ("/home/", "a path of one machine; use a relative path"),
    ("/root/", "a path of one machine; use a relative path"),
    ("TODO", "unfinished work belongs in an issue"),
    ("FIXME", "unfinished work belongs in an issue"),
    ("XXX", "unfinished work belongs in an issue"),
    ("unimplemented!", "say what is not offered by a typed error"),
    ("todo!", "unfinished work belongs in an issue"),
    ("dbg!", "left over from debugging"),
];

/// Looks through every text file of the project.
pub(crate) fn run() -> Result<String, Failure> {
    let files = tree::files()?;
    let own = Path::new("xtask/src/words.rs");
    let (mut read, mut findings) = (0, Vec::new());
    for path in files.iter().filter(|path| *path != own) {
        let bytes =
            std::fs::read(tree::root().join(path)).map_err(|source| Failure::Unreadable {
                path: path.clone(),
                source,
            })?;
        // Not text: nothing that a person reads.
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        read += 1;
        for (line, word, reason) in leftovers(&text) {
            findings.push(format!("{}:{line}: `{word}`: {reason}", path.display()));
        }
    }
    Failure::unless_empty(&findings, "Remove them.")?;
    Ok(format!("words: {read} files hold no leftovers"))
}

/// Line, word and reason of each finding.
fn leftovers(text: &str) -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    text.lines().zip(1..).flat_map(|(content, line)| {
        let held = FORBIDDEN
            .iter()
            .filter(move |(word, _)| content.contains(word));
        held.map(move |&(word, reason)| (line, word, reason))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leftover_rings_with_its_line() {
        let found: Vec<_> = leftovers("fine\nlet x = dbg!(y);\n").collect();
        assert_eq!(found, [(2, "dbg!", "left over from debugging")]);
        assert_eq!(leftovers("a method of debugging, to do next").count(), 0);
    }
}
