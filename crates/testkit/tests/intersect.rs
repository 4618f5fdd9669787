//! Intersections of the keys of two parties: results on every device, declared costs, and what each message may be changed to.

use std::sync::Arc;

use veil_device::{Cpu, Device, Isa, Reference};
use veil_device_cuda::Cuda;
use veil_device_cuda::backend::{Emulator, Order as Threads};
use veil_engine::{Abort, Memory};
use veil_job::{Adversary, Audience, Holder, JobSpec, Order};
use veil_link::tap::Fate;
use veil_link::{LinkFault, LinkKind};
use veil_protocol::{Options, Plan, PlanError};
use veil_session::{PartyId, Peer};
use veil_testkit::sample::{intersection, party, peer};
use veil_testkit::{Kind, Outcome, Seed, Values, World, flipped};

/// Keys of a job: the first ones of either party are those of both.
fn values(job: &JobSpec, common: usize) -> Values {
    Values::new(job, |_, row, port, half| {
        let owner = if row < common { 0 } else { 1 + port };
        (row as u128) << 64 | (owner as u128) << 8 | half as u128
    })
}

/// A run of lists of so many keys, of which `common` are the same, on fast devices.
fn world(keys: [u64; 2], result: u8, common: usize) -> World {
    let job = intersection(keys, party(result));
    let values = values(&job, common);
    World::in_chunks(job, 1, 1)
        .values(values)
        .devices(|_| Box::new(Cpu::detect()))
}

/// How many keys party `result` was told of.
fn found(outcome: &Outcome, result: u8) -> usize {
    let rows = outcome.rows(peer(result), 0).unwrap();
    rows.iter().filter(|row| row[0] == 1).count()
}

#[test]
fn results_are_those_of_comparing_all_keys() {
    for (keys, common) in [
        ([1, 1], 0),
        ([1, 1], 1),
        ([2, 1], 1),
        ([1, 3], 1),
        ([40, 40], 40),
        ([100, 7], 5),
        ([9, 130], 9),
    ] {
        for result in [0, 1] {
            let outcome = world(keys, result, common).run();
            assert_eq!(found(outcome.assert_right(), result), common);
            assert!(outcome.rows(peer(1 - result), 0).is_none());
        }
    }
}

/// By silent transfers, and by rounds over blocks.
#[test]
#[ignore = "tier long: hundreds of millions of transfers"]
fn long_lists() {
    for keys in [[3000, 2000], [60_000, 40_000]] {
        let outcome = world(keys, 0, 1234).run();
        assert_eq!(found(outcome.assert_right(), 0), 1234);
    }
}

#[test]
fn every_device_at_either_end() {
    for isa in Isa::available() {
        for other in [0, 1] {
            let mixed = world([20, 30], 1, 11).devices(move |at| -> Box<dyn Device> {
                if at == peer(other) {
                    Box::new(Cpu::with(isa))
                } else {
                    Box::new(Reference::default())
                }
            });
            assert_eq!(found(mixed.run().assert_right(), 1), 11);
        }
    }
}

/// Kernels of GPUs, emulated, in three orders of threads, at both ends and at either one: messages are those of the processor.
#[test]
fn kernels_send_what_processors_do() {
    let keys = || world([40, 30], 1, 11).seed(Seed(7));
    let cpu = keys().run();
    let defined = cpu.assert_right().digests();
    for order in [Threads::Forward, Threads::Reverse, Threads::Random(3)] {
        for own in [&[0, 1][..], &[0], &[1]] {
            let kernels = keys().devices(move |at| -> Box<dyn Device> {
                if own.iter().any(|party| at == peer(*party)) {
                    Box::new(Cuda::on(Box::new(Emulator::new(order))))
                } else {
                    Box::new(Cpu::detect())
                }
            });
            let outcome = kernels.run();
            assert_eq!(
                outcome.assert_right().digests(),
                defined,
                "{order:?} {own:?}"
            );
            assert_eq!(found(&outcome, 1), 11);
        }
    }
}

#[test]
fn costs_are_as_declared() {
    for result in [0, 1] {
        let world = world([30, 50], result, 3);
        let outcome = world.run();
        crate::yao::costs(&world, outcome.assert_right());
    }
}

/// A party whose list is the same again sends other tags, in another order.
#[test]
fn tags_of_two_runs_have_nothing_in_common() {
    let tags = |outcome: &Outcome| -> Vec<Vec<u8>> {
        let message = outcome.of(Kind::KeyTags).next().unwrap();
        message.bytes.chunks(16).map(<[u8]>::to_vec).collect()
    };
    let [first, second] = [1, 2].map(|seed| {
        let world = world([20, 20], 0, 20).seed(Seed(seed));
        tags(&world.run())
    });
    assert!(first.is_sorted() && second.is_sorted());
    assert!(first.iter().all(|tag| !second.contains(tag)));
}

