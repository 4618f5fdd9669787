//! Stock of random transfers between two homes, by `veil prepare` and by services; and what is left of makings.

use std::fs;

use serde_json::Value;
use veil_job::{Statistical, StockKind, StockSink};
use veil_node::Home;
use veil_session::{Secret, SessionId};

use crate::common::deployment::{PATIENCE, alone, at, end, succeed, wait};
use crate::stock::{deployment, deployment_of, left, listed, prepared, result, start};
use crate::stock_services::{cells, others, plan, propose, service, set};

/// Of parties that follow the protocol: random transfers.
#[test]
fn two_homes_make_transfers_and_take_them() {
    let folder = deployment_of("semi-honest");
    let patient = PATIENCE.to_string();
    folder.succeed("run job.toml --out fresh");
    let expected = fs::read(folder.at("fresh/eve/all.hex")).unwrap();
    let stocked = ["--timeout", &patient, "--stock"];
    let ended: Vec<_> = start(&folder, &stocked).into_iter().map(end).collect();
    // An owner that has told its values waits for nothing.
    let said = |(code, said): &(Option<i32>, String)| {
        *code == Some(3) && said.contains("no stock of transfers in common")
    };
    assert!(ended[..2].iter().any(said), "{ended:?}");
    assert!(!folder.at("out-job.toml").join("all.hex").exists());
    let wrong = "runs of this job take transfers from a stock, and nothing else";
    folder.fail("prepare job.toml --home a --cells 1000", 2, &[wrong]);
    let few = "10 transfers serve no run of this job, which takes 82";
    folder.fail("prepare job.toml --home a --transfers 10", 2, &[few]);
    prepared(&folder, &["--transfers", "1000"]);
    let (made, sessions) = left(&folder);
    assert_eq!((made, sessions), (65536, 0));
    for number in 1..=2 {
        for child in start(&folder, &stocked) {
            succeed(child);
        }
        assert_eq!(result(&folder), expected);
        assert_eq!(left(&folder), (made - 82 * number, number));
    }
    let text = folder.succeed("stock --home a");
    let of = "65372 of 65536 transfers left";
    assert!(text.contains(of) && text.contains("2^-110"), "{text}");
    // On one machine, and what is said of it before.
    let run = folder.succeed("run job.toml --stock --out stocked --json");
    let run: Value = serde_json::from_str(&run).unwrap();
    assert_eq!(
        fs::read(folder.at("stocked/eve/all.hex")).unwrap(),
        expected
    );
    let stock = &run["stock"];
    assert_eq!(
        (stock["cells"].as_u64(), stock["of"].as_str()),
        (Some(82), Some("transfers"))
    );
    let explained = folder.succeed("explain job.toml --stock --json");
    let explained: Value = serde_json::from_str(&explained).unwrap();
    assert_eq!(explained["plan"], run["plan"]);
    let (stock, sent) = (&explained["stock"], |of: &Value| {
        of["bytes"].as_u64().unwrap()
    });
    assert_eq!(
        (stock["cells"].as_u64(), stock["of"].as_str()),
        (Some(82), Some("transfers"))
    );
    assert!(sent(&stock["online"]) < sent(&stock["fresh"]), "{stock}");
    let all = explained["participants"].as_array().unwrap();
    assert_eq!(all.iter().map(sent).sum::<u64>(), sent(&stock["online"]));
}

/// Transfers of jobs whose parties follow the protocol: made within the same limits, and taken.
#[test]
fn idle_services_make_transfers_and_run_from_them() {
    const BATCH: u64 = 65536;
    let _alone = alone();
    let folder = deployment_of("semi-honest");
    for (home, with) in [("a", "b"), ("b", "a")] {
        let limits = "runs = true\ntransfers = \"100000\"\ncells_per_day = \"200000\"";
        set(&folder, home, &format!("[stock.{with}]\n{limits}\n"));
    }
    let services = ["a", "b"].map(|name| service(&folder, name, &["--yes"]));
    wait("stock", || {
        ["a", "b"].map(|home| cells(&folder, home)) == [2 * BATCH; 2]
    });
    let (code, said) = propose(&folder);
    assert_eq!(code, Some(0), "{said}");
    let plan = plan(&folder);
    others(&folder, &["--stock"]);
    let from_stock = result(&folder);
    wait("done", || {
        ["a", "b"].map(|party| at(&folder, "eve", party, &plan).unwrap().state) == ["done"; 2]
    });
    let (now, sessions) = left(&folder);
    // Two bits of 40 rows, and two of the job.
    assert_eq!((now, sessions), (2 * BATCH - 82, 1));
    folder.succeed("run job.toml --out fresh");
    let fresh = fs::read(folder.at("fresh/eve/all.hex")).unwrap();
    assert!(from_stock == fresh);
    let jobs = folder.succeed("jobs --home b --json");
    let jobs: Value = serde_json::from_str(&jobs).unwrap();
    assert_eq!(jobs[0]["stock"][0]["transfers"].as_u64(), Some(now));
    assert_eq!(jobs[0]["stock"][0]["cells"].as_u64(), Some(0));
    assert_eq!(jobs[0]["jobs"][0]["takes"]["transfers"], true);
    let jobs = folder.succeed("jobs --home b");
    assert!(
        jobs.contains("takes 82 transfers of stock with a"),
        "{jobs}"
    );
    drop(services);
}

/// What is left of a making is listed, and a service removes it when no more is wanted.
#[test]
fn a_service_removes_an_unfinished_making_that_is_not_wanted() {
    let _alone = alone();
    let folder = deployment();
    let left_over = |kind: StockKind| {
        let home = Home::open(&folder.at("a")).unwrap();
        let peer = home.members().by_name("b").unwrap().fingerprint;
        let stocks = home.stocks(*peer.as_bytes(), true, (kind, Statistical::USUAL));
        let page = veil_store::stock::page_of(kind);
        let made = stocks.unwrap().making(2 * page, None);
        made.begin(&SessionId([7; 32]), &Secret::new([7; 16]))
            .unwrap();
        let field = vec![7; page as usize * 16];
        let fields = vec![&field[..]; kind.fields()];
        made.put(0, &fields).unwrap();
        made.stay();
    };
    left_over(StockKind::Transfers);
    let all = listed(&folder, "a");
    assert_eq!(
        (&all[0]["state"], &all[0]["about"]["of"]),
        (&"unfinished".into(), &"transfers".into())
    );
    let shown = folder.succeed("stock --home a");
    assert!(shown.contains("unfinished: 8192 transfers"), "{shown}");
    let name = all[0]["generation"].as_str().unwrap();
    folder.succeed(&format!("stock --home a --remove {name}"));
    assert!(listed(&folder, "a").is_empty());
    left_over(StockKind::Transfers);
    // Cells are wanted, and transfers are not any more.
    set(
        &folder,
        "a",
        "[stock.b]\ntarget = \"100000\"\ntransfers = \"0\"",
    );
    let a = service(&folder, "a", &["--yes"]);
    wait("it is gone", || listed(&folder, "a").is_empty());
    assert!(a.said().contains("no more of it is wanted"));
}
