//! Jobs with queries: from the file to the values of ports, and from opened values to results.

mod claims;
mod descent;
mod forests;
mod functions;
mod inexact;
mod models;
mod networks;
mod readers;
mod refused;
mod results;
mod secret;
mod shadow;
mod trees;
mod two;

use std::sync::Arc;

use veil_job::passes::PassSpec;
use veil_job::{Holder, Slice, Source};
use veil_math::Ring;
use veil_physical::{TablePort, TablePorts};
use veil_program::Job;

use crate::common::Case;

/// A job with one table of every kind of column.
pub(crate) const JOB: &str = r#"version = 1
kind = "query"
name = "readmissions"
owners = ["north", "south"]
parties = ["p0", "p1", "p2"]
recipients = ["ministry"]

[[table]]
name = "stays"
owner = "north"
rows = { up_to = 10 }
unique = [["patient"]]
file = "north.csv"
column = [
  { name = "patient", type = "key", bits = 64 },
  { name = "since", type = "date", min = "2020-01-01", max = "2025-12-31" },
  { name = "ward", type = "category", values = ["b", "a", "c"] },
  { name = "pay", type = "decimal", scale = 2, min = "-10", max = "9999.99", null = true },
  { name = "ok", type = "bool" },
  { name = "beds", type = "integer", min = 3, max = 3 },
]

[query]
name = "all_stays"
sql = "SELECT since, ward, pay, ok, beds FROM stays"
to = "ministry"
"#;

pub(crate) const NORTH: &str = "patient,since,ward,pay,ok,beds
anna,2020-01-01,a,-9.5,true,3
bert,2025-12-31,b,9999.99,f,3
carl,2024-02-29,c,,1,3
";

/// SHA-256("veil key" ‖ "readmissions" ‖ 4, in eight bytes ‖ name), its first eight bytes: by hashlib of Python.
const DIGESTS: [u128; 3] = [
    0x89c2_300e_95bd_d1e2,
    0xc6f6_41d5_caae_b6fd,
    0xecef_e21f_1612_7bef,
];

pub(crate) fn case(job: &str, north: &str) -> Case {
    Case::new(&[("job.toml", job), ("north.csv", north)])
}

/// What `owner` supplies, pass by pass, or the error.
pub(crate) fn sources(case: &Case, job: &Job) -> Result<veil_program::Sources, String> {
    let sources = job.sources(Holder::Owner(0));
    sources.map_err(|error| case.shorten(&error.to_string()))
}

/// Why the table of a job cannot be used.
pub(crate) fn data_error(job: &str, north: &str) -> String {
    let case = case(job, north);
    let job = case.load().unwrap();
    match sources(&case, &job) {
        Ok(_) => panic!("the data are accepted"),
        Err(error) => error,
    }
}

/// The values of a port in all its rows.
pub(crate) fn values(job: &Job, ports: &TablePorts, port: usize, source: &dyn Source) -> Vec<u128> {
    let PassSpec::Rows { job, .. } = &job.passes().unwrap().passes[ports.pass] else {
        panic!("a pass that takes a table is of rows");
    };
    let input = &job.circuit.inputs[port];
    let (ring, rows) = (input.ring(job.circuit.ring), job.rows());
    let wire = ring.bytes(rows) as usize;
    let mut bytes = vec![0xff; wire * input.width as usize];
    // In two slices, of which the second does not begin at a byte.
    let first = rows.min(3);
    for (at, rows) in [(0, first), (first, rows - first)] {
        if rows == 0 {
            continue;
        }
        let part = ring.bytes(rows) as usize;
        let mut into = vec![0xff; part * input.width as usize];
        let slice = Slice {
            block: 0,
            first: at,
            rows: rows as u32,
        };
        source.fill(port, slice, &mut into).unwrap();
        for (index, from) in into.chunks(part).enumerate() {
            for row in 0..rows as usize {
                put(
                    ring,
                    &mut bytes[index * wire..][..wire],
                    at as usize + row,
                    get(ring, from, row),
                );
            }
        }
    }
    let value = |row: usize| {
        let wires = bytes.chunks(wire).enumerate();
        wires
            .map(|(index, wire)| get(ring, wire, row) << index)
            .sum()
    };
    (0..rows as usize).map(value).collect()
}

