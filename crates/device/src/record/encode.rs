//! From calls to the bytes of a record.

use veil_math::Ring;

use super::format::Step;
use crate::ot::{Choices, Low};
use crate::{
    ColumnType, Command, Cut, Dst, Form, Instr, Layout, Lifting, Op, Ot, Outcome, Program, Proof,
    Repeat, Residency, RowStep, Side, Span, Src, Truncation,
};

impl Step<'_> {
    /// Replaces what is in `out`.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        let mut w = Writer(out);
        match self {
            Step::Device { name } => {
                w.u8(0);
                w.0.extend_from_slice(name.as_bytes());
            }
            Step::Bind { session } => {
                w.u8(1);
                w.0.extend_from_slice(&session.0);
            }
            Step::Key { id, key } => {
                w.u8(2);
                w.u16(id.0);
                w.0.extend_from_slice(key.expose());
            }
            Step::Layout { layout } => {
                w.u8(3);
                w.layout(layout);
            }
            Step::Program {
                id,
                program,
                layout,
            } => {
                w.u8(4);
                w.u32(id.0);
                w.u32(*layout);
                w.program(program);
            }
            Step::Open {
                workspace,
                layout,
                frame,
            } => {
                w.u8(5);
                w.u32(workspace.0);
                w.u32(*layout);
                w.u16(frame.epoch);
                w.u16(frame.lane);
                w.u32(frame.chunk);
                w.u32(frame.rows);
            }
            Step::Close { workspace } => {
                w.u8(6);
                w.u32(workspace.0);
            }
            Step::Write {
                workspace,
                span,
                bytes,
            }
            | Step::Mapped {
                workspace,
                span,
                bytes,
            } => {
                w.u8(7);
                w.u32(workspace.0);
                w.span(*span);
                w.0.extend_from_slice(bytes);
            }
            Step::View {
                workspace,
                span,
                bytes,
            } => {
                w.u8(8);
                w.u32(workspace.0);
                w.span(*span);
                w.0.extend_from_slice(bytes);
            }
            Step::Submit {
                workspace,
                batch,
                tag,
            } => {
                w.u8(9);
                w.u32(workspace.0);
                w.u64(tag.0);
                w.list(batch, Writer::command);
            }
            Step::Completion { completion } => {
                w.u8(10);
                w.u64(completion.tag.0);
                match completion.outcome {
                    Outcome::Done => w.u8(0),
                    Outcome::Mismatch { command } => {
                        w.u8(1);
                        w.u32(command as u32);
                    }
                }
            }
            Step::Wipe => w.u8(11),
        }
    }
}

