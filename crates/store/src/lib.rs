//! Shares at rest.
