//! What carries the bytes between the participants of a run, as commands take it.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use veil_link::{LinkKind, NoLink};

use crate::boards;
use crate::devices::{IN_LAB, Registry};
use crate::failure::{Code, Failure};

/// Name of the network of nodes in simulation.
pub const NODES: &str = "fpga-sim";

/// Name of the network of nodes that are boards.
pub(crate) const BOARDS: &str = "fpga";

/// What carries the bytes.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct LinkArgs {
    /// What carries the bytes between participants. Between processes, the same at all of them: tls, or `fabric[:PROVIDER]` by libfabric, where
    /// PROVIDER is tcp, shm, `verbs;ofi_rxm`, efa or another of `fi_info -l` [default: tls; of fabric: tcp]. Of a run of `veil-lab` in one
    /// process: fpga-sim, packets between cards in simulation, a 100 Gb/s network apart. Of a run in one process: `fpga:SOCKET`, the nodes that
    /// `veil-lab node --socket SOCKET` serves [default: memory]
    #[arg(long = "link", value_name = "LINK")]
    choice: Option<Choice>,
}

/// One `--link`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Choice {
    /// Between processes.
    Processes(LinkKind),
    /// Between nodes, whose parties are in one process: boards behind the sockets of this path, or in simulation.
    Nodes(Option<PathBuf>),
}

impl FromStr for Choice {
    type Err = NoLink;

    fn from_str(text: &str) -> Result<Self, NoLink> {
        match text {
            NODES => Ok(Choice::Nodes(None)),
            other => match boards::socket(other) {
                Some(socket) => Ok(Choice::Nodes(Some(socket.to_owned()))),
                None => other.parse().map(Choice::Processes),
            },
        }
    }
}

impl LinkArgs {
    /// What is between processes.
    pub(crate) fn kind(&self) -> LinkKind {
        match self.choice {
            Some(Choice::Processes(kind)) => kind,
            Some(Choice::Nodes(_)) | None => LinkKind::default(),
        }
    }

    /// Whether parties are nodes.
    pub(crate) fn nodes(&self) -> bool {
        matches!(self.choice, Some(Choice::Nodes(_)))
    }

    /// The path of the sockets of nodes that are boards.
    pub(crate) fn boards(&self) -> Option<&Path> {
        match &self.choice {
            Some(Choice::Nodes(socket)) => socket.as_deref(),
            _ => None,
        }
    }

    /// What a report calls nodes.
    pub(crate) fn name(&self) -> &'static str {
        match self.boards() {
            Some(_) => BOARDS,
            None => NODES,
        }
    }

    /// Refuses a link that is not here, before any connect request.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.nodes() {
            let message = format!(
                "--link {} is for parties in one process: `run` and `stats`",
                self.name()
            );
            return Err(
                Failure::new(Code::Usage, message).help("leave it out, or name tls or fabric")
            );
        }
        let absent = |why| Failure::new(Code::Link, format!("--link {}: {why}", self.kind()));
        self.kind().check().map_err(absent)
    }

    /// The same for a run on this machine, whose participants have links of their own only as processes.
    pub(crate) fn check_local(
        &self,
        processes: bool,
        registry: &dyn Registry,
    ) -> Result<(), Failure> {
        match &self.choice {
            Some(Choice::Nodes(Some(_))) if !processes => return Ok(()),
            Some(Choice::Nodes(_)) if !processes && registry.has_network() => return Ok(()),
            Some(Choice::Nodes(_)) if !processes => {
                let message = format!("--link {NODES} is no link of this program");
                return Err(Failure::new(Code::Usage, message).help(IN_LAB));
            }
            Some(Choice::Processes(_)) if !processes => {
                let message = "this --link is between processes, and this run has links in memory";
                return Err(Failure::new(Code::Usage, message).help("add --processes"));
            }
            _ => {}
        }
        self.check()
    }
}
