//! Models of trees.

use std::collections::BTreeSet;

use veil_circuit::generate::Aim;
use veil_circuit::{Builder, Per};
use veil_math::Ring;
use veil_relation::forest::{
    Feature, FeatureKind, ForestParts, Node, Output, Split, Test, Threshold, Tree,
};
use veil_relation::{ColumnId, Expr, Forest, Kind, Type, Value, Values};

use super::{Random, categories, check, check_bits, decimals, integers};
use crate::exprs::thresholds::Asked;
use crate::exprs::{Form, Want, needs};

/// The feature that an argument is for: categories with the values of the column and some more.
fn feature(at: usize, ty: &Type) -> Feature {
    let kind = match &ty.kind {
        Kind::Category(values) => {
            let mut texts = values.texts().to_vec();
            texts.extend(["0".to_owned(), "zebra".to_owned()]);
            FeatureKind::Category(Values::new(texts).unwrap())
        }
        _ => FeatureKind::Number,
    };
    let name = format!("f{at}");
    Feature { name, kind }
}

/// A threshold in the range of a feature, or just outside of it, with more places, fewer, or as many.
fn threshold(random: &mut Random, ty: &Type) -> Threshold {
    let places = ty.kind.number().map_or(0, |(places, _)| places);
    let range = ty.kind.range().unwrap();
    let span = range.max().saturating_sub(range.min()).saturating_add(5);
    let up = random.below(span.clamp(1, 1 << 40) as u64);
    let units = range.min().saturating_sub(2).saturating_add(up.into());
    if units.unsigned_abs() > 1 << 90 {
        return Threshold::new(units, places).unwrap();
    }
    let found = match random.below(4) {
        0 => Threshold::new(units * 1000 + i128::from(random.below(1000)), places + 3),
        1 => Threshold::new(units.div_euclid(10), places.saturating_sub(1)),
        2 => Threshold::new(units * 10 + 5, places + 1),
        _ => Threshold::new(units, places),
    };
    found.unwrap()
}

struct Shape {
    /// Most splits on the way to a leaf.
    depth: usize,
    /// All leaves are that deep.
    full: bool,
    /// Whether splits say where nulls go.
    tracks: bool,
    classes: usize,
    trees: usize,
}

struct Maker<'a> {
    random: &'a mut Random,
    types: &'a [Type],
    shape: Shape,
}

impl Maker<'_> {
    fn leaf(&mut self, wide: usize) -> Node {
        let mut units = || match self.random.below(5) {
            0 => 0,
            1 => -i128::from(self.random.below(100_000)),
            _ => i128::from(self.random.below(2_000)) - 700,
        };
        Node::Leaf((0..wide).map(|_| units()).collect())
    }

    fn node(&mut self, depth: usize, wide: usize) -> Node {
        if depth == 0 || !self.shape.full && self.random.below(5) == 0 {
            return self.leaf(wide);
        }
        let at = self.random.below(self.types.len() as u64) as usize;
        let ty = &self.types[at];
        let test = match feature(at, ty).kind {
            FeatureKind::Category(values) => {
                let all = values.texts().len() as u64;
                let mut set: BTreeSet<u16> = BTreeSet::new();
                for _ in 0..=self.random.below(all) {
                    set.insert(self.random.below(all) as u16);
                }
                if set.len() as u64 == all {
                    set.pop_first();
                }
                Test::In(set.into_iter().collect())
            }
            FeatureKind::Number => {
                let threshold = threshold(self.random, ty);
                if self.random.below(2) == 0 {
                    Test::AtMost(threshold)
                } else {
                    Test::Below(threshold)
                }
            }
        };
        let null = self.shape.tracks.then(|| self.random.below(2) == 0);
        Node::Split(Box::new(Split {
            feature: at as u16,
            test,
            null,
            yes: self.node(depth - 1, wide),
            no: self.node(depth - 1, wide),
        }))
    }

    fn forest(&mut self) -> Forest {
        let classes = self.shape.classes;
        let wide = classes.max(1);
        let trees = (0..self.shape.trees).map(|_| {
            let to = (classes > 0 && self.random.below(2) == 0)
                .then(|| self.random.below(wide as u64) as u16);
            let depth = self.shape.depth;
            let root = self.node(depth, if to.is_some() { 1 } else { wide });
            Tree { to, root }
        });
        let trees = trees.collect();
        // The order of the classes is not that of their texts.
        let class = |at: usize| format!("class {:02}", (at * 5 + 3) % 16);
        Forest::new(ForestParts {
            name: format!("m{}", self.random.next()),
            source: "a test".into(),
            features: self
                .types
                .iter()
                .enumerate()
                .map(|(at, ty)| feature(at, ty))
                .collect(),
            classes: (0..classes).map(class).collect(),
            places: 3,
            base: (0..wide as i128).map(|at| at - 7).collect(),
            trees,
        })
        .unwrap()
    }
}

