//! SHA-256 over an encoding that no two plans have in common: integers are little-endian, a string and a list come after their length, a
//! variant after its number, and what not all jobs have after its name.

use sha2::{Digest, Sha256};
use veil_device::{Instr, Program, Src};
use veil_program::{
    Adversary, Audience, Block, Delivery, Holder, Lowered, Order, Schedule, Security, Sharing,
    Tables,
};
use veil_session::PlanHash;

use super::{Conversion, LayerPlan, Plan};
use crate::choose::Choice;

/// Changes whenever frames, counters or rounds change their meaning: peers of different releases refuse each other.
const VERSION: &str = "veilworks plan 3";

struct Encoder(Sha256);

impl Encoder {
    fn int(&mut self, value: impl Into<u64>) {
        self.0.update(value.into().to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.int(bytes.len() as u64);
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Its length, then what `each` writes of every element.
    fn list<T>(&mut self, list: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.int(list.len() as u64);
        for element in list {
            each(self, element);
        }
    }

    fn texts(&mut self, list: &[String]) {
        self.list(list, |e, text| e.text(text));
    }

    /// What need not be there.
    fn maybe<T>(&mut self, value: Option<T>, each: impl FnOnce(&mut Self, T)) {
        self.int(value.is_some());
        if let Some(value) = value {
            each(self, value);
        }
    }

    /// Every field of a job: one that is added is a compile error here.
    fn job(&mut self, job: &Lowered) {
        let Lowered {
            name,
            owners,
            parties,
            recipients,
            security,
            schema,
            circuit,
            totals,
            blocks,
            audiences,
            opened,
        } = job;
        self.text("job");
        self.text(name);
        self.texts(owners);
        self.texts(parties);
        self.texts(recipients);
        self.security(*security);
        self.text(schema);
        self.bytes(&circuit.canonical_hash());
        self.maybe(totals.as_ref(), |e, totals| {
            e.bytes(&totals.canonical_hash());
        });
        self.list(blocks, Self::block);
        self.list(audiences, |e, audience| e.audience(*audience));
        self.texts(opened);
    }

    fn security(&mut self, security: Security) {
        let Security {
            sharing,
            adversary,
            delivery,
            tables,
            schedule,
            statistical,
        } = security;
        self.int(match sharing {
            Sharing::Rep3 => 0u8,
            Sharing::Rep4 => 1,
            Sharing::Yao => 2,
        });
        self.int(match adversary {
            Adversary::SemiHonest => 0u8,
            Adversary::Malicious => 1,
            Adversary::CutAndChoose => 2,
        });
        self.int(match delivery {
            Delivery::Abort => 0u8,
            Delivery::Guaranteed => 1,
        });
        self.int(match tables {
            Tables::HalfGates => 0u8,
            Tables::ThreeHalves => 1,
        });
        match schedule {
            Schedule::Layers => self.int(0u8),
            Schedule::List(rows) => {
                self.int(1u8);
                self.int(rows.count());
            }
        }
        self.int(statistical.bits());
    }

    fn block(&mut self, block: &Block) {
        let Block {
            name,
            rows,
            holders,
            stored,
            order,
        } = block;
        self.text(name);
        self.int(*rows);
        self.list(holders, |e, holder| e.holder(*holder));
        self.maybe(stored.as_ref(), |e, dataset| e.text(dataset));
        match order {
            Order::Unsaid => self.int(0u8),
            Order::Agreed => self.int(1u8),
            // Two judges compare.
            Order::Compared { every, duplicates } => {
                self.int(2u8);
                self.int(*every);
                self.int(*duplicates);
            }
        }
    }

    fn holder(&mut self, holder: Holder) {
        match holder {
            Holder::Party(party) => {
                self.int(0u8);
                self.int(party.index() as u64);
            }
            Holder::Owner(owner) => {
                self.int(1u8);
                self.int(owner);
            }
            Holder::Stored => self.int(2u8),
        }
    }

    fn audience(&mut self, audience: Audience) {
        match audience {
            Audience::Parties => self.int(0u8),
            Audience::Party(party) => {
                self.int(1u8);
                self.int(party.index() as u64);
            }
            Audience::Recipient(recipient) => {
                self.int(2u8);
                self.int(recipient);
            }
            Audience::Stored => self.int(3u8),
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
                        Src::Uniform(uniform) => (2, uniform),
                    };
                    e.int(kind << 32 | u64::from(number));
                }
            });
        });
    }
}

/// Whether the products of a plan are proved in batches.
fn proves(plan: &Plan) -> bool {
    Choice::of(plan.job.security).is_some_and(Choice::proves)
}

pub(super) fn of(plan: &Plan) -> PlanHash {
    let mut e = Encoder(Sha256::new());
    e.text(VERSION);
    e.job(&plan.job);
    // The schedule follows from the circuit and these; its shape is hashed too, so that two planners that differ are found out.
    e.text("schedule");
    e.int(plan.lanes);
    e.int(plan.chunk_rows);
    // Those of the rows, or of the set-up or the totals if these have more.
    let [job_slots, job_bit_slots] = plan.job_slots;
    e.int(plan.slots.max(job_slots));
    e.int(plan.uniforms);
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
    if plan.is_random() {
        e.layers(
            "random values, and openings behind them",
            plan,
            |e, layer| {
                let draws = layer.conversions.iter();
                let draws = draws.filter(|c| matches!(c.how, Conversion::Random { .. }));
                e.int(draws.map(|c| u64::from(c.count)).sum::<u64>());
                e.list(&layer.opened, |e, opened| e.int(opened.count));
            },
        );
    }
    if plan.has_codes() {
        e.layers("codes of integers, weights of nobody", plan, |e, layer| {
            e.int(layer.coded.products);
            e.int(layer.coded.sums);
            e.int(layer.coded.authenticated.len() as u64);
        });
        e.int(plan.coded_uniforms.of.len() as u64);
    }
    if proves(plan) {
        e.text("proved, challenges echoed");
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
        let together = match Choice::of(plan.job.security) {
            Some(choice) if choice.garbles() => crate::yao::cycles_together(plan),
            _ => 1,
        };
        e.int(together);
    }
    if let Some(Choice::Cut) = Choice::of(plan.job.security) {
        e.text("cut-and-choose");
        e.list(&crate::cut::sizes(plan), |e, size| e.int(*size));
        e.bytes(&crate::cut::ENCODING);
    }
    PlanHash(e.0.finalize().into())
}
