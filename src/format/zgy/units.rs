//! Units and identifiers.

use std::fmt;

/// A unit, as in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Unit {
    /// The dimension's code: 1 length, 2 angle for horizontal units; 1 depth, 2 two-way time, 3 one-way time for
    /// vertical ones; 0 unknown.
    pub dimension: u8,
    /// The name of the unit; may be empty.
    pub name: String,
    /// The factor to SI units, as in the file.
    pub factor: f64,
}

impl Unit {
    /// Returns an unknown unit.
    pub(super) fn unknown() -> Self {
        Self { dimension: 0, name: String::new(), factor: 1.0 }
    }

    /// Returns the horizontal unit of a coordinate type of version 1. The factors of angles are those of OpenZGY's
    /// Python library; the C++ library exchanges them, and neither are SI units.
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

    /// Returns the name, if it is not empty.
    pub(super) fn name(&self) -> Option<String> {
        some_text(&self.name)
    }

    /// Returns the factor in use: that of the file, or 1 if it is invalid.
    pub(super) fn usable_factor(&self) -> f64 {
        if self.has_usable_factor() { self.factor } else { 1.0 }
    }

    /// Returns whether the factor in the file is valid.
    pub(super) fn has_usable_factor(&self) -> bool {
        self.factor.is_finite() && self.factor > 0.0
    }
}

/// The horizontal and the vertical unit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Units {
    pub horizontal: Unit,
    pub vertical: Unit,
}

impl Units {
    /// Returns the kind of the horizontal coordinates.
    pub(super) fn horizontal_kind(&self) -> &'static str {
        match self.horizontal.dimension {
            1 => "length",
            2 => "angle",
            _ => "unknown",
        }
    }

    /// Returns the kind of the vertical axis.
    pub(super) fn vertical_kind(&self) -> &'static str {
        match self.vertical.dimension {
            1 => "depth",
            2 => "two-way time",
            3 => "one-way time",
            _ => "unknown",
        }
    }
}

/// Returns a copy of the text, or `None` if it is empty.
pub(super) fn some_text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// An identifier (UUID). In the file the first three groups of its text form are little-endian.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uuid(pub [u8; 16]);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        for (position, byte) in ORDER.into_iter().enumerate() {
            let dash = if matches!(position, 4 | 6 | 8 | 10) { "-" } else { "" };
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
    fn invalid_factors_count_as_1() {
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
