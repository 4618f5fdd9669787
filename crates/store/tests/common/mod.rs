//! Datasets of made-up shares, and what they hold in the plainest form.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod stock;

use std::path::Path;

use veil_job::Slice;
use veil_math::Ring;
use veil_session::{PartyId, PlanHash};
use veil_store::{BlockRows, Description, Expected, Member, Port, StoreKey, Writer};

/// The dataset that [`description`] names.
pub(crate) const NAME: &str = "pay 2025";

/// 23 rows in two blocks, four chunks.
pub(crate) fn small() -> Description {
    description(Ring::Z64, &[1, 1], true, &[20, 3], 8)
}

pub(crate) fn key() -> StoreKey {
    StoreKey::derive(&[0x5e; 32])
}

pub(crate) fn parties() -> Vec<Member> {
    ["north", "south", "west"].map(Member::local).into()
}

/// Of a share at one party.
pub(crate) fn components(d: &Description) -> u8 {
    d.parties.len() as u8 - 1
}

/// The same dataset, shared among four.
pub(crate) fn among_four(d: Description) -> Description {
    let parties = d.parties.into_iter().chain([Member::local("east")]);
    Description {
        parties: parties.collect(),
        ..d
    }
}

/// A description with ports of so many wires, the last one `once` if asked, and blocks of so many rows.
pub(crate) fn description(
    ring: Ring,
    widths: &[u32],
    once: bool,
    rows: &[u64],
    chunk_rows: u32,
) -> Description {
    let port = |(index, width): (usize, &u32)| Port {
        name: format!("x{index}"),
        width: *width,
        once: once && index + 1 == widths.len(),
    };
    let block = |(index, rows): (usize, &u64)| BlockRows {
        name: format!("b{index}"),
        rows: *rows,
    };
    Description {
        name: NAME.into(),
        plan: PlanHash([0xab; 32]),
        ring,
        party: PartyId::THREE[1],
        parties: parties(),
        ports: widths.iter().enumerate().map(port).collect(),
        blocks: rows.iter().enumerate().map(block).collect(),
        schema: "x0: integer".into(),
        chunk_rows,
    }
}

pub(crate) fn expected(parties: &[Member], ring: Ring) -> Expected<'_> {
    Expected {
        party: PartyId::THREE[1],
        parties,
        ring,
        plan: None,
        schema: None,
        rows: None,
    }
}

/// The share of a value: a function of where it is.
pub(crate) fn share(
    ring: Ring,
    port: usize,
    component: u8,
    block: usize,
    wire: u32,
    row: u64,
) -> u128 {
    let mut value = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835u128;
    for part in [
        port as u64,
        component.into(),
        block as u64,
        wire.into(),
        row,
    ] {
        value = (value ^ u128::from(part)).wrapping_mul(0xda94_2042_e4dd_58b5_1111_2222_3333_4445);
        value ^= value >> 61;
    }
    ring.reduce(value)
}

/// Rows of a port packed as `[wire][Ring::bytes(rows)]`, in the plainest way, over ring `to`.
pub(crate) fn packed(
    d: &Description,
    to: Ring,
    port: usize,
    component: u8,
    slice: Slice,
) -> Vec<u8> {
    let rows = u64::from(slice.rows);
    let mut out = vec![0; (u64::from(d.ports[port].width) * to.bytes(rows)) as usize];
    for (wire, bytes) in out.chunks_mut(to.bytes(rows) as usize).enumerate() {
        for row in 0..slice.rows as usize {
            let at = slice.first + row as u64;
            let value = share(
                d.ring,
                port,
                component,
                slice.block as usize,
                wire as u32,
                at,
            );
            if to == Ring::Bits {
                bytes[row / 8] |= (value as u8) << (row % 8);
            } else {
                let size = to.bytes(1) as usize;
                bytes[row * size..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
            }
        }
    }
    out
}

/// The slices in which a plan gives a port.
pub(crate) fn slices(d: &Description, port: usize) -> Vec<Slice> {
    if d.ports[port].once {
        return vec![Slice {
            block: 0,
            first: 0,
            rows: 1,
        }];
    }
    let mut slices = Vec::new();
    for (block, rows) in d.blocks.iter().enumerate() {
        let mut first = 0;
        while first < rows.rows {
            let count = (rows.rows - first).min(d.chunk_rows.into());
            slices.push(Slice {
                block: block as u32,
                first,
                rows: count as u32,
            });
            first += count;
        }
    }
    slices
}

/// Everything that is to be kept, last slices first.
pub(crate) fn parts(d: &Description) -> Vec<(usize, u8, Slice)> {
    let mut parts = Vec::new();
    for port in 0..d.ports.len() {
        for component in 0..components(d) {
            parts.extend(
                slices(d, port)
                    .into_iter()
                    .map(|slice| (port, component, slice)),
            );
        }
    }
    parts.reverse();
    parts
}

/// Writes all of a dataset.
pub(crate) fn write(root: &Path, d: &Description) {
    let writer = Writer::create(root, &key(), d).unwrap();
    for (port, component, slice) in parts(d) {
        writer
            .keep(
                port,
                component,
                slice,
                &packed(d, d.ring, port, component, slice),
            )
            .unwrap();
    }
    writer.finish().unwrap();
}
