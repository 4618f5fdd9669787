//! Merging of sorted lists.

use super::compare::less_than;
use crate::generate::Aim;
use crate::{Builder, Wire};

/// A network that merges two sorted lists, of any two lengths: comparators of two places each, the same whatever the lists are.
///
/// Places are those of the first list, in its order, and then those of the second one. A comparator leaves the smaller element at its first place.
///
/// From: Batcher, *Sorting networks and their applications*, AFIPS 1968 (odd-even merging); Knuth, *The Art of Computer Programming*, volume 3, section
/// 5.3.4, for two lists of different lengths.
///
/// ```
/// use veil_circuit::generate::Merging;
///
/// let network = Merging::new(4, 4);
/// assert_eq!(network.comparators().len(), 9);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Merging {
    comparators: Vec<(u32, u32)>,
    order: Vec<u32>,
}

impl Merging {
    /// Of two lists of so many elements.
    pub fn new(first: u32, second: u32) -> Self {
        let mut comparators = Vec::new();
        let places: Vec<u32> = (0..first + second).collect();
        let (a, b) = places.split_at(first as usize);
        let order = merged(a, b, &mut comparators);
        Self { comparators, order }
    }

    /// The comparators, in an order in which they may be computed.
    pub fn comparators(&self) -> &[(u32, u32)] {
        &self.comparators
    }

    /// The places of the elements in ascending order.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Merges words by their lowest `key` bits, unsigned; the words are at the network's places, and all of one width.
    ///
    /// A comparator takes an AND for each bit of the key, and one for each bit of a word. The result is whether each comparator has exchanged its two words.
    ///
    /// # Panics
    /// If there are other words than places, or they are shorter than keys.
    pub fn apply(&self, b: &mut Builder, words: &mut [Vec<Wire>], key: usize) -> Vec<Wire> {
        assert_eq!(words.len(), self.order.len(), "a word for each place");
        let mut exchanged = Vec::with_capacity(self.comparators.len());
        for &(low, high) in &self.comparators {
            let keys = [low, high].map(|place| words[place as usize][..key].to_vec());
            let less = less_than(b, &keys[1], &keys[0], Aim::Size);
            exchange(b, words, (low as usize, high as usize), less);
            exchanged.push(less);
        }
        exchanged
    }

    /// Moves words from the places to which [`Merging::apply`] has brought elements to those where these came from.
    ///
    /// A comparator takes an AND for each bit of a word.
    ///
    /// # Panics
    /// If there are other words than places, or other exchanges than comparators.
    pub fn undo(&self, b: &mut Builder, words: &mut [Vec<Wire>], exchanged: &[Wire]) {
        assert_eq!(words.len(), self.order.len(), "a word for each place");
        assert_eq!(
            exchanged.len(),
            self.comparators.len(),
            "an exchange for each comparator"
        );
        for (&(low, high), &condition) in self.comparators.iter().zip(exchanged).rev() {
            exchange(b, words, (low as usize, high as usize), condition);
        }
    }
}

/// Merges two sorted lists of places, and gives the places in ascending order.
fn merged(a: &[u32], b: &[u32], comparators: &mut Vec<(u32, u32)>) -> Vec<u32> {
    match (a, b) {
        ([], all) | (all, []) => return all.to_vec(),
        (&[low], &[high]) => {
            comparators.push((low, high));
            return vec![low, high];
        }
        _ => {}
    }
    let every = |list: &[u32], first: usize| -> Vec<u32> {
        list.iter().copied().skip(first).step_by(2).collect()
    };
    let odd = merged(&every(a, 0), &every(b, 0), comparators);
    let even = merged(&every(a, 1), &every(b, 1), comparators);
    // Of the smallest elements, the odd list has none, one or two more than the even one.
    let mut order = vec![odd[0]];
    for at in 0..odd.len().max(even.len() + 1) - 1 {
        let pair = [even.get(at), odd.get(at + 1)];
        if let [Some(&low), Some(&high)] = pair {
            comparators.push((low, high));
        }
        order.extend(pair.into_iter().flatten());
    }
    order
}

