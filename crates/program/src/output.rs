//! A recipient's end of any job.

use crate::{
    FileSink, Zeros,
    stats::{StatsResult, StatsSink},
};
use veil_job::{DataError, Guarantee, Sink, Slice};

/// A recipient's end of a job.
#[derive(Debug)]
#[non_exhaustive]
pub enum Output {
    /// Of a statistics job.
    Stats(Box<StatsSink>),
    /// Of a circuit job.
    Files(FileSink),
    /// Of a job that shares a dataset again: there is nothing to read, only to compare.
    Zeros(Zeros),
}

impl Output {
    /// The same of a run that is worth something else than the job says: the other parties finish without one.
    #[must_use]
    pub fn guaranteed(mut self, security: Guarantee) -> Self {
        if let Output::Stats(sink) = &mut self {
            sink.guarantee(security);
        }
        self
    }

    /// The statistics, once finished.
    pub fn statistics(&self) -> Option<&StatsResult> {
        match self {
            Output::Stats(sink) => sink.result(),
            Output::Files(_) | Output::Zeros(_) => None,
        }
    }
}

impl Sink for Output {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        match self {
            Output::Stats(sink) => sink.put(port, slice, values),
            Output::Files(sink) => sink.put(port, slice, values),
            Output::Zeros(sink) => sink.put(port, slice, values),
        }
    }

    fn finish(&self) -> Result<(), DataError> {
        match self {
            Output::Stats(sink) => sink.finish(),
            Output::Files(sink) => sink.finish(),
            Output::Zeros(sink) => sink.finish(),
        }
    }
}
