//! Networks that queries apply: how a job file says that, and what they are, in sentences.

use toml::Spanned;
use veil_query::Application;
use veil_relation::network::{Cells, Layer, Readout, Secret, Window};
use veil_relation::{MOST_SCORE_PLACES, Network, NetworkUse, Trained, WeightsUse};

use super::Queries;
use super::explain::count;
use super::show::decimal;
use crate::error::{Fault, JobProblem};
use crate::raw::{Models, RawApply};

/// Decimal places of what a network gives whose job does not say.
const PLACES: u32 = 3;

/// The network of a query, with the weights of its model.
pub(super) fn application(at: &Spanned<RawApply>, models: &Models) -> Result<Application, Fault> {
    let raw = at.get_ref();
    let mut model = models
        .iter()
        .filter(|(name, _)| name.get_ref() == raw.model.get_ref());
    let weights = model.find_map(|(_, model)| model.get_ref().weights.as_ref());
    let places = match &raw.places {
        None => PLACES,
        Some(places) => {
            let fits = u32::try_from(*places.get_ref()).ok();
            let fits = fits.filter(|places| *places <= MOST_SCORE_PLACES);
            let problem = || JobProblem::Number {
                field: "places",
                value: places.get_ref().to_string(),
                reason: format!("what a network gives has 0 to {MOST_SCORE_PLACES} places"),
            };
            fits.ok_or_else(|| Fault::new(places.span(), problem()))?
        }
    };
    Ok(Application {
        model: raw.model.get_ref().clone(),
        places,
        scores: raw.scores.unwrap_or(false),
        weights: weights.map(|table| table.get_ref().clone()),
    })
}

impl Queries {
    /// The networks that queries apply, in sentences: what they are, that all participants have them, but for weights that are an owner's, and how near each application comes to them.
    pub fn networks(&self) -> Vec<String> {
        let models = self.program().models().into_iter();
        let about = models.filter_map(|model| match model {
            Trained::Network(network) => Some(about(&network)),
            Trained::Trees(_) => None,
        });
        // They were typed when the job was read.
        let uses = self.program().network_uses().unwrap_or_default();
        let applied = uses.iter().filter_map(|of| {
            let inference = of.apply.inference(&of.columns).ok()?;
            let near = (
                inference.products(),
                inference.binary_places(),
                inference.error(),
            );
            let mut said = sentence(self.title(&of.step), of, near);
            let weights = self.program().weights().into_iter();
            for weights in weights.filter(|weights| weights.network == of.apply.network.name()) {
                said += &self.secret(&weights);
            }
            Some(said)
        });
        about.chain(applied).collect()
    }

    /// Whose weights a network has, and what its predictions show of them.
    fn secret(&self, of: &WeightsUse) -> String {
        let table = &self.program().tables[of.table];
        format!(
            "; its secret weights are {} of `{}`, column `{}`, of {}, which no participant sees: predictions are functions of them, and a recipient of many learns much of the network",
            count(table.capacity, "number"),
            table.name,
            table.columns[of.column.index()].name,
            table.origin,
        )
    }
}

/// An application of so many products a row, with so many binary places between layers and an error of so many thousandths of a unit of the last place.
fn sentence(title: &str, of: &NetworkUse, (products, binary, error): (u64, u32, u128)) -> String {
    let apply = &of.apply;
    let given = apply.names();
    let gives = match &given[..] {
        [one] => one.clone(),
        [first, .., last] if given.len() > 3 => format!("{first}, …, {last}"),
        all => all.join(", "),
    };
    let error = decimal(i128::try_from(error).unwrap_or(i128::MAX), apply.places + 3);
    // It has three places at least.
    let error = error.trim_end_matches('0').trim_end_matches('.');
    let rows = count(u32::try_from(of.rows).unwrap_or(u32::MAX), "row");
    let rounded = if apply.network.secret().is_empty() {
        String::new()
    } else {
        let places = apply.network.parts().places;
        format!(
            " and with secret weights as they were before they were rounded to {}",
            count(places, "place")
        )
    };
    let classes = matches!(apply.network.parts().readout, Readout::Classes(_));
    let scores = if classes { "scores" } else { "numbers" };
    let mut text = format!(
        "`{}` in `{title}`: {gives} for each of up to {rows}, by {products} products of integers a row, with {} between layers; {scores} are within {error} of the network's with real numbers{rounded}",
        apply.network.name(),
        count(binary, "binary place"),
    );
    if classes {
        text += match apply.network.cells().last() {
            Some([1, 1, 1]) => {
                "; where the score is nearer to 0 than that, the class may be the other one"
            }
            _ => {
                "; where the highest scores are nearer to each other than twice that, the class may be another one"
            }
        };
    }
    text
}

