//! Products of matrices, whose columns are columns of a relation.

use veil_job::passes::{PassSpec, Take};
use veil_math::Ring;

use crate::builder::{Builder, Shared, Sharing};
use crate::moves::rows_of;

impl Builder {
    /// The product of two matrices: left has n rows, right a row for each column of left, and the product n rows and a column for each of right.
    ///
    /// # Panics
    /// If a matrix has no columns, columns of one matrix differ in their rows, elements are no integers of one ring, or right has other rows.
    pub fn product(&mut self, left: &[Shared], right: &[Shared]) -> Vec<Shared> {
        assert_eq!(
            rows_of(right) as usize,
            left.len(),
            "the right matrix has a row for each column of the left one"
        );
        self.multiplied(left, right, false)
    }

    /// The product of a transposed matrix and another one of as many rows, all of which are added up: the product has a row for each column of left, and a column
    /// for each of right. One element of it is sent, however many rows there are.
    ///
    /// # Panics
    /// If a matrix has no columns, columns differ in their rows, or elements are no integers of one ring.
    pub fn transposed_product(&mut self, left: &[Shared], right: &[Shared]) -> Vec<Shared> {
        assert_eq!(
            rows_of(left),
            rows_of(right),
            "both matrices have as many rows"
        );
        self.multiplied(left, right, true)
    }

    fn multiplied(&mut self, left: &[Shared], right: &[Shared], transposed: bool) -> Vec<Shared> {
        let ring = match left[0].sharing {
            Sharing::Ring(ring) => ring,
            Sharing::Bits(_) => panic!("matrices are of integers"),
        };
        let all = left.iter().chain(right);
        let same = all.clone().all(|of| of.sharing == Sharing::Ring(ring));
        assert!(same, "the elements of both matrices are of one ring");
        let takes = |of: &[Shared]| of.iter().map(Shared::take).collect();
        let (left_takes, right_takes) = (takes(left), takes(right));
        self.product_of(rows_of(left), (ring, transposed), left_takes, right_takes)
    }

    /// The same of what is taken from columns: elements of other rows, for one, as of the windows of a convolution, or the public 1 of an intercept
    /// ([`Take::Sums`] of no column). The left matrix has so many rows.
    ///
    /// # Panics
    /// If a matrix has no columns.
    pub fn product_of(
        &mut self,
        rows: u32,
        (ring, transposed): (Ring, bool),
        left: Vec<Take>,
        right: Vec<Take>,
    ) -> Vec<Shared> {
        assert!(
            !left.is_empty() && !right.is_empty(),
            "a matrix has columns"
        );
        let product = right.iter().map(|_| Shared {
            column: self.column(),
            rows: if transposed { left.len() as u32 } else { rows },
            sharing: Sharing::Ring(ring),
        });
        let product: Vec<Shared> = product.collect();
        let rotation = self.rotation();
        self.passes.push(PassSpec::Product {
            rows,
            ring,
            transposed,
            rotation,
            left,
            right,
            leaves: product.iter().map(|of| Some(of.column)).collect(),
        });
        product
    }
}
