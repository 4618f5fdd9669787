//! A deployment on loopback: three parties, an owner and a recipient, each a process of its own; and what each says
//! when one of them is absent, killed, stopped, or not who it should be.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Folder;
use crate::common::deployment::{PATIENCE, alone};
use crate::common::homes::{NAMES, homes};
use rustix::process::{Pid, Signal, kill_process};
use veil_link::tls::Identity;
use veil_node::{Home, Role, Settings};

/// Seconds without progress after which a participant gives up, where a test waits for that: a machine may stand still for less.
const TIMEOUT: u64 = 10;
/// Seconds for which participants wait for one who does not come, where a test waits for that: the others start meanwhile.
const WAIT: u64 = 10;

/// A job with many rounds, and a home for every participant.
fn deployment() -> Folder {
    let folder = Folder::blocks();
    homes(folder.path(), &NAMES);
    folder
}

struct Player {
    name: &'static str,
    process: Child,
    said: thread::JoinHandle<String>,
}

/// How a test wants the participants.
#[derive(Clone, Copy)]
struct How {
    timeout: u64,
    wait: u64,
}

const HOW: How = How {
    timeout: PATIENCE,
    wait: PATIENCE,
};

/// Starts a participant; `connected` hears of it when it is connected.
fn start(
    folder: &Folder,
    name: &'static str,
    job: &str,
    how: How,
    connected: &std::sync::mpsc::Sender<()>,
) -> Player {
    let mut process = Command::new(crate::PROGRAM)
        // Rounds that take long enough to be killed in.
        .args(["party", job, "--home", name, "--out", "out", "--yes"])
        .args(["--net", "wan", "--timeout", &how.timeout.to_string()])
        .args(["--wait", &how.wait.to_string()])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(process.stderr.take().unwrap());
    let connected = connected.clone();
    let said = thread::spawn(move || {
        let mut said = String::new();
        while errors.read_line(&mut said).unwrap() > 0 {
            if said
                .lines()
                .last()
                .is_some_and(|line| line.starts_with("connected as"))
            {
                let _ = connected.send(());
                break;
            }
        }
        errors.read_to_string(&mut said).unwrap();
        said
    });
    Player {
        name,
        process,
        said,
    }
}

