//! `veil-lab bench fixmul`: products of fixed-point numbers, each of which loses its last places again.

use std::sync::{Arc, Mutex, PoisonError};

use miette::{Result, miette};
use veil_circuit::generate::{Integer, shift_right, truncate_pr};
use veil_circuit::{Builder, Circuit, Per};
use veil_cli::devices::Registry;
use veil_engine::Data;
use veil_job::{
    Adversary, Audience, Block, DataError, Holder, JobSpec, Order, ProtocolKind, Security, Sink,
    Slice, Source,
};
use veil_math::Ring;
use veil_program::Words;
use veil_session::{PartyId, Peer};

use super::measure::{Row, measure_with};
use super::random::Random;
use super::workload::{Workload, conversions, streams};
use super::{BenchArgs, HEADER, print, print_json};

/// Rows, where nothing else is said.
const ROWS: u64 = 100_000;

/// Numbers of a row, and its products: each number times the next one and the one after that, which is 16 different pairs.
const NUMBERS: usize = 8;
const PRODUCTS: usize = 16;

/// Bits of the size of a number. A product has twice as many and a sign, which is one bit less than the ring: what a truncation at random needs.
const SIZE: u32 = 31;

/// Binary places, where nothing else is said.
const PLACES: u32 = 16;

/// How products lose their last places.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum Truncation {
    /// Rounded down: [`veil_circuit::Gate::ShiftRight`].
    Exact,
    /// Rounded down or up at random: [`veil_circuit::Gate::TruncatePr`].
    Probabilistic,
}

impl Truncation {
    const fn word(self) -> &'static str {
        match self {
            Truncation::Exact => "exact",
            Truncation::Probabilistic => "probabilistic",
        }
    }
}

/// Reads a number of binary places.
pub(super) fn places(text: &str) -> Result<u32, String> {
    let places = text.parse().ok().filter(|of| (1..SIZE).contains(of));
    places.ok_or_else(|| {
        format!(
            "`{text}` is no number of binary places: from 1 to {}",
            SIZE - 1
        )
    })
}

/// The numbers of a product, by their places in a row.
const fn factors(product: usize) -> [usize; 2] {
    let (first, further) = (product % NUMBERS, 1 + product / NUMBERS);
    [first, (first + further) % NUMBERS]
}

/// The sum of a row's products, added up over all rows.
fn circuit(places: u32, truncation: Truncation) -> Circuit {
    let mut b = Builder::new(Ring::Z64);
    let x = b.input("x", NUMBERS as u32, Per::Row);
    let of = Integer::signed(2 * SIZE + 1);
    let mut sum = b.constant(0);
    for product in 0..PRODUCTS {
        let [left, right] = factors(product).map(|at| x[at]);
        let product = b.mul(left, right);
        let rounded = match truncation {
            Truncation::Exact => shift_right(&mut b, product, places, of),
            Truncation::Probabilistic => truncate_pr(&mut b, product, places, of),
        };
        sum = b.add(sum, rounded);
    }
    b.output_sum("z", &[sum]);
    b.finish().expect("a valid circuit")
}

/// Party 0 supplies the numbers, and the sum is opened to party 1.
fn job(rows: u64, circuit: Circuit, security: Security) -> JobSpec {
    let parties = 0..security.protocol.parties();
    JobSpec {
        name: "bench fixmul".into(),
        schema: String::new(),
        owners: vec![],
        parties: parties.map(|p| format!("party {p}")).collect(),
        recipients: vec![],
        security,
        totals: None,
        circuit,
        blocks: vec![Block {
            name: "rows".into(),
            rows,
            holders: vec![Holder::Party(PartyId::THREE[0])],
            stored: None,
            order: Order::Unsaid,
        }],
        audiences: vec![Audience::Party(PartyId::THREE[1])],
        opened: vec!["the sum of all products of a benchmark".into()],
        inputs: Vec::new(),
        datasets: Vec::new(),
        keep: None,
    }
}

/// Numbers that follow from their row and their place in it.
struct Numbers;

