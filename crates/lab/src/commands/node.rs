//! `veil-lab node`: the nodes of a simulated network as boards, in a process of their own.

use std::path::PathBuf;
use std::thread;

use veil_cli::failure::Failure;
use veil_cli::signals::Stop;
use veil_device_fpga::board::Server;
use veil_device_fpga::node::Shape;

use super::card::refused;

/// Serves the nodes of a simulated network, each behind a socket.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil-lab node --socket board/node --parties 3
                                 board/node0, board/node1, board/node2, until SIGINT or SIGTERM
  veil-lab card --socket board/card --kind shares
  veil run job.toml --link fpga:board/node --device fpga:board/card --headless

The network between nodes has one clock, so that one process simulates all of them; its time goes on while a host looks for what its node has done.
A node is for one host at a time. It is switched off and on, and its memory is wiped, when its host has gone.")]
pub(crate) struct NodeArgs {
    /// Where they listen: the number of a node is appended to this path, which is in a folder of its own.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// How many there are: one for each party. Nodes of four parties make products of four.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=4))]
    parties: u8,
}

pub(crate) fn run(args: &NodeArgs) -> Result<(), Failure> {
    let stop = Stop::install()?;
    let shape = Shape {
        four: args.parties == 4,
        ..Shape::new(args.parties)
    };
    let servers = Server::bind_nodes(&args.socket, shape).map_err(|refusal| refused(&refusal))?;
    // For people and scripts that wait until they are there.
    for server in &servers {
        eprintln!(
            "serving {}: {}",
            server.socket().display(),
            server.identity()
        );
    }
    thread::scope(|scope| {
        for server in &servers {
            let socket = server.socket().display();
            let stop = stop.flag();
            scope.spawn(move || server.serve(stop, &|line| eprintln!("{socket}: {line}")));
        }
    });
    Ok(())
}
