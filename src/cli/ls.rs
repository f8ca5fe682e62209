//! `volfs ls`: lists datasets and layers while it finds them. The rows are made from the JSON that every format has.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::deadline::{self, looks_at};
use super::error::CliError;
use super::file_system::StoreArgs;
use super::layout::Table;
use super::output;
use super::source::{checked_source, source_behind};
use super::text::{counted, escaped_path, float, items, joined, scalar};
use crate::catalog::{Catalog, CatalogError, Node, NodeKind, OpenDataset, ROOT};
use crate::format::{FormatError, OpenWith, registry};
use crate::source::{IndexCache, Origin};
use crate::view::{self, LayerRef, json_text};
use crate::volume::ArrayInfo;

#[derive(Debug, Args)]
#[command(after_help = LS_EXAMPLE)]
pub(super) struct LsArgs {
    /// A folder of volumes, searched in depth, or one volume; also inside a mount, or a URL (s3://BUCKET/KEY)
    source: PathBuf,

    /// Print a JSON list with an object for each layer
    ///
    /// path, format, layer, shape, dtype, codec, lods (their number) and size (bytes at full detail); `mag` and
    /// `voxel_size` where a dataset has them. `error` is null, or says why a dataset or a layer cannot be shown.
    #[arg(long)]
    pub(super) json: bool,

    /// Follow symbolic links that lead out of SOURCE
    ///
    /// Links that stay below SOURCE are always followed, others are not shown: as in a mount.
    #[arg(long)]
    follow_links: bool,

    #[command(flatten)]
    store: StoreArgs,
}

const LS_EXAMPLE: &str = "\
Example:
  volfs ls ~/surveys
  volfs ls --json ~/surveys | jq -r '.[] | select(.codec == \"zfp\") | .path'";

/// Bytes of the cache for brick index tables.
const INDEX_BYTES: usize = 41 << 20;

/// The largest width of a column of the table. A wider cell pushes the cells after it aside.
const MAX_COLUMN_WIDTH: usize = 48;

/// Rows that are aligned and printed together, unless they take longer to find than [`BATCH_TIME`].
const BATCH_ROWS: usize = 200;

/// The longest time that a row waits for others.
const BATCH_TIME: Duration = Duration::from_millis(200);

/// Significant digits of a voxel's size.
const DIGITS: usize = 6;

pub(super) fn run(args: &LsArgs) -> Result<(), CliError> {
    deadline::run(deadline::LIMIT, &args.source, || list(args))
}

fn list(args: &LsArgs) -> Result<(), CliError> {
    let store_options = args.store.store_option.clone();
    let path = source_behind(&args.source, &store_options)?.unwrap_or_else(|| args.source.clone());
    looks_at(&path);
    let origin = checked_source(&Origin { path, follow_links: args.follow_links, store_options, ..Origin::default() })?;
    let source = &origin.path;
    let failed = |error: CatalogError| CliError::cannot_list(source, &error);
    let with = OpenWith::new(IndexCache::new(INDEX_BYTES));
    let tree = origin
        .tree(registry().folder_files(), true, Arc::default())
        .map_err(|error| failed(CatalogError::io(source, &error)))?;
    let catalog = Catalog::new(registry(), tree, with, Arc::default()).map_err(failed)?;
    let Some(root) = catalog.node(ROOT) else { return Ok(()) };
    let mut printer = RowPrinter {
        json: args.json,
        table: Table::new(MAX_COLUMN_WIDTH),
        batch: Vec::new(),
        since: Instant::now(),
        has_begun: false,
    };
    walk(&catalog, &root, Path::new(""), &mut printer)?.map_err(failed)?;
    if !printer.finish()? && !args.json {
        output::note(&none_found(source));
    }
    Ok(())
}

/// Returns the remark that there are no volumes below a path.
pub(super) fn none_found(source: &Path) -> String {
    let (place, formats) = (escaped_path(source), registry().names());
    format!("no volumes found below {place}; this version reads {formats}")
}

