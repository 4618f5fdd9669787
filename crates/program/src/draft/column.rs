//! What a column may be, by its cells.

use std::collections::{BTreeMap, HashSet};

use foldhash::fast::RandomState;

use crate::date;
use crate::number::Scaled;
use crate::table::PLACEHOLDERS;
use crate::table::scan::Typed;

/// A text column with more values than this is a key rather than a category.
const MOST_VALUES: usize = 64;

/// A value of fewer rows than this may say which person it is of.
const FEW: u64 = 5;

/// A column whose cells were counted so often, each once, may name its rows.
const MANY: u64 = 20;

/// Cells that are remembered to find out whether one is there twice: 8 bytes each.
const REMEMBERED: usize = 1 << 24;

/// Digits after the point that numbers may have.
const PLACES: u32 = 18;

/// Formats of dates, the first that fits all cells first.
const FORMATS: [&str; 5] = ["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d"];

/// What a column may be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Guessed {
    /// Whole numbers of a range.
    Integer {
        /// The least.
        min: i128,
        /// The greatest.
        max: i128,
    },
    /// Decimals of a range, as they are written.
    Decimal {
        /// Digits after the point.
        scale: u32,
        /// The least.
        min: String,
        /// The greatest.
        max: String,
    },
    /// Days of a range, as `2025-03-14`.
    Date {
        /// The first.
        min: String,
        /// The last.
        max: String,
        /// How the file writes them, if it is not so.
        format: Option<&'static str>,
    },
    /// One of some texts.
    Category {
        /// Those of enough rows, in their order.
        values: Vec<String>,
        /// Those of few rows, in their order.
        rare: Vec<String>,
    },
    /// True or false.
    Bool,
    /// A key, of which the job has no value.
    Key,
    /// Nothing, with the reason.
    Nothing(&'static str),
}

/// A guess about a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guess {
    /// Its name in the file.
    pub name: String,
    /// What it may be.
    pub what: Guessed,
    /// Whether cells are missing.
    pub null: bool,
    /// Whether no value is there twice.
    pub unique: bool,
    /// What was guessed, in words.
    pub guesses: Vec<String>,
}

/// A number in units of `10^-18`.
#[derive(Clone, Copy)]
struct Number {
    units: i128,
    places: u32,
}

/// What numbers with one decimal mark are.
#[derive(Default)]
struct Numbers {
    range: Option<(i128, i128)>,
    places: u32,
    failed: bool,
    /// Whether one has the mark.
    marked: bool,
}

/// What is counted of a column.
pub(super) struct Tally {
    name: String,
    typed: Typed,
    cells: u64,
    missing: u64,
    placeholders: Vec<String>,
    values: Option<BTreeMap<String, u64>>,
    once: Option<HashSet<u64, RandomState>>,
    state: RandomState,
    point: Numbers,
    comma: Numbers,
    formats: [bool; FORMATS.len()],
    days: [Option<(i64, i64)>; FORMATS.len()],
    bools: bool,
}

/// A number as files write it: digits, at most one mark, and no zeros before it that say that it is a code.
fn number(text: &str, mark: char) -> Option<Number> {
    let (minus, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, part) = digits.split_once(mark).unwrap_or((digits, ""));
    let good = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let coded = whole.len() > 1 && whole.starts_with('0');
    let empty = whole.is_empty() || digits.ends_with(mark);
    if !good(whole) || !good(part) || coded || empty || whole.len() > 19 {
        return None;
    }
    let part = part.trim_end_matches('0');
    let places = u32::try_from(part.len())
        .ok()
        .filter(|places| *places <= PLACES)?;
    let units: i128 = format!("{whole}{part}").parse().ok()?;
    let units = units * 10_i128.pow(PLACES - places);
    Some(Number {
        units: if minus { -units } else { units },
        places,
    })
}

