//! Jobs whose processes write into each other's memory, by libfabric, where it is.

use crate::common;
use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::common::Folder;
use rustix::process::{Pid, Signal, kill_process};

/// Two parties that garble.
const TWO: &str = r#"version = 1
kind = "circuit"
name = "blocks of two"
owners = ["ann"]
parties = ["a", "b"]
recipients = ["eve"]
circuit = { make = "aes128", rows = 300 }
input = [{ port = "key", owner = "ann", per = "job", format = "hex", file = "key.hex" },
         { port = "block", owner = "ann", format = "counter", start = "00000000000000000000000000000000" }]
output = [{ port = "out", to = "eve", format = "binary", file = "blocks" }]
"#;

/// The links by libfabric that are here.
fn here(folder: &Folder) -> Vec<&'static str> {
    let links = ["fabric:tcp", "fabric:shm"].into_iter();
    let here = |link: &&str| {
        let said = folder.veil(&format!(
            "run job.toml --processes --link {link} --out none"
        ));
        let said = common::text(&said.stderr);
        let missing =
            said.contains("libfabric is not here") || said.contains("this build has no links");
        if missing {
            println!("skipped: {said}");
        }
        !missing
    };
    links.filter(here).collect()
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn three_parties_that_share_and_two_that_garble_have_the_same_results_over_it() {
    for job in [None, Some(TWO)] {
        let folder = Folder::blocks();
        if let Some(job) = job {
            folder.write("job.toml", job);
        }
        folder.succeed("run job.toml --out memory");
        let blocks = |out: &str| fs::read(folder.at(&format!("{out}/eve/blocks"))).unwrap();
        for link in here(&folder) {
            let said = folder.succeed(&format!(
                "run job.toml --processes --link {link} --out {link}"
            ));
            assert!(
                said.contains(&format!("links over libfabric, {link}")),
                "{said}"
            );
            assert!(blocks(link) == blocks("memory"), "{link}");
        }
    }
}

#[test]
fn a_link_that_is_none_or_not_here_is_refused_before_the_run() {
    let folder = Folder::blocks();
    folder.fail(
        "run job.toml --processes --link pigeon",
        2,
        &["pigeon", "fabric:PROVIDER"],
    );
    folder.fail("run job.toml --link tls", 2, &["add --processes"]);
    folder.fail(
        "run job.toml --processes --link fabric:nowhere",
        5,
        &["nowhere"],
    );
}

/// The processes of `parent` that have a name in the memory of the machine, and their files there.
fn regions(parent: u32) -> Vec<(Pid, String)> {
    let names = fs::read_dir("/dev/shm").unwrap().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let of = |name: String| {
        let process = name.strip_prefix("veil-fabric-")?.split('-').next()?;
        let process = i32::from_str_radix(process, 16).ok()?;
        let status = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // After the name of the program, which may have blanks: state, then parent.
        let theirs = status.rsplit(')').next()?.split_whitespace().nth(1)?;
        (theirs == parent.to_string()).then_some((Pid::from_raw(process)?, name))
    };
    names.filter_map(of).collect()
}

/// A command that is told to end, if its caller has not waited for it.
struct Started(Option<Child>);

impl Started {
    fn id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    fn output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &self.0 {
            // It may have ended.
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
        }
    }
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_process_that_is_killed_ends_the_run_and_what_it_left_is_swept() {
    let folder = Folder::blocks();
    if !here(&folder).contains(&"fabric:shm") {
        return;
    }
    folder.replace("job.toml", "rows = 4096", "rows = 40000000");
    let run = "run job.toml --lanes 1 --processes --link fabric:shm";
    let started = Command::new(crate::PROGRAM)
        .args(run.split(' '))
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Its children end with it.
    let started = Started(Some(started));
    let until = Instant::now() + Duration::from_secs(120);
    let found = loop {
        let found = regions(started.id());
        // Three parties, an owner and a recipient: nine pairs, two names each.
        if found.len() == 18 {
            break found;
        }
        assert!(Instant::now() < until, "they never met");
        thread::sleep(Duration::from_millis(20));
    };
    let killed = found[0].0;
    kill_process(killed, Signal::KILL).unwrap();
    let ended = started.output();
    let said = common::text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(5), "{said}");
    let (left, gone): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|(process, _)| *process == killed);
    let path = |name: &str| format!("/dev/shm/{name}");
    for (_, name) in gone {
        assert!(
            !fs::exists(path(&name)).unwrap(),
            "{name} is left of a process that ended in order"
        );
    }
    for (_, name) in &left {
        // What is young could be about to be locked.
        if let Ok(file) = fs::File::open(path(name)) {
            file.set_modified(SystemTime::now() - Duration::from_secs(60))
                .unwrap();
        }
    }
    folder.replace("job.toml", "rows = 40000000", "rows = 4096");
    folder.succeed("run job.toml --processes --link fabric:shm --out results");
    for (_, name) in &left {
        assert!(!fs::exists(path(name)).unwrap(), "{name} was not swept");
    }
}
