//! An owner's table as input of the computation.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use veil_job::{DataError, JobSpec, Slice, Source};
use veil_math::Ring;
use veil_physical::{TablePort, TablePorts};
use veil_relation::{ColumnId, Kind, Origin, Value};

use super::{OwnerTable, Queries, claims, keys};
use crate::table::{
    Cells, Chunk, Count, Digest, Notation, Reader, Table, TableReport, Wanted, Watch,
};
use crate::{InputError, JobProblem};

/// A table of one owner: its file was checked against the job, and is read again where values are needed.
#[derive(Debug)]
pub(crate) struct OwnTable {
    of: veil_relation::Table,
    rows: u64,
    file: Table,
    /// All rows in the order that the job says, where the file cannot have it: that of digests.
    ordered: Option<Arc<Chunk>>,
}

/// The column that a port takes, if it takes one.
const fn column(port: TablePort) -> Option<ColumnId> {
    match port {
        TablePort::Valid => None,
        TablePort::Null(column) | TablePort::Bits(column) | TablePort::Integer(column, _) => {
            Some(column)
        }
    }
}

impl Queries {
    /// Whether some pass takes the table.
    pub(crate) fn is_taken(&self, table: usize) -> bool {
        self.physical
            .tables
            .iter()
            .any(|ports| ports.table == table)
    }

    /// Columns of a table that are read: those of the program, also if a column with one value is not shared, and those of claims.
    pub(crate) fn columns_read(&self, at: usize) -> Vec<usize> {
        let of = &self.tables[at].table;
        let taken = self
            .physical
            .tables
            .iter()
            .filter(|ports| ports.table == at);
        let taken = taken.flat_map(|ports| &ports.ports);
        let taken = taken.filter_map(|port| column(*port));
        let claimed = of.sorted_by.iter().chain(of.unique.iter().flatten());
        let all = taken.chain(claimed.copied()).map(ColumnId::index);
        let scanned = keys::scanned(&self.program).swap_remove(at);
        let all: std::collections::BTreeSet<usize> = all.chain(scanned).collect();
        all.into_iter().collect()
    }

    /// Reads and checks the file of a table.
    pub(crate) fn open(
        &self,
        at: usize,
        file: &Path,
        watch: Watch<'_>,
    ) -> Result<OwnTable, DataError> {
        self.opened(at, file, |wanted| Table::open(file, wanted, watch))
    }

    /// Checks a table that is given in memory.
    #[cfg(feature = "columnar")]
    pub(crate) fn open_memory(
        &self,
        at: usize,
        given: &crate::MemoryTable,
        watch: Watch<'_>,
    ) -> Result<OwnTable, DataError> {
        // What messages call it: there is no file.
        let called = format!("table `{}` in memory", self.tables[at].table.name);
        let called = Path::new(&called);
        let open = |wanted: &Wanted<'_>| Table::in_memory(called, given, wanted, watch);
        self.opened(at, called, open)
    }

    /// A table, checked as it is opened, and its claims.
    fn opened(
        &self,
        at: usize,
        file: &Path,
        open: impl FnOnce(&Wanted<'_>) -> Result<Table, DataError>,
    ) -> Result<OwnTable, DataError> {
        let table = &self.tables[at];
        let of = &table.table;
        let reader = |column: usize| table.reader(column, column, &self.salt);
        let readers = self.columns_read(at).into_iter().map(reader);
        let readers: Option<Vec<Reader>> = readers.collect();
        let wanted = Wanted {
            padded: false,
            readers: readers.ok_or_else(|| DataError::own("a column is no kind of a file"))?,
            kind: "table",
            name: &of.name,
            rows: table.rows,
            alone: true,
            delimiter: table.delimiter,
            order: None,
        };
        let read = open(&wanted)?;
        let mut own = OwnTable {
            of: of.clone(),
            rows: read.rows(),
            file: read,
            ordered: None,
        };
        let weights = self.program.weights().into_iter();
        let weights: Vec<_> = weights.filter(|weights| weights.table == at).collect();
        claims::check(&mut own, &weights, file)?;
        Ok(own)
    }
}

impl OwnTable {
    /// The table.
    pub(super) const fn of(&self) -> &veil_relation::Table {
        &self.of
    }

    /// Rows that are real.
    pub(crate) const fn rows(&self) -> u64 {
        self.rows
    }

    /// What is known of the file.
    pub(crate) fn report(&self) -> &TableReport {
        self.file.report()
    }

