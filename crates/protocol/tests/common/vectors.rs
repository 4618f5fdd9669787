//! Reads the golden vectors, and puts their cases on a [`Net`].

use std::sync::Arc;

use serde_json::Value;
use veil_circuit::{Circuit, Gate, InputPort, OutputPort, Per, Reduce, Wire};
use veil_device::{Command, KeyId, Op, PrfCall, Span};
use veil_job::{Audience, Block, Holder, JobSpec, Security};
use veil_math::Ring;
use veil_protocol::rep3::{KEY_OWN, KEY_PREVIOUS, OWN, PREVIOUS};
use veil_protocol::{Options, Plan, Task};
use veil_prss::DomainTag;
use veil_session::{Frame, PartyId, Peer};

use super::{Keyring, Keys, Net};

/// A file of vectors.
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("the vectors are JSON")
}

/// The bytes of a string of hex digits.
pub fn bytes(hex: &Value) -> Vec<u8> {
    let digits = hex.as_str().expect("a string of hex digits").as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16);
    digits
        .chunks(2)
        .map(|pair| byte(pair).expect("hex digits"))
        .collect()
}

/// A number that fits.
pub fn number<T: TryFrom<u64>>(value: &Value) -> T {
    let number = value.as_u64().expect("a number");
    T::try_from(number).ok().expect("a number in range")
}

/// A list that is not empty.
pub fn list(value: &Value) -> &[Value] {
    let list = value.as_array().expect("a list");
    assert!(!list.is_empty(), "an empty list of vectors tests nothing");
    list
}

/// The columns of party or component `index`, joined.
pub fn joined<'a>(columns: impl IntoIterator<Item = &'a Value>, index: usize) -> Vec<u8> {
    columns
        .into_iter()
        .flat_map(|column| bytes(&column[index]))
        .collect()
}

/// The elements of packed columns; of bits, those that fill a last byte too.
pub fn elements(ring: Ring, columns: &[u8]) -> Vec<u128> {
    let little = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, b| n << 8 | u128::from(*b));
    match ring {
        Ring::Bits => columns
            .iter()
            .flat_map(|b| (0..8).map(move |k| u128::from(b >> k & 1)))
            .collect(),
        Ring::Z32 | Ring::Z64 | Ring::Z128 => {
            columns.chunks(ring.bytes(1) as usize).map(little).collect()
        }
    }
}

/// The ring of a case.
pub fn ring(case: &Value) -> Ring {
    match case["ring"].as_str() {
        Some("bits") => Ring::Bits,
        Some("z32") => Ring::Z32,
        Some("z64") => Ring::Z64,
        Some("z128") => Ring::Z128,
        other => panic!("the ring {other:?} is none of ours"),
    }
}

/// Where a case stands.
pub fn frame(case: &Value) -> Frame {
    Frame {
        epoch: 0,
        lane: number(&case["lane"]),
        chunk: number(&case["chunk"]),
        rows: number(&case["rows"]),
    }
}

/// The keys of a file, and its seeds if it has any.
pub fn keys(vectors: &Value) -> Keys {
    let key = |hex: &Value| bytes(hex).try_into().expect("16 bytes");
    let seeds = match &vectors["seeds"] {
        Value::Null => vec![],
        seeds => vec![[key(&seeds[0]), key(&seeds[1])]],
    };
    Keys {
        pairs: std::array::from_fn(|i| key(&vectors["keys"][i])),
        seeds,
    }
}

/// The keys of a file of four parties.
pub struct FourKeys(pub Value);

impl Keyring for FourKeys {
    fn pair(&self, a: PartyId, b: PartyId) -> [u8; 16] {
        let (a, b) = (a.min(b).index(), a.max(b).index());
        key(&self.0["pairs"][format!("{a}{b}")])
    }

    fn dealt(&self, by: Peer, index: u8) -> [u8; 16] {
        let list = if by.party().is_some() {
            "keys"
        } else {
            "seeds"
        };
        key(&self.0[list][usize::from(index)])
    }
}

fn key(hex: &Value) -> [u8; 16] {
    bytes(hex).try_into().expect("16 bytes")
}

