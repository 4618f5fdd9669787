//! Which protocol a job runs, against whom it holds, and what a cheat or a lost party can do to its end.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{ChunkRows, Schedule};

/// The protocols: how values are shared, and among how many.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ProtocolKind {
    /// Replicated protocol among three parties.
    Rep3,
    /// Replicated protocol among four parties.
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

/// Where two parties have the transfers from that their masks are made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Ot {
    /// The extension: hashes alone, and 32 bits for each transfer.
    Extension,
    /// Silent transfers, where they send less: under a bit for each of many, by an assumption about noisy codes. For slow links.
    Silent,
}

/// The statistical parameter s between two parties of whom one may be malicious: a cheat is not found with probability 2^-s, by cut-and-choose in each row, by
/// authenticated garbling in each batch of gates. More circuits, or more candidates for each gate, take more time.
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

/// The choices of a type and their words, in one list: all that there are, in the order of their strength where they have one.
macro_rules! words {
    ($choice:ident, $field:literal, $option:literal { $($variant:ident = $word:literal,)* }) => {
        impl Word for $choice {
            const FIELD: &'static str = $field;
            const OPTION: &'static str = $option;
            const ALL: &'static [Self] = &[$($choice::$variant),*];

            fn word(self) -> &'static str {
                match self {
                    $($choice::$variant => $word,)*
                }
            }
        }

        impl FromStr for $choice {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                Self::parse(text)
            }
        }
    };
}

words! {
    ProtocolKind, "protocol", "--protocol" {
        Rep3 = "rep3",
        Rep4 = "rep4",
        Yao = "yao",
    }
}

words! {
    Adversary, "adversary", "--adversary" {
        SemiHonest = "semi-honest",
        Malicious = "malicious",
        CutAndChoose = "malicious-cutchoose",
    }
}

/// How a protocol holds against a malicious party, where it can do so in a way that its name does not say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Technique {
    /// Many circuits are garbled, half of them are opened and checked: [`Adversary::CutAndChoose`].
    CutAndChoose,
}

words! {
    Technique, "technique", "--technique" {
        CutAndChoose = "cut-and-choose",
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

// `output` is a section of circuit jobs.
words! {
    Delivery, "delivery", "--delivery" {
        Abort = "abort",
        Guaranteed = "guaranteed",
    }
}

words! {
    Tables, "tables", "--tables" {
        HalfGates = "half-gates",
        ThreeHalves = "three-halves",
    }
}

words! {
    Ot, "ot", "--ot" {
        Extension = "extension",
        Silent = "silent",
    }
}

impl FromStr for Statistical {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::parse(text)
    }
}

impl ProtocolKind {
    /// How many parties compute.
    pub const fn parties(self) -> usize {
        match self {
            ProtocolKind::Rep3 => 3,
            ProtocolKind::Rep4 => 4,
            ProtocolKind::Yao => 2,
        }
    }

    /// The protocol of so many parties.
    pub const fn among(parties: usize) -> Self {
        match parties {
            2 => ProtocolKind::Yao,
            4 => ProtocolKind::Rep4,
            _ => ProtocolKind::Rep3,
        }
    }
}

/// What a run rests on beyond what every run rests on: ciphers, hashes and, between two parties, curves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Assumption {
    /// Learning parity with regular noise is hard for the parameters of silent transfers and of vectors of products.
    RegularLpn,
}

impl Assumption {
    /// All that there are.
    pub const ALL: [Assumption; 1] = [Assumption::RegularLpn];

    /// As rules of a policy name it.
    pub const fn word(self) -> &'static str {
        match self {
            Assumption::RegularLpn => "regular-lpn",
        }
    }

    /// As a sentence goes on behind "if".
    pub const fn sentence(self) -> &'static str {
        match self {
            Assumption::RegularLpn => "learning parity with regular noise is hard",
        }
    }
}

/// All that a job says of its security. Public, and under the plan hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Security {
    /// How values are shared.
    pub protocol: ProtocolKind,
    /// Against whom.
    pub adversary: Adversary,
    /// The delivery of the result if a party cheats or is lost.
    pub delivery: Delivery,
    /// How gates are garbled, where they are.
    pub tables: Tables,
    /// In which order they are, where they are.
    pub schedule: Schedule,
    /// How likely a cheat gets away, where two parties garble against a malicious one.
    pub statistical: Statistical,
    /// Where transfers come from, where parties garble.
    pub ot: Ot,
    /// Rows that are computed together, at most; without a number the planner's.
    pub chunk_rows: Option<ChunkRows>,
}

impl Security {
    /// The security of a job of so many parties that says nothing.
    pub const fn among(parties: usize) -> Self {
        Self::of(ProtocolKind::among(parties))
    }

    /// What a job of a protocol has if it says nothing else.
    pub const fn of(protocol: ProtocolKind) -> Self {
        let adversary = match protocol {
            ProtocolKind::Rep3 | ProtocolKind::Yao => Adversary::SemiHonest,
            ProtocolKind::Rep4 => Adversary::Malicious,
        };
        Security {
            protocol,
            adversary,
            delivery: Delivery::Abort,
            tables: Tables::HalfGates,
            schedule: Schedule::Layers,
            statistical: Statistical::USUAL,
            ot: Ot::Extension,
            chunk_rows: None,
        }
    }

