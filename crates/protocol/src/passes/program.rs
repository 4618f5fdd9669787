//! The passes of a run, and what holds of them together.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use veil_job::canonical::Canonical;
use veil_job::{Audience, Holder, JobSpec};
use veil_math::Ring;
use veil_session::{Peer, PlanHash};

use super::ordering::{Ordering, Rule};
use super::{
    Axis, ColumnForm, ColumnId, ColumnKind, ColumnPlan, MadeSpec, MoveKind, MovePlan, Moves,
    PassSpec, ProductPlan, ProgramSpec, Take, product,
};
use crate::plan::{Chunk, Gives, Options, OutputPlan, Plan, PlanError};
use crate::round::Protocol;

/// Changes whenever what is hashed changes its meaning.
const VERSION: &str = "veilworks passes 2";

/// Passes, at most: a pass has its number in keys and in names of messages.
const MOST_PASSES: usize = 1 << 15;

/// One pass over columns.
#[derive(Clone, Debug)]
pub enum Pass {
    /// A circuit in every row.
    Rows {
        /// Its plan.
        plan: Arc<Plan>,
        /// What input ports of [`Holder::Column`] take, by port.
        takes: Vec<Option<Take>>,
        /// The columns that output ports of [`Audience::Column`] leave, by port.
        leaves: Vec<Option<ColumnId>>,
        /// That all it opens to the parties is 0, in words: the run ends if it is not.
        claim: Option<Arc<str>>,
        /// The rows that it compares, if that is what it does.
        compares: Option<Compares>,
    },
    /// A move of rows.
    Move {
        /// Its plan.
        plan: Arc<MovePlan>,
        /// What moves.
        takes: Vec<Take>,
        /// The columns that it leaves, but for what is opened; nothing for one that no pass takes.
        leaves: Vec<Option<ColumnId>>,
        /// The factors of the permutation: taken by a move back, left by another if rows go back later.
        factors: Option<ColumnId>,
        /// Opened positions: left where they are opened, taken elsewhere.
        positions: Option<ColumnId>,
    },
    /// A product of matrices.
    Product {
        /// Its plan.
        plan: Arc<ProductPlan>,
        /// The columns of the left matrix, then those of the right one.
        takes: Vec<Take>,
        /// Those of the product; nothing for one that no pass takes.
        leaves: Vec<Option<ColumnId>>,
    },
}

/// Rows that are put in order by comparisons that are opened to the parties.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compares {
    /// How many.
    pub rows: u32,
    /// Their words.
    pub of: Vec<ColumnId>,
    /// The factors of the permutation by which they have moved.
    pub factors: ColumnId,
    /// Their positions, which the last comparisons leave.
    pub positions: Option<ColumnId>,
}

/// Passes do not fit each other: a defect of what wrote them.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// What is wrong with which pass.
    #[error("pass {pass} of the program: {what}")]
    Pass {
        /// Its number, from 0.
        pass: usize,
        /// The rule that it breaks.
        what: &'static str,
    },
    /// Too many of them, or none.
    #[error("a program has 1 to {MOST_PASSES} passes, and this one has {passes}")]
    Count {
        /// How many it has.
        passes: usize,
    },
    /// The parties multiply no matrices.
    #[error(
        "matrices are multiplied among three parties that are semi-honest, and among four, in runs that end where a party fails; the job has {0}: ask for four parties"
    )]
    Matrices(veil_job::Security),
    /// The parties move no rows.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// The passes of a run, over its columns.
#[derive(Clone, Debug)]
pub struct PassProgram {
    passes: Vec<Pass>,
    made: Vec<MadeSpec>,
    columns: Vec<ColumnPlan>,
    /// The last pass that takes each column, or the one that leaves it.
    last: Vec<usize>,
    hash: PlanHash,
}

impl From<Arc<Plan>> for PassProgram {
    /// A program of one pass, which takes no columns: its hash is that of the plan.
    fn from(plan: Arc<Plan>) -> Self {
        let (inputs, outputs) = (plan.inputs.len(), plan.outputs.len());
        PassProgram {
            hash: plan.hash,
            passes: vec![Pass::Rows {
                takes: vec![None; inputs],
                leaves: vec![None; outputs],
                claim: None,
                compares: None,
                plan,
            }],
            made: vec![],
            columns: vec![],
            last: vec![],
        }
    }
}

impl Pass {
    /// What the participant `me` does in it.
    pub fn protocol(&self, me: Peer) -> Arc<dyn Protocol> {
        match self {
            Pass::Rows { plan, .. } => crate::protocol(Arc::clone(plan), me),
            Pass::Move { plan, .. } => Arc::new(Moves::new(plan, me)),
            Pass::Product { plan, .. } => Arc::new(Moves::product(plan, me)),
        }
    }

