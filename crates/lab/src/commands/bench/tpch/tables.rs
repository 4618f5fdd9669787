//! Tables of TPC-H as owners have them: columns that the questions read, of the `tpchgen` generator.

use std::collections::BTreeSet;

use miette::{Result, miette};
use tpchgen::dates::TPCHDate;
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator,
    PartSuppGenerator, RegionGenerator, SupplierGenerator,
};
use veil_relation::{Column, ColumnId, Kind, Range, Table, Type, Value, Values};

use crate::commands::bench::asked::Owned;

/// The cells of a column.
enum Cells {
    Integers(Vec<i64>),
    /// Hundredths.
    Cents(Vec<i64>),
    /// Days since 1970.
    Days(Vec<i64>),
    Texts(Vec<String>),
}

impl Cells {
    /// What the column is: as wide as its values. And its cells.
    fn typed(self) -> Option<(Kind, Vec<Value>)> {
        let range = |of: &[i64]| {
            let (least, most) = (of.iter().min()?, of.iter().max()?);
            Range::new((*least).into(), (*most).into())
        };
        let numbers = |of: Vec<i64>| of.into_iter().map(|x| Value::Number(x.into())).collect();
        Some(match self {
            Cells::Integers(of) => (Kind::Integer(range(&of)?), numbers(of)),
            Cells::Cents(of) => {
                let units = range(&of)?;
                (Kind::Decimal { places: 2, units }, numbers(of))
            }
            Cells::Days(of) => (Kind::Date(range(&of)?), numbers(of)),
            Cells::Texts(of) => {
                let distinct: BTreeSet<&String> = of.iter().collect();
                let values = Values::new(distinct.into_iter().cloned().collect())?;
                let index = |text: &String| Some(Value::Number(values.index(text)?.into()));
                let cells = of.iter().map(index).collect::<Option<Vec<_>>>()?;
                (Kind::Category(values), cells)
            }
        })
    }
}

