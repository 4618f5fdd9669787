// A symbolic word is read as it was last written or cleared, at every port. Port 0 reads it in every cycle, so that induction knows what
// it is; the other ports read as they like.
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
  for (int unsigned w = 0; w < Writes; w++) begin
    if (w_en_i[w] && w_addr_i[w*AddrW +: AddrW] == f_at) begin
      f_written_q <= 1'b1;
      f_word_q    <= w_data_i[w*Width +: Width];
    end
  end
  if (clear_i) begin
    f_written_q <= f_written_q || clear_addr_i == f_at;
    f_word_q    <= clear_addr_i == f_at ? '0 : f_word_q;
  end
  assume (!two_write);
  assume (r_addr_i[AddrW-1:0] == f_at);
  F_LastWritten_A: assert (!f_written_q || !f_wrong);
end
