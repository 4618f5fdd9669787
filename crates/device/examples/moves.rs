//! Times of the moves of rows: `moves [ISA]` prints nanoseconds a row of each operation on 10^5, 10^6 and 10^7 rows, beside those of a copy of as many
//! words of 32 bits, and of as many blocks of the pseudorandom function.

use std::time::{Duration, Instant};

use veil_device::{
    ColumnType, Command, Cpu, Device, Frame, Isa, KeyId, Layout, Op, Outcome, PrfCall, Region,
    Residency, Span, Tag,
};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

/// Columns of integers modulo 2^32: what moves, where it moves to, a sum, two permutations, an inverse.
const INTEGERS: u32 = 6;

/// Time that an operation is repeated for.
const BUDGET: Duration = Duration::from_millis(300);

/// Nanoseconds a row, the best of many times.
fn best(rows: u32, mut once: impl FnMut()) -> f64 {
    once();
    let (begin, mut best) = (Instant::now(), Duration::MAX);
    while begin.elapsed() < BUDGET {
        let one = Instant::now();
        once();
        best = best.min(one.elapsed());
    }
    best.as_nanos() as f64 / f64::from(rows)
}

fn call(tag: DomainTag, first: u64) -> PrfCall {
    PrfCall {
        key: KeyId(0),
        tag,
        first,
    }
}

fn drawn(op: Op, src: Vec<Span>, to: Span, calls: Vec<PrfCall>) -> Command {
    let mut command = Command::new(op, src, vec![to]);
    command.calls = calls;
    command
}

fn moves(isa: Isa, rows: u32) {
    let mut layout = Layout {
        chunk_rows: rows,
        regions: vec![],
    };
    let mut add = |column, count| {
        layout.add(Region {
            residency: Residency::Mapped,
            column,
            components: 1,
            count,
        })
    };
    let integers = add(ColumnType::Rows(Ring::Z32), INTEGERS);
    let others: Vec<(u8, u16)> = [1, 2, 8, 16]
        .map(|n| (n, add(ColumnType::Words(n), 2)))
        .into();
    let column = |region, first| Span {
        region,
        component: 0,
        first,
        count: 1,
    };
    let [from, to, sum, p, q, inverse] = [0, 1, 2, 3, 4, 5].map(|k| column(integers, k));
    let mut device = Cpu::with(isa);
    device
        .load_key(KeyId(0), &Secret::new([5; 16]))
        .expect("room for a key");
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows,
    };
    let workspace = device.open(&layout, frame).expect("room for a workspace");
    let ring = Ring::Z32;
    let tag = DomainTag::move3(0);
    let permutation = |to, tag| drawn(Op::Permutation, vec![], to, vec![call(tag, 0)]);
    let permute = |back, by: &[Span], from, to| {
        Command::new(Op::Permute { back }, [&[from], by].concat(), vec![to])
    };
    let combine = |minus, src, calls| drawn(Op::Combine { ring, minus }, src, sum, calls);
    let mut measured = vec![
        (
            "random",
            drawn(Op::Random, vec![], from, vec![call(tag, 0)]),
        ),
        ("permutation", permutation(p, DomainTag::perm3(0))),
        ("another", permutation(q, DomainTag::perm3(1))),
        ("permute, one", permute(false, &[p], from, to)),
        ("permute back, one", permute(true, &[p], from, to)),
        ("permute, two", permute(false, &[p, q], from, to)),
        ("permute back, two", permute(true, &[p, q], from, to)),
        ("invert", Command::new(Op::Invert, vec![p], vec![inverse])),
        (
            "combine, a source and a call",
            combine(0, vec![from], vec![call(tag, 0)]),
        ),
        (
            "combine, two sources and two calls",
            combine(
                0b1010,
                vec![from, to],
                vec![call(tag, 0), call(DomainTag::move3(1), 0)],
            ),
        ),
    ];
    let names = [
        ["permute, bytes of 1", "permute back, bytes of 1"],
        ["permute, bytes of 2", "permute back, bytes of 2"],
        ["permute, bytes of 8", "permute back, bytes of 8"],
        ["permute, bytes of 16", "permute back, bytes of 16"],
    ];
    for ((_, region), names) in others.iter().zip(names) {
        let [from, to] = [0, 1].map(|k| column(*region, k));
        for (name, back) in names.into_iter().zip([false, true]) {
            measured.push((name, permute(back, &[p], from, to)));
        }
    }
    let (copied, mut copy) = (vec![1u32; rows as usize], vec![0u32; rows as usize]);
    let nanoseconds = best(rows, || {
        copy.copy_from_slice(std::hint::black_box(&copied));
        std::hint::black_box(&mut copy);
    });
    println!("{rows:>9} rows: {nanoseconds:6.2} ns  a copy");
    let block = 1e9 / device.prf_rate(BUDGET);
    println!("{rows:>9} rows: {block:6.2} ns  a block");
    for (name, command) in measured {
        let batch = [command];
        let nanoseconds = best(rows, || {
            device
                .submit(workspace, &batch, Tag(0))
                .expect("a command that fits");
            let done = device.poll().expect("a device of the host has no error");
            assert_eq!(done.map(|done| done.outcome), Some(Outcome::Done));
        });
        println!("{rows:>9} rows: {nanoseconds:6.2} ns  {name}");
    }
    device.close(workspace);
}

fn main() {
    let named = std::env::args().nth(1);
    let isa = Isa::available().into_iter().find(|isa| {
        named
            .as_ref()
            .is_none_or(|name| format!("{isa:?}") == *name)
    });
    let isa = isa.expect("an instruction set that this machine has");
    println!("{isa:?}");
    for rows in [100_000, 1_000_000, 10_000_000] {
        moves(isa, rows);
    }
}
