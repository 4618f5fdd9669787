//! SIGINT and SIGTERM ask a run to end in order; a second one ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::{Code, Failure};

/// Whether the run was asked to stop.
#[derive(Clone, Debug)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens to signals from here on.
    pub fn install() -> Result<Self, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag unset, the second one set.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                Code::Other as i32,
                Arc::clone(&flag),
            )
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .map_err(|error| {
                Failure::new(Code::Other, format!("cannot listen to signals: {error}"))
            })?;
        }
        Ok(Stop(flag))
    }

    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, for the engine.
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }
}
