//! Both ends of a job: the data of its owners and the results of its recipients.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use veil_job::passes::PassSpec;
use veil_job::{Guarantee, Sink};
use veil_relation::clear;

use veil_session::Peer;

use super::{DataFile, Files, Job, Kind, locate};
use crate::InputError;
use crate::{
    AlignKey, Answered, BinSink, FileSink, FileSource, Intersection, IntersectionSink, Output,
    Queries, QuerySink, Shows, TableReport, Watch,
    gates::{Input, InputFormat},
    intersect::{BinSource, KeySource},
    query::{OwnTable, QuerySource},
    stats::{
        BitSource, Opening, Reading, Stats, StatsResult, StatsSink, StatsSource, TableAnalysis,
        result, table,
    },
};
use veil_job::{DataError, Holder, Source};

/// What an owner supplies, by the number of the pass that takes it.
pub type Sources = Vec<(usize, Arc<dyn Source>)>;

/// A relation that a query opens, by the meaning of the algebra.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClearAnswer {
    /// The recipient.
    pub to: String,
    /// The query.
    pub query: String,
    /// The relation, as [`Answered::json`](crate::Answered::json).
    pub json: String,
}

/// What takes opened values, by the number of the pass that opens them.
pub type Sinks = Vec<(usize, Arc<dyn Sink>)>;

impl Job {
    /// Every data file of the job, and where it is on this machine.
    pub fn data(&self) -> Vec<DataFile> {
        let file = |holder, what: &str, named: Option<&Path>| {
            let owner = self.roles.holder_name(holder);
            let given = self.given.get(&(owner.clone(), what.to_owned())).cloned();
            let path = given.or_else(|| Some(self.base.as_deref()?.join(named?)));
            DataFile {
                holder,
                owner,
                what: what.to_owned(),
                path,
            }
        };
        match &self.kind {
            Kind::Stats(stats) => (stats.blocks.iter())
                .flat_map(|block| {
                    let reads = self.opening().reads().into_iter();
                    let mut holders: Vec<Holder> =
                        reads.map(|column| block.holders[column]).collect();
                    holders.sort_unstable();
                    holders.dedup();
                    holders.retain(|holder| *holder != Holder::Stored);
                    holders.into_iter().map(move |holder| {
                        let named = block.files.iter().find(|named| named.0 == holder);
                        file(holder, &block.name, named.map(|named| named.1.as_path()))
                    })
                })
                .collect(),
            Kind::Circuit(gates) => (gates.inputs.iter())
                .filter(|input| !matches!(input.format, InputFormat::Counter(_)))
                .map(|input| file(input.holder, &input.port, input.file.as_deref()))
                .collect(),
            Kind::Reshare(_) => Vec::new(),
            Kind::Intersection(of) => (of.tables.iter())
                .map(|table| file(table.holder, &table.table.name, table.file.as_deref()))
                .collect(),
            Kind::Query(queries) => (queries.tables.iter().enumerate())
                .filter(|(at, table)| queries.is_taken(*at) && table.holder != Holder::Stored)
                .map(|(_, table)| file(table.holder, &table.table.name, table.file.as_deref()))
                .collect(),
        }
    }

    /// Where the file of a table is on this machine.
    fn table_file(&self, queries: &Queries, at: usize) -> Result<PathBuf, DataError> {
        let table = &queries.tables[at];
        let mut data = self.data().into_iter();
        let found = data.find(|data| data.holder == table.holder && data.what == table.table.name);
        let path = found.and_then(|data| data.path);
        Ok(path.ok_or_else(|| table.missing())?)
    }

    /// Reads and checks a table: as it is given in memory, else its file.
    pub(super) fn open_table(
        &self,
        queries: &Queries,
        at: usize,
        watch: Watch<'_>,
    ) -> Result<OwnTable, DataError> {
        #[cfg(feature = "columnar")]
        if let Some(given) = self.memory_of(&queries.tables[at]) {
            return queries.open_memory(at, given, watch);
        }
        let file = self.table_file(queries, at)?;
        queries.open(at, &file, watch)
    }

    /// Reads and checks the tables of one holder that a job with queries takes, by their place in the program.
    fn own_tables(
        &self,
        queries: &Queries,
        holder: Holder,
        watch: Watch<'_>,
    ) -> Result<Vec<(usize, Arc<OwnTable>)>, DataError> {
        let mut own = Vec::new();
        for (at, table) in queries.tables.iter().enumerate() {
            if table.holder == holder && queries.is_taken(at) {
                own.push((at, Arc::new(self.open_table(queries, at, watch)?)));
            }
        }
        Ok(own)
    }

