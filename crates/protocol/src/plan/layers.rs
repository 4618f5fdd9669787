//! From a circuit to layers over slots: the schedule `layers`.
//!
//! Layer k holds the products of multiplicative depth k, and before each product the linear gates that it needs and that were not computed
//! yet, depth first, so that their values are still in registers or the first cache when they are used. A value that is read only in the
//! layer that makes it is a temp; others get a slot, which is free again after the last layer that reads it. A sum of products that are
//! read only there is one product: it is masked and sent once.
//!
//! A circuit of integers and bits has two programs in a layer, one for each, whose messages move in one round. Conversions (`mixed`) happen
//! when a layer begins, from slots to slots. Random values are drawn there too. Masked openings go with the messages of a layer's products,
//! and have their slots at the same time. So do lifts of bits, in two layers whose rounds follow each other. If a value to be converted is computed
//! by linear gates, they come in a layer before, which has no products then and is no round.
//!
//! Where a round may have no more than so many products in a layer, it has several layers: garbled tables need no answer, and neither party
//! holds more than one layer's tables.
//!
//! Where a round has an order of its own (`list`), every product is a layer until the end.

use std::collections::HashMap;
use std::ops::Deref;

use veil_circuit::schedule::ScheduleError;
use veil_circuit::{Reduce, Wire};
use veil_device::Program;
use veil_math::Ring;

use super::authenticate::Kind;
use super::emit::Home;
use super::list::{self, List};
use super::net::{Circuit, Gate, Net};
use super::slots::Slots;
use super::{ConversionPlan, LiftPlan, MacPlan, OpenedPlan, OutputPlan, PortPlan, TruncationPlan};

/// What the schedule makes of a circuit.
pub(super) struct Schedule {
    pub(super) slots: u32,
    /// Slots of bits, beside those of integers.
    pub(super) bit_slots: u32,
    pub(super) job_wide: u32,
    pub(super) sums: u32,
    pub(super) inputs: Vec<PortPlan>,
    pub(super) outputs: Vec<OutputPlan>,
    pub(super) layers: Vec<Layer>,
    pub(super) depth: u32,
}

/// What a layer computes: conversions, then programs over the circuit's ring and, if it has any to compute, over bits.
pub(super) struct Layer {
    pub(super) program: Program,
    pub(super) bits: Option<Program>,
    pub(super) conversions: Vec<ConversionPlan>,
    pub(super) opened: [OpenedPlan; 2],
    pub(super) lifts: [LiftPlan; 2],
    pub(super) truncations: [Vec<TruncationPlan>; 3],
    pub(super) authenticated: MacPlan,
}

/// Operands of products that are summed. Most products are alone, and then nothing is allocated for them.
#[derive(Clone)]
pub(super) enum Pairs {
    One((Wire, Wire)),
    Several(Vec<(Wire, Wire)>),
}

impl Default for Pairs {
    fn default() -> Self {
        Pairs::Several(Vec::new())
    }
}

impl Deref for Pairs {
    type Target = [(Wire, Wire)];

    fn deref(&self) -> &Self::Target {
        match self {
            Pairs::One(pair) => std::slice::from_ref(pair),
            Pairs::Several(pairs) => pairs,
        }
    }
}

/// A product to compute: in which layer, of which pairs.
pub(super) struct Product {
    pub(super) layer: u32,
    pub(super) pairs: Pairs,
}

/// When a wire can be known: after so many rounds of products, and within a round after so many conversions of what linear gates compute.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Level {
    round: u32,
    step: u32,
}

pub(super) struct Scheduler<'a> {
    pub(super) net: &'a Net,
    pub(super) circuit: &'a Circuit,
    pub(super) how: How,
    pub(super) inputs: u32,
    /// The first inputs, whose slots are never free.
    pub(super) held: u32,
    /// How many gates and outputs read a wire.
    readers: Vec<u32>,
    level: Vec<Level>,
    /// First layer of each round: the last ones before the next have its products.
    starts: Vec<u32>,
    /// How many products each round has.
    widths: Vec<u32>,
    /// Products by the wire they drive; `None` for wires of other gates and for products that are part of another.
    pub(super) products: Vec<Option<Product>>,
    /// Layer in which a linear gate or a conversion is computed.
    pub(super) computed: Vec<Option<u32>>,
    /// Last layer that reads a wire.
    pub(super) last: Vec<u32>,
    pub(super) home: Vec<Home>,
    /// Slots of the circuit's ring, and of bits beside it.
    pub(super) workspaces: [Slots; 2],
}

