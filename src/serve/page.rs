//! The files of the page, which are part of the program: `.volfs/page/NAME`.

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{Method, Response};

use super::conditions::{Outcome, evaluate};
use super::file::{not_modified, set, type_of};
use super::paths::TreePath;
use super::problem::Problem;
use super::validators::Tags;
use crate::fs::DOT_VOLFS;

/// The folder of the page below `.volfs`.
const FOLDER: &str = "page";

/// The files, by name.
const FILES: [(&str, &str); 11] = [
    ("colours.js", include_str!("page/colours.js")),
    ("copy.js", include_str!("page/copy.js")),
    ("dataset.js", include_str!("page/dataset.js")),
    ("histogram.js", include_str!("page/histogram.js")),
    ("icon.svg", include_str!("page/icon.svg")),
    ("list.js", include_str!("page/list.js")),
    ("main.js", include_str!("page/main.js")),
    ("outline.js", include_str!("page/outline.js")),
    ("page.css", include_str!("page/page.css")),
    ("samples.js", include_str!("page/samples.js")),
    ("viewer.js", include_str!("page/viewer.js")),
];

/// Answers a request for a file of the page; `None` if another file is meant.
pub(crate) fn answer(request: &Parts, path: &TreePath) -> Option<Result<Response<Body>, Problem>> {
    match &path.names[..] {
        [dot_volfs, folder, name] if dot_volfs == DOT_VOLFS && folder == FOLDER && !path.folder => {
            let file = FILES.iter().find(|(known, _)| name == *known);
            Some(file.ok_or(Problem::NotFound).and_then(|(name, text)| send(request, name, text)))
        }
        _ => None,
    }
}

fn send(request: &Parts, name: &str, text: &'static str) -> Result<Response<Body>, Problem> {
    let validators = Tags::of_program(name, text.as_bytes());
    if evaluate(&request.headers, &validators)? == Outcome::NotModified {
        return Ok(not_modified(&validators));
    }
    let mut response = Response::new(if request.method == Method::HEAD { Body::empty() } else { Body::from(text) });
    validators.write(response.headers_mut());
    set(response.headers_mut(), CONTENT_TYPE, type_of(name));
    set(response.headers_mut(), CONTENT_LENGTH, &text.len().to_string());
    Ok(response)
}