/// A table while it is made.
struct Made {
    name: &'static str,
    /// The columns that are a key together, as its owner claims, if there is one.
    unique: &'static [u32],
    columns: Vec<(&'static str, Cells)>,
}

impl Made {
    fn table(self, owner: &str) -> Result<Owned> {
        let mut columns = Vec::new();
        let mut cells = Vec::new();
        for (name, of) in self.columns {
            let (kind, values) = of.typed().ok_or_else(|| {
                miette!(
                    help = "a category has at most 65 536 values, and every table a row",
                    "{name} of {} is no column at this scale",
                    self.name
                )
            })?;
            columns.push(Column {
                name: name.to_owned(),
                ty: Type::of(kind),
                consent: None,
            });
            cells.push(values);
        }
        let rows = cells.first().map_or(0, Vec::len);
        let capacity = u32::try_from(rows)
            .map_err(|_| miette!("{} has more than 2^32 rows at this scale", self.name))?;
        let unique = self
            .unique
            .iter()
            .copied()
            .map(ColumnId)
            .collect::<Vec<_>>();
        let unique = (!unique.is_empty()).then_some(unique);
        let table = Table {
            name: self.name.to_owned(),
            origin: veil_relation::Origin::Owner(owner.to_owned()),
            capacity,
            padded: true,
            columns,
            sorted_by: Vec::new(),
            unique: unique.into_iter().collect(),
        };
        Ok(Owned { table, cells })
    }
}

fn integers<T>(rows: &[T], of: impl Fn(&T) -> i64) -> Cells {
    Cells::Integers(rows.iter().map(of).collect())
}

fn cents<T>(rows: &[T], of: impl Fn(&T) -> TPCHDecimal) -> Cells {
    Cells::Cents(rows.iter().map(|row| of(row).into_inner()).collect())
}

fn days<T>(rows: &[T], of: impl Fn(&T) -> TPCHDate) -> Cells {
    Cells::Days(
        rows.iter()
            .map(|row| of(row).to_unix_epoch().into())
            .collect(),
    )
}

fn texts<T, S: ToString>(rows: &[T], of: impl Fn(&T) -> S) -> Cells {
    Cells::Texts(rows.iter().map(|row| of(row).to_string()).collect())
}

/// These words, if a text has them in this order, else "other": a category that an owner prepares for a question.
fn about(text: &str, words: &[&str]) -> String {
    let mut rest = text;
    for word in words {
        match rest.find(word) {
            Some(at) => rest = &rest[at + word.len()..],
            None => return "other".to_owned(),
        }
    }
    words.join(" ")
}

/// The colours of which questions 9 and 20 ask, as far as the name of a part has them.
fn colours(name: &str) -> String {
    let asked = ["green", "forest"];
    let found = asked.into_iter().filter(|colour| name.contains(colour));
    found.collect::<Vec<_>>().join(" ")
}

/// The tables that questions read, of one owner.
///
/// # Errors
/// A table has more rows or texts than the algebra knows.
pub(super) fn tables(scale: f64, owner: &str) -> Result<Vec<Owned>> {
    let all = [places(scale), persons(scale), sales(scale)];
    let made = all.into_iter().flatten();
    made.map(|made| made.table(owner)).collect()
}

fn places(scale: f64) -> Vec<Made> {
    let regions: Vec<_> = RegionGenerator::new(scale, 1, 1).iter().collect();
    let nations: Vec<_> = NationGenerator::new(scale, 1, 1).iter().collect();
    vec![
        Made {
            name: "region",
            unique: &[0],
            columns: vec![
                ("r_regionkey", integers(&regions, |r| r.r_regionkey)),
                ("r_name", texts(&regions, |r| r.r_name)),
            ],
        },
        Made {
            name: "nation",
            unique: &[0],
            columns: vec![
                ("n_nationkey", integers(&nations, |n| n.n_nationkey)),
                ("n_name", texts(&nations, |n| n.n_name)),
                ("n_regionkey", integers(&nations, |n| n.n_regionkey)),
            ],
        },
    ]
}

fn persons(scale: f64) -> Vec<Made> {
    let suppliers: Vec<_> = SupplierGenerator::new(scale, 1, 1).iter().collect();
    let customers: Vec<_> = CustomerGenerator::new(scale, 1, 1).iter().collect();
    vec![
        Made {
            name: "supplier",
            unique: &[0],
            columns: vec![
                ("s_suppkey", integers(&suppliers, |s| s.s_suppkey)),
                ("s_nationkey", integers(&suppliers, |s| s.s_nationkey)),
                ("s_acctbal", cents(&suppliers, |s| s.s_acctbal)),
                (
                    "s_comment",
                    texts(&suppliers, |s| {
                        about(&s.s_comment, &["Customer", "Complaints"])
                    }),
                ),
            ],
        },
        Made {
            name: "customer",
            unique: &[0],
            columns: vec![
                ("c_custkey", integers(&customers, |c| c.c_custkey)),
                ("c_nationkey", integers(&customers, |c| c.c_nationkey)),
                ("c_acctbal", cents(&customers, |c| c.c_acctbal)),
                ("c_mktsegment", texts(&customers, |c| c.c_mktsegment)),
                (
                    "c_phone",
                    texts(&customers, |c| c.c_phone.to_string()[..2].to_owned()),
                ),
            ],
        },
    ]
}

fn sales(scale: f64) -> Vec<Made> {
    let parts: Vec<_> = PartGenerator::new(scale, 1, 1).iter().collect();
    let stock: Vec<_> = PartSuppGenerator::new(scale, 1, 1).iter().collect();
    let orders: Vec<_> = OrderGenerator::new(scale, 1, 1).iter().collect();
    let lines: Vec<_> = LineItemGenerator::new(scale, 1, 1).iter().collect();
    vec![
        Made {
            name: "part",
            unique: &[0],
            columns: vec![
                ("p_partkey", integers(&parts, |p| p.p_partkey)),
                ("p_type", texts(&parts, |p| p.p_type)),
                ("p_brand", texts(&parts, |p| p.p_brand)),
                ("p_container", texts(&parts, |p| p.p_container)),
                ("p_size", integers(&parts, |p| p.p_size.into())),
                ("p_name", texts(&parts, |p| colours(&p.p_name.to_string()))),
            ],
        },
        Made {
            name: "partsupp",
            unique: &[0, 1],
            columns: vec![
                ("ps_partkey", integers(&stock, |s| s.ps_partkey)),
                ("ps_suppkey", integers(&stock, |s| s.ps_suppkey)),
                ("ps_availqty", integers(&stock, |s| s.ps_availqty.into())),
                ("ps_supplycost", cents(&stock, |s| s.ps_supplycost)),
            ],
        },
        Made {
            name: "orders",
            unique: &[0],
            columns: vec![
                ("o_orderkey", integers(&orders, |o| o.o_orderkey)),
                ("o_custkey", integers(&orders, |o| o.o_custkey)),
                ("o_totalprice", cents(&orders, |o| o.o_totalprice)),
                ("o_orderdate", days(&orders, |o| o.o_orderdate)),
                ("o_orderpriority", texts(&orders, |o| o.o_orderpriority)),
                (
                    "o_shippriority",
                    integers(&orders, |o| o.o_shippriority.into()),
                ),
                ("o_orderstatus", texts(&orders, |o| o.o_orderstatus)),
                (
                    "o_comment",
                    texts(&orders, |o| about(o.o_comment, &["special", "requests"])),
                ),
            ],
        },
        Made {
            name: "lineitem",
            unique: &[],
            columns: vec![
                ("l_orderkey", integers(&lines, |l| l.l_orderkey)),
                ("l_partkey", integers(&lines, |l| l.l_partkey)),
                ("l_suppkey", integers(&lines, |l| l.l_suppkey)),
                (
                    "l_quantity",
                    cents(&lines, |l| TPCHDecimal(l.l_quantity * 100)),
                ),
                ("l_extendedprice", cents(&lines, |l| l.l_extendedprice)),
                ("l_discount", cents(&lines, |l| l.l_discount)),
                ("l_tax", cents(&lines, |l| l.l_tax)),
                ("l_returnflag", texts(&lines, |l| l.l_returnflag)),
                ("l_linestatus", texts(&lines, |l| l.l_linestatus)),
                ("l_shipdate", days(&lines, |l| l.l_shipdate)),
                ("l_commitdate", days(&lines, |l| l.l_commitdate)),
                ("l_receiptdate", days(&lines, |l| l.l_receiptdate)),
                ("l_shipmode", texts(&lines, |l| l.l_shipmode)),
                ("l_shipinstruct", texts(&lines, |l| l.l_shipinstruct)),
            ],
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of the specification, section 4.2.5, and of its generator for lines.
    #[test]
    fn tables_have_the_rows_of_the_specification() {
        let tables = tables(0.01, "party 0").expect("tables");
        let found: Vec<(&str, u32)> = tables
            .iter()
            .map(|of| (of.table.name.as_str(), of.table.capacity))
            .collect();
        let wanted = [
            ("region", 5),
            ("nation", 25),
            ("supplier", 100),
            ("customer", 1500),
            ("part", 2000),
            ("partsupp", 8000),
            ("orders", 15_000),
            ("lineitem", 60_175),
        ];
        assert_eq!(found, wanted);
        for of in &tables {
            assert_eq!(of.cells.len(), of.table.columns.len());
            let rows = of.table.capacity as usize;
            assert!(of.cells.iter().all(|column| column.len() == rows));
        }
    }

    #[test]
    fn comments_are_about_special_requests_if_both_words_follow() {
        for (comment, wanted) in [
            ("quickly special and bold requests", "special requests"),
            ("specialrequests", "special requests"),
            ("requests that are special", "other"),
            ("special packages", "other"),
            ("requests, special, requests", "special requests"),
        ] {
            assert_eq!(
                about(comment, &["special", "requests"]),
                wanted,
                "{comment}"
            );
        }
    }
}
