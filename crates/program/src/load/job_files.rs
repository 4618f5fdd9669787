//! The files that a job names: in its folder, or sent along with its text.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use toml::Spanned;

use crate::{
    JobProblem,
    error::Fault,
    raw::{RawCircuit, RawJob},
};

/// Files that came along with the text of a job, by their names in it.
pub type Sent = BTreeMap<String, Vec<u8>>;

/// Where a job's files are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum JobFiles<'a> {
    /// In a folder of this machine, to which paths in the job are relative.
    Folder(&'a Path),
    /// With its text, and nowhere else: what the job says of data files means nothing here, and no file is looked for.
    Sent(&'a Sent),
}

impl JobFiles<'_> {
    /// The folder that paths in the job are relative to.
    pub(super) fn folder(self) -> Option<PathBuf> {
        match self {
            JobFiles::Folder(folder) => Some(folder.to_owned()),
            JobFiles::Sent(_) => None,
        }
    }
}

/// Whether a path stays in the folder that it is relative to.
fn stays(path: &Path) -> bool {
    path.components()
        .all(|part| matches!(part, Component::Normal(_)))
}

/// What another participant sends has no path that leads out of the job's folder, and no file that the job does not name.
pub(super) fn check(raw: &RawJob, sent: &Sent) -> Result<(), Fault> {
    let blocks = raw.block.iter().flat_map(|block| &block.get_ref().files);
    let blocks = blocks.map(|(_, file)| ("files", file));
    let inputs = raw
        .input
        .iter()
        .filter_map(|one| one.get_ref().file.as_ref());
    let tables = raw.table.iter();
    let tables = tables.filter_map(|table| table.get_ref().file.as_ref());
    let mut data = blocks.chain(inputs.chain(tables).map(|file| ("file", file)));
    if let Some((field, file)) = data.find(|(_, file)| !stays(file.get_ref())) {
        return Err(Fault::new(file.span(), JobProblem::LeadsOut { field }));
    }
    let circuit = raw.circuit.as_ref().map(Spanned::get_ref);
    let named = circuit.and_then(|circuit| circuit.file.as_ref());
    if let Some(file) = named {
        let mut parts = file.get_ref().components();
        let plain = matches!(parts.next(), Some(Component::Normal(name)) if name == file.get_ref().as_os_str());
        if !plain || parts.next().is_some() {
            return Err(Fault::new(file.span(), JobProblem::NotPlain));
        }
    }
    let named = named.and_then(|file| file.get_ref().to_str());
    match sent.keys().find(|name| Some(name.as_str()) != named) {
        Some(name) => {
            let problem = JobProblem::NotNamed(name.clone());
            Err(Fault::new(raw.name.span(), problem))
        }
        None => Ok(()),
    }
}

/// The circuit file of a job's text, if it names one: what has to go with it. Nothing if the text is no job.
pub(super) fn circuit_file(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        circuit: Option<RawCircuit>,
    }
    let named: Named = toml::from_str(text).ok()?;
    let file = named.circuit?.file?;
    file.get_ref().to_str().map(str::to_owned)
}
