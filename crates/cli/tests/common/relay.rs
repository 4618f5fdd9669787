//! Somebody on the line between two participants: passes bytes on, keeps them, and does something to them when told to.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

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
}

/// The relay. Its threads end with their connections, and with the test.
pub(crate) struct Relay {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Relay {
    /// One on loopback that calls `to` for everybody who calls it.
    pub(crate) fn start(to: SocketAddr) -> Self {
        Self::at(TcpListener::bind("127.0.0.1:0").unwrap(), to)
    }

    /// The same, on this port. It calls from the network in which this is called, whatever the port's.
    pub(crate) fn at(port: TcpListener, to: SocketAddr) -> Self {
        let address = port.local_addr().unwrap();
        let state: Arc<Mutex<State>> = Arc::default();
        let known = Arc::clone(&state);
        thread::spawn(move || {
            for caller in port.incoming().map_while(Result::ok) {
                // Nobody there: the caller is hung up on, as by the other end.
                if let Ok(callee) = TcpStream::connect(to) {
                    pass(caller, callee, &known);
                }
            }
        });
        Relay { address, state }
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
    let mut buffer = vec![0; 16 << 10];
    loop {
        let length = caller.read(&mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        let piece = &mut buffer[..length];
        let fault = {
            let mut state = state.lock().unwrap();
            state.kept[index].extend_from_slice(piece);
            let brought = state.kept[index].len();
            state.fault.take_if(|(_, after)| brought >= *after)
        };
        match fault.map(|(fault, _)| fault) {
            None => callee.write_all(piece)?,
            Some(Fault::Replayed) => {
                callee.write_all(piece)?;
                callee.write_all(piece)?;
            }
            Some(Fault::Changed) => {
                piece[length / 2] ^= 1;
                callee.write_all(piece)?;
            }
            Some(Fault::LeftOut) => {}
            Some(Fault::Cut) => {
                callee.write_all(&piece[..length / 2])?;
                return Ok(());
            }
        }
    }
}
