//! A whole job on a [`Net`]: what an engine does, in a dozen steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use veil_circuit::Per;
use veil_job::Holder;
use veil_math::Ring;
use veil_protocol::{Plan, Task, seed_digest};
use veil_session::{Peer, Secret};

use super::{Mismatch, Net, Node, SESSION};

/// Clear values of a job: of each block `[row][port][wire]`. A value per job is the same in every row.
pub type Values = Vec<Vec<Vec<Vec<u128>>>>;

/// What a participant learns: values `[row][wire]` by port, over all blocks; one row of sums.
pub type Results = BTreeMap<usize, Vec<Vec<u128>>>;

impl Net {
    /// Runs the whole job, as an engine does; what each participant learns, in the order of the nodes.
    pub fn job(&mut self, values: &Values) -> Result<Vec<Results>, Mismatch> {
        let plan = Arc::clone(&self.plan);
        let ring = plan.ring;
        let mut results = vec![Results::new(); self.nodes.len()];
        let job_wide = self.set_up(values)?;
        let mut sums: Vec<Vec<Vec<u128>>> = vec![Vec::new(); self.nodes.len()];
        for index in 0.. {
            let Some(chunk) = plan.chunk(index) else {
                break;
            };
            let (block, first, rows) = (
                chunk.block as usize,
                chunk.first as usize,
                chunk.frame.rows as usize,
            );
            self.open(chunk.frame);
            for (node, job_wide) in self.nodes.iter_mut().zip(&job_wide) {
                let spans = node.protocol.spans().clone();
                spans
                    .job_wide
                    .iter()
                    .zip(job_wide)
                    .for_each(|(span, bytes)| node.write(*span, bytes));
                for (port, span) in spans.inputs {
                    if holds(&plan, node.me, block, port) {
                        let row = |wire: usize| {
                            values[block][first..first + rows]
                                .iter()
                                .map(move |r| r[port][wire])
                        };
                        let columns: Vec<u8> = (0..span.count as usize)
                            .flat_map(|w| pack(ring, &row(w).collect::<Vec<_>>()))
                            .collect();
                        node.write(span, &columns);
                    }
                }
            }
            self.run(|_| Task::Inputs { block: chunk.block })?;
            self.run(|_| Task::Layers)?;
            for (node, sums) in self.nodes.iter().zip(&mut sums) {
                let spans = &node.protocol.spans().sums;
                sums.resize(spans.len(), Vec::new());
                for (span, sum) in spans.iter().zip(sums) {
                    let more = unpack(ring, &node.view(*span), 1, span.count as usize);
                    sum.resize(more.len(), 0);
                    sum.iter_mut()
                        .zip(more)
                        .for_each(|(s, m)| *s = ring.add(*s, m[0]));
                }
            }
            if plan.opens_rows() {
                self.run(|_| Task::Agree)?;
                self.run(|n| Task::Open(n.cleared()))?;
                for (node, results) in self.nodes.iter().zip(&mut results) {
                    for &(port, span) in &node.protocol.spans().opened {
                        let columns = unpack(ring, &node.view(span), rows, span.count as usize);
                        let row = |t: usize| columns.iter().map(|column| column[t]).collect();
                        results.entry(port).or_default().extend((0..rows).map(row));
                    }
                }
            }
            self.close();
        }
        if plan.sums > 0 {
            self.totals(&sums, &mut results)?;
        }
        Ok(results)
    }

    /// Shares what all rows use: the shares, by participant and span.
    fn set_up(&mut self, values: &Values) -> Result<Vec<Vec<Vec<u8>>>, Mismatch> {
        let plan = Arc::clone(&self.plan);
        self.open_job(plan.set_up_frame());
        for node in &mut self.nodes {
            let spans = node.protocol.spans().clone();
            if let Some(list) = spans.list {
                node.write(list, &[7; 32]);
            }
            for (port, span) in spans.job_inputs {
                let elements: Vec<u8> = values[0][0][port]
                    .iter()
                    .flat_map(|v| pack(plan.ring, std::slice::from_ref(v)))
                    .collect();
                node.write(span, &elements);
            }
        }
        self.write_seed_digests();
        self.run(|_| Task::SetUp)?;
        let job_wide = |node: &Node| {
            node.protocol
                .spans()
                .job_wide
                .iter()
                .map(|s| node.view(*s))
                .collect()
        };
        let job_wide = self.nodes.iter().map(job_wide).collect();
        self.close();
        Ok(job_wide)
    }

