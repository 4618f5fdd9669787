//! Files of models: decision trees in JSON.
//!
//! The grammar is closed, numbers are decimals in quotes, and nothing is rounded.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use toml::Spanned;
use veil_relation::forest::{
    Feature, FeatureKind, ForestParts, Node, Split, Test, Threshold, Tree,
};
use veil_relation::{Forest, Values};

use crate::error::{Fault, JobProblem};
use crate::load::JobFiles;
use crate::raw::{RawJob, RawModel};

/// Bytes of the file of a model: what goes with a proposal.
const LONGEST: u64 = 12 << 20;

/// What a file says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawForest {
    version: u32,
    kind: String,
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

/// Units and places of a decimal as it is written: digits, with a point between them or without.
fn decimal(text: &str) -> Result<(i128, u32), String> {
    let wrong = || {
        let shown: String = text.chars().take(50).collect();
        format!("`{shown}` is no decimal number of at most 38 digits: write it as \"-41.5\"")
    };
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let all = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !all(whole) || !all(part) || text.len() > 64 {
        return Err(wrong());
    }
    let places = digits.split_once('.').map_or(0, |(_, part)| part.len());
    let units = text.replacen('.', "", 1).parse().map_err(|_| wrong())?;
    Ok((units, places as u32))
}

/// A number in units of the model.
fn units(text: &str, places: u32) -> Result<i128, String> {
    let (units, found) = decimal(text)?;
    let more = places.checked_sub(found).ok_or_else(|| {
        format!("`{text}` has more than the {places} decimal places of the model; it is rounded where the file is written, and not here")
    })?;
    let power = 10_i128.checked_pow(more);
    let units = power.and_then(|power| units.checked_mul(power));
    units.ok_or_else(|| format!("`{text}` does not fit 128 bits"))
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
pub(crate) fn read(name: &str, text: &[u8]) -> Result<Forest, String> {
    let raw: RawForest = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    if (raw.version, raw.kind.as_str()) != (1, "trees") {
        return Err("it is no model of version 1 and of kind \"trees\"".into());
    }
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

/// The bytes of a model's file, no more than one may have.
fn bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn model(name: &str, raw: &Spanned<RawModel>, files: JobFiles<'_>) -> Result<Forest, Fault> {
    let file = &raw.get_ref().file;
    let shown = file.get_ref().display().to_string();
    let wrong = |reason: String| {
        let (name, file_name) = (name.to_owned(), shown.clone());
        Fault::new(
            file.span(),
            JobProblem::Model {
                name,
                file: file_name,
                reason,
            },
        )
    };
    let text = match (files.beside(&shown), files) {
        (Some(text), _) => text.to_vec(),
        (None, JobFiles::Sent(_)) => {
            return Err(Fault::new(file.span(), JobProblem::NotSent(shown)));
        }
        (None, JobFiles::Folder(folder) | JobFiles::With(folder, _)) => {
            bytes(&folder.join(file.get_ref())).map_err(|error| wrong(error.to_string()))?
        }
    };
    if text.len() as u64 > LONGEST {
        return Err(wrong(format!("it has more than {} MiB", LONGEST >> 20)));
    }
    read(name, &text).map_err(wrong)
}

/// The models of a job.
pub(super) fn models(raw: &RawJob, files: JobFiles<'_>) -> Result<Vec<Forest>, Fault> {
    let all = raw.model.iter();
    all.map(|(name, raw)| {
        crate::roles::check_name("model", name)?;
        model(name.get_ref(), raw, files)
    })
    .collect()
}
