//! The description of a dataset, in clear, in the metadata of its Arrow file.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use veil_math::Ring;
use veil_session::{PartyId, PlanHash};

use crate::KeyId;
use crate::error::Damage;
use crate::key::{hex, unhex};

/// The format that this version writes and reads.
pub(crate) const FORMAT: &str = "1";

/// Replicated sharing: a value is a sum of as many components as there are parties, and every party has all but one.
/// Names of the schemes, by the number of parties.
const SCHEMES: [(usize, &str); 2] = [(3, "rep3"), (4, "rep4")];

/// Names longer than this make no file name: a byte takes up to three, and a file name has 255.
const LONGEST_NAME: usize = 80;

/// The contents of a dataset: ports and blocks, the party that keeps them, the parties that share them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// Name of the dataset.
    pub name: String,
    /// The plan whose run makes it.
    pub plan: PlanHash,
    /// The ring of the shares.
    pub ring: Ring,
    /// Whose shares these are.
    pub party: PartyId,
    /// Among whom the values are shared, in the order of the scheme.
    pub parties: Vec<Member>,
    /// The ports that each row, or the dataset, has values of.
    pub ports: Vec<Port>,
    /// The rows: at least one block.
    pub blocks: Vec<BlockRows>,
    /// The meaning of the columns, in the words of the job that keeps them; before them, of a dataset that is read, the line that its run has found out, if it
    /// has one. Compared when a job loads them.
    pub schema: String,
    /// Rows of a slice in which the shares come: the plan's chunk.
    pub chunk_rows: u32,
}

/// A computing party, as a dataset knows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Its name in the job.
    pub name: String,
    /// Fingerprints of its key, the present one first, then former ones; none in a run on one machine.
    #[serde(default)]
    pub fingerprints: Vec<String>,
}

impl Member {
    /// A party without a key, in a run on one machine.
    pub fn local(name: &str) -> Self {
        Member {
            name: name.to_owned(),
            fingerprints: Vec::new(),
        }
    }

    /// Whether `kept` is this party: the same name, and a key that this party has or had. A party without keys is any of its name.
    fn is(&self, kept: &Member) -> bool {
        let known = match kept.fingerprints.first() {
            Some(then) => self.fingerprints.is_empty() || self.fingerprints.contains(then),
            None => true,
        };
        self.name == kept.name && known
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match self.fingerprints.first() {
            Some(fingerprint) => write!(f, " ({fingerprint})"),
            None => Ok(()),
        }
    }
}

/// Whether the parties of a job are those that a dataset is shared among.
pub(crate) fn same(ours: &[Member], theirs: &[Member]) -> bool {
    let each = || ours.iter().zip(theirs).all(|(ours, kept)| ours.is(kept));
    ours.len() == theirs.len() && each()
}

/// The parties, for a message.
pub(crate) fn names(parties: &[Member]) -> String {
    let names: Vec<String> = parties.iter().map(ToString::to_string).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// One port: what it is called, how wide it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Port {
    /// Name in the job.
    pub name: String,
    /// Wires.
    pub width: u32,
    /// Whether there is one value for the whole dataset instead of one per row.
    #[serde(default)]
    pub once: bool,
}

/// The rows of one block.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BlockRows {
    /// Name of the block in the job.
    pub name: String,
    /// How many, at least 1.
    pub rows: u64,
}

/// The header of a dataset: its description, and the choices made when it was created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// The description; its `chunk_rows` is that of the file.
    pub description: Description,
    /// When it was made, RFC 3339, UTC.
    pub created: String,
    /// The key that it is encrypted under.
    pub key: KeyId,
    /// Makes the dataset's own keys; random, used once.
    pub(crate) salt: [u8; 32],
}

/// The party whose shares these are, in the metadata.
#[derive(Serialize, Deserialize)]
struct Whose {
    index: u8,
    name: String,
}

