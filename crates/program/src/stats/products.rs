//! In which order to multiply.
//!
//! A product that is only summed over the rows costs almost nothing: the parties sum the local terms of all rows and send one element. A
//! product that is a factor of another one costs an element per row. So every product is split into two parts, each an input or a product
//! that exists anyway, and as few parts as possible are made: parts that many products can use come first.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Column, monomial::Monomial};

/// How each product that is not an input is made of two others.
pub(super) type Splits = BTreeMap<Monomial, (Monomial, Monomial)>;

/// Chooses a split for every target of more than one factor, and for the parts that this needs.
pub(super) fn choose(columns: &[Column], targets: &[Monomial]) -> Splits {
    let mut popular: HashMap<Monomial, usize> = HashMap::new();
    for target in targets {
        let parts: BTreeSet<_> = splits(columns, target)
            .into_iter()
            .flat_map(|(a, b)| [a, b])
            .collect();
        for part in parts {
            *popular.entry(part).or_default() += 1;
        }
    }
    // Both orders are sound, and neither is always better.
    let mut falling: Vec<&Monomial> = targets.iter().collect();
    falling.sort_by_key(|target| std::cmp::Reverse(target.degree()));
    let rising = falling.iter().rev().copied().collect();
    let attempts = [falling, rising].map(|order| attempt(columns, &order, &popular));
    let [falling, rising] = attempts;
    if parts(&rising) < parts(&falling) {
        rising
    } else {
        falling
    }
}

/// Number of products that cost an element per row: those that are parts of others.
pub(super) fn parts(splits: &Splits) -> usize {
    let parts: BTreeSet<&Monomial> = splits.values().flat_map(|(a, b)| [a, b]).collect();
    parts.into_iter().filter(|part| part.degree() > 1).count()
}

fn attempt(columns: &[Column], order: &[&Monomial], popular: &HashMap<Monomial, usize>) -> Splits {
    let mut chooser = Chooser {
        columns,
        popular,
        made: BTreeSet::new(),
        splits: Splits::new(),
    };
    for target in order {
        chooser.split(target);
    }
    chooser.splits
}

struct Chooser<'a> {
    columns: &'a [Column],
    popular: &'a HashMap<Monomial, usize>,
    /// Parts that exist in every row.
    made: BTreeSet<Monomial>,
    splits: Splits,
}

impl Chooser<'_> {
    fn split(&mut self, product: &Monomial) {
        if product.degree() < 2 || self.splits.contains_key(product) {
            return;
        }
        let cheapest = splits(self.columns, product)
            .into_iter()
            .min_by(|a, b| self.cost(a).total_cmp(&self.cost(b)))
            .expect("a product of two factors has a split");
        for part in [&cheapest.0, &cheapest.1] {
            self.split(part);
            self.made.insert(part.clone());
        }
        self.splits.insert(product.clone(), cheapest);
    }

    /// What the parts cost, shared among all products that could use them.
    fn cost(&self, (a, b): &(Monomial, Monomial)) -> f64 {
        let of = |part: &Monomial| {
            if part.degree() < 2 || self.made.contains(part) {
                return 0.0;
            }
            let users = self.popular.get(part).copied().unwrap_or(0);
            (part.degree() - 1) as f64 / (users + 1) as f64
        };
        of(a) + if a == b { 0.0 } else { of(b) }
    }
}

/// Every way to write a product as one of two parts that are simpler. Validities that are not implied by other factors
/// stay together, or go with all that are implied: then the product of all validities can serve many.
fn splits(columns: &[Column], product: &Monomial) -> Vec<(Monomial, Monomial)> {
    let factors = product.values.len() + product.cells.len();
    let explicit: Vec<usize> = product.explicit().collect();
    if factors == 0 {
        // A product of validities: one more in each step, so that beginnings are shared.
        let Some((last, rest)) = explicit.split_last().filter(|(_, rest)| !rest.is_empty()) else {
            return Vec::new();
        };
        let of = |valid: &[usize]| Monomial {
            valid: valid.to_vec(),
            ..Monomial::ONE
        };
        return vec![(of(rest), of(&[*last]))];
    }
    let mut found = Vec::new();
    for mask in 0u32..1 << (factors - 1) {
        // The first factor is always in the first part: the order of the parts does not matter.
        let first = |index: usize| index == 0 || mask >> (index - 1) & 1 == 1;
        let part = |wanted: bool, valid: &[usize]| {
            let values = (product.values.iter().enumerate())
                .filter(|(index, _)| first(*index) == wanted)
                .map(|(_, &column)| column);
            let cells = (product.cells.iter().enumerate())
                .filter(|(index, _)| first(product.values.len() + index) == wanted)
                .map(|(_, &cell)| cell);
            Monomial::new(columns, values.collect(), cells.collect(), valid.to_vec())
                .expect("a part of a product that is not zero is not zero")
        };
        let choices: [(&[usize], &[usize]); 4] = [
            (&explicit, &[]),
            (&[], &explicit),
            (&product.valid, &[]),
            (&[], &product.valid),
        ];
        for (a, b) in choices {
            let parts = (part(true, a), part(false, b));
            let simpler = |part: &Monomial| *part != Monomial::ONE && part != product;
            if simpler(&parts.0) && simpler(&parts.1) && !found.contains(&parts) {
                found.push(parts);
            }
        }
    }
    found
}
