//! Table 3: a line for each netlist, with all cores beside each other.

use super::{IN_ORDER, Measured, ROWS};

/// Columns of a core's cycles.
const WIDTH: usize = 10;

fn columns(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.map(|cell| format!("{cell:>WIDTH$}")).collect();
    cells.concat()
}

/// Heads of all columns.
pub(super) fn head() {
    let wide = WIDTH * ROWS.len();
    println!(
        "clock cycles   netlist     table 3 of the paper   {:<wide$}  {:<wide$}  with two rows",
        "   in order, as the paper's", "   scheduled"
    );
    let of = |rows: [u32; 4]| columns(rows.into_iter().map(|rows| format!("N = {rows}")));
    println!(
        "netlist         cycles       FASE      N = 2   {}   {}      bound  of bound  of paper",
        of(IN_ORDER),
        of(ROWS),
    );
}

/// A netlist on all cores.
pub(super) fn line(all: &[Measured]) {
    let Some(two) = find(all, "scheduled", 2) else {
        return;
    };
    let of = |core: &'static str, rows: [u32; 4]| {
        columns(rows.into_iter().map(|rows| {
            find(all, core, rows).map_or_else(String::new, |m| match m.cycles {
                Some(cycles) => cycles.to_string(),
                None => format!("({})", m.scheduled),
            })
        }))
    };
    println!(
        "{:<14} {:>7} {:>10} {:>10}   {}   {} {:>10} {:>8.2}x {:>9.2}",
        two.netlist,
        two.netlist_cycles,
        two.paper_fase,
        two.paper_two_rows,
        of("in-order", IN_ORDER),
        of("scheduled", ROWS),
        two.bound,
        two.taken() as f64 / two.bound as f64,
        two.taken() as f64 / two.paper_two_rows as f64,
    );
}

fn find<'a>(all: &'a [Measured], core: &str, rows: u32) -> Option<&'a Measured> {
    all.iter().find(|m| m.core == core && m.rows == rows)
}

/// Says what the numbers in parentheses are.
pub(super) fn absent(all: &[Measured]) {
    if all.iter().any(|m| m.cycles.is_none()) {
        println!(
            "\n(in parentheses: by the rule of the paper's design, or by the schedule alone, as this build has no such core; VEIL_RTL_ROWS=1,2,3,4,8 builds all of them, where Verilator is there)"
        );
    }
}
