//! Decision trees of the rows of a relation: the rows of the result are the nodes.

use veil_learn::{Candidate, Fraction, Test, Tree, TreeFeature, TreeSpec, TreeTarget};
use veil_numeric::Range;

use crate::expr::Expr;
use crate::fit::{Fit, column, of_type};
use crate::fraction::round_ratio;
use crate::functions::{argument, form, typed};
use crate::kind::{Kind, MOST_PLACES, Type, Value, Values};
use crate::plan_error::PlanError;
use crate::shape::Field;
use crate::text::digits;

/// The word of decision trees.
pub const TREE: &str = "tree";

/// Bits of a numerator on the way, at most.
const MOST_BITS: u32 = 120;

/// The arithmetic of a tree, and the texts of its candidates.
#[derive(Clone, Debug)]
pub struct TreeFitting {
    tree: Tree,
    features: Values,
    cuts: Values,
    codes: Vec<[u16; 2]>,
    values: Vec<(Range, Fraction)>,
    places: u32,
    /// Of a condition the share of rows where it is true says all.
    skipped: usize,
}

impl TreeFitting {
    /// Of a model of columns of these types in so many rows.
    pub(crate) fn new(
        model: &Fit,
        (target, cuts): (&Expr, &[Vec<i128>]),
        (types, rows): (&[Type], u32),
    ) -> Result<Self, PlanError> {
        if cuts.len() != model.features.len() {
            return Err(form("fit", "cuts are a list for each feature"));
        }
        let of_features = model.features.iter();
        let kinds = of_features.map(|feature| Ok(typed("fit", &feature.expr, types)?.kind));
        let kinds = kinds.collect::<Result<Vec<Kind>, PlanError>>()?;
        let features = kinds.iter().zip(cuts).map(|(kind, cuts)| {
            let of = match kind {
                Kind::Bool => TreeFeature::Condition,
                Kind::Category(values) => TreeFeature::Category {
                    values: values.texts().len() as u32,
                },
                kind => {
                    let column = of_type(&Type::of(kind.clone()));
                    let column = column.ok_or_else(|| argument("fit", kind))?;
                    let cuts = cuts.clone();
                    return Ok(TreeFeature::Number { column, cuts });
                }
            };
            if cuts.is_empty() {
                Ok(of)
            } else {
                Err(form("fit", "cuts are of numbers"))
            }
        });
        let of_target = typed("fit", target, types)?.kind;
        let tree = Tree::new(TreeSpec {
            features: features.collect::<Result<_, _>>()?,
            target: match &of_target {
                Kind::Bool => TreeTarget::Classes(2),
                Kind::Category(values) => TreeTarget::Classes(values.texts().len() as u32),
                _ => TreeTarget::Number(column(target, types)?),
            },
            rows,
            depth: model.iterations,
            least: model.min_rows,
            places: model.places,
        })?;
        let names = model.features.iter().map(|feature| feature.name.clone());
        let features = Values::new(names.collect());
        let features = features.ok_or_else(|| form("fit", "two features have one name"))?;
        let text = |of: &Candidate| text(&kinds[of.feature], of.test);
        let texts: Vec<String> = tree.candidates().iter().map(text).collect();
        let mut distinct = texts.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let cuts = Values::new(distinct).ok_or_else(|| form("fit", "cuts have texts"))?;
        let code = |(of, text): (&Candidate, &String)| {
            let feature = features.index(&model.features[of.feature].name)?;
            Some([feature, cuts.index(text)?])
        };
        let codes = tree.candidates().iter().zip(&texts).map(code);
        let codes = codes.collect::<Option<_>>();
        let places = model.places.min(MOST_PLACES);
        let values = tree
            .values()
            .iter()
            .map(|of| Some((shown(of, places)?, *of)));
        let values = values.collect::<Option<_>>();
        let wide = veil_learn::FitError::TooWide {
            bits: MOST_BITS + 1,
            most: MOST_BITS,
        };
        Ok(Self {
            codes: codes.ok_or_else(|| form("fit", "a candidate has a feature and a cut"))?,
            values: values.ok_or(wide)?,
            tree,
            features,
            cuts,
            places,
            skipped: usize::from(of_target == Kind::Bool),
        })
    }

