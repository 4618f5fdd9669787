//! `veil shares`: what a party keeps between runs.

mod reshare;

use std::path::{Path, PathBuf};

use serde::Serialize;
use veil_node::Home;
use veil_store::{Dataset, Description, Head, State, StoreKey};

use crate::failure::{Code, Failure};
use crate::output;

/// Looks at the shares that a party keeps.
#[derive(clap::Subcommand, Debug)]
#[command(after_help = "Examples:
  veil shares list                        what the party of this home keeps
  veil shares show \"pay 2025\"             its columns, its parties, the plan that made it
  veil shares show \"pay 2025\" --verify    decrypts all of it, and says what is damaged
  veil shares remove \"pay 2025\"
  veil shares sweep                       removes what interrupted runs left
  veil shares reshare \"pay 2025\" --to d,e,f
                                          writes the job that gives it to other parties

Shares are encrypted under a key of the home. No single party can compute anything from them: they are of use to the
parties of the dataset together, in a job that all of them approve.")]
pub(crate) enum SharesCommand {
    /// List the datasets: rows, columns, parties, when they were made, whether they can be used
    List {
        #[command(flatten)]
        place: Place,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Say all about one dataset
    Show {
        /// Its name.
        name: String,
        #[command(flatten)]
        place: Place,
        /// Decrypt and check all of it.
        #[arg(long)]
        verify: bool,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Remove one dataset; the other parties' shares alone are of no use any more
    Remove {
        /// Its name.
        name: String,
        #[command(flatten)]
        place: Place,
    },
    /// Remove datasets that interrupted runs left incomplete
    Sweep {
        #[command(flatten)]
        place: Place,
    },
    /// Write the job that gives one dataset to other parties
    Reshare(reshare::ReshareArgs),
}

/// Whose datasets.
#[derive(clap::Args, Debug)]
pub(crate) struct Place {
    /// The home of the party [default: $VEIL_HOME, else ~/.veil]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
}

impl Place {
    fn home(&self) -> Result<Home, Failure> {
        Ok(Home::open(&Home::locate(self.home.as_deref()))?)
    }

    /// The folder of datasets, and their key.
    fn open(&self) -> Result<(PathBuf, StoreKey), Failure> {
        let home = self.home()?;
        let key = StoreKey::derive(home.store_secret()?.as_slice());
        Ok((home.shares(), key))
    }
}

/// A dataset, as `--json` prints it.
#[derive(Serialize)]
struct Printed {
    name: String,
    state: &'static str,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<About>,
}

/// What a dataset says of itself.
#[derive(Serialize)]
struct About {
    rows: u64,
    ring: &'static str,
    party: String,
    parties: Vec<String>,
    columns: Vec<Column>,
    blocks: Vec<(String, u64)>,
    schema: String,
    plan: String,
    created: String,
    key: String,
    chunk_rows: u32,
}

#[derive(Serialize)]
struct Column {
    name: String,
    width: u32,
    /// `row`, or `dataset`.
    per: &'static str,
}

impl Printed {
    fn new(dataset: &Dataset) -> Self {
        let (state, problem) = match &dataset.state {
            State::Complete => ("complete", None),
            State::Busy => ("being written", None),
            State::Incomplete => ("incomplete", None),
            State::Broken(error) => ("unusable", Some(error.to_string())),
            _ => ("unknown", None),
        };
        Printed {
            name: dataset.name.clone(),
            state,
            problem,
            bytes: dataset.bytes,
            about: dataset.head.as_ref().map(About::new),
        }
    }
}

impl About {
    fn new(head: &Head) -> Self {
        let of: &Description = &head.description;
        let columns = of.ports.iter().map(|port| Column {
            name: port.name.clone(),
            width: port.width,
            per: if port.once { "dataset" } else { "row" },
        });
        let blocks = of
            .blocks
            .iter()
            .map(|block| (block.name.clone(), block.rows));
        About {
            rows: of.rows(),
            ring: of.ring.name(),
            party: of.parties[of.party.index()].name.clone(),
            parties: of.parties.iter().map(ToString::to_string).collect(),
            columns: columns.collect(),
            blocks: blocks.collect(),
            schema: of.schema.clone(),
            plan: output::hex(&of.plan.0),
            created: head.created.clone(),
            key: head.key.to_string(),
            chunk_rows: of.chunk_rows,
        }
    }
}

pub(crate) fn run(command: &SharesCommand) -> Result<(), Failure> {
    match command {
        SharesCommand::List { place, json } => {
            let (root, key) = place.open()?;
            let all = veil_store::datasets(&root, &key)?;
            let all: Vec<Printed> = all.iter().map(Printed::new).collect();
            if *json {
                return output::print_json(&serde_json::json!({ "datasets": all }));
            }
            output::print(&list(&root, &all))
        }
        SharesCommand::Show {
            name,
            place,
            verify,
            json,
        } => {
            let (root, key) = place.open()?;
            let printed = Printed::new(&veil_store::dataset(&root, name, &key)?);
            if *json {
                output::print_json(&printed)?;
            } else {
                output::print(&show(&printed))?;
            }
            if let Some(problem) = printed.problem {
                return Err(Failure::new(Code::Input, problem));
            }
            if *verify {
                veil_store::verify(&root, name, &key)?;
                if !json {
                    output::print("every chunk is as it was written\n")?;
                }
            }
            Ok(())
        }
        SharesCommand::Remove { name, place } => {
            let (root, _) = place.open()?;
            veil_store::remove(&root, name)?;
            output::print(&format!("removed `{name}`\n"))
        }
        SharesCommand::Reshare(args) => reshare::run(args),
        SharesCommand::Sweep { place } => {
            let (root, _) = place.open()?;
            let swept = veil_store::sweep(&root)?;
            let lines: Vec<String> = swept
                .iter()
                .map(|name| format!("removed `{name}`\n"))
                .collect();
            output::print(&if lines.is_empty() {
                "nothing is incomplete\n".to_owned()
            } else {
                lines.concat()
            })
        }
    }
}

fn list(root: &Path, all: &[Printed]) -> String {
    if all.is_empty() {
        return format!(
            "no shares in {}: a job with `durable`, `[keep]` or `keep` makes some\n",
            root.display()
        );
    }
    let head = [
        "dataset", "rows", "columns", "parties", "made", "size", "state",
    ];
    let mut rows = vec![head.map(String::from).to_vec()];
    for dataset in all {
        let about = dataset.about.as_ref();
        let text = |of: &dyn Fn(&About) -> String| about.map(of).unwrap_or_default();
        let name = |party: &String| party.split(' ').next().unwrap_or_default().to_owned();
        rows.push(vec![
            dataset.name.clone(),
            text(&|about| about.rows.to_string()),
            text(&|about| about.columns.len().to_string()),
            text(&|about| {
                let names: Vec<String> = about.parties.iter().map(name).collect();
                names.join(", ")
            }),
            text(&|about| about.created.clone()),
            output::bytes(dataset.bytes),
            dataset.state.to_owned(),
        ]);
    }
    let mut text = output::columns(&rows);
    for problem in all.iter().filter_map(|dataset| dataset.problem.as_ref()) {
        text += &["\n", problem, "\n"].concat();
    }
    text
}

fn show(dataset: &Printed) -> String {
    let mut rows = vec![
        ["dataset".to_owned(), dataset.name.clone()],
        ["state".to_owned(), dataset.state.to_owned()],
        ["size".to_owned(), output::bytes(dataset.bytes)],
    ];
    if let Some(about) = &dataset.about {
        let mut line = |what: &str, value: String| rows.push([what.to_owned(), value]);
        line("rows", about.rows.to_string());
        for (name, rows) in &about.blocks {
            line(
                "  block",
                format!("{name}: {}", output::count(*rows, "row")),
            );
        }
        line("ring", about.ring.to_owned());
        for column in &about.columns {
            let width = output::count(column.width.into(), "element");
            line(
                "  column",
                format!("{}: {width} per {}", column.name, column.per),
            );
        }
        if !is_table(&about.schema) {
            line("schema", about.schema.clone());
        }
        line("shares of", about.party.clone());
        for party in &about.parties {
            line("  party", party.clone());
        }
        line("made", about.created.clone());
        line("by plan", about.plan.clone());
        line("key", about.key.clone());
        line("chunks", output::count(about.chunk_rows.into(), "row"));
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(|row| row.to_vec()).collect();
    let schema = dataset.about.as_ref().map(|about| about.schema.as_str());
    let table = schema.filter(|schema| is_table(schema));
    output::columns(&rows) + &table.map_or_else(String::new, |of| declaration(&dataset.name, of))
}

/// Whether a dataset is a relation of a query, whose schema are the lines of a job that declare it.
fn is_table(schema: &str) -> bool {
    schema.contains('\n')
}

/// How a job with queries has a relation as a table.
fn declaration(dataset: &str, schema: &str) -> String {
    let mut text = "\na job with queries has it as a table by\n".to_owned();
    let (salt, rest): (Vec<&str>, Vec<&str>) =
        schema.lines().partition(|line| line.starts_with("salt = "));
    let dataset = toml::Value::from(dataset);
    let head = ["[[table]]".to_owned(), format!("stored = {dataset}")];
    let salt = salt.into_iter().map(str::to_owned);
    let rest = rest.into_iter().map(str::to_owned);
    for line in salt.chain(head).chain(rest) {
        text += &["  ", &line, "\n"].concat();
    }
    text
}
