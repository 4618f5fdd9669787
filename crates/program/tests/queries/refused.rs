//! Every mistake in a job with queries gets its place and says what to do; nothing is read or sent before.

use std::fmt::Write as _;

use super::{JOB, NORTH, case};

fn error(text: &str) -> String {
    case(text, NORTH).load().unwrap_err()
}

fn changed(from: &str, to: &str) -> String {
    assert!(JOB.contains(from), "{from}");
    error(&JOB.replacen(from, to, 1))
}

#[test]
fn columns() {
    let mut wrong = Vec::new();
    for (from, to, expected) in [
        (
            "type = \"bool\"",
            "type = \"bool\", bits = 3",
            "job.toml:19:40: column `ok` has no use for `bits`; remove it",
        ),
        (
            "bits = 64",
            "bits = 63",
            "job.toml:15:44: `bits` is `63`: a key has 64, 80 or 128 bits",
        ),
        (
            ", bits = 64",
            "",
            "job.toml:15:3: column `patient` needs `bits`; add it",
        ),
        (
            "scale = 2",
            "scale = 19",
            "job.toml:18:45: `scale` is `19`: at most 18 digits are kept",
        ),
        (
            "scale = 2, ",
            "",
            "job.toml:18:3: column `pay` needs `scale`; add it",
        ),
        (
            "\"9999.99\"",
            "\"9999.999\"",
            "job.toml:18:67: `max` is `9999.999`: has more than 2 digits after the point; round it, or raise the scale of the column",
        ),
        (
            "\"9999.99\"",
            "\"99999999999999999999999999999999999999999\"",
            "job.toml:18:67: `max` is `99999999999999999999999999999999999999999`: it is too large; a bound is at most 46116860184273879.04, or -46116860184273879.04",
        ),
        (
            "max = 3",
            "max = 2",
            "job.toml:20:3: min is larger than max in column `beds`; exchange them",
        ),
        (
            "\"2025-12-31\"",
            "2025-12-31",
            "job.toml:16:62: `max` is \"a date\": it must be a date in quotes, such as \"2025-03-14\"",
        ),
        (
            "[\"b\", \"a\", \"c\"]",
            "[\"b\", \"b\"]",
            "job.toml:17:54: value `b` is named twice; rename or remove one",
        ),
        (
            "values = [\"b\", \"a\", \"c\"]",
            "values = []",
            "job.toml:17:3: column `ward` needs `values`; add it",
        ),
        (
            "name = \"ok\"",
            "name = \"OK\"",
            "job.toml:8:1: `OK` of table `stays` is no name: use lower-case letters, digits and `_`, a letter or `_` first",
        ),
        (
            "name = \"ok\"",
            "name = \"pay\"",
            "job.toml:8:1: table `stays` has two columns `pay`; rename one",
        ),
        (
            "type = \"bool\"",
            "type = \"bool\", of = [\"a\", \"b\"]",
            "job.toml:19:38: `of` is \"a, b\": several columns of a file make a key, and this column is none; name one",
        ),
        (
            "bits = 64",
            "bits = 64, of = [\"a\", \"a\"]",
            "job.toml:15:53: `of` is \"a, a\": it names columns of the file, at least one, and none twice",
        ),
        (
            "bits = 64",
            "bits = 64, may = [\"read\"]",
            "job.toml:15:55: `may` is \"read\": write \"filter\", \"group-by\", \"join\", \"sort\", \"window\"",
        ),
        (
            "bits = 64",
            "bits = 64, reveal = \"all\"",
            "job.toml:15:57: `reveal` is \"all\": write \"never\", \"aggregates\", \"rows\"",
        ),
        (
            "type = \"bool\"",
            "type = \"text\"",
            "job.toml:19:25: unknown variant `text`, expected one of `integer`, `decimal`, `date`, `category`, `bool`, `key`",
        ),
        (
            "null = true",
            "nul = true",
            "job.toml:18:78: unknown field `nul`, expected one of `name`, `type`, `of`, `scale`, `min`, `max`, `values`, `bits`, `null`, `may`, `reveal`, `decimal`, `thousands`, `format`",
        ),
    ] {
        let message = changed(from, to);
        if message != expected {
            wrong.push(format!("{message}\n    not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn tables() {
    let mut wrong = Vec::new();
    for (from, to, expected) in [
        (
            "owner = \"north\"",
            "owner = \"west\"",
            "job.toml:10:9: owner `west` is not defined; there are `north`, `south`",
        ),
        (
            "{ up_to = 10 }",
            "0",
            "job.toml:11:8: `rows` is `0`: a table has 1 to 2147483648 rows",
        ),
        (
            "{ up_to = 10 }",
            "-1",
            "job.toml:11:8: `rows` is `-1`: a table has 1 to 2147483648 rows",
        ),
        (
            "{ up_to = 10 }",
            "99999999999",
            "job.toml:11:8: `rows` is `99999999999`: a table has 1 to 2147483648 rows",
        ),
        (
            "{ up_to = 10 }",
            "{ up_to = 10, bucket = \"pow2\" }",
            "job.toml:11:8: `rows` is `10`: the bucket of a table is a power of two; write the next one",
        ),
        (
            "{ up_to = 10 }",
            "{ up_to = 16, bucket = \"ten\" }",
            "job.toml:11:8: `bucket` is \"ten\": write \"pow2\"",
        ),
        (
            "file = ",
            "sorted_by = [\"name\"]\nfile = ",
            "job.toml:13:14: column `name` is not defined; there are `patient`, `since`, `ward`, `pay`, `ok`, `beds`",
        ),
        (
            "unique = [[\"patient\"]]",
            "unique = [[]]",
            "job.toml:8:1: a claim about table `stays` names no columns, a column twice, or one that the table does not have",
        ),
        (
            "file = ",
            "written = { missing = [\" NA\"] }\nfile = ",
            "job.toml:13:24: `missing` is \" NA\": it must be a word without blanks around it; an empty cell is a missing value anyway",
        ),
        (
            "file = ",
            "written = { dates = \"%d.%m.\" }\nfile = ",
            "job.toml:13:21: `dates` is \"%d.%m.\": it must say year, month and day, such as \"%d.%m.%Y\" or \"%Y%m%d\"",
        ),
        (
            "file = ",
            "delimiter = \"x\"\nfile = ",
            "job.toml:13:13: `delimiter` is \"x\": it must be \",\", \";\", \"\\t\" or \"|\"",
        ),
        (
            "[[table]]",
            "[[block]]\nname = \"x\"\nrows = 3\n[[table]]",
            "job.toml:8:1: a query job has no `[[block]]`; remove it, or change `kind`",
        ),
        (
            "\"p2\"]",
            "\"p2\"]\ndurable = true",
            "job.toml:2:8: a query job has no use for `durable`; remove it",
        ),
    ] {
        let message = changed(from, to);
        if message != expected {
            wrong.push(format!("{message}\n    not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let twice = format!("{JOB}[[bound]]\nof = \"stays\"\nrows = 3\noverflow = \"drop\"\n");
    assert_eq!(
        error(&twice),
        "job.toml:28:6: stays: no query, common table expression or subquery of FROM has this name"
    );
    let none = JOB.split("[query]").next().unwrap();
    assert_eq!(
        error(none),
        "job.toml:2:8: the query job has no `[[query]]`; add at least one"
    );
}

#[test]
fn queries() {
    let mut wrong = Vec::new();
    for (from, to, expected) in [
        (
            "to = \"ministry\"",
            "to = \"press\"",
            "job.toml:26:6: recipient `press` is not defined; there are `ministry`, `p0`, `p1`, `p2`",
        ),
        (
            "to = \"ministry\"",
            "to = \"parties\"",
            "job.toml:26:6: `to` is \"parties\": a query is opened to one participant; name it",
        ),
        (
            "to = \"ministry\"",
            "",
            "job.toml:24:8: no query has a recipient or is kept, so that nothing would come of it; write `to = \"…\"` into one, or `keep = \"…\"`",
        ),
        (
            "to = \"ministry\"",
            "to = \"ministry\"\nfile = \"a.xls\"",
            "job.toml:27:8: `file` is \"a.xls\": a result is written as the ending of its file says: .csv, .json, .txt, .svg, .arrow, .parquet",
        ),
        (
            "to = \"ministry\"",
            "to = \"ministry\"\nfile = \"../a.csv\"",
            "job.toml:27:8: `file` is \"../a.csv\": a result has a plain name, in the folder of its recipient",
        ),
        (
            "to = \"ministry\"",
            "to = \"ministry\"\nfile = \"Receipt.JSON\"",
            "job.toml:27:8: `file` is \"Receipt.JSON\": this name is taken",
        ),
        (
            "to = \"ministry\"",
            "to = \"ministry\"\nfile = [\"a.csv\", \"a.csv\"]",
            "job.toml:27:8: `file` is \"a.csv\": this name is taken",
        ),
        (
            "to = \"ministry\"",
            "to = \"ministry\"\nmin_count = -1",
            "job.toml:27:13: `-1` is no number that belongs here: write one from 0 to 4294967295",
        ),
        (
            "to = \"ministry\"",
            "to = \"ministry\"\nmin_count = 5",
            "job.toml:24:8: all_stays: a minimal count is of groups, and this query has none",
        ),
        (
            "name = \"all_stays\"",
            "name = \"stays\"",
            "job.toml:24:8: stays: two tables or queries have this name",
        ),
        (
            "name = \"all_stays\"",
            "name = \"All\"",
            "job.toml:24:8: All: a name has lower-case letters, digits and `_`",
        ),
    ] {
        let message = changed(from, to);
        if message != expected {
            wrong.push(format!("{message}\n    not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let bound = |of: &str| format!("{JOB}[[bound]]\nof = \"all_stays\"\n{of}\n");
    assert_eq!(
        error(&bound("rows = 0\noverflow = \"drop\"")),
        "job.toml:29:8: `rows` is `0`: a bound has at least one row"
    );
    assert_eq!(
        error(&bound("rows = 3\noverflow = \"keep\"")),
        "job.toml:30:12: `overflow` is \"keep\": write \"refuse\", \"flag\" or \"drop\""
    );
}

#[test]
fn sql() {
    let sql = |sql: &str| changed("SELECT since, ward, pay, ok, beds FROM stays", sql);
    assert_eq!(
        sql("SELECT ward, sinse FROM stays"),
        "job.toml:25:7: query `all_stays`, line 1, column 14: there is no column `sinse`
  SELECT ward, sinse FROM stays
               ^"
    );
    assert_eq!(
        sql("SELECT ward FROM stays OFFSET 3"),
        "job.toml:25:7: query `all_stays`, line 1, column 24: OFFSET, paging through rows, is not in the dialect
  SELECT ward FROM stays OFFSET 3
                         ^"
    );
    assert_eq!(
        sql("SELECT * FROM stays"),
        "job.toml:25:7: query `all_stays`, line 1, column 8: SELECT * is not opened
  SELECT * FROM stays
         ^
  name the columns: owners consent to each"
    );
    assert_eq!(
        sql("SELECT beds * 1.0 / pay AS each FROM stays"),
        "job.toml:25:7: query `all_stays`, line 1, column 8: `x / y` has no value where y is 0; x is 3.0, y is -10.00 to 9999.99
  SELECT beds * 1.0 / pay AS each FROM stays
         ^
  write nullif(y, 0), or greatest(y, 0.01), or least(y, -0.01) in the place of y, or declare narrower ranges"
    );
    // A text of 10^5 parentheses, and of as many operators.
    let mut nested = String::from("SELECT ");
    nested += &"(".repeat(100_000);
    nested += "1";
    nested += &")".repeat(100_000);
    let message = sql(&(nested + " AS x FROM stays"));
    assert!(
        message.starts_with("job.toml:25:7: query `all_stays`, line 1, column ")
            && message.contains(": a query has at most "),
        "{}",
        &message[..300.min(message.len())]
    );
    let mut chain = String::from("SELECT beds");
    for _ in 0..100_000 {
        let _ = write!(chain, "+1");
    }
    let message = sql(&(chain + " AS x FROM stays"));
    assert!(
        message.contains(": a query has at most "),
        "{}",
        &message[..300.min(message.len())]
    );
    // An owner's words.
    let words = JOB.replacen("type = \"bool\"", "type = \"bool\", may = [\"filter\"]", 1);
    assert_eq!(
        error(&words),
        "job.toml:25:7: query `all_stays`, line 1, column 26: `north` does not allow that values of rows of column `ok` of `stays` are opened
  SELECT since, ward, pay, ok, beds FROM stays
                           ^"
    );
}

#[test]
fn protocols() {
    let two = JOB.replacen(", \"p2\"]", "]", 1);
    let shares = |what: &str| {
        format!(
            "job.toml:5:11: two parties keep no shares, and load none; name three parties, or four, or leave out `{what}`"
        )
    };
    let kept = two.replacen("to = \"ministry\"", "keep = \"all stays\"", 1);
    assert_eq!(error(&kept), shares("keep"));
    let stored = two.replacen("owner = \"north\"", "stored = \"all stays\"", 1);
    assert_eq!(error(&stored), shares("stored"));
    let large = two.replacen("up_to = 10 ", "up_to = 200000 ", 1);
    let said = error(&large);
    assert!(
        said.contains("between two parties the queries are one circuit of bits, of at most 16777216 gates, and they have more: 200000 rows of tables take some "),
        "{said}"
    );
    assert!(
        said.ends_with(" ANDs; ask of fewer rows or columns, or name three parties, or four, who move rows instead"),
        "{said}"
    );
    assert_eq!(
        changed("\"p2\"]", "\"p2\", \"p3\"]\ndelivery = \"guaranteed\""),
        "job.toml:6:12: `delivery` is \"guaranteed\": queries are not run again without a party that is lost; write \"abort\""
    );
}

/// What another participant sends names no file that leads out of its folder.
#[test]
fn a_job_that_was_sent_leads_nowhere() {
    let sent = |text: &str| veil_program::Job::sent(text, &veil_program::Sent::new());
    assert!(sent(JOB).is_ok());
    let out = sent(&JOB.replace("north.csv", "../north.csv"));
    assert_eq!(
        out.unwrap_err().for_sender(),
        "the job file:13:8: `file` leads out of the folder of the job: the owner that reads a data file says itself where it is, with `--data`; \
         write a plain name, or leave it out"
    );
}

/// No text is a reason to panic.
#[test]
fn no_change_of_a_byte_is_a_reason_to_panic() {
    let bytes = JOB.as_bytes();
    for at in 0..bytes.len() {
        for byte in *b"\"[{0z\n" {
            let mut other = bytes.to_vec();
            other[at] = byte;
            let text = String::from_utf8(other).unwrap();
            let _ = veil_program::Job::sent(&text, &veil_program::Sent::new());
        }
    }
}
