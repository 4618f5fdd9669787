//! Tables of a job, the queries over them, and what these fit and apply.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use toml::Spanned;

use super::{RawNames, RawNumber};

/// A table of an owner.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTable {
    pub(crate) name: Spanned<String>,
    pub(crate) owner: Option<Spanned<String>>,
    /// The dataset that parties load it from.
    pub(crate) stored: Option<Spanned<String>>,
    pub(crate) rows: Spanned<RawCapacity>,
    /// The opened size of the dataset.
    pub(crate) opened_size: Option<Spanned<i64>>,
    /// The first rows of the dataset that are loaded.
    pub(crate) first_rows: Option<Spanned<i64>>,
    #[serde(default)]
    pub(crate) sorted_by: Vec<Spanned<String>>,
    #[serde(default)]
    pub(crate) unique: Vec<Spanned<Vec<Spanned<String>>>>,
    pub(crate) column: Vec<Spanned<RawTableColumn>>,
    pub(crate) file: Option<Spanned<PathBuf>>,
    pub(crate) delimiter: Option<Spanned<String>>,
    pub(crate) written: Option<Spanned<RawNotation>>,
}

/// How a file writes its cells.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawNotation {
    pub(crate) decimal: Option<Spanned<String>>,
    pub(crate) thousands: Option<Spanned<String>>,
    pub(crate) dates: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) missing: Vec<Spanned<String>>,
    #[serde(default)]
    pub(crate) round: bool,
}

/// Rows of a table or a block: a number, or a bound.
pub(crate) enum RawCapacity {
    Exact(i64),
    UpTo { up_to: i64, bucket: Option<String> },
}

impl<'de> Deserialize<'de> for RawCapacity {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyCapacity)
    }
}

/// Words of the TOML reader where it expects a [`RawCapacity`].
pub(crate) const CAPACITY: &str = "a number of rows, or { up_to = … }";

struct AnyCapacity;

impl<'de> Visitor<'de> for AnyCapacity {
    type Value = RawCapacity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CAPACITY)
    }

    fn visit_i64<E>(self, value: i64) -> Result<RawCapacity, E> {
        Ok(RawCapacity::Exact(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<RawCapacity, E> {
        Ok(RawCapacity::Exact(i64::try_from(value).unwrap_or(i64::MAX)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawCapacity, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Padded {
            up_to: i64,
            bucket: Option<String>,
        }
        let Padded { up_to, bucket } =
            Padded::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        Ok(RawCapacity::UpTo { up_to, bucket })
    }
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RawKind {
    Integer,
    Decimal,
    Date,
    Category,
    Bool,
    Key,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTableColumn {
    pub(crate) name: Spanned<String>,
    #[serde(rename = "type")]
    pub(crate) kind: RawKind,
    /// The columns of the file that it is read from.
    pub(crate) of: Option<Spanned<RawNames>>,
    pub(crate) scale: Option<Spanned<u8>>,
    pub(crate) min: Option<Spanned<RawNumber>>,
    pub(crate) max: Option<Spanned<RawNumber>>,
    pub(crate) values: Option<Vec<Spanned<String>>>,
    pub(crate) bits: Option<Spanned<u16>>,
    #[serde(default)]
    pub(crate) null: bool,
    pub(crate) may: Option<Vec<Spanned<String>>>,
    pub(crate) reveal: Option<Spanned<String>>,
    pub(crate) decimal: Option<Spanned<String>>,
    pub(crate) thousands: Option<Spanned<String>>,
    pub(crate) format: Option<Spanned<String>>,
}

/// `[query]`, or several `[[query]]`.
#[derive(Default)]
pub(crate) struct RawQueries(pub(crate) Vec<RawQuery>);

impl<'de> Deserialize<'de> for RawQueries {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyQueries)
    }
}

struct AnyQueries;

impl<'de> Visitor<'de> for AnyQueries {
    type Value = RawQueries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("struct RawQuery")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawQueries, A::Error> {
        let one = RawQuery::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        Ok(RawQueries(vec![one]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawQueries, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = seq.next_element()? {
            all.push(one);
        }
        Ok(RawQueries(all))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawQuery {
    pub(crate) name: Spanned<String>,
    pub(crate) sql: Spanned<String>,
    pub(crate) to: Option<Spanned<String>>,
    /// The dataset as which the parties keep it.
    pub(crate) keep: Option<Spanned<String>>,
    /// What is opened of how many rows of it count.
    pub(crate) open_size: Option<Spanned<RawOpenSize>>,
    pub(crate) min_count: Option<Spanned<u32>>,
    pub(crate) file: Option<Spanned<RawNames>>,
    /// The model that is fitted to its rows.
    pub(crate) fit: Option<Spanned<RawFit>>,
    /// The network that is applied to its rows.
    pub(crate) apply: Option<Spanned<RawApply>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawApply {
    pub(crate) model: Spanned<String>,
    pub(crate) places: Option<Spanned<i64>>,
    pub(crate) scores: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFit {
    pub(crate) family: Spanned<String>,
    pub(crate) target: Option<Spanned<String>>,
    /// How many components.
    pub(crate) components: Option<Spanned<u32>>,
    /// The first centres of clusters.
    pub(crate) start: Option<Vec<Spanned<Vec<Spanned<RawNumber>>>>>,
    /// Levels of splits of a tree.
    pub(crate) depth: Option<Spanned<u32>>,
    /// What columns of numbers are compared with in a tree.
    pub(crate) cuts: Option<Spanned<BTreeMap<Spanned<String>, Spanned<RawCuts>>>>,
    pub(crate) ridge: Option<Spanned<String>>,
    pub(crate) steps: Option<Spanned<u32>>,
    /// How a regression is fitted.
    pub(crate) method: Option<Spanned<String>>,
    /// Of gradient descent: rows of a batch, how often all are looked at, and how a batch moves coefficients.
    pub(crate) batch: Option<Spanned<u32>>,
    pub(crate) epochs: Option<Spanned<u32>>,
    pub(crate) rate: Option<Spanned<String>>,
    pub(crate) momentum: Option<Spanned<String>>,
    pub(crate) limit: Option<Spanned<u32>>,
    pub(crate) places: Option<Spanned<u32>>,
}

/// How many cuts, or which.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "cuts are how many, or a list of numbers, of which decimals are in quotes"
)]
pub(crate) enum RawCuts {
    Even(i64),
    At(Vec<RawNumber>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawOpenSize {
    pub(crate) round_up_to: Option<Spanned<i64>>,
    pub(crate) bucket: Option<Spanned<String>>,
    pub(crate) why: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBound {
    pub(crate) of: Spanned<String>,
    pub(crate) rows: Spanned<u32>,
    pub(crate) overflow: Spanned<String>,
}
