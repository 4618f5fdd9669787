//! Cases about positions of rows by a digit, and about columns that are lent.

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId, Wiped};

use super::{Difference, ROWS, Seen, SplitMix, compare, regions};
use crate::{
    ColumnType, Command, Device, Fault, Form, KeyId, Layout, Op, PrfCall, Reference, Residency,
    Span, Tag, completion, rank,
};

const RING: Ring = Ring::Z32;
const KEYS: u16 = 3;
/// More rows than a device looks at together.
const MANY: u32 = 40_000;

/// Forms that protocols have, and indicators.
struct Case {
    form: &'static Form,
    digits: u16,
    constants: u8,
    layout: Layout,
    frame: Frame,
    keys: [Secret; KEYS as usize],
    calls: Vec<PrfCall>,
    /// Of each indicator, its components.
    input: Vec<Vec<u8>>,
}

/// A random case on `device` and the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    let rows = match rng.below(100) {
        0 => MANY,
        _ => ROWS[rng.below(ROWS.len())],
    };
    let of = Case::new(rng, rows);
    let want = of.run(&mut Reference::default());
    compare((case, RING, &of.layout, of.frame), want, of.run(device))
}

impl Case {
    fn new(rng: &mut SplitMix, rows: u32) -> Self {
        let form = match rng.below(5) {
            0 => Form::replicated(RING),
            k => Form::fourfold(RING, k & 1 == 1, k > 2),
        };
        let (parts, digits) = (rank::parts(form) as u8, 1 + rng.below(4) as u16);
        let from = [Residency::Lent, Residency::Mapped][rng.below(2)];
        let to = [Residency::Lent, Residency::Public, Residency::Mapped][rng.below(3)];
        let column = ColumnType::Rows(RING);
        let mut shapes = vec![(from, column, parts, 1); usize::from(digits)];
        shapes.extend([(to, column, parts, 1), (to, column, 3, 1)]);
        let layout = regions(rows + rng.below(3) as u32 * 100, &shapes);
        let keys =
            [(); KEYS as usize].map(|()| Secret::new(std::array::from_fn(|_| rng.next() as u8)));
        let calls = (0..form.calls()).map(|k| PrfCall {
            key: KeyId(rng.below(KEYS.into()) as u16),
            tag: DomainTag(DomainTag::joint4(0).0 | k as u16),
            first: rng.next() >> 8,
        });
        let calls = calls.collect();
        let columns = usize::from(digits) * usize::from(parts);
        let input = (0..columns).map(|_| rng.bytes(4 * rows as usize)).collect();
        Case {
            form,
            digits,
            constants: rng.next() as u8,
            layout,
            frame: Frame {
                epoch: 0,
                lane: rng.next() as u16,
                chunk: rng.next() as u32,
                rows,
            },
            keys,
            calls,
            input,
        }
    }

    fn span(region: u16, component: u8) -> Span {
        Span {
            region,
            component,
            first: 0,
            count: 1,
        }
    }

    fn indicators(&self) -> impl Iterator<Item = Span> + use<> {
        let parts = rank::parts(self.form) as u8;
        let digits = 0..self.digits;
        digits.flat_map(move |digit| (0..parts).map(move |part| Case::span(digit, part)))
    }

    fn command(&self) -> Command {
        let written = rank::written(self.form).map(|part| Case::span(self.digits, part as u8));
        let messages = rank::messages(self.form);
        let messages = messages.map(|cross| Case::span(self.digits + 1, cross as u8));
        let dst = written.chain(messages).collect();
        let mut command = Command::new(Op::Rank(self.form), self.indicators().collect(), dst);
        command.constants = self.constants;
        command.calls.clone_from(&self.calls);
        command
    }

    fn run(&self, device: &mut dyn Device) -> Result<Seen, Fault> {
        device.bind(SessionId([7; 32]));
        for (id, key) in (0..).map(KeyId).zip(&self.keys) {
            device.load_key(id, key)?;
        }
        let workspace = device.open(&self.layout, self.frame)?;
        let lent =
            |span: Span| self.layout.regions[usize::from(span.region)].residency == Residency::Lent;
        for (span, bytes) in self.indicators().zip(&self.input) {
            let mut memory = Wiped::from(bytes.clone());
            if !lent(span) || !device.swap(workspace, span, &mut memory)? {
                device.write(workspace, span, bytes)?;
            }
        }
        let command = self.command();
        device.submit(workspace, std::slice::from_ref(&command), Tag(0))?;
        completion(device)?;
        let mut seen = Seen::new();
        for (span, what) in (command.dst.iter().map(|span| (span, "a position")))
            .chain(command.src.iter().map(|span| (span, "an indicator")))
        {
            let mut memory = Wiped::default();
            let bytes = if lent(*span) && device.swap(workspace, *span, &mut memory)? {
                memory.to_vec()
            } else {
                device.view(workspace, *span)?.to_vec()
            };
            seen.push((what, bytes));
        }
        device.close(workspace);
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cpu, Isa};