impl Numbers {
    fn push(&mut self, text: &str, mark: char) {
        let Some(number) = number(text, mark).filter(|_| !self.failed) else {
            self.failed = true;
            return;
        };
        let (low, high) = self.range.unwrap_or((number.units, number.units));
        self.range = Some((low.min(number.units), high.max(number.units)));
        self.places = self.places.max(number.places);
        self.marked |= text.contains(mark);
    }
}

/// The next number of one digit, and of two where that is much farther, at least as far from 0; in units of any size.
fn outwards(units: i128, up: bool) -> i128 {
    if units == 0 {
        return 0;
    }
    let step = match units.unsigned_abs().ilog10() {
        // Numbers below ten units are steps themselves.
        0 => 1,
        digits => 5 * 10_i128.pow(digits - 1),
    };
    let floor = units.div_euclid(step) * step;
    if up && floor < units {
        floor + step
    } else {
        floor
    }
}

/// The same of a number of rows.
pub(super) fn outwards_rows(rows: u64) -> u64 {
    u64::try_from(outwards(rows.max(1).into(), true)).unwrap_or(u64::MAX)
}

impl Tally {
    pub(super) fn new(name: String, typed: Typed) -> Self {
        Tally {
            name,
            typed,
            cells: 0,
            missing: 0,
            placeholders: Vec::new(),
            values: Some(BTreeMap::new()),
            once: Some(HashSet::default()),
            state: RandomState::default(),
            point: Numbers::default(),
            comma: Numbers::default(),
            formats: [true; FORMATS.len()],
            days: [None; FORMATS.len()],
            bools: true,
        }
    }

    pub(super) fn push(&mut self, text: Option<&str>) {
        let Some(text) = text else {
            self.missing += 1;
            return;
        };
        if self.typed == Typed::Any && PLACEHOLDERS.contains(&text) {
            self.missing += 1;
            if !self.placeholders.iter().any(|word| word == text) {
                self.placeholders.push(text.to_owned());
            }
            return;
        }
        self.cells += 1;
        if let Some(values) = &mut self.values {
            *values.entry(text.to_owned()).or_default() += 1;
            if values.len() > MOST_VALUES {
                self.values = None;
            }
        }
        if let Some(once) = &mut self.once {
            use std::hash::BuildHasher;
            if !once.insert(self.state.hash_one(text)) || once.len() > REMEMBERED {
                self.once = None;
            }
        }
        self.point.push(text, '.');
        self.comma.push(text, ',');
        self.bools &= matches!(text, "true" | "false" | "True" | "False" | "TRUE" | "FALSE");
        for (at, format) in FORMATS.into_iter().enumerate() {
            if !self.formats[at] {
                continue;
            }
            let day = match at {
                0 => date::iso(text.as_bytes()),
                _ => date::parse(text.as_bytes(), format),
            };
            self.formats[at] = day.is_some();
            if let Some(day) = day {
                let (low, high) = self.days[at].unwrap_or((day, day));
                self.days[at] = Some((low.min(day), high.max(day)));
            }
        }
    }

    /// Whether its numbers are some by a decimal comma alone.
    pub(super) fn needs_comma(&self) -> bool {
        self.is_loose() && self.comma.marked && !self.comma.failed && self.point.failed
    }

    /// Whether its numbers are some by a decimal point alone.
    pub(super) fn needs_point(&self) -> bool {
        self.is_loose() && self.point.marked && !self.point.failed && self.comma.failed
    }

    fn is_loose(&self) -> bool {
        self.typed == Typed::Any
    }

    /// Words that it has for a missing value.
    pub(super) fn placeholders(&self) -> impl Iterator<Item = &String> {
        self.placeholders.iter()
    }

