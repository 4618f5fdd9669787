// The client of a burst is the one whose run was taken last; a run is taken of one client, which offered it; and none waits while nothing goes on.
logic [Clients-1:0] f_taken_q;
logic               f_run_q;

initial assume (!rst_ni);

always_ff @(posedge clk_i) begin : p_formal
  assume (run.words >= 8'(Lanes));
  if (!rst_ni) begin
    f_taken_q <= '0;
    f_run_q   <= 1'b0;
  end else begin
    if (run_ready_o != '0) begin
      f_taken_q <= run_ready_o;
      f_run_q   <= 1'b1;
    end
    F_One_A: assert ((run_ready_o & (run_ready_o - 1'b1)) == '0 && (run_ready_o & ~run_valid_i) == '0);
    F_Work_A: assert (burst_valid_o || run_valid_i == '0 || run_ready_o != '0);
    if (burst_valid_o) begin
      F_Client_A: assert (f_run_q && f_taken_q == Clients'(1) << burst_client_o);
    end
  end
end
