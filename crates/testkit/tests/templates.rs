//! Templates of XORs: they are those of the circuits below, AES-128 consists of them, and messages are those of the reference.
//!
//! The text of the templates is made here. If circuits or the planner change, the first test fails, and says where the new text lies.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use veil_device::{Cpu, Isa};
use veil_job::{Audience, Holder};
use veil_protocol::{Options, Plan};
use veil_session::{PartyId, Peer};
use veil_testkit::sample::job;
use veil_testkit::{Seed, World};

const MADE: &str = include_str!("../../device/src/cpu/exec/templates/made.rs");

/// Circuits whose shapes have templates.
const CIRCUITS: [&str; 4] = ["aes128-expanded", "aes128", "sha256", "adder:64"];

/// A shape has one if that spares so much of all accesses to memory that XORs of the circuit have: one in so many.
const SPARED: usize = 100;

/// An operand or a result of an XOR.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    Row(usize),
    JobWide(usize),
    Local(usize),
}

/// An XOR of a shape.
struct Xor {
    sources: Vec<Value>,
    one: bool,
    out: bool,
}

/// Reads the code of a shape.
fn read(shape: &[u16]) -> Vec<Xor> {
    let (mut xors, mut rest) = (vec![], shape);
    while let [head, more @ ..] = rest {
        let (sources, more) = more.split_at(usize::from(head >> 2));
        let value = |code: &u16| {
            let number = usize::from(code >> 2);
            match code & 3 {
                0 => Value::Row(number),
                1 => Value::JobWide(number),
                _ => Value::Local(number),
            }
        };
        xors.push(Xor {
            sources: sources.iter().map(value).collect(),
            one: head & 1 == 1,
            out: head & 2 == 2,
        });
        rest = more;
    }
    xors
}

/// Rows from outside, job-wide values, and results for others.
fn counts(xors: &[Xor]) -> [usize; 3] {
    let sources = || xors.iter().flat_map(|xor| &xor.sources);
    let most =
        |of: fn(&Value) -> Option<usize>| sources().filter_map(of).max().map_or(0, |k| k + 1);
    [
        most(|value| match value {
            Value::Row(k) => Some(*k),
            _ => None,
        }),
        most(|value| match value {
            Value::JobWide(k) => Some(*k),
            _ => None,
        }),
        xors.iter().filter(|xor| xor.out).count(),
    ]
}

/// Accesses to memory of the XORs one by one, and of a template.
fn accesses(shape: &[u16]) -> [usize; 2] {
    let xors = read(shape);
    let [rows, _, outs] = counts(&xors);
    [
        xors.iter().map(|xor| xor.sources.len() + 1).sum(),
        rows + outs,
    ]
}

/// How often each shape comes in the layers of a circuit among three parties.
fn shapes(name: &str) -> BTreeMap<Vec<u16>, usize> {
    let circuit = veil_circuit::make(name).unwrap();
    let holders = vec![Holder::Owner(0); circuit.inputs.len()];
    let audiences = vec![Audience::Parties; circuit.outputs.len()];
    let job = job(circuit, &[(4096, &holders)], &audiences);
    let plan = Plan::new(Arc::new(job), Options::default()).unwrap();
    let protocol = veil_protocol::protocol(Arc::new(plan), Peer::Party(PartyId::THREE[0]));
    let mut all = BTreeMap::new();
    for program in protocol.programs() {
        for shape in Cpu::shapes(program) {
            *all.entry(shape).or_default() += 1;
        }
    }
    all
}

/// Shapes that get a template, those that spare most first.
fn chosen() -> Vec<Vec<u16>> {
    let mut chosen: Vec<Vec<u16>> = vec![];
    for name in CIRCUITS {
        let shapes = shapes(name);
        let all: usize = (shapes.iter())
            .map(|(shape, uses)| accesses(shape)[0] * uses)
            .sum();
        let spared = |(shape, uses): (Vec<u16>, usize)| {
            let [before, after] = accesses(&shape);
            ((before - after.min(before)) * uses, shape)
        };
        let mut worth: Vec<_> = shapes.into_iter().map(spared).collect();
        worth.retain(|(spared, shape)| spared * SPARED >= all && !chosen.contains(shape));
        worth.sort_by(|a, b| b.cmp(a));
        chosen.extend(worth.into_iter().map(|(_, shape)| shape));
    }
    chosen
}

