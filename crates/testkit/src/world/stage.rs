//! What is there during one run of a world: values, results, the messages, and links that cheat or break.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use veil_engine::{Abort, Data, Report, participants};
use veil_job::{DataError, Slice, Source};
use veil_link::Link;
use veil_link::memory::MemoryLink;
use veil_link::shape::Shaped;
use veil_link::tap::{Fate, Tapped};
use veil_session::Peer;

use super::World;
use crate::crash::{CrashingLink, Edge};
use crate::outcome::{Message, Outcome};
use crate::{Kinds, Seen, Shares, Values};

/// What is there during one run.
pub(super) struct Stage<'a> {
    world: &'a World,
    values: Arc<Values>,
    seen: BTreeMap<Peer, Arc<Seen>>,
    kept: Vec<Arc<Shares>>,
    kinds: Arc<Kinds>,
    transcript: Arc<Mutex<Vec<Message>>>,
    edge: Option<Arc<Edge>>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(world: &'a World) -> Self {
        let values = world
            .values
            .clone()
            .unwrap_or_else(|| Values::random(&world.plan.job, world.seed));
        Stage {
            world,
            values: Arc::new(values),
            seen: participants(&world.plan)
                .into_iter()
                .map(|peer| (peer, Arc::default()))
                .collect(),
            kept: (world.plan.job.parties.iter())
                .map(|_| Arc::new(Shares::new(world.plan.ring)))
                .collect(),
            kinds: Arc::new(Kinds::of(&world.plan)),
            transcript: Arc::default(),
            edge: world
                .crash
                .map(|(_, crash, after)| Arc::new(Edge::new(crash, after))),
        }
    }

    pub(super) fn data(&self, peer: Peer) -> Data {
        let source: Arc<dyn Source> = match self.world.orders.get(&peer) {
            None => Arc::clone(&self.values) as _,
            Some(digests) => Arc::new(Ordered {
                values: Arc::clone(&self.values),
                digests: digests.clone(),
            }),
        };
        let party = peer.party().map(veil_session::PartyId::index);
        Data {
            source: Some(source),
            sink: Some(Arc::clone(&self.seen[&peer]) as _),
            stored: party.and_then(|p| Some(self.world.stored.get(p)?.clone()? as _)),
            keeps: party.and_then(|p| Some(Arc::clone(self.kept.get(p)?) as _)),
            stock: self.world.stock.get(&peer).cloned(),
            makes: self.world.makes.get(&peer).cloned(),
        }
    }

    pub(super) fn wrap(&self, from: Peer, link: MemoryLink) -> Box<dyn Link> {
        let mut link: Box<dyn Link> = match self.world.profile {
            None => Box::new(link),
            Some(profile) => Box::new(Shaped::new(link, profile)),
        };
        if let (Some((who, ..)), Some(edge)) = (self.world.crash, &self.edge)
            && who == from
        {
            link = Box::new(CrashingLink::new(link, Arc::clone(edge)));
        }
        let (kinds, cheat, transcript) = (
            Arc::clone(&self.kinds),
            self.world.cheat.clone(),
            Arc::clone(&self.transcript),
        );
        Box::new(Tapped::new(link, move |to, at, bytes: &[u8]| {
            let message = |to, at, bytes| Message {
                from,
                to,
                at,
                kind: kinds.find(from, to, at),
                bytes,
            };
            let honest = message(to, at, bytes.to_vec());
            let fate = cheat.as_ref().map_or(Fate::Pass, |cheat| cheat(&honest));
            let sent = match &fate {
                Fate::Pass | Fate::Delay(_) => vec![honest],
                Fate::Drop => vec![],
                Fate::Replace(bytes) => vec![message(to, at, bytes.clone())],
                Fate::Twice => vec![honest.clone(), honest],
                Fate::Instead(others) => others
                    .iter()
                    .map(|(to, at, bytes)| message(*to, *at, bytes.clone()))
                    .collect(),
            };
            transcript
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(sent);
            fate
        }))
    }

    pub(super) fn outcome(
        self,
        elapsed: Duration,
        reports: BTreeMap<Peer, Report>,
        aborts: BTreeMap<Peer, Abort>,
    ) -> Outcome {
        let transcript = std::mem::take(
            &mut *self
                .transcript
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        Outcome {
            plan: Arc::clone(&self.world.plan),
            seed: self.world.seed,
            values: self.values,
            elapsed,
            reports,
            aborts,
            seen: self.seen,
            kept: self.kept,
            transcript,
        }
    }
}

/// Values with digests of a key column.
struct Ordered {
    values: Arc<Values>,
    digests: Vec<Vec<[u8; 32]>>,
}

impl Source for Ordered {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        self.values.fill(port, slice, into)
    }

    fn order(&self, block: u32) -> &[[u8; 32]] {
        self.digests.get(block as usize).map_or(&[], Vec::as_slice)
    }
}
