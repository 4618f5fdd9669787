//! Attack case B7: what a corrupt party learns where joint messages are checked after those that depend on them, and that it learns nothing
//! where they are checked in their round.
//!
//! The corrupt party C is sender of a joint message to R, for which B vouches, and adds 2^(k-1) to one element. R alone has a wrong component
//! of the product z from then on. In the next product, z w, the pair of R and B owes C a joint message: one of them sends it, the other
//! vouches. R's is off by 2^(k-1) times a component of w that C lacks, which is 0 or 2^(k-1): its lowest bit. C holds the voucher's key,
//! so it tries both values.

mod lifts;
mod spy;

use std::sync::Arc;

use veil_circuit::{Builder, Per};
use veil_device::Span;
use veil_engine::Abort;
use veil_job::{Audience, Holder, JobSpec};
use veil_link::tap::Fate;
use veil_math::Ring;
use veil_protocol::{Plan, Protocol, Replicated};
use veil_session::Peer;
use veil_testkit::sample::{among_four, job, peer};
use veil_testkit::{Kind, Late, Message, Outcome, Seed, World, flipped};

use spy::{Wrong, play};

const RECIPIENT: Peer = Peer::Recipient(0);

/// Rows of a chunk. Chunk 0 is the set-up; in odd chunks sender and voucher have changed places.
const ROWS: u32 = 8;

/// A way to use a wrong component, as the joint messages (numbers of `docs/protocol-rep4.md`) of two products.
#[derive(Clone, Copy, Debug)]
struct Attack {
    corrupt: u8,
    /// In which chunk.
    chunk: u32,
    /// Who gets the wrong message, and who vouches for the right one.
    wronged: u8,
    voucher: u8,
    /// The joint message that the two owe the corrupt party in the next product.
    next: u8,
    /// Components of w that the wrong one is multiplied by there.
    factors: &'static [usize],
}

/// All of them: party 0 is in no such position.
const ATTACKS: [Attack; 4] = [
    // Message 5, then 2: R sends a wrong message, B a right code.
    Attack {
        corrupt: 1,
        chunk: 2,
        wronged: 2,
        voucher: 3,
        next: 2,
        factors: &[0, 1],
    },
    // Message 2, then 5: the same.
    Attack {
        corrupt: 2,
        chunk: 2,
        wronged: 1,
        voucher: 3,
        next: 5,
        factors: &[2],
    },
    // Message 3, then 4: B sends a right message, R a wrong code.
    Attack {
        corrupt: 3,
        chunk: 2,
        wronged: 2,
        voucher: 0,
        next: 4,
        factors: &[3],
    },
    // Message 4, then 3, in odd chunks: the same.
    Attack {
        corrupt: 2,
        chunk: 1,
        wronged: 3,
        voucher: 0,
        next: 3,
        factors: &[1, 2],
    },
];

/// x y w per row; the secret is w.
fn chain(ring: Ring) -> JobSpec {
    let mut b = Builder::new(ring);
    let [x, y, w] = ["x", "y", "w"].map(|name| b.input(name, 1, Per::Row)[0]);
    let z = b.mul(x, y);
    let z = b.mul(z, w);
    b.output("z", &[z]);
    let owners = [Holder::Owner(0), Holder::Owner(0), Holder::Owner(1)];
    among_four(job(
        b.finish().expect("a valid circuit"),
        &[(2 * u64::from(ROWS), &owners)],
        &[Audience::Recipient(0)],
    ))
}

/// Where a party keeps component `of` of a slot; nowhere, if it lacks it.
fn kept(plan: &Plan, party: u8, of: usize, slot: u32) -> Option<Span> {
    // Part k of a party is component k + 1 places after its number.
    let part = (of + 3 - usize::from(party)) % 4;
    (part < 3).then(|| Span {
        region: plan.programs[0].slots,
        component: part as u8,
        first: slot,
        count: 1,
    })
}

impl Attack {
    /// What the corrupt party adds to the error, to have the lowest bit of a factor in a slot: those of its components that are no part of the error.
    fn others(&self, plan: &Plan, slot: u32) -> Vec<Span> {
        let others = (0..4).filter(|of| !self.factors.contains(of));
        others
            .filter_map(|of| kept(plan, self.corrupt, of, slot))
            .collect()
    }

