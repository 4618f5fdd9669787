//! Jobs of four parties whose output is guaranteed, and a party that lies: in whatever it computes, or about where it is. The others give
//! the right result.
//!
//! It runs within the test, on a device that computes something wrong: all else that it does is what a service does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::common::Folder;
use crate::common::deployment::{
    PATIENCE, Place, Service, alone, at, expected, submit, succeed, take_part_at, wait,
};
use crate::common::homes::homes;
use veil_device::{Cpu, Op};
use veil_link::tls::{Admission, Port, Reception};
use veil_node::control::{self, Reply, Request};
use veil_node::jobs::{State, Status};
use veil_node::stages::At;
use veil_node::{Home, Time, receipt, service};
use veil_testkit::Lying;

const PARTIES: [&str; 4] = ["a", "b", "c", "d"];
/// Seconds without progress after which parties give up: none does where no party is missing, and elsewhere that costs it.
const NEVER: u64 = PATIENCE;
const SOON: u64 = 12;

/// Services of all parties but one.
struct Site {
    folder: Folder,
    homes: Vec<Home>,
    services: Vec<Service>,
    byzantine: &'static str,
    timeout: u64,
}

impl Site {
    fn new(byzantine: &'static str, timeout: u64) -> Self {
        let folder = Folder::blocks();
        let four = "parties = [\"a\", \"b\", \"c\", \"d\"]\ndelivery = \"guaranteed\"";
        folder.replace("job.toml", r#"parties = ["a", "b", "c"]"#, four);
        folder.replace("job.toml", "rows = 4096", "rows = 16");
        let homes = homes(folder.path(), &["a", "b", "c", "d", "ann", "eve"]);
        let mut site = Site {
            folder,
            homes,
            services: Vec::new(),
            byzantine,
            timeout,
        };
        let services = site.others().map(|name| site.serve(name));
        site.services = services.collect();
        site
    }

    fn others(&self) -> impl Iterator<Item = &'static str> + use<> {
        let byzantine = self.byzantine;
        PARTIES.into_iter().filter(move |party| *party != byzantine)
    }

    fn home(&self, party: &str) -> &Home {
        let index = PARTIES.iter().position(|name| *name == party);
        &self.homes[index.unwrap()]
    }

    fn serve(&self, name: &str) -> Service {
        let timeout = self.timeout.to_string();
        let options = ["--yes", "--wait", "180", "--timeout", &timeout];
        Service::start_at(&Place::HERE, self.folder.path(), name, &options)
    }

    fn take_part(&self, name: &str) -> String {
        let comes = ["--timeout", "180"];
        let part = take_part_at(&Place::HERE, &self.folder, "job.toml", name, &comes);
        succeed(part)
    }

    /// The result is right, and all but the corrupt party are done, without it.
    fn ended(&self, plan: &str) -> String {
        let blocks = std::fs::read(self.folder.at("out-job.toml/blocks")).unwrap();
        assert!(blocks == expected()[..blocks.len()] && blocks.len() == 16 * 16);
        wait("the others are done", || {
            let state = |party| at(&self.folder, "eve", party, plan);
            self.others()
                .all(|party| state(party).is_some_and(|at| at.state == "done"))
        });
        let path = self.folder.at("out-job.toml").join(receipt::NAME);
        let receipt: serde_json::Value =
            serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        receipt["without"].as_str().unwrap_or_default().to_owned()
    }

    /// The pairs that failed checks name, in the logs of all but the Byzantine party.
    fn named(&self) -> Vec<String> {
        let mut named = Vec::new();
        for party in self.others() {
            let log = self.home(party).log();
            log.for_each(|entry| {
                if entry.kind == "suspected" {
                    named.push(entry.fields["one_of"].to_string());
                }
            })
            .unwrap();
        }
        named
    }
}

