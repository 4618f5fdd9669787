//! `veil doctor`: what this machine has, what is missing, and how to get it.

mod home;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use veil_device::{Cpu, Device, Isa};
use veil_link::tls::{Identity, Meeting, Port, Reception, SetupError, Terms, meet};
use veil_link::{LinkKind, Provider};
use veil_node::{Home, Time};
use veil_session::{PartyId, Peer, PlanHash};

use crate::devices;
use crate::failure::{Code, Failure};
use crate::output::{self, columns};
use crate::rates;

/// Says what this machine has.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil doctor
  veil doctor --port 7000      and whether a party could listen there
  veil doctor --home ~/mill    and its home: keys, log, disk, and every member: reachable, key, version, clock")]
pub(crate) struct DoctorArgs {
    /// Look whether this port is free.
    #[arg(long)]
    port: Option<u16>,
    /// Look at this home, and ask its members [default: $VEIL_HOME or ~/.veil, if it is there]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// How good something is.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
enum State {
    /// As it should be.
    Ok,
    /// Works, and could be better.
    Note,
    /// Nothing works without it.
    Missing,
}

/// What was found.
#[derive(Serialize, Debug)]
struct Finding {
    what: Cow<'static, str>,
    state: State,
    found: String,
    /// How to get what is missing.
    #[serde(skip_serializing_if = "String::is_empty")]
    advice: String,
}

impl Finding {
    fn ok(what: impl Into<Cow<'static, str>>, found: impl Into<String>) -> Self {
        Finding {
            what: what.into(),
            state: State::Ok,
            found: found.into(),
            advice: String::new(),
        }
    }

    fn but(
        what: impl Into<Cow<'static, str>>,
        state: State,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Finding {
            what: what.into(),
            state,
            found: found.into(),
            advice: advice.into(),
        }
    }
}

pub(crate) fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let mut findings = vec![
        version(),
        processor(),
        cores(),
        memory(),
        kernel(),
        clock(),
        open_files(),
        randomness(),
        temporary(),
        loopback(),
        fabric(),
    ];
    let home = Home::locate(args.home.as_deref());
    findings.push(rates_of(&home));
    findings.extend(args.port.map(port));
    if args.home.is_some() || home.join("veil.toml").exists() {
        findings.extend(home::look(&home));
    }
    if args.json {
        output::print_json(&findings)?;
    } else {
        let mut rows = Vec::new();
        for finding in &findings {
            let state = match finding.state {
                State::Ok => "ok",
                State::Note => "note",
                State::Missing => "MISSING",
            };
            rows.push(vec![
                finding.what.clone().into_owned(),
                state.to_owned(),
                finding.found.clone(),
            ]);
            if !finding.advice.is_empty() {
                rows.push(vec![
                    String::new(),
                    String::new(),
                    format!("→ {}", finding.advice),
                ]);
            }
        }
        output::print(&columns(&rows))?;
    }
    match findings
        .iter()
        .find(|finding| finding.state == State::Missing)
    {
        None => Ok(()),
        Some(finding) => Err(Failure::new(
            Code::Other,
            format!("{}: {}", finding.what, finding.found),
        )
        .help(finding.advice.clone())),
    }
}

fn version() -> Finding {
    Finding::ok("veil", env!("CARGO_PKG_VERSION"))
}

fn processor() -> Finding {
    let name = Cpu::detect().name();
    let missing = |isa| devices::lacking(isa).join(", ");
    match [Isa::Avx512, Isa::Avx2Vaes, Isa::Avx2].map(missing) {
        [lacks, _, _] if lacks.is_empty() => Finding::ok("processor", name),
        [lacks, slow, _] if slow.is_empty() => Finding::but(
            "processor",
            State::Note,
            name,
            format!("a processor with {lacks} runs kernels of twice the width"),
        ),
        [_, lacks, slow] if slow.is_empty() => Finding::but(
            "processor",
            State::Note,
            name,
            format!("a processor with {lacks} encrypts twice as fast"),
        ),
        [_, _, lacks] => Finding::but(
            "processor",
            State::Note,
            name,
            format!("slow, for it lacks {lacks}"),
        ),
    }
}

fn cores() -> Finding {
    match thread::available_parallelism() {
        Ok(cores) => Finding::ok("cores", format!("{cores}: that many lanes by default")),
        Err(error) => Finding::but("cores", State::Note, error.to_string(), "give --lanes"),
    }
}

fn memory() -> Finding {
    // 64 MB per party are enough for any number of rows of a circuit of moderate width.
    const ENOUGH: u64 = 512 << 20;
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    match kilobytes.map(|kb| kb * 1024) {
        Some(free) if free >= ENOUGH => {
            Finding::ok("memory", format!("{} available", output::bytes(free)))
        }
        Some(free) => {
            let advice = "large jobs may not fit; use fewer lanes, or end other programs";
            Finding::but(
                "memory",
                State::Note,
                format!("{} available", output::bytes(free)),
                advice,
            )
        }
        None => Finding::but(
            "memory",
            State::Note,
            "unknown",
            "/proc/meminfo cannot be read",
        ),
    }
}

fn kernel() -> Finding {
    let read = |path| fs::read_to_string(path).map(|text| text.trim().to_owned());
    match read("/proc/sys/kernel/osrelease") {
        Ok(release) => Finding::ok("kernel", format!("{} {release}", std::env::consts::OS)),
        Err(_) => Finding::but(
            "kernel",
            State::Note,
            std::env::consts::OS,
            "only Linux is tested",
        ),
    }
}

