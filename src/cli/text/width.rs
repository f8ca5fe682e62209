//! Measures and cuts text in columns of a terminal. Most East Asian characters take two columns, combining marks none.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns the columns that `text` takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Cuts `text` to at most `width` columns. A text that was cut ends with `...`.
pub(crate) fn truncated(text: &str, width: usize) -> String {
    const MARK: &str = "...";
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(MARK.len());
    let fits = |c: &char| {
        let rest = left.checked_sub(c.width().unwrap_or(0));
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let kept: String = text.chars().take_while(fits).collect();
    kept + MARK
}

/// Cuts `text` to at most `width` columns, at its beginning: of a path the end says most. A text that was cut begins
/// with `...`.
pub(crate) fn truncated_start(text: &str, width: usize) -> String {
    let reversed = truncated(&text.chars().rev().collect::<String>(), width);
    reversed.chars().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns_and_marks_none() {
        assert_eq!(columns("abc"), 3);
        assert_eq!(columns("脳皮質"), 6);
        assert_eq!(columns("e\u{301}"), 1);
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(truncated("abcdef", 6), "abcdef");
        assert_eq!(truncated("äbcdefg", 6), "äbc...");
        assert_eq!(truncated("脳皮質", 6), "脳皮質");
        assert_eq!(truncated("脳皮質の", 6), "脳...");
        assert_eq!(truncated_start("abcdef", 6), "abcdef");
        assert_eq!(truncated_start("a/äbcd.zgy", 8), "...d.zgy");
        assert_eq!(truncated_start("脳皮質の", 6), "...の");
    }
}
