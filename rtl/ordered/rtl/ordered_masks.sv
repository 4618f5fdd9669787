// Collects the colours of the outputs of a netlist cycle, and gives them out together when the cycle ends.
//
// Latency:  one cycle after close_i.   Throughput: all that come in every cycle.
// Back-pressure: masks stay until they are taken; close_i has to wait for room_o.

module ordered_masks #(
  parameter  int unsigned Rows    = 2,
  parameter  int unsigned Outputs = 256, // the most of a netlist cycle, at least 2
  localparam int unsigned OutputW = ordered_pkg::OutputW,
  localparam int unsigned AddrW   = $clog2(Outputs)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  input  logic [Rows-1:0]         en_i,
  input  logic [Rows*OutputW-1:0] at_i,
  input  logic [Rows-1:0]         mask_i,

  input  logic                    close_i, // in the cycle in which the last one comes, or later
  output logic                    room_o,

  output logic [Outputs-1:0]      out_masks_o, // bit k is the colour of the zero-label of output k
  output logic                    out_valid_o,
  input  logic                    out_ready_i
);

  logic [Outputs-1:0] collected_d, collected_q, out_q;
  logic               valid_q;

  assign room_o      = !valid_q || out_ready_i;
  assign out_masks_o = out_q;
  assign out_valid_o = valid_q;

  always_comb begin : p_collect
    collected_d = collected_q;
    for (int unsigned r = 0; r < Rows; r++) begin
      if (en_i[r]) begin
        collected_d[at_i[r*OutputW +: AddrW]] = mask_i[r];
      end
    end
  end

  always_ff @(posedge clk_i) begin : p_masks
    if (!rst_ni) begin
      collected_q <= '0;
      out_q       <= '0;
      valid_q     <= 1'b0;
    end else begin
      collected_q <= close_i ? '0 : collected_d;
      if (close_i) begin
        out_q <= collected_d;
      end
      valid_q <= close_i || (valid_q && !out_ready_i);
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni) begin
      Room_A: assert (!close_i || room_o);
    end
  end
`endif

endmodule
