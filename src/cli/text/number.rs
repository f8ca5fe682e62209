//! Formats floats.

/// Formats a number with at most `digits` significant digits, without trailing zeros.
pub(crate) fn float(number: f64, digits: usize) -> String {
    let text = format!("{number:.*e}", digits.saturating_sub(1));
    let near: f64 = text.parse().unwrap_or(number);
    // no minus before a zero
    let near = if near == 0.0 { 0.0 } else { near };
    let size = near.abs();
    if size != 0.0 && !(1e-4..1e15).contains(&size) { format!("{near:e}") } else { format!("{near}") }
}
