//! `veil-lab bench ot`: random oblivious transfers per second of one core of each party, secure against a malicious one, for trees of every size.

use std::time::{Duration, Instant};

use miette::{IntoDiagnostic, Result, miette};
use plotters::prelude::*;
use veil_device::ot::{Choices, blocks};
use veil_device::{
    ColumnType, Command, Cpu, Device, Frame, KeyId, Layout, Op, Outcome, PrfCall, Region,
    Residency, Span, Tag, Trees, Workspace, completion,
};
use veil_math::Ring;
use veil_protocol::Round;
use veil_protocol::ot::extension::{At, Challenge, Receiver, Sender};
use veil_protocol::ot::transfer::keys;
use veil_protocol::ot::{Ends, Pins, ReceiverSetUp, SenderSetUp};
use veil_prss::DomainTag;
use veil_session::{PartyId, Peer, Secret, SessionId};

use super::chart::{self, BAR, BOUND, Drawn, SIZE};
use super::measure::thread_cpu;
use super::{BenchArgs, short};

/// Transfers of a run, unless another number is asked for.
pub(super) const TRANSFERS: u64 = 1 << 23;

/// Rows of a chunk, and items of choices in every row: columns and labels stay in the second level of the cache.
pub(super) const ROWS: u32 = 1 << 14;
const ITEMS: u32 = 1;

/// Uses of transfers in a chunk, one after the other in the same workspace.
const USES: u32 = 64;

pub(super) const SENDER: Peer = Peer::Party(PartyId::THREE[0]);
pub(super) const RECEIVER: Peer = Peer::Party(PartyId::THREE[1]);

pub(super) const OFFSET: KeyId = KeyId(0);
pub(super) const START: KeyId = KeyId(1);
pub(super) const PRIVATE: KeyId = KeyId(2);
pub(super) const LEAVES: KeyId = KeyId(16);

/// A row of results.
#[derive(Clone, Debug, serde::Serialize)]
struct Row {
    bench: &'static str,
    device: &'static str,
    /// Bits that a tree stands for.
    k: u32,
    transfers: u64,
    /// Bytes that the receiver sends per transfer.
    bytes_per_op: f64,
    receiver_per_cpu_s: f64,
    sender_per_cpu_s: f64,
    /// Of both parties together.
    rate_per_cpu_s: f64,
    /// Part of what the AES of the slower party would allow if it did nothing else, measured in the same run.
    bound_fraction: f64,
    /// Blocks that the device makes per second.
    aes_per_cpu_s: f64,
    /// Milliseconds of base transfers and trees, of both parties one after the other.
    set_up_ms: f64,
    /// The same of trees on transfers that were kept from the session before.
    kept_set_up_ms: f64,
}

/// Measures, prints the table, and draws.
pub(super) fn run(args: &BenchArgs) -> Result<()> {
    if args.vole {
        return super::vole::run(args);
    }
    if args.silent {
        return super::silent::run(args);
    }
    if args.protocol.is_some() || args.adversary.is_some() || args.net.is_some() {
        return Err(miette!(
            help = "`veil-lab bench ot` takes --batch, --repeat, --json and --svg",
            "transfers are between two parties in this process, one of which may be malicious"
        ));
    }
    let mut rows = Vec::new();
    if !args.json {
        println!("{HEADER}");
    }
    for trees in Trees::ALL {
        let row = measure(trees, args.batch.unwrap_or(TRANSFERS), args.repeat)?;
        if args.json {
            println!("{}", serde_json::to_string(&row).into_diagnostic()?);
        } else {
            print(&row);
        }
        rows.push(row);
    }
    match &args.svg {
        Some(path) => {
            let mut svg = String::new();
            let drawn = draw(&rows, &mut svg);
            chart::put(drawn, &svg, path)
        }
        None => Ok(()),
    }
}

const HEADER: &str = "k   transfers   B/op   receiver/s     sender/s   per CPU-s of both   of bound   set-up ms (kept)";

fn print(row: &Row) {
    println!(
        "{:<3} {:>9} {:>6.2} {:>12} {:>12} {:>19} {:>9.0}% {:>11.2} ({:.2})",
        row.k,
        row.transfers,
        row.bytes_per_op,
        short(row.receiver_per_cpu_s),
        short(row.sender_per_cpu_s),
        short(row.rate_per_cpu_s),
        row.bound_fraction * 100.0,
        row.set_up_ms,
        row.kept_set_up_ms,
    );
}

