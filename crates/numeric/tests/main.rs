//! Tests of numbers.
mod exact;
mod functions;