/// Prints all that lies below a folder. Returns `false` once the reader of the output is gone; an error within says why the
/// folder cannot be listed.
fn walk(
    catalog: &Catalog,
    folder: &Arc<Node>,
    below: &Path,
    printer: &mut RowPrinter,
) -> Result<Result<bool, CatalogError>, CliError> {
    let mut unseen = Vec::new();
    let mut failed = |name: &OsStr, error: CatalogError| {
        unseen.push(Row::failed(&below.join(name), None, &error.to_string()));
    };
    let nodes = match catalog.list(folder, &mut failed) {
        Ok(nodes) => nodes,
        Err(error) => return Ok(Err(error)),
    };
    for node in nodes {
        let path = below.join(&*node.name);
        looks_at(&node.path());
        let goes_on = match node.kind {
            NodeKind::Folder => match walk(catalog, &node, &path, printer)? {
                Ok(goes_on) => goes_on,
                Err(error) => printer.add(vec![Row::failed(&path, None, &error.to_string())])?,
            },
            NodeKind::Dataset => printer.add(match catalog.open(&node) {
                Ok(open) => Row::layers(&path, &open)
                    .unwrap_or_else(|error| vec![Row::failed(&path, Some(open.format), &error.to_string())]),
                Err(error) => vec![Row::failed(&path, None, &error.to_string())],
            })?,
        };
        if !goes_on {
            return Ok(Ok(false));
        }
    }
    if unseen.is_empty() { Ok(Ok(true)) } else { printer.add(unseen).map(Ok) }
}

struct RowPrinter {
    json: bool,
    table: Table,
    batch: Vec<Row>,
    since: Instant,
    /// Whether anything was printed.
    has_begun: bool,
}

impl RowPrinter {
    /// Prints the rows, now or with a later batch. Returns `false` once the reader of the output is gone.
    fn add(&mut self, rows: Vec<Row>) -> Result<bool, CliError> {
        if self.batch.is_empty() {
            self.since = Instant::now();
        }
        self.batch.extend(rows);
        let full = self.batch.len() >= BATCH_ROWS || self.since.elapsed() >= BATCH_TIME;
        if full { self.flush() } else { Ok(true) }
    }

    fn flush(&mut self) -> Result<bool, CliError> {
        if self.batch.is_empty() {
            return Ok(true);
        }
        let mut text = String::new();
        if self.json {
            for (n, row) in self.batch.iter().enumerate() {
                let before = if self.has_begun || n > 0 { ",\n" } else { "[\n" };
                text.extend([before, json_text(&row.object).trim_end()]);
            }
        } else {
            let lines = self.table.lines(self.batch.iter().map(Row::cells).collect());
            text.extend(lines.iter().flat_map(|line| [line.as_str(), "\n"]));
        }
        self.has_begun = true;
        self.batch.clear();
        output::part(text.as_bytes())
    }

    /// Prints the last batch. Returns whether anything was printed at all.
    fn finish(mut self) -> Result<bool, CliError> {
        if self.flush()? && self.json {
            output::part(if self.has_begun { b"\n]\n" } else { b"[]\n" })?;
        }
        Ok(self.has_begun)
    }
}

/// One row: a layer, or a folder or dataset that cannot be shown, and why.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    /// The dataset's path below SOURCE, escaped for a terminal.
    path: String,
    object: Value,
}

impl Row {
    /// Makes the row of a folder or dataset that cannot be shown at all.
    fn failed(below: &Path, format: Option<&str>, reason: &str) -> Self {
        let mut row = Self::new(below, format, &Value::Null);
        row.object["error"] = reason.into();
        row
    }

