//! Trees against the same grown by recursion, with impurities as fractions of big integers.

use num_bigint::BigInt;
use proptest::prelude::*;
use veil_learn::{Candidate, FitError, Test, Tree, TreeFeature, TreeNode, TreeSpec, TreeTarget};

use crate::fits::{Draws, column};

fn spec() -> TreeSpec {
    TreeSpec {
        features: vec![
            TreeFeature::Number {
                column: column(0, 120, 0),
                cuts: vec![20, 40, 60, 80],
            },
            TreeFeature::Condition,
            TreeFeature::Category { values: 3 },
            TreeFeature::Number {
                column: column(-500, 500, 2),
                cuts: vec![-100, 0, 37, 250],
            },
        ],
        target: TreeTarget::Classes(2),
        rows: 400,
        depth: 3,
        least: 5,
        places: 6,
    }
}

/// A fraction whose denominator is positive.
type Ratio = (BigInt, BigInt);

fn add((a, b): Ratio, (c, d): Ratio) -> Ratio {
    (a * &d + c * &b, b * d)
}

fn less((a, b): &Ratio, (c, d): &Ratio) -> bool {
    a * d < c * b
}

type Rows<'a> = Vec<&'a (Vec<i128>, i128)>;

/// The impurity of some rows, times how many there are: n (1 − Σ p²), or the sum of the squares of the distances from the mean.
fn impurity(target: TreeTarget, rows: &Rows) -> Ratio {
    let n = BigInt::from(rows.len().max(1));
    match target {
        TreeTarget::Classes(classes) => {
            let count = |class: u32| rows.iter().filter(|(_, y)| *y == class.into()).count();
            let squares: BigInt = (0..classes).map(|c| BigInt::from(count(c)).pow(2)).sum();
            (&n * rows.len() - squares, n)
        }
        TreeTarget::Number(_) => {
            let sum: BigInt = rows.iter().map(|(_, y)| BigInt::from(*y)).sum();
            let squares: BigInt = rows.iter().map(|(_, y)| BigInt::from(*y).pow(2)).sum();
            (squares * &n - sum.pow(2), n)
        }
    }
}

/// Nodes by recursion, a node before its children.
fn grow(
    spec: &TreeSpec,
    candidates: &[Candidate],
    rows: &Rows,
    number: u32,
    into: &mut Vec<TreeNode>,
) {
    let whole = impurity(spec.target, rows);
    let mut best: Option<(Ratio, usize)> = None;
    for (at, candidate) in candidates.iter().enumerate() {
        let holds = |x: i128| match candidate.test {
            Test::AtMost(cut) => x <= cut,
            Test::Is(value) => x == value,
        };
        let (yes, no): (Rows, Rows) = rows.iter().partition(|row| holds(row.0[candidate.feature]));
        if yes.len().min(no.len()) < spec.least.max(1) as usize {
            continue;
        }
        let left = add(impurity(spec.target, &yes), impurity(spec.target, &no));
        if less(&left, &whole) && best.as_ref().is_none_or(|(best, _)| less(&left, best)) {
            best = Some((left, at));
        }
    }
    let deep = 32 - number.leading_zeros() > spec.depth;
    let split = best.map(|(_, at)| at).filter(|_| !deep);
    let numerators = match spec.target {
        TreeTarget::Classes(classes) => (0..classes)
            .map(|class| rows.iter().filter(|(_, y)| *y == class.into()).count() as i128)
            .collect(),
        TreeTarget::Number(_) => vec![rows.iter().map(|(_, y)| y).sum()],
    };
    if rows.len() < spec.least.max(1) as usize {
        return;
    }
    into.push(TreeNode {
        number,
        split,
        rows: rows.len() as i128,
        numerators,
    });
    if let Some(at) = split {
        let of = candidates[at];
        let (yes, no): (Rows, Rows) = rows
            .iter()
            .partition(|row| of.test.holds(row.0[of.feature]));
        grow(spec, candidates, &yes, 2 * number, into);
        grow(spec, candidates, &no, 2 * number + 1, into);
    }
}

fn reference(of: &Tree, rows: &[(Vec<i128>, i128)]) -> Vec<TreeNode> {
    let mut nodes = Vec::new();
    grow(
        of.spec(),
        of.candidates(),
        &rows.iter().collect(),
        1,
        &mut nodes,
    );
    nodes.sort_by_key(|node| node.number);
    nodes
}