fn start_all(
    folder: &Folder,
    names: &[&'static str],
    how: How,
) -> (Vec<Player>, std::sync::mpsc::Receiver<()>) {
    let (sender, connected) = std::sync::mpsc::channel();
    (
        names
            .iter()
            .map(|name| start(folder, name, "job.toml", how, &sender))
            .collect(),
        connected,
    )
}

/// Waits for all but `except`, and gives who ended how.
fn finish(players: Vec<Player>, except: Option<&str>) -> Vec<(&'static str, Option<i32>, String)> {
    let until = Instant::now() + Duration::from_secs(PATIENCE);
    let mut ends = Vec::new();
    for mut player in players {
        if Some(player.name) == except {
            // It was killed, or hangs because it was stopped.
            let _ = player.process.kill();
            player.process.wait().unwrap();
            continue;
        }
        let status = loop {
            match player.process.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() > until => {
                    player.process.kill().unwrap();
                    panic!("{} still runs", player.name);
                }
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        ends.push((player.name, status.code(), player.said.join().unwrap()));
    }
    ends
}

fn wait_for_all(connected: &std::sync::mpsc::Receiver<()>, count: usize) {
    for _ in 0..count {
        connected
            .recv_timeout(Duration::from_secs(PATIENCE))
            .expect("all participants connect");
    }
}

#[test]
fn a_deployment_computes() {
    use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
    let _alone = alone();
    let folder = deployment();
    let (players, _connected) = start_all(&folder, &NAMES, HOW);
    for (name, code, said) in finish(players, None) {
        assert_eq!(code, Some(0), "{name}: {said}");
    }
    let cipher = aes::Aes128::new(&Array::from(std::array::from_fn::<u8, 16, _>(|i| i as u8)));
    let expected: Vec<u8> = (0..4096u128)
        .flat_map(|counter| {
            let mut block = Array::from(counter.to_be_bytes());
            cipher.encrypt_block(&mut block);
            block
        })
        .collect();
    assert!(std::fs::read(folder.at("out/blocks")).unwrap() == expected);
}

/// All but `victim` must end by themselves with a clear error and without a result.
fn crash(victim: &'static str, after: Duration, signal: Signal) {
    let _alone = alone();
    let folder = deployment();
    // When the victim falls, rows are left to compute.
    folder.replace("job.toml", "rows = 4096", "rows = 65536");
    let timeout = if signal == Signal::STOP {
        TIMEOUT
    } else {
        PATIENCE
    };
    let (players, connected) = start_all(&folder, &NAMES, How { timeout, ..HOW });
    wait_for_all(&connected, NAMES.len());
    thread::sleep(after);
    let crashed = players.iter().find(|player| player.name == victim).unwrap();
    kill_process(Pid::from_child(&crashed.process), signal).unwrap();
    let ends = finish(players, Some(victim));
    for (name, code, said) in &ends {
        // An owner that has sent everything is done.
        if *name == "ann" && *code == Some(0) {
            continue;
        }
        assert_eq!(
            *code,
            Some(5),
            "{victim} fell after {after:?}, and {name} said: {said}"
        );
        let clear = [
            "the connection ended",
            "gave up the run",
            "nothing happened for",
            "has not taken",
        ];
        assert!(
            clear.iter().any(|part| said.contains(part)),
            "{name}: {said}"
        );
    }
    let number = NAMES.iter().position(|name| *name == victim).unwrap();
    let numbered = if number < 3 {
        format!("party {number} is `{victim}`")
    } else {
        format!("is `{victim}`")
    };
    assert!(
        ends.iter().any(|(_, _, said)| said.contains(&numbered)),
        "no participant names {victim}: {ends:?}"
    );
    if victim != "eve" {
        assert!(
            !folder.at("out").exists(),
            "half a result after the fall of {victim}"
        );
    }
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_party_is_killed_at_the_start() {
    crash("b", Duration::ZERO, Signal::KILL);
}

#[test]
fn a_party_is_killed_in_the_middle() {
    crash("a", Duration::from_millis(700), Signal::KILL);
}

#[test]
fn a_party_is_killed_late() {
    crash("c", Duration::from_millis(1600), Signal::KILL);
}

#[test]
fn a_recipient_is_killed() {
    crash("eve", Duration::from_millis(500), Signal::KILL);
}

#[test]
fn an_owner_is_killed() {
    crash("ann", Duration::from_millis(20), Signal::KILL);
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_party_hangs() {
    crash("b", Duration::from_millis(500), Signal::STOP);
}

#[test]
fn a_party_is_told_to_stop() {
    let _alone = alone();
    let folder = deployment();
    folder.replace("job.toml", "rows = 4096", "rows = 65536");
    let (players, connected) = start_all(&folder, &NAMES, HOW);
    wait_for_all(&connected, NAMES.len());
    thread::sleep(Duration::from_millis(300));
    let told = players.iter().find(|player| player.name == "c").unwrap();
    kill_process(Pid::from_child(&told.process), Signal::TERM).unwrap();
    for (name, code, said) in finish(players, None) {
        if name == "c" {
            assert_eq!(code, Some(1), "{said}");
            assert!(said.contains("stopped by a signal"), "{said}");
        } else if name != "ann" {
            assert_eq!(code, Some(5), "{name}: {said}");
        }
    }
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_participant_does_not_come() {
    let folder = deployment();
    let how = How { wait: WAIT, ..HOW };
    let (players, _connected) = start_all(&folder, &["a", "b", "c", "eve"], how);
    for (name, code, said) in finish(players, None) {
        assert_eq!(code, Some(5), "{name}: {said}");
        if name != "eve" {
            assert!(
                said.contains("waiting for owner `ann`") && said.contains(" s (10 s at most)"),
                "{name}: {said}"
            );
        }
    }
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_key_is_another_than_the_pinned_one() {
    let folder = deployment();
    std::fs::remove_file(folder.at("b/identity.key")).unwrap();
    let other = Identity::generate().unwrap();
    other.save(&folder.at("b/identity.key")).unwrap();
    let how = How { wait: WAIT, ..HOW };
    let (players, _connected) = start_all(&folder, &NAMES, how);
    let ends = finish(players, None);
    for (name, code, said) in &ends {
        // A participant that calls after the false one has given up finds no listener.
        assert!(matches!(code, Some(4 | 5)), "{name}: {said}");
    }
    let shown = |said: &str| {
        said.contains("shows the key") && said.contains("pinned") && said.contains("party 1 is `b`")
    };
    let refused =
        |said: &str| said.contains("does not accept our key") && said.contains("must pin");
    assert!(
        ends.iter()
            .any(|(_, code, said)| *code == Some(4) && (shown(said) || refused(said))),
        "{ends:?}"
    );
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn jobs_differ() {
    let folder = deployment();
    let job = std::fs::read_to_string(folder.at("job.toml")).unwrap();
    folder.write("other.toml", job.replace("rows = 4096", "rows = 4095"));
    let how = How { wait: WAIT, ..HOW };
    let (sender, _connected) = std::sync::mpsc::channel();
    let job = |name| {
        if name == "b" {
            "other.toml"
        } else {
            "job.toml"
        }
    };
    let players = NAMES.map(|name| start(&folder, name, job(name), how, &sender));
    let players = Vec::from(players);
    let ends = finish(players, None);
    for (name, code, said) in &ends {
        assert!(matches!(code, Some(3 | 5)), "{name}: {said}");
    }
    assert!(
        ends.iter().any(|(_, code, said)| *code == Some(3)
            && said.contains("runs plan")
            && said.contains("must be the same")),
        "{ends:?}"
    );
}

#[test]
fn what_keeps_a_participant_from_taking_part_is_said_before_a_party_is_called() {
    let folder = deployment();
    let party = |home: &str, more: &str| format!("party job.toml --home {home} --out out {more}");
    folder.fail(
        &party("nowhere", "--yes"),
        3,
        &["nowhere is no home", "veil init"],
    );
    folder.fail(
        &party("b", ""),
        3,
        &["waits for approval", "veil approve", "--yes"],
    );
    let stranger = Settings::new("bob", Role::Owner).unwrap();
    let bob = Home::create(&folder.at("bob"), &stranger).unwrap();
    folder.fail(
        &party("bob", "--yes"),
        3,
        &[
            "`bob` has no part in the job",
            "`a`, `b`, `c`, `ann`, `eve`",
        ],
    );
    drop(bob);
    let ann = Home::open(&folder.at("ann")).unwrap();
    ann.revoke("c", "moved away").unwrap();
    folder.fail(
        &party("ann", "--yes"),
        3,
        &[
            "party 2 of the job, `c`, is no member here",
            "veil invite c",
        ],
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("--yes --listen {}", taken.local_addr().unwrap());
    folder.fail(
        &party("b", &listen),
        5,
        &["cannot listen on", "the port is in use", "ss -ltnp"],
    );
}
