//! `volfs info`.

use serde_json::{Map, Value};

use super::args::InfoArgs;
use super::error::CliError;
use super::page::Page;
use super::{info_text, output};
use crate::catalog::{self, OpenDataset};
use crate::format::FormatError;
use crate::view::{LayerRef, json, json_text};

/// Prints all that is known of one dataset.
///
/// # Errors
/// [`CliError::Dataset`] if it cannot be opened, [`CliError::Output`] if it cannot be printed.
pub fn run(args: &InfoArgs) -> Result<(), CliError> {
    let failed = |error| CliError::Dataset { dataset: args.path.clone(), error };
    let open = catalog::open_dataset(&args.path, None).map_err(failed)?;
    let dataset = described(&open).map_err(|error| failed(error.into()))?;
    if args.json {
        return output::whole(&json_text::format(&dataset));
    }
    let mut page = Page::new(output::coloured());
    info_text::write(&mut page, &dataset);
    output::whole(page.text())
}

/// dataset.json, and under `levels` the lodN.json of each layer.
fn described(open: &OpenDataset) -> Result<Value, FormatError> {
    let mut levels = Map::new();
    for (layer, described) in open.dataset.layers().iter().enumerate() {
        let place = LayerRef { open, layer };
        let of_layer: Result<Vec<Value>, _> = (0..described.levels.len()).map(|lod| json::level(place, lod)).collect();
        levels.insert(described.name.clone(), of_layer?.into());
    }
    let mut dataset = json::dataset(open)?;
    if let Some(object) = dataset.as_object_mut() {
        object.insert("levels".to_owned(), levels.into());
    }
    Ok(dataset)
}
