//! The side that asks: one request over a connection of its own, one reply.

use std::time::{Duration, Instant};

use super::dial::{self, FIRST_PAUSE, LONGEST_PAUSE, Missed, Verdict};
use super::identity::{Fingerprint, Identity};
use super::port::{LONGEST_REPLY, LONGEST_REQUEST};
use super::preface::{ANSWER, Answer, Call, Garbled, Refusal, VERSION};
use super::{ControlError, config};

/// Only its deadline ends a control call.
const NEVER: fn() -> bool = || false;

/// Sends `request` to the port at `address`, whose key must be `pinned`, and returns the reply. Tries again until `until` while no port
/// answers there; a request that was sent is not sent again.
///
/// # Errors
/// [`ControlError::TooLong`] for a request beyond the limit; [`ControlError::Unreachable`] or [`ControlError::Busy`] if the port
/// did not answer, or had too many callers, until `until`; [`ControlError::WrongKey`], [`ControlError::OurKey`] and
/// [`ControlError::Tls`] if TLS ends at once with that; [`ControlError::Version`] and [`ControlError::Refused`] if the port
/// answers with them, or with a reply beyond the limit; [`ControlError::Local`] if this machine fails.
pub fn control(
    identity: &Identity,
    pinned: Fingerprint,
    address: &str,
    request: &[u8],
    until: Instant,
) -> Result<Vec<u8>, ControlError> {
    control_slow(identity, pinned, address, request, until, Duration::ZERO)
}

/// [`control`], where a port that answers before `until` has so much time for the reply, and at least until then.
///
/// # Errors
/// [`ControlError`] as of [`control`]; [`ControlError::Unreachable`] also if the reply is not complete in time.
pub fn control_slow(
    identity: &Identity,
    pinned: Fingerprint,
    address: &str,
    request: &[u8],
    until: Instant,
    reply: Duration,
) -> Result<Vec<u8>, ControlError> {
    let too_long = || ControlError::TooLong {
        address: address.to_owned(),
        bytes: request.len(),
        limit: LONGEST_REQUEST,
    };
    let length = u32::try_from(request.len()).map_err(|_| too_long())?;
    if request.len() > LONGEST_REQUEST {
        return Err(too_long());
    }
    let config =
        config::client(identity, pinned).map_err(|e| ControlError::Local(e.to_string()))?;
    let mut call = Call::Control { length }.encode().to_vec();
    call.extend_from_slice(request);
    let mut pause = FIRST_PAUSE;
    let unreachable = |why: String| ControlError::Unreachable {
        address: address.to_owned(),
        why,
    };
    let failed = |missed| match missed {
        Missed::Broken(why) => unreachable(why),
        Missed::Local(why) => ControlError::Local(why),
        Missed::Tls(error) => match dial::verdict(&error) {
            Verdict::Theirs(shown) => ControlError::WrongKey {
                address: address.to_owned(),
                pinned,
                shown,
            },
            Verdict::Ours => ControlError::OurKey {
                address: address.to_owned(),
                ours: identity.fingerprint(),
            },
            Verdict::Other => ControlError::Tls {
                address: address.to_owned(),
                why: error.to_string(),
            },
        },
    };
    // A service that had too many callers once is there.
    let mut busy = false;
    loop {
        let last = match dial::reach(address, &config, until) {
            Ok(mut handshake) => {
                let until = until.max(Instant::now() + reply);
                handshake.tls.set_buffer_limit(None);
                let answer = dial::ask(&mut handshake, &call, until, &NEVER).map_err(failed)?;
                if judge(&answer, (address, identity), &too_long)? {
                    let mut length = [0; 4];
                    dial::hear(&mut handshake, &mut length, until, &NEVER).map_err(failed)?;
                    let length = u32::from_le_bytes(length) as usize;
                    if length > LONGEST_REPLY {
                        return Err(ControlError::Refused {
                            address: address.to_owned(),
                            why: format!(
                                "its reply has {length} bytes, and the limit is {LONGEST_REPLY}"
                            ),
                        });
                    }
                    let mut reply = vec![0; length];
                    dial::hear(&mut handshake, &mut reply, until, &NEVER).map_err(failed)?;
                    return Ok(reply);
                }
                busy = true;
                String::new()
            }
            Err(Missed::Broken(why)) => why,
            Err(other) => return Err(failed(other)),
        };
        let left = until.saturating_duration_since(Instant::now());
        dial::nap(pause.min(left), &NEVER);
        if Instant::now() >= until {
            return Err(if busy {
                ControlError::Busy {
                    address: address.to_owned(),
                }
            } else {
                unreachable(last)
            });
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Whether a reply follows; if not, the call may be made again.
fn judge(
    answer: &[u8; ANSWER],
    (address, identity): (&str, &Identity),
    too_long: &dyn Fn() -> ControlError,
) -> Result<bool, ControlError> {
    let version = |theirs| {
        Err(ControlError::Version {
            address: address.to_owned(),
            ours: VERSION,
            theirs,
        })
    };
    let refused = |why: &str| {
        Err(ControlError::Refused {
            address: address.to_owned(),
            why: why.to_owned(),
        })
    };
    let answer = match Answer::decode(answer) {
        Ok(answer) => answer,
        Err(Garbled::Version(theirs)) => return version(theirs),
        Err(Garbled::NotOurs | Garbled::Kind) => return refused("its answer is none of ours"),
    };
    match answer.refusal {
        None => Ok(true),
        Some(Refusal::Busy) => Ok(false),
        Some(Refusal::Version) => version(answer.version),
        Some(Refusal::TooLong) => Err(too_long()),
        Some(Refusal::Unknown) => Err(ControlError::OurKey {
            address: address.to_owned(),
            ours: identity.fingerprint(),
        }),
        Some(Refusal::Kind) => refused("it serves a single job, not `veil serve`"),
        Some(_) => refused("it turned us down"),
    }
}
