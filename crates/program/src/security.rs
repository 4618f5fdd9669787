//! Which protocol a job runs, against whom it holds, and what a cheat or a lost party can do to its end.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Schedule;
use crate::error::JobProblem;

/// The protocols: how values are shared, and among how many.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Sharing {
    /// Replicated sharing among three parties.
    Rep3,
    /// Replicated sharing among four parties.
    Rep4,
    /// Garbled circuits between two parties: the first garbles, the second evaluates.
    Yao,
}

/// The power of one corrupt party that the protocol withstands. The weakest comes first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Adversary {
    /// It follows the protocol, and looks at all that it sees.
    SemiHonest,
    /// It does whatever it likes.
    Malicious,
    /// It does whatever it likes, and a garbled circuit is checked by garbling many of which half are opened.
    CutAndChoose,
}

/// The power of a corrupt or a lost party over the end of a run. The weakest guarantee comes first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Delivery {
    /// It can make the job stop, without a result.
    Abort,
    /// Nothing: the others finish the job.
    Guaranteed,
}

/// How the gates of a garbled circuit are garbled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Tables {
    /// By half-gates: 32 bytes per AND.
    HalfGates,
    /// By three halves: 24.6 bytes per AND, and half as much work again. For slow links.
    ThreeHalves,
}

/// The statistical parameter s of cut-and-choose: a cheat goes undetected with probability 2^-s. More circuits take more time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Statistical(u8);

impl Statistical {
    /// The customary value.
    pub const USUAL: Statistical = Statistical(40);
    /// The least value of a job. Benches measure less, to compare with published figures.
    pub const LEAST: Statistical = Statistical(40);

    /// s.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// A choice that is written as one word.
pub trait Word: Copy + PartialEq + 'static {
    /// The field of a job file.
    const FIELD: &'static str;
    /// The option of a command.
    const OPTION: &'static str;
    /// All that can be chosen.
    const ALL: &'static [Self];

    /// The word.
    fn word(self) -> &'static str;

    /// The choice behind a word; else what may be written.
    ///
    /// # Errors
    /// [`UnknownWord`], with the words that there are.
    fn parse(text: &str) -> Result<Self, UnknownWord> {
        let found = Self::ALL.iter().find(|choice| choice.word() == text);
        found.copied().ok_or_else(|| UnknownWord {
            known: Self::ALL.iter().map(|choice| choice.word()).collect(),
        })
    }
}

/// A word that is no choice.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("write \"{}\"", known.join("\" or \""))]
pub struct UnknownWord {
    /// The words that are.
    pub known: Vec<&'static str>,
}

impl Word for Sharing {
    const FIELD: &'static str = "protocol";
    const OPTION: &'static str = "--protocol";
    const ALL: &'static [Self] = &[Sharing::Rep3, Sharing::Rep4, Sharing::Yao];

    fn word(self) -> &'static str {
        match self {
            Sharing::Rep3 => "rep3",
            Sharing::Rep4 => "rep4",
            Sharing::Yao => "yao",
        }
    }
}

impl Word for Adversary {
    const FIELD: &'static str = "adversary";
    const OPTION: &'static str = "--adversary";
    const ALL: &'static [Self] = &[
        Adversary::SemiHonest,
        Adversary::Malicious,
        Adversary::CutAndChoose,
    ];

    fn word(self) -> &'static str {
        match self {
            Adversary::SemiHonest => "semi-honest",
            Adversary::Malicious => "malicious",
            Adversary::CutAndChoose => "malicious-cutchoose",
        }
    }
}

/// The values there are: those of the published measurements (Frederiksen, Nielsen 2013), and the customary ones.
macro_rules! statistical {
    ($($bits:literal)*) => {
        impl Word for Statistical {
            const FIELD: &'static str = "statistical";
            const OPTION: &'static str = "--statistical";
            const ALL: &'static [Self] = &[$(Statistical($bits)),*];

            fn word(self) -> &'static str {
                match self.0 {
                    $($bits => stringify!($bits),)*
                    _ => unreachable!("there are no others"),
                }
            }
        }
    };
}
statistical!(9 19 29 39 40 49 59 64 69 79 80 89 99 109 119);

