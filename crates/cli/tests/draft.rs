//! First jobs from data files: what they say, what they do not, and that they are jobs once they are filled in.

use crate::common::Folder;

/// Eleven stays, whose wards are in six, four and one of them.
const STAYS: &str = "Patient No;since;ward;cost;again;room\n\
    P01;05.10.2024;east;11,33;false;12\n\
    P02;04.08.2024;east;78,37;false;NA\n\
    P03;04.08.2024;east;;true;7\n\
    P04;13.01.2024;east;5,10;true;8\n\
    P05;28.02.2025;east;99,00;true;9\n\
    P06;05.10.2024;east;11,33;false;10\n\
    P07;04.08.2024;west;78,37;false;11\n\
    P08;04.08.2024;west;1234,50;true;41\n\
    P09;13.01.2024;west;5,10;true;13\n\
    P10;28.02.2025;west;99,00;true;14\n\
    P11;28.02.2025;attic;99,00;true;15\n";

/// What is said of them where owners, parties and recipients are known.
const DRAFT: &str = r#"# A first draft by `veil job new`: read every line, and what is marked as a guess most of all.
# This file goes to all participants. Ranges, values of categories and numbers of rows are public, and say something of the data.
version = 1
kind = "query"
name = "draft"
owners = ["north"]
parties = ["p0", "p1", "p2"]
recipients = ["ministry"]

[[table]]
name = "stays"
owner = "north"
rows = { up_to = 15 }  # guess: room for all rows of stays.csv, rounded up; how many there are stays with the owner
# unique = [["patient_no"]]  # guess: no value is there twice; a join needs that of one side, and the parties look
delimiter = ";"
written = { decimal = ",", missing = ["NA"] }  # guess
column = [
  { name = "patient_no", type = "key", bits = 80, of = "Patient No" },  # guess: a key, since it has many texts
  { name = "since", type = "date", min = "2024-01-01", max = "2025-12-31", format = "%d.%m.%Y" },  # guess: whole years
  { name = "ward", type = "category", values = ["east"] },  # guess: the values that there are; 2 of them are in fewer than 5 rows; those are left out: write them, which tells all participants that they are there, or change the table
  { name = "cost", type = "decimal", scale = 2, min = "0.00", max = "1500.00", null = true },  # guess: the digits after the point; the range, rounded outwards; empty cells are allowed, since there are some
  { name = "again", type = "bool" },  # guess: true and false
  { name = "room", type = "integer", min = 0, max = 45, null = true },  # guess: the range, rounded outwards; empty cells are allowed, since there are some
]

[[query]]  # your question; this one only counts rows
name = "rows_of_stays"
sql = """
SELECT count(*) AS n FROM stays
"""
to = "ministry"
"#;

const WHO: &str = "--owner north=stays.csv --party p0 --party p1 --party p2 --recipient ministry";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("stays.csv", STAYS);
    folder
}

#[test]
fn a_draft_says_what_it_guesses_and_is_a_job() {
    let folder = folder();
    let plain = folder.succeed(&format!("job new {WHO}"));
    assert_eq!(plain, DRAFT);
    assert!(!plain.contains("P0") && !plain.contains("attic") && !plain.contains("1234"));
    folder.succeed(&format!("job new {WHO} --rare --out job.toml"));
    let rare = std::fs::read_to_string(folder.at("job.toml")).unwrap();
    assert!(
        rare.contains(r#"values = ["attic", "east", "west"]"#),
        "{rare}"
    );
    folder.succeed("explain job.toml");
    // Every cell of the file that it was made of fits.
    let checked = folder.succeed("data check job.toml --owner north --data north:stays=stays.csv");
    assert!(checked.contains("good"), "{checked}");
    folder.fail(
        &format!("job new {WHO} --out job.toml"),
        3,
        &["cannot write job.toml", "`--out`"],
    );
}

#[test]
fn what_is_not_known_has_to_be_filled_in() {
    let folder = folder();
    let draft = folder.succeed("job new stays.csv");
    assert_eq!(draft.matches("  # fill in").count(), 5, "{draft}");
    let mut draft = draft;
    for (empty, filled, says) in [
        (
            r#"owners = [""]"#,
            r#"owners = ["north"]"#,
            r#"owner name "" is empty"#,
        ),
        (
            r#"parties = [""]"#,
            r#"parties = ["a", "b", "c"]"#,
            r#"party name "" is empty"#,
        ),
        (
            r#"recipients = [""]"#,
            r#"recipients = ["eve"]"#,
            r#"recipient name "" is empty"#,
        ),
        (
            r#"owner = """#,
            r#"owner = "north""#,
            "owner `` is not defined",
        ),
        (r#"to = """#, r#"to = "eve""#, "recipient `` is not defined"),
    ] {
        folder.write("draft.toml", &draft);
        folder.fail("explain draft.toml", 3, &[says]);
        assert!(draft.contains(empty), "{draft}");
        draft = draft.replacen(empty, filled, 1);
    }
    folder.write("draft.toml", &draft);
    folder.succeed("explain draft.toml");
}

#[test]
fn a_value_that_few_rows_have_is_not_written_by_itself() {
    let folder = Folder::new();
    folder.write("t.csv", "sex,x\nf,1\nf,2\nm,3\n");
    let draft = folder.succeed("job new t.csv");
    assert!(
        draft.contains(
            "  # { name = \"sex\", type = \"category\", values = [] },  # left out: each of its values is in few rows, and none is written here\n"
        ),
        "{draft}"
    );
    assert!(
        folder
            .succeed("job new t.csv --rare")
            .contains(r#"["f", "m"]"#)
    );
}

#[test]
fn several_files_are_one_job() {
    let folder = folder();
    folder.write("2024-pay.csv", "id,pay,Pay\n1,2,3\n");
    let draft = folder.succeed("job new --owner south=2024-pay.csv --owner north=stays.csv");
    assert!(draft.contains("owners = [\"south\", \"north\"]"), "{draft}");
    assert!(draft.contains("name = \"_2024_pay\""), "{draft}");
    assert!(draft.contains("name = \"pay_2\", type = \"integer\", min = 0, max = 3, of = \"Pay\""));
}

#[test]
fn what_is_no_table_is_refused() {
    let folder = Folder::new();
    folder.write("broken.csv", "a,b\n1,2\n1\n");
    folder.write("open.csv", "a,b\n1,\"2\n");
    folder.write("empty.csv", "\n");
    folder.write("archive.csv", b"PK\x03\x04xxxxxxxx");
    folder.write("no.parquet", "a,b\n1,2\n");
    folder.write("sheet.xlsx", "x");
    for (file, says) in [
        ("broken.csv", "the record has 1 cells, and the header 2"),
        ("open.csv", "never closed"),
        ("empty.csv", "empty.csv"),
        ("archive.csv", "a spreadsheet or ZIP archive"),
        ("no.parquet", "no.parquet"),
        ("sheet.xlsx", "sheet.xlsx"),
        ("none.csv", "none.csv"),
    ] {
        folder.fail(&format!("job new {file}"), 3, &[says]);
    }
    folder.fail(
        "job new --owner north",
        2,
        &["write NAME=FILE, such as `north=stays.csv`"],
    );
    folder.fail("job new", 2, &["<FILE>"]);
}
