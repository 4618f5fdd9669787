//! Reading a dataset: any rows, by many lanes, each chunk checked before anything of it is used.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};
use veil_job::{DataError, ShareSource, Slice};
use veil_math::Ring;
use veil_session::{PartyId, PlanHash};
use zeroize::Zeroizing;

use crate::describe::{Head, Member, names, same};
use crate::error::{Damage, StoreError, Unfit};
use crate::folder::{self, Home, MANIFEST, SHARES, read_all};
use crate::frame::{Frame, before};
use crate::key::{DatasetKeys, StoreKey, TAG, digest};
use crate::layout::{Chunk, Column, Layout};
use crate::manifest::{self, Manifest};
use crate::rows::{self, Window};

/// The properties that a job expects of a dataset. A property of `None` is not compared.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// Who loads.
    pub party: PartyId,
    /// The job's parties.
    pub parties: &'a [Member],
    /// The ring that the job computes over.
    pub ring: Ring,
    /// The plan that must have made it: for a job that continues its own input stage.
    pub plan: Option<PlanHash>,
    /// The columns that it must have.
    pub schema: Option<&'a str>,
    /// The rows that it must have.
    pub rows: Option<u64>,
}

/// A complete dataset. Many lanes read at once.
///
/// [`Reader::open`] checks all that is not encrypted; [`Reader::load`] checks each chunk that it decrypts.
pub struct Reader {
    file: File,
    path: PathBuf,
    keys: DatasetKeys,
    head: Head,
    header: [u8; 32],
    layout: Layout,
    frames: [Frame; 2],
    /// Where chunk 0 starts.
    start: u64,
    /// The ring that is asked for.
    ring: Ring,
    /// Buffers that are not in use. Wiped when they go: shares have been in them.
    buffers: Mutex<Vec<[Zeroizing<Vec<u8>>; 2]>>,
}

impl Reader {
    /// Opens the dataset `name` in the folder `root` for a job.
    ///
    /// # Errors
    /// [`StoreError::Name`] and [`StoreError::NotThere`] if there is no such dataset, [`StoreError::Busy`] and [`StoreError::Incomplete`]
    /// if it is not complete, [`StoreError::Format`], [`StoreError::OtherKey`] and [`StoreError::Damaged`] if header, manifest and footer
    /// were not written so under `key`, [`StoreError::Unfit`] if they differ from `expected`, [`StoreError::Io`] if the system refuses.
    pub fn open(
        root: &Path,
        name: &str,
        key: &StoreKey,
        expected: &Expected<'_>,
    ) -> Result<Self, StoreError> {
        let mut reader = Self::open_any(root, name, key)?;
        reader.fit(expected).map_err(|why| StoreError::Unfit {
            name: name.to_owned(),
            why,
        })?;
        reader.ring = expected.ring;
        Ok(reader)
    }

    /// Opens a dataset for whatever it is.
    pub(crate) fn open_any(root: &Path, name: &str, key: &StoreKey) -> Result<Self, StoreError> {
        let home = Home::new(root, name)?;
        if !home.folder.is_dir() {
            return Err(StoreError::NotThere {
                name: name.to_owned(),
                folder: root.to_owned(),
                known: folder::names(root)?,
            });
        }
        if !home.is_complete()? {
            return Err(if home.is_busy() {
                StoreError::Busy {
                    name: name.to_owned(),
                }
            } else {
                home.incomplete()
            });
        }
        let (mut file, length, header, mut head) = home.open()?;
        let path = home.file(SHARES);
        if head.key != key.id() {
            return Err(StoreError::OtherKey {
                path,
                written: head.key,
                ours: key.id(),
            });
        }
        let keys = key.dataset(&head.salt);
        let at = home.file(MANIFEST);
        let text = read_all(&at, manifest::LONGEST)?;
        let text = text.ok_or(Damage::Manifest("it is too long"));
        let manifest = text
            .and_then(|text| Manifest::from_bytes(&text, &keys))
            .map_err(|what| StoreError::damaged(&at, what))?;
        let damaged = |what| StoreError::damaged(&path, what);
        if digest(&header) != manifest.header {
            return Err(damaged(Damage::Part("header")));
        }
        let layout =
            Layout::new(&head.description).map_err(|what| damaged(Damage::Header(what)))?;
        let frames = &manifest.frames;
        let fits = |index: u64| {
            let columns = layout
                .each_column()
                .map(|column| layout.sealed(column, index));
            columns
                .filter(|bytes| *bytes > 0)
                .eq(frames[index as usize].columns.iter().copied())
        };
        if manifest.chunks != layout.chunks() || !fits(0) || !fits(1) {
            let what = Damage::Manifest("it is for other chunks than the header");
            return Err(StoreError::damaged(&at, what));
        }
        // The manifest is authentic, so these are the lengths that were written; none is near 2^63.
        let end = header.len() as u64 + before(frames, layout.chunks());
        if length != end + manifest.footer {
            return Err(damaged(Damage::Length {
                found: length,
                expected: end + manifest.footer,
            }));
        }
        if digest_from(&mut file, end).map_err(StoreError::io("read", &path))?
            != manifest.footer_digest
        {
            return Err(damaged(Damage::Part("footer")));
        }
        if let Some(found) = &manifest.found {
            let schema = &mut head.description.schema;
            *schema = [found, "\n", schema].concat();
        }
        Ok(Reader {
            file,
            keys,
            header: manifest.header,
            ring: head.description.ring,
            layout,
            frames: manifest.frames,
            start: header.len() as u64,
            buffers: Mutex::new(Vec::new()),
            path,
            head,
        })
    }

