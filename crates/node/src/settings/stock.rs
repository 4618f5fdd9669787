//! Stock with another party: whether jobs take from it, and how much of it is made in idle time.

use serde::Deserialize;
use toml::Spanned;
use veil_job::{Statistical, StockKind};
use veil_protocol::items_of_row;

use super::quota::{bytes_text, number};
use super::text::{BYTES, Wrong, in_words, within};
use crate::file::FileError;

/// Most items of a kind that a party keeps with another one: 32 TiB of cells.
const MOST: u64 = 1 << 38;

const HOURS_OF_DAY: u64 = 24;

const MINUTES_OF_DAY: u64 = 24 * 60;

/// What a party allows of stock with another one. Both have to: neither decides for the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StockWith {
    /// Whether jobs that members propose may take from it.
    pub runs: bool,
    /// Cells that there should be: when less than half of them is left, idle services make more. None are made for 0.
    pub target: u64,
    /// Random transfers that there should be, in the same way.
    pub transfers: u64,
    /// Cells and transfers that are made in a day, at most.
    pub cells_per_day: u64,
    /// Minutes in a day that are spent on making, at most.
    pub minutes_per_day: u64,
    /// The hours of the day, in UTC, from the first one to before the second one; all of the day if nothing is said.
    pub hours: Option<[u8; 2]>,
    /// Bytes on the disk, at most.
    pub disk: u64,
    /// Whether this party garbles in the jobs that it serves; if nothing is said, the one whose name comes first does.
    pub garbles: Option<bool>,
    /// A false product is in a batch with probability 2^-s at most. Jobs that ask for more take nothing from it.
    pub statistical: Statistical,
}

impl Default for StockWith {
    fn default() -> Self {
        StockWith {
            runs: false,
            target: 0,
            transfers: 0,
            cells_per_day: 1_000_000_000,
            minutes_per_day: 240,
            hours: None,
            disk: 16 << 30,
            garbles: None,
            statistical: Statistical::USUAL,
        }
    }
}

impl StockWith {
    /// Whether `own` garbles where the other party is `other`.
    pub fn garbles(&self, own: &str, other: &str) -> bool {
        self.garbles.unwrap_or(own < other)
    }

    /// Items of a kind that there should be.
    pub const fn target_of(&self, kind: StockKind) -> u64 {
        match kind {
            StockKind::Cells => self.target,
            StockKind::Transfers => self.transfers,
        }
    }

    /// Whether stock is made in this hour of the day.
    pub(crate) const fn is_open_at(&self, hour: u8) -> bool {
        match self.hours {
            None => true,
            Some([from, to]) if from < to => from <= hour && hour < to,
            // Over midnight.
            Some([from, to]) => from <= hour || hour < to,
        }
    }

    /// The lines of the settings file.
    pub(super) fn write(&self, line: &mut dyn FnMut(&str, &str)) {
        let text = |value: &str| toml::Value::from(value).to_string();
        let cells = |name: &str, value: u64| format!("{name} = {}", text(&value.to_string()));
        line(&format!("runs = {}", self.runs), "jobs may take from it");
        line(
            &cells("target", self.target),
            "cells; more are made when half of them is gone",
        );
        line(
            &cells("transfers", self.transfers),
            "random transfers, in the same way",
        );
        line(&cells("cells_per_day", self.cells_per_day), "made, at most");
        line(
            &format!("minutes_per_day = {}", self.minutes_per_day),
            "spent on making, at most",
        );
        if let Some([from, to]) = self.hours {
            line(
                &format!("hours = [{from}, {to}]"),
                "of the day, in UTC, in which it is made",
            );
        }
        line(
            &format!("disk = {}", text(&bytes_text(self.disk))),
            "that it takes, at most",
        );
        if let Some(garbles) = self.garbles {
            line(&format!("garbles = {garbles}"), "in the jobs it serves");
        }
        line(
            &format!("statistical = {}", self.statistical.bits()),
            "a false product is in a batch with 2^-s",
        );
    }
}

/// As it is written.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStock {
    runs: Option<bool>,
    target: Option<Spanned<String>>,
    transfers: Option<Spanned<String>>,
    cells_per_day: Option<Spanned<String>>,
    minutes_per_day: Option<Spanned<u64>>,
    hours: Option<Spanned<[u64; 2]>>,
    disk: Option<Spanned<String>>,
    garbles: Option<bool>,
    statistical: Option<Spanned<u64>>,
}

impl RawStock {
    /// What it says, and the usual where it says nothing.
    pub(super) fn read(&self, wrong: &Wrong<'_>) -> Result<StockWith, FileError> {
        let usual = StockWith::default();
        let cells = (number as fn(&str) -> Option<u64>, "\"1e7\"");
        let wanted = |field: &Option<Spanned<String>>, kind: StockKind| {
            let (batch, items) = (items_of_row(kind), kind.items());
            let wanted = in_words(field.as_ref(), usual.target_of(kind), cells, wrong)?;
            match field {
                Some(field) if wanted > MOST || (1..batch).contains(&wanted) => {
                    let what = format!("must be 0, or {batch} to {MOST} {items}");
                    Err(wrong(field.span(), what))
                }
                _ => Ok(wanted),
            }
        };
        let target = wanted(&self.target, StockKind::Cells)?;
        let transfers = wanted(&self.transfers, StockKind::Transfers)?;
        let hours = match &self.hours {
            None => None,
            Some(field) => {
                let [from, to] = *field.get_ref();
                if from >= HOURS_OF_DAY || to > HOURS_OF_DAY || from == to {
                    let what = "must be two different hours, such as [22, 6]";
                    return Err(wrong(field.span(), what.to_owned()));
                }
                Some([from as u8, to as u8])
            }
        };
        let statistical = match &self.statistical {
            None => usual.statistical,
            Some(field) => field
                .get_ref()
                .to_string()
                .parse()
                .map_err(|error| wrong(field.span(), format!("{error}")))?,
        };
        Ok(StockWith {
            runs: self.runs.unwrap_or(usual.runs),
            target,
            transfers,
            cells_per_day: in_words(
                self.cells_per_day.as_ref(),
                usual.cells_per_day,
                cells,
                wrong,
            )?,
            minutes_per_day: within(
                self.minutes_per_day.as_ref(),
                usual.minutes_per_day,
                MINUTES_OF_DAY,
                wrong,
            )?,
            hours,
            disk: in_words(self.disk.as_ref(), usual.disk, BYTES, wrong)?,
            garbles: self.garbles,
            statistical,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_may_pass_midnight() {
        let of = |hours| StockWith {
            hours,
            ..StockWith::default()
        };
        let open = |hours| (0..24).filter(|hour| of(hours).is_open_at(*hour)).count();
        assert_eq!(open(None), 24);
        assert_eq!(open(Some([22, 6])), 8);
        assert_eq!(open(Some([6, 22])), 16);
        assert!(of(Some([22, 6])).is_open_at(22) && !of(Some([22, 6])).is_open_at(6));
    }

    #[test]
    fn one_of_two_garbles() {
        let usual = StockWith::default();
        assert!(usual.garbles("a", "b") && !usual.garbles("b", "a"));
        let says = StockWith {
            garbles: Some(false),
            ..usual
        };
        assert!(!says.garbles("a", "b"));
    }
}