/// One party.
pub(super) struct End {
    pub(super) device: Cpu,
    pub(super) layout: Layout,
    pub(super) workspace: Workspace,
    /// Labels of the transfers, then keys: of the receiver's choice, or of choice 0 and of choice 1.
    pub(super) labels: [Span; 3],
    pub(super) choices: Span,
    /// What its work has taken.
    pub(super) time: Duration,
}

impl End {
    fn new() -> Self {
        let mut layout = Layout {
            chunk_rows: ROWS,
            regions: vec![],
        };
        let mut add = |column| {
            let region = layout.add(Region {
                residency: Residency::Mapped,
                column,
                components: 1,
                count: ITEMS,
            });
            layout.all(region, 0)
        };
        let labels = [(); 3].map(|()| add(ColumnType::Labels));
        let choices = add(ColumnType::Rows(Ring::Bits));
        End {
            device: Cpu::detect(),
            layout,
            workspace: Workspace(0),
            labels,
            choices,
            time: Duration::ZERO,
        }
    }

    /// Does something and adds the time that it takes.
    pub(super) fn timed<T>(&mut self, does: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let start = thread_cpu();
        let done = does(self);
        self.time += thread_cpu().saturating_sub(start);
        done
    }

    pub(super) fn submit(&mut self, commands: &[Command]) -> Result<()> {
        self.device
            .submit(self.workspace, commands, Tag(0))
            .into_diagnostic()?;
        match completion(&mut self.device).into_diagnostic()?.outcome {
            Outcome::Done => Ok(()),
            Outcome::Mismatch { .. } => Err(miette!("honest transfers did not pass their check")),
        }
    }
}

/// Both parties, and where transfers are in their workspaces.
struct Pair {
    ends: [End; 2],
    sender: Sender,
    receiver: Receiver,
    /// What the set-up took: with curves, and with transfers that this one has kept.
    set_up: [Duration; 2],
}

/// Both parties with their keys after a set-up, and what it took: with curves, and with transfers that this one has kept.
pub(super) fn set_up(trees: Trees) -> Result<([End; 2], [Duration; 2])> {
    let names = |session| Ends {
        session: SessionId([session; 32]),
        sender: SENDER,
        receiver: RECEIVER,
    };
    let mut random = |bytes: &mut [u8]| getrandom::fill(bytes);
    // A key of both, one of each, and choices of the transfers that are kept.
    let mut key = [[0; 16]; 4];
    random(key.as_flattened_mut()).map_err(|e| miette!("no randomness: {e}"))?;
    let drawn = |e| miette!("no randomness: {e}");
    let start = Instant::now();
    let ends = names(7);
    let (sender, points) =
        SenderSetUp::start(&ends, trees, Pins::default(), &mut random).map_err(drawn)?;
    let (receiver, point) = ReceiverSetUp::start(&ends, trees, &mut random).map_err(drawn)?;
    let choices = Secret::new(key[3]);
    let made = receiver.finish_and_keep(&points, &choices);
    let (message, _, theirs) = made.into_diagnostic()?;
    let sender = sender.base(&point).into_diagnostic()?;
    let (_, _, mine) = sender.finish_and_keep(&message).into_diagnostic()?;
    let curves = start.elapsed();
    let (start, ends) = (Instant::now(), names(8));
    let again = SenderSetUp::again(&ends, trees, Pins::default(), mine, &mut random);
    let (sender, message) = again.map_err(drawn)?;
    let receiver = ReceiverSetUp::again(&ends, trees, theirs, &mut random).map_err(drawn)?;
    let made = receiver.finish_and_keep(&message, &choices);
    let (message, all, _) = made.into_diagnostic()?;
    let (offset, some, _) = sender.finish_and_keep(&message).into_diagnostic()?;
    let took = [curves, start.elapsed()];
    let mut ends = [End::new(), End::new()];
    for (end, (leaves, own)) in ends.iter_mut().zip([(some, key[1]), (all, key[2])]) {
        let common = [(START, Secret::new(key[0])), (PRIVATE, Secret::new(own))];
        let leaves = leaves
            .into_iter()
            .map(|(index, leaf)| (KeyId(LEAVES.0 + index), leaf));
        for (id, secret) in leaves.chain(common) {
            end.device.load_key(id, &secret).into_diagnostic()?;
        }
    }
    ends[0].device.load_key(OFFSET, &offset).into_diagnostic()?;
    Ok((ends, took))
}

