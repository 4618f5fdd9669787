//! From a job to the passes that parties run for it.

use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use veil_circuit::{Circuit, Clock};
use veil_job::passes::PassSpec;
use veil_job::{
    Audience, Block, DatasetRef, InputSpec, JobSpec, Keep, Order, ProtocolKind, Security,
};
use veil_operators::Participants;
use veil_physical::{Node, Opening, PhysicalError, PhysicalPlan, Refusal};
use veil_query::{Job, Query, QueryError, SortedBytes};
use veil_relation::Table;
use veil_session::PartyId;

use super::{Collisions, NamedQuery, OwnerTable, Queries, parse};
use crate::error::{Fault, JobProblem};
use crate::load::JobFiles;
use crate::raw::RawJob;
use crate::roles::Roles;
use crate::stats::{self, TableAnalysis};
use crate::table::Count;

/// Numbers that a job over tables may open: its recipients have them in memory.
const MOST_OPENED: u64 = 1 << 24;

impl Queries {
    /// Reads tables and queries, and plans them.
    pub(crate) fn parse(
        raw: &RawJob,
        roles: &Roles,
        job_files: JobFiles<'_>,
    ) -> Result<Self, Fault> {
        let tables = raw
            .table
            .iter()
            .map(|table| parse::table(table, roles, None));
        let tables: Vec<OwnerTable> = tables.collect::<Result<_, _>>()?;
        let queries = raw.query.0.iter();
        let queries = queries.map(|query| parse::query(query, &raw.model, roles));
        let mut queries: Vec<NamedQuery> = queries.collect::<Result<_, _>>()?;
        let statistics = !raw.analysis.is_empty();
        if let Some(opened) = raw
            .query
            .0
            .iter()
            .find(|query| query.to.is_some() && statistics)
        {
            let what = format!("query `{}` of a job with analyses", opened.name.get_ref());
            let problem = JobProblem::NoUse { what, field: "to" };
            return Err(Fault::new(opened.name.span(), problem));
        }
        let gives = |query: &NamedQuery| query.to.is_some() || query.keep.is_some();
        if !statistics && !queries.iter().any(gives) {
            let problem = JobProblem::NothingOpened;
            return Err(Fault::new(raw.query.0[0].name.span(), problem));
        }
        let mut files: Vec<(&Option<String>, &std::path::Path)> = Vec::new();
        for (query, at) in queries.iter().zip(&raw.query.0) {
            for file in &query.files {
                if files.contains(&(&query.to, file)) {
                    let problem = JobProblem::Duplicate {
                        what: "result",
                        name: file.display().to_string(),
                    };
                    return Err(Fault::new(at.name.span(), problem));
                }
                files.push((&query.to, file));
            }
        }
        let bounds = raw.bound.iter().map(|bound| parse::bound(bound.get_ref()));
        let mut job = Job {
            tables: tables.iter().map(|table| table.table.clone()).collect(),
            queries: queries.iter().map(compiled).collect(),
            bounds: bounds.collect::<Result<_, _>>()?,
            models: super::trained::models(raw, job_files)?,
            functions: super::functions::functions(raw)?,
        };
        let analyses = stats::of_tables(raw, roles, &job)?;
        queries.extend(analyses.iter().map(TableAnalysis::query));
        job.queries = queries.iter().map(compiled).collect();
        let program = veil_query::compile(&job, &SortedBytes);
        let program = program.map_err(|error| fault(raw, error, &analyses))?;
        let families = veil_query::families(&job, &SortedBytes);
        let families = families.map_err(|error| fault(raw, error, &analyses))?;
        let hash = |text: &String| {
            let hash = Sha256::new().chain_update("veilworks family 1\n");
            hash.chain_update(text).finalize().into()
        };
        let families = families.iter().map(hash).collect();
        let collisions = Collisions::of(&program);
        if let Some(likely) = collisions.iter().find(|one| one.is_likely()) {
            let problem = JobProblem::Collisions(*likely);
            return Err(Fault::new(raw.name.span(), problem));
        }
        let salt = parse::salt(raw)?;
        let most_opened = statistics.then(|| stats::most_opened(raw, MOST_OPENED));
        let most_opened = most_opened.transpose()?;
        let mut queries = Self {
            physical: Arc::new(nothing()),
            tables,
            functions: job.functions,
            asked: queries,
            analyses,
            most_opened,
            salt,
            program,
            families,
            collisions,
        };
        let security = Security::among(roles.parties.len());
        queries
            .plan(raw.name.get_ref(), roles, security)
            .map_err(|problem| match problem {
                JobProblem::Query(error) => fault(raw, *error, &queries.analyses),
                problem => Fault::new(raw.name.span(), problem),
            })?;
        if let Some(limit) = most_opened.filter(|limit| queries.numbers() > *limit) {
            let found = queries.numbers();
            let at = raw.most_opened.as_ref();
            let at = at.map_or(raw.name.span(), toml::Spanned::span);
            return Err(Fault::new(at, JobProblem::TooManyOpened { found, limit }));
        }
        Ok(queries)
    }

