//! Cells that watch a design and are no part of it: assertions and prints.

use std::collections::HashMap;

use super::json::{Bit, Direction, Module};
use super::netlist::CellRef;

/// Whether a cell asserts or prints, and gives no value.
fn watches(kind: &str) -> bool {
    matches!(
        kind,
        "$assert" | "$assume" | "$live" | "$fair" | "$cover" | "$check" | "$print"
    )
}

/// Cells of a module.
pub(super) struct Parted<'a> {
    /// The cells without the others.
    pub(super) cells: Vec<CellRef<'a>>,
    /// Assertions and prints.
    pub(super) watching: Vec<CellRef<'a>>,
}

/// Takes out assertions and prints, and with them the cells that no output depends on and one of them does: for one under a clock, Yosys
/// makes registers of its condition, which have no first values.
pub(super) fn part(module: &Module) -> Parted<'_> {
    let all = module.cells.0.iter();
    let all: Vec<_> = all.map(|(name, cell)| CellRef { name, cell }).collect();
    let (watching, cells): (Vec<_>, Vec<_>) =
        (all.into_iter()).partition(|at| watches(&at.cell.kind));
    if watching.is_empty() {
        return Parted { cells, watching };
    }
    let outputs = module.ports.0.iter().map(|(_, port)| port);
    let outputs = outputs.filter(|port| port.direction != Direction::Input);
    let computes = needed(&cells, outputs.flat_map(|port| &port.bits));
    let watched = needed(&cells, watching.iter().flat_map(|at| inputs(*at)));
    let kept = cells.into_iter().zip(computes.iter().zip(&watched));
    let kept = kept.filter(|(_, (computes, watched))| **computes || !**watched);
    Parted {
        cells: kept.map(|(at, _)| at).collect(),
        watching,
    }
}

/// The bits that a cell reads.
fn inputs(at: CellRef<'_>) -> impl Iterator<Item = &Bit> {
    let connections = at.cell.connections.0.iter();
    let inputs = connections.filter(move |(port, _)| port != at.output());
    inputs.flat_map(|(_, bits)| bits)
}

/// Which of the cells have a part in these bits, in this cycle or an earlier one.
fn needed<'a>(cells: &[CellRef<'a>], bits: impl Iterator<Item = &'a Bit>) -> Vec<bool> {
    let mut drivers: HashMap<Bit, Vec<usize>> = HashMap::new();
    for (index, at) in cells.iter().enumerate() {
        for bit in at.bits(at.output()) {
            drivers.entry(*bit).or_default().push(index);
        }
    }
    let mut needed = vec![false; cells.len()];
    let mut open = Vec::new();
    let mut reach = |bit: &Bit, open: &mut Vec<usize>| {
        // A bit that is not driven once is refused later.
        for &index in drivers.remove(bit).iter().flatten() {
            if !needed[index] {
                needed[index] = true;
                open.push(index);
            }
        }
    };
    bits.for_each(|bit| reach(bit, &mut open));
    while let Some(index) = open.pop() {
        inputs(cells[index]).for_each(|bit| reach(bit, &mut open));
    }
    needed
}

#[cfg(test)]
mod tests {
    use crate::yosys::{Options, YosysErrorKind, read};

    /// A register `q`, and another one, `$s`, that holds what a `watcher` of this kind reads.
    fn design(watcher: &str, output: u32) -> String {
        format!(
            r#"{{ "modules": {{ "m": {{
                "attributes": {{ "cycles": 3 }},
                "ports": {{
                    "clk": {{ "direction": "input", "bits": [2] }}, "x": {{ "direction": "input", "bits": [3] }},
                    "y": {{ "direction": "output", "bits": [{output}] }} }},
                "netnames": {{ "q": {{ "bits": [4], "attributes": {{ "init": "0" }} }} }},
                "cells": {{
                    "q": {{ "type": "$dff", "connections": {{ "CLK": [2], "D": [3], "Q": [4] }} }},
                    "s": {{ "type": "$dff", "attributes": {{ "src": "m.v:4" }}, "connections": {{ "CLK": [2], "D": [6], "Q": [5] }} }},
                    "n": {{ "type": "$_NOT_", "connections": {{ "A": [4], "Y": [6] }} }},
                    "watcher": {{ "type": "{watcher}", "attributes": {{ "src": "m.v:4.2-4.9" }},
                        "connections": {{ "A": [5], "EN": ["1"], "TRG": [2], "ARGS": [] }} }}
                }} }} }} }}"#
        )
    }

    #[test]
    fn assertions_are_left_out_with_what_they_alone_read() {
        for kind in ["$check", "$assert", "$print", "$cover"] {
            let made = read(design(kind, 4).as_bytes(), &Options::default()).unwrap();
            assert_eq!(made.watching, ["m.v:4"]);
            assert_eq!(made.circuit.clock.registers.len(), 1);
            // What an output depends on is no part of an assertion.
            let error = read(design(kind, 5).as_bytes(), &Options::default()).unwrap_err();
            assert_eq!(error.place.as_deref(), Some("m.v:4"));
            assert!(matches!(error.kind, YosysErrorKind::NoInitial { .. }));
        }
        let error = read(design("$other", 4).as_bytes(), &Options::default()).unwrap_err();
        assert!(matches!(error.kind, YosysErrorKind::NoInitial { .. }));
    }
}
