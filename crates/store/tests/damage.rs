//! Datasets that were changed, cut, mixed or interrupted: each is refused, with what to do.

mod common;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{description, expected, key, packed, parties, parts, write};
use veil_math::Ring;
use veil_program::Slice;
use veil_store::{
    Damage, Reader, State, StoreError, StoreKey, Writer, dataset, datasets, fuzz_dataset, remove,
    sweep, verify,
};
use veil_testkit::Seed;

const NAME: &str = "pay 2025";

fn small() -> veil_store::Description {
    description(Ring::Z64, &[1, 1], true, &[20, 3], 8)
}

#[test]
fn every_flipped_byte_is_noticed() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &small());
    verify(root.path(), NAME, &key()).unwrap();
    for file in ["shares.arrow", "manifest"] {
        let path = root.path().join(NAME).join(file);
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            fs::write(&path, &bad).unwrap();
            assert!(
                verify(root.path(), NAME, &key()).is_err(),
                "byte {at} of {file}"
            );
        }
        for length in (0..good.len()).step_by(97).chain([good.len() - 1]) {
            fs::write(&path, &good[..length]).unwrap();
            assert!(
                verify(root.path(), NAME, &key()).is_err(),
                "{file} cut to {length}"
            );
        }
        fs::write(&path, [&good[..], b"\n"].concat()).unwrap();
        assert!(
            verify(root.path(), NAME, &key()).is_err(),
            "{file} with a byte more"
        );
        fs::write(&path, &good).unwrap();
    }
    verify(root.path(), NAME, &key()).unwrap();
}

#[test]
fn a_changed_share_names_its_rows() {
    let root = tempfile::tempdir().unwrap();
    let d = small();
    write(root.path(), &d);
    let path = root.path().join(NAME).join("shares.arrow");
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len();
    // The last encrypted column is before the padding of the last batch, the end of the stream and the footer.
    let parties = parties();
    let open = || Reader::open(root.path(), NAME, &key(), &expected(&parties, Ring::Z64)).unwrap();
    let footer = u32::from_le_bytes(bytes[last - 10..last - 6].try_into().unwrap()) as usize;
    let tag = last - 10 - footer - 8 - 128 - 49;
    bytes[tag] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let reader = open();
    let slice = Slice {
        block: 1,
        first: 1,
        rows: 2,
    };
    let errors: Vec<String> = (0..2)
        .filter_map(|component| {
            Some(
                reader
                    .load(0, component, slice, &mut [0; 16])
                    .err()?
                    .to_string(),
            )
        })
        .collect();
    let file = path.display();
    assert_eq!(
        errors,
        [format!(
            "{file}: rows 0 to 3 of block 1, port `x0`, component 1 fail their check; it was damaged or changed after it \
             was written: restore it from a copy, or remove the dataset and run the job that makes it again"
        )]
    );
    let mut whole = vec![0; 160];
    reader
        .load(
            0,
            1,
            Slice {
                block: 0,
                first: 0,
                rows: 20,
            },
            &mut whole,
        )
        .unwrap();
    assert_eq!(
        whole,
        packed(
            &d,
            d.ring,
            0,
            1,
            Slice {
                block: 0,
                first: 0,
                rows: 20
            }
        )
    );
}

