//! Every operator, signed and not, wider and narrower than its operands.

use super::support::{agrees, can_run, compiled};

/// Compiles `module t(ports); body endmodule`, compares it with the simulation on 200 rows, and returns its ANDs.
fn ands(ports: &str, body: &str) -> u64 {
    let (design, made) = compiled(&format!("module t({ports});\n{body}\nendmodule\n"));
    let undefined = agrees(&design.source, &made, 200);
    assert!(undefined == 0, "{body} has {undefined} undefined bits");
    made.circuit.stats().muls
}

/// Designs, by ports and body, have no more ANDs than these.
#[track_caller]
fn assert_at_most(cases: &[(&str, &str, u64)]) {
    for (ports, body, most) in cases {
        let found = ands(ports, body);
        assert!(
            found <= *most,
            "{ports}: {body}: {found} ANDs, {most} would do"
        );
    }
}

#[test]
fn arithmetic_takes_the_known_numbers_of_ands() {
    if !can_run() {
        return;
    }
    let cases: &[(&str, &str, u64)] = &[
        (
            "input [63:0] a, b, output [63:0] y",
            "assign y = a + b;",
            63,
        ),
        (
            "input [63:0] a, b, output [64:0] y",
            "assign y = a + b;",
            64,
        ),
        (
            "input [63:0] a, b, input c, output [64:0] y",
            "assign y = a + b + c;",
            64,
        ),
        (
            "input [63:0] a, b, output [63:0] y",
            "assign y = a - b;",
            63,
        ),
        ("input [63:0] a, output [63:0] y", "assign y = -a;", 62),
        ("input [63:0] a, output [63:0] y", "assign y = a + 1;", 62),
        (
            "input [31:0] a, b, output [31:0] y",
            "assign y = a * b;",
            993,
        ),
        (
            "input [31:0] a, b, output [63:0] y",
            "assign y = a * b;",
            2016,
        ),
        (
            "input signed [31:0] a, b, output signed [63:0] y",
            "assign y = a * b;",
            2016,
        ),
        (
            "input signed [31:0] a, b, output signed [31:0] y",
            "assign y = a * b;",
            993,
        ),
        (
            "input signed [7:0] a, input [7:0] b, output [15:0] y",
            "assign y = $signed(a) * $signed({1'b0, b});",
            128,
        ),
        (
            "input [15:0] a, b, c, d, output [31:0] y",
            "assign y = a * b + c + d;",
            512,
        ),
        (
            "input signed [7:0] a, b, c, output signed [17:0] y",
            "assign y = a * b - c * 3 + 17;",
            180,
        ),
        ("input [15:0] a, output [31:0] y", "assign y = a * a;", 256),
        ("input [15:0] a, output [31:0] y", "assign y = a * 10;", 16),
        (
            "input [7:0] a, b, output [7:0] y",
            "assign y = {a[3:0], b[3:0]} + {b[3:0], a[3:0]};",
            7,
        ),
        (
            "input signed [3:0] a, input signed [7:0] b, output signed [15:0] y",
            "assign y = a - b;",
            8,
        ),
        (
            "input [3:0] a, input signed [7:0] b, output signed [15:0] y",
            "assign y = a - b;",
            15,
        ),
    ];
    assert_at_most(cases);
}

#[test]
fn comparisons_take_an_and_per_bit() {
    if !can_run() {
        return;
    }
    for operator in ["<", "<=", ">", ">="] {
        for sign in ["", "signed"] {
            let ports = format!("input {sign} [63:0] a, b, output y");
            assert_eq!(ands(&ports, &format!("assign y = a {operator} b;")), 64);
            let ports = format!("input {sign} [7:0] a, input {sign} [4:0] b, output [2:0] y");
            assert!(ands(&ports, &format!("assign y = a {operator} b;")) <= 8);
        }
    }
    for operator in ["==", "!=", "===", "!=="] {
        let ports = "input [63:0] a, b, output y";
        assert_eq!(ands(ports, &format!("assign y = a {operator} b;")), 63);
        let ports = "input signed [7:0] a, input signed [4:0] b, output y";
        assert!(ands(ports, &format!("assign y = a {operator} b;")) <= 7);
    }
    // The difference and the comparison share their carries.
    let both = "assign y = a - b; assign z = a < b;";
    assert_eq!(
        ands("input [31:0] a, b, output [31:0] y, output z", both),
        32
    );
}

