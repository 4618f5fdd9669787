//! How many cycles the published design takes, from the netlist alone.

use super::entries::{Entries, Entry, Source};

/// Cycles from the start of an AND until others can read it.
const AND: u64 = 12;
/// Of an XOR, a negation or a register.
const LINEAR: u64 = 2;

/// What a netlist cycle takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Count {
    /// Clock cycles of a netlist cycle.
    pub cycle: u64,
    /// Whether what every register takes is there when it starts. If not, the published design takes another label; this core waits, and
    /// takes longer.
    pub in_time: bool,
}

impl Count {
    /// Clock cycles of a run of so many netlist cycles.
    pub fn run(&self, cycles: u32) -> u64 {
        4 + u64::from(cycles) * self.cycle
    }
}

/// What a netlist cycle takes with `rows` rows: each holds an entry until its operands are there, and then takes the next one of the list.
/// Time 0 is the first cycle in which entries start; the netlist cycle is over 3 cycles after the later of the last entry's start and 2
/// cycles, and the last output's start and 12. R. Oishi, J. Kadomoto, H. Irie, S. Sakai, "FPGA-based Garbling Accelerator with Parallel
/// Pipeline Processing", table 3: for its netlists with two rows, these are its numbers.
pub fn count(entries: &Entries, rows: u32) -> Count {
    let list = &entries.list;
    let mut starts = vec![None; list.len()];
    // When an entry can be read: later than the cycle in which it starts.
    let mut there = vec![u64::MAX; list.len()];
    let mut following = (rows as usize).min(list.len());
    let mut held: Vec<usize> = (0..following).collect();
    let mut time = 0;
    while !held.is_empty() {
        held.retain(|&entry| {
            let Entry {
                is_register,
                is_and,
                operands,
                ..
            } = list[entry];
            let is_there = |source: &Source| match source {
                Source::Gate(of) | Source::Register(of) => there[*of as usize] <= time,
                Source::Input(_) | Source::Zero => true,
            };
            let starts_now = is_register || operands.iter().all(is_there);
            if starts_now {
                starts[entry] = Some(time);
                there[entry] = time + if is_and { AND } else { LINEAR };
            }
            !starts_now
        });
        while held.len() < rows as usize && following < list.len() {
            held.push(following);
            following += 1;
        }
        time += 1;
    }
    let last = starts
        .iter()
        .flatten()
        .max()
        .map_or(0, |last| last + LINEAR);
    let outputs = starts.iter().zip(list).filter(|(_, entry)| entry.is_output);
    let out = outputs.filter_map(|(start, _)| *start).max();
    let cycle = last.max(out.map_or(0, |out| out + AND)) + 3;
    let late = |(entry, start): (&Entry, &Option<u64>)| match entry.operands[0] {
        Source::Gate(of) if entry.is_register => {
            start.is_some_and(|start| there[of as usize] > cycle + start)
        }
        _ => false,
    };
    Count {
        cycle,
        in_time: !list.iter().zip(&starts).any(late),
    }
}
