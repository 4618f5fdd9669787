//! Tables of rates: what a unit of work costs on a machine that was measured.
//!
//! The estimate of `veil explain` is a function of a plan and of such a table, and of nothing else: [`Work`] counts what each participant does,
//! [`Rates`] say how many seconds a unit of each kind takes. `veil-lab calibrate` measures a table.

mod file;
mod work;

use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use file::RatesError;
pub use work::Work;

/// The version of the format of tables.
pub const VERSION: i64 = 1;

/// The name of a table in a home.
pub const IN_HOME: &str = "rates.toml";

/// The table of a program that is given no other.
const BUILT_IN: &str = include_str!("default.toml");

/// A table has a few dozen numbers: nothing longer is one.
const LONGEST: u64 = 64 << 10;

/// Kinds of work, each with its name in a table and its unit. The order is that of [`Work`].
macro_rules! kinds {
    ($($kind:ident $name:literal $unit:literal)*) => {
        /// A kind of work, which has a rate.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(usize)]
        pub enum Kind {
            $(#[doc = $unit] $kind,)*
        }

        impl Kind {
            /// All of them.
            pub const ALL: &[Kind] = &[$(Kind::$kind,)*];

            /// Its name in a table.
            pub const fn name(self) -> &'static str {
                match self { $(Kind::$kind => $name,)* }
            }

            /// What its rate is for: so many seconds each.
            pub const fn unit(self) -> &'static str {
                match self { $(Kind::$kind => $unit,)* }
            }
        }
    };
}

kinds! {
    Run "run" "a participant of a run, whatever it does"
    Lane "lane" "a lane of a participant"
    Pair "pair" "a peer of a participant: keys of the pair"
    Transfers "transfers" "a party that sets up oblivious transfers"
    Loaded "loaded" "an instruction of a program that a lane loads"
    Workspace "workspace" "a byte of a workspace that is opened and scrubbed"
    Round "round" "a round of a chunk"
    Command "command" "a command of a round"
    Instruction "instruction" "an instruction of a program, whatever its rows"
    Value "value" "a byte of clear values supplied or received"
    Message "message" "a message sent or received"
    Sent "byte" "a byte sent or received over TLS, with headers"
    LinearBits "linear_bits" "a byte of a share component that a linear gate over Z2 writes"
    LinearZ64 "linear_z64" "the same over Z_2^64"
    LinearZ128 "linear_z128" "the same over Z_2^128"
    ProductBits "product_bits" "a byte of a product of two share components over Z2"
    ProductZ64 "product_z64" "the same over Z_2^64"
    ProductZ128 "product_z128" "the same over Z_2^128"
    Mask "mask" "a byte that the PRF gives for masks"
    Column "column" "a byte of columns that are added, placed, compared or resized"
    Converted "converted" "a byte of integers that are split to bits or made of them"
    Hash "hash" "a byte hashed by SHA-256"
    Mac "mac" "a byte hashed by POLYVAL"
    Proof "proof" "a byte of the vectors of a proof"
    Label "label" "a byte of labels that are added, encoded or read"
    HalfGates "half_gates" "a byte of labels of ANDs evaluated by half-gates; garbled, they count twice"
    ThreeHalves "three_halves" "the same by three-halves"
    Transfer "transfer" "a byte of columns and labels of oblivious transfers"
    Cut "cut" "a byte of labels and marks of cut-and-choose"
}

/// How many kinds there are.
pub const KINDS: usize = Kind::ALL.len();

/// What units of work take on one core of a machine, in seconds, and what it has besides.
#[derive(Clone, PartialEq, Debug)]
pub struct Rates {
    /// The day when they were measured, as 2027-12-31.
    pub measured: String,
    /// The processor.
    pub machine: String,
    /// The device.
    pub device: String,
    /// Cores, which all participants of a run on one machine share.
    pub cores: u16,
    /// Seconds that a round waits for messages of other processes of the machine, at the least.
    pub wait: f64,
    /// Seconds of each kind of work.
    pub seconds: [f64; KINDS],
}

/// What is said of a table beside an estimate.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The version of its format.
    pub version: i64,
    /// The day when it was measured.
    pub measured: String,
    /// The processor.
    pub machine: String,
    /// The device.
    pub device: String,
    /// Its cores.
    pub cores: u16,
}