pub(super) struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    pub(super) fn u8(&mut self, x: u8) {
        self.0.push(x);
    }

    pub(super) fn u16(&mut self, x: u16) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    pub(super) fn u32(&mut self, x: u32) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    pub(super) fn u64(&mut self, x: u64) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    fn u128(&mut self, x: u128) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    fn list<T>(&mut self, list: &[T], one: impl Fn(&mut Self, &T)) {
        self.u32(list.len() as u32);
        for item in list {
            one(self, item);
        }
    }

    fn ring(&mut self, ring: Ring) {
        self.u8(match ring {
            Ring::Bits => 0,
            Ring::Z32 => 3,
            Ring::Z64 => 1,
            Ring::Z128 => 2,
        });
    }

    fn span(&mut self, span: Span) {
        self.u16(span.region);
        self.u8(span.component);
        self.u32(span.first);
        self.u32(span.count);
    }

    fn layout(&mut self, layout: &Layout) {
        self.u32(layout.chunk_rows);
        self.list(&layout.regions, |w, region| {
            w.u8(match region.residency {
                Residency::Resident => 0,
                Residency::Mapped => 1,
                Residency::Public => 2,
                Residency::Plane => 3,
                Residency::Lent => 4,
            });
            match region.column {
                ColumnType::Rows(ring) => {
                    w.u8(0);
                    w.ring(ring);
                }
                ColumnType::One(ring) => {
                    w.u8(1);
                    w.ring(ring);
                }
                ColumnType::Bytes(n) => {
                    w.u8(2);
                    w.u32(n);
                }
                ColumnType::Labels => w.u8(3),
                ColumnType::Label => w.u8(4),
                ColumnType::Halves => w.u8(5),
                ColumnType::Words(n) => {
                    w.u8(6);
                    w.u8(n);
                }
            }
            w.u8(region.components);
            w.u32(region.count);
        });
    }

    fn src(&mut self, src: Src) {
        let (tag, index) = match src {
            Src::Slot(i) => (0, i),
            Src::Temp(i) => (1, i),
            Src::JobWide(i) => (2, i),
        };
        self.u8(tag);
        self.u32(index);
    }

    fn dst(&mut self, dst: Dst) {
        let (tag, index) = match dst {
            Dst::Slot(i) => (0, i),
            Dst::Temp(i) => (1, i),
        };
        self.u8(tag);
        self.u32(index);
    }

    fn program(&mut self, program: &Program) {
        self.ring(program.ring);
        self.u16(program.slots);
        self.u16(program.job_wide);
        self.u16(program.sums);
        self.u32(program.temps);
        self.list(&program.pairs, |w, (a, b)| {
            w.src(*a);
            w.src(*b);
        });
        self.list(&program.code, Self::instr);
    }

    fn instr(&mut self, instr: &Instr) {
        match instr {
            Instr::Add(a, b, o) | Instr::Sub(a, b, o) => {
                self.u8(u8::from(matches!(instr, Instr::Sub(..))));
                self.src(*a);
                self.src(*b);
                self.dst(*o);
            }
            Instr::Plus(a, c, o) | Instr::Times(a, c, o) => {
                self.u8(2 + u8::from(matches!(instr, Instr::Times(..))));
                self.src(*a);
                self.u128(*c);
                self.dst(*o);
            }
            Instr::Copy(a, o) => {
                self.u8(4);
                self.src(*a);
                self.dst(*o);
            }
            Instr::Constant(c, o) => {
                self.u8(5);
                self.u128(*c);
                self.dst(*o);
            }
            Instr::Product { pairs, out, index } | Instr::ProductSum { pairs, out, index } => {
                self.u8(6 + u8::from(matches!(instr, Instr::ProductSum { .. })));
                for x in [pairs.start, pairs.end, *out, *index] {
                    self.u32(x);
                }
            }
            Instr::Sum(a, out) => {
                self.u8(8);
                self.src(*a);
                self.u32(*out);
            }
        }
    }

    fn proof(&mut self, proof: Proof) {
        let number = |side| {
            let side = Side::ALL.iter().position(|s| *s == side);
            side.map_or(0, |k| k as u32)
        };
        let numbers: (u8, &[u32]) = match proof {
            Proof::Elements { from } => (0, &[from]),
            Proof::Claims { side } => (1, &[number(side)]),
            Proof::Share {
                level,
                products,
                last,
            } => (3, &[level, products, last.into()]),
            Proof::Expand { side } => (4, &[number(side)]),
            Proof::Fold { level, products } => (5, &[level, products]),
            Proof::End { level, products } => (6, &[level, products]),
            Proof::Verify { level, last } => (7, &[level, last.into()]),
            Proof::Compare => (8, &[]),
            Proof::Rows(RowStep::Hashes { word, place }) => (9, &[word, place.into()]),
            Proof::Rows(RowStep::Weights { place, back }) => (10, &[place.into(), back.into()]),
            Proof::Rows(RowStep::Claim { word, place, first }) => {
                (11, &[word, place.into(), first.into()])
            }
        };
        self.u8(numbers.0);
        numbers.1.iter().for_each(|n| self.u32(*n));
    }

    fn form(&mut self, form: &Form) {
        self.ring(form.ring);
        let pair = |w: &mut Self, (a, b): (u8, u8)| {
            w.u8(a);
            w.u8(b);
        };
        self.list(form.crosses, |w, cross| {
            w.list(cross.terms, |w, term| pair(w, *term));
            w.list(cross.masks, |w, (call, minus)| {
                pair(w, (*call, (*minus).into()));
            });
            w.u8(cross.to);
        });
        self.list(form.keeps, |w, keep| pair(w, *keep));
    }

    fn lifting(&mut self, step: Lifting) {
        match step {
            Lifting::Share => self.u8(0),
            Lifting::Turn => self.u8(1),
            Lifting::Terms { terms, keeps } => {
                self.u8(2);
                for part in terms.iter().flat_map(|(r, o)| [*r, *o]) {
                    self.u8(part);
                }
                // One more than the component, or none.
                for part in keeps {
                    self.u8(part.map_or(0, |part| part.saturating_add(1)));
                }
            }
        }
    }

    fn transfer(&mut self, step: Ot) {
        match step {
            Ot::Receive { trees } => {
                self.u8(0);
                self.u8(trees.bits() as u8);
            }
            Ot::Send { trees, offset } => {
                self.u8(1);
                self.u8(trees.bits() as u8);
                self.u16(offset.0);
            }
            Ot::Fold { items, of } => {
                self.u8(if of == Choices::Rows { 2 } else { 8 });
                self.u32(items);
                if let Choices::Bytes(bytes) = of {
                    self.u32(bytes);
                }
            }
            Ot::Compare { offset } => {
                self.u8(3);
                self.u16(offset.0);
            }
            Ot::Labels { low } => self.u8(match low {
                Low::Column => 4,
                Low::Choice => 9,
                Low::Zero => 10,
            }),
            Ot::Keys { offset: None } => self.u8(5),
            Ot::Keys {
                offset: Some(offset),
            } => {
                self.u8(6);
                self.u16(offset.0);
            }
            Ot::Choose => self.u8(7),
        }
    }

    fn repeat(&mut self, repeat: &Repeat) {
        self.u32(repeat.count);
        self.list(&repeat.body, |w, step| {
            w.command(&step.command);
            w.list(&step.src, |w, by| w.u32(*by));
            w.list(&step.dst, |w, by| w.u32(*by));
            w.list(&step.calls, |w, by| w.u64(*by));
        });
        self.list(&repeat.live, |w, span| w.span(*span));
    }

    fn cut(&mut self, step: Cut) {
        match step {
            Cut::Stretch => self.u8(0),
            Cut::Number { first } => {
                self.u8(1);
                self.u32(first);
            }
            Cut::Digest { label } => {
                self.u8(2);
                self.u16(label);
            }
            Cut::Marks { label, by } => {
                self.u8(3);
                self.u16(label);
                self.u8(by as u8);
            }
            Cut::Member { label } => {
                self.u8(4);
                self.u16(label);
            }
            Cut::Majority { label } => {
                self.u8(5);
                self.u16(label);
            }
            Cut::Matrix { key: None } => self.u8(6),
            Cut::Matrix { key: Some(key) } => {
                self.u8(7);
                for byte in key {
                    self.u8(byte);
                }
            }
            Cut::Active => self.u8(8),
            Cut::Spread => self.u8(9),
            Cut::Mask => self.u8(10),
            Cut::Unmask => self.u8(11),
            Cut::Shuffle => self.u8(12),
            Cut::Pick { half } => {
                self.u8(13);
                self.u8(half);
            }
            Cut::Same => self.u8(14),
            Cut::Garble { first } => {
                self.u8(15);
                self.u64(first);
            }
            Cut::Evaluate { first } => {
                self.u8(16);
                self.u64(first);
            }
        }
    }

    fn command(&mut self, command: &Command) {
        match &command.op {
            Op::Linear => self.u8(0),
            Op::Product(form) => {
                self.u8(1);
                self.form(form);
            }
            Op::AddReceived { component } => {
                self.u8(2);
                self.u8(*component);
            }
            Op::Publish => self.u8(22),
            Op::Random => self.u8(3),
            Op::Combine { ring, minus } => {
                self.u8(4);
                self.ring(*ring);
                self.u32(*minus);
            }
            Op::Hash { label } => {
                self.u8(5);
                self.u16(*label);
            }
            Op::CheckEqual => self.u8(6),
            Op::Mac => self.u8(7),
            Op::Proof(proof) => {
                self.u8(8);
                self.proof(*proof);
            }
            Op::Split { first } => {
                self.u8(9);
                self.u32(*first);
            }
            Op::Lift => self.u8(10),
            Op::Shift { by } => {
                self.u8(11);
                self.u32(*by);
            }
            Op::Lifting(step) => {
                self.u8(23);
                self.lifting(*step);
            }
            Op::Truncation(step) => {
                self.u8(30);
                self.u8(match step {
                    Truncation::Hide { .. } => 0,
                    Truncation::Take { .. } => 1,
                    Truncation::Answer { .. } => 2,
                    Truncation::Settle { .. } => 3,
                });
                self.u32(step.by());
            }
            Op::Permutation => self.u8(24),
            Op::Permute { back } => {
                self.u8(25);
                self.u8((*back).into());
            }
            Op::Invert => self.u8(26),
            Op::Rank(form) => {
                self.u8(27);
                self.form(form);
            }
            Op::MatMul(of) => {
                self.u8(28);
                self.form(of.form);
                self.u32(of.left);
                self.u8(of.transposed.into());
                self.u8(of.zeros);
            }
            Op::Scale => self.u8(12),
            Op::Resize => self.u8(13),
            Op::Dot => self.u8(14),
            Op::Garble { scheme, offset } => {
                self.u8(15);
                self.u8(*scheme as u8);
                self.u16(offset.0);
            }
            Op::Evaluate { scheme } => {
                self.u8(16);
                self.u8(*scheme as u8);
            }
            Op::Encode { offset } => {
                self.u8(17);
                self.u16(offset.0);
            }
            Op::Colour => self.u8(18),
            Op::Ot(step) => {
                self.u8(19);
                self.transfer(*step);
            }
            Op::Repeat(repeat) => {
                self.u8(20);
                self.repeat(repeat);
            }
            Op::Cut(step) => {
                self.u8(21);
                self.cut(*step);
            }
            Op::Silent(step) => {
                self.u8(32);
                self.silent(*step);
            }
            Op::Psi(step) => {
                self.u8(33);
                self.intersection(*step);
            }
            Op::Ag(step) => {
                self.u8(31);
                self.authenticated(*step);
            }
        }
        match command.program {
            None => self.u8(0),
            Some(id) => {
                self.u8(1);
                self.u32(id.0);
            }
        }
        self.u8(command.constants);
        self.list(&command.src, |w, span| w.span(*span));
        self.list(&command.dst, |w, span| w.span(*span));
        self.list(&command.calls, |w, call| {
            w.u16(call.key.0);
            w.u16(call.tag.0);
            w.u64(call.first);
        });
    }
}
