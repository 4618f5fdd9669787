//! The golden vectors of garbled circuits: `vectors/garbling.json`, written by the Python model, reproduced by every device of this
//! machine: tables and zero-labels by the garbler, active labels and values by the evaluator.

use std::sync::Arc;

use crate::common::vectors::{bytes, json, list, number};
use crate::common::{Kind, SESSION};
use serde_json::Value;
use veil_device::garble::hash;
use veil_device::{
    ColumnType, Command, Device, Dst, Frame, Garbling, Instr, KeyId, Layout, Op, Outcome, PrfCall,
    Program, ProgramId, Region, Residency, Span, Src, Tag, Workspace, completion,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

const VECTORS: &str = include_str!("../../../../vectors/garbling.json");

const OFFSET: KeyId = KeyId(7);
const START: KeyId = KeyId(8);
const DICE: KeyId = KeyId(9);

const SLOTS: u16 = 0;
const JOB_WIDE: u16 = 1;
/// Where the host puts labels, and where it sees them.
const IN: u16 = 2;
const OUT: u16 = 3;
const BITS: u16 = 4;
/// Tables: labels, or halves and bits.
const TABLES: u16 = 5;

/// Products of a layer, at most.
const PRODUCTS: u32 = 8;

fn label(value: &Value) -> u128 {
    u128::from_le_bytes(bytes(value).try_into().expect("16 bytes"))
}

fn decimal(value: &Value) -> u64 {
    let text = value.as_str().expect("a decimal string");
    text.parse().expect("64 bits")
}

#[test]
fn hashes_are_those_of_the_model() {
    for case in list(&json(VECTORS)["hashes"]) {
        let got = hash(
            label(&case["start"]),
            decimal(&case["tweak"]),
            label(&case["x"]),
        );
        assert_eq!(got, label(&case["hash"]), "{case}");
    }
}

struct Case<'a> {
    value: &'a Value,
    scheme: Garbling,
    layout: Layout,
    wires: u32,
}

impl<'a> Case<'a> {
    fn new(value: &'a Value) -> Self {
        let scheme = match value["scheme"].as_str() {
            Some("half-gates") => Garbling::HalfGates,
            _ => Garbling::ThreeHalves,
        };
        let wires = list(&value["zero"]).len() as u32;
        let region = |residency, column, count| Region {
            residency,
            column,
            components: 1,
            count,
        };
        let mut regions = vec![
            region(Residency::Resident, ColumnType::Labels, wires),
            region(Residency::Mapped, ColumnType::Label, 1),
            region(Residency::Mapped, ColumnType::Labels, wires),
            region(Residency::Public, ColumnType::Labels, wires),
            region(Residency::Mapped, ColumnType::Rows(Ring::Bits), wires),
        ];
        for (item, count) in scheme.tables() {
            regions.push(region(Residency::Mapped, *item, count * PRODUCTS));
        }
        Case {
            value,
            scheme,
            layout: Layout {
                chunk_rows: number(&value["chunk_rows"]),
                regions,
            },
            wires,
        }
    }

    fn all(&self, region: u16) -> Span {
        self.layout.all(region, 0)
    }

    /// A program for each layer: every wire is a slot.
    fn programs(&self) -> Vec<Arc<Program>> {
        let mut wire = number::<u32>(&self.value["inputs"]);
        let layers = list(&self.value["layers"]).iter();
        let program = layers.map(|gates| {
            let mut program = Program {
                ring: Ring::Bits,
                slots: SLOTS,
                job_wide: JOB_WIDE,
                sums: JOB_WIDE,
                temps: 0,
                pairs: vec![],
                code: vec![],
            };
            for gate in list(gates) {
                let source = |k: usize| Src::Slot(number(&gate[k]));
                let out = Dst::Slot(wire);
                let instr = match gate[0].as_str().expect("a kind of gate") {
                    "xor" => Instr::Add(source(1), source(2), out),
                    "not" => Instr::Plus(source(1), 1, out),
                    "one" => Instr::Constant(1, out),
                    _ => {
                        let index = program.pairs.len() as u32;
                        program.pairs.push((source(1), source(2)));
                        Instr::Product {
                            pairs: index..index + 1,
                            out: wire,
                            index,
                        }
                    }
                };
                program.code.push(instr);
                wire += 1;
            }
            Arc::new(program)
        });
        program.collect()
    }

    /// A device with the keys of a side, a workspace with that side's labels of the inputs, and the programs.
    fn open(&self, kind: Kind, labels: &str) -> (Box<dyn Device>, Workspace, Vec<ProgramId>) {
        let mut device = kind.device();
        device.bind(SESSION);
        for (id, name) in [(OFFSET, "offset"), (START, "start"), (DICE, "dice")] {
            let key = bytes(&self.value["keys"][name])
                .try_into()
                .expect("16 bytes");
            device.load_key(id, &Secret::new(key)).expect("a key");
        }
        let programs = self.programs();
        let load = |program| device.load(program, &self.layout).expect("a program");
        let ids = programs.iter().map(load).collect();
        let frame = Frame {
            epoch: 0,
            lane: number(&self.value["lane"]),
            chunk: number(&self.value["chunk"]),
            rows: number(&self.value["rows"]),
        };
        let workspace = device.open(&self.layout, frame).expect("a workspace");
        let inputs = Span {
            count: number(&self.value["inputs"]),
            ..self.all(IN)
        };
        let all = list(&self.value[labels]).iter();
        let of_inputs: Vec<u8> = all.take(inputs.count as usize).flat_map(bytes).collect();
        device.write(workspace, inputs, &of_inputs).expect("labels");
        let to = Span {
            region: SLOTS,
            ..inputs
        };
        let copy = Op::Combine {
            ring: Ring::Bits,
            minus: 0,
        };
        submit(
            &mut *device,
            workspace,
            Command::new(copy, vec![inputs], vec![to]),
        );
        (device, workspace, ids)
    }

