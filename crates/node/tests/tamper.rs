//! Whatever is changed in a log of every kind of entry, field by field and line by line, by an adversary without the key, is found where it is.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use veil_node::log::{Bound, Decided, Event, LogFault, verify};
use veil_node::{Home, Role, Settings};

fn bound() -> Bound {
    Bound {
        owner: "union".into(),
        what: "north".into(),
        file: "/data/pay \"2025\".csv".into(),
        bytes: Some(1234),
        sha256: Some("cd".repeat(32)),
    }
}

/// One entry of every kind, but those that begin a log and hand its key over.
fn events() -> Vec<Event> {
    let text = str::to_owned;
    let (plan, job, trace) = ("00".repeat(32), text("pay \"2025\""), Some("1f".repeat(8)));
    let who = || (text("press"), text("vw1:abc"));
    let ((name, fingerprint), (other, old)) = (who(), who());
    vec![
        Event::Invitation {
            name: name.clone(),
            role: Role::Owner,
            expires: "2025-03-14T09:26:53Z".parse().unwrap(),
        },
        Event::Member {
            name: name.clone(),
            role: Role::Recipient,
            fingerprint: fingerprint.clone(),
            how: "pinned",
        },
        Event::Revocation {
            name,
            fingerprint,
            reason: text("left us\n"),
        },
        Event::Rotation {
            name: other,
            old,
            new: text("vw1:def"),
        },
        Event::PolicyChanged {
            sha256: "ab".repeat(32),
            rules: vec![text("pay"), text("no homes")],
        },
        Event::Approval {
            plan: plan.clone(),
            job: job.clone(),
            how: "answered",
            runs: Some(1),
            until: None,
            data: vec![bound()],
        },
        Event::DataRead {
            plan: plan.clone(),
            job: job.clone(),
            read: bound(),
            approved_sha256: Some("ab".repeat(32)),
        },
        Event::Withdrawal {
            plan: plan.clone(),
            job: job.clone(),
        },
        Event::Refusal {
            plan: plan.clone(),
            job: job.clone(),
            asked_by: Some(text("press")),
            rule: None,
            why: text("it uses the column `sex`"),
        },
        Event::RunStarted {
            plan: plan.clone(),
            job: job.clone(),
            asked_by: None,
            rule: Some(text("pay")),
            families: Some([text("ab")].into()),
            decided: Decided::Rule { rule: text("pay") },
            stage: text("run"),
        },
        Event::RunEnded {
            plan: plan.clone(),
            job: job.clone(),
            trace: trace.clone(),
            stage: text("run"),
            opened: true,
            cause: text("done"),
            seconds: 12,
        },
        Event::ResultPublished {
            plan,
            job,
            trace,
            files: 3,
        },
    ]
}

/// A log of all kinds, its lines, and its home.
fn full() -> (TempDir, Home, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::new("ann", Role::Owner).unwrap();
    let home = Home::create(&folder.path().join("ann"), &settings).unwrap();
    for event in events() {
        home.log().append(event).unwrap();
    }
    home.rotate().unwrap();
    for event in events() {
        home.log().append(event).unwrap();
    }
    let text = fs::read_to_string(home.log().path()).unwrap();
    let lines = text.lines().map(str::to_owned).collect();
    (folder, home, lines)
}

