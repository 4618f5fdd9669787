//! Made by `crates/testkit/tests/templates.rs` of aes128-expanded, aes128, sha256, adder:64: do not edit.

use super::{Over, Place, Template, Uses, Vector};

/// What the templates compute.
pub(in crate::cpu) const SHAPES: [&[u16]; 16] = [
    &[8, 0, 4, 12, 8, 12, 2, 8, 16, 20, 12, 24, 28, 10, 8, 14, 6, 8, 32, 36, 12, 22, 40, 44, 8, 48, 52, 8, 56, 60, 8, 34, 30, 8, 38, 26, 8, 42, 18, 8, 64, 68, 12, 72, 76, 50, 8, 54, 46, 8, 80, 84, 12, 88, 92, 62, 8, 92, 96, 12, 84, 100, 70, 8, 104, 108, 12, 112, 116, 78, 8, 82, 74, 8, 86, 66, 14, 1, 90, 58, 8, 120, 124, 16, 98, 128, 60, 30, 12, 132, 44, 102, 12, 48, 136, 98, 16, 36, 140, 110, 106, 8, 144, 62, 8, 148, 118, 8, 152, 78, 12, 156, 126, 122, 8, 130, 114, 8, 160, 24, 8, 164, 138, 8, 168, 142, 8, 172, 12, 16, 150, 176, 4, 146, 8, 154, 134, 8, 72, 180, 12, 184, 68, 162, 8, 188, 192, 8, 196, 170, 8, 200, 174, 8, 178, 166, 8, 86, 182, 8, 186, 158, 8, 204, 50, 12, 208, 162, 194, 12, 212, 10, 142, 16, 202, 198, 190, 5, 10, 206, 94, 12, 216, 16, 138, 8, 6, 214, 8, 66, 218, 8, 42, 182, 8, 226, 222, 8, 220, 194, 8, 234, 230, 12, 34, 120, 224, 8, 242, 74, 8, 122, 246, 12, 9, 250, 238, 8, 228, 106, 12, 22, 232, 258, 12, 236, 240, 198, 12, 174, 244, 266, 8, 270, 262, 12, 248, 150, 202, 12, 252, 2, 278, 20, 236, 256, 170, 234, 130, 12, 70, 260, 118, 8, 290, 286, 8, 198, 294, 8, 298, 282, 12, 13, 302, 274, 10, 306, 254, 10, 310, 210, 12, 110, 146, 222, 8, 246, 318, 8, 54, 178, 8, 326, 218, 8, 330, 322, 8, 82, 238, 12, 264, 126, 290, 12, 268, 116, 342, 8, 270, 346, 20, 17, 350, 338, 334, 314, 10, 306, 354, 16, 266, 188, 272, 218, 8, 14, 362, 8, 242, 26, 8, 370, 366, 12, 108, 276, 342, 12, 74, 378, 374, 12, 326, 382, 21, 8, 280, 258, 8, 166, 90, 12, 38, 394, 390, 8, 284, 278, 12, 330, 402, 398, 20, 74, 366, 406, 25, 386, 8, 102, 286, 14, 414, 190, 29, 10, 418, 410, 10, 206, 422, 10, 306, 94, 10, 430, 426, 10, 418, 358, 10, 254, 422, 10, 386, 354, 10, 254, 94, 10, 450, 446, 10, 410, 454, 10, 94, 422, 10, 418, 454, 10, 410, 358, 10, 470, 454, 8, 370, 186, 14, 33, 58, 478, 8, 202, 154, 8, 102, 226, 16, 490, 294, 486, 37, 10, 494, 482, 16, 41, 110, 326, 338, 12, 262, 290, 134, 16, 45, 302, 346, 506, 10, 510, 502, 10, 514, 498, 24, 49, 122, 186, 322, 274, 518, 10, 510, 522, 12, 374, 398, 53, 8, 402, 382, 12, 362, 326, 534, 16, 390, 538, 57, 530, 14, 490, 158, 61, 10, 546, 542, 10, 494, 550, 10, 510, 482, 10, 558, 554, 10, 546, 526, 10, 502, 550, 10, 530, 522, 10, 502, 482, 10, 578, 574, 10, 542, 582, 10, 482, 550, 10, 546, 582, 10, 542, 526, 10, 598, 582, 14, 65, 214, 478, 8, 486, 114, 8, 46, 154, 20, 102, 298, 614, 610, 69, 10, 618, 606, 8, 86, 18, 12, 73, 626, 334, 8, 350, 610, 12, 77, 282, 634, 10, 638, 630, 10, 642, 622, 16, 330, 46, 146, 250, 12, 234, 650, 282, 24, 81, 242, 262, 90, 654, 646, 10, 638, 658, 8, 406, 85, 20, 38, 166, 534, 89, 666, 14, 286, 614, 93, 10, 674, 670, 10, 618, 678, 10, 638, 606, 10, 686, 682, 10, 674, 662, 10, 630, 678, 10, 666, 658, 10, 630, 606, 10, 706, 702, 10, 670, 710, 10, 606, 678, 10, 674, 710, 10, 670, 662, 10, 726, 710, 14, 97, 14, 230, 16, 626, 298, 158, 101, 10, 738, 734, 12, 105, 82, 650, 12, 109, 634, 506, 10, 750, 746, 10, 754, 742, 20, 113, 318, 346, 654, 758, 10, 750, 762, 12, 394, 538, 117, 20, 362, 378, 398, 121, 770, 18, 626, 414, 114, 125, 10, 778, 774, 10, 738, 782, 10, 750, 734, 10, 790, 786, 10, 778, 766, 10, 746, 782, 10, 770, 762, 10, 746, 734, 10, 810, 806, 10, 774, 814, 10, 734, 782, 10, 778, 814, 10, 774, 766, 10, 830, 814],
    &[8, 0, 4, 22, 8, 12, 16, 20, 2, 10, 24, 6, 22, 28, 32, 36, 40, 2, 10, 14, 44, 10, 48, 14, 10, 6, 44],
    &[10, 1, 0, 8, 5, 4, 10, 6, 2, 8, 9, 8, 8, 13, 12, 10, 18, 14, 10, 22, 10, 12, 17, 16, 26, 10, 18, 30, 8, 21, 20, 12, 25, 24, 38, 10, 29, 28, 10, 46, 42, 10, 6, 50, 10, 18, 2, 10, 58, 54, 10, 46, 34, 10, 14, 50, 10, 38, 30, 10, 14, 2, 10, 78, 74, 10, 42, 82, 10, 2, 50, 10, 46, 82, 10, 42, 34, 10, 98, 82],
    &[8, 0, 4, 12, 2, 8, 12, 8, 16, 20, 12, 24, 10, 6, 14, 28, 14, 1, 8, 8, 32, 8, 36, 22, 16, 26, 40, 28, 2, 14, 30, 14, 5, 8, 44, 10, 8, 48, 30, 18, 9, 42, 52, 38, 8, 56, 38, 16, 50, 0, 60, 22, 14, 13, 6, 54, 10, 17, 54, 8, 64, 26, 22, 68, 42, 16, 66, 21, 14, 54, 66, 25, 14, 29, 50, 66],
    &[10, 0, 4, 10, 8, 2, 10, 12, 16, 10, 10, 2],
    &[10, 0, 4, 10, 8, 2, 10, 12, 2, 10, 10, 16],
    &[8, 0, 4, 18, 2, 8, 12, 16, 22, 20, 24, 28, 32, 2],
    &[8, 0, 4, 8, 8, 2, 8, 12, 6, 8, 16, 20, 8, 24, 14, 8, 28, 18, 14, 32, 22, 10, 10, 36, 26, 10, 40, 30, 10, 44, 34, 8, 48, 52, 12, 42, 0, 56, 12, 60, 14, 46, 16, 6, 64, 68, 42, 15, 72, 54, 50, 10, 76, 58, 10, 80, 62, 10, 84, 66, 10, 70, 38, 16, 22, 48, 88, 2, 10, 92, 78, 10, 96, 82, 10, 100, 86, 10, 104, 90, 8, 108, 54, 18, 112, 98, 116, 18, 10, 120, 102, 10, 124, 106, 10, 128, 110, 10, 114, 94, 10, 118, 74, 14, 132, 46, 78, 10, 136, 126, 10, 140, 130, 10, 144, 134, 8, 138, 122, 10, 114, 142, 15, 148, 78, 10, 10, 152, 150, 10, 156, 154, 10, 160, 158, 23, 164, 168, 98, 16, 10, 10, 172, 166, 10, 176, 170, 10, 180, 174, 8, 178, 162, 15, 184, 68, 50, 10, 188, 186, 10, 192, 190, 10, 196, 194, 10, 198, 182, 10, 70, 202, 10, 114, 38, 10, 210, 206, 10, 198, 146, 10, 94, 202, 10, 162, 142, 10, 94, 38, 10, 230, 226, 10, 182, 234, 10, 38, 202, 10, 198, 234, 10, 182, 146, 10, 250, 234],
    &[10, 0, 4, 10, 8, 2, 10, 12, 16, 10, 2, 10],
    &[10, 0, 4, 18, 8, 12, 16, 2, 8, 20, 24, 10, 10, 2, 10, 28, 32, 18, 18, 36, 40, 44, 8, 48, 52, 10, 18, 26, 10, 56, 60, 8, 10, 6, 10, 38, 34, 8, 26, 22, 10, 46, 34, 10, 64, 68, 10, 72, 54, 10, 38, 54, 10, 38, 58, 10, 46, 42, 10, 76, 70, 10, 80, 66],
    &[10, 0, 4, 14, 8, 12, 2, 10, 16, 20, 18, 10, 24, 28, 32, 8, 36, 40, 10, 10, 18, 10, 44, 48, 10, 6, 26, 8, 18, 14, 10, 34, 26, 10, 52, 56, 10, 60, 42, 10, 6, 42, 10, 6, 46, 10, 34, 30, 10, 64, 58, 10, 68, 54],
    &[10, 0, 4, 18, 8, 12, 16, 2, 8, 20, 24, 10, 10, 2, 10, 28, 32, 18, 18, 36, 40, 44, 8, 48, 52, 10, 18, 26, 10, 56, 60, 8, 10, 6, 10, 38, 34, 8, 26, 22, 10, 46, 34, 10, 64, 68, 10, 72, 54, 10, 38, 54, 10, 38, 58, 10, 46, 42, 10, 76, 70],
    &[10, 0, 4, 14, 8, 12, 2, 10, 16, 20, 18, 10, 24, 28, 32, 8, 36, 40, 10, 10, 18, 10, 44, 48, 10, 6, 26, 8, 18, 14, 10, 34, 26, 10, 52, 56, 10, 60, 42, 10, 6, 42, 10, 6, 46, 10, 34, 30, 10, 64, 58],
    &[10, 0, 4, 14, 2, 8, 12, 10, 16, 20, 10, 10, 2],
    &[10, 0, 4, 14, 8, 12, 2, 8, 16, 20, 10, 10, 2, 10, 24, 28, 10, 32, 18, 8, 36, 40, 10, 18, 26, 10, 44, 48, 10, 10, 6, 8, 52, 38, 10, 56, 60, 8, 46, 42, 10, 50, 34, 10, 26, 22, 10, 58, 34],
    &[10, 0, 4, 10, 8, 2, 10, 12, 2],
];

