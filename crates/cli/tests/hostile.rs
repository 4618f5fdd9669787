//! Attack cases S3 and S7: members that propose what takes memory, time and places, played by their own requests; beside them, others are
//! answered. One party is enough: nothing runs here.

use crate::common;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::deployment::{
    PATIENT, Place, Service, alone, at, states, submit, take_part, wait,
};
use crate::common::homes::{NAMES, homes};
use crate::common::traced::Trace;
use crate::common::{Folder, text};
use veil_link::tls;
use veil_node::control::{self, Proposal, Reply, Request};
use veil_node::{Home, Member};

/// A job over a circuit that is sent along.
const JOB: &str = r#"version = 1
kind = "circuit"
name = "NAME"
owners = ["ann"]
parties = ["a", "b", "c"]
recipients = ["eve"]
circuit = { file = "c.txt", rows = 4 }
input = [{ port = "in0", owner = "ann", format = "hex" }]
output = [{ port = "out0", to = "eve", format = "hex", file = "out.hex" }]
"#;

/// A chain of so many products.
fn chain(products: usize) -> String {
    let mut circuit = format!("{products} {}\n1 2\n1 1\n\n2 1 0 1 2 AND\n", products + 2);
    for gate in 1..products {
        let _ = writeln!(circuit, "2 1 {} 0 {} AND", gate + 1, gate + 2);
    }
    circuit
}

/// As many layers of products as each of them has.
fn layers(width: usize) -> String {
    let gates = width * width;
    let wires = gates + 2 * width;
    let mut circuit = format!("{gates} {wires}\n1 {}\n1 {width}\n\n", 2 * width);
    for gate in 0..gates {
        // Outputs of the layer below, and of the first layer both inputs.
        let below = gate / width * width + width;
        let one = if gate < width { gate } else { gate + width };
        let other = below + (gate + 1) % width;
        let _ = writeln!(circuit, "2 1 {one} {other} {} AND", gate + 2 * width);
    }
    circuit
}

fn proposal(name: &str, circuit: String) -> Proposal {
    Proposal {
        job: JOB.replace("NAME", name),
        lanes: 1,
        stocked: false,
        files: BTreeMap::from([("c.txt".to_owned(), circuit)]),
    }
}

/// A party with these settings, of which every caller is a member.
struct Site {
    folder: Folder,
    homes: Vec<Home>,
    service: Option<Service>,
}

impl Site {
    fn new(settings: &[(&str, &str)]) -> Self {
        let mut site = Self::without(settings);
        site.start(&Place::HERE);
        site
    }

    /// Before its service is started.
    fn without(settings: &[(&str, &str)]) -> Self {
        let folder = Folder::blocks();
        let homes = homes(folder.path(), &NAMES);
        for (from, to) in settings {
            folder.replace("a/veil.toml", from, to);
        }
        Site {
            folder,
            homes,
            service: None,
        }
    }

    fn start(&mut self, place: &Place) {
        let options = [&["--admin", "127.0.0.1:0"], &PATIENT[..]].concat();
        let service = Service::start_at(place, self.folder.path(), "a", &options);
        self.service = Some(service);
    }

    fn restart(&mut self) {
        drop(self.service.take());
        self.start(&Place::HERE);
    }

    fn home(&self, name: &str) -> (&Home, Member) {
        let home = &self.homes[NAMES.iter().position(|known| *known == name).unwrap()];
        (home, home.members().by_name("a").unwrap().clone())
    }

    fn ask(&self, who: &str, request: &Request) -> Reply {
        let (home, party) = self.home(who);
        let until = Instant::now() + Duration::from_secs(60);
        control::ask(&home.identity(), &party, request, until).unwrap()
    }

    /// Bytes that are no request of ours; what comes back.
    fn raw(&self, who: &str, request: &[u8]) -> String {
        let (home, party) = self.home(who);
        let until = Instant::now() + Duration::from_secs(60);
        let address = party.address.unwrap();
        let reply = tls::control(
            &home.identity(),
            party.fingerprint,
            &address,
            request,
            until,
        );
        match control::decode(&reply.unwrap()).unwrap() {
            Reply::Refused { why } => why,
            other => panic!("{other:?}"),
        }
    }

    fn refused(&self, who: &str, proposal: Proposal) -> String {
        match self.ask(who, &Request::Propose(proposal)) {
            Reply::Refused { why } => why,
            other => panic!("{other:?}"),
        }
    }

