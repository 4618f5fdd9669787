//! Writes programs of passes.

use std::collections::HashMap;
use std::sync::Arc;

use veil_circuit::generate::{Aim, any};
use veil_circuit::{Circuit, Per, Reduce};
use veil_job::passes::{ColumnForm, ColumnId, MadeSpec, PassSpec, ProgramSpec, Take};
use veil_job::{
    Audience, Block, DatasetRef, Holder, InputSpec, JobSpec, Keep, ProtocolKind, Security,
};
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

    /// Its number in the program.
    pub const fn column(&self) -> ColumnId {
        self.column
    }

    /// What a pass takes of it.
    pub const fn take(&self) -> Take {
        Take::Of(self.column)
    }

    /// So many rows of it from row `first` on, for a pass of so many rows: zeros where it has none.
    pub fn rows_from(&self, first: i64) -> Take {
        Take::shifted(self.column, first)
    }
}

/// Jobs of circuits that are needed again, by the circuit's hash and the number of rows.
type Known = HashMap<([u8; 32], u32), (Arc<JobSpec>, Vec<Left>)>;

/// What an output port leaves.
#[derive(Clone, Copy, Debug)]
struct Left {
    sharing: Sharing,
    /// Whether it is one row, the sum over all.
    sum: bool,
}

/// Writes a program, pass after pass.
#[derive(Debug)]
pub struct Builder {
    of: Participants,
    pub(crate) passes: Vec<PassSpec>,
    made: Vec<MadeSpec>,
    columns: u32,
    pub(crate) moves: u8,
    known: Known,
    /// Jobs of comparisons, by the bits of words and how many are compared at once.
    pub(crate) comparing: HashMap<(Vec<u32>, u32), Arc<JobSpec>>,
}

impl Builder {
    /// An empty program.
    pub fn new(of: Participants) -> Self {
        Builder {
            of,
            passes: Vec::new(),
            made: Vec::new(),
            columns: 0,
            moves: 0,
            known: HashMap::new(),
            comparing: HashMap::new(),
        }
    }

    /// The program so far.
    pub fn finish(self) -> ProgramSpec {
        ProgramSpec {
            passes: self.passes,
            made: self.made,
        }
    }

    /// Passes so far: the number of the next one.
    pub fn passes(&self) -> usize {
        self.passes.len()
    }

    /// Who takes part.
    pub const fn participants(&self) -> &Participants {
        &self.of
    }

    /// Whether the program is for two parties, which compute it as one circuit of bits: no row moves, a sort is a network, and an AND costs the same wherever it is.
    pub fn is_garbled(&self) -> bool {
        self.of.security.protocol == ProtocolKind::Yao
    }