/// Runs a template.
///
/// # Safety
/// The instruction set is present; the uses are of a checked tape, and of this template.
#[inline(always)]
pub(in crate::cpu::exec) unsafe fn run<V: Vector>(of: u16, uses: Uses<'_>) {
    // SAFETY: the caller's.
    unsafe {
        match of {
            0 => V::outlined::<Over<V, T0>>(uses),
            1 => V::outlined::<Over<V, T1>>(uses),
            2 => V::outlined::<Over<V, T2>>(uses),
            3 => V::outlined::<Over<V, T3>>(uses),
            4 => V::outlined::<Over<V, T4>>(uses),
            5 => V::outlined::<Over<V, T5>>(uses),
            6 => V::outlined::<Over<V, T6>>(uses),
            7 => V::outlined::<Over<V, T7>>(uses),
            8 => V::outlined::<Over<V, T8>>(uses),
            9 => V::outlined::<Over<V, T9>>(uses),
            10 => V::outlined::<Over<V, T10>>(uses),
            11 => V::outlined::<Over<V, T11>>(uses),
            12 => V::outlined::<Over<V, T12>>(uses),
            13 => V::outlined::<Over<V, T13>>(uses),
            14 => V::outlined::<Over<V, T14>>(uses),
            15 => V::outlined::<Over<V, T15>>(uses),
            _ => unreachable!("there are no more templates"),
        }
    }
}

/// 209 XORs of 72 rows and 32 job-wide values, of which others read 80.
struct T0;

