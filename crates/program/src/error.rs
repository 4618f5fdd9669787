//! Defects of a job file, and their places.

use std::{
    fmt, io,
    ops::Range,
    path::{Path, PathBuf},
};

use veil_relation::RangeError;

use crate::literal::sign_in;
use crate::raw::CAPACITY;

/// A job file that cannot be used: which, where in it, why, and what to do.
#[derive(Debug)]
pub struct JobError {
    /// The job file.
    pub file: PathBuf,
    /// Where in the file; nothing if it could not be read at all.
    pub place: Option<Place>,
    /// The defect.
    pub problem: Box<JobProblem>,
}

/// A place in a job file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Bytes of the file, for tools that mark them.
    pub span: Range<usize>,
}

impl Place {
    /// Finds the line and column of `span` in `text`.
    pub(crate) fn of(text: &str, span: Range<usize>) -> Self {
        let before = text.get(..span.start).unwrap_or(text);
        let start_of_line = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[start_of_line..].chars().count() + 1,
            span,
        }
    }
}

impl JobError {
    pub(crate) fn new(file: &Path, place: Option<Place>, problem: JobProblem) -> Self {
        Self {
            file: file.to_owned(),
            place,
            problem: Box::new(problem),
        }
    }
}

impl JobError {
    /// The query in whose text the defect is, with line and column there.
    pub fn in_query(&self) -> Option<(&str, u64, u64)> {
        let JobProblem::Query(error) = &*self.problem else {
            return None;
        };
        let veil_query::QueryError::Sql(error) = &**error else {
            return None;
        };
        let place = error.place;
        Some((&error.query, place.line, place.column))
    }

    /// The refusal of a range in a query, or in a part of an analysis, if the defect is one.
    pub fn range(&self) -> Option<&RangeError> {
        match &*self.problem {
            JobProblem::Query(error) => error.range(),
            JobProblem::Part { error, .. } => error.problem.range(),
            _ => None,
        }
    }

    /// The bytes of `text`, the job file's, that are at fault: of a query the place itself, as far as the file has the query's text letter for letter, else all of it.
    pub fn span_in(&self, text: &str) -> Option<Range<usize>> {
        let place = self.place.as_ref()?;
        let within = self.in_query().and_then(|(_, line, column)| {
            let literal = text.get(place.span.clone())?;
            let sign = sign_in(literal, line, column)?;
            Some(place.span.start + sign.start..place.span.start + sign.end)
        });
        Some(within.unwrap_or(place.span.clone()))
    }

