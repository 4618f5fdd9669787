//! Attack case A8: a plan or a device that draws twice rings on the reference device, whose ledger every other test here runs under.

use std::sync::Arc;

use veil_circuit::{Builder, Initial, Per, generate};
use veil_device::ag::Ag;
use veil_device::{Command, Device, Fault, Layout, Op, Ot, Reference, Tag, Workspace};
use veil_engine::Abort;
use veil_job::{Audience, Holder, JobSpec, Tables};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Frame;
use veil_testkit::World;
use veil_testkit::sample::{
    against_malicious, among_four, authenticated, between_two, everything, job, party, peer,
};

/// What the device gets wrong.
#[derive(Clone, Copy)]
enum Defect {
    /// Every layer of products starts at the counter of the first one.
    Counter,
    /// Every chunk believes to be chunk 1.
    Chunk,
    /// All draws of a command are under the tag of its first, those of sums and of other messages too.
    Tag,
    /// The MACs of all layers have one mask.
    Mac,
    /// Every random value is the first.
    Random,
    /// All lifts begin with the first.
    Lift,
    /// All truncations begin with the first.
    Truncation,
    /// All layers begin with the first gate.
    Gate,
    /// All transfers begin with the first bytes of the leaves.
    Leaf,
    /// All batches begin with the first candidate.
    Candidate,
}

/// A reference device that is told to draw twice.
struct Defective {
    inner: Reference,
    defect: Defect,
}

impl Device for Defective {
    fn name(&self) -> &'static str {
        "defective"
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Workspace, Fault> {
        match self.defect {
            Defect::Chunk => self.inner.open(layout, Frame { chunk: 1, ..frame }),
            _ => self.inner.open(layout, frame),
        }
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        let mut batch = batch.to_vec();
        for Command { op, calls, .. } in &mut batch {
            if let (Defect::Gate, Op::Repeat(repeat)) = (self.defect, &mut *op) {
                for step in &mut Arc::make_mut(repeat).body {
                    step.calls.fill(0);
                    step.command
                        .calls
                        .iter_mut()
                        .for_each(|call| call.first = 0);
                }
            }
            let Some(first) = calls.first().copied() else {
                continue;
            };
            for call in calls {
                match (self.defect, &op) {
                    (Defect::Counter, Op::Product(_))
                    | (Defect::Mac, Op::Mac)
                    | (Defect::Random, Op::Random)
                    | (Defect::Lift, Op::Lifting(_))
                    | (Defect::Truncation, Op::Truncation(_))
                    | (
                        Defect::Gate,
                        Op::Garble { .. }
                        | Op::Evaluate { .. }
                        | Op::Ag(Ag::Garble { .. } | Ag::Evaluate { .. }),
                    )
                    | (Defect::Candidate, Op::Ag(Ag::Offer { .. } | Ag::Take { .. }))
                    | (Defect::Leaf, Op::Ot(Ot::Receive { .. } | Ot::Send { .. })) => {
                        call.first = 0;
                    }
                    (Defect::Tag, Op::Product(_)) => {
                        (call.tag, call.first) = (first.tag, first.first);
                    }
                    _ => {}
                }
            }
        }
        self.inner.submit(workspace, &batch, tag)
    }

    veil_device::forward!(self, self.inner, bind load_key load close write map view poll wipe);
}

/// The reuse that a device reports, party 1's or every party's, among three parties or four.
fn rings(defect: Defect, among: fn(JobSpec) -> JobSpec) -> veil_prss::Reuse {
    rings_in(among(everything(Ring::Z64, &[20])), defect)
}

fn rings_in(job: JobSpec, defect: Defect) -> veil_prss::Reuse {
    // Three layers with products, one of which has sums too; three chunks.
    rings_of(&World::in_chunks(job, 8, 1), defect)
}

