//! How much memory a participant of a run may take, and where columns wait beyond it.

use std::path::PathBuf;
use std::sync::Arc;

use veil_engine::{Room, Settings};
use veil_link::LinkKind;
use veil_runtime::Passes;
use veil_session::Peer;
use veil_store::SpillFile;

use crate::failure::{Code, Failure};

/// Memory of a run.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct RoomArgs {
    /// Memory that a participant of the run may take, in MiB, beside the program itself: a run that takes more is refused before it begins
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub memory_mib: Option<u64>,
    /// A folder where columns of queries wait, encrypted, while a party's memory is for others: queries of more rows than memory has room for. The
    /// folder has nothing of them when the run is over
    #[arg(long, value_name = "DIR", requires = "memory_mib")]
    pub spill: Option<PathBuf>,
}

impl RoomArgs {
    /// The room for columns of a participant, if it is bounded.
    pub(crate) fn of(
        &self,
        plan: &Passes,
        me: Peer,
        link: LinkKind,
    ) -> Result<Option<Room>, Failure> {
        let Some(mib) = self.memory_mib else {
            return Ok(None);
        };
        let window = Settings::default().window;
        let room = plan.room(me, (window, link), (mib << 20, self.spill.is_some()));
        let room = room.map_err(|error| {
            let message = format!("{}: {error}", veil_engine::name_of(plan, me));
            let help = if error.spills || me.party().is_none() {
                "give it more, --memory-mib"
            } else {
                "give it more, --memory-mib, or a folder where columns of queries wait, --spill"
            };
            Failure::new(Code::Usage, message).help(help)
        })?;
        let (Some(bytes), Some(folder)) = (room, &self.spill) else {
            return Ok(None);
        };
        let spill = SpillFile::create(folder).map_err(Failure::from)?;
        let spill = Arc::new(spill);
        Ok(Some(Room { bytes, spill }))
    }
}
