//! Files of models: networks in JSON.
//!
//! The grammar is closed, weights and bounds of them are decimals in quotes, and nothing is rounded.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use veil_relation::Network;
use veil_relation::network::{
    Activation, Bounds, Layer, MOST_PLACES, NetworkParts, Readout, Secret, Window,
};

use super::decimal::decimal;

/// What a file says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawNetwork {
    #[serde(rename = "version")]
    _version: u32,
    #[serde(rename = "kind")]
    _kind: String,
    source: String,
    places: u32,
    features: Vec<RawFeature>,
    shape: Option<[u32; 3]>,
    layers: Vec<RawLayer>,
    outputs: Option<Vec<String>>,
    classes: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFeature {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawLayer {
    Dense(RawDense),
    Convolution(RawConvolution),
    Pool(RawPool),
    Activation(RawActivation),
    Add(u32),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDense {
    weights: Option<Vec<Vec<Weight>>>,
    bias: Option<Vec<Weight>>,
    outputs: Option<u32>,
    bounds: Option<RawBounds>,
}

/// The greatest absolute values of weights that an owner brings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBounds {
    weight: Weight,
    bias: Weight,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConvolution {
    /// Of each output a list for each channel, of each channel one for each row.
    weights: Option<Vec<Vec<Vec<Vec<Weight>>>>>,
    bias: Option<Vec<Weight>>,
    outputs: Option<u32>,
    size: Option<[u32; 2]>,
    bounds: Option<RawBounds>,
    stride: Option<[u32; 2]>,
    padding: Option<[u32; 4]>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPool {
    kind: RawPooling,
    size: [u32; 2],
    stride: Option<[u32; 2]>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawPooling {
    Max,
    Mean,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawActivation {
    Relu,
    Sigmoid,
    Tanh,
}

/// Units and places of a weight: as many numbers as a file has places for are held at once.
#[derive(Clone, Copy)]
struct Weight(i64, u32);

impl<'de> Deserialize<'de> for Weight {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(AnyWeight)
    }
}

struct AnyWeight;

impl Visitor<'_> for AnyWeight {
    type Value = Weight;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number in quotes, such as \"-0.25\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Weight, E> {
        let (units, places) = decimal(text).map_err(E::custom)?;
        let units = i64::try_from(units).ok().filter(|_| places <= MOST_PLACES);
        let long =
            || format!("`{text}` has more than 18 digits, or more than {MOST_PLACES} places");
        Ok(Weight(units.ok_or_else(|| E::custom(long()))?, places))
    }
}

/// The weights of a network of so many places.
#[derive(Clone, Copy)]
struct Places(u32);

impl Places {
    fn units(self, Weight(units, found): Weight) -> Result<i64, String> {
        let Self(places) = self;
        let more = places.checked_sub(found).ok_or_else(|| {
            format!("a weight has {found} decimal places, and those of the network are {places}; it is rounded where the file is written, and not here")
        })?;
        let power = 10_i64.checked_pow(more);
        let units = power.and_then(|power| units.checked_mul(power));
        units.ok_or_else(|| "a weight has at most 61 bits in units of the network's places".into())
    }

    fn all(self, of: impl IntoIterator<Item = Weight>) -> Result<Vec<i64>, String> {
        of.into_iter().map(|one| self.units(one)).collect()
    }

    fn dense(self, raw: RawDense) -> Result<Layer, String> {
        Ok(match raw {
            RawDense {
                weights: Some(weights),
                bias: Some(bias),
                outputs: None,
                bounds: None,
            } => {
                let weights = weights.into_iter().map(|of| self.all(of));
                Layer::Dense {
                    weights: weights.collect::<Result<_, _>>()?,
                    bias: self.all(bias)?,
                }
            }
            RawDense {
                weights: None,
                bias: None,
                outputs: Some(outputs),
                bounds: Some(bounds),
            } => self.secret(outputs, None, &bounds)?,
            _ => {
                return Err("it has `weights` and `bias`, or `outputs` and `bounds` of weights that an owner brings".into());
            }
        })
    }

    fn secret(
        self,
        outputs: u32,
        window: Option<Window>,
        bounds: &RawBounds,
    ) -> Result<Layer, String> {
        Ok(Layer::Secret(Secret {
            outputs,
            window,
            bounds: Bounds {
                weight: self.units(bounds.weight)?,
                bias: self.units(bounds.bias)?,
            },
        }))
    }

    fn convolution(self, raw: RawConvolution) -> Result<Layer, String> {
        let (stride, padding) = (
            raw.stride.unwrap_or([1, 1]),
            raw.padding.unwrap_or_default(),
        );
        let (all, bias) = match (raw.weights, raw.bias, raw.outputs, raw.size, raw.bounds) {
            (Some(weights), Some(bias), None, None, None) => (weights, bias),
            (None, None, Some(outputs), Some(size), Some(bounds)) => {
                let window = Window {
                    size,
                    stride,
                    padding,
                };
                return self.secret(outputs, Some(window), &bounds);
            }
            _ => {
                return Err("it has `weights` and `bias`, or `outputs`, `size` and `bounds` of weights that an owner brings".into());
            }
        };
        let first = all.first().and_then(|of| of.first());
        let rows = first.map_or(0, Vec::len);
        let columns = first.and_then(|of| of.first()).map_or(0, Vec::len);
        let channels = all.first().map_or(0, Vec::len);
        let even = all.iter().all(|of| {
            let windows = of
                .iter()
                .all(|of| of.len() == rows && of.iter().all(|of| of.len() == columns));
            of.len() == channels && windows
        });
        if !even {
            return Err("weights of a convolution are as many rows and columns for each channel, and as many channels for each output".into());
        }
        let weights = all.into_iter();
        let weights = weights.map(|of| self.all(of.into_iter().flatten().flatten()));
        Ok(Layer::Convolution {
            weights: weights.collect::<Result<_, _>>()?,
            bias: self.all(bias)?,
            window: Window {
                // More than a file has room for fit these.
                size: [rows, columns].map(|of| u32::try_from(of).unwrap_or(u32::MAX)),
                stride,
                padding,
            },
        })
    }

    fn layer(self, raw: RawLayer) -> Result<Layer, String> {
        Ok(match raw {
            RawLayer::Dense(raw) => self.dense(raw)?,
            RawLayer::Convolution(raw) => self.convolution(raw)?,
            RawLayer::Pool(raw) => Layer::Pool {
                mean: matches!(raw.kind, RawPooling::Mean),
                window: Window {
                    size: raw.size,
                    stride: raw.stride.unwrap_or(raw.size),
                    padding: [0; 4],
                },
            },
            RawLayer::Activation(function) => Layer::Activation(match function {
                RawActivation::Relu => Activation::Relu,
                RawActivation::Sigmoid => Activation::Sigmoid,
                RawActivation::Tanh => Activation::Tanh,
            }),
            RawLayer::Add(layer) => Layer::Add { layer },
        })
    }
}

/// Reads the text of a file.
pub(super) fn read(name: &str, text: &[u8]) -> Result<Network, String> {
    let raw: RawNetwork = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let readout = match (raw.outputs, raw.classes) {
        (Some(names), None) => Readout::Values(names),
        (None, Some(names)) => Readout::Classes(names),
        _ => return Err("a network has `outputs` or `classes`, one of the two".into()),
    };
    if raw.places > MOST_PLACES {
        return Err(format!(
            "weights have at most {MOST_PLACES} decimal places, and not {}",
            raw.places
        ));
    }
    let places = Places(raw.places);
    let layers = raw.layers.into_iter().enumerate().map(|(at, of)| {
        let layer = places.layer(of);
        layer.map_err(|why| format!("layer {at}: {why}"))
    });
    let parts = NetworkParts {
        name: name.to_owned(),
        source: raw.source,
        cells: match raw.shape {
            Some(shape) => shape,
            None => [u32::try_from(raw.features.len()).unwrap_or(u32::MAX), 1, 1],
        },
        features: raw.features.into_iter().map(|of| of.name).collect(),
        places: raw.places,
        layers: layers.collect::<Result<_, _>>()?,
        readout,
    };
    Network::new(parts).map_err(|error| error.to_string())
}
