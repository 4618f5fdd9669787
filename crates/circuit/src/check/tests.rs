//! Every rule, broken.

use super::*;
use crate::{Clock, InputPort, OutputPort};

fn and() -> Circuit {
    Circuit {
        ring: Ring::Bits,
        inputs: vec![InputPort {
            name: "a".into(),
            width: 2,
            per: Per::Row,
            bits: false,
        }],
        gates: vec![Gate::Mul(Wire(0), Wire(1)), Gate::Plus(Wire(2), 1)],
        outputs: vec![OutputPort {
            name: "z".into(),
            wires: vec![Wire(3)],
            reduce: Reduce::None,
        }],
        clock: Clock::default(),
    }
}

type Change<'a> = &'a dyn Fn(&mut Circuit);

fn refusal(change: impl Fn(&mut Circuit)) -> String {
    let mut circuit = and();
    circuit.validate().expect("the unchanged circuit is fine");
    change(&mut circuit);
    circuit
        .validate()
        .expect_err("the change must be noticed")
        .to_string()
}

#[test]
fn each_broken_rule_is_named() {
    let cases: [(&str, Change); 13] = [
        (
            "gate 0 drives wire 2 and reads wire 2; a gate may only read wires of smaller number",
            &|c| {
                c.gates[0] = Gate::Mul(Wire(0), Wire(2));
            },
        ),
        (
            "gate 1 drives wire 3 and reads wire 4294967295; a gate may only read wires of smaller number",
            &|c| {
                c.gates[1] = Gate::Plus(Wire(u32::MAX), 1);
            },
        ),
        (
            "gate 1 has the constant 2, which is not an element of Z_2; reduce it first",
            &|c| {
                c.gates[1] = Gate::Times(Wire(0), 2);
            },
        ),
        (
            "gate 1 has the constant 3, which is not an element of Z_2; reduce it first",
            &|c| {
                c.gates[1] = Gate::Constant(3);
            },
        ),
        (
            "output `z` names wire 4, but the circuit has 4 wires",
            &|c| c.outputs[0].wires[0] = Wire(4),
        ),
        ("the circuit has no outputs; name at least one", &|c| {
            c.outputs.clear();
        }),
        (
            "port `z` has no wires; give it a width, or leave it out",
            &|c| c.outputs[0].wires.clear(),
        ),
        (
            "port `b` has no wires; give it a width, or leave it out",
            &|c| {
                c.inputs.push(InputPort {
                    name: "b".into(),
                    width: 0,
                    per: Per::Job,
                    bits: false,
                });
            },
        ),
        ("two input ports are called `a`; rename one", &|c| {
            let copy = c.inputs[0].clone();
            c.inputs.push(copy);
        }),
        ("two output ports are called `z`; rename one", &|c| {
            let copy = c.outputs[0].clone();
            c.outputs.push(copy);
        }),
        (
            "port name \"\\n\" is empty, longer than 255 bytes or has control characters; rename the port",
            &|c| {
                c.inputs[0].name = "\n".into();
            },
        ),
        (
            "output `z` is summed over the rows, which needs a ring of integers; this is a circuit of bits",
            &|c| c.outputs[0].reduce = Reduce::Sum,
        ),
        (
            "the circuit has 4294967298 wires, and the limit is 33554432; split it, or raise the limit at every party",
            &|c| {
                c.inputs[0].width = u32::MAX;
                c.inputs.push(InputPort {
                    name: "b".into(),
                    width: 1,
                    per: Per::Row,
                    bits: false,
                });
            },
        ),
    ];
    for (message, change) in cases {
        assert_eq!(refusal(change), message);
    }
}