    /// Makes a row for each layer of a dataset. The layers that cannot be shown come last.
    fn layers(below: &Path, open: &OpenDataset) -> Result<Vec<Self>, FormatError> {
        let mut rows = Vec::new();
        for (layer, described) in open.dataset.layers().iter().enumerate() {
            let finest = view::json::facts(LayerRef { open, layer, views: &[] }, 0)?;
            let mut row = Self::new(below, Some(open.format), &finest);
            row.object["lods"] = described.levels.len().into();
            let infos: Vec<&ArrayInfo> = described.levels.iter().map(|level| level.info()).collect();
            if infos.first().is_some_and(|info| info.mag.is_some()) {
                row.add_voxels(&finest, infos);
            }
            rows.push(row);
        }
        for layer in view::json::layers(open, &[]).iter().filter(|layer| layer["reason"].is_string()) {
            let mut row = Self::new(below, Some(open.format), layer);
            row.object["layer"] = layer["name"].clone();
            row.object["lods"] = 0.into();
            row.object["error"] = layer["reason"].clone();
            rows.push(row);
        }
        Ok(rows)
    }

    fn new(below: &Path, format: Option<&str>, level: &Value) -> Self {
        let object = json!({
            "schema": view::json::SCHEMA,
            "path": below.to_string_lossy(),
            "format": format,
            "layer": level["layer"],
            "shape": level["shape"],
            "dtype": level["dtype"],
            "codec": level["codec"],
            "lods": null,
            "size": level["size"],
            "error": null,
        });
        Self { path: escaped_path(below), object }
    }

    /// Adds the mag of each level, and the size of a voxel of the finest: the steps of the axes that have a unit. Both
    /// are in the order x, y, z, the reverse of the array's axes.
    fn add_voxels<'a>(&mut self, finest: &Value, levels: impl IntoIterator<Item = &'a ArrayInfo>) {
        self.object["mag"] = levels.into_iter().map(|info| json!(info.mag)).collect();
        let mut axes: Vec<&Value> = items(&finest["axes"]).filter(|axis| axis["unit"].is_string()).collect();
        axes.reverse();
        let steps: Vec<&Value> = axes.iter().map(|axis| &axis["step"]).collect();
        self.object["voxel_size"] = axes.first().map(|axis| json!({"step": steps, "unit": axis["unit"]})).into();
    }

    /// Returns the cells of the table row. The last cell may be of any length.
    fn cells(&self) -> Vec<String> {
        let object = &self.object;
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let text = |key: &str| or_dash(scalar(&object[key]));
        let mut cells = vec![self.path.clone()];
        let reason = scalar(&object["error"]).map(|reason| format!("not shown: {reason}"));
        if object["layer"].is_null() {
            cells.extend(reason);
        } else {
            cells.extend([text("layer"), or_dash(joined(&object["shape"], "x")), text("dtype")]);
            let lods = || or_dash(object["lods"].as_u64().map(|n| counted(n, "LOD")));
            match reason {
                Some(reason) => cells.push(reason),
                None => cells.extend([text("codec"), lods()]),
            }
        }
        cells.extend(voxels(object));
        cells
    }
}

