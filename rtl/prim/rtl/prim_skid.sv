// Two registers between two ends of a stream: every path from one end to the other is cut, in both directions.
//
// Latency:  one cycle.   Throughput: one word per cycle.
// Back-pressure: in_ready_o is a register. When the other end stops, the word that is on its way is kept in the second register.

module prim_skid #(
  parameter int unsigned Width = 8
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  input  logic [Width-1:0] in_data_i,
  input  logic             in_valid_i,
  output logic             in_ready_o,

  output logic [Width-1:0] out_data_o,
  output logic             out_valid_o,
  input  logic             out_ready_i
);

  logic [Width-1:0] out_q, kept_q;
  logic             out_valid_q, kept_valid_q;
  logic             out_free;

  assign in_ready_o  = !kept_valid_q;
  assign out_valid_o = out_valid_q;
  assign out_data_o  = out_q;
  assign out_free    = out_ready_i || !out_valid_q;

  always_ff @(posedge clk_i) begin : p_valid
    if (!rst_ni) begin
      out_valid_q  <= 1'b0;
      kept_valid_q <= 1'b0;
    end else if (out_free) begin
      out_valid_q  <= kept_valid_q || in_valid_i;
      kept_valid_q <= 1'b0;
    end else if (in_valid_i && in_ready_o) begin
      kept_valid_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin : p_data
    if (out_free) begin
      out_q <= kept_valid_q ? kept_q : in_data_i;
    end
    if (in_ready_o) begin
      kept_q <= in_data_i;
    end
  end

`ifndef SYNTHESIS
  prim_stable #(.Width(Width)) u_stable (
    .clk_i   (clk_i),
    .rst_ni  (rst_ni),
    .data_i  (out_data_o),
    .valid_i (out_valid_o),
    .ready_i (out_ready_i)
  );

  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni) begin
      KeptBehindOut_A: assert (!kept_valid_q || out_valid_q);
    end
  end
`endif

`ifdef PROVE_PRIM_SKID
`include "prim_skid.svh"
`endif

endmodule
