//! Numbers and tables for people.

use std::fmt::Write as _;

/// A number of bytes for people.
pub fn bytes(count: u64) -> String {
    const UNITS: [(&str, f64); 4] = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    match UNITS.into_iter().find(|(_, size)| count as f64 >= *size) {
        Some((unit, size)) => format!("{:.1} {unit}", count as f64 / size),
        None => format!("{count} B"),
    }
}

/// A number of things: `1 row`, `2 rows`.
pub fn count(number: u64, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

/// A time for people.
pub fn seconds(time: f64) -> String {
    match time {
        t if t < 0.01 => format!("{:.2} ms", t * 1e3),
        t if t < 1.0 => format!("{:.0} ms", t * 1e3),
        t if t < 120.0 => format!("{t:.1} s"),
        t => format!("{:.0} min", t / 60.0),
    }
}

/// Rows of cells in columns of equal width.
pub fn columns(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let mut text = String::new();
    for row in rows {
        let mut line = String::from(" ");
        for (column, cell) in row.iter().enumerate() {
            let _ = write!(line, " {cell:<width$} ", width = width(column));
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
