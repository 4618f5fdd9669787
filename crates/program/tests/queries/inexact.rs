//! What is said of functions that have no exact values.

use super::{JOB, NORTH, case};

#[test]
fn the_error_of_each_function_is_said() {
    let job = JOB.replace(
        "SELECT since, ward, pay, ok, beds FROM stays",
        "SELECT ward, round(avg(ln(nullif(abs(pay), 0))), 3) AS m, round(exp(least(sum(pay), 9)), 12) AS e \
         FROM stays WHERE round(ln(nullif(abs(pay), 0)), 0) > 2 GROUP BY ward",
    );
    let job = case(&job, NORTH).load().unwrap();
    let said = job.queries().unwrap().inexact();
    assert_eq!(
        said,
        [
            "ln in `all_stays`: at most 0.69 · 1 from the function",
            "ln in `all_stays`: at most 0.73 · 10^-6 from the function",
            "exp in `all_stays`: at most 186.29 · 10^-12 from the function",
        ]
    );
}
