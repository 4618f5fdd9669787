//! Cases about labels: a random program as the garbler and as the evaluator, with what surrounds it.

use std::sync::Arc;

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};

use super::program;
use super::rings::{JOB_WIDE, JOB_WIDE_REGION, SLOT_REGION, SLOTS, SUM_REGION};
use super::{Difference, ROWS, Seen, SplitMix, compare, expect_done, regions, written};
use crate::{
    ColumnType, Command, Device, Fault, Garbling, KeyId, Layout, Op, PrfCall, Program, ProgramId,
    Reference, Residency, Span, Tag, Workspace,
};

const IN: u16 = 0;
const TABLES: u16 = 4;
const HALVES: u16 = 5;
const BITS_OF_TABLES: u16 = 6;
const BITS: u16 = 7;
const OUT: u16 = 8;
const COLOURS: u16 = 9;
const ONE_BITS: u16 = 10;
const ONE_COLOURS: u16 = 11;
const ONE_OUT: u16 = 12;
/// Most products of a program.
const PRODUCTS: u32 = 64;

const OFFSET: KeyId = KeyId(0);
const LABELS: KeyId = KeyId(1);
const START: KeyId = KeyId(2);
const DICE: KeyId = KeyId(3);

fn layout(chunk_rows: u32) -> Layout {
    let (bits, one) = (ColumnType::Rows(Ring::Bits), ColumnType::One(Ring::Bits));
    let (mapped, resident, public) = (Residency::Mapped, Residency::Resident, Residency::Public);
    let all = [
        (mapped, ColumnType::Labels, 1, SLOTS),
        (resident, ColumnType::Labels, 1, SLOTS),
        (mapped, ColumnType::Label, 1, JOB_WIDE),
        (mapped, ColumnType::Label, 1, 1),
        (mapped, ColumnType::Labels, 1, 2 * PRODUCTS),
        (mapped, ColumnType::Halves, 1, 3 * PRODUCTS),
        (mapped, bits, 1, 5 * PRODUCTS),
        (mapped, bits, 1, SLOTS),
        (public, ColumnType::Labels, 1, SLOTS),
        (mapped, bits, 1, SLOTS),
        (mapped, one, 1, JOB_WIDE),
        (mapped, one, 1, JOB_WIDE),
        (mapped, ColumnType::Label, 1, JOB_WIDE),
    ];
    let layout = regions(chunk_rows, &all);
    debug_assert_eq!(
        [SLOT_REGION, JOB_WIDE_REGION, SUM_REGION],
        [1, 2, 3],
        "regions of the programs"
    );
    layout
}

struct Case {
    scheme: Garbling,
    layout: Layout,
    frame: Frame,
    program: Arc<Program>,
    keys: [Secret; 4],
    first: u64,
    /// Of every mapped region.
    written: Vec<(u16, Vec<u8>)>,
}

/// A random case on `device` and the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    let of = Case::new(rng);
    let want = of.run(&mut Reference::default());
    compare(
        (case, Ring::Bits, &of.layout, of.frame),
        want,
        of.run(device),
    )
}

impl Case {
    fn new(rng: &mut SplitMix) -> Self {
        let rows = match rng.below(4) {
            0 => 1,
            1 => rng.below(20) as u32,
            _ => ROWS[rng.below(ROWS.len())].min(600),
        };
        let layout = layout(rows + rng.below(3) as u32 * 100);
        let written = written(rng, &layout, rows);
        let mut keys = [(); 4].map(|()| rng.bytes(16));
        keys[0][0] |= 1;
        let key = |bytes: Vec<u8>| Secret::new(std::array::from_fn(|k| bytes[k]));
        Case {
            scheme: Garbling::ALL[rng.below(2)],
            frame: Frame {
                epoch: 0,
                lane: rng.next() as u16,
                chunk: rng.next() as u32 >> 1,
                rows,
            },
            program: Arc::new(program::labels(rng)),
            keys: keys.map(key),
            first: rng.next() >> [20, 40, 63][rng.below(3)],
            layout,
            written,
        }
    }

    fn call(&self, key: KeyId, tag: DomainTag) -> PrfCall {
        PrfCall {
            key,
            tag,
            first: self.first,
        }
    }

