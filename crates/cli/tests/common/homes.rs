//! Homes that know each other, for tests of deployments.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

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

/// Ports that the system gives to a process only on request, and to no dialler, on any usual machine.
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// Addresses on loopback that are free, and stay so while a service is away: no two tests of a process get the same, and another process
/// begins elsewhere.
pub(crate) fn free(count: usize) -> Vec<SocketAddr> {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let many = u32::from(PORTS.end - PORTS.start);
    let first = std::process::id().wrapping_mul(97);
    let next = || {
        let taken = TAKEN.fetch_add(1, Ordering::Relaxed);
        PORTS.start + (first.wrapping_add(taken) % many) as u16
    };
    let ports = std::iter::repeat_with(next).take(many as usize);
    let free = ports.filter_map(|port| {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        TcpListener::bind(address).ok().map(|_| address)
    });
    let free: Vec<_> = free.take(count).collect();
    assert_eq!(free.len(), count, "no port is free");
    free
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