    /// Plans the program for this protocol.
    pub(crate) fn plan(
        &mut self,
        name: &str,
        roles: &Roles,
        security: Security,
    ) -> Result<(), JobProblem> {
        // The circuit of two parties is the same against whomever it is garbled.
        if self.physical.wires.is_some() && security.protocol == ProtocolKind::Yao {
            let passes = &mut Arc::make_mut(&mut self.physical).passes.passes;
            if let Some(PassSpec::Rows { job, .. }) = passes.first_mut() {
                Arc::make_mut(job).security = security;
                return Ok(());
            }
        }
        let participants = Participants {
            name: name.to_owned(),
            owners: roles.outside_owners(),
            parties: roles.parties.clone(),
            recipients: roles.outside_recipients(),
            security,
        };
        let planned = veil_physical::plan(&self.program, &participants);
        let mut planned = planned.map_err(|error| self.unplanned(&error))?;
        let text = self.canonical();
        // What all participants agree on is the hash of the passes: what they mean is under it with the first.
        match planned.passes.passes.first_mut() {
            Some(PassSpec::Rows { job, .. }) => Arc::make_mut(job).schema = text,
            _ => return Err(JobProblem::Unplanned("it has no passes".into())),
        }
        self.describe(&mut planned)?;
        self.physical = Arc::new(planned);
        Ok(())
    }

    /// Why there is no plan: at a place of a query's text, if it is one of what a query says.
    fn unplanned(&self, error: &PhysicalError) -> JobProblem {
        let refused = error.refusal().and_then(|refusal| {
            let asked = self.asked.get(refusal.place.query as usize)?;
            let Refusal {
                place,
                what,
                instead,
                range,
            } = refusal;
            let query = compiled(asked);
            Some(match range {
                Some(range) => veil_query::range_at(&query, place, range),
                None => veil_query::refused_at(&query, place, what, instead),
            })
        });
        match refused {
            Some(refused) => JobProblem::Query(Box::new(refused.into())),
            None => match error.range() {
                Some(range) => JobProblem::Unplanned(format!("{error}; {}", range.instead())),
                None => JobProblem::Unplanned(error.to_string()),
            },
        }
    }

    /// Says in each pass what the dataset is that it loads or keeps.
    fn describe(&self, planned: &mut PhysicalPlan) -> Result<(), JobProblem> {
        let passes = &mut planned.passes.passes;
        for kept in &planned.keeps {
            super::declare::is_declared(&kept.table, &self.salt).map_err(|why| {
                JobProblem::Unplanned(format!(
                    "`{}` cannot be kept, since no job could declare it as a table: {why}",
                    kept.step
                ))
            })?;
            if let Some(PassSpec::Rows { job, .. }) = passes.get_mut(kept.pass)
                && let Some(keep) = &mut Arc::make_mut(job).keep
            {
                keep.schema = self.declared(&kept.table);
            }
        }
        for ports in &planned.tables {
            let table = &self.tables[ports.table].table;
            if let Some(PassSpec::Rows { job, .. }) = passes.get_mut(ports.pass)
                && table.origin.dataset().is_some()
            {
                for dataset in &mut Arc::make_mut(job).datasets {
                    dataset.schema = self.declared(table);
                }
            }
        }
        Ok(())
    }

