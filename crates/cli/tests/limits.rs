//! What a service takes on: the memory that a job may need, declared and measured, and jobs that are beyond a limit or wait for
//! one.

use crate::common;
use crate::common::Folder;
use crate::common::deployment::{
    Service, alone, at, end, expected, states, submit, take_part, wait,
};
use crate::common::homes::{NAMES, homes};
use crate::common::line::Line;

/// The declared memory is at most so many times what an honest run takes: it counts what peers are allowed to send ahead, and they
/// seldom do.
const FACTOR: u64 = 24;

/// A job that takes less than this is declared as one that takes it: frames of links and buffers of TLS have their size in every job.
const LEAST: u64 = 1 << 20;

fn services(folder: &Folder) -> Vec<Service> {
    let start = |name: &&str| Service::start(folder.path(), name, &["--yes"]);
    NAMES[..3].iter().map(start).collect()
}

/// Declared bytes of working memory of the first party.
fn declared(folder: &Folder, job: &str) -> u64 {
    let explained = folder.succeed(&format!("explain {job} --lanes 1 --json"));
    let explained: serde_json::Value = serde_json::from_str(&explained).unwrap();
    explained["participants"][0]["memory_bytes"]
        .as_u64()
        .unwrap()
}

fn run(folder: &Folder, job: &str) {
    let parts = ["ann", "eve"].map(|name| take_part(folder, job, name));
    for part in parts {
        let (code, said) = end(part);
        assert_eq!(code, Some(0), "{job}: {said}");
    }
}

