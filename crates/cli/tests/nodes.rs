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

/// Whether no nodes were built.
fn is_absent(folder: &Folder) -> bool {
    let listed = folder.succeed("device list");
    let absent = |line: &str| line.contains("fpga-sim") && line.contains("absent");
    let absent = listed.lines().any(absent);
    if absent {
        println!("skipped: {listed}");
    }
    absent
}

#[test]
fn two_three_and_four_parties_have_the_same_results_over_it() {
    let folder = Folder::new();
    folder.write("adder.txt", ADDER);
    folder.write("x.hex", "00\n01\n02\n03\n01\n");
    folder.write("y.hex", "00\n01\n03\n03\n02\n");
    if is_absent(&folder) {
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

/// What a run of nodes says of itself.
fn network(said: &str) -> (u64, u64) {
    let said: serde_json::Value = serde_json::from_str(said).unwrap();
    let of = |name: &str| said["network"][name].as_u64().unwrap();
    (of("cycles"), of("bytes"))
}

#[test]
fn nodes_multiply_what_their_parties_share() {
    let folder = Folder::new();
    if is_absent(&folder) {
        return;
    }
    // Columns that are no whole words, and more of them than one command takes.
    let mut random = 1u64;
    let mut line = || {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        format!("{:02x}\n", random >> 62)
    };
    folder.write("adder.txt", ADDER);
    for file in ["x.hex", "y.hex"] {
        let lines: String = (0..300).map(|_| line()).collect();
        folder.write(file, lines);
    }
    for (parties, securities) in [
        (&["a", "b", "c"][..], &["semi-honest"][..]),
        (&["a", "b", "c", "d"], &["semi-honest", "malicious"]),
    ] {
        folder.write("job.toml", job(parties));
        for security in securities {
            let run = format!("run job.toml --adversary {security} --lanes 1");
            folder.succeed(&format!("{run} --out memory"));
            let beside = format!("{run} --link fpga-sim --json --out beside");
            let (_, sent) = network(&folder.succeed(&beside));
            let joined = format!("{run} --link fpga-sim --device fpga-sim --json --out nodes");
            let (cycles, words) = network(&folder.succeed(&joined));
            let [here, there] = ["memory", "nodes"]
                .map(|out| fs::read(folder.at(&format!("{out}/bob/sum.hex"))).unwrap());
            assert_eq!(here, there, "{} parties, {security}", parties.len());
            // Products have whole beats on the wire, and messages of a host have not.
            println!("{} parties, {security}: {cycles} cycles, {words} bytes; by hosts {sent}", parties.len());
            assert_ne!(words, sent, "nodes send what they multiply");
        }
    }
}
