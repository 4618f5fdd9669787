//! Benches run and say what ran; how fast is not asserted.

use crate::common::{Folder, text};

/// That a command fails, and says this.
fn refuses(folder: &Folder, arguments: &str, said: &str) {
    let refused = folder.veil(arguments);
    let stderr = text(&refused.stderr);
    assert!(
        !refused.status.success() && stderr.contains(said),
        "{stderr}"
    );
}

#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn figures_of_four_parties_are_of_both_adversaries() {
    let folder = Folder::new();
    let printed = folder.succeed("bench rep4-mul --batch 60 --repeat 1 --json --svg figure.svg");
    let rows: Vec<serde_json::Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row is an object"))
        .collect();
    let said = rows.iter().map(|row| {
        assert_eq!(
            (&row["bench"], &row["protocol"]),
            (&"rep4-mul".into(), &"rep4".into())
        );
        // Whole rows of 16 products each.
        assert_eq!(row["batch"], 4);
        assert!(row["gbit_per_core_s"].as_f64() > Some(0.0), "{row}");
        let word = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
        (word("link"), word("adversary"))
    });
    let expected = [
        ("memory", "semi-honest"),
        ("memory", "malicious"),
        ("tls", "semi-honest"),
        ("tls", "malicious"),
    ];
    let expected = expected.map(|(link, adversary)| (link.to_owned(), adversary.to_owned()));
    assert_eq!(said.collect::<Vec<_>>(), expected);
    let figure = std::fs::read_to_string(folder.at("figure.svg")).expect("a figure");
    assert!(
        figure.contains("one COPA accelerator, malicious"),
        "{figure}"
    );

    let table =
        folder.succeed("bench rep4-mul --batch 64 --repeat 1 --link memory --adversary malicious");
    assert!(
        table.contains("cores for 10 Gb/s") && table.contains("26.3 Gb/s"),
        "{table}"
    );
    assert!(!table.contains("memory  semi-honest"), "{table}");
    for other in ["rep3", "yao"] {
        let refused = folder.veil(&format!("bench rep4-mul --protocol {other}"));
        assert!(text(&refused.stderr).contains("of four parties"), "{other}");
    }
    let refused = folder.veil("bench and --protocol rep3 --adversary none");
    assert!(text(&refused.stderr).contains("\"semi-honest\" or \"malicious\""));
}

/// Its parties compute on the device that is named, in chunks that it is best at, and every round of theirs is written down.
#[test]
fn a_bench_of_a_job_takes_a_device() {
    let folder = Folder::new();
    let printed = folder.succeed(
        "bench and --batch 70 --repeat 2 --link memory --device cuda-sim --trace run.jsonl --json",
    );
    let row: serde_json::Value = serde_json::from_str(&printed).expect("a row is an object");
    assert_eq!(
        (&row["device"], &row["batch"]),
        (&"cuda-sim".into(), &70.into())
    );
    let trace = std::fs::read_to_string(folder.at("run.jsonl")).expect("a trace");
    let lines = trace.lines().map(serde_json::from_str::<serde_json::Value>);
    let lines: Vec<serde_json::Value> = lines.collect::<Result<_, _>>().expect("lines");
    assert_eq!(lines[0]["rows"], 70);
    // Longer than what fits the cache of a processor.
    assert!(
        lines[0]["chunk_rows"].as_u64() > Some(16384),
        "{}",
        lines[0]
    );
    // Each of three parties has 256 layers of products, and one of what is put out; the last of two runs alone is written down.
    let layers = lines.iter().filter(|line| line["task"] == "layers");
    assert_eq!(layers.count(), 3 * 257);

    let refused = folder.veil("bench ot --device cuda-sim");
    let said = text(&refused.stderr);
    assert!(
        said.contains("--device has no meaning here: what is measured says the device"),
        "{said}"
    );
    let refused = folder.veil("bench and --device abacus");
    assert!(text(&refused.stderr).contains("there is no device `abacus`"));
}