fn forest(random: &mut Random, types: &[Type], shape: Shape) -> Forest {
    Maker {
        random,
        types,
        shape,
    }
    .forest()
}

/// A small model over numbers, whose types it knows if they have any.
pub(super) fn over(random: &mut Random, columns: &[Type], of: Vec<Expr>) -> Expr {
    let types = of.iter().map(|of| of.ty(columns).unwrap_or(integers(0, 9)));
    let types: Vec<Type> = types.collect();
    let tracks = random.below(2) == 0;
    let shape = Shape {
        depth: 2,
        full: true,
        tracks,
        classes: 0,
        trees: 2,
    };
    let model = forest(random, &types, shape);
    let output = Output::Value;
    Expr::Predict { model, output, of }
}

/// Everything that may be asked of a model over all columns.
fn applied(model: &Forest) -> Vec<Expr> {
    let columns = (0..model.parts().features.len() as u32).map(Expr::column);
    let of: Vec<Expr> = columns.collect();
    let ask = |output| Expr::Predict {
        model: model.clone(),
        output,
        of: of.clone(),
    };
    if model.parts().classes.is_empty() {
        return vec![ask(Output::Value)];
    }
    let scores = (0..model.parts().classes.len()).map(|class| Output::Score(class as u16));
    scores.chain([Output::Class]).map(ask).collect()
}

fn rows(random: &mut Random, types: &[Type], count: usize) -> Vec<Vec<Value>> {
    let mut row = || types.iter().map(|ty| random.cell(ty)).collect();
    (0..count).map(|_| row()).collect()
}

fn mixed(nullable: bool) -> Vec<Type> {
    vec![
        integers(-40, 60).or_null(nullable),
        decimals(2, 0, 50_000),
        Type::of(Kind::Bool).or_null(nullable),
        Type::of(categories(5)).or_null(nullable),
        integers(7, 7),
        decimals(1, -9_000_000, 9_000_000).or_null(nullable),
        Type::of(categories(100)),
        integers(0, 3),
    ]
}

#[test]
fn random_models_give_what_their_trees_do() {
    let mut random = Random(77);
    for case in 0..60 {
        let types = mixed(case % 3 > 0);
        let shape = Shape {
            depth: case % 7,
            full: case % 4 == 0,
            tracks: case % 2 == 0,
            classes: [0, 0, 2, 3, 5][case % 5],
            trees: 1 + case % 6,
        };
        let model = forest(&mut random, &types, shape);
        let rows = rows(&mut random, &types, 150);
        let aim = if case % 2 == 0 { Aim::Depth } else { Aim::Size };
        check_bits(&types, &rows, &applied(&model), aim);
    }
}

#[test]
fn every_value_of_a_feature_goes_the_right_way() {
    let mut random = Random(78);
    for (types, count) in [
        (vec![integers(-70, 130)], 201),
        (vec![decimals(1, 0, 600)], 601),
        (vec![integers(0, 1023).or_null(true)], 1024),
        (vec![Type::of(categories(40)).or_null(true)], 40),
        (vec![Type::of(Kind::Bool)], 2),
    ] {
        let least = types[0].kind.range().unwrap().min();
        let value = |at: i128| match types[0].kind {
            Kind::Bool => Value::Bool(at == 1),
            _ => Value::Number(least + at),
        };
        let mut rows: Vec<Vec<Value>> = (0..count).map(|at| vec![value(at)]).collect();
        if types[0].nullable {
            rows.push(vec![Value::Null]);
        }
        for (trees, depth) in [(1, 1), (1, 3), (40, 3), (9, 6)] {
            for tracks in [false, true] {
                let shape = Shape {
                    depth,
                    full: true,
                    tracks,
                    classes: 0,
                    trees,
                };
                let model = forest(&mut random, &types, shape);
                check_bits(&types, &rows, &applied(&model), Aim::Depth);
            }
        }
    }
}

#[test]
fn models_stand_in_rings_and_take_what_they_need() {
    let mut random = Random(79);
    let types = mixed(true);
    for tracks in [false, true] {
        let shape = Shape {
            depth: 4,
            full: true,
            tracks,
            classes: 0,
            trees: 3,
        };
        let model = forest(&mut random, &types, shape);
        let expr = applied(&model).remove(0);
        let found: Vec<(ColumnId, Form)> =
            needs(&expr, Want::Integer, &types).into_iter().collect();
        assert!(found.iter().all(|(_, form)| *form == Form::Bits));
        assert_eq!(found.len(), types.len());
        let rows = rows(&mut random, &types, 60);
        check(
            Ring::Z64,
            &types,
            &found,
            &rows,
            std::slice::from_ref(&expr),
            Aim::Depth,
        );
        // Whether it is null is known without its bits.
        let null = Expr::IsNull(Box::new(expr));
        let found: Vec<(ColumnId, Form)> = needs(&null, Want::Bits, &types).into_iter().collect();
        assert!(found.iter().all(|(_, form)| *form == Form::Null));
        check(Ring::Bits, &types, &found, &rows, &[null], Aim::Depth);
    }
}