    /// The plan of a pass of rows.
    pub const fn rows(&self) -> Option<&Arc<Plan>> {
        match self {
            Pass::Rows { plan, .. } => Some(plan),
            Pass::Move { .. } | Pass::Product { .. } => None,
        }
    }

    /// What it claims, if the run ends where that is false.
    pub const fn claim(&self) -> Option<&Arc<str>> {
        match self {
            Pass::Rows { claim, .. } => claim.as_ref(),
            Pass::Move { .. } | Pass::Product { .. } => None,
        }
    }

    /// What it claims of an output port, in the port's own words: that it is 0.
    pub fn claimed(&self, port: usize) -> Option<&str> {
        let job = &self.rows()?.job;
        self.claim()?;
        (job.audiences[port] == Audience::Parties).then_some(job.opened[port].as_str())
    }

    /// The rows that it compares, if that is what it does.
    pub const fn compares(&self) -> Option<&Compares> {
        match self {
            Pass::Rows { compares, .. } => compares.as_ref(),
            Pass::Move { .. } | Pass::Product { .. } => None,
        }
    }

    /// Chunk `index` of it, as [`Plan::chunk`]: a move has one.
    pub fn chunk(&self, index: u32) -> Option<Chunk> {
        match self {
            Pass::Rows { plan, .. } => plan.chunk(index),
            Pass::Move { .. } | Pass::Product { .. } => (index == 0).then(|| self.whole())?,
        }
    }

    /// All rows, of a pass that has them in one chunk: a move, or a product of matrices.
    pub fn whole(&self) -> Option<Chunk> {
        match self {
            Pass::Rows { .. } => None,
            Pass::Move { plan, .. } => Some(plan.chunk()),
            Pass::Product { plan, .. } => Some(plan.chunk()),
        }
    }

    /// Rows of what this port of a pass with one chunk takes.
    pub fn taken_rows(&self, port: usize) -> Option<u32> {
        match self {
            Pass::Product { plan, .. } if port >= plan.left as usize => Some(plan.right_rows()),
            _ => self.whole().map(|chunk| chunk.frame.rows),
        }
    }

    /// What goes into the place of [`Spans::takes`](crate::Spans::takes) of this port.
    pub fn take(&self, port: usize) -> Option<Cow<'_, Take>> {
        match self {
            Pass::Rows { takes, .. } => takes.get(port)?.as_ref().map(Cow::Borrowed),
            Pass::Move {
                takes,
                factors,
                positions,
                ..
            } => match port.checked_sub(takes.len()) {
                None => Some(Cow::Borrowed(&takes[port])),
                Some(0) => factors.map(|factors| Cow::Owned(Take::Of(factors))),
                Some(_) => positions.map(|positions| Cow::Owned(Take::Of(positions))),
            },
            Pass::Product { takes, .. } => takes.get(port).map(Cow::Borrowed),
        }
    }

    /// The column that is left by [`Spans::leaves`](crate::Spans::leaves) of this port.
    pub fn leave(&self, port: usize) -> Option<ColumnId> {
        match self {
            Pass::Rows { leaves, .. } | Pass::Product { leaves, .. } => {
                leaves.get(port).copied().flatten()
            }
            Pass::Move {
                leaves,
                factors,
                positions,
                ..
            } => match port.checked_sub(leaves.len()) {
                None => leaves[port],
                Some(0) => *factors,
                Some(_) => *positions,
            },
        }
    }

    /// Everything that it takes.
    fn takes(&self) -> Vec<Cow<'_, Take>> {
        match self {
            Pass::Rows { takes, .. } => takes.iter().flatten().map(Cow::Borrowed).collect(),
            Pass::Move {
                plan,
                takes,
                factors,
                positions,
                ..
            } => {
                let known = factors.iter().chain(positions).copied();
                let known = known.filter(|_| !plan.kind.draws());
                let known = known.map(|column| Cow::Owned(Take::Of(column)));
                takes.iter().map(Cow::Borrowed).chain(known).collect()
            }
            Pass::Product { takes, .. } => takes.iter().map(Cow::Borrowed).collect(),
        }
    }

    /// Everything that it leaves, with what it is.
    fn leaves(&self) -> Vec<(ColumnId, ColumnPlan)> {
        let shared = |form, rows| ColumnPlan {
            form,
            rows,
            kind: ColumnKind::Shared,
        };
        match self {
            Pass::Rows {
                compares: Some(of), ..
            } => {
                let opened = ColumnPlan {
                    kind: ColumnKind::Opened,
                    ..shared(ColumnForm::Ring(Ring::Z32), of.rows)
                };
                let positions = of.positions.iter();
                positions.map(|column| (*column, opened)).collect()
            }
            Pass::Rows { plan, leaves, .. } => {
                let rows = plan.job.rows() as u32;
                let of = |port: usize| {
                    let output = plan.outputs.get(port)?;
                    let rows = match output.gives {
                        Gives::Row => rows,
                        Gives::Sum | Gives::Once => 1,
                    };
                    Some(shared(left_form(plan.ring, output)?, rows))
                };
                let left = leaves.iter().enumerate();
                left.filter_map(|(port, column)| Some(((*column)?, of(port)?)))
                    .collect()
            }
            Pass::Move {
                plan,
                leaves,
                factors,
                positions: opened,
                ..
            } => {
                let forms = leaves.iter().zip(&plan.columns);
                let left = forms.filter_map(|(column, form)| {
                    column.map(|column| (column, shared(*form, plan.rows)))
                });
                let positions = |kind| ColumnPlan {
                    kind,
                    ..shared(ColumnForm::Ring(Ring::Z32), plan.rows)
                };
                let factors = factors.filter(|_| plan.kind.draws());
                let kind = ColumnKind::Factors {
                    rotation: plan.rotation,
                };
                let factors = factors.map(|column| (column, positions(kind)));
                let opened = opened.filter(|_| plan.kind == MoveKind::Open);
                let opened = opened.map(|column| (column, positions(ColumnKind::Opened)));
                left.chain(factors).chain(opened).collect()
            }
            Pass::Product { plan, leaves, .. } => {
                let of = shared(ColumnForm::Ring(plan.ring), plan.product_rows());
                let left = leaves.iter().flatten();
                left.map(|column| (*column, of)).collect()
            }
        }
    }
}

