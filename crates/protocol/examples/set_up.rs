//! Runs one end of the set-up of transfers a number of times: `set_up ISA END TIMES SEED`. Without arguments it lists `ISA END ELEMENTS`, as the
//! hot loops of devices do; there is one instruction set, that of the machine.
//!
//! `cargo xtask counts` runs it under callgrind, and compares the instructions on the secrets of one seed with those on the secrets of
//! another: scalars, roots of trees, and the offset, whose bits are the choices of the base transfers and the paths through the trees.

use std::convert::Infallible;
use std::process::ExitCode;

use veil_device::Trees;
use veil_protocol::ot::{Ends, ReceiverSetUp, SenderSetUp};
use veil_prss::{Prf, Use};
use veil_session::{PartyId, Peer, Secret, SessionId};

const ISA: &str = "any";
const SENDER: &str = "set_up_sender";
const RECEIVER: &str = "set_up_receiver";

/// Base transfers of a set-up.
const TRANSFERS: u32 = 128;

const ENDS: Ends = Ends {
    session: SessionId([7; 32]),
    sender: Peer::Party(PartyId::TWO[0]),
    receiver: Peer::Party(PartyId::TWO[1]),
};

/// Bytes of a seed, the same whenever they are asked for.
fn drawn(seed: u8, end: u8) -> impl FnMut(&mut [u8]) -> Result<(), Infallible> {
    let prf = Prf::new(&Secret::new([seed; 16]));
    let mut times = 0;
    move |bytes| {
        times += 1;
        prf.stream(Use(end.into()), 0, 0, times, bytes);
        Ok(())
    }
}

fn sender(seed: u8) -> (SenderSetUp, Vec<u8>) {
    let Ok(started) = SenderSetUp::start(&ENDS, Trees::default(), &mut drawn(seed, 0));
    started
}

fn receiver(seed: u8) -> (ReceiverSetUp, Vec<u8>) {
    let Ok(started) = ReceiverSetUp::start(&ENDS, Trees::default(), &mut drawn(seed, 1));
    started
}

/// One end, as often as is said; what the other one says is always the same.
fn run(end: &str, times: u64, seed: u8) {
    let (_, points) = sender(seed);
    let (other, point) = receiver(seed);
    let (message, _) = other.finish(&points).expect("points of this session");
    for _ in 0..times {
        if end == SENDER {
            let (end, _) = sender(seed);
            let trees = end.base(&point).expect("a point of this session");
            trees.finish(&message).expect("trees of this session");
        } else {
            let (end, _) = receiver(seed);
            end.finish(&points).expect("points of this session");
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.is_empty() {
        for end in [SENDER, RECEIVER] {
            println!("{ISA} {end} {TRANSFERS}");
        }
        return ExitCode::SUCCESS;
    }
    if let [isa, end, times, seed] = &arguments[..]
        && isa == ISA
        && [SENDER, RECEIVER].contains(&&**end)
        && let (Ok(times), Ok(seed)) = (times.parse(), seed.parse())
    {
        run(end, times, seed);
        return ExitCode::SUCCESS;
    }
    eprintln!("Usage: set_up [{ISA} END TIMES SEED]; without arguments it lists what there is");
    ExitCode::from(2)
}
