//! Models that are fitted to the rows of a relation: the rows of the result are the terms of the model.

use veil_learn::{Column, Family, Regression, Spec};
use veil_numeric::Range;

use crate::expr::Expr;
use crate::functions::{argument, form, typed};
use crate::kind::{Kind, MOST_PLACES, Type, Value, Values};
use crate::plan::Named;
use crate::plan_error::PlanError;
use crate::schema::ColumnId;
use crate::shape::{Field, Shape};

/// The name of the term that is 1 in every row.
pub const INTERCEPT: &str = "intercept";

/// A regression on rows, those with a null left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fit {
    /// How the mean of a row follows from its terms.
    pub family: Family,
    /// The features, each a number or a condition.
    pub features: Vec<Named>,
    /// The target.
    pub target: Expr,
    /// The penalty of ridge regression, units and decimal places.
    pub ridge: (u64, u32),
    /// Newton's steps.
    pub iterations: u32,
    /// Decimal places of coefficients and standard errors.
    pub places: u32,
    /// A model of fewer rows has no rows.
    pub min_rows: u32,
    /// Whether it has standard errors.
    pub errors: bool,
}

/// A number or a condition as a column of a model.
fn column(expr: &Expr, types: &[Type]) -> Result<Column, PlanError> {
    let ty = typed("fit", expr, types)?;
    let of = match &ty.kind {
        Kind::Bool => Range::new(0, 1).map(|range| (0, range)),
        kind => kind.number(),
    };
    let (places, range) = of.ok_or_else(|| argument("fit", &ty.kind))?;
    Ok(Column { range, places })
}

/// A cell as a number of its column; `None` for a null.
pub(crate) const fn number(value: Value) -> Option<i128> {
    match value {
        Value::Bool(value) => Some(value as i128),
        value => value.number(),
    }
}

impl Fit {
    /// The arithmetic of the model, over columns of these types in so many rows.
    ///
    /// # Errors
    /// [`PlanError`], with what is wrong.
    pub fn regression(&self, types: &[Type], capacity: u64) -> Result<Regression, PlanError> {
        let features = self.features.iter();
        let features = features.map(|feature| column(&feature.expr, types));
        let spec = Spec {
            family: self.family,
            features: features.collect::<Result<_, _>>()?,
            target: column(&self.target, types)?,
            rows: u32::try_from(capacity).unwrap_or(u32::MAX),
            ridge: self.ridge,
            iterations: self.iterations,
            places: self.places,
        };
        Ok(Regression::new(spec)?)
    }

    /// The names of the terms in the order of the rows: the intercept, then the features.
    #[must_use]
    pub fn terms(&self) -> Vec<&str> {
        let features = self.features.iter().map(|of| of.name.as_str());
        std::iter::once(INTERCEPT).chain(features).collect()
    }

    /// The names as the values of a category.
    ///
    /// # Errors
    /// [`PlanError::Form`] if two are equal.
    pub fn names(&self) -> Result<Values, PlanError> {
        let names = self.terms().into_iter().map(str::to_owned).collect();
        let twice = form("fit", "two terms have one name; `intercept` is one");
        Values::new(names).ok_or(twice)
    }

    /// The shape of the result.
    pub(crate) fn shape(&self, input: &Shape) -> Result<Shape, PlanError> {
        let regression = self.regression(&input.types(), input.capacity)?;
        if self.errors && !regression.has_errors() {
            return Err(form(
                "fit",
                "penalised coefficients have no standard errors",
            ));
        }
        if u64::from(self.min_rows) > input.capacity {
            return Err(PlanError::FewRows {
                rows: input.capacity,
                needed: self.min_rows,
            });
        }
        let zero = Range::point(0);
        let (coefficients, errors) = regression.outputs().iter().fold(
            (zero, zero),
            |(coefficients, errors), (coefficient, error)| {
                (
                    coefficients.hull(*coefficient),
                    errors.hull(error.unwrap_or(zero)),
                )
            },
        );
        let places = self.places.min(MOST_PLACES);
        let decimal = |name: &str, units| Field {
            name: name.into(),
            ty: Type::of(Kind::Decimal { places, units }),
        };
        let mut fields = vec![
            Field {
                name: "term".into(),
                ty: Type::of(Kind::Category(self.names()?)),
            },
            decimal("coefficient", coefficients),
        ];
        if self.errors {
            fields.push(decimal("standard_error", errors));
        }
        Ok(Shape {
            fields,
            capacity: regression.terms() as u64,
            unique: vec![[ColumnId(0)].into()],
            claimed: vec![],
        })
    }

    /// The rows of the model in the clear, of rows without nulls.
    pub(crate) fn rows(
        &self,
        regression: &Regression,
        rows: &[(Vec<i128>, i128)],
    ) -> Result<Vec<Vec<Value>>, PlanError> {
        if (rows.len() as u64) < u64::from(self.min_rows) {
            return Ok(vec![]);
        }
        let names = self.names()?;
        let fitted = regression.fit(rows)?;
        let terms = self.terms().into_iter().zip(fitted);
        let row = |(name, fitted): (&str, veil_learn::Fitted)| {
            let index = names
                .index(name)
                .map_or(Value::Null, |at| Value::Number(at.into()));
            let mut row = vec![index, Value::Number(fitted.coefficient)];
            if self.errors {
                row.extend(fitted.error.map(Value::Number));
            }
            row
        };
        Ok(terms.map(row).collect())
    }
}
