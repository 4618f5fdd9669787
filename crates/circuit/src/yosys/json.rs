//! The part of Yosys' JSON that matters here, as it stands in the file.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};

/// A file: `write_json`.
#[derive(Deserialize, Debug)]
pub(super) struct Design {
    #[serde(default)]
    pub(super) modules: Entries<Module>,
}

#[derive(Deserialize, Debug)]
pub(super) struct Module {
    #[serde(default)]
    pub(super) attributes: Entries<Value>,
    #[serde(default)]
    pub(super) ports: Entries<Port>,
    #[serde(default)]
    pub(super) cells: Entries<Cell>,
    #[serde(default)]
    pub(super) netnames: Entries<Net>,
}

#[derive(Deserialize, Debug)]
pub(super) struct Port {
    pub(super) direction: Direction,
    pub(super) bits: Vec<Bit>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum Direction {
    Input,
    Output,
    Inout,
}

#[derive(Deserialize, Debug)]
pub(super) struct Cell {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) parameters: Entries<Value>,
    #[serde(default)]
    pub(super) attributes: Entries<Value>,
    #[serde(default)]
    pub(super) connections: Entries<Vec<Bit>>,
}

#[derive(Deserialize, Debug)]
pub(super) struct Net {
    pub(super) bits: Vec<Bit>,
    #[serde(default)]
    pub(super) attributes: Entries<Value>,
}

/// An object in the order of the file, which is that of the ports in the source.
#[derive(Debug)]
pub(super) struct Entries<T>(pub(super) Vec<(String, T)>);

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Entries(Vec::new())
    }
}

impl<T> Entries<T> {
    pub(super) fn get(&self, name: &str) -> Option<&T> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Entries<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
            type Value = Entries<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(Entries(all))
            }
        }
        deserializer.deserialize_map(Reader(PhantomData))
    }
}

/// The value of a parameter or attribute: bits as text, the most significant first, or any text; old files have numbers.
#[derive(Deserialize, Debug)]
#[serde(untagged)]
pub(super) enum Value {
    Text(String),
    Number(u64),
}

impl Value {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Number(_) => None,
        }
    }

    /// The number that it says, if it fits.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Text(text) => {
                let digits = text.trim_start_matches('0');
                match digits {
                    "" if !text.is_empty() => Some(0),
                    _ => u64::from_str_radix(digits, 2).ok(),
                }
            }
        }
    }
}

/// A bit of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Bit {
    /// A constant.
    Known(bool),
    /// `x`.
    Undefined,
    /// `z`.
    Open,
    /// A net, by its number.
    Net(u32),
}

impl<'de> Deserialize<'de> for Bit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Bit;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number of a net, or \"0\", \"1\", \"x\" or \"z\"")
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Bit, E> {
                let small = u32::try_from(number).map(Bit::Net);
                small.map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Bit, E> {
                match text {
                    "0" => Ok(Bit::Known(false)),
                    "1" => Ok(Bit::Known(true)),
                    "x" => Ok(Bit::Undefined),
                    "z" => Ok(Bit::Open),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(Reader)
    }
}
