//! A second implementation of the format: Arrow's own reader, HKDF, and AES-256-GCM written out from NIST SP 800-38D.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::common::{among_four, components, description, packed, write};
use aes::Aes256;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_ipc::reader::FileReader;
use hkdf::Hkdf;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use veil_job::Slice;
use veil_math::Ring;

/// Multiplication in GF(2^128), SP 800-38D, algorithm 1.
fn multiply(x: u128, mut v: u128) -> u128 {
    let mut z = 0;
    for bit in (0..128).rev() {
        if x >> bit & 1 == 1 {
            z ^= v;
        }
        let carry = v & 1;
        v >>= 1;
        if carry == 1 {
            v ^= 0xe1 << 120;
        }
    }
    z
}

/// AES-256-GCM, algorithm 5: the plaintext, if the tag is right.
fn open(key: &[u8; 32], nonce: [u8; 12], data: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let cipher = Aes256::new(key.into());
    let encrypt = |block: [u8; 16]| -> [u8; 16] {
        let mut block = block.into();
        cipher.encrypt_block(&mut block);
        block.into()
    };
    let counter = |count: u32| {
        let mut block = [0; 16];
        block[..12].copy_from_slice(&nonce);
        block[12..].copy_from_slice(&count.to_be_bytes());
        encrypt(block)
    };
    let (text, tag) = sealed.split_at(sealed.len() - 16);
    let h = u128::from_be_bytes(encrypt([0; 16]));
    let mut hash = 0;
    let mut absorb = |bytes: &[u8]| {
        for piece in bytes.chunks(16) {
            let mut block = [0; 16];
            block[..piece.len()].copy_from_slice(piece);
            hash = multiply(hash ^ u128::from_be_bytes(block), h);
        }
    };
    absorb(data);
    absorb(text);
    absorb(&(((data.len() as u128 * 8) << 64) | (text.len() as u128 * 8)).to_be_bytes());
    if (hash ^ u128::from_be_bytes(counter(1))).to_be_bytes() != tag {
        return None;
    }
    let blocks = text.chunks(16).enumerate();
    let plain = blocks.flat_map(|(index, piece)| {
        let stream = counter(index as u32 + 2);
        piece
            .iter()
            .zip(stream)
            .map(|(byte, mask)| byte ^ mask)
            .collect::<Vec<_>>()
    });
    Some(plain.collect())
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = (0..text.len()).step_by(2);
    digits
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("digits"))
        .collect()
}

#[test]
fn the_cipher_here_is_aes_256_gcm() {
    // McGrew, Viega: The Galois/Counter Mode of Operation, 2004, test case 14.
    let sealed = unhex("cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919");
    assert_eq!(open(&[0; 32], [0; 12], &[], &sealed), Some(vec![0; 16]));
}

