//! Jobs that count the keys that two parties have in common, add up their values, or open columns of the other party: by the circuit of the job, against sets of keys.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;
use veil_job::{Audience, Slice};
use veil_program::{OfCommon, Output};
use veil_session::{PartyId, Peer};

use crate::common::Case;

const PARTIES: [Peer; 2] = [Peer::Party(PartyId::TWO[0]), Peer::Party(PartyId::TWO[1])];

/// A job that opens this, of tables of so many rows.
pub(crate) fn job(opens: &str, [left, right]: [u32; 2]) -> String {
    let cost = "{ name = \"cost\", type = \"decimal\", scale = 2, min = \"-50\", max = \"99.99\" }";
    let visits = "{ name = \"visits\", type = \"integer\", min = 3, max = 12, null = true }";
    let (mine, theirs) = match opens {
        "sums" => (format!(", {visits}"), format!(", {cost}, {visits}")),
        "columns" => {
            let day = "{ name = \"day\", type = \"date\", min = \"2020-01-01\", max = \"2024-12-31\", null = true }";
            let ward = "{ name = \"ward\", type = \"category\", values = [\"north\", \"south\", \"east\"] }";
            let well = "{ name = \"well\", type = \"bool\" }";
            (
                String::new(),
                format!(", {cost}, {visits}, {day}, {ward}, {well}"),
            )
        }
        _ => (String::new(), String::new()),
    };
    format!(
        r#"version = 1
kind = "psi"
name = "both"
owners = ["a", "b"]
parties = ["a", "b"]
recipients = []

[[table]]
name = "left"
owner = "a"
rows = {{ up_to = {left} }}
file = "a.csv"
column = [{{ name = "id", type = "key" }}{mine}]

[[table]]
name = "right"
owner = "b"
rows = {{ up_to = {right} }}
file = "b.csv"
column = [{{ name = "id", type = "key", of = ["id"] }}{theirs}]

[intersection]
opens = "{opens}"
to = "a"
"#
    )
}

/// The values of a row of either table.
#[derive(Clone, Debug)]
struct Row {
    visits: Option<i64>,
    cents: i64,
}

type Rows = BTreeMap<u32, Row>;

const WARDS: [&str; 3] = ["north", "south", "east"];

fn decimal(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.abs() / 100, cents.abs() % 100)
}

fn visits(row: &Row) -> String {
    row.visits
        .map(|visits| visits.to_string())
        .unwrap_or_default()
}

/// What follows the key of a row of the second table.
fn columns(key: u32, row: &Row) -> String {
    let day = if key.is_multiple_of(5) {
        String::new()
    } else {
        format!("2021-03-{:02}", 1 + key % 28)
    };
    let (ward, well) = (WARDS[key as usize % 3], key.is_multiple_of(2));
    format!("{},{},{day},{ward},{well}", decimal(row.cents), visits(row))
}

fn files(left: &Rows, right: &Rows) -> [String; 2] {
    let mut a = "id,visits\n".to_owned();
    for (key, row) in left {
        let _ = writeln!(a, "{key},{}", visits(row));
    }
    let mut b = "id,cost,visits,day,ward,well\n".to_owned();
    // Not in the order of keys.
    for (key, row) in right.iter().rev() {
        let _ = writeln!(b, "{key},{}", columns(*key, row));
    }
    [a, b]
}

fn found(job: &str, [a, b]: [&str; 2], peer: Peer) -> Result<OfCommon, String> {
    let case = Case::new(&[("job.toml", job), ("a.csv", a), ("b.csv", b)]);
    let job = case.load()?;
    match case.evaluate(&job, peer)? {
        Output::OfCommon(sink) => Ok(sink.found().unwrap().clone()),
        other => Err(format!("{other:?}")),
    }
}

fn both<'a>(left: &'a Rows, right: &'a Rows) -> Vec<(u32, &'a Row, &'a Row)> {
    let common = left
        .iter()
        .filter_map(|(key, row)| Some((*key, row, right.get(key)?)));
    common.collect()
}

fn numbers(size: usize, sums: &[(&str, String)]) -> OfCommon {
    OfCommon::Numbers {
        size: Some(size as u64),
        sums: sums
            .iter()
            .map(|(name, sum)| ((*name).to_owned(), Some(sum.clone())))
            .collect(),
    }
}

