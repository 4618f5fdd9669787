//! Callers that have nothing to do but to wait for a device.

use std::time::{Duration, Instant};

use crate::{Completion, Device, Fault};

/// How long a batch may take: by far longer than any does on a device that works.
const PATIENCE: Duration = Duration::from_secs(60);

/// The next completion of a device that has a batch, as soon as there is one. For tests and measurements: a lane of a run looks after its links
/// meanwhile.
///
/// # Errors
/// [`Fault`] as of [`Device::poll`]; [`Fault::Card`] if no batch ends within a minute.
pub fn completion(device: &mut (impl Device + ?Sized)) -> Result<Completion, Fault> {
    let began = Instant::now();
    loop {
        if let Some(completion) = device.poll()? {
            return Ok(completion);
        }
        if began.elapsed() > PATIENCE {
            return Err(Fault::Card {
                device: device.name(),
                why: format!("no batch has ended for {} s", PATIENCE.as_secs()),
            });
        }
        std::thread::yield_now();
    }
}
