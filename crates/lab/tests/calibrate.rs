//! Rates are measured, and estimates by them are near what runs take.

use crate::common::{Folder, text};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_measured_table_is_one_to_estimate_by() {
    let folder = Folder::wages();
    let output = folder.veil("calibrate --small --out rates.toml");
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    // How well it explains each plan, and all of them.
    for line in [
        "rep3, malicious",
        "rep4, semi-honest",
        "three-halves",
        "by the table",
        "CPU time: half of all plans within",
    ] {
        assert!(said.contains(line), "no `{line}` in {said}");
    }
    assert!(output.stdout.is_empty());
    let table = std::fs::read_to_string(folder.at("rates.toml")).unwrap();
    assert!(
        table.contains("version = 1\n") && table.contains("[cpu]"),
        "{table}"
    );
    let explained = json(&folder.succeed("explain wages.toml --rates rates.toml --json"));
    let measured = explained["rates"]["measured"].as_str().unwrap();
    assert!(table.contains(measured), "{measured} {table}");
    assert!(explained["estimates"][0]["seconds"].as_f64().unwrap() > 0.0);
    folder.fail(
        "calibrate --small --out none/rates.toml",
        1,
        &["cannot write the table to none/rates.toml"],
    );
}

/// Jobs of three kinds: deep and narrow, wide and long, garbled.
const JOBS: [(&str, &str); 3] = [
    (
        "shallow.toml",
        r#"parties = ["a", "b", "c"]
circuit = { make = "aes128", rows = 20000 }
input = [{ port = "key", owner = "ann", per = "job", format = "hex", file = "key.hex" },
         { port = "block", owner = "ann", format = "counter", start = "00000000000000000000000000000000" }]
output = [{ port = "out", to = "eve", format = "binary", file = "blocks" }]
"#,
    ),
    (
        "malicious.toml",
        r#"parties = ["a", "b", "c"]
adversary = "malicious"
circuit = { make = "aes128", rows = 4096 }
input = [{ port = "key", owner = "ann", per = "job", format = "hex", file = "key.hex" },
         { port = "block", owner = "ann", format = "counter", start = "00000000000000000000000000000000" }]
output = [{ port = "out", to = "eve", format = "binary", file = "blocks" }]
"#,
    ),
    (
        "garbled.toml",
        r#"parties = ["a", "b"]
circuit = { make = "aes128", rows = 1000 }
input = [{ port = "key", owner = "ann", per = "job", format = "hex", file = "key.hex" },
         { port = "block", owner = "ann", format = "counter", start = "00000000000000000000000000000000" }]
output = [{ port = "out", to = "eve", format = "binary", file = "blocks" }]
"#,
    ),
];

/// By a table that was measured here and now, and by CPU time: neither the speed nor the load of this machine matters.
#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn estimates_are_near_what_runs_take() {
    let folder = Folder::new();
    folder.succeed("calibrate --out rates.toml");
    folder.write("key.hex", "000102030405060708090a0b0c0d0e0f\n");
    for (file, job) in JOBS {
        let head = "version = 1\nkind = \"circuit\"\nname = \"blocks\"\nowners = [\"ann\"]\nrecipients = [\"eve\"]\n";
        folder.write(file, format!("{head}{job}"));
        let rows = job
            .split_once("rows = ")
            .unwrap()
            .1
            .split_once(' ')
            .unwrap()
            .0;
        let one = job.replace(&format!("rows = {rows}"), "rows = 1");
        folder.write("one.toml", format!("{head}{one}"));
        // Planning, keys and connections are of both runs, and in no estimate.
        let [estimated, took] = [cpu_estimated, cpu_spent].map(|cpu| {
            let least = (0..3)
                .map(|_| cpu(&folder, file))
                .fold(f64::INFINITY, f64::min);
            least - cpu(&folder, "one.toml")
        });
        let ratio = estimated / took;
        eprintln!("{file}: estimated {estimated:.3} s, took {took:.3} s: {ratio:.2}");
        assert!(
            (1.0 / 3.0..=3.0).contains(&ratio),
            "{file}: estimated over real time is {ratio}"
        );
    }
}

/// Seconds of CPU time of all participants.
fn cpu_estimated(folder: &Folder, job: &str) -> f64 {
    let explained = json(&folder.succeed(&format!("explain {job} --rates rates.toml --json")));
    let all = explained["participants"].as_array().unwrap().iter();
    all.map(|participant| participant["cpu_seconds"].as_f64().unwrap())
        .sum()
}

/// The same of a run of all of them in one process, user and system time.
fn cpu_spent(folder: &Folder, job: &str) -> f64 {
    let script = format!("\"$0\" run {job} --lanes 1 --out out >/dev/null && rm -r out && times");
    let mut shell = assert_cmd::Command::new("sh");
    shell.args(["-c", &script, crate::PROGRAM]);
    let output = shell.current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    // The second line is of the children: 0m1.250000s 0m0.040000s.
    let times = text(&output.stdout);
    let seconds = |time: &str| -> Option<f64> {
        let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    let children = times.lines().nth(1).unwrap().split_whitespace();
    children.map(|time| seconds(time).unwrap()).sum()
}
