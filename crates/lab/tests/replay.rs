//! Records of a party's device, and their replay.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

use std::os::unix::fs::PermissionsExt;

use crate::common::{Folder, text};

#[test]
fn a_recorded_party_replays_alone() {
    let folder = Folder::wages();
    folder.fail(
        "run wages.toml --record rec",
        2,
        &["lays open the values of all owners", "--data-are-mine"],
    );
    folder.fail(
        "run wages.toml --record rec --data-are-mine --processes",
        2,
        &["leave --processes out"],
    );
    folder.fail(
        "run wages.toml --record rec --data-are-mine --party dora",
        2,
        &["no participant is called `dora`", "ann, bob, carol"],
    );
    let output = folder.veil("run wages.toml --lanes 2 --record rec --party carol --data-are-mine");
    let said = text(&output.stderr);
    assert!(
        output.status.success() && said.contains("keep it to yourself"),
        "{said}"
    );
    assert!(said.contains("recorded carol"), "{said}");
    let file = folder.at("rec/lane-0.record");
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(folder.at("rec")), mode(file.clone())), (0o700, 0o600));
    let head = std::fs::read(&file).unwrap();
    assert!(head.starts_with(b"veilworks device record 2\nSECRET"));
    for device in ["cpu", "reference"] {
        let said = folder.succeed(&format!("device replay rec --device {device}"));
        assert!(
            said.contains("all equal") && said.contains("lane-1"),
            "{said}"
        );
    }
    folder.fail(
        "run wages.toml --record rec --data-are-mine",
        3,
        &["not there yet"],
    );
    folder.fail(
        "device replay rec --device abacus",
        2,
        &["no device `abacus`", "reference"],
    );
    folder.fail("device replay .", 3, &["no record in this folder"]);
    let mut damaged = head;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(&file, &damaged).unwrap();
    folder.fail(
        "device replay rec",
        3,
        &[
            "rec/lane-0.record",
            "was changed after it was written",
            "record the run again",
        ],
    );
    for (bytes, part) in [
        (&b""[..], "this is no device record of version 2"),
        (
            b"veilworks device record 2\n",
            "this is no device record of version 2",
        ),
        (&damaged[..300], "it was cut off, or the run was"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        folder.fail(
            "device replay rec",
            3,
            &["rec/lane-0.record", part, "record the run again"],
        );
    }
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    folder.fail(
        "device replay rec",
        3,
        &["rec/lane-0.record", "record the run again"],
    );
    for nowhere in ["nowhere", "wages.toml"] {
        folder.fail(
            &format!("device replay {nowhere}"),
            3,
            &[nowhere, "--record DIR"],
        );
    }
}

/// A query has a device for each kind of pass, and a file for each device.
#[test]
fn a_recorded_party_of_a_query_replays_alone() {
    let folder = Folder::new();
    folder.write(
        "job.toml",
        r#"version = 1
kind = "query"
name = "stays"
owners = ["ann"]
parties = ["a", "b", "c"]
recipients = ["eve"]

[[table]]
name = "stays"
owner = "ann"
rows = 9
file = "stays.csv"
column = [
  { name = "ward", type = "integer", min = 0, max = 15 },
  { name = "cost", type = "integer", min = 0, max = 255 },
]

[query]
name = "by_ward"
sql = "SELECT ward, sum(cost) AS cost FROM stays GROUP BY ward ORDER BY ward"
to = "eve"
"#,
    );
    let rows = (0..9u32).map(|row| format!("{},{}\n", row * 7 % 4, row * 31));
    let rows: String = rows.collect();
    folder.write("stays.csv", format!("ward,cost\n{rows}"));
    let output = folder.veil("run job.toml --lanes 1 --record rec --party b --data-are-mine");
    let said = text(&output.stderr);
    assert!(
        output.status.success() && said.contains("recorded b: "),
        "{said}"
    );
    for device in ["cpu", "reference"] {
        let said = folder.succeed(&format!("device replay rec --device {device}"));
        for part in [
            "rec/device-0000.record",
            "rec/device-0002.record",
            " passes from ",
        ] {
            assert!(said.contains(part), "no `{part}` in {said}");
        }
    }
    let printed = folder.succeed("device replay rec --json");
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let files = printed["files"].as_array().unwrap();
    let mut passes: Vec<u64> = files
        .iter()
        .flat_map(|file| file["passes"].as_array().unwrap())
        .map(|pass| pass.as_u64().unwrap())
        .collect();
    passes.sort_unstable();
    let all: Vec<u64> = (1..=passes.len() as u64).collect();
    assert!(passes == all && all.len() > 5, "{passes:?}");
    let file = folder.at("rec/device-0001.record");
    let mut damaged = std::fs::read(&file).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(&file, &damaged).unwrap();
    folder.fail(
        "device replay rec",
        3,
        &[
            "rec/device-0001.record",
            "was changed after it was written",
            "record the run again",
        ],
    );
}
