// A symbolic beat of a run is in one burst and no other, in its order; no burst leaves its 4096 bytes, is empty or too long.
(* anyconst *) logic [WordsW-1:0] f_beat; // of the run
logic [AddressW-1:0] f_base_q;          // of the run
logic [WordsW-1:0]   f_beats_q;
logic [WordsW:0]     f_done_q;          // beats in bursts that have left
logic                f_seen_q, f_run_q;
logic [AddressW-1:0] f_last;            // last byte of the burst

initial assume (!rst_ni);

assign f_last = burst_address_o + ({{(AddressW-BeatsW-4){1'b0}}, burst_beats_o, 4'b0} << LaneW) - 1'b1;

always_ff @(posedge clk_i) begin : p_formal
  assume (!valid_i || (words_i != '0 && (words_i & WordsW'(Lanes - 1)) == '0 && (address_i & AddressW'(16 * Lanes - 1)) == '0));
  // Runs do not go beyond the last address.
  assume (!valid_i || {1'b0, address_i} + {words_i, 4'b0} <= {1'b1, {AddressW{1'b0}}});
  if (!rst_ni) begin
    f_run_q   <= 1'b0;
    f_base_q  <= '0;
    f_beats_q <= '0;
    f_done_q  <= '0;
    f_seen_q  <= 1'b0;
  end else begin
    if (takes) begin
      f_run_q   <= 1'b1;
      f_base_q  <= address_i;
      f_beats_q <= words_i >> LaneW;
      f_done_q  <= '0;
      f_seen_q  <= 1'b0;
    end else if (moves) begin
      f_done_q <= f_done_q + (WordsW+1)'(burst_beats_o);
      f_seen_q <= f_seen_q || ({1'b0, f_beat} >= f_done_q && BeatsW'(f_beat) < BeatsW'(f_done_q) + burst_beats_o);
    end
    if (burst_valid_o) begin
      F_Run_A: assert (f_run_q);
      F_Some_A: assert (burst_beats_o != '0 && burst_beats_o <= BeatsW'(MaxBeats));
      F_Page_A: assert (f_last[AddressW-1:12] == burst_address_o[AddressW-1:12]);
      F_Order_A: assert (burst_address_o == f_base_q + (AddressW'({f_done_q, 4'b0}) << LaneW));
      F_Last_A: assert (burst_last_o == (BeatsW'(f_done_q) + burst_beats_o == BeatsW'(f_beats_q)));
      F_Within_A: assert (BeatsW'(f_done_q) + burst_beats_o <= BeatsW'(f_beats_q));
    end
    // When another run is taken, or none is left, the beat of this one was there.
    if (f_run_q && !burst_valid_o) begin
      F_Whole_A: assert (f_done_q == {1'b0, f_beats_q} && (f_beat >= f_beats_q || f_seen_q));
    end
    // What induction needs to know of the inside
    if (f_run_q) begin
      F_Left_A: assert (f_done_q + {1'b0, left_q} == {1'b0, f_beats_q});
      F_Done_A: assert (f_done_q <= {1'b0, f_beats_q});
      F_Seen_A: assert (f_seen_q == ({1'b0, f_beat} < f_done_q));
      F_Base_A: assert ((f_base_q & AddressW'(16 * Lanes - 1)) == '0
                        && (left_q == '0 || address_q == f_base_q + (AddressW'({f_done_q, 4'b0}) << LaneW)));
      F_End_A: assert ({1'b0, f_base_q} + ((AddressW+1)'({f_beats_q, 4'b0}) << LaneW) <= {1'b1, {AddressW{1'b0}}});
    end else begin
      F_None_A: assert (left_q == '0);
    end
  end
end
