//! Release notes: the fragments of `news/`, joined by the area that their names begin with.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::tree::{self, Failure};

const CHANGELOG: &str = "CHANGELOG.md";

/// The notes of what is not released.
pub(crate) fn print() -> Result<String, Failure> {
    let fragments = fragments(&tree::root().join("news"))?;
    Ok(section("Unreleased", &fragments))
}

/// Writes the notes of a release in front of those before it, and removes the fragments.
pub(crate) fn release(version: &str) -> Result<String, Failure> {
    let fault = |finding: String| Failure::Findings {
        findings: vec![finding],
        advice: "A version is three numbers with dots, as in `workspace.package.version` of Cargo.toml.",
    };
    let manifest = tree::read(&tree::root().join("Cargo.toml"))?;
    if !manifest.contains(&format!("\nversion = \"{version}\"\n")) {
        return Err(fault(format!("Cargo.toml is not of version {version}")));
    }
    let file = tree::root().join(CHANGELOG);
    let before = if file.exists() {
        tree::read(&file)?
    } else {
        String::new()
    };
    if before.contains(&format!("\n## {version}\n")) {
        return Err(fault(format!(
            "{CHANGELOG} has the release {version} already"
        )));
    }
    let news = tree::root().join("news");
    let fragments = fragments(&news)?;
    let all = joined(&before, &section(version, &fragments));
    let unwritten = |path: &Path, source| Failure::Unreadable {
        path: path.to_owned(),
        source,
    };
    fs::write(&file, all).map_err(|error| unwritten(&file, error))?;
    for name in fragments.keys() {
        let path = news.join(name);
        fs::remove_file(&path).map_err(|error| unwritten(&path, error))?;
    }
    Ok(format!(
        "{CHANGELOG}: {} changes of {version}",
        fragments.len()
    ))
}

/// The fragments, by their file names.
fn fragments(folder: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let unread = |source| Failure::Unreadable {
        path: folder.to_owned(),
        source,
    };
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(unread)? {
        let name = entry.map_err(unread)?.file_name();
        let name = name.to_string_lossy().into_owned();
        let is_page = Path::new(&name).extension().is_some_and(|end| end == "md");
        if is_page && name != "README.md" {
            let text = tree::read(&folder.join(&name))?;
            all.insert(name, text);
        }
    }
    Ok(all)
}

/// The section of a release: an item for each fragment, areas in the order of their names.
fn section(title: &str, fragments: &BTreeMap<String, String>) -> String {
    let mut text = format!("## {title}\n");
    let mut last = None;
    for (name, fragment) in fragments {
        let name = name.trim_end_matches(".md");
        let area = name.split('-').next().unwrap_or(name);
        if last != Some(area) {
            let _ = write!(text, "\n### {area}\n\n");
            last = Some(area);
        }
        let lines: Vec<&str> = fragment.split_whitespace().collect();
        let _ = writeln!(text, "- {}", lines.join(" "));
    }
    text
}

/// A changelog with a section more in front.
fn joined(before: &str, section: &str) -> String {
    const HEAD: &str = "# Changes\n\nEach release, the newest first.\n";
    let rest = before.strip_prefix(HEAD).unwrap_or(before);
    format!("{HEAD}\n{section}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_become_items_by_area_and_releases_stand_above_each_other() {
        let all = [
            ("node-b.md", "Second\nline.\n"),
            ("cli-a.md", "First.\n"),
            ("node-a.md", "Third."),
        ];
        let all: BTreeMap<String, String> = all
            .into_iter()
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .collect();
        let one = section("0.1.0", &all);
        assert_eq!(
            one,
            "## 0.1.0\n\n### cli\n\n- First.\n\n### node\n\n- Third.\n- Second line.\n"
        );
        let first = joined("", &one);
        let second = joined(&first, &section("0.2.0", &BTreeMap::new()));
        let order = ["# Changes", "## 0.2.0", "## 0.1.0"].map(|part| second.find(part).unwrap());
        assert!(order.is_sorted(), "{second}");
        assert_eq!(second.matches("# Changes").count(), 1);
    }
}
