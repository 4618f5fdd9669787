//! Moves among three parties of whom one may be malicious: three steps of a round each, six elements of words for each row, and a proof.
//!
//! Component c, key κ_c and factor π_c of the permutation belong to P_c and P_(c+1). In the step of factor c these two, E and F, put in its order what they hold, and send the
//! third party G what it holds with each of them, behind fresh masks e and f that both draw with κ_c:
//!
//! ```text
//! E → G: u'_EG = π_c(u_EG) + e      F → G: u'_FG = π_c(u_FG) + f      u'_EF = π_c(u_EF) + e + f
//! ```
//!
//! Steps are those of factors 0, 1, 2; a move back undoes them in the other order, with the inverses. Behind all three each party proves that both of its messages were right, in one
//! proof to both others ([`veil_device::proof::rows`]): of its own step, in place 0, in which the next party knows the permutation, and of the previous party's, in place 1, in which that
//! one does.
//!
//! A party sees masked words, and the proofs of others, which are simulated from what it has itself. An error in a message is there, but with a chance below 2^-56, if and only if the
//! proof fails; who has made it knows the one permutation that the message is of, and has known it before, so that the end of a run tells nothing.

use veil_device::proof::rows::words;
use veil_device::{Command, Op, Proof, RowStep, Side, Span};
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::moves::Moving;
use super::regions::{FIRST, Places};
use super::{ColumnForm, MoveKind};
use crate::rep3::{Moved, SCHEME, rounds_of_rows};
use crate::replicated::{Component, transfer};
use crate::round::Round;

/// Masks of what E sends, and of what F sends.
const MASKS: [DomainTag; 2] = [DomainTag::move3(5), DomainTag::move3(6)];

/// Steps: one for each factor.
const STEPS: usize = 3;

/// Components of a column beside those that move: both after each step, one of rows in an order, one of the mask of what this party sends, and those of what the other one sends in both
/// steps whose factors it knows.
pub(super) const MESSAGES: u8 = KEPT + 2;
const ORDERED: u8 = 2 * STEPS as u8;
const OWN_MASK: u8 = ORDERED + 1;
const KEPT: u8 = OWN_MASK + 1;

/// A part of column `index` after so many steps.
fn after(places: Places, index: usize, steps: usize, part: u8) -> Span {
    match steps {
        0 => Places::part(index, part),
        _ => places.message(index, 2 * (steps as u8 - 1) + part),
    }
}

/// A part of column `index` when all steps are done.
pub(super) fn moved(places: Places, index: usize, part: u8) -> Span {
    after(places, index, STEPS, part)
}

/// Who a party is in the step of a factor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    E,
    F,
    G,
}

/// A party's acts.
struct Acts<'a> {
    moving: &'a Moving<'a>,
    back: bool,
}

impl Acts<'_> {
    fn role(&self, factor: usize) -> Role {
        match (self.moving.me.index() + STEPS - factor) % STEPS {
            0 => Role::E,
            1 => Role::F,
            _ => Role::G,
        }
    }

    /// Steps before that of a factor.
    const fn before(&self, factor: usize) -> usize {
        if self.back {
            STEPS - 1 - factor
        } else {
            factor
        }
    }

    /// The part that this party has of a component.
    fn part(&self, component: usize) -> u8 {
        let of = Component(component % STEPS);
        let part = self.moving.scheme.part_of(self.moving.me, of);
        part.expect("a party of a pair has its component")
    }

    /// The component that it shares with G in the step of a factor that it knows.
    fn with_third(&self, factor: usize) -> usize {
        match self.role(factor) {
            Role::E => (factor + 2) % STEPS,
            _ => (factor + 1) % STEPS,
        }
    }

    /// Where the mask of what E sends (0), or F (1), is in the step of a factor.
    fn mask(&self, index: usize, factor: usize, of: usize) -> Span {
        let which = match (self.role(factor), of) {
            (Role::E, 0) | (Role::F, 1) => OWN_MASK,
            (_, of) => KEPT + of as u8,
        };
        self.moving.places.message(index, which)
    }

    /// to = Σ from, of words.
    fn sum(form: ColumnForm, from: &[Span], to: Span) -> Command {
        // Words are their own negatives.
        let signs = std::iter::repeat_n(false, from.len());
        super::combined(form, from.to_vec(), signs, vec![], to)
    }

    /// from, in the order of a factor.
    fn permuted(&self, factor: usize, from: Span, to: Span) -> Command {
        let by = self.moving.places.factor(self.part(factor));
        let op = Op::Permute { back: self.back };
        Command::new(op, vec![from, by], vec![to])
    }

    /// The round of the step of a factor.
    fn step(&self, factor: usize) -> Round {
        let before = self.before(factor);
        let mut round = Round {
            place: FIRST + before as u32,
            ..Round::default()
        };
        let party = |by: usize| Peer::Party(PartyId::THREE[(factor + by) % STEPS]);
        let [to_e, to_f, to_g] = [0, 1, 2].map(party);
        let role = self.role(factor);
        let own = usize::from(role == Role::F);
        for (index, form) in self.moving.columns() {
            let at = |steps, component| {
                let part = self.part(component);
                after(self.moving.places, index, steps, part)
            };
            let part = 2 * index as u16;
            if role == Role::G {
                for (sender, component) in [(to_e, factor + 2), (to_f, factor + 1)] {
                    let part = part + u16::from(sender == to_f);
                    let received = transfer(at(before + 1, component), sender, part);
                    round.recvs.push(received);
                }
                continue;
            }
            let (shared, ordered) = (
                self.with_third(factor),
                self.moving.places.message(index, ORDERED),
            );
            let sent = at(before + 1, shared);
            let masks = [0, 1].map(|of| self.mask(index, factor, of));
            for (tag, mask) in MASKS.into_iter().zip(masks) {
                let call = self.moving.call(self.part(factor), tag, index);
                let drawn = super::combined(form, vec![], [false].into_iter(), vec![call], mask);
                round.local.push(drawn);
            }
            round.local.extend([
                self.permuted(factor, at(before, shared), ordered),
                Self::sum(form, &[ordered, masks[own]], sent),
                self.permuted(factor, at(before, factor), ordered),
                Self::sum(form, &[ordered, masks[0], masks[1]], at(before + 1, factor)),
            ]);
            let sent = transfer(sent, to_g, part + own as u16);
            round.sends.push(sent);
        }
        round
    }
}

