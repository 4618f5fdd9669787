//! Consent: what was not approved is not decided to run, and what is decided is logged.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use veil_node::log::{Decided, Event};
use veil_node::policy::Facts;
use veil_node::{
    Begins, Binding, Decision, Filing, Home, How, Receipt, Request, Role, Settings, Term, Time,
    plan_of, receipt, roles_of,
};
use veil_program::{Files, Job};
use veil_protocol::Replicated;
use veil_protocol::{Options, Plan};
use veil_runtime::Stage;
use veil_session::{PartyId, Peer, PlanHash};

const JOB: &str = r#"
version = 1
kind = "stats"
name = "pay"
owners = ["mill", "harbour"]
parties = ["university", "union", "ministry"]
recipients = ["press", "mill"]
column = [{ name = "pay", type = "decimal", scale = 2, min = 0, max = "9999.99" },
          { name = "sex", type = "category", values = ["f", "m"] }]
block = [{ name = "mill", rows = 70, holds = { mill = ["pay", "sex"] } },
         { name = "harbour", rows = 30, holds = { harbour = ["pay", "sex"] } }]
analysis = [{ name = "mean pay", kind = "mean", of = "pay", by = ["sex"], to = "press" },
            { name = "total pay", kind = "sum", of = "pay", to = "mill" }]
"#;

struct World {
    _folder: TempDir,
    home: Home,
    plan: Arc<Plan>,
    facts: Facts,
}

fn planned(text: &str) -> (Job, Arc<Plan>) {
    let job = Job::parse(text, Path::new("job.toml"), Files::new()).unwrap();
    let spec = Arc::new(job.spec().clone());
    let plan = Arc::new(Plan::new(spec, Options::default()).unwrap());
    (job, plan)
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings::new("mill", Role::Owner).unwrap();
        let home = Home::create(&folder.path().join("mill"), &settings).unwrap();
        let (job, plan) = planned(JOB);
        let protocol = Replicated::new(Arc::clone(&plan), Peer::Party(PartyId::THREE[0]));
        let facts = Facts::of(&job, &plan, &protocol);
        World {
            _folder: folder,
            home,
            plan,
            facts,
        }
    }

    fn request<'a>(&self, facts: &'a Facts, asked_by: Option<&'a str>) -> Request<'a> {
        Request {
            plan: self.plan.hash,
            facts,
            asked_by,
            roles: roles_of(&self.plan, "mill"),
            repeats: false,
        }
    }

    fn filing(&self) -> Filing<'_> {
        Filing {
            plan: self.plan.hash,
            stages: &[],
            name: "pay",
            lanes: 1,
            stocked: false,
            job: JOB,
            explained: "opened: sum of pay, to: press\n",
            data: &[],
            align_key: None,
            files: &[],
            asked_by: None,
        }
    }

    fn policy(&self, rules: &str) {
        let path = self.home.path().join("policy.toml");
        fs::write(&path, format!("version = 1\n{rules}")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(path, mode).unwrap();
    }

    fn decide(&self) -> Decision {
        self.home.decide(&self.request(&self.facts, None)).unwrap()
    }

    fn start(&self) -> Decision {
        self.home
            .start(&self.request(&self.facts, Some("press")), Begins::default())
            .unwrap()
    }

    fn kinds(&self) -> Vec<String> {
        self.home.log().verify(&[]).unwrap();
        let mut kinds = Vec::new();
        self.home
            .log()
            .for_each(|entry| kinds.push(entry.kind))
            .unwrap();
        kinds
    }
}

/// A job that loads a relation of queries, and keeps two.
const KEPT: &str = r#"version = 1
kind = "query"
name = "again"
owners = []
parties = ["ministry", "union", "university"]
recipients = ["press"]

[[table]]
name = "treated"
stored = "treated 2025"
rows = { up_to = 12 }
column = [{ name = "age", type = "integer", min = 0, max = 120 }]

[[query]]
name = "adults"
sql = "SELECT age FROM treated WHERE age >= 18"
keep = "adults 2025"

[[query]]
name = "old"
sql = "SELECT age FROM treated WHERE age >= 65"
keep = "old 2025"
"#;

