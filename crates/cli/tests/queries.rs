//! Queries from end to end: in threads, in processes, among three parties and four, by services; and what `explain` says of them.

use std::fmt::Write;
use std::fs;

use serde_json::Value;

use crate::common::Folder;
use crate::common::deployment::{Service, alone, approve, end, states, submit, take_part, wait};
use crate::common::homes::{NAMES, homes};

/// Stays of one owner, people of another.
pub(crate) const JOB: &str = r#"version = 1
kind = "query"
name = "stays"
owners = ["ann", "bob"]
parties = ["a", "b", "c"]
recipients = ["eve"]

[[table]]
name = "stays"
owner = "ann"
rows = { up_to = 12 }
file = "stays.csv"
column = [
  { name = "patient", type = "key", bits = 80, of = ["name", "born"] },
  { name = "ward", type = "category", values = ["east", "north", "west"] },
  { name = "since", type = "date", min = "2024-01-01", max = "2024-12-31" },
  { name = "cost", type = "decimal", scale = 2, min = 0, max = 1000, null = true },
]

[[table]]
name = "people"
owner = "OWNER"
rows = 4
unique = [["patient"]]
file = "people.csv"
column = [
  { name = "patient", type = "key", bits = 80, of = ["called", "born"] },
  { name = "age", type = "integer", min = 0, max = 120 },
]

[[query]]
name = "by_ward"
sql = """
SELECT ward, count(*) AS stays, sum(cost) AS cost, avg(cost) AS mean
FROM stays JOIN people ON stays.patient = people.patient
WHERE age >= 18
GROUP BY ward
ORDER BY ward
"""
to = "eve"
min_count = 2
file = ["by_ward.csv", "by_ward.svg"]

[[query]]
name = "dearest"
sql = "SELECT since, cost FROM stays WHERE cost IS NOT NULL ORDER BY cost DESC, since LIMIT 2"
to = "a"
"#;

pub(crate) const STAYS: &str = "name,born,ward,since,cost
kim,1980,east,2024-03-01,10.50
lou,1990,east,2024-03-02,0.25
max,2015,east,2024-03-03,700
kim,1980,west,2024-04-01,
noa,1971,west,2024-04-02,3
kim,1980,west,2024-04-03,4
lou,1990,north,2024-05-05,700
zoe,1950,north,2024-05-06,1
";

pub(crate) const PEOPLE: &str = "called,born,age
lou,1990,34
kim,1980,44
max,2015,9
noa,1971,53
";

/// By hand: max is a child, zoe is not among the people, north has one stay of an adult. (10.50 + 0.25) / 2, (3 + 4) / 2.
const BY_WARD: &str = "ward,stays,cost,mean\neast,2,10.75,5.375000\nwest,3,7.00,3.500000\n";

/// By hand.
const DEAREST: &str = "since,cost\n2024-03-03,700.00\n2024-05-05,700.00\n";

