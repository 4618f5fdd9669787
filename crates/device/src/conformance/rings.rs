//! Cases about a layer: a random program over any ring and of any form, with all that surrounds it.

use std::sync::Arc;

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};

use super::program::program;
use super::{Difference, ROWS, Seen, SplitMix, compare, expect_done, regions};
use crate::{
    ColumnType, Command, Cross, Device, Fault, Form, KeyId, Layout, Op, Outcome, PrfCall, Program,
    ProgramId, Reference, Residency, Span, Tag, completion,
};

/// Components of a share: as many as any form has; two where a form is about no more, in half of the cases.
const PARTS: u8 = 3;
/// Messages of a product: as many as any form has.
const MESSAGES: u8 = Form::MOST_CROSSES as u8;
pub(super) const SLOTS: u32 = 24;
pub(super) const JOB_WIDE: u32 = 3;
pub(super) const SUMS: u32 = 4;
const IN: u16 = 0;
pub(super) const SLOT_REGION: u16 = 1;
pub(super) const JOB_WIDE_REGION: u16 = 2;
pub(super) const SUM_REGION: u16 = 3;
const MESSAGE: u16 = 4;
const SUM_MESSAGE: u16 = 5;
const OUT: u16 = 6;
const DIGEST: u16 = 7;
const RANDOM: u16 = 8;
const CODE: u16 = 9;
const BITS: u16 = 10;
const LIFTED: u16 = 11;
const BITS_SEEN: u16 = 12;
/// Columns of bits.
const WORD: u32 = 128;

fn layout(ring: Ring, chunk_rows: u32, (parts, slots): (u8, Residency)) -> Layout {
    let (rows, one, bits) = (
        ColumnType::Rows(ring),
        ColumnType::One(ring),
        ColumnType::Rows(Ring::Bits),
    );
    let lifted = ColumnType::Rows(integers(ring));
    let (mapped, resident, public) = (Residency::Mapped, Residency::Resident, Residency::Public);
    regions(
        chunk_rows,
        &[
            (mapped, rows, parts, SLOTS),
            (slots, rows, parts, SLOTS),
            (mapped, one, parts, JOB_WIDE),
            (mapped, one, parts, SUMS),
            (mapped, rows, MESSAGES, 64),
            (mapped, one, MESSAGES, SUMS),
            (public, rows, parts, SLOTS),
            (mapped, ColumnType::Bytes(32), 1, 2),
            (mapped, rows, 1, 5),
            (mapped, ColumnType::Bytes(16), 1, 1),
            (resident, bits, parts, WORD),
            (public, lifted, parts, 3),
            (public, bits, parts, WORD),
        ],
    )
}

/// The ring of integers that bits are lifted to, beside values of `ring`.
fn integers(ring: Ring) -> Ring {
    if ring == Ring::Bits { Ring::Z64 } else { ring }
}

/// A random case: a program, and what it is run on.
struct Case {
    form: &'static Form,
    parts: u8,
    /// Whether calls that a component keeps are from the key of that component, and told apart by their uses.
    keyed: bool,
    layout: Layout,
    frame: Frame,
    program: Arc<Program>,
    session: SessionId,
    keys: [Secret; Form::MOST_PRF_CALLS],
    /// Per component: of the slots, and of the job-wide values.
    input: Vec<Vec<u8>>,
    ones: Vec<Vec<u8>>,
    /// A peer's messages of products, and of sums.
    received: Vec<Vec<u8>>,
    received_sums: Vec<Vec<u8>>,
    /// Components on which constants act.
    constants: u8,
    /// Component to which received products are added.
    grows: u8,
    /// Columns of a plane that are received, and their bytes; nothing if slots are resident.
    landed: Option<(Span, Vec<u8>)>,
    /// Counter of the first calls.
    first: u64,
    conversions: Vec<Command>,
}

/// A random case on `device` and the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    of_forms(
        device,
        rng,
        case,
        &forms(&[Ring::Bits, Ring::Z64, Ring::Z128]),
    )
}

/// The same over Z_2^32.
pub(super) fn narrow(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    of_forms(device, rng, case, &forms(&[Ring::Z32]))
}

