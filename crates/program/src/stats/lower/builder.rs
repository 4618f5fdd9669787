//! The gates of a statistics job.

use std::collections::HashMap;

use veil_circuit::{Gate, InputPort, OutputPort, Per, Reduce, Wire};

use super::Opening;
use crate::stats::{Column, Stats, monomial::Monomial, products::Splits};

/// Emits gates, each product once.
pub(super) struct Builder<'a> {
    splits: &'a Splits,
    pub(super) inputs: Vec<InputPort>,
    input_wires: u32,
    pub(super) gates: Vec<Gate>,
    /// First wire and width of each column of the job that is an input.
    columns: HashMap<usize, (u32, u32)>,
    is_number: Vec<bool>,
    wires: HashMap<Monomial, Wire>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(stats: &Stats, opening: &Opening, splits: &'a Splits) -> Self {
        let mut builder = Self {
            splits,
            inputs: Vec::new(),
            input_wires: 0,
            gates: Vec::new(),
            columns: HashMap::new(),
            is_number: stats.columns.iter().map(Column::is_number).collect(),
            wires: HashMap::new(),
        };
        for &index in &opening.columns {
            let column = &stats.columns[index];
            let width = column.width();
            builder.columns.insert(index, (builder.input_wires, width));
            builder.input_wires += width;
            builder.inputs.push(InputPort {
                name: column.name.clone(),
                width,
                per: Per::Row,
                bits: false,
            });
        }
        builder
    }

    pub(super) fn push(&mut self, gate: Gate) -> Wire {
        self.gates.push(gate);
        Wire(self.input_wires + self.gates.len() as u32 - 1)
    }

    pub(super) fn wire(&mut self, product: &Monomial) -> Wire {
        if let Some(&wire) = self.wires.get(product) {
            return wire;
        }
        let wire = if let Some((a, b)) = self.splits.get(product) {
            let (a, b) = (self.wire(a), self.wire(b));
            self.push(Gate::Mul(a, b))
        } else if let Some(column) = product.values.first() {
            Wire(self.columns[column].0)
        } else if let Some((column, value)) = product.cells.first() {
            Wire(self.columns[column].0 + u32::from(*value))
        } else {
            self.validity(product.valid[0])
        };
        self.wires.insert(product.clone(), wire);
        wire
    }

    /// A column as it is shared, for the parties' stores, under its name.
    pub(super) fn kept(&self, column: usize, name: &str) -> OutputPort {
        let (first, width) = self.columns[&column];
        OutputPort {
            name: name.to_owned(),
            wires: (first..first + width).map(Wire).collect(),
            reduce: Reduce::None,
        }
    }

    /// Ports with a value per job, by name and width, of which no gate reads anything.
    pub(super) fn once(&mut self, ports: impl Iterator<Item = (String, u32)>) {
        for (name, width) in ports {
            self.input_wires += width;
            self.inputs.push(InputPort {
                name,
                width,
                per: Per::Job,
                bits: false,
            });
        }
    }

    /// The wires of what is summed for an output port; one that is always 0 if that is nothing.
    pub(super) fn sums(&mut self, sums: &[&Monomial]) -> Vec<Wire> {
        if sums.is_empty() {
            return vec![self.push(Gate::Constant(0))];
        }
        sums.iter().map(|sum| self.wire(sum)).collect()
    }

    /// The second wire of a number; of a category, the sum of its membership bits.
    fn validity(&mut self, column: usize) -> Wire {
        let (first, width) = self.columns[&column];
        if self.is_number[column] {
            return Wire(first + 1);
        }
        (1..width).fold(Wire(first), |sum, next| {
            self.push(Gate::Add(sum, Wire(first + next)))
        })
    }
}
