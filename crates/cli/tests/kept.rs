//! Two services on loopback that garble one job after another: every one after the first begins with the oblivious transfers that the one
//! before has left, until one of the services begins anew.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod common;

use common::Folder;
use common::deployment::{Service, expected, submit, succeed, take_part, turn, wait};
use common::homes::homes;

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
fn services_keep_transfers_for_the_next_job() {
    let _turn = turn();
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
    // Nothing of it is on a disk: who begins anew has nothing.
    let (code, said) = services.remove(1).stop();
    assert_eq!(code, Some(0), "{said}");
    services.push(start("b"));
    run(&folder, &services, 4);
    assert_eq!([0, 1].map(|k| from(&services[k])), [[2, 2], [1, 0]]);
    run(&folder, &services, 5);
    assert_eq!([0, 1].map(|k| from(&services[k])), [[2, 3], [1, 1]]);
}
