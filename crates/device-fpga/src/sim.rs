//! Cards that are simulated: what Verilator made of the RTL, and the engine that moves data between memory and streams.

use std::ffi::c_void;
use std::ptr;

use zeroize::Zeroize;

use crate::Absent;
use crate::board::BoardError;
use crate::garble::Capacity;
use crate::instance::{Free, Instance};
use crate::transport::{DESCRIPTOR, Descriptor, Stream, Transport};

/// Memory that the host and a simulated card see: a few times what the driver keeps on its way.
const MEMORY: usize = 1 << 20;

/// Cycles in which nothing moves before a card is given up: a scrub takes some thousands, the longest kernel without a table as many.
const PATIENCE: u64 = 1 << 18;

/// Random pauses of every stream: in so many of 256 cycles, by a seed. Nothing that is computed depends on them.
#[derive(Clone, Copy, Default, Debug)]
pub struct Stalls {
    /// Seed.
    pub seed: u64,
    /// Of 256 cycles.
    pub rate: u8,
}

#[repr(C)]
struct Segment {
    data: *mut u8,
    len: usize,
    at: usize,
    last: bool,
    ended: bool,
}

#[repr(C)]
struct Ports {
    /// In the order of [`Stream::ALL`].
    segments: [Segment; 5],
}

/// The functions of one model.
struct Model {
    rows: u32,
    new: unsafe extern "C" fn(u64, u32) -> *mut c_void,
    free: Free,
    read: unsafe extern "C" fn(*mut c_void, u32) -> u32,
    write: unsafe extern "C" fn(*mut c_void, u32, u32),
    step: unsafe extern "C" fn(*mut c_void, *mut Ports, u64) -> bool,
}

