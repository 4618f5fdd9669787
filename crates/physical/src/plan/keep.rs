//! Relations that parties keep as shares.

use std::collections::BTreeSet;

use veil_math::Ring;
use veil_relation::{Column, ColumnId, Kind, Origin, Shape, Step, Table};

use super::rel::Rel;
use super::rows::Out;
use super::{PhysicalError, Planner};
use crate::Node;
use crate::exprs::Want;
use crate::ports::{KeepPorts, TablePort, stored_ports};

impl Planner<'_> {
    /// Keeps all fields of a relation, which of its rows are valid, and which of its cells are null. Nothing is opened, and no row moves.
    pub(super) fn keep(
        &mut self,
        mut rel: Rel,
        shape: &Shape,
        step: &Step,
    ) -> Result<Node, PhysicalError> {
        let dataset = step.keep.clone().unwrap_or_default();
        let begin = self.b.passes();
        let table = self.as_table(&rel, shape, step, &dataset)?;
        let ports = stored_ports(&table);
        let unkept = |why: &str| PhysicalError::Unkept {
            step: step.name.clone(),
            why: why.into(),
        };
        if ports.is_empty() {
            return Err(unkept("each of its rows has one public value"));
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
        self.b.keep(&dataset, circuit, rel.rows, (takes, words));
        self.keeps.push(KeepPorts {
            step: step.name.clone(),
            dataset: dataset.clone(),
            pass,
            table,
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
        let unkept = |why: String| PhysicalError::Unkept {
            step: step.name.clone(),
            why,
        };
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