impl Pair {
    fn new(trees: Trees) -> Result<Self> {
        let (mut ends, set_up) = set_up(trees)?;
        let (challenge, both) = (Challenge::Coin(PRIVATE), (trees, (ITEMS, Choices::Rows)));
        let layout = &mut ends[0].layout;
        let sender = Sender::new(layout, RECEIVER, both, challenge, (LEAVES, OFFSET));
        let receiver = Receiver::new(&mut ends[1].layout, SENDER, both, challenge, LEAVES);
        Ok(Pair {
            ends,
            sender,
            receiver,
            set_up,
        })
    }

    /// The transfers of a chunk; the bytes that the receiver has sent.
    fn chunk(&mut self, chunk: u32) -> Result<u64> {
        let frame = Frame {
            epoch: 0,
            lane: 0,
            chunk,
            rows: ROWS,
        };
        for end in &mut self.ends {
            end.timed(|end| {
                end.workspace = end.device.open(&end.layout, frame).into_diagnostic()?;
                Ok(())
            })?;
        }
        let mut bytes = 0;
        for number in 0..USES {
            bytes += self.transfers(number)?;
        }
        if chunk == 0 {
            self.check()?;
        }
        for end in &mut self.ends {
            end.timed(|end| {
                end.device.close(end.workspace);
                Ok(())
            })?;
        }
        Ok(bytes)
    }

    /// A use of transfers, with keys.
    fn transfers(&mut self, number: u32) -> Result<u64> {
        let first = u64::from(number) * blocks(ITEMS, ROWS);
        let at = At {
            place: 0,
            first,
            label: 0,
        };
        let sender = self.sender.rounds(at, self.ends[0].labels[0]);
        let [labels, own, _] = self.ends[1].labels;
        let receiver = self.receiver.rounds(at, self.ends[1].choices, labels);
        let mut random = Command::new(Op::Random, vec![], vec![self.ends[1].choices]);
        random.calls = vec![PrfCall {
            key: PRIVATE,
            tag: DomainTag::RAND3,
            first,
        }];
        self.ends[1].timed(|end| end.submit(&[random]))?;
        let mut bytes = 0;
        for rounds in sender.iter().zip(&receiver) {
            let [to_sender, _] = round(&mut self.ends, rounds.into())?;
            bytes += to_sender;
        }
        let place = (START, u64::from(number * ITEMS));
        let made = keys(labels, &[own], None, place);
        self.ends[1].timed(|end| end.submit(&[made]))?;
        let [labels, zero, one] = self.ends[0].labels;
        let made = keys(labels, &[zero, one], Some(OFFSET), place);
        self.ends[0].timed(|end| end.submit(&[made]))?;
        Ok(bytes)
    }

    /// Whether the receiver has the keys that it chose, and no other.
    fn check(&self) -> Result<()> {
        let view = |end: usize, span: Span| {
            let end = &self.ends[end];
            end.device.view(end.workspace, span).into_diagnostic()
        };
        let (own, choices) = (
            view(1, self.ends[1].labels[1])?,
            view(1, self.ends[1].choices)?,
        );
        let [_, zero, one] = self.ends[0].labels;
        let sent = [view(0, zero)?, view(0, one)?];
        for (row, own) in own.chunks(16).enumerate() {
            let choice = usize::from(choices[row / 8] >> (row % 8) & 1);
            let key = |choice: usize| &sent[choice][16 * row..][..16];
            if own != key(choice) || own == key(1 - choice) {
                return Err(miette!("transfer {row} gave another key than was chosen"));
            }
        }
        Ok(())
    }
}

/// A round of both; the bytes that the sender gets, and those that the receiver gets.
pub(super) fn round(ends: &mut [End; 2], rounds: [&Round; 2]) -> Result<[u64; 2]> {
    let mut bytes = [0; 2];
    for (end, round) in ends.iter_mut().zip(rounds) {
        end.timed(|end| end.submit(&round.local))?;
    }
    for from in [0, 1] {
        for send in &rounds[from].sends {
            let into = rounds[1 - from].recvs.iter().find(|r| r.part == send.part);
            let into = into.ok_or_else(|| miette!("no party waits for a message"))?;
            let start = thread_cpu();
            let [a, b] = &mut *ends;
            let (source, to) = if from == 0 { (a, b) } else { (b, a) };
            let message = source
                .device
                .view(source.workspace, send.span)
                .into_diagnostic()?;
            to.device
                .write(to.workspace, into.span, message)
                .into_diagnostic()?;
            // The copy is the link of both.
            let took = thread_cpu().saturating_sub(start);
            bytes[1 - from] += message.len() as u64;
            source.time += took;
            to.time += took;
        }
    }
    for (end, round) in ends.iter_mut().zip(rounds) {
        end.timed(|end| end.submit(&round.finish))?;
    }
    Ok(bytes)
}

