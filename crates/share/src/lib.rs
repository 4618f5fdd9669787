//! Sharing schemes: how a value is split among parties, joined again, and written in other formats.
//!
//! For tests, owners and tools; devices do the same on whole columns. All randomness is an argument.
//!
//! ```
//! use veil_math::Ring;
//! use veil_share::rep3;
//! let shares = rep3::split(Ring::Z64, 42, [1 << 60, u128::MAX]);
//! assert_eq!(rep3::join(Ring::Z64, shares), Ok(42));
//! ```
//!
//! Promises the laws that are its tests: any one share is uniform, sums of shares share the sum. Does not promise
//! secrecy of its arguments in memory.

pub mod rep3;
pub mod rep4;

/// Copies of a component differ: whoever sent them contradicts themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inconsistent {
    /// Which component.
    pub component: usize,
}
