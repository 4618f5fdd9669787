//! The Arrow file around the encrypted columns: its header, the framing of its record batches, its footer.
//!
//! All chunks have the same bytes around their columns, except for three numbers; chunk 0 has its own, since values for the whole
//! dataset are in it. `arrow-ipc` writes one of each kind into memory; what it wrote is the template of all.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, UInt32Array, UInt64Array};
use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::writer::{DictionaryTracker, FileWriter, IpcWriteOptions};
use arrow_ipc::{Block, FooterBuilder, MetadataVersion, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use flatbuffers::FlatBufferBuilder;

use crate::describe::Head;
use crate::layout::{Chunk, Layout};

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

/// The Arrow file around the columns of a dataset.
pub(crate) struct Framing {
    schema: Schema,
    /// Magic and schema, up to the first batch.
    pub(crate) header: Vec<u8>,
    /// Of chunk 0, and of all others.
    pub(crate) frames: [Frame; 2],
}

impl Framing {
    /// The framing of a dataset that is to be written.
    pub(crate) fn new(head: &Head, layout: &Layout) -> Result<Self, ArrowError> {
        let schema = schema(head, layout);
        let (header, first) = template(&schema, layout, 0)?;
        let other = if layout.has_once() {
            template(&schema, layout, 1)?.1
        } else {
            first.clone()
        };
        Ok(Framing {
            schema,
            header,
            frames: [first, other],
        })
    }

    /// What stands after the last batch.
    pub(crate) fn footer(&self, chunks: u64) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        let dictionaries = builder.create_vector::<Block>(&[]);
        let [first, other] = &self.frames;
        let block = |index: u64| {
            let frame = if index == 0 { first } else { other };
            let at = self.header.len() as u64 + before(&self.frames, index);
            let body = frame.bytes() - frame.metadata as u64;
            Block::new(at as i64, frame.metadata as i32, body as i64)
        };
        let batches = builder.create_vector(&(0..chunks).map(block).collect::<Vec<_>>());
        let mut tracker = DictionaryTracker::new(true);
        let schema = IpcSchemaEncoder::new()
            .with_dictionary_tracker(&mut tracker)
            .schema_to_fb_offset(&mut builder, &self.schema);
        let mut footer = FooterBuilder::new(&mut builder);
        footer.add_version(MetadataVersion::V5);
        footer.add_schema(schema);
        footer.add_dictionaries(dictionaries);
        footer.add_recordBatches(batches);
        let footer = footer.finish();
        builder.finish(footer, None);
        let footer = builder.finished_data();
        let end_of_stream = [CONTINUATION, [0; 4]].concat();
        let length = (footer.len() as i32).to_le_bytes();
        [&end_of_stream, footer, &length, &MAGIC[..]].concat()
    }
}

/// Bytes of the batches before batch `index`.
pub(crate) fn before(frames: &[Frame; 2], index: u64) -> u64 {
    match index {
        0 => 0,
        _ => frames[0].bytes() + (index - 1) * frames[1].bytes(),
    }
}

fn schema(head: &Head, layout: &Layout) -> Schema {
    let mut fields = vec![
        Field::new("block", DataType::UInt32, false),
        Field::new("first", DataType::UInt64, false),
        Field::new("rows", DataType::UInt32, false),
    ];
    for column in layout.each_column() {
        let name = &layout.ports[column.port].name;
        // Of three parties, whose component it is; of four, it is that of the party so many places further.
        let which = match (layout.components, column.component) {
            (2, 0) => "own".to_owned(),
            (2, _) => "previous".to_owned(),
            (_, part) => format!("next {}", u16::from(part) + 1),
        };
        let name = format!("{}.{name}.{which}", column.port);
        fields.push(Field::new(name, DataType::Binary, false));
    }
    let metadata = head.to_metadata().into_iter();
    let metadata: HashMap<String, String> = metadata.map(|(k, v)| (k.to_owned(), v)).collect();
    Schema::new_with_metadata(fields, metadata)
}

/// A file's header, and the frame of a chunk whose columns have the lengths of chunk `index`.
fn template(schema: &Schema, layout: &Layout, index: u64) -> Result<(Vec<u8>, Frame), ArrowError> {
    let columns = layout.each_column();
    let lengths: Vec<usize> = columns.map(|column| layout.sealed(column, index)).collect();
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(UInt32Array::from(vec![0])),
        Arc::new(UInt64Array::from(vec![0])),
        Arc::new(UInt32Array::from(vec![0])),
    ];
    for length in &lengths {
        columns.push(Arc::new(BinaryArray::from_vec(vec![&vec![0; *length]])));
    }
    let options = IpcWriteOptions::try_new(64, false, MetadataVersion::V5)?;
    let mut writer = FileWriter::try_new_with_options(Vec::new(), schema, options)?;
    writer.write(&RecordBatch::try_new(Arc::new(schema.clone()), columns)?)?;
    let file = writer.into_inner()?;
    let frame = read_template(&file, &lengths);
    frame.ok_or_else(|| ArrowError::IpcError("the library's own file cannot be read".into()))
}

/// Cuts a file with one batch into its header and the frame of its batch.
fn read_template(file: &[u8], lengths: &[usize]) -> Option<(Vec<u8>, Frame)> {
    let (rest, end) = file.split_last_chunk::<10>()?;
    let footer = i32::from_le_bytes(*end.first_chunk()?) as usize;
    let footer = root_as_footer(rest.get(rest.len().checked_sub(footer)?..)?).ok()?;
    let block = *footer.recordBatches()?.iter().next()?;
    let (at, metadata) = (block.offset() as usize, block.metaDataLength() as usize);
    let batch = file.get(at..at + metadata + block.bodyLength() as usize)?;
    let message = root_as_message(batch.get(8..metadata)?).ok()?;
    let buffers = message.header_as_record_batch()?.buffers()?;
    // Two buffers of a number column: validity, values; three of a binary one: validity, offsets, values.
    let start = |buffer: usize| metadata + buffers.get(buffer).offset() as usize;
    if buffers.len() != 2 * FIELDS + 3 * lengths.len() {
        return None;
    }
    let mut around = Vec::with_capacity(lengths.len() + 1);
    let mut end = 0;
    for (column, length) in lengths
        .iter()
        .enumerate()
        .filter(|(_, length)| **length > 0)
    {
        let values = start(2 * FIELDS + 3 * column + 2);
        around.push(batch.get(end..values)?.to_vec());
        end = values + length;
    }
    around.push(batch.get(end..)?.to_vec());
    let frame = Frame {
        around,
        columns: lengths
            .iter()
            .copied()
            .filter(|length| *length > 0)
            .collect(),
        fields: [start(1), start(3), start(5)],
        metadata,
    };
    Some((file[..at].to_vec(), frame))
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
    Ok(metadata(&header[start.len()..]).map(|metadata| (header, metadata)))
}

/// The key-value metadata of a schema message.
fn metadata(message: &[u8]) -> Option<Metadata> {
    let message = root_as_message(message).ok()?;
    let pairs = message.header_as_schema()?.custom_metadata()?;
    pairs
        .iter()
        .map(|pair| Some((pair.key()?.to_owned(), pair.value()?.to_owned())))
        .collect()
}
