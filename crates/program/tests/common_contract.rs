//! The contract of jobs that count, add up or open columns of keys that two parties have in common, and every mistake in them.

use veil_circuit::Per;
use veil_job::{Adversary, Order};
use veil_program::Shows;

use crate::common::Case;
use crate::common_keys::job;

#[test]
fn the_contract_says_what_is_opened() {
    let spec = |text: &str| {
        Case::new(&[("job.toml", text)])
            .load()
            .unwrap()
            .spec()
            .clone()
    };
    let sums = job("sums", [8, 5]).replace("to = \"a\"", "to = \"b\"\nmin_keys = 4");
    let sums = spec(&sums);
    assert_eq!(sums.security.adversary, Adversary::Malicious);
    assert_eq!(sums.blocks[0].order, Order::Unsaid);
    assert!(
        sums.circuit
            .inputs
            .iter()
            .all(|port| port.per == Per::Cycle)
    );
    assert_eq!(
        sums.opened[..2],
        [
            "how many keys `left` of a and `right` of b have in common, for up to 8 and 5 keys, and 0 of fewer than 4: a party that lies can use other keys than those of its file, as many as it has declared",
            "the sum of `left.visits` over the keys that `left` of a and `right` of b have in common, for up to 8 and 5 keys, and 0 of fewer than 4: a party that lies can use other keys than those of its file, as many as it has declared",
        ]
    );
    let columns = job("columns", [8, 5]);
    let columns = spec(&columns);
    assert_eq!(
        columns.opened,
        [
            "which keys of `left` are in `right` of b, and `right.cost`, `right.visits`, `right.day`, `right.ward`, `right.well` of each, for up to 8 keys of a and 5 of b: a party that lies can use other keys than those of its file, as many as it has declared; b learns nothing",
        ]
    );
    assert!(
        columns
            .inputs
            .iter()
            .any(|input| input.format == "decimal with 2 places -5000 to 9999, of `cost`"),
        "{:?}",
        columns.inputs
    );
    // Against a semi-honest party, if the job says so.
    let weaker = job("size", [8, 5]).replace(
        "name = \"both\"",
        "name = \"both\"\nadversary = \"semi-honest\"",
    );
    assert_eq!(spec(&weaker).security.adversary, Adversary::SemiHonest);
    // Whatever is said is agreed on.
    let text = job("sums", [8, 5]);
    for (from, to) in [
        ("up_to = 8", "up_to = 9"),
        (
            "opens = \"sums\"\nto = \"a\"",
            "opens = \"sums\"\nto = \"b\"",
        ),
        ("min = 3, max = 12", "min = 2, max = 12"),
        ("scale = 2", "scale = 3"),
        ("of = [\"id\"]", "of = [\"no\"]"),
        ("to = \"a\"", "to = \"a\"\nmin_keys = 2"),
    ] {
        assert!(text.contains(from), "{from}");
        assert_ne!(spec(&text.replace(from, to)), spec(&text), "{from}");
    }
}

#[test]
fn what_cannot_be_counted_is_refused() {
    for (opens, from, to, says) in [
        (
            "size",
            "opens = \"size\"",
            "opens = \"sizes\"",
            "write \"keys\", \"size\", \"sums\", \"columns\"",
        ),
        (
            "size",
            "up_to = 5",
            "up_to = 65537",
            "the table has up to 65537 keys, and two parties count, add up and open columns of up to 65536; three semi-honest parties do it for any number",
        ),
        (
            "size",
            "to = \"a\"",
            "to = \"a\"\nmin_keys = 0",
            "write a number of keys, 1 to 65536",
        ),
        (
            "columns",
            "to = \"a\"",
            "to = \"a\"\nmin_keys = 2",
            "has no use for `min_keys`",
        ),
        (
            "columns",
            "to = \"a\"",
            "to = \"parties\"",
            "one of the two parties learns which keys both have",
        ),
        (
            "columns",
            "to = \"a\"",
            "to = \"b\"",
            "column `cost` is of the table whose owner learns the result",
        ),
        (
            "size",
            "type = \"key\" }]\n\n[[",
            "type = \"key\" }, { name = \"x\", type = \"bool\" }]\n\n[[",
            "others only if the job opens \"sums\" or \"columns\"",
        ),
        (
            "sums",
            "max = 12, null = true }]\n\n[[",
            "max = 12, null = true }, { name = \"x\", type = \"bool\" }]\n\n[[",
            "column `x` is no number; sums are of integers and decimals",
        ),
        (
            "keys",
            "opens = \"keys\"",
            "opens = \"sums\"",
            "the job opens \"sums\", and no table has a column for it",
        ),
        (
            "size",
            "name = \"both\"",
            "name = \"both\"\nadversary = \"malicious\"\ntechnique = \"cut-and-choose\"",
            "leave `adversary` and `technique` out",
        ),
    ] {
        let text = job(opens, [8, 5]);
        assert!(text.contains(from), "{from}");
        let refusal = Case::new(&[("job.toml", &text.replacen(from, to, 1))])
            .load()
            .unwrap_err();
        assert!(refusal.contains(says), "{to}: {refusal}");
    }
    let one = Shows::Size;
    assert_eq!((one.word(), one.names_keys()), ("size", false));
}
