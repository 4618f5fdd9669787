//! Lists of commands in the memories of three nodes, which wait for each other and for no host.

use veil_device_fpga::Stalls;
use veil_device_fpga::node::{COUNTED, Command, Event, Failure, Layer, List, Op, Segment, Tuple};
use veil_math::Ring;
use veil_prss::DomainTag;

use super::{components, cpu, opened, product, sum, trio};

/// The first value whose own components are no shares: there lies a node's list.
const LIST: u32 = 7;

/// Two layers, (0 × 2) × (1 × 3), whose hosts at nodes 1 and 2 only arm: each node waits for the message of the one before.
#[test]
fn lists_run_layers_where_no_host_waits() {
    let rates = [(Ring::Bits, 0), (Ring::Z64, 30), (Ring::Z128, 10)];
    for ((ring, rate), words) in rates.into_iter().zip([300, 4, 72]) {
        let stalls = Stalls { seed: 31, rate };
        let seed = 31;
        let Some(mut trio) = trio((LIST + 40, words, 4), seed, stalls) else {
            return;
        };
        let stride = trio.stride();
        let mut lists = Vec::new();
        for me in 0..3 {
            let of = |value| [0, 1].map(|part| trio.column(part, value));
            let next = (me + 1) % 3;
            let limits = trio.nodes[usize::from(me)].limits();
            let layer = |[a, b, out]: [u32; 3], count: u32, counter| {
                let layer = Layer {
                    ring,
                    words: count * stride,
                    from: [of(a), of(b)],
                    own: of(out)[0],
                    next: (next, of(out)[1]),
                    tell: None,
                    call: Tuple {
                        tag: if ring == Ring::Bits {
                            DomainTag::AND3
                        } else {
                            DomainTag::MUL3
                        },
                        lane: 0,
                        counter,
                        chunk: 0,
                    },
                };
                // Each message is told of, as they may come in any order.
                let mut commands: Vec<Command> = layer.commands(me, limits, 100).collect();
                for command in &mut commands {
                    command.to[0].tell = Some(COUNTED);
                }
                commands
            };
            let mut list = List::new();
            let layers = [
                layer([0, 2, 4], 2, 0),
                layer([4, 5, 6], 1, u64::from(2 * stride)),
            ];
            for commands in layers {
                for (k, command) in commands.iter().enumerate() {
                    list.push(command, k == 0);
                }
                let tells = [((me + 2) % 3, commands.len() as u16)];
                list.push(&Command::awaits(200, &tells), false);
            }
            let at = trio.column(0, LIST);
            let lanes = limits.lanes;
            let from = vec![Segment::new(me, at, list.words(lanes))];
            assert!(list.words(lanes) <= 40 * stride);
            trio.nodes[usize::from(me)]
                .store(at, &list.bytes(lanes))
                .expect("the memory is there");
            lists.push(Command::list(7, from));
        }
        for (node, list) in trio.nodes[1..].iter_mut().zip(&lists[1..]) {
            node.arm(0, list);
        }
        let before = [1, 2].map(|k| trio.nodes[k].accesses());
        trio.nodes[0].submit(&lists[0]);
        trio.nodes[0].invoke(8, &[(1, 0), (2, 0)]);
        let ended = trio.nodes[0].finish("lists", &[7, 8]);
        assert_eq!(ended, Ok(()), "{ring:?}");
        let after = [1, 2].map(|k| trio.nodes[k].accesses());
        assert_eq!(before, after, "no node asked the hosts of nodes 1 and 2");
        for node in &mut trio.nodes[1..] {
            let ended = node.next("a list").map(|of| (of.event, of.result));
            assert_eq!(ended, Ok((Event::Invoked(0), Ok(()))));
        }
        for node in &mut trio.nodes {
            // Neither commands of lists nor tells that are counted are completions.
            assert_eq!(node.poll(), Ok(None));
        }
        let shares = [0, 1, 2, 3].map(|value| components(seed, value, words));
        let clear = shares.each_ref().map(|shares| sum(ring, shares));
        let products = [
            product(ring, &clear[0], &clear[2]),
            product(ring, &clear[1], &clear[3]),
        ];
        let expected = product(ring, &products[0], &products[1]);
        assert_eq!(opened(&mut trio, ring, 4), products[0], "{ring:?}");
        assert_eq!(opened(&mut trio, ring, 5), products[1], "{ring:?}");
        assert_eq!(opened(&mut trio, ring, 6), expected, "{ring:?}");
        let between = [4, 5].map(|value| {
            [0, 1, 2].map(|me| trio.component(me, 0, value).expect("the memory is there"))
        });
        for me in 0..3 {
            for (at, [a, b], counter) in [
                (4, [&shares[0], &shares[2]], 0),
                (5, [&shares[1], &shares[3]], u64::from(stride)),
                (6, [&between[0], &between[1]], u64::from(2 * stride)),
            ] {
                let message = cpu::message(ring, seed, me, [a, b], counter);
                let here = trio.component(me, 0, at);
                assert_eq!(here, Ok(message), "{ring:?}: value {at} at party {me}");
            }
        }
    }
}

/// What fails in a list has its own completion, and the list the same failure; nothing behind it begins.
#[test]
fn a_list_ends_with_its_first_failure() {
    let words = 8;
    let Some(mut trio) = trio((8, words, 2), 32, Stalls::default()) else {
        return;
    };
    let [own, out] = [0, 3].map(|value| Segment::new(0, trio.column(0, value), words));
    let copy = Command::new(Op::Move, 1, words, vec![own], vec![out]);
    let mut list = List::new();
    list.push(&Command::awaits(2, &[(1, 1)]), false);
    list.push(&copy, true);
    let at = trio.column(0, LIST);
    let node = &mut trio.nodes[0];
    let lanes = node.limits().lanes;
    node.store(at, &list.bytes(lanes))
        .expect("the memory is there");
    let from = vec![Segment::new(0, at, list.words(lanes))];
    node.submit(&Command::list(3, from));
    for tag in [2, 3] {
        let ended = node.next("a list").map(|of| (of.tag, of.result));
        assert_eq!(ended, Ok((tag, Err(Failure::Gone))));
    }
    let here = trio.component(0, 0, 3);
    assert_eq!(here, Ok(vec![0; 16 * words as usize]), "nothing was moved");
}