fn get(ring: Ring, wire: &[u8], row: usize) -> u128 {
    if ring == Ring::Bits {
        return (wire[row / 8] >> (row % 8) & 1).into();
    }
    let size = ring.bytes(1) as usize;
    let mut element = [0; 16];
    element[..size].copy_from_slice(&wire[row * size..][..size]);
    u128::from_le_bytes(element)
}

fn put(ring: Ring, wire: &mut [u8], row: usize, value: u128) {
    if ring == Ring::Bits {
        wire[row / 8] &= !(1 << (row % 8));
        wire[row / 8] |= (value as u8) << (row % 8);
        return;
    }
    let size = ring.bytes(1) as usize;
    wire[row * size..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
}

/// Compares all ports with cells: of each column whether it is null, its bits, and its integer.
pub(crate) fn compare(
    job: &Job,
    sources: &veil_program::Sources,
    expected: &[(u32, &[Option<i128>], i128)],
) {
    let plan = job.queries().unwrap().physical();
    assert_eq!(sources.len(), plan.tables.len());
    let mut compared = 0;
    for (ports, (pass, source)) in plan.tables.iter().zip(sources) {
        assert_eq!(ports.pass, *pass);
        let rows = expected[0].1.len();
        for (at, port) in ports.ports.iter().enumerate() {
            let got = values(job, ports, at, &**source);
            let cell = |column: veil_relation::ColumnId| {
                let found = expected.iter().find(|(of, ..)| *of == column.0);
                found.copied().unwrap()
            };
            let want: Vec<u128> = match *port {
                TablePort::Valid => vec![1; rows],
                TablePort::Null(column) => cell(column)
                    .1
                    .iter()
                    .map(|of| of.is_none().into())
                    .collect(),
                TablePort::Bits(column) => {
                    let (_, cells, least) = cell(column);
                    cells
                        .iter()
                        .map(|of| of.map_or(0, |of| (of - least) as u128))
                        .collect()
                }
                TablePort::Integer(column, ring) => {
                    let (_, cells, _) = cell(column);
                    cells
                        .iter()
                        .map(|of| of.map_or(0, |of| ring.reduce(of as u128)))
                        .collect()
                }
            };
            // Rows behind those of the file are zero in every port.
            let padding = got.len() - rows;
            assert_eq!(got, [want, vec![0; padding]].concat(), "{port:?}");
            compared += 1;
        }
    }
    assert!(compared > 4);
}

#[test]
fn ports_have_the_cells_of_the_file() {
    let case = case(JOB, NORTH);
    let job = case.load().unwrap();
    let sources = sources(&case, &job).unwrap();
    // Days since 1970-01-01 of 2020-01-01, 2025-12-31, 2024-02-29, by `date -d … +%s` over 86400.
    let expected: [(u32, &[Option<i128>], i128); 5] = [
        (1, &[Some(18_262), Some(20_453), Some(19_782)], 18_262),
        // Values of a category are ordered by their bytes.
        (2, &[Some(0), Some(1), Some(2)], 0),
        (3, &[Some(-950), Some(999_999), None], -1000),
        (4, &[Some(1), Some(0), Some(1)], 0),
        (5, &[Some(3), Some(3), Some(3)], 3),
    ];
    compare(&job, &sources, &expected);
}

#[test]
fn the_job_is_what_the_file_says() {
    let case = case(JOB, NORTH);
    let job = case.load().unwrap();
    let queries = job.queries().unwrap();
    let table = &queries.program().tables[0];
    assert_eq!((table.capacity, table.padded), (10, true));
    let [one] = queries.queries() else { panic!() };
    assert_eq!(
        (one.name.as_str(), one.to.as_deref()),
        ("all_stays", Some("ministry"))
    );
    assert_eq!(
        job.spec().opened,
        ["`all_stays`: up to 10 rows of since, ward, pay, ok, beds"]
    );
    assert_eq!(job.spec().rows(), 10);
    let data = job.data();
    assert_eq!(
        (data[0].owner.as_str(), data[0].what.as_str()),
        ("north", "stays")
    );
    assert_eq!(data[0].path, Some(case.path("north.csv")));
    // An exact number of rows is known to a planner.
    let exact = JOB.replace("{ up_to = 10 }", "3");
    case.write("job.toml", exact.as_bytes());
    let exact = case.load().unwrap();
    let table = &exact.queries().unwrap().program().tables[0];
    assert_eq!((table.capacity, table.padded), (3, false));
    assert!(sources(&case, &exact).is_ok());
}

/// The first pass's job of a text.
fn first(text: &str) -> Arc<veil_job::JobSpec> {
    let case = case(text, NORTH);
    let job = case.load().unwrap();
    let PassSpec::Rows { job, .. } = &job.passes().unwrap().passes[0] else {
        panic!("the first pass is of rows");
    };
    Arc::clone(job)
}

/// What passes mean is under their hash: the text of queries, the salt of keys, columns of files, words of owners.
#[test]
fn the_meaning_is_under_the_hash() {
    let base = first(JOB);
    assert!(base.schema.contains("SELECT since, ward"));
    for (from, to) in [
        ("SELECT since,", "SELECT  since,"),
        (
            "recipients = [\"ministry\"]",
            "recipients = [\"ministry\"]\nsalt = \"other\"",
        ),
        ("bits = 64 }", "bits = 64, of = \"person\" }"),
        (
            "bits = 64 }",
            "bits = 64, may = [\"join\"], reveal = \"rows\" }",
        ),
        (
            "rows = { up_to = 10 }",
            "rows = { up_to = 16, bucket = \"pow2\" }",
        ),
        ("rows = { up_to = 10 }", "rows = 10"),
        ("min = 3, max = 3", "min = 3, max = 4"),
    ] {
        assert!(JOB.contains(from), "{from}");
        let other = first(&JOB.replacen(from, to, 1));
        assert_ne!(base.schema, other.schema, "{to}");
    }
    let bounded = |overflow: &str| {
        first(&format!(
            "{JOB}[[bound]]\nof = \"all_stays\"\nrows = 3\noverflow = \"{overflow}\"\n"
        ))
    };
    assert_ne!(bounded("flag").schema, bounded("drop").schema);
    // Where a file is and how it is written is each owner's own.
    let other = first(&JOB.replace("file = \"north.csv\"", "delimiter = \";\""));
    assert_eq!(base, other);
    let written = |how: &str| {
        let written = format!("file = \"north.csv\"\nwritten = {{ {how} }}");
        first(&JOB.replace("file = \"north.csv\"", &written))
    };
    assert_eq!(base, written("decimal = \",\", dates = \"%d.%m.%Y\""));
    // What it makes of values is not: a word for a missing value could leave out a row.
    let others = [
        "round = true",
        "missing = [\"NA\"]",
        "missing = [\"NA\", \"a\"]",
        "missing = [\"NA, a\"]",
    ]
    .map(written);
    for (at, other) in others.iter().enumerate() {
        assert_ne!(base.schema, other.schema);
        assert!(
            others[..at]
                .iter()
                .all(|before| before.schema != other.schema)
        );
    }
}

#[test]
fn the_protocol_may_be_chosen_and_passes_are_planned_for_it() {
    let four = JOB.replace("\"p2\"]", "\"p2\", \"p3\"]");
    let case = case(&four, NORTH);
    let job = case.load().unwrap();
    assert_eq!(first(&four).security, job.spec().security);
    assert_eq!(
        job.spec().security.adversary,
        veil_job::Adversary::Malicious
    );
    let mut chosen = job.clone();
    let words = veil_program::Words {
        adversary: Some(veil_job::Adversary::SemiHonest),
        ..Default::default()
    };
    chosen.choose(words).unwrap();
    let PassSpec::Rows { job: first, .. } = &chosen.passes().unwrap().passes[0] else {
        panic!("the first pass is of rows");
    };
    assert_eq!(first.security.adversary, veil_job::Adversary::SemiHonest);
    assert_eq!(chosen.spec().security, first.security);
}