impl Word for Delivery {
    // `output` is a section of circuit jobs.
    const FIELD: &'static str = "delivery";
    const OPTION: &'static str = "--output";
    const ALL: &'static [Self] = &[Delivery::Abort, Delivery::Guaranteed];

    fn word(self) -> &'static str {
        match self {
            Delivery::Abort => "abort",
            Delivery::Guaranteed => "guaranteed",
        }
    }
}

impl Word for Tables {
    const FIELD: &'static str = "tables";
    const OPTION: &'static str = "--tables";
    const ALL: &'static [Self] = &[Tables::HalfGates, Tables::ThreeHalves];

    fn word(self) -> &'static str {
        match self {
            Tables::HalfGates => "half-gates",
            Tables::ThreeHalves => "three-halves",
        }
    }
}

impl FromStr for Sharing {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::parse(text)
    }
}

impl FromStr for Adversary {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::parse(text)
    }
}

impl FromStr for Statistical {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::parse(text)
    }
}

impl FromStr for Tables {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::parse(text)
    }
}

impl FromStr for Delivery {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::parse(text)
    }
}

impl Sharing {
    /// How many parties compute.
    pub const fn parties(self) -> usize {
        match self {
            Sharing::Rep3 => 3,
            Sharing::Rep4 => 4,
            Sharing::Yao => 2,
        }
    }

    /// The protocol of so many parties.
    pub const fn among(parties: usize) -> Self {
        match parties {
            2 => Sharing::Yao,
            4 => Sharing::Rep4,
            _ => Sharing::Rep3,
        }
    }
}

/// All that a job says of its security. Public, and under the plan hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Security {
    /// How values are shared.
    pub sharing: Sharing,
    /// Against whom.
    pub adversary: Adversary,
    /// The delivery of the result if a party cheats or is lost.
    pub delivery: Delivery,
    /// How gates are garbled, where they are.
    pub tables: Tables,
    /// In which order they are, where they are.
    pub schedule: Schedule,
    /// How likely a cheat of cut-and-choose gets away, where there is one.
    pub statistical: Statistical,
}

impl Security {
    /// The security of a job of so many parties that says nothing.
    pub const fn among(parties: usize) -> Self {
        Self::of(Sharing::among(parties))
    }

    /// The security of a job of a protocol that says nothing else.
    pub const fn of(sharing: Sharing) -> Self {
        let adversary = match sharing {
            Sharing::Rep3 | Sharing::Yao => Adversary::SemiHonest,
            Sharing::Rep4 => Adversary::Malicious,
        };
        Security {
            sharing,
            adversary,
            delivery: Delivery::Abort,
            tables: Tables::HalfGates,
            schedule: Schedule::Layers,
            statistical: Statistical::USUAL,
        }
    }

    /// The same against another adversary.
    #[must_use]
    pub const fn against(self, adversary: Adversary) -> Self {
        Security { adversary, ..self }
    }
}

/// As in "rep4, malicious, abort".
impl fmt::Display for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (adversary, delivery) = (self.adversary.word(), self.delivery.word());
        write!(f, "{}, {adversary}, {delivery}", self.sharing.word())?;
        match self.tables {
            Tables::HalfGates => Ok(()),
            Tables::ThreeHalves => write!(f, ", {}", self.tables.word()),
        }?;
        match self.schedule {
            Schedule::Layers => Ok(()),
            Schedule::List(_) => write!(f, ", {}", self.schedule.word()),
        }?;
        match self.adversary {
            Adversary::CutAndChoose => write!(f, ", 2^-{}", self.statistical.bits()),
            Adversary::SemiHonest | Adversary::Malicious => Ok(()),
        }
    }
}

/// The guarantee of a run. Results, receipts and `veil explain` say it in the same words.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Guarantee {
    /// How values were shared.
    pub protocol: String,
    /// Against whom.
    pub adversary: String,
    /// The delivery of the result if a party cheated or was lost.
    pub delivery: String,
    /// How many parties computed.
    pub parties: usize,
    /// A cheat that cut-and-choose misses has probability 2 to the minus this, in each row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistical: Option<u8>,
    /// The party of the job that was out when the others finished it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<String>,
}

