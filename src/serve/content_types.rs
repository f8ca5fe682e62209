//! The media type of a file, by its name.

use std::ffi::OsStr;
use std::path::Path;

/// Samples and other bytes.
pub(crate) const BYTES: &str = "application/octet-stream";
/// JSON.
pub(crate) const JSON: &str = "application/json";
/// Pages.
pub(crate) const HTML: &str = "text/html; charset=utf-8";

/// Returns the media type of a file.
pub(crate) fn content_type(name: &OsStr) -> &'static str {
    let extension = Path::new(name).extension().and_then(OsStr::to_str).unwrap_or_default();
    match extension {
        "json" => JSON,
        "png" => "image/png",
        "tif" => "image/tiff",
        "txt" | "hdr" | "nhdr" | "mhd" => "text/plain; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ if name == "log" => "text/plain; charset=utf-8",
        _ => BYTES,
    }
}

/// Returns whether bytes of a type become much fewer when they are compressed.
pub(crate) fn is_text(content_type: &str) -> bool {
    content_type.starts_with(JSON) || content_type.starts_with("text/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_bytes_and_headers_text() {
        let of = |name: &str| content_type(OsStr::new(name));
        assert_eq!(of("lod0.raw"), BYTES);
        assert_eq!(of("0"), BYTES);
        assert_eq!(of("lod0.zarr.json"), JSON);
        assert_eq!(of("preview.png"), "image/png");
        assert!(is_text(of("log")) && is_text(of("lod0.mhd")) && is_text(of("zarr.json")) && !is_text(of("lod0.npy")));
    }
}
