//! An owner's files as input of the computation.

use std::{
    fs::File,
    io::Read,
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use veil_circuit::Per;
use veil_math::{Ring, bits_from_rows};

use super::{
    Gates, Input, InputFormat, Pad,
    format::{column_bytes, count_hex, elements_from_rows, fits, read_csv, read_hex},
    record_bytes,
};
use crate::InputError;
use veil_job::{DataError, Holder, Slice, Source};

/// The values of one owner: text is read and checked at once, binary files are read where they are needed.
#[derive(Debug)]
pub struct FileSource {
    ports: Vec<Option<Port>>,
    ring: Ring,
    rows: u64,
}

#[derive(Debug)]
struct Port {
    width: u32,
    per: Per,
    values: Values,
}

#[derive(Debug)]
enum Values {
    /// Records of packed bits.
    Memory(Vec<u8>),
    Binary {
        file: File,
        path: PathBuf,
        bytes: u64,
        pad: Pad,
    },
    Counter(u128),
}

impl FileSource {
    /// Opens all files of `holder`; `file` says where that of an input is.
    pub(crate) fn open(
        gates: &Gates,
        holder: Holder,
        file: impl Fn(&Input) -> Result<PathBuf, DataError>,
    ) -> Result<Self, DataError> {
        let port = |input: &Input| -> Result<Option<Port>, DataError> {
            if input.holder != holder {
                return Ok(None);
            }
            let rows = if input.per == Per::Job { 1 } else { gates.rows };
            let path = if matches!(input.format, InputFormat::Counter(_)) {
                PathBuf::new()
            } else {
                file(input)?
            };
            let values = Values::open(input, &path, rows)?;
            Ok(Some(Port {
                width: input.width,
                per: input.per,
                values,
            }))
        };
        Ok(Self {
            ports: gates.inputs.iter().map(port).collect::<Result<_, _>>()?,
            ring: gates.ring,
            rows: gates.rows,
        })
    }
}

impl Values {
    fn open(input: &Input, path: &Path, rows: u64) -> Result<Self, DataError> {
        let width = input.width;
        let (values, found) = match &input.format {
            InputFormat::Counter(start) => return Ok(Self::Counter(*start)),
            InputFormat::Hex => {
                let (records, found) = read_hex(path, width, rows)?;
                (Self::Memory(records), found)
            }
            InputFormat::Csv(column) => {
                let (records, found) = read_csv(path, column, width, rows)?;
                (Self::Memory(records), found)
            }
            InputFormat::Binary(pad) => {
                let file = File::open(path).map_err(DataError::io("open", path))?;
                let bytes = file.metadata().map_err(DataError::io("read", path))?.len();
                let found = binary_rows(path, bytes, width, *pad)?;
                check_unused_bits(&file, path, width)?;
                (
                    Self::Binary {
                        file,
                        path: path.to_owned(),
                        bytes,
                        pad: *pad,
                    },
                    found,
                )
            }
        };
        if found == rows {
            return Ok(values);
        }
        let what = format!("input `{}`", input.port);
        Err(InputError::Rows {
            file: path.to_owned(),
            what,
            found,
            declared: rows,
            alone: false,
            note: String::new(),
        }
        .into())
    }

    /// Copies records `first..` into `into`.
    fn read(&self, width: u32, first: u64, into: &mut [u8]) -> Result<(), DataError> {
        self.read_from(width, (first, 0), into)
    }

    /// Copies bytes into `into`, from byte `skipped` of record `first` on.
    fn read_from(
        &self,
        width: u32,
        (first, skipped): (u64, usize),
        into: &mut [u8],
    ) -> Result<(), DataError> {
        let record = record_bytes(width);
        match self {
            Self::Memory(records) => {
                let start = first as usize * record + skipped;
                into.copy_from_slice(&records[start..start + into.len()]);
            }
            Self::Counter(start) => {
                for (value, row) in into.chunks_exact_mut(record).zip(first..) {
                    // The last bytes of the big-endian number: it wraps around at the width of the port.
                    value.copy_from_slice(
                        &start.wrapping_add(row.into()).to_be_bytes()[16 - record..],
                    );
                }
            }
            Self::Binary {
                file,
                path,
                bytes,
                pad,
            } => {
                let start = first * record as u64 + skipped as u64;
                let here = bytes.saturating_sub(start).min(into.len() as u64) as usize;
                let (data, rest) = into.split_at_mut(here);
                file.read_exact_at(data, start)
                    .map_err(|error| match error.kind() {
                        std::io::ErrorKind::UnexpectedEof => {
                            InputError::Changed(path.clone()).into()
                        }
                        _ => DataError::io("read", path)(error),
                    })?;
                // Only the last record can lack something, and never more than itself.
                rest.fill(if *pad == Pad::Pkcs7 {
                    (record as u64 - bytes % record as u64) as u8
                } else {
                    0
                });
            }
        }
        Ok(())
    }
}

/// Rows of a binary file.
fn binary_rows(path: &Path, bytes: u64, width: u32, pad: Pad) -> Result<u64, DataError> {
    let record = record_bytes(width) as u64;
    match pad {
        Pad::None if !bytes.is_multiple_of(record) => Err(InputError::PartialRecord {
            file: path.to_owned(),
            bytes,
            record,
        }
        .into()),
        Pad::None | Pad::Zero => Ok(bytes.div_ceil(record)),
        Pad::Pkcs7 => Ok(bytes / record + 1),
    }
}

/// Where a record has more bits than the port, they must be 0.
fn check_unused_bits(file: &File, path: &Path, width: u32) -> Result<(), DataError> {
    if width.is_multiple_of(8) {
        return Ok(());
    }
    let mut input = std::io::BufReader::new(file);
    let record = record_bytes(width);
    // They are in its last byte. A record may be longer than what is kept of a file.
    let (before, mut last) = (record as i64 - 1, [0]);
    for number in 1u64.. {
        match input
            .seek_relative(before)
            .and_then(|()| input.read_exact(&mut last))
        {
            Ok(()) if fits(&last, width) => {}
            Ok(()) => {
                let reason = format!(
                    "(record {number} of {record} bytes) has bits beyond the {width} of the port; they must be 0"
                );
                return Err(InputError::Line {
                    file: path.to_owned(),
                    line: number,
                    reason,
                }
                .into());
            }
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(DataError::io("read", path)(error)),
        }
    }
    Ok(())
}

/// Rows of the file of an input, without keeping them.
pub(super) fn count_rows(input: &Input, path: &Path) -> Result<Option<u64>, DataError> {
    Ok(match &input.format {
        InputFormat::Counter(_) => None,
        InputFormat::Hex => Some(count_hex(path)?),
        InputFormat::Csv(column) => Some(read_csv(path, column, input.width, 0)?.1),
        InputFormat::Binary(pad) => {
            let bytes = std::fs::metadata(path)
                .map_err(DataError::io("open", path))?
                .len();
            Some(binary_rows(path, bytes, input.width, *pad)?)
        }
    })
}

impl FileSource {
    /// A port of this owner that has these rows.
    fn port(&self, port: usize, slice: Slice) -> Result<&Port, DataError> {
        let Slice { block, first, rows } = slice;
        let beyond = || DataError::out_of_reach(port, slice);
        let own = self
            .ports
            .get(port)
            .and_then(Option::as_ref)
            .ok_or_else(beyond)?;
        let all = if own.per == Per::Job { 1 } else { self.rows };
        let inside = first.checked_add(rows.into()).is_some_and(|end| end <= all);
        if block != 0 || !inside {
            return Err(beyond());
        }
        Ok(own)
    }
}

impl Source for FileSource {
    /// Reads no more of a record than those cycles need.
    fn fill_cycles(
        &self,
        port: usize,
        slice: Slice,
        (cycles, count): (Range<u64>, u64),
        into: &mut [u8],
    ) -> Result<(), DataError> {
        let own = self.port(port, slice)?;
        let beyond = || DataError::out_of_reach(port, slice);
        let bits = cycles.end.saturating_sub(cycles.start) * u64::from(own.width) / count.max(1);
        let bytes = self.ring.bytes(slice.rows.into()) * bits;
        if self.ring != Ring::Bits || cycles.end > count || into.len() as u64 != bytes {
            return Err(beyond());
        }
        let from = (cycles.start * u64::from(own.width) / count) as usize;
        let bits = bits as usize;
        let column = Ring::Bits.bytes(slice.rows.into()) as usize;
        let mut part = vec![0; (from + bits).div_ceil(8) - from / 8];
        into.fill(0);
        for row in 0..slice.rows as usize {
            let at = (slice.first + row as u64, from / 8);
            own.values.read_from(own.width, at, &mut part)?;
            for bit in 0..bits {
                let place = from % 8 + bit;
                let value = part[place / 8] >> (place % 8) & 1;
                into[bit * column + row / 8] |= value << (row % 8);
            }
        }
        Ok(())
    }

    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        let Slice { first, rows, .. } = slice;
        let own = self.port(port, slice)?;
        let bytes = column_bytes(self.ring, rows, own.width);
        if into.len() as u64 != bytes {
            return Err(DataError::out_of_reach(port, slice));
        }
        let (rows, width) = (rows as usize, own.width as usize);
        let mut records = vec![0; rows * record_bytes(own.width)];
        own.values.read(own.width, first, &mut records)?;
        match self.ring {
            Ring::Bits => bits_from_rows(&records, rows, width, into),
            ring => elements_from_rows(ring, &records, rows, into),
        }
        Ok(())
    }
}
