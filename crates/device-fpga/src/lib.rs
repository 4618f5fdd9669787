//! RTL cores as devices.
//!
//! A garbler of `rtl/garble` does the garbling commands of a party: its driver makes a program of a layer into bundles, and the core garbles one
//! row of the workspace after the other, or one cycle of a netlist, several gates in every cycle. Cores of `rtl/share` run the programs of parties
//! that compute on replicated shares ([`share`]). All other commands, and the workspaces themselves, are the host's ([`veil_device::Cpu`]). With
//! the feature `simulated`, where Verilator was there when this was built, the cores are simulated, cycle by cycle; a board would be one more
//! transport below the same driver. The core of `rtl/ordered`, which is there for comparison, is simulated by [`ordered`].
//!
//! ```
//! use veil_device::Device;
//! match veil_device_fpga::Fpga::simulated() {
//!     Ok(device) => assert_eq!(device.name(), "fpga-sim"),
//!     Err(absent) => println!("{absent}"),
//! }
//! ```
//!
//! Promises: the bytes of the reference device. Does not promise speed: a simulated core garbles some ten thousand gates in a second.

pub mod abi;
mod assembled;
pub mod board;
mod cycles;
mod device;
mod driver;
pub mod garble;
mod instance;
pub mod lookaside;
pub mod node;
pub mod ordered;
mod rows;
pub mod share;
mod sim;
pub mod transport;

pub use assembled::Assembled;
pub use device::{Clock, Fpga};
pub use driver::{CardError, Garbler, Run, Streams};
pub use sim::{Simulated, Stalls};

/// Why there are no simulated cards at all.
const NONE: Absent = if cfg!(feature = "simulated") {
    Absent::NoVerilator
} else {
    Absent::NotSimulated
};

/// There is no such card.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Absent {
    /// No simulated cards were built.
    #[error(
        "Verilator was not there when this was built: install it (`make deps` does) and build again"
    )]
    NoVerilator,
    /// No simulated cards were asked for.
    #[error("this was built without simulated cards, which are the feature `simulated`")]
    NotSimulated,
    /// Not with so many garbling engines.
    #[error("no garbler of {engines} engines was built: build again with VEIL_RTL_ROWS={engines}")]
    NotBuilt {
        /// Garbling engines.
        engines: u32,
    },
    /// It does not work.
    #[error(transparent)]
    Card(#[from] CardError),
}
