//! What a participant does in a run, counted from its plan: how often, and on how many bytes.

use std::ops::{Add, AddAssign, Mul};

use veil_circuit::Per;
use veil_device::{Ag, ColumnType, Command, Garbling, Instr, Layout, Op, Program, ProgramId, Span};
use veil_link::HEADER_BYTES;
use veil_math::Ring;
use veil_protocol::{Cleared, Cost, Plan, Protocol, Round, Task, WorkspaceOf};
use veil_session::Frame;

use super::{KINDS, Kind, Rates};

/// Rounds of a sequential circuit that are counted one by one: its other cycles do as much as these on average.
const ROUNDS_COUNTED: u64 = 1 << 12;

/// Bytes of a vector of the device.
const VECTOR: u64 = 64;
/// Bytes of a word: proofs count 64 rows at once.
const WORD: u64 = 8;

/// Units of work of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work([u64; KINDS]);

impl Default for Work {
    fn default() -> Self {
        Work([0; KINDS])
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        for (units, more) in self.0.iter_mut().zip(other.0) {
            *units = units.saturating_add(more);
        }
    }
}

impl Add for Work {
    type Output = Work;
    fn add(mut self, other: Work) -> Work {
        self += other;
        self
    }
}

impl Mul<u64> for Work {
    type Output = Work;
    fn mul(self, times: u64) -> Work {
        Work(self.0.map(|units| units.saturating_mul(times)))
    }
}

impl Work {
    /// Units of a kind.
    pub const fn units(&self, kind: Kind) -> u64 {
        self.0[kind as usize]
    }

    /// Seconds of one core.
    pub fn seconds(&self, rates: &Rates) -> f64 {
        let kinds = self.0.iter().zip(&rates.seconds);
        kinds.map(|(units, seconds)| *units as f64 * seconds).sum()
    }

    /// What the participant that runs `protocol` does, from the first message of a run to the last.
    pub fn of(plan: &Plan, protocol: &dyn Protocol) -> Self {
        Counter {
            plan,
            protocol,
            programs: protocol.programs().iter().map(|p| Code::of(p)).collect(),
        }
        .all()
    }

    /// What it does in the chunks of a pass after the first.
    pub fn of_pass(plan: &Plan, protocol: &dyn Protocol) -> Self {
        let counter = Counter {
            plan,
            protocol,
            programs: protocol.programs().iter().map(|p| Code::of(p)).collect(),
        };
        let mut work = counter.chunks();
        let loaded: u64 = counter.programs.iter().map(|code| code.instructions).sum();
        work.count(Kind::Loaded, loaded * u64::from(plan.lanes));
        work.count(Kind::Value, counter.values());
        work
    }

    /// What it does when rows move, or matrices are multiplied.
    pub fn of_move(protocol: &dyn Protocol, frame: Frame) -> Self {
        let workspace = Workspace {
            layout: protocol.layout(WorkspaceOf::Rows),
            rows: frame.rows,
        };
        let mut work = Work::default();
        work.count(Kind::Workspace, workspace.size());
        let mut flow = protocol.flow(Task::Layers, frame);
        while let Some(round) = flow.next() {
            work += round_of(&round, workspace, &[]);
        }
        work
    }

    fn count(&mut self, kind: Kind, units: u64) {
        let sum = &mut self.0[kind as usize];
        *sum = sum.saturating_add(units);
    }

    /// Messages that are sent, and as many that come.
    fn exchange(&mut self, cost: Cost) {
        self.count(Kind::Message, 2 * cost.messages);
        self.count(Kind::Sent, 2 * (cost.bytes + HEADER_BYTES * cost.messages));
    }
}

/// What a program does in each row.
struct Code {
    ring: Ring,
    slots: u16,
    instructions: u64,
    /// Linear ones.
    linear: u64,
    /// Pairs of operands of products, and products.
    pairs: u64,
    products: u64,
}

impl Code {
    fn of(program: &Program) -> Self {
        let mut code = Code {
            ring: program.ring,
            slots: program.slots,
            instructions: program.code.len() as u64,
            linear: 0,
            pairs: 0,
            products: 0,
        };
        for instr in &program.code {
            match instr {
                Instr::Product { pairs, .. } => {
                    code.pairs += u64::from(pairs.end - pairs.start);
                    code.products += 1;
                }
                Instr::ProductSum { pairs, .. } => code.pairs += u64::from(pairs.end - pairs.start),
                _ => code.linear += 1,
            }
        }
        code
    }
}

