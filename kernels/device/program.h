// Programs as words: instructions of eight words, pairs of operands, and products by their places; crates/device-cuda makes them
// (src/device/program.rs). An instruction: what it is, where the result goes, two operands, and sixteen bytes of a constant. Of a product the operands
// are its place in the message and its first pair; a word with how many pairs, and one with its sum of threads, follow. An operand is an index, and in
// its two highest bits where: a slot, a temp of this program, a value that all rows share.
#pragma once

enum Where { SLOT, TEMP, SHARED_VALUE };
enum Instruction { ADD, SUB, TIMES, PLUS, COPY, CONSTANT, PRODUCT, PRODUCT_SUM, SUM };
