//! Reading a table as a function of bytes, for a fuzzer.

use std::path::Path;

use super::{Count, Input, Reader, Table, Wanted};
use crate::stats::{Column, ColumnKind, Marks, Missing};

/// For fuzzing: takes `bytes` for an owner's table in the format that `name` says, with a number, a number that may be
/// missing, a category and a date. Returns whether it was accepted.
///
/// # Panics
///
/// If an accepted table has another number of rows than the job declares, or is not the same when it is read again.
pub fn fuzz_table(name: &str, bytes: &[u8]) -> bool {
    let number = |name: &str, missing| Column {
        name: name.into(),
        kind: ColumnKind::Number {
            scale: 2,
            min: -1000,
            max: 1000,
            unit: None,
            marks: Marks::default(),
        },
        missing,
    };
    let category = Column {
        name: "sex".into(),
        kind: ColumnKind::Category(vec!["f".into(), "m".into()]),
        missing: Missing::DropPair,
    };
    let date = Column {
        name: "since".into(),
        kind: ColumnKind::Date {
            min: 0,
            max: 40_000,
            format: None,
        },
        missing: Missing::DropRow,
    };
    let columns = [
        number("pay", Missing::Refuse),
        number("bonus", Missing::Zero),
        category,
        date,
    ];
    let wanted = Wanted {
        padded: false,
        readers: (columns.iter().enumerate())
            .map(|(index, column)| Reader::new(index, column))
            .collect(),
        kind: "block",
        name: "all",
        rows: Count::Exact(3),
        alone: false,
        delimiter: b',',
        order: None,
    };
    let table = Table::read(Path::new(name), Input::memory(bytes), &wanted, &|_, _| {});
    let Ok(table) = table else { return false };
    let (chunk, _) = table.at(0).expect("bytes in memory do not change");
    assert!(
        table.rows() == 3 && chunk.columns.iter().all(|cells| cells.len() == 3),
        "a column has as many rows as the job declares"
    );
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_table_is_accepted_and_a_bad_one_refused() {
        let fuzz = |text: &str| fuzz_table("table.csv", text.as_bytes());
        assert!(fuzz(
            "sex,pay,bonus,since\nf,1.00,,2020-01-01\nm,-2,0.5,\n,10,10,1990-12-31\n"
        ));
        assert!(!fuzz(
            "sex,pay,bonus,since\nf,1.00,,2020-01-01\nm,,0.5,\n,10,10,1990-12-31\n"
        ));
    }
}
