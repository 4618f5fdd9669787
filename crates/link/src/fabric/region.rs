//! Names in the memory that a machine shares, where the provider `shm` keeps its queues, and what dead processes left of them there.

use std::collections::BTreeMap;
use std::fs::{DirEntry, File, read_dir, remove_file};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fs::{self, FlockOperation, Mode, OFlags, flock};

use super::hello::Hello;
use super::sys::Endpoint;
use crate::LinkFault;

/// What all our names begin with.
const PREFIX: &str = "veil-fabric-";

/// Where they are.
const FOLDER: &str = "/dev/shm";

/// Younger ones may be about to be locked.
const YOUNG: Duration = Duration::from_secs(10);

/// The name of an endpoint: no two are the same, all are of the same length.
pub(super) fn name(process: u32, random: u64) -> String {
    format!("{PREFIX}{process:08x}-{random:016x}")
}

/// Whether an address is such a name.
pub(super) fn is_name(address: &[u8]) -> bool {
    address.strip_prefix(PREFIX.as_bytes()).is_some_and(|rest| {
        rest.len() == 25
            && rest
                .iter()
                .all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
    })
}

/// A name that this process has, and holds locked as long as it lives.
#[derive(Debug)]
pub(super) struct Region {
    name: String,
    /// Its lock is what tells others that it is not left over.
    _file: Option<File>,
}

impl Region {
    /// Locks what the provider has made under this name.
    pub(super) fn hold(name: String) -> Self {
        let file = open(&Path::new(FOLDER).join(&name));
        let locked = file.filter(|file| flock(file, FlockOperation::NonBlockingLockShared).is_ok());
        Region {
            name,
            _file: locked,
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // The provider has removed it, unless it failed.
        let _ = remove_file(Path::new(FOLDER).join(&self.name));
    }
}

/// An endpoint of `shm` in this process, by its name.
///
/// The provider maps the memory of a peer, except if the peer is in the same process: then it uses what the peer has mapped, for as long as
/// it likes, and finds it by a name that it never forgets. So an end is closed only when its peer in this process moves no
/// longer, and none is joined to an end that was closed.
#[derive(Debug)]
enum End {
    Open {
        peer: Option<String>,
    },
    /// Its owner has left it, and its peer has not.
    Left {
        peer: String,
        _ends: (Endpoint, Region),
    },
    Closed,
}

static ENDS: Mutex<BTreeMap<String, End>> = Mutex::new(BTreeMap::new());

fn ends() -> MutexGuard<'static, BTreeMap<String, End>> {
    ENDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An endpoint, and its name if that is in shared memory.
#[derive(Debug)]
pub(super) struct Held(Option<(Endpoint, Option<Region>)>);

impl Held {
    /// Holds a new endpoint, under its name if it has one of those.
    pub(super) fn new(endpoint: Endpoint, name: Option<String>) -> Self {
        if let Some(name) = &name {
            ends().insert(name.clone(), End::Open { peer: None });
        }
        Held(Some((endpoint, name.map(Region::hold))))
    }

    /// Joins it to its peer.
    pub(super) fn join(&mut self, hello: &Hello) -> Result<(), LinkFault> {
        let wrong = || LinkFault::Malformed("its ring is at no address of its own");
        let (endpoint, region) = self.0.as_mut().expect("held until it is dropped");
        let mut connect = || {
            let joined = endpoint.connect(hello.padded(), hello.base, hello.key);
            joined.then_some(()).ok_or_else(wrong)
        };
        let Some(Region { name: own, .. }) = &*region else {
            return connect();
        };
        let theirs = hello.padded().split(|byte| *byte == 0).next();
        let theirs = String::from_utf8_lossy(theirs.unwrap_or_default()).into_owned();
        let mut ends = ends();
        let is = |end: Option<&End>, peer: &String| match end {
            Some(End::Open { peer: known }) => known.as_ref().is_none_or(|known| known == peer),
            Some(End::Left { peer: known, .. }) => known == peer,
            Some(End::Closed) => false,
            None => true,
        };
        if matches!(ends.get(&theirs), Some(End::Closed)) {
            return Err(LinkFault::gone());
        }
        if theirs == *own || !is(ends.get(&theirs), own) || !is(ends.get(own), &theirs) {
            return Err(wrong());
        }
        for (of, to) in [(own, &theirs), (&theirs, own)] {
            if let Some(End::Open { peer }) = ends.get_mut(of) {
                *peer = Some(to.clone());
            }
        }
        // Under the lock: no process closes what is being joined.
        connect()
    }
}

impl Deref for Held {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.0.as_ref().expect("held until it is dropped").0
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut Endpoint {
        &mut self.0.as_mut().expect("held until it is dropped").0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some((endpoint, Some(region))) = self.0.take() else {
            return;
        };
        let mut all = ends();
        let own = region.name.clone();
        let peer = match all.insert(own.clone(), End::Closed) {
            Some(End::Open { peer }) => peer,
            _ => None,
        };
        let Some(peer) = peer else {
            drop(all);
            return;
        };
        let mut over = Vec::new();
        match all.get_mut(&peer) {
            Some(End::Open { .. }) => {
                let left = End::Left {
                    peer,
                    _ends: (endpoint, region),
                };
                all.insert(own, left);
                return;
            }
            Some(end @ End::Left { .. }) => over.push(std::mem::replace(end, End::Closed)),
            Some(End::Closed) | None => {}
        }
        drop(all);
        drop((endpoint, region, over));
    }
}

/// Opens a file of the folder, in which others could have put what is none, or leads elsewhere.
fn open(path: &Path) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(fs::open(path, flags, Mode::empty()).ok()?);
    file.metadata().is_ok_and(|of| of.is_file()).then_some(file)
}

/// Removes what processes left that were killed: how many. A living process holds a lock, in whichever container it is.
pub(super) fn sweep(folder: &Path, young: Duration) -> usize {
    let Ok(entries) = read_dir(folder) else {
        return 0;
    };
    let stale = |entry: &DirEntry| {
        let file = open(&entry.path())?;
        let age = SystemTime::now().duration_since(file.metadata().ok()?.modified().ok()?);
        let old = age.is_ok_and(|age| age >= young);
        (old && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()).then_some(())
    };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
        .filter(|entry| stale(entry).is_some() && remove_file(entry.path()).is_ok())
        .count()
}

/// [`sweep`] where the provider is.
pub(super) fn sweep_all() {
    sweep(Path::new(FOLDER), YOUNG);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_others() {
        let ours = name(7, 9);
        assert!(is_name(ours.as_bytes()));
        for other in [
            "",
            "veil-fabric-",
            "/etc/passwd",
            "veil-fabric-00000007-000000000000000/",
        ] {
            assert!(!is_name(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn what_no_link_holds_is_swept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let [held, left, other] = [name(1, 1), name(2, 2), "other".into()];
        for name in [&held, &left, &other] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let lock = File::open(folder.path().join(&held)).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockShared).unwrap();
        assert_eq!(sweep(folder.path(), YOUNG), 0, "they are young");
        assert_eq!(sweep(folder.path(), Duration::ZERO), 1);
        let there = |name: &str| folder.path().join(name).exists();
        assert_eq!([&*held, &*left, &*other].map(there), [true, false, true]);
        drop(lock);
        assert_eq!(sweep(folder.path(), Duration::ZERO), 1);
    }
}
