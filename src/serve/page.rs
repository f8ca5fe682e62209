//! The pages that browsers get, and the files that these pages use, which are part of the program.
//!
//! All links are relative, so that a proxy in front may serve them below any path.

use std::ffi::OsString;
use std::sync::LazyLock;

use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName};

use super::bundle;
use super::file::Validators;
use super::response::{Head, Problem, Response, content_type, set};
use super::tree::{TreePath, segment};
use crate::fs::DOT_VOLFS;
use crate::logging::one_line;

/// What pages may do: nothing but use the files and data of this server.
pub(super) const SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The folder of the files below `.volfs`.
const ASSETS: &str = "page";

/// The files, by name.
const FILES: [(&str, &str); 27] = [
    ("axes.js", include_str!("page/axes.js")),
    ("channels.js", include_str!("page/channels.js")),
    ("colours.js", include_str!("page/colours.js")),
    ("dataset.js", include_str!("page/dataset.js")),
    ("dom.js", include_str!("page/dom.js")),
    ("export.js", include_str!("page/export.js")),
    ("help.js", include_str!("page/help.js")),
    ("histogram.js", include_str!("page/histogram.js")),
    ("icon.svg", include_str!("page/icon.svg")),
    ("layer.js", include_str!("page/layer.js")),
    ("line.js", include_str!("page/line.js")),
    ("list.js", include_str!("page/list.js")),
    ("main.js", include_str!("page/main.js")),
    ("metadata.js", include_str!("page/metadata.js")),
    ("outline.js", include_str!("page/outline.js")),
    ("page.css", include_str!("page/page.css")),
    ("plane.js", include_str!("page/plane.js")),
    ("profile.js", include_str!("page/profile.js")),
    ("samples.js", include_str!("page/samples.js")),
    ("section.js", include_str!("page/section.js")),
    ("slices.js", include_str!("page/slices.js")),
    ("stage.js", include_str!("page/stage.js")),
    ("ticks.js", include_str!("page/ticks.js")),
    ("trace_header.js", include_str!("page/trace_header.js")),
    ("view.js", include_str!("page/view.js")),
    ("wait.js", include_str!("page/wait.js")),
    ("wiggle.js", include_str!("page/wiggle.js")),
];

/// The modules among the files, as one script.
const SCRIPT: &str = "page.js";
static SCRIPT_TEXT: LazyLock<String> = LazyLock::new(|| bundle::script(&FILES, "main.js"));

/// Answers a request for a file of the page, `.volfs/page/NAME`; `None` if another file is meant.
pub(super) fn answer(request: &Head, path: &TreePath) -> Option<Result<Response, Problem>> {
    match &path.names[..] {
        [dot_volfs, folder, name] if dot_volfs == DOT_VOLFS && folder == ASSETS && !path.folder => {
            if name == SCRIPT {
                return Some(send(request, SCRIPT, &SCRIPT_TEXT));
            }
            let file = FILES.iter().find(|(known, _)| name == *known);
            Some(file.ok_or(Problem::NotFound).and_then(|(name, text)| send(request, name, text)))
        }
        _ => None,
    }
}

fn send(request: &Head, name: &str, text: &'static str) -> Result<Response, Problem> {
    let validators = Validators::of_program(name, text);
    if validators.client_has_it(request.headers())? {
        return Ok(validators.not_modified());
    }
    let mut response = Response::new(text.to_owned().into());
    validators.write(response.headers_mut());
    set(response.headers_mut(), CONTENT_TYPE, content_type(name.as_ref()));
    Ok(response)
}

/// Returns whether the client names HTML, and does not prefer JSON to it: browsers name text/html, and programs send
/// `*/*` or nothing.
pub(super) fn prefers_html(headers: &HeaderMap) -> bool {
    let html = quality(headers, ACCEPT, "text/html");
    html > 0.0 && html >= quality(headers, ACCEPT, "application/json")
}

