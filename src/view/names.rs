//! File names for names from data, which may hold anything.

use std::collections::HashSet;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The longest name that a file may have, in bytes.
pub const LONGEST: usize = 255;

/// A file name for `name`: what no file name may hold is percent-encoded, so that decoding gives the exact name back; a name
/// of more than `longest` bytes is cut and ends in `~` and a hash of the whole.
#[must_use]
pub fn file_name(name: &str, longest: usize) -> String {
    let mut encoded = String::with_capacity(name.len());
    for c in name.chars() {
        if c == '/' || c == '%' || c.is_control() || matches!(name, "." | "..") {
            let mut utf8 = [0; 4];
            for byte in c.encode_utf8(&mut utf8).bytes() {
                let _ = write!(encoded, "%{byte:02X}");
            }
        } else {
            encoded.push(c);
        }
    }
    if encoded.len() <= longest {
        return encoded;
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let tail = format!("~{:016x}", hasher.finish());
    cut(&mut encoded, longest.saturating_sub(tail.len()));
    encoded + &tail
}

/// A file name of at most `longest` bytes that is not yet in `taken`: `name`, or `name~2`, `name~3`, ... It is taken from then
/// on.
pub fn unique(name: String, longest: usize, taken: &mut HashSet<String>) -> String {
    let mut candidate = name.clone();
    let mut n = 2;
    while !taken.insert(candidate.clone()) {
        let tail = format!("~{n}");
        candidate.clone_from(&name);
        cut(&mut candidate, longest.saturating_sub(tail.len()));
        candidate += &tail;
        n += 1;
    }
    candidate
}

/// Cuts at a character, and not within a percent code.
fn cut(text: &mut String, longest: usize) {
    if text.len() <= longest {
        return;
    }
    let mut end = longest;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if let Some(percent) = text[..end].rfind('%')
        && percent + 3 > end
    {
        end = percent;
    }
    text.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_stand_in_a_name_is_encoded() {
        assert_eq!(file_name("a/b%c\n\u{85}é", LONGEST), "a%2Fb%25c%0A%C2%85é");
        assert_eq!(file_name(".", LONGEST), "%2E");
        assert_eq!(file_name("..", LONGEST), "%2E%2E");
        assert_eq!(file_name(".x", LONGEST), ".x");
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let (one, two) = (file_name(&"é".repeat(200), LONGEST), file_name(&("é".repeat(199) + "x"), LONGEST));
        assert!(one.len() <= 255 && one != two && one.contains('~'));
        assert!(file_name(&"/".repeat(200), LONGEST).len() <= 255);
        assert_eq!(file_name(&"x".repeat(255), LONGEST).len(), 255);
    }

    #[test]
    fn equal_names_get_numbers() {
        let mut taken = HashSet::from(["dataset.json".to_owned()]);
        assert_eq!(unique("a".into(), LONGEST, &mut taken), "a");
        assert_eq!(unique("a".into(), LONGEST, &mut taken), "a~2");
        assert_eq!(unique("a".into(), LONGEST, &mut taken), "a~3");
        assert_eq!(unique("dataset.json".into(), LONGEST, &mut taken), "dataset.json~2");
        let long = "y".repeat(255);
        unique(long.clone(), LONGEST, &mut taken);
        assert_eq!(unique(long, LONGEST, &mut taken).len(), 255);
    }
}
