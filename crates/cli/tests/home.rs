//! Homes on the command line: from `veil init` to an approved job, and every mistake on the way.

use crate::common;
use std::fs;
use std::process::Command;

use crate::common::{Folder, text};

/// Runs `veil`, which must succeed, and gives what it said on standard error.
fn said(folder: &Folder, arguments: &str) -> String {
    let output = folder.veil(arguments);
    assert!(
        output.status.success(),
        "veil {arguments}: {}",
        text(&output.stderr)
    );
    text(&output.stderr)
}

/// Runs `veil`, which must fail with this code and say all of `parts`.
fn refused(folder: &Folder, arguments: &str, code: i32, parts: &[&str]) {
    let output = folder.veil(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "veil {arguments}: {said}");
    for part in parts {
        assert!(
            said.contains(part),
            "veil {arguments} does not say `{part}` but:\n{said}"
        );
    }
}

/// Three homes: `ann` and `bob`, who are members of each other, and `carol`, a stranger.
fn members() -> Folder {
    let folder = Folder::wages();
    folder.succeed("init ann --role party --home a --address 127.0.0.1:7000");
    folder.succeed("init bob --role party --home b --listen 127.0.0.1:7001");
    folder.succeed("init carol --role party --home c");
    let invitation = folder.succeed("invite bob --role party --home a");
    let answer = folder.succeed(&format!("join {} --home b", invitation.trim()));
    folder.succeed(&format!("join {} --home a", answer.trim()));
    folder
}

#[test]
fn two_participants_become_members_by_two_strings() {
    let folder = members();
    let print = folder.succeed("identity show --home b");
    assert!(print.starts_with("vw1:") && print.len() == 69, "{print}");
    let listed = folder.succeed("members --home a");
    assert!(
        listed.contains("bob") && listed.contains(print.trim()) && listed.contains("dials out"),
        "{listed}"
    );
    let listed: serde_json::Value =
        serde_json::from_str(&folder.succeed("members --home b --json")).unwrap();
    assert_eq!(listed["members"][0]["address"], "127.0.0.1:7000");
    assert_eq!(listed["members"][0]["name"], "ann");

    said(&folder, "members revoke bob --reason gone --home a");
    assert!(folder.succeed("members --home a").contains("revoked 20"));
    refused(
        &folder,
        "members revoke bob --home a",
        3,
        &["there is no member `bob`"],
    );
    let shown = folder.succeed("log show --home a");
    for kind in ["init", "invitation", "member", "revocation"] {
        assert!(shown.contains(kind), "{shown}");
    }
    assert!(
        folder
            .succeed("log verify --home a")
            .contains("4, each as it was written")
    );
}

#[test]
fn strings_and_homes_that_do_not_fit_are_refused_with_what_to_do() {
    let folder = members();
    let invitation = folder.succeed("invite carol --role party --home a --expires 30m");
    let invitation = invitation.trim();
    let before = folder.everything();
    refused(
        &folder,
        &format!("join {} --home c", &invitation[..40]),
        3,
        &["the string is cut: it has 40 characters"],
    );
    let typo = invitation.replace(
        &invitation[30..31],
        if &invitation[30..31] == "a" { "b" } else { "a" },
    );
    refused(
        &folder,
        &format!("join {typo} --home c"),
        3,
        &["copy it again"],
    );
    refused(
        &folder,
        &format!("join {invitation} --home b"),
        3,
        &["the invitation is for `carol`, and this home is `bob`'s"],
    );
    refused(
        &folder,
        "join hello --home c",
        3,
        &["this is no string of `veil`"],
    );
    refused(
        &folder,
        "members --home nowhere",
        3,
        &["nowhere is no home: run `veil init NAME --role ROLE`"],
    );
    refused(
        &folder,
        "init ann --role party --home a",
        3,
        &["a home is never overwritten"],
    );
    refused(
        &folder,
        "init x --role boss --home x",
        2,
        &["`boss` is no role"],
    );
    refused(
        &folder,
        "init x --role owner --listen 0.0.0.0:1 --home x",
        2,
        &["an owner only dials out"],
    );
    refused(
        &folder,
        "invite bob --role party --home a",
        3,
        &["`bob` is a member already"],
    );
    refused(
        &folder,
        "invite eve --role owner --expires soon --home a",
        2,
        &["`soon` is no span of time"],
    );
    assert_eq!(folder.everything(), before, "nothing was left behind");
    // The real one still works, and then no more.
    let answer = folder.succeed(&format!("join {invitation} --home c"));
    folder.succeed(&format!("join {} --home a", answer.trim()));
    assert!(
        said(&folder, &format!("join {} --home a", answer.trim())).contains("is a member already")
    );

    fs::write(
        folder.at("a/veil.toml"),
        "version = 1\nname = \"ann\"\nrol = \"party\"\n",
    )
    .unwrap();
    refused(
        &folder,
        "members --home a",
        3,
        &["veil.toml:3:1: unknown field `rol`, did you mean `role`?"],
    );
}

