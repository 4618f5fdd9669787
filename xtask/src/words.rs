//! Does a file hold a leftover that does not belong in the project, or a page of the book a second word for one thing?

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

/// Second words and phrases in lower case, and the term of the glossary. Only words that cannot be right in another meaning.
const SECOND: &[(&str, &str)] = &[
    ("anybody", "Participant"),
    ("everybody", "Participant"),
    ("nobody", "Participant"),
    ("somebody", "Participant"),
    ("whoever", "Participant"),
    ("cheater", "Corrupt party"),
    ("cheaters", "Corrupt party"),
    ("faithless", "Byzantine fault"),
    ("liar", "Byzantine fault"),
    ("liars", "Byzantine fault"),
    ("knock", "Connect request"),
    ("knocks", "Connect request"),
    ("roll call", "Attendance"),
    ("shelf", "Stage"),
    ("kept inputs", "Checkpointed inputs"),
    ("kept transfer", "OT cache"),
    ("kept transfers", "OT cache"),
    ("turn around", "Reversal of OT"),
    ("turned around", "Reversal of OT"),
    ("turning around", "Reversal of OT"),
    ("input that all rows share", "Job-wide value"),
    ("inputs that all rows share", "Job-wide value"),
    ("value that all rows share", "Job-wide value"),
    ("values that all rows share", "Job-wide value"),
    ("row of hardware", "Garbling engine"),
    ("rows of hardware", "Garbling engine"),
    ("hardware rows", "Garbling engine"),
    ("bank of columns", "Workspace"),
    ("banks of columns", "Workspace"),
    ("keyed code", "MAC"),
    ("keyed codes", "MAC"),
    ("code of 16 bytes", "MAC"),
    ("codes of 16 bytes", "MAC"),
    ("prf draw", "PRF call"),
    ("prf draws", "PRF call"),
    ("drawn under", "PRF call"),
    ("work beside", "Offload"),
];

/// Looks through every text file of the project.
pub(crate) fn run() -> Result<String, Failure> {
    let files = tree::files()?;
    let own = Path::new("xtask/src/words.rs");
    let (mut read, mut pages, mut findings) = (0, 0, Vec::new());
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
        let found = if is_page(path, &text) {
            pages += 1;
            second_words(&text)
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            // The subject of a comment's sentence is a named thing; other second words are still in names of code.
            let found = second_words(&comments(&text)).into_iter();
            found
                .filter(|(_, _, term)| *term == "Participant")
                .collect()
        } else {
            continue;
        };
        for (line, word, term) in found {
            findings.push(format!(
                "{}:{line}: `{word}`: the glossary's term is `{term}`",
                path.display()
            ));
        }
    }
    Failure::unless_empty(
        &findings,
        "Remove leftovers; replace second words by the term of docs/glossary.md.",
    )?;
    Ok(format!(
        "words: {read} files hold no leftovers, {pages} pages no second words, comments no sentence without a subject"
    ))
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