fn joined(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

/// What is found, with the log's own head beside it.
fn fault(home: &Home, lines: &[String]) -> String {
    fs::write(home.log().path(), joined(lines)).unwrap();
    home.log().verify(&[]).unwrap_err().to_string()
}

/// Every value in `value` changed, one by one: a text, a number, a missing one, a list that is longer or shorter, a name more or less.
fn changed(value: &Value) -> Vec<Value> {
    match value {
        Value::String(text) => {
            let mut others: Vec<Value> = vec![format!("{text}x").into()];
            if let Some(first) = text.chars().next() {
                let flipped = char::from_u32(u32::from(first) ^ 1).unwrap();
                others.push(format!("{flipped}{}", &text[first.len_utf8()..]).into());
                others.push("".into());
            }
            others
        }
        Value::Number(number) => {
            let number = number.as_u64().unwrap();
            vec![(number + 1).into(), (number ^ 1 << 40).into()]
        }
        Value::Null => vec!["".into(), 0.into()],
        Value::Bool(bool) => vec![(!bool).into()],
        Value::Array(list) => {
            let mut others = Vec::new();
            for (at, item) in list.iter().enumerate() {
                for other in changed(item) {
                    let mut list = list.clone();
                    list[at] = other;
                    others.push(list.into());
                }
            }
            let reversed: Vec<Value> = list.iter().rev().cloned().collect();
            let more = [list.clone(), vec!["x".into()]].concat();
            others.push(more.into());
            // One of one entry is the same either way round.
            others.extend((reversed != *list).then(|| reversed.into()));
            others
        }
        Value::Object(map) => {
            let mut others = Vec::new();
            for (name, inner) in map {
                for other in changed(inner) {
                    let mut map = map.clone();
                    map[name] = other;
                    others.push(map.into());
                }
                let mut less = map.clone();
                less.remove(name);
                others.push(less.into());
            }
            let mut more = map.clone();
            more.insert("more".into(), "x".into());
            others.push(more.into());
            others
        }
    }
}

/// The line of an entry, with names sorted and no blanks.
fn line(entry: &Value) -> String {
    serde_json::to_string(entry).unwrap()
}

/// The entry with the hash that its content has: what an adversary without the key can do.
fn rehashed(entry: &Value) -> Option<String> {
    let mut entry = entry.as_object()?.clone();
    let (hash, sig) = (entry.remove("hash")?, entry.remove("sig")?);
    let digest = Sha256::digest(line(&entry.clone().into()));
    let digest = data_encoding::HEXLOWER.encode(&digest);
    let same = hash == digest;
    entry.extend([("hash".into(), digest.into()), ("sig".into(), sig)]);
    (!same).then(|| line(&entry.into()))
}

#[test]
fn every_field_of_every_kind_is_under_hash_and_signature() {
    let (_folder, home, good) = full();
    home.log().verify(&[]).unwrap();
    let (mut kinds, mut edits) = (BTreeSet::new(), 0);
    for at in 0..good.len() {
        let entry: Value = serde_json::from_str(&good[at]).unwrap();
        assert_eq!(line(&entry), good[at], "the test writes what the log has");
        kinds.insert(entry["kind"].as_str().unwrap().to_owned());
        for other in changed(&entry) {
            // Of another hash alone, hashing again makes the entry that there was.
            let rehashed = rehashed(&other).filter(|line| *line != good[at]);
            for written in [Some(line(&other)), rehashed].into_iter().flatten() {
                assert_ne!(written, good[at]);
                let mut bad = good.clone();
                bad[at].clone_from(&written);
                let said = verify(joined(&bad).as_bytes(), &[]).unwrap_err();
                let said = said.to_string();
                assert!(
                    said.starts_with(&format!("line {}: ", at + 1)),
                    "{said}\n{written}"
                );
                edits += 1;
            }
        }
    }
    assert_eq!(kinds.len(), events().len() + 2, "{kinds:?}");
    assert!(edits > 1000, "{edits}");
}

#[test]
fn every_bit_of_a_log_counts() {
    let (_folder, home, good) = full();
    // Two entries of a log are as good as many for this.
    let good = joined(&good[..2]);
    verify(good.as_bytes(), &[]).unwrap();
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone().into_bytes();
            bad[at] ^= 1 << bit;
            assert!(verify(&bad[..], &[]).is_err(), "bit {bit} of byte {at}");
        }
    }
    drop(home);
}

#[test]
fn no_line_can_be_taken_added_or_exchanged() {
    let (_folder, home, good) = full();
    let lines = good.len();
    for at in 0..lines {
        let mut bad = good.clone();
        bad.remove(at);
        let said = fault(&home, &bad);
        if at == 0 {
            assert!(said.starts_with("line 1: a log begins"), "{said}");
        } else if at + 1 == lines {
            let cut = format!("the log ends with entry {at}, and once had entry {lines}");
            assert!(said.starts_with(&cut), "{said}");
        } else {
            let (here, next) = (at + 1, at + 2);
            let order = format!("line {here}: entry {next} stands where entry {here} belongs");
            assert!(said.starts_with(&order), "{said}");
        }
        for from in 0..lines {
            let mut bad = good.clone();
            bad.insert(at, good[from].clone());
            // A line twice in a row is one too many at the second.
            let first = if from == at { at + 2 } else { at + 1 };
            let said = fault(&home, &bad);
            assert!(
                said.starts_with(&format!("line {first}: ")),
                "{from} at {at}: {said}"
            );
        }
        for other in at + 1..lines {
            let mut bad = good.clone();
            bad.swap(at, other);
            let said = fault(&home, &bad);
            assert!(said.starts_with(&format!("line {}: ", at + 1)), "{said}");
        }
    }
}

/// The head beside the log shows a cut; without it, only one that another participant keeps does, at whatever line it was taken.
#[test]
fn a_cut_end_is_found_with_the_head_and_only_with_it() {
    let (_folder, home, good) = full();
    let whole = home.log().verify(&[]).unwrap().head;
    for length in 1..good.len() {
        let cut = joined(&good[..length]);
        fs::write(home.log().path(), &cut).unwrap();
        let found = home.log().verify(&[]).unwrap_err();
        let known = good.len() as u64;
        assert!(
            matches!(found, LogFault::Cut { found, known: k } if (found, k) == (length as u64, known)),
            "{found}"
        );
        // The log by itself is a whole one: this is what the documentation says no log can show.
        let shorter = verify(cut.as_bytes(), &[]).unwrap();
        let told = verify(cut.as_bytes(), std::slice::from_ref(&whole)).unwrap_err();
        assert!(matches!(told, LogFault::Cut { .. }), "{told}");
        // A head of before the cut shows nothing, and is no reproach to a log that went on.
        verify(joined(&good).as_bytes(), &[shorter.head]).unwrap();
        // In the middle of a line.
        let told = verify(&cut.as_bytes()[..cut.len() - 9], &[]).unwrap_err();
        assert!(
            matches!(told, LogFault::Torn { line } if line == length as u64),
            "{told}"
        );
    }
}
