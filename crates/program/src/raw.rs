//! The job file as it is written, before anything is checked.

mod tables;

use std::{collections::BTreeMap, fmt, path::PathBuf};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Unexpected, Visitor},
};
use toml::Spanned;

use crate::error::{Fault, JobProblem};

pub(crate) use tables::{
    CAPACITY, RawApply, RawBound, RawCapacity, RawCuts, RawFit, RawKind, RawNotation, RawOpenSize,
    RawQueries, RawQuery, RawTable, RawTableColumn,
};

/// The only field that every version has.
#[derive(Deserialize)]
struct RawVersion {
    version: Option<Spanned<i64>>,
}

/// Every kind of job; which sections belong to which is checked later, so that the message can say so.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawJob {
    #[expect(dead_code, reason = "checked before the other fields are read")]
    version: i64,
    pub(crate) kind: Spanned<String>,
    pub(crate) name: Spanned<String>,
    pub(crate) owners: Vec<Spanned<String>>,
    pub(crate) parties: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(crate) recipients: Vec<Spanned<String>>,
    #[serde(default)]
    pub(crate) durable: bool,
    pub(crate) protocol: Option<Spanned<String>>,
    pub(crate) adversary: Option<Spanned<String>>,
    pub(crate) delivery: Option<Spanned<String>>,
    pub(crate) tables: Option<Spanned<String>>,
    pub(crate) technique: Option<Spanned<String>>,
    pub(crate) statistical: Option<Spanned<String>>,
    pub(crate) ot: Option<Spanned<String>>,
    pub(crate) schedule: Option<Spanned<String>>,
    pub(crate) chunk_rows: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) column: Vec<Spanned<RawColumn>>,
    #[serde(default)]
    pub(crate) block: Vec<Spanned<RawBlock>>,
    #[serde(default)]
    pub(crate) analysis: Vec<Spanned<RawAnalysis>>,
    /// Columns that are made of others, by name.
    #[serde(default)]
    pub(crate) derived: BTreeMap<Spanned<String>, Spanned<String>>,
    /// The most numbers that a job with analyses opens.
    pub(crate) most_opened: Option<Spanned<u64>>,
    pub(crate) keep: Option<Spanned<RawKeep>>,
    pub(crate) reshare: Option<Spanned<RawReshare>>,
    pub(crate) circuit: Option<Spanned<RawCircuit>>,
    #[serde(default)]
    pub(crate) input: Vec<Spanned<RawInput>>,
    #[serde(default)]
    pub(crate) output: Vec<Spanned<RawOutput>>,
    #[serde(default)]
    pub(crate) table: Vec<Spanned<RawTable>>,
    #[serde(default)]
    pub(crate) query: RawQueries,
    #[serde(default)]
    pub(crate) bound: Vec<Spanned<RawBound>>,
    pub(crate) salt: Option<Spanned<String>>,
    pub(crate) intersection: Option<Spanned<RawIntersection>>,
    /// Models that queries apply, by name.
    #[serde(default)]
    pub(crate) model: Models,
    /// Functions that queries call, by name.
    #[serde(default)]
    pub(crate) function: BTreeMap<Spanned<String>, Spanned<RawFunction>>,
}

/// What is opened of the keys that two tables have in common, and to whom.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawIntersection {
    /// What is opened.
    pub(crate) opens: Option<Spanned<String>>,
    pub(crate) to: Spanned<String>,
    /// The fewest keys of which a number or a sum is opened.
    pub(crate) min_keys: Option<Spanned<i64>>,
    pub(crate) file: Option<Spanned<String>>,
}

/// A function that is given by its values.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFunction {
    /// The first argument.
    pub(crate) first: Option<Spanned<RawNumber>>,
    /// How far arguments are apart.
    pub(crate) step: Option<Spanned<RawNumber>>,
    /// The texts of a category, in the place of numbers.
    pub(crate) of: Option<Vec<Spanned<String>>>,
    /// Decimal places of the values.
    pub(crate) scale: Option<Spanned<u8>>,
    pub(crate) values: Vec<Spanned<RawNumber>>,
}

/// Models by name.
pub(crate) type Models = BTreeMap<Spanned<String>, Spanned<RawModel>>;

/// A model that was trained elsewhere, in a file beside the job's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawModel {
    pub(crate) file: Spanned<PathBuf>,
    /// The table of the weights that an owner brings.
    pub(crate) weights: Option<Spanned<String>>,
}

