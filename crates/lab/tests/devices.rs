//! `--device`: which device a party computes on, and what is refused before a run.

use crate::common::Folder;

const JOB: &str = r#"version = 1
kind = "circuit"
name = "sum"
owners = ["ann", "bob"]
parties = ["ann", "bob"]
recipients = ["bob"]
circuit = { make = "adder:32" }
input = [{ port = "x", owner = "ann", format = "hex", file = "x.hex" },
         { port = "y", owner = "bob", format = "hex", file = "y.hex" }]
output = [{ port = "out", to = "bob", format = "hex", file = "sum.hex" }]
"#;

pub(crate) fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("job.toml", JOB);
    folder.write("x.hex", "00000005\n0000ffff\n12345678\n");
    folder.write("y.hex", "00000007\n00000001\n11111111\n");
    folder
}

/// Whether there is a device.
fn present(folder: &Folder, device: &str) -> bool {
    let listed = folder.succeed("device list");
    let mut lines = listed.lines();
    let is = |line: &&str| line.split_whitespace().next() == Some(device);
    let line = lines.find(is).unwrap();
    if line.contains("absent") {
        println!("skipped: {line}");
    }
    line.contains("present")
}

/// Whether there is a simulated core.
pub(crate) fn simulated(folder: &Folder) -> bool {
    present(folder, "fpga-sim")
}

#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn a_party_garbles_on_a_core() {
    let folder = folder();
    if !simulated(&folder) {
        return;
    }
    let runs = [
        "run job.toml --device garbler=fpga-sim",
        "run job.toml --device ann=fpga-sim --schedule list(2)",
        "run job.toml --device ann=fpga-sim --device bob=cpu-portable --processes",
        "run job.toml --device ann=reference --device evaluator=cpu-portable",
    ];
    for run in runs {
        let said = folder.succeed(&format!("{run} --out results"));
        assert!(said.contains("3 rows by yao"), "{run}: {said}");
        let sums = std::fs::read_to_string(folder.path().join("results/bob/sum.hex")).unwrap();
        assert_eq!(sums, "0000000c\n0000ff00\n23456789\n", "{run}");
    }
}

/// A circuit of two numbers of four bits, in Bristol Fashion: which bits are in both, and whether any is in the first alone.
const BOTH: &str = "12 20
2 4 4
2 4 1

2 1 0 4 8 AND
2 1 1 5 9 AND
2 1 2 6 10 AND
2 1 3 7 11 AND
2 1 0 8 12 XOR
2 1 1 9 13 XOR
2 1 2 10 14 XOR
2 1 3 11 15 XOR
2 1 12 13 16 AND
2 1 14 15 17 AND
2 1 16 17 18 AND
1 1 18 19 INV
";

pub(crate) const THREE: &str = r#""ann", "bob", "c""#;
pub(crate) const FOUR: &str = r#""ann", "bob", "c", "d""#;

/// What bob gets of [`BOTH`].
pub(crate) const FILES: &[&str] = &["bob/both.hex", "bob/alone.hex"];