/// The rounds of a party.
pub(super) fn rounds(moving: &Moving<'_>) -> Vec<Round> {
    let back = moving.plan.kind == MoveKind::Back;
    let acts = Acts { moving, back };
    let mut factors = [0, 1, 2];
    if back {
        factors.reverse();
    }
    let mut rounds: Vec<Round> = factors.map(|factor| acts.step(factor)).into();
    let first = &mut rounds[0];
    let mut before = Vec::new();
    if moving.plan.kind.draws() {
        before.extend(super::draw(moving, DomainTag::perm3));
    }
    if back && moving.plan.orders {
        let of_all = moving.columns();
        before.extend(of_all.flat_map(|(index, _)| super::order(moving, index)));
    }
    first.local.splice(0..0, before);
    let rows = moving.plan.rows;
    let place = FIRST + STEPS as u32;
    let proof = (&acts as &dyn Moved, rows);
    rounds.extend(rounds_of_rows(
        moving.me,
        proof,
        moving.places.proof(),
        place,
    ));
    if !back && moving.plan.orders {
        // Behind all checks; what moved in the first step is no longer needed.
        let last = rounds.last_mut().expect("a proof has rounds");
        let of_all = moving.columns();
        last.finish
            .extend(of_all.flat_map(|(index, _)| super::order(moving, index)));
    }
    rounds
}

/// What a side has of the message in a place.
enum Has {
    /// The permutation of this factor, and the mask.
    Permutation(usize),
    /// This component before the step of a factor, and after it.
    Component(usize, usize),
}

impl Acts<'_> {
    /// What this party has, as this side, of what `side`'s prover has sent in a place.
    fn has(&self, side: Side, place: usize) -> Has {
        let me = self.moving.me;
        let (prover, next) = match side {
            Side::OwnNext => (me, true),
            Side::OwnPrevious => (me, false),
            Side::Previous => (SCHEME.previous(me), true),
            Side::Next => (SCHEME.next(me), false),
        };
        let prover = prover.index();
        // In place 0 the prover is E of its own step, and the next party is F; in place 1 it is F, and the previous party E.
        let factor = (prover + STEPS * place - place) % STEPS;
        if next == (place == 0) {
            Has::Permutation(factor)
        } else {
            let component = if place == 0 { factor + 2 } else { factor + 1 };
            Has::Component(component % STEPS, factor)
        }
    }

    /// Steps over all columns, with the words before each.
    fn columns(&self, mut step: impl FnMut(usize, u32)) {
        let mut word = 0;
        for (index, form) in self.moving.columns() {
            step(index, word);
            word += words(form.bytes());
        }
    }
}

fn row_step(step: RowStep, seed: Span, from: Span, to: Span) -> Command {
    let op = Op::Proof(Proof::Rows(step));
    Command::new(op, vec![seed, from], vec![to])
}

impl Moved for Acts<'_> {
    fn vector(&self, side: Side, seed: Span, to: Span) -> Vec<Command> {
        let mut commands = Vec::new();
        for place in [0, 1] {
            let at = place as u8;
            match self.has(side, place) {
                Has::Permutation(factor) => {
                    let by = self.moving.places.factor(self.part(factor));
                    let back = self.back;
                    let step = RowStep::Weights { place: at, back };
                    commands.push(row_step(step, seed, by, to));
                }
                Has::Component(component, factor) => self.columns(|index, word| {
                    let steps = self.before(factor);
                    let from = after(self.moving.places, index, steps, self.part(component));
                    let step = RowStep::Hashes { word, place: at };
                    commands.push(row_step(step, seed, from, to));
                }),
            }
        }
        commands
    }

    fn claim(&self, side: Side, seed: Span, to: Span) -> Vec<Command> {
        let mut commands = Vec::new();
        for place in [0, 1] {
            let has = self.has(side, place);
            self.columns(|index, word| {
                let from = match has {
                    Has::Permutation(factor) => self.mask(index, factor, place),
                    Has::Component(component, factor) => {
                        let steps = self.before(factor) + 1;
                        after(self.moving.places, index, steps, self.part(component))
                    }
                };
                let step = RowStep::Claim {
                    word,
                    place: place as u8,
                    first: place == 0 && word == 0,
                };
                commands.push(row_step(step, seed, from, to));
            });
        }
        commands
    }
}
