//! The files of a result of statistics.

use std::path::{Path, PathBuf};

use super::{StatsResult, chart};
use crate::publish::Staged;
use veil_job::DataError;

/// The four files of a result, until it is there.
#[derive(Debug)]
pub(crate) struct ResultFiles {
    text: Staged,
    csv: Staged,
    json: Staged,
    svg: Staged,
}

impl ResultFiles {
    /// Their names.
    pub(crate) const NAMES: [&'static str; 4] =
        ["result.txt", "result.csv", "result.json", "result.svg"];

    pub(crate) fn create(folder: &Path) -> Result<Self, DataError> {
        let [text, csv, json, svg] = Self::NAMES.map(|name| Staged::create(&folder.join(name)));
        Ok(Self {
            text: text?,
            csv: csv?,
            json: json?,
            svg: svg?,
        })
    }

    /// Their names as paths.
    pub(crate) fn paths() -> Vec<PathBuf> {
        Self::NAMES.iter().map(PathBuf::from).collect()
    }

    /// Writes all of them; they are there once they are published.
    pub(crate) fn write(mut self, result: &StatsResult) -> Result<Vec<Staged>, DataError> {
        self.text.append(result.to_string().as_bytes())?;
        self.csv.append(result.to_csv().as_bytes())?;
        self.json.append(result.to_json().as_bytes())?;
        self.svg.append(chart::draw(result).as_bytes())?;
        Ok(vec![self.text, self.csv, self.json, self.svg])
    }
}
