//! Statistics between two parties: rows of several owners in cycles, owners that supply what their columns do not declare, and jobs that two
//! parties do not compute.

use std::fmt::Write as _;

use veil_job::{DataError, Holder, Order, Sink, Slice, Source, evaluate};
use veil_math::Ring;
use veil_program::{Job, stats::StatsResult};
use veil_session::Peer;

use crate::common::Case;
use crate::stats::{HEAD, close, figures, value};

/// A job of two parties: a joint block of `rows[0]` rows, one of `rows[1]` rows with another owner, and rows that `a` alone has.
fn case(rows: [usize; 3], compared: &str) -> Case {
    let mut job = format!(
        r#"{}
        column = [
            {{ name = "pay", type = "integer", min = -20, max = 100, missing = "drop-pair" }},
            {{ name = "age", type = "integer", min = 18, max = 99 }},
            {{ name = "region", type = "category", values = ["north", "south", "west", "east"], missing = "drop-pair" }},
        ]
        [[analysis]]
        name = "pay"
        kind = "variance"
        of = "pay"
        by = "region"
        to = "press"
        [[analysis]]
        name = "both"
        kind = "correlation"
        of = ["pay", "age"]
        to = "press"
        [[analysis]]
        name = "mean"
        kind = "mean-only"
        of = "age"
        by = "region"
        min_count = 4
        decimals = 2
        to = "press"
        [[analysis]]
        name = "eldest"
        kind = "max"
        of = "age"
        to = "press"
        "#,
        HEAD.replace("[\"p\", \"q\", \"c\"]", "[\"p\", \"c\"]")
    );
    let mut files = Vec::new();
    let holders = [("a", "b"), ("a", "c"), ("a", "a")];
    for (block, (count, (first, second))) in rows.into_iter().zip(holders).enumerate() {
        if count == 0 {
            continue;
        }
        let mut tables = [String::from("id,pay,age\n"), String::from("id,region\n")];
        let mut both = String::from("id,pay,age,region\n");
        for row in 0..count {
            let pay = match row % 9 {
                4 => String::new(),
                k => ((row * 37 + k) % 120).to_string(),
            };
            let pay = match pay.parse::<i64>() {
                Ok(pay) => (pay - 20).to_string(),
                Err(_) => pay,
            };
            let age = 18 + (row * 7 + block) % 81;
            let region = ["north", "south", "west", "", "east"][(row * 3 + row / 7 + block) % 5];
            let _ = writeln!(tables[0], "{row},{pay},{age}");
            let _ = writeln!(tables[1], "{row},{region}");
            let _ = writeln!(both, "{row},{pay},{age},{region}");
        }
        let _ = writeln!(job, "[[block]]\nname = \"{block}\"\nrows = {count}");
        if first == second {
            let _ = writeln!(
                job,
                "holds = {{ a = [\"pay\", \"age\", \"region\"] }}\nfiles = {{ a = \"own.csv\" }}"
            );
            files.push(("own.csv".to_owned(), both));
            continue;
        }
        let names = [first, second].map(|owner| format!("{block}-{owner}.csv"));
        let _ = writeln!(
            job,
            "holds = {{ a = [\"pay\", \"age\"], {second} = [\"region\"] }}\nfiles = {{ a = \"{}\", {second} = \"{}\" }}\n{}",
            names[0],
            names[1],
            if block == 0 {
                compared
            } else {
                "order = \"agreed\""
            }
        );
        files.extend(names.into_iter().zip(tables));
    }
    let case = Case::new(&[("job.toml", &job)]);
    for (name, text) in files {
        case.write(&name, text.as_bytes());
    }
    case
}

const AGREED: &str = "order = \"agreed\"";

fn result(case: &Case, job: &Job, sources: &[(Holder, &dyn Source)]) -> StatsResult {
    let output = job.sink(Peer::Recipient(0), &case.path("out")).unwrap();
    evaluate(
        job.spec(),
        sources,
        &[(Peer::Recipient(0), &output as &dyn Sink)],
    )
    .unwrap();
    output.statistics().unwrap().clone()
}

/// Against counting over the rows: many cycles, blocks of which one has far fewer rows than there are cycles, own rows alone.
#[test]
fn rows_of_cycles_and_own_rows_count_once() {
    for (rows, cycles) in [
        ([3000, 0, 0], true),
        ([2500, 3, 0], true),
        ([1, 700, 40], true),
        ([1, 1, 0], false),
        ([0, 0, 70], false),
    ] {
        let case = case(rows, AGREED);
        let job = case.load().unwrap();
        assert_eq!(job.spec().circuit.clock.cycles > 1, cycles, "{rows:?}");
        let output = case.evaluate(&job, Peer::Recipient(0)).unwrap();
        let clear = job.clear_statistics(Peer::Recipient(0)).unwrap().unwrap();
        let result = output.statistics().unwrap();
        assert_eq!(result.analyses, clear.analyses, "{rows:?}");
    }
}

/// An owner that supplies something else.
struct Forged<'a> {
    of: &'a dyn Source,
    forge: &'a (dyn Fn(&str, &mut [u8]) + Sync),
    names: Vec<String>,
}

impl Source for Forged<'_> {
    fn fill(&self, port: usize, slice: Slice, into: &mut [u8]) -> Result<(), DataError> {
        self.of.fill(port, slice, into)?;
        (self.forge)(&self.names[port], into);
        Ok(())
    }
}

