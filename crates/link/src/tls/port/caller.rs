//! One caller, from its TCP connection to the job or the handler that it wants.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use veil_session::PlanHash;

use super::holders::Holder;
use super::replies::Replies;
use super::slots::Promise;
use super::{Admission, Away, Caller, PortState};
use crate::tls::config::UnknownKey;
use crate::tls::handshake::{Fail, Handshake, Progress};
use crate::tls::identity::Fingerprint;
use crate::tls::preface::{self, Answer, CALL, Call, Garbled, LaneCall, Refusal, START};
use crate::tls::socket::hung_up;

/// A handshake takes a few round trips; who takes longer is cut off.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request of the longest kind takes so long on a slow line.
const PATIENCE_FOR_REQUESTS: Duration = Duration::from_secs(60);

/// Memory for a request grows as it comes in: a length alone costs nothing. So much of one is read before the other callers are served: a fast
/// sender of megabytes does not hold the port.
const STEP: usize = 64 << 10;

/// A connection before it belongs to a job.
pub(super) struct Pending {
    pub(super) handshake: Handshake,
    pub(super) from: SocketAddr,
    holder: Holder,
    since: Instant,
    expires: Instant,
    stage: Stage,
}

enum Stage {
    /// The call is read.
    Call { bytes: [u8; CALL], have: usize },
    /// The request of a control call is read.
    Request {
        caller: Caller,
        length: usize,
        body: Vec<u8>,
        have: usize,
    },
    /// The answer leaves; then the connection belongs to a job, or is closed.
    Answer(Option<Verdict>),
}

enum Verdict {
    Seated(Promise),
    Away(Away, String),
}

/// What became of a pending connection.
pub(super) enum Outcome {
    Waiting,
    /// More of its request may be here already.
    More,
    /// It is a lane of this job.
    Lane(Promise),
    /// It asked something.
    Question(Caller, Vec<u8>),
    /// It was turned away, for a reason that a waiting job reports.
    Away(Away, String),
}

impl Pending {
    pub(super) fn new(handshake: Handshake, from: SocketAddr) -> Self {
        let since = Instant::now();
        let stage = Stage::Call {
            bytes: [0; CALL],
            have: 0,
        };
        Pending {
            handshake,
            from,
            holder: Holder::unknown(from.ip()),
            since,
            expires: since + PATIENCE,
            stage,
        }
    }

    /// Whose it is, as of its last step.
    pub(super) const fn holder(&self) -> Holder {
        self.holder
    }

    /// Whether its request is on its way in.
    pub(super) const fn asks(&self) -> bool {
        matches!(self.stage, Stage::Request { .. })
    }

    /// Bytes of its request that are here.
    pub(super) const fn received(&self) -> usize {
        match &self.stage {
            Stage::Request { have, .. } => *have,
            Stage::Call { .. } | Stage::Answer(_) => 0,
        }
    }

    pub(super) const fn since(&self) -> Instant {
        self.since
    }

    pub(super) const fn expires(&self) -> Instant {
        self.expires
    }

    /// Moves it on.
    pub(super) fn step(&mut self, shared: &PortState, replies: Option<&Replies>) -> Outcome {
        let stranger = |why: String| Outcome::Away(Away::Stranger, why);
        let shaking = self.handshake.tls.is_handshaking();
        let outcome = self.advance(shared, replies);
        if shaking && !self.handshake.tls.is_handshaking() {
            self.meet(shared);
        }
        match outcome {
            Ok(Outcome::Waiting | Outcome::More) if Instant::now() >= self.expires => {
                stranger("it did not finish its handshake".into())
            }
            Ok(outcome) => outcome,
            Err(Fail::Tls(error)) => stranger(match UnknownKey::within(&error) {
                Some(key) => {
                    shared.noticed(&key, self.from);
                    unknown(&key)
                }
                None => error.to_string(),
            }),
            Err(Fail::Broken(why)) => stranger(why),
        }
    }

    /// It has shown its key: from here on it has its place under that, if it is a member's.
    fn meet(&mut self, shared: &PortState) {
        if let Some(key) = shown(&self.handshake)
            && (shared.admit)(&key) == Admission::Member
        {
            self.holder = Holder::Member(key);
        }
    }

    fn advance(&mut self, shared: &PortState, replies: Option<&Replies>) -> Result<Outcome, Fail> {
        loop {
            match &mut self.stage {
                Stage::Call { bytes, have } => {
                    // The first bytes may show a version whose call is shorter than ours.
                    let wanted = if *have < START { START } else { CALL };
                    if self.handshake.hear(&mut bytes[..wanted], have)? == Progress::Waiting {
                        return Ok(Outcome::Waiting);
                    }
                    if wanted == START && preface::check(bytes).is_ok() {
                        continue;
                    }
                    let bytes = *bytes;
                    self.called(shared, &bytes, replies.is_some())?;
                }
                Stage::Request {
                    caller,
                    length,
                    body,
                    have,
                } => {
                    if *have < *length {
                        let room = (*have + STEP).min(*length);
                        body.resize(room, 0);
                        if self.handshake.hear(body, have)? == Progress::Waiting {
                            return Ok(Outcome::Waiting);
                        }
                        if *have < *length {
                            return Ok(Outcome::More);
                        }
                    }
                    if replies.is_some_and(|replies| replies.full(caller, body)) {
                        let plan = PlanHash([0; 32]);
                        self.refuse(Refusal::Busy, plan, Away::Later, String::new())?;
                        continue;
                    }
                    return Ok(Outcome::Question(*caller, std::mem::take(body)));
                }
                Stage::Answer(verdict) => {
                    if self.handshake.flush()? == Progress::Waiting {
                        // Nothing is read any more that would tell.
                        self.still_there()?;
                        return Ok(Outcome::Waiting);
                    }
                    return Ok(match verdict.take() {
                        Some(Verdict::Seated(promise)) => Outcome::Lane(promise),
                        Some(Verdict::Away(away, why)) => Outcome::Away(away, why),
                        None => Outcome::Waiting,
                    });
                }
            }
        }
    }

