//! Cases about products of matrices.

use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::{Frame, Secret, SessionId};

use super::{Difference, Seen, SplitMix, compare, expect_done, regions};
use crate::{
    ColumnType, Command, Device, Fault, Form, KeyId, Layout, MatMul, Op, PrfCall, Reference,
    Residency, Span, Tag, rank,
};

const KEYS: u16 = 3;

/// Sizes around the panels and blocks of devices; products of the larger ones are seldom.
const SIZES: [u32; 12] = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 25, 33];
const LARGE: [u32; 5] = [0, 127, 129, 257, 390];

/// Rings of matrices.
const RINGS: [Ring; 3] = [Ring::Z32, Ring::Z64, Ring::Z128];

/// Two matrices of shares.
struct Case {
    of: MatMul,
    columns: u32,
    layout: Layout,
    frame: Frame,
    keys: [Secret; KEYS as usize],
    calls: Vec<PrfCall>,
    /// What each region of the matrices holds, by component.
    input: Vec<Vec<u8>>,
}

/// A random case on `device` and the reference.
pub(super) fn one(
    device: &mut dyn Device,
    rng: &mut SplitMix,
    case: u32,
) -> Result<(), Difference> {
    let of = Case::new(rng);
    let want = of.run(&mut Reference::default());
    let about = (case, of.of.form.ring, &of.layout, of.frame);
    compare(about, want, of.run(device))
}

/// A product of two matrices that is larger than those of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Product {
    /// Ring of all elements: integers.
    pub ring: Ring,
    /// Whether shares are those of four parties, else of three.
    pub four: bool,
    /// Whether the left matrix is transposed.
    pub transposed: bool,
    /// Rows of the chunk, columns of the left matrix, columns of the right one.
    pub shape: [u32; 3],
    /// Whether each byte of both matrices is 255, as of the largest sums of products of bytes, and not random.
    pub saturated: bool,
}

/// Whether `device` makes of a product what `against` does.
///
/// # Errors
/// [`Difference`] as of [`check_section`](super::check_section), with `against` in the place of the reference.
pub fn check_product(
    device: &mut dyn Device,
    against: &mut dyn Device,
    of: Product,
) -> Result<(), Difference> {
    let form = if of.four {
        Form::fourfold(of.ring, false, false)
    } else {
        Form::replicated(of.ring)
    };
    let mut case = Case::of(&mut SplitMix(1), form, of.transposed, of.shape);
    if of.saturated {
        case.of.zeros = 0;
        for bytes in &mut case.input {
            bytes.fill(0xff);
        }
    }
    let about = (0, of.ring, &case.layout, case.frame);
    compare(about, case.run(against), case.run(device))
}

impl Case {
    fn new(rng: &mut SplitMix) -> Self {
        let ring = RINGS[rng.below(3)];
        let form = match rng.below(5) {
            0 => Form::replicated(ring),
            k => Form::fourfold(ring, k & 1 == 1, k > 2),
        };
        let size = |rng: &mut SplitMix| SIZES[rng.below(SIZES.len())];
        let mut shape = [size(rng), size(rng), size(rng)];
        if rng.below(3) == 0 {
            shape = [shape[0].min(5), shape[1].min(5), shape[2].min(5)];
            let at = rng.below(3);
            shape[at] = LARGE[rng.below(LARGE.len())].max(u32::from(at > 0));
        }
        let transposed = rng.below(2) == 1;
        Case::of(rng, form, transposed, shape)
    }