    /// The arithmetic.
    #[must_use]
    pub const fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Of each candidate its feature and its cut, as indices of the categories of these columns.
    #[must_use]
    pub fn codes(&self) -> &[[u16; 2]] {
        &self.codes
    }

    /// Of each value that is shown of a node which of the tree's it is, its range, in units of the last place, and what it is a quotient of.
    pub fn values(&self) -> impl Iterator<Item = (usize, Range, Fraction)> {
        let all = self.values.iter().enumerate().skip(self.skipped);
        all.map(|(at, (range, of))| (at, *range, *of))
    }

    /// Decimal places of values.
    #[must_use]
    pub const fn places(&self) -> u32 {
        self.places
    }

    /// Nodes of the tree, at most.
    #[must_use]
    pub const fn nodes(&self) -> u32 {
        (2 << self.tree.spec().depth) - 1
    }

    /// The columns of the result.
    pub(crate) fn fields(&self, target: &Type) -> Vec<Field> {
        let field = |name: String, kind: Kind, nullable: bool| Field {
            name,
            ty: Type::of(kind).or_null(nullable),
        };
        let up_to = |most: u32, least| Range::new(least, most.into()).unwrap_or(Range::point(0));
        let mut fields = vec![
            field("node".into(), Kind::Integer(up_to(self.nodes(), 1)), false),
            field(
                "feature".into(),
                Kind::Category(self.features.clone()),
                true,
            ),
            field("cut".into(), Kind::Category(self.cuts.clone()), true),
            field(
                "rows".into(),
                Kind::Integer(up_to(self.tree.spec().rows, 0)),
                false,
            ),
        ];
        let decimal = |units| Kind::Decimal {
            places: self.places,
            units,
        };
        let values = self.values.iter().enumerate().skip(self.skipped);
        fields.extend(values.map(|(at, (units, _))| {
            let name = match &target.kind {
                Kind::Bool => "share".into(),
                Kind::Category(_) => format!("share_{at}"),
                _ => "mean".into(),
            };
            field(name, decimal(*units), false)
        }));
        fields
    }

    /// The rows of the tree in the clear, of rows of numbers: features, then the target.
    pub(crate) fn rows(&self, rows: Vec<Vec<i128>>) -> Result<Vec<Vec<Value>>, PlanError> {
        let pairs = rows.into_iter().filter_map(|mut row| {
            let target = row.pop()?;
            Some((row, target))
        });
        let nodes = self.tree.fit(&pairs.collect::<Vec<_>>())?;
        let row = |node: veil_learn::TreeNode| {
            let code = |which: usize| {
                let code = node.split.map(|at| self.codes[at][which]);
                code.map_or(Value::Null, |code| Value::Number(code.into()))
            };
            let mut row = vec![
                Value::Number(node.number.into()),
                code(0),
                code(1),
                Value::Number(node.rows),
            ];
            let values = self.values.iter().zip(&node.numerators);
            row.extend(values.skip(self.skipped).map(|((_, of), above)| {
                let value = round_ratio(*above, node.rows, of.from, self.places);
                value.map_or(Value::Null, Value::Number)
            }));
            row
        };
        Ok(nodes.into_iter().map(row).collect())
    }
}

/// The cut of a number, the value of a category, or `false`.
fn text(kind: &Kind, test: Test) -> String {
    match (kind, test) {
        (Kind::Bool, _) => "false".into(),
        (Kind::Category(values), Test::Is(value) | Test::AtMost(value)) => {
            let text = usize::try_from(value)
                .ok()
                .and_then(|at| values.texts().get(at));
            text.cloned().unwrap_or_default()
        }
        (kind, Test::Is(cut) | Test::AtMost(cut)) => {
            let places = kind.number().map_or(0, |(places, _)| places);
            let text = digits(cut, places);
            text.trim_end_matches('.').into()
        }
    }
}

/// The range of a value in units of the last place that is shown; `None` if what it is computed of does not fit.
fn shown(of: &Fraction, places: u32) -> Option<Range> {
    let end = |units: i128| round_ratio(units, 1, of.from, places);
    let range = Range::new(end(of.quotients.min())?, end(of.quotients.max())?)?;
    let factor = 10_i128.checked_pow(places.saturating_sub(of.from))?;
    let above = of.above.times(Range::point(factor))?;
    let fits = above.magnitude()? >> MOST_BITS == 0;
    fits.then_some(range)
}
