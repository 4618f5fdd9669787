//! What the job claims of an owner's table, and that weights of networks are within their bounds, looked at where the table is. Parties check it again, on shares: an owner may lie.

use std::fmt::Write as _;
use std::path::Path;

use veil_job::DataError;
use veil_relation::network::Block;
use veil_relation::{ColumnId, Kind, Table, Value, WeightsUse};

use super::show;
use super::source::OwnTable;
use crate::table::{CellFault, Keys, Place, Problems};

/// Between the cells of a claim's row. A cell that has it in itself is quoted, so that the texts of different rows differ.
const BETWEEN: &str = " and ";

fn names(of: &Table, columns: &[ColumnId]) -> Vec<String> {
    let names = columns.iter();
    names
        .map(|column| of.columns[column.index()].name.clone())
        .collect()
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

/// Looks at all claims, and at the weights of networks that its rows are. A table that is sorted by digests is put in their order: no file has it.
pub(super) fn check(
    own: &mut OwnTable,
    weights: &[WeightsUse],
    file: &Path,
) -> Result<(), DataError> {
    for of in weights {
        are_within_bounds(own, of, file)?;
    }
    let sorted = own.of().sorted_by.clone();
    let columns = &own.of().columns;
    let by_digest = |column: &ColumnId| matches!(columns[column.index()].ty.kind, Kind::Key { .. });
    if sorted.iter().any(by_digest) {
        put_in_order(own, &sorted)?;
    } else if !sorted.is_empty() {
        is_sorted(own, &sorted, file)?;
    }
    for claim in own.of().unique.clone() {
        is_unique(own, &claim, file)?;
    }
    Ok(())
}

fn put_in_order(own: &mut OwnTable, by: &[ColumnId]) -> Result<(), DataError> {
    let mut keys: Vec<Vec<Value>> = Vec::new();
    own.each(by, |_, cells| keys.push(cells.to_vec()))?;
    let mut order: Vec<u32> = (0..own.rows() as u32).collect();
    order.sort_by(|a, b| keys[*a as usize].cmp(&keys[*b as usize]));
    own.put_in_order(&order)
}

fn is_sorted(own: &OwnTable, by: &[ColumnId], file: &Path) -> Result<(), DataError> {
    let names = names(own.of(), by);
    let mut problems = Problems::default();
    let mut last: Option<Vec<Value>> = None;
    own.each(by, |row, cells| {
        if last.as_deref().is_some_and(|last| last > cells) {
            let place = Place {
                line: None,
                row: row + 1,
            };
            let claim = quoted(&names);
            let text = text(own.of(), by, cells);
            let fault = CellFault::NotSorted { claim };
            problems.cell(place, &names.join("`, `"), text.as_bytes(), fault);
        }
        last = Some(cells.to_vec());
    })?;
    problems.none(file)
}

fn is_unique(own: &OwnTable, columns: &[ColumnId], file: &Path) -> Result<(), DataError> {
    let names = names(own.of(), columns);
    let mut keys = Keys::new(own.rows());
    loop {
        own.each(columns, |row, cells| {
            // A null equals nothing.
            if !cells.contains(&Value::Null) {
                let place = Place {
                    line: None,
                    row: row + 1,
                };
                keys.push(place, text(own.of(), columns, cells).as_bytes());
            }
        })?;
        if !keys.again() {
            break;
        }
    }
    let fault = |first: Place| CellFault::NotUnique {
        row: first.row,
        claim: format!("[{}]", quoted(&names)),
    };
    keys.problems(&names.join("`, `"), fault).none(file)
}

/// Each number is within the bound of its layer.
fn are_within_bounds(own: &OwnTable, of: &WeightsUse, file: &Path) -> Result<(), DataError> {
    let column = [of.column];
    let names = names(own.of(), &column);
    let kind = &own.of().columns[of.column.index()].ty.kind;
    let mut problems = Problems::default();
    own.each(&column, |row, cells| {
        let has = |block: &&Block| row < u64::from(block.first) + u64::from(block.count);
        let (Some(block), Some(Value::Number(number))) =
            (of.blocks.iter().find(has), cells.first())
        else {
            return;
        };
        if block.range().contains(*number) {
            return;
        }
        let place = Place {
            line: None,
            row: row + 1,
        };
        let fault = CellFault::Weight {
            what: if block.bias { "bias" } else { "weight" },
            layer: block.layer,
            network: of.network.clone(),
            most: show::cell(kind, Value::Number(block.most.into())),
        };
        let text = text(own.of(), &column, cells);
        problems.cell(place, &names.join("`, `"), text.as_bytes(), fault);
    })?;
    problems.none(file)
}

/// The cells of some columns, as text that differs where they differ.
fn text(of: &Table, columns: &[ColumnId], cells: &[Value]) -> String {
    let mut text = String::new();
    for (column, cell) in columns.iter().zip(cells) {
        let kind = &of.columns[column.index()].ty.kind;
        if !text.is_empty() {
            text += BETWEEN;
        }
        let cell = show::cell(kind, *cell);
        if columns.len() > 1 && (cell.contains(BETWEEN) || cell.starts_with('"')) {
            let _ = write!(text, "{cell:?}");
        } else {
            text += &cell;
        }
    }
    text
}