/// The bounds of secret weights, in words.
fn bounds(of: &Secret, places: u32) -> String {
    let [weight, bias] =
        [of.bounds.weight, of.bounds.bias].map(|units| decimal(units.into(), places));
    format!("secret weights within {weight} and biases within {bias}")
}

fn size(of: [u32; 2]) -> String {
    format!("{} × {}", of[0], of[1])
}

fn cells(of: Cells) -> String {
    match of {
        [cells, 1, 1] => count(cells, "cell"),
        [channels, rows, columns] => format!("{channels} × {rows} × {columns} cells"),
    }
}

/// A layer in words, with what it gives.
fn layer(of: &Layer, gives: Cells, places: u32) -> String {
    let steps = |window: &Window| match window.stride {
        [1, 1] => String::new(),
        stride => format!(" in steps of {}", size(stride)),
    };
    let convolution = |window: &Window| {
        let padded = if window.padding == [0; 4] {
            ""
        } else {
            ", padded"
        };
        let (size, steps) = (size(window.size), steps(window));
        format!("convolution of {size}{steps}{padded}")
    };
    let what = match of {
        Layer::Dense { .. } => "dense".to_owned(),
        Layer::Convolution { window, .. } => convolution(window),
        Layer::Secret(secret) => {
            let of = secret.window.as_ref();
            let kind = of.map_or_else(|| "dense".to_owned(), convolution);
            return format!("{kind} to {} of {}", cells(gives), bounds(secret, places));
        }
        Layer::Pool { mean, window } => {
            let kind = if *mean { "mean" } else { "largest" };
            format!("{kind} of {}{}", size(window.size), steps(window))
        }
        Layer::Activation(function) => return function.name().to_owned(),
        Layer::Add { layer } => return format!("sum with layer {layer}"),
    };
    format!("{what} to {}", cells(gives))
}

/// What a network is.
pub(super) fn about(network: &Network) -> String {
    let parts = network.parts();
    let layers = parts.layers.iter().zip(network.cells());
    let layers: Vec<String> = layers
        .map(|(of, gives)| layer(of, *gives, parts.places))
        .collect();
    let many = |number: usize, one| count(u32::try_from(number).unwrap_or(u32::MAX), one);
    let gives = match &parts.readout {
        Readout::Values(names) => many(names.len(), "number"),
        Readout::Classes(classes) => format!("one of {} classes", classes.len()),
    };
    let secret: u32 = network.secret().iter().map(|block| block.count).sum();
    let all = match secret {
        0 => "with all weights".to_owned(),
        secret => format!("but for {} that an owner brings", count(secret, "number")),
    };
    format!(
        "`{}`: a network of {}, {}: {}; {} of {}; it gives {gives}, and nulls where a feature is null; from: {}; every participant has it, {all}",
        network.name(),
        many(parts.features.len(), "feature"),
        many(layers.len(), "layer"),
        layers.join(", "),
        many(network.weights(), "weight"),
        count(parts.places, "decimal place"),
        parts.source,
    )
}

#[cfg(test)]
mod tests {
    use veil_relation::network::NetworkParts;
    use veil_relation::{Apply, Expr};

    use super::*;

    /// A network of one layer for two classes, of one number or of two.
    fn applied(cells: usize, places: u32) -> NetworkUse {
        let parts = NetworkParts {
            name: "ill".into(),
            source: "a test".into(),
            features: vec!["x".into()],
            cells: [1, 1, 1],
            places: 0,
            layers: vec![Layer::Dense {
                weights: vec![vec![1]; cells],
                bias: vec![0; cells],
            }],
            readout: Readout::Classes(vec!["no".into(), "yes".into()]),
        };
        NetworkUse {
            step: "q".into(),
            apply: Apply {
                network: Network::new(parts).expect("it is a network"),
                features: vec![Expr::column(0)],
                places,
                scores: cells > 1,
            },
            columns: vec![],
            rows: 7,
        }
    }

    #[test]
    fn errors_are_written_to_their_last_place() {
        let said = |cells, places, error| sentence("read", &applied(cells, places), (9, 20, error));
        assert_eq!(
            said(1, 3, 2_100),
            "`ill` in `read`: class for each of up to 7 rows, by 9 products of integers a row, with 20 binary places between layers; scores are within 0.0021 of the network's with real numbers; where the score is nearer to 0 than that, the class may be the other one"
        );
        for (places, error, shown) in [
            (0, 2_000, "2"),
            (0, 501, "0.501"),
            (9, 1, "0.000000000001"),
            (3, 20_000_000, "20"),
        ] {
            let text = said(2, places, error);
            assert!(text.contains("class, score_0, score_1 for each"), "{text}");
            let within = format!("within {shown} of the network's");
            assert!(text.contains(&within), "{text}");
        }
    }
}