/// Over either link, with a result that is compared.
#[test]
fn keys_that_meet_are_measured() {
    let folder = Folder::new();
    let printed = folder.succeed("bench psi --batch 300 --repeat 1 --json");
    let rows = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row is an object"));
    let rows: Vec<serde_json::Value> = rows.collect();
    let said: Vec<_> = rows
        .iter()
        .map(|row| (&row["bench"], &row["batch"], &row["adversary"]))
        .collect();
    let expected = (&"psi".into(), &300.into(), &"malicious".into());
    assert_eq!(said, [expected; 2]);
}

#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn garbling_is_measured_against_its_hash() {
    let folder = Folder::new();
    let printed = folder.succeed("bench garble --batch 5 --json --svg garble.svg");
    let rows: Vec<serde_json::Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row is an object"))
        .collect();
    let said: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["tables"].as_str(),
                row["bytes_per_and"].as_f64(),
                row["ands"].as_u64(),
            )
        })
        .collect();
    let expected = [
        (Some("half-gates"), Some(32.0), Some(5120)),
        (Some("three-halves"), Some(25.0), Some(5120)),
    ];
    assert_eq!(said, expected);
    for row in &rows {
        for side in ["garble", "evaluate"] {
            let [rate, limit] = [format!("{side}_per_s"), format!("hash_{side}_per_s")]
                .map(|field| row[field].as_f64().unwrap_or_default());
            assert!(rate > 0.0 && limit > 0.0, "{row}");
        }
    }
    let figure = std::fs::read_to_string(folder.at("garble.svg")).expect("a figure");
    assert!(figure.contains("three-halves, evaluate"), "{figure}");
    let table = folder.succeed("bench garble --batch 1 --tables half-gates");
    assert!(
        table.contains("of hash") && table.contains("100 Gb/s"),
        "{table}"
    );
    let refused = folder.veil("bench garble --protocol rep3");
    assert!(text(&refused.stderr).contains("of two parties"));
}

#[test]
fn silent_transfers_take_few_bits() {
    let folder = Folder::new();
    let printed = folder.succeed("bench ot --silent --batch 1 --repeat 1 --json");
    for (line, (set, bits)) in printed.lines().zip([("C11", 1.42), ("C12", 0.76)]) {
        let row: serde_json::Value = serde_json::from_str(line).expect("a row is an object");
        assert_eq!(row["set"], set);
        let said = row["bits_per_op"].as_f64().expect("a number");
        assert!((said - bits).abs() < 0.01, "{row}");
    }
    refuses(
        &folder,
        "bench ot --silent --svg a.svg",
        "transfers are between two",
    );
    refuses(
        &folder,
        "bench and --silent",
        "--silent and --vole are of ot",
    );
}

/// Where they send less, transfers of gates are silent, and a row says so.
#[test]
fn gates_against_a_malicious_party_take_silent_transfers() {
    let folder = Folder::new();
    let row = |batch: u32| -> serde_json::Value {
        let printed = folder.succeed(&format!(
            "bench ag --ot silent --batch {batch} --repeat 1 --link memory --json"
        ));
        serde_json::from_str(&printed).expect("a row is an object")
    };
    let [few, many] = [1, 16].map(row);
    assert_eq!(
        (&few["bench"], &many["bench"]),
        (&"ag".into(), &"ag-silent".into())
    );
    let bound = many["bound_fraction"].as_f64().expect("a number");
    assert!(bound > 0.0 && bound < 1.0, "{many}");
    refuses(&folder, "bench yao --ot silent", "--ot is of ag");
    refuses(&folder, "bench ot --ot silent", "--ot is of ag");
}

