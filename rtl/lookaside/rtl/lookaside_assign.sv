// Gives the commands of one kind to its workers: each whole, to one that is free, in turns.
//
// Latency:  a command's first word is offered one cycle after it came, if a worker is free.   Throughput: one word per cycle.
// Back-pressure: when all workers have a command, commands wait.

module lookaside_assign #(
  parameter int unsigned Workers = 2 // at least 1
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,

  input  lookaside_pkg::command_word_t in_data_i,
  input  logic                         in_valid_i,
  output logic                         in_ready_o,

  input  logic [Workers-1:0]           free_i, // without a command; it is not while words come
  output lookaside_pkg::command_word_t out_data_o,
  output logic [Workers-1:0]           out_valid_o // a worker takes what comes
);

  logic [Workers-1:0] grant, chosen_q, chosen;
  logic               moves;

  assign chosen      = chosen_q != '0 ? chosen_q : grant;
  assign moves       = in_valid_i && chosen != '0;
  assign in_ready_o  = chosen != '0;
  assign out_data_o  = in_data_i;
  assign out_valid_o = moves ? chosen : '0;

  if (Workers == 1) begin : g_one
    assign grant = free_i;
  end else begin : g_some
    prim_arbiter #(.Requesters(Workers)) u_arbiter (
      .clk_i     (clk_i),
      .rst_ni    (rst_ni),
      .request_i (free_i),
      .grant_o   (grant),
      .ready_i   (in_valid_i && chosen_q == '0)
    );
  end

  always_ff @(posedge clk_i) begin : p_chosen
    if (!rst_ni) begin
      chosen_q <= '0;
    end else if (moves) begin
      chosen_q <= in_data_i.last ? '0 : chosen;
    end
  end

`ifdef PROVE_LOOKASIDE_ASSIGN
`include "lookaside_assign.svh"
`endif

endmodule
