//! The golden vectors of authenticated garbling: `vectors/ag.json`, written by the Python model, reproduced by every device of this machine, step by step.

mod garble;

use std::sync::Arc;

use crate::common::vectors::{bytes, json, list, number};
use crate::common::{Kind, SESSION};
use serde_json::Value;
use veil_device::ag::{Ag, One, Role, shift};
use veil_device::{
    ColumnType, Command, Dst, Fault, Frame, Instr, KeyId, Layout, Op, Outcome, PrfCall, Program,
    ProgramId, Region, Residency, Span, Src, Tag, completion,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

const VECTORS: &str = include_str!("../../../../vectors/ag.json");

const OFFSET: KeyId = KeyId(7);
const START: KeyId = KeyId(8);
const ROLES: [Role; 2] = [Role::Garbler, Role::Evaluator];

/// Components of the slots: labels, MACs, keys, Λ.
const PARTS: u8 = 4;

fn decimal(value: &Value) -> u64 {
    let text = value.as_str().expect("a decimal string");
    text.parse().expect("64 bits")
}

/// A workspace of a party, and its steps.
struct Bench {
    layout: Layout,
    party: usize,
    offset: Vec<u8>,
    start: Option<Vec<u8>>,
    /// Columns of which arrays have as many.
    columns: u32,
    program: Option<Program>,
    commands: Vec<Command>,
    /// Bytes before the steps, and behind them.
    given: Vec<(Span, Vec<u8>)>,
    expected: Vec<(&'static str, Span, Vec<u8>)>,
}

impl Bench {
    /// Of a party with the offset of a case, and the key of its start point, if it has any.
    fn new(case: &Value, party: usize, rows: u32) -> Self {
        let start = case.get("key").map(bytes);
        Bench {
            layout: Layout {
                chunk_rows: rows,
                regions: vec![],
            },
            party,
            offset: bytes(&case["offsets"][party]),
            start,
            columns: 1,
            program: None,
            commands: vec![],
            given: vec![],
            expected: vec![],
        }
    }

    fn role(&self) -> Role {
        ROLES[self.party]
    }

    fn region(&mut self, residency: Residency, column: ColumnType, parts: u8, count: u32) -> Span {
        let region = self.layout.add(Region {
            residency,
            column,
            components: parts,
            count,
        });
        self.layout.all(region, 0)
    }

    /// Blocks, or bits.
    fn given(&mut self, bytes: Vec<u8>) -> Span {
        let column = ColumnType::Bytes(bytes.len() as u32 / self.columns);
        let span = self.region(Residency::Mapped, column, 1, self.columns);
        self.given.push((span, bytes));
        span
    }

    /// Of a case, the party's part of a field.
    fn own(&mut self, field: &Value) -> Span {
        self.given(bytes(&field[self.party]))
    }

    /// MACs and keys.
    fn both(&mut self, bits: &Value) -> [Span; 2] {
        [&bits["m"], &bits["k"]].map(|field| self.own(field))
    }

    fn expect(&mut self, what: &'static str, span: Span, bytes: Vec<u8>) {
        self.expected.push((what, span, bytes));
    }

    /// Blocks, or bits, that a step makes.
    fn made(&mut self, what: &'static str, bytes: Vec<u8>) -> Span {
        let column = ColumnType::Bytes(bytes.len() as u32 / self.columns);
        let span = self.region(Residency::Public, column, 1, self.columns);
        self.expect(what, span, bytes);
        span
    }

    fn step(&mut self, step: Ag, src: &[Span], dst: &[Span]) -> &mut Command {
        let command = Command::new(Op::Ag(step), src.to_vec(), dst.to_vec());
        self.commands.push(command);
        self.commands.last_mut().expect("it was pushed")
    }

    /// A step with a start point.
    fn numbered(
        &mut self,
        step: Ag,
        (tag, first): (DomainTag, u64),
        src: &[Span],
        dst: &[Span],
    ) -> &mut Command {
        let command = self.step(step, src, dst);
        let key = START;
        command.calls = vec![PrfCall { key, tag, first }];
        command
    }

    /// A fold under a challenge; with bits, of blocks and bits times the offset.
    fn fold(
        &mut self,
        case: &Value,
        what: &'static str,
        bits: Option<Span>,
        blocks: Span,
        fold: &Value,
    ) {
        let columns = std::mem::replace(&mut self.columns, 1);
        let challenge = self.given(bytes(&case["challenge"]));
        let to = self.made(what, bytes(fold));
        self.columns = columns;
        let src: Vec<Span> = [challenge]
            .into_iter()
            .chain(bits)
            .chain([blocks])
            .collect();
        let offset = bits.map(|_| OFFSET);
        self.step(Ag::Fold { offset }, &src, &[to]);
    }

    /// What a device answers to all steps in one batch; if it does them, what they leave is compared.
    fn told(&self, all: &Value, kind: Kind) -> Result<(), Fault> {
        let mut device = kind.device();
        device.bind(SESSION);
        let keys = [(OFFSET, Some(&self.offset)), (START, self.start.as_ref())];
        for (id, key) in keys {
            if let Some(key) = key {
                let key = key[..].try_into().expect("16 bytes");
                device.load_key(id, &Secret::new(key))?;
            }
        }
        let mut commands = self.commands.clone();
        if let Some(program) = &self.program {
            let id: ProgramId = device.load(&Arc::new(program.clone()), &self.layout)?;
            for command in &mut commands {
                if let Op::Ag(Ag::Masks { .. } | Ag::Garble { .. } | Ag::Evaluate { .. }) =
                    command.op
                {
                    command.program = Some(id);
                }
            }
        }
        let frame = Frame {
            epoch: 0,
            lane: number(&all["lane"]),
            chunk: number(&all["chunk"]),
            rows: self.layout.chunk_rows,
        };
        let workspace = device.open(&self.layout, frame)?;
        for (span, bytes) in &self.given {
            device.write(workspace, *span, bytes)?;
        }
        device.submit(workspace, &commands, Tag(0))?;
        let outcome = completion(&mut *device)?.outcome;
        assert_eq!(outcome, Outcome::Done, "{kind:?}");
        for (what, span, expected) in &self.expected {
            let got = device.view(workspace, *span)?;
            assert!(got == expected, "{kind:?}: {what} of {:?}", self.role());
        }
        Ok(())
    }

    fn run(&self, all: &Value) {
        for kind in Kind::all() {
            assert_eq!(self.told(all, kind), Ok(()), "{kind:?}");
        }
    }
}

#[test]
fn keys_and_macs_are_those_of_the_model() {
    let all = json(VECTORS);
    let case = &all["pin"];
    let mut of = Bench::new(&all["use"], 0, 1);
    let [q, t, x] = ["q", "t", "x"].map(|field| of.given(bytes(&case[field])));
    let [k, m] = ["k", "m"].map(|field| of.made(field, bytes(&case[field])));
    of.step(Ag::Pin { bit: 0 }, &[q], &[k]);
    of.step(Ag::Pin { bit: 0 }, &[t, x], &[m]);
    of.run(&all);
}

/// Candidates in one column, and in columns of words.
#[test]
fn leaky_products_are_those_of_the_model() {
    let all = json(VECTORS);
    for case in list(&all["leaky"]) {
        let (candidates, first): (u32, _) = (number(&case["candidates"]), decimal(&case["first"]));
        let whole = candidates % 64 == 0;
        for (party, columns) in [(0, 1), (1, 1), (0, 2), (1, 2)] {
            if columns > 1 && !whole {
                continue;
            }
            let mut of = Bench::new(case, party, 1);
            of.columns = columns;
            let (role, offset, at) = (of.role(), OFFSET, (DomainTag::AG_LEAKY, first));
            let [[ma, ka], [mb, kb], [mr, kr]] = ["a", "b", "r"].map(|bits| of.both(&case[bits]));
            let offer = of.made("offers", bytes(&case["offers"][party]));
            of.numbered(Ag::Offer { offset, role }, at, &[ka, mb, kb], &[offer]);
            let other = of.given(bytes(&case["offers"][1 - party]));
            let sums = of.made("sums", bytes(&case["sums"][party]));
            let d = of.made("d", bytes(&case["d"][party]));
            let take = Ag::Take { offset, role };
            of.numbered(take, at, &[ma, ka, mb, kb, mr, kr, other], &[sums, d]);
            if first >= 1 << 46 {
                let spans =
                    "a step of authenticated garbling whose spans are not those that it needs";
                for kind in Kind::all() {
                    let told = of.told(&all, kind);
                    assert!(
                        matches!(told, Err(Fault::Shape { command: 0, what }) if what == spans),
                        "{kind:?}: {told:?}"
                    );
                }
                continue;
            }
            let checks = of.own(&case["sums"]);
            let d = [0, 1].map(|p| of.given(bytes(&case["d"][p])));
            let [changed, same] = match role {
                Role::Garbler => [mr, kr],
                Role::Evaluator => [kr, mr],
            };
            of.step(Ag::Settle { offset, role }, &d, &[checks, changed]);
            let c = ["m", "k"].map(|field| bytes(&case["c"][field][party]));
            let (m, k) = if party == 0 {
                (changed, same)
            } else {
                (same, changed)
            };
            for (span, bytes) in [m, k].into_iter().zip(c) {
                of.expect("c", span, bytes);
            }
            of.expect("checks", checks, bytes(&case["checks"][party]));
            of.fold(case, "fold of checks", None, checks, &case["fold"]);
            of.run(&all);
        }
    }
}

#[test]
fn buckets_are_those_of_the_model() {
    let all = json(VECTORS);
    let case = &all["bucket"];
    let layers = list(&case["layers"]);
    for party in [0, 1] {
        let mut of = Bench::new(case, party, 1);
        let digest = of.given(bytes(&case["digest"]));
        let of_first = ["a", "b", "c"].map(|bits| of.both(&layers[0][bits]));
        let [a, [b, _], c] = of_first;
        for (k, layer) in layers.iter().enumerate().skip(1) {
            let fields =
                ["a", "b", "c"].map(|bits| ["m", "k"].map(|f| bytes(&layer[bits][f][party])));
            let all_fields: Vec<u8> = fields.iter().flatten().flatten().copied().collect();
            // b of the layer is what differs from b of layer 0.
            let b_0 = ["m", "k"].map(|field| bytes(&layers[0]["b"][field][party]));
            let by = 16 * number::<usize>(&case["shifts"][k - 1]);
            let turned = fields.clone().map(|both| {
                both.map(|mut of_one| {
                    of_one.rotate_left(by);
                    of_one
                })
            });
            for ((of_one, field), b_0) in turned[1].iter().zip(["m", "k"]).zip(b_0) {
                let sum: Vec<u8> = of_one.iter().zip(b_0).map(|(x, y)| x ^ y).collect();
                assert_eq!(sum, bytes(&case["differences"][k - 1][field][party]));
            }
            of.columns = 6;
            let from = of.given(all_fields);
            let to = of.made("rotation", turned.into_iter().flatten().flatten().collect());
            of.columns = 1;
            let layer = k as u32;
            of.step(Ag::Rotate { layer }, &[digest, from], &[to]);
            let column = |first| Span {
                first,
                count: 1,
                ..to
            };
            let d = [0, 1].map(|p| of.given(bytes(&case["d"][k - 1][p])));
            let made = of.made("d", bytes(&case["d"][k - 1][party]));
            of.step(Ag::Bits { bit: 0 }, &[b, column(2)], &[made]);
            let src = [d[0], d[1], column(0), column(1), column(4), column(5)];
            of.step(Ag::Absorb, &src, &[a[0], a[1], c[0], c[1]]);
        }
        for (bits, of_bits) in ["a", "b", "c"].into_iter().zip(of_first) {
            for (field, span) in ["m", "k"].into_iter().zip(of_bits) {
                of.expect("triples", span, bytes(&case["triples"][bits][field][party]));
            }
        }
        of.run(&all);
    }
    let digest = bytes(&case["digest"]).try_into().expect("32 bytes");
    let shifts = (1..).zip(list(&case["shifts"]));
    let candidates: usize = number(&case["candidates"]);
    for (layer, by) in shifts {
        assert_eq!(shift(&digest, layer, candidates), number::<usize>(by));
    }
    for other in list(&case["other_shifts"]) {
        let (layer, of) = (number(&other["layer"]), number(&other["candidates"]));
        assert_eq!(
            shift(&digest, layer, of),
            number::<usize>(&other["shift"]),
            "{other}"
        );
    }
}

/// A program of one product, of the inverse of slot 0 and of slot 0.
fn inverse(slots: u16, job_wide: u16) -> Program {
    Program {
        ring: Ring::Bits,
        slots,
        job_wide,
        sums: job_wide,
        temps: 0,
        pairs: vec![(Src::Slot(1), Src::Slot(0))],
        code: vec![
            Instr::Plus(Src::Slot(0), 1, Dst::Slot(1)),
            Instr::Product {
                pairs: 0..1,
                out: 2,
                index: 0,
            },
        ],
    }
}

/// A program's regions: so many slots, in each component.
fn slots(of: &mut Bench, count: u32) -> (Span, u16) {
    let slots = of.region(Residency::Resident, ColumnType::Labels, PARTS, count);
    let job_wide = of.region(Residency::Mapped, ColumnType::Label, PARTS, 1);
    (slots, job_wide.region)
}

/// What a public 1 adds to MACs and to keys of a party.
fn ones(party: usize) -> [One; 2] {
    [
        [One::Unit, One::Nothing],
        [One::Nothing, One::Offset(OFFSET)],
    ][party]
}

#[test]
fn masks_of_products_are_those_of_the_model() {
    let all = json(VECTORS);
    let case = &all["use"];
    for party in [0, 1] {
        let mut of = Bench::new(case, party, number(&case["gates"]));
        let (role, offset) = (of.role(), OFFSET);
        let triple = ["a", "b", "c"].map(|bits| of.both(&case["triples"][bits]));
        let masks = [0, 1, 2].map(|k| of.both(&case["masks"][k]));
        let mut src = vec![];
        for (k, field) in ["epsilon", "delta"].into_iter().enumerate() {
            let made = of.made(field, bytes(&case[field][party]));
            of.step(Ag::Bits { bit: 0 }, &[masks[k][0], triple[k][0]], &[made]);
            src.extend([0, 1].map(|p| of.given(bytes(&case[field][p]))));
        }
        src.extend(triple.into_iter().chain([masks[2]]).flatten());
        let masked = ["m", "k"].map(|f| of.made("masked", bytes(&case["masked"][f][party])));
        of.step(Ag::Spend { offset, role }, &src, &masked);

        // A NOT.
        let (slots, job_wide) = slots(&mut of, 3);
        of.program = Some(inverse(slots.region, job_wide));
        for (k, field) in ["m", "k"].into_iter().enumerate() {
            let part = 1 + k as u8;
            let mask = bytes(&case["masks"][0][field][party]);
            let from = of.region(Residency::Mapped, ColumnType::Labels, 1, 1);
            of.given.push((from, mask.clone()));
            let to = Span {
                component: part,
                count: 1,
                ..slots
            };
            of.commands.push(combine(from, to));
            let first = of.made("inverses", bytes(&case["inverses"][field][party]));
            let second = of.made("masks", mask);
            let one = ones(party)[k];
            of.step(
                Ag::Masks { part, at: 0, one },
                &[masks[2][k]],
                &[first, second],
            );
        }
        of.run(&all);
    }
}

fn combine(from: Span, to: Span) -> Command {
    let op = Op::Combine {
        ring: Ring::Bits,
        minus: 0,
    };
    Command::new(op, vec![from], vec![to])
}

#[test]
fn folds_and_openings_are_those_of_the_model() {
    let all = json(VECTORS);
    let case = &all["fold"];
    let mut of = Bench::new(case, 0, 1);
    for fold in list(&case["folds"]) {
        let blocks = of.given(bytes(&fold["blocks"]));
        of.fold(fold, "fold", None, blocks, &fold["value"]);
    }
    of.run(&all);
    for (opens, opening) in list(&case["openings"]).iter().enumerate() {
        let mut of = Bench::new(case, opens, 1);
        let [macs, _] = of.both(&case["opened"]);
        of.fold(opening, "fold of MACs", None, macs, &opening["fold"]);
        let bits = of.made("bits", bytes(&opening["bits"]));
        of.step(Ag::Bits { bit: 0 }, &[macs], &[bits]);
        of.run(&all);
        let mut of = Bench::new(case, 1 - opens, 1);
        let [_, keys] = of.both(&case["opened"]);
        let bits = of.given(bytes(&opening["bits"]));
        of.fold(opening, "fold of keys", Some(bits), keys, &opening["fold"]);
        of.run(&all);
        told_outside(&all, opens, opening);
    }
}

/// Sums of parts that are told outside, and what the parties answer.
fn told_outside(all: &Value, opens: usize, opening: &Value) {
    let (case, outside) = (&all["fold"], &opening["outside"]);
    let mut of = Bench::new(case, 1 - opens, 1);
    let [macs, keys] = of.both(&case["opened"]);
    let bits = of.given(bytes(&opening["bits"]));
    let blocks = of.layout.regions[macs.region as usize].column;
    let parts = of.region(Residency::Resident, blocks, 1, 1);
    of.step(Ag::Expand, &[bits], &[parts]);
    of.fold(opening, "sum of parts", None, parts, &outside["sum"]);
    of.fold(opening, "fold of keys alone", None, keys, &outside["keys"]);
    let [from, sum] = ["keys", "sum"].map(|field| of.given(bytes(&outside[field])));
    let to = of.made("what MACs must be", bytes(&outside["expected"]));
    of.step(Ag::Expect { offset: OFFSET }, &[from, sum], &[to]);
    of.run(all);
}
