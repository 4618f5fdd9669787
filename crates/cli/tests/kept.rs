//! Relations that the parties of one job keep, and those of another have as tables: in threads, in processes, by services.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::deployment::{PATIENCE, Service, alone, succeed, take_part, wait};
use crate::common::homes::{NAMES, homes};
use crate::common::{Folder, text};
use crate::queries::{PEOPLE, STAYS};

/// Stays of one owner, people of another, who are joined; what comes of it is kept, and opened in sums.
const KEEP: &str = r#"version = 1
kind = "query"
name = "keep"
owners = ["ann", "bob"]
parties = ["a", "b", "c"]
recipients = ["eve"]
salt = "study 7"

[[table]]
name = "stays"
owner = "ann"
rows = { up_to = 12 }
file = "stays.csv"
column = [
  { name = "patient", type = "key", bits = 80, of = ["name", "born"] },
  { name = "ward", type = "category", values = ["east", "north", "west"] },
  { name = "since", type = "date", min = "2024-01-01", max = "2024-12-31" },
  { name = "cost", type = "decimal", scale = 2, min = 0, max = 1000, null = true, may = ["sort"], reveal = "rows" },
]

[[table]]
name = "people"
owner = "bob"
rows = 4
unique = [["patient"]]
file = "people.csv"
column = [
  { name = "patient", type = "key", bits = 80, of = ["called", "born"] },
  { name = "age", type = "integer", min = 0, max = 120 },
]

[[query]]
name = "treated"
sql = """
SELECT s.patient, s.ward, s.since, s.cost, p.age
FROM stays s JOIN people p ON s.patient = p.patient
ORDER BY s.ward, s.since
"""
keep = "treated 2025"

[[query]]
name = "by_ward"
sql = "SELECT ward, count(*) AS stays FROM treated GROUP BY ward ORDER BY ward"
to = "eve"
"#;

/// What a later job asks of it.
const ASK: &str = r#"
[[query]]
name = "adults"
sql = """
SELECT ward, count(*) AS stays, sum(cost) AS cost
FROM treated WHERE age >= 18 GROUP BY ward
"""
to = "eve"
file = "adults.csv"

[[query]]
name = "rows"
sql = "SELECT ward, since, cost, age FROM treated ORDER BY ward, since"
to = "eve"
file = "rows.csv"
"#;

/// By hand: zoe is none of the people.
const ADULTS: &str = "ward,stays,cost\neast,2,10.75\nnorth,1,700.00\nwest,3,7.00\n";
const ROWS: &str = "ward,since,cost,age
east,2024-03-01,10.50,44
east,2024-03-02,0.25,34
east,2024-03-03,700.00,9
north,2024-05-05,700.00,34
west,2024-04-01,,44
west,2024-04-02,3.00,53
west,2024-04-03,4.00,44
";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A job that has the relation as a table, by the lines that `explain` gives.
fn asking(folder: &Folder, ask: &str) -> String {
    let explained = json(&folder.succeed("explain keep.toml --json"));
    let kept = &explained["kept"][0];
    assert_eq!(kept["dataset"], "treated 2025");
    let declared = kept["declared"].as_str().unwrap();
    let (salt, rest) = declared.split_once('\n').unwrap();
    assert_eq!(salt, "salt = \"study 7\"");
    let keep = fs::read_to_string(folder.at("keep.toml")).unwrap();
    let (head, _) = keep.split_once("salt").unwrap();
    let head = head.replace("owners = [\"ann\", \"bob\"]", "owners = []");
    let head = head.replace("name = \"keep\"", "name = \"ask\"");
    format!("{head}{salt}\n\n[[table]]\nname = \"treated\"\nstored = \"treated 2025\"\n{rest}{ask}")
}

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("keep.toml", KEEP);
    folder.write("stays.csv", STAYS);
    folder.write("people.csv", PEOPLE);
    folder.write("ask.toml", asking(&folder, ASK));
    folder
}

