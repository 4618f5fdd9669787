//! How large and how deep a circuit is.

use std::fmt;

use veil_math::Ring;

use crate::{Circuit, Gate, Per, Wire};

/// Counts of a circuit. `muls` costs bytes and `depth` costs rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stats {
    /// The ring of the circuit.
    pub ring: Ring,
    /// Input wires.
    pub inputs: u64,
    /// Output wires, repeats counted.
    pub outputs: u64,
    /// Wires in all.
    pub wires: u64,
    /// Gates in all.
    pub gates: u64,
    /// `Mul` gates: ANDs in a circuit of bits.
    pub muls: u64,
    /// The products among `muls` that depend on no input of a row: they cost once for the job.
    pub job_muls: u64,
    /// `Add` and `Sub` gates: XORs in a circuit of bits.
    pub adds: u64,
    /// `Plus` gates: NOTs in a circuit of bits.
    pub pluses: u64,
    /// `Times` gates.
    pub times: u64,
    /// `Constant` and `ConstantBit` gates.
    pub constants: u64,
    /// `Bit` and `IsZero` gates: bits that are taken of integers.
    pub bits: u64,
    /// `Lift` gates: bits that are made integers.
    pub lifts: u64,
    /// `ShiftRight` gates.
    pub shifts: u64,
    /// `Random` and `RandomBit` gates.
    pub randoms: u64,
    /// `TruncatePr` gates.
    pub truncations: u64,
    /// `Append` gates: bits of words that are made integers.
    pub appends: u64,
    /// Registers of a sequential circuit.
    pub registers: u64,
    /// Cycles: all other counts are of one.
    pub cycles: u64,
    /// The largest number of `Mul` gates on a path of one cycle: rounds of communication. Conversions between integers and bits come on top; how
    /// many rounds they take depends on the protocol.
    pub depth: u64,
}

impl Stats {
    /// Products over all cycles. Products that depend on no input of a row are made once.
    pub fn total_muls(&self) -> u64 {
        let of_cycles = (self.muls - self.job_muls).saturating_mul(self.cycles);
        self.job_muls.saturating_add(of_cycles)
    }
}

