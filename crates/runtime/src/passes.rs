//! The passes of a run, and the plan by which participants know it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use veil_engine::Data;
use veil_job::passes::ProgramSpec;
use veil_job::{JobSpec, ShareSink, ShareSource, Sink, Source};
use veil_protocol::passes::{Pass, PassProgram, ProgramError};
use veil_protocol::{Options, Plan, Protocol};
use veil_session::Peer;

/// What runs: one pass, or many.
///
/// As a plan it is what participants know of the run: who takes part, who supplies and receives what, on how many lanes, under which hash. Of one pass
/// that is its plan. Of many it is the plan of the first, with the job and the hash of all: nothing computes by it.
#[derive(Clone)]
pub struct Passes {
    program: Arc<PassProgram>,
    face: Arc<Plan>,
    /// What each pass is part of, in words; nothing of one pass.
    names: Arc<[String]>,
    /// Rows of all passes up to the end of each.
    rows: Arc<[u64]>,
}

impl Deref for Passes {
    type Target = Arc<Plan>;

    fn deref(&self) -> &Arc<Plan> {
        &self.face
    }
}

impl fmt::Debug for Passes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Passes({}, {})", self.face.hash, self.count())
    }
}

impl From<Arc<Plan>> for Passes {
    fn from(plan: Arc<Plan>) -> Self {
        let rows = [plan.job.rows()].into();
        Passes {
            program: Arc::new(PassProgram::from(Arc::clone(&plan))),
            face: plan,
            names: [].into(),
            rows,
        }
    }
}

impl From<Plan> for Passes {
    fn from(plan: Plan) -> Self {
        Arc::new(plan).into()
    }
}

/// What a participant brings to a run or takes from it, by the number of the pass.
#[derive(Clone, Default)]
pub struct Ends {
    /// What it supplies.
    pub sources: Vec<(usize, Arc<dyn Source>)>,
    /// What takes what is opened to it.
    pub sinks: Vec<(usize, Arc<dyn Sink>)>,
    /// A party's stored shares, where it loads any.
    pub stored: Vec<(usize, Arc<dyn ShareSource>)>,
    /// Where a party's shares go, where it keeps any.
    pub keeps: Vec<(usize, Arc<dyn ShareSink>)>,
}

impl Passes {
    /// Plans the passes of a job, which is described by `job`; each pass has a name.
    ///
    /// # Errors
    /// [`ProgramError`] as of [`PassProgram::new`].
    pub fn new(
        spec: &ProgramSpec,
        job: Arc<JobSpec>,
        names: Vec<String>,
        options: Options,
    ) -> Result<Self, ProgramError> {
        let program = PassProgram::new(spec, options)?;
        let face = Plan {
            job,
            hash: program.hash(),
            ..Plan::clone(program.first())
        };
        let mut all = 0;
        let rows = program.passes().iter().map(|pass| {
            all += match pass {
                Pass::Rows { plan, .. } => plan.job.rows(),
                Pass::Move { plan, .. } => plan.rows.into(),
                Pass::Product { plan, .. } => plan.rows.into(),
            };
            all
        });
        Ok(Passes {
            rows: rows.collect(),
            program: Arc::new(program),
            face: Arc::new(face),
            names: names.into(),
        })
    }

    /// The passes.
    pub const fn program(&self) -> &Arc<PassProgram> {
        &self.program
    }

