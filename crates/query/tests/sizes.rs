//! Kept relations whose size is opened: which bucket their number of rows is in, and no more; and jobs that load as many rows.

use veil_job::passes::PassSpec;
use veil_job::{Audience, Security};
use veil_physical::{KeepPorts, Opening, PhysicalPlan, plan};
use veil_protocol::Options;
use veil_query::{Job, Query, SortedBytes, compile};
use veil_relation::{
    Bucket, Column, First, Kept, Kind, OpenSize, Origin, Program, Table, Type, Value, clear,
};

use crate::common::{self, Random, query, range};
use crate::parties::{
    Stores, all_securities, participants, run_with_sizes, run_with_stores, securities,
};

/// A query whose relation is kept, with its size in these buckets.
fn keeping(sql: &str, bucket: Bucket) -> Query {
    Query {
        name: "kept".into(),
        sql: sql.into(),
        to: None,
        keep: Some(Kept {
            dataset: "kept".into(),
            size: Some(OpenSize {
                bucket,
                why: "the next join is smaller".into(),
            }),
        }),
        min_count: 0,
        fit: None,
        apply: None,
    }
}

fn compiled(tables: &[Table], queries: Vec<Query>) -> Result<Program, String> {
    let job = Job {
        tables: tables.to_vec(),
        queries,
        bounds: vec![],
        models: vec![],
        functions: vec![],
    };
    compile(&job, &SortedBytes).map_err(|error| error.to_string())
}

fn planned(program: &Program, security: Security) -> Result<PhysicalPlan, String> {
    plan(program, &participants(security)).map_err(|error| error.to_string())
}

const fn options(lanes: u16) -> Options {
    Options {
        lanes,
        chunk_rows: Some(512),
    }
}

/// The first rows of a kept relation as a table.
fn first(of: &KeepPorts, rows: u32, opened: u32) -> Table {
    Table {
        name: "kept".into(),
        capacity: rows,
        origin: Origin::First(First {
            dataset: of.dataset.clone(),
            of: of.table.capacity,
            opened,
        }),
        ..of.table.clone()
    }
}

/// A table of two columns, one of which may be null.
fn table(capacity: u32) -> Table {
    let column = |name: &str, nullable| Column {
        name: name.into(),
        ty: Type::of(Kind::Integer(range(-3, 90))).or_null(nullable),
        consent: None,
    };
    Table {
        name: "t".into(),
        origin: Origin::Owner("north".into()),
        capacity,
        padded: true,
        columns: vec![column("a", false), column("b", true)],
        sorted_by: vec![],
        unique: vec![],
    }
}

/// Rows of which so many are valid, anywhere.
fn rows(of: &Table, valid: u32, random: &mut Random) -> clear::Input {
    let mut input = clear::Input::default();
    let mut left = valid;
    for at in 0..of.capacity {
        let is_valid = random.below((of.capacity - at).into()) < left.into();
        left -= u32::from(is_valid);
        input.valid.push(is_valid);
        let b = match random.below(4) {
            0 => Value::Null,
            _ => Value::Number(i128::from(random.below(90))),
        };
        let a = Value::Number(i128::from(random.below(94)) - 3);
        input.rows.push(vec![a, b]);
    }
    assert_eq!(left, 0);
    input
}

