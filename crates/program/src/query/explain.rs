//! What queries open and use, in sentences.

use veil_physical::Opening;

/// A number of things: `1 row`, `2 rows`.
fn count(number: u32, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

/// What is opened, as a sentence.
pub(super) fn sentence(opening: &Opening) -> String {
    match opening {
        Opening::Rows {
            step,
            rows,
            columns,
            min_rows,
            to: _,
        } => {
            let least = match min_rows {
                0 | 1 => String::new(),
                least => format!(", without groups of fewer than {}", count(*least, "row")),
            };
            format!(
                "`{step}`: up to {} of {}{least}",
                count(*rows, "row"),
                columns.join(", ")
            )
        }
        Opening::Duplicates { of } => {
            format!("one bit: whether a key of {of} occurs twice; the run ends if it does")
        }
        Opening::Overflow { of, rows, ends } => format!(
            "one bit: whether {of} has more than {}{}",
            count(*rows, "row"),
            if *ends {
                "; the run ends if it has"
            } else {
                ""
            }
        ),
        Opening::Unsorted { table } => format!(
            "one bit: whether rows of {table} are not in the order that its owner says; the run ends if they are not"
        ),
        Opening::Permutations { count: number } => format!(
            "{}, uniform whatever the values are",
            count(*number, "permutation")
        ),
    }
}
