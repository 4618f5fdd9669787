//! From a circuit to layers over slots: the schedule `layers`.
//!
//! Layer k holds the products of multiplicative depth k, and before each product the linear gates that it needs and that were not
//! computed yet, depth first, so that their values are still in registers or the first cache when they are used. A value that is
//! read only in the layer that makes it is a temp; others get a slot, which is free again after the last layer that reads it. A sum
//! of products that nobody else reads is one product: it is masked and sent once.

use veil_circuit::{Circuit, Gate, Per, Reduce, Wire};
use veil_device::{Dst, Instr, Program, Src};

use super::{Gives, OutputPlan, PortPlan, SLOTS, SUMS, UNIFORMS};

/// What the schedule makes of a circuit.
pub(super) struct Schedule {
    pub(super) slots: u32,
    pub(super) uniforms: u32,
    pub(super) sums: u32,
    pub(super) inputs: Vec<PortPlan>,
    pub(super) outputs: Vec<OutputPlan>,
    pub(super) programs: Vec<Program>,
    pub(super) depth: u32,
}

/// Operands of products that are summed.
type Pairs = Vec<(Wire, Wire)>;

/// A product to compute: in which layer, of which pairs.
struct Product {
    layer: u32,
    pairs: Vec<(Wire, Wire)>,
}

/// Where a wire's value is.
#[derive(Clone, Copy)]
enum Home {
    Nowhere,
    Slot(u32),
    Temp(u32),
    Uniform(u32),
}

struct Scheduler<'a> {
    circuit: &'a Circuit,
    /// Whether sums of products are left alone.
    singly: bool,
    inputs: u32,
    /// How many gates and outputs read a wire.
    readers: Vec<u32>,
    /// Layer after which a wire is known: 0 for inputs, k for products of layer k.
    depth: Vec<u32>,
    /// Products by the wire they drive; `None` for wires of other gates and for products that are part of another.
    products: Vec<Option<Product>>,
    /// Layer in which a linear gate is computed.
    computed: Vec<Option<u32>>,
    /// Last layer that reads a wire.
    last: Vec<u32>,
    home: Vec<Home>,
    free: Vec<u32>,
    /// Slots that become free after a layer.
    dying: Vec<Vec<u32>>,
    slots: u32,
}

/// Schedules a validated circuit.
///
/// `once` says of each output port that is only kept, and has one value per job, of which input port it is; a shorter list says so of no
/// further port. If `singly`, every product has one pair of operands: what is proved about products is proved of one each.
pub(super) fn schedule(circuit: &Circuit, once: &[Option<usize>], singly: bool) -> Schedule {
    let inputs = circuit.input_wires();
    let wires = circuit.wires() as usize;
    let mut s = Scheduler {
        circuit,
        singly,
        inputs,
        readers: vec![0; wires],
        depth: vec![0; wires],
        products: (0..wires).map(|_| None).collect(),
        computed: vec![None; wires],
        last: vec![0; wires],
        home: vec![Home::Nowhere; wires],
        free: Vec::new(),
        dying: Vec::new(),
        slots: 0,
    };
    s.count_readers();
    let sums = s.find_products();
    s.run(&sums, once)
}

