//! The driver of a garbling card: programs, runs, and the streams of both, over any transport.

use veil_device::Fault;
use zeroize::{Zeroize, Zeroizing};

use crate::board::BoardError;
use crate::device::failed;
use crate::garble::{Capacity, Image};
use crate::sim::{Simulated, Stalls};
use crate::transport::{DESCRIPTOR, Descriptor, Stream, Transport};
use crate::{Absent, abi};

/// Descriptors of a ring: while the host fills or reads one buffer, the card has others.
const DEPTH: u32 = 4;
/// Bytes of a buffer: some hundred lines of tables, and more than a bundle or a line of any core.
const BUFFER: usize = 16 << 10;
/// Where buffers begin in memory: behind the descriptors of all rings.
const BUFFERS: usize = 4 << 10;

/// How often a card is asked whether a program has come wholly: a few cycles would do.
const LOOKS: u32 = 1 << 10;

/// A card does not do what it should.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CardError {
    /// It is no garbling card, or one of another version.
    #[error("it says that it is {ident:#010x} of version {version:#010x}; the driver is of garbling cards {}.x", abi::VERSION_VALUE >> 16)]
    Other {
        /// What it says it is.
        ident: u32,
        /// Its version.
        version: u32,
    },
    /// It refused a program or a run.
    #[error("it refused {what}: bits {bits:#x} of its register `error`")]
    Refused {
        /// What it was told.
        what: &'static str,
        /// Bits of `error`.
        bits: u32,
    },
    /// It says nothing.
    #[error("it was given {what}, and has been silent since")]
    Silent {
        /// What it was given.
        what: &'static str,
    },
    /// It gave more or less than the run has.
    #[error("it gave {got} bytes of {what} in place of {expected}")]
    Amount {
        /// Tables or labels.
        what: &'static str,
        /// Bytes that came.
        got: u64,
        /// Bytes that should have.
        expected: u64,
    },
    /// Its board is gone, or is none.
    #[error(transparent)]
    Board(#[from] BoardError),
}

/// What a run of a garbler is.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Repetitions of the body: netlist cycles, or rows.
    pub repetitions: u32,
    /// Number of the first product.
    pub first: u64,
    /// The low bits of the first gate's number.
    pub instance: u16,
    /// Whether repetitions are rows: each has the next instance, instead of products of its own.
    pub rows: bool,
    /// The first repetition of which labels leave.
    pub leave_from: u32,
}

/// Bytes that move in a run.
#[derive(Debug)]
pub struct Streams<'a> {
    /// Labels of inputs: those of the run, then those of each repetition, in the order of the program's image.
    pub labels: &'a [u8],
    /// Tables, in order.
    pub tables: &'a mut Vec<u8>,
    /// Labels that leave.
    pub leaves: &'a mut Vec<u8>,
}

/// The host's end of a ring.
struct Queue {
    stream: Stream,
    tail: u32,
    /// Descriptors that the host has looked at again.
    seen: u32,
}

impl Queue {
    fn new(stream: Stream, card: &mut dyn Transport) -> Result<Self, BoardError> {
        let queue = Queue {
            stream,
            tail: 0,
            seen: 0,
        };
        card.place(stream, queue.descriptor(0) as u64, DEPTH)?;
        Ok(queue)
    }

    fn descriptor(&self, number: u32) -> usize {
        (self.stream as usize * DEPTH as usize + (number % DEPTH) as usize) * DESCRIPTOR
    }

    fn buffer(&self, number: u32) -> usize {
        BUFFERS + (self.stream as usize * DEPTH as usize + (number % DEPTH) as usize) * BUFFER
    }

    /// Whether there is a descriptor that the card does not have.
    fn is_free(&self) -> bool {
        self.tail.wrapping_sub(self.seen) < DEPTH
    }

    /// Gives the card a descriptor.
    fn give(
        &mut self,
        card: &mut dyn Transport,
        bytes: usize,
        last: bool,
    ) -> Result<(), BoardError> {
        let descriptor = Descriptor {
            address: self.buffer(self.tail) as u64,
            bytes: bytes as u32,
            last,
        };
        let at = self.descriptor(self.tail);
        card.memory()[at..at + DESCRIPTOR].copy_from_slice(&descriptor.to_bytes());
        self.tail = self.tail.wrapping_add(1);
        card.doorbell(self.stream, self.tail)
    }

