//! How many layers of candidates a bucket has.

/// Candidates of a batch, at least: below, a layer less would not do for fewer of them either.
pub(crate) const LEAST: u32 = 1 << 10;

/// Layers of a bucket of `candidates` candidates a layer, for an error of 2^-s in a batch: the least L of which candidates^(L - 1) > 2^s. Of a party that
/// lies about candidates, all pass and fall into one bucket with a probability below that (Wang, Ranellucci, Katz, "Authenticated Garbling and Efficient Maliciously Secure
/// Two-Party Computation", 2017).
///
/// # Panics
/// If there are fewer than two candidates, or s is more than 127.
pub fn layers(s: u8, candidates: u32) -> u32 {
    assert!(candidates > 1 && s < 128, "no number of layers is enough");
    let (mut layers, mut power) = (1, Some(1u128));
    while power.is_some_and(|power| power <= 1 << s) {
        power = power.and_then(|power| power.checked_mul(candidates.into()));
        layers += 1;
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_those_of_the_bound() {
        for (s, n, want) in [
            (40, 1 << 10, 6),
            (40, 1 << 14, 4),
            (40, 1 << 20, 4),
            (40, 1 << 21, 3),
            (64, 1 << 16, 6),
            (80, 1 << 14, 7),
            (119, u32::MAX, 5),
        ] {
            assert_eq!(layers(s, n), want, "2^-{s}, {n} candidates");
        }
    }
}