impl Scheduler<'_> {
    fn gate(&self, wire: Wire) -> Option<Gate> {
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

    /// The pairs of a sum of products, if `wire` is one: a tree of additions whose leaves are products that nobody else reads.
    fn pairs_of(&self, wire: Wire) -> Option<Vec<(Wire, Wire)>> {
        let mut pairs = Vec::new();
        let mut stack = vec![wire];
        while let Some(w) = stack.pop() {
            if w != wire && self.readers[w.0 as usize] != 1 {
                return None;
            }
            match self.gate(w)? {
                Gate::Mul(a, b) => pairs.push((a, b)),
                Gate::Add(a, b) => stack.extend([b, a]),
                _ => return None,
            }
            // A leaf that is not a product is found soon; a tree beyond this size gains nothing from being one product.
            if pairs.len() + stack.len() > 4096 {
                return None;
            }
        }
        Some(pairs)
    }

    /// Finds all products and their layers, and the sums over rows that are products themselves.
    fn find_products(&mut self) -> Vec<Vec<SumTerm>> {
        // From the outputs down, so that the largest sums are found first and their leaves are known to be part of them.
        let mut inner = vec![false; self.readers.len()];
        let mut pairs_at: Vec<Option<Vec<(Wire, Wire)>>> = vec![None; self.readers.len()];
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
                match self.pairs_of(wire).filter(|_| alone) {
                    Some(pairs) => {
                        self.mark_inner(wire, &mut inner);
                        terms.push(SumTerm::Product(pairs));
                    }
                    None => terms.push(SumTerm::Linear(wire)),
                }
            }
            sums.push(terms);
        }
        for index in (0..self.circuit.gates.len()).rev() {
            let wire = self.circuit.gate_wire(index);
            let w = wire.0 as usize;
            if inner[w] || self.readers[w] == 0 {
                continue;
            }
            match self.circuit.gates[index] {
                Gate::Mul(a, b) => pairs_at[w] = Some(vec![(a, b)]),
                Gate::Add(..) if !self.singly => {
                    // An addition that only feeds a larger sum was marked when that one was found.
                    if let Some(pairs) = self.pairs_of(wire) {
                        self.mark_inner(wire, &mut inner);
                        inner[w] = false;
                        pairs_at[w] = Some(pairs);
                    }
                }
                _ => {}
            }
        }
        for index in 0..self.circuit.gates.len() {
            let wire = self.circuit.gate_wire(index);
            let w = wire.0 as usize;
            self.depth[w] = match pairs_at[w].take() {
                Some(pairs) => {
                    let layer = 1 + self.deepest(&pairs);
                    self.products[w] = Some(Product { layer, pairs });
                    layer
                }
                None => self.circuit.gates[index]
                    .operands()
                    .map(|o| self.depth[o.0 as usize])
                    .max()
                    .unwrap_or(0),
            };
        }
        sums
    }

    fn deepest(&self, pairs: &[(Wire, Wire)]) -> u32 {
        pairs
            .iter()
            .flat_map(|(a, b)| [a, b])
            .map(|w| self.depth[w.0 as usize])
            .max()
            .unwrap_or(0)
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

    fn run(mut self, sums: &[Vec<SumTerm>], once: &[Option<usize>]) -> Schedule {
        let passed = |output: usize| once.get(output).copied().flatten();
        // Layers: products by depth; sums that are products right after their operands; the tail last.
        let depth = self
            .products
            .iter()
            .flatten()
            .map(|p| p.layer)
            .max()
            .unwrap_or(0);
        let sum_layer = |s: &Self, t: &SumTerm| match t {
            SumTerm::Product(pairs) => 1 + s.deepest(pairs),
            SumTerm::Linear(_) => 0,
        };
        let deepest_sum = sums
            .iter()
            .flatten()
            .map(|t| sum_layer(&self, t))
            .max()
            .unwrap_or(0);
        let tail = depth.max(deepest_sum) + 1;
        let mut by_layer: Vec<Vec<Wire>> = vec![Vec::new(); tail as usize + 1];
        for (w, product) in self.products.iter().enumerate() {
            if let Some(p) = product {
                by_layer[p.layer as usize].push(Wire(w as u32));
            }
        }
        let mut sums_by_layer: Vec<Vec<(u32, Pairs)>> = vec![Vec::new(); tail as usize + 1];
        let mut linear_sums = Vec::new();
        let mut sum_items = 0;
        for term in sums.iter().flatten() {
            match term {
                SumTerm::Product(pairs) => {
                    sums_by_layer[sum_layer(&self, term) as usize].push((sum_items, pairs.clone()));
                }
                SumTerm::Linear(wire) => linear_sums.push((*wire, sum_items)),
            }
            sum_items += 1;
        }
        let row_outputs: Vec<Wire> = self
            .circuit
            .outputs
            .iter()
            .enumerate()
            .filter(|(k, o)| o.reduce == Reduce::None && passed(*k).is_none())
            .flat_map(|(_, o)| o.wires.clone())
            .collect();

        // Which layer computes each linear gate, and until when each wire is read.
        for layer in 1..=tail {
            let mut roots: Vec<Wire> = Vec::new();
            for w in &by_layer[layer as usize] {
                let product = self.products[w.0 as usize]
                    .as_ref()
                    .expect("listed by layer");
                roots.extend(product.pairs.iter().flat_map(|(a, b)| [*a, *b]));
            }
            roots.extend(
                sums_by_layer[layer as usize]
                    .iter()
                    .flat_map(|(_, p)| p)
                    .flat_map(|(a, b)| [*a, *b]),
            );
            if layer == tail {
                roots.extend(
                    linear_sums
                        .iter()
                        .map(|(w, _)| *w)
                        .chain(row_outputs.iter().copied()),
                );
            }
            for root in roots {
                self.claim(root, layer);
            }
        }

        // Input slots and uniforms.
        let (mut uniforms, mut wire, mut ports) = (0, 0u32, Vec::new());
        for port in &self.circuit.inputs {
            let first = match port.per {
                Per::Row => self.slots,
                Per::Job => uniforms,
            };
            ports.push(PortPlan {
                per: port.per,
                first,
                width: port.width,
            });
            for k in 0..port.width {
                self.home[wire as usize] = match port.per {
                    Per::Row => Home::Slot(first + k),
                    Per::Job => Home::Uniform(first + k),
                };
                wire += 1;
            }
            match port.per {
                Per::Row => self.slots += port.width,
                Per::Job => uniforms += port.width,
            }
        }
        self.dying = vec![Vec::new(); tail as usize + 2];
        for w in 0..self.inputs {
            if let Home::Slot(slot) = self.home[w as usize] {
                self.dying[self.last[w as usize] as usize].push(slot);
            }
        }
        let mut freed = std::mem::take(&mut self.dying[0]);
        self.free.append(&mut freed);

        let mut programs = Vec::new();
        for layer in 1..=tail {
            let mut e = Emitter::new(self.circuit.ring);
            for &w in &by_layer[layer as usize] {
                let pairs = std::mem::take(
                    &mut self.products[w.0 as usize]
                        .as_mut()
                        .expect("listed by layer")
                        .pairs,
                );
                let range = self.operands(&mut e, &pairs, layer);
                let out = self.take_slot(w);
                e.program.code.push(Instr::Product {
                    pairs: range,
                    out,
                    index: e.products,
                });
                e.products += 1;
            }
            for (out, pairs) in &sums_by_layer[layer as usize] {
                let range = self.operands(&mut e, pairs, layer);
                e.program.code.push(Instr::ProductSum {
                    pairs: range,
                    out: *out,
                    index: e.sums,
                });
                e.sums += 1;
            }
            if layer == tail {
                for &(w, out) in &linear_sums {
                    let src = self.emit(&mut e, w, layer);
                    e.program.code.push(Instr::Sum(src, out));
                }
                // Output slots lie side by side, behind all others.
                let first = self.slots;
                self.slots += row_outputs.len() as u32;
                for (k, &w) in row_outputs.iter().enumerate() {
                    let src = self.emit(&mut e, w, layer);
                    e.program
                        .code
                        .push(Instr::Copy(src, Dst::Slot(first + k as u32)));
                }
            }
            // Slots are free for the next layer, not for this one: the values of a layer's products arrive at its end.
            let mut freed = std::mem::take(&mut self.dying[layer as usize]);
            self.free.append(&mut freed);
            programs.push(e.program);
        }
        let mut row_out = self.slots - row_outputs.len() as u32;
        let mut sum_out = 0;
        let outputs = self
            .circuit
            .outputs
            .iter()
            .enumerate()
            .map(|(k, o)| {
                let width = o.wires.len() as u32;
                let (gives, next) = match (o.reduce, passed(k)) {
                    (Reduce::Sum, _) => (Gives::Sum, &mut sum_out),
                    (Reduce::None, None) => (Gives::Row, &mut row_out),
                    (Reduce::None, Some(input)) => {
                        let first = ports[input].first;
                        return OutputPlan {
                            gives: Gives::Once,
                            first,
                            width,
                        };
                    }
                };
                let first = *next;
                *next += width;
                OutputPlan {
                    gives,
                    first,
                    width,
                }
            })
            .collect();
        Schedule {
            slots: self.slots,
            uniforms,
            sums: sum_items,
            inputs: ports,
            outputs,
            programs,
            depth: tail - 1,
        }
    }

    /// Notes that `layer` reads `root`, and computes in it what was not computed before.
    fn claim(&mut self, root: Wire, layer: u32) {
        let mut stack = vec![root];
        while let Some(wire) = stack.pop() {
            let w = wire.0 as usize;
            self.last[w] = self.last[w].max(layer);
            if self.products[w].is_none() && self.computed[w].is_none() && wire.0 >= self.inputs {
                self.computed[w] = Some(layer);
                stack.extend(self.gate(wire).iter().flat_map(Gate::operands));
            }
        }
    }

    fn take_slot(&mut self, wire: Wire) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        self.home[wire.0 as usize] = Home::Slot(slot);
        self.dying[self.last[wire.0 as usize] as usize].push(slot);
        slot
    }

    fn operands(
        &mut self,
        e: &mut Emitter,
        pairs: &[(Wire, Wire)],
        layer: u32,
    ) -> std::ops::Range<u32> {
        let sources: Vec<(Src, Src)> = pairs
            .iter()
            .map(|(a, b)| (self.emit(e, *a, layer), self.emit(e, *b, layer)))
            .collect();
        let start = e.program.pairs.len() as u32;
        e.program.pairs.extend(sources);
        start..e.program.pairs.len() as u32
    }

    /// Emits what `root` needs and does not have yet, operands first.
    fn emit(&mut self, e: &mut Emitter, root: Wire, layer: u32) -> Src {
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
                Gate::Mul(..) => unreachable!("products of earlier layers have a home"),
            });
            stack.pop();
        }
        self.source(root)
    }

    fn source(&self, wire: Wire) -> Src {
        match self.home[wire.0 as usize] {
            Home::Slot(s) => Src::Slot(s),
            Home::Temp(t) => Src::Temp(t),
            Home::Uniform(u) => Src::Uniform(u),
            Home::Nowhere => unreachable!("operands are emitted first"),
        }
    }
}

/// A wire of a summed output.
enum SumTerm {
    Product(Vec<(Wire, Wire)>),
    Linear(Wire),
}

struct Emitter {
    program: Program,
    products: u32,
    sums: u32,
}

impl Emitter {
    fn new(ring: veil_math::Ring) -> Self {
        let program = Program {
            ring,
            slots: SLOTS,
            uniforms: UNIFORMS,
            sums: SUMS,
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
