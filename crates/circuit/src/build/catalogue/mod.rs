//! Circuits by name.

mod list;

use veil_math::Ring;

use list::CATALOGUE;

use super::integer::Integer;
use super::matrix::{Shape, matrix_product};
use crate::{Builder, Circuit, Per, Wire};

/// A circuit that [`make`] knows.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CatalogueEntry {
    /// Its name. Where it takes a width, a specification is `name:width`.
    pub name: &'static str,
    /// Whether it takes a width: 1 to 256 bits, of integers in a ring 1 to 128.
    pub takes_width: bool,
    /// The function, in a line.
    pub summary: &'static str,
    make: Make,
}

/// Why [`make`] made nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MakeError {
    /// No circuit has this name.
    #[error("no circuit is called `{name}`; known are: {known}")]
    Unknown {
        /// The name asked for, shortened.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// A width is missing.
    #[error("`{name}` needs a width of 1 to {most} bits; write for example `{name}:64`")]
    WidthMissing {
        /// The circuit asked for.
        name: &'static str,
        /// The largest width that it takes.
        most: u32,
    },
    /// The width is not a number that the circuit takes.
    #[error(
        "`{width}` is not a width for `{name}`; give a number of bits from 1 to {most}, for example `{name}:64`"
    )]
    BadWidth {
        /// The circuit asked for.
        name: &'static str,
        /// The largest width that it takes.
        most: u32,
        /// The width given, shortened.
        width: String,
    },
    /// A shape is missing, or is not what the circuit takes.
    #[error(
        "`{shape}` is no shape for `{name}`; give three numbers from 1 to {most}, for example `{name}:2x3x4` for 2 rows of 3 \
         times 3 rows of 4"
    )]
    BadShape {
        /// The circuit asked for.
        name: &'static str,
        /// The largest of each number.
        most: usize,
        /// The shape given, shortened.
        shape: String,
    },
    /// The circuit has a fixed size.
    #[error("`{name}` takes no width; leave out `:` and what follows")]
    NoWidth {
        /// The circuit asked for.
        name: &'static str,
    },
}

/// Every circuit that [`make`] knows.
pub fn catalogue() -> &'static [CatalogueEntry] {
    CATALOGUE
}

/// Makes a circuit from its specification: a name of the [`catalogue`], with a width where it takes one.
///
/// Keys and chaining states are one for the job, other inputs one per row; change [`crate::InputPort::per`] for other
/// uses. Outputs are called `out`.
///
/// ```
/// let circuit = veil_circuit::make("lt-signed:32")?;
/// assert_eq!(circuit.stats().muls, 32);
/// assert!(veil_circuit::make("adder:0").is_err());
/// # Ok::<(), veil_circuit::MakeError>(())
/// ```
///
/// # Errors
/// [`MakeError::Unknown`] if no entry has the name; [`MakeError::WidthMissing`], [`MakeError::BadWidth`] and
/// [`MakeError::BadShape`] if the entry takes a width or a shape and the specification has none that is in range;
/// [`MakeError::NoWidth`] if it has one and the entry takes none.
pub fn make(specification: &str) -> Result<Circuit, MakeError> {
    let (name, width) = match specification.split_once(':') {
        Some((name, width)) => (name, Some(width)),
        None => (specification, None),
    };
    let Some(entry) = CATALOGUE.iter().find(|entry| entry.name == name) else {
        let known = CATALOGUE
            .iter()
            .map(CatalogueEntry::usage)
            .collect::<Vec<_>>()
            .join(", ");
        return Err(MakeError::Unknown {
            name: shorten(name),
            known,
        });
    };
    let name = entry.name;
    match (entry.make, width) {
        (Make::Fixed(make), None) => Ok(make()),
        (Make::Fixed(_), Some(_)) => Err(MakeError::NoWidth { name }),
        (Make::Matrices(ring), shape) => {
            let text = shape.unwrap_or_default();
            let problem = || MakeError::BadShape {
                name,
                most: MAX_SIDE,
                shape: shorten(text),
            };
            shape_of(text)
                .map(|shape| matrices(ring, shape))
                .ok_or_else(problem)
        }
        (make, None) => {
            let most = make.most();
            Err(MakeError::WidthMissing { name, most })
        }
        (make, Some(width)) => match width.parse() {
            Ok(bits) if (1..=make.most()).contains(&bits) => Ok(of(make, bits)),
            _ => Err(MakeError::BadWidth {
                name,
                most: make.most(),
                width: shorten(width),
            }),
        },
    }
}

impl CatalogueEntry {
    /// How to ask for it: `name`, `name:WIDTH`, or `name:ROWSxINNERxCOLUMNS`.
    pub fn usage(&self) -> String {
        if matches!(self.make, Make::Matrices(_)) {
            return format!("{}:{SHAPE}", self.name);
        }
        if self.takes_width {
            format!("{}:WIDTH", self.name)
        } else {
            self.name.to_owned()
        }
    }

    /// What [`make`] may be asked for: operands of `width` bits where the circuit takes a width, and matrices of four by four.
    pub fn example(&self, width: u32) -> String {
        let usage = self.usage().replace("WIDTH", &width.to_string());
        usage.replace(SHAPE, "4x4x4")
    }
}

