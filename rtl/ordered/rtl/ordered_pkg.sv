// Types of the garbler that takes gates in the order of the netlist.
package ordered_pkg;

  parameter int unsigned IndexW   = 16; // of entries, registers and inputs: the most that any core has
  parameter int unsigned ProductW = 47; // products of a run, over all netlist cycles
  parameter int unsigned OutputW  = 12; // outputs of a netlist cycle: the most that any core has
  parameter int unsigned CycleW   = 32; // netlist cycles
  parameter int unsigned RunW     = 3;  // runs that are told apart before all is scrubbed
  parameter int unsigned TagW     = RunW + 1;

  // What an operand is.
  parameter logic [1:0] KindGate     = 2'd0; // the index is that of the entry
  parameter logic [1:0] KindRegister = 2'd1; // that of the register, which is that of its entry too
  parameter logic [1:0] KindInput    = 2'd2; // that of the input: first those of the run, then those of each cycle
  parameter logic [1:0] KindZero     = 2'd3; // the label 0, which is that of the constant 0

  typedef struct packed {
    logic [1:0]        kind;
    logic [IndexW-1:0] index;
  } operand_t;

  // An entry of the netlist. Registers come first; register j is entry j. A gate is an AND or an XOR of operands that may be negated, and
  // reads entries before it. A register takes b in the first netlist cycle and a, of the cycle before, in all others.
  typedef struct packed {
    logic     is_register;
    logic     is_and;
    logic     not_a;
    logic     not_b;
    logic     not_c;
    logic     is_output;
    operand_t a;
    operand_t b;
  } word_t;

  // An entry with its numbers, which are counted as entries are taken.
  typedef struct packed {
    word_t               word;
    logic [IndexW-1:0]   index;   // of the entry in the netlist
    logic [ProductW-1:0] product; // the number of the next product: its own if it is one
    logic [OutputW-1:0]  out;     // the number of the next output in the netlist cycle: its own if it is one
  } entry_t;

  // Bits of these, for those who put them side by side.
  parameter int unsigned OperandW = 2 + IndexW;
  parameter int unsigned WordW    = 6 + 2 * OperandW;
  parameter int unsigned EntryW   = WordW + IndexW + ProductW + OutputW;

endpackage
