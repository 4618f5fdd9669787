//! A million arguments in each binade, up to arguments of forty bits. Doubles decide whether a result is near where they can; enclosures where they cannot, as everywhere else.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use veil_numeric::exact::Enclosure;
use veil_numeric::{Applied, Function, Range, Scale};

use crate::functions::{domain, range};

/// Bits of the largest argument, without its sign.
const BITS: u32 = 40;

/// Arguments of a binade that has as many.
const POINTS: i128 = 1_000_000;

/// Doubles decide all results but one of so many at most: where they decide fewer, the bound is reached, or the slack is too wide.
const DECIDED: u64 = 10_000;

/// Half a unit in the last place of a double from 1 to 2.
const HALF: f64 = f64::EPSILON / 2.0;

/// How far the double of a function is from its value at most, as a part of it. Arguments and results of forty bits are doubles, and so is a result times a power of two. The libraries of
/// systems state an error of a unit in the last place for each function that they have, which is [`HALF`] twice; products, sums and quotients add half a unit each. An exponential
/// of a rounded product loses as many halves as the product is large: of x ln 10 up to 4.6 of them, and 1 for the constant times 4.6. erf is a series whose terms lose half a
/// unit each, by a bell whose exponent goes to 36. Twice what the sums are; [`doubles_are_as_near_as_the_slack`] compares half of it with enclosures.
const fn slack(function: Function) -> f64 {
    match function {
        Function::Erf => 128.0 * HALF,
        Function::Exp10 => 32.0 * HALF,
        _ => 16.0 * HALF,
    }
}

/// Whether results of a function are within the bound.
struct Judge {
    function: Function,
    scale: Scale,
    applied: Applied,
    stated: Enclosure,
    /// No larger than `stated`.
    bound: f64,
    /// Units of 1.
    one: f64,
    slack: f64,
}

/// What a judge has said of results.
#[derive(Clone, Copy, Default)]
struct Tally {
    points: u64,
    /// Those that doubles did not decide.
    asked: u64,
    /// The largest distance, in units, as doubles see it.
    worst: f64,
}

impl Tally {
    fn with(self, other: Self) -> Self {
        Self {
            points: self.points + other.points,
            asked: self.asked + other.asked,
            worst: self.worst.max(other.worst),
        }
    }

    /// Whether doubles decided nearly all.
    const fn is_quick(self) -> bool {
        self.asked * DECIDED <= self.points
    }
}

impl Judge {
    /// Of arguments of forty bits, to as many places as they have.
    fn of(function: Function) -> Self {
        let (low, high) = domain(function);
        let before = i128::BITS - (high.max(-low) - 1).leading_zeros();
        let places = BITS - before;
        let scale = Scale::binary(places);
        let applied = Applied::new(function, scale, range(function, places), scale).unwrap();
        let stated = applied.error(false);
        Self {
            function,
            scale,
            applied,
            one: 2_f64.powi(places as i32),
            slack: slack(function),
            bound: 0.0,
            stated: Enclosure::from(0),
        }
        .with_bound(&stated)
    }

    fn with_bound(mut self, stated: &Enclosure) -> Self {
        self.stated = stated.low();
        self.bound = stated.approximately() * (1.0 - 4.0 * f64::EPSILON);
        self
    }

    /// The arguments that the function is applied to.
    fn range(&self) -> Range {
        range(self.function, self.scale.two)
    }

    fn result(&self, x: i128) -> i128 {
        self.applied.clear(x).unwrap()
    }

    /// Whether `y` is the function of `x` within the bound.
    fn is_near(&self, x: i128, y: i128, tally: &mut Tally) -> bool {
        tally.points += 1;
        let real = self.function.of_double(x as f64 / self.one) * self.one;
        // Two doubles that are near each other differ by a double.
        let distance = (y as f64 - real).abs();
        tally.worst = tally.worst.max(distance);
        if distance + real.abs() * self.slack <= self.bound {
            return true;
        }
        tally.asked += 1;
        let real = self.function.at(&self.scale.value(x)).unwrap();
        let distance = (&Enclosure::from(y) - &self.scale.units(&real)).abs();
        distance.high().at_most(&self.stated)
    }

    /// Arguments of the range whose absolute value is from 2^binade on and below 2^(binade + 1): its ends, and `points` evenly between, or all if it has no more. The lowest has 0 too.
    fn arguments(
        &self,
        negative: bool,
        binade: u32,
        points: i128,
    ) -> impl Iterator<Item = i128> + use<> {
        let (range, low) = (self.range(), 1_i128 << binade);
        // The middles of equal parts: a part is no whole number of units, so that all residues of small powers of two come up.
        let between = (0..points.min(low)).map(move |n| {
            if low <= points {
                low + n
            } else {
                low + low * (2 * n + 1) / (2 * points)
            }
        });
        let ends = [low, 2 * low - 1, range.min().abs(), range.max()];
        let least = if binade == 0 { 0 } else { low };
        let ends = [0].into_iter().chain(ends);
        let ends = ends.filter(move |end| (least..2 * low).contains(end));
        let signed = ends
            .chain(between)
            .map(move |x| if negative { -x } else { x });
        signed.filter(move |x| range.contains(*x))
    }

    /// Judges all arguments of a binade.
    fn binade(&self, negative: bool, binade: u32, points: i128) -> Result<Tally, String> {
        let mut tally = Tally::default();
        for x in self.arguments(negative, binade, points) {
            let y = self.result(x);
            if !self.is_near(x, y, &mut tally) {
                return Err(format!("{} of {x} is {y}: too far", self.function.name()));
            }
        }
        Ok(tally)
    }
}