impl PassProgram {
    /// Plans a program. Passes that have one job, and not only equal ones, have one plan.
    ///
    /// # Errors
    /// [`ProgramError`] if there are too many passes or none, if a pass takes what no pass before it has left, or of another form, or as something else
    /// than it is; if a column is left twice; if the passes are not of the same parties; if another pass than the first has values of its own, or another
    /// than the last sums something; if shares are kept, and not by the last pass, too; [`ProgramError::Plan`] if a job has no plan, or the parties move no rows.
    pub fn new(spec: &ProgramSpec, options: Options) -> Result<Self, ProgramError> {
        let passes = planned(spec, options)?;
        if passes.is_empty() || passes.len() > MOST_PASSES {
            return Err(ProgramError::Count {
                passes: passes.len(),
            });
        }
        let moves = passes.iter().find_map(|pass| match pass {
            Pass::Move { plan, .. } => Some(plan),
            Pass::Rows { .. } | Pass::Product { .. } => None,
        });
        if let Some(plan) = moves {
            plan.check()?;
        }
        let multiplies = passes.iter().find_map(|pass| match pass {
            Pass::Product { plan, .. } => Some(plan),
            Pass::Rows { .. } | Pass::Move { .. } => None,
        });
        if let Some(plan) = multiplies.filter(|plan| !plan.is_possible()) {
            return Err(ProgramError::Matrices(plan.security));
        }
        let left: usize = passes.iter().map(|pass| pass.leaves().len()).sum();
        let left = left + spec.made.len();
        let mut checking = Checking {
            columns: vec![None; left],
            last: vec![0; left],
            ordering: Ordering::default(),
        };
        let mut made = spec.made.iter().peekable();
        for (number, pass) in passes.iter().enumerate() {
            let wrong = |what| ProgramError::Pass { pass: number, what };
            while let Some(made) = made.next_if(|made| number > 0 && made.before as usize == number)
            {
                checking.made(number, made).map_err(wrong)?;
            }
            checking
                .pass(number, pass, passes.len() == 1)
                .map_err(wrong)?;
            together(&passes, number).map_err(wrong)?;
        }
        if checking.ordering.under_way() {
            return Err(ProgramError::Pass {
                pass: passes.len() - 1,
                what: "comparisons end with positions",
            });
        }
        if made.next().is_some() {
            return Err(ProgramError::Pass {
                pass: 0,
                what: "what is made between passes is in the order of passes",
            });
        }
        let known: Option<Vec<ColumnPlan>> = checking.columns.into_iter().collect();
        let columns = known.ok_or(ProgramError::Pass {
            pass: 0,
            what: "columns have numbers from 0 on, without gaps",
        })?;
        let hash = hash(spec, &passes);
        Ok(PassProgram {
            passes,
            made: spec.made.clone(),
            columns,
            last: checking.last,
            hash,
        })
    }

    /// The passes, in order.
    pub fn passes(&self) -> &[Pass] {
        &self.passes
    }

