//! The whole way of an operator who has read `docs/deployment.md` and `docs/membership.md`: six empty folders, the commands
//! that are printed there, and results that are compared with the cleartext.

use crate::common;
use std::fmt::Write;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::deployment::PATIENCE;
use crate::common::homes::free;
use crate::common::{Folder, text};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sha2::{Digest, Sha256};

const PARTIES: [&str; 3] = ["union", "university", "trustee"];
const OTHERS: [(&str, &str); 3] = [
    ("mill", "owner"),
    ("office", "owner"),
    ("press", "recipient"),
];
const ROWS: usize = 40;

const JOB: &str = r#"version = 1
kind = "stats"
name = "pay by sex"
owners = ["mill", "office"]
parties = ["union", "university", "trustee"]
recipients = ["press"]
column = [{ name = "pay", type = "decimal", scale = 2, min = 0, max = "9999.99" },
          { name = "sex", type = "category", values = ["f", "m"] }]
block = [{ name = "north", rows = 40, holds = { mill = ["pay"], office = ["sex"] },
           files = { mill = "pay.csv", office = "people.csv" }, align = { column = "id", every = 16 } }]
analysis = [{ name = "pay", kind = "mean", of = "pay", by = "sex", to = "press" }]
"#;

const POLICY: &str = r#"version = 1

[[rule]]
name = "pay statistics"
decision = "allow"
asked_by = ["press", "mill"]
operations = ["count", "sum", "mean"]
columns = ["pay", "sex"]
to = ["press"]
min_rows = 30
"#;

/// What the mill pays, in cents, and to whom.
fn row(n: usize) -> (i64, &'static str) {
    let sex = if n.is_multiple_of(3) { "f" } else { "m" };
    (210_050 + 1775 * n as i64, sex)
}

/// A party's service, ended when it is dropped.
struct Service(Child);

impl Service {
    fn start(folder: &Folder, name: &str) -> Self {
        let log = std::fs::File::create(folder.at(&format!("{name}.said"))).unwrap();
        let process = Command::new(crate::PROGRAM)
            .args(["serve", "--home", name])
            .current_dir(folder.path())
            .stderr(log)
            .spawn()
            .unwrap();
        let service = Service(process);
        let said = || std::fs::read_to_string(folder.at(&format!("{name}.said"))).unwrap();
        wait(&|| said(), || said().contains("listening on"));
        service
    }

