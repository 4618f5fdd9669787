//! Jobs from end to end: in threads, in processes over TLS, and what `explain` says of them.

use crate::common;
use crate::common::Folder;
use crate::common::deployment::{PATIENCE, wait};
use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use serde_json::Value;

/// A table of two owners side by side, and one below.
fn study() -> Folder {
    let folder = Folder::new();
    folder.write(
        "study.toml",
        r#"version = 1
kind = "stats"
name = "study"
owners = ["mill", "port", "office"]
parties = ["mill", "university", "trustee"]
recipients = ["press"]
column = [{ name = "pay", type = "decimal", scale = 2, min = 0, max = "9999.99", missing = "drop-pair" },
          { name = "years", type = "integer", min = 0, max = 50 },
          { name = "group", type = "category", values = ["a", "b"] }]
block = [{ name = "mill", rows = 4, holds = { mill = ["pay", "years"], office = ["group"] },
           order = "agreed", files = { mill = "mill.csv", office = "office-mill.csv" } },
         { name = "port", rows = 2, holds = { port = ["pay", "years"], office = ["group"] },
           order = "agreed", files = { port = "port.csv", office = "office-port.csv" } }]
analysis = [{ name = "pay by group", kind = "mean", of = "pay", by = "group", to = "press" },
            { name = "pay and years", kind = "regression", of = "pay", on = ["years"], to = "press" },
            { name = "how many", kind = "sum", of = "years", to = "parties" }]
"#,
    );
    folder.write("mill.csv", "years,pay\n1,10.50\n2,20.25\n3,\n4,40.00\n");
    folder.write("office-mill.csv", "group\na\nb\na\nb\n");
    folder.write("port.csv", "pay,years\n99.25,10\n1.00,0\n");
    folder.write("office-port.csv", "group\na\na\n");
    folder
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn statistics_in_threads_and_in_processes_are_what_counting_gives() {
    let folder = study();
    let threads = json(&folder.succeed("stats study.toml --check --json --out one"));
    let processes =
        json(&folder.succeed("stats study.toml --check --json --out two --processes --lanes 2"));
    for run in [&threads, &processes] {
        assert_eq!(run["checked"], true);
        let press = run["results"]
            .as_array()
            .unwrap()
            .iter()
            .find(|result| result["recipient"] == "press")
            .unwrap();
        let groups = &press["statistics"]["json"]["analyses"][0]["groups"];
        // (10.50 + 99.25 + 1.00) / 3 and (20.25 + 40.00) / 2.
        let means: Vec<f64> = (0..2)
            .map(|group| number(&groups[group]["figures"][1]))
            .collect();
        assert!(
            (means[0] - 110.75 / 3.0).abs() < 1e-9 && (means[1] - 30.125).abs() < 1e-9,
            "{groups}"
        );
        for party in ["mill", "university", "trustee"] {
            let own = run["results"]
                .as_array()
                .unwrap()
                .iter()
                .find(|result| result["recipient"] == party)
                .unwrap();
            let figure = &own["statistics"]["json"]["analyses"][0]["groups"][0]["figures"][0];
            assert_eq!(figure["exact"], "20", "{own}");
        }
    }
    for name in ["result.txt", "result.csv", "result.json", "result.svg"] {
        for recipient in ["press", "mill", "university", "trustee"] {
            let file =
                |run: &str| std::fs::read(folder.at(&format!("{run}/{recipient}/{name}"))).unwrap();
            assert_eq!(file("one"), file("two"), "{recipient}/{name}");
        }
        assert!(!folder.at("one/port").exists(), "an owner gets nothing");
    }
}

/// The value of a figure, exact or rounded.
fn number(figure: &Value) -> f64 {
    let exact = figure["exact"].as_str().map(|text| text.parse().unwrap());
    exact
        .or_else(|| figure["rounded"].as_f64())
        .unwrap_or_else(|| panic!("no value in {figure}"))
}

#[test]
fn views_show_shares_and_tables() {
    let said = study().succeed("stats study.toml --show-views");
    for part in [
        "what the owners hold",
        "1,10.50",
        "what was received",
        "university (party)",
        "press (recipient)",
        "% ones",
    ] {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
    assert!(
        said.contains("pay by group") && said.contains("opened to press"),
        "{said}"
    );
}

#[test]
fn explain_names_every_opened_value_and_counts_every_byte() {
    let folder = study();
    let said = folder.succeed("explain study.toml");
    for part in [
        "semi-honest",
        "Z_2^64",
        "lan",
        "wan",
        ", to: press",
        ", to: mill, university, trustee",
    ] {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
    let explained = json(&folder.succeed("explain study.toml --lanes 2 --json"));
    let run = json(&folder.succeed("run study.toml --lanes 2 --json"));
    assert_eq!(explained["plan"], run["plan"]);
    let handshake = |role: &str, peers: u64| match role {
        // Nonce, key share and plan hash; session and proof; an owner's four copies of two seeds. 40 bytes of header each.
        "owner" => 3 * (96 + 64) + 4 * 16 + 9 * 40,
        _ => peers * (96 + 64) + peers * 2 * 40,
    };
    for (explained, run) in explained["participants"]
        .as_array()
        .unwrap()
        .iter()
        .zip(run["participants"].as_array().unwrap())
    {
        assert_eq!(explained["name"], run["name"]);
        let role = run["role"].as_str().unwrap();
        // Two parties, two outside owners and a recipient; or three parties.
        let peers = if role == "party" { 5 } else { 3 };
        let payload =
            explained["bytes"].as_u64().unwrap() + 40 * explained["messages"].as_u64().unwrap();
        assert_eq!(
            payload + handshake(role, peers),
            run["bytes_sent"].as_u64().unwrap(),
            "{run}"
        );
    }
    let opened = explained["opened"].as_array().unwrap();
    let to_press = opened
        .iter()
        .filter(|opened| opened["to"] == "press")
        .count();
    let result = run["results"]
        .as_array()
        .unwrap()
        .iter()
        .find(|result| result["recipient"] == "press")
        .unwrap();
    assert_eq!(
        to_press,
        result["statistics"]["json"]["opened"]
            .as_array()
            .unwrap()
            .len()
    );
}

#[test]
fn a_letter_is_encrypted_under_a_key_that_no_party_holds() {
    let folder = Folder::new();
    let job = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/encrypt-file/job.toml"
    );
    folder.write("job.toml", std::fs::read(job).unwrap());
    let halves = [[0x3cu8; 16], std::array::from_fn(|i| (i * 37) as u8)];
    let hex = |bytes: &[u8]| {
        let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.concat() + "\n"
    };
    folder.write("bank.key", hex(&halves[0]));
    folder.write("notary.key", hex(&halves[1]));
    let letter: Vec<u8> = (0..20_001u32).map(|i| ((i * i) >> 7) as u8).collect();
    folder.write("letter.txt", &letter);

    let key: [u8; 16] = std::array::from_fn(|i| halves[0][i] ^ halves[1][i]);
    let cipher = Aes128::new(&Array::from(key));
    let mut expected = letter;
    for (counter, block) in expected.chunks_mut(16).enumerate() {
        let mut stream = Array::from((counter as u128).to_be_bytes());
        cipher.encrypt_block(&mut stream);
        block
            .iter_mut()
            .zip(stream)
            .for_each(|(byte, mask)| *byte ^= mask);
    }
    let said = folder.succeed("run job.toml");
    assert!(said.contains("results/archive/letter.enc"), "{said}");
    assert!(std::fs::read(folder.at("results/archive/letter.enc")).unwrap() == expected);
    folder.succeed("run job.toml --processes --lanes 2 --out other");
    assert!(std::fs::read(folder.at("other/archive/letter.enc")).unwrap() == expected);
    // The same among four parties.
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/four-parties.sh"
    );
    let four = std::process::Command::new("sh")
        .args([script, "job.toml"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(four.status.success());
    folder.write("four.toml", four.stdout);
    let said = folder.succeed("explain four.toml");
    assert!(
        said.contains("rep4") && said.contains("fourth-party"),
        "{said}"
    );
    for how in ["", " --processes", " --adversary semi-honest"] {
        folder.succeed(&format!("run four.toml --protocol rep4 --out four{how}"));
        assert!(std::fs::read(folder.at("four/archive/letter.enc")).unwrap() == expected);
    }
}

/// The third example: by its own scripts among three servers and among four, against the clear sums.
#[test]
fn a_threshold_query_opens_one_bit_per_client() {
    let example = |name: &str| {
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../examples/threshold-query"
        );
        format!("{folder}/{name}")
    };
    let folder = Folder::new();
    let script = |name: &str, arguments: &[&str]| {
        let output = std::process::Command::new("sh")
            .arg(example(name))
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = common::text(&output.stdout) + &common::text(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        said
    };
    script("prepare.sh", &["."]);
    for (job, how) in [
        ("job.toml", ""),
        ("job-four.toml", ""),
        ("job-four.toml", "--processes"),
    ] {
        let out = format!("out{how}-{job}");
        folder.succeed(&format!("run {job} {how} --out {out}"));
        let result = format!("{out}/supervisor/above.csv");
        let said = script("check.sh", &[".", &result]);
        assert!(said.contains("of 2000 clients are above 5000000"), "{said}");
    }
    // The supervisor alone gets something, and it is this.
    let explained = json(&folder.succeed("explain job-four.toml --json"));
    let opened = explained["opened"].as_array().unwrap();
    assert_eq!(opened.len(), 1, "{explained}");
    assert_eq!(opened[0]["to"], "supervisor");
}

/// A group of two is not shown, nor that it has two; what is opened of it is zero.
#[test]
fn groups_that_are_too_small_are_not_shown() {
    let folder = Folder::new();
    let job = r#"version = 1
kind = "stats"
name = "pay"
owners = ["mill"]
parties = ["a", "b", "c"]
recipients = ["press"]
column = [{ name = "pay", type = "integer", min = -500, max = 9000 },
          { name = "group", type = "category", values = ["many", "few", "none"] }]
block = [{ name = "mill", rows = 5, holds = { mill = ["pay", "group"] }, files = { mill = "mill.csv" } }]
analysis = [{ name = "shown", kind = "mean", of = "pay", by = "group", min_count = 3, to = "press" },
            { name = "total", kind = "sum", of = "pay", by = "group", min_count = 2, to = "press" }]
"#;
    folder.write("three.toml", job);
    folder.write("four.toml", job.replace("\"c\"]", "\"c\", \"d\"]"));
    folder.write(
        "malicious.toml",
        job.replace(
            "kind = \"stats\"",
            "kind = \"stats\"\nadversary = \"malicious\"",
        ),
    );
    folder.write(
        "mill.csv",
        "pay,group\n10,many\n-40,many\n60,many\n7,few\n8,few\n",
    );
    for (job, how) in [
        ("three.toml", ""),
        ("malicious.toml", ""),
        ("four.toml", "--processes"),
    ] {
        let run =
            json(&folder.succeed(&format!("stats {job} --check --json --out {job}-out {how}")));
        assert_eq!(run["checked"], true, "{run}");
        let result = std::fs::read_to_string(folder.at(&format!("{job}-out/press/result.json")));
        let result = json(&result.unwrap());
        let figure = |analysis: usize, group: usize, figure: usize| {
            result["analyses"][analysis]["groups"][group]["figures"][figure].clone()
        };
        assert_eq!(figure(0, 0, 1)["rounded"], 10.0, "{result}");
        for (group, analysis) in [(1, 0), (2, 0), (2, 1)] {
            for k in 0..2 {
                let said = figure(analysis, group, k);
                assert_eq!(said["undefined"], "fewer rows than `min_count`", "{result}");
            }
        }
        assert_eq!(figure(1, 1, 1)["exact"], "15", "{result}");
        let opened = result["opened"].as_array().unwrap();
        let value = |what: &str| {
            let one = opened.iter().find(|one| one["what"] == what);
            one.unwrap_or_else(|| panic!("{what}: {result}"))["value"].clone()
        };
        let few = "or 0 if these are fewer than 3 rows";
        assert_eq!(
            value(&format!("number of rows where group = many, {few}")),
            "3"
        );
        assert_eq!(
            value(&format!("number of rows where group = few, {few}")),
            "0"
        );
        assert_eq!(
            value(&format!("sum of pay over rows where group = few, {few}")),
            "0"
        );
        let explained = folder.succeed(&format!("explain {job}"));
        assert!(explained.contains(few), "{explained}");
    }
}

/// Means and extremes are opened alone: no sum, no count, and nothing of a group that is too small.
#[test]
fn means_and_extremes_are_opened_alone() {
    let folder = Folder::new();
    let job = r#"version = 1
kind = "stats"
name = "pay"
owners = ["mill", "b"]
parties = ["a", "b", "c"]
recipients = ["press"]
column = [{ name = "pay", type = "decimal", scale = 2, min = "-500.00", max = "9000.00", unit = "EUR", missing = "drop-pair" },
          { name = "group", type = "category", values = ["many", "few", "none"] }]
block = [{ name = "mill", rows = 5, holds = { mill = ["pay", "group"] }, files = { mill = "mill.csv" } },
         { name = "b", rows = 3, holds = { b = ["pay", "group"] }, files = { b = "b.csv" } }]
analysis = [{ name = "mean", kind = "mean-only", of = "pay", decimals = 1, by = "group", min_count = 3, to = "press" },
            { name = "least", kind = "min", of = "pay", by = "group", to = "press" },
            { name = "most", kind = "max", of = "pay", by = "group", min_count = 3, to = "parties" },
            { name = "most of all", kind = "max", of = "pay", to = "press" }]
"#;
    folder.write("three.toml", job);
    folder.write("four.toml", job.replace("\"c\"]", "\"c\", \"d\"]"));
    folder.write(
        "malicious.toml",
        job.replace(
            "kind = \"stats\"",
            "kind = \"stats\"\nadversary = \"malicious\"",
        ),
    );
    folder.write(
        "durable.toml",
        job.replace("kind = \"stats\"", "kind = \"stats\"\ndurable = true"),
    );
    folder.write(
        "mill.csv",
        "pay,group\n10.00,many\n-40.00,many\n60.05,many\n7.00,few\n,few\n",
    );
    folder.write("b.csv", "pay,group\n8999.99,few\n-40.01,many\n,none\n");
    for (job, how) in [
        ("three.toml", ""),
        ("malicious.toml", ""),
        ("four.toml", "--processes"),
        ("durable.toml", "--processes"),
    ] {
        // What is computed of the sums has one row: it takes no chunk's worth of memory.
        let explained = json(&folder.succeed(&format!("explain {job} --lanes 1 --json")));
        let participants = explained["participants"].as_array().unwrap();
        assert!(participants.len() >= 5, "{explained}");
        for participant in participants {
            let bytes = participant["memory_bytes"].as_u64().unwrap();
            assert!(bytes < 256 << 20, "{job}: {participant}");
        }
        let run =
            json(&folder.succeed(&format!("stats {job} --check --json --out {job}-out {how}")));
        assert_eq!(run["checked"], true, "{run}");
        let result = |name: &str| {
            let file = folder.at(&format!("{job}-out/{name}/result.json"));
            json(&std::fs::read_to_string(file).unwrap())
        };
        let press = result("press");
        let figure = |result: &serde_json::Value, analysis: usize, group: usize| {
            let figures = &result["analyses"][analysis]["groups"][group]["figures"];
            assert_eq!(figures.as_array().unwrap().len(), 1, "{result}");
            figures[0].clone()
        };
        // (10 - 40 + 60.05 - 40.01) / 4 is -2.49.
        assert_eq!(figure(&press, 0, 0)["exact"], "-2.5", "{press}");
        let few = "fewer rows than `min_count`";
        assert_eq!(figure(&press, 0, 1)["undefined"], few, "{press}");
        let least: Vec<_> = (0..2)
            .map(|g| figure(&press, 1, g)["exact"].clone())
            .collect();
        assert_eq!(least, ["-40.01", "7.00"], "{press}");
        assert_eq!(figure(&press, 1, 2)["undefined"], "no rows", "{press}");
        assert_eq!(figure(&press, 2, 0)["exact"], "8999.99", "{press}");
        let party = result("a");
        assert_eq!(figure(&party, 0, 0)["exact"], "60.05", "{party}");
        assert_eq!(figure(&party, 0, 1)["undefined"], few, "{party}");
        assert_eq!(press["opened"].as_array().unwrap().len(), 7, "{press}");
        assert!(press["analyses"][0]["rows_used"].is_null(), "{press}");
        assert_eq!(
            press["opened"][1]["value"],
            serde_json::Value::Null,
            "{press}"
        );
        let explained = folder.succeed(&format!("explain {job}"));
        for what in [
            "mean of pay over rows where group = many and pay is present, to 1 decimal, or nothing if these are fewer than 3 rows",
            "smallest pay over rows where group = few and pay is present, or nothing if there are no such rows",
        ] {
            assert!(explained.contains(what), "{explained}");
        }
    }
}

#[test]
fn data_may_be_elsewhere() {
    let folder = Folder::wages();
    std::fs::rename(folder.at("ann.csv"), folder.at("moved.csv")).unwrap();
    for how in ["", "--processes"] {
        let said = folder.succeed(&format!(
            "stats wages.toml --data ann:north=moved.csv {how}"
        ));
        assert!(said.contains("3200.00"), "{said}");
    }
}

#[test]
fn a_signal_ends_a_run_in_order() {
    use std::io::Read;
    let folder = Folder::blocks();
    // It is far from done when it is told to stop.
    folder.replace("job.toml", "rows = 4096", "rows = 200000");
    let before = folder.everything();
    for how in [&[][..], &["--processes"]] {
        let mut run = std::process::Command::new(crate::PROGRAM)
            .args(["run", "job.toml", "--net", "wan"])
            .args(how)
            .current_dir(folder.path())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        wait("it listens to signals", || catches_term(run.id()));
        std::thread::sleep(std::time::Duration::from_millis(1500));
        rustix::process::kill_process(
            rustix::process::Pid::from_child(&run),
            rustix::process::Signal::TERM,
        )
        .unwrap();
        let mut said = String::new();
        run.stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!(run.wait().unwrap().code(), Some(1), "{said}");
        assert!(said.contains("stopped by a signal"), "{said}");
        assert_eq!(folder.everything(), before);
    }
}

/// Whether a process does something when it is told to stop, as the kernel says.
fn catches_term(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
    (caught >> (rustix::process::Signal::TERM.as_raw() - 1)) & 1 == 1
}

/// The processes that a process has started, when no more have come for half a second.
fn settled_children(of: u32) -> Vec<String> {
    let path = format!("/proc/{of}/task/{of}/children");
    let mut last = Vec::new();
    let mut quiet = 0;
    let until = std::time::Instant::now() + std::time::Duration::from_secs(PATIENCE);
    while quiet < 10 || last.len() < 2 {
        assert!(std::time::Instant::now() < until, "only {last:?} started");
        std::thread::sleep(std::time::Duration::from_millis(50));
        let text = std::fs::read_to_string(&path).unwrap();
        let now: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        quiet = if now == last { quiet + 1 } else { 0 };
        last = now;
    }
    last
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_process_that_is_killed_ends_the_run() {
    let folder = Folder::blocks();
    let before = folder.everything();
    let run = std::process::Command::new(crate::PROGRAM)
        .args([
            "run",
            "job.toml",
            "--net",
            "wan",
            "--processes",
            "--timeout",
            "60",
        ])
        .current_dir(folder.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let second: i32 = settled_children(run.id())[1].parse().unwrap();
    let second = rustix::process::Pid::from_raw(second).unwrap();
    rustix::process::kill_process(second, rustix::process::Signal::KILL).unwrap();
    let output = run.wait_with_output().unwrap();
    let said = common::text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(
        said.contains("the process of `b` ended before the run did (signal: 9"),
        "{said}"
    );
    assert_eq!(folder.everything(), before);
}
