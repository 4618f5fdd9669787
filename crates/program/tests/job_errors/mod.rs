//! Every mistake in a job file gets its place and says what to do.

mod circuit;

use circuit::CIRCUIT;

use crate::common::Case;

const STATS: &str = r#"version = 1
kind = "stats"
name = "study"
owners = ["a", "b"]
parties = ["p", "q", "r"]
recipients = ["press"]

[[column]]
name = "x"
type = "decimal"
scale = 2
min = 0
max = "99.50"

[[column]]
name = "g"
type = "category"
values = ["u", "v"]

[[block]]
name = "all"
rows = 3
holds = { a = ["x"], b = ["g"] }
order = "agreed"
[[analysis]]
name = "mean of x"
kind = "mean"
of = "x"
by = "g"
to = "press"
"#;

/// The message for the job with one text replaced.
fn refusal(job: &str, from: &str, to: &str) -> String {
    assert_eq!(job.matches(from).count(), 1, "`{from}` is not there once");
    Case::new(&[("job.toml", &job.replace(from, to))])
        .load()
        .expect_err("must be refused")
}

#[test]
fn the_unchanged_jobs_are_fine() {
    Case::new(&[("job.toml", STATS)]).load().unwrap();
    Case::new(&[("job.toml", CIRCUIT)]).load().unwrap();
}

/// Rows that are not the same people give wrong numbers that look right: a block of several owners says why they are.
#[test]
fn blocks_of_several_owners_say_why_their_rows_belong_together() {
    let agreed = "order = \"agreed\"\n";
    let align = |more: &str| format!("align = {{ column = \"id\", every = 16{more} }}\n");
    let job = |word: &str| STATS.replace(agreed, word);
    for word in [agreed, &align(""), &align(", duplicates = \"allowed\"")] {
        Case::new(&[("job.toml", &job(word))]).load().unwrap();
    }
    assert_eq!(
        refusal(STATS, agreed, ""),
        "job.toml:20:1: block `all` has columns of `a` and `b`, whose rows are paired in the order of their files: write `align = { column \
         = \"…\", every = 65536 }`, so that they compare the order of a key column, or `order = \"agreed\"`, if they have agreed on it \
         beforehand and nobody shall compare it"
    );
    assert_eq!(
        refusal(STATS, agreed, &(align("") + agreed)),
        "job.toml:25:9: write either `align` or `order`, not both"
    );
    assert_eq!(
        refusal(STATS, agreed, "order = \"as agreed\"\n"),
        "job.toml:24:9: `order` is \"as agreed\": write \"agreed\", or `align` in its place"
    );
    assert_eq!(
        refusal(
            STATS,
            "{ a = [\"x\"], b = [\"g\"] }",
            "{ a = [\"x\", \"g\"] }"
        ),
        "job.toml:24:9: block `all`, whose columns one owner holds, has no use for `order`; remove it"
    );
    assert_eq!(
        refusal(STATS, agreed, &align(", duplicates = \"yes\"")),
        "job.toml:24:51: `duplicates` is \"yes\": write \"allowed\", if several rows of an owner may have the same key, or leave it out"
    );
}