    fn taken(&self, who: &str, proposal: Proposal) {
        let reply = self.ask(who, &Request::Propose(proposal));
        assert!(matches!(reply, Reply::Pending { .. }), "{reply:?}");
    }

    fn service(&self) -> &Service {
        self.service.as_ref().unwrap()
    }

    /// How long one in a hundred answers to a greeting takes, at least.
    fn greeting(&self, who: &str, times: usize) -> Duration {
        let mut took: Vec<Duration> = (0..times)
            .map(|_| {
                let began = Instant::now();
                assert!(matches!(self.ask(who, &Request::Hello {}), Reply::Hello(_)));
                began.elapsed()
            })
            .collect();
        took.sort();
        took[times - 1 - times / 100]
    }
}

/// S3: what takes too much to plan ends with its own process, whose limit is named, and others are greeted meanwhile.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn planning_that_takes_too_much_harms_one_proposal() {
    let _alone = alone();
    let site = Site::new(&[
        ("planning_mib = 2048", "planning_mib = 320"),
        ("planning_seconds = 60", "planning_seconds = 2"),
    ]);
    let alone = site.greeting("ann", 100);
    let before = site.service().kilobytes("VmRSS:");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let greeted = scope.spawn(|| {
            let mut worst = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                worst = worst.max(site.greeting("ann", 100));
            }
            worst
        });
        let whys: Vec<String> = (0..3)
            .map(|index| site.refused("eve", proposal(&format!("{index}"), chain(500_000))))
            .collect();
        over.store(true, Ordering::Relaxed);
        for why in &whys {
            let limit = "planning it takes more than this party allows: ";
            let named = ["320 MiB of memory", "2 s of a processor", "3 s"];
            assert!(
                named.iter().any(|named| *why == format!("{limit}{named}")),
                "{why}"
            );
        }
        let beside = greeted.join().unwrap();
        println!("p99 of a greeting: {alone:?} alone, {beside:?} beside planning");
        // Its processor is shared with the planner and this test.
        assert!(
            beside < Duration::from_millis(50).max(10 * alone),
            "{beside:?}"
        );
    });
    // The requests themselves went through the service.
    let grown = site.service().kilobytes("VmHWM:").saturating_sub(before);
    assert!(grown < 96 << 10, "{grown} kB");
    assert!(site.service().metric("veil_planner_ended_total") > 0.0);
}

/// S3: bombs in each of the languages of a proposal, and what is none.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn bombs_are_refused_and_the_service_lives() {
    let _alone = alone();
    let site = Site::new(&[("proposals_per_hour = 60", "proposals_per_hour = 1000")]);
    let job = |text: String| Proposal {
        job: text,
        lanes: 1,
        stocked: false,
        files: BTreeMap::new(),
    };
    let nested = format!("x = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let tables = "[a]\n".repeat(200_000) + &"[[b.c]]\n".repeat(10);
    for text in [nested, tables, "\"".repeat(1 << 20), "\0".repeat(1 << 19)] {
        let why = site.refused("eve", job(text));
        assert!(
            why.starts_with("the job file") || why.starts_with("planning it"),
            "{why}"
        );
    }
    for circuit in [
        "100000000 100000002\n1 2\n1 1\n\n2 1 0 1 2 AND\n".to_owned(),
        "1 3\n1 18446744073709551615\n1 1\n\n2 1 0 1 2 AND\n".to_owned(),
        "9".repeat(1 << 20),
    ] {
        let why = site.refused("eve", proposal("wires", circuit));
        assert!(why.starts_with("the job file:7:20: "), "{why}");
    }
    let cycles = JOB.replace("rows = 4", "rows = 4, cycles = 1152921504606846976");
    let mut bomb = proposal("cycles", chain(2));
    bomb.job = cycles;
    let why = site.refused("eve", bomb);
    assert!(why.starts_with("the job file"), "{why}");
    // A pipe that would hold up its reader, and files that the job does not name.
    let pipe = site.folder.at("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let mut named = proposal("pipe", chain(2));
    named.job = named.job.replace("c.txt", &pipe.display().to_string());
    let why = site.refused("eve", named);
    assert!(why.contains("is no plain name"), "{why}");
    let mut more = proposal("more", chain(2));
    more.files.insert("spare".into(), "x".into());
    let why = site.refused("eve", more);
    assert!(why.contains("the job does not name it"), "{why}");
    for request in [
        vec![b'['; 4 << 20],
        vec![0; 15 << 20],
        [
            &br#"{"version":1,"ask":"propose","job":""#[..],
            &vec![b'x'; 1 << 20],
        ]
        .concat(),
    ] {
        let why = site.raw("eve", &request);
        assert!(why.starts_with("the request was not understood"), "{why}");
    }
    assert!(matches!(
        site.ask("eve", &Request::Hello {}),
        Reply::Hello(_)
    ));
    assert!(site.service().page("/readyz").starts_with("HTTP/1.1 200"));
}

/// S7: what a member may ask is counted, also across a restart, and for itself alone.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn each_member_has_its_share_and_no_more() {
    let _alone = alone();
    let mut site = Site::new(&[
        ("proposals_per_hour = 60", "proposals_per_hour = 2"),
        ("waiting_jobs = 16", "waiting_jobs = 2"),
    ]);
    site.taken("eve", proposal("one", chain(2)));
    site.taken("eve", proposal("two", chain(2)));
    let used = "quota: 2 proposals an hour are used; again at ";
    let why = site.refused("eve", proposal("three", chain(2)));
    assert!(why.starts_with(used), "{why}");
    // The same again is none.
    for _ in 0..20 {
        site.taken("eve", proposal("one", chain(2)));
    }
    site.taken("ann", proposal("three", chain(2)));
    site.restart();
    let why = site.refused("eve", proposal("three", chain(2)));
    assert!(why.starts_with(used), "{why}");
    // Places to wait are counted as well.
    site.folder.replace(
        "a/veil.toml",
        "proposals_per_hour = 2",
        "proposals_per_hour = 100",
    );
    site.restart();
    for name in ["one", "two"] {
        site.taken("eve", proposal(name, chain(2)));
    }
    let why = site.refused("eve", proposal("four", chain(2)));
    assert_eq!(
        why,
        "quota: 2 jobs of `eve` wait here, and no more may; again when one of them has begun or was refused"
    );
    site.taken("ann", proposal("five", chain(2)));
}

