//! Prints `circuits/manifest.json`: what every generated circuit costs, and its hash.
//!
//! ```text
//! cargo run -p veil-circuit --example manifest > circuits/manifest.json
//! ```

use std::fmt::Write as _;

fn main() {
    print!("{}", manifest());
}

/// The manifest: an object per circuit, one per line.
pub(crate) fn manifest() -> String {
    let mut text = String::from("[\n");
    let entries = veil_circuit::catalogue();
    for (index, entry) in entries.iter().enumerate() {
        let specification = entry.example(64);
        let circuit = veil_circuit::make(&specification).expect("a name of the catalogue");
        let (stats, comma) = (
            circuit.stats(),
            if index + 1 < entries.len() { "," } else { "" },
        );
        write!(
            text,
            "  {{ \"circuit\": \"{specification}\", \"wires\": {}, \"and\": {}, \"xor\": {}, \"not\": {}, \"depth\": {}, \
             \"sha256\": \"",
            stats.wires, stats.muls, stats.adds, stats.pluses, stats.depth
        )
        .expect("writing to a string");
        for byte in circuit.canonical_hash() {
            write!(text, "{byte:02x}").expect("writing to a string");
        }
        writeln!(text, "\" }}{comma}").expect("writing to a string");
    }
    text.push_str("]\n");
    text
}
