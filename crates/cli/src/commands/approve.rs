//! `veil approve`: an operator looks at a job, and says that it may run here.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use veil_node::log::Event;
use veil_node::{Binding, Decision, Filed, Filing, Home, How, Term, Time, filed_as};
use veil_program::{AlignKey, Job};
use veil_protocol::Stock;
use veil_session::PlanHash;

use crate::commands::invite::span;
use crate::consent::{self, Planned, absolute};
use crate::failure::{Code, Failure};
use crate::home::{HomeArgs, note};
use crate::output;
use crate::prepare::JobArgs;
use crate::rates::RatesArgs;

/// Shows a job as `veil explain` does, asks, and remembers the answer for exactly this plan.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil approve job.toml
  veil approve job.toml --data mill:north=/data/pay.csv
  veil approve job.toml --data mill:north=/data/pay.csv --align-key /data/align.key
  veil approve 3f0c91aa                  a job that a member proposed, by the beginning of its plan hash
  veil approve job.toml --yes            without being asked, for scripts
  veil approve job.toml --runs 12 --until 2027-12-31
  veil approve job.toml --stock          a run that takes its products or transfers from the stock of the two parties
  veil approve job.toml --revoke         takes the approval back
  veil approve 3f0c91aa --refuse         says no: neither a rule nor --yes runs it until it is approved

The plan hash covers everything that is computed and opened, to whom, on how many rows and lanes. A job that differs in
any of it needs an approval of its own, and an approval is good for one run unless --runs, --until or --for says otherwise. What was shown is kept in the home, in jobs/PLAN/explained.txt.")]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    job: JobArgs,
    /// For how many runs the approval is good: one, if nothing is said of an end either.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    runs: Option<u64>,
    /// The last day on which a run may begin, such as 2027-12-31, or the last moment, in UTC.
    #[arg(long, value_name = "DATE", value_parser = moment)]
    until: Option<Time>,
    /// For how long runs may begin, instead of a date: days, hours or minutes, such as 7d, 12h, 30m.
    #[arg(long = "for", value_name = "SPAN", value_parser = span, conflicts_with = "until")]
    span: Option<Duration>,
    /// A run that takes its products or transfers from the stock of the two parties: another plan than one that makes them.
    #[arg(long)]
    stock: bool,
    #[command(flatten)]
    answer: AnswerArgs,
    /// Take the approval back.
    #[arg(long, conflicts_with = "yes")]
    revoke: bool,
    /// Refuse the job: it does not run here, whatever the rules allow, until it is approved.
    #[arg(long, conflicts_with_all = ["yes", "revoke", "runs", "until", "span"])]
    refuse: bool,
    #[command(flatten)]
    rates: RatesArgs,
    #[command(flatten)]
    home: HomeArgs,
}

/// Where the answer comes from.
#[derive(clap::Args, Debug)]
struct AnswerArgs {
    /// Approve without being asked.
    #[arg(long)]
    yes: bool,
    /// For a program that asks the person: prints one line of JSON with all that is shown, reads the answer, `yes` or `no`, from a line of
    /// standard input, and prints another line.
    #[arg(long, conflicts_with_all = ["revoke", "refuse"])]
    json: bool,
}

/// What `--json` prints before the question.
#[derive(Serialize)]
struct Shown<'a> {
    plan: String,
    job: &'a str,
    explained: &'a str,
    /// What would decide on it now.
    decision: String,
    asked_by: Option<&'a str>,
    /// What this participant reads, a sentence for each file.
    reads: Vec<String>,
    /// For how long an approval now is good.
    term: String,
}

/// What `--json` prints after an approval.
#[derive(Serialize)]
struct Given<'a> {
    approved: String,
    folder: &'a Path,
    /// Whether the order of rows is compared, and no key for that was given.
    lacks_align_key: bool,
}

