//! `--link fpga-sim`: parties whose messages cross a network of nodes in simulation, and whose products are made there.

use std::fs;

use crate::common::Folder;

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
#[ignore = "tier cores: simulated, or minutes"]
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

/// What a run of nodes says of itself: words that crossed the network, and cycles of the cores of each party.
fn network(said: &str) -> (u64, Vec<u64>) {
    let said: serde_json::Value = serde_json::from_str(said).unwrap();
    let words = said["network"]["words"].as_u64().unwrap();
    let all = said["participants"].as_array().unwrap().iter();
    let cores = all.filter_map(|of| of["core_cycles"].as_u64());
    (words, cores.collect())
}

/// A job whose parties compute on cores and are nodes has the results of one on processors, and its products are made at nodes: cores beside
/// them have less to do than where hosts carry messages.
fn at_nodes(folder: &Folder, run: &str, result: &str, made: bool) {
    folder.succeed(&format!("{run} --out memory"));
    let (_, beside) = network(&folder.succeed(&format!(
        "{run} --link fpga-sim --device fpga-sim --record record --data-are-mine --json --out beside"
    )));
    fs::remove_dir_all(folder.at("record")).unwrap();
    let joined = format!("{run} --link fpga-sim --device fpga-sim --json --out nodes");
    let (_, cores) = network(&folder.succeed(&joined));
    let [here, host, there] = ["memory", "beside", "nodes"]
        .map(|out| fs::read(folder.at(&format!("{out}/{result}"))).unwrap());
    assert_eq!(here, there, "{run}");
    assert_eq!(here, host, "{run}");
    let less = cores.iter().zip(&beside).all(|(at, all)| at < all);
    assert_eq!(
        less, made,
        "{run}: cores {cores:?}, where they multiply {beside:?}"
    );
}

#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn nodes_multiply_what_their_parties_share() {
    let folder = Folder::new();
    if is_absent(&folder) {
        return;
    }
    let mut random = 1u64;
    let mut next = move || {
        random = random
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        random >> 40
    };
    folder.write("adder.txt", ADDER);
    for file in ["x.hex", "y.hex"] {
        let lines: Vec<_> = (0..150).map(|_| format!("{:02x}", next() % 4)).collect();
        folder.write(file, lines.join("\n") + "\n");
    }
    // Sums of products.
    for owner in ["ann", "bob"] {
        let lines: Vec<_> = (0..ROWS).map(|_| (next() % 20_000).to_string()).collect();
        folder.write(
            &format!("{owner}.csv"),
            format!("wage\n{}\n", lines.join("\n")),
        );
    }
    let (three, four) = (
        &["ann", "bob", "carol"][..],
        &["ann", "bob", "carol", "dora"][..],
    );
    for (parties, adversary, made) in [
        (three, "semi-honest", true),
        // What proves products has to be kept by hosts.
        (three, "malicious", false),
        (four, "semi-honest", true),
        (four, "malicious", true),
    ] {
        folder.write("job.toml", job(parties));
        let run = format!("run job.toml --adversary {adversary}");
        at_nodes(&folder, &format!("{run} --lanes 1"), "bob/sum.hex", made);
        folder.write("wages.toml", wages(parties));
        let stats = format!("stats wages.toml --adversary {adversary} --lanes 2");
        at_nodes(&folder, &stats, "carol/result.json", made);
    }
}

/// One host starts a circuit, and those of the other nodes do nothing until it has ended.
#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn one_host_starts_a_circuit() {
    let folder = Folder::new();
    if is_absent(&folder) {
        return;
    }
    folder.succeed("circuit make adder:8 --out adder.txt");
    folder.write("x.hex", "00\n01\nff\n7b\n");
    folder.write("y.hex", "00\nfe\nff\n55\n");
    let run = "run job.toml --link fpga-sim --device fpga-sim --headless --lanes 1 --out nodes";
    for parties in [
        &["ann", "bob", "carol"][..],
        &["ann", "bob", "carol", "dora"],
    ] {
        folder.write("job.toml", job(parties));
        let said = folder.succeed(&format!("{run} --json"));
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let sum = fs::read(folder.at("nodes/bob/sum.hex")).unwrap();
        assert_eq!(sum, b"00\nff\nfe\nd0\n");
        let headless = &said["network"]["headless"];
        assert_eq!(headless["circuits"], 1, "{headless}");
        assert_eq!(headless["rounds"], 7, "{headless}");
        let mut hosts = vec![[0, 1]; parties.len()];
        hosts[0] = [2, 2];
        let hosts = serde_json::json!(hosts);
        assert_eq!(headless["hosts"], hosts, "commands and completions");
    }
    let said = folder.succeed(run);
    assert!(said.contains("headless: 1 circuit of 7 rounds"), "{said}");
    folder.fail(
        "run job.toml --headless",
        2,
        &["--link fpga-sim --device fpga-sim"],
    );
    folder.fail(
        "run job.toml --headless --link fpga-sim",
        2,
        &["--device fpga-sim"],
    );
}

/// Rows that each of two owners has: both together are no whole number of words.
const ROWS: usize = 11;

/// Statistics on what two owners know.
fn wages(parties: &[&str]) -> String {
    format!(
        r#"version = 1
kind = "stats"
name = "wages of two firms"
owners = ["ann", "bob"]
parties = {parties:?}
recipients = ["carol"]
column = [{{ name = "wage", type = "integer", min = 0, max = 20000 }}]
block = [{{ name = "ann's", rows = {ROWS}, holds = {{ ann = ["wage"] }}, files = {{ ann = "ann.csv" }} }},
         {{ name = "bob's", rows = {ROWS}, holds = {{ bob = ["wage"] }}, files = {{ bob = "bob.csv" }} }}]
analysis = [{{ name = "spread", kind = "variance", of = "wage", to = "carol" }}]
"#
    )
}
