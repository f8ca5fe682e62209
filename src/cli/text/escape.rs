//! Escapes names from data, so that they cannot control the terminal.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) use crate::logging::one_line as text;

/// Returns a path on one line with control characters escaped, and bytes that are not UTF-8 as `\xff`.
pub(crate) fn path(path: &Path) -> String {
    let mut clean = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        clean.push_str(&text(chunk.valid()));
        for byte in chunk.invalid() {
            // writing to a String cannot fail
            let _ = write!(clean, "\\x{byte:02x}");
        }
    }
    clean
}

/// Returns a path as a Python string literal in double quotes, which opens exactly this file.
pub(crate) fn python(path: &Path) -> String {
    let mut code = String::from("\"");
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => code.extend(['\\', c]),
                _ if text(c.encode_utf8(&mut [0; 4])) == *c.encode_utf8(&mut [0; 4]) => code.push(c),
                _ => drop(write!(code, "\\U{:08x}", u32::from(c))),
            }
        }
        for byte in chunk.invalid() {
            // Python's surrogateescape maps such bytes to these code points
            let _ = write!(code, "\\udc{byte:02x}");
        }
    }
    code.push('"');
    code
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_path_cannot_control_the_terminal() {
        assert_eq!(path(Path::new("/a/é\x1b[31m\n")), "/a/é\\u{1b}[31m\\n");
        assert_eq!(path(Path::new(OsStr::from_bytes(b"/a\xff\xfe/b"))), "/a\\xff\\xfe/b");
    }

    #[test]
    fn python_opens_the_same_file() {
        assert_eq!(python(Path::new("/a \"b\"\\c")), r#""/a \"b\"\\c""#);
        assert_eq!(python(Path::new("/é\x1b")), r#""/é\U0000001b""#);
        assert_eq!(python(Path::new(OsStr::from_bytes(b"/\xff"))), r#""/\udcff""#);
    }
}
