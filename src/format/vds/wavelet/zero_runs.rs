//! Zero runs: the number of samples at the beginning of each row that are exactly zero.

use super::error::{ChunkPart, WaveletError};
use super::fse::{State, Table};
use super::grow::grow_to;
use crate::format::bytes::ByteReader;

/// Rows of at least this many samples have counts of two bytes.
const LONG: usize = 256;

/// Decodes the counts of all rows into `counts`; `column` and `table` are scratch memory. Returns whether the chunk has
/// counts.
pub(super) fn read(
    coded: &[u8],
    size: [usize; 3],
    table: &mut Table,
    column: &mut Vec<u8>,
    counts: &mut Vec<u16>,
) -> Result<bool, WaveletError> {
    if coded.is_empty() {
        return Ok(false);
    }
    let rows = size[1] * size[2];
    grow_to(column, rows);
    grow_to(counts, rows);
    let (column, counts) = (&mut column[..rows], &mut counts[..rows]);
    counts.fill(0);
    let mut reader = ByteReader::new(ChunkPart::ZeroRuns, coded);
    for shift in [0, 8] {
        if shift == 8 && size[0] < LONG {
            break;
        }
        read_column(&mut reader, table, column)?;
        for (count, byte) in counts.iter_mut().zip(column.iter()) {
            *count |= u16::from(*byte) << shift;
        }
    }
    Ok(true)
}

/// Decodes one byte of every count.
fn read_column(
    reader: &mut ByteReader<'_, ChunkPart>,
    table: &mut Table,
    column: &mut [u8],
) -> Result<(), WaveletError> {
    let part = ChunkPart::ZeroRuns;
    match reader.i32()? {
        0 => column.fill(reader.i32()? as u8),
        ..0 => column.copy_from_slice(reader.take(column.len())?),
        length => {
            let bits = table.read(reader.take(length as usize)?, part)?;
            let mut state = State::new(table, bits, part)?;
            state.fill(table, bits, column, part)?;
            state.finish(part)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(coded: &[u8], size: [usize; 3]) -> Result<Option<Vec<u16>>, WaveletError> {
        let (mut table, mut column, mut counts) = Default::default();
        Ok(read(coded, size, &mut table, &mut column, &mut counts)?.then_some(counts))
    }

    #[test]
    fn columns_of_three_kinds() {
        assert_eq!(counts(&[], [64, 2, 2]), Ok(None));
        let fse = b"\x11\0\0\0\xa1\xe7\xffo\x81\x86X\xff\x0f\xf0|\xfc\x9a\xaa\xd4\xef\x03";
        let found = counts(fse, [64, 64, 1]).unwrap().unwrap();
        assert_eq!((&found[..8], found.iter().sum::<u16>()), (&[53, 31, 24, 33, 24, 33, 26, 0][..], 224));
        assert_eq!(counts(b"\0\0\0\0\x07\0\0\0", [64, 3, 1]), Ok(Some(vec![7; 3])));
        let two = b"\xff\xff\xff\xff\x01\x02\x03\0\0\0\0\x01\0\0\0";
        assert_eq!(counts(two, [256, 3, 1]), Ok(Some(vec![257, 258, 259])));
        assert_eq!(counts(&two[..10], [256, 3, 1]), Err(WaveletError::PastEnd(ChunkPart::ZeroRuns)));
        assert_eq!(counts(&two[..6], [64, 3, 1]), Err(WaveletError::PastEnd(ChunkPart::ZeroRuns)));
    }
}