#[test]
fn integers_and_bits_are_kept_apart() {
    let good = Circuit {
        ring: Ring::Z64,
        inputs: vec![InputPort {
            name: "x".into(),
            width: 1,
            per: Per::Row,
            bits: false,
        }],
        gates: vec![
            Gate::Bit(Wire(0), 63),        // 1
            Gate::ConstantBit(true),       // 2
            Gate::Mul(Wire(1), Wire(2)),   // 3
            Gate::Plus(Wire(3), 1),        // 4
            Gate::Lift(Wire(4)),           // 5
            Gate::Times(Wire(5), 1 << 63), // 6
        ],
        outputs: vec![OutputPort {
            name: "z".into(),
            wires: vec![Wire(6)],
            reduce: Reduce::Sum,
        }],
        clock: Clock::default(),
    };
    assert_eq!(good.validate(), Ok(()));
    assert!(good.is_mixed());
    let (bit, ring) = (Ring::Bits, Ring::Z64);
    assert_eq!(good.rings(), [ring, bit, bit, bit, bit, ring, ring]);
    let truncated = |by, bits| Gate::TruncatePr {
        of: Wire(0),
        by,
        bits,
    };
    let cases: [(&str, Change); 17] = [
        (
            "gate 0 reads bit 64 of an integer, and bits of Z_2^64 are 0 to 63",
            &|c| {
                c.gates[0] = Gate::Bit(Wire(0), 64);
            },
        ),
        (
            "gate 0 reads bit 65 of an integer, and bits of Z_2^64 are 0 to 63",
            &|c| c.gates[0] = Gate::IsZero(Wire(0), 65),
        ),
        (
            "gate 0 reads bit 64 of an integer, and bits of Z_2^64 are 0 to 63",
            &|c| {
                c.gates[0] = Gate::ShiftRight {
                    of: Wire(0),
                    by: 64,
                    bits: 64,
                }
            },
        ),
        (
            "gate 2 reads wire 0, which is an integer; take one of its bits",
            &|c| {
                c.gates[2] = Gate::Mul(Wire(1), Wire(0));
            },
        ),
        ("gate 2 reads wire 1, which is a bit; lift it first", &|c| {
            c.gates[2] = Gate::Add(Wire(0), Wire(1));
        }),
        (
            "gate 3 has the constant 2, which is not an element of Z_2; reduce it first",
            &|c| {
                c.gates[3] = Gate::Plus(Wire(3), 2);
            },
        ),
        (
            "gate 4 reads wire 0, which is an integer; take one of its bits",
            &|c| {
                c.gates[4] = Gate::Lift(Wire(0));
            },
        ),
        ("gate 3 reads wire 2, which is a bit; lift it first", &|c| {
            c.gates[3] = Gate::Bit(Wire(2), 0);
        }),
        (
            "gate 0 takes 3 bits off integers of 64; these are at most 63 in Z_2^64, and fewer than they have go",
            &|c| c.gates[0] = truncated(3, 64),
        ),
        (
            "gate 0 takes 3 bits off integers of 3; these are at most 63 in Z_2^64, and fewer than they have go",
            &|c| c.gates[0] = truncated(3, 3),
        ),
        (
            "gate 4 reads wire 0, which is an integer; take one of its bits",
            &|c| c.gates[4] = Gate::Append(Wire(0), Wire(0)),
        ),
        ("gate 4 reads wire 1, which is a bit; lift it first", &|c| {
            c.gates[4] = Gate::Append(Wire(1), Wire(2));
        }),
        (
            "gate 0 converts between integers and bits; this is a circuit of bits, where nothing is to be converted",
            &|c| {
                c.ring = Ring::Bits;
                c.gates[0] = Gate::RandomBit(0);
            },
        ),
        (
            "output `z` names wire 4, and a port is of integers alone or of bits alone, which are not summed; lift the bit first, or put it out \
             by a port of its own",
            &|c| c.outputs[0].wires.push(Wire(4)),
        ),
        (
            "output `z` names wire 4, and a port is of integers alone or of bits alone, which are not summed; lift the bit first, or put it out \
             by a port of its own",
            &|c| {
                c.outputs[0].wires[0] = Wire(4);
                c.outputs[0].reduce = Reduce::Sum;
            },
        ),
        (
            "gate 0 converts between integers and bits; this is a circuit of bits, where nothing is to be converted",
            &|c| {
                c.ring = Ring::Bits;
                c.gates[0] = Gate::Lift(Wire(0));
            },
        ),
        (
            "gate 0 converts between integers and bits; this is a circuit of bits, where nothing is to be converted",
            &|c| {
                c.ring = Ring::Bits;
                c.gates[0] = Gate::ConstantBit(false);
            },
        ),
    ];
    for (message, change) in cases {
        let mut circuit = good.clone();
        change(&mut circuit);
        let refused = circuit.validate().expect_err("it must be noticed");
        assert_eq!(refused.to_string(), message);
    }
}

