//! The canonical encoding, by construction.
//!
//! Integers are little-endian, 8 bytes each whatever their type; a text and a list come after their length; an option after whether there
//! is one. A struct is its name and the number of its fields, then the fields in order; an enum is its name, the number of the variant and
//! of its fields, then those. Since a decoder that knows no types could tell from each prefix what follows, two values with one encoding are
//! equal.
//!
//! `canonical!` writes the encoding of a type from a list of its fields. It destructures the type without `..` and matches it without `_`:
//! a field or a variant that is missing in the list is an error of the compiler, and so are two variants with one number.

use sha2::{Digest, Sha256};
use veil_circuit::Circuit;
use veil_session::PartyId;

/// Takes an encoding: SHA-256, or a list of bytes.
pub trait Encoder {
    /// Takes the next bytes.
    fn bytes(&mut self, bytes: &[u8]);
}

impl Encoder for Sha256 {
    fn bytes(&mut self, bytes: &[u8]) {
        self.update(bytes);
    }
}

impl Encoder for Vec<u8> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// A value with a canonical encoding.
pub trait Canonical {
    /// Encodes the value.
    fn encode(&self, into: &mut dyn Encoder);

    /// The encoding as bytes.
    fn encoded(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }
}

macro_rules! integers {
    ($($kind:ty)*) => {$(
        impl Canonical for $kind {
            fn encode(&self, into: &mut dyn Encoder) {
                into.bytes(&u64::from(*self).to_le_bytes());
            }
        }
    )*};
}
integers!(bool u8 u16 u32 u64);

impl Canonical for i32 {
    fn encode(&self, into: &mut dyn Encoder) {
        i64::from(*self).encode(into);
    }
}

/// Two's complement.
impl Canonical for i64 {
    fn encode(&self, into: &mut dyn Encoder) {
        self.cast_unsigned().encode(into);
    }
}

impl Canonical for usize {
    fn encode(&self, into: &mut dyn Encoder) {
        (*self as u64).encode(into);
    }
}

impl Canonical for str {
    fn encode(&self, into: &mut dyn Encoder) {
        self.len().encode(into);
        into.bytes(self.as_bytes());
    }
}

impl Canonical for String {
    fn encode(&self, into: &mut dyn Encoder) {
        self.as_str().encode(into);
    }
}

impl<T: Canonical> Canonical for [T] {
    fn encode(&self, into: &mut dyn Encoder) {
        self.len().encode(into);
        for element in self {
            element.encode(into);
        }
    }
}

impl<T: Canonical, const N: usize> Canonical for [T; N] {
    fn encode(&self, into: &mut dyn Encoder) {
        self[..].encode(into);
    }
}

impl<T: Canonical> Canonical for Vec<T> {
    fn encode(&self, into: &mut dyn Encoder) {
        self.as_slice().encode(into);
    }
}

impl<T: Canonical> Canonical for Option<T> {
    fn encode(&self, into: &mut dyn Encoder) {
        self.is_some().encode(into);
        if let Some(value) = self {
            value.encode(into);
        }
    }
}

impl<T: Canonical + ?Sized> Canonical for &T {
    fn encode(&self, into: &mut dyn Encoder) {
        (**self).encode(into);
    }
}

impl Canonical for PartyId {
    fn encode(&self, into: &mut dyn Encoder) {
        self.index().encode(into);
    }
}

impl<A: Canonical, B: Canonical> Canonical for (A, B) {
    fn encode(&self, into: &mut dyn Encoder) {
        self.0.encode(into);
        self.1.encode(into);
    }
}

/// A circuit is encoded by its own hash, which has a domain and a version of its own.
impl Canonical for Circuit {
    fn encode(&self, into: &mut dyn Encoder) {
        "Circuit".encode(into);
        into.bytes(&self.canonical_hash());
    }
}

/// Implements [`Canonical`] for structs and enums, from all their fields and variants.
///
/// ```
/// use veil_job::canonical;
///
/// struct Point { x: u32, y: u32 }
/// enum Shape { Nothing, Dot(Point), Line { from: Point, to: Point } }
/// canonical! {
///     struct Point { x, y }
///     enum Shape { 0 = Nothing, 1 = Dot(at), 2 = Line { from, to } }
/// }
/// ```
///
/// A field that is left out does not compile:
///
/// ```compile_fail
/// use veil_job::canonical;
///
/// struct Point { x: u32, y: u32 }
/// canonical! { struct Point { x } }
/// ```
///
/// Nor does a variant that is left out, or a number that two variants have:
///
/// ```compile_fail
/// use veil_job::canonical;
///
/// enum Side { Left, Right }
/// canonical! { enum Side { 0 = Left } }
/// ```
///
/// ```compile_fail
/// use veil_job::canonical;
///
/// enum Side { Left, Right }
/// canonical! { enum Side { 0 = Left, 0 = Right } }
/// ```
#[macro_export]
macro_rules! canonical {
    () => {};
    (struct $name:ident { $($field:ident),* $(,)? } $($rest:tt)*) => {
        impl $crate::canonical::Canonical for $name {
            fn encode(&self, into: &mut dyn $crate::canonical::Encoder) {
                let $name { $($field),* } = self;
                let fields: &[&dyn $crate::canonical::Canonical] = &[$($field),*];
                $crate::canonical::fields(stringify!($name), None, fields, into);
            }
        }
        $crate::canonical!($($rest)*);
    };
    (enum $name:ident { $($number:literal = $variant:ident $(($($of:ident),*))? $({ $($field:ident),* })?),* $(,)? } $($rest:tt)*) => {
        const _: () = {
            // Two variants with one number are an error here.
            #[allow(dead_code, reason = "only its numbers are of interest")]
            #[repr(u64)]
            enum Numbers { $($variant = $number),* }
        };
        impl $crate::canonical::Canonical for $name {
            fn encode(&self, into: &mut dyn $crate::canonical::Encoder) {
                match self {
                    $($name::$variant $(($($of),*))? $({ $($field),* })? => {
                        let fields: &[&dyn $crate::canonical::Canonical] = &[$($($of),*)? $($($field),*)?];
                        $crate::canonical::fields(stringify!($name), Some($number), fields, into);
                    })*
                }
            }
        }
        $crate::canonical!($($rest)*);
    };
}

/// Encodes a struct or a variant. For `canonical!` alone.
#[doc(hidden)]
pub fn fields(name: &str, variant: Option<u64>, fields: &[&dyn Canonical], into: &mut dyn Encoder) {
    name.encode(into);
    variant.encode(into);
    fields.len().encode(into);
    for field in fields {
        field.encode(into);
    }
}