/// A circuit of one input port and one output port.
pub fn circuit(
    ring: Ring,
    width: u32,
    gates: Vec<Gate>,
    outputs: Vec<Wire>,
    reduce: Reduce,
) -> Circuit {
    Circuit {
        ring,
        inputs: vec![InputPort {
            name: "v".into(),
            width,
            per: Per::Row,
            bits: false,
        }],
        gates,
        outputs: vec![OutputPort {
            name: "z".into(),
            wires: outputs,
            reduce,
        }],
        clock: veil_circuit::Clock::default(),
    }
}

/// The plan of a circuit among parties whose input port `holder` supplies and whose output port is opened to all of them.
pub fn plan(circuit: Circuit, security: Security, holder: Holder, chunk_rows: u32) -> Plan {
    let owners = if matches!(holder, Holder::Owner(_)) {
        vec!["owner".into()]
    } else {
        vec![]
    };
    let job = JobSpec {
        name: "golden".into(),
        schema: String::new(),
        owners,
        parties: (0..security.protocol.parties())
            .map(|p| format!("p{p}"))
            .collect(),
        recipients: vec![],
        security,
        totals: None,
        circuit,
        blocks: vec![Block {
            name: "all".into(),
            rows: 1,
            holders: vec![holder],
            stored: None,
            order: veil_job::Order::Unsaid,
        }],
        audiences: vec![Audience::Parties],
        opened: vec!["z".into()],
        inputs: Vec::new(),
        datasets: Vec::new(),
        keep: None,
    };
    Plan::new(
        Arc::new(job),
        Options {
            lanes: 1,
            chunk_rows: Some(chunk_rows),
        },
    )
    .expect("a job that can be planned")
}

/// The holder of inputs that no test asks for.
pub const PARTY_0: Holder = Holder::Party(PartyId::THREE[0]);

/// Own and previous share of the input port, at a party.
pub fn shares(net: &Net, part: u8) -> Span {
    let (slots, port) = (net.plan.programs[0].slots, net.plan.inputs[0]);
    Span {
        region: slots,
        component: part,
        first: port.first,
        count: port.width,
    }
}

/// Own and previous share of the output port, at a party.
pub fn results(net: &Net, part: u8) -> Span {
    let (program, port) = (&net.plan.programs[0], net.plan.outputs[0]);
    let region = if port.gives == veil_protocol::Gives::Sum {
        program.sums
    } else {
        program.slots
    };
    Span {
        region,
        component: part,
        first: port.first,
        count: port.width,
    }
}

/// Gives party i the components `u_i` and `u_{i-1}` of the operands.
pub fn deal(net: &mut Net, operands: &[Value]) {
    for i in 0..3 {
        for (part, component) in [(OWN, i), (PREVIOUS, (i + 2) % 3)] {
            let to = shares(net, part);
            net.nodes[i].poke(
                to,
                &joined(operands.iter().map(|o| &o["components"]), component),
            );
        }
    }
}

/// Agrees on opening and opens; the number of messages before that.
pub fn open(net: &mut Net, sum: bool) -> usize {
    net.run(|_| Task::Agree).expect("honest parties agree");
    let before = net.log.len();
    net.run(|n| {
        if sum {
            Task::OpenTotals(n.cleared())
        } else {
            Task::Open(n.cleared())
        }
    })
    .expect("an honest opening");
    before
}

/// What was opened at a party.
pub fn opened(net: &Net, party: usize, sum: bool) -> Vec<u8> {
    let node = &net.nodes[party];
    let spans = node.protocol.spans();
    let (_, span) = if sum {
        spans.opened_sums[0]
    } else {
        spans.opened[0]
    };
    node.view(span)
}

/// Moves draws to where the vectors stand.
pub fn moved(first: u64) -> impl Fn(&mut Command) {
    move |command| command.calls.iter_mut().for_each(|d| d.first += first)
}

/// Draws of the own and the previous key into `to`: a party's components of a random value.
pub fn drawn(to: [Span; 2], tag: u16, first: u64) -> [Command; 2] {
    [(to[0], KEY_OWN), (to[1], KEY_PREVIOUS)].map(|(to, key)| call(to, key, tag, first))
}

/// A draw of `key` into `to`.
pub fn call(to: Span, key: KeyId, tag: u16, first: u64) -> Command {
    let mut command = Command::new(Op::Random, vec![], vec![to]);
    command.calls = vec![PrfCall {
        key,
        tag: DomainTag(tag),
        first,
    }];
    command
}
