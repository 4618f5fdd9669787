//! The linear layers of AES as straight-line programs of XORs.

use crate::{Builder, Wire};

/// XORs in order: step `k` adds two earlier values and makes value `inputs + k`.
pub(super) struct Linear {
    inputs: usize,
    steps: &'static [(u16, u16)],
    outputs: &'static [u16],
}

impl Linear {
    /// Adds the program to a circuit.
    pub(super) fn apply(&self, b: &mut Builder, inputs: &[Wire]) -> Vec<Wire> {
        assert_eq!(inputs.len(), self.inputs, "inputs of the linear layer");
        let mut values = inputs.to_vec();
        for &(x, y) in self.steps {
            values.push(b.xor(values[x as usize], values[y as usize]));
        }
        self.outputs
            .iter()
            .map(|&value| values[value as usize])
            .collect()
    }
}

/// From the 18 products of an S-box to its output, bit 0 first, without the affine constant. 28 XORs.
///
/// The output layer of Boyar and Peralta's circuit, see the module on the S-box.
pub(super) const SBOX_OUTPUT: Linear = Linear {
    inputs: 18,
    #[rustfmt::skip]
    steps: &[
        (15, 16), (10, 18), (9, 19), (0, 2), (1, 0), (3, 4), (12, 21), (7, 23), (8, 24),
        (25, 26), (23, 22), (3, 5), (13, 18), (21, 29), (20, 28), (6, 25), (14, 27), (30, 31),
        (12, 35), (15, 33), (19, 11), (20, 33), (27, 35), (38, 34), (34, 37), (42, 17), (31, 32),
        (32, 33),
    ],
    #[rustfmt::skip]
    outputs: &[
        36, 40, 41, 44, 32, 43, 45, 39,
    ],
};

/// From the products of the four S-boxes of a column, `[byte][product]`, to that column after `MixColumns`, `[byte][bit]`,
/// without the affine constant, which `MixColumns` leaves as it is. 198 XORs.
///
/// Doing one after the other takes 4 · 28 + 92 = 204 (92: A. Maximov, "AES `MixColumn` with 92 XOR gates",
/// ePrint 2019/833). This program started from there and was shortened by a random walk that swaps associative triples, as in
/// D. Lin, Z. Xiang, X. Zeng, S. Zhang, "A framework to optimize implementations of matrices", CT-RSA 2021.
pub(super) const SBOX_OUTPUT_MIXED: Linear = Linear {
    inputs: 72,
    #[rustfmt::skip]
    steps: &[
        (31, 30), (3, 0), (41, 39), (33, 34), (12, 15), (76, 14), (57, 58), (36, 37), (56, 54),
        (33, 35), (22, 19), (55, 78), (7, 4), (84, 6), (49, 48), (52, 51), (18, 21), (73, 2),
        (30, 32), (39, 40), (77, 11), (88, 20), (70, 64), (48, 50), (54, 83), (63, 94), (89, 84),
        (36, 38), (75, 28), (69, 97), (73, 4), (25, 22), (57, 80), (10, 16), (69, 66), (99, 74),
        (3, 85), (80, 62), (44, 99), (94, 65), (93, 103), (23, 93), (46, 87), (59, 104), (61, 78),
        (100, 29), (100, 27), (43, 91), (119, 110), (1, 102), (47, 114), (88, 82), (45, 114), (120, 95),
        (125, 53), (9, 105), (115, 70), (89, 5), (124, 91), (8, 98), (42, 119), (113, 72), (123, 118),
        (101, 96), (129, 76), (125, 122), (135, 113), (24, 103), (86, 107), (134, 138), (60, 116), (135, 129),
        (79, 130), (105, 92), (124, 132), (132, 134), (15, 127), (148, 108), (131, 17), (67, 128), (26, 112),
        (21, 139), (116, 109), (115, 134), (153, 118), (75, 133), (87, 140), (145, 141), (136, 13), (16, 160),
        (156, 146), (143, 144), (152, 154), (142, 101), (142, 135), (131, 158), (144, 150), (156, 149), (161, 158),
        (154, 106), (148, 121), (121, 149), (144, 169), (161, 157), (175, 158), (173, 126), (152, 90), (131, 159),
        (77, 168), (180, 142), (106, 151), (165, 149), (167, 120), (113, 172), (68, 171), (51, 177), (146, 165),
        (174, 132), (153, 187), (166, 121), (81, 178), (107, 172), (107, 174), (157, 184), (143, 185), (188, 175),
        (132, 181), (163, 183), (178, 117), (197, 164), (166, 192), (188, 155), (170, 182), (182, 197), (183, 176),
        (153, 186), (195, 152), (200, 151), (162, 204), (96, 189), (155, 199), (162, 191), (196, 174), (167, 201),
        (144, 203), (71, 207), (186, 111), (188, 123), (202, 108), (208, 182), (162, 193), (145, 209), (169, 204),
        (115, 200), (218, 184), (147, 217), (154, 210), (218, 199), (202, 190), (225, 163), (224, 175), (171, 223),
        (219, 189), (183, 221), (137, 218), (236, 196), (180, 220), (229, 193), (238, 147), (195, 228), (222, 141),
        (144, 230), (233, 226), (203, 237), (193, 216), (238, 217), (219, 173), (179, 239), (179, 225), (231, 222),
        (224, 164), (135, 227), (137, 233), (181, 227), (236, 208), (161, 254), (243, 198), (145, 256), (137, 251),
        (120, 252), (250, 194), (187, 253), (172, 255), (256, 120), (265, 200), (263, 220), (264, 190), (170, 266),
    ],
    #[rustfmt::skip]
    outputs: &[
        232, 261, 269, 262, 214, 267, 240, 248, 210, 241, 259, 260, 242, 268, 243, 234,
        205, 215, 244, 245, 246, 247, 263, 211, 206, 235, 257, 249, 212, 258, 264, 213,
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    /// What the program does to each unit vector, as a set of outputs per input.
    fn columns(program: &Linear) -> Vec<u32> {
        let mut values: Vec<u128> = (0..program.inputs).map(|input| 1 << input).collect();
        for &(x, y) in program.steps {
            values.push(values[x as usize] ^ values[y as usize]);
        }
        let outputs = || program.outputs.iter().enumerate();
        let column = |input| {
            outputs().fold(0, |set, (bit, &out)| {
                set | ((values[out as usize] >> input) as u32 & 1) << bit
            })
        };
        (0..program.inputs).map(column).collect()
    }

    fn double(byte: u32) -> u32 {
        let shifted = byte << 1;
        if shifted > 0xff {
            shifted ^ 0x11b
        } else {
            shifted
        }
    }

    #[test]
    fn the_mixed_layer_is_mix_columns_after_the_output_layer() {
        let plain = columns(&SBOX_OUTPUT);
        let mixed = columns(&SBOX_OUTPUT_MIXED);
        for (input, &mixed) in mixed.iter().enumerate() {
            // FIPS 197, 5.1.3: the column that byte `from` contributes is a rotation of (2, 1, 1, 3).
            let (from, byte) = (input / 18, plain[input % 18]);
            let want = [
                (0, double(byte)),
                (1, byte),
                (2, byte),
                (3, double(byte) ^ byte),
            ]
            .into_iter()
            .fold(0, |word, (step, value)| {
                word | value << (8 * ((from + step) % 4))
            });
            assert_eq!(mixed, want, "input {input}");
        }
    }
}
