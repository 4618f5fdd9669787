//! `veil-lab card`: a board of simulated cores, as a process of its own.

use std::path::PathBuf;

use veil_cli::failure::{Code, Failure};
use veil_cli::signals::Stop;
use veil_device_fpga::board::{Kind, Refusal, Server, Simulation};

/// Serves a board of simulated cores behind a socket.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil-lab card --socket board/card            until SIGINT or SIGTERM
  veil run job.toml --device garbler=fpga:board/card
                                               in another terminal: the garbler of the job garbles there

Each device of a run, one for each lane of each party, has a card of the board while it lasts, with all cores of the board's kind. A client that
comes while all cards are in use is told so, and asks again for five seconds. The socket's folder is made with mode 700, or has it already; only
processes of the same user are served.")]
pub(crate) struct CardArgs {
    /// Where it listens: a file in a folder of its own.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Which cores its cards have: garbler, shares or both.
    #[arg(long, value_name = "KIND", default_value = "both", value_parser = kind)]
    kind: Kind,
    /// How many cards it has: devices that are served at once.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=256))]
    cards: u32,
}

fn kind(text: &str) -> Result<Kind, String> {
    let found = Kind::CARDS.into_iter().find(|kind| kind.name() == text);
    found.ok_or_else(|| format!("one of: {}", Kind::CARDS.map(Kind::name).join(", ")))
}

/// Why there is no board.
pub(super) fn refused(refusal: &Refusal) -> Failure {
    let code = match refusal {
        Refusal::Absent(_) => Code::Device,
        _ => Code::Other,
    };
    Failure::new(code, refusal.to_string())
}

pub(crate) fn run(args: &CardArgs) -> Result<(), Failure> {
    let stop = Stop::install()?;
    let simulation = Simulation::new(args.kind, args.cards);
    let server = Server::bind(&args.socket, simulation).map_err(|refusal| refused(&refusal))?;
    // For people and scripts that wait until it is there.
    eprintln!("serving {}: {}", args.socket.display(), server.identity());
    server.serve(stop.flag(), &|line| eprintln!("{line}"));
    Ok(())
}
