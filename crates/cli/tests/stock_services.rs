//! Services and stock: runs that take it where both allow it, and refills in idle time.

use std::fs;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use veil_job::{Statistical, StockKind, StockSink};
use veil_link::tls::{Caller, Fingerprint, Port, Reception};
use veil_node::Home;
use veil_node::control::{self, Reply, Request};
use veil_node::stock::{Making, agree};
use veil_session::{PlanHash, Secret, SessionId};

use crate::common::Folder;
use crate::common::deployment::{PATIENT, Service, alone, at, succeed, take_part_at, wait};
use crate::common::deployment::{Place, end};
use crate::common::homes::homes;
use crate::common::text;
use crate::stock::{deployment, left, listed, prepared, result};

/// Cells of a batch.
pub(crate) const BATCH: u64 = 16384;

/// Adds to the settings of a home.
pub(crate) fn set(folder: &Folder, home: &str, more: &str) {
    let path = folder.at(home).join("veil.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}\n{more}\n")).unwrap();
}

pub(crate) fn service(folder: &Folder, name: &str, more: &[&str]) -> Service {
    Service::start(folder.path(), name, more)
}

/// Proposes the job from `eve`: how the command ended, and what it said.
pub(crate) fn propose(folder: &Folder) -> (Option<i32>, String) {
    let output = folder.veil("submit job.toml --stock --home eve --wait 60");
    let said = text(&output.stdout) + &text(&output.stderr);
    (output.status.code(), said)
}

/// All digits of the plan of the only job that the service of `a` knows.
pub(crate) fn plan(folder: &Folder) -> String {
    let text = folder.succeed("jobs --home a --json");
    let text: Value = serde_json::from_str(&text).unwrap();
    text[0]["jobs"][0]["plan"].as_str().unwrap().to_owned()
}

/// The owner and the recipient take part.
pub(crate) fn others(folder: &Folder, more: &[&str]) {
    let more = [&PATIENT[2..], more].concat();
    let take_part = |home| take_part_at(&Place::HERE, folder, "job.toml", home, &more);
    for child in ["ann", "eve"].map(take_part) {
        succeed(child);
    }
}

/// Cells that are left at a party, in all generations.
pub(crate) fn cells(folder: &Folder, home: &str) -> u64 {
    let all = listed(folder, home);
    let left = all.iter().map(|of| of["about"]["left"].as_u64());
    left.map(Option::unwrap_or_default).sum()
}

/// Cells of the making that goes on at a party, or that is left.
pub(crate) fn unfinished(folder: &Folder, home: &str) -> u64 {
    // A header, and pages with their tags.
    const HEADER: u64 = 4096;
    const PAGE: u64 = 512 * 128 + 16;
    let entries = fs::read_dir(folder.at(home).join("stock")).into_iter();
    let mut paths = entries.flatten().map(|entry| entry.unwrap().path());
    let making = paths.find(|path| path.extension().is_some_and(|of| of == "making"));
    let bytes = making.and_then(|path| fs::metadata(path).ok());
    bytes.map_or(0, |of| of.len().saturating_sub(HEADER) / PAGE * 512)
}

/// What the service of a party answers to a member.
pub(crate) fn asked(folder: &Folder, (by, to): (&str, &str), request: &Request) -> Reply {
    let home = Home::open(&folder.at(by)).unwrap();
    let members = home.members();
    let until = Instant::now() + Duration::from_secs(60);
    let to = members.by_name(to).unwrap();
    control::ask(&home.identity(), to, request, until).unwrap()
}

#[track_caller]
pub(crate) fn refused(reply: Reply, wanted: &str) {
    let Reply::Refused { why } = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(why, wanted);
}

