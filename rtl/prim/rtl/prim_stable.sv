// Says that a stream is stable: a word that is offered stays offered, and stays as it is, until it is taken. It only looks; nothing of it
// becomes hardware.
//
// A cycle with rst_ni low, and the step from it to the next, are not looked at.

module prim_stable #(
  parameter int unsigned Width = 8
) (
  input logic             clk_i,
  input logic             rst_ni,

  input logic [Width-1:0] data_i,
  input logic             valid_i,
  input logic             ready_i
);

  logic             past_q = 1'b0; // whether the last cycle was out of reset, and its values are known
  logic             offered_q;
  logic [Width-1:0] data_q;

  always_ff @(posedge clk_i) begin : p_past
    past_q    <= rst_ni;
    offered_q <= valid_i && !ready_i;
    data_q    <= data_i;
  end

  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni && past_q && offered_q) begin
      Stable_A: assert (valid_i && data_i == data_q);
    end
  end

endmodule
