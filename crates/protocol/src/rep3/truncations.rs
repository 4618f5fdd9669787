//! Truncations of integers: in three rounds, four elements and a few bits.
//!
//! Rotation z of an integer x below 2^(k-1), by m bits: A = P_{z+1} and B = P_{z+2} draw r under κ_{z+1}; P_z learns c = x + r modulo 2^k, and there is a carry w = u v with
//! u = not top(c), known to P_z, and v = top(r), known to A and B. Under κ_z, which P_z and A have, are a bit s and masks ρ and y_z; under κ_{z+2}, which B and P_z have, is ρ'.
//!
//! ```text
//! A → P_z: x_{z+1} + r                       A → B: X = s v + ρ
//! P_z → B: d = u ⊕ s                         P_z → B: y_{z+2} = ⌊c / 2^m⌋ - 2^(k-m) ((1 - 2d) ρ + ρ') - y_z
//! B → A: q = (1 - 2d) X + d v + ρ'           A and B: y_{z+1} = 2^(k-m) q - ⌊r / 2^m⌋
//! ```
//!
//! (1 - 2d) X + d v = u v + (1 - 2d) ρ, and the y add up to ⌊c / 2^m⌋ - ⌊r / 2^m⌋ + 2^(k-m) u v. That is ⌊x / 2^m⌋, or one more where the m lowest bits of c are less than those
//! of r. With digits, P_z shares those of c as well: component z comes from PRF calls under κ_z, and B gets component z + 2; those of r are component z + 1.
//!
//! P_z sees x_{z+1} + r, masked under a key that it lacks; B sees X, d, y_{z+2} and digits, each masked under κ_z, which it lacks; A sees q, masked under κ_{z+2}, which it
//! lacks: semi-honest. Each party knows at which point x was rounded: A and B know r, and the result is ⌊(x + R) / 2^m⌋ with R = r modulo 2^m; P_z knows R = 2^m - 1 - (c modulo 2^m)
//! with the same result. Each of the two is uniform, whatever x is.

use veil_device::{Command, KeyId, Op, PrfCall, Span, Truncation};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::{KEY_OWN, KEY_PREVIOUS, OWN, PREVIOUS, SCHEME};
use crate::plan::{BIT_SLOTS, LayerPlan, Plan, SLOTS, TruncationPlan};
use crate::replicated::{combine, random, transfer};
use crate::round::{Cost, Round};

/// Numbers of messages from here on are of truncations: so many for each plan of a layer.
const NUMBERS: u16 = 0x200;
const MESSAGES: u16 = 5;

/// Of the masked integer, of X, of a component of the result, of bits, and of q.
const TOLD: u16 = 0;
const HIDDEN: u16 = 1;
const RESULT: u16 = 2;
const BITS: u16 = 3;
const ANSWER: u16 = 4;

/// What a truncation draws: r; s, ρ and ρ'; y_z; and components of digits.
const MASK: DomainTag = DomainTag::truncate3(0);
const BIT: DomainTag = DomainTag::truncate3(1);
const HIDES: [DomainTag; 2] = [DomainTag::truncate3(2), DomainTag::truncate3(3)];
const COMPONENT: DomainTag = DomainTag::truncate3(4);
const DIGITS: DomainTag = DomainTag::truncate3(5);

/// The truncations of a rotation.
struct Of {
    plan: TruncationPlan,
    ring: Ring,
    count: u32,
    /// Those of the rotations before.
    before: u32,
    /// Counters of integers and of bits.
    first: [u64; 2],
    /// Number of the first of its messages.
    number: u16,
}

impl Of {
    /// Those of a plan, the one of this number in its layer; nothing if there are none.
    fn rotation(plan: &Plan, (number, of): (u16, &TruncationPlan), rotation: usize) -> Option<Of> {
        let before: u32 = of.counts[..rotation].iter().sum();
        let [first, digits] = of.first;
        let count = of.counts[rotation];
        (count > 0).then_some(Of {
            plan: *of,
            ring: plan.words,
            count,
            before,
            first: [
                first + u64::from(before) * plan.stride(plan.words),
                digits + u64::from(before * of.by) * plan.stride(Ring::Bits),
            ],
            number: NUMBERS + MESSAGES * number,
        })
    }

    fn integers(&self, first: u32, component: u8) -> Span {
        Span {
            region: SLOTS,
            component,
            first: first + self.before,
            count: self.count,
        }
    }

    fn from(&self, part: u8) -> Span {
        self.integers(self.plan.from, part)
    }

    fn between(&self, part: u8) -> Span {
        self.integers(self.plan.between, part)
    }

    fn to(&self, part: u8) -> Span {
        self.integers(self.plan.to, part)
    }

    /// Slots of bits from `first` on, behind those of the rotations before.
    fn bits(&self, component: u8, first: u32, count: u32) -> Span {
        Span {
            region: BIT_SLOTS,
            component,
            first: self.plan.bits + self.before * self.plan.bits_of_each() + first,
            count,
        }
    }