/// A table, and where it is from.
#[derive(Clone, Debug)]
pub struct Found {
    /// The table.
    pub rates: Rates,
    /// Nothing for the table in the program.
    pub path: Option<PathBuf>,
}

impl Found {
    /// The table of this program.
    pub fn built_in() -> Self {
        Found {
            rates: Rates::built_in(),
            path: None,
        }
    }

    /// The table of a home, or that of the program.
    ///
    /// # Errors
    /// As of [`Rates::read`].
    pub fn of(home: &Path) -> Result<Self, RatesError> {
        let path = home.join(IN_HOME);
        if path.exists() {
            return Found::at(&path);
        }
        Ok(Self::built_in())
    }

    /// The table in this file.
    ///
    /// # Errors
    /// As of [`Rates::read`].
    pub fn at(path: &Path) -> Result<Self, RatesError> {
        Ok(Found {
            rates: Rates::read(path)?,
            path: Some(path.to_owned()),
        })
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Rates {
            measured,
            machine,
            device,
            cores,
            ..
        } = &self.rates;
        let cores = crate::explain::words::count((*cores).into(), "core");
        write!(f, "{machine}, {cores}, {device}, measured {measured}, ")?;
        match &self.path {
            Some(path) => write!(f, "{}", path.display()),
            None => f.write_str("the table of this program"),
        }
    }
}

impl Rates {
    /// The table of this program.
    ///
    /// # Panics
    /// Never: a test reads it.
    pub fn built_in() -> Self {
        Rates::parse(Path::new("default.toml"), BUILT_IN).expect("a test reads this table")
    }

    /// Reads a table.
    ///
    /// # Errors
    /// [`RatesError`] if the file cannot be read, is longer than any table, or is none.
    pub fn read(path: &Path) -> Result<Self, RatesError> {
        let io = |source| RatesError::Read {
            path: path.to_owned(),
            source,
        };
        let file = std::fs::File::open(path).map_err(io)?;
        let mut bytes = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(io)?;
        if bytes.len() as u64 > LONGEST {
            return Err(RatesError::TooLong {
                path: path.to_owned(),
                limit: LONGEST,
            });
        }
        let text = String::from_utf8(bytes).map_err(|_| RatesError::NoText {
            path: path.to_owned(),
        })?;
        Rates::parse(path, &text)
    }

    /// Reads the text of a table, which is in `path`.
    ///
    /// # Errors
    /// [`RatesError`] if it is none of this version, or a rate is missing, unknown or no time.
    pub fn parse(path: &Path, text: &str) -> Result<Self, RatesError> {
        file::parse(path, text)
    }

    /// Seconds of a unit of work.
    pub const fn of(&self, kind: Kind) -> f64 {
        self.seconds[kind as usize]
    }

    /// What is said of it beside an estimate.
    pub fn origin(&self) -> Origin {
        Origin {
            version: VERSION,
            measured: self.measured.clone(),
            machine: self.machine.clone(),
            device: self.device.clone(),
            cores: self.cores,
        }
    }

    /// The text of the table.
    pub fn to_toml(&self) -> String {
        let mut text = format!(
            "# What a unit of work takes on a machine that `veil-lab calibrate` has measured: `veil explain` estimates by it.\n\
             version = {VERSION}\n\
             measured = {}\n\
             machine = {}\n\
             device = {}\n\
             cores = {}\n\n\
             [loopback] # seconds\n\
             wait = {:e} # of a round, for messages of the same machine\n\n\
             [cpu] # seconds of one core\n",
            quoted(&self.measured),
            quoted(&self.machine),
            quoted(&self.device),
            self.cores,
            self.wait,
        );
        for kind in Kind::ALL {
            let (name, unit) = (kind.name(), kind.unit());
            writeln!(text, "{name} = {:e} # {unit}", self.of(*kind))
                .expect("a string takes all that is written to it");
        }
        text
    }
}

/// The processor of this machine, in the words of its maker.
pub fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map(|(_, name)| name.trim());
    file::tame(name.unwrap_or(std::env::consts::ARCH))
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests;
