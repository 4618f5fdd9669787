//! Windows: what a row has from the rows of its partition.
//!
//! Rows are sorted by partition and order. Running values are scans over partitions; those of a whole partition are its last row's, copied back; those of the last few
//! rows are differences of running ones.

use std::collections::HashMap;

use veil_circuit::generate::{Aim, constant_bits, less_than, sub};
use veil_circuit::{Builder as Gates, Per, Wire};
use veil_math::Ring;
use veil_operators::{Arranged, Scan, Shared, Sharing};
use veil_relation::{
    Comparison, Expr, Frame, Kind, Range, Shape, SortKey, Type, WindowFunction, Windowed,
};

use super::aggregates::value_where;
use super::group::giving_way;
use super::known::Known;
use super::order::{distinct_columns, in_other_rows, key_words};
use super::rel::{Base, Field, Places, Rel, or_null};
use super::rows::Out;
use super::{PhysicalError, Planner};
use crate::exprs::{Data, ExprError, Shown, Want, sort_bits};

/// A column of values that is scanned, by its number among those of the circuit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Running {
    value: usize,
    frame: Frame,
}

/// A value of each row that a window's functions are made of; 0 in rows that take no part.
#[derive(Clone, PartialEq, Debug)]
enum Value {
    /// 1 in rows where it is true.
    Rows(Expr),
    /// A number.
    Number(Expr, Range),
    /// A value of which the smallest or largest is kept.
    Extreme { of: Expr, kind: Kind, largest: bool },
}

/// What a function is of scanned values.
enum From {
    Count(Running),
    Sum {
        sum: Running,
        count: Running,
        kind: Kind,
        average: bool,
        nullable: bool,
    },
    Extreme {
        of: Running,
        count: Running,
        kind: Kind,
    },
    Rank,
    Shift {
        of: Expr,
        rows: i64,
    },
}

/// What the functions of a window need.
#[derive(Default)]
struct Needed {
    values: Vec<Value>,
    from: Vec<From>,
}

impl Needed {
    fn value(&mut self, of: Value) -> usize {
        let known = self.values.iter().position(|known| *known == of);
        known.unwrap_or_else(|| {
            self.values.push(of);
            self.values.len() - 1
        })
    }

    fn count(&mut self, of: Expr, frame: Frame) -> Running {
        let value = self.value(Value::Rows(of));
        Running { value, frame }
    }

    /// Adds a function, over the base of a relation.
    fn add(&mut self, function: &WindowFunction, rel: &Rel) -> Result<(), PhysicalError> {
        let types = rel.types();
        let over = |of: &Expr| rel.over_base(of);
        let valid = rel.condition();
        let present = |of: &Expr| {
            let null = Expr::IsNull(Box::new(of.clone()));
            Expr::all(vec![valid.clone(), Expr::Not(Box::new(null))])
        };
        let from = match function {
            WindowFunction::RowNumber => From::Count(self.count(Expr::And(vec![]), Frame::Running)),
            WindowFunction::Rank => {
                self.count(Expr::And(vec![]), Frame::Running);
                From::Rank
            }
            WindowFunction::Lag(of, rows) | WindowFunction::Lead(of, rows) => {
                self.count(Expr::And(vec![]), Frame::Running);
                let rows = i64::from(*rows);
                let back = matches!(function, WindowFunction::Lag(..));
                From::Shift {
                    of: over(of),
                    rows: if back { -rows } else { rows },
                }
            }
            WindowFunction::CountRows(frame) => From::Count(self.count(valid, *frame)),
            WindowFunction::Count(of, frame) => From::Count(self.count(present(&over(of)), *frame)),
            WindowFunction::Sum(of, frame) | WindowFunction::Avg(of, frame) => {
                let of = over(of);
                let ty = of.ty(&types)?;
                let number = ty
                    .kind
                    .number()
                    .map(|(_, range)| range.hull(Range::point(0)));
                let range = number.and_then(|range| range.sum(rel.rows.into()));
                let range = range.ok_or_else(|| {
                    PhysicalError::from(ExprError::WideSum {
                        expr: Shown::of(&of),
                    })
                })?;
                let kind = match ty.kind {
                    Kind::Decimal { places, .. } => Kind::Decimal {
                        places,
                        units: range,
                    },
                    _ => Kind::Integer(range),
                };
                let count = self.count(present(&of), *frame);
                let counted = value_where(&valid, &of, &kind);
                let sum = Running {
                    value: self.value(Value::Number(counted, range)),
                    frame: *frame,
                };
                let average = matches!(function, WindowFunction::Avg(..));
                From::Sum {
                    sum,
                    count,
                    kind,
                    average,
                    nullable: ty.nullable,
                }
            }
            WindowFunction::Min(of, frame) | WindowFunction::Max(of, frame) => {
                let of = over(of);
                let kind = of.ty(&types)?.kind;
                let count = self.count(present(&of), *frame);
                let largest = matches!(function, WindowFunction::Max(..));
                let value = self.value(Value::Extreme {
                    of,
                    kind: kind.clone(),
                    largest,
                });
                From::Extreme {
                    of: Running {
                        value,
                        frame: *frame,
                    },
                    count,
                    kind,
                }
            }
        };
        if matches!(Self::frame_of(&from), Some(Frame::Moving(_))) {
            self.count(Expr::And(vec![]), Frame::Running);
        }
        self.from.push(from);
        Ok(())
    }

