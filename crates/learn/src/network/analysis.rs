//! Which integers a network is computed with: ranges of all cells, and a bound of how far they are from real numbers.
//!
//! A cell is an integer of 10^-places, as features are, or of 2^-f. A sum has g binary places more, so many that its integers, which are weights rounded to nearest, are off by half a unit of
//! 2^-f or two in all; g bits go when what was added up is rounded. With e for the error of what goes in,
//!
//! ```text
//! a sum        Σ |w| e + (Σ |x| + 1) / 2 units of 2^-(f+g), and of secret weights Σ |x| + 1 halves of the last place that they were rounded to
//! rounded      e + half a unit
//! the largest  e,    a mean  e + half a unit,    a function  its slope times e, and its own
//! ```

use num_bigint::BigInt;
use veil_numeric::{Applied, Function, Range};

use super::inference::{Product, Settle, Step, function, rounded, windows};
use super::sums::{Sums, Weights};
use super::unit::{ERROR, Unit, ceiling, nearest};
use super::{Activation, Cells, Layer, Network, Window};
use crate::column::Column;
use crate::error::FitError;

/// Bits of a number with its sign, at most: some are left of the 64 of the ring.
pub(super) const MOST_BITS: u32 = 62;

/// Cells of a row.
struct Map {
    cells: Cells,
    ranges: Vec<Range>,
    unit: Unit,
    error: u128,
    /// Sums that are not rounded yet have so many binary places more.
    more: u32,
}

/// Which integers a network is computed with.
pub(super) struct Analysis {
    pub(super) factors: Vec<i64>,
    pub(super) binary: u32,
    pub(super) steps: Vec<Step>,
    /// The range of what is given.
    pub(super) range: Range,
    /// In units of 2^-ERROR.
    pub(super) error: u128,
    /// Whether weights have fewer places than they would need.
    pub(super) squeezed: bool,
}

impl Analysis {
    /// The error in thousandths of 10^-places.
    pub(super) fn error_in_thousandths(&self, places: u32) -> u128 {
        let above = BigInt::from(self.error) * BigInt::from(10).pow(places + 3);
        let below = BigInt::from(1) << ERROR;
        u128::try_from(ceiling(&above, &below)).unwrap_or(u128::MAX)
    }
}

/// What follows in the same step.
#[derive(Default)]
struct Then {
    window: Option<Window>,
    relu: bool,
    function: Option<Function>,
    /// The first layer that is not.
    next: usize,
}

struct Writer<'n> {
    network: &'n Network,
    maps: Vec<Map>,
    steps: Vec<Step>,
    /// The map of what each layer gave; none where it is on the way to another.
    of_layer: Vec<Option<usize>>,
    binary: u32,
    places: u32,
    squeezed: bool,
    /// The layer that is looked at.
    at: usize,
}

const fn wide(bits: u32) -> FitError {
    FitError::TooWide {
        bits,
        most: MOST_BITS,
    }
}

/// Bits of a number with its sign.
pub(super) fn signed(range: Range) -> u32 {
    let of =
        |value: i128| i128::BITS + 1 - (if value < 0 { !value } else { value }).leading_zeros();
    of(range.min()).max(of(range.max()))
}

fn checked(range: Option<Range>) -> Result<Range, FitError> {
    let range = range.ok_or(wide(129))?;
    match signed(range) {
        bits if bits > MOST_BITS => Err(wide(bits)),
        _ => Ok(range),
    }
}

fn hull(ranges: &[Range]) -> Range {
    let (first, rest) = ranges
        .split_first()
        .map_or((Range::point(0), ranges), |(a, b)| (*a, b));
    rest.iter().fold(first, |all, range| all.hull(*range))
}

fn magnitude(range: Range) -> u128 {
    range.min().unsigned_abs().max(range.max().unsigned_abs())
}

