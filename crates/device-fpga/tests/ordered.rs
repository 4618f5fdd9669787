//! The core that takes gates in the order of the netlist: it takes as many cycles as the rule says, and what it garbles is evaluated by an
//! evaluator of the tests and compared with the clear computation.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::{PUBLISHED, product};
use veil_circuit::scd::{self, Kind, Netlist, Operand};
use veil_circuit::{Circuit, Limits, Per, Reduce};
use veil_device_fpga::Stalls;
use veil_device_fpga::ordered::{Entries, Garbled, Job, Ordered, rule};
use veil_testkit::{Numbers, Seed};

/// A netlist, as the core takes it and in the clear.
struct Subject {
    netlist: Netlist,
    circuit: Circuit,
    entries: Entries,
    cycles: u32,
}

impl Subject {
    fn new(text: &[u8], cycles: u32) -> Self {
        let limits = Limits::default();
        let netlist = scd::netlist(text, &limits).expect("a netlist");
        let circuit = scd::read(text, cycles.into(), Reduce::EveryCycle, &limits);
        Subject {
            entries: Entries::of(&netlist).expect("it fits"),
            circuit: circuit.expect("a netlist"),
            netlist,
            cycles,
        }
    }

    /// A netlist in which anything that a core has to get right occurs.
    fn random(numbers: &mut Numbers, gates: u64, registers: u64, cycles: u32) -> Self {
        let initial = [1, 3][numbers.index(2)];
        let base = initial + [0, 3][numbers.index(2)];
        let mut lists = [const { Vec::new() }; 3];
        for wires in base + registers..base + registers + gates {
            // Near ones make operands wait, far ones do not.
            let mut pick = || match numbers.below(33) {
                0 => -2 - numbers.below(2) as i64,
                1..12 => (wires - 1 - numbers.below(wires.min(12))) as i64,
                _ => numbers.below(wires) as i64,
            };
            let (a, b) = (pick(), pick());
            let kind = [8, 4, 7, 11, 14, 13, 1, 2, 6, 9, 12][numbers.index(11)];
            let b = match kind {
                12 => -1,
                _ if numbers.below(32) == 0 => a,
                _ => b,
            };
            for (list, number) in lists.iter_mut().zip([a, b, kind]) {
                list.push(number);
            }
        }
        let total = base + registers + gates;
        let outputs: BTreeSet<u64> = (0..9).map(|_| base + numbers.below(total - base)).collect();
        let (mut next, mut first) = (Vec::new(), Vec::new());
        for register in 0..registers {
            // The last gates, which may end after their netlist cycle; registers: a chain, or any; inputs; constants.
            next.push(match numbers.below(7) {
                0 => (total - 1 - numbers.below(gates.min(4))) as i64,
                1 => (base + numbers.below(registers)) as i64,
                2 => (base + (register + 1) % registers) as i64,
                3 => numbers.below(base) as i64,
                4 => -2,
                5 => -3,
                _ => numbers.below(total) as i64,
            });
            first.push([-2, -3, numbers.below(initial) as i64][numbers.index(3)]);
        }
        let line = |list: &[i64]| {
            let words: Vec<String> = list.iter().map(i64::to_string).collect();
            words.join(" ") + "\n"
        };
        let outputs: Vec<i64> = outputs.into_iter().map(|wire| wire as i64).collect();
        let counts = [initial, 0, base - initial, 0, registers].map(|n| n as i64);
        let mut header = counts.to_vec();
        header.extend([outputs.len() as i64, gates as i64]);
        let [a, b, kinds] = &lists;
        let all: Vec<String> = [&header, a, b, kinds, &outputs, &next, &first]
            .map(|list| line(list))
            .to_vec();
        Subject::new(all.concat().as_bytes(), cycles)
    }

    /// Garbles with labels of a seed.
    fn garble(&self, core: &mut Ordered, seed: Seed) -> (Garbled, Secrets) {
        let secrets = Secrets::new(self, seed);
        let garbled = core.run(&self.entries, &secrets.job(self));
        (garbled.unwrap_or_else(|e| panic!("{seed:?}: {e}")), secrets)
    }

