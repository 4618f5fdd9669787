//! Conversions between integers and bits: what is known to all holders of a component.

use veil_device::{Command, Op, Span};
use veil_math::Ring;
use veil_session::PartyId;

use super::combine;
use super::scheme::{Component, Scheme};
use crate::plan::{BIT_SLOTS, ConversionPlan, LayerPlan, Plan, SLOTS, UNIFORMS};

/// The commands that begin a layer. Whoever holds a component converts it; all other components of the result are zero.
pub(crate) fn conversions(
    scheme: &Scheme,
    plan: &Plan,
    me: PartyId,
    layer: &LayerPlan,
) -> Vec<Command> {
    let mut commands = Vec::new();
    for conversion in &layer.conversions {
        let holder = scheme.part_of(me, Component(conversion.component.into()));
        for part in scheme.parts() {
            commands.push(of_part(plan.ring, conversion, part, holder == Some(part)));
        }
    }
    commands
}

fn of_part(ring: Ring, conversion: &ConversionPlan, part: u8, converted: bool) -> Command {
    let ConversionPlan {
        from,
        split,
        to,
        count,
        ..
    } = *conversion;
    let span = |region, first, count| Span {
        region,
        part,
        first,
        count,
    };
    let (to, zero) = match split {
        Some(_) => (span(BIT_SLOTS, to, count), Ring::Bits),
        None => (span(SLOTS, to, count), ring),
    };
    match split {
        _ if !converted => combine(zero, vec![], 0, to),
        Some(split) => {
            let region = if split.shared { UNIFORMS } else { SLOTS };
            let op = Op::Split { first: split.bit };
            Command::new(op, vec![span(region, from, 1)], vec![to])
        }
        None => Command::new(Op::Lift, vec![span(BIT_SLOTS, from, count)], vec![to]),
    }
}
