// Fair: a symbolic requester that keeps requesting sees at most Requesters - 1 grants of others before its own. That the grant is one
// and a requester's is asserted in the module.
localparam int unsigned FIndexW = $clog2(Requesters);
localparam int unsigned FCountW = $clog2(2 * Requesters);
(* anyconst *) logic [FIndexW-1:0] f_who;
logic [FCountW-1:0]    f_waits_q, f_before;
logic [Requesters-1:0] f_me, f_below;

initial assume (!rst_ni);

assign f_me    = Requesters'(1) << f_who;
assign f_below = f_me - 1'b1;

// How many come before it: of those that are first the ones below it; if it is not of them, all of them and the others below it.
always_comb begin : p_formal_before
  f_before = '0;
  for (int unsigned r = 0; r < Requesters; r++) begin
    if ((after_q & f_me) != '0 ? after_q[r] && f_below[r] : after_q[r] || f_below[r]) begin
      f_before = f_before + 1'b1;
    end
  end
end

always_ff @(posedge clk_i) begin : p_formal
  assume (32'(f_who) < Requesters);
  if (!rst_ni || (request_i & f_me) == '0) begin
    f_waits_q <= '0;
  end else if (ready_i) begin
    f_waits_q <= (grant_o & f_me) != '0 ? '0 : f_waits_q + 1'b1;
  end
  if (rst_ni && past_q) begin
    F_Fair_A: assert (f_waits_q <= FCountW'(Requesters - 1));
    // What induction needs to know of the inside
    F_Turn_A: assert (f_waits_q + f_before <= FCountW'(Requesters - 1));
    F_First_A: assert ((~after_q & (~after_q + 1'b1)) == '0);
  end
end
