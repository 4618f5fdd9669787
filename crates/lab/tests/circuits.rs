//! Circuits: made, converted, compiled, compared and run.

use crate::common::Folder;

#[test]
fn circuits_are_made_shown_converted_and_compared() {
    let folder = Folder::new();
    assert!(folder.succeed("circuit list").contains("adder:WIDTH"));
    folder.succeed("circuit make adder:8 --out a.txt");
    let info: serde_json::Value =
        serde_json::from_str(&folder.succeed("circuit info a.txt --json")).unwrap();
    assert_eq!(
        (info["products"].as_u64(), info["depth"].as_u64()),
        (Some(7), Some(7))
    );
    assert_eq!(info["hash"].as_str().map(str::len), Some(64));
    folder.succeed("circuit convert a.txt --to old --out old.txt");
    // The older format has the widths of two inputs and an output on its second line.
    let old = std::fs::read_to_string(folder.at("old.txt")).unwrap();
    assert_eq!(old.lines().nth(1), Some("8 8 8"));
    let same = "the same: old.txt and make:adder-fast:8 agree on all 65536 inputs\n";
    assert_eq!(
        folder.succeed("circuit check old.txt make:adder-fast:8"),
        same
    );
    assert!(
        folder
            .succeed("circuit check make:aes128 make:aes128-shallow --cases 50")
            .contains("agree on 50 random inputs")
    );
    folder.succeed("circuit convert make:mul:8 --optimise --out m.txt");
    assert!(
        folder
            .succeed("circuit check m.txt make:mul:8")
            .contains("on all 65536")
    );
    assert!(
        folder
            .succeed("circuit check m.txt")
            .contains("m.txt is a valid circuit")
    );
}

/// Case S10: a foreign design does nothing with the rights of the user who checks it, and takes nothing home.
#[test]
fn a_check_of_a_foreign_design_runs_nothing() {
    if !veil_circuit::verilog::is_installed() {
        eprintln!("SKIPPED: yosys or iverilog is not installed (apt-get install yosys iverilog)");
        return;
    }
    let folder = Folder::new();
    let left = folder.at("left");
    let secret = folder.at("secret.hex");
    std::fs::create_dir(folder.at("design")).unwrap();
    folder.write("secret.hex", "1\n");
    folder.write("design/.hidden.hex", "1\n");
    let design = |body: &str| {
        let body = body.replace("LEFT", left.to_str().unwrap());
        let text = format!("module t(input a, output b);\n{body}\n  assign b = ~a;\nendmodule\n");
        folder.write("design/t.v", text);
    };
    for body in [
        "`ifndef SYNTHESIS\n  integer f; initial begin f = $fopen(\"LEFT\", \"w\"); $fdisplay(f, \"a\"); $fclose(f); end\n`endif",
        "`ifndef SYNTHESIS\n  initial $system(\"touch LEFT\");\n`endif",
    ] {
        design(body);
        let said = folder.succeed("circuit check design/t.v");
        assert!(
            said.starts_with("a simulation of `t` agrees with its circuit on all 2 inputs\n"),
            "{said}"
        );
        assert!(!left.exists(), "{body}");
    }
    for (body, said) in [
        (
            "  integer f; initial f = $fopen(\"LEFT\", \"w\");".to_owned(),
            "Can't resolve function name `\\$fopen'".to_owned(),
        ),
        (
            "  initial $system(\"touch LEFT\");".to_owned(),
            "Can't resolve task name `\\$system'".to_owned(),
        ),
        (
            format!("`include \"{}\"", secret.display()),
            format!(
                "design/t.v:2: the design reads `{}`, which is not beside it",
                secret.display()
            ),
        ),
        (
            "  reg [3:0] m [0:0]; initial $readmemh(\"../secret.hex\", m);".to_owned(),
            "design/t.v:2: the design reads `../secret.hex`, which is not beside it".to_owned(),
        ),
        (
            "  reg [3:0] m [0:0]; initial $readmemh({\"./\", \".hidden.hex\"}, m);".to_owned(),
            "hidden.hex".to_owned(),
        ),
    ] {
        design(&body);
        folder.fail("circuit check design/t.v", 3, &[&said]);
        folder.fail("circuit compile design/t.v --out t.txt", 3, &[&said]);
        assert!(!left.exists() && !folder.at("t.txt").exists(), "{body}");
    }
}