#[test]
fn vectors_of_products_say_how_they_come_about() {
    let folder = Folder::new();
    let printed = folder.succeed("bench ot --vole --batch 3000 --repeat 1 --json");
    let row: serde_json::Value = serde_json::from_str(&printed).expect("a row is an object");
    assert_eq!(
        (&row["silent_rounds"], &row["block_rounds"]),
        (&1.into(), &0.into())
    );
    let said = row["bits_per_op"].as_f64().expect("a number");
    assert!((said - 3713.0).abs() < 1.0, "{row}");
    let both = "bench ot --vole --silent";
    refuses(&folder, both, "products are between two");
    refuses(&folder, "bench and --vole", "--silent and --vole are of ot");
    refuses(
        &folder,
        "bench ot --vole --batch 100000001",
        "room for 100 million",
    );
}

/// What parties of two take of few ANDs and of ten times as many: in each part at most the sizes in MB, and no byte for each of those in between.
fn memory_does_not_grow(name: &str, [few, many]: [&str; 2], most: [f64; 2]) {
    let folder = Folder::new();
    let parts = |ands: &str| -> Vec<serde_json::Value> {
        let printed = folder.succeed(&format!("bench {name} --ands {ands} --json"));
        let rows = printed.lines().map(serde_json::from_str);
        rows.collect::<Result<_, _>>().expect("a row is an object")
    };
    let asked: f64 = many.parse().expect("a number");
    let (few, many) = (parts(few), parts(many));
    for (((part, few), many), most) in ["cycles", "batch"].iter().zip(few).zip(many).zip(most) {
        assert_eq!([&few["part"], &many["part"]], [part; 2]);
        assert_eq!([&few["bench"], &many["bench"]], [name; 2]);
        assert!(many["ands"].as_f64() >= Some(asked), "{many}");
        // Of a batch, chunks that begin while others wait have up to 16 MiB, in either run or in one alone.
        let ahead = if *part == "cycles" { 0.0 } else { 17.0 };
        for side in ["garbler_mb", "evaluator_mb"] {
            let [few, many] = [&few, &many].map(|row| row[side].as_f64().expect("a size"));
            assert!(
                many < few + 5.0 + ahead && many < most,
                "{part}, {side}: {few}, then {many}"
            );
        }
    }
}

/// Nor does it where a party may be malicious, though an AND takes some hundred bytes of what is made before it.
#[test]
#[ignore = "tier cores: two minutes of two processors"]
fn memory_of_authenticated_garbling_does_not_grow() {
    memory_does_not_grow("ag", ["1e6", "1e7"], [84.0, 124.0]);
}

/// What a party of two takes does not grow with the cycles of a netlist, nor with the rows of a batch.
#[test]
fn memory_grows_neither_with_cycles_nor_with_rows() {
    // A byte for each of the nine million ANDs in between would be found, and of a batch three.
    memory_does_not_grow("yao", ["1e6", "1e7"], [64.0, 80.0]);
    let folder = Folder::new();
    for (arguments, said) in [
        ("bench and --ands 1e6", "--ands is of yao"),
        ("bench yao --ands 1e99", "no number of ANDs"),
        ("bench yao --ands 1e6 --batch 4", "cannot be used with"),
    ] {
        refuses(&folder, arguments, said);
    }
}

#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn both_ways_to_garble_are_measured_against_the_link() {
    let folder = Folder::new();
    let printed =
        folder.succeed("bench yao --batch 20 --repeat 1 --link memory --json --svg yao.svg");
    let rows: Vec<serde_json::Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row is an object"))
        .collect();
    // One of the machine as it is, then seven links for either scheme.
    let of = |tables: &str| {
        rows[1..]
            .iter()
            .filter(|row| row["tables"] == tables)
            .count()
    };
    assert_eq!(
        (rows.len(), of("half-gates"), of("three-halves")),
        (15, 7, 7)
    );
    assert!(
        rows[1]["net"]
            .as_str()
            .is_some_and(|net| net.ends_with("0.5 Gb/s"))
    );
    let figure = std::fs::read_to_string(folder.at("yao.svg")).expect("a figure");
    assert!(
        figure.contains("Gb/s of the link") && figure.contains("three-halves"),
        "{figure}"
    );
}

