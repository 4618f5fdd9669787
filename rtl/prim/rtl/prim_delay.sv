// Delays a value by a fixed number of cycles. Never stalls; without a reset, so that it becomes shift registers.
//
// Latency:  Cycles.   Throughput: one value per cycle.

module prim_delay #(
  parameter int unsigned Width  = 1,
  parameter int unsigned Cycles = 1 // at least 1
) (
  input  logic             clk_i,

  input  logic [Width-1:0] in_i,
  output logic [Width-1:0] out_o
);

  logic [Cycles*Width-1:0] line_q;

  assign out_o = line_q[(Cycles-1)*Width +: Width];

  always_ff @(posedge clk_i) begin : p_line
    line_q[Width-1:0] <= in_i;
    for (int unsigned k = 1; k < Cycles; k++) begin
      line_q[k*Width +: Width] <= line_q[(k-1)*Width +: Width];
    end
  end

endmodule
