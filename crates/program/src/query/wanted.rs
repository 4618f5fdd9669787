//! What a recipient wants of the relations that queries open, and what has come of them.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use veil_job::passes::PassSpec;
use veil_job::{Audience, DataError, JobSpec};
use veil_math::Ring;
use veil_physical::{PhysicalPlan, ResultPorts};
use veil_relation::{Expr, SortKey, Value};

use super::{Answered, NamedQuery};

/// A relation that is wanted, and the pass that opens it.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) ports: ResultPorts,
    /// Rows of the relation.
    pub(super) rows: u64,
    /// The ring and the number of wires of each port, in one row of the relation.
    pub(super) wires: Vec<(Ring, u32)>,
    /// Whether the pass has one row, in which all of the relation stand one behind the other.
    pub(super) in_one: bool,
    pub(super) min_count: u32,
}

/// What hides results of two parties where a claim is false.
pub(super) fn ended(plan: &PhysicalPlan) -> Result<Vec<(usize, String)>, DataError> {
    let Some(wires) = &plan.wires else {
        return Ok(vec![]);
    };
    let job = job_of(plan, 0)?;
    let ports = job.audiences.iter().zip(&job.opened).enumerate();
    let claims = ports.filter(|(_, (to, _))| **to == Audience::Parties);
    let claims = claims.map(|(port, (_, what))| (port, what.clone()));
    let told = wires.ended.iter().map(|(_, port)| {
        let what = "what the job claims of its rows".to_owned();
        (*port, what)
    });
    Ok(claims.chain(told).collect())
}

/// What has come of a relation.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// By port: slices by their first row.
    pub(super) slices: Vec<BTreeMap<u64, (u32, Vec<u8>)>>,
    pub(super) over: bool,
}

/// The job of a pass of rows.
fn job_of(plan: &PhysicalPlan, pass: usize) -> Result<&JobSpec, DataError> {
    match plan.passes.passes.get(pass) {
        Some(PassSpec::Rows { job, .. }) => Ok(job),
        _ => Err(DataError::own(
            "the plan opens in a pass that opens nothing; this is a mistake of the program",
        )),
    }
}

impl Wanted {
    pub(super) fn new(
        plan: &PhysicalPlan,
        ports: &ResultPorts,
        query: &NamedQuery,
    ) -> Result<Self, DataError> {
        let job = job_of(plan, ports.pass)?;
        let plain = |key: &SortKey| matches!(key.expr, Expr::Column(..));
        let in_one = plan.wires.is_some();
        let own = job.circuit.outputs.get(ports.first..);
        let outputs = own.and_then(|own| own.get(..ports.ports.len()));
        let all = in_one || job.circuit.outputs.len() == ports.ports.len();
        let Some(outputs) = outputs.filter(|_| all && ports.order.iter().flatten().all(plain))
        else {
            return Err(DataError::own(
                "the plan opens other columns than it says; this is a mistake of the program",
            ));
        };
        let of_row = if in_one { ports.rows.max(1) } else { 1 };
        let outputs = outputs.iter();
        Ok(Self {
            rows: ports.rows.into(),
            wires: outputs
                .map(|output| (job.circuit.ring, output.wires.len() as u32 / of_row))
                .collect(),
            in_one,
            ports: ports.clone(),
            min_count: query.min_count,
        })
    }

    /// The values of a port, by row.
    fn values(&self, port: usize, taken: &Taken) -> Vec<u128> {
        let (ring, width) = self.wires[port];
        let mut values = Vec::with_capacity(self.rows as usize);
        for (rows, bytes) in taken.slices[port].values() {
            let wire = ring.bytes((*rows).into()) as usize;
            for row in 0..*rows as usize {
                values.push(get(ring, &bytes[..wire * width as usize], wire, row));
            }
        }
        values
    }

    pub(super) fn answer(&self, taken: &Taken) -> Answered {
        let ports = 0..self.wires.len();
        let columns: Vec<Vec<u128>> = ports.map(|port| self.values(port, taken)).collect();
        let mut rows: Vec<Vec<Value>> = Vec::new();
        let mut opened = vec![0; columns.len()];
        let mut incomplete = None;
        for row in 0..self.rows as usize {
            for (value, column) in opened.iter_mut().zip(&columns) {
                *value = column[row];
            }
            if row == 0 {
                incomplete = self.ports.incomplete(&opened);
            }
            rows.extend(self.ports.cells(&opened));
        }
        if let Some(keys) = &self.ports.order {
            rows.sort_by(|a, b| order(keys, a, b));
        }
        Answered {
            query: self.ports.step.clone(),
            fields: self.ports.fields.clone(),
            rows,
            min_count: self.min_count,
            incomplete,
        }
    }
}

