//! `volfs ls`: lists datasets and layers while it finds them.

mod rows;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::rows::Row;
use crate::catalog::{Catalog, CatalogError, Node, NodeKind, ROOT};
use crate::cli::args::LsArgs;
use crate::cli::chosen_source::checked_source;
use crate::cli::deadline::{self, Output};
use crate::cli::error::CliError;
use crate::cli::mounts::source_behind::source_behind;
use crate::cli::text::escape;
use crate::cli::text::table::Table;
use crate::format::{OpenWith, registry};
use crate::source::{IndexCache, Origin};
use crate::view::json_text;

/// Bytes of the cache for brick index tables.
const INDEX_BYTES: usize = 8 << 20;

/// The largest width of a column of the table. A wider cell pushes the cells after it aside.
const MAX_COLUMN_WIDTH: usize = 48;

/// Rows that are aligned and printed together, unless they take longer to find than [`BATCH_TIME`].
const BATCH_ROWS: usize = 200;

/// The longest time that a row waits for others.
const BATCH_TIME: Duration = Duration::from_millis(200);

/// Lists the datasets and layers below a folder, as they are found.
pub(crate) fn run(args: &LsArgs) -> Result<(), CliError> {
    deadline::run(&args.source, |out| list(args, out))
}

fn list(args: &LsArgs, out: &Output<'_>) -> Result<(), CliError> {
    let behind = source_behind(&args.source, &args.store_option)?;
    let (path, store_options) = (behind.unwrap_or_else(|| args.source.clone()), args.store_option.clone());
    out.looks_at(&path);
    let origin = checked_source(&Origin { path, follow_links: args.follow_links, store_options, ..Origin::default() })?;
    let source = &origin.path;
    let failed = |error: CatalogError| CliError::ListSource { source_path: source.clone(), error };
    let with = OpenWith::new(IndexCache::new(INDEX_BYTES));
    let tree = origin.tree(true, Arc::default()).map_err(|error| failed(CatalogError::io(source, &error)))?;
    let catalog = Catalog::new(registry(), tree, with, Arc::default()).map_err(failed)?;
    let Some(root) = catalog.node(ROOT) else { return Ok(()) };
    let mut printer = RowPrinter::new(args.json, out);
    let top = catalog.list(&root).map_err(failed)?;
    walk(&catalog, &top, Path::new(""), &mut printer)?;
    let found = printer.finish()?;
    if !found && !args.json {
        let (place, formats) = (escape::path(source), registry().names());
        out.note(&format!("no volumes found below {place}; this version reads {formats}"));
    }
    Ok(())
}

/// Prints all that lies below some nodes. Returns `false` once the reader of the output is gone.
fn walk(catalog: &Catalog, nodes: &[Arc<Node>], below: &Path, printer: &mut RowPrinter<'_>) -> Result<bool, CliError> {
    for node in nodes {
        let path = below.join(&*node.name);
        printer.out.looks_at(&node.path());
        let goes_on = match node.kind {
            NodeKind::Folder => match catalog.list(node) {
                Ok(nodes) => walk(catalog, &nodes, &path, printer)?,
                Err(error) => printer.add(vec![Row::failed(&path, None, &error.to_string())])?,
            },
            NodeKind::Dataset => printer.add(rows(catalog, node, &path))?,
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

/// Prints rows in batches.
struct RowPrinter<'a> {
    out: &'a Output<'a>,
    json: bool,
    table: Table,
    /// Rows that are not printed yet.
    batch: Vec<Row>,
    /// When the first row of the batch was added.
    since: Instant,
    /// Whether anything was printed.
    begun: bool,
}

impl<'a> RowPrinter<'a> {
    fn new(json: bool, out: &'a Output<'a>) -> Self {
        Self { out, json, table: Table::new(MAX_COLUMN_WIDTH), batch: Vec::new(), since: Instant::now(), begun: false }
    }

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
            for row in &self.batch {
                text.push_str(if self.begun { ",\n" } else { "[\n" });
                text.push_str(json_text(row.object()).trim_end());
                self.begun = true;
            }
        } else {
            let lines = self.table.lines(self.batch.iter().map(Row::cells).collect());
            text.extend(lines.iter().flat_map(|line| [line.as_str(), "\n"]));
            self.begun = true;
        }
        self.batch.clear();
        self.out.part(text.as_bytes())
    }

    /// Prints the last batch. Returns whether anything was printed at all.
    fn finish(mut self) -> Result<bool, CliError> {
        if self.flush()? && self.json {
            self.out.part(if self.begun { b"\n]\n" } else { b"[]\n" })?;
        }
        Ok(self.begun)
    }
}
