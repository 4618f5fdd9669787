//! A network and nodes that fail: every host learns it, and nothing is left of a run that was ended.

use std::collections::HashSet;

use veil_device_fpga::Stalls;
use veil_device_fpga::node::{
    Failure, Fault, Network, NodeError, Sealing, Start, Trio, link_key, pair_key,
};
use veil_math::Ring;

use super::{components, trio};

const WORDS: u32 = 150;

/// Halves of words that are secret: keys, and all shares.
fn secrets(seed: u64) -> HashSet<u64> {
    let keys = (0..3).map(|party| pair_key(seed, party).expose().to_vec());
    let pairs = (0..9).map(|pair| [pair / 3, pair % 3]);
    let links = pairs.map(|pair| link_key(seed, pair).0.expose().to_vec());
    let shares = (0..2).flat_map(|value| components(seed, value, WORDS));
    halves(keys.chain(links).chain(shares))
}

/// All their halves of words.
pub(crate) fn halves(all: impl Iterator<Item = Vec<u8>>) -> HashSet<u64> {
    let all: Vec<Vec<u8>> = all.collect();
    let halves = all.iter().flat_map(|bytes| bytes.as_chunks().0);
    halves.map(|half| u64::from_le_bytes(*half)).collect()
}

/// How many of them are anywhere in the state of a node, at whatever bit.
pub(crate) fn found(network: &Network, node: u8, secrets: &HashSet<u64>) -> usize {
    let state = network.state(node);
    let windows = state.windows(9).map(|window| {
        let low = u64::from_le_bytes(window[..8].try_into().expect("8 bytes"));
        u128::from(low) | u128::from(window[8]) << 64
    });
    windows
        .map(|wide| {
            let at = (0..8).map(|bit| (wide >> bit) as u64);
            at.filter(|half| secrets.contains(half)).count()
        })
        .sum()
}

/// Ends the run at all nodes, and looks for what is left.
fn aborts(mut trio: Trio, seed: u64, what: &str) {
    let secrets = secrets(seed);
    trio.abort().unwrap_or_else(|e| panic!("{what}: {e}"));
    trio.network.run(2000);
    for node in 0..3 {
        assert_eq!(
            found(&trio.network, node, &secrets),
            0,
            "{what}: node {node}"
        );
        let mut memory = vec![0; 16 * trio.window().words as usize];
        let all = trio.nodes[usize::from(node)].load(0, &mut memory);
        assert_eq!(all, Ok(()));
        assert!(memory.iter().all(|byte| *byte == 0), "{what}: node {node}");
    }
}

/// Each node has a failure in the end: its own, or that it is told of one.
fn all_fail(trio: &mut Trio, ended: [Result<(), NodeError>; 3], what: &str) -> [Failure; 3] {
    let first = ended.iter().position(Result::is_err);
    let first = first.unwrap_or_else(|| panic!("{what}: no party fails"));
    trio.tell(first as u8).expect("commands end");
    let mut ended = ended.into_iter();
    [0, 1, 2].map(|node| {
        match ended.next().expect("three") {
            Err(NodeError::Failed { failure, .. }) => return failure,
            Err(error) => panic!("{what}: node {node}: {error}"),
            Ok(()) => {}
        }
        loop {
            let next = trio.nodes[node].next("to be told");
            let next = next.unwrap_or_else(|e| panic!("{what}: node {node}: {e}"));
            if let Err(failure) = next.result {
                return failure;
            }
        }
    })
}

/// What becomes of a layer whose packet `skip` from node 0 to 1 goes wrong.
fn fails(fault: Fault, skip: u64) -> Option<[Failure; 3]> {
    let what = format!("{fault:?} {skip}");
    let seed = 40 + skip;
    let mut trio = trio((3, WORDS, 2), seed, Stalls { seed: 9, rate: 10 })?;
    trio.network.fault([0, 1], fault, skip, 1);
    trio.submit(Ring::Bits, [0, 1, 2], 1);
    let ended = [0, 1, 2].map(|node| trio.finish(node));
    let failures = all_fail(&mut trio, ended, &what);
    aborts(trio, seed, &what);
    Some(failures)
}