#[test]
fn services_run_from_stock_where_both_allow_it() {
    let _alone = alone();
    let folder = deployment();
    prepared(&folder, &["--runs", "3"]);
    set(&folder, "a", "[stock.b]\nruns = true");
    let a = service(&folder, "a", &[]);
    let b = service(&folder, "b", &[]);
    let (code, said) = propose(&folder);
    assert_eq!(code, Some(3), "{said}");
    let why = "`b` refuses the job: this party runs no jobs from its stock with `a`: its operator sets `runs = true` under [stock.a] in veil.toml, or the \
               job is proposed without `--stock`";
    assert!(said.contains(why), "{said}");
    b.stop();
    set(
        &folder,
        "b",
        "[stock.a]\nruns = true\n[quota.member.ann]\nstock_cells_per_day = \"10\"",
    );
    let b = service(&folder, "b", &[]);
    // A member that may take less than the job does.
    let output = folder.veil("submit job.toml --stock --home ann --wait 60");
    let said = text(&output.stderr);
    assert!(
        said.contains("cells of stock, and jobs of `ann` may take 10 a day"),
        "{said}"
    );
    let (code, said) = propose(&folder);
    assert_eq!(code, Some(0), "{said}");
    let plan = plan(&folder);
    // By its digits, and by the file.
    folder.succeed(&format!("approve {} --yes --home a", &plan[..16]));
    folder.succeed("approve job.toml --stock --yes --home b");
    let (made, _) = left(&folder);
    let jobs = folder.succeed("jobs --home a");
    for part in [
        "cells of stock with b (there are enough)",
        "with `b`",
        "0 spent",
    ] {
        assert!(jobs.contains(part), "{part}: {jobs}");
    }
    others(&folder, &["--stock"]);
    let from_stock = result(&folder);
    wait("done", || {
        ["a", "b"].map(|party| at(&folder, "eve", party, &plan).unwrap().state) == ["done"; 2]
    });
    let (now, sessions) = left(&folder);
    assert!(now < made && sessions == 1, "{now} of {made}");
    for (service, with) in [(&a, "a"), (&b, "b")] {
        wait(with, || {
            service.metric("veil_stock_cells_total{how=\"spent\"}") as u64 == made - now
                && service.metric("veil_stock_cells_left ") as u64 == now
        });
        assert!(!service.page("/metrics").contains("stock-forked"));
    }
    folder.succeed("run job.toml --out fresh");
    let fresh = fs::read(folder.at("fresh/eve/all.hex")).unwrap();
    assert!(from_stock == fresh);
    let jobs = folder.succeed("jobs --home b --json");
    let jobs: Value = serde_json::from_str(&jobs).unwrap();
    assert_eq!(jobs[0]["stock"][0]["with"], "a");
    assert_eq!(jobs[0]["stock"][0]["spent"].as_u64(), Some(made - now));
    assert_eq!(jobs[0]["jobs"][0]["takes"]["with"], "a");
    // Others read nothing of the stock.
    let jobs = folder.succeed("jobs --home eve --json");
    assert!(!jobs.contains("spent"), "{jobs}");
}

