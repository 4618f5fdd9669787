//! Two processes, a party each, compare two numbers over TLS: neither sees the other's.
//!
//! ```text
//! cargo run --package veilworks --example millionaires -- ann 127.0.0.1:7001 KEYS 1000000
//! cargo run --package veilworks --example millionaires -- bob 127.0.0.1:7002 KEYS 2000000
//! ```
//!
//! `KEYS` is a folder that both read: each puts its fingerprint and its address there, and waits for the other's. People who do not share a folder
//! give each other these lines by hand.

use std::error::Error;
use std::path::Path;
use std::{fs, io, thread, time::Duration};

use veilworks::{Computation, Identity, Job, Participant, Values, make};

fn main() -> Result<(), Box<dyn Error>> {
    let [me, address, keys, fortune] = arguments()?;
    let (other, port) = if me == "ann" {
        ("bob", "x")
    } else {
        ("ann", "y")
    };
    let (job, identity) = (comparison()?, Identity::generate()?);
    let mine = format!("{}\n{address}\n", identity.fingerprint());
    let (key, theirs) = exchange(Path::new(&keys), (&me, mine), other)?;
    let outcome = Participant::new(&job, &me, identity)
        .knows(other, key.parse()?, Some(&theirs))
        .listen(address)
        .values(Values::new().integers(port, [fortune.parse::<u64>()?]))
        .run()?;
    match outcome.opened("ann").and_then(|ann| ann.integers("out")) {
        Some(less) if less == [1] => println!("ann has less"),
        Some(_) => println!("ann has as much or more"),
        None => println!("ann knows"),
    }
    Ok(())
}

/// One comparison of 64 bits, whose result ann alone gets.
fn comparison() -> Result<Job, Box<dyn Error>> {
    let job = Computation::new("millionaires", make("lt:64")?)
        .parties(["ann", "bob"])
        .input("x", "ann")
        .input("y", "bob")
        .output("out", "ann", "whether ann has less than bob");
    Ok(job.job()?)
}

fn arguments() -> Result<[String; 4], String> {
    let all: Vec<String> = std::env::args().skip(1).collect();
    all.try_into()
        .map_err(|_| "usage: millionaires ann|bob ADDRESS KEYS FORTUNE".to_owned())
}

/// Leaves what this end says of itself, and takes the fingerprint and the address of the other end, once they are there.
fn exchange(keys: &Path, (me, mine): (&str, String), other: &str) -> io::Result<(String, String)> {
    fs::write(keys.join(me), mine)?;
    loop {
        let text = fs::read_to_string(keys.join(other)).unwrap_or_default();
        if let [key, address] = text.lines().collect::<Vec<_>>()[..]
            && text.ends_with('\n')
        {
            return Ok((key.into(), address.into()));
        }
        thread::sleep(Duration::from_millis(50));
    }
}
