//! What models of Verilator that were made have in common.

use std::ffi::c_void;
use std::ptr::NonNull;

/// A function that frees what a model's `new` made.
pub(crate) type Free = unsafe extern "C" fn(*mut c_void);

/// A model that was made, and is freed when this is dropped.
pub(crate) struct Instance {
    at: NonNull<c_void>,
    free: Free,
}

// SAFETY: a model is reached through its owner alone, and keeps to no thread.
unsafe impl Send for Instance {}

impl Instance {
    /// # Safety
    /// `at` was made by the `new` of the model whose `free` this is, and no other code frees it.
    pub(crate) unsafe fn new(at: *mut c_void, free: Free) -> Self {
        let at = NonNull::new(at).expect("a model is made or the process ends");
        Instance { at, free }
    }

    /// As its functions take it.
    pub(crate) fn as_ptr(&self) -> *mut c_void {
        self.at.as_ptr()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: the caller of `new` promised that only this function frees it.
        unsafe { (self.free)(self.at.as_ptr()) };
    }
}
