// While it is wiped nothing comes and nothing goes, and after it the queue is empty; else as many words wait as came and did not leave.
// That they are those that came, and that zeros leave nothing, is proved of prim_fifo.
logic [CountW-1:0] f_count_q;

initial assume (!rst_ni);

always_ff @(posedge clk_i) begin : p_formal
  if (!rst_ni || closed) begin
    f_count_q <= '0;
  end else begin
    f_count_q <= f_count_q + CountW'(in_valid_i && in_ready_o) - CountW'(out_valid_o && out_ready_i);
  end
  if (rst_ni) begin
    F_Closed_A: assert (!wipe_i || (!in_ready_o && !out_valid_o));
    F_Count_A: assert (closed || f_count_q == count_o);
    F_Offered_A: assert (closed || (out_valid_o == (f_count_q != '0) && in_ready_o == (f_count_q != CountW'(Depth))));
  end
end
