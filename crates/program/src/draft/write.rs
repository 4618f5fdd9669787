//! The text of a first job.

use std::fmt::Write as _;

use toml::Value;

use super::{Draft, Guess, Guessed};

/// What has to be filled in: no name is empty.
const OPEN: &str = "";

/// A first job of some tables.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its name.
    pub name: String,
    /// The computing parties; none, if they have to be filled in.
    pub parties: Vec<String>,
    /// Who gets the result; nothing, if it has to be filled in.
    pub recipient: Option<String>,
    /// The tables.
    pub tables: Vec<NewTable>,
    /// Whether values of few rows are listed, too.
    pub rare: bool,
}

/// A table of a first job.
#[derive(Clone, Debug)]
pub struct NewTable {
    /// Its name.
    pub name: String,
    /// Whose it is; nothing, if that has to be filled in.
    pub owner: Option<String>,
    /// What it was guessed from, as a comment says.
    pub from: String,
    /// What was guessed.
    pub draft: Draft,
}

/// A name as jobs write it: lower-case letters, digits and `_`, a letter or `_` first.
fn plain(name: &str) -> String {
    let mut out = String::new();
    for letter in name.trim().to_lowercase().chars() {
        match letter {
            'a'..='z' | '0'..='9' => out.push(letter),
            _ if out.ends_with('_') => {}
            _ => out.push('_'),
        }
    }
    let trimmed = out.trim_matches('_');
    match trimmed.chars().next() {
        None => "column".into(),
        Some('0'..='9') => format!("_{trimmed}"),
        Some(_) => trimmed.to_owned(),
    }
}

/// Plain names, each once.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let plain = plain(name);
        let more = (2..).map(|count| format!("{plain}_{count}"));
        let mut free = std::iter::once(plain.clone()).chain(more);
        all.extend(free.find(|name| !all.contains(name)));
    }
    all
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn list<'a>(texts: impl IntoIterator<Item = &'a String>) -> String {
    let texts = texts.into_iter().map(|text| quoted(text));
    format!("[{}]", texts.collect::<Vec<_>>().join(", "))
}

