//! From bytes to the cells of a record of CSV (RFC 4180), without copying.

use memchr::{memchr, memchr_iter, memchr2};

/// The cells of one record.
#[derive(Clone, Default, Debug)]
pub(super) struct Fields {
    /// Start and end of each cell, in the bytes that were split or, if `copied`, in `unescaped`.
    spans: Vec<Span>,
    /// Quoted cells in which quotes were doubled.
    unescaped: Vec<u8>,
    /// A quoted cell goes on after its closing quote: first of them, counted from 0.
    pub(super) stray: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    end: u32,
    copied: bool,
}

/// What [`Fields::split`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Split {
    /// A record; the next one begins at `next`, `lines` further down.
    Record { next: usize, lines: u64 },
    /// The record goes on after the last byte.
    More,
    /// The last byte was read, and a quoted cell is still open.
    Open,
}

impl Fields {
    /// Cells of the record.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// A cell without its quotes and without blanks around it.
    pub(super) fn get<'a>(&'a self, bytes: &'a [u8], index: usize) -> &'a [u8] {
        let Some(&Span { start, end, copied }) = self.spans.get(index) else {
            return &[];
        };
        let from = if copied { &self.unescaped } else { bytes };
        trim(&from[start as usize..end as usize])
    }

    /// Splits the record that begins at `start` of `bytes`; `last` says that nothing follows them. Records end with a
    /// line feed, or a carriage return and a line feed. `bytes` has less than 2^32 bytes.
    pub(super) fn split(&mut self, bytes: &[u8], start: usize, last: bool, delimiter: u8) -> Split {
        self.spans.clear();
        self.unescaped.clear();
        self.stray = None;
        let mut lines = 1;
        let mut at = start;
        loop {
            let mut from = at;
            let mut copied = None;
            if bytes.get(at) == Some(&b'"') {
                let (end, escaped) = match closing(bytes, at + 1, last) {
                    Ok(found) => found,
                    Err(none) => return none,
                };
                let cell = &bytes[at + 1..end];
                lines += memchr_iter(b'\n', cell).count() as u64;
                let after = bytes.get(end + 1).copied();
                let plain = after == Some(delimiter) || after == Some(b'\n');
                if plain && !escaped {
                    self.push(at + 1, end, false);
                    at = end + 2;
                    if after == Some(b'\n') {
                        return Split::Record { next: at, lines };
                    }
                    continue;
                }
                copied = Some(self.unescaped.len());
                unescape(cell, &mut self.unescaped);
                from = end + 1;
            }
            // An unquoted cell, or what follows a closing quote.
            let found = memchr2(delimiter, b'\n', &bytes[from..]);
            let end = match found {
                Some(count) => from + count,
                None if last => bytes.len(),
                None => return Split::More,
            };
            let ends_record = found.is_none() || bytes[end] == b'\n';
            let returns = ends_record && end > from && bytes[end - 1] == b'\r';
            let content = end - usize::from(returns);
            match copied {
                None => self.push(from, content, false),
                Some(start) => {
                    if content > from {
                        self.stray = self.stray.or(Some(self.len()));
                        self.unescaped.extend_from_slice(&bytes[from..content]);
                    }
                    self.push(start, self.unescaped.len(), true);
                }
            }
            if ends_record {
                let next = end + usize::from(found.is_some());
                return Split::Record { next, lines };
            }
            at = end + 1;
        }
    }

    fn push(&mut self, start: usize, end: usize, copied: bool) {
        self.spans.push(Span {
            start: start as u32,
            end: end as u32,
            copied,
        });
    }
}

/// Where the quote is that closes a cell whose content begins at `from`, and whether quotes are doubled before it.
fn closing(bytes: &[u8], mut from: usize, last: bool) -> Result<(usize, bool), Split> {
    let mut escaped = false;
    loop {
        let Some(count) = bytes.get(from..).and_then(|rest| memchr(b'"', rest)) else {
            return Err(if last { Split::Open } else { Split::More });
        };
        let quote = from + count;
        match bytes.get(quote + 1) {
            Some(b'"') => {
                escaped = true;
                from = quote + 2;
            }
            None if !last => return Err(Split::More),
            _ => return Ok((quote, escaped)),
        }
    }
}