/// A workspace: its regions, and its rows.
#[derive(Clone, Copy)]
struct Workspace<'a> {
    layout: &'a Layout,
    rows: u32,
}

impl Workspace<'_> {
    /// Bytes that a device works on: columns are whole vectors, or whole words.
    fn padded(&self, spans: &[Span], to: u64) -> u64 {
        let bytes = |span: &Span| match self.item(*span) {
            item if item.of_rows() => {
                item.bytes(self.rows).next_multiple_of(to) * u64::from(span.count)
            }
            item => item.bytes(self.rows) * u64::from(span.count),
        };
        spans.iter().map(bytes).sum()
    }

    /// Bytes that travel.
    fn bytes(&self, spans: &[Span]) -> u64 {
        spans
            .iter()
            .map(|span| self.layout.bytes(*span, self.rows))
            .sum()
    }

    fn item(&self, span: Span) -> ColumnType {
        self.layout.regions[span.region as usize].column
    }

    fn size(&self) -> u64 {
        let regions = self.layout.regions.iter();
        let bytes = |item: ColumnType| item.bytes(self.rows);
        regions
            .map(|region| {
                bytes(region.column) * u64::from(region.count) * u64::from(region.components)
            })
            .sum()
    }
}

struct Counter<'a> {
    plan: &'a Plan,
    protocol: &'a dyn Protocol,
    programs: Vec<Code>,
}

impl Counter<'_> {
    fn all(&self) -> Work {
        let (plan, protocol) = (self.plan, self.protocol);
        let mut work = Work::default();
        work.count(Kind::Run, 1);
        work.count(Kind::Lane, plan.lanes.into());
        work.count(Kind::Pair, protocol.peers().len() as u64);
        work.count(Kind::Transfers, protocol.transfers().is_some().into());
        let loaded: u64 = self.programs.iter().map(|code| code.instructions).sum();
        work.count(Kind::Loaded, loaded * u64::from(plan.lanes));
        work.count(Kind::Value, self.values());
        work.exchange(veil_engine::handshake_cost(plan, protocol));
        work.exchange(veil_engine::last_words_cost(plan, protocol));

        let set_up = plan.set_up_frame();
        work += self.frame(WorkspaceOf::Job, &[Task::SetUp], set_up);
        if plan.has_totals() {
            let tasks = [Task::Totals, Task::Agree, Task::OpenTotals(self.cleared())];
            work += self.frame(WorkspaceOf::Job, &tasks, plan.totals_frame());
        }
        work + self.chunks()
    }

    fn cleared(&self) -> Cleared {
        let mut agree = self.protocol.flow(Task::Agree, self.plan.set_up_frame());
        while agree.next().is_some() {}
        agree
            .cleared()
            .expect("an agreement that was pulled to its end clears")
    }

    /// All chunks of rows.
    fn chunks(&self) -> Work {
        let plan = self.plan;
        let mut work = Work::default();
        let (set_up, cleared) = (plan.set_up_frame(), self.cleared());
        let chunk = |block: u32, chunk: u32, rows: u32| {
            let frame = Frame {
                chunk,
                rows,
                ..set_up
            };
            let inputs = Task::Inputs { block };
            if plan.opens_rows() {
                let tasks = [inputs, Task::Layers, Task::Agree, Task::Open(cleared)];
                self.frame(WorkspaceOf::Rows, &tasks, frame)
            } else {
                self.frame(WorkspaceOf::Rows, &[inputs, Task::Layers], frame)
            }
        };
        // The set-up is chunk 0. Roles may alternate from chunk to chunk.
        let mut first = 1;
        for (index, block) in (0..).zip(&plan.job.blocks) {
            let full = block.rows / u64::from(plan.chunk_rows);
            let rest = (block.rows % u64::from(plan.chunk_rows)) as u32;
            for (chunks, number) in [(full.div_ceil(2), first), (full / 2, first + 1)] {
                if chunks > 0 {
                    work += chunk(index, number, plan.chunk_rows) * chunks;
                }
            }
            first += full as u32;
            if rest > 0 {
                work += chunk(index, first, rest);
                first += 1;
            }
        }
        work
    }

    /// Bytes of clear values that this participant supplies, or gets.
    fn values(&self) -> u64 {
        let (plan, me) = (self.plan, self.protocol.me());
        let job = &plan.job;
        let mut bytes = 0u64;
        for (block, first) in job
            .blocks
            .iter()
            .zip([true].into_iter().chain([false].into_iter().cycle()))
        {
            for (port, holder) in job.circuit.inputs.iter().zip(&block.holders) {
                let times = match port.per {
                    Per::Job => u64::from(first),
                    Per::Row => block.rows,
                    Per::Cycle => block.rows.saturating_mul(plan.cycle_count()),
                };
                if holder.peer() == Some(me) {
                    let one = u64::from(port.width) * plan.ring.bytes(times);
                    bytes = bytes.saturating_add(one);
                }
            }
        }
        let outputs = job.circuit.outputs.iter().zip(&job.audiences);
        for (port, _) in outputs.filter(|(_, audience)| audience.includes(me)) {
            let rows = match port.reduce {
                veil_circuit::Reduce::Sum => 1,
                _ => job.rows(),
            };
            bytes = bytes.saturating_add(port.wires.len() as u64 * plan.ring.bytes(rows));
        }
        bytes
    }

    /// These tasks, one after the other, in a workspace that is opened for them.
    fn frame(&self, of: WorkspaceOf, tasks: &[Task], frame: Frame) -> Work {
        let workspace = Workspace {
            layout: self.protocol.layout(of),
            rows: self.protocol.rows(of, frame.rows),
        };
        let mut work = Work::default();
        work.count(Kind::Workspace, workspace.size());
        for task in tasks {
            work += self.task(*task, frame, workspace);
        }
        work
    }

    fn task(&self, task: Task, frame: Frame, workspace: Workspace<'_>) -> Work {
        let mut work = Work::default();
        let mut flow = self.protocol.flow(task, frame);
        let mut counted = 0;
        let mut cycle = 0;
        while let Some(round) = flow.next() {
            if counted >= ROUNDS_COUNTED && round.cycle > cycle {
                return scaled(work, self.plan.cycle_count(), round.cycle);
            }
            cycle = round.cycle;
            counted += 1;
            work += round_of(&round, workspace, &self.programs);
        }
        work
    }
}