impl Description {
    /// Checks what no file could hold.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let fits = |rows: u64| (1..1 << 48).contains(&rows);
        if self.scheme().is_none() {
            return Err("three parties share values, or four");
        }
        if self.party.index() >= self.parties.len() {
            return Err("the party is none of those that share the values");
        }
        if self.ports.is_empty() {
            return Err("there is no port");
        }
        if self.ports.len() > 1 << 16 || self.blocks.len() > 1 << 16 {
            return Err("there are more than 65,536 ports or blocks");
        }
        if self.ports.iter().any(|port| port.width == 0) {
            return Err("a port has no wires");
        }
        if self.blocks.is_empty() || !self.blocks.iter().all(|block| fits(block.rows)) {
            return Err("a block has no rows, or more than 2^48");
        }
        if self.chunk_rows == 0 {
            return Err("a chunk has no rows");
        }
        Ok(())
    }

    /// The name of the sharing scheme, if there is one for so many parties.
    fn scheme(&self) -> Option<&'static str> {
        let mut known = SCHEMES.iter();
        known.find_map(|(parties, scheme)| (self.parties.len() == *parties).then_some(*scheme))
    }

    /// Components of a share at one party: all but one, in the order of its parts.
    pub(crate) fn components(&self) -> u8 {
        // At most one less than four, where the description was checked.
        self.parties.len().saturating_sub(1).min(u8::MAX.into()) as u8
    }

    /// Rows of all blocks together.
    pub fn rows(&self) -> u64 {
        // At most 2^16 blocks of less than 2^48 rows.
        self.blocks.iter().map(|block| block.rows).sum()
    }
}

/// Checks a dataset's name.
pub(crate) fn check_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("it is empty");
    }
    if name.len() > LONGEST_NAME {
        return Err("it is longer than 80 bytes");
    }
    if name.chars().any(char::is_control) {
        return Err("it contains a control character");
    }
    Ok(())
}

impl Head {
    /// As metadata of an Arrow schema.
    pub(crate) fn to_metadata(&self) -> BTreeMap<&'static str, String> {
        let d = &self.description;
        let whose = Whose {
            index: d.party.index() as u8,
            name: d.parties[d.party.index()].name.clone(),
        };
        BTreeMap::from([
            ("veil.format", FORMAT.to_owned()),
            ("veil.scheme", d.scheme().unwrap_or_default().to_owned()),
            ("veil.ring", d.ring.name().to_owned()),
            ("veil.party", json(&whose)),
            ("veil.parties", json(&d.parties)),
            ("veil.dataset", d.name.clone()),
            ("veil.plan", hex(&d.plan.0)),
            ("veil.schema", d.schema.clone()),
            ("veil.ports", json(&d.ports)),
            ("veil.blocks", json(&d.blocks)),
            ("veil.rows", d.rows().to_string()),
            ("veil.created", self.created.clone()),
            ("veil.key", self.key.to_string()),
            ("veil.salt", hex(&self.salt)),
            ("veil.chunk_rows", d.chunk_rows.to_string()),
        ])
    }

    /// The inverse of [`Head::to_metadata`].
    pub(crate) fn from_metadata(metadata: &BTreeMap<String, String>) -> Result<Self, Damage> {
        let text = |key: &'static str| {
            let value = metadata.get(key).map(String::as_str);
            value.ok_or(Damage::Header(key))
        };
        let scheme = text("veil.scheme")?;
        let rings = Ring::ALL;
        let ring = text("veil.ring")?;
        let ring = rings.into_iter().find(|known| known.name() == ring);
        let whose: Whose = parse(text("veil.party")?, "veil.party")?;
        let plan = unhex(text("veil.plan")?).ok_or(Damage::Header("veil.plan"))?;
        let description = Description {
            name: text("veil.dataset")?.to_owned(),
            plan: PlanHash(plan),
            ring: ring.ok_or(Damage::Header("veil.ring"))?,
            party: PartyId::new(whose.index).ok_or(Damage::Header("veil.party"))?,
            parties: parse(text("veil.parties")?, "veil.parties")?,
            ports: parse(text("veil.ports")?, "veil.ports")?,
            blocks: parse(text("veil.blocks")?, "veil.blocks")?,
            schema: text("veil.schema")?.to_owned(),
            chunk_rows: parse(text("veil.chunk_rows")?, "veil.chunk_rows")?,
        };
        if description.scheme() != Some(scheme) {
            return Err(Damage::Header("veil.scheme"));
        }
        description.check().map_err(Damage::Header)?;
        check_name(&description.name).map_err(Damage::Header)?;
        Ok(Head {
            description,
            created: text("veil.created")?.to_owned(),
            key: KeyId::from_hex(text("veil.key")?).ok_or(Damage::Header("veil.key"))?,
            salt: unhex(text("veil.salt")?).ok_or(Damage::Header("veil.salt"))?,
        })
    }
}

fn parse<T: DeserializeOwned>(text: &str, key: &'static str) -> Result<T, Damage> {
    serde_json::from_str(text).map_err(|_| Damage::Header(key))
}

/// JSON of a value that has strings, numbers and lists alone.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings, numbers and lists are JSON")
}