/// S3: while members keep all planners busy, this participant's own commands are answered.
#[test]
fn members_do_not_fill_the_lane_of_the_operator() {
    let _alone = alone();
    let site = Site::new(&[
        ("planning_seconds = 60", "planning_seconds = 2"),
        ("planners = 2", "planners = 1"),
    ]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for who in ["ann", "eve"] {
            let (site, over) = (&site, &over);
            scope.spawn(move || {
                let mut index = 0;
                while !over.load(Ordering::Relaxed) && index < 50 {
                    index += 1;
                    let heavy = proposal(&format!("{who} {index}"), chain(300_000));
                    let (home, party) = site.home(who);
                    let until = Instant::now() + Duration::from_secs(60);
                    // It may be told to come again.
                    let _ = control::ask(&home.identity(), &party, &Request::Propose(heavy), until);
                }
            });
        }
        thread::sleep(Duration::from_millis(500));
        let began = Instant::now();
        let own = site.folder.veil("jobs --home a --at a");
        over.store(true, Ordering::Relaxed);
        assert!(own.status.success(), "{}", text(&own.stderr));
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{:?}",
            began.elapsed()
        );
    });
    // What a job waits for is known without planning it again.
    let known = Request::Propose(proposal("known", chain(2)));
    let reply = site.ask("ann", &known);
    let Reply::Pending { plan } = reply else {
        panic!("{reply:?}");
    };
    let planned = site.service().metric("veil_planner_seconds_count");
    thread::sleep(Duration::from_millis(1500));
    let more = site.service().metric("veil_planner_seconds_count") - planned;
    assert!(more < 0.5, "{more} more");
    assert_eq!(
        at(&site.folder, "ann", "a", &plan).unwrap().state,
        "pending"
    );
}

/// How planning is confined is said, and without that no proposals are taken.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn the_operator_is_told_how_planning_is_confined() {
    let _alone = alone();
    let site = Site::new(&[]);
    let looked = text(&site.folder.veil("doctor --home a").stdout);
    assert!(
        looked.contains("planning         ok       confined by landlock and seccomp"),
        "{looked}"
    );
    assert!(
        site.service()
            .said()
            .contains("\"by\":\"landlock and seccomp\"")
    );
}