#[test]
fn choices_and_logic() {
    if !can_run() {
        return;
    }
    let cases: &[(&str, &str, u64)] = &[
        (
            "input [63:0] a, b, input s, output [63:0] y",
            "assign y = s ? a : b;",
            64,
        ),
        (
            "input [7:0] a, b, output [7:0] x, y, z, w",
            "assign x = a & b; assign y = a | b; assign z = a ~^ b; assign w = ~a;",
            8,
        ),
        (
            "input [7:0] a, output [5:0] y",
            "assign y = {&a, |a, ^a, ~&a, ~|a, ~^a};",
            14,
        ),
        (
            "input [7:0] a, b, output [3:0] y",
            "assign y = {a && b, a || b, !a, a ? 1'b1 : 1'b0};",
            15,
        ),
        (
            "input [1:0] s, input [7:0] a, b, c, d, output reg [7:0] y",
            "always @* case (s) 0: y = a; 1: y = b; 2: y = c; default: y = d; endcase",
            24,
        ),
        (
            "input [1:0] s, input [7:0] a, b, c, output reg [7:0] y",
            "always @* case (s) 2'd0: y = a; 2'd1, 2'd2: y = b; 2'd3: y = c; endcase",
            24,
        ),
        (
            "input [7:0] s, input [7:0] a, b, c, output reg [7:0] y",
            "always @* begin y = 8'd9; case (s) 8'h10: y = a; 8'h20: y = b; 8'h30: y = c; endcase end",
            50,
        ),
        (
            "input [3:0] a, output reg [2:0] y",
            "always @* casez (a) 4'b1???: y = 4; 4'b01??: y = 3; 4'b001?: y = 2; 4'b0001: y = 1; default: y = 0; endcase",
            12,
        ),
        (
            "input [3:0] a, input [7:0] b, c, output reg [7:0] y",
            "always @* if (a[0]) y = b; else if (a[1]) y = c; else if (a[2]) y = b + c; else y = 8'h5a;",
            40,
        ),
        (
            "input [7:0] a, input [3:0] b, output reg [7:0] y",
            "integer i; always @* begin y = 0; for (i = 0; i < 8; i = i + 1) if (a[i] && b[i % 4]) y[7 - i] = ~y[(i + 3) % 8]; end",
            30,
        ),
        (
            "input [7:0] a, output [7:0] c",
            "wire [7:0] g = a & {a[6:0], a[7]}; assign c = {g[6:0] ^ (a[6:0] & c[6:0]), a[7]};",
            15,
        ),
        (
            "input [7:0] a, b, output [7:0] y",
            "function [7:0] f(input [7:0] p, q); f = p > q ? p - q : q - p; endfunction assign y = f(a, b);",
            30,
        ),
    ];
    assert_at_most(cases);
}

#[test]
fn shifts() {
    if !can_run() {
        return;
    }
    for operator in ["<<", ">>", "<<<", ">>>"] {
        for sign in ["", "signed"] {
            for (by, most) in [("[4:0]", 160), ("[7:0]", 195), ("[1:0]", 64)] {
                let ports = format!("input {sign} [31:0] a, input {by} n, output {sign} [31:0] y");
                let found = ands(&ports, &format!("assign y = a {operator} n;"));
                assert!(found <= most, "{operator} {sign} {by}: {found} ANDs");
            }
            let ports = format!("input {sign} [7:0] a, input [2:0] n, output {sign} [15:0] y");
            ands(&ports, &format!("assign y = a {operator} n;"));
            let ports = format!("input {sign} [15:0] a, input [5:0] n, output {sign} [3:0] y");
            ands(&ports, &format!("assign y = a {operator} n;"));
            let ports = format!("input {sign} [15:0] a, output {sign} [15:0] y");
            assert_eq!(ands(&ports, &format!("assign y = a {operator} 5;")), 0);
        }
    }
}

#[test]
fn parts_of_vectors_by_index() {
    if !can_run() {
        return;
    }
    assert_eq!(
        ands(
            "input [63:0] a, input [5:0] i, output y",
            "assign y = a[i];"
        ),
        63
    );
    assert_eq!(
        ands(
            "input [63:0] a, input [2:0] i, output [7:0] y",
            "assign y = a[i * 8 +: 8];"
        ),
        56
    );
    ands(
        "input [63:0] a, input [3:0] i, output [7:0] y",
        "assign y = a[i + 40 -: 8];",
    );
    ands(
        "input [15:0] a, input [7:0] b, input [0:0] i, output reg [15:0] y",
        "always @* begin y = a; y[i * 8 +: 8] = b; end",
    );
    ands(
        "input [15:0] a, input b, input [3:0] i, output reg [15:0] y",
        "always @* begin y = a; y[i] = b; end",
    );
    // Beyond the end Verilog says x, and the circuit 0.
    let (design, made) = compiled(
        "module t(input [7:0] a, input signed [4:0] i, output [1:0] y); assign y = a[i +: 2]; endmodule",
    );
    assert!(agrees(&design.source, &made, 300) > 0);
}