#[test]
#[ignore = "tier processes: kills, stalls and waits"]
fn a_new_key_is_taken_with_its_statement() {
    let folder = members();
    let old = folder.succeed("identity show --home b");
    let statement = folder.succeed("identity rotate --home b");
    let new = folder.succeed("identity show --home b");
    assert_ne!(old, new);
    assert_eq!(
        folder.succeed("identity show --statements --home b"),
        statement
    );
    let told = said(&folder, &format!("join {} --home a", statement.trim()));
    assert!(
        told.contains(new.trim()) && told.contains("the old one is refused"),
        "{told}"
    );
    assert!(folder.succeed("members --home a").contains(new.trim()));
    refused(
        &folder,
        &format!("join {} --home c", statement.trim()),
        3,
        &["which no member has here"],
    );
    assert!(folder.succeed("log verify --home b").contains(new.trim()));
}

#[test]
fn a_job_is_approved_for_its_plan_after_it_was_shown() {
    let folder = members();
    refused(
        &folder,
        "approve wages.toml --home a",
        2,
        &["there is no operator to ask", "--yes"],
    );
    let check = |home: &str| folder.succeed(&format!("policy check wages.toml --home {home}"));
    assert!(check("a").contains("waits for approval: there is no policy"));
    let shown = folder.succeed("approve wages.toml --home a --yes");
    let line = "opened: sum of wage over all rows, to: carol";
    assert!(shown.contains(line), "{shown}");
    assert!(check("a").contains("approved at 20") && check("b").contains("waits for approval"));

    let jobs: Vec<_> = fs::read_dir(folder.at("a/jobs")).unwrap().collect();
    let job = jobs[0].as_ref().unwrap().path();
    assert_eq!(
        fs::read_to_string(job.join("explained.txt")).unwrap(),
        shown
    );
    assert_eq!(
        fs::read_to_string(job.join("job.toml")).unwrap(),
        common::WAGES
    );
    let plan = job.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(shown.contains(&plan[..16]));
    // By its hash, as a member that proposed it would be told.
    folder.succeed(&format!("approve {} --home a --yes", &plan[..12]));
    refused(
        &folder,
        "approve 0123456789 --home a --yes",
        3,
        &["no job with a plan 0123456789"],
    );

    // A job that differs in one number needs an approval of its own.
    folder.replace("wages.toml", "rows = 3", "rows = 4");
    assert!(check("a").contains("waits for approval"));
    refused(
        &folder,
        "approve wages.toml --home a --revoke",
        3,
        &["was not approved here", "with another plan is"],
    );
    folder.replace("wages.toml", "rows = 4", "rows = 3");
    said(&folder, "approve wages.toml --home a --revoke");
    assert!(check("a").contains("waits for approval"));
    folder.succeed("init dave --role owner --home d");
    refused(
        &folder,
        "approve wages.toml --home d --yes",
        3,
        &["`dave` has no part in the job; its participants are"],
    );
    assert!(folder.succeed("log show --home a").contains("withdrawal"));
}

#[test]
fn a_policy_is_tried_without_running_anything() {
    let folder = members();
    let rule = |text: &str| {
        let path = folder.at("a/policy.toml");
        fs::write(&path, format!("version = 1\n[[rule]]\n{text}\n")).unwrap();
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    };
    rule(
        "name = \"wages\"\ndecision = \"allow\"\nasked_by = [\"bob\"]\noperations = [\"mean\"]\nmin_rows = 2",
    );
    let json = |by: &str| -> serde_json::Value {
        let text = folder.succeed(&format!("policy check wages.toml --home a --json{by}"));
        serde_json::from_str(&text).unwrap()
    };
    let allowed = json(" --asked-by bob");
    assert_eq!(
        (&allowed["allowed"], &allowed["rule"]),
        (&true.into(), &"wages".into())
    );
    assert_eq!(allowed["facts"]["rows"], 5);
    let pending = json("");
    assert_eq!(pending["allowed"], false);
    assert!(
        pending["decision"]
            .as_str()
            .unwrap()
            .contains("rule `wages`: the job is asked for by `me`")
    );
    rule("name = \"no carol\"\ndecision = \"refuse\"\nto = [\"carol\"]");
    refused(
        &folder,
        "approve wages.toml --home a --yes",
        3,
        &[
            "rule `no carol` of the policy refuses this job: it opens values to `carol`",
            "policy.toml",
        ],
    );
    rule("name = \"x\"\ndecison = \"allow\"");
    refused(
        &folder,
        "policy check wages.toml --home a",
        3,
        &["policy.toml:4:1: unknown field `decison`, did you mean `decision`?"],
    );
}

