//! A job between two parties that garble.
#![allow(dead_code, reason = "each test binary uses its part")]

use super::Folder;

/// All participants: the garbler, the evaluator, the owner, the recipient.
pub(crate) const NAMES: &[&str] = &["a", "b", "ann", "eve"];

pub(crate) const JOB: &str = r#"version = 1
kind = "circuit"
name = "between two"
owners = ["ann"]
parties = ["a", "b"]
recipients = ["eve"]
circuit = { file = "chain.txt", rows = 40 }
input = [{ port = "in0", owner = "ann", format = "hex", file = "rows.hex" },
         { port = "in1", owner = "ann", per = "job", format = "hex", file = "job.hex" }]
output = [{ port = "out0", to = "eve", format = "hex", file = "all.hex" },
          { port = "out1", to = "INSIDE", format = "hex", file = "own.hex" }]
"#;

/// Bits of a row, of which there are `width`, and the product of two of the job, multiplied one after the other: tables of several messages.
pub(crate) fn chain(width: u32) -> String {
    const PRODUCTS: u32 = 250;
    let key = width + 2;
    let mut last = key + 1;
    let mut gates = format!("2 1 {width} {} {key} AND\n2 1 0 1 {last} AND\n", width + 1);
    for k in 0..PRODUCTS {
        let (sum, product) = (last + 1, last + 2);
        let gate = |a, b, out, kind| format!("2 1 {a} {b} {out} {kind}\n");
        gates.push_str(&gate(last, key, sum, "XOR"));
        gates.push_str(&gate(sum, k % 2, product, "AND"));
        last = product;
    }
    let count = 2 + 2 * PRODUCTS;
    format!("{count} {}\n2 {width} 2\n2 1 1\n\n{gates}", last + 1)
}

pub(crate) fn rows() -> String {
    "00\n01\n02\n03\n".repeat(10)
}

/// A folder with the job as all have it, and as one has it that is changed by `change`.
pub(crate) fn with_other(change: impl Fn(&Folder)) -> Folder {
    let folder = Folder::new();
    folder.write("rows.hex", rows());
    folder.write("job.hex", "03\n");
    folder.write("chain.txt", chain(2));
    folder.write("other.txt", chain(2));
    folder.write("job.toml", JOB.replace("INSIDE", "a"));
    folder.write(
        "other.toml",
        JOB.replace("INSIDE", "a").replace("chain.txt", "other.txt"),
    );
    change(&folder);
    folder
}