    fn stop(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // One that was stopped is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait(what: &dyn Fn() -> String, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(PATIENCE);
    while !done() {
        assert!(Instant::now() < until, "waited in vain: {}", what());
        thread::sleep(Duration::from_millis(50));
    }
}

/// Runs `veil` at a home: its exit code, what it printed, and what it said.
fn at(folder: &Folder, home: &str, arguments: &str) -> (Option<i32>, String, String) {
    let output = folder.veil(&format!("{arguments} --home {home}"));
    let said = text(&output.stderr);
    (output.status.code(), text(&output.stdout), said)
}

/// The same, and it must succeed: what it printed.
fn good(folder: &Folder, home: &str, arguments: &str) -> String {
    let (code, printed, said) = at(folder, home, arguments);
    assert_eq!(code, Some(0), "{home}: veil {arguments}: {printed}{said}");
    printed
}

/// The same in the background.
fn begin(folder: &Folder, home: &str, arguments: &str) -> Child {
    Command::new(crate::PROGRAM)
        .args(arguments.split_whitespace())
        .args(["--home", home])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn end(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (
        output.status.code(),
        text(&output.stdout) + &text(&output.stderr),
    )
}

/// The homes of all participants, and the tables of the owners.
fn homes() -> Folder {
    let folder = Folder::new();
    folder.write("job.toml", JOB);
    let [mut pay, mut people, mut mixed] = ["id,pay\n", "sex,id\n", "sex,id\n"].map(str::to_owned);
    for n in 0..ROWS {
        let (cents, sex) = row(n);
        let _ = writeln!(pay, "p{n:03},{}.{:02}", cents / 100, cents % 100);
        let _ = writeln!(people, "{sex},p{n:03}");
        // Rows 20 and 21 change places.
        let other = match n {
            19 => 20,
            20 => 19,
            n => n,
        };
        let _ = writeln!(mixed, "{},p{other:03}", row(other).1);
    }
    folder.write("pay.csv", pay);
    folder.write("people.csv", people);
    folder.write("mixed.csv", mixed);
    for (name, port) in PARTIES.iter().zip(free(3)) {
        let arguments = format!("init {name} --role party --listen {port} --address {port}");
        assert!(good(&folder, name, &arguments).starts_with("vw1:"));
    }
    for (name, role) in OTHERS {
        good(&folder, name, &format!("init {name} --role {role}"));
    }
    folder
}

/// `one` invites `other`, whom its running service takes in.
fn pair(folder: &Folder, one: &str, other: &str, role: &str) {
    let invitation = good(folder, one, &format!("invite {other} --role {role}"));
    let (code, printed, said) = at(folder, other, &format!("join {}", invitation.trim()));
    assert_eq!((code, printed.as_str()), (Some(0), ""), "{said}");
    assert!(said.contains("nothing is left to do"), "{said}");
}

/// Pairs all that must know each other: one pair by the answer, before any service listens.
fn members(folder: &Folder) -> Vec<Service> {
    let invitation = good(folder, "union", "invite university --role party");
    let (code, answer, said) = at(folder, "university", &format!("join {}", invitation.trim()));
    assert_eq!(code, Some(0), "{said}");
    assert!(
        answer.starts_with("veil2-") && said.contains("send the string above to `union`"),
        "{answer}{said}"
    );
    good(folder, "union", &format!("join {}", answer.trim()));
    let services = PARTIES.map(|name| Service::start(folder, name));
    pair(folder, "union", "trustee", "party");
    pair(folder, "university", "trustee", "party");
    for party in PARTIES {
        for (name, role) in OTHERS {
            pair(folder, party, name, role);
        }
    }
    services.into()
}

/// Every participant is well, and one that is not is named with what to do.
fn doctor(folder: &Folder, services: &mut Vec<Service>) {
    for name in PARTIES {
        let said = good(folder, name, "doctor");
        let reached = said.matches("reachable, its key is the pinned one").count();
        let silent = said.matches("calls us; it is never called").count();
        assert_eq!((reached, silent), (2, 3), "{said}");
        assert!(said.contains("our own service answers"), "{said}");
    }
    for (name, _) in OTHERS {
        let said = good(folder, name, "doctor");
        assert_eq!(said.matches("its key is the pinned one").count(), 3);
    }
    let members = std::fs::read_to_string(folder.at("press/members.toml")).unwrap();
    let [union, mill] = ["union", "mill"].map(|name| good(folder, name, "identity show"));
    folder.replace("press/members.toml", union.trim(), mill.trim());
    let (code, printed, said) = at(folder, "press", "doctor");
    assert_eq!(code, Some(1), "{said}");
    for part in [
        "member union",
        union.trim(),
        mill.trim(),
        "take its statement with `veil join`",
    ] {
        assert!(printed.contains(part), "no {part} in {printed}");
    }
    folder.write("press/members.toml", members);

    services.pop().unwrap().stop();
    let (code, printed, said) = at(folder, "mill", "doctor");
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("member trustee") && said.contains("ask its operator whether it runs"),
        "{said}"
    );
    assert_eq!(printed.matches("its key is the pinned one").count(), 2);
    // The others are shown all the same.
    let (code, printed, said) = at(folder, "mill", "jobs --wait 8");
    assert_eq!(code, Some(5), "{said}");
    assert!(
        printed.contains("union:\n  no jobs") && printed.contains("university:\n  no jobs"),
        "{printed}"
    );
    assert!(
        said.contains("trustee") && said.contains("veil doctor"),
        "{said}"
    );
    services.push(Service::start(folder, "trustee"));
}

/// The owners' common key, and their tables looked at.
fn tables(folder: &Folder) {
    let made = folder.succeed("data key new mill.align");
    folder.fail("data key new mill.align", 3, &["never overwritten"]);
    let key = folder.succeed("data key show mill.align");
    let imported = common::veil()
        .args(["data", "key", "import", "office.align"])
        .current_dir(folder.path())
        .write_stdin(key)
        .output()
        .unwrap();
    assert_eq!(text(&imported.stdout), made, "the fingerprints agree");
    for owner in ["mill", "office"] {
        let check = format!("data check job.toml --owner {owner} --align-key {owner}.align");
        assert!(folder.succeed(&check).contains("40 rows"));
    }
}

/// Owners and the recipient take part.
fn take_part(folder: &Folder, people: &str, out: &str) -> [(Option<i32>, String); 3] {
    let owner = format!("party job.toml --wait {PATIENCE} --align-key");
    let mill = begin(folder, "mill", &format!("{owner} mill.align"));
    let data = format!("{owner} office.align --data office:north={people}");
    let office = begin(folder, "office", &data);
    let press = format!("party job.toml --wait {PATIENCE} --out {out}");
    let press = begin(folder, "press", &press);
    [mill, office, press].map(end)
}

fn all_good(ends: impl IntoIterator<Item = (Option<i32>, String)>) {
    for (code, said) in ends {
        assert_eq!(code, Some(0), "{said}");
    }
}

/// Consent in each of its forms, and the first run.
fn first_run(folder: &Folder) -> String {
    // One party answers by a standing rule.
    folder.write("trustee/policy.toml", POLICY);
    let (code, _, said) = at(folder, "mill", "party job.toml --align-key mill.align");
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("veil approve JOB"), "{said}");
    for (name, _) in OTHERS {
        let shown = good(folder, name, "approve job.toml --yes");
        assert!(shown.contains("to: press"), "{shown}");
    }
    let said = good(folder, "press", "submit job.toml --json");
    let said: Value = serde_json::from_str(&said).unwrap();
    let replies = [0, 1, 2].map(|n| said[n]["reply"].as_str().unwrap());
    assert_eq!(replies, ["pending", "pending", "accepted"]);
    let plan = said[0]["plan"].as_str().unwrap().to_owned();
    // One party approves what was proposed, one its own copy of the job.
    let shown = good(folder, "union", &format!("approve {} --yes", &plan[..16]));
    assert!(shown.contains("to: press"), "{shown}");
    good(folder, "university", "approve job.toml --yes");
    let watch = begin(folder, "press", "submit job.toml --watch");
    all_good(take_part(folder, "people.csv", "results"));
    let (code, said) = end(watch);
    assert_eq!(code, Some(0), "{said}");
    for party in PARTIES {
        assert!(said.contains(&format!("{party}: done")), "{said}");
    }
    plan
}