/// The same where the kernel has no Landlock: no proposals are taken, unless the operator said that the filter is enough.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_party_that_cannot_confine_planning_takes_no_proposals() {
    let _alone = alone();
    let mut site = Site::without(&[]);
    let without = Place::through(&[
        "strace",
        "-D",
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=landlock_create_ruleset",
        "-e",
        "inject=landlock_create_ruleset:error=ENOSYS",
    ]);
    if !without.works("a_party_that_cannot_confine_planning_takes_no_proposals") {
        return;
    }
    site.start(&without);
    let why = site.refused("eve", proposal("one", chain(2)));
    assert_eq!(
        why,
        "this party takes no proposals: its machine cannot confine planning"
    );
    let page = site.service().page("/readyz");
    assert!(page.starts_with("HTTP/1.1 503"), "{page}");
    let says = "this kernel cannot confine planning: this kernel has no Landlock, which Linux 5.13 or later has; Linux 5.13 or later can, or \
                set `sandbox = \"seccomp\"` under [admission] in veil.toml";
    assert!(page.contains(says), "{page}");
    assert!(
        site.service()
            .said()
            .contains("proposals of others are refused")
    );
    let doctor = without
        .veil(site.folder.path())
        .args(["doctor", "--home", "a"])
        .output();
    let looked = text(&doctor.unwrap().stdout);
    assert!(looked.contains("cannot confine planning"), "{looked}");
    // The operator's word, and the mode is said.
    site.folder.replace(
        "a/veil.toml",
        "sandbox = \"require\"",
        "sandbox = \"seccomp\"",
    );
    drop(site.service.take());
    site.start(&without);
    site.taken("eve", proposal("one", chain(2)));
    assert!(site.service().said().contains("\"by\":\"seccomp\""));
    assert!(site.service().page("/readyz").starts_with("HTTP/1.1 200"));
}

/// S3: whatever members propose, no file is opened but those of the home and of the program.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn no_file_outside_the_home_is_opened_for_a_proposal() {
    let _alone = alone();
    let mut site = Site::without(&[("proposals_per_hour = 60", "proposals_per_hour = 1000")]);
    let trace = Trace::new(site.folder.at("trace"));
    if !trace.works("no_file_outside_the_home_is_opened_for_a_proposal") {
        return;
    }
    site.start(&trace.place());
    let key = site.folder.at("eve/identity.key").display().to_string();
    for (index, path) in [
        "/etc/passwd",
        "/etc/shadow",
        "/proc/self/environ",
        "../eve/identity.key",
        "a/store.key",
        &key,
        "key.hex",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{index}");
        let mut circuit = proposal(&name, chain(2));
        circuit.job = circuit.job.replace("c.txt", path);
        site.refused("eve", circuit);
        let mut data = proposal(&name, chain(2));
        let format = "format = \"hex\" }]\noutput";
        let file = format!("format = \"hex\", file = \"{path}\" }}]\noutput");
        assert!(data.job.contains(format));
        data.job = data.job.replace(format, &file);
        // A plain name is taken, and opened nowhere.
        let reply = site.ask("eve", &Request::Propose(data));
        assert!(
            matches!(reply, Reply::Refused { .. } | Reply::Pending { .. }),
            "{reply:?}"
        );
        site.taken("ann", proposal(&format!("good {index}"), chain(2)));
    }
    site.service.take().unwrap().stop();
    let (opened, outside) = trace.opened(site.folder.path(), "a");
    assert!(opened > 50, "{opened} calls were traced");
    assert_eq!(outside, BTreeMap::new());
}

/// Passes on what callers send: the first bytes at once, and then one in a second; what comes back, at once. Its address.
fn drip(to: SocketAddr, at_once: usize) -> SocketAddr {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap();
    let forth = move |mut caller: TcpStream, mut callee: TcpStream| -> std::io::Result<()> {
        let mut byte = [0];
        for index in 0.. {
            caller.read_exact(&mut byte)?;
            callee.write_all(&byte)?;
            if index >= at_once {
                thread::sleep(Duration::from_secs(1));
            }
        }
        Ok(())
    };
    thread::spawn(move || {
        for caller in port.incoming().map_while(Result::ok) {
            let callee = TcpStream::connect(to).unwrap();
            let (mut back_to, mut back_from) =
                (caller.try_clone().unwrap(), callee.try_clone().unwrap());
            // Whatever ends one direction ends the other.
            thread::spawn(move || {
                let _ = std::io::copy(&mut back_from, &mut back_to);
                let _ = back_to.shutdown(std::net::Shutdown::Both);
            });
            thread::spawn(move || forth(caller, callee));
        }
    });
    address
}

