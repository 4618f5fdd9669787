// A symbolic word is read as it was last written or cleared, in the cycle of the reading at the latest, at every port. Every port reads
// it at least in every other cycle, so that induction, four cycles long, cannot begin with banks in which it never was right.
(* anyconst *) logic [AddrW-1:0] f_at;
logic             f_written_q = 1'b0;
logic             f_written, f_two_write;
logic [Width-1:0] f_word_q, f_word;
logic [Reads-1:0] f_reads, f_read_q, f_wrong;
logic [Reads-1:0] f_expects_q = '0;
logic [Reads-1:0] f_elsewhere; // ports to which the table tells another bank than the one that was written last
logic [BankW-1:0] f_bank_q, f_bank;
logic [Width-1:0] f_expected_q;

always_comb begin : p_formal_word
  f_written = f_written_q;
  f_word    = f_word_q;
  f_bank    = f_bank_q;
  f_elsewhere = '0;
  f_reads   = '0;
  f_wrong   = '0;
  f_two_write = 1'b0;
  for (int unsigned w = 0; w < Writes; w++) begin
    if (!clear_i && w_en_i[w] && w_addr_i[w*AddrW +: AddrW] == f_at) begin
      f_written = 1'b1;
      f_word    = w_data_i[w*Width +: Width];
      f_bank    = BankW'(w);
    end
    for (int unsigned v = 0; v < w; v++) begin
      if (w_en_i[v] && w_en_i[w] && w_addr_i[v*AddrW +: AddrW] == w_addr_i[w*AddrW +: AddrW]) begin
        f_two_write = 1'b1;
      end
    end
  end
  if (clear_i && clear_addr_i == f_at) begin
    f_written = 1'b1;
    f_word    = '0;
    f_bank    = '0;
  end
  for (int unsigned r = 0; r < Reads; r++) begin
    f_reads[r] = r_addr_i[r*AddrW +: AddrW] == f_at;
    f_elsewhere[r] = last[r*BankW +: BankW] != f_bank_q;
    f_wrong[r] = r_data_o[r*Width +: Width] != f_expected_q;
  end
end

always_ff @(posedge clk_i) begin : p_formal
  f_written_q  <= f_written;
  f_word_q     <= f_word;
  f_bank_q     <= f_bank;
  f_read_q     <= f_reads;
  f_expects_q  <= f_reads & {Reads{f_written}};
  f_expected_q <= f_word;
  assume ((f_reads | f_read_q) == '1);
  assume (!f_two_write);
  F_LastWritten_A: assert ((f_expects_q & f_wrong) == '0);
  // What induction needs to know of the inside
  F_Table_A: assert (!f_written_q || (f_reads & f_elsewhere) == '0);
end
