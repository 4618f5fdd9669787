//! A workspace of more than 2^32 elements, of which the last columns are used: places that need more than 32 bits.

use veil_device::{Command, Device, Dst, Fault, Instr, KeyId, Op, PrfCall, Src};
use veil_math::Ring;
use veil_prss::DomainTag;
use veil_session::Secret;

use super::linear;

/// As many as the longest chunk has.
const ROWS: u32 = 1 << 20;
/// Columns that are drawn, and as many that are computed of them.
const USED: u32 = 4;

/// What a device makes of the columns behind `before` others: the same, however many those are.
pub(crate) fn run(device: &mut dyn Device, ring: Ring, before: u32) -> Result<Vec<u8>, Fault> {
    let layout = linear::layout(ring, ROWS, before + 2 * USED, USED);
    let slot = |k: u32| before + k % (2 * USED);
    let sum = |k: u32| {
        let (a, b) = (slot(k), slot((k + 1) % USED));
        Instr::Add(Src::Slot(a), Src::Slot(b), Dst::Slot(slot(USED + k)))
    };
    let program = linear::program(ring, 0, (0..USED).map(sum).collect());
    device.load_key(KeyId(1), &Secret::new([9; 16]))?;
    linear::run(device, &layout, program, before + USED, |_, _| {
        let draw = |part: u8| {
            let to = linear::slots(part, before, USED);
            let mut draw = Command::new(Op::Random, vec![], vec![to]);
            draw.calls = vec![PrfCall {
                key: KeyId(1),
                tag: DomainTag::RAND3,
                first: u64::from(part) << 32,
            }];
            draw
        };
        Ok([0, 1].map(draw).into())
    })
}
