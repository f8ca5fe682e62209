//! The limit of the values in a JSON text or another text of values, checked before the text is parsed.

/// The most values of a description. Each takes far more memory than its text: an object with one key takes several
/// hundred bytes for seven of text.
const MAX_VALUES: usize = 1 << 17;

/// Refuses a text with too many values before memory is allocated for them. Each value has one of the bytes
/// `delimiters`.
pub(crate) fn check_values(text: &[u8], delimiters: &[u8]) -> Result<(), String> {
    let values = text.iter().filter(|byte| delimiters.contains(byte)).count();
    if values <= MAX_VALUES { Ok(()) } else { Err(format!("it has more than {MAX_VALUES} values")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_before_they_are_parsed() {
        assert_eq!(check_values(&[b','; MAX_VALUES], b",{"), Ok(()));
        assert!(check_values(&[b"{".repeat(MAX_VALUES), vec![b',']].concat(), b",{").is_err());
        assert_eq!(check_values(&vec![b'A'; MAX_VALUES + 1], b",{"), Ok(()));
    }
}
