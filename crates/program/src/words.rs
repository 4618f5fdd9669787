//! The protocol and what it holds against, as a job file or a command line says them.

use veil_job::{
    Adversary, ChunkRows, Delivery, Ot, ProtocolKind, Schedule, Security, Statistical, Tables,
    Technique, Word,
};

use crate::error::JobProblem;

/// What a job file or a command line says of it; what neither says follows from the number of parties.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Words {
    /// How values are shared.
    pub protocol: Option<ProtocolKind>,
    /// Against whom.
    pub adversary: Option<Adversary>,
    /// By which technique.
    pub technique: Option<Technique>,
    /// The delivery of the result.
    pub delivery: Option<Delivery>,
    /// How gates are garbled.
    pub tables: Option<Tables>,
    /// In which order.
    pub schedule: Option<Schedule>,
    /// The statistical parameter.
    pub statistical: Option<Statistical>,
    /// Where transfers come from.
    pub ot: Option<Ot>,
    /// Rows that are computed together, at most.
    pub chunk_rows: Option<ChunkRows>,
}

impl Words {
    /// The security that these words mean among so many parties.
    ///
    /// # Errors
    /// [`JobProblem::Word`] with the first word that does not fit the number of parties or the other words.
    pub fn among(self, parties: usize) -> Result<Security, JobProblem> {
        let protocol = self.protocol.unwrap_or(ProtocolKind::among(parties));
        let usual = Security::of(protocol);
        let adversary = match (self.technique, self.adversary) {
            (None, said) => said.unwrap_or(usual.adversary),
            (Some(technique), Some(Adversary::SemiHonest)) => {
                let reason = "it is against a malicious party; write `adversary = \"malicious\"`, or leave it out";
                return Err(wrong(technique, reason.to_owned()));
            }
            (Some(technique), _) if protocol != ProtocolKind::Yao => {
                let reason = format!(
                    "circuits are cut and chosen by yao, and the job's protocol is {}; leave it out, or name two parties",
                    protocol.word()
                );
                return Err(wrong(technique, reason));
            }
            (Some(Technique::CutAndChoose), _) => Adversary::CutAndChoose,
        };
        let security = Security {
            protocol,
            adversary,
            delivery: self.delivery.unwrap_or(usual.delivery),
            tables: self.tables.unwrap_or(usual.tables),
            schedule: self.schedule.unwrap_or(usual.schedule),
            statistical: self.statistical.unwrap_or(usual.statistical),
            ot: self.ot.unwrap_or(usual.ot),
            chunk_rows: self.chunk_rows,
        };
        if protocol.parties() != parties {
            let needs = protocol.parties();
            return Err(wrong(
                protocol,
                format!("it is of {needs} parties, and the job names {parties}"),
            ));
        }
        if let (Some(tables), true) = (self.tables, protocol != ProtocolKind::Yao) {
            let reason = format!(
                "only yao has tables, and the job's protocol is {}",
                protocol.word()
            );
            return Err(wrong(tables, reason));
        }
        if let (Some(schedule), true) = (self.schedule, protocol != ProtocolKind::Yao) {
            let reason = format!(
                "only yao's gates are ordered by a schedule, and the job's protocol is {}; leave it out, or name two parties",
                protocol.word()
            );
            return Err(wrong(schedule, reason));
        }
        let cuts = security.adversary == Adversary::CutAndChoose;
        if let (Some(statistical), None) = (self.statistical, security.error()) {
            let reason = "only two parties have a statistical parameter, against a malicious one; leave it out, or write `adversary = \"malicious\"` between two";
            return Err(wrong(statistical, reason.to_owned()));
        }
        if let (Some(ot @ Ot::Silent), false) = (self.ot, security.takes_silent()) {
            let reason = "only authenticated garbling takes silent transfers; leave it out, or write `adversary = \"malicious\"` between two parties";
            return Err(wrong(ot, reason.to_owned()));
        }
        if let (Some(rows), true) = (self.chunk_rows, cuts) {
            let reason = "cut-and-choose computes one row at a time; leave it out";
            return Err(wrong(rows, reason.to_owned()));
        }
        if cuts && protocol != ProtocolKind::Yao {
            let reason = format!(
                "circuits are cut and chosen by yao, and the job's protocol is {}; write \"malicious\", or name two parties",
                protocol.word()
            );
            return Err(wrong(security.adversary, reason));
        }
        if security.delivery == Delivery::Guaranteed {
            // No protocol is left out: one more says here whether a lost party stops it.
            let reason = match (protocol, security.adversary) {
                (ProtocolKind::Rep3, _) => {
                    "one of three parties can always stop the others; name four, or write \"abort\""
                }
                (ProtocolKind::Yao, _) => {
                    "one of two parties can always stop the other; name four, or write \"abort\""
                }
                (ProtocolKind::Rep4, Adversary::SemiHonest) => {
                    "it needs `adversary = \"malicious\"`, who is found out; write that, or \"abort\""
                }
                (ProtocolKind::Rep4, Adversary::Malicious | Adversary::CutAndChoose) => {
                    return Ok(security);
                }
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
            technique: both(self.technique, options.technique)?,
            delivery: both(self.delivery, options.delivery)?,
            tables: both(self.tables, options.tables)?,
            schedule: both(self.schedule, options.schedule)?,
            statistical: both(self.statistical, options.statistical)?,
            ot: both(self.ot, options.ot)?,
            chunk_rows: both(self.chunk_rows, options.chunk_rows)?,
        })
    }

