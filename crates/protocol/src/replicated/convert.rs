//! Conversions between integers and bits: what is known to all holders of a component.

use veil_device::{Command, Op, Span};
use veil_math::Ring;
use veil_session::PartyId;

use super::combine;
use super::scheme::{Component, Scheme};
use crate::plan::{BIT_SLOTS, Conversion, ConversionPlan, LayerPlan, Plan, SLOTS, UNIFORMS};

/// The commands that begin a layer. Whoever holds a component converts it; where one component is converted, all others of the result are
/// zero.
pub(crate) fn conversions(
    scheme: &Scheme,
    plan: &Plan,
    me: PartyId,
    layer: &LayerPlan,
) -> Vec<Command> {
    let mut commands = Vec::new();
    for conversion in &layer.conversions {
        for part in scheme.parts() {
            let component = scheme.component_of(me, part);
            commands.push(of_part(plan.ring, conversion, part, component));
        }
    }
    commands
}

fn of_part(ring: Ring, conversion: &ConversionPlan, part: u8, component: Component) -> Command {
    let ConversionPlan {
        how,
        from,
        shared,
        to,
        count,
    } = *conversion;
    let span = |region, first, count| Span {
        region,
        part,
        first,
        count,
    };
    let integer = span(if shared { UNIFORMS } else { SLOTS }, from, 1);
    let bits = span(BIT_SLOTS, from, count);
    let (op, of, src, to) = match how {
        Conversion::Split { component, bit } => (
            Op::Split { first: bit },
            Some((component, Ring::Bits)),
            integer,
            span(BIT_SLOTS, to, count),
        ),
        Conversion::Lift { component } => (
            Op::Lift,
            Some((component, ring)),
            bits,
            span(SLOTS, to, count),
        ),
        Conversion::Shift { by } => (Op::Shift { by }, None, integer, span(SLOTS, to, 1)),
    };
    match of {
        Some((only, ring)) if Component(only.into()) != component => combine(ring, vec![], 0, to),
        _ => Command::new(op, vec![src], vec![to]),
    }
}
