//! Writing a dataset: each column of each chunk goes, encrypted, where the layout says.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::rand;
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock, fstatvfs};
use rustix::io::Errno;
use veil_job::{DataError, ShareSink, Slice};
use zeroize::Zeroizing;

use crate::describe::{Description, Head};
use crate::error::StoreError;
use crate::folder::{Guard, Home, MANIFEST, MANIFEST_PART, SHARES, new_file, sync_folder};
use crate::frame::{Framing, before};
use crate::key::{DatasetKeys, StoreKey, TAG, digest};
use crate::layout::{Chunk, Column, Layout};
use crate::manifest::Manifest;
use crate::rows::{self, Window};

/// Bytes of the footer besides 24 per chunk, at most: enough to reserve.
const FOOTER: u64 = 1 << 14;

/// Takes a party's shares and keeps them, encrypted. Many lanes write at once, in any order, each place once.
///
/// Dropped before [`Writer::finish`], it removes what it wrote. A process that dies leaves a dataset that is incomplete: nothing
/// loads it, the next run of the same name replaces it, and [`sweep`](crate::sweep) removes it.
pub struct Writer {
    home: Home,
    file: File,
    keys: DatasetKeys,
    layout: Layout,
    framing: Framing,
    /// Digest of the file's header.
    header: [u8; 32],
    /// A bit for each column of each chunk: it was begun.
    begun: Vec<AtomicU64>,
    /// How many were written.
    written: AtomicU64,
    /// Buffers that are not in use.
    buffers: Mutex<Vec<Zeroizing<Vec<u8>>>>,
    finished: AtomicBool,
}

