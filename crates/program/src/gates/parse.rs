//! From the text of a circuit job to a circuit with its files.

use std::{
    borrow::Cow,
    fs::File,
    io::{ErrorKind, Read},
    ops::Range,
    path::{Path, PathBuf},
};

use toml::Spanned;
use veil_circuit::{Circuit, CircuitError, InputPort, Limits, Per, Reduce, bristol, make, scd};
use veil_math::Ring;

use super::{
    Combine, Gates, Input, InputFormat, Length, OutputFormat, Pad,
    lower::{Supply, counter_mode, distinct, rewire},
    outputs::outputs,
    record_bytes,
    source::count_rows,
};
use crate::{
    Roles,
    error::{Fault, JobProblem},
    load::JobFiles,
    raw::{RawCircuit, RawCombine, RawFormat, RawInput, RawJob, RawPad, RawPer},
    roles::unknown,
};

/// Circuits that are put together here, beside those of the circuit catalogue.
const COUNTER_MODE: &str = "aes128-ctr";
/// Rows of a job; 2^40 blocks of AES are 16 TiB.
const MOST_ROWS: u64 = 1 << 40;
/// Wires that inputs or outputs of the job may have in all, before anything of that size is made.
pub(super) const MOST_WIRES: u64 = 1 << 24;
/// Bits of a value over all cycles that is read where they need it, and is nowhere as a whole.
const LONGEST_VALUE: u64 = 1 << 31;
/// Bytes of a circuit file.
const LONGEST_CIRCUIT: u64 = 1 << 30;

impl Gates {
    /// The files of a job, and its circuit with the ports of the job. `path` says where the file of an input is on this machine, if anywhere.
    pub(crate) fn parse(
        raw: &RawJob,
        section: &Spanned<RawCircuit>,
        roles: &Roles,
        job_files: JobFiles<'_>,
        path: impl Fn(&Input) -> Option<PathBuf>,
    ) -> Result<(Self, Circuit), Fault> {
        let circuit = load(section.get_ref(), section.span(), job_files)?;
        let (supply, inputs) = inputs(raw, &circuit, section.span(), roles)?;
        let (chosen, mut outputs) = outputs(raw, &circuit, &inputs, roles)?;
        let names = distinct(outputs.iter().map(|output| output.name.clone()));
        for (output, name) in outputs.iter_mut().zip(names) {
            output.name = name;
        }
        let names = outputs.iter().map(|output| output.name.clone());
        // Of what there is in every cycle no more than a few cycles are anywhere at once; outputs are kept until the last one.
        let each = u64::from(circuit.ring.bits());
        let supplied = circuit.inputs.iter().zip(&supply);
        let supplied = supplied.map(|(port, supply)| {
            u64::from(port.width).saturating_mul(each * supply.parts.len() as u64)
        });
        let opened = outputs.iter().map(|output| u64::from(output.width));
        for (what, found) in [
            ("input wires", supplied.fold(0, u64::saturating_add)),
            ("output wires", opened.sum()),
        ] {
            if found > MOST_WIRES {
                let limit = MOST_WIRES;
                return Err(Fault::new(
                    section.span(),
                    JobProblem::TooMany { what, found, limit },
                ));
            }
        }
        let bad = |error: CircuitError| {
            let (name, reason) = ("with the ports of this job".to_owned(), error.to_string());
            Fault::new(section.span(), JobProblem::Circuit { name, reason })
        };
        let chosen = chosen.into_iter().zip(names);
        let chosen: Vec<_> = chosen
            .map(|((port, reduce), name)| (port, name, reduce))
            .collect();
        let circuit = rewire(circuit, &supply, &chosen).map_err(bad)?;
        let rows = rows(section.get_ref(), section.span(), job_files, &inputs, path)?;
        circuit.validate().map_err(bad)?;
        let gates = Self {
            ring: circuit.ring,
            make: section
                .get_ref()
                .make
                .as_ref()
                .map(|name| name.get_ref().clone()),
            rows,
            inputs,
            outputs,
        };
        gates.check_lengths(raw)?;
        Ok((gates, circuit))
    }

    /// No output file is longer than its records.
    fn check_lengths(&self, raw: &RawJob) -> Result<(), Fault> {
        for (output, raw) in self.outputs.iter().zip(&raw.output) {
            let whole = self.rows * record_bytes(output.width) as u64;
            if let OutputFormat::Binary(Length::Bytes(bytes)) = output.format
                && bytes > whole
            {
                let reason = format!("{} rows give only {whole} bytes", self.rows);
                let problem = JobProblem::Number {
                    field: "bytes",
                    value: bytes.to_string(),
                    reason,
                };
                return Err(Fault::new(raw.span(), problem));
            }
        }
        Ok(())
    }
}