impl Template for T0 {
    const ROWS: usize = 152;
    const JOB_VALUES: usize = 32;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let r0 = at.row(0);
            let r1 = at.row(1);
            let x0 = r0.xor(r1);
            let r2 = at.row(2);
            let r3 = at.row(3);
            let x1 = r2.xor3(r3, x0);
            let r4 = at.row(4);
            let r5 = at.row(5);
            let x2 = r4.xor(r5);
            let r6 = at.row(6);
            let r7 = at.row(7);
            let x3 = r6.xor3(r7, x2);
            let x4 = x3.xor(x1);
            let r8 = at.row(8);
            let r9 = at.row(9);
            let x5 = r8.xor(r9);
            let r10 = at.row(10);
            let r11 = at.row(11);
            let x6 = x5.xor3(r10, r11);
            let r12 = at.row(12);
            let r13 = at.row(13);
            let x7 = r12.xor(r13);
            let r14 = at.row(14);
            let r15 = at.row(15);
            let x8 = r14.xor(r15);
            let x9 = x8.xor(x7);
            let x10 = x9.xor(x6);
            let x11 = x10.xor(x4);
            let r16 = at.row(16);
            let r17 = at.row(17);
            let x12 = r16.xor(r17);
            let r18 = at.row(18);
            let r19 = at.row(19);
            let x13 = r18.xor3(r19, x12);
            let x14 = x13.xor(x11);
            let r20 = at.row(20);
            let r21 = at.row(21);
            let x15 = r20.xor(r21);
            let r22 = at.row(22);
            let r23 = at.row(23);
            let x16 = r22.xor3(r23, x15);
            let r24 = at.row(24);
            let x17 = r23.xor(r24);
            let r25 = at.row(25);
            let x18 = r21.xor3(r25, x17);
            let r26 = at.row(26);
            let r27 = at.row(27);
            let x19 = r26.xor(r27);
            let r28 = at.row(28);
            let r29 = at.row(29);
            let x20 = r28.xor3(r29, x19);
            let x21 = x20.xor(x18);
            let x22 = x21.xor(x16);
            let j0 = at.job_value(0);
            let x23 = j0.xor3(x22, x14);
            at.put(72, x23);
            let r30 = at.row(30);
            let r31 = at.row(31);
            let x24 = r30.xor(r31);
            let r32 = at.row(32);
            let x25 = x24.xor3(r32, r15).xor(x7);
            let r33 = at.row(33);
            let x26 = r33.xor3(r11, x25);
            let r34 = at.row(34);
            let x27 = r12.xor3(r34, x24);
            let r35 = at.row(35);
            let x28 = r9.xor3(r35, x27).xor(x26);
            let r36 = at.row(36);
            let x29 = r36.xor(x15);
            let r37 = at.row(37);
            let x30 = r37.xor(x29);
            let r38 = at.row(38);
            let x31 = r38.xor(x19);
            let r39 = at.row(39);
            let x32 = r39.xor3(x31, x30);
            let x33 = x32.xor(x28);
            let r40 = at.row(40);
            let x34 = r40.xor(r6);
            let r41 = at.row(41);
            let x35 = r41.xor(x34);
            let r42 = at.row(42);
            let x36 = r42.xor(x35);
            let r43 = at.row(43);
            let x37 = r43.xor(r3);
            let r44 = at.row(44);
            let x38 = x37.xor3(r44, r1).xor(x36);
            let x39 = x38.xor(x33);
            let r45 = at.row(45);
            let x40 = r18.xor(r45);
            let r46 = at.row(46);
            let x41 = r46.xor3(r17, x40);
            let r47 = at.row(47);
            let r48 = at.row(48);
            let x42 = r47.xor(r48);
            let r49 = at.row(49);
            let x43 = r49.xor(x42);
            let r50 = at.row(50);
            let x44 = r50.xor(x43);
            let x45 = x44.xor(x41);
            let x46 = x21.xor(x45);
            let x47 = x46.xor(x39);
            let r51 = at.row(51);
            let x48 = r51.xor(x12);
            let r52 = at.row(52);
            let x49 = r52.xor3(x40, x48);
            let r53 = at.row(53);
            let x50 = r53.xor3(x2, x35);
            let j1 = at.job_value(1);
            let x51 = x50.xor3(x49, x47).xor(j1);
            let x52 = x51.xor(x23);
            at.put(73, x52);
            let r54 = at.row(54);
            let x53 = r54.xor3(r4, x34);
            let x54 = x1.xor(x53);
            let x55 = x16.xor(x54);
            let x56 = x10.xor(x45);
            let x57 = x56.xor(x55);
            let r55 = at.row(55);
            let x58 = r55.xor(x48);
            let x59 = x58.xor(x57);
            let r56 = at.row(56);
            let x60 = x8.xor3(r30, r56);
            let x61 = x60.xor(x18);
            let x62 = x30.xor(x61);
            let j2 = at.job_value(2);
            let x63 = j2.xor3(x62, x59);
            let r57 = at.row(57);
            let x64 = r57.xor(x26);
            let r58 = at.row(58);
            let x65 = x5.xor3(r58, x64);
            let r59 = at.row(59);
            let r60 = at.row(60);
            let x66 = r59.xor3(r60, x49);
            let r61 = at.row(61);
            let x67 = x43.xor3(r61, x66);
            let x68 = x67.xor(x65);
            let r62 = at.row(62);
            let x69 = r62.xor3(x37, x50);
            let r63 = at.row(63);
            let x70 = r63.xor3(x0, x69);
            let r64 = at.row(64);
            let x71 = r59.xor3(r64, x42).xor3(x58, x32);
            let r65 = at.row(65);
            let x72 = x17.xor3(r65, x29);
            let x73 = x72.xor(x71);
            let x74 = x49.xor(x73);
            let x75 = x74.xor(x70);
            let j3 = at.job_value(3);
            let x76 = j3.xor3(x75, x68);
            let x77 = x76.xor(x63);
            at.put(74, x77);
            let x78 = x77.xor(x52);
            at.put(75, x78);
            let x79 = x27.xor3(x36, x55);
            let x80 = x61.xor(x79);
            let x81 = x13.xor(x44);
            let x82 = x81.xor(x54);
            let x83 = x82.xor(x80);
            let x84 = x20.xor(x59);
            let r66 = at.row(66);
            let x85 = r66.xor3(x31, x72);
            let r67 = at.row(67);
            let x86 = r67.xor3(r29, x85);
            let x87 = x67.xor(x86);
            let j4 = at.job_value(4);
            let x88 = j4.xor3(x87, x84).xor3(x83, x78);
            let x89 = x76.xor(x88);
            at.put(76, x89);
            let r68 = at.row(68);
            let x90 = x66.xor3(r47, r68).xor(x54);
            let x91 = x3.xor(x90);
            let x92 = x60.xor(x6);
            let x93 = x92.xor(x91);
            let r69 = at.row(69);
            let x94 = r27.xor3(r69, x85);
            let x95 = x18.xor3(x94, x93);
            let j5 = at.job_value(5);
            let x96 = x81.xor3(x95, j5);
            let r70 = at.row(70);
            let x97 = r70.xor(x64);
            let x98 = x41.xor(x22);
            let x99 = x9.xor3(x98, x97);
            let r71 = at.row(71);
            let x100 = r71.xor(x69);
            let x101 = x82.xor3(x100, x99);
            let j6 = at.job_value(6);
            let x102 = x18.xor3(x91, x101).xor3(j6, x96);
            let x103 = x25.xor(x71);
            let j7 = at.job_value(7);
            let x104 = x103.xor3(x47, j7);
            at.put(77, x104);
            let x105 = x104.xor(x102);
            at.put(78, x105);
            let x106 = x51.xor(x105);
            at.put(79, x106);
            let x107 = x76.xor(x23);
            at.put(80, x107);
            let x108 = x107.xor(x106);
            at.put(81, x108);
            let x109 = x104.xor(x89);
            at.put(82, x109);
            let x110 = x63.xor(x105);
            at.put(83, x110);
            let x111 = x96.xor(x88);
            at.put(84, x111);
            let x112 = x63.xor(x23);
            at.put(85, x112);
            let x113 = x112.xor(x111);
            at.put(86, x113);
            let x114 = x102.xor(x113);
            at.put(87, x114);
            let x115 = x23.xor(x105);
            at.put(88, x115);
            let x116 = x104.xor(x113);
            at.put(89, x116);
            let x117 = x102.xor(x89);
            at.put(90, x117);
            let x118 = x117.xor(x113);
            at.put(91, x118);
            let x119 = x92.xor(x46);
            let j8 = at.job_value(8);
            let x120 = j8.xor3(x14, x119);
            at.put(92, x120);
            let x121 = x50.xor(x38);
            let x122 = x25.xor(x56);
            let j9 = at.job_value(9);
            let x123 = x122.xor3(x73, x121).xor(j9);
            let x124 = x123.xor(x120);
            at.put(93, x124);
            let j10 = at.job_value(10);
            let x125 = j10.xor3(x27, x81).xor(x84);
            let x126 = x65.xor3(x72, x33);
            let j11 = at.job_value(11);
            let x127 = j11.xor3(x75, x86).xor(x126);
            let x128 = x127.xor(x125);
            at.put(94, x128);
            let x129 = x128.xor(x124);
            at.put(95, x129);
            let j12 = at.job_value(12);
            let x130 = j12.xor3(x30, x46).xor3(x80, x68).xor(x129);
            let x131 = x127.xor(x130);
            at.put(96, x131);
            let j13 = at.job_value(13);
            let x132 = x93.xor3(x99, j13);
            let x133 = x100.xor(x95);
            let x134 = x90.xor3(x81, x133);
            let j14 = at.job_value(14);
            let x135 = x97.xor3(x134, j14).xor(x132);
            let j15 = at.job_value(15);
            let x136 = x122.xor3(x39, j15);
            at.put(97, x136);
            let x137 = x136.xor(x135);
            at.put(98, x137);
            let x138 = x123.xor(x137);
            at.put(99, x138);
            let x139 = x127.xor(x120);
            at.put(100, x139);
            let x140 = x139.xor(x138);
            at.put(101, x140);
            let x141 = x136.xor(x131);
            at.put(102, x141);
            let x142 = x125.xor(x137);
            at.put(103, x142);
            let x143 = x132.xor(x130);
            at.put(104, x143);
            let x144 = x125.xor(x120);
            at.put(105, x144);
            let x145 = x144.xor(x143);
            at.put(106, x145);
            let x146 = x135.xor(x145);
            at.put(107, x146);
            let x147 = x120.xor(x137);
            at.put(108, x147);
            let x148 = x136.xor(x145);
            at.put(109, x148);
            let x149 = x135.xor(x131);
            at.put(110, x149);
            let x150 = x149.xor(x145);
            at.put(111, x150);
            let j16 = at.job_value(16);
            let x151 = j16.xor3(x53, x119);
            at.put(112, x151);
            let x152 = x121.xor(x28);
            let x153 = x11.xor(x38);
            let j17 = at.job_value(17);
            let x154 = x25.xor3(x74, x153).xor3(x152, j17);
            let x155 = x154.xor(x151);
            at.put(113, x155);
            let x156 = x21.xor(x4);
            let j18 = at.job_value(18);
            let x157 = j18.xor3(x156, x83);
            let x158 = x87.xor(x152);
            let j19 = at.job_value(19);
            let x159 = j19.xor3(x70, x158);
            let x160 = x159.xor(x157);
            at.put(114, x160);
            let x161 = x160.xor(x155);
            at.put(115, x161);
            let x162 = x82.xor3(x11, x36).xor(x62);
            let x163 = x58.xor3(x162, x70);
            let j20 = at.job_value(20);
            let x164 = j20.xor3(x60, x65).xor3(x22, x163).xor(x161);
            let x165 = x159.xor(x164);
            at.put(116, x165);
            let j21 = at.job_value(21);
            let x166 = x101.xor(j21);
            let j22 = at.job_value(22);
            let x167 = x9.xor3(x41, x133).xor3(j22, x166);
            let j23 = at.job_value(23);
            let x168 = x71.xor3(x153, j23);
            at.put(117, x168);
            let x169 = x168.xor(x167);
            at.put(118, x169);
            let x170 = x154.xor(x169);
            at.put(119, x170);
            let x171 = x159.xor(x151);
            at.put(120, x171);
            let x172 = x171.xor(x170);
            at.put(121, x172);
            let x173 = x168.xor(x165);
            at.put(122, x173);
            let x174 = x157.xor(x169);
            at.put(123, x174);
            let x175 = x166.xor(x164);
            at.put(124, x175);
            let x176 = x157.xor(x151);
            at.put(125, x176);
            let x177 = x176.xor(x175);
            at.put(126, x177);
            let x178 = x167.xor(x177);
            at.put(127, x178);
            let x179 = x151.xor(x169);
            at.put(128, x179);
            let x180 = x168.xor(x177);
            at.put(129, x180);
            let x181 = x167.xor(x165);
            at.put(130, x181);
            let x182 = x181.xor(x177);
            at.put(131, x182);
            let j24 = at.job_value(24);
            let x183 = j24.xor3(x3, x57);
            at.put(132, x183);
            let j25 = at.job_value(25);
            let x184 = x156.xor3(x74, x39).xor(j25);
            let x185 = x184.xor(x183);
            at.put(133, x185);
            let j26 = at.job_value(26);
            let x186 = j26.xor3(x20, x162);
            let j27 = at.job_value(27);
            let x187 = j27.xor3(x158, x126);
            let x188 = x187.xor(x186);
            at.put(134, x188);
            let x189 = x188.xor(x185);
            at.put(135, x189);
            let j28 = at.job_value(28);
            let x190 = j28.xor3(x79, x86).xor3(x163, x189);
            let x191 = x187.xor(x190);
            at.put(136, x191);
            let j29 = at.job_value(29);
            let x192 = x98.xor3(x134, j29);
            let j30 = at.job_value(30);
            let x193 = x90.xor3(x94, x99).xor3(j30, x192);
            let j31 = at.job_value(31);
            let x194 = x156.xor3(x103, x28).xor(j31);
            at.put(137, x194);
            let x195 = x194.xor(x193);
            at.put(138, x195);
            let x196 = x184.xor(x195);
            at.put(139, x196);
            let x197 = x187.xor(x183);
            at.put(140, x197);
            let x198 = x197.xor(x196);
            at.put(141, x198);
            let x199 = x194.xor(x191);
            at.put(142, x199);
            let x200 = x186.xor(x195);
            at.put(143, x200);
            let x201 = x192.xor(x190);
            at.put(144, x201);
            let x202 = x186.xor(x183);
            at.put(145, x202);
            let x203 = x202.xor(x201);
            at.put(146, x203);
            let x204 = x193.xor(x203);
            at.put(147, x204);
            let x205 = x183.xor(x195);
            at.put(148, x205);
            let x206 = x194.xor(x203);
            at.put(149, x206);
            let x207 = x193.xor(x191);
            at.put(150, x207);
            let x208 = x207.xor(x203);
            at.put(151, x208);
        }
    }
}