    /// Evaluates what was garbled, and compares all outputs.
    fn assert_right(&self, garbled: &Garbled, secrets: &Secrets, seed: Seed) {
        let mut numbers = seed.numbers("values");
        let Netlist {
            initial, cyclic, ..
        } = self.netlist;
        let mut some = |n| -> Vec<u128> { (0..n).map(|_| u128::from(numbers.below(2))).collect() };
        let steady = some(initial);
        let each: Vec<Vec<u128>> = (0..self.cycles).map(|_| some(cyclic)).collect();
        let want = (self.circuit.evaluate(&self.of_ports(&steady, &each))).expect("bits");
        let outputs = self.netlist.outputs.len();
        let mut labels = words(&garbled.labels).into_iter();
        let distinct: BTreeSet<u128> = words(&garbled.labels).into_iter().collect();
        assert_eq!(distinct.len() * 16, garbled.labels.len(), "a label each");
        let mut tables = words(&garbled.tables).into_iter();
        let mut call = |bit: u128| labels.next().expect("a label each") ^ (bit * secrets.keys.0);
        let [of_run, of_cycle, of_later] = self.entries.inputs();
        let base = self.netlist.inputs() as usize;
        let mut now = vec![0; base];
        for wire in of_run {
            now[*wire as usize] = call(steady[*wire as usize]);
        }
        let (mut before, mut gate): (Vec<u128>, u64) = (Vec::new(), secrets.first);
        for cycle in 0..self.cycles as usize {
            now.truncate(base);
            let value = |wire: &u32, cycle: usize| each[cycle][(wire - initial) as usize];
            for wire in of_cycle {
                now[*wire as usize] = call(value(wire, cycle));
            }
            if cycle > 0 {
                for wire in of_later {
                    before[*wire as usize] = call(value(wire, cycle - 1));
                }
            }
            let read = |labels: &[u128], operand: Operand| match operand {
                Operand::Constant(_) => 0,
                Operand::Wire(wire) => labels[wire as usize],
            };
            for (next, first) in &self.netlist.registers {
                let label = if cycle == 0 {
                    read(&now, *first)
                } else {
                    read(&before, *next)
                };
                now.push(label);
            }
            for of in &self.netlist.gates {
                let [a, b] = [of.a, of.b].map(|operand| read(&now, operand));
                now.push(match of.kind {
                    Kind::Not => a,
                    Kind::Xor(_) => a ^ b,
                    Kind::And(_) => {
                        let table = [(); 2].map(|()| tables.next().expect("a table each"));
                        let number = gate << 16 | u64::from(secrets.instance);
                        gate += 1;
                        product(secrets.keys.1, number, [a, b], table)
                    }
                });
            }
            let wires = self.netlist.outputs.iter().map(|output| match output {
                Operand::Wire(wire) if *wire as usize >= base => Some(*wire),
                _ => None,
            });
            let order: BTreeSet<u32> = wires.clone().flatten().collect();
            for (k, wire) in wires.enumerate() {
                let Some(wire) = wire else { continue };
                let place = order.iter().take_while(|of| **of < wire).count();
                let mask = garbled.masks[32 * cycle + place / 8] >> (place % 8) & 1;
                let got = now[wire as usize] & 1 ^ u128::from(mask);
                assert_eq!(
                    got,
                    want[0][cycle * outputs + k],
                    "{seed:?}: cycle {cycle}, output {k}"
                );
            }
            before.clone_from(&now);
        }
        assert_eq!((labels.next(), tables.next()), (None, None), "no more came");
    }

    /// Bits as the ports of the circuit take them.
    fn of_ports(&self, steady: &[u128], each: &[Vec<u128>]) -> Vec<Vec<u128>> {
        let mut at = [0, 0];
        let ports = self.circuit.inputs.iter().map(|port| {
            let at = &mut at[usize::from(port.per == Per::Cycle)];
            let bits = *at..*at + port.width as usize;
            *at = bits.end;
            if port.per == Per::Cycle {
                each.iter()
                    .flat_map(|all| all[bits.clone()].to_vec())
                    .collect()
            } else {
                steady[bits].to_vec()
            }
        });
        ports.collect()
    }
}

fn words(bytes: &[u8]) -> Vec<u128> {
    let words = bytes.as_chunks::<16>().0.iter();
    words.map(|word| u128::from_le_bytes(*word)).collect()
}

