//! Parties of authenticated garbling that lie consistently, each by telling its own device something else, and that check nothing (attack
//! cases F1 to F6): the other party finds it as often as the formulas say, whatever its input is, and gets right results else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use veil_device::ag::{Ag, Role};
use veil_device::{
    ColumnType, Command, Completion, Cpu, Device, Fault, Frame, Layout, Op, Program, ProgramId,
    Region, Residency, Span, Tag, Workspace,
};
use veil_engine::Abort;
use veil_job::{Audience, Holder};
use veil_link::tap::Fate;
use veil_protocol::yao::OFFSET;
use veil_session::Peer;
use veil_testkit::sample::{authenticated, party, peer};
use veil_testkit::{Kind, Message, Outcome, Seed, Values, World};

/// What the Byzantine party does, of the first row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lie {
    /// G of the first candidate of the first layer is wrong: a bet that the other party's part of its a is 0.
    Offer,
    /// The same, with a sum that fits where the part is 1.
    OtherOffer,
    /// The bit d of the first candidate is the other one.
    Difference,
    /// The part of the result of the first candidate is another one than the authenticated.
    Part,
    /// The first bit that is opened of a batch is the other one.
    Opened,
    /// The garbler garbles the first gate for the opposite result.
    Function,
    /// Bit 1 of the first half of the table of the first gate is wrong, or of the second half.
    Table(usize),
    /// The bit z of the first gate is wrong.
    Colour,
    /// The evaluator says that Λ of the first result is the other one, and folds the labels that it has.
    Result,
    /// The garbler takes the label of the first input bit, which the evaluator has, for that of the other Λ.
    Label,
    /// The first part of the mask of an input of the other party is the other one.
    InputPart,
    /// The same of an output.
    OutputPart,
    /// The same of an output to a recipient from outside.
    OutsidePart,
}

/// Components of slots, as the rounds have them, and the region of slots.
const MAC: u8 = 1;
const SLOTS: u16 = 0;
/// Where MACs of masks of inputs are on their way to slots.
const STAGED: u16 = 5;
/// Where those of outputs for recipients from outside are.
const OUTSIDE: u16 = 34;

/// Something that the Byzantine party does beside a command, on the first block or bit of a span.
#[derive(Clone, Copy)]
enum Beside {
    /// Adds 1 to a block that no host reaches.
    One(Span),
    /// Adds this to a byte of what is sent, or was.
    Byte(Span, u8),
}

/// The device of the Byzantine party.
struct Liar {
    inner: Cpu,
    lie: Lie,
    /// Of each workspace the first of three regions of its own: a bit that is 1 in front of zeros; zeros; blocks.
    regions: BTreeMap<u32, u16>,
    /// Of the steps that it does one at a time, until the last of a batch.
    steps: Tag,
}

/// Bytes of an array of blocks: no column of transfers is longer.
fn array(layout: &Layout) -> u32 {
    let bytes = |region: &Region| match region.column {
        ColumnType::Bytes(bytes) => bytes,
        _ => 0,
    };
    layout.regions.iter().map(bytes).max().unwrap_or(0)
}