#[test]
fn chunks_cannot_be_swapped_nor_taken_from_another_dataset() {
    let root = tempfile::tempdir().unwrap();
    let d = description(Ring::Z64, &[1], false, &[64], 8);
    write(root.path(), &d);
    let other = tempfile::tempdir().unwrap();
    write(other.path(), &d);
    let path = root.path().join(NAME).join("shares.arrow");
    let [good, theirs] =
        [&path, &other.path().join(NAME).join("shares.arrow")].map(|p| fs::read(p).unwrap());
    assert_eq!(good.len(), theirs.len());
    let length = u32::from_le_bytes(good[68..72].try_into().unwrap()) as usize;
    let footer = u32::from_le_bytes(good[good.len() - 10..][..4].try_into().unwrap()) as usize;
    let start = 72 + length;
    let batch = (good.len() - 10 - footer - 8 - start) / 8;
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
        verify(root.path(), NAME, &key()).is_ok()
    };
    assert!(with(&|_| ()));
    let (a, b) = (start + batch, start + 2 * batch);
    assert!(!with(&|bytes| bytes.copy_within(a..b, b)), "a chunk twice");
    assert!(
        !with(&|bytes| bytes[a..b].copy_from_slice(&theirs[a..b])),
        "a chunk of another dataset"
    );
    assert!(!with(&|bytes| drop(bytes.drain(a..b))), "a chunk less");
    // The two components of one chunk, at equal distance from its end: another place, the same header.
    assert!(!with(&|bytes| {
        let lead = batch - 2 * 256;
        let (own, previous) = (a + lead + 128, a + lead + 256 + 128);
        let copy = bytes[own..own + 80].to_vec();
        bytes.copy_within(previous..previous + 80, own);
        bytes[previous..previous + 80].copy_from_slice(&copy);
    }));
    // The whole file of another dataset, with our manifest, and with its own.
    fs::write(&path, &theirs).unwrap();
    let error = verify(root.path(), NAME, &key()).unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::Damaged {
                what: Damage::Code,
                ..
            }
        ),
        "{error}"
    );
    fs::copy(
        other.path().join(NAME).join("manifest"),
        root.path().join(NAME).join("manifest"),
    )
    .unwrap();
    verify(root.path(), NAME, &key()).unwrap();
}

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
    // While it is written, nobody loads it, writes it, sweeps it or removes it.
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
fn another_key_is_named() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &small());
    let other = StoreKey::derive(&[1; 32]);
    let file = root.path().join(NAME).join("shares.arrow");
    assert_eq!(
        verify(root.path(), NAME, &other).unwrap_err().to_string(),
        format!(
            "{} was encrypted under key {}, and this party's key is {}; use the home that made it, or its former identity",
            file.display(),
            key().id(),
            other.id()
        )
    );
    let listed = dataset(root.path(), NAME, &other).unwrap();
    assert!(matches!(
        listed.state,
        State::Broken(StoreError::OtherKey { .. })
    ));
    assert!(listed.head.is_some());
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

/// Mutations of a good dataset get deeper than random bytes do. The seed is in the failure message.
#[test]
fn mutated_datasets_never_panic() {
    let root = tempfile::tempdir().unwrap();
    let mut d = small();
    d.name = "x".into();
    write(root.path(), &d);
    let read = |file| fs::read(root.path().join("x").join(file)).unwrap();
    let (shares, manifest) = (read("shares.arrow"), read("manifest"));
    let good = [
        &(manifest.len() as u16).to_le_bytes()[..],
        &manifest,
        &shares,
    ]
    .concat();
    assert!(fuzz_dataset(root.path(), &key(), &good));
    for seed in 0..3000u64 {
        let mut numbers = Seed(seed).numbers("damaged datasets");
        let mut bytes = good.clone();
        // The header is where structure is: lengths and offsets of the schema.
        let header = 2 + manifest.len();
        for _ in 0..=numbers.index(4) {
            let at = if numbers.index(3) > 0 {
                header + numbers.index(2000)
            } else {
                numbers.index(bytes.len())
            };
            let at = at.min(bytes.len() - 1);
            match numbers.index(5) {
                0 => bytes[at] ^= 1 << numbers.index(8),
                1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][numbers.index(5)],
                2 => bytes.truncate(at.max(10)),
                3 => drop(bytes.drain(at..(at + numbers.index(8)).min(bytes.len() - 1).max(at))),
                _ => {
                    let copy = bytes[at..(at + 64).min(bytes.len())].to_vec();
                    bytes.splice(at..at, copy);
                }
            }
        }
        let read = std::panic::catch_unwind(|| fuzz_dataset(root.path(), &key(), &bytes));
        assert!(
            read.is_ok_and(|accepted| !accepted || bytes == good),
            "seed {seed}"
        );
    }
}

#[test]
fn a_header_that_claims_too_much_is_refused() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &small());
    let path = root.path().join(NAME).join("shares.arrow");
    let mut bytes = fs::read(&path).unwrap();
    for length in [0x7fff_ffff_u32, 0xffff_ffff, 0, 1 << 25] {
        bytes[68..72].copy_from_slice(&length.to_le_bytes());
        fs::write(&path, &bytes).unwrap();
        let error = verify(root.path(), NAME, &key()).unwrap_err().to_string();
        assert!(error.contains("its header cannot be read"), "{error}");
    }
    // A manifest of a gigabyte, which takes no space: refused by its length.
    write(&root.path().join("b"), &small());
    let manifest = root.path().join("b").join(NAME).join("manifest");
    OpenOptions::new()
        .write(true)
        .open(&manifest)
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    let error = verify(&root.path().join("b"), NAME, &key())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the manifest cannot be read: it is too long"),
        "{error}"
    );
    drop(File::open(&manifest).unwrap());
}
