//! Circuits against the evaluator of the algebra in the clear.

mod counts;
mod forest;
mod groups;
mod lookups;
mod random;
mod real;
mod small;

use std::collections::HashMap;

use veil_circuit::generate::Aim;
use veil_circuit::{Builder, Circuit, Per, Wire};
use veil_math::Ring;
use veil_relation::{
    Column, ColumnId, Expr, Kind, Named, Plan, Program, Range, Step, Table, Type, Value, Values,
    clear,
};

use super::{Exprs, Form, Source};
use crate::ports::TablePort;

pub(super) fn range(min: i128, max: i128) -> Range {
    Range::new(min, max).unwrap()
}

pub(super) fn integers(min: i128, max: i128) -> Type {
    Type::of(Kind::Integer(range(min, max)))
}

pub(super) fn decimals(places: u32, min: i128, max: i128) -> Type {
    let units = range(min, max);
    Type::of(Kind::Decimal { places, units })
}

pub(super) fn categories(count: usize) -> Kind {
    let texts = (0..count).map(|at| format!("{at:05}")).collect();
    Kind::Category(Values::new(texts).unwrap())
}

/// SplitMix64: the same rows everywhere.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }

    /// A value of a type: a quarter nulls, a third at or beside an end.
    pub(super) fn cell(&mut self, ty: &Type) -> Value {
        if ty.nullable && self.below(4) == 0 {
            return Value::Null;
        }
        let wide = u128::from(self.next()) << 64 | u128::from(self.next());
        match &ty.kind {
            Kind::Bool => Value::Bool(wide & 1 == 1),
            Kind::Key { bits } => Value::Key(wide >> (128 - bits)),
            kind => {
                let range = kind.range().unwrap();
                let span = (range.max() as u128).wrapping_sub(range.min() as u128);
                let up = match self.below(6) {
                    0 => u128::from(self.below(2)).min(span),
                    1 => span - u128::from(self.below(2)).min(span),
                    _ => span.checked_add(1).map_or(wide, |count| wide % count),
                };
                Value::Number(range.min().wrapping_add(up as i128))
            }
        }
    }
}

/// The table of these columns, with the number of the row as one more.
fn table(types: &[Type], rows: usize) -> Table {
    let column = |name: String, ty: Type| Column {
        name,
        ty,
        consent: None,
    };
    let named = types.iter().enumerate();
    let mut columns: Vec<Column> = named
        .map(|(at, ty)| column(format!("c{at}"), ty.clone()))
        .collect();
    columns.push(column("row".to_owned(), integers(0, rows as i128)));
    Table {
        padded: true,
        name: "t".to_owned(),
        origin: veil_relation::Origin::Owner("o".to_owned()),
        capacity: rows as u32,
        columns,
        sorted_by: Vec::new(),
        unique: Vec::new(),
    }
}

/// The values of expressions in every row, by the evaluator in the clear.
pub(super) fn in_the_clear(types: &[Type], rows: &[Vec<Value>], exprs: &[Expr]) -> Vec<Vec<Value>> {
    let width = types.len() as u32;
    let named = |(at, expr): (usize, Expr)| Named {
        name: format!("e{at}"),
        expr,
    };
    let all = std::iter::once(Expr::column(width)).chain(exprs.iter().cloned());
    let input = Plan::Project {
        input: Box::new(Plan::Scan {
            table: "t".to_owned(),
            columns: (0..=width).map(ColumnId).collect(),
        }),
        columns: all.enumerate().map(named).collect(),
    };
    let program = Program {
        tables: vec![table(types, rows.len())],
        steps: vec![Step {
            keep: None,
            at: veil_relation::At::default(),
            name: "s".to_owned(),
            plan: Plan::Open {
                input: Box::new(input),
                to: "r".to_owned(),
            },
        }],
    };
    let numbered = rows.iter().enumerate().map(|(at, row)| {
        let mut row = row.clone();
        row.push(Value::Number(at as i128));
        row
    });
    let input = clear::Input {
        valid: vec![true; rows.len()],
        rows: numbered.collect(),
    };
    let opened = clear::evaluate(&program, &[input]).unwrap().remove(0);
    // Rows come in the order of the first column.
    opened
        .rows
        .into_iter()
        .map(|row| row[1..].to_vec())
        .collect()
}

