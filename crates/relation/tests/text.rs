//! The canonical text: what is written is read, and nothing else is.

use proptest::prelude::*;
use veil_relation::{
    Aggregate, AggregateFunction, Apply, Bucket, ColumnId, Domain, Expr, Family, Fit, FitKind,
    Frame, JoinKind, Kept, Matches, Named, OpenSize, Overflow, Plan, Program, ReadError, SortKey,
    Step, Stepping, WindowFunction, Windowed,
};

use crate::common::{exprs, table};

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z_][a-z0-9_]{0,5}", any::<String>()]
}

fn named() -> impl Strategy<Value = Named> {
    (name(), exprs()).prop_map(|(name, expr)| Named { name, expr })
}

fn sort_keys() -> impl Strategy<Value = Vec<SortKey>> {
    let key =
        (exprs(), any::<bool>(), any::<bool>()).prop_map(|(expr, descending, nulls_first)| {
            SortKey {
                expr,
                descending,
                nulls_first,
            }
        });
    prop::collection::vec(key, 0..3)
}

fn aggregates() -> impl Strategy<Value = Vec<Aggregate>> {
    let function =
        (exprs(), 0_usize..12, any::<u32>(), any::<u32>()).prop_map(|(of, which, above, below)| {
            match which {
                0 => AggregateFunction::CountRows,
                1 => AggregateFunction::Count(of),
                2 => AggregateFunction::CountDistinct(of),
                3 => AggregateFunction::Sum(of),
                4 => AggregateFunction::Avg(of),
                5 => AggregateFunction::Min(of),
                6 => AggregateFunction::Max(of),
                7 => AggregateFunction::BoolOr(of),
                8 => AggregateFunction::BoolAnd(of),
                9 => AggregateFunction::VarSamp(of),
                10 => AggregateFunction::StddevSamp(of, above),
                _ => AggregateFunction::PercentileDisc { of, above, below },
            }
        });
    let one = (name(), function, prop::option::of(exprs())).prop_map(|(name, function, filter)| {
        Aggregate {
            name,
            function,
            filter,
        }
    });
    prop::collection::vec(one, 0..4)
}

fn functions() -> impl Strategy<Value = Vec<Windowed>> {
    let frame = prop_oneof![
        Just(Frame::Whole),
        Just(Frame::Running),
        any::<u32>().prop_map(Frame::Moving)
    ];
    let function = (exprs(), 0_usize..10, any::<u32>(), frame).prop_map(
        |(of, which, rows, frame)| match which {
            0 => WindowFunction::RowNumber,
            1 => WindowFunction::Rank,
            2 => WindowFunction::Lag(of, rows),
            3 => WindowFunction::Lead(of, rows),
            4 => WindowFunction::CountRows(frame),
            5 => WindowFunction::Count(of, frame),
            6 => WindowFunction::Sum(of, frame),
            7 => WindowFunction::Avg(of, frame),
            8 => WindowFunction::Min(of, frame),
            _ => WindowFunction::Max(of, frame),
        },
    );
    let one = (name(), function).prop_map(|(name, function)| Windowed { name, function });
    prop::collection::vec(one, 0..3)
}