    /// The header of the dataset.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The ring that is asked for.
    pub(crate) const fn asked_for(&self) -> Ring {
        self.ring
    }

    /// Whether a port has one value for the whole dataset.
    pub(crate) fn has_once(&self, port: usize) -> bool {
        self.layout.ports.get(port).is_some_and(|port| port.once)
    }

    fn fit(&self, expected: &Expected<'_>) -> Result<(), Unfit> {
        let own = &self.head.description;
        // Among whom first: another party of another set is best told by its set.
        if !same(expected.parties, &own.parties) {
            return Err(Unfit::Parties {
                theirs: names(&own.parties),
                ours: names(expected.parties),
            });
        }
        if expected.party != own.party {
            return Err(Unfit::Party {
                theirs: own.party,
                name: own.parties[own.party.index()].name.clone(),
                ours: expected.party,
            });
        }
        if let Some(ours) = expected.plan.filter(|ours| *ours != own.plan) {
            return Err(Unfit::Plan {
                theirs: own.plan.to_string(),
                ours: ours.to_string(),
            });
        }
        if let Some(ours) = expected.schema.filter(|ours| *ours != own.schema) {
            return Err(Unfit::Schema {
                theirs: own.schema.clone(),
                ours: ours.to_owned(),
            });
        }
        if let Some(ours) = expected.rows.filter(|ours| *ours != own.rows()) {
            return Err(Unfit::Rows {
                theirs: own.rows(),
                ours,
            });
        }
        let narrows = own.ring == Ring::Z128 && expected.ring == Ring::Z64;
        if own.ring != expected.ring && !narrows {
            return Err(Unfit::Ring {
                theirs: own.ring,
                ours: expected.ring,
            });
        }
        Ok(())
    }

    /// Reads the shares of one port's one component in the rows of `slice`, packed as `[wire][Ring::bytes(rows)]` in the ring that
    /// was asked for; bits beyond the last row are 0.
    ///
    /// # Errors
    /// [`StoreError::OutOfReach`] if the dataset has no such port, component or rows, or `into` has another length;
    /// [`StoreError::Damaged`] if a chunk does not decrypt; [`StoreError::Io`] if it cannot be read.
    pub fn load(
        &self,
        port: usize,
        component: u8,
        slice: Slice,
        into: &mut [u8],
    ) -> Result<(), StoreError> {
        let Slice { block, first, rows } = slice;
        let beyond = || StoreError::out_of_reach(port, component, slice);
        let own = self.layout.ports.get(port).ok_or_else(beyond)?;
        if own.once && (block, first, rows) != (0, 0, 1) {
            return Err(beyond());
        }
        let of = self.layout.rows(block).ok_or_else(beyond)?;
        let inside = first.checked_add(rows.into()).is_some_and(|end| end <= of);
        let column = self
            .prepare(port, component, rows, into)
            .ok_or_else(beyond)?;
        if !inside {
            return Err(beyond());
        }
        let to = Window {
            rows: rows.into(),
            first: 0,
        };
        self.gather(column, (block, first), rows.into(), (into, to))
    }

    /// As [`Reader::load`], with rows counted over all blocks.
    ///
    /// # Errors
    /// [`StoreError`] as of [`Reader::load`].
    pub fn load_rows(
        &self,
        port: usize,
        component: u8,
        first: u64,
        rows: u32,
        into: &mut [u8],
    ) -> Result<(), StoreError> {
        let beyond = || {
            let block = 0;
            StoreError::out_of_reach(port, component, Slice { block, first, rows })
        };
        let column = self
            .prepare(port, component, rows, into)
            .ok_or_else(beyond)?;
        let mut done = 0;
        while done < u64::from(rows) {
            let row = first.checked_add(done).ok_or_else(beyond)?;
            let (block, at, left) = self.layout.find(row).ok_or_else(beyond)?;
            let count = left.min(u64::from(rows) - done);
            let to = Window {
                rows: rows.into(),
                first: done,
            };
            self.gather(column, (block, at), count, (into, to))?;
            done += count;
        }
        Ok(())
    }

