//! Commands: operation, sources, destinations, length (by the spans), randomness, tag.

use std::sync::Arc;

use veil_math::Ring;
use veil_prss::DomainTag;

use crate::ag::{self, Ag};
use crate::cut::{self, Cut};
use crate::garble::{self, Garbling};
use crate::layout::{ColumnType, Layout, Residency, Span};
use crate::lift::{self, Lifting};
use crate::mac::BLOCK;
use crate::matmul::{self, MatMul};
use crate::moves;
use crate::ot::{self, Ot};
use crate::program::Needs;
use crate::proof::{self, Proof};
use crate::psi::{self, Psi};
use crate::rank;
use crate::repeat::Repeat;
use crate::silent::{self, Silent};
use crate::truncation::{self, Truncation};
use crate::{Fault, Form};

/// A key that was loaded into the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct KeyId(pub u16);

/// A program that was loaded into the device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ProgramId(pub u32);

/// A call of the PRF for pseudorandom elements: under which key, what for, from which counter.
///
/// Column `p` of a command starts at counter `first + p · stride`, where the stride is the number of AES blocks that a full
/// chunk of one column takes (one block for a single element).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PrfCall {
    /// Key.
    pub key: KeyId,
    /// Domain tag, at the head of the PRF's input.
    pub tag: DomainTag,
    /// Counter of column 0.
    pub first: u64,
}

