//! What a party reads is what its own operator binds, whatever the job of another member says.

use crate::common;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use crate::common::Folder;
use crate::common::deployment::{
    PATIENT, Place, Service, alone, approve, at, end, states, submit, succeed, take_part, wait,
};
use crate::common::homes::{NAMES, homes};
use veil_node::control::{self, Proposal, Reply, Request};
use veil_node::{Home, Member};

/// A job in which the party `a` supplies a value of 32 bytes, which `eve` gets; `said` stands where the input says where it is.
fn job(said: &str) -> String {
    format!(
        "version = 1\nkind = \"circuit\"\nname = \"theft\"\nowners = [\"a\", \"ann\"]\nparties = [\"a\", \"b\", \"c\"]\n\
         recipients = [\"eve\"]\ncircuit = {{ file = \"xor.txt\", rows = 1 }}\n\
         input = [{{ port = \"in0\", owner = \"a\", format = \"binary\"{said} }},\n         {{ port = \"in1\", owner = \"ann\", format = \"binary\" }}]\n\
         output = [{{ port = \"out0\", to = \"eve\", format = \"binary\", file = \"loot\" }}]\n"
    )
}

/// 256 gates in Bristol Fashion.
fn circuit() -> String {
    let gates = (0..256).map(|i| format!("2 1 {i} {} {} XOR\n", 256 + i, 512 + i));
    format!("256 768\n2 256 256\n1 256\n\n{}", gates.collect::<String>())
}

/// Homes, and what eve steals or is given.
fn world() -> Folder {
    let folder = Folder::new();
    homes(folder.path(), &NAMES);
    folder.write("xor.txt", circuit());
    folder.write("secret.key", "0123456789abcdef0123456789ABCDEF");
    folder.write("own.bin", "this is what the operator binds.");
    folder.write("zero.bin", "\0".repeat(32));
    folder
}

/// What the party says to a proposal that no command would make.
fn propose(folder: &Folder, text: &str, files: &[(&str, &str)]) -> Reply {
    let eve = Home::open(&folder.at("eve")).unwrap();
    let a: Member = eve.members().by_name("a").unwrap().clone();
    let files = files.iter();
    let proposal = Proposal {
        job: text.to_owned(),
        lanes: 1,
        stocked: false,
        files: files
            .map(|&(name, text)| (name.to_owned(), text.to_owned()))
            .collect(),
    };
    let until = Instant::now() + std::time::Duration::from_secs(60);
    control::ask(&eve.identity(), &a, &Request::Propose(proposal), until).unwrap()
}

fn refused(folder: &Folder, text: &str, files: &[(&str, &str)]) -> String {
    match propose(folder, text, files) {
        Reply::Refused { why } => why,
        reply => panic!("{reply:?}"),
    }
}

/// The owner and the recipient take part: what the recipient gets.
fn loot(folder: &Folder) -> String {
    folder.write("job.toml", job(""));
    folder.succeed("approve job.toml --data ann:in1=zero.bin --yes --home ann");
    for child in ["ann", "eve"].map(|name| take_part(folder, "job.toml", name)) {
        let (code, said) = end(child);
        assert_eq!(code, Some(0), "{said}");
    }
    fs::read_to_string(folder.at("out-job.toml/loot")).unwrap()
}

/// Cases S1 and S2: the member gets what the operator bound, after an approval and with `--yes`, and nothing else of the machine.
#[test]
fn a_member_does_not_choose_which_file_of_a_party_is_read() {
    let _alone = alone();
    let folder = world();
    let start = |name: &&str, more| Service::start(folder.path(), name, more);
    let services: Vec<Service> = NAMES[..3].iter().map(|name| start(name, &[])).collect();
    let key = folder.at("secret.key").display().to_string();
    let outside = [
        key.as_str(),
        "../secret.key",
        "/etc/passwd",
        "/proc/self/environ",
        "/dev/zero",
    ];
    for path in outside {
        // As data, and as the circuit.
        let why = refused(
            &folder,
            &job(&format!(", file = \"{path}\"")),
            &[("xor.txt", &circuit())],
        );
        assert!(
            why.starts_with("the job file:8:65: `file` leads out of the folder of the job"),
            "{why}"
        );
        let text = job("").replace("xor.txt", path);
        let why = refused(&folder, &text, &[]);
        assert!(
            why.starts_with("the job file:7:20: `file` under [circuit] is no plain name"),
            "{why}"
        );
    }
    let why = refused(&folder, &job(""), &[]);
    assert!(
        why.contains("the file `xor.txt` was not sent along"),
        "{why}"
    );
    let why = refused(&folder, &job(""), &[("xor.txt", &circuit()), ("more", "x")]);
    assert!(
        why.contains("the file `more` was sent along, and the job does not name it"),
        "{why}"
    );
    let why = refused(
        &folder,
        &job("").replace(", rows = 1", ""),
        &[("xor.txt", &circuit())],
    );
    assert!(why.contains("a proposed job declares `rows"), "{why}");

    // A plain name is no path here either: neither in the home nor where the service runs.
    let named = job(", file = \"identity.key\"");
    let Reply::Pending { plan } = propose(&folder, &named, &[("xor.txt", &circuit())]) else {
        panic!("it is refused");
    };
    let other = job(", file = \"own.bin\"");
    assert!(matches!(
        propose(&folder, &other, &[("xor.txt", &circuit())]),
        Reply::Pending { .. }
    ));
    let filed = folder.at("a").join("jobs").join(&plan);
    assert_eq!(fs::read_to_string(filed.join("job.toml")).unwrap(), named);
    // The operator that approves says where the data are.
    let digits = &plan[..16];
    folder.fail(
        &format!("approve {digits} --yes --home a"),
        3,
        &[
            "the job asks for data of `a`, and no `--data` says where they are",
            &format!("veil approve {digits} --data a:in0=FILE"),
        ],
    );
    let shown = folder.veil(&format!(
        "approve {digits} --data a:in0=./own.bin --yes --home a"
    ));
    let said = common::text(&shown.stderr);
    let own = folder.at("own.bin").canonicalize().unwrap();
    let reads = format!("reads: `a`'s `in0` from {}, 32 bytes", own.display());
    assert!(said.contains(&reads), "{said}");
    folder.write("job.toml", job(""));
    assert_eq!(submit(&folder, "job.toml").0, plan);
    for name in ["b", "c"] {
        approve(&Home::open(&folder.at(name)).unwrap(), &plan);
    }
    assert_eq!(loot(&folder), "this is what the operator binds.");
    // What was read is in the log of the party that read it.
    let log = fs::read_to_string(folder.at("a/log.jsonl")).unwrap();
    let line = log
        .lines()
        .find(|line| line.contains("\"data_read\""))
        .unwrap();
    let digest = sha256(&own);
    for part in [
        "\"what\":\"in0\"",
        "\"bytes\":32",
        &digest,
        "\"approved_sha256\":null",
    ] {
        assert!(line.contains(part), "{line}\n{part}");
    }
    folder.succeed("log verify --home a");
    drop(services);
}

