//! Models that are fitted to the rows of a relation: the rows of the result are the terms of the model.

use veil_learn::{
    ClusterSpec, Clusters, Column, ComponentSpec, Components, Descent, DescentSpec, Family,
    Regression, Spec, Stepping,
};
use veil_numeric::Range;

use crate::expr::Expr;
use crate::fit_tree::{TREE, TreeFitting};
use crate::functions::{argument, form, typed};
use crate::kind::{Kind, MOST_PLACES, Type, Value, Values};
use crate::plan::Named;
use crate::plan_error::PlanError;
use crate::schema::ColumnId;
use crate::shape::{Field, Shape};

/// The name of the term that is 1 in every row.
pub const INTERCEPT: &str = "intercept";

/// A model of rows, those with a null left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fit {
    /// What is fitted.
    pub kind: FitKind,
    /// The features, each a number or a condition; of a tree also a category.
    pub features: Vec<Named>,
    /// Steps: Newton's, or Lloyd's; epochs of gradient descent; or levels of splits.
    pub iterations: u32,
    /// Decimal places of coefficients and standard errors, of centres, or of shares and means.
    pub places: u32,
    /// A regression of fewer rows has no rows; a cluster of fewer is left out, and no node of a tree has fewer.
    pub min_rows: u32,
}

/// What is fitted to rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FitKind {
    /// A regression, with a row for each term.
    Regression {
        /// How the mean of a row follows from its terms.
        family: Family,
        /// The target.
        target: Expr,
        /// The penalty of ridge regression, units and decimal places.
        ridge: (u64, u32),
        /// Whether it has standard errors.
        errors: bool,
        /// How batches of rows move coefficients, if it is not fitted by Newton's method.
        stepping: Option<Stepping>,
    },
    /// k-means, with a row for each cluster.
    Clusters {
        /// The first centres: of each a number for every feature, in units of its column.
        start: Vec<Vec<i128>>,
    },
    /// Principal components of standardised features, with a row for each.
    Components {
        /// How many.
        count: u32,
    },
    /// A decision tree, with a row for each node.
    Tree {
        /// The target: a condition or a category, of which a node has shares, or a number, of which it has the mean.
        target: Expr,
        /// For each feature the numbers that it is compared with, in units of its column; none of a condition or a category.
        cuts: Vec<Vec<i128>>,
    },
}

impl FitKind {
    /// Its word.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Regression { family, .. } => family.name(),
            Self::Clusters { .. } => CLUSTERS,
            Self::Components { .. } => COMPONENTS,
            Self::Tree { .. } => TREE,
        }
    }
}

/// The word of k-means.
pub const CLUSTERS: &str = "k-means";
/// The word of principal components.
pub const COMPONENTS: &str = "pca";

/// The arithmetic of a model.
#[derive(Clone, Debug)]
pub enum Fitting {
    /// That of a regression by Newton's method.
    Regression(Box<Regression>),
    /// That of a regression by gradient descent.
    Descent(Box<Descent>),
    /// That of k-means.
    Clusters(Box<Clusters>),
    /// That of principal components.
    Components(Box<Components>),
    /// That of a tree.
    Tree(Box<TreeFitting>),
}

/// Numbers or conditions of a type as a column of a model.
pub(crate) fn of_type(ty: &Type) -> Option<Column> {
    let (places, range) = match &ty.kind {
        Kind::Bool => (0, Range::new(0, 1)?),
        kind => kind.number()?,
    };
    Some(Column { range, places })
}

