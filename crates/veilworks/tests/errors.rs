//! What a caller gets wrong, and what it is told.

use veilworks::{
    Builder, Code, Computation, Error, Identity, Job, Local, Participant, Per, Ring, Values, make,
};

use crate::local::both;

#[track_caller]
fn says<T>(result: Result<T, Error>, code: Code, message: &str, help: &str) {
    let Err(error) = result else {
        panic!("it is not refused");
    };
    assert_eq!(
        (error.code(), error.to_string().as_str(), error.help()),
        (code, message, help)
    );
}

fn comparison() -> Computation {
    Computation::new("comparison", make("lt:8").unwrap()).parties(["a", "b", "c"])
}

#[test]
fn ports_have_one_owner_and_one_recipient_each() {
    let inputs = "the circuit's inputs are: x, y";
    let whole = || comparison().input("x", "ann").input("y", "bob");
    says(
        comparison()
            .input("x", "ann")
            .output("out", "eve", "less")
            .job(),
        Code::Input,
        "the input `y` has no owner",
        inputs,
    );
    says(
        whole().input("x", "bob").output("out", "eve", "less").job(),
        Code::Input,
        "the input `x` has two owners",
        inputs,
    );
    says(
        whole().input("z", "bob").output("out", "eve", "less").job(),
        Code::Input,
        "the circuit has no input `z`",
        inputs,
    );
    says(
        whole().job(),
        Code::Input,
        "the output `out` has no recipient",
        "the circuit's outputs are: out",
    );
    let two = whole()
        .output("out", "eve", "less")
        .output("out", "a", "less");
    says(
        two.job(),
        Code::Input,
        "the output `out` has two recipients",
        "the circuit's outputs are: out",
    );
}

#[test]
fn protocols_are_for_two_three_or_four_parties() {
    for parties in [&["a"][..], &["a", "b", "c", "d", "e"][..], &[]] {
        let job = comparison().parties(parties.iter().copied()).job();
        let message = format!(
            "`comparison` has {} parties, and protocols are for two, three or four",
            parties.len()
        );
        says(job, Code::Input, &message, "");
    }
    // Between two parties there are circuits of bits alone.
    let mut circuit = Builder::new(Ring::Z64);
    let x = circuit.input("x", 1, Per::Row);
    circuit.output("y", &x);
    let job = Computation::new("numbers", circuit.finish().unwrap()).parties(["a", "b"]);
    let error = job.input("x", "a").output("y", "b", "x").job().unwrap_err();
    assert_eq!(error.code(), Code::Input);
    assert!(
        error.to_string().starts_with("the job cannot be planned: "),
        "{error}"
    );
}

#[test]
fn values_are_as_many_and_as_wide_as_their_port_takes() {
    let job = comparison()
        .input("x", "ann")
        .input("y", "ann")
        .output("out", "eve", "less")
        .rows(2)
        .job()
        .unwrap();
    let run = |values: Values| Local::of(&job).values("ann", values).run();
    let y = || Values::new().integers("y", [1_u32, 2]);
    says(
        run(y().integers("x", [1_u32])),
        Code::Input,
        "input `x` has 8 values for 2 rows of 8 wires",
        "",
    );
    says(
        run(y().integers("x", [1_u32, 256])),
        Code::Input,
        "a value of input `x` has more than 8 bits",
        "",
    );
    says(
        run(y().elements("x", [2_u32; 16])),
        Code::Input,
        "a value of input `x` has more than 1 bits",
        "",
    );
    says(
        run(y().integers("z", [1_u32, 2])),
        Code::Input,
        "the job has no input `z`",
        "",
    );
    // A port without values is asked for when the run needs it.
    let error = run(y()).unwrap_err();
    assert_eq!(error.code(), Code::Input);
    assert!(error.to_string().starts_with("ann: "), "{error}");
    let help = "give them with `values`, or a source of your own with `source`";
    says(
        Local::of(&job).run(),
        Code::Usage,
        "`ann` supplies values, and none were given for it",
        help,
    );
}

#[test]
fn names_without_a_part_in_the_job_are_refused() {
    let job = both(Ring::Z64, 3, 1);
    let message = "`carl` has no part in the job; its participants are `a`, `b`, `c`, `ann`, `eve`";
    says(
        Local::of(&job).values("carl", Values::new()).run(),
        Code::Input,
        message,
        "",
    );
    says(
        Participant::new(&job, "carl", Identity::generate().unwrap()).run(),
        Code::Input,
        message,
        "",
    );
}

#[test]
fn a_party_has_an_address_and_knows_the_others() {
    let job = both(Ring::Z64, 3, 1);
    let key = || Identity::generate().unwrap();
    let alone = Participant::new(&job, "c", key());
    let error = alone.clone().run().unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("party 0 of the job, `a`, is no member here"),
        "{error}"
    );
    let known = ["a", "b", "ann", "eve"]
        .into_iter()
        .fold(alone, |one, name| {
            one.knows(name, key().fingerprint(), Some("127.0.0.1:1"))
        });
    says(
        known.run(),
        Code::Usage,
        "`c` computes, and has no address to listen on",
        "give one with `listen`",
    );
}

#[test]
fn a_job_file_is_refused_at_the_place_that_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.toml");
    std::fs::write(
        &file,
        "version = 1\nkind = \"circuit\"\nname = \"x\"\nsurprise = 3\n",
    )
    .unwrap();
    let error = Job::read(&file).unwrap_err();
    assert_eq!(error.code(), Code::Input);
    let excerpt = error.excerpt().unwrap();
    assert!(
        excerpt.text[excerpt.span.clone()].contains("surprise"),
        "{excerpt:?}"
    );
    let error = Job::read(folder.path().join("none.toml")).unwrap_err();
    assert!(error.to_string().contains("cannot read the job"), "{error}");
    assert_eq!((error.code(), error.excerpt()), (Code::Input, None));
}
