//! Three services on loopback, an owner and a recipient: consent, several jobs at once, keys that are revoked, orderly ends,
//! and what can be seen of all that from outside.

use crate::common;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Folder;
use crate::common::deployment::{
    PATIENCE, Place, Service, alone, approve, at, end, expected, states, submit, take_part,
    take_part_at, wait,
};
use crate::common::homes::{NAMES, homes};
use crate::common::line::Line;
use rustix::process::{Pid, Signal, kill_process};
use veil_link::tls::{ControlError, Identity, control};
use veil_node::Home;

/// A deployment whose services run with `more`.
fn deployment(more: &[&str]) -> (Folder, Vec<Home>, Vec<Service>) {
    let folder = Folder::blocks();
    let homes = homes(folder.path(), &NAMES);
    let start = |name: &&str| Service::start(folder.path(), name, more);
    let services = NAMES[..3].iter().map(start).collect();
    (folder, homes, services)
}

/// The same, and its runs stand still in their handshakes.
fn halting(more: &[&str]) -> (Folder, Vec<Home>, Vec<Service>, Line) {
    let folder = Folder::blocks();
    let homes = homes(folder.path(), &NAMES);
    let mut line = Line::stand(&folder, &homes[0]);
    let start = |name: &&str| Service::start(folder.path(), name, more);
    let services = NAMES[..3].iter().map(start).collect();
    line.learn(&folder);
    line.hold();
    (folder, homes, services, line)
}

