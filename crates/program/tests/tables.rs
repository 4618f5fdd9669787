//! Tables of owners: every mistake is found before anything is shared, and named by file, line, row and column.

use crate::common::{Case, RESHARE};
use veil_job::{Slice, Source};
use veil_testkit::Seed;

const JOB: &str = r#"
version = 1
kind = "stats"
name = "study"
owners = ["a"]
parties = ["p", "q", "r"]
recipients = ["press"]
column = [
    { name = "pay", type = "decimal", scale = 2, min = 0, max = "100.00" },
    { name = "age", type = "integer", min = -5, max = 5, missing = "drop-pair" },
    { name = "kind", type = "category", values = ["x", "y, z"] },
]
block = [{ name = "all", rows = 2, holds = { a = ["pay", "age", "kind"] }, files = { a = "a.csv" } }]
analysis = [
    { name = "pay", kind = "mean", of = "pay", by = "kind", to = "press" },
    { name = "age", kind = "sum", of = "age", to = "press" },
]
"#;

fn read(table: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let case = Case::new(&[("job.toml", JOB)]);
    case.write("a.csv", table);
    let job = case.load().unwrap();
    let sources = case.sources(&job)?;
    let source: &dyn Source = sources[0].1.as_ref();
    let ports = job.spec().circuit.inputs.iter().enumerate();
    let values = ports.map(|(port, input)| {
        let mut into = vec![0; input.width as usize * 16];
        source
            .fill(
                port,
                Slice {
                    block: 0,
                    first: 0,
                    rows: 2,
                },
                &mut into,
            )
            .unwrap();
        into
    });
    Ok(values.collect())
}