/// What a round is, whose commands run these programs.
fn round_of(round: &Round, workspace: Workspace<'_>, programs: &[Code]) -> Work {
    let mut work = Work::default();
    work.count(Kind::Round, 1);
    for transfer in round.sends.iter().chain(&round.recvs) {
        let pieces: Vec<Span> = transfer.pieces().collect();
        let bytes = workspace.bytes(&pieces);
        work.count(Kind::Message, 1);
        work.count(Kind::Sent, bytes + HEADER_BYTES);
    }
    for command in round.local.iter().chain(&round.finish) {
        count(command, workspace, programs, 1, &mut work);
    }
    work
}

fn count(
    command: &Command,
    workspace: Workspace<'_>,
    programs: &[Code],
    times: u64,
    work: &mut Work,
) {
    let unit = match command.op {
        Op::Proof(_) => WORD,
        _ => VECTOR,
    };
    let [from, to] = [&command.src, &command.dst].map(|spans| workspace.padded(spans, unit));
    let both = from + to;
    let mut add = |kind, units: u64| work.count(kind, units.saturating_mul(times));
    let program = || command.program.map(|ProgramId(id)| &programs[id as usize]);
    let labels = 16 * u64::from(workspace.rows);
    add(Kind::Command, 1);
    match &command.op {
        Op::Linear | Op::Product(_) => {
            let Some(code) = program() else { return };
            let parts = workspace.layout.regions[code.slots as usize].components;
            let element = code
                .ring
                .bytes(workspace.rows.into())
                .next_multiple_of(VECTOR);
            add(Kind::Instruction, code.instructions);
            add(linear(code.ring), code.linear * element * u64::from(parts));
            if let Op::Product(form) = &command.op {
                let terms: usize = form.crosses.iter().map(|cross| cross.terms.len()).sum();
                add(product(code.ring), code.pairs * element * terms as u64);
                add(Kind::Mask, code.products * element * form.calls() as u64);
                add(Kind::Column, to);
            }
        }
        Op::AddReceived { .. } => {
            add(Kind::Instruction, program().map_or(0, |code| code.products));
            add(Kind::Column, from);
        }
        Op::Garble { scheme, .. } | Op::Evaluate { scheme } => {
            let Some(code) = program() else { return };
            // Garbling hashes twice as many labels.
            let hashed = match command.op {
                Op::Garble { .. } => 2 * labels,
                _ => labels,
            };
            let kind = match scheme {
                Garbling::HalfGates => Kind::HalfGates,
                Garbling::ThreeHalves => Kind::ThreeHalves,
            };
            add(Kind::Instruction, code.instructions);
            add(Kind::Label, code.linear * labels);
            add(kind, code.products * hashed);
        }
        Op::Random => add(Kind::Mask, to),
        Op::Combine { .. } => {
            add(Kind::Mask, to.saturating_mul(command.calls.len() as u64));
            add(Kind::Column, both);
        }
        // A block for each row, and two where there are many.
        Op::Permutation => {
            add(Kind::Mask, to.saturating_mul(8));
            add(Kind::Column, both);
        }
        Op::Lifting(step) => {
            let column = to / command.dst.len().max(1) as u64;
            add(Kind::Mask, column * step.calls() as u64);
            add(Kind::Column, both);
        }
        Op::Truncation(step) => {
            let column = to / command.dst.len().max(1) as u64;
            add(Kind::Mask, column * step.calls() as u64);
            add(Kind::Column, both);
        }
        Op::Hash { .. } => add(Kind::Hash, from),
        Op::Mac | Op::Ag(Ag::Fold { .. }) => add(Kind::Mac, from),
        Op::Split { .. } | Op::Lift => add(Kind::Converted, from.max(to)),
        Op::Scale | Op::Dot => {
            let ring = match command.src.first().map(|span| workspace.item(*span)) {
                Some(ColumnType::Rows(ring) | ColumnType::One(ring)) => ring,
                _ => Ring::Bits,
            };
            add(product(ring), from);
        }
        Op::MatMul(of) => {
            let products = of.products(command, workspace.rows);
            add(product(of.form.ring), of.form.ring.bytes(products));
            add(Kind::Mask, to.saturating_mul(command.calls.len() as u64));
            add(Kind::Column, both);
        }
        Op::Proof(_) => add(Kind::Proof, both),
        Op::Ot(_) => add(Kind::Transfer, both),
        Op::Cut(_) => add(Kind::Cut, both),
        Op::Ag(Ag::Garble { .. } | Ag::Evaluate { .. }) => {
            let Some(code) = program() else { return };
            // Garbling hashes twice as many labels.
            let hashed = match command.op {
                Op::Ag(Ag::Garble { .. }) => 2 * labels,
                _ => labels,
            };
            add(Kind::Instruction, code.instructions);
            add(Kind::Label, code.linear * labels + both);
            add(Kind::HalfGates, code.products * hashed);
        }
        // A hash is half of what an evaluated gate has.
        Op::Ag(Ag::Offer { .. } | Ag::Take { .. }) => {
            add(Kind::Label, both);
            add(Kind::HalfGates, workspace.padded(&command.dst, VECTOR));
        }
        Op::Ag(Ag::Masks { .. }) => {
            let Some(code) = program() else { return };
            add(Kind::Instruction, code.instructions);
            add(Kind::Label, code.linear * labels + both);
        }
        Op::Encode { .. } | Op::Colour | Op::Ag(_) => add(Kind::Label, both),
        Op::Repeat(repeat) => {
            let times = times.saturating_mul(repeat.count.into());
            for step in &repeat.body {
                count(&step.command, workspace, programs, times, work);
            }
        }
        // Shift, Resize, CheckEqual, and what is as simple; and moves of rows, but for what caches miss.
        _ => add(Kind::Column, both),
    }
}

/// Work of so many cycles out of `all`, as that of all.
fn scaled(work: Work, all: u64, of: u64) -> Work {
    let part = |units: u64| {
        let units = u128::from(units) * u128::from(all) / u128::from(of.max(1));
        u64::try_from(units).unwrap_or(u64::MAX)
    };
    Work(work.0.map(part))
}

const fn linear(ring: Ring) -> Kind {
    match ring {
        Ring::Bits => Kind::LinearBits,
        Ring::Z32 | Ring::Z64 => Kind::LinearZ64,
        Ring::Z128 => Kind::LinearZ128,
    }
}

const fn product(ring: Ring) -> Kind {
    match ring {
        Ring::Bits => Kind::ProductBits,
        Ring::Z32 | Ring::Z64 => Kind::ProductZ64,
        Ring::Z128 => Kind::ProductZ128,
    }
}
