//! Deployments on bad days: bytes that change on the way, keys that are not whose they should be, disks that are full, clocks
//! that are wrong, tables that are not as declared, and logs that were altered.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::common::deployment::{
    PATIENT, Place, Service, alone, at, end, expected, states, submit, take_part, take_part_at,
    wait,
};
use crate::common::homes::{NAMES, homes};
use crate::common::relay::{Fault, Relay};
use crate::common::{Folder, text};
use veil_node::Home;

/// A folder with the job of many rounds, and a home for every participant.
fn site() -> (Folder, Vec<Home>) {
    let folder = Folder::blocks();
    let homes = homes(folder.path(), &NAMES);
    (folder, homes)
}

fn serve(folder: &Folder, name: &str) -> Service {
    Service::start(folder.path(), name, &["--yes"])
}

/// The job runs at every participant, and opens what it should.
fn computes(folder: &Folder) -> String {
    let (plan, said) = submit(folder, "job.toml");
    assert_eq!(said, ["accepted"; 3]);
    for part in ["ann", "eve"].map(|name| take_part(folder, "job.toml", name)) {
        let (code, said) = end(part);
        assert_eq!(code, Some(0), "{said}");
    }
    assert!(fs::read(folder.at("out-job.toml/blocks")).unwrap() == expected());
    wait("done", || states(folder, &plan) == ["done"; 3]);
    plan
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn bytes_that_are_replayed_changed_or_lost_on_the_way_end_the_run_and_open_nothing() {
    let _alone = alone();
    let (folder, homes) = site();
    // Party c dials a and sends it what every gate needs, and a relay is in between.
    let relay = Relay::on_the_line(&folder, "c", &homes[0]);
    let services = NAMES[..3].iter().map(|name| serve(&folder, name));
    let services: Vec<Service> = services.collect();
    for fault in [Fault::Replayed, Fault::Changed, Fault::LeftOut, Fault::Cut] {
        // Handshakes are shorter, and the whole is some megabytes.
        relay.will(fault, 100_000);
        let (plan, _) = submit(&folder, "job.toml");
        let [ann, eve] = ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name));
        let (code, said) = end(eve);
        assert_eq!(code, Some(5), "{fault:?}: {said}");
        let (code, said) = end(ann);
        assert!(matches!(code, Some(0 | 5)), "{fault:?}: {said}");
        assert!(relay.did(), "{fault:?}");
        wait("all participants give up", || {
            states(&folder, &plan) == ["failed"; 3]
        });
        assert!(!folder.at("out-job.toml/blocks").exists(), "{fault:?}");
        // The end that gets them says whose bytes they are.
        let why = at(&folder, "a", "a", &plan).unwrap().why;
        assert!(why.contains("party 2 is `c`"), "{fault:?}: {why}");
        println!("{fault:?}: {why}");
    }
    // What was said once means nothing when it is said again.
    let longest = relay.kept().into_iter().max_by_key(Vec::len).unwrap();
    let mut line = TcpStream::connect(homes[0].settings().address.as_ref().unwrap()).unwrap();
    line.set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    // It may be hung up on before it has said all.
    let _ = line.write_all(&longest);
    let mut answer = Vec::new();
    let _ = line.read_to_end(&mut answer);
    // A hello, a certificate, an alert: nothing that depends on a share.
    assert!(answer.len() < 8 << 10, "{} bytes", answer.len());
    computes(&folder);
    for service in services {
        let (code, said) = service.stop();
        assert_eq!(code, Some(0), "{said}");
    }
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn keys_that_were_exchanged_are_found_by_their_participant() {
    let _alone = alone();
    let (folder, homes) = site();
    let exchange = |home: &str, [x, y]: [usize; 2]| {
        let path = folder.at(home).join("members.toml");
        let [x, y] = [x, y].map(|index| homes[index].identity().fingerprint().to_string());
        let before = fs::read_to_string(&path).unwrap();
        let after = before.replace(&x, "X").replace(&y, &x).replace('X', &y);
        assert_ne!(before, after);
        fs::write(&path, after).unwrap();
        before
    };
    // At one who is called: a's service takes the owner for the recipient.
    let good = exchange("a", [3, 4]);
    let services = ["a", "b", "c"].map(|name| serve(&folder, name));
    submit(&folder, "job.toml");
    let parts = ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name));
    for (code, said) in parts.map(end) {
        assert_eq!(code, Some(5), "{said}");
        assert!(
            said.contains("pins our key for another participant"),
            "{said}"
        );
    }
    // What is left of that meeting goes with the services.
    drop(services);
    fs::write(folder.at("a/members.toml"), good).unwrap();
    let _services = ["a", "b", "c"].map(|name| serve(&folder, name));
    // At one who dials.
    let good = exchange("eve", [1, 2]);
    folder.succeed("submit job.toml --home ann");
    let (code, said) = end(take_part(&folder, "job.toml", "eve"));
    assert_eq!(code, Some(4), "{said}");
    assert!(
        said.contains("shows the key") && said.contains("pinned is"),
        "{said}"
    );
    assert!(said.contains("is `b`") || said.contains("is `c`"), "{said}");
    fs::write(folder.at("eve/members.toml"), good).unwrap();
    computes(&folder);
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn the_old_holder_of_a_key_that_was_replaced_is_out() {
    let _alone = alone();
    let (folder, _homes) = site();
    let _services: Vec<Service> = NAMES[..3].iter().map(|name| serve(&folder, name)).collect();
    // A thief has a copy of the home of before.
    let mut copy = Command::new("cp");
    copy.args(["-a", "ann", "thief"]).current_dir(folder.path());
    assert!(copy.status().unwrap().success());
    folder.succeed("identity rotate --home ann");
    submit(&folder, "job.toml");
    let (code, said) = end(take_part(&folder, "job.toml", "thief"));
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("does not accept our key"), "{said}");
    computes(&folder);
}

