//! Reading a table as a function of bytes, for a fuzzer.

use std::path::Path;

use super::{
    Column, ColumnKind, Missing,
    read::{Wanted, read_from},
    table::Cells,
};

/// For fuzzing: takes `bytes` for an owner's CSV file with a number, a number that may be missing and a category. Returns whether it was
/// accepted.
///
/// # Panics
///
/// If an accepted table has another number of rows than the job declares.
pub fn fuzz_table(bytes: &[u8]) -> bool {
    let number = |name: &str, missing| Column {
        name: name.into(),
        kind: ColumnKind::Number {
            scale: 2,
            min: -1000,
            max: 1000,
            unit: None,
        },
        missing,
    };
    let category = Column {
        name: "sex".into(),
        kind: ColumnKind::Category(vec!["f".into(), "m".into()]),
        missing: Missing::Skip,
    };
    let columns = [
        number("pay", Missing::Refuse),
        number("bonus", Missing::Skip),
        category,
    ];
    let rows = 3;
    let wanted = Wanted {
        columns: &columns,
        held: &[0, 1, 2],
        block: "all",
        rows,
    };
    let table = read_from(bytes, Path::new("table.csv"), &wanted, 3);
    if let Ok(table) = &table {
        let full = |cells: &Cells| cells.len() as u64 == rows;
        assert!(
            table.columns.iter().flatten().all(full),
            "a column has as many rows as the job declares"
        );
    }
    table.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_table_is_accepted_and_a_bad_one_refused() {
        assert!(fuzz_table(b"sex,pay,bonus\nf,1.00,\nm,-2,0.5\n,10,10\n"));
        assert!(!fuzz_table(b"sex,pay,bonus\nf,1.00,\nm,,0.5\n,10,10\n"));
    }
}
