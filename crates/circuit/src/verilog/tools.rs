//! The programs.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use super::error::VerilogError;

/// A program that is called.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tool {
    /// Synthesis.
    Yosys,
    /// The compiler of Icarus Verilog.
    Icarus,
    /// What runs its programs.
    Vvp,
}

impl Tool {
    fn program(self) -> &'static str {
        match self {
            Tool::Yosys => "yosys",
            Tool::Icarus => "iverilog",
            Tool::Vvp => "vvp",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Tool::Yosys => "yosys",
            Tool::Icarus | Tool::Vvp => "iverilog",
        }
    }

    /// Whether it can be started.
    pub(super) fn is_installed(self) -> bool {
        Command::new(self.program()).arg("-V").output().is_ok()
    }

    /// Runs it; returns what it printed, or what it complained about.
    pub(super) fn run(self, arguments: &[OsString]) -> Result<Vec<u8>, VerilogError> {
        let program = self.program();
        let output = Command::new(program).args(arguments).output();
        let output = output.map_err(|error| match error.kind() {
            ErrorKind::NotFound => VerilogError::Missing {
                program,
                package: self.package(),
            },
            _ => VerilogError::Run { program, error },
        })?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = [output.stderr, output.stdout].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        Err(VerilogError::Refused {
            program,
            message: complaint(&said)
                .unwrap_or_else(|| format!("{program} failed: {}", output.status)),
        })
    }
}

/// The first error in what a program says, or else its first line, with a small beginning.
fn complaint(said: &str) -> Option<String> {
    let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().find(|line| line.to_ascii_lowercase().contains("error"));
    let line = error.or_else(|| lines().next())?;
    Some(line.replacen("ERROR: ", "", 1).replacen("error: ", "", 1))
}

/// The same where the argument is a pattern of file names, as Yosys has it: one that only this file fits.
pub(super) fn as_pattern(file: &Path) -> OsString {
    let operand = as_operand(file);
    let Some(text) = operand.to_str() else {
        return operand;
    };
    let special = |letter: char| ['*', '?', '[', '\\'].contains(&letter);
    let escaped = text
        .chars()
        .flat_map(|letter| special(letter).then_some('\\').into_iter().chain([letter]));
    escaped.collect::<String>().into()
}

/// A file as an argument that is not taken for an option, for standard input or for a command.
pub(super) fn as_operand(file: &Path) -> OsString {
    let text = file.to_string_lossy();
    match text.chars().next() {
        Some('/' | '.') => file.into(),
        _ => Path::new(".").join(file).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_one_file_alone() {
        let pattern = |file: &str| as_pattern(Path::new(file));
        assert_eq!(pattern("a.v"), "./a.v");
        assert_eq!(pattern("/tmp/a[1].v"), "/tmp/a\\[1].v");
        assert_eq!(pattern("a*?\\.v"), "./a\\*\\?\\\\.v");
    }
}