#[test]
fn a_disk_that_is_full_is_named_and_leaves_no_half_result() {
    let _alone = alone();
    let (folder, _homes) = site();
    let _services: Vec<Service> = NAMES[..3].iter().map(|name| serve(&folder, name)).collect();
    let small = folder.at("out-job.toml");
    fs::create_dir(&small).unwrap();
    // Less than the 64 kB of the result.
    let place = Place::small_disk(&small, 32, None);
    if !place.works("a recipient's full disk") {
        return;
    }
    let (plan, _) = submit(&folder, "job.toml");
    let ann = take_part(&folder, "job.toml", "ann");
    let eve = take_part_at(&place, &folder, "job.toml", "eve", &PATIENT[2..]);
    let (code, said) = end(eve);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("blocks") && said.contains("space"), "{said}");
    end(ann);
    // The parties may be done when the recipient writes the last of it.
    wait("it is over", || {
        let states = states(&folder, &plan);
        states
            .iter()
            .all(|state| ["done", "failed"].contains(&state.as_str()))
    });
    // It gives up with a code and no reason; a party that hears that code from another party first names that one.
    let given_up: Vec<String> = (NAMES[..3].iter())
        .map(|party| at(&folder, party, party, &plan).unwrap())
        .filter(|at| at.state != "done")
        .map(|at| at.why)
        .collect();
    assert!(
        given_up.is_empty() || given_up.iter().any(|why| why.contains("is `eve`")),
        "{given_up:?}"
    );
    assert!(
        given_up.iter().all(|why| why.contains("gave up the run")),
        "{given_up:?}"
    );
    assert_eq!(
        fs::read_dir(&small).unwrap().count(),
        0,
        "it was another disk"
    );
    computes(&folder);
}