impl Guarantee {
    /// Of a run with all parties.
    pub fn of(security: Security) -> Self {
        Guarantee {
            protocol: security.sharing.word().to_owned(),
            adversary: security.adversary.word().to_owned(),
            delivery: security.delivery.word().to_owned(),
            parties: security.sharing.parties(),
            statistical: (security.adversary == Adversary::CutAndChoose)
                .then(|| security.statistical.bits()),
            without: None,
        }
    }

    /// Of a run in which the other parties finished a job without `out`: what the run has is its own, and the result was guaranteed.
    pub fn finished(run: Security, out: String) -> Self {
        Guarantee {
            delivery: Delivery::Guaranteed.word().to_owned(),
            without: Some(out),
            ..Self::of(run)
        }
    }
}

/// As in "rep4, malicious, abort, 4 parties".
impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Guarantee {
            protocol,
            adversary,
            delivery,
            parties,
            statistical,
            without,
        } = self;
        write!(f, "{protocol}, {adversary}, {delivery}, {parties} parties")?;
        if let Some(bits) = statistical {
            write!(f, ", error of 2^-{bits}")?;
        }
        match without {
            Some(out) => write!(f, ", without `{out}`"),
            None => Ok(()),
        }
    }
}

/// The words of a job file or a command line about security; a missing word follows from the number of parties.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Words {
    /// How values are shared.
    pub protocol: Option<Sharing>,
    /// Against whom.
    pub adversary: Option<Adversary>,
    /// The delivery of the result.
    pub delivery: Option<Delivery>,
    /// How gates are garbled.
    pub tables: Option<Tables>,
    /// In which order.
    pub schedule: Option<Schedule>,
    /// The statistical parameter.
    pub statistical: Option<Statistical>,
}

impl Words {
    /// The security that these words mean among so many parties.
    ///
    /// # Errors
    /// [`JobProblem::Word`] with the first word that does not fit the number of parties or the other words.
    pub fn among(self, parties: usize) -> Result<Security, JobProblem> {
        let sharing = self.protocol.unwrap_or(Sharing::among(parties));
        let usual = Security::of(sharing);
        let security = Security {
            sharing,
            adversary: self.adversary.unwrap_or(usual.adversary),
            delivery: self.delivery.unwrap_or(usual.delivery),
            tables: self.tables.unwrap_or(usual.tables),
            schedule: self.schedule.unwrap_or(usual.schedule),
            statistical: self.statistical.unwrap_or(usual.statistical),
        };
        if sharing.parties() != parties {
            let needs = sharing.parties();
            return Err(wrong(
                sharing,
                format!("it is of {needs} parties, and the job names {parties}"),
            ));
        }
        if let (Some(tables), true) = (self.tables, sharing != Sharing::Yao) {
            let reason = format!(
                "only yao has tables, and the job's protocol is {}",
                sharing.word()
            );
            return Err(wrong(tables, reason));
        }
        if let (Some(schedule), true) = (self.schedule, sharing != Sharing::Yao) {
            let reason = format!(
                "only yao's gates are ordered by a schedule, and the job's protocol is {}; leave it out, or name two parties",
                sharing.word()
            );
            return Err(wrong(schedule, reason));
        }
        let cuts = security.adversary == Adversary::CutAndChoose;
        if let (Some(statistical), false) = (self.statistical, cuts) {
            let reason = "only `adversary = \"malicious-cutchoose\"` has a statistical parameter; leave it out, or write that";
            return Err(wrong(statistical, reason.to_owned()));
        }
        if cuts && sharing != Sharing::Yao {
            let reason = format!(
                "circuits are cut and chosen by yao, and the job's protocol is {}; write \"malicious\", or name two parties",
                sharing.word()
            );
            return Err(wrong(security.adversary, reason));
        }
        if security.adversary == Adversary::Malicious && sharing == Sharing::Yao {
            let reason = "garbled circuits hold against such a party by cut-and-choose; write \"malicious-cutchoose\", or name three parties";
            return Err(wrong(security.adversary, reason.to_owned()));
        }
        if security.delivery == Delivery::Guaranteed {
            let reason = match security {
                Security {
                    sharing: Sharing::Rep3,
                    ..
                } => {
                    "one of three parties can always stop the others; name four, or write \"abort\""
                }
                Security {
                    sharing: Sharing::Yao,
                    ..
                } => "one of two parties can always stop the other; name four, or write \"abort\"",
                Security {
                    adversary: Adversary::SemiHonest,
                    ..
                } => {
                    "it needs `adversary = \"malicious\"`, who is found out; write that, or \"abort\""
                }
                _ => return Ok(security),
            };
            return Err(wrong(security.delivery, reason.to_owned()));
        }
        Ok(security)
    }

