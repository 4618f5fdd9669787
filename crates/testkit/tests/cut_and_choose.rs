//! Garblers that lie consistently, each by telling its own device something else (attack cases E1 to E4, E6): how often they get away with
//! it is what the formulas say, what the evaluator computes is right all the same, and whether it gives up does not depend on its input.

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_device::cut::By;
use veil_device::{
    ColumnType, Command, Cpu, Cut, Device, Fault, Frame, Layout, Op, Ot, Program, ProgramId,
    Region, Residency, Span, Tag, Workspace,
};
use veil_engine::Abort;
use veil_job::{Statistical, Word};
use veil_math::Ring;
use veil_testkit::sample::{cut, peer};
use veil_testkit::{Outcome, Seed, Values, World};

/// What the garbler does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lie {
    /// So many circuits compute the first output bit wrongly.
    Circuits(u32),
    /// The label for 0 of the first encoded input bit is garbage in all circuits.
    Branch,
    /// Its own first input bit is another one in so many circuits.
    Input(u32),
}

/// The garbler's device.
struct Liar {
    inner: Cpu,
    lie: Lie,
    /// The region with the masks, of a workspace: circuits of both halves that are lied about, nothing, all circuits.
    masks: BTreeMap<u32, u16>,
    /// How often circuits were garbled in a workspace.
    passes: BTreeMap<u32, u32>,
}

fn half() -> u32 {
    veil_protocol::cut::half(Statistical::ALL[0])
}

/// A layout with a region of masks behind the others.
fn with_masks(layout: &Layout) -> Layout {
    let mut layout = layout.clone();
    layout.add(Region {
        residency: Residency::Mapped,
        column: ColumnType::Rows(Ring::Bits),
        components: 1,
        count: 4,
    });
    layout
}

impl Liar {
    fn new(lie: Lie) -> Self {
        Liar {
            inner: Cpu::detect(),
            lie,
            masks: BTreeMap::new(),
            passes: BTreeMap::new(),
        }
    }

    /// to ⊕= mask · by.
    fn add(&self, workspace: Workspace, [to, by]: [Span; 2], mask: u32) -> Command {
        let [first, by] = [to, by].map(|span| Span { count: 1, ..span });
        let mask = Span {
            region: self.masks[&workspace.0],
            component: 0,
            first: mask,
            count: 1,
        };
        let src = vec![first, by, mask];
        Command::new(Op::Ot(Ot::Choose), src, vec![first])
    }

    /// The commands that it does in the place of one.
    fn instead(&mut self, workspace: Workspace, command: &Command) -> Vec<Command> {
        let pass = self.passes.entry(workspace.0).or_default();
        let half = *pass % 2;
        match (self.lie, &command.op) {
            (Lie::Circuits(_), Op::Cut(Cut::Marks { by: By::Value, .. })) => {
                *pass += 1;
                let lie = self.add(workspace, [command.src[0], command.src[1]], half);
                vec![lie, command.clone()]
            }
            (Lie::Branch, Op::Cut(Cut::Mask)) => {
                // Its number added to a label makes it none of the wire's.
                let lie = self.add(workspace, [command.dst[0], command.src[3]], 3);
                vec![command.clone(), lie]
            }
            (Lie::Input(_), Op::Cut(Cut::Active)) => {
                *pass += 1;
                let lie = self.add(workspace, [command.dst[0], command.src[1]], half);
                vec![command.clone(), lie]
            }
            _ => vec![command.clone()],
        }
    }
}

impl Device for Liar {
    fn name(&self) -> &'static str {
        "liar"
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        let layout = with_masks(layout);
        self.inner.load(program, &layout)
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Workspace, Fault> {
        let layout = with_masks(layout);
        let region = layout.regions.len() as u16 - 1;
        let workspace = self.inner.open(&layout, frame)?;
        self.masks.insert(workspace.0, region);
        let lied = match self.lie {
            Lie::Circuits(n) | Lie::Input(n) => n,
            Lie::Branch => 0,
        };
        let bytes = frame.rows.div_ceil(8) as usize;
        let mut masks = vec![0; 4 * bytes];
        for circuit in (0..lied).filter(|c| *c < 2 * frame.rows) {
            let (half, row) = (circuit / frame.rows, circuit % frame.rows);
            masks[half as usize * bytes + row as usize / 8] |= 1 << (row % 8);
        }
        masks[3 * bytes..].fill(0xff);
        self.inner.write(workspace, layout.all(region, 0), &masks)?;
        self.passes.insert(workspace.0, 0);
        Ok(workspace)
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        let told: Vec<Command> = (batch.iter())
            .flat_map(|command| self.instead(workspace, command))
            .collect();
        self.inner.submit(workspace, &told, tag)
    }

