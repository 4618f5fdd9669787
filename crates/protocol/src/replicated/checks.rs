//! Checks of products after they were sent: proofs of batches of layers, and one check of the MACs of all layers.

use veil_math::Ring;
use veil_session::PartyId;

use super::regions;
use super::{Scheme, place};
use crate::plan::{Before, MacPlan, PROVED_GATES, Plan};
use crate::round::{Cost, Round};

/// How the products of a batch are proved to be right.
#[derive(Debug)]
pub(crate) struct ProofOf {
    /// Its rounds, which follow those of the batch's layers.
    pub(crate) rounds: fn(PartyId, &Batch) -> Vec<Round>,
    /// What they cost.
    pub(crate) cost: fn(&Batch) -> Cost,
}

/// Layers whose products are proved together.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    /// Which of those of a chunk, or of the set-up.
    pub(crate) number: u32,
    /// The layers, those of the set-up after those of the rows.
    pub(crate) layers: std::ops::Range<usize>,
    /// Products of bits of all of them, in all its cycles.
    pub(crate) products: u32,
    /// Cycles of a sequential circuit that are proved together; 1 if there are none.
    pub(crate) cycles: u64,
    /// Where the messages of these are that a party got.
    pub(crate) received: u16,
    /// Rows that it has at most.
    pub(crate) rows: u32,
    /// Place of the first round.
    pub(crate) place: u32,
}

impl Batch {
    /// The same, of fewer cycles.
    pub(crate) fn of_cycles(&self, cycles: u64) -> Self {
        Batch {
            products: (u64::from(self.products) / self.cycles * cycles) as u32,
            cycles,
            ..self.clone()
        }
    }

    /// Whether further layers with so many products are short enough to be proved along.
    pub(crate) fn takes(&self, products: u32) -> bool {
        let products = u64::from(self.products) + u64::from(products);
        products * u64::from(self.rows) <= PROVED_GATES
    }
}

/// How products of integers with MACs are checked.
#[derive(Debug)]
pub(crate) struct CheckOf {
    /// The rounds before the first layer of a run of layers, and after the last: from the place of the first of them on.
    pub(crate) rounds: fn(&Plan, PartyId, Frame, u32) -> [Vec<Round>; 2],
    /// What all of them cost.
    pub(crate) cost: fn(&Plan, Frame) -> Cost,
}

/// Layers that are computed one after the other, on the same values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Frame {
    /// Products of a chunk.
    Rows,
    /// Products of the set-up.
    SetUp,
    /// Products of the totals.
    Totals,
}

impl Frame {
    /// Every one.
    pub(crate) const ALL: [Frame; 3] = [Frame::Rows, Frame::SetUp, Frame::Totals];

    /// The numbers of its layers, none if there are none.
    pub(crate) fn layers(self, plan: &Plan) -> std::ops::Range<usize> {
        let set_up = plan.layers.len();
        let of_set_up = plan.job_plan.as_ref().map_or(0, |job| job.layers.len());
        let totals = set_up + of_set_up;
        match self {
            Frame::Rows => 0..set_up,
            Frame::SetUp => set_up..totals,
            Frame::Totals => totals..plan.all_layers().count(),
        }
    }

    /// The one that a layer belongs to.
    pub(crate) fn of(plan: &Plan, layer: usize) -> Self {
        let has = |frame: &Frame| frame.layers(plan).contains(&layer);
        Frame::ALL
            .into_iter()
            .find(has)
            .expect("a layer of the plan")
    }
}

/// Products of integers that have MACs: of rows and of sums, and those that make a MAC of what is no product.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Authenticated {
    pub(crate) products: u32,
    pub(crate) macs: u32,
    pub(crate) sums: u32,
}

impl Authenticated {
    /// Those of a layer.
    pub(crate) fn of(layer: &MacPlan) -> Self {
        let authenticated = layer.authenticated.iter();
        Authenticated {
            products: layer.products,
            macs: authenticated.map(|(_, count)| count).sum(),
            sums: layer.sums,
        }
    }

    /// Messages with an element per row.
    pub(crate) const fn messages(self) -> u32 {
        2 * self.products + self.macs
    }

    /// Pairs of a value and its MAC with an element per row.
    pub(crate) const fn pairs(self) -> u32 {
        self.products + self.macs
    }
}

