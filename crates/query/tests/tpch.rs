//! Questions of TPC-H on tables of its generator: they bind, and their results are those of DuckDB.

use serde_json::json;
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use veil_query::{SortedBytes, compile};
use veil_relation::{Column, ColumnId, Kind, Range, Table, Type, Value, Values, clear};

use crate::common::{job, texts};
use crate::oracle;

/// Orders of 15 000 rows, lines of about 60 000.
const SCALE: f64 = 0.01;

pub(crate) const QUERIES: [(&str, &str); 22] = [
    ("q01", include_str!("../../../bench/tpch/q01.sql")),
    ("q03", include_str!("../../../bench/tpch/q03.sql")),
    ("q04", include_str!("../../../bench/tpch/q04.sql")),
    ("q05", include_str!("../../../bench/tpch/q05.sql")),
    ("q06", include_str!("../../../bench/tpch/q06.sql")),
    ("q10", include_str!("../../../bench/tpch/q10.sql")),
    ("q12", include_str!("../../../bench/tpch/q12.sql")),
    ("q13", include_str!("../../../bench/tpch/q13.sql")),
    ("q14", include_str!("../../../bench/tpch/q14.sql")),
    ("q18", include_str!("../../../bench/tpch/q18.sql")),
    ("q02", include_str!("../../../bench/tpch/q02.sql")),
    ("q07", include_str!("../../../bench/tpch/q07.sql")),
    ("q08", include_str!("../../../bench/tpch/q08.sql")),
    ("q09", include_str!("../../../bench/tpch/q09.sql")),
    ("q11", include_str!("../../../bench/tpch/q11.sql")),
    ("q15", include_str!("../../../bench/tpch/q15.sql")),
    ("q16", include_str!("../../../bench/tpch/q16.sql")),
    ("q17", include_str!("../../../bench/tpch/q17.sql")),
    ("q19", include_str!("../../../bench/tpch/q19.sql")),
    ("q20", include_str!("../../../bench/tpch/q20.sql")),
    ("q21", include_str!("../../../bench/tpch/q21.sql")),
    ("q22", include_str!("../../../bench/tpch/q22.sql")),
];

/// A cell as the generator has it.
enum Cell {
    Integer(i64),
    Units(i64),
    Day(i32),
    Text(String),
}

fn units(of: TPCHDecimal) -> Cell {
    Cell::Units(of.to_string().replace('.', "").parse().unwrap())
}

fn text(of: &str) -> Cell {
    Cell::Text(of.to_owned())
}

/// A text as its owner prepares it: the words of which a question asks, if it has them in this order.
fn about(of: &str, words: &[&str]) -> Cell {
    let mut rest = of;
    for word in words {
        match rest.find(word) {
            Some(at) => rest = &rest[at + word.len()..],
            None => return text("other"),
        }
    }
    Cell::Text(words.join(" "))
}