// The widest operand that anyone has asked for, and a multiplier of it is still made in a blink.
const MAX_WIDTH: u32 = 256;

// A quarter of a million products, which are made in a blink.
const MAX_SIDE: usize = 64;

/// What a shape says.
const SHAPE: &str = "ROWSxINNERxCOLUMNS";

#[derive(Clone, Copy, Debug)]
enum Make {
    Fixed(fn() -> Circuit),
    /// Two matrices to their product.
    Matrices(Ring),
    /// Two words to a word.
    Word(fn(&mut Builder, &[Wire], &[Wire]) -> Vec<Wire>),
    /// Two words to a bit.
    Bit(fn(&mut Builder, &[Wire], &[Wire]) -> Wire),
    /// Two integers of a ring to an integer.
    Integers(bool, fn(&mut Builder, Wire, Wire, Integer) -> Wire),
    /// An integer of a ring to integers.
    Integer(bool, fn(&mut Builder, Wire, Integer) -> Vec<Wire>),
    /// An integer shorter than a ring to an integer.
    Shorter(bool, fn(&mut Builder, Wire, Integer) -> Wire),
}

impl Make {
    /// The largest width.
    const fn most(self) -> u32 {
        match self {
            Make::Fixed(_) | Make::Matrices(_) | Make::Word(_) | Make::Bit(_) => MAX_WIDTH,
            Make::Integers(..) | Make::Integer(..) => Ring::Z128.bits(),
            Make::Shorter(..) => Ring::Z128.bits() - 1,
        }
    }
}

fn of(make: Make, width: u32) -> Circuit {
    match make {
        Make::Integers(signed, make) => integers(width, signed, true, |b, x, of| {
            vec![make(b, x[0], x[1], of)]
        }),
        Make::Integer(signed, make) => integers(width, signed, false, |b, x, of| make(b, x[0], of)),
        Make::Shorter(signed, make) => integers_in(
            ring_of(width + 1),
            Integer {
                bits: width,
                signed,
            },
            false,
            |b, x, of| vec![make(b, x[0], of)],
        ),
        make => binary(make, width),
    }
}

/// Of integers in the smallest ring that has them, which are the inputs `x` and, if there are `two`, `y`.
fn integers(
    bits: u32,
    signed: bool,
    two: bool,
    make: impl FnOnce(&mut Builder, &[Wire], Integer) -> Vec<Wire>,
) -> Circuit {
    integers_in(ring_of(bits), Integer { bits, signed }, two, make)
}

/// The smallest ring that has so many bits.
fn ring_of(bits: u32) -> Ring {
    if bits <= Ring::Z64.bits() {
        Ring::Z64
    } else {
        Ring::Z128
    }
}

fn integers_in(
    ring: Ring,
    of: Integer,
    two: bool,
    make: impl FnOnce(&mut Builder, &[Wire], Integer) -> Vec<Wire>,
) -> Circuit {
    let mut b = Builder::new(ring);
    let mut inputs = b.input("x", 1, Per::Row);
    if two {
        inputs.extend(b.input("y", 1, Per::Row));
    }
    let out = make(&mut b, &inputs, of);
    b.output("out", &out);
    b.finish()
        .expect("ports of other names, and fewer gates than the limit")
}

fn shape_of(text: &str) -> Option<Shape> {
    let sides = text.split('x').map(|side| side.parse().ok());
    let sides = sides.collect::<Option<Vec<usize>>>()?;
    let shape: Shape = sides.try_into().ok()?;
    let fits = shape.iter().all(|side| (1..=MAX_SIDE).contains(side));
    fits.then_some(shape)
}

/// Of the matrices `x` and `y`, row by row.
fn matrices(ring: Ring, shape: Shape) -> Circuit {
    let [rows, inner, columns] = shape;
    let mut b = Builder::new(ring);
    let x = b.input("x", (rows * inner) as u32, Per::Row);
    let y = b.input("y", (inner * columns) as u32, Per::Row);
    let out = matrix_product(&mut b, &x, &y, shape);
    b.output("out", &out);
    b.finish()
        .expect("two ports of other names, and fewer gates than the limit")
}

fn binary(make: Make, width: u32) -> Circuit {
    let mut b = Builder::new(Ring::Bits);
    let (x, y) = (b.input("x", width, Per::Row), b.input("y", width, Per::Row));
    let out = match make {
        Make::Fixed(make) => return make(),
        Make::Matrices(ring) => return matrices(ring, [width as usize; 3]),
        Make::Integers(..) | Make::Integer(..) | Make::Shorter(..) => return of(make, width),
        Make::Word(make) => make(&mut b, &x, &y),
        Make::Bit(make) => vec![make(&mut b, &x, &y)],
    };
    b.output("out", &out);
    b.finish()
        .expect("two ports of other names, and fewer gates than the limit")
}

fn shorten(text: &str) -> String {
    // Enough to recognise a slip of the keyboard.
    text.chars()
        .take(40)
        .filter(|char| !char.is_control())
        .collect()
}
