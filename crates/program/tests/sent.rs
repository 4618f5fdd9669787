//! Jobs that another participant sends: nothing of this machine is opened, and a refusal says nothing of it.

use std::process::Command;

use veil_program::{Files, Job, JobProblem, Sent};

const ADDER: &str = "1 3\n2 1 1\n1 1\n2 1 0 1 2 XOR\n";

fn text(circuit: &str, input: &str) -> String {
    format!(
        "version = 1\nkind = \"circuit\"\nname = \"x\"\nowners = [\"a\"]\nparties = [\"p\", \"q\", \"r\"]\nrecipients = [\"c\"]\n\
         circuit = {{ {circuit} }}\n\
         input = [{{ port = \"in0\", owner = \"a\", format = \"hex\" }},\n         {{ port = \"in1\", owner = \"a\", format = \"hex\"{input} }}]\n\
         output = [{{ port = \"out0\", to = \"c\", format = \"hex\", file = \"f\" }}]\n"
    )
}

fn stats(files: &str) -> String {
    format!(
        "version = 1\nkind = \"stats\"\nname = \"x\"\nowners = [\"a\"]\nparties = [\"p\", \"q\", \"r\"]\nrecipients = [\"c\"]\n\
         column = [{{ name = \"pay\", type = \"integer\", min = 0, max = 9 }}]\n\
         block = [{{ name = \"all\", rows = 2, holds = {{ a = [\"pay\"] }}, {files} }}]\n\
         analysis = [{{ name = \"pay\", kind = \"sum\", of = \"pay\", to = \"c\" }}]\n"
    )
}

fn sent(name: &str) -> Sent {
    Sent::from([(name.to_owned(), ADDER.into())])
}

fn refused(text: &str, files: &Sent) -> String {
    Job::sent(text, files).unwrap_err().for_sender()
}

#[test]
fn a_job_with_its_circuit_is_read_from_what_was_sent() {
    let named = text("file = \"xor.txt\", rows = 2", ", file = \"a/in1.hex\"");
    let job = Job::sent(&named, &sent("xor.txt")).unwrap();
    assert_eq!(job.spec().rows(), 2);
    // What the job says of data is not where they are.
    assert!(job.data().iter().all(|data| data.path.is_none()));
    let holder = job.holders()[0];
    let error = job.source(holder).err().unwrap().to_string();
    assert!(error.starts_with("no file is given for input"), "{error}");
    let given = Files::from([(("a".to_owned(), "in1".to_owned()), "here.hex".into())]);
    let job = Job::kept(&named, &sent("xor.txt"), given).unwrap();
    let paths: Vec<_> = job.data().into_iter().map(|data| data.path).collect();
    assert_eq!(paths, [None, Some("here.hex".into())]);
}

#[test]
fn no_file_of_this_machine_is_opened_for_it_or_quoted() {
    let folder = tempfile::tempdir().unwrap();
    // A reader that opened this one would wait for ever.
    let fifo = folder.path().join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    std::fs::write(folder.path().join("key"), "-----BEGIN SECRET-----\n").unwrap();
    std::env::set_current_dir(folder.path()).unwrap();
    let fifo = fifo.display().to_string();
    let outside = [
        "/etc/passwd",
        "/proc/self/environ",
        "/dev/zero",
        "../x",
        "a/../../x",
        "./key",
        &fifo,
    ];
    for path in outside {
        let circuit = text(&format!("file = \"{path}\", rows = 2"), "");
        assert_eq!(
            refused(&circuit, &Sent::new()),
            "the job file:7:20: `file` under [circuit] is no plain name: it is sent along, so move it beside the job file",
            "{path}"
        );
        if path == "./key" {
            continue;
        }
        let why = "leads out of the folder of the job: the owner that reads a data file says itself where it is, with `--data`; write a plain \
                   name, or leave it out";
        let input = text(
            "make = \"adder:1\", rows = 2",
            &format!(", file = \"{path}\""),
        );
        let said = refused(&input, &Sent::new());
        assert_eq!(said, format!("the job file:9:62: `file` {why}"), "{path}");
        let block = stats(&format!("files = {{ a = \"{path}\" }}"));
        let said = refused(&block, &Sent::new());
        assert_eq!(said, format!("the job file:8:75: `files` {why}"), "{path}");
    }
    // Nor those that have a plain name here.
    for name in ["fifo", "key", "absent"] {
        let circuit = text(&format!("file = \"{name}\", rows = 2"), "");
        let said = refused(&circuit, &Sent::new());
        let why = format!(
            "the job file:7:20: the file `{name}` was not sent along with the job; propose both with `veil submit`"
        );
        assert_eq!(said, why);
        let rows = text("file = \"xor.txt\"", &format!(", file = \"{name}\""));
        let said = refused(&rows, &sent("xor.txt"));
        assert_eq!(
            said,
            "the job file:7:11: a proposed job declares `rows = …` under [circuit]: no participant that plans it counts the rows of data files"
        );
    }
}

#[test]
fn files_that_the_job_does_not_name_are_refused() {
    for circuit in [
        "make = \"adder:1\", rows = 2",
        "file = \"xor.txt\", rows = 2",
    ] {
        let mut files = sent("xor.txt");
        files.insert("more.bin".into(), vec![0; 9]);
        let error = Job::sent(&text(circuit, ""), &files).unwrap_err();
        assert!(matches!(*error.problem, JobProblem::NotNamed(_)), "{error}");
        assert!(
            error
                .for_sender()
                .starts_with("the job file:3:8: the file `"),
            "{error}"
        );
    }
}
