//! A slower network than the one at hand: latency and bandwidth, added the same way every time.
//!
//! Each message leaves [`Shaped`] when a real line would have delivered it: after the messages before it to the same peer have passed at
//! the line's rate, and one way's latency later. No chance is involved: no jitter, no loss. An abort is not held up, since it is there to
//! end things. A message moves on when its sender next uses the link, so a sender that computes for longer than the latency without a look
//! at its link is held up by that.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use veil_session::{Channel, Peer, SessionId};

use crate::frame::HEADER;
use crate::pool::Pool;
use crate::{Link, LinkError, LinkFault, Meters, Woken};

/// The properties of a line, the same in both directions and to every peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Profile {
    /// Time from one end to the other: half a round trip.
    pub latency: Duration,
    /// Bits per second.
    pub bandwidth: u64,
}

impl Profile {
    /// One machine room: 0.1 ms round trip, 10 Gb/s.
    pub const LAN: Profile = Profile {
        latency: Duration::from_micros(50),
        bandwidth: 10_000_000_000,
    };

    /// Two cities: 40 ms round trip, 1 Gb/s.
    pub const WAN: Profile = Profile {
        latency: Duration::from_millis(20),
        bandwidth: 1_000_000_000,
    };

    /// How long `bytes` bytes occupy the line.
    fn passage(&self, bytes: usize) -> Duration {
        let nanoseconds = bytes as u128 * 8 * 1_000_000_000 / u128::from(self.bandwidth.max(1));
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// Payload bytes that may be under way: what the line holds, and 50 ms of it as a switch's or a socket's buffer.
    fn window(&self) -> u64 {
        let seconds = self.latency.as_secs_f64() + 0.05;
        (self.bandwidth as f64 / 8.0 * seconds) as u64
    }
}

/// A name that no profile has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no network profile `{0}`: choose `lan` (0.1 ms, 10 Gb/s) or `wan` (40 ms, 1 Gb/s)"
)]
pub struct ProfileError(String);

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(name: &str) -> Result<Self, ProfileError> {
        match name {
            "lan" => Ok(Profile::LAN),
            "wan" => Ok(Profile::WAN),
            _ => Err(ProfileError(name.to_owned())),
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (milliseconds, gigabits) = (
            self.latency.as_secs_f64() * 2e3,
            self.bandwidth as f64 / 1e9,
        );
        write!(f, "{milliseconds} ms round trip, {gigabits} Gb/s")
    }
}

/// A message under way.
#[derive(Debug)]
struct Flying {
    due: Instant,
    at: Channel,
    bytes: Vec<u8>,
}

/// The line to one peer.
#[derive(Debug)]
struct Line {
    to: Peer,
    /// When the last message that was posted has passed the line's entrance.
    free: Instant,
    flying: VecDeque<Flying>,
    /// Payload bytes in `flying`.
    bytes: u64,
    /// How many of `flying`, the first ones, were posted before the session had a name.
    unnamed: usize,
    refused: bool,
    pool: Pool,
}

impl Line {
    /// Forgets what is under way.
    fn clear(&mut self) {
        self.flying.clear();
        (self.bytes, self.unnamed) = (0, 0);
    }
}

/// A link whose messages take the time that a [`Profile`] says.
#[derive(Debug)]
pub struct Shaped<L> {
    inner: L,
    profile: Profile,
    lines: Vec<Line>,
    sent: Meters,
    /// The session's name, while messages from before it had one are under way.
    unnamed: Option<SessionId>,
}

impl<L: Link> Shaped<L> {
    /// Slows `inner` down to `profile`.
    pub fn new(inner: L, profile: Profile) -> Self {
        Shaped {
            inner,
            profile,
            lines: Vec::new(),
            sent: Meters::default(),
            unnamed: None,
        }
    }

    fn line(&mut self, to: Peer) -> &mut Line {
        let i = self
            .lines
            .iter()
            .position(|line| line.to == to)
            .unwrap_or_else(|| {
                self.lines.push(Line {
                    to,
                    free: Instant::now(),
                    flying: VecDeque::new(),
                    bytes: 0,
                    unnamed: 0,
                    refused: false,
                    pool: Pool::new(self.profile.window()),
                });
                self.lines.len() - 1
            });
        &mut self.lines[i]
    }

    /// Hands on what is due. `true` if anything was, or if there is room again for a caller that was refused.
    fn release(&mut self) -> Result<bool, LinkError> {
        let mut moved = self.release_due()?;
        if self.lines.iter().all(|line| line.unnamed == 0)
            && let Some(session) = self.unnamed.take()
        {
            self.inner.bind(session);
            moved = true;
            self.release_due()?;
        }
        Ok(moved)
    }

