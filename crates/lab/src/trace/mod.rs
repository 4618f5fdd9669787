//! What can be read from the traces of a run. Their format is [`veil_cli::trace`].

pub(crate) mod draw;
pub(crate) mod merge;
pub(crate) mod perfetto;
pub(crate) mod read;
pub(crate) mod summary;
#[cfg(test)]
mod tests;

pub(crate) use veil_cli::trace::{Event, Header, VERSION};
