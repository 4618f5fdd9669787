//! Sequential circuits: the circuit of one cycle, whose layers are repeated, and the copies between cycles.
//!
//! The planner sees a circuit without registers. Wires that differ from cycle to cycle, inputs and registers, belong to one more input
//! port, the *sources*; the registers' next values are one more output port. Before a cycle, the next values of the cycle before it are
//! copied into the sources, all at once: a register may take the value of another register. Inputs of every cycle are shared for a *window*
//! of cycles at once, and copied from there. So neither the plan nor the memory of inputs and registers depends on the number of cycles;
//! only outputs of every cycle do, which are shares until all cycles are checked (rule R2).

use std::ops::Range;

use veil_circuit::{Circuit, Clock, Initial, InputPort, OutputPort, Per, Reduce, Wire};
use veil_device::{Dst, Instr, Program, Src};
use veil_math::Ring;

use super::layers::Schedule;
use super::{Gives, JOB_WIDE, OutputPlan, PlanError, PortPlan, SLOTS, SUMS};

/// Wires of inputs of every cycle that are shared at once, if a cycle does not have more and the protocol does not say how many.
const WINDOW: u64 = 256;

/// Slots that a row's outputs of all cycles may take.
const MOST_KEPT: u64 = 1 << 28;

/// The cycles of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CyclesPlan {
    /// How often the layers are computed.
    pub count: u64,
    /// Cycles whose inputs are shared at once.
    pub window: u64,
    /// Of each input port with a value in every cycle: first slot of a window of them, first slot of the cycle's, wires of a cycle.
    pub inputs: Vec<(u32, u32, u32)>,
    /// Registers: first slot of their next values, first slot of their values, how many there are.
    pub registers: (u32, u32, u32),
    /// Index in [`Plan::programs`](super::Plan::programs) of what gives registers their first values.
    pub initial: usize,
    /// Of each output port with a value in every cycle: first slot of the cycle's, first slot of all cycles', wires of a cycle. Garbled
    /// circuits without masks have no slots for all cycles: parties keep their shares of these outputs, bits, in the place where they are opened.
    pub outputs: Vec<(u32, u32, u32)>,
    /// Counters that a cycle takes of every use.
    pub counters: u64,
}

/// One cycle of a circuit.
pub(super) struct Step {
    /// The circuit of the cycle. Its last input port is the sources, its last output port what registers take next.
    pub(super) circuit: Circuit,
    /// Input wires before the sources, whose values are needed in all cycles.
    pub(super) held: u32,
    window: u64,
}

impl Step {
    /// One cycle of `circuit`, whose inputs are shared for a window of so many cycles; nothing if it is not sequential.
    pub(super) fn of(circuit: &Circuit, window: Option<u64>) -> Option<Self> {
        circuit.is_sequential().then(|| Self::cut(circuit, window))
    }

    fn cut(circuit: &Circuit, window: Option<u64>) -> Self {
        let clock = &circuit.clock;
        let each = circuit.inputs.iter().filter(|port| port.per == Per::Cycle);
        let each: u32 = each.map(|port| port.width).sum();
        let window = window.unwrap_or(WINDOW / u64::from(each.max(1)));
        let window = window.clamp(1, clock.cycles);
        let widened = |port: &InputPort| InputPort {
            width: match port.per {
                Per::Cycle => port.width.saturating_mul(window as u32),
                Per::Row | Per::Job => port.width,
            },
            ..port.clone()
        };
        let mut inputs: Vec<InputPort> = circuit.inputs.iter().map(widened).collect();
        let held: u32 = inputs.iter().map(|port| port.width).sum();
        let registers = clock.registers.len() as u32;
        inputs.push(InputPort {
            name: "sources".into(),
            width: each + registers,
            per: Per::Row,
            bits: false,
        });
        // Where each wire of the original is now.
        let (mut now, mut first, mut source) = (Vec::new(), 0, held);
        for (port, wide) in circuit.inputs.iter().zip(&inputs) {
            let from = if port.per == Per::Cycle {
                source
            } else {
                first
            };
            now.extend((0..port.width).map(|k| Wire(from + k)));
            source += if port.per == Per::Cycle {
                port.width
            } else {
                0
            };
            first += wide.width;
        }
        now.extend((0..registers).map(|k| Wire(source + k)));
        let behind = held + each + registers;
        now.extend((0..circuit.gates.len() as u32).map(|k| Wire(behind + k)));
        let at = |wire: Wire| now[wire.0 as usize];
        let mut outputs: Vec<OutputPort> = (circuit.outputs.iter())
            .map(|port| OutputPort {
                name: port.name.clone(),
                wires: port.wires.iter().map(|wire| at(*wire)).collect(),
                // Of this cycle.
                reduce: Reduce::None,
            })
            .collect();
        outputs.push(OutputPort {
            name: "next".into(),
            wires: clock.registers.iter().map(|r| at(r.next)).collect(),
            reduce: Reduce::None,
        });
        let gates = circuit.gates.iter().map(|gate| gate.map_operands(at));
        let step = Circuit {
            ring: circuit.ring,
            inputs,
            gates: gates.collect(),
            outputs,
            clock: Clock::default(),
        };
        Step {
            circuit: step,
            held,
            window,
        }
    }

