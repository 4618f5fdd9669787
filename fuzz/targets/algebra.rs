//! The canonical text of a program, from any text: `crates/relation/tests/text.rs` damages texts without libFuzzer.

#![no_main]

use veil_relation::Program;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(program) = Program::read(text) {
        assert_eq!(program.to_string(), text);
        // Types are derived or refused; what is derived is evaluated without rows of tables, or refused.
        if program.check().is_ok() && program.check_consent().is_ok() {
            let _ = veil_relation::clear::evaluate(&program, &[]);
        }
    }
});
