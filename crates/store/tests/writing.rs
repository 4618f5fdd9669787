//! What a writer leaves behind, whatever becomes of it: whole datasets, or what is refused, listed and swept.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::{NAME, description, expected, key, packed, parties, parts, small, write};
use veil_job::Slice;
use veil_math::Ring;
use veil_store::{Reader, State, StoreError, Writer, dataset, datasets, remove, sweep, verify};

#[test]
fn an_interrupted_dataset_is_refused_listed_replaced_and_swept() {
    let root = tempfile::tempdir().unwrap();
    let d = small();
    write(root.path(), &d);
    // What a killed process leaves: no manifest.
    fs::remove_file(root.path().join(NAME).join("manifest")).unwrap();
    let folder = root.path().display();
    assert_eq!(
        verify(root.path(), NAME, &key()).unwrap_err().to_string(),
        format!(
            "the dataset `pay 2025` in {folder} is incomplete: the run that wrote it was interrupted; \
             run that job again, which replaces it, or remove it: `veil shares sweep`"
        )
    );
    let listed = dataset(root.path(), NAME, &key()).unwrap();
    assert!(matches!(listed.state, State::Incomplete));
    assert_eq!(listed.head.unwrap().description.rows(), 23);

    write(root.path(), &d);
    verify(root.path(), NAME, &key()).unwrap();
    assert!(
        sweep(root.path()).unwrap().is_empty(),
        "a complete one is never swept"
    );
    fs::remove_file(root.path().join(NAME).join("manifest")).unwrap();
    assert_eq!(sweep(root.path()).unwrap(), [NAME]);
    assert!(datasets(root.path(), &key()).unwrap().is_empty());
    // A process that died between making the folder and the file.
    fs::create_dir(root.path().join("empty")).unwrap();
    assert!(matches!(
        datasets(root.path(), &key()).unwrap()[0].state,
        State::Incomplete
    ));
    assert_eq!(sweep(root.path()).unwrap(), ["empty"]);
}

#[test]
fn a_writer_that_is_given_up_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let d = small();
    let writer = Writer::create(root.path(), &key(), &d).unwrap();
    let (port, component, slice) = parts(&d)[0];
    let shares = packed(&d, d.ring, port, component, slice);
    writer.keep(port, component, slice, &shares).unwrap();
    // While it is written, no other run loads it, writes it, sweeps it or removes it.
    let busy = "the dataset `pay 2025` is being written by another run; wait for its end";
    assert_eq!(
        verify(root.path(), NAME, &key()).unwrap_err().to_string(),
        busy
    );
    assert_eq!(
        Writer::create(root.path(), &key(), &d)
            .err()
            .unwrap()
            .to_string(),
        busy
    );
    assert_eq!(remove(root.path(), NAME).unwrap_err().to_string(), busy);
    assert!(sweep(root.path()).unwrap().is_empty());
    assert!(matches!(
        dataset(root.path(), NAME, &key()).unwrap().state,
        State::Busy
    ));

    let error = writer.finish().unwrap_err().to_string();
    assert_eq!(
        error,
        "the shares to keep are incomplete: 1 of 10 parts came; nothing was kept"
    );
    let error = writer.keep(port, component, slice, &shares).unwrap_err();
    assert!(matches!(error, StoreError::Twice { .. }), "{error}");
    drop(writer);
    assert!(!root.path().join(NAME).exists());
}

