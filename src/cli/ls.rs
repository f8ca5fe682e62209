//! `volfs ls`.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::CliError;
use super::listing::{Columns, Row};
use super::read_args::LsArgs;
use super::{mount, output, printable};
use crate::catalog::{Catalog, CatalogError, Kind, Node, ROOT};
use crate::format::{OpenWith, registry};
use crate::source::IndexCache;
use crate::view::json_text;

/// Memory for the tables of where bricks lie.
const INDEX_BYTES: usize = 8 << 20;

/// So many rows are set in columns together, unless they take longer to find than [`BATCH_TIME`].
const BATCH_ROWS: usize = 200;

/// How long a row waits for others.
const BATCH_TIME: Duration = Duration::from_millis(200);

/// Lists the datasets and layers below a folder, as they are found.
///
/// # Errors
/// [`CliError`]: SOURCE cannot be looked at, or the output cannot be written.
pub fn run(args: &LsArgs) -> Result<(), CliError> {
    let source = mount::checked_source(&args.source)?;
    let failed = |error: CatalogError| CliError::Look { source_path: source.clone(), error };
    let catalog = Catalog::new(&source, args.follow_links, OpenWith::new(IndexCache::new(INDEX_BYTES)), Arc::default())
        .map_err(failed)?;
    let Some(root) = catalog.node(ROOT) else { return Ok(()) };
    let mut sheet = Sheet::new(args.json);
    let top = catalog.list(&root).map_err(failed)?;
    walk(&catalog, &top, Path::new(""), &mut sheet)?;
    let found = sheet.finish()?;
    if !found && !args.json {
        let formats: Vec<String> = registry().iter().map(|format| format.name().to_uppercase()).collect();
        let (place, formats) = (printable::path(&source), formats.join(", "));
        output::note(&format!("no volumes found below {place}; this version reads {formats}"));
    }
    Ok(())
}

/// Whether somebody still reads the output.
fn walk(catalog: &Catalog, nodes: &[Arc<Node>], below: &Path, sheet: &mut Sheet) -> Result<bool, CliError> {
    for node in nodes {
        let path = below.join(&node.name);
        let goes_on = match node.kind {
            Kind::Folder => match catalog.list(node) {
                Ok(nodes) => walk(catalog, &nodes, &path, sheet)?,
                Err(error) => sheet.add(vec![Row::failed(&path, None, &error.to_string())])?,
            },
            Kind::Dataset => sheet.add(rows(catalog, node, &path))?,
        };
        if !goes_on {
            return Ok(false);
        }
    }
    Ok(true)
}

fn rows(catalog: &Catalog, node: &Arc<Node>, below: &Path) -> Vec<Row> {
    match catalog.open(node) {
        Ok(open) => Row::layers(below, &open)
            .unwrap_or_else(|error| vec![Row::failed(below, Some(open.format), &error.to_string())]),
        Err(error) => vec![Row::failed(below, None, &error.to_string())],
    }
}

/// What is printed, bit by bit.
struct Sheet {
    json: bool,
    columns: Columns,
    waiting: Vec<Row>,
    since: Instant,
    /// Whether anything was printed.
    begun: bool,
}

impl Sheet {
    fn new(json: bool) -> Self {
        Self { json, columns: Columns::default(), waiting: Vec::new(), since: Instant::now(), begun: false }
    }

    /// Prints the rows, now or soon; `false` if nobody reads them.
    fn add(&mut self, rows: Vec<Row>) -> Result<bool, CliError> {
        if self.waiting.is_empty() {
            self.since = Instant::now();
        }
        self.waiting.extend(rows);
        let full = self.waiting.len() >= BATCH_ROWS || self.since.elapsed() >= BATCH_TIME;
        if full { self.flush() } else { Ok(true) }
    }

    fn flush(&mut self) -> Result<bool, CliError> {
        if self.waiting.is_empty() {
            return Ok(true);
        }
        let mut text = String::new();
        if self.json {
            for row in &self.waiting {
                text.push_str(if self.begun { ",\n" } else { "[\n" });
                text.push_str(json_text::format(row.object()).trim_end());
                self.begun = true;
            }
        } else {
            text = self.columns.lines(&self.waiting);
            self.begun = true;
        }
        self.waiting.clear();
        output::part(text.as_bytes())
    }

    /// Prints what is left; whether there was anything.
    fn finish(mut self) -> Result<bool, CliError> {
        if self.flush()? && self.json {
            output::part(if self.begun { b"\n]\n" } else { b"[]\n" })?;
        }
        Ok(self.begun)
    }
}
