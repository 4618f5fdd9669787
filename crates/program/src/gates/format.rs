//! Values in text: hexadecimal lines and CSV columns, to and from records of packed bits.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use veil_math::Ring;

use super::record_bytes;
use crate::InputError;
use crate::{CellFault, CellProblem};
use veil_job::DataError;

/// Reads a file of hexadecimal lines into records; `most` rows are kept and more are an error of the caller's to find.
pub(super) fn read_hex(file: &Path, width: u32, most: u64) -> Result<(Vec<u8>, u64), DataError> {
    let record = record_bytes(width);
    let handle = File::open(file).map_err(DataError::io("open", file))?;
    let mut input = BufReader::new(handle);
    // Room for a prefix, blanks and the end of the line.
    let longest = 2 * record as u64 + 64;
    let (mut records, mut rows, mut line, mut number) = (Vec::new(), 0u64, Vec::new(), 0u64);
    let bad = |line, reason| {
        DataError::from(InputError::Line {
            file: file.to_owned(),
            line,
            reason,
        })
    };
    let mut blank = None;
    loop {
        line.clear();
        let got = input
            .by_ref()
            .take(longest)
            .read_until(b'\n', &mut line)
            .map_err(DataError::io("read", file))?;
        if got == 0 {
            return Ok((records, rows));
        }
        number += 1;
        let text = line.trim_ascii();
        if text.is_empty() {
            blank.get_or_insert(number);
            continue;
        }
        if let Some(blank) = blank {
            return Err(bad(blank, "is empty; write a value in every line".into()));
        }
        rows += 1;
        if rows > most {
            continue;
        }
        let digits = text.strip_prefix(b"0x").unwrap_or(text);
        let start = records.len();
        let pairs = digits
            .chunks_exact(2)
            .map_while(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?));
        records.extend(pairs.take(record));
        // The value may be a key: it is not quoted.
        if records.len() - start != record || digits.len() != 2 * record {
            return Err(bad(
                number,
                format!(
                    "needs exactly {} hexadecimal digits for {width} bits",
                    2 * record
                ),
            ));
        }
        if !fits(&records[start..], width) {
            return Err(bad(
                number,
                format!("has bits beyond the {width} of the port; they must be 0"),
            ));
        }
    }
}