    /// These words, with the words of `options` where they say nothing. Where both say something it must be the same.
    ///
    /// # Errors
    /// [`JobProblem::Chosen`] for the first word in which the two differ.
    pub fn and(self, options: Self) -> Result<Self, JobProblem> {
        Ok(Words {
            protocol: both(self.protocol, options.protocol)?,
            adversary: both(self.adversary, options.adversary)?,
            delivery: both(self.delivery, options.delivery)?,
            tables: both(self.tables, options.tables)?,
            schedule: both(self.schedule, options.schedule)?,
            statistical: both(self.statistical, options.statistical)?,
        })
    }

    /// These words, without the fields that `others` set.
    #[must_use]
    pub fn beyond(self, others: Self) -> Self {
        Words {
            protocol: self.protocol.filter(|_| others.protocol.is_none()),
            adversary: self.adversary.filter(|_| others.adversary.is_none()),
            delivery: self.delivery.filter(|_| others.delivery.is_none()),
            tables: self.tables.filter(|_| others.tables.is_none()),
            schedule: self.schedule.filter(|_| others.schedule.is_none()),
            statistical: (self.statistical).filter(|_| others.statistical.is_none()),
        }
    }

    /// The words that are set: field of a job, option of a command, word.
    pub fn said(self) -> impl Iterator<Item = [&'static str; 3]> {
        fn of<W: Word>(word: Option<W>) -> Option<[&'static str; 3]> {
            word.map(|word| [W::FIELD, W::OPTION, word.word()])
        }
        let all = [
            of(self.protocol),
            of(self.adversary),
            of(self.delivery),
            of(self.tables),
            of(self.schedule),
            of(self.statistical),
        ];
        all.into_iter().flatten()
    }

    /// Lines of a job file that say these words.
    pub fn lines(self) -> String {
        let lines = self.said();
        let lines = lines.map(|[field, _, word]| format!("{field} = \"{word}\"\n"));
        lines.collect()
    }
}

fn wrong<W: Word>(word: W, reason: String) -> JobProblem {
    JobProblem::Word {
        field: W::FIELD,
        value: word.word().to_owned(),
        reason,
    }
}