/// Two jobs begin at once with the same two parties: one waits for the other to have marked its cells.
#[test]
fn two_runs_take_different_cells() {
    let _alone = alone();
    let folder = deployment();
    prepared(&folder, &["--runs", "4"]);
    let job = fs::read_to_string(folder.at("job.toml")).unwrap();
    folder.write(
        "other.toml",
        job.replace("between two", "between two again"),
    );
    for (home, with) in [("a", "b"), ("b", "a")] {
        set(&folder, home, &format!("[stock.{with}]\nruns = true"));
    }
    let _services = ["a", "b"].map(|name| service(&folder, name, &["--yes"]));
    let jobs = ["job.toml", "other.toml"];
    for job in jobs {
        let output = folder.veil(&format!("submit {job} --stock --home eve --wait 60"));
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let more = [&PATIENT[2..], &["--stock"]].concat();
    let take_part =
        |job| ["ann", "eve"].map(|home| take_part_at(&Place::HERE, &folder, job, home, &more));
    for child in jobs.map(take_part).into_iter().flatten() {
        succeed(child);
    }
    let results = jobs.map(|job| fs::read(folder.at(&format!("out-{job}/all.hex"))).unwrap());
    assert_eq!(results[0], results[1]);
    wait("both", || {
        let all = ["a", "b"].map(|home| listed(&folder, home)[0]["about"]["sessions"].as_u64());
        all == [Some(2); 2]
    });
    left(&folder);
}

/// Stock that is not there is a clear error, and nothing was used or opened.
#[test]
fn a_run_without_enough_stock_says_so() {
    let _alone = alone();
    let folder = deployment();
    set(&folder, "a", "[stock.b]\nruns = true");
    set(&folder, "b", "[stock.a]\nruns = true");
    let _services = ["a", "b"].map(|name| service(&folder, name, &["--yes"]));
    let (code, said) = propose(&folder);
    assert_eq!(code, Some(0), "{said}");
    let plan = plan(&folder);
    let more = [&PATIENT[2..], &["--stock"]].concat();
    let take_part = |home| take_part_at(&Place::HERE, &folder, "job.toml", home, &more);
    for child in ["ann", "eve"].map(take_part) {
        let (code, said) = end(child);
        assert_ne!(code, Some(0), "{said}");
    }
    assert!(!folder.at("out-job.toml").join("all.hex").exists());
    wait("failed", || {
        let all = ["a", "b"].map(|party| at(&folder, party, party, &plan).unwrap());
        all.iter().all(|at| at.state == "failed")
            && all.iter().any(|at| {
                at.why
                    .contains("the two parties have no stock of cells in common")
            })
    });
    let jobs = folder.succeed("jobs --home a --json");
    assert!(jobs.contains("\"takes\""), "{jobs}");
}

#[test]
fn idle_services_fill_their_stock_within_their_limits() {
    let _alone = alone();
    let folder = deployment();
    let limits = "runs = true\ntarget = \"40000\"\ncells_per_day = \"100000\"";
    set(&folder, "a", &format!("[stock.b]\n{limits}\n"));
    set(&folder, "b", &format!("[stock.a]\n{limits}\n"));
    let [a, b] = ["a", "b"].map(|name| service(&folder, name, &["--yes"]));
    // Up to whole batches.
    wait("stock", || {
        ["a", "b"].map(|home| cells(&folder, home)) == [3 * BATCH; 2]
    });
    for service in [&a, &b] {
        wait("metrics", || {
            service.metric("veil_stock_cells_total{how=\"made\"}") as u64 == 3 * BATCH
                && service.metric("veil_stock_cells_left ") as u64 == 3 * BATCH
        });
    }
    wait("the record of it", || {
        let jobs = folder.succeed("jobs --home a --json");
        let jobs: Value = serde_json::from_str(&jobs).unwrap();
        let stock = &jobs[0]["stock"][0];
        stock["rate"].as_f64().is_some_and(|rate| rate > 0.0)
            && stock["made_today"].as_u64() == Some(3 * BATCH)
            && stock["target"].as_u64() == Some(40000)
    });
    // What a party asks for beyond that is refused, each with its reason.
    let there = listed(&folder, "a")[0]["generation"].clone();
    let there = there.as_str().unwrap().to_owned();
    let refill = |cells, statistical, garbles| Request::Refill {
        plan: "0".repeat(64),
        cells,
        transfers: false,
        statistical,
        garbles,
        generations: vec![there.clone()],
    };
    let of_a = |request| asked(&folder, ("a", "b"), &request);
    refused(
        of_a(refill(BATCH, 40, true)),
        "`a` asks for 16384 cells, and this party makes at most 0 with it now",
    );
    refused(
        of_a(refill(BATCH, 40, false)),
        "neither of the two would garble: one sets `garbles = true` under [stock.NAME] in veil.toml, the other one `garbles = false`",
    );
    refused(
        of_a(refill(BATCH, 80, true)),
        "this party makes stock with `a` at `statistical = 40`, and it asks for 80",
    );
    refused(
        asked(&folder, ("eve", "b"), &refill(BATCH, 40, true)),
        "this party makes no stock with `eve`: its operator sets `target` under [stock.eve] in veil.toml",
    );
    let transfers = Request::Refill {
        plan: "0".repeat(64),
        cells: 1 << 16,
        transfers: true,
        statistical: 40,
        garbles: true,
        generations: Vec::new(),
    };
    refused(
        of_a(transfers),
        "this party makes no stock of transfers with `a`: its operator sets `transfers` under [stock.a] in veil.toml",
    );
    let keep = Request::Keep {
        plan: "0".repeat(64),
        cells: BATCH,
    };
    refused(of_a(keep), "there is no such making here");
    assert_eq!(cells(&folder, "b"), 3 * BATCH, "a refusal burns nothing");
    // A party that burns its stock has it made again, and the other one burns the half that is left: within the cells of a day.
    let generation = listed(&folder, "a")[0]["generation"].clone();
    let generation = generation.as_str().unwrap();
    folder.succeed(&format!("stock --home a --remove {generation}"));
    wait("stock again", || {
        let there = |home: &str| {
            let all = listed(&folder, home);
            let mut there = all.iter().filter(|of| of["state"] == "there");
            let one = there.next().map(|of| of["generation"].clone());
            one.filter(|of| of != generation)
        };
        there("a").is_some() && there("a") == there("b")
    });
    let burnt = listed(&folder, "b");
    let of_old = burnt.iter().find(|of| of["generation"] == generation);
    assert!(of_old.is_some_and(|of| of["state"] == "burnt" && of["problem"] == "orphan"));
    wait("it is counted", || {
        b.metric("veil_stock_cells_total{how=\"lost\"}") as u64 == 3 * BATCH
    });
    // A job takes from what was made.
    let (code, said) = propose(&folder);
    assert_eq!(code, Some(0), "{said}");
    others(&folder, &["--stock"]);
    result(&folder);
}

/// A job comes in the middle of a refill: it runs, and what was made until then is kept at both. So it is when a service stops.
#[test]
fn a_refill_yields_to_jobs_and_keeps_what_it_has() {
    let _alone = alone();
    let folder = deployment();
    for (home, with) in [("a", "b"), ("b", "a")] {
        set(
            &folder,
            home,
            &format!("[stock.{with}]\ntarget = \"1e8\"\n"),
        );
    }
    let [a, b] = ["a", "b"].map(|name| service(&folder, name, &["--yes"]));
    let grown = || unfinished(&folder, "b") > 3 * BATCH;
    wait("some of it", grown);
    let output = folder.veil("submit job.toml --home eve --wait 60");
    assert!(output.status.success(), "{}", text(&output.stderr));
    others(&folder, &[]);
    result(&folder);
    let kept = |service: &Service| {
        let said = service.said();
        let mut lines = said.lines();
        let line = lines.find(|line| line.contains("a making of stock ended early"))?;
        let line: Value = serde_json::from_str(line).unwrap();
        line["fields"]["kept"].as_u64().or(line["kept"].as_u64())
    };
    wait("it ends early", || kept(&a).is_some() && kept(&b).is_some());
    assert_eq!(kept(&a), kept(&b));
    assert!(kept(&a).is_some_and(|kept| kept >= BATCH && kept.is_multiple_of(BATCH)));
    assert_eq!(cells(&folder, "a"), cells(&folder, "b"));
    // It goes on when the job is over.
    wait("some more of it", grown);
    let before = cells(&folder, "b");
    let (code, said) = b.stop();
    assert_eq!(code, Some(0), "{said}");
    assert!(cells(&folder, "b") > before);
    wait("the other end", || {
        cells(&folder, "a") == cells(&folder, "b")
    });
    a.stop();
}

/// A party whose home is set back: the next run finds it, nothing is opened, the stock is burnt at both, and idle services make it again.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn stock_that_was_set_back_is_found_and_made_again() {
    let _alone = alone();
    let folder = deployment();
    for (home, with) in [("a", "b"), ("b", "a")] {
        let more = format!("[stock.{with}]\nruns = true\ntarget = \"65536\"");
        set(&folder, home, &more);
    }
    let full = || ["a", "b"].map(|home| cells(&folder, home)) == [65536; 2];
    let _a = service(&folder, "a", &["--yes"]);
    let b = service(&folder, "b", &["--yes"]);
    wait("stock", full);
    let run = |sessions: u64| {
        let (code, said) = propose(&folder);
        assert_eq!(code, Some(0), "{said}");
        others(&folder, &["--stock"]);
        result(&folder);
        let plan = plan(&folder);
        wait("done", || {
            ["a", "b"].map(|party| at(&folder, party, party, &plan).unwrap().state) == ["done"; 2]
        });
        assert_eq!(left(&folder).1, sessions);
    };
    run(1);
    let stock = folder.at("b/stock");
    let entries = fs::read_dir(&stock).unwrap();
    let old: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    run(2);
    run(3);
    b.stop();
    for (path, bytes) in &old {
        fs::write(path, bytes).unwrap();
    }
    let _b = service(&folder, "b", &["--yes"]);
    let (code, said) = propose(&folder);
    assert_eq!(code, Some(0), "{said}");
    let more = [&PATIENT[2..], &["--stock"]].concat();
    let take_part = |home| take_part_at(&Place::HERE, &folder, "job.toml", home, &more);
    for child in ["ann", "eve"].map(take_part) {
        let (code, said) = end(child);
        assert_ne!(code, Some(0), "{said}");
    }
    assert!(!folder.at("out-job.toml").join("all.hex").exists());
    let plan = plan(&folder);
    let why = |party| at(&folder, party, party, &plan).unwrap().why;
    wait("it is named", || {
        ["a", "b"]
            .iter()
            .any(|party| why(party).contains("stock-forked: the marks of generation"))
    });
    wait("stock again", full);
    let there = |home: &str| {
        let all = listed(&folder, home).into_iter();
        let there: Vec<Value> = all.filter(|of| of["state"] == "there").collect();
        assert_eq!(there.len(), 1, "{there:?}");
        there[0]["generation"].clone()
    };
    assert_eq!(there("a"), there("b"));
    let (code, said) = propose(&folder);
    assert_eq!(code, Some(0), "{said}");
    others(&folder, &["--stock"]);
    result(&folder);
}

