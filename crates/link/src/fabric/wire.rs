//! A ring at the peer, and one here, under the frames of a line.

mod moving;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::time::Instant;

use rustls::Connection;
use zeroize::Zeroizing;

use super::control::{Control, Heard};
use super::hello::Hello;
use super::region::{self, Held};
use super::ring::{self, Arrived, EXTENT, OUT, Ring};
use super::seal::{Seal, TAG};
use super::sys::{Endpoint, Event};
use super::{EVERY, SLOT, SLOTS};
use crate::tls::Connected;
use crate::{LinkFault, Provider};

/// Labels of the secrets that come of the TLS connection (RFC 8446, section 7.5).
const EXPORTER: &[u8] = b"EXPORTER-veilworks-fabric-1";

/// One direction's packets and credits, at one end.
#[derive(Debug)]
struct Half {
    packets: Seal,
    credits: Seal,
}

/// One peer.
#[derive(Debug)]
pub(crate) struct FabricWire {
    endpoint: Held,
    control: Control,
    ours: Hello,
    met: bool,
    /// The half that sends packets, and gets credits for them.
    out: Half,
    /// The half that receives packets, and gives credits for them.
    into: Half,
    /// Writes under way: packets, then credits.
    busy: [bool; EXTENT.writes],
    /// Plaintext in the packet that is next to leave, or its length once it is sealed.
    fill: usize,
    sealed: bool,
    sent: u64,
    arrived: Arrived,
    /// The packet that was opened last, and what of it was not taken.
    packet: Zeroizing<Vec<u8>>,
    plain: Range<usize>,
    /// Credits that are sealed and not under way.
    owed: u64,
    /// Bytes that came and were not told of.
    came: usize,
    fault: Option<LinkFault>,
    broken: Option<String>,
    /// When the peer was found gone, and how many packets it says it has sent.
    over: Option<(Instant, Option<u64>)>,
    looks: u32,
    /// Looks that found nothing, one after the other.
    quiet: u32,
}

