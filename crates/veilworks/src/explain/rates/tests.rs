use std::sync::Arc;

use veil_program::{Files, Job};
use veil_protocol::{Options, Plan};

use super::*;
use crate::explain::estimate::Run;

/// The text of the table of the program, with a line changed.
fn with(from: &str, to: &str) -> String {
    let text = Rates::built_in().to_toml();
    assert!(text.contains(from), "{from} is not in {text}");
    text.replacen(from, to, 1)
}

fn refusal(text: &str) -> String {
    Rates::parse(Path::new("rates.toml"), text)
        .unwrap_err()
        .to_string()
}

/// A table with these rates.
fn table(wait: f64, seconds: impl Fn(Kind) -> f64) -> Rates {
    let mut rates = Rates::built_in();
    rates.wait = wait;
    for kind in Kind::ALL {
        rates.seconds[*kind as usize] = seconds(*kind);
    }
    rates
}

#[test]
fn a_table_is_read_as_it_is_written() {
    let rates = Rates::built_in();
    let read = Rates::parse(Path::new("rates.toml"), &rates.to_toml()).unwrap();
    assert_eq!(read, rates);
    assert!(rates.of(Kind::Message) > 0.0);
    let odd = Rates {
        machine: "a \"fast\" one \\ [cpu]".into(),
        wait: 0.0,
        ..table(1e-5, |_| 1.25e-13)
    };
    assert_eq!(
        Rates::parse(Path::new("rates.toml"), &odd.to_toml()).unwrap(),
        odd
    );
}

#[test]
fn kinds_have_names_of_their_own() {
    for (index, kind) in Kind::ALL.iter().enumerate() {
        assert_eq!(*kind as usize, index);
        let same = Kind::ALL.iter().filter(|other| other.name() == kind.name());
        assert_eq!(same.count(), 1, "{}", kind.name());
    }
}

#[test]
fn what_is_no_table_is_refused_with_its_place() {
    let hash = Rates::built_in().of(Kind::Hash);
    let hash = format!("hash = {hash:e}");
    let hash = hash.as_str();
    let line = 1 + with(hash, "hash = 1")
        .lines()
        .take_while(|line| !line.starts_with("hash ="))
        .count();
    for (from, to, said) in [
        (
            "version = 1",
            "version = 2",
            "rates.toml: version 2 of a table of rates is unknown; this program reads version 1"
                .to_owned(),
        ),
        (
            "version = 1",
            "version = \"1\"",
            "rates.toml:2:11: `version` must be a number".into(),
        ),
        (
            "version = 1\n",
            "",
            "rates.toml:1:1: `version = 1` is missing; add it as the first line".into(),
        ),
        (
            hash,
            "hash = -1e-9",
            format!(
                "rates.toml:{line}:8: `hash` is -0.000000001: a rate is a number of seconds from 0 to 1000"
            ),
        ),
        (
            hash,
            "hash = nan",
            format!(
                "rates.toml:{line}:8: `hash` is NaN: a rate is a number of seconds from 0 to 1000"
            ),
        ),
        (
            hash,
            "hash = inf",
            format!(
                "rates.toml:{line}:8: `hash` is inf: a rate is a number of seconds from 0 to 1000"
            ),
        ),
        (
            hash,
            "hash = 1001",
            format!(
                "rates.toml:{line}:8: `hash` is 1001: a rate is a number of seconds from 0 to 1000"
            ),
        ),
        (
            hash,
            "hush = 1",
            format!("rates.toml:{line}:1: unknown rate `hush`"),
        ),
        (hash, "", "the rate `hash` is missing".into()),
        ("cores = ", "cores = -", "`cores` is -".into()),
        ("cores = ", "cores = 99999", ": write 1 to 65535".into()),
        (
            "measured = \"2",
            "measured = \"12",
            "`measured` is a day, such as \"2027-12-31\"".into(),
        ),
        (
            "machine = \"",
            "machine = \"\\u001b[2J",
            "`machine` is a name of 1 to 100 printable characters".into(),
        ),
        (
            "machine = ",
            "colour = 1\nmachine = ",
            "rates.toml:4:1: unknown field `colour`".into(),
        ),
        ("wait = ", "wait = -1", "`wait` is -10: a rate".into()),
    ] {
        let error = refusal(&with(from, to));
        assert!(error.contains(&said), "{to}: {error}\nnot: {said}");
    }
    assert_eq!(
        refusal("version = 1\n[cpu]\n"),
        "rates.toml:1:1: missing field `measured`"
    );
}

