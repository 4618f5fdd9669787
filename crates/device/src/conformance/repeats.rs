//! Cases about commands that are repeated: random programs as cycles, with windows of inputs, registers and colours. Repeated commands are
//! compared with the reference's, and the columns that live with those of the commands written out.

use std::sync::Arc;

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};

use super::program;
use super::rings::{JOB_WIDE, SLOT_REGION, SLOTS};
use super::{Difference, Seen, SplitMix, compare, expect_done, regions};
use crate::{
    ColumnType, Command, Device, Fault, Garbling, KeyId, Layout, Op, PrfCall, Program, ProgramId,
    Reference, Repeat, Residency, Span, Step, Tag,
};

const IN: u16 = 0;
const TABLES: u16 = 4;
const HALVES: u16 = 5;
const BITS_OF_TABLES: u16 = 6;
const COLOURS: u16 = 7;
const OUT: u16 = 8;
/// Most products of a program, programs of a body, and repetitions.
const PRODUCTS: u32 = 64;
const PROGRAMS: u32 = 2;
const COUNT: u32 = 9;
/// Most slots that a window has for a repetition, or that are coloured, or carried to another place.
const WIDE: u32 = 3;

const OFFSET: KeyId = KeyId(0);
const START: KeyId = KeyId(1);
const DICE: KeyId = KeyId(2);

fn layout(chunk_rows: u32) -> Layout {
    let bits = ColumnType::Rows(Ring::Bits);
    let (mapped, resident, public) = (Residency::Mapped, Residency::Resident, Residency::Public);
    let tables = PRODUCTS * PROGRAMS * COUNT;
    let slots = SLOTS + WIDE * COUNT;
    let all = [
        (mapped, ColumnType::Labels, 1, slots),
        (resident, ColumnType::Labels, 1, slots),
        (mapped, ColumnType::Label, 1, JOB_WIDE),
        (mapped, ColumnType::Label, 1, 1),
        (mapped, ColumnType::Labels, 1, 2 * tables),
        (mapped, ColumnType::Halves, 1, 3 * tables),
        (mapped, bits, 1, 5 * tables),
        (mapped, bits, 1, WIDE * COUNT),
        (public, ColumnType::Labels, 1, slots),
    ];
    regions(chunk_rows, &all)
}

struct Case {
    scheme: Garbling,
    layout: Layout,
    frame: Frame,
    programs: Vec<Arc<Program>>,
    keys: [Secret; 3],
    first: u64,
    written: Vec<(u16, Vec<u8>)>,
    /// Columns that are copied before each repetition, and coloured after it.
    before: Vec<Step>,
    after: Vec<Step>,
    count: u32,
    live: Vec<Span>,
}

/// A random case on `device`, and written out on the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    let of = Case::new(rng);
    let shown = (case, Ring::Bits, &of.layout, of.frame);
    let mut reference = Reference::default();
    let mut run = |how| of.run(&mut reference, how);
    let [written, living, all] = [How::WrittenOut, How::Living, How::All].map(&mut run);
    compare(shown, written, living)?;
    compare(shown, all, of.run(device, How::All))
}

/// How commands are done, and what of the slots is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    WrittenOut,
    Living,
    All,
}

fn span(region: u16, first: u32, count: u32) -> Span {
    Span {
        region,
        component: 0,
        first,
        count,
    }
}

fn copy(from: Span, to: Span) -> Command {
    let op = Op::Combine {
        ring: Ring::Bits,
        minus: 0,
    };
    Command::new(op, vec![from], vec![to])
}

impl Case {
    fn new(rng: &mut SplitMix) -> Self {
        let rows = [1, 1, 2, 5][rng.below(4)];
        let layout = layout(rows + rng.below(2) as u32 * 100);
        let mut written = Vec::new();
        for (index, region) in (0..).zip(&layout.regions) {
            if region.residency == Residency::Mapped {
                let bytes = layout.bytes(layout.all(index, 0), rows) as usize;
                written.push((index, rng.bytes(bytes)));
            }
        }
        let mut keys = [(); 3].map(|()| rng.bytes(16));
        keys[0][0] |= 1;
        let key = |bytes: Vec<u8>| Secret::new(std::array::from_fn(|k| bytes[k]));
        let mut some = |most: u32| rng.below(most as usize) as u32;
        let slots = |some: &mut dyn FnMut(u32) -> u32, from: u32, until: u32| {
            let count = 1 + some(WIDE);
            span(SLOT_REGION, from + some(until - from - count), count)
        };
        let window = slots(&mut some, 0, SLOTS);
        let (from, to) = (slots(&mut some, 0, SLOTS / 2), some(SLOTS / 2 - WIDE));
        let feed = copy(span(SLOT_REGION, SLOTS, window.count), window);
        let carry = copy(from, span(SLOT_REGION, SLOTS / 2 + to, from.count));
        let before = vec![
            Step {
                src: vec![window.count],
                ..Step::still(feed)
            },
            Step::still(carry),
        ];
        let coloured = slots(&mut some, 0, SLOTS);
        let to = span(COLOURS, 0, coloured.count);
        let colour = Step {
            dst: vec![coloured.count],
            ..Step::still(Command::new(Op::Colour, vec![coloured], vec![to]))
        };
        let after = (some(2) == 0).then_some(colour);
        let live = vec![slots(&mut some, 0, SLOTS), slots(&mut some, 0, SLOTS)];
        let (count, programs) = (1 + some(COUNT), 1 + some(PROGRAMS));
        let programs = (0..programs).map(|_| Arc::new(program::labels(rng)));
        let programs = programs.collect();
        Case {
            scheme: Garbling::ALL[usize::from(rng.below(4) == 0)],
            frame: Frame {
                epoch: 0,
                lane: rng.next() as u16,
                chunk: rng.next() as u32 >> 1,
                rows,
            },
            programs,
            keys: keys.map(key),
            first: rng.next() >> [20, 40, 63][rng.below(3)],
            layout,
            written,
            before,
            after: after.into_iter().collect(),
            count,
            live,
        }
    }

