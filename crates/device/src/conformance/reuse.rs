//! Cases about workspaces that serve one chunk after the other: columns that the host names are zero in the next one, or as they were, wherever they stay, and what is drawn is
//! drawn for the next one. A device that reuses none opens another one.

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};

use super::{Difference, ROWS, Seen, SplitMix, compare, expect_done, regions};
use crate::{
    ColumnType, Command, Device, Fault, KeyId, Layout, Op, PrfCall, Reference, Residency, Span, Tag,
};

const ITEMS: u32 = 4;
const PLANE: u16 = 0;
const KEPT: u16 = 1;
const MAPPED: u16 = 2;
const OUT: u16 = 3;

struct Case {
    ring: Ring,
    layout: Layout,
    frames: [Frame; 2],
    key: Secret,
    /// What the host writes for the first chunk: to the plane, and to what is mapped.
    input: Vec<Vec<u8>>,
    /// What is zero where the second one begins, in each of the three.
    zeros: [Span; 3],
    /// Columns of what stays that are as they were there.
    kept: Span,
}

/// A random case on `device` and the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    let of = Case::new(rng);
    let want = of.run(&mut Reference::default());
    let got = of.run(device);
    compare((case, of.ring, &of.layout, of.frames[1]), want, got)
}

impl Case {
    fn new(rng: &mut SplitMix) -> Self {
        let ring = [Ring::Bits, Ring::Z64, Ring::Z128][rng.below(3)];
        let (rows, column) = (ROWS[rng.below(ROWS.len())], ColumnType::Rows(ring));
        let layout = regions(
            rows + rng.below(3) as u32 * 100,
            &[
                (Residency::Plane, column, 2, ITEMS),
                (Residency::Resident, column, 2, ITEMS),
                (Residency::Mapped, column, 2, ITEMS),
                (Residency::Public, column, 1, 3 * ITEMS),
            ],
        );
        let chunk = rng.next() as u32 >> 1;
        let frames = [0, 1].map(|next| Frame {
            epoch: 0,
            lane: 3,
            chunk: chunk + next,
            rows,
        });
        let zeros = [PLANE, KEPT, MAPPED].map(|region| {
            let count = 1 + rng.below(ITEMS as usize) as u32;
            Span {
                region,
                component: rng.below(2) as u8,
                first: rng.below((ITEMS - count + 1) as usize) as u32,
                count,
            }
        });
        // The other component.
        let kept = Span {
            component: 1 - zeros[1].component,
            ..zeros[1]
        };
        let all = [PLANE, MAPPED].map(|region| layout.bytes(layout.all(region, 0), rows) as usize);
        let keep = column.padding(rows);
        let input = all.iter().flat_map(|bytes| [*bytes; 2]).map(|bytes| {
            let mut bytes = rng.bytes(bytes);
            let column = column.bytes(rows).max(1) as usize;
            bytes.chunks_mut(column).for_each(|column| {
                *column.last_mut().expect("a chunk is not empty") &= keep;
            });
            bytes
        });
        Case {
            ring,
            key: Secret::new([7; 16]),
            input: input.collect(),
            layout,
            frames,
            zeros,
            kept,
        }
    }

    /// Draws into a column of what stays.
    fn drawn(to: Span) -> Command {
        let mut command = Command::new(Op::Random, vec![], vec![to]);
        command.calls = vec![PrfCall {
            key: KeyId(0),
            tag: DomainTag::RAND3,
            first: u64::from(to.component) << 32,
        }];
        command
    }

    /// Shows what stays.
    fn shown(&self, from: Span, first: u32) -> Command {
        let to = Span {
            region: OUT,
            component: 0,
            first,
            count: from.count,
        };
        let op = Op::Combine {
            ring: self.ring,
            minus: 0,
        };
        Command::new(op, vec![from], vec![to])
    }