    /// How a job declares a table that is kept.
    pub(super) fn declared(&self, table: &Table) -> String {
        super::declare::declared(table, &self.salt)
    }

    /// The same queries among so many parties, with the job that participants would know: what it would cost. Among three parties all follow the protocol, one of four may be malicious. Nothing
    /// where there are as many parties or more, or more parties than four.
    pub fn among_more(
        &self,
        parties: usize,
        job: &JobSpec,
        roles: &Roles,
    ) -> Option<(Self, JobSpec)> {
        let known = roles.parties.len();
        if !(known + 1..=PartyId::FOUR.len()).contains(&parties) {
            return None;
        }
        let mut roles = roles.clone();
        for number in ["third", "fourth"].iter().take(parties - 2).skip(known - 2) {
            roles.parties.push(format!("a {number} party"));
        }
        let mut queries = self.clone();
        let security = Security::among(roles.parties.len());
        queries.plan(&job.name, &roles, security).ok()?;
        let described = queries.described(&roles)?;
        Some((queries, described))
    }

    /// The job of the first pass: its participants are those of all.
    pub(crate) fn first(&self) -> Option<&Arc<JobSpec>> {
        match self.physical.passes.passes.first()? {
            PassSpec::Rows { job, .. } => Some(job),
            PassSpec::Move { .. } | PassSpec::Compare { .. } | PassSpec::Product { .. } => None,
        }
    }

    /// The job of the first pass without what it computes of what: a circuit of two parties, which is large, is not copied.
    fn of_participants(&self) -> Option<JobSpec> {
        let first = self.first()?;
        let circuit = match &self.physical.wires {
            None => first.circuit.clone(),
            Some(_) => Circuit {
                ring: first.circuit.ring,
                inputs: Vec::new(),
                gates: Vec::new(),
                outputs: Vec::new(),
                clock: Clock::default(),
            },
        };
        Some(JobSpec {
            name: first.name.clone(),
            owners: first.owners.clone(),
            parties: first.parties.clone(),
            recipients: first.recipients.clone(),
            security: first.security,
            schema: first.schema.clone(),
            circuit,
            totals: None,
            blocks: Vec::new(),
            audiences: Vec::new(),
            opened: Vec::new(),
            inputs: Vec::new(),
            datasets: Vec::new(),
            keep: None,
        })
    }

    /// What participants know of the job: who supplies which columns of how many rows, and what is opened to whom. Nothing is computed by it.
    pub(crate) fn described(&self, roles: &Roles) -> Option<JobSpec> {
        let mut job = self.of_participants()?;
        for (at, table) in self
            .tables
            .iter()
            .enumerate()
            .filter(|(at, _)| self.is_taken(*at))
        {
            job.blocks.push(Block {
                name: table.table.name.clone(),
                rows: table.table.capacity.into(),
                holders: vec![table.holder],
                stored: table.table.origin.dataset().map(str::to_owned),
                order: Order::Unsaid,
            });
            if let Some(dataset) = table.table.origin.dataset() {
                job.datasets.push(DatasetRef {
                    name: dataset.to_owned(),
                    block: job.blocks.len() as u32 - 1,
                    ports: Vec::new(),
                    schema: self.declared(&table.table),
                    rows: table.table.rows_kept().into(),
                });
            }
            job.inputs
                .extend(self.columns_read(at).into_iter().map(|column| {
                    let column = &table.table.columns[column];
                    InputSpec {
                        holder: table.holder,
                        block: Some(table.table.name.clone()),
                        column: Some(column.name.clone()),
                        port: None,
                        format: match table.table.origin.dataset() {
                            None => format!("{}{}", column.ty.kind, table.notation.makes()),
                            Some(dataset) => {
                                format!("{}, kept as shares in `{dataset}`", column.ty.kind)
                            }
                        },
                    }
                }));
        }
        for opening in &self.physical.opens {
            if let Opening::Rows { to, .. } | Opening::Incomplete { to, .. } = opening {
                job.audiences.push(roles.audience(to)?);
                job.opened.push(self.sentence(opening));
            }
        }
        for kept in &self.physical.keeps {
            job.audiences.push(Audience::Stored);
            job.opened.push(format!("`{}`", self.title(&kept.step)));
            job.keep.get_or_insert_with(|| Keep {
                name: kept.dataset.clone(),
                schema: self.declared(&kept.table),
            });
        }
        Some(job)
    }

