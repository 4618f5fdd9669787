//! A description, read and checked.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::GenerateError;

/// A core: its registers and the bits of its programs.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Core {
    pub(super) name: String,
    pub(super) title: String,
    #[serde(rename = "group")]
    pub(super) groups: Vec<Group>,
    pub(super) program: Text,
    #[serde(rename = "choice", default)]
    pub(super) choices: Vec<Choice>,
    #[serde(rename = "width", default)]
    pub(super) widths: Vec<Width>,
    #[serde(rename = "struct", default)]
    pub(super) structs: Vec<Struct>,
}

/// Registers that belong together.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) title: String,
    pub(super) text: String,
    #[serde(rename = "register")]
    pub(super) registers: Vec<Register>,
}

/// A register of 32 bits, or some at successive addresses.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Register {
    pub(super) name: String,
    pub(super) address: u32,
    #[serde(default = "one")]
    pub(super) words: u32,
    /// All of its words', if nothing is said.
    bits: Option<u32>,
    pub(super) access: Access,
    /// Of a constant.
    #[serde(default)]
    pub(super) value: u32,
    pub(super) text: String,
    #[serde(rename = "field", default)]
    pub(super) fields: Vec<Bit>,
}

/// What may be done with a register; the description says what each means.
#[derive(Deserialize, Debug, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Access {
    Constant,
    ReadOnly,
    Parameter,
    Secret,
    ReadWrite,
    Pulse,
    Clear,
}

/// A bit of a register.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Bit {
    pub(super) name: String,
    pub(super) at: u32,
    pub(super) text: String,
}

/// What stands before the formats.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Text {
    #[serde(default = "programs")]
    pub(super) title: String,
    pub(super) text: String,
}

/// Numbers that have names.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Choice {
    pub(super) name: String,
    pub(super) bits: u32,
    pub(super) text: String,
    #[serde(rename = "value")]
    pub(super) values: Vec<Value>,
}

/// One of them.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Value {
    pub(super) name: String,
    pub(super) number: u32,
    pub(super) text: String,
}

/// Bits of a kind of number.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Width {
    pub(super) name: String,
    pub(super) bits: u32,
    pub(super) text: String,
}

/// Fields side by side, from the highest bit down.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Struct {
    pub(super) name: String,
    pub(super) text: String,
    #[serde(rename = "field")]
    pub(super) fields: Vec<Field>,
}

/// A number of bits, a number of a kind, or a struct within a struct.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Field {
    pub(super) name: String,
    bits: Option<u32>,
    pub(super) width: Option<String>,
    pub(super) of: Option<String>,
    pub(super) text: String,
}

fn one() -> u32 {
    1
}

fn programs() -> String {
    "Programs".to_owned()
}

impl Register {
    /// Of all its words.
    pub(super) fn bits(&self) -> u32 {
        let named = self.fields.iter().map(|field| field.at + 1).max();
        self.bits.or(named).unwrap_or(32 * self.words)
    }

    /// Bits of one of its words.
    pub(super) fn bits_of(&self, word: u32) -> u32 {
        (self.bits() - 32 * word).min(32)
    }
}

impl Core {
    /// Reads a description. Names and addresses are different, and what is referred to is there.
    pub(super) fn parse(text: &str, path: &'static str) -> Result<Self, GenerateError> {
        let core: Core = toml::from_str(text).map_err(|source| GenerateError::Toml {
            path,
            source: Box::new(source),
        })?;
        core.check()
            .map_err(|(name, reason)| GenerateError::Wrong {
                path,
                name: name.to_owned(),
                reason,
            })?;
        Ok(core)
    }

    /// All registers, in the order of the description.
    pub(super) fn registers(&self) -> impl Iterator<Item = &Register> {
        self.groups.iter().flat_map(|group| &group.registers)
    }

    /// Bits of an address of a byte: those of the last register's last.
    pub(super) fn address_bits(&self) -> u32 {
        let last = self.registers().map(|r| r.address + 4 * r.words - 1).max();
        last.map_or(2, |last| 32 - last.leading_zeros())
    }

    /// Bits of a struct.
    pub(super) fn size(&self, name: &str) -> u32 {
        let of = self.structs.iter().find(|of| of.name == name);
        let fields = of.into_iter().flat_map(|of| &of.fields);
        fields.map(|field| self.bits(field)).sum()
    }

    /// Bits of a field.
    pub(super) fn bits(&self, field: &Field) -> u32 {
        let width = |name: &String| self.widths.iter().find(|width| width.name == *name);
        let width = field.width.as_ref().and_then(width).map(|width| width.bits);
        let of = field.of.as_ref().map(|of| self.size(of));
        field.bits.or(width).or(of).unwrap_or(0)
    }

