//! Moments, as files and logs write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A moment in UTC, to the second: `2026-11-20T22:30:00Z`. It comes from the machine's clock, so it dates what one
/// participant did; no two participants need to agree on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(i64);

impl Time {
    /// The machine's clock.
    pub fn now() -> Self {
        Time(Timestamp::now().as_second())
    }

    /// So many seconds after 1970-01-01T00:00:00Z; nothing outside the years −9999 to 9999.
    pub fn from_seconds(seconds: i64) -> Option<Self> {
        Timestamp::from_second(seconds).ok().map(|_| Time(seconds))
    }

    /// Seconds after 1970-01-01T00:00:00Z.
    pub const fn seconds(self) -> i64 {
        self.0
    }

    /// The moment so much later; the last there is, if it would be beyond that.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        let span = i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
        let last = Timestamp::MAX.as_second();
        Time(self.0.saturating_add(span).min(last))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_second(self.0) {
            Ok(time) => write!(f, "{time}"),
            Err(_) => write!(f, "{} s", self.0),
        }
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Time {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        text.parse::<Timestamp>().map(|time| Time(time.as_second()))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|_| {
            de::Error::custom(format!(
                "`{text}` is no moment such as 2026-11-20T22:30:00Z"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_the_standard_form() {
        // `date -u -d @1795213800 +%FT%TZ`
        let time = Time::from_seconds(1_795_213_800).unwrap();
        assert_eq!(time.to_string(), "2026-11-20T22:30:00Z");
        assert_eq!("2026-11-20T22:30:00Z".parse::<Time>().unwrap(), time);
        assert_eq!("2026-11-20T23:30:00+01:00".parse::<Time>().unwrap(), time);
        assert!("yesterday".parse::<Time>().is_err());
        assert_eq!(Time::from_seconds(i64::MAX), None);
        let last = time.after(Duration::MAX);
        assert!(last.to_string().starts_with("9999"));
    }
}
