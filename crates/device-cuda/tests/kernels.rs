//! Kernels of transfers on the emulator, in three orders of threads, against what the documentation of `veil_device` defines, by its hash, its
//! pseudorandom function and its fold. Sizes are no multiples of a warp or a block.

use crate::common::{bytes, given};
use veil_device::garble::hash;
use veil_device::ot::{Choices, Trees, column_bytes, fold};
use veil_device_cuda::backend::{Arg, Backend, Buffer, Emulator, Launch, Order};
use veil_device_cuda::kernels::{
    Kernel, OT_APPLY, OT_CORRECT, OT_EXPAND, OT_FOLD, OT_KEYS, OT_LABELS,
};
use veil_prss::{DomainTag, Prf};
use veil_session::Secret;

const ORDERS: [Order; 3] = [Order::Forward, Order::Reverse, Order::Random(5)];

fn labels_in(on: &mut Emulator, labels: &[u128]) -> Buffer {
    let bytes: Vec<u8> = labels.iter().flat_map(|x| x.to_le_bytes()).collect();
    given(on, &bytes)
}

fn labels_of(on: &mut Emulator, buffer: &Buffer) -> Vec<u128> {
    let bytes = bytes(on, buffer);
    let blocks = bytes.chunks_exact(16);
    blocks
        .map(|block| u128::from_le_bytes(block.try_into().expect("it fits")))
        .collect()
}

fn launch(on: &mut Emulator, kernel: &'static Kernel, (grid, block): (u32, u32), args: &[Arg<'_>]) {
    on.launch(kernel, Launch { grid, block }, args)
        .expect("it fits");
}

/// Number `k` of some that have nothing to do with each other.
fn some(k: u64) -> u128 {
    hash(0x0123_4567_89ab_cdef_0011_2233_4455_6677, k, 1)
}

fn xor(to: &mut [u8], other: &[u8]) {
    to.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
}

