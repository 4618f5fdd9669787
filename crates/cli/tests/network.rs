//! A deployment over networks: an address for every participant, nothing open but three ports, lines that are cut, joined again and
//! narrow.

use crate::common;
use std::net::SocketAddr;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Folder;
use crate::common::deployment::{
    self, At, Service, alone, end, expected, submit_at, take_part_at, wait,
};
use crate::common::homes::{NAMES, homes_at};
use crate::common::line::Line;
use crate::common::network::Network;
use veil_node::Home;

/// A deployment in a network, and a relay on the line from c to a. What is declared first goes first.
struct Site {
    services: Vec<Service>,
    line: Line,
    homes: Vec<Home>,
    folder: Folder,
    network: Network,
}

impl Site {
    /// Services with these options; `None` where there are no network namespaces.
    fn new(test: &str, options: &[&str]) -> Option<Self> {
        let network = Network::new(test, &NAMES)?;
        let folder = Folder::blocks();
        let addresses: Vec<SocketAddr> = NAMES.iter().map(|name| network.address(name)).collect();
        let homes = homes_at(folder.path(), &NAMES, &addresses);
        let mut line = network.within("c", || Line::stand(&folder, &homes[0]));
        let start = |name: &&str| {
            let admin = format!("{}:9464", network.address(name).ip());
            let usual = ["--yes", "--wait", "180", "--admin", &admin];
            let options = [&usual, options].concat();
            Service::start_at(&network.place(name), folder.path(), name, &options)
        };
        let services = NAMES[..3].iter().map(start).collect();
        network.within("c", || line.learn(&folder));
        Some(Site {
            services,
            line,
            homes,
            folder,
            network,
        })
    }

    fn submit(&self) -> String {
        submit_at(&self.network.place("eve"), &self.folder, "job.toml").0
    }

    fn take_part(&self, name: &str, more: &[&str]) -> Child {
        let place = self.network.place(name);
        take_part_at(&place, &self.folder, "job.toml", name, more)
    }

    /// How the job is at a party, as the party itself says it.
    fn at(&self, party: &str, plan: &str) -> At {
        let look = || deployment::at(&self.folder, party, party, plan).unwrap();
        self.network.within(party, look)
    }

    /// Waits until a run has come to the first rows, and cannot go on.
    fn under_way(&mut self, plan: &str) {
        let (folder, network) = (&self.folder, &self.network);
        let look = || network.within("a", || deployment::at(folder, "a", "a", plan).unwrap());
        self.line.reach("rows", look);
    }

