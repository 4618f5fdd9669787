//! Programs of passes in one process: what owners bring, and what recipients get.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use veil_device::{Cpu, Device, Reference};
use veil_engine::local::{Conditions, Failure, run_program};
use veil_engine::{Data, Report, Room, Settings};
use veil_job::passes::ProgramSpec;
use veil_job::{Adversary, Audience, Holder, Security};
use veil_link::tap::{Fate, Tapped};
use veil_math::Ring;
use veil_operators::{Builder, Key, Participants, Sharing};
use veil_protocol::Options;
use veil_protocol::passes::PassProgram;
use veil_session::{Channel, Peer};
use veil_testkit::{Seed, Seen, Values};

/// Semi-honest parties, and four against one that does anything.
pub(crate) fn securities() -> [Security; 3] {
    let four = Security::among(4);
    [
        Security::among(3),
        Security {
            adversary: Adversary::SemiHonest,
            ..four
        },
        Security {
            adversary: Adversary::Malicious,
            ..four
        },
    ]
}

/// Three parties of whom one does anything: they move words, and no integers.
pub(crate) fn proving() -> Security {
    Security {
        adversary: Adversary::Malicious,
        ..Security::among(3)
    }
}

pub(crate) fn builder(security: Security, parties: usize) -> Builder {
    let names = |of: &str, count: usize| (0..count).map(|k| format!("{of}{k}")).collect();
    Builder::new(Participants {
        name: "passes".into(),
        owners: names("owner", 1),
        parties: names("p", parties),
        recipients: names("recipient", 1),
        security,
    })
}

pub(crate) fn parties(security: Security) -> usize {
    match security.protocol {
        veil_job::ProtocolKind::Rep4 => 4,
        _ => 3,
    }
}

/// A program that sorts integers by a key of so many bits: by digits up to 12, by comparisons else. Where integers do not move it sorts words, by comparisons.
pub(crate) fn sorting(security: Security, rows: u32, bits: u32) -> ProgramSpec {
    let mut b = builder(security, parties(security));
    let owner = Holder::Owner(0);
    let keys = b.input(owner, "key", rows, Sharing::Bits(bits));
    let payload = if security.moves_integers() {
        Sharing::Ring(Ring::Z64)
    } else {
        Sharing::Bits(64)
    };
    let payload = b.input(owner, "row", rows, payload);
    let order = b.sort(&Key::of(&[keys]));
    let sorted = b.apply(&order, &[keys, payload]);
    b.open(&sorted, Audience::Recipient(0), "the rows in order");
    b.finish()
}

/// What owners bring to passes, and what recipients got from them.
#[derive(Default)]
pub(crate) struct Ends {
    values: BTreeMap<usize, Values>,
    pub(crate) seen: BTreeMap<usize, Arc<Seen>>,
}

impl Ends {
    /// `columns` are the values of the first passes, one row after the other.
    pub(crate) fn of(program: &PassProgram, columns: &[Vec<u128>]) -> Self {
        let mut ends = Ends::default();
        for (number, pass) in program.passes().iter().enumerate() {
            let Some(plan) = pass.rows() else { continue };
            if let Some(column) = columns.get(number) {
                let bits = plan.ring == Ring::Bits;
                let values = Values::new(&plan.job, |_, row, _, wire| {
                    if bits {
                        column[row] >> wire & 1
                    } else {
                        column[row]
                    }
                });
                ends.values.insert(number, values);
            }
            let to_parties = pass.claim().is_some() || pass.compares().is_some();
            if plan.opens_rows() && !to_parties {
                ends.seen.insert(number, Arc::default());
            }
        }
        ends
    }

    pub(crate) fn data(&self, peer: Peer, pass: usize) -> Data {
        match peer {
            Peer::Owner(_) => Data {
                source: self.values.get(&pass).map(|v| Arc::new(v.clone()) as _),
                ..Data::default()
            },
            Peer::Recipient(_) => Data {
                sink: self.seen.get(&pass).map(|seen| Arc::clone(seen) as _),
                ..Data::default()
            },
            Peer::Party(_) => Data::default(),
        }
    }

    /// Opened columns, as integers.
    pub(crate) fn opened(&self, program: &PassProgram) -> Vec<Vec<u128>> {
        let rows = |(pass, seen): (&usize, &Arc<Seen>)| {
            let plan = program.passes()[*pass].rows().unwrap();
            let rows = seen.rows(plan.ring, 0).unwrap();
            let value = |wires: &Vec<u128>| match plan.ring {
                Ring::Bits => (0..).zip(wires).map(|(k, bit)| bit << k).sum(),
                _ => wires[0],
            };
            assert!(seen.finished());
            rows.iter().map(value).collect()
        };
        self.seen.iter().map(rows).collect()
    }
}

