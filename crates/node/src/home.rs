//! The folder of one participant.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::{Duration, Instant};

use aws_lc_rs::hkdf;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use veil_link::tls::{Fingerprint, Identity, IdentityError};
use veil_session::PlanHash;
use zeroize::Zeroizing;

use crate::approvals::Index;
use crate::file::{self, FileError, Stamp};
use crate::log::{Event, Ledger, Log, LogFault, Run, Uses};
use crate::members::{Member, Members, Revoked};
use crate::names::{NameError, Role};
use crate::settings::{Settings, SettingsError};
use crate::time::Time;

/// How long a command waits for another one that writes to the same home.
const PATIENCE: Duration = Duration::from_secs(10);

/// A participant's home. Many threads and several processes may use the same one.
#[derive(Debug)]
pub struct Home {
    path: PathBuf,
    settings: Settings,
    now: RwLock<Now>,
    /// Sums over the entries of the log.
    ledger: Mutex<Ledger>,
    /// Filed jobs, as they were read.
    index: Mutex<Index>,
}

/// What may change while a process runs.
#[derive(Debug)]
struct Now {
    identity: Arc<Identity>,
    members: Arc<Members>,
    stamps: [Stamp; 2],
}

/// Files that were read again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Changed {
    /// The key: connections must be made and taken with the new one.
    pub identity: bool,
    /// The members: one may have been revoked.
    pub members: bool,
}

/// A home cannot be used, or refuses the request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HomeError {
    /// There is none.
    #[error("{} is no home: run `veil init NAME --role ROLE` to make one there, or name another with `--home DIR` or VEIL_HOME", .0.display())]
    Missing(PathBuf),
    /// There is something already.
    #[error("{} is there already and not empty: a home is never overwritten; choose another folder with `--home DIR`", .0.display())]
    Exists(PathBuf),
    /// One of its files cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Its key cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Its settings make no sense.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A bad name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Another process writes to it for long.
    #[error("another veil process has been writing to {} for {} s: wait for it, or end it, and try again", .0.display(), PATIENCE.as_secs())]
    Busy(PathBuf),
    /// No such member.
    #[error("there is no member `{name}`; {}", named(known))]
    NoMember {
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// The log does not end as it should.
    #[error("{}: the log does not end as it was left, and nothing is added to it: `veil log verify` says where; move it and `log.head` to a safe place, and a new log begins with the next entry", .0.display())]
    LogDamaged(PathBuf),
    /// The log is not in order.
    #[error("{}: {_1}", .0.display())]
    LogFault(PathBuf, Box<LogFault>),
    /// An event that must be logged before it happens cannot be logged.
    #[error("the log cannot be written, and nothing runs that is not in it: {0}")]
    Unlogged(Box<HomeError>),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(String),
}

fn named(names: &[String]) -> String {
    match names {
        [] => "there are none yet: `veil invite` and `veil join` make them".to_owned(),
        _ => format!("there are `{}`", names.join("`, `")),
    }
}

