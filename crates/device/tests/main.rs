//! Tests of devices against the reference: one program for all of them, which links once.

mod escape;
mod one_row;
mod processors;
mod refused;
mod refused_garble;
mod refused_ot;
