//! Cases B1 to B6 on the wire: a party of four whose host sends another joint message than its node computed, or another code, or none. The
//! node that gets it finds it in the same round, with nothing written that could be used, and nothing is left after the run was ended.

use std::collections::HashSet;

use veil_circuit::make;
use veil_device_fpga::Stalls;
use veil_device_fpga::node::{
    Circuits, Command, Event, Failure, JOINT, LANES, List, NodeError, Op, PrfCounters, Products,
    Quartet, Segment, Shape, Start, Tuple, code_key, component_key, link_key, received,
};
use veil_math::Ring;
use veil_prss::DomainTag;

use super::faults::{found, halves};
use super::four::{components, opened, quartet};
use super::{TIMEOUT, built, product, random, sum};

const WORDS: u32 = 72;
/// A value whose columns a Byzantine party uses for what it computes.
const SPARE: u32 = 4;
const TAG: u32 = 1 << 20;

/// What a host sends in the place of what its node computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lie {
    /// A bit of it is another one.
    Bit,
    /// Nothing: what lies there is of the layer before.
    Nothing,
    /// Zeros.
    Zeros,
    /// The layer's before, under the keys and counters of that one.
    Old,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    Message,
    Mac,
}

fn layer(values: [u32; 3], chunk: u32) -> Products {
    Products {
        ring: Ring::Z64,
        values,
        count: 1,
        chunk,
        checks: true,
    }
}

/// Turns a destination of a Byzantine party's command to its own memory; says where it went before.
fn turned(
    quartet: &Quartet,
    command: &mut Command,
    byzantine: u8,
    to: (u8, u64),
    spare: u32,
) -> Segment {
    let is = |of: &&mut Segment| (of.node, of.address) == to;
    let segment = command.to.iter_mut().find(is);
    let segment = segment.expect("a destination of the command");
    let before = *segment;
    *segment = Segment::new(byzantine, quartet.column(0, spare), before.words);
    before
}

/// A host puts something from its memory to another node.
fn put(quartet: &mut Quartet, byzantine: u8, spare: u32, to: Segment) {
    let from = Segment::new(byzantine, quartet.column(0, spare), to.words);
    let node = &mut quartet.nodes[usize::from(byzantine)];
    node.submit(&Command::new(Op::Move, TAG, to.words, vec![from], vec![to]));
    node.finish("a lie", &[TAG]).expect("it is in the window");
}

fn load(quartet: &mut Quartet, node: u8, address: u64, words: u32) -> Vec<u8> {
    let mut bytes = vec![0; 16 * words as usize];
    let loaded = quartet.nodes[usize::from(node)].load(address, &mut bytes);
    assert_eq!(loaded, Ok(()));
    bytes
}

/// Where joint message `k`, or its MAC, comes from, and the node and address that it goes to.
fn goes(quartet: &Quartet, k: u8, of: Of, chunk: u32) -> (u8, (u8, u64)) {
    let joint = JOINT[usize::from(k)];
    let place = received(joint.receiver).iter().position(|of| *of == k);
    let place = place.expect("its receiver gets it") as u32;
    match of {
        Of::Message => {
            let from = joint.sender(chunk);
            (from, (joint.receiver, quartet.message(from, place)))
        }
        Of::Mac => {
            let from = joint.voucher(chunk);
            (from, (joint.receiver, quartet.mac(from, place, 0)))
        }
    }
}

/// The second stage fails at one node, which writes nothing, and nowhere else.
fn refused(quartet: &mut Quartet, plan: &[[Vec<Command>; 2]; 4], at: u8, out: u32, what: &str) {
    let nothing = vec![0; 16 * WORDS as usize];
    for component in 0..3 {
        let column = quartet.column(component, out);
        let cleared = quartet.nodes[usize::from(at)].store(column, &nothing);
        assert_eq!(cleared, Ok(()), "{what}");
    }
    let ended = quartet.stage(&plan.each_ref().map(|of| &of[1][..]));
    let mismatch = NodeError::Failed {
        what: "a layer",
        failure: Failure::Mismatch,
    };
    for (me, ended) in (0..).zip(ended) {
        let expected = if me == at {
            Err(mismatch.clone())
        } else {
            Ok(())
        };
        assert_eq!(ended, expected, "{what}: node {me}");
    }
    for component in (0..4).filter(|component| *component != at) {
        let written = quartet.component(at, component, out);
        assert_eq!(written.as_ref(), Ok(&nothing), "{what}: nothing is written");
    }
}

