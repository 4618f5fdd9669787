//! Joins of which one side has each key at most once.

use std::collections::BTreeSet;

use veil_job::passes::Take;
use veil_math::Ring;
use veil_operators::{Duplicates, Shared, Side};
use veil_relation::{At, ColumnId, Expr, JoinKind, Kind, Literal, Matches, Plan, Shape, Type};

use super::order::{distinct_columns, in_other_rows, key_words};
use super::rel::{Base, Field, Rel, or_null, present};
use super::{PhysicalError, Planner};
use crate::Opening;
use crate::exprs::Want;

/// A join, taken apart.
pub(super) struct Join<'a> {
    pub(super) kind: JoinKind,
    pub(super) on: &'a [(Expr, Expr)],
    pub(super) condition: Option<&'a Expr>,
    /// Whether a key that is there twice ends the run: else it is proved, or makes no difference.
    pub(super) claims: bool,
    /// The relation whose keys are there once, in words.
    pub(super) words: String,
}

impl Planner<'_> {
    /// The rows of a join.
    pub(super) fn join(
        &mut self,
        plan: &Plan,
        left: Rel,
        right: Rel,
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let Plan::Join {
            kind,
            on,
            condition,
            matches,
            left: of_left,
            right: of_right,
        } = plan
        else {
            return Err(PhysicalError::Circuit("a join is none".into()));
        };
        let unique = match matches {
            Matches::UniqueLeft => of_left,
            _ => of_right,
        };
        let semi = matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let proved = match matches {
            _ if semi => true,
            Matches::UniqueLeft => {
                let keys: Vec<Expr> = on.iter().map(|(l, _)| l.clone()).collect();
                self.is_proved(unique, &left, &keys)?
            }
            Matches::UniqueRight => {
                let keys: Vec<Expr> = on.iter().map(|(_, r)| r.clone()).collect();
                self.is_proved(unique, &right, &keys)?
            }
            Matches::Any | Matches::AtMost(_) => false,
        };
        let join = Join {
            kind: *kind,
            on,
            condition: condition.as_ref(),
            claims: !proved,
            words: match matches {
                Matches::AtMost(_) => super::text::relation(plan),
                _ => super::text::relation(unique),
            },
        };
        match (kind, matches) {
            (JoinKind::Inner, Matches::AtMost(most)) => self.all_pairs(&join, left, right, *most),

            (JoinKind::Inner, Matches::UniqueLeft) => self.swapped(&join, left, right),
            (JoinKind::Left, Matches::UniqueLeft | Matches::AtMost(_)) => {
                let most = match matches {
                    Matches::AtMost(most) => Some(*most),
                    _ => None,
                };
                self.left_of_many(&join, (left, right), most, shape)
            }
            (JoinKind::Semi | JoinKind::Anti, Matches::Any) if condition.is_some() => {
                Err(PhysicalError::NotYet {
                    what: "semi and anti joins with a condition over both sides",
                    instead: "write the condition so that one side is grouped by the key first",
                    at: At(None),
                })
            }
            _ => self.looked_up(&join, left, right),
        }
    }

    /// Whether keys of a relation are there once by an operator, or by what the owner says of the order of its table, which is looked at first.
    pub(super) fn is_proved(
        &mut self,
        plan: &Plan,
        rel: &Rel,
        keys: &[Expr],
    ) -> Result<bool, PhysicalError> {
        let columns = keys.iter().filter_map(|key| match key {
            Expr::Column(column, _) => Some(*column),
            _ => None,
        });
        let columns: BTreeSet<ColumnId> = columns.collect();
        let shape = self.shape(plan)?;
        let mut proved = shape.unique.iter();
        let proved = shape.capacity <= 1 || proved.any(|set| set.is_subset(&columns));
        Ok(proved || self.differs(rel, keys.iter()))
    }

    /// Each row of the left finds at most one row of the right.
    fn looked_up(&mut self, join: &Join<'_>, left: Rel, right: Rel) -> Result<Rel, PhysicalError> {
        let semi = matches!(join.kind, JoinKind::Semi | JoinKind::Anti);
        let found = self.found(join, left, right, !semi)?;
        Self::with_found(join, found)
    }

    /// The rows of a join, of the left with what its rows find.
    pub(super) fn with_found(
        join: &Join<'_>,
        (mut rel, mut found, fields): (Rel, Expr, Vec<Expr>),
    ) -> Result<Rel, PhysicalError> {
        if let Some(condition) = join.condition {
            let joined: Vec<Expr> = rel.fields.iter().chain(&fields).cloned().collect();
            let condition = condition.clone().substitute(&|column: ColumnId| {
                joined
                    .get(column.index())
                    .cloned()
                    .unwrap_or(Expr::column(column.0))
            });
            found = Expr::all(vec![found, condition]);
        }
        match join.kind {
            JoinKind::Inner => {
                rel.fields.extend(fields);
                rel.valid.push(found);
            }
            JoinKind::Semi => rel.valid.push(found),
            JoinKind::Anti => {
                // What is null is not found.
                let not = Expr::Coalesce(vec![found, Expr::bool(false)]);
                rel.valid.push(Expr::Not(Box::new(not)));
            }
            JoinKind::Left => {
                for field in fields {
                    let field = null_unless(&mut rel, &found, field)?;
                    rel.fields.push(field);
                }
            }
        }
        Ok(rel)
    }

    /// As [`Planner::looked_up`], of the right by the left.
    fn swapped(&mut self, join: &Join<'_>, left: Rel, right: Rel) -> Result<Rel, PhysicalError> {
        let width = left.fields.len();
        let on: Vec<(Expr, Expr)> = join.on.iter().cloned().map(|(l, r)| (r, l)).collect();
        let others = right.fields.len();
        let turned = join.condition.map(|condition| {
            condition.clone().substitute(&|column: ColumnId| {
                let at = column.index();
                let at = if at < width { at + others } else { at - width };
                Expr::column(at as u32)
            })
        });
        let turned = Join {
            kind: JoinKind::Inner,
            on: &on,
            condition: turned.as_ref(),
            claims: join.claims,
            words: join.words.clone(),
        };
        let mut rel = self.looked_up(&turned, right, left)?;
        rel.fields.rotate_left(others);
        Ok(rel)
    }

    /// A left join in which a row of the left may have many matches, at most so many in all where both sides may: all matches, and behind them the rows of the left that have none.
    fn left_of_many(
        &mut self,
        join: &Join<'_>,
        (left, right): (Rel, Rel),
        most: Option<u32>,
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        if join.condition.is_some() {
            return Err(PhysicalError::NotYet {
                what: "left joins of many matches with a condition over both sides",
                instead: "filter the right side in a subquery",
                at: At(None),
            });
        }
        let matched = Join {
            kind: JoinKind::Inner,
            on: join.on,
            condition: None,
            claims: join.claims,
            words: join.words.clone(),
        };
        let alone = Join {
            kind: JoinKind::Anti,
            claims: false,
            words: join.words.clone(),
            ..matched
        };
        let both = match most {
            None => self.swapped(&matched, left.clone(), right.clone())?,
            Some(most) => self.all_pairs(&matched, left.clone(), right.clone(), most)?,
        };
        let mut rest = self.looked_up(&alone, left, right)?;
        for field in &shape.fields[rest.fields.len()..] {
            let null = Literal::Null(field.ty.kind.clone());
            rest.fields.push(Expr::Literal(null));
        }
        self.union(vec![both, rest], shape)
    }

    /// All pairs of rows that match, of which there are at most so many.
    fn all_pairs(
        &mut self,
        join: &Join<'_>,
        mut left: Rel,
        mut right: Rel,
        most: u32,
    ) -> Result<Rel, PhysicalError> {
        let of_left: Vec<Expr> = join.on.iter().map(|(l, _)| left.over_base(l)).collect();
        let of_right: Vec<Expr> = join.on.iter().map(|(_, r)| right.over_base(r)).collect();
        let kinds = Self::key_kinds((&of_left, &left), (&of_right, &right))?;
        let keys = [
            self.join_key(&mut left, &of_left, &kinds)?,
            self.join_key(&mut right, &of_right, &kinds)?,
        ];
        let mut sides = Vec::new();
        for mut rel in [left, right] {
            let fields = rel.typed_fields()?;
            rel.valid.clear();
            let bits = self.bits_of(&mut rel, &fields)?;
            let columns = distinct_columns(&bits);
            sides.push((bits, columns));
        }
        let [(left, of_left), (right, of_right)] = &sides[..] else {
            return Err(PhysicalError::Circuit("a join has two sides".into()));
        };
        self.opens.push(Opening::Overflow {
            of: join.words.clone(),
            rows: most,
        });
        let what = format!("{} has at most {most} pairs", join.words);
        let side = |key, columns| Side { key, columns };
        let pairs = self.b.pairs(
            side(&keys[0], of_left),
            side(&keys[1], of_right),
            most,
            &what,
        );
        let right = in_other_rows(right, of_right, &pairs.right);
        let left = in_other_rows(left, of_left, &pairs.left);
        let first = left.base.len() as u32;
        let mut rel = Rel {
            rows: most.max(1),
            places: super::rel::Places::Secret,
            ..left
        };
        rel.base.extend(right.base.iter().cloned());
        let moved = right.fields.iter().map(|field| {
            let field = field.clone();
            field.substitute(&|column: ColumnId| Expr::column(column.0 + first))
        });
        rel.fields.extend(moved);
        let valid = Field::new(pairs.valid, 0, 1);
        let valid = rel.push(Base::of_bits(Type::of(Kind::Bool), Some(valid), None));
        rel.valid = vec![valid];
        if let Some(condition) = join.condition {
            let condition = rel.over_base(condition);
            rel.valid.push(condition);
        }
        Ok(rel)
    }

    /// The left with what its rows find on the right: whether they find a row, and its fields.
    fn found(
        &mut self,
        join: &Join<'_>,
        mut left: Rel,
        mut right: Rel,
        wanted: bool,
    ) -> Result<(Rel, Expr, Vec<Expr>), PhysicalError> {
        if join.on.is_empty() {
            return self.only_row(left, right);
        }
        let of_left: Vec<Expr> = join.on.iter().map(|(l, _)| left.over_base(l)).collect();
        let of_right: Vec<Expr> = join.on.iter().map(|(_, r)| right.over_base(r)).collect();
        let kinds = Self::key_kinds((&of_left, &left), (&of_right, &right))?;
        let by = self.join_key(&mut left, &of_left, &kinds)?;
        let of = self.join_key(&mut right, &of_right, &kinds)?;
        let types = right.types();
        let fields = if wanted { right.fields.clone() } else { vec![] };
        let mut carried: Vec<(Expr, Kind)> = Vec::new();
        // A field that is a key has the value of the other side's.
        let mut from: Vec<Result<Expr, usize>> = Vec::new();
        for field in &fields {
            let key = of_right.iter().position(|key| key == field);
            let same = key.filter(|key| of_left[*key].ty(&left.types()).is_ok());
            if let Some(key) = same {
                from.push(Ok(of_left[key].clone()));
                continue;
            }
            let ty = field.ty(&types)?;
            from.push(Err(carried.len()));
            carried.push((field.clone(), ty.kind));
        }
        right.valid.clear();
        let right = self.bits_of(&mut right, &carried)?;
        let columns = distinct_columns(&right);
        let what = format!("a key of {} is there once", join.words);
        let duplicates = if join.claims {
            self.opens.push(Opening::Duplicates {
                of: join.words.clone(),
            });
            Duplicates::Refused(&what)
        } else {
            Duplicates::First
        };
        let found = self.b.look_up(&by, &of, &columns, duplicates);
        let right = in_other_rows(&right, &columns, &found.columns);
        let bit = Field::new(found.found, 0, 1);
        let bit = left.push(Base::of_bits(Type::of(Kind::Bool), Some(bit), None));
        let mut conditions = vec![bit];
        // A key that is null equals nothing: rows that do not take part may find each other.
        conditions.extend(present(&of_left, &left.types())?);
        let first = left.base.len() as u32;
        for base in &right.base {
            left.push(base.clone());
        }
        let moved = |at: usize| {
            let field = right.fields[at].clone();
            field.substitute(&|column: ColumnId| Expr::column(column.0 + first))
        };
        let fields: Vec<Expr> = from
            .into_iter()
            .map(|from| from.unwrap_or_else(moved))
            .collect();
        Ok((left, Expr::all(conditions), fields))
    }

    /// Fields as bits, in rows whose validity is known otherwise.
    fn bits_of(&mut self, rel: &mut Rel, fields: &[(Expr, Kind)]) -> Result<Rel, PhysicalError> {
        let mut bits = self.materialised(rel, fields, false)?;
        for at in 0..bits.base.len() {
            if bits.base[at].bits.is_none() {
                self.as_bits(&mut bits, at)?;
            }
        }
        Ok(bits)
    }

    /// The kinds that hold the keys of both sides, over the base of each.
    pub(super) fn key_kinds(
        (left, of_left): (&[Expr], &Rel),
        (right, of_right): (&[Expr], &Rel),
    ) -> Result<Vec<Kind>, PhysicalError> {
        let (lefts, rights) = (of_left.types(), of_right.types());
        let kinds = left.iter().zip(right).map(|(l, r)| {
            let one = l.ty(&lefts).ok()?;
            let other = r.ty(&rights).ok()?;
            one.kind.hull(&other.kind)
        });
        let kinds: Option<Vec<Kind>> = kinds.collect();
        kinds.ok_or_else(|| PhysicalError::Circuit("keys of a join have no kind".into()))
    }

    /// The words of a key by which rows are joined: those that are not valid, or have a null, take no part.
    pub(super) fn join_key(
        &mut self,
        rel: &mut Rel,
        keys: &[Expr],
        kinds: &[Kind],
    ) -> Result<Vec<Shared>, PhysicalError> {
        let condition = rel.condition();
        let wants = keys.iter().chain([&condition]);
        let wants: Vec<_> = wants.map(|expr| (expr.clone(), Want::Bits)).collect();
        self.rows(rel, Ring::Bits, &wants, |exprs| {
            let mut takes_part = exprs.truth(&condition)?;
            let mut bits = Vec::new();
            for (key, kind) in keys.iter().zip(kinds) {
                let (of, null) = exprs.bits_as(key, kind)?;
                bits.extend(of);
                if let Some(null) = null {
                    let there = exprs.b.not(null);
                    takes_part = exprs.b.and(takes_part, there);
                }
            }
            let bits = bits
                .into_iter()
                .map(|bit| exprs.b.and(bit, takes_part))
                .collect();
            let absent = exprs.b.not(takes_part);
            Ok(key_words(bits, Some(absent)))
        })
    }

    /// Without keys all rows match: the right has one row, which every row of the left finds.
    fn only_row(
        &mut self,
        mut left: Rel,
        mut right: Rel,
    ) -> Result<(Rel, Expr, Vec<Expr>), PhysicalError> {
        if right.rows != 1 {
            return Err(PhysicalError::NotYet {
                what: "joins without a key",
                instead: "join on a key, or with a subquery of one row",
                at: At(None),
            });
        }
        let fields = right.typed_fields()?;
        let right = self.materialised(&mut right, &fields, false)?;
        let columns = distinct_columns(&right);
        let rows = left.rows;
        let every: Vec<Shared> = columns
            .iter()
            .map(|column| {
                let take = Take::Rows {
                    of: vec![column.column()],
                    first: 0,
                    step: 0,
                };
                self.b.make(take, rows, column.sharing())
            })
            .collect();
        let right = in_other_rows(&right, &columns, &every);
        let first = left.base.len() as u32;
        for base in &right.base {
            left.push(base.clone());
        }
        let moved = |expr: &Expr| {
            let expr = expr.clone();
            expr.substitute(&|column: ColumnId| Expr::column(column.0 + first))
        };
        let fields = right.fields.iter().map(moved).collect();
        let found = Expr::all(right.valid.iter().map(moved).collect());
        Ok((left, found, fields))
    }
}

/// A field where a row is found, and null elsewhere.
pub(super) fn null_unless(rel: &mut Rel, found: &Expr, field: Expr) -> Result<Expr, PhysicalError> {
    let kind = field.ty(&rel.types())?.kind;
    let (
        Kind::Ratio {
            places,
            above,
            below,
        },
        Expr::Column(column, _),
    ) = (&kind, &field)
    else {
        return Ok(or_null(found.clone(), field, kind));
    };
    // There is no choice between quotients: one of a numerator that may be null.
    let base = &rel.base[column.index()];
    let (bits, under, null) = (base.bits, base.below, base.null);
    let above_kind = Kind::Decimal {
        places: *places,
        units: *above,
    };
    let numerator = Base {
        bits,
        ..Base::of_bits(
            Type::of(above_kind.clone()).or_null(null.is_some()),
            None,
            null,
        )
    };
    let denominator = Base {
        bits: under,
        ..Base::of_bits(Type::of(Kind::Integer(*below)), None, None)
    };
    let (numerator, denominator) = (rel.push(numerator), rel.push(denominator));
    let numerator = or_null(found.clone(), numerator, above_kind);
    Ok(Expr::Divide(Box::new(numerator), Box::new(denominator)))
}
