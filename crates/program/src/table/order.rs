//! The order of a key column, compared by the holders of a block's columns.
//!
//! Owners that hold different columns of the same people must have them in the same order. They agree on a key, and
//! each makes a chain of digests of the key column under it: part `c` of `every` rows is
//!
//! ```text
//! d_c = HMAC-SHA-256(key, d_{c-1} || length of the block's name || name || c || length || cell || length || cell …)
//! ```
//!
//! with 32 zero bytes before the first, lengths and `c` as 64 bits, little-endian. Without the key a digest says
//! nothing about cells that could be guessed, such as personal numbers.

use std::{
    fmt, fs,
    io::{self, Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::Order;

/// What the text of a key begins with.
const PREFIX: &str = "vwk1:";
/// Bytes that guard against a slip of the hand.
const CHECK: usize = 4;

/// A key that only the owners of aligned tables share. Not printed, and wiped.
#[derive(Clone)]
pub struct AlignKey(Zeroizing<[u8; 32]>);

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AlignKeyError {
    /// The file cannot be read or written.
    #[error("cannot {doing} the alignment key {}: {source}", file.display())]
    Io {
        /// The operation that was refused.
        doing: &'static str,
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Others may read the file.
    #[error(
        "{} can be read by other users of this machine; run `chmod 600 {}`", .0.display(), .0.display()
    )]
    Readable(PathBuf),
    /// Not the text of a key.
    #[error(
        "this is no alignment key: it must be `vwk1:` and 58 letters and digits; copy it again, or make one with \
         `veil data key new`"
    )]
    Text,
    /// A key with a mistake in it.
    #[error("the alignment key has a mistake: its check does not fit; copy it again")]
    Check,
}

impl AlignKey {
    /// A key of 32 random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// [`AlignKeyError::Text`] if this is not the text of a key, [`AlignKeyError::Check`] if its check digits do not fit.
    pub fn parse(text: &str) -> Result<Self, AlignKeyError> {
        let text = text
            .trim()
            .strip_prefix(PREFIX)
            .ok_or(AlignKeyError::Text)?;
        let bytes = BASE32_NOPAD.decode(text.to_ascii_uppercase().as_bytes());
        let bytes = Zeroizing::new(bytes.map_err(|_| AlignKeyError::Text)?);
        let (key, check) = bytes.split_at_checked(32).ok_or(AlignKeyError::Text)?;
        let key = Self::new(key.try_into().map_err(|_| AlignKeyError::Text)?);
        if check.len() != CHECK {
            return Err(AlignKeyError::Text);
        }
        if *check != key.check() {
            return Err(AlignKeyError::Check);
        }
        Ok(key)
    }

    /// The text form, to be handed to the other owners over a channel that only they read.
    pub fn text(&self) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(32 + CHECK));
        bytes.extend_from_slice(&self.0[..]);
        bytes.extend_from_slice(&self.check());
        let encoded = Zeroizing::new(BASE32_NOPAD.encode(&bytes));
        Zeroizing::new(format!("{PREFIX}{}", encoded.to_ascii_lowercase()))
    }

    /// Reads a key file that its owner alone can read.
    ///
    /// # Errors
    /// [`AlignKeyError::Io`] if the file cannot be read, [`AlignKeyError::Readable`] if its group or others may read it; else as
    /// of [`AlignKey::parse`].
    pub fn read(file: &Path) -> Result<Self, AlignKeyError> {
        let io = |source| AlignKeyError::Io {
            doing: "read",
            file: file.to_owned(),
            source,
        };
        let handle = fs::File::open(file).map_err(io)?;
        if handle.metadata().map_err(io)?.permissions().mode() & 0o077 != 0 {
            return Err(AlignKeyError::Readable(file.to_owned()));
        }
        let mut text = Zeroizing::new(String::new());
        handle.take(256).read_to_string(&mut text).map_err(io)?;
        Self::parse(&text)
    }

    /// Writes a key file that its owner alone can read. An existing file stays as it is, and is an error.
    ///
    /// # Errors
    /// [`AlignKeyError::Io`] if the file exists or cannot be written.
    pub fn write(&self, file: &Path) -> Result<(), AlignKeyError> {
        let io = |source| AlignKeyError::Io {
            doing: "write",
            file: file.to_owned(),
            source,
        };
        let mut handle = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(file)
            .map_err(io)?;
        let text = self.text();
        (handle.write_all(text.as_bytes()))
            .and_then(|()| handle.write_all(b"\n"))
            .and_then(|()| handle.sync_all())
            .map_err(io)
    }

    /// The fingerprint that owners read to each other to be sure that they have the same key.
    pub fn fingerprint(&self) -> String {
        HEXLOWER.encode(&self.digest("veilworks alignment key fingerprint")[..16])
    }

    fn check(&self) -> [u8; CHECK] {
        let digest = self.digest("veilworks alignment key check");
        std::array::from_fn(|index| digest[index])
    }

    fn digest(&self, what: &str) -> [u8; 32] {
        let hash = Sha256::new().chain_update(what).chain_update(&self.0[..]);
        hash.finalize().into()
    }
}

impl fmt::Debug for AlignKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AlignKey(..)")
    }
}

