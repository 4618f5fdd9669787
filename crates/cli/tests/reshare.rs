//! Shares that parties keep go to other parties, who compute on them.

use crate::common;
use std::path::Path;

use crate::common::deployment::{Service, alone, end, take_part, wait};
use crate::common::homes::homes;
use crate::common::{Folder, text};
use veil_job::{ShareSource, Slice};
use veil_program::Resharing;
use veil_session::PartyId;
use veil_store::{Expected, Reader, Store, StoreKey, Writer};

/// Two groups, cents, and a cell that is missing.
const COLUMNS: &str = r#"column = [{ name = "sex", type = "category", values = ["f", "m"] },
          { name = "pay", type = "decimal", scale = 2, min = 0, max = "9999.99", missing = "drop-pair" }]
"#;

/// What is asked: of the table, and of the shares.
const ANALYSIS: &str = "analysis = [{ name = \"pay\", kind = \"variance\", of = \"pay\", by = \"sex\", to = \"eve\" }]\n";

fn head(name: &str, owners: &str, parties: &str) -> String {
    format!(
        "version = 1\nkind = \"stats\"\nname = \"{name}\"\nowners = [{owners}]\nparties = [{parties}]\n\
         recipients = [\"eve\"]\n{COLUMNS}"
    )
}

/// A job that computes and keeps at a, b and c, and one that loads `stored` at `parties`.
fn jobs(folder: &Folder) {
    let blocks = r#"block = [{ name = "north", rows = 3, holds = { ann = ["pay", "sex"] }, files = { ann = "north.csv" } },
         { name = "south", rows = 4, holds = { ann = ["pay", "sex"] }, files = { ann = "south.csv" } }]
keep = { as = "pay" }
"#;
    folder.write(
        "keep.toml",
        head("keep", "\"ann\"", r#""a", "b", "c""#) + blocks + ANALYSIS,
    );
    folder.write("north.csv", "pay,sex\n3100.50,f\n2900.25,m\n,f\n");
    folder.write("south.csv", "pay,sex\n4000.00,m\n3500.75,f\n10.01,f\n0,m\n");
}

fn loading(folder: &Folder, file: &str, parties: &str, stored: &str) {
    let block = format!("block = [{{ name = \"all\", rows = 7, stored = \"{stored}\" }}]\n");
    folder.write(file, head("load", "", parties) + &block + ANALYSIS);
}

/// What `eve` gets, without what names the job.
fn analyses(folder: &Folder, out: &str) -> serde_json::Value {
    let path = folder.at(out).join("result.json");
    let result: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    result["analyses"].clone()
}

/// The store of party `name` of a run on this machine, as of parties a, b and c.
fn store(folder: &Folder, name: &str) -> Store {
    store_of(folder, name, &["a", "b", "c"])
}

/// The same, of any parties.
fn store_of(folder: &Folder, name: &str, parties: &[&str]) -> Store {
    let index = parties.iter().position(|party| *party == name).unwrap();
    let home = folder.at(".veil-run").join(name);
    Store {
        root: home.join("shares"),
        key: StoreKey::derive(&std::fs::read(home.join("key")).unwrap()),
        party: PartyId::new(index as u8).unwrap(),
        parties: parties
            .iter()
            .map(|name| veil_store::Member::local(name))
            .collect(),
    }
}

/// A job that gives `pay` to `new`.
fn reshare(folder: &Folder, file: &str, new: &[&str], name: &str) {
    give(folder, file, ("pay", &store(folder, "a")), new, name);
}

/// A job that gives what a party has in its store to `new`.
fn give(folder: &Folder, file: &str, (own, store): (&str, &Store), new: &[&str], name: &str) {
    let dataset = veil_store::dataset(&store.root, own, &store.key).unwrap();
    let of = dataset.head.unwrap().description;
    let ports = of.ports.into_iter().map(|port| (port.name, port.width));
    let blocks = of.blocks.into_iter().map(|block| (block.name, block.rows));
    let of = Resharing {
        dataset: own.into(),
        made_by: of.plan,
        name: name.into(),
        ring: of.ring,
        ports: ports.collect(),
        blocks: blocks.collect(),
        schema: of.schema,
        old: of.parties.into_iter().map(|member| member.name).collect(),
    };
    let new: Vec<String> = new.iter().map(|name| String::from(*name)).collect();
    folder.write(file, of.to_job("give pay", &new));
}