/// A circuit that is being made, with what its inputs take.
pub(super) struct Bench {
    pub(super) exprs: Exprs,
    pub(super) ports: Vec<TablePort>,
}

impl Bench {
    /// Over columns in these forms.
    pub(super) fn new(ring: Ring, types: &[Type], forms: &[(ColumnId, Form)], aim: Aim) -> Self {
        let mut b = Builder::new(ring);
        let mut ports = Vec::new();
        let mut sources: HashMap<ColumnId, Source> = HashMap::new();
        let bits = |b: &mut Builder, name: String, len: u32| match ring {
            _ if len == 0 => Vec::new(),
            Ring::Bits => b.input(name, len, Per::Row),
            _ => b.input_bits(name, len),
        };
        for &(column, form) in forms {
            let at = column.0;
            let ty = &types[column.index()];
            let source = sources.entry(column).or_default();
            if ty.nullable && source.null.is_none() {
                ports.push(TablePort::Null(column));
                source.null = Some(bits(&mut b, format!("n{at}"), 1)[0]);
            }
            match form {
                Form::Null => {}
                Form::Bits => {
                    let len = ty.kind.bits().unwrap();
                    if len > 0 {
                        ports.push(TablePort::Bits(column));
                    }
                    source.bits = Some(bits(&mut b, format!("b{at}"), len));
                }
                Form::Integer => {
                    ports.push(TablePort::Integer(column, ring));
                    source.integer = Some(b.input(format!("i{at}"), 1, Per::Row)[0]);
                }
            }
        }
        let exprs = Exprs::new(b, types.to_vec(), sources, aim);
        Self { exprs, ports }
    }

    /// Puts out bits: as they are, or lifted.
    pub(super) fn output(&mut self, name: String, bits: &[Wire]) {
        let b = &mut self.exprs.b;
        if !bits.is_empty() {
            let bits: Vec<Wire> = match b.ring() {
                Ring::Bits => bits.to_vec(),
                _ => bits.iter().map(|&bit| b.lift(bit)).collect(),
            };
            b.output(name, &bits);
        }
    }

    pub(super) fn finish(self) -> (Circuit, Vec<TablePort>) {
        (self.exprs.b.finish().unwrap(), self.ports)
    }
}

/// The outputs of a circuit in every row: of each port its elements.
pub(super) fn run(
    circuit: &Circuit,
    ports: &[TablePort],
    types: &[Type],
    rows: &[Vec<Value>],
) -> Vec<Vec<Vec<u128>>> {
    let table = table(types, rows.len());
    let count = rows.len();
    let pack = |ring: Ring, values: &[u128]| -> Vec<u8> {
        if ring == Ring::Bits {
            let mut bytes = vec![0; count.div_ceil(8)];
            for (row, value) in values.iter().enumerate() {
                bytes[row / 8] |= (*value as u8) << (row % 8);
            }
            return bytes;
        }
        let bytes = ring.bits() as usize / 8;
        let each = values.iter().map(|value| value.to_le_bytes());
        each.flat_map(|value| value[..bytes].to_vec()).collect()
    };
    let inputs: Vec<Vec<u8>> = circuit
        .inputs
        .iter()
        .zip(ports)
        .map(|(input, port)| {
            let values: Vec<u128> = rows
                .iter()
                .map(|row| port.value(&table, true, row))
                .collect();
            if let TablePort::Integer(..) = port {
                return pack(circuit.ring, &values);
            }
            let bit = |j: u32| {
                values
                    .iter()
                    .map(|value| value >> j & 1)
                    .collect::<Vec<_>>()
            };
            (0..input.width)
                .flat_map(|j| pack(Ring::Bits, &bit(j)))
                .collect()
        })
        .collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let outputs = circuit.evaluate_batch(count as u64, &inputs).unwrap();
    let unpack = |(port, bytes): (&veil_circuit::OutputPort, &Vec<u8>)| {
        let each = bytes.len() / port.wires.len();
        let element = |wire: usize, row: usize| {
            let column = &bytes[wire * each..][..each];
            match circuit.ring {
                Ring::Bits => u128::from(column[row / 8] >> (row % 8) & 1),
                ring => {
                    let bytes = ring.bits() as usize / 8;
                    let mut wide = [0; 16];
                    wide[..bytes].copy_from_slice(&column[row * bytes..][..bytes]);
                    u128::from_le_bytes(wide)
                }
            }
        };
        let row = |row: usize| {
            (0..port.wires.len())
                .map(|wire| element(wire, row))
                .collect()
        };
        (0..count).map(row).collect()
    };
    circuit.outputs.iter().zip(&outputs).map(unpack).collect()
}

