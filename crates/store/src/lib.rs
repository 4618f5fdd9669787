//! Shares at rest: encrypted datasets of one party, in Arrow files.
//!
//! A computing party keeps its shares between runs: the input shares of a durable job, which is then started again without its owners, and
//! columns that later jobs compute on. A [`Writer`] takes the shares from a run, a [`Reader`] gives them to one, [`datasets`] lists them. A
//! party's service uses this crate; the engine knows only the traits `ShareSink` and `ShareSource` of `veil_program`.
//!
//! ```text
//! run ─ keep ─► Writer ─ finish ─► folder of a dataset ─► Reader ─ load ─► a later run
//!                                  ├ shares.arrow   header │ chunks of rows │ footer
//!                                  └ manifest       written last, with a MAC under a key of the dataset
//! chunk:  block, first row, rows (clear) │ per port and component: AES-256-GCM ciphertext, tag
//! ```
//!
//! # Getting started
//!
//! ```
//! use veil_job::Slice;
//! use veil_session::{PartyId, PlanHash};
//! use veil_store::{Description, Expected, Member, Port, Reader, BlockRows, StoreKey, Writer};
//!
//! let (folder, key) = (tempfile::tempdir()?, StoreKey::derive(&[7; 32]));
//! let parties = ["north", "south", "west"].map(Member::local);
//! let description = Description {
//!     name: "pay 2025".into(), plan: PlanHash([1; 32]), ring: veil_math::Ring::Z64,
//!     party: PartyId::THREE[0], parties: parties.clone().into(),
//!     ports: vec![Port { name: "pay".into(), width: 1, once: false }],
//!     blocks: vec![BlockRows { name: "all".into(), rows: 3 }], schema: "pay: integer".into(), chunk_rows: 1024,
//! };
//! let writer = Writer::create(folder.path(), &key, &description)?;
//! let slice = Slice { block: 0, first: 0, rows: 3 };
//! writer.keep(0, 0, slice, &[1; 24])?;
//! writer.keep(0, 1, slice, &[2; 24])?;
//! writer.finish()?;
//!
//! let expected = Expected {
//!     party: PartyId::THREE[0], parties: &parties, ring: veil_math::Ring::Z64,
//!     plan: None, schema: Some("pay: integer"), rows: Some(3),
//! };
//! let reader = Reader::open(folder.path(), "pay 2025", &key, &expected)?;
//! let mut shares = [0; 8];
//! reader.load(0, 1, Slice { block: 0, first: 2, rows: 1 }, &mut shares)?;
//! assert_eq!(shares, [2; 8]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Format
//!
//! A dataset is a folder: `shares.arrow`, an Arrow IPC file that any reader of the format opens, and `manifest`. The file's metadata describe
//! it in clear (`veil.scheme`, `veil.ring`, `veil.party`, `veil.parties`, `veil.plan`, `veil.schema`, `veil.rows`, …). Each record batch is a
//! chunk of rows: block, first row and number of rows in clear, and per port and component one binary value, the encrypted shares of the
//! chunk: AES-256-GCM, ciphertext then tag. All chunks have one length; the last chunk of a block is padded with zeros before encryption. The
//! manifest is written last.
//!
//! # Promises
//!
//! - Without the party's key, a dataset tells what its metadata say, and nothing of the shares.
//! - With the key, a dataset that was changed in any byte, cut, or put together from others is refused: every column is bound to its place
//!   and to the whole header, the framing is compared, the manifest carries a MAC under a key of the dataset.
//! - No nonce is used twice: the key is derived with a salt of this dataset alone, each place of the file has its own nonce, and a place is
//!   written once.
//! - A dataset is complete or refused: files are on the disk before the manifest gets its name.
//! - Memory is a buffer of a chunk's column per lane, a bit per column of a chunk, and 24 bytes per chunk for the footer at the end.
//! - Bytes of a file never cause a panic, nor an allocation that the file's own size does not justify.
//!
//! # Limits
//!
//! - The crate cannot tell that a whole dataset was set back to an older one of the same name; a job that continues its own input stage
//!   compares the plan, and the parties compare digests of the shares that they load.
//! - Names, sizes and times are not hidden.
//! - A holder of the identity's secret reads everything.
//! - Removing a dataset does not wipe the disk.
//!
//! # Why a dataset may be loaded again
//!
//! Shares of a value are as old as the sharing, and are not secret from the party that holds them; a mask, however, must never be used
//! twice. Every run makes a session of its own with fresh keys, so two runs on the same shares send messages that are independently masked,
//! and an observer of both learns no more than from either.

// What describes an Arrow file is for writing one.
#![cfg_attr(not(feature = "arrow"), allow(dead_code))]

mod describe;
mod error;
mod fewer;
mod folder;
mod frame;
mod fuzz;
mod key;
mod layout;
mod list;
mod manifest;
mod reader;
mod rows;
mod spill;
pub mod stock;
mod store;
mod writer;

pub use describe::{BlockRows, Description, Head, Member, Port};
pub use error::{Damage, StoreError, Unfit};
pub use fuzz::fuzz_dataset;
pub use key::{KeyId, StoreKey};
pub use list::{Dataset, State, dataset, datasets, remove, sweep, verify};
pub use reader::{Expected, Reader};
pub use spill::SpillFile;
pub use store::{BlockSource, ByPass, Found, Keeps, Loads, Store, Whole};
pub use writer::Writer;
