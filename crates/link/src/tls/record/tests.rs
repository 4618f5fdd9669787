//! The record layer against published vectors, against rustls, and against peers that do what they may not.

use std::io::{IoSlice, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, Connection, ServerConnection};
use veil_testkit::Seed;
use zeroize::Zeroizing;

use super::fuzz::{Forger, ends, feed, fuzz_records};
use super::keys::{Keys, Suite};
use super::*;
use crate::tls::secrets::Secrets;
use crate::tls::{Identity, config};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// All that waits for the socket.
fn drain(end: &mut Records) -> Vec<u8> {
    let bytes = end.waiting().unwrap().to_vec();
    end.left(bytes.len());
    bytes
}

/// Writes all of it, as often as it takes: the bytes for the socket.
fn sealed(end: &mut Records, mut plain: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !plain.is_empty() {
        let taken = end.write(&[IoSlice::new(plain)]).unwrap();
        plain = &plain[taken..];
        bytes.extend(drain(end));
    }
    bytes
}

/// All plaintext that is here, opened where it lies.
fn opened(end: &mut Records) -> Result<Vec<u8>, Error> {
    let mut got = Vec::new();
    loop {
        let plain = end.plain();
        got.extend_from_slice(plain);
        end.take(plain.len());
        if !end.open()? {
            return Ok(got);
        }
    }
}

/// The same, opened into a buffer of `want` bytes at a time.
fn filled(end: &mut Records, want: usize) -> Result<Vec<u8>, Error> {
    let mut got = Vec::new();
    loop {
        let mut into = vec![0; want + 1];
        let bytes = end.fill(&mut into)?;
        if bytes == 0 {
            return Ok(got);
        }
        got.extend_from_slice(&into[..bytes]);
    }
}

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// What the dialler, which is fed `bytes` of its peer, makes of them, both ways: the error, and the alert with which it answers.
fn refused(bytes: &[u8]) -> (String, Option<AlertDescription>) {
    let answers = [false, true].map(|into| {
        let [mut near, mut far] = ends();
        feed(&mut near, bytes);
        let taken = if into {
            filled(&mut near, 1 << 15)
        } else {
            opened(&mut near)
        };
        let error = taken.expect_err("something is refused").to_string();
        feed(&mut far, &drain(&mut near));
        let alert = match opened(&mut far) {
            Err(Error::AlertReceived(alert)) => Some(alert),
            Ok(_) => None,
            Err(other) => panic!("{other}"),
        };
        (error, alert)
    });
    assert_eq!(answers[0], answers[1], "where it lies, and into a buffer");
    answers[0].clone()
}

/// RFC 8448, section 3: what each side sends after the handshake under its traffic secret. The server has sent a ticket before.
#[test]
fn records_are_those_of_the_published_traces() {
    let client = "9e 40 64 6c e7 9a 7f 9d c0 5a f8 88 9b ce 65 52 87 5a fa 0b 06 df 00 87 f7 92 eb b7 c1 75 04 a5";
    let server = "a1 1a f9 f0 55 31 f8 56 ad 47 11 6b 45 a9 50 32 82 04 b4 f4 4b fb 6b 3a 4b 4f 1f 3f cb 63 16 43";
    let keys = |secret: &str, count| {
        Keys::of(
            Suite::AES_128_GCM_SHA256,
            Zeroizing::new(hex(secret)),
            count,
        )
    };
    let payload: Vec<u8> = (0..50).collect();
    let traces = [
        (
            (client, 0),
            "17 03 03 00 43 a2 3f 70 54 b6 2c 94 d0 af fa fe 82 28 ba 55 cb ef ac ea 42 f9 14 aa 66 bc ab 3f 2b 98 19 a8 a5 b4 6b 39 5b d5 4a 9a
             20 44 1e 2b 62 97 4e 1f 5a 62 92 a2 97 70 14 bd 1e 3d ea e6 3a ee bb 21 69 49 15 e4",
            "17 03 03 00 13 c9 87 27 60 65 56 66 b7 4d 7f f1 15 3e fd 6d b6 d0 b0 e3",
        ),
        (
            (server, 1),
            "17 03 03 00 43 2e 93 7e 11 ef 4a c7 40 e5 38 ad 36 00 5f c4 a4 69 32 fc 32 25 d0 5f 82 aa 1b 36 e3 0e fa f9 7d 90 e6 df fc 60 2d cb
             50 1a 59 a8 fc c4 9c 4b f2 e5 f0 a2 1c 00 47 c2 ab f3 32 54 0d d0 32 e1 67 c2 95 5d",
            "17 03 03 00 13 b5 8f d6 71 66 eb f5 99 d2 47 20 cf be 7e fa 7a 88 64 a9",
        ),
    ];
    for ((secret, count), data, alert) in traces {
        let other = || keys(client, 0);
        let mut sends = Records::new(keys(secret, count), other(), true, Vec::new());
        assert_eq!(sealed(&mut sends, &payload), hex(data));
        sends.close().unwrap();
        assert_eq!(drain(&mut sends), hex(alert));
        let came = [hex(data), hex(alert)].concat();
        let mut receives = Records::new(other(), keys(secret, count), true, came);
        assert_eq!(opened(&mut receives).unwrap(), payload);
    }
}

