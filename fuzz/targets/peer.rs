//! The three bytes that name a participant: what is read encodes to the bytes that it was read from.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: [u8; 3]| {
    assert!(veil_session::Peer::from_bytes(bytes).is_none_or(|peer| peer.to_bytes() == bytes));
});