    /// The job runs, and opens what it should.
    fn computes(&self, more: &[&str]) {
        // A failed one must have ended before it is proposed again.
        let plan = self.submit();
        let parts = ["ann", "eve"].map(|name| self.take_part(name, more));
        for part in parts {
            let (code, said) = end(part);
            assert_eq!(code, Some(0), "{said}");
        }
        assert!(std::fs::read(self.folder.at("out-job.toml/blocks")).unwrap() == expected());
        for party in &NAMES[..3] {
            wait("done", || self.at(party, &plan).state == "done");
        }
    }
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn three_ports_are_all_that_a_deployment_needs() {
    let _alone = alone();
    let Some(site) = Site::new("three ports", &[]) else {
        return;
    };
    let network = &site.network;
    for party in &NAMES[..3] {
        let port = network.address(party);
        let admin = SocketAddr::new(port.ip(), 9464);
        assert!(network.reaches(party, admin), "the admin page is served");
        for other in NAMES.iter().filter(|other| *other != party) {
            assert!(network.reaches(other, port), "{other} reaches {party}");
            assert!(
                !network.reaches(other, admin),
                "{other} reaches {party}'s admin page"
            );
        }
    }
    for (from, to) in [("ann", "eve"), ("eve", "ann"), ("a", "ann"), ("c", "eve")] {
        let address = network.address(to);
        assert!(!network.reaches(from, address), "{from} reaches {to}");
    }
    site.computes(&[]);
    for (service, home) in site.services.into_iter().zip(&site.homes) {
        let (code, said) = service.stop();
        assert_eq!(code, Some(0), "{said}");
        home.log().verify(&[]).unwrap();
    }
}

/// An owner and a recipient at home: parties see one address for both, and can call neither.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn who_is_behind_an_address_translation_takes_part_by_calling_out() {
    let _alone = alone();
    let Some(mut site) = Site::new("an address translation", &[]) else {
        return;
    };
    let (home, relays) = site.network.behind("ann");
    let plan = site.submit();
    let parts = ["ann", "eve"].map(|name| {
        let options = ["--timeout", "60"];
        take_part_at(&home, &site.folder, "job.toml", name, &options)
    });
    for part in parts {
        let (code, said) = end(part);
        assert_eq!(code, Some(0), "{said}");
    }
    assert!(std::fs::read(site.folder.at("out-job.toml/blocks")).unwrap() == expected());
    for (party, relay) in NAMES[..3].iter().zip(relays) {
        wait("done", || site.at(party, &plan).state == "done");
        // Both came through here, or a party would have seen the private address.
        assert!(relay.kept().len() >= 2, "{party}");
    }
    // The members of a home ask as well, by the same way.
    let jobs = home
        .veil(site.folder.path())
        .args(["jobs", "--home", "ann", "--at", "b"])
        .output()
        .unwrap();
    assert!(jobs.status.success(), "{}", common::text(&jobs.stderr));
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_line_that_is_cut_is_named_at_both_ends_and_works_again_when_it_is_joined() {
    const TIMEOUT: u64 = 10;
    let _alone = alone();
    let timeout = TIMEOUT.to_string();
    let options = ["--timeout", &timeout];
    let Some(mut site) = Site::new("a line that is cut", &options) else {
        return;
    };
    site.line.hold();
    let plan = site.submit();
    let [ann, eve] = ["ann", "eve"].map(|name| site.take_part(name, &options));
    site.under_way(&plan);
    // Party b is alone from now on; no peer closes anything.
    site.network.join("b", false);
    site.line.let_go();
    let cut = Instant::now();
    for party in &NAMES[..3] {
        wait("it is given up", || site.at(party, &plan).state == "failed");
    }
    // Twice the time-out for a party that waits for one that waits, and time for asking: `veil jobs` tries the party that is
    // cut off as well. TCP alone would take a quarter of an hour.
    let took = cut.elapsed();
    assert!(took < Duration::from_secs(2 * TIMEOUT + 60), "{took:?}");
    // Each party waits for the one before it: the two ends of the line that is cut name each other, and who waits for whom
    // leads there from the third.
    for (party, awaited) in [("a", 2), ("b", 0), ("c", 1)] {
        let why = site.at(party, &plan).why;
        let waits = format!("waiting for party {awaited}");
        let who = format!("party {awaited} is `{}`", NAMES[awaited]);
        let named = why.contains(&waits) && why.contains(&who);
        let ended = why.contains("the connection ended before the run did");
        // A party that waits for one that has given up may see that line end first. One that is cut off from all others may
        // notice first that the network gave up one of its other lines.
        let first = ended && (why.contains(&who) || party == "b");
        assert!(named || first, "{party}: {why}");
    }
    let (code, said) = end(eve);
    assert_eq!(code, Some(5), "{said}");
    // An owner that had sent all it has is done.
    let (code, said) = end(ann);
    assert!(matches!(code, Some(0 | 5)), "{said}");
    assert!(
        !site.folder.at("out-job.toml/blocks").exists(),
        "no half result"
    );
    site.network.join("b", true);
    site.computes(&options);
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_line_that_was_cut_for_a_moment_holds_up_a_run_and_does_not_end_it() {
    let _alone = alone();
    let options = ["--timeout", "60"];
    let Some(mut site) = Site::new("a line that was cut for a moment", &options) else {
        return;
    };
    site.line.hold();
    let plan = site.submit();
    let parts = ["ann", "eve"].map(|name| site.take_part(name, &options));
    site.under_way(&plan);
    site.network.join("c", false);
    site.line.let_go();
    // As long as the fault lasts.
    thread::sleep(Duration::from_millis(700));
    site.network.join("c", true);
    for part in parts {
        let (code, said) = end(part);
        assert_eq!(code, Some(0), "{said}");
    }
    assert!(std::fs::read(site.folder.at("out-job.toml/blocks")).unwrap() == expected());
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_narrow_line_slows_a_job_down_and_nothing_else() {
    let _alone = alone();
    let Some(site) = Site::new("a narrow line", &["--timeout", "60"]) else {
        return;
    };
    if let Err(why) = site.network.throttle("b", 20) {
        eprintln!("SKIPPED a narrow line: the kernel cannot limit a rate: {why}");
        return;
    }
    let start = Instant::now();
    site.computes(&["--timeout", "60"]);
    // Each party sends more than 2 MB in this job; 20 Mbit/s are 2.5 MB/s.
    let took = start.elapsed();
    assert!(took > Duration::from_millis(800), "{took:?}");
}
