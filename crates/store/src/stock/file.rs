//! The file of a generation: a header, and pages of items, which are cells or random transfers.
//!
//! ```text
//! 0      magic │ salt │ generation │ identities │ role, s, kind │ items │ time │ sealed offset │ zeros
//! 4096   page 0 │ tag │ page 1 │ tag │ …              512 cells or 4096 transfers a page, field by field; AES-256-GCM
//! ```
//!
//! The key is of this file alone: its salt is random. A page is bound to its number and to the whole header, so that a page of another generation, peer
//! or place does not open. Every page is written once.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use veil_job::{Cells, DataError, StockError, StockKind};
use veil_session::{Secret, Wiped};
use zeroize::Zeroizing;

use super::marks::{BYTES, Marks};
use crate::key::{CellIndex, DatasetKeys, StoreKey, TAG, digest};

/// Items of a page.
pub const fn page_of(kind: StockKind) -> u64 {
    (TEXT / (16 * kind.fields())) as u64
}

/// Bytes of a page without its tag.
const TEXT: usize = 64 << 10;

/// Bytes of the header.
const HEADER: usize = 4096;

const MAGIC: &[u8; 32] = b"veilworks stock 1\n\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// Where the sealed offset begins: all before it is in clear.
const CLEAR: usize = 32 * 5 + 24;

/// Bytes of the marks' file: the marks, and a MAC under a key of the generation.
const MARKED: usize = BYTES + 32;

/// Between whom a generation is, and for what. All of it is compared when it is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Between {
    /// The identity of this party.
    pub me: [u8; 32],
    /// The identity of the other one.
    pub peer: [u8; 32],
    /// Whether this party garbles.
    pub garbles: bool,
    /// The statistical parameter s of its making.
    pub statistical: u8,
    /// What it is of.
    pub kind: StockKind,
}

impl Between {
    /// Items of a page.
    pub(super) const fn page(&self) -> u64 {
        page_of(self.kind)
    }
}

/// A kind as a header says it.
fn kind_of(byte: u8) -> Option<StockKind> {
    let said = |kind: &StockKind| byte_of(*kind) == byte;
    StockKind::ALL.into_iter().find(said)
}

/// Files of before there was another kind have a zero there.
const fn byte_of(kind: StockKind) -> u8 {
    match kind {
        StockKind::Cells => 0,
        StockKind::Transfers => 1,
    }
}

/// A generation that is complete, or is being written.
pub(super) struct PageFile {
    path: PathBuf,
    file: File,
    keys: DatasetKeys,
    header: [u8; 32],
    pub(super) between: Between,
    pub(super) generation: [u8; 32],
    pub(super) cells: u64,
    /// Seconds since 1970 when it was made.
    pub(super) created: u64,
    offset: [u8; 16 + TAG],
}

/// Bytes that so many items take on the disk.
pub(super) const fn bytes_of(kind: StockKind, cells: u64) -> u64 {
    HEADER as u64 + cells.div_ceil(page_of(kind)) * (TEXT + TAG) as u64
}

fn place(kind: StockKind, page: u64) -> CellIndex {
    CellIndex {
        chunk: page,
        column: 0,
        block: 0,
        first: page * page_of(kind),
        rows: page_of(kind) as u32,
    }
}

/// The place of the offset, which no page has.
const OFFSET: CellIndex = CellIndex {
    chunk: u64::MAX,
    column: 1,
    block: 0,
    first: 0,
    rows: 0,
};