    /// What circuits in rows keep small.
    pub(crate) fn aim(&self) -> Aim {
        if self.is_garbled() {
            Aim::Size
        } else {
            Aim::Depth
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
            claim: None,
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
                claim: None,
            });
        }
    }

    /// A circuit in every one of `rows` rows, whose input ports take what is said: a column for each output port, of one row for a sum over the rows.
    ///
    /// # Panics
    /// If there are not as many takes as ports, or an output is none of a column: one integer, or 1 to 128 bits.
    pub fn compute(&mut self, circuit: Circuit, rows: u32, takes: Vec<Take>) -> Vec<Shared> {
        assert_eq!(takes.len(), circuit.inputs.len(), "a take for each port");
        let key = (circuit.canonical_hash(), rows);
        let known = if let Some(known) = self.known.get(&key) {
            known.clone()
        } else {
            let left = left_by(&circuit);
            let known = (Arc::new(self.computed(circuit, rows)), left);
            self.known.insert(key, known.clone());
            known
        };
        let (job, left) = known;
        let all = self.columns_of(&left, rows);
        self.passes.push(PassSpec::Rows {
            job,
            takes: takes.into_iter().map(Some).collect(),
            leaves: all.iter().map(|left| Some(left.column)).collect(),
            claim: None,
        });
        all
    }

    /// A column of `rows` rows that each party makes of others by itself.
    ///
    /// # Panics
    /// If there are no rows.
    pub fn make(&mut self, take: Take, rows: u32, sharing: Sharing) -> Shared {
        assert!(rows > 0, "a relation has rows");
        let column = self.column();
        self.made.push(MadeSpec {
            before: self.passes.len() as u32,
            take,
            form: sharing.form(),
            rows,
            column,
        });
        Shared {
            column,
            rows,
            sharing,
        }
    }

    /// One row with the bit whether any row of a column of bits is 1.
    ///
    /// # Panics
    /// If the column is not of single bits.
    pub fn any(&mut self, bit: Shared) -> Shared {
        assert_eq!(bit.sharing, Sharing::Bits(1), "a bit in each row");
        let mut of = bit;
        while of.rows > 1 {
            let mut b = veil_circuit::Builder::new(Ring::Bits);
            let bits: Vec<_> = (0..FAN_IN)
                .map(|k| b.input(format!("bit{k}"), 1, Per::Row)[0])
                .collect();
            let all = any(&mut b, &bits);
            b.output("any", &[all]);
            let takes = (0..FAN_IN).map(|first| Take::Rows {
                of: vec![of.column],
                first: first.into(),
                step: FAN_IN as i32,
            });
            let circuit = b.finish().expect("gates in their order");
            of = self.compute(circuit, of.rows.div_ceil(FAN_IN), takes.collect())[0];
        }
        of
    }

    /// One row with the number of rows of a column of bits that are 1, modulo 2^32.
    ///
    /// # Panics
    /// If the column is not of single bits.
    pub fn count(&mut self, bit: Shared) -> Shared {
        assert_eq!(bit.sharing, Sharing::Bits(1), "a bit in each row");
        let mut b = veil_circuit::Builder::new(Ring::Z32);
        let wire = b.input_bits("bit", 1)[0];
        let one = b.lift(wire);
        b.output_sum("count", &[one]);
        let circuit = b.finish().expect("gates in their order");
        self.compute(circuit, bit.rows, vec![bit.take()])[0]
    }

    /// Opens one bit to the parties, whether any row of a column of bits is 1; the run ends if one is, and says that `what` is false.
    ///
    /// # Panics
    /// As [`Builder::any`].
    pub fn claim_none(&mut self, bit: Shared, what: &str) {
        let one = self.any(bit);
        let circuit = passing(one.sharing);
        let mut job = self.job(circuit, 1, vec![Holder::Column], vec![Audience::Parties]);
        job.opened = vec![format!("whether this is false: {what}")];
        self.passes.push(PassSpec::Rows {
            job: Arc::new(job),
            takes: vec![Some(one.take())],
            leaves: vec![None],
            claim: Some(what.into()),
        });
    }

    /// Opens what a circuit computes in every row, by output port, to one audience; `opened` says in words what each is.
    ///
    /// # Panics
    /// If there are not as many takes as input ports, or words as output ports.
    pub fn open_computed(
        &mut self,
        circuit: Circuit,
        rows: u32,
        takes: Vec<Take>,
        (to, opened): (Audience, Vec<String>),
    ) {
        assert_eq!(takes.len(), circuit.inputs.len(), "a take for each port");
        assert_eq!(opened.len(), circuit.outputs.len(), "words for each port");
        let (holders, audiences) = (vec![Holder::Column; takes.len()], vec![to; opened.len()]);
        let leaves = vec![None; opened.len()];
        let mut job = self.job(circuit, rows, holders, audiences);
        job.opened = opened;
        self.passes.push(PassSpec::Rows {
            job: Arc::new(job),
            takes: takes.into_iter().map(Some).collect(),
            leaves,
            claim: None,
        });
    }

    /// What `holder` supplies in every row to a circuit, port by port, and a column for each output port. `ports` say in words what each input port is, and how
    /// it is read.
    ///
    /// # Panics
    /// If there are not as many words as input ports, or an output is none of a column.
    pub fn supplied(
        &mut self,
        holder: Holder,
        circuit: Circuit,
        rows: u32,
        ports: &[(String, String)],
    ) -> Vec<Shared> {
        let left = left_by(&circuit);
        let job = self.supplying(holder, circuit, rows, ports);
        self.leaving(job, &left, rows)
    }

    /// What parties load in every row into a circuit, port by port, from a dataset at rest, and a column for each output port. `ports` say in words what
    /// each input port is and how it is read, and which port of the dataset it loads. The dataset has `of` rows, of which the first `rows` are loaded.
    ///
    /// # Panics
    /// As [`Builder::supplied`], or if the dataset has fewer rows.
    pub fn loaded(
        &mut self,
        (dataset, of): (&str, u32),
        circuit: Circuit,
        rows: u32,
        ports: &[((String, String), usize)],
    ) -> Vec<Shared> {
        assert!(rows <= of, "a dataset has the rows that are loaded");
        let words: Vec<_> = ports.iter().map(|(words, _)| words.clone()).collect();
        let left = left_by(&circuit);
        let mut job = self.supplying(Holder::Stored, circuit, rows, &words);
        job.blocks[0].stored = Some(dataset.into());
        job.datasets = vec![DatasetRef {
            name: dataset.into(),
            block: 0,
            ports: ports.iter().map(|(_, kept)| *kept).enumerate().collect(),
            schema: String::new(),
            rows: of.into(),
        }];
        self.leaving(job, &left, rows)
    }

    /// Keeps what a circuit computes in every row, as a dataset at rest: a port of it for each output port. What the columns mean is for the caller to say, in
    /// the job of the pass. Nothing of it is complete before the program's end, whose last pass is one that keeps something.
    ///
    /// # Panics
    /// If there are not as many takes as input ports, or words as output ports.
    pub fn keep(
        &mut self,
        dataset: &str,
        circuit: Circuit,
        rows: u32,
        (takes, kept): (Vec<Take>, Vec<String>),
    ) {
        assert_eq!(takes.len(), circuit.inputs.len(), "a take for each port");
        assert_eq!(kept.len(), circuit.outputs.len(), "words for each port");
        let (holders, audiences) = (
            vec![Holder::Column; takes.len()],
            vec![Audience::Stored; kept.len()],
        );
        let leaves = vec![None; kept.len()];
        let mut job = self.job(circuit, rows, holders, audiences);
        job.opened = kept;
        job.keep = Some(Keep {
            name: dataset.into(),
            schema: String::new(),
        });
        self.passes.push(PassSpec::Rows {
            job: Arc::new(job),
            takes: takes.into_iter().map(Some).collect(),
            leaves,
            claim: None,
        });
    }

    /// The job of a pass in which `holder` supplies every input port, and every output port leaves a column.
    fn supplying(
        &self,
        holder: Holder,
        circuit: Circuit,
        rows: u32,
        ports: &[(String, String)],
    ) -> JobSpec {
        assert_eq!(ports.len(), circuit.inputs.len(), "words for each port");
        let names: Vec<String> = circuit
            .inputs
            .iter()
            .map(|port| port.name.clone())
            .collect();
        let (holders, audiences) = (
            vec![holder; ports.len()],
            vec![Audience::Column; circuit.outputs.len()],
        );
        let mut job = self.job(circuit, rows, holders, audiences);
        let inputs = names.into_iter().zip(ports);
        job.inputs = inputs
            .map(|(port, (column, format))| InputSpec {
                holder,
                block: None,
                column: Some(column.clone()),
                port: Some(port),
                format: format.clone(),
            })
            .collect();
        job
    }

    /// The pass of such a job.
    fn leaving(&mut self, job: JobSpec, left: &[Left], rows: u32) -> Vec<Shared> {
        let all = self.columns_of(left, rows);
        self.passes.push(PassSpec::Rows {
            takes: vec![None; job.circuit.inputs.len()],
            job: Arc::new(job),
            leaves: all.iter().map(|left| Some(left.column)).collect(),
            claim: None,
        });
        all
    }

    /// Columns for what the output ports of a circuit leave.
    fn columns_of(&mut self, left: &[Left], rows: u32) -> Vec<Shared> {
        let all = left.iter().map(|Left { sharing, sum }| Shared {
            column: self.column(),
            rows: if *sum { 1 } else { rows },
            sharing: *sharing,
        });
        all.collect()
    }

    /// The job of a circuit over columns alone.
    fn computed(&self, circuit: Circuit, rows: u32) -> JobSpec {
        let holders = vec![Holder::Column; circuit.inputs.len()];
        let audiences = vec![Audience::Column; circuit.outputs.len()];
        self.job(circuit, rows, holders, audiences)
    }

    pub(crate) fn job(
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
}

/// Rows that are brought together by one gate of a circuit.
const FAN_IN: u32 = 16;

/// What the output ports of a circuit leave.
fn left_by(circuit: &Circuit) -> Vec<Left> {
    let rings = circuit.rings();
    let outputs = circuit.outputs.iter().map(|port| Left {
        sharing: match circuit.output_ring(port, &rings) {
            Ring::Bits => Sharing::Bits(port.wires.len() as u32),
            ring => {
                assert_eq!(port.wires.len(), 1, "a column is of one integer");
                Sharing::Ring(ring)
            }
        },
        sum: port.reduce == Reduce::Sum,
    });
    outputs.collect()
}

/// The circuit that puts out what it takes.
fn passing(sharing: Sharing) -> Circuit {
    let (ring, width) = sharing.port();
    let mut b = veil_circuit::Builder::new(ring);
    let x = b.input("x", width, Per::Row);
    b.output("z", &x);
    b.finish().expect("a circuit of ports alone")
}
