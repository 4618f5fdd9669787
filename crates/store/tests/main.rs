//! Tests of stored shares: one program for all of them, which links once.

mod common;
mod damage;
mod fit;
mod full;
mod round_trip;
mod second_reader;
mod writing;
