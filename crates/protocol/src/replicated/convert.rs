//! The beginning of a layer: conversions of components by all their holders, and draws under their keys.

use veil_device::{Command, Op, Span};
use veil_math::Ring;
use veil_session::PartyId;

use super::regions::NARROW;
use super::scheme::{Component, Scheme};
use super::{combine, random};
use crate::plan::{BIT_SLOTS, Conversion, ConversionPlan, JOB_WIDE, LayerPlan, Plan, SLOTS};

/// The commands that begin a layer. A party that holds a component converts it, or draws it; where one component is converted, all others of the
/// result are zero.
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
            let to = result(conversion, part);
            match conversion.how {
                Conversion::Shift { by } if plan.has_macs() => {
                    commands.extend(shift_low(conversion, by, part));
                }
                _ => commands.push(of_component(scheme, plan.words, conversion, to, component)),
            }
        }
    }
    commands
}

/// A component is an element of a larger ring than the integer that it is a share of: what is shifted are its lowest bits.
fn shift_low(conversion: &ConversionPlan, by: u32, part: u8) -> [Command; 3] {
    let span = |region, first| Span {
        region,
        component: part,
        first,
        count: 1,
    };
    let from = if conversion.shared { JOB_WIDE } else { SLOTS };
    let [low, shifted] = [0, 1].map(|first| span(NARROW, first));
    let command = |op, from, to| Command::new(op, vec![from], vec![to]);
    [
        command(Op::Resize, span(from, conversion.from), low),
        command(Op::Shift { by }, low, shifted),
        command(Op::Resize, shifted, span(SLOTS, conversion.to)),
    ]
}

/// Where the results of a conversion are.
fn result(conversion: &ConversionPlan, part: u8) -> Span {
    Span {
        region: if conversion.bits { BIT_SLOTS } else { SLOTS },
        component: part,
        first: conversion.to,
        count: conversion.count,
    }
}

/// `to`: where its result in the same part is.
fn of_component(
    scheme: &Scheme,
    ring: Ring,
    conversion: &ConversionPlan,
    to: Span,
    component: Component,
) -> Command {
    let ConversionPlan {
        from,
        shared,
        count,
        ..
    } = *conversion;
    let span = |region, first, count| Span {
        region,
        first,
        count,
        ..to
    };
    let integer = span(if shared { JOB_WIDE } else { SLOTS }, from, 1);
    let (op, of, src) = match conversion.how {
        Conversion::Split { component, bit } => {
            (Op::Split { first: bit }, Some(component), vec![integer])
        }
        Conversion::Lift { component } => {
            let bits = span(BIT_SLOTS, from, count);
            (Op::Lift, Some(component), vec![bits])
        }
        Conversion::Take { component } => (
            Op::Combine { ring, minus: 0 },
            Some(component),
            vec![integer],
        ),
        Conversion::Shift { by } => (Op::Shift { by }, None, vec![integer]),
        Conversion::Scale { by } => (Op::Scale, None, vec![integer, span(SLOTS, by, 1)]),
        Conversion::Random { first } => {
            return random(to, Scheme::key(to.component), scheme.random, first);
        }
    };
    match of {
        Some(only) if Component(only.into()) != component => {
            let ring = if conversion.bits { Ring::Bits } else { ring };
            combine(ring, vec![], 0, to)
        }
        _ => Command::new(op, src, vec![to]),
    }
}
