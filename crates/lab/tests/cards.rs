//! `veil-lab card`: boards of simulated cores as processes, and runs of `veil` and `veil-lab` on them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Folder, text};
use crate::devices::{FILES, FOUR, THREE, among, both, folder, simulated};

/// How long a process may take to come to something.
const LIMIT: Duration = Duration::from_secs(120);

/// The process of a board.
struct Card {
    process: Child,
    said: Arc<Mutex<String>>,
}

impl Card {
    /// One that serves `board/card` of a folder.
    fn serve(folder: &Folder, options: &str) -> Self {
        Self::start(folder, "card --socket board/card", options, "board/card")
    }

    /// What a command serves, at last behind this socket.
    fn start(folder: &Folder, command: &str, options: &str, socket: &str) -> Self {
        let mut process = Command::new(crate::PROGRAM)
            .args(command.split_whitespace())
            .args(options.split_whitespace())
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stderr.take().unwrap());
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                *heard.lock().unwrap() += &(line + "\n");
            }
        });
        let card = Card { process, said };
        card.says(&format!("serving {socket}: "));
        card
    }

    fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    fn says(&self, part: &str) {
        let until = Instant::now() + LIMIT;
        while !self.said().contains(part) {
            assert!(Instant::now() < until, "{part}: {}", self.said());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asks it to end, and waits until it has.
    fn end(mut self) {
        let process = Pid::from_child(&self.process);
        kill_process(process, Signal::TERM).unwrap();
        let ended = self.process.wait().unwrap();
        assert!(ended.success(), "{ended}: {}", self.said());
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `veil`, which a build of all programs puts beside `veil-lab`.
fn veil() -> Option<PathBuf> {
    let veil = Path::new(crate::PROGRAM).with_file_name("veil");
    if veil.exists() {
        return Some(veil);
    }
    println!("skipped: no {}; build the whole workspace", veil.display());
    None
}

/// Runs a program in the folder.
fn run(program: &Path, folder: &Folder, arguments: &str) -> (Option<i32>, String) {
    let ended = Command::new(program)
        .args(arguments.split_whitespace())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = text(&ended.stdout) + &text(&ended.stderr);
    (ended.status.code(), said)
}

fn read(folder: &Folder, file: &str) -> Vec<u8> {
    fs::read(folder.at("results").join(file)).unwrap()
}

#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn a_party_garbles_on_a_board_of_another_process() {
    let folder = folder();
    if !simulated(&folder) {
        return;
    }
    let card = Card::serve(&folder, "--kind garbler");
    let programs = [Some(PathBuf::from(crate::PROGRAM)), veil()];
    for program in programs.into_iter().flatten() {
        for options in [
            "--device garbler=fpga:board/card",
            "--device ann=fpga:board/card --schedule layers --lanes 2",
            "--device ann=fpga:board/card --device bob=cpu-portable --processes",
        ] {
            let arguments = format!("run job.toml {options} --out results");
            let (code, said) = run(&program, &folder, &arguments);
            assert_eq!(code, Some(0), "{arguments}: {said}");
            assert!(said.contains("cycles of its cores"), "{arguments}: {said}");
            let sums = read(&folder, "bob/sum.hex");
            assert_eq!(sums, b"0000000c\n0000ff00\n23456789\n", "{arguments}");
        }
    }
    // What it does not do is refused before the run.
    let refusals = [
        ("bob=fpga:board/card", 2, "bob does not in this job"),
        (
            "ann=fpga:board/card --tables three-halves",
            2,
            "makes tables of half-gates",
        ),
        ("ann=fpga:board/none", 6, "no process serves it"),
    ];
    for (options, code, part) in refusals {
        folder.fail(&format!("run job.toml --device {options}"), code, &[part]);
    }
    among(&folder, THREE);
    let three = "run job.toml --device ann=fpga:board/card";
    folder.fail(three, 2, &["has no cores of shares"]);
    assert!(folder.at("board/card").exists());
    card.end();
    assert!(!folder.at("board/card").exists(), "its socket is gone");
}

/// Messages are those of the simulation in one process: the plan and the results, and every byte of the garbler's record.
#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn a_board_computes_what_the_simulation_in_the_process_does() {
    let folder = folder();
    if !simulated(&folder) {
        return;
    }
    let card = Card::serve(&folder, "");
    let record = |device: &str, to: &str| {
        folder.succeed(&format!(
            "run job.toml --device garbler={device} --lanes 1 --record {to} --data-are-mine --out {to}-out"
        ));
    };
    record("fpga:board/card", "board-record");
    // The record of the garbler on the board, played on the simulation and on the reference: every byte that a device gave is compared.
    for device in ["fpga-sim", "reference", "fpga:board/card"] {
        let said = folder.succeed(&format!("device replay board-record --device {device}"));
        assert!(said.contains("all equal"), "{device}: {said}");
    }
    both(&folder);
    for parties in [THREE, FOUR] {
        among(&folder, parties);
        folder.succeed("run job.toml --out results");
        let usual: Vec<_> = FILES.iter().map(|file| read(&folder, file)).collect();
        for options in [
            "--device fpga:board/card --lanes 1",
            "--device bob=fpga:board/card --adversary malicious --processes --lanes 1",
        ] {
            let said = folder.succeed(&format!("run job.toml {options} --out results"));
            assert!(said.contains("cycles of its cores"), "{options}: {said}");
            let got: Vec<_> = FILES.iter().map(|file| read(&folder, file)).collect();
            assert_eq!(got, usual, "{parties}: {options}");
        }
    }
    card.end();
}

/// The board is killed, or stands still, while a party computes on it: that is the party's failure, and the others are told.
#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn a_board_that_is_killed_ends_the_run() {
    let folder = folder();
    if !simulated(&folder) {
        return;
    }
    // A garbler of many rows: minutes of simulated time.
    let rows: Vec<String> = (0..20_000u32).map(|row| format!("{row:08x}\n")).collect();
    let rows = rows.concat();
    folder.write("x.hex", &rows);
    folder.write("y.hex", &rows);
    folder.replace("job.toml", "adder:32", "mul:32");
    for options in ["--lanes 1", "--lanes 1 --processes"] {
        let card = Card::serve(&folder, "--kind garbler");
        let run = Command::new(crate::PROGRAM)
            .args("run job.toml --device garbler=fpga:board/card --out results".split(' '))
            .args(options.split(' '))
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Checks have cards for a moment; who has one for longer computes.
        let cards = |card: &Card| card.said().matches("has a card").count();
        let ended = |card: &Card| card.said().matches("has ended").count();
        let until = Instant::now() + LIMIT;
        loop {
            let before = cards(&card);
            thread::sleep(Duration::from_secs(2));
            if before > 0 && cards(&card) == before && ended(&card) < before {
                break;
            }
            assert!(Instant::now() < until, "{}", card.said());
        }
        let begun = Instant::now();
        drop(card);
        let ended = run.wait_with_output().unwrap();
        let said = text(&ended.stderr);
        assert_eq!(ended.status.code(), Some(6), "{options}: {said}");
        assert!(
            said.contains("has closed the connection"),
            "{options}: {said}"
        );
        assert!(begun.elapsed() < Duration::from_secs(60), "{options}");
        assert!(!folder.at("results/bob/sum.hex").exists());
        // What the killed one left behind does not keep the next one from serving.
        assert!(folder.at("board/card").exists());
    }
    Card::serve(&folder, "").end();
}

