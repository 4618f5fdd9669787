//! Uses of a plan's approval since it was given, from the entries that follow it.

use super::Entry;
use veil_runtime::Stage;

/// The stages by their names in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Whole,
    Input,
    /// One that computes on the inputs that were kept.
    Kept,
}

impl At {
    fn of(entry: &Entry) -> Self {
        let stage = entry.text("stage").unwrap_or_default();
        match stage {
            _ if stage == Stage::Input.name() => At::Input,
            // Finishing without a party has many, and one name.
            _ if stage == Stage::Compute.name() || stage.starts_with("finish") => At::Kept,
            _ => At::Whole,
        }
    }
}

/// Where the last of several runs on the same checkpointed inputs is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Last {
    /// Its end is not in the log.
    UnderWay,
    /// It failed.
    Failed,
    Done,
}

/// Runs on the same checkpointed inputs: they are one run of the job, however often it is interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Kept {
    /// Whether the approval allowed it.
    counted: bool,
    /// Whether something may have been opened.
    opened: bool,
    last: Last,
}

impl Kept {
    /// Whether it counts, although nothing can have been opened.
    fn is_void(self) -> bool {
        self.counted && self.last == Last::Failed && !self.opened
    }
}

/// How often an approval was used.
///
/// A run counts when it begins. It does not any more when it ends without success before anything may have been opened; one whose end is not
/// in the log counts. What is repeated on the same checkpointed inputs is the same run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Uses {
    whole: u64,
    /// Whether a run that is under way was counted.
    running: Option<bool>,
    inputs: u64,
    bringing: Option<bool>,
    computed: u64,
    kept: Option<Kept>,
}

impl Uses {
    /// Runs. An owner that only brings data has used its approval when they were brought.
    pub(crate) fn runs(self, brings_only: bool) -> u64 {
        if brings_only {
            self.whole + self.inputs
        } else {
            let void = self.kept.is_some_and(Kept::is_void);
            self.whole + self.computed - u64::from(void)
        }
    }

    /// Whether a run that was counted can go on, on the inputs that it kept.
    pub(crate) fn goes_on(self) -> bool {
        self.kept
            .is_some_and(|kept| kept.counted && kept.last != Last::Done)
    }

    /// Takes an entry about the plan.
    pub(super) fn take(&mut self, entry: &Entry) {
        let flag = |name: &str| entry.fields.get(name).and_then(serde_json::Value::as_bool);
        match entry.kind.as_str() {
            "run_started" => {
                let decided = entry.fields.get("decided");
                let by = decided.and_then(|decided| decided.get("by")?.as_str());
                self.started(At::of(entry), by == Some("person"));
            }
            "run_ended" => {
                let done = entry.text("cause") == Some("done");
                self.ended(At::of(entry), done, flag("opened") != Some(false));
            }
            _ => {}
        }
    }

    fn started(&mut self, at: At, person: bool) {
        match at {
            At::Whole => {
                self.whole += u64::from(person);
                self.running = Some(person);
            }
            At::Input => {
                self.inputs += u64::from(person);
                self.bringing = Some(person);
                // What was kept before makes room for it.
                if self.kept.take().is_some_and(Kept::is_void) {
                    self.computed -= 1;
                }
            }
            At::Kept => match &mut self.kept {
                Some(kept) if kept.last != Last::Done => {
                    // One that did not end may have come to any place.
                    kept.opened |= kept.last == Last::UnderWay;
                    kept.last = Last::UnderWay;
                }
                kept => {
                    self.computed += u64::from(person);
                    *kept = Some(Kept {
                        counted: person,
                        opened: false,
                        last: Last::UnderWay,
                    });
                }
            },
        }
    }

    fn ended(&mut self, at: At, done: bool, opened: bool) {
        match at {
            At::Whole => {
                if self.running.take() == Some(true) && !done && !opened {
                    self.whole -= 1;
                }
            }
            At::Input => {
                if self.bringing.take() == Some(true) && !done {
                    self.inputs -= 1;
                }
            }
            At::Kept => {
                if let Some(kept) = &mut self.kept {
                    kept.opened |= opened;
                    kept.last = if done { Last::Done } else { Last::Failed };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts and ends, one letter each: `w`, `i` and `k` begin a whole run, an input stage and one on what was kept; capital letters end
    /// it well, `x` and `o` badly, before and after something may have been opened.
    fn uses(story: &str) -> Uses {
        let mut uses = Uses::default();
        let mut last = At::Whole;
        for step in story.chars() {
            let at = match step.to_ascii_lowercase() {
                'w' => At::Whole,
                'i' => At::Input,
                'k' => At::Kept,
                _ => last,
            };
            last = at;
            match step {
                'w' | 'i' | 'k' => uses.started(at, true),
                'x' | 'o' => uses.ended(at, false, step == 'o'),
                _ => uses.ended(at, true, true),
            }
        }
        uses
    }

    #[test]
    fn a_run_counts_once_it_may_have_opened_something() {
        for (story, runs, brought, goes_on) in [
            ("", 0, 0, false),
            ("wW", 1, 1, false),
            ("wx", 0, 0, false),
            ("wo", 1, 1, false),
            // Killed; the log does not say how far it was.
            ("w", 1, 1, false),
            ("wwW", 2, 2, false),
            ("wxwxwW", 1, 1, false),
            // Durable: repeated on the same inputs, over any number of ends of the process.
            ("iI", 0, 1, false),
            ("iIk", 1, 1, true),
            ("iIkxkokkK", 1, 1, false),
            ("ixixiIkK", 1, 1, false),
            // Inputs that were brought again.
            ("iIkxiIkK", 1, 2, false),
            ("iIkoiIkK", 2, 2, false),
            ("iIkKiIkK", 2, 2, false),
            // Killed while it computed; the log does not say how far it was.
            ("iIkiIkK", 2, 2, false),
            ("iIkkxiIkK", 2, 2, false),
            // A recipient has only the second stage.
            ("kKkK", 2, 0, false),
            ("kxkK", 1, 0, false),
            ("kx", 0, 0, true),
            ("ko", 1, 0, true),
        ] {
            let uses = uses(story);
            let found = (uses.runs(false), uses.runs(true), uses.goes_on());
            assert_eq!(found, (runs, brought, goes_on), "{story}");
        }
    }

    #[test]
    fn what_a_rule_allowed_uses_no_approval() {
        let mut uses = Uses::default();
        for at in [At::Whole, At::Input, At::Kept] {
            uses.started(at, false);
            uses.ended(at, false, false);
        }
        assert_eq!((uses.runs(false), uses.runs(true)), (0, 0));
        assert!(!uses.goes_on());
    }
}
