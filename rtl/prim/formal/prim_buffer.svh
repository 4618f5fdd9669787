// Order and no loss, as of prim_fifo: word n that goes in is word n that comes out, for a symbolic n, counted from the last wipe modulo
// twice the depth. And that nothing of a word is left once every place was wiped.
(* anyconst *) logic [CountW-1:0] f_n;
(* anyconst *) logic [AddrW-1:0]  f_place;
logic [CountW-1:0] f_in_q, f_out_q, f_wipes_q;
logic [Width-1:0]  f_word_q;
logic              f_inside_q, f_clean_q;
logic [AddrW-1:0]  f_ago; // cycles of wiping since the one of the place, less one

assign f_ago = tail_q[AddrW-1:0] - f_place - 1'b1;

initial assume (!rst_ni);

always_ff @(posedge clk_i) begin : p_formal
  if (!rst_ni || wipe_i) begin
    f_in_q     <= tail_d;
    f_out_q    <= tail_d;
    f_inside_q <= 1'b0;
    if (!rst_ni) begin
      f_in_q  <= '0;
      f_out_q <= '0;
    end
  end else begin
    f_in_q  <= f_in_q + CountW'(in_moves);
    f_out_q <= f_out_q + CountW'(out_moves);
    if (in_moves && f_in_q == f_n) begin
      f_inside_q <= 1'b1;
      f_word_q   <= in_data_i;
    end else if (out_moves && f_out_q == f_n) begin
      f_inside_q <= 1'b0;
    end
  end
  // Wiped for as many cycles as there are places, without a pause: every place is zero, until something comes in.
  f_wipes_q <= !rst_ni || !wipe_i ? '0 : f_wipes_q == CountW'(Depth) ? f_wipes_q : f_wipes_q + 1'b1;
  f_clean_q <= rst_ni && (wipe_i ? f_wipes_q == CountW'(Depth - 1) || f_wipes_q == CountW'(Depth) : f_clean_q && !in_moves);
  if (rst_ni && past_q) begin
    F_Same_A: assert (!(out_valid_o && f_out_q == f_n) || (f_inside_q && out_data_o == f_word_q));
    F_Offered_A: assert (wipe_i || out_valid_o == (f_in_q != f_out_q));
    F_Room_A: assert (wipe_i || in_ready_o == (f_in_q - f_out_q != CountW'(Depth)));
    F_Clean_A: assert (!f_clean_q || words[f_place] == '0);
    // What induction needs to know of the inside
    F_Ends_A: assert (f_in_q == tail_q && f_out_q == head_q);
    F_Inside_A: assert (f_inside_q == (f_n - f_out_q < f_in_q - f_out_q));
    F_Kept_A: assert (!f_inside_q || words[f_n[AddrW-1:0]] == f_word_q);
    F_Ahead_A: assert (!f_inside_q || f_n != head_q || out_data_o == f_word_q);
    F_Wipes_A: assert (f_wipes_q <= CountW'(Depth));
    F_Wiped_A: assert ({1'b0, f_ago} >= f_wipes_q || words[f_place] == '0);
  end
end
