//! What a folder answers: a page for browsers, a listing in JSON for those who name it, and links for other programs.
//!
//! The listing is `{"schema": 1, "path": "/", "entries": [{"name": ..., "href": ..., "kind": ...}]}`; a kind is
//! `dataset`, `folder` or `file`. Links are HTML like that of other servers, with nothing but the entries: programs that
//! know no other listing (wget, fsspec) follow each. Both are made while they are sent, since a folder may have millions
//! of entries.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, VARY};
use serde_json::{Value, json};

use super::page::{self, DATASET, FILE, FOLDER, Listed, escape, prefers_html, prefers_json};
use super::response::{Body, HTML, Head, JSON, Problem, Response, set};
use super::tree::{Open, TreePath, call, segment};
use crate::fs::{Attributes, Ino, Volfs};
use crate::view::json::SCHEMA;

/// Entries of one piece of a listing.
const PIECE: usize = 500;
/// Entries of one page; the others are on further pages.
const PAGE: usize = 1000;

/// Answers a request for a folder. `neuroglancer` is the address that its page links to.
pub(super) async fn answer(
    fs: &Arc<Volfs>,
    neuroglancer: Option<&str>,
    request: &Head,
    path: &TreePath,
    found: Attributes,
) -> Result<Response, Problem> {
    let mut response = Response::default();
    if !path.folder {
        // to the same folder with a slash at the end, relative, since a proxy may have other paths
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        let name = path.names.last().map(|name| segment(name)).unwrap_or_default();
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        set(response.headers_mut(), LOCATION, &format!("{name}/{query}"));
        return Ok(response);
    }
    let folder = Arc::new(Open::folder(fs, found.ino).await?);
    let (is_page, is_json) = (prefers_html(request.headers()), prefers_json(request.headers()));
    let from = request.uri().query().and_then(|query| query.strip_prefix("from=")?.parse().ok()).unwrap_or(0);
    // before the response begins, so that a failure gets its status
    let first = entries(&folder, found.ino, from, if is_page { PAGE } else { PIECE }).await?;
    *response.body_mut() = if is_page {
        page::of_folder(path, kind(fs, found.ino, true), (&first.0, first.1), from == 0, neuroglancer).into()
    } else {
        listing(path, folder, (found.ino, is_json), first)
    };
    let headers = response.headers_mut();
    set(headers, CONTENT_TYPE, if is_json { JSON } else { HTML });
    set(headers, CACHE_CONTROL, "no-cache");
    set(headers, VARY, "accept");
    Ok(response)
}

/// Entries, and the position of the next one if there may be more.
type Entries = (Vec<Listed>, Option<u64>);

/// Returns up to `most` entries after a position.
async fn entries(folder: &Arc<Open>, ino: Ino, from: u64, most: usize) -> Result<Entries, Problem> {
    let open = Arc::clone(folder);
    call(&folder.fs, Volfs::bulkhead(ino), move |fs, blocking| {
        let (mut entries, mut at, mut is_full) = (Vec::new(), from, false);
        fs.readdir(open.handle, from, blocking, |entry, position| {
            if entries.len() == most {
                is_full = true;
                return false;
            }
            at = position;
            if entry.name != "." && entry.name != ".." {
                entries.push(Listed { name: entry.name.clone(), kind: kind(fs, entry.ino, entry.folder) });
            }
            true
        })?;
        Ok((entries, is_full.then_some(at)))
    })
    .await
}

fn kind(fs: &Volfs, ino: Ino, is_folder: bool) -> &'static str {
    match is_folder {
        false => FILE,
        true if fs.is_dataset(ino) => DATASET,
        true => FOLDER,
    }
}

/// Returns the listing as JSON, or as links, in pieces.
fn listing(path: &TreePath, folder: Arc<Open>, (ino, is_json): (Ino, bool), first: Entries) -> Body {
    let names = path.names.iter().map(|name| name.to_string_lossy());
    let shown: String = names.fold("/".to_owned(), |path, name| path + &*name + "/");
    let (head, between, tail) = match is_json {
        true => (format!("{{\"schema\":{SCHEMA},\"path\":{},\"entries\":[", Value::from(shown)), ",", "]}\n"),
        false => {
            (format!("<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>{}</title>\n", escape(&shown)), "<br>\n", "\n")
        }
    };
    Body::stream((head, first, "", folder), move |(mut text, (entries, next), mut before, folder)| async move {
        for entry in &entries {
            let name = entry.name.to_string_lossy();
            text += before;
            text += &match is_json {
                true => json!({ "name": name, "href": entry.href(), "kind": entry.kind }).to_string(),
                false => entry.link(),
            };
            before = between;
        }
        let Some(position) = next else { return Some((Ok((text + tail).into()), None)) };
        Some(match self::entries(&folder, ino, position, PIECE).await {
            Ok(rest) => (Ok(text.into()), Some((String::new(), rest, before, folder))),
            // a listing that is broken off must not look whole
            Err(problem) => (Err(problem.into()), None),
        })
    })
}
