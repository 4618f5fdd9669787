//! Generated circuits are the same on every machine and in every version, or the manifest says that they changed.

#[path = "../examples/manifest.rs"]
#[allow(dead_code, reason = "its main is not called here")]
mod example;

#[test]
fn generated_circuits_are_those_of_the_manifest() {
    let known = include_str!("../../../circuits/manifest.json");
    assert!(
        example::manifest() == known,
        "a generated circuit changed, and with it the plan hash of every job that uses it; if that is meant, run \
         `cargo run -p veil-circuit --example manifest > circuits/manifest.json`"
    );
}