/// The value of a row: its bits, each on a wire, or its element.
fn get(ring: Ring, bytes: &[u8], wire: usize, row: usize) -> u128 {
    if ring == Ring::Bits {
        let bit = |wire: &[u8]| u128::from(wire[row / 8] >> (row % 8) & 1);
        let bits = bytes.chunks_exact(wire).zip(0..u128::BITS);
        return bits.map(|(wire, at)| bit(wire) << at).sum();
    }
    let size = ring.bytes(1) as usize;
    let mut element = [0; 16];
    element[..size].copy_from_slice(&bytes[row * size..][..size]);
    u128::from_le_bytes(element)
}

/// The bits of all rows, which stood one behind the other in one row, a byte for each: as a pass of rows puts them out, each wire in all rows.
pub(super) fn in_rows(bytes: &[u8], (rows, width): (u64, u32)) -> Option<Vec<u8>> {
    let (rows, width) = (usize::try_from(rows).ok()?, width as usize);
    if bytes.len() != rows.checked_mul(width)? {
        return None;
    }
    let wire = rows.div_ceil(8);
    let mut all = vec![0; wire * width];
    for (row, bits) in bytes.chunks(width.max(1)).enumerate() {
        for (bit, value) in bits.iter().enumerate() {
            all[bit * wire + row / 8] |= (value & 1) << (row % 8);
        }
    }
    Some(all)
}

/// The order of rows: by keys, then by all columns, nulls last.
fn order(keys: &[SortKey], a: &[Value], b: &[Value]) -> Ordering {
    let by = |key: &SortKey| {
        let Expr::Column(column, _) = key.expr else {
            return Ordering::Equal;
        };
        let (a, b) = (a[column.index()], b[column.index()]);
        let nulls = if key.nulls_first {
            (b == Value::Null).cmp(&(a == Value::Null))
        } else {
            (a == Value::Null).cmp(&(b == Value::Null))
        };
        let values = if key.descending { b.cmp(&a) } else { a.cmp(&b) };
        nulls.then(if a == Value::Null || b == Value::Null {
            Ordering::Equal
        } else {
            values
        })
    };
    let keyed = keys.iter().map(by).find(|order| order.is_ne());
    keyed.unwrap_or_else(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_before_all_columns_and_nulls_where_they_are_said() {
        let key = |column, descending, nulls_first| SortKey {
            expr: Expr::column(column),
            descending,
            nulls_first,
        };
        let (one, two, null) = (Value::Number(1), Value::Number(2), Value::Null);
        let sorted = |keys: &[SortKey]| {
            let mut rows = vec![[two, one], [null, one], [one, two], [one, null], [one, one]];
            rows.sort_by(|a, b| order(keys, a, b));
            rows
        };
        assert_eq!(
            sorted(&[]),
            [[one, one], [one, two], [one, null], [two, one], [null, one]]
        );
        assert_eq!(
            sorted(&[key(0, true, true)]),
            [[null, one], [two, one], [one, one], [one, two], [one, null]]
        );
        assert_eq!(
            sorted(&[key(0, true, false), key(1, true, true)]),
            [[two, one], [one, null], [one, two], [one, one], [null, one]]
        );
        assert_eq!(
            sorted(&[key(1, false, true)]),
            [[one, null], [one, one], [two, one], [null, one], [one, two]]
        );
    }

    #[test]
    fn bits_and_elements_are_those_of_a_row() {
        // Two wires of nine rows: 3 in row 8, 2 in row 0, 1 in row 1.
        let bits = [0b10, 1, 0b01, 1];
        let values: Vec<u128> = (0..9).map(|row| get(Ring::Bits, &bits, 2, row)).collect();
        assert_eq!(values, [2, 1, 0, 0, 0, 0, 0, 0, 3]);
        let elements = [5, 0, 0, 0, 6, 1, 0, 0];
        assert_eq!(get(Ring::Z32, &elements, 8, 1), 262);
    }
}
