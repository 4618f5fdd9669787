//! Products of cells of one row, to be summed over the rows.

use num_bigint::BigInt;
use num_traits::One;

use super::Column;

/// A product of values, of membership bits and of validity bits of one row, in a normal form in which equal products
/// are equal.
///
/// A missing number has value 0 and validity 0, a missing category has all membership bits 0. So the validity of a
/// column is implied wherever its value or one of its membership bits is a factor; bits are idempotent; two different
/// memberships of one column exclude each other. `valid` always lists what is implied too. A column that refuses
/// missing values is valid in every row, and never listed: its validity is the public constant 1.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Monomial {
    /// Number columns, sorted, repeats allowed.
    pub(super) values: Vec<usize>,
    /// Category columns and one of their values each, sorted.
    pub(super) cells: Vec<(usize, u8)>,
    /// Columns that must not be missing, sorted.
    pub(super) valid: Vec<usize>,
}

impl Monomial {
    /// The product of nothing: 1 in every row.
    pub(super) const ONE: Self = Self {
        values: Vec::new(),
        cells: Vec::new(),
        valid: Vec::new(),
    };

    /// Makes the normal form; nothing if the product is 0 in every row.
    pub(super) fn new(
        columns: &[Column],
        mut values: Vec<usize>,
        mut cells: Vec<(usize, u8)>,
        mut valid: Vec<usize>,
    ) -> Option<Self> {
        values.sort_unstable();
        cells.sort_unstable();
        cells.dedup();
        if cells.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return None;
        }
        valid.extend(
            values
                .iter()
                .copied()
                .chain(cells.iter().map(|cell| cell.0)),
        );
        valid.retain(|&column| columns[column].may_be_missing());
        valid.sort_unstable();
        valid.dedup();
        Some(Self {
            values,
            cells,
            valid,
        })
    }

    /// Validities that no other factor implies.
    pub(super) fn explicit(&self) -> impl Iterator<Item = usize> {
        let implied = |column: usize| {
            self.values.contains(&column) || self.cells.iter().any(|cell| cell.0 == column)
        };
        self.valid
            .iter()
            .copied()
            .filter(move |&column| !implied(column))
    }

    /// Number of factors that are not implied by others.
    pub(super) fn degree(&self) -> usize {
        self.values.len() + self.cells.len() + self.explicit().count()
    }

    /// Bits that the sum of this product over `rows` rows can need, sign included.
    pub(super) fn bits(&self, columns: &[Column], rows: u64) -> u64 {
        let (low, high) = self.bounds(columns);
        let (low, high) = (low * rows, high * rows);
        // -2^63 would fit 64 bits, but the bound is kept symmetric: a value and its negative always both fit.
        low.bits().max(high.bits()) + 1
    }

    /// The least and the largest sum of this product over `rows` rows, which need 128 bits at most.
    pub(super) fn range(&self, columns: &[Column], rows: u64) -> (i128, i128) {
        let (low, high) = self.bounds(columns);
        let fits = |end: BigInt| (end * rows).try_into().expect("sums that fit were chosen");
        (fits(low), fits(high))
    }

    /// The least and the largest value in a row.
    fn bounds(&self, columns: &[Column]) -> (BigInt, BigInt) {
        // Any other factor than a value can be 0, and so can the value of a missing cell.
        let certain = self.cells.is_empty() && self.valid.is_empty();
        let (mut low, mut high) = (BigInt::one(), BigInt::one());
        let mut at = 0;
        while let Some(&column) = self.values.get(at) {
            let power = self.values[at..]
                .iter()
                .take_while(|&&other| other == column)
                .count();
            let (min, max) = columns[column]
                .range()
                .expect("only numbers and dates have values");
            let (below, above) = power_range(min, max, power as u32);
            let corners = [&low * &below, &low * &above, &high * &below, &high * &above];
            let [a, b, c, d] = corners;
            low = a.clone().min(b.clone()).min(c.clone()).min(d.clone());
            high = a.max(b).max(c).max(d);
            at += power;
        }
        if !certain {
            low = low.min(BigInt::ZERO);
            high = high.max(BigInt::ZERO);
        }
        (low, high)
    }

    /// Digits after the point of the product.
    pub(super) fn scale(&self, columns: &[Column]) -> u8 {
        self.values
            .iter()
            .map(|&column| columns[column].scale())
            .sum()
    }

    /// What the sum of this product over all rows is, in words.
    pub(super) fn sentence(&self, columns: &[Column]) -> String {
        let name = |column: usize| columns[column].name.as_str();
        let mut text = if self.values.is_empty() {
            "number of rows".to_owned()
        } else {
            let factor = |&column: &usize| {
                let days = if columns[column].is_date() {
                    "day number of "
                } else {
                    ""
                };
                format!("{days}{}", name(column))
            };
            let factors: Vec<String> = self.values.iter().map(factor).collect();
            format!("sum of {}", factors.join(" × "))
        };
        text.push_str(&self.rows(columns));
        text
    }

    /// Over which rows, as the end of a sentence.
    pub(super) fn rows(&self, columns: &[Column]) -> String {
        let name = |column: usize| columns[column].name.as_str();
        let member = |&(column, value): &(usize, u8)| {
            format!(
                "{} = {}",
                name(column),
                columns[column].categories()[usize::from(value)]
            )
        };
        let mut conditions: Vec<String> = self.cells.iter().map(member).collect();
        let present = |column: &&usize| !self.cells.iter().any(|cell| cell.0 == **column);
        let present: Vec<&str> = self
            .valid
            .iter()
            .filter(present)
            .map(|&column| name(column))
            .collect();
        match present.split_last() {
            None => {}
            Some((one, [])) => conditions.push(format!("{one} is present")),
            Some((last, others)) => {
                conditions.push(format!("{} and {last} are present", others.join(", ")));
            }
        }
        if conditions.is_empty() {
            return " over all rows".into();
        }
        let rows = if self.values.is_empty() {
            " where "
        } else {
            " over rows where "
        };
        rows.to_owned() + &conditions.join(" and ")
    }
}

