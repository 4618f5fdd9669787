//! SHA-256 over an encoding that no two plans have in common: the canonical encoding of the job, then the plan's own numbers. A string and a
//! list come after their length, and what not all plans have comes after its name.

use sha2::{Digest, Sha256};
use veil_device::{Instr, Program, Src};
use veil_job::Schedule;
use veil_job::canonical::Canonical;
use veil_session::PlanHash;

use super::{Conversion, LayerPlan, Plan, Stock};
use crate::choose::Choice;

/// Changes whenever frames, counters or rounds change their meaning: peers of different releases refuse each other.
const VERSION: &str = "veilworks plan 5";

struct Encoder(Sha256);

impl Encoder {
    fn int(&mut self, value: impl Into<u64>) {
        value.into().encode(&mut self.0);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        bytes.encode(&mut self.0);
    }

    fn text(&mut self, text: &str) {
        text.encode(&mut self.0);
    }

    /// Its length, then what `each` writes of every element.
    fn list<T>(&mut self, list: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.int(list.len() as u64);
        for element in list {
            each(self, element);
        }
    }

    /// What need not be there.
    fn maybe<T>(&mut self, value: Option<T>, each: impl FnOnce(&mut Self, T)) {
        self.int(value.is_some());
        if let Some(value) = value {
            each(self, value);
        }
    }

    /// A section: its name, then what `each` writes of every layer.
    fn layers(&mut self, name: &str, plan: &Plan, mut each: impl FnMut(&mut Self, &LayerPlan)) {
        let layers: Vec<&LayerPlan> = plan.all_layers().collect();
        self.text(name);
        self.list(&layers, |e, layer| each(e, layer));
    }

    /// Products in order: number, operands, slot of the result.
    fn products(&mut self, program: &Program) {
        let product = |instr: &Instr| match instr {
            Instr::Product { pairs, out, index } => Some((pairs.clone(), *out, *index)),
            _ => None,
        };
        let products: Vec<_> = program.code.iter().filter_map(product).collect();
        self.list(&products, |e, (pairs, out, index)| {
            e.int(*index);
            e.int(*out);
            let pairs = &program.pairs[pairs.start as usize..pairs.end as usize];
            e.list(pairs, |e, (a, b)| {
                for src in [a, b] {
                    let (kind, number) = match *src {
                        Src::Slot(slot) => (0, slot),
                        Src::Temp(temp) => (1, temp),
                        Src::JobWide(job_value) => (2, job_value),
                    };
                    e.int(kind << 32 | u64::from(number));
                }
            });
        });
    }
}

/// Whether the products of a plan are proved in batches.
fn proves(plan: &Plan) -> bool {
    Choice::of_job(&plan.job).is_some_and(Choice::proves)
}

pub(super) fn of(plan: &Plan) -> PlanHash {
    let mut e = Encoder(Sha256::new());
    e.text(VERSION);
    plan.job.encode(&mut e.0);
    // The schedule follows from the circuit and these; its shape is hashed too, so that two planners that differ are found out.
    e.text("schedule");
    e.int(plan.lanes);
    e.int(plan.chunk_rows);
    // Those of the rows, or of the set-up or the totals if these have more.
    let [job_slots, job_bit_slots] = plan.job_slots;
    e.int(plan.slots.max(job_slots));
    e.int(plan.job_wide);
    e.layers("layers", plan, |e, layer| {
        e.int(layer.products);
        e.int(layer.sums);
        e.int(plan.programs[layer.program].code.len() as u64);
    });
    // What not all plans have, each under its name.
    if plan.is_mixed() {
        e.layers("bits beside integers", plan, |e, layer| {
            e.int(layer.conversions.len() as u64);
            e.maybe(layer.bits.as_ref(), |e, bits| {
                e.int(bits.products);
                e.int(plan.programs[bits.program].code.len() as u64);
            });
        });
        e.int(plan.bit_slots.max(job_bit_slots));
    }
    if plan.all_layers().any(|layer| layer.lifted() > 0) {
        e.layers("lifts of bits", plan, |e, layer| {
            e.list(&layer.lifts[0].counts, |e, count| e.int(*count));
        });
    }
    if plan.all_layers().any(LayerPlan::truncates) {
        e.layers("truncations", plan, |e, layer| {
            e.list(&layer.truncations[0], |e, of| {
                e.int(of.by);
                e.int(u32::from(of.digits));
                e.list(&of.counts, |e, count| e.int(*count));
            });
        });
    }
    if plan.is_random() {
        e.layers(
            "random values, and openings behind them",
            plan,
            |e, layer| {
                let randoms = layer.conversions.iter();
                let randoms = randoms.filter(|c| matches!(c.how, Conversion::Random { .. }));
                e.int(randoms.map(|c| u64::from(c.count)).sum::<u64>());
                e.list(&layer.opened, |e, opened| e.int(opened.count));
            },
        );
    }
    if plan.has_macs() {
        e.layers("codes of integers, weights of nobody", plan, |e, layer| {
            e.int(layer.authenticated.products);
            e.int(layer.authenticated.sums);
            e.int(layer.authenticated.authenticated.len() as u64);
        });
        e.int(plan.macs_of_job_wide.of.len() as u64);
    }
    if proves(plan) {
        e.text("proved over GF(2^64), seeds and challenges echoed");
        e.int(super::PROVED_GATES);
    }
    if let Schedule::List(_) = plan.job.security.schedule {
        // Which product has which number is what the planner finds: every one counts.
        e.layers("list", plan, |e, layer| {
            e.products(&plan.programs[layer.program]);
        });
    }
    if let Some(cycles) = &plan.cycles {
        e.text("cycles");
        e.int(cycles.count);
        e.int(cycles.window);
        e.int(cycles.counters);
        let together = match Choice::of_job(&plan.job) {
            Some(Choice::Authenticated) => crate::ag::Shape::of(plan).cycles_together(),
            Some(choice) if choice.garbles() => crate::yao::cycles_together(plan),
            _ => 1,
        };
        e.int(together);
    }
    let choice = Choice::of_job(&plan.job);
    if let Some(Choice::Garbled(_)) = choice {
        match plan.stock {
            Stock::Fresh => {}
            Stock::Used => e.text("transfers from a stock"),
            Stock::Made => e.text("transfers for a stock"),
        }
    }
    if let Some(Choice::Cut) = choice {
        e.text("cut-and-choose");
        e.list(&crate::cut::sizes(plan), |e, size| e.int(*size));
        e.bytes(&crate::cut::ENCODING);
    }
    if let Some(Choice::Authenticated) = choice {
        e.text("authenticated garbling");
        e.list(&crate::ag::Shape::of(plan).sizes(), |e, size| e.int(*size));
        match plan.stock {
            Stock::Fresh => {}
            Stock::Used => e.text("products from a stock"),
            Stock::Made => e.text("products for a stock"),
        }
        if let Some(set) = plan.silent {
            e.text("silent transfers of batches");
            e.list(
                &[set.trees, set.log_secret.into(), set.height.into()],
                |e, size| {
                    e.int(*size);
                },
            );
        }
    }
    if let Some(meeting) = plan.job.intersection() {
        e.text("intersection");
        e.list(&crate::intersect::sizes(meeting), |e, size| e.int(*size));
    }
    PlanHash(e.0.finalize().into())
}
