//! `veil jobs`: what parties run, wait for, and have done.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use veil_job::StockKind;
use veil_node::control::{self, Reply, Request};
use veil_node::jobs::{State, Status};
use veil_node::stock::{StockOf, report};
use veil_node::{Home, Member, Role, Time};
use veilworks::About;

use crate::failure::{Code, Failure};
use crate::home::note;
use crate::output::{self, columns};
use crate::signals::Stop;

/// Says how the jobs are in which this participant has a part.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil jobs                    at a party: all jobs of its service; elsewhere: ours, at every party
  veil jobs --watch            a line for each change, until no job is under way
  veil jobs --at union --json

A job that waits for participants names those who have not come.")]
pub(crate) struct JobsArgs {
    /// The home of this participant [default: $VEIL_HOME, else ~/.veil]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Ask this party alone.
    #[arg(long, value_name = "NAME")]
    at: Option<String>,
    /// How many seconds a party has to answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait: u64,
    /// Show every change until no job waits or runs.
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The jobs of one party.
#[derive(Serialize)]
struct At {
    party: String,
    jobs: Vec<Status>,
    /// The stock of this party, by the other one: of its own home alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stock: Vec<StockOf>,
    /// Why it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

pub(crate) fn run(args: &JobsArgs) -> Result<(), Failure> {
    let home = Home::open(&Home::locate(args.home.as_deref()))?;
    if args.watch {
        return watch(&home, args);
    }
    let mut all = Vec::new();
    // A party that is down is no reason to say nothing about the others.
    let mut failure = None;
    for party in whom(&home, args.at.as_deref())? {
        let until = Instant::now() + Duration::from_secs(args.wait);
        let (jobs, why) = match asked(&home, &party, until) {
            Ok(jobs) => (jobs, None),
            Err(error) => {
                let why = error.to_string();
                failure.get_or_insert(error);
                (Vec::new(), Some(why))
            }
        };
        all.push(At {
            stock: own_stock(&home, &party.name),
            party: party.name,
            jobs,
            why,
        });
    }
    if args.json {
        output::print_json(&all)?;
    } else {
        print(&all)?;
    }
    failure.map_or(Ok(()), Err)
}

/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);

/// Shows a line for each job, and whenever it is new, until none is under way. A party that is down is shown so, and asked again.
fn watch(home: &Home, args: &JobsArgs) -> Result<(), Failure> {
    let stop = Stop::install()?;
    let parties = whom(home, args.at.as_deref())?;
    let mut shown: BTreeMap<(String, String), String> = BTreeMap::new();
    while !stop.asked() {
        let mut under_way = false;
        for party in &parties {
            let until = Instant::now() + Duration::from_secs(args.wait);
            let said = match asked(home, party, until) {
                Ok(jobs) => {
                    let goes = |job: &Status| job.state == State::Pending || job.state.active();
                    under_way |= jobs.iter().any(goes);
                    let text = |job: &Status| {
                        let plan = &job.plan[..16.min(job.plan.len())];
                        (
                            job.plan.clone(),
                            format!("{plan}  {}  {}", job.job, line(job)),
                        )
                    };
                    jobs.iter().map(text).collect()
                }
                Err(error) => vec![(String::new(), error.to_string())],
            };
            for (plan, line) in said {
                let known = shown.insert((party.name.clone(), plan), line.clone());
                if known.as_ref() != Some(&line) {
                    output::print(&format!("{}: {line}\n", party.name))?;
                }
            }
        }
        if !under_way {
            break;
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// What one party says.
fn asked(home: &Home, party: &Member, until: Instant) -> Result<Vec<Status>, Failure> {
    let reply = control::ask(&home.identity(), party, &Request::Jobs {}, until)?;
    let Reply::Jobs { jobs } = reply else {
        let message = format!("`{}` does not say how the jobs are", party.name);
        return Err(Failure::new(Code::Link, message));
    };
    Ok(jobs)
}

fn print(all: &[At]) -> Result<(), Failure> {
    for at in all {
        let mut rows = Vec::new();
        for job in &at.jobs {
            rows.push(vec![
                job.plan[..16.min(job.plan.len())].to_owned(),
                job.job.clone(),
                line_of(job, lacks(job, &at.stock)),
            ]);
        }
        let text = if let Some(why) = &at.why {
            format!("  gave no answer: {why}\n")
        } else if rows.is_empty() {
            "  no jobs\n".to_owned()
        } else {
            columns(&rows)
        };
        output::print(&format!("{}:\n{text}", at.party))?;
        if !at.stock.is_empty() {
            let rows: Vec<Vec<String>> = at.stock.iter().flat_map(of_stock).collect();
            output::print(&format!("stock:\n{}", columns(&rows)))?;
        }
    }
    Ok(())
}

/// The stock of this home with each party, if `party` is this one.
fn own_stock(home: &Home, party: &str) -> Vec<StockOf> {
    if party != home.settings().name {
        return Vec::new();
    }
    report(home).unwrap_or_else(|error| {
        note(&format!("the stock cannot be read: {error}"));
        Vec::new()
    })
}

/// What a line says of a job that takes more than there is.
fn lacks(job: &Status, stock: &[StockOf]) -> &'static str {
    let waits = job.state == State::Pending || job.state == State::Meeting;
    let Some(takes) = job.takes.as_ref().filter(|_| waits && !stock.is_empty()) else {
        return "";
    };
    let with = stock.iter().find(|of| of.with == takes.with);
    if with.is_some_and(|of| of.suffices(takes)) {
        " (there are enough)"
    } else {
        " (there are too few)"
    }
}

/// The stock with a party, in columns: of each kind that it has, or is to have.
fn of_stock(of: &StockOf) -> Vec<Vec<String>> {
    let cells = (of.cells, &of.generations, of.target);
    let transfers = (of.transfers, &of.transfer_generations, of.transfer_target);
    let kinds = StockKind::ALL.into_iter().zip([cells, transfers]);
    let shown = kinds.filter(|(kind, (left, generations, target))| {
        *kind == StockKind::Cells || *left + *target > 0 || !generations.is_empty()
    });
    shown
        .map(|(kind, of_kind)| of_kind_of_stock(of, kind, of_kind))
        .collect()
}

fn of_kind_of_stock(
    of: &StockOf,
    kind: StockKind,
    (left, generations, target): (u64, &BTreeMap<String, u64>, u64),
) -> Vec<String> {
    let most = generations.values().max().copied().unwrap_or(0);
    let target = match target {
        0 => "made by `veil prepare` alone".to_owned(),
        target => format!("of {target} wanted, {} made in a day", of.made_today),
    };
    let rate = of.rate.map_or_else(String::new, |rate| {
        format!("made at {} each second", rate as u64)
    });
    let damaged = match of.damaged {
        0 => String::new(),
        damaged => format!(
            "{} damaged: `veil stock`",
            output::count(damaged, "generation")
        ),
    };
    vec![
        format!("with `{}`", of.with),
        output::count(left, kind.item()),
        format!(
            "in {}",
            output::count(generations.len() as u64, "generation")
        ),
        format!("at most {most} for a run"),
        format!("{} spent", of.spent),
        target,
        rate,
        damaged,
    ]
}

/// The parties to ask: this one's own service, or those that it knows.
fn whom(home: &Home, at: Option<&str>) -> Result<Vec<Member>, Failure> {
    let members = home.members();
    if let Some(name) = at.filter(|name| *name != home.settings().name) {
        let member = members.by_name(name).ok_or_else(|| {
            Failure::new(Code::Input, format!("there is no member `{name}`"))
                .help("`veil members` lists who is known")
        })?;
        return Ok(vec![member.clone()]);
    }
    if home.settings().role == Role::Party {
        return Ok(vec![own(home)?]);
    }
    let parties = members.iter().filter(|member| member.role == Role::Party);
    let parties: Vec<Member> = parties.cloned().collect();
    if parties.is_empty() {
        note("no party is a member yet: `veil join` takes the invitation of one");
    }
    Ok(parties)
}

/// This party's own service, as if it were a member.
pub(crate) fn own(home: &Home) -> Result<Member, Failure> {
    let settings = home.settings();
    let mut listen = settings.listen.ok_or_else(|| {
        Failure::new(
            Code::Input,
            "this home does not say where its service listens",
        )
        .help("set `listen` in its veil.toml")
    })?;
    if listen.ip().is_unspecified() {
        let loopback = match listen {
            std::net::SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            std::net::SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        listen.set_ip(loopback);
    }
    Ok(Member {
        name: settings.name.clone(),
        role: settings.role,
        fingerprint: home.identity().fingerprint(),
        address: Some(listen.to_string()),
        since: Time::now(),
        former: Vec::new(),
        rotations: 0,
        revoked: None,
    })
}

/// How a job is, in a line.
pub(crate) fn line(status: &Status) -> String {
    line_of(status, "")
}

/// The same, with more about the stock that it takes.
fn line_of(status: &Status, stock: &str) -> String {
    let mut parts = vec![status.state.name().to_owned()];
    if let Some(phase) = &status.phase {
        parts.push(format!("{phase}, {} of {} rows", status.rows, status.of));
    }
    if status.sent + status.received > 0 {
        let [sent, received] = [status.sent, status.received].map(output::bytes);
        parts.push(format!("sent {sent}, received {received}"));
    }
    if let Some(takes) = &status.takes {
        let cells = output::count(takes.cells, takes.kind().item());
        parts.push(format!("takes {cells} of stock with {}{stock}", takes.with));
    }
    let ready = |name: &&String| !status.held.contains_key(*name);
    let waits: Vec<&str> = (status.waits_for.iter().filter(ready))
        .map(String::as_str)
        .collect();
    if !waits.is_empty() {
        parts.push(format!("waits for {}", waits.join(", ")));
    }
    for (name, why) in &status.held {
        parts.push(format!("waits for {name}: {}", why.sentence()));
    }
    let why = status.why.as_ref().map(|why| format!(": {why}"));
    let run = status.trace.as_ref().map(|trace| format!(" (run {trace})"));
    parts.join(", ") + &why.unwrap_or_default() + &run.unwrap_or_default()
}

impl From<control::CallError> for Failure {
    fn from(error: control::CallError) -> Self {
        use veil_link::tls::ControlError;
        let code = match &error {
            control::CallError::Call {
                error: ControlError::WrongKey { .. } | ControlError::OurKey { .. },
                ..
            } => Code::Check,
            control::CallError::NoAddress { .. } => Code::Input,
            _ => Code::Link,
        };
        let help = match code {
            Code::Input => "",
            Code::Check
                if matches!(
                    &error,
                    control::CallError::Call {
                        error: ControlError::OurKey { .. },
                        ..
                    }
                ) =>
            {
                "was our key rotated, and not announced there? `veil identity show --statements` prints what `veil join` takes there; else ask for an invitation"
            }
            _ => "`veil doctor` asks every member, and says what to do",
        };
        let (control::CallError::NoAddress { name }
        | control::CallError::Call { name, .. }
        | control::CallError::Reply { name, .. }) = &error
        else {
            return Failure::new(code, error.to_string()).help(help);
        };
        let about = About {
            peer: Some(name.clone()),
            ..About::default()
        };
        Failure::new(code, error.to_string())
            .help(help)
            .about(about)
    }
}
