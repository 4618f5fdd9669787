//! Writes programs of passes.

use std::collections::HashMap;
use std::sync::Arc;

use veil_circuit::{Circuit, Per};
use veil_job::passes::{ColumnForm, ColumnId, MoveKind, PassSpec, ProgramSpec, Take};
use veil_job::{Audience, Block, Holder, InputSpec, JobSpec, Security};
use veil_math::Ring;

/// Who takes part in a program, and how it is protected.
#[derive(Clone, Debug)]
pub struct Participants {
    /// Name of the job.
    pub name: String,
    /// Outside owners.
    pub owners: Vec<String>,
    /// Computing parties.
    pub parties: Vec<String>,
    /// Outside recipients.
    pub recipients: Vec<String>,
    /// The protocol.
    pub security: Security,
}

/// How the values of a column are shared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sharing {
    /// So many bits, 1 to 128.
    Bits(u32),
    /// An integer.
    Ring(Ring),
}

impl Sharing {
    /// The form of its column.
    ///
    /// # Panics
    /// If it is no or too many bits.
    pub fn form(self) -> ColumnForm {
        match self {
            Sharing::Bits(bits) => ColumnForm::of_bits(bits).expect("1 to 128 bits"),
            Sharing::Ring(ring) => ColumnForm::Ring(ring),
        }
    }

    /// The ring of a circuit whose values it is of, and the wires of a port.
    fn port(self) -> (Ring, u32) {
        match self {
            Sharing::Bits(bits) => (Ring::Bits, bits),
            Sharing::Ring(ring) => (ring, 1),
        }
    }
}

/// A column of a relation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shared {
    pub(crate) column: ColumnId,
    pub(crate) rows: u32,
    pub(crate) sharing: Sharing,
}

impl Shared {
    /// Rows.
    pub const fn rows(&self) -> u32 {
        self.rows
    }

    /// How its values are shared.
    pub const fn sharing(&self) -> Sharing {
        self.sharing
    }
}

/// A permutation by which rows have moved, opened. It can be undone.
#[derive(Debug)]
pub struct Opened {
    /// Where each row is that has moved.
    pub(crate) positions: ColumnId,
    pub(crate) factors: ColumnId,
    pub(crate) rotation: u8,
}

impl Opened {
    /// What a move by it takes.
    const fn of(&self, kind: MoveKind) -> (u8, MoveKind, Option<ColumnId>, Option<ColumnId>) {
        (
            self.rotation,
            kind,
            Some(self.factors),
            Some(self.positions),
        )
    }
}

/// Writes a program, pass after pass.
#[derive(Debug)]
pub struct Builder {
    of: Participants,
    passes: Vec<PassSpec>,
    columns: u32,
    moves: u8,
    /// Jobs of passes that are needed again and again.
    pub(crate) known: HashMap<(&'static str, u32, u32), Arc<JobSpec>>,
}

impl Builder {
    /// An empty program.
    pub fn new(of: Participants) -> Self {
        Builder {
            of,
            passes: Vec::new(),
            columns: 0,
            moves: 0,
            known: HashMap::new(),
        }
    }

    /// The program so far.
    pub fn finish(self) -> ProgramSpec {
        ProgramSpec {
            passes: self.passes,
        }
    }

    pub(crate) fn column(&mut self) -> ColumnId {
        self.columns += 1;
        ColumnId(self.columns - 1)
    }

    /// A column of `rows` values that `holder` supplies.
    ///
    /// # Panics
    /// If there are no rows.
    pub fn input(&mut self, holder: Holder, name: &str, rows: u32, sharing: Sharing) -> Shared {
        assert!(rows > 0, "a relation has rows");
        let mut job = self.job(passing(sharing), rows, vec![holder], vec![Audience::Column]);
        job.inputs = vec![InputSpec {
            holder,
            block: None,
            column: Some(name.into()),
            port: Some("x".into()),
            format: match sharing {
                Sharing::Bits(bits) => format!("integer of {bits} bits"),
                Sharing::Ring(ring) => format!("integer of {}", ring.name()),
            },
        }];
        let column = self.column();
        self.passes.push(PassSpec::Rows {
            job: Arc::new(job),
            takes: vec![None],
            leaves: vec![Some(column)],
        });
        Shared {
            column,
            rows,
            sharing,
        }
    }

