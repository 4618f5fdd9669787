//! One participant's service.
