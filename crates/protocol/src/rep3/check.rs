//! The check that the products of integers of a chunk are right: values fit their MACs.
//!
//! Every value x has a MAC r x, and a wrong product does not fit its MAC unless a party knows r (`plan::authenticate`). Of all pairs of a
//! chunk, of the set-up or of the totals the parties compute Σ w x and Σ w r x with random weights w that no party knows, each as one
//! product of long vectors, to which every layer adds its part, and of these the difference T = Σ w r x - r Σ w x, which is 0 if no party
//! has cheated.
//!
//! Each party is sent the component of T that it lacks by both others, and goes on if they sent the same and T is 0. If it is not, T tells nothing but what
//! follows from the errors and from r, which is used for one chunk.
//!
//! `docs/protocol-rep3.md` has the argument, and what a corrupt party has to guess.

use veil_device::{Command, KeyId, Op, Span};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::{KEY_OWN, KEY_PREVIOUS, OWN, SCHEME};
use crate::plan::{JOB_WIDE, LayerPlan, Plan, SLOTS};
use crate::replicated::regions::{CHECK, RECEIVE_SUMS, SEND_SUMS, SUM_WEIGHTS, WEIGHTS};
use crate::replicated::{
    Authenticated, CheckOf, Frame, Work, check, combine, look, random, transfer, within,
};
use crate::round::{Cost, Round, Transfer};

/// A message of a check, or of a value that exists only to be checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CheckMessage {
    /// A party's part of the MACs of job-wide values.
    Macs,
    /// A party's part of both weighted sums.
    Sums,
    /// A party's part of r times one of them.
    Product,
    /// A component of the difference.
    Difference,
}

/// The kind of message that is sent from, or received to, a span. `task`s other than inputs alone have such messages.
pub fn check_message(of: &Transfer) -> Option<CheckMessage> {
    match (of.span.region, of.span.first) {
        (JOB_WIDE, _) => Some(CheckMessage::Macs),
        (CHECK, VALUES) => Some(CheckMessage::Sums),
        (CHECK, TIMES) => Some(CheckMessage::Product),
        (CHECK, _) => Some(CheckMessage::Difference),
        _ => None,
    }
}

/// The ring that values and MACs are computed in.
const RING: Ring = Ring::Z128;

/// Elements of a check, own and previous components of each: the weighted sums of values and MACs, r times the first, the difference.
const VALUES: u32 = 0;
const MACS: u32 = 1;
const TIMES: u32 = 2;
const DIFFERENCE: u32 = 3;
/// The component that this party lacks, as the next and the previous party say.
const TOLD: u32 = 4;
/// The difference as a value, and zero.
const OPENED: u32 = 5;
/// Masks of the first three.
const MASKS: u32 = 6;
pub(crate) const CHECK_ELEMENTS: u32 = 9;

/// The job-wide value that is r, in every chunk, in the set-up and in the totals another one.
const KEY: u32 = 0;

pub(super) const CHECK_OF: CheckOf = CheckOf { rounds, cost };

fn element(part: u8, first: u32, count: u32) -> Span {
    Span {
        region: CHECK,
        component: part,
        first,
        count,
    }
}

/// Own and previous components, which are in one region or in two.
type Shares = [Span; 2];

fn shares(regions: [u16; 2], parts: [u8; 2], first: u32, count: u32) -> Shares {
    [0, 1].map(|k| Span {
        region: regions[k],
        component: parts[k],
        first,
        count,
    })
}

/// Element `to` += Σ a b, as far as this party computes it.
fn dot(a: Shares, b: Shares, to: u32) -> Command {
    let src = vec![a[0], a[1], b[0], b[1]];
    Command::new(Op::Dot, src, vec![element(0, to, 1)])
}

/// Parts in one region.
const BOTH: [u8; 2] = [0, 1];
/// Sent messages are own components, received ones previous components.
const SENT: [u8; 2] = [0, 0];

/// Own and previous components, and the keys that they are made under.
const KEYS: [(u8, KeyId); 2] = [(0, KEY_OWN), (1, KEY_PREVIOUS)];

/// Draws components of random elements.
fn drawn(region: u16, first: u32, count: u32, tag: DomainTag, counter: u64) -> [Command; 2] {
    KEYS.map(|(part, key)| {
        let to = Span {
            region,
            component: part,
            first,
            count,
        };
        random(to, key, tag, counter)
    })
}

