//! Homes that know each other, for tests of deployments.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use veil_node::{Home, Role, Settings};

/// The participants of the job of many rounds.
pub(crate) const NAMES: [&str; 5] = ["a", "b", "c", "ann", "eve"];

/// As what each of them takes part.
pub(crate) fn role(name: &str) -> Role {
    match name {
        "a" | "b" | "c" | "d" | "e" | "f" => Role::Party,
        "eve" => Role::Recipient,
        _ => Role::Owner,
    }
}

/// Addresses on loopback that are free, for now.
pub(crate) fn free(count: usize) -> Vec<SocketAddr> {
    let held: Vec<_> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    held.iter().map(|port| port.local_addr().unwrap()).collect()
}

/// A home for each name, in folders of that name, all members of each other.
pub(crate) fn homes(folder: &Path, names: &[&str]) -> Vec<Home> {
    homes_at(folder, names, &free(names.len()))
}

/// The same, with the address of each; those of parties matter.
pub(crate) fn homes_at(folder: &Path, names: &[&str], addresses: &[SocketAddr]) -> Vec<Home> {
    let homes: Vec<Home> = names
        .iter()
        .zip(addresses)
        .map(|(name, address)| {
            let mut settings = Settings::new(name, role(name)).unwrap();
            if role(name) == Role::Party {
                settings = settings
                    .listening_on(*address)
                    .reached_at(&address.to_string());
            }
            Home::create(&folder.join(name), &settings).unwrap()
        })
        .collect();
    for home in &homes {
        for other in &homes {
            introduce(home, other);
        }
    }
    homes
}

/// Pins the key of `other` in `home`.
pub(crate) fn introduce(home: &Home, other: &Home) {
    let settings = other.settings();
    if settings.name != home.settings().name {
        let key = other.identity().fingerprint();
        let address = settings.address.as_deref();
        home.pin(&settings.name, settings.role, key, address)
            .unwrap();
    }
}
