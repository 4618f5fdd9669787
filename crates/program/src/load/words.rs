//! A job's words about its security, in the file and on the command line.

use std::sync::Arc;

use toml::Spanned;
use veil_circuit::Gate;
use veil_math::Ring;

use crate::{
    Job, JobProblem, Kind, Shows, Words,
    error::Fault,
    raw::{self, RawJob},
};
use veil_job::{
    Adversary, Audience, ChunkRows, Delivery, Ot, ProtocolKind, Schedule, Security, Statistical,
    Tables, Technique, Word,
};

/// The words of a file.
pub(super) fn of(raw: &RawJob) -> Result<Words, Fault> {
    Ok(Words {
        protocol: word(raw.protocol.as_ref())?,
        adversary: word(raw.adversary.as_ref())?,
        technique: word(raw.technique.as_ref())?,
        delivery: word(raw.delivery.as_ref())?,
        tables: word(raw.tables.as_ref())?,
        schedule: word(raw.schedule.as_ref())?,
        statistical: word(raw.statistical.as_ref())?,
        ot: word(raw.ot.as_ref())?,
        chunk_rows: word(raw.chunk_rows.as_ref())?,
    })
}

fn word<W: Word>(said: Option<&Spanned<String>>) -> Result<Option<W>, Fault> {
    let Some(said) = said else { return Ok(None) };
    W::parse(said.get_ref()).map(Some).map_err(|known| {
        let problem = JobProblem::Word {
            field: W::FIELD,
            value: said.get_ref().clone(),
            reason: known.to_string(),
        };
        Fault::new(said.span(), problem)
    })
}

/// A problem, at the word that it is about.
pub(super) fn at(raw: &RawJob, problem: JobProblem) -> Fault {
    let place = match &problem {
        JobProblem::Word { field, .. } if *field == Delivery::FIELD => &raw.delivery,
        JobProblem::Word { field, .. } if *field == Technique::FIELD => &raw.technique,
        JobProblem::Word { field, .. } if *field == Tables::FIELD => &raw.tables,
        JobProblem::Word { field, .. } if *field == Schedule::FIELD => &raw.schedule,
        JobProblem::Word { field, .. } if *field == Statistical::FIELD => &raw.statistical,
        JobProblem::Word { field, .. } if *field == Ot::FIELD => &raw.ot,
        JobProblem::Word { field, .. } if *field == ChunkRows::FIELD => &raw.chunk_rows,
        JobProblem::Word { field, .. } if *field == Adversary::FIELD => &raw.adversary,
        _ => &raw.protocol,
    };
    let span = place.as_ref().map_or(raw.parties.span(), Spanned::span);
    Fault::new(span, problem)
}

/// Whether parties answer queries under these words: they have to end when one of them is lost.
fn answered_by(security: Security) -> Result<(), JobProblem> {
    if security.delivery == Delivery::Guaranteed {
        let reason = "queries are not run again without a party that is lost; write \"abort\"";
        return Err(JobProblem::Word {
            field: Delivery::FIELD,
            value: security.delivery.word().to_owned(),
            reason: reason.to_owned(),
        });
    }
    Ok(())
}

impl Job {
    /// Takes what a command line says of the job's security, where the file says nothing. Every participant must choose alike, for
    /// it is under the plan hash.
    ///
    /// # Errors
    /// [`JobProblem::Chosen`] if the file says something else, [`JobProblem::Word`] if the choice is none for this job.
    pub fn choose(&mut self, options: Words) -> Result<(), JobProblem> {
        let all = self.said.and(options)?;
        self.secure(self.meant(all)?)?;
        self.chosen = all.beyond(self.said);
        Ok(())
    }

    /// What words mean among the parties of the job: an intersection that says nothing holds against a malicious party, and none that opens keys alone does not.
    pub(super) fn meant(&self, words: Words) -> Result<Security, JobProblem> {
        let security = words.among(self.roles.parties.len())?;
        let Kind::Intersection(of) = &self.kind else {
            return Ok(security);
        };
        let circuit = of.opens() != Shows::Keys;
        if circuit && words.adversary.is_some() && words.technique.is_none() {
            return Ok(security);
        }
        if words.adversary.is_some_and(|of| of != Adversary::Malicious) || words.technique.is_some()
        {
            let reason = "keys meet by a protocol that withstands a malicious party, and costs little more than others; leave `adversary` and `technique` out";
            return Err(JobProblem::Word {
                field: Adversary::FIELD,
                value: security.adversary.word().to_owned(),
                reason: reason.to_owned(),
            });
        }
        Ok(security.against(Adversary::Malicious))
    }

    /// The file's words about the job's security, and the words of the command line.
    pub fn words(&self) -> [Words; 2] {
        [self.said, self.chosen]
    }

    /// Whether the job garbles, and neither its file nor the command line says in which order: the garbler may say so.
    pub fn leaves_schedule(&self) -> bool {
        let said = self.words().iter().any(|words| words.schedule.is_some());
        self.spec.security.protocol == ProtocolKind::Yao && !said
    }