impl PageFile {
    /// A new one, whose header is written.
    pub(super) fn create(
        (path, key): (&Path, &StoreKey),
        between: Between,
        (generation, cells, created): ([u8; 32], u64, u64),
        offset: &Secret,
    ) -> Result<Self, StockError> {
        let mut salt = [0; 32];
        aws_lc_rs::rand::fill(&mut salt)
            .map_err(|_| DataError::own("the system gives no random numbers"))?;
        let mut header = Vec::with_capacity(HEADER);
        for part in [&MAGIC[..], &salt, &generation, &between.me, &between.peer] {
            header.extend_from_slice(part);
        }
        let of_kind = byte_of(between.kind);
        header.extend_from_slice(&[u8::from(between.garbles), between.statistical, of_kind]);
        header.resize(32 * 5 + 8, 0);
        header.extend_from_slice(&cells.to_le_bytes());
        header.extend_from_slice(&created.to_le_bytes());
        let keys = key.dataset(&salt);
        let mut sealed = [0; 16 + TAG];
        sealed[..16].copy_from_slice(offset.expose());
        keys.seal(&digest(&header), OFFSET, &mut sealed);
        header.extend_from_slice(&sealed);
        header.resize(HEADER, 0);
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(path).map_err(DataError::io("create", path))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| DataError::io("lock", path)(error.into()))?;
        file.write_all_at(&header, 0)
            .map_err(DataError::io("write", path))?;
        Ok(PageFile {
            path: path.to_owned(),
            file,
            keys,
            header: digest(&header),
            between,
            generation,
            cells,
            created,
            offset: sealed,
        })
    }

    /// One that is complete.
    pub(super) fn open(path: &Path, key: &StoreKey) -> Result<Self, StockError> {
        let whole = Self::open_part(path, key)?;
        let length = whole.file.metadata().map_err(DataError::io("read", path))?;
        if length.len() != whole.bytes() {
            return Err(whole.damaged("it has another length than its header says"));
        }
        Ok(whole)
    }

    /// One whose pages need not all be there.
    pub(super) fn open_part(path: &Path, key: &StoreKey) -> Result<Self, StockError> {
        let damaged = |what| StockError::Damaged {
            file: path.to_owned(),
            what,
        };
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).open(path);
        let file = file.map_err(DataError::io("open", path))?;
        let mut header = [0; HEADER];
        read(&file, &mut header, 0, path, "its header is cut")?;
        let block =
            |k: usize| -> [u8; 32] { header[32 * k..32 * k + 32].try_into().expect("32 bytes") };
        let number = |at: usize| {
            let bytes = header[160 + at..168 + at].try_into().expect("8 bytes");
            u64::from_le_bytes(bytes)
        };
        if block(0) != *MAGIC {
            return Err(damaged("it is no stock of this release"));
        }
        let (role, statistical) = (header[160], header[161]);
        let keys = key.dataset(&block(1));
        let sealed = &header[CLEAR..CLEAR + 16 + TAG];
        let mut offset = Zeroizing::new([0; 16]);
        let opens = keys.open(&digest(&header[..CLEAR]), OFFSET, sealed, &mut *offset);
        let rest = &header[CLEAR + 16 + TAG..];
        let kind = kind_of(header[162]).filter(|_| opens && role <= 1);
        let Some(kind) = kind.filter(|_| rest.iter().all(|byte| *byte == 0)) else {
            return Err(damaged("its header is not what this party has written"));
        };
        let cells = number(8);
        Ok(PageFile {
            path: path.to_owned(),
            file,
            keys,
            header: digest(&header),
            between: Between {
                me: block(3),
                peer: block(4),
                garbles: role == 1,
                statistical,
                kind,
            },
            generation: block(2),
            cells,
            created: number(16),
            offset: sealed.try_into().expect("an offset and its tag"),
        })
    }

    /// Bytes on the disk when it is complete.
    fn bytes(&self) -> u64 {
        bytes_of(self.between.kind, self.cells)
    }

    /// The offset of this party.
    pub(super) fn offset(&self) -> Result<Secret, StockError> {
        let mut offset = Zeroizing::new([0; 16]);
        let header = self.clear_digest()?;
        if !self.keys.open(&header, OFFSET, &self.offset, &mut *offset) {
            return Err(self.damaged("its offset does not open"));
        }
        Ok(Secret::new(*offset))
    }

    fn clear_digest(&self) -> Result<[u8; 32], StockError> {
        let mut clear = [0; CLEAR];
        read(&self.file, &mut clear, 0, &self.path, "its header is cut")?;
        Ok(digest(&clear))
    }

    /// Seals a page.
    pub(super) fn write(&self, page: u64, cells: &Cells<'_>) -> Result<(), StockError> {
        if cells.iter().map(|field| field.len()).sum::<usize>() != TEXT {
            return Err(DataError::own("a page of stock has another length").into());
        }
        let mut buffer = Wiped::zeros(TEXT + TAG);
        let mut rest = &mut buffer[..TEXT];
        for field in cells {
            let (to, behind) = rest.split_at_mut(field.len());
            to.copy_from_slice(field);
            rest = behind;
        }
        self.keys
            .seal(&self.header, place(self.between.kind, page), &mut buffer);
        let at = HEADER as u64 + page * (TEXT + TAG) as u64;
        self.file
            .write_all_at(&buffer, at)
            .map_err(DataError::io("write", &self.path))?;
        Ok(())
    }

    /// Opens a page.
    pub(super) fn page(&self, page: u64) -> Result<Wiped<u8>, StockError> {
        let mut sealed = vec![0; TEXT + TAG];
        let at = HEADER as u64 + page * (TEXT + TAG) as u64;
        read(&self.file, &mut sealed, at, &self.path, "it is cut")?;
        let mut text = Wiped::zeros(TEXT);
        if !self.keys.open(
            &self.header,
            place(self.between.kind, page),
            &sealed,
            &mut text,
        ) {
            return Err(self.damaged("a page is not what this party has written"));
        }
        Ok(text)
    }

    /// A run takes from the file from here on, as others may.
    pub(super) fn share(&self) -> Result<(), StockError> {
        let locked = flock(&self.file, FlockOperation::LockShared);
        Ok(locked.map_err(|error| DataError::io("lock", &self.path)(error.into()))?)
    }

    /// The file is made: runs may take from it.
    pub(super) fn release(&self) -> Result<(), StockError> {
        let unlocked = flock(&self.file, FlockOperation::Unlock);
        Ok(unlocked.map_err(|error| DataError::io("unlock", &self.path)(error.into()))?)
    }

    /// Whether no other run takes from the file. None begins to while this handle is open, if so.
    pub(super) fn is_alone(&self) -> bool {
        flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// Writes zeros over pages whose cells are all used, unless they are erased. What the medium keeps of them is sealed under the key of the generation.
    pub(super) fn erase(&self, pages: std::ops::Range<u64>) {
        let zeros = vec![0; TEXT + TAG];
        for page in pages {
            let at = HEADER as u64 + page * (TEXT + TAG) as u64;
            let mut first = [0; TAG];
            let read = self.file.read_exact_at(&mut first, at);
            if read.is_err() || first != [0; TAG] {
                // The marks say that they are used, whatever the disk does.
                let _ = self.file.write_all_at(&zeros, at);
            }
        }
    }

    /// Writes zeros over the header: without its salt no page opens.
    pub(super) fn erase_header(&self) -> io::Result<()> {
        self.file.write_all_at(&[0; HEADER], 0)?;
        self.file.sync_all()
    }

    /// All of it is on the disk, and as long as its header says: pages of cells that were not made are holes.
    pub(super) fn sync(&self) -> Result<(), StockError> {
        let length = self.file.set_len(self.bytes());
        let synced = length.and_then(|()| self.file.sync_all());
        Ok(synced.map_err(DataError::io("write", &self.path))?)
    }

    /// The marks in a file.
    pub(super) fn marks(&self, path: &Path) -> Result<Marks, StockError> {
        let damaged = |what| StockError::Damaged {
            file: path.to_owned(),
            what,
        };
        let file = File::open(path).map_err(DataError::io("open", path))?;
        let mut bytes = [0; MARKED];
        read(&file, &mut bytes, 0, path, "the marks are cut")?;
        let (marks, mac) = bytes.split_first_chunk::<BYTES>().expect("marks and a MAC");
        let authentic = self.keys.is_authentic(marks, mac);
        let marks = Marks::decode(marks).filter(|marks| {
            // A run that has ended early leaves fewer cells than its header says.
            authentic && marks.generation == self.generation && marks.made <= self.cells
        });
        marks.ok_or_else(|| damaged("the marks are not what this party has written"))
    }

    /// Writes marks to a file: they are on the disk when this returns, or those of before are.
    pub(super) fn mark(&self, path: &Path, marks: &Marks) -> Result<(), StockError> {
        let bytes = marks.encode();
        let whole = [&bytes[..], &self.keys.authenticate(&bytes)].concat();
        let part = path.with_extension("marks-part");
        let write = || {
            let mut options = OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(0o600);
            let file = options.open(&part)?;
            file.write_all_at(&whole, 0)?;
            file.sync_all()?;
            std::fs::rename(&part, path)?;
            sync_parent(path)
        };
        Ok(write().map_err(DataError::io("write", path))?)
    }

    fn damaged(&self, what: &'static str) -> StockError {
        StockError::Damaged {
            file: self.path.clone(),
            what,
        }
    }
}

/// The folder that a file is in, on the disk.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().ok_or(ErrorKind::NotFound)?;
    File::open(parent)?.sync_all()
}

fn read(
    file: &File,
    into: &mut [u8],
    at: u64,
    path: &Path,
    cut: &'static str,
) -> Result<(), StockError> {
    match file.read_exact_at(into, at) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(StockError::Damaged {
            file: path.to_owned(),
            what: cut,
        }),
        read => Ok(read.map_err(DataError::io("read", path))?),
    }
}
