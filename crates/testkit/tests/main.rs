//! Tests of whole runs in one process, honest and not: one program for all of them, which links once.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod ag;
mod ahead;
mod authenticated;
mod authenticated_cycles;
mod chaos;
mod cheats;
mod common;
mod comparisons;
mod conversions;
mod cost;
mod crashes;
mod cut;
mod cut_and_choose;
mod devices;
mod digests;
mod four;
mod intersect;
mod kept_columns;
mod late;
mod ledger;
mod lifts;
mod malicious;
mod malicious_integers;
mod masked;
mod matrices;
mod moved_words;
mod names;
mod operators;
mod order;
mod ot_cache;
mod pass_records;
mod pass_shadows;
mod passes;
mod positions;
mod printed;
mod public;
mod record;
mod replayed;
mod reshare;
mod rows;
mod runs;
mod schedules;
mod sequential;
mod shadow;
mod silent;
mod spill;
mod stock;
mod stock_transfers;
mod stored;
mod taint;
mod taint_garbled;
mod templates;
mod three;
mod totals;
mod unchecked;
mod yao;