    /// The same job with gates in this order, as if the command line had said so too.
    ///
    /// # Errors
    /// As [`Job::choose`] says.
    pub fn ordered(&self, schedule: Schedule) -> Result<Self, JobProblem> {
        let mut job = self.clone();
        job.choose(Words {
            schedule: Some(schedule),
            ..self.chosen
        })?;
        Ok(job)
    }

    /// Whether neither the job's file nor the command line says how many rows are computed together: devices may. Cut-and-choose computes one at a
    /// time.
    pub fn leaves_chunk_rows(&self) -> bool {
        let security = self.spec.security;
        security.chunk_rows.is_none() && security.adversary != Adversary::CutAndChoose
    }

    /// The same job in chunks of so many rows at most, as if the command line had said so too.
    ///
    /// # Errors
    /// As [`Job::choose`] says.
    pub fn in_chunks(&self, rows: ChunkRows) -> Result<Self, JobProblem> {
        let mut job = self.clone();
        job.choose(Words {
            chunk_rows: Some(rows),
            ..self.chosen
        })?;
        Ok(job)
    }

    /// Takes what the job's words mean. Output is guaranteed from what a first stage has kept, and for all parties or for recipients who
    /// compute nothing: what is for one party alone is lost with it. What is opened has to be the same in every run, and three parties have
    /// to be secure against one that lies.
    pub(super) fn secure(&mut self, security: Security) -> Result<(), JobProblem> {
        let bits = security.statistical.bits();
        if security.error().is_some() && bits < Statistical::LEAST.bits() {
            let least = Statistical::LEAST.word();
            let reason = format!(
                "a cheat would get away with probability 2^-{bits}; write \"{least}\" or more, less is for `veil-lab bench cut` alone"
            );
            return Err(JobProblem::Word {
                field: Statistical::FIELD,
                value: security.statistical.word().to_owned(),
                reason,
            });
        }
        if let Kind::Query(_) = self.kind {
            answered_by(security)?;
        } else if security.delivery == Delivery::Guaranteed {
            let reason = |audience: &Audience| match audience {
                Audience::Stored => Some(
                    "three of four parties cannot keep what all four shall have; leave out what is kept, or write \"abort\"",
                ),
                Audience::Party(_) => Some(
                    "what is for one party alone is lost with it; name recipients that compute nothing, or \"parties\", or write \"abort\"",
                ),
                Audience::Parties | Audience::Recipient(_) | Audience::Column => None,
            };
            let random = self.spec.circuit.gates.iter().any(Gate::is_random);
            let random = random.then_some(
                "a run may be repeated after its results were opened, and the circuit rounds by chance: another run tells more; compute \
                 without chance, or write \"abort\"",
            );
            let wide = (self.spec.circuit.ring == Ring::Z128).then_some(
                "three of four parties compute modulo 2^128 only if none of them lies; compute modulo 2^64, or on bits, or write \"abort\"",
            );
            let audiences = self.spec.audiences.iter().filter_map(reason);
            let mut reasons = audiences.chain(random).chain(wide);
            if let Some(reason) = reasons.next() {
                return Err(JobProblem::Word {
                    field: Delivery::FIELD,
                    value: security.delivery.word().to_owned(),
                    reason: reason.to_owned(),
                });
            }
            self.durable = true;
        }
        if let Kind::Query(queries) = &mut self.kind {
            if security != self.spec.security {
                queries.plan(&self.spec.name, &self.roles, security)?;
            }
            let described = queries.described(&self.roles).map(Arc::new);
            self.spec =
                described.ok_or_else(|| JobProblem::Unplanned("it has no passes".into()))?;
            return Ok(());
        }
        Arc::make_mut(&mut self.spec).security = security;
        Ok(())
    }

    /// The text of the job's file, with the words of the command line in it: for readers that see only this text.
    pub fn written(&self, text: &str) -> String {
        // Whatever is before the first section may stand at the top.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        self.chosen.lines() + &self.with_rows(text)
    }