#[test]
fn facts_of_queries_name_what_is_loaded_and_that_something_is_kept() {
    let job = Job::parse(KEPT, Path::new("job.toml"), Files::new()).unwrap();
    let (names, options) = (Vec::new(), Options::default());
    let passes = job.passes().unwrap();
    let passes = veil_runtime::Passes::new(passes, job.shared(), names, options).unwrap();
    let protocol = passes.protocol(Peer::Party(PartyId::THREE[0]));
    let facts = Facts::of(&job, &passes, &*protocol);
    assert!(facts.keeps && facts.to.is_empty());
    assert_eq!(Vec::from_iter(&facts.datasets), ["treated 2025"]);
    assert!(facts.columns.iter().any(|column| column.contains("age")));
    // A bound says not how many rows there are.
    assert_eq!((facts.rows, facts.smallest_block), (12, 0));
    assert!(roles_of(&passes, "mill").is_empty());
}

/// The facts of a job whose query is this.
fn asked(sql: &str) -> Facts {
    let (head, _) = KEPT.split_once("[[query]]").unwrap();
    let text = format!("{head}[[query]]\nname = \"q\"\nsql = \"{sql}\"\nto = \"press\"\n");
    let job = Job::parse(&text, Path::new("job.toml"), Files::new()).unwrap();
    let (names, options) = (Vec::new(), Options::default());
    let passes = job.passes().unwrap();
    let passes = veil_runtime::Passes::new(passes, job.shared(), names, options).unwrap();
    let protocol = passes.protocol(Peer::Party(PartyId::THREE[0]));
    Facts::of(&job, &passes, &*protocol)
}

const FAMILY: &str = "[[rule]]\nname = \"some\"\ndecision = \"allow\"\ndatasets = [\"treated 2025\"]\nper_family = 2\n";

/// Queries that differ in literals are one family, of each asker apart; another column, and another condition, are others.
#[test]
fn a_rule_allows_as_many_of_a_family_as_it_says() {
    let world = World::new();
    world.policy(FAMILY);
    let start = |sql: &str, by: Option<&str>| {
        let facts = asked(sql);
        let request = world.request(&facts, by);
        world.home.start(&request, Begins::default()).unwrap()
    };
    let older = |age: u32| format!("SELECT count(*) AS n FROM treated WHERE age > {age}");
    assert!(start(&older(18), Some("press")).allows());
    assert!(start(&older(19), Some("press")).allows());
    let third = start(
        "select COUNT(*) as m from treated t where t.age > 30",
        Some("press"),
    );
    assert_eq!(
        third.to_string(),
        "waits for approval: rule `some`: 2 runs for `press` of queries that differ from one of these in literals alone are all that it allows; `veil approve` shows the job and asks"
    );
    // It is no run, and counts not.
    assert!(!start(&older(31), Some("press")).allows());
    let other = "SELECT count(*) AS n FROM treated WHERE age < 18";
    assert!(start(other, Some("press")).allows());
    // Another asker, and this participant itself.
    for by in [Some("ministry"), None] {
        assert!(start(&older(18), by).allows());
        assert!(start(&older(18), by).allows());
        assert!(!start(&older(20), by).allows(), "{by:?}");
    }
    let stats = start_of(&world, &world.facts);
    assert!(
        stats.to_string().contains(
            "rule `some`: the job has no queries, and the rule counts families of queries"
        ),
        "{stats}"
    );
}

fn start_of(world: &World, facts: &Facts) -> Decision {
    let request = world.request(facts, Some("press"));
    world.home.start(&request, Begins::default()).unwrap()
}

/// A query beside it hides no family; two of one job of one family are one run.
#[test]
fn each_query_of_a_job_counts_for_its_family() {
    let world = World::new();
    world.policy(&(FAMILY.to_owned() + "keep = true\n"));
    let job = Job::parse(KEPT, Path::new("job.toml"), Files::new()).unwrap();
    let passes = job.passes().unwrap();
    let (names, options) = (Vec::new(), Options::default());
    let passes = veil_runtime::Passes::new(passes, job.shared(), names, options).unwrap();
    let protocol = passes.protocol(Peer::Party(PartyId::THREE[0]));
    let both = Facts::of(&job, &passes, &*protocol);
    assert_eq!(both.families.len(), 1);
    assert!(start_of(&world, &both).allows());
    let alone = asked("SELECT age FROM treated WHERE age >= 7");
    assert_eq!(alone.families, both.families);
    assert!(start_of(&world, &alone).allows());
    let mut beside = asked("SELECT max(age) AS m FROM treated");
    assert!(start_of(&world, &beside).allows());
    beside.families.extend(alone.families.clone());
    assert!(!start_of(&world, &beside).allows());
}

