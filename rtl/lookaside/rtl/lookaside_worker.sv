// Runs commands on one accelerator, one after the other: asks memory and other nodes for its sources, puts what comes out to its
// destinations, and says how it went when all has been answered.
//
// A command always ends. After the first thing that goes wrong nothing more is asked for or written: the accelerator is given zeros for the
// words that it still expects, and what it makes is thrown away. Another node that owes an answer for timeout_i cycles is gone.
//
// Words come and go in beats of Lanes words: all segments are multiples of it.
//
// Back-pressure: words are asked for when there is room for them, and put when a run of them is there.

module lookaside_worker #(
  parameter  int unsigned Nodes = 4,
  parameter  int unsigned Lanes = 1, // words of a beat, a power of two, at most 16
  parameter  int unsigned Index = 0, // of this worker, at most 15: the upper bits of the numbers of its requests
  localparam int unsigned BeatW = 128 * Lanes
) (
  input  logic                         clk_i,
  input  logic                         rst_ni,
  input  logic                         wipe_i,
  input  logic [7:0]                   self_i,
  input  logic [31:0]                  timeout_i,
  output logic                         free_o,

  input  lookaside_pkg::command_word_t command_i,
  input  logic                         command_valid_i, // always taken: it comes to a free worker alone

  // Memory: as of lookaside_reader and lookaside_writer
  output lookaside_pkg::run_t          read_o,
  output logic                         read_valid_o,
  input  logic                         read_ready_i,
  input  logic [BeatW-1:0]             read_data_i,
  input  logic                         read_data_valid_i,
  input  logic                         read_error_i,
  output lookaside_pkg::run_t          write_o,
  output logic                         write_valid_o,
  input  logic                         write_ready_i,
  output logic [BeatW-1:0]             write_data_o,
  output logic                         write_data_valid_o,
  input  logic                         write_data_ready_i,
  input  logic                         write_done_i,
  input  logic                         write_error_i,

  // Packets to other nodes, as of lookaside_send; the beats of a put are write_data_o
  output lookaside_pkg::header_t       send_o,
  output logic [7:0]                   send_node_o,
  output logic                         send_valid_o,
  input  logic                         send_ready_i,
  input  logic                         send_data_ready_i,

  // Answers of other nodes, to whichever worker: their header while they last, a beat, their end
  input  lookaside_pkg::header_t       answer_i,
  input  logic [7:0]                   answer_node_i,
  input  logic [BeatW-1:0]             answer_data_i,
  input  logic                         answer_data_valid_i,
  input  logic                         answer_end_i,

  // The accelerator
  output logic                         start_o,
  output lookaside_pkg::command_t      command_o,
  output lookaside_pkg::draw_t         draw_o,
  output lookaside_pkg::stage_t        stage_o, // of operations that have one
  output logic [BeatW-1:0]             in_data_o,
  output logic                         in_valid_o,
  input  logic                         in_ready_i,
  input  logic [BeatW-1:0]             out_data_i,
  input  logic                         out_valid_i,
  output logic                         out_ready_o,
  input  logic                         mismatch_i, // with a beat: it is not to be used, nor what comes after it
  input  logic                         busy_i,     // it has not ended, though all that it takes and gives has come and gone
  input  logic [7:0]                   status_i,   // until it ends: what is wrong, if anything is
  output logic                         failed_o,   // the command has: what it takes are zeros, or are not to be used

  output lookaside_pkg::completion_t   done_o,
  output logic                         done_listed_o, // a list of this node is told
  output logic                         done_valid_o,
  input  logic                         done_ready_i
);

  localparam int unsigned LaneW  = $clog2(Lanes);
  localparam int unsigned Chunk  = lookaside_pkg::Chunk / Lanes; // beats
  localparam int unsigned Room   = 4 * Chunk;
  localparam int unsigned RoomW  = $clog2(Room) + 1;
  localparam int unsigned NodeW  = $clog2(Nodes);
  localparam int unsigned Most   = lookaside_pkg::Owed;
  localparam int unsigned OwedW  = $clog2(Most) + 1;

  typedef enum logic [1:0] { Load, Run, Say, Tell } state_e;
  typedef enum logic [2:0] { Next, Ask, Wait, Fill, End } fetch_e;
  typedef enum logic [1:0] { NextOut, Put, Data, EndOut } put_e;

  state_e                   state_q;
  fetch_e                   fetch_q;
  put_e                     put_q;
  lookaside_pkg::command_t  head_q;
  lookaside_pkg::draw_t     draw_q;
  lookaside_pkg::stage_t    stage_q, stage;
  lookaside_pkg::origin_t   origin_q;
  logic [7:0]               status_q, status_d;
  logic                     failed, runs, invokes, staged;
  logic [3:0]               first;   // of the segments

  // ---- segments: the command's words, of which two are looked at at once
  logic [3:0]               at_q;
  logic [4:0]               from_q, to_q; // one behind the last word is there, too
  lookaside_pkg::word_t     from_word, to_word;
  lookaside_pkg::segment_t  from, to;

  prim_ram_async #(.Width(128), .Depth(16), .Reads(2)) u_segments (
    .clk_i    (clk_i),
    .w_en_i   (state_q == Load && command_valid_i),
    .w_addr_i (at_q),
    .w_data_i (command_i.data),
    .r_addr_i ({to_q[3:0], from_q[3:0]}),
    .r_data_o ({to_word, from_word})
  );

  assign from      = from_word;
  assign to        = to_word;
  assign free_o    = state_q == Load && !wipe_i;
  assign runs      = state_q == Run;
  assign failed    = status_q != lookaside_pkg::StatusOk;
  assign failed_o  = failed;
  assign invokes   = head_q.op == lookaside_pkg::OpInvoke;
  assign command_o = head_q;
  assign draw_o    = draw_q;
  assign staged    = lookaside_pkg::of_four(head_q.op);
  assign first     = lookaside_pkg::segments_from(head_q.op);
  assign stage     = at_q == 4'd2 ? command_i.data : stage_q; // with the last word too
  assign stage_o   = stage_q;

  // ---- beats that come: room for those that were asked for. All of these numbers are of beats
  logic [RoomW-1:0]     room_q, out_count;
  logic [31:0]          from_left_q, to_left_q;
  logic [63:0]          from_at_q, to_at_q;
  logic [39:0]          need_q;  // that the accelerator is still to be given
  logic [31:0]          give_q;  // that it is still to give
  logic [7:0]           fly_q;   // that were asked for and have not come
  logic [7:0]           from_some, to_some;
  logic [11:0]          get_number_q, put_number_q;
  logic [BeatW-1:0]     come;
  logic                 comes, local_from, mine, got, in_moves, out_moves, reads, gets, fills;

  assign from_some  = from_left_q > 32'(Chunk) ? 8'(Chunk) : from_left_q[7:0];
  assign to_some    = to_left_q > 32'(Chunk) ? 8'(Chunk) : to_left_q[7:0];
  assign local_from = from.node == self_i;
  assign mine       = answer_i.kind == lookaside_pkg::PacketGetDone && fetch_q == Wait && answer_node_i == from.node
                    && answer_i.number == {4'(Index), get_number_q};
  assign got        = mine && answer_data_valid_i && fly_q != '0;
  assign fills      = fetch_q == Fill && fly_q == '0 && need_q != '0 && room_q != '0;
  assign come       = fetch_q == Fill && fly_q == '0 ? '0 : read_data_valid_i ? read_data_i : answer_data_i;
  assign comes      = read_data_valid_i || got || fills;
  assign read_o     = {from_at_q, from_some << LaneW};
  assign read_valid_o = runs && fetch_q == Ask && !failed && local_from && room_q >= RoomW'(from_some);
  assign reads      = read_valid_o && read_ready_i;

  logic in_ready_unused, out_ready;

  prim_buffer #(.Width(BeatW), .Depth(Room)) u_in (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .wipe_i      (wipe_i),
    .in_data_i   (come),
    .in_valid_i  (comes),
    .in_ready_o  (in_ready_unused),
    .out_data_o  (in_data_o),
    .out_valid_o (in_valid_o),
    .out_ready_i (in_ready_i),
    .count_o     (in_count)
  );

  logic [RoomW-1:0] in_count;

  assign in_moves = in_valid_o && in_ready_i;

  // ---- beats that go
  logic                   local_to, wants, puts, drops, last_put, write_moves, out_left, out_take;
  logic [OwedW*Nodes-1:0] owed_q, owed_d; // answers that each node owes to puts and invocations; this one for runs that it writes
  logic                 owes, owes_other, room_to, offered_put_q, offered_get_q;
  logic [31:0]          waits_q;
  logic                 late, answered;

  prim_buffer #(.Width(BeatW), .Depth(Room)) u_out (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .wipe_i      (wipe_i),
    .in_data_i   (out_data_i),
    .in_valid_i  (out_valid_i && runs),
    .in_ready_o  (out_ready),
    .out_data_o  (write_data_o),
    .out_valid_o (out_left),
    .out_ready_i (out_take),
    .count_o     (out_count)
  );

  assign out_ready_o = out_ready && runs;
  assign out_moves   = out_valid_i && out_ready_o;
  assign local_to    = to.node == self_i;
  assign room_to     = owed_q[OwedW*32'(to.node[NodeW-1:0]) +: OwedW] != OwedW'(Most);
  // A packet that was offered is sent, whatever went wrong since.
  assign wants       = runs && put_q == Put && (!failed || offered_put_q) && room_to && (invokes || out_count >= RoomW'(to_some));
  assign last_put    = to_left_q == 32'(to_some);
  assign write_o     = {to_at_q, to_some << LaneW};
  assign write_valid_o = wants && local_to;
  assign drops       = runs && failed && put_q != Data && put_q != EndOut && !offered_put_q && out_left;

  // Beats of a run or packet that was taken, until all have left
  logic [7:0] data_q;
  logic       data_local_q;

  assign write_data_valid_o = out_left && put_q == Data && data_local_q;
  assign write_moves        = write_data_valid_o && write_data_ready_i;
  assign out_take           = write_moves || (put_q == Data && !data_local_q && send_data_ready_i) || drops;

  // ---- packets: an answer to who invoked this before anything else; puts before gets
  logic                   sends_put, sends_get;
  lookaside_pkg::header_t put_header, get_header, tell_header;

  assign sends_put = wants && !local_to && !offered_get_q;
  assign sends_get = runs && fetch_q == Ask && (!failed || offered_get_q) && !local_from && room_q >= RoomW'(from_some) && fly_q == '0;

  always_ff @(posedge clk_i) begin : p_offered
    offered_put_q <= rst_ni && !wipe_i && sends_put && !send_ready_i;
    offered_get_q <= rst_ni && !wipe_i && sends_get && !sends_put && !send_ready_i;
  end

  always_comb begin : p_headers
    put_header         = '0;
    put_header.kind    = invokes ? lookaside_pkg::PacketInvoke : lookaside_pkg::PacketPut;
    put_header.tells   = !invokes && to.tells && last_put;
    put_header.words   = invokes ? 8'd0 : to_some << LaneW;
    put_header.number  = {4'(Index), put_number_q};
    put_header.value   = invokes ? to_at_q[31:0] : 32'(to.tag);
    put_header.address = invokes ? '0 : to_at_q;
    get_header         = '0;
    get_header.kind    = lookaside_pkg::PacketGet;
    get_header.words   = from_some << LaneW;
    get_header.number  = {4'(Index), get_number_q};
    get_header.address = from_at_q;
    tell_header        = '0;
    tell_header.kind   = lookaside_pkg::PacketInvoked;
    tell_header.number = origin_q.number;
    tell_header.value  = 32'(status_q);
  end

  assign send_o       = state_q == Tell ? tell_header : sends_put ? put_header : get_header;
  assign send_node_o  = state_q == Tell ? origin_q.node : sends_put ? to.node : from.node;
  assign send_valid_o = state_q == Tell || sends_put || sends_get;
  assign gets         = sends_get && !sends_put && send_ready_i;
  assign puts         = (write_valid_o && write_ready_i) || (sends_put && send_ready_i);

  // ---- answers
  logic [7:0]   answer_status;
  logic         acked;
  logic [NodeW-1:0] acker;

  assign acker    = answer_node_i[NodeW-1:0];
  assign acked    = runs && answer_end_i && answer_i.number == {4'(Index), put_number_q}
                  && answer_node_i < 8'(Nodes) && answer_node_i != self_i
                  && owed_q[OwedW*32'(acker) +: OwedW] != '0
                  && answer_i.kind == (invokes ? lookaside_pkg::PacketInvoked : lookaside_pkg::PacketPutDone);
  assign answer_status = answer_i.value > 32'(lookaside_pkg::StatusRefused) ? lookaside_pkg::StatusMalformed : answer_i.value[7:0];
  assign answered = acked || (mine && answer_end_i);
  assign late     = timeout_i != '0 && waits_q >= timeout_i;

  always_comb begin : p_owed
    owed_d     = owed_q;
    owes       = owed_q != '0;
    owes_other = fetch_q == Wait;
    for (int unsigned n = 0; n < Nodes; n++) begin
      owes_other = owes_other || (owed_q[OwedW*n +: OwedW] != '0 && 8'(n) != self_i);
      owed_d[OwedW*n +: OwedW] = owed_q[OwedW*n +: OwedW] + OwedW'(puts && to.node == 8'(n))
                               - OwedW'((acked && answer_node_i == 8'(n)) || (write_done_i && self_i == 8'(n)));
      if (late && self_i != 8'(n)) begin
        owed_d[OwedW*n +: OwedW] = '0;
      end
    end
  end

  always_comb begin : p_status
    status_d = status_q;
    if (status_q == lookaside_pkg::StatusOk && runs) begin
      if ((read_data_valid_i && read_error_i) || (write_done_i && write_error_i)) begin
        status_d = lookaside_pkg::StatusMemory;
      end else if (acked && answer_status != lookaside_pkg::StatusOk) begin
        status_d = answer_status;
      end else if (mine && answer_end_i && answer_status != lookaside_pkg::StatusOk) begin
        status_d = answer_status;
      end else if (mine && answer_end_i && fly_q != 8'(got)) begin
        status_d = lookaside_pkg::StatusLength;
      end else if (late) begin
        status_d = lookaside_pkg::StatusGone;
      end else if (out_moves && mismatch_i) begin
        status_d = lookaside_pkg::StatusMismatch;
      end else begin
        status_d = status_i;
      end
    end
  end

  // ---- completion
  logic begins;

  assign begins       = state_q == Load && command_valid_i && command_i.last;
  assign start_o      = start_q;
  assign done_valid_o = state_q == Say;
  assign done_listed_o = origin_q.listed;
  assign done_o       = {head_q.tag, 72'b0, origin_q.remote ? origin_q.node : self_i,
                         origin_q.remote ? lookaside_pkg::EventInvoked : lookaside_pkg::EventCommand, status_q};

  logic start_q;

  always_ff @(posedge clk_i) begin : p_state
    if (!rst_ni || wipe_i) begin
      state_q  <= Load;
      at_q     <= '0;
      head_q   <= '0;
      draw_q   <= '0;
      stage_q  <= '0;
      origin_q <= '0;
      status_q <= lookaside_pkg::StatusOk;
      start_q  <= 1'b0;
      put_number_q <= '0;
    end else begin
      status_q <= status_d;
      start_q  <= begins && !invokes;
      unique case (state_q)
        Load: begin
          status_q <= lookaside_pkg::StatusOk;
          if (command_valid_i) begin
            at_q <= at_q + 4'd1;
            if (at_q == 4'd0) begin
              head_q   <= command_i.data;
              origin_q <= command_i.origin;
            end
            if (at_q == 4'd1) begin
              draw_q <= command_i.data;
            end
            stage_q <= stage;
            if (command_i.last) begin
              at_q    <= '0;
              state_q <= Run;
            end
          end
        end
        Run: begin
          if (fetch_q == End && put_q == EndOut && !owes && fly_q == '0 && !start_q && !busy_i) begin
            state_q      <= Say;
            put_number_q <= put_number_q + 12'd1;
          end
        end
        Say: begin
          if (done_ready_i) begin
            state_q <= origin_q.remote ? Tell : Load;
          end
        end
        Tell: begin
          state_q <= send_ready_i ? Load : Tell;
        end
        default: state_q <= Load;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin : p_fetch
    if (!rst_ni || wipe_i) begin
      fetch_q      <= End;
      room_q       <= RoomW'(Room);
      fly_q        <= '0;
      need_q       <= '0;
      from_q       <= '0;
      from_at_q    <= '0;
      from_left_q  <= '0;
      get_number_q <= '0;
    end else begin
      room_q <= room_q + RoomW'(in_moves) - (reads || gets ? RoomW'(from_some) : '0) - RoomW'(fills);
      fly_q  <= fly_q + (reads || gets ? from_some : '0) - 8'(read_data_valid_i || got);
      need_q <= need_q - 40'(comes);
      unique case (fetch_q)
        Next: begin
          from_at_q   <= from.address;
          from_left_q <= from.words >> LaneW;
          fetch_q     <= 32'(from_q) == 32'(head_q.sources) + 32'(first) ? End : failed ? Fill : Ask;
        end
        Ask: begin
          if (reads || gets) begin
            from_at_q   <= from_at_q + (64'(from_some) << (4 + LaneW));
            from_left_q <= from_left_q - 32'(from_some);
            if (gets) begin
              fetch_q <= Wait;
            end else if (from_left_q == 32'(from_some)) begin
              from_q  <= from_q + 5'd1;
              fetch_q <= Next;
            end
          end else if (failed && !offered_get_q) begin
            fetch_q <= Fill;
          end
        end
        Wait: begin
          if ((mine && answer_end_i) || late) begin
            get_number_q <= get_number_q + 12'd1;
            if (status_d != lookaside_pkg::StatusOk) begin // what has not come will not
              fly_q   <= '0;
              room_q  <= room_q + RoomW'(in_moves) + RoomW'(fly_q) - RoomW'(got);
              fetch_q <= Fill;
            end else if (from_left_q == '0) begin
              from_q  <= from_q + 5'd1;
              fetch_q <= Next;
            end else begin
              fetch_q <= Ask;
            end
          end
        end
        Fill: begin
          fetch_q <= need_q == '0 ? End : Fill;
        end
        End: begin
          if (begins) begin
            from_q  <= 5'(first);
            fetch_q <= invokes ? End : Next;
            need_q  <= (staged ? 40'(lookaside_pkg::words_in(head_q.op, head_q.words, stage, Lanes))
                      : 40'(head_q.words) * 40'(lookaside_pkg::operands(head_q.op))) >> LaneW;
          end
        end
        default: fetch_q <= End;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin : p_put
    if (!rst_ni || wipe_i) begin
      put_q        <= EndOut;
      to_q         <= '0;
      to_at_q      <= '0;
      to_left_q    <= '0;
      give_q       <= '0;
      data_q       <= '0;
      data_local_q <= 1'b0;
      owed_q       <= '0;
      waits_q      <= '0;
    end else begin
      owed_q  <= owed_d;
      waits_q <= runs && owes_other && !answered && !got && !puts ? waits_q + 32'd1 : '0;
      give_q  <= give_q - 32'(out_moves);
      unique case (put_q)
        NextOut: begin
          to_at_q   <= to.address;
          to_left_q <= to.words >> LaneW;
          put_q     <= 32'(to_q) == 32'(head_q.sources) + 32'(head_q.destinations) + 32'(first) ? EndOut : Put;
        end
        Put: begin
          if (puts) begin
            to_at_q      <= to_at_q + (64'(to_some) << (4 + LaneW));
            to_left_q    <= to_left_q - 32'(to_some);
            data_q       <= to_some;
            data_local_q <= local_to;
            put_q        <= Data;
            if (invokes) begin
              to_q  <= to_q + 5'd1;
              put_q <= NextOut;
            end
          end else if (failed && !offered_put_q && give_q == '0 && !out_left) begin
            put_q <= EndOut;
          end
        end
        Data: begin
          if (out_take) begin
            data_q <= data_q - 8'd1;
            if (data_q == 8'd1) begin
              put_q <= to_left_q == '0 ? NextOut : Put;
              to_q  <= to_left_q == '0 ? to_q + 5'd1 : to_q;
            end
          end
        end
        EndOut: begin
          if (begins) begin
            to_q   <= 5'(first) + head_q.sources[4:0];
            put_q  <= NextOut;
            give_q <= staged ? 32'(lookaside_pkg::words_out(head_q.op, head_q.words, stage, Lanes) >> LaneW)
                    : lookaside_pkg::of_sums(head_q.op) ? 32'd2
                    : (head_q.words >> LaneW) << (lookaside_pkg::of_shares(head_q.op) ? 1 : 0);
          end
        end
        default: put_q <= EndOut;
      endcase
    end
  end

  logic unused;
  assign unused = ^{in_ready_unused, in_count, from.tag, from.zero, to.zero, from.tells,
                    answer_i.address, answer_i.zero, answer_i.tells, answer_i.words};

endmodule