/// 7 XORs of 13 rows and 0 job-wide values, of which others read 6.
struct T1;

impl Template for T1 {
    const ROWS: usize = 19;
    const JOB_VALUES: usize = 0;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let r0 = at.row(0);
            let r1 = at.row(1);
            let x0 = r0.xor(r1);
            let r2 = at.row(2);
            let r3 = at.row(3);
            let r4 = at.row(4);
            let r5 = at.row(5);
            let x1 = r2.xor3(r3, r4).xor3(r5, x0);
            at.put(13, x1);
            let r6 = at.row(6);
            let x2 = r6.xor(x1);
            at.put(14, x2);
            let r7 = at.row(7);
            let r8 = at.row(8);
            let r9 = at.row(9);
            let r10 = at.row(10);
            let x3 = r7.xor3(r8, r9).xor3(r10, x0);
            at.put(15, x3);
            let r11 = at.row(11);
            let x4 = x3.xor(r11);
            at.put(16, x4);
            let r12 = at.row(12);
            let x5 = r12.xor(x3);
            at.put(17, x5);
            let x6 = x1.xor(r11);
            at.put(18, x6);
        }
    }
}

/// 26 XORs of 8 rows and 8 job-wide values, of which others read 20.
struct T2;

impl Template for T2 {
    const ROWS: usize = 28;
    const JOB_VALUES: usize = 8;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let j0 = at.job_value(0);
            let r0 = at.row(0);
            let x0 = j0.xor(r0);
            at.put(8, x0);
            let j1 = at.job_value(1);
            let r1 = at.row(1);
            let x1 = j1.xor(r1);
            let x2 = x1.xor(x0);
            at.put(9, x2);
            let j2 = at.job_value(2);
            let r2 = at.row(2);
            let x3 = j2.xor(r2);
            let j3 = at.job_value(3);
            let r3 = at.row(3);
            let x4 = j3.xor(r3);
            let x5 = x4.xor(x3);
            at.put(10, x5);
            let x6 = x5.xor(x2);
            at.put(11, x6);
            let j4 = at.job_value(4);
            let r4 = at.row(4);
            let x7 = j4.xor3(r4, x6);
            let x8 = x4.xor(x7);
            at.put(12, x8);
            let j5 = at.job_value(5);
            let r5 = at.row(5);
            let x9 = j5.xor(r5);
            let j6 = at.job_value(6);
            let r6 = at.row(6);
            let x10 = j6.xor3(r6, x9);
            let j7 = at.job_value(7);
            let r7 = at.row(7);
            let x11 = j7.xor(r7);
            at.put(13, x11);
            let x12 = x11.xor(x10);
            at.put(14, x12);
            let x13 = x1.xor(x12);
            at.put(15, x13);
            let x14 = x4.xor(x0);
            at.put(16, x14);
            let x15 = x14.xor(x13);
            at.put(17, x15);
            let x16 = x11.xor(x8);
            at.put(18, x16);
            let x17 = x3.xor(x12);
            at.put(19, x17);
            let x18 = x9.xor(x7);
            at.put(20, x18);
            let x19 = x3.xor(x0);
            at.put(21, x19);
            let x20 = x19.xor(x18);
            at.put(22, x20);
            let x21 = x10.xor(x20);
            at.put(23, x21);
            let x22 = x0.xor(x12);
            at.put(24, x22);
            let x23 = x11.xor(x20);
            at.put(25, x23);
            let x24 = x10.xor(x8);
            at.put(26, x24);
            let x25 = x24.xor(x20);
            at.put(27, x25);
        }
    }
}