/// What a protocol wants of layers.
#[derive(Clone)]
pub(super) struct How {
    /// Every product of bits has one pair of operands, and sums of them are left alone: what is proved about products is proved of one each.
    pub(super) singly: bool,
    /// Products of a layer, at most. Those of a round beyond it have layers of their own.
    pub(super) most: u32,
    /// Products of a layer get slots in runs, side by side, in the order of their message.
    pub(super) side_by_side: bool,
    /// The order of products, if it is not that of layers: of bits, which are multiplied singly, and neither converted nor summed over rows.
    pub(super) list: Option<List>,
}

/// Schedules a validated circuit, lowered.
///
/// `once` says of each output port that is only kept, and has one value per job, of which input port it is; a shorter list says so of no
/// further port.
///
/// The slots of the first `held` inputs stay theirs: the layers may be computed again.
///
/// # Errors
/// If there are too many gates for a list.
pub(super) fn schedule(
    net: &Net,
    once: &[Option<usize>],
    how: How,
    held: u32,
) -> Result<Schedule, ScheduleError> {
    let circuit = &net.circuit;
    let inputs = circuit.input_wires();
    let wires = circuit.wires() as usize;
    let side_by_side = how.side_by_side;
    let mut s = Scheduler {
        net,
        circuit,
        how,
        inputs,
        held,
        readers: vec![0; wires],
        level: vec![Level::default(); wires],
        starts: vec![],
        widths: vec![],
        products: (0..wires).map(|_| None).collect(),
        computed: vec![None; wires],
        last: vec![0; wires],
        home: vec![Home::Nowhere; wires],
        workspaces: [Slots::new(side_by_side), Slots::new(side_by_side)],
    };
    s.count_readers();
    let sums = s.find_products();
    let row_outputs: Vec<Wire> = (circuit.outputs.iter().enumerate())
        .filter(|(k, o)| o.reduce == Reduce::None && once.get(*k).copied().flatten().is_none())
        .flat_map(|(_, o)| o.wires.clone())
        .collect();
    let work = s.arrange(&sums, row_outputs)?;
    Ok(s.emit_all(work, once))
}

/// What each layer has to do, and until when values are read.
pub(super) struct Work {
    /// Number of layers: those before and at `tail`, from 1.
    pub(super) tail: u32,
    pub(super) rounds: u32,
    /// Wires of products, by layer.
    pub(super) products: Vec<Vec<Wire>>,
    /// Sums that are products: number of the sum, operands; by layer. Their MACs follow in the same order.
    pub(super) sums: Vec<Vec<(u32, Pairs)>>,
    /// How many of them are MACs.
    pub(super) authenticated_sums: Vec<u32>,
    /// Sums over rows of what is there in the end.
    pub(super) linear_sums: Vec<(Wire, u32)>,
    pub(super) sum_items: u32,
    pub(super) row_outputs: Vec<Wire>,
    /// Wires of conversions, by the layer that they begin.
    pub(super) conversions: Vec<Vec<Wire>>,
    /// Linear gates that conversions of a later layer read, by layer.
    pub(super) feeds: Vec<Vec<Wire>>,
    /// Wires of what is opened, by layer.
    pub(super) opened: Vec<Vec<Wire>>,
    /// Wires of bits that are lifted by messages, by the layer of the first of them; and the layer of the second.
    pub(super) lifts: Vec<(Vec<Wire>, u32)>,
    /// Wires of truncations, by the layer of the first of their messages; and the layers of the second and the third.
    pub(super) truncations: Vec<(Vec<Wire>, [u32; 2])>,
    /// Of truncations, the wires of their bits, each with its number.
    pub(super) digits: HashMap<Wire, Vec<(u32, Wire)>>,
    /// Products and their numbers, one for each layer but the last, where they have an order of their own.
    pub(super) order: Option<Vec<(Wire, u32)>>,
}

