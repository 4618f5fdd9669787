//! Damaged files of a home and damaged requests, from a fixed seed: nothing panics, and nothing damaged passes for whole.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use veil_link::tls::Identity;
use veil_node::control::{Computes, Hello, Proposal, Reply, Request, encode, fuzz_control};
use veil_node::jobs::{State, Status};
use veil_node::meeting::HeldFor;
use veil_node::planner::fuzz_proposal;
use veil_node::{Home, Role, Settings, Time, fuzz_members, fuzz_string, log, policy};
use veil_testkit::{Seed, damaged};

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
delivery = "abort"
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
    let mut numbers = Seed(20_261_120).numbers("a home");
    for _ in 0..3000 {
        for text in [&invitation, &statement] {
            let bad = damaged(text.as_bytes(), &mut numbers);
            let same = bad.eq_ignore_ascii_case(text.as_bytes());
            // White space within a string does not count.
            let blank =
                std::str::from_utf8(&bad).is_ok_and(|bad| bad.contains(char::is_whitespace));
            assert!(same || blank || !fuzz_string(&bad), "{bad:?}");
        }
        let bad = damaged(&written, &mut numbers);
        assert!(
            bad == written || bad.is_empty() || !log::fuzz_log(&bad) || written.starts_with(&bad)
        );
        policy::fuzz_policy(&damaged(POLICY.as_bytes(), &mut numbers));
        fuzz_members(&damaged(&members, &mut numbers));
    }
}

#[test]
fn damaged_requests_and_replies_are_read_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let home = |name: &str| {
        let settings = Settings::new(name, Role::Owner).unwrap();
        Home::create(&folder.path().join(name), &settings).unwrap()
    };
    let (ann, bob) = (home("ann"), home("bob"));
    let invitation = ann.invite("bob", Role::Owner, Duration::from_secs(60));
    let invitation = invitation.unwrap().to_string().parse().unwrap();
    let (_, answer) = bob.join(&invitation).unwrap();
    let status = Status {
        takes: None,
        plan: "0f".repeat(32),
        job: "pay".into(),
        state: State::Running,
        since: Time::now(),
        why: Some("\"why\"\n".into()),
        phase: Some("rows".into()),
        rows: 7,
        of: u64::MAX,
        sent: 1,
        received: 2,
        waits_for: vec!["union".into()],
        held: BTreeMap::from([("ann".into(), HeldFor::Disk)]),
        kept: Some(true),
        trace: None,
    };
    let requests = [
        Request::Hello {},
        Request::Join(answer.to_join()),
        Request::Rotate {
            statement: Box::new(ann.rotate().unwrap()),
        },
        Request::Schedule {
            plan: "0".repeat(64),
        },
        Request::Held {
            plan: "0".repeat(64),
            why: HeldFor::Data,
        },
        Request::Refill {
            plan: "0".repeat(64),
            cells: 1 << 20,
            transfers: true,
            statistical: 40,
            garbles: false,
            generations: vec!["01".repeat(8)],
        },
        Request::Keep {
            plan: "0".repeat(64),
            cells: u64::MAX,
        },
        Request::Propose(Proposal {
            job: "name = \"x\"\n".into(),
            lanes: 3,
            stocked: false,
            files: BTreeMap::from([("adder.txt".into(), "1 2".into())]),
        }),
    ];
    let hello = Reply::Hello(Hello {
        name: "union".into(),
        role: Role::Party,
        version: "1.2.3".into(),
        time: -1,
        knows_you_as: None,
        computes: Some(Computes {
            device: "cuda".into(),
            chunk_rows: BTreeMap::from([("bits".into(), 1 << 18)]),
        }),
    });
    let replies = [
        hello,
        Reply::Jobs { jobs: vec![status] },
        Reply::Schedule {
            schedule: Some("list(2)".into()),
        },
        Reply::Refused { why: "no".into() },
    ];
    let good: Vec<Vec<u8>> = requests
        .iter()
        .map(encode)
        .chain(replies.iter().map(encode))
        .collect();
    assert!(good.iter().all(|bytes| fuzz_control(bytes)));
    let mut numbers = Seed(7).numbers("control");
    let (mut read, mut refused) = (0u32, 0u32);
    for round in 0..20_000 {
        let bad = damaged(&good[round % good.len()], &mut numbers);
        *(if fuzz_control(&bad) {
            &mut read
        } else {
            &mut refused
        }) += 1;
    }
    // Both paths were taken, often.
    assert!(
        read > 500 && refused > 5000,
        "{read} read, {refused} refused"
    );
}

/// A proposal as a planning process reads it, and what damage makes of it.
#[test]
fn damaged_proposals_are_planned_or_refused() {
    let job = r#"version = 1
kind = "circuit"
name = "products"
owners = ["ann"]
parties = ["a", "b", "c"]
recipients = ["eve"]
circuit = { file = "c.txt", rows = 4 }
input = [{ port = "in0", owner = "ann", format = "hex", file = "in.hex" }]
output = [{ port = "out0", to = "eve", format = "hex", file = "out.hex" }]
"#;
    let circuit = "2 4\n1 2\n1 1\n\n2 1 0 1 2 AND\n2 1 2 0 3 AND\n";
    let good = encode(&Request::Propose(Proposal {
        job: job.to_owned(),
        lanes: 1,
        stocked: false,
        files: BTreeMap::from([("c.txt".to_owned(), circuit.to_owned())]),
    }));
    assert!(fuzz_proposal(&good));
    let mut numbers = Seed(11).numbers("proposal");
    let (mut planned, mut refused) = (0u32, 0u32);
    for _ in 0..5000 {
        let bad = damaged(&good, &mut numbers);
        *(if fuzz_proposal(&bad) {
            &mut planned
        } else {
            &mut refused
        }) += 1;
    }
    assert!(
        planned > 10 && refused > 1000,
        "{planned} planned, {refused} refused"
    );
}