/// Formats `mag 1,2,4-4-2` and `voxel 11.24x11.24x28 nm`, as far as they are known.
fn voxels(object: &Value) -> Vec<String> {
    let mag = |mag: &Value| {
        let factors: Vec<u64> = mag.as_array()?.iter().filter_map(Value::as_u64).collect();
        let same = factors.iter().all(|n| Some(n) == factors.first());
        if same { factors.first().map(u64::to_string) } else { joined(mag, "-") }
    };
    let mags: Vec<String> = items(&object["mag"]).filter_map(mag).collect();
    let steps = items(&object["voxel_size"]["step"]).filter_map(Value::as_f64);
    let steps: Vec<String> = steps.map(|step| float(step, DIGITS)).collect();
    let mut cells = Vec::new();
    if !mags.is_empty() {
        cells.push(format!("mag {}", mags.join(",")));
    }
    if !steps.is_empty() {
        let unit = scalar(&object["voxel_size"]["unit"]).unwrap_or_default();
        cells.push(format!("voxel {} {unit}", steps.join("x")));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::{BrickGrid, Dims, Dtype};

    fn layer(path: &str, layer: &str, shape: &[u64], lods: u64) -> Row {
        let level = json!({"layer": layer, "shape": shape, "dtype": "float32", "codec": "zfp", "size": 8});
        let mut row = Row::new(Path::new(path), Some("zgy"), &level);
        row.object["lods"] = lods.into();
        row
    }

    fn lines(table: &mut Table, rows: &[Row]) -> Vec<String> {
        table.lines(rows.iter().map(Row::cells).collect())
    }

    #[test]
    fn columns_are_aligned_and_never_shrink() {
        let mut table = Table::new(MAX_COLUMN_WIDTH);
        let rows = [
            layer("a/north.zgy", "data", &[512, 512, 1024], 5),
            Row::failed(Path::new("b\x1b.zgy"), None, "it is\nempty"),
            layer("c", "data", &[1], 1),
        ];
        assert_eq!(
            lines(&mut table, &rows),
            [
                "a/north.zgy  data  512x512x1024  float32  zfp  5 LODs",
                "b\\u{1b}.zgy  not shown: it is\\nempty",
                "c            data  1             float32  zfp  1 LOD",
            ]
        );
        assert_eq!(lines(&mut table, &rows[2..]), ["c            data  1             float32  zfp  1 LOD"]);
        let long = "d".repeat(60);
        assert_eq!(
            lines(&mut table, &[layer(&long, "x", &[1], 1)]),
            [format!("{long}  x     1             float32  zfp  1 LOD")]
        );
        assert_eq!(lines(&mut table, &rows[2..])[0].find("data"), Some(MAX_COLUMN_WIDTH + 2));
    }

    #[test]
    fn names_of_wide_characters_are_aligned() {
        let rows = [layer("脳/皮質.zgy", "データ", &[1], 1), layer("north.zgy", "data", &[20], 2)];
        assert_eq!(
            lines(&mut Table::new(MAX_COLUMN_WIDTH), &rows),
            ["脳/皮質.zgy  データ  1   float32  zfp  1 LOD", "north.zgy    data    20  float32  zfp  2 LODs"]
        );
    }

    #[test]
    fn mags_and_voxel_sizes_are_listed() {
        let axis = |name: &str, unit: Option<&str>, step: f64| json!({"name": name, "unit": unit, "step": step});
        let nm = Some("nanometer");
        let (z, y, x) = (axis("z", nm, 28.0), axis("y", nm, 11.24), axis("x", nm, 11.24));
        let finest = json!({"axes": [z, y, x, axis("channel", None, 1.0)]});
        let shape = Dims::filled(3, 8);
        let info =
            |mag| ArrayInfo { mag: Some(mag), ..ArrayInfo::new(Dtype::Int8, BrickGrid::aligned(shape, shape), shape) };
        let mut row = layer("em", "color", &[5, 6, 7, 3], 3);
        row.add_voxels(&finest, [[1, 1, 1], [2, 2, 1], [4, 4, 2]].map(info).iter());
        assert!(
            lines(&mut Table::new(MAX_COLUMN_WIDTH), &[row.clone()])[0]
                .ends_with("3 LODs  mag 1,2-2-1,4-4-2  voxel 11.24x11.24x28 nanometer")
        );
        assert_eq!(row.object["voxel_size"], json!({"step": [11.24, 11.24, 28.0], "unit": "nanometer"}));
        assert_eq!(row.object["mag"][1], json!([2, 2, 1]));
    }

    #[test]
    fn a_hidden_layer_is_listed_with_the_reason() {
        let mut row = layer("em", "color", &[5, 6], 0);
        row.object["error"] = "its voxels are of type x".into();
        assert_eq!(
            lines(&mut Table::new(MAX_COLUMN_WIDTH), &[row]),
            ["em  color  5x6  float32  not shown: its voxels are of type x"]
        );
    }
}
