// A symbolic word is read as it was last written, in the cycle of the reading at the latest.
(* anyconst *) logic [AddrW-1:0] f_at;
logic             f_written_q = 1'b0;
logic             f_expects_q = 1'b0;
logic             f_now;
logic [Width-1:0] f_word_q, f_expected_q;

assign f_now = w_en_i && w_addr_i == f_at;

always_ff @(posedge clk_i) begin : p_formal
  if (f_now) begin
    f_written_q <= 1'b1;
    f_word_q    <= w_data_i;
  end
  if (r_en_i) begin
    f_expects_q  <= r_addr_i == f_at && (f_written_q || f_now);
    f_expected_q <= f_now ? w_data_i : f_word_q;
  end
  F_LastWritten_A: assert (!f_expects_q || r_data_o == f_expected_q);
  // What induction needs to know of the inside
  F_Kept_A: assert (!f_written_q || words[f_at] == f_word_q);
end
