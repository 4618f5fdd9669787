//! Models of trees on bits: every threshold of a feature at once, one AND for each split, and sums of leaves.
//!
//! A row is at a node or not; with P for the node and d for the answer to its split, it is at the node for yes where P · d is 1, and at that for no where P + P · d is. What a tree gives
//! is, bit by bit, the sum of what its leaves have there. With c(leaf) its units and c(split) = c(no),
//!
//! ```text
//! value = c(root) + Σ_splits P · d · (c(yes) + c(no))     bit by bit,
//! ```
//!
//! so that leaves cost no AND.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use veil_circuit::generate::{Aim, constant_bits};
use veil_circuit::{Builder, Per, Wire};
use veil_math::Ring;
use veil_relation::forest::{FeatureKind, Node, Output, Split, Test};
use veil_relation::{Expr, Forest, Kind, Range, Type, Values};

use super::columns::Columns;
use super::compare::{choose, less};
use super::table::look_up;
use super::thresholds::{Asked, Known, decoded};
use super::word::Word;
use super::{Cell, Data, ExprError, Exprs, Shown, Source, Want, needs};

/// Most bits of a category that is decoded for all its sets together.
const MOST_DECODED: usize = 6;

/// What a model gives for arguments that have been compiled.
#[derive(Clone, Debug)]
pub(super) struct Predicted {
    /// Each score.
    scores: Rc<[Word]>,
    /// Whether an argument is null and the model does not say where nulls go.
    null: Option<Wire>,
}

/// An argument of a model.
struct Feature<'a> {
    word: Word,
    null: Option<Wire>,
    kind: &'a FeatureKind,
    /// Of a category its values.
    values: Option<Values>,
    places: u32,
    known: Known,
    /// For each index of a category whether it is that; nothing where sets are looked up one by one.
    decoded: Vec<Wire>,
}

/// How an answer follows from what is known of a feature.
enum Answer {
    Public(bool),
    /// Whether the bits of the word are less than this.
    Below(u128),
    /// Whether the index is one of these, by the index.
    In(Vec<bool>),
}

impl Feature<'_> {
    fn answer(&self, test: &Test) -> Answer {
        let (below, threshold) = match test {
            Test::AtMost(most) => (false, most),
            Test::Below(bound) => (true, bound),
            Test::In(set) => return self.set(set),
        };
        let range = self.word.range;
        match threshold.most(self.places, below) {
            Some(most) if most >= range.max() => Answer::Public(true),
            Some(most) if most >= range.min() => {
                // x ≤ most is x < most + 1, which is at most the greatest value.
                Answer::Below((most + 1).wrapping_sub(self.word.offset) as u128)
            }
            _ => Answer::Public(false),
        }
    }

    fn set(&self, set: &[u16]) -> Answer {
        let (FeatureKind::Category(known), Some(values)) = (self.kind, &self.values) else {
            return Answer::Public(false);
        };
        let texts: BTreeSet<&String> = set
            .iter()
            .map(|at| &known.texts()[usize::from(*at)])
            .collect();
        let within: Vec<bool> = values
            .texts()
            .iter()
            .map(|text| texts.contains(text))
            .collect();
        match within.iter().find(|one| **one != within[0]) {
            None => Answer::Public(within[0]),
            Some(_) => Answer::In(within),
        }
    }
}

/// Compiles the trees of a model.
struct Trees<'a> {
    b: &'a mut Builder,
    aim: Aim,
    features: Vec<Feature<'a>>,
    /// Answers by feature, test and where nulls go.
    answers: BTreeMap<(u16, &'a Test, Option<bool>), Wire>,
}

/// Units of leaves less the least of each score: bits that are picked.
struct Leaves {
    least: Vec<i128>,
    bits: Vec<Vec<Wire>>,
}

impl<'a> Trees<'a> {
    /// Asks all that a model's splits ask of each feature.
    fn ask(&mut self, model: &'a Forest) {
        let mut asked: Vec<Asked> = Vec::new();
        asked.resize_with(self.features.len(), Asked::default);
        let mut open: Vec<&Node> = model.parts().trees.iter().map(|tree| &tree.root).collect();
        while let Some(node) = open.pop() {
            let Node::Split(split) = node else { continue };
            let at = usize::from(split.feature);
            match self.features[at].answer(&split.test) {
                Answer::Public(answer) => {
                    open.push(if answer { &split.yes } else { &split.no });
                    // Rows with nulls may go the other way.
                    if split.null == Some(!answer) && self.features[at].null.is_some() {
                        open.push(if answer { &split.no } else { &split.yes });
                    }
                    continue;
                }
                Answer::Below(bound) => {
                    asked[at].below.insert(bound);
                }
                Answer::In(_) => {}
            }
            open.extend([&split.yes, &split.no]);
        }
        for (feature, asked) in self.features.iter_mut().zip(asked) {
            feature.known = asked.answer(self.b, &feature.word.bits, self.aim);
        }
    }

