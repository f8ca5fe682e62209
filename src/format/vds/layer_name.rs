//! Names of stored layers, which give the channel, the dimensions along which it is divided into chunks, and the LOD:
//! `SEGYTraceHeaderDimensions_012LOD0`.

use std::fmt;

use super::description::MAX_DIMENSIONS;

/// A dimension group: the dimensions along which a channel is divided into chunks, two or three of up to six.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Group(u8);

impl Group {
    /// Parses a group of ascending digits: `012`.
    pub(super) fn of_digits(digits: &str) -> Option<Self> {
        let mut mask = 0;
        for digit in digits.bytes() {
            let dimension = digit.checked_sub(b'0').filter(|d| usize::from(*d) < MAX_DIMENSIONS)?;
            if mask >> dimension != 0 {
                return None;
            }
            mask |= 1 << dimension;
        }
        matches!(digits.len(), 2 | 3).then_some(Self(mask))
    }

    /// Returns whether dimension `d` is one of them.
    pub(super) fn has(self, d: usize) -> bool {
        self.0 >> d & 1 == 1
    }

    /// Returns the number of dimensions.
    pub(super) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns the highest dimension.
    pub(super) fn highest(self) -> usize {
        self.0.checked_ilog2().unwrap_or(0) as usize
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dimensions_")?;
        (0..MAX_DIMENSIONS).filter(|d| self.has(*d)).try_for_each(|d| write!(f, "{d}"))
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The parsed name of a stored layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LayerName {
    /// The channel's name; empty for the primary one.
    pub channel: String,
    /// The group of the primary channel, also for a channel that is divided along fewer dimensions.
    pub group: Group,
    pub lod: u32,
}

impl LayerName {
    /// Parses `<channel>Dimensions_<digits>LOD<n>`. A channel's name is free text and may contain these words, so that
    /// the last ones count.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (rest, lod) = name.rsplit_once("LOD")?;
        let (channel, digits) = rest.rsplit_once("Dimensions_")?;
        let plain = !lod.is_empty() && lod.len() <= 2 && lod.bytes().all(|b| b.is_ascii_digit());
        let lod = lod.parse().ok().filter(|_| plain)?;
        Some(Self { channel: channel.into(), group: Group::of_digits(digits)?, lod })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_from_the_end() {
        let name = LayerName::parse("SEGYTraceHeaderDimensions_012LOD10").unwrap();
        assert_eq!(
            (name.channel.as_str(), name.group.to_string().as_str(), name.lod),
            ("SEGYTraceHeader", "Dimensions_012", 10)
        );
        let name = LayerName::parse("aLODDimensions_9Dimensions_25LOD0").unwrap();
        assert_eq!((name.channel.as_str(), name.group.to_string().as_str()), ("aLODDimensions_9", "Dimensions_25"));
        assert_eq!(LayerName::parse("Dimensions_01LOD0").unwrap().channel, "");
        for bad in [
            "",
            "LOD0",
            "Dimensions_LOD0",
            "Dimensions_0LOD0",
            "Dimensions_10LOD0",
            "Dimensions_011LOD0",
            "Dimensions_0123LOD0",
            "Dimensions_016LOD0",
            "Dimensions_012LOD",
            "Dimensions_012LOD-1",
            "Dimensions_012LOD+1",
            "Dimensions_012LOD100",
            "VolumeDataLayout",
        ] {
            assert_eq!(LayerName::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn groups_know_their_dimensions() {
        let group = Group::of_digits("135").unwrap();
        assert!(group.has(3) && !group.has(2));
        assert_eq!((group.len(), group.highest()), (3, 5));
    }
}