    /// Rows of all passes together.
    pub fn rows(&self) -> u64 {
        let of = |pass: &Pass| match pass {
            Pass::Rows { plan, .. } => plan.job.rows(),
            Pass::Move { plan, .. } => plan.rows.into(),
            Pass::Product { plan, .. } => plan.rows.into(),
        };
        self.passes.iter().map(of).sum()
    }

    /// The columns, by number.
    pub fn columns(&self) -> &[ColumnPlan] {
        &self.columns
    }

    /// What parties make by themselves before pass number `pass` begins, in order.
    pub fn made_before(&self, pass: usize) -> impl Iterator<Item = &MadeSpec> {
        self.made
            .iter()
            .filter(move |made| made.before as usize == pass)
    }

    /// The columns that no pass after number `pass` takes, and that are there until then; nothing is made of them before the next one either.
    pub fn ending(&self, pass: usize) -> impl Iterator<Item = ColumnId> + '_ {
        let last = self.last.iter().enumerate();
        last.filter(move |(_, last)| **last == pass)
            .map(|(column, _)| ColumnId(column as u32))
    }

    /// The columns that pass number `pass` takes, each once.
    pub fn taken_by(&self, pass: usize) -> BTreeSet<ColumnId> {
        let pass = &self.passes[pass];
        let compared = pass.compares().map(|of| &of.of[..]).unwrap_or_default();
        let takes = pass.takes();
        let taken = takes.iter().flat_map(|take| take.columns());
        taken.chain(compared.iter().copied()).collect()
    }

    /// The columns that pass number `pass` leaves.
    pub fn left_by(&self, pass: usize) -> Vec<ColumnId> {
        let left = self.passes[pass].leaves();
        left.into_iter().map(|(column, _)| column).collect()
    }

    /// The plan of the first pass, which is of rows: the participants are those of its job.
    pub fn first(&self) -> &Arc<Plan> {
        self.passes[0].rows().expect("checked by PassProgram::new")
    }

    /// What all participants agree on.
    pub const fn hash(&self) -> PlanHash {
        self.hash
    }
}

/// Axes of an array, at most.
const MOST_AXES: usize = 8;

struct Checking {
    columns: Vec<Option<ColumnPlan>>,
    last: Vec<usize>,
    ordering: Ordering,
}

impl Checking {
    fn made(&mut self, number: usize, made: &MadeSpec) -> Rule {
        let made_of = !matches!(
            made.take,
            Take::Within { .. }
                | Take::Public { .. }
                | Take::Sums { .. }
                | Take::Numbered { .. }
                | Take::Compared { .. }
        );
        if made.rows == 0 || !made_of {
            return Err("what is made between passes is rows of columns, or bits of them");
        }
        self.ordering.leaves_alone(&made.take.columns())?;
        self.take(&made.take, made.form, made.rows)?;
        let plan = ColumnPlan {
            form: made.form,
            rows: made.rows,
            kind: ColumnKind::Shared,
        };
        self.note(number - 1, &made.take.columns(), [(made.column, plan)])
    }

    /// Notes which columns are read last, and which are new.
    fn note(
        &mut self,
        number: usize,
        read: &[ColumnId],
        left: impl IntoIterator<Item = (ColumnId, ColumnPlan)>,
    ) -> Rule {
        for column in read {
            self.last[column.0 as usize] = number;
        }
        for (column, plan) in left {
            let at = column.0 as usize;
            // As many as are left: so none has a number that no other pass gives it room for.
            let Some(known) = self.columns.get_mut(at) else {
                return Err("columns have numbers from 0 on, without gaps");
            };
            if known.replace(plan).is_some() {
                return Err("a column is left once");
            }
            self.last[at] = number;
        }
        Ok(())
    }