/// A log that is not in order, and one of which it is not known what a run asked.
#[test]
fn families_that_are_not_known_are_counted() {
    let world = World::new();
    world.policy(FAMILY);
    let facts = asked("SELECT count(*) AS n FROM treated WHERE age > 3");
    let unknown = Event::RunStarted {
        plan: "00".repeat(32),
        job: "again".into(),
        asked_by: Some("press".into()),
        rule: Some("some".into()),
        families: None,
        decided: Decided::Rule {
            rule: "some".into(),
        },
        stage: "run".into(),
    };
    for _ in 0..2 {
        world.home.log().append(unknown.clone()).unwrap();
    }
    let refused = start_of(&world, &facts).to_string();
    assert!(
        refused.contains("2 runs for `press` of queries"),
        "{refused}"
    );
    let log = world.home.log().path();
    let good = fs::read_to_string(&log).unwrap();
    fs::write(&log, good.replace("press", "union")).unwrap();
    let fresh = Home::open(world.home.path()).unwrap();
    let refused = fresh.decide(&world.request(&facts, Some("press"))).unwrap();
    assert!(!refused.allows());
    assert!(
        refused.to_string().contains("its runs cannot be counted"),
        "{refused}"
    );
}

/// An opening of a size is an operation of its own: a rule that lists operations allows it only by its name, and a rule can refuse it.
#[test]
fn a_rule_allows_an_opened_size_by_its_name() {
    let sized = KEPT.replace(
        "keep = \"old 2025\"",
        "keep = \"old 2025\"\nopen_size = { round_up_to = 4, why = \"the next job is smaller\" }",
    );
    let facts = |text: &str| {
        let job = Job::parse(text, Path::new("job.toml"), Files::new()).unwrap();
        let passes = job.passes().unwrap();
        let (names, options) = (Vec::new(), Options::default());
        let passes = veil_runtime::Passes::new(passes, job.shared(), names, options).unwrap();
        let protocol = passes.protocol(Peer::Party(PartyId::THREE[0]));
        Facts::of(&job, &passes, &*protocol)
    };
    let (plain, sized) = (facts(KEPT), facts(&sized));
    assert!(!plain.operations.contains("open-size"));
    assert!(sized.operations.contains("open-size"));
    let world = World::new();
    let rule = |decision: &str, operations: &str| {
        let allows = match decision {
            "allow" => "keep = true\ndatasets = [\"treated 2025\"]\n",
            _ => "",
        };
        format!(
            "[[rule]]\nname = \"r\"\ndecision = \"{decision}\"\n{allows}operations = [{operations}]\n"
        )
    };
    world.policy(&rule("allow", "\"filter\""));
    assert!(start_of(&world, &plain).allows());
    let waits = start_of(&world, &sized).to_string();
    assert!(
        waits.contains("rule `r`: the job computes `open-size`"),
        "{waits}"
    );
    world.policy(&rule("allow", "\"filter\", \"open-size\""));
    assert!(start_of(&world, &sized).allows());
    world.policy(&rule("refuse", "\"open-size\""));
    let refused = start_of(&world, &sized).to_string();
    assert_eq!(
        refused,
        "refused by rule `r` of the policy: it computes `open-size`"
    );
    assert!(!start_of(&world, &plain).to_string().contains("refused"));
}

/// So is a bit that says whether a bound has left out rows; bounds that drop open none.
#[test]
fn a_rule_allows_a_bound_that_flags_by_its_name() {
    let facts = |overflow: &str| {
        let (head, _) = KEPT.split_once("[[query]]").unwrap();
        let text = format!(
            "{head}[[query]]\nname = \"q\"\nsql = \"SELECT age FROM treated WHERE age >= 18\"\nto = \"press\"\n\
             [[bound]]\nof = \"q\"\nrows = 3\noverflow = \"{overflow}\"\n"
        );
        let job = Job::parse(&text, Path::new("job.toml"), Files::new()).unwrap();
        let passes = job.passes().unwrap();
        let (names, options) = (Vec::new(), Options::default());
        let passes = veil_runtime::Passes::new(passes, job.shared(), names, options).unwrap();
        let protocol = passes.protocol(Peer::Party(PartyId::THREE[0]));
        Facts::of(&job, &passes, &*protocol)
    };
    let [drops, flags, refuses] = ["drop", "flag", "refuse"].map(facts);
    assert!(!drops.operations.contains("flag-overflow"));
    assert!(!refuses.operations.contains("flag-overflow"));
    assert!(flags.operations.contains("flag-overflow"));
    assert_eq!(Vec::from_iter(&flags.to), ["press"]);
    let world = World::new();
    let rule = |decision: &str, operations: &str| {
        let allows = match decision {
            "allow" => "datasets = [\"treated 2025\"]\n",
            _ => "",
        };
        format!(
            "[[rule]]\nname = \"r\"\ndecision = \"{decision}\"\n{allows}operations = [{operations}]\n"
        )
    };
    world.policy(&rule("allow", "\"filter\", \"select-rows\""));
    assert!(start_of(&world, &drops).allows());
    let waits = start_of(&world, &flags).to_string();
    assert!(
        waits.contains("rule `r`: the job computes `flag-overflow`"),
        "{waits}"
    );
    world.policy(&rule(
        "allow",
        "\"filter\", \"select-rows\", \"flag-overflow\"",
    ));
    assert!(start_of(&world, &flags).allows());
    world.policy(&rule("refuse", "\"flag-overflow\""));
    assert_eq!(
        start_of(&world, &flags).to_string(),
        "refused by rule `r` of the policy: it computes `flag-overflow`"
    );
    assert!(!start_of(&world, &drops).to_string().contains("refused"));
}