    fn of(
        rng: &mut SplitMix,
        form: &'static Form,
        transposed: bool,
        [rows, left, columns]: [u32; 3],
    ) -> Self {
        let (ring, parts) = (form.ring, rank::parts(form) as u8);
        let from = [Residency::Lent, Residency::Mapped][rng.below(2)];
        let to = [Residency::Lent, Residency::Public, Residency::Mapped][rng.below(3)];
        let all = ColumnType::Rows(ring);
        let one = ColumnType::One(ring);
        let mapped = Residency::Mapped;
        let mut shapes = vec![(from, all, parts, 1); left as usize];
        // Components, then messages.
        let outputs = [parts, 3];
        if transposed {
            shapes.extend(vec![(from, all, parts, 1); columns as usize]);
            shapes.extend(outputs.map(|of| (mapped, one, of, left * columns)));
        } else {
            shapes.push((mapped, one, parts, left * columns));
            for of in outputs {
                shapes.extend(vec![(to, all, of, 1); columns as usize]);
            }
        }
        let layout = regions(rows + rng.below(3) as u32 * 100, &shapes);
        let keys =
            [(); KEYS as usize].map(|()| Secret::new(std::array::from_fn(|_| rng.next() as u8)));
        let calls = (0..form.calls()).map(|k| PrfCall {
            key: KeyId(rng.below(KEYS.into()) as u16),
            tag: DomainTag(DomainTag::joint4(0).0 | k as u16),
            first: rng.next() >> 8,
        });
        let calls = calls.collect();
        let frame = Frame {
            epoch: 0,
            lane: rng.next() as u16,
            chunk: rng.next() as u32,
            rows,
        };
        // Of a public matrix all components but one are zero, or all.
        let zeros = match rng.below(3) {
            0 => rng.below(1 << parts) as u8,
            _ => 0,
        };
        let of = MatMul {
            form,
            left,
            transposed,
            zeros,
        };
        let mut case = Case {
            of,
            columns,
            layout,
            frame,
            keys,
            calls,
            input: Vec::new(),
        };
        let inputs = case.sources();
        let bytes = inputs
            .iter()
            .map(|span| case.layout.bytes(*span, rows) as usize);
        case.input = bytes.map(|bytes| rng.bytes(bytes)).collect();
        let right = case
            .input
            .iter_mut()
            .skip(left as usize * usize::from(parts));
        for (k, bytes) in right.enumerate() {
            if zeros >> (k % usize::from(parts)) & 1 == 1 {
                bytes.fill(0);
            }
        }
        case
    }

    fn spans(&self, regions: std::ops::Range<u32>) -> Vec<Span> {
        let parts = rank::parts(self.of.form) as u8;
        regions
            .flat_map(|region| (0..parts).map(move |part| self.layout.all(region as u16, part)))
            .collect()
    }

    /// Regions of both matrices.
    fn inputs(&self) -> u32 {
        self.of.left + if self.of.transposed { self.columns } else { 1 }
    }

    fn sources(&self) -> Vec<Span> {
        self.spans(0..self.inputs())
    }

    fn command(&self) -> Command {
        let each = if self.of.transposed { 1 } else { self.columns };
        let first = self.inputs();
        let columns = |kind: u32, component: usize| {
            let regions = first + kind * each..first + (kind + 1) * each;
            regions.map(move |region| self.layout.all(region as u16, component as u8))
        };
        let written = rank::written(self.of.form).flat_map(|part| columns(0, part));
        let messages = rank::messages(self.of.form).flat_map(|cross| columns(1, cross));
        let dst = written.chain(messages).collect();
        let mut command = Command::new(Op::MatMul(self.of), self.sources(), dst);
        command.calls.clone_from(&self.calls);
        command
    }

    fn run(&self, device: &mut dyn Device) -> Result<Seen, Fault> {
        device.bind(SessionId([7; 32]));
        for (id, key) in (0..).map(KeyId).zip(&self.keys) {
            device.load_key(id, key)?;
        }
        let workspace = device.open(&self.layout, self.frame)?;
        let command = self.command();
        for (span, bytes) in command.src.iter().zip(&self.input) {
            device.write(workspace, *span, bytes)?;
        }
        device.submit(workspace, std::slice::from_ref(&command), Tag(0))?;
        expect_done(device)?;
        let mut seen = Seen::new();
        for (span, what) in (command
            .dst
            .iter()
            .map(|span| (span, "a product of matrices")))
        .chain(command.src.iter().map(|span| (span, "a matrix")))
        {
            seen.push((what, device.view(workspace, *span)?.to_vec()));
        }
        device.close(workspace);
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Recording, Tape, fuzz_record, replay};
    use crate::{Cpu, Isa};

    #[test]
    fn products_are_those_of_the_reference() {
        let mut kinds = std::collections::BTreeSet::new();
        for seed in 0..400 {
            let of = Case::new(&mut SplitMix(seed));
            kinds.insert((of.of.form.ring, of.of.transposed, of.of.form.crosses.len()));
            let want = of.run(&mut Reference::default());
            for isa in Isa::available() {
                let got = of.run(&mut Cpu::with(isa));
                let about = (seed as u32, of.of.form.ring, &of.layout, of.frame);
                assert_eq!(compare(about, want.clone(), got), Ok(()), "{isa:?}");
            }
        }
        assert_eq!(kinds.len(), 12, "{kinds:?}");
    }