/// Returns whether the client names JSON, and does not prefer HTML.
pub(super) fn prefers_json(headers: &HeaderMap) -> bool {
    !prefers_html(headers) && quality(headers, ACCEPT, "application/json") > 0.0
}

/// Returns the weight that a header of the client gives to one of its choices, 0 if it is not named; RFC 9110, section
/// 12.4.2.
pub(super) fn quality(headers: &HeaderMap, name: HeaderName, choice: &str) -> f32 {
    let texts = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let mut weights = texts.flat_map(|text| text.split(',')).filter_map(|text| {
        let mut parts = text.split(';').map(str::trim);
        let is_chosen = parts.next()?.eq_ignore_ascii_case(choice);
        is_chosen.then(|| parts.find_map(|part| part.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0))
    });
    weights.next_back().unwrap_or(0.0)
}

/// What an entry of a folder is, as pages and listings say it.
pub(super) const DATASET: &str = "dataset";
pub(super) const FOLDER: &str = "folder";
pub(super) const FILE: &str = "file";

/// An entry of a folder, with its name as in a mount.
pub(super) struct Listed {
    pub(super) name: OsString,
    pub(super) kind: &'static str,
}

impl Listed {
    /// Returns the link from the folder to the entry.
    pub(super) fn href(&self) -> String {
        segment(&self.name) + self.slash()
    }

    fn slash(&self) -> &'static str {
        if self.kind == FILE { "" } else { "/" }
    }

    /// Returns the link as HTML.
    pub(super) fn link(&self) -> String {
        format!("<a href=\"{}\">{}{}</a>", self.href(), escape(&self.name.to_string_lossy()), self.slash())
    }
}

/// Returns the page of a folder: entries as links, and the scripts that show datasets. The entries may be some of them:
/// the first ones or not, and come with the position of the next one.
pub(super) fn of_folder(
    path: &TreePath,
    kind: &str,
    (entries, next): (&[Listed], Option<u64>),
    is_first: bool,
    neuroglancer: Option<&str>,
) -> String {
    let names: Vec<String> = path.names.iter().map(|name| escape(&name.to_string_lossy())).collect();
    let root = way_up(names.len());
    let title = names.last().map_or_else(|| "volfs".to_owned(), |name| format!("{name} · volfs"));
    let mut crumbs = format!("<a href=\"{root}\">volfs</a>");
    for (n, name) in names.iter().enumerate() {
        let href = way_up(names.len() - 1 - n);
        crumbs += &format!(" <span aria-hidden=\"true\">/</span> <a href=\"{href}\">{name}</a>");
    }
    let mut rows = String::new();
    for entry in entries {
        rows += &format!("<li data-kind=\"{}\">{}</li>\n", entry.kind, entry.link());
    }
    let mut more = String::new();
    if !is_first {
        more += "<p><a href=\"./\">First entries</a></p>\n";
    }
    if let Some(next) = next {
        more += &format!("<p><a id=\"more\" href=\"?from={next}\">More entries</a></p>\n");
    }
    let viewer = escape(neuroglancer.unwrap_or_default());
    let body = format!(
        "<body data-kind=\"{kind}\" data-root=\"{root}\" data-neuroglancer=\"{viewer}\">\n\
        <header><nav aria-label=\"Path\">{crumbs}</nav></header>\n<main id=\"main\"></main>\n\
        <section id=\"entries\" aria-labelledby=\"entries-title\">\n\
        <h2 id=\"entries-title\">Files and folders</h2>\n<ul>\n{rows}</ul>\n{more}</section>\n"
    );
    // the first thing that the script asks for, while it is still on its way
    let is_described = kind == DATASET && entries.iter().any(|entry| entry.name == "dataset.json");
    let wanted =
        if is_described { "<link rel=\"preload\" as=\"fetch\" crossorigin href=\"dataset.json\">\n" } else { "" };
    document(&root, &title, Some(wanted), &body)
}