/// One end in the hands of rustls, with the secrets that it logs.
type End = (Connection, Arc<Secrets>);

/// Two ends of rustls after a handshake with this suite, the dialler's first, which have said something to each other.
fn shaken(suite: usize) -> [End; 2] {
    let [us, them] = [(); 2].map(|()| Identity::generate().unwrap());
    let dials = config::client(&us, them.fingerprint()).unwrap();
    let pinned = us.fingerprint();
    let server = config::server(&them, move |key| *key == pinned).unwrap();
    let mut provider = (**config::provider()).clone();
    provider.cipher_suites = vec![provider.cipher_suites[suite]];
    let mut client = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone))
        .with_client_cert_resolver(Arc::clone(&dials.client_auth_cert_resolver));
    client.alpn_protocols.clone_from(&dials.alpn_protocols);
    client.enable_secret_extraction = true;
    let (heard, client) = Secrets::client(&client);
    let (told, server) = Secrets::server(&server);
    let name = ServerName::try_from(config::NAME).unwrap();
    let client = ClientConnection::new(client, name).unwrap();
    let server = ServerConnection::new(server).unwrap();
    let mut ends: [End; 2] = [(client.into(), heard), (server.into(), told)];
    for (tls, _) in &mut ends {
        tls.writer().write_all(b"hello").unwrap();
    }
    let mut heard = Vec::new();
    for from in [0, 1, 0, 1] {
        let bytes = drained(&mut ends[from].0);
        heard.extend(hand(&mut ends[1 - from].0, &bytes).unwrap());
    }
    assert_eq!(heard, b"hellohello");
    ends
}

fn taken((tls, secrets): End) -> Result<Records, Error> {
    secrets.records(tls, Vec::new())
}

/// A record layer, and rustls at the other end.
fn with_rustls(suite: usize, dials: bool) -> (Records, Connection) {
    let [client, server] = shaken(suite);
    let (ours, theirs) = if dials {
        (client, server)
    } else {
        (server, client)
    };
    (taken(ours).unwrap(), theirs.0)
}

/// A verifier for tests of records, not of keys.
#[derive(Debug)]
struct Anyone;

