//! The small commands.

use crate::common;
use crate::common::Folder;

#[test]
fn circuits_are_made_shown_and_converted() {
    let folder = Folder::new();
    assert!(folder.succeed("circuit list").contains("adder:WIDTH"));
    folder.succeed("circuit make adder:8 --out a.txt");
    let info: serde_json::Value =
        serde_json::from_str(&folder.succeed("circuit info a.txt --json")).unwrap();
    assert_eq!(
        (info["products"].as_u64(), info["depth"].as_u64()),
        (Some(7), Some(7))
    );
    folder.succeed("circuit convert a.txt --to old --out old.txt");
    let old: serde_json::Value =
        serde_json::from_str(&folder.succeed("circuit info old.txt --json")).unwrap();
    assert_eq!(old["products"], info["products"]);
}

#[test]
fn devices_are_listed_and_none_is_simulated() {
    let folder = Folder::wages();
    let listed = folder.succeed("device list");
    for name in [
        "reference",
        "cpu-avx512",
        "cpu-avx2-vaes",
        "cpu-avx2",
        "cpu-portable",
        "cuda",
    ] {
        assert!(listed.contains(name), "{listed}");
    }
    assert!(!listed.contains("-sim"), "{listed}");
    for run in [
        "run wages.toml --device fpga-sim",
        "stats wages.toml --device ann=cuda-sim",
        "run wages.toml --device fpga-sim --processes",
        "explain wages.toml --device cuda-sim",
        "run wages.toml --link fpga-sim",
    ] {
        folder.fail(run, 2, &["simulated devices are in `veil-lab`"]);
    }
}

#[test]
fn commands_of_the_lab_are_named() {
    let folder = Folder::new();
    for (command, name) in [
        ("bench and --cores 2", "bench"),
        ("bench --help", "bench"),
        ("trace run.jsonl --json", "trace"),
        ("device check --cases 5", "device check"),
        ("device replay rec", "device replay"),
        ("circuit check a.txt b.txt", "circuit check"),
    ] {
        let said = format!("this command is `veil-lab {name}`");
        folder.fail(command, 2, &[&said]);
    }
}

#[test]
fn the_doctor_looks_at_this_machine() {
    let folder = Folder::new();
    let port = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let number = port.local_addr().unwrap().port();
    let output = folder.veil(&format!("doctor --port {number}"));
    assert_eq!(output.status.code(), Some(1));
    assert!(common::text(&output.stderr).contains("the port is in use"));
    drop(port);
    let said = folder.succeed("doctor");
    for part in [
        "processor",
        "cores",
        "memory",
        "kernel",
        "clock",
        "open files",
        "TLS on loopback  ok",
    ] {
        assert!(said.contains(part), "no `{part}` in {said}");
    }
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn the_doctor_names_the_port_of_a_home_that_another_process_holds() {
    let folder = Folder::new();
    let homes = common::homes::homes(folder.path(), &["a"]);
    let held = std::net::TcpListener::bind(homes[0].settings().listen.unwrap()).unwrap();
    let output = folder.veil("doctor --home a");
    assert_eq!(output.status.code(), Some(1));
    let said = common::text(&output.stderr);
    assert!(
        said.contains("another program holds it, or another home's service"),
        "{said}"
    );
    drop(held);
    let said = folder.succeed("doctor --home a");
    assert!(said.contains("is free, no service runs"), "{said}");
}

#[test]
fn keys_are_private_and_never_overwritten() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let print = folder.succeed("init mill --role owner --home mill");
    assert!(
        print.starts_with("vw1:") && print.trim().len() == 68,
        "{print}"
    );
    let key = folder.at("mill/identity.key");
    let mode = std::fs::metadata(&key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(folder.succeed("identity show --home mill"), print);
    folder.fail(
        "init mill --role owner --home mill",
        3,
        &["a home is never overwritten"],
    );
    std::fs::remove_file(&key).unwrap();
    folder.fail(
        "identity show --home mill",
        3,
        &["identity.key", "put the key back"],
    );
}

#[test]
fn help_and_completions_know_every_command() {
    let folder = Folder::new();
    let help = folder.succeed("--help");
    let completions = folder.succeed("completions bash");
    for command in [
        "run",
        "stats",
        "party",
        "identity",
        "explain",
        "circuit",
        "device",
        "doctor",
        "completions",
    ] {
        assert!(help.contains(&format!("  {command} ")), "{help}");
        assert!(
            completions.contains(&format!("veil__subcmd__{command}"))
                || completions.contains(&format!("veil__{command}")),
            "{command}"
        );
        assert!(
            folder
                .succeed(&format!("{command} --help"))
                .contains("Usage: veil")
        );
    }
    assert!(folder.succeed("--version").starts_with("veil 0."));
}
