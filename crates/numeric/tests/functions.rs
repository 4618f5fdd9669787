//! Functions in the clear against real numbers: no result is farther than it states.

use proptest::prelude::*;
use veil_numeric::exact::Enclosure;
use veil_numeric::{Applied, Clear, Function, FunctionError, Number, Range, Scale};

/// The largest distance in units of the result, over these arguments; none may be beyond what is stated, nor may a result leave its range.
fn worst(
    function: Function,
    from: Scale,
    range: Range,
    to: Scale,
    of: impl Iterator<Item = i128>,
) -> f64 {
    let applied = Applied::new(function, from, range, to).unwrap();
    let stated = applied.error(false);
    let mut worst: f64 = 0.0;
    for x in of {
        let y = applied.clear(x);
        let y = y.unwrap_or_else(|| {
            panic!(
                "{} of {x} ({from:?}, {range:?}, {to:?}) does not fit",
                function.name()
            )
        });
        assert!(applied.result(false).contains(y));
        let real = to.units(&function.at(&from.value(x)).unwrap());
        let distance = (&Enclosure::from(y) - &real).abs();
        assert!(
            distance.high().at_most(&stated),
            "{} of {x} ({from:?}, {range:?}, {to:?}) is {y} instead of {}: {} units, and {} are stated",
            function.name(),
            real.approximately(),
            distance.approximately(),
            stated.approximately()
        );
        worst = worst.max(distance.approximately());
    }
    worst
}

/// Ranges in real numbers on which functions are tested.
pub(crate) fn domain(function: Function) -> (i128, i128) {
    match function {
        Function::Exp2 => (-12, 6),
        Function::Exp => (-8, 4),
        Function::Exp10 => (-4, 2),
        Function::Log2
        | Function::Ln
        | Function::Log10
        | Function::Reciprocal
        | Function::InverseRoot
        | Function::Root => (0, 32),
        Function::Sigmoid | Function::Tanh | Function::Softplus => (-16, 16),
        Function::Erf => (-6, 6),
    }
}

pub(crate) fn range(function: Function, places: u32) -> Range {
    let (low, high) = domain(function);
    let low = match (low, function) {
        // The smallest number is far above 0, so that results are not too large.
        (0, Function::Reciprocal | Function::InverseRoot) => ((1 << places) >> 6).max(1),
        (0, Function::Log2 | Function::Ln | Function::Log10) => 1,
        (low, _) => low << places,
    };
    Range::new(low, (high << places) - 1).unwrap()
}

/// Every `step`-th argument of at most 16 bits.
fn whole(step: usize) {
    for function in Function::ALL {
        let scale = Scale::binary(11);
        let range = range(function, 11);
        let all = (range.min()..=range.max()).step_by(step);
        let worst = worst(function, scale, range, scale, all);
        assert!(
            worst > 0.4,
            "{} is never {worst} units away",
            function.name()
        );
    }
}

#[test]
fn arguments_of_sixteen_bits_are_near() {
    whole(29);
}

#[test]
#[ignore = "tier long: every argument, three minutes"]
fn all_arguments_of_sixteen_bits_are_near() {
    whole(1);
}

/// Arguments all over the range, its ends, and around the powers of two.
fn arguments(range: Range, steps: i128) -> Vec<i128> {
    let width = range.max() - range.min();
    let mut all: Vec<i128> = (0..=steps)
        .map(|n| range.min() + width * n / steps)
        .collect();
    let powers = (0..width.max(1).ilog2()).map(|power| 1_i128 << power);
    let around = powers.flat_map(|power| [power - 1, power, power + 1, -power, power + power / 2]);
    all.extend(around.filter(|x| range.contains(*x)));
    all
}

#[test]
fn more_places_are_sampled() {
    for function in Function::ALL {
        for places in [4, 16, 20, 24, 30, 36, 40] {
            let (scale, range) = (Scale::binary(places), range(function, places));
            worst(
                function,
                scale,
                range,
                scale,
                arguments(range, 200).into_iter(),
            );
        }
    }
}

/// Money, and tenths of per cent: arguments and results of other scales.
#[test]
fn scales_may_differ() {
    for function in Function::ALL {
        for (from, to) in [
            (Scale::decimal(2), Scale::decimal(6)),
            (Scale::ONE, Scale::decimal(3)),
            (Scale::decimal(4), Scale::binary(16)),
            (Scale::binary(12), Scale::decimal(0)),
            (Scale { two: 3, ten: 2 }, Scale { two: 2, ten: 3 }),
        ] {
            let (low, high) = domain(function);
            let of = |x: i128| from.units(&Enclosure::from(x)).floor(0).unwrap();
            let low = match low {
                0 => (of(1) / 8).max(1),
                low => of(low),
            };
            let range = Range::new(low, of(high)).unwrap();
            worst(function, from, range, to, arguments(range, 100).into_iter());
        }
    }
}