    /// Every field of a struct with the place of its lowest bit.
    pub(super) fn places<'a>(&'a self, of: &'a Struct) -> impl Iterator<Item = (u32, &'a Field)> {
        let mut at = self.size(&of.name);
        of.fields.iter().map(move |field| {
            at -= self.bits(field);
            (at, field)
        })
    }

    fn check(&self) -> Result<(), (&str, &'static str)> {
        let mut names = BTreeSet::new();
        let mut taken = BTreeSet::new();
        for register in self.registers() {
            let name = register.name.as_str();
            if !names.insert(name) {
                return Err((name, "is there twice"));
            }
            if !register.address.is_multiple_of(4) || register.words == 0 {
                return Err((
                    name,
                    "needs an address that is a multiple of 4, and a word at least",
                ));
            }
            let bits = register.bits();
            if bits == 0 || bits > 32 * register.words || bits <= 32 * (register.words - 1) {
                return Err((name, "has not the words that its bits take"));
            }
            if register.words > 1 && !register.fields.is_empty() {
                return Err((name, "has fields, and more than one word"));
            }
            for word in 0..register.words {
                if !taken.insert(register.address + 4 * word) {
                    return Err((name, "has the address of another"));
                }
            }
            let mut places = BTreeSet::new();
            for field in &register.fields {
                if field.at >= bits || !places.insert(field.at) {
                    return Err((&field.name, "has no bit of its own in its register"));
                }
            }
        }
        for choice in &self.choices {
            let mut numbers = BTreeSet::new();
            for value in &choice.values {
                if value.number.checked_shr(choice.bits).unwrap_or(0) != 0
                    || !numbers.insert(value.number)
                {
                    return Err((&value.name, "has no number of its own in its bits"));
                }
            }
        }
        for (at, of) in self.structs.iter().enumerate() {
            for field in &of.fields {
                let before = |name: &String| self.structs[..at].iter().any(|of| of.name == *name);
                let sizes = [
                    field.bits.is_some(),
                    field.width.is_some(),
                    field.of.is_some(),
                ];
                let known = field.of.as_ref().is_none_or(before) && self.bits(field) > 0;
                if !known || sizes.iter().filter(|said| **said).count() != 1 {
                    return Err((
                        &field.name,
                        "needs bits, or a width, or a struct that comes before",
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(registers: &str, structs: &str) -> Result<Core, GenerateError> {
        let text = format!(
            "name = 'x'\ntitle = 'X'\n[program]\ntext = ''\n[[group]]\ntitle = ''\ntext = ''\n{registers}\n{structs}"
        );
        Core::parse(&text, "x.toml")
    }

    fn register(rest: &str) -> String {
        format!("[[group.register]]\ntext = ''\naccess = 'read-only'\n{rest}\n")
    }

    #[test]
    fn fields_lie_from_the_highest_bit_down() {
        let structs = "[[struct]]\nname = 's'\ntext = ''\nfield = [{ name = 'a', bits = 3, text = '' }, { name = 'b', bits = 5, text = '' }]";
        let core = core(&register("name = 'r'\naddress = 0x104"), structs).expect("it is right");
        let places: Vec<_> = core.places(&core.structs[0]).map(|(at, _)| at).collect();
        assert_eq!(
            (core.size("s"), places, core.address_bits()),
            (8, vec![5, 0], 9)
        );
    }

    #[test]
    fn wrong_descriptions_are_refused() {
        let wrong = [
            (register("name = 'r'\naddress = 2"), "multiple of 4"),
            (
                register("name = 'r'\naddress = 0\nbits = 33"),
                "has not the words",
            ),
            (
                register("name = 'r'\naddress = 0") + &register("name = 'r'\naddress = 4"),
                "is there twice",
            ),
            (
                register("name = 'r'\naddress = 0\nwords = 2")
                    + &register("name = 's'\naddress = 4"),
                "has the address of another",
            ),
            (
                register(
                    "name = 'r'\naddress = 0\nbits = 1\nfield = [{ name = 'f', at = 1, text = '' }]",
                ),
                "has no bit of its own",
            ),
        ];
        for (text, reason) in wrong {
            let error = core(&text, "").expect_err(reason).to_string();
            assert!(error.contains(reason), "{error}");
        }
        let inner =
            "[[struct]]\nname = 's'\ntext = ''\nfield = [{ name = 'a', of = 't', text = '' }]";
        let error = core(&register("name = 'r'\naddress = 0"), inner).expect_err("there is no t");
        assert!(error.to_string().contains("a struct that comes before"));
    }
}
