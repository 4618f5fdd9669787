//! The canonical text of models.

use super::{FeatureKind, Forest, Node, Output, Split, Test, Threshold, Tree};
use crate::kind::Kind;
use crate::sexp::Sexp;
use crate::text::{decimal, kind};

/// A number of the model's places; one without places has no point.
pub(crate) fn units(of: i128, places: u32) -> Sexp {
    match places {
        0 => Sexp::word(of),
        places => decimal(of, places),
    }
}

fn threshold(of: &Threshold) -> Sexp {
    units(of.units(), of.places())
}

fn node(of: &Node, places: u32) -> Sexp {
    let split = match of {
        Node::Leaf(all) => match all.as_slice() {
            [one] => return units(*one, places),
            all => return Sexp::list("leaf", all.iter().map(|one| units(*one, places))),
        },
        Node::Split(split) => split,
    };
    let Split {
        feature,
        test,
        null,
        yes,
        no,
    } = &**split;
    let feature = Sexp::word(format_args!("#{feature}"));
    let test = match test {
        Test::AtMost(most) => Sexp::list("<=", [feature, threshold(most)]),
        Test::Below(bound) => Sexp::list("<", [feature, threshold(bound)]),
        Test::In(set) => Sexp::list(
            "in",
            [feature].into_iter().chain(set.iter().map(Sexp::word)),
        ),
    };
    let head = match null {
        None => "if",
        Some(true) => "if-or-null",
        Some(false) => "if-not-null",
    };
    Sexp::list(head, [test, node(yes, places), node(no, places)])
}

fn tree(of: &Tree, places: u32) -> Sexp {
    let to = of.to.map(Sexp::word);
    Sexp::list("tree", to.into_iter().chain([node(&of.root, places)]))
}

/// A model.
pub(crate) fn model(of: &Forest) -> Sexp {
    let parts = of.parts();
    let features = parts.features.iter().map(|feature| {
        let kind = match &feature.kind {
            FeatureKind::Number => Sexp::word("number"),
            FeatureKind::Category(values) => kind(&Kind::Category(values.clone())),
        };
        Sexp::list("feature", [Sexp::Text(feature.name.clone()), kind])
    });
    let classes = parts.classes.iter().cloned().map(Sexp::Text);
    let base = parts.base.iter().map(|base| units(*base, parts.places));
    let head = [
        Sexp::Text(parts.name.clone()),
        Sexp::Text(parts.source.clone()),
        Sexp::list("places", [Sexp::word(parts.places)]),
        Sexp::list("classes", classes),
        Sexp::list("base", base),
    ];
    let trees = parts.trees.iter().map(|of| tree(of, parts.places));
    Sexp::list("model", head.into_iter().chain(features).chain(trees))
}

/// What is asked of a model.
pub(crate) fn output(of: Output) -> Sexp {
    match of {
        Output::Value => Sexp::word("value"),
        Output::Class => Sexp::word("class"),
        Output::Score(class) => Sexp::list("score", [Sexp::word(class)]),
    }
}