#[test]
fn a_job_is_proposed_approved_run_and_seen() {
    let _alone = alone();
    let (folder, homes, services) = deployment(&[]);
    for service in &services {
        // Its own memory. Pages of the program are in the system's cache, and how many of them are counted is a matter of that.
        let own = service.kilobytes("RssAnon:");
        assert!(own < 6 << 10, "an idle service takes {own} kB of its own");
        assert!(service.page("/healthz").starts_with("HTTP/1.1 200"));
        assert!(service.page("/readyz").starts_with("HTTP/1.1 200"));
    }
    let (plan, said) = submit(&folder, "job.toml");
    assert_eq!(said, ["pending"; 3]);
    // A participant that comes before it is approved waits.
    let [ann, eve] = ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name));
    approve(&homes[0], &plan);
    approve(&homes[1], &plan);
    thread::sleep(Duration::from_secs(2));
    assert_eq!(
        states(&folder, &plan)[2],
        "pending",
        "it was not approved there"
    );
    assert!(!folder.at("out-job.toml").join("blocks").exists());
    approve(&homes[2], &plan);
    for (name, child) in [("ann", ann), ("eve", eve)] {
        let (code, said) = end(child);
        assert_eq!(code, Some(0), "{name}: {said}");
    }
    assert!(std::fs::read(folder.at("out-job.toml/blocks")).unwrap() == expected());
    let receipt = std::fs::read_to_string(folder.at("out-job.toml/receipt.json")).unwrap();
    assert!(
        receipt.contains(&plan) && receipt.contains("vw1:"),
        "{receipt}"
    );
    wait("done", || states(&folder, &plan) == ["done"; 3]);
    let trace: serde_json::Value = serde_json::from_str(&receipt).unwrap();
    let trace = trace["trace"].as_str().unwrap().to_owned();
    for service in &services {
        assert!((service.metric("mpc_runs_total{outcome=\"done\"}") - 1.0).abs() < 0.1);
        assert!((service.metric("mpc_job_state{state=\"done\"}") - 1.0).abs() < 0.1);
        assert!(service.metric("mpc_rounds_total{phase=\"layers\"}") > 10.0);
        let sent = "mpc_bytes_total{peer=\"party\",direction=\"sent\"}";
        assert!(service.metric(sent) > 1e6, "{}", service.page("/metrics"));
        let received = "mpc_bytes_total{peer=\"party\",direction=\"received\"}";
        assert!(service.metric(received) > 1e6);
        for message in [
            "peer=\"party\",direction=\"sent\"",
            "peer=\"party\",direction=\"received\"",
            "peer=\"owner\",direction=\"received\"",
            "peer=\"recipient\",direction=\"sent\"",
        ] {
            let name = format!("mpc_messages_total{{{message}}}");
            assert!(service.metric(&name) > 0.0, "{name}");
        }
        assert!(service.metric("mpc_round_wait_seconds_count") > 10.0);
        assert!(service.metric("mpc_round_wait_seconds_sum") > 0.0);
        assert!(service.metric("mpc_device_busy_seconds_total") > 0.0);
        let ratio = service.metric("mpc_device_busy_ratio");
        assert!(ratio > 0.0 && ratio <= 1.0, "{ratio}");
        assert!(
            !service.page("/metrics").contains(&plan[..16]),
            "no job is a label"
        );
    }
    let jobs: serde_json::Value =
        serde_json::from_str(&folder.succeed("jobs --home eve --json")).unwrap();
    for (k, party) in NAMES[..3].iter().enumerate() {
        assert_eq!(jobs[k]["party"], *party);
        let job = &jobs[k]["jobs"][0];
        assert_eq!(job["plan"], plan);
        assert_eq!(job["state"], "done");
        assert_eq!(job["trace"], trace);
    }
    for (service, home) in services.into_iter().zip(&homes) {
        let (code, said) = service.stop();
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains(&trace), "the run is named: {said}");
        assert!(said.contains(&plan[..16]), "{said}");
        // The owner's key is the one secret that this test knows.
        assert!(!said.contains("000102030405"), "{said}");
        home.log().verify(&[]).unwrap();
        let mut kinds = Vec::new();
        home.log().for_each(|entry| kinds.push(entry.kind)).unwrap();
        assert!(
            kinds.ends_with(&["run_started".into(), "run_ended".into()]),
            "{kinds:?}"
        );
    }
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn two_jobs_at_once_one_fails_and_a_stranger_knocks() {
    let _alone = alone();
    let (folder, homes, services, line) = halting(&["--yes"]);
    let job = std::fs::read_to_string(folder.at("job.toml")).unwrap();
    folder.write("other.toml", job.replace("rows = 4096", "rows = 2048"));
    let (good, _) = submit(&folder, "job.toml");
    let (bad, _) = submit(&folder, "other.toml");
    let parts: Vec<Child> = ["ann", "eve"]
        .map(|name| take_part(&folder, "job.toml", name))
        .into();
    let mut doomed = take_part(&folder, "other.toml", "ann");
    let victim = take_part(&folder, "other.toml", "eve");
    // At all parties: one that has not met the owner yet waits for it until the time is over.
    wait("it runs", || {
        states(&folder, &bad).iter().all(|state| state == "running")
    });
    doomed.kill().unwrap();
    doomed.wait().unwrap();
    let mut killed = victim;
    killed.kill().unwrap();
    killed.wait().unwrap();
    let stranger = Identity::generate().unwrap();
    let address = homes[0].settings().address.clone().unwrap();
    let pinned = homes[0].identity().fingerprint();
    let asked = control(
        &stranger,
        pinned,
        &address,
        b"{}",
        Instant::now() + Duration::from_secs(PATIENCE),
    );
    assert!(
        matches!(asked, Err(ControlError::OurKey { .. })),
        "{asked:?}"
    );
    line.let_go();
    for child in parts {
        let (code, said) = end(child);
        assert_eq!(code, Some(0), "{said}");
    }
    assert!(std::fs::read(folder.at("out-job.toml/blocks")).unwrap() == expected());
    wait("both are over", || {
        states(&folder, &good) == ["done"; 3] && states(&folder, &bad) == ["failed"; 3]
    });
    let text = folder.succeed("jobs --home eve");
    // A party that had sent nothing yet tells no bytes: "failed: " and not "failed, sent 12 kB: ".
    assert!(
        text.contains("failed")
            && ["ann", "eve"]
                .iter()
                .any(|who| text.contains(&format!("is `{who}`"))),
        "it is named who was lost: {text}"
    );
    assert!(services[0].metric("mpc_refused_connections_total{outcome=\"stranger\"}") >= 1.0);
    // What failed runs when it is asked for again.
    thread::sleep(Duration::from_secs(2));
    let (_, said) = submit(&folder, "other.toml");
    assert_eq!(said, ["accepted"; 3]);
    for child in ["ann", "eve"].map(|name| take_part(&folder, "other.toml", name)) {
        let (code, said) = end(child);
        assert_eq!(code, Some(0), "{said}");
    }
}