fn load(raw: &RawCircuit, span: Range<usize>, job_files: JobFiles<'_>) -> Result<Circuit, Fault> {
    let bad = |span: Range<usize>, name: &str, reason: String| {
        Fault::new(
            span,
            JobProblem::Circuit {
                name: name.to_owned(),
                reason,
            },
        )
    };
    let mut circuit = match (&raw.make, &raw.file) {
        (Some(name), None) if name.get_ref() == COUNTER_MODE => {
            let cipher = make("aes128")
                .map_err(|error| bad(name.span(), name.get_ref(), error.to_string()))?;
            counter_mode(&cipher)
        }
        (Some(name), None) => make(name.get_ref())
            .map_err(|error| bad(name.span(), name.get_ref(), error.to_string()))?,
        (None, Some(file)) => {
            let shown = file.get_ref().display().to_string();
            let text = match job_files {
                JobFiles::Folder(base) | JobFiles::With(base, _) => {
                    read(&base.join(file.get_ref()))
                        .map(Cow::Owned)
                        .map_err(|error| bad(file.span(), &shown, error.to_string()))?
                }
                JobFiles::Sent(files) => match files.get(&shown) {
                    Some(text) => Cow::Borrowed(text.as_slice()),
                    None => return Err(Fault::new(file.span(), JobProblem::NotSent(shown))),
                },
            };
            let error = |error: bristol::ParseError| bad(file.span(), &shown, error.to_string());
            let limits = Limits::default();
            let netlist = file
                .get_ref()
                .extension()
                .is_some_and(|extension| extension == "scd");
            let read = match &raw.cycles {
                _ if !netlist => bristol::read(&text, &limits),
                Some(cycles) => scd::read(&text, *cycles.get_ref(), Reduce::EveryCycle, &limits),
                None => {
                    let reason =
                        "an SCD netlist does not say how many cycles it has: write `cycles`";
                    return Err(bad(file.span(), &shown, reason.to_owned()));
                }
            };
            read.map_err(error)?
        }
        (make, _) => {
            let problem = JobProblem::OneOf {
                one: "make",
                other: "file",
                both: make.is_some(),
            };
            return Err(Fault::new(span, problem));
        }
    };
    if let Some(cycles) = &raw.cycles {
        let found = *cycles.get_ref();
        circuit.clock.cycles = found;
        if let Err(error) = circuit.validate() {
            return Err(Fault::new(
                cycles.span(),
                JobProblem::Number {
                    field: "cycles",
                    value: found.to_string(),
                    reason: error.to_string(),
                },
            ));
        }
    }
    Ok(circuit)
}

