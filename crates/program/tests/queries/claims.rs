//! What a job claims of a table, and what a table holds: looked at where the table is, before anything is sent.

use super::{JOB, NORTH, case, compare, data_error, sources};

fn job(from: &str, to: &str) -> String {
    assert!(JOB.contains(from), "{from}");
    JOB.replacen(from, to, 1)
}

#[test]
fn a_table_has_room_for_its_rows() {
    assert_eq!(
        data_error(&job("{ up_to = 10 }", "{ up_to = 2 }"), NORTH),
        "north.csv has 3 rows, and table `stays` of the job has 0 to 2; change `rows` there, at all participants"
    );
    assert_eq!(
        data_error(
            &job("{ up_to = 10 }", "{ up_to = 8, bucket = \"pow2\" }"),
            NORTH
        ),
        "north.csv has 3 rows, and table `stays` of the job has 5 to 8; change `rows` there, at all participants"
    );
    assert_eq!(
        data_error(&job("{ up_to = 10 }", "4"), NORTH),
        "north.csv has 3 rows, but the job declares 4 for table `stays`; give the whole table, or change `rows`"
    );
    for rows in ["3", "{ up_to = 3 }", "{ up_to = 4, bucket = \"pow2\" }"] {
        let case = case(&job("{ up_to = 10 }", rows), NORTH);
        let job = case.load().unwrap();
        assert!(sources(&case, &job).is_ok(), "{rows}");
    }
    // No row at all, where that is no secret.
    let case = case(JOB, "patient,since,ward,pay,ok,beds\n");
    let job = case.load().unwrap();
    assert!(sources(&case, &job).is_ok());
}

