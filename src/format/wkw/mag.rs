//! Magnifications ("mags"), and the conversion of boxes between them.

use serde_json::{Number, Value};

/// The number of voxels of mag 1 along x, y and z in one voxel; no factor is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mag(pub [u64; 3]);

impl Mag {
    /// Makes a mag of these factors; `None` if one is 0.
    pub(super) fn new(factors: [u64; 3]) -> Option<Self> {
        (!factors.contains(&0)).then_some(Self(factors))
    }

    /// Parses the name of a mag's folder: `2` or `2-2-1`.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let number = |text: &str| {
            let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
            plain.then(|| text.parse().ok()).flatten()
        };
        let mut parts = name.split('-').map(number);
        let first = parts.next()??;
        let factors = match (parts.next(), parts.next(), parts.next()) {
            (None, None, None) => [first; 3],
            (Some(second), Some(third), None) => [first, second?, third?],
            _ => return None,
        };
        Self::new(factors)
    }

    /// Parses a mag in JSON: three numbers, one for all three, or a name as some tools write it.
    pub(super) fn of_json(value: &Value) -> Option<Self> {
        match value {
            Value::Number(n) => Self::new([whole(n)?; 3]),
            Value::String(name) => Self::of_name(name),
            Value::Array(list) => {
                let factors: Option<Vec<u64>> = list.iter().map(|n| whole(n.as_number()?)).collect();
                Self::new(factors?.try_into().ok()?)
            }
            _ => None,
        }
    }

    /// Returns the names that its folder may have, the usual one first.
    pub(super) fn names(&self) -> Vec<String> {
        let [x, y, z] = self.0;
        let long = format!("{x}-{y}-{z}");
        if x == y && y == z { vec![x.to_string(), long] } else { vec![long] }
    }

    /// Returns the key by which mags are sorted, the finest first.
    pub(super) fn order(&self) -> (u64, u128, [u64; 3]) {
        let product = self.0.iter().fold(1u128, |product, n| product.saturating_mul(u128::from(*n)));
        (self.0.iter().copied().max().unwrap_or(0), product, self.0)
    }
}

/// Parses a whole number in JSON, also one with a fraction of zero.
pub(super) fn whole(n: &Number) -> Option<u64> {
    n.as_u64().or_else(|| n.as_f64().filter(|f| f.fract() == 0.0 && (0.0..9e15).contains(f)).map(|f| f as u64))
}

/// A box of voxels, x, y, z: from `low` to before `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Extent {
    pub low: [u64; 3],
    pub high: [u64; 3],
}

impl Extent {
    /// Converts a box in voxels of mag 1 to voxels of `mag`, rounded outwards.
    pub(super) fn in_mag(&self, mag: Mag) -> Self {
        let [x, y, z] = [0, 1, 2].map(|a| (self.low[a] / mag.0[a], self.high[a].div_ceil(mag.0[a])));
        Self { low: [x.0, y.0, z.0], high: [x.1, y.1, z.1] }
    }

    /// Converts a box in voxels of `mag` to voxels of mag 1; `None` beyond 64 bits.
    pub(super) fn of_mag(&self, mag: Mag) -> Option<Self> {
        let mut extent = *self;
        for a in 0..3 {
            extent.low[a] = extent.low[a].checked_mul(mag.0[a])?;
            extent.high[a] = extent.high[a].checked_mul(mag.0[a])?;
        }
        Some(extent)
    }

    /// Returns the voxels along x, y and z.
    pub(super) fn size(&self) -> [u64; 3] {
        [0, 1, 2].map(|a| self.high[a].saturating_sub(self.low[a]))
    }

    /// Returns whether it has no voxels.
    pub(super) fn is_empty(&self) -> bool {
        self.size().contains(&0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_numbers_are_mags() {
        let mag = |name| Mag::of_name(name).map(|mag| mag.0);
        assert_eq!(mag("16"), Some([16; 3]));
        assert_eq!(mag("2-2-1"), Some([2, 2, 1]));
        for name in ["", "0", "01", "1-1", "1-1-1-1", "2-2-", "-1", "+1", "1 ", "a", "1-0-1", "99999999999999999999"] {
            assert_eq!(mag(name), None, "{name}");
        }
        let mag = |value| Mag::of_json(&value).map(|mag| mag.0);
        assert_eq!(mag(json!([4, 4, 2])), Some([4, 4, 2]));
        assert_eq!(mag(json!(2)), Some([2; 3]));
        assert_eq!(mag(json!([2.0, 2, 1])), Some([2, 2, 1]));
        assert_eq!(mag(json!("4-4-1")), Some([4, 4, 1]));
        for value in [json!(null), json!(0), json!([1, 1]), json!([1, 1, 0]), json!([1, 1, -1]), json!(1.5), json!({})]
        {
            assert_eq!(mag(value.clone()), None, "{value}");
        }
        assert_eq!(Mag([2; 3]).names(), ["2", "2-2-2"]);
        assert_eq!(Mag([2, 2, 1]).names(), ["2-2-1"]);
    }

    #[test]
    fn mags_are_ordered_by_greatest_factor_product_and_number() {
        let mut mags = ["8-8-4", "2", "4-4-1", "1", "4", "4-1-4", "2-2-1"].map(|name| Mag::of_name(name).unwrap());
        mags.sort_by_key(Mag::order);
        let names = mags.map(|mag| mag.names()[0].clone());
        assert_eq!(names, ["1", "2-2-1", "2", "4-1-4", "4-4-1", "4", "8-8-4"]);
    }

    #[test]
    fn boxes_are_rounded_outwards() {
        let extent = Extent { low: [5, 7, 3], high: [46, 40, 24] };
        let in_mag = |mag| {
            let found = extent.in_mag(Mag(mag));
            (found.low, found.size())
        };
        assert_eq!(in_mag([1, 1, 1]), ([5, 7, 3], [41, 33, 21]));
        assert_eq!(in_mag([2, 2, 1]), ([2, 3, 3], [21, 17, 21]));
        assert_eq!(in_mag([4, 4, 2]), ([1, 1, 1], [11, 9, 11]));
        assert_eq!(in_mag([8, 8, 4]), ([0, 0, 0], [6, 5, 6]));
        let cubes = Extent { low: [1, 0, 0], high: [3, 1, 1] };
        assert_eq!(cubes.of_mag(Mag([2, 2, 1])), Some(Extent { low: [2, 0, 0], high: [6, 2, 1] }));
        assert_eq!(cubes.of_mag(Mag([u64::MAX; 3])), None);
        assert!(!extent.is_empty() && Extent { low: [1; 3], high: [1, 2, 2] }.is_empty());
    }
}
