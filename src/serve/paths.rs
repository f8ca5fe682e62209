//! The path of a URL as names of the tree.
//!
//! RFC 3986, section 3.3: segments between slashes, percent-encoded. A segment is decoded once, which gives the name as
//! it is in a mount.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use super::problem::Problem;

/// The longest name that a file system has.
const NAME_MAX: usize = 255;

/// What is encoded in a link: all but the characters that mean nothing in a URL.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A path that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreePath {
    /// The names from the root on.
    pub names: Vec<OsString>,
    /// Whether it ends with a slash, so that a folder is meant.
    pub folder: bool,
}

impl TreePath {
    /// Reads the path of a URL.
    pub(crate) fn read(path: &str) -> Result<Self, Problem> {
        let Some(path) = path.strip_prefix('/') else { return Err(Problem::Bad("the path begins with /".into())) };
        if path.is_empty() {
            return Ok(Self { names: Vec::new(), folder: true });
        }
        let (path, folder) = path.strip_suffix('/').map_or((path, false), |path| (path, true));
        let names = path.split('/').map(name).collect::<Result<_, _>>()?;
        Ok(Self { names, folder })
    }
}

/// Decodes one segment. Names that mean other folders, and those with a slash, are none.
fn name(segment: &str) -> Result<OsString, Problem> {
    let bytes: Vec<u8> = percent_decode_str(segment).collect();
    if bytes.contains(&0) {
        return Err(Problem::Bad("the path has a zero byte".into()));
    }
    if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') || bytes.len() > NAME_MAX {
        return Err(Problem::NotFound);
    }
    Ok(OsString::from_vec(bytes))
}

/// Returns a name as a segment of a URL.
pub(crate) fn segment(name: &OsStr) -> String {
    percent_encode(name.as_bytes(), ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str) -> Result<(Vec<String>, bool), Problem> {
        TreePath::read(path)
            .map(|path| (path.names.into_iter().map(|name| name.to_string_lossy().into_owned()).collect(), path.folder))
    }

    #[test]
    fn segments_are_decoded_once() {
        assert_eq!(names("/"), Ok((vec![], true)));
        assert_eq!(names("/a"), Ok((vec!["a".into()], false)));
        assert_eq!(names("/a/b%20c/"), Ok((vec!["a".into(), "b c".into()], true)));
        assert_eq!(names("/100%25%2525"), Ok((vec!["100%%25".into()], false)));
        assert_eq!(names("/%zz%"), Ok((vec!["%zz%".into()], false)));
    }

    #[test]
    fn nothing_leads_out_of_the_tree() {
        let outside = [
            "//",
            "///",
            "/a//b",
            "/..",
            "/.",
            "/a/../b",
            "/%2e%2e/x",
            "/%2E",
            "/a%2fb",
            "/a/%2F",
            "/..%2f..%2fetc",
            "/a//",
        ];
        for path in outside {
            assert_eq!(names(path), Err(Problem::NotFound), "{path}");
        }
        assert_eq!(names(&format!("/{}", "x".repeat(256))), Err(Problem::NotFound));
        for bad in ["", "a", "*", "/a%00b"] {
            assert!(matches!(names(bad), Err(Problem::Bad(_))), "{bad}");
        }
    }

    #[test]
    fn a_segment_leads_back_to_its_name() {
        for bytes in [&b"a b:c?d#e%f&\"<>'"[..], b"\xff\xfe.zgy", "für".as_bytes(), b"-_.~"] {
            let name = OsStr::from_bytes(bytes);
            let path = TreePath::read(&format!("/{}", segment(name))).unwrap();
            assert_eq!(path.names, [name]);
            assert!(!segment(name).contains([':', '"', '<', '&', '\'']));
        }
    }
}