    fn pass(&mut self, number: usize, pass: &Pass, alone: bool) -> Rule {
        match pass {
            Pass::Rows {
                plan,
                takes,
                compares: Some(of),
                ..
            } => {
                let columns = &self.columns;
                self.ordering.compare(plan, takes, of, columns)?;
            }
            Pass::Rows {
                plan,
                takes,
                leaves,
                claim,
                compares: None,
            } => {
                self.ordering.ends()?;
                self.rows(plan, takes, leaves)?;
                let to_parties = |a: &Audience| *a == Audience::Parties;
                let opened = |a: &&Audience| **a != Audience::Column;
                let mut audiences = plan.job.audiences.iter().filter(opened);
                let claims = if alone {
                    audiences.any(to_parties)
                } else {
                    audiences.clone().next().is_some() && audiences.all(to_parties)
                };
                if claim.is_some() && !claims {
                    return Err("what is claimed is opened to the parties, and nothing else is");
                }
            }
            Pass::Move {
                plan,
                takes,
                leaves,
                factors,
                positions,
            } => {
                self.ordering.ends()?;
                self.moves(plan, takes, *factors, *positions)?;
                self.ordering.moved(plan, takes, leaves, *factors);
                let opens = plan.kind == MoveKind::Open;
                let left = match plan.kind {
                    MoveKind::Rank => 1,
                    _ => plan.columns.len(),
                };
                if leaves.len() != left || opens && leaves[0].is_some() {
                    return Err("a move leaves what it takes, but for what it opens");
                }
            }
            Pass::Product {
                plan,
                takes,
                leaves,
            } => {
                self.ordering.ends()?;
                product::check_shape(plan)?;
                let form = ColumnForm::Ring(plan.ring);
                for (port, take) in takes.iter().enumerate() {
                    let rows = pass.taken_rows(port).expect("a pass with one chunk");
                    self.take(take, form, rows)?;
                }
                if leaves.len() != plan.right as usize {
                    return Err("a product has as many columns as its right matrix");
                }
            }
        }
        let read: Vec<ColumnId> = pass
            .takes()
            .iter()
            .flat_map(|take| take.columns())
            .collect();
        self.note(number, &read, pass.leaves())
    }

