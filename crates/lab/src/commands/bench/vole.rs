//! `veil-lab bench ot --vole`: vectors of products of random blocks with the sender's offset, and what each part of making them takes.

use miette::{IntoDiagnostic, Result, miette};
use veil_device::{Cpu, Device, Frame, Residency, Span, Trees};
use veil_protocol::Round;
use veil_protocol::ot::extension::{At, Challenge};
use veil_protocol::ot::silent::Base;
use veil_protocol::ot::vole::{Receiver, Sender, Shape, Way};

use super::ot::{End, LEAVES, OFFSET, PRIVATE, RECEIVER, ROWS, SENDER, START, round, set_up};
use super::{BenchArgs, print_json, short};

/// Entries, unless another number is asked for: those of an intersection of a million keys.
const ENTRIES: u64 = 1_240_000;

/// Trees of the extension that makes bases.
const TREES: Trees = match Trees::new(4) {
    Some(trees) => trees,
    None => unreachable!(),
};

/// A row of results.
#[derive(Clone, Debug, serde::Serialize)]
struct Row {
    bench: &'static str,
    device: &'static str,
    entries: u32,
    /// Silent rounds, and rounds over blocks.
    silent_rounds: u32,
    block_rounds: u32,
    /// Of messages in both directions, the base and all.
    bits_per_op: f64,
    receiver_cpu_s: f64,
    sender_cpu_s: f64,
    /// Of both parties together: workspaces, transfers of the extension, silent rounds, rounds over blocks.
    cpu_s: f64,
    open_cpu_s: f64,
    extension_cpu_s: f64,
    silent_cpu_s: f64,
    block_cpu_s: f64,
    rate_per_cpu_s: f64,
}

/// Measures and prints the table.
pub(super) fn run(args: &BenchArgs) -> Result<()> {
    let others = args.protocol.is_some() || args.adversary.is_some() || args.net.is_some();
    if others || args.silent || args.svg.is_some() {
        return Err(miette!(
            help = "`veil-lab bench ot --vole` takes --batch, --repeat and --json",
            "products are between two parties in this process, one of which may be malicious"
        ));
    }
    let entries = u32::try_from(args.batch.unwrap_or(ENTRIES)).unwrap_or(u32::MAX);
    if entries > 100_000_000 {
        return Err(miette!("a workspace has room for 100 million products"));
    }
    let mut rows = Vec::new();
    for _ in 0..args.repeat.max(1) {
        rows.push(measure(Shape::of(entries))?);
    }
    rows.sort_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
    let row = rows.swap_remove((rows.len() - 1) / 2);
    if args.json {
        return print_json(&row);
    }
    println!(
        "  entries   bits/op   receiver s   sender s   CPU-s of both   (workspaces, extension, silent, over blocks)   per CPU-s of both"
    );
    println!(
        "{:>9} {:>9.2} {:>12.3} {:>10.3} {:>15.3}   ({:.3}, {:.3}, {:.3}, {:.3}) {:>37}",
        row.entries,
        row.bits_per_op,
        row.receiver_cpu_s,
        row.sender_cpu_s,
        row.cpu_s,
        row.open_cpu_s,
        row.extension_cpu_s,
        row.silent_cpu_s,
        row.block_cpu_s,
        short(row.rate_per_cpu_s),
    );
    Ok(())
}

/// What both took since they were last asked, in seconds.
fn taken(ends: &mut [End; 2]) -> [f64; 2] {
    [0, 1].map(|end: usize| std::mem::take(&mut ends[end].time).as_secs_f64())
}

