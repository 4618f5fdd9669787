//! Entries of the log, and the one form in which each is written.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use veil_link::tls::{Identity, IdentityError, verify};

use super::Event;
use crate::home::hex;
use crate::time::Time;

/// What signatures of entries are for.
const CONTEXT: &str = "veilworks log";

/// Longest line; a longer one was not written here.
pub(super) const LONGEST: usize = 1 << 16;

/// What the first entry follows.
pub(super) const NOTHING: [u8; 32] = [0; 32];

/// One entry, as written.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Its number, from 1.
    pub seq: u64,
    /// When it was written, by this machine's clock.
    pub time: Time,
    /// The kind of event, in a word.
    pub kind: String,
    /// The rest of it.
    pub fields: Map<String, Value>,
    /// Hash of the entry before.
    pub(super) prev: [u8; 32],
    /// Hash of this one, over everything above.
    pub(super) hash: [u8; 32],
    /// The participant's signature of the hash.
    pub(super) signature: Vec<u8>,
}

impl Entry {
    /// Makes the entry that follows another.
    pub(super) fn make(
        (seq, prev): (u64, [u8; 32]),
        event: Event,
        identity: &Identity,
    ) -> Result<Self, IdentityError> {
        let value =
            serde_json::to_value(event.cut()).expect("an event is made of texts and numbers");
        let Value::Object(mut value) = value else {
            unreachable!("an event is written as an object");
        };
        let kind = value.get("kind").and_then(Value::as_str);
        let kind = kind.expect("an event has a kind").to_owned();
        let fields = match value.remove("fields") {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let mut entry = Entry {
            seq,
            time: Time::now(),
            kind,
            fields,
            prev,
            hash: NOTHING,
            signature: Vec::new(),
        };
        entry.hash = entry.digest();
        entry.signature = identity.sign(CONTEXT, &entry.hash)?.to_vec();
        Ok(entry)
    }

    /// Reads a line. Nothing, if it is not exactly what [`Entry::line`] writes.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(line).ok()?;
        let text = |name: &str| value.get(name)?.as_str();
        let bytes = |name: &str| data_encoding::HEXLOWER.decode(text(name)?.as_bytes()).ok();
        let entry = Entry {
            seq: value.get("seq")?.as_u64()?,
            time: text("time")?.parse().ok()?,
            kind: text("kind")?.to_owned(),
            fields: value.get("fields")?.as_object()?.clone(),
            prev: bytes("prev")?.try_into().ok()?,
            hash: bytes("hash")?.try_into().ok()?,
            signature: bytes("sig")?,
        };
        (entry.line().as_bytes() == line).then_some(entry)
    }

    /// The entry as a line, without its end.
    pub(super) fn line(&self) -> String {
        let mut value = self.content();
        value.insert("hash".into(), hex(&self.hash).into());
        value.insert("sig".into(), hex(&self.signature).into());
        canonical(&Value::Object(value))
    }

    /// SHA-256 of the content in its canonical form.
    pub(super) fn digest(&self) -> [u8; 32] {
        Sha256::digest(canonical(&Value::Object(self.content()))).into()
    }

    /// Whether the key signed it.
    pub(super) fn signed_by(&self, public_key: &[u8]) -> bool {
        verify(public_key, CONTEXT, &self.hash, &self.signature)
    }

    /// A text among its fields.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.fields.get(field)?.as_str()
    }

    /// The entry as an object, for people who process it further.
    pub fn to_json(&self) -> Value {
        let mut value = self.content();
        value.insert("hash".into(), hex(&self.hash).into());
        value.insert("sig".into(), hex(&self.signature).into());
        Value::Object(value)
    }

    fn content(&self) -> Map<String, Value> {
        let mut value = Map::new();
        value.insert("seq".into(), self.seq.into());
        value.insert("time".into(), self.time.to_string().into());
        value.insert("kind".into(), self.kind.clone().into());
        value.insert("fields".into(), Value::Object(self.fields.clone()));
        value.insert("prev".into(), hex(&self.prev).into());
        value
    }
}

/// JSON with names in the order of their bytes and no blanks. Entries have no fractions, whose text is a matter of taste.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut names: Vec<&String> = map.keys().collect();
            names.sort_unstable();
            let inner: Vec<String> = names
                .into_iter()
                .map(|name| format!("{}:{}", Value::from(name.as_str()), canonical(&map[name])))
                .collect();
            format!("{{{}}}", inner.join(","))
        }
        Value::Array(list) => {
            let inner: Vec<String> = list.iter().map(canonical).collect();
            format!("[{}]", inner.join(","))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_form_is_that_of_the_documentation() {
        // Python: json.dumps(x, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        let value: Value = serde_json::from_str(
            "{\"b\": [1, -2, null, true], \"a\": {\"z\": \"\\u00e9\\n\\u0001/\\\"\", \"Y\": \"\"}}",
        )
        .unwrap();
        assert_eq!(
            canonical(&value),
            "{\"a\":{\"Y\":\"\",\"z\":\"é\\n\\u0001/\\\"\"},\"b\":[1,-2,null,true]}"
        );
    }

    #[test]
    fn only_the_exact_line_is_read() {
        let identity = Identity::generate().unwrap();
        let event = Event::Withdrawal {
            plan: "00".into(),
            job: "pay \"2025\"".into(),
        };
        let entry = Entry::make((1, NOTHING), event, &identity).unwrap();
        let line = entry.line();
        assert_eq!(Entry::parse(line.as_bytes()), Some(entry.clone()));
        assert!(entry.signed_by(&identity.public_key().unwrap()));
        assert!(!entry.signed_by(&Identity::generate().unwrap().public_key().unwrap()));
        for other in [
            line.replacen(':', ": ", 1),
            line.replacen("\"kind\"", "\"kind\":\"x\",\"kind\"", 1),
            line.replacen("\"seq\":1", "\"seq\":1.0", 1),
            line.replacen("\"fields\"", "\"extra\":1,\"fields\"", 1),
            line[..line.len() - 1].to_owned(),
        ] {
            assert_eq!(Entry::parse(other.as_bytes()), None, "{other}");
        }
    }
}
