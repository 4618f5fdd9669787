//! Verilog that is no circuit: the line, and what to do.

use super::support::{can_run, refused};

/// Checks the error of a design.
fn is(text: &str, error: &str) {
    assert_eq!(refused(text), error, "{text}");
}

#[test]
fn syntax_and_top() {
    if !can_run() {
        return;
    }
    is(
        "module t(input a, output b);\n  assign b = a\nendmodule",
        "design.v:3: syntax error, unexpected TOK_ENDMODULE",
    );
    is(
        "",
        "no module can be the top one: there is none, or each is an instance in another",
    );
    is(
        "module one(input a, output b); assign b = a; endmodule\nmodule two(input a, output b); assign b = a; endmodule",
        "each of one, two could be the top module; choose one by --top",
    );
    is(
        "module t(input a);\n  wire b = ~a;\nendmodule",
        "the circuit has no outputs; name at least one",
    );
}

#[test]
fn values_that_no_party_knows() {
    if !can_run() {
        return;
    }
    is(
        "module t(input s, a,\n  output reg y);\n  always @*\n    if (s) y = a;\nendmodule",
        "design.v:3: `y` keeps its value when no branch assigns it, which is a latch; assign it in every branch, or in a clocked process",
    );
    is(
        "module t(input [1:0] s, input a, output reg y);\n  always @*\n    case (s)\n      0: y = a;\n      1: y = ~a;\n      default: y = 1'bx;\n    endcase\nendmodule",
        "design.v:3: `y` can be undefined (x) and a result depends on it; give it a value in every case",
    );
    is(
        "module t(input a, output y);\n  wire w;\n  assign y = a & w;\nendmodule",
        "design.v:2: `w` is never given a value, and a result depends on it; assign it",
    );
    is(
        "module t(input a, output y, z);\n  assign y = a;\nendmodule",
        "design.v:1: `z` is never given a value, and a result depends on it; assign it",
    );
    is(
        "module t(input a, output y);\n  assign y = 1'bx;\nendmodule",
        "design.v:1: `y` can be undefined (x) and a result depends on it; give it a value in every case",
    );
    is(
        "module t(input a, s, output y);\n  assign y = s ? a : 1'bz;\nendmodule",
        "design.v:2: `y` can be high impedance (z), which a circuit of gates has not; choose by a condition instead",
    );
    is(
        "module t(input s,\n  inout a, output y);\n  assign y = a & s;\nendmodule",
        "design.v:2: port `a` is an inout; make it an input and an output",
    );
}

#[test]
fn structure() {
    if !can_run() {
        return;
    }
    is(
        "module t(input a, output y);\n  wire w;\n  other u(a, w);\n  assign y = ~w;\nendmodule",
        "design.v:3: `other` is a black box: its definition is in none of the files",
    );
    is(
        "module t(input a, b, output y);\n  assign y = a & b;\n  assign y = a | b;\nendmodule",
        "design.v:1: `y` is driven twice; give it one driver",
    );
    is(
        "module t(input a, output y);\n  wire w;\n  assign w = y ^ a;\n  assign y = w & a;\nendmodule",
        "design.v:4: `y` depends on itself in the same cycle; break the loop by a register",
    );
    is(
        "module t(input [3:0] a, b, output [7:0] y);\n  assign y = a ** b;\nendmodule",
        "design.v:2: Yosys made this a cell `$pow`, which cannot be computed here; write it in other words",
    );
    is(
        "module t((* per = \"week\" *)\n  input a, output y);\n  assign y = a;\nendmodule",
        "design.v:2: attribute `per` is \"week\"; write \"row\", \"job\" or \"cycle\"",
    );
}

#[test]
fn clocks_resets_and_first_values() {
    if !can_run() {
        return;
    }
    let design = |body: &str| {
        format!(
            "(* cycles = 3 *)\nmodule t(input clk, ck2, rst, d, output y);\n  reg q = 0, p = 0;\n{body}\n  assign y = q ^ p;\nendmodule"
        )
    };
    is(
        &design("  always @(posedge clk) q <= d;\n  always @(posedge ck2) p <= d;"),
        "design.v:4: registers have two clocks, `ck2` and `clk`; a netlist cycle is a period of one",
    );
    is(
        &design("  always @(posedge clk) q <= d;\n  always @(negedge clk) p <= d;"),
        "design.v:4: registers change at both edges of clock `clk`; use one edge",
    );
    is(
        &design("  wire g = clk & d;\n  always @(posedge g) begin q <= d; p <= q; end"),
        "design.v:5: the clock `g` is computed; registers need an input of one bit as their clock, and choose by a condition whether they change",
    );
    is(
        &design("  always @(posedge clk) begin q <= d; p <= q ^ clk; end"),
        "design.v:2: port `clk` is a clock and a value at once; use it for registers alone",
    );
    is(
        &design(
            "  wire r = rst & d;\n  always @(posedge clk or posedge r) if (r) begin q <= 0; p <= 0; end else begin q <= d; p <= q; end",
        ),
        "design.v:5: the asynchronous reset `r` is not the one input of the design that sets first values; make other resets synchronous",
    );
    is(
        &design(
            "  always @(posedge clk or posedge rst) if (rst) begin q <= 0; p <= 0; end else begin q <= d; p <= q ^ rst; end",
        ),
        "design.v:2: port `rst` is a reset and a value at once; use it for registers alone",
    );
    is(
        &design(
            "  always @(posedge clk or posedge rst) if (rst) begin q <= d & ck2; p <= 0; end else begin q <= d; p <= q; end",
        ),
        "design.v:4: register `q` begins as a value that is computed; it may begin as a constant or as an input",
    );
    is(
        "(* cycles = 3 *)\nmodule t(input clk, d, output reg q);\n  always @(posedge clk)\n    q <= d;\nendmodule",
        "design.v:3: register `q` has no first value; give it one by `initial`, or by an asynchronous reset to a constant or an input",
    );
    is(
        "module t(input clk, d, output reg q);\n  initial q = 0;\n  always @(posedge clk) q <= d;\nendmodule",
        "design.v:1: the design has registers; say for how many cycles it runs: --cycles N, or (* cycles = N *) before the module",
    );
}