/// The job becomes that of [`BOTH`], in many rows.
pub(crate) fn both(folder: &Folder) {
    folder.replace("job.toml", "make = \"adder:32\"", "file = \"both.txt\"");
    folder.replace("job.toml", "port = \"x\"", "port = \"in0\"");
    folder.replace("job.toml", "port = \"y\"", "port = \"in1\"");
    folder.replace(
        "job.toml",
        "output = [{ port = \"out\", to = \"bob\", format = \"hex\", file = \"sum.hex\" }]",
        "output = [{ port = \"out0\", to = \"bob\", format = \"hex\", file = \"both.hex\" },
          { port = \"out1\", to = \"bob\", format = \"hex\", file = \"alone.hex\" }]",
    );
    folder.write("both.txt", BOTH);
    let numbers: Vec<String> = (0..600).map(|k| format!("{:02x}\n", k * 7 % 16)).collect();
    folder.write("x.hex", numbers.concat());
    folder.write("y.hex", numbers[3..].concat() + "0a\n0b\n0c\n");
}

/// The job has these parties.
pub(crate) fn among(folder: &Folder, parties: &str) {
    let job = std::fs::read_to_string(folder.at("job.toml")).unwrap();
    let at = job.find("parties = [").unwrap() + "parties = [".len();
    let end = at + job[at..].find(']').unwrap();
    folder.write("job.toml", [&job[..at], parties, &job[end..]].concat());
}

/// What recipients get of a run.
fn results(folder: &Folder, command: &str, files: &[&str]) -> (String, Vec<Vec<u8>>) {
    let said = folder.succeed(&format!("{command} --out results"));
    let read = |file: &&str| std::fs::read(folder.at("results").join(file)).unwrap();
    (said, files.iter().map(read).collect())
}

/// A device that is best at many rows has them, where the job leaves their number open; the plan says whose wish it is.
#[test]
fn chunks_are_as_long_as_a_device_wishes() {
    let folder = folder();
    both(&folder);
    among(&folder, THREE);
    let explained = |options: &str| -> serde_json::Value {
        let said = folder.succeed(&format!("explain job.toml --json {options}"));
        serde_json::from_str(&said).unwrap()
    };
    let usual = explained("");
    assert_eq!(usual["chunk_rows_why"], "what fits a processor's cache");
    let wished = explained("--device bob=cuda-sim");
    assert_eq!(
        wished["chunk_rows_why"],
        "as many as cuda-sim, on which `bob` computes, is best at"
    );
    // A GPU wishes 2^16 rows at least.
    assert!(wished["chunk_rows"].as_u64().unwrap() >= 1 << 16);
    assert!(usual["chunk_rows"].as_u64().unwrap() < 1 << 16);
    let pinned = explained("--device bob=cuda-sim --chunk-rows 128");
    assert_eq!(pinned["chunk_rows"], 128);
    assert_eq!(pinned["chunk_rows_why"], "as many as the job says");
    let plans = [&usual, &wished, &pinned].map(|of| of["plan"].as_str().unwrap().to_owned());
    assert!(plans[0] != plans[1] && plans[1] != plans[2] && plans[0] != plans[2]);

    let (_, usual) = results(&folder, "run job.toml", FILES);
    for options in [
        "--device bob=cuda-sim",
        "--device bob=cuda-sim --processes",
        "--device bob=cuda-sim --chunk-rows 128",
    ] {
        let (_, got) = results(&folder, &format!("run job.toml {options}"), FILES);
        assert_eq!(got, usual, "{options}");
    }
}

#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn parties_compute_on_shares_by_cores() {
    let folder = folder();
    if !simulated(&folder) {
        return;
    }
    both(&folder);
    for parties in [THREE, FOUR] {
        among(&folder, parties);
        let (said, usual) = results(&folder, "run job.toml", FILES);
        assert!(!said.contains("of its cores"), "{said}");
        for options in [
            "--device fpga-sim",
            "--device bob=fpga-sim --processes",
            "--device fpga-sim --adversary malicious --device c=cpu",
        ] {
            let (said, got) = results(&folder, &format!("run job.toml {options}"), FILES);
            assert_eq!(got, usual, "{parties}: {options}");
            assert!(said.contains("cycles of its cores"), "{options}: {said}");
        }
    }
}

/// Kernels for GPUs, on the CPU and, where there is one, on a GPU: in one process and in several, whatever the others compute on.
#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn parties_compute_by_kernels() {
    let folder = folder();
    for device in ["cuda-sim", "cuda"] {
        if !present(&folder, device) {
            continue;
        }
        let cut = "--adversary malicious-cutchoose";
        for options in [
            format!("--device {device}"),
            format!("--device garbler={device} --processes"),
            format!("--device evaluator={device} --tables three-halves --processes"),
            format!("{cut} --device {device} --processes"),
            format!("{cut} --device garbler={device} --processes"),
            format!("{cut} --device evaluator={device} --processes"),
        ] {
            let (_, sums) = results(
                &folder,
                &format!("run job.toml {options}"),
                &["bob/sum.hex"],
            );
            assert_eq!(sums, [b"0000000c\n0000ff00\n23456789\n"], "{options}");
        }
    }
    both(&folder);
    for parties in [THREE, FOUR] {
        among(&folder, parties);
        let (_, usual) = results(&folder, "run job.toml", FILES);
        for device in ["cuda-sim", "cuda"] {
            if !present(&folder, device) {
                continue;
            }
            for options in [
                format!("--device {device} --processes"),
                format!("--device bob={device}"),
                format!("--device {device} --adversary malicious --processes"),
                format!("--device c={device} --adversary malicious --processes"),
            ] {
                let (_, got) = results(&folder, &format!("run job.toml {options}"), FILES);
                assert_eq!(got, usual, "{parties}: {options}");
            }
        }
    }
}

#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn statistics_are_those_of_processors() {
    let folder = Folder::wages();
    if !simulated(&folder) {
        return;
    }
    for parties in [
        "\"ann\", \"bob\", \"carol\"",
        "\"ann\", \"bob\", \"carol\", \"dan\"",
    ] {
        folder.replace(
            "wages.toml",
            "\"ann\", \"bob\", \"carol\"]",
            &format!("{parties}]"),
        );
        let files = ["carol/result.json", "carol/result.txt"];
        let (_, usual) = results(&folder, "stats wages.toml", &files);
        let devices = "--device fpga-sim --check";
        let (said, got) = results(&folder, &format!("stats wages.toml {devices}"), &files);
        assert_eq!(got, usual, "{parties}");
        assert!(said.contains("cycles of its cores"), "{said}");
    }
}

/// The plan of a run, the order of its gates, and why it is that one.
fn ordered(folder: &Folder, command: &str) -> [String; 3] {
    let said = folder.succeed(&format!("{command} --json"));
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    ["plan", "schedule", "schedule_why"].map(|field| said[field].as_str().unwrap().to_owned())
}