/// 20 XORs of 18 rows and 8 job-wide values, of which others read 8.
struct T3;

impl Template for T3 {
    const ROWS: usize = 26;
    const JOB_VALUES: usize = 8;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let r0 = at.row(0);
            let r1 = at.row(1);
            let x0 = r0.xor(r1);
            let r2 = at.row(2);
            let r3 = at.row(3);
            let x1 = x0.xor3(r2, r3);
            let r4 = at.row(4);
            let r5 = at.row(5);
            let x2 = r4.xor(r5);
            let r6 = at.row(6);
            let x3 = r6.xor3(x2, x1);
            let r7 = at.row(7);
            let j0 = at.job_value(0);
            let x4 = r7.xor3(x3, j0);
            at.put(18, x4);
            let r8 = at.row(8);
            let x5 = r2.xor(r8);
            let r9 = at.row(9);
            let x6 = r9.xor(x5);
            let r10 = at.row(10);
            let x7 = x6.xor3(r10, r7).xor(x0);
            let j1 = at.job_value(1);
            let x8 = x7.xor3(x3, j1);
            at.put(19, x8);
            let r11 = at.row(11);
            let x9 = r11.xor(x2);
            let r12 = at.row(12);
            let x10 = r12.xor(x7);
            let j2 = at.job_value(2);
            let r13 = at.row(13);
            let x11 = j2.xor3(x10, r13).xor(x9);
            at.put(20, x11);
            let r14 = at.row(14);
            let x12 = r14.xor(x9);
            let r15 = at.row(15);
            let x13 = x12.xor3(r0, r15).xor(x5);
            let j3 = at.job_value(3);
            let x14 = j3.xor3(x1, x13);
            at.put(21, x14);
            let j4 = at.job_value(4);
            let x15 = j4.xor(x13);
            at.put(22, x15);
            let r16 = at.row(16);
            let x16 = r16.xor(x6);
            let r17 = at.row(17);
            let j5 = at.job_value(5);
            let x17 = r17.xor3(x10, r4).xor3(x16, j5);
            at.put(23, x17);
            let j6 = at.job_value(6);
            let x18 = x13.xor3(x16, j6);
            at.put(24, x18);
            let j7 = at.job_value(7);
            let x19 = j7.xor3(x12, x16);
            at.put(25, x19);
        }
    }
}