/// S3: handshakes and requests of a byte a second hold up no other caller, and end.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_byte_a_second_holds_up_no_participant() {
    let _alone = alone();
    let site = Site::new(&[]);
    let alone = site.greeting("ann", 100);
    let (_, party) = site.home("eve");
    let direct: SocketAddr = party.address.as_ref().unwrap().parse().unwrap();
    // A handshake has ten seconds in all. A request has a minute: this one is given up by its sender before.
    let slow = [(drip(direct, 0), 60), (drip(direct, 4096), 12)];
    let request = control::encode(&Request::Propose(proposal("slow", chain(2000))));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let callers: Vec<_> = (0..24)
            .map(|index| {
                let (address, seconds) = slow[index % 2];
                let (site, party, request) = (&site, &party, &request);
                scope.spawn(move || {
                    let who = ["eve", "b", "c"][index % 3];
                    let began = Instant::now();
                    let until = began + Duration::from_secs(seconds);
                    let (identity, address) = (site.home(who).0.identity(), address.to_string());
                    let reply =
                        tls::control(&identity, party.fingerprint, &address, request, until);
                    assert!(reply.is_err(), "a request of some kilobytes came in");
                    began.elapsed()
                })
            })
            .collect();
        let greeted = scope.spawn(|| {
            let mut worst = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                worst = worst.max(site.greeting("ann", 100));
            }
            worst
        });
        for caller in callers {
            let took = caller.join().unwrap();
            assert!(took < Duration::from_secs(30), "{took:?}");
        }
        over.store(true, Ordering::Relaxed);
        let beside = greeted.join().unwrap();
        println!("p99 of a greeting: {alone:?} alone, {beside:?} beside slow callers");
        assert!(
            beside < Duration::from_millis(50).max(10 * alone),
            "{beside:?}"
        );
    });
}

/// S3, S7: three members who propose at the same time all that planning may take do not hold up small proposals of a fourth.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn members_who_collude_hold_up_no_small_proposal() {
    let _alone = alone();
    let site = Site::new(&[
        ("proposals_per_hour = 60", "proposals_per_hour = 1000"),
        (
            "planning_seconds_per_hour = 300",
            "planning_seconds_per_hour = 100000",
        ),
        ("waiting_jobs = 16", "waiting_jobs = 1000"),
    ]);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for who in ["b", "c", "eve"] {
            let (site, over) = (&site, &over);
            scope.spawn(move || {
                for index in 0..100 {
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    let heavy = proposal(&format!("{who} {index}"), chain(500_000 + index));
                    let (home, party) = site.home(who);
                    let until = Instant::now() + Duration::from_secs(60);
                    // It may be refused, or told to come again.
                    let _ = control::ask(&home.identity(), &party, &Request::Propose(heavy), until);
                }
            });
        }
        thread::sleep(Duration::from_secs(2));
        let mut worst = Duration::ZERO;
        for index in 0..20 {
            let began = Instant::now();
            site.taken("ann", proposal(&format!("small {index}"), chain(50)));
            worst = worst.max(began.elapsed());
        }
        over.store(true, Ordering::Relaxed);
        println!("a small proposal beside three large ones takes {worst:?} at most");
        assert!(worst < Duration::from_secs(2), "{worst:?}");
    });
}

/// Ticks of a hundredth of a second in fields of a `stat` file, counted from 1 as proc(5) does.
fn ticks(stat: &str, fields: [usize; 2]) -> u64 {
    let stat = std::fs::read_to_string(stat).unwrap();
    // The second field is a name in brackets.
    let rest = stat.rsplit_once(") ").unwrap().1;
    let number = |field: usize| rest.split(' ').nth(field - 3).unwrap().parse::<u64>();
    fields.into_iter().map(|field| number(field).unwrap()).sum()
}

/// Where the process of [`plans_unconfined`] finds its request.
const REQUEST: &str = "VEIL_TEST_REQUEST";

/// What the test after this one starts: the same work in a process that nothing confines.
#[test]
#[ignore = "started by confinement_costs_little"]
fn plans_unconfined() {
    if let Some(request) = std::env::var_os(REQUEST) {
        veil_node::planner::fuzz_proposal(&std::fs::read(request).unwrap());
    }
}