/// Moves the dataset of party c aside, and removes those of the others: a later run keeps another one. Where it was, and where it is.
fn set_aside(folder: &Folder) -> (PathBuf, PathBuf) {
    let kept = folder.at(".veil-run/c/shares/treated 2025");
    let aside = folder.at("aside");
    fs::rename(&kept, &aside).unwrap();
    for party in ["a", "b"] {
        let path = folder.at(&format!(".veil-run/{party}/shares/treated 2025"));
        fs::remove_dir_all(path).unwrap();
    }
    (kept, aside)
}

/// `veil` with these arguments says this, and ends with code 3.
fn refuses(folder: &Folder, arguments: &str, what: &str) {
    let output = folder.veil(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains(what), "{what}: {said}");
}

fn without_owners(folder: &Folder) {
    for file in ["stays.csv", "people.csv"] {
        fs::remove_file(folder.at(file)).unwrap();
    }
}

fn assert_answers(folder: &Folder, out: &str) {
    let read = |name: &str| fs::read_to_string(folder.at(&format!("{out}/{name}"))).unwrap();
    assert_eq!(read("adults.csv"), ADULTS);
    assert_eq!(read("rows.csv"), ROWS);
}

#[test]
fn a_relation_is_kept_and_asked_without_its_owners() {
    let folder = folder();
    let explained = folder.succeed("explain keep.toml");
    for line in [
        "kept as shares by all parties, and not opened by it",
        "`treated 2025`: `treated`, 12 rows, of which a later job has a table by",
        "sorted_by = [\"ward\", \"since\"",
        "may = [\"sort\"]",
    ] {
        assert!(explained.contains(line), "{explained}");
    }
    let said = folder.succeed("run keep.toml");
    assert!(said.contains("kept as `treated 2025` by a, b, c"), "{said}");
    without_owners(&folder);
    folder.succeed("run ask.toml");
    assert_answers(&folder, "results/eve");
    folder.succeed("run ask.toml --processes --lanes 2 --out two");
    assert_answers(&folder, "two/eve");
    let explained = json(&folder.succeed("explain ask.toml --json"));
    assert_eq!(explained["tables"][0]["dataset"], "treated 2025");
    let opened = explained["opened"].to_string();
    // An order that is known takes neither a sort nor a bit that is opened; groups of a public list take none.
    assert!(
        !opened.contains("permutation") && !opened.contains("one bit"),
        "{opened}"
    );
}

/// Statistics of the relation: how old adults are, stay by stay.
const MEANS: &str = r#"
[[analysis]]
name = "age of adults"
from = "treated"
where = "age >= 18"
kind = "mean"
of = "age"
by = "ward"
to = "eve"
"#;

fn means(folder: &Folder) -> String {
    let asking = asking(folder, MEANS).replace("kind = \"query\"", "kind = \"stats\"");
    asking.replace("name = \"ask\"", "name = \"means\"")
}

/// By hand: 44 and 34, 34, 44 twice and 53.
fn assert_means(folder: &Folder, out: &str) {
    let text = fs::read_to_string(folder.at(&format!("{out}/result.json"))).unwrap();
    let groups = json(&text)["analyses"][0]["groups"].clone();
    let found = groups.as_array().unwrap().iter().map(|group| {
        let figures = group["figures"].as_array().unwrap();
        let mean = figures.iter().find(|figure| figure["name"] == "mean");
        (group["values"][0].clone(), mean.unwrap()["rounded"].clone())
    });
    let found: Vec<(Value, Value)> = found.collect();
    let wanted = [("east", 39.0), ("north", 34.0), ("west", 47.0)];
    assert_eq!(
        found,
        wanted.map(|(ward, mean)| (ward.into(), mean.into())),
        "{text}"
    );
}

