//! Files of models that were trained elsewhere: of trees, or of networks.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use veil_relation::Trained;

use super::{forest, network};
use crate::error::{Fault, JobProblem};
use crate::load::JobFiles;
use crate::raw::{RawJob, RawModel};

/// Bytes of the file of a model: what goes with a proposal.
const LONGEST: u64 = 12 << 20;

/// What any file says; the rest is that of its kind.
#[derive(Deserialize)]
struct RawHead {
    version: u32,
    kind: String,
}

/// Reads the text of a file.
pub(super) fn read(name: &str, text: &[u8]) -> Result<Trained, String> {
    let head: RawHead = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    match (head.version, head.kind.as_str()) {
        (1, "trees") => forest::read(name, text).map(Trained::Trees),
        (1, "network") => network::read(name, text).map(Trained::Network),
        _ => Err("it is no model of version 1 and of kind \"trees\" or \"network\"".into()),
    }
}

/// The bytes of a model's file, no more than one may have.
fn bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(LONGEST + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn model(name: &str, raw: &Spanned<RawModel>, files: JobFiles<'_>) -> Result<Trained, Fault> {
    let file = &raw.get_ref().file;
    let shown = file.get_ref().display().to_string();
    let wrong = |reason: String| {
        let (name, file_name) = (name.to_owned(), shown.clone());
        Fault::new(
            file.span(),
            JobProblem::Model {
                name,
                file: file_name,
                reason,
            },
        )
    };
    let text = match (files.beside(&shown), files) {
        (Some(text), _) => text.to_vec(),
        (None, JobFiles::Sent(_)) => {
            return Err(Fault::new(file.span(), JobProblem::NotSent(shown)));
        }
        (None, JobFiles::Folder(folder) | JobFiles::With(folder, _)) => {
            bytes(&folder.join(file.get_ref())).map_err(|error| wrong(error.to_string()))?
        }
    };
    if text.len() as u64 > LONGEST {
        return Err(wrong(format!("it has more than {} MiB", LONGEST >> 20)));
    }
    let read = read(name, &text).map_err(wrong)?;
    if let (Some(weights), Trained::Trees(_)) = (&raw.get_ref().weights, &read) {
        let what = format!("`{name}`, a model of trees,");
        let field = "weights";
        return Err(Fault::new(
            weights.span(),
            JobProblem::NoUse { what, field },
        ));
    }
    Ok(read)
}

/// The models of a job.
pub(super) fn models(raw: &RawJob, files: JobFiles<'_>) -> Result<Vec<Trained>, Fault> {
    let all = raw.model.iter();
    all.map(|(name, raw)| {
        crate::roles::check_name("model", name)?;
        model(name.get_ref(), raw, files)
    })
    .collect()
}