#[test]
fn a_log_that_was_touched_is_named_by_its_line() {
    let folder = members();
    let head = folder.succeed("log verify --home a --json");
    let head: serde_json::Value = serde_json::from_str(&head).unwrap();
    let head = head["head"].as_str().unwrap();
    let good = fs::read_to_string(folder.at("a/log.jsonl")).unwrap();
    fs::write(folder.at("copy.jsonl"), &good).unwrap();
    assert!(
        folder
            .succeed(&format!("log verify copy.jsonl --head {head}"))
            .contains("log of")
    );
    fs::write(
        folder.at("a/log.jsonl"),
        good.replace("\"name\":\"bob\"", "\"name\":\"eve\""),
    )
    .unwrap();
    refused(
        &folder,
        "log verify --home a",
        4,
        &["line 2: the entry says something else than when it was written"],
    );
    fs::write(
        folder.at("copy.jsonl"),
        good.lines().next().unwrap().to_owned() + "\n",
    )
    .unwrap();
    refused(
        &folder,
        &format!("log verify copy.jsonl --head {head}"),
        4,
        &["the log ends with entry 1, and once had entry 3"],
    );
    refused(
        &folder,
        "log verify copy.jsonl --head 3",
        2,
        &["this is no head of a log"],
    );
    refused(
        &folder,
        "log verify nowhere.jsonl",
        3,
        &["cannot read nowhere.jsonl"],
    );
}

#[test]
fn processes_that_write_at_once_lose_no_entry() {
    let folder = members();
    let writers: Vec<_> = (0..6)
        .map(|n| {
            Command::new(crate::PROGRAM)
                .args(["invite", &format!("x{n}"), "--role", "owner", "--home", "a"])
                .current_dir(folder.path())
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    assert!(
        folder
            .succeed("log verify --home a")
            .contains("9, each as it was written")
    );
    let open = fs::read_to_string(folder.at("a/invitations.toml")).unwrap();
    assert_eq!(open.matches("[[invitation]]").count(), 6);
}

#[test]
fn a_full_disk_leaves_the_log_as_it_was() {
    let folder = members();
    // The shell's limit on the size of files stands for a full disk: the kernel writes a part, then fails.
    let grown: String = "x".repeat(450);
    for _ in 0..3 {
        said(&folder, "invite dave --role owner --home a");
    }
    folder.succeed("init dave --role owner --home d");
    let invitation = folder.succeed("invite dave --role owner --home a");
    let answer = folder.succeed(&format!("join {} --home d", invitation.trim()));
    folder.succeed(&format!("join {} --home a", answer.trim()));
    let before = fs::read(folder.at("a/log.jsonl")).unwrap();
    let blocks = before.len() / 512 + 1;
    assert!(
        blocks * 512 < before.len() + 900,
        "the next entry does not fit"
    );
    let script = format!(
        "ulimit -f {blocks}; trap '' XFSZ; exec {} members revoke dave --reason {grown} --home a",
        crate::PROGRAM
    );
    // A POSIX shell counts blocks of 512 bytes.
    let output = Command::new("dash")
        .args(["-c", &script])
        .current_dir(folder.path())
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: no dash");
        return;
    };
    let said = text(&output.stderr);
    assert!(
        !output.status.success() && said.contains("cannot write ") && said.contains("log.jsonl"),
        "{said}"
    );
    assert_eq!(fs::read(folder.at("a/log.jsonl")).unwrap(), before);
    folder.succeed("log verify --home a");
}

#[test]
fn results_on_this_machine_have_a_receipt() {
    let folder = Folder::wages();
    folder.succeed("stats wages.toml --out results");
    let text = fs::read_to_string(folder.at("results/carol/receipt.json")).unwrap();
    let receipt: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(receipt["local"], true);
    assert_eq!(receipt["recipient"], "carol");
    assert_eq!(receipt["rows"], 5);
    assert_eq!(receipt["files"].as_array().unwrap().len(), 4);
    assert_eq!(receipt["trace"].as_str().unwrap().len(), 32);
    assert!(
        receipt["participants"]
            .as_array()
            .unwrap()
            .iter()
            .all(|p| p["fingerprint"].is_null())
    );
    assert!(
        receipt["opened"][0]
            .as_str()
            .unwrap()
            .contains("sum of wage")
    );
}
