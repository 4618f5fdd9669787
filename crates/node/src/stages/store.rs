//! Shares that a party loads and keeps in the stages of a job, and its note about them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use veil_job::{ShareSink, ShareSource, Sink, Source};
use veil_program::{Job, OldShares, Resharing, SizeSink};
use veil_runtime::{Passes, Stage, Stages, VIEWS};
use veil_session::{PartyId, PlanHash};
use veil_store::{ByPass, Found, Store, StoreError, StoreKey, Whole};

use crate::attendance::{Attendance, Checkpoint, Missing};
use crate::file::{self, FileError};
use crate::home::hex;
use crate::{Home, HomeError};

/// Longest name of a dataset, in bytes.
const LONGEST: usize = 80;

/// The dataset in which a party keeps the inputs of a durable job between its stages. It names the plan: two jobs of one name do not
/// come into each other's way.
pub fn inputs_name(job: &str, input: PlanHash) -> String {
    let end = format!(": input {}", hex(&input.0[..8]));
    let mut cut = job.len().min(LONGEST - end.len());
    while !job.is_char_boundary(cut) {
        cut -= 1;
    }
    job[..cut].to_owned() + &end
}

/// A participant's sources and sinks of shares in one run.
#[derive(Clone, Default)]
pub struct Ends {
    /// Its supply, of a dataset that goes to other parties.
    pub source: Option<Arc<dyn Source>>,
    /// The shares that are loaded, by the number of the pass.
    pub stored: Vec<(usize, Arc<dyn ShareSource>)>,
    /// The sinks of kept shares, by the number of the pass.
    pub keeps: Vec<(usize, Arc<dyn ShareSink>)>,
    /// What takes the sizes that are opened of what is kept, by the number of the pass.
    pub sizes: Vec<(usize, Arc<dyn Sink>)>,
}

/// Where what a party keeps goes.
#[derive(Clone, Default)]
pub struct Kept {
    /// The sinks of its shares, by the number of the pass.
    pub shares: Vec<(usize, Arc<dyn ShareSink>)>,
    /// What takes the sizes that are opened of it, by the number of the pass.
    pub sizes: Vec<(usize, Arc<dyn Sink>)>,
}

/// A participant's store, as the stages of one job use it.
pub struct StageStore<'a> {
    /// As a party of the job; nothing of others, nor where the job neither loads nor keeps shares.
    store: Option<Store>,
    /// The store of a party that has the dataset which the job gives to other parties.
    old: Option<Store>,
    job: &'a Job,
    stages: &'a Stages,
    /// The path of the note about checkpointed inputs, if the output is guaranteed.
    note: Option<PathBuf>,
    kept: Option<CheckpointedInputs>,
}

/// What is known of the inputs that a party has kept for a job whose output is guaranteed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CheckpointedInputs {
    /// Which ones, and who is missing.
    pub(crate) attendance: Attendance,
    /// Runs on them that were given up.
    pub(crate) view: u32,
    /// Whether this party's log says which party is out, if one is.
    pub(crate) told: bool,
}

/// What a party writes down beside the inputs that it has kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note {
    /// The run that kept them.
    pub(crate) run: String,
    /// Runs on them that were given up.
    #[serde(rename = "turn")]
    pub(crate) view: u32,
    /// Who is missing.
    pub(crate) said: Vec<Missing>,
}

impl Note {
    /// Of a run that keeps, before anything happened to what it kept.
    pub(crate) const fn of(run: String) -> Self {
        Note {
            run,
            view: 0,
            said: Vec::new(),
        }
    }

    /// What is in a file; nothing if it is not there or cannot be read.
    fn read(path: &Path) -> Option<Self> {
        serde_json::from_str(&file::read(path).ok()?).ok()
    }

    /// Writes it into a file.
    pub(crate) fn write(&self, path: &Path) -> Result<(), FileError> {
        let text = serde_json::to_vec(self).expect("texts and numbers are JSON");
        file::write(path, &text)
    }
}

impl<'a> StageStore<'a> {
    /// Of the participant of a home.
    ///
    /// # Errors
    /// [`HomeError`] as of [`Home::store`].
    pub fn of_home(home: &Home, job: &'a Job, stages: &'a Stages) -> Result<Self, HomeError> {
        let name = &home.settings().name;
        let stage_store = Self::new(job, stages, name, |parties, party| {
            home.store(parties, party)
        })?;
        if !stages.are_guaranteed() || stage_store.store.is_none() {
            return Ok(stage_store);
        }
        let path = home.note_file(stages.whole().hash);
        let kept = Note::read(&path)
            .zip(super::party_keys(stages, home))
            .map(|(note, keys)| {
                let plan = stages.plan(Stage::Compute).hash;
                let mut attendance = Attendance::new(
                    Checkpoint {
                        plan,
                        run: note.run,
                    },
                    keys,
                );
                attendance.hear(&note.said);
                // A job that was given up and is asked for again begins anew.
                let view = if note.view < VIEWS { note.view } else { 0 };
                let told = attendance.out().is_some();
                CheckpointedInputs {
                    attendance,
                    view,
                    told,
                }
            });
        let note = Some(path);
        Ok(StageStore {
            note,
            kept,
            ..stage_store
        })
    }

