//! Authenticated garbling of sequential circuits: cycles that share batches, what they cost, and parties that deviate in a later cycle.

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_circuit::{Builder, Circuit, Initial, Per};
use veil_device::ag::{Ag, Role};
use veil_device::{
    ColumnType, Command, Completion, Cpu, Device, Fault, Frame, Layout, Op, Program, ProgramId,
    Region, Residency, Span, Tag, Workspace,
};
use veil_engine::Abort;
use veil_job::{Adversary, Audience, Holder, JobSpec};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_protocol::yao::OFFSET;
use veil_protocol::{Cost, Task, protocol};
use veil_session::Peer;
use veil_testkit::sample::{against, between_two, job, party, peer};
use veil_testkit::{Kind, Message, Outcome, Seed, World, clocked, flipped, tasks};

/// Every cycle adds a number to a sum, which begins as an input; the sum of every cycle, or of the last.
fn sums(bits: u32, cycles: u64, every: bool) -> Circuit {
    let mut b = Builder::new(Ring::Bits);
    b.cycles(cycles);
    let start = b.input("start", bits, Per::Row);
    let x = b.input("x", bits, Per::Cycle);
    let sum: Vec<_> = start
        .iter()
        .map(|w| b.register(Initial::Wire(*w)))
        .collect();
    let mut carry = b.constant(0);
    let mut next = Vec::new();
    for (k, (&x, &sum)) in (1..).zip(x.iter().zip(&sum)) {
        let [a, c] = [x, sum].map(|wire| b.xor(wire, carry));
        next.push(b.xor(a, sum));
        if k < bits {
            let both = b.and(a, c);
            carry = b.xor(both, carry);
        }
    }
    for (bit, next) in sum.iter().zip(&next) {
        b.set_next(*bit, *next);
    }
    if every {
        b.output_every_cycle("sum", &next);
    } else {
        b.output("sum", &next);
    }
    b.finish().expect("a valid circuit")
}

fn of(circuit: Circuit, rows: u64) -> JobSpec {
    let holders = [1, 0].map(|p| Holder::Party(party(p)));
    let job = job(circuit, &[(rows, &holders)], &[Audience::Parties]);
    against(between_two(job), Adversary::Malicious)
}

/// Sequential jobs of few rows: whose cycles are one batch, or several, and random ones.
pub(crate) fn jobs() -> Vec<JobSpec> {
    let all = [(4, 9, true, 1), (4, 2000, false, 1), (8, 37, true, 5)];
    let sums = all.map(|(bits, cycles, every, rows)| of(sums(bits, cycles, every), rows));
    let random = (0..4).map(|seed| {
        let holders = [0, 1, 1, 0].map(|p| Holder::Party(party(p)));
        let audiences = [Audience::Parties, Audience::Recipient(0)];
        let job = job(clocked(Seed(seed)), &[(1, &holders)], &audiences);
        against(between_two(job), Adversary::Malicious)
    });
    sums.into_iter().chain(random).collect()
}

fn world(circuit: Circuit, rows: u32) -> World {
    World::in_chunks(of(circuit, rows.into()), rows, 1).devices(|_| Box::new(Cpu::detect()))
}

/// Of a job of one row, values per job are values of the row, of which registers may begin with some.
#[test]
fn random_circuits_on_one_row() {
    for seed in 0..12 {
        let holders = [0, 1, 1, 0].map(|p| Holder::Party(party(p)));
        let audiences = [Audience::Parties, Audience::Recipient(0)];
        let job = job(clocked(Seed(seed)), &[(1, &holders)], &audiences);
        let job = against(between_two(job), Adversary::Malicious);
        World::new(job).run().assert_right();
    }
}

