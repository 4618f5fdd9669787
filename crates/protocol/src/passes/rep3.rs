//! Moves among three parties, semi-honest: two rounds, four elements for each row.
//!
//! Component c and key κ_c belong to one pair of parties, and so does factor π_c of the permutation. For rotation s the parties are E, F, G, and the
//! pairs EF, EG, FG have the components of the same names. Masks z and b are drawn by E and F, y and a by E and G:
//!
//! ```text
//! round 1   E → F: X = π_EG(π_EF(u_EF + u_EG + z)) + y     F → G: Y = π_EF(u_FG - z)
//! round 2   F → G: C1 = π_FG(X) - b                        G → F: C2 = π_FG(π_EG(Y) - y) - a
//! result    u'_EG = a,  u'_EF = b,  u'_FG = C1 + C2
//! ```
//!
//! To open what moved, F and G send in the second round π_FG(X) + t and π_FG(π_EG(Y) - y) - t to both others, with t of theirs: E knows X, and would read
//! π_FG off π_FG(X).
//!
//! A party sees nothing but values that a mask which it lacks hides. Back is the same with factors inverted and in the other order, and fresh masks.

use veil_device::{Command, Op, Span};
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::moves::Moving;
use super::regions::{FIRST, Places};
use super::{ColumnForm, MoveKind};
use crate::replicated::{Component, transfer};
use crate::round::Round;

/// Masks: of what is sent first, the two components that are drawn, and of what is opened.
const Z: DomainTag = DomainTag::move3(0);
const Y: DomainTag = DomainTag::move3(1);
const A: DomainTag = DomainTag::move3(2);
const B: DomainTag = DomainTag::move3(3);
const T: DomainTag = DomainTag::move3(4);

/// Who does what.
struct Roles {
    e: PartyId,
    f: PartyId,
    g: PartyId,
    /// The components of each two of them.
    ef: Component,
    eg: Component,
    fg: Component,
}

impl Roles {
    fn of(rotation: u8, back: bool) -> Self {
        let [s, one, two] = [0, 1, 2].map(|by| (usize::from(rotation) + by) % 3);
        let (e, g) = if back { (two, s) } else { (s, two) };
        let (ef, fg) = if back { (one, s) } else { (s, one) };
        let party = |index: usize| PartyId::THREE[index];
        Roles {
            e: party(e),
            f: party(one),
            g: party(g),
            ef: Component(ef),
            eg: Component(two),
            fg: Component(fg),
        }
    }
}

/// How a party acts on the columns of a move.
struct Acts<'a> {
    moving: &'a Moving<'a>,
    back: bool,
}

impl Acts<'_> {
    fn part(&self, component: Component) -> u8 {
        let part = self.moving.scheme.part_of(self.moving.me, component);
        part.expect("a party of a pair has its component")
    }

    fn column(&self, index: usize, component: Component) -> Span {
        Places::part(index, self.part(component))
    }

    /// to = Σ ± from ± masks.
    fn add(
        &self,
        (index, form): (usize, ColumnForm),
        from: &[(Span, bool)],
        masks: &[(Component, DomainTag, bool)],
        to: Span,
    ) -> Command {
        let signs = from.iter().map(|(_, minus)| *minus);
        let signs = signs.chain(masks.iter().map(|(_, _, minus)| *minus));
        let src = from.iter().map(|(span, _)| *span).collect();
        let calls = masks.iter();
        let calls = calls.map(|(key, tag, _)| self.moving.call(self.part(*key), *tag, index));
        super::combined(form, src, signs, calls.collect(), to)
    }

    /// to = from, moved by these factors, the first one first.
    fn permute(&self, from: Span, by: &[Component], to: Span) -> Command {
        let factor = |c: &Component| self.moving.places.factor(self.part(*c));
        let mut src = vec![from];
        // What undoes "first eg, then ef" does the inverse of ef first.
        if self.back {
            src.extend(by.iter().rev().map(factor));
        } else {
            src.extend(by.iter().map(factor));
        }
        Command::new(Op::Permute { back: self.back }, src, vec![to])
    }
}