/// Verilog becomes a netlist with names and cycles, and is compared with its simulation.
#[test]
fn verilog_is_compiled_and_simulated() {
    if !veil_circuit::verilog::is_installed() {
        eprintln!("SKIPPED: yosys or iverilog is not installed (apt-get install yosys iverilog)");
        return;
    }
    let folder = Folder::new();
    folder.write(
        "max.v",
        "module max(input [3:0] a, b, output [3:0] most);\n  assign most = a > b ? a : b;\nendmodule\n",
    );
    let said = folder.succeed("circuit compile max.v --out max.txt");
    assert!(said.contains(": 8 AND"), "{said}");
    let said = folder.succeed("circuit info max.txt");
    assert!(
        said.contains("a: 4 bits") && said.contains("most: 4 bits"),
        "{said}"
    );
    let said = folder.succeed("circuit check max.v");
    assert!(
        said.starts_with("a simulation of `max` agrees with its circuit on all 256 inputs\n"),
        "{said}"
    );
    let said = folder.succeed("circuit check max.txt max.v");
    assert!(
        said.contains("agrees with max.txt on all 256 inputs\n"),
        "{said}"
    );
    assert!(
        said.ends_with("the same: max.txt and max.v agree on all 256 inputs\n"),
        "{said}"
    );
    folder.fail(
        "circuit check make:adder:4 max.v",
        4,
        &["differ: the input"],
    );

    folder.write(
        "sum.v",
        "(* cycles = 5 *)\nmodule sum(input clk, input [7:0] x, output [11:0] total);\n  reg [11:0] kept = 0;\n  \
         assign total = kept + x;\n  always @(posedge clk) kept <= total;\nendmodule\n",
    );
    let info: serde_json::Value =
        serde_json::from_str(&folder.succeed("circuit info sum.v --json")).unwrap();
    assert_eq!(
        (info["registers"].as_u64(), info["cycles"].as_u64()),
        (Some(12), Some(5))
    );
    let said = folder.succeed("circuit compile sum.v --cycles 7 -o sum.txt");
    assert!(said.contains("7 cycles"), "{said}");
    let said = folder.succeed("circuit check sum.txt sum.v --cycles 7 --cases 70");
    assert!(
        said.contains("agrees with sum.txt on 70 inputs\n"),
        "{said}"
    );

    folder.write(
        "latch.v",
        "module t(input s, a, output reg y);\n  always @* if (s) y = a;\nendmodule\n",
    );
    let latch = ["latch.v:2: `y` keeps its value"];
    folder.fail("circuit compile latch.v --out latch.txt", 3, &latch);
}

/// A circuit of integers goes through a file into a job, among three parties and among four.
#[test]
fn circuits_of_integers_are_files_too() {
    let folder = Folder::new();
    folder.succeed("circuit make int-max-signed:32 --out max.txt");
    let text = std::fs::read_to_string(folder.at("max.txt")).unwrap();
    assert!(
        text.lines().next().unwrap().ends_with(" integers 64"),
        "{text}"
    );
    let said = folder.succeed("circuit info max.txt");
    assert!(said.contains("in0: 1 integers of 64 bits"), "{said}");
    let same = folder.succeed("circuit check max.txt make:int-max-signed:32 --cases 200");
    assert!(same.contains("agree on 200 random inputs"), "{same}");
    folder.succeed("circuit convert make:int-div:16 --optimise --out divide.txt");
    folder.succeed("circuit check divide.txt");
    let job = r#"version = 1
kind = "circuit"
name = "larger"
owners = ["mill", "b"]
parties = ["a", "b", "c"]
recipients = ["press"]
[circuit]
file = "max.txt"
rows = 4
[[input]]
port = "in0"
owner = "mill"
format = "csv"
column = "x"
file = "x.csv"
[[input]]
port = "in1"
owner = "b"
format = "csv"
column = "y"
file = "y.csv"
[[output]]
port = "out0"
to = "press"
format = "csv"
signed = true
file = "larger.csv"
"#;
    folder.write("three.toml", job);
    folder.write("four.toml", job.replace("\"c\"]", "\"c\", \"d\"]"));
    folder.write("x.csv", "x\n-5\n2147483647\n0\n-2147483648\n");
    folder.write("y.csv", "y\n-6\n-2147483648\n1\n-2147483647\n");
    for (job, how) in [("three.toml", ""), ("four.toml", "--processes")] {
        folder.succeed(&format!("run {job} --out {job}-out {how}"));
        let result = std::fs::read_to_string(folder.at(&format!("{job}-out/press/larger.csv")));
        assert_eq!(result.unwrap(), "out0\n-5\n2147483647\n1\n-2147483647\n");
        let explained = folder.succeed(&format!("explain {job}"));
        assert!(
            explained.contains("an integer of 64 bits of each of 4 rows"),
            "{explained}"
        );
    }
}