/// A layer is looked at: tests count it.
pub(crate) fn look() {
    #[cfg(test)]
    tests::LOOKS.set(tests::LOOKS.get() + 1);
}

impl std::ops::AddAssign for Authenticated {
    fn add_assign(&mut self, other: Authenticated) {
        self.products += other.products;
        self.macs += other.macs;
        self.sums += other.sums;
    }
}

/// Rounds of layers from `first` on, after the last of each batch its proof, and before and after all of them the check of their MACs.
pub(super) fn with_proofs(
    scheme: &Scheme,
    plan: &Plan,
    me: PartyId,
    first: usize,
    layers: Vec<Round>,
) -> Vec<Round> {
    let [mut rounds, after] = checks(scheme, plan, me, Frame::of(plan, first));
    rounds.extend(proved(scheme, me, &batches(scheme, plan), first, layers));
    rounds.extend(after);
    rounds
}

/// Rounds of layers from `first` on, and after the last layer of each batch its proof.
pub(super) fn proved(
    scheme: &Scheme,
    me: PartyId,
    batches: &[Batch],
    first: usize,
    layers: impl IntoIterator<Item = Round>,
) -> Vec<Round> {
    let mut rounds = Vec::new();
    let begun = batches.partition_point(|batch| batch.layers.end <= first);
    let mut batches = batches[begun..].iter();
    let mut batch = batches.next();
    for (layer, round) in (first..).zip(layers) {
        rounds.push(round);
        let ended = batch.take_if(|batch| batch.layers.end == layer + 1);
        if let (Some(ended), Some(proof)) = (ended, &scheme.products.proof) {
            rounds.extend((proof.rounds)(me, ended));
            batch = batches.next();
        }
    }
    rounds
}

/// Counts what every layer of a plan has before it.
pub(crate) fn count_before(scheme: &Scheme, plan: &mut Plan) {
    let batches = batches(scheme, plan).into_iter();
    let mut starts = batches.map(|batch| batch.layers.start).peekable();
    let mut frames = Frame::ALL
        .map(|frame| frame.layers(plan).start)
        .into_iter()
        .peekable();
    let products: Vec<u32> = (plan.all_layers())
        .map(|layer| plan.products_of_bits(layer))
        .collect();
    let mut before = Before::default();
    for ((index, layer), products) in plan.all_layers_mut().enumerate().zip(products) {
        if starts.next_if_eq(&index).is_some() {
            before.proved = 0;
        }
        while frames.next_if_eq(&index).is_some() {
            before.authenticated = Authenticated::default();
        }
        layer.before = before;
        before.proved = before.proved.saturating_add(products);
        before.authenticated += Authenticated::of(&layer.authenticated);
    }
}

/// The rounds before and after the layers of a frame in which products with MACs are checked.
pub(super) fn checks(scheme: &Scheme, plan: &Plan, me: PartyId, frame: Frame) -> [Vec<Round>; 2] {
    let check = scheme.products.check.as_ref().filter(|_| plan.has_macs());
    let place = place_of_checks(scheme, plan) + CHECK_PLACES * frame as u32;
    check.map_or_else(Default::default, |check| {
        (check.rounds)(plan, me, frame, place)
    })
}

/// Places that a frame's checks take.
pub(crate) const CHECK_PLACES: u32 = 4;

/// The place of the first round of a check, behind those of all proofs.
pub(super) fn place_of_checks(scheme: &Scheme, plan: &Plan) -> u32 {
    let batches = batches(scheme, plan);
    let proofs = batches.iter().map(|batch| proof_rounds(scheme, batch));
    place::LAYERS + plan.all_layers().count() as u32 + proofs.sum::<u32>()
}