fn forged(case: &Case, forge: &(dyn Fn(&str, &mut [u8]) + Sync)) -> StatsResult {
    let job = case.load().unwrap();
    let names = job
        .spec()
        .circuit
        .inputs
        .iter()
        .map(|port| port.name.clone());
    let names: Vec<String> = names.collect();
    let sources = case.sources(&job).unwrap();
    let sources: Vec<(Holder, Forged<'_>)> = sources
        .iter()
        .map(|(holder, of)| {
            let names = names.clone();
            (
                *holder,
                Forged {
                    of: of.as_ref(),
                    forge,
                    names,
                },
            )
        })
        .collect();
    let sources: Vec<(Holder, &dyn Source)> = sources
        .iter()
        .map(|(holder, source)| (*holder, source as &dyn Source))
        .collect();
    result(case, &job, &sources)
}

fn counts(result: &StatsResult, region: &str, want: f64) -> bool {
    close(&value(figures(result, "pay", &[region]), "count"), want)
}

/// The cells of a port, in all cycles: all of their bits are set.
#[test]
fn cells_beyond_their_column_count_as_missing_or_as_the_least() {
    let case = case([40, 0, 0], AGREED);
    // A pay of -1 is in range, and there: with the sign alone it is -128, which is not.
    let low = |name: &str, bits: &mut [u8]| {
        if name.contains("pay") {
            for cell in bits.chunks_exact_mut(9) {
                cell.copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 1, 1]);
            }
        }
    };
    let found = forged(&case, &low);
    for region in ["north", "south", "west"] {
        assert!(counts(&found, region, 0.0), "{region}");
    }
    // The seventh region, of four.
    let codes = |name: &str, bits: &mut [u8]| {
        if name.contains("region") {
            bits.fill(1);
        }
    };
    let found = forged(&case, &codes);
    for region in ["north", "south", "west", "east"] {
        assert!(counts(&found, region, 0.0), "{region}");
    }
    // An age that must be there is the least one.
    let ages = |name: &str, bits: &mut [u8]| {
        if name.contains("age") && !name.contains("largest") {
            bits.fill(1);
        }
    };
    let found = forged(&case, &ages);
    let mean = value(figures(&found, "mean", &["north"]), "mean");
    assert!(close(&mean, 18.0), "{mean:?}");
}

/// Sums that no rows of the declared ranges have are 0.
#[test]
fn sums_of_own_rows_beyond_what_rows_can_have_are_none() {
    let case = case([0, 0, 60], AGREED);
    let honest = forged(&case, &|_, _| {});
    assert!(!counts(&honest, "north", 0.0));
    let all = |name: &str, bits: &mut [u8]| {
        if name.contains("sums of own rows") {
            // -1 in all sums: a number of rows is not negative, a sum of pay can be.
            bits.fill(1);
        }
    };
    let found = forged(&case, &all);
    for region in ["north", "south", "west"] {
        assert!(counts(&found, region, 0.0), "{region}");
    }
    assert_eq!(
        value(figures(&found, "both", &[]), "count").value(),
        Some(0.0)
    );
}

/// Rows before the first of the first cycle are not there, whatever an owner supplies for them.
#[test]
fn rows_that_are_none_count_nothing() {
    let case = case([2500, 3, 0], AGREED);
    let honest = forged(&case, &|_, _| {});
    let job = case.load().unwrap();
    let cycles = job.spec().circuit.clock.cycles;
    // 3 rows of as many as there are cycles: all cells of all cycles but those of the last three rows are forged.
    let forge = |name: &str, bits: &mut [u8]| {
        if name.contains("block 2") {
            let width = bits.len() / cycles as usize;
            let last = bits.len() - 3 * width;
            bits[..last].fill(1);
        }
    };
    assert!(cycles > 3);
    assert_eq!(forged(&case, &forge).analyses, honest.analyses);
}

/// The contract has the order that owners compare, for all rows of the block.
#[test]
fn the_order_of_one_block_is_compared() {
    let case = case([130, 2, 0], "align = { column = \"id\", every = 50 }");
    let job = case.load().unwrap();
    let block = &job.spec().blocks[0];
    assert_eq!((block.rows, block.name.as_str()), (1, "0"));
    assert_eq!(
        block.order,
        Order::InCycles {
            rows: 130,
            every: 50,
            duplicates: false
        }
    );
    assert_eq!(job.spec().circuit.ring, Ring::Bits);
}

#[test]
fn what_two_parties_do_not_compute_is_said() {
    let case = case([20, 0, 0], AGREED);
    let text = std::fs::read_to_string(case.path("job.toml")).unwrap();
    case.write(
        "job.toml",
        format!("{text}\n[keep]\nas = \"kept\"\n").as_bytes(),
    );
    assert_eq!(
        case.load().unwrap_err(),
        "job.toml:6:11: two parties keep no shares, and load none; name three parties, or four, or leave out `[keep]`"
    );
    let both = format!(
        "{text}\n[[block]]\nname = \"more\"\nrows = 4\nholds = {{ a = [\"pay\", \"age\"], b = [\"region\"] }}\nalign = {{ column = \"id\", every = 16 }}\n"
    );
    let both = both.replacen(AGREED, "align = { column = \"id\", every = 16 }", 1);
    case.write("job.toml", both.as_bytes());
    let error = case.load().unwrap_err();
    assert!(
        error.contains(
            "two parties compare the order of the rows of one block, and `more` is a second one"
        ),
        "{error}"
    );
}
