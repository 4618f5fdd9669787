//! One participant's TLS connections of one lane, as a link.

use super::Connected;
use super::wire::TlsWire;
use crate::line::{Line, Lines};
use crate::{Bounds, Link, frame};

/// One participant's end of its TLS connections of one lane. No threads: bytes move in `poll` and `wait`, and a long message
/// also in `post`.
#[derive(Debug)]
pub struct TlsLink(Lines<TlsWire>);

impl TlsLink {
    /// A link over `connections`, all of the same lane.
    pub fn new(connections: Vec<Connected>, bounds: Bounds) -> Self {
        let line = |connected: Connected| {
            let tag = frame::tag(&connected.plan.0);
            let wire = TlsWire::new(connected.line);
            Line::new(wire, connected.peer, tag, bounds)
        };
        let lines = connections.into_iter().map(line).collect();
        TlsLink(Lines::new(lines, bounds))
    }
}

impl Link for TlsLink {
    crate::forward!(self, self.0, bind post post_pieces expect land land_pieces land_whole poll wait abort under_way close meters);
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::frame::tests::at;
    use crate::frame::{Body, Header, tag};
    use crate::tls::handshake::{Handshake, Progress};
    use crate::tls::pair::{PLAN, met, parties};
    use crate::{LinkError, LinkFault, LinkKind, Woken};

    const BOUNDS: Bounds = Bounds {
        longest: 1000,
        early: 10_000,
        credit: 10_000,
        places: 10,
        chunks: 1,
        epochs: 1,
    };

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    /// A link of the first party, and the bare connection of the second.
    fn ends() -> (TlsLink, Connected) {
        let [heard, bare] = met(LinkKind::Tls);
        (TlsLink::new(vec![heard], BOUNDS), bare)
    }

    /// What the link says to `bytes` inside TLS, after which the peer stays silent.
    fn answer(bytes: &[u8]) -> LinkError {
        let (mut link, mut bare) = ends();
        let Handshake { socket, tls, .. } = &mut bare.line;
        tls.writer().write_all(bytes).unwrap();
        while tls.wants_write() {
            tls.write_tls(socket).unwrap();
        }
        loop {
            match link.wait(soon()) {
                Ok(woken) => assert_eq!(woken, Woken::Ready, "no error came"),
                Err(error) => return error,
            }
        }
    }

    fn header(tag: u64, length: u32) -> Vec<u8> {
        Header {
            tag,
            body: Body::Message { at: at(3), length },
        }
        .encode()
        .to_vec()
    }

    #[test]
    fn garbage_inside_tls_is_a_fault_of_the_peer() {
        let error = answer(&[0xff; 500]);
        assert_eq!(error.peer, parties()[1]);
        assert_eq!(
            error.fault,
            LinkFault::Version {
                ours: 1,
                theirs: 0xff
            }
        );
        assert!(matches!(answer(&[1; 500]).fault, LinkFault::Malformed(_)));
    }

    #[test]
    fn a_length_beyond_the_bounds_is_refused_at_the_header() {
        let tag = tag(&PLAN.0);
        for length in [1001, u32::MAX] {
            let error = answer(&header(tag, length));
            assert_eq!(error.at, Some(at(3)));
            assert_eq!(
                error.fault,
                LinkFault::Length {
                    got: length.into(),
                    want: 1000
                }
            );
        }
    }

    /// Waits for message 3 of the second party.
    fn land(link: &mut TlsLink, into: &mut [u8]) {
        while !link.land(parties()[1], at(3), into).unwrap() {
            assert_eq!(link.wait(soon()).unwrap(), Woken::Ready, "nothing came");
        }
    }

