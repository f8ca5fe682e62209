//! The page that a browser gets for a folder: its entries as links, and the scripts that show datasets.
//!
//! All links are relative, so that the server can stand behind a proxy with any path.

use std::ffi::OsString;

use super::entries::{Kind, Listed};
use super::paths::{TreePath, segment};

/// What pages may do: nothing but use the files and data of this server.
pub(crate) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What a page shows.
#[derive(Debug)]
pub(crate) struct PageOf<'a> {
    /// The folder.
    pub path: &'a TreePath,
    /// Whether it is a dataset.
    pub kind: Kind,
    /// Its entries, or some of them.
    pub entries: &'a [Listed],
    /// Whether these are the first ones.
    pub is_first: bool,
    /// Where the next ones begin.
    pub next: Option<u64>,
    /// The address of a Neuroglancer.
    pub neuroglancer: Option<&'a str>,
}

/// Returns the page.
pub(crate) fn page(page: &PageOf<'_>) -> String {
    let names: Vec<String> = page.path.names.iter().map(|name| escape(&name.to_string_lossy())).collect();
    let root = if names.is_empty() { "./".to_owned() } else { "../".repeat(names.len()) };
    let title = names.last().map_or_else(|| "volfs".to_owned(), |name| format!("{name} · volfs"));
    let mut crumbs = format!("<a href=\"{root}\">volfs</a>");
    for (n, name) in names.iter().enumerate() {
        let up = "../".repeat(names.len() - 1 - n);
        let href = if up.is_empty() { "./" } else { &up };
        crumbs += &format!(" <span aria-hidden=\"true\">/</span> <a href=\"{href}\">{name}</a>");
    }
    let mut rows = String::new();
    for entry in page.entries {
        let (slash, kind) = (if entry.kind == Kind::File { "" } else { "/" }, entry.kind.word());
        let name = escape(&entry.name.to_string_lossy());
        rows += &format!("<li data-kind=\"{kind}\"><a href=\"{}\">{name}{slash}</a></li>\n", entry.href());
    }
    let mut more = String::new();
    if !page.is_first {
        more += "<p><a href=\"./\">First entries</a></p>\n";
    }
    if let Some(next) = page.next {
        more += &format!("<p><a id=\"more\" href=\"?from={next}\">More entries</a></p>\n");
    }
    let (kind, viewer) = (page.kind.word(), escape(page.neuroglancer.unwrap_or_default()));
    let assets = format!("{root}{}/page", segment(crate::fs::DOT_VOLFS.as_ref()));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
        <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
        <link rel=\"icon\" type=\"image/svg+xml\" href=\"{assets}/icon.svg\">\n\
        <link rel=\"stylesheet\" href=\"{assets}/page.css\">\n\
        <script type=\"module\" src=\"{assets}/main.js\"></script>\n</head>\n\
        <body data-kind=\"{kind}\" data-root=\"{root}\" data-neuroglancer=\"{viewer}\">\n\
        <header><nav aria-label=\"Path\">{crumbs}</nav></header>\n<main id=\"main\"></main>\n\
        <section id=\"entries\" aria-labelledby=\"entries-title\">\n<h2 id=\"entries-title\">Files and folders</h2>\n\
        <ul>\n{rows}</ul>\n{more}</section>\n</body>\n</html>\n"
    )
}

/// Returns the page for a path that leads nowhere: the folder above it that is there, `up` from the path.
pub(crate) fn not_found(above: &[OsString], up: &str) -> String {
    let (href, shown) = (if up.is_empty() { "./" } else { up }, escape(&shown_path(above)));
    let root = format!("{up}{}", "../".repeat(above.len()));
    let root = if root.is_empty() { "./".to_owned() } else { root };
    let assets = format!("{root}{}/page", segment(crate::fs::DOT_VOLFS.as_ref()));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
        <meta name=\"color-scheme\" content=\"light dark\">\n<title>Not found · volfs</title>\n\
        <link rel=\"icon\" type=\"image/svg+xml\" href=\"{assets}/icon.svg\">\n\
        <link rel=\"stylesheet\" href=\"{assets}/page.css\">\n</head>\n<body>\n\
        <header><nav aria-label=\"Path\"><a href=\"{root}\">volfs</a></nav></header>\n<main>\n<h1>Not found</h1>\n\
        <p>There is nothing at this address. The folder above it that is there: <a href=\"{href}\">{shown}</a></p>\n\
        </main>\n</body>\n</html>\n"
    )
}

/// Returns the path of a folder as text.
pub(crate) fn shown_path(names: &[OsString]) -> String {
    let path = names.iter().fold("/".to_owned(), |path, name| path + &*name.to_string_lossy() + "/");
    crate::logging::one_line(&path).into_owned()
}

/// Returns text for between tags and within quotes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in crate::logging::one_line(text).chars() {
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
            Listed { name: "<script>alert(1)</script>".into(), kind: Kind::File },
            Listed { name: "javascript:x".into(), kind: Kind::Dataset },
        ];
        let html = page(&PageOf {
            path: &path,
            kind: Kind::Folder,
            entries: &entries,
            is_first: true,
            next: Some(7),
            neuroglancer: None,
        });
        assert!(
            !html.contains("<script>alert") && !html.contains("\"onload") && !html.contains("\"javascript:"),
            "{html}"
        );
        assert!(html.contains("href=\"javascript%3Ax/\"") && html.contains("&lt;script&gt;"), "{html}");
        assert!(html.contains("href=\"../../.volfs/page/page.css\"") && html.contains("?from=7"), "{html}");
        assert!(!html.contains("href=\"/") && !html.contains("://"), "{html}");
    }
}