/// A netlist with a flip-flop goes through a file of ours into jobs, whichever parties compute them.
#[test]
fn netlists_run_for_so_many_cycles() {
    let folder = Folder::new();
    let adder = "0 0 1 1 1 1 5\n0 1 3 0 2\n2 2 4 4 5\n6 6 8 6 6\n6\n7\n-2\n";
    folder.write("adder.scd", adder);
    let said = folder.succeed("circuit info adder.scd --cycles 8 --json");
    let info: serde_json::Value = serde_json::from_str(&said).unwrap();
    let counts = ["products", "registers", "cycles", "total_products"];
    let counts = counts.map(|name| info[name].as_u64());
    assert_eq!(counts, [1, 1, 8, 8].map(Some));
    assert_eq!(info["inputs"][0]["per"], "cycle");
    let said = folder.succeed("circuit info adder.scd --cycles 8 --last");
    assert!(
        said.contains("1 registers, 8 cycles: 8 AND in all"),
        "{said}"
    );
    folder.succeed("circuit convert adder.scd --cycles 8 --optimise --out adder.txt");
    let text = std::fs::read_to_string(folder.at("adder.txt")).unwrap();
    assert!(
        text.starts_with("5 8 sequential 8\ninput 1 cycle g_input\n"),
        "{text}"
    );
    for files in [
        "adder.txt make:adder:8",
        "adder.scd make:adder:8 --cycles 8",
    ] {
        let same = folder.succeed(&format!("circuit check {files}"));
        assert!(same.contains("agree on all 65536 inputs"), "{same}");
    }
    let job = r#"version = 1
kind = "circuit"
name = "serial"
owners = ["mill", "b"]
parties = ["a", "b", "c"]
recipients = ["press"]
[circuit]
file = "adder.scd"
cycles = 40
[[input]]
port = "g_input"
owner = "mill"
format = "csv"
column = "x"
file = "x.csv"
[[input]]
port = "e_input"
owner = "b"
format = "csv"
column = "y"
file = "y.csv"
[[output]]
port = "output"
to = "press"
format = "csv"
file = "sum.csv"
"#;
    let malicious = job.replace("version = 1", "version = 1\nadversary = \"malicious\"");
    folder.write("three.toml", job);
    folder.write("proved.toml", malicious);
    folder.write("four.toml", job.replace("\"c\"]", "\"c\", \"d\"]"));
    folder.write("x.csv", "x\n1000000000000\n0\n7\n");
    folder.write("y.csv", "y\n99511627775\n0\n35\n");
    for (job, how) in [
        ("three.toml", "--processes"),
        ("proved.toml", ""),
        ("four.toml", ""),
    ] {
        folder.succeed(&format!("run {job} --out {job}-out {how}"));
        let result = std::fs::read_to_string(folder.at(&format!("{job}-out/press/sum.csv")));
        assert_eq!(result.unwrap(), "output\n1099511627775\n0\n42\n");
        folder.succeed(&format!("explain {job}"));
    }
}

#[test]
fn circuits_that_differ() {
    let folder = Folder::new();
    folder.write("bad.txt", "1 3\n2 1 1\n1 1\n\n2 1 0 9 2 AND\n");
    folder.fail(
        "circuit check bad.txt",
        3,
        &["bad.txt: line 5, column 7", "wire 9 does not exist"],
    );
    folder.fail(
        "circuit check make:lt:4 make:lt-signed:4",
        4,
        &["differ", "the input 0x"],
    );
}
