//! What is summed, counted and compared over groups, and what aggregates are of it.

use veil_circuit::generate::Aim;
use veil_math::Ring;
use veil_relation::{
    Aggregate, AggregateFunction, Arithmetic, Comparison, Expr, Field, Kind, Literal, Range, Type,
};

use super::rel::{Base, Field as BitsAt, Packing, Rel, or_null};
use super::rows::Out;
use super::{PhysicalError, Planner};
use crate::exprs::{ExprError, Shown, Sums, Want, Word, deviation, variance};

/// Something that is added up over the rows of a group; each is 0 in rows where its condition is not true.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Summand {
    /// Rows.
    Rows(Expr),
    /// Values that are not null.
    Values(Expr, Expr),
    /// Their squares.
    Squares(Expr, Expr),
}

/// A value of which the smallest or the largest of a group is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Extreme {
    /// Rows where it is true, and the value not null, take part.
    pub(super) condition: Expr,
    /// The value.
    pub(super) of: Expr,
    /// Its kind.
    pub(super) kind: Kind,
    /// The largest one.
    pub(super) largest: bool,
}

/// What an aggregate is of what is kept of a group.
#[derive(Clone, Debug)]
enum From {
    Count(usize),
    Sum {
        sum: usize,
        count: usize,
        average: bool,
    },
    AnyTrue {
        yes: usize,
        count: usize,
    },
    AllTrue {
        no: usize,
        count: usize,
    },
    Spread {
        sum: usize,
        squares: usize,
        count: usize,
        places: Option<u32>,
    },
    Extreme(usize),
}

/// What has to be kept of groups for a list of aggregates.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) summands: Vec<Summand>,
    pub(super) extremes: Vec<Extreme>,
    from: Vec<From>,
}

fn number<T: PartialEq>(list: &mut Vec<T>, of: T) -> usize {
    let known = list.iter().position(|known| *known == of);
    known.unwrap_or_else(|| {
        list.push(of);
        list.len() - 1
    })
}

/// The least ring whose integers tell those of a range apart.
pub(super) fn ring_of(range: Range) -> Ring {
    match range.bits() {
        0..=32 => Ring::Z32,
        33..=64 => Ring::Z64,
        _ => Ring::Z128,
    }
}

/// A literal 0 of a kind of numbers.
fn zero(kind: &Kind) -> Expr {
    match kind {
        Kind::Decimal { places, .. } => Expr::Literal(Literal::Decimal {
            units: 0,
            places: *places,
        }),
        _ => Expr::integer(0),
    }
}

/// A value where a condition is true, and 0 elsewhere.
pub(super) fn value_where(condition: &Expr, of: &Expr, kind: &Kind) -> Expr {
    if *condition == Expr::And(vec![]) {
        return of.clone();
    }
    Expr::Case {
        branches: vec![(condition.clone(), of.clone())],
        otherwise: Box::new(zero(kind)),
    }
}

impl Kept {
    /// What these aggregates of the rows of a relation need.
    pub(super) fn of(rel: &Rel, aggregates: &[Aggregate]) -> Result<Self, PhysicalError> {
        let types = rel.types();
        let mut kept = Kept::default();
        for aggregate in aggregates {
            let filter = aggregate
                .filter
                .as_ref()
                .map(|filter| rel.over_base(filter));
            let condition = Expr::all(rel.valid.iter().cloned().chain(filter).collect());
            let argument = aggregate.function.argument().map(|of| rel.over_base(of));
            let ty = match &argument {
                None => Type::of(Kind::Bool),
                Some(of) => of.ty(&types)?,
            };
            let of = argument.unwrap_or(Expr::bool(true));
            let from = kept.aggregate(&aggregate.function, (condition, of, ty))?;
            kept.from.push(from);
        }
        Ok(kept)
    }

