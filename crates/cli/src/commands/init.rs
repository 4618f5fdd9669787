//! `veil init`: a home for a participant.

use std::net::SocketAddr;

use veil_node::{Home, Role, Settings, SettingsError};

use crate::failure::Failure;
use crate::home::{HomeArgs, note};
use crate::output;

/// Makes a home: a key, settings, a log, and room for jobs and shares.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  veil init university --role party --address mpc.university.example:7000
  veil init mill --role owner
  veil init press --role recipient --home /srv/press

The fingerprint is printed. Then: veil invite, or veil join with an invitation.")]
pub(crate) struct InitArgs {
    /// Name of the participant, as jobs write it.
    name: String,
    /// party, owner or recipient.
    #[arg(long)]
    role: Role,
    /// Parties: where to listen [default: 0.0.0.0:7000]
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<String>,
    /// Parties: where others dial, for invitations.
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
    #[command(flatten)]
    home: HomeArgs,
}

/// Every address of the machine, at the port of this program.
const EVERYWHERE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 7000);

pub(crate) fn run(args: &InitArgs) -> Result<(), Failure> {
    let mut settings = Settings::new(&args.name, args.role)?;
    settings.listen = match &args.listen {
        Some(listen) => Some(
            listen
                .parse()
                .map_err(|_| SettingsError::Listen(listen.clone()))?,
        ),
        None if args.role == Role::Party => Some(EVERYWHERE),
        None => None,
    };
    settings.address.clone_from(&args.address);
    let path = args.home.path();
    settings.check()?;
    let home = Home::create(&path, &settings)?;
    output::print(&format!("{}\n", home.identity().fingerprint()))?;
    note(&format!(
        "home of {} `{}` in {}; its key is the fingerprint above",
        args.role,
        args.name,
        path.display()
    ));
    if args.role == Role::Party && args.address.is_none() {
        note(&format!(
            "others cannot dial it until `address` is set in {}",
            path.join("veil.toml").display()
        ));
    }
    note(
        "next: `veil invite NAME --role ROLE` for each of the others, or `veil join` with the string that one of them sends",
    );
    Ok(())
}
