//! What a disk cache holds, as JSON.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::source::disk_cache::{Cleared, Kept, Survey};
use crate::view::json::SCHEMA;

/// Returns what is there.
pub(crate) fn survey(place: &Path, survey: &Survey) -> Value {
    let mut object = Map::new();
    object.insert("schema".into(), SCHEMA.into());
    object.insert("path".into(), place.to_string_lossy().into());
    add(&mut object, &survey.total());
    let dataset = |((store, dataset), kept): (&(String, String), &Kept)| {
        let mut object = Map::new();
        object.insert("store".into(), store.as_str().into());
        object.insert("dataset".into(), dataset.as_str().into());
        add(&mut object, kept);
        Value::Object(object)
    };
    object.insert("datasets".into(), survey.datasets.iter().map(dataset).collect());
    let mut bad = Map::new();
    add(&mut bad, &survey.bad);
    bad.insert("names".into(), json!(survey.bad_names));
    object.insert("bad".into(), bad.into());
    object.insert("foreign".into(), survey.foreign.into());
    object.into()
}

fn add(object: &mut Map<String, Value>, kept: &Kept) {
    object.insert("files".into(), kept.files.into());
    object.insert("bytes".into(), kept.bytes.into());
    object.insert("oldest".into(), seconds(kept.oldest));
    object.insert("newest".into(), seconds(kept.newest));
}

fn seconds(time: Option<SystemTime>) -> Value {
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(Value::Null, |since| json!(since.as_secs_f64()))
}

/// Returns what was removed.
pub(crate) fn cleared(place: &Path, cleared: &Cleared) -> Value {
    json!({
        "schema": SCHEMA,
        "path": place.to_string_lossy(),
        "cleared": {"files": cleared.files, "bytes": cleared.bytes},
        "foreign": cleared.foreign,
    })
}
