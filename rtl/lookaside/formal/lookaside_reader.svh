// Addresses stay as they are until memory takes them; every answer that memory owes is taken when it comes, for one client; and none is owed
// when the reader says that it is not busy.
logic                    f_waits_q = 1'b0;
logic [71:0]             f_address_q;
logic [4:0]              f_owed_q; // bursts that memory owes answers to

initial assume (!rst_ni);

always_ff @(posedge clk_i) begin : p_formal
  for (int unsigned c = 0; c < Clients; c++) begin
    assume (run_i[c*lookaside_pkg::RunW +: 8] >= 8'(Lanes));
  end
  assume (!m_axi_rvalid_i || f_owed_q != '0);
  f_waits_q   <= rst_ni && m_axi_arvalid_o && !m_axi_arready_i;
  f_address_q <= {m_axi_araddr_o, m_axi_arlen_o};
  if (!rst_ni) begin
    f_owed_q <= '0;
  end else begin
    f_owed_q <= f_owed_q + 5'(m_axi_arvalid_o && m_axi_arready_i) - 5'(m_axi_rvalid_i && m_axi_rready_o && m_axi_rlast_i);
    F_Stable_A: assert (!f_waits_q || (m_axi_arvalid_o && {m_axi_araddr_o, m_axi_arlen_o} == f_address_q));
    F_Takes_A: assert (!m_axi_rvalid_i || m_axi_rready_o);
    F_OneClient_A: assert ((valid_o & (valid_o - 1'b1)) == '0 && (valid_o != '0) == (m_axi_rvalid_i && m_axi_rready_o));
    F_Busy_A: assert (busy_o || f_owed_q == '0);
    // What induction needs to know of the inside
    F_Owed_A: assert (f_owed_q == owed);
    F_Some_A: assert (owed <= 5'd16);
  end
end