    /// The part of the error that the job's sender may read: the place in its own text and the defect there, which quotes only that text
    /// and the files that came with it. About this machine it says a constant sentence.
    pub fn for_sender(&self) -> String {
        let place = (self.place.as_ref()).map(|place| format!(":{}:{}", place.line, place.column));
        let place = place.unwrap_or_default();
        let problem = match &*self.problem {
            JobProblem::Read(_) | JobProblem::Data(_) | JobProblem::RowsDiffer { .. } => {
                "it cannot be used here; the operator finds the reason in the log lines".to_owned()
            }
            problem => problem.to_string(),
        };
        format!("the job file{place}: {problem}")
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(place) = &self.place {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl std::error::Error for JobError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(self.problem.as_ref())
    }
}

/// A defect of a job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobProblem {
    /// The file cannot be read.
    #[error("cannot read the job: {0}")]
    Read(#[source] io::Error),
    /// A function that is none.
    #[error("{what}: {reason}")]
    Function {
        /// The function.
        what: String,
        /// Why.
        reason: String,
    },
    /// Larger than any job.
    #[error(
        "the job has {bytes} bytes, and the limit is {limit}; data belong into files of their own"
    )]
    TooLong {
        /// Bytes of the file.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Not TOML, or a field that jobs do not have.
    #[error("{0}")]
    Syntax(String),
    /// Other tables than one of each party, in a job whose keys meet.
    #[error(
        "a psi job has two tables, one of each party, which is their owner; an owner that computes nothing can give its table to a party"
    )]
    NotTwoTables,
    /// Another column than one key, in a job whose keys meet.
    #[error(
        "a table of a psi job has one column of type \"key\", and others only if the job opens \"sums\" or \"columns\"; a key may be made of several columns of the file: `of = [\"…\", \"…\"]`"
    )]
    NotOneKey,
    /// No columns of values where these are opened.
    #[error(
        "the job opens \"{0}\", and no table has a column for it; declare columns behind the key, or open \"size\" or \"keys\""
    )]
    NoValues(&'static str),
    /// Columns of values in the table of the party that learns the other one's.
    #[error(
        "column `{0}` is of the table whose owner learns the result, and has it already; remove it: the columns of the other table are opened"
    )]
    OwnValues(String),
    /// A column that is not added up.
    #[error("column `{0}` is no number; sums are of integers and decimals")]
    NotAdded(String),
    /// More keys than a circuit counts.
    #[error(
        "the table has up to {keys} keys, and two parties count, add up and open columns of up to {}; three semi-honest parties do it for any number by a query that joins \
         both tables, and send about {} MB for tables of this size: name a third party and write a job of kind \"query\"",
        crate::intersect::MOST_COUNTED,
        crate::intersect::among_three(*keys)
    )]
    ManyKeys {
        /// The keys.
        keys: u32,
    },
    /// A version that this program does not know.
    #[error("version {0} of the job format is unknown; this program reads version 1")]
    Version(i64),
    /// No kind of job.
    #[error(
        "kind `{0}` is unknown; write \"stats\", \"query\", \"psi\", \"circuit\" or \"reshare\""
    )]
    Kind(String),
    /// A section that does not belong to the kind of job.
    #[error("a {kind} job has no `{section}`; remove it, or change `kind`")]
    WrongSection {
        /// The section.
        section: &'static str,
        /// The kind of the job.
        kind: &'static str,
    },
    /// A section that the kind of job needs.
    #[error("the {kind} job has no `{section}`; add at least one")]
    NoSection {
        /// The section.
        section: &'static str,
        /// The kind of the job.
        kind: &'static str,
    },
    /// Two things of one name.
    #[error("{what} `{name}` is named twice; rename or remove one")]
    Duplicate {
        /// The kind of thing.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A name that reports cannot show.
    #[error(
        "{what} name {name:?} is empty, longer than 64 characters, or has control characters or blanks at an end; rename it"
    )]
    BadName {
        /// The kind of thing.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A name with a meaning of its own.
    #[error("`{0}` means all computing parties; choose another name")]
    Reserved(String),
    /// Not two, three or four parties.
    #[error("the job names {0} parties; two compute, or three, or four")]
    Parties(usize),
    /// A name that the job does not define.
    #[error("{what} `{name}` is not defined; there {}", list(known))]
    Unknown {
        /// The kind of thing.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that are defined.
        known: Vec<String>,
    },
    /// Too many of something.
    #[error("the job has {found} {what}, and the limit is {limit}; split it into several jobs")]
    TooMany {
        /// The counted items.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many there may be.
        limit: u64,
    },
    /// Nothing to compute on.
    #[error("{what} has 0 rows; give it at least 1 or remove it")]
    NoRows {
        /// Block or job.
        what: String,
    },
    /// No owner supplies a column of a block, or two do.
    #[error(
        "column `{column}` of block `{block}` is held by {holders}; name exactly one owner for it in `holds`"
    )]
    Holders {
        /// The column.
        column: String,
        /// The block.
        block: String,
        /// Who holds it.
        holders: String,
    },
    /// Nothing says why the rows of several owners are rows of the same people.
    #[error(
        "block `{block}` has columns of {owners}, whose rows are paired in the order of their files: write `align = {{ column = \"…\", \
         every = 65536 }}`, so that they compare the order of a key column, or `order = \"agreed\"`, if they have agreed on it beforehand \
         and nobody shall compare it"
    )]
    Unordered {
        /// The block.
        block: String,
        /// Who holds its columns.
        owners: String,
    },
    /// A field is missing that the request needs.
    #[error("{what} needs `{field}`; add it")]
    NoField {
        /// The part of the job that needs it.
        what: String,
        /// The field.
        field: &'static str,
    },
    /// Fewer rows of a dataset than it has, without what says that the others do not count.
    #[error(
        "table `{table}` has fewer rows than are kept, and no opened size that says that none is lost; write the line `opened_size = …` that the dataset has, or remove `first_rows`"
    )]
    Unsized {
        /// The table.
        table: String,
    },
    /// A field makes no sense here.
    #[error("{what} has no use for `{field}`; remove it")]
    NoUse {
        /// The part of the job that does not take it.
        what: String,
        /// The field.
        field: &'static str,
    },
    /// A block that is to have up to so many rows.
    #[error("block `{block}` cannot have `up_to`: {reason}")]
    NotPadded {
        /// The block.
        block: String,
        /// Why not, and what to write.
        reason: &'static str,
    },
    /// Groups by more columns than two.
    #[error(
        "{what} is by {found} columns, and groups are made by one or by two; leave some out, or let an owner make one column of several"
    )]
    Groups {
        /// The grouped analysis.
        what: String,
        /// How many.
        found: usize,
    },
    /// Shares of two parties that would stay.
    #[error(
        "two parties keep no shares, and load none; name three parties, or four, or leave out `{0}`"
    )]
    NoShares(&'static str),
    /// A second block whose order two parties would compare.
    #[error(
        "two parties compare the order of the rows of one block, and `{0}` is a second one; make one block of both, or let their owners \
         agree on an order (`order = \"agreed\"`)"
    )]
    TwoOrders(String),
    /// A word of former versions.
    #[error("`{field} = \"{was}\"` is now called `{field} = \"{now}\"`; it means the same")]
    Renamed {
        /// The field.
        field: &'static str,
        /// The former word.
        was: &'static str,
        /// The word now.
        now: &'static str,
    },
    /// A word that is not what the field needs.
    #[error("`{field}` is {value:?}: {reason}")]
    Word {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// Why it will not do.
        reason: String,
    },
    /// A command line that says something else than the job.
    #[error(
        "`{option} {chosen}` contradicts `{field} = \"{file}\"` of the job; leave the option out, or change the job at all \
         its participants"
    )]
    Chosen {
        /// The option.
        option: &'static str,
        /// The word of the option.
        chosen: &'static str,
        /// The field of the job.
        field: &'static str,
        /// The word of the file.
        file: &'static str,
    },
    /// A number that is not what the field needs.
    #[error("`{field}` is `{value}`: {reason}")]
    Number {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// Why it will not do.
        reason: String,
    },
    /// No value can be in the range.
    #[error("min is larger than max in column `{0}`; exchange them")]
    EmptyRange(String),
    /// A column of the wrong type.
    #[error("column `{column}` is {is}, but {what} needs {needs}")]
    WrongType {
        /// The column.
        column: String,
        /// The type that it has.
        is: &'static str,
        /// Who needs something else.
        what: String,
        /// The type that is needed.
        needs: &'static str,
    },
    /// The same column twice where that has no meaning.
    #[error("column `{column}` is used twice in {what}; remove one")]
    Repeated {
        /// The column.
        column: String,
        /// Where.
        what: String,
    },
    /// An extreme of rows that no owner sees as a whole.
    #[error(
        "every owner finds the {kind} of its own rows, so {analysis} needs columns of one owner; in block `{block}`, {held}; give one \
         owner all of them, or leave `by` out"
    )]
    Apart {
        /// `min` or `max`.
        kind: &'static str,
        /// The analysis, with its kind.
        analysis: String,
        /// The block.
        block: String,
        /// Who holds which column.
        held: String,
    },
    /// A sum that no ring can hold.
    #[error(
        "analysis `{analysis}`: the {sum} can need {bits} bits, and the largest ring has 128; \
         narrow the declared ranges or have fewer rows"
    )]
    Overflow {
        /// The analysis.
        analysis: String,
        /// The value that would be opened.
        sum: String,
        /// Bits that it can need, with sign.
        bits: u64,
    },
    /// Everything asked for is in the job file.
    #[error(
        "nothing secret is asked: the number of rows is in the job; ask for something of a column"
    )]
    NothingSecret,
    /// A dataset whose shares would be narrower than the values computed from them.
    #[error(
        "the analyses of this job need 128 bits, and `{0}` is to be kept with 64; write `ring = 128` in `[keep]`, or \
         leave it out"
    )]
    NarrowKeep(String),
    /// Neither three nor four owners that have the dataset which is shared again.
    #[error(
        "the job names {0} owners; write the three or four parties that have the dataset, in their order"
    )]
    OldParties(usize),
    /// Neither three parties nor four get shares.
    #[error("the job names {0} parties; three keep shares, or four")]
    NewParties(usize),
    /// A dataset that would stay where it is.
    #[error(
        "{parties} have `{dataset}` already, and a job that loads it names them in this order; name another party, or run \
         that job"
    )]
    SameParties {
        /// The dataset.
        dataset: String,
        /// Who has it.
        parties: String,
    },
    /// A party in both sets would have two datasets of one name.
    #[error(
        "`{party}` has `{dataset}` and gets it again, and keeps the old one until it is removed; \
         write `as = \"…\"`, another name for the new one"
    )]
    KeptTwice {
        /// The party.
        party: String,
        /// The dataset.
        dataset: String,
    },
    /// A circuit that cannot be made or read.
    #[error("cannot use circuit `{name}`: {reason}")]
    Circuit {
        /// Generator or file.
        name: String,
        /// Why.
        reason: String,
    },
    /// The name of a result is the name of another file in its folder.
    #[error(
        "`{0}` is no name of a result: a receipt is called `receipt.json`, and files that are not complete begin with a dot; choose another \
         name"
    )]
    ReservedFile(String),
    /// Two choices where there must be one.
    #[error("write either `{one}` or `{other}`, not {}", if *both { "both" } else { "neither" })]
    OneOf {
        /// One field.
        one: &'static str,
        /// The other.
        other: &'static str,
        /// Whether both are there.
        both: bool,
    },
    /// A port that several inputs or none supply.
    #[error("input port `{port}` of the circuit is supplied {}; {hint}", times(*found))]
    Supply {
        /// The port.
        port: String,
        /// How many inputs name it.
        found: usize,
        /// The remedy.
        hint: &'static str,
    },
    /// The number of rows is nowhere.
    #[error(
        "the number of rows is not known here: write `rows = …` under [circuit], or give a data file of an input that has a value per row"
    )]
    RowsUnknown,
    /// The number of rows is nowhere in a job whose data are not looked into.
    #[error(
        "a proposed job declares `rows = …` under [circuit]: no participant that plans it counts the rows of data files"
    )]
    RowsUndeclared,
    /// A path in a foreign job.
    #[error(
        "`{field}` leads out of the folder of the job: the owner that reads a data file says itself where it is, with `--data`; write a plain \
         name, or leave it out"
    )]
    LeadsOut {
        /// The field.
        field: &'static str,
    },
    /// A circuit or model that is not in the folder of the job file.
    #[error(
        "`file` under [{0}] is no plain name: it is sent along, so move it beside the job file"
    )]
    NotPlain(String),
    /// A model that cannot be read.
    #[error("model `{name}`, from `{file}`: {reason}")]
    Model {
        /// The model.
        name: String,
        /// Its file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// A circuit or model that is nowhere.
    #[error("the file `{0}` was not sent along with the job; propose both with `veil submit`")]
    NotSent(String),
    /// A file that came with a job.
    #[error("the file `{0}` was sent along, and the job does not name it; leave it out")]
    NotNamed(String),
    /// The files of this machine do not agree with each other or with the job.
    #[error("rows do not align: {one} has {one_rows} rows, {other} has {other_rows}")]
    RowsDiffer {
        /// Who says so.
        one: String,
        /// Rows of the first.
        one_rows: u64,
        /// Who else.
        other: String,
        /// Rows of the second.
        other_rows: u64,
    },
    /// Queries that are no program, or forbidden by an owner's words.
    #[error("{0}")]
    Query(Box<veil_query::QueryError>),
    /// A part of an analysis that is no SQL, or has no meaning over its tables.
    #[error("{what}: {}", without_name(error))]
    Part {
        /// The analysis, and its field if there is one.
        what: String,
        /// What is wrong, and where in the part.
        error: Box<veil_query::SqlError>,
    },
    /// What rows have to move for, in a job whose rows do not.
    #[error(
        "analysis `{analysis}` has `{field}`, for which parties move rows; declare `[[table]]` in the place of `[[column]]` and `[[block]]`"
    )]
    NeedsTables {
        /// The analysis.
        analysis: String,
        /// What it has.
        field: &'static str,
    },
    /// More numbers than the job's limit.
    #[error(
        "the job opens up to {found} numbers, and its limit is {limit}; ask for fewer groups or figures, or write `most_opened = {found}`"
    )]
    TooManyOpened {
        /// How many it opens.
        found: u64,
        /// How many it may open.
        limit: u64,
    },
    /// A column that makes no statistic.
    #[error("{what} uses `{column}`, {why}")]
    NoStatistic {
        /// The column.
        column: String,
        /// The analysis.
        what: String,
        /// What the column is, and what to do.
        why: &'static str,
    },
    /// A program that parties cannot compute.
    #[error("the queries cannot be computed: {0}")]
    Unplanned(String),
    /// Queries of which none has a recipient or is kept.
    #[error(
        "no query has a recipient or is kept, so that nothing would come of it; write `to = \"…\"` into one, or `keep = \"…\"`"
    )]
    NothingOpened,
    /// Keys that are too short for so many.
    #[error(
        "{0}; above 2^-40 a join would find what is not there: declare the keys with more bits, or tables with fewer rows"
    )]
    Collisions(crate::query::Collisions),
    /// Parties among whom rows do not move.
    #[error("{0}")]
    NotMoved(&'static str),
    /// A data file that had to be looked into.
    #[error("{0}")]
    Data(String),
}