    /// Sends as much of `bytes` as there are descriptors for; a packet ends with the last of them, if it `ends`. Says how much that was.
    fn send(
        &mut self,
        card: &mut dyn Transport,
        bytes: &[u8],
        ends: bool,
    ) -> Result<usize, BoardError> {
        self.seen = card.head(self.stream);
        let mut sent = 0;
        while sent < bytes.len() && self.is_free() {
            let piece = &bytes[sent..bytes.len().min(sent + BUFFER)];
            let at = self.buffer(self.tail);
            card.memory()[at..at + piece.len()].copy_from_slice(piece);
            sent += piece.len();
            self.give(card, piece.len(), ends && sent == bytes.len())?;
        }
        Ok(sent)
    }

    /// Takes what has come, and gives the card room for more.
    fn receive(&mut self, card: &mut dyn Transport, into: &mut Vec<u8>) -> Result<(), BoardError> {
        while self.seen != card.head(self.stream) {
            let (at, from) = (self.descriptor(self.seen), self.buffer(self.seen));
            let memory = card.memory();
            let descriptor = memory[at..at + DESCRIPTOR]
                .try_into()
                .expect("a slice of this length");
            // The card says how much it was; it cannot be more than it had room for.
            let bytes = (Descriptor::from_bytes(descriptor).bytes as usize).min(BUFFER);
            let buffer = &mut memory[from..from + bytes];
            into.extend_from_slice(buffer);
            buffer.zeroize();
            self.seen = self.seen.wrapping_add(1);
        }
        while self.is_free() {
            self.give(card, BUFFER, false)?;
        }
        Ok(())
    }
}

/// The rings of a card, which begin.
fn queues(card: &mut dyn Transport) -> Result<[Queue; 5], BoardError> {
    let [program, labels, tables, made, leaves] = Stream::ALL;
    Ok([
        Queue::new(program, card)?,
        Queue::new(labels, card)?,
        Queue::new(tables, card)?,
        Queue::new(made, card)?,
        Queue::new(leaves, card)?,
    ])
}

/// Whether so many bytes have come of tables and of labels as are `right`, given how many there are in the run.
fn amounts(
    streams: &Streams<'_>,
    expected: [u64; 2],
    right: impl Fn(u64, u64) -> bool,
) -> Result<(), CardError> {
    let came = [
        ("tables", streams.tables.len()),
        ("labels", streams.leaves.len()),
    ];
    for ((what, got), expected) in came.into_iter().zip(expected) {
        let got = got as u64;
        if !right(got, expected) {
            return Err(CardError::Amount {
                what,
                got,
                expected,
            });
        }
    }
    Ok(())
}

/// A garbling card and its driver.
pub struct Garbler {
    card: Box<dyn Transport>,
    capacity: Capacity,
    /// In the order of [`Stream::ALL`].
    queues: [Queue; 5],
    cycles: u64,
}

impl Drop for Garbler {
    fn drop(&mut self) {
        // A card that does not answer any more keeps what it has until it is switched off.
        let _ = self.scrub();
    }
}

impl Garbler {
    /// A simulated card of `rows` rows.
    ///
    /// # Errors
    /// [`Absent::NoVerilator`] if no cores were built in, [`Absent::NotBuilt`] if none of `rows` rows was, [`Absent::Card`] as of
    /// [`Garbler::open`].
    pub fn simulated(rows: u32, stalls: Stalls) -> Result<Self, Absent> {
        Ok(Self::open(Box::new(Simulated::new(rows, stalls)?))?)
    }

    /// Takes a card into use.
    ///
    /// # Errors
    /// [`CardError::Other`] if the card is no garbler, or of another major version; [`CardError::Silent`] if it does not end its
    /// first scrub.
    pub fn open(mut card: Box<dyn Transport>) -> Result<Self, CardError> {
        card.anew();
        let (ident, version) = (card.read(abi::IDENT)?, card.read(abi::VERSION)?);
        if ident != abi::IDENT_VALUE || version >> 16 != abi::VERSION_VALUE >> 16 {
            return Err(CardError::Other { ident, version });
        }
        let capacity = Capacity {
            engines: card.read(abi::ROWS)?,
            bundles: card.read(abi::BUNDLES)?,
            xor_slots: card.read(abi::XOR_LABELS)?,
            and_slots: card.read(abi::AND_LABELS)?,
            input_slots: card.read(abi::INPUT_LABELS)?,
            lines: card.read(abi::TABLE_LINES)?,
            labels_in: card.read(abi::LABELS_IN)?.max(1),
            xor_latency: card.read(abi::XOR_LATENCY)?.max(1),
            and_latency: card.read(abi::AND_LATENCY)?.max(1),
        };
        let queues = queues(&mut *card)?;
        card.write(
            abi::INTERRUPT_ENABLE,
            abi::INTERRUPT_DONE | abi::INTERRUPT_ERROR,
        )?;
        let mut garbler = Garbler {
            card,
            capacity,
            queues,
            cycles: 0,
        };
        garbler.scrub()?;
        Ok(garbler)
    }

