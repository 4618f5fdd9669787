//! Stock between two homes: made by `veil prepare`, taken by `veil party --stock`, listed by `veil stock`; parties that are killed, and one that is set back.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::common::Folder;
use crate::common::between::{JOB, NAMES, chain, rows};
use crate::common::deployment::{PATIENCE, Place, alone, end, kill, succeed, take_part_at, wait};
use crate::common::homes::homes;

/// The job of two parties, against a malicious one, and homes of all.
pub(crate) fn deployment() -> Folder {
    deployment_of("malicious")
}

/// The same against another adversary.
pub(crate) fn deployment_of(adversary: &str) -> Folder {
    let folder = Folder::new();
    folder.write("rows.hex", rows());
    folder.write("job.hex", "03\n");
    folder.write("chain.txt", chain(2));
    let job = JOB.replace("INSIDE", "a");
    let version = format!("version = 1\nadversary = \"{adversary}\"\n");
    let job = job.replace("version = 1\n", &version);
    folder.write("job.toml", job);
    homes(folder.path(), NAMES);
    folder
}

fn prepare(folder: &Folder, home: &str, more: &[&str]) -> Child {
    Place::HERE
        .veil(folder.path())
        .args(["prepare", "job.toml", "--home", home])
        .args([
            "--wait",
            &PATIENCE.to_string(),
            "--timeout",
            &PATIENCE.to_string(),
        ])
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Both parties make stock.
pub(crate) fn prepared(folder: &Folder, more: &[&str]) {
    let both = ["a", "b"].map(|home| prepare(folder, home, more));
    for child in both {
        succeed(child);
    }
}

/// All take part, from stock or not.
pub(crate) fn start(folder: &Folder, more: &[&str]) -> Vec<Child> {
    let take_part = |home: &&str| take_part_at(&Place::HERE, folder, "job.toml", home, more);
    NAMES.iter().map(take_part).collect()
}

pub(crate) fn result(folder: &Folder) -> Vec<u8> {
    let out = folder.at("out-job.toml");
    let result = fs::read(out.join("all.hex")).unwrap();
    fs::remove_dir_all(out).unwrap();
    result
}

pub(crate) fn listed(folder: &Folder, home: &str) -> Vec<Value> {
    let all = folder.succeed(&format!("stock --home {home} --json"));
    let all: Value = serde_json::from_str(&all).unwrap();
    all.as_array().unwrap().clone()
}

/// Cells that are left in the only generation, and sessions of it, the same at both.
pub(crate) fn left(folder: &Folder) -> (u64, u64) {
    let [a, b] = ["a", "b"].map(|home| {
        let all = listed(folder, home);
        assert_eq!(all.len(), 1, "{all:?}");
        let about = &all[0]["about"];
        (
            about["left"].as_u64().unwrap(),
            about["sessions"].as_u64().unwrap(),
        )
    });
    assert_eq!(a, b);
    a
}

/// None of them has ended well, and one of the parties says why: whichever finds it first tells the others that it gives up.
#[track_caller]
fn assert_ended(ended: &[(Option<i32>, String)], code: i32, why: &str) {
    assert!(ended.iter().all(|(code, _)| *code != Some(0)), "{ended:?}");
    let says = |(ended, said): &(Option<i32>, String)| *ended == Some(code) && said.contains(why);
    assert!(ended[..2].iter().any(says), "{ended:?}");
}

#[test]
fn two_homes_make_stock_and_take_it() {
    let folder = deployment();
    let patient = PATIENCE.to_string();
    let fresh = ["--timeout", &patient];
    for child in start(&folder, &fresh) {
        succeed(child);
    }
    let expected = result(&folder);
    let none = folder.succeed("stock --home a");
    assert!(none.contains("there is no stock here"), "{none}");
    // Without stock, nothing runs.
    let stocked = ["--timeout", &patient, "--stock"];
    let ended: Vec<_> = start(&folder, &stocked).into_iter().map(end).collect();
    assert_ended(
        &ended,
        3,
        "the two parties have no stock of cells in common",
    );
    assert!(!folder.at("out-job.toml").join("all.hex").exists());
    prepared(&folder, &["--runs", "2"]);
    let (made, sessions) = left(&folder);
    assert_eq!(sessions, 0);
    for number in 1..=2 {
        for child in start(&folder, &stocked) {
            succeed(child);
        }
        assert_eq!(result(&folder), expected);
        let (now, sessions) = left(&folder);
        assert!(now < made && sessions == number, "{now} of {made}");
    }
    let text = folder.succeed("stock --home a");
    for part in ["with `b`", "garbles", "left", "2 runs"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // A budget that is too small, and fewer cells than a run takes.
    let both = ["a", "b"].map(|home| prepare(&folder, home, &["--most", "1"]));
    let refused = both.map(end);
    for (code, said) in refused {
        assert_ne!(code, Some(0));
        assert!(
            said.contains("there may be 1000000") || said.contains("gave up"),
            "{said}"
        );
    }
    folder.fail(
        "prepare job.toml --home a --cells 10",
        2,
        &["10 cells serve no run of this job"],
    );
    let generation = listed(&folder, "a")[0]["generation"]
        .as_str()
        .unwrap()
        .to_owned();
    folder.succeed(&format!("stock --home a --remove {generation}"));
    assert!(listed(&folder, "a").is_empty());
}

#[test]
fn a_run_on_this_machine_makes_its_stock_first() {
    let folder = deployment();
    folder.succeed("run job.toml --out fresh");
    let run = folder.succeed("run job.toml --stock --out stocked --json");
    let run: Value = serde_json::from_str(&run).unwrap();
    let of = |name: &str| fs::read(folder.at(name)).unwrap();
    assert_eq!(of("fresh/eve/all.hex"), of("stocked/eve/all.hex"));
    let cells = run["stock"]["cells"].as_u64().unwrap();
    assert!(run["stock"]["made"].as_u64().unwrap() >= cells && cells > 0);
    // What is said of it before is what it takes, and sends.
    let explain = |more: &str| -> Value {
        let text = folder.succeed(&format!("explain job.toml --json {more}"));
        serde_json::from_str(&text).unwrap()
    };
    let (stocked, fresh) = (explain("--stock"), explain(""));
    assert_eq!(stocked["plan"], run["plan"]);
    assert_ne!(stocked["plan"], fresh["plan"]);
    for (explained, taken) in [(&stocked, true), (&fresh, false)] {
        let stock = &explained["stock"];
        assert_eq!(stock["taken"].as_bool(), Some(taken));
        assert_eq!(stock["cells"].as_u64(), Some(cells));
        let sent = |of: &Value| of["bytes"].as_u64().unwrap();
        assert!(
            4 * sent(&stock["online"]) < sent(&stock["fresh"]),
            "{stock}"
        );
        let all = explained["participants"].as_array().unwrap();
        let own = if taken { "online" } else { "fresh" };
        assert_eq!(all.iter().map(sent).sum::<u64>(), sent(&stock[own]));
    }
    let text = folder.succeed("explain job.toml --stock");
    assert!(
        text.contains(&format!("takes {cells} cells, and sends ")),
        "{text}"
    );
    folder.fail(
        "run job.toml --stock --processes",
        2,
        &["'--stock' cannot be used with '--processes'"],
    );
    let wages = Folder::wages();
    for command in ["run", "explain"] {
        wages.fail(
            &format!("{command} wages.toml --stock"),
            3,
            &["takes nothing from a stock: only two parties have one, with `adversary = \"malicious\"` or `\"semi-honest\"`"],
        );
    }
}

/// One of the two has a time; the other one learns of its end.
#[test]
fn what_is_made_in_time_is_kept() {
    let folder = deployment();
    let asked = ["--cells", "100000000"];
    let timed = [&asked[..], &["--for", "4s"]].concat();
    let both = [prepare(&folder, "a", &asked), prepare(&folder, "b", &timed)];
    for child in both {
        succeed(child);
    }
    let (made, sessions) = left(&folder);
    assert!(made >= 16384 && made.is_multiple_of(16384) && made < 100_000_000);
    assert_eq!(sessions, 0);
    let patient = PATIENCE.to_string();
    for child in start(&folder, &["--timeout", &patient, "--stock"]) {
        succeed(child);
    }
    result(&folder);
    assert_eq!(left(&folder).1, 1);
}

/// An approval is for a run from stock or for one that makes its products: they are two plans.
#[test]
fn approvals_say_that_a_run_is_from_stock() {
    let folder = deployment();
    let explained = folder.succeed("approve job.toml --stock --yes --home a");
    assert!(explained.contains(" cells, and sends "), "{explained}");
    let plan = |more: &str| {
        let text = folder.succeed(&format!("explain job.toml --json {more}"));
        let text: Value = serde_json::from_str(&text).unwrap();
        text["plan"].as_str().unwrap().to_owned()
    };
    let filed = |plan: &str| {
        let mut all = fs::read_dir(folder.at("a/jobs")).unwrap();
        let begins = |path: &std::path::PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(plan)
        };
        let found = all.find_map(|entry| Some(entry.unwrap().path()).filter(&begins))?;
        fs::read_to_string(found.join("entry.toml")).ok()
    };
    let entry = filed(&plan("--stock")).unwrap();
    assert!(entry.contains("stocked = true"), "{entry}");
    assert_eq!(filed(&plan("")), None);
    // By its digits it is the same run.
    let digits = plan("--stock");
    let again = folder.succeed(&format!("approve {digits} --yes --home a"));
    assert!(again.contains(" cells, and sends "), "{again}");
    folder.succeed("approve job.toml --yes --home a");
    let fresh = plan("");
    folder.fail(
        &format!("approve {fresh} --stock --yes --home a"),
        2,
        &["the filed job makes its products, and the command line asks for a run from stock"],
    );
}

/// The files of a folder of stock.
fn snapshot(folder: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        // Marks are written beside the old ones, and renamed.
        .filter_map(|path| Some((path.clone(), fs::read(path).ok()?)))
        .collect()
}

#[test]
#[ignore = "tier processes: kills and waits"]
fn parties_that_are_killed_or_set_back() {
    let _alone = alone();
    let folder = deployment();
    let patient = PATIENCE.to_string();
    prepared(&folder, &["--runs", "8"]);
    let stock = folder.at("b").join("stock");
    let marks = |stock: &Path| {
        let mut all = snapshot(stock).into_iter();
        let marks = all.find(|(path, _)| path.extension().is_some_and(|of| of == "marks"));
        marks.map(|(_, bytes)| bytes)
    };
    let stocked = ["--timeout", &patient, "--stock"];
    // Rounds that take long enough to be killed in.
    let slow = ["--timeout", "10", "--stock", "--net", "wan"];
    for killed in [0, 1] {
        let before = marks(&stock);
        let mut all = start(&folder, &slow);
        wait("marks of the run", || marks(&stock) != before);
        kill(all.remove(killed));
        for child in all {
            let (code, said) = end(child);
            assert_ne!(code, Some(0), "{said}");
        }
        // The others were told nothing, and the next run goes on behind it.
        for child in start(&folder, &stocked) {
            succeed(child);
        }
        result(&folder);
        left(&folder);
    }
    // A party that is set back by two sessions.
    let old = snapshot(&stock);
    for _ in 0..2 {
        for child in start(&folder, &stocked) {
            succeed(child);
        }
    }
    fs::remove_dir_all(&stock).unwrap();
    fs::create_dir(&stock).unwrap();
    for (path, bytes) in &old {
        fs::write(path, bytes).unwrap();
    }
    let ended: Vec<_> = start(&folder, &stocked).into_iter().map(end).collect();
    assert_ended(&ended, 4, "stock-forked");
    // It is burnt at the party that has found it first, at least; then the two have none in common.
    let burnt = ["a", "b"].iter().filter(|home| {
        let all = listed(&folder, home);
        all[0]["state"] == "burnt" && all[0]["problem"] == "forked"
    });
    assert!(burnt.count() > 0);
    let ended: Vec<_> = start(&folder, &stocked).into_iter().map(end).collect();
    assert_ended(&ended, 3, "no stock of cells in common");
}
