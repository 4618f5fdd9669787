//! What makes an operation fit whose operands have wide ranges.

use crate::kind::Kind;
use crate::range_error::{NAMES, Operand, Unfit, decimal};

/// A number in the text of a remedy: `units · 10^−places`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The units.
    pub units: i128,
    /// Decimal places.
    pub places: u32,
}

impl Bound {
    const fn whole(units: i128) -> Self {
        Self { units, places: 0 }
    }

    /// In units of a number of this kind.
    pub(crate) fn in_units(self, kind: &Kind) -> Option<i128> {
        let (places, _) = kind.number()?;
        let more = places.checked_sub(self.places)?;
        self.units.checked_mul(10_i128.checked_pow(more)?)
    }

    fn sql(self) -> String {
        decimal(&self.units.into(), self.places)
    }

    fn python(self) -> String {
        match self.places {
            0 => self.sql(),
            _ => format!("decimal.Decimal(\"{}\")", self.sql()),
        }
    }
}

/// What is written in the place of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// It, rounded to so many decimal places.
    Round(u32),
    /// It, or this number where it is less.
    AtLeast(Bound),
    /// It, or this number where it is more.
    AtMost(Bound),
    /// It, or the end of the interval that it is beyond.
    Between(Bound, Bound),
    /// It, or null where it is 0.
    NotZero,
}

/// What makes an operation fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// A change of an operand.
    Change {
        /// Which, from 0 on.
        operand: usize,
        /// What is written in its place.
        change: Change,
    },
    /// The operation itself, a rounding, to so many decimal places.
    Fewer(u32),
    /// At most so many rows.
    Rows(u64),
    /// Columns with narrower ranges: what is always left.
    Declare,
}

impl Remedy {
    pub(crate) const fn operand(&self) -> Option<usize> {
        match self {
            Self::Change { operand, .. } => Some(*operand),
            Self::Fewer(_) | Self::Rows(_) | Self::Declare => None,
        }
    }

    /// What to write in SQL, where operands are `x` and `y`.
    #[must_use]
    pub fn sql(&self, operands: &[Operand]) -> String {
        let (operand, change) = match self {
            Self::Change { operand, change } => (operand, change),
            Self::Fewer(places) => return format!("write round(x, {places})"),
            Self::Rows(rows) => return format!("bound the rows to {rows} in [[bound]]"),
            Self::Declare => return DECLARE.to_owned(),
        };
        let name = NAMES[(*operand).min(1)];
        let x = match operands.get(*operand).and_then(|operand| operand.rounded) {
            Some(places) if !matches!(change, Change::Round(_)) => {
                format!("round({name}, {places})")
            }
            _ => name.to_owned(),
        };
        match change {
            Change::Round(places) => format!("round({x}, {places})"),
            Change::AtLeast(low) => format!("greatest({x}, {})", low.sql()),
            Change::AtMost(high) => format!("least({x}, {})", high.sql()),
            Change::Between(low, high) => {
                format!("least(greatest({x}, {}), {})", low.sql(), high.sql())
            }
            Change::NotZero => format!("nullif({x}, 0)"),
        }
    }

    /// What to write in Python, where operands are `x` and `y`.
    #[must_use]
    pub fn python(&self, operands: &[Operand]) -> String {
        let (operand, change) = match self {
            Self::Change { operand, change } => (operand, change),
            Self::Fewer(places) => return format!("write x.round({places})"),
            Self::Rows(rows) => return format!("bound the rows by .limit_rows({rows})"),
            Self::Declare => return DECLARE.to_owned(),
        };
        let name = NAMES[(*operand).min(1)];
        let x = match operands.get(*operand).and_then(|operand| operand.rounded) {
            Some(places) if !matches!(change, Change::Round(_)) => {
                format!("{name}.round({places})")
            }
            _ => name.to_owned(),
        };
        match change {
            Change::Round(places) => format!("{x}.round({places})"),
            Change::AtLeast(low) => format!("vw.maximum({x}, {})", low.python()),
            Change::AtMost(high) => format!("vw.minimum({x}, {})", high.python()),
            Change::Between(low, high) => format!("{x}.clip({}, {})", low.python(), high.python()),
            Change::NotZero => format!("{x}.nullif(0)"),
        }
    }
}

const DECLARE: &str = "declare narrower ranges";

/// The largest number of rows that fits and is less than this; nothing if none does.
pub(crate) fn most(rows: u64, fits: &dyn Fn(u64) -> bool) -> Option<u64> {
    let found = largest(rows.into(), &|rows| fits(rows as u64));
    (found > 0).then_some(found as u64)
}

