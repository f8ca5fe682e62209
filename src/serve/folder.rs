//! What a folder answers: a page for browsers, and a JSON listing for programs.
//!
//! The listing is `{"schema": 1, "path": "/", "entries": [{"name": ..., "href": ..., "kind": ...}]}`; a kind is
//! `dataset`, `folder` or `file`. It is made while it is sent, since a folder may have millions of entries.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, VARY};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Response, StatusCode};
use bytes::Bytes;
use futures_util::stream::{StreamExt, unfold};
use serde_json::{Value, json};

use super::accept::prefers_html;
use super::app_state::App;
use super::calls::call;
use super::content_types::{HTML, JSON};
use super::entries::{Kind, Listed};
use super::file::set;
use super::html::{self, CONTENT_SECURITY_POLICY, PageOf};
use super::open_file::OpenFile;
use super::paths::{TreePath, segment};
use super::problem::Problem;
use crate::fs::{Attributes, FolderEntry, Ino, Volfs};
use crate::view::json::SCHEMA;

/// Entries of one piece of a listing.
const PIECE: usize = 500;
/// Entries of one page; the others are on further pages.
const PAGE: usize = 1000;

/// Answers a request for a folder.
pub(crate) async fn answer(
    app: &App,
    request: &Parts,
    path: &TreePath,
    found: Attributes,
) -> Result<Response<Body>, Problem> {
    if !path.folder {
        return Ok(redirect(request, path));
    }
    let folder = Arc::new(OpenFile::open_folder(&app.fs, &found).await?);
    let is_page = prefers_html(&request.headers);
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    set(headers, CONTENT_TYPE, if is_page { HTML } else { JSON });
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(VARY, HeaderValue::from_static("accept"));
    if is_page {
        set(headers, axum::http::header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
    }
    let from = request.uri.query().and_then(|query| query.strip_prefix("from=")?.parse().ok()).unwrap_or(0);
    // before the response begins, so that what fails gets a status of its own
    let first = entries(&folder, found.ino, from, if is_page { PAGE } else { PIECE }).await?;
    *response.body_mut() = if is_page {
        let kind = if app.fs.is_dataset(found.ino) { Kind::Dataset } else { Kind::Folder };
        let (entries, next) = first;
        let page =
            PageOf { path, kind, entries: &entries, is_first: from == 0, next, neuroglancer: app.neuroglancer() };
        Body::from(html::page(&page))
    } else {
        listing(path, folder, found.ino, first)
    };
    Ok(response)
}

/// Returns the way to the same folder with a slash behind it, relative, since a proxy may have other paths.
fn redirect(request: &Parts, path: &TreePath) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    let query = request.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let name = path.names.last().map(|name| segment(name)).unwrap_or_default();
    set(response.headers_mut(), LOCATION, &format!("{name}/{query}"));
    response
}

/// Entries, and the position of the next one if there may be more.
type Entries = (Vec<Listed>, Option<u64>);

/// Returns up to `most` entries behind a position.
async fn entries(folder: &Arc<OpenFile>, ino: Ino, from: u64, most: usize) -> Result<Entries, Problem> {
    let of = Arc::clone(folder);
    call(folder.fs(), Volfs::bulkhead(ino), move |fs, wait| {
        let (mut entries, mut at, mut is_full) = (Vec::new(), from, false);
        fs.readdir(of.handle(), from, wait, |entry, position| {
            if entries.len() == most {
                is_full = true;
                return false;
            }
            at = position;
            if entry.name != "." && entry.name != ".." {
                entries.push(listed(fs, entry));
            }
            true
        })?;
        Ok((entries, is_full.then_some(at)))
    })
    .await
}

fn listed(fs: &Volfs, entry: &FolderEntry) -> Listed {
    let kind = match entry.folder {
        false => Kind::File,
        true if fs.is_dataset(entry.ino) => Kind::Dataset,
        true => Kind::Folder,
    };
    Listed { name: entry.name.clone(), kind }
}

/// Returns the listing as JSON, in pieces.
fn listing(path: &TreePath, folder: Arc<OpenFile>, ino: Ino, first: Entries) -> Body {
    let names = path.names.iter().map(|name| name.to_string_lossy());
    let shown: String = names.fold("/".to_owned(), |path, name| path + &*name + "/");
    let head = format!("{{\"schema\":{SCHEMA},\"path\":{},\"entries\":[", Value::from(shown));
    let pieces = unfold(Some((head, first, "", folder)), move |state| async move {
        let (mut text, (entries, next), mut comma, folder) = state?;
        for entry in &entries {
            let name = entry.name.to_string_lossy();
            text += comma;
            text += &json!({ "name": name, "href": entry.href(), "kind": entry.kind.word() }).to_string();
            comma = ",";
        }
        let Some(position) = next else { return Some((Ok(Bytes::from(text + "]}\n")), None)) };
        match self::entries(&folder, ino, position, PIECE).await {
            Ok(rest) => Some((Ok(Bytes::from(text)), Some((String::new(), rest, comma, folder)))),
            // a listing that is broken off must not look whole
            Err(problem) => Some((Err(io::Error::other(problem.to_string())), None)),
        }
    });
    // whoever compresses a body asks again after its end
    Body::from_stream(pieces.fuse())
}
