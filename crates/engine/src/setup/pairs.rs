//! The making of a session among participants that know each other: its name from all nonces, a secret of each pair, and the proof that
//! both ends have the same.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use veil_link::Link;
use veil_protocol::{Plan, Protocol};
use veil_session::{KeySchedule, Label, PairSecret, Peer, SessionId};
use x25519_dalek::PublicKey;

use super::exchange::exchange;
use super::{Binding, Handshake, PROOF, Stage};
use crate::abort::Abort;

impl Handshake {
    /// All hellos are here: the session and the pairs' schedules follow.
    pub(super) fn hello(
        &mut self,
        plan: &Plan,
        protocol: &dyn Protocol,
        binding: &Binding,
    ) -> Result<(), Abort> {
        let mut nonces: BTreeMap<Peer, [u8; 32]> = BTreeMap::new();
        let mut shares: BTreeMap<Peer, [u8; 32]> = BTreeMap::new();
        nonces.insert(protocol.me(), self.nonce);
        for (peer, _, hello, _) in &self.exchange.recvs {
            if hello[64..] != self.agreed.0 {
                return Err(Abort::SetUp {
                    peer: *peer,
                    what: "runs another plan: compare job files, versions, lanes, and --protocol, --adversary and --output",
                });
            }
            nonces.insert(*peer, hello[..32].try_into().expect("32 bytes"));
            shares.insert(*peer, hello[32..64].try_into().expect("32 bytes"));
        }
        let mut hash = Sha256::new();
        hash.update(b"veilworks session 1");
        hash.update(self.agreed.0);
        for party in plan.parties().iter().copied() {
            let identity = binding.identities.get(party.index());
            hash.update(identity.unwrap_or(&[0; 32]));
            hash.update(
                nonces
                    .get(&Peer::Party(party))
                    .expect("every participant is linked to every party"),
            );
        }
        self.session = SessionId(hash.finalize().into());
        for (peer, share) in shares {
            let agreed = self.share.diffie_hellman(&PublicKey::from(share));
            if !agreed.was_contributory() {
                return Err(Abort::SetUp {
                    peer,
                    what: "sent a key share of small order",
                });
            }
            let exporter = binding.exporters.get(&peer).map_or(&[][..], Vec::as_slice);
            let secret = PairSecret::combine(exporter, agreed.as_bytes());
            self.schedules.insert(
                peer,
                KeySchedule::new(&self.session, &secret, [protocol.me(), peer]),
            );
        }
        let (session, schedules) = (&self.session, &self.schedules);
        let word = self.transfers.as_mut().map(|transfers| {
            let word = transfers.word(protocol, binding, *session);
            (transfers.other(protocol), word)
        });
        self.exchange = exchange(
            plan,
            protocol,
            1,
            |peer| {
                let mut proof = [session.0, proof_of(&schedules[&peer], protocol.me())].concat();
                proof.extend(
                    word.filter(|(other, _)| *other == peer)
                        .iter()
                        .flat_map(|w| w.1),
                );
                Some(proof)
            },
            |peer| match word {
                Some((other, word)) if other == peer => Some(PROOF + word.len()),
                _ => Some(PROOF),
            },
        );
        self.stage = Stage::Proof;
        Ok(())
    }

    /// All proofs are here: same session, same keys. A participant that chooses keys for others sends them.
    pub(super) fn proof(
        &mut self,
        plan: &Plan,
        protocol: &dyn Protocol,
        link: &mut dyn Link,
    ) -> Result<(), Abort> {
        for (peer, _, proof, _) in &self.exchange.recvs {
            if proof[..32] != self.session.0 {
                return Err(Abort::SetUp {
                    peer: *peer,
                    what: "was told other nonces by another party",
                });
            }
            let want = proof_of(&self.schedules[peer], *peer);
            if !bool::from(proof[32..PROOF].ct_eq(&want)) {
                return Err(Abort::SetUp {
                    peer: *peer,
                    what: "does not hold the same keys: an attacker sits between the two ends",
                });
            }
        }
        if let Some(transfers) = &mut self.transfers {
            let other = transfers.other(protocol);
            let told = self.exchange.recvs.iter().find(|recv| recv.0 == other);
            let (.., proof, _) = told.expect("both ends prove their keys");
            transfers.hear(protocol, self.session, &proof[PROOF..])?;
        }
        link.bind(self.session);
        let seeds = &self.seeds;
        self.exchange = exchange(
            plan,
            protocol,
            2,
            |peer| {
                let theirs = seeds.iter().filter(|(s, _)| s.holders.contains(&peer));
                let bytes: Vec<u8> = theirs.flat_map(|(_, key)| *key.expose()).collect();
                (!bytes.is_empty()).then_some(bytes)
            },
            |peer| Some(16 * protocol.dealt(peer).len()).filter(|bytes| *bytes > 0),
        );
        self.stage = Stage::Seeds;
        Ok(())
    }
}

/// What `from` proves to the other end of a pair.
fn proof_of(schedule: &KeySchedule, from: Peer) -> [u8; 32] {
    let label = Label {
        protocol: "session",
        purpose: "proof",
        epoch: 0,
        run: 0,
    };
    let mut hash = Sha256::new();
    hash.update(schedule.confirm(label));
    hash.update(from.to_bytes());
    hash.finalize().into()
}
