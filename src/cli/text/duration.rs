//! Formats durations.

/// Formats a duration in its two largest units: `2 d 3 h`, `5 min 7 s`.
pub(crate) fn duration(seconds: f64) -> String {
    let units = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)];
    let mut left = seconds as u64;
    let mut parts = Vec::new();
    for (name, length) in units {
        if left >= length || (length == 1 && parts.is_empty()) {
            parts.push(format!("{} {name}", left / length));
        }
        left %= length;
    }
    parts.truncate(2);
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        for (seconds, text) in [
            (0.4, "0 s"),
            (59.9, "59 s"),
            (61.0, "1 min 1 s"),
            (3600.0, "1 h"),
            (93_784.0, "1 d 2 h"),
            (86_460.0, "1 d 1 min"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