/// Exchanges two words of one width where a condition holds: an AND for each of their bits.
///
/// # Panics
/// If a place has no word, or they have different widths.
pub fn exchange(
    b: &mut Builder,
    words: &mut [Vec<Wire>],
    (first, second): (usize, usize),
    condition: Wire,
) {
    assert_eq!(
        words[first].len(),
        words[second].len(),
        "words of one width"
    );
    for bit in 0..words[first].len() {
        let (x, y) = (words[first][bit], words[second][bit]);
        let differ = b.xor(x, y);
        let change = b.and(condition, differ);
        words[first][bit] = b.xor(x, change);
        words[second][bit] = b.xor(y, change);
    }
}

#[cfg(test)]
mod tests {
    use veil_math::Ring;

    use super::Merging;
    use crate::{Builder, Per, Wire};

    /// A network of comparators merges all lists if it merges those of zeros and ones (Knuth, 5.3.4).
    #[test]
    fn lists_of_zeros_and_ones_are_merged() {
        for first in 0..12u32 {
            for second in 0..12u32 {
                let network = Merging::new(first, second);
                for (zeros, others) in
                    (0..=first).flat_map(|zeros| (0..=second).map(move |others| (zeros, others)))
                {
                    let list = |length: u32, zeros| (0..length).map(move |at| at >= zeros);
                    let mut all: Vec<bool> =
                        list(first, zeros).chain(list(second, others)).collect();
                    for &(low, high) in network.comparators() {
                        let (low, high) = (low as usize, high as usize);
                        if all[low] && !all[high] {
                            all.swap(low, high);
                        }
                    }
                    let merged = network.order().iter().map(|place| all[*place as usize]);
                    assert!(
                        merged.is_sorted(),
                        "{zeros} of {first} and {others} of {second}"
                    );
                }
            }
        }
    }

    /// Batcher's count for two lists of 2^t elements: t 2^t + 1.
    #[test]
    fn comparators_are_as_many_as_the_paper_says() {
        for t in 0..10 {
            let length = 1 << t;
            let found = Merging::new(length, length).comparators().len() as u32;
            assert_eq!(found, t * length + 1);
        }
    }

    /// A circuit of the network takes words with their payload, and brings others back.
    #[test]
    fn words_go_there_and_back() {
        let (first, second) = (3, 5);
        let network = Merging::new(first, second);
        let mut b = Builder::new(Ring::Bits);
        let mut words: Vec<Vec<Wire>> = (0..first + second)
            .map(|at| b.input(format!("x{at}"), 7, Per::Row))
            .collect();
        let exchanged = network.apply(&mut b, &mut words, 4);
        let sorted: Vec<Wire> = (network.order().iter())
            .flat_map(|place| words[*place as usize].clone())
            .collect();
        b.output("sorted", &sorted);
        network.undo(&mut b, &mut words, &exchanged);
        b.output("back", &words.concat());
        let circuit = b.finish().unwrap();
        let ands = circuit.stats().muls;
        assert_eq!(ands, network.comparators().len() as u64 * (4 + 7 + 7));
        let keys = [2u128, 7, 11, 0, 5, 6, 12, 13];
        let given: Vec<u128> = keys
            .iter()
            .zip(0..)
            .map(|(key, at)| key | at << 4)
            .collect();
        let bits = |word: &u128| (0..7).map(|bit| word >> bit & 1).collect::<Vec<u128>>();
        let inputs: Vec<Vec<u128>> = given.iter().map(bits).collect();
        let outputs = circuit.evaluate(&inputs).unwrap();
        let mut expected = given.clone();
        expected.sort_by_key(|word| word & 15);
        assert_eq!(
            outputs[0],
            expected.iter().flat_map(bits).collect::<Vec<_>>()
        );
        assert_eq!(outputs[1], inputs.concat());
    }
}