    /// The bits d.
    fn turns(&self, part: u8) -> Span {
        self.bits(part, 0, self.count)
    }

    /// Digits of all sums, and of all masks; none without digits.
    fn digits(&self, part: u8) -> [Span; 2] {
        let all = self.count * if self.plan.digits { self.plan.by } else { 0 };
        [0, 1].map(|of| self.bits(part, self.count + of * all, all))
    }

    /// The message of bits: d, and the digits of sums behind it.
    fn bits_told(&self, part: u8) -> Span {
        let [digits, _] = self.digits(part);
        self.bits(part, 0, self.count + digits.count)
    }

    fn call(&self, key: KeyId, tag: DomainTag) -> PrfCall {
        let [first, _] = self.first;
        PrfCall { key, tag, first }
    }

    /// Bits of each of these integers, from bit `bit` on, so many of each side by side.
    fn split(&self, from: Span, bit: u32, to: Span) -> impl Iterator<Item = Command> + use<> {
        let each = to.count / self.count;
        (0..self.count).map(move |k| {
            let from = Span {
                first: from.first + k,
                count: 1,
                ..from
            };
            let to = Span {
                first: to.first + k * each,
                count: each,
                ..to
            };
            Command::new(Op::Split { first: bit }, vec![from], vec![to])
        })
    }
}

/// A step.
fn step(
    step: Truncation,
    src: Span,
    dst: Vec<Span>,
    calls: impl IntoIterator<Item = PrfCall>,
) -> Command {
    let mut command = Command::new(Op::Truncation(step), vec![src], dst);
    command.calls = calls.into_iter().collect();
    command
}

/// A party's rotations: those in which it is P_z, A and B.
fn rotations(me: PartyId) -> [usize; 3] {
    let me = me.index();
    [me, (me + 2) % 3, (me + 1) % 3]
}

/// What a layer adds to a round: messages are sent when all commands are done.
struct Adding<'a> {
    round: &'a mut Round,
    next: Peer,
    previous: Peer,
    sent: Vec<(Span, Peer, u16)>,
}

impl Adding<'_> {
    fn send(&mut self, span: Span, to: Peer, number: u16) {
        self.sent.push((span, to, number));
    }

    fn receive(&mut self, span: Span, from: Peer, number: u16) {
        self.round.recvs.push(transfer(span, from, number));
    }

    fn run(&mut self, commands: impl IntoIterator<Item = Command>) {
        self.round.local.extend(commands);
    }

    /// Zeros in components that hold neither digits of masks nor of sums.
    fn zeros(&mut self, span: Span) {
        if span.count > 0 {
            self.run([combine(Ring::Bits, vec![], 0, span)]);
        }
    }

    /// Draws masks, and splits their digits off, in the component that masks are.
    fn mask(&mut self, of: &Of, (part, key): (u8, KeyId)) {
        let call = of.call(key, MASK);
        self.run([random(of.to(part), call.key, call.tag, call.first)]);
        let [_, digits] = of.digits(part);
        if digits.count > 0 {
            self.run(of.split(of.to(part), 0, digits));
        }
    }

    /// The first round. Masks stand in the place of results.
    fn begin(&mut self, of: [Option<Of>; 3]) {
        let [told, hides, other] = of;
        if let Some(of) = told {
            let own = [OWN, PREVIOUS].map(|part| of.from(part));
            let ring = of.ring;
            self.run([combine(ring, own.to_vec(), 0, of.between(PREVIOUS))]);
            let [_, digits] = of.digits(OWN);
            self.zeros(digits);
            let [_, digits] = of.digits(PREVIOUS);
            self.zeros(digits);
            self.receive(of.between(OWN), self.next, of.number + TOLD);
        }
        if let Some(of) = hides {
            self.mask(&of, (OWN, KEY_OWN));
            let [sums, _] = of.digits(OWN);
            self.zeros(sums);
            let [sums, masks] = of.digits(PREVIOUS);
            self.zeros(masks);
            if sums.count > 0 {
                self.run([random(sums, KEY_PREVIOUS, DIGITS, of.first[1])]);
            }
            let by = of.plan.by;
            let to = [of.between(OWN), of.between(PREVIOUS), of.to(OWN)];
            let calls = [BIT, HIDES[0]].map(|tag| of.call(KEY_PREVIOUS, tag));
            let hide = Truncation::Hide { by };
            self.run([step(hide, of.from(OWN), to.to_vec(), calls)]);
            self.send(to[0], self.previous, of.number + TOLD);
            self.send(to[1], self.next, of.number + HIDDEN);
        }
        if let Some(of) = other {
            self.mask(&of, (PREVIOUS, KEY_PREVIOUS));
            let [_, masks] = of.digits(OWN);
            self.zeros(masks);
            let [sums, _] = of.digits(PREVIOUS);
            self.zeros(sums);
            self.receive(of.between(OWN), self.previous, of.number + HIDDEN);
        }
    }

    /// The second round.
    fn tell(&mut self, of: [Option<Of>; 3], highest: u32) {
        let [told, _, other] = of;
        if let Some(of) = told {
            let by = of.plan.by;
            let to = vec![of.between(OWN), of.to(OWN), of.to(PREVIOUS)];
            let calls = [
                of.call(KEY_OWN, COMPONENT),
                of.call(KEY_OWN, BIT),
                of.call(KEY_OWN, HIDES[0]),
                of.call(KEY_PREVIOUS, HIDES[1]),
            ];
            let take = Truncation::Take { by };
            self.run([step(take, of.between(PREVIOUS), to, calls)]);
            self.run(of.split(of.between(OWN), highest, of.turns(PREVIOUS)));
            let [sums, _] = of.digits(PREVIOUS);
            if sums.count > 0 {
                self.run(of.split(of.between(OWN), 0, sums));
                let [drawn, _] = of.digits(OWN);
                self.run([
                    random(drawn, KEY_OWN, DIGITS, of.first[1]),
                    combine(Ring::Bits, vec![sums, drawn], 0, sums),
                ]);
            }
            self.send(of.to(PREVIOUS), self.previous, of.number + RESULT);
            self.send(of.bits_told(PREVIOUS), self.previous, of.number + BITS);
        }
        if let Some(of) = other {
            self.receive(of.to(OWN), self.next, of.number + RESULT);
            self.receive(of.bits_told(OWN), self.next, of.number + BITS);
        }
    }

    /// The third round.
    fn end(&mut self, of: [Option<Of>; 3]) {
        let [_, hides, other] = of;
        if let Some(of) = other {
            let by = of.plan.by;
            let to = vec![of.between(OWN), of.to(PREVIOUS)];
            let calls = [of.call(KEY_OWN, HIDES[1])];
            let answer = Truncation::Answer { by };
            self.run([step(answer, of.turns(OWN), to, calls)]);
            self.send(of.between(OWN), self.previous, of.number + ANSWER);
        }
        if let Some(of) = hides {
            let by = of.plan.by;
            self.receive(of.between(OWN), self.next, of.number + ANSWER);
            let drawn = of.call(KEY_PREVIOUS, COMPONENT);
            let settle = Truncation::Settle { by };
            self.round.finish.extend([
                random(of.to(PREVIOUS), drawn.key, drawn.tag, drawn.first),
                step(settle, of.between(OWN), vec![of.to(OWN)], []),
            ]);
        }
    }
}

