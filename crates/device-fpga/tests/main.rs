//! Tests of simulated cores: one program for all of them, which links once.

mod common;
mod device;
mod loops;
mod node;
mod offset;
mod ordered;
mod shares;