/// A circuit file of this machine.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let limit = LONGEST_CIRCUIT + 1;
    File::open(path)?.take(limit).read_to_end(&mut text)?;
    if text.len() as u64 > LONGEST_CIRCUIT {
        return Err(ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

/// How each port of the circuit is supplied, and the inputs in the order of the new ports.
fn inputs(
    raw: &RawJob,
    circuit: &Circuit,
    span: Range<usize>,
    roles: &Roles,
) -> Result<(Vec<Supply>, Vec<Input>), Fault> {
    let known = || circuit.inputs.iter().map(|port| port.name.as_str());
    for input in &raw.input {
        let port = &input.get_ref().port;
        if !known().any(|name| name == port.get_ref()) {
            return Err(unknown("input port", port.get_ref(), known(), port.span()));
        }
    }
    let mut supplies = Vec::new();
    let mut all = Vec::new();
    for port in &circuit.inputs {
        let own: Vec<_> = raw
            .input
            .iter()
            .filter(|raw| *raw.get_ref().port.get_ref() == port.name)
            .collect();
        let wrong = |span, hint| {
            Fault::new(
                span,
                JobProblem::Supply {
                    port: port.name.clone(),
                    found: own.len(),
                    hint,
                },
            )
        };
        let Some(first) = own.first() else {
            return Err(wrong(span, "add an [[input]] for it"));
        };
        let combined = own
            .iter()
            .filter(|raw| raw.get_ref().combine.is_some())
            .count();
        if own.len() > 1 && combined != own.len() {
            let hint = "write `combine` in each: `xor` or `sum`, if its value is that of theirs";
            return Err(wrong(own[1].span(), hint));
        }
        if own.len() == 1 && combined == 1 {
            return Err(wrong(first.span(), "`combine` needs at least two inputs"));
        }
        let combine = first.get_ref().combine;
        if let Some(other) = own.iter().find(|raw| raw.get_ref().combine != combine) {
            return Err(wrong(
                other.span(),
                "`combine` must be the same in all of them",
            ));
        }
        let per = |raw: &RawInput| match raw.per {
            None => port.per,
            Some(RawPer::Row) => Per::Row,
            Some(RawPer::Job) => Per::Job,
            Some(RawPer::Cycle) => Per::Cycle,
        };
        let shared = per(first.get_ref());
        let names = distinct(own.iter().map(|raw| match own.len() {
            1 => port.name.clone(),
            _ => format!("{} of {}", port.name, raw.get_ref().owner.get_ref()),
        }));
        for (raw, name) in own.iter().zip(&names) {
            let (span, raw) = (raw.span(), raw.get_ref());
            if per(raw) != shared {
                return Err(wrong(span, "`per` must be the same in all of them"));
            }
            let supplied = InputPort {
                per: shared,
                ..port.clone()
            };
            let shape = Shape::of(circuit.ring, supplied.value_width(circuit.clock.cycles));
            all.push(Input {
                name: name.clone(),
                port: port.name.clone(),
                width: (shape.bits(most(raw, shared)))
                    .map_err(|problem| Fault::new(span, problem))?,
                per: shared,
                holder: roles.owner_at(&raw.owner)?,
                format: input_format(raw, shape, shared)?,
                combine: combine.map(|combine| match combine {
                    RawCombine::Xor => Combine::Xor,
                    RawCombine::Sum => Combine::Sum,
                }),
                file: raw.file.as_ref().map(|file| file.get_ref().clone()),
            });
        }
        if combine == Some(RawCombine::Xor) && circuit.ring != Ring::Bits {
            let hint = "integers have a `sum`: write `combine = \"sum\"` in each";
            return Err(wrong(first.span(), hint));
        }
        supplies.push(Supply {
            per: shared,
            parts: names,
            combine: combine.unwrap_or(RawCombine::Xor),
        });
    }
    Ok((supplies, all))
}

/// Bits that a value of an input may have: more where a file is read cycle by cycle.
fn most(raw: &RawInput, per: Per) -> u64 {
    match (per, raw.format.get_ref()) {
        (Per::Cycle, RawFormat::Binary) => LONGEST_VALUE,
        _ => MOST_WIRES,
    }
}

fn input_format(raw: &RawInput, shape: Shape, per: Per) -> Result<InputFormat, Fault> {
    let (span, width) = (raw.format.span(), shape.values.saturating_mul(shape.each));
    let port = raw.port.get_ref();
    let format = *raw.format.get_ref();
    let extra = [
        (
            "pad",
            raw.pad.is_some(),
            format == RawFormat::Binary && per != Per::Job,
        ),
        ("column", raw.column.is_some(), format == RawFormat::Csv),
        ("start", raw.start.is_some(), format == RawFormat::Counter),
        ("file", raw.file.is_some(), format != RawFormat::Counter),
    ];
    if let Some((field, ..)) = extra
        .into_iter()
        .find(|(_, given, useful)| *given && !useful)
    {
        let what = format!("{} input `{port}`", name_of(format));
        return Err(Fault::new(span, JobProblem::NoUse { what, field }));
    }
    let needed = |field| {
        let what = format!("{} input `{port}`", name_of(format));
        Fault::new(span.clone(), JobProblem::NoField { what, field })
    };
    let bad = |field, value: String, reason: &str| {
        let reason = reason.to_owned();
        Fault::new(
            span.clone(),
            JobProblem::Number {
                field,
                value,
                reason,
            },
        )
    };
    Ok(match format {
        RawFormat::Hex => InputFormat::Hex,
        RawFormat::Binary => InputFormat::Binary(match raw.pad {
            None | Some(RawPad::None) => Pad::None,
            Some(RawPad::Zero) => Pad::Zero,
            Some(RawPad::Pkcs7) if record_bytes(width) > 255 => {
                return Err(bad(
                    "pad",
                    "pkcs7".into(),
                    "it is for values of at most 255 bytes; pad with zeros",
                ));
            }
            Some(RawPad::Pkcs7) if !width.is_multiple_of(8) => {
                return Err(bad(
                    "pad",
                    "pkcs7".into(),
                    "it is for values of whole bytes; pad with zeros",
                ));
            }
            Some(RawPad::Pkcs7) => Pad::Pkcs7,
        }),
        RawFormat::Csv => {
            narrow(port, shape, &span)?;
            InputFormat::Csv(raw.column.clone().ok_or_else(|| needed("column"))?)
        }
        RawFormat::Counter => {
            if shape.ring != Ring::Bits {
                let reason = "a counter is for circuits of bits";
                return Err(bad("format", "counter".into(), reason));
            }
            narrow(port, shape, &span)?;
            let start = raw.start.as_ref().ok_or_else(|| needed("start"))?;
            let digits = start.get_ref();
            if !width.is_multiple_of(8) || per != Per::Row {
                let reason = "a counter is for ports of whole bytes that have a value per row";
                return Err(bad("format", "counter".into(), reason));
            }
            let plain = digits.len() == width as usize / 4
                && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let value = u128::from_str_radix(digits, 16).ok().filter(|_| plain);
            InputFormat::Counter(value.ok_or_else(|| {
                let reason = format!("write exactly {} hexadecimal digits in quotes", width / 4);
                Fault::new(
                    start.span(),
                    JobProblem::Number {
                        field: "start",
                        value: digits.clone(),
                        reason,
                    },
                )
            })?)
        }
    })
}

pub(super) const fn name_of(format: RawFormat) -> &'static str {
    match format {
        RawFormat::Hex => "hex",
        RawFormat::Binary => "binary",
        RawFormat::Csv => "csv",
        RawFormat::Counter => "counter",
    }
}

/// What a value of a port is made of.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) ring: Ring,
    /// Wires.
    pub(super) values: u32,
    /// Bits of each.
    pub(super) each: u32,
}