    /// Reads and checks all data of one holder: what it supplies, by the number of the pass that takes it.
    ///
    /// # Errors
    /// [`DataError`] as of [`Job::source`].
    pub fn sources(&self, holder: Holder) -> Result<Sources, DataError> {
        self.sources_watched(holder, &|_, _| {})
    }

    /// [`Job::sources`], telling how far each file is read.
    ///
    /// # Errors
    /// [`DataError`] as of [`Job::source`].
    pub fn sources_watched(&self, holder: Holder, watch: Watch<'_>) -> Result<Sources, DataError> {
        let Kind::Query(queries) = &self.kind else {
            return Ok(vec![(0, Arc::from(self.source_watched(holder, watch)?))]);
        };
        let own = self.own_tables(queries, holder, watch)?;
        let plan = queries.physical();
        let mut sources: Sources = Vec::new();
        for (number, pass) in plan.passes.passes.iter().enumerate() {
            let PassSpec::Rows { job, .. } = pass else {
                continue;
            };
            let ports = plan.tables.iter().filter(|ports| ports.pass == number);
            let taken: Vec<_> = ports
                .filter_map(|ports| {
                    let table = own.iter().find(|(at, _)| *at == ports.table);
                    Some((&table?.1, ports))
                })
                .collect();
            if !taken.is_empty() {
                let source = QuerySource::new(taken, job, plan.wires.is_some());
                let source = source.map_err(DataError::own)?;
                sources.push((number, Arc::new(source)));
            }
        }
        Ok(sources)
    }

    /// Where the file of an input is on this machine.
    fn locate(&self, input: &Input) -> Option<PathBuf> {
        locate(&self.roles, self.base.as_deref(), &self.given, input)
    }

    /// Everyone who supplies values from files.
    pub fn holders(&self) -> Vec<Holder> {
        if self.resharing().is_some() {
            return Vec::new();
        }
        if let Kind::Query(_) = &self.kind {
            let mut holders: Vec<Holder> = self.data().iter().map(|data| data.holder).collect();
            holders.sort_unstable();
            holders.dedup();
            return holders;
        }
        let mut holders: Vec<Holder> = self
            .spec
            .blocks
            .iter()
            .flat_map(|block| block.holders.iter().copied())
            .filter(|holder| *holder != Holder::Stored)
            .collect();
        holders.sort_unstable();
        holders.dedup();
        holders
    }

    /// Adds paths of data files that have none yet; the caller that gave the first paths when the job was read gives these.
    pub fn add_files(&mut self, more: Files) {
        for (what, file) in more {
            self.given.entry(what).or_insert(file);
        }
    }

    /// Gives paths of data files in the place of those that the job names.
    ///
    /// # Errors
    /// [`InputError::NoSuchData`] if an owner supplies no such data in this job.
    pub fn give_files(&mut self, files: Files) -> Result<(), InputError> {
        let data = self.data();
        for (at, file) in files {
            Self::supplied(&data, &at.0, &at.1)?;
            self.given.insert(at, file);
        }
        Ok(())
    }

    /// Refuses data that are none of the job.
    fn supplied(data: &[DataFile], owner: &str, what: &str) -> Result<(), InputError> {
        let own = || data.iter().filter(|data| data.owner == owner);
        if own().any(|data| data.what == what) {
            return Ok(());
        }
        Err(InputError::NoSuchData {
            owner: owner.to_owned(),
            what: what.to_owned(),
            known: own().map(|data| data.what.clone()).collect(),
        })
    }

    /// Gives a table of an owner in memory, in the place of a file.
    ///
    /// # Errors
    /// [`InputError::NoSuchData`] if the job has no queries that take such a table of this owner.
    #[cfg(feature = "columnar")]
    pub fn give_table(
        &mut self,
        owner: &str,
        name: &str,
        table: crate::MemoryTable,
    ) -> Result<(), InputError> {
        // Rows of other jobs are none of a table.
        let data = if self.queries().is_some() {
            self.data()
        } else {
            Vec::new()
        };
        Self::supplied(&data, owner, name)?;
        let at = (owner.to_owned(), name.to_owned());
        self.memory.tables.insert(at, table);
        Ok(())
    }