/// What a run is given, of a seed.
struct Secrets {
    keys: (u128, u128),
    first: u64,
    instance: u16,
    labels: Vec<u8>,
}

impl Secrets {
    fn new(subject: &Subject, seed: Seed) -> Self {
        let mut numbers = seed.numbers("labels");
        let mut labels = vec![0; 16 * subject.entries.labels(subject.cycles) as usize];
        numbers.fill(&mut labels);
        Secrets {
            keys: (numbers.next_u128() | 1, numbers.next_u128()),
            // Also beyond 32 bits.
            first: (1 << 32) - 1 - numbers.below(8),
            instance: numbers.below(1 << 16) as u16,
            labels,
        }
    }

    fn job(&self, subject: &Subject) -> Job<'_> {
        Job {
            cycles: subject.cycles,
            first: self.first,
            instance: self.instance,
            keys: self.keys,
            labels: &self.labels,
        }
    }
}

/// Rows of the cores that are there, or a message and none.
fn built() -> Vec<u32> {
    let built = Ordered::built();
    if built.is_empty() {
        println!("skipped: no core that takes gates in order is in this build");
    }
    built
}

fn core(rows: u32, stalls: Stalls) -> Ordered {
    Ordered::new(rows, stalls).expect("it is built")
}

#[test]
fn cycles_are_those_of_the_rule() {
    for rows in built() {
        let mut swift = core(rows, Stalls::default());
        let mut slow = core(rows, Stalls { seed: 1, rate: 120 });
        let (mut in_time, mut late) = (0, 0);
        for k in 0..40 {
            let seed = Seed(k);
            let mut numbers = seed.numbers("shape");
            let registers = [0, 0, 1, 2, 7][numbers.index(5)];
            let gates = [1, 3, 20, 120][k as usize % 4];
            let cycles = [1, 2, 5][numbers.index(3)];
            let subject = Subject::random(&mut numbers, gates, registers, cycles);
            let rule = rule::count(&subject.entries, rows);
            let [one, other] = [Seed(2 * k), Seed(2 * k + 1)].map(|labels| {
                let (garbled, secrets) = subject.garble(&mut swift, labels);
                subject.assert_right(&garbled, &secrets, labels);
                garbled.cycles
            });
            assert_eq!(one, other, "{seed:?}: cycles depend on labels");
            if rule.in_time {
                in_time += 1;
                assert_eq!(one, rule.run(cycles), "{seed:?}, {rows} rows");
            } else {
                // A register waits for what it takes.
                late += 1;
                let waits = one > rule.run(cycles) || cycles == 1;
                assert!(waits, "{seed:?}, {rows} rows: {one}, {rule:?}");
            }
            if k % 3 == 0 {
                let secrets = Secrets::new(&subject, seed);
                swift.end(
                    &subject.entries,
                    &secrets.job(&subject),
                    20 + numbers.below(180),
                );
            }
            for core in [&mut swift, &mut slow] {
                let (garbled, secrets) = subject.garble(core, seed);
                subject.assert_right(&garbled, &secrets, seed);
            }
        }
        assert!(in_time > 20 && late > 0, "{in_time} and {late}");
    }
}

/// Tags of runs come again after seven of them.
#[test]
fn runs_one_after_the_other() {
    for rows in built() {
        let mut core = core(rows, Stalls::default());
        let subject = Subject::random(&mut Seed(7).numbers("shape"), 60, 5, 3);
        for seed in (0..19).map(Seed) {
            let (garbled, secrets) = subject.garble(&mut core, seed);
            subject.assert_right(&garbled, &secrets, seed);
        }
    }
}

