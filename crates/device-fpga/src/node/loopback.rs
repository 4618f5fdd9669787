//! A port whose unit ends every command at once: what a host takes for commands, without what it waits for.

use super::Port;
use crate::board::BoardError;
use crate::lookaside as abi;

/// Words that the ring of commands has room for: a power of two.
const RING: usize = 1 << 10;

/// Rings of commands and of completions in memory, as a board has them, and no node behind them: a command has ended when it was queued, and
/// all is well. Nothing is computed. Of a board it lacks the doorbells, which are writes that no host waits for.
pub struct Loopback {
    commands: Vec<u128>,
    tail: usize,
    completions: Vec<u128>,
    head: usize,
    told: usize,
}

impl Loopback {
    /// Rings that are empty.
    pub fn new() -> Self {
        Loopback {
            commands: vec![0; RING],
            tail: 0,
            completions: vec![0; RING],
            head: 0,
            told: 0,
        }
    }
}

impl Default for Loopback {
    fn default() -> Self {
        Self::new()
    }
}

impl Port for Loopback {
    fn name(&self) -> &'static str {
        "loopback"
    }

    fn read(&mut self, register: u32) -> Result<Option<u32>, BoardError> {
        Ok(Some(match register {
            abi::IDENT => abi::IDENT_VALUE,
            abi::VERSION => abi::VERSION_VALUE,
            abi::LONGEST => 1024,
            abi::STATUS | abi::KEYS | abi::DROPPED => 0,
            _ => 1,
        }))
    }

    fn write(&mut self, _: u32, _: u32) -> Result<bool, BoardError> {
        Ok(true)
    }

    fn command(&mut self, words: &[u128]) {
        for word in words {
            self.commands[self.tail % RING] = *word;
            self.tail += 1;
        }
        let [head, ..] = words else { return };
        // A command that waits in its slot has no completion.
        if head >> abi::COMMAND_ARMED_AT & 1 == 0 {
            let tag = head >> abi::COMMAND_TAG_AT & u128::from(u32::MAX);
            self.completions[self.told % RING] = tag << abi::COMPLETION_TAG_AT;
            self.told += 1;
        }
    }

    fn completion(&mut self) -> Result<Option<u128>, BoardError> {
        Ok((self.head < self.told).then(|| {
            let word = self.completions[self.head % RING];
            self.head += 1;
            word
        }))
    }

    fn wait(&mut self) -> Result<bool, BoardError> {
        Ok(false)
    }

    fn load(&mut self, _: u64, bytes: &mut [u8]) -> Result<bool, BoardError> {
        bytes.fill(0);
        Ok(true)
    }

    fn store(&mut self, _: u64, _: &[u8]) -> Result<bool, BoardError> {
        Ok(true)
    }
}
