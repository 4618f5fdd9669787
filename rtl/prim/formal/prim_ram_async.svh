// A symbolic word is read as it was last written, at every port.
(* anyconst *) logic [AddrW-1:0] f_at;
logic             f_written_q = 1'b0;
logic [Width-1:0] f_word_q;
logic             f_wrong;

always_comb begin : p_formal_wrong
  f_wrong = 1'b0;
  for (int unsigned r = 0; r < Reads; r++) begin
    if (r_addr_i[r*AddrW +: AddrW] == f_at && r_data_o[r*Width +: Width] != f_word_q) begin
      f_wrong = 1'b1;
    end
  end
end

always_ff @(posedge clk_i) begin : p_formal
  if (w_en_i && w_addr_i == f_at) begin
    f_written_q <= 1'b1;
    f_word_q    <= w_data_i;
  end
  F_LastWritten_A: assert (!f_written_q || !f_wrong);
  // What induction needs to know of the inside
  F_Kept_A: assert (!f_written_q || words[f_at] == f_word_q);
end
