//! Replicated sharing among any number of parties of whom one may be corrupt: who holds which component.

use veil_device::KeyId;
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::PartyId;

use super::checks::{CheckOf, ProofOf};
use crate::plan::{LayerPlan, Plan};
use crate::round::{Cost, Round};

/// v = Σ u_c, with as many components as parties, and every party holds all of them but one.
///
/// Component numbers go round, as party numbers do. What a party holds are its *parts*: part 0 is the one that it has a key of its own
/// for, and so on, as `parts` says.
#[derive(Debug)]
pub(crate) struct Scheme {
    /// Name in commands and reports.
    pub(crate) name: &'static str,
    /// The guarantee in one line.
    pub(crate) guarantee: &'static str,
    /// The parties.
    pub(crate) parties: &'static [PartyId],
    /// Part k of party i is component i + parts\[k\].
    pub(crate) parts: &'static [usize],
    /// Party i lacks component i + lacks.
    pub(crate) lacks: usize,
    /// What the mask of an input by a party is drawn for.
    pub(crate) input: fn(u8) -> DomainTag,
    /// What an outside owner's random components are drawn for.
    pub(crate) share: DomainTag,
    /// What random values are drawn for.
    pub(crate) random: DomainTag,
    /// Parts that public constants act on: bit k for part k.
    pub(crate) constants: fn(Ring, PartyId) -> u8,
    /// Keys that are not owners' seeds; the first of them are those of the parts.
    pub(crate) keys: u16,
    /// Labels and numbers of the keys of a pair: of this party and of another.
    pub(crate) pair_keys: fn(PartyId, PartyId) -> Vec<(&'static str, KeyId)>,
    /// Whether the keys of the parts are known to more than a pair, so that one of their holders deals each.
    pub(crate) dealt: bool,
    /// How it multiplies.
    pub(crate) products: Products,
}

/// How a protocol multiplies. What a party does may depend on whether the chunk's number is odd: where roles alternate.
#[derive(Debug)]
pub(crate) struct Products {
    /// Messages of a product that a party makes, and places for those that it gets.
    pub(crate) messages: u8,
    /// Whether roles alternate from chunk to chunk: rounds of layers depend on whether its number is odd.
    pub(crate) alternates: bool,
    /// Whether the messages of all parties together are the products, as their sum.
    pub(crate) are_shares: bool,
    /// Places for authentication MACs of messages.
    pub(crate) macs: u32,
    /// The round of a layer: its number in the plan, and what it computes.
    pub(crate) layer: fn(&Plan, PartyId, usize, &LayerPlan, bool) -> Round,
    /// What a layer costs whose products have so many bytes, its sums so many, and its products of bits beside integers so many.
    pub(crate) cost: fn(PartyId, &LayerPlan, [u64; 3], bool) -> Cost,
    /// What the parties prove to each other after the layers of a batch; nothing if every layer is checked, or none.
    pub(crate) proof: Option<ProofOf>,
    /// How they check products of integers, if the plan gives these MACs.
    pub(crate) check: Option<CheckOf>,
}

/// A component of a value: 0 for u_0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Component(pub(crate) usize);

impl Component {
    /// Its number in names of messages and in labels.
    pub(crate) fn number(self) -> u16 {
        self.0 as u16
    }
}

impl Scheme {
    /// The party `by` places after `party`.
    pub(crate) fn after(&self, party: PartyId, by: usize) -> PartyId {
        self.parties[(party.index() + by) % self.parties.len()]
    }

    pub(crate) fn next(&self, party: PartyId) -> PartyId {
        self.after(party, 1)
    }

    pub(crate) fn previous(&self, party: PartyId) -> PartyId {
        self.after(party, self.parties.len() - 1)
    }

    /// The other parties, the next one first.
    pub(crate) fn others(&self, me: PartyId) -> impl Iterator<Item = PartyId> {
        (1..self.parties.len()).map(move |by| self.after(me, by))
    }

    /// Numbers of a party's parts.
    pub(crate) fn parts(&self) -> std::ops::Range<u8> {
        0..self.parts.len() as u8
    }

    fn component(&self, party: PartyId, offset: usize) -> Component {
        Component(self.after(party, offset).index())
    }

    /// Which component part `part` of `party` is.
    pub(crate) fn component_of(&self, party: PartyId, part: u8) -> Component {
        self.component(party, self.parts[usize::from(part)])
    }

    /// Where `party` keeps a component; nothing if that is the one it lacks.
    pub(crate) fn part_of(&self, party: PartyId, component: Component) -> Option<u8> {
        self.parts()
            .find(|part| self.component_of(party, *part) == component)
    }

    /// The component that `party` lacks.
    pub(crate) fn missing(&self, party: PartyId) -> Component {
        self.component(party, self.lacks)
    }

    /// All components.
    pub(crate) fn components(&self) -> impl Iterator<Item = Component> {
        (0..self.parties.len()).map(Component)
    }

    /// Who holds a component: all but one, beginning with the party of that number or the one after it.
    pub(crate) fn holders(&self, component: Component) -> impl Iterator<Item = PartyId> {
        let first = self.parties[component.0];
        let all = (0..self.parties.len()).map(move |by| self.after(first, by));
        all.filter(move |party| self.missing(*party) != component)
    }

    /// The other holders of a component, if `me` is one.
    pub(crate) fn other_holders(
        &self,
        me: PartyId,
        component: Component,
    ) -> impl Iterator<Item = PartyId> {
        let holds = self.part_of(me, component).is_some();
        self.holders(component)
            .filter(move |party| holds && *party != me)
    }

    /// The component that an input of `party` makes explicit. It draws the others that it holds, and the one that it lacks is zero.
    pub(crate) fn explicit(&self, party: PartyId) -> Component {
        self.component(party, 2)
    }

    /// The component that an outside owner's input makes explicit: the last. It draws the others from a seed each.
    pub(crate) fn owners_explicit(&self) -> Component {
        Component(self.parties.len() - 1)
    }

    /// The components that an outside owner draws, in the order of its seeds.
    pub(crate) fn seeded(&self) -> impl Iterator<Item = Component> {
        (0..self.parties.len() - 1).map(Component)
    }

    /// The party that deals the key of a component, if one does: its holder of the lowest number.
    pub(crate) fn dealer(&self, component: Component) -> Option<PartyId> {
        self.holders(component).min().filter(|_| self.dealt)
    }

    /// The components whose keys `dealer` deals.
    pub(crate) fn dealt_by(&self, dealer: PartyId) -> impl Iterator<Item = Component> {
        self.components()
            .filter(move |component| self.dealer(*component) == Some(dealer))
    }

    /// The others that were dealt the key of a component, if `me` was.
    pub(crate) fn dealt_with(
        &self,
        me: PartyId,
        component: Component,
    ) -> impl Iterator<Item = PartyId> {
        let dealer = self.dealer(component);
        let others = self.other_holders(me, component);
        others.filter(move |other| dealer.is_some_and(|dealer| dealer != me && dealer != *other))
    }

    /// Number of the key that part `part` is drawn from.
    pub(crate) fn key(part: u8) -> KeyId {
        KeyId(part.into())
    }

    /// Number of an owner's seed at a participant that holds it.
    pub(crate) fn seed_key(&self, owner: u16, seed: Component) -> KeyId {
        KeyId(self.keys + self.parts.len() as u16 * owner + seed.number())
    }
}