/// The rounds before the layers, in which r is drawn and job-wide values get their MACs, and those after them.
fn rounds(plan: &Plan, me: PartyId, frame: Frame, place: u32) -> [Vec<Round>; 2] {
    let checking = Checking { plan, me, frame };
    if checking.authenticated() == Authenticated::default() {
        return Default::default();
    }
    let mut before = vec![checking.begin()];
    let mut after = vec![checking.sums(), checking.product(), checking.open()];
    for (place, round) in (place..).zip(before.iter_mut().chain(&mut after)) {
        round.place = place;
    }
    [before, after]
}

/// The commands that add the pairs of a layer, whose messages have arrived, to both weighted sums.
pub(super) fn weighted(plan: &Plan, layer: &LayerPlan) -> Vec<Command> {
    let before = layer.before.authenticated;
    let here = Authenticated::of(&layer.authenticated);
    let mut commands = Vec::new();
    if here.pairs() > 0 {
        // A block for each element: every item takes as many as a full chunk has rows.
        let counter = u64::from(before.pairs()) * u64::from(plan.chunk_rows);
        commands.extend(drawn(WEIGHTS, 0, here.pairs(), DomainTag::WEIGHT3, counter));
    }
    // Products are in their slots, in pieces: first weight, first slot, how many, and the sum to which they are added.
    let message = Work::of(plan, layer)[0].products(plan, OWN);
    let pieces = |weight: u32, first: u32, count: u32, to: u32| {
        let found = within(&message, first, count).into_iter();
        found.map(move |(after, piece)| (weight + after, piece.first, piece.count, to))
    };
    let products = here.products;
    let mut terms: Vec<(u32, u32, u32, u32)> = pieces(0, 0, products, VALUES).collect();
    terms.extend(pieces(0, products, products, MACS));
    let mut at = products;
    for &(slot, count) in &layer.authenticated.authenticated {
        terms.push((at, slot, count, VALUES));
        terms.extend(pieces(at, products + at, count, MACS));
        at += count;
    }
    let terms = terms.into_iter().map(|(weight, slot, count, to)| {
        let weights = shares([WEIGHTS; 2], BOTH, weight, count);
        dot(weights, shares([SLOTS; 2], BOTH, slot, count), to)
    });
    commands.extend(terms);
    if here.sums > 0 {
        let sums = |first| shares([SEND_SUMS, RECEIVE_SUMS], SENT, first, here.sums);
        let weights = shares([SUM_WEIGHTS; 2], BOTH, 0, here.sums);
        let (values, macs) = (sums(0), sums(here.sums));
        commands.push(dot(weights, values, VALUES));
        commands.push(dot(weights, macs, MACS));
        let counter = u64::from(before.sums) + plan.macs_of_job_wide.of.len() as u64;
        let weights = drawn(SUM_WEIGHTS, 0, here.sums, DomainTag::SUM_WEIGHT3, counter);
        commands.splice(0..0, weights);
    }
    commands
}

/// What is coded in some layers.
fn authenticated(plan: &Plan, layers: std::ops::Range<usize>) -> Authenticated {
    let layers = plan.all_layers().take(layers.end).skip(layers.start);
    layers.fold(Authenticated::default(), |mut all, layer| {
        look();
        all += Authenticated::of(&layer.authenticated);
        all
    })
}

struct Checking<'a> {
    plan: &'a Plan,
    me: PartyId,
    frame: Frame,
}