    /// Opens columns of one relation in every row: a pass for each, in their order.
    pub fn open(&mut self, columns: &[Shared], to: Audience, what: &str) {
        for moved in columns {
            let circuit = passing(moved.sharing);
            let mut job = self.job(circuit, moved.rows, vec![Holder::Column], vec![to]);
            job.opened = vec![what.into()];
            self.passes.push(PassSpec::Rows {
                job: Arc::new(job),
                takes: vec![Some(Take::Of(moved.column))],
                leaves: vec![None],
            });
        }
    }

    /// A circuit in every row: one column for each output port. Its input ports take what is said.
    pub(crate) fn rows(&mut self, job: &Arc<JobSpec>, takes: Vec<Take>) -> Vec<ColumnId> {
        let left = (0..job.circuit.outputs.len()).map(|_| self.column());
        let left: Vec<ColumnId> = left.collect();
        self.passes.push(PassSpec::Rows {
            job: Arc::clone(job),
            takes: takes.into_iter().map(Some).collect(),
            leaves: left.iter().copied().map(Some).collect(),
        });
        left
    }

    /// The job of a circuit over columns alone.
    pub(crate) fn computed(&self, circuit: Circuit, rows: u32) -> JobSpec {
        let holders = vec![Holder::Column; circuit.inputs.len()];
        let audiences = vec![Audience::Column; circuit.outputs.len()];
        self.job(circuit, rows, holders, audiences)
    }

    fn job(
        &self,
        circuit: Circuit,
        rows: u32,
        holders: Vec<Holder>,
        audiences: Vec<Audience>,
    ) -> JobSpec {
        let of = &self.of;
        JobSpec {
            name: of.name.clone(),
            owners: of.owners.clone(),
            parties: of.parties.clone(),
            recipients: of.recipients.clone(),
            security: of.security,
            schema: String::new(),
            totals: None,
            blocks: vec![Block {
                name: "rows".into(),
                rows: rows.into(),
                holders,
                stored: None,
                order: veil_job::Order::Unsaid,
            }],
            opened: audiences.iter().map(|_| "nothing".into()).collect(),
            audiences,
            inputs: Vec::new(),
            datasets: Vec::new(),
            keep: None,
            circuit,
        }
    }

    /// Moves columns by a permutation that no party knows: their rows, in no order that a party knows.
    ///
    /// # Panics
    /// If there are no columns, or they have not one number of rows.
    pub fn shuffle(&mut self, columns: &[Shared]) -> Vec<Shared> {
        let rows = rows_of(columns);
        let rotation = self.rotation();
        let parts = grouped(rows, columns, 0);
        let factors = (parts.len() > 1).then(|| self.column());
        let mut all = Vec::new();
        for (kind, part) in std::iter::once(MoveKind::There)
            .chain(std::iter::repeat(MoveKind::Along))
            .zip(parts)
        {
            let by = (rotation, kind, factors, None);
            all.extend(self.moved(rows, by, takes(part)));
        }
        let moved = columns.iter().zip(all);
        moved
            .map(|(moved, column)| Shared { column, ..*moved })
            .collect()
    }

    /// A move without an opening: a column for each that it takes.
    fn moved(
        &mut self,
        rows: u32,
        (rotation, kind, factors, positions): (u8, MoveKind, Option<ColumnId>, Option<ColumnId>),
        takes: Vec<(Take, ColumnForm)>,
    ) -> Vec<ColumnId> {
        let left: Vec<ColumnId> = takes.iter().map(|_| self.column()).collect();
        self.passes.push(PassSpec::Move {
            rows,
            rotation,
            kind,
            takes,
            leaves: left.iter().copied().map(Some).collect(),
            factors,
            positions,
        });
        left
    }