    fn known(&self, column: ColumnId) -> Result<ColumnPlan, &'static str> {
        let known = self.columns.get(column.0 as usize).copied().flatten();
        known.ok_or("a column is taken after the pass that leaves it")
    }

    /// The form of shared columns, of which there is at least one.
    fn form(&self, columns: &[ColumnId]) -> Result<ColumnForm, &'static str> {
        let mut forms = columns.iter().map(|column| {
            let known = self.known(*column)?;
            match known.kind {
                ColumnKind::Shared => Ok(known.form),
                _ => Err("what is computed on are shared columns"),
            }
        });
        let first = forms.next().ok_or("elements are taken of a column")??;
        for form in forms {
            if form? != first {
                return Err("columns that are taken together have one form");
            }
        }
        Ok(first)
    }

    /// The form of elements that are taken as they are, in so many rows.
    fn elements(&self, take: &Take, rows: u32) -> Result<ColumnForm, &'static str> {
        let form = self.form(&take.columns())?;
        match take {
            Take::Of(of) if self.known(*of)?.rows != rows => {
                Err("a column that is taken as it is has the pass's rows")
            }
            Take::Turns { even, odd } => {
                let have = (self.known(*even)?.rows, self.known(*odd)?.rows);
                let enough = have.0 >= rows.div_ceil(2) && have.1 >= rows / 2;
                enough
                    .then_some(form)
                    .ok_or("columns that are taken by turns have the pass's rows together")
            }
            Take::View { of, axes } => {
                self.view(of, axes, rows)?;
                Ok(form)
            }
            Take::Of(_) | Take::Rows { .. } => Ok(form),
            Take::Bits { .. }
            | Take::Numbered { .. }
            | Take::Compared { .. }
            | Take::Within { .. }
            | Take::Public { .. }
            | Take::Sums { .. } => Err("bits are taken of words"),
        }
    }

    /// That columns make up an array with these axes, of which so many rows are taken.
    fn view(&self, of: &[ColumnId], axes: &[Axis], rows: u32) -> Rule {
        let each = self.known(of[0])?.rows;
        for column in of {
            if self.known(*column)?.rows != each {
                return Err("the columns of an array have as many rows");
            }
        }
        if axes.is_empty() || axes.len() > MOST_AXES {
            return Err("an array has one to eight axes");
        }
        if axes.iter().any(|axis| axis.length == 0 || axis.count == 0) {
            return Err("an axis has places, and some are taken");
        }
        let product = |of: &dyn Fn(&Axis) -> u32| {
            let mut all = axes.iter().map(|axis| u64::from(of(axis)));
            all.try_fold(1_u64, u64::checked_mul)
        };
        if product(&|axis| axis.length) != Some(of.len() as u64 * u64::from(each)) {
            return Err("an array has an element for each row of its columns");
        }
        if !each.is_multiple_of(axes[axes.len() - 1].length) {
            return Err("a column has whole rows of the last axis of its array");
        }
        if product(&|axis| axis.count).is_none_or(|taken| taken < u64::from(rows)) {
            return Err("what is taken of an array has the pass's rows");
        }
        Ok(())
    }

    /// That what is taken has this form, and these rows.
    fn take(&self, take: &Take, form: ColumnForm, rows: u32) -> Rule {
        match take {
            Take::Of(_) | Take::Rows { .. } | Take::Turns { .. } | Take::View { .. } => {
                if self.elements(take, rows)? != form {
                    return Err("a column is taken in its own form");
                }
            }
            Take::Within { first, end } => {
                if form != ColumnForm::Words(1) {
                    return Err("public rows are a bit in each row");
                }
                if first > end || *end > rows {
                    return Err("public rows are rows of the pass");
                }
            }
            Take::Bits { of, first, count } => {
                let ColumnForm::Words(bytes) = self.elements(of, rows)? else {
                    return Err("bits are taken of words");
                };
                let within = first.checked_add(*count);
                let within = within.is_some_and(|end| end <= 8 * u32::from(bytes));
                if !within || ColumnForm::of_bits(*count) != Some(form) {
                    return Err("bits are those that the words have");
                }
            }
            Take::Numbered { of, bits } => {
                let words = match of.as_deref() {
                    None => 0,
                    Some(Take::Bits { of, first, count }) => {
                        let part = ColumnForm::of_bits(*count).ok_or("bits are of words")?;
                        let bits = (**of).clone().bits(*first, *count);
                        self.take(&bits, part, rows)?;
                        *count
                    }
                    Some(of) => match self.elements(of, rows)? {
                        ColumnForm::Words(bytes) => 8 * u32::from(bytes),
                        ColumnForm::Ring(_) => return Err("numbers are below words"),
                    },
                };
                let numbered = *bits <= 32 && u64::from(rows) <= 1 << bits;
                if !numbered || ColumnForm::of_bits(words + bits) != Some(form) {
                    return Err("every row has a number of its own, below its word");
                }
            }
            Take::Compared { .. } => return Err("rows are compared by passes that compare"),
            Take::Public { integers, ring } => {
                if *ring == Ring::Bits || ColumnForm::Ring(*ring) != form {
                    return Err("public integers are of a ring");
                }
                if integers.len() != rows as usize {
                    return Err("there is a public integer for each row of the pass");
                }
            }
            Take::Sums {
                of, totals, ring, ..
            } => {
                let of_sums = take.columns();
                if !of_sums.is_empty() && self.form(&of_sums)? != ColumnForm::Ring(*ring) {
                    return Err("sums are of one ring");
                }
                let rows_of = |column: &ColumnId| self.known(*column).map(|known| known.rows);
                for column in of.iter().chain(totals.iter().map(|(_, column)| column)) {
                    if rows_of(column)? != rows {
                        return Err("sums are of columns of the pass's rows");
                    }
                }
                // Public numbers of rows are shared in any way: bits of them are those of each integer.
                let as_bits = match form {
                    ColumnForm::Words(bytes) => {
                        take.columns().is_empty() && u64::from(bytes) <= ring.bytes(1)
                    }
                    ColumnForm::Ring(_) => false,
                };
                if *ring == Ring::Bits || ColumnForm::Ring(*ring) != form && !as_bits {
                    return Err("sums are of integers");
                }
            }
        }
        Ok(())
    }

    fn rows(&self, plan: &Plan, takes: &[Option<Take>], leaves: &[Option<ColumnId>]) -> Rule {
        let rows = u32::try_from(plan.job.rows());
        if (takes.len(), leaves.len()) != (plan.inputs.len(), plan.outputs.len()) {
            return Err("every port takes or leaves something, or nothing");
        }
        let columns = |holders: &[Holder]| holders.contains(&Holder::Column);
        let uses = plan.job.blocks.iter().any(|block| columns(&block.holders))
            || plan.job.audiences.contains(&Audience::Column);
        if !uses {
            let none = takes.iter().all(Option::is_none) && leaves.iter().all(Option::is_none);
            return none
                .then_some(())
                .ok_or("ports of no columns take and leave none");
        }
        let (Ok(rows), [block]) = (rows, &plan.job.blocks[..]) else {
            return Err("columns have one block of fewer than 2^32 rows");
        };
        if plan.has_macs() || plan.cycles.is_some() {
            return Err("columns are of circuits without cycles, whose integers have no MACs");
        }
        for (port, take) in takes.iter().enumerate() {
            if take.is_some() != (block.holders[port] == Holder::Column) {
                return Err("a port takes a column exactly if that is its holder");
            }
            let Some(take) = take else { continue };
            if matches!(take, Take::Numbered { .. }) {
                return Err("rows are numbered as they move");
            }
            let PortOf { bits, width } = PortOf::of(plan, port);
            let form = if bits {
                ColumnForm::of_bits(width)
            } else {
                (width == 1).then_some(ColumnForm::Ring(plan.ring))
            };
            let form = form.ok_or("a port of a column is one integer, or up to 128 bits")?;
            self.take(take, form, rows)?;
            let count = match take {
                Take::Bits { count, .. } => *count,
                Take::Within { .. } => 1,
                _ => width,
            };
            if count != width {
                return Err("a port of bits takes as many as it has wires");
            }
        }
        for (port, column) in leaves.iter().enumerate() {
            let audience = plan.job.audiences[port];
            if column.is_some() && audience != Audience::Column {
                return Err("a port leaves a column only if that is its audience");
            }
            let output = plan.outputs[port];
            let fits = output.gives != Gives::Once && left_form(plan.ring, &output).is_some();
            if audience == Audience::Column && !fits {
                return Err(
                    "a column is one integer in every row, or their sum, or up to 128 bits",
                );
            }
        }
        Ok(())
    }

    fn moves(
        &self,
        plan: &MovePlan,
        takes: &[Take],
        factors: Option<ColumnId>,
        positions: Option<ColumnId>,
    ) -> Rule {
        if takes.len() != plan.columns.len() || takes.is_empty() || plan.rows == 0 {
            return Err("a move takes what it moves, which is something");
        }
        plan.provable()?;
        let made = |take: &Take| matches!(take, Take::Sums { .. } | Take::Public { .. });
        if takes.iter().any(made) {
            return Err("a move takes columns, bits of them, and public rows");
        }
        for (take, form) in takes.iter().zip(&plan.columns) {
            self.take(take, *form, plan.rows)?;
        }
        if plan.kind == MoveKind::Open && plan.columns[0] != ColumnForm::Ring(Ring::Z32) {
            return Err("positions are integers modulo 2^32");
        }
        if plan.kind == MoveKind::Rank {
            let integers = plan.columns.iter();
            let integers = integers
                .filter(|form| **form == ColumnForm::Ring(Ring::Z32))
                .count();
            return if (integers, factors, positions) == (takes.len(), None, None) {
                Ok(())
            } else {
                Err("positions are found of indicators modulo 2^32, and of nothing else")
            };
        }
        let knows = match plan.kind {
            MoveKind::There | MoveKind::Rank => positions.is_none(),
            MoveKind::Open => positions.is_some(),
            MoveKind::Along | MoveKind::Back => true,
        };
        if !knows {
            return Err("an opening leaves positions, and a move that opens nothing leaves none");
        }
        if !plan.kind.draws() {
            let factors = factors.ok_or("a move along or back takes factors")?;
            let kind = ColumnKind::Factors {
                rotation: plan.rotation,
            };
            let factors = self.known(factors)?;
            if let Some(positions) = positions {
                let positions = self.known(positions)?;
                if positions.kind != ColumnKind::Opened || positions.rows != plan.rows {
                    return Err("an order is of opened positions of the pass's rows");
                }
            }
            if factors.kind != kind || factors.rows != plan.rows {
                return Err(
                    "rows go along or back by factors that others have moved by, in the same roles",
                );
            }
        }
        Ok(())
    }
}

