//! Joins with groups: rows find what there is of the group with their key, and groups and join take one sort together.

use veil_operators::{Duplicates, Grouped, Scan, Shared};
use veil_relation::{ColumnId, Comparison, Expr, JoinKind, Kind, Matches, Plan, Shape, Type};

use super::early::{Alone, Early};
use super::group::{OfGroups, extreme_fields, extreme_scans, extreme_words, one_by_one, summed};
use super::join::Join;
use super::rel::{Base, Field, Places, Rel, present};
use super::rows::Out;
use super::{PhysicalError, Planner, text};
use crate::{Node, Opening};

/// Groups that rows look up by all of their keys.
struct Side<'p> {
    /// The group by.
    groups: &'p Plan,
    /// Conditions and projections of its rows, the lowest first.
    above: Vec<&'p Plan>,
    /// For each pair of keys of the join, which key of the groups it is; nothing of a pair that is a condition.
    keys: Vec<Option<usize>>,
}

impl<'p> Side<'p> {
    /// The side of a join with these keys, if it is of groups that a sort would find.
    fn of(plan: &'p Plan, on: &[&Expr]) -> Option<Self> {
        let mut above = Vec::new();
        let mut at = plan;
        while let Plan::Filter { input, .. } | Plan::Project { input, .. } = at {
            above.push(at);
            at = input;
        }
        let Plan::GroupBy {
            keys,
            aggregates,
            domain,
            ..
        } = at
        else {
            return None;
        };
        let aside = aggregates.iter().any(Planner::is_rewritten);
        if aside || one_by_one(keys.len(), aggregates, *domain) {
            return None;
        }
        let mut found = Vec::new();
        for key in on {
            let mut key = (*key).clone();
            for operator in &above {
                if let Plan::Project { columns, .. } = operator {
                    key = key.substitute(&|column| columns[column.index()].expr.clone());
                }
            }
            match key {
                Expr::Column(column, _)
                    if column.index() < keys.len() && !found.contains(&Some(column.index())) =>
                {
                    found.push(Some(column.index()));
                }
                _ => found.push(None),
            }
        }
        above.reverse();
        let all = found.iter().flatten().count() == keys.len();
        all.then_some(Side {
            groups: at,
            above,
            keys: found,
        })
    }
}

/// What takes part in a sort of so many rows, as what orders plans by their costs: rows times comparisons of each.
fn sorting(rows: u64) -> u64 {
    let comparisons = u64::from(u64::BITS - rows.leading_zeros()) + 2;
    rows.saturating_mul(comparisons)
}

