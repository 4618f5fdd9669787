// Chooses one of those that request, in turn: a requester that was chosen comes after all others. Who requests until it is granted waits
// for at most Requesters - 1 grants of others.
//
// Latency:  none.   Throughput: one grant per cycle.
// Back-pressure: a grant counts in cycles with ready_i; without it the choice may change as more request.

module prim_arbiter #(
  parameter int unsigned Requesters = 4 // at least 2
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic [Requesters-1:0] request_i,
  output logic [Requesters-1:0] grant_o, // at most one; none if nobody requests
  input  logic                  ready_i
);

  logic [Requesters-1:0] after_q; // those that come after the one granted last: they are first
  logic [Requesters-1:0] first, lowest_of_first, lowest_of_all, grant;

  // The lowest bit that is set: x and its complement plus 1.
  assign first           = request_i & after_q;
  assign lowest_of_first = first & (~first + 1'b1);
  assign lowest_of_all   = request_i & (~request_i + 1'b1);
  assign grant           = first != '0 ? lowest_of_first : lowest_of_all;
  assign grant_o         = grant;

  always_ff @(posedge clk_i) begin : p_after
    if (!rst_ni) begin
      after_q <= '0;
    end else if (ready_i && request_i != '0) begin
      after_q <= ~(grant | (grant - 1'b1));
    end
  end

`ifndef SYNTHESIS
  logic past_q = 1'b0; // whether the last cycle was a reset, or after one

  always_ff @(posedge clk_i) begin : p_past
    past_q <= past_q || !rst_ni;
  end

  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni) begin
      OneHot_A: assert ((grant & (grant - 1'b1)) == '0);
      OnlyRequesters_A: assert ((grant & ~request_i) == '0);
      Work_A: assert (request_i == '0 || grant != '0);
    end
  end
`endif

`ifdef PROVE_PRIM_ARBITER
`include "prim_arbiter.svh"
`endif

endmodule
