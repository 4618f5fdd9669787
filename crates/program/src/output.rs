//! A recipient's end of any job.

use std::sync::Arc;

use crate::{
    BinSink, FileSink, IntersectionSink, QuerySink, Sinks, Zeros,
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
    /// Of queries.
    Query(Arc<QuerySink>),
    /// Of an intersection that opens keys.
    Intersection(Box<IntersectionSink>),
    /// Of an intersection that opens what is computed of keys.
    OfCommon(Box<BinSink>),
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
            Output::Query(sink) => sink.statistics(),
            Output::Files(_) | Output::Zeros(_) | Output::Intersection(_) | Output::OfCommon(_) => {
                None
            }
        }
    }

    /// The end of queries, if it is one.
    pub const fn queries(&self) -> Option<&Arc<QuerySink>> {
        match self {
            Output::Query(sink) => Some(sink),
            _ => None,
        }
    }

    /// What takes the values of each pass that opens some to this recipient.
    pub fn sinks(self: &Arc<Self>) -> Sinks {
        match &**self {
            Output::Query(sink) => sink.sinks(),
            _ => {
                vec![(0, Arc::clone(self) as Arc<dyn Sink>)]
            }
        }
    }
}

impl Sink for Output {
    fn put(&self, port: usize, slice: Slice, values: &[u8]) -> Result<(), DataError> {
        match self {
            Output::Stats(sink) => sink.put(port, slice, values),
            Output::Files(sink) => sink.put(port, slice, values),
            Output::Zeros(sink) => sink.put(port, slice, values),
            Output::Intersection(sink) => sink.put(port, slice, values),
            Output::OfCommon(sink) => sink.put(port, slice, values),
            // Each of its passes has a sink of its own.
            Output::Query(_) => Err(DataError::out_of_reach(port, slice)),
        }
    }

    fn finish(&self) -> Result<(), DataError> {
        match self {
            Output::Stats(sink) => sink.finish(),
            Output::Files(sink) => sink.finish(),
            Output::Zeros(sink) => sink.finish(),
            Output::Intersection(sink) => sink.finish(),
            Output::OfCommon(sink) => sink.finish(),
            Output::Query(_) => Err(DataError::Incomplete { got: 0, want: 1 }),
        }
    }
}