/// The analysis with so many binary places of cells, and decimal places of what is given.
pub(super) fn of(
    network: &Network,
    columns: &[Column],
    (places, binary): (u32, u32),
) -> Result<Analysis, FitError> {
    let most = columns.iter().map(|column| column.places).max();
    let most = most.unwrap_or(0);
    let mut factors = Vec::new();
    let mut ranges = Vec::new();
    for column in columns {
        let factor = 10_i64.checked_pow(most - column.places).ok_or(wide(129))?;
        ranges.push(checked(column.range.times(Range::point(factor.into())))?);
        factors.push(factor);
    }
    let features = Map {
        cells: network.parts().cells,
        ranges,
        unit: Unit::Decimal(most),
        error: 0,
        more: 0,
    };
    let mut writer = Writer {
        network,
        maps: vec![features],
        steps: Vec::new(),
        of_layer: vec![None; network.parts().layers.len()],
        binary,
        places,
        squeezed: false,
        at: 0,
    };
    let layers = writer.layers();
    layers.map_err(|error| match error {
        FitError::TooWide { bits, most } if !network.secret().is_empty() => FitError::WideLayer {
            layer: writer.at,
            bits,
            most,
        },
        other => other,
    })?;
    let last = writer.maps.last().ok_or(wide(129))?;
    let (given, error) = (Unit::Decimal(places), last.error);
    let rounded = matches!(writer.steps.last(), Some(Step::Settle(settle)) if !settle.is_sum());
    if last.unit != given || !rounded {
        let of = writer.maps.len() - 1;
        writer.settle(vec![of], (false, None), &Then::default(), given)?;
    }
    let range = match writer.steps.last() {
        Some(Step::Settle(settle)) => settle.range(),
        _ => return Err(wide(129)),
    };
    let error = writer.maps.last().map_or(error, |map| map.error);
    Ok(Analysis {
        factors,
        binary,
        steps: writer.steps,
        range,
        error,
        squeezed: writer.squeezed,
    })
}

