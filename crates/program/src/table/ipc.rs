//! Arrow IPC files, also known as Feather.

use std::{fmt, sync::Arc};

use arrow_array::RecordBatch;
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_ipc::{
    Block, Message, MessageHeader, RecordBatch as BatchHeader,
    convert::fb_to_schema,
    reader::{FileDecoder, read_footer_length},
    root_as_footer, root_as_message,
};

use super::{
    Format, Rows, Spec,
    columnar::{Batches, ColumnarRows, Places, guarded},
    input::Input,
};
use crate::InputError;
use veil_job::DataError;

const MAGIC: &[u8; 6] = b"ARROW1";
/// Bytes of a record batch, as stored and as unpacked: a batch is in memory as a whole.
const LARGEST_BATCH: u64 = 1 << 30;

/// An Arrow file whose schema, dictionaries and places of batches were read.
pub(super) struct ArrowFile {
    spec: Arc<Spec>,
    shared: Arc<Shared>,
    places: Arc<Places>,
}

struct Shared {
    input: Input,
    decoder: FileDecoder,
    batches: Vec<Place>,
}

/// Where a record batch is.
struct Place {
    block: Block,
    /// Its first row.
    first: u64,
    rows: u64,
}

/// Why a file cannot be used, before it has a name.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    #[error("{0}")]
    Arrow(#[from] arrow_schema::ArrowError),
    #[error("{0}")]
    Data(#[from] DataError),
    #[error("cannot read: {0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Form(&'static str),
}

impl ArrowFile {
    pub(super) fn open(spec: &Arc<Spec>, input: Input) -> Result<Self, DataError> {
        magic(spec, &input)?;
        let mut places = None;
        let shared = guarded(&spec.file, || {
            let shared = Shared::open(input, |schema| {
                let found = Places::find(spec, schema);
                let projection = match &found {
                    Ok(found) => found.projection.clone(),
                    Err(_) => Vec::new(),
                };
                places = Some(found);
                projection
            });
            shared.map_err(Box::new)
        });
        // Missing columns are said before what else is wrong.
        let places = places.transpose()?;
        let shared = shared?;
        let places = places.ok_or_else(|| InputError::Damaged {
            file: spec.file.clone(),
            reason: "it has no schema".into(),
        })?;
        Ok(Self {
            spec: Arc::clone(spec),
            shared: Arc::new(shared),
            places: Arc::new(places),
        })
    }
}

impl Shared {
    fn open(
        input: Input,
        project: impl FnOnce(&arrow_schema::Schema) -> Vec<usize>,
    ) -> Result<Self, Wrong> {
        let end = input
            .length()
            .checked_sub(10)
            .ok_or(Wrong::Form("it is too short"))?;
        let mut trailer = [0; 10];
        input.read_at(&mut trailer, end)?;
        let length = read_footer_length(trailer)?;
        let start =
            (end.checked_sub(length as u64)).ok_or(Wrong::Form("its footer is too long"))?;
        let mut footer = vec![0; length];
        input.read_at(&mut footer, start)?;
        let footer = root_as_footer(&footer).map_err(|_| Wrong::Form("its footer is damaged"))?;
        let schema = footer.schema().ok_or(Wrong::Form("it has no schema"))?;
        if !schema.endianness().equals_to_target_endianness() {
            return Err(Wrong::Form("it is big-endian"));
        }
        let schema = fb_to_schema(schema);
        let projection = project(&schema);
        let mut decoder = FileDecoder::new(Arc::new(schema), footer.version());
        for block in footer.dictionaries().iter().flatten() {
            let (bytes, _) = read_block(&input, block)?;
            decoder.read_dictionary(block, &bytes)?;
        }
        let decoder = decoder.with_projection(projection);
        let mut batches = Vec::new();
        let mut first = 0u64;
        for block in footer.recordBatches().iter().flatten() {
            let head = read_head(&input, block)?;
            let rows = message(&head)?
                .header_as_record_batch()
                .and_then(|batch| u64::try_from(batch.length()).ok())
                .filter(|&rows| u32::try_from(rows).is_ok())
                .ok_or(Wrong::Form(
                    "it has a batch without a sensible number of rows",
                ))?;
            batches.push(Place {
                block: *block,
                first,
                rows,
            });
            first += rows;
        }
        Ok(Self {
            input,
            decoder,
            batches,
        })
    }

    fn rows(&self) -> u64 {
        self.batches.last().map_or(0, |last| last.first + last.rows)
    }
}

impl Format for ArrowFile {
    fn name(&self) -> &'static str {
        "Arrow"
    }

    fn rows(&self) -> Result<Box<dyn Rows>, DataError> {
        let batches = ArrowBatches {
            spec: Arc::clone(&self.spec),
            shared: Arc::clone(&self.shared),
            next: 0,
        };
        Ok(Box::new(ColumnarRows::new(
            &self.spec,
            &self.places,
            Box::new(batches),
            self.shared.input.length(),
            self.shared.rows(),
        )))
    }
}

impl fmt::Debug for ArrowFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArrowFile {}", self.spec.file.display())
    }
}

struct ArrowBatches {
    spec: Arc<Spec>,
    shared: Arc<Shared>,
    next: usize,
}

