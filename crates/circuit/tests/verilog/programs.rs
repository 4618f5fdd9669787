//! The programs: how long they may run, where, and what they find there.

use std::path::Path;
use std::time::Duration;

use veil_circuit::verilog::{Comparison, VerilogError, compare, compile};
use veil_circuit::yosys::Options;

use super::support::{Design, can_run, compiled, values};

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
fn a_simulation_that_does_not_end_is_ended() {
    if !can_run() {
        return;
    }
    let mut design = simulated("  initial while (1);");
    design.source.time = Duration::from_secs(1);
    let error = compared(&design).unwrap_err();
    assert!(
        matches!(error, VerilogError::TooLong { program: "vvp", .. }),
        "{error}"
    );
    design.source.time = Duration::ZERO;
    let error = compared(&design).unwrap_err();
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

#[test]
fn a_simulation_leaves_no_files_where_it_is_called() {
    if !can_run() {
        return;
    }
    let design = simulated(
        "  integer f; initial begin f = $fopen(\"left-by-a-design\", \"w\"); $fdisplay(f, \"a\"); end",
    );
    assert!(matches!(compared(&design), Ok(Comparison::Same { .. })));
    assert!(!Path::new("left-by-a-design").exists());
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

    let design = simulated("  reg [3:0] t [0:3]; initial $readmemh(\"none.hex\", t);");
    let error = compared(&design).unwrap_err();
    assert!(matches!(error, VerilogError::NoData(_)), "{error}");
    assert!(error.to_string().contains("design.v:4"), "{error}");
    assert!(error.to_string().contains("none.hex"), "{error}");
}
