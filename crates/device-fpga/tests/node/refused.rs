//! What a unit refuses: each status, and accesses while commands go on.

use veil_device_fpga::Stalls;
use veil_device_fpga::node::{
    Command, Completion, Event, Failure, LANES, Network, Node, NodeConfig, NodeError, Op, Segment,
    Shape, Window,
};
use veil_math::Ring;
use veil_session::Secret;

use super::{built, trio};

/// One node with a window, alone, whose memory ends before its window does.
fn alone() -> Option<(Network, Node)> {
    let network = built(Network::new(Shape {
        bytes: 16 << 10,
        ..Shape::new(2)
    }))?;
    let mut node = Node::open(Box::new(network.port(0))).expect("a unit");
    let own = Window {
        address: 0,
        words: 2 << 10,
    };
    let place = NodeConfig {
        timeout: 5000,
        own,
        ..NodeConfig::default()
    };
    node.set_up(&place).expect("it is idle");
    Some((network, node))
}

#[test]
fn every_failure_has_its_error() {
    let Some((_network, mut node)) = alone() else {
        return;
    };
    let at = |node, word: u64, words| Segment::new(node, 16 * word, words);
    let columns = |words| (0..4).map(|k| at(0, 8 * k, words)).collect::<Vec<_>>();
    let product = |words: u32| {
        Command::new(
            Op::Product(Ring::Bits),
            0,
            words,
            columns(words),
            vec![at(0, 100, words), at(0, 200, words)],
        )
    };
    let moves = |from, to| Command::new(Op::Move, 0, 4, vec![from], vec![to]);
    let limits = node.limits();
    assert_eq!(limits.lanes, LANES);
    let cases = [
        (product(8), Failure::NoKey),
        (product(limits.longest + LANES), Failure::Length),
        (product(2), Failure::Length),
        (moves(at(0, 0, 4), at(0, 0, 5)), Failure::Length),
        (moves(at(0, 1 << 11, 4), at(0, 0, 4)), Failure::Address),
        (moves(Segment::new(0, 8, 4), at(0, 0, 4)), Failure::Address),
        (moves(at(0, 1, 4), at(0, 0, 4)), Failure::Address),
        (moves(at(0, 0, 4), at(1, 2, 4)), Failure::Address),
        (moves(at(0, 0, 4), at(7, 0, 4)), Failure::Node),
        (moves(at(0, 1100, 4), at(0, 0, 4)), Failure::Memory),
        (moves(at(0, 0, 4), at(0, 1100, 4)), Failure::Memory),
        (moves(at(0, 0, 4), at(1, 0, 4)), Failure::Gone),
        (
            Command::new(Op::Move, 0, 4, vec![at(0, 0, 4); 15], vec![]),
            Failure::Malformed,
        ),
        (
            Command::new(Op::Move, 0, 4, vec![at(0, 0, 4); 300], vec![]),
            Failure::Malformed,
        ),
    ];
    node.store(0, &[3; 64]).expect("a memory");
    for (k, (command, failure)) in (1..).zip(cases) {
        node.submit(&Command { tag: k, ..command });
        let mut ended = node.next("a command").expect("a completion");
        if ended.event == Event::Packet(1) {
            assert_eq!(failure, Failure::Gone, "there are no keys");
            ended = node.next("a command").expect("a completion");
        }
        let expected = Completion {
            event: Event::Command,
            tag: k,
            result: Err(failure),
        };
        assert_eq!(ended, expected);
    }
    let differ = Command::new(
        Op::Check,
        90,
        4,
        vec![at(0, 0, 4), at(0, 40, 4)],
        vec![at(0, 80, 4)],
    );
    node.submit(&differ);
    let failed = node.finish("a check", &[90]);
    let mismatch = NodeError::Failed {
        what: "a check",
        failure: Failure::Mismatch,
    };
    assert_eq!(failed, Err(mismatch));
    for _ in 0..2 {
        node.arm(
            3,
            &Command {
                tag: 91,
                ..differ.clone()
            },
        );
    }
    let refused = node.next("a slot").expect("a completion");
    assert_eq!((refused.tag, refused.result), (91, Err(Failure::Refused)));
    let beyond = node.load((16 << 10) - 1, &mut [0; 2]);
    assert!(matches!(beyond, Err(NodeError::Memory { .. })));
}

/// A command that was right when it was armed, and is not when it is invoked: the node that invoked it is refused, and the own host is told why.
#[test]
fn a_window_that_became_smaller_is_no_silence() {
    let Some(mut trio) = trio((3, 8, 3), 33, Stalls::default()) else {
        return;
    };
    let [a, b, sum] = [0, 1, 2].map(|value| trio.column(1, value));
    let own = |address| Segment::new(1, address, 8);
    let armed = Command::new(Op::Xor, 7, 8, vec![own(a), own(b)], vec![own(sum)]);
    let node = &mut trio.nodes[1];
    node.arm(3, &armed);
    node.arm(4, &armed);
    trio.network.run(200);
    let window = |words| NodeConfig {
        node: 1,
        timeout: 5000,
        own: Window { address: 0, words },
        put: [Window::default(); 4],
        get: [Window::default(); 4],
        invoke_from: 1,
    };
    let node = &mut trio.nodes[1];
    assert_eq!(node.set_up(&window(8)), Ok(()));
    trio.nodes[0].invoke(40, &[(1, 3)]);
    let refused = trio.nodes[0].next("an invocation").expect("a completion");
    assert_eq!((refused.tag, refused.result), (40, Err(Failure::Refused)));
    let told = trio.nodes[1].next("the host").expect("a completion");
    assert_eq!((told.tag, told.result), (7, Err(Failure::Address)));
    // It is gone, and the other one goes when it may.
    let node = &mut trio.nodes[1];
    assert_eq!(node.set_up(&window(1 << 12)), Ok(()));
    trio.nodes[0].invoke(41, &[(1, 3)]);
    let refused = trio.nodes[0].next("an invocation").expect("a completion");
    assert_eq!((refused.tag, refused.result), (41, Err(Failure::Refused)));
    trio.nodes[0].invoke(42, &[(1, 4)]);
    assert_eq!(trio.nodes[0].finish("an invocation", &[42]), Ok(()));
}

/// Keys and windows stay as they are while commands go on.
#[test]
fn nothing_is_written_while_commands_go_on() {
    let Some(mut trio) = trio((3, 900, 2), 31, Stalls::default()) else {
        return;
    };
    let from = [0, 1].map(|value| Segment::new(0, trio.column(0, value), 900));
    let to = vec![Segment::new(0, trio.column(0, 2), 900)];
    let node = &mut trio.nodes[0];
    node.submit(&Command::new(Op::Xor, 1, 900, from.to_vec(), to));
    trio.network.run(100);
    let key = Secret::new([9; 16]);
    let node = &mut trio.nodes[0];
    assert_eq!(node.is_busy(), Ok(true));
    let refused = node.share_keys(&key, &key);
    assert!(matches!(refused, Err(NodeError::Register { .. })));
    let refused = node.set_up(&NodeConfig::default());
    assert!(matches!(refused, Err(NodeError::Register { .. })));
    assert_eq!(node.finish("a sum", &[1]), Ok(()));
    assert_eq!(node.share_keys(&key, &key), Ok(()));
}
