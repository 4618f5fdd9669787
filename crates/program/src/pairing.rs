//! Sentences about the order of rows: before a job runs, and in its result.

use std::fmt;

use serde::Serialize;

use crate::{
    Job, Kind,
    stats::{Pairing, Stats},
};
use veil_job::Order;

/// Why the rows of several owners are rows of the same people, in one block of a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Paired {
    /// The block; nothing in a job that has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// `agreed` or `compared`.
    pub order: &'static str,
    /// The key column whose order is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Whether several rows may have the same key.
    #[serde(skip_serializing_if = "is_false")]
    pub duplicates: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Paired {
    fn agreed(block: Option<String>) -> Self {
        Paired {
            block,
            order: "agreed",
            column: None,
            duplicates: false,
        }
    }

    /// Of the blocks of a statistics job in which there is something to pair.
    pub(crate) fn of(stats: &Stats) -> Vec<Self> {
        let blocks = stats.blocks.iter();
        let paired = blocks.filter_map(|block| {
            let name = Some(block.name.clone());
            match &block.pairing {
                Pairing::Unsaid => None,
                Pairing::Agreed => Some(Self::agreed(name)),
                Pairing::Compared(align) => Some(Paired {
                    block: name,
                    order: "compared",
                    column: Some(align.column.clone()),
                    duplicates: align.duplicates,
                }),
            }
        });
        paired.collect()
    }

    /// The sentence for a job that has not run: `block `all`: the order of rows is compared by column `id``.
    pub fn before(&self) -> String {
        self.say("is", "are")
    }

    fn say(&self, is: &str, are: &str) -> String {
        let block = self.block.as_ref();
        let block = block.map_or_else(String::new, |name| format!("block `{name}`: "));
        match &self.column {
            None => {
                format!(
                    "{block}rows {are} paired as the owners agreed beforehand, and not compared"
                )
            }
            Some(column) => {
                let repeat = if self.duplicates {
                    ", in which a key may be there several times"
                } else {
                    ""
                };
                format!("{block}the order of rows {is} compared by column `{column}`{repeat}")
            }
        }
    }
}

/// Of a run that has ended.
impl fmt::Display for Paired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.say("was", "were"))
    }
}

impl Job {
    /// Why the rows of several owners are rows of the same people, wherever there are several.
    pub fn paired(&self) -> Vec<Paired> {
        match self.kind() {
            Kind::Stats(stats) => Paired::of(stats),
            Kind::Circuit(gates) if gates.order() == Order::Agreed => vec![Paired::agreed(None)],
            Kind::Circuit(_) | Kind::Reshare(_) | Kind::Query(_) | Kind::Intersection(_) => {
                Vec::new()
            }
        }
    }
}