/// A right layer, then one in which a node lies about joint message `k`.
fn lies(quartet: &mut Quartet, k: u8, of: Of, lie: Lie, chunk: u32) {
    let what = format!("B{}: {of:?}, {lie:?}", k + 1);
    let first = layer([0, 1, 2], chunk);
    assert_eq!(quartet.products(Start::Hosts, &first), Ok(()), "{what}");
    let (byzantine, to) = goes(quartet, k, of, chunk);
    let mut plan = quartet.stages(&layer([1, 2, 3], chunk));
    let local = &mut plan[usize::from(byzantine)][0][0];
    let there = turned(quartet, local, byzantine, to, SPARE);
    let old = load(quartet, to.0, to.1, there.words);
    let ended = quartet.stage(&plan.each_ref().map(|of| &of[0][..]));
    assert_eq!(ended, [Ok(()), Ok(()), Ok(()), Ok(())], "{what}");
    let spare = quartet.column(0, SPARE);
    let mut sent = load(quartet, byzantine, spare, there.words);
    match lie {
        Lie::Bit => sent[7] ^= 0x10,
        Lie::Nothing => {}
        Lie::Zeros => sent.fill(0),
        Lie::Old => sent = old,
    }
    let stored = quartet.nodes[usize::from(byzantine)].store(spare, &sent);
    assert_eq!(stored, Ok(()), "{what}");
    if lie != Lie::Nothing {
        put(quartet, byzantine, SPARE, there);
    }
    refused(quartet, &plan, to.0, 3, &what);
}

/// After a MAC that was wrong the worker takes other commands at once: a mismatch scrubs its core alone.
#[test]
fn lies_about_joint_messages_are_found_by_their_receivers() {
    let Some(mut quartet) = quartet((5, WORDS, 2), 80, Stalls::default()) else {
        return;
    };
    for k in 0..6 {
        for (n, of) in [Of::Message, Of::Mac].into_iter().enumerate() {
            // A bit of all messages and MACs in even chunks; in odd ones one after the other.
            let others = [Lie::Bit, Lie::Nothing, Lie::Zeros, Lie::Old];
            let other = others[(usize::from(k) + 2 * n) % 4];
            for (lie, chunk) in [(Lie::Bit, 0), (other, 1)] {
                lies(&mut quartet, k, of, lie, chunk);
            }
        }
    }
    let [a, b] = [0, 1].map(|value| sum(Ring::Z64, &components(80, value, WORDS)));
    let expected = product(Ring::Z64, &a, &b);
    assert_eq!(opened(&mut quartet, Ring::Z64, 2), expected);
}

/// Party 0 sends both messages that party 3 gets in even chunks, and both MACs in odd ones: it changes their places.
#[test]
fn messages_and_codes_in_each_others_places_are_found() {
    for (of, chunk) in [(Of::Message, 2), (Of::Mac, 3)] {
        let Some(mut quartet) = quartet((6, WORDS, 2), 81, Stalls { seed: 4, rate: 20 }) else {
            return;
        };
        let what = format!("{of:?}");
        let mut plan = quartet.stages(&layer([0, 1, 3], chunk));
        let local = &mut plan[0][0][0];
        let places = [0, 4].map(|k| goes(&quartet, k, of, chunk));
        assert_eq!(places.map(|(byzantine, _)| byzantine), [0, 0]);
        let [a, b] = [0, 1].map(|n| {
            let spare = SPARE + n as u32;
            turned(&quartet, local, 0, places[n].1, spare)
        });
        let ended = quartet.stage(&plan.each_ref().map(|of| &of[0][..]));
        assert_eq!(ended, [Ok(()), Ok(()), Ok(()), Ok(())], "{what}");
        put(&mut quartet, 0, SPARE, b);
        put(&mut quartet, 0, SPARE + 1, a);
        refused(&mut quartet, &plan, 3, 3, &what);
    }
}