/// The form of the column that an output leaves: of one integer, or of up to 128 bits.
fn left_form(ring: Ring, output: &OutputPlan) -> Option<ColumnForm> {
    match ring {
        Ring::Z32 | Ring::Z64 | Ring::Z128 if !output.bits => {
            (output.width == 1).then_some(ColumnForm::Ring(ring))
        }
        _ => ColumnForm::of_bits(output.width),
    }
}

/// The wires of a port.
struct PortOf {
    bits: bool,
    width: u32,
}

impl PortOf {
    fn of(plan: &Plan, port: usize) -> Self {
        let of = &plan.inputs[port];
        PortOf {
            bits: of.bits || plan.ring == Ring::Bits,
            width: of.width,
        }
    }
}

/// The passes of a program, each with its plan.
fn planned(spec: &ProgramSpec, options: Options) -> Result<Vec<Pass>, ProgramError> {
    let mut passes: Vec<Pass> = Vec::new();
    let security = spec.passes.iter().find_map(|pass| match pass {
        PassSpec::Rows { job, .. } => Some(job.security),
        PassSpec::Move { .. } | PassSpec::Compare { .. } | PassSpec::Product { .. } => None,
    });
    for pass in &spec.passes {
        let plan = |job: &Arc<JobSpec>| {
            let mut known = passes.iter().filter_map(Pass::rows);
            match known.find(|plan| Arc::ptr_eq(&plan.job, job)) {
                Some(plan) => Ok(Arc::clone(plan)),
                None => Plan::new(Arc::clone(job), options).map(Arc::new),
            }
        };
        passes.push(match pass {
            PassSpec::Rows {
                job,
                takes,
                leaves,
                claim,
            } => Pass::Rows {
                plan: plan(job)?,
                takes: takes.clone(),
                leaves: leaves.clone(),
                claim: claim.as_deref().map(Arc::from),
                compares: None,
            },
            PassSpec::Compare {
                job,
                rows,
                of,
                factors,
                positions,
            } => {
                let of_rows = |second| {
                    let words = of.iter();
                    words.map(move |of| Some(Take::Compared { of: *of, second }))
                };
                Pass::Rows {
                    plan: plan(job)?,
                    takes: of_rows(false).chain(of_rows(true)).collect(),
                    leaves: vec![None],
                    claim: None,
                    compares: Some(Compares {
                        rows: *rows,
                        of: of.clone(),
                        factors: *factors,
                        positions: *positions,
                    }),
                }
            }
            PassSpec::Product {
                rows,
                ring,
                transposed,
                rotation,
                left,
                right,
                leaves,
            } => {
                let security = security.ok_or(ProgramError::Pass {
                    pass: passes.len(),
                    what: "a program has a pass of rows",
                })?;
                let takes = left.iter().chain(right).cloned();
                let mut of_right = right.iter();
                let public = of_right.all(|take| matches!(take, Take::Public { .. }));
                Pass::Product {
                    plan: Arc::new(ProductPlan {
                        security,
                        rows: *rows,
                        ring: *ring,
                        left: left.len() as u32,
                        right: right.len() as u32,
                        transposed: *transposed,
                        rotation: *rotation,
                        public,
                    }),
                    takes: takes.collect(),
                    leaves: leaves.clone(),
                }
            }
            PassSpec::Move {
                rows,
                rotation,
                kind,
                takes,
                leaves,
                factors,
                positions,
            } => {
                let security = security.ok_or(ProgramError::Pass {
                    pass: passes.len(),
                    what: "a program has a pass of rows",
                })?;
                Pass::Move {
                    plan: Arc::new(MovePlan {
                        security,
                        rows: *rows,
                        rotation: *rotation,
                        kind: *kind,
                        columns: takes.iter().map(|(_, form)| *form).collect(),
                        orders: positions.is_some(),
                    }),
                    takes: takes.iter().map(|(take, _)| take.clone()).collect(),
                    leaves: leaves.clone(),
                    factors: *factors,
                    positions: *positions,
                }
            }
        });
    }
    Ok(passes)
}

