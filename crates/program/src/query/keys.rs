//! How likely two different keys have one digest.

use std::fmt;

use veil_relation::{Kind, Plan, Program};

/// The least probability that is refused, as a power of two: 2^−40.
const LEAST: u32 = 40;

/// Keys of one width: two of them that differ have one digest with probability at most n²/2^(bits + 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Collisions {
    /// Bits of a digest.
    pub bits: u16,
    /// Keys: the rows of all tables that the queries read one from.
    pub keys: u64,
}

impl Collisions {
    /// Of the key columns that a program reads, by width.
    pub(super) fn of(program: &Program) -> Vec<Self> {
        let read = scanned(program);
        let mut all: Vec<Self> = Vec::new();
        for (table, columns) in program.tables.iter().zip(read) {
            for (at, column) in table.columns.iter().enumerate() {
                let Kind::Key { bits } = column.ty.kind else {
                    continue;
                };
                if !columns.contains(&at) {
                    continue;
                }
                let rows = u64::from(table.capacity);
                match all.iter_mut().find(|known| known.bits == bits) {
                    Some(known) => known.keys = known.keys.saturating_add(rows),
                    None => all.push(Self { bits, keys: rows }),
                }
            }
        }
        all.sort_unstable_by_key(|one| one.bits);
        all
    }

    /// Whether the bound is above 2^−40.
    pub fn is_likely(&self) -> bool {
        let pairs = u128::from(self.keys) * u128::from(self.keys);
        let allowed = (u32::from(self.bits) + 1).saturating_sub(LEAST);
        // 2^128 pairs and more are not there: keys are counted with 64 bits.
        allowed < 128 && pairs > 1 << allowed
    }

    /// The bound as a power of two, rounded up: `-61` for 2^−61.
    pub fn power(&self) -> i64 {
        let pairs = u128::from(self.keys) * u128::from(self.keys);
        let power = match pairs {
            0 => return -i64::from(self.bits) - 1,
            pairs => u128::BITS - (pairs - 1).leading_zeros(),
        };
        i64::from(power) - i64::from(self.bits) - 1
    }
}

impl fmt::Display for Collisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "two of {} keys of {} bits that differ have one digest with a probability of at most 2^{}",
            self.keys,
            self.bits,
            self.power()
        )
    }
}

/// The columns that a program reads, by table.
pub(super) fn scanned(program: &Program) -> Vec<Vec<usize>> {
    let mut read = vec![Vec::new(); program.tables.len()];
    for step in &program.steps {
        scans(&step.plan, program, &mut read);
    }
    read
}

/// Notes the columns that a plan reads, by table.
fn scans(plan: &Plan, program: &Program, read: &mut [Vec<usize>]) {
    if let Plan::Scan { table, columns } = plan {
        let tables = program.tables.iter().zip(read);
        for (_, read) in { tables }.filter(|(known, _)| known.name == *table) {
            read.extend(columns.iter().map(|column| column.index()));
        }
        return;
    }
    for input in plan.inputs() {
        scans(input, program, read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// n²/2^(bits+1) worked out by hand.
    #[test]
    fn the_bound_is_that_of_the_birthday() {
        let of = |bits, keys| Collisions { bits, keys };
        // 2^40 / 2^81.
        assert_eq!(
            (of(80, 1 << 20).power(), of(80, 1 << 20).is_likely()),
            (-41, false)
        );
        // (1.5 · 2^20)² = 2.25 · 2^40 > 2^41.
        assert_eq!(
            (of(80, 3 << 19).power(), of(80, 3 << 19).is_likely()),
            (-39, true)
        );
        // 2^25 / 2^65 is 2^-40, and 5793 is the last root below: 5793² < 2^25 < 5794².
        assert!(!of(64, 5792).is_likely() && of(64, 5793).is_likely());
        assert_eq!(5792_u64.pow(2).cmp(&(1 << 25)), std::cmp::Ordering::Less);
        assert_eq!(5793_u64.pow(2).cmp(&(1 << 25)), std::cmp::Ordering::Greater);
        assert!(!of(128, 1 << 44).is_likely() && of(128, (1 << 44) + (1 << 43)).is_likely());
        assert_eq!(of(80, 0).power(), -81);
        assert_eq!(of(64, u64::MAX).power(), 63);
    }
}