#[test]
fn a_party_whose_disk_is_full_takes_no_jobs_and_says_so() {
    let _alone = alone();
    let (folder, _homes) = site();
    folder.replace("c/veil.toml", "\"1 GiB\"", "\"64 KiB\"");
    let home = folder.at("small");
    fs::create_dir(&home).unwrap();
    let place = Place::small_disk(&home, 256, Some(&folder.at("c")));
    if !place.works("a party's full disk") {
        return;
    }
    let others = NAMES[..2].iter().map(|name| serve(&folder, name));
    let _others: Vec<Service> = others.collect();
    let options = [&["--yes", "--admin", "127.0.0.1:0"], &PATIENT[..]].concat();
    let service = Service::start_at(&place, folder.path(), "small", &options);
    assert!(service.page("/readyz").starts_with("HTTP/1.1 200"));
    // Its disk, as its process sees it.
    let filler = format!("/proc/{}/root{}/filler", service.id(), home.display());
    let filler = PathBuf::from(filler);
    let mut file = fs::File::create(&filler).unwrap();
    while file.write(&[0; 4096]).is_ok_and(|length| length > 0) {}
    let refused = folder.veil("submit job.toml --home eve");
    let said = text(&refused.stderr) + &text(&refused.stdout);
    assert_eq!(refused.status.code(), Some(3), "{said}");
    // Neither how much there is nor where.
    assert!(
        said.contains("no room: this party keeps what is left of its disk for jobs that run; its operator is told\n"),
        "{said}"
    );
    let page = service.page("/readyz");
    assert!(page.starts_with("HTTP/1.1 503"), "{page}");
    assert!(
        page.contains("log.jsonl: no storage space")
            && page.contains("0 MiB free, 0 MiB kept for running jobs"),
        "{page}"
    );
    wait("it is in the log lines, once", || {
        service.said().matches("kept for running jobs").count() == 1
    });
    assert!(service.metric("mpc_disk_free_bytes") < 65536.0);
    drop(file);
    fs::remove_file(&filler).unwrap();
    wait("it is ready", || {
        service.page("/readyz").starts_with("HTTP/1.1 200")
            && service.said().contains("ready again")
    });
    // The others accepted it, and go on when it is proposed again.
    computes(&folder);
    let (code, said) = service.stop();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn shares_that_do_not_fit_on_the_disk_are_no_dataset() {
    let folder = Folder::wages();
    folder.replace(
        "wages.toml",
        "version = 1\n",
        "version = 1\ndurable = true\n",
    );
    folder.replace("wages.toml", "rows = 2", "rows = 20000");
    let mut wages = String::from("wage\n");
    for n in 0..20_000 {
        wages += ["2000\n", "2001\n", "2002\n"][n % 3];
    }
    folder.write("ann.csv", wages);
    let stores = folder.at(".veil-run");
    fs::create_dir(&stores).unwrap();
    let place = Place::small_disk(&stores, 300, None);
    if !place.works("a full disk for shares") {
        return;
    }
    let output = place
        .veil(folder.path())
        .args(["run", "wages.toml"])
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains("disk is full") || said.contains("space"),
        "{said}"
    );
    assert!(said.contains("shares"), "{said}");
    assert_eq!(text(&output.stdout), "");
    // With room, the owners' tables are read again.
    let printed = folder.succeed("stats wages.toml --check");
    assert!(printed.contains("mean wage"), "{printed}");
}

#[test]
fn an_owner_whose_table_has_other_rows_than_declared_calls_no_party() {
    let folder = Folder::wages();
    homes(folder.path(), &["ann", "bob", "carol"]);
    for (table, part) in [
        ("wage\n3100\n", "has 1 row"),
        ("wage\n3100\n2900\n2800\n", "has 3 rows"),
    ] {
        folder.write("ann.csv", table);
        let output = folder.veil("party wages.toml --home ann --yes --wait 1");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(
            said.contains("ann.csv") && said.contains("declares 2 for block `north`"),
            "{said}"
        );
        assert!(said.contains(part), "{said}");
        assert!(!said.contains("waiting for the others"), "{said}");
    }
}