    /// Takes all rows into memory, in this order.
    pub(super) fn put_in_order(&mut self, order: &[u32]) -> Result<(), DataError> {
        let mut columns: Vec<Cells> = Vec::new();
        for row in order {
            let (chunk, at) = self.file.at(u64::from(*row))?;
            if columns.is_empty() {
                columns = chunk.columns.iter().map(Cells::none).collect();
            }
            for (into, from) in columns.iter_mut().zip(&chunk.columns) {
                into.push_of(from, at);
            }
        }
        let rows = order.len();
        self.ordered = Some(Arc::new(Chunk { columns, rows }));
        Ok(())
    }

    /// The part that a row is in, and where.
    fn at(&self, row: u64) -> Result<(Arc<Chunk>, usize), DataError> {
        match &self.ordered {
            Some(all) => Ok((Arc::clone(all), row as usize)),
            None => self.file.at(row),
        }
    }

    /// Hands out the cells of some columns, row after row.
    pub(super) fn each(
        &self,
        columns: &[ColumnId],
        mut each: impl FnMut(u64, &[Value]),
    ) -> Result<(), DataError> {
        let mut cells = Vec::with_capacity(columns.len());
        let mut row = 0;
        while row < self.rows {
            let (chunk, first) = self.at(row)?;
            for at in first..chunk.rows {
                cells.clear();
                cells.extend(columns.iter().map(|column| self.cell(&chunk, *column, at)));
                each(row, &cells);
                row += 1;
            }
        }
        Ok(())
    }

    /// A cell; null for a column that is not read.
    fn cell(&self, chunk: &Chunk, column: ColumnId, row: usize) -> Value {
        let Some(place) = self.file.place(column.index()) else {
            return Value::Null;
        };
        let cells = &chunk.columns[place];
        let value = match cells {
            Cells::Numbers { .. } => cells.number(row).map(|number| Value::Number(number.into())),
            Cells::Keys(_) => cells.key(row).map(Value::Key),
            // Tables of queries have no texts.
            Cells::Texts(_) => None,
            Cells::Codes(_) => cells.category(row).map(|code| {
                if self.of.columns[column.index()].ty.kind == Kind::Bool {
                    Value::Bool(code != 0)
                } else {
                    Value::Number(code.into())
                }
            }),
        };
        value.unwrap_or(Value::Null)
    }

    /// All cells of a row; the least value in columns that are not read.
    pub(crate) fn row(&self, row: u64) -> Result<Vec<Value>, DataError> {
        let (chunk, at) = self.at(row)?;
        let cell = |(index, column): (usize, &veil_relation::Column)| {
            if self.file.place(index).is_some() {
                return self.cell(&chunk, ColumnId(index as u32), at);
            }
            match &column.ty.kind {
                Kind::Bool => Value::Bool(false),
                Kind::Key { .. } => Value::Key(0),
                kind => Value::Number(kind.range().map_or(0, veil_relation::Range::min)),
            }
        };
        Ok(self.of.columns.iter().enumerate().map(cell).collect())
    }
}

/// What an owner supplies to one pass.
#[derive(Debug)]
pub(crate) struct QuerySource {
    parts: Vec<Part>,
}

/// What a table supplies.
#[derive(Debug)]
struct Part {
    table: Arc<OwnTable>,
    /// The first of its ports.
    first: usize,
    /// Each port, with the ring and the number of its wires.
    ports: Vec<(TablePort, Ring, u32)>,
    /// Whether the pass has one row, in which all of the table stand one behind the other.
    in_one: bool,
}

impl QuerySource {
    /// Of the tables that the pass takes, whose job is this: all of them in one row, or each row by itself.
    pub(crate) fn new<'a>(
        tables: impl IntoIterator<Item = (&'a Arc<OwnTable>, &'a TablePorts)>,
        job: &JobSpec,
        in_one: bool,
    ) -> Result<Self, JobProblem> {
        let part = |(table, ports): (&Arc<OwnTable>, &TablePorts)| {
            let inputs = job.circuit.inputs.get(ports.first..);
            let inputs = inputs.and_then(|inputs| inputs.get(..ports.ports.len()));
            let inputs = inputs.filter(|own| in_one || own.len() == job.circuit.inputs.len());
            let inputs = inputs.ok_or_else(|| {
                let reason = format!("pass {} takes other columns than it says", ports.pass);
                JobProblem::Unplanned(reason)
            })?;
            let wires = inputs
                .iter()
                .map(|input| (input.ring(job.circuit.ring), input.width));
            let of_each = ports.ports.iter().zip(wires);
            Ok(Part {
                table: Arc::clone(table),
                first: ports.first,
                ports: of_each
                    .map(|(port, (ring, width))| (*port, ring, width))
                    .collect(),
                in_one,
            })
        };
        let parts = tables.into_iter().map(part);
        Ok(Self {
            parts: parts.collect::<Result<_, JobProblem>>()?,
        })
    }
}

