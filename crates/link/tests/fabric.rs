//! Links over libfabric keep to what links over TLS do, where the library is.

use crate::common;
use crate::common::{World, party, soon};
use veil_link::tls::SetupError;
use veil_link::{LinkKind, Provider};

/// Runs a test over `provider`, or says that it did not.
fn over(provider: Provider, test: fn(LinkKind)) {
    let kind = LinkKind::Fabric(provider);
    match kind.check() {
        Ok(()) => test(kind),
        Err(why) => eprintln!("skipped: {why}"),
    }
}

mod tcp {
    use super::*;

    common::suite::suite!(|test| over(Provider::TCP, test));
}

mod shm {
    use super::*;

    common::suite::suite!(|test| over(Provider::SHM, test));
}

#[test]
fn who_names_another_link_is_told_and_so_are_we() {
    let mut world = World::new(&[party(0), party(1)]);
    let ours = LinkKind::Fabric(Provider::SHM);
    world.members.get_mut(&party(1)).unwrap().terms.link = ours;
    for (me, met) in world.try_meet(1, soon()) {
        let (peer, ours, theirs) = if me == party(0) {
            (party(1), LinkKind::Tls, ours)
        } else {
            (party(0), ours, LinkKind::Tls)
        };
        let error = met.map(|_| ()).unwrap_err();
        assert_eq!(error, SetupError::Link { peer, ours, theirs });
    }
}

#[test]
fn a_provider_that_is_not_there_is_named() {
    let kind: LinkKind = "fabric:nowhere".parse().unwrap();
    let why = kind.check().unwrap_err();
    assert!(
        why.contains("nowhere") || why.contains("libfabric is not here"),
        "{why}"
    );
}