/// The comments of a source file, each at its line, as a page.
fn comments(source: &str) -> String {
    let lines = source.lines().map(|line| {
        let comment = line.trim_start().strip_prefix("//");
        comment.map_or("", |text| text.trim_start_matches(['/', '!']).trim_start())
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A page of the book that people write: generated pages have their words from descriptions of registers.
fn is_page(path: &Path, text: &str) -> bool {
    let roots = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
    let in_book = path.parent() == Some(Path::new("docs"))
        && path.extension().is_some_and(|extension| extension == "md");
    let generated = text
        .lines()
        .take(5)
        .any(|line| line.starts_with("Generated by `cargo xtask gen`"));
    (in_book || roots.iter().any(|root| path == Path::new(root))) && !generated
}

/// Line, second word and term of each finding in the prose of a page.
fn second_words(page: &str) -> Vec<(usize, &'static str, &'static str)> {
    let prose = prose(page);
    let mut found = Vec::new();
    for (at, &(_, line)) in prose.iter().enumerate() {
        for &(word, term) in SECOND {
            let mut following = prose[at..].iter().map(|(word, _)| word.as_str());
            if word.split(' ').all(|part| following.next() == Some(part)) {
                found.push((line, word, term));
            }
        }
    }
    found
}

/// Words in lower case, with their lines from 1. Code, targets of links and titles of decisions are left out; no phrase goes
/// across them, across punctuation or across paragraphs: an empty word stands there.
fn prose(page: &str) -> Vec<(String, usize)> {
    let text: Vec<char> = page.chars().collect();
    let mut shown = vec![true; text.len()];
    hide_blocks(&text, &mut shown);
    hide_spans(&text, &mut shown);
    hide_links(&text, &mut shown);
    let (mut words, mut word, mut line) = (Vec::new(), String::new(), 1);
    for (&c, &shown) in text.iter().zip(&shown) {
        if shown && c.is_alphanumeric() {
            word.extend(c.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            words.push((std::mem::take(&mut word), line));
        }
        let joins = shown && (c.is_whitespace() || "-*_[]".contains(c));
        if !joins {
            words.push((String::new(), line));
        }
        line += usize::from(c == '\n');
    }
    words.push((word, line));
    words
}

/// Fenced and indented blocks, and the empty lines between paragraphs.
fn hide_blocks(text: &[char], shown: &mut [bool]) {
    let (mut start, mut fenced, mut after_gap) = (0, false, true);
    for line in text.split_inclusive(|&c| c == '\n') {
        let content: String = line.iter().collect();
        let fence = content.trim_start().starts_with("```");
        let empty = content.trim().is_empty();
        let indented = after_gap && content.starts_with("    ");
        if fenced || fence || empty || indented {
            shown[start..start + line.len()].fill(false);
        }
        fenced ^= fence;
        after_gap = empty || indented;
        start += line.len();
    }
}

/// Code between runs of back-ticks of one length, within a paragraph.
fn hide_spans(text: &[char], shown: &mut [bool]) {
    let ticks = |at: usize| text[at..].iter().take_while(|&&c| c == '`').count();
    let mut at = 0;
    while at < text.len() {
        let run = if shown[at] { ticks(at) } else { 0 };
        let mut end = at + run;
        let mut closed = false;
        while run > 0 && !closed && end < text.len() && shown[end] {
            let next = ticks(end);
            closed = next == run;
            end += next.max(1);
        }
        if closed {
            shown[at..end].fill(false);
            at = end;
        } else {
            at += run.max(1);
        }
    }
}

/// Targets of links, and the text of a link to a decision, which is its title.
fn hide_links(text: &[char], shown: &mut [bool]) {
    for at in 0..text.len() {
        if !shown[at] || !text[at..].starts_with(&[']', '(']) {
            continue;
        }
        let length = text[at..].iter().take_while(|&&c| c != ')').count();
        let target: String = text[at + 2..at + length].iter().collect();
        let opened = text[..at].iter().rposition(|&c| c == '[').unwrap_or(at);
        let first = if target.contains("adr/") {
            opened
        } else {
            at + 1
        };
        shown[first..at + length].fill(false);
    }
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

    #[test]
    fn a_second_word_rings_with_its_line_and_its_term() {
        let page =
            "Fine.\n\n**Whoever** asks, nobody's\nbit and `x` of values that\nall rows share.\n";
        let expected = [
            (3, "whoever", "Participant"),
            (3, "nobody", "Participant"),
            (4, "values that all rows share", "Job-wide value"),
        ];
        assert_eq!(second_words(page), expected);
    }

    #[test]
    fn comments_ring_and_code_does_not() {
        let source = "/// Whoever asks.\nfn nobody() {\n    // nobody waits\n    let x = \"nobody\"; // nobody\n}\n//! ```\n//! nobody();\n//! ```\n";
        let found = second_words(&comments(source));
        let lines: Vec<usize> = found.iter().map(|(line, ..)| *line).collect();
        assert_eq!(lines, [1, 3]);
    }

    #[test]
    fn code_titles_of_decisions_and_parts_of_words_do_not_ring() {
        for page in [
            "`crates/cli/tests/faithless.rs` and ``a `nobody` b``",
            "A span `that goes\nwith nobody on` to here.",
            "Text:\n\n    nobody\n    whoever\n\nMore.",
            "```toml\nname = \"a key that nobody holds\"\n```\n",
            "[Lists run where nobody waits](adr/0046-lists.md), [x](a-whoever.md)",
            "a liarbird, unknocked; they turn. Around them it is quiet",
            "values that all rows\n\nshare",
        ] {
            assert_eq!(second_words(page), [], "{page}");
        }
        assert_eq!(second_words("[nobody](jobs.md)").len(), 1);
        assert_eq!(second_words("A lone ` and nobody").len(), 1);
        assert_eq!(second_words("  - deep\n    nobody").len(), 1);
    }

    #[test]
    fn pages_are_those_that_people_write() {
        assert!(is_page(Path::new("docs/jobs.md"), "# Jobs\n"));
        assert!(is_page(Path::new("README.md"), "# Veilworks\n"));
        assert!(!is_page(Path::new("docs/adr/0001-x.md"), "# 1\n"));
        assert!(!is_page(Path::new("docs/book.toml"), "[book]\n"));
        let made = "# Registers\n\nGenerated by `cargo xtask gen` from a file.\n";
        assert!(!is_page(Path::new("docs/registers-x.md"), made));
    }

    #[test]
    fn every_term_is_in_the_glossary() {
        let glossary = tree::read(&tree::root().join("docs/glossary.md")).unwrap();
        for (word, term) in SECOND {
            assert!(glossary.contains(&format!("**{term}")), "{word}: {term}");
        }
    }
}
