//! The files that a job names: in its folder, or sent along with its text.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use toml::Spanned;

use crate::{JobProblem, error::Fault, raw::RawJob};

/// Files that came along with the text of a job, by their names in it.
pub type Sent = BTreeMap<String, Vec<u8>>;

/// Where a job's files are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum JobFiles<'a> {
    /// In a folder of this machine, to which paths in the job are relative.
    Folder(&'a Path),
    /// Likewise, but for those that are in memory.
    With(&'a Path, &'a Sent),
    /// With its text, and nowhere else: what the job says of data files means nothing here, and no file is looked for.
    Sent(&'a Sent),
}

impl JobFiles<'_> {
    /// The folder that paths in the job are relative to.
    pub(super) fn folder(self) -> Option<PathBuf> {
        match self {
            JobFiles::Folder(folder) | JobFiles::With(folder, _) => Some(folder.to_owned()),
            JobFiles::Sent(_) => None,
        }
    }

    /// A file that is in memory.
    pub(crate) fn beside(&self, name: &str) -> Option<&[u8]> {
        match self {
            JobFiles::Folder(_) => None,
            JobFiles::With(_, files) | JobFiles::Sent(files) => files.get(name).map(Vec::as_slice),
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
    let circuit = circuit.and_then(|circuit| circuit.file.as_ref());
    let circuit = circuit.map(|file| ("circuit".to_owned(), file));
    let models = raw.model.iter();
    let models = models.map(|(name, model)| {
        let section = format!("model.{}", name.get_ref());
        (section, &model.get_ref().file)
    });
    let mut named = Vec::new();
    for (section, file) in circuit.into_iter().chain(models) {
        let mut parts = file.get_ref().components();
        let plain = matches!(parts.next(), Some(Component::Normal(name)) if name == file.get_ref().as_os_str());
        if !plain || parts.next().is_some() {
            return Err(Fault::new(file.span(), JobProblem::NotPlain(section)));
        }
        named.extend(file.get_ref().to_str());
    }
    match sent.keys().find(|name| !named.contains(&name.as_str())) {
        Some(name) => {
            let problem = JobProblem::NotNamed(name.clone());
            Err(Fault::new(raw.name.span(), problem))
        }
        None => Ok(()),
    }
}

/// The circuit file and the models of a job's text, each once: what has to go with it. Nothing if the text is no job.
pub(super) fn named_files(text: &str) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        circuit: Option<NamedFile>,
        #[serde(default)]
        model: BTreeMap<String, NamedFile>,
    }
    #[derive(serde::Deserialize)]
    struct NamedFile {
        file: Option<String>,
    }
    let Ok(named) = toml::from_str::<Named>(text) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for file in named.circuit.into_iter().chain(named.model.into_values()) {
        if let Some(file) = file.file.filter(|file| !files.contains(file)) {
            files.push(file);
        }
    }
    files
}
