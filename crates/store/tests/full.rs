//! A disk that fills while a dataset is written: on a small one of its own, for which root is needed.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Command;

use crate::common::{description, expected, key, packed, parties, parts, write};
use rustix::fs::{FallocateFlags, fallocate};
use veil_math::Ring;
use veil_store::{Description, Reader, State, StoreError, Writer, datasets, sweep, verify};

/// Where the small disk is, in the process that has it.
const DISK: &str = "VEIL_TEST_SMALL_DISK";
const NAME: &str = "pay 2025";
const ADVICE: &str = "; free some space and run again, nothing half-written was kept";

/// Plays `test` again as the test `name` of another process, with a disk of 1 MB at the folder that it is given.
fn on_a_small_disk(name: &str, test: impl FnOnce(&Path)) {
    if let Some(disk) = env::var_os(DISK) {
        return test(Path::new(&disk));
    }
    let disk = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=1m,mode=700 none \"$0\"";
    let unshare = |then: &str, words: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &format!("{mount} && {then}")]);
        command.arg(disk.path()).args(words);
        command.env(DISK, disk.path()).output()
    };
    let works = unshare("true", &[]);
    if !works.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED {name}: no disk can be mounted here, it needs root: {works:?}");
        return;
    }
    let this = env::current_exe().unwrap();
    let test = format!("full::{name}");
    let words = [this.to_str().unwrap(), "--exact", &test, "--nocapture"];
    let output = unshare("exec \"$@\"", &words).unwrap();
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

/// 600 kB.
fn large() -> Description {
    description(Ring::Z64, &[2, 1], false, &[12_000], 512)
}

/// Takes what is free on the disk.
fn fill(disk: &Path) {
    let mut filler = File::create(disk.join("filler")).unwrap();
    while filler.write(&[1; 512]).is_ok_and(|length| length > 0) {}
}

/// What a process that died at this moment leaves, in another folder.
fn as_it_is(root: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir_in(env::temp_dir()).unwrap();
    let folder = copy.path().join(NAME);
    fs::create_dir(&folder).unwrap();
    for file in fs::read_dir(root.join(NAME)).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    copy
}

/// It is there, it is no dataset, and it can be swept away.
fn is_incomplete(root: &Path) {
    let listed = datasets(root, &key()).unwrap();
    assert!(matches!(&listed[..], [one] if matches!(one.state, State::Incomplete)));
    let parties = parties();
    let opened = Reader::open(root, NAME, &key(), &expected(&parties, Ring::Z64));
    let error = opened.err().unwrap();
    assert!(matches!(error, StoreError::Incomplete { .. }), "{error}");
    assert!(matches!(
        verify(root, NAME, &key()),
        Err(StoreError::Incomplete { .. })
    ));
    assert_eq!(sweep(root).unwrap(), [NAME]);
    assert!(datasets(root, &key()).unwrap().is_empty());
}

/// When there is room again, everything is as if nothing had been.
fn works_again(disk: &Path, root: &Path) {
    assert!(!root.join(NAME).exists(), "what the writer began is gone");
    fs::remove_file(disk.join("filler")).unwrap();
    write(root, &large());
    verify(root, NAME, &key()).unwrap();
}

#[test]
fn what_was_reserved_is_enough_when_others_fill_the_disk() {
    on_a_small_disk(
        "what_was_reserved_is_enough_when_others_fill_the_disk",
        |disk| {
            let root = disk.join("shares");
            let d = large();
            let writer = Writer::create(&root, &key(), &d).unwrap();
            fill(disk);
            for (port, component, slice) in parts(&d) {
                let shares = packed(&d, d.ring, port, component, slice);
                writer.keep(port, component, slice, &shares).unwrap();
            }
            // The manifest takes the place of what was reserved for a longer footer.
            writer.finish().unwrap();
            drop(writer);
            verify(&root, NAME, &key()).unwrap();
        },
    );
}

/// As on a disk that cannot reserve.
#[test]
fn a_disk_that_fills_in_the_middle_is_named_with_the_file_and_what_to_do() {
    let name = "a_disk_that_fills_in_the_middle_is_named_with_the_file_and_what_to_do";
    on_a_small_disk(name, |disk| {
        let root = disk.join("shares");
        let d = large();
        let writer = Writer::create(&root, &key(), &d).unwrap();
        let path = root.join(NAME).join("shares.arrow");
        let mut file = OpenOptions::new().write(true).open(&path).unwrap();
        // Behind the first page, where the header is.
        let (page, length) = (4096, file.seek(SeekFrom::End(0)).unwrap());
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&file, hole, page, length - page).unwrap();
        drop(file);
        let all = parts(&d);
        let keep = |part: &(usize, u8, _)| {
            let (port, component, slice) = *part;
            writer.keep(
                port,
                component,
                slice,
                &packed(&d, d.ring, port, component, slice),
            )
        };
        let (before, after) = all.split_at(all.len() / 2);
        for part in before {
            keep(part).unwrap();
        }
        fill(disk);
        let errors: Vec<String> = after
            .iter()
            .filter_map(|part| keep(part).err())
            .map(|e| e.to_string())
            .collect();
        assert!(!errors.is_empty(), "the disk was full");
        for error in errors {
            let start = format!("cannot write {}: ", path.display());
            assert!(
                error.starts_with(&start) && error.ends_with(ADVICE),
                "{error}"
            );
        }
        // No writer can finish it.
        let error = writer.finish().unwrap_err();
        assert!(matches!(error, StoreError::Missing { .. }), "{error}");
        is_incomplete(as_it_is(&root).path());
        drop(writer);
        works_again(disk, &root);
    });
}
