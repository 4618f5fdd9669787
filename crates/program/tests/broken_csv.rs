//! CSV files as they come: forms that are read, and broken ones, each with the sentence that a person needs.

use crate::common::Case;
use veil_job::{Slice, Source};

const JOB: &str = r#"
version = 1
kind = "stats"
name = "study"
owners = ["a"]
parties = ["p", "q", "r"]
recipients = ["press"]
column = [
    { name = "pay", type = "decimal", scale = 2, min = 0, max = "9999.99" MARKS },
    { name = "since", type = "date", min = "2000-01-01", max = "2029-12-31" FORMAT },
]
block = [{ name = "all", rows = 2, holds = { a = ["pay", "since"] }, files = { a = "a.csv" } BLOCK }]
analysis = [
    { name = "pay", kind = "sum", of = "pay", to = "press" },
    { name = "since", kind = "mean", of = "since", to = "press" },
]
"#;

fn case(marks: &str, format: &str, block: &str) -> Case {
    let job = JOB
        .replace("MARKS", marks)
        .replace("FORMAT", format)
        .replace("BLOCK", block);
    Case::new(&[("job.toml", &job)])
}

fn read(case: &Case, table: &[u8]) -> Result<Vec<i64>, String> {
    case.write("a.csv", table);
    let job = case.load()?;
    let sources = case.sources(&job)?;
    let source: &dyn Source = sources[0].1.as_ref();
    let mut values = Vec::new();
    for port in 0..2 {
        let slice = Slice {
            block: 0,
            first: 0,
            rows: 2,
        };
        let mut into = [0; 32];
        source.fill(port, slice, &mut into).unwrap();
        let element = |at: usize| i64::from_le_bytes(into[8 * at..8 * at + 8].try_into().unwrap());
        values.extend([element(0), element(1)]);
    }
    Ok(values)
}

/// 2025-03-14 and the day after.
const DAYS: [i64; 2] = [20_161, 20_162];

#[test]
fn declared_forms_are_read() {
    for (marks, format, block, table) in [
        ("", "", "", "pay,since\n1234.50,2025-03-14\n2,2025-03-15"),
        (
            "",
            "",
            "",
            "\u{feff}pay,since\r\n1234.50,2025-03-14\n\n\"2.00\",\"2025-03-15\"\r\n",
        ),
        (
            ", decimal = \",\"",
            ", format = \"%d.%m.%Y\"",
            ", delimiter = \";\"",
            "pay;since\n1234,50;14.03.2025\n2,0;15.03.2025\n",
        ),
        (
            ", decimal = \",\", thousands = \".\"",
            "",
            ", delimiter = { a = \"\\t\" }",
            "since\tpay\n2025-03-14\t1.234,50\n2025-03-15\t2\n",
        ),
        (
            ", thousands = \"\u{202f}\"",
            ", format = \"%Y%m%d\"",
            ", delimiter = \"|\"",
            "pay|since\n1\u{202f}234.5|20250314\n2|20250315\n",
        ),
        // What an owner says of its file goes before what columns say.
        (
            ", decimal = \".\"",
            ", format = \"%Y-%m-%d\"",
            ", delimiter = \";\", written = { a = { decimal = \",\", dates = \"%d.%m.%Y\", round = true } }",
            "pay;since\n1234,495;14.03.2025\n2,0049;15.03.2025\n",
        ),
    ] {
        let found = read(&case(marks, format, block), table.as_bytes());
        assert_eq!(found, Ok(vec![123_450, 200, DAYS[0], DAYS[1]]), "{table}");
    }
}

