//! File names made of names from data, which may contain any character.

use std::collections::HashSet;
use std::fmt::Write;

use super::hash_of;
use crate::volume::ArrayInfo;

/// The longest file name, in bytes (`NAME_MAX` of Linux).
pub(crate) const NAME_MAX: usize = 255;
/// The longest axis name in a file name, in bytes.
const AXIS_NAME_MAX: usize = NAME_MAX - "lod99.by-.npy".len();

/// Returns a file name of at most `max` bytes for `name`. Characters that a file name cannot contain are
/// percent-encoded, so that decoding restores the name; a longer name is truncated and ends in `~` and a hash of the
/// whole name; an empty name becomes `unnamed`.
pub(crate) fn file_name(name: &str, max: usize) -> String {
    if name.is_empty() {
        return "unnamed".to_owned();
    }
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
    if encoded.len() <= max {
        return encoded;
    }
    let tail = format!("~{:016x}", hash_of(name));
    truncate(&mut encoded, max.saturating_sub(tail.len()));
    encoded + &tail
}

/// Returns a file name of at most `max` bytes that is not yet in `taken`: `name`, or `name~2`, `name~3`, ... Adds it to
/// `taken`.
pub(crate) fn unique(name: String, max: usize, taken: &mut HashSet<String>) -> String {
    let mut candidate = name.clone();
    let mut n = 2;
    while !taken.insert(candidate.clone()) {
        let tail = format!("~{n}");
        candidate.clone_from(&name);
        truncate(&mut candidate, max.saturating_sub(tail.len()));
        candidate += &tail;
        n += 1;
    }
    candidate
}

/// Returns the index of a name, or else of the only one that differs from it in case alone. Fails with the indexes of
/// all that do if they are several.
pub(crate) fn find_name(
    names: impl IntoIterator<Item = impl AsRef<str>>,
    wanted: &str,
) -> Result<Option<usize>, Vec<usize>> {
    fn lower(name: &str) -> impl Iterator<Item = char> {
        name.chars().flat_map(char::to_lowercase)
    }
    let mut alike = Vec::new();
    for (n, name) in names.into_iter().enumerate() {
        match name.as_ref() {
            name if name == wanted => return Ok(Some(n)),
            name if lower(name).eq(lower(wanted)) => alike.push(n),
            _ => {}
        }
    }
    if alike.len() > 1 { Err(alike) } else { Ok(alike.pop()) }
}

