// Every access is answered once, with what it was told: a write by whether it was done, a read by the data of its address.
logic        f_write_takes, f_read_takes, f_good_q, f_known_q;
logic [1:0]  f_writes_q, f_reads_q; // that wait for their answers
logic [31:0] f_data_q;

assign f_write_takes = s_axil_awvalid_i && s_axil_awready_o;
assign f_read_takes  = s_axil_arvalid_i && s_axil_arready_o;

initial assume (!rst_ni);

always_ff @(posedge clk_i) begin : p_formal
  if (!rst_ni) begin
    f_writes_q <= '0;
    f_reads_q  <= '0;
  end else begin
    f_writes_q <= f_writes_q + 2'(f_write_takes) - 2'(s_axil_bvalid_o && s_axil_bready_i);
    f_reads_q  <= f_reads_q + 2'(f_read_takes) - 2'(s_axil_rvalid_o && s_axil_rready_i);
    F_AnsweredOnce_A: assert (f_writes_q == 2'(s_axil_bvalid_o) && f_reads_q == 2'(s_axil_rvalid_o));
    F_Write_A: assert (!s_axil_bvalid_o || s_axil_bresp_o == (f_good_q ? 2'b00 : 2'b10));
    F_Read_A: assert (!s_axil_rvalid_o
                      || {s_axil_rresp_o, s_axil_rdata_o} == (f_known_q ? {2'b00, f_data_q} : {2'b10, 32'b0}));
    F_Together_A: assert (f_write_takes == (s_axil_wvalid_i && s_axil_wready_o));
    F_Written_A: assert (write_o == (f_write_takes && s_axil_wstrb_i == 4'b1111));
    F_Place_A: assert (write_addr_o == s_axil_awaddr_i && write_data_o == s_axil_wdata_i && read_addr_o == s_axil_araddr_i);
    // One in each cycle, if answers are taken
    F_Throughput_A: assert (!s_axil_bready_i || !s_axil_awvalid_i || !s_axil_wvalid_i || f_write_takes);
    F_ReadThroughput_A: assert (!s_axil_rready_i || !s_axil_arvalid_i || f_read_takes);
  end
  if (f_write_takes) begin
    f_good_q <= s_axil_wstrb_i == 4'b1111 && write_known_i && !write_locked_i;
  end
  if (f_read_takes) begin
    f_known_q <= read_known_i;
    f_data_q  <= read_data_i;
  end
end