/// A service on a device that computes something wrong.
struct Liar {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Liar {
    fn start(site: &Site, lies: fn(&Op) -> bool) -> Self {
        let home = Home::open(&site.folder.at(site.byzantine)).unwrap();
        let options = service::Options {
            yes: true,
            wait: Some(Duration::from_secs(PATIENCE)),
            timeout: Some(Duration::from_secs(site.timeout)),
            // This program is a test.
            planner: Some(crate::PROGRAM.into()),
            ..service::Options::default()
        };
        let device: veil_engine::DeviceFactory =
            Arc::new(move || Ok(Box::new(Lying::new(Box::new(Cpu::detect()), lies))));
        let service = service::Service::start(home, options, device).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = Some(thread::spawn(move || {
            service.run(&asked);
        }));
        Liar { stop, thread }
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// The corrupt party is in every pair that a check names, and the job is done without it, or in a run in which it had nowhere to deviate.
fn lies(byzantine: &'static str, about: fn(&Op) -> bool, without: &str) {
    let site = Site::new(byzantine, NEVER);
    let _byzantine = Liar::start(&site, about);
    let (plan, _) = submit(&site.folder, "job.toml");
    site.take_part("ann");
    site.take_part("eve");
    assert_eq!(site.ended(&plan), without);
    let named = site.named();
    assert!(!named.is_empty());
    for pair in &named {
        assert!(pair.contains(&format!("\"{byzantine}\"")), "{named:?}");
    }
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_party_that_lies_in_products_is_left_out() {
    let _alone = alone();
    lies("b", |op| matches!(op, Op::Product(_)), "b");
}

/// Digests of shares that it loads; the input stage, which loads none, is as it should be.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_party_that_lies_about_what_it_has_kept_is_left_out() {
    let _alone = alone();
    let loaded = |op: &Op| matches!(op, Op::Hash { label } if (0x5000..0x6001).contains(label));
    lies("d", loaded, "d");
}

/// Codes are for runs of four: it lies there, and has nothing to lie about in the first run of three. The one that is left out hears that the
/// job is done.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_party_that_lies_where_only_four_can_changes_nothing() {
    let _alone = alone();
    lies("c", |op| matches!(op, Op::Mac), "a");
}

/// Kills b when all have kept the inputs, and answers for it: with this, where the others say that they kept them in a run. Then a begins
/// anew, and the job is finished without b.
fn answers(at_job: impl Fn(String) -> At + Send + Sync + 'static) {
    let mut site = Site::new("b", SOON);
    let honest = site.serve("b");
    let (plan, _) = submit(&site.folder, "job.toml");
    site.take_part("ann");
    wait("the inputs are kept", || {
        let why = |party| at(&site.folder, "eve", party, &plan);
        PARTIES
            .iter()
            .all(|party| why(party).is_some_and(|at| at.why.contains("are kept")))
    });
    drop(honest);
    let home = site.home("b");
    let request = Request::Attendance {
        plan: plan.clone(),
        said: Vec::new(),
    };
    let until = Instant::now() + Duration::from_secs(PATIENCE);
    let members = home.members();
    let a = members.by_name("a").unwrap();
    let told = control::ask(&home.identity(), a, &request, until);
    let Ok(Reply::Attendance {
        at: At::Kept { run, .. },
        ..
    }) = told
    else {
        panic!("{told:?}")
    };
    let done = says_done(&plan);
    let handler = move |caller, request: &[u8]| match control::decode(request) {
        Ok(Request::Attendance { .. }) => control::encode(&Reply::Attendance {
            said: Vec::new(),
            at: at_job(run.clone()),
        }),
        _ => done(caller, request),
    };
    let address = home.settings().listen.unwrap().to_string();
    let reception = Reception::new(Arc::new(|_| Admission::Member)).with_handler(Arc::new(handler));
    let port = Port::bind(&home.identity(), &address, reception).unwrap();
    // A party that begins anew asks the others whether it is done.
    drop(site.services.remove(0));
    let again = site.serve("a");
    site.services.insert(0, again);
    thread::sleep(Duration::from_secs(1));
    assert_ne!(
        at(&site.folder, "eve", "a", &plan).map(|at| at.state),
        Some("done".to_owned())
    );
    site.take_part("eve");
    assert_eq!(site.ended(&plan), "b");
    drop(port);
}

/// It says so to every caller, and takes part in nothing.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn one_party_that_says_the_job_is_done_is_not_believed() {
    answers(|_| At::Done);
}

/// It says that it is ahead of all others, and takes part in nothing: the others come to the run without it so much the sooner.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn one_party_that_hurries_the_others_is_left_behind() {
    let view = u32::MAX;
    answers(move |run| At::Kept { run, view });
}

/// Answers everything else with: the job is done.
fn says_done(plan: &str) -> veil_link::tls::Handler {
    let plan = plan.to_owned();
    Arc::new(move |_, _| {
        let status = Status {
            takes: None,
            plan: plan.clone(),
            job: "blocks".into(),
            state: State::Done,
            since: Time::now(),
            why: None,
            phase: None,
            rows: 0,
            of: 0,
            sent: 0,
            received: 0,
            waits_for: Vec::new(),
            held: BTreeMap::new(),
            kept: Some(true),
            trace: None,
        };
        control::encode(&Reply::Jobs { jobs: vec![status] })
    })
}
