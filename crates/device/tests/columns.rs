//! Commands on columns without a program: on any rows, rings, residencies and places, every instruction set does what the reference does, command
//! by command.

use proptest::prelude::*;
use veil_device::{
    ColumnType, Command, Completion, Cpu, Device, Fault, Frame, Isa, Layout, Op, Outcome,
    Reference, Region, Residency, Span, Tag,
};
use veil_math::Ring;

const RINGS: [Ring; 3] = [Ring::Bits, Ring::Z64, Ring::Z128];

/// Regions of each kind, one for each ring: what the host writes, what commands write, what all rows share, and what the host sees.
const IN: u16 = 0;
const WORK: u16 = 3;
const ONE: u16 = 6;
const SEEN: u16 = 9;

/// Columns of a region: of bits as many as an integer has, and some.
const BITS: u32 = 132;
const INTEGERS: u32 = 6;

/// What a command is made of.
#[derive(Clone, Debug)]
struct Draft {
    op: usize,
    ring: usize,
    numbers: [u32; 8],
}

fn layout(rows: u32, work: Residency) -> Layout {
    let region = |residency, column, count| Region {
        residency,
        column,
        components: 2,
        count,
    };
    let count = |ring| if ring == Ring::Bits { BITS } else { INTEGERS };
    let of_rows = |residency| RINGS.map(|r| region(residency, ColumnType::Rows(r), count(r)));
    let ones = RINGS.map(|r| region(Residency::Mapped, ColumnType::One(r), INTEGERS));
    let all = [
        of_rows(Residency::Mapped),
        of_rows(work),
        ones,
        of_rows(Residency::Public),
    ];
    Layout {
        chunk_rows: rows + 5,
        regions: all.concat(),
    }
}

impl Draft {
    /// Number k, below n.
    fn below(&self, k: usize, n: u32) -> u32 {
        self.numbers[k] % n
    }

    /// Columns of a region.
    fn span(&self, layout: &Layout, region: u16, (k, count): (usize, u32)) -> Span {
        let there = layout.regions[usize::from(region)].count;
        Span {
            region,
            component: (self.numbers[k] >> 16 & 1) as u8,
            first: self.below(k, there - count.min(there) + 1),
            count,
        }
    }

    /// Of rows, as the host wrote them or a command did; or of what all rows share.
    fn source(&self, layout: &Layout, ring: usize, of: (usize, u32), shared: bool) -> Span {
        let kind = match self.numbers[of.0] >> 20 & 3 {
            0 if shared => ONE,
            1 => IN,
            _ => WORK,
        };
        self.span(layout, kind + ring as u16, of)
    }

    /// Some are refused.
    fn command(&self, layout: &Layout) -> Command {
        let integer = 1 + self.ring % 2;
        let count = 1 + self.below(7, INTEGERS);
        let to = |ring: usize, count| self.span(layout, WORK + ring as u16, (0, count));
        let bits = RINGS[integer].bits();
        match self.op {
            0 => {
                let n = if self.ring == 0 {
                    1 + self.below(7, BITS)
                } else {
                    count
                };
                let sources = [0, 1, 1, 2, 2, 3, 5, 32][self.below(6, 8) as usize];
                let to = to(self.ring, n);
                let mut src: Vec<Span> = (0..sources)
                    .map(|k| self.source(layout, self.ring, (1 + k % 5, n), false))
                    .collect();
                if let (Some(first), 1) = (src.first_mut(), self.numbers[6] >> 8 & 1) {
                    *first = to;
                }
                let minus = self.numbers[5] & !(self.numbers[6] >> 8 & 1);
                let ring = RINGS[self.ring];
                Command::new(Op::Combine { ring, minus }, src, vec![to])
            }
            1 => {
                let first = self.below(2, bits);
                let few = 1 + self.below(3, 12);
                let most = bits - first;
                let count = if self.numbers[4] & 1 == 1 {
                    few.min(most)
                } else {
                    1 + self.below(3, most)
                };
                let from = self.source(layout, integer, (1, 1), true);
                Command::new(Op::Split { first }, vec![from], vec![to(0, count)])
            }
            2 => {
                let from = self.source(layout, 0, (1, count), false);
                Command::new(Op::Lift, vec![from], vec![to(integer, count)])
            }
            3 => {
                let by = self.below(2, bits);
                let from = self.source(layout, integer, (1, 1), true);
                Command::new(Op::Shift { by }, vec![from], vec![to(integer, 1)])
            }
            4 => {
                let from = [1, 2].map(|k| self.source(layout, integer, (k, count), false));
                Command::new(Op::Scale, from.into(), vec![to(integer, count)])
            }
            5 => {
                let other = 1 + self.below(3, 2) as usize;
                let from = self.source(layout, other, (1, count), true);
                Command::new(Op::Resize, vec![from], vec![to(integer, count)])
            }
            _ => {
                let kind = [WORK, IN, ONE][self.below(5, 3) as usize];
                let factors = 1 + self.below(6, integer as u32) as u16;
                let rings = [factors, factors, integer as u16, integer as u16];
                let of = |k: usize| self.span(layout, kind + rings[k], (1 + k, count));
                let sum = self.span(layout, ONE + integer as u16, (6, 1));
                Command::new(Op::Dot, (0..4).map(of).collect(), vec![sum])
            }
        }
    }
}

