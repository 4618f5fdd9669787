//! Models of decision trees, whose thresholds and leaves are public.
//!
//! A [`Forest`] gives for the features of a row a number, or a score for each of its classes: the sum of what its trees give, which is one leaf of each.

mod error;
mod read;
mod text;

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use veil_numeric::Range;

pub use error::ForestError;
pub(crate) use read::{model as read_model, units as units_of};
pub(crate) use text::{model, output, units};

use crate::kind::{Kind, MOST_PLACES, Type, Values};
use crate::schema::is_name;

/// Most splits between a root and a leaf.
pub const MOST_DEPTH: usize = 32;

/// Most leaves of a tree.
pub const MOST_LEAVES: usize = 4096;

/// Most trees of a model.
pub const MOST_TREES: usize = 4096;

/// Most leaves of all trees of a model.
pub const MOST_ALL_LEAVES: usize = 1 << 18;

/// Most features of a model, and most of its classes.
pub const MOST_FEATURES: usize = 1024;

/// Most classes of a model.
pub const MOST_CLASSES: usize = 256;

/// Most bytes of the name of a feature or a class, and of what a model says of its source.
pub const MOST_TEXT: usize = 200;

/// A public number that features are compared with: `units · 10^−places`, with as few places as it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Threshold {
    units: i128,
    places: u32,
}

impl Threshold {
    /// The number; `None` with more than [`MOST_PLACES`] places.
    #[must_use]
    pub fn new(mut units: i128, mut places: u32) -> Option<Self> {
        while places > 0 && units % 10 == 0 {
            units /= 10;
            places -= 1;
        }
        (places <= MOST_PLACES).then_some(Self { units, places })
    }

    /// Its units.
    #[must_use]
    pub const fn units(&self) -> i128 {
        self.units
    }

    /// Its decimal places.
    #[must_use]
    pub const fn places(&self) -> u32 {
        self.places
    }

    /// The most units of 10^−`places` that are not above it, or, if `below`, that are below it. What is beyond 128 bits is the end of them, or
    /// nothing where no number of 128 bits is below.
    #[must_use]
    pub fn most(&self, places: u32, below: bool) -> Option<i128> {
        let (floor, exact) = if places >= self.places {
            let power = 10_i128.checked_pow(places - self.places);
            match power.and_then(|power| self.units.checked_mul(power)) {
                Some(units) => (units, true),
                None if self.units < 0 => return None,
                None => return Some(i128::MAX),
            }
        } else {
            let power = 10_i128.pow(self.places - places);
            let exact = self.units % power == 0;
            (self.units.div_euclid(power), exact)
        };
        if below && exact {
            floor.checked_sub(1)
        } else {
            Some(floor)
        }
    }
}

/// What a feature is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FeatureKind {
    /// A number; true is 1 and false 0.
    Number,
    /// One of these texts.
    Category(Values),
}

/// A feature of a model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Feature {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: FeatureKind,
}

/// What a split asks of its feature.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Test {
    /// Whether the number is at most this.
    AtMost(Threshold),
    /// Whether the number is less than this.
    Below(Threshold),
    /// Whether the text is one of these, by their places among the feature's, ascending.
    In(Vec<u16>),
}

/// A split of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The feature, by its place.
    pub feature: u16,
    /// What is asked of it.
    pub test: Test,
    /// Where a row goes whose feature is null: true to `yes`. All splits of a model say so, or none.
    pub null: Option<bool>,
    /// Where a row goes if the answer is yes.
    pub yes: Node,
    /// Where it goes if not.
    pub no: Node,
}

/// A node of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// What the tree gives: units of one score, or of each.
    Leaf(Vec<i128>),
    /// A choice.
    Split(Box<Split>),
}

/// A tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The class whose score its leaves add to; without it they have a number for each score.
    pub to: Option<u16>,
    /// The root.
    pub root: Node,
}

/// What a model says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForestParts {
    /// Its name in the job.
    pub name: String,
    /// Where it is from, in words.
    pub source: String,
    /// Its features, in the order of the arguments.
    pub features: Vec<Feature>,
    /// Its classes; none if it gives a number.
    pub classes: Vec<String>,
    /// Decimal places of what it gives.
    pub places: u32,
    /// What is added to each score.
    pub base: Vec<i128>,
    /// The trees.
    pub trees: Vec<Tree>,
}

/// How large a model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Splits of all trees.
    pub splits: usize,
    /// Leaves of all trees.
    pub leaves: usize,
    /// Most splits between a root and a leaf.
    pub depth: usize,
}

/// What is asked of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Output {
    /// Its number.
    Value,
    /// The score of a class.
    Score(u16),
    /// The class with the highest score; of several the first.
    Class,
}

/// A model of decision trees, checked. Clones share it.
#[derive(Clone, Debug)]
pub struct Forest(Arc<Checked>);