/// A number that may be written as a string, so that decimals stay exact.
pub(crate) enum RawNumber {
    Integer(i64),
    Float(f64),
    Text(String),
    /// A date without quotes, which is a value of its own in TOML.
    Date,
}

impl<'de> Deserialize<'de> for RawNumber {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyNumber)
    }
}

struct AnyNumber;

impl<'de> Visitor<'de> for AnyNumber {
    type Value = RawNumber;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_i64<E>(self, value: i64) -> Result<RawNumber, E> {
        Ok(RawNumber::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<RawNumber, E> {
        Ok(i64::try_from(value).map_or(RawNumber::Float(value as f64), RawNumber::Integer))
    }

    fn visit_i128<E>(self, value: i128) -> Result<RawNumber, E> {
        Ok(i64::try_from(value).map_or(RawNumber::Float(value as f64), RawNumber::Integer))
    }

    fn visit_u128<E>(self, value: u128) -> Result<RawNumber, E> {
        Ok(i64::try_from(value).map_or(RawNumber::Float(value as f64), RawNumber::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<RawNumber, E> {
        Ok(RawNumber::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<RawNumber, E> {
        Ok(RawNumber::Text(value.to_owned()))
    }

    /// The reader's way to say that something is a date.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawNumber, A::Error> {
        match map.next_key::<String>()? {
            Some(key) if key.starts_with("$__toml_private") => {
                map.next_value::<IgnoredAny>()?;
                Ok(RawNumber::Date)
            }
            _ => Err(A::Error::invalid_type(Unexpected::Map, &self)),
        }
    }
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RawType {
    Integer,
    Decimal,
    Date,
    Category,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RawMissing {
    Refuse,
    DropRow,
    DropPair,
    Zero,
    /// The former word for `drop-pair`, read so that the message can say so.
    Skip,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawColumn {
    pub(crate) name: Spanned<String>,
    #[serde(rename = "type")]
    pub(crate) kind: RawType,
    pub(crate) scale: Option<Spanned<u8>>,
    pub(crate) min: Option<Spanned<RawNumber>>,
    pub(crate) max: Option<Spanned<RawNumber>>,
    pub(crate) values: Option<Vec<Spanned<String>>>,
    pub(crate) unit: Option<Spanned<String>>,
    pub(crate) decimal: Option<Spanned<String>>,
    pub(crate) thousands: Option<Spanned<String>>,
    pub(crate) format: Option<Spanned<String>>,
    pub(crate) missing: Option<Spanned<RawMissing>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBlock {
    pub(crate) name: Spanned<String>,
    pub(crate) rows: Spanned<RawCapacity>,
    /// The dataset that all columns are loaded from.
    pub(crate) stored: Option<Spanned<String>>,
    /// Columns by owner.
    #[serde(default)]
    pub(crate) holds: BTreeMap<Spanned<String>, Vec<Spanned<String>>>,
    /// Data files by owner.
    #[serde(default)]
    pub(crate) files: BTreeMap<Spanned<String>, Spanned<PathBuf>>,
    pub(crate) delimiter: Option<Spanned<RawDelimiter>>,
    /// How files write their cells, by owner.
    #[serde(default)]
    pub(crate) written: BTreeMap<Spanned<String>, Spanned<RawNotation>>,
    pub(crate) align: Option<Spanned<RawAlign>>,
    pub(crate) order: Option<Spanned<String>>,
}

/// All columns, kept as shares at the parties.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawKeep {
    #[serde(rename = "as")]
    pub(crate) name: Spanned<String>,
    /// Bits of an element.
    pub(crate) ring: Option<Spanned<u16>>,
}

/// A dataset that goes to other parties.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawReshare {
    pub(crate) dataset: Spanned<String>,
    /// Its name at the new parties.
    #[serde(rename = "as")]
    pub(crate) name: Option<Spanned<String>>,
    /// All digits of the hash of the plan that made it.
    pub(crate) plan: Spanned<String>,
    /// Bits of an element.
    pub(crate) ring: Spanned<u16>,
    pub(crate) schema: Spanned<String>,
    pub(crate) port: Vec<RawPort>,
    pub(crate) block: Vec<RawRows>,
}

/// A port of a dataset.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPort {
    pub(crate) name: Spanned<String>,
    /// Elements in each row.
    pub(crate) width: Spanned<u32>,
}

/// A block of a dataset.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawRows {
    pub(crate) name: Spanned<String>,
    pub(crate) rows: Spanned<u64>,
}

/// Of all files of a block, or by owner.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum RawDelimiter {
    All(String),
    Each(BTreeMap<String, String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAlign {
    pub(crate) column: Spanned<String>,
    pub(crate) every: Spanned<u32>,
    pub(crate) duplicates: Option<Spanned<String>>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RawStatistic {
    Count,
    Sum,
    Mean,
    Ratio,
    MeanOnly,
    Min,
    Max,
    Median,
    Quantiles,
    Histogram,
    Variance,
    Covariance,
    Correlation,
    Regression,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum RawNames {
    One(String),
    Several(Vec<String>),
}

impl RawNames {
    pub(crate) fn as_slice(&self) -> &[String] {
        match self {
            RawNames::One(name) => std::slice::from_ref(name),
            RawNames::Several(names) => names,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAnalysis {
    pub(crate) name: Spanned<String>,
    pub(crate) kind: RawStatistic,
    pub(crate) of: Option<Spanned<RawNames>>,
    pub(crate) on: Option<Spanned<RawNames>>,
    pub(crate) by: Option<Spanned<RawNames>>,
    pub(crate) min_count: Option<Spanned<u64>>,
    pub(crate) confidence: Option<Spanned<RawNumber>>,
    pub(crate) decimals: Option<Spanned<u8>>,
    /// The fractions of quantiles.
    pub(crate) at: Option<Spanned<Vec<Spanned<RawNumber>>>>,
    /// Where each bin of a histogram but the first begins.
    pub(crate) bins: Option<Spanned<Vec<Spanned<RawNumber>>>>,
    /// What stands behind FROM, or tables whose rows are stacked.
    pub(crate) from: Option<Spanned<RawNames>>,
    #[serde(rename = "where")]
    pub(crate) condition: Option<Spanned<String>>,
    pub(crate) having: Option<Spanned<String>>,
    pub(crate) top: Option<Spanned<RawTop>>,
    pub(crate) to: Spanned<RawNames>,
}

/// The groups that are shown: so many, by an aggregate.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTop {
    pub(crate) groups: Spanned<u32>,
    pub(crate) by: Spanned<String>,
    pub(crate) order: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCircuit {
    pub(crate) make: Option<Spanned<String>>,
    pub(crate) file: Option<Spanned<PathBuf>>,
    pub(crate) rows: Option<Spanned<u64>>,
    pub(crate) cycles: Option<Spanned<u64>>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RawPer {
    Row,
    Job,
    Cycle,
}

/// Of which cycles an output is.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RawOf {
    Cycle,
    Last,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RawFormat {
    Hex,
    Binary,
    Csv,
    Counter,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RawPad {
    None,
    Zero,
    Pkcs7,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RawCombine {
    Xor,
    Sum,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawInput {
    pub(crate) port: Spanned<String>,
    pub(crate) owner: Spanned<String>,
    pub(crate) per: Option<RawPer>,
    pub(crate) combine: Option<RawCombine>,
    pub(crate) format: Spanned<RawFormat>,
    pub(crate) file: Option<Spanned<PathBuf>>,
    pub(crate) pad: Option<RawPad>,
    pub(crate) column: Option<String>,
    pub(crate) start: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawOutput {
    pub(crate) port: Spanned<String>,
    pub(crate) of: Option<RawOf>,
    pub(crate) to: Spanned<String>,
    pub(crate) format: Spanned<RawFormat>,
    pub(crate) file: Spanned<PathBuf>,
    pub(crate) bytes: Option<Spanned<u64>>,
    pub(crate) like: Option<Spanned<String>>,
    pub(crate) column: Option<String>,
    pub(crate) signed: Option<bool>,
}

/// Reads the text; the version first, because a later version may have other fields.
pub(crate) fn read(text: &str) -> Result<RawJob, Fault> {
    let head: RawVersion = toml::from_str(text).map_err(|error| Fault::of(&error))?;
    match head.version {
        Some(version) if *version.get_ref() != 1 => Err(Fault::new(
            version.span(),
            JobProblem::Version(*version.get_ref()),
        )),
        _ => toml::from_str(text).map_err(|error| Fault::of(&error)),
    }
}