    /// The answer to a split.
    fn answer(&mut self, split: &'a Split) -> Wire {
        let nullable = self.features[usize::from(split.feature)].null.is_some();
        let null = split.null.filter(|_| nullable);
        let key = (split.feature, &split.test, null);
        if let Some(&known) = self.answers.get(&key) {
            return known;
        }
        let feature = &mut self.features[usize::from(split.feature)];
        let found = match feature.answer(&split.test) {
            Answer::Public(answer) => self.b.constant_bit(answer),
            Answer::Below(bound) => feature.known.is_below(self.b, bound),
            Answer::In(within) => {
                let bits = feature.word.normal(self.b, self.aim);
                if bits.len() <= MOST_DECODED {
                    if feature.decoded.is_empty() {
                        feature.decoded = decoded(self.b, &bits);
                    }
                    let mut sum = self.b.constant_bit(false);
                    for (&one, _) in feature
                        .decoded
                        .iter()
                        .zip(&within)
                        .filter(|(_, in_set)| **in_set)
                    {
                        sum = self.b.xor(sum, one);
                    }
                    sum
                } else {
                    let rows: Vec<u128> = within.into_iter().map(u128::from).collect();
                    look_up(self.b, &bits, &rows, 1, self.aim)[0]
                }
            }
        };
        let found = match (null, feature.null) {
            (Some(yes), Some(is_null)) => {
                let there = self.b.not(is_null);
                let yes_and_there = self.b.and(found, there);
                if yes {
                    self.b.xor(yes_and_there, is_null)
                } else {
                    yes_and_there
                }
            }
            _ => found,
        };
        self.answers.insert(key, found);
        found
    }

    /// The range of each score below a node that a row may come to.
    fn ranges(&mut self, node: &'a Node) -> Vec<Range> {
        match node {
            Node::Leaf(units) => units.iter().copied().map(Range::point).collect(),
            Node::Split(split) => {
                let answer = self.answer(split);
                match self.public(answer) {
                    Some(true) => self.ranges(&split.yes),
                    Some(false) => self.ranges(&split.no),
                    None => {
                        let (yes, no) = (self.ranges(&split.yes), self.ranges(&split.no));
                        yes.iter().zip(no).map(|(a, b)| a.hull(b)).collect()
                    }
                }
            }
        }
    }

    fn public(&mut self, bit: Wire) -> Option<bool> {
        if bit == self.b.constant_bit(true) {
            Some(true)
        } else if bit == self.b.constant_bit(false) {
            Some(false)
        } else {
            None
        }
    }

    /// Adds what the splits below a node give where the row is at it, and says what it is without any yes.
    fn node<'n>(&mut self, node: &'a Node, here: Wire, leaves: &mut Leaves) -> &'n [i128]
    where
        'a: 'n,
    {
        let split = match node {
            Node::Leaf(units) => return units,
            Node::Split(split) => split,
        };
        let answer = self.answer(split);
        match self.public(answer) {
            Some(true) => return self.node(&split.yes, here, leaves),
            Some(false) => return self.node(&split.no, here, leaves),
            None => {}
        }
        let to_yes = self.b.and(here, answer);
        let to_no = self.b.xor(here, to_yes);
        let yes = self.node(&split.yes, to_yes, leaves);
        let no = self.node(&split.no, to_no, leaves);
        for (((yes, no), least), bits) in
            yes.iter().zip(no).zip(&leaves.least).zip(&mut leaves.bits)
        {
            let changed = yes.wrapping_sub(*least) ^ no.wrapping_sub(*least);
            for (j, bit) in bits.iter_mut().enumerate() {
                if changed >> j & 1 == 1 {
                    *bit = self.b.xor(*bit, to_yes);
                }
            }
        }
        no
    }

    /// What a tree gives, for each score that it has.
    fn tree(&mut self, root: &'a Node) -> Vec<Word> {
        let ranges = self.ranges(root);
        let zeros = ranges
            .iter()
            .map(|range| constant_bits(self.b, 0, range.bits()));
        let mut leaves = Leaves {
            bits: zeros.collect(),
            least: ranges.iter().map(|range| range.min()).collect(),
        };
        let everywhere = self.b.constant_bit(true);
        let first = self.node(root, everywhere, &mut leaves);
        let scores = ranges.into_iter().zip(first).zip(leaves.bits);
        let mut words = Vec::new();
        for ((range, first), mut bits) in scores {
            let first = first.wrapping_sub(range.min()) as u128;
            for (j, bit) in bits.iter_mut().enumerate() {
                if first >> j & 1 == 1 {
                    *bit = self.b.not(*bit);
                }
            }
            words.push(Word::of_bits(bits, range));
        }
        words
    }
}