/// What becomes of each command, and what the host sees after all of them.
type Seen = (Vec<Result<Outcome, Fault>>, Vec<Vec<u8>>);

/// Does all commands, one by one.
fn run(
    device: &mut dyn Device,
    (layout, rows): (&Layout, u32),
    written: &[Vec<u8>],
    drafts: &[Draft],
) -> Result<Seen, Fault> {
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 3,
        rows,
    };
    // What was in a workspace before is not seen.
    let earlier = device.open(layout, frame)?;
    for region in (IN..WORK).chain(ONE..SEEN) {
        let bytes = layout.bytes(layout.all(region, 0), rows) as usize;
        device.write(earlier, layout.all(region, 1), &vec![0xa5; bytes])?;
    }
    for ring in 0..3 {
        let op = Op::Combine {
            ring: RINGS[usize::from(ring)],
            minus: 0,
        };
        let copy = |from, to| {
            let (from, to) = (layout.all(from, 1), layout.all(to, 0));
            Command::new(op.clone(), vec![from], vec![to])
        };
        let copies = [copy(IN + ring, WORK + ring), copy(IN + ring, SEEN + ring)];
        device.submit(earlier, &copies, Tag(0))?;
        device.poll()?;
    }
    device.close(earlier);
    let workspace = device.open(layout, frame)?;
    let mut bytes = written.iter();
    for region in (IN..WORK).chain(ONE..SEEN) {
        for part in 0..2 {
            let bytes = bytes.next().unwrap();
            device.write(workspace, layout.all(region, part), bytes)?;
        }
    }
    let mut done = Vec::new();
    for draft in drafts {
        let submitted = device.submit(workspace, &[draft.command(layout)], Tag(1));
        let completion = device.poll()?;
        done.push(submitted.map(|()| {
            let Completion { outcome, .. } = completion.unwrap();
            outcome
        }));
    }
    let mut seen = Vec::new();
    for part in 0..2 {
        for ring in 0..3 {
            let (from, to) = (layout.all(WORK + ring, part), layout.all(SEEN + ring, part));
            let op = Op::Combine {
                ring: RINGS[usize::from(ring)],
                minus: 0,
            };
            let copy = Command::new(op, vec![from], vec![to]);
            device.submit(workspace, &[copy], Tag(2))?;
            device.poll()?;
            seen.push(device.view(workspace, to)?.to_vec());
            seen.push(
                device
                    .view(workspace, layout.all(ONE + ring, part))?
                    .to_vec(),
            );
        }
    }
    device.close(workspace);
    Ok((done, seen))
}

fn rows() -> impl Strategy<Value = u32> {
    prop_oneof![
        6 => 1..=300u32,
        1 => Just(0u32),
        1 => prop::sample::select(vec![511, 512, 513, 575, 576, 577, 1024, 1100]),
    ]
}

fn draft() -> impl Strategy<Value = Draft> {
    (0..7usize, 0..3usize, any::<[u32; 8]>()).prop_map(|(op, ring, numbers)| Draft {
        op,
        ring,
        numbers,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn every_instruction_set_does_each_command_as_the_reference(
        rows in rows(),
        resident in any::<bool>(),
        seed in any::<u64>(),
        drafts in prop::collection::vec(draft(), 1..24),
    ) {
        let residency = if resident { Residency::Resident } else { Residency::Public };
        let layout = layout(rows, residency);
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 56) as u8
        };
        let written: Vec<Vec<u8>> = (IN..WORK)
            .chain(ONE..SEEN)
            .flat_map(|region| [0, 1].map(|part| layout.all(region, part)))
            .map(|span| (0..layout.bytes(span, rows)).map(|_| next()).collect())
            .collect();
        let want = run(&mut Reference::default(), (&layout, rows), &written, &drafts);
        for isa in Isa::available() {
            let got = run(&mut Cpu::with(isa), (&layout, rows), &written, &drafts);
            prop_assert_eq!(&got, &want, "{:?}", isa);
        }
    }
}

/// The drafts make commands of all operations that are done, and not only ones that are refused.
#[test]
fn most_commands_are_done() {
    let layout = layout(9, Residency::Resident);
    let mut device = Cpu::detect();
    let frame = Frame {
        epoch: 0,
        lane: 0,
        chunk: 0,
        rows: 9,
    };
    let workspace = device.open(&layout, frame).unwrap();
    for op in 0..7 {
        let mut done = 0;
        for k in 0..300u32 {
            let numbers = std::array::from_fn(|n| {
                (k * 8 + n as u32).wrapping_mul(0x9e37_79b9).rotate_left(11)
            });
            let draft = Draft {
                op,
                ring: k as usize % 3,
                numbers,
            };
            let submitted = device.submit(workspace, &[draft.command(&layout)], Tag(0));
            done += u32::from(submitted.is_ok());
        }
        assert!(done > 100, "operation {op}: {done} of 300 commands");
    }
}