/// The operation of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Op {
    /// Runs the program; it has no products.
    Linear,
    /// Runs the program. dst: a message of row products for each cross term, then (if the program has any) a message of sums for each;
    /// calls: of row products, then of sums.
    ///
    /// One more dst is a trace, which the replicated product of bits can have where every product has one pair of operands: of each product
    /// its operands' components (u, u'), (w, w') and its two masks, parts 0 to 5 of the trace's columns in the order of the message.
    ///
    /// Where slots are a [`Residency::Plane`], and a component of the result is a cross term and nothing else, that
    /// component of the slots is the message of row products; then the place of another one may be a span without columns.
    Product(&'static Form),
    /// src: columns of planes, which the host will view as they are now.
    Publish,
    /// Adds received products of the program to component `component` of their results. src 0: message of row products, src 1: of sums.
    AddReceived {
        /// Component that grows.
        component: u8,
    },
    /// dst 0 = pseudorandom elements of call 0.
    Random,
    /// dst 0 = Σ ± src ± pseudorandom elements of the calls; bit k of `minus` set: source k is subtracted; bit `src.len() + k`: so is call k. No
    /// source and no call: zero. The destination may be source 0 itself, if that is not subtracted; it overlaps no other.
    ///
    /// Bits beyond the last row become zero: rows that do not exist are computed along, on job-wide values, and must never be
    /// opened. Labels and [words](ColumnType::Words) are combined as bits are, to their XOR, for which signs mean nothing. There are calls in sums of
    /// integers and of words, in rows that are no [`Residency::Plane`]'s; each is drawn as [`Op::Random`] draws.
    Combine {
        /// Ring.
        ring: Ring,
        /// Signs.
        minus: u32,
    },
    /// dst 0 (32 bytes) = SHA-256(session ‖ LE16 label ‖ LE16 epoch ‖ LE16 lane ‖ LE32 chunk ‖ LE32 rows ‖ calls ‖ sources). Of a call, which says
    /// what the sources were drawn from, it hashes LE16 of the use and LE64 of the first counter, and draws nothing. Of a source, its bytes; if
    /// these are more than 1024, the digests of its pieces of so many bytes in their place, until they are not more ([`hash`](crate::hash)).
    Hash {
        /// The use of the digest; equal at both ends, different for each use.
        label: u16,
    },
    /// dst 0 (16 bytes) = POLYVAL of the sources, which the host reaches, XOR call 0: a MAC by which a holder of the call's key knows that
    /// another holder hashed the same bytes. The hash's key is block ([`DomainTag::MAC_KEY`], 0, 0, 0) of the call's key. Each source's bytes are
    /// padded with zeros to whole blocks; then follows LE64 of their number, padded too.
    Mac,
    /// Bits of a column of integers: column k of dst 0 is bit `first + k` of every row of src 0, which is one column of rows, or of a job-wide
    /// value. Bits beyond the last row become zero.
    Split {
        /// Bit that column 0 is.
        first: u32,
    },
    /// dst 0 = src 0, column by column: bits as the integers 0 and 1.
    Lift,
    /// dst 0 = ⌊src 0 / 2^by⌋ of every row of one column of integers from 0 on; the source is of rows, or of what all rows share.
    Shift {
        /// Fewer than the ring has bits.
        by: u32,
    },
    /// dst 0 = src 0 · src 1, column by column and row by row, of integers.
    Scale,
    /// dst 0 = src 0, column by column: integers from 0 on as elements of the ring of the destination, of which the lowest bits are kept. The
    /// source is of rows, or of what all rows share.
    Resize,
    /// dst 0, one element, += Σ a (c + d) + b c over all columns and rows of the sources a, b, c, d: what a party computes itself of the sum
    /// of products of two replicated values (a, b), (c, d). Elements of a and b are in the ring of the others, or integers
    /// from 0 on in Z_2^64 beside Z_2^128.
    Dot,
    /// A step of lifts of bits to integers.
    Lifting(Lifting),
    /// A step of truncations of integers among three parties.
    Truncation(Truncation),
    /// dst 0, a column of integers modulo 2^32, = the permutation of the chunk's rows that [`Prf::permutation`](veil_prss::Prf::permutation) draws by
    /// call 0: of each row the position to which it moves. It takes [`permutation_counters`](veil_prss::permutation_counters) counters.
    ///
    /// Memory is reached at positions that follow from the permutation, which the party knows.
    Permutation,
    /// Moves rows of integers or words, column by column. src 0: rows; src 1, and src 2 if there is one: permutations, a column of integers modulo
    /// 2^32 each, p1 and p2. dst\[p2(p1(j))\] = src\[j\]; without p2, p1 alone. `back` undoes that: dst\[j\] = src\[p2(p1(j))\].
    ///
    /// An entry that is no row is a [`Fault::Shape`], and the destination may have changed then. Entries below the number of rows that are no
    /// permutation are none: rows move in their order, the last one to a position stays, and a position to which no row moves keeps what it has.
    ///
    /// Memory is reached at positions that follow from the permutations, which the party knows.
    Permute {
        /// Whether rows move back.
        back: bool,
    },
    /// dst 0 = the inverse of the permutation src 0, columns of integers modulo 2^32, the source where the host reaches it. If the source is no
    /// permutation of the rows, because an entry is no row or is there twice, dst 0 becomes zero, and the batch ends with [`Outcome::Mismatch`]. Without a
    /// destination that is all: a look whether it is a permutation.
    ///
    /// Memory is reached at positions that follow from the permutation, which the party knows.
    Invert,
    /// The position of every row by a digit of its key, as a stable sort by counting has it: products of columns with running sums. Of all digits t but 0,
    /// src are the indicators E_t in Z_2^32, 1 in rows that have the digit and 0 in others: all components of E_1, then those of E_2, and so on. E_0 is
    /// 1 - Σ E_t, with the public 1 on the components that [`Command::constants`] names. In row j
    ///
    /// ```text
    /// S_t[j] = Σ_{u<t} Σ_i E_u[i] + Σ_{i<j} E_t[i]      position[j] = S_0[j] + Σ_{t>0} E_t[j] · (S_t[j] - S_0[j])
    /// ```
    ///
    /// with the sum of products as one product of the form: cross terms, masks and kept calls as of one product, and S_0 on every component that is
    /// written. dst: the components that [`Form::writes`] names, in order; then the messages of cross terms that are no component of the result.
    /// calls: those of the form, each drawn as [`Op::Random`] draws one column.
    Rank(&'static Form),
    /// A product of matrices: of every element a sum of products of the form, with masks and kept calls as of one product. src: of the left matrix, all
    /// components of its first column, then those of its second, and so on; then the right matrix, of columns of rows in the same order, of elements that
    /// all rows share one span for each component. dst: the components that [`Form::writes`] names, in order; then the messages of cross terms that are no
    /// component of the result; of each its columns, or the span of its elements. calls: those of the form, each drawn as [`Op::Random`] draws all columns
    /// of the product, or all of its elements.
    MatMul(MatMul),
    /// Compares src 0 with src 1, in constant time; unequal ends the batch with [`Outcome::Mismatch`].
    CheckEqual,
    /// A step of a proof that products of bits are right.
    Proof(Proof),
    /// A step of oblivious transfers between two parties.
    Ot(Ot),
    /// A step of silent transfers between two parties.
    Silent(Silent),
    /// A step of an intersection of the keys of two parties.
    Psi(Psi),
    /// A step of cut-and-choose between two parties, in a workspace whose rows are circuits.
    Cut(Cut),
    /// A step of authenticated garbling between two parties.
    Ag(Ag),
    /// Runs the program, whose slots are [`ColumnType::Labels`], as the garbler: every value is its zero-label. A sum is an XOR, a public 1 is
    /// the offset Δ (so that x + 1 is x ⊕ Δ, and the constant c is c Δ), and each product is an AND, whose table goes into the messages
    /// that are the dst: [`Garbling::tables`]. A program without products needs neither messages nor calls.
    ///
    /// calls: the start point of the hash, whose `first` is the number of product 0 within the chunk ([`garble`]); then, if the scheme has
    /// dice, the dice of product 0. The program has single pairs as products.
    Garble {
        /// How tables are made.
        scheme: Garbling,
        /// The key that is Δ; its bit 0 is 1.
        offset: KeyId,
    },
    /// The same as the evaluator: every value is its active label, a public 1 is nothing (the constant c has the label 0), and tables are
    /// read from the messages that are the src. calls: the start point of the hash.
    Evaluate {
        /// How tables were made.
        scheme: Garbling,
    },
    /// dst 0 = src 0 ⊕ (src 1) · Δ, column by column: labels, a bit for each, the active labels. [`ColumnType::Labels`] and rows of bits, or
    /// [`ColumnType::Label`] and bits that all rows share. The destination may be source 0.
    Encode {
        /// The key that is Δ.
        offset: KeyId,
    },
    /// dst 0 = the colour, bit 0, of each label of src 0: rows of bits of [`ColumnType::Labels`], bits that all rows share of [`ColumnType::Label`].
    /// Bits beyond the last row become zero.
    Colour,
    /// Does the commands of a body, written out as often as they are repeated. It has neither spans nor calls of its own.
    Repeat(Arc<Repeat>),
}

/// A command over whole spans of a workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Operation.
    pub op: Op,
    /// The program of `Linear`, `Product`, `Scatter`.
    pub program: Option<ProgramId>,
    /// Components that public constants of the program act on: bit p for part p.
    pub constants: u8,
    /// Sources.
    pub src: Vec<Span>,
    /// Destinations.
    pub dst: Vec<Span>,
    /// Randomness.
    pub calls: Vec<PrfCall>,
}

