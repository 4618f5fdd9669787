//! Do the crates depend on each other only as ARCHITECTURE.md allows?

use std::fmt;

use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::tree::{self, Failure};

const FENCE: &str = "```layers";

/// Compares the workspace with the list.
pub(crate) fn run() -> Result<String, Failure> {
    let rule = Rule::parse(&tree::read(&tree::root().join("ARCHITECTURE.md"))?)?;
    let metadata = MetadataCommand::new()
        .current_dir(tree::root())
        .no_deps()
        .exec()?;
    let crates: Vec<Crate> = metadata
        .packages
        .iter()
        .filter_map(|package| {
            let name = short(&package.name)?.to_owned();
            let uses = package
                .dependencies
                .iter()
                .filter(|dependency| dependency.kind != DependencyKind::Development)
                .filter_map(|dependency| short(&dependency.name).map(str::to_owned))
                .collect();
            Some(Crate { name, uses })
        })
        .collect();
    Failure::unless_empty(
        &rule.violations(&crates),
        "Move the code to the layer where it belongs. The list in ARCHITECTURE.md changes by decision only: \
         record why in docs/adr.",
    )?;
    let edges: usize = crates.iter().map(|c| c.uses.len()).sum();
    Ok(format!(
        "layers: {} crates, {edges} dependencies between them, all downwards",
        crates.len()
    ))
}

/// Our crates carry a prefix that the list leaves out.
fn short(name: &str) -> Option<&str> {
    match name {
        "veil" => Some("cli"),
        "veilworks" => Some("veilworks"),
        _ => name.strip_prefix("veil-"),
    }
}

/// A crate of the workspace and what it names as a dependency of its library, binary or build script.
struct Crate {
    name: String,
    uses: Vec<String>,
}

/// The allowed dependencies, lowest layer first.
#[derive(Debug)]
struct Rule(Vec<(String, Vec<String>)>);

/// The list is wrong in itself.
#[derive(Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RuleError {
    /// There is no list.
    #[error("no block that starts with {FENCE} and ends with ```")]
    NoBlock,
    /// A line has no arrow.
    #[error("line {line}: expected `crate -> crates it may use`")]
    NoArrow {
        /// Counted from 1 in the file.
        line: usize,
    },
    /// A crate has two lines.
    #[error("line {line}: {name} has a line already")]
    Twice {
        /// Counted from 1 in the file.
        line: usize,
        /// The crate.
        name: String,
    },
    /// An edge that does not point downwards.
    #[error("line {line}: {name} may use {upper} only if {upper} stands above it in the list")]
    Upwards {
        /// Counted from 1 in the file.
        line: usize,
        /// The crate.
        name: String,
        /// What it wants to use.
        upper: String,
    },
}

/// Where workspace and list differ.
#[derive(Debug, PartialEq)]
enum Violation {
    Forbidden {
        user: String,
        used: String,
        allowed: Vec<String>,
    },
    Unlisted {
        name: String,
    },
    Gone {
        name: String,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Forbidden {
                user,
                used,
                allowed,
            } => {
                let allowed = if allowed.is_empty() {
                    "nothing of ours".to_owned()
                } else {
                    allowed.join(", ")
                };
                write!(
                    f,
                    "crates/{user}/Cargo.toml: {user} must not depend on {used}; it may use {allowed}"
                )
            }
            Violation::Unlisted { name } => write!(
                f,
                "crates/{name}: has no line in the list of ARCHITECTURE.md"
            ),
            Violation::Gone { name } => write!(
                f,
                "ARCHITECTURE.md: {name} is listed, but there is no such crate"
            ),
        }
    }
}

