//! The log: whatever is done to it without the key is found, with its line, and a second implementation agrees.

use std::fs;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use veil_node::log::{Decided, Event, Head, verify};
use veil_node::{Home, Role, Settings};

fn made() -> (TempDir, Home) {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::new("ann", Role::Owner).unwrap();
    let home = Home::create(&folder.path().join("ann"), &settings).unwrap();
    (folder, home)
}

fn started(job: &str) -> Event {
    Event::RunStarted {
        plan: "00".repeat(32),
        job: job.into(),
        asked_by: Some("Gemeinde \"Köln\"\n".into()),
        rule: None,
        families: None,
        decided: Decided::Yes,
        stage: "run".into(),
    }
}

/// A log of six entries, over a change of keys.
fn six() -> (TempDir, Home, Vec<String>) {
    let (folder, home) = made();
    home.log().append(started("pay")).unwrap();
    home.invite("bob", Role::Owner, Duration::from_secs(60))
        .unwrap();
    home.rotate().unwrap();
    home.log().append(started("age")).unwrap();
    home.log().append(started("pay")).unwrap();
    let text = fs::read_to_string(home.log().path()).unwrap();
    let lines = text.lines().map(str::to_owned).collect();
    (folder, home, lines)
}

fn fault(home: &Home, lines: &[String]) -> String {
    fs::write(home.log().path(), lines.join("\n") + "\n").unwrap();
    home.log().verify(&[]).unwrap_err().to_string()
}

#[test]
fn an_untouched_log_is_in_order() {
    let (_folder, home, lines) = six();
    let verified = home.log().verify(&[]).unwrap();
    assert_eq!((verified.entries, verified.name.as_str()), (6, "ann"));
    assert_ne!(verified.first_key, verified.last_key);
    assert_eq!(verified.last_key, home.identity().fingerprint());
    let mut kinds = Vec::new();
    home.log().for_each(|entry| kinds.push(entry.kind)).unwrap();
    assert_eq!(
        kinds,
        [
            "init",
            "run_started",
            "invitation",
            "key_rotated",
            "run_started",
            "run_started"
        ]
    );
    assert_eq!(lines.len(), 6);
    let head: Head = verified.head.to_string().parse().unwrap();
    assert_eq!(head, verified.head);
    assert!("6:zz".parse::<Head>().is_err());
}

#[test]
fn every_kind_of_tampering_names_the_first_bad_line() {
    let (_folder, home, good) = six();
    let check = |change: &dyn Fn(&mut Vec<String>), want: &str| {
        let mut lines = good.clone();
        change(&mut lines);
        let said = fault(&home, &lines);
        assert!(said.starts_with(want), "{said}\nwanted {want}");
    };
    check(
        &|l| l[1] = l[1].replace("\"pay\"", "\"gap\""),
        "line 2: the entry says something else",
    );
    check(
        &|l| l[1] = l[1].replace("{\"fields\"", "{ \"fields\""),
        "line 2: this is no entry of a log as it was written",
    );
    check(
        &|l| drop(l.remove(2)),
        "line 3: entry 4 stands where entry 3 belongs",
    );
    check(
        &|l| l.swap(4, 5),
        "line 5: entry 6 stands where entry 5 belongs",
    );
    check(
        &|l| l.insert(2, l[1].clone()),
        "line 3: entry 2 stands where entry 3 belongs",
    );
    check(
        &|l| drop(l.remove(0)),
        "line 1: a log begins with the making of its home",
    );
    check(
        &|l| l.truncate(5),
        "the log ends with entry 5, and once had entry 6: its end was cut off",
    );
    check(&|l| l.clear(), "line 1: this is no entry");
    fs::write(home.log().path(), "").unwrap();
    assert!(
        home.log()
            .verify(&[])
            .unwrap_err()
            .to_string()
            .starts_with("the log is empty")
    );
    fs::write(home.log().path(), good.join("\n")).unwrap();
    assert!(
        home.log()
            .verify(&[])
            .unwrap_err()
            .to_string()
            .starts_with("line 6: the last entry is not complete")
    );
    fs::write(home.log().path(), good.join("\n") + "\n").unwrap();
    home.log().verify(&[]).unwrap();
}

/// SHA-256 of an edited line put into it, as an adversary without the key would do it.
fn rehashed(line: &str) -> String {
    use sha2::{Digest, Sha256};
    let at = line.find(",\"hash\":\"").unwrap();
    let sig = line.find(",\"sig\":\"").unwrap();
    let time = line.find(",\"time\":").unwrap();
    let content = format!(
        "{}{}{}",
        &line[..at],
        &line[at + 9 + 64 + 1..sig],
        &line[time..]
    );
    let hash: String = Sha256::digest(&content)
        .iter()
        .map(|b| format!("{b:02x}"))
        .fold(String::new(), |a, b| a + &b);
    format!(
        "{},\"hash\":\"{hash}\"{}",
        &line[..at],
        &line[at + 9 + 64 + 1..]
    )
}

