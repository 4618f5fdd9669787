//! Refills of stock at their limits, and those whose other party stalls or is killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::SystemTime;

use rustix::process::Signal;
use veil_node::control::{Reply, Request};

use crate::common::Folder;
use crate::common::deployment::{Place, Service, alone, wait};
use crate::stock::{deployment, left, prepared};
use crate::stock_services::{BATCH, asked, cells, refused, service, set, unfinished};

fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_secs()
}

/// Writes down that a home has made stock with another one: so many seconds ago, for so many milliseconds.
fn has_made(folder: &Folder, home: &str, with: &str, ago: u64, milliseconds: u64) {
    let at = seconds() - ago;
    let path = folder.at(home).join("usage.json");
    let text = format!("{{\"{with}\": [{{\"at\": {at}, \"making_ms\": {milliseconds}}}]}}");
    fs::write(&path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Settings of both parties.
fn both(folder: &Folder, more: &str) {
    for (home, with) in [("a", "b"), ("b", "a")] {
        set(folder, home, &format!("[stock.{with}]\n{more}\n"));
    }
}

/// A request beyond a limit is refused with the limit.
#[test]
fn limits_of_hours_minutes_and_disk_are_said() {
    let _alone = alone();
    let folder = deployment();
    let path = folder.at("b").join("veil.toml");
    let settings = fs::read_to_string(&path).unwrap();
    let request = Request::Refill {
        plan: "0".repeat(64),
        cells: 3 * BATCH,
        transfers: false,
        statistical: 40,
        garbles: true,
        generations: Vec::new(),
    };
    let answer = |limit: &str, why: &str| {
        fs::write(&path, &settings).unwrap();
        set(
            &folder,
            "b",
            &format!("[stock.a]\ntarget = \"1e6\"\n{limit}"),
        );
        let b = service(&folder, "b", &[]);
        refused(asked(&folder, ("a", "b"), &request), why);
        b.stop();
    };
    // An hour that is over soon is none of these.
    let hour = seconds() / 3600;
    let [from, to] = [2, 3].map(|later| (hour + later) % 24);
    let closed = format!("this party makes stock from {from} to {to} o'clock, in UTC");
    answer(&format!("hours = [{from}, {to}]"), &closed);
    // A header and 79 pages of 512 cells: two batches.
    answer(
        "disk = \"5 MiB\"",
        "`a` asks for 49152 cells, and this party makes at most 32768 with it now",
    );
    has_made(&folder, "b", "a", 3600, 60_000);
    let over = "this party makes stock for 1 minutes a day, and they are over";
    answer("minutes_per_day = 1", over);
    // A day later there are others: the next thing that is wrong with the request is its plan.
    has_made(&folder, "b", "a", 86_500, 60_000);
    let plan = "the two plan it differently: run the same release on both sides";
    answer("minutes_per_day = 1", plan);
}

/// What services make by themselves ends at the limit, and they have it.
#[test]
fn refills_end_where_the_disk_or_the_minutes_do() {
    let _alone = alone();
    let folder = deployment();
    both(&folder, "target = \"1e6\"\ndisk = \"5 MiB\"");
    {
        let _services = ["a", "b"].map(|name| service(&folder, name, &["--yes"]));
        wait("a full disk", || {
            ["a", "b"].map(|home| cells(&folder, home)) == [2 * BATCH; 2]
        });
    }
    for home in ["a", "b"] {
        let files = fs::read_dir(folder.at(home).join("stock")).unwrap();
        let bytes = files.map(|file| file.unwrap().metadata().unwrap().len());
        assert!(bytes.sum::<u64>() <= 5 << 20);
    }
    for home in ["a", "b"] {
        let path = folder.at(home).join("veil.toml");
        let text = fs::read_to_string(&path).unwrap();
        let text = text.replace("disk = \"5 MiB\"", "minutes_per_day = 1");
        fs::write(&path, text.replace("\"1e6\"", "\"1e8\"")).unwrap();
    }
    // Seconds are left of the minute.
    has_made(&folder, "a", "b", 60, 55_000);
    let [a, _b] = ["a", "b"].map(|name| service(&folder, name, &["--yes"]));
    wait("it ends", || {
        let said = a.said();
        said.contains("making stock stops at the next batch")
            && said.contains("a making of stock ended early")
    });
    let request = Request::Refill {
        plan: "0".repeat(64),
        cells: BATCH,
        transfers: false,
        statistical: 40,
        garbles: false,
        generations: Vec::new(),
    };
    // It rests for a moment first.
    let over = Reply::Refused {
        why: "this party makes stock for 1 minutes a day, and they are over".to_owned(),
    };
    wait("the minute is over", || {
        asked(&folder, ("b", "a"), &request) == over
    });
    wait("both have it", || {
        let all = ["a", "b"].map(|home| cells(&folder, home));
        all[0] == all[1] && all[0] >= 2 * BATCH
    });
}

/// A service that waits for a message for five seconds at most.
fn impatient(folder: &Folder, name: &str) -> Service {
    let options = ["--admin", "127.0.0.1:0", "--yes", "--timeout", "5"];
    Service::start_at(&Place::HERE, folder.path(), name, &options)
}

/// Both have the same cells, more than these.
fn kept(folder: &Folder, before: u64) -> u64 {
    wait("it is kept at both", || {
        let all = ["a", "b"].map(|home| cells(folder, home));
        all[0] == all[1] && all[0] > before
    });
    cells(folder, "a")
}

/// The other party stands still in the middle of a refill: this one says what it has waited for, has its stock as it was, and both keep what was made when the other one is back.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_party_that_stalls_in_a_refill_loses_nothing_for_both() {
    let _alone = alone();
    let folder = deployment();
    prepared(&folder, &["--runs", "1"]);
    let (before, _) = left(&folder);
    both(&folder, "target = \"1e8\"");
    let a = impatient(&folder, "a");
    let b = impatient(&folder, "b");
    wait("some of it", || unfinished(&folder, "b") > 3 * BATCH);
    b.signal(Signal::STOP);
    wait("it is said", || a.said().contains("no stock was made"));
    let said = a.said();
    let line = said.lines().find(|line| line.contains("no stock was made"));
    let line = line.unwrap();
    for part in [
        "nothing happened for ",
        "party 1",
        "how much is kept is asked again: ",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert_eq!(cells(&folder, "a"), before);
    let made = ["a", "b"].map(|home| unfinished(&folder, home));
    assert!(made.iter().all(|cells| *cells >= 3 * BATCH), "{made:?}");
    assert!(a.page("/readyz").starts_with("HTTP/1.1 200"));
    b.signal(Signal::CONT);
    let now = kept(&folder, before);
    // The one that stood still had messages left to take in, the other one had taken in all.
    let most = before + made[0];
    assert!(
        (before + made[0].min(made[1])..=most).contains(&now),
        "{now} of {most}"
    );
}

/// A service that is killed in the middle of a refill: both keep what has passed at both, but for a page that it was writing.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_service_that_is_killed_in_a_refill_loses_a_page_at_most() {
    let _alone = alone();
    for victim in ["a", "b"] {
        let folder = deployment();
        both(&folder, "target = \"1e8\"");
        let [first, second] = ["a", "b"].map(|name| impatient(&folder, name));
        wait("some of it", || unfinished(&folder, "b") > 3 * BATCH);
        let (killed, other) = if victim == "a" {
            (first, second)
        } else {
            (second, first)
        };
        drop(killed);
        wait("it is missed", || {
            let said = other.said();
            said.contains("no stock was made") || said.contains("a making of stock ended early")
        });
        // Whole pages: what was being written is not among them.
        let made = ["a", "b"].map(|home| unfinished(&folder, home));
        let _again = impatient(&folder, victim);
        assert_eq!(kept(&folder, 0), made[0].min(made[1]), "{victim}");
    }
}
