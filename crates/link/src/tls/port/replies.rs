//! The threads in which questions are answered.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustls::Connection;
use veil_session::PlanHash;

use super::{Admission, Caller, Handler, LONGEST_REPLY, Lane, Lanes, lock};
use crate::tls::handshake::Handshake;
use crate::tls::identity::Fingerprint;
use crate::tls::preface::Answer;
use crate::tls::socket::Quiet;

/// Threads for the questions of each lane, and how many of these may wait; who comes later is told to come again. What is slow is so
/// whatever it is asked for.
const fn places(lane: Lane) -> [usize; 2] {
    match lane {
        Lane::Quick => [2, 32],
        Lane::Own => [1, 8],
        Lane::Usual => [2, 16],
        // Most of them wait for something else than a processor; who asks for what is known already does not wait for them.
        Lane::Slow => [8, 16],
    }
}

/// One caller's questions may take this part of the places, one in so many.
const SHARES: usize = 4;

/// Room for a planner's recursion.
const STACK: usize = 2 << 20;

/// How long the other side has to take its reply.
const PATIENCE: Duration = Duration::from_secs(30);

struct Question {
    handshake: Handshake,
    caller: Caller,
    request: Vec<u8>,
}

/// Questions that wait for threads of their own. A caller has one thread at a time, and its share of the places.
struct Queue {
    state: Arc<State>,
    most: usize,
}

#[derive(Default)]
struct State {
    questions: Mutex<Questions>,
    changed: Condvar,
}

#[derive(Default)]
struct Questions {
    waiting: VecDeque<Question>,
    /// Whose questions are being answered.
    in_hand: Vec<Share>,
    closed: bool,
}

/// Who shares places: a member has its own, all who are none have one together, since keys are free.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    Member(Fingerprint),
    Joiners,
}

impl Share {
    fn of(caller: &Caller) -> Self {
        match caller.admission {
            Admission::Member => Share::Member(caller.key),
            _ => Share::Joiners,
        }
    }
}

impl Queue {
    fn start(handler: &Handler, name: &str, [threads, most]: [usize; 2]) -> io::Result<Self> {
        let queue = Queue {
            state: Arc::default(),
            most,
        };
        for index in 0..threads {
            let (handler, state) = (Arc::clone(handler), Arc::clone(&queue.state));
            let name = format!("{name} {index}");
            let thread = thread::Builder::new().name(name).stack_size(STACK);
            thread.spawn(move || answer(&handler, &state))?;
        }
        Ok(queue)
    }

    /// Whether a question of this caller would find no place, or would take more than its share.
    fn full(&self, caller: &Caller) -> bool {
        let share = Share::of(caller);
        let waiting = &lock(&self.state.questions).waiting;
        let own = waiting
            .iter()
            .filter(|other| Share::of(&other.caller) == share);
        waiting.len() >= self.most || own.count() >= self.most / SHARES
    }

    fn ask(&self, question: Question) {
        // There is room: only one thread asks, and it looked.
        lock(&self.state.questions).waiting.push_back(question);
        self.state.changed.notify_all();
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        lock(&self.state.questions).closed = true;
        self.state.changed.notify_all();
    }
}

impl State {
    /// The first question of a caller who has no thread yet: no caller has them all. None at the end.
    fn next(&self) -> Option<(Question, InHand<'_>)> {
        let mut questions = lock(&self.questions);
        loop {
            let Questions {
                waiting, in_hand, ..
            } = &mut *questions;
            let free = |one: &Question| !in_hand.contains(&Share::of(&one.caller));
            let next = waiting.iter().position(free);
            if let Some(question) = next.and_then(|index| waiting.remove(index)) {
                let share = Share::of(&question.caller);
                in_hand.push(share);
                return Some((question, InHand { state: self, share }));
            }
            if questions.closed && questions.waiting.is_empty() {
                return None;
            }
            let woken = self.changed.wait(questions);
            questions = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A question that is being answered; dropped when it is, or when its handler panicked.
struct InHand<'a> {
    state: &'a State,
    share: Share,
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        let in_hand = &mut lock(&self.state.questions).in_hand;
        if let Some(index) = in_hand.iter().position(|one| *one == self.share) {
            in_hand.swap_remove(index);
        }
        self.state.changed.notify_all();
    }
}

/// Answers questions. The threads end with it, once they have answered.
pub(super) struct Replies {
    /// In the order of [`Lane::ALL`]; the first alone where questions are all alike.
    queues: Vec<Queue>,
    lanes: Option<Lanes>,
}

impl Replies {
    pub(super) fn start(handler: &Handler, lanes: Option<Lanes>) -> io::Result<Self> {
        let all: &[Lane] = if lanes.is_some() {
            &Lane::ALL
        } else {
            &[Lane::Usual]
        };
        let start = |lane: &Lane| Queue::start(handler, lane.name(), places(*lane));
        Ok(Replies {
            queues: all.iter().map(start).collect::<Result<_, _>>()?,
            lanes,
        })
    }

    fn queue(&self, caller: &Caller, request: &[u8]) -> &Queue {
        let lane = self.lanes.as_ref().map(|lanes| lanes(caller, request));
        let at = lane.and_then(|lane| Lane::ALL.iter().position(|other| *other == lane));
        &self.queues[at.unwrap_or(0)]
    }

    /// Whether this question would find no place.
    pub(super) fn full(&self, caller: &Caller, request: &[u8]) -> bool {
        self.queue(caller, request).full(caller)
    }

    /// Answers `request`, some time.
    pub(super) fn ask(&self, handshake: Handshake, caller: Caller, request: Vec<u8>) {
        self.queue(&caller, &request).ask(Question {
            handshake,
            caller,
            request,
        });
    }
}

fn answer(handler: &Handler, state: &State) {
    while let Some((question, _in_hand)) = state.next() {
        let Question {
            handshake,
            caller,
            request,
        } = question;
        let mut reply = handler(caller, &request);
        drop(request);
        reply.truncate(LONGEST_REPLY);
        // A caller that does not take its reply does without.
        let _ = send(handshake, &reply);
    }
}

fn send(handshake: Handshake, reply: &[u8]) -> io::Result<()> {
    let Handshake {
        socket, mut tls, ..
    } = handshake;
    socket.set_nonblocking(false)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let until = Instant::now() + PATIENCE;
    tls.set_buffer_limit(None);
    let answer = Answer::new(None, PlanHash([0; 32])).encode();
    tls.writer().write_all(&answer)?;
    tls.writer()
        .write_all(&(reply.len() as u32).to_le_bytes())?;
    tls.writer().write_all(reply)?;
    tls.send_close_notify();
    flush(&mut tls, &mut Quiet(&socket), until)
}

fn flush(tls: &mut Connection, socket: &mut Quiet<'_>, until: Instant) -> io::Result<()> {
    while tls.wants_write() {
        if Instant::now() > until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        tls.write_tls(socket)?;
    }
    Ok(())
}