fn measure(trees: Trees, transfers: u64, repeat: u32) -> Result<Row> {
    let per_chunk = u64::from(ROWS * ITEMS * USES);
    let chunks = transfers.div_ceil(per_chunk).clamp(1, u64::from(u32::MAX)) as u32;
    let transfers = u64::from(chunks) * per_chunk;
    let mut runs = Vec::new();
    let mut aes = 0f64;
    for _ in 0..repeat.max(1) {
        let mut pair = Pair::new(trees)?;
        aes = aes.max(pair.ends[0].device.prf_rate(Duration::from_millis(100)));
        let mut bytes = 0;
        for chunk in 0..chunks {
            bytes += pair.chunk(chunk)?;
        }
        let times = [0, 1].map(|end: usize| pair.ends[end].time.as_secs_f64());
        runs.push((times, bytes, pair.set_up));
    }
    runs.sort_by(|a, b| (a.0[0] + a.0[1]).total_cmp(&(b.0[0] + b.0[1])));
    let (times, bytes, set_up) = runs.swap_remove((runs.len() - 1) / 2);
    let [sender, receiver] = times.map(|time| transfers as f64 / time);
    let [most_sender, most_receiver] = bounds(trees, aes);
    Ok(Row {
        bench: "ot",
        device: Cpu::detect().name(),
        k: trees.bits(),
        transfers,
        bytes_per_op: bytes as f64 / transfers as f64,
        receiver_per_cpu_s: receiver,
        sender_per_cpu_s: sender,
        rate_per_cpu_s: transfers as f64 / (times[0] + times[1]),
        bound_fraction: (sender / most_sender).min(receiver / most_receiver),
        aes_per_cpu_s: aes,
        set_up_ms: set_up[0].as_secs_f64() * 1e3,
        kept_set_up_ms: set_up[1].as_secs_f64() * 1e3,
    })
}

/// Transfers per second of a sender and of a receiver that make nothing but AES blocks: of leaves, and of keys.
fn bounds(trees: Trees, aes: f64) -> [f64; 2] {
    let (leaves, bits) = (f64::from(trees.leaves()), f64::from(trees.bits()));
    [
        aes / ((leaves - 1.0) / bits + 2.0),
        aes / (leaves / bits + 1.0),
    ]
}

fn draw(rows: &[Row], svg: &mut String) -> Drawn {
    let bound = |row: &Row| {
        let trees = Trees::new(row.k as u8).unwrap_or_default();
        bounds(trees, row.aes_per_cpu_s)
    };
    let most = rows.iter().flat_map(&bound).fold(1.0, f64::max) / 1e6;
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(
            "random oblivious transfers per second of one core",
            ("sans-serif", 24),
        )
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(
            (0..(2 * rows.len()).max(1) as u32 - 1).into_segmented(),
            0.0..most * 1.1,
        )?;
    let label = |x: &SegmentValue<u32>| match x {
        SegmentValue::CenterOf(at) => rows.get(*at as usize / 2).map_or_else(String::new, |row| {
            let who = if at % 2 == 0 { "sender" } else { "receiver" };
            format!("{who}, k = {}", row.k)
        }),
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .y_desc("M/s")
        .x_labels(2 * rows.len())
        .x_label_formatter(&label)
        .draw()?;
    let measured = rows
        .iter()
        .flat_map(|row| [row.sender_per_cpu_s, row.receiver_per_cpu_s]);
    let bounds = rows.iter().flat_map(&bound);
    let series: [(&str, RGBColor, Vec<f64>); 2] = [
        ("AES alone (bound)", BOUND, bounds.collect()),
        ("measured", BAR, measured.collect()),
    ];
    for (name, color, heights) in series {
        let bar = |(at, height): (u32, f64)| {
            let ends = (SegmentValue::Exact(at), SegmentValue::Exact(at + 1));
            let mut bar = Rectangle::new([(ends.0, 0.0), (ends.1, height / 1e6)], color.filled());
            bar.set_margin(0, 0, 12, 12);
            bar
        };
        chart
            .draw_series((0..).zip(heights).map(bar))?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled()));
    }
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.9))
        .border_style(BLACK)
        .draw()?;
    root.present()
}