pub(crate) fn run(args: &ApproveArgs) -> Result<(), Failure> {
    let home = args.home.open()?;
    let (job, planned, filed) = load(&home, &args.job, args.stock)?;
    if args.revoke {
        return revoke(&home, &planned);
    }
    if args.refuse {
        return refuse(&home, &args.job, &planned, filed.as_ref(), &args.rates);
    }
    let align_key = args.job.align_key.as_deref().map(absolute);
    let align_key = align_key.or_else(|| filed.as_ref()?.align_key.clone());
    if let Some(file) = &align_key {
        AlignKey::read(file)?;
    }
    let data = bindings(&home, &job, &args.job, filed.as_ref())?;
    let asked_by = filed.as_ref().and_then(|filed| filed.asked_by.as_deref());
    let request = planned.request(&home, asked_by)?;
    let shown = filed
        .as_ref()
        .map_or_else(|| args.job.job.clone(), Filed::path);
    let explained = planned.explained(&shown, &args.rates.load(home.path())?);
    if !args.answer.json {
        output::print(&explained)?;
    }
    // What `--json` says in its object.
    let note = |text: &str| {
        if !args.answer.json {
            note(text);
        }
    };
    let decision = home.decide(&request)?;
    match &decision {
        Decision::Refused { rule, why } => {
            let message = format!("rule `{rule}` of the policy refuses this job: {why}");
            let failure = Failure::new(Code::Input, message).about(consent::about(&decision));
            return Err(failure.help(format!(
                "an approval does not stand above it; change {} if the rule is wrong",
                home.path().join("policy.toml").display()
            )));
        }
        Decision::Declined { at } => note(&format!("a person refused it at {at}")),
        Decision::Approved { at, .. } => note(&format!("it was approved already, at {at}")),
        Decision::Policy { rule } => {
            note(&format!(
                "rule `{rule}` of the policy allows it without approval"
            ));
        }
        _ => {}
    }
    if let Some(member) = asked_by {
        note(&format!("`{member}` asks for it"));
    }
    for bound in &data {
        note(&bound.to_string());
    }
    let term = args.term();
    note(&format!("an approval now is good for {term}"));
    if args.answer.json {
        say(&Shown {
            plan: Event::plan(planned.plan.hash),
            job: &planned.plan.job.name,
            explained: &explained,
            decision: decision.to_string(),
            asked_by,
            reads: data.iter().map(ToString::to_string).collect(),
            term: term.to_string(),
        })?;
    }
    let how = match (args.answer.yes, args.answer.json) {
        (true, _) => How::Yes,
        (false, true) => answered()?,
        (false, false) => ask(&home)?,
    };
    // What a member sent stays as it was filed.
    let files = match &filed {
        Some(_) => Vec::new(),
        None => beside(&args.job.job, &planned.text)?,
    };
    let stages = planned.stages.hashes();
    let filing = Filing {
        data: &data,
        align_key: align_key.as_deref(),
        asked_by,
        ..filing(&planned, &stages, &explained, &files)
    };
    let approved = home.approve(&filing, how, term)?;
    let lacks_align_key = align_key.is_none() && planned.compares_order(&home);
    if args.answer.json {
        return say(&Given {
            approved: term.to_string(),
            folder: &approved.folder,
            lacks_align_key,
        });
    }
    note(&format!(
        "approved for {term}: {}; `--revoke` takes it back",
        approved.folder.display()
    ));
    if lacks_align_key {
        note(
            "the order of rows is compared with other owners, and no key for that was given: a service needs it, by `veil \
             approve` with --align-key FILE; `veil party` takes the same option",
        );
    }
    Ok(())
}

impl ApproveArgs {
    /// For how long the approval is good.
    fn term(&self) -> Term {
        Term {
            runs: self.runs,
            until: self.until.or_else(|| Some(Time::now().after(self.span?))),
        }
    }
}

/// A moment, or the end of a day.
fn moment(text: &str) -> Result<Time, String> {
    let day = || format!("{text}T23:59:59Z").parse();
    let moment: Time = (text.parse().or_else(|_| day()))
        .map_err(|_| format!("`{text}` is no day: write 2027-12-31, or 2027-12-31T12:00:00Z"))?;
    if moment < Time::now() {
        return Err(format!("{moment} is over"));
    }
    Ok(moment)
}

