//! Jobs whose parties keep shares: durable ones, those that keep columns, those that load them.

use crate::common::deployment::PATIENCE;
use crate::common::{Folder, text};

/// The mean of five wages, as the front page's job opens it.
const MEAN: &str = "3200";

/// The first job, as one that survives an interruption.
fn durable() -> Folder {
    let folder = Folder::wages();
    folder.replace(
        "wages.toml",
        "version = 1\n",
        "version = 1\ndurable = true\n",
    );
    folder
}

/// The first job, whose parties also keep the wages; and one without owners that loads them.
fn keeping() -> Folder {
    let folder = Folder::wages();
    let job = std::fs::read_to_string(folder.at("wages.toml")).unwrap();
    folder.write(
        "keep.toml",
        format!("{job}keep = {{ as = \"wages 2025\" }}\n"),
    );
    let (head, rest) = job.split_once("block = [").unwrap();
    let (_, analysis) = rest.split_once("analysis").unwrap();
    let head = head.replace("owners = [\"ann\", \"bob\"]", "owners = []");
    let head = head.replace("wages of two firms", "wages again");
    let block = "block = [{ name = \"all\", rows = 5, stored = \"wages 2025\" }]\n";
    folder.write("load.toml", format!("{head}{block}analysis{analysis}"));
    folder
}

#[test]
fn a_durable_job_gives_the_same_and_leaves_nothing_behind() {
    let folder = durable();
    assert!(folder.succeed("stats wages.toml --check").contains(MEAN));
    let left = folder.everything().into_iter();
    let mut left = left.filter(|path| path.ends_with("shares.arrow"));
    assert_eq!(left.next(), None);
    // Another run reads the data again.
    folder.write("bob.csv", "wage\n4000\n3500\n4500\n");
    assert!(folder.succeed("stats wages.toml --check").contains("3600"));
}

#[test]
fn processes_of_their_own_keep_shares_too() {
    let folder = durable();
    assert!(folder.succeed("run wages.toml --processes").contains(MEAN));
    let folder = keeping();
    assert!(folder.succeed("run keep.toml --processes").contains(MEAN));
    std::fs::remove_file(folder.at("ann.csv")).unwrap();
    std::fs::remove_file(folder.at("bob.csv")).unwrap();
    assert!(folder.succeed("run load.toml --processes").contains(MEAN));
    assert!(folder.succeed("run load.toml").contains(MEAN));
}

#[test]
fn an_interrupted_job_goes_on_without_its_owners() {
    let folder = durable();
    // The second stage cannot write its results.
    folder.write("results", "a file is in the way");
    let output = folder.veil("run wages.toml --out results");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    for party in ["ann", "bob", "carol"] {
        let kept = folder.at(&format!(".veil-run/{party}/shares"));
        assert!(kept.join("wages of two firms%3a input/manifest").is_file());
    }
    // The owners, and their data, are gone.
    std::fs::remove_file(folder.at("ann.csv")).unwrap();
    std::fs::remove_file(folder.at("bob.csv")).unwrap();
    let output = folder.veil("run wages.toml");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("their owners are not asked again"));
    assert!(
        text(&output.stdout).contains(MEAN),
        "{}",
        text(&output.stdout)
    );
    // It is done: the next run needs them.
    let output = folder.veil("run wages.toml");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
}

#[test]
fn what_an_interrupted_job_kept_is_not_used_for_another() {
    let folder = durable();
    folder.write("results", "a file is in the way");
    folder.veil("run wages.toml --out results");
    // One row less: another plan, and other data.
    folder.replace("wages.toml", "rows = 3", "rows = 2");
    folder.write("bob.csv", "wage\n4000\n3000\n");
    let output = folder.veil("run wages.toml");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("3250"),
        "{}",
        text(&output.stdout)
    );
    assert!(!text(&output.stderr).contains("not asked again"));
}

#[test]
fn shares_of_one_party_alone_are_made_anew() {
    let folder = durable();
    folder.write("results", "a file is in the way");
    folder.veil("run wages.toml --out results");
    let damaged = folder.at(".veil-run/bob/shares/wages of two firms%3a input/manifest");
    std::fs::remove_file(damaged).unwrap();
    let output = folder.veil("run wages.toml");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("not asked again"));
}

#[test]
fn columns_are_kept_and_computed_on_again_without_their_owners() {
    let folder = keeping();
    assert!(folder.succeed("run keep.toml").contains(MEAN));
    std::fs::remove_file(folder.at("ann.csv")).unwrap();
    std::fs::remove_file(folder.at("bob.csv")).unwrap();
    for _ in 0..2 {
        assert!(folder.succeed("run load.toml").contains(MEAN));
    }
}

