// A symbolic table of a line that stays until it is taken leaves once, at its place; the last beat of the last line ends the stream.
(* anyconst *) logic [7:0] f_row;
logic [7:0]          f_next_q; // tables of the line that have left
logic [Rows*256-1:0] f_tables_q;
logic [Rows-1:0]     f_keep_q;
logic                f_last_q, f_holds_q, f_moves, f_ends, f_kept;
logic                f_here, f_here_kept; // in the beat
logic [255:0]        f_in, f_out;

initial assume (!rst_ni);

assign f_moves = out_valid_o && out_ready_i;
assign f_ends  = in_valid_i && in_ready_o;
assign f_kept  = 1'(in_keep_i >> f_row);

always_comb begin : p_formal_table
  f_here      = 1'b0;
  f_here_kept = 1'b0;
  f_in        = '0;
  f_out       = '0;
  for (int unsigned r = 0; r < Rows; r++) begin
    if (f_row == 8'(r)) begin
      f_in = in_tables_i[r*256 +: 256];
    end
  end
  for (int unsigned k = 0; k < Out; k++) begin
    if (f_row == f_next_q + 8'(k)) begin
      f_here      = 1'b1;
      f_here_kept = out_keep_o[k];
      f_out       = out_tables_o[k*256 +: 256];
    end
  end
end

always_ff @(posedge clk_i) begin : p_formal
  assume (32'(f_row) < Rows);
  assume (!in_valid_i || (in_keep_i != '0 && (in_keep_i & (in_keep_i + 1'b1)) == '0));
  assume (!rst_ni || !f_holds_q
          || (in_valid_i && in_tables_i == f_tables_q && in_keep_i == f_keep_q && in_last_i == f_last_q));
  f_holds_q  <= rst_ni && in_valid_i && !in_ready_o;
  f_tables_q <= in_tables_i;
  f_keep_q   <= in_keep_i;
  f_last_q   <= in_last_i;
  if (!rst_ni) begin
    f_next_q <= '0;
  end else begin
    f_next_q <= f_ends ? '0 : f_next_q + (f_moves ? 8'(Out) : 8'd0);
    F_Table_A: assert (!out_valid_o || !f_here || (f_here_kept == f_kept && (!f_kept || f_out == f_in)));
    // A line ends with its last table, and every beat has one
    F_Ends_A: assert (!f_ends || f_moves);
    F_Whole_A: assert (!f_ends || !f_kept || f_here || f_row < f_next_q);
    F_Some_A: assert (!out_valid_o || out_keep_o != '0);
    F_Last_A: assert (!out_valid_o || out_last_o == (in_last_i && (f_ends || !out_ready_i && (in_keep_i >> (f_next_q + 8'(Out))) == '0)));
    // What induction needs to know of the inside
    F_Place_A: assert (f_next_q == 8'(g_narrow.beat_q) * 8'(Out));
    F_Kept_A: assert (f_next_q == '0 || (f_holds_q && 1'(f_keep_q >> f_next_q)));
  end
end
