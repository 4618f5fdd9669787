//! Steps of intersections as launches of kernels/psi.

use veil_device::psi::{DUPLICATE, SEEDS, TAG, UNSOLVED, VALUE};
use veil_device::{Command, Fault, Okvs, PrfCall, Psi, Span};
use zeroize::Zeroizing;

use super::labels::numbers;
use super::queue::{Argument, Queue};
use crate::kernels::{
    DECIDE, Kernel, PSI_ASCEND, PSI_BINNED, PSI_CHECK, PSI_DRAW, PSI_END, PSI_FIND, PSI_HASH,
    PSI_RANGED, PSI_RANGES, PSI_ROWS, PSI_SETTLE, PSI_SHIFT, PSI_SOLVE, PSI_STARTS, PSI_STOP,
    PSI_SUM, PSI_TAGS,
};

/// Bytes of a block, and of a key or digest.
const BLOCK: u64 = 16;
const DIGEST: u64 = 32;
/// What is known of keys, as kernels/psi/psi.h has it: nothing yet, or that they are encoded.
const OPEN: u64 = 0;
const SOLVED: u64 = 1;
/// The number of a step whose keys are not all different.
const EQUAL: u32 = 1;
/// What there is not.
const NONE: u64 = u64::MAX;
/// Threads that solve a bin.
const SOLVERS: u64 = 512;
/// Bytes of numbers of a key, and of a sparse column, beside their values: kernels/psi/solve.h.
const OF_KEY: u64 = 5 * 4;
const OF_COLUMN: u64 = 6 * 4;
/// Tags of a range on average, at most.
const RANGED: u64 = 16;

/// Why a step could not be done, by the number of kernels/psi/encode.cu.
pub(super) const fn impossible(why: u32) -> &'static str {
    if why == EQUAL { DUPLICATE } else { UNSOLVED }
}

/// Bytes of a block of threads for keys that are left over, with so many dense columns: `PSI_OWN_BYTES` of kernels/psi/solve.h.
const fn left_over(dense: u32) -> u64 {
    512 * (16 * (dense as u64 + 1) + 4 * 48 + 4 * 5) + 4 * 3 * 512
}

/// What lies apart in a step, place by place. What is known of keys is in front.
struct Places(u64);

impl Places {
    const KNOWN: u64 = 0;

    const fn new() -> Self {
        Places(BLOCK)
    }

    /// Where so many bytes are.
    fn take(&mut self, bytes: u64) -> u64 {
        let at = self.0;
        self.0 = at.saturating_add(bytes.next_multiple_of(BLOCK));
        at
    }
}

/// A table whose products with rows are tags, and what is added to these.
struct Table {
    okvs: Okvs,
    /// Whether it lies apart, and where.
    apart: bool,
    at: u64,
    seed: Span,
    w: Span,
    offset: Option<Zeroizing<u128>>,
}

const fn store(okvs: Okvs) -> [u64; 3] {
    [okvs.bins as u64, okvs.sparse as u64, okvs.dense as u64]
}

const fn head(of: [u8; 4]) -> u64 {
    u32::from_le_bytes(of) as u64
}