impl Rule {
    /// Reads the block out of the page.
    fn parse(page: &str) -> Result<Self, RuleError> {
        let lines = page
            .lines()
            .zip(1..)
            .skip_while(|(text, _)| text.trim_end() != FENCE)
            .skip(1);
        let mut rule = Rule(Vec::new());
        for (text, line) in lines {
            if text.trim_end() == "```" {
                return Ok(rule);
            }
            let (name, allowed) = text.split_once("->").ok_or(RuleError::NoArrow { line })?;
            let name = name.trim().to_owned();
            if rule.allowed(&name).is_some() {
                return Err(RuleError::Twice { line, name });
            }
            let allowed: Vec<String> = allowed.split_whitespace().map(str::to_owned).collect();
            if let Some(upper) = allowed.iter().find(|used| rule.allowed(used).is_none()) {
                return Err(RuleError::Upwards {
                    line,
                    name,
                    upper: upper.clone(),
                });
            }
            rule.0.push((name, allowed));
        }
        Err(RuleError::NoBlock)
    }

    fn allowed(&self, name: &str) -> Option<&[String]> {
        self.0
            .iter()
            .find(|(listed, _)| listed == name)
            .map(|(_, allowed)| allowed.as_slice())
    }

    fn violations(&self, crates: &[Crate]) -> Vec<Violation> {
        let mut found = Vec::new();
        for Crate { name, uses } in crates {
            let Some(allowed) = self.allowed(name) else {
                found.push(Violation::Unlisted { name: name.clone() });
                continue;
            };
            found.extend(
                uses.iter()
                    .filter(|used| !allowed.contains(used))
                    .map(|used| Violation::Forbidden {
                        user: name.clone(),
                        used: used.clone(),
                        allowed: allowed.to_vec(),
                    }),
            );
        }
        let gone = self
            .0
            .iter()
            .filter(|(listed, _)| crates.iter().all(|c| c.name != *listed));
        found.extend(gone.map(|(name, _)| Violation::Gone { name: name.clone() }));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A page\n\n```layers\nmath ->\nlink ->\ndevice -> math\n```\n\nmore\n";

    fn workspace(device_uses: &[&str]) -> Vec<Crate> {
        let uses = [("math", &[][..]), ("link", &[]), ("device", device_uses)];
        let own = |all: &[&str]| all.iter().map(|&s| s.to_owned()).collect();
        uses.iter()
            .map(|(name, uses)| Crate {
                name: (*name).to_owned(),
                uses: own(uses),
            })
            .collect()
    }

    #[test]
    fn an_allowed_dependency_passes_and_a_forbidden_one_rings() {
        let rule = Rule::parse(PAGE).unwrap();
        assert_eq!(rule.violations(&workspace(&["math"])), []);
        let found = rule.violations(&workspace(&["math", "link"]));
        let expected = Violation::Forbidden {
            user: "device".to_owned(),
            used: "link".to_owned(),
            allowed: vec!["math".to_owned()],
        };
        assert_eq!(found, [expected]);
        assert_eq!(
            found[0].to_string(),
            "crates/device/Cargo.toml: device must not depend on link; it may use math"
        );
    }

    #[test]
    fn list_and_workspace_name_the_same_crates() {
        let rule = Rule::parse(PAGE).unwrap();
        let mut crates = workspace(&[]);
        crates[1].name = "pipe".to_owned();
        let found = rule.violations(&crates);
        assert_eq!(
            found,
            [
                Violation::Unlisted {
                    name: "pipe".to_owned()
                },
                Violation::Gone {
                    name: "link".to_owned()
                }
            ]
        );
    }

    #[test]
    fn a_wrong_list_is_refused_with_its_line() {
        let parse = |block: &str| Rule::parse(&format!("x\n```layers\n{block}```\n")).unwrap_err();
        assert_eq!(
            Rule::parse("```layers\nmath ->\n").unwrap_err(),
            RuleError::NoBlock
        );
        assert_eq!(parse("math\n"), RuleError::NoArrow { line: 3 });
        assert_eq!(
            parse("math ->\nmath ->\n"),
            RuleError::Twice {
                line: 4,
                name: "math".to_owned()
            }
        );
        let upwards = RuleError::Upwards {
            line: 3,
            name: "math".to_owned(),
            upper: "device".to_owned(),
        };
        assert_eq!(parse("math -> device\ndevice ->\n"), upwards);
        let itself = RuleError::Upwards {
            line: 3,
            name: "math".to_owned(),
            upper: "math".to_owned(),
        };
        assert_eq!(parse("math -> math\n"), itself);
    }
}
