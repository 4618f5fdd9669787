//! Products of matrices whose columns are columns of a relation, one round ([`Op::MatMul`]): the messages are those of one product in every element of the
//! result, however many terms it has.
//!
//! A left matrix X has d columns of n rows, a right matrix W has m columns. Their product is X W, where W has d rows, or Xᵀ W, where W has n. What a party
//! computes by itself is a product of its own components; masks are added once, and what is sent is one element of each joint message:
//!
//! ```text
//! three   P_i: r_i = X_i (W_i + W_{i-1}) + X_{i-1} W_i + α_i - α_{i-1}   → P_{i+1}
//! four    of each pair: m = (cross terms of the pair) - ρ   → its receiver, with an authentication code
//! ```
//!
//! From: Araki, Furukawa, Lindell, Nof, Ohara, "High-Throughput Semi-Honest Secure Three-Party Computation with an Honest Majority", CCS 2016 (three);
//! Dalskov, Escudero, Keller, "Fantastic Four", USENIX Security 2021 (four). Products of matrices by such sharing: Mohassel, Rindal, "ABY3", CCS 2018.

use std::sync::Arc;

use veil_device::{
    ColumnType, Command, Form, Layout, MatMul, Op, PrfCall, Region, Residency, Span,
};
use veil_job::Security;
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, PartyId, Peer};

use super::moves::{Moves, scheme};
use super::regions::FIRST;
use crate::plan::Chunk;
use crate::rep3::{KEY_OWN, KEY_PREVIOUS, OWN, PREVIOUS};
use crate::rep4::layers::{CROSSES, JOINT, drawn_for, form};
use crate::rep4::pair_key;
use crate::replicated::{Component, Scheme, check, combine, transfer};
use crate::round::{Cost, Round, Spans, Stored};

/// Bytes of an authentication code.
const CODE: u32 = 16;
/// Most joint messages that one party vouches for, and that one receives.
const MOST_CODES: u32 = 2;
/// Columns of a matrix, at most: each has regions and messages of its own.
pub(super) const MOST_COLUMNS: u32 = 1 << 12;

/// A product of two matrices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProductPlan {
    /// The protocol.
    pub security: Security,
    /// Rows of the left matrix.
    pub rows: u32,
    /// The ring of all elements.
    pub ring: Ring,
    /// Columns of the left matrix.
    pub left: u32,
    /// Columns of the right matrix, and of the product.
    pub right: u32,
    /// Whether the left matrix is transposed.
    pub transposed: bool,
    /// Who sends and who vouches among four parties: passes take turns.
    pub rotation: u8,
    /// Whether the right matrix is public: all but one of its components are zero.
    pub public: bool,
}

impl ProductPlan {
    /// Rows of the right matrix.
    pub const fn right_rows(&self) -> u32 {
        if self.transposed {
            self.rows
        } else {
            self.left
        }
    }

    /// Rows of the product.
    pub const fn product_rows(&self) -> u32 {
        if self.transposed {
            self.left
        } else {
            self.rows
        }
    }

    /// Products of elements that a clear evaluation takes.
    pub fn terms(&self) -> u64 {
        let [rows, left, right] = [self.rows, self.left, self.right].map(u64::from);
        rows.saturating_mul(left).saturating_mul(right)
    }

    /// Whether the parties multiply matrices.
    pub(super) fn is_possible(&self) -> bool {
        // A proof is of bits, and of rows of them.
        scheme(self.security).is_some_and(|scheme| scheme.products.proof.is_none())
    }

    /// All rows, as the one chunk that they are.
    pub fn chunk(&self) -> Chunk {
        Chunk {
            frame: Frame {
                epoch: 0,
                lane: 0,
                chunk: 1,
                rows: self.rows,
            },
            block: 0,
            first: 0,
        }
    }

    /// Bytes of all elements of the product.
    fn bytes(&self) -> u64 {
        let elements = u64::from(self.product_rows()) * u64::from(self.right);
        self.ring.bytes(elements)
    }

    /// Messages of so many elements: one for each column, or one for all of what all rows share.
    const fn messages(&self) -> u32 {
        if self.transposed { 1 } else { self.right }
    }

