// Commands as they come from the host and from a list, in turns: each is looked at before anything of it is done, and goes to the queue of
// its kind, waits in a slot until another node invokes it, or is answered with what is wrong with it.
//
// Kinds: 0 moves and invokes, 1 adds, 2 computes on shares, 3 lists, 4 awaits; if there are workers for four parties, 5 first stages,
// 6 second stages. A list that waits for room would keep those from the intake that it waits for, and is refused.
//
// Latency:  of a command of n words n + 2 cycles until it goes on.   Throughput: one command at a time, one word per cycle in and one out.
// Back-pressure: from a kind's queue to all commands, in their order.

module lookaside_intake #(
  parameter  int unsigned Nodes   = 4,
  parameter  int unsigned Slots   = 4,    // for armed commands, at most 16
  parameter  int unsigned Longest = 1024, // words of a column that is kept
  parameter  int unsigned Lanes   = 1,    // words of a beat of memory, of which segments are multiples
  parameter  bit          Four    = 1'b0, // there are workers for four parties
  localparam int unsigned Kinds   = Four ? 7 : 5
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,
  output logic                          idle_o,

  input  logic [7:0]                    self_i,
  input  logic [63:0]                   own_base_i,
  input  logic [31:0]                   own_words_i,
  input  logic [Nodes*64-1:0]           put_base_i, // where other nodes may write, and no list lies
  input  logic [Nodes*32-1:0]           put_words_i,
  input  logic [Nodes-1:0]              invoke_from_i,
  input  logic                          keyed_i, // keys of shares are there
  input  logic                          components_i, // of four parties: keys of components, and of pairs
  input  logic                          pairs_i,

  // From the host
  input  lookaside_pkg::word_t          s_axis_tdata_i,
  input  logic                          s_axis_tlast_i,
  input  logic                          s_axis_tvalid_i,
  output logic                          s_axis_tready_o,

  // From the list that goes on
  input  lookaside_pkg::word_t          list_data_i,
  input  logic                          list_last_i,
  input  logic                          list_valid_i,
  output logic                          list_ready_o,
  input  logic                          list_room_i, // for a further list, in the queue of its kind

  // Another node invokes a slot. It is taken when its command was looked at; what is not allowed at once
  input  lookaside_pkg::origin_t        invoke_i,
  input  logic [31:0]                   invoke_slot_i,
  input  logic                          invoke_valid_i,
  output logic                          invoke_ready_o,
  output logic                          refuse_o, // invoke_i, in the cycle in which it is taken

  output lookaside_pkg::command_word_t  out_data_o,
  output logic [Kinds-1:0]              out_valid_o,
  input  logic [Kinds-1:0]              out_ready_i,

  // What is wrong
  output lookaside_pkg::completion_t    done_o,
  output logic                          done_listed_o, // the list is told
  output logic                          done_valid_o,
  input  logic                          done_ready_i
);

  localparam int unsigned SlotW = $clog2(Slots + 1);
  localparam int unsigned Most  = 16; // words of a command

  typedef enum logic [2:0] {
    Take,  // words come
    Skip,  // more than a command has
    Look,  // at word at_q of the command
    Judge, // at its sums
    Pass,  // it goes to its queue
    Say    // what is wrong
  } state_e;

  state_e                    state_q;
  logic [3:0]                at_q, last_q; // words
  logic [SlotW-1:0]          base_q, base, fresh;
  lookaside_pkg::word_t      word;
  /* verilator lint_off UNUSEDSIGNAL */ // of both, what their worker looks at
  lookaside_pkg::command_t   in, head_q, head;
  lookaside_pkg::segment_t   segment;
  lookaside_pkg::stage_t     stage_q;
  /* verilator lint_on UNUSEDSIGNAL */
  lookaside_pkg::origin_t    origin_q;
  logic [Slots-1:0]          armed_q; // slots that hold a command that may be invoked
  logic [Slots-1:0]          lists_q; // which is a list
  logic [Slots*4-1:0]        lasts_q; // of these
  logic [7:0]                status_q, wrong;
  logic [35:0]               from_q, to_q; // words of sources and destinations
  logic                      takes, adds, shares, keeps, invokes, known, is_source, contained, taken_slot, invoked, may, moves;
  logic                      staged, lists, awaits, listed, listed_q, turn_q, exposed, first_word, in_valid, in_last, in_ready, refused;
  logic [31:0]               first;   // word that is a segment
  logic [35:0]               takes_words, gives_words;

  // ---- words come into a slot, or into the place behind all slots. Whoever had no command last is first
  assign first_word      = state_q == Take && at_q == 4'd0;
  assign listed          = first_word ? list_valid_i && !(s_axis_tvalid_i && turn_q) : listed_q;
  assign in              = listed ? list_data_i : s_axis_tdata_i;
  assign in_valid        = listed ? list_valid_i : s_axis_tvalid_i;
  assign in_last         = listed ? list_last_i : s_axis_tlast_i;
  assign in_ready        = (state_q == Take && !(invoke_valid_i && at_q == 4'd0)) || state_q == Skip;
  assign s_axis_tready_o = in_ready && !listed;
  assign list_ready_o    = in_ready && listed;
  assign taken_slot      = in.armed && 32'(in.slot) < Slots && armed_q[in.slot[$clog2(Slots)-1:0]];
  assign fresh           = in.armed && 32'(in.slot) < Slots && !taken_slot ? SlotW'(in.slot) : SlotW'(Slots);
  assign base            = first_word ? fresh : base_q;
  assign takes           = in_valid && in_ready;

  prim_ram_async #(.Width(128), .Depth(Most << SlotW)) u_words (
    .clk_i    (clk_i),
    .w_en_i   (takes && state_q == Take),
    .w_addr_i ({base, at_q}),
    .w_data_i (in),
    .r_addr_i ({base_q, at_q}),
    .r_data_o (word)
  );

  // ---- is a segment right?
  assign segment   = word;
  assign adds      = head_q.op == lookaside_pkg::OpAdd || head_q.op == lookaside_pkg::OpXor || head_q.op == lookaside_pkg::OpCheck;
  assign invokes   = head_q.op == lookaside_pkg::OpInvoke;
  assign shares    = lookaside_pkg::of_shares(head_q.op);
  assign lists     = head_q.op == lookaside_pkg::OpList;
  assign awaits    = head_q.op == lookaside_pkg::OpAwait;
  assign staged    = Four && lookaside_pkg::of_four(head_q.op);
  assign first     = staged ? 32'(lookaside_pkg::segments_from(head_q.op)) : 32'd2;
  assign keeps     = adds || shares || staged;
  assign known     = keeps || invokes || lists || awaits || head_q.op == lookaside_pkg::OpMove;
  assign is_source = 32'(at_q) < 32'(head_q.sources) + first;
  assign contained = lookaside_pkg::in_window(own_base_i, own_words_i, segment.address, segment.words);

  // Who writes a list could send all shares to itself.
  always_comb begin : p_exposed
    exposed = 1'b0;
    for (int unsigned n = 0; n < Nodes; n++) begin
      exposed = exposed || lookaside_pkg::meets_window(put_base_i[64*n +: 64], put_words_i[32*n +: 32], segment.address, segment.words);
    end
  end

  always_comb begin : p_wrong
    wrong = lookaside_pkg::StatusOk;
    if (32'(segment.node) >= Nodes || ((invokes || awaits) && segment.node == self_i) || (lists && segment.node != self_i)) begin
      wrong = lookaside_pkg::StatusNode;
    end else if (invokes) begin
      wrong = segment.words != '0 ? lookaside_pkg::StatusLength : lookaside_pkg::StatusOk;
    end else if (awaits) begin
      wrong = segment.words == '0 || segment.words[31:16] != '0 ? lookaside_pkg::StatusLength : lookaside_pkg::StatusOk;
    end else if (segment.words == '0 || (segment.words & 32'(Lanes - 1)) != '0) begin
      wrong = lookaside_pkg::StatusLength;
    end else if ((segment.address & 64'(16 * Lanes - 1)) != '0 || (segment.node == self_i && !contained) || (lists && exposed)) begin
      wrong = lookaside_pkg::StatusAddress;
    end
  end

  // ---- and the sums?
  logic [7:0] judged;

  assign takes_words = staged ? lookaside_pkg::words_in(head_q.op, head_q.words, stage_q, Lanes)
                     : 36'(head_q.words) * 36'(lookaside_pkg::operands(head_q.op));
  assign gives_words = staged ? lookaside_pkg::words_out(head_q.op, head_q.words, stage_q, Lanes)
                     : lookaside_pkg::of_sums(head_q.op) ? 36'(2 * Lanes) : lists ? '0 : 36'(head_q.words) << (shares ? 1 : 0);

  always_comb begin : p_judged
    judged = status_q;
    if (status_q == lookaside_pkg::StatusOk) begin
      if (invokes || awaits ? head_q.sources != '0 || head_q.words != '0 || head_q.destinations == '0
                  : head_q.words == '0 || (head_q.words & 32'(Lanes - 1)) != '0 || from_q != takes_words || to_q != gives_words
                    || (keeps && head_q.words > Longest)
                    || (staged && stage_q.sum && head_q.op == lookaside_pkg::OpJoin && head_q.words != Lanes)) begin
        judged = lookaside_pkg::StatusLength;
      end else if ((shares && !keyed_i)
                || (staged && ((head_q.op == lookaside_pkg::OpLocal && !components_i) || (stage_q.checks && !pairs_i)))) begin
        judged = lookaside_pkg::StatusNoKey;
      end else if ((awaits && head_q.armed) || (lists && (origin_q.listed || !(head_q.armed || list_room_i)))) begin
        judged = lookaside_pkg::StatusRefused;
      end
    end
  end

  // ---- other nodes
  assign may            = invoke_i.node[7:0] < 8'(Nodes) && invoke_from_i[invoke_i.node[$clog2(Nodes)-1:0]]
                        && invoke_slot_i < Slots && armed_q[invoke_slot_i[$clog2(Slots)-1:0]]
                        && (list_room_i || !lists_q[invoke_slot_i[$clog2(Slots)-1:0]]);
  // Windows and keys may be others than when it was armed: then whoever invoked it is refused, and the host is told why.
  assign invoked        = invoke_valid_i && state_q == Take && at_q == 4'd0;
  assign refused        = state_q == Judge ? judged != lookaside_pkg::StatusOk : !may;
  assign invoke_ready_o = (invoked && !may) || (state_q == Judge && origin_q.remote);
  assign refuse_o       = invoke_valid_i && invoke_ready_o && refused;

  // ---- on
  assign head          = word;
  assign moves         = |(out_valid_o & out_ready_i);
  assign out_data_o    = {at_q == last_q, origin_q, word};
  assign out_valid_o   = state_q != Pass ? '0 : staged ? Kinds'(head_q.op == lookaside_pkg::OpLocal ? 32 : 64)
                       : awaits ? Kinds'(16) : lists ? Kinds'(8) : shares ? Kinds'(4) : adds ? Kinds'(2) : Kinds'(1);
  assign done_valid_o  = state_q == Say;
  assign done_listed_o = origin_q.listed;
  assign done_o        = {head_q.tag, 72'b0, self_i, lookaside_pkg::EventCommand, status_q};
  assign idle_o        = state_q == Take && at_q == 4'd0;

  always_ff @(posedge clk_i) begin : p_state
    if (!rst_ni) begin
      state_q  <= Take;
      at_q     <= '0;
      last_q   <= '0;
      base_q   <= '0;
      head_q   <= '0;
      stage_q  <= '0;
      origin_q <= '0;
      armed_q  <= '0;
      lasts_q  <= '0;
      lists_q  <= '0;
      listed_q <= 1'b0;
      turn_q   <= 1'b0;
      status_q <= lookaside_pkg::StatusOk;
      from_q   <= '0;
      to_q     <= '0;
    end else begin
      unique case (state_q)
        Take: begin
          if (invoked && may) begin
            origin_q <= invoke_i;
            base_q   <= SlotW'(invoke_slot_i);
            last_q   <= lasts_q[4*32'(invoke_slot_i[$clog2(Slots)-1:0]) +: 4];
            armed_q  <= armed_q & ~(Slots'(1) << invoke_slot_i[$clog2(Slots)-1:0]);
            state_q  <= Look;
            status_q <= lookaside_pkg::StatusOk;
          end else if (takes) begin
            if (at_q == 4'd0) begin
              origin_q <= {listed, {$bits(origin_q)-1{1'b0}}};
              listed_q <= listed;
              turn_q   <= listed;
              base_q   <= base;
              head_q   <= in;
              status_q <= in.zero != '0 ? lookaside_pkg::StatusMalformed
                        : in.armed && (base == SlotW'(Slots) || listed) ? lookaside_pkg::StatusRefused : lookaside_pkg::StatusOk;
            end
            at_q   <= at_q + 4'd1;
            last_q <= at_q;
            if (in_last) begin
              at_q    <= 4'd0;
              state_q <= Look;
            end else if (at_q == 4'd15) begin
              at_q     <= 4'd0;
              status_q <= lookaside_pkg::StatusMalformed;
              state_q  <= Skip;
            end
          end
        end
        Skip: begin
          state_q <= takes && in_last ? Say : Skip;
        end
        Look: begin
          at_q <= at_q + 4'd1;
          if (at_q == 4'd0) begin
            head_q <= head;
            from_q <= '0;
            to_q   <= '0;
          end else if (at_q == 4'd1) begin
            if (32'(head_q.sources) + 32'(head_q.destinations) + first != 32'(last_q) + 1) begin
              status_q <= lookaside_pkg::StatusMalformed;
            end else if (!known) begin
              status_q <= lookaside_pkg::StatusUnknown;
            end
          end else if (staged && at_q == 4'd2) begin
            stage_q <= word;
            if (status_q == lookaside_pkg::StatusOk && !lookaside_pkg::is_stage(head_q.op, word)) begin
              status_q <= lookaside_pkg::StatusMalformed;
            end
          end else begin
            if (status_q == lookaside_pkg::StatusOk) begin
              status_q <= wrong;
            end
            from_q <= from_q + (is_source ? 36'(segment.words) : '0);
            to_q   <= to_q + (is_source ? '0 : 36'(segment.words));
          end
          if (at_q == last_q || status_q != lookaside_pkg::StatusOk) begin
            at_q    <= '0;
            state_q <= Judge;
            if (last_q == 4'd0) begin
              status_q <= lookaside_pkg::StatusMalformed;
            end
          end
        end
        Judge: begin
          // Whoever invoked it is answered, if it is refused, in the cycle in which the invocation is taken.
          if (!origin_q.remote || invoke_valid_i) begin
            status_q <= judged;
            state_q  <= judged != lookaside_pkg::StatusOk ? Say : Pass;
            if (judged == lookaside_pkg::StatusOk && head_q.armed && !origin_q.remote) begin
              armed_q <= armed_q | Slots'(1) << head_q.slot[$clog2(Slots)-1:0];
              lasts_q[4*32'(head_q.slot[$clog2(Slots)-1:0]) +: 4] <= last_q;
              lists_q[head_q.slot[$clog2(Slots)-1:0]] <= lists;
              state_q <= Take;
            end
          end
        end
        Pass: begin
          if (moves) begin
            at_q    <= at_q == last_q ? 4'd0 : at_q + 4'd1;
            state_q <= at_q == last_q ? Take : Pass;
          end
        end
        Say: begin
          state_q <= done_ready_i ? Take : Say;
        end
        default: state_q <= Take;
      endcase
    end
  end

endmodule
