//! Reads models from the canonical text.

use super::{Feature, FeatureKind, Forest, ForestParts, Node, Split, Test, Threshold, Tree};
use crate::kind::Kind;
use crate::read::{ReadError, head, items, kind, number, quoted, tagged, unexpected, word};
use crate::sexp::Sexp;

type Result<T> = std::result::Result<T, ReadError>;

/// Units and places of a number as it is written.
fn decimal(item: &Sexp) -> Result<(i128, u32)> {
    let text = word(item)?;
    let places = text.find('.').map_or(0, |at| text.len() - at - 1);
    let units = text.replacen('.', "", 1).parse();
    let units = units.map_err(|_| unexpected(item, "number"))?;
    Ok((units, places as u32))
}

/// A number of so many places, as it is written.
pub(crate) fn units(item: &Sexp, places: u32) -> Result<i128> {
    match decimal(item)? {
        (units, found) if found == places => Ok(units),
        _ => Err(unexpected(item, "number of the model's places")),
    }
}

fn place(item: &Sexp) -> Result<u16> {
    let digits = word(item)?.strip_prefix('#');
    let digits = digits.and_then(|digits| digits.parse().ok());
    digits.ok_or_else(|| unexpected(item, "feature"))
}

fn test(item: &Sexp) -> Result<(u16, Test)> {
    let wrong = || unexpected(item, "test of a feature");
    let threshold = |item: &Sexp| {
        let (units, places) = decimal(item)?;
        Threshold::new(units, places).ok_or_else(|| unexpected(item, "threshold"))
    };
    let rest = items(item)?.get(1..).ok_or_else(wrong)?;
    Ok(match (head(item).ok_or_else(wrong)?, rest) {
        ("<=", [feature, most]) => (place(feature)?, Test::AtMost(threshold(most)?)),
        ("<", [feature, bound]) => (place(feature)?, Test::Below(threshold(bound)?)),
        ("in", [feature, set @ ..]) => {
            let set = set.iter().map(number).collect::<Result<_>>()?;
            (place(feature)?, Test::In(set))
        }
        _ => return Err(wrong()),
    })
}

/// Lists are nested no deeper than the reader of lists allows.
fn node(item: &Sexp, places: u32) -> Result<Node> {
    let wrong = || unexpected(item, "node of a tree");
    if let Sexp::Word(_) = item {
        return Ok(Node::Leaf(vec![units(item, places)?]));
    }
    let rest = items(item)?.get(1..).ok_or_else(wrong)?;
    let null = match head(item).ok_or_else(wrong)? {
        "leaf" => {
            let all = rest.iter().map(|item| units(item, places));
            return Ok(Node::Leaf(all.collect::<Result<_>>()?));
        }
        "if" => None,
        "if-or-null" => Some(true),
        "if-not-null" => Some(false),
        _ => return Err(wrong()),
    };
    let [asked, yes, no] = rest else {
        return Err(wrong());
    };
    let (feature, test) = test(asked)?;
    let (yes, no) = (node(yes, places)?, node(no, places)?);
    Ok(Node::Split(Box::new(Split {
        feature,
        test,
        null,
        yes,
        no,
    })))
}

fn tree(item: &Sexp, places: u32) -> Result<Tree> {
    let (to, root) = match tagged(item, "tree")? {
        [root] => (None, root),
        [to, root] => (Some(number(to)?), root),
        _ => return Err(unexpected(item, "tree")),
    };
    let root = node(root, places)?;
    Ok(Tree { to, root })
}

fn feature(item: &Sexp) -> Result<Feature> {
    let [name, of] = tagged(item, "feature")? else {
        return Err(unexpected(item, "feature"));
    };
    let kind = match of {
        Sexp::Word(word) if word == "number" => FeatureKind::Number,
        other => match kind(other)? {
            Kind::Category(values) => FeatureKind::Category(values),
            _ => return Err(unexpected(other, "kind of a feature")),
        },
    };
    let name = quoted(name)?;
    Ok(Feature { name, kind })
}

/// Reads a model.
pub(crate) fn model(item: &Sexp) -> Result<Forest> {
    let wrong = || unexpected(item, "model");
    let [name, source, places, classes, base, rest @ ..] = tagged(item, "model")? else {
        return Err(wrong());
    };
    let [places] = tagged(places, "places")? else {
        return Err(wrong());
    };
    let places = number(places)?;
    let classes = tagged(classes, "classes")?.iter().map(quoted);
    let base = tagged(base, "base")?.iter().map(|item| units(item, places));
    let mut parts = ForestParts {
        name: quoted(name)?,
        source: quoted(source)?,
        features: Vec::new(),
        classes: classes.collect::<Result<_>>()?,
        places,
        base: base.collect::<Result<_>>()?,
        trees: Vec::new(),
    };
    for part in rest {
        match head(part) {
            Some("feature") => parts.features.push(feature(part)?),
            _ => parts.trees.push(tree(part, places)?),
        }
    }
    Forest::new(parts).map_err(ReadError::Model)
}