    /// The first row of its chunk, as it is.
    fn row<'a>(&self, outcome: &'a Outcome) -> &'a [Vec<u128>] {
        let mut chunks = (0..).map_while(|k| outcome.plan.chunk(k));
        let chunk = chunks.find(|c| c.frame.chunk == self.chunk);
        let chunk = chunk.expect("the job has two chunks");
        &outcome.values.blocks[chunk.block as usize][chunk.first as usize]
    }

    /// The wronged party has found it in its round, at `place`, and has sent so many messages of that round, and none of a later one.
    fn is_found(&self, outcome: &Outcome, place: u32, sent: usize) {
        let seed = outcome.seed;
        let [wronged, corrupt, voucher] = [self.wronged, self.corrupt, self.voucher].map(peer);
        match outcome.abort(wronged) {
            Abort::Cheated { suspects, what, at } => {
                assert_eq!(*suspects, [corrupt, voucher], "{seed}");
                assert_eq!(*what, "a joint message of a product", "{seed}");
                assert_eq!(
                    (at.frame.chunk, at.step.place),
                    (self.chunk, place),
                    "{seed}"
                );
            }
            other => panic!("{seed}: {other:?}"),
        }
        let own = |m: &&Message| {
            let of_layers = matches!(m.kind, Some(Kind::Product | Kind::Mac));
            of_layers && m.from == wronged && m.at.frame.chunk == self.chunk
        };
        let own: Vec<&Message> = outcome.transcript.iter().filter(own).collect();
        let last = own.iter().filter(|m| m.at.step.place == place).count();
        let later = own.iter().any(|m| m.at.step.place > place);
        assert!(last == sent && !later, "{seed}: {own:?}");
        assert!(!outcome.seen[&RECIPIENT].finished(), "{seed}");
    }
}

/// The round of the first layer.
fn first_place(outcome: &Outcome) -> u32 {
    let places = outcome.of(Kind::Product).map(|m| m.at.step.place);
    places.min().expect("messages of products")
}

/// One attack on a run of `build`: the lowest bit of w as the corrupt party finds it, and as it is.
fn attack(
    way: &Attack,
    ring: Ring,
    seed: Seed,
    build: fn(Replicated) -> Arc<dyn Protocol>,
) -> (Option<u8>, u8, Outcome) {
    let world = World::in_chunks(chain(ring), ROWS, 1).seed(seed);
    let plan = world.plan();
    let w = way.others(plan, plan.inputs[2].first);
    let wrong = Wrong {
        layer: 0,
        bit: ring.bits() - 1,
    };
    let (guess, outcome) = play(world, way, wrong, w, build);
    let truth = (way.row(&outcome)[2][0] & 1) as u8;
    (guess, truth, outcome)
}

#[test]
fn where_checks_come_late_a_corrupt_party_learns_a_bit_of_a_secret() {
    for ring in Ring::ALL {
        let mut bits = [0; 2];
        for (k, way) in ATTACKS.iter().cycle().take(100).enumerate() {
            let seed = Seed(1000 + k as u64);
            let (guess, truth, outcome) =
                attack(way, ring, seed, |inner| Arc::new(Late::new(inner)));
            assert_eq!(guess, Some(truth), "{seed}: {ring:?}: {way:?}");
            bits[usize::from(truth)] += 1;
            assert!(!outcome.seen[&RECIPIENT].finished(), "{seed}");
        }
        assert!(bits.iter().all(|n| *n > 4), "{bits:?}: not a secret");
    }
}

#[test]
fn where_checks_come_in_time_it_learns_nothing() {
    for ring in Ring::ALL {
        for (k, way) in ATTACKS.iter().cycle().take(12).enumerate() {
            let seed = Seed(2000 + k as u64);
            let (guess, _, outcome) = attack(way, ring, seed, |inner| Arc::new(inner));
            assert_eq!(guess, None, "{seed}: {ring:?}: {way:?}");
            way.is_found(&outcome, first_place(&outcome), 3);
        }
    }
}

/// The build is bad in nothing else: it computes what it should, and finds a wrong message in the end.
#[test]
fn late_checks_are_checks() {
    for ring in Ring::ALL {
        let world = World::in_chunks(chain(ring), ROWS, 1);
        let late = |inner| -> Arc<dyn Protocol> { Arc::new(Late::new(inner)) };
        world.run_built(late).assert_right();
        let cheat = move |m: &Message| match m.kind {
            Some(Kind::Product) if m.from == peer(1) => Fate::Replace(flipped(&m.bytes)),
            _ => Fate::Pass,
        };
        let outcome = world.cheat(cheat).run_built(late);
        let cheated = |abort: &Abort| matches!(abort, Abort::Cheated { .. });
        assert!(outcome.aborts.values().any(cheated), "{}", outcome.seed);
        assert!(!outcome.seen[&RECIPIENT].finished(), "{}", outcome.seed);
    }
}
