//! The slices of `--region` and `--at`, as they were typed.

/// One slice, of indexes or of annotation values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Slice<T> {
    /// A single position.
    One(T),
    /// `first:last`; `None` stands for the axis' own end.
    Range(Option<T>, Option<T>),
}

impl<T> Slice<T> {
    fn read(text: &str, number: impl Fn(&str) -> Result<T, String>) -> Result<Self, String> {
        let end = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text.trim()).map(Some) };
        match text.split_once(':') {
            Some((from, to)) => Ok(Self::Range(end(from)?, end(to)?)),
            None => number(text.trim()).map(Self::One),
        }
    }
}

/// The slices of `--region`, one for each of the first axes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slices(pub Vec<Slice<i64>>);

impl Slices {
    /// Reads `0:64,:,128`.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let number =
            |text: &str| text.parse().map_err(|_| format!("{text:?} is no slice; write it as a:b, a:, :b, : or a"));
        text.split(',').map(|slice| Slice::read(slice, number)).collect::<Result<_, _>>().map(Self)
    }
}

/// One `--at`: a slice of one axis, by annotation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct At {
    /// The axis' name.
    pub axis: String,
    /// The slice, of which both ends belong to the selection.
    pub slice: Slice<f64>,
}

impl At {
    /// Reads `inline=1234` and `inline=1234:1300`.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let example = "write it as inline=1234 or inline=1234:1300";
        let (axis, value) = text.rsplit_once('=').ok_or_else(|| example.to_owned())?;
        let number = |text: &str| match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(format!("{text:?} is no number; {example}")),
        };
        Ok(Self { axis: axis.trim().to_owned(), slice: Slice::read(value, number)? })
    }
}
