//! What a job says of its security, in its file and beside it.

use veil_job::{Adversary, Delivery, ProtocolKind};
use veil_program::{Files, Job, Words};

/// What is chosen beside a job stands in the text that is sent and filed: a party that reads only this has the same job.
#[test]
fn a_job_with_words_beside_it_is_written_with_them() {
    let read = |text: &str| Job::parse(text, "job.toml".as_ref(), Files::new()).unwrap();
    let text = "# of four\nversion = 1\nkind = \"circuit\"\nadversary = \"malicious\"\nname = \"x\"\nowners = [\"a\"]\n\
        parties = [\"p\", \"q\", \"r\", \"s\"]\nrecipients = [\"c\"]\ncircuit = { make = \"adder:4\", rows = 1 }\n\
        input = [{ port = \"x\", owner = \"a\", format = \"hex\" }, { port = \"y\", owner = \"a\", format = \"hex\" }]\n\
        output = [{ port = \"out\", to = \"c\", format = \"hex\", file = \"f\" }]\n";
    let mut job = read(text);
    assert_eq!(job.written(text), text);
    let words = Words {
        protocol: Some(ProtocolKind::Rep4),
        adversary: Some(Adversary::Malicious),
        delivery: Some(Delivery::Guaranteed),
        ..Words::default()
    };
    job.choose(words).unwrap();
    assert_eq!(job.spec().security.delivery, Delivery::Guaranteed);
    let written = job.written(text);
    assert_eq!(
        written,
        format!("protocol = \"rep4\"\ndelivery = \"guaranteed\"\n{text}")
    );
    assert_eq!(read(&written).spec(), job.spec());
    let semi_honest = Words {
        adversary: Some(Adversary::SemiHonest),
        ..Words::default()
    };
    assert!(job.choose(semi_honest).is_err());
}