/// Planning in a confined process costs at most 1.3 times as much of a processor as in one that is not confined.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn confinement_costs_little() {
    const TIMES: usize = 10;
    let _alone = alone();
    let folder = Folder::new();
    let request = control::encode(&Request::Propose(proposal("65 k", layers(256))));
    folder.write("request", &request);
    let terms = br#"{"name":"a","rows":1048576,"lanes":4,"memory_mib":256,"spill":false,"window":4,"link":"tls","kept":false}"#;
    let errand = [&(terms.len() as u32).to_le_bytes()[..], terms, &request].concat();
    let program = crate::PROGRAM;
    let words = ["inner", "plan", "--memory-mib=2048", "--cpu=60"];
    let (mut here, mut unconfined, mut confined) = (0, 0, 0);
    for _ in 0..TIMES {
        let before = ticks("/proc/thread-self/stat", [14, 15]);
        assert!(veil_node::planner::fuzz_proposal(&request));
        here += ticks("/proc/thread-self/stat", [14, 15]) - before;
        // Of children that ended and were waited for.
        let of_children = || ticks("/proc/self/stat", [16, 17]);
        let before = of_children();
        let plans = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "hostile::plans_unconfined",
                "--ignored",
                "--test-threads=1",
            ])
            .env(REQUEST, folder.at("request"))
            .output();
        let plans = text(&plans.unwrap().stdout);
        assert!(plans.contains("1 passed"), "{plans}");
        let between = of_children();
        let limits = veil_sandbox::Limits::default();
        let reply = veil_sandbox::run(program.as_ref(), &words, &errand, &limits).unwrap();
        (unconfined, confined) = (
            unconfined + between - before,
            confined + of_children() - between,
        );
        let reply = text(&reply);
        assert!(reply.contains("\"answer\":\"planned\""), "{reply}");
    }
    println!(
        "planning 65536 ANDs {TIMES} times: {here}0 ms in this process, {unconfined}0 ms in processes of their own, {confined}0 ms confined"
    );
    assert!(
        confined * 10 <= unconfined * 13,
        "{unconfined}0 ms unconfined, {confined}0 ms confined"
    );
}

/// S7: what a member has filed and what its jobs keep are counted.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn what_members_leave_on_the_disk_is_counted() {
    let _alone = alone();
    let mut site = Site::new(&[("filed = \"1 GiB\"", "filed = \"8 KiB\"")]);
    site.taken("eve", proposal("one", chain(100)));
    let why = site.refused("eve", proposal("two", chain(400)));
    assert!(
        why.starts_with("quota: the jobs of `eve` that are filed here take ")
            && why.ends_with(" bytes of 8192; the operator removes what is over"),
        "{why}"
    );
    site.taken("ann", proposal("two", chain(100)));
    drop(site.service.take());

    // A dataset has its place on the disk before the job is met.
    site.folder
        .replace("a/veil.toml", "stored = \"200 GiB\"", "stored = \"100 B\"");
    let keep = "version = 1\nkind = \"stats\"\nname = \"keep\"\nowners = [\"ann\"]\nparties = [\"a\", \"b\", \"c\"]\nrecipients = [\"eve\"]\n\
                column = [{ name = \"wage\", type = \"integer\", min = 0, max = 20000 }]\n\
                block = [{ name = \"all\", rows = 2, holds = { ann = [\"wage\"] }, files = { ann = \"ann.csv\" } }]\n\
                analysis = [{ name = \"mean wage\", kind = \"mean\", of = \"wage\", to = \"eve\" }]\nkeep = { as = \"wages\" }\n";
    site.folder.write("keep.toml", keep);
    site.folder.write("ann.csv", "wage\n3100\n2900\n");
    let start = |name: &&str| Service::start(site.folder.path(), name, &["--yes"]);
    let _services: Vec<Service> = NAMES[..3].iter().map(start).collect();
    let (plan, said) = submit(&site.folder, "keep.toml");
    assert_eq!(said, ["accepted"; 3]);
    let parts = ["ann", "eve"].map(|name| take_part(&site.folder, "keep.toml", name));
    wait("it is given up", || {
        states(&site.folder, &plan)[0] == "failed"
    });
    let why = |of: &str| at(&site.folder, of, "a", &plan).unwrap().why;
    assert_eq!(
        why("eve"),
        "a quota of the member who asked for it is used up at this party: ask again later"
    );
    let own = why("a");
    assert!(
        own.starts_with("quota: datasets of jobs of `eve` take ")
            && own.ends_with(
                " bytes here, of 100; the operator removes what is over with `veil shares remove`"
            ),
        "{own}"
    );
    assert!(!site.folder.at("a/shares/wages/manifest").exists());
    for part in parts {
        common::deployment::kill(part);
    }
}
