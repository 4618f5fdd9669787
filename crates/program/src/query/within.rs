//! Whether the columns of one result are within those of another: what a contract of a function asks.

use veil_relation::{Field, Kind, Range, Type};

use super::Queries;
use crate::date;
use crate::number::Scaled;

/// A type in words, with its range.
fn words(ty: &Type) -> String {
    let null = if ty.nullable { ", or missing" } else { "" };
    let decimal = |value: i128, places: u32| {
        let scale = u8::try_from(places).unwrap_or(u8::MAX);
        Scaled { value, scale }.to_string()
    };
    let day = |day: i128| date::show(i64::try_from(day).unwrap_or(i64::MAX));
    match &ty.kind {
        Kind::Integer(range) => format!("{} to {}{null}", range.min(), range.max()),
        Kind::Decimal { places, units } => format!(
            "{} to {}{null}",
            decimal(units.min(), *places),
            decimal(units.max(), *places)
        ),
        Kind::Date(days) => format!("{} to {}{null}", day(days.min()), day(days.max())),
        kind => format!("{kind}{null}"),
    }
}

const fn within(given: Range, contract: Range) -> bool {
    contract.min() <= given.min() && given.max() <= contract.max()
}

/// A range in units of smaller places.
fn scaled(range: Range, by: u32) -> Option<(i128, i128)> {
    let unit = 10_i128.checked_pow(by)?;
    Some((
        range.min().checked_mul(unit)?,
        range.max().checked_mul(unit)?,
    ))
}

/// Whether each value of a type is one of a contract.
fn is_within(given: &Type, contract: &Type) -> bool {
    let number = |range: Range, from: u32, to: u32, units: Range| {
        let by = to.checked_sub(from);
        let ends = by.and_then(|by| scaled(range, by));
        ends.is_some_and(|(low, high)| units.min() <= low && high <= units.max())
    };
    let kind = match (&given.kind, &contract.kind) {
        (Kind::Integer(a), Kind::Integer(b)) | (Kind::Date(a), Kind::Date(b)) => within(*a, *b),
        (Kind::Integer(a), Kind::Decimal { places, units }) => number(*a, 0, *places, *units),
        (
            Kind::Decimal {
                places: from,
                units: a,
            },
            Kind::Decimal { places, units },
        ) => number(*a, *from, *places, *units),
        (Kind::Category(a), Kind::Category(b)) => {
            a.texts().iter().all(|text| b.texts().contains(text))
        }
        (Kind::Bool, Kind::Bool) => true,
        _ => false,
    };
    kind && (contract.nullable || !given.nullable)
}

impl Queries {
    /// The columns of what a query opens, by its name.
    fn fields(&self, query: &str) -> Option<&[Field]> {
        let mut results = self.physical().results.iter();
        let found = results.find(|ports| ports.step == query);
        found.map(|ports| &ports.fields[..])
    }

    /// Which columns of a query may have values that the columns at the same places of another have not: where, what they may have, and what they are
    /// to have. Nothing if one of the queries opens nothing, or they have not as many columns.
    pub fn outside(&self, given: &str, contract: &str) -> Option<Vec<(usize, String, String)>> {
        let (given, contract) = (self.fields(given)?, self.fields(contract)?);
        if given.len() != contract.len() {
            return None;
        }
        let pairs = given.iter().zip(contract).enumerate();
        let outside = pairs.filter(|(_, (given, contract))| !is_within(&given.ty, &contract.ty));
        let words =
            outside.map(|(at, (given, contract))| (at, words(&given.ty), words(&contract.ty)));
        Some(words.collect())
    }
}