    fn release_due(&mut self) -> Result<bool, LinkError> {
        let now = Instant::now();
        let window = self.profile.window();
        let naming = self.unnamed.is_some();
        let (mut moved, mut lost) = (false, None);
        for line in &mut self.lines {
            while let Some(first) = line.flying.front().filter(|first| first.due <= now) {
                // What was posted under the session's name waits until the link has it.
                let held = naming && line.unnamed == 0;
                if held {
                    break;
                }
                match self.inner.post(line.to, first.at, &first.bytes) {
                    Ok(true) => moved = true,
                    Ok(false) => break,
                    Err(error) => {
                        // This peer takes nothing any more; what is on its way to others reaches them.
                        line.clear();
                        lost.get_or_insert(error);
                        break;
                    }
                }
                line.unnamed = line.unnamed.saturating_sub(1);
                line.bytes -= first.bytes.len() as u64;
                if let Some(done) = line.flying.pop_front() {
                    line.pool.put(done.bytes);
                }
            }
            if line.refused && line.bytes <= window / 2 {
                line.refused = false;
                moved = true;
            }
        }
        lost.map_or(Ok(moved), Err)
    }

    /// When the next message is due, if one is under way. What is overdue waits for the inner link, not for the clock.
    fn next_due(&self) -> Option<Instant> {
        let now = Instant::now();
        self.lines
            .iter()
            .filter_map(|line| line.flying.front())
            .map(|f| f.due)
            .filter(|&due| due > now)
            .min()
    }
}

impl<L: Link> Link for Shaped<L> {
    /// Takes effect when the messages that are under way have left: they belong to the time before.
    fn bind(&mut self, session: SessionId) {
        for line in &mut self.lines {
            line.unnamed = line.flying.len();
        }
        self.unnamed = Some(session);
        if self.lines.iter().all(|line| line.unnamed == 0) {
            self.unnamed = None;
            self.inner.bind(session);
        }
    }

    fn post(&mut self, to: Peer, at: Channel, bytes: &[u8]) -> Result<bool, LinkError> {
        self.release()?;
        let Profile { latency, .. } = self.profile;
        let passage = self.profile.passage(bytes.len() + HEADER);
        let window = self.profile.window();
        let line = self.line(to);
        if !line.flying.is_empty() && line.bytes + bytes.len() as u64 > window {
            line.refused = true;
            return Ok(false);
        }
        line.free = line.free.max(Instant::now()) + passage;
        let mut copy = line.pool.take(bytes.len());
        copy.extend_from_slice(bytes);
        line.bytes += bytes.len() as u64;
        line.flying.push_back(Flying {
            due: line.free + latency,
            at,
            bytes: copy,
        });
        self.sent.sent(bytes.len());
        Ok(true)
    }

    fn poll(&mut self) -> Result<bool, LinkError> {
        Ok(self.release()? | self.inner.poll()?)
    }

    fn wait(&mut self, until: Instant) -> Result<Woken, LinkError> {
        loop {
            if self.release()? {
                return Ok(Woken::Ready);
            }
            let due = self.next_due().filter(|&due| due < until);
            match self.inner.wait(due.unwrap_or(until))? {
                Woken::TimedOut if due.is_some() => {}
                woken => return Ok(woken),
            }
        }
    }

    fn abort(&mut self) {
        self.lines.clear();
        self.inner.abort();
    }

    fn under_way(&self) -> bool {
        self.lines.iter().any(|line| !line.flying.is_empty())
    }

    fn close(&mut self, until: Instant) -> Result<(), LinkError> {
        while let Some(line) = self.lines.iter().find(|line| !line.flying.is_empty()) {
            let (peer, bytes) = (line.to, line.bytes);
            if Instant::now() >= until {
                return Err(LinkError {
                    peer,
                    at: None,
                    fault: LinkFault::Unsent(bytes),
                });
            }
            self.wait(until)?;
        }
        self.inner.close(until)
    }

    fn meters(&self) -> Meters {
        self.inner.meters().with_sent(self.sent)
    }

    crate::forward!(self, self.inner, expect land);
}

#[cfg(test)]
mod tests {
    use veil_session::PartyId;

    use super::*;
    use crate::frame::tests::at;
    use crate::{Bounds, memory};

    const BOUNDS: Bounds = Bounds {
        longest: 1 << 24,
        early: 1 << 26,
        credit: 1 << 26,
        places: 10_000,
        chunks: 1,
        epochs: 1,
    };

    /// How long `count` messages of `bytes` bytes take under `profile`, all posted at once.
    fn timed(profile: Profile, count: u32, bytes: usize) -> Duration {
        let [a, b, _] = PartyId::THREE.map(Peer::Party);
        let mut links = memory::mesh(&[a, b], BOUNDS);
        let mut far = links.pop().unwrap();
        let mut near = Shaped::new(links.pop().unwrap(), profile);
        let start = Instant::now();
        let message = vec![1; bytes];
        let mut got = vec![0; bytes];
        let mut posted = 0;
        for place in 0..count {
            far.expect(a, at(place), bytes as u64).unwrap();
            while !far.land(a, at(place), &mut got).unwrap() {
                while posted < count && near.post(b, at(posted), &message).unwrap() {
                    posted += 1;
                }
                // The far end times out: in one thread the near end has to look at its clock meanwhile.
                near.poll().unwrap();
            }
        }
        start.elapsed()
    }