/// How a message is changed.
type Change = fn(&[u8]) -> Vec<u8>;

/// What becomes of a changed message.
enum Then {
    /// A check of the party that gets it finds it, or of the one that sent it.
    Found(u8, &'static str),
    /// No check can: the receiver has what the sender, or it itself, could have chosen, with so many keys in common.
    Passes(usize),
}

/// Every message of either party, changed on its way: the receiver, party 1, has 20 keys of which 9 are among the 30 of the sender.
#[test]
fn every_message_is_checked_or_its_senders_choice() {
    const TRANSFERS: &str = "corrections of oblivious transfer";
    const COIN: &str = "what the sender committed to";
    const TAGS: &str = "that no two tags are equal, and all are in order";
    let (sender, receiver) = (0, 1);
    let swapped: Change = |tags| {
        let mut tags = tags.to_vec();
        tags.rotate_left(16);
        tags
    };
    let repeated: Change = |tags| [&tags[..16], &tags[..tags.len() - 16]].concat();
    let last: Change = |tags| {
        let mut tags = tags.to_vec();
        if let Some(last) = tags.last_mut() {
            *last ^= 1;
        }
        tags
    };
    let second: Change = |coins| {
        let mut coins = coins.to_vec();
        coins[32] ^= 1;
        coins
    };
    let cases: [(Kind, u8, Change, Then); 13] = [
        (
            Kind::KeysCommitment,
            sender,
            flipped,
            Then::Found(receiver, COIN),
        ),
        (
            Kind::Correction,
            receiver,
            flipped,
            Then::Found(sender, TRANSFERS),
        ),
        (
            Kind::TransferChallenge,
            sender,
            flipped,
            Then::Found(sender, TRANSFERS),
        ),
        (
            Kind::TransferFolds,
            receiver,
            flipped,
            Then::Found(sender, TRANSFERS),
        ),
        // The receiver has encoded other keys than it asks for, or the sender has tagged by another coin.
        (Kind::EncodingSeed, receiver, flipped, Then::Passes(0)),
        (Kind::Encoding, receiver, flipped, Then::Passes(9)),
        (
            Kind::Encoding,
            receiver,
            |bytes| vec![0; bytes.len()],
            Then::Passes(0),
        ),
        (Kind::ReceiverCoin, receiver, flipped, Then::Passes(0)),
        (
            Kind::SenderCoin,
            sender,
            flipped,
            Then::Found(receiver, COIN),
        ),
        (
            Kind::SenderCoin,
            sender,
            second,
            Then::Found(receiver, COIN),
        ),
        (Kind::KeyTags, sender, swapped, Then::Found(receiver, TAGS)),
        (Kind::KeyTags, sender, repeated, Then::Found(receiver, TAGS)),
        (Kind::KeyTags, sender, last, Then::Passes(9)),
    ];
    for (kind, from, change, then) in cases {
        let honest = world([30, 20], receiver, 9);
        let cheated = honest.cheat(move |message| {
            if message.kind == Some(kind) && message.from == peer(from) {
                Fate::Replace(change(&message.bytes))
            } else {
                Fate::Pass
            }
        });
        let outcome = cheated.run_apart();
        match then {
            Then::Found(by, what) => {
                // The sender has sent its last message, and nothing comes back.
                let Some(Abort::Cheated {
                    suspects,
                    what: found,
                    ..
                }) = outcome.aborts.get(&peer(by))
                else {
                    panic!("{kind:?}: {:?}", outcome.aborts);
                };
                assert_eq!(
                    (&suspects[..], *found),
                    (&[peer(1 - by)][..], what),
                    "{kind:?}"
                );
                assert!(outcome.rows(peer(receiver), 0).is_none(), "{kind:?}");
            }
            Then::Passes(most) => {
                assert!(outcome.aborts.is_empty(), "{kind:?}: {:?}", outcome.aborts);
                let rows = outcome.rows(peer(receiver), 0).unwrap();
                let honest = outcome.values.expected(&outcome.plan.job).swap_remove(0);
                let none_more = rows.iter().zip(&honest).all(|(row, honest)| row <= honest);
                assert!(none_more && found(&outcome, receiver) <= most, "{kind:?}");
            }
        }
    }
}

/// Messages that are too long, or too short, name their sender.
#[test]
fn messages_of_another_length_are_refused() {
    for (kind, from) in [
        (Kind::Encoding, 1),
        (Kind::KeyTags, 0),
        (Kind::SenderCoin, 0),
    ] {
        for longer in [false, true] {
            let cheated = world([6, 5], 1, 2).cheat(move |message| {
                if message.kind != Some(kind) {
                    return Fate::Pass;
                }
                let mut bytes = message.bytes.clone();
                if longer {
                    bytes.push(0);
                } else {
                    bytes.pop();
                }
                Fate::Replace(bytes)
            });
            let outcome = cheated.run_apart();
            let abort = &outcome.aborts[&peer(1 - from)];
            let Abort::Link(error) = abort else {
                panic!("{abort:?}");
            };
            let is_length = matches!(error.fault, LinkFault::Length { .. });
            assert!(is_length && error.peer == peer(from), "{error:?}");
            assert!(outcome.rows(peer(1), 0).is_none());
        }
    }
}

#[test]
fn what_is_no_intersection_is_refused() {
    let refused = |job: JobSpec| Plan::new(Arc::new(job), Options::default()).unwrap_err();
    let good = || intersection([4, 5], party(0));
    let is_other = |change: &dyn Fn(&mut JobSpec)| {
        let mut job = good();
        change(&mut job);
        let error = refused(job);
        assert!(
            matches!(error, PlanError::Job(what) if what.starts_with("where keys meet")),
            "{error:?}"
        );
    };
    let order = |keys, result| Order::Intersected { keys, result };
    is_other(&|job| job.blocks[0].order = order([0, 5], party(0)));
    is_other(&|job| job.blocks[0].order = order([4, 5], party(1)));
    is_other(&|job| job.blocks[0].rows = 5);
    is_other(&|job| job.audiences = vec![Audience::Parties]);
    is_other(&|job| job.audiences = vec![Audience::Party(party(1))]);
    is_other(&|job| job.blocks[0].holders.reverse());
    is_other(&|job| job.blocks.push(job.blocks[0].clone()));
    is_other(&|job| job.circuit = veil_circuit::make("adder:256").unwrap());
    is_other(&|job| {
        job.owners.push("owner".into());
        job.blocks[0].holders[0] = Holder::Owner(0);
    });
    let mut weak = good();
    weak.security = weak.security.against(Adversary::SemiHonest);
    assert!(matches!(refused(weak), PlanError::NoProtocol(_)));
    let long = refused(intersection([4, (1 << 24) + 1], PartyId::TWO[0]));
    let most = 1 << 24;
    assert_eq!(
        long,
        PlanError::TooManyKeys {
            keys: most + 1,
            most
        }
    );
}

/// What a job says of the keys that a malicious receiver asks for is at least what the count of equations gives: room of 128 bits for each column, of which a hash that fits by chance saves all but
/// 48 and as many as there are keys to choose from.
#[test]
fn keys_asked_for_are_as_many_as_the_contract_says() {
    for keys in (0..24).flat_map(|log| [1u64 << log, (1 << log) + 1, 3 << log >> 1]) {
        let keys = keys.clamp(1, 1 << 24);
        let meeting = veil_job::Intersection {
            keys: [keys, 1],
            result: PartyId::TWO[0],
        };
        let said = meeting.most_keys_asked() as f64;
        let bound = veil_device::Okvs::of(keys as u32).most_keys() as f64;
        assert!(bound <= said, "{keys} keys: {bound} of {said}");
        // Not much more than the bound either, of lists that matter.
        assert!(
            keys < 1 << 14 || said < 1.25 * bound,
            "{keys} keys: {bound} of {said}"
        );
    }
}

/// Whom a run is between.
#[test]
fn participants_are_the_two_parties() {
    let outcome = world([3, 3], 0, 1).run();
    let participants: Vec<Peer> = outcome.seen.keys().copied().collect();
    assert_eq!(participants, [peer(0), peer(1)]);
}

/// A link makes room for what can come before it is expected, of the one chunk that there is, and a job declares no more memory than its workspaces and some messages take.
#[test]
fn room_for_early_messages_is_that_of_one_chunk() {
    let job = intersection([1_000_000; 2], party(0));
    let plan = Arc::new(Plan::new(Arc::new(job), Options::default()).unwrap());
    let longest = 16 * veil_device::Okvs::of(1_000_000).columns();
    for me in [0, 1] {
        let protocol = veil_protocol::protocol(Arc::clone(&plan), peer(me));
        let bounds = veil_engine::bounds(&plan, &*protocol);
        assert_eq!(bounds.longest, longest);
        assert_eq!(bounds.early, 3 * (longest + 64) + (1 << 16));
        let memory = Memory::new(&plan, &*protocol, 4, LinkKind::Tls);
        assert!(memory.frames < 10 * longest, "{memory:?}");
        assert!(memory.workspaces < 16 * longest, "{memory:?}");
    }
}