/// What is proved together, where products are proved: layers that follow each other, of the rows or of the set-up.
pub(crate) fn batches(scheme: &Scheme, plan: &Plan) -> Vec<Batch> {
    if scheme.products.proof.is_none() {
        return Vec::new();
    }
    let mut batches: Vec<Batch> = Vec::new();
    let mut place = place::LAYERS + plan.all_layers().count() as u32;
    let rows = plan.longest_chunk();
    let received = match plan.ring {
        Ring::Bits => regions::RECEIVE,
        Ring::Z32 | Ring::Z64 | Ring::Z128 => regions::BIT_RECEIVE,
    };
    for (index, layer) in plan.all_layers().enumerate() {
        look();
        let frame = Frame::of(plan, index);
        let first = index == frame.layers(plan).start;
        let rows = if frame == Frame::Rows { rows } else { 1 };
        let products = plan.products_of_bits(layer);
        match batches.last_mut().filter(|_| !first) {
            Some(batch) if batch.takes(products) => {
                batch.products += products;
                batch.layers.end += 1;
            }
            last => {
                let number = last.map_or(0, |batch| batch.number + 1);
                batches.push(Batch {
                    number,
                    layers: index..index + 1,
                    products,
                    cycles: 1,
                    received,
                    rows,
                    place: 0,
                });
            }
        }
    }
    // If the layers of a cycle are one batch, those of several cycles may be.
    let mut of_rows = batches
        .iter_mut()
        .filter(|b| b.layers.start < plan.layers.len());
    if let (Some(batch), None) = (of_rows.next(), of_rows.next())
        && batch.products > 0
    {
        let most = PROVED_GATES / (u64::from(batch.products) * u64::from(batch.rows.max(1)));
        let cycles = most.clamp(1, plan.cycle_count());
        batch.products *= cycles as u32;
        batch.cycles = cycles;
    }
    for batch in &mut batches {
        batch.place = place;
        place += proof_rounds(scheme, batch);
    }
    batches
}

/// Rounds of the proof of a batch.
fn proof_rounds(scheme: &Scheme, batch: &Batch) -> u32 {
    let proof = scheme.products.proof.as_ref();
    proof.map_or(0, |proof| (proof.cost)(batch).rounds as u32)
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use veil_circuit::{Builder, Per};
    use veil_job::{Adversary, Audience, Block, Holder, JobSpec, Security};
    use veil_session::Peer;

    use super::*;
    use crate::plan::Options;
    use crate::replicated::Replicated;
    use crate::round::{Protocol, Task};

    thread_local! {
        /// How often this thread looked at a layer.
        pub(super) static LOOKS: Cell<u64> = const { Cell::new(0) };
    }

    /// A chain of so many products, one in each layer, among so many parties.
    pub(crate) fn chain(ring: Ring, layers: usize, parties: usize) -> Arc<JobSpec> {
        let mut b = Builder::new(ring);
        let inputs = b.input("v", 2, Per::Row);
        let product = (0..layers).fold(inputs[0], |product, _| b.mul(product, inputs[1]));
        b.output("z", &[product]);
        Arc::new(JobSpec {
            name: "chain".into(),
            schema: String::new(),
            owners: vec!["ann".into()],
            parties: (0..parties).map(|k| format!("p{k}")).collect(),
            recipients: vec!["eve".into()],
            security: Security::among(parties).against(Adversary::Malicious),
            totals: None,
            circuit: b.finish().unwrap(),
            blocks: vec![Block {
                name: "all".into(),
                rows: 1000,
                holders: vec![Holder::Owner(0)],
                stored: None,
                order: veil_job::Order::Unsaid,
            }],
            audiences: vec![Audience::Parties],
            opened: vec!["z".into()],
            inputs: Vec::new(),
            datasets: Vec::new(),
            keep: None,
        })
    }

    /// How often a layer is looked at to plan so many, to make a party's rounds of them, and to say what they cost.
    fn looks(ring: Ring, layers: usize) -> u64 {
        let before = LOOKS.get();
        let plan = Plan::new(chain(ring, layers, 3), Options::default()).unwrap();
        let plan = Arc::new(plan);
        assert!(plan.depth as usize >= layers);
        let me = Peer::Party(PartyId::THREE[0]);
        let party = Replicated::new(Arc::clone(&plan), me);
        let cost = party.cost(Task::Layers, plan.set_up_frame());
        assert!(cost.rounds as usize > layers);
        LOOKS.get() - before
    }

    #[test]
    fn planning_takes_steps_in_proportion_to_layers() {
        for ring in [Ring::Bits, Ring::Z64] {
            let (few, many) = (looks(ring, 500), looks(ring, 20_000));
            assert!(many <= 41 * few, "{few} for 500 layers, {many} for 20000");
        }
    }
}