impl Scheduler<'_> {
    pub(super) fn gate(&self, wire: Wire) -> Option<Gate> {
        wire.0
            .checked_sub(self.inputs)
            .map(|g| self.circuit.gates[g as usize])
    }

    fn count_readers(&mut self) {
        for gate in &self.circuit.gates {
            gate.operands()
                .for_each(|w| self.readers[w.0 as usize] += 1);
        }
        for wire in self.circuit.outputs.iter().flat_map(|o| &o.wires) {
            self.readers[wire.0 as usize] += 1;
        }
    }

    /// The leaves of a sum of products, if `wire` is one: a tree of additions whose leaves are products that no other gate reads.
    fn leaves_of(&self, wire: Wire) -> Option<Vec<Wire>> {
        let mut leaves = Vec::new();
        let mut stack = vec![wire];
        while let Some(w) = stack.pop() {
            if w != wire && self.readers[w.0 as usize] != 1 {
                return None;
            }
            // MACs are fused where their values are, and not by themselves: who is checked is a value and its MAC.
            if self.net.macs.kind(w).is_some() {
                return None;
            }
            match self.gate(w)? {
                Gate::Mul(..) => leaves.push(w),
                Gate::Add(a, b) => stack.extend([b, a]),
                _ => return None,
            }
            // A leaf that is not a product is found soon; a tree beyond this size gains nothing from being one product.
            if leaves.len() + stack.len() > 4096 {
                return None;
            }
        }
        Some(leaves)
    }

    /// Operands of products.
    fn operands_of(&self, products: &[Wire]) -> Pairs {
        let operands = |wire: &Wire| match self.gate(*wire) {
            Some(Gate::Mul(a, b)) => (a, b),
            _ => unreachable!("a product is one of two operands"),
        };
        match products {
            [product] => Pairs::One(operands(product)),
            products => Pairs::Several(products.iter().map(operands).collect()),
        }
    }

    /// Operands of the MACs of products, if they have MACs.
    fn operands_of_macs(&self, products: &[Wire]) -> Option<Pairs> {
        let macs: Option<Vec<Wire>> = products.iter().map(|w| self.net.macs.of(*w)).collect();
        macs.map(|macs| self.operands_of(&macs))
    }

    /// Finds all products and their layers, and the sums over rows that are products themselves.
    fn find_products(&mut self) -> Vec<Vec<SumTerm>> {
        // From the outputs down, so that the largest sums are found first and their leaves are known to be part of them.
        let mut inner = vec![false; self.readers.len()];
        let mut pairs_at: Vec<Option<Pairs>> = vec![None; self.readers.len()];
        let mut sums = Vec::new();
        for output in self
            .circuit
            .outputs
            .iter()
            .filter(|o| o.reduce == Reduce::Sum)
        {
            let mut terms = Vec::new();
            for &wire in &output.wires {
                let alone = self.readers[wire.0 as usize] == 1;
                match self.leaves_of(wire).filter(|_| alone) {
                    Some(leaves) => {
                        self.mark_inner(wire, &mut inner);
                        let macs = self.operands_of_macs(&leaves);
                        terms.push(SumTerm::Product(self.operands_of(&leaves), macs));
                    }
                    None => terms.push(SumTerm::Linear(wire)),
                }
            }
            sums.push(terms);
        }
        for index in (0..self.circuit.gates.len()).rev() {
            let wire = self.circuit.gate_wire(index);
            let w = wire.0 as usize;
            // MACs are products exactly where what they are of is one.
            let is_mac = self.net.macs.kind(wire) == Some(Kind::Mac);
            if inner[w] || self.readers[w] == 0 || is_mac {
                continue;
            }
            let singly = self.how.singly && self.net.rings[w] == Ring::Bits;
            let leaves = match self.circuit.gates[index] {
                Gate::Mul(..) => vec![wire],
                Gate::Add(..) if !singly => {
                    // An addition that only feeds a larger sum was marked when that one was found.
                    let Some(leaves) = self.leaves_of(wire) else {
                        continue;
                    };
                    self.mark_inner(wire, &mut inner);
                    inner[w] = false;
                    leaves
                }
                _ => continue,
            };
            pairs_at[w] = Some(self.operands_of(&leaves));
            if let Some(mac) = self.net.macs.of(wire) {
                pairs_at[mac.0 as usize] = self.operands_of_macs(&leaves);
            }
        }
        let mut groups: HashMap<u32, Vec<Wire>> = HashMap::new();
        for gate in &self.circuit.gates {
            if let Gate::Open { from, group } = *gate {
                groups.entry(group).or_default().push(from);
            }
        }
        for index in 0..self.circuit.gates.len() {
            let wire = self.circuit.gate_wire(index);
            let w = wire.0 as usize;
            self.level[w] = match (pairs_at[w].take(), self.circuit.gates[index]) {
                (Some(pairs), _) => {
                    // A product and its MAC are in the same round: both operands are known, and a MAC of one.
                    let mac = self.net.macs.of(wire);
                    let mac = mac.and_then(|mac| pairs_at[mac.0 as usize].as_ref());
                    let with_mac = mac.map_or(0, |pairs| self.deepest(pairs));
                    let round = 1 + self.deepest(&pairs).max(with_mac);
                    self.products[w] = Some(Product { layer: 0, pairs });
                    Level { round, step: 0 }
                }
                (None, Gate::Open { group, .. }) => Level {
                    round: 1 + self.ready(&groups[&group]),
                    step: 0,
                },
                (None, gate @ (Gate::Raise(of) | Gate::Truncate { of, .. })) => Level {
                    round: gate.rounds().unwrap_or(0) + self.ready(&[of]),
                    step: 0,
                },
                // They come with the second of the three rounds.
                (None, Gate::Digit { of, .. }) => Level {
                    round: self.level[of.0 as usize].round - 1,
                    step: 0,
                },
                (None, gate) => {
                    let of = gate.operands().map(|from| {
                        let mut level = self.level[from.0 as usize];
                        level.step += u32::from(gate.converts() && !self.is_kept(from));
                        level
                    });
                    of.max().unwrap_or_default()
                }
            };
        }
        sums
    }

    /// Whether a wire's value is in a slot as soon as it is known, or is one that all rows share: not one of a linear gate.
    fn is_kept(&self, wire: Wire) -> bool {
        let made = |gate: Gate| gate.converts() || gate.rounds().is_some();
        self.gate(wire).is_none_or(made) || self.products[wire.0 as usize].is_some()
    }

    /// Rounds until the operands of all pairs are known.
    fn deepest(&self, pairs: &[(Wire, Wire)]) -> u32 {
        self.ready(pairs.iter().flat_map(|(a, b)| [a, b]))
    }

    /// Rounds until all of these are known.
    fn ready<'w>(&self, wires: impl IntoIterator<Item = &'w Wire>) -> u32 {
        let rounds = wires.into_iter().map(|w| self.level[w.0 as usize].round);
        rounds.max().unwrap_or(0)
    }

    fn mark_inner(&self, wire: Wire, inner: &mut [bool]) {
        let mut stack = vec![wire];
        while let Some(w) = stack.pop() {
            inner[w.0 as usize] = true;
            if let Some(Gate::Add(a, b)) = self.gate(w) {
                stack.extend([a, b]);
            }
        }
    }

    /// Gives every round its layers.
    fn number_layers(&mut self, rounds: u32) {
        let mut steps = vec![0; rounds as usize + 1];
        for index in 0..self.circuit.gates.len() {
            let wire = self.circuit.gate_wire(index);
            if self.circuit.gates[index].converts() {
                let level = self.level[wire.0 as usize];
                let of = &mut steps[level.round as usize];
                *of = level.step.max(*of);
            }
        }
        self.widths = vec![0; rounds as usize + 1];
        for (level, _) in self
            .level
            .iter()
            .zip(&self.products)
            .filter(|(_, p)| p.is_some())
        {
            // Those that are known after a round are computed in the one before.
            self.widths[level.round as usize - 1] += 1;
        }
        let mut next = 1;
        self.starts = vec![];
        for (of, width) in steps.into_iter().zip(&self.widths) {
            self.starts.push(next);
            next += of + width.div_ceil(self.how.most).max(1);
        }
        self.starts.push(next);
    }

    /// The layer of product `number` of those whose operands are known after `round` rounds.
    fn layer_of(&self, round: u32, number: u32) -> u32 {
        let layers = self.widths[round as usize].div_ceil(self.how.most);
        self.starts[round as usize + 1] - layers + number / self.how.most
    }

    /// The last layer of products whose operands are known after `round` rounds.
    fn layer_after(&self, round: u32) -> u32 {
        self.starts[round as usize + 1] - 1
    }

    /// Which layer computes what: products by depth; sums that are products right after their operands; what is linear where it is first
    /// needed; the tail last.
    fn arrange(
        &mut self,
        sums: &[Vec<SumTerm>],
        row_outputs: Vec<Wire>,
    ) -> Result<Work, ScheduleError> {
        let of_products = (0..self.products.len())
            .filter(|w| self.products[*w].is_some())
            .map(|w| self.level[w].round);
        let of_sums = sums.iter().flatten().map(|term| match term {
            SumTerm::Product(pairs, macs) => {
                1 + self
                    .deepest(macs.as_ref().unwrap_or(pairs))
                    .max(self.deepest(pairs))
            }
            SumTerm::Linear(_) => 0,
        });
        let of_others = (0..self.level.len()).filter(|w| self.arrives(Wire(*w as u32)));
        let of_others = of_others.map(|w| self.level[w].round);
        let rounds = of_products.chain(of_sums).chain(of_others);
        let rounds = rounds.max().unwrap_or(0);
        self.number_layers(rounds);
        let order = self.listed(&row_outputs)?;
        let tail = match &order {
            Some(order) => order.len() as u32 + 1,
            None => self.layer_after(rounds),
        };
        let lists = tail as usize + 1;
        let mut work = Work {
            tail,
            rounds,
            products: vec![Vec::new(); lists],
            sums: vec![Vec::new(); lists],
            authenticated_sums: vec![0; lists],
            linear_sums: Vec::new(),
            sum_items: 0,
            row_outputs,
            conversions: vec![Vec::new(); lists],
            feeds: vec![Vec::new(); lists],
            opened: vec![Vec::new(); lists],
            lifts: vec![(Vec::new(), 0); lists],
            truncations: vec![(Vec::new(), [0; 2]); lists],
            digits: HashMap::new(),
            order: None,
        };
        let mut numbers = vec![0; rounds as usize + 1];
        let places = order.as_ref().map(|order| {
            let mut places = vec![0; self.products.len()];
            for ((wire, _), layer) in order.iter().zip(1..) {
                places[wire.0 as usize] = layer;
            }
            places
        });
        for w in 0..self.products.len() {
            let round = self.level[w].round.saturating_sub(1);
            let layer = match &places {
                Some(places) if self.products[w].is_some() => places[w],
                None if self.products[w].is_some() => {
                    let number = &mut numbers[round as usize];
                    *number += 1;
                    self.layer_of(round, *number - 1)
                }
                _ => self.layer_after(round),
            };
            if let Some(p) = &mut self.products[w] {
                p.layer = layer;
                work.products[layer as usize].push(Wire(w as u32));
                // A product without a reader is in its slot until it has arrived.
                self.last[w] = self.last[w].max(layer);
            } else if self.is_opened(Wire(w as u32)) {
                work.opened[layer as usize].push(Wire(w as u32));
            } else if let Some(Gate::Digit { of, at }) = self.gate(Wire(w as u32)) {
                let digits = work.digits.entry(of).or_default();
                digits.push((at, Wire(w as u32)));
                self.last[w] = self.last[w].max(layer);
            } else if let Some(Gate::Truncate { .. }) = self.gate(Wire(w as u32)) {
                let [first, second] = [3, 2].map(|of| self.layer_after(self.level[w].round - of));
                let (wires, later) = &mut work.truncations[first as usize];
                wires.push(Wire(w as u32));
                *later = [second, layer];
                self.last[w] = self.last[w].max(layer);
            } else if self.arrives(Wire(w as u32)) {
                let first = self.layer_after(self.level[w].round - 2);
                let (lifts, second) = &mut work.lifts[first as usize];
                lifts.push(Wire(w as u32));
                *second = layer;
                // It is in its slot until it has arrived, as a product.
                self.last[w] = self.last[w].max(layer);
            }
        }
        let mut macs_of_sums = Vec::new();
        for term in sums.iter().flatten() {
            match term {
                SumTerm::Product(pairs, macs) => {
                    let with_mac = macs.as_ref().map_or(0, |macs| self.deepest(macs));
                    let layer = self.layer_after(self.deepest(pairs).max(with_mac));
                    let of_macs = macs.iter().flat_map(|macs| macs.iter());
                    for (a, b) in pairs.iter().chain(of_macs) {
                        self.read(*a, layer, layer);
                        self.read(*b, layer, layer);
                    }
                    work.sums[layer as usize].push((work.sum_items, pairs.clone()));
                    macs_of_sums.extend(macs.clone().map(|macs| (layer, macs)));
                }
                SumTerm::Linear(wire) => {
                    self.read(*wire, tail, tail);
                    work.linear_sums.push((*wire, work.sum_items));
                }
            }
            work.sum_items += 1;
        }
        for (layer, macs) in macs_of_sums {
            work.authenticated_sums[layer as usize] += 1;
            work.sums[layer as usize].push((work.sum_items, macs));
            work.sum_items += 1;
        }
        for &wire in &work.row_outputs {
            self.read(wire, tail, tail);
        }
        self.place_gates(&mut work);
        work.order = order;
        Ok(work)
    }

    /// Products in the order that is wanted instead of that of layers, with their numbers.
    fn listed(&self, row_outputs: &[Wire]) -> Result<Option<Vec<(Wire, u32)>>, ScheduleError> {
        let Some(list) = &self.how.list else {
            return Ok(None);
        };
        let mut needed: Vec<bool> = self.products.iter().map(Option::is_some).collect();
        for wire in row_outputs {
            needed[wire.0 as usize] = true;
        }
        for index in (0..self.circuit.gates.len()).rev() {
            if needed[self.circuit.gate_wire(index).0 as usize] {
                for wire in self.circuit.gates[index].operands() {
                    needed[wire.0 as usize] = true;
                }
            }
        }
        list::order(self.circuit, &needed, list).map(Some)
    }

    /// From the last gate to the first: the readers of a gate are placed before it.
    fn place_gates(&mut self, work: &mut Work) {
        for index in (0..self.circuit.gates.len()).rev() {
            let wire = self.circuit.gate_wire(index);
            let w = wire.0 as usize;
            if let Some(p) = &self.products[w] {
                let (layer, pairs) = (p.layer, p.pairs.clone());
                for &(a, b) in pairs.iter() {
                    self.read(a, layer, layer);
                    self.read(b, layer, layer);
                }
                continue;
            }
            let gate = self.circuit.gates[index];
            if let (Some(rounds), Some(from)) = (gate.rounds(), gate.operands().next()) {
                let layer = self.layer_after(self.level[w].round - rounds);
                self.read(from, layer, layer);
                continue;
            }
            let Some(layer) = self.computed[w] else {
                continue;
            };
            if !gate.converts() {
                gate.operands().for_each(|o| self.read(o, layer, layer));
                continue;
            }
            work.conversions[layer as usize].push(wire);
            for from in gate.operands() {
                if self.is_kept(from) {
                    self.read(from, layer, layer);
                } else {
                    self.read(from, layer - 1, layer);
                    work.feeds[layer as usize - 1].push(from);
                }
            }
        }
        for list in work.conversions.iter_mut().chain(&mut work.feeds) {
            list.reverse();
        }
    }

    /// Notes that `layer` reads a wire, which must have been computed by layer `by`.
    fn read(&mut self, wire: Wire, by: u32, layer: u32) {
        let w = wire.0 as usize;
        self.last[w] = self.last[w].max(layer);
        if self.products[w].is_none() && wire.0 >= self.inputs && !self.arrives(wire) {
            let computed = self.computed[w].unwrap_or(by);
            self.computed[w] = Some(computed.min(by));
        }
    }

    /// Which of the workspaces has a wire's slots.
    pub(super) fn workspace_of(&self, wire: Wire) -> usize {
        let ring = self.net.rings[wire.0 as usize];
        usize::from(ring != self.circuit.ring && ring == Ring::Bits)
    }

    /// Whether a wire's value comes with messages other than those of products.
    fn arrives(&self, wire: Wire) -> bool {
        self.gate(wire).is_some_and(|gate| gate.rounds().is_some())
    }

    /// Whether a wire's value is opened to all parties.
    fn is_opened(&self, wire: Wire) -> bool {
        matches!(self.gate(wire), Some(Gate::Open { .. }))
    }
}

/// A wire of a summed output.
enum SumTerm {
    /// With the operands of its MAC, if it has one.
    Product(Pairs, Option<Pairs>),
    Linear(Wire),
}
