//! Sharing schemes: how a value is split among parties, joined again, and written in other formats.
//!
//! [`rep3`] is replicated sharing among three parties, [`rep4`] among four: a value is the sum of three or four components in a ring, and
//! each party lacks one of them, the next party's or its own. These scalar functions serve tests, owners and tools; devices do the same on
//! whole columns. All randomness is an argument.
//!
//! ```text
//! rep3   v = u_0 + u_1 + u_2          party i holds u_i, u_{i−1}
//! rep4   v = u_0 + u_1 + u_2 + u_3    party i holds every component but u_i
//! ```
//!
//! # Getting started
//!
//! ```
//! use veil_math::Ring;
//! use veil_share::rep3;
//! let shares = rep3::split(Ring::Z64, 42, [1 << 60, u128::MAX]);
//! assert_eq!(rep3::join(Ring::Z64, shares), Ok(42));
//! ```
//!
//! # Promises
//!
//! - The laws that are its tests: any one share is uniform, sums of shares share the sum.
//!
//! # Limits
//!
//! - Arguments are not secret in memory.

pub mod rep3;
pub mod rep4;

/// Two holders of a component sent different copies of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inconsistent {
    /// Which component.
    pub component: usize,
}