    /// The text with its number of rows, if that was found in data files of this machine: a participant that reads it elsewhere does not count them.
    fn with_rows(&self, text: &str) -> String {
        let counted = |raw: &RawJob| raw.circuit.as_ref()?.get_ref().rows.as_ref().map(|_| ());
        let Ok(raw) = raw::read(text) else {
            return text.to_owned();
        };
        let Some(circuit) = raw.circuit.as_ref().filter(|_| counted(&raw).is_none()) else {
            return text.to_owned();
        };
        let circuit = circuit.get_ref();
        let file = circuit.file.as_ref().map(Spanned::span);
        let Some(end) = file.or(circuit.make.as_ref().map(Spanned::span)) else {
            return text.to_owned();
        };
        // The section is a table in one line, or has a header, or its fields are written out at the top.
        let rows = self.spec.rows();
        let ways = [", rows", "\nrows", "\ncircuit.rows"];
        let ways =
            ways.map(|way| format!("{}{way} = {rows}{}", &text[..end.end], &text[end.end..]));
        let says = |text: &String| raw::read(text).is_ok_and(|raw| counted(&raw).is_some());
        ways.into_iter()
            .find(says)
            .unwrap_or_else(|| text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Files;

    /// An order that the garbler has chosen leaves everything else as it was said, and what was said stands.
    #[test]
    fn an_order_is_chosen_where_none_is_said() {
        let text = |more: &str| {
            format!(
                "version = 1\nkind = \"circuit\"\nname = \"x\"\nowners = [\"p\", \"q\"]\nparties = [\"p\", \"q\"]\n{more}\
                circuit = {{ make = \"adder:4\", rows = 1 }}\n\
                input = [{{ port = \"x\", owner = \"p\", format = \"hex\" }}, {{ port = \"y\", owner = \"q\", format = \"hex\" }}]\n\
                output = [{{ port = \"out\", to = \"q\", format = \"hex\", file = \"f\" }}]\n"
            )
        };
        let parse = |more| Job::parse(&text(more), "job.toml".as_ref(), Files::new()).unwrap();
        let list = Schedule::List(veil_job::Rows::Two);
        let mut job = parse("");
        assert!(job.leaves_schedule());
        let tables = Words {
            tables: Some(Tables::ThreeHalves),
            ..Words::default()
        };
        job.choose(tables).unwrap();
        assert!(job.leaves_schedule());
        let ordered = job.ordered(list).unwrap();
        assert!(!ordered.leaves_schedule() && job.leaves_schedule());
        let security = ordered.spec().security;
        assert_eq!(
            (security.schedule, security.tables),
            (list, Tables::ThreeHalves)
        );
        let said = parse("schedule = \"layers\"\n");
        assert!(!said.leaves_schedule());
        assert!(said.ordered(list).is_err());
    }

    /// A guarantee that holds but once in 512 times is none.
    #[test]
    fn less_than_40_bits_are_for_benches() {
        let text = |more: &str| {
            format!(
                "version = 1\nkind = \"circuit\"\nname = \"x\"\nowners = [\"p\", \"q\"]\nparties = [\"p\", \"q\"]\n{more}\
                circuit = {{ make = \"adder:4\", rows = 1 }}\n\
                input = [{{ port = \"x\", owner = \"p\", format = \"hex\" }}, {{ port = \"y\", owner = \"q\", format = \"hex\" }}]\n\
                output = [{{ port = \"out\", to = \"q\", format = \"hex\", file = \"f\" }}]\n"
            )
        };
        let parse = |more: &str| Job::parse(&text(more), "job.toml".as_ref(), Files::new());
        let cut = "adversary = \"malicious-cutchoose\"\n";
        for statistical in Statistical::ALL {
            let (bits, word) = (statistical.bits(), statistical.word());
            let said = parse(&format!("{cut}statistical = \"{word}\"\n"));
            let mut chosen = parse(cut).unwrap();
            let chose = chosen.choose(Words {
                statistical: Some(*statistical),
                ..Words::default()
            });
            if bits >= 40 {
                said.unwrap();
                chose.unwrap();
                continue;
            }
            let want = format!(
                "`statistical` is \"{word}\": a cheat would get away with probability 2^-{bits}; write \"40\" or more, less is for \
                 `veil-lab bench cut` alone"
            );
            assert_eq!(
                said.unwrap_err().to_string(),
                format!("job.toml:7:15: {want}")
            );
            assert_eq!(chose.unwrap_err().to_string(), want);
        }
    }

    /// A job that opens something else in every run is not repeated.
    #[test]
    fn what_rounds_by_chance_or_is_too_wide_is_not_guaranteed() {
        let text = "version = 1\nkind = \"circuit\"\nname = \"x\"\nowners = [\"a\"]\n\
            parties = [\"p\", \"q\", \"r\", \"s\"]\nrecipients = [\"c\"]\ncircuit = { make = \"adder:4\", rows = 1 }\n\
            input = [{ port = \"x\", owner = \"a\", format = \"hex\" }, { port = \"y\", owner = \"a\", format = \"hex\" }]\n\
            output = [{ port = \"out\", to = \"c\", format = \"hex\", file = \"f\" }]\n";
        let mut job = Job::parse(text, "job.toml".as_ref(), Files::new()).unwrap();
        let guaranteed = Words {
            delivery: Some(Delivery::Guaranteed),
            ..Words::default()
        };
        job.choose(guaranteed).unwrap();
        Arc::make_mut(&mut job.spec)
            .circuit
            .gates
            .push(Gate::Random(0));
        let refused = job.choose(guaranteed).unwrap_err().to_string();
        assert!(refused.contains("rounds by chance"), "{refused}");
        Arc::make_mut(&mut job.spec).circuit.gates.pop();
        Arc::make_mut(&mut job.spec).circuit.ring = Ring::Z128;
        let refused = job.choose(guaranteed).unwrap_err().to_string();
        assert!(refused.contains("modulo 2^128"), "{refused}");
    }
}