    /// These words, without the fields that `others` set.
    #[must_use]
    pub fn beyond(self, others: Self) -> Self {
        Words {
            protocol: self.protocol.filter(|_| others.protocol.is_none()),
            adversary: self.adversary.filter(|_| others.adversary.is_none()),
            technique: self.technique.filter(|_| others.technique.is_none()),
            delivery: self.delivery.filter(|_| others.delivery.is_none()),
            tables: self.tables.filter(|_| others.tables.is_none()),
            schedule: self.schedule.filter(|_| others.schedule.is_none()),
            statistical: (self.statistical).filter(|_| others.statistical.is_none()),
            ot: self.ot.filter(|_| others.ot.is_none()),
            chunk_rows: self.chunk_rows.filter(|_| others.chunk_rows.is_none()),
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
            of(self.technique),
            of(self.delivery),
            of(self.tables),
            of(self.schedule),
            of(self.statistical),
            of(self.ot),
            of(self.chunk_rows),
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

    /// The technique and the former word for both mean the same.
    #[test]
    fn a_technique_says_how_yao_holds_against_a_malicious_party() {
        let words = |adversary, technique| Words {
            adversary,
            technique,
            ..Words::default()
        };
        let cut = Some(Technique::CutAndChoose);
        let malicious = Some(Adversary::Malicious);
        let former = words(Some(Adversary::CutAndChoose), None).among(2).unwrap();
        for said in [None, malicious, Some(Adversary::CutAndChoose)] {
            assert_eq!(words(said, cut).among(2).unwrap(), former);
        }
        assert_eq!(
            words(malicious, cut).lines(),
            "adversary = \"malicious\"\ntechnique = \"cut-and-choose\"\n"
        );
        let refused = |words: Words, parties| words.among(parties).unwrap_err().to_string();
        assert_eq!(
            refused(words(Some(Adversary::SemiHonest), cut), 2),
            "`technique` is \"cut-and-choose\": it is against a malicious party; write `adversary = \"malicious\"`, or leave it out"
        );
        for (parties, protocol) in [(3, "rep3"), (4, "rep4")] {
            assert_eq!(
                refused(words(malicious, cut), parties),
                format!(
                    "`technique` is \"cut-and-choose\": circuits are cut and chosen by yao, and the job's protocol is {protocol}; leave it out, or name two parties"
                )
            );
        }
    }

    /// Where nothing is garbled against a malicious party, nothing takes silent transfers.
    #[test]
    fn silent_transfers_are_for_authenticated_garbling() {
        let words = |adversary, ot| Words {
            adversary,
            ot: Some(ot),
            ..Words::default()
        };
        let malicious = Some(Adversary::Malicious);
        let security = words(malicious, Ot::Silent).among(2).unwrap();
        assert_eq!(security.ot, Ot::Silent);
        assert_eq!(
            words(None, Ot::Extension).among(3).unwrap().ot,
            Ot::Extension
        );
        for (adversary, parties) in [
            (None, 2),
            (Some(Adversary::CutAndChoose), 2),
            (malicious, 3),
            (malicious, 4),
        ] {
            let refused = words(adversary, Ot::Silent).among(parties);
            assert_eq!(
                refused.unwrap_err().to_string(),
                "`ot` is \"silent\": only authenticated garbling takes silent transfers; leave it out, or write `adversary = \"malicious\"` between two parties"
            );
        }
    }

    /// Every combination: what is said stands, what is not follows from the number of parties, and what cannot be is refused.
    #[test]
    fn what_is_said_stands_and_the_rest_follows() {
        fn choices<W: Word>() -> impl Iterator<Item = Option<W>> {
            W::ALL.iter().copied().map(Some).chain([None])
        }
        for protocol in choices::<ProtocolKind>() {
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
                        let cut = adversary != Some(Adversary::CutAndChoose) || garbles;
                        let meant = words.among(parties);
                        let good = fits && guaranteed && cut;
                        assert_eq!(meant.is_ok(), good, "{words:?} {parties}");
                        let Ok(meant) = meant else { continue };
                        assert_eq!(meant.protocol.parties(), parties);
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
            protocol: Some(ProtocolKind::Rep4),
            ..Words::default()
        };
        let option = Words {
            adversary: Some(Adversary::SemiHonest),
            protocol: Some(ProtocolKind::Rep4),
            ..Words::default()
        };
        let all = file.and(option).expect("they agree");
        assert_eq!(all, option);
        assert_eq!(all.beyond(file).lines(), "adversary = \"semi-honest\"\n");
        let other = Words {
            protocol: Some(ProtocolKind::Rep3),
            ..Words::default()
        };
        let said = file.and(other).expect_err("they differ").to_string();
        assert!(
            said.starts_with("`--protocol rep3` contradicts `protocol = \"rep4\"` of the job"),
            "{said}"
        );
    }
}
