//! Tables that are given: in memory, and as other files than the job names.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use veilworks::{Code, Job, Local, MemoryTable};

const JOB: &str = r#"
version = 1
kind = "query"
name = "ages"
owners = ["north"]
parties = ["a", "b", "c"]
recipients = ["press"]

[[table]]
name = "people"
owner = "north"
rows = { up_to = 8 }
column = [
  { name = "age", type = "integer", min = 0, max = 120 },
  { name = "ward", type = "category", values = ["east", "west"] },
]

[[query]]
name = "ages"
sql = "SELECT ward, sum(age) AS age FROM people GROUP BY ward"
to = "press"
"#;

fn job() -> Job {
    Job::parse(JOB, ".").unwrap()
}

fn batch(ages: &[i64], wards: &[&str]) -> RecordBatch {
    let ages: ArrayRef = Arc::new(Int64Array::from(ages.to_vec()));
    let wards: ArrayRef = Arc::new(StringArray::from(wards.to_vec()));
    RecordBatch::try_from_iter([
        ("unread", Arc::clone(&ages)),
        ("ward", wards),
        ("age", ages),
    ])
    .unwrap()
}

fn table(batches: Vec<RecordBatch>) -> MemoryTable {
    MemoryTable::new(batches[0].schema(), batches).unwrap()
}

#[test]
fn a_table_in_memory_is_the_table_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("people.csv");
    let text = "ward,age\neast,30\nwest,40\neast,50\nwest,9\neast,1\n";
    std::fs::write(&file, text).unwrap();
    let batches = vec![
        batch(&[30, 40], &["east", "west"]),
        batch(&[], &[]),
        batch(&[50, 9, 1], &["east", "west", "east"]),
    ];
    let job = job();
    let of_file = Local::of(&job).file("north", "people", &file);
    let in_memory = Local::of(&job).table("north", "people", table(batches));
    for local in [of_file, in_memory] {
        let reports = local.check().unwrap();
        assert_eq!((reports[0].rows, reports[0].block.as_str()), (5, "people"));
        let outcome = local.run().unwrap();
        let answers = outcome.answers("press").unwrap();
        assert_eq!(answers[0].csv(), "ward,age\neast,81\nwest,49\n");
        let batch = answers[0].batch().unwrap();
        assert_eq!(batch.num_rows(), 2);
    }
}

#[test]
fn cells_in_memory_are_looked_at() {
    let bad = batch(&[30, 121], &["east", "north"]);
    let local = Local::of(&job()).table("north", "people", table(vec![bad]));
    for error in [local.check().unwrap_err(), local.run().unwrap_err()] {
        assert_eq!(error.code(), Code::Input);
        let cells = error.cells().iter();
        let cells: Vec<_> = cells
            .map(|cell| (cell.row, cell.column.clone().unwrap(), cell.value.clone()))
            .collect();
        let wanted = [(2, "age", "121"), (2, "ward", "north")];
        let wanted = wanted.map(|(row, column, cell)| (row, column.to_owned(), cell.to_owned()));
        assert_eq!(cells, wanted);
        let message = error.to_string();
        let begins = "table `people` in memory: row 2, column `age`: `121` is outside";
        assert!(message.starts_with(begins), "{message}");
    }
}

#[test]
fn a_table_without_a_column_or_with_too_many_rows_is_refused() {
    let ages: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let less = RecordBatch::try_from_iter([("age", ages)]).unwrap();
    let more = batch(&[1; 9], &["east"; 9]);
    for (given, said) in [
        (less, "no column `ward`; the header names `age`"),
        (more, "has 9 rows, and table `people` of the job has 0 to 8"),
    ] {
        let error = Local::of(&job())
            .table("north", "people", table(vec![given]))
            .check()
            .unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn tables_that_are_none_of_the_job_are_refused() {
    let given = || table(vec![batch(&[1], &["east"])]);
    for (owner, name) in [("north", "wards"), ("south", "people")] {
        let in_memory = Local::of(&job()).table(owner, name, given()).run();
        let of_file = Local::of(&job()).file(owner, name, "people.csv").run();
        for ran in [in_memory, of_file] {
            let said = ran.unwrap_err().to_string();
            let wanted = format!("`{owner}` supplies no `{name}` in this job");
            assert!(said.starts_with(&wanted), "{said}");
        }
    }
}

#[test]
fn an_error_has_its_place_in_the_query() {
    let text = JOB.replace("sum(age) AS age", "sum(ages) AS age");
    let error = Job::parse(&text, ".").unwrap_err();
    let place = error.place().unwrap();
    let at = (place.query.as_deref(), place.line, place.column);
    assert_eq!(at, (Some("ages"), 1, 18));
    let error = Job::parse(&JOB.replace("\"query\"", "\"quest\""), ".").unwrap_err();
    let place = error.place().unwrap();
    assert_eq!((place.query.as_deref(), place.line), (None, 3));
}

#[test]
fn a_job_is_explained() {
    let rates = veilworks::explain::Found::built_in();
    let explained = job().explain(&rates.rates).unwrap();
    let text = explained.text("job.toml".as_ref(), &rates, false);
    for said in [
        "opened to press, and nothing else\n  `ages`: up to 2 rows of ward, age\n",
        &format!("plan       {} (participants", job().hash()),
        "estimated time, from the first message to the last",
    ] {
        assert!(text.contains(said), "{said} is not in {text}");
    }
    let plan = explained.text("job.toml".as_ref(), &rates, true);
    assert!(plan.contains("table people of north"), "{plan}");
}