    /// The tables of `products` products.
    fn tables(&self, products: usize) -> Vec<Span> {
        let kinds = (TABLES..).zip(self.scheme.tables());
        let span = |(region, (_, count)): (u16, &(ColumnType, u32))| Span {
            count: count * products as u32,
            ..self.all(region)
        };
        kinds.map(span).collect()
    }

    fn calls(&self, first: u64) -> Vec<PrfCall> {
        let first = decimal(&self.value["first"]) + first;
        let dice = self.scheme.dice(self.layout.chunk_rows);
        let start = decimal(&self.value["first"]);
        let call = |key, tag, first| PrfCall { key, tag, first };
        vec![
            call(START, DomainTag::GARBLE, first),
            call(DICE, DomainTag::DICE, start + (first - start) * dice),
        ]
    }

    /// The labels of all wires, and their colours.
    fn labels(&self, device: &mut dyn Device, workspace: Workspace) -> (Vec<Vec<u8>>, Vec<u8>) {
        let copy = Op::Combine {
            ring: Ring::Bits,
            minus: 0,
        };
        let slots = self.all(SLOTS);
        submit(
            device,
            workspace,
            Command::new(copy, vec![slots], vec![self.all(OUT)]),
        );
        submit(
            device,
            workspace,
            Command::new(Op::Colour, vec![slots], vec![self.all(BITS)]),
        );
        let all = device.view(workspace, self.all(OUT)).expect("it is public");
        let each = all.len() / self.wires as usize;
        let labels = all.chunks(each).map(<[u8]>::to_vec).collect();
        let colours = device
            .view(workspace, self.all(BITS))
            .expect("it is mapped");
        (labels, colours.to_vec())
    }
}

fn submit(device: &mut dyn Device, workspace: Workspace, command: Command) {
    device
        .submit(workspace, &[command], Tag(1))
        .expect("a command");
    assert_eq!(completion(device).map(|c| c.outcome), Ok(Outcome::Done));
}

#[test]
fn tables_and_labels_are_those_of_the_model() {
    let vectors = json(VECTORS);
    for (value, kind) in list(&vectors["cases"])
        .iter()
        .flat_map(|case| Kind::all().into_iter().map(move |kind| (case, kind)))
    {
        let case = Case::new(value);
        let what = format!("{:?}, {} rows on {kind:?}", case.scheme, value["rows"]);
        let (mut garbler, there, ids) = case.open(kind, "zero");
        let (mut evaluator, here, _) = case.open(kind, "active");
        let mut first = 0;
        for (layer, (program, id)) in case.programs().iter().zip(ids).enumerate() {
            let tables = case.tables(program.pairs.len());
            let (scheme, offset) = (case.scheme, OFFSET);
            let mut garble = Command::new(Op::Garble { scheme, offset }, vec![], tables.clone());
            let mut evaluate = Command::new(Op::Evaluate { scheme }, tables.clone(), vec![]);
            for command in [&mut garble, &mut evaluate] {
                command.program = Some(id);
                command.calls = case.calls(first);
            }
            evaluate.calls.truncate(1);
            submit(&mut *garbler, there, garble);
            for (span, want) in tables.iter().zip(list(&value["messages"][layer])) {
                let got = garbler.view(there, *span).expect("it is mapped").to_vec();
                assert_eq!(got, bytes(want), "{what}: tables of layer {layer}");
                evaluator.write(here, *span, &got).expect("it is mapped");
            }
            submit(&mut *evaluator, here, evaluate);
            first += program.pairs.len() as u64;
        }
        let (zero, permutations) = case.labels(&mut *garbler, there);
        let (active, colours) = case.labels(&mut *evaluator, here);
        for wire in 0..case.wires as usize {
            assert_eq!(
                zero[wire],
                bytes(&value["zero"][wire]),
                "{what}: wire {wire}"
            );
            assert_eq!(
                active[wire],
                bytes(&value["active"][wire]),
                "{what}: wire {wire}"
            );
        }
        // Both sides' colours are a sharing of the values.
        let rows: usize = number(&value["rows"]);
        for (wire, values) in list(&value["values"]).iter().enumerate() {
            for (row, bit) in values.as_str().expect("bits").bytes().enumerate() {
                let at = wire * rows.div_ceil(8) + row / 8;
                let shared = (permutations[at] ^ colours[at]) >> (row % 8) & 1;
                assert_eq!(shared, bit - b'0', "{what}: wire {wire}, row {row}");
            }
        }
    }
}
