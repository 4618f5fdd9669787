//! Enclosures and Taylor coefficients against doubles, and known digits.

use veil_numeric::Curve;
use veil_numeric::exact::Enclosure;

/// An enclosure within so many units of 2^-48 of a double.
fn near(x: &Enclosure, double: f64, what: &str) {
    let difference = (x.approximately() - double).abs();
    assert!(
        difference <= double.abs().max(1.0) * 2_f64.powi(-48),
        "{what}: {} instead of {double}",
        x.approximately()
    );
    let width = (&x.high() - &x.low()).approximately();
    assert!(
        width < 2_f64.powi(-100) * double.abs().max(1.0),
        "{what} is {width} wide"
    );
}

#[test]
fn functions_agree_with_doubles() {
    for n in -40..=40_i128 {
        let (x, double) = (Enclosure::ratio(n, 7), n as f64 / 7.0);
        near(&x.exp(), double.exp(), "exp");
        if n > 0 {
            near(&x.ln().unwrap(), double.ln(), "ln");
            near(&x.sqrt().unwrap(), double.sqrt(), "sqrt");
        }
    }
    near(&Enclosure::pi(), std::f64::consts::PI, "π");
    near(&Enclosure::ln_2(), std::f64::consts::LN_2, "ln 2");
    // Abramowitz and Stegun 1964, table 7.1, and erf's symmetry.
    near(
        &Enclosure::ratio(1, 2).erf(),
        0.520_499_877_813_046_5,
        "erf 1/2",
    );
    near(&Enclosure::from(2).erf(), 0.995_322_265_018_952_7, "erf 2");
    near(
        &Enclosure::from(-1).erf(),
        -0.842_700_792_949_714_9,
        "erf −1",
    );
    // π has these 50 decimals.
    let digits = Enclosure::pi();
    let tail = &(&digits * &Enclosure::from(10_i128.pow(30)))
        - &Enclosure::from(3_141_592_653_589_793_238_462_643_383_279);
    assert!((tail.approximately() - 0.502_884_197_169_399_4).abs() < 1e-15);
}

#[test]
fn ends_are_rounded_outwards() {
    let third = Enclosure::ratio(1, 3);
    let three = &third * &Enclosure::from(3);
    assert!(three.meets(&Enclosure::from(1)) && !three.low().meets(&three.high()));
    assert_eq!(third.floor(4), Some(5));
    assert_eq!(third.ceil(4), Some(6));
    assert_eq!((-&third).floor(4), Some(-6));
    assert!(Enclosure::from(1).over(&(&third - &third)).is_none());
    assert!((&third - &third).ln().is_none());
}

/// The series at a number is the curve near it.
#[test]
fn jets_are_taylor_series() {
    for curve in Curve::ALL {
        let (at, by) = (Enclosure::ratio(3, 8), Enclosure::ratio(1, 1000));
        let jet = curve.jet(&at, 16);
        let sum =
            (jet.coefficients().iter().rev()).fold(Enclosure::from(0), |sum, c| &(&sum * &by) + c);
        let difference = (&sum - &curve.at(&(&at + &by))).abs();
        assert!(
            difference.approximately() < 1e-44,
            "{curve:?}: {}",
            difference.approximately()
        );
    }
}