#[test]
fn what_does_not_fit_is_refused_with_what_to_do() {
    let folder = keeping();
    folder.fail_with_store("run load.toml", "no dataset `wages 2025` in ");
    folder.succeed("run keep.toml");
    folder.fail_with_store("run keep.toml", "there is a dataset `wages 2025` in ");
    folder.replace("load.toml", "rows = 5", "rows = 6");
    folder.fail_with_store(
        "run load.toml",
        "it has 5 rows, and the job declares 6; declare 5",
    );
    folder.replace("load.toml", "rows = 6", "rows = 5");
    folder.replace("load.toml", "max = 20000", "max = 30000");
    folder.fail_with_store(
        "run load.toml",
        "declare the columns as the job that kept them did",
    );
    folder.replace("load.toml", "max = 30000", "max = 20000");
    folder.replace("load.toml", "\"bob\", \"carol\"]", "\"carol\", \"bob\"]");
    folder.fail_with_store("run load.toml", "it is shared among ann, bob and carol");
}

#[test]
fn a_changed_share_stops_the_run() {
    let folder = keeping();
    folder.succeed("run keep.toml");
    let path = folder.at(".veil-run/carol/shares/wages 2025/shares.arrow");
    let mut bytes = std::fs::read(&path).unwrap();
    let footer = u32::from_le_bytes(bytes[bytes.len() - 10..][..4].try_into().unwrap()) as usize;
    let tag = bytes.len() - 10 - footer - 8 - 130;
    bytes[tag] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    folder.fail_with_store(
        "run load.toml",
        "fail their check; it was damaged or changed",
    );
}

/// Lets the parties of a job keep the inputs until it is done.
fn make_durable(folder: &Folder) {
    folder.replace("job.toml", "version = 1\n", "version = 1\ndurable = true\n");
}

/// Whether `party` of the circuit job has this file of the checkpointed inputs.
fn keeps(folder: &Folder, party: &str, file: &str) -> bool {
    let kept = format!(".veil-run/{party}/shares/blocks%3a input/{file}");
    folder.at(&kept).is_file()
}

/// Starts the job and kills it once it has come to what `reached` says. Over the imitated network of two cities, forty
/// rounds take seconds.
fn kill_once(folder: &Folder, reached: impl Fn() -> bool) {
    let mut child = std::process::Command::new(crate::PROGRAM)
        .args(["run", "job.toml", "--net", "wan", "--out", "killed"])
        .current_dir(folder.path())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let start = std::time::Instant::now();
    while !reached() {
        assert!(
            start.elapsed().as_secs() < PATIENCE,
            "the input stage goes on"
        );
        assert!(child.try_wait().unwrap().is_none(), "the run goes on");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_killed_circuit_job_goes_on_without_its_owner() {
    let folder = Folder::blocks();
    folder.succeed("run job.toml --out direct");
    make_durable(&folder);
    let manifest = |party| keeps(&folder, party, "manifest");
    kill_once(&folder, || ["a", "b", "c"].into_iter().all(manifest));
    assert!(!folder.at("killed/eve/blocks").exists());
    // The owner, and its key, are gone.
    std::fs::remove_file(folder.at("key.hex")).unwrap();
    let output = folder.veil("run job.toml --out resumed");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("their owners are not asked again"));
    let read = |out: &str| std::fs::read(folder.at(out).join("eve/blocks")).unwrap();
    assert_eq!(read("resumed"), read("direct"));
    assert!(!["a", "b", "c"].into_iter().any(manifest), "it is done");
}

#[test]
fn a_run_that_is_killed_while_inputs_come_begins_again() {
    let folder = Folder::blocks();
    make_durable(&folder);
    let begun = |party| keeps(&folder, party, "shares.arrow");
    kill_once(&folder, || ["a", "b", "c"].into_iter().any(begun));
    // A few milliseconds of some hundred; on a machine that stood still in between, the stage may be over.
    let complete = ["a", "b", "c"]
        .into_iter()
        .all(|party| keeps(&folder, party, "manifest"));
    let output = folder.veil("run job.toml --out again");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let resumed = text(&output.stderr).contains("not asked again");
    assert_eq!(resumed, complete);
    assert!(folder.at("again/eve/blocks").is_file());
}

#[test]
fn ways_to_run_that_it_cannot_go_are_refused() {
    let folder = durable();
    folder.fail(
        "run wages.toml --shadow --data-are-mine",
        2,
        &["this job computes on shares that were kept"],
    );
}

trait Refused {
    fn fail_with_store(&self, arguments: &str, part: &str);
}

impl Refused for Folder {
    /// Runs `veil`, which must fail for its data and say this; it may have made the parties' stores.
    fn fail_with_store(&self, arguments: &str, part: &str) {
        let output = self.veil(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(part), "{said}");
        assert_eq!(text(&output.stdout), "");
    }
}
