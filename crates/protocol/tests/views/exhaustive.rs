//! All that may be drawn in one product of a gate, or in one element of a product of matrices, each value once: every party's view is counted, and compared over
//! all inputs.

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_device::{Command, MatMul, Op};
use veil_math::Ring;
use veil_protocol::passes::{Moves, ProductPlan};
use veil_protocol::{Protocol, Replicated, Round, Task, Transfer};
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer};

use super::{SCHEMES, Scheme, and_plan};

/// What is multiplied.
#[derive(Clone, Copy, Debug)]
enum Of {
    /// Two values of a row, in chunks that are odd or even.
    Gate { chunk: u32 },
    /// A row and a column of matrices, of so many elements.
    Matrices {
        terms: u32,
        transposed: bool,
        rotation: u8,
    },
}

impl Of {
    fn terms(self) -> usize {
        match self {
            Of::Gate { .. } => 1,
            Of::Matrices { terms, .. } => terms as usize,
        }
    }
}

/// What all that have a key know it by: the pair, or who chose it and its number.
type Name = (Peer, Peer, u8);

/// Products of components and masks, added up: pairs of components, and numbers of masks with whether they are subtracted.
#[derive(Clone, PartialEq, Eq, Default)]
struct Sum {
    terms: Vec<(usize, usize)>,
    masks: Vec<(usize, bool)>,
}

impl Sum {
    fn add(&mut self, other: &Sum) {
        self.terms.extend(&other.terms);
        self.masks.extend(&other.masks);
        self.terms.sort_unstable();
        self.masks.sort_unstable();
    }

    /// Of the components of each factor.
    fn value(&self, factors: &[[Vec<u64>; 2]], masks: &[u64], m: u64) -> u64 {
        let terms = factors
            .iter()
            .flat_map(|[u, w]| self.terms.iter().map(|(p, q)| u[*p] * w[*q]));
        let masks = self.masks.iter().map(|(k, minus)| {
            let mask = masks[*k];
            if *minus { m - mask } else { mask }
        });
        terms.chain(masks).sum::<u64>() % m
    }
}

/// The product of a plan as its rounds say it, on numbers below `modulus`.
struct Product {
    scheme: &'static Scheme,
    modulus: u64,
    /// How many products are added up.
    terms: usize,
    /// How many masks there are, and which of them each party draws itself.
    masks: usize,
    drawn: Vec<Vec<usize>>,
    /// What each party receives.
    received: Vec<Vec<Sum>>,
    /// The components of the product.
    components: Vec<Sum>,
}

/// How often a party sees what it sees of a product: numbers below the modulus, as digits of one number.
type Histogram = Vec<u32>;

/// The round of the product at each party, and the names of the keys there.
fn rounds(scheme: &Scheme, ring: Ring, of: Of) -> Vec<(Arc<Round>, BTreeMap<u16, Name>)> {
    let plan = Arc::new(and_plan(scheme, ring));
    let chunk = plan.chunk(0).expect("a chunk").frame;
    let matrices = |terms, transposed, rotation| ProductPlan {
        security: plan.job.security,
        rows: if transposed { terms } else { 1 },
        ring,
        left: if transposed { 1 } else { terms },
        right: 1,
        transposed,
        rotation,
        public: false,
    };
    let at = |party: &PartyId| {
        let me = Peer::Party(*party);
        let protocol = Replicated::new(Arc::clone(&plan), me);
        let mut names = BTreeMap::new();
        for peer in protocol.peers() {
            let pair = (me.min(peer), me.max(peer), 0);
            names.extend(protocol.keys(peer).iter().map(|(_, id)| (id.0, pair)));
        }
        for by in scheme.parties.iter().copied().map(Peer::Party) {
            let dealt = protocol.dealt(by).into_iter();
            names.extend(dealt.map(|seed| (seed.key.0, (by, by, seed.index))));
        }
        let flow = match of {
            Of::Gate { chunk: number } => {
                let frame = veil_session::Frame {
                    chunk: number,
                    ..chunk
                };
                protocol.flow(Task::Layers, frame)
            }
            Of::Matrices {
                terms,
                transposed,
                rotation,
            } => {
                let plan = matrices(terms, transposed, rotation);
                Moves::product(&plan, me).flow(Task::Layers, plan.chunk().frame)
            }
        };
        (Arc::clone(&flow.rounds()[0]), names)
    };
    scheme.parties.iter().map(at).collect()
}

