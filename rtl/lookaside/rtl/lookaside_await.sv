// Tells of other nodes that are counted, and commands that wait for them: one after the other, and of each its segments, until the node of
// a segment has told as often as it says, which is taken off the count. A count ends at its highest number; tells beyond are lost.
//
// Latency:  a segment takes a cycle, if the tells are there.   Throughput: one command at a time; a tell in each cycle.
// Back-pressure: commands wait for those before them; a node that does not tell for timeout_i cycles ends one.

module lookaside_await #(
  parameter int unsigned Nodes = 4
) (
  input  logic                         clk_i,
  input  logic                         rst_ni, // forgets all counts
  input  logic [7:0]                   self_i,
  input  logic [31:0]                  timeout_i, // 0: never
  output logic                         free_o,

  /* verilator lint_off UNUSEDSIGNAL */ // it is neither armed nor invoked, and its draw means nothing
  input  lookaside_pkg::command_word_t command_i,
  /* verilator lint_on UNUSEDSIGNAL */
  input  logic                         command_valid_i, // always taken

  input  logic                         tell_i,
  input  logic [7:0]                   tell_node_i,
  output logic                         drops_o, // it is lost

  output lookaside_pkg::completion_t   done_o,
  output logic                         done_listed_o,
  output logic                         done_valid_o,
  input  logic                         done_ready_i
);

  localparam int unsigned CountW = 16;
  localparam int unsigned First  = 2; // word that is a segment

  typedef enum logic [1:0] { Load, Wait, Say } state_e;

  state_e            state_q;
  logic [3:0]        at_q, last_q;
  logic [31:0]       tag_q, waits_q;
  logic [7:0]        status_q, node;
  logic              listed_q, there, late, told;
  logic [CountW-1:0] wants;
  logic [CountW-1:0] count;
  logic [Nodes*CountW-1:0] counts_q;
  logic [Nodes-1:0]  full, chosen;
  /* verilator lint_off UNUSEDSIGNAL */
  lookaside_pkg::command_t head;
  lookaside_pkg::segment_t segment;
  /* verilator lint_on UNUSEDSIGNAL */

  assign head    = command_i.data;
  assign segment = command_i.data;
  assign free_o  = state_q == Load;

  prim_ram_async #(.Width(8 + CountW), .Depth(16)) u_segments (
    .clk_i    (clk_i),
    .w_en_i   (state_q == Load && command_valid_i),
    .w_addr_i (at_q),
    .w_data_i ({segment.node, segment.words[CountW-1:0]}),
    .r_addr_i (at_q),
    .r_data_o ({node, wants})
  );

  // ---- counts
  always_comb begin : p_there
    count = '0;
    for (int unsigned n = 0; n < Nodes; n++) begin
      full[n]   = counts_q[CountW*n +: CountW] == '1;
      chosen[n] = state_q == Wait && node == 8'(n);
      count     = count | (chosen[n] ? counts_q[CountW*n +: CountW] : '0);
    end
  end

  assign there   = state_q == Wait && count >= wants; // at least 1, so not of a node that there is not
  assign drops_o = tell_i && (full & Nodes'(1) << tell_node_i) != '0;

  always_ff @(posedge clk_i) begin : p_counts
    for (int unsigned n = 0; n < Nodes; n++) begin
      if (!rst_ni) begin
        counts_q[CountW*n +: CountW] <= '0;
      end else begin
        counts_q[CountW*n +: CountW] <= counts_q[CountW*n +: CountW]
                                      + CountW'(tell_i && tell_node_i == 8'(n) && !full[n]) - (chosen[n] && there ? wants : '0);
      end
    end
  end

  // ---- commands
  assign told          = tell_i && tell_node_i == node;
  assign late          = timeout_i != '0 && waits_q >= timeout_i;
  assign done_valid_o  = state_q == Say;
  assign done_listed_o = listed_q;
  assign done_o        = {tag_q, 72'b0, self_i, lookaside_pkg::EventCommand, status_q};

  always_ff @(posedge clk_i) begin : p_state
    if (!rst_ni) begin
      state_q  <= Load;
      at_q     <= '0;
      last_q   <= '0;
      tag_q    <= '0;
      waits_q  <= '0;
      listed_q <= 1'b0;
      status_q <= lookaside_pkg::StatusOk;
    end else begin
      unique case (state_q)
        Load: begin
          status_q <= lookaside_pkg::StatusOk;
          waits_q  <= '0;
          if (command_valid_i) begin
            at_q   <= at_q + 4'd1;
            last_q <= at_q;
            if (at_q == '0) begin
              tag_q    <= head.tag;
              listed_q <= command_i.origin.listed;
            end
            if (command_i.last) begin
              at_q    <= 4'(First);
              state_q <= Wait;
            end
          end
        end
        Wait: begin
          waits_q <= there || told ? '0 : waits_q + 32'd1;
          if (there) begin
            at_q    <= at_q + 4'd1;
            state_q <= at_q == last_q ? Say : Wait;
          end else if (late) begin
            status_q <= lookaside_pkg::StatusGone;
            state_q  <= Say;
          end
        end
        Say: begin
          at_q    <= '0;
          state_q <= done_ready_i ? Load : Say;
        end
        default: state_q <= Load;
      endcase
    end
  end

endmodule
