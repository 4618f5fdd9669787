//! The Arrow file around the encrypted columns: its header, the framing of its record batches, its footer.
//!
//! All chunks have the same bytes around their columns, except for three numbers; chunk 0 has its own, since values for the whole
//! dataset are in it. `arrow-ipc` writes one of each kind into memory; what it wrote is the template of all.

use std::collections::BTreeMap;
use std::io;

use crate::layout::Chunk;

#[cfg_attr(not(feature = "arrow"), path = "frame/absent.rs")]
mod arrow;

pub(crate) use arrow::Framing;

/// What an Arrow file starts and ends with.
const MAGIC: &[u8; 6] = b"ARROW1";

/// Bytes before the schema message: the magic, padded.
const LEAD: usize = 64;

/// Says that a message's length follows.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// No header is longer: thousands of ports, and descriptions of all.
pub(crate) const LONGEST_HEADER: u64 = 1 << 26;

/// Columns in clear: block, first row, rows.
const FIELDS: usize = 3;

/// The bytes around the encrypted columns of a record batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    /// What stands before each encrypted column, and after the last.
    pub(crate) around: Vec<Vec<u8>>,
    /// Bytes of each encrypted column; one that is empty in such a chunk is not among them.
    pub(crate) columns: Vec<usize>,
    /// Where in `around[0]` the numbers of block, first row and rows stand.
    pub(crate) fields: [usize; FIELDS],
    /// Bytes of the batch's metadata; the rest is its body.
    pub(crate) metadata: usize,
}

impl Frame {
    /// Bytes of the whole batch.
    pub(crate) fn bytes(&self) -> u64 {
        let around = self.around.iter().map(Vec::len);
        around
            .chain(self.columns.iter().copied())
            .map(|n| n as u64)
            .sum()
    }

    /// What stands before column `index` of `chunk`.
    pub(crate) fn before(&self, index: usize, chunk: Chunk, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.around[index]);
        if index == 0 {
            let [block, first, rows] = self.fields.map(|at| start + at);
            out[block..block + 4].copy_from_slice(&chunk.block.to_le_bytes());
            out[first..first + 8].copy_from_slice(&chunk.first.to_le_bytes());
            out[rows..rows + 4].copy_from_slice(&chunk.rows.to_le_bytes());
        }
    }

    /// Where in the batch the bytes before column `index` start.
    pub(crate) fn start(&self, index: usize) -> u64 {
        let around = self.around[..index].iter().map(Vec::len);
        around
            .chain(self.columns[..index].iter().copied())
            .map(|n| n as u64)
            .sum()
    }
}

/// Bytes of the batches before batch `index`.
pub(crate) fn before(frames: &[Frame; 2], index: u64) -> u64 {
    match index {
        0 => 0,
        _ => frames[0].bytes() + (index - 1) * frames[1].bytes(),
    }
}

/// Key-value pairs of a schema.
pub(crate) type Metadata = BTreeMap<String, String>;

/// Reads the header at the start of a file: its bytes, and the metadata in it.
///
/// Nothing longer than the file is allocated, and nothing beyond [`LONGEST_HEADER`].
pub(crate) fn read_header(
    file: &mut dyn io::Read,
    length: u64,
) -> io::Result<Option<(Vec<u8>, Metadata)>> {
    let mut start = [0; LEAD + 8];
    if length < start.len() as u64 {
        return Ok(None);
    }
    file.read_exact(&mut start)?;
    let lead = start.starts_with(MAGIC) && start[MAGIC.len()..LEAD].iter().all(|byte| *byte == 0);
    let size = i32::from_le_bytes([start[68], start[69], start[70], start[71]]);
    let size = u64::try_from(size).unwrap_or(u64::MAX);
    let fits = size <= LONGEST_HEADER && size <= length - start.len() as u64;
    if !lead || start[LEAD..LEAD + 4] != CONTINUATION || !fits {
        return Ok(None);
    }
    let mut header = start.to_vec();
    header.resize(start.len() + size as usize, 0);
    file.read_exact(&mut header[start.len()..])?;
    Ok(arrow::metadata(&header[start.len()..]).map(|metadata| (header, metadata)))
}