    /// Blocks in each direction, by more than one.
    #[test]
    fn large_products_are_those_of_the_reference() {
        for ring in RINGS {
            for (transposed, shape) in [
                (false, [270, 140, 9]),
                (false, [20, 260, 150]),
                (true, [300, 140, 9]),
                (true, [300, 9, 200]),
                (true, [531, 67, 65]),
                (false, [1100, 3, 2]),
                (true, [1100, 3, 2]),
            ] {
                let four = shape[2] < 70;
                for (isa, saturated) in Isa::available()
                    .into_iter()
                    .flat_map(|isa| [(isa, false), (isa, true)])
                {
                    let of = Product {
                        ring,
                        four,
                        transposed,
                        shape,
                        saturated,
                    };
                    let reference = &mut Reference::default();
                    let same = check_product(&mut Cpu::with(isa), reference, of);
                    assert_eq!(same, Ok(()), "{isa:?} {of:?}");
                }
            }
        }
    }

    /// What a recorder writes of products is played by every device, and is no danger when it is changed.
    #[test]
    fn records_of_products_are_played_on_every_device() -> Result<(), Fault> {
        for transposed in [false, true] {
            let mut rng = SplitMix(11);
            let form = Form::fourfold(Ring::Z64, true, true);
            let of = Case::of(&mut rng, form, transposed, [9, 4, 3]);
            let tape = Tape::memory();
            let mut device = Recording::new(Box::new(Cpu::detect()), tape.clone());
            of.run(&mut device)?;
            device.wipe();
            let record = tape.finish().expect("memory takes all");
            replay(&record[..], &mut Reference::default()).expect("the same bytes");
            for isa in Isa::available() {
                let played = replay(&record[..], &mut Cpu::with(isa)).expect("the same bytes");
                assert_eq!(played.commands, 1);
            }
            assert!(fuzz_record(&record));
            for at in (0..record.len()).step_by(7) {
                let mut changed = record.clone();
                changed[at] ^= 1 << (at % 8);
                fuzz_record(&changed);
            }
        }
        Ok(())
    }

    /// Three parties' components of a product add up to the product of the matrices.
    #[test]
    fn shares_of_products_add_up() -> Result<(), Fault> {
        let (rows, left, columns) = (11usize, 6usize, 5usize);
        for (ring, transposed) in RINGS
            .iter()
            .flat_map(|ring| [(*ring, false), (*ring, true)])
        {
            let mut rng = SplitMix(u64::from(ring.bits()));
            let shape = [rows as u32, left as u32, columns as u32];
            let mut cases: Vec<Case> = (0..3)
                .map(|_| Case::of(&mut SplitMix(1), Form::replicated(ring), transposed, shape))
                .collect();
            let width = ring.bytes(1) as usize;
            let elements: Vec<usize> = cases[0]
                .input
                .iter()
                .map(|bytes| bytes.len() / width)
                .collect();
            let keys = [1, 2, 3].map(|k| Secret::new([k; 16]));
            // What each pair of components is a part of, column by column.
            let mut clear: Vec<Vec<u128>> = Vec::new();
            for at in (0..elements.len()).step_by(2) {
                let shares: [Vec<u128>; 3] = [(); 3].map(|()| {
                    let mut draw = || u128::from(rng.next()) << 64 | u128::from(rng.next());
                    (0..elements[at]).map(|_| ring.reduce(draw())).collect()
                });
                let sums = (0..elements[at]).map(|k| {
                    let all = shares.iter();
                    all.fold(0, |sum, share| ring.add(sum, share[k]))
                });
                clear.push(sums.collect());
                for (me, case) in cases.iter_mut().enumerate() {
                    for (part, of) in [me, (me + 2) % 3].into_iter().enumerate() {
                        let bytes = shares[of].iter();
                        let bytes = bytes.flat_map(|x| x.to_le_bytes()[..width].to_vec());
                        case.input[at + part] = bytes.collect();
                    }
                }
            }
            let right = |k: usize, j: usize| {
                if transposed {
                    clear[left + j][k]
                } else {
                    clear[left][j * left + k]
                }
            };
            let mut sums = vec![0u128; columns * if transposed { left } else { rows }];
            for (me, case) in cases.iter_mut().enumerate() {
                case.frame.lane = 0;
                case.frame.chunk = 1;
                case.keys = [me, (me + 2) % 3, 0].map(|k| keys[k].clone());
                let call = |key| PrfCall {
                    key: KeyId(key),
                    tag: DomainTag::MUL3,
                    first: 0,
                };
                case.calls = vec![call(0), call(1)];
                let seen = case.run(&mut Cpu::detect())?;
                let products = seen
                    .iter()
                    .filter(|(what, _)| *what == "a product of matrices");
                let bytes: Vec<u8> = products.flat_map(|(_, bytes)| bytes.clone()).collect();
                for (sum, bytes) in sums.iter_mut().zip(bytes.chunks(width)) {
                    let mut word = [0; 16];
                    word[..width].copy_from_slice(bytes);
                    *sum = ring.add(*sum, u128::from_le_bytes(word));
                }
            }
            let (height, inner) = if transposed {
                (left, rows)
            } else {
                (rows, left)
            };
            for (at, sum) in sums.iter().enumerate() {
                let (i, j) = (at % height, at / height);
                let terms = (0..inner).map(|k| {
                    let of = if transposed { clear[i][k] } else { clear[k][i] };
                    ring.mul(of, right(k, j))
                });
                let want = terms.fold(0, |a, b| ring.add(a, b));
                assert_eq!(*sum, want, "{ring:?} {transposed} {i} {j}");
            }
        }
        Ok(())
    }

