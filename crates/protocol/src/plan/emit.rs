//! From the order of gates to programs over slots.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use veil_circuit::{Per, Reduce, Wire};
use veil_device::{Dst, Instr, Program, Src};
use veil_math::Ring;

use super::authenticate::Kind;
use super::layers::{Layer, Schedule, Scheduler, Work};
use super::list;
use super::net::Gate;
use super::{
    Conversion, ConversionPlan, Gives, LiftPlan, MacPlan, OpenedPlan, OutputPlan, PortPlan,
    REGIONS, TruncationPlan,
};

/// Lifts take turns: the role of a party depends on the number of a lift modulo this.
const ROTATIONS: u32 = 3;

/// Where a wire's value is.
#[derive(Clone, Copy)]
pub(super) enum Home {
    Nowhere,
    Slot(u32),
    Temp(u32),
    JobWide(u32),
}

impl Scheduler<'_> {
    pub(super) fn emit_all(mut self, mut work: Work, once: &[Option<usize>]) -> Schedule {
        let passed = |output: usize| once.get(output).copied().flatten();
        let (ports, job_wide) = self.place_inputs(work.tail);
        let mut layers = Vec::new();
        let (mut second, mut lifted) = (vec![LiftPlan::default(); work.tail as usize + 1], 0);
        let mut later = vec![[const { Vec::new() }; 2]; work.tail as usize + 1];
        let mut truncated = [0; 2];
        for layer in 1..=work.tail {
            let conversions = self.convert(&work.conversions[layer as usize], layer);
            let mut e = Emitters::new(self.circuit.ring);
            let (authenticated, opened) = self.emit_layer(&mut e, &mut work, layer);
            let first = self.emit_lifts(&mut e, &work, (layer, lifted));
            lifted += first.count();
            if first.count() > 0 {
                second[work.lifts[layer as usize].1 as usize] = first;
            }
            let truncations = self.emit_truncations(&mut e, &work, layer, &mut truncated);
            if !truncations.is_empty() {
                let then = work.truncations[layer as usize].1;
                for (k, then) in then.into_iter().enumerate() {
                    later[then as usize][k].clone_from(&truncations);
                }
            }
            let [then, last] = std::mem::take(&mut later[layer as usize]);
            for workspace in &mut self.workspaces {
                // Slots are free for the next layer, not for this one: the values of a layer's products arrive at its end.
                workspace.end(layer);
            }
            let [program, bits] = e.0;
            let has_bits = !bits.program.code.is_empty();
            layers.push(Layer {
                program: program.program,
                bits: has_bits.then_some(bits.program),
                conversions,
                opened,
                lifts: [first, second[layer as usize]],
                truncations: [truncations, then, last],
                authenticated,
            });
        }
        if let Some(order) = &work.order {
            layers = list::join(layers, order, self.how.most);
        }
        let mut row_out = [0, 1].map(|workspace| {
            let here = work.row_outputs.iter();
            let here = here.filter(|wire| self.workspace_of(**wire) == workspace);
            self.workspaces[workspace].count - here.count() as u32
        });
        let [workspace, bits] = &self.workspaces;
        let mut sum_out = 0;
        let outputs = self
            .circuit
            .outputs
            .iter()
            .enumerate()
            .map(|(k, o)| {
                let width = o.wires.len() as u32;
                let first = o.wires.first();
                let beside = first.map_or(0, |wire| self.workspace_of(*wire));
                let bits = beside == 1;
                let (gives, next) = match (o.reduce, passed(k)) {
                    (Reduce::Sum, _) => (Gives::Sum, &mut sum_out),
                    (Reduce::EveryCycle, _) => unreachable!("a circuit of one cycle"),
                    (Reduce::None, None) => (Gives::Row, &mut row_out[beside]),
                    (Reduce::None, Some(input)) => {
                        let first = ports[input].first;
                        return OutputPlan {
                            gives: Gives::Once,
                            first,
                            width,
                            bits,
                        };
                    }
                };
                let first = *next;
                *next += width;
                OutputPlan {
                    gives,
                    first,
                    width,
                    bits,
                }
            })
            .collect();
        Schedule {
            slots: workspace.count,
            bit_slots: bits.count,
            job_wide,
            sums: work.sum_items,
            inputs: ports,
            outputs,
            layers,
            depth: work.rounds,
        }
    }

    /// Slots and job-wide values of the inputs.
    fn place_inputs(&mut self, tail: u32) -> (Vec<PortPlan>, u32) {
        let (mut job_wide, mut wire, mut ports) = (0, 0u32, Vec::new());
        for port in &self.circuit.inputs {
            let slots = &mut self.workspaces[usize::from(port.bits)].count;
            let next = match port.per {
                Per::Row | Per::Cycle => slots,
                Per::Job => &mut job_wide,
            };
            let first = *next;
            *next += port.width;
            ports.push(PortPlan {
                per: port.per,
                first,
                width: port.width,
                bits: port.bits,
            });
            for k in 0..port.width {
                self.home[wire as usize] = match port.per {
                    Per::Row | Per::Cycle => Home::Slot(first + k),
                    Per::Job => Home::JobWide(first + k),
                };
                wire += 1;
            }
        }
        for workspace in &mut self.workspaces {
            workspace.begin(tail);
        }
        for w in self.held..self.inputs {
            if let Home::Slot(slot) = self.home[w as usize] {
                let workspace = self.workspace_of(Wire(w));
                self.workspaces[workspace].dies(slot, self.last[w as usize]);
            }
        }
        for workspace in &mut self.workspaces {
            workspace.end(0);
        }
        (ports, job_wide)
    }

    /// Slots of what is converted when `layer` begins. Consecutive bits of one component, and others side by side, go together.
    fn convert(&mut self, wires: &[Wire], layer: u32) -> Vec<ConversionPlan> {
        let mut plans: Vec<ConversionPlan> = Vec::new();
        let mut rest = wires;
        while let Some(first) = rest.first() {
            // What one conversion reads of another of this layer was given its slot before.
            let one = self.conversion(*first).expect("operands come first");
            let mut count = 1;
            while let Some(next) = rest.get(count as usize) {
                let same = self.workspace_of(*next) == self.workspace_of(*first);
                let follows = one.after(count).filter(|_| same);
                if follows.is_none() || self.conversion(*next) != follows {
                    break;
                }
                count += 1;
            }
            let (these, others) = rest.split_at(count as usize);
            rest = others;
            let workspace = self.workspace_of(*first);
            let to = self.workspaces[workspace].take_run(count);
            for (k, wire) in (0..).zip(these) {
                self.live(*wire, to + k);
            }
            plans.push(ConversionPlan {
                to,
                count,
                bits: workspace == 1,
                ..one
            });
        }
        debug_assert!(
            wires
                .iter()
                .all(|w| self.computed[w.0 as usize] == Some(layer))
        );
        plans
    }

    /// What a conversion reads; nothing if that has no slot yet: it is converted by itself, in the same run.
    fn conversion(&self, wire: Wire) -> Option<ConversionPlan> {
        let component = || self.net.components.get(&wire.0).copied();
        let (from, how) = match self.gate(wire)? {
            Gate::Bit(from, bit) => {
                let component = component()?;
                (Some(from), Conversion::Split { component, bit })
            }
            Gate::Lift(from) => {
                let component = component()?;
                (Some(from), Conversion::Lift { component })
            }
            Gate::Take(from) => {
                let component = component()?;
                (Some(from), Conversion::Take { component })
            }
            Gate::ShiftRight(from, by) => (Some(from), Conversion::Shift { by }),
            Gate::Scale(from, by) => match self.home[by.0 as usize] {
                Home::Slot(by) => (Some(from), Conversion::Scale { by }),
                _ => return None,
            },
            Gate::Random => (None, Conversion::Random { first: 0 }),
            _ => return None,
        };
        let (from, shared) = match from.map(|from| self.home[from.0 as usize]) {
            Some(Home::Slot(slot)) => (slot, false),
            Some(Home::JobWide(job_value)) => (job_value, true),
            Some(Home::Temp(_) | Home::Nowhere) => return None,
            None => (0, false),
        };
        Some(ConversionPlan {
            how,
            from,
            shared,
            to: 0,
            count: 1,
            bits: false,
        })
    }

    /// Puts the products of a layer in the order of its message: those of the circuit, then their MACs in the same order, then values
    /// that are multiplied with the key of the MACs, by slot.
    fn order(&self, products: &mut [Wire]) -> MacPlan {
        let macs = &self.net.macs;
        products.sort_by_key(|w| match macs.kind(*w) {
            None => (0, w.0),
            Some(Kind::Mac) => (1, w.0),
            Some(Kind::Authentication) => (2, self.authenticated(*w)),
        });
        let of = |kind| {
            products
                .iter()
                .filter(move |w| macs.kind(**w) == Some(kind))
        };
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for slot in of(Kind::Authentication).map(|w| self.authenticated(*w)) {
            match runs.last_mut() {
                Some((first, count)) if *first + *count == slot => *count += 1,
                _ => runs.push((slot, 1)),
            }
        }
        MacPlan {
            products: of(Kind::Mac).count() as u32,
            sums: 0,
            authenticated: runs,
        }
    }

    /// The slot of the value that a product authenticates.
    fn authenticated(&self, product: Wire) -> u32 {
        let value = self.gate(product).and_then(|gate| gate.operands().next());
        match value.map(|value| self.home[value.0 as usize]) {
            Some(Home::Slot(slot)) => slot,
            _ => unreachable!("what is authenticated is an input, or was converted"),
        }
    }

    /// The programs of a layer; which of its products have MACs, and what is opened in it.
    fn emit_layer(
        &mut self,
        e: &mut Emitters,
        work: &mut Work,
        layer: u32,
    ) -> (MacPlan, [OpenedPlan; 2]) {
        let mut authenticated = self.order(&mut work.products[layer as usize]);
        authenticated.sums = work.authenticated_sums[layer as usize];
        let mut runs = self.slots_of(&work.products[layer as usize]);
        for &w in &work.products[layer as usize] {
            let product = self.products[w.0 as usize].as_mut();
            let pairs = std::mem::take(&mut product.expect("listed by layer").pairs);
            let pairs = self.operands(e, &pairs, layer);
            let out = match runs[self.workspace_of(w)].next() {
                Some(slot) => {
                    self.live(w, slot);
                    slot
                }
                None => self.take_slot(w),
            };
            let e = &mut e.0[self.workspace_of(w)];
            e.program.code.push(Instr::Product {
                pairs,
                out,
                index: e.products,
            });
            e.products += 1;
        }
        for (out, pairs) in &work.sums[layer as usize] {
            let pairs = self.operands(e, pairs, layer);
            let e = &mut e.0[0];
            e.program.code.push(Instr::ProductSum {
                pairs,
                out: *out,
                index: e.sums,
            });
            e.sums += 1;
        }
        for &w in &work.feeds[layer as usize] {
            self.emit(e, w, layer);
        }
        let opened = [0, 1]
            .map(|workspace| self.emit_opened(e, &work.opened[layer as usize], workspace, layer));
        if layer < work.tail {
            return (authenticated, opened);
        }
        for &(w, out) in &work.linear_sums {
            let src = self.emit(e, w, layer);
            e.0[0].program.code.push(Instr::Sum(src, out));
        }
        // Output slots lie side by side, behind all others.
        let of: Vec<usize> = work
            .row_outputs
            .iter()
            .map(|w| self.workspace_of(*w))
            .collect();
        let mut next = [0, 1].map(|workspace| self.workspaces[workspace].count);
        for workspace in &of {
            self.workspaces[*workspace].count += 1;
        }
        for (&w, workspace) in work.row_outputs.iter().zip(of) {
            let src = self.emit(e, w, layer);
            let copy = Instr::Copy(src, Dst::Slot(next[workspace]));
            next[workspace] += 1;
            e.0[workspace].program.code.push(copy);
        }
        (authenticated, opened)
    }

    /// Slots for these products in each workspace, if they are to lie side by side.
    fn slots_of(&mut self, products: &[Wire]) -> [impl Iterator<Item = u32> + use<>; 2] {
        [0, 1].map(|workspace| {
            let here = (products.iter()).filter(|w| self.workspace_of(**w) == workspace);
            let count = if self.how.side_by_side {
                here.count()
            } else {
                0
            };
            let runs = self.workspaces[workspace].take_runs(count as u32);
            runs.into_iter().flatten()
        })
    }

    /// Puts what a layer opens, of one workspace, side by side, and gives the opened values their slots.
    fn emit_opened(
        &mut self,
        e: &mut Emitters,
        wires: &[Wire],
        workspace: usize,
        layer: u32,
    ) -> OpenedPlan {
        let wires: Vec<Wire> = (wires.iter().copied())
            .filter(|w| self.workspace_of(*w) == workspace)
            .collect();
        if wires.is_empty() {
            return OpenedPlan::default();
        }
        let count = wires.len() as u32;
        let [from, to] = [0, 1].map(|_| self.workspaces[workspace].take_run(count));
        // They are sent when the programs of the layer are done.
        for slot in from..from + count {
            self.workspaces[workspace].dies(slot, layer);
        }
        for (k, wire) in (0..).zip(wires) {
            if let Some(Gate::Open { from: masked, .. }) = self.gate(wire) {
                let src = self.emit(e, masked, layer);
                let copy = Instr::Copy(src, Dst::Slot(from + k));
                e.0[workspace].program.code.push(copy);
            }
            self.live(wire, to + k);
        }
        OpenedPlan { from, to, count }
    }

    /// Puts the bits that are lifted from a layer on side by side, by rotations, and gives the integers their slots. `before` have been lifted.
    fn emit_lifts(
        &mut self,
        e: &mut Emitters,
        work: &Work,
        (layer, before): (u32, u32),
    ) -> LiftPlan {
        let (wires, second) = &work.lifts[layer as usize];
        if wires.is_empty() {
            return LiftPlan::default();
        }
        let count = wires.len() as u32;
        let numbered = (before..).zip(wires);
        let mut wires: Vec<(u32, u32, Wire)> =
            numbered.map(|(n, w)| (n % ROTATIONS, n, *w)).collect();
        wires.sort_unstable();
        let mut counts = [0; ROTATIONS as usize];
        for (rotation, ..) in &wires {
            counts[*rotation as usize] += 1;
        }
        let from = self.workspaces[1].take_run(count);
        for slot in from..from + count {
            self.workspaces[1].dies(slot, *second);
        }
        let to = self.workspaces[0].take_run(count);
        for (k, (.., wire)) in (0..).zip(wires) {
            let bit = self.gate(wire).and_then(|gate| gate.operands().next());
            let src = self.emit(e, bit.expect("what is lifted is a bit"), layer);
            let copy = Instr::Copy(src, Dst::Slot(from + k));
            e.0[1].program.code.push(copy);
            self.live(wire, to + k);
        }
        LiftPlan {
            from,
            to,
            counts,
            first: u64::from(before),
        }
    }

    /// Puts the integers that are truncated from a layer on side by side, by how many bits go and by rotations, and gives results and bits their slots. `before` are how many
    /// were truncated, and columns of bits that were drawn for them.
    fn emit_truncations(
        &mut self,
        e: &mut Emitters,
        work: &Work,
        layer: u32,
        before: &mut [u64; 2],
    ) -> Vec<TruncationPlan> {
        let (wires, [_, last]) = &work.truncations[layer as usize];
        let mut alike: BTreeMap<(u32, bool), Vec<Wire>> = BTreeMap::new();
        for wire in wires {
            if let Some(Gate::Truncate { by, digits, .. }) = self.gate(*wire) {
                alike.entry((by, digits)).or_default().push(*wire);
            }
        }
        let mut plans = Vec::with_capacity(alike.len());
        for ((by, digits), wires) in alike {
            let count = wires.len() as u32;
            let number = before[0] as u32;
            let rotation = |k: u32| number.wrapping_add(k) % ROTATIONS;
            let mut sorted: Vec<(u32, Wire)> = (0..)
                .zip(wires)
                .map(|(k, wire)| (rotation(k), wire))
                .collect();
            sorted.sort_by_key(|(rotation, _)| *rotation);
            let mut counts = [0; ROTATIONS as usize];
            for (rotation, _) in &sorted {
                counts[*rotation as usize] += 1;
            }
            let [from, between, to] = [0; 3].map(|_| self.workspaces[0].take_run(count));
            for slot in 0..count {
                self.workspaces[0].dies(from + slot, layer);
                self.workspaces[0].dies(between + slot, *last);
            }
            let mut plan = TruncationPlan {
                by,
                digits,
                from,
                between,
                to,
                bits: 0,
                counts,
                first: *before,
            };
            plan.bits = self.workspaces[1].take_run(count * plan.bits_of_each());
            let bits = plan.bits..plan.bits + count * plan.bits_of_each();
            let mut read = HashSet::new();
            let mut places = plan.digits_of_all();
            for (k, (_, wire)) in (0..).zip(sorted) {
                let of = self.gate(wire).and_then(|gate| gate.operands().next());
                let src = self.emit(e, of.expect("what is truncated is an integer"), layer);
                let copy = Instr::Copy(src, Dst::Slot(from + k));
                e.0[0].program.code.push(copy);
                self.live(wire, to + k);
                let Some([of_sum, of_mask]) = places.next() else {
                    continue;
                };
                for (at, digit) in work.digits.get(&wire).into_iter().flatten() {
                    let slot = match at.checked_sub(by) {
                        None => of_sum + at,
                        Some(at) => of_mask + at,
                    };
                    self.live(*digit, slot);
                    read.insert(slot);
                }
            }
            // The others are on the way alone.
            for slot in bits.filter(|slot| !read.contains(slot)) {
                self.workspaces[1].dies(slot, *last);
            }
            before[0] += u64::from(count);
            before[1] += u64::from(count * if digits { by } else { 0 });
            plans.push(plan);
        }
        plans
    }

    fn take_slot(&mut self, wire: Wire) -> u32 {
        let workspace = self.workspace_of(wire);
        let slot = self.workspaces[workspace].take();
        self.live(wire, slot);
        slot
    }

    /// The wire's value is in `slot` until the last layer that reads it.
    fn live(&mut self, wire: Wire, slot: u32) {
        let workspace = self.workspace_of(wire);
        self.home[wire.0 as usize] = Home::Slot(slot);
        let last = self.last[wire.0 as usize];
        self.workspaces[workspace].dies(slot, last);
    }

    fn operands(&mut self, e: &mut Emitters, pairs: &[(Wire, Wire)], layer: u32) -> Range<u32> {
        let sources: Vec<(Src, Src)> = pairs
            .iter()
            .map(|(a, b)| (self.emit(e, *a, layer), self.emit(e, *b, layer)))
            .collect();
        let workspace = pairs.first().map_or(0, |(a, _)| self.workspace_of(*a));
        let all = &mut e.0[workspace].program.pairs;
        let start = all.len() as u32;
        all.extend(sources);
        start..all.len() as u32
    }

    /// Emits what `root` needs and does not have yet, operands first.
    fn emit(&mut self, e: &mut Emitters, root: Wire, layer: u32) -> Src {
        let e = &mut e.0[self.workspace_of(root)];
        let mut stack = vec![root];
        while let Some(&wire) = stack.last() {
            if !matches!(self.home[wire.0 as usize], Home::Nowhere) {
                stack.pop();
                continue;
            }
            let gate = self.gate(wire).expect("inputs have a home");
            let before = stack.len();
            stack.extend(
                gate.operands()
                    .filter(|o| matches!(self.home[o.0 as usize], Home::Nowhere)),
            );
            if stack.len() > before {
                continue;
            }
            let out = if self.last[wire.0 as usize] > layer {
                Dst::Slot(self.take_slot(wire))
            } else {
                let temp = e.program.temps;
                e.program.temps += 1;
                self.home[wire.0 as usize] = Home::Temp(temp);
                Dst::Temp(temp)
            };
            let src = |w: Wire| self.source(w);
            e.program.code.push(match gate {
                Gate::Add(a, b) => Instr::Add(src(a), src(b), out),
                Gate::Sub(a, b) => Instr::Sub(src(a), src(b), out),
                Gate::Plus(a, c) => Instr::Plus(src(a), c, out),
                Gate::Times(a, c) => Instr::Times(src(a), c, out),
                Gate::Constant(c) => Instr::Constant(c, out),
                Gate::ConstantBit(c) => Instr::Constant(c.into(), out),
                Gate::Mul(..)
                | Gate::Bit(..)
                | Gate::Lift(_)
                | Gate::Raise(_)
                | Gate::Truncate { .. }
                | Gate::Digit { .. }
                | Gate::ShiftRight(..)
                | Gate::Random
                | Gate::Open { .. }
                | Gate::Take(_)
                | Gate::Scale(..) => {
                    unreachable!("products, openings and conversions of before have a home")
                }
            });
            stack.pop();
        }
        self.source(root)
    }

    fn source(&self, wire: Wire) -> Src {
        match self.home[wire.0 as usize] {
            Home::Slot(s) => Src::Slot(s),
            Home::Temp(t) => Src::Temp(t),
            Home::JobWide(u) => Src::JobWide(u),
            Home::Nowhere => unreachable!("operands are emitted first"),
        }
    }
}

/// The programs of a layer: over the circuit's ring, and over bits beside it.
struct Emitters([Emitter; 2]);

impl Emitters {
    fn new(ring: Ring) -> Self {
        Emitters([Emitter::new(ring, 0), Emitter::new(Ring::Bits, 1)])
    }
}

struct Emitter {
    program: Program,
    products: u32,
    sums: u32,
}

impl Emitter {
    fn new(ring: Ring, workspace: usize) -> Self {
        let [slots, job_wide, sums] = REGIONS[workspace];
        let program = Program {
            ring,
            slots,
            job_wide,
            sums,
            temps: 0,
            pairs: vec![],
            code: vec![],
        };
        Emitter {
            program,
            products: 0,
            sums: 0,
        }
    }
}
