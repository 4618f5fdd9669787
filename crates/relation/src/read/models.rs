//! Reads the models of a program, and puts them where they are applied.

use std::collections::BTreeMap;

use super::{Result, head, quoted, unexpected};
use crate::forest::read_model;
use crate::models::Trained;
use crate::networks::read_network;
use crate::sexp::Sexp;

/// The models of a program, by their names.
pub(super) fn tagged(program: &[Sexp]) -> Result<BTreeMap<String, Trained>> {
    let mut all = BTreeMap::new();
    for item in program {
        let model = match head(item) {
            Some("model") => Trained::Trees(read_model(item)?),
            Some("network") => Trained::Network(read_network(item)?),
            _ => continue,
        };
        all.insert(model.name().to_owned(), model);
    }
    Ok(all)
}

/// Puts models in the place of their names where they are applied.
pub(super) fn resolve(item: &mut Sexp, models: &BTreeMap<String, Trained>) -> Result<()> {
    let applies = matches!(head(item), Some("predict" | "apply"));
    let Sexp::List(items) = item else {
        return Ok(());
    };
    if applies && let Some(name) = items.get_mut(1) {
        let found = quoted(name).ok().and_then(|text| models.get(&text));
        let found = found.ok_or_else(|| unexpected(name, "name of a model"))?;
        *name = Sexp::Model(found.clone());
    }
    items.iter_mut().try_for_each(|item| resolve(item, models))
}
