//! Networks that are applied to rows: a row of the result is a row with what the network gives for it.

use veil_learn::network::{Inference, Readout, count};
use veil_learn::{FitError, Network};

use crate::expr::Expr;
use crate::fit;
use crate::functions::{form, typed};
use crate::kind::{Kind, Type, Value, Values};
use crate::plan_error::PlanError;
use crate::schema::is_name;
use crate::shape::{Field, Shape};

pub use veil_learn::network::MOST_SCORE_PLACES;

/// The name of the column of classes.
pub const CLASS: &str = "class";

/// A network over the columns of rows. What it gives is null where one of its features is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Apply {
    /// The network.
    pub network: Network,
    /// Its features in their order, each a number or a condition.
    pub features: Vec<Expr>,
    /// Decimal places of what it gives.
    pub places: u32,
    /// Whether a network of classes gives their scores, too.
    pub scores: bool,
}

impl Apply {
    /// The arithmetic of the network, over columns of these types.
    ///
    /// # Errors
    /// [`PlanError`], with what is wrong.
    pub fn inference(&self, types: &[Type]) -> Result<Inference, PlanError> {
        let wanted = &self.network.parts().features;
        if self.features.len() != wanted.len() {
            return Err(PlanError::Features {
                network: self.network.name().to_owned(),
                features: wanted.len(),
                found: self.features.len(),
            });
        }
        let column = |(expr, name): (&Expr, &String)| {
            let ty = typed("apply", expr, types)?;
            fit::of_type(&ty).ok_or_else(|| PlanError::Feature {
                network: self.network.name().to_owned(),
                feature: name.clone(),
                kind: ty.kind.to_string(),
            })
        };
        let columns = self.features.iter().zip(wanted).map(column);
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        if self.places > MOST_SCORE_PLACES {
            return Err(PlanError::ScorePlaces(self.places));
        }
        Ok(self.network.inference(&columns, self.places)?)
    }

    /// The names of the columns that it adds: a number for each name, or the class and, if they are asked for, the scores of classes by their places in the list. One
    /// number for two classes is the score of the second one.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match &self.network.parts().readout {
            Readout::Values(names) => names.clone(),
            Readout::Classes(classes) => {
                let scores = if self.scores { self.cells() } else { 0 };
                let first = classes.len() - self.cells();
                let scores = (first..first + scores).map(|at| format!("score_{at}"));
                std::iter::once(CLASS.to_owned()).chain(scores).collect()
            }
        }
    }

    /// How many numbers the last layer gives.
    fn cells(&self) -> usize {
        let last = self.network.cells().last();
        last.map_or(0, |cells| count(*cells) as usize)
    }

    /// The classes as the values of a category, and of each class the index of its text there; `None` of a network that gives numbers.
    ///
    /// # Errors
    /// [`PlanError::Form`] if the texts are no category.
    pub fn classes(&self) -> Result<Option<(Values, Vec<u16>)>, PlanError> {
        let Readout::Classes(classes) = &self.network.parts().readout else {
            return Ok(None);
        };
        let none = || form("apply", "classes are different texts, at least one");
        let values = Values::new(classes.clone()).ok_or_else(none)?;
        let indices = classes.iter().map(|class| values.index(class));
        let indices = indices.collect::<Option<_>>().ok_or_else(none)?;
        Ok(Some((values, indices)))
    }

    /// Whether a feature may be null: then all that the network gives may be.
    ///
    /// # Errors
    /// [`PlanError`] if a feature has no type.
    pub fn nullable(&self, types: &[Type]) -> Result<bool, PlanError> {
        let mut any = false;
        for feature in &self.features {
            any |= typed("apply", feature, types)?.nullable;
        }
        Ok(any)
    }

    /// The shape of the result: the columns of the rows, then what the network gives.
    pub(crate) fn shape(&self, mut input: Shape) -> Result<Shape, PlanError> {
        let types = input.types();
        let inference = self.inference(&types)?;
        let nullable = self.nullable(&types)?;
        let decimals = inference.outputs().iter().map(|units| Kind::Decimal {
            places: self.places,
            units: *units,
        });
        let kinds: Vec<Kind> = match self.classes()? {
            None if self.scores => {
                let what = "a network of numbers has no scores of classes; leave out `scores`";
                return Err(form("apply", what));
            }
            None => decimals.collect(),
            Some((values, _)) => {
                let scores = decimals.filter(|_| self.scores);
                std::iter::once(Kind::Category(values))
                    .chain(scores)
                    .collect()
            }
        };
        let names = self.names();
        if names.len() != kinds.len() {
            return Err(form("apply", "a network of another number of outputs"));
        }
        for (name, kind) in names.into_iter().zip(kinds) {
            let network = || self.network.name().to_owned();
            if !is_name(&name) {
                return Err(PlanError::OutputName {
                    network: network(),
                    name,
                });
            }
            if input.fields.iter().any(|field| field.name == name) {
                return Err(PlanError::OutputTaken {
                    network: network(),
                    name,
                });
            }
            let ty = Type::of(kind).or_null(nullable);
            input.fields.push(Field { name, ty });
        }
        Ok(input)
    }

    /// What the network gives in the clear for a row of numbers, or for one with a null among them.
    pub(crate) fn values(
        &self,
        inference: &Inference,
        indices: Option<&[u16]>,
        row: Option<&[i128]>,
    ) -> Result<Vec<Value>, FitError> {
        let Some(row) = row else {
            return Ok(vec![Value::Null; self.names().len()]);
        };
        let scores = inference.apply(row)?;
        let class = indices.map(|indices| {
            let index = indices.get(inference.class(&scores));
            index.map_or(Value::Null, |index| Value::Number((*index).into()))
        });
        let shown = class.is_none() || self.scores;
        let scores = scores.into_iter().filter(|_| shown).map(Value::Number);
        Ok(class.into_iter().chain(scores).collect())
    }
}
