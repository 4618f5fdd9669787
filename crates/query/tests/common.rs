//! Tables with rows, and the queries that all tests share.

use veil_query::{Bound, Job, Query};
use veil_relation::{
    Column, ColumnId, Field, Kind, Range, Table, Type, Value, Values, calendar, clear,
};

pub(crate) fn range(min: i128, max: i128) -> Range {
    Range::new(min, max).unwrap()
}

pub(crate) fn category(texts: &[&str]) -> Kind {
    Kind::Category(Values::new(texts.iter().map(|text| (*text).to_owned()).collect()).unwrap())
}

pub(crate) fn day(text: &str) -> i32 {
    calendar::parse(text).unwrap()
}

pub(crate) fn table(
    name: &str,
    capacity: u32,
    columns: Vec<(&str, Kind, bool)>,
    unique: &[u32],
) -> Table {
    let column = |(name, kind, nullable): (&str, Kind, bool)| Column {
        name: name.to_owned(),
        ty: Type::of(kind).or_null(nullable),
        consent: None,
    };
    Table {
        name: name.to_owned(),
        origin: veil_relation::Origin::Owner("north".to_owned()),
        capacity,
        padded: true,
        columns: columns.into_iter().map(column).collect(),
        sorted_by: Vec::new(),
        unique: unique
            .iter()
            .map(|column| vec![ColumnId(*column)])
            .collect(),
    }
}

/// Persons with unique ids and tags, their visits, and wards with unique names.
pub(crate) fn tables(people: u32, visits: u32) -> Vec<Table> {
    let decimal = |places, max: i128| Kind::Decimal {
        places,
        units: range(-max, max),
    };
    vec![
        table(
            "people",
            people,
            vec![
                ("id", Kind::Integer(range(0, 1000)), false),
                (
                    "city",
                    category(&["oslo", "rome", "nairobi", "lima", "o'hare"]),
                    true,
                ),
                (
                    "born",
                    Kind::date(day("1950-01-01"), day("2010-12-31")).unwrap(),
                    true,
                ),
                ("income", decimal(2, 100_000), true),
                ("age", Kind::Integer(range(0, 99)), true),
                ("active", Kind::Bool, true),
                ("tag", Kind::Key { bits: 64 }, true),
            ],
            &[0, 6],
        ),
        table(
            "visits",
            visits,
            vec![
                ("person", Kind::Integer(range(0, 1000)), false),
                (
                    "day",
                    Kind::date(day("2020-01-01"), day("2020-02-28")).unwrap(),
                    false,
                ),
                ("cost", decimal(2, 9_999), false),
                ("ward", category(&["a", "b", "c", "oslo"]), false),
                ("tag", Kind::Key { bits: 64 }, true),
            ],
            &[],
        ),
        table(
            "wards",
            5,
            vec![
                ("ward", category(&["a", "b", "c", "d", "e"]), false),
                ("floor", Kind::Integer(range(0, 4)), true),
            ],
            &[0],
        ),
    ]
}

/// SplitMix64: enough for rows of tests, and the same everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// Rows for the tables: claimed keys are unique, other values tie often, a quarter is null, some rows are not valid.
pub(crate) fn rows(tables: &[Table], seed: u64) -> Vec<clear::Input> {
    let mut random = Random(seed);
    let input = |table: &Table| {
        let mut input = clear::Input::default();
        for at in 0..table.capacity {
            input.valid.push(random.below(8) > 0);
            let cell = |(place, column): (usize, &Column)| {
                let unique = table.unique.contains(&vec![ColumnId(place as u32)]);
                if column.ty.nullable && random.below(4) == 0 {
                    return Value::Null;
                }
                match &column.ty.kind {
                    Kind::Bool => Value::Bool(random.below(2) == 1),
                    Kind::Key { .. } if unique => Value::Key(u128::from(at)),
                    Kind::Key { .. } => Value::Key(u128::from(random.below(60))),
                    kind => {
                        let range = kind.range().unwrap();
                        let width = (range.max() - range.min() + 1) as u64;
                        // Persons are few, so that joins match and values tie.
                        let off = match (unique, column.name.as_str()) {
                            (true, _) => u64::from(at),
                            (_, "person") => random.below(40),
                            (_, "day" | "born") => {
                                random.below(width.min(20)) * (width / 20).max(1)
                            }
                            (_, "income" | "cost") => {
                                random.below(30) * (width / 31) + random.below(3)
                            }
                            _ => random.below(width),
                        };
                        Value::Number(range.min() + i128::from(off % width))
                    }
                }
            };
            input
                .rows
                .push(table.columns.iter().enumerate().map(cell).collect());
        }
        input
    };
    tables.iter().map(input).collect()
}

pub(crate) fn query(sql: &str) -> Query {
    Query {
        keep: None,
        name: "q".to_owned(),
        sql: sql.to_owned(),
        to: Some("r".to_owned()),
        min_count: 0,
        fit: None,
        apply: None,
    }
}

pub(crate) fn job(tables: Vec<Table>, sql: &str) -> Job {
    Job {
        tables,
        queries: vec![query(sql)],
        bounds: Vec::<Bound>::new(),
        models: vec![],
        functions: vec![],
    }
}

/// A query of the file that the oracle is asked.
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) ordered: bool,
    pub(crate) sql: String,
}

pub(crate) fn listed() -> Vec<Listed> {
    let text = include_str!("oracle/queries.sql");
    let parts = text
        .split(";\n")
        .map(str::trim)
        .filter(|part| !part.is_empty());
    let one = |part: &str| {
        let (head, sql) = part.split_once('\n').unwrap();
        let head = head.strip_prefix("-- ").unwrap();
        let name = head.split(':').next().unwrap().to_owned();
        let ordered = head.contains(": ordered");
        let sql = sql.to_owned();
        Listed { name, ordered, sql }
    };
    parts.map(one).collect()
}

/// A cell as DuckDB writes it.
pub(crate) fn shown(value: Value, kind: &Kind) -> Option<String> {
    Some(match (value, kind) {
        (Value::Null, _) => return None,
        (Value::Bool(value), _) => value.to_string(),
        (Value::Number(index), Kind::Category(values)) => values.texts()[index as usize].clone(),
        (Value::Number(of), Kind::Date(_)) => calendar::show(of as i32),
        (Value::Number(units), Kind::Decimal { places, .. }) if *places > 0 => {
            let digits = format!(
                "{:0>width$}",
                units.unsigned_abs(),
                width = *places as usize + 1
            );
            let (whole, part) = digits.split_at(digits.len() - *places as usize);
            format!("{}{whole}.{part}", if units < 0 { "-" } else { "" })
        }
        (Value::Number(value), _) => value.to_string(),
        (Value::Key(key), _) => key.to_string(),
        (Value::Ratio(..), _) => panic!("a quotient is rounded before it is opened"),
    })
}

pub(crate) fn texts(fields: &[Field], rows: &[Vec<Value>]) -> Vec<Vec<Option<String>>> {
    let row = |row: &Vec<Value>| {
        row.iter()
            .zip(fields)
            .map(|(value, field)| shown(*value, &field.ty.kind))
            .collect()
    };
    rows.iter().map(row).collect()
}