#[test]
fn another_program_reads_the_same_shares() {
    for (ring, once, chunk_rows, scheme) in [
        (Ring::Bits, true, 64, "rep3"),
        (Ring::Z64, false, 100, "rep3"),
        (Ring::Z128, true, 64, "rep3"),
        (Ring::Bits, false, 64, "rep4"),
        (Ring::Z64, true, 100, "rep4"),
    ] {
        let root = tempfile::tempdir().unwrap();
        let d = description(ring, &[2, 1, 3], once, &[150, 64, 3], chunk_rows);
        let d = if scheme == "rep4" { among_four(d) } else { d };
        write(root.path(), &d);
        let path = root.path().join("pay 2025/shares.arrow");
        let bytes = std::fs::read(&path).unwrap();
        let reader = FileReader::try_new(File::open(&path).unwrap(), None).unwrap();
        let schema = reader.schema();
        let metadata = schema.metadata();
        assert_eq!(metadata["veil.scheme"], scheme);
        assert_eq!(metadata["veil.ring"], ring.name());
        assert_eq!(metadata["veil.rows"], "217");
        assert_eq!(metadata["veil.party"], r#"{"index":1,"name":"south"}"#);

        let (_, extracted) = Hkdf::<Sha256>::extract(Some(b"veilworks store v1"), &[0x5e; 32]);
        let mut key = [0; 32];
        let info = [b"chunks\0".to_vec(), unhex(&metadata["veil.salt"])].concat();
        extracted.expand(&info, &mut key).unwrap();
        let length = u32::from_le_bytes(bytes[68..72].try_into().unwrap()) as usize;
        let header = Sha256::digest(&bytes[..72 + length]);

        let held: u64 = metadata["veil.chunk_rows"].parse().unwrap();
        let mut seen = 0;
        for (index, batch) in reader.enumerate() {
            let batch = batch.unwrap();
            assert_eq!(batch.num_rows(), 1);
            let block = batch.column(0).as_primitive::<UInt32Type>().value(0);
            let first = batch.column(1).as_primitive::<UInt64Type>().value(0);
            let rows = batch.column(2).as_primitive::<UInt32Type>().value(0);
            seen += u64::from(rows);
            for (port, described) in d.ports.iter().enumerate() {
                for component in 0..components(&d) {
                    let column = u32::from(components(&d)) * port as u32 + u32::from(component);
                    let sealed = batch
                        .column(3 + column as usize)
                        .as_binary::<i32>()
                        .value(0);
                    if described.once && index > 0 {
                        assert!(sealed.is_empty());
                        continue;
                    }
                    let mut nonce = [0; 12];
                    nonce[..8].copy_from_slice(&(index as u64).to_le_bytes());
                    nonce[8..].copy_from_slice(&column.to_le_bytes());
                    let mut data = header.to_vec();
                    data.extend_from_slice(&(index as u64).to_le_bytes());
                    data.extend_from_slice(&column.to_le_bytes());
                    data.extend_from_slice(&block.to_le_bytes());
                    data.extend_from_slice(&first.to_le_bytes());
                    data.extend_from_slice(&rows.to_le_bytes());
                    let plain = open(&key, nonce, &data, sealed).expect("an authentic column");
                    let (rows, held) = if described.once { (1, 1) } else { (rows, held) };
                    let slice = Slice { block, first, rows };
                    let want = packed(&d, ring, port, component, slice);
                    let wires = plain.chunks(ring.bytes(held) as usize);
                    let wires = wires.zip(want.chunks(ring.bytes(rows.into()) as usize));
                    for (got, want) in wires {
                        assert_eq!(&got[..want.len()], want);
                        assert!(got[want.len()..].iter().all(|byte| *byte == 0), "padding");
                    }
                }
            }
        }
        assert_eq!(seen, 217);
    }
}

/// What the documentation shows: another library opens the file and finds in clear what is not secret.
#[test]
fn pyarrow_opens_the_file_as_the_documentation_says() {
    let python = |code: &str, folder: &Path| {
        let mut command = Command::new("python3");
        command.args(["-c", code]).current_dir(folder).output()
    };
    let root = tempfile::tempdir().unwrap();
    let imported = python("import pyarrow", root.path());
    if !imported.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: python3 has no pyarrow");
        return;
    }
    let d = description(Ring::Z64, &[2, 1, 3], true, &[150, 64, 3], 64);
    write(root.path(), &d);
    let page = include_str!("../../../docs/shares.md");
    let (_, code) = page.split_once("```python\n").unwrap();
    let (code, _) = code.split_once("```").unwrap();
    let more = "
import json
print(json.dumps({'metadata': {key.decode(): value.decode() for key, value in table.schema.metadata.items()},
                  'chunks': table.select(['block', 'first', 'rows']).to_pydict()}))
";
    let output = python(&format!("{code}{more}"), &root.path().join(&d.name)).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{errors}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("b'217' "), "{said}");
    let found: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let chunks = json!({ "block": [0, 0, 0, 1, 2], "first": [0, 64, 128, 0, 0], "rows": [64, 64, 22, 64, 3] });
    assert_eq!(found["chunks"], chunks);
    for (name, want) in [
        ("veil.scheme", json!("rep3")),
        ("veil.dataset", json!(d.name)),
        ("veil.plan", json!("ab".repeat(32))),
        ("veil.ring", json!(d.ring.name())),
    ] {
        assert_eq!(found["metadata"][name], want, "{name}");
    }
    let names = |key: &str| -> Vec<String> {
        let text = found["metadata"][key].as_str().unwrap();
        let list: Vec<Value> = serde_json::from_str(text).unwrap();
        let name = |one: &Value| one["name"].as_str().unwrap().to_owned();
        list.iter().map(name).collect()
    };
    assert_eq!(names("veil.parties"), ["north", "south", "west"]);
    assert_eq!(names("veil.ports"), ["x0", "x1", "x2"]);
    assert_eq!(names("veil.blocks"), ["b0", "b1", "b2"]);
}
