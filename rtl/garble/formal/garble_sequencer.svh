// The bundles of a run are those of the prologue, then those of the kernel again and again, and no other: counted outside, by who takes
// them. A symbolic bundle is what was written to its address last.
(* hierconn *) logic [AddrW-1:0] \u_program.f_at ;
(* hierconn *) logic [Width-1:0] \u_program.f_word_q ;
(* hierconn *) logic             \u_program.f_written_q ;
(* anyconst *) logic [AddrW:0]    f_prologue;
(* anyconst *) logic [AddrW:0]    f_kernel;
(* anyconst *) logic [AddrW:0]    f_last;
(* anyconst *) logic [CycleW-1:0] f_repeats;
logic              f_runs_q = 1'b0;
logic              f_begun_q;     // in the last cycle
logic [AddrW:0]    f_pc_q;        // of the bundle that is offered or comes next
logic [CycleW-1:0] f_repetition_q;
logic              f_ends, f_wraps;

assign f_wraps = f_pc_q + 1'b1 == f_prologue + f_kernel;
assign f_ends  = f_repetition_q == f_repeats - 1'b1 && f_pc_q == f_prologue + f_last - 1'b1;

initial assume (!rst_ni && !\u_program.f_written_q );

always_ff @(posedge clk_i) begin : p_formal
  // Of a run, as garble_check says it; nothing of it changes, and no program comes, while it goes on
  assume (prologue_i == f_prologue && kernel_i == f_kernel && last_i == f_last && repeats_i == f_repeats);
  assume (f_kernel != '0 && f_last != '0 && f_last <= f_kernel && f_repeats != '0);
  assume (f_prologue <= (AddrW+1)'(Depth) && f_kernel <= (AddrW+1)'(Depth) - f_prologue);
  assume (!f_runs_q || (!start_i && !w_en_i));
  assume (!start_i || !w_en_i);
  assume (!next_i || valid_o);

  f_begun_q <= start_i && rst_ni;
  if (!rst_ni) begin
    f_runs_q <= 1'b0;
  end else if (start_i) begin
    f_runs_q       <= 1'b1;
    f_pc_q         <= '0;
    f_repetition_q <= '0;
  end else if (next_i) begin
    f_runs_q       <= !f_ends;
    f_pc_q         <= f_wraps ? f_prologue : f_pc_q + 1'b1;
    f_repetition_q <= f_repetition_q + CycleW'(f_wraps);
  end
  if (rst_ni) begin
    // One in each cycle from the second on after the start, until all were taken
    F_Offered_A: assert (valid_o == (f_runs_q && !f_begun_q));
    F_Which_A: assert (!valid_o || (prologue_o == (f_pc_q < f_prologue) && begins_o == (f_pc_q == f_prologue)
                                    && repetition_o == f_repetition_q));
    F_Bundle_A: assert (!valid_o || f_pc_q[AddrW-1:0] != \u_program.f_at || !\u_program.f_written_q
                        || bundle_o == \u_program.f_word_q );
    // What induction needs to know of the inside
    F_Range_A: assert (!f_runs_q || (f_pc_q < f_prologue + f_kernel && f_repetition_q < f_repeats
                                     && (f_repetition_q != f_repeats - 1'b1 || f_pc_q < f_prologue + f_last)));
    F_Fetches_A: assert (fetches_q == (f_runs_q && (!valid_o || !f_ends)));
    F_Ahead_A: assert (!fetches_q || (!valid_o ? pc_q == f_pc_q && repetition_q == f_repetition_q
                                      : pc_q == (f_wraps ? f_prologue : f_pc_q + 1'b1)
                                        && repetition_q == f_repetition_q + CycleW'(f_wraps)));
    F_Begun_A: assert (!f_begun_q || f_runs_q);
  end
end
