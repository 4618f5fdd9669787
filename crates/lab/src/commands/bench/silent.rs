//! `veil-lab bench ot --silent`: correlated transfers by learning parity with noise, per second of one core of each party, beside those of the extension that
//! makes their base.

use std::time::Duration;

use miette::{IntoDiagnostic, Result, miette};
use veil_device::{
    ColumnType, Command, Cpu, Device, Frame, Lpn, Op, PrfCall, Region, Residency, Span, Trees,
};
use veil_math::Ring;
use veil_protocol::Plan;
use veil_protocol::ag::transfer_bytes;
use veil_protocol::ot::extension::{At, Challenge};
use veil_protocol::ot::silent::{Base, Receiver, Sender, outputs};
use veil_prss::DomainTag;

use super::ot::{
    End, LEAVES, OFFSET, PRIVATE, RECEIVER, ROWS, SENDER, START, TRANSFERS, round, set_up,
};
use super::{BenchArgs, print_json, short};

/// Sets of parameters, as documentation names them.
const SETS: [(&str, Lpn); 2] = [("C11", Lpn::C11), ("C12", Lpn::C12)];

/// Trees of the extension that makes bases.
const TREES: Trees = match Trees::new(4) {
    Some(trees) => trees,
    None => unreachable!(),
};

/// How long each limit is measured.
const BUDGET: Duration = Duration::from_millis(200);

/// A row of results.
#[derive(Clone, Debug, serde::Serialize)]
struct Row {
    bench: &'static str,
    device: &'static str,
    set: &'static str,
    trees: u32,
    log_secret: u8,
    height: u8,
    /// Outputs that are no base, of all rounds.
    transfers: u64,
    /// Of messages in both directions.
    bits_per_op: f64,
    receiver_per_cpu_s: f64,
    sender_per_cpu_s: f64,
    /// Of both parties together.
    rate_per_cpu_s: f64,
    /// Part of what the AES of leaves and rows and the reads of a table as large would allow the slower party, both measured in the same run.
    bound_fraction: f64,
    aes_per_cpu_s: f64,
    /// Sums of ten blocks of such a table.
    rows_per_cpu_s: f64,
    /// Transfers that the first round begins with.
    base: u64,
    /// The time that they take of both parties, in milliseconds, and their bytes.
    base_ms: f64,
    base_bytes: u64,
    /// The same extension's transfers, of both parties together.
    extension_per_cpu_s: f64,
    extension_bits_per_op: f64,
}

/// What a run took.
struct Run {
    /// Of the sender and of the receiver, in seconds: the base, and rounds.
    base: [f64; 2],
    rounds: [f64; 2],
    base_bytes: u64,
    bytes: u64,
}

/// Measures and prints the table.
pub(super) fn run(args: &BenchArgs) -> Result<()> {
    let others = args.protocol.is_some() || args.adversary.is_some() || args.net.is_some();
    if others || args.svg.is_some() {
        return Err(miette!(
            help = "`veil-lab bench ot --silent` takes --batch, --repeat and --json",
            "transfers are between two parties in this process, one of which may be malicious"
        ));
    }
    if !args.json {
        println!("{HEADER}");
    }
    for (name, set) in SETS {
        let row = measure((name, set), args.batch.unwrap_or(TRANSFERS), args.repeat)?;
        if args.json {
            print_json(&row)?;
        } else {
            print(&row);
        }
    }
    Ok(())
}

const HEADER: &str = "set   transfers   bits/op   receiver/s     sender/s   per CPU-s of both   of bound   base ms (kB)   extension per CPU-s (bits/op)";

fn print(row: &Row) {
    println!(
        "{:<4} {:>10} {:>9.2} {:>12} {:>12} {:>19} {:>9.0}% {:>9.1} ({:.0}) {:>18} ({:.0})",
        row.set,
        row.transfers,
        row.bits_per_op,
        short(row.receiver_per_cpu_s),
        short(row.sender_per_cpu_s),
        short(row.rate_per_cpu_s),
        row.bound_fraction * 100.0,
        row.base_ms,
        row.base_bytes as f64 / 1e3,
        short(row.extension_per_cpu_s),
        row.extension_bits_per_op,
    );
}

/// Both parties.
struct Pair {
    ends: [End; 2],
    sender: Sender,
    receiver: Receiver,
    /// What a transfer of chosen bits sends, at both.
    messages: [Span; 2],
}

impl Pair {
    fn new(set: Lpn) -> Result<Self> {
        let (mut ends, _) = set_up(TREES)?;
        let base = Base {
            trees: TREES,
            challenge: Challenge::Coin(PRIVATE),
            leaves: LEAVES,
            common: START,
            private: PRIVATE,
            back: false,
        };
        let messages = [0, 1].map(|end: usize| {
            let End {
                layout, choices, ..
            } = &mut ends[end];
            let region = layout.add(Region {
                residency: Residency::Mapped,
                column: ColumnType::Rows(Ring::Bits),
                components: 1,
                count: choices.count,
            });
            layout.all(region, 0)
        });
        let sender = Sender::new(&mut ends[0].layout, RECEIVER, set, base, OFFSET);
        let receiver = Receiver::new(&mut ends[1].layout, SENDER, set, base);
        let frame = Frame {
            epoch: 0,
            lane: 0,
            chunk: 0,
            rows: ROWS,
        };
        for end in &mut ends {
            end.workspace = end.device.open(&end.layout, frame).into_diagnostic()?;
        }
        Ok(Pair {
            ends,
            sender,
            receiver,
            messages,
        })
    }

