//! How far a party of four may be ahead of those that it sends to.

use crate::node::{JOINT, MOST_NODES};

const NODES: usize = MOST_NODES as usize;

/// Slots that a sender has for each message, used in rotation from depth to depth: so many that it never writes over what was not joined. The sender
/// is in even chunks another one than in odd ones, and there are as many as either needs.
pub(super) fn message_slots(checks: bool) -> u32 {
    let chunks = [0, 1].map(|chunk| {
        let gives = gives(checks, chunk);
        let steps = steps(&gives);
        let all = (0..NODES).flat_map(|from| (0..NODES).map(move |to| (from, to)));
        let given = all.filter(|(from, to)| gives[*from][*to]);
        given.map(|(from, to)| steps[to][from]).max()
    });
    chunks.into_iter().flatten().max().unwrap_or(0) + 1
}

/// Who gives a message or a MAC to whom.
fn gives(checks: bool, chunk: u32) -> [[bool; NODES]; NODES] {
    let mut gives = [[false; NODES]; NODES];
    for joint in &JOINT {
        let voucher = checks.then(|| joint.voucher(chunk));
        for from in [Some(joint.sender(chunk)), voucher].into_iter().flatten() {
            gives[usize::from(from)][usize::from(joint.receiver)] = true;
        }
    }
    gives
}

/// By how many parties what one gives comes to another one, at least.
fn steps(gives: &[[bool; NODES]; NODES]) -> [[u32; NODES]; NODES] {
    let mut steps = gives.map(|of| of.map(|gives| if gives { 1 } else { u32::MAX }));
    for by in 0..NODES {
        for from in 0..NODES {
            for to in 0..NODES {
                let way = steps[from][by].saturating_add(steps[by][to]);
                steps[from][to] = steps[from][to].min(way);
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::{gives, message_slots, steps};

    #[test]
    fn turns_are_those_of_the_longest_way_back() {
        // Party 0 sends to 3 in even chunks; what 3 gives comes to 0 by party 1, and without MACs by 2 and 1.
        let back = |checks| steps(&gives(checks, 0))[3][0];
        assert_eq!([true, false].map(back), [2, 3]);
        assert_eq!([true, false].map(message_slots), [3, 4]);
    }
}
