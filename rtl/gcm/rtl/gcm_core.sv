// AES-128-GCM of messages that come as beats: one beat per cycle, text of several nodes' keys in turn, message by message.
//
// Every beat takes one block of AES and one product: the first beat of a message draws the mask of its tag, a beat of text its key stream,
// and all are hashed, the last as the block of lengths. So a message of n words of text takes n beats and those around them.
//
// Latency:  gcm_pkg::Latency cycles for all beats.   Throughput: one beat per cycle. Never stalls: who sends a beat has to have room for it.
// While wipe_i is high, zeros run through: all keys, powers and text are gone after Latency cycles and one for each power of each node.

module gcm_core #(
  parameter  int unsigned Nodes = 4, // at least 2
  parameter  int unsigned UserW = 1, // bits that go with a beat
  localparam int unsigned NodeW = $clog2(Nodes)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             wipe_i,

  // Keys: see gcm_keys. While loads_o is high, no beat may come
  input  logic             idle_i,
  input  logic             load_valid_i,
  output logic             load_ready_o,
  input  logic [NodeW-1:0] load_node_i,
  input  aes_pkg::block_t  load_key_i,
  input  logic [31:0]      load_salt_i,
  output logic             loads_o,
  output logic [Nodes-1:0] known_o,

  input  gcm_pkg::beat_t   beat_i,
  input  logic [NodeW-1:0] node_i,
  input  logic [UserW-1:0] user_i,

  // Head: the data as they came. Text: turned. Tail: the tag
  output logic             valid_o,
  output gcm_pkg::kind_e   kind_o,
  output aes_pkg::block_t  data_o,
  output logic [UserW-1:0] user_o
);

  localparam int unsigned Stages = gcm_pkg::Stages;
  localparam int unsigned LeftW  = gcm_pkg::LeftW;
  localparam int unsigned Hashes = 11; // cycle in which the key stream is there

  typedef struct packed {
    logic             valid;
    gcm_pkg::kind_e   kind;
    logic             first;
    logic             open;
    logic [4:0]       bytes;
    logic [LeftW-1:0] left;
    logic [NodeW-1:0] node;
    aes_pkg::block_t  data;
  } step_t;

  // ---- cycle 0: the key, and the block to encrypt
  logic             loads_beat;
  logic [NodeW-1:0] loads_node, node;
  logic [LeftW-1:0] loads_number, power_number;
  gcm_pkg::poly_t   made, power;
  aes_pkg::block_t  key, key_q, plain, plain_q, stream;
  logic [31:0]      salt, number, number_q;
  step_t            begins, hashes;

  assign node = loads_beat ? loads_node : node_i;

  always_comb begin : p_begins
    begins.valid = beat_i.valid;
    begins.kind  = beat_i.kind;
    begins.first = beat_i.first && beat_i.kind == gcm_pkg::Head;
    begins.open  = beat_i.open;
    begins.bytes = beat_i.bytes;
    begins.left  = beat_i.left;
    begins.node  = node;
    begins.data  = beat_i.data;
    if (loads_beat) begin
      begins.valid = 1'b1;
      begins.kind  = gcm_pkg::Load;
      begins.left  = loads_number;
    end
    if (wipe_i) begin
      begins = '0;
    end
  end

  assign number = begins.first ? 32'd1 : number_q;
  assign plain  = loads_beat || wipe_i ? '0 : gcm_pkg::counter_block(salt, beat_i.counter, number);

  always_ff @(posedge clk_i) begin : p_number
    if (!rst_ni || wipe_i) begin
      number_q <= '0;
    end else if (beat_i.valid) begin
      number_q <= begins.first ? 32'd2 : number_q + 32'(beat_i.kind == gcm_pkg::Text);
    end
  end

  always_ff @(posedge clk_i) begin : p_plain
    plain_q <= plain;
    key_q   <= wipe_i ? '0 : key;
  end

  // ---- cycles 1 to 11
  aes_pipeline u_aes (
    .clk_i   (clk_i),
    .key_i   (key_q),
    .block_i (plain_q),
    .block_o (stream)
  );

  prim_delay #(.Width($bits(begins)), .Cycles(Hashes)) u_step (
    .clk_i (clk_i),
    .in_i  (rst_ni ? begins : '0),
    .out_o (hashes)
  );

  // ---- cycle 11: what is hashed, and the power that it is multiplied with
  aes_pkg::block_t turned, out, out_q, mask_q, tail_mask_q, late_mask;
  gcm_pkg::poly_t  block_q, power_q, sum;
  logic            first_q, valid_q;
  logic [LeftW-1:0] left_q;

  assign turned = gcm_pkg::first_bytes(hashes.data ^ stream, hashes.bytes);

  always_comb begin : p_out
    unique case (hashes.kind)
      gcm_pkg::Text: out = turned;
      default:       out = hashes.data;
    endcase
  end

  always_comb begin : p_power
    power_number = hashes.left == LeftW'(Stages) ? LeftW'(Stages) : hashes.left + LeftW'(1);
    if (hashes.kind == gcm_pkg::Load) begin
      power_number = hashes.left;
    end
  end

  always_ff @(posedge clk_i) begin : p_hashed
    if (!rst_ni || wipe_i) begin
      first_q <= 1'b0;
      valid_q <= 1'b0;
      block_q <= '0;
      power_q <= '0;
      left_q  <= '0;
      mask_q  <= '0;
      tail_mask_q <= '0;
    end else begin
      // A power is a message of one block, of which no other is the last.
      first_q <= hashes.valid && (hashes.first || hashes.kind == gcm_pkg::Load);
      valid_q <= hashes.valid && hashes.bytes != 5'd0 || hashes.valid && hashes.kind == gcm_pkg::Load;
      left_q  <= hashes.left;
      power_q <= power;
      unique case (hashes.kind)
        gcm_pkg::Load: block_q <= gcm_pkg::reflect(stream);
        gcm_pkg::Text: block_q <= gcm_pkg::reflect(hashes.open ? gcm_pkg::first_bytes(hashes.data, hashes.bytes) : turned);
        default:       block_q <= gcm_pkg::reflect(gcm_pkg::first_bytes(hashes.data, hashes.bytes));
      endcase
      if (hashes.valid && hashes.first) begin
        mask_q <= stream;
      end
      tail_mask_q <= mask_q;
    end
  end

  // ---- cycles 12 to 16
  gcm_hash u_hash (
    .clk_i     (clk_i),
    .rst_ni    (rst_ni && !wipe_i),
    .first_i   (first_q),
    .valid_i   (valid_q),
    .left_i    (left_q),
    .block_i   (block_q),
    .power_i   (power_q),
    .product_o (made),
    .sum_o     (sum)
  );

  prim_delay #(.Width(128), .Cycles(Stages)) u_mask (
    .clk_i (clk_i),
    .in_i  (tail_mask_q),
    .out_o (late_mask)
  );

  logic            late_valid;
  gcm_pkg::kind_e  late_kind;
  aes_pkg::block_t late_data;

  prim_delay #(.Width(131), .Cycles(Stages + 1)) u_late (
    .clk_i (clk_i),
    .in_i  (rst_ni && !wipe_i ? {hashes.valid, hashes.kind, out} : '0),
    .out_o ({late_valid, late_kind, late_data})
  );

  // ---- cycle 17
  logic           out_valid_q;
  gcm_pkg::kind_e kind_q;

  always_ff @(posedge clk_i) begin : p_leaves
    if (!rst_ni || wipe_i) begin
      out_valid_q <= 1'b0;
      kind_q      <= gcm_pkg::Head;
      out_q       <= '0;
    end else begin
      out_valid_q <= late_valid && late_kind != gcm_pkg::Load;
      kind_q      <= late_kind;
      out_q       <= late_kind == gcm_pkg::Tail ? gcm_pkg::reflect(sum) ^ late_mask : late_data;
    end
  end

  assign valid_o = out_valid_q;
  assign kind_o  = kind_q;
  assign data_o  = out_q;

  prim_delay #(.Width(UserW), .Cycles(gcm_pkg::Latency)) u_user (
    .clk_i (clk_i),
    .in_i  (wipe_i ? '0 : user_i),
    .out_o (user_o)
  );

  gcm_keys #(.Nodes(Nodes)) u_keys (
    .clk_i          (clk_i),
    .rst_ni         (rst_ni),
    .wipe_i         (wipe_i),
    .idle_i         (idle_i),
    .load_valid_i   (load_valid_i),
    .load_ready_o   (load_ready_o),
    .load_node_i    (load_node_i),
    .load_key_i     (load_key_i),
    .load_salt_i    (load_salt_i),
    .loads_o        (loads_o),
    .known_o        (known_o),
    .beat_o         (loads_beat),
    .beat_node_o    (loads_node),
    .beat_number_o  (loads_number),
    .made_i         (late_valid && late_kind == gcm_pkg::Load && !wipe_i),
    .made_power_i   (made),
    .key_node_i     (node),
    .key_o          (key),
    .salt_o         (salt),
    .power_node_i   (hashes.node),
    .power_number_i (power_number),
    .power_o        (power)
  );

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin : p_assert
    if (rst_ni && !wipe_i && beat_i.valid) begin
      NotInLoads_A: assert (!loads_o && beat_i.kind != gcm_pkg::Load);
      TailIsLast_A: assert (beat_i.kind != gcm_pkg::Tail || beat_i.left == '0);
    end
  end
`endif

endmodule