#[test]
fn slices_that_do_not_fit_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let d = description(Ring::Z64, &[1, 2], true, &[20], 8);
    let writer = Writer::create(root.path(), &key(), &d).unwrap();
    let at = |first, rows| Slice {
        block: 0,
        first,
        rows,
    };
    let cases: [(usize, u8, Slice, usize); 11] = [
        (2, 0, at(0, 8), 64),
        (0, 2, at(0, 8), 64),
        (0, 0, at(0, 8), 63),
        (0, 0, at(0, 0), 0),
        (0, 0, at(1, 8), 64),
        (0, 0, at(0, 9), 72),
        (0, 0, at(16, 8), 64),
        (0, 0, at(u64::MAX, 8), 64),
        (
            0,
            0,
            Slice {
                block: 1,
                ..at(0, 8)
            },
            64,
        ),
        (1, 0, at(0, 8), 128),
        (1, 0, at(8, 1), 16),
    ];
    for (port, component, slice, bytes) in cases {
        let error = writer
            .keep(port, component, slice, &vec![0; bytes])
            .unwrap_err();
        assert!(
            matches!(error, StoreError::OutOfReach { .. }),
            "{slice:?}: {error}"
        );
    }
    for (port, component, slice) in parts(&d) {
        writer
            .keep(
                port,
                component,
                slice,
                &packed(&d, d.ring, port, component, slice),
            )
            .unwrap();
    }
    writer.finish().unwrap();
    let parties = parties();
    let reader = Reader::open(root.path(), NAME, &key(), &expected(&parties, Ring::Z64)).unwrap();
    for (port, component, slice, bytes) in cases {
        if slice == at(1, 8) || slice == at(0, 9) {
            continue;
        }
        let error = reader
            .load(port, component, slice, &mut vec![0; bytes])
            .unwrap_err();
        assert!(
            matches!(error, StoreError::OutOfReach { .. }),
            "{slice:?}: {error}"
        );
    }
}

#[test]
fn a_full_disk_says_so_and_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    // Nine terabytes, which no disk has that tests run on.
    let d = description(Ring::Z128, &[4], false, &[1 << 36], 16_384);
    let error = Writer::create(root.path(), &key(), &d).err().unwrap();
    let error = error.to_string();
    assert!(
        error.starts_with("the dataset `pay 2025` needs 88"),
        "{error}"
    );
    assert!(
        error.ends_with(" are free there; free some space and run again, nothing was begun"),
        "{error}"
    );
    assert!(!root.path().join(NAME).exists());
}

#[test]
fn names_are_taken_once_and_those_that_are_not_there_are_told() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &small());
    let error = Writer::create(root.path(), &key(), &small())
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("already, made on 20") && error.contains("by plan abababababababab;"),
        "{error}"
    );
    let error = verify(root.path(), "pay 2024", &key())
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        format!(
            "no dataset `pay 2024` in {}; there are `pay 2025`",
            root.path().display()
        )
    );
    remove(root.path(), NAME).unwrap();
    let error = remove(root.path(), NAME).unwrap_err().to_string();
    assert!(error.ends_with("; there is none at all"), "{error}");
}

#[test]
fn files_are_for_their_owner_alone() {
    let root = tempfile::tempdir().unwrap();
    let shares = root.path().join("shares");
    write(&shares, &small());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = shares.join(NAME);
    assert_eq!([&shares, &folder].map(|path| mode(path)), [0o700; 2]);
    assert_eq!(
        ["shares.arrow", "manifest"].map(|file| mode(&folder.join(file))),
        [0o600; 2]
    );
}

#[test]
fn what_is_at_rest_does_not_show_the_shares() {
    let root = tempfile::tempdir().unwrap();
    let d = description(Ring::Z64, &[1], false, &[64], 64);
    let writer = Writer::create(root.path(), &key(), &d).unwrap();
    let slice = Slice {
        block: 0,
        first: 0,
        rows: 64,
    };
    let shares: Vec<u8> = b"a share!".repeat(64);
    writer.keep(0, 0, slice, &shares).unwrap();
    writer.keep(0, 1, slice, &shares).unwrap();
    writer.finish().unwrap();
    for file in ["shares.arrow", "manifest"] {
        let bytes = fs::read(root.path().join(NAME).join(file)).unwrap();
        assert!(!bytes.windows(8).any(|window| window == b"a share!"));
    }
}
