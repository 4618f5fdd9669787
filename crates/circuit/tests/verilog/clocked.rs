//! Designs with registers: sequential circuits.

use veil_circuit::{Initial, Per, Reduce};

use super::support::{agrees, can_run, compiled};

/// Compiles a design, compares it with its simulation, and returns its ANDs and registers.
fn counts(text: &str) -> (u64, u64) {
    let (design, made) = compiled(text);
    assert_eq!(agrees(&design.source, &made, 80), 0, "{text}");
    let stats = made.circuit.stats();
    (stats.muls, stats.registers)
}

#[test]
fn an_accumulator_takes_inputs_in_every_cycle() {
    if !can_run() {
        return;
    }
    let text = "(* cycles = 5 *)
        module t(input clk, input [7:0] x, (* per = \"row\" *) input [7:0] k, (* per = \"cycle\" *) output [11:0] sum, output odd);
          reg [11:0] total = 12'h0f0;
          always @(posedge clk) total <= total + (x ^ k);
          assign sum = total;
          assign odd = total[0] ^ x[0];
        endmodule";
    let (design, made) = compiled(text);
    assert_eq!(agrees(&design.source, &made, 80), 0);
    let circuit = &made.circuit;
    let per: Vec<_> = circuit
        .inputs
        .iter()
        .map(|port| (port.name.as_str(), port.per))
        .collect();
    assert_eq!(per, [("x", Per::Cycle), ("k", Per::Row)]);
    let of: Vec<_> = circuit.outputs.iter().map(|port| port.reduce).collect();
    assert_eq!(of, [Reduce::EveryCycle, Reduce::None]);
    assert_eq!((circuit.clock.cycles, circuit.stats().muls), (5, 11));
    assert_eq!(made.clock, Some(("clk".into(), false)));
}

#[test]
fn resets_and_enables() {
    if !can_run() {
        return;
    }
    // A synchronous reset and an enable are choices.
    let text = "(* cycles = 6 *)
        module t(input clk, rst, en, input [7:0] d, output reg [7:0] q);
          initial q = 5;
          always @(posedge clk) if (rst) q <= 8'h3c; else if (en) q <= d;
        endmodule";
    let (ands, registers) = counts(text);
    assert!(registers == 8 && ands <= 16, "{ands} ANDs");
    // An asynchronous one is the beginning: of constants, high or low, at either edge.
    for (reset, edge, clock) in [
        ("rst", "posedge", "posedge"),
        ("!rst", "negedge", "negedge"),
    ] {
        let text = format!(
            "(* cycles = 4 *)
            module t(input clk, rst, input [7:0] d, output reg [7:0] q);
              always @({clock} clk or {edge} rst) if ({reset}) q <= 8'h3c; else q <= q + d;
            endmodule"
        );
        assert_eq!(counts(&text), (7, 8));
        let (_, made) = compiled(&text);
        assert_eq!(made.reset, Some(("rst".into(), edge == "negedge")));
        assert_eq!(made.clock, Some(("clk".into(), clock == "negedge")));
        assert_eq!(made.circuit.inputs.len(), 1);
    }
    // And of inputs, which have one value for all cycles.
    let text = "(* cycles = 4 *)
        module t(input clk, rst, input [3:0] a, b, input d, output reg [7:0] q);
          always @(posedge clk or posedge rst) if (rst) q <= {a, b}; else q <= {q[6:0], q[7] ^ d};
        endmodule";
    let (design, made) = compiled(text);
    assert_eq!(agrees(&design.source, &made, 80), 0);
    let per: Vec<_> = made.circuit.inputs.iter().map(|port| port.per).collect();
    assert_eq!(per, [Per::Row, Per::Row, Per::Cycle]);
    let begins = |r: &veil_circuit::Register| matches!(r.initial, Initial::Wire(_));
    assert!(made.circuit.clock.registers.iter().all(begins));
}

#[test]
fn chains_rings_memories_and_machines() {
    if !can_run() {
        return;
    }
    let chain = "(* cycles = 7 *)
        module t(input clk, d, output [3:0] y);
          reg [3:0] q = 4'b0101; assign y = q;
          always @(posedge clk) q <= {q[2:0], d};
        endmodule";
    assert_eq!(counts(chain), (0, 4));
    let ring = "(* cycles = 9 *)
        module t(input clk, input d, output reg [2:0] q, output reg z);
          initial begin q = 1; z = 0; end
          always @(posedge clk) begin q <= {q[1:0], q[2]}; z <= z ^ (q[0] & d); end
        endmodule";
    assert_eq!(counts(ring), (1, 4));
    let memory = "(* cycles = 6 *)
        module t(input clk, input [1:0] w, r, input [3:0] d, input we, output [3:0] y);
          reg [3:0] m [0:3];
          integer i; initial for (i = 0; i < 4; i = i + 1) m[i] = 3 * i;
          always @(posedge clk) if (we) m[w] <= d;
          assign y = m[r];
        endmodule";
    let (ands, registers) = counts(memory);
    assert!(registers == 16 && ands <= 40, "{ands} ANDs");
    let machine = "(* cycles = 12 *)
        module t(input clk, go, input [7:0] x, (* per = \"cycle\" *) output busy, output [7:0] best);
          localparam IDLE = 0, RUN = 1, DONE = 2;
          reg [1:0] state = IDLE; reg [7:0] most = 0; reg [2:0] left = 0;
          assign best = most;
          assign busy = state == RUN;
          always @(posedge clk) case (state)
            IDLE: if (go) begin state <= RUN; left <= 5; most <= 0; end
            RUN: begin
              if (x > most) most <= x;
              left <= left - 1;
              if (left == 1) state <= DONE;
            end
            default: state <= IDLE;
          endcase
        endmodule";
    counts(machine);
}

#[test]
fn assertions_and_prints_are_left_out() {
    if !can_run() {
        return;
    }
    let (design, made) = compiled(
        "(* cycles = 4 *)
module a(input clk, input [3:0] x, output reg [3:0] s);
  initial s = 0;
  always @(posedge clk) begin
    s <= s + x;
    if (x == 3)
      assert (s != 9);
    if (x == 4)
      $display(\"four\");
  end
  always @*
    if (x == 5)
      assert (s != 3);
endmodule
",
    );
    for line in ["design.v:6", "design.v:12"] {
        let found = made.watching.iter().any(|place| place.ends_with(line));
        assert!(found, "{line}: {:?}", made.watching);
    }
    assert_eq!(made.circuit.stats().registers, 4);
    assert_eq!(agrees(&design.source, &made, 70), 0);
}
