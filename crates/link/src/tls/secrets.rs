//! The secrets of a connection on their way from rustls to the record layer of a link.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::{ClientConfig, Connection, Error, KeyLog, ServerConfig};
use zeroize::Zeroizing;

use super::record::{Keys, Records};

/// The application traffic secrets of one connection, as rustls tells its key log. rustls gives away the keys in use, but not what the keys
/// after an update come of. Nothing is written anywhere.
#[derive(Default)]
pub(crate) struct Secrets([Mutex<Option<Zeroizing<Vec<u8>>>>; 2]);

/// What rustls calls them: what the client sends under, and the server.
const NAMES: [&str; 2] = ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"];

impl KeyLog for Secrets {
    fn log(&self, name: &str, _client_random: &[u8], secret: &[u8]) {
        for (own, place) in NAMES.iter().zip(&self.0) {
            if *own == name {
                let secret = Some(Zeroizing::new(secret.to_vec()));
                *place.lock().unwrap_or_else(PoisonError::into_inner) = secret;
            }
        }
    }

    fn will_log(&self, name: &str) -> bool {
        NAMES.contains(&name)
    }
}

impl Secrets {
    /// A connection's own secrets, and the configuration that fills them.
    pub(super) fn client(config: &ClientConfig) -> (Arc<Self>, Arc<ClientConfig>) {
        let (secrets, mut config) = (Arc::<Self>::default(), config.clone());
        config.key_log = Arc::<Self>::clone(&secrets);
        (secrets, Arc::new(config))
    }

    /// The same, of a connection that comes.
    pub(super) fn server(config: &ServerConfig) -> (Arc<Self>, Arc<ServerConfig>) {
        let (secrets, mut config) = (Arc::<Self>::default(), config.clone());
        config.key_log = Arc::<Self>::clone(&secrets);
        (secrets, Arc::new(config))
    }

    fn take(&self, place: usize) -> Result<Zeroizing<Vec<u8>>, Error> {
        let mut secret = self.0[place].lock().unwrap_or_else(PoisonError::into_inner);
        secret.take().ok_or(Error::HandshakeNotComplete)
    }

    /// The record layer that goes on where `tls` is; `came` are bytes that `tls` did not get.
    ///
    /// # Errors
    /// What rustls says of a connection that failed, or whose handshake is not complete. One whose keys were updated, and where nothing was
    /// said since, may owe the peer an answer that rustls keeps to itself: it cannot go on, and none of ours comes there.
    pub(super) fn records(&self, tls: Connection, came: Vec<u8>) -> Result<Records, Error> {
        let own = usize::from(matches!(tls, Connection::Server(_)));
        let [sends, receives] = [self.take(own)?, self.take(1 - own)?];
        let used = tls.dangerous_extract_secrets()?;
        if used.tx.0 == 0 {
            let why = "its keys were updated before the run began";
            return Err(Error::General(why.into()));
        }
        let sends = Keys::taken(&used.tx, sends)?;
        let receives = Keys::taken(&used.rx, receives)?;
        Ok(Records::new(sends, receives, own == 0, came))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}
