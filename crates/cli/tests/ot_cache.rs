//! Two services on loopback that garble one job after another: every one after the first begins with the oblivious transfers that the one
//! before has left, until one of the services begins anew.

use crate::common::Folder;
use crate::common::deployment::{Service, alone, expected, submit, succeed, take_part, wait};
use crate::common::homes::homes;

/// Rows of a job.
const ROWS: usize = 40;

/// Runs job number `number`, by an owner and a recipient in the foreground.
fn run(folder: &Folder, services: &[Service], number: usize) {
    let job = format!("job-{number}.toml");
    let text = std::fs::read_to_string(folder.at("job.toml")).unwrap();
    let name = format!("name = \"blocks {number}\"");
    folder.write(&job, text.replace("name = \"blocks\"", &name));
    let before = services.iter().map(done).collect::<Vec<_>>();
    submit(folder, &job);
    let children = ["ann", "eve"].map(|name| take_part(folder, &job, name));
    for child in children {
        succeed(child);
    }
    let blocks = std::fs::read(folder.at(&format!("out-{job}/blocks"))).unwrap();
    assert!(blocks == expected()[..16 * ROWS]);
    for (service, before) in services.iter().zip(before) {
        wait("done", || done(service) > before);
    }
}

fn counted(service: &Service, name: &str) -> u64 {
    let page = service.page("/metrics");
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    line.map_or(0, |count| count.trim().parse().unwrap())
}

fn done(service: &Service) -> u64 {
    counted(service, "mpc_runs_total{outcome=\"done\"}")
}

/// Runs that began with curves, and with what was kept.
fn from(service: &Service) -> [u64; 2] {
    ["curves", "kept"].map(|from| {
        counted(
            service,
            &format!("mpc_transfer_set_ups_total{{from=\"{from}\"}}"),
        )
    })
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn services_keep_transfers_for_the_next_job() {
    let _alone = alone();
    let folder = Folder::blocks();
    let parties = "parties = [\"a\", \"b\", \"c\"]";
    folder.replace("job.toml", parties, "parties = [\"a\", \"b\"]");
    folder.replace("job.toml", "rows = 4096", &format!("rows = {ROWS}"));
    let _homes = homes(folder.path(), &["a", "b", "ann", "eve"]);
    let start = |name: &str| Service::start(folder.path(), name, &["--yes"]);
    let mut services = vec![start("a"), start("b")];
    run(&folder, &services, 1);
    assert_eq!([0, 1].map(|k| from(&services[k])), [[1, 0]; 2]);
    run(&folder, &services, 2);
    run(&folder, &services, 3);
    assert_eq!([0, 1].map(|k| from(&services[k])), [[1, 2]; 2]);
    // It is in memory alone: who begins anew has nothing.
    let (code, said) = services.remove(1).stop();
    assert_eq!(code, Some(0), "{said}");
    services.push(start("b"));
    run(&folder, &services, 4);
    assert_eq!([0, 1].map(|k| from(&services[k])), [[2, 2], [1, 0]]);
    run(&folder, &services, 5);
    assert_eq!([0, 1].map(|k| from(&services[k])), [[2, 3], [1, 1]]);
}

/// Case S11: what would happen if the memory of a service were set back to a snapshot: its OT cache was used since, and its disk knows. It
/// begins with curves, and says why.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_memory_that_was_set_back_begins_with_curves() {
    let _alone = alone();
    let folder = Folder::blocks();
    let parties = "parties = [\"a\", \"b\", \"c\"]";
    folder.replace("job.toml", parties, "parties = [\"a\", \"b\"]");
    folder.replace("job.toml", "rows = 4096", &format!("rows = {ROWS}"));
    let _homes = homes(folder.path(), &["a", "b", "ann", "eve"]);
    let start = |name: &str| Service::start(folder.path(), name, &["--yes"]);
    let mut services = vec![start("a"), start("b")];
    let marks = |name: &str| std::fs::read(folder.at(&format!("{name}/ot.marks"))).unwrap();
    run(&folder, &services, 1);
    let before = ["a", "b"].map(marks);
    run(&folder, &services, 2);
    assert_eq!([0, 1].map(|k| from(&services[k])), [[1, 1]; 2]);
    // Each use is on the disk, at both ends.
    let after = ["a", "b"].map(marks);
    assert!((0..2).all(|k| before[k] != after[k]));
    // The evaluator's memory is the one that wrote last no more.
    std::fs::write(folder.at("b/ot.marks"), &before[1]).unwrap();
    run(&folder, &services, 3);
    assert_eq!([0, 1].map(|k| from(&services[k])), [[2, 1]; 2]);
    assert_eq!(counted(&services[1], "mpc_memory_copies_total"), 1);
    assert_eq!(counted(&services[0], "mpc_memory_copies_total"), 0);
    run(&folder, &services, 4);
    assert_eq!([0, 1].map(|k| from(&services[k])), [[2, 2]; 2]);
    // The switch.
    let (code, said) = services.remove(1).stop();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("this memory was restored or copied, and kept transfers may have been used since: they are dropped"),
        "{said}"
    );
    folder.replace("b/veil.toml", "keep = true", "keep = false");
    services.push(start("b"));
    let before = marks("b");
    run(&folder, &services, 5);
    run(&folder, &services, 6);
    assert_eq!([0, 1].map(|k| from(&services[k])), [[4, 2], [2, 0]]);
    assert_eq!(marks("b"), before);
}