/// The same where no operator is asked: the job waits until its data are bound, here for all jobs like it.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn what_runs_unasked_reads_what_the_settings_bind() {
    let _alone = alone();
    let folder = world();
    let settings = folder.at("a/veil.toml");
    let before = fs::read_to_string(&settings).unwrap();
    let start = |name: &&str| Service::start(folder.path(), name, &["--yes"]);
    let mut services: Vec<Service> = NAMES[..3].iter().map(start).collect();
    let text = job(", file = \"identity.key\"");
    let Reply::Accepted { plan } = propose(&folder, &text, &[("xor.txt", &circuit())]) else {
        panic!("it is not accepted");
    };
    wait("it is held", || {
        at(&folder, "eve", "a", &plan).unwrap().state == "pending"
    });
    let why = at(&folder, "eve", "a", &plan).unwrap().why;
    assert!(why.contains("its operator reads why"), "{why}");
    let own = folder.succeed("jobs --home a");
    let says = format!(
        "its own data are not bound: `veil approve {} --data a:in0=FILE`",
        &plan[..16]
    );
    assert!(own.contains(&says), "{own}");
    let file = folder.at("own.bin").display().to_string();
    let bound =
        format!("{before}\n[[data]]\nwhat = \"in0\"\nfile = \"{file}\"\njobs = [\"th*\"]\n");
    fs::write(&settings, bound).unwrap();
    services.remove(0).stop();
    services.insert(0, start(&NAMES[0]));
    folder.write("job.toml", job(""));
    assert_eq!(submit(&folder, "job.toml").0, plan);
    assert_eq!(loot(&folder), "this is what the operator binds.");
    drop(services);
}

/// Case S8: an approval is for one run unless its giver says how many, at parties, owners and recipients alike, whichever of them asks again.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn what_was_approved_once_runs_once() {
    let _alone = alone();
    let folder = Folder::blocks();
    homes(folder.path(), &NAMES);
    let start = |name: &&str| Service::start(folder.path(), name, &[]);
    let services: Vec<Service> = NAMES[..3].iter().map(start).collect();
    let (plan, said) = submit(&folder, "job.toml");
    assert_eq!(said, ["pending"; 3]);
    let digits = &plan[..16];
    let approve = |more: &str| {
        for (what, name) in [
            (digits, "a"),
            (digits, "b"),
            (digits, "c"),
            ("job.toml", "ann"),
            ("job.toml", "eve"),
        ] {
            let approved = folder.veil(&format!("approve {what} --home {name} --yes {more}"));
            let said = common::text(&approved.stderr);
            assert!(approved.status.success(), "{said}");
            let term = if more.is_empty() { "one run" } else { "2 runs" };
            assert!(
                said.contains(&format!("approved for {term}: ")),
                "{name}: {said}"
            );
        }
    };
    let run = || {
        let part = |name: &str| {
            Place::HERE
                .veil(folder.path())
                .args(["party", "job.toml", "--home", name, "--out", "out"])
                .args(PATIENT)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        for child in ["ann", "eve"].map(part) {
            succeed(child);
        }
        wait("done", || states(&folder, &plan) == ["done"; 3]);
        fs::remove_dir_all(folder.at("out")).unwrap();
    };
    let used = |by: &str| {
        let (again, said) = submit(&folder, "job.toml");
        assert_eq!((&again, said), (&plan, vec!["pending".to_owned(); 3]));
        assert_eq!(
            at(&folder, "eve", "a", &plan).unwrap().why,
            "it waits for approval at this party"
        );
        let own = at(&folder, "a", "a", &plan).unwrap().why;
        assert!(
            own.starts_with("waits for approval: the approval of 20"),
            "{own}"
        );
        assert!(own.contains(&format!(" was for {by} used; ")), "{own}");
        for name in ["ann", "eve"] {
            let why = format!(" was for {by} used");
            let party = format!("party job.toml --home {name} --out out");
            folder.fail(&party, 3, &["the job may not run here", &why]);
        }
    };
    approve("");
    run();
    used("one run, and is");
    approve("--runs 2");
    run();
    let (_, said) = submit(&folder, "job.toml");
    assert_eq!(said, ["accepted"; 3]);
    run();
    used("2 runs, and are");
    drop(services);
}

fn sha256(file: &Path) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(fs::read(file).unwrap());
    digest
        .iter()
        .fold(String::new(), |all, byte| all + &format!("{byte:02x}"))
}