#[test]
fn statistics_are_asked_of_a_kept_relation() {
    let folder = folder();
    folder.write("means.toml", means(&folder));
    folder.succeed("run keep.toml");
    without_owners(&folder);
    folder.succeed("run means.toml --out means");
    assert_means(&folder, "means/eve");
    let explained = json(&folder.succeed("explain means.toml --json"));
    assert_eq!(explained["tables"][0]["dataset"], "treated 2025");
    let refused = |what: &str| refuses(&folder, "run means.toml --out other", what);
    // Rows without a cost do not count for its mean: that is a filter, and the owner of the cost allows none.
    let means = fs::read_to_string(folder.at("means.toml")).unwrap();
    folder.write("means.toml", means.replace("of = \"age\"", "of = \"cost\""));
    refused("`dataset treated 2025` does not allow filter on column `cost` of `treated`");
    folder.write("means.toml", means);
    fs::remove_dir_all(folder.at(".veil-run/b/shares/treated 2025")).unwrap();
    refused("no dataset `treated 2025` in ");
}

#[test]
fn four_parties_keep_and_load_in_processes() {
    let folder = folder();
    folder.replace("keep.toml", "\"c\"]", "\"c\", \"d\"]");
    folder.write("ask.toml", asking(&folder, ASK));
    folder.succeed("run keep.toml --processes");
    without_owners(&folder);
    folder.succeed("run ask.toml");
    assert_answers(&folder, "results/eve");
}

#[test]
fn a_first_look_asks_a_dataset_and_says_why_it_compares_nothing() {
    let folder = folder();
    folder.succeed("run keep.toml");
    let ask = |check: &[&str]| {
        crate::common::veil()
            .args([
                "query",
                "SELECT count(*) AS n FROM treated",
                "--tables",
                "ask.toml",
            ])
            .args(check)
            .current_dir(folder.path())
            .output()
            .unwrap()
    };
    let said = ask(&[]);
    assert!(text(&said.stdout).contains('7'), "{}", text(&said.stderr));
    let refused = text(&ask(&["--check"]).stderr);
    let why = "table `treated` comes from dataset `treated 2025`, whose values no participant has";
    assert!(refused.contains(why), "{refused}");
}

#[test]
fn what_does_not_fit_a_kept_relation_is_refused() {
    let folder = folder();
    let refused = |arguments: &str, what: &str| refuses(&folder, arguments, what);
    refused("run ask.toml", "no dataset `treated 2025` in ");
    folder.succeed("run keep.toml");
    refused("run keep.toml", "there is a dataset `treated 2025` in ");
    let job = fs::read_to_string(folder.at("ask.toml")).unwrap();
    for (from, to, what) in [
        (
            "rows = { up_to = 12 }",
            "rows = { up_to = 13 }",
            "it has `rows = { up_to = 12 }`, where the job declares `rows = { up_to = 13 }`",
        ),
        (
            "rows = { up_to = 12 }",
            "rows = 12",
            "it has `rows = { up_to = 12 }`, where the job declares `rows = 12`",
        ),
        (
            "max = 120",
            "max = 121",
            "it has `max = 120`, where the job declares `max = 121`",
        ),
        (
            "study 7",
            "study 8",
            "it has `salt = \"study 7\"`, where the job declares `salt = \"study 8\"`",
        ),
        (
            "[\"ward\", \"since\"",
            "[\"since\", \"ward\"",
            "it has `sorted_by = [\"ward\", \"since\"",
        ),
        (
            "may = [\"sort\"]",
            "may = [\"sort\", \"join\"]",
            "it has `may = [\"sort\"]`, where the job declares `may = [\"join\", \"sort\"]`",
        ),
        (
            "\"a\", \"b\", \"c\"",
            "\"a\", \"c\", \"b\"",
            "it is shared among a, b and c",
        ),
    ] {
        assert!(job.contains(from), "{from}");
        folder.write("ask.toml", job.replace(from, to));
        refused("run ask.toml", what);
    }
    for (from, to, what) in [
        (
            "stored = \"treated 2025\"",
            "stored = \"treated 2025\"\nfile = \"stays.csv\"",
            "table `treated`, whose rows come from a dataset, has no use for `file`",
        ),
        (
            "stored = \"treated 2025\"",
            "stored = \"treated 2025\"\nowner = \"ann\"",
            "table `treated` of an owner has no use for `stored`",
        ),
        (
            "bits = 80",
            "bits = 80\nof = [\"name\"]",
            "table `treated`, whose rows come from a dataset, has no use for `of`",
        ),
        (
            "to = \"eve\"\nfile = \"rows.csv\"",
            "keep = \"treated 2025\"",
            "a dataset is kept by one query, and not where a table is loaded from it",
        ),
        (
            "SELECT ward, since, cost, age FROM treated",
            "SELECT ward, since, age FROM treated WHERE cost > 1",
            "`dataset treated 2025` does not allow filter on column `cost` of `treated`",
        ),
    ] {
        assert!(job.contains(from), "{from}");
        folder.write("ask.toml", job.replace(from, to));
        refused("run ask.toml", what);
    }
    folder.write("ask.toml", &job);
    fs::remove_dir_all(folder.at(".veil-run/b/shares/treated 2025")).unwrap();
    refused("run ask.toml", "no dataset `treated 2025` in ");
}

