//! From the text of a circuit job to opened values and their audiences.

use std::{
    collections::HashSet,
    path::{Component, Path},
};

use veil_circuit::{Circuit, OutputPort, Reduce};

use super::{
    Input, Length, Output, OutputFormat,
    parse::{MOST_WIRES, Shape, name_of, narrow},
};
use crate::{
    Roles,
    error::{Fault, JobProblem},
    raw::{RawFormat, RawJob, RawOf, RawOutput},
    roles::unknown,
};

/// What lies beside every result, and says what it is of.
const RECEIPT: &str = "receipt.json";

/// A port of the circuit that is opened, and of which cycles.
type Chosen = (usize, Reduce);

/// Which ports of the circuit are opened, and the outputs in the order of the job.
pub(super) fn outputs(
    raw: &RawJob,
    circuit: &Circuit,
    inputs: &[Input],
    roles: &Roles,
) -> Result<(Vec<Chosen>, Vec<Output>), Fault> {
    let known = || circuit.outputs.iter().map(|port| port.name.as_str());
    let mut chosen = Vec::new();
    let mut all = Vec::new();
    let mut taken = HashSet::new();
    for raw in &raw.output {
        let raw = raw.get_ref();
        let port = known()
            .position(|name| name == raw.port.get_ref())
            .ok_or_else(|| unknown("output port", raw.port.get_ref(), known(), raw.port.span()))?;
        let to = roles.audience_at(&raw.to)?;
        let file = raw.file.get_ref().clone();
        if !file
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
            || file.as_os_str().is_empty()
        {
            let reason = "write a path within the folder of results, without `..`".to_owned();
            let value = file.display().to_string();
            return Err(Fault::new(
                raw.file.span(),
                JobProblem::Number {
                    field: "file",
                    value,
                    reason,
                },
            ));
        }
        if let Some(name) = reserved(&file) {
            let problem = JobProblem::ReservedFile(name);
            return Err(Fault::new(raw.file.span(), problem));
        }
        if !taken.insert((to, file.clone())) {
            let problem = JobProblem::Duplicate {
                what: "output file",
                name: file.display().to_string(),
            };
            return Err(Fault::new(raw.file.span(), problem));
        }
        let reduce = match raw.of {
            None => circuit.outputs[port].reduce,
            Some(RawOf::Cycle) => Reduce::EveryCycle,
            Some(RawOf::Last) => Reduce::None,
        };
        let opened = OutputPort {
            reduce,
            ..circuit.outputs[port].clone()
        };
        let shape = Shape::of(circuit.ring, opened.value_width(circuit.clock.cycles));
        let width = shape.bits(MOST_WIRES);
        let width = width.map_err(|problem| Fault::new(raw.port.span(), problem))?;
        let format = output_format(raw, shape, inputs)?;
        chosen.push((port, reduce));
        all.push(Output {
            name: raw.port.get_ref().clone(),
            width,
            to,
            format,
            file,
        });
    }
    Ok((chosen, all))
}

/// The name of a file or folder that is no result's: that of the receipt, however a file system compares it, and hidden ones, which are of
/// files that are not complete.
fn reserved(file: &Path) -> Option<String> {
    let mut parts = file.components();
    let names = parts
        .by_ref()
        .map(|part| part.as_os_str().to_string_lossy());
    let mut names = names.peekable();
    let first = names
        .peek()
        .filter(|name| name.eq_ignore_ascii_case(RECEIPT));
    let receipt = first.map(ToString::to_string);
    receipt.or_else(|| names.find(|name| name.starts_with('.')).map(Into::into))
}

fn output_format(raw: &RawOutput, shape: Shape, inputs: &[Input]) -> Result<OutputFormat, Fault> {
    let span = raw.format.span();
    let port = raw.port.get_ref();
    let format = *raw.format.get_ref();
    let what = || format!("{} output `{port}`", name_of(format));
    let extra = [
        ("bytes", raw.bytes.is_some(), format == RawFormat::Binary),
        (
            "like",
            raw.like.is_some(),
            format == RawFormat::Binary && raw.bytes.is_none(),
        ),
        ("column", raw.column.is_some(), format == RawFormat::Csv),
        ("signed", raw.signed.is_some(), format == RawFormat::Csv),
    ];
    if let Some((field, ..)) = extra
        .into_iter()
        .find(|(_, given, useful)| *given && !useful)
    {
        return Err(Fault::new(
            span,
            JobProblem::NoUse {
                what: what(),
                field,
            },
        ));
    }
    Ok(match format {
        RawFormat::Hex => OutputFormat::Hex,
        RawFormat::Binary => OutputFormat::Binary(match (&raw.bytes, &raw.like) {
            (Some(bytes), _) => Length::Bytes(*bytes.get_ref()),
            (None, Some(like)) => {
                let known = || inputs.iter().map(|input| input.port.as_str());
                if !known().any(|name| name == like.get_ref()) {
                    return Err(unknown("input port", like.get_ref(), known(), like.span()));
                }
                Length::Like(like.get_ref().clone())
            }
            (None, None) => Length::Whole,
        }),
        RawFormat::Csv => {
            narrow(port, shape, &span)?;
            OutputFormat::Csv {
                column: raw.column.clone().unwrap_or_else(|| port.clone()),
                signed: raw.signed.unwrap_or(false),
            }
        }
        RawFormat::Counter => {
            let reason = "an output is hex, binary or csv".to_owned();
            let problem = JobProblem::Number {
                field: "format",
                value: "counter".into(),
                reason,
            };
            return Err(Fault::new(span, problem));
        }
    })
}
