//! A party's stored shares, as the jobs that it runs use them.

use std::collections::BTreeSet;

use veil_session::{PartyId, PlanHash};
use veil_store::{Member, Store, StoreError, StoreKey};

use crate::{Home, HomeError};

impl Home {
    /// The store of this party for shares among `parties`, of which it is `party`.
    ///
    /// Other parties are known by their pinned keys, former ones included: shares that were made before a member replaced its key can
    /// still be loaded. They must be members.
    ///
    /// # Errors
    /// [`HomeError::NoMember`] if another party of `parties` is no member, [`HomeError::File`] if the store's secret cannot be
    /// read.
    pub fn store(&self, parties: &[String], party: PartyId) -> Result<Store, HomeError> {
        let members = self.members();
        let member = |(index, name): (usize, &String)| {
            let fingerprints = if index == party.index() {
                vec![self.identity().fingerprint().to_string()]
            } else {
                let member = members.by_name(name).ok_or_else(|| HomeError::NoMember {
                    name: name.clone(),
                    known: members.iter().map(|member| member.name.clone()).collect(),
                })?;
                let former = member.former.iter().rev().map(|former| former.fingerprint);
                let keys = std::iter::once(member.fingerprint).chain(former);
                keys.map(|key| key.to_string()).collect()
            };
            Ok::<_, HomeError>(Member {
                name: name.clone(),
                fingerprints,
            })
        };
        Ok(Store {
            root: self.shares(),
            key: StoreKey::derive(self.store_secret()?.as_slice()),
            party,
            parties: parties
                .iter()
                .enumerate()
                .map(member)
                .collect::<Result<_, _>>()?,
        })
    }
}

/// Datasets cannot be counted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoredError {
    #[error(transparent)]
    Home(#[from] HomeError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Home {
    /// Bytes of the datasets that jobs of a member keep here, complete or not.
    pub(crate) fn stored_bytes(&self, asked_by: &str) -> Result<u64, StoredError> {
        let plans: BTreeSet<PlanHash> = self.plans_asked_by(asked_by)?.into_iter().collect();
        let key = StoreKey::derive(self.store_secret()?.as_slice());
        let datasets = veil_store::datasets(&self.shares(), &key)?.into_iter();
        let bytes = datasets.filter_map(|dataset| {
            let of = dataset.head?.description.plan;
            plans.contains(&of).then_some(dataset.bytes)
        });
        Ok(bytes.fold(0, u64::saturating_add))
    }
}

#[cfg(all(test, feature = "arrow"))]
mod tests {
    use veil_circuit::{Circuit, InputPort, OutputPort, Per, Reduce, Wire};
    use veil_job::{Audience, Block, Holder, JobSpec, ShareSink, ShareSource, Slice};
    use veil_math::Ring;
    use veil_session::PlanHash;

    use super::*;
    use crate::{Role, Settings};

    fn job() -> JobSpec {
        let input = InputPort {
            name: "pay".into(),
            width: 1,
            per: Per::Row,
            bits: false,
        };
        let output = OutputPort {
            name: "pay".into(),
            wires: vec![Wire(0)],
            reduce: Reduce::None,
        };
        JobSpec {
            name: "pay".into(),
            schema: String::new(),
            owners: vec!["mill".into()],
            parties: ["ann", "bob", "eve"].map(String::from).into(),
            recipients: Vec::new(),
            security: veil_job::Security::among(3),
            totals: None,
            circuit: Circuit {
                ring: Ring::Z64,
                inputs: vec![input],
                gates: Vec::new(),
                outputs: vec![output],
                clock: veil_circuit::Clock::default(),
            },
            blocks: vec![Block {
                name: "all".into(),
                rows: 2,
                holders: vec![Holder::Owner(0)],
                stored: None,
                order: veil_job::Order::Unsaid,
            }],
            audiences: vec![Audience::Stored],
            opened: vec!["pay".into()],
            inputs: Vec::new(),
            datasets: Vec::new(),
            keep: None,
        }
    }

    #[test]
    fn shares_outlive_the_keys_of_the_parties() {
        let folder = tempfile::tempdir().expect("a folder");
        let home = |name: &str| {
            let settings = Settings::new(name, Role::Party).expect("a name");
            let settings = settings.reached_at(&format!("{name}.example:7000"));
            Home::create(&folder.path().join(name), &settings).expect("a home")
        };
        let [ann, bob, eve] = ["ann", "bob", "eve"].map(home);
        let party = PartyId::THREE[0];
        let job = job();
        let error = ann
            .store(&job.parties, party)
            .expect_err("bob is not known yet");
        assert!(error.to_string().contains("no member `bob`"), "{error}");
        let pin = |name: &str, other: &Home| {
            let key = other.identity().fingerprint();
            let address = format!("{name}.example:7000");
            ann.pin(name, Role::Party, key, Some(&address))
                .expect("pinned");
        };
        pin("bob", &bob);
        pin("eve", &eve);

        let (plan, slice) = (
            PlanHash([1; 32]),
            Slice {
                block: 0,
                first: 0,
                rows: 2,
            },
        );
        let store = ann.store(&job.parties, party).expect("a store");
        let keeps = store.keeps(&job, plan, 512, "pay", "").expect("a dataset");
        for component in 0..2 {
            keeps.keep(0, component, slice, &[7; 16]).expect("kept");
        }
        keeps.finish().expect("complete");

        let load = |store: &Store| {
            let loads = store.resume(&job, "pay", plan)?;
            let mut shares = [0; 16];
            loads.load(0, 1, slice, &mut shares).expect("loaded");
            assert_eq!(shares, [7; 16]);
            Ok::<_, veil_store::StoreError>(())
        };
        load(&store).expect("the parties are the same");
        ann.rotate().expect("a new key");
        let statement = bob.rotate().expect("a new key");
        ann.accept_rotation(&statement).expect("accepted");
        let mut store = ann.store(&job.parties, party).expect("a store");
        assert_eq!(store.parties[1].fingerprints.len(), 2);
        load(&store).expect("the same parties, with other keys");
        // Another one under the same name is not the party that has the other shares.
        store.parties[1].fingerprints = vec![home("another").identity().fingerprint().to_string()];
        let error = load(&store).expect_err("another bob").to_string();
        assert!(error.contains("it is shared among ann"), "{error}");
    }
}
