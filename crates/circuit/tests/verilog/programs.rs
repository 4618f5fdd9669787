//! The programs: how long they may run, where, and what they find there.

use std::time::Duration;

use veil_circuit::verilog::{Comparison, Source, VerilogError, compare, compile};
use veil_circuit::yosys::Options;

use super::support::{Design, can_run, compiled, refused, values};

/// What a comparison of a design with its circuit says.
fn compared(design: &Design) -> Result<Comparison, VerilogError> {
    let made = compile(&design.source, &Options::default())?;
    compare(
        &design.source,
        &made,
        &made.circuit,
        &values(&made.circuit, 4),
    )
}

/// A design with something in it that a simulation runs and synthesis does not read.
fn simulated(body: &str) -> Design {
    let text = format!(
        "module t(input a, output b);\n  assign b = ~a;\n`ifndef SYNTHESIS\n{body}\n`endif\nendmodule\n"
    );
    compiled(&text).0
}

#[test]
fn a_program_that_does_not_end_is_ended() {
    if !can_run() {
        return;
    }
    let text = "module t(input a, output b);
  function integer never(input integer n);
    begin while (n >= 0) n = n ^ 1; never = n; end
  endfunction
  localparam N = never(2);
  assign b = a ^ N[0];
endmodule\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("design.v");
    std::fs::write(&file, text).unwrap();
    let source = Source::new(&[file], Some("t"), Duration::from_secs(1)).unwrap();
    let error = compile(&source, &Options::default()).unwrap_err();
    assert!(
        matches!(
            error,
            VerilogError::TooLong {
                program: "yosys",
                ..
            }
        ),
        "{error}"
    );
}

/// What a design says to a simulator alone is not run, whatever it is.
#[test]
fn a_check_runs_nothing_of_a_design() {
    if !can_run() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join("left");
    let bodies = [
        "  integer f; initial begin f = $fopen(\"LEFT\", \"w\"); $fdisplay(f, \"a\"); end",
        "  initial $system(\"touch LEFT\");",
        "  initial $dumpfile(\"LEFT\"); initial $dumpvars;",
        "  reg [7:0] m [0:1]; initial $writememh(\"LEFT\", m);",
        "  initial while (1);",
        "  initial $finish;",
        "  initial begin $display(\"veil: 0 0 1\"); $display(\"veil: 9 9 9\"); end",
        "  reg [3:0] t [0:3]; initial $readmemh(\"none.hex\", t);",
    ];
    for body in bodies {
        let design = simulated(&body.replace("LEFT", left.to_str().unwrap()));
        let same = Comparison::Same {
            rows: 4,
            undefined: 0,
        };
        assert_eq!(compared(&design).unwrap(), same, "{body}");
        assert!(!left.exists(), "{body}");
    }
}

/// Yosys can call functions of libraries while it reads, and is told not to.
#[test]
fn a_design_calls_no_functions_of_others() {
    if !can_run() {
        return;
    }
    let text = "module t(input a, output b);
import \"DPI-C\" function integer abs(integer);
  localparam N = abs(-4);
  assign b = a ^ N[2];
endmodule\n";
    let error = refused(text);
    assert!(error.contains("Found DPI function \\abs"), "{error}");
}

/// Whatever way a design finds to name a file: one that was not delivered with it becomes no part of a circuit.
#[test]
fn a_design_reads_no_files_of_others() {
    if !can_run() {
        return;
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(elsewhere.path().join(name), text).unwrap();
    write("secret.hex", "1\n9\n4\n7\n");
    write("secret.v", "localparam N = 1;\n");
    let table = |how: &str, name: &str| {
        format!(
            "module t(input [1:0] a, output [3:0] b);\n  reg [3:0] t [0:3];\n{how}  initial $readmemh({name}, t);\n  assign b = t[a];\nendmodule\n"
        )
    };
    let include = |how: &str| {
        format!("module t(input a, output b);\n{how}\n  assign b = a ^ N;\nendmodule\n")
    };
    let hidden = [(".hidden.hex", "1\n9\n4\n7\n")];
    let secret = |name: &str| elsewhere.path().join(name).display().to_string();
    let (hex, text) = (secret("secret.hex"), secret("secret.v"));
    // What is named in so many words is not opened.
    let named = [
        (table("", &format!("\"{hex}\"")), 3, &*hex),
        (include(&format!("`include \"{text}\"")), 2, &text),
        (table("", "\"../secret.hex\""), 3, "../secret.hex"),
        (table("", "\".hidden.hex\""), 3, ".hidden.hex"),
    ];
    for (design, line, name) in named {
        let error = Design::with(&design, &hidden).map(|_| ()).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains(&format!(
                "design.v:{line}: the design reads `{name}`, which is not beside it"
            )),
            "{error}"
        );
    }
    // What is put together is read, and nothing comes of it.
    let parameter = format!("  localparam F = \"{hex}\";\n");
    let macros = format!("`define F \"{text}\"\n`define READ(name) `include name\n`include `F");
    for design in [table(&parameter, "F"), include(&macros)] {
        let error = Design::new(&design).map(|_| ()).unwrap_err();
        assert!(
            !matches!(error, VerilogError::Yosys(_)) && error.to_string().contains("secret"),
            "{error}"
        );
    }
    // Nor is a link of the folder a file of it.
    let design = Design::with(&table("", "\"t.hex\""), &[("t.hex", "1\n9\n4\n7\n")]).unwrap();
    let beside = design.source.files[0].with_file_name("t.hex");
    std::fs::remove_file(&beside).unwrap();
    std::os::unix::fs::symlink(&hex, &beside).unwrap();
    let error = compile(&design.source, &Options::default()).unwrap_err();
    assert!(matches!(error, VerilogError::Elsewhere { .. }), "{error}");
}

#[test]
fn data_beside_the_source_are_found_and_missing_ones_named() {
    if !can_run() {
        return;
    }
    let table = "module t(input [1:0] a, output [3:0] b);\n  reg [3:0] t [0:3];\n  initial $readmemh(\"t.hex\", t);\n  assign b = t[a];\nendmodule\n";
    let missing = Design::new(table).map(|_| ()).unwrap_err();
    assert!(missing.to_string().contains("t.hex"), "{missing}");

    let design = Design::with(table, &[("t.hex", "1\n9\n4\n7\n")]).unwrap();
    let undefined = 0;
    assert_eq!(
        compared(&design).unwrap(),
        Comparison::Same { rows: 4, undefined }
    );
}
