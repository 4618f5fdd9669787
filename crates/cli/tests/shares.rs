//! What `veil shares` says of a party's store.

use crate::common;
use crate::common::Folder;
use veil_job::Slice;
use veil_node::{Home, Role, Settings};
use veil_session::{PartyId, PlanHash};
use veil_store::{BlockRows, Description, Member, Port, StoreKey, Writer};

/// A home with two datasets, one of which was never finished.
fn home(folder: &Folder) -> std::path::PathBuf {
    let settings = Settings::new("north", Role::Party).unwrap();
    let home = Home::create(&folder.at("home"), &settings).unwrap();
    let key = StoreKey::derive(home.store_secret().unwrap().as_slice());
    for (name, whole) in [("pay 2025", true), ("half", false)] {
        let description = Description {
            name: name.into(),
            plan: PlanHash([0xab; 32]),
            ring: veil_math::Ring::Z64,
            party: PartyId::THREE[0],
            parties: ["north", "south", "west"].map(Member::local).into(),
            ports: vec![Port {
                name: "pay".into(),
                width: 1,
                once: false,
            }],
            blocks: vec![BlockRows {
                name: "all".into(),
                rows: 3,
            }],
            schema: "pay: integer".into(),
            chunk_rows: 1024,
        };
        let writer = Writer::create(&home.shares(), &key, &description).unwrap();
        let slice = Slice {
            block: 0,
            first: 0,
            rows: 3,
        };
        for component in 0..2 {
            writer.keep(0, component, slice, &[7; 24]).unwrap();
        }
        writer.finish().unwrap();
        if !whole {
            std::fs::remove_file(home.shares().join(name).join("manifest")).unwrap();
        }
    }
    home.shares()
}

#[test]
fn datasets_are_listed_shown_swept_and_removed() {
    let folder = Folder::new();
    let shares = home(&folder);
    let listed: serde_json::Value =
        serde_json::from_str(&folder.succeed("shares list --home home --json")).unwrap();
    assert_eq!(listed["datasets"][0]["state"], "incomplete");
    assert_eq!(listed["datasets"][1]["state"], "complete");
    assert_eq!(listed["datasets"][1]["about"]["rows"], 3);
    assert_eq!(listed["datasets"][1]["about"]["columns"][0]["name"], "pay");
    let listed = folder.succeed("shares list --home home");
    assert!(listed.contains("north, south, west"), "{listed}");
    assert_eq!(
        folder.succeed("shares sweep --home home"),
        "removed `half`\n"
    );
    assert_eq!(
        folder.succeed("shares sweep --home home"),
        "nothing is incomplete\n"
    );
    // A folder that the operator renamed is not taken for a dataset of that name.
    std::fs::rename(shares.join("pay 2025"), shares.join("x")).unwrap();
    let output = folder.veil("shares show x --home home");
    assert_eq!(output.status.code(), Some(3));
    let said = common::text(&output.stderr);
    assert!(
        said.contains("the name is another than the folder's"),
        "{said}"
    );
    assert_eq!(
        folder.succeed("shares remove x --home home"),
        "removed `x`\n"
    );
    assert!(
        folder
            .succeed("shares list --home home")
            .starts_with("no shares in ")
    );
}

#[test]
fn a_damaged_dataset_is_named_by_a_check_of_all_of_it() {
    let folder = Folder::new();
    let shares = home(&folder).join("pay 2025/shares.arrow");
    let show = ["shares", "show", "pay 2025", "--home", "home", "--verify"];
    let veil = || {
        common::veil()
            .args(show)
            .current_dir(folder.path())
            .output()
            .unwrap()
    };
    let said = common::text(&veil().stdout);
    for part in [
        "pay: 1 element per row",
        "every chunk is as it was written",
        "party",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let mut bytes = std::fs::read(&shares).unwrap();
    let footer = u32::from_le_bytes(bytes[bytes.len() - 10..][..4].try_into().unwrap()) as usize;
    let tag = bytes.len() - 10 - footer - 8 - 130;
    bytes[tag] ^= 1;
    std::fs::write(&shares, bytes).unwrap();
    let output = veil();
    assert_eq!(output.status.code(), Some(3));
    let said = common::text(&output.stderr);
    assert!(
        said.contains("port `pay`, component") && said.contains("fail their check"),
        "{said}"
    );
}

#[test]
fn a_home_that_is_not_there_says_how_to_make_one() {
    let folder = Folder::new();
    let output = folder.veil("shares list --home nowhere");
    assert_eq!(output.status.code(), Some(3));
    assert!(
        common::text(&output.stderr).contains("veil init"),
        "{}",
        common::text(&output.stderr)
    );
}