impl FabricWire {
    /// Opens this side's end towards the peer of a connection, and tells it where.
    pub(crate) fn open(connected: Connected, provider: Provider) -> Result<Self, String> {
        let secret = |context: &[u8]| Zeroizing::new(connected.exporter(EXPORTER, context));
        let half = |packets: &[u8], credits: &[u8]| Half {
            packets: Seal::new(secret(packets)),
            credits: Seal::new(secret(credits)),
        };
        let dialled = half(b"packets of the dialler", b"credits of the listener");
        let heard = half(b"packets of the listener", b"credits of the dialler");
        let (out, into) = match connected.line.tls {
            Connection::Client(_) => (dialled, heard),
            Connection::Server(_) => (heard, dialled),
        };
        let line = connected.line;
        let local = line
            .socket
            .local_addr()
            .map_err(|error| error.to_string())?;
        let mut random = [0; 16];
        aws_lc_rs::rand::fill(&mut random).map_err(|_| "no random bytes")?;
        let [name, key] =
            [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|i| random[at + i])));
        let name = (provider == Provider::SHM).then(|| region::name(std::process::id(), name));
        let own = name.as_ref().map(|name| format!("fi_ns://{name}"));
        let node = local.ip().to_canonical().to_string();
        if own.is_some() {
            region::sweep_all();
        }
        let node = own.is_none().then_some(&*node);
        let endpoint = Endpoint::open(&provider, node, own.as_deref(), key, EXTENT)?;
        let address = match &name {
            Some(name) => name.clone().into_bytes(),
            None => endpoint
                .address()
                .ok_or("the provider has no address here")?,
        };
        let endpoint = Held::new(endpoint, name);
        let ours = Hello::new(&address, endpoint.base(), endpoint.key());
        let ours = ours.ok_or("the provider's address is too long")?;
        let mut control = Control::new(line);
        // If it cannot be sent, the peer is gone, which is found when it is listened to.
        let _ = control.greet(&ours);
        Ok(FabricWire {
            endpoint,
            control,
            ours,
            met: false,
            out,
            into,
            busy: [false; EXTENT.writes],
            fill: 0,
            sealed: false,
            sent: 0,
            arrived: Arrived::default(),
            packet: Zeroizing::new(vec![0; SLOT]),
            plain: 0..0,
            owed: 0,
            came: 0,
            fault: None,
            broken: None,
            over: None,
            looks: 0,
            quiet: 0,
        })
    }

    /// Moves bytes, and notes what came of it. `true` if something did.
    fn drive(&mut self) -> bool {
        if self.broken.is_some() {
            return false;
        }
        let (arrived, busy, came) = (&mut self.arrived, &mut self.busy, &mut self.came);
        let mut lie = false;
        let read = self.endpoint.read(|event| match event {
            Event::Written(write) => busy[write] = false,
            Event::Rung(data) => match Ring::decode(data) {
                Some(ring) if arrived.note(ring) => {
                    if let Ring::Packet { bytes, .. } = ring {
                        *came += bytes;
                    }
                }
                _ => lie = true,
            },
        });
        if lie {
            let what = "it rang for what cannot be there";
            self.fault.get_or_insert(LinkFault::Malformed(what));
        }
        let moved = match read {
            Ok(count) => count > 0,
            Err(why) => {
                self.broken = Some(why);
                false
            }
        };
        if moved {
            self.quiet = 0;
        }
        self.take_credits();
        self.give_credits();
        moved
    }

    /// Opens credits that came.
    fn take_credits(&mut self) {
        let mut number = self.out.credits.count();
        while self.arrived.take_credit(number) {
            let mut tag = [0; TAG];
            self.endpoint.copy(ring::credit(number), &mut tag);
            let good = self.out.credits.open(&mut tag).is_some();
            number += 1;
            if !good {
                let what = format!("credit {number} does not open");
                self.fault.get_or_insert(LinkFault::Cipher(what));
            } else if number * EVERY as u64 > self.sent {
                let what = "it gave credit for what was not sent";
                self.fault.get_or_insert(LinkFault::Malformed(what));
            }
        }
    }

    /// Writes credits that the peer has to get.
    fn give_credits(&mut self) {
        while self.owed > 0 && self.met && self.broken.is_none() {
            let number = self.into.credits.count() - self.owed;
            let (place, from) = (number as usize % ring::CREDITS, ring::credit_out(number));
            let rung = Ring::Credit { place }.encode();
            let to = ring::credit(number) as u64;
            match self.endpoint.write(OUT + place, from, TAG, to, rung) {
                Ok(true) => {
                    self.busy[OUT + place] = true;
                    self.owed -= 1;
                }
                Ok(false) => return,
                Err(why) => self.broken = Some(why),
            }
        }
    }

    /// Begins the write of the packet that is next. `true` if it is under way.
    fn dispatch(&mut self) -> bool {
        let credit = SLOTS as u64 + EVERY as u64 * self.out.credits.count();
        if !self.met
            || self.fill == 0
            || self.sent >= credit
            || self.broken.is_some()
            || self.fault.is_some()
        {
            return false;
        }
        let write = self.sent as usize % OUT;
        if !self.sealed {
            let at = self.endpoint.out(write * SLOT, self.fill + TAG);
            let (plain, tag) = at.split_at_mut(self.fill);
            tag.copy_from_slice(&self.out.packets.seal(plain));
            self.fill += TAG;
            self.sealed = true;
        }
        let place = self.sent as usize % SLOTS;
        let bytes = self.fill;
        let rung = Ring::Packet { place, bytes }.encode();
        let to = ring::packet(self.sent) as u64;
        match self.endpoint.write(write, write * SLOT, bytes, to, rung) {
            Ok(true) => {
                self.busy[write] = true;
                self.sent += 1;
                self.fill = 0;
                self.sealed = false;
                true
            }
            Ok(false) => false,
            Err(why) => {
                self.broken = Some(why);
                false
            }
        }
    }

    /// Hears what the peer says beside the ring.
    fn listen(&mut self) -> Result<(), LinkFault> {
        match self.control.hear()? {
            Heard::Nothing => Ok(()),
            Heard::Hello(bytes) => {
                let hello = Hello::decode(&bytes, &self.ours, self.control.peer())?;
                self.endpoint.join(&hello)?;
                self.met = true;
                self.quiet = 0;
                Ok(())
            }
            Heard::Over(sent) => {
                self.over.get_or_insert((Instant::now(), sent));
                Ok(())
            }
        }
    }

    fn under_way(&self) -> bool {
        self.busy.contains(&true)
    }
}