impl Product {
    fn new(scheme: &'static Scheme, (ring, modulus): (Ring, u64), of: Of, masked: bool) -> Self {
        let mut all: Vec<(Name, DomainTag)> = Vec::new();
        let (mut messages, mut drawn) = (BTreeMap::new(), Vec::new());
        let mut held = vec![vec![Sum::default(); scheme.parts.len()]; scheme.count()];
        let rounds = rounds(scheme, ring, of);
        // The region of the result: slots are the first one.
        let mut result = 0;
        for (party, (round, names)) in rounds.iter().enumerate() {
            let product = |c: &&Command| matches!(c.op, Op::Product(_) | Op::MatMul(_));
            let command = round.local.iter().find(product).expect("a product");
            // Matrices have the components that are written before the messages.
            let (form, written) = match command.op {
                Op::Product(form) => (form, 0),
                Op::MatMul(MatMul { form, .. }) => {
                    result = command.dst[0].region;
                    (form, form.writes().count_ones() as usize)
                }
                _ => unreachable!("it was looked for"),
            };
            let apart = &command.dst[written..];
            let calls = command.calls[..form.calls()].iter();
            let mine = calls.map(|d| {
                let mask = (names[&d.key.0], d.tag);
                all.iter().position(|m| *m == mask).unwrap_or_else(|| {
                    all.push(mask);
                    all.len() - 1
                })
            });
            let mine: Vec<usize> = mine.collect();
            for (k, cross) in form.crosses.iter().enumerate() {
                let component = |part: u8| scheme.component(party, part);
                let terms = cross.terms.iter();
                let masks = cross.masks.iter().filter(|_| masked);
                let sum = Sum {
                    terms: terms.map(|(p, q)| (component(*p), component(*q))).collect(),
                    masks: masks
                        .map(|(d, minus)| (mine[usize::from(*d)], *minus))
                        .collect(),
                };
                held[party][usize::from(cross.to)].add(&sum);
                let sends = round.sends.iter();
                let own = |send: &&Transfer| {
                    // The component itself, or what the product writes beside it.
                    let component = send.span.region == result && send.span.component == cross.to;
                    component || apart.get(k) == Some(&send.span)
                };
                for send in sends.filter(own) {
                    messages.insert(
                        (Peer::Party(scheme.parties[party]), send.peer, send.part),
                        sum.clone(),
                    );
                }
            }
            for (call, to) in form.keeps.iter().filter(|_| masked) {
                let masks = vec![(mine[usize::from(*call)], false)];
                let terms = Vec::new();
                held[party][usize::from(*to)].add(&Sum { terms, masks });
            }
            drawn.push(mine);
        }
        let mut received = vec![Vec::new(); scheme.count()];
        for (party, (round, _)) in rounds.iter().enumerate() {
            for recv in &round.recvs {
                let to = Peer::Party(scheme.parties[party]);
                let Some(got) = messages.get(&(recv.peer, to, recv.part)) else {
                    continue;
                };
                // It is added when the round is finished, or has landed where it belongs.
                let mut adds = round.finish.iter().filter_map(|command| match command.op {
                    Op::AddReceived { component } if command.src[0] == recv.span => Some(component),
                    Op::Combine { minus: 0, .. } if command.src[1..] == [recv.span] => {
                        let to = command.dst[0];
                        assert_eq!((to, to.region), (command.src[0], result));
                        Some(to.component)
                    }
                    _ => None,
                });
                let part = adds.next();
                let to = &mut held[party][usize::from(part.unwrap_or(recv.span.component))];
                if part.is_none() {
                    assert_eq!(
                        recv.span.region, result,
                        "a message that nothing is done with"
                    );
                    *to = Sum::default();
                }
                to.add(got);
                received[party].push(got.clone());
            }
        }
        assert_eq!(received.iter().flatten().count(), messages.len());
        let mut components = vec![None; scheme.count()];
        for (party, held) in held.into_iter().enumerate() {
            for (part, sum) in held.into_iter().enumerate() {
                let known = &mut components[scheme.component(party, part as u8)];
                let same = *known.get_or_insert(sum.clone()) == sum;
                assert!(same, "holders compute a component differently");
            }
        }
        let components = components.into_iter();
        Product {
            scheme,
            modulus,
            terms: of.terms(),
            masks: all.len(),
            drawn,
            received,
            components: components.map(|c| c.expect("a party holds it")).collect(),
        }
    }

