//! Expressions: what a type proves holds for every value; three-valued logic; rounding against a second computation.

use num_bigint::BigInt;
use proptest::prelude::*;
use veil_relation::{Expr, Named, Plan, Program, Step, Type, Value, clear, round_ratio};

use crate::common::{self, Fill, exprs, rows, table, types};

/// The values of an expression over all valid rows of a table, unsorted duplicates included.
fn values(expr: &Expr, fill: Fill, seed: u64) -> Result<Vec<Value>, clear::ClearError> {
    let mut of = table("t", 24);
    (of.sorted_by, of.unique) = (Vec::new(), Vec::new());
    let input = rows(&of, fill, seed);
    let columns = (0..of.columns.len() as u32)
        .map(veil_relation::ColumnId)
        .collect();
    let scan = Plan::Scan {
        table: "t".into(),
        columns,
    };
    let columns = vec![Named {
        name: "x".into(),
        expr: expr.clone(),
    }];
    let plan = Plan::Project {
        input: Box::new(scan),
        columns,
    };
    let plan = Plan::Open {
        input: Box::new(plan),
        to: "r".into(),
    };
    let program = Program {
        tables: vec![of],
        steps: vec![Step {
            keep: None,
            at: veil_relation::At::default(),
            name: "q".into(),
            plan,
        }],
    };
    let opened = clear::evaluate(&program, &[input])?;
    Ok(opened[0].rows.iter().map(|row| row[0]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, max_global_rejects: 1 << 20, ..ProptestConfig::default() })]

    #[test]
    fn values_are_of_the_type(expr in exprs(), fill in prop::sample::select(common::FILLS.to_vec()), seed in any::<u64>()) {
        let Ok(ty) = expr.ty(&types()) else { return Ok(()) };
        for value in values(&expr, fill, seed).unwrap() {
            prop_assert!(ty.holds(&value), "{value:?} is not of {ty:?}");
        }
    }

    #[test]
    fn rounding_is_to_nearest_halves_away(above in any::<i128>(), below in 1_i128.., from in 0_u32..12, to in 0_u32..12, small in any::<bool>()) {
        let (above, below) = if small { (above % 1000, below % 40 + 1) } else { (above, below) };
        let Some(rounded) = round_ratio(above, below, from, to) else { return Ok(()) };
        // |rounded / 10^to − above / below / 10^from| ≤ 1/2 · 10^−to, with equality only if rounded away from zero.
        let ten = |places: u32| BigInt::from(10).pow(places);
        let exact = BigInt::from(above) * ten(to);
        let unit = BigInt::from(below) * ten(from);
        let twice = BigInt::from(2) * (BigInt::from(rounded) * &unit - &exact);
        let size = BigInt::from(twice.magnitude().clone());
        prop_assert!(size <= unit);
        if size == unit {
            prop_assert!(BigInt::from(rounded).magnitude() * unit.magnitude() > exact.magnitude().clone());
        }
    }
}

#[test]
fn logic_has_three_values() {
    let [t, f, n] = [
        Expr::bool(true),
        Expr::bool(false),
        Expr::Literal(veil_relation::Literal::Null(veil_relation::Kind::Bool)),
    ];
    let show = |expr: Expr| match values(&expr, Fill::Equal, 1).unwrap()[0] {
        Value::Bool(true) => 't',
        Value::Bool(false) => 'f',
        _ => 'n',
    };
    let table = |by: fn(Vec<Expr>) -> Expr| {
        let pairs = [&t, &f, &n]
            .into_iter()
            .flat_map(|a| [&t, &f, &n].map(|b| vec![a.clone(), b.clone()]));
        pairs.map(|pair| show(by(pair))).collect::<String>()
    };
    assert_eq!(table(Expr::And), "tfnfffnfn");
    assert_eq!(table(Expr::Or), "ttttfntnn");
    assert_eq!(
        [t, f, n].map(|a| show(Expr::Not(Box::new(a)))),
        ['f', 't', 'n']
    );
    assert_eq!(show(Expr::And(Vec::new())), 't');
    assert_eq!(show(Expr::Or(Vec::new())), 'f');
}

#[test]
fn the_type_of_a_wide_expression_is_found_quickly() {
    let wide = Expr::And(vec![Expr::column(8); 20_000]);
    assert_eq!(
        wide.ty(&types()).unwrap(),
        Type::of(veil_relation::Kind::Bool)
    );
}
