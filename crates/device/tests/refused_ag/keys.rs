//! Programs and keys that are missing, and numbers that are used again.

use veil_device::ag::{Ag, One};
use veil_device::{Command, Fault, Op, Outcome, Reference, Span};

use super::{
    ARRAYS, BITS, KEYS, LABEL_BITS, LABELS, OF_ONE, OFFSET, OVER_SHARES, PRODUCTS, ROWS, SLOTS,
    SPANS, at, blocks, devices, every_device_says, steps, told,
};

/// Programs that are none or another kind's, and arrays among their own values.
#[test]
fn programs_that_do_not_fit_are_refused() {
    let mut cases = Vec::new();
    for good in steps().into_iter().filter(|step| step.program.is_some()) {
        let with = |program| Command {
            program,
            ..good.clone()
        };
        cases.push((with(None), "a program is needed"));
        cases.push((with(Some(OVER_SHARES)), "its program is not over labels"));
        // Of a program with one product, columns of labels are arrays.
        let mut one = with(Some(OF_ONE));
        for k in 0..one.src.len() + one.dst.len() {
            let span = at(&mut one, k);
            match span.region {
                ARRAYS => {
                    *span = Span {
                        region: LABELS,
                        ..*span
                    }
                }
                BITS => {
                    *span = Span {
                        region: LABEL_BITS,
                        ..*span
                    }
                }
                _ => {}
            }
        }
        for k in 0..one.src.len() + one.dst.len() {
            let mut command = one.clone();
            let span = at(&mut command, k);
            if span.region == LABELS {
                span.region = SLOTS;
                cases.push((command, SPANS));
            }
        }
    }
    every_device_says(ROWS, &cases);
}

/// An offset that is missing or whose bits are not ones, and a start point.
#[test]
fn keys_that_are_missing_are_missed() {
    let offset = Fault::Unknown("an offset whose bit 0 is 1");
    let start = Fault::Unknown("the key of a draw");
    for mut device in devices() {
        for command in steps() {
            let Op::Ag(op) = command.op else { continue };
            let (needs, garbles) = match op {
                Ag::Masks { one, .. } => (matches!(one, One::Offset(_)), false),
                Ag::Fold { offset } | Ag::Gates { offset, .. } => (offset.is_some(), false),
                Ag::Offer { .. }
                | Ag::Take { .. }
                | Ag::Settle { .. }
                | Ag::Expect { .. }
                | Ag::Spend { .. } => (true, false),
                Ag::Garble { .. } => (true, true),
                _ => (false, false),
            };
            let hashes = !command.calls.is_empty();
            for (keys, missed) in [
                (&KEYS[1..], needs.then_some(&offset)),
                (&[(OFFSET, 0x5a), KEYS[1]], needs.then_some(&offset)),
                (&[(OFFSET, 0x59), KEYS[1]], garbles.then_some(&offset)),
                (&KEYS[..1], hashes.then_some(&start)),
            ] {
                let want = missed.map_or(Ok(Outcome::Done), |fault| Err(fault.clone()));
                let told = told(&mut *device, (ROWS, keys), std::slice::from_ref(&command));
                assert_eq!(told, want, "{}: {command:?}", device.name());
            }
        }
    }
}

/// The reference hashes no candidate and no gate twice.
#[test]
fn numbers_that_are_used_again_are_noticed() {
    for command in steps() {
        let many = match command.op {
            Op::Ag(Ag::Offer { .. }) => blocks(ROWS),
            Op::Ag(Ag::Garble { .. } | Ag::Evaluate { .. }) => PRODUCTS,
            _ => continue,
        };
        let later = |by: u32| {
            let mut later = command.clone();
            later.calls[0].first += u64::from(by);
            later
        };
        for (by, again) in [(0, true), (1, true), (many - 1, true), (many, false)] {
            let both = [command.clone(), later(by)];
            let told = told(&mut Reference::default(), (ROWS, KEYS), &both);
            if again {
                assert!(matches!(told, Err(Fault::Reuse(_))), "{told:?}: {both:?}");
            } else {
                assert_eq!(told, Ok(Outcome::Done), "{both:?}");
            }
        }
    }
}
