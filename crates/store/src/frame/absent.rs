//! A build without Arrow writes no dataset and reads none.

use super::{Frame, Metadata};
use crate::describe::Head;
use crate::layout::Layout;

/// The framing that this build cannot make.
pub(crate) struct Framing {
    pub(crate) header: Vec<u8>,
    pub(crate) frames: [Frame; 2],
}

impl Framing {
    pub(crate) fn new(_: &Head, _: &Layout) -> Result<Self, String> {
        Err("shares at rest are Arrow files, and this build has none: build with the feature `columnar`".into())
    }

    pub(crate) fn footer(&self, _: u64) -> Vec<u8> {
        Vec::new()
    }
}

/// No header is understood.
pub(super) fn metadata(_: &[u8]) -> Option<Metadata> {
    None
}