/// The result is what the cleartext says, and the receipt says what it is of.
fn results(folder: &Folder, out: &str, plan: &str) {
    let result = std::fs::read_to_string(folder.at(&format!("{out}/result.json"))).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    for sex in ["f", "m"] {
        let mine = (0..ROWS).map(row).filter(|row| row.1 == sex);
        let (sum, count) = mine.fold((0, 0), |(sum, count), row| (sum + row.0, count + 1));
        let mean = sum as f64 / f64::from(count) / 100.0;
        let found = result.to_string();
        assert!(found.contains(&format!("{mean}")), "{mean} in {found}");
    }
    let receipt = std::fs::read_to_string(folder.at(&format!("{out}/receipt.json"))).unwrap();
    let receipt: Value = serde_json::from_str(&receipt).unwrap();
    assert_eq!(receipt["plan"], plan);
    assert_eq!(
        (&receipt["local"], &receipt["recipient"], &receipt["rows"]),
        (&false.into(), &"press".into(), &ROWS.into())
    );
    for party in PARTIES {
        let print = good(folder, party, "identity show");
        let all = receipt["participants"].as_array().unwrap();
        let mine = all.iter().find(|p| p["name"] == party).unwrap();
        assert_eq!(mine["fingerprint"], print.trim());
    }
    let files = receipt["files"].as_array().unwrap();
    assert_eq!(files.len(), 4);
    for file in files {
        let name = file["name"].as_str().unwrap();
        let bytes = std::fs::read(folder.at(&format!("{out}/{name}"))).unwrap();
        let hash = Sha256::digest(&bytes)
            .iter()
            .fold(String::new(), |all, byte| all + &format!("{byte:02x}"));
        assert_eq!(
            (&file["bytes"], &file["sha256"]),
            (&bytes.len().into(), &hash.into())
        );
    }
    let trace = receipt["trace"].as_str().unwrap();
    for home in PARTIES.into_iter().chain(OTHERS.map(|other| other.0)) {
        let log = std::fs::read_to_string(folder.at(&format!("{home}/log.jsonl"))).unwrap();
        assert!(log.contains(trace), "{home}: {log}");
    }
}