impl Command {
    /// A command without program and randomness.
    pub fn new(op: Op, src: Vec<Span>, dst: Vec<Span>) -> Self {
        Command {
            op,
            program: None,
            constants: 0,
            src,
            dst,
            calls: Vec::new(),
        }
    }

    /// Where the trace of the products goes, if there is one.
    pub fn trace(&self) -> Option<Span> {
        match self.op {
            Op::Product(form) => self.dst.get(2 * form.crosses.len()).copied(),
            _ => None,
        }
    }

    /// Refuses what cannot be done in a workspace of `layout` with `rows` rows. `program` is what the command's program needs, if it has one:
    /// whatever a device does after this stays within the regions that the command names.
    ///
    /// # Errors
    /// [`Fault::Shape`] if a span is outside its region, or spans, calls or their number do not fit the operation;
    /// [`Fault::Unknown`] if the operation runs a program and `program` is none; [`Fault::Program`] if the program was loaded for
    /// workspaces of another layout.
    pub fn check(
        &self,
        index: usize,
        (layout, rows): (&Layout, u32),
        program: Option<&Needs>,
    ) -> Result<(), Fault> {
        let shape = |what| {
            Err(Fault::Shape {
                command: index,
                what,
            })
        };
        if !(self.src.iter().chain(&self.dst)).all(|span| layout.contains(*span)) {
            return shape("a span outside its region");
        }
        let lent = |span: &Span| layout.regions[span.region as usize].residency == Residency::Lent;
        if self.src.iter().chain(&self.dst).any(lent) && !moves::takes_lent(&self.op) {
            return shape(moves::LENT);
        }
        if self.calls.len() > MOST_PRF_CALLS || self.calls.iter().any(|d| d.first > LAST_COUNTER) {
            return shape("more draws than a product has, or a counter that no plan reaches");
        }
        let column = |span: &Span| layout.regions[span.region as usize].column;
        let bytes = |span: &Span| column(span).bytes(rows);
        match &self.op {
            Op::Linear | Op::Product(_) | Op::AddReceived { .. } => {
                let program = program.ok_or(NO_PROGRAM)?;
                return self.check_with(index, layout, program);
            }
            Op::Publish => {
                let plane =
                    |s: &Span| layout.regions[s.region as usize].residency == Residency::Plane;
                if !self.src.iter().all(plane) {
                    return shape("what is published is a plane's");
                }
            }
            Op::Random if self.dst.is_empty() || self.calls.is_empty() => {
                return shape("one destination and one draw are needed");
            }
            Op::Random if moves::is_strange(&layout.regions[self.dst[0].region as usize]) => {
                return shape(moves::WORDS);
            }
            Op::Random => {}
            Op::Combine { ring, minus } => {
                let Some(to) = self.dst.first() else {
                    return shape("one destination is needed");
                };
                // A chunk of one row may be combined with what all rows share.
                let labels = [ColumnType::Labels, ColumnType::Label];
                let kinds = match ring {
                    Ring::Bits if labels.contains(&column(to)) => labels,
                    Ring::Bits if matches!(column(to), ColumnType::Words(_)) => [column(to); 2],
                    ring => [ColumnType::Rows(*ring), ColumnType::One(*ring)],
                };
                let same = |s: &Span| {
                    (s.count, bytes(s)) == (to.count, bytes(to)) && kinds.contains(&column(s))
                };
                if self.src.len() > 32 || !self.src.iter().chain([to]).all(same) {
                    return shape("sources and destination differ in length");
                }
                moves::check_sum(self, layout).or_else(shape)?;
                // It would read what it has written.
                let bad = |(k, s): (usize, &Span)| {
                    to.overlaps(*s) && !(k == 0 && minus & 1 == 0 && to.first == s.first)
                };
                if self.src.iter().enumerate().any(bad) {
                    return shape("the destination overlaps a source");
                }
            }
            Op::Hash { .. } => match self.dst.first() {
                Some(to) if column(to) == ColumnType::Bytes(32) && to.count == 1 => {}
                _ => return shape("a digest of 32 bytes is needed"),
            },
            Op::Mac => {
                let reached = |s: &Span| layout.regions[s.region as usize].residency.is_packed();
                let whole =
                    |to: &Span| column(to) == ColumnType::Bytes(BLOCK as u32) && to.count == 1;
                if self.calls.is_empty() || !self.dst.first().is_some_and(whole) {
                    return shape("a code of 16 bytes and a draw are needed");
                }
                if !self.src.iter().all(reached) {
                    return shape("a code is of what the host reaches");
                }
            }
            Op::Split { first } => {
                let ([from], [to]) = (&self.src[..], &self.dst[..]) else {
                    return shape("one source and one destination are needed");
                };
                let (ColumnType::Rows(ring) | ColumnType::One(ring)) = column(from) else {
                    return shape("bits are of ring elements");
                };
                let bits = ColumnType::Rows(Ring::Bits);
                if from.count != 1 || ring == Ring::Bits || column(to) != bits {
                    return shape("bits of one item of integers are needed");
                }
                if first
                    .checked_add(to.count)
                    .is_none_or(|end| end > ring.bits())
                {
                    return shape("a bit beyond the ring");
                }
            }
            Op::Shift { by } => {
                let ([from], [to]) = (&self.src[..], &self.dst[..]) else {
                    return shape("one source and one destination are needed");
                };
                let fits = match column(to) {
                    ColumnType::Rows(ring) if ring != Ring::Bits => {
                        let same =
                            [ColumnType::Rows(ring), ColumnType::One(ring)].contains(&column(from));
                        same && *by < ring.bits()
                    }
                    _ => false,
                };
                if !fits || (from.count, to.count) != (1, 1) {
                    return shape("two items of integers that have more bits are needed");
                }
                if to.overlaps(*from) {
                    return shape("the destination overlaps a source");
                }
            }
            Op::Lift => {
                let ([from], [to]) = (&self.src[..], &self.dst[..]) else {
                    return shape("one source and one destination are needed");
                };
                let ring = matches!(
                    column(to),
                    ColumnType::Rows(Ring::Z32 | Ring::Z64 | Ring::Z128)
                );
                if column(from) != ColumnType::Rows(Ring::Bits) || !ring || from.count != to.count {
                    return shape("as many items of integers as of bits are needed");
                }
            }
            Op::Scale => {
                let ([a, b], [to]) = (&self.src[..], &self.dst[..]) else {
                    return shape("two sources and one destination are needed");
                };
                let integers = matches!(
                    column(to),
                    ColumnType::Rows(Ring::Z32 | Ring::Z64 | Ring::Z128)
                );
                let same = |s: &Span| column(s) == column(to) && s.count == to.count;
                if !integers || ![a, b].into_iter().all(same) {
                    return shape("as many items of one ring of integers are needed");
                }
                if to.overlaps(*a) || to.overlaps(*b) {
                    return shape("the destination overlaps a source");
                }
            }
            Op::Resize => {
                let ([from], [to]) = (&self.src[..], &self.dst[..]) else {
                    return shape("one source and one destination are needed");
                };
                let fits = match (column(from), column(to)) {
                    (ColumnType::Rows(a), ColumnType::Rows(b))
                    | (ColumnType::One(a), ColumnType::One(b) | ColumnType::Rows(b)) => {
                        a != Ring::Bits && b != Ring::Bits
                    }
                    _ => false,
                };
                if !fits || from.count != to.count {
                    return shape("as many items of integers are needed");
                }
                if to.overlaps(*from) {
                    return shape("the destination overlaps a source");
                }
            }
            Op::Dot => {
                let ([a, b, c, d], [to]) = (&self.src[..], &self.dst[..]) else {
                    return shape("four sources and one destination are needed");
                };
                let rings = match (column(a), column(c)) {
                    (ColumnType::Rows(x), ColumnType::Rows(y))
                    | (ColumnType::One(x), ColumnType::One(y)) => Some((x, y)),
                    _ => None,
                };
                let ring = match rings {
                    Some((Ring::Z64, Ring::Z128)) => Ring::Z128,
                    Some((x, y)) if x != Ring::Bits && x == y => y,
                    _ => {
                        return shape(
                            "integers are needed, and factors of their ring, or of Z_2^64 beside Z_2^128",
                        );
                    }
                };
                if column(b) != column(a)
                    || column(d) != column(c)
                    || column(to) != ColumnType::One(ring)
                {
                    return shape("components of two values, and one element, are needed");
                }
                if self.src.iter().any(|s| s.count != a.count) || to.count != 1 {
                    return shape("as many items of each component, and one element, are needed");
                }
                if self.src.iter().any(|s| to.overlaps(*s)) {
                    return shape("the destination overlaps a source");
                }
            }
            Op::CheckEqual => match &self.src[..] {
                [a, b] if (a.count, bytes(a)) == (b.count, bytes(b)) => {}
                _ => return shape("two sources of the same length are needed"),
            },
            Op::Lifting(step) => return lift::check(*step, self, layout).or_else(shape),
            Op::Truncation(step) => {
                return truncation::check(*step, self, layout).or_else(shape);
            }
            Op::Permutation => return moves::check_drawn(self, layout).or_else(shape),
            Op::Permute { .. } => return moves::check_moved(self, layout).or_else(shape),
            Op::Invert => return moves::check_inverted(self, layout).or_else(shape),
            Op::Rank(form) => return rank::check(form, self, layout).or_else(shape),
            Op::MatMul(of) => return matmul::check(*of, self, layout).or_else(shape),
            Op::Proof(step) => return proof::check(*step, self, (layout, rows)).or_else(shape),
            Op::Ot(step) => return ot::check(*step, self, (layout, rows)).or_else(shape),
            Op::Silent(step) => return silent::check(*step, self, (layout, rows)).or_else(shape),
            Op::Psi(step) => return psi::check(*step, self, layout).or_else(shape),
            Op::Cut(step) => {
                return cut::check(*step, self, (layout, rows), program).or_else(shape);
            }
            Op::Ag(step) => {
                if program.is_some_and(|program| !program.met_by(layout)) {
                    return Err(OTHER_LAYOUT);
                }
                return ag::check(*step, self, (layout, rows), program).or_else(shape);
            }
            Op::Garble { .. } | Op::Evaluate { .. } => {
                if !program.ok_or(NO_PROGRAM)?.met_by(layout) {
                    return Err(OTHER_LAYOUT);
                }
                return garble::check(self, (layout, rows), program).or_else(shape);
            }
            Op::Repeat(repeat) => return repeat.check(index, layout),
            Op::Encode { .. } | Op::Colour => {
                return garble::check(self, (layout, rows), program).or_else(shape);
            }
        }
        Ok(())
    }

