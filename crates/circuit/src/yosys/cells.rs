//! The function of each cell.

use super::error::{YosysError, YosysErrorKind};
use super::json::Bit;
use super::lower::Lowering;
use super::netlist::CellRef;
use super::{choose, divide, shift, sums};
use crate::generate::{equal, less_than, less_than_signed};
use crate::{Builder, Wire};

/// Whether each bit of a cell's output is computed from one bit of each operand alone.
pub(super) fn is_bitwise(kind: &str) -> bool {
    matches!(
        kind,
        "$not" | "$pos" | "$buf" | "$and" | "$or" | "$xor" | "$xnor" | "$mux"
    )
}

/// Adds the gates of a cell, or of bit `bit` of a bitwise one.
pub(super) fn lower(
    lowering: &mut Lowering<'_>,
    at: CellRef<'_>,
    bit: usize,
) -> Result<(), YosysError> {
    let kind = at.cell.kind.as_str();
    if is_bitwise(kind) {
        return bitwise(lowering, at, bit);
    }
    if sums::is_sum(kind) {
        return sums::lower(lowering, at);
    }
    match kind {
        "$eq" | "$eqx" | "$ne" | "$nex" | "$lt" | "$le" | "$gt" | "$ge" => compare(lowering, at),
        "$reduce_and" | "$reduce_or" | "$reduce_bool" | "$reduce_xor" | "$reduce_xnor"
        | "$logic_not" | "$logic_and" | "$logic_or" => reduce(lowering, at),
        "$shl" | "$sshl" | "$shr" | "$sshr" | "$shift" | "$shiftx" => shift::lower(lowering, at),
        "$div" | "$mod" => divide::lower(lowering, at),
        "$pmux" => choose::parallel(lowering, at),
        "$bmux" => choose::binary(lowering, at),
        _ if kind.starts_with("$_") => gate(lowering, at),
        _ => Err(unknown(lowering, at)),
    }
}

fn unknown(lowering: &Lowering<'_>, at: CellRef<'_>) -> YosysError {
    let kind = YosysErrorKind::UnknownCell(at.cell.kind.clone());
    lowering.netlist.error_at(at, kind)
}

/// Brings a word to a width: cut, or extended by its sign or by zeros.
pub(super) fn extend(b: &mut Builder, word: &mut Vec<Wire>, signed: bool, width: usize) {
    let zero = b.constant_bit(false);
    let above = word.last().copied().filter(|_| signed).unwrap_or(zero);
    word.resize(width, above);
}

/// Whether the operands of a cell of two are signed.
pub(super) fn both_signed(at: CellRef<'_>) -> bool {
    at.signed("A_SIGNED") && at.signed("B_SIGNED")
}

fn bitwise(lowering: &mut Lowering<'_>, at: CellRef<'_>, bit: usize) -> Result<(), YosysError> {
    let kind = at.cell.kind.as_str();
    let signed = match kind {
        "$not" | "$pos" | "$buf" => at.signed("A_SIGNED"),
        _ => both_signed(at),
    };
    let any = kind == "$mux" && lowering.netlist.is_any(at);
    let operand = |lowering: &mut Lowering<'_>, port: &str| {
        let undefined = any && at.bits(port).get(bit) == Some(&Bit::Undefined);
        let bits = match (port, undefined) {
            ("A", true) => at.bits("B"),
            ("B", true) => at.bits("A"),
            _ => at.bits(port),
        };
        let above = bits.last().filter(|_| signed);
        match bits.get(bit).or(above) {
            Some(bit) => lowering.wire(at, *bit),
            None => Ok(lowering.b.constant_bit(false)),
        }
    };
    let x = operand(lowering, "A")?;
    let wire = match kind {
        "$not" => lowering.b.not(x),
        "$pos" | "$buf" => x,
        "$mux" => {
            let y = operand(lowering, "B")?;
            let &[condition] = at.bits("S") else {
                let what = "a condition of other than one bit";
                return Err(lowering.netlist.malformed_cell(at, what));
            };
            let condition = lowering.wire(at, condition)?;
            lowering.b.mux(condition, y, x)
        }
        _ => {
            let y = operand(lowering, "B")?;
            let b = &mut lowering.b;
            match kind {
                "$and" => b.and(x, y),
                "$or" => b.or(x, y),
                "$xor" => b.xor(x, y),
                _ => {
                    let differ = b.xor(x, y);
                    b.not(differ)
                }
            }
        }
    };
    if let Some(Bit::Net(net)) = at.bits("Y").get(bit) {
        lowering.wires.insert(*net, wire);
    }
    Ok(())
}

/// A result of one bit, in the place of a longer one.
fn drive_bit(lowering: &mut Lowering<'_>, at: CellRef<'_>, bit: Wire) -> Result<(), YosysError> {
    let mut word = vec![bit];
    extend(&mut lowering.b, &mut word, false, at.bits("Y").len());
    lowering.drive(at, &word)
}