/// Every participant that was asked is asked again, for one more run; the trustee has a rule.
fn approve_again(folder: &Folder, plan: &str) {
    let (_, _, said) = at(folder, "mill", "party job.toml --align-key mill.align");
    assert!(said.contains("was for one run, and is used"), "{said}");
    for (name, _) in OTHERS {
        good(folder, name, "approve job.toml --yes");
    }
    good(folder, "union", &format!("approve {} --yes", &plan[..16]));
    good(folder, "university", "approve job.toml --yes");
}

/// Rows of one owner are in another order: nothing is computed, and both owners know where. The next run needs no new approval for that.
fn disorder(folder: &Folder) {
    let mut watch = begin(folder, "mill", "submit job.toml --watch");
    thread::sleep(Duration::from_secs(1));
    // The run before is none of this one.
    assert!(watch.try_wait().unwrap().is_none());
    let [mill, office, press] = take_part(folder, "mixed.csv", "nothing");
    for (code, said) in [mill, office] {
        assert_eq!(code, Some(3), "{said}");
        assert!(
            said.contains("north") && said.contains("17 and 32"),
            "{said}"
        );
    }
    assert_eq!(press.0, Some(5), "{}", press.1);
    assert!(!folder.at("nothing").exists());
    let (code, said) = end(watch);
    assert_eq!(code, Some(5), "{said}");
    // Where, only the owners know.
    let jobs = good(folder, "press", "jobs");
    assert!(
        jobs.contains("in different orders") && !jobs.contains("17 and"),
        "{jobs}"
    );
}

/// New keys of an owner and of a party, while services run.
fn rotate(folder: &Folder, plan: &str) {
    let (code, _, said) = at(folder, "mill", "identity rotate");
    assert_eq!(code, Some(0), "{said}");
    for party in PARTIES {
        assert!(
            said.contains(&format!("`{party}` took the new key")),
            "{said}"
        );
    }
    let (code, statement, said) = at(folder, "university", "identity rotate");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("shows the new key"), "{said}");
    for party in ["union", "trustee"] {
        assert!(
            said.contains(&format!("`{party}` took the new key")),
            "{said}"
        );
    }
    for (name, _) in OTHERS {
        good(folder, name, &format!("join {}", statement.trim()));
        good(folder, name, "doctor");
    }
    let watch = begin(folder, "press", "submit job.toml --watch");
    all_good(take_part(folder, "people.csv", "again"));
    all_good([end(watch)]);
    results(folder, "again", plan);
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn the_whole_way() {
    let folder = homes();
    let mut services = members(&folder);
    doctor(&folder, &mut services);
    tables(&folder);
    let plan = first_run(&folder);
    results(&folder, "results", &plan);
    for home in ["mill", "press", "union"] {
        let jobs = good(&folder, home, "jobs");
        assert!(
            jobs.contains(&plan[..16]) && jobs.contains("done"),
            "{jobs}"
        );
    }
    approve_again(&folder, &plan);
    disorder(&folder);
    rotate(&folder, &plan);
    good(&folder, "union", "members revoke press --reason gone");
    let out = || at(&folder, "press", "jobs --at union");
    wait(&|| out().2, || out().0 == Some(4));
    assert!(out().2.contains("does not accept our key"), "{}", out().2);
    for home in PARTIES.into_iter().chain(OTHERS.map(|other| other.0)) {
        let said = good(&folder, home, "log verify");
        assert!(said.contains("each as it was written"), "{said}");
    }
    services.into_iter().for_each(Service::stop);
}