/// Returns the page for a path that leads nowhere: the folder above it that is there, `up` from the path.
pub(super) fn not_found(above: &[OsString], up: &str) -> String {
    let (href, shown) = (if up.is_empty() { "./" } else { up }, escape(&shown_path(above)));
    let root = format!("{up}{}", "../".repeat(above.len()));
    let root = if root.is_empty() { "./" } else { &root };
    let body = format!(
        "<body>\n<header><nav aria-label=\"Path\"><a href=\"{root}\">volfs</a></nav></header>\n\
        <main>\n<h1>Not found</h1>\n<p>There is nothing at this address. The folder above it that is there: \
        <a href=\"{href}\">{shown}</a></p>\n</main>\n"
    );
    document(root, "Not found · volfs", None, &body)
}

/// Returns a page with the script, and links to what it wants first, or one without.
fn document(root: &str, title: &str, script: Option<&str>, body: &str) -> String {
    let assets = format!("{root}{}/{ASSETS}", segment(DOT_VOLFS.as_ref()));
    let script = script.map_or_else(String::new, |wanted| {
        format!("{wanted}<script type=\"module\" src=\"{assets}/{SCRIPT}\"></script>\n")
    });
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
        <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
        <link rel=\"icon\" type=\"image/svg+xml\" href=\"{assets}/icon.svg\">\n\
        <link rel=\"stylesheet\" href=\"{assets}/page.css\">\n{script}</head>\n{body}</body>\n</html>\n"
    )
}

/// Returns the link to the folder so many levels above.
fn way_up(levels: usize) -> String {
    if levels == 0 { "./".to_owned() } else { "../".repeat(levels) }
}

/// Returns the path of a folder as text.
pub(super) fn shown_path(names: &[OsString]) -> String {
    let path = names.iter().fold("/".to_owned(), |path, name| path + &*name.to_string_lossy() + "/");
    one_line(&path).into_owned()
}

/// Returns text for between tags and within quotes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_data_are_text_and_links_are_relative() {
        let path = TreePath { names: vec!["a<b".into(), "\"onload=x".into()], folder: true };
        let entries = [
            Listed { name: "<script>alert(1)</script>".into(), kind: FILE },
            Listed { name: "javascript:x".into(), kind: DATASET },
        ];
        let html = of_folder(&path, FOLDER, (&entries, Some(7)), true, None);
        assert!(
            !html.contains("<script>alert") && !html.contains("\"onload") && !html.contains("\"javascript:"),
            "{html}"
        );
        assert!(html.contains("href=\"javascript%3Ax/\"") && html.contains("&lt;script&gt;"), "{html}");
        assert!(html.contains("href=\"../../.volfs/page/page.css\"") && html.contains("?from=7"), "{html}");
        assert!(html.contains("href=\"../../\">volfs<") && html.contains("href=\"../\">a&lt;b<"), "{html}");
        assert!(html.contains("href=\"./\">&quot;onload=x<"), "{html}");
        assert!(!html.contains("href=\"/") && !html.contains("://"), "{html}");
    }

    #[test]
    fn browsers_get_pages_and_programs_what_they_name() {
        let prefers = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, text.parse().unwrap());
            (prefers_html(&headers), prefers_json(&headers))
        };
        for page in [
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "application/json;q=0.5, text/html",
            "text/html, application/json",
        ] {
            assert_eq!(prefers(page), (true, false), "{page}");
        }
        for json in ["application/json", "text/html;q=0.1, application/json", "application/json, text/plain, */*"] {
            assert_eq!(prefers(json), (false, true), "{json}");
        }
        for neither in ["*/*", "", "application/*", "application/json;q=0", "text/html;q=0, */*"] {
            assert_eq!(prefers(neither), (false, false), "{neither}");
        }
        assert!(!prefers_html(&HeaderMap::new()) && !prefers_json(&HeaderMap::new()));
    }
}