    /// The same of a command with a program: its workspace, its components, and its messages, which are long enough for all products.
    fn check_with(&self, index: usize, layout: &Layout, program: &Needs) -> Result<(), Fault> {
        let shape = |what| {
            Err(Fault::Shape {
                command: index,
                what,
            })
        };
        if !program.met_by(layout) {
            return Err(OTHER_LAYOUT);
        }
        if program.labels {
            return shape("a program over labels, which is garbled or evaluated");
        }
        let has = |component: u8| component < program.regions[0].components;
        let (messages, crosses, form) = match &self.op {
            Op::AddReceived { component } if has(*component) => (&self.src, 1, None),
            Op::Product(form)
                if form.ring == program.ring && form.fits(program.regions[0].components) =>
            {
                let each = form.calls();
                let kinds = 1 + usize::from(program.messages[1] > 0);
                if self.calls.len() < each * kinds || self.calls.len() > each * 2 {
                    return shape("not the draws of the form");
                }
                if let Some(trace) = self.trace()
                    && !(form.traces() && program.traces(layout, trace))
                {
                    return shape("a trace of products that can have none, or of another shape");
                }
                (&self.dst, form.crosses.len(), Some(*form))
            }
            Op::Linear if program.messages == [0, 0] => return Ok(()),
            Op::Linear => return shape("a linear command whose program has products"),
            _ => return shape("a component that the slots do not have"),
        };
        let columns = [
            ColumnType::Rows(program.ring),
            ColumnType::One(program.ring),
        ];
        for (m, (length, column)) in program.messages.into_iter().zip(columns).enumerate() {
            if length == 0 {
                continue;
            }
            for cross in 0..crosses {
                let Some(span) = messages.get(m * crosses + cross) else {
                    return shape("a message is missing");
                };
                let of_slots = |form: &Form| program.is_message(form, cross);
                if m == 0 && span.count == 0 && form.is_some_and(of_slots) {
                    continue;
                }
                let region = &layout.regions[span.region as usize];
                if region.column != column || !region.residency.is_packed() || length > span.count {
                    return shape("a message is too short for its products");
                }
            }
        }
        Ok(())
    }
}

/// A command without the program that it needs.
pub(crate) const NO_PROGRAM: Fault = Fault::Unknown("the program of a command");

/// A command in a workspace that its program was not loaded for.
const OTHER_LAYOUT: Fault = Fault::Program("it was loaded for workspaces of another layout");

/// Calls of a product: for rows, and for sums.
const MOST_PRF_CALLS: usize = 2 * Form::MOST_PRF_CALLS;

/// Counters beyond this would overflow within a command; no plan comes near.
const LAST_COUNTER: u64 = u64::MAX >> 1;

/// How a batch of commands ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All commands took effect.
    Done,
    /// A check failed: the number of the command in its batch. Not a fault of the device.
    Mismatch {
        /// Index in the batch.
        command: usize,
    },
}

/// Name of a batch, chosen by the submitter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tag(pub u64);

/// The end of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Which batch.
    pub tag: Tag,
    /// How it ended.
    pub outcome: Outcome,
}
