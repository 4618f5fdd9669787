//! What goes in and what comes out, and what is at rest between jobs: the values of ports, of the cells of tables and of results.

use veil_math::Ring;
use veil_relation::{Bucket, ColumnId, Field, Kind, SortKey, Table, Value};

/// What an input port of a table takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TablePort {
    /// Whether a row is valid: one bit.
    Valid,
    /// Whether a cell is null: one bit.
    Null(ColumnId),
    /// A cell as bits, less the least value of its column; 0 where it is null.
    Bits(ColumnId),
    /// A cell as an integer of a ring; 0 where it is null.
    Integer(ColumnId, Ring),
}

impl TablePort {
    /// The value of the port in a row: its bits, the lowest on the first wire, or its integer. A row that is not valid is zero, whatever its cells are.
    ///
    /// A cell is of its column's type: the reader of a table looks whether it is.
    #[must_use]
    pub fn value(self, table: &Table, valid: bool, row: &[Value]) -> u128 {
        if !valid {
            return 0;
        }
        let kind = |column: ColumnId| &table.columns[column.index()].ty.kind;
        match self {
            Self::Valid => 1,
            Self::Null(column) => u128::from(row[column.index()] == Value::Null),
            Self::Bits(column) => bits(kind(column), row[column.index()]),
            Self::Integer(column, ring) => match row[column.index()] {
                Value::Number(number) => ring.reduce(number.cast_unsigned()),
                Value::Bool(bit) => bit.into(),
                Value::Key(_) | Value::Ratio(..) | Value::Null => 0,
            },
        }
    }
}

/// A cell as bits, less the least value of its kind.
fn bits(kind: &Kind, cell: Value) -> u128 {
    let least = kind.range().map_or(0, veil_relation::Range::min);
    match cell {
        Value::Number(number) => number.wrapping_sub(least).cast_unsigned(),
        Value::Bool(bit) => bit.into(),
        Value::Key(key) => key,
        Value::Ratio(..) | Value::Null => 0,
    }
}

/// What the ports of a dataset are that has all of a table, in their order: whether a row is valid, if not all are; then of each column its bits, if it has any,
/// and whether a cell is null, if one may be.
#[must_use]
pub fn stored_ports(table: &Table) -> Vec<TablePort> {
    let columns = (0..).map(ColumnId).zip(&table.columns);
    let of_each = columns.flat_map(|(at, column)| {
        let has_bits = column.ty.kind.bits().is_some_and(|bits| bits > 0);
        let bits = has_bits.then_some(TablePort::Bits(at));
        let null = column.ty.nullable.then_some(TablePort::Null(at));
        bits.into_iter().chain(null)
    });
    let valid = table.padded.then_some(TablePort::Valid);
    valid.into_iter().chain(of_each).collect()
}

/// The pass in which parties keep a relation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeepPorts {
    /// The step.
    pub step: String,
    /// The name of the dataset.
    pub dataset: String,
    /// The number of the pass, whose block is the relation's rows and whose output ports are the [`stored_ports`] of the table.
    pub pass: usize,
    /// The relation, as a later job has it as a table: columns and their owners' words, rows, and what is known of them.
    pub table: Table,
    /// What is opened of how many of its rows are valid, if anything is.
    pub size: Option<SizePort>,
}

/// The pass that opens to the parties which bucket a number of valid rows is in: one row, whose one port is the [number](Bucket::number).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizePort {
    /// The number of the pass.
    pub pass: usize,
    /// The buckets.
    pub bucket: Bucket,
    /// Rows of the relation.
    pub capacity: u32,
}

impl SizePort {
    /// The opened size, if this number is one of a relation of so many rows.
    #[must_use]
    pub fn rows(&self, number: u32) -> Option<u32> {
        let most = self.bucket.number(self.capacity);
        (number <= most).then(|| self.bucket.rows(number, self.capacity))
    }
}

/// The pass in which an owner supplies columns of a table, or parties load them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TablePorts {
    /// The table, by its place in the program of the algebra.
    pub table: usize,
    /// The number of the pass, whose block is the table's rows; between two parties one row, in which the rows of a port stand one behind the other.
    pub pass: usize,
    /// The first of its input ports, in the job of the pass.
    pub first: usize,
    /// What its input ports take, in their order.
    pub ports: Vec<TablePort>,
}

/// What an output port of a result gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultPort {
    /// Whether a row is valid: one bit. All else is zero in rows that are not.
    Valid,
    /// Whether a cell of a field is null: one bit.
    Null(usize),
    /// A cell of a field as bits, less the least value of its kind.
    Bits(usize),
    /// In the first row, whether a bound has left out rows: one bit, which is no part of the row. 0 in all others.
    Incomplete,
}

/// The pass in which a relation is opened to a recipient.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResultPorts {
    /// The step.
    pub step: String,
    /// The recipient's name.
    pub to: String,
    /// The number of the pass, whose block is the relation's rows; between two parties one row, in which the rows of a port stand one behind the other.
    pub pass: usize,
    /// The first of its output ports, in the job of the pass.
    pub first: usize,
    /// Rows of the relation.
    pub rows: u32,
    /// What its output ports give, in their order.
    pub ports: Vec<ResultPort>,
    /// The columns.
    pub fields: Vec<Field>,
    /// By which the recipient orders the rows, if they come in no order of their own: keys over the fields, then all columns, nulls last.
    pub order: Option<Vec<SortKey>>,
}

impl ResultPorts {
    /// The cells of a row of opened values, one for each port; nothing for a row that is not valid.
    #[must_use]
    pub fn cells(&self, values: &[u128]) -> Option<Vec<Value>> {
        let mut cells: Vec<Value> = self.fields.iter().map(|field| of_bits(field, 0)).collect();
        for (port, value) in self.ports.iter().zip(values) {
            match *port {
                ResultPort::Valid if *value == 0 => return None,
                ResultPort::Bits(field) => cells[field] = of_bits(&self.fields[field], *value),
                ResultPort::Valid | ResultPort::Null(_) | ResultPort::Incomplete => {}
            }
        }
        for (port, value) in self.ports.iter().zip(values) {
            if let ResultPort::Null(field) = *port
                && *value != 0
            {
                cells[field] = Value::Null;
            }
        }
        Some(cells)
    }

    /// Whether a bound has left out rows, by the opened values of the first row, one for each port; nothing where no bound says so.
    #[must_use]
    pub fn incomplete(&self, first: &[u128]) -> Option<bool> {
        let mut ports = self.ports.iter().zip(first);
        let flag = ports.find(|(port, _)| **port == ResultPort::Incomplete);
        flag.map(|(_, value)| *value != 0)
    }
}

/// A cell of bits, to which the least value of its kind is added.
fn of_bits(field: &Field, bits: u128) -> Value {
    match &field.ty.kind {
        Kind::Bool => Value::Bool(bits != 0),
        Kind::Key { .. } => Value::Key(bits),
        kind => {
            let least = kind.range().map_or(0, veil_relation::Range::min);
            Value::Number(least.wrapping_add(bits.cast_signed()))
        }
    }
}