fn rings_of(world: &World, defect: Defect) -> veil_prss::Reuse {
    let checked = world.plan().job.parties.len() != 3;
    let devices = move |who| -> Box<dyn Device> {
        let inner = Reference::default();
        // Where parties check each other all have it, or the first difference would end the run; of two, each has what the other has not.
        if who == peer(1) || checked {
            Box::new(Defective { inner, defect })
        } else {
            Box::new(inner)
        }
    };
    let outcome = world.clone().window(1).devices(devices).run();
    outcome.assert_sound(None);
    assert!(outcome.seen.values().all(|seen| !seen.finished()));
    let reuse = outcome.aborts.values().find_map(|abort| match abort {
        Abort::Device(Fault::Reuse(reuse)) => Some(*reuse),
        _ => None,
    });
    reuse.unwrap_or_else(|| panic!("{}: {:?}", outcome.seed, outcome.aborts))
}

fn three(job: JobSpec) -> JobSpec {
    job
}

#[test]
fn what_four_parties_draw_twice_rings() {
    // Of which joint message is the device's choice.
    let family = |tag: DomainTag| tag.0 >> 8;
    for (defect, tag, chunk) in [
        // The second layer begins where the first did.
        (Defect::Counter, DomainTag::joint4(0), 1),
        // Two joint messages have masks under one key: those of a pair's term, and of an opposite pair's to the same receiver. The set-up
        // has a product.
        (Defect::Tag, DomainTag::joint4(0), 0),
        (Defect::Mac, DomainTag::mac4(0), 1),
    ] {
        let reuse = rings(defect, among_four);
        let found = (family(reuse.tag), reuse.j, reuse.ctr);
        assert_eq!(found, (family(tag), chunk, 0));
    }
    assert_eq!(rings(Defect::Chunk, among_four).j, 1);
}

/// Two masks of one job, bits beside integers, and integers.
#[test]
fn random_values_that_share_counters_ring() {
    let mut b = Builder::new(Ring::Z64);
    let x = b.input("x", 1, Per::Row)[0];
    let once = b.truncate_pr(x, 3, 40);
    let square = b.mul(once, once);
    let twice = b.truncate_pr(square, 3, 40);
    let (_, bit) = generate::dabit(&mut b);
    let drawn = b.random();
    b.output("z", &[twice, bit, drawn]);
    let circuit = b.finish().expect("a valid circuit");
    let holders = [Holder::Party(party(1))];
    let job = job(circuit, &[(20, &holders)], &[Audience::Recipient(0)]);
    let four = among_four(job.clone());
    for (job, tag) in [(job, DomainTag::RAND3), (four, DomainTag::RAND4)] {
        let reuse = rings_in(job.clone(), Defect::Random);
        assert_eq!((reuse.tag, reuse.ctr), (tag, 0));
        let honest = World::in_chunks(job, 8, 2).run();
        assert!(honest.aborts.is_empty(), "{:?}", honest.aborts);
    }
}

/// Truncations of two layers that have the same rotation.
#[test]
fn truncations_that_share_counters_ring() {
    let mut b = Builder::new(Ring::Z64);
    let mut x = b.input("x", 1, Per::Row)[0];
    for _ in 0..4 {
        let square = b.mul(x, x);
        x = b.truncate_pr(square, 3, 40);
    }
    b.output("z", &[x]);
    let circuit = b.finish().expect("a valid circuit");
    let holders = [Holder::Party(party(1))];
    let job = job(circuit, &[(20, &holders)], &[Audience::Recipient(0)]);
    let reuse = rings_in(job.clone(), Defect::Truncation);
    assert_eq!(
        (reuse.tag.0 >> 8, reuse.ctr),
        (DomainTag::truncate3(0).0 >> 8, 0)
    );
    let honest = World::in_chunks(job, 8, 2).run();
    assert!(honest.aborts.is_empty(), "{:?}", honest.aborts);
}

/// Lifts of two layers, and of the rotations of one.
#[test]
fn lifts_that_share_counters_ring() {
    for (among, tag) in [
        (three as fn(JobSpec) -> JobSpec, DomainTag::lift3(0)),
        (among_four, DomainTag::lift4(0)),
    ] {
        let job = among(crate::lifts::lifts(Ring::Z32, 4, 20));
        let reuse = rings_in(job.clone(), Defect::Lift);
        assert_eq!((reuse.tag.0 >> 8, reuse.ctr), (tag.0 >> 8, 0));
    }
}