    /// The protocol of a participant in the first pass: its name and its guarantee are those of all.
    pub fn protocol(&self, me: Peer) -> Arc<dyn Protocol> {
        self.program.passes()[0].protocol(me)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Rows of all passes together.
    pub fn rows_of_all(&self) -> u64 {
        self.rows.last().copied().unwrap_or(0)
    }

    /// What participants know of the run.
    pub const fn face(&self) -> &Arc<Plan> {
        &self.face
    }

    /// The pass that is under way when so many rows of all passes are done, from 0, and what it is part of; nothing of one pass.
    pub fn under_way(&self, done: u64) -> Option<(usize, &str)> {
        if self.rows.len() < 2 {
            return None;
        }
        let over = self.rows.partition_point(|rows| *rows <= done);
        let at = over.min(self.rows.len() - 1);
        Some((at, self.names.get(at).map_or("", String::as_str)))
    }

    /// What pass number `pass` is part of, in words; nothing of one pass.
    pub fn name_of(&self, pass: usize) -> Option<&str> {
        self.names.get(pass).map(String::as_str)
    }

    /// What a participant brings to each pass, and takes from it.
    pub fn data(&self, ends: Ends) -> Arc<[Data]> {
        let mut all = vec![Data::default(); self.count()];
        for (pass, source) in ends.sources {
            if let Some(data) = all.get_mut(pass) {
                data.source = Some(source);
            }
        }
        for (pass, sink) in ends.sinks {
            if let Some(data) = all.get_mut(pass) {
                data.sink = Some(sink);
            }
        }
        for (pass, stored) in ends.stored {
            if let Some(data) = all.get_mut(pass) {
                data.stored = Some(stored);
            }
        }
        for (pass, keeps) in ends.keeps {
            if let Some(data) = all.get_mut(pass) {
                data.keeps = Some(keeps);
            }
        }
        all.into()
    }

    /// The jobs of passes of rows, by the number of the pass, and how many rows a chunk has.
    pub fn jobs(&self) -> impl Iterator<Item = (usize, &JobSpec, u32)> {
        let passes = self.program.passes().iter().enumerate();
        passes.filter_map(|(number, pass)| {
            let plan = pass.rows()?;
            Some((number, &*plan.job, plan.chunk_rows))
        })
    }
}

#[cfg(test)]
mod tests {
    use veil_job::passes::PassSpec;
    use veil_job::{Audience, Holder, Security};
    use veil_operators::{Builder, Key, Participants, Sharing};

    use super::*;

    /// Ten keys of four bits, sorted.
    fn sorted() -> Passes {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut builder = Builder::new(Participants {
            name: "sorted".into(),
            owners: names(&["ann"]),
            parties: names(&["p0", "p1", "p2"]),
            recipients: names(&["eve"]),
            security: Security::among(3),
        });
        let keys = builder.input(Holder::Owner(0), "key", 10, Sharing::Bits(4));
        let order = builder.sort(&Key::of(&[keys]));
        let sorted = builder.apply(&order, &[keys]);
        builder.open(&sorted, Audience::Recipient(0), "the keys, in their order");
        let spec = builder.finish();
        let PassSpec::Rows { job, .. } = &spec.passes[0] else {
            panic!("the first pass is of rows");
        };
        let described = JobSpec {
            name: "described".into(),
            ..JobSpec::clone(job)
        };
        let names = (0..spec.passes.len()).map(|at| format!("part {at}"));
        let options = Options {
            lanes: 1,
            chunk_rows: None,
        };
        Passes::new(&spec, Arc::new(described), names.collect(), options).unwrap()
    }

    /// Each pass has ten rows: the number of those that are done says which one is under way.
    #[test]
    fn rows_say_which_pass_is_under_way() {
        let passes = sorted();
        let all = passes.count();
        assert!(all > 5);
        assert_eq!(passes.rows_of_all(), 10 * all as u64);
        for (done, at) in [(0, 0), (9, 0), (10, 1), (39, 3), (40, 4)] {
            assert_eq!(passes.under_way(done), Some((at, &*format!("part {at}"))));
        }
        let last = format!("part {}", all - 1);
        assert_eq!(
            passes.under_way(passes.rows_of_all()),
            Some((all - 1, &*last))
        );
    }

    /// What participants know of many passes is the job that describes them, under the hash of all.
    #[test]
    fn the_face_is_the_description_under_the_hash_of_all() {
        let passes = sorted();
        assert_eq!(passes.job.name, "described");
        assert_eq!(passes.hash, passes.program().hash());
        assert_ne!(passes.hash, passes.program().first().hash);
        let one = Passes::from(Arc::clone(passes.program().first()));
        assert_eq!((one.count(), one.under_way(3)), (1, None));
        assert_eq!((one.name_of(0), passes.name_of(3)), (None, Some("part 3")));
        assert_eq!(one.hash, one.program().hash());
    }
}