#[test]
fn hashes_that_were_computed_again_lack_the_signature() {
    let (_folder, home, good) = six();
    assert_eq!(
        rehashed(&good[1]),
        good[1],
        "the test computes what the product does"
    );
    let mut lines = good.clone();
    lines[5] = rehashed(&lines[5].replace("\"pay\"", "\"gap\""));
    let said = fault(&home, &lines);
    assert!(
        said.starts_with("line 6: the entry is not signed by vw1:"),
        "{said}"
    );
    // Another participant's good log is not ours.
    let (_other, other) = made();
    fs::copy(other.log().path(), home.log().path()).unwrap();
    fs::remove_file(home.path().join("log.head")).unwrap();
    let said = home.log().verify(&[]).unwrap_err().to_string();
    assert!(
        said.starts_with("the log is signed by vw1:") && said.contains("another participant's log"),
        "{said}"
    );
}

#[test]
fn a_head_that_was_kept_elsewhere_shows_what_an_older_copy_lacks() {
    let (_folder, home, lines) = six();
    let head = home.log().verify(&[]).unwrap().head;
    // An adversary that can write here puts back an old log with its old head.
    let old = lines[..4].join("\n") + "\n";
    fs::write(home.log().path(), &old).unwrap();
    fs::remove_file(home.path().join("log.head")).unwrap();
    home.log().verify(&[]).unwrap();
    let said = home
        .log()
        .verify(std::slice::from_ref(&head))
        .unwrap_err()
        .to_string();
    assert!(
        said.starts_with("the log ends with entry 4, and once had entry 6"),
        "{said}"
    );
    // And lets it go on.
    home.log().append(started("x")).unwrap();
    home.log().append(started("y")).unwrap();
    let said = home.log().verify(&[head]).unwrap_err().to_string();
    assert!(
        said.starts_with("line 6: entry 6 is another one than was known"),
        "{said}"
    );
}

#[test]
fn half_an_entry_of_a_machine_that_stopped_is_written_over() {
    let (_folder, home, lines) = six();
    let text = lines.join("\n") + "\n";
    fs::write(home.log().path(), text.clone() + "{\"fields\":{\"asked").unwrap();
    home.log().append(started("next")).unwrap();
    let verified = home.log().verify(&[]).unwrap();
    assert_eq!(verified.entries, 7);
    // One that was acknowledged and then cut is not mended.
    fs::write(home.log().path(), &text[..text.len() - 10]).unwrap();
    let error = home.log().append(started("next")).unwrap_err().to_string();
    assert!(
        error.contains("the log does not end as it was left, and nothing is added to it"),
        "{error}"
    );
    // Nor is one that was cut between entries, or removed.
    fs::write(home.log().path(), lines[..2].join("\n") + "\n").unwrap();
    assert!(home.log().append(started("next")).is_err());
    fs::remove_file(home.log().path()).unwrap();
    assert!(home.log().append(started("next")).is_err());
    // What the message advises works.
    fs::remove_file(home.path().join("log.head")).unwrap();
    home.log().append(started("next")).unwrap();
    assert_eq!(home.log().verify(&[]).unwrap().entries, 2);
}

#[test]
fn no_entry_is_lost_when_many_write() {
    let (_folder, home) = made();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let path = home.path();
            scope.spawn(move || {
                let home = Home::open(path).unwrap();
                for n in 0..8 {
                    home.log()
                        .append(started(&format!("{writer} {n}")))
                        .unwrap();
                }
            });
        }
    });
    assert_eq!(home.log().verify(&[]).unwrap().entries, 33);
    let mut jobs = Vec::new();
    home.log()
        .for_each(|entry| jobs.extend(entry.text("job").map(str::to_owned)))
        .unwrap();
    jobs.sort();
    jobs.dedup();
    assert_eq!(jobs.len(), 32);
}

#[test]
fn long_words_are_cut_and_damaged_bytes_do_no_harm() {
    let (_folder, home) = made();
    home.pin(
        "bob",
        Role::Owner,
        veil_link::tls::Fingerprint::from_bytes([1; 32]),
        None,
    )
    .unwrap();
    home.revoke("bob", &"é".repeat(100_000)).unwrap();
    home.log().verify(&[]).unwrap();
    let good = fs::read(home.log().path()).unwrap();
    assert!(good.len() < 8000);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        assert!(verify(&bad[..], &[]).is_err(), "byte {at}");
    }
    let long = vec![b'{'; 1 << 20];
    assert!(
        verify(&long[..], &[])
            .unwrap_err()
            .to_string()
            .starts_with("line 1: this is no entry")
    );
}

#[test]
fn another_implementation_finds_the_same_chain() {
    let (_folder, home, _) = six();
    let script = r#"
import hashlib, json, sys
prev = "00" * 32
for n, line in enumerate(open(sys.argv[1], encoding="utf-8"), 1):
    entry = json.loads(line)
    sig, hash = entry.pop("sig"), entry.pop("hash")
    text = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert entry["seq"] == n and entry["prev"] == prev and len(sig) == 128
    assert hashlib.sha256(text.encode()).hexdigest() == hash, line
    prev = hash
print(prev)
"#;
    let Ok(output) = Command::new("python3")
        .args(["-c", script])
        .arg(home.log().path())
        .output()
    else {
        eprintln!("skipped: no python3");
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let head = home.log().verify(&[]).unwrap().head.to_string();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap().trim(),
        head.split(':').nth(1).unwrap()
    );
}
