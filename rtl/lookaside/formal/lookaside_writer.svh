// Addresses and words stay as they are until memory takes them; no word comes before the address of its burst; every answer that memory owes is
// taken when it comes; nothing is owed when the writer says that it is not busy.
logic                    f_aw_waits_q = 1'b0, f_w_waits_q = 1'b0;
logic [71:0]             f_address_q;
logic [BeatW:0]          f_word_q;
logic [4:0]              f_bursts_q; // whose words are still to come
logic [4:0]              f_owed_q;   // that memory owes answers to
logic [Clients-1:0]      f_data_waits_q;
logic [Clients*BeatW-1:0] f_data_q;

initial assume (!rst_ni);

always_ff @(posedge clk_i) begin : p_formal
  for (int unsigned c = 0; c < Clients; c++) begin
    assume (run_i[c*lookaside_pkg::RunW +: 8] >= 8'(Lanes));
  end
  // Clients' words stay until they are taken; memory answers bursts that are whole.
  for (int unsigned c = 0; c < Clients; c++) begin
    assume (!f_data_waits_q[c] || (data_valid_i[c] && data_i[BeatW*c +: BeatW] == f_data_q[BeatW*c +: BeatW]));
  end
  assume (!m_axi_bvalid_i || f_owed_q != '0);
  f_data_waits_q <= rst_ni ? data_valid_i & ~data_ready_o : '0;
  f_data_q       <= data_i;
  f_aw_waits_q   <= rst_ni && m_axi_awvalid_o && !m_axi_awready_i;
  f_w_waits_q    <= rst_ni && m_axi_wvalid_o && !m_axi_wready_i;
  f_address_q    <= {m_axi_awaddr_o, m_axi_awlen_o};
  f_word_q       <= {m_axi_wlast_o, m_axi_wdata_o};
  if (!rst_ni) begin
    f_bursts_q <= '0;
    f_owed_q   <= '0;
  end else begin
    f_bursts_q <= f_bursts_q + 5'(m_axi_awvalid_o && m_axi_awready_i) - 5'(m_axi_wvalid_o && m_axi_wready_i && m_axi_wlast_o);
    f_owed_q   <= f_owed_q + 5'(m_axi_wvalid_o && m_axi_wready_i && m_axi_wlast_o) - 5'(m_axi_bvalid_i && m_axi_bready_o);
    F_AddressStable_A: assert (!f_aw_waits_q || (m_axi_awvalid_o && {m_axi_awaddr_o, m_axi_awlen_o} == f_address_q));
    F_WordStable_A: assert (!f_w_waits_q || (m_axi_wvalid_o && {m_axi_wlast_o, m_axi_wdata_o} == f_word_q));
    F_AfterAddress_A: assert (!m_axi_wvalid_o || f_bursts_q != '0);
    F_Takes_A: assert (!m_axi_bvalid_i || m_axi_bready_o);
    F_Busy_A: assert (busy_o || (f_bursts_q == '0 && f_owed_q == '0));
    F_OneClient_A: assert ((data_ready_o & (data_ready_o - 1'b1)) == '0 && (data_ready_o != '0) == (m_axi_wvalid_o && m_axi_wready_i)
                           && (done_o & (done_o - 1'b1)) == '0);
    // What induction needs to know of the inside
    F_Bursts_A: assert (f_bursts_q == 5'(bursts) && bursts <= 3'd4);
    F_Owed_A: assert (f_owed_q == owed && owed <= 5'd16);
  end
end