#[test]
fn a_revoked_member_is_out_at_once_also_of_what_runs() {
    let _alone = alone();
    let (folder, homes, services, _line) = halting(&["--yes"]);
    let (plan, _) = submit(&folder, "job.toml");
    let parts = ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name));
    wait("it runs", || {
        states(&folder, &plan)
            .iter()
            .all(|state| state == "running")
    });
    homes[1].revoke("eve", "left the project").unwrap();
    for child in parts {
        let (code, said) = end(child);
        // The owner may have sent all it had before.
        assert!(matches!(code, Some(0 | 5)), "{said}");
    }
    assert!(!folder.at("out-job.toml/blocks").exists());
    wait("it is said", || {
        services[1].said().contains("was revoked or replaced")
    });
    let asked = folder.veil("jobs --home eve --at b");
    assert_eq!(asked.status.code(), Some(4));
    let said = common::text(&asked.stderr);
    assert!(said.contains("does not accept our key"), "{said}");
    folder.succeed("jobs --home eve --at a");
    let looked = common::text(&folder.veil("doctor --home eve").stdout);
    assert!(
        looked.contains(
            "we are no member there, were revoked, or have a new key that it was not told"
        ) && looked.contains("→ was our key rotated, and not announced there?"),
        "{looked}"
    );
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_service_that_is_stopped_gives_up_after_its_grace() {
    let _alone = alone();
    let (folder, _homes, mut services, _line) = halting(&["--yes", "--grace", "0"]);
    let (plan, _) = submit(&folder, "job.toml");
    let parts = ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name));
    wait("it runs", || {
        states(&folder, &plan)
            .iter()
            .all(|state| state == "running")
    });
    let (code, said) = services.remove(2).stop();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("1 job gave up"), "{said}");
    let [_, eve] = parts.map(end);
    assert_eq!(eve.0, Some(5), "{}", eve.1);
    for service in services {
        wait("the others go on", || {
            service.page("/readyz").starts_with("HTTP/1.1 200")
        });
        let (code, said) = service.stop();
        assert_eq!(code, Some(0), "{said}");
    }
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_second_signal_ends_a_service_that_waits_for_running_jobs() {
    let _alone = alone();
    let folder = Folder::blocks();
    let _homes = homes(folder.path(), &NAMES);
    // Long enough for a party to be halted in the middle; no participant gives up, nor is the grace over, before the test is.
    folder.replace("job.toml", "rows = 4096", "rows = 65536");
    let options = "--admin 127.0.0.1:0 --wait 600 --timeout 600 --yes --net wan --grace 600";
    let options: Vec<&str> = options.split(' ').collect();
    let start = |name: &&str| Service::start_at(&Place::HERE, folder.path(), name, &options);
    let [first, second, halted]: [Service; 3] = NAMES[..3]
        .iter()
        .map(start)
        .collect::<Vec<_>>()
        .try_into()
        .ok()
        .unwrap();
    let (plan, _) = submit(&folder, "job.toml");
    let mut watch = Place::HERE
        .veil(folder.path())
        .args(["submit", "job.toml", "--home", "eve", "--watch"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("c: meeting")));
    // Who watches may go; the job does not.
    kill_process(Pid::from_child(&watch), Signal::TERM).unwrap();
    let (code, said) = end(watch);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the job goes on"), "{said}");
    let patient = ["--timeout", "600"];
    let mut parts =
        ["ann", "eve"].map(|name| take_part_at(&Place::HERE, &folder, "job.toml", name, &patient));
    let running = |service: &Service| {
        service.metric("mpc_job_state{state=\"running\"}") > 0.5
            && service.metric("mpc_rounds_total{phase=\"layers\"}") > 0.5
    };
    wait("it runs", || running(&first) && running(&second));
    halted.signal(Signal::STOP);
    first.signal(Signal::TERM);
    wait("it is stopping", || {
        first.said().contains("running jobs have some time to end")
    });
    assert!(first.page("/readyz").starts_with("HTTP/1.1 503"));
    assert!(running(&first), "the job has its time: {}", first.said());
    first.signal(Signal::TERM);
    let (code, said) = first.ended();
    assert_eq!(code, Some(1), "{said}");
    assert!(
        !said.contains("given up") && !said.contains("gave up"),
        "{said}"
    );
    // The others hear of it from the connection.
    wait("the others notice", || !running(&second));
    let text = folder.succeed("jobs --home eve --at b");
    assert!(
        text.contains(&plan[..16]) && text.contains("failed"),
        "{text}"
    );
    for part in &mut parts {
        // A participant that waits for the halted one has no reason to end before it.
        let _ = part.kill();
        part.wait().unwrap();
    }
    assert!(!folder.at("out-job.toml/blocks").exists());
}

