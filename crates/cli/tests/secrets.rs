//! What services and participants write down of a run: one trace id, and nothing that is secret or made from it.

use std::collections::BTreeSet;
use std::fs;

use crate::common::Folder;
use crate::common::deployment::{Place, Service, alone, end, states, submit, take_part_at, wait};
use crate::common::homes::{NAMES, homes};
use data_encoding::{BASE64, HEXLOWER};
use sha2::{Digest, Sha256};

/// A secret, its hash, and both as texts write bytes.
fn forms(secret: &[u8]) -> Vec<String> {
    let hash = Sha256::digest(secret);
    [secret, &hash[..]]
        .iter()
        .flat_map(|bytes| [HEXLOWER.encode(bytes), BASE64.encode(bytes)])
        .collect()
}

/// Words of hexadecimal digits that are as long as a key or a hash.
fn digits(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_hexdigit());
    words.filter(|word| word.len() >= 24).collect()
}

#[test]
fn nothing_secret_is_written_down_and_a_run_has_one_name() {
    let _alone = alone();
    let folder = Folder::blocks();
    let homes = homes(folder.path(), &NAMES);
    let start = |name: &&str| Service::start(folder.path(), name, &["--yes", "--level", "trace"]);
    let services: Vec<Service> = NAMES[..3].iter().map(start).collect();
    let (plan, _) = submit(&folder, "job.toml");
    let parts = ["ann", "eve"].map(|name| {
        let trace = format!("{name}.jsonl");
        let more = ["--timeout", "60", "--trace", &trace];
        take_part_at(&Place::HERE, &folder, "job.toml", name, &more)
    });
    let mut written = String::new();
    for part in parts {
        let (code, said) = end(part);
        assert_eq!(code, Some(0), "{said}");
        written += &said;
    }
    wait("done", || states(&folder, &plan) == ["done"; 3]);
    let receipt = fs::read_to_string(folder.at("out-job.toml/receipt.json")).unwrap();
    let receipt: serde_json::Value = serde_json::from_str(&receipt).unwrap();
    let trace = receipt["trace"].as_str().unwrap();
    for name in ["ann", "eve"] {
        let file = fs::read_to_string(folder.at(&format!("{name}.jsonl"))).unwrap();
        assert!(file.contains(trace), "{name}");
        written += &file;
    }
    for service in services {
        written += &service.page("/metrics");
        let (_, said) = service.stop();
        let mut lines = 0;
        // The first lines are for people, and say where it listens.
        for line in said.lines().filter(|line| line.starts_with('{')) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            if let Some(named) = line["span"]["trace"].as_str() {
                assert_eq!(named, trace, "{line}");
                lines += 1;
            }
        }
        assert!(lines > 0, "no line has the trace id: {said}");
        written += &said;
    }
    let public: Vec<String> = homes
        .iter()
        .map(|home| home.identity().fingerprint().to_string())
        .chain([plan, trace.to_owned()])
        .collect();
    for word in digits(&written) {
        let known = public.iter().any(|public| public.contains(word));
        assert!(known, "what is {word}?");
    }
    // The homes' own logs have hashes and signatures of their lines.
    let read = HEXLOWER.encode(&Sha256::digest(fs::read(folder.at("key.hex")).unwrap()));
    let mut logged = 0;
    for name in NAMES {
        let log = fs::read_to_string(folder.at(name).join("log.jsonl")).unwrap();
        // An owner has the digest of what was read in its own log, which stays in its home.
        logged += log.matches(&read).count();
        assert!(name == "ann" || !log.contains(&read), "{name}");
        written += &log.replace(&read, "");
    }
    assert!(logged > 0, "what was read is in its owner's log");
    let mut secrets = forms(
        &HEXLOWER
            .decode(b"000102030405060708090a0b0c0d0e0f")
            .unwrap(),
    );
    secrets.extend(forms(&fs::read(folder.at("key.hex")).unwrap()));
    for name in NAMES {
        secrets.extend(forms(&fs::read(folder.at(name).join("store.key")).unwrap()));
        let key = fs::read_to_string(folder.at(name).join("identity.key")).unwrap();
        let body = key.lines().filter(|line| !line.starts_with("-----"));
        let body: Vec<&str> = body.collect();
        assert!(!body.is_empty(), "{name}");
        secrets.extend(forms(&BASE64.decode(body.concat().as_bytes()).unwrap()));
        secrets.extend(forms(key.as_bytes()));
        secrets.extend(
            body.into_iter()
                .filter(|line| line.len() > 16)
                .map(str::to_owned),
        );
    }
    for secret in secrets {
        assert!(!written.contains(&secret), "{secret}");
    }
}
