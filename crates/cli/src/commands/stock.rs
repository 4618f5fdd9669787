//! `veil stock`: what a party has made ahead.

use std::path::PathBuf;

use serde::Serialize;
use veil_link::tls::Fingerprint;
use veil_node::Home;
use veil_store::stock::{Between, Listed, ListedState, remove_stock};

use crate::failure::{Code, Failure};
use crate::{output, stocks};

/// Lists the stock of a party, or removes a generation.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil stock                              what this home has, with whom, and how much is left
  veil stock --remove 0123456789abcdef    a generation, what is left of its making, or what says that it was burnt

Stock is used once. A generation is burnt when a check fails, or when the marks of the two parties show that one of them was
set back or goes on twice. One that the other party does not have any more is burnt by the next refill of services.")]
pub(crate) struct StockArgs {
    /// The home of the party [default: $VEIL_HOME, else ~/.veil]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Remove this generation.
    #[arg(long, value_name = "GENERATION")]
    remove: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// A generation, as `--json` prints it.
#[derive(Serialize)]
struct Printed {
    generation: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<About>,
}

/// What there is of it.
#[derive(Serialize)]
struct About {
    with: String,
    of: &'static str,
    garbles: bool,
    statistical: u8,
    cells: u64,
    left: u64,
    sessions: u64,
    bytes: u64,
}

/// Runs the command.
pub(crate) fn run(args: &StockArgs) -> Result<(), Failure> {
    let home = Home::open(&Home::locate(args.home.as_deref()))?;
    let (folder, key) = (home.stock_folder(), home.stock_key()?);
    if let Some(generation) = &args.remove {
        let removed = remove_stock(&folder, &key, generation);
        if !removed.map_err(|error| stocks::failure(&error))? {
            let message = format!("there is no generation `{generation}` here");
            return Err(Failure::new(Code::Input, message).help("`veil stock` lists what there is"));
        }
        return output::print(&format!("removed {generation}\n"));
    }
    let listed = veil_store::stock::stocks(&folder, &key);
    let listed = listed.map_err(|error| stocks::failure(&error))?;
    let all: Vec<Printed> = listed.into_iter().map(|of| printed(&home, of)).collect();
    if args.json {
        return output::print_json(&all);
    }
    if all.is_empty() {
        return output::print("there is no stock here; `veil prepare` makes some\n");
    }
    let rows: Vec<Vec<String>> = all.iter().map(line).collect();
    output::print(&output::columns(&rows))
}

fn printed(home: &Home, of: Listed) -> Printed {
    let (state, problem, about) = match of.state {
        ListedState::There {
            between,
            cells: [made, used],
            sessions,
            bytes,
            ..
        } => {
            let about = About {
                cells: made,
                left: made.saturating_sub(used),
                sessions,
                ..about(home, &between, bytes)
            };
            ("there", None, Some(about))
        }
        ListedState::Unfinished {
            between,
            cells,
            bytes,
            goes_on,
        } => {
            let about = About {
                cells,
                ..about(home, &between, bytes)
            };
            let state = if goes_on { "making" } else { "unfinished" };
            (state, None, Some(about))
        }
        ListedState::Burnt { why, .. } => ("burnt", Some(why), None),
        ListedState::Damaged(what) => ("damaged", Some(what), None),
        _ => ("unknown", None, None),
    };
    Printed {
        generation: of.generation,
        state,
        problem,
        about,
    }
}

/// What there is of a generation of which nothing was made yet.
fn about(home: &Home, between: &Between, bytes: u64) -> About {
    let members = home.members();
    let peer = Fingerprint::from_bytes(between.peer);
    let with = members
        .by_fingerprint(&peer)
        .map(|member| member.name.clone());
    About {
        with: with.unwrap_or_else(|| peer.to_string()),
        of: between.kind.items(),
        garbles: between.garbles,
        statistical: between.statistical,
        cells: 0,
        left: 0,
        sessions: 0,
        bytes,
    }
}

fn line(of: &Printed) -> Vec<String> {
    let mut line = vec![of.generation.clone()];
    let Some(about) = &of.about else {
        let problem = of.problem.as_deref().unwrap_or_default();
        line.push(format!("{}: {problem}", of.state));
        return line;
    };
    line.extend([
        format!("with `{}`", about.with),
        if about.garbles {
            "garbles"
        } else {
            "evaluates"
        }
        .to_owned(),
        format!("2^-{}", about.statistical),
        match of.state {
            "there" => format!("{} of {} {} left", about.left, about.cells, about.of),
            state => format!("{state}: {} {}", about.cells, about.of),
        },
        output::count(about.sessions, "run"),
        output::bytes(about.bytes),
    ]);
    line
}