fn measure(shape: Shape) -> Result<Row> {
    let (mut ends, _) = set_up(TREES)?;
    let challenge = Challenge::Coin(PRIVATE);
    let base = Base {
        trees: TREES,
        challenge,
        leaves: LEAVES,
        common: START,
        private: PRIVATE,
        back: false,
    };
    let sender = Sender::new(&mut ends[0].layout, RECEIVER, shape, base, OFFSET);
    let receiver = Receiver::new(&mut ends[1].layout, SENDER, shape, base);
    let (b, [a, c]) = (sender.entries(), receiver.entries());
    // Where this process looks at them.
    for (end, span) in [(0, b), (1, a), (1, c)] {
        ends[end].layout.regions[usize::from(span.region)].residency = Residency::Mapped;
    }
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows: ROWS,
    };
    for end in &mut ends {
        end.timed(|end| {
            end.workspace = end.device.open(&end.layout, frame).into_diagnostic()?;
            Ok(())
        })?;
    }
    let mut parts = vec![taken(&mut ends)];
    let at = At {
        place: 0,
        first: 0,
        label: 0,
    };
    let rounds = [sender.rounds(at), receiver.rounds(at)];
    let (silent, blocks) = match shape.way() {
        Way::Transfers => (0, 0),
        Way::Silent { rounds } => (rounds, 0),
        Way::Expanded { rounds, expansions } => (rounds, expansions),
    };
    let (mut bytes, mut from) = (0, 0);
    for count in [challenge.rounds(), 3 * silent, 3 * blocks] {
        let part = from..from + count as usize;
        for both in rounds[0][part.clone()].iter().zip(&rounds[1][part.clone()]) {
            bytes += exchange(&mut ends, both.into())?;
        }
        parts.push(taken(&mut ends));
        from = part.end;
    }
    check(&ends, [(0, b), (1, a), (1, c)])?;
    for end in &mut ends {
        end.device.close(end.workspace);
    }
    let of = |end: usize| parts.iter().map(|part| part[end]).sum::<f64>();
    let both: Vec<f64> = parts.iter().map(|part| part[0] + part[1]).collect();
    let cpu_s = of(0) + of(1);
    Ok(Row {
        bench: "ot-vole",
        device: Cpu::detect().name(),
        entries: shape.entries(),
        silent_rounds: silent,
        block_rounds: blocks,
        bits_per_op: 8.0 * bytes as f64 / f64::from(shape.entries()),
        receiver_cpu_s: of(1),
        sender_cpu_s: of(0),
        cpu_s,
        open_cpu_s: both[0],
        extension_cpu_s: both[1],
        silent_cpu_s: both[2],
        block_cpu_s: both[3],
        rate_per_cpu_s: f64::from(shape.entries()) / cpu_s,
    })
}

fn exchange(ends: &mut [End; 2], rounds: [&Round; 2]) -> Result<u64> {
    let [to_sender, to_receiver] = round(ends, rounds)?;
    Ok(to_sender + to_receiver)
}

/// Entries that are looked at.
const LOOKED_AT: usize = 256;

/// Whether A ⊕ B are products of C with one block: (A ⊕ B) C' = (A' ⊕ B') C for all pairs.
fn check(ends: &[End; 2], spans: [(usize, Span); 3]) -> Result<()> {
    let mut arrays = Vec::new();
    for (end, span) in spans {
        let end = &ends[end];
        let bytes = end.device.view(end.workspace, span).into_diagnostic()?;
        let blocks = bytes.as_chunks().0.iter();
        arrays.push(blocks.map(|b| u128::from_le_bytes(*b)).collect::<Vec<_>>());
    }
    let [b, a, c] = [0, 1, 2].map(|k: usize| &arrays[k]);
    let product = |k: usize| a[k] ^ b[k];
    for k in (0..c.len()).step_by(c.len().div_ceil(LOOKED_AT)) {
        if c[k] == 0 || product_of(product(0), c[k]) != product_of(product(k), c[0]) {
            return Err(miette!("entry {k} is no product with the offset"));
        }
    }
    Ok(())
}

/// The product of polynomials modulo X^128 + X^127 + X^126 + X^121 + 1.
fn product_of(a: u128, b: u128) -> u128 {
    const FIELD: u128 = 1 << 127 | 1 << 126 | 1 << 121 | 1;
    let (mut product, mut power) = (0, b);
    for i in 0..128 {
        product ^= (a >> i & 1).wrapping_neg() & power;
        power = power << 1 ^ (power >> 127).wrapping_neg() & FIELD;
    }
    product
}