    /// The views of `party` on pairs of factors, with the opening of the product to it if `opened`: over all shares, and all masks that it
    /// does not draw itself. Those are one.
    fn views(&self, party: usize, input: &[[u64; 2]], opened: bool) -> Histogram {
        let (m, count) = (self.modulus, self.scheme.count());
        let mut masks = vec![1; self.masks];
        let mine = &self.drawn[party];
        let others: Vec<usize> = (0..self.masks).filter(|k| !mine.contains(k)).collect();
        let split = 2 * self.terms * (count - 1);
        let digits = split + others.len();
        let missing = (0..count).find(|c| self.scheme.parts_of(party).all(|p| p != *c));
        let missing = &self.components[missing.expect("it lacks a component")];
        let seen = split + self.received[party].len() + 1;
        let mut histogram = vec![0; m.pow(seen as u32) as usize];
        for choice in 0..m.pow(digits as u32) {
            let mut digits = (0..).map(|k| choice / m.pow(k) % m);
            let mut split = |v: u64| {
                let mut parts: Vec<u64> = digits.by_ref().take(count - 1).collect();
                parts.push((v + m * count as u64 - parts.iter().sum::<u64>()) % m);
                parts
            };
            let factors: Vec<[Vec<u64>; 2]> = input.iter().map(|of| of.map(&mut split)).collect();
            for (k, digit) in others.iter().zip(digits) {
                masks[*k] = digit;
            }
            let value = |sum: &Sum| sum.value(&factors, &masks, m);
            let parts = || self.scheme.parts_of(party);
            let shares = factors
                .iter()
                .flat_map(|[u, w]| parts().flat_map(|c| [u[c], w[c]]));
            let received = self.received[party].iter().map(value);
            let opening = [missing].into_iter().filter(|_| opened).map(value);
            if opened {
                let z = self.components.iter().map(value).sum::<u64>();
                assert_eq!(z % m, self.clear(input), "the form is not a product");
            }
            let view = shares.chain(received).chain(opening);
            let view = view.fold(0, |number, digit| number * m + digit);
            histogram[view as usize] += 1;
        }
        histogram
    }

    /// The product of pairs of factors.
    fn clear(&self, input: &[[u64; 2]]) -> u64 {
        input.iter().map(|[x, y]| x * y).sum::<u64>() % self.modulus
    }

    /// All pairs of factors.
    fn inputs(&self) -> Vec<Vec<[u64; 2]>> {
        let m = self.modulus;
        let count = m.pow(2 * self.terms as u32);
        let pair = |number: u64, k: u32| [2 * k, 2 * k + 1].map(|digit| number / m.pow(digit) % m);
        let input = |number| (0..self.terms as u32).map(|k| pair(number, k)).collect();
        (0..count).map(input).collect()
    }
}

/// What every protocol multiplies, with the ring, and the modulus that stands for it: 2 for bits; for the rings 4, where their forms are the same polynomials, and
/// 2 where several products are added up.
fn products() -> Vec<(Ring, u64, Of)> {
    let mut all = Vec::new();
    for (ring, modulus) in [(Ring::Bits, 2), (Ring::Z64, 4), (Ring::Z128, 4)] {
        all.extend([1, 2].map(|chunk| (ring, modulus, Of::Gate { chunk })));
    }
    let matrices = [
        (Ring::Z32, 2, 2),
        (Ring::Z64, 2, 2),
        (Ring::Z64, 4, 1),
        (Ring::Z128, 2, 2),
    ];
    for (ring, modulus, terms) in matrices {
        all.extend([(false, 0), (true, 1)].map(|(transposed, rotation)| {
            let of = Of::Matrices {
                terms,
                transposed,
                rotation,
            };
            (ring, modulus, of)
        }));
    }
    all
}

/// Runs `check` for the products of every protocol, and every party.
fn every_product(masked: bool, check: impl Fn(&Product, usize, &str)) {
    // Four parties send the same products against either adversary.
    for scheme in [&SCHEMES[0], &SCHEMES[2]] {
        for (ring, modulus, of) in products() {
            let product = Product::new(scheme, (ring, modulus), of, masked);
            for party in 0..scheme.count() {
                let what = format!("{} parties, {ring:?}, {of:?}", scheme.count());
                check(&product, party, &format!("{what}: party {party}"));
            }
        }
    }
}

#[test]
fn a_product_shows_a_party_nothing() {
    every_product(true, |product, party, what| {
        let first = product.views(party, &vec![[0, 0]; product.terms], false);
        for input in product.inputs() {
            let view = product.views(party, &input, false);
            assert!(view == first, "{what}: views on {input:?} differ");
        }
    });
}

#[test]
fn an_opened_product_shows_a_party_the_product_only() {
    every_product(true, |product, party, what| {
        let inputs = product.inputs();
        let views = inputs
            .iter()
            .map(|input| (input, product.views(party, input, true)));
        let all: Vec<_> = views.collect();
        for (a, seen) in &all {
            for (b, other) in &all {
                let same = product.clear(a) == product.clear(b);
                assert_eq!(seen == other, same, "{what}: {a:?} and {b:?}");
            }
        }
    });
}

/// The test can fail: without masks, what a party receives depends on the inputs.
#[test]
fn an_unmasked_product_shows_every_party_something() {
    every_product(false, |product, party, what| {
        let [zero, one] = [0, 1].map(|x| {
            let mut input = vec![[0, 0]; product.terms];
            input[0] = [x, x];
            product.views(party, &input, false)
        });
        assert_ne!(zero, one, "{what}");
    });
}
