//! Reads and formats sizes in bytes.

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size(u64);

const UNITS: [(&str, u64); 3] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

impl Size {
    /// Reads digits, with KiB, MiB, GiB, K, M, G or nothing after them.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        if number.is_empty() {
            return Err("not a size; write it as 512MiB or 2GiB".to_owned());
        }
        let unit = unit.trim_start();
        // K, M and G in any case too: they are not ambiguous here
        let known = |name: &str| name.eq_ignore_ascii_case(unit) || name[..1].eq_ignore_ascii_case(unit);
        let factor = match UNITS.iter().find(|(name, _)| known(name)) {
            Some((_, factor)) => *factor,
            None if unit.is_empty() => 1,
            None => return Err(format!("{unit} is no unit of size; there are KiB, MiB and GiB")),
        };
        let bytes = number.parse::<u64>().ok().and_then(|n| n.checked_mul(factor));
        bytes.map(Self).ok_or_else(|| "larger than any memory".to_owned())
    }

    /// Makes a size of this number of bytes.
    pub(crate) fn of(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Returns the number of bytes.
    pub(crate) fn bytes(self) -> u64 {
        self.0
    }
}

impl std::fmt::Display for Size {
    /// Writes the size in the largest unit of which it is at least 1. TiB and above are written only, not read.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let step = (self.0.checked_ilog2().unwrap_or(0) / 10) as usize;
        match step.checked_sub(1).and_then(|i| names.get(i)) {
            None => write!(f, "{} bytes", self.0),
            #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
            Some(name) => write!(f, "{:.2} {name}", self.0 as f64 / (1_u64 << (10 * step)) as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("1KiB", 1024),
            ("3K", 3072),
            ("64MiB", 64 << 20),
            ("64 MiB", 64 << 20),
            ("64m", 64 << 20),
            ("2GiB", 2 << 30),
            ("2gib", 2 << 30),
            ("16G", 16 << 30),
        ] {
            assert_eq!(Size::read(text).map(Size::bytes), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for text in [
            "",
            "MiB",
            "-1",
            "+1",
            "1.5GiB",
            "1TiB",
            "1KB",
            "1 2",
            "0x10",
            "ä",
            "1i",
            "18446744073709551616",
            "17179869184GiB",
        ] {
            assert!(Size::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_written_for_people() {
        for (bytes, text) in
            [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.50 KiB"), (3 << 30, "3.00 GiB"), (u64::MAX, "16.00 EiB")]
        {
            assert_eq!(Size(bytes).to_string(), text);
        }
    }
}