#[test]
fn mistakes_in_any_job() {
    for (from, to, message) in [
        (
            "version = 1",
            "version = 2",
            "job.toml:1:11: version 2 of the job format is unknown; this program reads version 1",
        ),
        ("version = 1\n", "", "job.toml:1:1: missing field `version`"),
        (
            "kind = \"stats\"",
            "kind = \"sql\"",
            "job.toml:2:8: kind `sql` is unknown; write \"stats\", \"query\", \"psi\", \"circuit\" or \"reshare\"",
        ),
        (
            "name = \"study\"",
            "name = \" study\"",
            "job.toml:3:8: job name \" study\" is empty, longer than 64 characters, or has control characters or blanks at an end; rename it",
        ),
        (
            "[\"a\", \"b\"]",
            "[\"a\", \"b\", \"a\"]",
            "job.toml:4:21: owner `a` is named twice; rename or remove one",
        ),
        (
            "\"q\", \"r\"]",
            "\"q\", \"p\"]",
            "job.toml:5:22: party `p` is named twice; rename or remove one",
        ),
        (
            "\"q\", \"r\"]",
            "\"q\", \"r\", \"s\", \"t\"]",
            "job.toml:5:11: the job names 5 parties; two compute, or three, or four",
        ),
        (
            "[\"press\"]",
            "[\"parties\"]",
            "job.toml:6:15: `parties` means all computing parties; choose another name",
        ),
        ("recipients", "recipient", "unknown field `recipient`"),
        (
            "to = \"press\"",
            "to = \"pres\"",
            "job.toml:30:6: recipient `pres` is not defined; there are `press`, `p`, `q`, `r`, `parties`",
        ),
        ("[[block]]", "[[block", "job.toml:20:"),
    ] {
        let found = refusal(STATS, from, to);
        assert!(found.contains(message), "{found}\n{message}");
    }
}

