//! Models of trees over one row: each tree is walked from its root.

use num_bigint::BigInt;

use super::cell::Cell;
use crate::forest::{FeatureKind, Forest, Node, Output, Test, Threshold};
use crate::kind::{Kind, Type, Value};

/// Whether `x · 10^−places` is less than a threshold, or not above it.
fn below(x: i128, places: u32, of: &Threshold, or_equal: bool) -> bool {
    let left = BigInt::from(x) * BigInt::from(10).pow(of.places());
    let right = BigInt::from(of.units()) * BigInt::from(10).pow(places);
    if or_equal {
        left <= right
    } else {
        left < right
    }
}

/// The answer to what a split asks of a cell that is not null.
fn answer(model: &Forest, feature: u16, test: &Test, (value, ty): (Value, &Type)) -> bool {
    let places = match ty.kind {
        Kind::Decimal { places, .. } => places,
        _ => 0,
    };
    let number = match value {
        Value::Number(number) => number,
        Value::Bool(bit) => bit.into(),
        _ => 0,
    };
    match test {
        Test::AtMost(most) => below(number, places, most, true),
        Test::Below(bound) => below(number, places, bound, false),
        Test::In(set) => {
            let known = match &model.parts().features[usize::from(feature)].kind {
                FeatureKind::Category(known) => known,
                FeatureKind::Number => return false,
            };
            let Kind::Category(values) = &ty.kind else {
                return false;
            };
            let text = &values.texts()[number as usize];
            set.iter()
                .any(|at| known.texts()[usize::from(*at)] == *text)
        }
    }
}

/// What a model gives for a row.
pub(super) fn predicted(model: &Forest, output: Output, row: &[(Value, Type)]) -> Cell {
    let null = |(value, _): &(Value, Type)| *value == Value::Null;
    if !model.tracks_nulls() && row.iter().any(null) {
        return Cell::NULL;
    }
    let parts = model.parts();
    let mut scores = parts.base.clone();
    for tree in &parts.trees {
        let mut at = &tree.root;
        let leaf = loop {
            match at {
                Node::Leaf(units) => break units,
                Node::Split(split) => {
                    let (value, ty) = &row[usize::from(split.feature)];
                    let yes = match (value, split.null) {
                        (Value::Null, Some(null)) => null,
                        _ => answer(model, split.feature, &split.test, (*value, ty)),
                    };
                    at = if yes { &split.yes } else { &split.no };
                }
            }
        };
        let first = tree.to.map_or(0, usize::from);
        for (score, units) in scores[first..].iter_mut().zip(leaf) {
            *score += units;
        }
    }
    match output {
        Output::Value => Cell {
            value: Value::Number(scores[0]),
            places: parts.places,
        },
        Output::Score(class) => Cell {
            value: Value::Number(scores[usize::from(class)]),
            places: parts.places,
        },
        Output::Class => {
            let highest = scores.iter().max().copied().unwrap_or_default();
            let first = scores.iter().position(|score| *score == highest);
            let index = model.class_indices()[first.unwrap_or_default()];
            Cell {
                value: Value::Number(index.into()),
                places: 0,
            }
        }
    }
}
