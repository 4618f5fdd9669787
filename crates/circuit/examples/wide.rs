//! Writes a circuit of many gates in Bristol Fashion: the product of two matrices of `N` times `N` bits.
//!
//! ```text
//! cargo run --release -p veil-circuit --example wide -- 172 > wide.txt      # 5 088 448 ANDs
//! ```

use std::io::{BufWriter, Write};

use veil_circuit::generate::matrix_product;
use veil_circuit::{Builder, Flavour, Per, bristol};
use veil_math::Ring;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let side: usize = std::env::args().nth(1).ok_or("how many rows?")?.parse()?;
    let wires = u32::try_from(side * side)?;
    let mut b = Builder::new(Ring::Bits);
    let x = b.input("x", wires, Per::Row);
    let y = b.input("y", wires, Per::Row);
    let out = matrix_product(&mut b, &x, &y, [side; 3]);
    b.output("out", &out);
    let mut to = BufWriter::new(std::io::stdout().lock());
    bristol::write(&b.finish()?, Flavour::Fashion, &mut to)?;
    Ok(to.flush()?)
}