fn expected_sums(left: &Rows, right: &Rows) -> OfCommon {
    let both = both(left, right);
    let [mut mine, mut cost, mut theirs] = [0; 3];
    for (_, a, b) in &both {
        mine += a.visits.unwrap_or(0);
        theirs += b.visits.unwrap_or(0);
        cost += b.cents;
    }
    numbers(
        both.len(),
        &[
            ("left.visits", mine.to_string()),
            ("right.cost", decimal(cost)),
            ("right.visits", theirs.to_string()),
        ],
    )
}

fn rows(most: usize) -> impl Strategy<Value = Rows> {
    let visits = prop::option::of(3i64..=12);
    let row = (visits, -5000i64..=9999).prop_map(|(visits, cents)| Row { visits, cents });
    prop::collection::btree_map(0u32..60, row, 1..=most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// Sizes, sums and columns are those of sets, whatever the lengths of both lists are.
    #[test]
    fn what_is_opened_is_that_of_the_sets(left in rows(40), right in rows(25), more in 0u32..30) {
        let capacities = [left.len() as u32 + more, right.len() as u32 + more / 2];
        let texts = files(&left, &right);
        let texts = [texts[0].as_str(), texts[1].as_str()];
        let size = found(&job("size", capacities), texts, PARTIES[0]).unwrap();
        prop_assert_eq!(size, numbers(both(&left, &right).len(), &[]));
        let sums = found(&job("sums", capacities), texts, PARTIES[0]).unwrap();
        prop_assert_eq!(sums, expected_sums(&left, &right));
        let OfCommon::Keys(keys) = found(&job("columns", capacities), texts, PARTIES[0]).unwrap() else {
            return Err(TestCaseError::fail("numbers where keys are wanted"));
        };
        let wanted = both(&left, &right).into_iter().map(|(key, _, row)| format!("{key},{}", columns(key, row)));
        let got = keys.keys.iter().map(|key| key.join(","));
        prop_assert_eq!(got.collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
        prop_assert_eq!(keys.of, left.len() as u64);
        prop_assert_eq!(keys.columns, ["id", "right.cost", "right.visits", "right.day", "right.ward", "right.well"]);
    }
}

fn some_rows(keys: impl Iterator<Item = u32>) -> Rows {
    keys.map(|key| {
        let row = Row {
            visits: (key % 4 != 0).then(|| i64::from(3 + key % 10)),
            cents: i64::from(key % 1499) * 10 - 5000,
        };
        (key, row)
    })
    .collect()
}

/// Many bins, in several cycles, and lists of other lengths.
#[test]
fn long_lists_lie_in_bins() {
    let left = some_rows((0..3000).map(|at| at * 3));
    let right = some_rows((0..900).map(|at| at * 2));
    let texts = files(&left, &right);
    let texts = [texts[0].as_str(), texts[1].as_str()];
    let text = job("sums", [3000, 1000]);
    let case = Case::new(&[("job.toml", &text)]);
    let spec = case.load().unwrap().spec().clone();
    assert!(spec.circuit.clock.cycles > 1);
    assert_eq!(
        found(&text, texts, PARTIES[0]).unwrap(),
        expected_sums(&left, &right)
    );
    let columns = found(&job("columns", [3000, 1000]), texts, PARTIES[0]).unwrap();
    let OfCommon::Keys(keys) = columns else {
        panic!("{columns:?}");
    };
    assert_eq!(keys.keys.len(), both(&left, &right).len());
}

/// The second party may learn columns of the first one, a recipient that computes nothing numbers, and both parties.
#[test]
fn others_may_learn_it() {
    let (left, right) = (some_rows(0..9), some_rows(4..20));
    let texts = files(&left, &right);
    let texts = [texts[0].as_str(), texts[1].as_str()];
    let text = job("sums", [9, 16]);
    let outside = text
        .replace("recipients = []", "recipients = [\"eve\"]")
        .replace("to = \"a\"", "to = \"eve\"");
    let parties = text.replace("to = \"a\"", "to = \"parties\"");
    let expected = expected_sums(&left, &right);
    for (text, peers) in [
        (outside, &[Peer::Recipient(0)][..]),
        (parties, &PARTIES[..]),
    ] {
        for peer in peers {
            assert_eq!(found(&text, texts, *peer).unwrap(), expected);
        }
    }
    let turned = job("columns", [9, 16])
        .replace("\"a\"", "\"x\"")
        .replace("\"b\"", "\"a\"")
        .replace("\"x\"", "\"b\"");
    // Now the party of the first table is `b`, and of the second `a`: the order of parties is that of the job.
    let turned = turned.replace("[\"b\", \"a\"]", "[\"a\", \"b\"]");
    let case = Case::new(&[
        ("job.toml", &turned),
        ("a.csv", texts[0]),
        ("b.csv", texts[1]),
    ]);
    let job = case.load().unwrap();
    assert_eq!(job.spec().audiences, [Audience::Party(PartyId::TWO[1])]);
    let Output::OfCommon(sink) = case.evaluate(&job, PARTIES[1]).unwrap() else {
        panic!("it opens columns");
    };
    let Some(OfCommon::Keys(keys)) = sink.found() else {
        panic!("{sink:?}");
    };
    assert_eq!(keys.keys.len(), 5);
    let written = std::fs::read_to_string(case.path("out/common.csv")).unwrap();
    assert_eq!(written.lines().count(), 6);
}

/// Fewer keys than a job shows are shown as none, and so are their sums.
#[test]
fn few_keys_are_not_shown() {
    let (left, right) = (some_rows(0..9), some_rows(4..20));
    let texts = files(&left, &right);
    let texts = [texts[0].as_str(), texts[1].as_str()];
    let least = |least: u32| {
        let text =
            job("sums", [9, 16]).replace("to = \"a\"", &format!("to = \"a\"\nmin_keys = {least}"));
        found(&text, texts, PARTIES[0]).unwrap()
    };
    assert_eq!(least(5), expected_sums(&left, &right));
    let OfCommon::Numbers { size, sums } = least(6) else {
        panic!("numbers are wanted");
    };
    assert_eq!(size, None);
    assert!(sums.iter().all(|(_, sum)| sum.is_none()), "{sums:?}");
}

/// Bits that no table has: lists out of order or with a key twice, empty slots before others, more keys than declared, values beyond their range.
#[test]
fn slots_that_no_table_fills_count_as_none() {
    let (left, right) = (some_rows(0..6), some_rows(0..6));
    let text = job("sums", [6, 6]);
    let texts = files(&left, &right);
    let case = Case::new(&[
        ("job.toml", &text),
        ("a.csv", &texts[0]),
        ("b.csv", &texts[1]),
    ]);
    let job = case.load().unwrap();
    let spec = job.spec();
    let circuit = &spec.circuit;
    assert_eq!(circuit.clock.cycles, 1);
    let only = Slice {
        block: 0,
        first: 0,
        rows: 1,
    };
    let given: Vec<Vec<u8>> = (job.holders().into_iter().enumerate())
        .map(|(port, holder)| {
            let mut bits = vec![0; circuit.inputs[port].width as usize];
            job.source(holder)
                .unwrap()
                .fill(port, only, &mut bits)
                .unwrap();
            bits
        })
        .collect();
    let open = |given: &[Vec<u8>]| -> Vec<u64> {
        let inputs: Vec<Vec<u128>> = given
            .iter()
            .map(|bits| bits.iter().map(|bit| u128::from(*bit)).collect())
            .collect();
        let outputs = circuit.evaluate(&inputs).unwrap();
        let number = |bits: &Vec<u128>| {
            bits.iter()
                .zip(0..)
                .map(|(bit, at)| (*bit as u64) << at)
                .sum()
        };
        outputs.iter().map(number).collect()
    };
    let all = open(&given);
    assert_eq!(all[0], 6);
    let slot = given[1].len() / 6;
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut given = given.clone();
        change(&mut given[1]);
        open(&given)
    };
    let none = vec![0; all.len()];
    // Two slots exchanged.
    assert_eq!(changed(&|bits| bits.rotate_left(slot)), none);
    // A key twice.
    assert_eq!(changed(&|bits| bits.copy_within(..slot, slot)), none);
    // The first slot is empty: its highest bit makes it the largest.
    let tag = slot - 1 - (15 + 4 + 1);
    assert_eq!(changed(&|bits| bits[tag] = 1), none);
    // The last slot is empty: one key less.
    assert_eq!(changed(&|bits| bits[5 * slot + tag] = 1)[0], 5);
    // A number of visits beyond its range, in a row that has one: the row is none. Where it has none, the bits say nothing.
    for at in 0..6 {
        let flag = given[1][at * slot + slot - 1];
        let after = changed(&|bits| bits[at * slot + slot - 5..][..4].fill(1));
        if flag == 1 {
            assert_eq!(after[0], 5);
        } else {
            assert_eq!(after, all);
        }
    }
}

/// A party that has declared fewer keys than its slots hold has no more of them: all of it counts as none.
#[test]
fn no_party_has_more_keys_than_it_has_declared() {
    let rows = some_rows((0..2000).map(|at| at * 7));
    let texts = files(&rows, &rows);
    let wide = Case::new(&[
        ("job.toml", &job("size", [2000, 2000])),
        ("a.csv", &texts[0]),
        ("b.csv", &texts[1]),
    ]);
    let wide = wide.load().unwrap();
    let circuit = &wide.spec().circuit;
    assert!(circuit.clock.cycles > 1);
    let only = Slice {
        block: 0,
        first: 0,
        rows: 1,
    };
    let fill = |port: usize| {
        let width = circuit.inputs[port].width as usize * circuit.clock.cycles as usize;
        let mut bits = vec![0; width];
        let source = wide.source(wide.holders()[port]).unwrap();
        source.fill(port, only, &mut bits).unwrap();
        bits
    };
    let given = [fill(0), fill(1)];
    let size = |given: &[Vec<u8>; 2]| -> u64 {
        let inputs = given
            .each_ref()
            .map(|bits| bits.iter().map(|bit| u128::from(*bit)).collect());
        let outputs = circuit.evaluate(&inputs).unwrap();
        outputs[0]
            .iter()
            .zip(0..)
            .map(|(bit, at)| (*bit as u64) << at)
            .sum()
    };
    assert_eq!(size(&given), 2000);
    // One more: the first slot that is empty gets a tag above all others of its bin.
    let mut more = given.clone();
    let tag = wide.spec().schema.split("tag = the next ").nth(1).unwrap();
    let tag: usize = tag.split(';').next().unwrap().parse().unwrap();
    let slot = more[1]
        .chunks_exact_mut(tag + 1)
        .find(|slot| slot[tag] == 1)
        .unwrap();
    slot.fill(1);
    slot[tag] = 0;
    assert_eq!(size(&more), 0);
}

/// Values of one row are opened for a key: a key that is there twice is a mistake, where the plain job takes it as one.
#[test]
fn a_key_has_one_row() {
    let rows = some_rows(0..4);
    let [a, b] = files(&rows, &rows);
    let twice = b.clone() + "3,1.00,5,2021-01-01,north,true\n";
    let error = found(&job("sums", [4, 5]), [&a, &twice], PARTIES[0]).unwrap_err();
    assert!(
        error.contains("b.csv: row 5: a row before it has the same key"),
        "{error}"
    );
    assert_eq!(
        found(&job("size", [4, 5]), [&a, &twice], PARTIES[0]).unwrap(),
        numbers(4, &[])
    );
}

/// The result's texts are those of the keys that were compared: both ends of a party have one reading of its file.
#[test]
fn a_file_that_changes_between_both_ends_gives_no_other_texts() {
    let rows = some_rows(0..4);
    let [a, b] = files(&rows, &rows);
    for opens in ["keys", "columns"] {
        let case = Case::new(&[
            ("job.toml", &job(opens, [4, 4])),
            ("a.csv", &a),
            ("b.csv", &b),
        ]);
        let job = case.load().unwrap();
        let sources: Vec<_> = job
            .holders()
            .into_iter()
            .map(|holder| (holder, job.source(holder).unwrap()))
            .collect();
        case.write("a.csv", a.replace("\n0,", "\n8,").as_bytes());
        let output = job.sink(PARTIES[0], &case.path("out")).unwrap();
        let sources: Vec<_> = sources
            .iter()
            .map(|(holder, source)| (*holder, source.as_ref()))
            .collect();
        let sink: &dyn veil_job::Sink = &output;
        veil_job::evaluate(job.spec(), &sources, &[(PARTIES[0], sink)]).unwrap();
        let written = std::fs::read_to_string(case.path("out/common.csv")).unwrap();
        let keys = written.lines().skip(1);
        let keys = keys.map(|line| line.split(',').next().unwrap());
        assert_eq!(keys.collect::<Vec<_>>(), ["0", "1", "2", "3"], "{opens}");
        // The next run reads the file as it is.
        drop((sources, output));
    }
}
