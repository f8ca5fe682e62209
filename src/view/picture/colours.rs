//! Colours: the scale of grey, the diverging scale of seismic, and the colours of labels.

/// The colours that the pixels of a picture name by number.
pub(crate) type Palette = [[u8; 3]; 256];

/// The last number of a scale of values; the least value has number 0, and the middle one is exact.
pub(crate) const LAST_OF_SCALE: u8 = 252;
/// The number of the colour for samples without a value.
pub(crate) const NO_VALUE: u8 = 254;
/// The number of the colour around the slices of a preview.
pub(crate) const BACKGROUND: u8 = 255;
/// The colours of labels are 1 to this; 0 is for no label.
const LAST_LABEL: u64 = 254;

/// The colour of samples without a value where all greys and the diverging scale mean values.
const NO_VALUE_COLOUR: [u8; 3] = [0x30, 0x48, 0x38];
/// The colour around the slices of a preview.
const BACKGROUND_COLOUR: [u8; 3] = [0xff, 0xff, 0xff];
/// The same beside a diverging scale, whose middle is white.
const BACKGROUND_OF_DIVERGING: [u8; 3] = [0x50, 0x50, 0x50];

/// The colours at even distances along the diverging scale: blue for the least value, white for 0, red for the
/// greatest.
const DIVERGING: [[f64; 3]; 7] = [
    [0.02, 0.06, 0.30],
    [0.10, 0.25, 0.78],
    [0.52, 0.68, 0.97],
    [1.00, 1.00, 1.00],
    [0.98, 0.62, 0.52],
    [0.80, 0.13, 0.10],
    [0.32, 0.01, 0.05],
];

/// Returns the greys of a scale of values.
pub(crate) fn greys() -> Palette {
    scale(BACKGROUND_COLOUR, |part| [part; 3])
}

/// Returns the colours of a scale of values about 0.
pub(crate) fn diverging() -> Palette {
    let last = DIVERGING.len() - 1;
    scale(BACKGROUND_OF_DIVERGING, |part| {
        let at = part * last as f64;
        let before = (at as usize).min(last - 1);
        let between = at - before as f64;
        std::array::from_fn(|c| DIVERGING[before][c] * (1.0 - between) + DIVERGING[before + 1][c] * between)
    })
}

fn scale(background: [u8; 3], colour: impl Fn(f64) -> [f64; 3]) -> Palette {
    let mut palette = [NO_VALUE_COLOUR; 256];
    for (number, to) in palette.iter_mut().enumerate().take(usize::from(LAST_OF_SCALE) + 1) {
        *to = colour(number as f64 / f64::from(LAST_OF_SCALE)).map(byte);
    }
    palette[usize::from(BACKGROUND)] = background;
    palette
}

/// Returns the colours of labels: black for 0, and 254 colours that differ from black and white.
pub(crate) fn labels() -> Palette {
    // neighbours differ in all of hue, saturation and brightness
    let mut palette: Palette = std::array::from_fn(|number| {
        let hue = (number as f64 * 0.618_033_988_749_895).fract();
        let (saturation, brightness) = ([0.85, 0.5, 0.68][number % 3], [1.0, 0.62, 0.82, 0.94][number % 4]);
        from_hsv(hue, saturation, brightness)
    });
    palette[0] = [0; 3];
    palette[usize::from(BACKGROUND)] = BACKGROUND_COLOUR;
    palette
}

/// Returns the number of a label's colour: the same in all pictures, 0 for 0 alone.
pub(crate) fn of_label(label: u64) -> u8 {
    if label == 0 {
        return 0;
    }
    // the finalizer of a 64-bit hash, so that ids that differ in a bit anywhere get colours that have nothing in common
    let mixed = (label ^ (label >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (1 + (mixed >> 33) % LAST_LABEL) as u8
}

fn from_hsv(hue: f64, saturation: f64, brightness: f64) -> [u8; 3] {
    [0.0, 2.0, 4.0].map(|of_channel: f64| {
        // 1 within a sixth of the circle around the channel's own hue, 0 beyond a third
        let distance = (hue * 6.0 - of_channel + 9.0).rem_euclid(6.0) - 3.0;
        let share = (2.0 - distance.abs()).clamp(0.0, 1.0);
        byte(brightness * (1.0 - saturation * (1.0 - share)))
    })
}

fn byte(part: f64) -> u8 {
    (part * 255.0).round() as u8
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn scales_have_their_ends_and_their_middle() {
        let (grey, diverging, last) = (greys(), diverging(), usize::from(LAST_OF_SCALE));
        assert_eq!((grey[0], grey[last], grey[last / 2]), ([0; 3], [255; 3], [128; 3]));
        assert_eq!(diverging[last / 2], [255; 3]);
        let blue_and_red = |at: usize| (diverging[at][2] > 200, diverging[at][0] > 200);
        assert_eq!((blue_and_red(last / 4), blue_and_red(last * 3 / 4)), ((true, false), (false, true)));
        assert!(grey[..=last].windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn labels_differ_from_each_other_and_from_nothing() {
        let palette = labels();
        let distinct: BTreeSet<_> = palette[..255].iter().collect();
        assert!(distinct.len() > 250, "{}", distinct.len());
        assert!(palette[1..255].iter().all(|colour| *colour.iter().max().unwrap() > 150 && *colour != [255; 3]));
        assert_eq!((of_label(0), palette[0]), (0, [0; 3]));
        let numbers: BTreeSet<u8> = (1..100).chain((1..100).map(|n| n << 40)).map(of_label).collect();
        assert!(numbers.len() > 120 && !numbers.contains(&0) && !numbers.contains(&BACKGROUND), "{}", numbers.len());
        let neighbours = (1..1000).filter(|id| of_label(*id) == of_label(id + 1)).count();
        assert!(neighbours < 12, "{neighbours} of 1000 neighbouring ids share a colour");
    }

    #[test]
    fn hues_are_those_of_the_circle() {
        let pure = |hue| from_hsv(hue, 1.0, 1.0);
        assert_eq!([0.0, 1.0 / 3.0, 2.0 / 3.0].map(pure), [[255, 0, 0], [0, 255, 0], [0, 0, 255]]);
        assert_eq!((pure(0.5), pure(1.0 / 6.0), from_hsv(0.3, 0.0, 1.0)), ([0, 255, 255], [255, 255, 0], [255; 3]));
    }
}
