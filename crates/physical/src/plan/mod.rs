//! From the algebra to passes.

mod aggregates;
mod apart;
mod bounds;
mod checks;
mod early;
mod error;
mod fit;
mod flags;
mod folded;
mod group;
mod inputs;
mod join;
mod keep;
mod known;
mod network;
mod open;
mod order;
mod public;
mod rel;
mod rewrite;
mod row;
mod rows;
mod text;
mod totals;
mod weights;
mod window;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use veil_job::{Adversary, ProtocolKind, passes::MoveKind, passes::PassSpec};
use veil_operators::{Builder, Participants};
use veil_relation::{Expr, Plan, PlanError, Program, Shape, Shapes, Step};

use crate::ports::{KeepPorts, ResultPorts, TablePorts};
use crate::{Node, Opening, PhysicalPlan, lowered, wires};
use error::written;
pub use error::{PhysicalError, Refusal};
use flags::Flags;
use inputs::{Forms, Supplied};
use rel::Rel;
pub(crate) use rows::aim_of;

/// The physical plan of a program, for these participants.
///
/// It follows from the program and the participants alone.
///
/// # Errors
/// [`PhysicalError`], with what stands in the way.
pub fn plan(program: &Program, of: &Participants) -> Result<PhysicalPlan, PhysicalError> {
    let shapes = program.check()?;
    // The first time finds out in which forms columns of tables are asked for, and which orders the plan rests on; the second time each table is supplied at
    // once, and looked at.
    let mut forms = Forms::new();
    loop {
        let mut planner = Planner::new(program, &shapes, of.clone(), forms);
        planner.checks()?;
        planner.steps()?;
        if planner.complete() {
            let garbled = planner.b.is_garbled();
            let integers = of.security.moves_integers();
            let plan = planner.finish();
            return match (garbled, integers) {
                (true, _) => wires::flat(plan),
                (false, false) => lowered::in_bits(plan),
                (false, true) => Ok(plan),
            };
        }
        // Each time knows more forms, of which a column has seven.
        forms = planner.forms;
    }
}

/// Plans the steps of a program.
struct Planner<'a> {
    program: &'a Program,
    shapes: &'a [Shape],
    b: Builder,
    /// Whether owners supply a column in two forms where both are needed: a party that deviates could supply two values.
    twice: bool,
    forms: Forms,
    /// How many forms were known at the beginning.
    known: usize,
    supplied: BTreeMap<usize, Supplied>,
    /// The passes in which a table is supplied, until an operator has them.
    supplying: BTreeMap<usize, Range<usize>>,
    tables: Vec<TablePorts>,
    results: Vec<ResultPorts>,
    keeps: Vec<KeepPorts>,
    opens: Vec<Opening>,
    steps: HashMap<String, Rel>,
    flags: Flags,
    tree: Vec<Node>,
}

impl<'a> Planner<'a> {
    fn new(program: &'a Program, shapes: &'a [Shape], of: Participants, forms: Forms) -> Self {
        Planner {
            program,
            shapes,
            // In a circuit of bits an integer is its bits.
            twice: of.security.adversary == Adversary::SemiHonest
                && of.security.protocol != ProtocolKind::Yao,
            b: Builder::new(of),
            known: forms.values().map(BTreeSet::len).sum(),
            forms,
            supplied: BTreeMap::new(),
            supplying: BTreeMap::new(),
            tables: vec![],
            results: vec![],
            keeps: vec![],
            opens: vec![],
            steps: HashMap::new(),
            flags: Flags::default(),
            tree: vec![],
        }
    }

    /// Whether all forms were known at the beginning.
    fn complete(&self) -> bool {
        let now: usize = self.forms.values().map(BTreeSet::len).sum();
        now == self.known
    }