#[test]
fn the_facts_of_a_job_are_what_the_job_says() {
    let World { facts, plan, .. } = World::new();
    let names = |set: &std::collections::BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>();
    assert_eq!(names(&facts.operations), ["mean", "sum"]);
    assert_eq!(names(&facts.columns), ["pay", "sex"]);
    assert_eq!(names(&facts.to), ["mill", "press"]);
    assert_eq!(names(&facts.parties), ["ministry", "union", "university"]);
    assert_eq!(
        (facts.rows, facts.smallest_block, facts.groups),
        (100, 30, 2)
    );
    assert_eq!(facts.adversary, "semi-honest");
    assert!(!facts.keeps && facts.datasets.is_empty() && facts.circuits.is_empty());
    let roles = roles_of(&plan, "mill");
    assert_eq!(names(&roles), ["owner", "recipient"]);
    assert!(roles_of(&plan, "stranger").is_empty());

    let circuit = r#"
version = 1
kind = "circuit"
name = "c"
owners = ["a"]
parties = ["x", "y", "z"]
recipients = ["a"]
circuit = { make = "aes128", rows = 1 }
input = [{ port = "key", owner = "a", format = "hex", file = "k" }, { port = "block", owner = "a", format = "hex", file = "b" }]
output = [{ port = "block", to = "a", format = "hex", file = "o" }]
"#;
    // The names of the ports are those of the catalogue; what counts here is the circuit's own name.
    if let Ok(job) = Job::parse(circuit, Path::new("job.toml"), Files::new()) {
        let spec = Arc::new(job.spec().clone());
        let plan = Arc::new(Plan::new(spec, Options::default()).unwrap());
        let protocol = Replicated::new(Arc::clone(&plan), Peer::Party(PartyId::THREE[0]));
        let facts = Facts::of(&job, &plan, &protocol);
        assert!(facts.circuits.contains("aes128") && facts.circuits.len() == 2);
    }
}

#[test]
fn what_is_not_approved_waits() {
    let world = World::new();
    let decision = world.decide();
    assert_eq!(
        decision.to_string(),
        "waits for approval: there is no policy; `veil approve` shows the job and asks"
    );
    assert!(!world.start().allows());
    world.home.file_job(&world.filing()).unwrap();
    assert!(
        !world.decide().allows(),
        "to be filed is not to be approved"
    );
    assert_eq!(world.kinds(), ["init"]);
}

#[test]
fn what_was_approved_runs_unless_that_is_taken_back() {
    let world = World::new();
    let filing = world.filing();
    let filed = world
        .home
        .approve(&filing, How::Answered, Term::default())
        .unwrap();
    assert!(matches!(world.decide(), Decision::Approved { ref how, .. } if how == "answered"));
    assert!(world.start().allows());
    assert_eq!(filed.job().unwrap(), JOB);
    assert_eq!(filed.explained().unwrap(), filing.explained);
    let mut other = world.request(&world.facts, None);
    other.plan.0[31] ^= 1;
    assert!(
        !world.home.decide(&other).unwrap().allows(),
        "another plan by one bit"
    );

    assert!(world.home.withdraw(world.plan.hash).unwrap());
    assert!(!world.home.withdraw(world.plan.hash).unwrap());
    assert!(!world.start().allows());
    assert_eq!(
        world.kinds(),
        ["init", "approval", "run_started", "withdrawal"]
    );
}