fn unescape(cell: &[u8], into: &mut Vec<u8>) {
    let mut rest = cell;
    while let Some(quote) = memchr(b'"', rest) {
        into.extend_from_slice(&rest[..=quote]);
        rest = rest.get(quote + 2..).unwrap_or_default();
    }
    into.extend_from_slice(rest);
}

/// Without blanks and tabs at the ends.
pub(super) fn trim(mut cell: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = cell {
        cell = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = cell {
        cell = rest;
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All records, split from windows of `window` bytes that grow where a record needs it.
    fn split_all(bytes: &[u8], window: usize) -> Vec<Vec<Vec<u8>>> {
        let mut fields = Fields::default();
        let (mut records, mut at, mut end) = (Vec::new(), 0, window.min(bytes.len()));
        while at < bytes.len() {
            match fields.split(&bytes[..end], at, end == bytes.len(), b',') {
                Split::Record { next, .. } => {
                    let record = &bytes[at..next];
                    if record != b"\n" && record != b"\r\n" {
                        let cells = (0..fields.len()).map(|i| fields.get(&bytes[..end], i));
                        records.push(cells.map(<[u8]>::to_vec).collect());
                    }
                    at = next;
                }
                Split::More => end = (end + window).min(bytes.len()),
                Split::Open => break,
            }
        }
        records
    }

    /// The same by the `csv` crate.
    fn by_csv(bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(bytes);
        let records = reader.byte_records().map(|record| record.unwrap());
        let cells =
            |record: csv::ByteRecord| record.iter().map(|cell| trim(cell).to_vec()).collect();
        records.map(cells).collect()
    }

    fn cell() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            "[a-z0-9 .;-]{0,9}".prop_map(String::into_bytes),
            "[a-z]{1,3}\"[a-z]{0,3}".prop_map(String::into_bytes),
            "[a-z,\n\" \r]{0,9}"
                .prop_map(|text| { format!("\"{}\"", text.replace('"', "\"\"")).into_bytes() }),
        ]
    }

    proptest! {
        #[test]
        fn records_are_those_of_another_reader(
            records in prop::collection::vec((prop::collection::vec(cell(), 1..5), any::<bool>()), 0..8),
            ended in any::<bool>(),
            window in 1usize..64,
        ) {
            let mut bytes = Vec::new();
            for (cells, returns) in &records {
                bytes.extend(cells.join(&b','));
                bytes.extend_from_slice(if *returns { b"\r\n" } else { b"\n" });
            }
            if !ended {
                while matches!(bytes.last(), Some(b'\n' | b'\r')) {
                    bytes.pop();
                }
            }
            prop_assert_eq!(split_all(&bytes, window), by_csv(&bytes));
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(prop::sample::select(b"a,\"\n\r \0\xff".to_vec()), 0..200), window in 1usize..64) {
            let _ = split_all(&bytes, window);
        }
    }

    #[test]
    fn what_follows_a_closing_quote_is_noticed() {
        let mut fields = Fields::default();
        let bytes = b"x,\"a \"b,\"c\"\r\n";
        assert_eq!(
            fields.split(bytes, 0, true, b','),
            Split::Record {
                next: bytes.len(),
                lines: 1
            }
        );
        assert_eq!((fields.len(), fields.stray), (3, Some(1)));
        assert_eq!(fields.get(bytes, 1), b"a b");
        assert_eq!(fields.get(bytes, 2), b"c");
    }

    #[test]
    fn lines_are_counted_within_quotes() {
        let mut fields = Fields::default();
        let bytes = b"\"a\nb\r\n\"\"c\",d\ne\n";
        assert_eq!(
            fields.split(bytes, 0, true, b','),
            Split::Record { next: 13, lines: 3 }
        );
        assert_eq!(fields.get(bytes, 0), b"a\nb\r\n\"c");
    }
}
