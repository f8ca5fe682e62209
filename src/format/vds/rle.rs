//! Run-length encoding of OpenVDS: runs of one repeated unit of 1 to 8 bytes, and runs of literal units.

use crate::format::bytes::ByteReader;

/// Bytes of the header: encoded size, decoded size, bytes of a unit, 32 bits each.
const HEADER: usize = 12;

/// Decodes `packed`, which begins with its header, into all of `out`.
pub(super) fn decode(packed: &[u8], out: &mut [u8]) -> Result<(), String> {
    let fields = ByteReader::new((), packed).i32s();
    let [size, unpacked, unit] = fields.map_err(|_| "its run lengths are shorter than their header")?;
    let size = usize::try_from(size).ok().filter(|n| (HEADER..=packed.len()).contains(n));
    let size = size.ok_or("the size of its run lengths makes no sense")?;
    if usize::try_from(unpacked) != Ok(out.len()) {
        return Err(format!("its run lengths say {unpacked} bytes, but {} belong here", out.len()));
    }
    let runs = &packed[HEADER..size];
    match unit {
        1 => expand_runs::<1>(runs, out),
        2 => expand_runs::<2>(runs, out),
        4 => expand_runs::<4>(runs, out),
        8 => expand_runs::<8>(runs, out),
        _ => return Err(format!("its run lengths have units of {unit} bytes")),
    }
    .ok_or_else(|| "its run lengths do not end where they should".into())
}

/// Expands runs of units of `UNIT` bytes; `None` if a run goes beyond `out`, or the runs end before it is full.
fn expand_runs<const UNIT: usize>(mut runs: &[u8], mut out: &mut [u8]) -> Option<()> {
    while !out.is_empty() {
        let (&head, rest) = runs.split_first()?;
        runs = rest;
        let mut units = usize::from(head & 63);
        if head & 128 != 0 {
            let (&more, rest) = runs.split_first()?;
            runs = rest;
            units |= usize::from(more) << 6;
        }
        let (now, later) = std::mem::take(&mut out).split_at_mut_checked((units + 1) * UNIT)?;
        out = later;
        if head & 64 != 0 {
            let (copied, rest) = runs.split_at_checked(now.len())?;
            now.copy_from_slice(copied);
            runs = rest;
        } else {
            let (unit, rest) = runs.split_first_chunk::<UNIT>()?;
            now.as_chunks_mut::<UNIT>().0.fill(*unit);
            runs = rest;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packed(unpacked: i32, unit: i32, runs: &[u8]) -> Vec<u8> {
        let size = (HEADER + runs.len()) as i32;
        [&size.to_le_bytes()[..], &unpacked.to_le_bytes(), &unit.to_le_bytes(), runs].concat()
    }

    /// Encodes runs of up to 100 units, repeated or literal.
    fn pack(unit: usize, data: &[u8]) -> Vec<u8> {
        let mut runs = Vec::new();
        let mut head = |n: usize, copy: bool, body: &[u8]| {
            let low = (n - 1) as u8 & 63 | u8::from(copy) << 6;
            match (n - 1) >> 6 {
                0 => runs.push(low),
                high => runs.extend([low | 128, high as u8]),
            }
            runs.extend(body);
        };
        let mut left = data;
        while !left.is_empty() {
            let same = left.chunks(unit).take(100).take_while(|u| *u == &left[..unit]).count();
            if same > 1 {
                head(same, false, &left[..unit]);
                left = &left[same * unit..];
            } else {
                let n = (left.len() / unit).min(70);
                head(n, true, &left[..n * unit]);
                left = &left[n * unit..];
            }
        }
        runs
    }

    #[test]
    fn runs_are_repeated_or_copied() {
        let mut out = [0; 8];
        decode(&packed(8, 2, &[2, 1, 2, 0x40, 7, 8]), &mut out).unwrap();
        assert_eq!(out, [1, 2, 1, 2, 1, 2, 7, 8]);
        let mut out = vec![0; 1000];
        decode(&packed(1000, 1, &[128 | (999 & 63) as u8, (999 >> 6) as u8, 5]), &mut out).unwrap();
        assert!(out.iter().all(|b| *b == 5));
    }

    #[test]
    fn damaged_runs_are_refused() {
        let refused = |bytes: &[u8]| decode(bytes, &mut [0; 8]).unwrap_err();
        assert!(refused(&packed(8, 2, &[3])[..11]).contains("header"));
        assert!(refused(&packed(9, 1, &[8, 1])).contains("say 9 bytes"));
        assert!(refused(&packed(8, 3, &[7, 1])).contains("units of 3"));
        for runs in [&[][..], &[8, 1], &[6, 1], &[7], &[0x47, 1, 2, 3], &[0x80]] {
            assert!(refused(&packed(8, 1, runs)).contains("do not end"), "{runs:?}");
        }
        let mut long = packed(8, 1, &[7, 1]);
        long[0] += 1;
        assert!(refused(&long).contains("size"));
    }

    proptest! {
        #[test]
        fn decoding_restores_what_was_encoded(log in 0u32..4, data in prop::collection::vec(0u8..3, 0..2000)) {
            let unit = 1 << log;
            let data = &data[..data.len() / unit * unit];
            let mut out = vec![9; data.len()];
            prop_assert_eq!(decode(&packed(data.len() as i32, unit as i32, &pack(unit, data)), &mut out), Ok(()));
            prop_assert_eq!(&out, data);
        }

        #[test]
        fn arbitrary_bytes_never_panic(log in 0i32..4, runs in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = decode(&packed(64, 1 << log, &runs), &mut [0; 64]);
        }
    }
}
