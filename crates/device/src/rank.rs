//! Positions of rows by the digit of a key: what their command needs.

use veil_math::Ring;

use crate::command::Command;
use crate::form::Form;
use crate::layout::{ColumnType, Layout, Residency, Span};

/// Components that a form is about.
pub(crate) fn parts(form: &Form) -> usize {
    let terms = form.crosses.iter().flat_map(|cross| cross.terms);
    let read = terms.flat_map(|(a, b)| [*a, *b]);
    let written = form.crosses.iter().map(|cross| cross.to);
    let kept = form.keeps.iter().map(|(_, to)| *to);
    let last = read.chain(written).chain(kept).max();
    last.map_or(0, |last| usize::from(last) + 1)
}

/// The components that are written, in their order.
pub(crate) fn written(form: &Form) -> impl Iterator<Item = usize> {
    let writes = form.writes();
    (0..8).filter(move |part| writes >> part & 1 == 1)
}

/// The cross terms whose message is none of the components, in their order.
pub(crate) fn messages(form: &Form) -> impl Iterator<Item = usize> + '_ {
    (0..form.crosses.len()).filter(|cross| !form.is_component(*cross))
}

/// The first thing that is wrong with positions that are to be found.
pub(crate) fn check(form: &Form, command: &Command, layout: &Layout) -> Result<(), &'static str> {
    if form.ring != Ring::Z32 || !form.fits(Form::MOST_PARTS as u8) {
        return Err(
            "a form of integers modulo 2^32, of as many components as there are, is needed",
        );
    }
    let parts = parts(form);
    if command.src.is_empty() || !command.src.len().is_multiple_of(parts) {
        return Err("all components of one indicator or more are needed");
    }
    if command.dst.len() != written(form).count() + messages(form).count() {
        return Err("the components that are written, and the other messages, are needed");
    }
    if command.calls.len() != form.calls() {
        return Err("not the draws of the form");
    }
    let one = |span: &Span| {
        let region = &layout.regions[span.region as usize];
        let integers = region.column == ColumnType::Rows(Ring::Z32);
        integers && region.residency != Residency::Plane && span.count == 1
    };
    if !command.src.iter().chain(&command.dst).all(one) {
        return Err("one item of integers modulo 2^32 each, in no plane, is needed");
    }
    for (k, to) in command.dst.iter().enumerate() {
        let others = command.src.iter().chain(&command.dst[..k]);
        if others.into_iter().any(|other| to.overlaps(*other)) {
            return Err("a destination overlaps a source or another destination");
        }
    }
    Ok(())
}