fn of_forms(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
    forms: &[&'static Form],
) -> Result<(), Difference> {
    let of = Case::new(rng, forms);
    let want = of.run(&mut Reference::default());
    let seen = of.run(device);
    // A device may have multipliers for the forms of protocols alone, and says so of another one.
    let refused = matches!(&seen, Err(Fault::Unsupported { what, .. }) if *what == Form::OTHER);
    if refused && !of.form.is_replicated() {
        return Ok(());
    }
    compare((case, of.form.ring, &of.layout, of.frame), want, seen)
}

impl Case {
    fn new(rng: &mut SplitMix, forms: &[&'static Form]) -> Self {
        let form = forms[rng.below(forms.len())];
        let ring = form.ring;
        let rows = ROWS[rng.below(ROWS.len())];
        let parts = if form.fits(2) {
            2 + rng.below(2) as u8
        } else {
            PARTS
        };
        let kept = (0..form.calls()).all(|d| keeper(form, d).is_some());
        let keyed = kept && rng.below(2) == 0;
        let plane = rng.below(2) == 0;
        let slots = if plane {
            Residency::Plane
        } else {
            Residency::Resident
        };
        let layout = layout(ring, rows + rng.below(3) as u32 * 100, (parts, slots));
        let program = Arc::new(program(rng, ring));
        let landed = plane.then(|| {
            let count = 1 + rng.below(5) as u32;
            let span = Span {
                region: SLOT_REGION,
                component: rng.below(parts.into()) as u8,
                first: rng.below((SLOTS - count) as usize) as u32,
                count,
            };
            (span, rng.bytes(layout.bytes(span, rows) as usize))
        });
        let session = SessionId(std::array::from_fn(|_| rng.next() as u8));
        let keys = [(); Form::MOST_PRF_CALLS]
            .map(|()| Secret::new(std::array::from_fn(|_| rng.next() as u8)));
        let mut per_part = |region, parts: u8| -> Vec<Vec<u8>> {
            let bytes = layout.bytes(layout.all(region, 0), rows) as usize;
            (0..parts).map(|_| rng.bytes(bytes)).collect()
        };
        Case {
            parts,
            keyed,
            input: per_part(IN, parts),
            ones: per_part(JOB_WIDE_REGION, parts),
            received: per_part(MESSAGE, 1),
            received_sums: per_part(SUM_MESSAGE, 1),
            constants: rng.below(1 << parts) as u8,
            grows: rng.below(parts.into()) as u8,
            landed,
            frame: Frame {
                epoch: 0,
                lane: rng.next() as u16,
                chunk: rng.next() as u32,
                rows,
            },
            first: rng.next() >> 8,
            conversions: conversions(rng, ring, parts),
            form,
            layout,
            program,
            session,
            keys,
        }
    }

    /// Call `d` of a product.
    fn mask(&self, d: u16, tag: DomainTag) -> PrfCall {
        match keeper(self.form, usize::from(d)) {
            Some(component) if self.keyed => self.call(component.into(), DomainTag(tag.0 | d)),
            _ => self.call(d, tag),
        }
    }

    fn call(&self, key: u16, tag: DomainTag) -> PrfCall {
        PrfCall {
            key: KeyId(key),
            tag,
            first: self.first,
        }
    }

    /// Copies of all components of a region.
    fn copies(&self, from: u16, to: u16) -> impl Iterator<Item = Command> {
        (0..self.parts).map(move |part| {
            let op = Op::Combine {
                ring: self.form.ring,
                minus: 0,
            };
            let (from, to) = (self.layout.all(from, part), self.layout.all(to, part));
            Command::new(op, vec![from], vec![to])
        })
    }

    /// Columns of a plane that are the message of cross term `k`, if they are.
    fn in_plane(&self, k: u8) -> Option<Vec<Span>> {
        let is = self.landed.is_some() && self.form.is_component(k.into());
        let component = self.form.crosses[usize::from(k)].to;
        is.then(|| self.program.products_in_slots(component))
    }

    /// The program, as products if it has any.
    fn products(&self, id: ProgramId) -> Command {
        let form = self.form;
        let messages = [MESSAGE, SUM_MESSAGE].map(|region| {
            let crosses = 0..form.crosses.len() as u8;
            crosses
                .map(|k| match self.in_plane(k) {
                    Some(_) if region == MESSAGE => Span {
                        count: 0,
                        ..self.layout.all(region, k)
                    },
                    _ => self.layout.all(region, k),
                })
                .collect::<Vec<_>>()
        });
        let linear = self.program.products() == (0, 0);
        let op = if linear {
            Op::Linear
        } else {
            Op::Product(form)
        };
        let mut run = Command::new(op, vec![], messages.concat());
        run.program = Some(id);
        run.constants = self.constants;
        if !linear {
            let calls = |tag| (0..form.calls() as u16).map(move |d| self.mask(d, tag));
            run.calls = calls(DomainTag::AND3)
                .chain(calls(DomainTag::SUM3))
                .collect();
        }
        run
    }

    /// What a party computes before it sends.
    fn local(&self, id: ProgramId) -> Vec<Command> {
        let (ring, layout) = (self.form.ring, &self.layout);
        let mut random = Command::new(Op::Random, vec![], vec![layout.all(RANDOM, 0)]);
        random.calls = vec![self.call(0, DomainTag::RAND3)];
        let hash = Command::new(
            Op::Hash { label: 7 },
            vec![layout.all(SLOT_REGION, 0), layout.all(RANDOM, 0)],
            vec![layout.all(DIGEST, 0).column(1)],
        );
        let five = Span {
            count: 5,
            ..layout.all(IN, 0)
        };
        let difference = Command::new(
            Op::Combine { ring, minus: 0b10 },
            vec![layout.all(RANDOM, 0), five],
            vec![layout.all(RANDOM, 0)],
        );
        let mut mac = Command::new(
            Op::Mac,
            vec![layout.all(RANDOM, 0), layout.all(JOB_WIDE_REGION, 1)],
            vec![layout.all(CODE, 0)],
        );
        mac.calls = vec![self.call(1, DomainTag::RAND3)];
        let mut commands: Vec<Command> = self.copies(IN, SLOT_REGION).collect();
        commands.extend([self.products(id), random, hash, difference, mac]);
        let crosses = 0..self.form.crosses.len() as u8;
        let published = crosses.filter_map(|k| self.in_plane(k)).flatten();
        commands.push(Command::new(Op::Publish, published.collect(), vec![]));
        commands
    }

    /// What it computes of what it received.
    fn finish(&self, id: ProgramId) -> Vec<Command> {
        let messages = [MESSAGE, SUM_MESSAGE].map(|region| self.layout.all(region, 0));
        let component = self.grows;
        let mut add = Command::new(Op::AddReceived { component }, messages.to_vec(), vec![]);
        add.program = Some(id);
        let mut commands = vec![add];
        commands.extend(self.copies(SLOT_REGION, OUT));
        commands.extend(self.conversions.iter().cloned());
        commands
    }

    fn run(&self, device: &mut dyn Device) -> Result<Seen, Fault> {
        let layout = &self.layout;
        device.bind(self.session);
        for (id, key) in (0..).map(KeyId).zip(&self.keys) {
            device.load_key(id, key)?;
        }
        let id = device.load(&self.program, layout)?;
        let workspace = device.open(layout, self.frame)?;
        for part in 0..self.parts {
            let k = usize::from(part);
            device.write(workspace, layout.all(IN, part), &self.input[k])?;
            device.write(workspace, layout.all(JOB_WIDE_REGION, part), &self.ones[k])?;
        }
        let mut seen = Seen::new();
        let look = |device: &dyn Device, what, span| -> Result<_, Fault> {
            Ok((what, device.view(workspace, span)?.to_vec()))
        };
        device.submit(workspace, &self.local(id), Tag(1))?;
        expect_done(device)?;
        for k in 0..self.form.crosses.len() as u8 {
            let message = Span {
                count: self.program.products().0,
                ..layout.all(MESSAGE, k)
            };
            for span in self.in_plane(k).unwrap_or(vec![message]) {
                seen.push(look(device, "the message of products", span)?);
            }
            let sums = layout.all(SUM_MESSAGE, k);
            seen.push(look(device, "the message of sums", sums)?);
        }
        let random = layout.all(RANDOM, 0);
        seen.push(look(device, "a combination of random elements", random)?);
        seen.push(look(device, "an authentication code", layout.all(CODE, 0))?);
        let digest = layout.all(DIGEST, 0);
        seen.push(look(device, "a digest", digest.column(1))?);
        device.write(workspace, layout.all(MESSAGE, 0), &self.received[0])?;
        device.write(
            workspace,
            layout.all(SUM_MESSAGE, 0),
            &self.received_sums[0],
        )?;
        if let Some((span, bytes)) = &self.landed {
            device.write(workspace, *span, bytes)?;
        }
        device.submit(workspace, &self.finish(id), Tag(2))?;
        expect_done(device)?;
        for part in 0..self.parts {
            for (what, region) in [
                ("a slot", OUT),
                ("bits of integers", BITS_SEEN),
                ("bits as integers", LIFTED),
                ("a sum", SUM_REGION),
            ] {
                seen.push(look(device, what, layout.all(region, part))?);
            }
        }
        let compare = |a, b| Command::new(Op::CheckEqual, vec![a, b], vec![]);
        let equal = compare(layout.all(OUT, 0), layout.all(SLOT_REGION, 0));
        let unequal = compare(digest.column(0), digest.column(1));
        device.submit(workspace, &[equal, unequal], Tag(3))?;
        let ended = completion(device)?.outcome;
        let found = ended == Outcome::Mismatch { command: 1 };
        seen.push(("a check of equality", vec![u8::from(found)]));
        device.close(workspace);
        Ok(seen)
    }
}

/// The component that keeps call `d` of a product, if one does.
fn keeper(form: &Form, d: usize) -> Option<u8> {
    let mut keeps = form.keeps.iter();
    let kept = keeps.find(|(call, _)| usize::from(*call) == d);
    kept.map(|(_, component)| *component)
}

/// Conversions of values of `ring`, if that has bits: some bits of a column and of what all rows share, and what they are lifted to.
fn conversions(rng: &mut SplitMix, ring: Ring, parts: u8) -> Vec<Command> {
    let one = |region, part, first, count| Span {
        region,
        component: part,
        first,
        count,
    };
    let (part, bits) = (rng.below(parts.into()) as u8, integers(ring).bits());
    let first = rng.below(bits as usize) as u32;
    let count = 1 + rng.below((bits - first) as usize) as u32;
    let to = rng.below((WORD - count + 1) as usize) as u32;
    let seen = one(BITS, part, to, count);
    let split = |from, to| Command::new(Op::Split { first }, vec![from], vec![to]);
    let (column, job_value) = (rng.below(SLOTS as usize), rng.below(JOB_WIDE as usize));
    let other = one(BITS, (part + 1) % parts, to, count);
    let mut commands = Vec::new();
    if ring == Ring::Bits {
        let copy = Op::Combine { ring, minus: 0 };
        let from = one(SLOT_REGION, part, 0, 3);
        commands.push(Command::new(
            copy,
            vec![from],
            vec![one(BITS, part, to.min(WORD - 3), 3)],
        ));
    } else {
        commands.push(split(one(SLOT_REGION, part, column as u32, 1), seen));
        commands.push(split(
            one(JOB_WIDE_REGION, part, job_value as u32, 1),
            other,
        ));
        let sources = [
            one(SLOT_REGION, part, column as u32, 1),
            one(JOB_WIDE_REGION, part, job_value as u32, 1),
        ];
        let (other, by) = ((part + 1) % parts, rng.below(bits as usize) as u32);
        for (k, from) in (0..).zip(sources) {
            let to = one(LIFTED, other, k, 1);
            commands.push(Command::new(Op::Shift { by }, vec![from], vec![to]));
        }
        let second = one(SLOT_REGION, other, rng.below(SLOTS as usize) as u32, 1);
        let to = one(LIFTED, other, 2, 1);
        commands.push(Command::new(Op::Scale, vec![sources[0], second], vec![to]));
    }
    let lifted = 1 + rng.below(3) as u32;
    let from = one(BITS, part, to.min(WORD - lifted), lifted);
    commands.push(Command::new(
        Op::Lift,
        vec![from],
        vec![one(LIFTED, part, 0, lifted)],
    ));
    for part in 0..parts {
        let ring = Ring::Bits;
        let (from, to) = (one(BITS, part, 0, WORD), one(BITS_SEEN, part, 0, WORD));
        let op = Op::Combine { ring, minus: 0 };
        commands.push(Command::new(op, vec![from], vec![to]));
    }
    commands
}

/// Forms that devices may have kernels for, and some of schemes that no protocol has: a device computes them from what they say, or refuses them.
fn forms(rings: &[Ring]) -> Vec<&'static Form> {
    let mut forms = if rings == [Ring::Z32] {
        vec![&NARROW]
    } else {
        vec![&PLAIN, &ODD]
    };
    for &ring in rings {
        forms.push(Form::replicated(ring));
        for (swapped, five) in [(false, false), (false, true), (true, false), (true, true)] {
            forms.push(Form::fourfold(ring, swapped, five));
        }
    }
    forms
}

static PLAIN: Form = plain(Ring::Z64);
static NARROW: Form = plain(Ring::Z32);

const fn plain(ring: Ring) -> Form {
    Form {
        ring,
        crosses: &[Cross {
            terms: &[(1, 1), (0, 1)],
            masks: &[(0, false), (1, true)],
            to: 1,
        }],
        keeps: &[],
    }
}

static ODD: Form = Form {
    ring: Ring::Z128,
    crosses: &[
        Cross {
            terms: &[(2, 0)],
            masks: &[(0, true), (3, false)],
            to: 2,
        },
        Cross {
            terms: &[(0, 1), (1, 0), (2, 2)],
            masks: &[],
            to: 2,
        },
    ],
    keeps: &[(2, 0), (1, 2)],
};