impl Queue<'_> {
    /// A step, command `index` of the batch, which was checked.
    pub(super) fn intersection(
        &mut self,
        index: usize,
        step: Psi,
        command: &Command,
    ) -> Result<(), Fault> {
        match step {
            Psi::Hash => self.hashed(command)?,
            Psi::Encode { okvs } => self.encoded(index, okvs, command)?,
            Psi::Tags { okvs, offset } => {
                let offset = Zeroizing::new(self.offset(offset)?);
                self.tagged(index, (okvs, offset), command);
            }
            Psi::Match { okvs } => self.found(index, okvs, command),
        }
        Ok(())
    }

    /// A launch on what lies apart.
    fn apart(&mut self, kernel: &'static Kernel, work: Option<u64>, numbers: &[u64]) {
        let call = self.call(numbers);
        self.step(kernel, work, &[Argument::Temps, call, Argument::Verdict]);
    }

    fn hashed(&mut self, command: &Command) -> Result<(), Fault> {
        let (drawn, frame) = (command.calls[0], self.memory.frame);
        let prf = &self.key(drawn)?.prf;
        let salt = prf.block(drawn.tag, frame.lane, drawn.first, frame.chunk);
        let keys = self.bytes(command.src[0]) / DIGEST;
        let [from, to] = [command.src[0], command.dst[0]].map(|span| self.memory.at(span));
        let mut call = Zeroizing::new(Vec::with_capacity(6));
        call.extend([keys, from, to, head(VALUE)]);
        call.extend(numbers(u128::from_le_bytes(salt)));
        self.plain(&PSI_HASH, Some(keys), &call);
        Ok(())
    }

    fn encoded(&mut self, index: usize, okvs: Okvs, command: &Command) -> Result<(), Fault> {
        let (digests, c) = (command.src[0], command.src[1]);
        let (seed, to) = (command.dst[0], command.dst[1]);
        let keys = self.bytes(digests) / DIGEST;
        let mut places = Places::new();
        let bins = u64::from(okvs.bins);
        let encoding = Encoding {
            okvs,
            keys,
            digests,
            seed,
            to,
            counts: places.take(4 * bins),
            starts: places.take(4 * (bins + 1)),
            states: places.take(4 * bins),
            rows: places.take(BLOCK * keys),
            entries: places.take(BLOCK * keys),
            of_keys: places.take((BLOCK + OF_KEY) * keys),
            of_columns: places.take(OF_COLUMN * bins * u64::from(okvs.sparse)),
            // A block of threads has all registers of a multiprocessor.
            blocks: bins.min(self.blocks.into()),
            own: places.0,
        };
        places.take(encoding.blocks * left_over(okvs.dense));
        self.zeros_apart(Places::KNOWN, BLOCK);
        for number in 0..SEEDS {
            self.tried(&encoding, number, command.calls[0])?;
        }
        let at = |span| self.memory.at(span);
        let end = [okvs.columns(), at(to), at(c), at(seed)];
        self.ended(index, SOLVED, end);
        self.temps = self.temps.max(places.0);
        Ok(())
    }

    /// Keys encoded under a seed, if that has not been done.
    fn tried(&mut self, of: &Encoding, number: u32, drawn: PrfCall) -> Result<(), Fault> {
        let at = |span| self.memory.at(span);
        let (bins, known) = (u64::from(of.okvs.bins), Places::KNOWN);
        let [digests, seed, to] = [of.digests, of.seed, of.to].map(at);
        let columns = of.okvs.columns();
        let mut call = vec![columns, to, seed, number.into(), SEEDS.into()];
        call.extend(self.prf_call(drawn)?);
        call.extend([bins, of.counts, of.states, known]);
        let call = self.call(&call);
        let arguments = [
            Argument::Workspace,
            Argument::Temps,
            call,
            Argument::Verdict,
            Argument::Schedules,
        ];
        self.step(&PSI_DRAW, Some(columns + 1), &arguments);
        self.rows_of(
            (of.okvs, of.keys),
            [digests, seed, of.rows, of.counts, known],
        );
        self.apart(&PSI_STARTS, None, &[bins, of.counts, of.starts, known]);
        let call = [of.keys, of.rows, of.counts, of.entries, known];
        self.apart(&PSI_BINNED, Some(of.keys), &call);
        let mut call = store(of.okvs).to_vec();
        call.extend([digests, to, of.states, known, of.starts, of.entries]);
        call.extend([of.of_keys, of.of_columns, of.own, of.blocks, of.keys]);
        self.with_temps(&PSI_SOLVE, Some(SOLVERS * bins), &call);
        self.apart(&PSI_SETTLE, None, &[bins, of.states, known]);
        Ok(())
    }

    /// Rows of keys, from digests by a seed: to where; and what counts bins, and what is known of keys, or nothing.
    fn rows_of(&mut self, (okvs, keys): (Okvs, u64), places: [u64; 5]) {
        let [digests, rest @ ..] = places;
        let call = [&[keys, digests][..], &store(okvs), &rest].concat();
        self.with_temps(&PSI_ROWS, Some(keys.div_ceil(2)), &call);
    }

    /// Blocks that are what they should be, masked by others, or zeros, and then the batch stops.
    fn ended(&mut self, index: usize, wanted: u64, [blocks, to, by, seed]: [u64; 4]) {
        let known = Places::KNOWN;
        self.with_temps(
            &PSI_END,
            Some(blocks),
            &[known, wanted, blocks, to, by, seed],
        );
        self.apart(&PSI_STOP, None, &[known, wanted, index as u64]);
    }

    /// Tags of keys, apart: where they are.
    fn tags_of(&mut self, places: &mut Places, table: &Table, digests: Span) -> u64 {
        let keys = self.bytes(digests) / DIGEST;
        let [digests, seed, w] = [digests, table.seed, table.w].map(|span| self.memory.at(span));
        let [sum, rows, tags] = [1, keys, keys].map(|blocks| places.take(BLOCK * blocks));
        self.rows_of((table.okvs, keys), [digests, seed, rows, NONE, NONE]);
        let call = [self.bytes(table.w) / BLOCK, w, sum];
        self.with_temps(&PSI_SUM, None, &call);
        let mut call = Zeroizing::new(Vec::with_capacity(16));
        call.extend([keys, digests]);
        call.extend(store(table.okvs));
        call.extend([table.apart.into(), table.at, rows, sum, tags, head(TAG)]);
        call.push(table.offset.is_some().into());
        call.extend(numbers(table.offset.as_deref().copied().unwrap_or(0)));
        self.with_temps(&PSI_TAGS, Some(keys), &call);
        tags
    }

    fn tagged(&mut self, index: usize, (okvs, offset): (Okvs, Zeroizing<u128>), command: &Command) {
        let (src, to) = (&command.src, self.memory.at(command.dst[0]));
        let mut places = Places::new();
        let (keys, columns) = (self.bytes(src[0]) / DIGEST, okvs.columns());
        let at = places.take(BLOCK * columns);
        self.zeros_apart(Places::KNOWN, BLOCK);
        let [b, sent] = [1, 2].map(|k: usize| self.memory.at(src[k]));
        let mut call = Zeroizing::new(vec![columns, b, sent, at]);
        call.extend(numbers(*offset));
        self.with_temps(&PSI_SHIFT, Some(columns), &call);
        let table = Table {
            okvs,
            apart: true,
            at,
            seed: src[3],
            w: src[4],
            offset: Some(offset),
        };
        let tags = self.tags_of(&mut places, &table, src[0]);
        let bits = u64::from(keys.div_ceil(RANGED).max(2).next_power_of_two().ilog2());
        let counts = places.take(4 << bits);
        let starts = places.take(4 * ((1 << bits) + 1));
        let ranged = places.take(BLOCK * keys);
        self.zeros_apart(counts, 4 << bits);
        self.apart(&PSI_RANGES, Some(keys), &[keys, tags, bits, counts]);
        let call = [1 << bits, counts, starts, Places::KNOWN];
        self.apart(&PSI_STARTS, None, &call);
        let call = [keys, tags, bits, counts, ranged];
        self.apart(&PSI_RANGED, Some(keys), &call);
        let call = [keys, ranged, bits, starts, to, Places::KNOWN];
        self.with_temps(&PSI_ASCEND, Some(keys), &call);
        self.ended(index, OPEN, [keys, to, NONE, NONE]);
        self.temps = self.temps.max(places.0);
    }

    fn found(&mut self, index: usize, okvs: Okvs, command: &Command) {
        let (src, to) = (&command.src, self.memory.at(command.dst[0]));
        let mut places = Places::new();
        let (keys, theirs) = (self.bytes(src[0]) / DIGEST, self.bytes(src[4]) / BLOCK);
        let at = self.memory.at(src[4]);
        self.plain(&PSI_CHECK, Some(theirs), &[theirs, at]);
        let table = Table {
            okvs,
            apart: false,
            at: self.memory.at(src[1]),
            seed: src[2],
            w: src[3],
            offset: None,
        };
        let tags = self.tags_of(&mut places, &table, src[0]);
        self.with_temps(&PSI_FIND, Some(keys), &[keys, tags, theirs, at, to]);
        let command = Argument::Number(index as u32);
        self.step(&DECIDE, None, &[Argument::Verdict, command]);
        self.temps = self.temps.max(places.0);
    }
}

/// An encoding: its spans, and where what it takes lies apart.
struct Encoding {
    okvs: Okvs,
    keys: u64,
    digests: Span,
    seed: Span,
    to: Span,
    counts: u64,
    starts: u64,
    states: u64,
    rows: u64,
    entries: u64,
    of_keys: u64,
    of_columns: u64,
    own: u64,
    blocks: u64,
}