impl Numbers {
    /// Any number of [`SIZE`] bits and a sign.
    fn at(row: u64, place: usize) -> i64 {
        let most = (1 << SIZE) - 1;
        let mut random = Random(row.wrapping_mul(NUMBERS as u64) + place as u64);
        random.below(2 * most + 1) as i64 - most as i64
    }
}

impl Source for Numbers {
    fn fill(&self, _port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        for (place, column) in into.chunks_mut(8 * slice.rows as usize).enumerate() {
            for (row, word) in (slice.first..).zip(column.chunks_mut(8)) {
                word.copy_from_slice(&Self::at(row, place).to_le_bytes());
            }
        }
        Ok(())
    }
}

/// Keeps the sums that are opened, one of each run.
#[derive(Default)]
struct Sums(Mutex<Vec<u64>>);

impl Sink for Sums {
    fn put(&self, _port: usize, _slice: Slice, values: &[u8]) -> Result<(), DataError> {
        let words = values.as_chunks::<8>().0.iter();
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sums.extend(words.map(|word| u64::from_le_bytes(*word)));
        Ok(())
    }

    fn finish(&self) -> Result<(), DataError> {
        Ok(())
    }
}

/// What the numbers mean.
struct Meaning {
    /// The sum of all products, rounded down one by one.
    floor: i128,
    /// The sum of what they lost, in units of the last place that goes.
    lost: i128,
    products: u64,
    places: u32,
}

impl Meaning {
    fn new(rows: u64, places: u32) -> Self {
        let (mut floor, mut lost) = (0, 0);
        for row in 0..rows {
            let numbers: [i128; NUMBERS] =
                std::array::from_fn(|place| Numbers::at(row, place).into());
            for product in 0..PRODUCTS {
                let [left, right] = factors(product).map(|at| numbers[at]);
                let exact = left * right;
                floor += exact >> places;
                lost += exact - ((exact >> places) << places);
            }
        }
        Self {
            floor,
            lost,
            products: rows * PRODUCTS as u64,
            places,
        }
    }

    /// Whether a sum, modulo 2^64, is what it may be: exactly the products rounded down or, of those rounded at random, as near to the sum of the products
    /// themselves as all but one run in 10^20 are.
    fn admits(&self, sum: u64, truncation: Truncation) -> bool {
        let up = sum.wrapping_sub(self.floor as u64);
        match truncation {
            Truncation::Exact => up == 0,
            Truncation::Probabilistic => {
                // Of n independent roundings, Hoeffding: beyond t · √n with probability 2 exp(-2 t²), and t = 5.
                let mean = self.lost as f64 / f64::from(1 << self.places);
                let n = self.products as f64;
                up <= self.products && (up as f64 - mean).abs() <= 5.0 * n.sqrt()
            }
        }
    }
}

/// A row of results: that of every benchmark, and what is of truncations alone.
#[derive(serde::Serialize)]
struct Found<'a> {
    truncation: &'static str,
    places: u32,
    #[serde(flatten)]
    row: &'a Row,
}