/// The largest number above 0 and below `end` that fits, where all smaller ones do; 0 if none does.
fn largest(end: i128, fits: &dyn Fn(i128) -> bool) -> i128 {
    let (mut low, mut high) = (0, end);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Decimal places to which a quotient is rounded at most by a remedy.
const QUOTIENT_PLACES: u32 = 6;

/// What helps, of what was tried.
pub(crate) fn remedies(
    operands: &[Operand],
    unfit: &Unfit,
    fits: &dyn Fn(&[Kind]) -> bool,
) -> Vec<Remedy> {
    let kinds: Vec<Kind> = operands
        .iter()
        .map(|operand| operand.kind.clone())
        .collect();
    let mut found = Vec::new();
    for (operand, kind) in kinds.iter().enumerate() {
        let helps = |change: Change| {
            let mut kinds = kinds.clone();
            let changed = change.of(kind);
            changed.is_some_and(|changed| {
                kinds[operand] = changed;
                fits(&kinds)
            })
        };
        let changes = match unfit {
            Unfit::TooWide { .. } | Unfit::Calendar => narrower(kind, &helps),
            Unfit::Places { .. } => rounder(kind, &helps).into_iter().collect(),
            Unfit::DivisorMayBeZero if operand + 1 == kinds.len() => apart(kind, true, &helps),
            Unfit::DivisorMayBeZero => Vec::new(),
            Unfit::NoValue { .. } => apart(kind, false, &helps),
        };
        found.extend(
            changes
                .into_iter()
                .map(|change| Remedy::Change { operand, change }),
        );
    }
    let public = |kind: &Kind| kind.range().is_some_and(|range| range.min() == range.max());
    if !kinds.iter().all(public) {
        found.push(Remedy::Declare);
    }
    found
}

/// The most decimal places with which a number helps.
fn rounder(kind: &Kind, helps: &dyn Fn(Change) -> bool) -> Option<Change> {
    let places = match kind {
        Kind::Decimal { places, .. } => *places,
        Kind::Ratio { .. } => QUOTIENT_PLACES + 1,
        _ => 0,
    };
    let rounded = (0..places).rev().map(Change::Round);
    rounded.into_iter().find(|change| helps(*change))
}

/// Fewer places, and the widest interval of round ends that helps.
fn narrower(kind: &Kind, helps: &dyn Fn(Change) -> bool) -> Vec<Change> {
    let mut found: Vec<Change> = rounder(kind, helps).into_iter().collect();
    let Some((places, units)) = kind.number() else {
        return found;
    };
    let Some(size) = units.magnitude() else {
        return found;
    };
    let whole = size / 10_i128.checked_pow(places).unwrap_or(i128::MAX);
    let above = |end: i128| Change::AtMost(Bound::whole(end));
    let around = |end: i128| Change::Between(Bound::whole(-end), Bound::whole(end));
    // The widest interval that helps, then its first two digits, so that it is one that people write.
    let widest = |end: &dyn Fn(i128) -> Change| {
        let low = largest(whole, &|middle| helps(end(middle)));
        let unit = 10_i128.pow(low.max(1).ilog10().saturating_sub(1));
        let change = end(low / unit * unit);
        (low > 0 && helps(change)).then_some(change)
    };
    let below_zero = units.min() < 0;
    let cut = widest(&above).or_else(|| below_zero.then(|| widest(&around)).flatten());
    found.extend(cut);
    found
}

/// What keeps a number from 0, or from what is below it.
fn apart(kind: &Kind, divisor: bool, helps: &dyn Fn(Change) -> bool) -> Vec<Change> {
    let Some((places, units)) = kind.number() else {
        let round = Change::NotZero;
        return if divisor && helps(round) {
            vec![round]
        } else {
            Vec::new()
        };
    };
    let unit = |units| Bound { units, places };
    let mut tried = Vec::new();
    if divisor || units.min() == 0 {
        tried.push(Change::NotZero);
    }
    if units.min() < 0 && units.max() >= 0 {
        tried.push(Change::AtLeast(Bound::whole(0)));
    }
    if units.max() >= 1 {
        tried.push(Change::AtLeast(unit(1)));
    }
    if units.min() <= -1 {
        tried.push(Change::AtMost(unit(-1)));
    }
    let mut found: Vec<Change> = tried.into_iter().filter(|change| helps(*change)).collect();
    // A function that has a value for 0 is cut there, and not a unit above.
    if found.contains(&Change::AtLeast(Bound::whole(0))) {
        found.retain(|change| *change != Change::AtLeast(unit(1)));
    }
    found
}
