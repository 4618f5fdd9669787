//! Datasets that were changed, cut or mixed: each is refused, with what to do.

use std::fs::{self, File, OpenOptions};

use crate::common::{NAME, among_four, description, expected, key, packed, parties, small, write};
use veil_job::Slice;
use veil_math::Ring;
use veil_store::{
    Damage, Description, Reader, State, StoreError, StoreKey, dataset, fuzz_dataset, verify,
};
use veil_testkit::Seed;

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
                what: Damage::Mac,
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

/// Mutations of a good dataset get deeper than random bytes do. The seed is in the failure message.
#[test]
fn mutated_datasets_never_panic() {
    for d in [small(), among_four(small())] {
        mutate(d);
    }
}

fn mutate(mut d: Description) {
    let root = tempfile::tempdir().unwrap();
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
    for seed in 0..2000u64 {
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

/// What is in clear can be read without a key: it may say what no dataset is, and is refused for it.
#[test]
fn a_header_of_other_parties_is_refused() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &small());
    let path = root.path().join(NAME).join("shares.arrow");
    let good = fs::read(&path).unwrap();
    for (from, to) in [
        (r#"{"index":1,"#, r#"{"index":3,"#),
        (r#"{"index":1,"#, r#"{"index":9,"#),
        ("rep3", "rep4"),
        ("rep3", "rep5"),
    ] {
        let at = good.windows(from.len()).position(|w| w == from.as_bytes());
        let mut bytes = good.clone();
        bytes[at.unwrap()..][..to.len()].copy_from_slice(to.as_bytes());
        fs::write(&path, bytes).unwrap();
        let error = verify(root.path(), NAME, &key()).unwrap_err().to_string();
        assert!(error.contains("its header cannot be read"), "{to}: {error}");
        let listed = dataset(root.path(), NAME, &key()).unwrap();
        assert!(listed.head.is_none(), "{to}");
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