#[derive(Debug)]
struct Checked {
    parts: ForestParts,
    /// The range of each score.
    scores: Vec<Range>,
    /// The classes as values of a category, and the index there of each.
    values: Option<(Values, Vec<u16>)>,
    size: Size,
    tracks: bool,
}

impl PartialEq for Forest {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.parts == other.0.parts
    }
}

impl Eq for Forest {}

impl Hash for Forest {
    /// The name and the size say enough apart.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.parts.name.hash(state);
        self.0.size.leaves.hash(state);
    }
}

/// Looks at the nodes of a model.
struct Walk<'a> {
    parts: &'a ForestParts,
    size: Size,
    tracks: Option<bool>,
}

impl Walk<'_> {
    /// The least and the greatest units of each score in the leaves below, of which there are at most `room`.
    fn node(
        &mut self,
        of: &Node,
        wide: usize,
        depth: usize,
        room: &mut usize,
    ) -> Result<Vec<Range>, ForestError> {
        let split = match of {
            Node::Leaf(units) => {
                self.size.leaves += 1;
                let most = MOST_LEAVES;
                *room = room.checked_sub(1).ok_or(ForestError::Many {
                    what: "leaves in a tree",
                    most,
                })?;
                if self.size.leaves > MOST_ALL_LEAVES {
                    let most = MOST_ALL_LEAVES;
                    return Err(ForestError::Many {
                        what: "leaves",
                        most,
                    });
                }
                if units.len() != wide {
                    let found = units.len();
                    return Err(ForestError::Leaf { found, wide });
                }
                return Ok(units.iter().copied().map(Range::point).collect());
            }
            Node::Split(split) => split,
        };
        self.size.splits += 1;
        self.size.depth = self.size.depth.max(depth + 1);
        if depth == MOST_DEPTH {
            let most = MOST_DEPTH;
            return Err(ForestError::Many {
                what: "levels of splits",
                most,
            });
        }
        let feature = self.parts.features.get(usize::from(split.feature));
        let Some(feature) = feature else {
            let feature = split.feature;
            return Err(ForestError::NoFeature { feature });
        };
        let wrong = |what| {
            let name = feature.name.clone();
            Err(ForestError::Test { name, what })
        };
        match (&feature.kind, &split.test) {
            (FeatureKind::Number, Test::AtMost(_) | Test::Below(_)) => {}
            (FeatureKind::Category(values), Test::In(set)) => {
                let ascends = set.windows(2).all(|pair| pair[0] < pair[1]);
                let all = values.texts().len();
                let within = set.last().is_some_and(|last| usize::from(*last) < all);
                if !ascends || !within || set.len() == all {
                    return wrong("a set of some of its values and not of all, in order");
                }
            }
            (FeatureKind::Number, _) => return wrong("numbers, since it is a number"),
            (FeatureKind::Category(_), _) => return wrong("values, since it is a category"),
        }
        if *self.tracks.get_or_insert(split.null.is_some()) != split.null.is_some() {
            return Err(ForestError::Nulls);
        }
        let yes = self.node(&split.yes, wide, depth + 1, room)?;
        let no = self.node(&split.no, wide, depth + 1, room)?;
        Ok(yes.iter().zip(no).map(|(a, b)| a.hull(b)).collect())
    }
}

impl Forest {
    /// A model, if it is one.
    ///
    /// # Errors
    /// [`ForestError`].
    pub fn new(parts: ForestParts) -> Result<Self, ForestError> {
        let many = |count: usize, most, what| {
            if count > most {
                return Err(ForestError::Many { what, most });
            }
            Ok(())
        };
        many(parts.features.len(), MOST_FEATURES, "features")?;
        many(parts.classes.len(), MOST_CLASSES, "classes")?;
        many(parts.trees.len(), MOST_TREES, "trees")?;
        if !is_name(&parts.name) {
            let name = parts.name.clone();
            return Err(ForestError::Name { name });
        }
        let names = parts.features.iter().map(|feature| &feature.name);
        let texts = [&parts.source]
            .into_iter()
            .chain(names)
            .chain(&parts.classes);
        for text in texts {
            if text.len() > MOST_TEXT || text.chars().any(char::is_control) {
                return Err(ForestError::Text);
            }
        }
        let mut seen = BTreeSet::new();
        for feature in &parts.features {
            if feature.name.is_empty() || !seen.insert(&feature.name) {
                let name = feature.name.clone();
                return Err(ForestError::Twice {
                    what: "feature",
                    name,
                });
            }
        }
        if parts.places > MOST_PLACES {
            let places = parts.places;
            return Err(ForestError::Places { places });
        }
        if parts.trees.is_empty() || parts.features.is_empty() {
            return Err(ForestError::Empty);
        }
        let values = Self::values(&parts.classes)?;
        let wide = parts.classes.len().max(1);
        if parts.base.len() != wide {
            let found = parts.base.len();
            return Err(ForestError::Leaf { found, wide });
        }
        let mut scores: Vec<Range> = parts.base.iter().copied().map(Range::point).collect();
        let mut walk = Walk {
            parts: &parts,
            size: Size {
                splits: 0,
                leaves: 0,
                depth: 0,
            },
            tracks: None,
        };
        for tree in &parts.trees {
            let first = match tree.to {
                Some(to) if usize::from(to) < wide && wide > 1 => usize::from(to),
                Some(class) => return Err(ForestError::NoClass { class }),
                None => 0,
            };
            let wide = if tree.to.is_some() { 1 } else { wide };
            let mut room = MOST_LEAVES;
            let found = walk.node(&tree.root, wide, 0, &mut room)?;
            for (score, more) in scores[first..].iter_mut().zip(found) {
                *score = score.plus(more).ok_or(ForestError::TooWide)?;
            }
        }
        let (size, tracks) = (walk.size, walk.tracks == Some(true));
        Ok(Self(Arc::new(Checked {
            parts,
            scores,
            values,
            size,
            tracks,
        })))
    }