/// Keeps so many valid rows of `capacity`, then loads as few rows as the opened size allows, and some more.
fn kept_and_loaded(capacity: u32, valid: u32, bucket: Bucket, security: Security) {
    let what = format!("{valid} of {capacity} rows, {bucket:?}, {security}");
    let mut random = Random(u64::from(capacity) << 32 | u64::from(valid));
    let tables = [table(capacity)];
    let inputs = [rows(&tables[0], valid, &mut random)];
    let program = compiled(
        &tables,
        vec![keeping("SELECT b, a, a + 1 AS c FROM t", bucket)],
    );
    let program = program.unwrap();
    let physical = planned(&program, security).unwrap();
    let run = (&physical, &program, &inputs[..]);
    let none = Stores::new();
    let (opened, kept, sizes) =
        run_with_sizes(run, |_, _, _, value| value, (options(2), &none)).unwrap();
    assert!(opened.is_empty());
    assert_eq!(sizes, [bucket.number(valid)], "{what}");
    let port = physical.keeps[0].size.unwrap();
    let size = port.rows(sizes[0]).unwrap();
    assert!(size >= valid && size <= capacity, "{what}");
    let asked = "SELECT a, b, c FROM kept";
    let inner = Query {
        keep: None,
        ..keeping("SELECT b, a, a + 1 AS c FROM t", bucket)
    };
    let whole = compiled(&tables, vec![inner, query(asked)]).unwrap();
    let wanted = clear::evaluate(&whole, &inputs).unwrap();
    for rows in [size.max(1), (size + 1).min(capacity), capacity] {
        let program = compiled(&[first(&physical.keeps[0], rows, size)], vec![query(asked)]);
        let program = program.unwrap();
        let later = planned(&program, security).unwrap();
        let inputs = [clear::Input::default()];
        let run = (&later, &program, &inputs[..]);
        let (found, _) = run_with_stores(run, |_, _, _, value| value, (options(1), &kept)).unwrap();
        assert_eq!(found[0], wanted[0].rows, "{what}, {rows} loaded");
        assert_eq!(found[0].len() as u32, valid);
        let loaded = later
            .tables
            .iter()
            .map(|of| match &later.passes.passes[of.pass] {
                PassSpec::Rows { job, .. } => (job.rows(), job.datasets[0].rows),
                _ => panic!("tables are loaded by passes of rows"),
            });
        for found in loaded {
            assert_eq!(found, (rows.into(), capacity.into()), "{what}");
        }
    }
}

/// No valid row, all, as many as a bucket has, and one more.
#[test]
fn a_size_is_the_bucket_of_the_number_of_valid_rows() {
    for security in all_securities() {
        for capacity in [3, 17, 37] {
            for bucket in [
                Bucket::RoundUpTo(2),
                Bucket::RoundUpTo(5),
                Bucket::RoundUpTo(16),
            ] {
                let Bucket::RoundUpTo(by) = bucket else {
                    continue;
                };
                if by >= capacity {
                    continue;
                }
                for valid in [0, 1, by - 1, by, by + 1, 2 * by, 2 * by + 1, capacity] {
                    if valid <= capacity {
                        kept_and_loaded(capacity, valid, bucket, security);
                    }
                }
            }
            for valid in [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 37] {
                if valid <= capacity {
                    kept_and_loaded(capacity, valid, Bucket::PowerOfTwo, security);
                }
            }
        }
    }
}

/// Several chunks, and buckets that are none of them.
#[test]
fn a_size_is_that_of_all_chunks() {
    let [three, four] = securities();
    kept_and_loaded(1301, 701, Bucket::RoundUpTo(100), three);
    kept_and_loaded(1301, 1024, Bucket::PowerOfTwo, four);
    kept_and_loaded(1301, 1025, Bucket::PowerOfTwo, three);
}

/// Numbers of rows of one bucket give the same opening, whatever else they are.
#[test]
fn numbers_of_one_bucket_open_the_same() {
    let [three, _] = securities();
    let opened = |valid| {
        let tables = [table(40)];
        let inputs = [rows(&tables[0], valid, &mut Random(valid.into()))];
        let program = compiled(
            &tables,
            vec![keeping("SELECT a, b FROM t", Bucket::RoundUpTo(10))],
        );
        let program = program.unwrap();
        let physical = planned(&program, three).unwrap();
        let run = (&physical, &program, &inputs[..]);
        let none = Stores::new();
        let ran = run_with_sizes(run, |_, _, _, value| value, (options(1), &none));
        ran.unwrap().2
    };
    for valid in 11..=20 {
        assert_eq!(opened(valid), [2], "{valid}");
    }
}

/// What is opened is listed, with the job's words; the pass that opens it is the only one that opens something to the parties.
#[test]
fn a_size_is_listed_among_what_is_opened() {
    let tables = common::tables(40, 70);
    for security in all_securities() {
        let sql = "SELECT id, age FROM people WHERE age > 30";
        let program = compiled(&tables, vec![keeping(sql, Bucket::RoundUpTo(7))]).unwrap();
        let physical = planned(&program, security).unwrap();
        let listed = Opening::Size {
            step: "kept".into(),
            rows: 40,
            bucket: Bucket::RoundUpTo(7),
            why: "the next join is smaller".into(),
        };
        assert!(physical.opens.contains(&listed), "{:?}", physical.opens);
        let mut opening = Vec::new();
        for (at, pass) in physical.passes.passes.iter().enumerate() {
            if let PassSpec::Rows {
                job, claim: None, ..
            } = pass
                && job.audiences.contains(&Audience::Parties)
            {
                assert_eq!((job.rows(), job.audiences.len()), (1, 1));
                assert_eq!(job.opened, ["rows of kept that count, by 7, rounded up"]);
                opening.push(at);
            }
        }
        assert_eq!(opening, [physical.keeps[0].size.unwrap().pass]);
        assert!(opening[0] < physical.keeps[0].pass);
    }
}