/// What was said is what is declared, of every kind of run: cycles that are batches together, a rest, and cycles of two batches each.
#[test]
fn cycles_cost_what_is_declared() {
    for (bits, cycles, rows, batches) in [
        (4, 9, 1, 1),
        (4, 2000, 1, 2),
        (8, 37, 300, 7),
        (4, 3, 8192, 6),
    ] {
        for every in [false, true] {
            let world = world(sums(bits, cycles, every), rows);
            let outcome = world.run();
            outcome.assert_right();
            let offers = outcome.of(Kind::LeakyOffer);
            assert_eq!(
                offers.count(),
                2 * batches,
                "{cycles} cycles of {rows} rows"
            );
            let plan = world.plan();
            for me in [0, 1].map(peer) {
                let protocol = protocol(Arc::clone(plan), me);
                let chunk = plan.chunk(0).expect("a chunk").frame;
                let all = tasks(plan, &*protocol).into_iter().map(|task| {
                    let frame = match task {
                        Task::SetUp => plan.set_up_frame(),
                        _ => chunk,
                    };
                    protocol.cost(task, frame)
                });
                let all = all.fold(Cost::default(), |a, b| a + b);
                let all = all + veil_engine::handshake_cost(plan, &*protocol);
                let meters = outcome.reports[&me].meters;
                assert_eq!(
                    (meters.messages_sent, meters.payload_sent),
                    (all.messages, all.bytes),
                    "{me}: {cycles} cycles of {rows} rows"
                );
            }
        }
    }
}

const TRANSFERS: &str = "corrections of oblivious transfer";
const INPUTS: &str = "parts of masks of inputs";
const PRODUCTS: &str = "leaky products of authenticated bits";
const BITS: &str = "bits that are opened of a batch";
const LABELS: &str = "labels of results";
const GATES: &str = "masks of gates";

fn every_block(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.iter_mut().step_by(16).for_each(|byte| *byte ^= 1);
    bytes
}

/// Messages of the second batch, changed on their way: the party that finds it, and what. Neither party is given anything, of the first batch either.
#[test]
fn a_change_in_a_later_cycle_is_found_before_earlier_ones_are_opened() {
    type Change = fn(&[u8]) -> Vec<u8>;
    let (garbler, evaluator) = (0, 1);
    let cases: [(Kind, u8, Change, u8, &str); 12] = [
        (Kind::Correction, garbler, flipped, evaluator, TRANSFERS),
        (Kind::InputParts, garbler, flipped, evaluator, INPUTS),
        (Kind::InputFold, garbler, flipped, evaluator, INPUTS),
        (Kind::MaskedInput, garbler, flipped, garbler, LABELS),
        (
            Kind::BatchCorrection,
            evaluator,
            flipped,
            garbler,
            TRANSFERS,
        ),
        (Kind::LeakyBits, evaluator, flipped, garbler, PRODUCTS),
        (Kind::OpenedBits, garbler, flipped, evaluator, BITS),
        (Kind::OpenedBits, evaluator, flipped, garbler, BITS),
        (Kind::Table, garbler, every_block, garbler, LABELS),
        (Kind::MaskedResults, evaluator, flipped, garbler, LABELS),
        (Kind::LabelFold, evaluator, flipped, garbler, LABELS),
        (Kind::GateFold, garbler, flipped, evaluator, GATES),
    ];
    for (kind, from, change, by, what) in cases {
        let swap = matches!(kind, Kind::Correction | Kind::InputParts | Kind::InputFold);
        let mut job = of(sums(4, 2000, true), 1);
        // Parts of masks go to the owner of the inputs of cycles.
        if swap {
            job.blocks[0].holders.swap(0, 1);
        }
        let cheat = move |m: &Message| {
            let later = m.at.frame.chunk == 1 && m.at.step.cycle > 0;
            if later && (m.kind, m.from) == (Some(kind), peer(from)) {
                Fate::Replace(change(&m.bytes))
            } else {
                Fate::Pass
            }
        };
        let world = World::in_chunks(job, 1, 1).devices(|_| Box::new(Cpu::detect()));
        let outcome = world.cheat(cheat).run();
        assert_found(&outcome, by, what);
    }
}

/// A party has found something, suspects the other, and neither was given anything.
#[track_caller]
fn assert_found(outcome: &Outcome, by: u8, what: &str) {
    match outcome.aborts.get(&peer(by)) {
        Some(Abort::Cheated {
            suspects, what: w, ..
        }) => {
            assert_eq!((&suspects[..], *w), (&[peer(1 - by)] as &[Peer], what));
        }
        _ => panic!("{}: {what}: {:?}", outcome.seed, outcome.aborts),
    }
    for (who, seen) in &outcome.seen {
        assert!(seen.slices().is_empty(), "{}: {who}", outcome.seed);
    }
}

