//! The S-box of AES.
//!
//! From: J. Boyar, R. Peralta, "A small depth-16 circuit for the AES S-box", SEC 2012 (ePrint 2011/332), and "A new
//! combinational logic minimization technique with applications to cryptology", SEA 2010 (ePrint 2009/191): inversion in
//! a tower of fields between two linear layers, 32 ANDs. Of 115 gates there, 113 are left in the form that the authors
//! published later. As there, `x0` is the most significant bit of the input; the four final inversions are a separate step
//! here.

use super::adder::Aim;
use super::linear::SBOX_OUTPUT;
use crate::{Builder, Wire};

/// Bits that the S-box flips after its linear output layer: the constant of the affine map in FIPS 197.
pub(super) const AFFINE: u8 = 0x63;

/// The S-box of AES on a byte, bit 0 first.
///
/// [`Aim::Size`]: 32 ANDs, depth 6. [`Aim::Depth`]: 33 ANDs, depth 4.
pub fn sub_byte(b: &mut Builder, byte: [Wire; 8], aim: Aim) -> [Wire; 8] {
    let products = products(b, byte, aim);
    let mut out = SBOX_OUTPUT.apply(b, &products);
    flip(b, &mut out, AFFINE);
    out.try_into().expect("the output layer has eight outputs")
}

/// Flips the bits of `byte` that are set in `mask`.
pub(super) fn flip(b: &mut Builder, byte: &mut [Wire], mask: u8) {
    for (bit, wire) in byte.iter_mut().enumerate() {
        *wire = b.plus(*wire, u128::from(mask >> bit & 1));
    }
}

/// `name = left ^ right;` for XOR, `name = left & right;` for AND.
macro_rules! straight_line {
    ($b:ident; $($out:ident = $left:ident $op:tt $right:ident;)*) => {
        $(let $out = straight_line!(@ $b, $left $op $right);)*
    };
    (@ $b:ident, $left:ident ^ $right:ident) => { $b.xor($left, $right) };
    (@ $b:ident, $left:ident & $right:ident) => { $b.and($left, $right) };
}

/// The S-box up to its last multiplications: the 18 products `z0` to `z17`.
pub(super) fn products(b: &mut Builder, byte: [Wire; 8], aim: Aim) -> [Wire; 18] {
    let [x7, x6, x5, x4, x3, x2, x1, x0] = byte;
    // Input layer, then the products of the inversion in GF(2^8) as one over GF(2^4).
    straight_line! { b;
        y14 = x3 ^ x5;
        y13 = x0 ^ x6;
        y9 = x0 ^ x3;
        y8 = x0 ^ x5;
        t0 = x1 ^ x2;
        y1 = t0 ^ x7;
        y4 = y1 ^ x3;
        y12 = y13 ^ y14;
        y2 = y1 ^ x0;
        y5 = y1 ^ x6;
        y3 = y5 ^ y8;
        t1 = x4 ^ y12;
        y15 = t1 ^ x5;
        y20 = t1 ^ x1;
        y6 = y15 ^ x7;
        y10 = y15 ^ t0;
        y11 = y20 ^ y9;
        y7 = x7 ^ y11;
        y17 = y10 ^ y11;
        y19 = y10 ^ y8;
        y16 = t0 ^ y11;
        y21 = y13 ^ y16;
        y18 = x0 ^ y16;
        t2 = y12 & y15;
        t3 = y3 & y6;
        t4 = t3 ^ t2;
        t5 = y4 & x7;
        t6 = t5 ^ t2;
        t7 = y13 & y16;
        t8 = y5 & y1;
        t9 = t8 ^ t7;
        t10 = y2 & y7;
        t11 = t10 ^ t7;
        t12 = y9 & y11;
        t13 = y14 & y17;
        t14 = t13 ^ t12;
        t15 = y8 & y10;
        t16 = t15 ^ t12;
        t17 = t4 ^ y20;
        t18 = t6 ^ t16;
        t19 = t9 ^ t14;
        t20 = t11 ^ t16;
        t21 = t17 ^ t14;
        t22 = t18 ^ y19;
        t23 = t19 ^ y21;
        t24 = t20 ^ y18;
    }
    let [t29, t33, t37, t40] = match aim {
        Aim::Size => invert(b, [t21, t22, t23, t24]),
        Aim::Depth => invert_shallow(b, [t21, t22, t23, t24]),
    };
    straight_line! { b;
        t41 = t40 ^ t37;
        t42 = t29 ^ t33;
        t43 = t29 ^ t40;
        t44 = t33 ^ t37;
        t45 = t42 ^ t41;
        z0 = t44 & y15;
        z1 = t37 & y6;
        z2 = t33 & x7;
        z3 = t43 & y16;
        z4 = t40 & y1;
        z5 = t29 & y7;
        z6 = t42 & y11;
        z7 = t45 & y17;
        z8 = t41 & y10;
        z9 = t44 & y12;
        z10 = t37 & y3;
        z11 = t33 & y4;
        z12 = t43 & y13;
        z13 = t40 & y5;
        z14 = t29 & y2;
        z15 = t42 & y9;
        z16 = t45 & y14;
        z17 = t41 & y8;
    }
    [
        z0, z1, z2, z3, z4, z5, z6, z7, z8, z9, z10, z11, z12, z13, z14, z15, z16, z17,
    ]
}

/// Inversion in GF(2^4) as published: 5 ANDs, depth 4.
fn invert(b: &mut Builder, [t21, t22, t23, t24]: [Wire; 4]) -> [Wire; 4] {
    straight_line! { b;
        t25 = t21 ^ t22;
        t26 = t21 & t23;
        t27 = t24 ^ t26;
        t28 = t25 & t27;
        t29 = t28 ^ t22;
        t30 = t23 ^ t24;
        t31 = t22 ^ t26;
        t32 = t31 & t30;
        t33 = t32 ^ t24;
        t34 = t23 ^ t33;
        t35 = t27 ^ t33;
        t36 = t24 & t35;
        t37 = t36 ^ t34;
        t38 = t27 ^ t36;
        t39 = t29 & t38;
        t40 = t25 ^ t39;
    }
    [t29, t33, t37, t40]
}

/// Inversion in GF(2^4) with 6 ANDs, depth 2.
///
/// The published shallow circuit takes 7. Found by writing each output as a linear form plus one product of linear
/// forms in the inputs and in `p` and `q`; the swap of `(t21, t22)` and `(t23, t24)` swaps the outputs in pairs.
fn invert_shallow(b: &mut Builder, [t21, t22, t23, t24]: [Wire; 4]) -> [Wire; 4] {
    straight_line! { b;
        p = t21 & t23;
        q = t22 & t24;
        t25 = t21 ^ t22;
        t30 = t23 ^ t24;
        u0 = t24 ^ p;
        u1 = t25 & u0;
        t29 = u1 ^ t22;
        u2 = t22 ^ p;
        u3 = t30 & u2;
        t33 = u3 ^ t24;
        u4 = t22 ^ q;
        u5 = t23 & u4;
        u6 = t30 ^ p;
        t37 = u5 ^ u6;
        u7 = t24 ^ q;
        u8 = t21 & u7;
        u9 = t25 ^ p;
        t40 = u8 ^ u9;
    }
    [t29, t33, t37, t40]
}