#[test]
fn lost_packets_end_the_run_everywhere() {
    // Puts of a column, of 64, 64 and 22 words; the last leaves nothing behind it that would be out of order.
    for skip in [0, 2] {
        let Some(failures) = fails(Fault::Drop, skip) else {
            return;
        };
        assert_eq!(failures[0], Failure::Gone);
        assert_eq!(failures[1], Failure::Unopened(Sealing::Order));
        assert_eq!(failures[2], Failure::Mismatch, "it is told");
    }
}

#[test]
fn repeated_packets_end_the_run_everywhere() {
    let Some(failures) = fails(Fault::Duplicate, 1) else {
        return;
    };
    assert_eq!(failures[1], Failure::Unopened(Sealing::Order));
    assert_eq!([failures[0], failures[2]], [Failure::Mismatch; 2]);
}

#[test]
fn packets_out_of_order_end_the_run_everywhere() {
    let Some(failures) = fails(Fault::Reorder, 0) else {
        return;
    };
    assert_eq!(failures[0], Failure::Gone);
    assert_eq!(failures[1], Failure::Unopened(Sealing::Order));
}

#[test]
fn changed_packets_end_the_run_everywhere() {
    for skip in [0, 1] {
        let Some(failures) = fails(Fault::Corrupt, skip) else {
            return;
        };
        assert_eq!(failures[0], Failure::Gone);
        assert!(matches!(failures[1], Failure::Unopened(_)), "{failures:?}");
    }
}

#[test]
fn a_node_that_is_switched_off_ends_the_run_everywhere() {
    let seed = 50;
    let Some(mut trio) = trio((3, WORDS, 2), seed, Stalls::default()) else {
        return;
    };
    trio.submit(Ring::Bits, [0, 1, 2], 1);
    trio.network.run(200);
    trio.network.reset(1);
    let ended = [0, 2].map(|node| trio.finish(node));
    let failed = NodeError::Failed {
        what: "a layer",
        failure: Failure::Gone,
    };
    assert_eq!(ended, [Err(failed), Ok(())]);
    trio.tell(0).expect("commands end");
    let told = trio.nodes[2].next("to be told").map(|of| of.result);
    assert_eq!(told, Ok(Err(Failure::Mismatch)));
    let at_reset = trio.nodes[1].next("a packet").map(|of| of.result);
    assert!(
        matches!(at_reset, Ok(Err(Failure::Unopened(_)))),
        "{at_reset:?}"
    );
    aborts(trio, seed, "a reset");
}

#[test]
fn scrubs_leave_nothing() {
    for cycles in [150, 400, 900] {
        let seed = 60;
        let Some(mut trio) = trio((3, WORDS, 2), seed, Stalls::default()) else {
            return;
        };
        trio.submit(Ring::Z128, [0, 1, 2], 1);
        trio.network.run(cycles);
        let secrets = secrets(seed);
        for node in 0..3 {
            let before = found(&trio.network, node, &secrets);
            assert!(before > 0, "secrets are found where they are");
        }
        aborts(trio, seed, "a scrub");
    }
}

/// After new keys everything works.
#[test]
fn a_failed_run_is_followed_by_a_right_one() {
    let seed = 70;
    let Some(mut trio) = trio((3, WORDS, 2), seed, Stalls::default()) else {
        return;
    };
    trio.network.fault([2, 0], Fault::Drop, 0, 1);
    let failed = trio.products(Start::Hosts, Ring::Z64, [0, 1, 2], 1);
    assert!(failed.is_err());
    trio.abort().expect("the nodes work");
    let mut trio = trio.renewed(71, super::TIMEOUT).expect("the nodes work");
    for value in 0..2 {
        let shared = components(71, value, WORDS);
        let shared = shared.each_ref().map(Vec::as_slice);
        trio.share(value, shared).expect("the memory is there");
    }
    let done = trio.products(Start::Hosts, Ring::Z64, [0, 1, 2], 1);
    assert_eq!(done, Ok(()));
    let [a, b] = [0, 1].map(|value| super::sum(Ring::Z64, &components(71, value, WORDS)));
    let expected = super::product(Ring::Z64, &a, &b);
    assert_eq!(super::opened(&mut trio, Ring::Z64, 2), expected);
}
