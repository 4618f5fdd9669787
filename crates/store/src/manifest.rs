//! The manifest: written last, it says that a dataset is complete, and what of its file is not encrypted.
//!
//! Two lines: one JSON object, and the HMAC-SHA-256 of that line under the dataset's key. Each ciphertext carries its own tag, which is
//! bound to the header; so the MAC covers the whole dataset.

use serde::{Deserialize, Serialize};

use crate::error::Damage;
use crate::frame::Frame;
use crate::key::{DatasetKeys, hex, unhex, unhex_all};

/// No manifest is longer: it has the framing of two batches.
pub(crate) const LONGEST: u64 = 1 << 27;

/// What stands before the MAC.
const MAC_NAME: &str = "hmac-sha256 ";

/// What a manifest says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Manifest {
    /// Digest of the file's header.
    pub(crate) header: [u8; 32],
    /// Number of chunks.
    pub(crate) chunks: u64,
    /// Framing of chunk 0, and of the others.
    pub(crate) frames: [Frame; 2],
    /// Bytes after the last chunk.
    pub(crate) footer: u64,
    /// Their digest.
    pub(crate) footer_digest: [u8; 32],
    /// What the run has found out of the rows: a further line of the schema.
    pub(crate) found: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    format: u32,
    header_sha256: String,
    chunks: u64,
    frames: [FrameText; 2],
    footer_bytes: u64,
    footer_sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    found: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FrameText {
    around: Vec<String>,
    columns: Vec<usize>,
    fields: [usize; 3],
    metadata: usize,
}

impl Manifest {
    /// The bytes of the file.
    pub(crate) fn to_bytes(&self, keys: &DatasetKeys) -> Vec<u8> {
        let frame = |frame: &Frame| FrameText {
            around: frame.around.iter().map(|bytes| hex(bytes)).collect(),
            columns: frame.columns.clone(),
            fields: frame.fields,
            metadata: frame.metadata,
        };
        let text = Text {
            format: 1,
            header_sha256: hex(&self.header),
            chunks: self.chunks,
            frames: [frame(&self.frames[0]), frame(&self.frames[1])],
            footer_bytes: self.footer,
            footer_sha256: hex(&self.footer_digest),
            found: self.found.clone(),
        };
        let line = serde_json::to_string(&text).expect("strings, numbers and lists are JSON");
        let mac = hex(&keys.authenticate(line.as_bytes()));
        format!("{line}\n{MAC_NAME}{mac}\n").into_bytes()
    }

    /// The inverse of [`Manifest::to_bytes`]; nothing is read of a line whose MAC is wrong.
    pub(crate) fn from_bytes(bytes: &[u8], keys: &DatasetKeys) -> Result<Self, Damage> {
        let text = str::from_utf8(bytes).map_err(|_| Damage::Manifest("it is not text"))?;
        let lines = text
            .strip_suffix('\n')
            .and_then(|text| text.split_once('\n'));
        let (line, mac) = lines.ok_or(Damage::Manifest("it is cut off"))?;
        let mac: [u8; 32] = mac
            .strip_prefix(MAC_NAME)
            .and_then(unhex)
            .ok_or(Damage::Manifest("it has no code"))?;
        if !keys.is_authentic(line.as_bytes(), &mac) {
            return Err(Damage::Mac);
        }
        let parse = || {
            let text: Text = serde_json::from_str(line).ok()?;
            let frame = |text: FrameText| {
                let around: Option<Vec<_>> = text.around.iter().map(|hex| unhex_all(hex)).collect();
                let frame = Frame {
                    around: around?,
                    columns: text.columns,
                    fields: text.fields,
                    metadata: text.metadata,
                };
                let inside = |at: usize| {
                    frame
                        .around
                        .first()
                        .is_some_and(|lead| at + 8 <= lead.len())
                };
                let whole = frame.around.len() == frame.columns.len() + 1
                    && frame.fields.into_iter().all(inside);
                whole.then_some(frame)
            };
            let [first, other] = text.frames;
            Some(Manifest {
                header: unhex(&text.header_sha256)?,
                chunks: text.chunks,
                frames: [frame(first)?, frame(other)?],
                footer: text.footer_bytes,
                footer_digest: unhex(&text.footer_sha256)?,
                found: text.found,
            })
        };
        parse().ok_or(Damage::Manifest("it says what no dataset has"))
    }
}