    veil_device::forward!(self, self.inner, bind load_key close write map view poll wipe);
}

/// A run in which the garbler lies; the evaluator's inputs are as given.
fn run(lie: Lie, y: u128, seed: u64) -> Outcome {
    let job = cut("adder:2", 1);
    let values = Values::new(
        &job,
        |_, _, port, _| if port == 1 { y } else { u128::from(seed) },
    );
    World::in_chunks(job, 1, 1)
        .seed(Seed(seed))
        .values(values)
        .devices(move |who| -> Box<dyn Device> {
            if who == peer(0) {
                Box::new(Liar::new(lie))
            } else {
                Box::new(Cpu::detect())
            }
        })
        .run()
}

/// What the evaluator says, if it gives up.
fn found(outcome: &Outcome) -> Option<&'static str> {
    match outcome.aborts.get(&peer(1)) {
        None => None,
        Some(Abort::Cheated { suspects, what, .. }) => {
            assert_eq!(suspects, &[peer(0)]);
            Some(what)
        }
        Some(other) => panic!("{}: {other:?}", outcome.seed),
    }
}

/// Within five standard deviations of n tries.
#[track_caller]
fn assert_rate(hits: u32, tries: u32, p: f64, what: &str) {
    let (n, hits) = (f64::from(tries), f64::from(hits));
    let bound = 5.0 * (n * p * (1.0 - p)).sqrt() + 1.0;
    assert!(
        (hits - n * p).abs() <= bound,
        "{what}: {hits} of {n}, and {p} is the formula's"
    );
}

/// Probability that none of `wrong` circuits is opened, counted as ∏ (h - k) / (2 h - k).
fn escape(wrong: u32) -> f64 {
    let h = half();
    let factor = |k: u32| f64::from(h - k) / f64::from(2 * h - k);
    (0..wrong).map(factor).product()
}

const TRIES: u32 = 120;

#[test]
#[ignore = "tier long: seconds of one processor"]
fn wrong_circuits_escape_as_often_as_counted_and_change_no_result() {
    for wrong in [1, 2, 3] {
        let mut escaped = 0;
        for seed in 0..TRIES {
            let outcome = run(Lie::Circuits(wrong), u128::from(seed % 4), seed.into());
            if let Some(what) = found(&outcome) {
                assert_eq!(what, "a circuit that was opened");
            } else {
                escaped += 1;
                outcome.assert_right();
            }
        }
        assert_rate(escaped, TRIES, escape(wrong), "circuits that escape");
    }
}

/// Half of those that are evaluated: what the statistical parameter is about. More cannot escape.
#[test]
#[ignore = "tier long: seconds of one processor"]
fn enough_wrong_circuits_to_change_a_result_are_found() {
    let wrong = half().div_ceil(2);
    let mut changed = 0;
    for seed in 0..TRIES {
        let outcome = run(Lie::Circuits(wrong), 1, seed.into());
        match found(&outcome) {
            Some(what) => assert_eq!(what, "a circuit that was opened"),
            None => changed += 1,
        }
    }
    assert!(escape(wrong) <= 2f64.powi(-9), "{}", escape(wrong));
    assert_rate(changed, TRIES, escape(wrong), "results that are changed");
    for seed in 0..10 {
        let outcome = run(Lie::Circuits(half() + 1), 1, seed);
        assert_eq!(found(&outcome), Some("a circuit that was opened"));
    }
}

/// Whether the evaluator gives up over a garbage label follows from its encoding, which is random whatever its input is.
#[test]
#[ignore = "tier long: seconds of one processor"]
fn a_garbage_branch_tells_nothing_of_the_input() {
    for y in [0, 1, 2, 3] {
        let mut gave_up = 0;
        for seed in 0..TRIES {
            let outcome = run(Lie::Branch, y, seed.into());
            if found(&outcome).is_some() {
                gave_up += 1;
            } else {
                outcome.assert_right();
            }
        }
        assert_rate(gave_up, TRIES, 0.5, "runs that end over a garbage label");
    }
}

/// Another input in half of the circuits: of those evaluated some have it but with a negligible probability, and the sums differ but in one
/// of 2^9 cases.
#[test]
#[ignore = "tier long: seconds of one processor"]
fn another_input_in_some_circuits_is_found() {
    let mut passed = 0;
    for seed in 0..TRIES {
        let outcome = run(Lie::Input(half()), 1, seed.into());
        match found(&outcome) {
            Some(what) => assert_eq!(what, "the garbler's inputs in all circuits"),
            None => passed += 1,
        }
    }
    assert_rate(passed, TRIES, 2f64.powi(-9), "inputs that differ unseen");
}
