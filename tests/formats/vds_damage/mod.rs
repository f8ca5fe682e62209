//! Damage to VDS datasets, one fault at a time: a dataset or a layer is refused with a reason, and a fault in one chunk
//! fails that chunk alone.

mod chunks;
mod dataset;
mod layers;
mod objects;

use crate::format::{Array, Dataset, FormatError};
use serde_json::Value;

use crate::test_support::naive;
use crate::test_support::vds_dataset::{Cloud, Container, find};

/// A dataset of one layer: run lengths, 3 x 3 x 1 chunks of U8.
const RLE: &str = "margins-4-4.vds";

/// A dataset of one layer: zlib streams, 3 x 2 x 1 chunks of U16.
const ZIP: &str = "margins-2-3.vds";

/// A dataset with a layer of each sample format: 2 x 2 x 1 chunks, not compressed.
const PLAIN: &str = "formats-none.vds";

const LAYER: &str = "Dimensions_012LOD0";

const U8: &str = "of U8Dimensions_012LOD0";

const BITS: &str = "of 1BitDimensions_012LOD0";

fn changed(name: &str, change: impl FnOnce(&mut Container)) -> Container {
    let mut container = Container::read(name);
    change(&mut container);
    container
}

fn refused(container: &Container) -> FormatError {
    container.open().err().expect("it is refused")
}

fn is_not_a_vds(container: &Container) {
    let error = refused(container);
    assert!(matches!(&error, FormatError::NotThisFormat(why) if why.contains("not a VDS")), "{error:?}");
}

fn is_damaged(container: &Container, words: &[&str]) {
    let error = refused(container);
    assert!(matches!(&error, FormatError::Damaged(_)), "{error:?}");
    assert!(words.iter().all(|word| error.to_string().contains(word)), "{error} has not all of {words:?}");
}

/// Checks that one layer cannot be read, for a reason that contains `words`, and that all others read as before.
fn layer_fails(name: &str, layer: &str, words: &[&str], change: impl FnOnce(&mut Container)) {
    let sound = Container::read(name).open().unwrap();
    let dataset = changed(name, change).open().unwrap_or_else(|e| panic!("the dataset opens: {e}"));
    one_layer_fails(&*sound, &*dataset, layer, words);
}

fn cloud_layer_fails(name: &str, words: &[&str], change: impl FnOnce(&mut Value)) {
    let mut cloud = Cloud::read(name);
    let sound = cloud.open().unwrap();
    cloud.edit(change);
    one_layer_fails(&*sound, &*cloud.open().unwrap(), LAYER, words);
}

fn one_layer_fails(sound: &dyn Dataset, dataset: &dyn Dataset, layer: &str, words: &[&str]) {
    let has_all =
        |text: &str| assert!(words.iter().all(|word| text.contains(word)), "{text:?} has not all of {words:?}");
    let mut others = 0;
    for stored in sound.layers().iter().flat_map(|layer| layer.native["stored"].as_array().unwrap()) {
        let stored = stored.as_str().unwrap();
        if stored != layer {
            let samples = |dataset: &dyn Dataset| naive::read_all(&*find(dataset, stored)).unwrap();
            assert!(samples(dataset) == samples(sound), "{stored} is not what it was");
            others += 1;
        }
    }
    assert!(others > 0);
    let of = |hidden: &Value| hidden.as_array().unwrap().iter().any(|stored| stored == layer);
    if let Some(hidden) = dataset.hidden().iter().find(|hidden| of(&hidden.native["stored"])) {
        return has_all(&hidden.reason);
    }
    // the layer is shown because its other LODs can be read
    let array = find(dataset, layer);
    assert!(dataset.info().warnings.iter().any(|warning| words.iter().all(|word| warning.contains(word))));
    has_all(&array.info().warnings.join("; "));
    let (_, damaged) = naive::read_what_can_be(&*array);
    assert_eq!(damaged.len() as u64, array.info().grid.total());
    damaged.iter().for_each(|(_, error)| has_all(&error.to_string()));
}

/// Checks that one chunk of a layer cannot be read, for a reason that contains `words`, and that all others read as
/// before.
fn chunk_fails(name: &str, layer: &str, chunk: u64, words: &[&str], change: impl FnOnce(&mut Container)) {
    let sound = find(&*Container::read(name).open().unwrap(), layer);
    let dataset = changed(name, change).open().unwrap_or_else(|e| panic!("the dataset opens: {e}"));
    one_chunk_fails(&*sound, &*find(&*dataset, layer), chunk, words);
}

/// Checks the same of a dataset in a folder.
fn cloud_chunk_fails(name: &str, chunk: u64, words: &[&str], change: impl FnOnce(&mut Cloud)) {
    let mut cloud = Cloud::read(name);
    let sound = find(&*cloud.open().unwrap(), LAYER);
    change(&mut cloud);
    one_chunk_fails(&*sound, &*find(&*cloud.open().unwrap(), LAYER), chunk, words);
}

fn one_chunk_fails(sound: &dyn Array, array: &dyn Array, chunk: u64, words: &[&str]) {
    let grid = &array.info().grid;
    let (samples, damaged) = naive::read_what_can_be(array);
    let failed: Vec<_> = damaged.iter().map(|(at, _)| grid.count().linear_of(at)).collect();
    assert_eq!(failed, [chunk], "{damaged:?}");
    let error = &damaged[0].1;
    assert!(matches!(error, FormatError::Damaged(_) | FormatError::DamagedObject(_)), "{error:?}");
    let text = error.to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text} has not all of {words:?}");
    let named = text.contains(&format!("chunk {chunk}")) || text.contains(&format!("Dimensions_012LOD0/{chunk}"));
    assert!(named && text.contains("Dimensions_012LOD0"), "{text}");
    let mut wanted = naive::read_all(sound).unwrap();
    let (owned, shape) = (grid.region(&damaged[0].0), array.info().shape());
    let size = array.info().dtype.size();
    for n in 0..shape.product().unwrap() {
        let index = shape.index_of(n);
        if (0..index.len()).all(|a| (owned.start[a]..owned.start[a] + owned.shape[a]).contains(&index[a])) {
            wanted[n as usize * size..(n as usize + 1) * size].fill(0);
        }
    }
    assert!(samples == wanted, "a neighbour of chunk {chunk} is not what it was");
}