fn clock() -> Finding {
    // The release of this program is later than this day.
    const JANUARY_2025: i64 = 1_735_689_600;
    let now = Time::now();
    let source =
        fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .unwrap_or_default();
    let found = format!(
        "{now}, source {}",
        if source.is_empty() {
            "unknown"
        } else {
            source.trim()
        }
    );
    if now.seconds() >= JANUARY_2025 {
        Finding::ok("clock", found)
    } else {
        Finding::but(
            "clock",
            State::Note,
            found,
            "the clock is wrong; logs of different parties will be hard to compare",
        )
    }
}

fn open_files() -> Finding {
    // A connection per peer and lane, and files: enough for a hundred lanes with a few peers.
    const ENOUGH: u64 = 1024;
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < ENOUGH => Finding::but(
            "open files",
            State::Note,
            format!("at most {limit}"),
            format!("`ulimit -n {ENOUGH}` before runs with many lanes"),
        ),
        Some(limit) => Finding::ok("open files", format!("at most {limit}")),
        None => Finding::ok("open files", "no limit"),
    }
}

fn randomness() -> Finding {
    match getrandom::u64() {
        Ok(_) => Finding::ok("randomness", "the operating system's"),
        Err(error) => Finding::but(
            "randomness",
            State::Missing,
            error.to_string(),
            "keys come from the system's randomness alone; nothing can run without it",
        ),
    }
}

fn temporary() -> Finding {
    let folder = std::env::temp_dir();
    let written = tempfile::tempfile().and_then(|mut file| file.write_all(&[0; 4096]));
    match written {
        Ok(()) => Finding::ok("temporary files", folder.display().to_string()),
        Err(error) => {
            let found = format!("cannot write to {}: {error}", folder.display());
            Finding::but(
                "temporary files",
                State::Missing,
                found,
                "set TMPDIR to a folder that you can write to, or free some space",
            )
        }
    }
}

fn loopback() -> Finding {
    let start = Instant::now();
    match handshake() {
        Ok(()) => Finding::ok(
            "TLS on loopback",
            format!(
                "handshake in {}",
                output::seconds(start.elapsed().as_secs_f64())
            ),
        ),
        Err(error) => {
            let advice = "--processes and `veil party` need TCP on 127.0.0.1; look at firewalls and containers";
            Finding::but("TLS on loopback", State::Missing, error.to_string(), advice)
        }
    }
}

/// Links that only some builds and machines have.
fn fabric() -> Finding {
    let (here, missing): (Vec<_>, Vec<_>) = [Provider::TCP, Provider::SHM]
        .map(|provider| (provider, LinkKind::Fabric(provider).check()))
        .into_iter()
        .partition(|(_, found)| found.is_ok());
    let names: Vec<String> = here
        .iter()
        .map(|(provider, _)| provider.to_string())
        .collect();
    let names = match &names[..] {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    match missing.into_iter().find_map(|(_, found)| found.err()) {
        None => Finding::ok("libfabric", names),
        Some(why) => Finding::but(
            "libfabric",
            State::Note,
            names,
            format!("only `--link fabric` needs it. {why}"),
        ),
    }
}

/// The table by which times are estimated.
fn rates_of(home: &Path) -> Finding {
    const WHAT: &str = "rates";
    let measure = format!(
        "`veil-lab calibrate --out {}` measures this machine",
        home.join(rates::IN_HOME).display()
    );
    let found = match rates::Found::of(home) {
        Ok(found) => found,
        Err(error) => {
            let advice = format!("{measure}; without the file, the table of this program is taken");
            return Finding::but(WHAT, State::Note, error.to_string(), advice);
        }
    };
    let days = output::count(rates::age_days(&found.rates).unsigned_abs(), "day");
    let said = format!("{found}, {days} ago");
    if found.rates.machine == rates::machine() {
        Finding::ok(WHAT, said)
    } else {
        let advice = format!("they are of another machine; {measure}");
        Finding::but(WHAT, State::Note, said, advice)
    }
}

/// Two parties meet on loopback.
fn handshake() -> Result<(), SetupError> {
    let local = |error: &dyn std::fmt::Display| SetupError::Local(error.to_string());
    let [a, b, _] = PartyId::THREE.map(Peer::Party);
    let identities = [
        Identity::generate().map_err(|e| local(&e))?,
        Identity::generate().map_err(|e| local(&e))?,
    ];
    let pins: BTreeMap<_, _> = [a, b]
        .into_iter()
        .zip(identities.iter().map(Identity::fingerprint))
        .collect();
    let reception = Reception::sole(pins.values().copied());
    let port = Port::bind(&identities[0], "127.0.0.1:0", reception)?;
    let dial = [(a, port.address().to_string())];
    let terms = |me| Terms {
        me,
        plan: PlanHash([0; 32]),
        pins: pins.clone(),
        link: LinkKind::Tls,
        others: Vec::new(),
    };
    let until = Instant::now() + Duration::from_secs(5);
    let dialling = Meeting {
        dial: &dial,
        from: &[],
        lanes: 1,
        until,
    };
    let listening = Meeting {
        dial: &[],
        from: &[b],
        ..dialling
    };
    let go = AtomicBool::new(false);
    thread::scope(|scope| {
        let dialled = scope.spawn(|| meet(&identities[1], &terms(b), None, &dialling, &go));
        let heard = meet(&identities[0], &terms(a), Some(&port), &listening, &go);
        dialled
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .and(heard)
    })?;
    Ok(())
}

fn port(port: u16) -> Finding {
    match TcpListener::bind(("0.0.0.0", port)) {
        Ok(_) => Finding::ok("port", format!("{port} is free")),
        Err(error) => Finding::but(
            "port",
            State::Missing,
            format!(
                "{port}: {error}{}",
                if error.kind() == std::io::ErrorKind::AddrInUse {
                    ": the port is in use"
                } else {
                    ""
                }
            ),
            "stop the other program (`ss -ltnp` shows it), or declare another one as `listen` in veil.toml of the home",
        ),
    }
}
