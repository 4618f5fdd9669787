//! `veil shadow`: what sample rows use of ranges.

use crate::common::Folder;
use serde_json::Value;

const JOB: &str = r#"version = 1
kind = "query"
name = "study"
owners = ["mill"]
parties = ["a", "b", "c"]
recipients = ["press"]

[[table]]
name = "people"
owner = "mill"
rows = 100
column = [{ name = "pay", type = "integer", min = 1, max = 1000000 }]

[query]
name = "logs"
sql = "SELECT least(pay, 1000) AS pay, ln(pay) AS log FROM people"
to = "press"
"#;

#[test]
fn what_a_sample_uses_is_shown_and_wrong_cells_end_with_code_3() {
    let folder = Folder::new();
    folder.write("job.toml", JOB);
    folder.write("good.csv", "pay\n20\n1500\n1000\n");
    folder.write("wrong.csv", "pay\n20\n0\n");
    let text = folder.succeed("shadow job.toml --data mill:people=good.csv");
    for part in [
        "table people: 3 rows",
        "20 to 1500",
        "11 of 20",
        "query logs: 3 rows",
        "1 to 1000",
        "0 and 2",
        "from doubles",
    ] {
        assert!(text.contains(part), "{text}\n{part}");
    }
    let json = folder.succeed("shadow job.toml --data mill:people=good.csv --json");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["good"], &json["job"]),
        (&true.into(), &"study".into())
    );
    let pay = &json["columns"][1];
    assert_eq!(pay["observed"], serde_json::json!(["20", "1000"]));
    assert_eq!((&pay["bits"], &pay["used_bits"]), (&10.into(), &10.into()));
    assert!(json["columns"][2]["max_error"].as_f64().unwrap() < 1e-6);
    let wrong = [
        "line 3 (row 2), column `pay`",
        "outside the declared range 1 to 1000000",
    ];
    folder.fail("shadow job.toml --data mill:people=wrong.csv", 3, &wrong);
    folder.fail(
        "shadow job.toml",
        3,
        &["no file is given for table `people` of `mill`"],
    );
    folder.write("blocks.toml", "version = 1\nkind = \"stats\"\nname = \"pay\"\nowners = [\"mill\"]\nparties = [\"a\", \"b\", \"c\"]\nrecipients = [\"press\"]\ncolumn = [{ name = \"pay\", type = \"integer\", min = 0, max = 9 }]\nblock = [{ name = \"mill\", rows = 3, holds = { mill = [\"pay\"] } }]\nanalysis = [{ name = \"pay\", kind = \"sum\", of = \"pay\", to = \"press\" }]\n");
    folder.fail(
        "shadow blocks.toml",
        2,
        &["`pay` has no queries over tables", "veil data check"],
    );
}