#[test]
fn nothing_is_left_of_a_run_that_was_ended() {
    // Of other rows Verilator keeps the operand of a bounds check, a variable `__Vlvbound` that no hardware has.
    for rows in built().into_iter().filter(|rows| rows.is_power_of_two()) {
        let subject = Subject::random(&mut Seed(3).numbers("shape"), 120, 5, 9);
        for (after, rate) in [(1, 0), (5, 90), (40, 0), (130, 0), (311, 60)] {
            let states = |seed| {
                let mut core = core(rows, Stalls { seed: 1, rate });
                let secrets = Secrets {
                    first: 0,
                    instance: 0,
                    ..Secrets::new(&subject, Seed(seed))
                };
                let ended = core.end(&subject.entries, &secrets.job(&subject), after);
                assert!(ended, "the run is longer than {after} cycles");
                let left = core.state();
                // Of a whole run labels stay until they are wiped.
                let whole = core.run(&subject.entries, &secrets.job(&subject));
                (left, core.state(), whole.expect("it runs").cycles)
            };
            let (one, other) = (states(1), states(2));
            assert!(
                *one.0 == *other.0,
                "{rows} rows: labels are left after {after} cycles"
            );
            assert!(*one.1 != *other.1, "the state has labels");
            assert_eq!(one.2, other.2, "cycles depend on labels, with stalls");
        }
    }
}

/// Entries, and what they read, of numbers that do not fit 12 and 13 bits.
#[test]
fn numbers_beyond_thirteen_bits() {
    for rows in built() {
        let subject = Subject::random(&mut Seed(5).numbers("shape"), 12_000, 60, 2);
        // Without stalls, and with so many that tables fill their memory.
        let took = [0, 200].map(|rate| {
            let mut core = core(rows, Stalls { seed: 5, rate });
            let (garbled, secrets) = subject.garble(&mut core, Seed(5));
            subject.assert_right(&garbled, &secrets, Seed(5));
            garbled.cycles
        });
        let rule = rule::count(&subject.entries, rows);
        assert!(!rule.in_time || took[0] == rule.run(2));
        assert!(
            5 * took[1] > 6 * took[0],
            "{took:?}: nothing waited for tables"
        );
    }
}

#[test]
fn a_netlist_of_nothing_is_garbled() {
    for rows in built() {
        let subject = Subject::new(b"0 0 1 1 0 1 0\n\n\n\n1\n\n\n", 3);
        let (garbled, secrets) = subject.garble(&mut core(rows, Stalls::default()), Seed(1));
        subject.assert_right(&garbled, &secrets, Seed(1));
        assert_eq!(garbled.cycles, rule::count(&subject.entries, rows).run(3));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |text: String| {
        let netlist = scd::netlist(text.as_bytes(), &Limits::default()).expect("a netlist");
        Entries::of(&netlist).expect_err("too large").to_string()
    };
    let list = |count: usize, number: &str| format!("{}\n", vec![number; count].join(" "));
    let gates = 16_385;
    let text = [list(gates, "0"), list(gates, "1"), list(gates, "6")].concat();
    let said = refused(format!("0 0 1 1 0 1 {gates}\n{text}2\n\n\n"));
    assert_eq!(
        said,
        "16385 entries and registers, and the core has room for 16384"
    );
    let said = refused(format!(
        "0 0 0 0 257 257 0\n\n\n\n{}\n{}{}",
        (0..257)
            .map(|k| k.to_string())
            .collect::<Vec<_>>()
            .join(" "),
        list(257, "-2"),
        list(257, "-3"),
    ));
    assert_eq!(
        said,
        "257 outputs of a cycle, and the core has room for 256"
    );
}

/// The public netlists, which the repository does not contain.
#[test]
fn public_netlists_take_the_published_cycles() {
    let Some(folder) = std::env::var_os("VEIL_CIRCUITS") else {
        println!("skipped: VEIL_CIRCUITS names no folder of circuits");
        return;
    };
    let built = built();
    for (name, cycles, published) in PUBLISHED {
        let path = Path::new(&folder).join(format!("{name}.scd"));
        let Ok(text) = std::fs::read(&path) else {
            println!("skipped: {} is not there", path.display());
            continue;
        };
        let subject = Subject::new(&text, cycles);
        assert_eq!(
            rule::count(&subject.entries, 2).run(cycles),
            published,
            "{name}: the rule"
        );
        for &rows in &built {
            let rule = rule::count(&subject.entries, rows);
            let (garbled, secrets) = subject.garble(&mut core(rows, Stalls::default()), Seed(1));
            println!("{name}, {rows} rows: {} cycles", garbled.cycles);
            assert!(
                rule.in_time && garbled.cycles == rule.run(cycles),
                "{name}: {rule:?}"
            );
            subject.assert_right(&garbled, &secrets, Seed(1));
        }
    }
}
