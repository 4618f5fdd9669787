//! One participant's rings of one lane, as a link.

use super::wire::FabricWire;
use crate::line::{Line, Lines};
use crate::tls::Connected;
use crate::{Bounds, Link, LinkError, LinkFault, Provider, frame};

/// One participant's end of its links over libfabric of one lane. No threads: bytes move in `poll` and `wait`, and a long message also
/// in `post`.
#[derive(Debug)]
pub struct FabricLink(Lines<FabricWire>);

impl FabricLink {
    /// A link by `provider` to the peers of `connections`, all of the same lane. It waits for none of them: messages posted before a peer
    /// has sent the address of its ring leave afterwards.
    ///
    /// # Errors
    /// [`LinkFault::Local`] if libfabric or the provider cannot be used on this machine for one of the peers.
    pub fn open(
        connections: Vec<Connected>,
        provider: Provider,
        bounds: Bounds,
    ) -> Result<Self, LinkError> {
        let line = |connected: Connected| {
            let (peer, tag) = (connected.peer(), frame::tag(&connected.plan.0));
            let wire = FabricWire::open(connected, provider);
            let wire = wire.map_err(|why| LinkError {
                peer,
                at: None,
                fault: LinkFault::Local(why),
            })?;
            Ok(Line::new(wire, peer, tag, bounds))
        };
        let lines = connections
            .into_iter()
            .map(line)
            .collect::<Result<_, _>>()?;
        Ok(FabricLink(Lines::new(lines, bounds)))
    }
}

impl Link for FabricLink {
    crate::forward!(self, self.0, bind post post_pieces expect land land_pieces land_whole poll wait abort under_way close meters);
}