    /// The table that is given in memory.
    #[cfg(feature = "columnar")]
    fn memory_of(&self, table: &crate::query::OwnerTable) -> Option<&crate::MemoryTable> {
        let owner = self.roles.holder_name(table.holder);
        let at = (owner, table.table.name.clone());
        self.memory.tables.get(&at)
    }

    /// Gives the key under which the owners of this machine compare the order of rows, where the job says that they do.
    pub fn set_align_key(&mut self, key: AlignKey) {
        self.align = Some(key);
    }

    /// Reads and checks all data of one holder of a job of one pass.
    ///
    /// # Errors
    /// [`InputError::Passes`] for a job with queries, whose owners supply [several](Job::sources); [`InputError::NoFile`] if neither the job nor the given files say where a file of the holder is; [`InputError::FromStore`]
    /// for a job that shares a dataset again; another [`DataError`] with file, line and column if the data do not fit what the
    /// job declares.
    pub fn source(&self, holder: Holder) -> Result<Box<dyn Source>, DataError> {
        self.source_watched(holder, &|_, _| {})
    }

    /// [`Job::source`], telling how far each file is read.
    ///
    /// # Errors
    /// [`DataError`] as of [`Job::source`].
    pub fn source_watched(
        &self,
        holder: Holder,
        watch: Watch<'_>,
    ) -> Result<Box<dyn Source>, DataError> {
        match &self.kind {
            Kind::Stats(stats) => {
                let tables = self.tables(stats, holder, watch)?;
                if self.opening().is_of_bits() {
                    return Ok(Box::new(BitSource::new(
                        stats,
                        self.opening(),
                        holder,
                        tables,
                    )?));
                }
                Ok(Box::new(tables))
            }
            Kind::Circuit(gates) => {
                let path = |input: &Input| {
                    let missing = || InputError::NoFile {
                        owner: self.roles.holder_name(holder),
                        what: format!("input `{}`", input.port),
                    };
                    Ok(self.locate(input).ok_or_else(missing)?)
                };
                Ok(Box::new(FileSource::open(gates, holder, path)?))
            }
            Kind::Intersection(of) => {
                let file = self.keys_file(of, holder)?;
                if of.opens() == Shows::Keys {
                    return Ok(Box::new(KeySource::read(of, holder, &file, watch)?));
                }
                Ok(Box::new(BinSource::read(of, holder, &file, watch)?))
            }
            Kind::Reshare(_) => Err(InputError::FromStore(self.roles.holder_name(holder)).into()),
            Kind::Query(_) => Err(InputError::Passes.into()),
        }
    }

    fn opening(&self) -> &Opening {
        self.opening
            .as_ref()
            .expect("a statistics job is made with its opening")
    }

    fn tables(
        &self,
        stats: &Stats,
        holder: Holder,
        watch: Watch<'_>,
    ) -> Result<StatsSource, DataError> {
        let owner = self.roles.holder_name(holder);
        let reading = self.reading(&owner, watch);
        StatsSource::read(stats, self.opening(), holder, reading, |block| {
            self.file(stats, holder, block)
        })
    }