/// The host that starts a layer at all nodes learns of it from the one that found it; the run is ended, and after new keys the next is right.
#[test]
fn a_lie_ends_the_run_and_the_next_is_right() {
    let seed = 82;
    let Some(mut quartet) = quartet((5, WORDS, 2), seed, Stalls::default()) else {
        return;
    };
    let of = layer([0, 1, 3], 0);
    // Node 2 vouches for joint message 1, whose receiver is node 0; it has armed a command whose code stays with it.
    let (byzantine, to) = goes(&quartet, 1, Of::Mac, 0);
    assert_eq!((byzantine, to.0), (2, 0));
    let mut plan = quartet.stages(&of);
    turned(&quartet, &mut plan[2][0][0], byzantine, to, SPARE);
    let armed = quartet.armed(plan, &mut 0);
    let failed = NodeError::Failed {
        what: "a layer",
        failure: Failure::Mismatch,
    };
    assert_eq!(quartet.start(&armed), Err(failed));
    // It was node 0 itself that found it: the others have ended right, and are told.
    quartet.tell(0).expect("commands end");
    for me in 1..4 {
        let mut told = Vec::new();
        for _ in 0..3 {
            let completion = quartet.nodes[me].next("to be told").expect("a completion");
            assert_eq!(completion.event, Event::Invoked(0));
            told.push(completion.result);
        }
        told.sort_by_key(Result::is_err);
        assert_eq!(told, [Ok(()), Ok(()), Err(Failure::Mismatch)], "node {me}");
    }
    let secrets = secrets(seed);
    for node in 0..4 {
        let before = found(&quartet.network, node, &secrets);
        assert!(before > 0, "secrets are found where they are");
    }
    quartet.abort().expect("the nodes work");
    quartet.network.run(2000);
    let all = quartet.window().words;
    for node in 0..4 {
        let left = found(&quartet.network, node, &secrets);
        assert_eq!(left, 0, "node {node}");
        let memory = load(&mut quartet, node, 0, all);
        assert!(memory.iter().all(|byte| *byte == 0), "node {node}");
    }
    let mut quartet = quartet.renewed(83, TIMEOUT).expect("the nodes work");
    for value in 0..2 {
        let shared = components(83, value, WORDS);
        let shared = shared.each_ref().map(Vec::as_slice);
        quartet.share(value, shared).expect("the memory is there");
    }
    assert_eq!(quartet.products(Start::Headless, &of), Ok(()));
    let [a, b] = [0, 1].map(|value| sum(Ring::Z64, &components(83, value, WORDS)));
    let expected = product(Ring::Z64, &a, &b);
    assert_eq!(opened(&mut quartet, Ring::Z64, 3), expected);
}

