//! Relations that parties keep as shares.

use std::collections::BTreeSet;

use veil_job::Audience;
use veil_job::passes::Take;
use veil_math::Ring;
use veil_operators::stacked;
use veil_relation::{Bucket, Column, ColumnId, Kind, OpenSize, Origin, Shape, Step, Table};

use super::rel::Rel;
use super::rows::Out;
use super::{PhysicalError, Planner};
use crate::exprs::Want;
use crate::ports::{KeepPorts, SizePort, TablePort, stored_ports};
use crate::{Node, Opening};

impl Planner<'_> {
    /// The relation with its valid rows in front of all others, and the pass that opens to the parties which bucket their number is in.
    ///
    /// The number of the bucket is how many of a few public places have a valid row. No more is opened: it is added up on shares.
    pub(super) fn sized(
        &mut self,
        mut rel: Rel,
        shape: &Shape,
        (step, of): (&Step, &OpenSize),
    ) -> Result<(Rel, SizePort, Node), PhysicalError> {
        let refused = |why: &str| Err(unkept(step, why));
        let (begin, rows) = (self.b.passes(), rel.rows);
        if rel.valid.is_empty() {
            return refused("all of its rows count, and there is no size to open");
        }
        if of.bucket.number(rows) < 2 {
            return refused(
                "all numbers of rows that it may have are in one bucket, which is no size to open",
            );
        }
        let (in_front, valid) = self.in_front(&mut rel, shape)?;
        let places = of.bucket.places(rows);
        let looked_at = match of.bucket {
            Bucket::RoundUpTo(step) => Take::Rows {
                of: vec![valid.column()],
                first: 0,
                step: step.cast_signed(),
            },
            Bucket::PowerOfTwo => {
                let one = |place: &u32| {
                    let take = valid.rows_from((*place).into());
                    self.b.make(take, 1, valid.sharing())
                };
                stacked(places.iter().map(one).collect::<Vec<_>>())
            }
        };
        let bits = (self.b).make(looked_at, places.len() as u32, valid.sharing());
        let number = self.b.count(bits);
        let opening = Opening::Size {
            step: step.name.clone(),
            rows,
            bucket: of.bucket,
            why: of.why.clone(),
        };
        self.opens.push(opening);
        let pass = self.b.passes();
        let what = match of.bucket {
            Bucket::RoundUpTo(by) => {
                format!("rows of {} that count, by {by}, rounded up", step.name)
            }
            Bucket::PowerOfTwo => format!(
                "the least power of two that is no less than the rows of {} that count",
                step.name
            ),
        };
        self.b.open(&[number], Audience::Parties, &what);
        let port = SizePort {
            pass,
            bucket: of.bucket,
            capacity: rows,
        };
        let node = Node {
            text: format!("open the size of {}", step.name),
            rows,
            passes: std::iter::once(begin..self.b.passes()).collect(),
            inputs: vec![],
        };
        Ok((in_front, port, node))
    }

    /// Keeps all fields of a relation, which of its rows are valid, and which of its cells are null. Nothing is opened, and no row moves.
    pub(super) fn keep(
        &mut self,
        (mut rel, size): (Rel, Option<SizePort>),
        shape: &Shape,
        step: &Step,
        dataset: &str,
    ) -> Result<Node, PhysicalError> {
        let begin = self.b.passes();
        let table = self.as_table(&rel, shape, step, dataset)?;
        let ports = stored_ports(&table);
        if ports.is_empty() {
            return Err(unkept(step, "each of its rows has one public value"));
        }
        let condition = rel.condition();
        let exprs = rel.fields.clone();
        let wants = exprs.iter().chain([&condition]);
        let wants: Vec<_> = wants.map(|expr| (expr.clone(), Want::Bits)).collect();
        let (mut circuit, takes) = self.circuit(&mut rel, Ring::Bits, &wants, |of| {
            let valid = of.truth(&condition)?;
            let mut outs = Vec::new();
            if table.padded {
                outs.push(Out::Bits(vec![valid]));
            }
            for (expr, field) in exprs.iter().zip(&shape.fields) {
                let (bits, null) = of.bits_as(expr, &field.ty.kind)?;
                // Cells of rows that are not valid are zero, and so are cells that are null.
                let there = match null {
                    Some(null) => {
                        let there = of.b.not(null);
                        of.b.and(there, valid)
                    }
                    None => valid,
                };
                if !bits.is_empty() {
                    let bits = bits.into_iter().map(|bit| of.b.and(bit, there)).collect();
                    outs.push(Out::Bits(bits));
                }
                if field.ty.nullable {
                    let null = null.unwrap_or_else(|| of.b.constant_bit(false));
                    outs.push(Out::Bits(vec![of.b.and(null, valid)]));
                }
            }
            Ok(outs)
        })?;
        let mut words = Vec::new();
        for (output, port) in circuit.outputs.iter_mut().zip(&ports) {
            output.name = port_name(&table, *port);
            words.push(format!("{}: {}", step.name, output.name));
        }
        let pass = self.b.passes();
        self.b.keep(dataset, circuit, rel.rows, (takes, words));
        self.keeps.push(KeepPorts {
            step: step.name.clone(),
            dataset: dataset.to_owned(),
            pass,
            table,
            size,
        });
        Ok(Node {
            text: format!("keep {} as {dataset}", step.name),
            rows: rel.rows,
            passes: std::iter::once(begin..self.b.passes()).collect(),
            inputs: vec![],
        })
    }

    /// The relation as a table of a later job.
    fn as_table(
        &mut self,
        rel: &Rel,
        shape: &Shape,
        step: &Step,
        dataset: &str,
    ) -> Result<Table, PhysicalError> {
        let unkept = |why: String| unkept(step, &why);
        let words = self.program.kept_words(&step.name);
        let words = words.map_err(|error| unkept(error.to_string()))?;
        let mut columns = Vec::new();
        for (field, consent) in shape.fields.iter().zip(words) {
            if matches!(field.ty.kind, Kind::Ratio { .. }) {
                return Err(unkept(format!(
                    "`{}` is a quotient, which no table has; round it",
                    field.name
                )));
            }
            columns.push(Column {
                name: field.name.clone(),
                ty: field.ty.clone(),
                consent,
            });
        }
        let (sorted_by, mut unique) = self.known_order(rel);
        let sets = shape.unique.iter().filter(|set| !set.is_empty());
        unique.extend(sets.map(|set| set.iter().copied().collect::<Vec<ColumnId>>()));
        let table = Table {
            name: step.name.clone(),
            origin: Origin::Stored(dataset.into()),
            capacity: rel.rows,
            padded: !rel.valid.is_empty(),
            columns,
            sorted_by,
            unique: smallest(&unique),
        };
        table.check().map_err(|error| unkept(error.to_string()))?;
        Ok(table)
    }
}

fn unkept(step: &Step, why: &str) -> PhysicalError {
    PhysicalError::Unkept {
        step: step.name.clone(),
        why: why.into(),
    }
}

/// The sets of which none has another in it, each once and in the order of its columns.
fn smallest(sets: &[Vec<ColumnId>]) -> Vec<Vec<ColumnId>> {
    let all: BTreeSet<BTreeSet<ColumnId>> = sets
        .iter()
        .map(|set| set.iter().copied().collect())
        .collect();
    let within = |set: &&BTreeSet<ColumnId>| {
        let mut others = all.iter().filter(|other| other != set);
        !others.any(|other| other.is_subset(set))
    };
    let smallest = all.iter().filter(within);
    smallest.map(|set| set.iter().copied().collect()).collect()
}

/// The name of a port of a dataset. Names of columns have no blanks.
fn port_name(table: &Table, port: TablePort) -> String {
    let name = |column: ColumnId| &table.columns[column.index()].name;
    match port {
        TablePort::Valid => "whether a row is valid".into(),
        TablePort::Null(column) => format!("whether {} is null", name(column)),
        TablePort::Bits(column) | TablePort::Integer(column, _) => name(column).clone(),
    }
}
