//! Makes every virtual file of a dataset, apart from the samples: texts are well-formed whatever the dataset's own texts
//! contain, and names can be file names.

use std::collections::HashSet;
use std::fs;
use std::sync::LazyLock;

use serde_json::Value;
use volfs::catalog::OpenDataset;
use volfs::format::Dataset;
use volfs::source::FileStamp;
use volfs::view::{Content, Entry, LayerRef, View, file_names, json, json_text, registry};

/// At most this many layers have all their files made.
const LAYERS: usize = 8;

static STAMP: LazyLock<FileStamp> = LazyLock::new(|| FileStamp::of(&fs::metadata("/").expect("there is a root")));

/// Makes the files of a dataset of `format`.
pub fn make_all(dataset: Box<dyn Dataset>, format: &'static str) -> Box<dyn Dataset> {
    assert!(dataset.hidden().iter().all(|layer| !layer.reason.is_empty()), "a layer is hidden without a reason");
    let (name, path) = ("a dataset".to_owned(), "below/a dataset".to_owned());
    let open = OpenDataset { name, path, stamp: *STAMP, size: Some(1), format, dataset };
    if let Ok(value) = json::dataset(&open) {
        check_json(&value);
    }
    let mut folders = HashSet::new();
    for (layer, stored) in open.dataset.layers().iter().enumerate().take(LAYERS) {
        let name = file_names::file_name(&stored.name, 240);
        check_name(&name);
        check_name(&file_names::unique(name, 240, &mut folders));
        let layer = LayerRef { open: &open, layer, views: registry() };
        for lod in 0..stored.levels.len() {
            if let Ok(value) = json::level(layer, lod) {
                check_json(&value);
            }
        }
        let mut names = HashSet::new();
        for view in registry() {
            make_files(*view, layer, &mut names);
        }
    }
    open.dataset
}

fn make_files(view: &dyn View, layer: LayerRef<'_>, names: &mut HashSet<String>) {
    let mut entries: Vec<Entry> = Vec::new();
    view.list(layer, None, &mut |entry| entries.push(entry));
    assert!(entries.len() as u64 <= view.nodes(layer), "more files than nodes");
    for entry in entries {
        check_name(&entry.name);
        assert_eq!(view.find(layer, None, &entry.name), Some(entry.clone()), "a file is not found by its name");
        assert!(names.insert(entry.name.clone()), "two files named {}", entry.name);
        match view.content(layer, entry.node) {
            Ok(Content::Bytes(bytes)) => check_text(&entry.name, &bytes),
            Ok(Content::Array(file)) => {
                assert!(file.len() >= file.header_bytes());
                for at in [0, file.header_bytes(), file.len() / 2, file.len().saturating_sub(5), file.len()] {
                    let slice = file.slice(at, 1 << 17);
                    let samples = file.array().info().shape().product();
                    assert!(slice.samples.end <= samples.expect("the samples can be counted"));
                }
            }
            Err(_) => {}
        }
    }
}

fn check_json(value: &Value) {
    let text = json_text::format(value);
    assert!(serde_json::from_str::<Value>(&text).is_ok(), "no JSON: {text}");
}

fn check_name(name: &str) {
    let bad = name.is_empty() || name.len() > 255 || matches!(name, "." | "..") || name.contains(['/', '\0']);
    assert!(!bad, "{name:?} cannot be a file name");
}

/// Checks a header for other programs: each line has a key that volfs writes, so that no name could add a line.
fn check_text(name: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).expect("headers are UTF-8");
    let keys: &[&str] = match name.rsplit('.').next() {
        Some("nhdr") => &[
            "NRRD0005",
            "# made by volfs",
            "type",
            "dimension",
            "sizes",
            "space dimension",
            "space units",
            "space directions",
            "space origin",
            "kinds",
            "endian",
            "encoding",
            "data file",
            "dataset",
            "layer",
            "lod",
        ],
        Some("mhd") => &[
            "ObjectType",
            "NDims",
            "BinaryData",
            "BinaryDataByteOrderMSB",
            "CompressedData",
            "TransformMatrix",
            "Offset",
            "CenterOfRotation",
            "ElementSpacing",
            "DimSize",
            "ElementNumberOfChannels",
            "ElementType",
            "ElementDataFile",
        ],
        _ => return,
    };
    let mut seen = HashSet::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let key = line.split([':', '=']).next().unwrap_or_default().trim_end();
        assert!(keys.contains(&key) && seen.insert(key), "{name} has the line {line:?}");
    }
}
