//! Slots of digests: a participant's own, and its peers'.

use veil_circuit::Per;
use veil_device::Span;

use super::regions::DIGESTS;
use super::scheme::{Component, Scheme};
use crate::plan::Plan;

/// Where digests are: an agreement and the list, each of this party and of the others; then of keys that were dealt, per party and per
/// owner that supplies values, per output port, and of what is loaded. Wherever others send a digest of the same, theirs follow that of this participant.
#[derive(Clone, Copy)]
pub(super) struct Digests {
    /// Parties, and components.
    parties: u32,
    owners: u32,
    outputs: u32,
}

impl Digests {
    pub(super) fn of(scheme: &Scheme, plan: &Plan) -> Self {
        Digests {
            parties: scheme.parties.len() as u32,
            owners: plan.job.owners.len() as u32,
            outputs: plan.outputs.len() as u32,
        }
    }

    /// Of a component that this party holds: its own digest, and those of the other holders.
    fn held(self) -> u32 {
        self.parties - 1
    }

    /// Per party that supplies values: of its explicit component in rows and in the job.
    fn per_party(self) -> u32 {
        2 * self.held()
    }

    /// Per owner: as a party that supplies values, and of each seed.
    fn per_owner(self) -> u32 {
        self.per_party() + (self.parties - 1) * self.held()
    }

    /// Per output port: of each component the one computed here, and those received.
    fn per_output(self) -> u32 {
        self.parties * self.held()
    }

    fn digest(first: u32) -> Span {
        Span {
            region: DIGESTS,
            component: 0,
            first,
            count: 1,
        }
    }

    /// Of an agreement: 0 mine, k that of the k-th other party.
    pub(super) fn agreement(k: u32) -> Span {
        Self::digest(k)
    }

    /// Of the list of accepted inputs: as [`Self::agreement`].
    pub(super) fn list(self, k: u32) -> Span {
        Self::digest(self.parties + k)
    }

    /// Of the key of a component that was dealt: 0 mine, k that of the k-th other who was dealt it.
    pub(super) fn dealt(self, component: Component, k: u32) -> Span {
        Self::digest(2 * self.parties + self.held() * u32::from(component.number()) + k)
    }

    fn suppliers(self) -> u32 {
        (2 + self.held()) * self.parties
    }

    /// Of what a party supplies: 0 mine, k that of the k-th other holder.
    pub(super) fn party(self, party: u32, per: Per, k: u32) -> Span {
        let first = self.suppliers() + self.per_party() * party;
        Self::digest(first + self.held() * u32::from(per == Per::Job) + k)
    }

    fn owners(self) -> u32 {
        self.suppliers() + self.per_party() * self.parties
    }

    /// Of an owner's explicit components: as [`Self::party`].
    pub(super) fn owner(self, owner: u16, per: Per, k: u32) -> Span {
        let first = self.owners() + self.per_owner() * u32::from(owner);
        Self::digest(first + self.held() * u32::from(per == Per::Job) + k)
    }

    /// Of an owner's seed: as [`Self::party`].
    pub(super) fn seed(self, owner: u16, seed: Component, k: u32) -> Span {
        let first = self.owners() + self.per_owner() * u32::from(owner) + self.per_party();
        Self::digest(first + self.held() * u32::from(seed.number()) + k)
    }

    fn outputs(self) -> u32 {
        self.owners() + self.per_owner() * self.owners
    }

    /// Of a component that is opened: 0 computed here, k received from the k-th who vouches for it.
    pub(super) fn open(self, output: usize, component: Component, k: u32) -> Span {
        let first = self.outputs() + self.per_output() * output as u32;
        Self::digest(first + self.held() * u32::from(component.number()) + k)
    }

    fn loaded_from(self) -> u32 {
        self.outputs() + self.per_output() * self.outputs
    }

    /// Of a part that is loaded: 0 mine, k that of its k-th other holder.
    pub(super) fn loaded(self, per: Per, part: u8, k: u32) -> Span {
        let job = u32::from(per == Per::Job) * self.parties;
        Self::digest(self.loaded_from() + self.held() * (job + u32::from(part)) + k)
    }

    fn masked_from(self) -> u32 {
        self.loaded_from() + 2 * self.parties * self.held()
    }

    /// Of a component of masked values that are opened: 0 computed here, 1 received.
    pub(super) fn masked(self, component: Component, k: u32) -> Span {
        Self::digest(self.masked_from() + 2 * u32::from(component.number()) + k)
    }

    pub(super) fn count(self, loads: bool, masks: bool) -> u32 {
        match (loads, masks) {
            (_, true) => self.masked_from() + 2 * self.parties,
            (true, false) => self.masked_from(),
            (false, false) => self.loaded_from(),
        }
    }
}