/// Adds the truncations of a layer to its round.
pub(super) fn add(plan: &Plan, me: PartyId, layer: &LayerPlan, round: &mut Round) {
    if !layer.truncates() {
        return;
    }
    let mut adding = Adding {
        round,
        next: Peer::Party(SCHEME.next(me)),
        previous: Peer::Party(SCHEME.previous(me)),
        sent: Vec::new(),
    };
    for (turn, plans) in layer.truncations.iter().enumerate() {
        for numbered in (0..).zip(plans) {
            let of = rotations(me).map(|rotation| Of::rotation(plan, numbered, rotation));
            match turn {
                0 => adding.begin(of),
                1 => adding.tell(of, plan.words.bits() - 1),
                _ => adding.end(of),
            }
        }
    }
    let sent = adding.sent;
    if !sent.is_empty() {
        let spans = sent.iter().map(|(span, ..)| *span).collect();
        round.local.push(Command::new(Op::Publish, spans, vec![]));
    }
    for (span, to, number) in sent {
        round.sends.push(transfer(span, to, number));
    }
}

/// Messages of truncations, whose integers have `element` bytes and whose bits have `bit`.
pub(super) fn cost(me: PartyId, layer: &LayerPlan, [element, bit]: [u64; 2]) -> Cost {
    let mut cost = Cost::default();
    let [told, hides, other] = rotations(me);
    let [first, second, third] = &layer.truncations;
    let mut send = |messages: u64, bytes: u64, count: u32| {
        if count > 0 {
            cost.messages += messages;
            cost.bytes += u64::from(count) * bytes;
        }
    };
    for of in first {
        send(2, 2 * element, of.counts[hides]);
    }
    for of in second {
        let digits = if of.digits { of.by } else { 0 };
        send(2, element + u64::from(1 + digits) * bit, of.counts[told]);
    }
    for of in third {
        send(1, element, of.counts[other]);
    }
    let receives = |plans: &[TruncationPlan], rotations: &[usize]| {
        let some = |of: &TruncationPlan| rotations.iter().any(|r| of.counts[*r] > 0);
        plans.iter().any(some)
    };
    let received =
        receives(first, &[told, other]) || receives(second, &[other]) || receives(third, &[hides]);
    cost.rounds = u64::from(received);
    cost
}
