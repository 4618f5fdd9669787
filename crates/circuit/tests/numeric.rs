//! Functions on elements of a ring are those in the clear, to the last bit.

use veil_circuit::generate::{OnRing, Rounding};
use veil_circuit::{Builder, Circuit, Per};
use veil_math::Ring;
use veil_numeric::{Applied, Function, FunctionError, Number, Range, Scale};

fn range(function: Function, places: u32) -> Range {
    let one = 1_i128 << places;
    let (low, high) = match function {
        Function::Exp2 | Function::Exp | Function::Exp10 => (-3 * one, 2 * one),
        Function::Root => (0, 32 * one),
        Function::Reciprocal | Function::InverseRoot => (one / 8, 32 * one),
        Function::Log2 | Function::Ln | Function::Log10 => (1, 32 * one),
        _ => (-9 * one, 9 * one),
    };
    Range::new(low, high).unwrap()
}

fn circuit(
    applied: &Applied,
    range: Range,
    ring: Ring,
    rounding: Rounding,
) -> Result<Circuit, FunctionError> {
    let mut b = Builder::new(ring);
    let x = b.input("x", 1, Per::Row)[0];
    let y = applied.on(
        &mut OnRing::new(&mut b, rounding),
        &Number { int: x, range },
    )?;
    b.output("y", &[y.int]);
    Ok(b.finish().unwrap())
}

fn signed(value: u128, ring: Ring) -> i128 {
    let unused = 128 - ring.bits();
    (value << unused) as i128 >> unused
}

#[test]
fn functions_on_a_ring_are_those_in_the_clear() {
    for (ring, places) in [
        (Ring::Z64, 12),
        (Ring::Z64, 18),
        (Ring::Z128, 24),
        (Ring::Z128, 40),
    ] {
        for function in Function::ALL {
            let (scale, range) = (Scale::binary(places), range(function, places));
            let applied = Applied::new(function, scale, range, scale).unwrap();
            let circuit = circuit(&applied, range, ring, Rounding::Nearest).unwrap();
            let width = range.max() - range.min();
            for n in 0..=60 {
                let x = range.min() + width * n / 60;
                let found = circuit.evaluate(&[vec![ring.reduce(x as u128)]]).unwrap();
                let found = signed(found[0][0], ring);
                assert_eq!(
                    Some(found),
                    applied.clear(x),
                    "{} of {x}, {places} places",
                    function.name()
                );
            }
        }
    }
}

/// Truncation that draws is evaluated with R = 0 here: a bound for any R holds for this one.
#[test]
fn drawn_rounding_stays_within_its_bound() {
    for function in Function::ALL {
        let (scale, range) = (Scale::binary(14), range(function, 14));
        let applied = Applied::new(function, scale, range, scale).unwrap();
        let circuit = circuit(&applied, range, Ring::Z64, Rounding::Drawn).unwrap();
        assert!(circuit.is_random());
        for n in 0..=60 {
            let x = range.min() + (range.max() - range.min()) * n / 60;
            let found = circuit
                .evaluate(&[vec![Ring::Z64.reduce(x as u128)]])
                .unwrap();
            let found = signed(found[0][0], Ring::Z64);
            assert!(
                applied.result(true).contains(found),
                "{} of {x}",
                function.name()
            );
            let nearest = applied.clear(x).unwrap();
            let apart = veil_numeric::exact::Enclosure::from(nearest - found).abs();
            let both = &applied.error(false) + &applied.error(true);
            assert!(apart.at_most(&both), "{} of {x}: {found}", function.name());
        }
    }
}

#[test]
fn a_ring_that_is_too_small_is_refused() {
    let scale = Scale::binary(40);
    let range = range(Function::Exp, 40);
    let applied = Applied::new(Function::Exp, scale, range, scale).unwrap();
    let error = circuit(&applied, range, Ring::Z64, Rounding::Nearest).unwrap_err();
    assert_eq!(
        error.to_string(),
        "exp of this range, with so many places, may take more than 64 bits"
    );
}

/// Products, roundings and lifted bits of a sigmoid with sixteen places, as [`Circuit::stats`] counts them.
#[test]
fn a_sigmoid_takes_a_few_products_of_integers() {
    let (scale, range) = (Scale::binary(16), range(Function::Sigmoid, 16));
    let applied = Applied::new(Function::Sigmoid, scale, range, scale).unwrap();
    let circuit = circuit(&applied, range, Ring::Z64, Rounding::Nearest).unwrap();
    let stats = circuit.stats();
    assert!(stats.lifts <= 52 && stats.shifts <= 3, "{stats:?}");
}
