//! The filed jobs of a home, read again only where they changed.
//!
//! Each proposal asks for them: whether its plan is known, and what its member has filed. A home with thousands of jobs is looked
//! through in milliseconds, since a file is opened only if its stamp is another one than when it was read.

use std::collections::BTreeMap;
use std::collections::btree_map::Values;
use std::path::Path;
use std::sync::PoisonError;
use std::{fs, mem};

use veil_session::PlanHash;

use super::{ENTRY, Filed, plan_of};
use crate::file::{FileError, Stamp};
use crate::home::{Home, HomeError};

/// A filed job as it was read.
#[derive(Debug)]
struct Known {
    /// Of its entry, which is written last, and of its folder, before they were read.
    stamps: [Stamp; 2],
    filed: Filed,
    bytes: u64,
}

impl Known {
    fn is_asked_by(&self, member: &str) -> bool {
        self.filed.asked_by.as_deref() == Some(member)
    }
}

/// The filed jobs by their plans.
#[derive(Debug, Default)]
pub(crate) struct Index(BTreeMap<[u8; 32], Known>);

impl Index {
    /// Reads what changed since.
    fn renew(&mut self, home: &Home) -> Result<(), HomeError> {
        let jobs = home.path().join("jobs");
        let mut former = mem::take(&mut self.0);
        for entry in fs::read_dir(&jobs).map_err(FileError::io("list", &jobs))? {
            let entry = entry.map_err(FileError::io("list", &jobs))?;
            let Some(plan) = entry.file_name().to_str().and_then(plan_of) else {
                continue;
            };
            let folder = entry.path();
            let stamps = [&folder.join(ENTRY), &folder].map(|path| Stamp::of(path));
            let known = match former.remove(&plan.0) {
                Some(known) if known.stamps == stamps => known,
                _ => match Filed::load(folder)? {
                    Some(filed) => Known {
                        stamps,
                        bytes: bytes_in(&filed.folder)?,
                        filed,
                    },
                    None => continue,
                },
            };
            self.0.insert(plan.0, known);
        }
        Ok(())
    }
}

/// Bytes of a job's own files: not of what was published of it.
fn bytes_in(folder: &Path) -> Result<u64, FileError> {
    let entries = fs::read_dir(folder).map_err(FileError::io("list", folder))?;
    let files = entries
        .filter_map(|entry| entry.ok()?.metadata().ok())
        .filter(fs::Metadata::is_file);
    Ok(files.map(|file| file.len()).sum())
}

impl Home {
    /// The filed job with this plan, or with a stage of this plan.
    ///
    /// # Errors
    /// [`HomeError::File`] if the folder of jobs cannot be listed, or a filed job cannot be read or understood.
    pub fn filed(&self, plan: PlanHash) -> Result<Option<Filed>, HomeError> {
        if let Some(filed) = Filed::load(self.job_folder(plan))? {
            return Ok(Some(filed));
        }
        self.look_through(|mut jobs| {
            jobs.find(|known| known.filed.stages.contains(&plan))
                .map(|known| known.filed.clone())
        })
    }

    /// All filed jobs, the oldest first. Folders that hold none are passed over.
    ///
    /// # Errors
    /// [`HomeError::File`] if the folder of jobs cannot be listed, or a filed job cannot be read or understood.
    pub fn all_filed(&self) -> Result<Vec<Filed>, HomeError> {
        let mut all: Vec<_> =
            self.look_through(|jobs| jobs.map(|known| known.filed.clone()).collect())?;
        all.sort_by_key(|filed| (filed.since, filed.plan.0));
        Ok(all)
    }

    /// Bytes that the filed jobs of a member take, but for what was published of them.
    pub(crate) fn filed_bytes(&self, asked_by: &str) -> Result<u64, HomeError> {
        self.look_through(|jobs| {
            let own = jobs.filter(|known| known.is_asked_by(asked_by));
            own.map(|known| known.bytes).sum()
        })
    }

    /// The plans of the jobs that a member asked for, and of their stages.
    pub(crate) fn plans_asked_by(&self, asked_by: &str) -> Result<Vec<PlanHash>, HomeError> {
        self.look_through(|jobs| {
            let own = jobs.filter(|known| known.is_asked_by(asked_by));
            let plans = |filed: &Filed| [&[filed.plan], filed.stages.as_slice()].concat();
            own.flat_map(|known| plans(&known.filed)).collect()
        })
    }

    fn look_through<T>(
        &self,
        look: impl FnOnce(Values<'_, [u8; 32], Known>) -> T,
    ) -> Result<T, HomeError> {
        // A thread that panics while it holds the lock leaves entries that were read.
        let mut index = self.index().lock().unwrap_or_else(PoisonError::into_inner);
        index.renew(self)?;
        Ok(look(index.0.values()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approvals::{Filing, JOB};
    use crate::settings::Settings;
    use crate::{Role, file};

    fn plan(number: u8) -> PlanHash {
        PlanHash([number; 32])
    }

    fn file(home: &Home, number: u8, stage: u8, asked_by: Option<&str>) -> Filed {
        let filing = Filing {
            plan: plan(number),
            stages: &[plan(stage)],
            name: "pay",
            lanes: 1,
            stocked: false,
            job: "12345",
            explained: "123",
            data: &[],
            align_key: None,
            files: &[],
            asked_by,
        };
        home.file_job(&filing).unwrap()
    }

    #[test]
    fn what_others_write_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("home");
        let settings = Settings::new("ann", Role::Party).unwrap();
        let home = Home::create(&at, &settings).unwrap();
        // Another process that writes to the same home.
        let other = Home::open(&at).unwrap();
        assert_eq!(home.filed(plan(9)).unwrap(), None);
        file(&other, 1, 9, Some("bob"));
        assert_eq!(home.filed(plan(9)).unwrap().unwrap().plan, plan(1));
        let entry = |number| fs::metadata(other.job_folder(plan(number)).join(ENTRY)).unwrap();
        assert_eq!(home.filed_bytes("bob").unwrap(), 8 + entry(1).len());
        assert_eq!(home.filed_bytes("eve").unwrap(), 0);
        let asked_by = |member| home.plans_asked_by(member).unwrap();
        assert_eq!(asked_by("bob"), [plan(1), plan(9)]);

        // Its own people file it: no member's quota pays for it.
        file(&other, 1, 9, None);
        assert_eq!(home.filed_bytes("bob").unwrap(), 0);
        assert!(asked_by("bob").is_empty());

        file(&home, 2, 8, Some("bob"));
        let text = other.job_folder(plan(2)).join(JOB);
        file::write(&text, b"1234567").unwrap();
        assert_eq!(home.filed_bytes("bob").unwrap(), 10 + entry(2).len());

        // What cannot be read is not passed over, and not what it was.
        let path = other.job_folder(plan(2)).join(ENTRY);
        let right = fs::read(&path).unwrap();
        file::write(&path, b"version = 1\n").unwrap();
        home.all_filed().unwrap_err();
        home.all_filed().unwrap_err();
        file::write(&path, &right).unwrap();
        assert_eq!(home.all_filed().unwrap().len(), 2);

        fs::remove_dir_all(other.job_folder(plan(1))).unwrap();
        assert_eq!(home.filed(plan(9)).unwrap(), None);
        assert_eq!(home.all_filed().unwrap().len(), 1);
    }
}