impl Checking<'_> {
    /// What is checked.
    fn authenticated(&self) -> Authenticated {
        authenticated(self.plan, self.frame.layers(self.plan))
    }

    /// The job-wide values and that get MACs, and the first job-wide value of these.
    fn job_wide(&self) -> (&[u32], u32) {
        let authenticated = &self.plan.macs_of_job_wide;
        match self.frame {
            Frame::Rows => (&authenticated.of, authenticated.first),
            Frame::SetUp | Frame::Totals => (&[], authenticated.first),
        }
    }

    fn begin(&self) -> Round {
        let mut local = vec![combine(RING, vec![], 0, element(0, VALUES, 2))];
        local.extend(drawn(JOB_WIDE, KEY, 1, DomainTag::MAC_KEY3, 0));
        let (job_wide, first) = self.job_wide();
        let count = job_wide.len() as u32;
        if count == 0 {
            return Round {
                local,
                ..Round::default()
            };
        }
        let share = |first, count| shares([JOB_WIDE; 2], BOTH, first, count);
        let [own, received] = share(first, count);
        local.push(combine(RING, vec![], 0, own));
        for (to, &job_value) in (first..).zip(job_wide) {
            let ([r, s], [a, b]) = (share(KEY, 1), share(job_value, 1));
            let [to, _] = share(to, 1);
            local.push(Command::new(Op::Dot, vec![r, s, a, b], vec![to]));
        }
        // The weights are drawn after this.
        local.extend(drawn(SUM_WEIGHTS, 0, count, DomainTag::MAC3, 0));
        let [mask, minus] = shares([SUM_WEIGHTS; 2], BOTH, 0, count);
        local.push(combine(RING, vec![own, mask, minus], 0b100, own));
        let [previous, next] = self.neighbours();
        let mut round = Round {
            local,
            sends: vec![transfer(own, next, 0)],
            recvs: vec![transfer(received, previous, 0)],
            ..Round::default()
        };
        let weights = drawn(SUM_WEIGHTS, 0, count, DomainTag::SUM_WEIGHT3, 0);
        round.finish.extend(weights);
        for (k, &job_value) in (0..).zip(job_wide) {
            let weight = shares([SUM_WEIGHTS; 2], BOTH, k, 1);
            round.finish.push(dot(weight, share(job_value, 1), VALUES));
            round.finish.push(dot(weight, share(first + k, 1), MACS));
        }
        round
    }

    /// Masks what this party computed of elements, so that they are its message, and exchanges them.
    fn share(&self, mut local: Vec<Command>, first: u32, count: u32) -> Round {
        let masks = drawn(CHECK, MASKS + first, count, DomainTag::CHECK3, first.into());
        local.extend(masks);
        let own = element(0, first, count);
        let [mask, minus] = shares([CHECK; 2], BOTH, MASKS + first, count);
        local.push(combine(RING, vec![own, mask, minus], 0b100, own));
        let [previous, next] = self.neighbours();
        Round {
            local,
            sends: vec![transfer(own, next, 0)],
            recvs: vec![transfer(element(1, first, count), previous, 0)],
            ..Round::default()
        }
    }

    fn neighbours(&self) -> [Peer; 2] {
        [SCHEME.previous(self.me), SCHEME.next(self.me)].map(Peer::Party)
    }

    /// Both weighted sums, which the layers have made.
    fn sums(&self) -> Round {
        self.share(Vec::new(), VALUES, 2)
    }

    /// r times the sum of the values.
    fn product(&self) -> Round {
        let key = shares([JOB_WIDE; 2], BOTH, KEY, 1);
        let values = shares([CHECK; 2], BOTH, VALUES, 1);
        let local = vec![
            combine(RING, vec![], 0, element(0, TIMES, 1)),
            dot(key, values, TIMES),
        ];
        self.share(local, TIMES, 1)
    }

    /// Opens the difference, which has to be 0.
    fn open(&self) -> Round {
        let of = |part| {
            let src = vec![element(part, MACS, 1), element(part, TIMES, 1)];
            combine(RING, src, 0b10, element(part, DIFFERENCE, 1))
        };
        let mine = [0, 1].map(|part| element(part, DIFFERENCE, 1));
        let told = [0, 1].map(|part| element(part, TOLD, 1));
        let [previous, next] = self.neighbours();
        // The previous party lacks this one's own component, and the next one its previous component.
        let mut round = Round {
            local: vec![of(0), of(1)],
            sends: vec![transfer(mine[0], previous, 0), transfer(mine[1], next, 1)],
            recvs: vec![transfer(told[0], next, 0), transfer(told[1], previous, 1)],
            ..Round::default()
        };
        let suspects = vec![next, previous];
        let what = "a component of the difference of values and codes";
        check(&mut round, told[0], told[1], suspects.clone(), what);
        let [opened, zero] = [0, 1].map(|part| element(part, OPENED, 1));
        let src = vec![mine[0], mine[1], told[0]];
        round.finish.push(combine(RING, src, 0, opened));
        round.finish.push(combine(RING, vec![], 0, zero));
        let what = "the codes of products";
        check(&mut round, opened, zero, suspects, what);
        round
    }
}

/// MACs of job-wide values, then the sums, the product and two components of the difference, if there is anything to check.
fn cost(plan: &Plan, frame: Frame) -> Cost {
    if authenticated(plan, frame.layers(plan)) == Authenticated::default() {
        return Cost::default();
    }
    let job_wide = plan.macs_of_job_wide.of.len() as u64;
    let job_wide = if frame == Frame::Rows { job_wide } else { 0 };
    let any = u64::from(job_wide > 0);
    Cost {
        rounds: 3 + any,
        messages: 4 + any,
        bytes: (5 + job_wide) * RING.bytes(1),
    }
}
