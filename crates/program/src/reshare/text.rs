//! A resharing as a job file.

use toml::Value;
use veil_session::PlanHash;

use super::Resharing;

/// All digits of a plan hash.
pub(super) fn hex(plan: &PlanHash) -> String {
    data_encoding::HEXLOWER.encode(&plan.0)
}

impl Resharing {
    /// The text of the job `name` that gives the dataset to the parties `new`. Whether the job can be used, [`Job::parse`] says.
    ///
    /// [`Job::parse`]: crate::Job::parse
    pub fn to_job(&self, name: &str, new: &[String]) -> String {
        let text = |text: &str| Value::from(text).to_string();
        let names = |names: &[String]| Value::from(names.to_vec()).to_string();
        let entry = |name: &str, field: &str, number: u64| {
            let name = Value::from(name);
            format!("    {{ name = {name}, {field} = {number} }},\n")
        };
        let ports = self.ports.iter();
        let ports: String = ports
            .map(|(name, width)| entry(name, "width", (*width).into()))
            .collect();
        let blocks = self.blocks.iter();
        let blocks: String = blocks
            .map(|(name, rows)| entry(name, "rows", *rows))
            .collect();
        [
            "version = 1\nkind = \"reshare\"\nname = ",
            &text(name),
            "\nowners = ",
            &names(&self.old),
            "\nparties = ",
            &names(new),
            "\n\n[reshare]\ndataset = ",
            &text(&self.dataset),
            "\nas = ",
            &text(&self.name),
            "\nplan = ",
            &text(&hex(&self.made_by)),
            "\nring = ",
            &self.ring.bits().to_string(),
            "\nschema = ",
            &text(&self.schema),
            "\nport = [\n",
            &ports,
            "]\nblock = [\n",
            &blocks,
            "]\n",
        ]
        .concat()
    }
}