#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn a_garbler_on_a_core_chooses_the_order_where_no_job_names_one() {
    let folder = folder();
    let usual = ordered(&folder, "run job.toml --device bob=reference");
    assert_eq!(usual[1..], ["layers", "the usual one"]);
    if !simulated(&folder) {
        return;
    }
    let own = "fpga-sim, on which `ann` garbles, has 2 rows";
    let cases = [
        ("--device garbler=fpga-sim", "list(2)", own),
        (
            "--device fpga-sim --device bob=cpu --processes",
            "list(2)",
            own,
        ),
        ("--schedule list(2)", "list(2)", "--schedule says so"),
        (
            "--device ann=fpga-sim --schedule layers",
            "layers",
            "--schedule says so",
        ),
        (
            "--device ann=fpga-sim --schedule list(4)",
            "list(4)",
            "--schedule says so",
        ),
    ];
    let mut plans = Vec::new();
    for (options, schedule, why) in cases {
        // One lane in this process and in several: the plan is the same.
        let [plan, found, found_why] = ordered(
            &folder,
            &format!("run job.toml --lanes 1 {options} --out results"),
        );
        assert_eq!([&*found, &*found_why], [schedule, why], "{options}");
        let sums = std::fs::read_to_string(folder.path().join("results/bob/sum.hex")).unwrap();
        assert_eq!(sums, "0000000c\n0000ff00\n23456789\n", "{options}");
        plans.push(plan);
    }
    // A caller that names the order that the device would have asked for has its plan.
    assert!(plans[0] == plans[1] && plans[0] == plans[2] && plans[0] != plans[3]);
    let explained = ordered(
        &folder,
        "explain job.toml --lanes 1 --device garbler=fpga-sim",
    );
    assert_eq!(explained, [&*plans[0], "list(2)", own]);
    folder.replace(
        "job.toml",
        "version = 1\n",
        "version = 1\nschedule = \"layers\"\n",
    );
    let said = ordered(&folder, "run job.toml --device ann=fpga-sim");
    assert_eq!(said[1..], ["layers", "the job says so"]);
}

/// What fits layer by layer and not as a whole is garbled layer by layer.
#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn a_core_takes_layers_where_it_has_no_room_for_more() {
    let folder = folder();
    if !simulated(&folder) {
        return;
    }
    folder.replace(
        "job.toml",
        "make = \"adder:32\"",
        "make = \"sha256\", rows = 1",
    );
    folder.replace("job.toml", "port = \"x\"", "port = \"state\"");
    folder.replace("job.toml", "port = \"y\"", "port = \"block\"");
    let [_, schedule, why] = ordered(&folder, "explain job.toml --device garbler=fpga-sim");
    assert_eq!(schedule, "layers");
    assert_eq!(why, "fpga-sim has no room for it in the order list(2)");
}

#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn what_a_device_cannot_do_is_refused_before_the_run() {
    let folder = folder();
    let run = |options: &str| format!("run job.toml --device {options}");
    folder.fail(
        &run("carol=cpu"),
        2,
        &["no party is called `carol`", "ann, bob"],
    );
    folder.fail(&run("abacus"), 2, &["there is no device `abacus`"]);
    if !simulated(&folder) {
        return;
    }
    folder.fail(&run("bob=fpga-sim"), 2, &["bob does not in this job"]);
    let tables = run("ann=fpga-sim --tables three-halves");
    folder.fail(&tables, 2, &["makes tables of half-gates"]);
    folder.replace("job.toml", "adder:32", "mul-fast:256");
    let word = "0123456789abcdef".repeat(4);
    folder.write("x.hex", format!("{word}\n"));
    folder.write("y.hex", format!("{word}\n"));
    for schedule in ["layers", "list(2)"] {
        let large = run(&format!("ann=fpga-sim --schedule {schedule}"));
        folder.fail(&large, 6, &["does not fit fpga-sim", "docs/sequential.md"]);
    }
}

#[test]
fn devices_are_listed_and_checked() {
    let folder = Folder::new();
    let listed = folder.succeed("device list");
    let names = [
        "reference",
        "cpu-avx512",
        "cpu-avx2-vaes",
        "cpu-avx2",
        "cpu-portable",
        "cuda",
        "cuda-sim",
        "fpga-sim",
    ];
    for name in names {
        assert!(listed.contains(name), "{listed}");
    }
    let checked: serde_json::Value =
        serde_json::from_str(&folder.succeed("device check --cases 5 --seed 1 --json")).unwrap();
    let devices = checked["devices"].as_array().unwrap();
    assert_eq!(devices.len(), names.len());
    for device in devices {
        // One that is not here is skipped, never passed.
        let name = device["name"].as_str();
        let absent = (listed.lines())
            .any(|line| line.split_whitespace().next() == name && line.contains("absent"));
        assert_eq!(
            device["state"],
            if absent { "skipped" } else { "passed" },
            "{device}"
        );
    }
}
