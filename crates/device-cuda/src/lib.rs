//! GPUs of NVIDIA as devices.
//!
//! Kernels have one source, in `kernels/`. A compiler of NVIDIA makes code for GPUs of it, offline, which is taken into the program; a compiler of
//! the host makes functions of it that the emulator runs, thread by thread, where there is no GPU: in tests and in `veil-lab`, which ask for the
//! feature `emulator`. [`backend`] is what both do.
//!
//! Whether there is a GPU is found out at run time. That there is none is no failure: [`backend::Driver::open`] says why.

pub mod backend;
pub mod bench;
mod device;
pub mod kernels;

pub use backend::prepare;
pub use device::{Cuda, Seconds};