    /// What it may be.
    pub(super) fn end(self, comma: bool) -> Guess {
        let (null, unique) = (self.missing > 0, self.once.is_some() && self.cells > 0);
        let mut guesses = Vec::new();
        let what = self.what(comma, &mut guesses);
        if null {
            guesses.push("empty cells are allowed, since there are some".into());
        }
        if unique && self.cells >= MANY && matches!(what, Guessed::Integer { .. }) {
            guesses.push(
                "no number is there twice: if it names a row, it is a key, type = \"key\"".into(),
            );
        }
        Guess {
            name: self.name,
            what,
            null,
            unique,
            guesses,
        }
    }

    fn what(&self, comma: bool, guesses: &mut Vec<String>) -> Guessed {
        if self.typed == Typed::Other {
            return Guessed::Nothing("its type in the file is none of a table");
        }
        if self.cells == 0 {
            return Guessed::Nothing("it has no value to guess from");
        }
        let may = |typed| self.typed == Typed::Any || self.typed == typed;
        if self.bools && may(Typed::Bool) {
            guesses.push("true and false".into());
            return Guessed::Bool;
        }
        let numbers = if comma { &self.comma } else { &self.point };
        if let Some(range) = numbers
            .range
            .filter(|_| !numbers.failed && may(Typed::Number))
        {
            return of_numbers(range, numbers.places, guesses);
        }
        let fits: Vec<usize> = (0..FORMATS.len()).filter(|at| self.formats[*at]).collect();
        if let Some((at, (low, high))) = fits.first().and_then(|at| Some((*at, self.days[*at]?)))
            && (may(Typed::Date) || self.typed == Typed::Text)
        {
            let year = |day: i64| date::show(day)[..4].to_owned();
            guesses.push("whole years".into());
            if let [_, other, ..] = fits[..] {
                guesses.push(format!(
                    "days come before months: it may be \"{}\", too",
                    FORMATS[other]
                ));
            }
            return Guessed::Date {
                min: format!("{}-01-01", year(low)),
                max: format!("{}-12-31", year(high)),
                format: (at > 0).then_some(FORMATS[at]),
            };
        }
        match &self.values {
            Some(values) if (values.len() as u64) < self.cells => {
                let (rare, usual): (Vec<_>, Vec<_>) =
                    values.iter().partition(|(_, rows)| **rows < FEW);
                let texts = |of: Vec<(&String, &u64)>| -> Vec<String> {
                    of.into_iter().map(|(text, _)| text.clone()).collect()
                };
                guesses.push("the values that there are".into());
                if !rare.is_empty() {
                    let are = if rare.len() == 1 { "is" } else { "are" };
                    let count = rare.len();
                    guesses.push(format!("{count} of them {are} in fewer than {FEW} rows"));
                }
                Guessed::Category {
                    values: texts(usual),
                    rare: texts(rare),
                }
            }
            _ => {
                guesses.push("a key, since it has many texts".into());
                Guessed::Key
            }
        }
    }
}

