//! The jobs in `examples/` do what they say.

use std::path::Path;

use crate::common::Case;
use aes::{
    Aes128,
    cipher::{BlockCipherEncrypt, KeyInit},
};
use veil_math::Ring;
use veil_program::stats::StatsResult;
use veil_session::Peer;

#[path = "../../../examples/pay-gap/generate.rs"]
#[allow(dead_code, reason = "its main function is for the command line")]
mod pay_gap;

fn estimate(result: &StatsResult, analysis: &str, group: &[&str], figure: &str) -> (f64, f64) {
    let analysis = result
        .analyses
        .iter()
        .find(|other| other.name == analysis)
        .unwrap();
    let group = analysis
        .groups
        .iter()
        .find(|other| other.values == group)
        .unwrap();
    let figure = group
        .figures
        .iter()
        .find(|other| other.name == figure)
        .unwrap();
    (
        figure.estimate.value().unwrap(),
        figure.standard_error.unwrap_or(0.0),
    )
}

#[test]
fn the_pay_gap_study_finds_what_is_in_the_data() {
    let case = Case::new(&[]);
    pay_gap::generate(case.folder.path(), 1).unwrap();
    let job = case.load().unwrap();
    // 5000 squares of up to 5 * 10^7 cents are more than 2^63.
    assert_eq!(job.spec().circuit.ring, Ring::Z128);
    assert_eq!(job.spec().rows(), 5000);
    assert_eq!(job.spec().owners.len(), 4);

    let result = case.statistics();
    let (women, error) = estimate(&result, "pay by gender", &["women"], "mean");
    let (men, _) = estimate(&result, "pay by gender", &["men"], "mean");
    assert!(
        women < 0.95 * men && error > 0.0 && error < 0.03 * women,
        "{women} ± {error}, {men}"
    );
    // The generator pays women 6 % less for the same; the regression must see it, and no more than it.
    let (gap, error) = estimate(&result, "what explains pay", &[], "gender = women");
    assert!(
        (gap / men + 0.06).abs() < 3.0 * error / men,
        "{gap} ± {error} of {men}"
    );
    let (correlation, _) = estimate(&result, "education and pay", &["men"], "correlation");
    assert!(correlation > 0.2 && correlation < 0.9, "{correlation}");

    for file in ["result.txt", "result.csv", "result.json", "result.svg"] {
        assert!(
            case.path("out").join(file).metadata().unwrap().len() > 100,
            "{file}"
        );
    }
}

/// AES-128-CTR by the block cipher of `RustCrypto`, counting from 0.
fn encrypt(key: [u8; 16], text: &[u8]) -> Vec<u8> {
    let cipher = Aes128::new(&key.into());
    let pad = |(counter, chunk): (u128, &[u8])| {
        let mut block = counter.to_be_bytes().into();
        cipher.encrypt_block(&mut block);
        chunk
            .iter()
            .zip(block)
            .map(|(text, pad)| text ^ pad)
            .collect::<Vec<u8>>()
    };
    (0..).zip(text.chunks(16)).flat_map(pad).collect()
}

#[test]
fn the_encrypted_file_is_plain_aes_in_counter_mode() {
    let job = include_str!("../../../examples/encrypt-file/job.toml");
    let letter: Vec<u8> = (0..70_007u32)
        .map(|i| (i.wrapping_mul(i) >> 5) as u8)
        .collect();
    let case = Case::new(&[
        ("job.toml", job),
        ("bank.key", "000102030405060708090a0b0c0d0e0f\n"),
        ("notary.key", "ff00ff00ff00ff00ff00ff00ff00ff0a"),
    ]);
    case.write("letter.txt", &letter);
    let job = case.load().unwrap();
    assert_eq!(job.spec().rows(), 4376);
    let stats = job.spec().circuit.stats();
    assert!(
        stats.muls <= 6400 && stats.job_muls >= 1280,
        "the key schedule runs once for the job: {stats:?}"
    );
    case.evaluate(&job, Peer::Recipient(0)).unwrap();
    let key = std::array::from_fn(|i| {
        i as u8 ^ if i % 2 == 0 { 0xff } else { 0 } ^ if i == 15 { 0x0a } else { 0 }
    });
    assert_eq!(
        std::fs::read(Path::new(&case.path("out/letter.enc"))).unwrap(),
        encrypt(key, &letter)
    );
}