impl Source for QuerySource {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        let beyond = || DataError::out_of_reach(port, slice);
        let own = |part: &Part| part.ports.get(port.checked_sub(part.first)?).copied();
        let mut parts = self.parts.iter();
        let found = parts.find_map(|part| Some((part, own(part)?)));
        let (part, (of, ring, width)) = found.ok_or_else(beyond)?;
        let capacity = u64::from(part.table.of.capacity);
        let rows = u64::from(slice.rows);
        let wire = ring.bytes(rows) as usize;
        if slice.block != 0 || into.len() != wire * width as usize {
            return Err(beyond());
        }
        // Rows behind the last of the file are not valid: zero in all ports.
        into.fill(0);
        if part.in_one {
            // A byte for each wire, of which a row of the table has as many as the others.
            let bits = u64::from(width) / capacity.max(1);
            if (slice.first, slice.rows) != (0, 1) || bits * capacity != u64::from(width) {
                return Err(beyond());
            }
            let all = 0..capacity.min(part.table.rows);
            return part.each(of, all, |row, value| {
                let own = &mut into[row * bits as usize..][..bits as usize];
                for (bit, wire) in own.iter_mut().enumerate() {
                    *wire = (value.checked_shr(bit as u32).unwrap_or(0) & 1) as u8;
                }
            });
        }
        let end = slice.first.checked_add(rows);
        let end = end.filter(|end| *end <= capacity).ok_or_else(beyond)?;
        let all = slice.first..end.min(part.table.rows);
        part.each(of, all, |row, value| put(ring, into, wire, row, value))
    }
}

impl Part {
    /// Hands out the values of a port in some rows, which count from 0.
    fn each(
        &self,
        of: TablePort,
        rows: Range<u64>,
        mut each: impl FnMut(usize, u128),
    ) -> Result<(), DataError> {
        let table = &self.table;
        let mut cells = vec![Value::Null; table.of.columns.len()];
        let mut row = rows.start;
        while row < rows.end {
            let (chunk, first) = table.at(row)?;
            let count = (chunk.rows - first) as u64;
            let last = first + count.min(rows.end - row) as usize;
            for at in first..last {
                if let Some(column) = column(of) {
                    cells[column.index()] = table.cell(&chunk, column, at);
                }
                let value = of.value(&table.of, true, &cells);
                each((row - rows.start) as usize, value);
                row += 1;
            }
        }
        Ok(())
    }
}

/// Writes the value of a row: its bits, each to its wire, or its element.
fn put(ring: Ring, into: &mut [u8], wire: usize, row: usize, value: u128) {
    if ring == Ring::Bits {
        for (bit, wire) in into.chunks_exact_mut(wire).enumerate() {
            let set = value.checked_shr(bit as u32).unwrap_or(0) & 1;
            wire[row / 8] |= (set as u8) << (row % 8);
        }
        return;
    }
    let bytes = ring.bytes(1) as usize;
    into[row * bytes..][..bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
}

impl OwnerTable {
    /// How a column is read of its file, as column `index` of what is read; a key is a digest under this word. Nothing if it is no column of a file.
    pub(crate) fn reader(&self, index: usize, column: usize, salt: &str) -> Option<Reader> {
        let (ty, written) = (&self.table.columns[column].ty, &self.columns[column]);
        let digest = match ty.kind {
            Kind::Key { bits } => Some(Digest::new(salt, bits)),
            _ => None,
        };
        let format = written.format.as_deref();
        // What a column says goes before what its table says.
        let notation = Notation {
            marks: self.notation.marks.filter(|_| !written.marked),
            dates: self.notation.dates.clone().filter(|_| format.is_none()),
            ..self.notation.clone()
        };
        let reader = Reader::of_query(index, ty, &written.of, written.marks, format, digest);
        Some(reader?.written(&notation))
    }

    /// How many rows its file may have, in words.
    pub(crate) fn capacity(&self) -> String {
        if let Origin::First(first) = &self.table.origin {
            return format!(
                "the first {} of {} rows, of which up to {} count: how many, no participant knows",
                self.table.capacity, first.of, first.opened
            );
        }
        match self.rows {
            Count::Exact(rows) => format!("{rows} rows"),
            Count::Between(_, most) if self.holder == veil_job::Holder::Stored => {
                format!("up to {most} rows: how many, no participant knows")
            }
            Count::Between(0, most) => {
                format!("up to {most} rows: how many, the owner alone knows")
            }
            Count::Between(least, most) => {
                format!("{least} to {most} rows: how many of them, the owner alone knows")
            }
        }
    }

    /// That nothing says where its file is.
    pub(crate) fn missing(&self) -> InputError {
        InputError::NoFile {
            owner: self.table.origin.to_string(),
            what: format!("table `{}`", self.table.name),
        }
    }
}
