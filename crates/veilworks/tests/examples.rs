//! The examples, as processes.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// An example, built with the tests.
fn example(name: &str) -> Command {
    let tests = std::env::current_exe().unwrap();
    let folder: PathBuf = tests.ancestors().nth(2).unwrap().join("examples");
    Command::new(folder.join(name))
}

#[track_caller]
fn prints(mut command: Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The examples that the documentation counts lines of.
fn body(text: &str) -> usize {
    let main = text.split("fn main()").nth(1).unwrap();
    let main = main.split("\n}\n").next().unwrap();
    main.lines()
        .skip(1)
        .filter(|line| !line.trim().is_empty())
        .count()
}

#[test]
fn statistics_of_a_job_file_take_less_than_ten_lines() {
    assert!(body(include_str!("../examples/statistics.rs")) < 10);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pay.csv"), "pay\n10\n20\n60\n").unwrap();
    let job = "version = 1\nkind = \"stats\"\nname = \"pay\"\nparties = [\"a\", \"b\", \"c\"]\nowners = [\"mill\"]\nrecipients = [\"eve\"]\n\
               [[column]]\nname = \"pay\"\ntype = \"integer\"\nmin = 0\nmax = 1000\n\
               [[block]]\nname = \"mill\"\nrows = 3\nholds = { mill = [\"pay\"] }\nfiles = { mill = \"pay.csv\" }\n\
               [[analysis]]\nname = \"mean pay\"\nkind = \"mean\"\nof = \"pay\"\nto = \"eve\"\n";
    std::fs::write(folder.path().join("job.toml"), job).unwrap();
    let mut command = example("statistics");
    command.arg(folder.path().join("job.toml"));
    let text = prints(command);
    assert!(text.contains("30"), "{text}");
}

#[test]
fn two_processes_compare_their_numbers() {
    let of_two = include_str!("../examples/millionaires.rs");
    assert!(body(of_two) <= 20, "{}", body(of_two));
    for (ann, bob, expected) in [(3, 4, "ann has less"), (4, 4, "ann has as much or more")] {
        let keys = tempfile::tempdir().unwrap();
        let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let ports = [free(), free()].map(|port| port.local_addr().unwrap().to_string());
        let start = |name: &str, port: &str, fortune: i32| {
            let mut command = example("millionaires");
            command
                .arg(name)
                .arg(port)
                .arg(keys.path())
                .arg(fortune.to_string());
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let all = [start("ann", &ports[0], ann), start("bob", &ports[1], bob)];
        let said = all.map(|process| {
            let output = process.wait_with_output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{errors}");
            String::from_utf8(output.stdout).unwrap()
        });
        assert_eq!(said, [format!("{expected}\n"), "ann knows\n".to_owned()]);
    }
}

#[test]
fn a_source_and_a_sink_of_ones_own() {
    let rows = 1_u64 << 20;
    let total = (0..rows).fold(0_u64, |sum, row| {
        let square = row.wrapping_mul(row);
        sum.wrapping_add(square.wrapping_mul(square.wrapping_mul(3)))
    });
    assert_eq!(prints(example("own_ends")), format!("{total}\n"));
}
