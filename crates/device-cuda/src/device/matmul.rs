//! Products of matrices: what kernels/device/matmul.cu reads of them.

use veil_device::{ColumnType, Command, Fault, MatMul, Span};
use veil_math::Ring;

use super::program::form;
use super::queue::{Queue, number};
use super::unsupported;
use crate::kernels::MATMUL;

/// Rows and columns of a tile, whose threads are those of a block.
const TILE: [u64; 2] = [32, 8];
/// Components of an element, and draws, at most.
const COMPONENTS: usize = 3;
const DRAWS: usize = 6;

impl Queue<'_> {
    pub(super) fn matmul(&mut self, of: MatMul, command: &Command) -> Result<(), Fault> {
        if of.form.ring == Ring::Z32 {
            return Err(unsupported("products of matrices over Z_2^32"));
        }
        let rows = self.memory.frame.rows;
        let (parts, columns) = of.shape(command);
        let (left, all) = (of.left as usize, u64::from(rows));
        let [height, inner] = if of.transposed {
            [u64::from(of.left), all]
        } else {
            [all, u64::from(of.left)]
        };
        let to = self.item(command.dst[0]);
        let mut call = vec![
            height,
            columns as u64,
            inner,
            number(of.form.ring),
            u64::from(of.transposed),
            parts as u64,
            self.stride(to),
            u64::from(matches!(to, ColumnType::One(_))),
        ];
        call.extend(form(of.form)?);
        let mut drawn = [[0; 3]; DRAWS];
        for (draw, prf_call) in drawn.iter_mut().zip(&command.calls) {
            *draw = self.prf_call(*prf_call)?;
        }
        call.extend(drawn.as_flattened());
        // A column of elements that all rows share begins so many bytes behind the one before.
        let item = of.form.ring.bytes(1) * u64::from(of.left);
        let at = |span: Span| self.memory.at(span);
        let (of_left, of_right) = command.src.split_at(left * parts);
        call.extend(of_left.iter().map(|span| at(*span)));
        if of.transposed {
            call.extend(of_right.iter().map(|span| at(*span)));
        } else {
            let columns = 0..columns as u64;
            call.extend(
                columns.flat_map(|j| of_right.iter().map(move |span| at(*span) + j * item)),
            );
        }
        let place = |k: usize, j: usize| {
            if of.transposed {
                at(command.dst[k]) + j as u64 * item
            } else {
                at(command.dst[k * columns + j])
            }
        };
        let mut next = 0;
        let mut given = |is: bool, call: &mut Vec<u64>| {
            call.extend((0..columns).map(|j| if is { place(next, j) } else { u64::MAX }));
            next += usize::from(is);
        };
        for part in 0..COMPONENTS {
            given(of.form.writes() >> part & 1 == 1, &mut call);
        }
        for cross in 0..COMPONENTS {
            let is = cross < of.form.crosses.len() && !of.form.is_component(cross);
            given(is, &mut call);
        }
        let tiles = height.div_ceil(TILE[0]) * (columns as u64).div_ceil(TILE[1]);
        self.drawing(&MATMUL, tiles * TILE[0] * TILE[1], &call);
        Ok(())
    }
}