/// A table whose kinds are as wide as its values, all rows valid.
fn table(
    name: &str,
    unique: &[u32],
    columns: &[&str],
    rows: &[Vec<Cell>],
) -> (Table, clear::Input) {
    let kind = |at: usize| {
        let numbers = || {
            rows.iter().filter_map(move |row| match &row[at] {
                Cell::Integer(value) | Cell::Units(value) => Some(i128::from(*value)),
                Cell::Day(day) => Some(i128::from(*day)),
                Cell::Text(_) => None,
            })
        };
        let range = || Range::new(numbers().min().unwrap(), numbers().max().unwrap()).unwrap();
        match &rows[0][at] {
            Cell::Integer(_) => Kind::Integer(range()),
            Cell::Units(_) => Kind::Decimal {
                places: 2,
                units: range(),
            },
            Cell::Day(_) => Kind::Date(range()),
            Cell::Text(_) => {
                let texts = rows.iter().filter_map(|row| match &row[at] {
                    Cell::Text(text) => Some(text.clone()),
                    _ => None,
                });
                let distinct: std::collections::BTreeSet<String> = texts.collect();
                Kind::Category(Values::new(distinct.into_iter().collect()).unwrap())
            }
        }
    };
    let kinds: Vec<Kind> = (0..columns.len()).map(kind).collect();
    let cell = |(cell, kind): (&Cell, &Kind)| match (cell, kind) {
        (Cell::Text(text), Kind::Category(values)) => {
            Value::Number(i128::from(values.index(text).unwrap()))
        }
        (Cell::Integer(value) | Cell::Units(value), _) => Value::Number(i128::from(*value)),
        (Cell::Day(day), _) => Value::Number(i128::from(*day)),
        (Cell::Text(_), _) => panic!("texts are categories"),
    };
    let cells: Vec<Vec<Value>> = rows
        .iter()
        .map(|row| row.iter().zip(&kinds).map(cell).collect())
        .collect();
    let column = |(name, kind): (&&str, &Kind)| Column {
        name: (*name).to_owned(),
        ty: Type::of(kind.clone()),
        consent: None,
    };
    let table = Table {
        name: name.to_owned(),
        origin: veil_relation::Origin::Owner("north".to_owned()),
        capacity: cells.len() as u32,
        padded: true,
        columns: columns.iter().zip(&kinds).map(column).collect(),
        sorted_by: Vec::new(),
        unique: if unique.is_empty() {
            Vec::new()
        } else {
            vec![unique.iter().copied().map(ColumnId).collect()]
        },
    };
    let input = clear::Input {
        valid: vec![true; cells.len()],
        rows: cells,
    };
    (table, input)
}