/// A netlist of the name of a published one, and the serial adder that it is.
#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn cores_are_measured_beside_the_published_ones() {
    let folder = Folder::new();
    let adder = "0 0 1 1 1 1 5\n0 1 3 0 2\n2 2 4 4 5\n6 6 8 6 6\n6\n7\n-2\n";
    std::fs::create_dir(folder.at("netlists")).expect("a folder");
    std::fs::write(folder.at("netlists/Add_8_8.scd"), adder).expect("a netlist");
    let bench = "bench fpga-garble --circuits netlists";
    let printed = folder.succeed(&format!("{bench} --json --svg fpga.svg"));
    let rows: Vec<serde_json::Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row is an object"))
        .collect();
    let (resources, rows) = rows.split_last().expect("rows");
    assert_eq!(resources["bench"], "fpga-resources");
    let said: Vec<_> = rows
        .iter()
        .map(|row| (row["core"].as_str(), row["rows"].as_u64()))
        .collect();
    let of = |core, rows: [u64; 4]| rows.map(|rows| (Some(core), Some(rows)));
    let expected = [of("in-order", [1, 2, 3, 4]), of("scheduled", [1, 2, 4, 8])];
    assert_eq!(said, expected.concat());
    let number = |row: &serde_json::Value, of: &str| row[of].as_u64().unwrap_or_default();
    for row in rows {
        assert_eq!(
            (&row["netlist"], number(row, "paper_two_rows")),
            (&"Add_8_8".into(), 172)
        );
        assert!(number(row, "scheduled") >= number(row, "bound"), "{row}");
        // What was simulated in order takes what the rule says; with two rows, as in the paper.
        if row["core"] == "in-order" {
            let cycles = row.get("cycles").unwrap_or(&row["scheduled"]);
            assert_eq!(*cycles, row["scheduled"]);
            assert!(number(row, "rows") != 2 || *cycles == 172, "{row}");
        }
    }
    let figure = std::fs::read_to_string(folder.at("fpga.svg")).expect("a figure");
    assert!(figure.contains("gates that start in a cycle"), "{figure}");

    let printed = folder.veil(bench);
    let (table, stderr) = (text(&printed.stdout), text(&printed.stderr));
    let line = table
        .lines()
        .find(|line| line.starts_with("Add_8_8 "))
        .expect("a line");
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(
        (words.len(), &words[..4]),
        (15, &["Add_8_8", "8", "179", "172"][..]),
        "{line}"
    );
    assert_eq!(words[5].trim_matches(['(', ')']), "172", "{line}");
    // Published resources, and what this project keeps of its own.
    for part in ["158902", "52975", "46504", "ours, N = 2", "tables per s"] {
        assert!(table.contains(part), "{part} is not in\n{table}");
    }
    assert_eq!(stderr.matches("skipped: ").count(), 11, "{stderr}");
}