    /// Moves positions, which are a permutation, by one that no party knows, and opens them; what is taken beside moves with them, and is put in their order. It is an opening of a
    /// fresh permutation, always.
    pub(crate) fn open_positions(
        &mut self,
        rows: u32,
        positions: ColumnId,
        beside: Vec<(Take, ColumnForm)>,
    ) -> (Opened, Vec<ColumnId>) {
        let rotation = self.rotation();
        let left: Vec<ColumnId> = beside.iter().map(|_| self.column()).collect();
        let opened = Opened {
            positions: self.column(),
            factors: self.column(),
            rotation,
        };
        let mut takes = vec![(Take::Of(positions), ColumnForm::Ring(Ring::Z32))];
        takes.extend(beside);
        let leaves = std::iter::once(None).chain(left.iter().copied().map(Some));
        self.passes.push(PassSpec::Move {
            rows,
            rotation,
            kind: MoveKind::Open,
            takes,
            leaves: leaves.collect(),
            factors: Some(opened.factors),
            positions: Some(opened.positions),
        });
        (opened, left)
    }

    /// Moves columns by the permutation by which positions have moved before they were opened, and puts them in their order.
    pub(crate) fn move_along(
        &mut self,
        rows: u32,
        by: &Opened,
        takes: Vec<(Take, ColumnForm)>,
    ) -> Vec<ColumnId> {
        self.moved(rows, by.of(MoveKind::Along), takes)
    }

    /// Takes columns out of the order of opened positions, and moves them back.
    pub(crate) fn go_back(
        &mut self,
        rows: u32,
        by: &Opened,
        takes: Vec<(Take, ColumnForm)>,
    ) -> Vec<ColumnId> {
        self.moved(rows, by.of(MoveKind::Back), takes)
    }

    fn rotation(&mut self) -> u8 {
        let rotation = self.moves;
        self.moves = self.moves.wrapping_add(1) % 12;
        rotation
    }
}

/// Bytes of a column of a move, at most, that moves together with others: a move has a message, and room in memory, for each.
const TOGETHER: u64 = 4 << 20;

/// Columns that move in one pass each: together as far as they have few bytes, of which the first pass has `first` already.
pub(crate) fn grouped(rows: u32, columns: &[Shared], first: u64) -> Vec<&[Shared]> {
    let mut parts = Vec::new();
    let (mut begin, mut bytes) = (0, first * u64::from(rows));
    for (at, moved) in columns.iter().enumerate() {
        let more = moved.sharing.form().bytes() * u64::from(rows);
        if bytes + more > TOGETHER && (at > begin || bytes > 0) {
            parts.push(&columns[begin..at]);
            (begin, bytes) = (at, 0);
        }
        bytes += more;
    }
    parts.push(&columns[begin..]);
    if first == 0 {
        parts.retain(|part| !part.is_empty());
    }
    parts
}

/// What a move takes of columns.
pub(crate) fn takes(columns: &[Shared]) -> Vec<(Take, ColumnForm)> {
    let takes = columns.iter();
    takes
        .map(|shared| (Take::Of(shared.column), shared.sharing.form()))
        .collect()
}

/// The rows of columns of one relation.
pub(crate) fn rows_of(columns: &[Shared]) -> u32 {
    let rows = columns.first().expect("a move is of columns").rows;
    assert!(
        columns.iter().all(|moved| moved.rows == rows),
        "columns of one relation have one number of rows"
    );
    rows
}

/// The circuit that puts out what it takes.
fn passing(sharing: Sharing) -> Circuit {
    let (ring, width) = sharing.port();
    let mut b = veil_circuit::Builder::new(ring);
    let x = b.input("x", width, Per::Row);
    b.output("z", &x);
    b.finish().expect("a circuit of ports alone")
}
