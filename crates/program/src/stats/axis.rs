//! The axis of a panel.

use super::written::short;

/// From values to pixels, with round ticks.
pub(super) struct Axis {
    pub(super) low: f64,
    high: f64,
    step: f64,
}

impl Axis {
    /// An axis that has both ends, and a few ticks.
    pub(super) fn new(low: f64, high: f64) -> Self {
        let span = if high > low && (high - low).is_finite() {
            high - low
        } else {
            1.0
        };
        let rough = span / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let factor = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .find(|factor| factor * power >= rough);
        let step = factor.unwrap_or(10.0) * power;
        Self {
            low: (low / step).floor() * step,
            high: ((low + span) / step).ceil() * step,
            step,
        }
    }

    /// The same with whole days between ticks, at most four of them: a date is wide.
    pub(super) fn of_days(self) -> Self {
        let step = ((self.high - self.low) / 4.0).ceil().max(1.0);
        let low = self.low.floor();
        let ticks = ((self.high - low) / step).ceil();
        Axis {
            low,
            high: low + ticks * step,
            step,
        }
    }

    /// The pixel of a value, where the axis has so many from `first` on; of one that is far beyond an end, beyond that end.
    pub(super) fn at(&self, value: f64, (first, room): (i32, i32)) -> i32 {
        let part = (value - self.low) / (self.high - self.low);
        first + (part.clamp(-1.0, 2.0) * f64::from(room)).round() as i32
    }

    /// The values that have a line.
    pub(super) fn ticks(&self) -> impl Iterator<Item = f64> {
        let count = ((self.high - self.low) / self.step).round() as u32;
        (0..=count).map(|index| self.low + f64::from(index) * self.step)
    }

    /// A tick as text.
    pub(super) fn label(&self, tick: f64) -> String {
        if tick.abs() < self.step / 2.0 {
            return "0".into();
        }
        if tick.abs() >= 1e9 || self.step < 1e-5 {
            return short(tick);
        }
        let decimals = (1 - self.step.log10().floor() as i64).clamp(0, 6) as usize;
        let text = format!("{tick:.decimals$}");
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        }
    }
}
