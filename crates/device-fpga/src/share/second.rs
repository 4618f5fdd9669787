//! The second stage of products of four parties: what came is added to shares, after its MACs were compared.

use veil_device::{Command, Fault, Shares, Span};
use veil_math::Ring;

use super::columns::{Bytes, column_of};
use super::command::{Closes, WORD, ring_bits};
use super::core::MESSAGES;
use super::four::{Begin, Joining, MAC_BYTES, MACS, Rep4Join};
use super::tasks::{Known, Second};
use crate::device::failed;

/// A column of shares: its ring, the region and item where it is, and of each message the item that is added.
struct Column {
    ring: Ring,
    at: (u16, u32),
    bytes: usize,
    closes: Closes,
    messages: Vec<Span>,
}

/// Runs commands of a batch, which are a [`Second`]; says whether all MACs are right. Nothing is written if one is not.
pub(super) fn run(
    join: &mut Rep4Join,
    known: &Known,
    shares: &mut Shares<'_>,
    (second, batch): (&Second, &[Command]),
) -> Result<bool, Fault> {
    let columns = columns(known, shares, second, batch)?;
    let name = join.name();
    let set = join.set(&second.to, second.macs > 0);
    set.map_err(|error| failed(name, &error))?;
    if second.macs > 0 {
        let calls = (0..second.macs).map(|k| batch[2 * k].calls[0]);
        let keyed = calls.map(|call| Some((known.keys.get(&call.key)?, call)));
        let keyed: Option<Vec<_>> = keyed.collect();
        let macs = keyed.ok_or(Fault::Unknown("the key of a draw"))?;
        let frame = shares.frame();
        let begin = Begin { frame, macs: &macs };
        join.begin(&begin).map_err(|error| failed(name, &error))?;
    }
    let mut joining = joining(shares, &columns);
    join.run(&mut joining)
        .map_err(|error| failed(name, &error))?;
    if second.macs > 0 && !verdict(join, shares, (second, batch))? {
        return Ok(false);
    }
    let mut left = &joining.results[..];
    for column in &columns {
        let words = column.bytes.div_ceil(WORD) * MESSAGES * WORD;
        let (own, others) = left.split_at(words);
        left = others;
        let parts = column_of(own, MESSAGES, column.bytes);
        for (part, bytes) in (0..).zip(parts.iter()) {
            let to = shares.column_mut(column.at.0, part, column.at.1);
            to.copy_from_slice(bytes);
        }
    }
    Ok(true)
}

/// Whether the MACs that came are those of the messages. If so, they are what this party would have computed.
fn verdict(
    join: &mut Rep4Join,
    shares: &mut Shares<'_>,
    (second, batch): (&Second, &[Command]),
) -> Result<bool, Fault> {
    let one = |span: Span| (span.region, span.component, span.first);
    let mut macs = [[0; MAC_BYTES]; MACS];
    for (k, mac) in macs.iter_mut().enumerate().take(second.macs) {
        let (region, part, item) = one(batch[2 * k + 1].src[1]);
        mac.copy_from_slice(shares.column(region, part, item));
    }
    let right = join.verdict(&macs);
    let right = right.map_err(|error| failed(join.name(), &error))?;
    for (k, mac) in macs.iter().enumerate().take(second.macs) {
        let (region, part, item) = one(batch[2 * k].dst[0]);
        if right {
            shares.column_mut(region, part, item).copy_from_slice(mac);
        }
    }
    Ok(right)
}

/// Columns in the order in which MACs are made of their messages.
fn columns(
    known: &Known,
    shares: &Shares<'_>,
    second: &Second,
    batch: &[Command],
) -> Result<Vec<Column>, Fault> {
    let mut columns = Vec::new();
    for (number, id) in second.programs.iter().enumerate() {
        let loaded = known.programs.get(id);
        let loaded = loaded.ok_or(Fault::Unknown("the program of a command"))?;
        let spans = (0..second.to.len()).map(|k| &batch[second.add(k, number)].src);
        let spans: Vec<&Vec<Span>> = spans.collect();
        for (kind, products) in loaded.products().into_iter().enumerate() {
            let rows = [shares.frame().rows, 1][kind];
            let bytes = loaded.ring.bytes(rows.into()) as usize;
            let last = columns.len() + products.len();
            for (index, at) in products {
                let of = |spans: &&Vec<Span>| Span {
                    first: spans[kind].first + index,
                    count: 1,
                    ..spans[kind]
                };
                columns.push(Column {
                    ring: loaded.ring,
                    at,
                    bytes,
                    closes: if columns.len() + 1 == last {
                        Closes::Message
                    } else {
                        Closes::Nothing
                    },
                    messages: spans.iter().map(of).collect(),
                });
            }
        }
    }
    if let Some(last) = columns.last_mut() {
        last.closes = Closes::All;
    }
    Ok(columns)
}

/// Words of columns and of their messages.
fn joining(shares: &Shares<'_>, columns: &[Column]) -> Joining {
    let mut joining = Joining::default();
    let words: usize = columns.iter().map(|of| of.bytes.div_ceil(WORD)).sum();
    joining.shares.reserve(words * super::four::RECORD);
    joining.results.resize(words * MESSAGES * WORD, 0);
    for column in columns {
        let (region, item) = column.at;
        let parts = [0, 1, 2].map(|part| Bytes::Column(shares.column(region, part, item)));
        let words = column.bytes.div_ceil(WORD);
        for at in 0..words {
            let last = at + 1 == words;
            for part in &parts {
                joining.shares.extend_from_slice(&part.word(at));
            }
            let closes = if last { column.closes.bits() } else { 0 };
            let bytes = WORD.min(column.bytes - at * WORD) as u8;
            let about = [ring_bits(column.ring), bytes, last.into(), closes];
            joining.shares.extend_from_slice(&about);
        }
        for (to, from) in joining.messages.iter_mut().zip(&column.messages) {
            let bytes = Bytes::Column(shares.column(from.region, from.component, from.first));
            to.extend((0..words).flat_map(|at| bytes.word(at)));
        }
    }
    joining
}
