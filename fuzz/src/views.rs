//! Makes every virtual file of a dataset, apart from the samples: texts are well-formed whatever the dataset's own texts
//! contain, and names can be file names.

use std::collections::HashSet;
use std::fs;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use crate::catalog::OpenDataset;
use crate::format::Dataset;
use crate::memory::BufferPool;
use crate::source::ObjectVersion;
use crate::view::{
    ComputedFile, Content, Entry, LayerRef, Samples, Step, View, file_name, json, json_text, registry, unique,
};
use crate::volume::Region;
use serde_json::Value;

/// At most this many layers have all their files made.
const LAYERS: usize = 8;
/// At most this many entries of a folder of a view are made.
const ENTRIES: usize = 20;
/// No folders are nested deeper.
const DEPTH: usize = 12;
/// The most bytes of samples that a step requests, and that a whole read is given here.
const MAX_STEP: usize = 16 << 20;
const MAX_READ: usize = 32 << 20;

static STAMP: LazyLock<ObjectVersion> =
    LazyLock::new(|| ObjectVersion::from_metadata(&fs::metadata("/").expect("there is a root")));

/// Makes the files of a dataset of `format`. Those that are computed from samples are not read.
pub fn make_all(dataset: Box<dyn Dataset>, format: &'static str) -> Box<dyn Dataset> {
    make(dataset, format, false)
}

/// Reads parts of the files of a dataset of `format` that are computed from samples, as if all samples were 0.
pub fn read_computed(dataset: Box<dyn Dataset>, format: &'static str) -> Box<dyn Dataset> {
    make(dataset, format, true)
}

fn make(dataset: Box<dyn Dataset>, format: &'static str, reads: bool) -> Box<dyn Dataset> {
    assert!(dataset.hidden().iter().all(|layer| !layer.reason.is_empty()), "a layer is hidden without a reason");
    let (name, path) = ("a dataset".to_owned(), "below/a dataset".to_owned());
    let open = OpenDataset { name, path, stamp: *STAMP, size: Some(1), format, dataset, file: None };
    if let Ok(value) = json::dataset(&open, registry()) {
        check_json(&value);
    }
    let mut folders = HashSet::new();
    for (layer, stored) in open.dataset.layers().iter().enumerate().take(LAYERS) {
        let name = file_name(&stored.name, 240);
        check_name(&name);
        check_name(&unique(name, 240, &mut folders));
        let layer = LayerRef { open: &open, layer, views: registry() };
        for lod in 0..stored.levels.len() {
            if let Ok(value) = json::level(layer, lod) {
                check_json(&value);
            }
        }
        let mut names = HashSet::new();
        for view in registry() {
            make_files(*view, layer, &mut names, reads);
        }
    }
    open.dataset
}

/// Makes the files of a view: those in the layer's folder, or in the view's own folder beside it.
fn make_files(view: &dyn View, layer: LayerRef<'_>, names: &mut HashSet<String>, reads: bool) {
    if view.beside_layer().is_some() {
        if view.nodes(layer) > 0 {
            make_folder(view, layer, 0, (0, reads));
        }
        return;
    }
    let mut entries: Vec<Entry> = Vec::new();
    view.list(layer, None, &mut |entry| entries.push(entry));
    for entry in &entries {
        assert!(names.insert(entry.name.clone()), "two files named {}", entry.name);
        make_entry(view, layer, None, entry, (0, reads));
    }
}

fn make_folder(view: &dyn View, layer: LayerRef<'_>, folder: u64, (depth, reads): (usize, bool)) {
    let mut entries: Vec<Entry> = Vec::new();
    if view.is_streamed(layer, folder) {
        view.stream(layer, folder, 0, &mut |entry, _| {
            entries.push(entry);
            entries.len() < ENTRIES
        });
    } else {
        view.list(layer, Some(folder), &mut |entry| entries.push(entry));
    }
    let mut names = HashSet::new();
    assert!(entries.iter().all(|entry| names.insert(&entry.name)), "a name appears twice");
    for entry in entries.iter().take(ENTRIES) {
        make_entry(view, layer, Some(folder), entry, (depth + 1, reads));
    }
}

fn make_entry(view: &dyn View, layer: LayerRef<'_>, folder: Option<u64>, entry: &Entry, (depth, reads): (usize, bool)) {
    assert!(entry.node < view.nodes(layer), "a node beyond the last");
    check_name(&entry.name);
    assert_eq!(view.find(layer, folder, &entry.name).as_ref(), Some(entry), "a file is not found by its name");
    assert_eq!(view.parent(layer, entry.node), folder, "a file is in another folder than its own");
    assert_eq!(view.is_folder(layer, entry.node), entry.folder);
    if entry.folder {
        assert!(depth < DEPTH, "folders without end");
        return make_folder(view, layer, entry.node, (depth, reads));
    }
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
        Ok(Content::Computed(_)) if !reads => {}
        Ok(Content::Computed(file)) => {
            let len = file.len();
            for at in [0, 3600, len / 2, len.saturating_sub(5)] {
                let end = at.saturating_add(5000).min(len);
                if at < end {
                    read_bytes(&file, at..end);
                }
            }
        }
        Err(_) => {}
    }
}

/// Reads bytes of a file. Reads that need a pass over many samples are given up.
fn read_bytes(file: &Arc<dyn ComputedFile>, bytes: Range<u64>) {
    let buffers = BufferPool::new(0);
    let wanted = bytes.end - bytes.start;
    let mut steps = Arc::clone(file).read(bytes);
    let (mut samples, mut read) = (None, 0);
    while read < MAX_READ {
        let request = match steps.step(samples.take(), &buffers) {
            Ok(Step::Read(request)) => request,
            Ok(Step::Done(bytes)) => return assert_eq!(bytes.len() as u64, wanted),
            Ok(Step::Failed(error)) => return assert!(!error.to_string().is_empty(), "an error says nothing"),
            Err(_) => return,
        };
        let info = request.array.info();
        let count = match request.samples {
            Samples::Range(range) => {
                assert!(range.end <= info.shape().product().expect("the samples can be counted"), "beyond the end");
                range.end - range.start
            }
            Samples::Box(region) => {
                assert!(Region::whole(info.shape()).contains(&region), "a box beyond the array");
                region.samples()
            }
        };
        let length = count as usize * info.dtype.size();
        assert!(count > 0 && length <= MAX_STEP, "a step of {length} bytes");
        read += length;
        let Ok(mut zeros) = buffers.try_take(length) else { return };
        zeros.fill(0);
        samples = Some(zeros);
    }
}

fn check_json(value: &Value) {
    let text = json_text(value);
    assert!(serde_json::from_str::<Value>(&text).is_ok(), "no JSON: {text}");
}

fn check_name(name: &str) {
    let bad = name.is_empty() || name.len() > 255 || matches!(name, "." | "..") || name.contains(['/', '\0']);
    assert!(!bad, "{name:?} cannot be a file name");
}

/// Checks a header for other programs: each line has a key that volfs writes, so that no name could add a line.
fn check_text(name: &str, bytes: &[u8]) {
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
    let text = std::str::from_utf8(bytes).expect("headers are UTF-8");
    let mut seen = HashSet::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let key = line.split([':', '=']).next().unwrap_or_default().trim_end();
        assert!(keys.contains(&key) && seen.insert(key), "{name} has the line {line:?}");
    }
}
