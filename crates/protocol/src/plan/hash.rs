//! SHA-256 over a canonical encoding: integers little-endian, strings and lists preceded by their length.

use sha2::{Digest, Sha256};
use veil_device::{Instr, Program, Src};
use veil_program::{Audience, Holder, Schedule, Security};
use veil_session::PlanHash;

use super::{Conversion, ConversionPlan, Plan};
use crate::choose::Choice;

/// Changes whenever frames, counters or rounds change their meaning: peers of different releases refuse each other.
const VERSION: &str = "veilworks plan 2";

struct Encoder(Sha256);

impl Encoder {
    fn int(&mut self, value: u64) {
        self.0.update(value.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.int(text.len() as u64);
        self.0.update(text);
    }

    fn texts(&mut self, list: &[String]) {
        self.int(list.len() as u64);
        for text in list {
            self.text(text);
        }
    }

    /// Products in order: number, operands, slot of the result.
    fn products(&mut self, program: &Program) {
        for instr in &program.code {
            if let Instr::Product { pairs, out, index } = instr {
                self.int(u64::from(*index));
                self.int(u64::from(*out));
                for (a, b) in &program.pairs[pairs.start as usize..pairs.end as usize] {
                    for src in [a, b] {
                        let (kind, number) = match *src {
                            Src::Slot(slot) => (0, slot),
                            Src::Temp(temp) => (1, temp),
                            Src::Uniform(uniform) => (2, uniform),
                        };
                        self.int(kind << 32 | u64::from(number));
                    }
                }
            }
        }
    }
}

/// Whether the products of a plan are proved in batches.
fn proves(plan: &Plan) -> bool {
    Choice::of(plan.job.security).is_some_and(Choice::proves)
}

pub(super) fn of(plan: &Plan) -> PlanHash {
    let job = &plan.job;
    let mut e = Encoder(Sha256::new());
    e.text(VERSION);
    e.text(&job.name);
    e.texts(&job.owners);
    e.texts(&job.parties);
    e.texts(&job.recipients);
    e.0.update(job.circuit.canonical_hash());
    e.int(job.blocks.len() as u64);
    for block in &job.blocks {
        e.text(&block.name);
        e.int(block.rows);
        e.int(block.holders.len() as u64);
        for holder in &block.holders {
            match holder {
                Holder::Party(p) => e.int(p.index() as u64),
                Holder::Owner(o) => e.int(0x100 + u64::from(*o)),
                Holder::Stored => e.int(4),
            }
        }
    }
    e.int(job.audiences.len() as u64);
    for audience in &job.audiences {
        match audience {
            Audience::Party(p) => e.int(p.index() as u64),
            Audience::Parties => e.int(3),
            Audience::Recipient(r) => e.int(0x100 + u64::from(*r)),
            Audience::Stored => e.int(4),
        }
    }
    e.texts(&job.opened);
    // The schedule follows from the circuit and these; its shape is hashed too, so that two planners that differ are found out.
    e.int(u64::from(plan.lanes));
    e.int(u64::from(plan.chunk_rows));
    // Those of the rows, or of the set-up or the totals if these have more.
    let [job_slots, job_bit_slots] = plan.job_slots;
    e.int(u64::from(plan.slots.max(job_slots)));
    e.int(u64::from(plan.uniforms));
    e.int(plan.layers.len() as u64);
    for layer in plan.all_layers() {
        e.int(u64::from(layer.products));
        e.int(u64::from(layer.sums));
        e.int(plan.programs[layer.program].code.len() as u64);
    }
    // What not all jobs have, each under its name; everything before has its length, so that no two plans read alike.
    for (k, block) in job.blocks.iter().enumerate() {
        if let Some(dataset) = &block.stored {
            e.text("stored");
            e.int(k as u64);
            e.text(dataset);
        }
        if let Some(every) = block.aligned {
            e.text("aligned, two judges");
            e.int(k as u64);
            e.int(u64::from(every));
        }
    }
    if job.security != Security::among(job.parties.len()) {
        e.text("security");
        e.text(&job.security.to_string());
    }
    if plan.is_mixed() {
        e.text("bits beside integers");
        e.int(u64::from(plan.bit_slots.max(job_bit_slots)));
        for layer in plan.all_layers() {
            e.int(layer.conversions.len() as u64);
            let bits = layer.bits.as_ref();
            e.int(bits.map_or(0, |bits| u64::from(bits.products)));
            e.int(bits.map_or(0, |bits| plan.programs[bits.program].code.len() as u64));
        }
    }
    if plan.is_random() {
        e.text("random values, and openings behind them");
        for layer in plan.all_layers() {
            let draws = |c: &&ConversionPlan| matches!(c.how, Conversion::Random { .. });
            let draws = layer.conversions.iter().filter(draws);
            e.int(draws.map(|c| u64::from(c.count)).sum());
            layer
                .opened
                .iter()
                .for_each(|opened| e.int(opened.count.into()));
        }
    }
    if plan.has_codes() {
        e.text("codes of integers, weights of nobody");
        e.int(plan.coded_uniforms.of.len() as u64);
        for layer in plan.all_layers() {
            e.int(u64::from(layer.coded.products));
            e.int(u64::from(layer.coded.sums));
            e.int(layer.coded.authenticated.len() as u64);
        }
    }
    if proves(plan) {
        e.text("proved, challenges echoed");
        e.int(super::PROVED_GATES);
    }
    if let Schedule::List(rows) = job.security.schedule {
        // Which product has which number is what the planner finds: every one counts.
        e.text("list");
        e.int(u64::from(rows.count()));
        for layer in plan.all_layers() {
            e.products(&plan.programs[layer.program]);
        }
    }
    if let Some(cycles) = &plan.cycles {
        e.text("cycles");
        e.int(cycles.count);
        e.int(cycles.window);
        e.int(cycles.counters);
        let together = match Choice::of(plan.job.security) {
            Some(choice) if choice.garbles() => crate::yao::cycles_together(plan),
            _ => 1,
        };
        if together > 1 {
            e.text("cycles of a message");
            e.int(u64::from(together));
        }
    }
    if let Some(Choice::Cut) = Choice::of(job.security) {
        e.text("cut-and-choose");
        for size in crate::cut::sizes(plan) {
            e.int(size);
        }
        e.0.update(crate::cut::ENCODING);
    }
    if let Some(totals) = &job.totals {
        e.text("totals");
        e.0.update(totals.canonical_hash());
        e.int(plan.all_layers().count() as u64);
    }
    if !job.schema.is_empty() {
        e.text("schema");
        e.text(&job.schema);
    }
    PlanHash(e.0.finalize().into())
}
