//! Authenticated garbling by silent transfers: results, chunks that share a stream of correlations, declared costs, messages changed on their way.

use std::sync::Arc;
use std::time::Duration;

use veil_circuit::{Per, make};
use veil_device::{Command, Cpu, Device, Fault, Isa, Lpn, Reference, Tag};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order};
use veil_engine::{Abort, Limits, OtCache, TransfersFrom};
use veil_job::{Adversary, Audience, Holder, JobSpec, Ot, Tables};
use veil_link::shape::Profile;
use veil_math::Ring;
use veil_protocol::ag::transfer_bytes;
use veil_protocol::{Options, Plan, PlanError};
use veil_session::{PartyId, Peer};
use veil_testkit::sample::{between_two, everything, job, party, peer};
use veil_testkit::{Kind, Seed, World, clocked};

const HOLDERS: [Holder; 2] = [
    Holder::Party(PartyId::TWO[0]),
    Holder::Party(PartyId::TWO[1]),
];

/// Parameters of no security: a batch of a thousand candidates takes the outputs of four rounds and a part of another one.
pub(crate) const TINY: Lpn = Lpn::of(400, 6, 4);

/// A job against a party that cheats, by silent transfers.
pub(crate) fn silent(job: JobSpec) -> JobSpec {
    let mut job = between_two(job);
    job.security = job.security.against(Adversary::Malicious);
    job.security.ot = Ot::Silent;
    job
}

fn adder(rows: u64) -> JobSpec {
    let circuit = make("adder:9").expect("the catalogue has it");
    silent(job(circuit, &[(rows, &HOLDERS)], &[Audience::Parties]))
}

/// Chunks, some of them shorter, on lanes.
fn world(job: JobSpec, rows: u32, lanes: u16) -> World {
    World::in_chunks(job, rows, lanes).expanding(TINY)
}

/// Rounds go on from chunk to chunk in each lane; a shorter chunk has transfers of its own.
#[test]
fn chunks_of_a_lane_share_a_stream() {
    let world = world(adder(11), 2, 2);
    let outcome = world.run();
    outcome.assert_right();
    let folds = |kind| outcome.of(kind).count();
    // Of each party: a base in each lane, and the last chunk's.
    assert_eq!(folds(Kind::BatchTransferFolds), 2 * 3);
    // Three full chunks in the first lane, two in the second.
    let rounds = |chunks: u64| (chunks * 19 * 1024).div_ceil(288 * 16);
    let all = rounds(3) + rounds(2);
    crate::yao::costs(&world, &outcome);
    for kind in [Kind::SilentSums, Kind::SilentQuestion, Kind::SilentAnswer] {
        assert_eq!(folds(kind) as u64, 2 * all, "{kind:?}");
    }
}

/// Blocks whose last chunk is shorter, owners and recipients from outside, values of the job; each participant for itself as well.
#[test]
fn results_are_those_of_the_clear_evaluation() {
    for (rows, lanes) in [(1, 1), (4, 2), (16, 1)] {
        let world = world(silent(everything(Ring::Bits, &[13, 9])), rows, lanes);
        let outcome = world.run();
        crate::yao::costs(&world, outcome.assert_right());
        world.run_apart().assert_right();
    }
}

/// The inputs of windows, and batches of several cycles.
#[test]
fn cycles_go_on_in_the_stream() {
    let mut circuit = clocked(Seed(2));
    circuit.clock.cycles = 300;
    let holders = [0, 1, 1, 0].map(Holder::Owner);
    let audiences = [Audience::Parties, Audience::Recipient(0)];
    let world = world(silent(job(circuit, &[(5, &holders)], &audiences)), 2, 1);
    let outcome = world.devices(|_| Box::new(Cpu::detect())).run();
    outcome.assert_right();
    assert!(outcome.of(Kind::SilentSums).count() > 2);
}

