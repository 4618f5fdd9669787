//! Items of stock on their way between a workspace and the party's disk.

use veil_device::Fault;
use veil_job::Cells;
use veil_math::Ring;
use veil_protocol::Take;
use veil_session::Secret;

use super::Worker;
use crate::abort::Abort;
use crate::run::Run;
use crate::setup::Keys;

impl Worker {
    /// A run that makes stock has its offset.
    pub(super) fn begin_stock(&mut self, keys: &Keys) -> Result<(), Abort> {
        let made = self.protocol.stock().filter(|stock| stock.makes);
        if let (Some(stock), Some(makes)) = (made, &self.data.makes) {
            let Some(number) = stock.offset else {
                return Ok(makes.begin(&keys.session, &Secret::new([0; 16]))?);
            };
            let mut secrets = keys.secrets.iter();
            let offset = secrets.find(|(id, _)| *id == number);
            let (_, offset) = offset.ok_or(Fault::Unknown("the offset of the stock"))?;
            makes.begin(&keys.session, offset)?;
        }
        Ok(())
    }

    /// Puts cells into the workspace of a run.
    pub(super) fn take_stock(&mut self, run: &Run, take: &Take) -> Result<(), Abort> {
        let stock = self.data.stock.clone();
        let stock = stock.expect("checked when the worker was made");
        let (device, workspace) = (&mut self.device, run.workspace);
        if let Some(ones) = take.ones {
            let bits = device.map(workspace, ones)?;
            set(bits, run.chunk.frame.rows);
        }
        let mut done = Ok(());
        stock.take(take.first, take.cells, &mut |at, cells: &Cells<'_>| {
            for put in &take.into {
                let from = cells[usize::from(put.field)];
                match device.map(workspace, put.span) {
                    Ok(into) => {
                        let first = 16 * (put.at + at) as usize;
                        let rest = into.get_mut(first..).unwrap_or_default();
                        let count = rest.len().min(from.len());
                        rest[..count].copy_from_slice(&from[..count]);
                    }
                    Err(fault) => done = Err(fault),
                }
            }
        })?;
        Ok(done?)
    }

    /// Gives the cells that a chunk has made to the party's store.
    pub(super) fn put_stock(&self, run: &Run) -> Result<(), Abort> {
        let spans = &self.protocol.spans().stock;
        let Some(makes) = self.data.makes.as_ref().filter(|_| !spans.is_empty()) else {
            return Ok(());
        };
        let fields = spans.iter();
        let fields = fields.map(|span| self.device.view(run.workspace, *span));
        let cells: Vec<&[u8]> = fields.collect::<Result<_, _>>()?;
        let of_chunk = cells[0].len() as u64 / 16;
        let first = u64::from(run.chunk.frame.chunk - 1) * of_chunk;
        Ok(makes.put(first, &cells)?)
    }

    /// A check has failed: nothing under this offset is used again.
    pub(super) fn burn_stock(&self) {
        if let Some(stock) = &self.data.stock {
            stock.burn();
        }
        if let Some(makes) = &self.data.makes {
            makes.fail();
        }
    }
}

/// Sets the bits of all rows in columns of bits, and no bit behind them.
fn set(columns: &mut [u8], rows: u32) {
    let of_column = Ring::Bits.bytes(rows.into()) as usize;
    columns.fill(0xff);
    let beyond = rows % 8;
    for column in columns.chunks_exact_mut(of_column) {
        if let Some(last) = column.last_mut().filter(|_| beyond > 0) {
            *last = (1 << beyond) - 1;
        }
    }
}