/// The binades of each function, the lowest first.
fn binades(judges: &[Judge]) -> Vec<(usize, bool, u32)> {
    let signs = |judge: &Judge| {
        let signs = [false, true].into_iter();
        let negative = judge.range().min() < 0;
        signs.filter(move |sign| !sign || negative)
    };
    let mut all = Vec::new();
    for (at, judge) in judges.iter().enumerate() {
        for negative in signs(judge) {
            all.extend((0..BITS).map(|binade| (at, negative, binade)));
        }
    }
    all
}

/// Judges so many points of each binade, on all processors.
fn judged(points: i128) {
    let judges: Vec<Judge> = Function::ALL.into_iter().map(Judge::of).collect();
    let (all, next) = (binades(&judges), AtomicUsize::new(0));
    let work = || {
        let mut tallies = vec![Tally::default(); judges.len()];
        while let Some(&(at, negative, binade)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let of_binade = judges[at].binade(negative, binade, points).unwrap();
            tallies[at] = tallies[at].with(of_binade);
        }
        tallies
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let tallies = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let tallies = threads.into_iter().map(|thread| thread.join().unwrap());
        let sum = |a: Vec<Tally>, b: Vec<Tally>| a.iter().zip(b).map(|(a, b)| a.with(b)).collect();
        tallies.reduce(sum).unwrap()
    });
    for (judge, tally) in judges.iter().zip(tallies) {
        let name = judge.function.name();
        println!(
            "{name}: {} points, {} asked of enclosures, at most {:.4} of {:.4} units away",
            tally.points, tally.asked, tally.worst, judge.bound
        );
        assert!(
            tally.is_quick(),
            "{name}: doubles leave {} open",
            tally.asked
        );
        assert!(
            tally.worst > 0.45,
            "{name} is never {} units away",
            tally.worst
        );
    }
}

#[test]
fn some_points_of_each_binade_are_near() {
    judged(1000);
}

#[test]
#[ignore = "tier long: a million points of each binade, four minutes of two processors"]
fn a_million_points_of_each_binade_are_near() {
    judged(POINTS);
}

#[test]
fn binades_are_whole() {
    for judge in Function::ALL.into_iter().map(Judge::of) {
        let range = judge.range();
        let largest = range.max().max(-range.min());
        assert!((1 << (BITS - 1)..=1 << BITS).contains(&largest));
        let seen = |x: i128| {
            let binade = x.abs().max(1).ilog2();
            judge.arguments(x < 0, binade, 7).any(|y| y == x)
        };
        assert!([range.max(), range.max() - 1].into_iter().any(seen));
        assert!([range.min(), range.min() + 1].into_iter().any(seen));
        let some = judge.arguments(false, 30, 1000);
        let all: Vec<i128> = some.filter(|x| x >> 30 == 1).collect();
        assert!((1000..=1004).contains(&all.len()));
    }
    let judge = Judge::of(Function::Root);
    let few: Vec<i128> = judge.arguments(false, 2, POINTS).collect();
    assert_eq!(few, [4, 7, 4, 5, 6, 7]);
}

#[test]
fn doubles_are_as_near_as_the_slack() {
    let judges: Vec<Judge> = Function::ALL.into_iter().map(Judge::of).collect();
    for (at, negative, binade) in binades(&judges) {
        let judge = &judges[at];
        for x in judge.arguments(negative, binade, 9) {
            let of = judge.scale.value(x);
            let real = judge.function.at(&of).unwrap();
            let double = judge.function.of_double(x as f64 / judge.one);
            // A double is an integer of 53 bits times a power of two.
            let exponent = double.abs().log2().max(-128.0).floor() as i32 - 52;
            let integer = (double * 2_f64.powi(-exponent)) as i128;
            let off = (&Enclosure::scaled(integer, exponent) - &real).abs();
            // Enclosures of 0 are wider than it.
            let allowed = slack(judge.function) / 2.0 * double.abs() + 2_f64.powi(-180);
            assert!(
                off.approximately() <= allowed,
                "{} of {x}: {} of {allowed}",
                judge.function.name(),
                off.approximately()
            );
        }
    }
}

/// Of the two numbers that are two units from a result, one is two units or more from the function.
#[test]
fn a_result_that_is_off_by_two_units_is_found() {
    let judges: Vec<Judge> = Function::ALL.into_iter().map(Judge::of).collect();
    for (at, negative, binade) in binades(&judges) {
        let judge = &judges[at];
        for x in judge.arguments(negative, binade, 3) {
            let (y, mut tally) = (judge.result(x), Tally::default());
            let near = [y - 2, y, y + 2].map(|y| judge.is_near(x, y, &mut tally));
            assert!(near[1] && !(near[0] && near[2]), "{near:?}");
            assert!(tally.asked > 0 && !tally.is_quick());
        }
    }
}

/// Half a unit is what the last rounding loses alone.
#[test]
fn a_bound_that_is_too_tight_is_found() {
    for function in Function::ALL {
        let judge = Judge::of(function).with_bound(&Enclosure::ratio(9, 20));
        let found = judge.binade(false, BITS - 3, 5000);
        let error = found.err().unwrap();
        assert!(error.starts_with(function.name()) && error.ends_with(": too far"));
    }
}
