//! Files of models: decision trees in JSON.
//!
//! The grammar is closed, numbers are decimals in quotes, and nothing is rounded.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use veil_relation::forest::{
    Feature, FeatureKind, ForestParts, Node, Split, Test, Threshold, Tree,
};
use veil_relation::{Forest, Values};

use super::decimal::{decimal, units};

/// What a file says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawForest {
    #[serde(rename = "version")]
    _version: u32,
    #[serde(rename = "kind")]
    _kind: String,
    source: String,
    places: u32,
    features: Vec<RawFeature>,
    #[serde(default)]
    classes: Vec<String>,
    base: Option<Vec<String>>,
    trees: Vec<RawTree>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFeature {
    name: String,
    values: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTree {
    class: Option<String>,
    root: RawNode,
}

enum RawNode {
    Leaf(Vec<String>),
    Split(Box<RawSplit>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSplit {
    #[serde(rename = "if")]
    test: (String, String, RawValue),
    yes: RawNode,
    no: RawNode,
    null: Option<RawSide>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawValue {
    Number(String),
    Set(Vec<String>),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawSide {
    Yes,
    No,
}

impl<'de> Deserialize<'de> for RawNode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyNode)
    }
}

struct AnyNode;

impl<'de> Visitor<'de> for AnyNode {
    type Value = RawNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node: a number in quotes, a list of them, or a split")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RawNode, E> {
        Ok(RawNode::Leaf(vec![text.to_owned()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RawNode, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = list.next_element()? {
            all.push(one);
        }
        Ok(RawNode::Leaf(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawNode, A::Error> {
        let split = serde::de::value::MapAccessDeserializer::new(map);
        RawSplit::deserialize(split).map(|split| RawNode::Split(Box::new(split)))
    }
}

/// What the parts of a file refer to.
struct Names {
    features: Vec<Feature>,
    places: u32,
}

impl Names {
    fn split(&self, raw: RawSplit) -> Result<Split, String> {
        let (name, sign, value) = raw.test;
        let found = self
            .features
            .iter()
            .position(|feature| feature.name == name);
        let at = found.ok_or_else(|| format!("a split is by `{name}`, which is no feature"))?;
        let threshold = |value: &str| {
            let (units, places) = decimal(value)?;
            let threshold = Threshold::new(units, places);
            threshold
                .ok_or_else(|| format!("the threshold `{value}` has more than 30 decimal places"))
        };
        let test = match (sign.as_str(), value, &self.features[at].kind) {
            ("<=", RawValue::Number(value), FeatureKind::Number) => {
                Test::AtMost(threshold(&value)?)
            }
            ("<", RawValue::Number(value), FeatureKind::Number) => Test::Below(threshold(&value)?),
            ("in", RawValue::Set(texts), FeatureKind::Category(values)) => {
                let index = |text: &String| {
                    let index = values.index(text);
                    index.ok_or_else(|| format!("`{text}` is no value of `{name}`"))
                };
                let mut set = texts.iter().map(index).collect::<Result<Vec<_>, _>>()?;
                set.sort_unstable();
                Test::In(set)
            }
            _ => {
                return Err(format!(
                    "a split is `\"if\": [\"{name}\", \"<=\", \"41.5\"]`, or `<`, by a number, and `[\"{name}\", \"in\", [\"a\", \"b\"]]` by a category"
                ));
            }
        };
        Ok(Split {
            feature: at as u16,
            test,
            null: raw.null.map(|side| matches!(side, RawSide::Yes)),
            yes: self.node(raw.yes)?,
            no: self.node(raw.no)?,
        })
    }

    fn node(&self, raw: RawNode) -> Result<Node, String> {
        match raw {
            RawNode::Leaf(all) => {
                let all = all.iter().map(|one| units(one, self.places));
                Ok(Node::Leaf(all.collect::<Result<_, _>>()?))
            }
            RawNode::Split(split) => Ok(Node::Split(Box::new(self.split(*split)?))),
        }
    }
}

/// Reads the text of a file.
pub(super) fn read(name: &str, text: &[u8]) -> Result<Forest, String> {
    let raw: RawForest = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if raw.features.len() > veil_relation::forest::MOST_FEATURES {
        return Err(format!(
            "a model has at most {} features",
            veil_relation::forest::MOST_FEATURES
        ));
    }
    let feature = |raw: RawFeature| {
        let kind = match raw.values {
            None => FeatureKind::Number,
            Some(texts) => FeatureKind::Category(Values::new(texts).ok_or_else(|| {
                format!(
                    "the values of `{}` are different texts, at least one",
                    raw.name
                )
            })?),
        };
        Ok(Feature {
            name: raw.name,
            kind,
        })
    };
    let features = raw
        .features
        .into_iter()
        .map(feature)
        .collect::<Result<_, String>>()?;
    let places = raw.places;
    let names = Names { features, places };
    let tree = |tree: RawTree| {
        let class = |class: String| {
            let found = raw.classes.iter().position(|known| *known == class);
            let found = found.and_then(|at| u16::try_from(at).ok());
            found.ok_or_else(|| format!("a tree adds to `{class}`, which is no class"))
        };
        let to = tree.class.map(class).transpose()?;
        Ok(Tree {
            to,
            root: names.node(tree.root)?,
        })
    };
    let trees = raw
        .trees
        .into_iter()
        .map(tree)
        .collect::<Result<_, String>>()?;
    let base = match raw.base {
        Some(base) => base
            .iter()
            .map(|one| units(one, places))
            .collect::<Result<_, _>>()?,
        None => vec![0; raw.classes.len().max(1)],
    };
    let parts = ForestParts {
        name: name.to_owned(),
        source: raw.source,
        features: names.features,
        classes: raw.classes,
        places,
        base,
        trees,
    };
    Forest::new(parts).map_err(|error| error.to_string())
}