/// Ranges that cross a flush, that lie beyond the last piece, of one number, and far from 0.
#[test]
fn ranges_may_be_odd() {
    let of = |function, from, low, high, to| {
        let range = Range::new(low, high).unwrap();
        worst(function, from, range, to, arguments(range, 50).into_iter());
    };
    let (ten, twenty) = (Scale::binary(10), Scale::binary(20));
    of(Function::Exp, Scale::ONE, -1000, 3, twenty);
    of(Function::Exp, Scale::ONE, -1000, -900, twenty);
    of(
        Function::Exp,
        Scale::decimal(2),
        -10_i128.pow(9),
        900,
        Scale::decimal(12),
    );
    of(Function::Exp2, Scale::ONE, 7, 7, Scale::decimal(2));
    of(Function::Exp10, ten, 3000, 4000, ten);
    of(Function::Exp2, ten, 20_000, 30_000, Scale::ONE);
    of(Function::Sigmoid, ten, 30_000, 40_000, twenty);
    of(Function::Sigmoid, ten, -1_000_000, -40_000, twenty);
    of(Function::Tanh, Scale::decimal(3), 100, 101, twenty);
    of(Function::Softplus, Scale::decimal(1), -10_000, 10_000, ten);
    of(Function::Erf, Scale::ONE, -3, 100, Scale::decimal(9));
    of(Function::Reciprocal, ten, -5000, -3, twenty);
    of(Function::Reciprocal, Scale::ONE, 1, 1, ten);
    of(Function::Root, Scale::ONE, 0, 0, ten);
    of(Function::Root, Scale::ONE, 0, 1_000_000_007, ten);
    of(
        Function::Ln,
        Scale::ONE,
        1_000_000_000,
        1_000_000_007,
        twenty,
    );
    of(Function::Log2, ten, 1, 1, twenty);
}

#[test]
fn what_has_no_value_is_refused() {
    let error = |function, low, high| {
        let range = Range::new(low, high).unwrap();
        let applied = Applied::new(function, Scale::binary(8), range, Scale::binary(8));
        applied.unwrap_err().to_string()
    };
    assert_eq!(
        error(Function::Ln, 0, 9),
        "ln has no value for 0 and below, and its argument may be that"
    );
    // It would fit, but what is on the way does not.
    let range = Range::new(-39, 39).unwrap();
    let (one, thousand) = (Scale::decimal(0), Scale::decimal(3));
    let wide = Applied::new(Function::Exp, one, range, thousand);
    assert!(matches!(
        wide,
        Err(FunctionError::TooWide { bits: 128, .. })
    ));
    assert_eq!(
        error(Function::InverseRoot, -3, 9),
        "rsqrt has no value for 0 and below, and its argument may be that"
    );
    assert_eq!(
        error(Function::Reciprocal, -3, 9),
        "reciprocal has no value for 0, and its argument may be that"
    );
    assert_eq!(
        error(Function::Root, -1, 9),
        "sqrt has no value for numbers below 0, and its argument may be that"
    );
    let wide = "exp of this range, with so many places, may take more than 128 bits";
    assert_eq!(error(Function::Exp, 0, 256 * 100), wide);
    let exp = Applied::new(
        Function::Exp,
        Scale::ONE,
        Range::new(0, 5).unwrap(),
        Scale::ONE,
    )
    .unwrap();
    assert_eq!(
        (exp.clear(5), exp.clear(6), exp.clear(-1)),
        (Some(148), None, None)
    );
}

proptest! {
    /// Whatever the scales and the range are: a function is refused, or computed within its bound at both ends and between.
    #[test]
    fn any_range_is_refused_or_right(
        function in 0..Function::ALL.len(),
        from in (0_u32..40, 0_u32..20),
        to in (0_u32..40, 0_u32..13),
        (low, high, bits) in (any::<i128>(), any::<i128>(), 1_u32..128),
        binary in any::<(bool, bool)>(),
    ) {
        let function = Function::ALL[function];
        let scale = |(two, ten): (u32, u32), binary| if binary { Scale::binary(two) } else { Scale { two: two / 8, ten } };
        let (from, to) = (scale(from, binary.0), scale(to, binary.1));
        let (low, high) = (low >> (128 - bits), high >> (128 - bits));
        let range = Range::new(low.min(high), low.max(high)).unwrap();
        if let Ok(applied) = Applied::new(function, from, range, to) {
            let middle = range.min() + ((range.max().wrapping_sub(range.min()) as u128) >> 1) as i128;
            for x in [range.min(), middle, range.max()] {
                let argument = Number { int: x, range };
                if let Ok(y) = applied.on(&mut Clear, &argument) {
                    let real = to.units(&function.at(&from.value(x)).unwrap());
                    let distance = (&Enclosure::from(y.int) - &real).abs();
                    prop_assert!(distance.low().at_most(&applied.error(false).high()), "{function:?} of {x}");
                }
            }
        }
    }
}

/// Proves the first piece of each table, and every `step`-th from there on.
fn proved(step: usize) {
    for pieces in veil_numeric::pieces() {
        for piece in (0..pieces.count()).step_by(step) {
            let curve = pieces.curve;
            let proved = curve.distance(pieces.finer, piece, pieces.piece(piece));
            assert!(
                proved.at_most(&pieces.stated()),
                "{curve:?} of degree {}, piece {piece}",
                pieces.degree
            );
        }
    }
}

#[test]
fn coefficients_are_proved() {
    proved(16);
}

#[test]
#[ignore = "tier long: every piece of every curve, half a minute"]
fn all_coefficients_are_proved() {
    proved(1);
}

/// Another coefficient, by the last bit that counts, has no proof.
#[test]
fn a_changed_coefficient_is_found() {
    for pieces in veil_numeric::pieces() {
        let mut changed = pieces.piece(0).to_vec();
        changed[0] += 3 * pieces.error as i64;
        let proved = pieces.curve.distance(pieces.finer, 0, &changed);
        assert!(!proved.at_most(&pieces.stated()));
    }
}
