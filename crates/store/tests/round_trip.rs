//! What is kept is loaded, whatever the slices, the lanes and the ring; and a second implementation reads the same from the file.

use std::thread;

use crate::common::{
    among_four, components, description, expected, key, packed, parties, parts, slices, write,
};
use proptest::prelude::*;
use veil_job::Slice;
use veil_math::Ring;
use veil_store::{Reader, Writer};

#[test]
fn lanes_write_and_read_at_once() {
    let root = tempfile::tempdir().unwrap();
    let d = description(Ring::Z64, &[1, 2, 1], false, &[5000, 1, 3001], 1024);
    let writer = Writer::create(root.path(), &key(), &d).unwrap();
    let all = parts(&d);
    thread::scope(|scope| {
        for lane in 0..4 {
            let (writer, all, d) = (&writer, &all, &d);
            scope.spawn(move || {
                for (port, component, slice) in all.iter().skip(lane).step_by(4) {
                    let shares = packed(d, d.ring, *port, *component, *slice);
                    writer.keep(*port, *component, *slice, &shares).unwrap();
                }
            });
        }
    });
    writer.finish().unwrap();
    let parties = parties();
    let reader = Reader::open(root.path(), &d.name, &key(), &expected(&parties, d.ring)).unwrap();
    thread::scope(|scope| {
        for lane in 0..4 {
            let (reader, all, d) = (&reader, &all, &d);
            scope.spawn(move || {
                for (port, component, slice) in all.iter().skip(lane).step_by(4) {
                    let want = packed(d, d.ring, *port, *component, *slice);
                    let mut got = vec![0xff; want.len()];
                    reader.load(*port, *component, *slice, &mut got).unwrap();
                    assert_eq!(got, want);
                }
            });
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_slice_is_what_was_kept(
        rings in prop::sample::select(vec![
            (Ring::Bits, Ring::Bits), (Ring::Z64, Ring::Z64), (Ring::Z128, Ring::Z128), (Ring::Z128, Ring::Z64),
        ]),
        widths in prop::collection::vec(1u32..4, 1..4),
        once in any::<bool>(),
        rows in prop::collection::vec(1u64..300, 1..4),
        chunk in prop::sample::select(vec![1u32, 7, 8, 64, 100, 512]),
        four in any::<bool>(),
        picks in prop::collection::vec((any::<u16>(), any::<u16>(), any::<u16>()), 8),
    ) {
        let (ring, asked) = rings;
        let root = tempfile::tempdir().unwrap();
        let d = description(ring, &widths, once, &rows, chunk);
        let d = if four { among_four(d) } else { d };
        write(root.path(), &d);
        let reader = Reader::open(root.path(), &d.name, &key(), &expected(&d.parties, asked)).unwrap();
        for (a, b, c) in picks {
            for port in 0..widths.len() {
                let slice = if d.ports[port].once {
                    slices(&d, port)[0]
                } else {
                    let block = usize::from(a) % rows.len();
                    let first = u64::from(b) % rows[block];
                    let count = u64::from(c) % (rows[block] - first) + 1;
                    Slice { block: block as u32, first, rows: count as u32 }
                };
                for component in 0..components(&d) {
                    let want = packed(&d, asked, port, component, slice);
                    let mut got = vec![0xff; want.len()];
                    reader.load(port, component, slice, &mut got).unwrap();
                    prop_assert_eq!(got, want);
                }
            }
        }
        // Rows counted over the blocks: all of them at once.
        let all: u64 = rows.iter().sum();
        let width = u64::from(widths[0]);
        if !d.ports[0].once && asked != Ring::Bits {
            let mut got = vec![0; (width * asked.bytes(all)) as usize];
            reader.load_rows(0, 1, 0, all as u32, &mut got).unwrap();
            for (wire, got) in got.chunks(asked.bytes(all) as usize).enumerate() {
                let mut want = Vec::new();
                for (block, rows) in rows.iter().enumerate() {
                    let slice = Slice { block: block as u32, first: 0, rows: *rows as u32 };
                    let whole = packed(&d, asked, 0, 1, slice);
                    want.extend_from_slice(whole.chunks(asked.bytes(*rows) as usize).nth(wire).unwrap());
                }
                prop_assert_eq!(got, &want[..]);
            }
        }
    }
}
