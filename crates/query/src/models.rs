//! Calls of the models of a job.

use veil_relation::forest::Output;
use veil_relation::{Expr, Forest, Trained};

use crate::bind::Binder;
use crate::error::{Problem, SqlError};
use crate::scalar::Scope;
use crate::term::{Term, Terms};

/// Whether a function of this name applies a model.
pub(crate) fn applies(name: &str) -> bool {
    matches!(name, "predict" | "predict_score")
}

impl Binder<'_> {
    /// `predict('risk', …)`, the number or the class that a model gives for its features, and `predict_score('risk', 'high', …)`, the score of one of its classes.
    pub(crate) fn applied(
        &self,
        scope: &Scope<'_>,
        terms: &Terms<'_>,
        name: &str,
        args: Vec<Term>,
    ) -> Result<Term, SqlError> {
        let at = terms.at;
        let refused = |what: String, instead| Err(self.source.refused(at, what, instead));
        let mut args = args.into_iter();
        let Some(Term::Text(called)) = args.next() else {
            let what = format!(
                "{name} takes the name of a model of the job, in quotes, as its first argument"
            );
            return refused(what, Some("write predict('risk', age, ward)"));
        };
        let Some(model) = self.models.iter().find(|model| model.name() == called) else {
            return Err(self.source.error(at, Problem::NoModel { name: called }));
        };
        let model = match model {
            Trained::Trees(model) => model,
            Trained::Network(_) => {
                let what = format!(
                    "`{called}` is a network, which a job applies to all rows of a query, and {name} is of models of trees"
                );
                let instead = "select its features by their names, and write apply = { model = \"…\" } beside sql";
                return refused(what, Some(instead));
            }
        };
        let classes = &model.parts().classes;
        let output = match (name, classes.is_empty()) {
            ("predict", true) => Output::Value,
            ("predict", false) => Output::Class,
            (_, true) => {
                let what = format!("model `{called}` has no classes");
                return refused(what, Some("write predict(…) for its value"));
            }
            (_, false) => {
                let class = match args.next() {
                    Some(Term::Text(class)) => class,
                    _ => String::new(),
                };
                let Some(found) = classes.iter().position(|known| *known == class) else {
                    let known = some(classes.iter().map(|class| format!("'{class}'")));
                    let what = format!(
                        "predict_score takes one of the classes of `{called}` as its second argument: {known}"
                    );
                    return refused(what, None);
                };
                Output::Score(found as u16)
            }
        };
        let features = &model.parts().features;
        let of = args.map(|arg| terms.typed(arg).map(|(expr, _)| expr));
        let of = of.collect::<Result<Vec<_>, _>>()?;
        if of.len() != features.len() {
            let takes = some(features.iter().map(|feature| feature.name.clone()));
            let what = format!(
                "model `{called}` takes its {} features in their order, and not {}: {takes}",
                features.len(),
                of.len()
            );
            return refused(what, None);
        }
        let model = Forest::clone(model);
        self.checked(Expr::Predict { model, output, of }, scope, at)
    }
}

/// The first of some names.
fn some(names: impl ExactSizeIterator<Item = String>) -> String {
    const MOST: usize = 12;
    let more = if names.len() > MOST { ", …" } else { "" };
    let first: Vec<String> = names.take(MOST).collect();
    first.join(", ") + more
}
