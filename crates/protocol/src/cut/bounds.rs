//! How many circuits, and how long the evaluator's inputs are encoded, for an error of 2^-s.

/// Far more circuits, and bits beside those encoded, than any parameter takes.
const MOST: u32 = 1 << 20;

/// Circuits of a half for an error of 2^-s: as many are opened as are evaluated.
///
/// Who garbles b circuits wrongly escapes if none of them is among the h of 2 h that are opened: for b wrong ones with probability
/// C(2 h − b, h) / C(2 h, h). It changes a result only if half of those evaluated are wrong, b = ⌈h / 2⌉.
pub(crate) fn half(s: u8) -> u32 {
    let fits = |h: &u32| escape(*h, h.div_ceil(2)) <= (-f64::from(s)).exp2();
    (1..MOST)
        .find(fits)
        .expect("the probability falls with the number")
}

/// The probability that none of `wrong` circuits is opened, where `half` of twice as many are.
pub(crate) fn escape(half: u32, wrong: u32) -> f64 {
    let factor = |k: u32| f64::from(half.saturating_sub(k)) / f64::from(2 * half - k);
    (0..wrong).map(factor).product()
}

/// Length of the encoding of `bits` bits for which no sum of fewer than s encoding bits is a sum of input bits, but with probability 2^-s
/// over the encoding (Gilbert and Varshamov's count).
///
/// The encoding is y = ŷ_1 ⊕ R ŷ_2: of w of the rows of (1 | R) the sum has weight w + (that of a uniform string of m − b bits), so that the
/// sum over w of C(b, w) · P[that is less than s − w] bounds the probability that some sum is too light.
pub(crate) fn encoding(bits: u32, s: u8) -> u32 {
    if bits == 0 {
        return 0;
    }
    let light = |m: u32| {
        let below = below(m - bits, s.into());
        let mut choose = 1.0;
        let mut sum = 0.0;
        for w in 1..=bits.min(u32::from(s) - 1) {
            choose *= f64::from(bits - w + 1) / f64::from(w);
            sum += choose * below[(u32::from(s) - w) as usize];
        }
        sum
    };
    (bits..bits.saturating_add(MOST))
        .find(|m| light(*m) <= (-f64::from(s)).exp2())
        .expect("the probability falls with the length")
}

/// For each weight up to `most`, the probability that a uniform string of `n` bits has fewer ones.
fn below(n: u32, most: u32) -> Vec<f64> {
    // The logarithm of C(n, k) / 2^n, which is too small for itself.
    let mut term = -f64::from(n) * std::f64::consts::LN_2;
    let mut sums = vec![0.0];
    for k in 0..most {
        let last = sums[k as usize];
        if k > n {
            sums.push(last);
            continue;
        }
        sums.push(last + term.exp());
        term += (f64::from(n - k) / f64::from(k + 1)).ln();
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of circuits as counted exactly elsewhere: 130 for 2^-40, 190 for 2^-59, 258 for 2^-80.
    #[test]
    fn circuits_are_those_of_the_exact_count() {
        for (s, circuits) in [(40, 130), (59, 190), (80, 258)] {
            assert!(2 * half(s) <= circuits, "{s}: {}", 2 * half(s));
            assert!(2 * half(s) + 6 >= circuits, "{s}: {}", 2 * half(s));
        }
        // 33 wrong ones of 130: 2^-41.
        assert!((escape(65, 33).log2() + 41.0).abs() < 0.1);
        assert!((escape(1, 1) - 0.5).abs() < 1e-12);
        assert!((escape(4, 5)).abs() < 1e-12);
    }

    /// Escapes are those that are counted over all choices.
    #[test]
    fn escapes_are_counted() {
        for half in 1..6u32 {
            for wrong in 0..=half {
                let all = (0..1u32 << (2 * half)).filter(|set| set.count_ones() == half);
                let (mut sets, mut missed) = (0u32, 0u32);
                for set in all {
                    sets += 1;
                    missed += u32::from(set & ((1 << wrong) - 1) == 0);
                }
                let want = f64::from(missed) / f64::from(sets);
                assert!((escape(half, wrong) - want).abs() < 1e-12);
            }
        }
    }

    /// Lengths near those of random encodings: 339 bits for 128 at 2^-40, 525 at 2^-80.
    #[test]
    fn encodings_are_as_long_as_random_ones() {
        for (bits, s, random) in [
            (128, 40, 339),
            (128, 80, 525),
            (256, 40, 489),
            (1024, 80, 1550),
        ] {
            let length = encoding(bits, s);
            assert!(length.abs_diff(random) <= 3, "{bits} {s}: {length}");
        }
        assert_eq!(encoding(0, 40), 0);
        assert!(encoding(1, 9) >= 9);
    }

    /// The encoding of a few bits has no light sums, all of which are tried.
    #[test]
    fn no_sum_of_a_short_encoding_is_light() {
        let (bits, s) = (10, 9);
        let length = encoding(bits, s);
        let rows: Vec<u128> = (0..bits)
            .map(|i| veil_device::cut::matrix_row(super::super::ENCODING, i, length - bits)[0])
            .collect();
        for set in 1u32..1 << bits {
            let chosen = (0..bits).filter(|i| set >> i & 1 == 1);
            let sum = chosen.fold(0, |sum, i| sum ^ rows[i as usize]);
            assert!(
                set.count_ones() + sum.count_ones() >= u32::from(s),
                "{set:b}"
            );
        }
    }
}
