//! Benches run and say what ran; how fast is not asserted.

mod common;

use common::{Folder, text};

#[test]
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
    let refused = folder.veil("bench rep4-mul --protocol rep3");
    assert!(text(&refused.stderr).contains("of four parties"));
    let refused = folder.veil("bench and --protocol rep3 --adversary none");
    assert!(text(&refused.stderr).contains("\"semi-honest\" or \"malicious\""));
}

#[test]
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
