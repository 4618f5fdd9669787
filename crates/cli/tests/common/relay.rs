//! A relay on the line between two participants: passes bytes on, keeps them, and does something to them when told to.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What happens to what a dialler sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// A piece comes twice.
    Replayed,
    /// A bit is another.
    Changed,
    /// A piece is left out.
    LeftOut,
    /// The line ends within a piece.
    Cut,
}

#[derive(Default)]
struct State {
    /// To do once, when a connection has brought so many bytes.
    fault: Option<(Fault, usize)>,
    /// All that was sent by diallers, by connection.
    kept: Vec<Vec<u8>>,
    /// So many records with content of every connection are passed on, and no more; `None`, bytes as they come.
    hold: Option<usize>,
    /// What becomes of the records of each connection.
    held: Vec<Held>,
}

/// Records of one connection.
#[derive(Clone, Copy, Default)]
struct Held {
    /// Records with content that were passed on.
    passed: usize,
    /// So many more than those of every connection may pass.
    more: usize,
    /// Whether one is kept back.
    back: bool,
}

/// How often a relay looks whether it is still to hold what it has.
const LOOK: Duration = Duration::from_millis(10);

/// The first byte of a TLS record with content: a certificate, a call, messages.
const CONTENT: u8 = 23;

/// Records of one direction.
#[derive(Default)]
struct Records {
    /// From the beginning of a record.
    waiting: Vec<u8>,
}

impl Records {
    /// What may be passed on, and what becomes of it is noted.
    fn pass(&mut self, hold: Option<usize>, held: &mut Held) -> Vec<u8> {
        let Some(hold) = hold else {
            return std::mem::take(&mut self.waiting);
        };
        let hold = hold.saturating_add(held.more);
        let mut end = 0;
        held.back = false;
        while let Some(&[kind, _, _, high, low]) = self.waiting[end..].first_chunk() {
            let next = end + 5 + usize::from(u16::from_be_bytes([high, low]));
            if next > self.waiting.len() {
                break;
            }
            held.back = kind == CONTENT && held.passed >= hold;
            if held.back {
                break;
            }
            held.passed += usize::from(kind == CONTENT);
            end = next;
        }
        self.waiting.drain(..end).collect()
    }
}

/// The relay. Its threads end with their connections, and with the test.
pub(crate) struct Relay {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Relay {
    /// One on loopback that calls `to` for every caller.
    pub(crate) fn start(to: SocketAddr) -> Self {
        Self::at(TcpListener::bind("127.0.0.1:0").unwrap(), to)
    }

    /// One that `dialler` calls, and not `to`, which its home in the folder knows by another address from now on.
    pub(crate) fn on_the_line(folder: &super::Folder, dialler: &str, to: &veil_node::Home) -> Self {
        let known = to.settings().address.clone().unwrap();
        let relay = Self::start(known.parse().unwrap());
        let members = format!("{dialler}/members.toml");
        folder.replace(&members, &known, &relay.address.to_string());
        relay
    }

    /// The same as [`Relay::start`], on this port. It calls from the network in which this is called, whatever the port's.
    pub(crate) fn at(port: TcpListener, to: SocketAddr) -> Self {
        let address = port.local_addr().unwrap();
        let state: Arc<Mutex<State>> = Arc::default();
        let known = Arc::clone(&state);
        thread::spawn(move || {
            for caller in port.incoming().map_while(Result::ok) {
                // No listener there: the caller is hung up on, as by the other end.
                if let Ok(callee) = TcpStream::connect(to) {
                    pass(caller, callee, &known);
                }
            }
        });
        Relay { address, state }
    }

    /// Passes so many records with content of every connection on, and keeps the others until it is told otherwise. To be said before
    /// the first connection.
    pub(crate) fn hold(&self, records: usize) {
        self.state.lock().unwrap().hold = Some(records);
    }

    /// Passes one record more on of every connection of which one is kept back.
    pub(crate) fn step(&self) {
        for held in &mut self.state.lock().unwrap().held {
            held.more += usize::from(std::mem::take(&mut held.back));
        }
    }

    /// Records with content that were passed on, by connection.
    pub(crate) fn passed(&self) -> Vec<usize> {
        let state = self.state.lock().unwrap();
        state.held.iter().map(|held| held.passed).collect()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Does this to the next connection that brings so many bytes.
    pub(crate) fn will(&self, fault: Fault, after: usize) {
        self.state.lock().unwrap().fault = Some((fault, after));
    }

    /// Whether it has done so.
    pub(crate) fn did(&self) -> bool {
        self.state.lock().unwrap().fault.is_none()
    }

    /// What the diallers sent, by connection.
    pub(crate) fn kept(&self) -> Vec<Vec<u8>> {
        self.state.lock().unwrap().kept.clone()
    }
}

/// Passes on in both directions, in two threads.
fn pass(caller: TcpStream, callee: TcpStream, state: &Arc<Mutex<State>>) {
    let (mut back_from, mut back_to) = (callee.try_clone().unwrap(), caller.try_clone().unwrap());
    thread::spawn(move || {
        // Whatever ends one direction ends the line.
        let _ = std::io::copy(&mut back_from, &mut back_to);
        let _ = back_to.shutdown(Shutdown::Both);
        let _ = back_from.shutdown(Shutdown::Both);
    });
    let state = Arc::clone(state);
    let index = {
        let mut state = state.lock().unwrap();
        state.kept.push(Vec::new());
        state.held.push(Held::default());
        state.kept.len() - 1
    };
    thread::spawn(move || {
        // An error is an end, and both ends hear of it.
        let _ = forth(&caller, &callee, &state, index);
        let _ = caller.shutdown(Shutdown::Both);
        let _ = callee.shutdown(Shutdown::Both);
    });
}

fn forth(
    mut caller: &TcpStream,
    mut callee: &TcpStream,
    state: &Mutex<State>,
    index: usize,
) -> std::io::Result<()> {
    caller.set_read_timeout(Some(LOOK))?;
    let mut buffer = vec![0; 16 << 10];
    let mut records = Records::default();
    loop {
        let length = match caller.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => 0,
            Err(error) => return Err(error),
        };
        let piece = &mut buffer[..length];
        let fault = {
            let mut state = state.lock().unwrap();
            state.kept[index].extend_from_slice(piece);
            let brought = state.kept[index].len();
            state
                .fault
                .take_if(|(_, after)| length > 0 && brought >= *after)
        };
        match fault.map(|(fault, _)| fault) {
            None => records.waiting.extend_from_slice(piece),
            Some(Fault::Replayed) => {
                records.waiting.extend_from_slice(piece);
                records.waiting.extend_from_slice(piece);
            }
            Some(Fault::Changed) => {
                piece[length / 2] ^= 1;
                records.waiting.extend_from_slice(piece);
            }
            Some(Fault::LeftOut) => {}
            Some(Fault::Cut) => {
                callee.write_all(&records.waiting)?;
                callee.write_all(&piece[..length / 2])?;
                return Ok(());
            }
        }
        // Noted before the other end can answer.
        let passed = {
            let mut state = state.lock().unwrap();
            let hold = state.hold;
            records.pass(hold, &mut state.held[index])
        };
        callee.write_all(&passed)?;
    }
}