fn rows(
    draws: &mut Draws,
    count: usize,
    target: impl Fn(&[i128], f64) -> i128,
) -> Vec<(Vec<i128>, i128)> {
    (0..count)
        .map(|_| {
            let mut below = |most: f64| (draws.next() * most) as i128;
            let row = vec![below(121.0), below(2.0), below(3.0), below(1001.0) - 500];
            let noise = draws.next();
            let y = target(&row, noise);
            (row, y)
        })
        .collect()
}

#[test]
fn trees_are_those_of_recursion() {
    let mut draws = Draws(5);
    for (target, depth, least) in [
        (TreeTarget::Classes(2), 3, 5),
        (TreeTarget::Classes(2), 6, 0),
        (TreeTarget::Classes(4), 5, 1),
        (TreeTarget::Number(column(-40, 87, 0)), 4, 3),
    ] {
        let spec = TreeSpec {
            target,
            depth,
            least,
            ..spec()
        };
        let most = match target {
            TreeTarget::Classes(classes) => f64::from(classes),
            TreeTarget::Number(_) => 128.0,
        };
        let of = Tree::new(spec).unwrap();
        // What is said depends on the first feature below 60, else on the second and third, and on chance.
        let rows = rows(&mut draws, 400, |row, noise| {
            let signal = if row[0] <= 60 {
                row[0] as f64 / 121.0
            } else {
                (row[1] * 2 + row[2]) as f64 / 5.0
            };
            let y = ((signal * 0.6 + noise * 0.4) * most).min(most - 1.0) as i128;
            if matches!(target, TreeTarget::Number(_)) {
                y - 40
            } else {
                y
            }
        });
        let found = of.fit(&rows).unwrap();
        assert_eq!(found, reference(&of, &rows));
        assert!(found.len() > 5, "{found:?}");
    }
}

/// Numbers that are too wide to be added up as they are have fewer places, and means are within half a step of these.
#[test]
fn wide_targets_are_rounded() {
    let target = column(0, 1 << 40, 3);
    let of = Tree::new(TreeSpec {
        target: TreeTarget::Number(target),
        rows: 1 << 17,
        ..spec()
    })
    .unwrap();
    let (places, exact) = of.target_places().unwrap();
    assert!((16..24).contains(&places) && !exact, "{places}");
    let mut draws = Draws(9);
    let rows = rows(&mut draws, 300, |row, noise| {
        (row[0] << 33) + (noise * 2f64.powi(30)) as i128
    });
    let found = of.fit(&rows).unwrap();
    let wanted = reference(&of, &rows);
    assert!(found.len() > 5);
    for (found, wanted) in found.iter().zip(&wanted) {
        assert_eq!(
            (found.number, found.split, found.rows),
            (wanted.number, wanted.split, wanted.rows)
        );
        let off = (found.numerators[0] - wanted.numerators[0]).abs();
        assert!(off <= found.rows << (39 - places - 1), "{off}");
        assert!(of.values()[0].above.contains(found.numerators[0]));
    }
}

/// Rows of one class, rows that are equal, and two features that say the same: the first candidate of equals, and none that gains nothing.
#[test]
fn ties_and_pure_nodes() {
    let twice = TreeSpec {
        features: vec![
            TreeFeature::Condition,
            TreeFeature::Condition,
            TreeFeature::Category { values: 2 },
        ],
        least: 1,
        rows: 100,
        depth: 6,
        ..spec()
    };
    let of = Tree::new(twice).unwrap();
    assert_eq!(of.candidates().len(), 3);
    let row = |x: i128, y: i128| (vec![x, x, x], y);
    let one_class: Vec<_> = (0..50).map(|at| row(at % 2, 1)).collect();
    assert_eq!(
        of.fit(&one_class).unwrap(),
        [TreeNode {
            number: 1,
            split: None,
            rows: 50,
            numerators: vec![0, 50]
        }]
    );
    let separated: Vec<_> = (0..50).map(|at| row(at % 2, at % 2)).collect();
    let node = |number, split, rows, numerators: [i128; 2]| TreeNode {
        number,
        split,
        rows,
        numerators: numerators.to_vec(),
    };
    assert_eq!(
        of.fit(&separated).unwrap(),
        [
            node(1, Some(0), 50, [25, 25]),
            node(2, None, 25, [25, 0]),
            node(3, None, 25, [0, 25])
        ]
    );
    // An exclusive or: no split gains anything.
    let xor: Vec<_> = (0..40)
        .map(|at| (vec![at % 2, at / 2 % 2, 0], (at % 2) ^ (at / 2 % 2)))
        .collect();
    assert_eq!(of.fit(&xor).unwrap(), [node(1, None, 40, [20, 20])]);
    assert_eq!(of.fit(&[]).unwrap(), []);
    assert_eq!(of.fit(&[row(1, 0)]).unwrap(), [node(1, None, 1, [1, 0])]);
}