pub(crate) fn honest() -> Tap {
    Arc::new(|_, _, _, _| Fate::Pass)
}

pub(crate) type Factory = fn() -> Box<dyn Device>;
pub(crate) const REFERENCE: Factory = || Box::new(Reference::default());
pub(crate) const CPU: Factory = || Box::new(Cpu::detect());

/// What becomes of a message.
pub(crate) type Tap = Arc<dyn Fn(Peer, Peer, Channel, &[u8]) -> Fate + Send + Sync>;

pub(crate) fn run(
    program: &Arc<PassProgram>,
    ends: &Ends,
    device: Factory,
    tap: &Tap,
) -> Result<BTreeMap<Peer, Report>, Failure> {
    run_in(program, ends, device, tap, &|_| None)
}

/// As [`run`], where columns of a participant have so much room.
pub(crate) fn run_in(
    program: &Arc<PassProgram>,
    ends: &Ends,
    device: Factory,
    tap: &Tap,
    room: &dyn Fn(Peer) -> Option<Room>,
) -> Result<BTreeMap<Peer, Report>, Failure> {
    run_on(
        program,
        ends,
        &|peer| Settings {
            timeout: std::time::Duration::from_secs(2),
            device: Arc::new(move || Ok(device())),
            room: room(peer),
            ..Settings::default()
        },
        tap,
    )
}

/// As [`run`], where each participant has settings of its own.
pub(crate) fn run_on(
    program: &Arc<PassProgram>,
    ends: &Ends,
    settings: &dyn Fn(Peer) -> Settings,
    tap: &Tap,
) -> Result<BTreeMap<Peer, Report>, Failure> {
    let conditions = Conditions {
        settings,
        wrap: &|from, _, link| {
            let tap = Arc::clone(tap);
            Box::new(Tapped::new(link, move |to, at, bytes: &[u8]| {
                tap(from, to, at, bytes)
            }))
        },
        stop: None,
    };
    let data = |peer, pass| ends.data(peer, pass);
    run_program(program, data, &|_| (), &conditions)
}

/// What is sent in a run of honest parties: from whom, to whom, under which name, how many bytes. Each participant's messages are in their order; who
/// of two comes first is a matter of turns.
pub(crate) fn sent(program: &Arc<PassProgram>, ends: &Ends) -> Vec<(Peer, Peer, Channel, usize)> {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&sent);
    let tap: Tap = Arc::new(move |from, to, at, bytes| {
        note.lock().unwrap().push((from, to, at, bytes.len()));
        Fate::Pass
    });
    run(program, ends, CPU, &tap).unwrap();
    let mut sent = sent.lock().unwrap().clone();
    sent.sort_by_key(|(from, to, ..)| (*from, *to));
    sent
}

/// What a program opens.
pub(crate) fn opened(
    spec: &ProgramSpec,
    columns: &[Vec<u128>],
    device: Factory,
    lanes: u16,
) -> Vec<Vec<u128>> {
    let options = Options {
        lanes,
        chunk_rows: None,
    };
    let program = Arc::new(PassProgram::new(spec, options).unwrap());
    let ends = Ends::of(&program, columns);
    let reports = run(&program, &ends, device, &honest()).unwrap();
    costs_are_those_of_the_formulas(&program, &reports);
    ends.opened(&program)
}

/// Bytes of moves that parties have sent are those of the formula: what is not, is of rows.
fn costs_are_those_of_the_formulas(program: &PassProgram, reports: &BTreeMap<Peer, Report>) {
    for (peer, report) in reports {
        let moves = program.passes().iter().filter(|pass| pass.rows().is_none());
        let bytes: u64 = moves
            .map(|pass| {
                let protocol = pass.protocol(*peer);
                let frame = pass.whole().unwrap().frame;
                protocol.cost(veil_protocol::Task::Layers, frame).bytes
            })
            .sum();
        assert!(report.meters.bytes_sent >= bytes, "{peer}");
    }
}

pub(crate) fn random(seed: u64, rows: u32, bits: u32) -> Vec<u128> {
    let mut numbers = Seed(seed).numbers("column");
    let mask = u128::MAX >> (128 - bits);
    (0..rows).map(|_| numbers.next_u128() & mask).collect()
}