    /// The programs, at the garbler or at the evaluator, one behind the other.
    fn programs(&self, ids: &[ProgramId], garbles: bool) -> Vec<Step> {
        let all: u32 = self.programs.iter().map(|p| p.products().0).sum();
        let dice = self.scheme.dice(self.layout.chunk_rows);
        let regions: &[u16] = match self.scheme {
            Garbling::HalfGates => &[TABLES],
            Garbling::ThreeHalves => &[HALVES, BITS_OF_TABLES],
        };
        let counts = self.scheme.tables().iter().map(|(_, count)| *count);
        let kinds: Vec<(u16, u32)> = regions.iter().copied().zip(counts).collect();
        let mut at = 0;
        let mut steps = Vec::new();
        for (program, id) in self.programs.iter().zip(ids) {
            let (products, _) = program.products();
            let tables = kinds.iter();
            let tables = tables.map(|(region, count)| span(*region, count * at, count * products));
            let tables = tables.collect();
            let scheme = self.scheme;
            let mut command = if garbles {
                let offset = OFFSET;
                Command::new(Op::Garble { scheme, offset }, vec![], tables)
            } else {
                Command::new(Op::Evaluate { scheme }, tables, vec![])
            };
            command.program = Some(*id);
            let call = |key, tag, first| PrfCall { key, tag, first };
            let first = self.first + u64::from(at);
            command.calls = vec![call(START, DomainTag::GARBLE, first)];
            let mut calls = vec![u64::from(all)];
            if garbles && dice > 0 {
                let first = self.first + u64::from(at) * dice;
                command.calls.push(call(DICE, DomainTag::DICE, first));
                calls.push(u64::from(all) * dice);
            }
            let moved: Vec<u32> = kinds.iter().map(|(_, count)| count * all).collect();
            let (src, dst) = if garbles {
                (vec![], moved)
            } else {
                (moved, vec![])
            };
            steps.push(Step {
                command,
                src,
                dst,
                calls,
            });
            at += products;
        }
        steps
    }

    fn commands(&self, ids: &[ProgramId], garbles: bool, how: How) -> Vec<Command> {
        let components = [
            self.before.clone(),
            self.programs(ids, garbles),
            self.after.clone(),
        ];
        let repeat = Repeat {
            count: self.count,
            body: components.concat(),
            live: self.live.clone(),
        };
        let all = |region| self.layout.all(region, 0);
        let mut commands = vec![copy(all(IN), all(SLOT_REGION))];
        if how == How::WrittenOut {
            commands.extend(repeat.commands());
        } else {
            let op = Op::Repeat(Arc::new(repeat));
            commands.push(Command::new(op, vec![], vec![]));
        }
        let shown = if how == How::All {
            vec![all(SLOT_REGION)]
        } else {
            self.live.clone()
        };
        commands.extend(shown.into_iter().map(|slots| {
            let to = Span {
                region: OUT,
                ..slots
            };
            copy(slots, to)
        }));
        commands
    }

    fn run(&self, device: &mut dyn Device, how: How) -> Result<Seen, Fault> {
        device.bind(SessionId([9; 32]));
        for (id, key) in (0..).map(KeyId).zip(&self.keys) {
            device.load_key(id, key)?;
        }
        let load = |program| device.load(program, &self.layout);
        let ids = self.programs.iter().map(load);
        let ids: Vec<ProgramId> = ids.collect::<Result<_, _>>()?;
        let mut seen = Seen::new();
        for (what, garbles) in [("repeated garbling", true), ("repeated evaluation", false)] {
            let frame = Frame {
                chunk: self.frame.chunk + u32::from(!garbles),
                ..self.frame
            };
            let workspace = device.open(&self.layout, frame)?;
            for (region, bytes) in &self.written {
                device.write(workspace, self.layout.all(*region, 0), bytes)?;
            }
            let commands = self.commands(&ids, garbles, how);
            device.submit(workspace, &commands, Tag(1))?;
            expect_done(device)?;
            for region in [TABLES, HALVES, BITS_OF_TABLES, COLOURS, OUT] {
                let bytes = device.view(workspace, self.layout.all(region, 0))?;
                seen.push((what, bytes.to_vec()));
            }
            device.close(workspace);
        }
        Ok(seen)
    }
}