    fn tables(&self) -> Vec<Span> {
        let products = self.program.products().0;
        let regions: &[u16] = match self.scheme {
            Garbling::HalfGates => &[TABLES],
            Garbling::ThreeHalves => &[HALVES, BITS_OF_TABLES],
        };
        let counts = self.scheme.tables().iter().map(|(_, count)| *count);
        let spans = regions.iter().zip(counts);
        let span = |(region, count): (&u16, u32)| Span {
            count: count * products,
            ..self.layout.all(*region, 0)
        };
        spans.map(span).collect()
    }

    /// Fresh labels beside given ones, the program, and all that is made of its values.
    fn garbler(&self, id: ProgramId) -> Vec<Command> {
        let all = |region| self.layout.all(region, 0);
        let mut random = Command::new(Op::Random, vec![], vec![all(SLOT_REGION)]);
        random.calls = vec![self.call(LABELS, DomainTag::RAND3)];
        let xor = Op::Combine {
            ring: Ring::Bits,
            minus: 0,
        };
        let sources = vec![all(SLOT_REGION), all(IN)];
        let both = Command::new(xor, sources, vec![all(SLOT_REGION)]);
        let op = Op::Garble {
            scheme: self.scheme,
            offset: OFFSET,
        };
        let mut garble = Command::new(op, vec![], self.tables());
        garble.program = Some(id);
        garble.calls = vec![
            self.call(START, DomainTag::GARBLE),
            self.call(DICE, DomainTag::DICE),
        ];
        let encode = |labels, bits, to| {
            let op = Op::Encode { offset: OFFSET };
            Command::new(op, vec![all(labels), all(bits)], vec![all(to)])
        };
        let colour = |from, to| Command::new(Op::Colour, vec![all(from)], vec![all(to)]);
        vec![
            random,
            both,
            garble,
            colour(SLOT_REGION, COLOURS),
            colour(JOB_WIDE_REGION, ONE_COLOURS),
            encode(SLOT_REGION, BITS, OUT),
            encode(JOB_WIDE_REGION, ONE_BITS, ONE_OUT),
            encode(SLOT_REGION, COLOURS, SLOT_REGION),
        ]
    }

    /// Tables that any garbler may have sent.
    fn evaluator(&self, id: ProgramId) -> Vec<Command> {
        let all = |region| self.layout.all(region, 0);
        let copy = |from, to| {
            let op = Op::Combine {
                ring: Ring::Bits,
                minus: 0,
            };
            Command::new(op, vec![all(from)], vec![all(to)])
        };
        let scheme = self.scheme;
        let mut evaluate = Command::new(Op::Evaluate { scheme }, self.tables(), vec![]);
        evaluate.program = Some(id);
        evaluate.calls = vec![self.call(START, DomainTag::GARBLE)];
        vec![copy(IN, SLOT_REGION), evaluate, copy(SLOT_REGION, OUT)]
    }

    fn open(&self, device: &mut dyn Device, chunk: u32) -> Result<Workspace, Fault> {
        let frame = Frame {
            chunk,
            ..self.frame
        };
        let workspace = device.open(&self.layout, frame)?;
        for (region, bytes) in &self.written {
            device.write(workspace, self.layout.all(*region, 0), bytes)?;
        }
        Ok(workspace)
    }

    fn run(&self, device: &mut dyn Device) -> Result<Seen, Fault> {
        device.bind(SessionId([9; 32]));
        for (id, key) in (0..).map(KeyId).zip(&self.keys) {
            device.load_key(id, key)?;
        }
        let id = device.load(&self.program, &self.layout)?;
        let mut seen = Seen::new();
        for (what, commands, chunk) in [
            ("garbling", self.garbler(id), self.frame.chunk),
            ("evaluation", self.evaluator(id), self.frame.chunk + 1),
        ] {
            let workspace = self.open(device, chunk)?;
            device.submit(workspace, &commands, Tag(1))?;
            expect_done(device)?;
            for region in [
                TABLES,
                HALVES,
                BITS_OF_TABLES,
                OUT,
                COLOURS,
                ONE_COLOURS,
                ONE_OUT,
            ] {
                let bytes = device.view(workspace, self.layout.all(region, 0))?;
                seen.push((what, bytes.to_vec()));
            }
            device.close(workspace);
        }
        Ok(seen)
    }
}