/// Rows that a sort has left in front move no more; rows that a condition leaves out come behind, in the order that groups had.
#[test]
fn rows_in_front_move_no_more_and_keep_their_order() {
    let tables = common::tables(40, 70);
    let [security, _] = securities();
    let physical = |sql: &str, sized: bool| {
        let mut of = keeping(sql, Bucket::RoundUpTo(9));
        if !sized {
            of.keep = Some("kept".into());
        }
        planned(&compiled(&tables, vec![of]).unwrap(), security).unwrap()
    };
    let permutations = |of: &PhysicalPlan| {
        let opens = of.opens.iter().find_map(|of| match of {
            Opening::Permutations { count } => Some(*count),
            _ => None,
        });
        opens.unwrap_or(0)
    };
    let sorted = "SELECT id, age FROM people WHERE age > 30 ORDER BY age, id";
    let (plain, sized) = (physical(sorted, false), physical(sorted, true));
    assert_eq!(permutations(&plain), permutations(&sized));
    let some = "SELECT person, n FROM (SELECT person, count(*) AS n FROM visits GROUP BY person) g WHERE n > 1";
    let (plain, sized) = (physical(some, false), physical(some, true));
    assert_eq!(permutations(&plain) + 1, permutations(&sized));
    assert_eq!(plain.keeps[0].table.sorted_by, []);
    let person = veil_relation::ColumnId(0);
    assert_eq!(sized.keeps[0].table.sorted_by, [person]);
}

#[test]
fn a_size_that_says_nothing_or_too_much_is_refused() {
    let tables = common::tables(40, 70);
    let [security, _] = securities();
    let refused = |sql: &str, bucket| {
        let program = compiled(&tables, vec![keeping(sql, bucket)]);
        program
            .and_then(|program| planned(&program, security))
            .unwrap_err()
    };
    let all = "SELECT count(*) AS n FROM people";
    let some = "SELECT id FROM people";
    for (sql, bucket, what) in [
        (
            all,
            Bucket::PowerOfTwo,
            "`kept` cannot be kept: all of its rows count, and there is no size to open",
        ),
        (
            some,
            Bucket::RoundUpTo(40),
            "`kept` cannot be kept: all numbers of rows that it may have are in one bucket, which is no size to open",
        ),
        (
            some,
            Bucket::RoundUpTo(1),
            "kept: a size is rounded up to two rows or more: else the number of rows itself would be opened",
        ),
        (
            some,
            Bucket::RoundUpTo(0),
            "kept: a size is rounded up to two rows or more: else the number of rows itself would be opened",
        ),
    ] {
        let said = refused(sql, bucket);
        assert!(said.contains(what), "{said}");
    }
    assert!(
        planned(
            &compiled(&tables, vec![keeping(some, Bucket::RoundUpTo(39))]).unwrap(),
            security
        )
        .is_ok()
    );
}

/// Fewer rows than may be valid, more than there are, or a table without padding.
#[test]
fn first_rows_are_at_least_the_opened_size() {
    let of = |capacity, of, opened, padded| Table {
        capacity,
        padded,
        origin: Origin::First(First {
            dataset: "kept".into(),
            of,
            opened,
        }),
        ..table(9)
    };
    for (rows, kept, opened, padded, is_one) in [
        (20, 90, 20, true, true),
        (90, 90, 20, true, true),
        (1, 90, 0, true, true),
        (19, 90, 20, true, false),
        (91, 90, 20, true, false),
        (20, 90, 20, false, false),
    ] {
        let checked = of(rows, kept, opened, padded).check();
        assert_eq!(checked.is_ok(), is_one, "{rows} of {kept}, {opened}");
        if let Err(error) = checked {
            assert_eq!(
                error.to_string(),
                format!(
                    "table `t` has the first {rows} of {kept} rows, of which up to {opened} count; it has at least those, and no more than there are"
                )
            );
        }
    }
}
