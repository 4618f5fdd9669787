//! The layers of a chunk as rounds: all at once, or piece by piece where a plan has so many that its rounds take more memory than the plan.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use veil_session::{PartyId, Peer};

use super::checks::{Frame, checks, proved};
use super::{Batch, Scheme, batches, layers, list};
use crate::plan::Plan;
use crate::round::{Flow, Round};

/// Layers of which all rounds stay in memory: about a kilobyte each.
const MOST: usize = 1 << 14;

/// Layers of a piece.
const PIECE: usize = 1 << 12;

/// Pieces that are kept for the chunks in flight, which are about as far as each other.
const KEPT: usize = 4;

/// The rounds of a piece.
type Rounds = Arc<[Arc<Round>]>;

/// The layers of the rows of one participant.
#[derive(Debug)]
pub(super) enum Layers {
    /// The rounds of even and of odd chunks.
    Made([Rounds; 2]),
    /// They are made when they are due.
    InPieces(Arc<Pieces>),
}

impl Layers {
    /// Those of a plan without cycles.
    pub(super) fn of(scheme: &'static Scheme, plan: &Arc<Plan>, me: Peer) -> Self {
        let Some(me) = me.party() else {
            return Layers::Made(Default::default());
        };
        let layers = plan.layers.len();
        let length = if layers <= MOST { layers } else { PIECE };
        let pieces = Pieces::of(scheme, plan, me, length);
        if pieces.count() > 1 {
            return Layers::InPieces(Arc::new(pieces));
        }
        let all = |odd| list(pieces.make(0, odd));
        let even = all(false);
        let odd = if scheme.products.alternates {
            all(true)
        } else {
            Arc::clone(&even)
        };
        Layers::Made([even, odd])
    }

    /// The flow of a chunk that is odd or even.
    pub(super) fn flow(&self, odd: bool) -> Flow {
        match self {
            Layers::Made(rounds) => Flow::new(Arc::clone(&rounds[usize::from(odd)]), false),
            Layers::InPieces(pieces) => {
                let of = Arc::clone(pieces);
                Flow::pieces(pieces.count(), Arc::new(move |piece| of.rounds(piece, odd)))
            }
        }
    }
}

/// The layers of a party, cut into pieces of some length.
#[derive(Debug)]
pub(super) struct Pieces {
    scheme: &'static Scheme,
    plan: Arc<Plan>,
    me: PartyId,
    length: usize,
    batches: Vec<Batch>,
    /// The last ones that were made, by number and whether the chunk is odd.
    kept: Mutex<VecDeque<((u64, bool), Rounds)>>,
}

impl Pieces {
    fn of(scheme: &'static Scheme, plan: &Arc<Plan>, me: PartyId, length: usize) -> Self {
        Pieces {
            scheme,
            plan: Arc::clone(plan),
            me,
            length,
            batches: batches(scheme, plan),
            kept: Mutex::default(),
        }
    }

    fn count(&self) -> u64 {
        self.plan.layers.len().div_ceil(self.length) as u64
    }

    fn layers(&self, piece: u64) -> Range<usize> {
        let first = piece as usize * self.length;
        first..self.plan.layers.len().min(first + self.length)
    }

    /// The rounds of a piece, which may have been made for another chunk.
    fn rounds(&self, piece: u64, odd: bool) -> Rounds {
        let name = (piece, odd && self.scheme.products.alternates);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, rounds)) = kept.iter().find(|(of, _)| *of == name) {
            return Arc::clone(rounds);
        }
        let rounds: Rounds = self.make(piece, odd).into_iter().map(Arc::new).collect();
        kept.truncate(KEPT - 1);
        kept.push_front((name, Arc::clone(&rounds)));
        rounds
    }

    fn make(&self, piece: u64, odd: bool) -> Vec<Round> {
        let (scheme, plan, me) = (self.scheme, &*self.plan, self.me);
        let range = self.layers(piece);
        let rounds = layers(scheme, plan, me, range.clone(), odd);
        let mut rounds = proved(scheme, me, &self.batches, range.start, rounds);
        let (begins, ends) = (range.start == 0, range.end == plan.layers.len());
        if begins || ends {
            let [before, after] = checks(scheme, plan, me, Frame::Rows);
            if begins {
                rounds.splice(0..0, before);
            }
            if ends {
                rounds.extend(after);
            }
        }
        rounds
    }
}

#[cfg(test)]
mod tests {
    use veil_math::Ring;

    use super::*;
    use crate::choose::Choice;
    use crate::plan::Options;
    use crate::replicated::checks::tests::chain;

    /// However layers are cut, rounds are those of one piece: with proofs of batches that begin and end within pieces, with checks of MACs before
    /// and after all of them, and with what is kept in the end.
    #[test]
    fn pieces_together_are_the_whole() {
        for (parties, ring) in [(3, Ring::Bits), (3, Ring::Z64), (4, Ring::Bits)] {
            let plan = Plan::new(chain(ring, 1100, parties), Options::default()).unwrap();
            let plan = Arc::new(plan);
            let Some(Choice::Shared(scheme)) = Choice::of(plan.job.security) else {
                panic!("a plan of shares");
            };
            for me in scheme.parties {
                let of = |length| Pieces::of(scheme, &plan, *me, length);
                for odd in [false, true] {
                    let whole = of(plan.layers.len()).rounds(0, odd);
                    assert!(whole.len() > 1100);
                    for length in [1, 7, 523, 524, 525, 1000] {
                        let pieces = of(length);
                        let all = (0..pieces.count()).flat_map(|piece| {
                            pieces
                                .rounds(piece, odd)
                                .iter()
                                .cloned()
                                .collect::<Vec<_>>()
                        });
                        assert!(all.eq(whole.iter().cloned()), "{ring:?}, {length}");
                        let layers = Layers::InPieces(Arc::new(of(length)));
                        assert!(layers.flow(odd).all().eq(whole.iter().cloned()));
                        let mut flow = layers.flow(odd);
                        let pulled = std::iter::from_fn(|| flow.next());
                        assert!(pulled.eq(whole.iter().cloned()), "{ring:?}, {length}");
                    }
                }
            }
        }
    }

    /// Chunks in flight share pieces, and no more than a few are there.
    #[test]
    fn pieces_are_made_once_for_chunks_that_are_as_far() {
        let plan = Arc::new(Plan::new(chain(Ring::Bits, 40, 4), Options::default()).unwrap());
        let Some(Choice::Shared(scheme)) = Choice::of(plan.job.security) else {
            panic!("a plan of shares");
        };
        let pieces = Pieces::of(scheme, &plan, scheme.parties[0], 4);
        let [first, again, odd] = [false, false, true].map(|odd| pieces.rounds(3, odd));
        assert!(Arc::ptr_eq(&first, &again));
        // Four parties exchange roles from chunk to chunk.
        assert!(first != odd);
        for piece in 0..pieces.count() {
            drop(pieces.rounds(piece, false));
        }
        assert_eq!(pieces.kept.lock().unwrap().len(), KEPT);
        assert!(!Arc::ptr_eq(&first, &pieces.rounds(3, false)));
    }
}