    fn write_seed_digests(&mut self) {
        let peers: Vec<Peer> = self.nodes.iter().map(|node| node.me).collect();
        for node in &mut self.nodes {
            for by in &peers {
                for seed in node.protocol.dealt(*by) {
                    if let Some(span) = seed.digest {
                        let key = Secret::new(self.keys.dealt(*by, seed.index));
                        node.write(span, &seed_digest(&SESSION, *by, seed.index, &key));
                    }
                }
            }
        }
    }

    fn totals(&mut self, sums: &[Vec<Vec<u128>>], results: &mut [Results]) -> Result<(), Mismatch> {
        let ring = self.plan.ring;
        self.open_job(self.plan.totals_frame());
        for (node, sums) in self.nodes.iter_mut().zip(sums) {
            for (span, sum) in node.protocol.spans().sums.clone().into_iter().zip(sums) {
                node.write(span, &pack(ring, sum));
            }
        }
        self.run(|_| Task::Agree)?;
        self.run(|n| Task::OpenTotals(n.cleared()))?;
        for (node, results) in self.nodes.iter().zip(results) {
            for &(port, span) in &node.protocol.spans().opened_sums {
                let elements = unpack(ring, &node.view(span), 1, span.count as usize);
                results.insert(port, vec![elements.into_iter().map(|e| e[0]).collect()]);
            }
        }
        self.close();
        Ok(())
    }
}

fn holds(plan: &Plan, me: Peer, block: usize, port: usize) -> bool {
    plan.inputs[port].per == Per::Row
        && match plan.job.blocks[block].holders[port] {
            Holder::Party(p) => me == Peer::Party(p),
            Holder::Owner(o) => me == Peer::Owner(o),
            Holder::Stored | Holder::Column => false,
        }
}

/// The packed column of `values`.
pub fn pack(ring: Ring, values: &[u128]) -> Vec<u8> {
    let mut bytes = vec![0; ring.bytes(values.len() as u64) as usize];
    for (t, value) in values.iter().enumerate() {
        match ring {
            Ring::Bits => bytes[t / 8] |= ((value & 1) as u8) << (t % 8),
            Ring::Z32 => bytes[t * 4..][..4].copy_from_slice(&value.to_le_bytes()[..4]),
            Ring::Z64 => bytes[t * 8..][..8].copy_from_slice(&value.to_le_bytes()[..8]),
            Ring::Z128 => bytes[t * 16..][..16].copy_from_slice(&value.to_le_bytes()),
        }
    }
    bytes
}

/// The elements of `count` packed columns of `rows` rows each; padding bits are dropped.
pub fn unpack(ring: Ring, bytes: &[u8], rows: usize, count: usize) -> Vec<Vec<u128>> {
    let column = ring.bytes(rows as u64) as usize;
    assert_eq!(bytes.len(), column * count, "columns of {rows} rows");
    let element = |column: &[u8], t: usize| match ring {
        Ring::Bits => u128::from(column[t / 8] >> (t % 8) & 1),
        Ring::Z32 => u32::from_le_bytes(column[t * 4..][..4].try_into().expect("4 bytes")).into(),
        Ring::Z64 => u64::from_le_bytes(column[t * 8..][..8].try_into().expect("8 bytes")).into(),
        Ring::Z128 => u128::from_le_bytes(column[t * 16..][..16].try_into().expect("16 bytes")),
    };
    bytes
        .chunks(column)
        .map(|c| (0..rows).map(|t| element(c, t)).collect())
        .collect()
}
