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

// Zeros that go in for Depth + 1 cycles, while words are taken, leave no other word: a symbolic one is 0.
(* anyconst *) logic [AddrW-1:0] f_at;
logic [CountW-1:0] f_zeros_q; // cycles in which they do
logic [AddrW-1:0]  f_behind;  // words that went in after the one that is there

assign f_behind = tail_q[AddrW-1:0] - 1'b1 - f_at;

always_ff @(posedge clk_i) begin : p_formal_wipe
  if (!rst_ni || !in_valid_i || in_data_i != '0 || !out_ready_i) begin
    f_zeros_q <= '0;
  end else if (f_zeros_q != CountW'(Depth + 1)) begin
    f_zeros_q <= f_zeros_q + 1'b1;
  end
  if (rst_ni) begin
    F_Wiped_A: assert (f_zeros_q != CountW'(Depth + 1) || words[f_at] == '0);
    // What induction needs to know of the inside
    F_NotFull_A: assert (f_zeros_q == '0 || in_ready_o);
    F_Zeros_A: assert (CountW'(f_behind) + 1'b1 >= f_zeros_q || words[f_at] == '0);
  end
end