/// A problem of a text with its line and a caret, without a query's name: it is a part of one.
fn without_name(error: &veil_query::SqlError) -> String {
    let text = error.to_string();
    let below = text.split_once('\n').map_or("", |(_, below)| below);
    format!("{}\n{below}", error.problem)
}

fn list(known: &[String]) -> String {
    match known {
        [] => "is none".into(),
        [one] => format!("is only `{one}`"),
        _ => format!("are `{}`", known.join("`, `")),
    }
}

fn times(found: usize) -> String {
    match found {
        0 => "by no participant".into(),
        1 => "once".into(),
        more => format!("{more} times"),
    }
}

/// A problem and where it is; the file is added by the caller that read it.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) problem: JobProblem,
}

impl Fault {
    pub(crate) fn new(span: Range<usize>, problem: JobProblem) -> Self {
        Self { span, problem }
    }

    pub(crate) fn of(error: &toml::de::Error) -> Self {
        let span = error.span().unwrap_or(0..0);
        Self::new(span, JobProblem::Syntax(plain(error.message())))
    }
}

/// What the reader of TOML says, in words of a job instead of those of a program.
fn plain(message: &str) -> String {
    if message.ends_with("untagged enum RawNames") {
        return "this must be a name in quotes, or several in brackets, such as [\"a\", \"b\"]"
            .into();
    }
    if message.ends_with("untagged enum RawDelimiter") {
        return "this must be a mark in quotes, or one for each owner, such as { mill = \";\" }"
            .into();
    }
    if message.starts_with("invalid boolean") {
        return "text stands in quotes; without them there are numbers, `true` and `false`".into();
    }
    let number = |wanted: &str| wanted.strip_prefix(['u', 'i'])?.parse::<u32>().ok();
    let both = |kind| message.strip_prefix(kind)?.split_once(", expected ");
    if let Some((found, wanted)) = both("invalid value: ")
        && let (Some(value), Some(bits)) = (found.strip_prefix("integer "), number(wanted))
    {
        let most = u64::MAX >> (64 - bits.clamp(1, 63));
        return format!("{value} is no number that belongs here: write one from 0 to {most}");
    }
    let Some((found, wanted)) = both("invalid type: ") else {
        return message.to_owned();
    };
    let wanted = match wanted {
        "a string" | "a path" | "path string" => "text in quotes",
        "a boolean" => "`true` or `false`, without quotes,",
        "a sequence" => "a list in brackets",
        "a number" => "a number",
        "a map" => "a table, such as { mill = \"pay.csv\" },",
        CAPACITY => "a number of rows, without quotes, or { up_to = … },",
        wanted if number(wanted).is_some() => "a whole number, without quotes,",
        wanted if wanted.starts_with("struct ") => "a section with fields",
        _ => return message.to_owned(),
    };
    let (kind, value) = found.split_once([' ', '`']).unwrap_or((found, ""));
    let kind = match kind {
        "string" => "text in quotes",
        "integer" => "a whole number",
        "floating" => "a number with a point",
        "boolean" => "a word without quotes",
        "sequence" => "a list",
        "map" => "a table, or a date without quotes",
        _ => return message.to_owned(),
    };
    let value = value.trim_start_matches("point ").trim_matches('`');
    let value = match value {
        "" => String::new(),
        value => format!(" ({value})"),
    };
    format!("{wanted} belongs here, and this is {kind}{value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_of_files_speaks_plainly() {
        for (said, plainly) in [
            (
                "invalid type: string \"3\", expected u64",
                "a whole number, without quotes, belongs here, and this is text in quotes (\"3\")",
            ),
            (
                "invalid type: sequence, expected a string",
                "text in quotes belongs here, and this is a list",
            ),
            (
                "invalid type: floating point `1.5`, expected u8",
                "a whole number, without quotes, belongs here, and this is a number with a point (1.5)",
            ),
            (
                "invalid value: integer `-1`, expected u8",
                "`-1` is no number that belongs here: write one from 0 to 255",
            ),
            ("missing field `to`", "missing field `to`"),
            (
                "invalid type: unit, expected something",
                "invalid type: unit, expected something",
            ),
        ] {
            assert_eq!(plain(said), plainly);
        }
    }

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let text = "a = 1\nbé = 2\n";
        assert_eq!(
            (Place::of(text, 0..1).line, Place::of(text, 0..1).column),
            (1, 1)
        );
        let at = text.find('2').expect("is there");
        assert_eq!(
            (Place::of(text, at..at).line, Place::of(text, at..at).column),
            (2, 6)
        );
        assert_eq!(Place::of(text, 900..901).line, 3);
    }
}