/// The text of a template.
fn template(text: &mut String, k: usize, shape: &[u16]) {
    let xors = read(shape);
    let [rows, job_values, outs] = counts(&xors);
    let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    writeln!(
        text,
        "\n/// {} of {} and {}, of which others read {}.",
        many(xors.len(), "XOR"),
        many(rows, "row"),
        many(job_values, "job-wide value"),
        outs,
    )
    .unwrap();
    writeln!(text, "struct T{k};\n\nimpl Template for T{k} {{").unwrap();
    writeln!(text, "    const ROWS: usize = {};", rows + outs).unwrap();
    writeln!(text, "    const JOB_VALUES: usize = {job_values};").unwrap();
    writeln!(
        text,
        "    #[inline(always)]\n    unsafe fn step<V: Vector>(at: Place<V>) {{\n        // SAFETY: the caller's.\n        unsafe {{"
    )
    .unwrap();
    let mut seen: Vec<Value> = vec![];
    let mut out = rows;
    for (j, xor) in xors.iter().enumerate() {
        let mut names = vec![];
        for value in &xor.sources {
            let (name, load) = match *value {
                Value::Row(k) => (format!("r{k}"), Some(format!("at.row({k})"))),
                Value::JobWide(k) => (format!("j{k}"), Some(format!("at.job_value({k})"))),
                Value::Local(k) => (format!("x{k}"), None),
            };
            if let Some(load) = load
                && !seen.contains(value)
            {
                writeln!(text, "            let {name} = {load};").unwrap();
                seen.push(*value);
            }
            names.push(name);
        }
        if xor.one {
            names.push("at.one".into());
        }
        let (first, rest) = names.split_first().unwrap();
        let mut sum = first.clone();
        for pair in rest.chunks(2) {
            match pair {
                [a, b] => write!(sum, ".xor3({a}, {b})").unwrap(),
                [a] => write!(sum, ".xor({a})").unwrap(),
                _ => unreachable!("of two"),
            }
        }
        writeln!(text, "            let x{j} = {sum};").unwrap();
        if xor.out {
            writeln!(text, "            at.put({out}, x{j});").unwrap();
            out += 1;
        }
    }
    writeln!(text, "        }}\n    }}\n}}").unwrap();
}

/// The text of all templates.
fn text(shapes: &[Vec<u16>]) -> String {
    let mut text = format!(
        "//! Made by `crates/testkit/tests/templates.rs` of {}: do not edit.\n\nuse super::{{Over, Place, Template, Uses, Vector}};\n",
        CIRCUITS.join(", ")
    );
    writeln!(
        text,
        "\n/// What the templates compute.\npub(in crate::cpu) const SHAPES: [&[u16]; {}] = [",
        shapes.len()
    )
    .unwrap();
    for shape in shapes {
        let numbers: Vec<String> = shape.iter().map(u16::to_string).collect();
        writeln!(text, "    &[{}],", numbers.join(", ")).unwrap();
    }
    writeln!(text, "];\n\n/// Runs a template.\n///\n/// # Safety\n/// The instruction set is present; the uses are of a checked tape, and of this template.\n#[inline(always)]\npub(in crate::cpu::exec) unsafe fn run<V: Vector>(of: u16, uses: Uses<'_>) {{").unwrap();
    writeln!(
        text,
        "    // SAFETY: the caller's.\n    unsafe {{\n        match of {{"
    )
    .unwrap();
    for k in 0..shapes.len() {
        writeln!(
            text,
            "            {k} => V::outlined::<Over<V, T{k}>>(uses),"
        )
        .unwrap();
    }
    writeln!(
        text,
        "            _ => unreachable!(\"there are no more templates\"),\n        }}\n    }}\n}}"
    )
    .unwrap();
    for (k, shape) in shapes.iter().enumerate() {
        template(&mut text, k, shape);
    }
    text
}

#[test]
fn templates_are_those_of_the_circuits() {
    let text = text(&chosen());
    if text != MADE {
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("made.rs");
        std::fs::write(&path, text).unwrap();
        panic!(
            "circuits have other shapes now: cp {} crates/device/src/cpu/exec/templates/made.rs",
            path.display()
        );
    }
}

#[test]
fn aes_consists_of_templates() {
    for (name, percent) in [("aes128-expanded", 90), ("aes128", 85), ("sha256", 30)] {
        let shapes = shapes(name);
        let mut all = [0; 2];
        for (shape, uses) in &shapes {
            let accesses = accesses(shape)[0] * uses;
            all[0] += accesses;
            if Cpu::templates().contains(&&shape[..]) {
                all[1] += accesses;
            }
        }
        println!("{name}: {} of {} accesses", all[1], all[0]);
        assert!(all[1] * 100 >= all[0] * percent, "{name}: {all:?}");
    }
}

/// Parties whose layers are made of templates send what they send on the reference device.
#[test]
fn messages_are_those_of_the_reference() {
    // Rows of one vector, and of several with a part.
    for (name, rows) in [("aes128-expanded", 1100), ("aes128", 1100), ("sha256", 64)] {
        let circuit = veil_circuit::make(name).unwrap();
        let holders = vec![Holder::Owner(0); circuit.inputs.len()];
        let audiences = vec![Audience::Parties; circuit.outputs.len()];
        let job = job(circuit, &[(rows, &holders)], &audiences);
        let world = || World::in_chunks(job.clone(), rows as u32, 1).seed(Seed(3));
        let want = world().run().assert_right().digests();
        for isa in Isa::available() {
            let got = world().devices(move |_| Box::new(Cpu::with(isa))).run();
            assert!(got.assert_right().digests() == want, "{name}, {isa:?}");
        }
    }
}
