//! Durable jobs, kept and loaded columns in a deployment: three services on loopback, an owner and a recipient.

use crate::common;
use crate::common::Folder;
use crate::common::deployment::{Place, Service, alone, expected, kill, succeed, take_part, wait};
use crate::common::homes::{NAMES, homes};

/// The parties.
const PARTIES: [&str; 3] = ["a", "b", "c"];

fn serve(folder: &Folder, name: &str) -> Service {
    Service::start(folder.path(), name, &["--yes"])
}

/// What the services of all parties say of their jobs, joined.
fn jobs(folder: &Folder) -> String {
    PARTIES
        .map(|name| common::text(&folder.veil(&format!("jobs --home {name}")).stdout))
        .concat()
}

/// Whether all parties keep inputs between the stages of the job of blocks, as `kept` says.
fn all_keep(folder: &Folder, kept: bool) -> bool {
    let keeps = |party: &str| {
        let sets = std::fs::read_dir(folder.at(&format!("{party}/shares")));
        sets.into_iter().flatten().flatten().any(|set| {
            let name = set.file_name().into_string().unwrap();
            name.starts_with("blocks%3a input") && set.path().join("manifest").is_file()
        })
    };
    PARTIES.iter().all(|party| keeps(party) == kept)
}

/// The job of many rounds, as a durable one.
fn durable() -> Folder {
    let folder = Folder::blocks();
    folder.replace("job.toml", "version = 1\n", "version = 1\ndurable = true\n");
    homes(folder.path(), &NAMES);
    folder
}

/// A durable job at three services.
fn served() -> (Folder, Vec<Service>) {
    let folder = durable();
    let services = PARTIES.iter().map(|name| serve(&folder, name)).collect();
    folder.succeed("submit job.toml --home eve");
    (folder, services)
}