/// Lines of a hexadecimal file that have something on them.
pub(super) fn count_hex(file: &Path) -> Result<u64, DataError> {
    let mut input = BufReader::new(File::open(file).map_err(DataError::io("open", file))?);
    let (mut rows, mut filled) = (0, false);
    loop {
        let chunk = input.fill_buf().map_err(DataError::io("read", file))?;
        if chunk.is_empty() {
            return Ok(rows + u64::from(filled));
        }
        for byte in chunk {
            if *byte == b'\n' {
                rows += u64::from(filled);
                filled = false;
            } else {
                filled |= !byte.is_ascii_whitespace();
            }
        }
        let length = chunk.len();
        input.consume(length);
    }
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// Whether the bits beyond `width` are 0.
pub(super) fn fits(record: &[u8], width: u32) -> bool {
    let used = width % 8;
    used == 0 || record.last().is_none_or(|last| last >> used == 0)
}

/// Bytes of a port's columns over some rows, whose values have `width` bits in all.
pub(super) fn column_bytes(ring: Ring, rows: u32, width: u32) -> u64 {
    ring.bytes(rows.into()) * u64::from(width / ring.bits())
}

/// Integers from records, one after the other in each, to columns.
pub(super) fn elements_from_rows(ring: Ring, records: &[u8], rows: usize, columns: &mut [u8]) {
    let (element, record) = (ring.bytes(1) as usize, records.len() / rows.max(1));
    for (place, column) in columns
        .chunks_exact_mut((rows * element).max(1))
        .enumerate()
    {
        let values = column
            .chunks_exact_mut(element)
            .zip(records.chunks_exact(record));
        for (value, record) in values {
            value.copy_from_slice(&record[place * element..][..element]);
        }
    }
}

/// Integers from columns to records.
pub(super) fn elements_to_rows(ring: Ring, columns: &[u8], rows: usize, records: &mut [u8]) {
    let (element, record) = (ring.bytes(1) as usize, records.len() / rows.max(1));
    for (place, column) in columns.chunks_exact((rows * element).max(1)).enumerate() {
        let values = column
            .chunks_exact(element)
            .zip(records.chunks_exact_mut(record));
        for (value, record) in values {
            record[place * element..][..element].copy_from_slice(value);
        }
    }
}

/// A record as hexadecimal digits and a line end.
pub(super) fn write_hex(record: &[u8], line: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    line.extend(record.iter().flat_map(|byte| {
        [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ]
    }));
    line.push(b'\n');
}

/// Reads a column of integers into records.
pub(super) fn read_csv(
    file: &Path,
    column: &str,
    width: u32,
    most: u64,
) -> Result<(Vec<u8>, u64), DataError> {
    let handle = File::open(file).map_err(DataError::io("open", file))?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .trim(csv::Trim::All)
        .from_reader(handle);
    let mut cells = csv::ByteRecord::new();
    let explain = |error: csv::Error| {
        let line = error.position().map_or(0, csv::Position::line);
        InputError::Line {
            file: file.to_owned(),
            line,
            reason: error.to_string(),
        }
    };
    if !reader.read_byte_record(&mut cells).map_err(explain)? {
        return Err(InputError::NoHeader(file.to_owned()).into());
    }
    let names: Vec<String> = (cells.iter())
        .map(|name| {
            String::from_utf8_lossy(name)
                .trim_start_matches('\u{feff}')
                .to_owned()
        })
        .collect();
    let place = names
        .iter()
        .position(|name| name == column)
        .ok_or_else(|| InputError::NoColumn {
            file: file.to_owned(),
            column: column.to_owned(),
            found: names.clone(),
        })?;
    let (mut records, mut rows) = (Vec::new(), 0u64);
    while reader.read_byte_record(&mut cells).map_err(explain)? {
        rows += 1;
        if rows > most {
            continue;
        }
        let text = std::str::from_utf8(&cells[place]).unwrap_or("\u{fffd}");
        let value = integer(text, width).map_err(|fault| InputError::Cells {
            file: file.to_owned(),
            problems: vec![CellProblem {
                line: cells.position().map(csv::Position::line),
                row: rows,
                column: Some(column.to_owned()),
                value: text.chars().take(40).flat_map(char::escape_debug).collect(),
                fault,
            }],
            more: 0,
        })?;
        records.extend(&value.to_le_bytes()[..record_bytes(width)]);
    }
    Ok((records, rows))
}

/// An integer of `width` bits, at most 128.
fn integer(text: &str, width: u32) -> Result<u128, CellFault> {
    let wide = CellFault::Wide { width };
    let limit = if width >= 128 {
        u128::MAX
    } else {
        (1 << width) - 1
    };
    if let Some(digits) = text.strip_prefix("0x") {
        let value = u128::from_str_radix(digits, 16)
            .ok()
            .filter(|_| !digits.starts_with('+'));
        let value = value.ok_or(CellFault::Hex {
            digits: 2 * record_bytes(width) as u64,
        })?;
        return if value <= limit { Ok(value) } else { Err(wide) };
    }
    let (negative, digits) = text
        .strip_prefix('-')
        .map_or((false, text), |digits| (true, digits));
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(crate::number::NumberError::NotANumber.into());
    }
    let size: u128 = digits.parse().map_err(|_| wide.clone())?;
    if negative {
        // The smallest number of two's complement has half the range as its size.
        if size > limit / 2 + 1 {
            Err(wide)
        } else {
            Ok(size.wrapping_neg() & limit)
        }
    } else if size <= limit {
        Ok(size)
    } else {
        Err(wide)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_fit_their_width_or_are_refused() {
        assert_eq!(integer("255", 8), Ok(255));
        assert_eq!(integer("256", 8), Err(CellFault::Wide { width: 8 }));
        assert_eq!(integer("-1", 8), Ok(255));
        assert_eq!(integer("-128", 8), Ok(128));
        assert_eq!(integer("-129", 8), Err(CellFault::Wide { width: 8 }));
        assert_eq!(integer("0xff", 8), Ok(255));
        assert_eq!(integer("0x100", 8), Err(CellFault::Wide { width: 8 }));
        assert_eq!(
            integer("340282366920938463463374607431768211455", 128),
            Ok(u128::MAX)
        );
        assert_eq!(integer("-1", 128), Ok(u128::MAX));
        assert_eq!(integer("0x+1", 8), Err(CellFault::Hex { digits: 2 }));
        for text in ["", "-", "+1", "1.0", "x", "٣"] {
            assert!(integer(text, 64).is_err(), "{text}");
        }
    }

    #[test]
    fn hexadecimal_lines_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("values");
        let read = |text: &str, width| {
            std::fs::write(&file, text).unwrap();
            read_hex(&file, width, 9)
                .map_err(|error| error.to_string().replace(&file.display().to_string(), "F"))
        };
        assert_eq!(
            read("00ff\r\n0xA1b2\n\n", 16),
            Ok((vec![0, 0xff, 0xa1, 0xb2], 2))
        );
        assert_eq!(count_hex(&file).unwrap(), 2);
        assert_eq!(read("", 16), Ok((vec![], 0)));
        for (text, message) in [
            (
                "00f\n",
                "F: line 1: needs exactly 4 hexadecimal digits for 12 bits",
            ),
            (
                "00\n",
                "F: line 1: needs exactly 4 hexadecimal digits for 12 bits",
            ),
            (
                "0001\n000102\n",
                "F: line 2: needs exactly 4 hexadecimal digits for 12 bits",
            ),
            (
                "00g1",
                "F: line 1: needs exactly 4 hexadecimal digits for 12 bits",
            ),
            (
                "0001\n\n0001",
                "F: line 2: is empty; write a value in every line",
            ),
            (
                "0010",
                "F: line 1: has bits beyond the 12 of the port; they must be 0",
            ),
        ] {
            assert_eq!(read(text, 12), Err(message.to_owned()));
        }
    }
}
