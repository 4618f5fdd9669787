//! Results that are known beforehand: those of a textbook, and those of a long and simple table.

use std::fmt::Write as _;

use veil_math::Ring;

use crate::common::Case;
use crate::stats::{HEAD, close, figures, job, value};

/// The job of Longley's table with one regression, and the table.
pub(super) fn longley(more: &str) -> Case {
    const DATA: [(i64, &str, i64, i64, i64, i64, i64); 16] = [
        (60323, "83.0", 234_289, 2356, 1590, 107_608, 1947),
        (61122, "88.5", 259_426, 2325, 1456, 108_632, 1948),
        (60171, "88.2", 258_054, 3682, 1616, 109_773, 1949),
        (61187, "89.5", 284_599, 3351, 1650, 110_929, 1950),
        (63221, "96.2", 328_975, 2099, 3099, 112_075, 1951),
        (63639, "98.1", 346_999, 1932, 3594, 113_270, 1952),
        (64989, "99.0", 365_385, 1870, 3547, 115_094, 1953),
        (63761, "100.0", 363_112, 3578, 3350, 116_219, 1954),
        (66019, "101.2", 397_469, 2904, 3048, 117_388, 1955),
        (67857, "104.6", 419_180, 2822, 2857, 118_734, 1956),
        (68169, "108.4", 442_769, 2936, 2798, 120_445, 1957),
        (66513, "110.8", 444_546, 4681, 2637, 121_950, 1958),
        (68655, "112.6", 482_704, 3813, 2552, 123_366, 1959),
        (69564, "114.2", 502_601, 3931, 2514, 125_368, 1960),
        (69331, "115.7", 518_173, 4806, 2572, 127_852, 1961),
        (70551, "116.9", 554_894, 4007, 2827, 130_081, 1962),
    ];
    let mut table = String::from("employed,deflator,gnp,unemployed,forces,people,year\n");
    for (y, a, b, c, d, e, f) in DATA {
        writeln!(table, "{y},{a},{b},{c},{d},{e},{f}").unwrap();
    }
    let names = [
        "employed",
        "deflator",
        "gnp",
        "unemployed",
        "forces",
        "people",
        "year",
    ];
    let columns = names.map(|name| {
        let kind = if name == "deflator" {
            "type = \"decimal\"\nscale = 1"
        } else {
            "type = \"integer\""
        };
        format!("[[column]]\nname = \"{name}\"\n{kind}\nmin = 0\nmax = 1000000\n")
    });
    let columns = columns.concat();
    let job = format!(
        "{HEAD}{columns}
        [[block]]
        name = \"all\"
        rows = 16
        holds = {{ a = {names:?} }}
        files = {{ a = \"longley.csv\" }}
        [[analysis]]
        name = \"longley\"
        kind = \"regression\"
        of = \"employed\"
        on = {:?}
        to = \"press\"
        {more}",
        &names[1..]
    );
    Case::new(&[("job.toml", &job), ("longley.csv", &table)])
}

/// Longley, "An appraisal of least squares programs for the electronic computer from the point of view of the user",
/// JASA 62, 1967: so ill-conditioned that programs in single precision get no digit right. Certified values: NIST
/// Statistical Reference Datasets.
#[test]
fn longley_is_exact() {
    let result = longley("").statistics();
    let found = figures(&result, "longley", &[]);
    for (name, estimate, error) in [
        ("intercept", -3_482_258.634_595_82, 890_420.383_607_373),
        ("deflator", 15.061_872_271_373_3, 84.914_925_774_766_9),
        ("gnp", -0.358_191_792_925_910e-1, 0.334_910_077_722_432e-1),
        ("unemployed", -2.020_229_803_816_83, 0.488_399_681_651_699),
        ("forces", -1.033_226_867_173_59, 0.214_274_163_161_675),
        ("people", -0.511_041_056_535_807e-1, 0.226_073_200_069_370),
        ("year", 1_829.151_464_613_55, 455.478_499_142_212),
    ] {
        let figure = found.iter().find(|figure| figure.name == name).unwrap();
        let same = |got: f64, want: f64| (got - want).abs() <= 1e-13 * want.abs();
        assert!(
            same(figure.estimate.value().unwrap(), estimate),
            "{figure:?} {estimate}"
        );
        assert!(
            same(figure.standard_error.unwrap(), error),
            "{figure:?} {error}"
        );
    }
    assert!(close(&value(found, "R squared"), 0.995_479_004_577_296));
    assert!(close(
        &value(found, "residual standard error"),
        304.854_073_561_965
    ));
}

#[test]
fn a_million_rows_are_light() {
    let mut numbers = String::from("x,y\n");
    let mut kinds = String::from("h,g\n");
    for i in 0..1_000_000 {
        writeln!(numbers, "{}.{},{}", i % 1000, i % 10, i % 7).unwrap();
        kinds.push_str(["k,u\n", "l,u\n", "m,v\n"][i % 3]);
    }
    let analyses = "[[analysis]]\nname = \"all\"\nkind = \"variance\"\nof = \"x\"\nby = \"g\"\nto = \"press\"\n";
    let case = Case::new(&[
        ("job.toml", &job([999_999, 1], "refuse", 1000, analyses)),
        ("a1.csv", &numbers[..numbers.len() - "999.9,0\n".len()]),
        ("b1.csv", &kinds[..kinds.len() - 4]),
        ("a2.csv", "x,y\n999.9,0\n"),
        ("c2.csv", "h,g\nk,u\n"),
    ]);
    assert_eq!(case.load().unwrap().spec().circuit.ring, Ring::Z64);
    let result = case.statistics();
    let count = |group: &str| value(figures(&result, "all", &[group]), "count").value();
    assert_eq!((count("u"), count("v")), (Some(666_667.0), Some(333_333.0)));
}
