//! What `veil explain` prints for people.

use std::fmt::Write;
use std::path::Path;

use super::{Effort, Explanation, FromStock, TransfersOf};
use crate::output::{bytes, columns, count, seconds};
use crate::rates::Found;

impl Explanation {
    pub(super) fn text(&self, file: &Path, rates: &Found) -> String {
        let mut facts = vec![
            ("job", format!("{} ({})", self.job, file.display())),
            ("protocol", self.protocol.to_owned()),
            ("guarantee", self.guarantee.to_string()),
            ("security", self.security.to_string()),
        ];
        if let Some(by) = &self.finished_by {
            let finish = format!("{}, {}", by.protocol, by.guarantee);
            facts.push(("without a party", finish));
        }
        if self.meets {
            facts.push(("keys", format!("{} of two lists, at most", self.rows)));
        }
        let circuit = [
            ("ring", self.ring.clone()),
            (
                "rows",
                match (self.products_per_row, self.summed_products_per_row) {
                    // One row of the plan stands for all.
                    (products, _) if self.rows != self.plan_rows => format!(
                        "{}, with {} in {}",
                        self.rows,
                        count(products, "product"),
                        count(self.cycles, "cycle")
                    ),
                    (products, 0) => {
                        format!("{}, each with {}", self.rows, count(products, "product"))
                    }
                    (products, terms) => {
                        let (products, terms) = (count(products, "product"), count(terms, "term"));
                        format!(
                            "{}, each with {products} and {terms} of sums over rows",
                            self.rows
                        )
                    }
                },
            ),
            (
                "chunks",
                format!(
                    "{} of at most {} ({}), on {}",
                    self.chunks,
                    count(self.chunk_rows.into(), "row"),
                    self.chunk_rows_why,
                    count(self.lanes.into(), "lane"),
                ),
            ),
            (
                "layers",
                match &self.ordered {
                    Some(ordered) => format!("{}, {}", self.layers, ordered.line()),
                    None => self.layers.to_string(),
                },
            ),
        ];
        facts.extend(circuit.into_iter().filter(|_| !self.meets));
        facts.extend([
            (
                "rounds",
                format!(
                    "{} for the handshake, {} to set up, {} per chunk, {} for totals",
                    self.rounds.handshake,
                    self.rounds.set_up,
                    self.rounds.per_chunk,
                    self.rounds.totals
                ),
            ),
            (
                "plan",
                format!(
                    "{} (participants compare it before anything is sent)",
                    self.plan
                ),
            ),
        ]);
        facts.extend(self.stock.as_ref().map(|stock| ("stock", stock.text())));
        facts.extend((self.transfers.as_ref()).map(|of| ("transfers", of.text())));
        facts.extend(
            self.opened_numbers
                .map(|numbers| ("opened", numbers.text())),
        );
        let facts = facts.into_iter();
        let facts = facts.map(|(name, value)| vec![name.to_owned(), value]);
        let mut text = columns(&facts.collect::<Vec<_>>());
        text += "\nparticipants\n";
        let rows = self.participants.iter().map(|p| {
            let memory = format!("at most {} of working memory", bytes(p.memory_bytes));
            let sends = format!(
                "sends {} ({} bytes in {}, {} framed)",
                bytes(p.bytes),
                p.bytes,
                count(p.messages, "message"),
                p.framed,
            );
            vec![p.name.clone(), p.role.to_owned(), sends, memory]
        });
        text += &columns(&rows.collect::<Vec<_>>());
        text += "\nestimated time, from the first message to the last\n";
        let rows = self.estimates.iter().map(|e| {
            vec![
                e.net.to_owned(),
                format!("about {}", seconds(e.seconds)),
                e.description.clone(),
            ]
        });
        text += &columns(&rows.collect::<Vec<_>>());
        let _ = writeln!(text, "  by the rates of: {rates}");
        if !self.among_more.is_empty() {
            text += "\nthe same statistics among more parties, all participants on one machine, over TLS\n";
            let rows = self.among_more.iter().map(|more| {
                vec![
                    format!("{} parties", more.parties),
                    format!("send {} in all", bytes(more.bytes)),
                    format!("about {}", seconds(more.seconds)),
                    more.security.to_string(),
                ]
            });
            text += &columns(&rows.collect::<Vec<_>>());
        }
        text += if self.meets {
            "\nsupplied, encoded or hashed\n"
        } else {
            "\nsupplied, as shares\n"
        };
        let rows = self.inputs.iter().map(|s| {
            vec![
                s.owner.clone(),
                format!("{} of {}", count(s.values, "value"), s.inputs.join(", ")),
            ]
        });
        text += &columns(&rows.collect::<Vec<_>>());
        for read in &self.read {
            let _ = writeln!(
                text,
                "  read: `{}` of {}: {}",
                read.port, read.owner, read.what
            );
        }
        for paired in &self.paired {
            let _ = writeln!(text, "  order: {}", paired.before());
        }
        let numbers: u64 = self.opened.iter().map(|o| o.values).sum();
        let _ = match numbers {
            0 => writeln!(text, "\nopened: nothing"),
            _ => writeln!(
                text,
                "\nopened: {}, and nothing else",
                count(numbers, "value")
            ),
        };
        for opened in &self.opened {
            let _ = writeln!(text, "  opened: {}, to: {}", opened.what, opened.to);
        }
        if !self.kept.is_empty() {
            text += "\nkept as shares at the parties, opened to no recipient\n";
        }
        for kept in &self.kept {
            let _ = writeln!(text, "  kept: {}", kept.what);
        }
        text
    }
}

impl TransfersOf {
    /// In a line.
    fn text(&self) -> String {
        let all = count(self.count, "transfer");
        let [silent, extension] = [self.silent_bytes, self.extension_bytes].map(bytes);
        match (self.silent, self.asked) {
            (true, _) => format!("{all}, silent: {silent}; by the extension {extension}"),
            (false, true) => {
                format!("{all} by the extension: {extension}; silent ones would take {silent}")
            }
            (false, false) => {
                format!("{all} by the extension: {extension}; with `--ot silent` {silent}")
            }
        }
    }
}

impl FromStock {
    /// In a line.
    fn text(&self) -> String {
        let cells = count(self.cells, self.kind.item());
        let effort = |of: &Effort| {
            format!(
                "{} in {} in all",
                bytes(of.bytes),
                count(of.rounds, "round")
            )
        };
        let (online, fresh) = (effort(&self.online), effort(&self.fresh));
        if self.taken {
            format!("takes {cells}, and sends {online}; without it, {fresh}")
        } else {
            format!("takes none; with `--stock` {cells}, and it would send {online}")
        }
    }
}