    fn aggregate(
        &mut self,
        function: &AggregateFunction,
        (condition, of, ty): (Expr, Expr, Type),
    ) -> Result<From, PhysicalError> {
        let present = if ty.nullable {
            let null = Expr::IsNull(Box::new(of.clone()));
            Expr::all(vec![condition.clone(), Expr::Not(Box::new(null))])
        } else {
            condition.clone()
        };
        let mut rows = |condition: Expr| number(&mut self.summands, Summand::Rows(condition));
        Ok(match function {
            AggregateFunction::CountRows => From::Count(rows(condition)),
            AggregateFunction::Count(_) => From::Count(rows(present)),
            AggregateFunction::Sum(_) | AggregateFunction::Avg(_) => From::Sum {
                count: rows(present),
                sum: number(&mut self.summands, Summand::Values(condition, of)),
                average: matches!(function, AggregateFunction::Avg(_)),
            },
            AggregateFunction::BoolOr(_) => From::AnyTrue {
                count: rows(present),
                yes: rows(Expr::all(vec![condition, of])),
            },
            AggregateFunction::BoolAnd(_) => From::AllTrue {
                count: rows(present),
                no: rows(Expr::all(vec![condition, Expr::Not(Box::new(of))])),
            },
            AggregateFunction::VarSamp(_) | AggregateFunction::StddevSamp(..) => From::Spread {
                count: rows(present),
                sum: number(
                    &mut self.summands,
                    Summand::Values(condition.clone(), of.clone()),
                ),
                squares: number(&mut self.summands, Summand::Squares(condition, of)),
                places: match function {
                    AggregateFunction::StddevSamp(_, places) => Some(*places),
                    _ => None,
                },
            },
            AggregateFunction::Min(_) | AggregateFunction::Max(_) => {
                let extreme = Extreme {
                    condition: present,
                    of,
                    kind: ty.kind,
                    largest: matches!(function, AggregateFunction::Max(_)),
                };
                From::Extreme(number(&mut self.extremes, extreme))
            }
            AggregateFunction::CountDistinct(_) => {
                return Err(PhysicalError::NotYet {
                    what: "count(DISTINCT …) beside other aggregates",
                    instead: "count the rows of a subquery with SELECT DISTINCT",
                    at: of.written(),
                });
            }
            AggregateFunction::PercentileDisc { .. } => {
                return Err(PhysicalError::NotYet {
                    what: "medians and other quantiles of groups",
                    instead: "ask for the average",
                    at: of.written(),
                });
            }
        })
    }

    /// The range of a summand over `rows` rows.
    pub(super) fn range(
        summand: &Summand,
        types: &[Type],
        rows: u32,
    ) -> Result<Range, PhysicalError> {
        let count = Range::new(0, rows.into()).unwrap_or(Range::point(0));
        let of = |expr: &Expr| -> Result<Range, PhysicalError> {
            let ty = expr.ty(types)?;
            let number = ty.kind.number().map(|(_, range)| range);
            number.ok_or_else(|| PhysicalError::Circuit("a sum is of no numbers".into()))
        };
        let wide = |expr: &Expr| {
            PhysicalError::from(ExprError::WideSum {
                expr: Shown::of(expr),
            })
        };
        match summand {
            Summand::Rows(_) => Ok(count),
            Summand::Values(_, expr) => {
                let range = of(expr)?.hull(Range::point(0));
                range.sum(rows.into()).ok_or_else(|| wide(expr))
            }
            Summand::Squares(_, expr) => {
                let most = of(expr)?.magnitude().ok_or_else(|| wide(expr))?;
                let squares = most.checked_mul(most).and_then(|most| Range::new(0, most));
                let sum = squares.and_then(|squares| squares.sum(rows.into()));
                sum.ok_or_else(|| wide(expr))
            }
        }
    }
}