impl rustls::client::danger::ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, Error> {
        Err(Error::EncryptError)
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        let algorithms = &config::provider().signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// Bytes that rustls has for the socket.
fn drained(from: &mut Connection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while from.wants_write() {
        from.write_tls(&mut bytes).unwrap();
    }
    bytes
}

/// Hands bytes to rustls: the plaintext of them.
fn hand(to: &mut Connection, mut bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut plain = Vec::new();
    while !bytes.is_empty() && to.read_tls(&mut bytes).unwrap() > 0 {
        to.process_new_packets()?;
        // An error says that there is no more now.
        let _ = to.reader().read_to_end(&mut plain);
    }
    Ok(plain)
}

/// What rustls makes of plaintext.
fn said(by: &mut Connection, plain: &[u8]) -> Vec<u8> {
    by.set_buffer_limit(None);
    by.writer().write_all(plain).unwrap();
    drained(by)
}

#[test]
fn rustls_opens_what_is_sealed_here_and_the_other_way_round() {
    for suite in 0..3 {
        for dials in [true, false] {
            let (mut ours, mut theirs) = with_rustls(suite, dials);
            for length in [6, 1000, FULL - 1, FULL, FULL + 1, 300_000] {
                let plain = text(length);
                let bytes = sealed(&mut ours, &plain);
                assert!(
                    hand(&mut theirs, &bytes).unwrap() == plain,
                    "{suite} {length}"
                );
                let bytes = said(&mut theirs, &plain);
                let mut got = Vec::new();
                for piece in bytes.chunks(200_000) {
                    feed(&mut ours, piece);
                    got.extend(match length % 2 {
                        0 => filled(&mut ours, 40_000).unwrap(),
                        _ => opened(&mut ours).unwrap(),
                    });
                }
                assert!(got == plain, "{suite} {length}");
            }
            ours.close().unwrap();
            assert!(hand(&mut theirs, &drain(&mut ours)).unwrap().is_empty());
            assert!(theirs.process_new_packets().unwrap().peer_has_closed());
        }
    }
}

#[test]
fn keys_are_updated_with_rustls_from_either_side_and_answers_are_asked_for() {
    for suite in 0..3 {
        for dials in [true, false] {
            let (mut ours, mut theirs) = with_rustls(suite, dials);
            ours.sealer.limit(3);
            for round in 0..10_usize {
                // Four records: the fourth is under the next keys.
                let plain = text(4 * FULL - round);
                let bytes = sealed(&mut ours, &plain);
                assert!(hand(&mut theirs, &bytes).unwrap() == plain);
                // rustls asks for an update of ours whenever it updates its own.
                theirs.refresh_traffic_keys().unwrap();
                let bytes = said(&mut theirs, &plain[..1000 + round]);
                feed(&mut ours, &bytes);
                assert!(opened(&mut ours).unwrap() == plain[..1000 + round]);
                assert!(ours.sealer.owes, "an answer is owed");
                assert!(!ours.wants_write(), "and waits for the next data");
            }
        }
    }
}

#[test]
fn keys_that_were_updated_before_are_found_and_an_answer_that_is_owed_is_refused() {
    let [mut client, mut server] = shaken(0);
    for _ in 0..3 {
        client.0.refresh_traffic_keys().unwrap();
        let bytes = said(&mut client.0, b"under new keys");
        assert_eq!(hand(&mut server.0, &bytes).unwrap(), b"under new keys");
        let bytes = said(&mut server.0, b"too");
        assert_eq!(hand(&mut client.0, &bytes).unwrap(), b"too");
    }
    let [mut near, mut far] = [client, server].map(|end| taken(end).unwrap());
    feed(&mut far, &sealed(&mut near, b"one"));
    assert_eq!(opened(&mut far), Ok(b"one".to_vec()));
    feed(&mut near, &sealed(&mut far, b"two"));
    assert_eq!(opened(&mut near), Ok(b"two".to_vec()));

    let [mut client, mut server] = shaken(0);
    client.0.refresh_traffic_keys().unwrap();
    let bytes = said(&mut client.0, b"under new keys");
    assert_eq!(hand(&mut server.0, &bytes).unwrap(), b"under new keys");
    assert!(taken(server).is_err());
    // Nor is one whose handshake is not over.
    let [_, (_, secrets)] = shaken(0);
    let early =
        ServerConnection::new(config::server(&Identity::generate().unwrap(), |_| true).unwrap());
    assert!(secrets.records(early.unwrap().into(), Vec::new()).is_err());
}

#[test]
fn a_stream_may_be_cut_anywhere() {
    let [mut near, mut far] = ends();
    far.sealer.limit(2);
    let plain = text(700);
    let mut bytes = Vec::new();
    for piece in plain.chunks(100) {
        bytes.extend(sealed(&mut far, piece));
    }
    for cut in 0..=bytes.len() {
        let [mut near, _] = ends();
        let mut got = Vec::new();
        for part in [&bytes[..cut], &bytes[cut..]] {
            feed(&mut near, part);
            got.extend(
                if cut % 2 == 0 {
                    opened(&mut near)
                } else {
                    filled(&mut near, 150)
                }
                .unwrap(),
            );
        }
        assert_eq!(got, plain, "cut at {cut}");
    }
    let mut got = Vec::new();
    for byte in &bytes {
        feed(&mut near, &[*byte]);
        got.extend(filled(&mut near, 64).unwrap());
    }
    assert_eq!(got, plain, "byte by byte");
}

#[test]
fn a_long_stream_stays_within_its_buffer() {
    let [mut near, mut far] = ends();
    let plain = text(3_000_000);
    let mut rest = &plain[..];
    let mut got = Vec::new();
    let mut step = 1;
    while !rest.is_empty() {
        let taken = far.write(&[IoSlice::new(rest)]).unwrap();
        rest = &rest[taken..];
        let bytes = drain(&mut far);
        let mut bytes = &bytes[..];
        while !bytes.is_empty() {
            step = step * 5 % 99_991;
            let space = near.space();
            let room = space.capacity() - space.len();
            let (now, later) = bytes.split_at(step.min(room).min(bytes.len()));
            space.extend_from_slice(now);
            assert!(space.capacity() <= open::RECEIVE + LONGEST);
            bytes = later;
            got.extend(filled(&mut near, 1 + step % 70_000).unwrap());
        }
    }
    assert!(got == plain);
}

#[test]
fn what_was_changed_swapped_repeated_or_left_out_does_not_open() {
    let mac = (
        "cannot decrypt peer's message".to_owned(),
        Some(AlertDescription::BadRecordMac),
    );
    let mut forger = Forger::new(1);
    let [first, second] = [b"first", b"secnd"].map(|text| forger.seal(kind::DATA, text, 0));
    for bytes in [
        [&second[..], &first].concat(),
        [&first[..], &first].concat(),
        second.clone(),
    ] {
        assert_eq!(refused(&bytes), mac);
    }
    for at in HEAD..first.len() {
        let mut changed = first.clone();
        changed[at] ^= 1;
        assert_eq!(refused(&changed), mac, "byte {at}");
    }
    // Cut, with a header that says so.
    for length in TAG..first.len() - HEAD {
        let mut cut = first[..HEAD + length].to_vec();
        cut[4] = length as u8;
        assert_eq!(refused(&cut), mac, "{length} bytes");
    }
    // Cut, with the header as it was: the rest may come yet.
    for length in 0..first.len() {
        let [mut near, _] = ends();
        feed(&mut near, &first[..length]);
        assert_eq!(opened(&mut near), Ok(Vec::new()));
        assert_eq!(filled(&mut near, 100), Ok(Vec::new()));
    }
    // Sealed by the end that opens it.
    assert_eq!(refused(&Forger::new(0).seal(kind::DATA, b"first", 0)), mac);
}

#[test]
fn headers_that_make_no_sense_are_refused_before_the_rest_comes() {
    for (header, said, alert) in [
        (
            [23, 3, 3, 0x41, 1],
            "peer sent excess record size",
            AlertDescription::RecordOverflow,
        ),
        (
            [23, 3, 3, 0xff, 0xff],
            "peer sent excess record size",
            AlertDescription::RecordOverflow,
        ),
        (
            [23, 3, 3, 0, 0],
            "cannot decrypt peer's message",
            AlertDescription::BadRecordMac,
        ),
        (
            [23, 3, 3, 0, 15],
            "cannot decrypt peer's message",
            AlertDescription::BadRecordMac,
        ),
        (
            [23, 3, 1, 0, 40],
            "received corrupt message of type UnknownProtocolVersion",
            AlertDescription::DecodeError,
        ),
        (
            [20, 3, 3, 0, 1],
            "peer misbehaved: IllegalMiddleboxChangeCipherSpec",
            AlertDescription::UnexpectedMessage,
        ),
        (
            [21, 3, 3, 0, 2],
            "received unexpected message: got Alert when expecting ApplicationData or Handshake",
            AlertDescription::UnexpectedMessage,
        ),
        (
            [22, 3, 3, 0, 40],
            "received unexpected message: got Handshake when expecting ApplicationData or Handshake",
            AlertDescription::UnexpectedMessage,
        ),
    ] {
        let (error, told) = refused(&header);
        assert_eq!((error.as_str(), told), (said, Some(alert)), "{header:?}");
    }
}

#[test]
fn what_a_record_has_inside_is_checked() {
    let inside = |kind, content: &[u8], zeros| refused(&Forger::new(1).seal(kind, content, zeros));
    let unexpected = Some(AlertDescription::UnexpectedMessage);
    for zeros in [0, 1, 100] {
        let nothing = inside(0, &[], zeros);
        assert_eq!(
            nothing,
            (
                "peer misbehaved: IllegalTlsInnerPlaintext".into(),
                unexpected
            )
        );
    }
    let (error, alert) = inside(24, b"heartbeat", 0);
    assert!(
        error.starts_with("received unexpected message: got"),
        "{error}"
    );
    assert_eq!(alert, unexpected);
    let change = (
        "peer misbehaved: IllegalMiddleboxChangeCipherSpec".into(),
        unexpected,
    );
    assert_eq!(inside(kind::CHANGE_CIPHER_SPEC, &[1], 0), change);
    let long = (
        "peer sent excess record size".into(),
        Some(AlertDescription::RecordOverflow),
    );
    assert_eq!(inside(kind::DATA, &text(FULL + 1), 0), long);
    assert_eq!(inside(kind::DATA, &text(FULL), 1), long);
    assert_eq!(inside(kind::DATA, &[], FULL + 200), long);
    // Padding up to the whole of a record is none of it.
    for (length, zeros) in [(FULL, 0), (FULL - 1, 1), (1, FULL - 1), (5, 3)] {
        let plain = text(length);
        let record = Forger::new(1).seal(kind::DATA, &plain, zeros);
        for want in [0, length, FULL + 10] {
            let [mut near, _] = ends();
            feed(&mut near, &record);
            let got = if want == 0 {
                opened(&mut near)
            } else {
                filled(&mut near, want)
            };
            assert!(got.unwrap() == plain, "{length} and {zeros} into {want}");
        }
    }
}

#[test]
fn records_without_data_are_bounded() {
    let ticket = [&[4, 0, 0, 3], &b"abc"[..]].concat();
    let cases: [(u8, Vec<u8>, &str); 4] = [
        (kind::DATA, Vec::new(), "TooManyEmptyFragments"),
        (
            kind::HANDSHAKE,
            vec![24, 0, 0, 1, 1],
            "TooManyKeyUpdateRequests",
        ),
        (kind::HANDSHAKE, ticket, "TooManyWarningAlertsReceived"),
        (kind::ALERT, vec![1, 90], "TooManyWarningAlertsReceived"),
    ];
    for (kind, content, said) in cases {
        let [mut near, mut far] = ends();
        let mut forger = Forger::new(1);
        let next = |forger: &mut Forger| {
            let record = forger.seal(kind, &content, 0);
            if content.first() == Some(&24) {
                forger.renew();
            }
            record
        };
        for _ in 0..3 {
            for _ in 0..32 {
                feed(&mut near, &next(&mut forger));
                assert_eq!(opened(&mut near), Ok(Vec::new()));
            }
            feed(&mut near, &forger.seal(kind::DATA, b"data", 0));
            assert_eq!(opened(&mut near), Ok(b"data".to_vec()));
        }
        // However often it was asked for, there is one answer.
        let answer = sealed(&mut near, b"!");
        let updates = usize::from(content == [24, 0, 0, 1, 1]);
        assert_eq!(answer.len(), 1 + OVERHEAD + updates * (5 + OVERHEAD));
        feed(&mut far, &answer);
        assert_eq!(opened(&mut far), Ok(b"!".to_vec()));
        for _ in 0..32 {
            feed(&mut near, &next(&mut forger));
        }
        feed(&mut near, &next(&mut forger));
        let error = opened(&mut near).unwrap_err();
        assert_eq!(error.to_string(), format!("peer misbehaved: {said}"));
    }
}

#[test]
fn handshake_messages_after_the_handshake_are_updates_and_tickets() {
    let refuses = |content: &[u8]| refused(&Forger::new(1).seal(kind::HANDSHAKE, content, 0));
    for (content, said, alert) in [
        (
            &[24, 0, 0, 1, 2][..],
            "InvalidKeyUpdate",
            AlertDescription::IllegalParameter,
        ),
        (
            &[24, 0, 0, 2, 0, 0],
            "InvalidKeyUpdate",
            AlertDescription::DecodeError,
        ),
        (
            &[24, 0, 0, 1, 0, 24, 0, 0, 1, 0],
            "KeyEpochWithPendingFragment",
            AlertDescription::UnexpectedMessage,
        ),
        (
            &[],
            "InvalidEmptyPayload",
            AlertDescription::UnexpectedMessage,
        ),
        (
            &[4, 1, 0, 0],
            "HandshakePayloadTooLarge",
            AlertDescription::DecodeError,
        ),
        (
            &[13, 0, 0, 0],
            "CertificateRequest",
            AlertDescription::UnexpectedMessage,
        ),
        (
            &[0, 0, 0, 0],
            "HelloRequest",
            AlertDescription::UnexpectedMessage,
        ),
        (
            &[1, 0, 0, 9],
            "ClientHello",
            AlertDescription::UnexpectedMessage,
        ),
    ] {
        let (error, told) = refuses(content);
        assert!(error.contains(said), "{content:?}: {error}");
        assert_eq!(told, Some(alert), "{content:?}");
    }
    // A server gets no tickets.
    let [_, mut server] = ends();
    feed(
        &mut server,
        &Forger::new(0).seal(kind::HANDSHAKE, &[4, 0, 0, 0], 0),
    );
    let error = opened(&mut server).unwrap_err().to_string();
    assert!(
        error.contains("NewSessionTicket when expecting KeyUpdate"),
        "{error}"
    );
    // In pieces, and several in a record.
    let mut forger = Forger::new(1);
    let [mut near, _] = ends();
    for piece in [
        &[4, 0][..],
        &[0, 3, 1, 2],
        &[3, 4, 0, 0, 0, 24, 0],
        &[0, 1],
        &[0],
    ] {
        feed(&mut near, &forger.seal(kind::HANDSHAKE, piece, 2));
        assert_eq!(opened(&mut near), Ok(Vec::new()));
    }
    forger.renew();
    feed(&mut near, &forger.seal(kind::DATA, b"under new keys", 0));
    assert_eq!(filled(&mut near, 100), Ok(b"under new keys".to_vec()));
    // Nothing comes between the pieces of one.
    for (kind, content) in [(kind::DATA, &b"data"[..]), (kind::ALERT, &[1, 0])] {
        let mut forger = Forger::new(1);
        let pieces = [
            forger.seal(kind::HANDSHAKE, &[4, 0, 0, 2, 1], 0),
            forger.seal(kind, content, 0),
        ];
        let (error, alert) = refused(&pieces.concat());
        assert_eq!(
            error,
            "peer misbehaved: MessageInterleavedWithHandshakeMessage"
        );
        assert_eq!(alert, Some(AlertDescription::UnexpectedMessage));
    }
}

#[test]
fn alerts_are_fatal_but_for_two() {
    let says = |content: &[u8]| refused(&Forger::new(1).seal(kind::ALERT, content, 0));
    // Whatever level it states.
    for level in [1, 2] {
        let fatal = says(&[level, 20]);
        assert_eq!(fatal, ("received fatal alert: BadRecordMac".into(), None));
    }
    assert_eq!(says(&[3, 20]).1, Some(AlertDescription::IllegalParameter));
    for content in [&[][..], &[1], &[2, 20, 0], &[1, 0, 1, 0]] {
        assert_eq!(
            says(content).1,
            Some(AlertDescription::DecodeError),
            "{content:?}"
        );
    }
    // After the end of the stream nothing is looked at.
    let mut forger = Forger::new(1);
    for level in [1, 2] {
        let [mut near, _] = ends();
        let mut forger = Forger::new(1);
        let mut bytes = forger.seal(kind::DATA, b"last", 0);
        bytes.extend(forger.seal(kind::ALERT, &[level, 0], 0));
        bytes.extend([0xff; 100]);
        feed(&mut near, &bytes);
        assert_eq!(filled(&mut near, 10), Ok(b"last".to_vec()));
        feed(&mut near, &[1; 1000]);
        assert_eq!(opened(&mut near), Ok(Vec::new()));
        assert!(!near.backlog());
        // The other direction goes on.
        assert!(!sealed(&mut near, b"more").is_empty());
    }
    let record = forger.seal(kind::ALERT, &[1, 90], 0);
    let [mut near, _] = ends();
    feed(&mut near, &record);
    assert_eq!(
        opened(&mut near),
        Ok(Vec::new()),
        "a cancelled handshake ends nothing"
    );
}

#[test]
fn nothing_follows_an_alert() {
    let [mut near, mut far] = ends();
    let mut bytes = sealed(&mut near, b"data");
    near.close().unwrap();
    near.close().unwrap();
    // It is taken, and goes nowhere.
    assert_eq!(
        near.write(&[IoSlice::new(b"more"), IoSlice::new(b"!")]),
        Ok(5)
    );
    assert!(near.wants_write());
    bytes.extend(drain(&mut near));
    assert_eq!(bytes.len(), 4 + OVERHEAD + 2 + OVERHEAD);
    feed(&mut far, &bytes);
    assert_eq!(opened(&mut far), Ok(b"data".to_vec()));
}

#[test]
fn numbers_of_records_do_not_begin_again() {
    let [mut near, mut far] = ends();
    near.opener.skip_to(u64::MAX);
    feed(&mut near, &sealed(&mut far, b"data"));
    assert_eq!(opened(&mut near), Err(Error::DecryptError));
    let [mut near, _] = ends();
    near.sealer.limit(u64::MAX);
    near.sealer.skip_to(u64::MAX - 1);
    near.write(&[IoSlice::new(b"the last")]).unwrap();
    drain(&mut near);
    // The limit comes first: an update, which has no number left.
    assert!(near.write(&[IoSlice::new(b"none")]).is_err());
}

#[test]
fn short_slices_share_records_and_long_ones_do_not() {
    let [mut near, mut far] = ends();
    let (header, short, long) = ([1; 40], text(100), text(FULL + 5000));
    let slices = [&header[..], &short, &header, &long, &header].map(IoSlice::new);
    let all = [&header[..], &short, &header, &long, &header].concat();
    assert_eq!(near.write(&slices).unwrap(), all.len());
    let bytes = drain(&mut near);
    let mut lengths = Vec::new();
    let mut rest = &bytes[..];
    while let Some(length) = first(rest) {
        lengths.push(length - OVERHEAD);
        rest = &rest[length..];
    }
    assert_eq!(lengths, [180, FULL, 5000, 40]);
    feed(&mut far, &bytes);
    assert!(opened(&mut far).unwrap() == all);
}

#[test]
fn scripts_of_a_peer_bring_out_what_was_sent_or_an_error() {
    for seed in 0..4000_u64 {
        let mut numbers = Seed(seed).numbers("scripts of records");
        let length = 20 + numbers.index(200);
        let bytes: Vec<u8> = (0..length).map(|_| numbers.index(256) as u8).collect();
        let run = std::panic::catch_unwind(|| fuzz_records(&bytes));
        assert!(run.is_ok(), "seed {seed}");
    }
}