/// Which truncations there are, of those that were asked for.
fn truncations(asked: Option<Truncation>, security: Security) -> Result<Vec<Truncation>> {
    // Products with MACs open nothing before these are checked, and round exactly.
    let macs =
        security.protocol == ProtocolKind::Rep3 && security.adversary == Adversary::Malicious;
    match asked {
        Some(Truncation::Probabilistic) if macs => Err(miette!(
            help = "`--truncation exact`, or `--protocol rep4`",
            "three parties of whom one is malicious round exactly"
        )),
        Some(asked) => Ok(vec![asked]),
        None if macs => Ok(vec![Truncation::Exact]),
        None => Ok(vec![Truncation::Exact, Truncation::Probabilistic]),
    }
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs, registry: &Arc<dyn Registry>) -> Result<()> {
    let sharing = args.protocol.unwrap_or(ProtocolKind::Rep3);
    if sharing == ProtocolKind::Yao {
        return Err(miette!(
            "numbers are multiplied among three or four parties"
        ));
    }
    let security = args.security(sharing, Words::default())?;
    let truncations = truncations(args.truncation, security)?;
    let device = args.devices(registry)?;
    let rows = args.batch.unwrap_or(ROWS).max(1);
    let places = args.places.unwrap_or(PLACES);
    let meaning = Meaning::new(rows, places);
    let mut found = Vec::new();
    for truncation in truncations {
        if !args.json {
            println!("{}, {places} binary places", truncation.word());
            println!("{HEADER}");
        }
        let job = Arc::new(job(rows, circuit(places, truncation), security));
        let masks = conversions(&job) / PRODUCTS as f64;
        let workload = Workload {
            name: "fixmul",
            ops: PRODUCTS as u64,
            blocks_per_op: streams(sharing) * masks / 128.0,
            blocks_of_transfers: 0.0,
            job,
        };
        for &carrier in &args.link {
            for cores in args.cores.0..=args.cores.1 {
                let sums = Arc::new(Sums::default());
                let data = |peer: Peer| match peer {
                    Peer::Party(p) if p.index() == 0 => Data {
                        source: Some(Arc::new(Numbers)),
                        ..Data::default()
                    },
                    Peer::Party(p) if p.index() == 1 => Data {
                        sink: Some(Arc::clone(&sums) as Arc<dyn Sink>),
                        ..Data::default()
                    },
                    Peer::Party(_) | Peer::Owner(_) | Peer::Recipient(_) => Data::default(),
                };
                let setup = args.setup(&device, carrier, cores);
                let row = measure_with(&workload, &setup, &data)?;
                let sums = sums.0.lock().unwrap_or_else(PoisonError::into_inner);
                let as_meant = |sum: &u64| meaning.admits(*sum, truncation);
                if sums.len() != setup.repeat.max(1) as usize || !sums.iter().all(as_meant) {
                    return Err(miette!(
                        "the sum that was opened is not that of the products, {}, {}",
                        truncation.word(),
                        carrier.name()
                    ));
                }
                let of = Found {
                    truncation: truncation.word(),
                    places,
                    row: &row,
                };
                if args.json {
                    print_json(&of)?;
                } else {
                    print(&row);
                }
                found.push(row);
            }
        }
    }
    args.draw(&found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circuit in the clear makes what the numbers mean, and one unit more or less is found.
    #[test]
    fn what_numbers_mean_is_what_the_circuit_makes() {
        for places in [1, PLACES, SIZE - 1] {
            let (rows, meaning) = (200, Meaning::new(200, places));
            let numbers = |row| -> Vec<u128> {
                let of = |place| u128::from(Numbers::at(row, place) as u64);
                (0..NUMBERS).map(of).collect()
            };
            for truncation in [Truncation::Exact, Truncation::Probabilistic] {
                let circuit = circuit(places, truncation);
                let sum = (0..rows).fold(0u64, |sum, row| {
                    let of_row = circuit.evaluate(&[numbers(row)]).expect("a row");
                    sum.wrapping_add(of_row[0][0] as u64)
                });
                // In the clear zeros are drawn, by which nothing is rounded up.
                assert!(meaning.admits(sum, Truncation::Exact), "{places}");
                for wrong in [1, u64::MAX] {
                    assert!(!meaning.admits(sum.wrapping_add(wrong), Truncation::Exact));
                }
            }
            // What was lost comes back at random: neither all of it nor nothing would, nor more than chance allows.
            let floor = meaning.floor as u64;
            let drawn = |up: u64| meaning.admits(floor.wrapping_add(up), Truncation::Probabilistic);
            let mean = (meaning.lost >> places) as u64;
            let off = 5 * meaning.products.isqrt();
            for right in [mean - off, mean, mean + off] {
                assert!(drawn(right), "{places}, {right}");
            }
            let far = off + 10;
            for wrong in [0, mean - far, mean + far, meaning.products, u64::MAX] {
                assert!(!drawn(wrong), "{places}, {wrong}");
            }
        }
    }

    /// Products are of 16 different pairs, and the largest fits.
    #[test]
    fn pairs_differ_and_products_fit() {
        let mut pairs: Vec<[usize; 2]> = (0..PRODUCTS).map(factors).collect();
        for pair in &mut pairs {
            pair.sort_unstable();
        }
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), PRODUCTS);
        let most = i128::from((1_u64 << SIZE) - 1);
        assert!(most * most < 1 << (2 * SIZE));
        assert!(2 * SIZE + 1 < Ring::Z64.bits());
    }
}