/// 4 XORs of 5 rows and 0 job-wide values, of which others read 4.
struct T4;

impl Template for T4 {
    const ROWS: usize = 9;
    const JOB_VALUES: usize = 0;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let r0 = at.row(0);
            let r1 = at.row(1);
            let x0 = r0.xor(r1);
            at.put(5, x0);
            let r2 = at.row(2);
            let x1 = r2.xor(x0);
            at.put(6, x1);
            let r3 = at.row(3);
            let r4 = at.row(4);
            let x2 = r3.xor(r4);
            at.put(7, x2);
            let x3 = x2.xor(x0);
            at.put(8, x3);
        }
    }
}

/// 4 XORs of 5 rows and 0 job-wide values, of which others read 4.
struct T5;

impl Template for T5 {
    const ROWS: usize = 9;
    const JOB_VALUES: usize = 0;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let r0 = at.row(0);
            let r1 = at.row(1);
            let x0 = r0.xor(r1);
            at.put(5, x0);
            let r2 = at.row(2);
            let x1 = r2.xor(x0);
            at.put(6, x1);
            let r3 = at.row(3);
            let x2 = r3.xor(x0);
            at.put(7, x2);
            let r4 = at.row(4);
            let x3 = x2.xor(r4);
            at.put(8, x3);
        }
    }
}

/// 3 XORs of 9 rows and 0 job-wide values, of which others read 2.
struct T6;

impl Template for T6 {
    const ROWS: usize = 11;
    const JOB_VALUES: usize = 0;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let r0 = at.row(0);
            let r1 = at.row(1);
            let x0 = r0.xor(r1);
            let r2 = at.row(2);
            let r3 = at.row(3);
            let r4 = at.row(4);
            let x1 = x0.xor3(r2, r3).xor(r4);
            at.put(9, x1);
            let r5 = at.row(5);
            let r6 = at.row(6);
            let r7 = at.row(7);
            let r8 = at.row(8);
            let x2 = r5.xor3(r6, r7).xor3(r8, x0);
            at.put(10, x2);
        }
    }
}

/// 64 XORs of 50 rows and 0 job-wide values, of which others read 50.
struct T7;

impl Template for T7 {
    const ROWS: usize = 100;
    const JOB_VALUES: usize = 0;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let r0 = at.row(0);
            let r1 = at.row(1);
            let x0 = r0.xor(r1);
            let r2 = at.row(2);
            let x1 = r2.xor(x0);
            let r3 = at.row(3);
            let x2 = r3.xor(x1);
            let r4 = at.row(4);
            let r5 = at.row(5);
            let x3 = r4.xor(r5);
            let r6 = at.row(6);
            let x4 = r6.xor(x3);
            let r7 = at.row(7);
            let x5 = r7.xor(x4);
            let r8 = at.row(8);
            let x6 = r8.xor3(x5, x2);
            at.put(50, x6);
            let r9 = at.row(9);
            let x7 = r9.xor(x6);
            at.put(51, x7);
            let r10 = at.row(10);
            let x8 = r10.xor(x7);
            at.put(52, x8);
            let r11 = at.row(11);
            let x9 = r11.xor(x8);
            at.put(53, x9);
            let r12 = at.row(12);
            let r13 = at.row(13);
            let x10 = r12.xor(r13);
            let r14 = at.row(14);
            let x11 = x10.xor3(r0, r14);
            let r15 = at.row(15);
            let x12 = r15.xor3(x3, x11);
            let r16 = at.row(16);
            let r17 = at.row(17);
            let x13 = x1.xor3(r16, r17).xor(x10);
            let r18 = at.row(18);
            let x14 = r18.xor3(x13, x12).xor(at.one);
            at.put(54, x14);
            let r19 = at.row(19);
            let x15 = r19.xor(x14);
            at.put(55, x15);
            let r20 = at.row(20);
            let x16 = r20.xor(x15);
            at.put(56, x16);
            let r21 = at.row(21);
            let x17 = r21.xor(x16);
            at.put(57, x17);
            let x18 = x17.xor(x9);
            at.put(58, x18);
            let r22 = at.row(22);
            let x19 = x5.xor3(r12, r22).xor(x0);
            let r23 = at.row(23);
            let x20 = r23.xor(x19);
            at.put(59, x20);
            let r24 = at.row(24);
            let x21 = r24.xor(x20);
            at.put(60, x21);
            let r25 = at.row(25);
            let x22 = r25.xor(x21);
            at.put(61, x22);
            let r26 = at.row(26);
            let x23 = r26.xor(x22);
            at.put(62, x23);
            let r27 = at.row(27);
            let x24 = r27.xor(x13);
            let r28 = at.row(28);
            let r29 = at.row(29);
            let x25 = r28.xor3(x24, r29).xor(x4);
            at.put(63, x25);
            let r30 = at.row(30);
            let x26 = r30.xor(x25);
            at.put(64, x26);
            let r31 = at.row(31);
            let x27 = r31.xor(x26);
            at.put(65, x27);
            let r32 = at.row(32);
            let x28 = r32.xor(x27);
            at.put(66, x28);
            let x29 = x28.xor(x23);
            at.put(67, x29);
            let x30 = x29.xor(x18);
            at.put(68, x30);
            let r33 = at.row(33);
            let x31 = r33.xor3(x11, x19);
            at.put(69, x31);
            let r34 = at.row(34);
            let x32 = r34.xor(x31);
            at.put(70, x32);
            let r35 = at.row(35);
            let x33 = r35.xor(x32);
            at.put(71, x33);
            let r36 = at.row(36);
            let x34 = r36.xor(x33);
            at.put(72, x34);
            let x35 = x34.xor(x30);
            let x36 = x28.xor(x35);
            at.put(73, x36);
            let r37 = at.row(37);
            let x37 = r37.xor3(x19, x2).xor(at.one);
            at.put(74, x37);
            let r38 = at.row(38);
            let x38 = r38.xor(x37);
            at.put(75, x38);
            let r39 = at.row(39);
            let x39 = r39.xor(x38);
            at.put(76, x39);
            let r40 = at.row(40);
            let x40 = r40.xor(x39);
            at.put(77, x40);
            let r41 = at.row(41);
            let r42 = at.row(42);
            let x41 = r41.xor3(r42, x24).xor3(r4, x2).xor(at.one);
            at.put(78, x41);
            let r43 = at.row(43);
            let x42 = r43.xor(x41);
            at.put(79, x42);
            let r44 = at.row(44);
            let x43 = r44.xor(x42);
            at.put(80, x43);
            let r45 = at.row(45);
            let x44 = r45.xor(x43);
            at.put(81, x44);
            let x45 = x44.xor(x40);
            let r46 = at.row(46);
            let x46 = r46.xor3(r17, x12).xor(at.one);
            at.put(82, x46);
            let r47 = at.row(47);
            let x47 = r47.xor(x46);
            at.put(83, x47);
            let r48 = at.row(48);
            let x48 = r48.xor(x47);
            at.put(84, x48);
            let r49 = at.row(49);
            let x49 = r49.xor(x48);
            at.put(85, x49);
            let x50 = x49.xor(x45);
            at.put(86, x50);
            let x51 = x17.xor(x50);
            at.put(87, x51);
            let x52 = x28.xor(x9);
            at.put(88, x52);
            let x53 = x52.xor(x51);
            at.put(89, x53);
            let x54 = x49.xor(x36);
            at.put(90, x54);
            let x55 = x23.xor(x50);
            at.put(91, x55);
            let x56 = x40.xor(x35);
            at.put(92, x56);
            let x57 = x23.xor(x9);
            at.put(93, x57);
            let x58 = x57.xor(x56);
            at.put(94, x58);
            let x59 = x45.xor(x58);
            at.put(95, x59);
            let x60 = x9.xor(x50);
            at.put(96, x60);
            let x61 = x49.xor(x58);
            at.put(97, x61);
            let x62 = x45.xor(x36);
            at.put(98, x62);
            let x63 = x62.xor(x58);
            at.put(99, x63);
        }
    }
}

