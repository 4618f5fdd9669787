//! Chunks that begin while those in flight wait for messages.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use veil_circuit::Per;
use veil_engine::Settings;
use veil_engine::local::{Conditions, run_program};
use veil_job::{Audience, Holder};
use veil_link::shape::{Profile, Shaped};
use veil_link::tap::{Fate, Tapped};
use veil_math::Ring;
use veil_operators::Sharing;
use veil_protocol::Options;
use veil_protocol::passes::PassProgram;
use veil_session::{PartyId, Peer};

use crate::common::programs::{Ends, builder, parties, random, securities};

const CHUNKS: u32 = 40;

/// The AND of all bits of a word, one after the other, in every row of forty chunks.
fn program() -> Arc<PassProgram> {
    let [security, ..] = securities();
    let mut b = builder(security, parties(security));
    let rows = CHUNKS * 512;
    let word = b.input(Holder::Owner(0), "word", rows, Sharing::Bits(5));
    let mut gates = veil_circuit::Builder::new(Ring::Bits);
    let bits = gates.input("word", 5, Per::Row);
    let all = bits.iter().copied().reduce(|all, bit| gates.and(all, bit));
    gates.output("all", &[all.unwrap()]);
    let all = b.compute(gates.finish().unwrap(), rows, vec![word.take()]);
    b.open(&all, Audience::Recipient(0), "whether all bits are 1");
    let options = Options {
        chunk_rows: Some(512),
        ..Options::default()
    };
    Arc::new(PassProgram::new(&b.finish(), options).unwrap())
}

/// How many chunks party 0 has begun before it sends the second message of the first one.
fn begun(window: usize, net: Option<Profile>) -> usize {
    let program = program();
    let words = random(4, CHUNKS * 512, 5);
    let ends = Ends::of(&program, std::slice::from_ref(&words));
    let sent = Arc::new(Mutex::new(Vec::new()));
    let settings = |_| Settings {
        window,
        ..Settings::default()
    };
    let conditions = Conditions {
        settings: &settings,
        wrap: &|from, _, link| {
            let sent = Arc::clone(&sent);
            let noted = move |_, at: veil_session::Channel, _: &[u8]| {
                if from == Peer::Party(PartyId::THREE[0]) && at.frame.epoch == 1 {
                    sent.lock().unwrap().push((at.frame.chunk, at.step.place));
                }
                Fate::Pass
            };
            let link: Box<dyn veil_link::Link> = Box::new(Tapped::new(link, noted));
            match net {
                Some(net) => Box::new(Shaped::new(link, net)),
                None => link,
            }
        },
        stop: None,
    };
    let data = |peer, pass| ends.data(peer, pass);
    run_program(&program, data, &|_| (), &conditions).unwrap();
    let wanted: Vec<u128> = words.iter().map(|word| u128::from(*word == 31)).collect();
    assert!(ends.opened(&program) == [wanted]);
    let sent = sent.lock().unwrap();
    let first = sent[0];
    let second = sent
        .iter()
        .position(|(chunk, place)| *chunk == first.0 && *place != first.1);
    let before = sent[..second.unwrap()].iter().map(|(chunk, _)| *chunk);
    before.collect::<BTreeSet<u32>>().len()
}

#[test]
fn chunks_begin_while_others_wait_for_a_network() {
    let net = Profile {
        latency: Duration::from_millis(60),
        bandwidth: 1_000_000_000,
    };
    let far = begun(2, Some(net));
    assert!((8..=16).contains(&far), "{far} chunks are in flight");
    assert_eq!(
        begun(1, Some(net)),
        1,
        "one at a time, where that is asked for"
    );
}
