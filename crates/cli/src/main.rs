//! The program `veil`, which is [`veil_cli::main`].

fn main() -> std::process::ExitCode {
    veil_cli::main()
}