impl Circuit {
    /// Counts gates by kind, and the depth.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats {
            ring: self.ring,
            inputs: u64::from(self.input_wires()),
            outputs: self
                .outputs
                .iter()
                .map(|port| port.wires.len() as u64)
                .sum(),
            wires: u64::from(self.wires()),
            gates: self.gates.len() as u64,
            muls: 0,
            job_muls: 0,
            adds: 0,
            pluses: 0,
            times: 0,
            constants: 0,
            bits: 0,
            lifts: 0,
            shifts: 0,
            randoms: 0,
            truncations: 0,
            appends: 0,
            registers: self.clock.registers.len() as u64,
            cycles: self.clock.cycles,
            depth: self.depths().into_iter().max().unwrap_or(0).into(),
        };
        let per_job = self.wires_per_job();
        for gate in &self.gates {
            match gate {
                Gate::Add(..) | Gate::Sub(..) => stats.adds += 1,
                Gate::Mul(Wire(a), Wire(b)) => {
                    stats.muls += 1;
                    stats.job_muls += u64::from(per_job[*a as usize] && per_job[*b as usize]);
                }
                Gate::Plus(..) => stats.pluses += 1,
                Gate::Times(..) => stats.times += 1,
                Gate::Constant(..) | Gate::ConstantBit(_) => stats.constants += 1,
                Gate::Bit(..) | Gate::IsZero(..) => stats.bits += 1,
                Gate::ShiftRight { .. } => stats.shifts += 1,
                Gate::Lift(_) => stats.lifts += 1,
                Gate::Random(_) | Gate::RandomBit(_) => stats.randoms += 1,
                Gate::TruncatePr { .. } => stats.truncations += 1,
                Gate::Append(..) => stats.appends += 1,
            }
        }
        stats
    }

    /// The largest number of `Mul` gates on a path to each wire, its own gate included: the first round of a cycle after which
    /// the wire can be known.
    pub fn depths(&self) -> Vec<u32> {
        let mut depths = vec![0; self.sources() as usize];
        depths.reserve(self.gates.len());
        for gate in &self.gates {
            let before = gate
                .operands()
                .map(|wire| depths[wire.0 as usize])
                .max()
                .unwrap_or(0);
            depths.push(before + u32::from(matches!(gate, Gate::Mul(..))));
        }
        depths
    }

    /// Which wires have one value for the whole job: wires that depend on no input of a row, and on nothing random.
    pub fn wires_per_job(&self) -> Vec<bool> {
        let mut per_job = Vec::with_capacity(self.wires() as usize);
        for port in &self.inputs {
            per_job.extend(std::iter::repeat_n(
                port.per == Per::Job,
                port.width as usize,
            ));
        }
        per_job.resize(self.sources() as usize, false);
        for gate in &self.gates {
            let value = !gate.is_random() && gate.operands().all(|wire| per_job[wire.0 as usize]);
            per_job.push(value);
        }
        per_job
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mul, add, plus) = match self.ring {
            Ring::Bits => ("AND", "XOR", "NOT"),
            Ring::Z32 | Ring::Z64 | Ring::Z128 => ("products", "sums", "sums with constants"),
        };
        write!(
            f,
            "{} wires, {} gates: {} {mul}, {} {add}, {} {plus}",
            self.wires, self.gates, self.muls, self.adds, self.pluses
        )?;
        if self.times > 0 {
            write!(f, ", {} products with constants", self.times)?;
        }
        if self.constants > 0 {
            write!(f, ", {} constants", self.constants)?;
        }
        if self.bits + self.lifts > 0 {
            write!(
                f,
                ", {} bits of integers, {} bits lifted",
                self.bits, self.lifts
            )?;
        }
        if self.shifts > 0 {
            write!(f, ", {} shifts", self.shifts)?;
        }
        for (count, what) in [
            (self.randoms, "random values"),
            (self.truncations, "probabilistic truncations"),
            (self.appends, "bits of words appended"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        write!(f, "; depth {}", self.depth)?;
        if self.registers > 0 || self.cycles != 1 {
            write!(
                f,
                "; {} registers, {} cycles: {} {mul} in all",
                self.registers,
                self.cycles,
                self.total_muls()
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InputPort, OutputPort, Reduce};

    #[test]
    fn counts_by_hand() {
        let circuit = Circuit {
            ring: Ring::Bits,
            inputs: vec![
                InputPort {
                    name: "x".into(),
                    width: 1,
                    per: Per::Row,
                    bits: false,
                },
                InputPort {
                    name: "k".into(),
                    width: 2,
                    per: Per::Job,
                    bits: false,
                },
            ],
            gates: vec![
                Gate::Mul(Wire(1), Wire(2)), // 3: once for the job
                Gate::Plus(Wire(3), 1),      // 4
                Gate::Mul(Wire(4), Wire(0)), // 5: depth 2
                Gate::Add(Wire(5), Wire(1)), // 6
                Gate::Mul(Wire(0), Wire(0)), // 7: depth 1
                Gate::Constant(1),           // 8
            ],
            outputs: vec![OutputPort {
                name: "z".into(),
                wires: vec![Wire(6), Wire(6)],
                reduce: Reduce::None,
            }],
            clock: crate::Clock::default(),
        };
        circuit.validate().unwrap();
        assert_eq!(circuit.depths(), [0, 0, 0, 1, 1, 2, 2, 1, 0]);
        assert_eq!(
            circuit.stats(),
            Stats {
                ring: Ring::Bits,
                inputs: 3,
                outputs: 2,
                wires: 9,
                gates: 6,
                muls: 3,
                job_muls: 1,
                adds: 1,
                pluses: 1,
                times: 0,
                constants: 1,
                bits: 0,
                lifts: 0,
                shifts: 0,
                randoms: 0,
                truncations: 0,
                appends: 0,
                registers: 0,
                cycles: 1,
                depth: 2,
            }
        );
        assert_eq!(
            circuit.stats().to_string(),
            "9 wires, 6 gates: 3 AND, 1 XOR, 1 NOT, 1 constants; depth 2"
        );
        let mut circuit = circuit;
        circuit.clock = crate::Clock {
            registers: vec![],
            cycles: 5,
        };
        let stats = circuit.stats();
        assert_eq!(stats.total_muls(), 1 + 2 * 5);
        assert!(
            stats
                .to_string()
                .ends_with("; 0 registers, 5 cycles: 11 AND in all")
        );
    }
}
