//! A circuit with authenticated masks: both parties' masks, tables, labels, and checks.

use serde_json::Value;
use veil_device::ag::{Ag, One};
use veil_device::{ColumnType, Dst, Instr, Program, Residency, Span, Src};
use veil_math::Ring;
use veil_prss::DomainTag;

use super::{Bench, OFFSET, VECTORS, combine, decimal, ones, slots};
use crate::common::vectors::{bytes, json, list, number};

const LABELS: u8 = 0;
const MACS: u8 = 1;
const KEYS: u8 = 2;
const PUBLIC: u8 = 3;

/// All layers as one program, in which every wire is a slot.
fn program(case: &Value, slots: u16, job_wide: u16) -> Program {
    let mut program = Program {
        ring: Ring::Bits,
        slots,
        job_wide,
        sums: job_wide,
        temps: 0,
        pairs: vec![],
        code: vec![],
    };
    let gates = list(&case["layers"]).iter().flat_map(list);
    for (wire, gate) in (number(&case["inputs"])..).zip(gates) {
        let source = |k: usize| Src::Slot(number(&gate[k]));
        program.code.push(match gate[0].as_str().expect("a gate") {
            "xor" => Instr::Add(source(1), source(2), Dst::Slot(wire)),
            "not" => Instr::Plus(source(1), 1, Dst::Slot(wire)),
            _ => {
                let index = program.pairs.len() as u32;
                program.pairs.push((source(1), source(2)));
                Instr::Product {
                    pairs: index..index + 1,
                    out: wire,
                    index,
                }
            }
        });
    }
    program
}

/// The circuit of the vectors.
struct Circuit<'a> {
    case: &'a Value,
    rows: usize,
    wires: usize,
    inputs: u32,
}

impl Circuit<'_> {
    /// Bits of columns, one behind the other.
    fn packed<'b>(&self, columns: impl Iterator<Item = &'b Value>) -> Vec<u8> {
        let bits = columns.flat_map(|column| {
            let column = bytes(column);
            (0..self.rows).map(move |row| column[row / 8] >> (row % 8) & 1)
        });
        let bits: Vec<u8> = bits.collect();
        let pack = |bits: &[u8]| (0..).zip(bits).fold(0, |byte, (k, bit)| byte | bit << k);
        bits.chunks(8).map(pack).collect()
    }

    fn products(&self) -> &[Value] {
        list(&self.case["products"])
    }

    /// Wires of all products: operand 0, operand 1, or the result.
    fn wires_of(&self, k: usize) -> impl Iterator<Item = usize> {
        self.products().iter().map(move |product| match k {
            2 => number::<usize>(&product["result"]),
            _ => number(&product["operands"][k]),
        })
    }

    fn masks(&self, k: usize, field: &str, party: usize) -> Vec<u8> {
        let masks = &self.case["masks"];
        self.wires_of(k)
            .flat_map(|wire| bytes(&masks[wire][field][party]))
            .collect()
    }

    fn public(&self, k: usize) -> Vec<u8> {
        self.packed(self.wires_of(k).map(|wire| &self.case["public"][wire]))
    }

    /// Labels of all results.
    fn results(&self, field: &str) -> Vec<u8> {
        let labels = &self.case[field];
        self.wires_of(2)
            .flat_map(|wire| bytes(&labels[wire]))
            .collect()
    }

    /// Of each product, in order.
    fn of_products<'b>(&'b self, of: impl Fn(&'b Value) -> Vec<u8> + 'b) -> Vec<u8> {
        self.products().iter().flat_map(of).collect()
    }

    /// Values of a component, of all wires.
    fn part(&self, part: u8, party: usize) -> Vec<Vec<u8>> {
        let values = (0..self.wires).map(|wire| match part {
            LABELS => bytes(&self.case[["zero", "active"][party]][wire]),
            MACS => bytes(&self.case["masks"][wire]["m"][party]),
            _ => bytes(&self.case["masks"][wire]["k"][party]),
        });
        values.collect()
    }

    /// Begins with the inputs, and ends with all wires, of a component.
    fn around(&self, of: &mut Bench, all: Span, part: u8, step: impl FnOnce(&mut Bench)) {
        let values = self.part(part, of.party);
        let part = |count| Span {
            component: part,
            count,
            ..all
        };
        let labels = ColumnType::Labels;
        let from = of.region(Residency::Mapped, labels, 1, self.inputs);
        let inputs = values.iter().take(self.inputs as usize).flatten();
        of.given.push((from, inputs.copied().collect()));
        of.commands.push(combine(from, part(self.inputs)));
        step(of);
        let to = of.region(Residency::Public, labels, 1, self.wires as u32);
        of.commands.push(combine(part(self.wires as u32), to));
        of.expect("wires", to, values.concat());
    }

    /// MACs and keys of both operands.
    fn operands(&self, of: &mut Bench, all: Span) -> [[Span; 2]; 2] {
        let party = of.party;
        [("m", MACS), ("k", KEYS)].map(|(field, part)| {
            let results = of.given(self.masks(2, field, party));
            let to = [0, 1].map(|k| of.made("masks", self.masks(k, field, party)));
            let one = ones(party)[usize::from(part - MACS)];
            self.around(of, all, part, |of| {
                of.step(Ag::Masks { part, at: 0, one }, &[results], &to);
            });
            to
        })
    }
}

