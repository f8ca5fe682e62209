//! The names that OME-NGFF has for units.

/// The units that are written with a prefix of the SI: name, and abbreviation.
const UNITS: [(&str, &str); 2] = [("meter", "m"), ("second", "s")];

/// The prefixes: name, and abbreviation.
const PREFIXES: [(&str, &str); 18] = [
    ("", ""),
    ("yocto", "y"),
    ("zepto", "z"),
    ("atto", "a"),
    ("femto", "f"),
    ("pico", "p"),
    ("nano", "n"),
    ("micro", "u"),
    ("milli", "m"),
    ("centi", "c"),
    ("deci", "d"),
    ("hecto", "h"),
    ("kilo", "k"),
    ("mega", "M"),
    ("giga", "G"),
    ("tera", "T"),
    ("peta", "P"),
    ("exa", "E"),
];

/// Other units: name, and abbreviation.
const OTHERS: [(&str, &str); 9] = [
    ("angstrom", "Å"),
    ("foot", "ft"),
    ("inch", "in"),
    ("mile", "mi"),
    ("parsec", "pc"),
    ("yard", "yd"),
    ("minute", "min"),
    ("hour", "h"),
    ("day", "d"),
];

/// Returns the name that OME-NGFF (0.5, section "axes") has for a unit of length or time that is given by its name, its
/// abbreviation or its plural. `None` if it has none.
pub(crate) fn ome_unit(unit: &str) -> Option<String> {
    let unit = unit.trim();
    // both signs for micro: the Greek letter, and the one of Latin-1
    let ascii = unit.replace(['µ', 'μ'], "u");
    let is = |name: &str, short: &str| {
        let lower = ascii.to_lowercase();
        ascii == short || lower == name || lower == format!("{name}s") || lower == name.replace("meter", "metre")
    };
    let other = || OTHERS.iter().find(|(name, short)| is(name, short)).map(|(name, _)| (*name).to_owned());
    let prefixed = UNITS.iter().find_map(|(unit, short_unit)| {
        let whole = |(prefix, short): &(&str, &str)| (format!("{prefix}{unit}"), format!("{short}{short_unit}"));
        PREFIXES.iter().map(whole).find(|(name, short)| is(name, short)).map(|(name, _)| name)
    });
    prefixed.or_else(other).or_else(|| (ascii.to_lowercase() == "feet").then(|| "foot".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_their_full_names() {
        for (unit, name) in [
            ("ms", "millisecond"),
            ("m", "meter"),
            ("nm", "nanometer"),
            ("µm", "micrometer"),
            ("μm", "micrometer"),
            ("um", "micrometer"),
            ("us", "microsecond"),
            ("Mm", "megameter"),
            ("ft", "foot"),
            ("feet", "foot"),
            ("km", "kilometer"),
            ("s", "second"),
            ("seconds", "second"),
            ("nanometer", "nanometer"),
            ("Micrometre", "micrometer"),
            ("min", "minute"),
        ] {
            assert_eq!(ome_unit(unit).as_deref(), Some(name), "{unit}");
        }
        assert!(["", "unitless", "rad", "µ", "x"].iter().all(|unit| ome_unit(unit).is_none()));
    }
}
