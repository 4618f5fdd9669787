//! Which files a design may have Yosys read.
//!
//! Verilog names files itself: `` `include `` has Yosys read one as text, and `$readmemh` makes constants of one, which are then part of a
//! circuit that is sent around. A foreign design may read the files delivered with it: files in the folder of a source or below, none of
//! which is hidden. Names in plain words are checked before Yosys is called; the files that Yosys has in fact read, however a macro or a
//! parameter put the name together, are checked afterwards, and a design that has read another file gives no circuit.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::error::VerilogError;

/// Refuses sources that name a file elsewhere.
pub(super) fn named(files: &[PathBuf]) -> Result<(), VerilogError> {
    for file in files {
        // Yosys says better what is wrong with a file that is not there.
        let text = fs::read(file).unwrap_or_default();
        for (line, name) in names(&text) {
            if !is_plain(Path::new(&name)) {
                let place = format!("{}:{line}: ", file.display());
                return Err(VerilogError::Elsewhere { place, name });
            }
        }
    }
    Ok(())
}

/// Refuses what Yosys has read, by its list of dependencies, if it is elsewhere.
pub(super) fn read(files: &[PathBuf], dependencies: &str) -> Result<(), VerilogError> {
    let sources: Vec<PathBuf> = files
        .iter()
        .filter_map(|file| fs::canonicalize(file).ok())
        .collect();
    let beside = |file: &Path| {
        sources.iter().any(|source| {
            let below = source.parent().and_then(|of| file.strip_prefix(of).ok());
            source == file || below.is_some_and(is_plain)
        })
    };
    for name in inputs(dependencies) {
        if !fs::canonicalize(&name).is_ok_and(|file| beside(&file)) {
            let place = String::new();
            return Err(VerilogError::Elsewhere { place, name });
        }
    }
    Ok(())
}

/// Whether a name is one of a file in this folder or below, and nothing on the way is hidden.
fn is_plain(name: &Path) -> bool {
    let plain = |part| match part {
        Component::Normal(part) => !part.as_encoded_bytes().starts_with(b"."),
        Component::CurDir => true,
        _ => false,
    };
    name.components().all(plain)
}

/// The files that a list of dependencies names, as Yosys writes it: outputs, a colon, inputs; spaces within a name after a backslash.
fn inputs(dependencies: &str) -> Vec<String> {
    let list = dependencies.split_once(": ").map_or("", |(_, list)| list);
    let mut names = vec![String::new()];
    let mut letters = list.trim_end_matches('\n').chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.next_if_eq(&' ').is_some() => names.last_mut().expect("one").push(' '),
            ' ' => names.push(String::new()),
            other => names.last_mut().expect("one").push(other),
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// The names of files in strings after `` `include ``, `$readmemh` and `$readmemb`, with their lines, from 1.
fn names(text: &[u8]) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    let (mut line, mut at, mut reads) = (1, 0, false);
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        let until = |end: &[u8]| {
            let found = rest.windows(end.len()).skip(2).position(|it| it == end);
            found.map_or(rest.len(), |found| found + 2)
        };
        let length = match byte {
            b'/' if rest.starts_with(b"//") => until(b"\n"),
            b'/' if rest.starts_with(b"/*") => until(b"*/") + 2,
            b'"' => {
                let length = string(rest);
                if std::mem::take(&mut reads) {
                    let inner = &rest[1..length.max(2) - 1];
                    names.push((line, String::from_utf8_lossy(inner).into_owned()));
                }
                length
            }
            b'`' | b'$' => {
                let letters = rest[1..].iter().take_while(|it| it.is_ascii_alphabetic());
                let length = 1 + letters.count();
                reads = matches!(&rest[..length], b"`include" | b"$readmemh" | b"$readmemb");
                length
            }
            b'(' => 1,
            _ => {
                reads &= byte.is_ascii_whitespace();
                1
            }
        };
        let passed = &rest[..length.min(rest.len())];
        line += passed.split(|it| *it == b'\n').count() - 1;
        at += length;
    }
    names
}

/// The length of the string that a text begins with, quotes included.
fn string(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Refuses a netlist that says more than what a simulator computes: it has no directive, and no system function but those of signs.
pub(super) fn netlist(text: &str) -> Result<(), String> {
    // Names of a design are escaped where they are more than letters, and end at the next space.
    let words = text.split_ascii_whitespace();
    for word in words.filter(|word| !word.starts_with('\\')) {
        let plain = word.split_once('\\').map_or(word, |(before, _)| before);
        let rest = plain.replace("$signed(", "").replace("$unsigned(", "");
        let system = rest.match_indices('$').any(|(at, _)| {
            let before = rest[..at].chars().next_back();
            !before.is_some_and(|it| it.is_ascii_alphanumeric() || it == '_' || it == '$')
        });
        if system {
            return Err(format!("`{word}`"));
        }
    }
    // Escaped or not: a simulator's preprocessor need not know where a name begins.
    match text.lines().find(|line| line.contains('`')) {
        None => Ok(()),
        Some(line) => Err(format!("`{}`", line.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_stand_in_strings() {
        let text = b"// `include \"a\"\n/* $readmemh(\"b\" */ `include \"c.vh\"\n initial begin\n  $display(\"d\"); $readmemh( \"e \\\" f\", m);\n\
            $readmemb(N, m, \"g\"); $readmemb\n(\n\"h\"";
        let found: Vec<(usize, String)> = names(text);
        let found: Vec<(usize, &str)> = found.iter().map(|(at, it)| (*at, &**it)).collect();
        assert_eq!(found, [(2, "c.vh"), (4, "e \\\" f"), (7, "h")]);
        for end in ["`include \"", "`include \"a\\", "/*", "/", "$", "//", "\""] {
            let _ = names(end.as_bytes());
        }
    }

    #[test]
    fn a_file_beside_is_neither_above_nor_hidden() {
        let plain = ["t.hex", "./t.hex", "data/t.hex"];
        assert!(plain.iter().all(|name| is_plain(Path::new(name))));
        let others = [
            "/etc/passwd",
            "../t.hex",
            "a/../../t",
            ".ssh/id",
            "a/.b/c",
            "..",
        ];
        assert!(others.iter().all(|name| !is_plain(Path::new(name))));
    }

    #[test]
    fn a_list_of_dependencies_has_names_with_spaces() {
        assert_eq!(
            inputs("out.json: ./d.v t.hex x\\ y.vh\n"),
            ["./d.v", "t.hex", "x y.vh"]
        );
        assert_eq!(inputs(": d.v"), ["d.v"]);
        assert!(inputs("").is_empty());
    }

    #[test]
    fn a_netlist_has_no_system_tasks() {
        let harmless =
            "module t(\\$fopen , a$b);\n assign \\$1 = $signed(a) + $unsigned(a$b);\nendmodule\n";
        assert_eq!(netlist(harmless), Ok(()));
        for harm in ["initial $finish;", "x($fopen(1))", "a = `b;", "\\`c d"] {
            assert!(netlist(harm).is_err(), "{harm}");
        }
    }
}