/// What ends a run, as participants log it.
fn ended(world: &World, stage: &str, opened: bool, cause: &str) {
    let ended = Event::RunEnded {
        plan: Event::plan(world.plan.hash),
        job: "pay".into(),
        trace: None,
        stage: stage.into(),
        opened,
        cause: cause.into(),
        seconds: 1,
    };
    world.home.log().append(ended).unwrap();
}

/// S8: what was approved once runs once, whichever participant asks for it again.
#[test]
fn an_approval_is_good_for_one_run() {
    let world = World::new();
    let approve = |term| {
        world
            .home
            .approve(&world.filing(), How::Answered, term)
            .unwrap()
    };
    let approved = approve(Term::default()).approved.unwrap();
    assert!(world.start().allows());
    let used = format!(
        "waits for approval: the approval of {} was for one run, and is used; `veil approve` shows the job and asks",
        approved.at
    );
    // While it runs, when it is over, and for a process that opens the home anew.
    assert_eq!(world.start().to_string(), used);
    ended(&world, "run", true, "done");
    assert_eq!(world.start().to_string(), used);
    let fresh = Home::open(world.home.path()).unwrap();
    let request = world.request(&world.facts, None);
    assert_eq!(fresh.decide(&request).unwrap().to_string(), used);
    // Approved again, it runs again: once.
    approve(Term::default());
    assert!(world.start().allows());
    assert!(!world.start().allows());
    // A run that ended before anything was opened is none.
    approve(Term::default());
    for _ in 0..3 {
        assert!(world.start().allows());
        ended(&world, "run", false, "link");
    }
    assert!(world.start().allows());
    ended(&world, "run", true, "link");
    assert!(!world.start().allows());
    // A run that was killed counts as one.
    approve(Term::default());
    assert!(world.start().allows());
    ended(&world, "run", true, "killed");
    assert!(!world.start().allows());
}

#[test]
fn an_approval_is_good_for_as_long_as_its_giver_says() {
    let world = World::new();
    let approve = |runs, until| {
        let term = Term { runs, until };
        let filed = world.home.approve(&world.filing(), How::Answered, term);
        filed.unwrap().approved.unwrap()
    };
    approve(Some(3), None);
    for left in [true, true, true, false] {
        assert_eq!(world.start().allows(), left);
        ended(&world, "run", true, "done");
    }
    let day = std::time::Duration::from_secs(24 * 3600);
    let tomorrow = Time::now().after(day);
    approve(None, Some(tomorrow));
    for _ in 0..5 {
        assert!(world.start().allows());
    }
    approve(Some(1), Some(tomorrow));
    assert!(world.start().allows());
    assert!(!world.start().allows());
    let yesterday = Time::from_seconds(Time::now().seconds() - 24 * 3600).unwrap();
    let approved = approve(Some(3), Some(yesterday));
    let over = format!(
        "waits for approval: the approval of {} was for 3 runs until {yesterday}, and that is over; `veil approve` shows the job and asks",
        approved.at
    );
    assert_eq!(world.start().to_string(), over);
}

/// Runs on the same checkpointed inputs are one run of a durable job; to bring other inputs is another, unless nothing was opened of these.
#[test]
fn a_durable_job_uses_its_approval_once() {
    let world = World::new();
    let start = |at| {
        let mut request = world.request(&world.facts, None);
        request.roles = ["party".to_owned()].into();
        let stage = (at == Stage::Input).then_some("pay: inputs");
        let begins = Begins {
            stage,
            at,
            ..Begins::default()
        };
        world.home.start(&request, begins).unwrap().allows()
    };
    let [input, compute] = [Stage::Input, Stage::Compute];
    let approve = || {
        let filing = world.filing();
        let approved = world.home.approve(&filing, How::Answered, Term::default());
        approved.unwrap();
    };
    approve();
    assert!(start(input));
    ended(&world, "input stage", false, "done");
    for _ in 0..3 {
        assert!(start(compute));
        ended(&world, "compute stage", false, "link");
    }
    // A party has lost its inputs before anything was opened.
    assert!(start(input));
    ended(&world, "input stage", false, "done");
    assert!(start(compute));
    ended(&world, "compute stage", true, "link");
    // On these inputs it goes on; on others it does not begin again.
    assert!(!start(input));
    assert!(start(compute));
    ended(&world, "compute stage", true, "done");
    assert!(!start(compute));
    assert!(!start(input));
    approve();
    assert!(start(input));
}