/// A party that agrees to every refill and comes to none: it costs a while of waiting, and the next one later each time. What it says that it does not have
/// is burnt: it serves neither.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_party_that_agrees_and_does_not_come_is_left_alone() {
    let _alone = alone();
    let folder = deployment();
    prepared(&folder, &["--runs", "1"]);
    set(&folder, "a", "[stock.b]\ntarget = \"1e6\"");
    let b = Home::open(&folder.at("b")).unwrap();
    let agrees = |_: Caller, request: &[u8]| match control::decode(request) {
        Ok(Request::Refill { .. }) => control::encode(&Reply::Refills {
            generations: Vec::new(),
        }),
        _ => control::encode(&Reply::Refused { why: "no".into() }),
    };
    let all = b.members();
    let keys = all.iter().map(|member| member.fingerprint);
    let reception = Reception::sole(keys).with_handler(Arc::new(agrees));
    let listen = b.settings().listen.unwrap().to_string();
    let _port = Port::bind(&b.identity(), &listen, reception).unwrap();
    let a = service(&folder, "a", &["--yes"]);
    wait("it is missed", || a.said().contains("no stock was made"));
    assert_eq!(listed(&folder, "a")[0]["problem"], "orphan");
    let request = Request::Refill {
        plan: "0".repeat(64),
        cells: BATCH,
        transfers: false,
        statistical: 40,
        garbles: false,
        generations: Vec::new(),
    };
    let Reply::Refused { why } = asked(&folder, ("b", "a"), &request) else {
        panic!("it rests")
    };
    assert!(
        why.starts_with("this party makes nothing with `b` for ")
            && why.ends_with(" s more: the last making failed"),
        "{why}"
    );
    assert!(a.page("/readyz").starts_with("HTTP/1.1 200"));
}