impl Writer {
    /// Makes a dataset in the folder `root`, which is made if it is not there, and reserves its space on the disk.
    ///
    /// An incomplete dataset of the name, left by an interrupted run, is replaced; a complete dataset never is.
    ///
    /// # Errors
    /// [`StoreError::Name`] and [`StoreError::Shape`] for a description that no dataset can have, [`StoreError::Exists`] if there
    /// is a complete dataset of the name, [`StoreError::Busy`] if a run writes it, [`StoreError::Full`] if the disk has no room,
    /// [`StoreError::Random`] without randomness, [`StoreError::Io`] if the system refuses.
    pub fn create(
        root: &Path,
        key: &StoreKey,
        description: &Description,
    ) -> Result<Self, StoreError> {
        let home = Home::new(root, &description.name)?;
        description.check().map_err(StoreError::Shape)?;
        let description = Description {
            chunk_rows: Layout::choose(description),
            ..description.clone()
        };
        let layout = Layout::new(&description).map_err(StoreError::Shape)?;
        let mut salt = [0; 32];
        rand::fill(&mut salt).map_err(|_| StoreError::Random)?;
        // Whole seconds: more is of no use, and a file tells no more of a run than it must.
        let now = jiff::Timestamp::now();
        let head = Head {
            description,
            created: jiff::Timestamp::from_second(now.as_second())
                .unwrap_or(now)
                .to_string(),
            key: key.id(),
            salt,
        };
        let framing = Framing::new(&head, &layout)
            .map_err(|error| StoreError::io("lay out", &home.folder)(io::Error::other(error)))?;
        let file = Self::begin(&home)?;
        let columns = layout.chunks() * layout.columns() as u64;
        let writer = Writer {
            keys: key.dataset(&salt),
            header: digest(&framing.header),
            begun: (0..columns.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
            written: AtomicU64::new(0),
            buffers: Mutex::new(Vec::new()),
            finished: AtomicBool::new(false),
            home,
            file,
            layout,
            framing,
        };
        writer.reserve()?;
        writer.write(0, &writer.framing.header)?;
        Ok(writer)
    }

    /// Makes the folder and the file, and locks the file: while it is locked, the dataset is being written.
    fn begin(home: &Home) -> Result<File, StoreError> {
        let _guard = Guard::take(&home.root)?;
        if home.folder.exists() {
            if home.is_complete()? {
                let (_, _, _, head) = home.open()?;
                return Err(StoreError::Exists {
                    name: home.name.clone(),
                    folder: home.root.clone(),
                    created: head.created,
                    plan: head.description.plan.to_string(),
                });
            }
            if home.is_busy() {
                return Err(StoreError::Busy {
                    name: home.name.clone(),
                });
            }
            home.remove()?;
        }
        DirBuilder::new()
            .mode(0o700)
            .create(&home.folder)
            .map_err(StoreError::io("create the folder", &home.folder))?;
        let path = home.file(SHARES);
        let file = new_file(OpenOptions::new().create_new(true), &path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| StoreError::io("lock", &path)(error.into()))?;
        Ok(file)
    }

    /// Reserves the space, so that a full disk is noticed before anything is computed. Not every file system can.
    fn reserve(&self) -> Result<(), StoreError> {
        let chunks = self.layout.chunks();
        let bytes = self.start(chunks) + 24 * chunks + self.framing.header.len() as u64 + FOOTER;
        let path = self.home.file(SHARES);
        // Asked before: a reservation that fails may have taken all that others need on the disk, for a while.
        let disk = fstatvfs(&self.file)
            .map_err(|error| StoreError::io("look for space for", &path)(error.into()))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if free < bytes {
            return Err(StoreError::Full {
                name: self.home.name.clone(),
                folder: self.home.root.clone(),
                needs: bytes,
                free,
            });
        }
        match fallocate(&self.file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(()),
            Err(error) => {
                Err(StoreError::io("reserve space for", &self.home.file(SHARES))(error.into()))
            }
        }
    }

    /// Where chunk `index` starts.
    fn start(&self, index: u64) -> u64 {
        self.framing.header.len() as u64 + before(&self.framing.frames, index)
    }

    /// Takes the shares of one port's one component in the rows of `slice`, packed as `[wire][Ring::bytes(rows)]`.
    ///
    /// A slice starts at a multiple of the description's `chunk_rows` and is as long, or ends its block; a port with one value
    /// comes as one row of block 0.
    ///
    /// # Errors
    /// [`StoreError::OutOfReach`] if the dataset has no such port, component or slice, or `shares` another length;
    /// [`StoreError::Twice`] if these rows were kept before; [`StoreError::Io`] if they cannot be written.
    pub fn keep(
        &self,
        port: usize,
        component: u8,
        slice: Slice,
        shares: &[u8],
    ) -> Result<(), StoreError> {
        let Slice { block, first, rows } = slice;
        let beyond = || StoreError::out_of_reach(port, component, slice);
        let column = Column { port, component };
        let layout = &self.layout;
        let own = layout.ports.get(port).ok_or_else(beyond)?;
        let of = layout.rows(block).ok_or_else(beyond)?;
        let end = first.checked_add(rows.into()).ok_or_else(beyond)?;
        let bytes = u64::from(own.width) * layout.ring.bytes(rows.into());
        if component >= layout.components || rows == 0 || end > of || shares.len() as u64 != bytes {
            return Err(beyond());
        }
        if own.once {
            if (block, first, rows) != (0, 0, 1) {
                return Err(beyond());
            }
            let one = Window { rows: 1, first: 0 };
            let source = (shares, layout.ring, one);
            return self.seal(column, layout.chunk_at(0), |text| {
                rows::copy(own.width, 1, source, (text, layout.ring, one));
            });
        }
        let chunk_rows = u64::from(layout.chunk_rows);
        if !first.is_multiple_of(chunk_rows) || (!end.is_multiple_of(chunk_rows) && end != of) {
            return Err(beyond());
        }
        let mut at = first;
        while at < end {
            let chunk = layout.chunk(block, at).ok_or_else(beyond)?;
            let from = Window {
                rows: rows.into(),
                first: at - first,
            };
            let to = Window {
                rows: chunk_rows,
                first: 0,
            };
            let source = (shares, layout.ring, from);
            self.seal(column, chunk, |text| {
                rows::copy(
                    own.width,
                    chunk.rows.into(),
                    source,
                    (text, layout.ring, to),
                );
            })?;
            at += chunk_rows;
        }
        Ok(())
    }

    /// Encrypts what `fill` writes, and writes it with the framing before it.
    fn seal(
        &self,
        column: Column,
        chunk: Chunk,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), StoreError> {
        let index = chunk.index * self.layout.columns() as u64 + self.layout.index(column) as u64;
        let bit = 1 << (index % 64);
        // Taken before anything is encrypted: no nonce is ever used for two texts, whatever lanes do.
        if self.begun[(index / 64) as usize].fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            return Err(StoreError::Twice {
                port: column.port,
                component: column.component,
                block: chunk.block,
                first: chunk.first,
            });
        }
        let frame = &self.framing.frames[usize::from(chunk.index != 0)];
        let mut buffer = self.take_buffer();
        buffer.clear();
        let place = self.layout.slot(column, chunk.index);
        frame.before(place, chunk, &mut buffer);
        let start = buffer.len();
        buffer.resize(start + frame.columns[place], 0);
        let sealed = &mut buffer[start..];
        let text = sealed.len() - TAG;
        fill(&mut sealed[..text]);
        self.keys
            .seal(&self.header, self.layout.cell(column, chunk), sealed);
        if place + 1 == frame.columns.len() {
            buffer.extend_from_slice(&frame.around[place + 1]);
        }
        self.write(self.start(chunk.index) + frame.start(place), &buffer)?;
        self.give_back(buffer);
        self.written.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.file
            .write_all_at(bytes, at)
            .map_err(StoreError::io("write", &self.home.file(SHARES)))
    }

