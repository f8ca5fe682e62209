//! The words of a line that is being typed.

/// The words before the cursor, without their quotes; the name of the program is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Those before the one at the cursor.
    pub before: Vec<String>,
    /// The word at the cursor, up to the cursor.
    pub current: String,
    /// Bytes of the current word that bash does not replace: it completes what is behind `=` or `:`.
    kept: usize,
}

impl Line {
    /// Splits the line of bash up to the cursor.
    pub(crate) fn split(line: &str) -> Self {
        let mut words = vec![String::new()];
        let (mut kept, mut quote, mut in_word) = (0, None, false);
        let mut characters = line.chars();
        while let Some(c) = characters.next() {
            let last = words.len() - 1;
            match (quote, c) {
                (None, ' ' | '\t' | '\n') => {
                    if in_word {
                        words.push(String::new());
                    }
                    (in_word, kept) = (false, 0);
                    continue;
                }
                (None, '\'' | '"') => quote = Some(c),
                (Some(open), c) if c == open => quote = None,
                (None | Some('"'), '\\') => words[last].extend(characters.next()),
                (None, '=' | ':') => {
                    words[last].push(c);
                    kept = words[last].len();
                }
                (_, c) => words[last].push(c),
            }
            in_word = true;
        }
        let current = words.pop().unwrap_or_default();
        Self { before: words.into_iter().skip(1).collect(), current, kept }
    }

    /// Takes words without quotes, the last of which is at the cursor.
    pub(crate) fn plain(words: &[String]) -> Self {
        let (current, before) = words.split_last().map_or((String::new(), &[][..]), |(last, all)| (last.clone(), all));
        Self { before: before.to_vec(), current, kept: 0 }
    }

    /// Takes words with their quotes, the last of which is at the cursor.
    pub(crate) fn quoted(words: &[String]) -> Self {
        let unquoted = |word: &String| Self::split(&format!("volfs {word}")).current;
        Self::plain(&words.iter().map(unquoted).collect::<Vec<_>>())
    }

    /// Returns the part of a candidate that bash puts into the line.
    pub(crate) fn after_break<'a>(&self, candidate: &'a str) -> &'a str {
        candidate.get(self.kept..).unwrap_or(candidate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_the_shell_does() {
        for (line, before, current, kept) in [
            ("volfs ", &[][..], "", 0),
            ("volfs ca", &[], "ca", 0),
            ("volfs cat ", &["cat"], "", 0),
            ("volfs cat  My\\ File --layer ", &["cat", "My File", "--layer"], "", 0),
            ("volfs cat 'My File' \"a\\\"b", &["cat", "My File"], "a\"b", 0),
            ("volfs cat 'My Fi", &["cat"], "My Fi", 0),
            ("volfs cat --layer=da", &["cat"], "--layer=da", 8),
            ("volfs cat a:b x", &["cat", "a:b"], "x", 0),
            ("volfs cat '' x", &["cat", ""], "x", 0),
        ] {
            let found = Line::split(line);
            assert_eq!(
                (&found.before[..], &*found.current, found.kept),
                (&before.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..], current, kept),
                "{line}"
            );
        }
        let fish = Line::quoted(&["cat".into(), "My\\ File".into(), "'x y".into()]);
        assert_eq!((fish.before, fish.current), (vec!["cat".to_owned(), "My File".into()], "x y".to_owned()));
    }
}
