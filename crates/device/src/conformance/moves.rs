//! Cases about moves of rows: permutations that are drawn, rows that move by them there and back, inverses, and sums with what is drawn.

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};

use super::{Difference, ROWS, Seen, SplitMix, compare, regions};
use crate::{
    ColumnType, Command, Device, Fault, KeyId, Layout, Op, Outcome, PrfCall, Reference, Residency,
    Span, Tag, completion,
};

const ITEMS: u32 = 3;
const KEYS: u16 = 2;
/// What moves, as the host writes it, where the device keeps it, and as the host sees it.
const IN: u16 = 0;
const KEPT: u16 = 1;
const OUT: u16 = 2;
/// Permutations that are drawn, and one that the host writes, which may be none; their inverses.
const DRAWN: u16 = 3;
const TOLD: u16 = 4;
const INVERSE: u16 = 5;
/// What a check looks at.
const ORDER: u16 = 6;

/// Rows above which permutations are drawn by buckets, and rows of more than one tile.
const MANY: [u32; 2] = [(1 << 18) + 1, 70_000];

/// Types of what moves.
const TYPES: [ColumnType; 8] = [
    ColumnType::Rows(Ring::Z32),
    ColumnType::Rows(Ring::Z64),
    ColumnType::Rows(Ring::Z128),
    ColumnType::Words(1),
    ColumnType::Words(2),
    ColumnType::Words(4),
    ColumnType::Words(8),
    ColumnType::Words(16),
];

fn layout(column: ColumnType, chunk_rows: u32) -> Layout {
    let (mapped, resident, public) = (Residency::Mapped, Residency::Resident, Residency::Public);
    let permutation = ColumnType::Rows(Ring::Z32);
    regions(
        chunk_rows,
        &[
            (mapped, column, 1, ITEMS),
            (resident, column, 2, ITEMS),
            (public, column, 1, 2 * ITEMS),
            (resident, permutation, 1, 2),
            (mapped, permutation, 1, 1),
            (public, permutation, 1, 2),
            (public, permutation, 1, 2),
        ],
    )
}

/// What a device makes of a case: how its batches ended, and bytes.
struct Case {
    column: ColumnType,
    layout: Layout,
    frame: Frame,
    keys: [Secret; KEYS as usize],
    input: Vec<u8>,
    told: Vec<u8>,
    batches: Vec<Vec<Command>>,
}

/// A random case on `device` and the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    // Many rows are few cases.
    let rows = match rng.below(400) {
        0 => MANY[0],
        1 => MANY[1],
        _ => ROWS[rng.below(ROWS.len())],
    };
    let of = Case::new(rng, rows);
    let ring = of.ring();
    let want = of.run(&mut Reference::default());
    compare((case, ring, &of.layout, of.frame), want, of.run(device))
}

impl Case {
    fn new(rng: &mut SplitMix, rows: u32) -> Self {
        let column = TYPES[rng.below(TYPES.len())];
        let layout = layout(column, rows + rng.below(3) as u32 * 100);
        let frame = Frame {
            epoch: 0,
            lane: rng.next() as u16,
            chunk: rng.next() as u32,
            rows,
        };
        let mut of = Case {
            column,
            keys: [(); KEYS as usize]
                .map(|()| Secret::new(std::array::from_fn(|_| rng.next() as u8))),
            input: rng.bytes(layout.bytes(layout.all(IN, 0), rows) as usize),
            told: told(rng, rows)
                .into_iter()
                .flat_map(u32::to_le_bytes)
                .collect(),
            batches: Vec::new(),
            layout,
            frame,
        };
        of.batches = of.commands(rng);
        of
    }

    /// The ring of the sums of what moves.
    fn ring(&self) -> Ring {
        match self.column {
            ColumnType::Rows(ring) => ring,
            _ => Ring::Bits,
        }
    }