/// Numbers of a range.
fn of_numbers((low, high): (i128, i128), places: u32, guesses: &mut Vec<String>) -> Guessed {
    // 0 is an end that says nothing.
    let (low, high) = (outwards(low, false).min(0), outwards(high, true));
    // Ends have the places that numbers have, or are farther out.
    let unit = 10_i128.pow(PLACES - places);
    let (low, high) = (low.div_euclid(unit), -(-high).div_euclid(unit));
    if places == 0 {
        guesses.push("the range, rounded outwards".into());
        return Guessed::Integer {
            min: low,
            max: high,
        };
    }
    guesses.push("the digits after the point".into());
    guesses.push("the range, rounded outwards".into());
    let show = |value| {
        let scale = u8::try_from(places).unwrap_or(u8::MAX);
        Scaled { value, scale }.to_string()
    };
    Guessed::Decimal {
        scale: places,
        min: show(low),
        max: show(high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(typed: Typed, cells: &[&str]) -> Guess {
        let mut tally = Tally::new("c".into(), typed);
        for cell in cells {
            tally.push(Some(*cell).filter(|cell| !cell.is_empty()));
        }
        let comma = tally.needs_comma();
        tally.end(comma)
    }

    fn range(cells: &[&str]) -> (String, String) {
        match guess(Typed::Any, cells).what {
            Guessed::Integer { min, max } => (min.to_string(), max.to_string()),
            Guessed::Decimal { min, max, .. } => (min, max),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ends_are_rounded_outwards() {
        let pair = |low: &str, high: &str| (low.to_owned(), high.to_owned());
        assert_eq!(range(&["17", "1234"]), pair("0", "1500"));
        assert_eq!(range(&["-17", "58"]), pair("-20", "60"));
        assert_eq!(range(&["-3", "-1"]), pair("-3", "-1"));
        assert_eq!(range(&["1234.56", "3"]), pair("0.00", "1500.00"));
        assert_eq!(range(&["0.07", "0.9"]), pair("0.00", "0.90"));
        assert_eq!(range(&["12,5", "7"]), pair("0.0", "15.0"));
        assert_eq!(range(&["5", "5"]), pair("0", "5"));
        assert_eq!(outwards_rows(0), 1);
        assert_eq!(
            [9, 11, 1234, 50_000].map(outwards_rows),
            [9, 15, 1500, 50_000]
        );
    }

    #[test]
    fn no_value_is_outside_of_what_was_guessed() {
        for number in (-3000..3000).map(|number| number * 37 - 5) {
            let (low, high) = (outwards(number, false), outwards(number, true));
            assert!(low <= number && number <= high, "{number}: {low} to {high}");
            assert!(
                high - low <= number.abs() / 2 + 1,
                "{number}: {low} to {high}"
            );
        }
    }

    #[test]
    fn codes_are_no_numbers() {
        for text in [
            "007", "1e5", "1.2.3", ".5", "5.", "", "-", "0x1", "1 000", "²",
        ] {
            assert!(number(text, '.').is_none(), "{text}");
        }
        assert_eq!(guess(Typed::Any, &["01067", "80331"]).what, Guessed::Key);
        assert_eq!(guess(Typed::Text, &["1067", "80331"]).what, Guessed::Key);
    }

    #[test]
    fn values_of_few_rows_are_apart() {
        let cells: Vec<&str> = ["f"; 6].into_iter().chain(["m"; 5]).chain(["x"]).collect();
        let guess = guess(Typed::Any, &cells);
        let [values, rare] =
            [vec!["f", "m"], vec!["x"]].map(|texts| texts.into_iter().map(str::to_owned).collect());
        assert_eq!(guess.what, Guessed::Category { values, rare });
        assert_eq!(
            guess.guesses,
            [
                "the values that there are",
                "1 of them is in fewer than 5 rows"
            ]
        );
    }

    #[test]
    fn formats_of_dates() {
        let format = |cells: &[&str]| {
            let guess = guess(Typed::Any, cells);
            match guess.what {
                Guessed::Date { min, max, format } => (min, max, format, guess.guesses.len()),
                other => panic!("{other:?}"),
            }
        };
        let whole = |format, guesses| ("2024-01-01".into(), "2025-12-31".into(), format, guesses);
        assert_eq!(format(&["2024-05-06", "2025-01-02"]), whole(None, 1));
        assert_eq!(
            format(&["06.05.2024", "02.01.2025"]),
            whole(Some("%d.%m.%Y"), 1)
        );
        assert_eq!(
            format(&["06/05/2024", "02/01/2025"]),
            whole(Some("%d/%m/%Y"), 2)
        );
        assert_eq!(
            format(&["06/25/2024", "02/01/2025"]),
            whole(Some("%m/%d/%Y"), 1)
        );
    }

    #[test]
    fn words_for_nothing_are_missing() {
        let guess = guess(Typed::Any, &["1", "NA", "", "3"]);
        assert!(guess.null);
        assert_eq!(guess.what, Guessed::Integer { min: 0, max: 3 });
    }
}