fn elements(values: &[i64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

#[test]
fn tables_of_any_sensible_form_are_read() {
    let want = vec![
        elements(&[1250, 300, 1, 1]),
        elements(&[-5, 0, 1, 0]),
        elements(&[1, 0, 0, 1]),
    ];
    for table in [
        "pay,age,kind\n12.50,-5,x\n3,,\"y, z\"\n",
        "\u{feff}pay,age,kind\r\n12.5,-5,x\r\n3.00,,\"y, z\"",
        "\u{feff}\"pay\",\"age\",\"kind\"\n\"12.50\",\"-5\",\"x\"\n\"3\",\"\",\"y, z\"\n",
        "id,kind,note,age,pay\n1,x,\"a\nb\", -5 ,12.50\n2,\"y, z\",\"\"\"\",,3\n\n",
    ] {
        assert_eq!(read(table.as_bytes()).as_ref(), Ok(&want), "{table}");
    }
}

#[test]
fn mistakes_are_named() {
    let header = "pay,age,kind\n";
    for (table, message) in [
        (
            "",
            "a.csv: the file is empty, or its first line is; the first line must name the columns",
        ),
        (
            "pay,kind\n",
            "a.csv: no column `age`; the header names `pay`, `kind`",
        ),
        (
            "pay;age;kind\n",
            "a.csv: line 1: the columns are delimited by `;`; put `delimiter = \";\"` into block `all` of the job",
        ),
        (
            "pay,age,kind,pay\n",
            "a.csv: column `pay` is there twice; rename or remove one",
        ),
        (
            "pay,age,kind\n1,1,x\n",
            "a.csv has 1 rows, but the job declares 2 for block `all`; give the whole table, or change `rows`",
        ),
        ("pay,age,kind\n", "a.csv has 0 rows, but the job declares 2"),
        (
            "pay,age,kind\n1,1,x\n1,1,x\n1,1,x\n1,1,x\n",
            "a.csv has 4 rows, but the job declares 2",
        ),
        (
            "pay,age,kind\n1,1,x\n1,1\n",
            "a.csv: line 3 (row 2): 2 cells, but the header has 3; check for a missing or an extra comma or quote",
        ),
    ] {
        let found = read(table.as_bytes()).expect_err(table);
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    for (row, message) in [
        (
            "100.01,1,x",
            "column `pay`: `100.01` is outside the declared range 0.00 to 100.00; correct it, or declare a wider range in the job",
        ),
        (
            "-0.01,1,x",
            "column `pay`: `-0.01` is outside the declared range",
        ),
        (
            "1.234,1,x",
            "column `pay`: `1.234` has more than 2 digits after the point; round it, or raise the scale of the column",
        ),
        (
            "\"1,5\",1,x",
            "column `pay`: `1,5` looks like 1.5; put `decimal = \",\"` into the column if that is meant",
        ),
        (
            "\"1,234.5\",1,x",
            "column `pay`: `1,234.5` looks like 1234.5; put `thousands = \",\"` into the column if that is meant",
        ),
        (
            "1e2,1,x",
            "column `pay`: `1e2` is in scientific notation; write all digits",
        ),
        (
            ",1,x",
            "column `pay`: `` is empty; give a value, or declare what a missing one means: missing = \"drop-pair\", \"drop-row\" or \"zero\"",
        ),
        (
            "NA,1,x",
            "column `pay`: `NA` is not a value; leave the cell empty where a value is missing, or list it in `missing` of `written`",
        ),
        (
            "1,1.5,x",
            "column `age`: `1.5` is not an integer; round it, or declare the column as decimal",
        ),
        (
            "1,6,x",
            "column `age`: `6` is outside the declared range -5 to 5",
        ),
        (
            "1,1,X",
            "column `kind`: `X` is not one of the declared values `x`, `y, z`",
        ),
        ("1,1,", "column `kind`: `` is empty"),
    ] {
        let found = read(format!("{header}1,1,x\n{row}\n").as_bytes()).expect_err(row);
        assert!(
            found.starts_with(&format!("a.csv: line 3 (row 2), {message}")),
            "{found}\n{message}"
        );
    }
    let found = read(b"pay,age,kind\n1,1,\xff\n1,1,x\n").unwrap_err();
    assert!(
        found.starts_with("a.csv: line 2 (row 1), column `kind`"),
        "{found}"
    );
}

#[test]
fn all_bad_cells_are_reported_at_once_but_not_endlessly() {
    let found = read(b"pay,age,kind\n-1,9,q\n1,1,x\n").unwrap_err();
    assert_eq!(found.lines().count(), 3, "{found}");
    let case = Case::new(&[("job.toml", &JOB.replace("rows = 2", "rows = 1000"))]);
    case.write(
        "a.csv",
        format!("pay,age,kind\n{}", "-1,1,x\n".repeat(1000)).as_bytes(),
    );
    let found = case.sources(&case.load().unwrap()).map(|_| ()).unwrap_err();
    assert_eq!(found.lines().count(), 21);
    assert!(
        found.ends_with("… and 980 more cells of this file"),
        "{found}"
    );
}

#[test]
fn a_quote_that_is_never_closed_does_not_swallow_the_memory() {
    let mut table = b"pay,age,kind\n1,1,\"x\n".to_vec();
    table.resize(40 << 20, b'1');
    let found = read(&table).unwrap_err();
    assert!(
        found.contains("look for a quote that is never closed"),
        "{found}"
    );
}

#[test]
fn declared_rows_reserve_no_memory() {
    let case = Case::new(&[
        ("job.toml", &JOB.replace("rows = 2", "rows = 1000000000000")),
        ("a.csv", "pay,age,kind\n1,1,x\n"),
    ]);
    let found = case.sources(&case.load().unwrap()).map(|_| ()).unwrap_err();
    assert!(
        found.starts_with("a.csv has 1 rows, but the job declares 1000000000000"),
        "{found}"
    );
}

#[test]
fn files_may_be_given_beside_the_job() {
    let case = Case::new(&[
        ("job.toml", JOB),
        ("other.csv", "pay,age,kind\n1,1,x\n2,2,x\n"),
    ]);
    let given = |what: &str| {
        let files = [(("a".to_owned(), what.to_owned()), case.path("other.csv"))]
            .into_iter()
            .collect();
        veil_program::Job::load(&case.path("job.toml"), files)
    };
    let job = given("all").unwrap();
    assert_eq!(case.sources(&job).unwrap().len(), 1);
    let error = case.shorten(&given("some").unwrap_err().to_string());
    assert!(
        error.ends_with("`a` supplies no `some` in this job; it supplies `all`"),
        "{error}"
    );
}

#[test]
fn damaged_tables_never_panic() {
    let good = "\u{feff}pay,age,kind\r\n12.50,-5,x\n\"3\",,\"y, z\"\n".as_bytes();
    let case = Case::new(&[("job.toml", JOB)]);
    let job = case.load().unwrap();
    let mut numbers = Seed(7).numbers("damaged tables");
    let mut accepted = 0;
    for _ in 0..3000 {
        let mut table = good.to_vec();
        for _ in 0..=numbers.index(4) {
            let at = numbers.index(table.len().max(1));
            match numbers.index(4) {
                0 => table.truncate(at),
                1 => table.insert(
                    at.min(table.len()),
                    b",\"\n\r.-9x \0\xff"[numbers.index(11)],
                ),
                2 if !table.is_empty() => drop(table.remove(at)),
                _ if !table.is_empty() => table[at] ^= 1 << numbers.index(8),
                _ => {}
            }
        }
        case.write("a.csv", &table);
        accepted += usize::from(case.sources(&job).is_ok());
    }
    assert!(
        accepted > 0 && accepted < 3000,
        "{accepted} of 3000 were still fine"
    );
}

#[test]
fn damaged_jobs_never_panic() {
    let mut numbers = Seed(11).numbers("damaged jobs");
    let mut accepted = 0;
    for round in 0..3000 {
        let mut text = [JOB, RESHARE][round % 2].as_bytes().to_vec();
        for _ in 0..=numbers.index(3) {
            let at = numbers.index(text.len());
            match numbers.index(3) {
                0 => drop(text.remove(at)),
                1 => text[at] = b"0123456789\"[]{},=\nxy"[numbers.index(20)],
                _ => text.insert(at, b"0123456789\"[]{},=\nxy"[numbers.index(20)]),
            }
        }
        let text = String::from_utf8_lossy(&text);
        accepted += usize::from(
            veil_program::Job::parse(&text, "job.toml".as_ref(), veil_program::Files::new())
                .is_ok(),
        );
    }
    assert!(
        accepted > 0 && accepted < 3000,
        "{accepted} of 3000 were still fine"
    );
}