    fn finish(mut self) -> PhysicalPlan {
        let passes = self.b.finish();
        let opened = passes.passes.iter().filter(|pass| match pass {
            PassSpec::Move { kind, .. } => *kind == MoveKind::Open,
            PassSpec::Compare { positions, .. } => positions.is_some(),
            PassSpec::Rows { .. } | PassSpec::Product { .. } => false,
        });
        let count = opened.count() as u32;
        if count > 0 {
            self.opens.push(Opening::Permutations { count });
        }
        PhysicalPlan {
            passes,
            tables: self.tables,
            results: self.results,
            keeps: self.keeps,
            opens: self.opens,
            tree: self.tree,
            wires: None,
        }
    }

    fn steps(&mut self) -> Result<(), PhysicalError> {
        // What is kept is kept by the last passes: it is complete once all parties have agreed on the end of the last one.
        let mut kept = Vec::new();
        for (step, shape) in self.program.steps.iter().zip(self.shapes) {
            let (rel, node) = self
                .step(step, shape)
                .map_err(|error| PhysicalError::Step {
                    step: step.name.clone(),
                    at: step.at,
                    error: Box::new(error),
                })?;
            let flagged = self.flags.end(&step.name);
            if let Some(keep) = &step.keep {
                if flagged {
                    return Err(flags::unkept(step));
                }
                kept.push((step, keep, shape, rel));
            }
            self.tree.push(node);
        }
        let mut sized = Vec::new();
        for (step, keep, shape, rel) in kept {
            let (rel, size) = match &keep.size {
                None => (rel, None),
                Some(of) => {
                    let (rel, port, node) = self.sized(rel, shape, (step, of))?;
                    self.tree.push(node);
                    (rel, Some(port))
                }
            };
            sized.push((step, keep, shape, rel, size));
        }
        for (step, keep, shape, rel, size) in sized {
            let node = self.keep((rel, size), shape, step, &keep.dataset)?;
            self.tree.push(node);
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, shape: &Shape) -> Result<(Rel, Node), PhysicalError> {
        match &step.plan {
            Plan::Open { input, to } => {
                let (rel, node) = self.relation(input)?;
                let node = self.open(rel.clone(), node, shape, (&step.name, to))?;
                Ok((rel, node))
            }
            plan => {
                let (rel, node) = self.relation(plan)?;
                self.steps.insert(step.name.clone(), rel.clone());
                Ok((rel, node))
            }
        }
    }

    /// The shape of a plan of the program.
    fn shape(&self, plan: &Plan) -> Result<Shape, PhysicalError> {
        Ok(Shapes::over(self.program, self.shapes).of(plan)?)
    }

    /// The relation of a plan, and how it is made.
    fn relation(&mut self, plan: &Plan) -> Result<(Rel, Node), PhysicalError> {
        if let Some(other) = self.rewritten(plan)? {
            return self.relation(&other);
        }
        if let Some(both) = self.in_one_sort(plan)? {
            return Ok(both);
        }
        let mut inputs = Vec::new();
        for input in plan.inputs() {
            inputs.push(self.relation(input)?);
        }
        self.applied(plan, inputs)
    }

    /// The relation of an operator over its inputs, and how it is made.
    fn applied(
        &mut self,
        plan: &Plan,
        inputs: Vec<(Rel, Node)>,
    ) -> Result<(Rel, Node), PhysicalError> {
        let (rels, nodes): (Vec<Rel>, Vec<Node>) = inputs.into_iter().unzip();
        let begin = self.b.passes();
        let shape = self.shape(plan)?;
        let rel = self.operator(plan, rels, &shape);
        let rel = rel.map_err(|error| error.or_at(written(plan)))?;
        let end = self.b.passes();
        let supplying = match plan {
            Plan::Scan { table, .. } => self.supplying_of(table),
            _ => None,
        };
        // A table that is not looked at is supplied where it is scanned.
        let own = std::iter::once(begin..end).chain(supplying.filter(|of| of.end <= begin));
        let node = Node {
            text: text::of(plan, &shape, self.program),
            rows: rel.rows,
            passes: own.filter(|of| !of.is_empty()).collect(),
            inputs: nodes,
        };
        Ok((rel, node))
    }

    /// The passes in which a table is supplied, once.
    fn supplying_of(&mut self, table: &str) -> Option<Range<usize>> {
        let mut tables = self.program.tables.iter();
        let at = tables.position(|known| known.name == *table)?;
        self.supplying.remove(&at)
    }

    fn operator(
        &mut self,
        plan: &Plan,
        rels: Vec<Rel>,
        shape: &Shape,
    ) -> Result<Rel, PhysicalError> {
        let mut rels = rels.into_iter();
        let mut next = || {
            let none = || PhysicalError::Circuit("an operator lacks its input".into());
            rels.next().ok_or_else(none)
        };
        match plan {
            Plan::Scan { table, columns } => self.scan(table, columns),
            Plan::Step { name } => match self.steps.get(name) {
                Some(rel) => {
                    self.flags.read(name);
                    Ok(rel.clone())
                }
                None => Err(PlanError::NoStep(name.clone()).into()),
            },
            Plan::Filter { .. } | Plan::Project { .. } => {
                let rel = next()?;
                self.row_by_row(plan, rel)
            }
            Plan::UnionAll { .. } => self.union(rels.collect(), shape),
            Plan::Join { .. } => {
                let (left, right) = (next()?, next()?);
                self.join(plan, left, right, shape)
            }
            Plan::GroupBy {
                keys,
                aggregates,
                domain,
                min_rows,
                ..
            } => {
                let rel = next()?;
                self.group_by(rel, (keys, aggregates), (*domain, *min_rows), shape)
            }
            Plan::Distinct { .. } => {
                let rel = next()?;
                self.distinct(rel, shape)
            }
            Plan::Sort { keys, input } => {
                let rel = next()?;
                self.sorted(rel, (keys, &text::relation(input)), shape)
            }
            Plan::TopK { keys, input, .. } => {
                let rel = next()?;
                let rel = self.sorted(rel, (keys, &text::relation(input)), shape)?;
                let mut rel = self.first_rows(&rel, shape.capacity as u32);
                if shape.capacity == 0 {
                    rel.valid = vec![Expr::bool(false)];
                }
                Ok(rel)
            }
            Plan::Window {
                partition,
                order,
                functions,
                ..
            } => {
                let rel = next()?;
                self.window(rel, (partition, order), functions, shape)
            }
            Plan::Trim {
                input,
                rows,
                overflow,
            } => {
                let rel = next()?;
                self.trimmed(rel, (*rows, *overflow), &text::relation(input), shape)
            }
            Plan::Fit { input, model } => {
                let of = self.shape(input)?;
                let of = model.fitting(&of.types(), of.capacity)?;
                self.fitted(next()?, (model, &of), shape)
            }
            Plan::Apply {
                input,
                model,
                weights,
            } => {
                let of = model.inference(&self.shape(input)?.types())?;
                let rel = next()?;
                let weights = weights.as_ref().map(|_| next()).transpose()?;
                self.inferred(rel, (model, &of), weights, shape)
            }
            Plan::Open { .. } => Err(PhysicalError::Circuit(
                "a relation is opened within another".into(),
            )),
        }
    }

    /// The same rows in fewer places: the first ones, as many as there are places.
    fn first_rows(&mut self, rel: &Rel, rows: u32) -> Rel {
        if rows >= rel.rows {
            return rel.clone();
        }
        let rows = rows.max(1);
        let mut made: HashMap<u32, veil_operators::Shared> = HashMap::new();
        for column in rel.base.iter().flat_map(rel::Base::columns) {
            made.entry(column.column().0)
                .or_insert_with(|| self.b.make(column.rows_from(0), rows, column.sharing()));
        }
        let moved = |column: veil_operators::Shared| made[&column.column().0];
        Rel {
            rows,
            base: rel.base.iter().map(|base| base.moved(&moved)).collect(),
            ..rel.clone()
        }
    }
}
