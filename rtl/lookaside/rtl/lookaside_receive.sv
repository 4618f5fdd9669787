// Packets from other nodes: what they put is written, what they get is read and sent, answers go to the workers that wait for them, and
// invocations to the intake of commands. Each node reaches its own windows of memory alone.
//
// Latency:  memory is offered the run of a put when its last word has come, as beats of Lanes words: a run whose words come as slowly as
// the network has them would keep others from memory.
// Throughput: one word per cycle.   Back-pressure: from memory and the intake. What other nodes may ask for at once has a limit; requests
// beyond it are thrown away, so that nobody who asks keeps anybody's answers from coming in.

module lookaside_receive #(
  parameter  int unsigned Nodes   = 4,
  parameter  int unsigned Workers = 4, // of each other node
  parameter  int unsigned Lanes   = 1, // words of a beat, a power of two, at most 16
  localparam int unsigned BeatW   = 128 * Lanes,
  localparam int unsigned NodeW   = $clog2(Nodes)
) (
  input  logic                          clk_i,
  input  logic                          rst_ni,
  input  logic                          wipe_i,

  input  logic [Nodes*64-1:0]           put_base_i,
  input  logic [Nodes*32-1:0]           put_words_i,
  input  logic [Nodes*64-1:0]           get_base_i,
  input  logic [Nodes*32-1:0]           get_words_i,

  input  lookaside_pkg::word_t          s_axis_tdata_i,
  input  logic [NodeW-1:0]              s_axis_tdest_i, // the node that it is from
  input  logic                          s_axis_tlast_i,
  input  logic                          s_axis_tvalid_i,
  output logic                          s_axis_tready_o,
  output logic                          drops_o,        // a packet is thrown away

  // To workers
  output lookaside_pkg::header_t        answer_o,
  output logic [7:0]                    answer_node_o,
  output logic [BeatW-1:0]              answer_data_o,
  output logic                          answer_data_valid_o,
  output logic                          answer_end_o,

  // To the intake
  output lookaside_pkg::origin_t        invoke_o,
  output logic [31:0]                   invoke_slot_o,
  output logic                          invoke_valid_o,
  input  logic                          invoke_ready_i,
  input  logic                          refuse_i,

  // Memory
  output lookaside_pkg::run_t           write_o,
  output logic                          write_valid_o,
  input  logic                          write_ready_i,
  output logic [BeatW-1:0]              write_data_o,
  output logic                          write_data_valid_o,
  input  logic                          write_data_ready_i,
  input  logic                          write_done_i,
  input  logic                          write_error_i,
  output lookaside_pkg::run_t           read_o,
  output logic                          read_valid_o,
  input  logic                          read_ready_i,
  input  logic [BeatW-1:0]              read_data_i,
  input  logic                          read_data_valid_i,
  input  logic                          read_error_i,
  input  logic                          read_last_i,

  // Answers, as of lookaside_send: to puts and invocations, and words that were asked for
  output lookaside_pkg::header_t        reply_o,
  output logic [7:0]                    reply_node_o,
  output logic                          reply_valid_o,
  input  logic                          reply_ready_i,
  output lookaside_pkg::header_t        send_o,
  output logic [7:0]                    send_node_o,
  output logic                          send_valid_o,
  input  logic                          send_ready_i,
  output logic [BeatW-1:0]              send_data_o,
  input  logic                          send_data_ready_i,

  // Words that came and are told of, to the host, or for the count of their node
  output lookaside_pkg::completion_t    done_o,
  output logic                          done_valid_o,
  input  logic                          done_ready_i,
  output logic                          tell_o,
  output logic [7:0]                    tell_node_o
);

  localparam int unsigned Chunk   = lookaside_pkg::Chunk;
  localparam int unsigned Beats   = Chunk / Lanes;
  localparam int unsigned LaneW   = $clog2(Lanes);
  localparam int unsigned PartW   = Lanes > 1 ? LaneW : 1;
  localparam int unsigned Waits   = 4;  // puts whose runs memory has not taken
  localparam int unsigned Puts    = 16; // that memory has not answered
  // What workers of all other nodes may ask for at once, so that there is room for it
  localparam int unsigned Gets    = 2 << $clog2((Nodes - 1) * Workers);
  localparam int unsigned Replies = 1 << $clog2((Nodes - 1) * Workers * lookaside_pkg::Owed);

  typedef enum logic [2:0] { First, Words, Zeros, Answer, Skip } state_e;

  // ---- the header
  state_e                 state_q;
  lookaside_pkg::header_t in, header_q, header;
  logic [NodeW-1:0]       node_q, node;
  logic [7:0]             left_q;
  logic                   takes, in_put, in_get, sized, placed, last;

  assign in         = s_axis_tdata_i;
  assign last       = s_axis_tlast_i;
  assign header     = state_q == First ? in : header_q;
  assign node       = state_q == First ? s_axis_tdest_i : node_q;
  assign sized      = in.words != '0 && in.words <= 8'(Chunk) && (in.words & 8'(Lanes - 1)) == '0;
  assign placed     = (in.address & 64'(16 * Lanes - 1)) == '0;
  assign in_put     = placed
                   && lookaside_pkg::in_window(put_base_i[64*32'(node) +: 64], put_words_i[32*32'(node) +: 32], in.address,
                                               32'(in.words));
  assign in_get     = placed
                   && lookaside_pkg::in_window(get_base_i[64*32'(node) +: 64], get_words_i[32*32'(node) +: 32], in.address,
                                               32'(in.words));

  // ---- what becomes of it
  logic                   wait_room, words_room, put_room, get_room, invoke_room, reply_room, done_room, bad_put;
  logic                   get_in, invoke_in, answers;

  assign answers   = in.kind == lookaside_pkg::PacketGetDone || in.kind == lookaside_pkg::PacketPutDone
                  || in.kind == lookaside_pkg::PacketInvoked;
  assign get_in    = takes && state_q == First && last && in.kind == lookaside_pkg::PacketGet && sized;
  assign invoke_in = takes && state_q == First && last && in.kind == lookaside_pkg::PacketInvoke;
  // A put that is refused is answered at once: it waits behind those before it for nothing.
  assign bad_put   = takes && state_q == First && in.kind == lookaside_pkg::PacketPut && !(in_put && sized && !last);

  always_comb begin : p_takes
    unique case (state_q)
      First:   s_axis_tready_o = !wipe_i && !write_done_i && wait_room;
      Words:   s_axis_tready_o = words_room;
      Answer:  s_axis_tready_o = 1'b1;
      Skip:    s_axis_tready_o = 1'b1;
      default: s_axis_tready_o = 1'b0;
    endcase
  end

  assign takes = s_axis_tvalid_i && s_axis_tready_o;

  always_ff @(posedge clk_i) begin : p_state
    if (!rst_ni || wipe_i) begin
      state_q      <= First;
      header_q     <= '0;
      node_q       <= '0;
      left_q       <= '0;
    end else begin
      unique case (state_q)
        First: begin
          if (takes) begin
            header_q     <= in;
            node_q       <= node;
            left_q       <= in.words;
            if (in.kind == lookaside_pkg::PacketPut && in_put && sized && !last) begin
              state_q <= Words;
            end else if (!last) begin
              state_q <= answers ? Answer : Skip;
            end
          end
        end
        Words: begin
          if (takes) begin
            left_q <= left_q - 8'd1;
            if (last && left_q != 8'd1) begin // too few: the run needs words
              state_q <= Zeros;
            end else if (left_q == 8'd1) begin
              state_q <= last ? First : Skip;
            end
          end
        end
        Zeros: begin
          if (words_room) begin
            left_q  <= left_q - 8'd1;
            state_q <= left_q == 8'd1 ? First : Zeros;
          end
        end
        Answer: begin
          if (takes) begin
            left_q  <= left_q == '0 ? '0 : left_q - 8'd1;
            state_q <= last ? First : Answer;
          end
        end
        Skip: begin
          state_q <= takes && last ? First : Skip;
        end
        default: state_q <= First;
      endcase
    end
  end

  // ---- words become beats, of puts as of answers
  logic [PartW-1:0]     lane_q;
  logic                 put_steps, answer_steps, lane_last;
  lookaside_pkg::word_t word;
  logic [BeatW-1:0]     beat;

  assign put_steps    = state_q == Words ? takes : state_q == Zeros && words_room;
  assign answer_steps = takes && state_q == Answer && left_q != '0 && header_q.kind == lookaside_pkg::PacketGetDone;
  assign lane_last    = lane_q == PartW'(Lanes - 1);
  assign word         = state_q == Zeros ? '0 : s_axis_tdata_i;

  always_ff @(posedge clk_i) begin : p_lane
    if (!rst_ni || wipe_i || state_q == First) begin
      lane_q <= '0;
    end else if (put_steps || answer_steps) begin
      lane_q <= lane_last ? '0 : lane_q + 1'b1;
    end
  end

  assign beat[BeatW-1 -: 128] = word;

  for (genvar l = 0; l < Lanes - 1; l++) begin : g_beat
    lookaside_pkg::word_t word_q;

    assign beat[128*l +: 128] = word_q;

    always_ff @(posedge clk_i) begin : p_word
      if (!rst_ni || wipe_i) begin
        word_q <= '0;
      end else if ((put_steps || answer_steps) && lane_q == PartW'(l)) begin
        word_q <= word;
      end
    end
  end

  // ---- answers: their beats are given as they come, and their end when all came that they say
  assign answer_o            = header;
  assign answer_node_o       = 8'(node);
  assign answer_data_o       = beat;
  assign answer_data_valid_o = answer_steps && lane_last;
  assign answer_end_o        = takes && last && (state_q == Answer || (state_q == First && answers));

  // ---- puts
  logic [7:0]             done_node;
  logic [15:0]            done_number;
  logic [31:0]            done_value;
  logic                   done_tells, done_short, done_counts, short, wait_valid;
  logic [57:0]            wait_put;

  // Of other words than it says: those that it lacks are zeros.
  assign short         = state_q == Zeros || !last;
  assign write_valid_o = wait_valid && put_room;

  /* verilator lint_off PINCONNECTEMPTY */
  prim_buffer #(.Width(BeatW), .Depth(Waits * Beats)) u_put_words (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .wipe_i      (wipe_i),
    .in_data_i   (beat),
    .in_valid_i  (put_steps && lane_last),
    .in_ready_o  (words_room),
    .out_data_o  (write_data_o),
    .out_valid_o (write_data_valid_o),
    .out_ready_i (write_data_ready_i),
    .count_o     ()
  );

  prim_fifo #(.Width(lookaside_pkg::RunW + 58), .Depth(Waits)) u_waits (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !wipe_i),
    .in_data_i   ({header_q.address, header_q.words, 8'(node_q), header_q.number, header_q.value, header_q.tells, short}),
    .in_valid_i  (put_steps && left_q == 8'd1),
    .in_ready_o  (wait_room),
    .out_data_o  ({write_o, wait_put}),
    .out_valid_o (wait_valid),
    .out_ready_i (put_room && write_ready_i),
    .count_o     ()
  );

  prim_fifo #(.Width(58), .Depth(Puts)) u_puts (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !wipe_i),
    .in_data_i   (wait_put),
    .in_valid_i  (write_valid_o && write_ready_i),
    .in_ready_o  (put_room),
    .out_data_o  ({done_node, done_number, done_value, done_tells, done_short}),
    .out_valid_o (),
    .out_ready_i (write_done_i),
    .count_o     ()
  );

  logic [7:0] put_result;

  assign put_result = write_error_i ? lookaside_pkg::StatusMemory : done_short ? lookaside_pkg::StatusLength : lookaside_pkg::StatusOk;

  assign done_counts = done_value[15];
  assign tell_o      = write_done_i && done_tells && done_counts && put_result == lookaside_pkg::StatusOk;
  assign tell_node_o = done_node;

  // ---- completions of what was put: the host has to keep up, or is not told
  prim_fifo #(.Width(128), .Depth(Puts)) u_done (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !wipe_i),
    .in_data_i   ({done_value, 72'b0, done_node, lookaside_pkg::EventArrived, lookaside_pkg::StatusOk}),
    .in_valid_i  (write_done_i && done_tells && !done_counts && put_result == lookaside_pkg::StatusOk),
    .in_ready_o  (done_room),
    .out_data_o  (done_o),
    .out_valid_o (done_valid_o),
    .out_ready_i (done_ready_i),
    .count_o     ()
  );

  // ---- replies: of a put that was written; of one that is refused; of an invocation that is
  lookaside_pkg::header_t reply;
  logic [7:0]             reply_to;
  logic                   replies;

  always_comb begin : p_reply
    reply    = '0;
    reply_to = 8'(node);
    replies  = 1'b0;
    if (write_done_i) begin
      reply.kind   = lookaside_pkg::PacketPutDone;
      reply.number = done_number;
      reply.value  = 32'(put_result);
      reply_to     = done_node;
      replies      = 1'b1;
    end else if (bad_put) begin
      reply.kind   = lookaside_pkg::PacketPutDone;
      reply.number = in.number;
      reply.value  = {24'b0, in_put ? lookaside_pkg::StatusLength : lookaside_pkg::StatusAddress};
      replies      = 1'b1;
    end else if (refuse_i && invoke_valid_o) begin
      reply.kind   = lookaside_pkg::PacketInvoked;
      reply.number = invoke_o.number;
      reply.value  = 32'(lookaside_pkg::StatusRefused);
      reply_to     = invoke_o.node;
      replies      = 1'b1;
    end
  end

  prim_fifo #(.Width(136), .Depth(Replies)) u_replies (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !wipe_i),
    .in_data_i   ({reply_to, reply}),
    .in_valid_i  (replies),
    .in_ready_o  (reply_room),
    .out_data_o  ({reply_node_o, reply_o}),
    .out_valid_o (reply_valid_o),
    .out_ready_i (reply_ready_i),
    .count_o     ()
  );

  // ---- invocations
  logic invokes_valid;

  prim_fifo #(.Width($bits({invoke_o, invoke_slot_o})), .Depth(Replies)) u_invokes (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !wipe_i),
    .in_data_i   ({2'b01, 8'(node), in.number, in.value}),
    .in_valid_i  (invoke_in),
    .in_ready_o  (invoke_room),
    .out_data_o  ({invoke_o, invoke_slot_o}),
    .out_valid_o (invokes_valid),
    .out_ready_i (invoke_ready_i && invoke_valid_o),
    .count_o     ()
  );

  // A refusal is replied in the cycle in which it is said, so that nothing else is then.
  assign invoke_valid_o = invokes_valid && !write_done_i && !bad_put;

  // ---- gets: one after the other, its words in a queue until all of them are there
  lookaside_pkg::run_t get_run;
  logic [7:0]          get_node;
  logic [15:0]         get_number;
  logic                get_right, get_valid, get_ends, get_error_q, asked_q, came_q;

  prim_fifo #(.Width(lookaside_pkg::RunW + 25), .Depth(Gets)) u_gets (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni && !wipe_i),
    .in_data_i   ({in.address, in.words, 8'(node), in.number, in_get}),
    .in_valid_i  (get_in),
    .in_ready_o  (get_room),
    .out_data_o  ({get_run, get_node, get_number, get_right}),
    .out_valid_o (get_valid),
    .out_ready_i (get_ends),
    .count_o     ()
  );

  logic got_room, words_valid, out_take;
  logic spoils_q; // beats that memory gave with an error do not leave
  logic [7:0] out_left_q;

  prim_buffer #(.Width(BeatW), .Depth(Beats)) u_words (
    .clk_i       (clk_i),
    .rst_ni      (rst_ni),
    .wipe_i      (wipe_i),
    .in_data_i   (read_data_i),
    .in_valid_i  (read_data_valid_i),
    .in_ready_o  (got_room),
    .out_data_o  (send_data_o),
    .out_valid_o (words_valid),
    .out_ready_i (out_take),
    .count_o     ()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  assign read_o       = get_run;
  assign read_valid_o = get_valid && get_right && !asked_q && out_left_q == '0 && !wipe_i;
  assign send_valid_o = get_valid && out_left_q == '0 && (get_right ? came_q : 1'b1) && !wipe_i;
  assign get_ends     = send_valid_o && send_ready_i;
  assign send_node_o  = get_node;
  assign out_take     = send_data_ready_i || spoils_q;

  always_comb begin : p_send
    send_o        = '0;
    send_o.kind   = lookaside_pkg::PacketGetDone;
    send_o.number = get_number;
    send_o.words  = get_right && !get_error_q ? get_run.words : 8'd0;
    send_o.value  = {24'b0, !get_right ? lookaside_pkg::StatusAddress
                           : get_error_q ? lookaside_pkg::StatusMemory : lookaside_pkg::StatusOk};
  end

  always_ff @(posedge clk_i) begin : p_get
    if (!rst_ni || wipe_i) begin
      asked_q     <= 1'b0;
      came_q      <= 1'b0;
      get_error_q <= 1'b0;
      out_left_q  <= '0;
      spoils_q    <= 1'b0;
    end else begin
      asked_q     <= (asked_q || (read_valid_o && read_ready_i)) && !get_ends;
      came_q      <= (came_q || (read_data_valid_i && read_last_i)) && !get_ends;
      get_error_q <= (get_error_q || (read_data_valid_i && read_error_i)) && !get_ends;
      if (get_ends) begin
        out_left_q <= get_right ? get_run.words >> LaneW : '0;
        spoils_q   <= get_right && get_error_q;
      end else begin
        out_left_q <= out_left_q - 8'(out_take && words_valid);
        spoils_q   <= spoils_q && out_left_q > 8'd1;
      end
    end
  end

  assign drops_o = (get_in && !get_room) || (invoke_in && !invoke_room) || (replies && !reply_room)
                 || (takes && state_q == First && in.kind == lookaside_pkg::PacketGet && !get_in)
                 || (takes && state_q == First && in.kind == lookaside_pkg::PacketInvoke && !invoke_in)
                 || (takes && state_q == First && !answers && in.kind != lookaside_pkg::PacketPut && in.kind != lookaside_pkg::PacketGet
                     && in.kind != lookaside_pkg::PacketInvoke)
                 || (write_done_i && done_tells && !done_counts && !done_room);

  logic unused;
  assign unused = got_room ^ (^in.zero);

endmodule
