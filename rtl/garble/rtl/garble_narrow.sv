// Gives a line of tables as beats of Out tables, those of the lowest rows first. Rows that a line lacks make no beats of their own.
//
// Latency:  none.   Throughput: one beat per cycle, a line in Rows / Out cycles at most.
// Back-pressure: a beat stays until it is taken, and a line until its last beat is; lines that come have to stay, too.

module garble_narrow #(
  parameter int unsigned Rows = 2,
  parameter int unsigned Out  = 2 // a power of two, up to Rows
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  input  logic [Rows*256-1:0] in_tables_i,
  input  logic [Rows-1:0]     in_keep_i,  // the lowest rows, at least one
  input  logic                in_last_i,
  input  logic                in_valid_i,
  output logic                in_ready_o,

  output logic [Out*256-1:0]  out_tables_o,
  output logic [Out-1:0]      out_keep_o,
  output logic                out_last_o,
  output logic                out_valid_o,
  input  logic                out_ready_i
);

  assign out_valid_o = in_valid_i;

  if (Out == Rows) begin : g_wide
    logic unused;

    assign unused       = &{1'b0, clk_i, rst_ni};
    assign out_tables_o = in_tables_i;
    assign out_keep_o   = in_keep_i;
    assign out_last_o   = in_last_i;
    assign in_ready_o   = out_ready_i;
  end else begin : g_narrow
    localparam int unsigned Beats  = Rows / Out;
    localparam int unsigned BeatsW = $clog2(Beats);

    logic [BeatsW-1:0] beat_q;
    logic [Rows-1:0]   keep;
    logic              ends, moves;

    assign keep         = in_keep_i >> (32'(beat_q) * Out);
    assign ends         = (keep >> Out) == '0;
    assign out_keep_o   = keep[Out-1:0];
    assign out_last_o   = in_last_i && ends;
    assign in_ready_o   = out_ready_i && ends;
    assign moves        = out_valid_o && out_ready_i;

    always_comb begin : p_pick
      out_tables_o = '0;
      for (int unsigned k = 0; k < Beats; k++) begin
        if (beat_q == BeatsW'(k)) begin
          out_tables_o = in_tables_i[k*Out*256 +: Out*256];
        end
      end
    end

    always_ff @(posedge clk_i) begin : p_beat
      if (!rst_ni) begin
        beat_q <= '0;
      end else if (moves) begin
        beat_q <= ends ? '0 : beat_q + 1'b1;
      end
    end
  end

`ifdef PROVE_GARBLE_NARROW
`include "garble_narrow.svh"
`endif

endmodule
