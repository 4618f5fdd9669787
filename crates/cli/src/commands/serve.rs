//! `veil serve`: a computing party as a service.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use veil_device::Cpu;
use veil_engine::DeviceFactory;
use veil_link::shape;
use veil_node::service::{Options, Service, ServiceError};
use veil_node::{Home, LogFormat, logs};

use crate::devices::{self, Registry};
use crate::failure::{Code, Failure};
use crate::links::LinkArgs;
use crate::signals::Stop;

/// Serves a computing party: one port, many jobs, until it is asked to stop.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil serve                              the party of $VEIL_HOME, or ~/.veil
  veil serve --home /var/lib/veil --admin 127.0.0.1:9464
  veil serve --log json --level debug
  veil serve --device fpga:/run/veil/card.sock
                                          on a board; see `veil device list`

Members propose jobs with `veil submit`; a job runs when the policy allows it or somebody ran `veil approve`. Changes of
members, approvals and policy take effect within a second. SIGTERM lets running jobs end for --grace seconds, a second
one ends the process at once. The admin address serves /healthz, /readyz and /metrics.")]
pub(crate) struct ServeArgs {
    /// The home of the party [default: $VEIL_HOME, else ~/.veil]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Where it listens [default: as its home says]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Where health and metrics are served, on loopback unless you have a reason [default: as its home says, or nowhere]
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<SocketAddr>,
    /// How many seconds running jobs have when it is asked to stop [default: as the home says, 30]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=86400))]
    grace: Option<u64>,
    /// How many seconds participants have to turn up [default: as the home says, 300]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=604_800))]
    wait: Option<u64>,
    /// Give a job up when nothing moves for so many seconds [default: as the home says, 30]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: Option<u64>,
    /// Form of log lines: auto, text or json [default: as the home says; auto is text on a terminal and JSON elsewhere]
    #[arg(long, value_name = "FORM", value_parser = ["auto", "text", "json"])]
    log: Option<String>,
    /// From which level on: error, warn, info, debug or trace [default: as the home says, info]
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,
    /// Imitate the delay and the rate of a network: lan or wan.
    #[arg(long, value_name = "NET")]
    net: Option<shape::Profile>,
    #[command(flatten)]
    link: LinkArgs,
    /// The device that the party computes on, of `veil device list` [default: the fastest CPU device]. `fpga:SOCKET` is the board behind that
    /// socket.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Approve every job that a member proposes, without asking the operator; a rule of the policy that refuses one stands.
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &ServeArgs, registry: &Arc<dyn Registry>) -> Result<(), Failure> {
    args.link.check()?;
    let home = Home::open(&Home::locate(args.home.as_deref()))?;
    let settings = home.settings();
    let format = match args.log.as_deref() {
        Some("json") => LogFormat::Json,
        Some("text") => LogFormat::Text,
        Some(_) => LogFormat::Auto,
        None => settings.log.format,
    };
    let level = args.level.as_deref().unwrap_or(&settings.log.level);
    logs::install(format, level).map_err(|error| Failure::new(Code::Usage, error.to_string()))?;
    let stop = Stop::install()?;
    let seconds = |seconds: Option<u64>| seconds.map(Duration::from_secs);
    let options = Options {
        listen: args.listen,
        admin: args.admin,
        grace: seconds(args.grace),
        wait: seconds(args.wait),
        timeout: seconds(args.timeout),
        link: args.link.kind(),
        net: args.net,
        yes: args.yes,
        planner: None,
    };
    let device: DeviceFactory = match &args.device {
        Some(name) => devices::maker(name, registry)?,
        None => Arc::new(|| Ok(Box::new(Cpu::detect()))),
    };
    let service = Service::start(home, options, device)?;
    // For people and scripts that let the system choose the port.
    eprintln!("listening on {}", service.address());
    if let Some(admin) = service.admin() {
        eprintln!("health and metrics on http://{admin}");
    }
    let ended = service.run(stop.flag());
    if ended.given_up == 0 {
        return Ok(());
    }
    let message = format!(
        "stopped by a signal; {} gave up, and the other participants were told",
        crate::output::count(ended.given_up as u64, "job")
    );
    Err(Failure::new(Code::Other, message).help("a longer --grace lets them end"))
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        let code = match &error {
            ServiceError::Setup(_) | ServiceError::Admin { .. } => Code::Link,
            ServiceError::Device(_) => Code::Device,
            _ => Code::Input,
        };
        Failure::new(code, error.to_string())
    }
}