    /// The column that is meant, if there is one and `into` has the length of `rows` rows of it.
    fn prepare(&self, port: usize, component: u8, rows: u32, into: &mut [u8]) -> Option<Column> {
        let own = self.layout.ports.get(port)?;
        let bytes = u64::from(own.width) * self.ring.bytes(rows.into());
        if component >= self.layout.components || rows == 0 || into.len() as u64 != bytes {
            return None;
        }
        if self.ring == Ring::Bits {
            // What is copied is rows, and the last byte has bits beyond them.
            into.fill(0);
        }
        Some(Column { port, component })
    }

    /// Copies `rows` rows of a block from `first` to the rows of `into` from `to.first`.
    fn gather(
        &self,
        column: Column,
        (block, first): (u32, u64),
        rows: u64,
        (into, to): (&mut [u8], Window),
    ) -> Result<(), StoreError> {
        let own = &self.layout.ports[column.port];
        // A value for the whole dataset is one row of chunk 0.
        let held = if own.once {
            1
        } else {
            self.layout.chunk_rows.into()
        };
        let mut done = 0;
        while done < rows {
            let at = first + done;
            let chunk = self.layout.chunk(block, at).expect("the caller looked");
            let count = (chunk.first + u64::from(chunk.rows) - at).min(rows - done);
            let from = Window {
                rows: held,
                first: at - chunk.first,
            };
            let to = Window {
                first: to.first + done,
                ..to
            };
            let exactly = self.ring == self.layout.ring && count == held && to.rows == held;
            self.with_chunk(column, chunk, (&mut *into, exactly), |text, into| {
                let source = (text, self.layout.ring, from);
                rows::copy(own.width, count, source, (into, self.ring, to));
            })?;
            done += count;
        }
        Ok(())
    }

    /// Decrypts a column of a chunk, and gives it to `take` together with `into`; if the chunk is exactly what is asked for, straight
    /// into `into`.
    fn with_chunk(
        &self,
        column: Column,
        chunk: Chunk,
        (into, exactly): (&mut [u8], bool),
        take: impl FnOnce(&[u8], &mut [u8]),
    ) -> Result<(), StoreError> {
        let [mut sealed, mut text] = self.take_buffers();
        let frame = &self.frames[usize::from(chunk.index != 0)];
        let slot = self.layout.slot(column, chunk.index);
        let last = slot + 1 == frame.columns.len();
        let tail = if last {
            &frame.around[slot + 1][..]
        } else {
            &[]
        };
        text.clear();
        frame.before(slot, chunk, &mut text);
        let (lead, length) = (text.len(), frame.columns[slot]);
        sealed.resize(lead + length + tail.len(), 0);
        let at = self.start + before(&self.frames, chunk.index) + frame.start(slot);
        self.file
            .read_exact_at(&mut sealed, at)
            .map_err(StoreError::io("read", &self.path))?;
        let clear = sealed[..lead] == text[..] && sealed[lead + length..] == *tail;
        let column_bytes = &sealed[lead..lead + length];
        let place = self.layout.cell(column, chunk);
        let opened = if exactly {
            clear && self.keys.open(&self.header, place, column_bytes, into)
        } else {
            text.resize(length - TAG, 0);
            let opened = clear && self.keys.open(&self.header, place, column_bytes, &mut text);
            if opened {
                take(&text, into);
            }
            opened
        };
        self.give_back([sealed, text]);
        if opened {
            return Ok(());
        }
        let what = Damage::Chunk {
            block: chunk.block,
            first: chunk.first,
            rows: chunk.rows,
            port: self.layout.ports[column.port].name.clone(),
            component: column.component,
        };
        Err(StoreError::damaged(&self.path, what))
    }

    /// Decrypts everything, and says what is damaged first, if anything.
    pub(crate) fn verify(&self) -> Result<(), StoreError> {
        for index in 0..self.layout.chunks() {
            let chunk = self.layout.chunk_at(index);
            for column in self.layout.each_column() {
                if self.layout.sealed(column, index) > 0 {
                    self.with_chunk(column, chunk, (&mut [], false), |_, _| ())?;
                }
            }
        }
        Ok(())
    }

    fn take_buffers(&self) -> [Zeroizing<Vec<u8>>; 2] {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.pop().unwrap_or_default()
    }

    fn give_back(&self, pair: [Zeroizing<Vec<u8>>; 2]) {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        buffers.push(pair);
    }
}

impl ShareSource for Reader {
    fn load(
        &self,
        port: usize,
        component: u8,
        slice: Slice,
        into: &mut [u8],
    ) -> Result<(), DataError> {
        Ok(self.load(port, component, slice, into)?)
    }
}

/// SHA-256 of what a file has from `at` on.
fn digest_from(file: &mut File, mut at: u64) -> std::io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read_at(&mut buffer, at)? {
            0 => return Ok(hash.finalize().into()),
            read => {
                hash.update(&buffer[..read]);
                at += read as u64;
            }
        }
    }
}