/// Adds 1 to an element of one share at `name`, whose store is whole and authentic after that.
fn alter(folder: &Folder, name: &str) {
    let Store {
        root,
        key,
        party,
        parties,
    } = store(folder, name);
    let dataset = veil_store::dataset(&root, "pay", &key).unwrap();
    let of = dataset.head.unwrap().description;
    let expected = Expected {
        party,
        parties: &parties,
        ring: of.ring,
        plan: None,
        schema: None,
        rows: None,
    };
    let reader = Reader::open(&root, "pay", &key, &expected).unwrap();
    let mut columns = Vec::new();
    for (block, rows) in of.blocks.iter().enumerate() {
        let slice = Slice {
            block: block as u32,
            first: 0,
            rows: rows.rows as u32,
        };
        for (port, about) in of.ports.iter().enumerate() {
            for component in 0..2 {
                let bytes = u64::from(about.width) * of.ring.bytes(rows.rows);
                let mut shares = vec![0; bytes as usize];
                ShareSource::load(&reader, port, component, slice, &mut shares).unwrap();
                columns.push((port, component, slice, shares));
            }
        }
    }
    drop(reader);
    veil_store::remove(&root, "pay").unwrap();
    // Port `pay`, the party's own component, in the second block.
    let altered = columns
        .iter_mut()
        .find(|(port, component, slice, _)| (*port, *component, slice.block) == (1, 0, 1));
    altered.unwrap().3[0] ^= 1;
    let writer = Writer::create(&root, &key, &of).unwrap();
    for (port, component, slice, shares) in columns {
        writer.keep(port, component, slice, &shares).unwrap();
    }
    writer.finish().unwrap();
}