fn both<W: Word>(file: Option<W>, option: Option<W>) -> Result<Option<W>, JobProblem> {
    match (file, option) {
        (Some(file), Some(option)) if file != option => Err(JobProblem::Chosen {
            option: W::OPTION,
            chosen: option.word(),
            field: W::FIELD,
            file: file.word(),
        }),
        (file, option) => Ok(file.or(option)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination: what is said stands, what is not follows from the number of parties, and what cannot be is refused.
    #[test]
    fn what_is_said_stands_and_the_rest_follows() {
        fn choices<W: Word>() -> impl Iterator<Item = Option<W>> {
            W::ALL.iter().copied().map(Some).chain([None])
        }
        for protocol in choices::<Sharing>() {
            for adversary in choices::<Adversary>() {
                for delivery in choices::<Delivery>() {
                    for parties in [2, 3, 4] {
                        let words = Words {
                            protocol,
                            adversary,
                            delivery,
                            ..Words::default()
                        };
                        let fits = protocol.is_none_or(|p| p.parties() == parties);
                        let guaranteed = delivery != Some(Delivery::Guaranteed)
                            || parties == 4 && adversary != Some(Adversary::SemiHonest);
                        let garbles = parties == 2;
                        let cut = match adversary {
                            Some(Adversary::CutAndChoose) => garbles,
                            Some(Adversary::Malicious) => !garbles,
                            Some(Adversary::SemiHonest) | None => true,
                        };
                        let meant = words.among(parties);
                        let good = fits && guaranteed && cut;
                        assert_eq!(meant.is_ok(), good, "{words:?} {parties}");
                        let Ok(meant) = meant else { continue };
                        assert_eq!(meant.sharing.parties(), parties);
                        let usual = if parties == 4 {
                            Adversary::Malicious
                        } else {
                            Adversary::SemiHonest
                        };
                        assert_eq!(meant.adversary, adversary.unwrap_or(usual));
                        assert_eq!(meant.delivery, delivery.unwrap_or(Delivery::Abort));
                    }
                }
            }
        }
    }

    #[test]
    fn tables_are_of_garbled_circuits() {
        let words = Words {
            tables: Some(Tables::ThreeHalves),
            ..Words::default()
        };
        let security = words.among(2).expect("two parties garble");
        assert_eq!(
            security.to_string(),
            "yao, semi-honest, abort, three-halves"
        );
        for parties in [3, 4] {
            let refused = words.among(parties).expect_err("nothing is garbled");
            let said =
                "`tables` is \"three-halves\": only yao has tables, and the job's protocol is rep";
            assert!(refused.to_string().starts_with(said), "{refused}");
        }
    }

    #[test]
    fn schedules_are_of_garbled_circuits() {
        for &schedule in Schedule::ALL {
            let words = Words {
                schedule: Some(schedule),
                ..Words::default()
            };
            let security = words.among(2).expect("two parties garble");
            assert_eq!(security.schedule, schedule);
            let usual = schedule == Schedule::Layers;
            let word = if usual {
                String::new()
            } else {
                format!(", {}", schedule.word())
            };
            assert_eq!(
                security.to_string(),
                format!("yao, semi-honest, abort{word}")
            );
            assert_eq!(
                words.lines(),
                format!("schedule = \"{}\"\n", schedule.word())
            );
            for parties in [3, 4] {
                let refused = words.among(parties).expect_err("nothing is garbled");
                let said = format!("`schedule` is \"{}\": only yao's gates", schedule.word());
                assert!(refused.to_string().starts_with(&said), "{refused}");
            }
        }
        let unknown = Schedule::parse("list(3)").expect_err("no hardware has three rows");
        assert!(unknown.known.contains(&"list(2)"));
    }

    #[test]
    fn options_fill_in_and_never_overrule() {
        let file = Words {
            protocol: Some(Sharing::Rep4),
            ..Words::default()
        };
        let option = Words {
            adversary: Some(Adversary::SemiHonest),
            protocol: Some(Sharing::Rep4),
            ..Words::default()
        };
        let all = file.and(option).expect("they agree");
        assert_eq!(all, option);
        assert_eq!(all.beyond(file).lines(), "adversary = \"semi-honest\"\n");
        let other = Words {
            protocol: Some(Sharing::Rep3),
            ..Words::default()
        };
        let said = file.and(other).expect_err("they differ").to_string();
        assert!(
            said.starts_with("`--protocol rep3` contradicts `protocol = \"rep4\"` of the job"),
            "{said}"
        );
    }

    #[test]
    fn a_guarantee_is_of_the_run_and_names_who_is_out() {
        let four = Security {
            delivery: Delivery::Guaranteed,
            ..Security::among(4)
        };
        let said = |guarantee: &Guarantee| {
            let text = serde_json::to_string(guarantee).unwrap();
            let read: Guarantee = serde_json::from_str(&text).unwrap();
            assert_eq!(read, *guarantee);
            guarantee.to_string()
        };
        let all = Guarantee::of(four);
        assert_eq!(said(&all), "rep4, malicious, guaranteed, 4 parties");
        let three = Guarantee::finished(Security::among(3), "b".into());
        let want = "rep3, semi-honest, guaranteed, 3 parties, without `b`";
        assert_eq!(said(&three), want);
        let two = Security::of(Sharing::Yao).against(Adversary::CutAndChoose);
        let want = "yao, malicious-cutchoose, abort, 2 parties, error of 2^-40";
        assert_eq!(said(&Guarantee::of(two)), want);
    }
}
