// Order and no loss: word n that goes in is word n that comes out, for a symbolic n. Numbers are counted outside the queue, modulo
// twice its depth, which tells apart all that can be in it.
(* anyconst *) logic [CountW-1:0] f_n;
logic [CountW-1:0] f_in_q, f_out_q;
logic [Width-1:0]  f_word_q;
logic              f_inside_q;

initial assume (!rst_ni);

always_ff @(posedge clk_i) begin : p_formal
  if (!rst_ni) begin
    f_in_q     <= '0;
    f_out_q    <= '0;
    f_inside_q <= 1'b0;
  end else begin
    f_in_q  <= f_in_q + CountW'(in_moves);
    f_out_q <= f_out_q + CountW'(out_moves);
    if (in_moves && f_in_q == f_n) begin
      f_inside_q <= 1'b1;
      f_word_q   <= in_data_i;
    end else if (out_moves && f_out_q == f_n) begin
      f_inside_q <= 1'b0;
    end
    F_Same_A: assert (!(out_valid_o && f_out_q == f_n) || (f_inside_q && out_data_o == f_word_q));
    F_Offered_A: assert (out_valid_o == (f_in_q != f_out_q));
    F_Room_A: assert (in_ready_o == (f_in_q - f_out_q != CountW'(Depth)));
    // What induction needs to know of the inside
    F_Ends_A: assert (f_in_q == tail_q && f_out_q == head_q);
    F_Inside_A: assert (f_inside_q == (f_n - f_out_q < f_in_q - f_out_q));
    F_Kept_A: assert (!f_inside_q || words[f_n[AddrW-1:0]] == f_word_q);
  end
end