impl Writer<'_> {
    fn layers(&mut self) -> Result<(), FitError> {
        let layers = &self.network.parts().layers;
        let mut at = 0;
        let mut now = 0;
        while let Some(layer) = layers.get(at) {
            self.at = at;
            let begins = match layer {
                // These are of the step themselves.
                Layer::Activation(_) | Layer::Pool { mean: false, .. } => at,
                _ => at + 1,
            };
            let is_sum = matches!(layer, Layer::Pool { mean: true, .. } | Layer::Add { .. });
            let then = self.then(at, begins, !is_sum);
            let mut to = self.target(&then);
            let mut mean = None;
            let of = match layer {
                Layer::Dense { .. } | Layer::Convolution { .. } | Layer::Secret(_) => {
                    vec![self.product(now, at, to)?]
                }
                Layer::Add { layer } => {
                    let other = self.of_layer.get(*layer as usize).copied().flatten();
                    let both = [now, other.unwrap_or(now)];
                    let both = both.map(|map| self.with_binary_places(map));
                    both.into_iter().collect::<Result<_, _>>()?
                }
                Layer::Pool { mean: true, window } => {
                    mean = Some(*window);
                    vec![now]
                }
                Layer::Pool { mean: false, .. } | Layer::Activation(_) => {
                    // The largest of decimals is a decimal.
                    if then.function.is_none() {
                        to = self.maps[now].unit;
                    }
                    vec![now]
                }
            };
            now = self.settle(of, (is_sum, mean), &then, to)?;
            at = then.next;
            self.of_layer[at - 1] = Some(now);
        }
        Ok(())
    }

    /// The layers from `next` on that are computed in the step that begins with layer `first`: up to one whose result a later sum asks for.
    fn then(&self, first: usize, next: usize, may_pool: bool) -> Then {
        let layers = &self.network.parts().layers;
        let mut then = Then {
            next,
            ..Then::default()
        };
        let is_added = |layer: usize| {
            let adds =
                |of: &Layer| matches!(of, Layer::Add { layer: added } if *added as usize == layer);
            layers.iter().any(adds)
        };
        while let Some(layer) = layers.get(then.next) {
            let asked = then.next > first && is_added(then.next - 1);
            if asked || then.function.is_some() {
                break;
            }
            match layer {
                Layer::Activation(Activation::Relu) => then.relu = true,
                Layer::Activation(of) => then.function = function(*of),
                Layer::Pool {
                    mean: false,
                    window,
                } if may_pool && then.window.is_none() => then.window = Some(*window),
                _ => break,
            }
            then.next += 1;
        }
        then
    }

    /// The units of a result: what is given has decimal places.
    fn target(&self, then: &Then) -> Unit {
        if then.next >= self.network.parts().layers.len() && then.function.is_none() {
            Unit::Decimal(self.places)
        } else {
            Unit::Binary(self.binary)
        }
    }

    /// A map with binary places.
    fn with_binary_places(&mut self, of: usize) -> Result<usize, FitError> {
        let to = Unit::Binary(self.binary);
        if self.maps[of].unit == to {
            return Ok(of);
        }
        self.settle(vec![of], (false, None), &Then::default(), to)
    }

    /// Sums of the cells of a map, with weights in units of the target and some binary places more.
    fn product(&mut self, of: usize, layer: usize, to: Unit) -> Result<usize, FitError> {
        let map = &self.maps[of];
        let cells = self.network.cells()[layer];
        let (sums, window) = Sums::of(self.network, layer).ok_or(wide(129))?;
        // What each term of a sum may be.
        let terms: Vec<Range> = match &window {
            None => map.ranges.clone(),
            Some(window) => {
                let image = map.cells[1] as usize * map.cells[2] as usize;
                let size = window.size[0] as usize * window.size[1] as usize;
                let zero = (window.padding != [0; 4]).then_some(Range::point(0));
                let channels = map.ranges.chunks(image).map(|channel| {
                    let all = hull(channel);
                    zero.map_or(all, |zero| all.hull(zero))
                });
                channels
                    .flat_map(|range| std::iter::repeat_n(range, size))
                    .collect()
            }
        };
        let all = terms.iter().map(|range| magnitude(*range));
        let all = all.fold(1_u128, u128::saturating_add);
        let mut more = (u128::BITS - (all / 4).leading_zeros()).min(MOST_BITS);
        let ten = BigInt::from(10).pow(self.network.parts().places);
        let (integers, ranges) = loop {
            let found = sums.integers((to, more), (map.unit, &ten), &terms);
            let bits = found
                .as_ref()
                .map_or(129, |(_, ranges)| signed(hull(ranges)));
            match found {
                Some(found) if bits <= MOST_BITS => break found,
                _ if more == 0 => return Err(wide(bits)),
                _ => {
                    self.squeezed = true;
                    more -= (bits.saturating_sub(MOST_BITS)).clamp(1, more);
                }
            }
        };
        let through = ceiling(&(sums.largest(terms.len()) * map.error), &(&ten * 2));
        let through = u128::try_from(through).unwrap_or(u128::MAX);
        let mut error = through.saturating_add(to.halves(all, more));
        if let Weights::Secret { weights, biases } = &integers {
            // What the factors of weights are off by, and what was rounded before: weights times cells, which are integers of their map, and a bias.
            let beyond = [(weights, all - 1), (biases, 1)];
            let beyond = beyond.map(|(of, times)| {
                to.halves(of.beyond().saturating_mul(times), (of.by + more).min(127))
            });
            let below = &ten * map.unit.one() * 2;
            let before = (BigInt::from(all - 1) + map.unit.one()) << ERROR;
            let before = u128::try_from(ceiling(&before, &below)).unwrap_or(u128::MAX);
            error = beyond.into_iter().fold(error, u128::saturating_add);
            error = error.saturating_add(before);
        }
        let each = cells[1] as usize * cells[2] as usize;
        let ranges = ranges
            .into_iter()
            .flat_map(|range| std::iter::repeat_n(range, each));
        let next = Map {
            cells,
            ranges: ranges.collect(),
            unit: to,
            error,
            more,
        };
        self.steps.push(Step::Product(Product {
            of,
            before: map.cells,
            window,
            weights: integers,
            cells,
        }));
        self.maps.push(next);
        Ok(self.maps.len() - 1)
    }

    /// Cells of maps put together, in other units, and what follows.
    fn settle(
        &mut self,
        of: Vec<usize>,
        (sum, mean): (bool, Option<Window>),
        then: &Then,
        to: Unit,
    ) -> Result<usize, FitError> {
        let window = mean.or(then.window);
        let first = &self.maps[of[0]];
        let before = first.cells;
        let (unit, more) = (first.unit, first.more);
        let cells = window.map_or(before, |window| {
            let places = window.places([before[1], before[2]]).unwrap_or([1, 1]);
            [before[0], places[0], places[1]]
        });
        let together = self.together(&of, window.map(|window| (window, cells)), sum)?;
        let all = hull(&together);
        let cells_of_mean = mean.map_or(1, |window| window.size[0] * window.size[1]);
        // Sums already have the units that they are rounded to, but for binary places.
        let same = unit == to && cells_of_mean == 1;
        let (factor, by) = if same {
            (1, more)
        } else {
            let by = u128::BITS - magnitude(all).leading_zeros() + 1;
            let below = (unit.one() << more) * cells_of_mean;
            let exact = |by: u32| (to.one() << by, below.clone());
            // Fewer places where what is multiplied leaves no room.
            let mut by = by + more;
            let factor = loop {
                let (above, below) = exact(by);
                let factor = nearest(&above, &below);
                let product = i64::try_from(factor).ok().filter(|factor| {
                    let product = all.times(Range::point((*factor).into()));
                    product.is_some_and(|product| signed(product) <= MOST_BITS)
                });
                match product {
                    Some(factor) => break factor,
                    None if by == 0 => return Err(wide(signed(all) + 1)),
                    None => by -= 1,
                }
            };
            (factor, by)
        };
        let rounded = |value| rounded(value, factor, by);
        let mut ranges = Vec::new();
        for range in &together {
            ranges.push(checked(Range::new(
                rounded(range.min()),
                rounded(range.max()),
            ))?);
        }
        let whole = signed(hull(&ranges)) - 1;
        if whole + by > MOST_BITS {
            return Err(wide(whole + by));
        }
        let worst = of.iter().map(|map| self.maps[*map].error);
        let worst = if mean.is_some() || !sum {
            worst.max().unwrap_or(0)
        } else {
            worst.fold(0, u128::saturating_add)
        };
        let mut error = worst;
        if !same || by > 0 {
            error = error.saturating_add(to.halves(1, 0));
        }
        if !same {
            // A factor that is rounded is off by half of 2^-by.
            error = error.saturating_add(to.halves(magnitude(all), by));
        }
        if then.relu {
            let positive = |range: &Range| {
                let (min, max) = (range.min().max(0), range.max().max(0));
                Range::new(min, max).unwrap_or(Range::point(0))
            };
            ranges = ranges.iter().map(positive).collect();
        }
        let most = hull(&ranges).max().max(0);
        let mut settle = Settle {
            of,
            before,
            window,
            sum,
            factor,
            by,
            whole,
            relu: then.relu,
            positive: i128::BITS - most.leading_zeros(),
            function: None,
            cells,
        };
        let mut unit = to;
        if let Some(of) = then.function {
            if then.next >= self.network.parts().layers.len() {
                unit = Unit::Decimal(self.places);
            }
            let applied = Applied::of(of, to.scale(), settle.rounded(), unit.scale())?;
            let slope = if of == Function::Sigmoid { 4 } else { 1 };
            let own = applied.error(false).ceil(20);
            let own = own.and_then(|own| u128::try_from(own).ok());
            let own = own.map_or(u128::MAX, |own| unit.halves(2 * own, 20));
            error = error.div_ceil(slope).saturating_add(own);
            ranges.fill(applied.result(false));
            settle.function = Some(applied);
        }
        self.steps.push(Step::Settle(settle));
        self.maps.push(Map {
            cells,
            ranges,
            unit,
            error,
            more: 0,
        });
        Ok(self.maps.len() - 1)
    }

    /// The ranges of cells of maps that are put together.
    fn together(
        &self,
        of: &[usize],
        window: Option<(Window, Cells)>,
        sum: bool,
    ) -> Result<Vec<Range>, FitError> {
        let before = self.maps[of[0]].cells;
        let image = before[1] as usize * before[2] as usize;
        let (window, cells) = window.unwrap_or((Window::one(), before));
        let mut all = Vec::new();
        for channel in 0..before[0] as usize {
            for cells in windows(&window, before, cells) {
                let places = cells.iter().flatten();
                let mut ranges = of.iter().flat_map(|map| {
                    let ranges = &self.maps[*map].ranges;
                    let places = places.clone();
                    places.map(move |place| ranges[channel * image + place])
                });
                let first = ranges.next().ok_or(wide(129))?;
                let range = ranges.try_fold(first, |a, b| {
                    if sum {
                        a.plus(b)
                    } else {
                        Range::new(a.min().max(b.min()), a.max().max(b.max()))
                    }
                });
                all.push(checked(range)?);
            }
        }
        Ok(all)
    }
}