    /// A fault of the device whose card this is.
    pub(crate) fn fault(&self, error: &CardError) -> Fault {
        failed(self.name(), error)
    }

    /// What it has room for.
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// Name of the kind of card.
    pub fn name(&self) -> &'static str {
        self.card.name()
    }

    /// Cycles of all runs so far, from the start of each until all of it had left.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Writes a program.
    ///
    /// # Errors
    /// [`CardError::Refused`] if the card sets its register `error`, [`CardError::Silent`] if it does not take all bundles.
    pub fn load(&mut self, image: &Image) -> Result<(), CardError> {
        let what = "a program";
        // A bundle comes as whole beats.
        let beats = (4 * image.words).next_multiple_of(16);
        let count = image.bundles.len() / image.words;
        let mut bytes = Vec::with_capacity(beats * count);
        for bundle in image.bundles.chunks_exact(image.words) {
            bytes.extend(bundle.iter().flat_map(|word| word.to_le_bytes()));
            bytes.resize(bytes.len().next_multiple_of(beats), 0);
        }
        let mut sent = 0;
        self.card.anew();
        let queue = &mut self.queues[Stream::Program as usize];
        loop {
            let more = queue.send(&mut *self.card, &bytes[sent..], true)?;
            if more > 0 {
                self.card.anew();
            }
            sent += more;
            if sent == bytes.len() && queue.seen == queue.tail {
                break;
            }
            if !self.card.wait()? {
                return Err(CardError::Silent { what });
            }
        }
        // It looks at the last bundle while it is asked.
        for _ in 0..LOOKS {
            self.refused(what)?;
            if self.card.read(abi::PROGRAM_LENGTH)? == count as u32 {
                return Ok(());
            }
        }
        Err(CardError::Silent { what })
    }

    /// Runs the program that was written last; says how many cycles that took. `offset` is the garbler's, `start` the start point of the hash.
    ///
    /// # Panics
    /// If there are not the labels that the run takes.
    ///
    /// # Errors
    /// [`CardError::Refused`] if the card sets its register `error`, [`CardError::Silent`] if it stops before the run is done,
    /// [`CardError::Amount`] if it gave more or fewer bytes of tables or labels than the program has.
    pub fn run(
        &mut self,
        image: &Image,
        run: &Run,
        (offset, start): (u128, u128),
        streams: &mut Streams<'_>,
    ) -> Result<u64, CardError> {
        let repetitions = u64::from(run.repetitions);
        if repetitions == 0 {
            return Ok(0);
        }
        let inputs = image.run_inputs.len() as u64 + image.each_inputs.len() as u64 * repetitions;
        assert_eq!(
            streams.labels.len() as u64,
            16 * inputs,
            "the labels of all inputs"
        );
        let leaving = repetitions.saturating_sub(run.leave_from.into());
        let expected = [
            u64::from(image.products) * repetitions * 32,
            image.leaves.len() as u64 * leaving * 16,
        ];
        let beats = self.beats(image, streams.labels);
        let labels = beats.as_deref().map_or(streams.labels, Vec::as_slice);
        self.card.anew();
        self.parameters(image, run)?;
        self.secret(abi::OFFSET, offset)?;
        self.secret(abi::HASH_START, start)?;
        self.card.write(abi::CONTROL, abi::CONTROL_START)?;
        let mut sent = 0;
        let mut done = false;
        loop {
            let card = &mut *self.card;
            let [_, inputs, tables, _, leaves] = &mut self.queues;
            let before = sent + streams.tables.len() + streams.leaves.len();
            sent += inputs.send(card, &labels[sent..], false)?;
            tables.receive(card, streams.tables)?;
            leaves.receive(card, streams.leaves)?;
            if sent + streams.tables.len() + streams.leaves.len() > before {
                card.anew();
            }
            // More than there is would never end.
            amounts(streams, expected, |got, expected| got <= expected)?;
            if done {
                break;
            }
            if !card.wait()? {
                return Err(CardError::Silent { what: "a run" });
            }
            self.refused("a run")?;
            done = self.card.read(abi::STATUS)? & abi::STATUS_DONE != 0;
        }
        self.card.write(abi::INTERRUPT, abi::INTERRUPT_DONE)?;
        amounts(streams, expected, |got, expected| got == expected)?;
        let cycles = self.read_two(abi::RUN_CYCLES)?;
        self.cycles += cycles;
        Ok(cycles)
    }

    /// Wipes all labels, tables and secrets of the card, and the memory that it shares with the host.
    ///
    /// # Errors
    /// [`CardError::Silent`] if the card does not end it.
    pub fn scrub(&mut self) -> Result<(), CardError> {
        self.card.anew();
        self.card.write(abi::CONTROL, abi::CONTROL_SCRUB)?;
        let mut done = false;
        while !done {
            if !self.card.wait()? {
                return Err(CardError::Silent { what: "a scrub" });
            }
            done = self.card.read(abi::STATUS)? & abi::STATUS_SCRUBS == 0;
        }
        let all = abi::INTERRUPT_DONE | abi::INTERRUPT_ERROR;
        self.card.write(abi::ERROR, u32::MAX)?;
        self.card.write(abi::INTERRUPT, all)?;
        // What waited on the streams is gone with it.
        self.card.memory().zeroize();
        self.queues = queues(&mut *self.card)?;
        Ok(())
    }

    /// An error, if the card has said one since it was last asked.
    fn refused(&mut self, what: &'static str) -> Result<(), CardError> {
        match self.card.read(abi::ERROR)? {
            0 => Ok(()),
            bits => {
                self.card.write(abi::ERROR, bits)?;
                self.card.write(abi::INTERRUPT, abi::INTERRUPT_ERROR)?;
                Err(CardError::Refused { what, bits })
            }
        }
    }

    /// Labels of a run as beats of the card, where they are not already: those of the run and of each repetition begin with a beat.
    fn beats(&self, image: &Image, labels: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let beat = 16 * self.capacity.labels_in as usize;
        let [of_run, each] =
            [&image.run_inputs, &image.each_inputs].map(|inputs| 16 * inputs.len());
        if of_run % beat == 0 && each % beat == 0 {
            return None;
        }
        let (of_run, repetitions) = labels.split_at(of_run);
        let count = repetitions.len().checked_div(each).unwrap_or(0);
        let all = of_run.len().next_multiple_of(beat) + count * each.next_multiple_of(beat);
        let mut beats = Zeroizing::new(Vec::with_capacity(all));
        for group in std::iter::once(of_run).chain(repetitions.chunks(each.max(1))) {
            beats.extend_from_slice(group);
            let filled = beats.len().next_multiple_of(beat);
            beats.resize(filled, 0);
        }
        Some(beats)
    }

    fn parameters(&mut self, image: &Image, run: &Run) -> Result<(), BoardError> {
        let products = if run.rows { 0 } else { image.products };
        let keep = if image.lines == 0 {
            0
        } else {
            (1 << image.last_line) - 1
        };
        let parameters = [
            (abi::INSTANCE, run.instance.into()),
            (abi::FIRST, run.first as u32),
            (abi::FIRST + 4, (run.first >> 32) as u32),
            (abi::STEP_FIRST, products),
            (abi::STEP_INSTANCE, run.rows.into()),
            (abi::PROLOGUE, image.prologue),
            (abi::KERNEL, image.kernel),
            (abi::CYCLES, run.repetitions),
            (abi::REPEATS, run.repetitions + image.stages),
            (abi::LAST, image.last),
            (abi::LEAVE_FROM, run.leave_from.min(run.repetitions)),
            (abi::LEAVES, image.leaves.len() as u32),
            (abi::LINES, image.lines),
            (abi::LAST_KEEP, keep),
            (abi::INPUTS_OF_RUN, image.run_inputs.len() as u32),
            (abi::INPUTS_OF_CYCLE, image.each_inputs.len() as u32),
            (abi::INPUT_RING, image.input_ring),
            (abi::INPUT_STAGES, image.input_stages),
            (abi::MODE, 0),
        ];
        for (register, value) in parameters {
            self.card.write(register, value)?;
        }
        Ok(())
    }

    /// Writes a secret of four words.
    fn secret(&mut self, register: u32, secret: u128) -> Result<(), BoardError> {
        let bytes = Zeroizing::new(secret.to_le_bytes());
        for (register, word) in (register..).step_by(4).zip(bytes.as_chunks::<4>().0) {
            self.card.write(register, u32::from_le_bytes(*word))?;
        }
        Ok(())
    }

    /// Reads a register of two words.
    fn read_two(&mut self, register: u32) -> Result<u64, BoardError> {
        let low = u64::from(self.card.read(register)?);
        Ok(low | u64::from(self.card.read(register + 4)?) << 32)
    }
}