#[test]
#[ignore = "tier cores: simulated, or minutes"]
fn cores_of_sharing_are_measured_beside_the_published_ones() {
    let folder = Folder::new();
    let printed = folder.veil("bench fpga-share --json --svg fig.svg");
    let (rows, stderr) = (text(&printed.stdout), text(&printed.stderr));
    assert!(printed.status.success(), "{stderr}");
    let rows: Vec<serde_json::Value> = rows
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row is an object"))
        .collect();
    let (resources, rows) = rows.split_last().expect("rows");
    assert_eq!(resources["bench"], "fpga-share-resources");
    assert!(resources["results"]["designs"]["rep3_core, bits, 1"].is_object());
    if stderr.contains("skipped: ") {
        assert!(rows.is_empty() && stderr.contains("Verilator"), "{stderr}");
        return;
    }
    let number = |row: &serde_json::Value, of: &str| row[of].as_f64().unwrap_or_default();
    let of = |bench: &str| rows.iter().filter(|row| row["bench"] == bench).collect();
    let three: Vec<_> = of("fpga-share-three");
    let cores: Vec<f64> = three.iter().map(|row| number(row, "cores")).collect();
    assert_eq!(cores, [1.0, 3.0, 12.0, 24.0, 48.0, 60.0]);
    for row in three {
        // The paper's core takes six cycles for what ours takes in one.
        assert!((number(row, "cycles_per_beat") - 1.0).abs() < 1e-9, "{row}");
        let faster = number(row, "gbit_per_s") / number(row, "paper_gbit_per_s");
        assert!((faster - 6.0).abs() < 0.02, "{row}");
        let faster = number(row, "aes_per_s") / number(row, "paper_aes_per_s");
        assert!((faster - 6.0).abs() < 0.05, "{row}");
    }
    let four: Vec<_> = of("fpga-share-four");
    assert_eq!(four.len(), 24);
    let (mut last, mut codes) = (0.0, 0.0);
    for row in four {
        let (cycles, fold) = (number(row, "cycles"), number(row, "fold"));
        assert!(cycles > fold * number(row, "products"), "{row}");
        // Codes cost cycles at the start and the end, whatever the number of products.
        if (fold, number(row, "products")) == (1.0, 16384.0) {
            codes = cycles - last;
            last = cycles;
            assert!(number(row, "gbit_per_s") > 105.0, "{row}");
        }
    }
    assert!((20.0..60.0).contains(&codes), "{codes}");
    let layers: Vec<_> = of("fpga-share-nodes");
    for row in &layers {
        // A message and its answer cross the network, and a word of a message leaves in a cycle.
        let words = number(row, "ands") / 128.0;
        assert!(number(row, "cycles") > f64::max(550.0, words), "{row}");
        assert!(number(row, "bytes_sent") > 16.0 * words, "{row}");
    }
    // Of four parties as well, where nodes for them were built.
    assert!([4, 7].contains(&layers.len()));
    let hosts: Vec<_> = of("fpga-share-hosts");
    assert_eq!(hosts.len(), 6);
    for row in hosts {
        let all = number(row, "registers") + number(row, "commands") + number(row, "completions");
        let asked = row["headless"] == false || row["node"] == 0;
        assert_eq!(asked, all > 0.0, "{row}");
        assert_eq!(asked, number(row, "cpu_ns") > 0.0, "{row}");
        assert_eq!(!asked, number(row, "armed_cpu_ns") > 0.0, "{row}");
    }
    for (of, said) in [
        ("cores", "cores of a party"),
        ("area", "of its LUTs"),
        ("batch", "products in a batch"),
        ("nodes", "ANDs in a layer"),
    ] {
        let figure = std::fs::read_to_string(folder.at(&format!("fig-{of}.svg")));
        let figure = figure.expect("a figure");
        assert!(figure.contains(said), "{figure}");
    }

    let table = folder.succeed("bench fpga-share");
    for said in [
        "10667",
        "200 Gb/s",
        "29.400",
        "26.3",
        "in parentheses",
        "node 0 starts all",
    ] {
        assert!(table.contains(said), "{said} is not in\n{table}");
    }
}

#[test]
fn netlists_that_are_not_there_are_skipped() {
    let folder = Folder::new();
    let printed = folder.veil("bench fpga-garble --circuits nowhere");
    let stderr = text(&printed.stderr);
    assert!(printed.status.success(), "{stderr}");
    assert!(
        stderr.contains("skipped: nowhere is no folder") && stderr.contains("AES_128_11.scd"),
        "{stderr}"
    );
    assert!(text(&printed.stdout).contains("tables per s"));
}

