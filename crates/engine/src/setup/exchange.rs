//! The messages of one step of the handshake.

use veil_link::Link;
use veil_protocol::{Plan, Protocol};
use veil_session::{Channel, Peer, StepId};
use zeroize::Zeroize;

use crate::abort::{Abort, Wait};

/// Messages to send and to receive; the step is over when all are done.
#[derive(Default)]
pub(crate) struct Exchange {
    /// What is not sent yet.
    pub(crate) sends: Vec<(Peer, Channel, Vec<u8>)>,
    /// What comes, and whether it is here.
    pub(crate) recvs: Vec<(Peer, Channel, Vec<u8>, bool)>,
    announced: bool,
}

impl Exchange {
    pub(super) fn step(&mut self, link: &mut dyn Link) -> Result<bool, Abort> {
        if !self.announced {
            for (peer, at, into, _) in &self.recvs {
                link.expect(*peer, *at, into.len() as u64)?;
            }
            self.announced = true;
        }
        while let Some((peer, at, bytes)) = self.sends.last_mut() {
            if !link.post(*peer, *at, bytes)? {
                return Ok(false);
            }
            bytes.zeroize();
            self.sends.pop();
        }
        for (peer, at, into, landed) in self.recvs.iter_mut().filter(|r| !r.3) {
            *landed = link.land(*peer, *at, into)?;
        }
        Ok(self.recvs.iter().all(|r| r.3))
    }

    pub(super) fn waits(&self) -> Vec<Wait> {
        let sends = self.sends.iter().map(|(peer, at, _)| Wait {
            peer: *peer,
            at: *at,
            sending: true,
        });
        let recvs = self
            .recvs
            .iter()
            .filter(|r| !r.3)
            .map(|(peer, at, _, _)| Wait {
                peer: *peer,
                at: *at,
                sending: false,
            });
        sends.chain(recvs).collect()
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.sends.iter_mut().for_each(|s| s.2.zeroize());
        self.recvs.iter_mut().for_each(|r| r.2.zeroize());
    }
}

/// The messages of a step of the handshake with every peer: what is sent to it, and how many bytes come from it.
pub(super) fn exchange(
    plan: &Plan,
    protocol: &dyn Protocol,
    step: u32,
    mut send: impl FnMut(Peer) -> Option<Vec<u8>>,
    receive: impl Fn(Peer) -> Option<usize>,
) -> Exchange {
    let step = StepId {
        place: protocol.places() + step,
        cycle: 0,
    };
    let at = Channel {
        frame: plan.set_up_frame(),
        step,
        part: 0,
    };
    let peers = protocol.peers();
    Exchange {
        sends: peers
            .iter()
            .filter_map(|p| Some((*p, at, send(*p)?)))
            .collect(),
        recvs: peers
            .iter()
            .filter_map(|p| Some((*p, at, vec![0; receive(*p)?], false)))
            .collect(),
        announced: false,
    }
}
