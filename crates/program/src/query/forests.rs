//! What the models of queries are, in sentences.

use veil_relation::forest::Output;
use veil_relation::{Expr, Forest, Trained};

use super::Queries;
use super::explain::count;
use super::show::decimal;

/// What the text of a model's file says, in a sentence, or why it is none.
///
/// # Errors
/// The reason, as of a job that names the file.
pub fn read_model(name: &str, text: &[u8]) -> Result<String, String> {
    super::trained::read(name, text).map(|model| match model {
        Trained::Trees(model) => about(&model),
        Trained::Network(network) => super::networks::about(&network),
    })
}

/// What the text of a network's file says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetworkFacts {
    /// It, in a sentence.
    pub about: String,
    /// How many cells the last layer gives: of two classes it may be one.
    pub cells: u64,
    /// How many weights and biases an owner brings: the rows of their table.
    pub secret: u64,
}

/// What the text of a network's file says, or why it is none.
///
/// # Errors
/// The reason, as of a job that names the file.
pub fn read_network(name: &str, text: &[u8]) -> Result<NetworkFacts, String> {
    let Trained::Network(network) = super::trained::read(name, text)? else {
        return Err("it is a file of trees".into());
    };
    let last = network.cells().last().copied().unwrap_or_default();
    let secret = network.secret();
    Ok(NetworkFacts {
        about: super::networks::about(&network),
        cells: veil_relation::network::count(last),
        secret: secret.iter().map(|block| u64::from(block.count)).sum(),
    })
}

impl Queries {
    /// The models of trees that queries apply, in sentences: what they are, that all participants have them, and what each application costs.
    pub fn forests(&self) -> Vec<String> {
        // They were typed when the job was read.
        let uses = self.program().model_uses().unwrap_or_default();
        let models = self.program().models().into_iter();
        let about = models.filter_map(|model| match model {
            Trained::Trees(model) => Some(about(&model)),
            Trained::Network(_) => None,
        });
        let applied = uses.iter().map(|of| {
            let what = match &of.expr {
                Expr::Predict {
                    output: Output::Score(class),
                    ..
                } => {
                    let class = of.model.parts().classes.get(usize::from(*class));
                    format!("the score of `{}`", class.map_or("", String::as_str))
                }
                Expr::Predict {
                    output: Output::Class,
                    ..
                } => "the class".to_owned(),
                _ => "the value".to_owned(),
            };
            let ands = veil_physical::ands(&of.expr, &of.columns);
            let ands = ands.map_or_else(String::new, |ands| {
                format!(": {ands} ANDs a row, by itself")
            });
            format!(
                "{what} of `{}` in `{}`{ands}",
                of.model.name(),
                self.title(&of.step)
            )
        });
        about.chain(applied).collect()
    }
}

/// What a model is.
fn about(model: &Forest) -> String {
    let (parts, size) = (model.parts(), model.size());
    let count = |number: usize, one| count(u32::try_from(number).unwrap_or(u32::MAX), one);
    let gives = match parts.classes.len() {
        0 => {
            let ends = model
                .scores()
                .first()
                .map(|range| (range.min(), range.max()));
            let (min, max) = ends.unwrap_or_default();
            let shown = |units| decimal(units, parts.places);
            format!("a number from {} to {}", shown(min), shown(max))
        }
        classes => format!(
            "one of {}",
            count(classes, "class").replace("classs", "classes")
        ),
    };
    let nulls = if model.tracks_nulls() {
        "its splits say where nulls go"
    } else {
        "it is null where a feature is"
    };
    format!(
        "`{}`: {} of up to {}, {}, {}, of {}; it gives {gives}, of leaves that have been rounded to {} once, and {nulls}; from: {}; every participant has it, with all thresholds and leaves",
        model.name(),
        count(parts.trees.len(), "tree"),
        count(size.depth, "level"),
        count(size.splits, "split"),
        count(size.leaves, "leaf").replace("leafs", "leaves"),
        count(parts.features.len(), "feature"),
        count(parts.places as usize, "decimal place"),
        parts.source,
    )
}
