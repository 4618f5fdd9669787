//! Circuit jobs.

use crate::job_errors::refusal;

pub(crate) const CIRCUIT: &str = r#"version = 1
kind = "circuit"
name = "add"
owners = ["a", "b"]
parties = ["p", "q", "r"]
recipients = ["c"]

[circuit]
make = "adder:12"
rows = 2

[[input]]
port = "x"
owner = "a"
format = "csv"
column = "n"

[[input]]
port = "y"
owner = "b"
format = "binary"

[[output]]
port = "out"
to = "c"
format = "binary"
file = "sum"
"#;

#[test]
fn mistakes_in_a_circuit_job() {
    for (from, to, message) in [
        (
            "make = \"adder:12\"",
            "make = \"adder\"",
            "job.toml:9:8: cannot use circuit `adder`: `adder` needs a width",
        ),
        (
            "file = \"sum\"",
            "file = \"Receipt.JSON\"",
            "job.toml:27:8: `Receipt.JSON` is no name of a result: a receipt is called `receipt.json`",
        ),
        (
            "file = \"sum\"",
            "file = \"receipt.json/sum\"",
            "job.toml:27:8: `receipt.json` is no name of a result",
        ),
        (
            "file = \"sum\"",
            "file = \"sums/.veil-x\"",
            "job.toml:27:8: `.veil-x` is no name of a result",
        ),
        (
            "make = \"adder:12\"",
            "file = \"none.txt\"",
            "job.toml:9:8: cannot use circuit `none.txt`: No such file",
        ),
        (
            "make = \"adder:12\"",
            "",
            "job.toml:8:1: write either `make` or `file`, not neither",
        ),
        (
            "make = \"adder:12\"",
            "make = \"adder:12\"\nfile = \"x\"",
            "job.toml:8:1: write either `make` or `file`, not both",
        ),
        (
            "version = 1",
            "version = 1\nprotocol = \"rep5\"",
            "job.toml:2:12: `protocol` is \"rep5\": write \"rep3\" or \"rep4\"",
        ),
        (
            "version = 1",
            "version = 1\nprotocol = \"rep4\"",
            "job.toml:2:12: `protocol` is \"rep4\": it is of 4 parties, and the job names 3",
        ),
        (
            "version = 1",
            "version = 1\nadversary = \"malicious\"\ndelivery = \"guaranteed\"",
            "job.toml:3:12: `delivery` is \"guaranteed\": one of three parties can always stop the others",
        ),
        (
            "rows = 2",
            "rows = 0",
            "job.toml:10:8: the job has 0 rows; give it at least 1 or remove it",
        ),
        (
            "rows = 2",
            "",
            "job.toml:8:1: the number of rows is not known here: write `rows = …` under [circuit]",
        ),
        (
            "port = \"x\"",
            "port = \"z\"",
            "job.toml:13:8: input port `z` is not defined; there are `x`, `y`",
        ),
        (
            "port = \"x\"",
            "port = \"y\"",
            "job.toml:8:1: input port `x` of the circuit is supplied by no participant; add an [[input]] for it",
        ),
        (
            "port = \"x\"\n",
            "port = \"x\"\ncombine = \"xor\"\n",
            "job.toml:12:1: input port `x` of the circuit is supplied once; `combine` needs at least two inputs",
        ),
        (
            "[[output]]",
            "[[input]]\nport = \"x\"\nowner = \"b\"\nformat = \"hex\"\n[[output]]",
            "job.toml:23:1: input port `x` of the circuit is supplied 2 times; write `combine` in each: `xor` or `sum`, if its value is that of theirs",
        ),
        (
            "[[output]]",
            "combine = \"sum\"\n[[input]]\nport = \"y\"\nowner = \"b\"\ncombine = \"xor\"\nformat = \"hex\"\n[[output]]",
            "job.toml:24:1: input port `y` of the circuit is supplied 2 times; `combine` must be the same in all of them",
        ),
        (
            "column = \"n\"\n",
            "",
            "job.toml:15:10: csv input `x` needs `column`; add it",
        ),
        (
            "column = \"n\"",
            "column = \"n\"\npad = \"zero\"",
            "job.toml:15:10: csv input `x` has no use for `pad`; remove it",
        ),
        (
            "format = \"binary\"\n\n",
            "format = \"binary\"\npad = \"pkcs7\"\n\n",
            "job.toml:21:10: `pad` is `pkcs7`: it is for values of whole bytes; pad with zeros",
        ),
        (
            "format = \"csv\"\ncolumn = \"n\"",
            "format = \"counter\"",
            "job.toml:15:10: counter input `x` needs `start`; add it",
        ),
        (
            "port = \"out\"",
            "port = \"sum\"",
            "job.toml:24:8: output port `sum` is not defined; there is only `out`",
        ),
        (
            "to = \"c\"",
            "to = \"a\"",
            "job.toml:25:6: recipient `a` is not defined; there are `c`, `p`, `q`, `r`, `parties`",
        ),
        (
            "file = \"sum\"",
            "file = \"../sum\"",
            "job.toml:27:8: `file` is `../sum`: write a path within the folder of results, without `..`",
        ),
        (
            "file = \"sum\"",
            "file = \"/sum\"",
            "job.toml:27:8: `file` is `/sum`",
        ),
        (
            "file = \"sum\"",
            "file = \"sum\"\nbytes = 5",
            "`bytes` is `5`: 2 rows give only 4 bytes",
        ),
        (
            "file = \"sum\"",
            "file = \"sum\"\nlike = \"z\"",
            "input port `z` is not defined; there are `x`, `y`",
        ),
    ] {
        let found = refusal(CIRCUIT, from, to);
        assert!(found.contains(message), "{found}\n{message}");
    }
}