    /// Everything has come and is verified: brings it to the disk, and makes the dataset complete.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if not all shares have come, [`StoreError::Io`] if the system refuses; the dataset is then not
    /// complete, unless only the very last step failed, after its manifest got its name.
    pub fn finish(&self) -> Result<(), StoreError> {
        self.finish_with(None)
    }

    /// The same, with a line that goes before the schema, under the manifest's code: what the run has found out of the rows.
    ///
    /// # Errors
    /// [`StoreError`] as of [`Writer::finish`].
    pub fn finish_with(&self, found: Option<&str>) -> Result<(), StoreError> {
        let (got, want) = (self.written.load(Ordering::Relaxed), self.layout.parts());
        if got != want {
            return Err(StoreError::Missing { got, want });
        }
        let chunks = self.layout.chunks();
        let footer = self.framing.footer(chunks);
        let end = self.start(chunks);
        let path = self.home.file(SHARES);
        self.write(end, &footer)?;
        self.file
            .set_len(end + footer.len() as u64)
            .and_then(|()| self.file.sync_all())
            .map_err(StoreError::io("write to the disk", &path))?;
        let manifest = Manifest {
            header: self.header,
            chunks,
            frames: self.framing.frames.clone(),
            footer: footer.len() as u64,
            footer_digest: digest(&footer),
            found: found.map(str::to_owned),
        };
        let part = self.home.file(MANIFEST_PART);
        new_file(OpenOptions::new().create(true).truncate(true), &part)?
            .write_all(&manifest.to_bytes(&self.keys))
            .map_err(StoreError::io("write", &part))?;
        File::open(&part)
            .and_then(|file| file.sync_all())
            .map_err(StoreError::io("write to the disk", &part))?;
        sync_folder(&self.home.root)?;
        let manifest = self.home.file(MANIFEST);
        fs::rename(&part, &manifest)
            .map_err(StoreError::io("rename a finished file to", &manifest))?;
        // From here on it is complete, whatever the last steps say.
        self.finished.store(true, Ordering::Relaxed);
        flock(&self.file, FlockOperation::Unlock)
            .map_err(|error| StoreError::io("unlock", &path)(error.into()))?;
        sync_folder(&self.home.folder)
    }

    fn take_buffer(&self) -> Zeroizing<Vec<u8>> {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.pop().unwrap_or_default()
    }

    /// What is in the buffer is ciphertext by now.
    fn give_back(&self, buffer: Zeroizing<Vec<u8>>) {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.push(buffer);
    }
}

impl ShareSink for Writer {
    fn keep(
        &self,
        port: usize,
        component: u8,
        slice: Slice,
        shares: &[u8],
    ) -> Result<(), DataError> {
        Ok(self.keep(port, component, slice, shares)?)
    }

    fn finish(&self) -> Result<(), DataError> {
        Ok(self.finish()?)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !*self.finished.get_mut() {
            // The run has failed for another reason, which is the one to report.
            let _ = self.home.remove();
        }
    }
}