/// A bench that ends well has compared the sum of its products with what the numbers mean.
#[test]
fn products_of_fixed_point_numbers_are_compared() {
    let folder = Folder::new();
    let said = |arguments: &str| -> Vec<(String, String, String, u64)> {
        let printed = folder.succeed(&format!(
            "bench fixmul --batch 70 --repeat 2 --json {arguments}"
        ));
        let rows = printed.lines().map(serde_json::from_str);
        let rows: Vec<serde_json::Value> = rows.collect::<Result<_, _>>().expect("rows");
        let of = |row: &serde_json::Value| {
            assert_eq!(
                (&row["bench"], &row["batch"]),
                (&"fixmul".into(), &70.into())
            );
            assert!(row["rate_per_cpu_s"].as_f64() > Some(0.0), "{row}");
            let word = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
            let places = row["places"].as_u64().unwrap_or_default();
            (word("adversary"), word("truncation"), word("link"), places)
        };
        rows.iter().map(of).collect()
    };
    let of = |adversary: &str, places: u64, truncations: &[&str]| {
        let each = truncations
            .iter()
            .flat_map(|truncation| ["memory", "tls"].map(|link| (*truncation, link)));
        each.map(|(truncation, link)| (adversary.into(), truncation.into(), link.into(), places))
            .collect::<Vec<_>>()
    };
    let both = ["exact", "probabilistic"];
    assert_eq!(said("--protocol rep3"), of("semi-honest", 16, &both));
    assert_eq!(
        said("--protocol rep4 --places 20"),
        of("malicious", 20, &both)
    );
    let checked = "--protocol rep3 --adversary malicious";
    assert_eq!(said(checked), of("malicious", 16, &both[..1]));
    let drawn = said("--truncation probabilistic --link memory --places 1");
    assert_eq!(drawn, of("semi-honest", 1, &both[1..])[..1]);
    for (arguments, said) in [
        (
            "bench fixmul --truncation probabilistic --protocol rep3 --adversary malicious",
            "three parties of whom one is malicious round exactly",
        ),
        ("bench fixmul --places 31", "from 1 to 30"),
        ("bench fixmul --protocol yao", "among three or four parties"),
        (
            "bench mul64 --places 8",
            "--places and --truncation are of fixmul",
        ),
    ] {
        refuses(&folder, arguments, said);
    }
}

/// Parties answer a question, and a bench that ends well has compared what they opened.
#[test]
fn questions_are_answered_and_compared() {
    let folder = Folder::new();
    for protocol in ["rep3", "rep4"] {
        let printed = folder.succeed(&format!(
            "bench tpch --sf 0.001 --query 6 --protocol {protocol} --repeat 2 --json"
        ));
        let rows = printed.lines().map(serde_json::from_str);
        let rows: Vec<serde_json::Value> = rows.collect::<Result<_, _>>().expect("rows");
        let links: Vec<_> = rows.iter().map(|row| row["link"].as_str()).collect();
        assert_eq!(links, [Some("memory"), Some("tls")]);
        for row in &rows {
            assert_eq!(
                (&row["bench"], &row["query"], &row["opened"]),
                (&"tpch".into(), &"q06".into(), &1.into()),
                "{row}"
            );
            for field in ["passes", "rounds", "cpu_s", "bytes_sent"] {
                assert!(row[field].as_f64() > Some(0.0), "{field} of {row}");
            }
        }
        // A link changes no message.
        assert_eq!(rows[0]["rounds"], rows[1]["rounds"]);
    }
    for (arguments, said) in [
        ("bench tpch --query q23", "there is no question `q23` here"),
        ("bench tpch --sf 0", "no scale factor"),
        (
            "bench tpch --batch 7",
            "--batch and --svg have no meaning for tpch",
        ),
        ("bench and --sf 0.1", "--sf and --query are of tpch"),
    ] {
        refuses(&folder, arguments, said);
    }
}

#[test]
fn rows_are_joined_by_both_protocols() {
    let folder = Folder::new();
    for protocol in ["rep3", "rep4"] {
        let printed = folder.succeed(&format!(
            "bench join --batch 70 --protocol {protocol} --link memory --repeat 1 --json"
        ));
        let row: serde_json::Value = serde_json::from_str(&printed).expect("a row");
        assert_eq!(
            (&row["bench"], &row["protocol"], &row["batch"]),
            (&"join".into(), &protocol.into(), &70.into())
        );
        // Keys of 33 bits with 8 bytes beside them, in 140 rows, that go there and back.
        assert!(row["bytes_sent"].as_u64() > Some(140 * 17 * 44), "{row}");
    }
}
