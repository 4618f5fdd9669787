// Order and no loss: word n that goes in is word n that comes out, for a symbolic n, counted modulo 4.
(* anyconst *) logic [1:0] f_n;
logic [1:0]       f_in_q, f_out_q;
logic [Width-1:0] f_word_q;
logic             f_inside_q, f_in_moves, f_out_moves;

assign f_in_moves  = in_valid_i && in_ready_o;
assign f_out_moves = out_valid_o && out_ready_i;

initial assume (!rst_ni);

always_ff @(posedge clk_i) begin : p_formal
  if (!rst_ni) begin
    f_in_q     <= '0;
    f_out_q    <= '0;
    f_inside_q <= 1'b0;
  end else begin
    f_in_q  <= f_in_q + 2'(f_in_moves);
    f_out_q <= f_out_q + 2'(f_out_moves);
    if (f_in_moves && f_in_q == f_n) begin
      f_inside_q <= 1'b1;
      f_word_q   <= in_data_i;
    end else if (f_out_moves && f_out_q == f_n) begin
      f_inside_q <= 1'b0;
    end
    F_Same_A: assert (!(out_valid_o && f_out_q == f_n) || (f_inside_q && out_data_o == f_word_q));
    F_Offered_A: assert (out_valid_o == (f_in_q != f_out_q));
    F_Room_A: assert (in_ready_o == (f_in_q - f_out_q != 2'd2));
    // What induction needs to know of the inside
    F_Count_A: assert (f_in_q - f_out_q == 2'(out_valid_q) + 2'(kept_valid_q));
    F_Inside_A: assert (f_inside_q == (f_n - f_out_q < f_in_q - f_out_q));
    F_Kept_A: assert (!f_inside_q || (f_n == f_out_q ? out_q : kept_q) == f_word_q);
  end
end