fn plans() -> impl Strategy<Value = Plan> {
    let columns = prop::collection::vec(any::<u32>().prop_map(ColumnId), 0..4);
    let leaf = prop_oneof![
        (name(), columns).prop_map(|(table, columns)| Plan::Scan { table, columns }),
        name().prop_map(|name| Plan::Step { name }),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let input = inner.clone().prop_map(Box::new);
        let kind = prop::sample::select(vec![
            JoinKind::Inner,
            JoinKind::Left,
            JoinKind::Semi,
            JoinKind::Anti,
        ]);
        let matches = prop_oneof![
            Just(Matches::UniqueRight),
            Just(Matches::UniqueLeft),
            Just(Matches::Any),
            any::<u32>().prop_map(Matches::AtMost)
        ];
        let domain = prop_oneof![Just(Domain::Secret), any::<u32>().prop_map(Domain::Public)];
        let overflow = prop::sample::select(vec![Overflow::Refuse, Overflow::Flag, Overflow::Drop]);
        let on = prop::collection::vec((exprs(), exprs()), 0..3);
        prop_oneof![
            (input.clone(), exprs())
                .prop_map(|(input, predicate)| Plan::Filter { input, predicate }),
            (input.clone(), prop::collection::vec(named(), 0..3))
                .prop_map(|(input, columns)| Plan::Project { input, columns }),
            prop::collection::vec(inner, 0..3).prop_map(|inputs| Plan::UnionAll { inputs }),
            (
                kind,
                input.clone(),
                input.clone(),
                on,
                prop::option::of(exprs()),
                matches
            )
                .prop_map(|(kind, left, right, on, condition, matches)| Plan::Join {
                    kind,
                    left,
                    right,
                    on,
                    condition,
                    matches
                }),
            (
                input.clone(),
                prop::collection::vec(named(), 0..3),
                aggregates(),
                domain,
                any::<u32>()
            )
                .prop_map(|(input, keys, aggregates, domain, min_rows)| {
                    Plan::GroupBy {
                        input,
                        keys,
                        aggregates,
                        domain,
                        min_rows,
                    }
                }),
            input.clone().prop_map(|input| Plan::Distinct { input }),
            (input.clone(), sort_keys()).prop_map(|(input, keys)| Plan::Sort { input, keys }),
            (input.clone(), sort_keys(), any::<u32>()).prop_map(|(input, keys, rows)| Plan::TopK {
                input,
                keys,
                rows
            }),
            (
                input.clone(),
                prop::collection::vec(exprs(), 0..2),
                sort_keys(),
                functions()
            )
                .prop_map(|(input, partition, order, functions)| Plan::Window {
                    input,
                    partition,
                    order,
                    functions
                }),
            (input.clone(), any::<u32>(), overflow).prop_map(|(input, rows, overflow)| {
                Plan::Trim {
                    input,
                    rows,
                    overflow,
                }
            }),
            (input.clone(), models()).prop_map(|(input, model)| Plan::Fit { input, model }),
            (input.clone(), networks(), prop::option::of(input.clone())).prop_map(
                |(input, model, weights)| Plan::Apply {
                    input,
                    model,
                    weights
                }
            ),
            (input, name()).prop_map(|(input, to)| Plan::Open { input, to }),
        ]
    })
}

fn models() -> impl Strategy<Value = Box<Fit>> {
    let family = prop::sample::select(Family::ALL.to_vec());
    let number = || (any::<u64>(), 1_u32..18);
    let stepping = (
        number(),
        number(),
        prop::option::of(any::<u32>()),
        any::<u32>(),
    );
    let stepping = stepping.prop_map(|(rate, momentum, batch, limit)| Stepping {
        batch,
        rate,
        momentum,
        limit,
    });
    let regression = (
        family,
        exprs(),
        number(),
        any::<bool>(),
        prop::option::of(stepping),
    );
    let regression =
        regression.prop_map(
            |(family, target, ridge, errors, stepping)| FitKind::Regression {
                family,
                target,
                ridge,
                errors,
                stepping,
            },
        );
    let start = prop::collection::vec(prop::collection::vec(any::<i128>(), 0..3), 0..3);
    let cuts = prop::collection::vec(prop::collection::vec(any::<i128>(), 0..3), 0..3);
    let kind = prop_oneof![
        regression,
        (exprs(), cuts).prop_map(|(target, cuts)| FitKind::Tree { target, cuts }),
        start.prop_map(|start| FitKind::Clusters { start }),
        any::<u32>().prop_map(|count| FitKind::Components { count })
    ];
    let features = prop::collection::vec(named(), 0..3);
    (kind, features, any::<[u32; 3]>()).prop_map(
        |(kind, features, [iterations, places, min_rows])| {
            Box::new(Fit {
                kind,
                features,
                iterations,
                places,
                min_rows,
            })
        },
    )
}

