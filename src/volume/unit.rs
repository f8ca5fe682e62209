//! Units of length, time and frequency: their names, and how many of one are another.

/// A unit, as a multiple of one of the SI.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unit {
    /// Its name in full, in the singular: `millisecond`.
    pub name: String,
    /// Its abbreviation: `ms`.
    pub short: String,
    /// The unit of the SI: `meter`, `second` or `hertz`.
    pub base: &'static str,
    /// How many of these it is.
    pub factor: f64,
}

/// The units that are written with a prefix of the SI: name, and abbreviation.
const BASES: [(&str, &str); 3] = [("meter", "m"), ("second", "s"), ("hertz", "Hz")];

/// The prefixes: name, abbreviation, and the power of ten.
const PREFIXES: [(&str, &str, i32); 18] = [
    ("", "", 0),
    ("yocto", "y", -24),
    ("zepto", "z", -21),
    ("atto", "a", -18),
    ("femto", "f", -15),
    ("pico", "p", -12),
    ("nano", "n", -9),
    ("micro", "u", -6),
    ("milli", "m", -3),
    ("centi", "c", -2),
    ("deci", "d", -1),
    ("hecto", "h", 2),
    ("kilo", "k", 3),
    ("mega", "M", 6),
    ("giga", "G", 9),
    ("tera", "T", 12),
    ("peta", "P", 15),
    ("exa", "E", 18),
];

/// Other units: name, abbreviation, the unit of the SI, and how many of these it is.
const OTHERS: [(&str, &str, &str, f64); 10] = [
    ("angstrom", "Å", "meter", 1e-10),
    ("foot", "ft", "meter", 0.3048),
    ("survey foot", "ussft", "meter", 1200.0 / 3937.0),
    ("inch", "in", "meter", 0.0254),
    ("mile", "mi", "meter", 1609.344),
    ("parsec", "pc", "meter", 3.085_677_581_491_367e16),
    ("yard", "yd", "meter", 0.9144),
    ("minute", "min", "second", 60.0),
    ("hour", "h", "second", 3600.0),
    ("day", "d", "second", 86_400.0),
];

impl Unit {
    /// Returns the unit that is called by its name, its abbreviation or its plural; `None` if it is not known.
    pub(crate) fn named(text: &str) -> Option<Self> {
        let text = text.trim();
        // both signs for micro: the Greek letter, and the one of Latin-1
        let ascii = text.replace(['µ', 'μ'], "u");
        let lower = ascii.to_lowercase();
        let is = |name: &str, short: &str| {
            let others = [format!("{name}s"), name.replace("meter", "metre"), name.replace("foot", "feet")];
            ascii == short || lower == name || others.contains(&lower)
        };
        let prefixed = BASES.iter().find_map(|&(base, short_base)| {
            let called = |(prefix, short, _): &&(&str, &str, i32)| {
                is(&format!("{prefix}{base}"), &format!("{short}{short_base}"))
            };
            let &(prefix, short, power) = PREFIXES.iter().find(called)?;
            let short = format!("{short}{short_base}");
            Some(Self { name: format!("{prefix}{base}"), short, base, factor: 10f64.powi(power) })
        });
        let other = || {
            let &(name, short, base, factor) = OTHERS.iter().find(|(name, short, ..)| is(name, short))?;
            Some(Self { name: name.to_owned(), short: short.to_owned(), base, factor })
        };
        prefixed.or_else(other)
    }
}

/// Returns how many of the unit `to` one of the unit `from` is; `None` if they do not measure the same, or are unknown.
pub(crate) fn conversion(from: &str, to: &str) -> Option<f64> {
    if from == to {
        return Some(1.0);
    }
    let (from, to) = (Unit::named(from)?, Unit::named(to)?);
    (from.base == to.base).then(|| from.factor / to.factor)
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
            ("ussft", "survey foot"),
            ("km", "kilometer"),
            ("s", "second"),
            ("seconds", "second"),
            ("nanometer", "nanometer"),
            ("Micrometre", "micrometer"),
            ("min", "minute"),
            ("kHz", "kilohertz"),
        ] {
            assert_eq!(Unit::named(unit).map(|unit| unit.name).as_deref(), Some(name), "{unit}");
        }
        assert!(["", "unitless", "rad", "µ", "x"].iter().all(|unit| Unit::named(unit).is_none()));
    }

    #[test]
    fn units_of_one_kind_are_multiples_of_each_other() {
        for (from, to, factor) in [
            ("um", "nanometer", 1e3),
            ("s", "ms", 1e3),
            ("µs", "ms", 1e-3),
            ("cm", "mm", 10.0),
            ("km", "ft", 1e3 / 0.3048),
            ("kHz", "Hz", 1e3),
            ("min", "s", 60.0),
            ("Å", "nm", 0.1),
            ("furlong", "furlong", 1.0),
        ] {
            let found = conversion(from, to).unwrap();
            assert!((found / factor - 1.0).abs() < 1e-12, "{from} in {to}: {found}");
        }
        for (from, to) in [("s", "m"), ("Hz", "s"), ("ms", ""), ("", "ms"), ("furlong", "m"), ("mV", "ms")] {
            assert_eq!(conversion(from, to), None, "{from} in {to}");
        }
    }
}
