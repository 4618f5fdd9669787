//! A party that owns data and runs as a service: what its people gave with the approval, and who reads what when it does not do.

use crate::common;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::common::Folder;
use crate::common::deployment::{
    Service, alone, approve, at, end, states, submit, take_part, wait,
};
use crate::common::homes::{NAMES, homes};

const JOB: &str = r#"version = 1
kind = "stats"
name = "study"
owners = ["a", "ann"]
parties = ["a", "b", "c"]
recipients = ["eve"]
column = [{ name = "pay", type = "integer", min = 0, max = 9999 },
          { name = "group", type = "category", values = ["x", "y"] }]
block = [{ name = "all", rows = 20, holds = { a = ["pay"], ann = ["group"] },
           align = { column = "id", every = 16 } }]
analysis = [{ name = "pay", kind = "sum", of = "pay", by = "group", to = "eve" }]
"#;

/// The first 18 rows of a table, with what is around their keys.
fn rows(before: &str, after: &str) -> String {
    let row = |key: u32| format!("{before}{key}{after}\n");
    (100..118).map(row).collect::<Vec<_>>().concat()
}

/// The table of the party: 18 rows with a pay of 1, and two more.
fn pay(last: &[&str; 2]) -> String {
    format!("id,pay\n{}{}\n", rows("", ",1"), last.join("\n"))
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_service_brings_an_aligned_block_and_says_at_home_what_is_wrong_with_it() {
    let _alone = alone();
    let folder = Folder::new();
    folder.write("job.toml", JOB);
    folder.write("a.csv", pay(&["9,31", "10,4711"]));
    let groups = rows("y,", "");
    folder.write("ann.csv", format!("group,id\n{groups}x,9\ny,10\n"));
    folder.succeed("data key new align.key");
    let homes = homes(folder.path(), &NAMES);
    let start = |name: &&str| Service::start(folder.path(), name, &[]);
    let services: Vec<Service> = NAMES[..3].iter().map(start).collect();
    let (plan, _) = submit(&folder, "job.toml");
    let digits = &plan[..16];
    let failed = |what: &str| wait(what, || states(&folder, &plan)[0] == "failed");
    let told = || at(&folder, "eve", "a", &plan).unwrap().why;
    let here = || folder.succeed("jobs --home a");
    let with_data = format!("approve {digits} --data a:all=a.csv --yes --home a");
    let with_key = |key: &str| format!("{with_data} --align-key {key}");

    // Without a key: said at the approval, and by the service at its own home alone.
    let said = common::text(&folder.veil(&with_data).stderr);
    assert!(said.contains("no key for that was given"), "{said}");
    failed("it has no key");
    let own = here();
    for part in [
        "`a` has no alignment key",
        "veil data key new",
        "to `veil approve` where a service brings the data",
    ] {
        assert!(own.contains(part), "{own}\n{part}");
    }
    assert!(told().contains("its operator reads why"), "{}", told());

    // Keys that cannot be used are refused before anything is approved.
    folder.fail(&with_key("none.key"), 3, &["cannot read the alignment key"]);
    fs::copy(folder.at("align.key"), folder.at("open.key")).unwrap();
    fs::set_permissions(folder.at("open.key"), fs::Permissions::from_mode(0o644)).unwrap();
    folder.fail(&with_key("open.key"), 3, &["chmod 600"]);

    // With it the job runs; the owner's own approval says where its data and its key are.
    folder.succeed(&with_key("align.key"));
    folder
        .succeed("approve job.toml --data ann:all=ann.csv --align-key align.key --yes --home ann");
    for home in &homes[1..3] {
        approve(home, &plan);
    }
    for child in ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name)) {
        let (code, said) = end(child);
        assert_eq!(code, Some(0), "{said}");
    }
    let result = fs::read_to_string(folder.at("out-job.toml/result.csv")).unwrap();
    for sum in ["31", "4729"] {
        assert!(result.contains(sum), "{result}");
    }
    wait("done", || states(&folder, &plan) == ["done"; 3]);

    // Another order: where it differs is for those who hold the block. The approval is for one run, and one that opens nothing uses none.
    folder.succeed(&with_key("align.key"));
    folder.write("a.csv", pay(&["10,4711", "9,31"]));
    let [ann, eve] = ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name));
    let (code, said) = end(ann);
    assert_eq!(code, Some(3), "{said}");
    let where_it_is = "the first difference is between rows 17 and 20";
    assert!(said.contains(where_it_is), "{said}");
    let (code, said) = end(eve);
    assert_eq!(code, Some(5), "{said}");
    assert!(!said.contains("rows 17"), "{said}");
    failed("the order differs");
    assert!(here().contains(where_it_is), "{}", here());
    assert!(told().contains("in different orders"), "{}", told());

    // A cell that does not fit stays where it is: at home, and out of the log lines.
    folder.write("a.csv", pay(&["9,31", "10,\"4711,5\""]));
    let [ann, eve] = ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name));
    failed("a cell is wrong");
    wait("it is said", || {
        here().contains("line 21 (row 20), column `pay`: `4711,5`")
    });
    assert!(told().contains("its operator reads why"), "{}", told());
    for mut child in [ann, eve] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let key = folder.succeed("data key show align.key");
    for service in services {
        let (_, said) = service.stop();
        for secret in ["4711", key.trim(), &key.trim()[5..], where_it_is] {
            assert!(!said.contains(secret), "{said}");
        }
    }
}