    fn commands(&self, rng: &mut SplitMix) -> Vec<Vec<Command>> {
        let (layout, ring) = (&self.layout, self.ring());
        let count = 1 + rng.below(ITEMS as usize) as u32;
        let span = |region, component, first, count| Span {
            region,
            component,
            first,
            count,
        };
        let mut first = |count: u32| rng.below((ITEMS - count + 1) as usize) as u32;
        let input = span(IN, 0, first(count), count);
        let [kept, other] = [0, 1].map(|component| span(KEPT, component, first(count), count));
        let [out, back] = [0, ITEMS].map(|at| span(OUT, 0, at, count));
        let [p, q] = [0, 1].map(|k| span(DRAWN, 0, k, 1));
        let told = layout.all(TOLD, 0);
        let [inverse, seen] = [INVERSE, ORDER].map(|region| [0, 1].map(|k| span(region, 0, k, 1)));
        let mut tag = 0;
        let mut call = |rng: &mut SplitMix| {
            tag += 1;
            PrfCall {
                key: KeyId(rng.below(KEYS.into()) as u16),
                tag: DomainTag(DomainTag::move4(0).0 | tag),
                first: rng.next() >> 8,
            }
        };
        let mut sum = |rng: &mut SplitMix, src: Vec<Span>, to, calls: usize| {
            let minus = rng.next() as u32 & !1;
            let mut command = Command::new(Op::Combine { ring, minus }, src, vec![to]);
            command.calls = (0..calls).map(|_| call(rng)).collect();
            command
        };
        let copy =
            |ring, from, to| Command::new(Op::Combine { ring, minus: 0 }, vec![from], vec![to]);
        let permute = |back, from: Span, by: &[Span], to| {
            Command::new(Op::Permute { back }, [&[from], by].concat(), vec![to])
        };
        // Sums of none to some sources and draws, in place or not.
        let calls = rng.below(4);
        let masked = match rng.below(3) {
            0 => vec![sum(rng, vec![input], kept, calls)],
            1 => vec![
                sum(rng, vec![], kept, calls),
                sum(rng, vec![kept, input], kept, 1),
            ],
            _ => {
                let mut random = sum(rng, vec![], kept, 1);
                random.op = Op::Random;
                vec![random, sum(rng, vec![kept, input, input], kept, calls)]
            }
        };
        let mut drawn = [p, q].map(|to| Command::new(Op::Permutation, vec![], vec![to]));
        for (command, component) in drawn.iter_mut().zip(0..) {
            command.calls = vec![PrfCall {
                key: KeyId(rng.below(KEYS.into()) as u16),
                tag: DomainTag::perm4(component),
                first: rng.next() >> 8,
            }];
        }
        let by = [vec![p], vec![p, q], vec![q, q], vec![q, p]][rng.below(4)].clone();
        let way = rng.below(2) == 1;
        let copies = [(p, 0), (q, 1)].map(|(of, k)| copy(Ring::Z32, of, seen[k]));
        let moved = vec![
            permute(way, kept, &by, other),
            permute(!way, other, &by, back),
            copy(ring, other, out),
            Command::new(Op::Invert, vec![seen[0]], vec![inverse[0]]),
        ];
        let of_kept = copy(ring, kept, out);
        let mut batches = vec![masked, drawn.into(), copies.into(), moved];
        batches.push(vec![
            permute(rng.below(2) == 1, kept, &[told], other),
            copy(ring, other, out),
        ]);
        batches.push(vec![permute(rng.below(2) == 1, kept, &[p, told], other)]);
        batches.push(vec![
            Command::new(Op::Invert, vec![told], vec![inverse[1]]),
            of_kept.clone(),
        ]);
        batches.push(vec![
            Command::new(Op::Invert, vec![seen[1]], vec![]),
            Command::new(Op::Invert, vec![told], vec![]),
            of_kept,
        ]);
        batches
    }

    fn run(&self, device: &mut dyn Device) -> Result<Seen, Fault> {
        device.bind(SessionId([7; 32]));
        for (id, key) in (0..).map(KeyId).zip(&self.keys) {
            device.load_key(id, key)?;
        }
        let layout = &self.layout;
        let workspace = device.open(layout, self.frame)?;
        device.write(workspace, layout.all(IN, 0), &self.input)?;
        device.write(workspace, layout.all(TOLD, 0), &self.told)?;
        let mut seen = Seen::new();
        for (batch, number) in self.batches.iter().zip(0..) {
            match device.submit(workspace, batch, Tag(number)) {
                Ok(()) => {}
                // Rows that a permutation moves beyond all rows.
                Err(Fault::Shape { command, .. }) => {
                    while device.poll()?.is_some() {}
                    seen.push((
                        "a permutation with an entry that is no row",
                        vec![command as u8],
                    ));
                    break;
                }
                Err(fault) => return Err(fault),
            }
            let ended = match completion(device)?.outcome {
                Outcome::Done => vec![],
                Outcome::Mismatch { command } => vec![command as u8],
            };
            seen.push(("the end of a batch of moves", ended));
            let shown = [
                ("rows that moved", OUT),
                ("an inverse", INVERSE),
                ("a permutation", ORDER),
            ];
            for (what, region) in shown {
                let bytes = device.view(workspace, layout.all(region, 0))?;
                seen.push((what, bytes.to_vec()));
            }
        }
        device.close(workspace);
        Ok(seen)
    }
}