fn assert_result(folder: &Folder) {
    let result = std::fs::read(folder.at("out-job.toml/blocks")).unwrap();
    assert!(result == expected());
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_durable_job_outlives_its_parties_and_needs_its_owner_once() {
    let _alone = alone();
    let (folder, mut services) = served();
    succeed(take_part(&folder, "job.toml", "ann"));
    // The owner is done, and no recipient has asked for the result: the inputs are checkpointed.
    wait("all have kept them", || all_keep(&folder, true));
    wait("they say so", || {
        jobs(&folder).matches("the inputs are kept").count() == 3
    });
    let said = succeed(take_part(&folder, "job.toml", "ann"));
    assert!(said.contains("are not asked for again"), "{said}");
    std::fs::remove_file(folder.at("key.hex")).unwrap();
    // Dropped is killed. The last party calls the others, and is called by the recipient alone.
    drop(services.remove(2));
    services.push(serve(&folder, "c"));
    wait("it goes on", || {
        jobs(&folder).matches("the inputs are kept").count() == 3
    });
    succeed(take_part(&folder, "job.toml", "eve"));
    assert_result(&folder);
    wait("all are done", || {
        jobs(&folder).matches(" done").count() == 3
    });
    assert!(all_keep(&folder, false));
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_party_that_comes_back_late_wakes_those_who_have_given_up() {
    let _alone = alone();
    let folder = durable();
    let serve = |name: &&str| {
        let options = ["--yes", "--wait", "8", "--timeout", "60"];
        Service::start_at(&Place::HERE, folder.path(), name, &options)
    };
    let mut services: Vec<Service> = PARTIES.iter().map(serve).collect();
    folder.succeed("submit job.toml --home eve");
    succeed(take_part(&folder, "job.toml", "ann"));
    assert!(all_keep(&folder, true), "the owner has heard so");
    // The first party is called by the others, and calls none.
    drop(services.remove(0));
    wait("the others give up", || {
        ["b", "c"].iter().all(|party| {
            let said = folder.veil(&format!("jobs --home {party}")).stdout;
            common::text(&said).contains(" failed")
        })
    });
    services.push(serve(&"a"));
    wait("all wait again", || {
        jobs(&folder).matches("the inputs are kept").count() == 3
    });
    succeed(take_part(&folder, "job.toml", "eve"));
    assert_result(&folder);
}

#[test]
fn parties_that_disagree_say_who_lacks_the_inputs_and_ask_for_them_again() {
    let _alone = alone();
    let (folder, mut services) = served();
    succeed(take_part(&folder, "job.toml", "ann"));
    wait("all have kept them", || all_keep(&folder, true));
    // Dropped is killed.
    drop(services.remove(1));
    std::fs::remove_dir_all(folder.at("b/shares")).unwrap();
    services.push(serve(&folder, "b"));
    // It has nothing that reminds it of the job; the recipient that wants the result does.
    let asking = take_part(&folder, "job.toml", "eve");
    wait("it is said who lacks them", || {
        services[0]
            .said()
            .contains("`b` has not kept the inputs, which are kept here")
    });
    wait("they ask for them", || {
        jobs(&folder).contains("the owner ann has to send them")
    });
    succeed(take_part(&folder, "job.toml", "ann"));
    kill(asking);
    succeed(take_part(&folder, "job.toml", "eve"));
    assert_result(&folder);
}

/// Wages that one owner brings and the parties keep, and a job that loads them.
const KEEP: &str = r#"version = 1
kind = "stats"
name = "wages"
owners = ["ann"]
parties = ["a", "b", "c"]
recipients = ["eve"]
column = [{ name = "wage", type = "integer", min = 0, max = 20000 }]
block = [{ name = "all", rows = 5, holds = { ann = ["wage"] }, files = { ann = "ann.csv" } }]
analysis = [{ name = "mean wage", kind = "mean", of = "wage", to = "eve" }]
"#;

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn columns_are_kept_in_one_job_and_loaded_in_another() {
    let _alone = alone();
    let folder = Folder::new();
    folder.write("ann.csv", "wage\n3100\n2900\n4000\n3500\n2500\n");
    folder.write(
        "keep.toml",
        format!("{KEEP}keep = {{ as = \"wages 2025\" }}\n"),
    );
    let load = KEEP.replace("owners = [\"ann\"]", "owners = []");
    let load = load.replace("name = \"wages\"", "name = \"wages again\"");
    let holds = "holds = { ann = [\"wage\"] }, files = { ann = \"ann.csv\" }";
    folder.write("load.toml", load.replace(holds, "stored = \"wages 2025\""));
    homes(folder.path(), &NAMES);
    let _services = PARTIES.map(|name| serve(&folder, name));
    folder.succeed("submit keep.toml --home eve");
    let parts = ["ann", "eve"].map(|name| take_part(&folder, "keep.toml", name));
    for part in parts {
        succeed(part);
    }
    wait("they are kept", || {
        PARTIES.iter().all(|party| {
            let manifest = format!("{party}/shares/wages 2025/manifest");
            folder.at(&manifest).is_file()
        })
    });
    std::fs::remove_file(folder.at("ann.csv")).unwrap();
    folder.succeed("submit load.toml --home eve");
    succeed(take_part(&folder, "load.toml", "eve"));
    let result = std::fs::read_to_string(folder.at("out-load.toml/result.txt")).unwrap();
    assert!(result.contains("3200"), "{result}");
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn parties_in_the_foreground_go_on_where_they_were() {
    let _alone = alone();
    let folder = durable();
    let start = || PARTIES.map(|name| take_part(&folder, "job.toml", name));
    let parties = start();
    succeed(take_part(&folder, "job.toml", "ann"));
    wait("all have kept them", || all_keep(&folder, true));
    parties.into_iter().for_each(kill);
    let parties = start();
    // An owner that comes again hears that it is not needed.
    let said = succeed(take_part(&folder, "job.toml", "ann"));
    assert!(said.contains("are not asked for again"), "{said}");
    succeed(take_part(&folder, "job.toml", "eve"));
    for party in parties {
        succeed(party);
    }
    assert_result(&folder);
    assert!(all_keep(&folder, false));
}
