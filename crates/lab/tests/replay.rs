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