fn is_kept(folder: &Folder, party: &str, name: &str) -> bool {
    folder
        .at(&format!(".veil-run/{party}/shares/{name}"))
        .exists()
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn others_compute_the_same_on_what_they_were_given() {
    let folder = Folder::new();
    jobs(&folder);
    folder.succeed("run keep.toml --out direct");
    // All others, in processes of their own; and some that have it, and get it again under another name.
    for (new, name, how) in [
        (&["d", "e", "f"][..], "pay", " --processes"),
        (&["b", "d", "e"], "pay2", " --processes"),
        (&["c", "a", "f"], "pay3", ""),
        (&["c", "d", "a", "e"], "pay4", " --processes"),
    ] {
        reshare(&folder, "reshare.toml", new, name);
        let said = folder.succeed(&format!("run reshare.toml{how}"));
        let kept = format!("kept as `{name}` by {}\n", new.join(", "));
        assert!(said.starts_with(&kept), "{said}");
        let parties = quoted(new);
        loading(&folder, "load.toml", &parties, name);
        folder.succeed(&format!("run load.toml --out {name}{how}"));
        assert_eq!(
            analyses(&folder, &format!("{name}/eve")),
            analyses(&folder, "direct/eve")
        );
    }
    // The old parties have theirs as before.
    loading(&folder, "load.toml", r#""a", "b", "c""#, "pay");
    folder.succeed("run load.toml --out old");
    assert_eq!(
        analyses(&folder, "old/eve"),
        analyses(&folder, "direct/eve")
    );
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}

/// From three to four, from there to other four, and back to three: the values stay.
#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_dataset_goes_to_four_parties_and_back() {
    let folder = Folder::new();
    jobs(&folder);
    folder.succeed("run keep.toml --out direct");
    let mut own = ("pay", store(&folder, "a"));
    for (new, name, how) in [
        (&["a", "d", "b", "c"][..], "at four", " --processes"),
        (&["e", "d", "f", "a"], "at others", ""),
        (&["d", "g", "e"], "at three", " --processes"),
    ] {
        give(&folder, "reshare.toml", (own.0, &own.1), new, name);
        folder.succeed(&format!("run reshare.toml{how}"));
        loading(&folder, "load.toml", &quoted(new), name);
        folder.succeed(&format!("run load.toml --out {name}{how}").replace(name, "out"));
        assert_eq!(
            analyses(&folder, "out/eve"),
            analyses(&folder, "direct/eve")
        );
        std::fs::remove_dir_all(folder.at("out")).unwrap();
        own = (name, store_of(&folder, new[0], new));
    }
}

#[test]
fn a_changed_share_is_found_before_anything_is_kept() {
    let folder = Folder::new();
    jobs(&folder);
    folder.succeed("run keep.toml");
    reshare(&folder, "reshare.toml", &["d", "e", "a"], "given");
    alter(&folder, "b");
    for how in ["", " --processes"] {
        let output = folder.veil(&format!("run reshare.toml{how}"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(
            said.contains(
                "in block `south`, rows 1 to 4 of `pay`, the shares of `b` and `c` differ"
            ) && said.contains("nothing was kept"),
            "{said}"
        );
        for party in ["d", "e", "a"] {
            assert!(!is_kept(&folder, party, "given"), "{party}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_with_what_to_do() {
    let folder = Folder::new();
    jobs(&folder);
    folder.succeed("run keep.toml");
    reshare(&folder, "reshare.toml", &["d", "e", "f"], "pay");
    let refused = |part: &str| {
        for how in ["", " --processes"] {
            let output = folder.veil(&format!("run reshare.toml{how}"));
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{said}");
            assert!(said.contains(part), "{said}");
        }
    };
    folder.replace("reshare.toml", "width = 2", "width = 3");
    refused("declare the columns as the job that kept them did");
    reshare(&folder, "reshare.toml", &["d", "e", "f"], "pay");
    folder.replace("reshare.toml", "rows = 4", "rows = 5");
    refused("it has 7 rows, and the job declares 8; declare 7");
    reshare(&folder, "reshare.toml", &["d", "e", "f"], "pay");
    let made = std::fs::read_to_string(folder.at("reshare.toml")).unwrap();
    let (before, after) = made.split_once("\nplan = \"").unwrap();
    let other = format!("{before}\nplan = \"{}{}", "0".repeat(64), &after[64..]);
    folder.write("reshare.toml", other);
    refused("the job is about the one that plan 0000000000000000 made; put that one back");
    folder.write("reshare.toml", &made);
    folder.fail(
        "run reshare.toml --shadow --data-are-mine",
        2,
        &["this job computes on shares that were kept"],
    );
    folder.fail(
        "data check reshare.toml --owner a",
        3,
        &["its values are in the parties' stores"],
    );
    folder.succeed("run reshare.toml");
    let output = folder.veil("run reshare.toml");
    assert_eq!(output.status.code(), Some(3));
    let said = text(&output.stderr);
    assert!(said.contains("there is a dataset `pay` in "), "{said}");
    std::fs::remove_dir_all(folder.at(".veil-run/c/shares/pay")).unwrap();
    reshare(&folder, "reshare.toml", &["d", "e", "f"], "again");
    refused("no dataset `pay` in ");
}

#[test]
fn explain_says_what_it_is() {
    let folder = Folder::new();
    jobs(&folder);
    folder.succeed("run keep.toml");
    reshare(&folder, "reshare.toml", &["b", "d", "e"], "given");
    let said = folder.succeed("explain reshare.toml --net lan");
    for part in [
        "opened: 14 values, and nothing else",
        "opened: differences of the two copies of each old share of `pay` in every row: zeros, to: b, d, e",
        "kept as shares at the parties, opened to no recipient",
        "kept: `pay` of every row, as `given`",
        "14 values of share 0, copy 0, share 2, copy 1",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

/// Runs a job whose participants all come to the foreground.
fn all_take_part(folder: &Folder, job: &str, names: &[&str]) {
    let children: Vec<_> = names
        .iter()
        .map(|name| take_part(folder, job, name))
        .collect();
    for (name, child) in names.iter().zip(children) {
        let (code, said) = end(child);
        assert_eq!(code, Some(0), "{job} at {name}: {said}");
    }
}

/// All the way of a person: the command at an old party, consent, services of the new ones, the old ones in the foreground.
#[test]
fn a_dataset_goes_from_homes_to_services() {
    let _alone = alone();
    let folder = Folder::new();
    jobs(&folder);
    let names = ["a", "b", "c", "d", "e", "f", "ann", "eve"];
    let homes = homes(folder.path(), &names);
    all_take_part(&folder, "keep.toml", &["a", "b", "c", "ann", "eve"]);
    let refused = |arguments: &str, part: &str| folder.fail(arguments, 3, &[part]);
    refused(
        "shares reshare pays --home a --to d,e,f",
        "no dataset `pays`",
    );
    refused("shares reshare pay --home a --to d,e,g", "no member `g`");
    refused(
        "shares reshare pay --home a --to d,e",
        "three keep shares, or four",
    );
    refused(
        "shares reshare pay --home a --to c,b,a",
        "a, b, c have `pay` already",
    );
    refused(
        "shares reshare pay --home a --to c,d,e",
        "`c` has `pay` and gets it again",
    );
    let manifest = folder.at("c/shares/pay/manifest");
    let aside = folder.at("aside");
    std::fs::rename(&manifest, &aside).unwrap();
    refused("shares reshare pay --home c --to d,e,f", "is incomplete");
    std::fs::rename(&aside, &manifest).unwrap();
    let file = folder.succeed("shares reshare pay --home a --to d,e,f --out reshare.toml");
    assert_eq!(file, "reshare.toml\n");
    refused(
        "shares reshare pay --home a --to d,e,f --out reshare.toml",
        "it is there already",
    );

    let services: Vec<Service> = (["d", "e", "f"].iter())
        .map(|name| Service::start(folder.path(), name, &[]))
        .collect();
    for name in ["d", "e", "f"] {
        let rule = "version = 1\n[[rule]]\nname = \"shares\"\ndecision = \"allow\"\nasked_by = [\"a\"]\n\
                    operations = [\"reshare\"]\ndatasets = [\"pay\"]\nkeep = true\n";
        folder.write(&format!("{name}/policy.toml"), rule);
    }
    let plan: serde_json::Value =
        serde_json::from_str(&folder.succeed("submit reshare.toml --home a --json")).unwrap();
    let plan = plan[0]["plan"].as_str().unwrap().to_owned();
    all_take_part(&folder, "reshare.toml", &["a", "b", "c"]);
    let done = |party: &str| {
        let at = common::deployment::at(&folder, "a", party, &plan);
        at.is_some_and(|at| at.state == "done")
    };
    wait("the new parties have it", || {
        ["d", "e", "f"].into_iter().all(done)
    });
    for name in ["d", "e", "f"] {
        let shown: serde_json::Value = serde_json::from_str(
            &folder.succeed(&format!("shares show pay --verify --json --home {name}")),
        )
        .unwrap();
        assert_eq!(shown["about"]["plan"], plan.as_str());
        let parties = shown["about"]["parties"].as_array().unwrap();
        let parties: Vec<&str> = parties
            .iter()
            .map(|party| party.as_str().unwrap())
            .collect();
        for (party, home) in parties.iter().zip(&homes[3..6]) {
            assert_eq!(
                *party,
                format!(
                    "{} ({})",
                    home.settings().name,
                    home.identity().fingerprint()
                )
            );
        }
        assert!(has_receipt(&folder.at(name), &plan));
    }
    for service in services {
        let (code, said) = service.stop();
        assert_eq!(code, Some(0), "{said}");
    }
    loading(&folder, "load.toml", r#""d", "e", "f""#, "pay");
    all_take_part(&folder, "load.toml", &["d", "e", "f", "eve"]);
    assert_eq!(
        analyses(&folder, "out-load.toml"),
        analyses(&folder, "out-keep.toml")
    );
}

fn has_receipt(home: &Path, plan: &str) -> bool {
    let receipt = home.join("jobs").join(plan).join("results/receipt.json");
    receipt.is_file()
}
