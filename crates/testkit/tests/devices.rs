//! Devices that take their time, and devices that fail while a batch is under way.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use veil_device::{Command, Completion, Cpu, Device, Fault, Frame, Layout, Tag, Workspace};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order};
use veil_engine::Abort;
use veil_job::{Adversary, Audience};
use veil_math::Ring;
use veil_testkit::sample::{against, among_four, authenticated, between_two, everything, peer};
use veil_testkit::{Outcome, Seed, World};

/// No test lasts so long: a run that did not end by itself would not end.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// How often a device is asked before it says that a batch has ended.
const LOOKS: u32 = 3;

/// A device that is asked for a while before a batch has ended, as one is that works beside the host; and that fails in the end, if it is to.
struct Apart {
    inner: Cpu,
    queued: VecDeque<(u32, Tag)>,
    /// Batches before the one in which it fails.
    left: Option<u32>,
}

impl Apart {
    fn new(left: Option<u32>) -> Self {
        Apart {
            inner: Cpu::detect(),
            queued: VecDeque::new(),
            left,
        }
    }
}

fn melted() -> Fault {
    Fault::Card {
        device: "apart",
        why: "it has melted".into(),
    }
}

impl Device for Apart {
    fn name(&self) -> &'static str {
        "apart"
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        self.queued.push_back((LOOKS, tag));
        self.inner.submit(workspace, batch, tag)
    }

    fn poll(&mut self) -> Result<Option<Completion>, Fault> {
        let Some((looks, _)) = self.queued.front_mut() else {
            return Ok(None);
        };
        *looks -= 1;
        if *looks > 0 {
            return Ok(None);
        }
        match &mut self.left {
            Some(0) => return Err(melted()),
            Some(left) => *left -= 1,
            None => {}
        }
        self.queued.pop_front();
        self.inner.poll()
    }

    veil_device::forward!(self, self.inner, bind load_key load open close write map view wipe);
}

/// Three parties, four, and two, also where one may be malicious, with more chunks than are in flight.
fn worlds() -> [World; 4] {
    let rows = &[40, 7];
    let two = between_two(everything(Ring::Bits, rows));
    let four = against(
        among_four(everything(Ring::Z64, rows)),
        Adversary::SemiHonest,
    );
    let checked = authenticated("adder:9", 47, Audience::Parties);
    [everything(Ring::Z64, rows), four, two, checked]
        .map(|job| World::in_chunks(job, 8, 2).seed(Seed(7)))
}

#[test]
fn results_are_right_however_long_batches_take() {
    for world in worlds() {
        let world = world.devices(|_| Box::new(Apart::new(None)));
        let together = world.run();
        together.assert_right();
        world.run_apart().assert_right();
        let quick = world.clone().devices(|_| Box::new(Cpu::detect())).run();
        assert_eq!(together.digests(), quick.digests());
    }
}

/// The reason at the party whose device fails; the others hear that it gave up.
fn ended(outcome: &Outcome) -> &Fault {
    assert!(!outcome.reports.contains_key(&peer(1)), "it has no result");
    match &outcome.aborts[&peer(1)] {
        Abort::Device(fault) => fault,
        other => panic!("{other:?}"),
    }
}

/// In the set-up, among the chunks, and at the end: the run is over at once, and says why.
#[test]
fn a_device_that_fails_in_a_batch_ends_the_run_at_once() {
    for world in worlds() {
        let world = world.timeout(FOR_EVER);
        for left in [0, 1, 3] {
            let world = world.clone().devices(move |who| {
                let fails = who == peer(1);
                Box::new(Apart::new(fails.then_some(left)))
            });
            assert_eq!(*ended(&world.run()), melted(), "after {left} batches");
            assert_eq!(*ended(&world.run_apart()), melted(), "after {left} batches");
        }
    }
}

/// The same on a GPU, which is lost in a launch: with the driver's reason.
#[test]
fn a_gpu_that_is_lost_ends_the_run_at_once() {
    let world = World::in_chunks(everything(Ring::Bits, &[40]), 16, 1).timeout(FOR_EVER);
    for launch in [6, 20] {
        let world = world.clone().devices(move |who| -> Box<dyn Device> {
            if who != peer(1) {
                return Box::new(Cpu::detect());
            }
            let emulator = Emulator::new(Order::Forward).lost_in(launch);
            Box::new(Cuda::on(Box::new(emulator)))
        });
        let outcome = world.run_apart();
        let said = ended(&outcome).to_string();
        assert!(said.contains("illegal memory access"), "{said}");
    }
}

/// A device that wants so many chunks in flight, and counts how many it has at most.
struct Busy {
    inner: Cpu,
    window: usize,
    open: usize,
    most: Arc<AtomicUsize>,
}

impl Device for Busy {
    fn window(&self) -> usize {
        self.window
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Workspace, Fault> {
        self.open += 1;
        self.most.fetch_max(self.open, Ordering::Relaxed);
        self.inner.open(layout, frame)
    }

    fn close(&mut self, workspace: Workspace) {
        self.open -= 1;
        self.inner.close(workspace);
    }

    veil_device::forward!(self, self.inner, name bind load_key load write map view submit poll wipe);
}

/// A party has as many chunks in flight as its device wants, whatever the others have; no device gets more than peers reckon with.
#[test]
fn a_device_has_as_many_chunks_in_flight_as_it_wants() {
    // The workspace of the set-up is beside that of the first chunk.
    for (window, expected) in [(1, 2), (5, 5), (usize::MAX, 16)] {
        let most = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&most);
        let world = World::in_chunks(everything(Ring::Z64, &[200]), 8, 1).window(1);
        let world = world.devices(move |who| {
            if who != peer(1) {
                return Box::new(Cpu::detect());
            }
            Box::new(Busy {
                inner: Cpu::detect(),
                window,
                open: 0,
                most: Arc::clone(&counted),
            })
        });
        world.run().assert_right();
        assert_eq!(most.load(Ordering::Relaxed), expected, "{window}");
    }
}