/// An altered file, and a whole older dataset of the name at one party, which is in order by itself.
#[test]
fn other_shares_than_were_kept_end_the_run() {
    let folder = folder();
    folder.succeed("run keep.toml");
    let (kept, aside) = set_aside(&folder);
    folder.succeed("run keep.toml");
    folder.succeed("run ask.toml");
    let now = folder.at("now");
    fs::rename(&kept, &now).unwrap();
    fs::rename(&aside, &kept).unwrap();
    let output = folder.veil("run ask.toml --out other");
    let said = text(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("a stored share"), "{said}");
    assert!(!folder.at("other/eve").exists());

    fs::rename(&kept, &aside).unwrap();
    fs::rename(&now, &kept).unwrap();
    let path = kept.join("shares.arrow");
    let mut bytes = fs::read(&path).unwrap();
    let footer = u32::from_le_bytes(bytes[bytes.len() - 10..][..4].try_into().unwrap()) as usize;
    let tag = bytes.len() - 10 - footer - 8 - 130;
    bytes[tag] ^= 1;
    fs::write(&path, bytes).unwrap();
    let output = folder.veil("run ask.toml --out other");
    let said = text(&output.stderr);
    assert!(!output.status.success());
    assert!(
        said.contains("fail their check; it was damaged or changed"),
        "{said}"
    );
}

#[test]
fn a_run_that_is_killed_leaves_no_complete_dataset() {
    let folder = folder();
    let mut child = std::process::Command::new(crate::PROGRAM)
        .args(["run", "keep.toml", "--net", "wan", "--out", "killed"])
        .current_dir(folder.path())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let begun = folder.at(".veil-run/c/shares/treated 2025/shares.arrow");
    let start = Instant::now();
    while !begun.is_file() {
        assert!(start.elapsed().as_secs() < PATIENCE);
        assert!(child.try_wait().unwrap().is_none(), "the run goes on");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for party in ["a", "b", "c"] {
        let kept = folder.at(&format!(".veil-run/{party}/shares/treated 2025/manifest"));
        assert!(!kept.exists());
    }
    let output = folder.veil("run ask.toml");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("treated 2025"), "{said}");
    folder.succeed("run keep.toml");
    folder.succeed("run ask.toml");
    assert_answers(&folder, "results/eve");
}

/// The same jobs, where the size of the relation is opened: seven of twelve rows count, two buckets of four.
fn sized() -> Folder {
    let folder = folder();
    let keep = "keep = \"treated 2025\"";
    let sized =
        format!("{keep}\nopen_size = {{ round_up_to = 4, why = \"the next job is smaller\" }}");
    folder.replace("keep.toml", keep, &sized);
    let stored = "stored = \"treated 2025\"";
    folder.replace("ask.toml", stored, &format!("{stored}\nopened_size = 8"));
    folder
}

