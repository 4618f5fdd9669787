//! Two hostile members at full rate against a party, while an honest member's jobs run: minutes, and in the long set (`make test-soak`).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Folder;
use crate::common::deployment::{
    PATIENT, Place, Service, alone, end, states, submit, take_part, wait,
};
use crate::common::homes::homes;
use crate::common::traced::Trace;
use veil_link::tls;
use veil_node::control::{self, Proposal, Request};
use veil_node::{Home, Member};
use veil_testkit::{Seed, damaged};

const NAMES: [&str; 7] = ["a", "b", "c", "ann", "eve", "mal", "moe"];

/// What the hostile propose: a job in which they have a part, over a circuit of theirs.
const JOB: &str = r#"version = 1
kind = "circuit"
name = "NAME"
owners = ["WHO"]
parties = ["a", "b", "c"]
recipients = ["eve"]
circuit = { file = "c.txt", rows = 4 }
input = [{ port = "in0", owner = "WHO", format = "hex" }]
output = [{ port = "out0", to = "eve", format = "hex", file = "out.hex" }]
"#;

/// What is allowed without asking a person.
const POLICY: &str = r#"version = 1
[[rule]]
name = "blocks"
decision = "allow"
asked_by = ["eve"]
circuits = ["aes128"]
"#;

/// The honest member asks for a job each second for minutes, which is more than usual members may.
const HONEST: &str =
    "\n[quota.member.eve]\nproposals_per_hour = 100000\nplanning_seconds_per_hour = 100000\n";

/// Requests of each hostile member, which it sends again and again: it has them ready, so that its own processor time is not ours.
const REQUESTS: u64 = 70;

/// Seconds of the soak, unless VEIL_SOAK_SECONDS says otherwise.
const SECONDS: u64 = 600;

/// A request that no honest member would send.
fn attack(who: &str, round: u64) -> Vec<u8> {
    let gates = match round % 5 {
        0 => 2,
        1 => 200_000,
        2 => 400_000,
        _ => 50,
    };
    let mut circuit = format!("{gates} {}\n1 2\n1 1\n\n2 1 0 1 2 AND\n", gates + 2);
    for gate in 1..gates {
        let _ = writeln!(circuit, "2 1 {} 0 {} AND", gate + 1, gate + 2);
    }
    let job = JOB
        .replace("WHO", who)
        .replace("NAME", &format!("{who} {round}"));
    let proposal = control::encode(&Request::Propose(Proposal {
        job,
        lanes: 1,
        stocked: false,
        files: BTreeMap::from([("c.txt".to_owned(), circuit)]),
    }));
    let mut numbers = Seed(round).numbers("soak");
    match round % 7 {
        3 => damaged(&proposal, &mut numbers),
        4 => vec![b'['; 1 << 20],
        5 => control::encode(&Request::Jobs {}),
        6 => control::encode(&Request::GoOn {
            plan: "0".repeat(64),
        }),
        _ => proposal,
    }
}

/// Says when it is dropped that all is over.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn party(home: &Home) -> Member {
    home.members().by_name("a").unwrap().clone()
}

/// Submits the job and takes part, until it is done: how long it took to be accepted, and in all.
fn honest(folder: &Folder, job: &str) -> [Duration; 2] {
    let began = Instant::now();
    let (plan, said) = submit(folder, job);
    let accepted = began.elapsed();
    assert_eq!(said, ["accepted"; 3]);
    for part in ["ann", "eve"].map(|name| take_part(folder, job, name)) {
        let (code, said) = end(part);
        assert_eq!(code, Some(0), "{said}");
    }
    let all = began.elapsed();
    wait("done", || states(folder, &plan) == ["done"; 3]);
    [accepted, all]
}

/// The honest jobs without hostile members.
const ALONE: usize = 20;

/// How long greetings take, one after the other.
fn greetings(home: &Home, over: &AtomicBool) -> Vec<Duration> {
    let mut took = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        let until = began + Duration::from_secs(30);
        control::ask(&home.identity(), &party(home), &Request::Hello {}, until).unwrap();
        took.push(began.elapsed());
        thread::sleep(Duration::from_millis(20));
    }
    took
}

/// The one of them that so many in a hundred do not exceed.
fn at(mut took: Vec<Duration>, percent: usize) -> Duration {
    took.sort();
    took[(took.len() - 1) * percent / 100]
}