#[test]
fn mistakes_in_a_statistics_job() {
    for (from, to, message) in [
        (
            "by = \"g\"",
            "by = \"g\"\nmin_count = 1",
            "job.toml:30:13: `min_count` is `1`: every group that is there has a row; write 2 or more, or leave it out, and all groups are shown",
        ),
        (
            "by = \"g\"",
            "min_count = 4",
            "job.toml:25:1: `min_count` is `4`: the job has 3 rows, and all of them count",
        ),
        (
            "kind = \"mean\"\nof = \"x\"\nby = \"g\"\n",
            "kind = \"regression\"\nof = \"x\"\non = [\"g\"]\nmin_count = 2\n",
            "job.toml:30:13: `min_count` is `2`: a regression on a category opens how many rows have each of its values",
        ),
        (
            "kind = \"mean\"",
            "kind = \"mean-only\"\ndecimals = 19",
            "job.toml:28:12: `decimals` is `19`: at most 18 digits are kept",
        ),
        (
            "kind = \"mean\"",
            "kind = \"max\"",
            "job.toml:25:1: every owner finds the max of its own rows, so max `mean of x` needs columns of one owner; in block `all`, \
             `x` is held by `a`, `g` is held by `b`; give one owner all of them, or leave `by` out",
        ),
        (
            "kind = \"mean\"\nof = \"x\"",
            "kind = \"min\"\nof = \"g\"",
            "job.toml:28:6: column `g` is a category, but min `mean of x` needs a number",
        ),
        (
            "of = \"x\"",
            "of = \"x\"\ndecimals = 1",
            "job.toml:29:12: mean `mean of x` has no use for `decimals`; remove it",
        ),
        (
            "scale = 2",
            "scale = 19",
            "job.toml:11:9: `scale` is `19`: at most 18 digits are kept",
        ),
        (
            "scale = 2\n",
            "",
            "job.toml:8:1: column `x` needs `scale`; add it",
        ),
        (
            "max = \"99.50\"",
            "max = 99.5",
            "job.toml:13:7: `max` is `99.5`: write it in quotes, such as \"1.50\", so that no digit is lost",
        ),
        (
            "max = \"99.50\"",
            "max = \"99,50\"",
            "job.toml:13:7: `max` is `99,50`: has a decimal comma; write a point",
        ),
        (
            "max = \"99.50\"",
            "max = \"-1\"",
            "job.toml:8:1: min is larger than max in column `x`; exchange them",
        ),
        (
            "max = \"99.50\"",
            "max = 4000000000000000000",
            "it is too large; a bound is at most 46116860184273879.04",
        ),
        (
            "max = \"99.50\"\n",
            "",
            "job.toml:8:1: column `x` needs `max`; add it",
        ),
        (
            "values = [\"u\", \"v\"]",
            "values = [\"u\", \"u\"]",
            "job.toml:18:16: value `u` is named twice; rename or remove one",
        ),
        (
            "values = [\"u\", \"v\"]",
            "values = []",
            "job.toml:15:1: column `g` needs `values`; add it",
        ),
        (
            "values = [\"u\", \"v\"]",
            "values = [\"u\"]\nmin = 3",
            "job.toml:19:7: column `g` has no use for `min`; remove it",
        ),
        (
            "name = \"g\"",
            "name = \"x\"",
            "job.toml:16:8: column `x` is named twice; rename or remove one",
        ),
        (
            "type = \"decimal\"",
            "type = \"float\"",
            "job.toml:10:8: unknown variant `float`",
        ),
        (
            "rows = 3",
            "rows = 0",
            "job.toml:22:8: block `all` has 0 rows; give it at least 1 or remove it",
        ),
        ("rows = 3", "rows = -1", "job.toml:22:8:"),
        (
            "rows = 3",
            "rows = 2000000000000",
            "job.toml:22:8: the job has 2000000000000 rows, and the limit is 1099511627776",
        ),
        (
            "b = [\"g\"] }",
            "c = [\"g\"] }",
            "job.toml:23:22: owner `c` is not defined; there are `a`, `b`",
        ),
        (
            "b = [\"g\"] }",
            "b = [\"h\"] }",
            "job.toml:23:27: column `h` is not defined; there are `x`, `g`",
        ),
        (
            "b = [\"g\"] }",
            "b = [] }",
            "job.toml:20:1: column `g` of block `all` is held by no owner; name exactly one owner for it in `holds`",
        ),
        (
            "b = [\"g\"] }",
            "b = [\"g\", \"x\"] }",
            "job.toml:20:1: column `x` of block `all` is held by `a` and `b`; name exactly one owner for it in `holds`",
        ),
        (
            "b = [\"g\"] }",
            "b = [\"g\", \"g\"] }",
            "job.toml:23:32: column `g` is named twice; rename or remove one",
        ),
        (
            "kind = \"mean\"",
            "kind = \"mode\"",
            "job.toml:27:8: unknown variant `mode`",
        ),
        (
            "of = \"x\"\n",
            "",
            "job.toml:25:1: mean `mean of x` needs `of = \"column\"`; add it",
        ),
        (
            "of = \"x\"",
            "of = \"g\"",
            "job.toml:28:6: column `g` is a category, but mean `mean of x` needs a number",
        ),
        (
            "by = \"g\"",
            "by = \"x\"",
            "job.toml:29:6: column `x` is a number, but `by` needs a category",
        ),
        (
            "by = \"g\"",
            "by = [\"g\", \"g\"]",
            "job.toml:25:1: column `g` is used twice in mean `mean of x`; remove one",
        ),
        (
            "by = \"g\"",
            "on = \"g\"",
            "job.toml:29:6: mean `mean of x` has no use for `on`; remove it",
        ),
        (
            "kind = \"mean\"",
            "kind = \"covariance\"",
            "job.toml:25:1: covariance `mean of x` needs `of = [\"column\", \"column\"]`; add it",
        ),
        (
            "kind = \"mean\"",
            "kind = \"regression\"",
            "job.toml:25:1: regression `mean of x` needs `on = [\"column\"]`; add it",
        ),
        (
            "kind = \"mean\"\nof = \"x\"\nby = \"g\"\n",
            "kind = \"count\"\n",
            "job.toml:25:1: nothing secret is asked: the number of rows is in the job; ask for something of a column",
        ),
        (
            "[[block]]",
            "[circuit]\nmake = \"aes128\"\n[[block]]",
            "job.toml:20:1: a stats job has no `[circuit]`; remove it, or change `kind`",
        ),
        (
            "kind = \"stats\"",
            "kind = \"circuit\"",
            "job.toml:8:1: a circuit job has no `[[column]]`; remove it, or change `kind`",
        ),
    ] {
        let found = refusal(STATS, from, to);
        assert!(found.contains(message), "{found}\n{message}");
    }
}