/// The right to write to a home, until it is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Home {
    /// Makes a home with a new key. The folder appears complete or not at all; an existing one must be empty.
    ///
    /// # Errors
    /// [`HomeError::Settings`] if they do not fit each other, [`HomeError::Exists`] if the folder is not empty,
    /// [`HomeError::Identity`] and [`HomeError::Random`] if no key can be made, [`HomeError::File`] if a file cannot be written.
    pub fn create(path: &Path, settings: &Settings) -> Result<Self, HomeError> {
        settings.check()?;
        if fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) || path.is_file() {
            return Err(HomeError::Exists(path.to_owned()));
        }
        let above = file::folder_of(path);
        fs::create_dir_all(above).map_err(FileError::io("create the folder", above))?;
        let staged = tempfile::Builder::new()
            .prefix(".veil-")
            .suffix(".partial")
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(above)
            .map_err(FileError::io("create a folder beside", path))?;
        let at = staged.path();
        let identity = Identity::generate()?;
        identity.save(&at.join(KEY))?;
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(secret.as_mut_slice())
            .map_err(|error| HomeError::Random(error.to_string()))?;
        file::write(&at.join(STORE_KEY), secret.as_slice())?;
        file::write(&at.join(SETTINGS), settings.to_toml().as_bytes())?;
        file::write(&at.join(MEMBERS), Members::default().to_toml().as_bytes())?;
        for folder in [JOBS, SHARES] {
            let folder = at.join(folder);
            fs::DirBuilder::new()
                .mode(0o700)
                .create(&folder)
                .map_err(FileError::io("create the folder", &folder))?;
        }
        fs::rename(at, path).map_err(|error| match error.kind() {
            io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists => {
                HomeError::Exists(path.to_owned())
            }
            _ => FileError::io("create the home", path)(error).into(),
        })?;
        // It is no longer under its first name, and there is nothing to remove.
        let _ = staged.keep();
        file::sync_folder(above);
        let home = Self::open(path)?;
        home.log().begin()?;
        Ok(home)
    }

    /// Opens a home, and checks all of it.
    ///
    /// # Errors
    /// [`HomeError::Missing`] if the folder holds no settings; [`HomeError::File`] if others may change it, or its settings or
    /// members cannot be read or understood; [`HomeError::Identity`] if its key cannot be used.
    pub fn open(path: &Path) -> Result<Self, HomeError> {
        let settings = path.join(SETTINGS);
        if !settings.exists() {
            return Err(HomeError::Missing(path.to_owned()));
        }
        file::check_private(path)?;
        let settings = Settings::load(&settings)?;
        let stamps = stamps(path);
        let now = Now {
            identity: Arc::new(Identity::load(&path.join(KEY))?),
            members: Arc::new(Members::load(&path.join(MEMBERS))?),
            stamps,
        };
        Ok(Home {
            path: path.to_owned(),
            settings,
            now: RwLock::new(now),
            ledger: Mutex::default(),
            index: Mutex::default(),
        })
    }

    /// The folder of the command line, of `VEIL_HOME`, or `~/.veil`.
    pub fn locate(given: Option<&Path>) -> PathBuf {
        let from = |variable| std::env::var_os(variable).filter(|value| !value.is_empty());
        given
            .map(Path::to_owned)
            .or_else(|| from("VEIL_HOME").map(PathBuf::from))
            .unwrap_or_else(|| {
                from("HOME")
                    .map_or_else(|| PathBuf::from("."), PathBuf::from)
                    .join(".veil")
            })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The settings, as they were when the home was opened.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The key.
    pub fn identity(&self) -> Arc<Identity> {
        Arc::clone(&self.read().identity)
    }

    /// The members, as they were when last read.
    pub fn members(&self) -> Arc<Members> {
        Arc::clone(&self.read().members)
    }

    /// The log.
    pub const fn log(&self) -> Log<'_> {
        Log::of(self)
    }

    /// Runs that rules allowed and count, the oldest first, from a log whose entries were all checked. A caller that has the right to write
    /// gives it.
    pub(crate) fn counted(&self, lock: Option<&Lock>) -> Result<Vec<Run>, HomeError> {
        self.checked(lock, |ledger| ledger.runs().to_vec())
    }

    /// What the approval of a plan was used for, from the same log.
    pub(crate) fn uses(&self, lock: Option<&Lock>, plan: PlanHash) -> Result<Uses, HomeError> {
        let plan = hex(&plan.0);
        self.checked(lock, |ledger| ledger.uses(&plan))
    }

    fn checked<T>(&self, lock: Option<&Lock>, look: impl Fn(&Ledger) -> T) -> Result<T, HomeError> {
        self.reload_if_changed()?;
        let read = match self.read_ledger(&look) {
            Err(LogFault::OtherKey { .. }) => {
                // A change of keys may have been interrupted between the log and the key.
                let own = lock.is_none().then(|| self.lock()).transpose()?;
                if let Some(lock) = lock.or(own.as_ref()) {
                    self.finish_rotation(lock)?;
                }
                self.read_ledger(&look)
            }
            read => read,
        };
        read.map_err(|fault| HomeError::LogFault(self.log().path(), Box::new(fault)))
    }

    fn read_ledger<T>(&self, look: impl Fn(&Ledger) -> T) -> Result<T, LogFault> {
        // A thread that panics while it holds the lock leaves entries that were checked.
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.read(self.log())?;
        let ours = self.identity().fingerprint();
        match ledger.key() {
            Some(found) if found != ours => Err(LogFault::OtherKey { found, ours }),
            _ => Ok(look(&ledger)),
        }
    }

    pub(crate) const fn index(&self) -> &Mutex<Index> {
        &self.index
    }

    /// The folder of stored shares.
    pub fn shares(&self) -> PathBuf {
        self.path.join(SHARES)
    }

    /// Where it is noted which inputs of a job are kept, and who of its parties is missing.
    pub(crate) fn note_file(&self, job: PlanHash) -> PathBuf {
        self.job_folder(job).join("kept.json")
    }

    /// The folder of a job.
    pub fn job_folder(&self, plan: PlanHash) -> PathBuf {
        self.path.join(JOBS).join(hex(&plan.0))
    }

    /// The secret for the keys of stored shares. It is the home's own, and stays when the identity is replaced, so
    /// that shares of before can still be read.
    ///
    /// # Errors
    /// [`HomeError::File`] if the file cannot be read or is not 32 bytes long.
    pub fn store_secret(&self) -> Result<Zeroizing<[u8; 32]>, HomeError> {
        let path = self.path.join(STORE_KEY);
        let stored = Zeroizing::new(fs::read(&path).map_err(FileError::io("read", &path))?);
        if stored.len() != 32 {
            let what = format!(
                "is {} bytes long, and a key has 32; restore it from a copy, or remove the stored shares",
                stored.len()
            );
            return Err(FileError::at(&path, "", 0..0, what).into());
        }
        let mut secret = Zeroizing::new([0; 32]);
        hkdf::Salt::new(hkdf::HKDF_SHA256, b"veilworks home")
            .extract(&stored)
            .expand(&[b"share store"], hkdf::HKDF_SHA256)
            .and_then(|key| key.fill(secret.as_mut_slice()))
            .expect("32 bytes are one block of HKDF-SHA-256");
        Ok(secret)
    }

    /// Reads again what other processes changed since it was last read.
    ///
    /// # Errors
    /// [`HomeError::Identity`] and [`HomeError::File`] if key or members cannot be read; the former ones stand then.
    pub fn reload_if_changed(&self) -> Result<Changed, HomeError> {
        let stamps = stamps(&self.path);
        let before = self.read().stamps;
        if stamps == before {
            return Ok(Changed::default());
        }
        let identity = Identity::load(&self.path.join(KEY))?;
        let members = Members::load(&self.path.join(MEMBERS))?;
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        let changed = Changed {
            identity: now.identity.fingerprint() != identity.fingerprint(),
            members: *now.members != members,
        };
        *now = Now {
            identity: Arc::new(identity),
            members: Arc::new(members),
            stamps,
        };
        Ok(changed)
    }

    /// Waits for the right to write, for some seconds.
    ///
    /// # Errors
    /// [`HomeError::Busy`] if another process holds it for all that time, [`HomeError::File`] if the system refuses.
    pub fn lock(&self) -> Result<Lock, HomeError> {
        let path = self.path.join("lock");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(FileError::io("open", &path))?;
        let until = Instant::now() + PATIENCE;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => {
                    thread::sleep(Duration::from_millis(5));
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    return Err(HomeError::Busy(self.path.clone()));
                }
                Err(error) => return Err(FileError::io("lock", &path)(error.into()).into()),
            }
        }
    }

    /// Pins a key by hand: for tools that make several homes at once and know their keys. People use invitations.
    ///
    /// # Errors
    /// [`HomeError::Name`] for a bad name, [`HomeError::Busy`] if another process holds the lock, [`HomeError::File`] if the
    /// address or a second member of this name or key makes the list unreadable, or it cannot be written; else as of
    /// [`Log::append`](crate::log::Log::append).
    pub fn pin(
        &self,
        name: &str,
        role: Role,
        key: Fingerprint,
        address: Option<&str>,
    ) -> Result<(), HomeError> {
        crate::names::check(name)?;
        let lock = self.lock()?;
        let event = Event::Member {
            name: name.to_owned(),
            role,
            fingerprint: key.to_string(),
            how: "pinned",
        };
        self.log().append_under(&lock, event)?;
        self.change_members(&lock, |members| {
            members.push(Member {
                name: name.to_owned(),
                role,
                fingerprint: key,
                address: address.map(str::to_owned),
                since: Time::now(),
                former: Vec::new(),
                rotations: 0,
                revoked: None,
            });
        })
    }

    /// Revokes a member: from now on its key is refused, in running processes as soon as they look, within a second.
    ///
    /// # Errors
    /// [`HomeError::NoMember`] if no active member has the name, [`HomeError::Busy`] if another process holds the lock,
    /// [`HomeError::File`] if the members cannot be written; as of [`Log::append`](crate::log::Log::append) if it cannot be
    /// logged, when the member is revoked already.
    pub fn revoke(&self, name: &str, reason: &str) -> Result<Member, HomeError> {
        let lock = self.lock()?;
        let revoked = Revoked {
            at: Time::now(),
            reason: reason.trim().to_owned(),
        };
        let member = self.change_members(&lock, |members| {
            let member = members.any_mut(name).filter(|member| member.is_active())?;
            member.revoked = Some(revoked);
            Some(member.clone())
        })?;
        let member = member.ok_or_else(|| HomeError::NoMember {
            name: name.to_owned(),
            known: self.members().iter().map(|m| m.name.clone()).collect(),
        })?;
        let event = Event::Revocation {
            name: member.name.clone(),
            fingerprint: member.fingerprint.to_string(),
            reason: reason.trim().to_owned(),
        };
        self.log().append_under(&lock, event)?;
        Ok(member)
    }

    /// Reads the members, lets `change` change them, and writes them.
    pub(crate) fn change_members<T>(
        &self,
        _lock: &Lock,
        change: impl FnOnce(&mut Members) -> T,
    ) -> Result<T, HomeError> {
        let path = self.path.join(MEMBERS);
        let mut members = Members::load(&path)?;
        let result = change(&mut members);
        // What would not be read again is not written.
        Members::parse(&path, &members.to_toml())?;
        file::write(&path, members.to_toml().as_bytes())?;
        self.reload_if_changed()?;
        Ok(result)
    }

    fn read(&self) -> RwLockReadGuard<'_, Now> {
        // A thread that panics while it holds the lock has only replaced one complete value by another.
        self.now.read().unwrap_or_else(PoisonError::into_inner)
    }
}

const SETTINGS: &str = "veil.toml";
pub(crate) const KEY: &str = "identity.key";
const STORE_KEY: &str = "store.key";
const MEMBERS: &str = "members.toml";
const JOBS: &str = "jobs";
const SHARES: &str = "shares";

fn stamps(path: &Path) -> [Stamp; 2] {
    [KEY, MEMBERS].map(|name| Stamp::of(&path.join(name)))
}

/// All digits: what is approved must not be confused with what begins alike.
pub(crate) fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}