/// The digests of a key column, as its cells come.
pub(super) struct Chain {
    key: AlignKey,
    block: String,
    every: u32,
    /// Cells in the part that is under way.
    filled: u32,
    mac: Option<Hmac<Sha256>>,
    digests: Vec<[u8; 32]>,
}

impl Chain {
    pub(super) fn new(order: &Order<'_>, block: &str) -> Self {
        Self {
            key: order.key.clone(),
            block: block.to_owned(),
            every: order.every.max(1),
            filled: 0,
            mac: None,
            digests: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, cell: &[u8]) {
        let mac = self.mac.get_or_insert_with(|| {
            let mut mac =
                Hmac::new_from_slice(&self.key.0[..]).expect("HMAC takes keys of any length");
            mac.update(self.digests.last().unwrap_or(&[0; 32]));
            mac.update(&(self.block.len() as u64).to_le_bytes());
            mac.update(self.block.as_bytes());
            mac.update(&(self.digests.len() as u64).to_le_bytes());
            mac
        });
        mac.update(&(cell.len() as u64).to_le_bytes());
        mac.update(cell);
        self.filled += 1;
        if self.filled == self.every {
            self.close();
        }
    }

    pub(super) fn finish(mut self) -> Vec<[u8; 32]> {
        self.close();
        self.digests
    }

    fn close(&mut self) {
        if let Some(mac) = self.mac.take() {
            self.digests.push(mac.finalize().into_bytes().into());
        }
        self.filled = 0;
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain of {} digests", self.digests.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HMAC by its definition: Krawczyk, Bellare, Canetti, RFC 2104, 1997.
    fn hmac(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
        let pad = |with: u8| {
            let mut block = [with; 64];
            block
                .iter_mut()
                .zip(key)
                .for_each(|(byte, key)| *byte ^= key);
            block
        };
        let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message);
        let outer = Sha256::new().chain_update(pad(0x5c));
        outer.chain_update(inner.finalize()).finalize().into()
    }

    fn chain(key: u8, block: &str, every: u32, cells: &[&str]) -> Vec<[u8; 32]> {
        let order = Order {
            column: "id",
            every,
            duplicates: true,
            key: &AlignKey::new([key; 32]),
        };
        let mut chain = Chain::new(&order, block);
        for cell in cells {
            chain.push(cell.as_bytes());
        }
        chain.finish()
    }

    #[test]
    fn digests_are_those_of_the_equation() {
        let message = |previous: &[u8; 32], part: u64, cells: &[&str]| {
            let mut bytes = previous.to_vec();
            bytes.extend(5u64.to_le_bytes());
            bytes.extend(b"north");
            bytes.extend(part.to_le_bytes());
            for cell in cells {
                bytes.extend((cell.len() as u64).to_le_bytes());
                bytes.extend(cell.as_bytes());
            }
            hmac(&[7; 32], &bytes)
        };
        let first = message(&[0; 32], 0, &["a", "bc"]);
        let second = message(&first, 1, &["", "d"]);
        let third = message(&second, 2, &["e"]);
        assert_eq!(
            chain(7, "north", 2, &["a", "bc", "", "d", "e"]),
            [first, second, third]
        );
        assert_eq!(chain(7, "north", 2, &["a", "bc"]), [first]);
    }

    #[test]
    fn digests_depend_on_everything_before_them() {
        let base = chain(1, "b", 2, &["1", "2", "3", "4", "5"]);
        for other in [
            chain(2, "b", 2, &["1", "2", "3", "4", "5"]),
            chain(1, "c", 2, &["1", "2", "3", "4", "5"]),
            chain(1, "b", 2, &["2", "1", "3", "4", "5"]),
            chain(1, "b", 2, &["12", "", "3", "4", "5"]),
        ] {
            assert!(base.iter().zip(&other).all(|(a, b)| a != b));
        }
        let late = chain(1, "b", 2, &["1", "2", "4", "3", "5"]);
        assert_eq!(base[0], late[0]);
        assert!(base[1] != late[1] && base[2] != late[2]);
    }

    #[test]
    fn keys_are_written_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("align.key");
        let key = AlignKey::new(std::array::from_fn(|index| index as u8));
        key.write(&file).unwrap();
        assert_eq!(AlignKey::read(&file).unwrap().text(), key.text());
        let said = key.write(&file).unwrap_err().to_string();
        assert!(said.contains("cannot write the alignment key"), "{said}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let said = AlignKey::read(&file).unwrap_err().to_string();
        assert!(
            said.contains("can be read by other users") && said.contains("chmod 600"),
            "{said}"
        );
        let text = key.text();
        assert_eq!(text.len(), 5 + 58);
        assert!(!format!("{key:?}").contains(&text[5..]));
        let other = AlignKey::new([3; 32]);
        assert_ne!(key.fingerprint(), other.fingerprint());
        // A slip at each place is found.
        for at in 5..text.len() {
            let mut slipped = text.to_string();
            let old = &text[at..=at];
            slipped.replace_range(at..=at, if old == "a" { "b" } else { "a" });
            assert!(AlignKey::parse(&slipped).is_err(), "{at}");
        }
        for bad in ["", "vwk1:", "vwk2:aaaa", "vwk1:aaaa", "vwk1:!", &text[..40]] {
            assert!(
                matches!(AlignKey::parse(bad), Err(AlignKeyError::Text)),
                "{bad}"
            );
        }
    }
}