    #[test]
    fn a_message_takes_the_latency_and_its_passage() {
        let profile = Profile {
            latency: Duration::from_millis(30),
            bandwidth: 80_000_000,
        };
        let one = timed(profile, 1, 10);
        assert!(
            one >= Duration::from_millis(30) && one < Duration::from_millis(300),
            "{one:?}"
        );
        // 10 MB/s and 3 MB: 300 ms, and the latency once, not per message.
        let many = timed(profile, 30, 100_000);
        assert!(
            many >= Duration::from_millis(330) && many < Duration::from_millis(800),
            "{many:?}"
        );
    }

    #[test]
    fn profiles_have_names_and_say_what_they_are() {
        assert_eq!("lan".parse(), Ok(Profile::LAN));
        assert_eq!("wan".parse(), Ok(Profile::WAN));
        assert_eq!(Profile::WAN.to_string(), "40 ms round trip, 1 Gb/s");
        assert!(
            "WLAN"
                .parse::<Profile>()
                .unwrap_err()
                .to_string()
                .contains("`lan`")
        );
    }

    #[test]
    fn the_line_is_bounded_and_room_wakes() {
        let [a, b, _] = PartyId::THREE.map(Peer::Party);
        let mut links = memory::mesh(&[a, b], BOUNDS);
        let _far = links.pop().unwrap();
        let profile = Profile {
            latency: Duration::from_millis(10),
            bandwidth: 80_000_000,
        };
        let mut near = Shaped::new(links.pop().unwrap(), profile);
        let mut posted = 0;
        while near.post(b, at(posted), &vec![0; 100_000]).unwrap() {
            posted += 1;
        }
        assert_eq!(posted, 6, "60 ms at 10 MB/s");
        let woken = near.wait(Instant::now() + Duration::from_secs(5)).unwrap();
        assert_eq!(woken, Woken::Ready);
        near.close(Instant::now() + Duration::from_secs(5)).unwrap();
        assert_eq!(near.meters().messages_sent, 6);
    }

    #[test]
    fn an_abort_is_not_held_up_and_what_was_under_way_is_lost() {
        let [a, b, _] = PartyId::THREE.map(Peer::Party);
        let mut links = memory::mesh(&[a, b], BOUNDS);
        let mut far = links.pop().unwrap();
        let slow = Profile {
            latency: Duration::from_secs(60),
            bandwidth: 1_000_000,
        };
        let mut near = Shaped::new(links.pop().unwrap(), slow);
        near.post(b, at(0), &[1]).unwrap();
        far.expect(a, at(0), 1).unwrap();
        near.abort();
        assert_eq!(
            far.land(a, at(0), &mut [0]).unwrap_err().fault,
            LinkFault::Aborted
        );
    }

    #[test]
    fn a_name_does_not_overtake_the_messages_before_it() {
        let [a, b, _] = PartyId::THREE.map(Peer::Party);
        let mut links = memory::mesh(&[a, b], BOUNDS);
        let mut far = links.pop().unwrap();
        let profile = Profile {
            latency: Duration::from_millis(5),
            bandwidth: 1_000_000_000,
        };
        let mut near = Shaped::new(links.pop().unwrap(), profile);
        near.post(b, at(0), &[1]).unwrap();
        near.bind(SessionId([3; 32]));
        near.post(b, at(1), &[2]).unwrap();
        near.close(Instant::now() + Duration::from_secs(5)).unwrap();
        let mut got = [0];
        far.expect(a, at(0), 1).unwrap();
        assert!(
            far.land(a, at(0), &mut got).unwrap(),
            "the first came without the name"
        );
        far.bind(SessionId([3; 32]));
        far.expect(a, at(1), 1).unwrap();
        assert!(far.land(a, at(1), &mut got).unwrap() && got == [2]);
    }

    #[test]
    fn a_peer_that_is_gone_takes_nothing_from_the_others() {
        let peers = PartyId::THREE.map(Peer::Party);
        let [a, b, c] = peers;
        let mut links = memory::mesh(&peers, BOUNDS);
        let (mut far, gone) = (links.pop().unwrap(), links.pop().unwrap());
        let profile = Profile {
            latency: Duration::from_millis(5),
            bandwidth: 1_000_000_000,
        };
        let mut near = Shaped::new(links.pop().unwrap(), profile);
        assert!(!near.under_way());
        near.post(b, at(0), &[1]).unwrap();
        near.post(c, at(0), &[2]).unwrap();
        drop(gone);
        let mut lost = None;
        while near.under_way() {
            lost = lost.or(near.poll().err());
        }
        assert_eq!(lost.map(|error| error.peer), Some(b));
        far.expect(a, at(0), 1).unwrap();
        let mut got = [0];
        assert!(far.land(a, at(0), &mut got).unwrap() && got == [2]);
    }
}