#[test]
fn broken_files_are_explained() {
    let utf16: Vec<u8> = "\u{feff}pay,since\n1,2025-03-14\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let bare: Vec<u8> = "pay,since\n1,2025-03-14\n"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    let tables: [(&[u8], &str); 15] = [
        (
            &utf16,
            "a.csv: this is UTF-16 (little-endian), and not CSV in UTF-8; save it as CSV in UTF-8",
        ),
        (
            &bare,
            "a.csv: this is UTF-16 (big-endian), and not CSV in UTF-8; save it as CSV in UTF-8",
        ),
        (
            b"PK\x03\x04",
            "a.csv: this is a spreadsheet or ZIP archive, and not CSV in UTF-8; save it as CSV in UTF-8",
        ),
        (
            b"pay\tsince\n1\t2\n",
            "a.csv: line 1: the columns are delimited by `\\t`; put `delimiter = \"\\t\"` into block `all` of the job",
        ),
        (
            b"sep=;\npay;since\n",
            "a.csv: line 1: `sep=` is a hint for a spreadsheet program and no header; remove the line, and put `delimiter = \";\"`",
        ),
        (
            b"pay,since\r1,2\r",
            "a.csv: line 1: lines end with a carriage return alone, as on old computers; save the file with line feeds",
        ),
        (
            b"p\xe4y,since\n",
            "a.csv: line 1: name 1 of the header, `p\u{fffd}y`, is not UTF-8; save the file as UTF-8",
        ),
        (
            b"pay,since\n1,2025-03-14\n1\xff,2025-03-14\n",
            "a.csv: line 3 (row 2), column `pay`: `1\u{fffd}` is not UTF-8 from byte 2 on; save the file as UTF-8",
        ),
        (
            b"pay,since\n1\0,2025-03-14\n1,2025-03-14\n",
            "a.csv: line 2 (row 1), column `pay`: `1\\0` has zero bytes; the file is damaged, or not UTF-8",
        ),
        (
            b"pay,since,x\n1,2025-03-14,\"a\nb\"\n?,2025-03-14,\n",
            "a.csv: line 4 (row 2), column `pay`: `?` is not a value; leave the cell empty where a value is missing, or list it in `missing` of `written`",
        ),
        (
            b"pay,since,x\n1,2025-03-14,\"a\"b\n1,2025-03-14,\n",
            "a.csv: line 2 (row 1): cell 3 goes on after its closing quote; write a quote within a quoted cell twice",
        ),
        (
            b"pay,since\n1,2025-03-14\n\"1,2025-03-14\n",
            "a.csv: line 3: a quote that is opened in this record is never closed; close it, or double it if it belongs to the text",
        ),
        (
            b"pay,since\n1,2025-02-29\n1,2025-03-14\n",
            "a.csv: line 2 (row 1), column `since`: `2025-02-29` is not a date of the form %Y-%m-%d; correct it",
        ),
        (
            b"pay,since\n1,1999-12-31\n1,2025-03-14\n",
            "a.csv: line 2 (row 1), column `since`: `1999-12-31` is outside the declared range 2000-01-01 to 2029-12-31",
        ),
        (
            b"pay,since\n1.234,50,2025-03-14\n1,2025-03-14\n",
            "a.csv: line 2 (row 1): 3 cells, but the header has 2; check for a missing or an extra comma or quote",
        ),
    ];
    let case = case("", "", "");
    for (table, want) in tables {
        let found = read(&case, table).unwrap_err();
        assert!(found.starts_with(want), "{found}\n{want}");
    }
    std::fs::remove_file(case.path("a.csv")).unwrap();
    std::fs::create_dir(case.path("a.csv")).unwrap();
    let found = case.sources(&case.load().unwrap()).map(drop).unwrap_err();
    assert!(
        found.starts_with("a.csv is not a regular file, and tables are read twice"),
        "{found}"
    );
}

#[test]
fn declarations_that_make_no_sense_are_refused() {
    for (marks, format, block, want) in [
        (
            ", missing = \"skip\"",
            "",
            "",
            "`missing = \"skip\"` is now called `missing = \"drop-pair\"`; it means the same",
        ),
        (
            ", decimal = \";\"",
            "",
            "",
            "`decimal` is \";\": it must be \".\" or \",\"",
        ),
        (
            ", thousands = \".\"",
            "",
            "",
            "`thousands` is \".\": `decimal` is `.`, too; set it to the other mark",
        ),
        (
            "",
            ", format = \"%m.%Y\"",
            "",
            "`format` is \"%m.%Y\": it must say year, month and day",
        ),
        (
            "",
            ", missing = \"zero\"",
            "",
            "`missing` is \"zero\": only numbers have the value 0",
        ),
        (
            "",
            ", scale = 2",
            "",
            "column `since` has no use for `scale`; remove it",
        ),
        (
            "",
            "",
            ", delimiter = \"ab\"",
            "`delimiter` is \"ab\": it must be one character",
        ),
        (
            "",
            "",
            ", align = { column = \"id\", every = 2 }",
            "`every` is `2`: a compared part has 16 to 16777216 rows",
        ),
    ] {
        let found = case(marks, format, block).load().map(drop).unwrap_err();
        assert!(found.contains(want), "{found}\n{want}");
    }
    let sum = JOB.replace("kind = \"mean\"", "kind = \"sum\"");
    let sum = sum
        .replace("MARKS", "")
        .replace("FORMAT", "")
        .replace("BLOCK", "");
    let found = Case::new(&[("job.toml", &sum)])
        .load()
        .map(drop)
        .unwrap_err();
    assert!(found.contains("column `since` is a date, but sum `since` needs a number; a mean of dates has a meaning"), "{found}");
}

/// Marks and formats are an owner's own; what makes other values of its file is not.
#[test]
fn participants_agree_on_words_for_missing_values_and_rounding() {
    let spec = |how: &str| {
        let written = format!(", written = {{ a = {{ {how} }} }}");
        let case = case("", "", &written);
        case.load().unwrap().spec().clone()
    };
    let base = spec("");
    assert_eq!(base, spec("decimal = \",\", dates = \"%d.%m.%Y\""));
    let other = spec("missing = [\"k. A.\"], round = true");
    assert_ne!(base, other);
    let read: Vec<&str> = other.inputs.iter().map(|input| &*input.format).collect();
    assert_eq!(
        read,
        [
            "decimal, rounded, [\"k. A.\"] read as missing",
            "date, rounded, [\"k. A.\"] read as missing"
        ]
    );
}