    #[test]
    fn positions_are_those_of_the_reference() {
        let mut many = 0;
        for seed in 0..300 {
            let mut rng = SplitMix(seed);
            let rows = if seed % 60 == 0 {
                MANY
            } else {
                ROWS[rng.below(ROWS.len())]
            };
            many += u32::from(rows == MANY);
            let of = Case::new(&mut rng, rows);
            let want = of.run(&mut Reference::default());
            for isa in Isa::available() {
                let got = of.run(&mut Cpu::with(isa));
                let of = (seed as u32, RING, &of.layout, of.frame);
                assert_eq!(compare(of, want.clone(), got), Ok(()), "{isa:?}");
            }
        }
        assert_eq!(many, 5);
    }

    /// Three parties' components of positions add up to those of a stable sort.
    #[test]
    fn shares_of_positions_add_up() -> Result<(), Fault> {
        for (rows, digits) in [(1u32, 1u16), (9, 3), (700, 3), (1000, 7)] {
            let mut rng = SplitMix(u64::from(rows));
            let key: Vec<usize> = (0..rows)
                .map(|_| rng.below(usize::from(digits) + 1))
                .collect();
            let mut sorted: Vec<usize> = (0..rows as usize).collect();
            sorted.sort_by_key(|row| key[*row]);
            let mut want = vec![0u32; rows as usize];
            for (position, row) in (0..).zip(&sorted) {
                want[*row] = position;
            }
            // Component c of every indicator.
            let shares: Vec<[Vec<u32>; 3]> = (1..=usize::from(digits))
                .map(|digit| {
                    let mut random = || (0..rows).map(|_| rng.next() as u32).collect();
                    let [a, b]: [Vec<u32>; 2] = [random(), random()];
                    let last = (0..rows as usize).map(|row| {
                        let is = u32::from(key[row] == digit);
                        is.wrapping_sub(a[row]).wrapping_sub(b[row])
                    });
                    let last = last.collect();
                    [a, b, last]
                })
                .collect();
            let keys = [1, 2, 3].map(|k| Secret::new([k; 16]));
            for isa in Isa::available() {
                let mut sum = vec![0u32; rows as usize];
                for me in 0..3 {
                    let mut of = Case::new(&mut SplitMix(1), rows);
                    of.form = Form::replicated(RING);
                    of.digits = digits;
                    // The public 1 is on component 0.
                    of.constants = [0b01, 0b10, 0b00][me];
                    let column = ColumnType::Rows(RING);
                    let shapes = vec![(Residency::Lent, column, 2, 1); usize::from(digits) + 1];
                    of.layout = regions(rows, &shapes);
                    of.frame.chunk = 1;
                    of.frame.lane = 0;
                    of.keys = [me, (me + 2) % 3, 0].map(|k| keys[k].clone());
                    let call = |key| PrfCall {
                        key: KeyId(key),
                        tag: DomainTag::MUL3,
                        first: 0,
                    };
                    of.calls = vec![call(0), call(1)];
                    let held = shares.iter().flat_map(|of| [&of[me], &of[(me + 2) % 3]]);
                    let bytes = held.map(|of| of.iter().flat_map(|x| x.to_le_bytes()).collect());
                    of.input = bytes.collect();
                    let seen = of.run(&mut Cpu::with(isa))?;
                    let own = seen[0].1.as_chunks::<4>().0;
                    for (sum, own) in sum.iter_mut().zip(own) {
                        *sum = sum.wrapping_add(u32::from_le_bytes(*own));
                    }
                }
                assert_eq!(sum, want, "{rows} rows, {digits} digits, {isa:?}");
            }
        }
        Ok(())
    }

    /// Memory that is lent is what comes back, and a column without any is zero.
    #[test]
    fn lent_memory_is_exchanged() -> Result<(), Fault> {
        let column = ColumnType::Words(8);
        let layout = regions(5, &[(Residency::Lent, column, 2, 1)]);
        let frame = Frame {
            epoch: 0,
            lane: 0,
            chunk: 1,
            rows: 5,
        };
        let mut device = Cpu::detect();
        let workspace = device.open(&layout, frame)?;
        let [first, second] = [0, 1].map(|part| Case::span(0, part));
        assert_eq!(device.view(workspace, first)?, [0; 40]);
        let mut memory = Wiped::from(vec![7; 40]);
        let address = memory.as_ptr();
        assert!(device.swap(workspace, first, &mut memory)?);
        assert_eq!(memory[..], [0; 40], "what was looked at");
        let copy = Op::Combine {
            ring: Ring::Bits,
            minus: 0,
        };
        let copy = Command::new(copy, vec![first], vec![second]);
        device.submit(workspace, &[copy], Tag(0))?;
        completion(&mut device)?;
        assert_eq!(device.view(workspace, second)?, [7; 40]);
        let mut out = Wiped::default();
        assert!(device.swap(workspace, first, &mut out)?);
        assert_eq!((&out[..], out.as_ptr()), (&[7; 40][..], address));
        assert!(device.swap(workspace, first, &mut out)?, "back again");
        assert!(out.is_empty(), "nothing was there");
        let mut short = Wiped::from(vec![1; 39]);
        let refused = device.swap(workspace, first, &mut short);
        assert!(matches!(refused, Err(Fault::Shape { .. })), "{refused:?}");
        let scale = Command::new(Op::Scale, vec![first, first], vec![second]);
        let refused = device.submit(workspace, &[scale], Tag(1));
        assert!(matches!(refused, Err(Fault::Shape { .. })), "{refused:?}");
        device.close(workspace);
        Ok(())
    }
}
