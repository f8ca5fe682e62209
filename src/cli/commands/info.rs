//! `volfs info`: prints all that is known of one dataset.

mod sections;

use serde_json::{Map, Value};

use self::sections::Mags;
use crate::catalog::OpenDataset;
use crate::cli::args::InfoArgs;
use crate::cli::dataset_at::DatasetAt;
use crate::cli::deadline::{self, Output};
use crate::cli::error::CliError;
use crate::cli::output;
use crate::cli::text::layout::TextLayout;
use crate::codec::zfp::Decoder;
use crate::format::FormatError;
use crate::view::{LayerRef, json, json_text, registry};

/// Prints all that is known of one dataset.
pub(crate) fn run(args: &InfoArgs) -> Result<(), CliError> {
    let coloured = output::coloured();
    deadline::run(&args.path, |out| print(args, coloured, out))
}

fn print(args: &InfoArgs, coloured: bool, out: &Output<'_>) -> Result<(), CliError> {
    let DatasetAt { path, open, .. } = DatasetAt::open(&args.path, &args.store_option, None, Decoder::default())?;
    let dataset = describe(&open).map_err(|error| CliError::Dataset { dataset: path, error: error.into() })?;
    if args.json {
        return out.part(json_text(&dataset).as_bytes()).map(drop);
    }
    let mut layout = TextLayout::new(coloured);
    sections::write(&mut layout, &dataset, &mags(&open));
    out.part(layout.text().as_bytes()).map(drop)
}

/// Returns dataset.json, with the lodN.json of each layer under `levels`.
fn describe(open: &OpenDataset) -> Result<Value, FormatError> {
    let mut levels = Map::new();
    for (layer, described) in open.dataset.layers().iter().enumerate() {
        let layer_ref = LayerRef { open, layer, views: registry() };
        let of_layer: Result<Vec<Value>, _> =
            (0..described.levels.len()).map(|lod| json::level(layer_ref, lod)).collect();
        levels.insert(described.name.clone(), of_layer?.into());
    }
    let mut dataset = json::dataset(open, registry())?;
    if let Some(object) = dataset.as_object_mut() {
        object.insert("levels".to_owned(), levels.into());
    }
    Ok(dataset)
}

fn mags(open: &OpenDataset) -> Mags {
    let layers = open.dataset.layers().iter();
    layers.map(|layer| (layer.name.clone(), layer.levels.iter().map(|level| level.info().mag).collect())).collect()
}