/// The rounds of a party.
pub(super) fn rounds(moving: &Moving<'_>) -> Vec<Round> {
    let kind = moving.plan.kind;
    let back = kind == MoveKind::Back;
    let roles = Roles::of(moving.plan.rotation, back);
    let acts = Acts { moving, back };
    let [mut first, mut second] = [0, 1].map(|k| Round {
        place: FIRST + k,
        ..Round::default()
    });
    if kind.draws() {
        first.local.extend(super::draw(moving, DomainTag::perm3));
    }
    let opens = |index: usize| kind == MoveKind::Open && index == 0;
    for column in moving.columns() {
        let (index, _) = column;
        let [m, n] = [0, 1].map(|which| moving.places.message(index, which));
        let part = 4 * index as u16;
        let Roles {
            e,
            f,
            g,
            ef,
            eg,
            fg,
        } = roles;
        let [to_e, to_f, to_g] = [e, f, g].map(Peer::Party);
        let (plus, minus) = (false, true);
        let mut opened = None;
        let out_of_order = back && moving.plan.orders;
        if moving.me == e {
            let mut own = [ef, eg].map(|c| (acts.column(index, c), plus)).to_vec();
            if out_of_order {
                // Both are there in the order; their sum alone leaves it.
                let (from, part) = (own[0].0.component, acts.part(eg));
                let other = moving.places.message(index, part);
                let sum = moving.places.message(index, from);
                let ordered = [(sum, plus), (other, plus)];
                first.local.extend([
                    acts.add(column, &ordered, &[], sum),
                    super::order_part(moving, index, from),
                ]);
                own.truncate(1);
            }
            first.local.extend([
                acts.add(column, &own, &[(ef, Z, plus)], m),
                acts.permute(m, &[ef, eg], n),
                acts.add(column, &[(n, plus)], &[(eg, Y, plus)], n),
            ]);
            first.sends.push(transfer(n, to_f, part));
            if opens(index) {
                second.recvs.push(transfer(m, to_f, part + 2));
                second.recvs.push(transfer(n, to_g, part + 3));
                opened = Some([m, n]);
            } else {
                for (c, mask) in [(eg, A), (ef, B)] {
                    let to = acts.column(index, c);
                    second
                        .local
                        .push(acts.add(column, &[], &[(c, mask, plus)], to));
                }
            }
        } else if moving.me == f {
            let own = acts.column(index, fg);
            if out_of_order {
                first
                    .local
                    .push(super::order_part(moving, index, own.component));
            }
            first.local.extend([
                acts.add(column, &[(own, plus)], &[(ef, Z, minus)], m),
                acts.permute(m, &[ef], n),
            ]);
            first.sends.push(transfer(n, to_g, part + 1));
            first.recvs.push(transfer(m, to_e, part));
            second.local.push(acts.permute(m, &[fg], n));
            if opens(index) {
                let hidden = acts.add(column, &[(n, plus)], &[(fg, T, plus)], n);
                second.local.push(hidden);
                second.sends.push(transfer(n, to_e, part + 2));
                opened = Some([m, n]);
            } else {
                let drawn = acts.column(index, ef);
                second.local.extend([
                    acts.add(column, &[], &[(ef, B, plus)], drawn),
                    acts.add(column, &[(n, plus), (drawn, minus)], &[], n),
                ]);
                let sum = acts.add(column, &[(m, plus), (n, plus)], &[], own);
                second.finish.push(sum);
            }
            second.sends.push(transfer(n, to_g, part + 2));
            second.recvs.push(transfer(m, to_g, part + 3));
        } else {
            let own = acts.column(index, fg);
            first.recvs.push(transfer(m, to_f, part + 1));
            second.local.extend([
                acts.permute(m, &[eg], n),
                acts.add(column, &[(n, plus)], &[(eg, Y, minus)], n),
                acts.permute(n, &[fg], m),
            ]);
            if opens(index) {
                let hidden = acts.add(column, &[(m, plus)], &[(fg, T, minus)], m);
                second.local.push(hidden);
                second.sends.push(transfer(m, to_e, part + 3));
                opened = Some([m, n]);
            } else {
                let drawn = acts.column(index, eg);
                second.local.extend([
                    acts.add(column, &[], &[(eg, A, plus)], drawn),
                    acts.add(column, &[(m, plus), (drawn, minus)], &[], m),
                ]);
                let sum = acts.add(column, &[(m, plus), (n, plus)], &[], own);
                second.finish.push(sum);
            }
            second.sends.push(transfer(m, to_f, part + 3));
            second.recvs.push(transfer(n, to_f, part + 2));
        }
        if let Some(both) = opened {
            let sources = both.map(|span| (span, plus));
            let to = moving.places.opened();
            second.finish.push(acts.add(column, &sources, &[], to));
            super::look(moving, &mut second);
        }
    }
    if !back && moving.plan.orders {
        // Behind the opening.
        let ordered = moving.columns().filter(|(index, _)| !opens(*index));
        let commands = ordered.flat_map(|(index, _)| super::order(moving, index));
        second.finish.extend(commands);
    }
    vec![first, second]
}