#[test]
fn what_cannot_be_grown_is_refused() {
    let refused = |change: &dyn Fn(&mut TreeSpec)| {
        let mut spec = spec();
        change(&mut spec);
        Tree::new(spec).unwrap_err()
    };
    let cuts = |cuts: &[i128]| {
        let cuts = cuts.to_vec();
        move |spec: &mut TreeSpec| {
            spec.features[3] = TreeFeature::Number {
                column: column(-500, 500, 2),
                cuts: cuts.clone(),
            };
        }
    };
    assert_eq!(
        refused(&|s| s.features.clear()),
        FitError::Features { found: 0 }
    );
    assert_eq!(refused(&|s| s.depth = 0), FitError::Depth(0));
    assert_eq!(refused(&|s| s.depth = 7), FitError::Depth(7));
    assert_eq!(refused(&|s| s.places = 19), FitError::Places(19));
    assert_eq!(
        refused(&|s| s.target = TreeTarget::Classes(1)),
        FitError::Classes { found: 1 }
    );
    assert_eq!(
        refused(&|s| s.target = TreeTarget::Classes(17)),
        FitError::Classes { found: 17 }
    );
    for bad in [
        &[1, 1][..],
        &[2, 1],
        &[-501],
        &[500],
        &(0..64).collect::<Vec<_>>(),
    ] {
        assert_eq!(refused(&cuts(bad)), FitError::Cuts(3), "{bad:?}");
    }
    assert_eq!(
        FitError::Cuts(3).to_string(),
        "cuts of feature 4 of a tree are up to 63 numbers, ascending, from the least of its range on and below the greatest"
    );
    assert_eq!(
        refused(&|s| s.features = vec![TreeFeature::Category { values: 1 }]),
        FitError::Candidates { found: 0 }
    );
    assert_eq!(
        refused(&|s| s.features = vec![TreeFeature::Category { values: 1024 }]),
        FitError::Candidates { found: 1024 }
    );
    assert!(
        Tree::new(TreeSpec {
            rows: 1 << 26,
            ..spec()
        })
        .is_ok()
    );
    let wide = FitError::TooWide {
        bits: 129,
        most: 128,
    };
    assert!(matches!(
        refused(&|s| s.rows = 1 << 27),
        FitError::TooWide { .. }
    ));
    let number = TreeTarget::Number(column(0, 1 << 30, 0));
    assert!(
        Tree::new(TreeSpec {
            target: number,
            rows: 1 << 22,
            ..spec()
        })
        .is_ok()
    );
    assert_eq!(refused(&|s| (s.target, s.rows) = (number, 1 << 24)), wide);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Any rows, any fewest rows, each number in its range: the tree is that of recursion.
    #[test]
    fn any_rows(
        rows in prop::collection::vec((0_i128..=120, 0_i128..2, 0_i128..3, prop_oneof![Just(-500_i128), Just(500), Just(0), -500_i128..500], 0_i128..3), 0..60),
        depth in 1_u32..=6,
        least in 0_u32..9,
        numbers in any::<bool>(),
    ) {
        let rows: Vec<_> = rows.into_iter().map(|(a, b, c, d, y)| (vec![a, b, c, d], y)).collect();
        let target = if numbers { TreeTarget::Number(column(0, 2, 0)) } else { TreeTarget::Classes(3) };
        let of = Tree::new(TreeSpec { target, depth, least, rows: 60, ..spec() }).unwrap();
        prop_assert_eq!(of.fit(&rows).unwrap(), reference(&of, &rows));
    }
}