impl Batches for ArrowBatches {
    fn next(&mut self) -> Result<Option<RecordBatch>, DataError> {
        let Some(place) = self.shared.batches.get(self.next) else {
            return Ok(None);
        };
        self.next += 1;
        guarded(&self.spec.file, || {
            let (bytes, _) = read_block(&self.shared.input, &place.block)?;
            let batch = self
                .shared
                .decoder
                .read_record_batch(&place.block, &bytes)?;
            match batch {
                Some(batch) if batch.num_rows() as u64 == place.rows => Ok(Some(batch)),
                _ => Err(Wrong::Form("it has a batch of another length than it says")),
            }
        })
    }

    fn seek(&mut self, row: u64) -> Result<usize, DataError> {
        let batches = &self.shared.batches;
        self.next = batches.partition_point(|place| place.first + place.rows <= row);
        Ok(batches
            .get(self.next)
            .map_or(0, |place| (row - place.first) as usize))
    }
}

/// Looks at the first bytes.
fn magic(spec: &Spec, input: &Input) -> Result<(), DataError> {
    let mut head = [0; 8];
    let got = (input.read_at(&mut head, 0)).map_err(DataError::io("read", &spec.file))?;
    let (looks, advice) = match &head[..got] {
        head if head.starts_with(MAGIC) => return Ok(()),
        [0xff, 0xff, 0xff, 0xff, ..] => (
            "an Arrow stream",
            "write it as an Arrow file, which can be read from any place",
        ),
        [b'F', b'E', b'A', b'1', ..] => (
            "Feather of version 1",
            "write it again as version 2, which is an Arrow file",
        ),
        [b'P', b'A', b'R', b'1', ..] => ("a Parquet file", "rename it to end with .parquet"),
        _ => (
            "something else",
            "write it as Arrow, or give it the ending of what it is",
        ),
    };
    Err(InputError::Magic {
        file: spec.file.clone(),
        looks,
        wanted: "an Arrow file",
        advice,
    }
    .into())
}

/// The header of a block, without its body.
fn read_head(input: &Input, block: &Block) -> Result<Vec<u8>, Wrong> {
    let (offset, head, _) = extent(input, block)?;
    let mut bytes = vec![0; head as usize];
    input.read_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// A whole block, which is not larger than the file, nor than a batch may be once unpacked.
fn read_block(input: &Input, block: &Block) -> Result<(Buffer, u64), Wrong> {
    let (offset, head, body) = extent(input, block)?;
    let mut bytes = MutableBuffer::from_len_zeroed((head + body) as usize);
    input.read_at(&mut bytes, offset)?;
    let bytes = Buffer::from(bytes);
    let message = message(&bytes[..head as usize])?;
    let batch = match message.header_type() {
        MessageHeader::DictionaryBatch => message
            .header_as_dictionary_batch()
            .and_then(|dictionary| dictionary.data()),
        _ => message.header_as_record_batch(),
    };
    let batch = batch.ok_or(Wrong::Form("it has a block without a batch"))?;
    let unpacked = unpacked(&batch, &bytes[head as usize..])?;
    Ok((bytes, unpacked))
}

/// Bytes of a batch once it is unpacked.
fn unpacked(batch: &BatchHeader<'_>, body: &[u8]) -> Result<u64, Wrong> {
    if batch.compression().is_none() {
        return Ok(body.len() as u64);
    }
    let mut all = 0u64;
    for buffer in batch.buffers().iter().flatten() {
        if buffer.length() == 0 {
            continue;
        }
        let length = usize::try_from(buffer.offset())
            .ok()
            .and_then(|at| body.get(at..)?.first_chunk::<8>())
            .map(|bytes| i64::from_le_bytes(*bytes))
            .ok_or(Wrong::Form("it has a buffer beyond its block"))?;
        // -1 says that this buffer is not packed.
        all = all.saturating_add(u64::try_from(length).unwrap_or(0));
    }
    if all > LARGEST_BATCH {
        return Err(Wrong::Form(
            "it has a record batch of more than 1 GiB; write it with smaller batches",
        ));
    }
    Ok(all)
}

/// Offset, bytes of the header and bytes of the body of a block, all within the file.
fn extent(input: &Input, block: &Block) -> Result<(u64, u64, u64), Wrong> {
    let sizes = (
        u64::try_from(block.offset()),
        u64::try_from(block.metaDataLength()),
        u64::try_from(block.bodyLength()),
    );
    let (Ok(offset), Ok(head), Ok(body)) = sizes else {
        return Err(Wrong::Form("it has a block of negative size"));
    };
    let end = (offset.checked_add(head)).and_then(|end| end.checked_add(body));
    if end.is_none_or(|end| end > input.length()) {
        return Err(Wrong::Form("it has a block beyond its end: it was cut off"));
    }
    if body > LARGEST_BATCH {
        return Err(Wrong::Form(
            "it has a record batch of more than 1 GiB; write it with smaller batches",
        ));
    }
    Ok((offset, head, body))
}

/// The message at the beginning of a block: a mark, the length, and the header.
fn message(head: &[u8]) -> Result<Message<'_>, Wrong> {
    let continued = head.strip_prefix(&[0xff; 4]).unwrap_or(head);
    let rest = (continued.get(4..)).ok_or(Wrong::Form("it has a block without a header"))?;
    root_as_message(rest).map_err(|_| Wrong::Form("it has a damaged block"))
}