fn garbler(all: &Value, circuit: &Circuit<'_>) {
    let (case, party) = (circuit.case, 0);
    let of = &mut Bench::new(case, party, circuit.rows as u32);
    let (of_slots, job_wide) = slots(of, circuit.wires as u32);
    of.program = Some(program(case, of_slots.region, job_wide));
    let [[ma, mb], [ka, kb]] = circuit.operands(of, of_slots);
    let [ms, ks] = ["m", "k"]
        .map(|field| of.given(circuit.of_products(|p| bytes(&p["masked"][field][party]))));
    let products = circuit.products().len() as u32;
    let tables = of.region(Residency::Mapped, ColumnType::Labels, 1, 2 * products);
    let both = |p: &Value| [bytes(&p["tables"][0]), bytes(&p["tables"][1])].concat();
    of.expect("tables", tables, circuit.of_products(both));
    let z = circuit.packed(circuit.products().iter().map(|p| &p["z"]));
    let z = of.made("z", z);
    let labels = of.made("labels", circuit.results("zero"));
    let at = (DomainTag::GARBLE, decimal(&case["first"]));
    circuit.around(of, of_slots, LABELS, |of| {
        let masks = [ma, ka, mb, kb, ms, ks];
        of.numbered(
            Ag::Garble {
                at: 0,
                offset: OFFSET,
            },
            at,
            &masks,
            &[tables, z, labels],
        );
    });

    // Public values of all wires, from those of inputs and of results.
    let inputs = circuit.inputs;
    let given = of.region(Residency::Mapped, ColumnType::Rows(Ring::Bits), 1, inputs);
    let values = list(&case["public"]).iter().take(inputs as usize);
    of.given.push((given, values.flat_map(bytes).collect()));
    let to = Span {
        component: PUBLIC,
        count: inputs,
        ..of_slots
    };
    of.step(Ag::Expand, &[given], &[to]);
    let bits = of.given(circuit.public(2));
    let blocks = || circuit.results("zero").len() as u32;
    let array = |of: &mut Bench| of.region(Residency::Resident, ColumnType::Bytes(blocks()), 1, 1);
    let [results, first, second, taus] = [(); 4].map(|()| array(of));
    of.step(Ag::Expand, &[bits], &[results]);
    let masks = Ag::Masks {
        at: 0,
        part: PUBLIC,
        one: One::Nothing,
    };
    of.step(masks, &[results], &[first, second]);
    let public = [(0, first), (1, second)].map(|(k, blocks)| {
        let to = of.made("public values", circuit.public(k));
        of.step(Ag::Bits { bit: 0 }, &[blocks], &[to]);
        to
    });
    let gates = Ag::Gates {
        offset: None,
        products,
    };
    of.step(gates, &[public[0], public[1], ma, mb, ms], &[taus]);
    let check = &case["mask_check"];
    of.fold(check, "fold of MACs of gates", None, taus, &check["fold"]);
    let check = &case["label_check"];
    of.fold(check, "fold of labels", Some(bits), labels, &check["fold"]);
    of.run(all);
}

