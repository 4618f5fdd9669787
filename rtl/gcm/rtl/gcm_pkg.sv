// Types of AES-GCM (NIST SP 800-38D; McGrew, Viega, "The Galois/Counter Mode of Operation (GCM)", 2004) and of the packets of nodes.
//
// Bytes of a block are those of aes_pkg: byte k is bits 8k to 8k+7.
package gcm_pkg;

  // A polynomial over GF(2) modulo x^128 + x^7 + x^2 + x + 1: bit i is the coefficient of x^i.
  typedef logic [127:0] poly_t;

  // Stages of the multiplier, and so many powers of H are kept: as many sums of a message go on at once.
  parameter int unsigned Stages = 4;
  parameter int unsigned LeftW  = $clog2(Stages + 1);

  // Cycles from a beat's coming into the core to its leaving.
  parameter int unsigned Latency = 13 + Stages;

  // What a beat is in its message.
  typedef enum logic [1:0] {
    Head, // additional data, of 0 to 16 bytes; the first of a message also draws the tag's mask
    Text, // text, of 1 to 16 bytes
    Tail, // the block of lengths; the tag comes out
    Load  // within the core alone: a power of H is made
  } kind_e;

  typedef struct packed {
    logic             valid;
    kind_e            kind;
    logic             first;   // of the message; it is a Head
    logic             open;    // text comes in encrypted
    logic [4:0]       bytes;   // of the data
    logic [LeftW-1:0] left;    // blocks of the message that are hashed after this one, Stages if there are more
    logic [63:0]      counter; // of the message: the low part of its nonce
    logic [127:0]     data;
  } beat_t;

  // What became of a packet.
  typedef enum logic [2:0] {
    Ok       = 3'd0,
    Length   = 3'd1, // too long, not as long as it says, or its last word filled with anything but zeros
    Node     = 3'd2, // the header is of another version, to another node, or from one that does not exist
    NoKey    = 3'd3, // no key of the node was written
    Spent    = 3'd4, // the key has sealed as many packets as it may
    Forged   = 3'd5, // the tag is wrong
    Order    = 3'd6  // the tag is right, and the counter is not the next: replayed, reordered, or one before it was lost
  } status_e;

  // The first word of a packet on the wire; it is the additional data. Fields of more than a byte are little-endian.
  typedef struct packed {
    logic [63:0] counter; // of packets from this node to that one under this key
    logic [15:0] zero;
    logic [15:0] bytes;   // of the text
    logic [7:0]  nil;
    logic [7:0]  to;
    logic [7:0]  from;
    logic [7:0]  version;
  } header_t;

  parameter logic [7:0] Version = 8'd1;

  // What is said of a packet when it has left.
  typedef struct packed {
    status_e     status;
    logic [7:0]  node;    // the other one; of a packet that came in, as its header says
    logic [15:0] bytes;
    logic [63:0] counter; // of a packet that was not sent 0
  } completion_t;

  // SP 800-38D, 6.3: the coefficient of x^i is the bit i from the left of the string, which is the highest of byte 0 first. Its own inverse.
  function automatic logic [127:0] reflect(input logic [127:0] block);
    for (int unsigned i = 0; i < 128; i++) begin
      reflect[i] = block[8*(i/8) + 7 - i%8];
    end
  endfunction

  // Bytes in the other order.
  function automatic logic [63:0] swap(input logic [63:0] value);
    for (int unsigned k = 0; k < 8; k++) begin
      swap[8*k +: 8] = value[8*(7-k) +: 8];
    end
  endfunction

  // Salt, counter of the packet, number of the block: SP 800-38D, 7.1, with a nonce of 96 bits as in 8.2.1. J_0 has the number 1.
  function automatic aes_pkg::block_t counter_block(input logic [31:0] salt, input logic [63:0] counter, input logic [31:0] number);
    counter_block = {number[7:0], number[15:8], number[23:16], number[31:24], swap(counter), salt};
  endfunction

  // The lengths in bits of the additional data and of the text, from those in bytes.
  function automatic aes_pkg::block_t lengths(input logic [15:0] additional, input logic [15:0] text);
    lengths = {swap(64'(text) << 3), swap(64'(additional) << 3)};
  endfunction

  // The first bytes of a block; the others are 0.
  function automatic aes_pkg::block_t first_bytes(input aes_pkg::block_t block, input logic [4:0] bytes);
    for (int unsigned k = 0; k < 16; k++) begin
      first_bytes[8*k +: 8] = k < 32'(bytes) ? block[8*k +: 8] : 8'b0;
    end
  endfunction

  // How many words some bytes take.
  function automatic logic [12:0] words_of(input logic [15:0] bytes);
    words_of = 13'(bytes[15:4]) + 13'(bytes[3:0] != 4'd0);
  endfunction

  // Of the last word of some bytes, how many it has.
  function automatic logic [4:0] bytes_of_last(input logic [15:0] bytes);
    bytes_of_last = bytes == 16'd0 ? 5'd0 : bytes[3:0] == 4'd0 ? 5'd16 : 5'(bytes[3:0]);
  endfunction

endpackage