/// A table of six columns, and what is computed of it.
fn statistics(folder: &Folder, rows: usize) {
    use std::fmt::Write;
    let numbers = ["a0", "a1", "a2", "a3", "a4"];
    let columns = numbers
        .map(|name| format!("{{ name = \"{name}\", type = \"integer\", min = 0, max = 9999 }}"));
    let held = numbers.map(|name| format!("\"{name}\"")).join(", ");
    let job = format!(
        "version = 1\nkind = \"stats\"\nname = \"six columns\"\nowners = [\"ann\"]\nparties = [\"a\", \"b\", \"c\"]\n\
         recipients = [\"eve\"]\ncolumn = [{}, {{ name = \"group\", type = \"category\", values = [\"x\", \"y\", \"z\"] }}]\n\
         block = [{{ name = \"all\", rows = {rows}, holds = {{ ann = [{held}, \"group\"] }}, files = {{ ann = \"six.csv\" }} }}]\n\
         analysis = [{{ name = \"v\", kind = \"variance\", of = \"a0\", by = \"group\", to = \"eve\" }},\n\
         {{ name = \"r\", kind = \"regression\", of = \"a0\", on = [\"a1\", \"a2\", \"a3\", \"a4\"], to = \"eve\" }}]\n",
        columns.join(", ")
    );
    let start = job.find("analysis = ").unwrap();
    let extreme = |name: &str, of: &str| {
        format!(
            "{{ name = \"{name}\", kind = \"{name}\", of = \"{of}\", by = \"group\", min_count = 3, to = \"eve\" }}"
        )
    };
    let analysis = [extreme("max", "a0"), extreme("min", "a1")].join(", ");
    let extremes = format!("{}analysis = [{analysis}]\n", &job[..start]);
    let malicious = extremes.replace("version = 1", "version = 1\nadversary = \"malicious\"");
    folder.write("six.toml", job);
    folder.write("extremes.toml", extremes);
    folder.write("malicious.toml", malicious);
    let mut table = String::from("a0,a1,a2,a3,a4,group\n");
    for row in 0..rows {
        let cell = |k: usize| (row * (k + 7) + k * k) % 10_000;
        let group = ["x", "y", "z"][row % 3];
        let _ = writeln!(
            table,
            "{},{},{},{},{},{group}",
            cell(0),
            cell(1),
            cell(2),
            cell(3),
            cell(4)
        );
    }
    folder.write("six.csv", table);
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn the_declared_memory_bounds_the_measured_and_is_of_its_size() {
    let _alone = alone();
    let folder = Folder::blocks();
    statistics(&folder, 60_000);
    let job = std::fs::read_to_string(folder.at("job.toml")).unwrap();
    let counter = "format = \"counter\", start = \"00000000000000000000000000000000\"";
    for (name, circuit, ports, rows) in [
        (
            "tiny",
            "lt:8",
            ["x", "y"],
            ["07".to_owned(), "0a\n".repeat(64)],
        ),
        (
            "hash",
            "sha256-shallow",
            ["state", "block"],
            ["6a09e667".repeat(8), ("80".repeat(64) + "\n").repeat(64)],
        ),
    ] {
        let job = job.replace(
            "\"aes128\", rows = 4096",
            &format!("\"{circuit}\", rows = 64"),
        );
        let job = job.replace("port = \"key\"", &format!("port = \"{}\"", ports[0]));
        let job = job.replace("port = \"block\"", &format!("port = \"{}\"", ports[1]));
        let job = job.replace("key.hex", &format!("{name}-0.hex"));
        let job = job.replace(
            counter,
            &format!("format = \"hex\", file = \"{name}-1.hex\""),
        );
        folder.write(&format!("{name}.toml"), job);
        for (k, rows) in rows.into_iter().enumerate() {
            folder.write(&format!("{name}-{k}.hex"), rows);
        }
    }
    homes(folder.path(), &NAMES);
    let blocks = ["tiny.toml", "job.toml", "hash.toml"];
    let statistics = ["six.toml", "extremes.toml", "malicious.toml"];
    for job in blocks.into_iter().chain(statistics) {
        let services = services(&folder);
        let [before, mapped] = ["VmHWM:", "RssFile:"].map(|of| services[0].kilobytes(of));
        let (plan, _) = submit(&folder, job);
        run(&folder, job);
        wait("done", || states(&folder, &plan) == ["done"; 3]);
        let [after, now] = ["VmHWM:", "RssFile:"].map(|of| services[0].kilobytes(of));
        // Pages of the program itself, which the first job of a process reads, are no memory of a job, and stay.
        let took = (after - before - now.saturating_sub(mapped)) << 10;
        let declared = declared(&folder, job);
        assert!(
            took <= declared && declared <= FACTOR * took.max(LEAST),
            "{job}: {took} bytes, declared {declared}"
        );
        println!("{job}: {took} bytes, declared {declared}");
    }
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_job_waits_for_memory_and_one_beyond_a_limit_is_refused_while_others_run() {
    let _alone = alone();
    let folder = Folder::blocks();
    let job = std::fs::read_to_string(folder.at("job.toml")).unwrap();
    for (name, rows) in [("other", 2048), ("long", 8192)] {
        let text = job.replace("rows = 4096", &format!("rows = {rows}"));
        folder.write(&format!("{name}.toml"), text);
    }
    let homes = homes(folder.path(), &NAMES);
    let [first, second] = ["job.toml", "other.toml"].map(|job| declared(&folder, job));
    let [need, of_second] = [first, second].map(|bytes| bytes.div_ceil(1 << 20));
    let set = |name: &str, from: &str, to: &str| {
        folder.replace(&format!("{name}/veil.toml"), from, to);
    };
    // Room for one that runs and the plan of another, but not for two that run.
    let room = (first + second - 1) >> 20;
    set("a", "memory_mib = 4096", &format!("memory_mib = {room}"));
    set("b", "rows = 1000000000", "rows = 5000");
    let mut line = Line::stand(&folder, &homes[0]);
    let services = services(&folder);
    line.learn(&folder);
    line.hold();
    let (first, _) = submit(&folder, "job.toml");
    let (second, _) = submit(&folder, "other.toml");
    let parts = ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name));
    wait("the first runs", || states(&folder, &first)[0] == "running");
    let others = ["ann", "eve"].map(|name| take_part(&folder, "other.toml", name));
    wait("the second waits for memory", || {
        let at = at(&folder, "eve", "a", &second).unwrap();
        assert_ne!(at.state, "failed", "{}", at.why);
        at.state == "queued"
    });
    let why = |of: &str| at(&folder, of, "a", &second).unwrap().why;
    wait("it is said", || {
        let why = why("a");
        why.contains(&format!("it needs up to {of_second} MiB"))
            && why.contains("`memory_mib` under [admission]")
    });
    // Others learn nothing of the limit.
    assert_eq!(
        why("eve"),
        "other jobs run at this party, and it waits for a place"
    );
    // Beyond another limit, at one party, while these are under way.
    let refused = |job: &str, sentence: &str| {
        let output = folder.veil(&format!("submit {job} --home eve --wait 8"));
        let said = common::text(&output.stderr);
        assert!(
            !output.status.success() && said.contains(sentence),
            "{said}"
        );
    };
    refused(
        "long.toml",
        "`b` refuses the job: the job has 8192 rows, and this party takes at most 5000",
    );
    line.let_go();
    for part in parts.into_iter().chain(others) {
        let (code, said) = end(part);
        assert_eq!(code, Some(0), "{said}");
    }
    assert!(std::fs::read(folder.at("out-job.toml/blocks")).unwrap() == expected());
    assert!(std::fs::read(folder.at("out-other.toml/blocks")).unwrap() == expected()[..2048 * 16]);
    wait("both are done", || {
        states(&folder, &first) == ["done"; 3] && states(&folder, &second) == ["done"; 3]
    });
    drop(services);

    // Alone it is too much: refused at once.
    set("a", &format!("memory_mib = {room}"), "memory_mib = 1");
    let _service = Service::start(folder.path(), "a", &["--yes"]);
    let sentence = format!(
        "`a` refuses the job: `blocks` needs up to {need} MiB of working memory (`veil explain` shows it), and this party gives all \
         its jobs 1 MiB: its operator sets `memory_mib` under [admission] in veil.toml"
    );
    refused("job.toml", &sentence);
}
