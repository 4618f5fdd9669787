//! What links within a machine leave in its shared memory: nothing. A program of its own, since it counts what its process has there.
#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod common;

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::common::{BOUNDS, World, at, party, soon, take};
use veil_link::{Link, LinkKind, Provider};

const FOLDER: &str = "/dev/shm";

/// Everything of ours there.
fn ours() -> Vec<String> {
    let process = format!("{:08x}", std::process::id());
    let names = fs::read_dir(FOLDER).unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains(&process)).collect()
}

#[test]
fn nothing_is_left_in_shared_memory_and_what_others_left_goes() {
    let kind = LinkKind::Fabric(Provider::SHM);
    if let Err(why) = kind.check() {
        eprintln!("skipped: {why}");
        return;
    }
    // As a killed process leaves it, which no process owns any more.
    let stale =
        Path::new(FOLDER).join(format!("veil-fabric-{:08x}-{:016x}", 0, std::process::id()));
    let file = File::create(&stale).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(60))
        .unwrap();
    drop(file);
    let (mut a, mut b) = World::pair(kind, BOUNDS);
    assert!(!stale.exists(), "swept");
    assert_eq!(ours().len(), 2, "an endpoint each: {:?}", ours());
    a.post(party(1), at(0), &vec![7; 100_000]).unwrap();
    let sender = std::thread::spawn(move || a.close(soon()).unwrap());
    b.expect(party(0), at(0), 100_000).unwrap();
    take(&mut b, party(0), at(0), &mut vec![0; 100_000]);
    b.close(soon()).unwrap();
    drop(b);
    sender.join().unwrap();
    assert_eq!(ours(), Vec::<String>::new());
    // Nor does an end that is dropped in the middle leave anything.
    let (mut a, b) = World::pair(kind, BOUNDS);
    a.post(party(1), at(0), &vec![7; 100_000]).unwrap();
    a.poll().unwrap();
    drop(b);
    drop(a);
    assert_eq!(ours(), Vec::<String>::new());
}