impl Planner<'_> {
    /// The relation of a join with groups, or of groups over a join, if one sort serves both.
    pub(super) fn in_one_sort(
        &mut self,
        plan: &Plan,
    ) -> Result<Option<(Rel, Node)>, PhysicalError> {
        match plan {
            Plan::GroupBy { .. } => match self.early(plan)? {
                Some(early) => Ok(Some(self.groups_of_rows(plan, &early)?)),
                None => Ok(None),
            },
            Plan::Join {
                kind,
                left,
                right,
                on,
                matches,
                ..
            } if !on.is_empty() && !matches!(matches, Matches::AtMost(_)) => {
                let (lefts, rights): (Vec<&Expr>, Vec<&Expr>) =
                    on.iter().map(|(l, r)| (l, r)).unzip();
                if *kind == JoinKind::Left && *matches != Matches::UniqueRight {
                    return Ok(None);
                }
                if let Some(side) = Side::of(right, &rights) {
                    return Ok(Some(self.joined_with_groups(plan, (left, false), &side)?));
                }
                match (kind, Side::of(left, &lefts)) {
                    (JoinKind::Inner, Some(side)) => {
                        Ok(Some(self.joined_with_groups(plan, (right, true), &side)?))
                    }
                    _ => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    /// A join whose other side is of groups; `turned` where they are on the left.
    fn joined_with_groups(
        &mut self,
        plan: &Plan,
        (asking, turned): (&Plan, bool),
        side: &Side<'_>,
    ) -> Result<(Rel, Node), PhysicalError> {
        let Plan::Join {
            kind,
            left,
            right,
            on,
            condition,
            matches,
        } = plan
        else {
            return Err(PhysicalError::Circuit("a join is none".into()));
        };
        let Plan::GroupBy { input, keys, .. } = side.groups else {
            return Err(PhysicalError::Circuit("a group by is none".into()));
        };
        let (rel, node) = self.relation(input)?;
        let shape = self.shape(side.groups)?;
        let of_keys: Vec<Expr> = keys.iter().map(|key| rel.over_base(&key.expr)).collect();
        let places = shape.capacity.min(rel.rows.into());
        let rows_of_asking = self.shape(asking)?.capacity;
        let apart = if self.is_gathered(&rel, &of_keys) {
            0
        } else {
            sorting(rel.rows.into())
        };
        let apart = apart + sorting(rows_of_asking + places);
        if sorting(rows_of_asking + u64::from(rel.rows)) > apart {
            // Few groups, which are found first.
            let mut done = self.applied(side.groups, vec![(rel, node)])?;
            for operator in &side.above {
                done = self.applied(operator, vec![done])?;
            }
            let asking = self.relation(asking)?;
            let both = if turned {
                vec![done, asking]
            } else {
                vec![asking, done]
            };
            return self.applied(plan, both);
        }
        let (asks, asking_node) = self.relation(asking)?;
        let begin = self.b.passes();
        let shape_of_plan = self.shape(plan)?;
        let (of_left, of_right) = (left, right);
        let asks_once = *matches
            == if turned {
                Matches::UniqueRight
            } else {
                Matches::UniqueLeft
            };
        let own = on.iter().map(|(l, r)| if turned { r } else { l });
        let own: Vec<Expr> = own.cloned().collect();
        let others = on.iter().map(|(l, r)| if turned { l } else { r });
        let on: Vec<(Expr, Expr)> = own.iter().cloned().zip(others.cloned()).collect();
        let claims =
            *kind == JoinKind::Inner && asks_once && !self.is_proved(asking, &asks, &own)?;
        let widths = (
            asks.fields.len(),
            self.shape(if turned { of_left } else { of_right })?,
        );
        // Over the asking rows, then the groups.
        let condition = condition.as_ref().map(|condition| {
            let (width, others) = (widths.1.fields.len(), widths.0);
            condition.clone().substitute(&|column: ColumnId| {
                let at = column.index();
                let at = match at < width {
                    _ if !turned => at,
                    true => at + others,
                    false => at - width,
                };
                Expr::column(at as u32)
            })
        });
        let pairs = on.iter().zip(&side.keys);
        let further = pairs.filter(|(_, key)| key.is_none());
        let further = further.map(|((own, other), _)| {
            let moved = |column: ColumnId| Expr::column(column.0 + widths.0 as u32);
            let other = other.clone().substitute(&moved);
            Expr::compare(Comparison::Eq, own.clone(), other)
        });
        let conditions: Vec<Expr> = further.chain(condition).collect();
        let condition = (!conditions.is_empty()).then(|| Expr::all(conditions));
        let pairs = on.iter().zip(&side.keys);
        let pairs = pairs.filter(|(_, key)| key.is_some());
        let on: Vec<(Expr, Expr)> = pairs.map(|(pair, _)| pair.clone()).collect();
        let join = Join {
            kind: *kind,
            on: &on,
            condition: condition.as_ref(),
            claims,
            words: text::relation(asking),
        };
        let of = Of { rel, side, shape };
        let found = self.found_groups(&join, asks, of)?;
        let mut result = Self::with_found(&join, found)?;
        if turned {
            result.fields.rotate_left(widths.0);
        }
        if asks_once {
            result.places = Places::Secret;
        }
        let end = self.b.passes();
        let mut groups = Node {
            text: text::of(side.groups, &self.shape(side.groups)?, self.program),
            rows: node.rows,
            passes: vec![],
            inputs: vec![node],
        };
        for operator in &side.above {
            groups = Node {
                text: text::of(operator, &self.shape(operator)?, self.program),
                rows: groups.rows,
                passes: vec![],
                inputs: vec![groups],
            };
        }
        let inputs = if turned {
            vec![groups, asking_node]
        } else {
            vec![asking_node, groups]
        };
        let node = Node {
            text: format!(
                "{}, sorted once with the groups",
                text::of(plan, &shape_of_plan, self.program)
            ),
            rows: result.rows,
            passes: Vec::from_iter((begin < end).then_some(begin..end)),
            inputs,
        };
        Ok((result, node))
    }

    /// Groups, each of which is a row of one side of the join that they are of.
    fn groups_of_rows(&mut self, plan: &Plan, early: &Early) -> Result<(Rel, Node), PhysicalError> {
        let Plan::GroupBy {
            input, min_rows, ..
        } = &early.groups
        else {
            return Err(PhysicalError::Circuit("a group by is none".into()));
        };
        let shape = self.shape(plan)?;
        let (rel, below) = self.relation(input)?;
        let (asks, above) = self.relation(&early.upper)?;
        let begin = self.b.passes();
        let own: Vec<Expr> = early.on.iter().map(|(key, _)| key.clone()).collect();
        let claims = !self.is_proved(&early.upper, &asks, &own)?;
        let side = Side {
            groups: &early.groups,
            above: vec![],
            keys: (0..early.on.len()).map(Some).collect(),
        };
        let join = Join {
            kind: if early.alone.is_some() {
                JoinKind::Left
            } else {
                JoinKind::Inner
            },
            on: &early.on,
            condition: None,
            claims,
            words: early.words.clone(),
        };
        let of = Of {
            rel,
            shape: self.shape(&early.groups)?,
            side: &side,
        };
        let (mut rel, found, fields) = self.found_groups(&join, asks, of)?;
        let keys = early.keys.iter().map(|key| rel.over_base(key));
        let keys: Vec<Expr> = keys.collect();
        let mut all = Vec::new();
        for (at, field) in fields.into_iter().skip(early.on.len()).enumerate() {
            let alone = early.alone.as_ref().map(|alone| alone[at]);
            all.push(match (join.kind, alone) {
                (JoinKind::Inner, _) => field,
                (_, Some(Alone::Number(number))) => Expr::Case {
                    branches: vec![(found.clone(), field)],
                    otherwise: Box::new(Expr::integer(number)),
                },
                (_, Some(Alone::Null) | None) => super::join::null_unless(&mut rel, &found, field)?,
            });
        }
        rel.fields = keys.into_iter().chain(all).collect();
        if join.kind == JoinKind::Inner {
            rel.valid.push(found);
        }
        rel.places = Places::Secret;
        rel.min_rows = *min_rows;
        let end = self.b.passes();
        let node = Node {
            text: format!(
                "{}, each a row of {} (one sort)",
                text::of(plan, &shape, self.program),
                early.words
            ),
            rows: rel.rows,
            passes: Vec::from_iter((begin < end).then_some(begin..end)),
            inputs: vec![above, below],
        };
        Ok((rel, node))
    }

    /// The asking rows with what they find of groups: whether they find one, and its fields.
    fn found_groups(
        &mut self,
        join: &Join<'_>,
        mut left: Rel,
        of: Of<'_>,
    ) -> Result<(Rel, Expr, Vec<Expr>), PhysicalError> {
        let Plan::GroupBy {
            keys,
            aggregates,
            min_rows,
            ..
        } = of.side.groups
        else {
            return Err(PhysicalError::Circuit("a group by is none".into()));
        };
        let mut rel = of.rel;
        let own: Vec<Expr> = join.on.iter().map(|(l, _)| left.over_base(l)).collect();
        let others = of
            .side
            .keys
            .iter()
            .flatten()
            .map(|key| rel.over_base(&keys[*key].expr));
        let others: Vec<Expr> = others.collect();
        let kinds = Self::key_kinds((&own, &left), (&others, &rel))?;
        let by = self.join_key(&mut left, &own, &kinds)?;
        let key = self.join_key(&mut rel, &others, &kinds)?;
        let groups = OfGroups::of(&rel, aggregates)?;
        let summed_up = groups.summed_up();
        let extremes = &groups.kept.extremes;
        let columns = if summed_up.is_empty() && extremes.is_empty() {
            vec![]
        } else {
            let wants = groups.wants(&[]);
            self.rows(&mut rel, groups.ring(), &wants, |exprs| {
                let mut outs = Vec::new();
                for summand in &summed_up {
                    let one = exprs.b.constant_bit(true);
                    outs.push(Out::Integer(summed(exprs, summand, one)?));
                }
                for extreme in extremes {
                    outs.extend(extreme_words(exprs, extreme)?);
                }
                Ok(outs)
            })?
        };
        let (sums, scanned) = columns.split_at(summed_up.len());
        let scans: Vec<(Scan, Shared)> = extreme_scans(extremes, scanned);
        let what = format!("a key of {} is there once", join.words);
        let duplicates = if join.claims {
            self.opens.push(Opening::Duplicates {
                of: join.words.clone(),
            });
            Duplicates::Refused(&what)
        } else {
            Duplicates::First
        };
        let looked_up = Grouped {
            key: &key,
            sums,
            scans: &scans,
        };
        let found = self.b.look_up_groups(&by, looked_up, duplicates);
        // Groups as a relation, of which each asking row has one.
        let mut view = Rel {
            fields: vec![],
            valid: vec![],
            ..left.clone()
        };
        let bit = Field::new(found.found, 0, 1);
        let bit = view.push(Base::of_bits(Type::of(Kind::Bool), Some(bit), None));
        view.valid.push(bit);
        // A key that is null equals nothing: rows that do not take part may find each other.
        let there = present(&own, &view.types())?;
        view.valid.extend(there);
        if *min_rows > 1 {
            let count = Type::of(Kind::Integer(super::group::some(super::group::counts(
                rel.rows,
            ))));
            let count = view.push(Base::of_integer(count, found.count));
            let least = Expr::integer((*min_rows).into());
            view.valid.push(Expr::compare(Comparison::Ge, count, least));
        }
        let mut of_keys = vec![None; keys.len()];
        for (key, own) in of.side.keys.iter().flatten().zip(&own) {
            of_keys[*key] = Some(own.clone());
        }
        view.fields = of_keys.into_iter().flatten().collect();
        let all = groups.fields(&mut view, found.count, &found.sums)?;
        let extremes = extreme_fields(&mut view, extremes, &found.scanned);
        let fields = &of.shape.fields[keys.len()..];
        let fields = self.aggregates(&mut view, &groups.kept, (&all, &extremes), fields)?;
        view.fields.extend(fields);
        for operator in &of.side.above {
            view = Self::where_needed(operator, view);
        }
        if join.kind == JoinKind::Left {
            self.quotients(&mut view)?;
        }
        let condition = view.condition();
        left.base = view.base;
        Ok((left, condition, view.fields))
    }

    /// Quotients among the fields as columns of the base: where nothing is found they are null.
    fn quotients(&mut self, rel: &mut Rel) -> Result<(), PhysicalError> {
        for at in 0..rel.fields.len() {
            let field = rel.fields[at].clone();
            let kind = field.ty(&rel.types())?.kind;
            if matches!(field, Expr::Column(..)) || !matches!(kind, Kind::Ratio { .. }) {
                continue;
            }
            let mut alone = Rel {
                valid: vec![],
                ..rel.clone()
            };
            let made = self.materialised(&mut alone, &[(field, kind)], false)?;
            rel.base = alone.base;
            rel.fields[at] = rel.push(made.base[0].clone());
        }
        Ok(())
    }
}

/// Groups that are looked up, and the rows that they are of.
struct Of<'s> {
    rel: Rel,
    side: &'s Side<'s>,
    shape: Shape,
}