/// Attack case C2: two gates with one number, whose hashes would have the same tweaks, in both schemes; of sequential circuits two cycles.
#[test]
fn gates_that_share_a_number_ring() {
    for tables in [Tables::HalfGates, Tables::ThreeHalves] {
        let jobs = [
            everything(Ring::Bits, &[20]),
            clocked([Holder::Party(party(0)); 2]),
        ];
        for job in jobs {
            let mut job = between_two(job);
            job.security.tables = tables;
            let reuse = rings_in(job.clone(), Defect::Gate);
            assert_eq!((reuse.tag, reuse.ctr), (DomainTag::GARBLE, 0));
            World::in_chunks(job, 8, 2).run().assert_right();
        }
    }
}

/// Labels, shares and transfers of inputs of every cycle begin where those of the row end.
#[test]
fn inputs_of_two_parties_that_share_counters_ring() {
    let [garbler, evaluator] = [0, 1].map(|p| Holder::Party(party(p)));
    for (holder, defect, tag) in [
        (garbler, Defect::Random, DomainTag::ACTIVE),
        (Holder::Owner(0), Defect::Random, DomainTag::SHARE2),
        (evaluator, Defect::Leaf, DomainTag::OT_LEAF),
    ] {
        let job = between_two(clocked([holder; 2]));
        let reuse = rings_in(job.clone(), defect);
        assert_eq!((reuse.tag, reuse.ctr), (tag, 0));
        World::in_chunks(job, 8, 2).run().assert_right();
    }
}

/// Authenticated garbling: parts of masks of inputs and of a batch, their transfers, candidates of two batches, gates of two layers.
#[test]
fn batches_that_share_counters_ring() {
    let small = World::in_chunks(authenticated("adder:9", 20, Audience::Parties), 8, 1);
    let large = crate::ag::in_batches();
    for (world, defect, tag) in [
        (&small, Defect::Random, DomainTag::AG_PARTS),
        (&small, Defect::Leaf, DomainTag::OT_LEAF),
        (&small, Defect::Gate, DomainTag::GARBLE),
        (&large, Defect::Candidate, DomainTag::AG_LEAKY),
    ] {
        let reuse = rings_of(world, defect);
        assert_eq!((reuse.tag, reuse.ctr), (tag, 0));
    }
    assert_eq!(rings_of(&small, Defect::Chunk).j, 1);
    for world in [small, large] {
        world.run().assert_right();
    }
}

/// A register that begins as an input of the row, and takes its product with one of the cycle.
fn clocked(holders: [Holder; 2]) -> JobSpec {
    let mut b = Builder::new(Ring::Bits);
    b.cycles(3);
    let start = b.input("start", 1, Per::Row)[0];
    let x = b.input("x", 1, Per::Cycle)[0];
    let state = b.register(Initial::Wire(start));
    let next = b.and(state, x);
    b.set_next(state, next);
    b.output("state", &[next]);
    let circuit = b.finish().expect("a valid circuit");
    job(circuit, &[(20, &holders)], &[Audience::Recipient(0)])
}

#[test]
fn layers_that_share_counters_ring() {
    let reuse = rings(Defect::Counter, three);
    assert_eq!(
        (reuse.tag, reuse.lane, reuse.j, reuse.ctr),
        (DomainTag::MUL3, 0, 1, 0)
    );
}

#[test]
fn chunks_that_share_a_number_ring() {
    // The set-up draws the value per job under the same number and another tag or owner's key; the rows of the second chunk ring.
    assert_eq!(rings(Defect::Chunk, three).j, 1);
}

#[test]
fn sums_that_share_a_tag_with_products_ring() {
    let reuse = rings(Defect::Tag, three);
    assert_eq!((reuse.tag, reuse.j), (DomainTag::MUL3, 1));
}

#[test]
fn an_honest_job_does_not_ring() {
    for ring in [Ring::Bits, Ring::Z64, Ring::Z128] {
        for among in [three, among_four] {
            let job = among(everything(ring, &[20, 9]));
            World::in_chunks(job, 8, 2).run().assert_right();
        }
    }
    for ring in [Ring::Bits, Ring::Z64] {
        let proved = against_malicious(everything(ring, &[20, 9]));
        World::in_chunks(proved, 8, 2).run().assert_right();
    }
    let garbled = between_two(everything(Ring::Bits, &[20, 9]));
    World::in_chunks(garbled, 8, 2).run().assert_right();
}