/// ANDs that an expression over columns of these types takes in each row, as bits by itself. Nothing if it has no circuit.
#[must_use]
pub fn ands(expr: &Expr, columns: &[Type]) -> Option<u64> {
    let mut b = Builder::new(Ring::Bits);
    let mut sources = HashMap::new();
    for (column, _) in needs(expr, Want::Bits, columns) {
        let ty = columns.get(column.index())?;
        let mut bits = |name: &str, len: u32| match len {
            0 => Vec::new(),
            len => b.input(format!("{name}{}", column.0), len, Per::Row),
        };
        let source: &mut Source = sources.entry(column).or_default();
        source.bits = Some(bits("x", ty.kind.bits()?));
        if ty.nullable {
            source.null = bits("n", 1).first().copied();
        }
    }
    let mut exprs = Exprs::new(b, columns.to_vec(), sources, Aim::Depth);
    let (bits, null) = exprs.bits(expr).ok()?;
    let mut b = exprs.b;
    let bits: Vec<Wire> = bits.into_iter().chain(null).collect();
    if bits.is_empty() {
        return Some(0);
    }
    b.output("y", &bits);
    b.finish().ok().map(|circuit| circuit.stats().muls)
}

impl Exprs {
    /// What a model gives.
    pub(super) fn predict(
        &mut self,
        expr: &Expr,
        model: &Forest,
        output: Output,
        of: &[Expr],
    ) -> Result<Cell, ExprError> {
        let kind = self.ty(expr)?.kind;
        let Predicted { scores, null } = self.predicted(expr, model, of)?;
        let word = match output {
            Output::Value => scores[0].clone(),
            Output::Score(class) => scores[usize::from(class)].clone(),
            Output::Class => {
                let range = kind.range().unwrap_or(Range::point(0));
                highest(&mut self.b, self.aim, &scores, model.class_indices(), range)
            }
        };
        Ok(Cell::of(Data::Word(word), null, &kind))
    }

    /// Whether what a model gives is null.
    pub(super) fn predicts_null(
        &mut self,
        model: &Forest,
        of: &[Expr],
    ) -> Result<Option<Wire>, ExprError> {
        let mut null = None;
        if !model.tracks_nulls() {
            for argument in of {
                let argument = self.null(argument)?;
                null = self.either_null(null, argument);
            }
        }
        Ok(null)
    }

    /// The scores of a model: several outputs share them.
    fn predicted(
        &mut self,
        expr: &Expr,
        model: &Forest,
        of: &[Expr],
    ) -> Result<Predicted, ExprError> {
        let key = (model.clone(), of.to_vec());
        if let Some(known) = self.forests.get(&key) {
            return Ok(known.clone());
        }
        let mut features = Vec::new();
        let mut null = None;
        for (argument, feature) in of.iter().zip(&model.parts().features) {
            let kind = self.ty(argument)?.kind;
            let cell = self.cell(argument)?;
            let Data::Word(word) = cell.value else {
                let expr = Shown::of(expr);
                return Err(ExprError::Quotient { expr });
            };
            if !model.tracks_nulls() {
                null = self.either_null(null, cell.null);
            }
            features.push(Feature {
                word,
                null: cell.null,
                kind: &feature.kind,
                places: kind.number().map_or(0, |(places, _)| places),
                values: match kind {
                    Kind::Category(values) => Some(values),
                    _ => None,
                },
                known: Known::default(),
                decoded: Vec::new(),
            });
        }
        let aim = self.aim;
        let b = &mut self.b;
        let mut trees = Trees {
            b,
            aim,
            features,
            answers: BTreeMap::new(),
        };
        trees.ask(model);
        let parts = model.parts();
        let sums = model.scores().iter().zip(&parts.base);
        let mut sums: Vec<Columns> = sums
            .map(|(range, base)| {
                let mut sum = Columns::new(range.bits());
                sum.constant(*base as u128);
                sum
            })
            .collect();
        for tree in &parts.trees {
            let first = tree.to.map_or(0, usize::from);
            let words = trees.tree(&tree.root);
            for (sum, word) in sums[first..].iter_mut().zip(words) {
                sum.scaled(trees.b, &word, 1);
            }
        }
        let scores = sums.into_iter().zip(model.scores());
        let scores = scores.map(|(sum, range)| sum.word(trees.b, *range, aim));
        let scores = scores.collect();
        let found = Predicted { scores, null };
        self.forests.insert(key, found.clone());
        Ok(found)
    }
}

/// The index of the highest score, of several the first one's.
pub(crate) fn highest(
    b: &mut Builder,
    aim: Aim,
    scores: &[Word],
    indices: &[u16],
    range: Range,
) -> Word {
    let mut best: Vec<(Word, Vec<Wire>)> = Vec::new();
    for (score, index) in scores.iter().zip(indices) {
        let index = constant_bits(b, u128::from(*index), range.bits());
        best.push((score.clone(), index));
    }
    // Pairs, so that rounds are few; the first of a pair comes first.
    while best.len() > 1 {
        let mut left = Vec::new();
        for pair in best.chunks(2) {
            let [(one, first), (other, second)] = pair else {
                left.push(pair[0].clone());
                continue;
            };
            let higher = less(b, one, other, aim);
            let hull = one.range.hull(other.range);
            let (offset, words) = super::word::aligned(b, &[one, other], hull, aim);
            let bits = choose(b, higher, &words[1], &words[0]);
            let index = choose(b, higher, second, first);
            left.push((
                Word {
                    offset,
                    bits,
                    range: hull,
                },
                index,
            ));
        }
        best = left;
    }
    let index = best.pop().map_or_else(Vec::new, |(_, index)| index);
    Word::of_bits(index, range)
}
