//! What carries the bytes between the processes of a run, as commands take it.

use veil_link::LinkKind;

use crate::failure::{Code, Failure};

/// What carries the bytes.
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct LinkArgs {
    /// What carries the bytes between processes, the same at all participants: tls, or `fabric[:PROVIDER]` by libfabric, where PROVIDER is tcp,
    /// shm, `verbs;ofi_rxm`, efa or another of `fi_info -l` [default: tls; of fabric: tcp]
    #[arg(long = "link", value_name = "LINK")]
    kind: Option<LinkKind>,
}

impl LinkArgs {
    pub(crate) fn kind(&self) -> LinkKind {
        self.kind.unwrap_or_default()
    }

    /// Refuses a link that is not here, before anybody is called.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let absent = |why| Failure::new(Code::Link, format!("--link {}: {why}", self.kind()));
        self.kind().check().map_err(absent)
    }

    /// The same for a run on this machine, whose participants have links of their own only as processes.
    pub(crate) fn check_local(&self, processes: bool) -> Result<(), Failure> {
        if self.kind.is_some() && !processes {
            let message =
                "--link chooses what is between processes, and this run has links in memory";
            return Err(Failure::new(Code::Usage, message).help("add --processes"));
        }
        self.check()
    }
}