#[test]
fn proposals_that_are_wrong_are_refused_with_a_reason() {
    let _alone = alone();
    let (folder, homes, _services) = deployment(&["--yes"]);
    let job = std::fs::read_to_string(folder.at("job.toml")).unwrap();
    let refused = |name: &str, text: String, arguments: &str, part: &str| {
        folder.write(name, text);
        let output = folder.veil(&format!("submit {name} --home eve {arguments}"));
        let said = common::text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(part), "{said}");
    };
    refused("lanes.toml", job.clone(), "--lanes 100", "takes 1 to 64");
    let without = job.replace("\"eve\"", "\"adam\"");
    refused("without.toml", without, "", "`eve` has no part in the job");
    homes[0].revoke("ann", "").unwrap();
    // The party that no longer knows the owner says so.
    thread::sleep(Duration::from_secs(1));
    let stranger = "`ann`, which takes part in the job, is no member of this party";
    refused("job.toml", job, "", stranger);
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn members_that_change_reach_a_job_that_is_being_met() {
    let _alone = alone();
    let folder = Folder::blocks();
    let homes = homes(folder.path(), &NAMES);
    let job = std::fs::read_to_string(folder.at("job.toml")).unwrap();
    for rows in ["2048", "1024"] {
        folder.write(&format!("{rows}.toml"), job.replace("4096", rows));
    }
    // By hand: another address, where no service is.
    let address = homes[0].settings().address.clone().unwrap();
    let nowhere = common::homes::free(1)[0].to_string();
    folder.replace("c/members.toml", &address, &nowhere);
    let start = |name: &&str| Service::start(folder.path(), name, &["--yes"]);
    let services: Vec<Service> = NAMES[..3].iter().map(start).collect();
    // A service that still plans the job knows the new key before it meets.
    let meets = |service: &Service| {
        let said = service.said();
        said.matches("waiting for the participants").count()
    };
    let met = |job: &str| {
        let before: Vec<_> = services.iter().map(meets).collect();
        let (plan, _) = submit(&folder, job);
        wait("it is met", || {
            services
                .iter()
                .map(meets)
                .zip(&before)
                .all(|(now, &before)| now > before)
        });
        assert_eq!(states(&folder, &plan), ["meeting"; 3]);
        plan
    };
    let done = |job: &str| {
        for child in ["ann", "eve"].map(|name| take_part(&folder, job, name)) {
            let (code, said) = end(child);
            assert_eq!(code, Some(0), "{said}");
        }
    };
    met("job.toml");
    // Half edited, it is said once what is wrong, and what was read before holds.
    let members = std::fs::read_to_string(folder.at("c/members.toml")).unwrap();
    folder.write("c/members.toml", format!("{members}\n[[member"));
    wait("it is said", || {
        services[2].said().contains("cannot be read again")
    });
    thread::sleep(Duration::from_secs(2));
    // Twice, if it was seen half written.
    assert!(services[2].said().matches("cannot be read again").count() <= 2);
    folder.write("c/members.toml", members.replace(&nowhere, &address));
    done("job.toml");

    // A new key.
    met("2048.toml");
    folder.succeed("identity rotate --home ann");
    // A participant that met them before would have to come again.
    let anew = |service: &Service| service.said().contains("are met anew");
    wait("they meet anew", || services.iter().all(anew));
    done("2048.toml");

    // A member leaves.
    let plan = met("1024.toml");
    homes[1].revoke("eve", "left the project").unwrap();
    let here = || at(&folder, "ann", "b", &plan).unwrap();
    wait("it is given up", || here().state == "failed");
    assert!(
        here().why.contains("`eve`, is no member here"),
        "{}",
        here().why
    );
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_rotated_key_is_taken_and_the_old_one_is_out() {
    let _alone = alone();
    let (folder, homes, services) = deployment(&["--yes"]);
    let old = homes[3].identity();
    folder.succeed("identity rotate --home ann");
    for (service, home) in services.iter().zip(&homes) {
        wait("it is said", || {
            service.said().contains("a member has a new key")
        });
        let address = home.settings().address.clone().unwrap();
        let pinned = home.identity().fingerprint();
        let until = Instant::now() + Duration::from_secs(PATIENCE);
        let asked = control(&old, pinned, &address, b"{}", until);
        assert!(
            matches!(asked, Err(ControlError::OurKey { .. })),
            "{asked:?}"
        );
    }
    // The recipient only meets parties; the owner comes with its new key.
    submit(&folder, "job.toml");
    for child in ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name)) {
        let (code, said) = end(child);
        assert_eq!(code, Some(0), "{said}");
    }
    assert!(std::fs::read(folder.at("out-job.toml/blocks")).unwrap() == expected());
}
