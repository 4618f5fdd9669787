//! What a home has, and how its members are.

use std::path::Path;
use std::time::Duration;

use rustix::fs::statvfs;
use veil_link::tls::{ControlError, Port, Reception};
use veil_node::control::{CallError, Computes, Hello, Reply, Request, ask_if_there};
use veil_node::{Home, Member, Role};

use super::{Finding, State};
use crate::output;

/// How long a member has to be there.
const WAIT: Duration = Duration::from_secs(5);

/// Our own service is there at once, if it runs.
const OWN: Duration = Duration::from_secs(1);

/// Clocks that differ by more make logs hard to compare.
const APART: u64 = 60;

/// Room for results, shares and the log.
const ENOUGH: u64 = 1 << 30;

/// Looks at a home, and asks every member that can be asked.
pub(super) fn look(path: &Path) -> Vec<Finding> {
    let home = match Home::open(path) {
        Ok(home) => home,
        Err(error) => {
            return vec![Finding::but("home", State::Missing, error.to_string(), "")];
        }
    };
    let settings = home.settings();
    let who = format!("{}: `{}`, {}", path.display(), settings.name, settings.role);
    let mut findings = vec![
        Finding::ok("home", who),
        Finding::ok("key", home.identity().fingerprint().to_string()),
        log(&home),
        disk(&home),
        planning(&home),
        policy(&home),
    ];
    if settings.role == Role::Party {
        findings.push(own_port(&home));
    }
    let members = home.members();
    if members.iter().count() == 0 {
        let advice = "`veil invite NAME --role ROLE` makes an invitation";
        findings.push(Finding::but("members", State::Note, "none yet", advice));
    }
    findings.extend(members.iter().map(|member| of(&home, member)));
    findings
}

fn log(home: &Home) -> Finding {
    let advice = "compare with a copy; `veil log verify` says more, and `veil serve` does not touch what is there";
    if let Err(fault) = home.log().verify(&[]) {
        return Finding::but("log", State::Missing, fault.to_string(), advice);
    }
    match home.log().writable() {
        Ok(()) => Finding::ok("log", "the chain holds, and it takes entries"),
        Err(error) => {
            let advice = "nothing runs that cannot be logged: make room, and see who owns the file";
            Finding::but("log", State::Missing, error.to_string(), advice)
        }
    }
}

fn disk(home: &Home) -> Finding {
    let free = statvfs(home.path()).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    let reserve = home.settings().admission.disk_reserve;
    match free {
        Ok(free) if free < reserve && home.settings().role == Role::Party => {
            let [free, reserve] = [free, reserve].map(output::bytes);
            let found = format!("{free} free, {reserve} kept for running jobs: no job is taken");
            let advice = "free some room, move the home, or set `disk_reserve` under [admission] in veil.toml";
            Finding::but("disk", State::Missing, found, advice)
        }
        Ok(free) if free >= ENOUGH => Finding::ok("disk", format!("{} free", output::bytes(free))),
        Ok(free) => {
            let found = format!("{} free", output::bytes(free));
            let advice =
                "results, stored shares and the log need room; free some, or move the home";
            Finding::but("disk", State::Note, found, advice)
        }
        Err(error) => Finding::but("disk", State::Note, error.to_string(), ""),
    }
}

/// How the planning of what others propose is confined.
fn planning(home: &Home) -> Finding {
    if home.settings().role != Role::Party {
        return Finding::ok("planning", "no member proposes anything here");
    }
    let require = home.settings().admission.sandbox;
    match veil_node::planner::confinement("/proc/self/exe".as_ref(), require) {
        Ok(by) => Finding::ok("planning", format!("confined by {by}")),
        Err(why) => {
            let advice = "proposals of others are refused until then";
            Finding::but("planning", State::Missing, why, advice)
        }
    }
}

/// Whether the policy can be read: one that cannot allows nothing.
fn policy(home: &Home) -> Finding {
    match home.policy() {
        Ok(None) => Finding::ok("policy", "none: people approve every job"),
        Ok(Some(policy)) => Finding::ok("policy", format!("{} rules", policy.rules.len())),
        Err(error) => {
            let advice = "no job runs until it can be read; `veil policy check JOB` tries it";
            Finding::but("policy", State::Missing, error.to_string(), advice)
        }
    }
}

/// Whether the party's own port can be had, or is held by its own service.
fn own_port(home: &Home) -> Finding {
    let Some(listen) = home.settings().listen else {
        let advice = "set `listen` in veil.toml, such as \"0.0.0.0:7000\"";
        return Finding::but(
            "port",
            State::Missing,
            "it does not say where it listens",
            advice,
        );
    };
    let identity = home.identity();
    if let Ok(own) = crate::commands::jobs::own(home)
        && let Ok(Reply::Jobs { .. }) = ask_if_there(&identity, &own, &Request::Jobs {}, OWN)
    {
        return Finding::ok("port", format!("{listen}: our own service answers"));
    }
    match Port::bind(&identity, &listen.to_string(), Reception::sole([])) {
        Ok(_) => {
            let advice = "`veil serve` takes jobs there";
            Finding::but(
                "port",
                State::Note,
                format!("{listen} is free, no service runs"),
                advice,
            )
        }
        Err(error) => {
            let advice = "another program holds it, or another home's service";
            Finding::but("port", State::Missing, error.to_string(), advice)
        }
    }
}