    #[test]
    fn commands_that_are_no_products_are_refused() {
        let refused = |change: &dyn Fn(&mut Command), transposed: bool| {
            let mut rng = SplitMix(3);
            let form = Form::replicated(Ring::Z64);
            let of = Case::of(&mut rng, form, transposed, [4, 3, 2]);
            let mut command = of.command();
            change(&mut command);
            match command.check(0, (&of.layout, of.frame.rows), None) {
                Err(Fault::Shape { what, .. }) => what,
                other => panic!("{other:?}"),
            }
        };
        let op = |form: &'static Form, left: u32, transposed: bool| {
            Op::MatMul(MatMul {
                form,
                left,
                transposed,
                zeros: 0,
            })
        };
        let form = Form::replicated(Ring::Z64);
        for transposed in [false, true] {
            let of = |change: &dyn Fn(&mut Command)| refused(change, transposed);
            let all = "all components of a left and of a right matrix are needed";
            assert_eq!(of(&|c| c.op = op(form, 0, transposed)), all);
            assert_eq!(of(&|c| c.op = op(form, 9, transposed)), all);
            let bits = "a form of integers, of as many components as there are, is needed";
            assert_eq!(
                of(&|c| c.op = op(Form::replicated(Ring::Bits), 3, transposed)),
                bits
            );
            let ring = "one item of integers of the form's ring each, in no plane, is needed";
            assert_eq!(
                of(&|c| c.op = op(Form::replicated(Ring::Z32), 3, transposed)),
                ring
            );
            assert_eq!(of(&|c| c.src[0].count = 0), ring);
            let draws = "not the draws of the form";
            assert_eq!(of(&|c| c.calls.truncate(1)), draws);
            let dst = "the components that are written, and the other messages, are needed";
            assert_eq!(of(&|c| c.dst.push(c.dst[0])), dst);
        }
        let overlap = "a destination overlaps a source or another destination";
        assert_eq!(refused(&|c| c.dst[0] = c.src[0], false), overlap);
        assert_eq!(refused(&|c| c.dst[1] = c.dst[0], false), overlap);
        let whole = "elements that all rows share are whole columns of the left matrix's width";
        assert_eq!(refused(&|c| c.src[6].count = 5, false), whole);
        assert_eq!(refused(&|c| c.src[7].count = 3, false), whole);
        assert_eq!(refused(&|c| c.dst[0].count = 5, true), whole);
        let right = "a right matrix is one span for each component";
        assert_eq!(refused(&|c| c.src.truncate(7), false), right);
        let right = "all components of columns of rows are needed as a right matrix";
        assert_eq!(refused(&|c| c.src.truncate(9), true), right);
    }
}