/// Components of slots, and their region.
const MAC: u8 = 1;
const SLOTS: u16 = 0;

/// A party that checks nothing, and whose part of the mask of the first register becomes the other one between two cycles. One row.
struct Forgetful {
    inner: Cpu,
    /// Of each workspace the first of three regions of its own: a bit that is 1, one that is 0, and a block.
    regions: BTreeMap<u32, u16>,
    /// First slot of what registers take next.
    next: u32,
    /// Copies of registers that it lets pass.
    left: u32,
    steps: Tag,
}

fn with_regions(layout: &Layout) -> Layout {
    let mut layout = layout.clone();
    for (residency, bytes) in [
        (Residency::Mapped, 1),
        (Residency::Mapped, 1),
        (Residency::Resident, 16),
    ] {
        layout.add(Region {
            residency,
            column: ColumnType::Bytes(bytes),
            components: 1,
            count: 1,
        });
    }
    layout
}

impl Forgetful {
    fn own(&self, workspace: Workspace) -> [Span; 3] {
        [0, 1, 2].map(|k| Span {
            region: self.regions[&workspace.0] + k,
            component: 0,
            first: 0,
            count: 1,
        })
    }
}

impl Device for Forgetful {
    fn name(&self) -> &'static str {
        "forgetful"
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        self.inner.load(program, &with_regions(layout))
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Workspace, Fault> {
        let workspace = self.inner.open(&with_regions(layout), frame)?;
        let first = layout.regions.len() as u16;
        self.regions.insert(workspace.0, first);
        let [one, ..] = self.own(workspace);
        self.inner.write(workspace, one, &[1])?;
        Ok(workspace)
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        for command in batch {
            if matches!(command.op, Op::CheckEqual) {
                continue;
            }
            let step = std::slice::from_ref(command);
            self.inner.submit(workspace, step, self.steps)?;
            let copies = matches!(command.op, Op::Combine { .. })
                && command.src.first().is_some_and(|from| {
                    (from.region, from.component, from.first) == (SLOTS, MAC, self.next)
                });
            if copies && self.left == 0 {
                let settle = Ag::Settle {
                    offset: OFFSET,
                    role: Role::Garbler,
                };
                let to = Span {
                    count: 1,
                    ..command.dst[0]
                };
                let [one, zero, block] = self.own(workspace);
                let add = Command::new(Op::Ag(settle), vec![one, zero], vec![block, to]);
                self.inner.submit(workspace, &[add], self.steps)?;
            }
            self.left = self.left.wrapping_sub(copies.into());
        }
        self.inner.submit(workspace, &[], tag)
    }

    fn poll(&mut self) -> Result<Option<Completion>, Fault> {
        loop {
            match self.inner.poll()? {
                Some(Completion { tag, .. }) if tag == self.steps => {}
                other => return Ok(other),
            }
        }
    }

    veil_device::forward!(self, self.inner, bind load_key close write map view wipe);
}

/// Between cycles of one batch, and between those of two.
#[test]
fn another_mask_of_a_register_is_found() {
    let honest = world(sums(4, 2000, false), 1);
    let cycles = honest.plan().cycles.as_ref().expect("cycles");
    let (next, ..) = cycles.registers;
    for liar in [0, 1] {
        for left in [0, 700, cycles.window as u32 - 1] {
            let devices = move |who| -> Box<dyn Device> {
                if who != peer(liar) {
                    return Box::new(Cpu::detect());
                }
                Box::new(Forgetful {
                    inner: Cpu::detect(),
                    regions: BTreeMap::new(),
                    next,
                    left,
                    steps: Tag(u64::MAX),
                })
            };
            let outcome = honest
                .clone()
                .seed(Seed(u64::from(left)))
                .devices(devices)
                .run();
            assert_found(&outcome, 1 - liar, BITS);
        }
    }
}