    /// The stages of the participant `name`; `open` opens its store for shares among some parties, as one of them.
    ///
    /// # Errors
    /// The error of `open`, unchanged.
    pub fn new<E>(
        job: &'a Job,
        stages: &'a Stages,
        name: &str,
        open: impl Fn(&[String], PartyId) -> Result<Store, E>,
    ) -> Result<Self, E> {
        let of = |parties: &[String]| {
            let index = parties.iter().position(|party| party == name);
            let party = index.and_then(|index| PartyId::new(index as u8));
            party.map(|party| open(parties, party)).transpose()
        };
        let parties = job.needs_stores().then_some(&job.spec().parties[..]);
        let old = job.resharing().map(|resharing| &resharing.old[..]);
        Ok(StageStore {
            store: parties.map(of).transpose()?.flatten(),
            old: old.map(of).transpose()?.flatten(),
            job,
            stages,
            note: None,
            kept: None,
        })
    }

    fn inputs(&self) -> String {
        inputs_name(&self.job.spec().name, self.stages.plan(Stage::Input).hash)
    }

    /// At which stage this party is: at the second one if it has kept the inputs of the first. The second value says why checkpointed inputs cannot
    /// be used; the first stage replaces them.
    ///
    /// # Errors
    /// [`StoreError`] if checkpointed inputs cannot be looked at and it is not known that they are useless: another process writes them,
    /// or the system refuses.
    pub fn stage(&self) -> Result<(Stage, Option<StoreError>), StoreError> {
        let Some(store) = self.store.as_ref().filter(|_| self.stages.are_two()) else {
            return Ok((Stage::Whole, None));
        };
        match (self.load(store), &self.note, &self.kept) {
            // The run ended before it was written down which one it was: this party cannot say whether others have the same.
            (Ok(_), Some(_), None) => Ok((Stage::Input, None)),
            (Ok(_), _, Some(kept)) => Ok((Stage::at_view(kept.view, kept.attendance.out()), None)),
            (Ok(_), None, None) => Ok((Stage::Compute, None)),
            (Err(error), ..) => Self::unusable(error),
        }
    }

    fn unusable(error: StoreError) -> Result<(Stage, Option<StoreError>), StoreError> {
        match error {
            StoreError::NotThere { .. } => Ok((Stage::Input, None)),
            error @ (StoreError::Io { .. } | StoreError::Busy { .. }) => Err(error),
            error => Ok((Stage::Input, Some(error))),
        }
    }

    /// What is known of the inputs that are kept, at a stage that uses them.
    pub(crate) fn kept(&self, stage: Stage) -> Option<&CheckpointedInputs> {
        self.kept.as_ref().filter(|_| stage != Stage::Input)
    }

    /// Writes down which run keeps the inputs.
    pub(crate) fn note(&self, run: String) -> Result<(), FileError> {
        match &self.note {
            Some(path) => Note::of(run).write(path),
            None => Ok(()),
        }
    }

    fn load(&self, store: &Store) -> Result<Arc<dyn ShareSource>, StoreError> {
        let compute = &self.stages.plan(Stage::Compute).job;
        let input = self.stages.plan(Stage::Input).hash;
        Ok(Arc::new(store.resume(compute, &self.inputs(), input)?))
    }

    /// The source and sink of shares in a stage. The dataset of kept shares is made here: an attempt that is given up removes it again.
    ///
    /// # Errors
    /// [`StoreError`] as of [`Store::loads`], [`Store::resume`] and [`Store::whole`] for loaded shares, and as of [`Store::keeps`] for
    /// kept ones.
    pub fn ends(&self, stage: Stage) -> Result<Ends, StoreError> {
        let old = self.old.as_ref().zip(self.job.resharing());
        let source = old.map(|(store, of)| supplies(store, of)).transpose()?;
        let source = source.map(|source| Arc::new(source) as Arc<dyn Source>);
        let Some(store) = &self.store else {
            return Ok(Ends {
                source,
                ..Ends::default()
            });
        };
        let plan = self.stages.plan(stage);
        let stored = match stage {
            Stage::Compute => vec![(0, self.load(store)?)],
            Stage::Finish(out) => {
                let input = self.stages.plan(Stage::Input).hash;
                let rest = store.resume_without(&plan.job, &self.inputs(), input, out)?;
                vec![(0, rest)]
            }
            Stage::Whole | Stage::Input => loads(store, self.job, plan)?,
        };
        let keeps = match stage {
            Stage::Input => {
                self.forget()?;
                let (name, rows) = (self.inputs(), plan.chunk_rows);
                let inputs = store.keeps(&plan.job, plan.hash, rows, &name, "")?;
                Kept {
                    shares: vec![(0, Arc::new(inputs) as Arc<dyn ShareSink>)],
                    sizes: Vec::new(),
                }
            }
            Stage::Finish(_) => Kept::default(),
            Stage::Whole | Stage::Compute => keeps(store, self.job, plan)?,
        };
        Ok(Ends {
            source,
            stored,
            keeps: keeps.shares,
            sizes: keeps.sizes,
        })
    }

