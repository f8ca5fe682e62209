//! Draws a histogram with block characters.

/// The largest width of a chart, in columns.
const MAX_WIDTH: usize = 64;

/// The height of a chart, in lines.
const HEIGHT: usize = 6;

/// The heights of a character, in eighths of a line.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A drawn histogram.
#[derive(Debug, PartialEq)]
pub(crate) struct Chart {
    /// The lines, from top to bottom.
    pub lines: String,
    /// The number of columns.
    pub width: usize,
    /// Share of all samples in the highest column.
    pub highest: f64,
}

/// Draws `bins`, several in one column if there are many. Negative counts, which only a damaged file has, are taken as
/// 0. Returns `None` if there is nothing to draw.
pub(crate) fn columns(bins: &[f64]) -> Option<Chart> {
    let per_column = bins.len().div_ceil(MAX_WIDTH).max(1);
    let sums: Vec<f64> = bins.chunks(per_column).map(|part| part.iter().map(|n| n.max(0.0)).sum()).collect();
    let total: f64 = sums.iter().sum();
    let highest = sums.iter().copied().fold(0.0, f64::max);
    if highest <= 0.0 || !total.is_finite() {
        return None;
    }
    let steps = (HEIGHT * 8) as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of steps")]
    let heights: Vec<usize> = sums
        .iter()
        // a column that is not empty must be visible
        .map(|sum| if *sum > 0.0 { ((sum / highest * steps).round() as usize).max(1) } else { 0 })
        .collect();
    let mut lines = String::new();
    for line in (0..HEIGHT).rev() {
        lines.extend(heights.iter().map(|height| EIGHTHS[height.saturating_sub(line * 8).min(8)]));
        lines.push('\n');
    }
    Some(Chart { lines, width: heights.len(), highest: highest / total })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_their_heights() {
        let chart = columns(&[0.0, 1.0, 24.0, 48.0, -5.0]).unwrap();
        assert_eq!(chart.lines, "   █ \n   █ \n   █ \n  ██ \n  ██ \n ▁██ \n");
        assert_eq!((chart.width, chart.highest), (5, 48.0 / 73.0));
    }

    #[test]
    fn many_bins_share_columns() {
        let chart = columns(&[1.0; 256]).unwrap();
        assert_eq!(chart.width, 64);
        assert!(chart.lines.lines().all(|line| line == "█".repeat(64)));
        assert_eq!(columns(&vec![1.0; 1000]).unwrap().width, 63);
    }

    #[test]
    fn an_empty_histogram_is_not_drawn() {
        assert_eq!(columns(&[]), None);
        assert_eq!(columns(&[0.0, -1.0]), None);
        assert_eq!(columns(&[f64::NAN]), None);
        assert_eq!(columns(&[f64::INFINITY]), None);
    }
}
