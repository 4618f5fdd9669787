//! Damaged files of a home, from a fixed seed: nothing panics, and nothing damaged passes for whole.
#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::fs;
use std::time::Duration;

use veil_link::tls::Identity;
use veil_node::{Home, Role, Settings, fuzz_members, fuzz_string, log, policy};
use veil_testkit::{Numbers, Seed};

/// One to four changes: a bit, a byte, a part removed, a part repeated.
fn damage(numbers: &mut Numbers, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=numbers.index(4) {
        let at = numbers.index(bytes.len());
        match numbers.index(4) {
            0 => bytes[at] ^= 1 << numbers.index(8),
            1 => bytes[at] = numbers.index(256) as u8,
            2 => drop(bytes.drain(at..(at + numbers.index(9)).min(bytes.len()))),
            _ => {
                let part = bytes[at..(at + 9).min(bytes.len())].to_vec();
                bytes.splice(at..at, part);
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

const POLICY: &str = r#"version = 1
[[rule]]
name = "pay"
decision = "allow"
asked_by = ["press", "me"]
operations = ["count", "mean"]
circuits = ["aes128"]
parties = [["a", "b", "c"]]
min_rows = 30
per_day = 2
adversary = "semi-honest"
[[rule]]
name = "no homes"
decision = "refuse"
columns = ["home"]
"#;

#[test]
fn damaged_strings_policies_members_and_logs_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::new("ann", Role::Owner).unwrap();
    let home = Home::create(&folder.path().join("ann"), &settings).unwrap();
    let week = Duration::from_secs(604_800);
    let invitation = home.invite("bob", Role::Owner, week).unwrap().to_string();
    let statement = home.rotate().unwrap().to_string();
    let written = fs::read(home.log().path()).unwrap();
    let (address, reason) = (Some("north.example:7000"), "left us");
    for (name, role) in [
        ("bob", Role::Owner),
        ("north", Role::Party),
        ("eve", Role::Recipient),
    ] {
        let key = Identity::generate().unwrap().fingerprint();
        home.pin(name, role, key, address.filter(|_| role == Role::Party))
            .unwrap();
    }
    home.revoke("eve", reason).unwrap();
    let members = fs::read(home.path().join("members.toml")).unwrap();
    assert!(fuzz_members(&members));
    assert!(fuzz_string(invitation.as_bytes()) && fuzz_string(statement.as_bytes()));
    assert!(log::fuzz_log(&written) && policy::fuzz_policy(POLICY.as_bytes()));
    let mut numbers = Seed(20_261_120).numbers("damage");
    for _ in 0..3000 {
        for text in [&invitation, &statement] {
            let bad = damage(&mut numbers, text.as_bytes());
            let same = bad.eq_ignore_ascii_case(text.as_bytes());
            // White space within a string does not count.
            let blank =
                std::str::from_utf8(&bad).is_ok_and(|bad| bad.contains(char::is_whitespace));
            assert!(same || blank || !fuzz_string(&bad), "{bad:?}");
        }
        let bad = damage(&mut numbers, &written);
        assert!(
            bad == written || bad.is_empty() || !log::fuzz_log(&bad) || written.starts_with(&bad)
        );
        policy::fuzz_policy(&damage(&mut numbers, POLICY.as_bytes()));
        fuzz_members(&damage(&mut numbers, &members));
    }
}