pub(crate) fn folder(owner: &str) -> Folder {
    let folder = Folder::new();
    folder.write("job.toml", JOB.replace("OWNER", owner));
    folder.write("stays.csv", STAYS);
    folder.write("people.csv", PEOPLE);
    folder
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// What is in the folder of results.
fn published(folder: &Folder, out: &str) {
    let read = |name: &str| fs::read_to_string(folder.at(&format!("{out}/{name}"))).unwrap();
    assert_eq!(read("eve/by_ward.csv"), BY_WARD);
    assert_eq!(read("a/dearest.csv"), DEAREST);
    let chart = read("eve/by_ward.svg");
    assert!(
        chart.starts_with("<svg ") && chart.contains(">10.75</text>"),
        "{chart}"
    );
    assert!(!folder.at(&format!("{out}/eve/dearest.csv")).exists());
}

#[test]
fn results_are_what_counting_gives() {
    let folder = folder("bob");
    let text = folder.succeed("run job.toml");
    published(&folder, "results");
    assert!(
        text.contains("stays: by_ward, for eve: 2 rows, without groups of fewer than 2 rows"),
        "{text}"
    );
    assert!(text.contains("  west      3   7.00  3.500000"), "{text}");
    let run = json(&folder.succeed("run job.toml --json --out two --processes --lanes 2"));
    published(&folder, "two");
    let eve = run["results"]
        .as_array()
        .unwrap()
        .iter()
        .find(|of| of["recipient"] == "eve");
    let rows = &eve.unwrap()["statistics"]["json"]["queries"][0]["rows"];
    assert_eq!(rows[1], serde_json::json!(["west", 3, "7.00", "3.500000"]));
}

/// A query of eight rows, and a bound on them.
fn bounded(folder: &Folder, rows: u32) {
    let more = format!(
        "\n[[query]]\nname = \"few\"\nsql = \"SELECT since, ward FROM stays ORDER BY since\"\nto = \"eve\"\nfile = [\"few.csv\", \"few.json\"]\n\
         \n[[bound]]\nof = \"few\"\nrows = {rows}\noverflow = \"flag\"\n"
    );
    let job = fs::read_to_string(folder.at("job.toml")).unwrap();
    let (job, _) = job
        .split_once("\n[[query]]\nname = \"few\"")
        .unwrap_or((&job, ""));
    folder.write("job.toml", job.to_owned() + &more);
}

const WARNING: &str =
    "warning: the result of `few` for eve is incomplete: a bound of the job has left out rows";

/// Rows within a bound are the first ones in their order, and the recipient learns whether there are more: in threads and in processes, among three parties and four.
#[test]
fn a_bound_that_flags_says_what_is_missing() {
    let folder = folder("bob");
    for parties in [3, 4] {
        for (rows, missing) in [(8, false), (7, true)] {
            bounded(&folder, rows);
            let output = folder.veil("run job.toml --out out");
            let (said, errors) = (
                crate::common::text(&output.stdout),
                crate::common::text(&output.stderr),
            );
            assert!(output.status.success(), "{errors}");
            let heading = if missing {
                "stays: few, for eve: 7 rows; incomplete: a bound of the job has left out rows\n"
            } else {
                "stays: few, for eve: 8 rows\n"
            };
            assert!(said.contains(heading), "{said}");
            assert_eq!(errors.contains(WARNING), missing, "{errors}");
            let output = folder.veil("run job.toml --json --out out --processes");
            let errors = crate::common::text(&output.stderr);
            assert!(output.status.success(), "{errors}");
            assert_eq!(errors.contains(WARNING), missing, "{errors}");
            let run = json(&crate::common::text(&output.stdout));
            let mut results = run["results"].as_array().unwrap().iter();
            let eve = results.find(|of| of["recipient"] == "eve").unwrap();
            let queries = eve["statistics"]["json"]["queries"].as_array().unwrap();
            let few = queries.iter().find(|of| of["query"] == "few").unwrap();
            assert_eq!(few["incomplete"], missing, "{few}");
            let by_ward = queries.iter().find(|of| of["query"] == "by_ward").unwrap();
            assert_eq!(by_ward.get("incomplete"), None);
            let read = |name: &str| fs::read_to_string(folder.at(&format!("out/{name}"))).unwrap();
            assert_eq!(json(&read("eve/few.json"))["incomplete"], missing);
            let last = if missing {
                "2024-05-05,north"
            } else {
                "2024-05-06,north"
            };
            assert_eq!(read("eve/few.csv").lines().last(), Some(last));
            published(&folder, "out");
        }
        if parties == 3 {
            folder.replace("job.toml", "\"c\"]", "\"c\", \"d\"]");
        }
    }
    let explained = folder.succeed("explain job.toml");
    let lines = "opened to eve, and nothing else\n  `by_ward`: up to 3 rows of ward, stays, cost, mean, without groups of fewer than 2 rows\n  \
         `few`: up to 7 rows of since, ward\n  `few`, one bit: whether `stays` has more than 7 rows; the result lacks rows if so, and the run goes on\n";
    assert!(explained.contains(lines), "{explained}");
    let plan = folder.succeed("explain job.toml --plan");
    assert!(
        plan.contains("at most 7 rows (the result says if there are more)"),
        "{plan}"
    );
    // A query that is asked keeps the bound of what it names; what is in the clear says the same.
    let asked = |rows: u32| {
        bounded(&folder, rows);
        let mut command = crate::common::veil();
        let sql = "WITH few AS (SELECT since FROM stays) SELECT max(since) AS last FROM few";
        command.args(["query", sql, "--tables", "job.toml", "--check"]);
        let output = command.current_dir(folder.path()).output().unwrap();
        let errors = crate::common::text(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let said = crate::common::text(&output.stdout);
        assert!(said.contains("checked: the query in the clear"), "{said}");
        (said, errors)
    };
    let warning = WARNING.replace("few", "query");
    let (said, errors) = asked(7);
    assert!(errors.contains(&warning), "{errors}");
    let heading =
        "stays: query, for eve: 1 row; incomplete: a bound of the job has left out rows\n  last\n";
    assert!(
        said.contains(heading) && said.contains("\n  2024-05-05\n"),
        "{said}"
    );
    let (said, errors) = asked(8);
    assert!(!errors.contains("incomplete"), "{errors}");
    assert!(
        said.contains("stays: query, for eve: 1 row\n  last\n"),
        "{said}"
    );
    assert!(said.contains("\n  2024-05-06\n"), "{said}");
}

#[test]
fn four_parties_give_the_same_though_one_of_them_may_lie() {
    let folder = folder("bob");
    folder.replace("job.toml", "\"c\"]", "\"c\", \"d\"]");
    let run = json(&folder.succeed("run job.toml --json --out out"));
    published(&folder, "out");
    assert!(
        run["guarantee"].as_str().unwrap().starts_with("malicious"),
        "{run}"
    );
}

/// What is declared is what is sent, by every participant.
#[test]
fn declared_bytes_are_those_of_a_run() {
    for parties in ["\"c\"]", "\"c\", \"d\"]"] {
        let folder = folder("bob");
        folder.replace("job.toml", "\"c\"]", parties);
        let explained = json(&folder.succeed("explain job.toml --json"));
        let run = json(&folder.succeed("run job.toml --json --out out --lanes 1"));
        assert_eq!(explained["plan"], run["plan"]);
        let declared = explained["participants"].as_array().unwrap();
        for took in run["participants"].as_array().unwrap() {
            let same = |of: &&Value| of["name"] == took["name"] && of["role"] == took["role"];
            let declared = declared.iter().find(same).unwrap();
            assert_eq!(declared["framed"], took["bytes_sent"], "{took}");
        }
        // Operators have all passes, each once, but for the handshake, the set-up and the last words.
        let operators = explained["operators"].as_array().unwrap();
        let passes: u64 = operators
            .iter()
            .map(|of| of["passes"].as_u64().unwrap())
            .sum();
        assert_eq!(Some(passes), explained["passes"].as_u64());
    }
}

#[test]
fn an_explanation_says_what_is_opened_to_whom_and_what_is_not() {
    let folder = folder("bob");
    let text = folder.succeed("explain job.toml");
    for part in [
        "opened to eve, and nothing else\n  `by_ward`: up to 3 rows of ward, stays, cost, mean, without groups of fewer than 2 rows\n",
        "opened to a, and nothing else\n  `dearest`: up to 2 rows of since, cost\n",
        "opened to the computing parties, and nothing else\n  one bit: whether what ann says of its tables is false (cells of `stays` are in the ranges \
         of ward, since, cost); the run ends if it is\n  one bit: whether what bob says of its tables is false (cells of `people` are in the ranges of age); \
         the run ends if it is\n  one bit: whether a key of `people` occurs twice; the run ends if it does\n",
        "  what ann supplies is looked at on shares first: 3 passes, 504 B from all participants, 14 rounds\n",
        "opened to no participant\n  `stays`: no row of it, nor how many of its 12 rows are real\n  `people`: no row of it\n",
        "stays.patient (ann)   join, not opened\n",
        "stays.ward (ann)      group-by, sort, opened in aggregates\n",
        "people.age (bob)      filter, not opened\n",
        "keys: two of 16 keys of 80 bits that differ have one digest with a probability of at most 2^-73\n",
        "the same among four parties (rep4: malicious",
        "\nqueries\n  by_ward, to eve, without groups of fewer than 2 rows:\n    SELECT ward, count(*) AS stays",
    ] {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    // Four parties have nothing beside them.
    folder.replace("job.toml", "\"c\"]", "\"c\", \"d\"]");
    assert!(
        !folder
            .succeed("explain job.toml")
            .contains("among four parties")
    );
    let plan = folder.succeed("explain job.toml --plan");
    let mut lines = plan.lines();
    let head: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["operator", "rows", "passes", "bytes", "rounds"]);
    for first in [
        "  look at what ann supplies (opens one bit) ",
        "  look at what bob supplies (opens one bit) ",
        "  open by_ward to eve ",
    ] {
        assert!(lines.next().unwrap().starts_with(first), "{plan}");
    }
    let wages = Folder::wages();
    wages.fail(
        "explain wages.toml --plan",
        2,
        &["--plan shows the operators of queries, and this job has none"],
    );
}

#[test]
fn a_query_is_asked_of_tables() {
    let folder = folder("bob");
    let ask = |sql: &str, more: &[&str]| {
        let mut command = crate::common::veil();
        command
            .args(["query", sql, "--tables", "job.toml"])
            .args(more);
        command.current_dir(folder.path()).output().unwrap()
    };
    let said = |sql: &str, more: &[&str]| {
        let output = ask(sql, more);
        let errors = crate::common::text(&output.stderr);
        assert!(output.status.success(), "{errors}");
        crate::common::text(&output.stdout)
    };
    let count = "SELECT count(*) AS n FROM stays WHERE ward = 'west'";
    let text = said(count, &["--check"]);
    assert!(
        text.contains("stays: query, for eve: 1 row\n  n\n  ─\n  3\n"),
        "{text}"
    );
    assert!(
        text.contains(
            "checked: the query in the clear, over the tables of all owners, gives the same rows"
        ),
        "{text}"
    );
    let before = folder.everything();
    let result = json(&said(
        "SELECT ward, count(*) AS n FROM stays GROUP BY ward ORDER BY n DESC",
        &["--json", "--to", "b", "--min-count", "3"],
    ));
    assert_eq!(result["results"][0]["recipient"], "b");
    let queries = &result["results"][0]["statistics"]["json"]["queries"];
    assert_eq!(
        queries[0]["rows"],
        serde_json::json!([["east", 3], ["west", 3]])
    );
    assert_eq!(
        folder.everything(),
        before,
        "a first look leaves nothing behind"
    );
    said(count, &["--out", "out"]);
    assert_eq!(
        fs::read_to_string(folder.at("out/eve/query.csv")).unwrap(),
        "n\n3\n"
    );
    // What is no query is refused before a file is read.
    fs::remove_file(folder.at("stays.csv")).unwrap();
    let refused = |sql: &str| {
        let output = ask(sql, &[]);
        assert_eq!(output.status.code(), Some(3));
        crate::common::text(&output.stderr)
    };
    let errors = refused("SELECT wart FROM stays");
    assert!(
        errors.contains("query `query`, line 1, column 8: there is no column `wart`"),
        "{errors}"
    );
    let errors = refused(count);
    assert!(errors.contains("stays.csv"), "{errors}");
}

/// The words of `veil run` about security are those of `veil query`, where queries have them; what the job file says stands.
#[test]
fn a_query_is_asked_with_the_words_of_a_run() {
    let folder = folder("bob");
    let ask = |more: &[&str]| {
        let mut command = crate::common::veil();
        let sql = "SELECT ward, count(*) AS n FROM stays GROUP BY ward ORDER BY ward";
        command
            .args(["query", sql, "--tables", "job.toml"])
            .args(more);
        command.current_dir(folder.path()).output().unwrap()
    };
    let guarantee = |more: &[&str]| {
        let output = ask(more);
        let errors = crate::common::text(&output.stderr);
        assert!(output.status.success(), "{more:?}: {errors}");
        let result = json(&crate::common::text(&output.stdout));
        let queries = &result["results"][0]["statistics"]["json"]["queries"];
        let wanted = serde_json::json!([["east", 3], ["north", 2], ["west", 3]]);
        assert_eq!(queries[0]["rows"], wanted);
        let protocol = result["protocol"].as_str().unwrap();
        let guarantee = result["guarantee"].as_str().unwrap();
        format!("{protocol}: {guarantee}")
    };
    let refused = |more: &[&str], code: i32, parts: &[&str]| {
        let output = ask(more);
        let errors = crate::common::text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{more:?}: {errors}");
        for part in parts {
            assert!(errors.contains(part), "no `{part}` in {errors}");
        }
    };
    let three = ["--json", "--protocol", "rep3", "--adversary", "semi-honest"];
    assert!(guarantee(&three).starts_with("rep3: semi-honest"));
    let malicious = ["--json", "--adversary", "malicious"];
    assert!(guarantee(&malicious).starts_with("rep3: malicious"));
    refused(
        &["--protocol", "rep4"],
        3,
        &["it is of 4 parties, and the job names 3"],
    );
    refused(
        &["--protocol", "yao"],
        3,
        &["it is of 2 parties, and the job names 3"],
    );
    refused(
        &["--technique", "cut-and-choose"],
        3,
        &["circuits are cut and chosen by yao, and the job's protocol is rep3"],
    );
    refused(
        &["--schedule", "layers"],
        3,
        &["only yao's gates are ordered by a schedule, and the job's protocol is rep3"],
    );
    refused(
        &["--statistical", "40"],
        3,
        &["only two parties have a statistical parameter, against a malicious one"],
    );
    refused(&["--adversary", "nice"], 2, &["nice", "semi-honest"]);
    refused(&["--chunk-rows", "100"], 2, &["100"]);
    folder.replace("job.toml", "\"c\"]", "\"c\", \"d\"]");
    assert!(guarantee(&["--json"]).starts_with("rep4: malicious"));
    let semi_honest = ["--json", "--adversary", "semi-honest", "--chunk-rows", "64"];
    assert!(guarantee(&semi_honest).starts_with("rep4: semi-honest"));
    refused(
        &["--delivery", "guaranteed"],
        3,
        &["queries are not run again without a party that is lost; write \"abort\""],
    );
    folder.replace(
        "job.toml",
        "version = 1",
        "version = 1\nadversary = \"semi-honest\"",
    );
    assert!(guarantee(&["--json"]).starts_with("rep4: semi-honest"));
    refused(
        &["--adversary", "malicious"],
        3,
        &["adversary", "malicious", "semi-honest"],
    );
}

/// An owner that claims what is false is told so where its table is; where the parties find it, the run ends and opens nothing.
#[test]
fn false_claims_end_a_run() {
    let folder = folder("bob");
    folder.replace("people.csv", "noa,1971,53", "kim,1980,53");
    folder.fail(
        "run job.toml",
        3,
        &[
            "people.csv: row 4, column `patient`: ",
            "is in row 2 as well, and the job says that [\"patient\"] is unique",
        ],
    );
}

#[test]
fn other_jobs_are_refused() {
    let folder = folder("bob");
    folder.fail("run job.toml --protocol yao", 3, &["yao"]);
    folder.fail("stats job.toml", 2, &["job.toml is no statistics job"]);
}

/// Every command of all devices in every pass, in the shadow of the device that defines it; among three parties and four.
#[test]
fn devices_of_queries_run_in_a_shadow() {
    let folder = folder("bob");
    folder.replace(
        "job.toml",
        "SELECT since, cost FROM stays WHERE cost IS NOT NULL ORDER BY cost DESC, since LIMIT 2",
        "SELECT ward, count(*) AS n FROM stays GROUP BY ward ORDER BY ward",
    );
    folder.fail("run job.toml --shadow", 2, &["add --data-are-mine"]);
    let output = folder.veil("run job.toml --lanes 1 --shadow --data-are-mine --out out --json");
    let said = crate::common::text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let line = said.lines().find(|line| line.starts_with("shadow: "));
    let line = line.unwrap_or_else(|| panic!("{said}"));
    assert!(
        line.contains(" commands in ")
            && line.contains(" passes, ")
            && line.contains(" devices compared, ")
            && line.ends_with(", all equal"),
        "{line}"
    );
    let read = |name: &str| fs::read_to_string(folder.at(&format!("out/{name}"))).unwrap();
    assert_eq!(read("eve/by_ward.csv"), BY_WARD);
    assert_eq!(read("a/dearest.csv"), "ward,n\neast,3\nnorth,2\nwest,3\n");
}

/// Services of three parties answer queries as they run other jobs: proposed, approved, done, with a receipt.
#[test]
fn services_answer_queries() {
    let _alone = alone();
    let folder = folder("ann");
    folder.replace(
        "job.toml",
        "owners = [\"ann\", \"bob\"]",
        "owners = [\"ann\"]",
    );
    bounded(&folder, 7);
    let homes = homes(folder.path(), &NAMES);
    let start = |name: &&str| Service::start(folder.path(), name, &[]);
    let services: Vec<Service> = NAMES[..3].iter().map(start).collect();
    let (plan, said) = submit(&folder, "job.toml");
    assert_eq!(said, ["pending"; 3]);
    let explained = homes[0]
        .filed(veil_node::plan_of(&plan).unwrap())
        .unwrap()
        .unwrap()
        .explained()
        .unwrap();
    assert!(
        explained.contains("opened: `by_ward`: up to 3 rows of ward, stays, cost, mean"),
        "{explained}"
    );
    homes[..3].iter().for_each(|home| approve(home, &plan));
    let [ann, eve] = ["ann", "eve"].map(|name| take_part(&folder, "job.toml", name));
    for (name, child) in [("ann", ann), ("eve", eve)] {
        let (code, said) = end(child);
        assert_eq!(code, Some(0), "{name}: {said}");
        assert_eq!(said.contains(WARNING), name == "eve", "{name}: {said}");
    }
    let few = fs::read_to_string(folder.at("out-job.toml/few.json")).unwrap();
    assert_eq!(json(&few)["incomplete"], true);
    assert_eq!(
        fs::read_to_string(folder.at("out-job.toml/by_ward.csv")).unwrap(),
        BY_WARD
    );
    let receipt = json(&fs::read_to_string(folder.at("out-job.toml/receipt.json")).unwrap());
    assert_eq!(receipt["plan"], *plan);
    assert_eq!(
        receipt["opened"],
        serde_json::json!([
            "`by_ward`: up to 3 rows of ward, stays, cost, mean, without groups of fewer than 2 rows",
            "`few`: up to 7 rows of since, ward",
            "`few`, one bit: whether `stays` has more than 7 rows; the result lacks rows if so, and the run goes on"
        ])
    );
    wait("done", || states(&folder, &plan) == ["done"; 3]);
    // A party that is a recipient has its result in its home.
    let own = homes[0]
        .job_folder(veil_node::plan_of(&plan).unwrap())
        .join("results/dearest.csv");
    assert_eq!(fs::read_to_string(own).unwrap(), DEAREST);
    for service in services {
        let (code, said) = service.stop();
        assert_eq!(code, Some(0), "{said}");
    }
}

/// Rules see what a query does, with which columns, and how much it opens.
#[test]
fn rules_judge_queries() {
    let folder = folder("bob");
    folder.succeed("init ann --role owner --home ann");
    let decide = |rule: &str| {
        let path = folder.at("ann/policy.toml");
        fs::write(
            &path,
            format!("version = 1\n[[rule]]\nname = \"q\"\n{rule}\n"),
        )
        .unwrap();
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let said = json(&folder.succeed("policy check job.toml --home ann --json"));
        match said["decision"].as_str().unwrap() {
            "allowed by rule `q` of the policy" => "allow",
            said if said.starts_with("refused by rule `q`") => "refuse",
            _ => "ask",
        }
    };
    let allow = "decision = \"allow\"\noperations = [\"join\", \"filter\", \"group-by\", \"sort\", \"top-k\", \"count\", \"sum\", \"mean\", \"select-rows\"]\n";
    assert_eq!(decide(allow), "allow");
    assert_eq!(decide(&allow.replace(", \"select-rows\"", "")), "ask");
    assert_eq!(
        decide(&format!(
            "{allow}join_on = [\"stays.patient\", \"people.patient\"]"
        )),
        "allow"
    );
    assert_eq!(
        decide(&format!("{allow}join_on = [\"people.patient\"]")),
        "ask"
    );
    assert_eq!(
        decide(&format!(
            "{allow}filters_on = [\"people.age\", \"stays.cost\"]\nmax_result_rows = 3"
        )),
        "allow"
    );
    assert_eq!(decide(&format!("{allow}max_result_rows = 2")), "ask");
    // One of its queries shows rows.
    assert_eq!(decide(&format!("{allow}min_group = 2")), "ask");
    assert_eq!(
        decide("decision = \"refuse\"\ngroup_by = [\"stays.ward\"]"),
        "refuse"
    );
}

/// A job of three queries over tables of their own, whose columns take more memory than those of one pass, and what it opens.
fn large(folder: &Folder) -> [String; 3] {
    const ROWS: usize = 16_000;
    const WIDTH: usize = 6;
    let value = |row: usize, factor: usize, column: usize| (row * (factor + column) % 4099) << 20;
    let joined = |of: &dyn Fn(usize) -> String, between: &str| {
        let all: Vec<String> = (0..WIDTH).map(of).collect();
        all.join(between)
    };
    let names = joined(&|column| format!("x{column}"), ",");
    let columns = joined(
        &|column| {
            format!(r#"{{ name = "x{column}", type = "integer", min = 0, max = 5000000000 }}"#)
        },
        ", ",
    );
    let (mut tables, mut queries) = (String::new(), String::new());
    for (owner, factor) in [("ann", 31), ("bob", 17)] {
        for k in 1..4 {
            let name = format!("{owner}{k}");
            let mut file = format!("id,{names}\n");
            for row in 0..ROWS {
                let cells = joined(&|column| value(row, factor, column).to_string(), ",");
                writeln!(file, "{},{cells}", (row * 7919 + factor * k) % ROWS).unwrap();
            }
            folder.write(&format!("{name}.csv"), file);
            write!(
                tables,
                "[[table]]\nname = \"{name}\"\nowner = \"{owner}\"\nrows = {ROWS}\nunique = [[\"id\"]]\nfile = \"{name}.csv\"\n\
                 column = [{{ name = \"id\", type = \"integer\", min = 0, max = 1000000 }}, {columns}]\n"
            )
            .unwrap();
        }
    }
    let sums = joined(
        &|column| format!("sum(a.x{column} + b.x{column}) AS s{column}"),
        ", ",
    );
    for k in 1..4 {
        write!(
            queries,
            "[[query]]\nname = \"sums{k}\"\nsql = \"SELECT {sums} FROM ann{k} a JOIN bob{k} b ON a.id = b.id\"\nto = \"eve\"\n"
        )
        .unwrap();
    }
    let job = format!(
        "version = 1\nkind = \"query\"\nname = \"large\"\nowners = [\"ann\", \"bob\"]\nparties = [\"a\", \"b\", \"c\"]\n\
         recipients = [\"eve\"]\n{tables}{queries}"
    );
    folder.write("large.toml", job);
    let sum = |column| {
        let both = |row| value(row, 31, column) + value(row, 17, column);
        (0..ROWS).map(both).sum::<usize>().to_string()
    };
    let text = format!(
        "{}\n{}\n",
        joined(&|column| format!("s{column}"), ","),
        joined(&sum, ",")
    );
    [text.clone(), text.clone(), text]
}

/// What a job opened to eve in this folder.
fn sums(folder: &Folder, out: &str) -> [String; 3] {
    [1, 2, 3].map(|k| fs::read_to_string(folder.at(&format!("{out}/sums{k}.csv"))).unwrap())
}

/// MiB of a job's first party: with columns on the disk, and with all in memory.
fn rooms(folder: &Folder) -> [u64; 2] {
    let explained = json(&folder.succeed("explain large.toml --lanes 1 --json"));
    let participants = explained["participants"].as_array().unwrap();
    let party = participants
        .iter()
        .find(|of| of["role"] == "party")
        .unwrap();
    let mib = |of: &str| party[of].as_u64().unwrap().div_ceil(1 << 20);
    [mib("least_memory_bytes"), mib("memory_bytes")]
}

/// Columns wait on the disk where memory has no room for them, results are the same, and nothing is left there. With too little memory a run does not begin.
#[test]
fn columns_wait_on_the_disk() {
    let folder = Folder::new();
    let wanted = large(&folder);
    fs::create_dir(folder.at("spill")).unwrap();
    let [least, most] = rooms(&folder);
    assert!(least + 1 < most, "{least} MiB, {most} MiB");
    assert!(
        folder
            .succeed("explain large.toml")
            .contains("with `--spill`")
    );
    for how in ["", "--processes"] {
        folder.succeed(&format!(
            "run large.toml --lanes 1 --memory-mib {least} --spill spill --out out {how}"
        ));
        assert_eq!(sums(&folder, "out/eve"), wanted);
        assert_eq!(fs::read_dir(folder.at("spill")).unwrap().count(), 0);
        fs::remove_dir_all(folder.at("out")).unwrap();
    }
    let few = least - 1;
    for (room, told) in [
        (
            format!("--memory-mib {few} --spill spill"),
            "with all columns on the disk that a pass does not take",
        ),
        (
            format!("--memory-mib {few}"),
            "give it more, --memory-mib, or a folder where columns of queries wait, --spill",
        ),
        ("--spill spill".into(), "--memory-mib"),
        (
            format!("--memory-mib {least} --spill nowhere"),
            "cannot create a file for columns in nowhere",
        ),
    ] {
        let arguments = format!("run large.toml --lanes 1 --out out {room}");
        let output = folder.veil(&arguments);
        let said = crate::common::text(&output.stderr);
        assert!(
            !output.status.success() && said.contains(told),
            "{room}: {said}"
        );
        assert!(!folder.at("out").exists(), "{room}");
    }
}

/// A service whose memory has no room for the columns of a job refuses it, or has them wait on its disk.
#[test]
fn columns_of_a_service_wait_on_its_disk() {
    let _alone = alone();
    let folder = Folder::new();
    let wanted = large(&folder);
    folder.replace(
        "large.toml",
        "owners = [\"ann\", \"bob\"]",
        "owners = [\"ann\"]",
    );
    folder.replace("large.toml", "owner = \"bob\"", "owner = \"ann\"");
    let [least, _] = rooms(&folder);
    let homes = homes(folder.path(), &NAMES);
    folder.replace(
        "a/veil.toml",
        "memory_mib = 4096",
        &format!("memory_mib = {least}"),
    );
    let services: Vec<Service> = NAMES[..3]
        .iter()
        .map(|name| Service::start(folder.path(), name, &[]))
        .collect();
    let refused = crate::common::text(&folder.veil("submit large.toml --home ann").stdout);
    let told = format!("and this party gives all its jobs {least} MiB");
    assert!(refused.contains(&told), "{refused}");
    let mut services = services.into_iter();
    assert_eq!(services.next().unwrap().stop().0, Some(0));
    folder.replace("a/veil.toml", "spill = false", "spill = true");
    let first = Service::start(folder.path(), NAMES[0], &[]);
    let (plan, said) = submit(&folder, "large.toml");
    assert_eq!(said, ["pending"; 3]);
    homes[..3].iter().for_each(|home| approve(home, &plan));
    let children = ["ann", "eve"].map(|name| (name, take_part(&folder, "large.toml", name)));
    for (name, child) in children {
        let (code, said) = end(child);
        assert_eq!(code, Some(0), "{name}: {said}");
    }
    assert_eq!(sums(&folder, "out-large.toml"), wanted);
    wait("done", || states(&folder, &plan) == ["done"; 3]);
    for service in services.chain([first]) {
        assert_eq!(service.stop().0, Some(0));
    }
}