/// A library that sets the clock of a program a day ahead; `None` without a compiler for it.
fn a_day_ahead(folder: &Folder) -> Option<PathBuf> {
    folder.write(
        "ahead.c",
        "#define _GNU_SOURCE\n#include <sys/syscall.h>\n#include <time.h>\n#include <unistd.h>\n\
         int clock_gettime(clockid_t which, struct timespec *time) {\n\
         int failed = syscall(SYS_clock_gettime, which, time);\n\
         if (!failed && which == CLOCK_REALTIME) time->tv_sec += 86400;\n\
         return failed; }\n",
    );
    let library = folder.at("ahead.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o", "ahead.so", "ahead.c"])
        .current_dir(folder.path())
        .output();
    match built {
        Ok(output) if output.status.success() => Some(library),
        other => {
            eprintln!("SKIPPED a clock that is off by a day: no C compiler: {other:?}");
            None
        }
    }
}

#[test]
fn a_clock_that_is_off_by_a_day_is_named_and_stops_nothing() {
    let _alone = alone();
    let (folder, homes) = site();
    let Some(library) = a_day_ahead(&folder) else {
        return;
    };
    let place = Place::through(&["env", &format!("LD_PRELOAD={}", library.display())]);
    let options = [&["--yes"], &PATIENT[..]].concat();
    let wrong = Service::start_at(&place, folder.path(), "b", &options);
    let _right = ["a", "c"].map(|name| serve(&folder, name));
    let looked = folder.veil("doctor --home eve");
    let said = text(&looked.stdout);
    let line = said.lines().find(|line| line.contains("member b")).unwrap();
    assert!(
        line.contains("note")
            && line.contains("clock is 2")
            && line.contains("hours ahead of ours"),
        "{said}"
    );
    for other in ["member a", "member c"] {
        let line = said.lines().find(|line| line.contains(other)).unwrap();
        assert!(!line.contains("clock"), "{said}");
    }
    assert!(said.contains("timedatectl"), "{said}");
    computes(&folder);
    let (code, said) = wrong.stop();
    assert_eq!(code, Some(0), "{said}");
    // The log is in the order of its numbers, whatever the times are.
    homes[1].log().verify(&[]).unwrap();
}

#[test]
fn a_log_of_a_deployment_that_was_changed_is_named_by_its_line() {
    let _alone = alone();
    let (folder, _homes) = site();
    let services: Vec<Service> = NAMES[..3].iter().map(|name| serve(&folder, name)).collect();
    computes(&folder);
    drop(services);
    for home in ["a", "ann", "eve"] {
        folder.succeed(&format!("log verify --home {home}"));
        let path = folder.at(home).join("log.jsonl");
        let good = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = good.lines().collect();
        let last = lines.len();
        assert!(
            lines[last - 1].contains("run_ended") || home == "eve",
            "{good}"
        );
        let started = lines.iter().position(|line| line.contains("run_started"));
        let started = started.unwrap();
        let join = |lines: &[&str]| lines.join("\n") + "\n";
        let mut exchanged = lines.clone();
        exchanged.swap(started, started - 1);
        let mut doubled = lines.clone();
        doubled.insert(started, lines[started]);
        let mut without = lines.clone();
        without.remove(started);
        let cases: [(&str, String, String); 5] = [
            (
                "edited",
                good.replace("\"job\":\"blocks\"", "\"job\":\"clocks\""),
                format!("line {}", started + 1),
            ),
            ("exchanged", join(&exchanged), format!("line {started}")),
            ("doubled", join(&doubled), format!("line {}", started + 2)),
            ("removed", join(&without), format!("line {}", started + 1)),
            ("cut off", join(&lines[..last - 1]), format!("{}", last - 1)),
        ];
        for (what, touched, part) in cases {
            assert_ne!(touched, good, "{what}");
            fs::write(&path, touched).unwrap();
            let output = folder.veil(&format!("log verify --home {home}"));
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(4), "{home}, {what}: {said}");
            assert!(
                said.contains(&part),
                "{home}, {what}: no `{part}` in {said}"
            );
        }
        fs::write(&path, good).unwrap();
        folder.succeed(&format!("log verify --home {home}"));
    }
}
