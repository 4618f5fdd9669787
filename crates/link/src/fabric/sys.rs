//! The one place that calls C: `fabric/shim.c`, and through it libfabric.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::os::fd::{BorrowedFd, RawFd};
use std::ptr::NonNull;
use std::time::Duration;

use super::{Provider, SLOT};

/// Longest reason that is passed on.
const WHY: usize = 256;

/// Events that are taken at once, as many as the shim takes.
const EVENTS: usize = 16;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawEvent {
    data: u64,
    rung: u32,
    write: u32,
}

unsafe extern "C" {
    fn veil_fabric_load(why: *mut c_char, bytes: usize) -> c_int;
    fn veil_fabric_has(provider: *const c_char, slot: u64, why: *mut c_char, bytes: usize)
    -> c_int;
    fn veil_fabric_open(
        provider: *const c_char,
        node: *const c_char,
        own: *const c_char,
        key: u64,
        slot: u64,
        ring_bytes: usize,
        out_bytes: usize,
        writes: usize,
        why: *mut c_char,
        bytes: usize,
    ) -> *mut c_void;
    fn veil_fabric_close(f: *mut c_void);
    fn veil_fabric_address(f: *mut c_void, at: *mut u8, room: usize) -> usize;
    fn veil_fabric_base(f: *const c_void) -> u64;
    fn veil_fabric_key(f: *const c_void) -> u64;
    fn veil_fabric_connect(f: *mut c_void, address: *const u8, base: u64, key: u64) -> c_int;
    fn veil_fabric_out(f: *mut c_void) -> *mut u8;
    fn veil_fabric_copy(f: *const c_void, from: usize, into: *mut u8, bytes: usize);
    fn veil_fabric_write(
        f: *mut c_void,
        write: usize,
        from: usize,
        bytes: usize,
        to: u64,
        data: u64,
    ) -> c_int;
    fn veil_fabric_read(
        f: *mut c_void,
        events: *mut RawEvent,
        why: *mut c_char,
        bytes: usize,
    ) -> c_int;
    fn veil_fabric_wait_fd(f: *const c_void) -> c_int;
    fn veil_fabric_may_sleep(f: *mut c_void) -> c_int;
}

/// What came of moving bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The peer rang with this number.
    Rung(u64),
    /// A write of this side has left.
    Written(usize),
}

/// How big everything of an endpoint is.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    /// Bytes into which the peer writes.
    pub(super) ring: usize,
    /// Bytes from which this side writes.
    pub(super) out: usize,
    /// Writes that may be under way at once.
    pub(super) writes: usize,
}

/// An endpoint for one peer. Its holder is alone with it, so no two threads are ever within libfabric for it.
pub(super) struct Endpoint {
    raw: NonNull<c_void>,
    extent: Extent,
}

// SAFETY: the library is asked for an endpoint that one thread at a time uses (FI_THREAD_DOMAIN), whichever that is.
unsafe impl Send for Endpoint {}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").finish_non_exhaustive()
    }
}

/// Calls with room for a reason, and gives it back as a string.
fn with_reason<T>(call: impl FnOnce(*mut c_char, usize) -> T) -> (T, String) {
    let mut why = [0_u8; WHY];
    let result = call(why.as_mut_ptr().cast(), WHY);
    let said = CStr::from_bytes_until_nul(&why).unwrap_or_default();
    (result, said.to_string_lossy().into_owned())
}

/// Whether the library is here, and has this provider.
pub(super) fn available(provider: &Provider) -> Result<(), String> {
    // SAFETY: `why` has room for `bytes` bytes.
    let (loaded, why) = with_reason(|why, bytes| unsafe { veil_fabric_load(why, bytes) });
    if loaded != 0 {
        return Err(format!("libfabric is not here: {why}"));
    }
    let name = c_string(provider.as_str());
    // SAFETY: the library is loaded, `name` ends with a zero, and `why` has room for `bytes` bytes.
    let (found, why) = with_reason(|why, bytes| unsafe {
        veil_fabric_has(name.as_ptr(), SLOT as u64, why, bytes)
    });
    if found != 0 {
        return Err(format!(
            "libfabric has no provider `{provider}` that this link can use ({why}): `fi_info -l` lists those it has"
        ));
    }
    Ok(())
}

fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

