//! Whether a client prefers a page to JSON.
//!
//! RFC 9110, section 12.5.1. Browsers name text/html; programs send `*/*` or nothing, and get JSON.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

/// Returns whether the client names HTML, and does not prefer JSON to it.
pub(crate) fn prefers_html(headers: &HeaderMap) -> bool {
    let (mut html, mut json) = (0.0, 0.0);
    for text in headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()) {
        for range in text.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok()).unwrap_or(1.0);
            if kind.eq_ignore_ascii_case("text/html") {
                html = quality;
            } else if kind.eq_ignore_ascii_case("application/json") {
                json = quality;
            }
        }
    }
    html > 0.0 && html >= json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_get_pages_and_programs_json() {
        let prefers = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, text.parse().unwrap());
            prefers_html(&headers)
        };
        assert!(prefers("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        assert!(prefers("application/json;q=0.5, text/html"));
        for json in ["*/*", "application/json", "text/html;q=0, */*", "text/html;q=0.1, application/json", ""] {
            assert!(!prefers(json), "{json}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }
}