#[test]
#[ignore = "minutes: make test-soak"]
fn hostile_members_hurt_no_participant() {
    let _alone = alone();
    let seconds = std::env::var("VEIL_SOAK_SECONDS").ok();
    let seconds = seconds.map_or(SECONDS, |text| text.parse().unwrap());
    let folder = Folder::blocks();
    let homes = homes(folder.path(), &NAMES);
    let trace = Trace::new(folder.at("trace"));
    let traced = trace.works("hostile_members_hurt_nobody, which files are opened");
    let services: Vec<Service> = NAMES[..3]
        .iter()
        .map(|name| {
            // A proposal of a hostile member waits for an approval.
            folder.write(&format!("{name}/policy.toml"), POLICY);
            let settings = format!("{name}/veil.toml");
            let text = std::fs::read_to_string(folder.at(&settings)).unwrap();
            folder.write(&settings, text + HONEST);
            let place = match *name {
                "a" if traced => trace.place(),
                _ => Place::HERE,
            };
            let options = [&["--admin", "127.0.0.1:0"], &PATIENT[..]].concat();
            Service::start_at(&place, folder.path(), name, &options)
        })
        .collect();
    let job = std::fs::read_to_string(folder.at("job.toml")).unwrap();
    // Another one each time: what was planned before is known, and waits for no planner.
    let fresh = |name: &str| {
        let name = format!("name = \"{name}\"");
        folder.write("fresh.toml", job.replace("name = \"blocks\"", &name));
        honest(&folder, "fresh.toml")
    };
    let greeter = &homes[3];
    // The same without the hostile: jobs, and how long greetings wait for processors beside them.
    let over = AtomicBool::new(false);
    let (alone, greeted_alone) = thread::scope(|scope| {
        let greeted = scope.spawn(|| greetings(greeter, &over));
        let honest_ones = Over(&over);
        let took = (0..ALONE).map(|index| fresh(&format!("alone {index}"))[1]);
        let took = took.collect();
        drop(honest_ones);
        (took, greeted.join().unwrap())
    });
    let (alone, greeted_alone) = (at(alone, 50), at(greeted_alone, 99));
    let (over, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut took = Vec::new();
    let greeted = thread::scope(|scope| {
        let greeted = scope.spawn(|| greetings(greeter, &over));
        for (index, home) in homes[5..].iter().enumerate() {
            let (over, asked) = (&over, &asked);
            scope.spawn(move || {
                let (who, party) = (&home.settings().name, party(home));
                let address = party.address.clone().unwrap();
                let first = index as u64 * REQUESTS;
                let requests = (first..first + REQUESTS).map(|round| attack(who, round));
                let requests: Vec<Vec<u8>> = requests.collect();
                for request in requests.iter().cycle() {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    let until = Instant::now() + Duration::from_secs(30);
                    let identity = home.identity();
                    // Whatever comes back, or nothing.
                    let _ = tls::control(&identity, party.fingerprint, &address, request, until);
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // Also where an honest job fails.
        let honest_ones = Over(&over);
        let until = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < until {
            took.push(fresh(&format!("beside {}", took.len())));
        }
        drop(honest_ones);
        greeted.join().unwrap()
    });
    // Whether they take longer the more jobs are filed.
    let fifths: Vec<_> = greeted.chunks(greeted.len().div_ceil(5)).collect();
    let fifths: Vec<_> = fifths.iter().map(|took| at(took.to_vec(), 99)).collect();
    let greeted = at(greeted, 99);
    let accepted = took.iter().map(|[accepted, _]| *accepted).max().unwrap();
    let jobs = took.len();
    let median = at(took.iter().map(|[_, all]| *all).collect(), 50);
    let asked = asked.load(Ordering::Relaxed);
    let memory = services[0].kilobytes("VmHWM:") >> 10;
    println!(
        "{asked} requests of two members; {jobs} jobs beside them: accepted within {accepted:?}, {median:?} each, {alone:?} alone; greeted \
         within {greeted:?} (p99; {fifths:?} by fifths of the time), {greeted_alone:?} beside the same jobs alone; {memory} MiB"
    );
    assert!(accepted < Duration::from_secs(2), "{accepted:?}");
    assert!(
        median.as_secs_f64() <= 1.5 * alone.as_secs_f64(),
        "{median:?} beside, {alone:?} alone"
    );
    // Greetings wait for a processor, which is busy with jobs as well.
    let limit = Duration::from_millis(50).max(greeted_alone * 3 / 2);
    assert!(greeted < limit, "{greeted:?}");
    // The limit of all jobs, and the program.
    assert!(memory < 4096, "{memory} MiB");
    for (service, home) in services.into_iter().zip(&homes) {
        let (_, said) = service.stop();
        assert!(!said.contains("panicked"), "{said}");
        home.log().verify(&[]).unwrap();
    }
    if traced {
        let (calls, outside) = trace.opened(folder.path(), "a");
        assert!(calls > 1000, "{calls} calls were traced");
        assert_eq!(outside, BTreeMap::new());
    }
}
