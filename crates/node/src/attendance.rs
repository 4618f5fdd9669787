//! Which of four parties is out: the word of the three others, signed.
//!
//! A job whose output is guaranteed goes on without a party that no longer answers. Silence proves nothing to a third, so it takes the
//! statements of *all* the others: one of them at most is corrupt, so two who are honest have found the party silent for as long as a run
//! may stall. Lines between honest parties are taken to work within that time. Each signs for itself, with the key that the members pin; a
//! statement names plan, checkpoint and time. Three statements about one party that were made at about the same time are a verdict. It is
//! the same for every reader, however much later, and is about this checkpoint for good.

use serde::{Deserialize, Serialize};
use veil_link::tls::{Fingerprint, Identity, IdentityError, verify};
use veil_session::{PartyId, PlanHash};

use crate::home::hex;
use crate::strings::Body;
use crate::time::Time;

/// What a statement is signed for.
const CONTEXT: &str = "a party is missing from a checkpoint";

/// How far apart the statements of a verdict may be, in seconds, by the clocks of their signers.
pub const TOGETHER: i64 = 600;

/// Statements that are taken at once: each party about each other.
const MOST: usize = 16;

/// The inputs kept by one run of the first stage of a job: the subject of statements.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Checkpoint {
    /// The plan of the stage that all four parties would run on it.
    pub plan: PlanHash,
    /// The run that kept it, by the name that is the same at all participants and no other run has.
    pub run: String,
}

/// One party has not been heard by another for as long as a run may stall.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// All digits of the plan of the stage that could not run.
    plan: String,
    /// The run that kept the inputs.
    run: String,
    /// The fingerprint of the missing party's key.
    about: String,
    /// When it was said, in seconds since 1970.
    time: i64,
    /// The signer's public key, in hexadecimal digits.
    key: String,
    /// Its signature, in hexadecimal digits.
    signature: String,
}

impl Missing {
    /// The statement of the holder of `identity` about the holder of the key `missing`.
    ///
    /// # Errors
    /// [`IdentityError`] if the identity cannot sign.
    pub fn make(
        identity: &Identity,
        of: &Checkpoint,
        missing: &Fingerprint,
    ) -> Result<Self, IdentityError> {
        let mut statement = Missing {
            plan: hex(&of.plan.0),
            run: of.run.clone(),
            about: missing.to_string(),
            time: Time::now().seconds(),
            key: hex(&identity.public_key()?),
            signature: String::new(),
        };
        statement.signature = hex(&identity.sign(CONTEXT, statement.body().as_bytes())?);
        Ok(statement)
    }

    /// What is signed.
    fn body(&self) -> Body {
        Body::new()
            .text(&self.plan)
            .text(&self.run)
            .text(&self.about)
            .bytes(&self.time.to_le_bytes())
            .text(&self.key)
    }

    /// By which key it is, if it is signed, and about this checkpoint.
    fn by(&self, of: &Checkpoint) -> Option<Fingerprint> {
        let digits = |text: &str| data_encoding::HEXLOWER.decode(text.as_bytes()).ok();
        let (key, signature) = (digits(&self.key)?, digits(&self.signature)?);
        let signed = verify(&key, CONTEXT, self.body().as_bytes(), &signature);
        let about = self.plan == hex(&of.plan.0) && self.run == of.run;
        (about && signed).then(|| Fingerprint::of_key(&key))
    }
}

/// The statements about the parties of one job, and one checkpoint of it, that are known somewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attendance {
    of: Checkpoint,
    keys: Vec<Fingerprint>,
    /// The last one of each party about each other, with who made it; once there is a verdict, that and no more.
    said: Vec<(Fingerprint, Missing)>,
    out: Option<PartyId>,
}

impl Attendance {
    /// About a checkpoint of the parties that have these keys, in their order.
    pub const fn new(of: Checkpoint, keys: Vec<Fingerprint>) -> Self {
        Attendance {
            of,
            keys,
            said: Vec::new(),
            out: None,
        }
    }

    /// The checkpoint.
    pub const fn of(&self) -> &Checkpoint {
        &self.of
    }

