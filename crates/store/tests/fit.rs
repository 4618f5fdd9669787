//! A dataset knows whose it is and what is in it, and refuses a job that it does not fit, with both sides named.

use crate::common::{among_four, description, expected, key, packed, parties, parts, write};
use veil_math::Ring;
use veil_session::{PartyId, PlanHash};
use veil_store::{Description, Expected, Member, Reader, Writer, dataset};

fn refused(
    change: impl FnOnce(&mut Description),
    wants: impl FnOnce(Expected<'_>) -> Expected<'_>,
) -> Option<String> {
    let root = tempfile::tempdir().unwrap();
    let mut d = description(Ring::Z64, &[1], false, &[20, 3], 8);
    change(&mut d);
    write(root.path(), &d);
    let parties = parties();
    let wanted = wants(expected(&parties, Ring::Z64));
    let error = Reader::open(root.path(), &d.name, &key(), &wanted)
        .err()?
        .to_string();
    Some(
        error
            .strip_prefix("the dataset `pay 2025` does not fit this job: ")
            .unwrap()
            .to_owned(),
    )
}

#[test]
fn what_fits_is_opened() {
    let error = refused(
        |_| (),
        |wanted| Expected {
            plan: Some(PlanHash([0xab; 32])),
            schema: Some("x0: integer"),
            rows: Some(23),
            ..wanted
        },
    );
    assert_eq!(error, None);
    assert_eq!(refused(|d| d.ring = Ring::Z128, |wanted| wanted), None);
}

#[test]
fn what_does_not_fit_names_both_sides() {
    let error = refused(|d| d.party = PartyId::THREE[2], |wanted| wanted);
    assert_eq!(
        error.unwrap(),
        "it holds the shares of party 2 (`west`), and this run is party 1; each party loads its own"
    );
    let error = refused(|d| d.parties.swap(0, 2), |wanted| wanted);
    assert_eq!(
        error.unwrap(),
        "it is shared among west, south and north, and the job names north, south and west; \
         name the same parties in the same order, or give it to others: `veil shares reshare`"
    );
    let error = refused(|d| *d = among_four(d.clone()), |wanted| wanted);
    assert_eq!(
        error.unwrap(),
        "it is shared among north, south, west and east, and the job names north, south and west; \
         name the same parties in the same order, or give it to others: `veil shares reshare`"
    );
    let other = Some(PlanHash([0xcd; 32]));
    let error = refused(
        |_| (),
        |wanted| Expected {
            plan: other,
            ..wanted
        },
    );
    assert_eq!(
        error.unwrap(),
        "plan abababababababab made it, and this job continues plan cdcdcdcdcdcdcdcd; run the job from its start"
    );
    let error = refused(
        |_| (),
        |wanted| Expected {
            schema: Some("y: date"),
            ..wanted
        },
    );
    assert_eq!(
        error.unwrap(),
        "its columns are `x0: integer`, and the job declares `y: date`; declare the columns as the job that kept them did"
    );
    let error = refused(
        |_| (),
        |wanted| Expected {
            rows: Some(24),
            ..wanted
        },
    );
    assert_eq!(
        error.unwrap(),
        "it has 23 rows, and the job declares 24; declare 23"
    );
    let error = refused(
        |_| (),
        |wanted| Expected {
            ring: Ring::Z128,
            ..wanted
        },
    );
    assert_eq!(
        error.unwrap(),
        "its shares are over Z_2^64, and the job computes over Z_2^128; \
         only shares over Z_2^128 can be loaded into another ring, Z_2^64"
    );
    assert!(refused(|d| d.ring = Ring::Bits, |wanted| wanted).is_some());
    assert!(
        refused(
            |d| d.ring = Ring::Z128,
            |wanted| Expected {
                ring: Ring::Bits,
                ..wanted
            }
        )
        .is_some()
    );
}

#[test]
fn a_party_is_its_name_and_a_key_that_it_has_or_had() {
    let kept = |fingerprint: &str| {
        let fingerprints = vec![fingerprint.to_owned()];
        move |d: &mut Description| d.parties[0].fingerprints = fingerprints
    };
    let with = |fingerprints: &[&str]| {
        let mut parties = parties();
        parties[0].fingerprints = fingerprints.iter().map(|f| (*f).to_owned()).collect();
        parties
    };
    let try_with = |kept_under: &str, now: &[&str]| {
        let parties: Vec<Member> = with(now);
        let root = tempfile::tempdir().unwrap();
        let mut d = description(Ring::Z64, &[1], false, &[3], 8);
        kept(kept_under)(&mut d);
        write(root.path(), &d);
        Reader::open(root.path(), &d.name, &key(), &expected(&parties, Ring::Z64)).is_ok()
    };
    assert!(try_with("vw1:aa", &["vw1:aa"]));
    assert!(try_with("vw1:aa", &["vw1:bb", "vw1:aa"]), "rotated since");
    assert!(
        !try_with("vw1:aa", &["vw1:bb"]),
        "the same name, another party"
    );
}

/// What a run finds out of what it keeps stands before the schema, under the code of the manifest.
#[test]
fn what_a_run_has_found_is_part_of_the_schema() {
    let root = tempfile::tempdir().unwrap();
    let d = description(Ring::Z64, &[1], false, &[20, 3], 8);
    let writer = Writer::create(root.path(), &key(), &d).unwrap();
    for (port, component, slice) in parts(&d) {
        let shares = packed(&d, d.ring, port, component, slice);
        writer.keep(port, component, slice, &shares).unwrap();
    }
    writer.finish_with(Some("opened_size = 16")).unwrap();
    let parties = parties();
    let opened = |schema| {
        let wanted = Expected {
            schema: Some(schema),
            ..expected(&parties, Ring::Z64)
        };
        let opened = Reader::open(root.path(), &d.name, &key(), &wanted);
        opened.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(opened("opened_size = 16\nx0: integer"), Ok(()));
    for (schema, what) in [
        (
            "opened_size = 8\nx0: integer",
            "it has `opened_size = 16`, where the job declares `opened_size = 8`",
        ),
        (
            "x0: integer",
            "its columns are `opened_size = 16\nx0: integer`, and the job declares `x0: integer`",
        ),
    ] {
        let error = opened(schema).unwrap_err();
        assert!(error.contains(what), "{error}");
    }
    let head = dataset(root.path(), &d.name, &key()).unwrap().head.unwrap();
    assert_eq!(head.description.schema, "opened_size = 16\nx0: integer");
    let manifest = root.path().join(&d.name).join("manifest");
    let text = std::fs::read_to_string(&manifest).unwrap();
    for changed in [
        text.replace("opened_size = 16", "opened_size = 8"),
        text.replace(",\"found\":\"opened_size = 16\"", ""),
    ] {
        assert_ne!(changed, text);
        std::fs::write(&manifest, changed).unwrap();
        let error = opened("opened_size = 16\nx0: integer").unwrap_err();
        assert!(error.contains("manifest"), "{error}");
    }
}
