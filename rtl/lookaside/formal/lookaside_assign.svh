// A command goes whole to one worker, which was free when it began; no word is lost or given twice, and none waits while a worker is free.
logic               f_amid_q; // within a command
logic [Workers-1:0] f_who_q;

initial assume (!rst_ni);

always_ff @(posedge clk_i) begin : p_formal
  if (!rst_ni) begin
    f_amid_q <= 1'b0;
    f_who_q  <= '0;
  end else begin
    if (in_valid_i && in_ready_o) begin
      f_amid_q <= !in_data_i.last;
      f_who_q  <= out_valid_o;
    end
    F_One_A: assert ((out_valid_o & (out_valid_o - 1'b1)) == '0);
    F_Moves_A: assert ((out_valid_o != '0) == (in_valid_i && in_ready_o));
    F_Whole_A: assert (!f_amid_q || out_valid_o == '0 || out_valid_o == f_who_q);
    F_Free_A: assert (f_amid_q || (out_valid_o & ~free_i) == '0);
    F_NoWait_A: assert (!in_valid_i || in_ready_o || (!f_amid_q && free_i == '0));
    F_Same_A: assert (out_data_o == in_data_i);
    // What induction needs to know of the inside
    F_OneChosen_A: assert ((chosen_q & (chosen_q - 1'b1)) == '0);
    F_Chosen_A: assert (f_amid_q ? chosen_q == f_who_q && f_who_q != '0 : chosen_q == '0);
  end
end