    /// The input wires that have the values of registers: the last of the sources.
    pub(super) fn registers(&self) -> Range<u32> {
        let sources = self.circuit.inputs.last().map_or(0, |port| port.width);
        let next = self
            .circuit
            .outputs
            .last()
            .map_or(0, |port| port.wires.len());
        let end = self.held + sources;
        end - next as u32..end
    }

    /// What a cycle moves, of the schedule of its circuit, from which the sources and the next values are taken. The program of the first
    /// values comes with it. Outputs of every cycle are kept in slots, unless they have `colours`, which are kept instead.
    pub(super) fn plan(
        &self,
        circuit: &Circuit,
        colours: bool,
        schedule: &mut Schedule,
    ) -> Result<(CyclesPlan, Program), PlanError> {
        let clock = &circuit.clock;
        let sources = schedule.inputs.pop().expect("sources are the last port");
        let next = schedule.outputs.pop().expect("next values are the last");
        let (mut inputs, mut source) = (Vec::new(), sources.first);
        for (port, wide) in circuit.inputs.iter().zip(&schedule.inputs) {
            if port.per == Per::Cycle {
                inputs.push((wide.first, source, port.width));
                source += port.width;
            }
        }
        let registers = (next.first, source, clock.registers.len() as u32);
        let initial = initial(circuit, &schedule.inputs, registers);
        let (mut outputs, mut kept) = (Vec::new(), schedule.slots);
        for (port, output) in circuit.outputs.iter().zip(&mut schedule.outputs) {
            if port.reduce == Reduce::EveryCycle {
                let width = port.value_width(clock.cycles);
                if u64::from(kept).saturating_add(width) > MOST_KEPT {
                    return Err(PlanError::TooManyKept { width });
                }
                outputs.push((output.first, kept, output.width));
                *output = OutputPlan {
                    bits: false,
                    gives: Gives::Row,
                    first: kept,
                    width: width as u32,
                };
                kept += width as u32;
            }
        }
        if !colours {
            schedule.slots = kept;
        }
        let plan = CyclesPlan {
            count: clock.cycles,
            window: self.window,
            inputs,
            registers,
            initial: 0,
            outputs,
            counters: 0,
        };
        Ok((plan, initial))
    }
}

/// The program that gives registers their first values: constants, and inputs with one value for all cycles.
fn initial(circuit: &Circuit, ports: &[PortPlan], (_, first, _): (u32, u32, u32)) -> Program {
    let mut places = Vec::new();
    for (port, place) in circuit.inputs.iter().zip(ports) {
        places.extend((0..port.width).map(|k| match port.per {
            Per::Row | Per::Cycle => Src::Slot(place.first + k),
            Per::Job => Src::JobWide(place.first + k),
        }));
    }
    let registers = (first..).zip(&circuit.clock.registers);
    let code = registers.map(|(slot, register)| match register.initial {
        Initial::Constant(bit) => Instr::Constant(bit.into(), Dst::Slot(slot)),
        Initial::Wire(wire) => Instr::Copy(places[wire.0 as usize], Dst::Slot(slot)),
    });
    Program {
        ring: Ring::Bits,
        slots: SLOTS,
        job_wide: JOB_WIDE,
        sums: SUMS,
        temps: 0,
        pairs: vec![],
        code: code.collect(),
    }
}