fn compare(lowering: &mut Lowering<'_>, at: CellRef<'_>) -> Result<(), YosysError> {
    let (mut x, mut y) = (lowering.word(at, "A")?, lowering.word(at, "B")?);
    let signed = both_signed(at);
    let width = x.len().max(y.len());
    let (b, aim) = (&mut lowering.b, lowering.aim);
    extend(b, &mut x, signed, width);
    extend(b, &mut y, signed, width);
    if signed {
        // Where the sign goes on in both, once is enough.
        while let ([.., x_1, x_0], [.., y_1, y_0]) = (&x[..], &y[..])
            && x_1 == x_0
            && y_1 == y_0
        {
            x.pop();
            y.pop();
        }
    }
    let less = if signed { less_than_signed } else { less_than };
    let bit = match at.cell.kind.as_str() {
        "$eq" | "$eqx" => equal(b, &x, &y),
        "$ne" | "$nex" => {
            let same = equal(b, &x, &y);
            b.not(same)
        }
        "$lt" => less(b, &x, &y, aim),
        "$gt" => less(b, &y, &x, aim),
        "$le" => {
            let more = less(b, &y, &x, aim);
            b.not(more)
        }
        _ => {
            let less = less(b, &x, &y, aim);
            b.not(less)
        }
    };
    drive_bit(lowering, at, bit)
}

/// Whether all bits are 1, in as few rounds as can be.
pub(super) fn all(b: &mut Builder, word: &[Wire]) -> Wire {
    let ones = vec![b.constant_bit(true); word.len()];
    equal(b, word, &ones)
}

/// Whether a bit is 1.
pub(super) fn any(b: &mut Builder, word: &[Wire]) -> Wire {
    let zeros = vec![b.constant_bit(false); word.len()];
    let none = equal(b, word, &zeros);
    b.not(none)
}

fn reduce(lowering: &mut Lowering<'_>, at: CellRef<'_>) -> Result<(), YosysError> {
    let x = lowering.word(at, "A")?;
    let y = lowering.word(at, "B")?;
    let b = &mut lowering.b;
    let bit = match at.cell.kind.as_str() {
        "$reduce_and" => all(b, &x),
        "$reduce_or" | "$reduce_bool" => any(b, &x),
        "$logic_not" => {
            let any = any(b, &x);
            b.not(any)
        }
        "$logic_and" => {
            let (x, y) = (any(b, &x), any(b, &y));
            b.and(x, y)
        }
        "$logic_or" => {
            let (x, y) = (any(b, &x), any(b, &y));
            b.or(x, y)
        }
        kind => {
            let start = b.constant_bit(kind == "$reduce_xnor");
            x.iter().fold(start, |parity, &bit| b.xor(parity, bit))
        }
    };
    drive_bit(lowering, at, bit)
}

/// The gates that `simplemap` and `techmap` leave, of one bit each.
fn gate(lowering: &mut Lowering<'_>, at: CellRef<'_>) -> Result<(), YosysError> {
    let mut operands = Vec::new();
    for port in ["A", "B", "C", "D", "S"] {
        match *at.bits(port) {
            [] => {}
            [bit] => operands.push(lowering.wire(at, bit)?),
            _ => {
                return Err(lowering
                    .netlist
                    .malformed_cell(at, "an operand of several bits"));
            }
        }
    }
    let b = &mut lowering.b;
    let wire = match (at.cell.kind.as_str(), &operands[..]) {
        ("$_BUF_", &[x]) => x,
        ("$_NOT_", &[x]) => b.not(x),
        ("$_AND_", &[x, y]) => b.and(x, y),
        ("$_OR_", &[x, y]) => b.or(x, y),
        ("$_XOR_", &[x, y]) => b.xor(x, y),
        ("$_MUX_", &[x, y, s]) => b.mux(s, y, x),
        ("$_NAND_", &[x, y]) => {
            let both = b.and(x, y);
            b.not(both)
        }
        ("$_NOR_", &[x, y]) => {
            let either = b.or(x, y);
            b.not(either)
        }
        ("$_XNOR_", &[x, y]) => {
            let differ = b.xor(x, y);
            b.not(differ)
        }
        ("$_ANDNOT_", &[x, y]) => {
            let not_y = b.not(y);
            b.and(x, not_y)
        }
        ("$_ORNOT_", &[x, y]) => {
            let not_y = b.not(y);
            b.or(x, not_y)
        }
        ("$_NMUX_", &[x, y, s]) => {
            let chosen = b.mux(s, y, x);
            b.not(chosen)
        }
        _ => return Err(unknown(lowering, at)),
    };
    drive_bit(lowering, at, wire)
}