/// The range of `x^power` for `x` from `min` to `max`.
fn power_range(min: i64, max: i64, power: u32) -> (BigInt, BigInt) {
    let (a, b) = (BigInt::from(min).pow(power), BigInt::from(max).pow(power));
    if power.is_multiple_of(2) && min < 0 && max > 0 {
        return (BigInt::ZERO, a.max(b));
    }
    (a.clone().min(b.clone()), a.max(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{ColumnKind, Marks, Missing};

    fn columns() -> Vec<Column> {
        let number = |name: &str, min, max, missing| Column {
            name: name.into(),
            kind: ColumnKind::Number {
                scale: 0,
                min,
                max,
                unit: None,
                marks: Marks::default(),
            },
            missing,
        };
        vec![
            number("pay", 0, 100, Missing::DropPair),
            number("change", -3, 2, Missing::Refuse),
            Column {
                name: "gender".into(),
                kind: ColumnKind::Category(vec!["f".into(), "m".into()]),
                missing: Missing::DropPair,
            },
        ]
    }

    #[test]
    fn equal_products_are_equal() {
        let columns = columns();
        let new = |values, cells, valid| Monomial::new(&columns, values, cells, valid);
        assert_eq!(
            new(vec![0, 1], vec![], vec![]),
            new(vec![1, 0], vec![], vec![0, 0, 1])
        );
        assert_eq!(
            new(vec![], vec![(2, 1), (2, 1)], vec![2]),
            new(vec![], vec![(2, 1)], vec![])
        );
        assert_eq!(new(vec![], vec![], vec![1]), Some(Monomial::ONE));
        assert_ne!(new(vec![1], vec![], vec![]), new(vec![1], vec![], vec![0]));
        assert_eq!(new(vec![0], vec![(2, 0), (2, 1)], vec![]), None);
    }

    #[test]
    fn bounds_are_those_of_the_extreme_rows() {
        let columns = columns();
        let bits = |values, cells, rows| {
            Monomial::new(&columns, values, cells, vec![])
                .expect("not zero")
                .bits(&columns, rows)
        };
        assert_eq!(bits(vec![0], vec![], 1), 8); // 100
        assert_eq!(bits(vec![1], vec![], 1), 3); // -3
        assert_eq!(bits(vec![1, 1], vec![], 1), 5); // 9
        assert_eq!(bits(vec![0, 1], vec![], 1000), 20); // -300000
        assert_eq!(bits(vec![], vec![(2, 0)], 1 << 40), 42);
        assert_eq!(bits(vec![1], vec![(2, 0)], 7), 6); // -21
    }

    #[test]
    fn sentences_say_which_rows() {
        let columns = columns();
        let text = |values, cells, valid| {
            Monomial::new(&columns, values, cells, valid)
                .expect("not zero")
                .sentence(&columns)
        };
        assert_eq!(text(vec![1], vec![], vec![]), "sum of change over all rows");
        assert_eq!(
            text(vec![], vec![(2, 0)], vec![]),
            "number of rows where gender = f"
        );
        assert_eq!(
            text(vec![0, 0], vec![(2, 1)], vec![]),
            "sum of pay × pay over rows where gender = m and pay is present"
        );
    }
}
