//! Chunks as the devices of parties that serve wish them: who is asked, and what the author of a job learns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use veil_device::{Command, Device, Fault, Reference, Tag, Workspace};
use veil_math::Ring;
use veil_node::service::{Options, Service};

use crate::common::homes::{NAMES, homes};
use crate::common::{Folder, text};

/// A device that is best at so many rows of integers, and has no wish for bits.
struct Wishful(Reference, u64);

impl Device for Wishful {
    fn chunk_rows(&self, ring: Ring) -> Option<u64> {
        (ring == Ring::Z64).then_some(self.1)
    }

    fn submit(&mut self, workspace: Workspace, batch: &[Command], tag: Tag) -> Result<(), Fault> {
        self.0.submit(workspace, batch, tag)
    }

    veil_device::forward!(self, self.0, name engines bind load_key load open close write map view exchange poll wipe);
}

const JOB: &str = r#"version = 1
kind = "stats"
name = "total"
owners = ["ann"]
parties = ["a", "b", "c"]
recipients = ["eve"]
column = [{ name = "pay", type = "integer", min = 0, max = 9999 }]
block = [{ name = "all", rows = 1000000, holds = { ann = ["pay"] } }]
analysis = [{ name = "pay", kind = "sum", of = "pay", to = "eve" }]
"#;

/// Services of a and b, with wishes; c is down.
fn with_wishes(folder: &Folder, wishes: [u64; 2], check: impl FnOnce()) {
    let mut homes = homes(folder.path(), &NAMES).into_iter();
    let services = wishes.map(|rows| {
        let options = Options {
            planner: Some(crate::PROGRAM.into()),
            ..Options::default()
        };
        let device = move || Ok(Box::new(Wishful(Reference::default(), rows)) as Box<dyn Device>);
        Service::start(homes.next().unwrap(), options, Arc::new(device)).unwrap()
    });
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for service in services {
            scope.spawn(|| service.run(&stop));
        }
        let _stops = Stops(&stop);
        check();
    });
}

/// Ends services, also where a check fails.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What `veil explain --ask` says of chunks, and what it advises on the side.
fn asked(folder: &Folder, options: &str) -> (u64, String, String) {
    let explained = folder.veil(&format!(
        "explain job.toml --ask --json --home eve {options}"
    ));
    let advice = text(&explained.stderr);
    assert!(explained.status.success(), "{advice}");
    let all: serde_json::Value = serde_json::from_slice(&explained.stdout).unwrap();
    let why = all["chunk_rows_why"].as_str().unwrap().to_owned();
    (all["chunk_rows"].as_u64().unwrap(), why, advice)
}

#[test]
fn who_writes_a_job_learns_what_the_devices_of_its_parties_are_best_at() {
    let folder = Folder::new();
    folder.write("job.toml", JOB);
    with_wishes(&folder, [1 << 18, 40_000], || {
        let (rows, why, advice) = asked(&folder, "");
        assert_eq!(
            (rows, why.as_str()),
            (
                32_768,
                "as many as reference, on which `b` computes, is best at"
            )
        );
        assert!(
            advice.contains("write `chunk_rows = \"32768\"` into the job"),
            "{advice}"
        );
        // A member that submits the job as it is learns the same, and the job is proposed as it is.
        let submitted = folder.veil("submit job.toml --home eve --wait 1");
        let said = text(&submitted.stderr);
        assert!(
            said.contains("--chunk-rows 32768 at all participants"),
            "{said}"
        );
        // A job that says so itself has its own length, and no advice.
        let (rows, why, advice) = asked(&folder, "--chunk-rows 8192");
        assert_eq!((rows, why.as_str()), (8192, "as many as the job says"));
        assert_eq!(advice, "");
        let said = text(
            &folder
                .veil("submit job.toml --home eve --wait 1 --chunk-rows 8192")
                .stderr,
        );
        assert!(!said.contains("is best at"), "{said}");
        let members = text(&folder.veil("doctor --home eve").stdout);
        assert!(members.contains("computes on reference"), "{members}");
    });
}

/// Numbers that are no wishes: a plan is made without them, or within what memory has room for.
#[test]
fn a_wish_for_no_or_few_rows_counts_as_none_and_one_for_all_memory_is_bounded() {
    for (wishes, counts) in [([0, 63], false), ([64, 64], false), ([64, 1 << 40], true)] {
        let folder = Folder::new();
        folder.write("job.toml", JOB);
        with_wishes(&folder, wishes, || {
            let (rows, why, advice) = asked(&folder, "");
            if counts {
                assert!((1 << 16..=1 << 20).contains(&rows), "{rows}");
                assert!(why.contains("on which `b` computes"), "{why}");
                assert!(advice.contains("chunk_rows = \"1048576\""), "{advice}");
            } else {
                assert_eq!(why, "what fits a processor's cache");
                assert_eq!(advice, "");
            }
        });
    }
}