/// A text in a comment: in one line.
fn comment(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

impl NewTable {
    /// A table with the name that its file's name makes.
    pub fn new(file: &std::path::Path, owner: Option<String>, draft: Draft) -> Self {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let from = file.file_name().unwrap_or_default().to_string_lossy();
        NewTable {
            name: plain(&stem),
            owner,
            from: from.into_owned(),
            draft,
        }
    }

    fn write(&self, out: &mut String, rare: bool) {
        let draft = &self.draft;
        let names = distinct(draft.columns.iter().map(|guess| guess.name.as_str()));
        let _ = writeln!(out, "\n[[table]]");
        let _ = writeln!(out, "name = {}", quoted(&self.name));
        let _ = match &self.owner {
            Some(owner) => writeln!(out, "owner = {}", quoted(owner)),
            None => writeln!(
                out,
                "owner = {}  # fill in: who has {}",
                quoted(OPEN),
                comment(&self.from)
            ),
        };
        let _ = writeln!(
            out,
            "rows = {{ up_to = {} }}  # guess: room for all rows of {}, rounded up; how many there are stays with the owner",
            draft.rows,
            comment(&self.from)
        );
        for (guess, name) in draft.columns.iter().zip(&names) {
            if guess.unique && guess.what == Guessed::Key {
                let _ = writeln!(
                    out,
                    "# unique = [[{}]]  # guess: no value is there twice; a join needs that of one side, and the parties look",
                    quoted(name)
                );
            }
        }
        if let Some(delimiter) = draft.delimiter {
            let _ = writeln!(out, "delimiter = {}", quoted(&delimiter.to_string()));
        }
        let mut written = Vec::new();
        if draft.comma {
            written.push("decimal = \",\"".to_owned());
        }
        if !draft.missing.is_empty() {
            written.push(format!("missing = {}", list(&draft.missing)));
        }
        if !written.is_empty() {
            let _ = writeln!(out, "written = {{ {} }}  # guess", written.join(", "));
        }
        out.push_str("column = [\n");
        for (guess, name) in draft.columns.iter().zip(&names) {
            column(out, guess, name, rare);
        }
        out.push_str("]\n");
    }
}

fn column(out: &mut String, guess: &Guess, name: &str, rare: bool) {
    let mut fields = vec![format!("name = {}", quoted(name))];
    let mut notes = guess.guesses.clone();
    let mut out_of_it = None;
    match &guess.what {
        Guessed::Integer { min, max } => {
            fields.push(format!("type = \"integer\", min = {min}, max = {max}"));
        }
        Guessed::Decimal { scale, min, max } => fields.push(format!(
            "type = \"decimal\", scale = {scale}, min = {}, max = {}",
            quoted(min),
            quoted(max)
        )),
        Guessed::Date { min, max, format } => {
            fields.push(format!(
                "type = \"date\", min = {}, max = {}",
                quoted(min),
                quoted(max)
            ));
            fields.extend(format.map(|format| format!("format = {}", quoted(format))));
        }
        Guessed::Category { values, rare: few } => {
            let mut all: Vec<&String> = values.iter().collect();
            if rare {
                all.extend(few);
                all.sort_unstable();
            } else if !few.is_empty() {
                notes.push("those are left out: write them, which tells all participants that they are there, or change the table".into());
            }
            if all.is_empty() {
                out_of_it = Some("each of its values is in few rows, and none is written here");
            }
            fields.push(format!("type = \"category\", values = {}", list(all)));
        }
        Guessed::Bool => fields.push("type = \"bool\"".into()),
        Guessed::Key => fields.push("type = \"key\", bits = 80".into()),
        Guessed::Nothing(why) => {
            fields.push("type = \"\"".into());
            out_of_it = Some(why);
        }
    }
    if guess.name != name {
        fields.push(format!("of = {}", quoted(&guess.name)));
    }
    if guess.null {
        fields.push("null = true".into());
    }
    let line = format!("{{ {} }},", fields.join(", "));
    let notes = notes.join("; ");
    let _ = match out_of_it {
        Some(why) => writeln!(out, "  # {line}  # left out: {why}"),
        None => writeln!(out, "  {line}  # guess: {notes}"),
    };
}

impl NewJob {
    /// The text of its file. What has to be filled in is an empty name, which no job is planned with.
    pub fn text(&self) -> String {
        let mut out = String::from(
            "# A first draft by `veil job new`: read every line, and what is marked as a guess most of all.\n\
             # This file goes to all participants. Ranges, values of categories and numbers of rows are public, and say something of the data.\n",
        );
        let open = || vec![OPEN.to_owned()];
        let (mut owners, mut missing): (Vec<String>, bool) = (Vec::new(), false);
        for table in &self.tables {
            match &table.owner {
                Some(owner) if owners.contains(owner) => {}
                Some(owner) => owners.push(owner.clone()),
                None => missing = true,
            }
        }
        if missing {
            owners.push(OPEN.to_owned());
        }
        let line = |out: &mut String, field: &str, names: &[String], what: &str| {
            let fill = if names.iter().any(|name| name == OPEN) {
                format!("  # fill in: {what}")
            } else {
                String::new()
            };
            let _ = writeln!(out, "{field} = {}{fill}", list(names));
        };
        let parties = match &self.parties[..] {
            [] => open(),
            parties => parties.to_vec(),
        };
        let recipient = self.recipient.clone().unwrap_or_else(|| OPEN.to_owned());
        let _ = writeln!(out, "version = 1\nkind = \"query\"");
        let _ = writeln!(out, "name = {}", quoted(&self.name));
        line(&mut out, "owners", &owners, "who have the tables");
        line(
            &mut out,
            "parties",
            &parties,
            "who compute, two, three or four; owners may be among them",
        );
        line(
            &mut out,
            "recipients",
            std::slice::from_ref(&recipient),
            "who gets the result",
        );
        let names = distinct(self.tables.iter().map(|table| table.name.as_str()));
        for (table, name) in self.tables.iter().zip(&names) {
            let table = NewTable {
                name: name.clone(),
                ..table.clone()
            };
            table.write(&mut out, self.rare);
        }
        let fill = if recipient == OPEN { "  # fill in" } else { "" };
        let _ = writeln!(
            out,
            "\n[[query]]  # your question; this one only counts rows\nname = \"rows_of_{0}\"\nsql = \"\"\"\nSELECT count(*) AS n FROM {0}\n\"\"\"\nto = {1}{fill}",
            names.first().map_or("", String::as_str),
            quoted(&recipient)
        );
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_jobs() {
        for (name, want) in [
            ("Pay (EUR)", "pay_eur"),
            ("2024", "_2024"),
            ("größe", "gr_e"),
            ("  ", "column"),
            ("a__b--c", "a_b_c"),
        ] {
            assert_eq!(plain(name), want);
        }
        let names = ["Pay", "pay", "PAY ", "x"];
        assert_eq!(distinct(names.into_iter()), ["pay", "pay_2", "pay_3", "x"]);
    }

    #[test]
    fn a_name_of_a_file_ends_no_comment() {
        assert_eq!(comment("a\nowner = \"x\""), "a owner = \"x\"");
    }
}
