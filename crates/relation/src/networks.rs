//! The canonical text of networks, with every weight that is public.

use veil_learn::Network;
use veil_learn::network::{Activation, Bounds, Layer, NetworkParts, Readout, Secret, Window};

use crate::forest::{units, units_of};
use crate::read::{ReadError, all, head, number, quoted, tagged, unexpected, word};
use crate::sexp::Sexp;

type Result<T> = std::result::Result<T, ReadError>;

fn words(head: &str, of: impl IntoIterator<Item = impl ToString>) -> Sexp {
    Sexp::list(head, of.into_iter().map(Sexp::word))
}

fn texts(head: &str, of: &[String]) -> Sexp {
    Sexp::list(head, of.iter().cloned().map(Sexp::Text))
}

/// Biases, then a list of weights for each of them.
fn sums(weights: &[Vec<i64>], bias: &[i64], places: u32) -> impl Iterator<Item = Sexp> {
    let list = move |head: &str, of: &[i64]| {
        Sexp::list(head, of.iter().map(|one| units((*one).into(), places)))
    };
    let weights = weights.iter().map(move |of| list("weights", of));
    std::iter::once(list("bias", bias)).chain(weights)
}

fn window(of: &Window) -> [Sexp; 3] {
    [
        words("size", of.size),
        words("stride", of.stride),
        words("padding", of.padding),
    ]
}

fn layer(of: &Layer, places: u32) -> Sexp {
    match of {
        Layer::Dense { weights, bias } => Sexp::list("dense", sums(weights, bias, places)),
        Layer::Convolution {
            weights,
            bias,
            window: of,
        } => {
            let sums = sums(weights, bias, places);
            Sexp::list("convolution", window(of).into_iter().chain(sums))
        }
        Layer::Secret(Secret {
            outputs,
            window: of,
            bounds,
        }) => {
            let bounds = [bounds.weight, bounds.bias].map(|one| units(one.into(), places));
            let head = [words("outputs", [outputs]), Sexp::list("bounds", bounds)];
            let window = of.iter().flat_map(window);
            Sexp::list("secret", head.into_iter().chain(window))
        }
        // No window of a pool goes beyond the image.
        Layer::Pool { mean, window } => Sexp::list(
            "pool",
            [
                Sexp::word(if *mean { "mean" } else { "max" }),
                words("size", window.size),
                words("stride", window.stride),
            ],
        ),
        Layer::Activation(function) => words("activation", [function.name()]),
        Layer::Add { layer } => words("add", [layer]),
    }
}

/// The text of a network.
pub(crate) fn network(of: &Network) -> Sexp {
    let parts = of.parts();
    let head = [
        Sexp::Text(parts.name.clone()),
        Sexp::Text(parts.source.clone()),
        words("places", [parts.places]),
        texts("features", &parts.features),
        words("cells", parts.cells),
    ];
    let layers = parts.layers.iter().map(|of| layer(of, parts.places));
    let readout = match &parts.readout {
        Readout::Values(names) => texts("values", names),
        Readout::Classes(names) => texts("classes", names),
    };
    Sexp::list("network", head.into_iter().chain(layers).chain([readout]))
}

fn numbers<const N: usize>(item: &Sexp, tag: &'static str) -> Result<[u32; N]> {
    let all = all(item, tag, number)?;
    all.try_into().map_err(|_| unexpected(item, tag))
}

fn weight(item: &Sexp, places: u32) -> Result<i64> {
    let units = units_of(item, places)?;
    i64::try_from(units).map_err(|_| unexpected(item, "weight"))
}

fn read_sums(items: &[Sexp], places: u32) -> Result<(Vec<Vec<i64>>, Vec<i64>)> {
    let weight = |item: &Sexp| weight(item, places);
    let [bias, weights @ ..] = items else {
        return Err(unexpected(&Sexp::List(items.to_vec()), "layer"));
    };
    let weights = weights.iter().map(|item| all(item, "weights", weight));
    let weights = weights.collect::<Result<_>>()?;
    Ok((weights, all(bias, "bias", weight)?))
}

fn read_window([size, stride, padding]: [&Sexp; 3]) -> Result<Window> {
    Ok(Window {
        size: numbers(size, "size")?,
        stride: numbers(stride, "stride")?,
        padding: numbers(padding, "padding")?,
    })
}

fn read_layer(item: &Sexp, places: u32) -> Result<Layer> {
    let wrong = || unexpected(item, "layer");
    let Sexp::List(items) = item else {
        return Err(wrong());
    };
    let rest = items.get(1..).unwrap_or_default();
    Ok(match (head(item).ok_or_else(wrong)?, rest) {
        ("dense", sums) => {
            let (weights, bias) = read_sums(sums, places)?;
            Layer::Dense { weights, bias }
        }
        ("convolution", [size, stride, padding, sums @ ..]) => {
            let window = read_window([size, stride, padding])?;
            let (weights, bias) = read_sums(sums, places)?;
            Layer::Convolution {
                weights,
                bias,
                window,
            }
        }
        ("secret", [outputs, bounds, window @ ..]) => {
            let [outputs] = numbers(outputs, "outputs")?;
            let bounds: [i64; 2] = all(bounds, "bounds", |item| weight(item, places))?
                .try_into()
                .map_err(|_| wrong())?;
            let window = match window {
                [] => None,
                [size, stride, padding] => Some(read_window([size, stride, padding])?),
                _ => return Err(wrong()),
            };
            Layer::Secret(Secret {
                outputs,
                window,
                bounds: Bounds {
                    weight: bounds[0],
                    bias: bounds[1],
                },
            })
        }
        ("pool", [kind, size, stride]) => Layer::Pool {
            mean: match word(kind)? {
                "mean" => true,
                "max" => false,
                _ => return Err(wrong()),
            },
            window: Window {
                size: numbers(size, "size")?,
                stride: numbers(stride, "stride")?,
                padding: [0; 4],
            },
        },
        ("activation", [function]) => {
            let name = word(function)?;
            let found = Activation::ALL.into_iter().find(|one| one.name() == name);
            Layer::Activation(found.ok_or_else(wrong)?)
        }
        ("add", [layer]) => Layer::Add {
            layer: number(layer)?,
        },
        _ => return Err(wrong()),
    })
}

/// Reads a network.
pub(crate) fn read_network(item: &Sexp) -> Result<Network> {
    let wrong = || unexpected(item, "network");
    let [name, source, places, features, cells, layers @ .., readout] = tagged(item, "network")?
    else {
        return Err(wrong());
    };
    let [places] = numbers(places, "places")?;
    let layers = layers.iter().map(|item| read_layer(item, places));
    let parts = NetworkParts {
        name: quoted(name)?,
        source: quoted(source)?,
        features: all(features, "features", quoted)?,
        cells: numbers(cells, "cells")?,
        places,
        layers: layers.collect::<Result<_>>()?,
        readout: match head(readout) {
            Some("values") => Readout::Values(all(readout, "values", quoted)?),
            _ => Readout::Classes(all(readout, "classes", quoted)?),
        },
    };
    Network::new(parts).map_err(ReadError::Network)
}