    /// The statistical parameter, where there is one.
    pub fn error(self) -> Option<Statistical> {
        let garbled = self.protocol == ProtocolKind::Yao;
        (garbled && self.adversary != Adversary::SemiHonest).then_some(self.statistical)
    }

    /// Whether the protocol can take its transfers from silent ones: authenticated garbling, whose masks are random anyway.
    pub fn takes_silent(self) -> bool {
        (self.protocol, self.adversary) == (ProtocolKind::Yao, Adversary::Malicious)
    }

    /// Whether columns of relations are integers too, which parties convert, add up and open as they move rows. Two parties have wires alone, and what three parties prove of a move is of
    /// bits: their programs over relations are of bits alone.
    pub const fn moves_integers(self) -> bool {
        match self.protocol {
            ProtocolKind::Rep3 => matches!(self.adversary, Adversary::SemiHonest),
            ProtocolKind::Rep4 => true,
            ProtocolKind::Yao => false,
        }
    }

    /// What a run of it may rest on beyond what every run rests on. A plan may come to need less than the job allows.
    pub fn assumptions(self) -> &'static [Assumption] {
        match self.ot {
            Ot::Silent if self.takes_silent() => &[Assumption::RegularLpn],
            Ot::Silent | Ot::Extension => &[],
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
        write!(f, "{}, {adversary}, {delivery}", self.protocol.word())?;
        match self.tables {
            Tables::HalfGates => Ok(()),
            Tables::ThreeHalves => write!(f, ", {}", self.tables.word()),
        }?;
        match self.schedule {
            Schedule::Layers => Ok(()),
            Schedule::List(_) => write!(f, ", {}", self.schedule.word()),
        }?;
        match self.ot {
            Ot::Extension => Ok(()),
            Ot::Silent => f.write_str(", silent transfers"),
        }?;
        match self.error() {
            Some(error) => write!(f, ", 2^-{}", error.bits()),
            None => Ok(()),
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
    /// A cheat between two parties is missed with probability 2 to the minus this: in each row by cut-and-choose, else in each batch of gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistical: Option<u8>,
    /// What it rests on beyond what every run rests on, as in "learning parity with regular noise is hard".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
    /// The party of the job that was out when the others finished it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<String>,
}

impl Guarantee {
    /// Of a run with all parties.
    pub fn of(security: Security) -> Self {
        Guarantee {
            protocol: security.protocol.word().to_owned(),
            adversary: security.adversary.word().to_owned(),
            delivery: security.delivery.word().to_owned(),
            parties: security.protocol.parties(),
            statistical: security.error().map(Statistical::bits),
            assumptions: sentences(security.assumptions()),
            without: None,
        }
    }

    /// The same of a run that rests on these.
    #[must_use]
    pub(crate) fn resting_on(self, assumptions: &[Assumption]) -> Self {
        Guarantee {
            assumptions: sentences(assumptions),
            ..self
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

fn sentences(assumptions: &[Assumption]) -> Vec<String> {
    let sentences = assumptions.iter().map(|of| of.sentence().to_owned());
    sentences.collect()
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
            assumptions,
            without,
        } = self;
        write!(f, "{protocol}, {adversary}, {delivery}, {parties} parties")?;
        if let Some(bits) = statistical {
            write!(f, ", error of 2^-{bits}")?;
        }
        if !assumptions.is_empty() {
            write!(f, ", if {}", assumptions.join(" and "))?;
        }
        match without {
            Some(out) => write!(f, ", without `{out}`"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_move_where_nothing_is_proved_of_them() {
        let moves =
            |protocol, adversary| Security::of(protocol).against(adversary).moves_integers();
        assert!(moves(ProtocolKind::Rep3, Adversary::SemiHonest));
        assert!(!moves(ProtocolKind::Rep3, Adversary::Malicious));
        assert!(moves(ProtocolKind::Rep4, Adversary::Malicious));
        assert!(!moves(ProtocolKind::Yao, Adversary::SemiHonest));
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
        let two = Security::of(ProtocolKind::Yao).against(Adversary::CutAndChoose);
        let want = "yao, malicious-cutchoose, abort, 2 parties, error of 2^-40";
        assert_eq!(said(&Guarantee::of(two)), want);
        let want = "yao, malicious, abort, 2 parties, error of 2^-40";
        let authenticated = two.against(Adversary::Malicious);
        assert_eq!(said(&Guarantee::of(authenticated)), want);
        assert_eq!(authenticated.to_string(), "yao, malicious, abort, 2^-40");
        let silent = Security {
            ot: Ot::Silent,
            ..authenticated
        };
        let want = "yao, malicious, abort, silent transfers, 2^-40";
        assert_eq!(silent.to_string(), want);
        let want = "yao, malicious, abort, 2 parties, error of 2^-40, if learning parity with regular noise is hard";
        assert_eq!(said(&Guarantee::of(silent)), want);
        // What takes no silent transfers does not rest on what these rest on.
        for other in [Adversary::SemiHonest, Adversary::CutAndChoose] {
            assert_eq!(silent.against(other).assumptions(), &[]);
        }
    }
}
