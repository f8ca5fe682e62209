//! Image file directories (IFD), in classic TIFF and in BigTIFF, as TIFF revision 6.0 and the BigTIFF design describe
//! them. Everything is little-endian.

/// The types of fields.
const SHORT: u16 = 3;
const LONG: u16 = 4;
const LONG8: u16 = 16;

/// A tag and its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// The tag.
    pub tag: u16,
    /// The type of its values.
    pub kind: u16,
    /// Their number.
    pub count: u64,
    /// The values if they fit, packed from the lowest byte on; otherwise the position in the file where they stand.
    pub value: u64,
}

impl Field {
    /// Returns a field of one 16-bit number.
    pub(crate) fn short(tag: u16, value: u16) -> Self {
        Self { tag, kind: SHORT, count: 1, value: value.into() }
    }

    /// Returns a field of one number, of 32 bits if it fits.
    pub(crate) fn number(tag: u16, value: u64) -> Self {
        Self { tag, kind: if value > u32::MAX.into() { LONG8 } else { LONG }, count: 1, value }
    }

    /// Returns a field of one number that has as many bits as positions in the file.
    pub(crate) fn position(tag: u16, value: u64, big: bool) -> Self {
        Self { tag, kind: if big { LONG8 } else { LONG }, count: 1, value }
    }
}

/// Returns the bytes of a directory with so many fields.
pub(crate) fn size(fields: usize, big: bool) -> u64 {
    let (count, field, next) = if big { (8, 20, 8) } else { (2, 12, 4) };
    count + field * fields as u64 + next
}

/// Returns the bytes of values that fit into a field.
pub(crate) fn inline_bytes(big: bool) -> u64 {
    if big { 8 } else { 4 }
}

/// Appends a directory. Its fields are in ascending order of their tags; `next` is the position of the next directory,
/// 0 if there is none. In classic TIFF all numbers fit 32 bits.
pub(crate) fn write(fields: &[Field], next: u64, big: bool, out: &mut Vec<u8>) {
    let word = |out: &mut Vec<u8>, value: u64| match big {
        true => out.extend_from_slice(&value.to_le_bytes()),
        false => out.extend_from_slice(&(value as u32).to_le_bytes()),
    };
    match big {
        true => out.extend_from_slice(&(fields.len() as u64).to_le_bytes()),
        false => out.extend_from_slice(&(fields.len() as u16).to_le_bytes()),
    }
    for field in fields {
        out.extend_from_slice(&field.tag.to_le_bytes());
        out.extend_from_slice(&field.kind.to_le_bytes());
        word(out, field.count);
        word(out, field.value);
    }
    word(out, next);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_have_the_size_that_is_computed() {
        let fields = [Field::short(254, 0), Field::number(256, 1 << 33), Field::position(273, 7, true)];
        for (big, expected) in [(true, 76), (false, 42)] {
            let mut out = Vec::new();
            write(&fields, 9, big, &mut out);
            assert_eq!((out.len() as u64, size(3, big)), (expected, expected));
        }
        let mut out = Vec::new();
        write(&fields[..1], 9, false, &mut out);
        assert_eq!(out, [1, 0, 254, 0, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0]);
        assert_eq!(fields.map(|field| field.kind), [3, 16, 16]);
    }
}