    /// The call is here: decides what comes of it.
    fn called(
        &mut self,
        shared: &PortState,
        bytes: &[u8; CALL],
        answers: bool,
    ) -> Result<(), Fail> {
        let nothing = PlanHash([0; 32]);
        let key = shown(&self.handshake);
        // Asked again: it may have changed since the handshake.
        let caller = key.map(|key| Caller {
            key,
            admission: (shared.admit)(&key),
        });
        let Some(caller) = caller.filter(|caller| caller.admission != Admission::Stranger) else {
            if let Some(key) = key {
                shared.noticed(&key, self.from);
            }
            let why = "nobody here knows its key any more".into();
            return self.refuse(Refusal::Unknown, nothing, Away::Stranger, why);
        };
        let mut is_unknown = || {
            shared.noticed(&caller.key, self.from);
            self.refuse(
                Refusal::Unknown,
                nothing,
                Away::Stranger,
                unknown(&caller.key),
            )
        };
        match Call::decode(bytes) {
            Ok(Call::Lane(call)) if caller.admission == Admission::Member => {
                self.lane(shared, caller.key, call)
            }
            // Who is no member learns nothing about jobs.
            Ok(Call::Lane(_)) => is_unknown(),
            Ok(Call::Control { .. }) if !answers => {
                let why = "it asked something, and this port serves a single job".into();
                self.refuse(Refusal::Kind, nothing, Away::Refused, why)
            }
            Ok(Call::Control { length }) => {
                let length = length as usize;
                if length > shared.longest_request(caller.admission) {
                    if caller.admission == Admission::Joiner {
                        return is_unknown();
                    }
                    let why = format!("it asked something in {length} bytes");
                    return self.refuse(Refusal::TooLong, nothing, Away::Refused, why);
                }
                self.expires = Instant::now() + PATIENCE_FOR_REQUESTS;
                self.stage = Stage::Request {
                    caller,
                    length,
                    body: Vec::new(),
                    have: 0,
                };
                Ok(())
            }
            Err(Garbled::Version(theirs)) => {
                let why = shared.slots.other_version(&caller.key, theirs);
                self.refuse(Refusal::Version, nothing, Away::Refused, why)
            }
            Err(Garbled::Kind) => {
                let why = "its kind of call is unknown here".into();
                self.refuse(Refusal::Kind, nothing, Away::Refused, why)
            }
            Err(Garbled::NotOurs) => {
                let why = "its call is none of ours".into();
                self.refuse(Refusal::Version, nothing, Away::Refused, why)
            }
        }
    }

    fn lane(&mut self, shared: &PortState, key: Fingerprint, call: LaneCall) -> Result<(), Fail> {
        // A caller that is gone already takes no seat, and none from itself that comes again.
        self.still_there()?;
        match shared.slots.seat(key, call) {
            Ok(promise) => {
                self.handshake.say(&Answer::new(None, call.plan).encode())?;
                self.stage = Stage::Answer(Some(Verdict::Seated(promise)));
                Ok(())
            }
            Err(no) => {
                let mut away = Away::Refused;
                if no.refusal == Refusal::NotYet {
                    away = Away::Later;
                    if let Some(on_request) = &shared.on_request {
                        on_request(key, call.plan);
                    }
                }
                let answer = Answer::new(Some(no.refusal), no.plan).with_link(no.link);
                self.turn_down(answer, away, no.why)
            }
        }
    }

    /// An error if it has hung up, which a write alone does not always tell.
    fn still_there(&self) -> Result<(), Fail> {
        if hung_up(&self.handshake.socket) {
            return Err(Fail::Broken("the other side hung up".into()));
        }
        Ok(())
    }

    fn refuse(
        &mut self,
        refusal: Refusal,
        plan: PlanHash,
        away: Away,
        why: String,
    ) -> Result<(), Fail> {
        self.turn_down(Answer::new(Some(refusal), plan), away, why)
    }

    fn turn_down(&mut self, answer: Answer, away: Away, why: String) -> Result<(), Fail> {
        self.handshake.say(&answer.encode())?;
        self.handshake.tls.send_close_notify();
        self.stage = Stage::Answer(Some(Verdict::Away(away, why)));
        Ok(())
    }
}

fn unknown(key: &Fingerprint) -> String {
    format!("nobody here knows its key {key}")
}

/// The key that the other side proved to hold.
fn shown(handshake: &Handshake) -> Option<Fingerprint> {
    let certificate = handshake.tls.peer_certificates()?.first()?;
    Fingerprint::of(certificate).ok()
}
