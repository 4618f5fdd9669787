//! The rate at which shares are kept and loaded, on one core, into the page cache, against AES-256-GCM alone in the same run.
//!
//! `cargo run --release -p veil-store --example store_rate [MEGABYTES] [FOLDER]`

use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use veil_job::Slice;
use veil_math::Ring;
use veil_session::{PartyId, PlanHash};
use veil_store::{BlockRows, Description, Expected, Member, Port, Reader, StoreKey, Writer};

/// Columns of the usual table.
const COLUMNS: usize = 6;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let megabytes: u64 = arguments.next().map_or(Ok(512), |text| text.parse())?;
    let temporary = tempfile::tempdir()?;
    let root = arguments
        .next()
        .map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    let key = StoreKey::derive(&[7; 32]);
    let rows = megabytes * 1_000_000 / (8 * 2 * COLUMNS as u64);
    let bytes = (rows * 8 * 2 * COLUMNS as u64) as f64;

    for chunk_rows in [1024, 4096, 16_384] {
        let name = format!("rate {chunk_rows}");
        let parties: Vec<Member> = ["north", "south", "west"].map(Member::local).into();
        let port = |index: usize| Port {
            name: format!("x{index}"),
            width: 1,
            once: false,
        };
        let description = Description {
            name: name.clone(),
            plan: PlanHash([0; 32]),
            ring: Ring::Z64,
            party: PartyId::THREE[0],
            parties: parties.clone(),
            ports: (0..COLUMNS).map(port).collect(),
            blocks: vec![BlockRows {
                name: "all".into(),
                rows,
            }],
            schema: String::new(),
            chunk_rows,
        };
        let each = |take: &mut dyn FnMut(usize, u8, Slice) -> Result<(), Box<dyn Error>>| {
            let mut first = 0;
            while first < rows {
                let count = (rows - first).min(chunk_rows.into());
                let slice = Slice {
                    block: 0,
                    first,
                    rows: count as u32,
                };
                for port in 0..COLUMNS {
                    take(port, 0, slice)?;
                    take(port, 1, slice)?;
                }
                first += count;
            }
            Ok::<_, Box<dyn Error>>(())
        };

        let shares = vec![0x5a; chunk_rows as usize * 8];
        let start = Instant::now();
        let writer = Writer::create(&root, &key, &description)?;
        each(&mut |port, component, slice| {
            Ok(writer.keep(port, component, slice, &shares[..slice.rows as usize * 8])?)
        })?;
        let kept = start.elapsed().as_secs_f64();
        let start = Instant::now();
        writer.finish()?;
        let finished = start.elapsed().as_secs_f64();

        let expected = Expected {
            party: PartyId::THREE[0],
            parties: &parties,
            ring: Ring::Z64,
            plan: None,
            schema: None,
            rows: None,
        };
        let reader = Reader::open(&root, &name, &key, &expected)?;
        let mut into = vec![0; chunk_rows as usize * 8];
        let start = Instant::now();
        each(&mut |port, component, slice| {
            let into = &mut into[..slice.rows as usize * 8];
            Ok(reader.load(port, component, slice, into)?)
        })?;
        let loaded = start.elapsed().as_secs_f64();

        let raw = bound(8192, bytes)?;
        let rate = |seconds: f64| bytes / seconds / 1e6;
        println!(
            "slices of {chunk_rows:5} rows: keep {:6.0} MB/s ({:.2} of AES-256-GCM), finish {finished:.2} s, \
             load {:6.0} MB/s ({:.2}), AES-256-GCM {:6.0} MB/s",
            rate(kept),
            raw / kept,
            rate(loaded),
            raw / loaded,
            rate(raw),
        );
        veil_store::remove(&root, &name)?;
    }
    Ok(())
}

/// Seconds that AES-256-GCM takes for so many bytes, in pieces of `piece` that stay in the cache.
fn bound(piece: usize, bytes: f64) -> Result<f64, Box<dyn Error>> {
    let unbound = UnboundKey::new(&AES_256_GCM, &[3; 32]).map_err(|_| "a key of 32 bytes")?;
    let key = LessSafeKey::new(unbound);
    let mut buffer = vec![0; piece];
    let pieces = (bytes / piece as f64) as u64;
    let start = Instant::now();
    for index in 0..pieces {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&index.to_le_bytes());
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = key
            .seal_in_place_separate_tag(nonce, Aad::empty(), &mut buffer)
            .map_err(|_| "a piece is short")?;
        black_box(&tag);
    }
    Ok(start.elapsed().as_secs_f64())
}