    /// What each pass is part of, in words.
    pub fn names_of_passes(&self) -> Vec<String> {
        if self.physical.wires.is_some() {
            return vec!["all queries, as one circuit of bits".into()];
        }
        let mut names = vec![String::new(); self.physical.passes.passes.len()];
        self.physical
            .tree
            .iter()
            .for_each(|node| name(node, &mut names));
        names
    }

    /// What the job means, as all participants must read it: how files are read, the program, and the queries' own text.
    fn canonical(&self) -> String {
        let mut text = format!("veilworks queries 1\nsalt {:?}\n", self.salt);
        for table in &self.tables {
            if let Count::Between(least, most) = table.rows {
                let _ = writeln!(text, "rows {:?} {least} {most}", table.table.name);
            }
            let makes = table.notation.makes();
            if !makes.is_empty() {
                let _ = writeln!(text, "written {:?}{makes}", table.table.name);
            }
            for (column, written) in table.table.columns.iter().zip(&table.columns) {
                let of = written.of.iter().map(|name| format!(" {name:?}"));
                let of: String = of.collect();
                let _ = writeln!(text, "reads {:?} {:?}{of}", table.table.name, column.name);
            }
        }
        let _ = writeln!(text, "{}", self.program);
        for function in &self.functions {
            let _ = writeln!(text, "{}", super::functions::canonical(function));
        }
        for query in &self.asked {
            let _ = writeln!(text, "query {:?} {:?}", query.name, query.sql);
        }
        for analysis in &self.analyses {
            let _ = writeln!(text, "{}", analysis.canonical());
        }
        text
    }
}

fn name(node: &Node, names: &mut [String]) {
    for pass in node.passes.iter().cloned().flatten() {
        if let Some(name) = names.get_mut(pass) {
            name.clone_from(&node.text);
        }
    }
    node.inputs.iter().for_each(|input| name(input, names));
}

fn compiled(query: &NamedQuery) -> Query {
    Query {
        name: query.name.clone(),
        sql: query.sql.clone(),
        to: query.to.clone(),
        keep: query.keep.clone(),
        min_count: query.min_count,
        fit: query.fit.clone(),
        apply: query.apply.clone(),
    }
}

/// A problem of the queries, at what it is about.
pub(crate) fn fault(raw: &RawJob, error: QueryError, analyses: &[TableAnalysis]) -> Fault {
    if let QueryError::Sql(error) = &error
        && let Some(fault) = stats::place(analyses, error)
    {
        return fault;
    }
    let query = |name: &str| {
        let mut queries = raw.query.0.iter();
        queries.find(|query| query.name.get_ref() == name)
    };
    let span = match &error {
        QueryError::Sql(error) => query(&error.query).map(|query| query.sql.span()),
        QueryError::Apply { name, .. } => query(name).map(|query| {
            let apply = query.apply.as_ref();
            apply.map_or(query.name.span(), toml::Spanned::span)
        }),
        QueryError::Job { name, .. } => {
            let bound = raw
                .bound
                .iter()
                .find(|bound| bound.get_ref().of.get_ref() == name);
            let table = raw
                .table
                .iter()
                .find(|table| table.get_ref().name.get_ref() == name);
            query(name)
                .map(|query| query.name.span())
                .or_else(|| bound.map(|bound| bound.get_ref().of.span()))
                .or_else(|| table.map(|table| table.get_ref().name.span()))
        }
        _ => None,
    };
    let span = span.unwrap_or_else(|| raw.name.span());
    Fault::new(span, JobProblem::Query(Box::new(error)))
}

/// No passes, before there are some.
fn nothing() -> PhysicalPlan {
    PhysicalPlan {
        passes: veil_job::passes::ProgramSpec::default(),
        tables: Vec::new(),
        results: Vec::new(),
        keeps: Vec::new(),
        opens: Vec::new(),
        tree: Vec::new(),
        wires: None,
    }
}