#[test]
fn a_hundred_trees_of_depth_eight() {
    let mut random = Random(80);
    let types: Vec<Type> = (0..30).map(|_| integers(0, 65_535)).collect();
    let shape = Shape {
        depth: 8,
        full: true,
        tracks: false,
        classes: 0,
        trees: 100,
    };
    let model = forest(&mut random, &types, shape);
    assert_eq!((model.size().splits, model.size().leaves), (25_500, 25_600));
    let rows = rows(&mut random, &types, 64);
    let circuit = check_bits(&types, &rows, &applied(&model), Aim::Depth);
    let ands = circuit.stats().muls;
    // One for each threshold and for each split, 15 000 for halves of features, and the sum of a hundred numbers of some 40 bits.
    assert!((60_000..70_500).contains(&ands), "{ands}");
}

#[test]
fn models_that_ask_for_few_things_cost_little() {
    let mut random = Random(81);
    let one = |types: &[Type], random: &mut Random, depth, trees| {
        let shape = Shape {
            depth,
            full: true,
            tracks: false,
            classes: 0,
            trees,
        };
        let model = forest(random, types, shape);
        let rows = rows(random, types, 64);
        check_bits(types, &rows, &applied(&model), Aim::Size)
            .stats()
            .muls
    };
    // A leaf alone costs nothing, nor do a split of a bool, and features of one value.
    assert_eq!(one(&[integers(0, 99)], &mut random, 0, 1), 0);
    assert_eq!(one(&[Type::of(Kind::Bool)], &mut random, 1, 1), 0);
    assert_eq!(one(&[integers(4, 4)], &mut random, 5, 1), 0);
    // A stump costs its comparison.
    assert!(one(&[integers(0, 65_535)], &mut random, 1, 1) <= 15);
    // All thresholds of a feature of seven bits: each value at most.
    assert!(one(&[integers(0, 127)], &mut random, 7, 1) <= 120 + 127);
}

#[test]
fn thresholds_share_work() {
    let mut random = Random(82);
    for (len, below, equal) in [
        (1, 1, 1),
        (4, 3, 9),
        (7, 20, 3),
        (9, 300, 0),
        (16, 850, 0),
        (16, 2, 2),
        (12, 5, 40),
        (63, 9, 1),
    ] {
        let mut asked = Asked::default();
        for _ in 0..below {
            asked
                .below
                .insert(u128::from(1 + random.below((1 << len) - 1)));
        }
        for _ in 0..equal {
            asked.equal.insert(u128::from(random.below(1 << len)));
        }
        for aim in [Aim::Size, Aim::Depth] {
            let mut b = Builder::new(Ring::Bits);
            let word = b.input("x", len, Per::Row);
            let known = asked.answer(&mut b, &word, aim);
            let below: Vec<_> = asked
                .below
                .iter()
                .map(|of| known.is_below(&mut b, *of))
                .collect();
            let equal: Vec<_> = asked.equal.iter().map(|of| known.is_equal(*of)).collect();
            b.output("below", &below);
            if !equal.is_empty() {
                b.output("equal", &equal);
            }
            let circuit = b.finish().unwrap();
            if aim == Aim::Size {
                assert!(circuit.stats().muls <= asked.ands(len as usize) as u64);
                assert!(
                    asked.ands(len as usize) <= (below.len() + equal.len()) * (len as usize - 1)
                );
            }
            let mut values: Vec<u128> = (0..200)
                .map(|_| u128::from(random.below(1 << len)))
                .collect();
            values.extend(
                asked
                    .below
                    .iter()
                    .flat_map(|of| [*of - 1, *of])
                    .chain(asked.equal.clone()),
            );
            for x in values.into_iter().filter(|x| x >> len == 0) {
                let bits = (0..len).map(|j| x >> j & 1).collect();
                let found = circuit.evaluate(&[bits]).unwrap();
                let expected: Vec<u128> = asked.below.iter().map(|of| (x < *of).into()).collect();
                assert_eq!(found[0], expected);
                if let Some(found) = found.get(1) {
                    let expected: Vec<u128> =
                        asked.equal.iter().map(|of| (x == *of).into()).collect();
                    assert_eq!(*found, expected);
                }
            }
        }
    }
    assert!(
        Asked {
            below: (1..=65_535).step_by(77).map(|at| at as u128).collect(),
            ..Asked::default()
        }
        .ands(16)
            < 1_350
    );
}