    fn reading<'a>(&'a self, owner: &'a str, watch: Watch<'a>) -> Reading<'a> {
        Reading {
            owner,
            align: self.align.as_ref(),
            watch,
        }
    }

    /// Where the file of a block is on this machine.
    fn file(&self, stats: &Stats, holder: Holder, block: usize) -> Result<PathBuf, DataError> {
        let what = &stats.blocks[block].name;
        let path = (self.data().into_iter())
            .find(|data| data.holder == holder && data.what == *what)
            .and_then(|data| data.path);
        let missing = || InputError::NoFile {
            owner: self.roles.holder_name(holder),
            what: format!("block `{what}`"),
        };
        Ok(path.ok_or_else(missing)?)
    }

    /// Checks all data of one holder, and goes on where a file is wrong: the report of each good table, and every problem. The files of a
    /// circuit job are only checked.
    pub fn check_data(
        &self,
        holder: Holder,
        watch: Watch<'_>,
    ) -> (Vec<TableReport>, Vec<DataError>) {
        let (mut reports, mut problems) = (Vec::new(), Vec::new());
        if let Kind::Query(queries) = &self.kind {
            for at in (0..queries.tables.len()).filter(|at| queries.tables[*at].holder == holder) {
                match self.open_table(queries, at, watch) {
                    Ok(table) => reports.push(table.report().clone()),
                    Err(problem) => problems.push(problem),
                }
            }
            return (reports, problems);
        }
        if let Kind::Intersection(of) = &self.kind {
            let file = self.keys_file(of, holder);
            let checked = file.and_then(|file| of.check(holder, &file, watch));
            match checked {
                Ok(report) => reports.push(report),
                Err(problem) => problems.push(problem),
            }
            return (reports, problems);
        }
        let Kind::Stats(stats) = &self.kind else {
            problems.extend(self.source(holder).err());
            return (reports, problems);
        };
        let owner = self.roles.holder_name(holder);
        let reading = self.reading(&owner, watch);
        for block in 0..stats.blocks.len() {
            let file = |block| self.file(stats, holder, block);
            match table(stats, self.opening(), holder, reading, block, file) {
                Ok(None) => {}
                Ok(Some(table)) => reports.push(table.report().clone()),
                Err(problem) => problems.push(problem),
            }
        }
        (reports, problems)
    }

    /// The end of the recipient `peer` of a job with statistics or queries that keeps its result in memory alone; nothing for other jobs.
    ///
    /// # Errors
    /// [`DataError`] as of [`Job::sink`].
    pub fn memory_sink(&self, peer: Peer) -> Result<Option<Output>, DataError> {
        match &self.kind {
            Kind::Stats(stats) => Ok(Some(self.statistics(stats, peer, None)?)),
            Kind::Query(queries) => Ok(Some(self.answers(queries, peer, None)?)),
            Kind::Circuit(_) | Kind::Reshare(_) | Kind::Intersection(_) => Ok(None),
        }
    }

    fn answers(
        &self,
        queries: &Queries,
        peer: Peer,
        folder: Option<&Path>,
    ) -> Result<Output, DataError> {
        let job = (self.spec.name.as_str(), Guarantee::of(self.spec.security));
        let sink = QuerySink::new(job, queries, &self.roles.peer_name(peer), folder)?;
        Ok(Output::Query(Arc::new(sink)))
    }

    fn statistics(
        &self,
        stats: &Stats,
        peer: Peer,
        folder: Option<&Path>,
    ) -> Result<Output, DataError> {
        let (name, opening) = (&self.spec.name, self.opening());
        let job = (name.as_str(), self.spec.security);
        let sink = StatsSink::new(job, &self.roles, stats, opening, peer, folder)?;
        Ok(Output::Stats(Box::new(sink)))
    }

    /// The end of `peer`, whose results appear in `folder` when everything is complete.
    ///
    /// # Errors
    /// [`DataError::Io`] if `folder` or a file in it cannot be written, or the file whose length an output takes cannot be looked
    /// at; [`InputError::NoFile`] if it is not known where that file is.
    pub fn sink(&self, peer: Peer, folder: &Path) -> Result<Output, DataError> {
        match &self.kind {
            Kind::Stats(stats) => self.statistics(stats, peer, Some(folder)),
            Kind::Circuit(gates) => {
                let length = |port: &str| {
                    let input = gates.inputs.iter().find(|input| input.port == port);
                    let path = input.and_then(|input| self.locate(input));
                    let what = format!(
                        "input `{port}`, whose length an output takes (or set `bytes` there),"
                    );
                    let owner = input
                        .map(|input| self.roles.holder_name(input.holder))
                        .unwrap_or_default();
                    let path = path.ok_or(InputError::NoFile { owner, what })?;
                    Ok(fs::metadata(&path)
                        .map_err(DataError::io("open", &path))?
                        .len())
                };
                Ok(Output::Files(FileSink::create(
                    gates, peer, folder, length,
                )?))
            }
            Kind::Reshare(resharing) => Ok(Output::Zeros(resharing.zeros())),
            Kind::Query(queries) => self.answers(queries, peer, Some(folder)),
            Kind::Intersection(of) => {
                let [own, _] = of.sides();
                let own = || self.keys_file(of, own.holder);
                if of.opens() == Shows::Keys {
                    let sink = IntersectionSink::new(of, &own()?, Some(folder))?;
                    return Ok(Output::Intersection(Box::new(sink)));
                }
                let file = of.opens().names_keys().then(own).transpose()?;
                let sink = BinSink::new(of, file.as_deref(), Some(folder))?;
                Ok(Output::OfCommon(Box::new(sink)))
            }
        }
    }

    /// Where the table of a party is on this machine.
    fn keys_file(&self, of: &Intersection, holder: Holder) -> Result<PathBuf, DataError> {
        let (_, table) = of
            .of(holder)
            .ok_or_else(|| DataError::own("this party has no table"))?;
        let data = self.data().into_iter().find(|data| data.holder == holder);
        Ok(data
            .and_then(|data| data.path)
            .ok_or_else(|| table.missing())?)
    }

    /// The relations that each query opens, from all owners' files on this machine, by the meaning of the algebra: what a result is compared
    /// with where that is allowed. Nothing for other jobs.
    ///
    /// # Errors
    /// [`DataError`] as of [`Job::source`], for any holder; if a relation breaks a promise that the queries rest on.
    pub fn clear_answers(&self) -> Result<Option<Vec<ClearAnswer>>, DataError> {
        let Kind::Query(queries) = &self.kind else {
            return Ok(None);
        };
        let answers = self.evaluated(queries)?.into_iter();
        let answers = answers.map(|(to, answer)| ClearAnswer {
            to,
            json: answer.json(),
            query: answer.query,
        });
        Ok(Some(answers.collect()))
    }

    /// The relations of [`Job::clear_answers`], and to whom each is opened; none of other jobs.
    ///
    /// # Errors
    /// [`DataError`] as of [`Job::clear_answers`].
    pub fn clear_relations(&self) -> Result<Vec<(String, Answered)>, DataError> {
        match &self.kind {
            Kind::Query(queries) => self.evaluated(queries),
            _ => Ok(Vec::new()),
        }
    }

    /// The relation of each query that opens one, and to whom, by the meaning of the algebra.
    fn evaluated(&self, queries: &Queries) -> Result<Vec<(String, Answered)>, DataError> {
        queries.without_stored()?;
        // A table has as many places as its file has rows; one that no query reads has none.
        let mut program = queries.program().clone();
        for table in &mut program.tables {
            (table.capacity, table.padded) = (0, false);
        }
        let mut tables = vec![clear::Input::default(); queries.tables.len()];
        for holder in self.holders() {
            for (at, table) in self.own_tables(queries, holder, &|_, _| {})? {
                program.tables[at].capacity = table.rows() as u32;
                for row in 0..table.rows() {
                    tables[at].rows.push(table.row(row)?);
                    tables[at].valid.push(true);
                }
            }
        }
        let opened = clear::evaluate(&program, &tables).map_err(DataError::own)?;
        let says = |step: &str| {
            let mut results = queries.physical().results.iter();
            results.any(|of| {
                of.step == step && of.ports.contains(&veil_physical::ResultPort::Incomplete)
            })
        };
        let answers = opened.into_iter().map(|opened| {
            let answer = Answered {
                incomplete: says(&opened.step).then_some(opened.incomplete),
                query: opened.step,
                fields: opened.fields,
                rows: opened.rows,
                min_count: 0,
            };
            (opened.to, answer)
        });
        Ok(answers.collect())
    }

    /// The statistics that `peer` should get, from all owners' files on this machine, by counting and adding in the clear: the figures that
    /// a result is compared with where that is allowed. Nothing for a circuit job, nor where shares are loaded, whose values no owner has.
    ///
    /// # Errors
    /// [`DataError`] as of [`Job::source`], for any holder.
    pub fn clear_statistics(&self, peer: Peer) -> Result<Option<StatsResult>, DataError> {
        if let (Kind::Query(queries), true) = (&self.kind, self.is_statistics()) {
            if !self.spec.datasets.is_empty() {
                return Ok(None);
            }
            let recipient = self.roles.peer_name(peer);
            let answers = self.evaluated(queries)?.into_iter();
            let answers: Vec<Answered> = answers.map(|(_, answer)| answer).collect();
            let mine = queries.analyses.iter().filter(|one| one.to == recipient);
            let mine: Vec<TableAnalysis> = mine.cloned().collect();
            let of = crate::query::of(&mine, &answers);
            return Ok(Some(result((&self.spec.name, &recipient), &of, None)));
        }
        let Kind::Stats(stats) = &self.kind else {
            return Ok(None);
        };
        if !self.spec.loads().is_empty() {
            return Ok(None);
        }
        let sources: Vec<(Holder, StatsSource)> = (self.holders().into_iter())
            .map(|holder| Ok((holder, self.tables(stats, holder, &|_, _| {})?)))
            .collect::<Result<_, DataError>>()?;
        let sources: Vec<_> = sources
            .iter()
            .map(|(holder, source)| (*holder, source))
            .collect();
        let result = stats.clear(&self.spec.name, &self.roles, peer, &sources)?;
        Ok(Some(result))
    }
}