/// An adversary that can write the file, and has no key, makes no approval good again.
#[test]
fn an_approval_is_good_for_nothing_by_a_log_that_is_not_in_order() {
    let world = World::new();
    world
        .home
        .approve(&world.filing(), How::Answered, Term::default())
        .unwrap();
    assert!(world.start().allows());
    let log = world.home.log().path();
    let good = fs::read_to_string(&log).unwrap();
    let last = good.lines().last().unwrap();
    let touched = [
        good.replace("run_started", "run started"),
        good.replace("\"by\":\"person\"", "\"by\":\"yes\""),
        good.replace(&format!("{last}\n"), ""),
        "garbage\n".to_owned(),
        String::new(),
    ];
    for text in touched {
        assert_ne!(text, good);
        fs::write(&log, &text).unwrap();
        let fresh = Home::open(world.home.path()).unwrap();
        for home in [&world.home, &fresh] {
            match home.decide(&world.request(&world.facts, None)) {
                // What was read before, and is not whole any more.
                Ok(decision) => assert!(!decision.allows(), "{text}: {decision}"),
                Err(error) => {
                    let said = error.to_string();
                    assert!(said.contains("log.jsonl"), "{text}: {said}");
                }
            }
        }
        let unread = fresh.decide(&world.request(&world.facts, None));
        assert!(unread.is_err(), "{text}: {unread:?}");
    }
    fs::write(&log, &good).unwrap();
    assert!(!world.start().allows());
}

#[test]
fn an_approval_is_good_for_the_stages_and_not_for_other_data() {
    let world = World::new();
    let stages = [PlanHash([1; 32]), PlanHash([2; 32])];
    let mut filing = world.filing();
    filing.stages = &stages;
    world
        .home
        .approve(&filing, How::Yes, Term::default())
        .unwrap();
    for plan in stages {
        let mut request = world.request(&world.facts, None);
        request.plan = plan;
        assert!(world.home.decide(&request).unwrap().allows());
    }
    // Filed again by a member: nothing changes. With other data at this participant: its operator must look again.
    filing.asked_by = Some("press");
    filing.explained = "nothing is opened";
    let again = world.home.file_job(&filing).unwrap();
    assert!(again.approved.is_some());
    assert!(again.explained().unwrap().starts_with("opened:"));
    filing.asked_by = None;
    let data = [Binding {
        owner: "mill".into(),
        what: "mill".into(),
        file: "/data/other.csv".into(),
        bytes: None,
        sha256: None,
    }];
    filing.data = &data;
    assert!(world.home.file_job(&filing).unwrap().approved.is_none());
    assert!(!world.decide().allows());
    let approved = world
        .home
        .approve(&filing, How::Yes, Term::default())
        .unwrap();
    assert_eq!(approved.files().len(), 1);
    assert_eq!(world.home.all_filed().unwrap(), [approved]);
}

#[test]
fn an_approval_that_was_moved_or_damaged_approves_nothing() {
    let world = World::new();
    let filed = world
        .home
        .approve(&world.filing(), How::Yes, Term::default())
        .unwrap();
    let other = world.home.job_folder(PlanHash([7; 32]));
    fs::rename(&filed.folder, &other).unwrap();
    let mut request = world.request(&world.facts, None);
    request.plan = PlanHash([7; 32]);
    let error = world.home.decide(&request).unwrap_err().to_string();
    assert!(
        error.contains("the folder has another name than the plan"),
        "{error}"
    );
    fs::rename(&other, &filed.folder).unwrap();
    let entry = filed.folder.join("entry.toml");
    let text = fs::read_to_string(&entry).unwrap();
    fs::write(&entry, text.replace("lanes = 1", "lanes = \"one\"")).unwrap();
    let error = world
        .home
        .decide(&world.request(&world.facts, None))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("entry.toml:4:9: invalid type: string \"one\""),
        "{error}"
    );
}

#[test]
fn names_of_files_stay_in_their_folder() {
    let world = World::new();
    for name in ["../x", "/etc/x", "entry.toml", ".hidden", "", "a/b"] {
        let files = [(name.to_owned(), b"x".to_vec())];
        let mut filing = world.filing();
        filing.files = &files;
        assert!(world.home.file_job(&filing).is_err(), "{name}");
    }
    let files = [("adder.txt".to_owned(), b"x".to_vec())];
    let mut filing = world.filing();
    filing.files = &files;
    let filed = world.home.file_job(&filing).unwrap();
    assert_eq!(
        fs::read(filed.path().with_file_name("adder.txt")).unwrap(),
        b"x"
    );
}