#[test]
fn a_size_is_opened_and_a_later_job_loads_as_many_rows() {
    let folder = sized();
    let explained = folder.succeed("explain keep.toml");
    let size = "the size of `treated`: how many of its 12 rows count, rounded up to multiples of 4: the next job is smaller";
    let (_, parties) = explained
        .split_once("opened to the computing parties")
        .unwrap();
    let (parties, _) = parties.split_once("opened to no participant").unwrap();
    assert!(parties.contains(size), "{explained}");
    let said = folder.succeed("run keep.toml");
    let kept = "kept as `treated 2025` by a, b, c, with `opened_size = 8`";
    assert!(said.contains(kept), "{said}");
    without_owners(&folder);
    let explained = folder.succeed("explain ask.toml");
    let rows = "the first 8 of 12 rows, of which up to 8 count: how many, no participant knows";
    assert!(explained.contains(rows), "{explained}");
    folder.succeed("run ask.toml --processes");
    assert_answers(&folder, "results/eve");
    // More of the first rows, and all of them.
    for first in [9, 12] {
        folder.replace(
            "ask.toml",
            "opened_size = 8",
            &format!("opened_size = 8\nfirst_rows = {first}"),
        );
        folder.succeed(&format!("run ask.toml --out first{first}"));
        assert_answers(&folder, &format!("first{first}/eve"));
        folder.replace("ask.toml", &format!("\nfirst_rows = {first}"), "");
    }
    // Each of them is a job of its own.
    let plan = || json(&folder.succeed("explain ask.toml --json"))["plan"].clone();
    let eight = plan();
    folder.replace("ask.toml", "opened_size = 8", "opened_size = 9");
    assert_ne!(plan(), eight);
}

#[test]
fn four_parties_open_a_size_in_processes() {
    let folder = sized();
    for job in ["keep.toml", "ask.toml"] {
        folder.replace(job, "\"c\"]", "\"c\", \"d\"]");
    }
    folder.replace("keep.toml", "round_up_to = 4", "bucket = \"pow2\"");
    folder.succeed("run keep.toml --processes");
    without_owners(&folder);
    folder.succeed("run ask.toml");
    assert_answers(&folder, "results/eve");
}

#[test]
fn what_is_no_opened_size_is_refused() {
    let folder = sized();
    let refused = |arguments: &str, what: &str| refuses(&folder, arguments, what);
    let keep = fs::read_to_string(folder.at("keep.toml")).unwrap();
    let bucket = "round_up_to = 4, why = \"the next job is smaller\"";
    for (to, what) in [
        (
            "round_up_to = 1, why = \"x\"",
            "a size is rounded up to two rows or more: else the number of rows itself would be opened",
        ),
        (
            "round_up_to = 12, why = \"x\"",
            "`treated` cannot be kept: all numbers of rows that it may have are in one bucket, which is no size to open",
        ),
        ("bucket = \"pow3\", why = \"x\"", "write \"pow2\""),
        (
            "bucket = \"pow2\", round_up_to = 4, why = \"x\"",
            "`open_size` with `round_up_to` has no use for `bucket`",
        ),
        ("why = \"x\"", "`open_size` needs `round_up_to`"),
        (
            "round_up_to = 4, why = \" \"",
            "say in one line, of up to 200 bytes, what the size is opened for",
        ),
        ("round_up_to = 4", "missing field `why`"),
    ] {
        assert!(keep.contains(bucket));
        folder.write("keep.toml", keep.replace(bucket, to));
        refused("explain keep.toml", what);
    }
    folder.write("keep.toml", keep.replace("keep = \"treated 2025\"\n", ""));
    refused(
        "explain keep.toml",
        "query `treated`, which is not kept, has no use for `open_size`",
    );
    folder.write("keep.toml", &keep);
    folder.succeed("run keep.toml");
    let ask = fs::read_to_string(folder.at("ask.toml")).unwrap();
    for (to, what) in [
        (
            "opened_size = 8\nfirst_rows = 7",
            "up to 8 rows count, which all are loaded, and at most 12 rows are kept",
        ),
        (
            "opened_size = 8\nfirst_rows = 13",
            "up to 8 rows count, which all are loaded, and at most 12 rows are kept",
        ),
        (
            "first_rows = 8",
            "table `treated` has fewer rows than are kept, and no opened size that says that none is lost",
        ),
        (
            "opened_size = 13",
            "it is what the parties have opened, and at most 12 rows are kept",
        ),
        (
            "opened_size = 4",
            "it has `opened_size = 8`, where the job declares `opened_size = 4`",
        ),
        (
            "opened_size = 12",
            "it has `opened_size = 8`, where the job declares `opened_size = 12`",
        ),
        ("", "it has `opened_size = 8`, where the job declares "),
    ] {
        folder.write("ask.toml", ask.replace("opened_size = 8", to));
        refused("run ask.toml", what);
    }
    // A dataset whose size was not opened.
    folder.write("ask.toml", &ask);
    for party in ["a", "b", "c"] {
        let path = folder.at(&format!(".veil-run/{party}/shares/treated 2025"));
        fs::remove_dir_all(path).unwrap();
    }
    let unsized_keep = keep.replace(&format!("open_size = {{ {bucket} }}\n"), "");
    assert_ne!(unsized_keep, keep);
    folder.write("keep.toml", unsized_keep);
    folder.succeed("run keep.toml");
    refused("run ask.toml", "where the job declares `opened_size = 8`");
}

