//! Units and identifiers (section 11).

use std::fmt;

/// A unit as the file has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Unit {
    /// What is measured, a number of the file's; 0 is unknown.
    pub dimension: u8,
    /// The unit's name, may be empty.
    pub name: String,
    /// A length, angle, depth or time times this is in SI units; as in the file.
    pub factor: f64,
}

impl Unit {
    /// A unit of which nothing is known.
    pub(super) fn unknown() -> Self {
        Self { dimension: 0, name: String::new(), factor: 1.0 }
    }

    /// The unit that a version 1 file has for horizontal coordinates (section 4; angles: section 14).
    pub(super) fn of_coordinate_type(code: u8) -> Self {
        let (dimension, name, factor) = match code {
            1 => (1, "m", 1.0),
            2 => (1, "ft", 0.3048),
            3 => (2, "arcsec", 1.0),
            4 => (2, "deg", 3600.0),
            5 => (0, "DMS", 1.0),
            _ => return Self::unknown(),
        };
        Self { dimension, name: name.into(), factor }
    }

    /// The name, if there is one.
    pub(super) fn name(&self) -> Option<String> {
        some_text(&self.name)
    }

    /// The factor in use: 1 where the file's makes no sense.
    pub(super) fn usable_factor(&self) -> f64 {
        if self.has_usable_factor() { self.factor } else { 1.0 }
    }

    /// Whether the file's factor makes sense.
    pub(super) fn has_usable_factor(&self) -> bool {
        self.factor.is_finite() && self.factor > 0.0
    }
}

/// The horizontal unit and the vertical one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Units {
    pub horizontal: Unit,
    pub vertical: Unit,
}

impl Units {
    /// What horizontal coordinates are.
    pub(super) fn horizontal_kind(&self) -> &'static str {
        match self.horizontal.dimension {
            1 => "length",
            2 => "angle",
            _ => "unknown",
        }
    }

    /// What the vertical axis is.
    pub(super) fn vertical_kind(&self) -> &'static str {
        match self.vertical.dimension {
            1 => "depth",
            2 => "two-way time",
            3 => "one-way time",
            _ => "unknown",
        }
    }
}

/// A text, unless it is empty.
pub(super) fn some_text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// An identifier; the first three numbers of its text are little-endian in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uuid(pub [u8; 16]);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        for (place, byte) in ORDER.into_iter().enumerate() {
            let dash = if matches!(place, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{:02x}", self.0[byte])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_written_in_windows_order() {
        let bytes = 0xab85_a0b0_32c3_5003_3971_9c2a_0c77_2bcd_u128.to_be_bytes();
        assert_eq!(Uuid(bytes).to_string(), "b0a085ab-c332-0350-3971-9c2a0c772bcd");
        assert_eq!(Uuid::default().to_string(), "00000000-0000-0000-0000-000000000000");
    }

    #[test]
    fn senseless_factors_count_as_1() {
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let unit = Unit { factor, ..Unit::unknown() };
            assert_eq!((unit.usable_factor(), unit.has_usable_factor()), (1.0, false));
        }
        assert_eq!(Unit { factor: 0.3048, ..Unit::unknown() }.usable_factor(), 0.3048);
    }

    #[test]
    fn coordinate_types_of_version_1() {
        assert_eq!(Unit::of_coordinate_type(4), Unit { dimension: 2, name: "deg".into(), factor: 3600.0 });
        assert_eq!(Unit::of_coordinate_type(99), Unit::unknown());
        assert_eq!(Unit::unknown().name(), None);
    }
}