    /// What comes with the last bytes of the handshake is in TLS, or in the buffer before it, when the link begins.
    #[test]
    fn bytes_that_came_too_early_for_the_link_are_not_lost() {
        let frame = [&header(tag(&PLAN.0), 700)[..], &[5; 700]].concat();
        // Plaintext of a record that was read in part; a record behind it, whole; and the beginning of one.
        for (with, cut) in [(frame.len(), 0), (0, 0), (100, 0), (0, 300)] {
            let [mut heard, mut bare] = met(LinkKind::Tls);
            let Handshake { socket, tls, .. } = &mut bare.line;
            let mut bytes = Vec::new();
            tls.writer()
                .write_all(&[b"hi", &frame[..with]].concat())
                .unwrap();
            tls.write_tls(&mut bytes).unwrap();
            tls.writer().write_all(&frame[with..]).unwrap();
            while tls.wants_write() {
                tls.write_tls(&mut bytes).unwrap();
            }
            let (now, later) = bytes.split_at(bytes.len() - cut);
            socket.write_all(now).unwrap();
            let (mut hi, mut have) = ([0; 2], 0);
            while heard.line.hear(&mut hi, &mut have).unwrap() == Progress::Waiting {
                thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(&hi, b"hi");
            let mut link = TlsLink::new(vec![heard], BOUNDS);
            link.expect(parties()[1], at(3), 700).unwrap();
            socket.write_all(later).unwrap();
            let mut into = [0; 700];
            land(&mut link, &mut into);
            assert_eq!(
                into, [5; 700],
                "{with} bytes in the first record, cut {cut}"
            );
        }
    }

    #[test]
    fn keys_may_change_in_the_middle_of_a_frame() {
        let (mut link, mut bare) = ends();
        let frame = [&header(tag(&PLAN.0), 700)[..], &[5; 700]].concat();
        let Handshake { socket, tls, .. } = &mut bare.line;
        for piece in frame.chunks(37) {
            tls.writer().write_all(piece).unwrap();
            tls.refresh_traffic_keys().unwrap();
        }
        while tls.wants_write() {
            tls.write_tls(socket).unwrap();
        }
        link.expect(parties()[1], at(3), 700).unwrap();
        let mut into = [0; 700];
        land(&mut link, &mut into);
        assert_eq!(into, [5; 700]);
        // The answer goes ahead of what is said next, which rustls opens.
        link.post(parties()[1], at(4), &[6; 20]).unwrap();
        link.poll().unwrap();
        let (mut said, mut have) = ([0; crate::frame::HEADER + 20], 0);
        while bare.line.hear(&mut said, &mut have).unwrap() == Progress::Waiting {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(said[crate::frame::HEADER..], [6; 20]);
    }

    #[test]
    fn what_is_no_tls_behind_the_handshake_is_a_fault_of_the_peer() {
        let [mut heard, mut bare] = met(LinkKind::Tls);
        let Handshake { socket, tls, .. } = &mut bare.line;
        tls.writer().write_all(b"hi").unwrap();
        tls.write_tls(socket).unwrap();
        socket.write_all(&[0x14, 3, 3, 0, 1, 1]).unwrap();
        let (mut hi, mut have) = ([0; 2], 0);
        while heard.line.hear(&mut hi, &mut have).unwrap() == Progress::Waiting {
            thread::sleep(Duration::from_millis(1));
        }
        let mut link = TlsLink::new(vec![heard], BOUNDS);
        let error = loop {
            if let Err(error) = link.wait(soon()) {
                break error;
            }
        };
        assert!(matches!(error.fault, LinkFault::Cipher(_)), "{error}");
    }

    #[test]
    fn garbage_under_tls_is_a_fault_of_tls() {
        let (mut link, mut bare) = ends();
        bare.line
            .socket
            .write_all(&[0x17, 3, 3, 0, 32, 1, 2, 3, 4, 5])
            .unwrap();
        bare.line.socket.write_all(&[9; 27]).unwrap();
        let error = loop {
            if let Err(error) = link.wait(soon()) {
                break error;
            }
        };
        assert!(matches!(error.fault, LinkFault::Cipher(_)), "{error}");
    }

    #[test]
    fn a_clean_end_of_tls_without_goodbye_is_no_clean_end() {
        let (mut link, mut bare) = ends();
        let Handshake { socket, tls, .. } = &mut bare.line;
        tls.send_close_notify();
        tls.write_tls(socket).unwrap();
        drop(bare);
        let error = loop {
            if let Err(error) = link.wait(soon()) {
                break error;
            }
        };
        assert!(matches!(error.fault, LinkFault::Closed(_)), "{error}");
    }
}