/// How a member is.
fn of(home: &Home, member: &Member) -> Finding {
    let what = format!("member {}", member.name);
    let identity = home.identity();
    let reply = ask_if_there(&identity, member, &Request::Hello {}, WAIT);
    match reply {
        Ok(Reply::Hello(hello)) => known(what, home, member, &hello),
        Ok(_) => {
            let found = "it gives an answer that makes no sense";
            Finding::but(
                what,
                State::Missing,
                found,
                "run the same release on both sides",
            )
        }
        Err(CallError::NoAddress { .. }) => Finding::ok(
            what,
            format!("{}, calls us; it is never called", member.role),
        ),
        Err(CallError::Call { error, .. }) => {
            let advice = match &error {
                ControlError::Unreachable { .. } => {
                    "ask its operator whether it runs, and both firewalls for that port"
                }
                ControlError::WrongKey { .. } => {
                    "if it rotated its key, take its statement with `veil join`; if not, an attacker is in between"
                }
                ControlError::OurKey { .. } => {
                    "was our key rotated, and not announced there? `veil identity show --statements` prints what `veil join` takes there; else ask for an invitation"
                }
                _ => "",
            };
            Finding::but(what, State::Missing, error.to_string(), advice)
        }
        Err(error) => Finding::but(what, State::Missing, error.to_string(), ""),
    }
}

/// A member that answered, whose key is the pinned one.
fn known(what: String, home: &Home, member: &Member, hello: &Hello) -> Finding {
    let ours = env!("CARGO_PKG_VERSION");
    if hello.name != member.name {
        let found = format!("it calls itself `{}`", hello.name);
        let advice =
            "jobs name participants; agree on one name, revoke this member and invite it again";
        return Finding::but(what, State::Missing, found, advice);
    }
    let knows = hello.knows_you_as.as_deref();
    if let Some(other) = knows.filter(|name| *name != home.settings().name) {
        let found = format!("it knows us as `{other}`");
        let advice = "jobs name participants; let it revoke that member and invite us by our name";
        return Finding::but(what, State::Missing, found, advice);
    }
    if hello.version != ours {
        let found = format!(
            "reachable, its key is the pinned one; it runs version {}, we run {ours}",
            hello.version
        );
        return Finding::but(
            what,
            State::Note,
            found,
            "run the same release on both sides",
        );
    }
    let ahead = hello.ahead();
    if ahead.unsigned_abs() > APART {
        let way = if ahead > 0 { "ahead of" } else { "behind" };
        let found = format!(
            "reachable, its key is the pinned one; its clock is {} {way} ours",
            span(ahead.unsigned_abs())
        );
        let advice = "set the one that is wrong (`timedatectl`); runs do not depend on clocks, but invitations, limits per day and the times of logs do";
        return Finding::but(what, State::Note, found, advice);
    }
    let device = hello.computes.as_ref().map(Computes::shown);
    let device = device.map_or_else(String::new, |device| format!(", computes on {device}"));
    Finding::ok(
        what,
        format!(
            "reachable, its key is the pinned one, version {}{device}",
            hello.version
        ),
    )
}

/// A time that is long.
fn span(seconds: u64) -> String {
    match seconds {
        0..=7199 => output::count(seconds / 60, "minute"),
        7200..=172_799 => output::count(seconds / 3600, "hour"),
        _ => output::count(seconds / 86400, "day"),
    }
}

#[cfg(test)]
mod tests {
    use veil_node::{Settings, Time};

    use super::*;

    #[test]
    fn what_is_wrong_with_a_member_that_answers_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::new("mill", Role::Owner).unwrap();
        let home = Home::create(&folder.path().join("mill"), &settings).unwrap();
        let key = home.identity().fingerprint();
        home.pin("union", Role::Party, key, Some("127.0.0.1:1"))
            .unwrap();
        let member = home.members().by_name("union").unwrap().clone();
        let good = Hello {
            name: "union".into(),
            role: Role::Party,
            version: env!("CARGO_PKG_VERSION").into(),
            time: Time::now().seconds(),
            knows_you_as: Some("mill".into()),
            computes: None,
        };
        let look = |hello: Hello| {
            let finding = known("member union".into(), &home, &member, &hello);
            (finding.state, finding.found + " → " + &finding.advice)
        };
        assert_eq!(look(good.clone()).0, State::Ok);
        let time = good.time + 86_400;
        let (state, said) = look(Hello {
            time,
            ..good.clone()
        });
        assert_eq!(state, State::Note);
        assert!(
            said.contains("clock is 23 hours ahead") || said.contains("clock is 24 hours ahead"),
            "{said}"
        );
        assert!(said.contains("timedatectl"), "{said}");
        let time = good.time - 90;
        assert!(
            look(Hello {
                time,
                ..good.clone()
            })
            .1
            .contains("clock is 1 minute behind ours")
        );
        let (state, said) = look(Hello {
            version: "9.9.9".into(),
            ..good.clone()
        });
        assert!(
            state == State::Note && said.contains("version 9.9.9"),
            "{said}"
        );
        let (state, said) = look(Hello {
            name: "onion".into(),
            ..good.clone()
        });
        assert!(
            state == State::Missing && said.contains("calls itself `onion`"),
            "{said}"
        );
        let knows_you_as = Some("windmill".into());
        let (state, said) = look(Hello {
            knows_you_as,
            ..good
        });
        assert!(
            state == State::Missing && said.contains("knows us as `windmill`"),
            "{said}"
        );
    }
}
