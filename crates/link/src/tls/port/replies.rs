//! The threads in which questions are answered.

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustls::Connection;
use veil_session::PlanHash;

use super::{Caller, Handler, LONGEST_REPLY, Quick, lock};
use crate::tls::handshake::Handshake;
use crate::tls::preface::Answer;
use crate::tls::socket::Quiet;

/// Questions that are answered at once: reading a job and planning it is the longest that one takes.
const THREADS: usize = 2;

/// Questions that may wait for a thread; who comes later is told to come again.
const WAITING: usize = 8;

/// Threads for quick questions, and how many of these may wait.
const QUICK: [usize; 2] = [1, 32];

/// Room for a planner's recursion.
const STACK: usize = 2 << 20;

/// How long the other side has to take its reply.
const PATIENCE: Duration = Duration::from_secs(30);

struct Question {
    handshake: Handshake,
    caller: Caller,
    request: Vec<u8>,
}

/// Questions that wait for threads of their own.
struct Queue {
    places: SyncSender<Question>,
    waiting: Arc<AtomicUsize>,
    most: usize,
}

impl Queue {
    fn start(handler: &Handler, name: &str, [threads, most]: [usize; 2]) -> io::Result<Self> {
        let (places, questions) = sync_channel(most);
        let questions = Arc::new(Mutex::new(questions));
        let waiting = Arc::new(AtomicUsize::new(0));
        for index in 0..threads {
            let (handler, questions) = (Arc::clone(handler), Arc::clone(&questions));
            let waiting = Arc::clone(&waiting);
            let name = format!("{name} {index}");
            let thread = thread::Builder::new().name(name).stack_size(STACK);
            thread.spawn(move || answer(&handler, &questions, &waiting))?;
        }
        Ok(Queue {
            places,
            waiting,
            most,
        })
    }

    fn full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= self.most
    }

    fn ask(&self, question: Question) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        // There is room: only one thread asks, and it looked.
        if self.places.try_send(question).is_err() {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Answers questions. The threads end with it, once they have answered.
pub(super) struct Replies {
    all: Queue,
    quick: Option<(Queue, Quick)>,
}

impl Replies {
    pub(super) fn start(handler: &Handler, quick: Option<Quick>) -> io::Result<Self> {
        let quick =
            quick.map(|quick| Ok::<_, io::Error>((Queue::start(handler, "quick", QUICK)?, quick)));
        Ok(Replies {
            all: Queue::start(handler, "control", [THREADS, WAITING])?,
            quick: quick.transpose()?,
        })
    }

    fn queue(&self, request: &[u8]) -> &Queue {
        match &self.quick {
            Some((queue, quick)) if quick(request) => queue,
            _ => &self.all,
        }
    }

    /// Whether this question would find no place.
    pub(super) fn full(&self, request: &[u8]) -> bool {
        self.queue(request).full()
    }

    /// Answers `request`, some time.
    pub(super) fn ask(&self, handshake: Handshake, caller: Caller, request: Vec<u8>) {
        self.queue(&request).ask(Question {
            handshake,
            caller,
            request,
        });
    }
}

fn answer(handler: &Handler, questions: &Mutex<Receiver<Question>>, waiting: &AtomicUsize) {
    loop {
        let question = lock(questions).recv();
        let Ok(Question {
            handshake,
            caller,
            request,
        }) = question
        else {
            return;
        };
        waiting.fetch_sub(1, Ordering::Relaxed);
        let mut reply = handler(caller, &request);
        drop(request);
        reply.truncate(LONGEST_REPLY);
        // Whoever does not take its reply does without.
        let _ = send(handshake, &reply);
    }
}

fn send(handshake: Handshake, reply: &[u8]) -> io::Result<()> {
    let Handshake { socket, mut tls } = handshake;
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
