//! Kernels that try the emulator: kernels/probes/probes.cu.

use super::Kernel;
use super::Parameter::{Memory, U32};

/// A sum of all words, and how many are odd: words, a word for each block, two words, how many.
pub static PROBE_SUM: Kernel = Kernel {
    name: "probe_sum",
    block: 1024,
    shared: 0,
    cooperative: true,
    apart: None,
    parameters: &[
        Memory(|call| call.times(3, 4)),
        Memory(|call| Some(4 * u64::from(call.launch.grid))),
        Memory(|_| Some(8)),
        U32,
    ],
};

/// [`PROBE_SUM`], launched without all blocks at once.
pub static PROBE_SUM_APART: Kernel = Kernel {
    name: "probe_sum",
    block: 1024,
    shared: 0,
    cooperative: false,
    apart: None,
    parameters: PROBE_SUM.parameters,
};

/// What neighbours wrote: a word for each thread, whether there is a barrier.
pub static PROBE_NEIGHBOURS: Kernel = Kernel {
    name: "probe_neighbours",
    block: 1024,
    shared: 0,
    cooperative: false,
    apart: None,
    parameters: &[
        Memory(|call| Some(4 * u64::from(call.launch.grid) * u64::from(call.launch.block))),
        U32,
    ],
};

/// Threads that do not meet: in which way.
pub static PROBE_DIVERGING: Kernel = Kernel {
    name: "probe_diverging",
    block: 1024,
    shared: 0,
    cooperative: false,
    apart: None,
    parameters: &[U32],
};

/// Shared memory of two sizes.
pub static PROBE_GROWING: Kernel = Kernel {
    name: "probe_growing",
    block: 1024,
    shared: 0,
    cooperative: false,
    apart: None,
    parameters: &[],
};

/// A product of bytes: the left matrix, the right one, words of each warp to which it is added twice, whether copies are waited for.
pub static PROBE_MATRIX: Kernel = Kernel {
    name: "probe_matrix",
    block: 1024,
    shared: 0,
    cooperative: false,
    apart: None,
    parameters: &[
        Memory(|_| Some(16 * 32)),
        Memory(|_| Some(8 * 32)),
        Memory(|call| Some(16 * u64::from(call.launch.grid) * u64::from(call.launch.block))),
        U32,
    ],
};