#[test]
fn what_is_too_long_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rates.toml");
    let long = format!("{}#{}", Rates::built_in().to_toml(), "x".repeat(64 << 10));
    std::fs::write(&path, long).unwrap();
    let said = |path: &Path| Rates::read(path).unwrap_err().to_string();
    assert_eq!(
        said(&path),
        format!(
            "{}: longer than 65536 bytes: this is no table of rates",
            path.display()
        )
    );
    assert_eq!(
        said(Path::new("/dev/zero")),
        "/dev/zero: longer than 65536 bytes: this is no table of rates"
    );
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    assert_eq!(
        said(&path),
        format!("{}: not UTF-8: this is no table of rates", path.display())
    );
    let none = folder.path().join("none.toml");
    assert!(said(&none).starts_with(&format!(
        "cannot read the table of rates {}: ",
        none.display()
    )));
}

fn plan(job: &str, lanes: u16) -> Arc<Plan> {
    let job = Job::parse(job, Path::new("job.toml"), Files::default()).unwrap();
    let options = Options {
        lanes,
        chunk_rows: Some(512),
    };
    Arc::new(Plan::new(job.shared(), options).unwrap())
}

/// A job of a circuit among so many parties.
fn job(circuit: &str, rows: u64, parties: &str, more: &str) -> String {
    format!(
        "version = 1\nkind = \"circuit\"\nname = \"j\"\nowners = [\"ann\", \"bob\"]\nparties = {parties}\nrecipients = [\"eve\"]\n{more}\n\
         circuit = {{ make = \"{circuit}\", rows = {rows} }}\n\
         input = [{{ port = \"x\", owner = \"ann\", format = \"hex\", file = \"x.hex\" }},\n\
                  {{ port = \"y\", owner = \"bob\", format = \"hex\", file = \"y.hex\" }}]\n\
         output = [{{ port = \"out\", to = \"eve\", format = \"hex\", file = \"out.hex\" }}]\n"
    )
}

const THREE: &str = "[\"a\", \"b\", \"c\"]";

#[test]
fn estimates_are_proportional_to_rates() {
    for parties in [THREE, "[\"a\", \"b\"]", "[\"a\", \"b\", \"c\", \"d\"]"] {
        let plan = plan(&job("adder:16", 5000, parties, ""), 1);
        let run = Run::of(&plan);
        let rates = Rates::built_in();
        let once = run.loopback(&plan, &rates);
        let twice = run.loopback(&plan, &table(2.0 * rates.wait, |kind| 2.0 * rates.of(kind)));
        assert!(
            once > 0.0 && (twice / once - 2.0).abs() < 1e-9,
            "{once} {twice}"
        );
        // One rate alone adds what its units take.
        for kind in Kind::ALL {
            let only = table(0.0, |other| if other == *kind { 1.0 } else { 0.0 });
            let seconds = run.cpu_seconds(&only);
            let units = run.work.iter().map(|work| work.units(*kind) as f64);
            assert!(units.eq(seconds), "{}", kind.name());
        }
    }
}

#[test]
fn lanes_share_what_a_table_has_of_cores() {
    let text = job("adder:16", 5000, THREE, "");
    let rates = table(
        0.0,
        |kind| if kind == Kind::Instruction { 1e-6 } else { 0.0 },
    );
    let seconds = |lanes: u16, cores: u16| {
        let plan = plan(&text, lanes);
        let rates = Rates {
            cores,
            ..rates.clone()
        };
        Run::of(&plan).loopback(&plan, &rates)
    };
    let one = seconds(1, 1);
    let near = |part: f64, whole: f64| (whole / part / one - 1.0).abs() < 1e-9;
    // Three parties compute the same; owners and the recipient compute nothing.
    assert!(near(0.5, seconds(1, 2)));
    assert!(near(1.0 / 3.0, seconds(1, 3)) && near(1.0 / 3.0, seconds(1, 64)));
    assert!(near(1.0 / 6.0, seconds(2, 64)));
}

/// The work grows with the rows as the plan does, and cycles are counted as if they were written out.
#[test]
fn work_is_counted_by_rows_and_cycles() {
    let of = |rows: u64| Run::of(&plan(&job("adder:16", rows, THREE, ""), 1)).work;
    let [one, two, four] = [1, 2, 4].map(|chunks| of(512 * chunks));
    for party in 0..3 {
        for kind in [
            Kind::ProductBits,
            Kind::Mask,
            Kind::Round,
            Kind::Command,
            Kind::Workspace,
        ] {
            let [one, two, four] = [&one, &two, &four].map(|work| work[party].units(kind));
            assert_eq!(four - two, 2 * (two - one), "{}", kind.name());
            assert!(two > one, "{}", kind.name());
        }
        // 15 products of 64 bytes per chunk, of three terms each.
        let product = one[party].units(Kind::ProductBits);
        assert_eq!(product, 15 * 64 * 3);
    }
}