#[test]
fn what_could_overflow_is_refused_with_the_sum_and_its_bits() {
    let large = STATS
        .replace("scale = 2", "scale = 0")
        .replace("\"99.50\"", "4000000000000000000");
    let found = refusal(
        &large.replace("rows = 3", "rows = 99"),
        "kind = \"mean\"",
        "kind = \"variance\"",
    );
    assert_eq!(
        found,
        "job.toml:25:1: analysis `mean of x`: the sum of x × x over rows where g = u can need 132 bits, and the largest \
         ring has 128; narrow the declared ranges or have fewer rows"
    );
}

#[test]
fn too_many_numbers_are_refused() {
    let values: Vec<String> = (0..40).map(|value| format!("\"{value}\"")).collect();
    let column = format!(
        "[[column]]\nname = \"h\"\ntype = \"category\"\nvalues = [{}]\n",
        values.join(",")
    );
    let job = STATS
        .replace("[[block]]", &format!("{column}[[block]]"))
        .replace("[\"u\", \"v\"]", &format!("[{}]", values.join(",")))
        .replace("b = [\"g\"]", "b = [\"g\", \"h\"]")
        .replace("by = \"g\"", "by = [\"g\", \"h\"]");
    let found = Case::new(&[("job.toml", &job)]).load().unwrap_err();
    assert_eq!(
        found,
        "job.toml:29:1: the job opens up to 1025 numbers, and its limit is 1024; ask for fewer groups or figures, or write `most_opened = 1025`"
    );
}

#[test]
fn a_split_value_is_not_split_without_end() {
    // Short enough for a job file.
    let part = "{port=\"key\",owner=\"a\",format=\"hex\",combine=\"xor\"},";
    let block = "{port=\"block\",owner=\"b\",format=\"hex\"}";
    let output = "[[output]]\nport = \"out\"\nto = \"c\"\nformat = \"hex\"\nfile = \"f\"\n";
    let job = CIRCUIT.replace("adder:12", "aes128");
    let head = job.split("[[input]]").next().unwrap();
    let job = format!("input = [{}{block}]\n{head}{output}", part.repeat(16_400));
    let found = Case::new(&[("job.toml", &job)]).load().unwrap_err();
    assert!(
        found.contains("16401 input ports, and the limit is 16384"),
        "{}",
        found.chars().take(300).collect::<String>()
    );
}

#[test]
fn a_job_that_cannot_be_read_says_so() {
    let case = Case::new(&[]);
    assert_eq!(
        case.load().unwrap_err(),
        "job.toml: cannot read the job: No such file or directory (os error 2)"
    );
    case.write("job.toml", &[0xff; 10]);
    assert!(case.load().unwrap_err().contains("valid UTF-8"));
    case.write("job.toml", " ".repeat((1 << 20) + 1).as_bytes());
    assert!(case.load().unwrap_err().contains("the limit is 1048576"));
}

#[test]
fn what_cannot_be_divided_or_found_is_refused() {
    let wide = STATS
        .replace("kind = \"mean\"", "kind = \"mean-only\"\ndecimals = 18")
        .replace("\"99.50\"", "\"9999999999999999.99\"")
        .replace("rows = 3", "rows = 1048576");
    let found = Case::new(&[("job.toml", &wide)]).load().unwrap_err();
    assert_eq!(
        found,
        "job.toml:25:1: `decimals` is `18`: the division can need 134 bits, and the largest ring has 128; take fewer, or \
         narrow the declared range"
    );
    let days = STATS
        .replace(
            "type = \"decimal\"\nscale = 2\nmin = 0\nmax = \"99.50\"",
            "type = \"date\"\nmin = \"2000-01-01\"\nmax = \"2030-01-01\"",
        )
        .replace("kind = \"mean\"", "kind = \"mean-only\"\ndecimals = 0");
    let found = Case::new(&[("job.toml", &days)]).load().unwrap_err();
    assert_eq!(
        found,
        "job.toml:27:12: mean-only `mean of x`, of dates, has no use for `decimals`; remove it"
    );
    let stored = STATS
        .replace(
            "holds = { a = [\"x\"], b = [\"g\"] }\norder = \"agreed\"",
            "stored = \"pay\"",
        )
        .replace(
            "kind = \"mean\"\nof = \"x\"\nby = \"g\"",
            "kind = \"min\"\nof = \"x\"",
        );
    let found = Case::new(&[("job.toml", &stored)]).load().unwrap_err();
    assert!(
        found.contains("in block `all`, they are shares of `pay`, which no owner sees"),
        "{found}"
    );
}