/// Messages are the same on each, and so are results.
#[test]
fn every_device_at_either_end() {
    type Make = fn(Peer, Isa) -> Box<dyn Device>;
    let run = |device: Make, isa| {
        let world = world(adder(5), 2, 1).seed(Seed(7));
        let outcome = world.devices(move |peer| device(peer, isa)).run();
        outcome.assert_right().digests()
    };
    let defined = run(|_, _| Box::new(Reference::default()), Isa::Portable);
    for isa in Isa::available() {
        let mixed: [Make; 2] = [
            |_, isa| Box::new(Cpu::with(isa)),
            |peer, isa| {
                if peer == Peer::Party(party(0)) {
                    Box::new(Cpu::with(isa))
                } else {
                    Box::new(Reference::default())
                }
            },
        ];
        for devices in mixed {
            assert_eq!(run(devices, isa), defined, "{isa:?}");
        }
    }
}

/// Kernels of GPUs, emulated, in three orders of threads, at either end and at both: chunks of a lane go on in its stream, and messages are those of the processor.
#[test]
fn kernels_send_what_processors_do() {
    let world = || world(adder(4), 2, 1).seed(Seed(7));
    let cpu = world().devices(|_| Box::new(Cpu::detect())).run();
    let defined = cpu.assert_right().digests();
    for (order, own) in [
        (Order::Forward, &[0][..]),
        (Order::Reverse, &[1]),
        (Order::Random(3), &[0, 1]),
    ] {
        let kernels = world().devices(move |at| -> Box<dyn Device> {
            if own.iter().any(|party| at == peer(*party)) {
                Box::new(Cuda::on(Box::new(Emulator::new(order))))
            } else {
                Box::new(Cpu::detect())
            }
        });
        let sent = kernels.run().assert_right().digests();
        assert_eq!(sent, defined, "{order:?}");
    }
}

/// A line of 20 Mb/s: results are the same, and fewer bytes are sent than by the extension.
#[test]
fn over_a_narrow_line() {
    let line = Profile {
        latency: Duration::from_millis(2),
        bandwidth: 20_000_000,
    };
    // A round makes as many as three chunks take.
    let set = Lpn::of(400, 8, 8);
    let silent = World::in_chunks(adder(6), 2, 1).expanding(set);
    let sent = |world: &World| {
        let outcome = world.clone().net(line).run_apart();
        let reports = outcome.assert_right().reports.values();
        let sent: u64 = reports.map(|report| report.meters.payload_sent).sum();
        (sent, outcome)
    };
    let (bytes, outcome) = sent(&silent);
    assert_eq!(outcome.of(Kind::BatchTransferFolds).count(), 2);
    let mut job = adder(6);
    job.security.ot = Ot::Extension;
    let (of_extension, _) = sent(&World::in_chunks(job, 2, 1));
    assert!(bytes < of_extension, "{bytes}, {of_extension}");
}

/// A transfer cache has nothing for transfers of both directions, and is left as it is.
#[test]
fn transfers_begin_with_curves_whatever_is_cached() {
    let caches = [(); 2].map(|()| Arc::new(OtCache::within(Limits::default())));
    for _ in 0..2 {
        let world = world(adder(3), 2, 1);
        let world = world
            .with_ot_cache(peer(0), &caches[0])
            .with_ot_cache(peer(1), &caches[1]);
        let outcome = world.run();
        outcome.assert_right();
        for end in [0, 1].map(peer) {
            assert_eq!(outcome.reports[&end].transfers, Some(TransfersFrom::Curves));
        }
        assert_eq!([0, 1].map(|k: usize| caches[k].count()), [0, 0]);
    }
}

/// A device that serves each chunk by a workspace of its own.
struct Forgets(Reference);

impl Device for Forgets {
    fn submit(
        &mut self,
        workspace: veil_device::Workspace,
        batch: &[Command],
        tag: Tag,
    ) -> Result<(), Fault> {
        self.0.submit(workspace, batch, tag)
    }

    veil_device::forward!(self, self.0, name bind load_key load open close write map view poll wipe);
}

