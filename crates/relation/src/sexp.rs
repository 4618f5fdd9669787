//! Nested lists as text: the lexical half of the canonical text.
//!
//! A list is written on one line if it fits; else its elements stand below each other, indented. What is read may have any white space.

use std::fmt::Write;

use crate::models::Trained;

/// Longest line before a list is broken: fits a terminal and a diff.
const WIDTH: usize = 110;

/// Deepest nesting that is read: several times what queries of a hundred operators need, and small enough for a thread's stack.
const DEPTH: usize = 200;

/// A word, a quoted text or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sexp {
    /// Without white space, parentheses and quotes.
    Word(String),
    /// Any text.
    Text(String),
    /// In parentheses.
    List(Vec<Sexp>),
    /// A model that has been read, in the place of its name.
    Model(Trained),
}

/// Why a text is no nested list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Line, from 1.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) what: &'static str,
}

impl Sexp {
    /// A word.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "numbers and formats are made at the call"
    )]
    pub(crate) fn word<T: ToString>(text: T) -> Self {
        Self::Word(text.to_string())
    }

    /// A list with a word at its head.
    pub(crate) fn list(head: &str, rest: impl IntoIterator<Item = Self>) -> Self {
        Self::List(std::iter::once(Self::word(head)).chain(rest).collect())
    }

    /// On one line.
    pub(crate) fn line(&self) -> String {
        let mut text = String::new();
        self.flat(&mut text);
        text
    }

    /// On as many lines as it takes, without a line feed at the end.
    pub(crate) fn pretty(&self) -> String {
        let mut text = String::new();
        self.indented(0, &mut text);
        text
    }

    fn flat(&self, into: &mut String) {
        match self {
            Self::Word(word) => into.push_str(word),
            Self::Text(text) => quote(text, into),
            Self::Model(model) => quote(model.name(), into),
            Self::List(items) => {
                into.push('(');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        into.push(' ');
                    }
                    item.flat(into);
                }
                into.push(')');
            }
        }
    }

    fn indented(&self, indent: usize, into: &mut String) {
        let start = into.len();
        self.flat(into);
        let Self::List(items) = self else { return };
        if indent + into.len() - start <= WIDTH {
            return;
        }
        into.truncate(start);
        into.push('(');
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                into.push('\n');
                into.push_str(&"  ".repeat(indent / 2 + 1));
            }
            item.indented(indent + 2, into);
        }
        into.push(')');
    }

    /// Reads one nested list, with nothing after it.
    pub(crate) fn read(text: &str) -> Result<Self, Malformed> {
        let mut lists: Vec<Vec<Self>> = Vec::new();
        let mut whole = None;
        let mut line = 1;
        let mut rest = text.chars().peekable();
        while let Some(first) = rest.next() {
            if first == '\n' {
                line += 1;
            }
            let wrong = |what| Err(Malformed { line, what });
            if first.is_ascii_whitespace() {
                continue;
            }
            if whole.is_some() {
                return wrong("there is more after the end");
            }
            let item = match first {
                '(' if lists.len() >= DEPTH => return wrong("lists are nested too deeply"),
                '(' => {
                    lists.push(Vec::new());
                    continue;
                }
                ')' => match lists.pop() {
                    Some(items) => Self::List(items),
                    None => return wrong("`)` closes nothing"),
                },
                '"' => match unquote(&mut rest) {
                    Some(text) => Self::Text(text),
                    None => {
                        return wrong(
                            "a quoted text does not end, or escapes what needs no escape",
                        );
                    }
                },
                _ => {
                    let mut word = String::from(first);
                    while let Some(next) =
                        rest.next_if(|c| !c.is_ascii_whitespace() && !"()\"".contains(*c))
                    {
                        word.push(next);
                    }
                    Self::Word(word)
                }
            };
            match lists.last_mut() {
                Some(list) => list.push(item),
                None => whole = Some(item),
            }
        }
        let what = "the text ends inside of a list";
        whole.ok_or(Malformed { line, what })
    }
}

fn quote(text: &str, into: &mut String) {
    into.push('"');
    for c in text.chars() {
        match c {
            '"' => into.push_str("\\\""),
            '\\' => into.push_str("\\\\"),
            c if c.is_control() => {
                let written = write!(into, "\\{:x};", u32::from(c));
                debug_assert!(written.is_ok(), "a string takes any text");
            }
            c => into.push(c),
        }
    }
    into.push('"');
}

fn unquote(rest: &mut impl Iterator<Item = char>) -> Option<String> {
    let mut text = String::new();
    loop {
        match rest.next()? {
            '"' => return Some(text),
            '\\' => match rest.next()? {
                c @ ('"' | '\\') => text.push(c),
                first => {
                    let mut digits = String::from(first);
                    loop {
                        match rest.next()? {
                            ';' => break,
                            c if digits.len() < 6 => digits.push(c),
                            _ => return None,
                        }
                    }
                    let c = char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?;
                    // One text has one form.
                    if !c.is_control() || format!("{:x}", u32::from(c)) != digits {
                        return None;
                    }
                    text.push(c);
                }
            },
            c if c.is_control() => return None,
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let text = Sexp::Text("a \"b\" \\ \n \u{7f} ü ()".into());
        let inner = Sexp::list("and", [Sexp::word("#1"), text, Sexp::List(Vec::new())]);
        let long = Sexp::list("or", vec![inner; 9]);
        assert_eq!(Sexp::read(&long.pretty()), Ok(long.clone()));
        assert_eq!(Sexp::read(&long.line()), Ok(long.clone()));
        assert!(
            long.pretty()
                .lines()
                .all(|line| line.chars().count() <= WIDTH)
        );
    }

    #[test]
    fn what_is_malformed_is_refused() {
        let deep = "(".repeat(2_000_000);
        for text in [
            "",
            "(",
            ")",
            "(a",
            "a b",
            "(a))",
            "\"a",
            "\"\\41;\"",
            "\"\\0a;\"",
            "\"\n\"",
            deep.as_str(),
        ] {
            assert!(Sexp::read(text).is_err(), "{}", &text[..text.len().min(20)]);
        }
    }
}
