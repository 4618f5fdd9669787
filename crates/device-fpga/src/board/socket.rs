//! The socket of a board: who may reach it, and who does.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::BoardFault;
use super::serve::Refusal;

/// A socket that listens. Dropped, it removes its file, unless another one lies there.
pub(super) struct Listener {
    pub(super) socket: UnixListener,
    path: PathBuf,
    /// Device and number of the file.
    file: (u64, u64),
}

impl Listener {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let same = fs::symlink_metadata(&self.path);
        if same.is_ok_and(|found| (found.dev(), found.ino()) == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens at `path`, for processes of this user alone: the folder is of this user and closed to others, and made if it is not there. A file that a
/// process has left behind which is gone is replaced.
pub(super) fn listen(path: &Path) -> Result<Listener, Refusal> {
    let failed = |why: std::io::Error| Refusal::Socket {
        socket: path.to_owned(),
        why: why.to_string(),
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(failed)?;
    let opened = File::open(folder).map_err(failed)?;
    let found = opened.metadata().map_err(failed)?;
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own || found.mode() & 0o077 != 0 {
        return Err(Refusal::Open {
            folder: folder.to_owned(),
            mode: found.mode() & 0o777,
            uid: found.uid(),
        });
    }
    // Of two that come at once, one sees the socket of the other.
    rustix::fs::flock(&opened, FlockOperation::LockExclusive)
        .map_err(|error| failed(error.into()))?;
    clear(path).map_err(|why| match why {
        Ok(refusal) => refusal,
        Err(error) => failed(error),
    })?;
    let listener = UnixListener::bind(path).map_err(failed)?;
    fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
    let found = fs::symlink_metadata(path).map_err(failed)?;
    Ok(Listener {
        socket: listener,
        path: path.to_owned(),
        file: (found.dev(), found.ino()),
    })
}

/// Removes the socket of a process that is gone. What is no socket, or is served, stays.
fn clear(path: &Path) -> Result<(), Result<Refusal, std::io::Error>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Err(error)),
    };
    let socket = path.to_owned();
    if !found.file_type().is_socket() {
        return Err(Ok(Refusal::NoSocket { file: socket }));
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(Ok(Refusal::Served { socket })),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(Err)
        }
        Err(error) => Err(Err(error)),
    }
}

/// Refuses a process of another user at the other end.
pub(super) fn same_user(stream: &UnixStream) -> Result<u32, BoardFault> {
    let peer = rustix::net::sockopt::socket_peercred(stream);
    let peer = peer.map_err(|error| BoardFault::Connection {
        why: error.to_string(),
    })?;
    let (uid, own) = (peer.uid.as_raw(), rustix::process::geteuid().as_raw());
    if uid == own {
        Ok(peer.pid.as_raw_nonzero().get().unsigned_abs())
    } else {
        Err(BoardFault::Stranger { uid, own })
    }
}
