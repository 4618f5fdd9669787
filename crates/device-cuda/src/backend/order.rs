//! In which order streams do what they are told.
//!
//! A device has three: one copies from the host, one launches and copies within the device, one copies to the host. What one stream has is done in order;
//! a stream that touches memory waits until all others have done what they were told about it before, and for nothing else. So copies of one
//! workspace go on while another one computes.

use std::collections::{BTreeMap, VecDeque};

use super::Error;

/// A stream of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Copies from the host.
    Up,
    /// Launches, and copies within the device.
    Run,
    /// Copies to the host.
    Down,
}

impl Stream {
    /// All of them.
    pub const ALL: [Stream; 3] = [Stream::Up, Stream::Run, Stream::Down];
}

/// What a machine has to make streams wait for each other.
pub(crate) trait Streams {
    /// A place in a stream.
    type Event;

    /// Says when all that the stream has now is done.
    fn record(&mut self, on: Stream) -> Result<Self::Event, Error>;

    /// What the stream gets from now on waits for that.
    fn wait(&mut self, on: Stream, event: &Self::Event) -> Result<(), Error>;
}

/// Events of a stream that are kept: a stream that wants an older one waits for the oldest.
const KEPT: usize = 16;

/// Who has to wait for whom.
pub(crate) struct Order<E> {
    /// How much each stream was told.
    told: [u64; 3],
    /// Events, and of how much of their stream.
    events: [VecDeque<(u64, E)>; 3],
    /// How much of each stream each one has waited for.
    seen: [[u64; 3]; 3],
    /// What each stream was told last about memory, by the name of it.
    last: BTreeMap<u64, [u64; 3]>,
}

impl<E> Order<E> {
    pub(crate) fn new() -> Self {
        Order {
            told: [0; 3],
            events: [const { VecDeque::new() }; 3],
            seen: [[0; 3]; 3],
            last: BTreeMap::new(),
        }
    }

    /// The first event of a stream by which so much is done.
    fn event(
        &mut self,
        of: Stream,
        done: u64,
        machine: &mut impl Streams<Event = E>,
    ) -> Result<&(u64, E), Error> {
        let events = &mut self.events[of as usize];
        if events.back().is_none_or(|(by, _)| *by < done) {
            let event = machine.record(of)?;
            if events.len() == KEPT {
                events.pop_front();
            }
            events.push_back((self.told[of as usize], event));
        }
        let at = events.partition_point(|(by, _)| *by < done);
        Ok(&events[at])
    }

    /// Before a stream is told something about memory.
    pub(crate) fn tell(
        &mut self,
        on: Stream,
        memory: &[u64],
        machine: &mut impl Streams<Event = E>,
    ) -> Result<(), Error> {
        for other in Stream::ALL {
            if other == on {
                continue;
            }
            let last = memory.iter().filter_map(|name| self.last.get(name));
            let last = last.map(|last| last[other as usize]).max().unwrap_or(0);
            if last > self.seen[on as usize][other as usize] {
                let (by, event) = self.event(other, last, machine)?;
                machine.wait(on, event)?;
                let by = *by;
                self.seen[on as usize][other as usize] = by;
            }
        }
        self.told[on as usize] += 1;
        for name in memory {
            self.last.entry(*name).or_default()[on as usize] = self.told[on as usize];
        }
        Ok(())
    }

    /// Has an event now of what a stream was told: a reader of that alone need not wait for what it is told afterwards.
    pub(crate) fn seal(
        &mut self,
        of: Stream,
        machine: &mut impl Streams<Event = E>,
    ) -> Result<(), Error> {
        let told = self.told[of as usize];
        self.event(of, told, machine).map(|_| ())
    }

    /// Hands on the events after which no stream touches this memory, until one is told to.
    pub(crate) fn settle(
        &mut self,
        name: u64,
        machine: &mut impl Streams<Event = E>,
        mut wait: impl FnMut(&E) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(last) = self.last.get(&name).copied() else {
            return Ok(());
        };
        for (of, last) in Stream::ALL.into_iter().zip(last) {
            if last > 0 {
                wait(&self.event(of, last, machine)?.1)?;
            }
        }
        self.last.remove(&name);
        Ok(())
    }

    /// Whether a stream may still touch this memory, where `is` tells of an event.
    pub(crate) fn busy(
        &mut self,
        name: u64,
        machine: &mut impl Streams<Event = E>,
        mut is: impl FnMut(&E) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let last = self.last.get(&name).copied().unwrap_or_default();
        for (of, last) in Stream::ALL.into_iter().zip(last) {
            if last > 0 && is(&self.event(of, last, machine)?.1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Memory that is gone.
    pub(crate) fn forget(&mut self, name: u64) {
        self.last.remove(&name);
    }
}
