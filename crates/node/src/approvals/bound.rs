//! The data files of this participant: paths that its own people give, and the digests of the files that were read.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha2::{Digest, Sha256};
use veil_job::DataError;
use veil_program::{DataFile, Job};
use veil_protocol::Plan;

use super::Binding;
use crate::home::{Home, HomeError, hex};
use crate::log::{Bound, Event};

/// Bytes that are read at once.
const AT_ONCE: usize = 1 << 18;

impl Binding {
    /// Binds a path to its file: the path without links, its length, and the digest of its contents.
    ///
    /// # Errors
    /// If it is no file that can be read.
    pub fn of(owner: &str, what: &str, file: &Path) -> Result<Self, DataError> {
        let io = |doing: &'static str| {
            move |source| DataError::Io {
                doing,
                file: file.to_owned(),
                source,
            }
        };
        let path = file.canonicalize().map_err(io("open"))?;
        if !path.metadata().map_err(io("open"))?.is_file() {
            let source = io::Error::other("it is no file: data are read more than once");
            return Err(io("bind")(source));
        }
        let mut from = File::open(&path).map_err(io("open"))?;
        let (mut hash, mut bytes) = (Sha256::new(), 0);
        let mut some = vec![0; AT_ONCE];
        loop {
            match from.read(&mut some).map_err(io("read"))? {
                0 => break,
                read => {
                    hash.update(&some[..read]);
                    bytes += read as u64;
                }
            }
        }
        Ok(Binding {
            owner: owner.to_owned(),
            what: what.to_owned(),
            file: path,
            bytes: Some(bytes),
            sha256: Some(hex(&hash.finalize())),
        })
    }
}

impl std::fmt::Display for Binding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Binding {
            owner, what, file, ..
        } = self;
        write!(f, "reads: `{owner}`'s `{what}` from {}", file.display())?;
        match self.bytes {
            Some(bytes) => write!(f, ", {bytes} bytes"),
            None => Ok(()),
        }
    }
}

impl Home {
    /// The data files that a job asks this participant for.
    pub fn asked(&self, job: &Job) -> Vec<DataFile> {
        let name = &self.settings().name;
        let mut data = job.data();
        data.retain(|data| data.owner == *name);
        data
    }

    /// Adds the paths that this participant's settings have for jobs like this, where none is bound to this job.
    pub fn bind(&self, job: &mut Job) {
        let settings = self.settings();
        let name = job.spec().name.clone();
        let more = self.asked(job).into_iter().filter_map(|data| {
            let bound = settings
                .data
                .iter()
                .find(|bound| bound.is_of(&name, &data.what))?;
            Some(((data.owner, data.what), bound.file.clone()))
        });
        let more = more.collect();
        job.add_files(more);
    }

    /// The same, of a job of this name that asks for `what`, where `bound` is what its approval says.
    pub(crate) fn missing(&self, job: &str, what: &[String], bound: &[Binding]) -> Option<String> {
        let settings = self.settings();
        let own = &settings.name;
        let is_bound = |what: &String| {
            bound
                .iter()
                .any(|one| one.owner == *own && one.what == *what)
                || settings.data.iter().any(|one| one.is_of(job, what))
        };
        let missing = what.iter().filter(|what| !is_bound(what));
        let options: Vec<String> = missing
            .map(|what| format!("--data {own}:{what}=FILE"))
            .collect();
        (!options.is_empty()).then(|| options.join(" "))
    }

    /// The missing data of this participant: the options that would say where it is, if any is needed.
    pub fn unbound(&self, job: &Job) -> Option<String> {
        let missing = self
            .asked(job)
            .into_iter()
            .filter(|data| data.path.is_none());
        let options: Vec<String> = missing
            .map(|data| format!("--data {}:{}=FILE", data.owner, data.what))
            .collect();
        (!options.is_empty()).then(|| options.join(" "))
    }

    /// Reads the data of this participant by `read`: what it gives, and the digest of every file as it was. None of them may change meanwhile.
    ///
    /// # Errors
    /// If a file cannot be read, or changes.
    pub fn reading<T>(
        &self,
        job: &Job,
        read: impl FnOnce() -> Result<T, DataError>,
    ) -> Result<(T, Vec<Binding>), DataError> {
        let files: Vec<_> = (self.asked(job).into_iter())
            .filter_map(|data| Some((data.owner, data.what, data.path?)))
            .collect();
        let stamps = || files.iter().map(|file| stamp(&file.2)).collect::<Vec<_>>();
        let before = stamps();
        let bound = files
            .iter()
            .map(|(owner, what, file)| Binding::of(owner, what, file));
        let bound = bound.collect::<Result<_, _>>()?;
        let given = read()?;
        let changed = before
            .iter()
            .zip(stamps())
            .position(|(one, other)| *one != other);
        match changed {
            None => Ok((given, bound)),
            Some(at) => Err(DataError::Io {
                doing: "read",
                file: files[at].2.clone(),
                source: io::Error::other(
                    "it changed while it was read: run the job again when no program writes it",
                ),
            }),
        }
    }
}

impl Home {
    /// Logs the files of this participant that were read for a run that begins, and whether they are the files of the approval.
    ///
    /// # Errors
    /// If that cannot be logged.
    pub fn note_read(&self, plan: &Plan, read: &[Binding]) -> Result<(), HomeError> {
        if read.is_empty() {
            return Ok(());
        }
        let filed = self.filed(plan.hash)?;
        let approved = filed.filter(|filed| filed.approved.is_some());
        let approved = approved.map_or_else(Vec::new, |filed| filed.data);
        for read in read {
            let same = |old: &&Binding| (&old.owner, &old.what) == (&read.owner, &read.what);
            let before = approved.iter().find(same);
            let before = before.and_then(|old| old.sha256.clone());
            self.log().append(Event::DataRead {
                plan: Event::plan(plan.hash),
                job: plan.job.name.clone(),
                read: Bound::from(read),
                approved_sha256: before.filter(|old| Some(old) != read.sha256.as_ref()),
            })?;
        }
        Ok(())
    }
}

/// What tells whether a file is another one, or has other content: device, number, length, and when it was changed.
type Stamp = (u64, u64, u64, i64, i64);

fn stamp(path: &Path) -> Option<Stamp> {
    let of = path.metadata().ok()?;
    Some((of.dev(), of.ino(), of.len(), of.ctime(), of.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_bound_by_the_path_without_links_and_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pay.csv");
        std::fs::write(&file, "abc").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let bound = Binding::of("union", "north", &link).unwrap();
        let path = file.canonicalize().unwrap();
        assert_eq!(bound.file, path);
        // FIPS 180-4, the example of one block.
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(bound.sha256.as_deref(), Some(digest));
        let shown = format!("reads: `union`'s `north` from {}, 3 bytes", path.display());
        assert_eq!(bound.to_string(), shown);
        let error = Binding::of("union", "north", folder.path()).unwrap_err();
        assert!(error.to_string().contains("it is no file"), "{error}");
    }
}