/// The number that bits are.
pub(super) fn number(bits: &[u128]) -> u128 {
    bits.iter().rev().fold(0, |sum, bit| sum << 1 | bit)
}

/// Looks whether the circuit of some expressions gives in every row what the evaluator in the clear does, as bits, and as integers if the ring
/// has them. Expressions without wires, of one value, are looked at as whether they are null.
pub(super) fn check(
    ring: Ring,
    types: &[Type],
    forms: &[(ColumnId, Form)],
    rows: &[Vec<Value>],
    exprs: &[Expr],
    aim: Aim,
) -> Circuit {
    let mut bench = Bench::new(ring, types, forms, aim);
    let mut expected_outputs = Vec::new();
    let expected = in_the_clear(types, rows, exprs);
    for (at, expr) in exprs.iter().enumerate() {
        let ty = expr.ty(types).unwrap();
        let (bits, null) = bench.exprs.bits(expr).unwrap();
        assert_eq!(Some(bits.len() as u32), ty.kind.bits(), "{expr}");
        assert!(ty.nullable || null.is_none(), "{expr} is never null");
        let null = null.unwrap_or_else(|| bench.exprs.b.constant_bit(false));
        bench.output(format!("v{at}"), &[&[null], bits.as_slice()].concat());
        let least = ty.kind.range().map_or(0, Range::min);
        let bits = expected.iter().map(|row| match row[at] {
            Value::Null => (1, 0),
            Value::Bool(bit) => (0, bit.into()),
            Value::Key(key) => (0, key),
            Value::Number(number) => (0, number.wrapping_sub(least) as u128),
            Value::Ratio(..) => panic!("a quotient"),
        });
        expected_outputs.push((at, false, bits.collect::<Vec<(u128, u128)>>()));
        if ty.kind == Kind::Bool {
            let wire = bench.exprs.truth(expr).unwrap();
            bench.output(format!("t{at}"), &[wire]);
            let truth = expected
                .iter()
                .map(|row| (u128::from(row[at] == Value::Bool(true)), 0));
            expected_outputs.push((at, false, truth.collect()));
        }
        if ring != Ring::Bits && ty.kind.range().is_some() {
            let (wire, null) = bench.exprs.integer(expr).unwrap();
            let null = null.unwrap_or_else(|| bench.exprs.b.constant_bit(false));
            let null = bench.exprs.b.lift(null);
            bench.exprs.b.output(format!("i{at}"), &[null, wire]);
            let integers = expected.iter().map(|row| match row[at] {
                Value::Null => (1, 0),
                Value::Bool(bit) => (0, bit.into()),
                Value::Number(number) => (0, ring.reduce(number as u128)),
                _ => panic!("not an integer"),
            });
            expected_outputs.push((at, true, integers.collect()));
        }
    }
    let (circuit, ports) = bench.finish();
    let outputs = run(&circuit, &ports, types, rows);
    for ((at, integer, expected), output) in expected_outputs.iter().zip(&outputs) {
        for (row, (found, expected)) in output.iter().zip(expected).enumerate() {
            let value = if *integer {
                found[1]
            } else {
                number(&found[1..])
            };
            assert_eq!(
                (found[0], value),
                *expected,
                "row {:?} of `{}` ({aim:?}, {ring:?}, as an integer: {integer})",
                rows[row],
                exprs[*at]
            );
        }
    }
    circuit
}

/// [`check`] with all columns as bits.
pub(super) fn check_bits(types: &[Type], rows: &[Vec<Value>], exprs: &[Expr], aim: Aim) -> Circuit {
    let forms = (0..types.len() as u32).map(|at| (ColumnId(at), Form::Bits));
    check(
        Ring::Bits,
        types,
        &forms.collect::<Vec<_>>(),
        rows,
        exprs,
        aim,
    )
}