#[test]
fn claims_that_are_false_are_found() {
    let unique = job(
        "unique = [[\"patient\"]]",
        "unique = [[\"since\"], [\"ward\", \"ok\"]]",
    );
    let twice = "patient,since,ward,pay,ok,beds
a,2020-01-01,a,1,t,3
b,2021-01-01,a,1,f,3
c,2022-01-01,a,1,t,3
d,2023-01-01,a,1,t,3
";
    assert_eq!(
        data_error(&unique, twice),
        "north.csv: row 3, column `ward`, `ok`: `a and true` is in row 1 as well, and the job says that [\"ward\", \"ok\"] is unique; \
         correct the table, or leave the claim out, at all participants
north.csv: row 4, column `ward`, `ok`: `a and true` is in row 1 as well, and the job says that [\"ward\", \"ok\"] is unique; \
         correct the table, or leave the claim out, at all participants"
    );
    // A null equals nothing.
    let nulls = job("unique = [[\"patient\"]]", "unique = [[\"pay\"]]");
    let two = NORTH.replace("9999.99", "");
    let case = case(&nulls, &two);
    assert!(sources(&case, &case.load().unwrap()).is_ok());
    assert_eq!(
        data_error(&nulls, &NORTH.replace("9999.99", "-9.50")),
        "north.csv: row 2, column `pay`: `-9.50` is in row 1 as well, and the job says that [\"pay\"] is unique; correct the table, or leave \
         the claim out, at all participants"
    );
    let sorted = job("file = ", "sorted_by = [\"since\", \"ward\"]\nfile = ");
    assert_eq!(
        data_error(&sorted, NORTH),
        "north.csv: row 3, column `since`, `ward`: `2024-02-29 and c` comes after a row that is behind it, and the job says \
         `sorted_by = [\"since\", \"ward\"]`; sort the table, or leave the claim out, at all participants"
    );
}

/// No file is in the order of digests: the owner's program puts it in that order.
#[test]
fn a_table_sorted_by_keys_is_put_in_order() {
    let text = job("file = ", "sorted_by = [\"patient\", \"since\"]\nfile = ");
    // The other way round.
    let lines: Vec<&str> = NORTH.lines().collect();
    let turned = [lines[0], lines[3], lines[2], lines[1], ""].join("\n");
    let case = case(&text, &turned);
    let job = case.load().unwrap();
    let sources = sources(&case, &job).unwrap();
    let mut rows: Vec<[Option<i128>; 6]> = vec![
        [
            Some(super::DIGESTS[0] as i128),
            Some(18_262),
            Some(0),
            Some(-950),
            Some(1),
            Some(3),
        ],
        [
            Some(super::DIGESTS[1] as i128),
            Some(20_453),
            Some(1),
            Some(999_999),
            Some(0),
            Some(3),
        ],
        [
            Some(super::DIGESTS[2] as i128),
            Some(19_782),
            Some(2),
            None,
            Some(1),
            Some(3),
        ],
    ];
    rows.sort_unstable();
    assert_eq!(rows[0][0], Some(super::DIGESTS[0] as i128));
    let columns: Vec<Vec<Option<i128>>> = (0..6)
        .map(|column| rows.iter().map(|row| row[column]).collect())
        .collect();
    let least = [0, 18_262, 0, -1000, 0, 3];
    let expected: Vec<(u32, &[Option<i128>], i128)> = (1..6)
        .map(|column| (column as u32, &columns[column][..], least[column]))
        .collect();
    compare(&job, &sources, &expected);
}

#[test]
fn cells_are_of_their_columns() {
    for (from, to, expected) in [
        (
            "anna",
            "",
            "north.csv: line 2 (row 1), column `patient`: `` is empty; give a value, or write `null = true` into the column, at all participants",
        ),
        (
            "2025-12-31",
            "2026-01-01",
            "north.csv: line 3 (row 2), column `since`: `2026-01-01` is outside the declared range 2020-01-01 to 2025-12-31; correct it, or \
             declare a wider range in the job",
        ),
        (
            "2025-12-31",
            "monday",
            "north.csv: line 3 (row 2), column `since`: `monday` is not a date of the form %Y-%m-%d; correct it, or put the `format` of the \
             file into the column",
        ),
        (
            ",c,",
            ",d,",
            "north.csv: line 4 (row 3), column `ward`: `d` is not one of the declared values `a`, `b`, `c`",
        ),
        (
            "-9.5",
            "-9.555",
            "north.csv: line 2 (row 1), column `pay`: `-9.555` has more than 2 digits after the point; round it, or raise the scale of the column",
        ),
        (
            "-9.5",
            "99999999999999999999999999999999999999",
            "north.csv: line 2 (row 1), column `pay`: `99999999999999999999999999999999999999` is too large; numbers have at most 62 bits",
        ),
        (
            ",f,",
            ",no,",
            "north.csv: line 3 (row 2), column `ok`: `no` is neither true nor false: write `true` or `false`, `t` or `f`, 1 or 0",
        ),
        (
            ",f,",
            ",,",
            "north.csv: line 3 (row 2), column `ok`: `` is empty; give a value, or write `null = true` into the column, at all participants",
        ),
        (
            "true,3",
            "true,4",
            "north.csv: line 2 (row 1), column `beds`: `4` is outside the declared range 3 to 3; correct it, or declare a wider range in the job",
        ),
    ] {
        assert!(NORTH.contains(from), "{from}");
        assert_eq!(data_error(JOB, &NORTH.replacen(from, to, 1)), expected);
    }
    assert_eq!(
        data_error(JOB, &NORTH.replace("patient,since", "person,since")),
        "north.csv: no column `patient`; the header names `person`, `since`, `ward`, `pay`, `ok`, `beds`"
    );
    assert_eq!(
        data_error(JOB, &NORTH.replace(',', ";")),
        "north.csv: line 1: the columns are delimited by `;`; put `delimiter = \";\"` into table `stays` of the job"
    );
}

#[test]
fn a_table_without_a_file_is_said_to_be_missing() {
    let case = case(&job("file = \"north.csv\"\n", ""), NORTH);
    let job = case.load().unwrap();
    assert_eq!(
        sources(&case, &job).err().unwrap(),
        "no file is given for table `stays` of `north`; name it in the job, or on the command line"
    );
}
