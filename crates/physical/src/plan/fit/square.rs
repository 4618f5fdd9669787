//! Square matrices with a row for each term of a model.

use veil_job::passes::Take;
use veil_operators::{Shared, Sharing};

use super::{Out, PhysicalError, Planner, Ports, WIDE, diagonal, everywhere, takes};

/// A square matrix with a row for each term.
#[derive(Clone)]
pub(super) struct Square {
    /// Its columns, one behind the other; of a product each by itself.
    pub(super) of: Vec<Shared>,
    pub(super) terms: usize,
}

impl Square {
    /// One whose columns stand one behind the other.
    pub(super) fn whole(of: Shared, terms: usize) -> Self {
        let of = vec![of];
        Square { of, terms }
    }

    /// All elements, in terms² rows.
    pub(super) fn elements(&self) -> Take {
        Take::Rows {
            of: self.of.iter().map(Shared::column).collect(),
            first: 0,
            step: 1,
        }
    }

    /// The elements on the diagonal.
    pub(super) fn diagonal(&self) -> Take {
        Take::Rows {
            of: self.of.iter().map(Shared::column).collect(),
            first: 0,
            step: self.terms as i32 + 1,
        }
    }

    /// The columns of the matrix.
    pub(super) fn columns(&self) -> Vec<Take> {
        match &self.of[..] {
            [all] => (0..self.terms)
                .map(|column| all.rows_from((column * self.terms) as i64))
                .collect(),
            columns => takes(columns).collect(),
        }
    }
}

/// The elements of a column of terms, in the rows of all elements of a square: those of their rows.
pub(super) fn down(of: Shared, terms: usize) -> Take {
    Take::Rows {
        of: vec![of.column(); terms],
        first: 0,
        step: 1,
    }
}

impl Planner<'_> {
    /// In the rows of all elements of a square, whether one is on the diagonal.
    pub(super) fn diagonal_of(&mut self, terms: usize) -> Result<Shared, PhysicalError> {
        let rows = terms as u32;
        let columns = self.matrix_pass(WIDE, rows, |ports| {
            let bits = diagonal(ports, terms);
            Ok(bits.into_iter().map(|bit| Out::Bits(vec![bit])).collect())
        })?;
        let square = Square { of: columns, terms };
        Ok(self
            .b
            .make(square.elements(), rows * rows, Sharing::Bits(1)))
    }

    /// The elements of a column of terms, in the rows of all elements of a square: those of their columns.
    pub(super) fn across(&mut self, of: Shared, terms: usize) -> Square {
        let columns = (0..terms).map(|row| {
            let of_column = everywhere(of, row);
            self.b.make(of_column, terms as u32, of.sharing())
        });
        Square {
            of: columns.collect(),
            terms,
        }
    }

    /// A pass over all elements of a square, for another one.
    pub(super) fn elementwise(
        &mut self,
        terms: usize,
        with: impl FnOnce(&mut Ports) -> Result<Vec<Out>, PhysicalError>,
    ) -> Result<Vec<Square>, PhysicalError> {
        let made = self.matrix_pass(WIDE, (terms * terms) as u32, with)?;
        let squares = made.into_iter().map(|of| Square::whole(of, terms));
        Ok(squares.collect())
    }

    /// The product of two squares.
    pub(super) fn squares_product(&mut self, left: &Square, right: &Square) -> Square {
        let (of, terms) = ((WIDE, false), left.terms);
        let product = self
            .b
            .product_of(terms as u32, of, left.columns(), right.columns());
        Square { of: product, terms }
    }

    /// The product of a square and a column.
    pub(super) fn column_product(&mut self, left: &Square, right: Shared) -> Shared {
        let of = (WIDE, false);
        self.b
            .product_of(left.terms as u32, of, left.columns(), vec![right.take()])[0]
    }
}