/// What a pass must have in common with the others.
fn together(passes: &[Pass], number: usize) -> Rule {
    let ends = [0, passes.len() - 1].contains(&number);
    let Some(first) = passes[0].rows() else {
        return Err("the first pass is of rows");
    };
    match &passes[number] {
        Pass::Move { .. } | Pass::Product { .. } if ends => {
            Err("the first pass and the last are of rows")
        }
        Pass::Move { plan, .. } if plan.security != first.job.security => {
            Err("all passes are of one protocol")
        }
        Pass::Move { .. } | Pass::Product { .. } => Ok(()),
        Pass::Rows { plan, .. } => {
            let (job, of) = (&plan.job, &first.job);
            let same = (&job.parties, &job.owners, &job.recipients, job.security)
                == (&of.parties, &of.owners, &of.recipients, of.security);
            if !same || plan.lanes != first.lanes {
                return Err("all passes are of the same participants, protocol and lanes");
            }
            if number > 0 && (plan.job_wide > 0 || !plan.orders.is_empty()) {
                return Err("job-wide values, and orders of rows, are those of the first pass");
            }
            if number + 1 == passes.len() {
                return Ok(());
            }
            if plan.sums > 0 && !plan.leaves_sums() {
                return Err("sums that are no columns are those of the last pass");
            }
            // The agreement of the last pass, without which nothing that is kept is complete, is for all passes.
            let agreed = || {
                passes
                    .last()
                    .and_then(Pass::rows)
                    .is_some_and(|last| last.keeps())
            };
            if plan.keeps() && !agreed() {
                return Err("a program that keeps shares ends with a pass that keeps some");
            }
            Ok(())
        }
    }
}

/// What all participants agree on: what is computed, and how it is planned.
fn hash(spec: &ProgramSpec, passes: &[Pass]) -> PlanHash {
    let ProgramSpec {
        passes: specs,
        made,
    } = spec;
    let mut hash = Sha256::new();
    VERSION.encode(&mut hash);
    specs.len().encode(&mut hash);
    for (spec, pass) in specs.iter().zip(passes) {
        match (spec, pass.rows()) {
            (
                PassSpec::Rows {
                    job: _,
                    takes,
                    leaves,
                    claim,
                },
                Some(plan),
            ) => {
                // The hash of a plan has its job, whose passes may be many: each is hashed once.
                0u8.encode(&mut hash);
                hash.update(plan.hash.0);
                takes.encode(&mut hash);
                leaves.encode(&mut hash);
                claim.encode(&mut hash);
            }
            // As no other begins: with the name of its type.
            (spec, _) => spec.encode(&mut hash),
        }
    }
    made.encode(&mut hash);
    PlanHash(hash.finalize().into())
}
