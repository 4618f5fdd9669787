//! The stores of the parties of a run on this machine: a folder for each, with a key and its datasets.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use veil_job::{Holder, JobSpec, ShareSink, ShareSource, Source};
use veil_program::{Job, Queries};
use veil_protocol::Plan;
use veil_runtime::{Ends, Passes};
use veil_session::{PartyId, Peer};
use veil_store::{Member, Store, StoreError, StoreKey};
use veilworks::folder_name;

use crate::failure::{Code, Failure};
use crate::launch::ahead::Sources;

/// What each party loads, by the number of the pass.
pub(crate) type Loaded = Vec<Vec<(usize, Arc<dyn ShareSource>)>>;

/// Where what each party keeps goes.
pub(crate) type Kept = Vec<veil_node::stages::Kept>;

/// What comes from the stores of this machine to one run, and what is kept of it there.
#[derive(Default)]
pub(crate) struct Shares {
    pub(crate) stored: Loaded,
    pub(crate) keeps: Kept,
    /// What participants supply of a dataset that goes to other parties.
    pub(crate) supplies: BTreeMap<Peer, Arc<dyn Source>>,
    /// The stock that its parties take products from, if they take any.
    pub(crate) stock: Sources,
}

impl Shares {
    /// Adds what `peer` has in its store, and keeps there, to what it brings.
    pub(crate) fn of(&self, peer: Peer, mut ends: Ends) -> Ends {
        if let Some(source) = self.supplies.get(&peer) {
            ends.sources = vec![(0, Arc::clone(source))];
        }
        let Some(party) = peer.party() else {
            return ends;
        };
        let kept = self.keeps.get(party.index()).cloned().unwrap_or_default();
        ends.sinks.extend(kept.sizes);
        Ends {
            stored: (self.stored.get(party.index()))
                .cloned()
                .unwrap_or_default(),
            keeps: kept.shares,
            ..ends
        }
    }
}

/// The store in the folder `root` of one of `parties`; it is made if it is not there.
pub(crate) fn open(root: &Path, parties: &[String], party: PartyId) -> Result<Store, Failure> {
    let folder = root.join(folder_name(&parties[party.index()]));
    Ok(Store {
        root: folder.join("shares"),
        key: key(&folder)?,
        party,
        parties: parties.iter().map(|name| Member::local(name)).collect(),
    })
}

/// What those supply who have the dataset that the job gives to other parties, if it does.
pub(crate) fn supplies(root: &Path, job: &Job) -> Result<BTreeMap<Peer, Arc<dyn Source>>, Failure> {
    let mut all = BTreeMap::new();
    let Some(of) = job.resharing() else {
        return Ok(all);
    };
    for (party, name) in each(&of.old) {
        let source: Arc<dyn Source> = Arc::new(veil_node::stages::supplies(
            &open(root, &of.old, party)?,
            of,
        )?);
        let holder = job.roles().holder(name);
        all.extend(holder.and_then(Holder::peer).map(|peer| (peer, source)));
    }
    Ok(all)
}

/// Parties, and their names.
fn each(parties: &[String]) -> impl Iterator<Item = (PartyId, &String)> {
    PartyId::FOUR.into_iter().zip(parties)
}

/// The line of each dataset that says its opened size, by its name: what a run has opened is in the store of every party.
pub(crate) fn sizes(root: &Path, job: &Job) -> Result<BTreeMap<String, String>, Failure> {
    let mut all = BTreeMap::new();
    for (kept, _) in job.queries().into_iter().flat_map(Queries::sized) {
        let store = open(root, &job.spec().parties, PartyId::THREE[0])?;
        let dataset = veil_store::dataset(&store.root, &kept.dataset, &store.key)?;
        let head = dataset.head.as_ref();
        let line = head.and_then(|head| head.description.schema.lines().next());
        all.extend(line.map(|line| (kept.dataset.clone(), line.to_owned())));
    }
    Ok(all)
}