impl Endpoint {
    /// Opens one: from the address `node`, or under the name `own`, with a ring that a peer with `key` may write into.
    pub(super) fn open(
        provider: &Provider,
        node: Option<&str>,
        own: Option<&str>,
        key: u64,
        extent: Extent,
    ) -> Result<Self, String> {
        available(provider)?;
        let provider = c_string(provider.as_str());
        let (node, own) = (node.map(c_string), own.map(c_string));
        let pointer =
            |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |t| t.as_ptr());
        // SAFETY: the library is loaded; strings end with a zero and live until the call returns; `why` has room for `bytes` bytes.
        let (raw, why) = with_reason(|why, bytes| unsafe {
            veil_fabric_open(
                provider.as_ptr(),
                pointer(&node),
                pointer(&own),
                key,
                SLOT as u64,
                extent.ring,
                extent.out,
                extent.writes,
                why,
                bytes,
            )
        });
        NonNull::new(raw)
            .map(|raw| Endpoint { raw, extent })
            .ok_or(why)
    }

    const fn at(&self) -> *mut c_void {
        self.raw.as_ptr()
    }

    /// Where it is, in the provider's form.
    pub(super) fn address(&self) -> Option<Vec<u8>> {
        let mut address = vec![0; super::hello::ADDRESS];
        // SAFETY: the endpoint is open, and `address` has as much room as is said.
        let length = unsafe { veil_fabric_address(self.at(), address.as_mut_ptr(), address.len()) };
        address.truncate(length);
        (length > 0).then_some(address)
    }

    /// What the peer adds to its offsets.
    pub(super) fn base(&self) -> u64 {
        // SAFETY: the endpoint is open.
        unsafe { veil_fabric_base(self.at()) }
    }

    /// What the peer must know to write.
    pub(super) fn key(&self) -> u64 {
        // SAFETY: the endpoint is open, and so has a registered ring.
        unsafe { veil_fabric_key(self.at()) }
    }

    /// Says whom to write to. The caller has checked that the address is of the provider's form.
    pub(super) fn connect(&mut self, address: &[u8], base: u64, key: u64) -> bool {
        // SAFETY: the endpoint is open; the address is as long as this side's own, or ends with a zero where addresses are strings.
        unsafe { veil_fabric_connect(self.at(), address.as_ptr(), base, key) == 0 }
    }

    /// Bytes `from..from + bytes` of those from which this side writes. Nothing of them may be under way.
    pub(super) fn out(&mut self, from: usize, bytes: usize) -> &mut [u8] {
        assert!(
            from <= self.extent.out && bytes <= self.extent.out - from,
            "within what is written from"
        );
        // SAFETY: they are initialised, within the mapping, which lives as long as the endpoint, and only this side has them: no
        // peer may write there, and `&mut self` excludes a second slice.
        unsafe { std::slice::from_raw_parts_mut(veil_fabric_out(self.at()).add(from), bytes) }
    }

    /// Copies what the peer wrote.
    pub(super) fn copy(&self, from: usize, into: &mut [u8]) {
        assert!(
            from <= self.extent.ring && into.len() <= self.extent.ring - from,
            "within the ring"
        );
        // SAFETY: both ranges are within their buffers; the peer may change the source meanwhile, which only C looks at.
        unsafe { veil_fabric_copy(self.at(), from, into.as_mut_ptr(), into.len()) }
    }

    /// Begins the write `write`: `bytes` bytes from `from` of what is written from, to `to` in the peer's ring, which is rung with
    /// `data`. `Ok(false)`: not now.
    pub(super) fn write(
        &mut self,
        write: usize,
        from: usize,
        bytes: usize,
        to: u64,
        data: u32,
    ) -> Result<bool, String> {
        assert!(
            write < self.extent.writes
                && from <= self.extent.out
                && bytes <= self.extent.out - from,
            "within what is written from"
        );
        // SAFETY: the endpoint is open, and number and range are within what it was opened with.
        match unsafe { veil_fabric_write(self.at(), write, from, bytes, to, u64::from(data)) } {
            0 => Ok(true),
            1 => Ok(false),
            error => Err(format!("a write into its ring failed ({error})")),
        }
    }

    /// Moves bytes, and passes what came of it to `take`: how many events.
    pub(super) fn read(&mut self, mut take: impl FnMut(Event)) -> Result<usize, String> {
        let mut events = [RawEvent::default(); EVENTS];
        // SAFETY: the endpoint is open, there is room for as many events as the shim takes, and `why` has room for `bytes` bytes.
        let (count, why) = with_reason(|why, bytes| unsafe {
            veil_fabric_read(self.at(), events.as_mut_ptr(), why, bytes)
        });
        let count = usize::try_from(count).map_err(|_| why)?;
        for event in &events[..count] {
            take(if event.rung == 0 {
                Event::Written(event.write as usize)
            } else {
                Event::Rung(event.data)
            });
        }
        Ok(count)
    }

    /// What becomes readable when there are events, where the provider has such a thing.
    pub(super) fn bell(&self) -> Option<BorrowedFd<'_>> {
        // SAFETY: the endpoint is open.
        let fd: RawFd = unsafe { veil_fabric_wait_fd(self.at()) };
        // SAFETY: it is the completion queue's, open as long as that is.
        (fd >= 0).then(|| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Whether nothing is there that the bell would not tell.
    pub(super) fn may_sleep(&mut self) -> bool {
        // SAFETY: the endpoint is open.
        unsafe { veil_fabric_may_sleep(self.at()) != 0 }
    }

    /// How long a side sleeps at most, after so many naps.
    pub(super) fn nap(count: u32) -> Duration {
        Duration::from_micros(20 << (count / 4).min(5))
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // SAFETY: it is open, and no call uses it afterwards.
        unsafe { veil_fabric_close(self.at()) }
    }
}