#[test]
fn limits_hold() {
    let small = |limits: Limits| {
        and()
            .validate_within(&limits)
            .map_err(|error| error.to_string())
    };
    let limits = Limits {
        gates: 2,
        wires: 4,
        ports: 1,
        output_wires: 1,
        ..Limits::default()
    };
    assert_eq!(small(limits), Ok(()));
    for (limits, what) in [
        (Limits { gates: 1, ..limits }, "2 gates, and the limit is 1"),
        (Limits { wires: 3, ..limits }, "4 wires, and the limit is 3"),
        (
            Limits { ports: 0, ..limits },
            "1 input ports, and the limit is 0",
        ),
        (
            Limits {
                output_wires: 0,
                ..limits
            },
            "1 output wires, and the limit is 0",
        ),
    ] {
        let message = small(limits).expect_err("over the limit");
        assert!(message.contains(what), "{message}");
    }
}

/// One that counts in a bit, beside the AND.
fn sequential() -> Circuit {
    let mut circuit = and();
    circuit.gates = vec![Gate::Mul(Wire(0), Wire(2)), Gate::Plus(Wire(3), 1)];
    circuit.clock = Clock {
        registers: vec![Register {
            initial: Initial::Wire(Wire(1)),
            next: Wire(4),
        }],
        cycles: 4,
    };
    circuit
}

#[test]
fn registers_are_checked() {
    sequential().validate().expect("a good circuit");
    let limits = Limits {
        cycles: 4,
        wires: 5,
        value_bits: 4,
        ..Limits::default()
    };
    let each = |c: &mut Circuit| c.outputs[0].reduce = Reduce::EveryCycle;
    let mut circuit = sequential();
    each(&mut circuit);
    assert_eq!(circuit.validate_within(&limits), Ok(()));
    let cases: [(&str, Change); 9] = [
        (
            "register 0 takes wire 5 next, but the circuit has 5 wires",
            &|c| {
                c.clock.registers[0].next = Wire(5);
            },
        ),
        ("register 0 begins as wire 2; it may begin as", &|c| {
            c.clock.registers[0].initial = Initial::Wire(Wire(2));
        }),
        ("register 0 begins as wire 1; it may begin as", &|c| {
            c.inputs[0].per = Per::Cycle;
            c.clock.cycles = 1;
        }),
        ("the circuit has no cycles", &|c| c.clock.cycles = 0),
        ("the circuit has 5 cycles, and the limit is 4", &|c| {
            c.clock.cycles = 5;
        }),
        ("has 6 wires, and the limit is 5", &|c| {
            c.clock.registers.push(c.clock.registers[0]);
        }),
        (
            "has 8 bits of a value over all cycles, and the limit is 5",
            &|c| {
                each(c);
                c.outputs[0].wires.push(Wire(0));
            },
        ),
        ("gate 1 of a sequential circuit is random", &|c| {
            c.gates[1] = Gate::Random(0);
        }),
        ("a sequential circuit is over bits", &|c| c.ring = Ring::Z64),
    ];
    for (want, change) in &cases {
        let mut circuit = sequential();
        change(&mut circuit);
        let message = circuit.validate_within(&limits);
        let message = message.expect_err("the change must be noticed").to_string();
        assert!(message.contains(want), "{message}");
    }
}
