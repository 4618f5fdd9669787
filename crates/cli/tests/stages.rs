//! Durable jobs, kept and loaded columns in a deployment: three services on loopback, an owner and a recipient.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod common;

use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use common::Folder;
use common::homes::{NAMES, homes};

/// One deployment at a time: five processes are enough for a small machine.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    // Another test that failed is no reason to fail.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process that ends with the test.
struct Process(Child);

impl Process {
    fn start(folder: &Folder, said: &str, arguments: &str) -> Self {
        let mut file = std::fs::File::options();
        let file = file
            .create(true)
            .append(true)
            .open(folder.at(said))
            .unwrap();
        let child = Command::new(assert_cmd::cargo::cargo_bin!("veil"))
            .args(arguments.split_whitespace())
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn();
        Process(child.unwrap())
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    fn end(&mut self) -> Option<i32> {
        let until = Instant::now() + Duration::from_secs(90);
        loop {
            match self.0.try_wait().unwrap() {
                Some(status) => return status.code(),
                None if Instant::now() > until => panic!("it does not end"),
                None => thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(folder: &Folder, name: &str) -> Process {
    let said = format!("{name}.log");
    let before = read(folder, &said).matches("\"serving\"").count();
    let arguments = format!("serve --home {name} --yes --log json --wait 60 --timeout 10");
    let process = Process::start(folder, &said, &arguments);
    wait(name, || {
        read(folder, &said).matches("\"serving\"").count() > before
    });
    process
}

fn take_part(folder: &Folder, job: &str, name: &str) -> Process {
    let arguments =
        format!("party {job} --home {name} --out out-{name} --yes --wait 60 --timeout 10");
    Process::start(folder, &format!("{name}.log"), &arguments)
}

/// Gets the result: an attempt that still had a connection to a killed process fails, and the parties are ready for the next one.
fn receive(folder: &Folder) {
    for _ in 0..5 {
        match take_part(folder, "job.toml", "eve").end() {
            Some(0) => return,
            code => assert_eq!(code, Some(5), "{}", read(folder, "eve.log")),
        }
    }
    panic!("no attempt succeeds: {}", read(folder, "eve.log"));
}

fn read(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(folder.at(name)).unwrap_or_default()
}

fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < until, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// What the services of all parties say of their jobs, joined.
fn jobs(folder: &Folder) -> String {
    ["a", "b", "c"]
        .map(|name| common::text(&folder.veil(&format!("jobs --home {name}")).stdout))
        .concat()
}

/// Whether a party keeps inputs between the stages of the job of blocks.
fn keeps(folder: &Folder, party: &str) -> bool {
    let sets = std::fs::read_dir(folder.at(&format!("{party}/shares")));
    sets.into_iter().flatten().flatten().any(|set| {
        let name = set.file_name().into_string().unwrap();
        name.starts_with("blocks%3a input") && set.path().join("manifest").is_file()
    })
}

/// A durable job of many rounds, three services, and the blocks that it must give.
fn durable() -> (Folder, Vec<Process>, Vec<u8>) {
    let folder = Folder::blocks();
    folder.succeed("run job.toml --out direct");
    let expected = std::fs::read(folder.at("direct/eve/blocks")).unwrap();
    folder.replace("job.toml", "version = 1\n", "version = 1\ndurable = true\n");
    homes(folder.path(), &NAMES);
    let services = NAMES[..3].iter().map(|name| serve(&folder, name)).collect();
    folder.succeed("submit job.toml --home eve");
    (folder, services, expected)
}

#[test]
fn a_durable_job_outlives_its_parties_and_needs_its_owner_once() {
    let _turn = turn();
    let (folder, mut services, expected) = durable();
    let mut owner = take_part(&folder, "job.toml", "ann");
    assert_eq!(owner.end(), Some(0), "{}", read(&folder, "ann.log"));
    // The owner is done, and nobody has asked for the result: the inputs are kept.
    wait("all have kept them", || {
        ["a", "b", "c"].iter().all(|party| keeps(&folder, party))
    });
    std::fs::remove_file(folder.at("key.hex")).unwrap();
    wait("they say so", || {
        jobs(&folder).matches("the inputs are kept").count() == 3
    });
    services.remove(1).kill();
    services.push(serve(&folder, "b"));
    wait("it goes on", || {
        jobs(&folder).matches("the inputs are kept").count() == 3
    });
    receive(&folder);
    assert!(std::fs::read(folder.at("out-eve/blocks")).unwrap() == expected);
    wait("all are done", || {
        jobs(&folder).matches(" done").count() == 3
    });
    assert!(!["a", "b", "c"].iter().any(|party| keeps(&folder, party)));
}

#[test]
fn parties_that_disagree_say_who_lacks_the_inputs_and_ask_for_them_again() {
    let _turn = turn();
    let (folder, mut services, expected) = durable();
    let mut owner = take_part(&folder, "job.toml", "ann");
    assert_eq!(owner.end(), Some(0), "{}", read(&folder, "ann.log"));
    wait("all have kept them", || {
        ["a", "b", "c"].iter().all(|party| keeps(&folder, party))
    });
    services.remove(1).kill();
    std::fs::remove_dir_all(folder.at("b/shares")).unwrap();
    services.push(serve(&folder, "b"));
    // It has nothing that reminds it of the job; whoever wants the result does.
    let asking = take_part(&folder, "job.toml", "eve");
    wait("it is said who lacks them", || {
        read(&folder, "a.log").contains("`b` has not kept the inputs, which are kept here")
    });
    wait("they ask for them", || {
        jobs(&folder).contains("the owner ann has to send them")
    });
    let mut owner = take_part(&folder, "job.toml", "ann");
    assert_eq!(owner.end(), Some(0), "{}", read(&folder, "ann.log"));
    drop(asking);
    receive(&folder);
    assert!(std::fs::read(folder.at("out-eve/blocks")).unwrap() == expected);
}

/// Wages that one owner brings and the parties keep, and a job that loads them.
const KEEP: &str = r#"version = 1
kind = "stats"
name = "wages"
owners = ["ann"]
parties = ["a", "b", "c"]
recipients = ["eve"]
column = [{ name = "wage", type = "integer", min = 0, max = 20000 }]
block = [{ name = "all", rows = 5, holds = { ann = ["wage"] }, files = { ann = "ann.csv" } }]
analysis = [{ name = "mean wage", kind = "mean", of = "wage", to = "eve" }]
"#;

#[test]
fn columns_are_kept_in_one_job_and_loaded_in_another() {
    let _turn = turn();
    let folder = Folder::new();
    folder.write("ann.csv", "wage\n3100\n2900\n4000\n3500\n2500\n");
    folder.write(
        "keep.toml",
        format!("{KEEP}keep = {{ as = \"wages 2025\" }}\n"),
    );
    let load = KEEP.replace("owners = [\"ann\"]", "owners = []");
    let load = load.replace("name = \"wages\"", "name = \"wages again\"");
    let holds = "holds = { ann = [\"wage\"] }, files = { ann = \"ann.csv\" }";
    folder.write("load.toml", load.replace(holds, "stored = \"wages 2025\""));
    homes(folder.path(), &NAMES);
    let _services: Vec<_> = NAMES[..3].iter().map(|name| serve(&folder, name)).collect();
    folder.succeed("submit keep.toml --home eve");
    let mut parts = ["ann", "eve"].map(|name| take_part(&folder, "keep.toml", name));
    for part in &mut parts {
        assert_eq!(part.end(), Some(0), "{}", read(&folder, "eve.log"));
    }
    wait("they are kept", || {
        ["a", "b", "c"].iter().all(|party| {
            let manifest = format!("{party}/shares/wages 2025/manifest");
            folder.at(&manifest).is_file()
        })
    });
    std::fs::remove_file(folder.at("ann.csv")).unwrap();
    folder.succeed("submit load.toml --home eve");
    let mut recipient = take_part(&folder, "load.toml", "eve");
    assert_eq!(recipient.end(), Some(0), "{}", read(&folder, "eve.log"));
    let result = read(&folder, "out-eve/result.txt");
    assert!(result.contains("3200"), "{result}");
}

#[test]
fn parties_in_the_foreground_go_on_where_they_were() {
    let _turn = turn();
    let folder = Folder::blocks();
    folder.succeed("run job.toml --out direct");
    folder.replace("job.toml", "version = 1\n", "version = 1\ndurable = true\n");
    homes(folder.path(), &NAMES);
    let start = || ["a", "b", "c"].map(|name| take_part(&folder, "job.toml", name));
    let parties = start();
    let mut owner = take_part(&folder, "job.toml", "ann");
    assert_eq!(owner.end(), Some(0), "{}", read(&folder, "ann.log"));
    wait("all have kept them", || {
        ["a", "b", "c"].iter().all(|party| keeps(&folder, party))
    });
    parties.into_iter().for_each(Process::kill);
    let mut parties = start();
    // An owner that comes again hears that it is not needed.
    let mut owner = take_part(&folder, "job.toml", "ann");
    assert_eq!(owner.end(), Some(0), "{}", read(&folder, "ann.log"));
    let said = read(&folder, "ann.log");
    assert!(said.contains("are not asked for again"), "{said}");
    let mut recipient = take_part(&folder, "job.toml", "eve");
    assert_eq!(recipient.end(), Some(0), "{}", read(&folder, "eve.log"));
    for party in &mut parties {
        assert_eq!(party.end(), Some(0), "{}", read(&folder, "a.log"));
    }
    let [direct, resumed] = ["direct/eve/blocks", "out-eve/blocks"].map(|path| folder.at(path));
    assert!(std::fs::read(direct).unwrap() == std::fs::read(resumed).unwrap());
    assert!(!["a", "b", "c"].iter().any(|party| keeps(&folder, party)));
}
