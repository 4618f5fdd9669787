//! Which old party has which component, and where: the input ports of a job that shares a dataset again.

use veil_session::PartyId;

/// The copies of old components that are supplied: one by every holder of each.
///
/// Of three parties, party `i` has components `i` and `i − 1`, in this order; of four, `i + 1`, `i + 2` and `i + 3`. Numbers go round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copies {
    parties: usize,
}

/// One of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Supplied {
    /// Of which component.
    pub(super) component: usize,
    /// Which of its copies, from 0.
    pub(super) number: usize,
}

impl Supplied {
    /// The first copy of the same component.
    pub(super) const fn first(self) -> Supplied {
        Supplied { number: 0, ..self }
    }
}

impl Copies {
    /// Of a dataset of so many parties.
    pub(super) const fn of(parties: usize) -> Self {
        Copies { parties }
    }

    /// Copies of each component.
    pub(super) const fn each(self) -> usize {
        self.parties - 1
    }

    /// All of them, in the order of their ports.
    pub(super) fn all(self) -> impl Iterator<Item = Supplied> {
        let components = 0..self.parties;
        components.flat_map(move |component| {
            (0..self.each()).map(move |number| Supplied { component, number })
        })
    }

    /// The first copy of each component.
    pub(super) fn firsts(self) -> impl Iterator<Item = Supplied> {
        self.all().filter(|copy| copy.number == 0)
    }

    /// Those that are compared with the first copy of their component.
    pub(super) fn others(self) -> impl Iterator<Item = Supplied> {
        self.all().filter(|copy| copy.number > 0)
    }

    /// The input port of a copy.
    pub(super) const fn port(self, copy: Supplied) -> usize {
        copy.component * self.each() + copy.number
    }

    /// The copy of an input port, if there is one.
    pub(super) fn at(self, port: usize) -> Option<Supplied> {
        self.all().nth(port)
    }

    /// Who supplies a copy.
    pub(super) fn holder(self, copy: Supplied) -> PartyId {
        // Of four parties, the one of the component's number lacks it.
        let lacks = self.parties - PartyId::THREE.len();
        let index = (copy.component + lacks + copy.number) % self.parties;
        PartyId::FOUR[index]
    }

    /// Which of its parts the copy is at its holder.
    pub(super) const fn part(self, copy: Supplied) -> u8 {
        let part = match self.parties {
            3 => copy.number,
            _ => self.each() - 1 - copy.number,
        };
        part as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_every_party_is_supplied_once() {
        for (parties, parts) in [(3, &[0, 2][..]), (4, &[1, 2, 3])] {
            let copies = Copies::of(parties);
            let mut seen = Vec::new();
            for (port, copy) in copies.all().enumerate() {
                assert_eq!((copies.port(copy), copies.at(port)), (port, Some(copy)));
                let (holder, part) = (copies.holder(copy), copies.part(copy));
                let component = (holder.index() + parts[usize::from(part)]) % parties;
                assert_eq!(component, copy.component);
                seen.push((holder, part));
            }
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), parties * (parties - 1));
            assert_eq!(copies.at(seen.len()), None);
        }
    }
}