/// 4 XORs of 5 rows and 0 job-wide values, of which others read 4.
struct T8;

impl Template for T8 {
    const ROWS: usize = 9;
    const JOB_VALUES: usize = 0;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let r0 = at.row(0);
            let r1 = at.row(1);
            let x0 = r0.xor(r1);
            at.put(5, x0);
            let r2 = at.row(2);
            let x1 = r2.xor(x0);
            at.put(6, x1);
            let r3 = at.row(3);
            let r4 = at.row(4);
            let x2 = r3.xor(r4);
            at.put(7, x2);
            let x3 = x0.xor(x2);
            at.put(8, x3);
        }
    }
}

/// 20 XORs of 21 rows and 0 job-wide values, of which others read 16.
struct T9;

impl Template for T9 {
    const ROWS: usize = 37;
    const JOB_VALUES: usize = 0;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let r0 = at.row(0);
            let r1 = at.row(1);
            let x0 = r0.xor(r1);
            at.put(21, x0);
            let r2 = at.row(2);
            let r3 = at.row(3);
            let r4 = at.row(4);
            let x1 = r2.xor3(r3, r4).xor(x0);
            at.put(22, x1);
            let r5 = at.row(5);
            let r6 = at.row(6);
            let x2 = r5.xor(r6);
            let x3 = x2.xor(x0);
            at.put(23, x3);
            let r7 = at.row(7);
            let r8 = at.row(8);
            let x4 = r7.xor(r8);
            at.put(24, x4);
            let r9 = at.row(9);
            let r10 = at.row(10);
            let r11 = at.row(11);
            let x5 = x4.xor3(r9, r10).xor(r11);
            at.put(25, x5);
            let r12 = at.row(12);
            let r13 = at.row(13);
            let x6 = r12.xor(r13);
            let x7 = x4.xor(x6);
            at.put(26, x7);
            let r14 = at.row(14);
            let r15 = at.row(15);
            let x8 = r14.xor(r15);
            at.put(27, x8);
            let x9 = x2.xor(x1);
            let x10 = x9.xor(x8);
            at.put(28, x10);
            let x11 = x6.xor(x5);
            let x12 = x11.xor(x8);
            at.put(29, x12);
            let r16 = at.row(16);
            let r17 = at.row(17);
            let x13 = r16.xor(r17);
            at.put(30, x13);
            let r18 = at.row(18);
            let x14 = r18.xor(x13);
            at.put(31, x14);
            let x15 = x9.xor(x13);
            at.put(32, x15);
            let x16 = x9.xor(x14);
            at.put(33, x16);
            let x17 = x11.xor(x10);
            at.put(34, x17);
            let r19 = at.row(19);
            let x18 = r19.xor(x17);
            at.put(35, x18);
            let r20 = at.row(20);
            let x19 = r20.xor(x16);
            at.put(36, x19);
        }
    }
}

/// 17 XORs of 18 rows and 0 job-wide values, of which others read 15.
struct T10;

impl Template for T10 {
    const ROWS: usize = 33;
    const JOB_VALUES: usize = 0;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let r0 = at.row(0);
            let r1 = at.row(1);
            let x0 = r0.xor(r1);
            at.put(18, x0);
            let r2 = at.row(2);
            let r3 = at.row(3);
            let x1 = r2.xor3(r3, x0);
            at.put(19, x1);
            let r4 = at.row(4);
            let r5 = at.row(5);
            let x2 = r4.xor(r5);
            at.put(20, x2);
            let r6 = at.row(6);
            let r7 = at.row(7);
            let r8 = at.row(8);
            let x3 = x2.xor3(r6, r7).xor(r8);
            at.put(21, x3);
            let r9 = at.row(9);
            let r10 = at.row(10);
            let x4 = r9.xor(r10);
            let x5 = x2.xor(x4);
            at.put(22, x5);
            let r11 = at.row(11);
            let r12 = at.row(12);
            let x6 = r11.xor(r12);
            at.put(23, x6);
            let x7 = x1.xor(x6);
            at.put(24, x7);
            let x8 = x4.xor(x3);
            let x9 = x8.xor(x6);
            at.put(25, x9);
            let r13 = at.row(13);
            let r14 = at.row(14);
            let x10 = r13.xor(r14);
            at.put(26, x10);
            let r15 = at.row(15);
            let x11 = r15.xor(x10);
            at.put(27, x11);
            let x12 = x1.xor(x10);
            at.put(28, x12);
            let x13 = x1.xor(x11);
            at.put(29, x13);
            let x14 = x8.xor(x7);
            at.put(30, x14);
            let r16 = at.row(16);
            let x15 = r16.xor(x14);
            at.put(31, x15);
            let r17 = at.row(17);
            let x16 = r17.xor(x13);
            at.put(32, x16);
        }
    }
}

/// 19 XORs of 20 rows and 0 job-wide values, of which others read 15.
struct T11;

