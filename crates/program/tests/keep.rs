//! Statistics jobs that keep shares, and jobs that load them.

use veil_job::{Audience, Holder};
use veil_math::Ring;
use veil_program::{Files, Job};

const COLUMNS: &str = r#"
column = [{ name = "region", type = "category", values = ["north", "south"] },
          { name = "pay", type = "decimal", scale = 2, min = 0, max = "9999.99", missing = "drop-pair" },
          { name = "age", type = "integer", min = 0, max = 120 }]
"#;
const BLOCKS: &str = r#"
block = [{ name = "mill", rows = 70, holds = { mill = ["pay", "age", "region"] } },
         { name = "harbour", rows = 30, holds = { harbour = ["pay", "age", "region"] } }]
"#;
const MEAN: &str = r#"
analysis = [{ name = "mean pay", kind = "mean", of = "pay", to = "press" }]
"#;

fn job(owners: &str, rest: &str) -> Result<Job, String> {
    let text = format!(
        "version = 1\nkind = \"stats\"\nname = \"pay\"\nowners = [{owners}]\n\
         parties = [\"university\", \"union\", \"ministry\"]\nrecipients = [\"press\"]\n{COLUMNS}{rest}"
    );
    Job::parse(&text, "job.toml".as_ref(), Files::new()).map_err(|error| error.to_string())
}

fn keeping(keep: &str, analysis: &str) -> Result<Job, String> {
    let rest = format!("{BLOCKS}{analysis}[keep]\n{keep}\n");
    job(r#""mill", "harbour""#, &rest)
}

fn loading(block: &str) -> Result<Job, String> {
    job("", &format!("block = [{block}]\n{MEAN}"))
}

#[test]
fn a_job_that_keeps_has_an_output_for_every_column() {
    let job = keeping("as = \"pay 2025\"", MEAN).expect("a job");
    let spec = job.spec();
    spec.circuit.validate().expect("a valid circuit");
    // Sum and count of pay, and the columns, although the analysis does not use two of them.
    let stored = [Audience::Stored; 3];
    assert_eq!(spec.audiences[2..], stored);
    assert_eq!(
        spec.opened[2..],
        ["region", "pay", "age"].map(|name| format!("`{name}` of every row, as `pay 2025`"))
    );
    let widths: Vec<u32> = spec.keeps().iter().map(|port| port.width).collect();
    assert_eq!(widths, [2, 2, 2]);
    let names: Vec<String> = (spec.keeps().into_iter()).map(|port| port.name).collect();
    assert_eq!(names, ["region", "pay", "age"]);
    let ports: Vec<usize> = (spec.keeps().into_iter()).map(|port| port.port).collect();
    assert_eq!(ports, [2, 3, 4]);
    assert_eq!(spec.keep.as_ref().expect("it keeps").name, "pay 2025");
    assert!(spec.datasets.is_empty());
    assert_eq!(spec.circuit.ring, Ring::Z64);
}

#[test]
fn a_job_may_only_keep() {
    let job = keeping("as = \"pay 2025\"\nring = 128", "").expect("a job");
    assert_eq!(job.spec().audiences, [Audience::Stored; 3]);
    assert_eq!(job.spec().circuit.ring, Ring::Z128);
}

#[test]
fn what_is_kept_can_be_loaded_by_a_job_with_the_same_columns() {
    let kept = keeping("as = \"pay 2025\"", MEAN).expect("a job");
    let job = loading(r#"{ name = "2025", rows = 100, stored = "pay 2025" }"#).expect("a job");
    let datasets = &job.spec().datasets;
    assert_eq!(datasets.len(), 1);
    let dataset = &datasets[0];
    assert_eq!(
        dataset.schema,
        kept.spec().keep.as_ref().expect("it keeps").schema
    );
    assert_eq!(
        (dataset.name.as_str(), dataset.block, dataset.rows),
        ("pay 2025", 0, 100)
    );
    // Only pay is used: port 0 of the job is column 1 of the dataset.
    assert_eq!(dataset.ports, [(0, 1)]);
    assert_eq!(job.spec().blocks[0].holders, [Holder::Stored]);
    assert_eq!(job.spec().blocks[0].stored.as_deref(), Some("pay 2025"));
    assert!(job.data().is_empty() && job.holders().is_empty());
    assert!(job.spec().keep.is_none());
}

#[test]
fn broken_jobs_say_what_to_do() {
    let error = |job: Result<Job, String>| job.map(|_| ()).expect_err("a broken job");
    let says = |job, what: &str| {
        let error = error(job);
        assert!(error.contains(what), "{error}");
    };
    says(
        keeping("as = \"x\"\nring = 32", MEAN),
        "`ring` is `32`: shares are kept with 64 or with 128 bits",
    );
    says(
        loading(r#"{ name = "2025", rows = 1, stored = "x", holds = { mill = ["pay"] } }"#),
        "block `2025`, which is stored, has no use for `holds`",
    );
    says(
        loading(
            r#"{ name = "2025", rows = 1, stored = "x", align = { column = "id", every = 16 } }"#,
        ),
        "block `2025`, which is stored, has no use for `align`",
    );
    says(
        loading(r#"{ name = "2025", rows = 1 }"#),
        "is held by no owner",
    );
    says(keeping("", MEAN), "as");
    says(keeping("as = \"\"", MEAN), "dataset");
    let wide = r#"
        analysis = [{ name = "v", kind = "variance", of = "huge", to = "press" }]
        [[column]]
        name = "huge"
        type = "integer"
        min = 0
        max = 4000000000000000000
    "#;
    let text = format!(
        "version = 1\nkind = \"stats\"\nname = \"pay\"\nowners = [\"mill\"]\n\
         parties = [\"university\", \"union\", \"ministry\"]\nrecipients = [\"press\"]\n\
         block = [{{ name = \"b\", rows = 2, holds = {{ mill = [\"huge\"] }} }}]\n{wide}\n[keep]\nas = \"x\"\nring = 64\n"
    );
    let narrow = Job::parse(&text, "job.toml".as_ref(), Files::new()).map_err(|e| e.to_string());
    says(
        narrow,
        "the analyses of this job need 128 bits, and `x` is to be kept with 64; write `ring = 128` in `[keep]`",
    );
}

#[test]
fn circuit_jobs_have_no_keep_section() {
    let text = "version = 1\nkind = \"circuit\"\nname = \"c\"\nowners = [\"mill\"]\n\
                parties = [\"a\", \"b\", \"c\"]\n[keep]\nas = \"x\"\n";
    let error = Job::parse(text, "job.toml".as_ref(), Files::new()).expect_err("no such section");
    assert!(error.to_string().contains("[keep]"), "{error}");
}