impl Shape {
    /// So many wires; those that are more than 32 bits are too many whatever their number is.
    pub(super) fn of(ring: Ring, values: u64) -> Self {
        let each = ring.bits();
        let values = u32::try_from(values).unwrap_or(u32::MAX);
        Self { ring, values, each }
    }

    /// Bits of a value, which has at most `limit`.
    pub(super) fn bits(self, limit: u64) -> Result<u32, JobProblem> {
        let found = u64::from(self.values) * u64::from(self.each);
        match u32::try_from(found).ok().filter(|_| found <= limit) {
            Some(bits) => Ok(bits),
            None => Err(JobProblem::TooMany {
                what: "bits in a value",
                found,
                limit,
            }),
        }
    }
}

/// Integers in text have at most 128 bits, and a column has one in each row.
pub(super) fn narrow(port: &str, shape: Shape, span: &Range<usize>) -> Result<(), Fault> {
    let reason = match shape {
        Shape {
            ring: Ring::Bits,
            values: 0..=128,
            ..
        }
        | Shape { values: 1, .. } => return Ok(()),
        Shape {
            ring: Ring::Bits,
            values,
            ..
        } => {
            format!("port `{port}` has {values} bits, and numbers at most 128; use hex or binary")
        }
        Shape { values, .. } => {
            format!(
                "port `{port}` has {values} integers, and a row of a column one; use hex or binary"
            )
        }
    };
    let problem = JobProblem::Number {
        field: "format",
        value: "csv".into(),
        reason,
    };
    Err(Fault::new(span.clone(), problem))
}

/// The declared number of rows, or that of the files on this machine.
fn rows(
    raw: &RawCircuit,
    span: Range<usize>,
    job_files: JobFiles<'_>,
    inputs: &[Input],
    path: impl Fn(&Input) -> Option<PathBuf>,
) -> Result<u64, Fault> {
    let (rows, span) = if let Some(rows) = &raw.rows {
        (*rows.get_ref(), rows.span())
    } else if matches!(job_files, JobFiles::Sent(_)) {
        return Err(Fault::new(span, JobProblem::RowsUndeclared));
    } else {
        let mut found: Option<(String, u64)> = None;
        for input in inputs.iter().filter(|input| input.per != Per::Job) {
            let Some(path) = path(input).filter(|path| path.is_file()) else {
                continue;
            };
            let data = |error: veil_job::DataError| {
                Fault::new(span.clone(), JobProblem::Data(error.to_string()))
            };
            let Some(rows) = count_rows(input, &path).map_err(data)? else {
                continue;
            };
            match &found {
                Some((one, one_rows)) if *one_rows != rows => {
                    let (one, one_rows) = (one.clone(), *one_rows);
                    let other = path.display().to_string();
                    return Err(Fault::new(
                        span,
                        JobProblem::RowsDiffer {
                            one,
                            one_rows,
                            other,
                            other_rows: rows,
                        },
                    ));
                }
                _ => found = Some((path.display().to_string(), rows)),
            }
        }
        (
            found
                .ok_or_else(|| Fault::new(span.clone(), JobProblem::RowsUnknown))?
                .1,
            span,
        )
    };
    match rows {
        0 => Err(Fault::new(
            span,
            JobProblem::NoRows {
                what: "the job".into(),
            },
        )),
        1..=MOST_ROWS => Ok(rows),
        found => Err(Fault::new(
            span,
            JobProblem::TooMany {
                what: "rows",
                found,
                limit: MOST_ROWS,
            },
        )),
    }
}