/// It does one chunk, and no second one.
#[test]
fn a_device_that_keeps_nothing_says_so() {
    let forgets = |_: Peer| -> Box<dyn Device> { Box::new(Forgets(Reference::default())) };
    let one = world(adder(2), 2, 1).devices(forgets).run();
    one.assert_right();
    let two = world(adder(4), 2, 1).devices(forgets).run();
    let aborts: Vec<&Abort> = two.aborts.values().collect();
    assert!(
        aborts.iter().any(|abort| matches!(
            abort,
            Abort::Device(Fault::Unsupported { what, .. }) if what.starts_with("silent transfers")
        )),
        "{aborts:?}"
    );
}

/// Silent transfers are those of a plan that has enough of them, and the hash says which; stock that is used has none.
#[test]
fn a_plan_takes_what_sends_less() {
    let plan = |rows, ot| {
        let mut job = adder(rows);
        job.security.ot = ot;
        Plan::new(Arc::new(job), Options::default()).expect("a job that can be planned")
    };
    let few = plan(64, Ot::Silent);
    assert_eq!(few.silent, None);
    let bytes = transfer_bytes(&few).unwrap();
    assert!(bytes.silent > bytes.extension);
    let many = plan(1 << 20, Ot::Silent);
    assert_eq!(many.silent, Some(Lpn::C12));
    let bytes = transfer_bytes(&many).unwrap();
    assert!(
        bytes.silent * 8 < bytes.transfers,
        "under a bit for each: {bytes:?}"
    );
    assert_eq!(plan(1 << 20, Ot::Extension).silent, None);
    let hashes = [Ot::Silent, Ot::Extension].map(|ot| plan(1 << 20, ot).hash);
    assert_ne!(hashes[0], hashes[1]);
    assert_ne!(many.clone().expanding(Lpn::C11).hash, many.hash);
}

/// What takes no silent transfers says so before anything runs.
#[test]
fn others_refuse_silent_transfers() {
    let authenticated = adder(3);
    for adversary in [Adversary::SemiHonest, Adversary::CutAndChoose] {
        let mut job = authenticated.clone();
        job.security = job.security.against(adversary);
        let security = job.security;
        let refused = Plan::new(Arc::new(job), Options::default()).unwrap_err();
        assert_eq!(refused, PlanError::NoSilent(security));
    }
    let mut halves = authenticated;
    halves.security.tables = Tables::ThreeHalves;
    let security = halves.security;
    let refused = Plan::new(Arc::new(halves), Options::default()).unwrap_err();
    assert_eq!(refused, PlanError::Fit(security, "half-gates"));
}

/// Bytes that both parties send for transfers of batches, measured: under a bit for each.
#[test]
#[ignore = "tier long: millions of gates"]
fn large_jobs_send_less_than_a_bit_for_each_transfer() {
    let mut circuit = make("aes128").expect("the catalogue has it");
    let ports = circuit.inputs.iter_mut();
    ports.for_each(|port| port.per = Per::Row);
    let job = silent(job(circuit, &[(512, &HOLDERS)], &[Audience::Parties]));
    let world = World::in_chunks(job, 64, 1).timeout(Duration::from_secs(300));
    assert_eq!(world.plan().silent, Some(Lpn::C12));
    let outcome = world.devices(|_| Box::new(Cpu::detect())).run();
    outcome.assert_right();
    let of = [
        Kind::SilentSums,
        Kind::SilentQuestion,
        Kind::SilentAnswer,
        Kind::BatchCorrection,
        Kind::BatchTransferChallenge,
        Kind::BatchTransferFolds,
    ];
    let messages = of.iter().flat_map(|kind| outcome.of(*kind));
    let sent: usize = messages.map(|m| m.bytes.len()).sum();
    let transfers = transfer_bytes(&outcome.plan).unwrap().transfers;
    println!("{sent} bytes for {transfers} transfers");
    assert!((sent as u64) * 8 < transfers);
}