impl Template for T11 {
    const ROWS: usize = 35;
    const JOB_VALUES: usize = 0;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let r0 = at.row(0);
            let r1 = at.row(1);
            let x0 = r0.xor(r1);
            at.put(20, x0);
            let r2 = at.row(2);
            let r3 = at.row(3);
            let r4 = at.row(4);
            let x1 = r2.xor3(r3, r4).xor(x0);
            at.put(21, x1);
            let r5 = at.row(5);
            let r6 = at.row(6);
            let x2 = r5.xor(r6);
            let x3 = x2.xor(x0);
            at.put(22, x3);
            let r7 = at.row(7);
            let r8 = at.row(8);
            let x4 = r7.xor(r8);
            at.put(23, x4);
            let r9 = at.row(9);
            let r10 = at.row(10);
            let r11 = at.row(11);
            let x5 = x4.xor3(r9, r10).xor(r11);
            at.put(24, x5);
            let r12 = at.row(12);
            let r13 = at.row(13);
            let x6 = r12.xor(r13);
            let x7 = x4.xor(x6);
            at.put(25, x7);
            let r14 = at.row(14);
            let r15 = at.row(15);
            let x8 = r14.xor(r15);
            at.put(26, x8);
            let x9 = x2.xor(x1);
            let x10 = x9.xor(x8);
            at.put(27, x10);
            let x11 = x6.xor(x5);
            let x12 = x11.xor(x8);
            at.put(28, x12);
            let r16 = at.row(16);
            let r17 = at.row(17);
            let x13 = r16.xor(r17);
            at.put(29, x13);
            let r18 = at.row(18);
            let x14 = r18.xor(x13);
            at.put(30, x14);
            let x15 = x9.xor(x13);
            at.put(31, x15);
            let x16 = x9.xor(x14);
            at.put(32, x16);
            let x17 = x11.xor(x10);
            at.put(33, x17);
            let r19 = at.row(19);
            let x18 = r19.xor(x17);
            at.put(34, x18);
        }
    }
}

/// 16 XORs of 17 rows and 0 job-wide values, of which others read 14.
struct T12;

impl Template for T12 {
    const ROWS: usize = 31;
    const JOB_VALUES: usize = 0;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let r0 = at.row(0);
            let r1 = at.row(1);
            let x0 = r0.xor(r1);
            at.put(17, x0);
            let r2 = at.row(2);
            let r3 = at.row(3);
            let x1 = r2.xor3(r3, x0);
            at.put(18, x1);
            let r4 = at.row(4);
            let r5 = at.row(5);
            let x2 = r4.xor(r5);
            at.put(19, x2);
            let r6 = at.row(6);
            let r7 = at.row(7);
            let r8 = at.row(8);
            let x3 = x2.xor3(r6, r7).xor(r8);
            at.put(20, x3);
            let r9 = at.row(9);
            let r10 = at.row(10);
            let x4 = r9.xor(r10);
            let x5 = x2.xor(x4);
            at.put(21, x5);
            let r11 = at.row(11);
            let r12 = at.row(12);
            let x6 = r11.xor(r12);
            at.put(22, x6);
            let x7 = x1.xor(x6);
            at.put(23, x7);
            let x8 = x4.xor(x3);
            let x9 = x8.xor(x6);
            at.put(24, x9);
            let r13 = at.row(13);
            let r14 = at.row(14);
            let x10 = r13.xor(r14);
            at.put(25, x10);
            let r15 = at.row(15);
            let x11 = r15.xor(x10);
            at.put(26, x11);
            let x12 = x1.xor(x10);
            at.put(27, x12);
            let x13 = x1.xor(x11);
            at.put(28, x13);
            let x14 = x8.xor(x7);
            at.put(29, x14);
            let r16 = at.row(16);
            let x15 = r16.xor(x14);
            at.put(30, x15);
        }
    }
}

/// 4 XORs of 6 rows and 0 job-wide values, of which others read 4.
struct T13;

impl Template for T13 {
    const ROWS: usize = 10;
    const JOB_VALUES: usize = 0;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let r0 = at.row(0);
            let r1 = at.row(1);
            let x0 = r0.xor(r1);
            at.put(6, x0);
            let r2 = at.row(2);
            let r3 = at.row(3);
            let x1 = x0.xor3(r2, r3);
            at.put(7, x1);
            let r4 = at.row(4);
            let r5 = at.row(5);
            let x2 = r4.xor(r5);
            at.put(8, x2);
            let x3 = x2.xor(x0);
            at.put(9, x3);
        }
    }
}

/// 16 XORs of 16 rows and 0 job-wide values, of which others read 12.
struct T14;

impl Template for T14 {
    const ROWS: usize = 28;
    const JOB_VALUES: usize = 0;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let r0 = at.row(0);
            let r1 = at.row(1);
            let x0 = r0.xor(r1);
            at.put(16, x0);
            let r2 = at.row(2);
            let r3 = at.row(3);
            let x1 = r2.xor3(r3, x0);
            at.put(17, x1);
            let r4 = at.row(4);
            let r5 = at.row(5);
            let x2 = r4.xor(r5);
            let x3 = x2.xor(x0);
            at.put(18, x3);
            let r6 = at.row(6);
            let r7 = at.row(7);
            let x4 = r6.xor(r7);
            at.put(19, x4);
            let r8 = at.row(8);
            let x5 = r8.xor(x4);
            at.put(20, x5);
            let r9 = at.row(9);
            let r10 = at.row(10);
            let x6 = r9.xor(r10);
            let x7 = x4.xor(x6);
            at.put(21, x7);
            let r11 = at.row(11);
            let r12 = at.row(12);
            let x8 = r11.xor(r12);
            at.put(22, x8);
            let x9 = x2.xor(x1);
            at.put(23, x9);
            let r13 = at.row(13);
            let x10 = r13.xor(x9);
            let r14 = at.row(14);
            let r15 = at.row(15);
            let x11 = r14.xor(r15);
            at.put(24, x11);
            let x12 = x11.xor(x10);
            let x13 = x12.xor(x8);
            at.put(25, x13);
            let x14 = x6.xor(x5);
            at.put(26, x14);
            let x15 = x14.xor(x8);
            at.put(27, x15);
        }
    }
}

/// 3 XORs of 4 rows and 0 job-wide values, of which others read 3.
struct T15;

impl Template for T15 {
    const ROWS: usize = 7;
    const JOB_VALUES: usize = 0;
    #[inline(always)]
    unsafe fn step<V: Vector>(at: Place<V>) {
        // SAFETY: the caller's.
        unsafe {
            let r0 = at.row(0);
            let r1 = at.row(1);
            let x0 = r0.xor(r1);
            at.put(4, x0);
            let r2 = at.row(2);
            let x1 = r2.xor(x0);
            at.put(5, x1);
            let r3 = at.row(3);
            let x2 = r3.xor(x0);
            at.put(6, x2);
        }
    }
}
