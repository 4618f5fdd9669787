//! Tells the service manager how this process is: a datagram to `$NOTIFY_SOCKET`, as sd_notify(3) describes it.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;

use rustix::net::{SendFlags, SocketAddrUnix, sendto};

/// A state to report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The port is bound.
    Ready,
    /// Running jobs are given time to end.
    Stopping,
}

/// Tells systemd the state, if it asked for notifications.
pub fn notify(state: State) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
        return;
    };
    // A service manager that does not listen misses something, and this process nothing.
    if let Err(error) = send(&socket, state) {
        tracing::warn!(%error, "the service manager could not be told");
    }
}

fn send(name: &OsStr, state: State) -> io::Result<()> {
    let bytes = name.as_bytes();
    let address = match bytes.split_first() {
        Some((b'@', rest)) => SocketAddrUnix::new_abstract_name(rest)?,
        _ => SocketAddrUnix::new(bytes)?,
    };
    let text: &[u8] = match state {
        State::Ready => b"READY=1\n",
        State::Stopping => b"STOPPING=1\n",
    };
    let socket = UnixDatagram::unbound()?;
    sendto(&socket, text, SendFlags::NOSIGNAL, &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_hears_what_sd_notify_would_say() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let mut bytes = [0; 32];
        for (state, text) in [
            (State::Ready, "READY=1\n"),
            (State::Stopping, "STOPPING=1\n"),
        ] {
            send(path.as_os_str(), state).unwrap();
            let read = manager.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..read], text.as_bytes());
        }
        assert!(send(OsStr::new("/nowhere/notify"), State::Ready).is_err());
    }
}
