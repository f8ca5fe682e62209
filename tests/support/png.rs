//! A decoder of PNG files that accepts no fault.

use std::io::Read;

use flate2::read::ZlibDecoder;

/// A picture.
pub struct Decoded {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Bit depth and colour type.
    pub codes: [u8; 2],
    /// The colours of a palette, if there is one.
    pub palette: Vec<u8>,
    /// The pixels row by row, without filter bytes.
    pub pixels: Vec<u8>,
}

/// Decodes a picture: checks each chunk's CRC, the zlib stream with its Adler-32, and that nothing is left over.
pub fn decode(file: &[u8]) -> Decoded {
    let mut rest = file.strip_prefix(b"\x89PNG\r\n\x1a\n").unwrap();
    let (mut header, mut palette, mut stream, mut ended) = (None, Vec::new(), Vec::new(), false);
    while !rest.is_empty() {
        assert!(!ended, "nothing follows IEND");
        let (length, after) = rest.split_first_chunk::<4>().unwrap();
        let (checked, after) = after.split_at(4 + u32::from_be_bytes(*length) as usize);
        let (crc, after) = after.split_first_chunk::<4>().unwrap();
        let mut expected = flate2::Crc::new();
        expected.update(checked);
        assert_eq!(u32::from_be_bytes(*crc), expected.sum());
        let (kind, data) = checked.split_at(4);
        match kind {
            b"IHDR" => header = Some(data.to_vec()),
            b"PLTE" => palette = data.to_vec(),
            b"IDAT" => stream.extend_from_slice(data),
            b"IEND" => ended = data.is_empty(),
            other => panic!("{other:?}"),
        }
        rest = after;
    }
    assert!(ended);
    let header = header.unwrap();
    let side = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().unwrap()) as usize;
    let (width, height, codes) = (side(0), side(4), [header[8], header[9]]);
    assert_eq!(header[10..], [0, 0, 0]);
    let channels = if codes[1] == 2 { 3 } else { 1 };
    let row = 1 + width * channels * usize::from(codes[0]) / 8;
    let (mut rows, mut decoder) = (Vec::new(), ZlibDecoder::new(&stream[..]));
    decoder.read_to_end(&mut rows).unwrap();
    assert_eq!(decoder.total_in(), stream.len() as u64);
    assert_eq!(rows.len(), height * row);
    let pixels = rows.chunks(row).flat_map(|row| {
        assert_eq!(row[0], 0, "no row is filtered");
        row[1..].to_vec()
    });
    Decoded { width, height, codes, palette, pixels: pixels.collect() }
}