/// What this participant reads for a job: the files of the command line, and then those that its own job file names, that were bound
/// before, or that its settings bind for jobs like this. What another's job says of files is not followed.
fn bindings(
    home: &Home,
    job: &Job,
    args: &JobArgs,
    filed: Option<&Filed>,
) -> Result<Vec<Binding>, Failure> {
    let mut job = job.clone();
    home.bind(&mut job);
    if let (Some(options), Some(filed)) = (home.unbound(&job), filed) {
        let digits = &veil_node::log::Event::plan(filed.plan)[..16];
        let message = format!(
            "the job asks for data of `{}`, and no `--data` says where they are",
            home.settings().name
        );
        return Err(Failure::new(Code::Input, message).help(format!(
            "`veil approve {digits} {options}` says it; what the job says of files is not followed"
        )));
    }
    let given = |owner: &str, what: &str| {
        let mut given = args.data.iter();
        given.any(|given| given.owner == owner && given.what == what)
    };
    let mut bound = Vec::new();
    for data in home.asked(&job) {
        let Some(path) = data.path else { continue };
        match Binding::of(&data.owner, &data.what, &path) {
            Ok(binding) => bound.push(binding),
            // What is not there yet is bound by another approval, or given to `veil party`.
            Err(error) if filed.is_none() && !given(&data.owner, &data.what) => {
                note(&format!("not bound: {error}"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bound)
}

/// The circuit and models that a job file names: they are filed with the text.
fn beside(job: &Path, text: &str) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for path in Job::named_files(text) {
        let from = job.parent().unwrap_or(Path::new("")).join(&path);
        let taken = |name: &&str| !files.iter().any(|(other, _)| other == name);
        let Some(name) = filed_as(&path).filter(taken) else {
            let message = format!("`{path}` cannot be filed under this name: the home uses it");
            return Err(
                Failure::new(Code::Input, message).help("rename the file, and correct the job")
            );
        };
        let read = std::fs::read(&from).map_err(|error| {
            let message = format!("cannot read {}: {error}", from.display());
            Failure::new(Code::Input, message)
        })?;
        files.push((name.to_owned(), read));
    }
    Ok(files)
}

/// The job of the command line: a file, or the beginning of the plan hash of a filed one.
fn load(
    home: &Home,
    args: &JobArgs,
    stocked: bool,
) -> Result<(Job, Planned, Option<Filed>), Failure> {
    let digits = args.job.to_str().filter(|text| is_beginning(text));
    let Some(digits) = digits.filter(|_| !args.job.exists()) else {
        let (job, planned) = Planned::load(args, stocked)?;
        return Ok((job, planned, None));
    };
    let all = home.all_filed()?;
    let digits = digits.to_ascii_lowercase();
    let begins = |filed: &&Filed| veil_node::log::Event::plan(filed.plan).starts_with(&digits);
    let found: Vec<&Filed> = all.iter().filter(begins).collect();
    let [filed] = found[..] else {
        let message = match found.len() {
            0 => format!("no job with a plan {digits}… is filed here, and there is no such file"),
            more => format!("{more} filed jobs have a plan {digits}…"),
        };
        return Err(Failure::new(Code::Input, message)
            .help("give more digits of the plan hash, or the path of the job file"));
    };
    let data = args.data.iter();
    let data = data.map(|r| ((r.owner.clone(), r.what.clone()), r.file.clone()));
    let (text, job) = filed.read(data.collect())?;
    let mut said = job.clone();
    let problem = said
        .choose(args.security.words())
        .err()
        .map(|problem| problem.to_string());
    let (filed_as, asked) = (job.spec().security, said.spec().security);
    if problem.is_some() || filed_as != asked {
        let message =
            format!("the filed job runs by {filed_as}, and the command line asks for {asked}");
        return Err(Failure::new(Code::Usage, problem.unwrap_or(message))
            .help("leave --protocol, --adversary and --delivery out: they are in the filed job"));
    }
    if stocked && !filed.stocked {
        let message =
            "the filed job makes its products, and the command line asks for a run from stock";
        return Err(Failure::new(Code::Usage, message)
            .help("leave --stock out: whether a run is from stock is in the filed job"));
    }
    let planned = Planned::of(&job, text, (filed.lanes, filed.stocked))?;
    if planned.plan.hash != filed.plan {
        let message = format!(
            "the job in {} has the plan {} now: it, or a file that it names, was changed since it was filed",
            filed.folder.display(),
            planned.plan.hash
        );
        return Err(Failure::new(Code::Check, message)
            .help("ask for the job again, and compare what is different"));
    }
    Ok((job, planned, Some(filed.clone())))
}

/// Whether text may be the beginning of a plan hash: eight digits or more, as messages show them.
fn is_beginning(text: &str) -> bool {
    (8..=64).contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit())
}

/// Prints an object in a line.
fn say(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value);
    let text = text.map_err(|error| Failure::new(Code::Other, error.to_string()))?;
    output::print(&(text + "\n"))
}

/// The answer that a program brings from a person.
fn answered() -> Result<How, Failure> {
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Failure::new(Code::Other, format!("cannot read the answer: {error}")))?;
    match answer.trim() {
        "yes" => Ok(How::Answered),
        _ => Err(not_approved()),
    }
}