#[test]
fn division() {
    if !can_run() {
        return;
    }
    for sign in ["", "signed"] {
        for (a, b, y) in [
            (8, 8, 8),
            (8, 4, 8),
            (4, 8, 16),
            (16, 5, 9),
            (8, 8, 16),
            (8, 4, 16),
        ] {
            let ports = format!(
                "input {sign} [{a}-1:0] a, input {sign} [{b}-1:0] b, output {sign} [{y}-1:0] q, r"
            );
            // By zero Verilog says x: no such case here.
            let body = format!(
                "wire {sign} [{b}-1:0] d = b == 0 ? 1 : b; assign q = a / d; assign r = a % d;"
            );
            ands(&ports, &body);
        }
        let ports = format!("input {sign} [15:0] a, output {sign} [15:0] q, r");
        ands(&ports, "assign q = a / 10; assign r = a % 7;");
    }
    let found = ands(
        "input [31:0] a, b, output [31:0] y",
        "assign y = b == 0 ? 0 : a / b;",
    );
    assert!(found <= 32 * 32 + 5 * 32, "{found} ANDs");
}

#[test]
fn division_by_zero_is_undefined_in_verilog_and_long_division_here() {
    if !can_run() {
        return;
    }
    let text = "module t(input signed [7:0] a, b, output signed [7:0] q, r); assign q = a / b; assign r = a % b; endmodule";
    let (design, made) = compiled(text);
    assert!(agrees(&design.source, &made, 100) > 0);
    let bits = |value: i8| {
        (0..8)
            .map(|bit| u128::from(value as u8 >> bit & 1))
            .collect::<Vec<_>>()
    };
    let of = |a| made.circuit.evaluate(&[bits(a), bits(0)]).unwrap();
    assert_eq!(of(5), [bits(-1), bits(5)]);
    assert_eq!(of(-5), [bits(1), bits(-5)]);
}

#[test]
fn tables_and_memories() {
    if !can_run() {
        return;
    }
    // A table of 256 random bytes: polynomials, not 8 · 127 choices.
    let mut random = super::support::Random(3);
    let rows: Vec<String> = (0..256)
        .map(|k| format!("8'd{k}: y = 8'd{};", random.next() & 255))
        .collect();
    let rows = rows.join("\n");
    let found = ands(
        "input [7:0] a, output reg [7:0] y",
        &format!("always @* case (a)\n{rows}endcase"),
    );
    assert!(found <= 82, "{found} ANDs");
    let memory = "reg [7:0] m [0:3]; integer i;
        always @* begin
          for (i = 0; i < 4; i = i + 1) m[i] = a + i;
          m[2] = b;
        end
        assign y = m[0] ^ m[2]; assign z = m[s];";
    ands("input [7:0] a, b, input [1:0] s, output [7:0] y, z", memory);
}

#[test]
fn hierarchy_parameters_and_several_bits_of_a_result() {
    if !can_run() {
        return;
    }
    let text = "module add #(parameter W = 4) (input [W-1:0] a, b, output [W-1:0] s, output c);
          assign {c, s} = a + b;
        endmodule
        module top(input [7:0] x, y, output [8:0] \\a.b , output one);
          wire c;
          add #(.W(4)) low(x[3:0], y[3:0], \\a.b [3:0], c);
          wire [4:0] high;
          add #(.W(5)) high_add({x[7:4], 1'b1}, {y[7:4], c}, {\\a.b [7:4], high[0]}, \\a.b [8]);
          assign one = 1;
        endmodule";
    let (design, made) = compiled(text);
    assert_eq!(agrees(&design.source, &made, 200), 0);
    assert_eq!(made.circuit.stats().muls, 8);
    let names: Vec<&str> = made
        .circuit
        .outputs
        .iter()
        .map(|port| port.name.as_str())
        .collect();
    assert_eq!(names, ["a.b", "one"]);
}
