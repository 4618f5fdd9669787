//! Networks that differ from loopback: a network namespace for each participant, and a router between them that lets nothing
//! through but calls to the parties' declared ports.
//!
//! Linux, root and `ip` are needed. Where they are missing, a test says so and does not go on.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use veil_node::Role;

use super::deployment::Place;
use super::homes::role;
use super::relay::Relay;

/// Where every party listens.
pub(crate) const PORT: u16 = 7000;

/// Networks made by this process.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Participants that reach each other through a router alone. It goes when it is dropped.
pub(crate) struct Network {
    /// What the names of its namespaces begin with.
    prefix: String,
    names: Vec<String>,
    /// Namespaces behind an address translation.
    hidden: Vec<String>,
}

impl Network {
    /// A network for these participants, or `None`, and why on standard error.
    pub(crate) fn new(test: &str, names: &[&str]) -> Option<Self> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let network = Network {
            prefix: format!("veil{}-{number}", std::process::id()),
            names: names.iter().map(|&name| name.to_owned()).collect(),
            hidden: Vec::new(),
        };
        // Anything that was made so far is removed by dropping it.
        match network.make() {
            Ok(()) => Some(network),
            Err(why) => {
                eprintln!(
                    "SKIPPED {test}: no network namespaces here, they need root and `ip`: {why}"
                );
                None
            }
        }
    }

    fn make(&self) -> Result<(), String> {
        let router = self.router();
        ip(&["netns", "add", &router])?;
        ip(&["-n", &router, "link", "set", "lo", "up"])?;
        let forward = ["sysctl", "-q", "-w", "net.ipv4.ip_forward=1"];
        ip(&[&["netns", "exec", &router][..], &forward].concat())?;
        for name in &self.names {
            let (space, end) = (self.namespace(name), end_to(name));
            ip(&["netns", "add", &space])?;
            let there = ["type", "veth", "peer", "name", "net0", "netns", &space];
            ip(&[&["-n", &router, "link", "add", "name", &end][..], &there].concat())?;
            let (near, far) = self.ends(name);
            ip(&[
                "-n",
                &router,
                "address",
                "add",
                &format!("{near}/30"),
                "dev",
                &end,
            ])?;
            ip(&["-n", &router, "link", "set", &end, "up"])?;
            ip(&[
                "-n",
                &space,
                "address",
                "add",
                &format!("{far}/30"),
                "dev",
                "net0",
            ])?;
            ip(&["-n", &space, "link", "set", "lo", "up"])?;
            ip(&["-n", &space, "link", "set", "net0", "up"])?;
            ip(&["-n", &space, "route", "add", "default", "via", &near])?;
        }
        // What is not asked by dialling a party's port, or the answer to that, goes nowhere.
        let rule = |preference: &str, what: &[&str]| {
            ip(&[
                &["-n", &router, "rule", "add", "pref", preference][..],
                what,
            ]
            .concat())
        };
        let port = PORT.to_string();
        for name in self.names.iter().filter(|name| role(name) == Role::Party) {
            let (_, party) = self.ends(name);
            let call = [
                "to", &party, "ipproto", "tcp", "dport", &port, "lookup", "main",
            ];
            rule("100", &call)?;
            let answer = [
                "from", &party, "ipproto", "tcp", "sport", &port, "lookup", "main",
            ];
            rule("101", &answer)?;
        }
        // A caller that is turned back is told.
        rule("102", &["iif", "lo", "ipproto", "icmp", "lookup", "main"])?;
        rule("200", &["prohibit"])
    }

    fn router(&self) -> String {
        format!("{}-router", self.prefix)
    }

    fn namespace(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    /// The addresses of the line to a participant: the router's, and its own.
    fn ends(&self, name: &str) -> (String, String) {
        let index = self.names.iter().position(|known| known == name).unwrap() + 1;
        (format!("10.83.{index}.1"), format!("10.83.{index}.2"))
    }

    /// Where a participant is.
    pub(crate) fn place(&self, name: &str) -> Place {
        Place::through(&["ip", "netns", "exec", &self.namespace(name)])
    }

    /// Does something in the network of a participant.
    pub(crate) fn within<T: Send>(&self, name: &str, act: impl FnOnce() -> T + Send) -> T {
        within(&self.namespace(name), act)
    }

    /// The address of a participant, and a party's port.
    pub(crate) fn address(&self, name: &str) -> SocketAddr {
        SocketAddr::new(self.ends(name).1.parse().unwrap(), PORT)
    }

    /// A place with a private address behind the one of `name`, as behind a router at home: a participant that calls a party from there
    /// is a caller from the address of `name`, and no peer can call it. Relays are what translates.
    pub(crate) fn behind(&mut self, name: &str) -> (Place, Vec<Relay>) {
        let [inside, border] =
            ["inside", "border"].map(|part| self.namespace(&format!("{name}-{part}")));
        self.hidden.extend([inside.clone(), border.clone()]);
        let parties = self.names.iter().filter(|name| role(name) == Role::Party);
        let ports: Vec<SocketAddr> = parties.map(|party| self.address(party)).collect();
        let all = |commands: &[&str]| {
            for command in commands {
                ip(&command.split(' ').collect::<Vec<_>>()).unwrap();
            }
        };
        all(&[
            &format!("netns add {inside}"),
            &format!("netns add {border}"),
            &format!("-n {border} link add home type veth peer name net0 netns {inside}"),
            &format!("-n {border} address add {HOME}.1/24 dev home"),
            &format!("-n {inside} address add {HOME}.2/24 dev net0"),
            &format!("-n {border} link set lo up"),
            &format!("-n {border} link set home up"),
            &format!("-n {inside} link set lo up"),
            &format!("-n {inside} link set net0 up"),
            &format!("-n {inside} route add default via {HOME}.1"),
        ]);
        for port in &ports {
            all(&[&format!("-n {border} address add {}/32 dev lo", port.ip())]);
        }
        let held = within(&border, || {
            let port = |port: &SocketAddr| TcpListener::bind(port).unwrap();
            ports.iter().map(port).collect::<Vec<_>>()
        });
        let relays = within(&self.namespace(name), || {
            let relay = |(held, port): (TcpListener, &SocketAddr)| Relay::at(held, *port);
            held.into_iter().zip(&ports).map(relay).collect()
        });
        (Place::through(&["ip", "netns", "exec", &inside]), relays)
    }

    /// Cuts the line to a participant in two, or joins it again.
    pub(crate) fn join(&self, name: &str, joined: bool) {
        let state = if joined { "up" } else { "down" };
        ip(&["-n", &self.router(), "link", "set", &end_to(name), state]).unwrap();
    }

    /// Lets no more than so many megabits per second through to and from a participant.
    pub(crate) fn throttle(&self, name: &str, megabits: u32) -> Result<(), String> {
        let rate = format!("{megabits}mbit");
        let ends = [
            (self.router(), end_to(name)),
            (self.namespace(name), "net0".into()),
        ];
        for (space, end) in ends {
            let queue = [
                "tc", "qdisc", "add", "dev", &end, "root", "tbf", "rate", &rate,
            ];
            let depth = ["burst", "32k", "latency", "100ms"];
            ip(&[&["netns", "exec", &space][..], &queue, &depth].concat())?;
        }
        Ok(())
    }

    /// Whether a TCP connection from a participant to this address can be made.
    pub(crate) fn reaches(&self, from: &str, to: SocketAddr) -> bool {
        let script = format!("exec 3<>/dev/tcp/{}/{}", to.ip(), to.port());
        Command::new("ip")
            .args(["netns", "exec", &self.namespace(from), "timeout", "5"])
            .args(["bash", "-c", &script])
            .output()
            .unwrap()
            .status
            .success()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let all = self.names.iter().map(|name| self.namespace(name));
        for space in all.chain([self.router()]).chain(self.hidden.clone()) {
            // One that was never made needs no removal.
            let _ = ip(&["netns", "delete", &space]);
        }
    }
}

/// What private addresses begin with.
const HOME: &str = "192.168.83";

/// Does something in a namespace.
fn within<T: Send>(namespace: &str, act: impl FnOnce() -> T + Send) -> T {
    let file = File::open(format!("/run/netns/{namespace}")).unwrap();
    let there = || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        act()
    };
    thread::scope(|scope| scope.spawn(there).join().unwrap())
}

/// The router's end of the line to a participant.
fn end_to(name: &str) -> String {
    format!("to-{name}")
}

/// Runs `ip`, or says what it says.
fn ip(arguments: &[&str]) -> Result<(), String> {
    let ran = Command::new("ip").args(arguments).output();
    let output = ran.map_err(|error| format!("cannot run ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("ip {}: {}", arguments.join(" "), said.trim()))
}