/// Both ends of a step of transfers, of `items` items in `rows` rows, from the leaves to the keys.
fn transfers(order: Order, trees: Trees, items: u32, rows: u32) {
    let on = &mut Emulator::new(order);
    let (tag, lane, first, chunk) = (DomainTag::OT_LEAF, 3, 0xffff_fffe_u64, 9);
    let (bits, offset) = (trees.bits(), some(5) | 1);
    let size = column_bytes(Choices::Rows, items, rows) as usize;
    let blocks = (size / 16) as u32;
    let length = (items * rows.div_ceil(8)) as usize;
    let end = size - 16;
    // Leaf 0 of the sender's numbers is the one that it lacks: leaf `missing` of the receiver's.
    let missing = |tree: u32| (offset >> (tree * bits)) as u32 & (trees.leaves() - 1);
    let key = |tree: u32, leaf: u32| some(u64::from(tree * 256 + leaf) + (1 << 20)).to_le_bytes();
    let string = |key: [u8; 16]| {
        let mut string = vec![0; size];
        Prf::new(&Secret::new(key)).stream(tag, lane, first, chunk, &mut string);
        string
    };
    // Choices: rows of bits, whose padding is zero.
    let mut x: Vec<u8> = (0..length).map(|k| (k * 89 + 7) as u8).collect();
    for item in x.chunks_mut(rows.div_ceil(8) as usize) {
        let last = item.last_mut().expect("it fits");
        *last &= 0xff >> (7 - (rows + 7) % 8);
    }
    x.resize(size, 0);
    // What the documentation says of strings, string by string.
    let mut columns = vec![vec![0; size]; 128];
    let mut corrections = Vec::new();
    for tree in 0..trees.count() {
        let mut u = vec![0; size];
        for leaf in 0..trees.leaves() {
            let string = string(key(tree, leaf));
            xor(&mut u, &string);
            for p in (0..bits).filter(|p| leaf >> p & 1 == 1) {
                xor(&mut columns[(tree * bits + p) as usize], &string);
            }
        }
        if tree == 0 {
            x[end..].copy_from_slice(&u[end..]);
        }
        xor(&mut u, &x);
        corrections.push(u);
    }
    for column in &mut columns {
        column[length..end].fill(0);
    }

    let head = Prf::input(tag, lane, 0, chunk);
    let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("it fits"));
    let numbers = |leaf| {
        [
            Arg::U32(bits),
            Arg::U32(leaf),
            Arg::U32(blocks),
            Arg::U64(length as u64),
            Arg::U64(first),
            Arg::U32(word(0)),
            Arg::U32(word(12)),
        ]
    };
    let expand = |on: &mut Emulator, turned: bool| {
        let keys = (0..trees.count()).flat_map(|tree| {
            (0..trees.leaves())
                .map(move |leaf| (tree, leaf ^ if turned { missing(tree) } else { 0 }))
        });
        let keys: Vec<u8> = keys.flat_map(|(tree, leaf)| key(tree, leaf)).collect();
        let keys = given(on, &keys);
        let columns = on.allocate(128 * size as u64).expect("it fits");
        let sums = on
            .allocate(u64::from(trees.count()) * size as u64)
            .expect("it fits");
        let memory = [&keys, &columns, &sums].map(Arg::all);
        let numbers = numbers(u32::from(turned));
        launch(on, &OT_EXPAND, (2, 64), &[&memory[..], &numbers].concat());
        (columns, sums)
    };
    let (received, sums) = expand(on, false);
    let mut open = x.clone();
    open[end..].fill(0xee);
    let choices = given(on, &open);
    let args = [Arg::all(&sums), Arg::all(&choices)];
    let args = [&args[..], &[Arg::U32(trees.count()), Arg::U32(blocks)]].concat();
    launch(on, &OT_CORRECT, (1, 32), &args);
    assert!(
        bytes(on, &received) == columns.concat(),
        "{order:?} {trees:?}"
    );
    // Between the items and the last block nothing is sent.
    for (got, want) in bytes(on, &sums).chunks(size).zip(&corrections) {
        assert!(got[..length] == want[..length] && got[end..] == want[end..]);
    }
    assert!(bytes(on, &choices) == x, "{order:?} {trees:?}");

    let (sent, _) = expand(on, true);
    let secret = labels_in(on, &[offset]);
    let args = [&sent, &sums, &secret].map(Arg::all);
    let of = [Arg::U32(bits), Arg::U32(blocks), Arg::U64(length as u64)];
    launch(on, &OT_APPLY, (2, 32), &[&args[..], &of].concat());
    let mut want = columns.clone();
    for (c, column) in want
        .iter_mut()
        .enumerate()
        .filter(|(c, _)| offset >> c & 1 == 1)
    {
        xor(column, &x);
        assert_eq!(column[length..end], columns[c][length..end]);
    }
    assert!(bytes(on, &sent) == want.concat(), "{order:?} {trees:?}");

    let challenge = some(99).to_le_bytes();
    let with = given(on, &challenge);
    let folds = on.allocate(128 * 16).expect("it fits");
    let args = [&sent, &with, &folds].map(Arg::all);
    let of = [Arg::U32(blocks), Arg::U32(128)];
    launch(on, &OT_FOLD, (2, 64), &[&args[..], &of].concat());
    let folded: Vec<u8> = want.iter().flat_map(|c| fold(&challenge, c)).collect();
    assert!(bytes(on, &folds) == folded, "{order:?} {trees:?}");

    let labels = on.allocate(16 * u64::from(items * rows)).expect("it fits");
    let args = [&sent, &labels].map(Arg::all);
    let of = [blocks, items, rows].map(Arg::U32);
    launch(on, &OT_LABELS, (1, 64), &[&args[..], &of].concat());
    let places = (0..items).flat_map(|item| (0..rows).map(move |row| (item, row)));
    let turned: Vec<u128> = places
        .clone()
        .map(|(item, row)| {
            let byte = (item * rows.div_ceil(8) + row / 8) as usize;
            let bit = |c: &Vec<u8>| u128::from(c[byte] >> (row % 8) & 1);
            (0..)
                .zip(&want)
                .fold(0, |label, (c, column)| label | bit(column) << c)
        })
        .collect();
    assert!(labels_of(on, &labels) == turned, "{order:?} {trees:?}");

    let (start, number) = (some(55), 0x1234_5678_9abc_u64);
    let keys = on.allocate(32 * u64::from(items * rows)).expect("it fits");
    let secrets = labels_in(on, &[start, offset]);
    let args = [&labels, &keys, &secrets].map(Arg::all);
    let of = [Arg::U32(items), Arg::U32(rows), Arg::U64(number)];
    launch(on, &OT_KEYS, (2, 32), &[&args[..], &of].concat());
    let hashed = |offset: u128| {
        places
            .clone()
            .zip(&turned)
            .map(move |((item, row), label)| {
                let tweak = (number + u64::from(item)) << 16 | u64::from(row);
                hash(start, tweak, label ^ offset)
            })
    };
    let both: Vec<u128> = hashed(0).chain(hashed(offset)).collect();
    assert!(labels_of(on, &keys) == both, "{order:?} {trees:?}");
}

#[test]
fn transfers_are_as_defined() {
    for (order, sizes) in ORDERS.into_iter().zip([(3, 75), (1, 5), (2, 203)]) {
        for trees in Trees::ALL {
            transfers(order, trees, sizes.0, sizes.1);
        }
    }
}

/// Strings that have more blocks than a warp has lanes, as many, and one less.
#[test]
fn long_columns_are_folded() {
    for order in ORDERS {
        for blocks in [1_usize, 2, 32, 33, 34, 70] {
            let on = &mut Emulator::new(order);
            let strings: Vec<u8> = (0..3 * 16 * blocks).map(|k| (k * 57 + 5) as u8).collect();
            let challenge = some(3).to_le_bytes();
            let (from, with) = (given(on, &strings), given(on, &challenge));
            let folds = on.allocate(48).expect("it fits");
            let args = [&from, &with, &folds].map(Arg::all);
            let of = [Arg::U32(blocks as u32), Arg::U32(3)];
            launch(on, &OT_FOLD, (1, 64), &[&args[..], &of].concat());
            let want: Vec<u8> = strings
                .chunks(16 * blocks)
                .flat_map(|string| fold(&challenge, string))
                .collect();
            assert_eq!(bytes(on, &folds), want, "{order:?}: {blocks}");
        }
    }
}