fn with_regions(layout: &Layout) -> Layout {
    let mut layout = layout.clone();
    let bytes = array(&layout);
    for (residency, bytes) in [
        (Residency::Mapped, bytes / 128),
        (Residency::Mapped, bytes / 128),
        (Residency::Resident, bytes),
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

/// One item of a span.
fn one(span: Span) -> Span {
    Span { count: 1, ..span }
}

impl Liar {
    fn new(lie: Lie) -> Self {
        Liar {
            inner: Cpu::detect(),
            lie,
            regions: BTreeMap::new(),
            steps: Tag(u64::MAX),
        }
    }

    /// What it does before a command, and after it.
    fn beside(&self, command: &Command) -> [Option<Beside>; 2] {
        let step = match command.op {
            Op::Ag(step) => step,
            Op::Encode { .. } if self.lie == Lie::Label => {
                let public = || Some(Beside::Byte(one(command.src[1]), 1));
                return [public(), public()];
            }
            _ => return [None, None],
        };
        let (src, dst) = (&command.src, &command.dst);
        let byte = |at: usize, by: u8| Some(Beside::Byte(one(dst[at]), by));
        let part_of = |slots: u16| {
            let from = src[0];
            from.region == slots && from.component == MAC && dst[0].component == 0
        };
        match (self.lie, step) {
            (Lie::Offer | Lie::OtherOffer, Ag::Offer { .. }) => [None, byte(0, 1)],
            (Lie::OtherOffer, Ag::Take { .. }) => [None, Some(Beside::One(one(dst[0])))],
            (Lie::Difference, Ag::Take { .. }) | (Lie::Colour, Ag::Garble { at: 0, .. }) => {
                [None, byte(1, 1)]
            }
            (Lie::Part, Ag::Take { .. }) | (Lie::Function, Ag::Garble { at: 0, .. }) => [
                Some(Beside::One(one(src[4]))),
                Some(Beside::One(one(src[4]))),
            ],
            (Lie::Opened, Ag::Bits { .. }) if src.len() > 1 && dst[0].first == 0 => {
                [None, byte(0, 1)]
            }
            (Lie::Table(half), Ag::Garble { at: 0, .. }) => {
                let table = Span {
                    first: dst[0].first + half as u32,
                    ..one(dst[0])
                };
                [None, Some(Beside::Byte(table, 2))]
            }
            (Lie::Result, Ag::Evaluate { at: 0 }) => [None, byte(3, 1)],
            (Lie::InputPart, Ag::Bits { .. }) if part_of(STAGED) => [None, byte(0, 1)],
            (Lie::OutputPart, Ag::Bits { .. }) if part_of(SLOTS) => [None, byte(0, 1)],
            (Lie::OutsidePart, Ag::Bits { .. }) if src[0].region == OUTSIDE => [None, byte(0, 1)],
            _ => [None, None],
        }
    }

    fn do_beside(&mut self, workspace: Workspace, beside: Beside) -> Result<(), Fault> {
        match beside {
            Beside::Byte(span, by) => self.inner.map(workspace, span)?[0] ^= by,
            Beside::One(to) => {
                let [bit, zero, blocks] = [0, 1, 2].map(|k| Span {
                    region: self.regions[&workspace.0] + k,
                    component: 0,
                    first: 0,
                    count: 1,
                });
                // A public 1 where the bits are: the offset goes into blocks that are for nothing.
                let step = Ag::Settle {
                    offset: OFFSET,
                    role: Role::Garbler,
                };
                let add = Command::new(Op::Ag(step), vec![bit, zero], vec![blocks, to]);
                self.inner.submit(workspace, &[add], self.steps)?;
            }
        }
        Ok(())
    }
}

impl Device for Liar {
    fn name(&self) -> &'static str {
        "liar"
    }

    fn load(&mut self, program: &Arc<Program>, layout: &Layout) -> Result<ProgramId, Fault> {
        self.inner.load(program, &with_regions(layout))
    }

    fn open(&mut self, layout: &Layout, frame: Frame) -> Result<Workspace, Fault> {
        let (region, bytes) = (layout.regions.len() as u16, array(layout) / 128);
        let layout = with_regions(layout);
        let workspace = self.inner.open(&layout, frame)?;
        let mut bit = vec![0; bytes as usize];
        bit[0] = 1;
        self.inner.write(workspace, layout.all(region, 0), &bit)?;
        bit[0] = 0;
        self.inner
            .write(workspace, layout.all(region + 1, 0), &bit)?;
        self.regions.insert(workspace.0, region);
        Ok(workspace)
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        for command in batch {
            // It knows that nothing fits.
            if matches!(command.op, Op::CheckEqual) {
                continue;
            }
            let [before, after] = self.beside(command);
            if let Some(before) = before {
                self.do_beside(workspace, before)?;
            }
            let step = std::slice::from_ref(command);
            self.inner.submit(workspace, step, self.steps)?;
            if let Some(after) = after {
                self.do_beside(workspace, after)?;
            }
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

const GARBLER: u8 = 0;
const EVALUATOR: u8 = 1;

/// Two bits and two bits: the sum, for both.
fn world(x: u128, y: u128, seed: u64) -> World {
    let job = authenticated("adder:2", 1, Audience::Parties);
    let values = Values::new(&job, |_, _, port, _| [x, y][port]);
    World::in_chunks(job, 1, 1).seed(Seed(seed)).values(values)
}

/// A run in which a party lies; all bits of inputs are as given.
fn run(lie: Lie, liar: u8, [x, y]: [u128; 2], seed: u64) -> Outcome {
    lying(world(x, y, seed), lie, liar).run()
}

/// A world in which a party lies.
fn lying(world: World, lie: Lie, liar: u8) -> World {
    world.devices(move |who| -> Box<dyn Device> {
        if who == peer(liar) {
            Box::new(Liar::new(lie))
        } else {
            Box::new(Cpu::detect())
        }
    })
}

/// What the honest party says, if it gives up. It was given nothing then, and right results else.
#[track_caller]
fn found(outcome: &Outcome, liar: u8) -> Option<&'static str> {
    let honest = peer(1 - liar);
    outcome.assert_sound(Some(peer(liar)));
    match outcome.aborts.get(&honest) {
        None => {
            assert!(outcome.seen[&honest].finished(), "{}", outcome.seed);
            None
        }
        Some(Abort::Cheated { suspects, what, .. }) => {
            assert_eq!(suspects, &[peer(liar)], "{}", outcome.seed);
            let given = !outcome.seen[&honest].slices().is_empty();
            assert!(!given, "{}: {what}", outcome.seed);
            Some(what)
        }
        Some(other) => panic!("{}: {other:?}", outcome.seed),
    }
}

const BITS: &str = "bits that are opened of a batch";
const PRODUCTS: &str = "leaky products of authenticated bits";
const GATES: &str = "masks of gates";

/// All bits of either input.
const INPUTS: [[u128; 2]; 4] = [[0, 0], [0, 1], [1, 0], [1, 1]];

#[test]
fn a_lie_that_fits_itself_is_found_whatever_the_inputs() {
    let of_both = [
        (Lie::Difference, PRODUCTS),
        (Lie::Part, PRODUCTS),
        (Lie::Opened, BITS),
        (Lie::InputPart, "parts of masks of inputs"),
        (Lie::OutputPart, "parts of masks of outputs"),
    ];
    let both = [GARBLER, EVALUATOR].into_iter();
    let of_both = both.flat_map(|liar| of_both.map(|(lie, what)| (lie, liar, what)));
    let of_one = [
        (Lie::Function, GARBLER, GATES),
        (Lie::Colour, GARBLER, GATES),
        (Lie::Result, EVALUATOR, "labels of results"),
    ];
    for (lie, liar, what) in of_both.chain(of_one) {
        for (seed, inputs) in (0..).zip(INPUTS) {
            let outcome = run(lie, liar, inputs, seed);
            assert_eq!(found(&outcome, liar), Some(what), "{lie:?} of {liar}");
            // Of what is opened it gets nothing either, unless it was the last lie.
            let given = !outcome.seen[&peer(liar)].slices().is_empty();
            assert!(!given || lie == Lie::OutputPart, "{lie:?} of {liar}");
        }
    }
}

/// Neither an owner nor a recipient from outside takes another part than the authenticated one, whatever the inputs are.
#[test]
fn a_part_that_is_told_outside_is_the_authenticated_one() {
    let (owner, recipient) = (Peer::Owner(0), Peer::Recipient(0));
    for liar in [GARBLER, EVALUATOR] {
        for (lie, by) in [(Lie::InputPart, owner), (Lie::OutsidePart, recipient)] {
            for (seed, inputs) in (0..).zip(INPUTS) {
                let mut job = authenticated("adder:2", 1, Audience::Recipient(0));
                job.owners = vec!["ann".into()];
                job.recipients = vec!["rita".into()];
                job.blocks[0].holders.fill(Holder::Owner(0));
                let values = Values::new(&job, |_, _, port, _| inputs[port]);
                let world = World::in_chunks(job, 1, 1).seed(Seed(seed)).values(values);
                let outcome = lying(world, lie, liar).run();
                let Some(Abort::Cheated { suspects, what, .. }) = outcome.aborts.get(&by) else {
                    panic!("{}: {lie:?} of {liar}: {:?}", outcome.seed, outcome.aborts)
                };
                assert_eq!(suspects, &[peer(GARBLER), peer(EVALUATOR)]);
                assert_eq!(*what, "parts of masks that are told outside");
                assert!(outcome.seen[&recipient].slices().is_empty());
            }
        }
    }
}

/// Within five standard deviations of n tries that succeed with probability one half.
#[track_caller]
fn assert_half(hits: u32, tries: u32, what: &str) {
    let (n, hits) = (f64::from(tries), f64::from(hits));
    let bound = 5.0 * (n / 4.0).sqrt();
    assert!((hits - n / 2.0).abs() <= bound, "{what}: {hits} of {n}");
}

const TRIES: u32 = 150;

/// Runs that end over a lie, for both values of all bits: half of them, each time.
fn half(lie: Lie, liar: u8, what: &str) {
    for (k, inputs) in (0..).zip([INPUTS[0], INPUTS[3]]) {
        let mut ended = 0;
        for seed in 0..TRIES {
            let outcome = run(lie, liar, inputs, u64::from(k * TRIES + seed));
            match found(&outcome, liar) {
                None => {}
                Some(found) => {
                    assert_eq!(found, what, "{lie:?} of {liar}");
                    ended += 1;
                }
            }
        }
        assert_half(ended, TRIES, &format!("{lie:?} of {liar}, {inputs:?}"));
    }
}

/// F1, F2: what the bet is about is a random bit, of which other layers take care.
#[test]
#[ignore = "tier long: seconds of one processor"]
fn bets_on_parts_of_candidates_are_lost_half_of_the_time_whatever_the_inputs() {
    for liar in [GARBLER, EVALUATOR] {
        for lie in [Lie::Offer, Lie::OtherOffer] {
            half(lie, liar, PRODUCTS);
        }
    }
}

/// What a bet on a candidate of layer 0 says, which the gate's product is made of, is nothing of the masks of its operands: a of every candidate is
/// drawn for it alone. (Where a of layer 0 is the gate's own mask, a run ends exactly if the other party's part of that is 1.)
#[test]
#[ignore = "tier long: seconds of one processor"]
fn whether_a_bet_is_lost_says_nothing_of_the_masks_of_operands() {
    for liar in [GARBLER, EVALUATOR] {
        // The honest party tells the other one its parts of all masks, as that one supplies both operands.
        let mut same = [0; 4];
        for seed in 0..TRIES {
            let mut job = authenticated("adder:2", 1, Audience::Parties);
            job.blocks[0].holders.fill(Holder::Party(party(liar)));
            let parts = Arc::new(Mutex::new(Vec::new()));
            let told = Arc::clone(&parts);
            let watch = move |m: &Message| {
                if (m.kind, m.to) == (Some(Kind::InputParts), peer(liar)) {
                    told.lock().expect("no panic").extend_from_slice(&m.bytes);
                }
                Fate::Pass
            };
            let world = World::in_chunks(job, 1, 1).seed(Seed(seed.into()));
            let outcome = lying(world, Lie::Offer, liar).cheat(watch).run();
            let ended = found(&outcome, liar).is_some();
            let parts = parts.lock().expect("no panic");
            assert_eq!(parts.len(), same.len(), "a byte for each wire of one row");
            for (same, part) in same.iter_mut().zip(&*parts) {
                *same += u32::from((part & 1 == 1) == ended);
            }
        }
        for (wire, same) in same.into_iter().enumerate() {
            assert_half(same, TRIES, &format!("wire {wire}, {liar}"));
        }
    }
}

/// A label of neither value gives the only gate that it reaches a random Λ.
#[test]
#[ignore = "tier long: seconds of one processor"]
fn whether_a_label_of_neither_value_is_found_does_not_depend_on_the_inputs() {
    half(Lie::Label, GARBLER, GATES);
}

/// F3: whether a wrong half of a table is used follows from Λ, which is random whatever the operand is.
#[test]
#[ignore = "tier long: seconds of one processor"]
fn whether_a_wrong_table_is_found_does_not_depend_on_the_inputs() {
    for table in [0, 1] {
        half(Lie::Table(table), GARBLER, GATES);
    }
}

/// Changes on the way, where no device knows of it: of one candidate, and of half a gate.
#[test]
fn a_change_that_matters_half_of_the_time_is_found_half_of_the_time() {
    const TRIES: u32 = 60;
    for (kind, from, what) in [
        (Kind::LeakyOffer, GARBLER, PRODUCTS),
        (Kind::LeakyOffer, EVALUATOR, PRODUCTS),
        (Kind::Table, GARBLER, "labels of results"),
    ] {
        let mut ended = 0;
        for seed in 0..TRIES {
            let changes = move |m: &Message| {
                if (m.kind, m.from) == (Some(kind), peer(from)) {
                    Fate::Replace(veil_testkit::flipped(&m.bytes))
                } else {
                    Fate::Pass
                }
            };
            let world = world(1, u128::from(seed % 2), seed.into());
            let world = world.devices(|_| Box::new(Cpu::detect()));
            let outcome = world.cheat(changes).run();
            match outcome.aborts.get(&peer(GARBLER)) {
                None => {
                    outcome.assert_right();
                }
                Some(Abort::Cheated {
                    suspects, what: w, ..
                }) => {
                    assert_eq!((&suspects[..], *w), (&[peer(EVALUATOR)] as &[Peer], what));
                    ended += 1;
                }
                Some(other) => panic!("{}: {other:?}", outcome.seed),
            }
        }
        assert_half(ended, TRIES, &format!("{kind:?} of {from}"));
    }
}