    fn frame_of(from: &From) -> Option<Frame> {
        match from {
            From::Count(of) | From::Sum { sum: of, .. } | From::Extreme { of, .. } => {
                Some(of.frame)
            }
            From::Rank | From::Shift { .. } => None,
        }
    }

    /// Where the numbers of rows within their partitions are.
    fn numbers(&self) -> Option<Running> {
        let all = Value::Rows(Expr::And(vec![]));
        let value = self.values.iter().position(|value| *value == all)?;
        Some(Running {
            value,
            frame: Frame::Running,
        })
    }

    /// Everything that is scanned, each once.
    fn running(&self) -> Vec<Running> {
        let mut all: Vec<Running> = self.numbers().into_iter().collect();
        for from in &self.from {
            let of: Vec<Running> = match from {
                From::Count(of) => vec![*of],
                From::Sum { sum, count, .. } => vec![*sum, *count],
                From::Extreme { of, count, .. } => vec![*of, *count],
                From::Rank | From::Shift { .. } => vec![],
            };
            for running in of {
                if !all.contains(&running) {
                    all.push(running);
                }
            }
        }
        all
    }
}

impl Planner<'_> {
    /// The rows with a further column for each function.
    pub(super) fn window(
        &mut self,
        mut rel: Rel,
        (partition, order): (&[Expr], &[SortKey]),
        functions: &[Windowed],
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let mut needed = Needed::default();
        for windowed in functions {
            needed.add(&windowed.function, &rel)?;
        }
        let ascending = |expr: &Expr| SortKey::ascending(rel.over_base(expr));
        let partition: Vec<SortKey> = partition.iter().map(ascending).collect();
        let order: Vec<SortKey> = order
            .iter()
            .map(|key| SortKey {
                expr: rel.over_base(&key.expr),
                ..key.clone()
            })
            .collect();
        let shifted: Vec<(Expr, Kind)> = shifted_of(&needed, &rel)?;
        let width = rel.fields.len();
        let fields = rel.fields.iter().zip(&shape.fields);
        let mut exprs: Vec<(Expr, Kind)> = fields
            .map(|(expr, field)| (expr.clone(), field.ty.kind.clone()))
            .collect();
        exprs.extend(shifted);
        let (arranged, known) = self.arranged_by(&rel, &partition, &order);
        rel.order = if arranged == Arranged::Anyhow {
            Known::sorted(&rel, [&partition[..], &order].concat(), false)
        } else {
            Known::sorted(&rel, known, false)
        };
        let own: Vec<Expr> = exprs.iter().map(|(expr, _)| expr.clone()).collect();
        let fields = self.materialised(&mut rel, &exprs, false)?;
        let words = self.window_words(&mut rel, &partition, &order, &needed)?;
        let rows = rel.rows;
        let columns: Vec<Shared> = distinct_columns(&fields);
        let (mut result, words) = if partition.is_empty() && order.is_empty() {
            (fields, words)
        } else {
            let mut moving = columns.clone();
            moving.extend(words.all());
            let moved = self.b.in_order(&words.key, arranged, &moving);
            let (to, rest) = moved.split_at(columns.len());
            let mut moved = in_other_rows(&fields, &columns, to);
            moved.order = Known::over(&rel, &own.iter(), &moved);
            (moved, words.moved(rest))
        };
        let first = if partition.is_empty() && order.is_empty() {
            self.b.within(rows, 0, 1)
        } else {
            self.b.firsts(&words.partition)
        };
        let scanned = self.scanned(&needed, &words, first)?;
        let number_of = needed.numbers().and_then(|of| scanned.get(&of).copied());
        let mut shifted = width;
        let mut extra = Vec::new();
        for from in &needed.from {
            let at = match from {
                From::Shift { .. } => {
                    shifted += 1;
                    Some(shifted - 1)
                }
                _ => None,
            };
            let of = (&scanned, number_of, at);
            extra.push(self.window_field(&mut result, from, of, &words)?);
        }
        result.fields.truncate(width);
        result.fields.extend(extra);
        result.places = Places::Secret;
        Ok(result)
    }

    /// A circuit for the words that rows are sorted by, those of their partitions, and the values of functions.
    fn window_words(
        &mut self,
        rel: &mut Rel,
        partition: &[SortKey],
        order: &[SortKey],
        needed: &Needed,
    ) -> Result<Words, PhysicalError> {
        let condition = rel.condition();
        let keys = partition.iter().chain(order).map(|key| key.expr.clone());
        let values = needed.values.iter().flat_map(|value| match value {
            Value::Rows(of) | Value::Number(of, _) | Value::Extreme { of, .. } => [of.clone()],
        });
        let wants = keys.chain(values).chain([condition.clone()]);
        let wants: Vec<_> = wants.map(|expr| (expr, Want::Bits)).collect();
        let rows = rel.rows;
        let mut counts = (0, 0);
        let columns = self.rows(rel, Ring::Bits, &wants, |exprs| {
            let valid = exprs.truth(&condition)?;
            let absent = exprs.b.not(valid);
            let of_order = sort_bits(exprs, order)?;
            let of_partition = sort_bits(exprs, partition)?;
            let mut masked = |bits: &[Wire]| -> Vec<Wire> {
                bits.iter().map(|bit| exprs.b.and(*bit, valid)).collect()
            };
            let (of_order, of_partition) = (masked(&of_order), masked(&of_partition));
            let all = [of_order, of_partition.clone()].concat();
            let mut outs = key_words(all, Some(absent));
            counts.0 = outs.len();
            outs.extend(key_words(of_partition, Some(absent)));
            counts.1 = outs.len();
            for value in &needed.values {
                outs.push(Out::Bits(match value {
                    Value::Rows(of) => {
                        let mut word = vec![exprs.truth(of)?];
                        let zero = exprs.b.constant_bit(false);
                        word.resize(bits_of_rows(rows) as usize, zero);
                        word
                    }
                    Value::Number(of, range) => {
                        let cell = exprs.cell(of)?;
                        let Data::Word(word) = &cell.value else {
                            return Err(PhysicalError::Circuit("a sum is of no numbers".into()));
                        };
                        let word = word.clone();
                        let bits = word.at(&mut exprs.b, 0, range.bits().max(1), Aim::Size);
                        match cell.null {
                            None => bits,
                            Some(null) => {
                                let there = exprs.b.not(null);
                                bits.into_iter()
                                    .map(|bit| exprs.b.and(bit, there))
                                    .collect()
                            }
                        }
                    }
                    Value::Extreme { of, kind, largest } => {
                        let (bits, null) = exprs.bits_as(of, kind)?;
                        let there = match null {
                            Some(null) => exprs.b.not(null),
                            None => exprs.b.constant_bit(true),
                        };
                        let part = exprs.b.and(there, valid);
                        giving_way(&mut exprs.b, &bits, part, *largest)
                    }
                }));
            }
            Ok(outs)
        })?;
        Ok(Words {
            key: columns[..counts.0].to_vec(),
            partition: columns[counts.0..counts.1].to_vec(),
            values: columns[counts.1..].to_vec(),
        })
    }

    /// Values over their frames, in every row.
    fn scanned(
        &mut self,
        needed: &Needed,
        words: &Words,
        first: Shared,
    ) -> Result<HashMap<Running, Shared>, PhysicalError> {
        let all = needed.running();
        let mut values: Vec<usize> = all.iter().map(|of| of.value).collect();
        values.sort_unstable();
        values.dedup();
        let scans = values.iter().map(|value| {
            let scan = match &needed.values[*value] {
                Value::Rows(_) | Value::Number(..) => Scan::Sum,
                Value::Extreme { largest: true, .. } => Scan::Max,
                Value::Extreme { .. } => Scan::Min,
            };
            (scan, words.values[*value])
        });
        let scans: Vec<(Scan, Shared)> = scans.collect();
        let running = self.b.scan(first, &scans);
        let running: HashMap<usize, Shared> = values.into_iter().zip(running).collect();
        let whole: Vec<Running> = all
            .iter()
            .filter(|of| of.frame == Frame::Whole)
            .copied()
            .collect();
        let of_whole: Vec<Shared> = whole.iter().map(|of| running[&of.value]).collect();
        let copied = if of_whole.is_empty() {
            vec![]
        } else {
            self.b.copy_back(first, &of_whole)
        };
        let mut found: HashMap<Running, Shared> = whole.into_iter().zip(copied).collect();
        for of in all {
            let column = running[&of.value];
            match of.frame {
                Frame::Whole => {}
                Frame::Running => {
                    found.insert(of, column);
                }
                Frame::Moving(rows) => {
                    let numbers = needed
                        .numbers()
                        .and_then(|of| running.get(&of.value).copied());
                    let numbers = numbers
                        .ok_or_else(|| PhysicalError::Circuit("rows have no numbers".into()))?;
                    found.insert(of, self.moving(column, numbers, rows)?);
                }
            }
        }
        Ok(found)
    }

    /// A running sum less that of `rows + 1` rows before, if that row is of the same partition.
    fn moving(&mut self, of: Shared, numbers: Shared, rows: u32) -> Result<Shared, PhysicalError> {
        let (Sharing::Bits(bits), Sharing::Bits(places)) = (of.sharing(), numbers.sharing()) else {
            return Err(PhysicalError::Circuit("running sums are bits".into()));
        };
        let mut b = Gates::new(Ring::Bits);
        let sum = b.input("sum", bits, Per::Row);
        let before = b.input("before", bits, Per::Row);
        let number = b.input("number", places, Per::Row);
        let within = more_than(&mut b, &number, rows.saturating_add(1));
        let before: Vec<Wire> = before.iter().map(|bit| b.and(*bit, within)).collect();
        let out = sub(&mut b, &sum, &before, Aim::Size);
        b.output("sum", &out);
        let circuit = b.finish()?;
        let takes = vec![
            of.take(),
            of.rows_from(-i64::from(rows) - 1),
            numbers.take(),
        ];
        Ok(self.b.compute(circuit, of.rows(), takes)[0])
    }

    /// The field of a function.
    fn window_field(
        &mut self,
        rel: &mut Rel,
        from: &From,
        (scanned, numbers, shifted): (&HashMap<Running, Shared>, Option<Shared>, Option<usize>),
        words: &Words,
    ) -> Result<Expr, PhysicalError> {
        let missing = || PhysicalError::Circuit("a window lacks a scan".into());
        let column = |of: &Running| scanned.get(of).copied().ok_or_else(missing);
        let rows = rel.rows;
        let count = |rel: &mut Rel, column: Shared| {
            let range = Range::new(0, rows.into()).unwrap_or(Range::point(0));
            number_of(rel, column, range)
        };
        match from {
            From::Count(of) => Ok(count(rel, column(of)?)),
            From::Rank => {
                let peers = self.b.firsts(&words.key);
                let numbers = numbers.ok_or_else(missing)?;
                let rank = self.b.scan(peers, &[(Scan::First, numbers)])[0];
                Ok(count(rel, rank))
            }
            From::Shift { rows: by, .. } => {
                let numbers = numbers.ok_or_else(missing)?;
                let field = shifted.ok_or_else(missing)?;
                let number = if *by < 0 {
                    numbers
                } else {
                    self.b.make(numbers.rows_from(*by), rows, numbers.sharing())
                };
                let number = count(rel, number);
                let Expr::Column(at, _) = rel.fields[field].clone() else {
                    return Err(missing());
                };
                let base = rel.base[at.index()].clone();
                let columns: Vec<Shared> = base.columns().collect();
                let to: Vec<Shared> = columns
                    .iter()
                    .map(|column| self.b.make(column.rows_from(*by), rows, column.sharing()))
                    .collect();
                let moved = base.moved(&|of: Shared| {
                    let place = columns
                        .iter()
                        .position(|column| column.column() == of.column());
                    place.map_or(of, |place| to[place])
                });
                let kind = moved.ty.kind.clone();
                let value = rel.push(moved);
                let same = Expr::compare(
                    Comparison::Gt,
                    number,
                    Expr::integer(by.unsigned_abs().into()),
                );
                Ok(or_null(same, value, kind))
            }
            From::Extreme {
                of,
                count: some,
                kind,
            } => {
                let some = count(rel, column(some)?);
                let column = column(of)?;
                let bits = kind.bits().filter(|bits| *bits > 0);
                let bits = bits.map(|bits| Field::new(column, 0, bits));
                let value = rel.push(Base::of_bits(Type::of(kind.clone()), bits, None));
                Ok(some_or_null(some, value, kind))
            }
            From::Sum {
                sum,
                count: some,
                kind,
                average,
                nullable,
            } => {
                let some = count(rel, column(some)?);
                let Some((_, range)) = kind.number() else {
                    return Err(missing());
                };
                let sum = self.offset(column(sum)?, range)?;
                let bits = (range.bits() > 0).then(|| Field::new(sum, 0, range.bits()));
                let value = rel.push(Base::of_bits(Type::of(kind.clone()), bits, None));
                if *average {
                    let zero = Box::new(Expr::integer(0));
                    let count = Expr::NullIf(Box::new(some), zero);
                    return Ok(Expr::Divide(Box::new(value), Box::new(count)));
                }
                Ok(if *nullable {
                    some_or_null(some, value, kind)
                } else {
                    value
                })
            }
        }
    }

    /// A number in two's complement, less the least of its range.
    fn offset(&mut self, of: Shared, range: Range) -> Result<Shared, PhysicalError> {
        let Sharing::Bits(bits) = of.sharing() else {
            return Err(PhysicalError::Circuit("running sums are bits".into()));
        };
        if range.min() == 0 {
            return Ok(of);
        }
        let mut b = Gates::new(Ring::Bits);
        let sum = b.input("sum", bits, Per::Row);
        let least = constant_bits(&mut b, range.min().cast_unsigned(), bits);
        let out = sub(&mut b, &sum, &least, Aim::Size);
        b.output("offset", &out);
        let circuit = b.finish()?;
        Ok(self.b.compute(circuit, of.rows(), vec![of.take()])[0])
    }
}

