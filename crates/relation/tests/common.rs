//! Tables, rows and random expressions of all tests.

use proptest::prelude::*;
use veil_relation::forest::Output;
use veil_relation::{
    Arithmetic, Column, ColumnId, Comparison, Consent, DatePart, Expr, Forest, Kind, Literal,
    Operation, Range, Reveal, Table, Type, Value, Values, clear,
};

pub(crate) fn range(min: i128, max: i128) -> Range {
    Range::new(min, max).unwrap()
}

pub(crate) fn letters() -> Values {
    Values::new(["a", "bb", "ü \"x\"", ""].map(str::to_owned).to_vec()).unwrap()
}

/// A kind of each sort, each with and without nulls; keys last.
pub(crate) fn types() -> Vec<Type> {
    let kinds = [
        Kind::Integer(range(-3, 5)),
        Kind::Decimal {
            places: 2,
            units: range(-1_000_000, 999_999),
        },
        Kind::date(10, 900).unwrap(),
        Kind::Category(letters()),
        Kind::Bool,
        Kind::Key { bits: 64 },
    ];
    let both = |kind: Kind| [false, true].map(|null| Type::of(kind.clone()).or_null(null));
    kinds.into_iter().flat_map(both).collect()
}

pub(crate) fn table(name: &str, capacity: u32) -> Table {
    let column = |(at, ty): (usize, Type)| Column {
        name: format!("c{at}"),
        ty,
        consent: (at == 3).then(|| Consent {
            may: [Operation::Join, Operation::Filter].into(),
            reveal: Reveal::Aggregates,
        }),
    };
    Table {
        name: name.to_owned(),
        origin: veil_relation::Origin::Owner("north".to_owned()),
        capacity,
        padded: true,
        columns: types().into_iter().enumerate().map(column).collect(),
        sorted_by: vec![ColumnId(0)],
        unique: vec![vec![ColumnId(10), ColumnId(0)], vec![ColumnId(2)]],
    }
}

/// What the rows of a table are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    Random,
    Invalid,
    Equal,
    Null,
    Extreme,
}

pub(crate) const FILLS: [Fill; 5] = [
    Fill::Random,
    Fill::Invalid,
    Fill::Equal,
    Fill::Null,
    Fill::Extreme,
];

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

pub(crate) fn cell(ty: &Type, fill: Fill, random: &mut Random) -> Value {
    let null = match fill {
        Fill::Null => true,
        Fill::Equal => false,
        _ => random.below(4) == 0,
    };
    if ty.nullable && null {
        return Value::Null;
    }
    let pick = match fill {
        Fill::Equal => 0,
        Fill::Extreme => [0, u64::MAX][random.below(2) as usize],
        _ => random.below(u64::MAX),
    };
    match &ty.kind {
        Kind::Bool => Value::Bool(pick % 2 == 1),
        Kind::Key { .. } => Value::Key(u128::from(pick % 9)),
        kind => {
            let range = kind.range().unwrap();
            let width = range.max() - range.min() + 1;
            let off = if pick == u64::MAX {
                width - 1
            } else {
                i128::from(pick) % width
            };
            Value::Number(range.min() + off)
        }
    }
}

pub(crate) fn rows(table: &Table, fill: Fill, seed: u64) -> clear::Input {
    let mut random = Random(seed);
    let mut input = clear::Input::default();
    for _ in 0..table.capacity {
        input
            .valid
            .push(fill != Fill::Invalid && random.below(5) > 0);
        let cells = table
            .columns
            .iter()
            .map(|column| cell(&column.ty, fill, &mut random));
        input.rows.push(cells.collect());
    }
    input
}

/// Any expression over the columns of [`types`], of which many have no type.
pub(crate) fn exprs() -> impl Strategy<Value = Expr> {
    let literal = prop_oneof![
        (-9_i128..9).prop_map(Literal::Integer),
        any::<i128>().prop_map(Literal::Integer),
        ((-500_i128..500), 0_u32..4).prop_map(|(units, places)| Literal::Decimal { units, places }),
        (0_i32..1000).prop_map(Literal::Date),
        any::<bool>().prop_map(Literal::Bool),
        (0_u16..4).prop_map(|index| Literal::Category {
            index,
            values: letters()
        }),
        Just(Literal::Null(Kind::Bool)),
        Just(Literal::Null(Kind::Integer(range(0, 3)))),
    ];
    let leaf = prop_oneof![
        3 => (0_u32..12).prop_map(Expr::column),
        2 => literal.prop_map(Expr::Literal),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let one = inner.clone().prop_map(Box::new);
        let two = (one.clone(), one.clone());
        let many = prop::collection::vec(inner.clone(), 0..4);
        let sign = prop::sample::select(vec![Arithmetic::Add, Arithmetic::Sub, Arithmetic::Mul]);
        prop_oneof![
            one.clone().prop_map(Expr::Not),
            many.clone().prop_map(Expr::And),
            many.clone().prop_map(Expr::Or),
            (prop::sample::select(Comparison::ALL.to_vec()), two.clone())
                .prop_map(|(sign, (a, b))| Expr::Compare(sign, a, b)),
            one.clone().prop_map(Expr::IsNull),
            (sign, two.clone()).prop_map(|(sign, (a, b))| Expr::Arithmetic(sign, a, b)),
            two.clone().prop_map(|(a, b)| Expr::Divide(a, b)),
            two.clone().prop_map(|(a, b)| Expr::Divide(
                a,
                Box::new(Expr::NullIf(b, Box::new(Expr::integer(0))))
            )),
            (one.clone(), 1_i128..9).prop_map(|(a, by)| Expr::Modulo(a, by)),
            (one.clone(), 0_u32..6).prop_map(|(a, places)| Expr::Round(a, places)),
            (one.clone(), 0_u32..6).prop_map(|(a, places)| Expr::Rescale(a, places)),
            two.clone().prop_map(|(a, b)| Expr::AddDays(a, b)),
            two.clone().prop_map(|(a, b)| Expr::DaysBetween(a, b)),
            one.clone().prop_map(|a| Expr::Extract(DatePart::Year, a)),
            one.clone().prop_map(|a| Expr::Extract(DatePart::Month, a)),
            (
                one.clone(),
                -2_i128..2,
                prop::collection::vec(
                    prop_oneof![Just(Value::Null), (0_i128..9).prop_map(Value::Number)],
                    4
                )
            )
                .prop_map(|(of, first, table)| Expr::Lookup {
                    of,
                    first,
                    kind: Kind::Integer(range(0, 8)),
                    table
                }),
            (prop::collection::vec((inner.clone(), inner), 0..3), one).prop_map(
                |(branches, otherwise)| Expr::Case {
                    branches,
                    otherwise
                }
            ),
            many.prop_map(Expr::Coalesce),
            two.clone().prop_map(|(a, b)| Expr::Predict {
                model: Forest::new(crate::forest::parts()).unwrap(),
                output: Output::Value,
                of: vec![*a, *b],
            }),
            two.prop_map(|(a, b)| Expr::NullIf(a, b)),
        ]
    })
}