/// What a peer says a permutation is: one, or nearly one.
fn told(rng: &mut SplitMix, rows: u32) -> Vec<u32> {
    let mut entries: Vec<u32> = (0..rows).collect();
    for k in (1..entries.len()).rev() {
        entries.swap(k, rng.below(k + 1));
    }
    if rows > 1 {
        let [at, from] = [(); 2].map(|()| rng.below(rows as usize));
        match rng.below(4) {
            0 => entries[at] = [rows, u32::MAX][rng.below(2)],
            1 => entries[at] = entries[from],
            _ => {}
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cpu, Isa};

    /// Rows that move and move back are where they were, on any number of rows, and inverses are undone by permutations.
    #[test]
    fn what_moves_back_is_where_it_was() -> Result<(), Fault> {
        for (k, rows) in [0, 1, 2, 511, 512, 513, MANY[1], MANY[0]]
            .into_iter()
            .enumerate()
        {
            for (column, isa) in TYPES
                .into_iter()
                .flat_map(|t| Isa::available().into_iter().map(move |isa| (t, isa)))
            {
                if rows > 1000 && column.bytes(1) as usize != [4, 16][k % 2] {
                    continue;
                }
                let mut device = Cpu::with(isa);
                let mut rng = SplitMix(rows.into());
                let of = Case {
                    batches: vec![],
                    ..Case::new(&mut rng, rows)
                };
                let layout = layout(column, rows);
                let input = rng.bytes(layout.bytes(layout.all(IN, 0), rows) as usize);
                device.load_key(KeyId(0), &of.keys[0])?;
                let workspace = device.open(&layout, of.frame)?;
                device.write(workspace, layout.all(IN, 0), &input)?;
                let span = |region, first, count| Span {
                    region,
                    component: 0,
                    first,
                    count,
                };
                let [p, seen] = [DRAWN, ORDER].map(|region| span(region, 0, 1));
                let [inverse, again] = [0, 1].map(|k| span(INVERSE, k, 1));
                let mut draw = Command::new(Op::Permutation, vec![], vec![p]);
                draw.calls = vec![PrfCall {
                    key: KeyId(0),
                    tag: DomainTag::perm3(0),
                    first: 9,
                }];
                let copy = Op::Combine {
                    ring: Ring::Z32,
                    minus: 0,
                };
                let permute = |back, from, by, to| {
                    Command::new(Op::Permute { back }, vec![from, by], vec![to])
                };
                let (kept, out) = (layout.all(KEPT, 0), span(OUT, 0, ITEMS));
                let batch = [
                    draw,
                    Command::new(copy, vec![p], vec![seen]),
                    Command::new(Op::Invert, vec![seen], vec![inverse]),
                    Command::new(Op::Invert, vec![inverse], vec![again]),
                    permute(false, layout.all(IN, 0), p, kept),
                    // Back by the inverse.
                    permute(false, kept, inverse, out),
                ];
                device.submit(workspace, &batch, Tag(0))?;
                assert_eq!(completion(&mut device)?.outcome, Outcome::Done);
                assert!(
                    device.view(workspace, out)? == input,
                    "{column:?}, {rows} rows, {isa:?}"
                );
                assert_eq!(
                    device.view(workspace, seen)?,
                    device.view(workspace, again)?
                );
                device.submit(workspace, &[permute(true, kept, p, out)], Tag(1))?;
                assert_eq!(completion(&mut device)?.outcome, Outcome::Done);
                assert!(
                    device.view(workspace, out)? == input,
                    "{column:?}, {rows} rows, {isa:?}"
                );
            }
        }
        Ok(())
    }

    /// The long cases, which are rare among random ones.
    #[test]
    fn many_rows_move_as_in_the_reference() {
        for (case, rows) in (0..).zip(MANY) {
            let of = Case::new(&mut SplitMix(case.into()), rows);
            let want = of.run(&mut Reference::default());
            for isa in Isa::available() {
                let got = of.run(&mut Cpu::with(isa));
                let of = (case, of.ring(), &of.layout, of.frame);
                let same = compare(of, want.clone(), got);
                assert_eq!(same, Ok(()), "{isa:?}");
            }
        }
    }

    /// Cases end in each of the ways that there are.
    #[test]
    fn permutations_that_are_none_are_among_the_cases() {
        let (mut faults, mut mismatches, mut done) = (0, 0, 0);
        for seed in 0..60 {
            let seen = Case::new(&mut SplitMix(seed), 9).run(&mut Reference::default());
            for (what, bytes) in seen.unwrap_or_default() {
                match (what, bytes.is_empty()) {
                    ("a permutation with an entry that is no row", _) => faults += 1,
                    ("the end of a batch of moves", false) => mismatches += 1,
                    ("the end of a batch of moves", true) => done += 1,
                    _ => {}
                }
            }
        }
        assert!(
            faults > 3 && mismatches > 3 && done > 100,
            "{faults} {mismatches} {done}"
        );
    }
}