/// An expression as a column of a model.
pub(crate) fn column(expr: &Expr, types: &[Type]) -> Result<Column, PlanError> {
    let ty = typed("fit", expr, types)?;
    of_type(&ty).ok_or_else(|| argument("fit", &ty.kind))
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
    pub fn fitting(&self, types: &[Type], capacity: u64) -> Result<Fitting, PlanError> {
        let rows = u32::try_from(capacity).unwrap_or(u32::MAX);
        if let FitKind::Tree { target, cuts } = &self.kind {
            let tree = TreeFitting::new(self, (target, cuts), (types, rows))?;
            return Ok(Fitting::Tree(Box::new(tree)));
        }
        let features = self.features.iter();
        let features = features.map(|feature| column(&feature.expr, types));
        let features = features.collect::<Result<Vec<_>, _>>()?;
        let (iterations, places) = (self.iterations, self.places);
        Ok(match &self.kind {
            FitKind::Regression {
                family,
                target,
                ridge,
                errors: _,
                stepping,
            } => {
                let (family, ridge, target) = (*family, *ridge, column(target, types)?);
                match stepping {
                    None => Fitting::Regression(Box::new(Regression::new(Spec {
                        family,
                        features,
                        target,
                        rows,
                        ridge,
                        iterations,
                        places,
                    })?)),
                    Some(stepping) => Fitting::Descent(Box::new(Descent::new(DescentSpec {
                        family,
                        features,
                        target,
                        rows,
                        ridge,
                        epochs: iterations,
                        stepping: stepping.clone(),
                        places,
                    })?)),
                }
            }
            FitKind::Components { count } => {
                Fitting::Components(Box::new(Components::new(ComponentSpec {
                    features,
                    components: *count,
                    rows,
                    iterations,
                    places,
                })?))
            }
            FitKind::Clusters { start } => {
                Fitting::Clusters(Box::new(Clusters::new(ClusterSpec {
                    features,
                    start: start.clone(),
                    rows,
                    iterations,
                    places,
                })?))
            }
            FitKind::Tree { .. } => return Err(form("fit", "a model of another kind")),
        })
    }

    /// The features' expressions, then that of the target if there is one.
    #[must_use]
    pub fn exprs(&self) -> Vec<&Expr> {
        let features = self.features.iter().map(|feature| &feature.expr);
        let target = match &self.kind {
            FitKind::Regression { target, .. } | FitKind::Tree { target, .. } => Some(target),
            FitKind::Clusters { .. } | FitKind::Components { .. } => None,
        };
        features.chain(target).collect()
    }

    /// The same, to be replaced in place.
    pub fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        let features = self.features.iter_mut().map(|feature| &mut feature.expr);
        let target = match &mut self.kind {
            FitKind::Regression { target, .. } | FitKind::Tree { target, .. } => Some(target),
            FitKind::Clusters { .. } | FitKind::Components { .. } => None,
        };
        features.chain(target).collect()
    }

    /// The names of a regression's terms: the intercept, then the features.
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
        let fitting = self.fitting(&input.types(), input.capacity)?;
        if u64::from(self.min_rows) > input.capacity {
            return Err(PlanError::FewRows {
                rows: input.capacity,
                needed: self.min_rows,
            });
        }
        let places = self.places.min(MOST_PLACES);
        let field = |name: &str, kind: Kind| Field {
            name: name.into(),
            ty: Type::of(kind),
        };
        let decimal = |name: &str, units| field(name, Kind::Decimal { places, units });
        let zero = Range::point(0);
        let up_to = |most: u64, least| Range::new(least, most.into()).unwrap_or(zero);
        let (fields, capacity) = match (&self.kind, &fitting) {
            (FitKind::Regression { errors, .. }, Fitting::Regression(regression)) => {
                if *errors && !regression.has_errors() {
                    let what = "penalised coefficients have no standard errors";
                    return Err(form("fit", what));
                }
                let hull = |(all, of_errors): (Range, Range),
                            (one, error): &(Range, Option<Range>)| {
                    (all.hull(*one), of_errors.hull(error.unwrap_or(zero)))
                };
                let (coefficients, of_errors) =
                    regression.outputs().iter().fold((zero, zero), hull);
                let mut fields = vec![
                    field("term", Kind::Category(self.names()?)),
                    decimal("coefficient", coefficients),
                ];
                if *errors {
                    fields.push(decimal("standard_error", of_errors));
                }
                (fields, regression.terms() as u64)
            }
            (FitKind::Regression { errors, .. }, Fitting::Descent(descent)) => {
                if *errors {
                    let what = "a model by gradient descent has no standard errors";
                    return Err(form("fit", what));
                }
                if descent.smallest() < self.min_rows {
                    return Err(PlanError::SmallBatch {
                        rows: descent.smallest(),
                        needed: self.min_rows,
                    });
                }
                let all = descent.outputs().iter();
                let fields = vec![
                    field("term", Kind::Category(self.names()?)),
                    decimal("coefficient", all.fold(zero, |all, one| all.hull(*one))),
                ];
                (fields, descent.terms() as u64)
            }
            (FitKind::Clusters { start }, Fitting::Clusters(clusters)) => {
                let count = start.len() as u64;
                let mut fields = vec![
                    field("cluster", Kind::Integer(up_to(count, 1))),
                    field("rows", Kind::Integer(up_to(input.capacity, 0))),
                ];
                let centres = self.features.iter().zip(clusters.outputs());
                fields.extend(centres.map(|(feature, range)| decimal(&feature.name, *range)));
                (fields, count)
            }
            (FitKind::Components { count }, Fitting::Components(components)) => {
                let (share, loading) = components.outputs();
                let count = u64::from(*count);
                let mut fields = vec![
                    field("component", Kind::Integer(up_to(count, 1))),
                    decimal("share", share),
                ];
                let loadings = self.features.iter();
                fields.extend(loadings.map(|feature| decimal(&feature.name, loading)));
                (fields, count)
            }
            (FitKind::Tree { target, .. }, Fitting::Tree(tree)) => {
                let target = typed("fit", target, &input.types())?;
                (tree.fields(&target), tree.nodes().into())
            }
            _ => return Err(form("fit", "a model of another kind")),
        };
        Ok(Shape {
            fields,
            capacity,
            unique: vec![[ColumnId(0)].into()],
            claimed: vec![],
        })
    }

    /// The rows of the model in the clear, of rows of numbers: features, then the target if there is one.
    pub(crate) fn rows(
        &self,
        fitting: &Fitting,
        mut rows: Vec<Vec<i128>>,
    ) -> Result<Vec<Vec<Value>>, PlanError> {
        match (&self.kind, fitting) {
            (FitKind::Regression { errors, .. }, Fitting::Regression(regression)) => {
                if (rows.len() as u64) < u64::from(self.min_rows) {
                    return Ok(vec![]);
                }
                let fitted = regression.fit(&pairs(&mut rows))?;
                self.shown(fitted.into_iter().map(|fitted| {
                    let error = fitted.error.filter(|_| *errors);
                    std::iter::once(fitted.coefficient).chain(error)
                }))
            }
            (_, Fitting::Descent(descent)) => {
                if (rows.len() as u64) < u64::from(self.min_rows) {
                    return Ok(vec![]);
                }
                let placed = descent.placed(pairs(&mut rows));
                self.shown(descent.fit(&placed)?.into_iter().map(std::iter::once))
            }
            (_, Fitting::Clusters(clusters)) => {
                let found = (1..).zip(clusters.fit(&rows)?);
                let shown = found.filter(|(_, of)| of.rows >= self.min_rows.into());
                let row = |(number, of): (i128, veil_learn::Cluster)| {
                    let head = [number, of.rows].into_iter();
                    head.chain(of.centre).map(Value::Number).collect()
                };
                Ok(shown.map(row).collect())
            }
            (_, Fitting::Components(components)) => {
                if (rows.len() as u64) < u64::from(self.min_rows) {
                    return Ok(vec![]);
                }
                let row = |(number, of): (i128, veil_learn::Component)| {
                    let head = [number, of.share].into_iter();
                    head.chain(of.loadings).map(Value::Number).collect()
                };
                Ok((1..).zip(components.fit(&rows)?).map(row).collect())
            }
            (_, Fitting::Tree(tree)) => tree.rows(rows),
            _ => Err(form("fit", "a model of another kind")),
        }
    }
    /// The rows of terms, of the numbers of each in the order of terms.
    fn shown(
        &self,
        of_terms: impl Iterator<Item = impl Iterator<Item = i128>>,
    ) -> Result<Vec<Vec<Value>>, PlanError> {
        let names = self.names()?;
        let terms = self.terms().into_iter().zip(of_terms);
        let rows = terms.map(|(name, numbers)| {
            let index = names.index(name);
            let index = index.map_or(Value::Null, |at| Value::Number(at.into()));
            let numbers = numbers.map(Value::Number);
            std::iter::once(index).chain(numbers).collect()
        });
        Ok(rows.collect())
    }
}

/// Rows of features and a target, each apart.
fn pairs(rows: &mut [Vec<i128>]) -> Vec<(Vec<i128>, i128)> {
    let pairs = rows.iter_mut().filter_map(|row| {
        let target = row.pop()?;
        Some((std::mem::take(row), target))
    });
    pairs.collect()
}