/// In the second layer of a circuit a node lies to party 3 about one message, or about both. Its join ends the list, and its host finds out which
/// it was; nothing of the third layer is sent, all nodes end, and nothing is left.
fn lies_in_a_circuit(seed: u64, of: Of) {
    let what = format!("{of:?}");
    let shape = Shape {
        bytes: 1 << 20,
        patience: 1 << 24,
        ..Shape::new(4)
    };
    let Some(made) = built(Quartet::new(shape, (0, LANES), seed, 2 * TIMEOUT)) else {
        return;
    };
    let mut quartet = made.expect("the nodes work");
    let circuit = make("lt-fast:8").expect("a circuit");
    let plan = quartet.plan(&circuit, 512, true);
    let plan = plan.expect("a circuit of bits").expect("the nodes work");
    let inputs: Vec<[Vec<u8>; 4]> = (0..u64::from(circuit.input_wires()))
        .map(|wire| [0, 1, 2, 3].map(|k| random((seed << 32) | (4 * wire + k), 64)))
        .collect();
    for (at, of) in plan.inputs().iter().zip(&inputs) {
        let put = quartet.put_in(at, &of.each_ref().map(Vec::as_slice));
        assert_eq!(put, Ok(()), "{what}");
    }
    let armed = quartet.arm_circuit(&plan).expect("the memory is there");
    // What a first circuit draws.
    let counters = PrfCounters {
        masks: Tuple {
            tag: DomainTag::joint4(0),
            lane: 0,
            counter: 0,
            chunk: 0,
        },
        layer: 0,
    };
    // Where each wave of products begins in a list.
    let waves = |commands: &[(Command, bool)]| {
        let mut first = true;
        let mut waves = Vec::new();
        for (at, (command, _)) in commands.iter().enumerate() {
            match command.op {
                Op::Local(_) if first => waves.push(at),
                Op::Local(_) => {}
                _ => {
                    first = true;
                    continue;
                }
            }
            first = false;
        }
        waves
    };
    // Party 1 vouches for joint message 0, of which party 3 gets a MAC; party 0 sends it joint messages 0 and 4.
    let byzantine = match of {
        Of::Mac => 1,
        Of::Message => 0,
    };
    let mut commands = plan.commands(byzantine, counters);
    let second = waves(&commands)[1];
    let local = &mut commands[second].0;
    match (of, &mut local.op) {
        (Of::Mac, Op::Local(stage)) => stage.counter += 1 << 40,
        (Of::Message, _) => {
            let [a, b] = [0, 1].map(|k| local.to[k].address);
            assert_eq!([local.to[0].node, local.to[1].node], [3, 3], "{what}");
            (local.to[0].address, local.to[1].address) = (b, a);
        }
        (_, op) => panic!("{op:?}"),
    }
    let mut list = List::new();
    for (tag, (command, after)) in (0..).zip(&mut commands) {
        command.tag = tag;
        list.push(command, *after);
    }
    let at = plan.list_at().address;
    let stored = quartet.nodes[usize::from(byzantine)].store(at, &list.bytes(LANES));
    assert_eq!(stored, Ok(()), "{what}");
    let ended = quartet.start(&[armed]);
    let failed = matches!(ended, Err(NodeError::Failed { .. }));
    assert!(failed, "{what}: {ended:?}");
    // Party 3 learns which command it was, and its list ends with the same.
    let node = &mut quartet.nodes[3];
    let [first, last] = [0, 1].map(|_| node.next("a lie").expect("a completion"));
    let differs = Err(Failure::Mismatch);
    assert_eq!((first.event, first.result), (Event::Command, differs));
    assert_eq!((last.event, last.result), (Event::Invoked(0), differs));
    let number = first.tag as usize;
    let commands = plan.commands(3, counters);
    assert!(matches!(commands[number].0.op, Op::Join(_)), "{what}");
    let waves = waves(&commands);
    assert!((waves[1]..waves[2]).contains(&number), "{what}");
    let expected = match of {
        Of::Mac => [Err(Failure::Mismatch), Ok(())],
        Of::Message => [Err(Failure::Mismatch); 2],
    };
    let wrong = [0, 1].map(|message| {
        let only = plan.only(3, counters, number, message).expect("a message");
        node.submit(&only);
        node.next("a message").expect("a completion").result
    });
    assert_eq!(wrong, expected, "{what}");
    // Of the third layer nothing has left: no layer has used its places before.
    let mut later = 0;
    for (command, _) in &commands[waves[2]..] {
        let Op::Local(_) = command.op else { break };
        for to in command.to.iter().filter(|to| to.node != 3) {
            let there = load(&mut quartet, to.node, to.address, to.words);
            assert!(there.iter().all(|byte| *byte == 0), "{what}");
            later += 1;
        }
    }
    assert!(later > 0, "{what}: there is a third layer");
    // All have a failure: the others wait for party 3, or are told.
    quartet.tell(0).expect("commands end");
    for me in 1..3 {
        let told = quartet.nodes[me].finish("to be told", &[u32::MAX]);
        let failed = matches!(told, Err(NodeError::Failed { .. }));
        assert!(failed, "{what}: node {me}: {told:?}");
    }
    let secrets = keys(seed).chain(inputs.into_iter().flatten());
    let secrets = halves(secrets);
    let before = (0..4).map(|node| found(&quartet.network, node, &secrets));
    assert!(
        before.min() > Some(0),
        "{what}: secrets are found where they are"
    );
    quartet.abort().expect("the nodes work");
    quartet.network.run(2000);
    quartet.abort().expect("the nodes work");
    let all = quartet.window().words;
    for node in 0..4 {
        let left = found(&quartet.network, node, &secrets);
        assert_eq!(left, 0, "{what}: node {node}");
        let memory = load(&mut quartet, node, 0, all);
        assert!(memory.iter().all(|byte| *byte == 0), "{what}: node {node}");
    }
}

#[test]
fn lies_in_the_middle_of_a_circuit_end_it() {
    lies_in_a_circuit(84, Of::Mac);
    lies_in_a_circuit(85, Of::Message);
}

/// Halves of words that are secret: keys, and all shares.
fn secrets(seed: u64) -> HashSet<u64> {
    let shares = (0..2).flat_map(|value| components(seed, value, WORDS));
    halves(keys(seed).chain(shares))
}

/// All keys of nodes of a seed.
fn keys(seed: u64) -> impl Iterator<Item = Vec<u8>> {
    let pairs = (0..16).map(|pair| [pair / 4, pair % 4]);
    let links = pairs.clone().map(move |pair| link_key(seed, pair).0);
    let macs = pairs.map(move |pair| code_key(seed, pair));
    let keys = (0..4).map(move |of| component_key(seed, of)).chain(links);
    keys.chain(macs).map(|key| key.expose().to_vec())
}