fn networks() -> impl Strategy<Value = Box<Apply>> {
    let features = prop::collection::vec(exprs(), 0..3);
    let network = prop::sample::select(crate::network::networks());
    (network, features, any::<u32>(), any::<bool>()).prop_map(
        |(network, features, places, scores)| {
            Box::new(Apply {
                network,
                features,
                places,
                scores,
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_written_is_read(steps in prop::collection::vec((name(), plans()), 0..3), tables in 0_usize..3) {
        let mut tables: Vec<_> = (0..tables).map(|at| table(&format!("t{at}"), at as u32 * 511)).collect();
        if let Some(last) = tables.last_mut() {
            last.origin = veil_relation::Origin::Stored("pay 2025".into());
        }
        if let [first, _, ..] = &mut tables[..] {
            first.origin = veil_relation::Origin::First(veil_relation::First { dataset: "pay \"25\"".into(), of: 9000, opened: 17 });
        }
        let steps = steps.into_iter().map(|(name, plan)| {
            let size = match name.len() % 3 {
                0 => Some(OpenSize { bucket: Bucket::PowerOfTwo, why: "a \"second\" join".into() }),
                1 => Some(OpenSize { bucket: Bucket::RoundUpTo(1000), why: String::new() }),
                _ => None,
            };
            let kept = || Kept { dataset: format!("{name} kept"), size };
            let keep = name.len().is_multiple_of(2).then(kept);
            Step { name, plan, keep, at: veil_relation::At::default() }
        }).collect();
        let program = Program { tables, steps };
        let text = program.to_string();
        prop_assert_eq!(Program::read(&text).unwrap(), program);
        prop_assert_eq!(Program::read(&format!("{text} ")), Err(ReadError::NotCanonical));
    }

    /// A reader of any text neither panics nor accepts what is not written.
    #[test]
    fn what_is_changed_is_another_program_or_none(plan in plans(), at in any::<prop::sample::Index>(), by in any::<char>()) {
        let program = Program { tables: vec![table("t", 3)], steps: vec![Step { name: "q".into(), plan, keep: None, at: veil_relation::At::default() }] };
        let mut text: Vec<char> = program.to_string().chars().collect();
        let at = at.index(text.len());
        if text[at] == by { return Ok(()); }
        text[at] = by;
        let text: String = text.into_iter().collect();
        if let Ok(other) = Program::read(&text) {
            prop_assert_ne!(&other, &program);
            prop_assert_eq!(other.to_string(), text);
            // Types are derived or refused.
            let _ = other.check();
        }
    }
}

#[test]
fn other_forms_of_one_value_are_refused() {
    let with = |expr: &str| format!("(program\n  (step \"q\" (filter {expr} (scan \"t\"))))");
    let one_line = |expr: &str| format!("(program (step \"q\" (filter {expr} (scan \"t\"))))");
    let read = |expr: &str| Program::read(&one_line(expr)).or_else(|_| Program::read(&with(expr)));
    for good in [
        "1",
        "-1",
        "1.",
        "0.50",
        "-0.05",
        "1994-01-31",
        "true",
        "#7",
        "(null bool)",
    ] {
        assert!(read(good).is_ok(), "{good}");
    }
    for bad in [
        "01",
        "+1",
        "-0",
        ".5",
        "00.5",
        "1.5.",
        "-0.00",
        "1994-02-30",
        "True",
        "#07",
        "#+7",
        "\"a\"",
        "()",
        "((not))",
        "(not)",
        "(lookup)",
        "1e5",
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
    let Err(error) = Program::read("(program\n(step \"q\"\n(scan \"t\")") else {
        panic!()
    };
    assert_eq!(error.to_string(), "line 3: the text ends inside of a list");
    let _ = Expr::integer(0);
}

#[test]
fn a_table_says_whether_each_row_is_valid() {
    let text = |rows: &str| {
        format!("(program (table \"t\" (owner \"north\") (rows {rows}) (column \"a\" bool)))")
    };
    let read = |rows: &str| Program::read(&text(rows));
    for (rows, padded) in [("3", true), ("3 exact", false)] {
        let program = read(rows).unwrap();
        assert_eq!(program.tables[0].padded, padded);
        assert_eq!(program.to_string(), text(rows));
    }
    for bad in ["", "exact", "exact 3", "3 padded", "3 exact exact"] {
        assert!(read(bad).is_err(), "{bad}");
    }
    let input = |valid: bool| veil_relation::clear::Input {
        valid: vec![true, true, valid],
        rows: vec![vec![veil_relation::Value::Bool(true)]; 3],
    };
    let evaluate = |rows: &str, valid| {
        veil_relation::clear::evaluate(&read(rows).unwrap(), &[input(valid)]).map(|_| ())
    };
    assert_eq!(evaluate("3", false), Ok(()));
    assert_eq!(evaluate("3 exact", true), Ok(()));
    let refused = evaluate("3 exact", false).unwrap_err().to_string();
    assert_eq!(
        refused,
        "row 2 of table 0 is not valid, and each row of the table is"
    );
}