pub(crate) fn tables() -> (Vec<Table>, Vec<clear::Input>) {
    let region = RegionGenerator::new(SCALE, 1, 1);
    let region = region
        .iter()
        .map(|r| vec![Cell::Integer(r.r_regionkey), text(r.r_name)]);
    let nation = NationGenerator::new(SCALE, 1, 1);
    let nation = nation.iter().map(|n| {
        vec![
            Cell::Integer(n.n_nationkey),
            text(n.n_name),
            Cell::Integer(n.n_regionkey),
        ]
    });
    let supplier = SupplierGenerator::new(SCALE, 1, 1);
    let supplier = supplier.iter().map(|s| {
        vec![
            Cell::Integer(s.s_suppkey),
            Cell::Integer(s.s_nationkey),
            units(s.s_acctbal),
            about(&s.s_comment, &["Customer", "Complaints"]),
        ]
    });
    let customer = CustomerGenerator::new(SCALE, 1, 1);
    let customer = customer.iter().map(|c| {
        vec![
            Cell::Integer(c.c_custkey),
            Cell::Integer(c.c_nationkey),
            units(c.c_acctbal),
            text(c.c_mktsegment),
            text(&c.c_phone.to_string()[..2]),
        ]
    });
    let part = PartGenerator::new(SCALE, 1, 1);
    let part = part.iter().map(|p| {
        vec![
            Cell::Integer(p.p_partkey),
            text(p.p_type),
            text(&p.p_brand.to_string()),
            text(p.p_container),
            Cell::Integer(i64::from(p.p_size)),
            text(&p.p_name.to_string()),
        ]
    });
    let partsupp = PartSuppGenerator::new(SCALE, 1, 1);
    let partsupp = partsupp.iter().map(|s| {
        vec![
            Cell::Integer(s.ps_partkey),
            Cell::Integer(s.ps_suppkey),
            Cell::Integer(i64::from(s.ps_availqty)),
            units(s.ps_supplycost),
        ]
    });
    let orders = OrderGenerator::new(SCALE, 1, 1);
    let orders = orders.iter().map(|o| {
        vec![
            Cell::Integer(o.o_orderkey),
            Cell::Integer(o.o_custkey),
            units(o.o_totalprice),
            Cell::Day(o.o_orderdate.to_unix_epoch()),
            text(o.o_orderpriority),
            Cell::Integer(i64::from(o.o_shippriority)),
            text(o.o_comment),
            text(&o.o_orderstatus.to_string()),
        ]
    });
    let lines = LineItemGenerator::new(SCALE, 1, 1);
    let lines = lines.iter().map(|l| {
        vec![
            Cell::Integer(l.l_orderkey),
            Cell::Integer(l.l_partkey),
            Cell::Integer(l.l_suppkey),
            Cell::Units(l.l_quantity * 100),
            units(l.l_extendedprice),
            units(l.l_discount),
            units(l.l_tax),
            text(l.l_returnflag),
            text(l.l_linestatus),
            Cell::Day(l.l_shipdate.to_unix_epoch()),
            Cell::Day(l.l_commitdate.to_unix_epoch()),
            Cell::Day(l.l_receiptdate.to_unix_epoch()),
            text(l.l_shipmode),
            text(l.l_shipinstruct),
        ]
    });
    let all = vec![
        table(
            "region",
            &[0],
            &["r_regionkey", "r_name"],
            &region.collect::<Vec<_>>(),
        ),
        table(
            "nation",
            &[0],
            &["n_nationkey", "n_name", "n_regionkey"],
            &nation.collect::<Vec<_>>(),
        ),
        table(
            "supplier",
            &[0],
            &["s_suppkey", "s_nationkey", "s_acctbal", "s_comment"],
            &supplier.collect::<Vec<_>>(),
        ),
        table(
            "customer",
            &[0],
            &[
                "c_custkey",
                "c_nationkey",
                "c_acctbal",
                "c_mktsegment",
                "c_phone",
            ],
            &customer.collect::<Vec<_>>(),
        ),
        table(
            "part",
            &[0],
            &[
                "p_partkey",
                "p_type",
                "p_brand",
                "p_container",
                "p_size",
                "p_name",
            ],
            &part.collect::<Vec<_>>(),
        ),
        table(
            "partsupp",
            &[0, 1],
            &["ps_partkey", "ps_suppkey", "ps_availqty", "ps_supplycost"],
            &partsupp.collect::<Vec<_>>(),
        ),
        table(
            "orders",
            &[0],
            &[
                "o_orderkey",
                "o_custkey",
                "o_totalprice",
                "o_orderdate",
                "o_orderpriority",
                "o_shippriority",
                "o_comment",
                "o_orderstatus",
            ],
            &orders.collect::<Vec<_>>(),
        ),
        table(
            "lineitem",
            &[],
            &[
                "l_orderkey",
                "l_partkey",
                "l_suppkey",
                "l_quantity",
                "l_extendedprice",
                "l_discount",
                "l_tax",
                "l_returnflag",
                "l_linestatus",
                "l_shipdate",
                "l_commitdate",
                "l_receiptdate",
                "l_shipmode",
                "l_shipinstruct",
            ],
            &lines.collect::<Vec<_>>(),
        ),
    ];
    all.into_iter().unzip()
}

#[test]
fn results_are_those_of_duckdb() {
    let (tables, inputs) = tables();
    let mut queries = Vec::new();
    for (name, sql) in QUERIES {
        let program = compile(&job(tables.clone(), sql), &SortedBytes)
            .unwrap_or_else(|error| panic!("{error}"));
        let opened = clear::evaluate(&program, &inputs).unwrap().remove(0);
        assert!(
            !opened.rows.is_empty(),
            "{name} has no rows: nothing would be compared"
        );
        let rows = texts(&opened.fields, &opened.rows);
        queries.push(json!({ "name": name, "sql": sql, "ordered": true, "rows": rows }));
    }
    let tables: Vec<_> = tables
        .iter()
        .zip(&inputs)
        .map(|(of, input)| oracle::table(of, input))
        .collect();
    oracle::ask(&[json!({ "tables": tables, "queries": queries })]);
}