/// Nodes of one process, cards of another, and hosts of a third: results are those of links in memory.
#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn parties_are_nodes_of_another_process() {
    let folder = folder();
    if !simulated(&folder) {
        return;
    }
    both(&folder);
    let card = Card::serve(&folder, "--kind shares");
    for (parties, count) in [(THREE, 3), (FOUR, 4)] {
        let last = format!("board/node{}", count - 1);
        let nodes = format!("node --socket board/node --parties {count}");
        let nodes = Card::start(&folder, &nodes, "", &last);
        among(&folder, parties);
        folder.succeed("run job.toml --lanes 1 --out results");
        let usual: Vec<_> = FILES.iter().map(|file| read(&folder, file)).collect();
        for options in [
            "",
            "--device fpga:board/card",
            "--device fpga:board/card --headless",
        ] {
            let run = format!("run job.toml --lanes 1 --link fpga:board/node {options}");
            let said = folder.succeed(&format!("{run} --out results"));
            assert!(said.contains("between nodes that are boards"), "{said}");
            let headless = options.contains("--headless");
            assert_eq!(said.contains("headless: "), headless, "{options}: {said}");
            let got: Vec<_> = FILES.iter().map(|file| read(&folder, file)).collect();
            assert_eq!(got, usual, "{parties}: {options}");
        }
        nodes.end();
        assert!(!folder.at(&last).exists(), "its socket is gone");
    }
    let run = "run job.toml --link fpga:board/node";
    folder.fail(run, 5, &["--link fpga:", "node0", "no process serves it"]);
    folder.fail(&format!("{run} --processes"), 2, &["in one process"]);
    card.end();
}

/// The process of the nodes is killed while messages cross them.
#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn nodes_that_are_killed_end_the_run() {
    let folder = folder();
    if !simulated(&folder) {
        return;
    }
    both(&folder);
    among(&folder, THREE);
    let rows: Vec<String> = (0..40_000).map(|k| format!("{:02x}\n", k % 16)).collect();
    let rows = rows.concat();
    folder.write("x.hex", &rows);
    folder.write("y.hex", &rows);
    let nodes = "node --socket board/node --parties 3";
    let nodes = Card::start(&folder, nodes, "", "board/node2");
    let run = Command::new(crate::PROGRAM)
        .args("run job.toml --lanes 1 --link fpga:board/node --out results".split(' '))
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_secs(3));
    drop(nodes);
    let ended = run.wait_with_output().unwrap();
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(5), "{said}");
    assert!(said.contains("has closed the connection"), "{said}");
    assert!(!folder.at("results/bob/both.hex").exists());
}

#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn a_card_says_why_it_does_not_serve() {
    let folder = folder();
    let absent = !simulated(&folder);
    fs::create_dir(folder.at("open")).unwrap();
    let part = if absent { "Verilator" } else { "of mode 700" };
    let code = if absent { 6 } else { 1 };
    folder.fail("card --socket open/card", code, &[part]);
    folder.fail(
        "card --socket board/card --kind abacus",
        2,
        &["garbler, shares, both"],
    );
    let listed = folder.succeed("device list");
    assert!(listed.contains("fpga:SOCKET"), "{listed}");
    if absent {
        return;
    }
    let card = Card::serve(&folder, "--cards 1");
    folder.fail(
        "card --socket board/card",
        1,
        &["another process serves it"],
    );
    card.end();
}
