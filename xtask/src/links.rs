//! Do relative links in Markdown lead to a file, and to a heading in it, and does the book have every page of its folder?

use std::path::{Component, Path, PathBuf};

use crate::tree::{self, Failure};

/// What the book consists of: the pages in its folder that this one links to.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Follows every relative link of every page, and finds the pages that the book leaves out.
pub(crate) fn run() -> Result<String, Failure> {
    let files = tree::files()?;
    let pages: Vec<&PathBuf> = files
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    let (mut followed, mut findings) = (0, Vec::new());
    for page in &pages {
        for (line, target) in links(&tree::read(&tree::root().join(page))?) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            followed += 1;
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let path = if file.is_empty() {
                (*page).clone()
            } else {
                resolve(page, file)
            };
            let full = tree::root().join(&path);
            if !full.exists() {
                findings.push(format!(
                    "{}:{line}: there is no {}",
                    page.display(),
                    path.display()
                ));
            } else if !heading.is_empty()
                && !anchors(&tree::read(&full)?).iter().any(|a| a == heading)
            {
                findings.push(format!(
                    "{}:{line}: {} has no heading #{heading}",
                    page.display(),
                    path.display()
                ));
            }
        }
    }
    let summary = tree::read(&tree::root().join(SUMMARY))?;
    for page in left_out(&summary, &pages) {
        findings.push(format!("{SUMMARY}: has no line for {}", page.display()));
    }
    Failure::unless_empty(
        &findings,
        "Correct the link, or bring back what it led to; add a page to the summary of the book.",
    )?;
    Ok(format!(
        "links: {followed} relative links in {} pages lead somewhere",
        pages.len()
    ))
}

/// Pages in the folder of the book that its summary does not link to.
fn left_out<'a>(summary: &str, pages: &[&'a PathBuf]) -> Vec<&'a Path> {
    let at = Path::new(SUMMARY);
    let book: Vec<PathBuf> = (links(summary).iter())
        .map(|(_, target)| resolve(at, target))
        .collect();
    let folder = at.parent().unwrap_or(Path::new(""));
    let within = pages.iter().map(|page| page.as_path());
    within
        .filter(|page| page.starts_with(folder) && *page != at)
        .filter(|page| !book.iter().any(|known| known == page))
        .collect()
}

/// Targets of `[text](target)` outside code, with the line, counted from 1.
fn links(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (text, line) in outside_code(page) {
        // Every other piece between back-ticks is code; a link may have code as its text.
        let prose = text.split('`').step_by(2);
        let targets = prose
            .flat_map(|piece| piece.split("](").skip(1))
            .filter_map(|part| part.split_once(')'));
        found.extend(targets.map(|(target, _)| (line, target.to_owned())));
    }
    found
}

/// What headings are called in links: lower case, spaces to hyphens, punctuation dropped.
fn anchors(page: &str) -> Vec<String> {
    let heading = |text: &str| {
        let kept = text.trim_start_matches('#').trim().to_lowercase();
        kept.chars()
            .filter_map(|c| {
                if c == ' ' {
                    Some('-')
                } else {
                    (c.is_alphanumeric() || "-_".contains(c)).then_some(c)
                }
            })
            .collect()
    };
    outside_code(page)
        .filter(|(text, _)| text.starts_with('#'))
        .map(|(text, _)| heading(text))
        .collect()
}

/// Lines that are not in a fenced block.
fn outside_code(page: &str) -> impl Iterator<Item = (&str, usize)> {
    page.lines()
        .zip(1..)
        .scan(false, |fenced, (text, line)| {
            let fence = text.trim_start().starts_with("```");
            let shown = !*fenced && !fence;
            *fenced ^= fence;
            Some(shown.then_some((text, line)))
        })
        .flatten()
}

/// `target` seen from the folder of `page`, without `.` and `..`.
fn resolve(page: &Path, target: &str) -> PathBuf {
    let joined = page.parent().unwrap_or(Path::new("")).join(target);
    joined.components().fold(PathBuf::new(), |mut path, part| {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            other => path.push(other),
        }
        path
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code_only() {
        let page = "a [b](c.md) [`d`](e.md#f) `[x](y)`\n```\n[x](y)\n```\n[g](#h)\n";
        let found = links(page);
        let expected = [(1, "c.md"), (1, "e.md#f"), (5, "#h")];
        assert_eq!(
            found,
            expected.map(|(line, target)| (line, target.to_owned()))
        );
    }

    #[test]
    fn a_page_that_the_book_leaves_out_is_found() {
        let paths = [
            "README.md",
            SUMMARY,
            "docs/a.md",
            "docs/adr/b.md",
            "docs/c.md",
        ];
        let pages = paths.map(PathBuf::from);
        let pages: Vec<&PathBuf> = pages.iter().collect();
        let summary = "- [A](a.md)\n  - [B](adr/b.md)\n";
        assert_eq!(left_out(summary, &pages), [Path::new("docs/c.md")]);
    }

    #[test]
    fn headings_become_anchors() {
        assert_eq!(
            anchors("# The `veil` command\n```\n# not me\n```\n## R1, cross-check\n"),
            ["the-veil-command", "r1-cross-check"]
        );
    }

    #[test]
    fn targets_are_seen_from_the_page() {
        assert_eq!(
            resolve(Path::new("docs/adr/0001.md"), "../security.md"),
            Path::new("docs/security.md")
        );
        assert_eq!(resolve(Path::new("README.md"), "./docs"), Path::new("docs"));
    }
}