/// A party whose store states another size, of another run, finds it before anything is sent; so does the code of the manifest, if the size in it is changed.
#[test]
fn a_party_with_another_size_is_found_before_anything_is_opened() {
    let folder = sized();
    let fewer: Vec<&str> = STAYS.lines().filter(|line| !line.contains("kim")).collect();
    folder.write("stays.csv", fewer.join("\n") + "\n");
    folder.succeed("run keep.toml");
    let (kept, aside) = set_aside(&folder);
    folder.write("stays.csv", STAYS);
    folder.succeed("run keep.toml");
    folder.succeed("run ask.toml");
    assert_answers(&folder, "results/eve");
    let now = folder.at("now");
    fs::rename(&kept, &now).unwrap();
    fs::rename(&aside, &kept).unwrap();
    let output = folder.veil("run ask.toml --out other");
    let said = text(&output.stderr);
    assert!(!output.status.success());
    let what = "it has `opened_size = 4`, where the job declares `opened_size = 8`";
    assert!(said.contains(what), "{said}");
    assert!(!folder.at("other/eve").exists());
    fs::rename(&kept, &aside).unwrap();
    fs::rename(&now, &kept).unwrap();
    let manifest = kept.join("manifest");
    let text_of = fs::read_to_string(&manifest).unwrap();
    let changed = text_of.replace("opened_size = 8", "opened_size = 4");
    assert_ne!(changed, text_of);
    fs::write(&manifest, changed).unwrap();
    let output = folder.veil("run ask.toml --out other");
    let said = text(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("manifest"), "{said}");
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn services_keep_a_relation_and_load_it() {
    let _alone = alone();
    let folder = folder();
    folder.write("means.toml", means(&folder));
    // One owner has both tables here.
    folder.replace("keep.toml", "[\"ann\", \"bob\"]", "[\"ann\"]");
    folder.replace("keep.toml", "owner = \"bob\"", "owner = \"ann\"");
    homes(folder.path(), &NAMES);
    let parties = ["a", "b", "c"];
    let _services = parties.map(|name| Service::start(folder.path(), name, &["--yes"]));
    folder.succeed("submit keep.toml --home eve");
    for part in ["ann", "eve"].map(|name| take_part(&folder, "keep.toml", name)) {
        succeed(part);
    }
    wait("it is kept", || {
        parties.iter().all(|party| {
            let manifest = format!("{party}/shares/treated 2025/manifest");
            folder.at(&manifest).is_file()
        })
    });
    let show = ["shares", "show", "treated 2025", "--home", "a", "--verify"];
    let said = crate::common::veil()
        .args(show)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = text(&said.stdout);
    for part in [
        "whether a row is valid",
        "stored = \"treated 2025\"",
        "every chunk is as it was written",
    ] {
        assert!(said.contains(part), "{said}");
    }
    without_owners(&folder);
    folder.succeed("submit ask.toml --home eve");
    succeed(take_part(&folder, "ask.toml", "eve"));
    assert_answers(&folder, "out-ask.toml");
    folder.succeed("submit means.toml --home eve");
    succeed(take_part(&folder, "means.toml", "eve"));
    assert_means(&folder, "out-means.toml");
}