    /// Whether another one is about the same inputs of the same parties.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.of, &self.keys) == (&other.of, &other.keys)
    }

    /// The key of a party.
    pub(crate) fn key(&self, party: PartyId) -> Option<Fingerprint> {
        self.keys.get(party.index()).copied()
    }

    /// All known statements.
    pub fn statements(&self) -> Vec<Missing> {
        self.said.iter().map(|(_, said)| said.clone()).collect()
    }

    /// Takes statements of others, as far as they are by one of the parties about another one, and about the checkpoint. A newer statement
    /// takes the place of an older one of the same party about the same; but a verdict is taken whole, and no statement after it.
    pub fn hear(&mut self, said: &[Missing]) {
        if self.out.is_some() {
            return;
        }
        let heard: Vec<(Fingerprint, Missing)> = said
            .iter()
            .take(MOST)
            .filter_map(|one| self.of_a_party(one))
            .collect();
        if self.conclude(&heard) {
            return;
        }
        for (by, one) in heard {
            let same =
                |(who, other): &&mut (Fingerprint, Missing)| *who == by && other.about == one.about;
            match self.said.iter_mut().find(same) {
                Some((_, other)) if other.time < one.time => *other = one,
                Some(_) => {}
                None => self.said.push((by, one)),
            }
        }
        let known = self.said.clone();
        self.conclude(&known);
    }

    /// A statement that counts, with the key of the party that made it.
    fn of_a_party(&self, one: &Missing) -> Option<(Fingerprint, Missing)> {
        let known = self.said.iter().find(|(_, other)| other == one);
        let by = match known {
            Some((by, _)) => *by,
            None => one.by(&self.of)?,
        };
        let is_party = |text: &str| self.keys.iter().any(|key| key.to_string() == text);
        (self.keys.contains(&by) && is_party(&one.about)).then(|| (by, one.clone()))
    }

    /// Takes the verdict that these statements are, if they are one.
    fn conclude(&mut self, said: &[(Fingerprint, Missing)]) -> bool {
        for (about, out) in self.keys.iter().zip(PartyId::FOUR) {
            let digits = about.to_string();
            let others = self.keys.iter().filter(|by| *by != about);
            let of = |by: &Fingerprint| {
                let own = |(who, one): &&(Fingerprint, Missing)| who == by && one.about == digits;
                said.iter().find(own).cloned()
            };
            let Some(all) = others.map(of).collect::<Option<Vec<_>>>() else {
                continue;
            };
            let times = all.iter().map(|(_, one)| one.time);
            let (first, last) = (times.clone().min(), times.max());
            let apart = first.zip(last).map_or(0, |(a, b)| b.abs_diff(a));
            if self.keys.len() == PartyId::FOUR.len() && apart <= TOGETHER.unsigned_abs() {
                (self.said, self.out) = (all, Some(out));
                return true;
            }
        }
        false
    }

    /// Whether the holder of a key has said about another, no longer ago than `age` seconds, that it is missing.
    pub(crate) fn says(&self, by: &Fingerprint, about: &Fingerprint, age: i64) -> bool {
        let about = about.to_string();
        let since = Time::now().seconds().saturating_sub(age);
        let mut own = self.said.iter();
        own.any(|(who, one)| who == by && one.about == about && one.time >= since)
    }

    /// The party that all the others have found missing.
    pub const fn out(&self) -> Option<PartyId> {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Checkpoint {
        Checkpoint {
            plan: PlanHash([7; 32]),
            run: "one".into(),
        }
    }

    struct World {
        keys: Vec<Identity>,
        pins: Vec<Fingerprint>,
    }

    impl World {
        fn new() -> Self {
            let keys: Vec<Identity> = (0..5).map(|_| Identity::generate().unwrap()).collect();
            let pins = keys[..4].iter().map(Identity::fingerprint).collect();
            World { keys, pins }
        }

        fn says(&self, by: usize, about: usize) -> Missing {
            let about = self.keys[about].fingerprint();
            Missing::make(&self.keys[by], &here(), &about).unwrap()
        }

        /// The same, so many seconds ago.
        fn said(&self, by: usize, about: usize, ago: i64) -> Missing {
            let mut said = self.says(by, about);
            said.time -= ago;
            let signature = self.keys[by].sign(CONTEXT, said.body().as_bytes()).unwrap();
            said.signature = hex(&signature);
            said
        }

        fn attendance(&self) -> Attendance {
            Attendance::new(here(), self.pins.clone())
        }

        /// Who is out after these statements.
        fn out(&self, said: &[Missing]) -> Option<PartyId> {
            let mut attendance = self.attendance();
            attendance.hear(said);
            attendance.out()
        }
    }

    #[test]
    fn all_three_others_put_a_party_out() {
        let world = World::new();
        for out in 0..4 {
            let others = (0..4).filter(|by| *by != out);
            let said: Vec<Missing> = others.map(|by| world.says(by, out)).collect();
            assert_eq!(world.out(&said), Some(PartyId::FOUR[out]));
            for less in 0..3 {
                let mut said = said.clone();
                said.remove(less);
                assert_eq!(world.out(&said), None);
            }
        }
    }

    #[test]
    fn a_byzantine_party_puts_no_other_out() {
        let world = World::new();
        let good = [0, 1, 2].map(|by| world.says(by, 3));
        assert!(world.out(&good).is_some());
        let with = |change: &dyn Fn(&mut Missing)| {
            let mut said = good.clone();
            change(&mut said[2]);
            world.out(&said)
        };
        // One party says it twice, for another, or about a different one; a stranger says it.
        let others = [
            world.says(0, 3),
            world.says(2, 1),
            world.says(4, 3),
            world.says(3, 3),
        ];
        for other in others {
            assert_eq!(with(&|said| *said = other.clone()), None);
        }
        let other = world.says(1, 3);
        let changes: [&dyn Fn(&mut Missing); 8] = [
            &|said| said.time += 1,
            &|said| said.time -= 1,
            &|said| said.plan = hex(&[8; 32]),
            &|said| said.run = "two".into(),
            &|said| said.about = world.pins[0].to_string(),
            &|said| said.key.clone_from(&other.key),
            &|said| said.signature.clone_from(&other.signature),
            &|said| said.signature = "x".into(),
        ];
        for (k, change) in changes.iter().enumerate() {
            assert_eq!(with(change), None, "change {k}");
        }
    }

    /// A verdict is about what one run has kept: neither another plan nor the same job begun anew inherits it.
    #[test]
    fn another_checkpoint_is_another_matter() {
        let world = World::new();
        let good = [0, 1, 2].map(|by| world.says(by, 3));
        let plan = PlanHash([8; 32]);
        let run = "two".to_owned();
        for of in [Checkpoint { plan, ..here() }, Checkpoint { run, ..here() }] {
            let mut attendance = Attendance::new(of, world.pins.clone());
            attendance.hear(&good);
            assert_eq!(
                (attendance.out(), attendance.statements()),
                (None, Vec::new())
            );
        }
    }

    #[test]
    fn statements_count_together_whenever_they_are_seen() {
        let world = World::new();
        let year = 365 * 24 * 3600;
        for (ages, out) in [
            ([0, 0, TOGETHER - 5], true),
            ([0, 0, TOGETHER + 5], false),
            ([0, 0, -TOGETHER - 5], false),
            ([year, year, year - TOGETHER + 5], true),
            ([i64::MAX / 2, 0, 0], false),
        ] {
            let said = [0, 1, 2].map(|by| world.said(by, 3, ages[by]));
            assert_eq!(world.out(&said).is_some(), out, "{ages:?}");
        }
    }

    #[test]
    fn a_newer_statement_takes_the_place_of_an_older_one() {
        let world = World::new();
        let mut attendance = world.attendance();
        attendance.hear(&[0, 1].map(|by| world.said(by, 3, 0)));
        attendance.hear(&[world.said(2, 3, TOGETHER + 5)]);
        assert_eq!(attendance.out(), None);
        assert!(attendance.says(&world.pins[2], &world.pins[3], TOGETHER + 50));
        assert!(!attendance.says(&world.pins[2], &world.pins[3], TOGETHER));
        attendance.hear(&[world.said(2, 3, 9)]);
        assert_eq!(attendance.statements().len(), 3);
        assert_eq!(attendance.out(), Some(PartyId::FOUR[3]));
    }

    /// A party that has signed again since does not miss the verdict that another one has seen.
    #[test]
    fn a_verdict_is_taken_whole_and_for_good() {
        let world = World::new();
        let seen = [700, 600, 300].map(|ago| ago + TOGETHER);
        let verdict: Vec<Missing> = (0..3).map(|by| world.said(by, 3, seen[by])).collect();
        let mut attendance = world.attendance();
        attendance.hear(&[world.said(1, 3, 0)]);
        attendance.hear(&verdict[..1]);
        assert_eq!(attendance.out(), None);
        attendance.hear(&verdict);
        assert_eq!(attendance.out(), Some(PartyId::FOUR[3]));
        assert_eq!(attendance.statements(), verdict);
        // Nothing after it.
        attendance.hear(&[0, 2, 3].map(|by| world.says(by, 1)));
        assert_eq!(attendance.out(), Some(PartyId::FOUR[3]));
        assert_eq!(attendance.statements(), verdict);
    }
}