/// S1: what is filed of a plan is what the operator looks at, whichever member proposes it again and however.
#[test]
fn what_is_filed_of_a_plan_is_not_replaced_by_a_member() {
    let world = World::new();
    let files = |text: &str| [("adder.txt".to_owned(), text.into())];
    let (first, second) = (files("one"), files("two"));
    let mut filing = world.filing();
    (filing.files, filing.asked_by) = (&first, Some("press"));
    let filed = world.home.file_job(&filing).unwrap();
    let said = || {
        let read = |name: &str| fs::read_to_string(filed.folder.join(name)).unwrap();
        ["job.toml", "adder.txt", "explained.txt"].map(read)
    };
    let before = said();
    (filing.files, filing.asked_by) = (&second, Some("ministry"));
    (filing.job, filing.explained) = ("name = \"other\"", "nothing is opened");
    let again = world.home.file_job(&filing).unwrap();
    assert_eq!(said(), before);
    assert_eq!(again.asked_by.as_deref(), Some("ministry"));
    // This participant's own people put their own text in its place: they have read it.
    (filing.job, filing.asked_by) = (JOB, None);
    let approved = world.home.approve(&filing, How::Answered, Term::default());
    assert_eq!(approved.unwrap().explained().unwrap(), "nothing is opened");
    assert_eq!(said()[1], "two");
}

#[test]
fn a_rule_that_refuses_stands_above_an_approval() {
    let world = World::new();
    world
        .home
        .approve(&world.filing(), How::Yes, Term::default())
        .unwrap();
    world.policy("[[rule]]\nname = \"no press\"\ndecision = \"refuse\"\nto = [\"press\"]\n");
    assert_eq!(
        world.start().to_string(),
        "refused by rule `no press` of the policy: it opens values to `press`"
    );
    world.policy("");
    assert!(world.start().allows());
    assert_eq!(
        world.kinds(),
        [
            "init",
            "approval",
            "policy_changed",
            "refusal",
            "policy_changed",
            "run_started"
        ]
    );
}

#[test]
fn a_rule_allows_as_often_as_it_says_and_the_log_counts() {
    let world = World::new();
    world.policy("[[rule]]\nname = \"daily\"\ndecision = \"allow\"\noperations = [\"mean\", \"sum\"]\nper_day = 2\n");
    for _ in 0..2 {
        assert_eq!(
            world.start(),
            Decision::Policy {
                rule: "daily".into()
            }
        );
    }
    let third = world.start();
    assert_eq!(
        third.to_string(),
        "waits for approval: rule `daily`: 2 runs in the last 24 hours are all that it allows; `veil approve` shows the job and asks"
    );
    // A person may still say yes, and that is not counted against the rule.
    world
        .home
        .approve(&world.filing(), How::Answered, Term::default())
        .unwrap();
    assert!(matches!(world.start(), Decision::Approved { .. }));
    let mut decided = Vec::new();
    let log = world.home.log();
    log.for_each(|entry| {
        let by = entry.fields.get("decided").map(|decided| &decided["by"]);
        decided.extend(by.map(|by| (by.to_string(), entry.text("rule").map(str::to_owned))));
    })
    .unwrap();
    let daily = Some("daily".to_owned());
    assert_eq!(
        decided,
        [
            ("\"rule\"".to_owned(), daily.clone()),
            ("\"rule\"".to_owned(), daily),
            ("\"person\"".to_owned(), None)
        ]
    );
}