    /// A base, and rounds.
    fn run(&mut self, rounds: u64) -> Result<Run> {
        let at = At {
            place: 0,
            first: 0,
            label: 0,
        };
        let both = [self.sender.base(at), self.receiver.base(at)];
        let base_bytes = self.all([&both[0], &both[1]])?;
        let base = self.times();
        let mut bytes = 0;
        for number in 0..rounds {
            let both = [
                self.sender.round(0, number, true),
                self.receiver.round(0, number, true),
            ];
            bytes += self.all([&both[0], &both[1]])?;
        }
        let run = Run {
            base,
            rounds: self.times(),
            base_bytes,
            bytes,
        };
        self.check()?;
        for end in &mut self.ends {
            end.device.close(end.workspace);
        }
        Ok(run)
    }

    fn all(&mut self, rounds: [&[veil_protocol::Round]; 2]) -> Result<u64> {
        let mut bytes = 0;
        for both in rounds[0].iter().zip(rounds[1]) {
            let [to_sender, to_receiver] = round(&mut self.ends, both.into())?;
            bytes += to_sender + to_receiver;
        }
        Ok(bytes)
    }

    /// What each has taken since this was last asked, in seconds.
    fn times(&mut self) -> [f64; 2] {
        [0, 1].map(|end: usize| std::mem::take(&mut self.ends[end].time).as_secs_f64())
    }

    /// Whether transfers of chosen bits are right, by the first outputs.
    fn check(&mut self) -> Result<()> {
        let [own, theirs] = [0, 1].map(|end: usize| self.ends[end].labels[0]);
        let choices = self.ends[1].choices;
        let mut random = Command::new(Op::Random, vec![], vec![choices]);
        random.calls = vec![PrfCall {
            key: PRIVATE,
            tag: DomainTag::RAND3,
            first: 0,
        }];
        self.ends[1].submit(&[random])?;
        let sender = self.sender.turn(0, 0, self.messages[0], own);
        let receiver = (self.receiver).choose(0, 0, [choices, self.messages[1]], theirs);
        round(&mut self.ends, [&sender, &receiver])?;
        let view = |end: usize, span: Span| {
            let end = &self.ends[end];
            end.device.view(end.workspace, span).into_diagnostic()
        };
        let (sent, got, choices) = (view(0, own)?, view(1, theirs)?, view(1, choices)?);
        let mut offset = None;
        for (row, (q, t)) in sent.chunks(16).zip(got.chunks(16)).enumerate() {
            let difference: Vec<u8> = q.iter().zip(t).map(|(q, t)| q ^ t).collect();
            let right = match choices[row / 8] >> (row % 8) & 1 {
                0 => difference.iter().all(|byte| *byte == 0),
                _ => *offset.get_or_insert_with(|| difference.clone()) == difference,
            };
            if !right {
                return Err(miette!("transfer {row} gave another label than was chosen"));
            }
        }
        Ok(())
    }
}

/// CPU-seconds that the silent transfers of a plan's batches take at the least, at both ends, if their blocks of AES and their reads were all; nothing where a plan has
/// none.
pub(super) fn least_seconds(plan: &Plan) -> Option<f64> {
    let set = plan.silent?;
    let transfers = transfer_bytes(plan)?.transfers as f64;
    let device = Cpu::detect();
    let aes = device.prf_rate(BUDGET);
    let table = device.row_rate(set.log_secret, BUDGET);
    Some(2.0 * transfers / most(set, (aes, table)))
}

/// Transfers per CPU-second of an end that AES and reads allow. Of each leaf a block of its tree and two and a half of its row; those that become a base are made along.
fn most(set: Lpn, (aes, table): (f64, f64)) -> f64 {
    let usable = u64::from(outputs(set, true)) << set.height;
    usable as f64 / set.outputs() as f64 / (3.5 / aes + 1.0 / table)
}

fn measure((name, set): (&'static str, Lpn), transfers: u64, repeat: u32) -> Result<Row> {
    let usable = u64::from(outputs(set, true)) << set.height;
    let rounds = transfers.div_ceil(usable).max(1);
    let transfers = rounds * usable;
    let (mut runs, mut aes, mut table) = (Vec::new(), 0f64, 0f64);
    for _ in 0..repeat.max(1) {
        let mut pair = Pair::new(set)?;
        aes = aes.max(pair.ends[0].device.prf_rate(BUDGET));
        table = table.max(pair.ends[0].device.row_rate(set.log_secret, BUDGET));
        runs.push(pair.run(rounds)?);
    }
    runs.sort_by(|a, b| (a.rounds[0] + a.rounds[1]).total_cmp(&(b.rounds[0] + b.rounds[1])));
    let run = runs.swap_remove((runs.len() - 1) / 2);
    let [sender, receiver] = run.rounds.map(|time| transfers as f64 / time);
    let most = most(set, (aes, table));
    let base = u64::from(set.base_columns()) << set.height;
    let base_time = run.base[0] + run.base[1];
    Ok(Row {
        bench: "ot-silent",
        device: Cpu::detect().name(),
        set: name,
        trees: set.trees,
        log_secret: set.log_secret,
        height: set.height,
        transfers,
        bits_per_op: 8.0 * run.bytes as f64 / transfers as f64,
        receiver_per_cpu_s: receiver,
        sender_per_cpu_s: sender,
        rate_per_cpu_s: transfers as f64 / (run.rounds[0] + run.rounds[1]),
        bound_fraction: sender.min(receiver) / most,
        aes_per_cpu_s: aes,
        rows_per_cpu_s: table,
        base,
        base_ms: base_time * 1e3,
        base_bytes: run.base_bytes,
        extension_per_cpu_s: base as f64 / base_time,
        extension_bits_per_op: 8.0 * run.base_bytes as f64 / base as f64,
    })
}
