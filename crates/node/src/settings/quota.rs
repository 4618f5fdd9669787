//! Quotas of members at a party, and the party's own reserve.

use std::collections::BTreeMap;

use veil_sandbox::Require;

/// A member's limits at a party, in addition to the party's limits for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// Proposals in an hour; one that was planned before is none.
    pub proposals_per_hour: u64,
    /// Its jobs that wait: for approval, for their participants, or for others to end.
    pub waiting_jobs: u64,
    /// Its jobs that run at once.
    pub running_jobs: u64,
    /// Seconds in an hour in which its proposals are planned.
    pub planning_seconds_per_hour: u64,
    /// Products in a day, each as many as its ring has bits.
    pub work_per_day: u64,
    /// Bytes in a day that its jobs make this party send and receive.
    pub bytes_per_day: u64,
    /// Bytes of its filed jobs: their text and circuits.
    pub filed: u64,
    /// Bytes of the datasets that its jobs keep.
    pub stored: u64,
    /// Cells of stock in a day that its jobs take.
    pub stock_cells_per_day: u64,
    /// Its part of what there is, where several wait: twice as much with 2.
    pub weight: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Quota {
            proposals_per_hour: 60,
            waiting_jobs: 16,
            running_jobs: 2,
            planning_seconds_per_hour: 300,
            work_per_day: 2_000_000_000_000,
            bytes_per_day: 2 << 40,
            filed: 1 << 30,
            stored: 200 << 30,
            stock_cells_per_day: 1_000_000_000,
            weight: 1,
        }
    }
}

/// The quotas of a party.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Quotas {
    /// The quota of members that have none of their own.
    pub each: Quota,
    /// Of some members, by name.
    pub member: BTreeMap<String, Quota>,
}

impl Quotas {
    /// That of a member.
    pub fn of(&self, member: &str) -> Quota {
        self.member.get(member).copied().unwrap_or(self.each)
    }
}

/// Admission of proposals at a party.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admission {
    /// The least confinement for the planning of proposals.
    pub sandbox: Require,
    /// Processes that plan at once.
    pub planners: u64,
    /// Memory of each, in MiB.
    pub planning_mib: u64,
    /// Processor time of each, in seconds.
    pub planning_seconds: u64,
    /// Bytes of the home's disk that stay free: with less, nothing new is taken.
    pub disk_reserve: u64,
    /// Whether columns of queries wait on the home's disk where `memory_mib` has no room for them.
    pub spill: bool,
}

impl Default for Admission {
    fn default() -> Self {
        Admission {
            sandbox: Require::Landlock,
            planners: 2,
            planning_mib: 2048,
            planning_seconds: 60,
            // The log, receipts and reasons of thousands of jobs; shares that are kept are checked against the disk by themselves.
            disk_reserve: 1 << 30,
            spill: false,
        }
    }
}

/// Units of bytes, the largest first.
const UNITS: [(&str, u64); 5] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// A number of bytes as people write it: `10 GiB`.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits.then(|| number.parse().ok())??;
    number.checked_mul(*scale)
}

/// The same number, in the largest unit of which it is a multiple.
pub(super) fn bytes_text(bytes: u64) -> String {
    let fits = |(_, scale): &&(&str, u64)| bytes >= *scale && bytes.is_multiple_of(*scale);
    let (unit, scale) = UNITS.iter().find(fits).unwrap_or(&UNITS[UNITS.len() - 1]);
    format!("{} {unit}", bytes / scale)
}

/// A number as people write large ones, such as `2e12`; nothing if it is none.
pub(super) fn number(text: &str) -> Option<u64> {
    let (digits, zeros) = match text.trim().split_once(['e', 'E']) {
        Some((digits, zeros)) => (digits, zeros.parse::<u32>().ok()?),
        None => (text.trim(), 0),
    };
    digits
        .parse::<u64>()
        .ok()?
        .checked_mul(10_u64.checked_pow(zeros)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_with_their_unit() {
        for (text, found) in [
            ("0 B", 0),
            ("1000 B", 1000),
            ("1536 KiB", 3 << 19),
            ("10 GiB", 10 << 30),
            ("1 TiB", 1 << 40),
        ] {
            assert_eq!(bytes(text), Some(found));
            assert_eq!(bytes_text(found), text);
        }
        for text in [
            "",
            "10",
            "10GiB",
            "10 GB",
            "-1 B",
            "+1 B",
            "1.5 GiB",
            "99999999 TiB",
            " 1 B",
        ] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        assert_eq!(number("2e12"), Some(2_000_000_000_000));
        assert_eq!(number("17"), Some(17));
        assert_eq!(number("2e99"), None);
        assert_eq!(number("-1"), None);
    }
}
