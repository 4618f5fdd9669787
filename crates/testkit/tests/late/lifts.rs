//! The same attack on lifts: a corrupt party sends a wrong message of a lift, in its first round or in its second.
//!
//! *First round.* `P_2` sends message 2 to `P_1`, and changes bit k - 2 of an element of s_0. In the second round `P_1` owes `P_2` message 5, of the
//! term -2 s_0 t_2, which `P_3` vouches for: it is off by 2^(k-1) t_2. So `P_2` learns the lowest bit of t_2, and with its t_3, and
//! s = b_0 ⊕ b_1, the bit b = s ⊕ t itself.
//!
//! *Second round.* A wrong message makes a component of the integer wrong, and its product with w is what it is in `chain`. Messages of the
//! second round are 1, 3, 4 and 5.

use super::*;

use veil_testkit::Values;

/// z = b w + x per row, of the lowest bit b of x. The slot of x stays as it is until then.
fn lifted(ring: Ring) -> JobSpec {
    let mut b = Builder::new(ring);
    let [x, w] = ["x", "w"].map(|name| b.input(name, 1, Per::Row)[0]);
    let bit = b.bit(x, 0);
    let bit = b.lift(bit);
    let z = b.mul(bit, w);
    let z = b.add(z, x);
    b.output("z", &[z]);
    among_four(job(
        b.finish().expect("a valid circuit"),
        &[(2 * u64::from(ROWS), &[Holder::Owner(0), Holder::Owner(1)])],
        &[Audience::Recipient(0)],
    ))
}

const RINGS: [Ring; 3] = [Ring::Z32, Ring::Z64, Ring::Z128];

/// A message of the first round: 2, then 5.
const FIRST: Attack = Attack {
    corrupt: 2,
    chunk: 2,
    wronged: 1,
    voucher: 3,
    next: 5,
    // Of the term's t.
    factors: &[2],
};

/// An attack, in a round of the lift: 0 or 1. The secret is the port of that number: in the first round x, in the second w.
struct Way {
    attack: &'static Attack,
    round: usize,
    /// Messages that the wronged party sends in that round.
    sent: usize,
}

/// The first round, and the three positions of products whose first message is one of the second round.
fn ways() -> Vec<Way> {
    let second = ATTACKS.iter().filter(|attack| attack.next != 5);
    let second = second.map(|attack| Way {
        attack,
        round: 1,
        sent: 2,
    });
    let first = Way {
        attack: &FIRST,
        round: 0,
        sent: 1,
    };
    second.chain([first]).collect()
}

impl Way {
    /// Goes this way in a run of `build`, in which the secret's lowest bits are `low`, or random: its lowest bit as the corrupt party finds it, and as
    /// it is.
    fn go(
        &self,
        (ring, seed, low): (Ring, Seed, Option<u128>),
        build: fn(Replicated) -> Arc<dyn Protocol>,
    ) -> (Option<u8>, u8, Outcome) {
        let (job, attack) = (lifted(ring), self.attack);
        let mut values = Values::random(&job, seed);
        for row in values.blocks.iter_mut().flatten() {
            let secret = &mut row[self.round][0];
            *secret = low.map_or(*secret, |low| *secret & !1 | low);
        }
        let world = World::in_chunks(job, ROWS, 1).seed(seed).values(values);
        let plan = world.plan();
        let [x, w] = [0, 1].map(|port| plan.inputs[port].first);
        let (own, bit) = if self.round == 0 {
            // t_3 is drawn; bits b_0 and b_1 are those of x.
            let t = plan.layers[0].lifts[0].to;
            let own = [(0, x), (1, x), (3, t)];
            let own = own.map(|(of, slot)| kept(plan, attack.corrupt, of, slot));
            (
                own.map(|span| span.expect("it holds it")).into(),
                ring.bits() - 2,
            )
        } else {
            (attack.others(plan, w), ring.bits() - 1)
        };
        let layer = self.round;
        let (guess, outcome) = play(world, attack, Wrong { layer, bit }, own, build);
        let truth = (attack.row(&outcome)[self.round][0] & 1) as u8;
        (guess, truth, outcome)
    }
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} in round {}", self.attack, self.round)
    }
}

#[test]
fn where_checks_come_late_a_corrupt_party_learns_a_bit_of_a_secret() {
    let late = |inner| -> Arc<dyn Protocol> { Arc::new(Late::new(inner)) };
    for ring in RINGS {
        // The build is bad in nothing else.
        let world = World::in_chunks(lifted(ring), ROWS, 1);
        world.run_built(late).assert_right();
        for way in ways() {
            let mut bits = [0; 2];
            for k in 0..20 {
                let (guess, truth, outcome) = way.go((ring, Seed(3000 + k), None), late);
                let seed = outcome.seed;
                assert_eq!(guess, Some(truth), "{seed}: {ring:?}: {way}");
                bits[usize::from(truth)] += 1;
                assert!(!outcome.seen[&RECIPIENT].finished(), "{seed}");
            }
            assert!(bits.iter().all(|n| *n > 2), "{bits:?}: not a secret");
        }
    }
}

/// The receiver stops in the round of the wrong message, and names the same two parties, whatever the secret is.
#[test]
fn where_checks_come_in_time_it_learns_nothing() {
    for ring in RINGS {
        for way in ways() {
            for (seed, low) in [(4001, 0), (4001, 1), (4002, 0), (4002, 1)] {
                let of = (ring, Seed(seed), Some(low));
                let (guess, truth, outcome) = way.go(of, |inner| Arc::new(inner));
                assert_eq!(u128::from(truth), low);
                assert_eq!(guess, None, "{seed}: {ring:?}: {way}");
                let place = first_place(&outcome) + way.round as u32;
                way.attack.is_found(&outcome, place, way.sent);
            }
        }
    }
}
