//! A recipient's end: takes the opened sums, derives the statistics, and publishes them.

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use veil_math::Ring;
use veil_session::Peer;

use super::{
    Opened, Opening, ResultFiles, Stats, StatsResult, alone, derive::derive, lower::Meaning,
};
use crate::{Paired, Roles, publish::publish};
use veil_job::{DataError, Guarantee, Security, Sink, Slice};

/// Takes the opened sums of one recipient. Once finished, the folder has `result.txt`, `result.csv`, `result.json` and
/// `result.svg`, and [`StatsSink::result`] has the answer.
#[derive(Debug)]
pub struct StatsSink {
    stats: Stats,
    opening: Opening,
    job: String,
    recipient: String,
    security: Guarantee,
    peer: Peer,
    mine: Vec<bool>,
    opened: Mutex<Vec<Option<i128>>>,
    files: Mutex<Option<ResultFiles>>,
    result: OnceLock<StatsResult>,
}

impl StatsSink {
    pub(crate) fn new(
        (job, security): (&str, Security),
        roles: &Roles,
        stats: &Stats,
        opening: &Opening,
        peer: Peer,
        folder: Option<&Path>,
    ) -> Result<Self, DataError> {
        let mine: Vec<bool> = (opening.shown.iter())
            .map(|shown| shown.audience.includes(peer))
            .collect();
        Ok(Self {
            stats: stats.clone(),
            opening: opening.clone(),
            job: job.to_owned(),
            recipient: roles.peer_name(peer),
            security: Guarantee::of(security),
            peer,
            opened: Mutex::new(vec![None; mine.len()]),
            mine,
            files: Mutex::new(folder.map(ResultFiles::create).transpose()?),
            result: OnceLock::new(),
        })
    }

    /// Says of the result what the run was worth, if that is not what the job says.
    pub(crate) fn guarantee(&mut self, security: Guarantee) {
        self.security = security;
    }

    /// The answer, once finished.
    pub fn result(&self) -> Option<&StatsResult> {
        self.result.get()
    }

    fn opened(&self) -> MutexGuard<'_, Vec<Option<i128>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn derive(&self, opened: &[i128]) -> StatsResult {
        let Self { stats, opening, .. } = self;
        let mine = stats
            .analyses
            .iter()
            .filter(|analysis| analysis.to.includes(self.peer));
        let analyses = mine
            .map(|analysis| {
                if analysis.statistic.is_alone() {
                    let answers = stats.answers(opening, analysis, opened);
                    return alone::derive(stats, analysis, &answers);
                }
                let groups = stats.groups(analysis);
                let moments: Vec<_> = groups
                    .iter()
                    .map(|group| stats.moments(opening, analysis, group, opened))
                    .collect();
                derive(stats, analysis, &moments)
            })
            .collect();
        let sentences = opening.sentences(&stats.columns);
        let list = (opening
            .shown
            .iter()
            .zip(sentences)
            .zip(opened)
            .zip(&self.mine))
        .filter(|(_, mine)| **mine)
        .map(|(((shown, what), &value), _)| Opened {
            what,
            value: match shown.read(&stats.columns, stats.rows(), opening.ring, value) {
                Meaning::Number(number) | Meaning::Beyond(number) => Some(number),
                Meaning::Nothing => None,
            },
        })
        .collect();
        StatsResult {
            job: self.job.clone(),
            recipient: self.recipient.clone(),
            rows: Some(stats.rows()),
            analyses,
            opened: list,
            paired: Paired::of(stats),
            security: Some(self.security.clone()),
        }
    }
}

impl Sink for StatsSink {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        let Slice { block, first, rows } = slice;
        let beyond = || DataError::out_of_reach(port, slice);
        let word = self.opening.word(port);
        let bytes = word.map_or(self.opening.ring.bytes(1), |(bits, _)| bits.into());
        let fits = self.mine.get(port) == Some(&true)
            && (block, first, rows) == (0, 0, 1)
            && values.len() as u64 == bytes;
        let mut opened = self.opened();
        if !fits || opened[port].is_some() {
            return Err(beyond());
        }
        opened[port] = Some(match word {
            Some((_, signed)) => of_bits(values, signed),
            None => signed(self.opening.ring, values),
        });
        Ok(())
    }

    fn finish(&self) -> Result<(), DataError> {
        let opened = self.opened().clone();
        let want = self.mine.iter().filter(|mine| **mine).count() as u64;
        let got = opened.iter().flatten().count() as u64;
        if got != want {
            return Err(DataError::Incomplete { got, want });
        }
        // Numbers for others never come here; no statistic of this recipient reads them.
        let opened: Vec<i128> = opened.into_iter().map(Option::unwrap_or_default).collect();
        let result = self.derive(&opened);
        let files = self
            .files
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(files) = files {
            publish(files.write(&result)?)?;
        }
        let _ = self.result.set(result);
        Ok(())
    }
}

/// The number of a word of bits, a byte for each, in two's complement if it is signed.
fn of_bits(bits: &[u8], signed: bool) -> i128 {
    let negative = signed && bits.last().is_some_and(|bit| bit & 1 == 1);
    let high = if negative { u128::MAX } else { 0 };
    // From the highest bit on.
    let number = bits
        .iter()
        .rev()
        .fold(high, |number, bit| number << 1 | u128::from(bit & 1));
    number as i128
}

/// The ring element as a signed number.
fn signed(ring: Ring, bytes: &[u8]) -> i128 {
    let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0) && ring != Ring::Bits;
    let mut whole = [if negative { 0xff } else { 0 }; 16];
    whole[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(whole)
}
