//! `--link fpga-sim`: parties whose messages cross a network of nodes in simulation.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps says what it expects by failing there"
)]

mod common;

use std::fs;

use common::Folder;

/// A job of as many parties as it names, on a Bristol circuit.
fn job(parties: &[&str]) -> String {
    format!(
        r#"version = 1
kind = "circuit"
name = "sum"
owners = ["ann", "bob"]
parties = {parties:?}
recipients = ["bob"]
circuit = {{ file = "adder.txt" }}
input = [{{ port = "in0", owner = "ann", format = "hex", file = "x.hex" }},
         {{ port = "in1", owner = "bob", format = "hex", file = "y.hex" }}]
output = [{{ port = "out0", to = "bob", format = "hex", file = "sum.hex" }}]
"#
    )
}

/// A full adder of two bits: 12 gates in the format of Bristol Fashion.
const ADDER: &str = "7 11
2 2 2
1 2

2 1 0 2 4 XOR
2 1 0 2 5 AND
2 1 1 3 6 XOR
2 1 1 3 7 AND
2 1 6 5 8 XOR
2 1 4 4 9 AND
2 1 8 8 10 AND
";

#[test]
fn two_three_and_four_parties_have_the_same_results_over_it() {
    let folder = Folder::new();
    folder.write("adder.txt", ADDER);
    folder.write("x.hex", "00\n01\n02\n03\n01\n");
    folder.write("y.hex", "00\n01\n03\n03\n02\n");
    let listed = folder.succeed("device list");
    if listed
        .lines()
        .any(|line| line.contains("fpga-sim") && line.contains("absent"))
    {
        println!("skipped: {listed}");
        folder.write("job.toml", job(&["a", "b", "c"]));
        folder.fail(
            "run job.toml --link fpga-sim",
            5,
            &["fpga-sim", "Verilator"],
        );
        return;
    }
    for parties in [&["a", "b"][..], &["a", "b", "c"], &["a", "b", "c", "d"]] {
        folder.write("job.toml", job(parties));
        folder.succeed("run job.toml --out memory");
        let said = folder.succeed("run job.toml --link fpga-sim --lanes 1 --out nodes");
        assert!(said.contains("links between nodes in simulation"), "{said}");
        assert!(
            said.contains("network: ") && said.contains("at 275 MHz"),
            "{said}"
        );
        let [here, there] = ["memory", "nodes"]
            .map(|out| fs::read(folder.at(&format!("{out}/bob/sum.hex"))).unwrap());
        assert_eq!(here, there, "{} parties", parties.len());
        assert_eq!(here, b"00\n02\n01\n02\n03\n", "{} parties", parties.len());
    }
    folder.fail(
        "run job.toml --processes --link fpga-sim",
        2,
        &["in one process", "leave it out"],
    );
}