    /// Removes the inputs that were kept between the stages.
    ///
    /// # Errors
    /// [`StoreError`] as of [`veil_store::remove`]. Inputs that are not there are no error.
    pub fn forget(&self) -> Result<(), StoreError> {
        let Some(store) = &self.store else {
            return Ok(());
        };
        match veil_store::remove(&store.root, &self.inputs()) {
            Ok(()) | Err(StoreError::NotThere { .. }) => {
                // What is known of them goes with them. It may not be there; if it stays, it names another run than the next one.
                if let Some(note) = &self.note {
                    let _ = std::fs::remove_file(note);
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// What a job loads from datasets of earlier jobs, in a run of `plan`: by the number of the pass.
///
/// # Errors
/// [`StoreError`] as of [`Store::loads`].
pub fn loads(
    store: &Store,
    job: &Job,
    plan: &Passes,
) -> Result<ByPass<dyn ShareSource>, StoreError> {
    if job.queries().is_some() {
        return store.loads_of(plan.jobs().map(|(pass, job, _)| (pass, job)));
    }
    // The plan may be that of a stage, whose job is not all of it.
    let loads = store.loads(job.spec())?.into_iter();
    Ok(loads.map(|loads| (0, Arc::new(loads) as _)).collect())
}

/// Where what a job keeps goes, in a run of `plan`: by the number of the pass.
///
/// # Errors
/// [`StoreError`] as of [`Store::kept`].
pub fn keeps(store: &Store, job: &Job, plan: &Passes) -> Result<Kept, StoreError> {
    if let Some(queries) = job.queries() {
        // What a run finds out of a relation goes from the pass that opens it to the one that keeps.
        let sized = queries.sized();
        let found = sized.map(|(kept, size)| (kept.pass, (size, Arc::<Found>::default())));
        let found: BTreeMap<usize, (_, Arc<Found>)> = found.collect();
        let of = |pass: usize| found.get(&pass).map(|(_, found)| Arc::clone(found));
        let shares = store.kept_of(plan.jobs(), plan.hash, of)?;
        let sizes = found.into_values().map(|(size, found)| {
            let sink = SizeSink::new(size, move |line| found.set(line));
            (size.pass, Arc::new(sink) as Arc<dyn Sink>)
        });
        let sizes = sizes.collect();
        return Ok(Kept { shares, sizes });
    }
    let keeps = store.kept(job.spec(), plan.hash, plan.chunk_rows)?;
    let shares = keeps.into_iter().map(|keeps| (0, Arc::new(keeps) as _));
    Ok(Kept {
        shares: shares.collect(),
        sizes: Vec::new(),
    })
}

/// What a party that has the dataset which `of` shares again supplies, from its store.
///
/// # Errors
///
/// [`StoreError`] if the store has no such dataset, or another one.
pub fn supplies(store: &Store, of: &Resharing) -> Result<OldShares, StoreError> {
    let loads = store.whole(&Whole {
        dataset: &of.dataset,
        made_by: of.made_by,
        ring: of.ring,
        ports: &of.ports,
        blocks: &of.blocks,
        schema: &of.schema,
    })?;
    Ok(OldShares::new(of, store.party, Arc::new(loads)))
}

impl Home {
    /// The durable jobs that were interrupted here: their inputs are kept, all or some. The oldest first.
    ///
    /// # Errors
    /// [`HomeError::File`] if the store's secret or a filed job cannot be read.
    pub fn interrupted(&self) -> Result<Vec<PlanHash>, HomeError> {
        let key = StoreKey::derive(self.store_secret()?.as_slice());
        let there = |name: &str| veil_store::dataset(&self.shares(), name, &key).is_ok();
        let mut found = Vec::new();
        for filed in self.all_filed()? {
            if let Some(input) = filed.stages.first()
                && there(&inputs_name(&filed.name, *input))
            {
                found.push(filed.plan);
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kept_inputs_fit_and_differ() {
        let [one, other] = [1, 2].map(|byte| PlanHash([byte; 32]));
        assert_eq!(inputs_name("pay", one), "pay: input 0101010101010101");
        assert_ne!(inputs_name("pay", one), inputs_name("pay", other));
        for job in ["é".repeat(64), "x".repeat(64)] {
            let name = inputs_name(&job, one);
            assert!(name.len() <= LONGEST && name.ends_with(": input 0101010101010101"));
        }
    }
}