impl Planner<'_> {
    /// The fields of aggregates, over a base with `sums` of the summands and `extremes`. `fields` are those of the shape.
    pub(super) fn aggregates(
        &mut self,
        rel: &mut Rel,
        kept: &Kept,
        (sums, extremes): (&[Expr], &[Expr]),
        fields: &[Field],
    ) -> Result<Vec<Expr>, PhysicalError> {
        let mut all = Vec::new();
        for (from, field) in kept.from.iter().zip(fields) {
            let some = |count: usize| {
                let zero = Box::new(Expr::integer(0));
                Expr::Compare(Comparison::Gt, Box::new(sums[count].clone()), zero)
            };
            let of_some = |count: usize, value: Expr| {
                if !field.ty.nullable {
                    return value;
                }
                or_null(some(count), value, field.ty.kind.clone())
            };
            all.push(match from {
                From::Count(count) => sums[*count].clone(),
                From::Sum {
                    sum,
                    count,
                    average: false,
                } => of_some(*count, sums[*sum].clone()),
                From::Sum {
                    sum,
                    count,
                    average: true,
                } => {
                    let zero = Box::new(Expr::integer(0));
                    let count = Expr::NullIf(Box::new(sums[*count].clone()), zero);
                    Expr::Divide(Box::new(sums[*sum].clone()), Box::new(count))
                }
                From::AnyTrue { yes, count } => of_some(*count, some(*yes)),
                From::AllTrue { no, count } => of_some(*count, Expr::Not(Box::new(some(*no)))),
                From::Extreme(at) => extremes[*at].clone(),
                From::Spread {
                    sum,
                    squares,
                    count,
                    places,
                } => {
                    let of = [*count, *sum, *squares].map(|at| sums[at].clone());
                    self.spread(rel, &of, *places, field)?
                }
            });
        }
        Ok(all)
    }

    /// A variance, or its root, of the count, the sum and the squares of values: a further column of the base.
    fn spread(
        &mut self,
        rel: &mut Rel,
        of: &[Expr; 3],
        places: Option<u32>,
        field: &Field,
    ) -> Result<Expr, PhysicalError> {
        let aim = Aim::Size;
        let wants: Vec<(Expr, Want)> = of.iter().map(|expr| (expr.clone(), Want::Bits)).collect();
        let types = rel.types();
        let range_of = |expr: &Expr| {
            let ty = expr.ty(&types).ok();
            ty.and_then(|ty| ty.kind.number())
        };
        let [Some((_, count)), Some((from, sum)), Some((_, squares))] =
            [0, 1, 2].map(|k| range_of(&of[k]))
        else {
            return Err(PhysicalError::Circuit("a variance is of no numbers".into()));
        };
        // The type of the result knows these ranges.
        let (above, below) = spread_ranges(&field.ty.kind, (count, sum, squares))
            .ok_or_else(|| PhysicalError::from(ExprError::WideVariance))?;
        let mut packing = Packing::default();
        let mut numbers = (None, None, None);
        let words = self.rows(rel, Ring::Bits, &wants, |exprs| {
            let mut word = |k: usize, range: Range| -> Result<Word, PhysicalError> {
                Ok(Word::of_bits(exprs.bits(&of[k])?.0, range))
            };
            let (count, sum, squares) = (word(0, count)?, word(1, sum)?, word(2, squares)?);
            let sums = Sums {
                count: &count,
                sum: &sum,
                squares: &squares,
            };
            let mut add = |bits: &[_]| (!bits.is_empty()).then(|| packing.add(bits));
            let b = &mut exprs.b;
            if let (Some(to), Kind::Decimal { units, .. }) = (places, &field.ty.kind) {
                let (root, null) = deviation(b, sums, (above, below), (from, to), *units, aim);
                let bits = root.normal(b, aim);
                numbers = (add(&bits), None, add(&[null]));
            } else {
                let (ratio, null) = variance(b, sums, (above, below), aim);
                let bits = ratio.above.normal(b, aim);
                let under = ratio.below.normal(b, aim);
                numbers = (add(&bits), add(&under), add(&[null]));
            }
            let words = std::mem::take(&mut packing.words);
            Ok(words.into_iter().map(Out::Bits).collect())
        })?;
        let at = |number: usize| -> BitsAt { packing.field(number, &words) };
        let kind = match (places, &field.ty.kind) {
            (None, Kind::Ratio { .. }) => Kind::Ratio {
                places: 2 * from,
                above,
                below,
            },
            (_, kind) => kind.clone(),
        };
        let (bits, under, null) = numbers;
        Ok(rel.push(Base {
            ty: Type::of(kind).or_null(true),
            bits: Some(bits.map(at)),
            below: places.is_none().then(|| under.map(at)),
            integers: vec![],
            null: null.map(at),
            of_table: None,
        }))
    }
}

/// Ranges of numerator and denominator of a variance.
fn spread_ranges(
    kind: &Kind,
    (count, sum, squares): (Range, Range, Range),
) -> Option<(Range, Range)> {
    if let Kind::Ratio { above, below, .. } = kind {
        return Some((*above, *below));
    }
    let most = count.times(squares)?.max();
    sum.times(sum)?;
    let pairs = count.max().checked_mul(count.max() - 1)?;
    Some((Range::new(0, most)?, Range::new(1, pairs.max(1))?))
}

/// An expression that multiplies one by itself.
pub(super) fn square(of: &Expr) -> Expr {
    Expr::arithmetic(Arithmetic::Mul, of.clone(), of.clone())
}