    fn values(classes: &[String]) -> Result<Option<(Values, Vec<u16>)>, ForestError> {
        if classes.is_empty() {
            return Ok(None);
        }
        if classes.len() == 1 {
            return Err(ForestError::OneClass);
        }
        let Some(values) = Values::new(classes.to_vec()) else {
            let twice = |name: &&String| classes.iter().filter(|other| other == name).count() > 1;
            let name = classes.iter().find(twice).cloned().unwrap_or_default();
            return Err(ForestError::Twice {
                what: "class",
                name,
            });
        };
        let places = classes.iter().map(|class| values.index(class));
        let places = places.map(Option::unwrap_or_default).collect();
        Ok(Some((values, places)))
    }

    /// What it says.
    #[must_use]
    pub fn parts(&self) -> &ForestParts {
        &self.0.parts
    }

    /// Its name in the job.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.parts.name
    }

    /// How large it is.
    #[must_use]
    pub fn size(&self) -> Size {
        self.0.size
    }

    /// Whether its splits say where a row goes whose feature is null. If not, what it gives of a row with a null is null.
    #[must_use]
    pub fn tracks_nulls(&self) -> bool {
        self.0.tracks
    }

    /// The range of each score, in units: the sums of the least and of the greatest leaf of each tree.
    #[must_use]
    pub fn scores(&self) -> &[Range] {
        &self.0.scores
    }

    /// The index of each class among the values of the category of its classes.
    #[must_use]
    pub fn class_indices(&self) -> &[u16] {
        self.0.values.as_ref().map_or(&[], |(_, places)| places)
    }

    /// What it gives; `None` for a class of a model of numbers, or a number of one of classes.
    #[must_use]
    pub fn kind(&self, output: Output) -> Option<Kind> {
        let score = |at: usize| {
            let units = *self.0.scores.get(at)?;
            let places = self.0.parts.places;
            Some(Kind::Decimal { places, units })
        };
        match (output, &self.0.values) {
            (Output::Value, None) => score(0),
            (Output::Score(class), Some(_)) => score(usize::from(class)),
            (Output::Class, Some((values, _))) => Some(Kind::Category(values.clone())),
            _ => None,
        }
    }

    /// What it gives for arguments of these types: the type, or what is wrong.
    pub(crate) fn applied(&self, output: Output, of: &[Type]) -> Result<Type, Misfit> {
        let kind = self.kind(output).ok_or(Misfit::Form(
            "a model of classes gives a class or the score of one of them, another one a value",
        ))?;
        if of.len() != self.0.parts.features.len() {
            return Err(Misfit::Form("an argument for each feature of the model"));
        }
        let mut nulls = false;
        for (feature, ty) in self.0.parts.features.iter().zip(of) {
            nulls |= ty.nullable;
            match (&feature.kind, &ty.kind) {
                (FeatureKind::Number, Kind::Integer(_) | Kind::Decimal { .. } | Kind::Bool) => {}
                (FeatureKind::Category(known), Kind::Category(values)) => {
                    let mut texts = values.texts().iter();
                    if let Some(text) = texts.find(|text| known.index(text).is_none()) {
                        return Err(Misfit::Value(feature.name.clone(), text.clone()));
                    }
                }
                (FeatureKind::Number, other) => {
                    return Err(Misfit::Operand("numbers and bools", other.clone()));
                }
                (FeatureKind::Category(_), other) => {
                    return Err(Misfit::Operand("a category", other.clone()));
                }
            }
        }
        Ok(Type::of(kind).or_null(nulls && !self.0.tracks))
    }
}

/// Why a model does not take its arguments.
pub(crate) enum Misfit {
    /// The call is not formed as it must be.
    Form(&'static str),
    /// An argument of another kind.
    Operand(&'static str, Kind),
    /// A value of a feature that the model does not know.
    Value(String, String),
}