/// The table of models, from the names of their functions.
macro_rules! garblers {
    ($($rows:literal: $new:ident $free:ident $read:ident $write:ident $step:ident;)*) => {
        unsafe extern "C" {
            $(
                fn $new(seed: u64, rate: u32) -> *mut c_void;
                fn $free(card: *mut c_void);
                fn $read(card: *mut c_void, register: u32) -> u32;
                fn $write(card: *mut c_void, register: u32, value: u32);
                fn $step(card: *mut c_void, ports: *mut Ports, most: u64) -> bool;
            )*
        }

        static MODELS: &[Model] = &[$(Model {
            rows: $rows,
            new: $new,
            free: $free,
            read: $read,
            write: $write,
            step: $step,
        }),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/garblers.rs"));

/// A ring of descriptors, as the engine sees it.
#[derive(Clone, Copy, Default)]
struct Ring {
    address: u64,
    descriptors: u32,
    head: u32,
    tail: u32,
    /// Bytes of the first descriptor that have moved.
    moved: usize,
}

/// A simulated garbling card.
pub struct Simulated {
    model: &'static Model,
    card: Instance,
    memory: Vec<u8>,
    rings: [Ring; 5],
}

impl Drop for Simulated {
    fn drop(&mut self) {
        self.memory.zeroize();
    }
}

impl Simulated {
    /// Numbers of rows of the garblers that are in this build.
    pub fn built() -> Vec<u32> {
        MODELS.iter().map(|model| model.rows).collect()
    }

    /// What simulated cards of so many rows have room for, whether they are in this build or not.
    pub const fn capacity(rows: u32) -> Capacity {
        Capacity {
            engines: rows,
            bundles: 1 << 14,
            xor_slots: 1 << 12,
            and_slots: 1 << 12,
            input_slots: 1 << 12,
            lines: 1 << 10,
            labels_in: 2,
            xor_latency: 1,
            and_latency: 10,
        }
    }

    /// A card whose garbler has `rows` rows, just switched on.
    ///
    /// # Errors
    /// [`Absent::NoVerilator`] if no cards were built in, [`Absent::NotBuilt`] if none of `rows` rows was.
    pub fn new(rows: u32, stalls: Stalls) -> Result<Self, Absent> {
        if MODELS.is_empty() {
            return Err(crate::NONE);
        }
        let model = MODELS.iter().find(|model| model.rows == rows);
        let model = model.ok_or(Absent::NotBuilt { engines: rows })?;
        // SAFETY: the function has these arguments, and makes a card, which is freed by no other.
        let card = unsafe {
            let card = (model.new)(stalls.seed, stalls.rate.into());
            Instance::new(card, model.free)
        };
        Ok(Simulated {
            model,
            card,
            memory: vec![0; MEMORY],
            rings: [Ring::default(); 5],
        })
    }

    /// The descriptor that a stream is at, if there is one, and where it is in memory.
    fn descriptor(&self, ring: Ring) -> Option<(usize, Descriptor)> {
        let waiting = ring.tail.wrapping_sub(ring.head);
        if ring.descriptors == 0 || waiting == 0 {
            return None;
        }
        let number = u64::from(ring.head % ring.descriptors);
        let at = ring.address.checked_add(number * DESCRIPTOR as u64)?;
        let at = usize::try_from(at).ok()?;
        let bytes = self.memory.get(at..at.checked_add(DESCRIPTOR)?)?;
        let descriptor = Descriptor::from_bytes(bytes.try_into().ok()?);
        let end = descriptor.address.checked_add(descriptor.bytes.into())?;
        (end <= self.memory.len() as u64).then_some((at, descriptor))
    }

    fn segment(&mut self, stream: usize) -> Segment {
        let ring = self.rings[stream];
        let Some((_, descriptor)) = self.descriptor(ring) else {
            return Segment {
                data: ptr::null_mut(),
                len: 0,
                at: 0,
                last: false,
                ended: false,
            };
        };
        let from = descriptor.address as usize;
        let bytes = &mut self.memory[from..from + descriptor.bytes as usize];
        Segment {
            data: bytes.as_mut_ptr(),
            len: bytes.len(),
            at: ring.moved,
            // Of what comes from the card it is the card that says where packets end.
            last: descriptor.last && stream < 2,
            ended: false,
        }
    }

    /// Writes down what has moved in a stream; says whether anything has.
    fn moved(&mut self, stream: usize, segment: &Segment) -> bool {
        let Some((at, descriptor)) = self.descriptor(self.rings[stream]) else {
            return false;
        };
        let ring = &mut self.rings[stream];
        let moved = segment.at != ring.moved;
        ring.moved = segment.at;
        if segment.ended {
            let done = Descriptor {
                bytes: segment.at as u32,
                last: segment.last,
                ..descriptor
            };
            self.memory[at..at + DESCRIPTOR].copy_from_slice(&done.to_bytes());
            ring.head = ring.head.wrapping_add(1);
            ring.moved = 0;
        }
        moved || segment.ended
    }
}

impl Transport for Simulated {
    fn name(&self) -> &'static str {
        "fpga-sim"
    }

    fn read(&mut self, register: u32) -> Result<u32, BoardError> {
        // SAFETY: the card is there.
        Ok(unsafe { (self.model.read)(self.card.as_ptr(), register) })
    }

    fn write(&mut self, register: u32, value: u32) -> Result<(), BoardError> {
        // SAFETY: the card is there.
        unsafe { (self.model.write)(self.card.as_ptr(), register, value) };
        Ok(())
    }

    fn memory(&mut self) -> &mut [u8] {
        &mut self.memory
    }

    fn place(&mut self, stream: Stream, address: u64, descriptors: u32) -> Result<(), BoardError> {
        self.rings[stream as usize] = Ring {
            address,
            descriptors,
            ..Ring::default()
        };
        Ok(())
    }

    fn doorbell(&mut self, stream: Stream, tail: u32) -> Result<(), BoardError> {
        self.rings[stream as usize].tail = tail;
        Ok(())
    }

    fn head(&mut self, stream: Stream) -> u32 {
        self.rings[stream as usize].head
    }

    fn wait(&mut self) -> Result<bool, BoardError> {
        let mut ports = Ports {
            segments: [0, 1, 2, 3, 4].map(|stream| self.segment(stream)),
        };
        // SAFETY: segments are null or parts of `memory`, which no other code touches meanwhile.
        let high = unsafe { (self.model.step)(self.card.as_ptr(), &raw mut ports, PATIENCE) };
        let mut moved = high;
        for (stream, segment) in ports.segments.iter().enumerate() {
            moved |= self.moved(stream, segment);
        }
        Ok(moved)
    }
}