/// An adversary that can write the file, and has no key, gives no rule back what was used up; nor does a log that ends too early.
#[test]
fn a_log_that_is_not_in_order_counts_nothing() {
    let world = World::new();
    world.policy("[[rule]]\nname = \"daily\"\ndecision = \"allow\"\nper_day = 2\n");
    for _ in 0..2 {
        assert!(world.start().allows());
    }
    let log = world.home.log().path();
    let good = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    let last = lines.last().unwrap();
    // A run of another rule, or of none; one that was long ago; and the last one gone.
    let touched = [
        good.replace("\"rule\":\"daily\"", "\"rule\":\"other\""),
        good.replace("run_started", "run started"),
        good.replacen("\"time\":\"20", "\"time\":\"19", 3),
        good.replace(&format!("{last}\n"), ""),
        "garbage\n".to_owned(),
    ];
    for text in touched {
        assert_ne!(text, good);
        // What was read before, and what reads it for the first time.
        fs::write(&log, &text).unwrap();
        let fresh = Home::open(world.home.path()).unwrap();
        for (knew, home) in [(true, &world.home), (false, &fresh)] {
            let decision = home.decide(&world.request(&world.facts, None)).unwrap();
            let known = "rule `daily`: 2 runs in the last 24 hours are all that it allows";
            let broken = "rule `daily`: its runs cannot be counted: the log is not in order, and `veil log verify` says where";
            let said = decision.to_string();
            assert!(
                said.contains(known) || said.contains(broken),
                "{text}: {said}"
            );
            assert!(knew || said.contains(broken), "{said}");
        }
    }
    // What is in order again is counted again, also by the home that found it out of order.
    fs::write(&log, &good).unwrap();
    assert!(!world.start().allows());
    world
        .home
        .approve(&world.filing(), How::Answered, Term::default())
        .unwrap();
    assert!(world.start().allows());
}

#[test]
fn two_that_start_at_once_are_counted_one_after_the_other() {
    let world = World::new();
    world.policy("[[rule]]\nname = \"once\"\ndecision = \"allow\"\nper_job = 1\n");
    let allowed: usize = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let home = Home::open(world.home.path()).unwrap();
                    let request = world.request(&world.facts, None);
                    usize::from(home.start(&request, Begins::default()).unwrap().allows())
                })
            })
            .collect();
        starts.into_iter().map(|start| start.join().unwrap()).sum()
    });
    assert_eq!(allowed, 1);
}

/// Runs on the inputs that a job has kept are one run to rules that count.
#[test]
fn a_run_that_repeats_one_is_not_counted_again() {
    let world = World::new();
    world.policy("[[rule]]\nname = \"once\"\ndecision = \"allow\"\nper_job = 1\nper_day = 1\n");
    let start = |repeats| {
        let request = world.request(&world.facts, None);
        let request = Request { repeats, ..request };
        world
            .home
            .start(&request, Begins::default())
            .unwrap()
            .allows()
    };
    assert!(start(false));
    assert_eq!(
        [true, true, false, true].map(start),
        [true, true, false, true]
    );
}

#[test]
fn a_receipt_says_what_a_result_is_of_and_notices_a_change() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("result.txt"), "abc").unwrap();
    let protocol = Replicated::new(Arc::clone(&world.plan), Peer::Party(PartyId::THREE[0]));
    let press = Peer::Recipient(0);
    let key = world.home.identity().fingerprint();
    let keys = |peer: Peer| (peer == press).then_some(key);
    let started = veil_node::Time::now();
    Receipt::new(&world.plan, &protocol, press, &keys, false, started)
        .write(folder.path(), &["result.txt".into()], Some("00ff".into()))
        .unwrap();
    let read = Receipt::check(folder.path()).unwrap();
    assert_eq!(plan_of(&read.plan), Some(world.plan.hash));
    assert_eq!(
        (read.recipient.as_str(), read.rows, read.local),
        ("press", 100, false)
    );
    assert!(
        read.opened
            .iter()
            .all(|what| what.contains("pay") || what.contains("rows")),
        "{:?}",
        read.opened
    );
    assert_eq!(read.participants.len(), 3 + 2 + 2);
    assert_eq!(read.trace.as_deref(), Some("00ff"));
    // `printf abc | sha256sum`
    assert_eq!(
        read.files[0].sha256,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    fs::write(folder.path().join("result.txt"), "abd").unwrap();
    let error = Receipt::check(folder.path()).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "is not the file that the receipt is of: it was changed, or belongs to another run"
        ),
        "{error}"
    );
    fs::write(folder.path().join(receipt::NAME), "{}").unwrap();
    assert!(
        Receipt::check(folder.path())
            .unwrap_err()
            .to_string()
            .contains("this is no receipt")
    );
}

#[test]
fn what_is_logged_is_public() {
    let world = World::new();
    let event = Event::ResultPublished {
        plan: Event::plan(world.plan.hash),
        job: "pay".into(),
        trace: None,
        files: 4,
    };
    world.home.log().append(event).unwrap();
    let log = fs::read_to_string(world.home.log().path()).unwrap();
    let secret = world.home.store_secret().unwrap();
    let hex = Event::plan(PlanHash(*secret));
    let pem = fs::read_to_string(world.home.path().join("identity.key")).unwrap();
    let line = pem.lines().nth(1).unwrap();
    assert!(!log.contains(&hex) && !log.contains(line));
}
