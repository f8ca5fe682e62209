//! Makes every virtual file of a dataset, apart from the samples: texts are well-formed whatever the dataset's own texts
//! contain, and names can be file names.

use std::collections::HashSet;
use std::fs;
use std::sync::LazyLock;

use crate::catalog::OpenDataset;
use crate::format::Dataset;
use crate::memory::BufferPool;
use crate::source::{Blocking, ObjectVersion};
use crate::view::{Content, Item, LayerRef, Step, Tree, json, json_text, registry};
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
    let open = OpenDataset { name, path, version: *STAMP, size: Some(1), format, dataset, file: None };
    if let Ok(value) = json::dataset(&open, registry()) {
        check_json(&value);
    }
    for (layer, stored) in open.dataset.layers().iter().enumerate().take(LAYERS) {
        let layer = LayerRef { open: &open, layer, views: registry() };
        for lod in 0..stored.levels.len() {
            if let Ok(value) = json::level(layer, lod) {
                check_json(&value);
            }
        }
    }
    let tree = Tree::new(&open, registry());
    make_folder(&open, &tree, Item::DATASET, (0, reads));
    open.dataset
}

/// Makes the files below a folder, of the first layers.
fn make_folder(open: &OpenDataset, tree: &Tree, folder: Item, (depth, reads): (usize, bool)) {
    assert!(depth < DEPTH, "folders without end");
    let (mut entries, most) = (Vec::new(), if tree.is_streamed(folder) { ENTRIES } else { usize::MAX });
    tree.list(open, folder, 0, &mut |item, _| {
        entries.push(item);
        entries.len() < most
    });
    let mut names = HashSet::new();
    for item in entries.into_iter().filter(|item| tree.layer(*item).is_none_or(|layer| layer < LAYERS)) {
        let name = tree.name(item);
        check_name(&name);
        assert_eq!(tree.find(open, folder, &name, Blocking::Yes), Ok(Some(item)), "a file is not found by its name");
        assert_eq!(tree.parent(item), folder, "a file is in another folder than its own");
        assert_eq!(tree.item(open, tree.number(item)), Some(item));
        if tree.is_folder(item) {
            make_folder(open, tree, item, (depth + 1, reads));
        } else if let Ok(Some(content)) = tree.content(open, item, Blocking::Yes) {
            check_content(&name, &content, reads);
        }
        assert!(names.insert(name), "a name appears twice");
    }
}

fn check_content(name: &str, content: &Content, reads: bool) {
    let len = content.len();
    match content {
        Content::Bytes(bytes) => check_text(name, bytes),
        Content::Array(file) => {
            let header = file.header_bytes();
            assert!(len >= header);
            [0, header, len / 2, len.saturating_sub(5)].into_iter().for_each(|at| read_bytes(content, at, 1 << 17));
        }
        Content::Computed(_) if !reads => {}
        Content::Computed(_) => {
            [0, 3600, len / 2, len.saturating_sub(5)].into_iter().for_each(|at| read_bytes(content, at, 5000));
        }
    }
}

/// Reads bytes of a file as if all samples were 0. Reads that need a pass over many samples are given up.
fn read_bytes(content: &Content, at: u64, length: u64) {
    let end = at.saturating_add(length).min(content.len());
    if at >= end {
        return;
    }
    let buffers = BufferPool::new(0);
    let Ok(mut read) = content.read(at..end, &buffers) else { return };
    let (mut memory, mut total) = (None, 0);
    while total < MAX_READ {
        let samples = match read.step(memory.take(), &buffers) {
            Ok(Step::Read { samples, .. }) => samples,
            Ok(Step::Done(bytes)) => return assert_eq!(bytes.len() as u64, end - at),
            Err(error) => return assert!(!error.to_string().is_empty(), "an error says nothing"),
        };
        let (whole, size) = (Region::whole(samples.array.info().shape()), samples.array.info().dtype.size());
        for selection in &samples.selections {
            let region = Region { start: selection.start, shape: selection.shape };
            assert!(whole.contains(&region) && region.samples() > 0, "samples beyond the array");
            total += region.samples() as usize * size;
        }
        let mut zeros = samples.memory;
        assert!(zeros.len() <= MAX_STEP, "a step of {} bytes", zeros.len());
        zeros.fill(0);
        memory = Some(zeros);
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