fn evaluator(all: &Value, circuit: &Circuit<'_>) {
    let (case, party) = (circuit.case, 1);
    let of = &mut Bench::new(case, party, circuit.rows as u32);
    let (of_slots, job_wide) = slots(of, circuit.wires as u32);
    of.program = Some(program(case, of_slots.region, job_wide));
    let [[ma, mb], [ka, kb]] = circuit.operands(of, of_slots);
    let [ms, ks] = ["m", "k"]
        .map(|field| of.given(circuit.of_products(|p| bytes(&p["masked"][field][party]))));
    let products = circuit.products().len() as u32;
    let tables = of.region(Residency::Mapped, ColumnType::Labels, 1, 2 * products);
    let both = |p: &Value| [bytes(&p["tables"][0]), bytes(&p["tables"][1])].concat();
    of.given.push((tables, circuit.of_products(both)));
    let z = circuit.packed(circuit.products().iter().map(|p| &p["z"]));
    let z = of.given(z);
    let labels = of.made("labels", circuit.results("active"));
    let public = [0, 1, 2].map(|k| of.made("public values", circuit.public(k)));
    let at = (DomainTag::GARBLE, decimal(&case["first"]));
    circuit.around(of, of_slots, LABELS, |of| {
        let src = [tables, z, ma, mb, ms];
        let dst = [labels, public[0], public[1], public[2]];
        of.numbered(Ag::Evaluate { at: 0 }, at, &src, &dst);
    });
    let bytes = circuit.results("active").len() as u32;
    let taus = of.region(Residency::Resident, ColumnType::Bytes(bytes), 1, 1);
    let gates = Ag::Gates {
        offset: Some(OFFSET),
        products,
    };
    let src = [&public[..], &[ma, mb, ms, ka, kb, ks]].concat();
    of.step(gates, &src, &[taus]);
    let check = &case["mask_check"];
    of.fold(check, "fold of gates", None, taus, &check["fold"]);
    let check = &case["label_check"];
    of.fold(check, "fold of labels", None, labels, &check["fold"]);
    of.run(all);
}

/// Masks of the outputs: a column for each wire, at the party that opens and at the other.
fn openings(all: &Value, circuit: &Circuit<'_>) {
    let case = circuit.case;
    let outputs = list(&case["outputs"]);
    let masks = |field: &str, party: usize| -> Vec<u8> {
        let wires = outputs.iter().map(number::<usize>);
        wires
            .flat_map(|wire| bytes(&case["masks"][wire][field][party]))
            .collect()
    };
    for (opens, opening) in list(&case["openings"]).iter().enumerate() {
        let told: Vec<u8> = list(&opening["bits"]).iter().flat_map(bytes).collect();
        for (party, field) in [(opens, "m"), (1 - opens, "k")] {
            let of = &mut Bench::new(case, party, circuit.rows as u32);
            let labels = of.region(
                Residency::Mapped,
                ColumnType::Labels,
                1,
                outputs.len() as u32,
            );
            of.given.push((labels, masks(field, party)));
            let column = ColumnType::Rows(Ring::Bits);
            let bits = of.region(Residency::Mapped, column, 1, outputs.len() as u32);
            let mut other = None;
            if party == opens {
                of.step(Ag::Bits { bit: 0 }, &[labels], &[bits]);
                of.expect("bits", bits, told.clone());
            } else {
                of.given.push((bits, told.clone()));
                other = Some(bits);
            }
            of.fold(opening, "fold of outputs", other, labels, &opening["fold"]);
            of.run(all);
        }
    }
}

#[test]
fn circuits_are_those_of_the_model() {
    let all = json(VECTORS);
    let case = &all["garble"];
    let circuit = Circuit {
        case,
        rows: number(&case["rows"]),
        wires: list(&case["zero"]).len(),
        inputs: number(&case["inputs"]),
    };
    garbler(&all, &circuit);
    evaluator(&all, &circuit);
    openings(&all, &circuit);
    // Outputs are right: what is public, and both parts of masks.
    for (k, wire) in list(&case["outputs"]).iter().enumerate() {
        let wire: usize = number(wire);
        let of = |value: &Value| bytes(value);
        let parts = [0, 1].map(|party| of(&case["openings"][party]["bits"][k]));
        let public = of(&case["public"][wire]);
        let sum = parts[0]
            .iter()
            .zip(&parts[1])
            .zip(&public)
            .map(|((a, b), c)| a ^ b ^ c);
        assert_eq!(
            sum.collect::<Vec<u8>>(),
            of(&case["values"][wire]),
            "output {k}"
        );
    }
}