    fn run(&self, device: &mut dyn Device) -> Result<Seen, Fault> {
        let (layout, [first, second]) = (&self.layout, self.frames);
        let all = |region| [0, 1].map(|component| layout.all(region, component));
        device.bind(SessionId([5; 32]));
        device.load_key(KeyId(0), &self.key)?;
        let mut workspace = device.open(layout, first)?;
        let places = all(PLANE).into_iter().chain(all(MAPPED));
        for (place, bytes) in places.zip(&self.input) {
            device.write(workspace, place, bytes)?;
        }
        let fill = all(KEPT).map(Self::drawn);
        device.submit(workspace, &fill, Tag(1))?;
        expect_done(device)?;
        let out = |first, count| Span {
            region: OUT,
            component: 0,
            first,
            count,
        };
        let looked = |device: &mut dyn Device, workspace| -> Result<Vec<u8>, Fault> {
            let batch = [self.shown(self.kept, 2 * ITEMS)];
            device.submit(workspace, &batch, Tag(2))?;
            expect_done(device)?;
            let shown = out(2 * ITEMS, self.kept.count);
            Ok(device.view(workspace, shown)?.to_vec())
        };
        let before = looked(device, workspace)?;
        let mut stayed = true;
        if device.reuse(workspace, second, (&self.zeros, &[self.kept]))? {
            stayed = looked(device, workspace)? == before;
        } else {
            device.close(workspace);
            workspace = device.open(layout, second)?;
        }
        let [plane, kept, mapped] = self.zeros;
        let batch = [
            Command::new(Op::Publish, vec![plane], vec![]),
            self.shown(kept, 0),
        ];
        device.submit(workspace, &batch, Tag(2))?;
        expect_done(device)?;
        let mut seen = vec![
            ("whether columns are kept", vec![u8::from(stayed)]),
            (
                "a column of a plane",
                device.view(workspace, plane)?.to_vec(),
            ),
            ("a mapped column", device.view(workspace, mapped)?.to_vec()),
            (
                "a column that stays",
                device.view(workspace, out(0, kept.count))?.to_vec(),
            ),
        ];
        let drawn = layout.all(KEPT, 1);
        let batch = [Self::drawn(drawn), self.shown(drawn, ITEMS)];
        device.submit(workspace, &batch, Tag(3))?;
        expect_done(device)?;
        let next = device.view(workspace, out(ITEMS, ITEMS))?.to_vec();
        seen.push(("what is drawn for the next chunk", next));
        device.close(workspace);
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cpu, Isa};

    type Opened = (Box<dyn Device>, crate::Workspace);

    /// All devices, with an open workspace of the case.
    fn opened(of: &Case) -> Result<Vec<Opened>, Fault> {
        let cpus = Isa::available().into_iter().map(Cpu::with);
        let cpus = cpus.map(|cpu| Box::new(cpu) as Box<dyn Device>);
        let all = cpus.chain([Box::new(Reference::default()) as Box<dyn Device>]);
        all.map(|mut device| {
            let workspace = device.open(&of.layout, of.frames[0])?;
            Ok((device, workspace))
        })
        .collect()
    }

    #[test]
    fn a_workspace_serves_chunks_of_as_many_rows_and_zeros_within_it() -> Result<(), Fault> {
        let of = Case::new(&mut SplitMix(1));
        let next = of.frames[1];
        for (mut device, workspace) in opened(&of)? {
            let name = device.name();
            let other = Frame {
                rows: next.rows + 1,
                ..next
            };
            let refused = device.reuse(workspace, other, (&[], &[]));
            assert!(matches!(refused, Err(Fault::Shape { .. })), "{name}");
            let beyond = Span {
                first: 1,
                ..of.layout.all(MAPPED, 0)
            };
            for named in [(&[beyond][..], &[][..]), (&[], &[beyond])] {
                let refused = device.reuse(workspace, next, named);
                assert_eq!(refused, Err(Fault::NotReachable), "{name}");
            }
            let both = device.reuse(workspace, next, (&of.zeros, &of.zeros[1..]));
            assert!(matches!(both, Err(Fault::Shape { .. })), "{name}");
            assert_eq!(
                device.reuse(workspace, next, (&of.zeros, &[])),
                Ok(true),
                "{name}"
            );
            device.close(workspace);
            let gone = device.reuse(workspace, next, (&of.zeros, &[]));
            assert_eq!(gone, Err(Fault::Unknown("the workspace")), "{name}");
        }
        Ok(())
    }

    /// Tests run on devices on which nothing is zero by chance: what is read before it is written is found.
    #[test]
    fn what_is_not_named_is_junk_in_tests() -> Result<(), Fault> {
        let mut of = Case::new(&mut SplitMix(1));
        of.frames = of.frames.map(|frame| Frame { rows: 700, ..frame });
        for (mut device, workspace) in opened(&of)? {
            let name = device.name();
            let mapped = of.layout.all(MAPPED, 1);
            let mut before = device.view(workspace, mapped)?.to_vec();
            for _ in 0..2 {
                assert!(device.reuse(workspace, of.frames[1], (&[], &[]))?);
                let now = device.view(workspace, mapped)?.to_vec();
                let same = now.iter().zip(&before).filter(|(a, b)| a == b);
                assert!(same.count() < now.len() / 8, "{name}");
                before = now;
            }
        }
        Ok(())
    }
}