    /// Sender and voucher change places from one pass to the next.
    const fn is_odd(&self) -> bool {
        self.rotation % 2 == 1
    }
}

impl Moves {
    /// The product of a plan at participant `me`.
    ///
    /// # Panics
    /// If the parties multiply no matrices: a program with such a pass is refused.
    pub fn product(plan: &ProductPlan, me: Peer) -> Self {
        let scheme = scheme(plan.security).expect("a program whose parties multiply matrices");
        let Peer::Party(party) = me else {
            return Moves::none(scheme, me);
        };
        let multiplying = Multiplying {
            plan,
            scheme,
            me: party,
        };
        let round = match scheme.parties.len() {
            3 => multiplying.three(),
            _ => multiplying.four(),
        };
        let (layout, spans) = (multiplying.layout(), multiplying.spans());
        Moves::of(scheme, me, (layout, spans, vec![round]), multiplying.cost())
    }
}

/// What the round of a party is made of.
struct Multiplying<'a> {
    plan: &'a ProductPlan,
    scheme: &'static Scheme,
    me: PartyId,
}

/// What a region behind the right matrix has.
#[derive(Clone, Copy)]
enum Of {
    Product,
    Sent,
    Received,
    Codes,
}

impl Multiplying<'_> {
    /// The first region of what is behind the matrices.
    fn region(&self, of: Of) -> u16 {
        let plan = self.plan;
        let right = if plan.transposed { plan.right } else { 1 };
        (plan.left + right + of as u32 * plan.messages()) as u16
    }

    /// All elements of a component of the product, or of a message.
    fn all(&self, of: Of, component: u8) -> impl Iterator<Item = Span> + use<> {
        let plan = self.plan;
        let first = self.region(of);
        let count = if plan.transposed {
            plan.left * plan.right
        } else {
            1
        };
        (0..plan.messages() as u16).map(move |k| Span {
            region: first + k,
            component,
            first: 0,
            count,
        })
    }

    /// A component of a column of the left matrix.
    const fn left(column: u32, component: u8) -> Span {
        Span {
            region: column as u16,
            component,
            first: 0,
            count: 1,
        }
    }

    /// The same of the right matrix.
    const fn right(&self, column: u32, component: u8) -> Span {
        let left = self.plan.left;
        if self.plan.transposed {
            return Self::left(left + column, component);
        }
        Span {
            region: left as u16,
            component,
            first: column * left,
            count: left,
        }
    }

    fn layout(&self) -> Layout {
        let plan = self.plan;
        let four = self.scheme.parties.len() == 4;
        let mut layout = Layout {
            chunk_rows: plan.rows,
            regions: Vec::new(),
        };
        let lent = |components: u8| Region {
            residency: Residency::Lent,
            column: ColumnType::Rows(plan.ring),
            components,
            count: 1,
        };
        let shared = |components: u8| Region {
            residency: Residency::Mapped,
            column: ColumnType::One(plan.ring),
            components,
            count: plan.left * plan.right,
        };
        let parts = self.scheme.parts.len() as u8;
        for _ in 0..plan.left {
            layout.add(lent(parts));
        }
        if plan.transposed {
            for _ in 0..plan.right {
                layout.add(lent(parts));
            }
        } else {
            layout.add(shared(parts));
        }
        let messages = [self.scheme.products.messages, MOST_CODES as u8];
        let messages = if four { &messages[..] } else { &[] };
        for components in std::iter::once(&parts).chain(messages) {
            for _ in 0..plan.messages() {
                layout.add(if plan.transposed {
                    shared(*components)
                } else {
                    lent(*components)
                });
            }
        }
        if four {
            layout.add(Region {
                residency: Residency::Mapped,
                column: ColumnType::Bytes(CODE),
                components: 1,
                count: 3 * MOST_CODES,
            });
        }
        layout
    }

    fn spans(&self) -> Spans {
        let plan = self.plan;
        let parts = || self.scheme.parts();
        let left = (0..plan.left).map(|k| parts().map(|part| Self::left(k, part)).collect());
        let right = (0..plan.right).map(|j| parts().map(|part| self.right(j, part)).collect());
        let stored = |(port, components)| Stored { port, components };
        let product = (0..plan.right).map(|j| {
            let component = |part| {
                let all = self.region(Of::Product);
                if plan.transposed {
                    Span {
                        region: all,
                        component: part,
                        first: j * plan.left,
                        count: plan.left,
                    }
                } else {
                    Self::left(u32::from(all) + j, part)
                }
            };
            parts().map(component).collect()
        });
        Spans {
            constants: (self.scheme.constants)(plan.ring, self.me),
            takes: (0..).zip(left.chain(right)).map(stored).collect(),
            leaves: (0..).zip(product).map(stored).collect(),
            ..Spans::default()
        }
    }

    /// The command, with both matrices.
    fn multiply(&self, form: &'static Form, dst: Vec<Span>, calls: Vec<PrfCall>) -> Command {
        let plan = self.plan;
        let parts = || self.scheme.parts();
        let left = (0..plan.left).flat_map(|k| parts().map(move |part| Self::left(k, part)));
        let mut src: Vec<Span> = left.collect();
        if plan.transposed {
            let columns = 0..plan.right;
            src.extend(columns.flat_map(|j| parts().map(move |part| self.right(j, part))));
        } else {
            src.extend(parts().map(|part| Span {
                count: plan.left * plan.right,
                ..self.right(0, part)
            }));
        }
        let of = MatMul {
            form,
            left: plan.left,
            transposed: plan.transposed,
            zeros: self.zeros(),
        };
        let mut command = Command::new(Op::MatMul(of), src, dst);
        command.calls = calls;
        command
    }

    /// Components of the right matrix that are zero: those of a public matrix that constants do not act on.
    fn zeros(&self) -> u8 {
        let constants = (self.scheme.constants)(self.plan.ring, self.me);
        let zeros = self
            .scheme
            .parts()
            .filter(|part| constants >> part & 1 == 0);
        if self.plan.public {
            zeros.fold(0, |zeros, part| zeros | 1 << part)
        } else {
            0
        }
    }

    fn round() -> Round {
        Round {
            place: FIRST,
            ..Round::default()
        }
    }

    fn three(&self) -> Round {
        let call = |key| PrfCall {
            key,
            tag: DomainTag::MUL3,
            first: 0,
        };
        let calls = vec![call(KEY_OWN), call(KEY_PREVIOUS)];
        let mut round = Self::round();
        let own = self.all(Of::Product, OWN).collect();
        let form = Form::replicated(self.plan.ring);
        round.local.push(self.multiply(form, own, calls));
        let next = Peer::Party(self.scheme.next(self.me));
        let before = Peer::Party(self.scheme.previous(self.me));
        let own = (0..).zip(self.all(Of::Product, OWN));
        let sends = own.map(|(part, span)| transfer(span, next, part));
        round.sends.extend(sends);
        let previous = (0..).zip(self.all(Of::Product, PREVIOUS));
        let recvs = previous.map(|(part, span)| transfer(span, before, part));
        round.recvs.extend(recvs);
        round
    }

    fn four(&self) -> Round {
        let (scheme, me, odd) = (self.scheme, self.me, self.plan.is_odd());
        let checked = scheme.products.macs > 0;
        let (form, drawn) = form(self.plan.ring, me);
        let drawn = drawn.into_iter();
        let calls = drawn.map(|joint| drawn_for(me, joint, DomainTag::joint4, 0));
        let components = scheme.parts().flat_map(|part| self.all(Of::Product, part));
        let messages = 0..scheme.products.messages;
        let messages = messages.flat_map(|k| self.all(Of::Sent, k));
        let dst = components.chain(messages).collect();
        let mut round = Self::round();
        round.local.push(self.multiply(form, dst, calls.collect()));
        let mut codes = 0;
        for (k, joint) in (0..).zip(CROSSES[me.index()]) {
            let receiver = PartyId::FOUR[JOINT[joint].receiver];
            let to = Peer::Party(receiver);
            if JOINT[joint].givers(odd)[0] == me {
                let sent = (0..).zip(self.all(Of::Sent, k));
                let sent = sent.map(|(index, span)| transfer(span, to, part(joint, index)));
                round.sends.extend(sent);
            } else if checked {
                let mac = self.mac(0, codes);
                codes += 1;
                let of = self.all(Of::Sent, k).collect();
                round.local.push(self.code(receiver, joint, of, mac));
                round.sends.push(transfer(mac, to, self.code_part(joint)));
            }
        }
        let mut added = Vec::new();
        let received = (0..JOINT.len()).filter(|joint| JOINT[*joint].receiver == me.index());
        for (k, joint) in (0..).zip(received) {
            let [from, by] = JOINT[joint].givers(odd);
            let sender = Peer::Party(from);
            let got: Vec<Span> = self.all(Of::Received, k).collect();
            for (index, span) in (0..).zip(&got) {
                round
                    .recvs
                    .push(transfer(*span, sender, part(joint, index)));
            }
            if checked {
                let [mine, theirs] = [1, 2].map(|group| self.mac(group, k.into()));
                let voucher = Peer::Party(by);
                round
                    .recvs
                    .push(transfer(theirs, voucher, self.code_part(joint)));
                round.finish.push(self.code(by, joint, got.clone(), mine));
                let givers = vec![sender, voucher];
                check(
                    &mut round,
                    mine,
                    theirs,
                    givers,
                    "a joint message of a product of matrices",
                );
            }
            let to = scheme.part_of(me, Component(JOINT[joint].outsider));
            let to = to.expect("a party lacks the component of its own number alone");
            for (got, to) in got.into_iter().zip(self.all(Of::Product, to)) {
                added.push(combine(self.plan.ring, vec![to, got], 0, to));
            }
        }
        // After all checks.
        round.finish.extend(added);
        round
    }

    /// The `k`-th code of those that are sent (0), computed (1) or received (2).
    fn mac(&self, group: u32, k: u32) -> Span {
        Span {
            region: self.region(Of::Codes),
            component: 0,
            first: MOST_CODES * group + k,
            count: 1,
        }
    }

    /// The code of a joint message, all of its columns, under the key of this party and another.
    fn code(&self, other: PartyId, joint: usize, of: Vec<Span>, to: Span) -> Command {
        let mut command = Command::new(Op::Mac, of, vec![to]);
        command.calls = vec![PrfCall {
            key: pair_key(self.me, other),
            tag: DomainTag::mac4(joint as u8),
            first: 0,
        }];
        command
    }

    /// Number of the code of a joint message, behind the messages of all of them.
    fn code_part(&self, joint: usize) -> u16 {
        part(joint, self.plan.messages() as u16)
    }

    /// An element of each message of a joint message, or a code; of three parties one message to the next.
    fn cost(&self) -> Cost {
        let (bytes, messages) = (self.plan.bytes(), u64::from(self.plan.messages()));
        let mut cost = Cost {
            rounds: 1,
            ..Cost::default()
        };
        if self.scheme.parties.len() == 3 {
            (cost.messages, cost.bytes) = (messages, bytes);
            return cost;
        }
        for joint in CROSSES[self.me.index()] {
            if JOINT[joint].givers(self.plan.is_odd())[0] == self.me {
                cost.messages += messages;
                cost.bytes += bytes;
            } else if self.scheme.products.macs > 0 {
                cost.messages += 1;
                cost.bytes += u64::from(CODE);
            }
        }
        cost
    }
}

/// Number of message `index` of a joint message.
const fn part(joint: usize, index: u16) -> u16 {
    index * JOINT.len() as u16 + joint as u16
}

/// What is wrong with the shape of a plan.
pub(super) fn check_shape(plan: &Arc<ProductPlan>) -> Result<(), &'static str> {
    if plan.ring == Ring::Bits {
        return Err("matrices are of integers modulo 2^32, 2^64 or 2^128");
    }
    let columns = 1..=MOST_COLUMNS;
    if plan.rows == 0 || !columns.contains(&plan.left) || !columns.contains(&plan.right) {
        return Err("a matrix has a row, and 1 to 4096 columns");
    }
    Ok(())
}