/// A value where there are some, and null elsewhere.
fn some_or_null(count: Expr, value: Expr, kind: &Kind) -> Expr {
    let some = Expr::compare(Comparison::Gt, count, Expr::integer(0));
    or_null(some, value, kind.clone())
}

/// A further column of the base, of numbers from 0 on.
fn number_of(rel: &mut Rel, column: Shared, range: Range) -> Expr {
    let bits = Some(Field::new(column, 0, range.bits()));
    rel.push(Base::of_bits(Type::of(Kind::Integer(range)), bits, None))
}

/// What is taken of other rows, as further fields.
fn shifted_of(needed: &Needed, rel: &Rel) -> Result<Vec<(Expr, Kind)>, PhysicalError> {
    let types = rel.types();
    let of = needed.from.iter().filter_map(|from| match from {
        From::Shift { of, .. } => Some(of),
        _ => None,
    });
    of.map(|of| {
        let ty = of.ty(&types)?;
        Ok((of.clone(), ty.kind))
    })
    .collect()
}

/// Bits that hold numbers from 0 to `rows`.
const fn bits_of_rows(rows: u32) -> u32 {
    u32::BITS - rows.leading_zeros()
}

/// Whether a word is more than a public number.
fn more_than(b: &mut Gates, word: &[Wire], than: u32) -> Wire {
    let bits = word.len() as u32;
    if bits < 32 && than >> bits > 0 {
        return b.constant_bit(false);
    }
    let than = constant_bits(b, than.into(), bits);
    less_than(b, &than, word, Aim::Size)
}

/// Columns of a window.
struct Words {
    /// What rows are sorted by.
    key: Vec<Shared>,
    /// What tells partitions apart.
    partition: Vec<Shared>,
    /// Values of functions.
    values: Vec<Shared>,
}

impl Words {
    fn all(&self) -> Vec<Shared> {
        [&self.key[..], &self.partition, &self.values].concat()
    }

    /// The same in other rows.
    fn moved(&self, to: &[Shared]) -> Self {
        let (key, rest) = to.split_at(self.key.len());
        let (partition, values) = rest.split_at(self.partition.len());
        Words {
            key: key.to_vec(),
            partition: partition.to_vec(),
            values: values.to_vec(),
        }
    }
}
