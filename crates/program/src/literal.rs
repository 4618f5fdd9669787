//! Places of a text in the literal of TOML that it is.

use std::ops::Range;

/// The sign at a line and column of a query, in the literal of TOML that it is; nothing if the literal has escapes, so that it is not its text.
pub(crate) fn sign_in(literal: &str, line: u64, column: u64) -> Option<Range<usize>> {
    let long = literal.starts_with("\"\"\"") || literal.starts_with("'''");
    if literal.starts_with('"') && literal.contains('\\') {
        return None;
    }
    // A line break behind the opening quotes of a long literal is none of its text.
    let opening = match (long, literal.get(3..)) {
        (true, Some(rest)) if rest.starts_with("\r\n") => 5,
        (true, Some(rest)) if rest.starts_with('\n') => 4,
        (true, _) => 3,
        (false, _) => 1,
    };
    let mut start = opening;
    for _ in 1..line {
        start += literal.get(start..)?.find('\n')? + 1;
    }
    let rest = literal.get(start..)?;
    let nth = usize::try_from(column).ok()?.checked_sub(1)?;
    let (at, sign) = rest.char_indices().nth(nth)?;
    let first = start + at;
    Some(first..first + sign.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_a_query_are_found_in_its_literal() {
        let found = |literal: &str, line, column| {
            literal
                .get(sign_in(literal, line, column)?)
                .map(str::to_owned)
        };
        let all = [
            ("\"ab\"", 1, 2, Some("b")),
            ("'ab'", 1, 1, Some("a")),
            ("'éab'", 1, 1, Some("é")),
            ("'éab'", 1, 3, Some("b")),
            ("'a\\b'", 1, 3, Some("b")),
            ("\"\"\"ab\ncd\"\"\"", 1, 1, Some("a")),
            ("\"\"\"\nab\ncd\"\"\"", 2, 2, Some("d")),
            ("'''\r\nab\r\ncd'''", 2, 1, Some("c")),
            // What has escapes is not its text.
            ("\"a\\tb\"", 1, 2, None),
            ("\"ab\"", 3, 1, None),
            ("\"ab\"", 1, 90, None),
        ];
        for (literal, line, column, sign) in all {
            assert_eq!(
                found(literal, line, column).as_deref(),
                sign,
                "{literal} {line}:{column}"
            );
        }
    }
}
