//! In which order gates are garbled, where the garbler has a core.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

use crate::common::between::{NAMES, with_other};
use crate::common::deployment::{PATIENT, Place, alone, end, succeed, take_part_at};
use crate::common::homes::homes;

/// A garbler on a core states its order to all other participants; approvals are of the job, in whichever order.
#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn both_parties_take_the_order_that_the_garbler_states() {
    let _alone = alone();
    let folder = with_other(|_| ());
    homes(folder.path(), NAMES);
    let listed = folder.succeed("device list");
    let device = listed.lines().find(|line| line.contains("fpga-sim"));
    if !device.unwrap().contains("present") {
        println!("skipped: {}", device.unwrap());
        return;
    }
    let part = |name: &str, more: &[&str]| {
        let more = [&PATIENT[2..], more].concat();
        take_part_at(&Place::HERE, &folder, "job.toml", name, &more)
    };
    let run = |device: &[&str], others: &[&str]| {
        let garbler = [device, others].concat();
        let options = |name: &str| if name == "a" { &garbler } else { others };
        let parts = NAMES.iter().map(|name| (*name, part(name, options(name))));
        let parts: Vec<_> = parts.collect();
        let said = parts.into_iter().map(|(name, part)| (name, succeed(part)));
        let said: Vec<(&str, String)> = said.collect();
        let plans: Vec<String> = said
            .iter()
            .map(|(_, said)| {
                let plan = said.lines().find_map(|line| line.strip_prefix("plan "));
                plan.unwrap().to_owned()
            })
            .collect();
        assert!(plans.iter().all(|plan| *plan == plans[0]), "{plans:?}");
        let result = std::fs::read_to_string(folder.at("out-job.toml/all.hex")).unwrap();
        (plans[0].clone(), said, result)
    };
    let (plan, said, result) = run(&["--device", "a=fpga-sim"], &[]);
    for (name, said) in said {
        let why = if name == "a" {
            "fpga-sim, on which `a` garbles, has 2 rows"
        } else {
            "`a`, who garbles, has stated it"
        };
        let line = format!("gates in the order list(2): {why}");
        assert!(said.contains(&line), "{name}: {said}");
    }
    let named = run(&[], &["--schedule", "list(2)"]);
    assert_eq!((&named.0, &named.2), (&plan, &result));
    let usual = run(&[], &[]);
    assert!(usual.0 != plan && usual.2 == result);
    // A party that names an order is not asked, and the other one has to have the same.
    let parts = [
        part("a", &["--device", "a=fpga-sim"]),
        part("b", &["--schedule", "layers"]),
    ];
    for part in parts {
        let (code, said) = end(part);
        assert!(code == Some(3) && said.contains("runs plan"), "{said}");
    }
}