/// What people wrote who knew only the pages, and what they need to hear.
#[test]
fn mistakes_are_told_in_words_of_a_job() {
    let largest =
        "it is too large; a bound is at most 46116860184273879.04, or -46116860184273879.04";
    for (from, to, message) in [
        (
            "by = \"g\"",
            "by = [\"g\", \"g\", \"g\"]",
            "mean `mean of x` is by 3 columns, and groups are made by one or by two; leave some out, or let an owner make one column of several",
        ),
        (
            "by = \"g\"",
            "by = \"g\"\nmin_count = 0",
            "`min_count` is `0`: every group that is there has a row; write 2 or more, or leave it out, and all groups are shown",
        ),
        (
            "by = \"g\"",
            "by = \"g\"\nmin_count = 2000000000000",
            "`min_count` is `2000000000000`: no job has more than 1099511627776 rows",
        ),
        (
            "to = \"press\"",
            "to = [\"press\", \"p\"]",
            "`to` is \"press, p\": an analysis is for one recipient, or for \"parties\"; write it once for each, under names of their own",
        ),
        (
            "to = \"press\"",
            "to = 3",
            "this must be a name in quotes, or several in brackets, such as [\"a\", \"b\"]",
        ),
        (
            "rows = 3",
            "rows = \"3\"",
            "a number of rows, without quotes, or { up_to = … }, belongs here, and this is text in quotes (\"3\")",
        ),
        (
            "name = \"study\"",
            "name = 7",
            "text in quotes belongs here, and this is a whole number (7)",
        ),
        (
            "name = \"study\"",
            "name = t",
            "text stands in quotes; without them there are numbers, `true` and `false`",
        ),
        ("max = \"99.50\"", "max = 9223372036854775807", largest),
        (
            "max = \"99.50\"",
            "max = 9223372036854775808",
            "`max` is `9.2e18`: it is too large",
        ),
        (
            "max = \"99.50\"",
            "max = \"170141183460469231731687303715884105728\"",
            largest,
        ),
        (
            "min = 0\n",
            "min = 1920-01-01\n",
            "`min` is `a date`: this column has numbers; write one, or `type = \"date\"` and the date in quotes, such as \"2025-03-14\"",
        ),
        (
            "type = \"decimal\"\nscale = 2\nmin = 0\nmax = \"99.50\"",
            "type = \"date\"\nmin = 1920-01-01\nmax = \"1999-12-31\"",
            "`min` is \"a date\": it must be a date in quotes, such as \"2025-03-14\"",
        ),
        (
            "name = \"study\"",
            "name = \"study\"\nadversary = \"malicious-cutchoose\"",
            "circuits are cut and chosen by yao",
        ),
    ] {
        let found = refusal(STATS, from, to);
        assert!(found.contains(message), "{to}: {found}");
    }
    let one = STATS.replace("to = \"press\"", "to = [\"press\"]");
    Case::new(&[("job.toml", &one)]).load().unwrap();
    let two = CIRCUIT.replace(", \"r\"]", "]\nadversary = \"malicious\"");
    Case::new(&[("job.toml", &two)]).load().unwrap();
}