/// Truncates to at most `max` bytes, at a character boundary and not inside a percent code.
fn truncate(text: &mut String, max: usize) {
    if text.len() <= max {
        return;
    }
    let mut end = max;
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

/// Returns the names of all axes, as they appear in file names: `axisN` for an axis without a name or with the name of
/// another axis.
pub(crate) fn axis_names(info: &ArrayInfo) -> Vec<String> {
    let name = |axis: usize| info.axes.get(axis).map_or("", |axis| axis.name.as_str());
    let axes = info.shape().len();
    let unambiguous =
        |axis: usize| !name(axis).is_empty() && (0..axes).filter(|other| name(*other) == name(axis)).count() == 1;
    let mut taken = HashSet::new();
    let mut in_file_name = |axis: usize| {
        let name = if unambiguous(axis) { file_name(name(axis), AXIS_NAME_MAX) } else { format!("axis{axis}") };
        unique(name, AXIS_NAME_MAX, &mut taken)
    };
    // the first axis has fewer files than the others: it is the one that changes its name if it has to be another one
    let mut names: Vec<String> = (1..axes).map(&mut in_file_name).collect();
    names.insert(0, in_file_name(0));
    names
}

#[cfg(test)]
mod tests {
    use super::super::tests::zeros;
    use super::*;
    use crate::volume::Dtype;

    #[test]
    fn characters_that_a_file_name_cannot_contain_are_encoded() {
        assert_eq!(file_name("a/b%c\n\u{85}é", NAME_MAX), "a%2Fb%25c%0A%C2%85é");
        assert_eq!(file_name(".", NAME_MAX), "%2E");
        assert_eq!(file_name("..", NAME_MAX), "%2E%2E");
        assert_eq!(file_name(".x", NAME_MAX), ".x");
        assert_eq!(file_name("", NAME_MAX), "unnamed");
    }

    #[test]
    fn long_names_are_truncated_and_stay_distinct() {
        let (one, two) = (file_name(&"é".repeat(200), NAME_MAX), file_name(&("é".repeat(199) + "x"), NAME_MAX));
        assert!(one.len() <= 255 && one != two && one.contains('~'));
        assert!(file_name(&"/".repeat(200), NAME_MAX).len() <= 255);
        assert_eq!(file_name(&"x".repeat(255), NAME_MAX).len(), 255);
    }

    #[test]
    fn equal_names_get_numbers() {
        let mut taken = HashSet::from(["dataset.json".to_owned()]);
        assert_eq!(unique("a".into(), NAME_MAX, &mut taken), "a");
        assert_eq!(unique("a".into(), NAME_MAX, &mut taken), "a~2");
        assert_eq!(unique("a".into(), NAME_MAX, &mut taken), "a~3");
        assert_eq!(unique("dataset.json".into(), NAME_MAX, &mut taken), "dataset.json~2");
        let long = "y".repeat(255);
        unique(long.clone(), NAME_MAX, &mut taken);
        assert_eq!(unique(long, NAME_MAX, &mut taken).len(), 255);
    }

    #[test]
    fn a_name_is_found_in_any_case_if_only_one_can_be_meant() {
        let names = ["Inline", "ÅSGÅRD", "x", "X", "a%2Fb"];
        let find = |wanted| find_name(names, wanted);
        for (wanted, found) in
            [("Inline", 0), ("INLINE", 0), ("inline", 0), ("åsgård", 1), ("x", 2), ("X", 3), ("A%2fB", 4)]
        {
            assert_eq!(find(wanted), Ok(Some(found)), "{wanted}");
        }
        assert_eq!((find("in"), find(""), find("inline ")), (Ok(None), Ok(None), Ok(None)));
        assert_eq!(find_name(["Foo", "bar", "foo"], "FOO"), Err(vec![0, 2]));
    }

    fn names_of(axes: &[&str]) -> Vec<String> {
        let shape = vec![2; axes.len()];
        let mut info = zeros(&shape, Dtype::UInt8).info().clone();
        for (axis, name) in info.axes.iter_mut().zip(axes) {
            axis.name = (*name).to_owned();
        }
        axis_names(&info)
    }

    #[test]
    fn files_are_named_after_their_axes() {
        assert_eq!(names_of(&["inline", "crossline", "sample"]), ["inline", "crossline", "sample"]);
        assert_eq!(names_of(&["Time", "Cross/line 100%", "."]), ["Time", "Cross%2Fline 100%25", "%2E"]);
        assert_eq!(names_of(&["x"]), ["x"]);
    }

    #[test]
    fn axes_without_an_unambiguous_name_are_numbered() {
        assert_eq!(names_of(&["", "", "z"]), ["axis0", "axis1", "z"]);
        assert_eq!(names_of(&["x", "x", "y"]), ["axis0", "axis1", "y"]);
        assert_eq!(names_of(&["z", "y", "y"]), ["z", "axis1", "axis2"]);
        assert_eq!(names_of(&["z", "", "axis1"]), ["z", "axis1", "axis1~2"]);
        assert_eq!(names_of(&["axis1", "", "z"]), ["axis1~2", "axis1", "z"]);
    }

    #[test]
    fn long_names_leave_room_for_prefix_and_suffix() {
        let long = "é".repeat(200);
        for name in &names_of(&["z", &long, &format!("{long}x")])[1..] {
            assert!(name.len() <= AXIS_NAME_MAX && name.contains('~'), "{name}");
        }
    }
}