fn not_approved() -> Failure {
    let about = veilworks::About {
        unapproved: true,
        ..veilworks::About::default()
    };
    Failure::new(Code::Other, "not approved: nothing was changed").about(about)
}

/// A job as it is filed, without data.
fn filing<'a>(
    planned: &'a Planned,
    stages: &'a [PlanHash],
    explained: &'a str,
    files: &'a [(String, Vec<u8>)],
) -> Filing<'a> {
    Filing {
        plan: planned.plan.hash,
        stages,
        name: &planned.plan.job.name,
        lanes: planned.plan.lanes,
        stocked: planned.plan.stock == Stock::Used,
        job: &planned.text,
        explained,
        data: &[],
        align_key: None,
        files,
        asked_by: None,
    }
}

/// Says no to a job, which is filed for that if it is not yet.
fn refuse(
    home: &Home,
    args: &JobArgs,
    planned: &Planned,
    filed: Option<&Filed>,
    rates: &RatesArgs,
) -> Result<(), Failure> {
    // Only a participant of the job has a say in it.
    planned.request(home, None)?;
    if filed.is_none() && home.filed(planned.plan.hash)?.is_none() {
        let explained = planned.explained(&args.job, &rates.load(home.path())?);
        let files = beside(&args.job, &planned.text)?;
        let stages = planned.stages.hashes();
        home.file_job(&filing(planned, &stages, &explained, &files))?;
    }
    home.decline(planned.plan.hash)?;
    note("refused: the job does not run here until it is approved");
    Ok(())
}

fn ask(home: &Home) -> Result<How, Failure> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        let message =
            "there is no operator to ask: standard input is no terminal, and nothing was approved";
        return Err(Failure::new(Code::Usage, message)
            .help("`--yes` approves without being asked; a rule in policy.toml does so for every job like this"));
    }
    eprint!("may this run as `{}`? yes or no: ", home.settings().name);
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    input
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::new(Code::Other, format!("cannot read the answer: {error}")))?;
    match answer.trim() {
        "yes" => Ok(How::Answered),
        _ => Err(not_approved()),
    }
}

fn revoke(home: &Home, planned: &Planned) -> Result<(), Failure> {
    if home.withdraw(planned.plan.hash)? {
        note(
            "the approval is taken back: the job does not run here unless a rule of the policy allows it",
        );
        return Ok(());
    }
    let message = format!("the plan {} was not approved here", planned.plan.hash);
    let filed: Vec<PathBuf> = (home.all_filed()?.into_iter())
        .filter(|filed| filed.approved.is_some() && filed.name == planned.plan.job.name)
        .map(|filed| filed.folder)
        .collect();
    Err(Failure::new(Code::Input, message).help(match &filed[..] {
        [] => "no job of this name is approved".to_owned(),
        [one, ..] => format!("a job of this name with another plan is: {}", one.display()),
    }))
}