/// What the other party says of the end of a making is within what has passed here, and what this one says to it, too.
#[test]
fn both_parties_of_a_making_keep_what_has_passed_at_both() {
    const PAGE: u64 = veil_store::stock::page_of(StockKind::Cells);
    let folder = Folder::new();
    let [a, b] = <[Home; 2]>::try_from(homes(folder.path(), &["a", "b"]))
        .ok()
        .unwrap();
    let [key_a, key_b] = [&a, &b].map(|home| home.identity().fingerprint());
    // A making of which two pages have passed.
    let made = |home: &Home, peer: Fingerprint, name: u8| {
        let stocks = home
            .stocks(
                *peer.as_bytes(),
                true,
                (StockKind::Cells, Statistical::USUAL),
            )
            .unwrap();
        let made = stocks.making(4 * PAGE, None);
        made.begin(&SessionId([name; 32]), &Secret::new([name; 16]))
            .unwrap();
        let field = vec![name; 2 * PAGE as usize * 16];
        made.put(0, &[&field[..]; 8]).unwrap();
        made
    };
    let says = Arc::new(Mutex::new(Reply::Kept { cells: 0 }));
    let said = Arc::clone(&says);
    let answer = move |_: Caller, _: &[u8]| control::encode(&*said.lock().unwrap());
    let reception = Reception::sole([key_a]).with_handler(Arc::new(answer));
    let listen = b.settings().listen.unwrap().to_string();
    let _port = Port::bind(&b.identity(), &listen, reception).unwrap();
    let plan = PlanHash([7; 32]);
    let members = a.members();
    let refuses = Reply::Refused { why: "no".into() };
    for (name, reply, wanted) in [
        (
            1,
            Reply::Kept { cells: 3 * PAGE },
            Err("`b` keeps cells that have not passed here"),
        ),
        (2, refuses, Err("`b` keeps nothing: no")),
        (3, Reply::Stranger {}, Err("`b`: ")),
        (
            4,
            Reply::Jobs { jobs: Vec::new() },
            Err("`b` gave an answer that makes no sense"),
        ),
        (5, Reply::Kept { cells: 0 }, Ok(0)),
        (6, Reply::Kept { cells: PAGE }, Ok(PAGE)),
    ] {
        *says.lock().unwrap() = reply;
        let made = made(&a, key_b, name);
        let kept = agree(&a.identity(), members.by_name("b").unwrap(), plan, &made);
        match wanted {
            Ok(cells) => assert_eq!(kept, Ok(cells)),
            Err(why) => assert!(kept.clone().unwrap_err().starts_with(why), "{kept:?}"),
        }
    }
    let stocks = a
        .stocks(
            *key_b.as_bytes(),
            true,
            (StockKind::Cells, Statistical::USUAL),
        )
        .unwrap();
    assert_eq!(stocks.left().unwrap(), [PAGE]);
    // The other way round.
    let (digits, other) = ("07".repeat(32), "08".repeat(32));
    let making = Making::default();
    refused(
        making.answer(&digits, PAGE, key_a),
        "there is no such making here",
    );
    making.begins(plan, key_a);
    refused(
        making.answer(&digits, PAGE, key_b),
        "there is no such making here",
    );
    refused(
        making.answer(&other, PAGE, key_a),
        "there is no such making here",
    );
    refused(
        making.answer(&digits, PAGE, key_a),
        "the making goes on here",
    );
    let made = Arc::new(made(&b, key_a, 9));
    thread::scope(|scope| {
        let ends = scope.spawn(|| making.ends(&made));
        let asked = |cells| making.answer(&digits, cells, key_a);
        wait("its end", || {
            asked(u64::MAX) == Reply::Kept { cells: 2 * PAGE }
        });
        // An answer that was lost is given again, and is the same.
        assert_eq!(asked(PAGE), Reply::Kept { cells: 2 * PAGE });
        assert_eq!(ends.join().unwrap(), 2 * PAGE);
    });
    assert_eq!(cells(&folder, "b"), 2 * PAGE);
}
