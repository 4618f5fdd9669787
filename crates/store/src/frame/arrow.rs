//! The framing as `arrow-ipc` writes it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, UInt32Array, UInt64Array};
use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::writer::{DictionaryTracker, FileWriter, IpcWriteOptions};
use arrow_ipc::{Block, FooterBuilder, MetadataVersion, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use flatbuffers::FlatBufferBuilder;

use super::{CONTINUATION, FIELDS, Frame, MAGIC, Metadata, before};
use crate::describe::Head;
use crate::layout::Layout;

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

/// The key-value metadata of a schema message.
pub(super) fn metadata(message: &[u8]) -> Option<Metadata> {
    let message = root_as_message(message).ok()?;
    let pairs = message.header_as_schema()?.custom_metadata()?;
    pairs
        .iter()
        .map(|pair| Some((pair.key()?.to_owned(), pair.value()?.to_owned())))
        .collect()
}
