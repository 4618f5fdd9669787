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
/// without the affine constant, which `MixColumns` leaves as it is. 197 XORs.
///
/// Doing one after the other takes 4 · 28 + 92 = 204 (92: A. Maximov, "AES `MixColumn` with 92 XOR gates",
/// ePrint 2019/833). This program started from there and was shortened by a random walk that swaps associative triples, as in
/// D. Lin, Z. Xiang, X. Zeng, S. Zhang, "A framework to optimize implementations of matrices", CT-RSA 2021.
pub(super) const SBOX_OUTPUT_MIXED: Linear = Linear {
    inputs: 72,
    #[rustfmt::skip]
    steps: &[
        (52, 46), (4, 7), (43, 42), (18, 21), (33, 35), (45, 51), (61, 58), (51, 48), (15, 16),
        (39, 40), (19, 75), (57, 54), (25, 22), (34, 33), (28, 85), (37, 36), (69, 66), (64, 70),
        (3, 0), (81, 74), (78, 60), (38, 36), (75, 20), (23, 94), (88, 68), (73, 6), (74, 87),
        (85, 95), (10, 80), (72, 77), (31, 99), (58, 83), (30, 102), (84, 21), (81, 43), (9, 100),
        (80, 12), (93, 41), (2, 90), (101, 91), (69, 89), (56, 83), (8, 110), (39, 109), (22, 82),
        (86, 27), (90, 4), (5, 110), (108, 14), (57, 92), (98, 101), (63, 112), (106, 44), (3, 97),
        (55, 103), (107, 125), (108, 119), (94, 84), (26, 129), (73, 114), (93, 124), (78, 113), (116, 117),
        (24, 105), (1, 118), (130, 32), (59, 113), (123, 121), (125, 98), (119, 140), (111, 139), (13, 128),
        (117, 135), (62, 133), (145, 96), (127, 136), (131, 120), (123, 126), (30, 137), (76, 149), (141, 138),
        (134, 149), (143, 104), (132, 79), (144, 127), (115, 134), (70, 138), (148, 17), (29, 150), (71, 146),
        (139, 127), (147, 135), (67, 158), (86, 160), (10, 148), (142, 116), (153, 161), (150, 151), (132, 154),
        (144, 111), (146, 89), (136, 149), (122, 156), (115, 155), (132, 171), (131, 154), (171, 173), (152, 142),
        (155, 50), (167, 174), (88, 164), (53, 180), (174, 126), (121, 178), (147, 167), (16, 159), (153, 179),
        (95, 178), (11, 166), (138, 173), (130, 177), (170, 162), (65, 172), (176, 177), (121, 169), (107, 189),
        (163, 183), (190, 165), (142, 182), (187, 125), (196, 122), (175, 49), (145, 182), (180, 47), (52, 203),
        (154, 200), (206, 193), (194, 192), (202, 201), (91, 198), (134, 210), (204, 195), (197, 157), (211, 202),
        (188, 107), (141, 189), (211, 168), (132, 192), (192, 162), (218, 196), (115, 191), (188, 194), (72, 205),
        (187, 211), (210, 161), (206, 204), (206, 143), (222, 140), (226, 134), (226, 135), (169, 225), (125, 221),
        (91, 231), (169, 230), (95, 223), (224, 165), (228, 182), (153, 229), (227, 200), (199, 227), (238, 156),
        (131, 228), (242, 170), (237, 229), (238, 220), (242, 130), (147, 236), (190, 236), (238, 176), (235, 183),
        (194, 241), (239, 162), (145, 247), (209, 237), (240, 219), (222, 249), (235, 163), (239, 197), (224, 248),
        (156, 245), (224, 243), (262, 241), (190, 262), (209, 264), (119, 261), (98, 260), (199, 259),
    ],
    #[rustfmt::skip]
    outputs: &[
        244, 254, 255, 268, 217, 233, 212, 186, 250, 213, 265, 266, 214, 251, 215, 181,
        207, 256, 252, 267, 253, 234, 218, 184, 208, 246, 263, 257, 216, 232, 258, 185,
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