/// The stores of all parties.
pub(crate) struct Stores(Vec<Store>);

impl Stores {
    /// Opens the stores in the folder `root`; makes those that are not there.
    pub(crate) fn open(root: &Path, job: &Job) -> Result<Self, Failure> {
        let parties = &job.spec().parties;
        let stores = each(parties).map(|(party, _)| open(root, parties, party));
        stores.collect::<Result<_, _>>().map(Stores)
    }

    /// What the job loads from datasets of earlier jobs, in a run of `plan`.
    pub(crate) fn loads(&self, job: &Job, plan: &Passes) -> Result<Loaded, Failure> {
        self.each(|store| veil_node::stages::loads(store, job, plan))
    }

    /// Where what the job keeps goes, in a run of `plan`.
    pub(crate) fn keeps(&self, job: &Job, plan: &Passes) -> Result<Kept, Failure> {
        self.each(|store| veil_node::stages::keeps(store, job, plan))
    }

    /// Where the shares of the input stage go.
    pub(crate) fn input(&self, plan: &Plan) -> Result<Kept, Failure> {
        self.each(|store| {
            let name = &plan.job.name;
            let keeps = store.keeps(&plan.job, plan.hash, plan.chunk_rows, name, "")?;
            Ok(veil_node::stages::Kept {
                shares: vec![(0, Arc::new(keeps) as Arc<dyn ShareSink>)],
                ..veil_node::stages::Kept::default()
            })
        })
    }

    /// What the input stage `input` has kept for `compute`; nothing unless all parties have it, from this very plan.
    pub(crate) fn resume(
        &self,
        compute: &JobSpec,
        input: &Plan,
    ) -> Result<Option<Loaded>, Failure> {
        let mut complete = true;
        let sources = self.each(|store| {
            match store.resume(compute, &input.job.name, input.hash) {
                Ok(loads) => Ok(vec![(0, Arc::new(loads) as Arc<dyn ShareSource>)]),
                Err(error @ (StoreError::Io { .. } | StoreError::Busy { .. })) => Err(error),
                // Not there, not complete, damaged, or of a job that was changed since: the input stage makes it anew.
                Err(_) => {
                    complete = false;
                    Ok(Vec::new())
                }
            }
        })?;
        Ok(complete.then_some(sources))
    }

    /// Removes the dataset `name` wherever it is.
    pub(crate) fn forget(&self, name: &str) -> Result<(), Failure> {
        self.each(|store| match veil_store::remove(&store.root, name) {
            Ok(()) | Err(StoreError::NotThere { .. }) => Ok(()),
            Err(error) => Err(error),
        })
        .map(|_| ())
    }

    fn each<T>(&self, of: impl FnMut(&Store) -> Result<T, StoreError>) -> Result<Vec<T>, Failure> {
        Ok(self.0.iter().map(of).collect::<Result<_, _>>()?)
    }
}

/// The key of a party's store: 32 random bytes in a file of its own, made when there is none.
fn key(folder: &Path) -> Result<StoreKey, Failure> {
    let path = folder.join("key");
    let failed = |error: io::Error| {
        let message = format!("cannot use the key {} of a store: {error}", path.display());
        Failure::new(Code::Input, message).help("choose another folder: `--stores DIR`")
    };
    fs::create_dir_all(folder).map_err(failed)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    match options.open(&path) {
        Ok(mut file) => {
            let mut secret = [0; 32];
            getrandom::fill(&mut secret).map_err(|error| failed(io::Error::other(error)))?;
            file.write_all(&secret)
                .and_then(|()| file.sync_all())
                .map_err(failed)?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(error)),
    }
    let secret = fs::read(&path).map_err(failed)?;
    if secret.len() != 32 {
        return Err(failed(io::Error::other("it is not 32 bytes long")));
    }
    Ok(StoreKey::derive(&secret))
}
