//! What a file answers: its bytes, parts of them, or that the client has them already.

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::hash::BuildHasher;

use axum::body::Body;
use axum::http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE};
use axum::http::request::Parts as Head;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};

use super::app_state::App;
use super::body::{FileBody, Parts, content_range};
use super::box_query::{box_of, region};
use super::calls::find;
use super::conditions::{Outcome, allow_range, evaluate};
use super::content_types::{BYTES, content_type};
use super::open_file::OpenFile;
use super::paths::TreePath;
use super::problem::Problem;
use super::ranges::{Wanted, wanted};
use super::validators::Validators;
use crate::fs::Attributes;

/// Looks and opens of a file that changes in between.
const MAX_ATTEMPTS: usize = 3;

/// Answers a request for a file.
pub(crate) async fn answer(
    app: &App,
    request: &Head,
    path: &TreePath,
    found: Attributes,
) -> Result<Response<Body>, Problem> {
    let (file, open, opened) = open(app, path, found).await?;
    let validators = app.tags.of(&file, &opened);
    if evaluate(&request.headers, &validators)? == Outcome::NotModified {
        return Ok(not_modified(&validators));
    }
    let kind = path.names.last().map_or(BYTES, |name| content_type(name));
    let selection = match request.uri.query().and_then(box_of) {
        Some(text) => {
            let samples = opened.samples.ok_or_else(|| Problem::Bad("only lodN.raw has boxes".into()))?;
            let region = region(&text, &samples.shape)?;
            Selection::of_box(Parts::region(region, samples.dtype.size() as u64))
        }
        None if request.method == Method::GET && allow_range(&request.headers, &validators) => {
            Selection::of_ranges(wanted(&request.headers, opened.size)?, opened.size, kind)
        }
        None => Selection::whole(opened.size),
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = selection.status;
    let headers = response.headers_mut();
    validators.write(headers);
    set(headers, CONTENT_TYPE, selection.content_type.as_deref().unwrap_or(kind));
    set(headers, CONTENT_LENGTH, &selection.parts.len().to_string());
    set(headers, ACCEPT_RANGES, if selection.has_ranges { "bytes" } else { "none" });
    if let Some(range) = &selection.content_range {
        set(headers, CONTENT_RANGE, range);
    }
    if request.method != Method::HEAD {
        let epoch = validators.tag.is_some().then_some(opened.epoch);
        let mut body = FileBody::new(open, epoch, app.budget.clone(), selection.parts);
        body.begin().await?;
        *response.body_mut() = body.into_body();
    }
    Ok(response)
}

/// Opens a file that was found, or finds it again if it has changed since.
async fn open(
    app: &App,
    path: &TreePath,
    found: Attributes,
) -> Result<(Attributes, OpenFile, crate::fs::Opened), Problem> {
    let mut file = found;
    for _ in 0..MAX_ATTEMPTS {
        match OpenFile::open(&app.fs, &file).await {
            Err(Problem::Changing) => file = find(&app.fs, &path.names).await?,
            opened => return opened.map(|(open, opened)| (file, open, opened)),
        }
    }
    Err(Problem::Changing)
}

/// Returns the response that the client has the file.
pub(crate) fn not_modified(validators: &Validators) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    validators.write(response.headers_mut());
    response
}

/// Sets a header.
pub(crate) fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Which bytes are sent, and how.
struct Selection {
    status: StatusCode,
    parts: Parts,
    content_type: Option<String>,
    content_range: Option<String>,
    has_ranges: bool,
}

impl Selection {
    fn whole(size: u64) -> Self {
        let parts = Parts::range(0..size);
        Self { status: StatusCode::OK, parts, content_type: None, content_range: None, has_ranges: true }
    }

    fn of_box(parts: Parts) -> Self {
        Self { parts, has_ranges: false, ..Self::whole(0) }
    }

    fn of_ranges(wanted: Wanted, size: u64, kind: &'static str) -> Self {
        let partial = Self { status: StatusCode::PARTIAL_CONTENT, ..Self::whole(size) };
        match wanted {
            Wanted::Whole => Self::whole(size),
            Wanted::Ranges(ranges) => match &ranges[..] {
                [range] => Self {
                    content_range: Some(content_range(range, size)),
                    parts: Parts::range(range.clone()),
                    ..partial
                },
                _ => {
                    let boundary = boundary();
                    let content_type = Some(format!("multipart/byteranges; boundary={boundary}"));
                    Self { parts: Parts::multipart(ranges, size, kind, boundary), content_type, ..partial }
                }
            },
        }
    }
}

/// Returns a line that no data have but by chance.
fn boundary() -> String {
    let random = || RandomState::new().hash_one(0);
    format!("volfs-{:016x}{:016x}", random(), random())
}

/// Returns the media type of a file by its name, for what is not in the tree.
pub(crate) fn type_of(name: &str) -> &'static str {
    content_type(OsStr::new(name))
}
