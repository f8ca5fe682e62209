//! The headers of SEG-Y: text, binary, and those of traces.

use std::ops::Range;

use super::survey::{SampleUnit, Survey};
use crate::view::LayerRef;
use crate::view::headers::number;
use crate::volume::{Axis, Dtype};

/// Bytes before the first trace.
pub(super) const HEADERS: u64 = (TEXT_HEADER_BYTES + BINARY_HEADER_BYTES) as u64;
/// Bytes of a trace header.
pub(super) const TRACE_HEADER: u64 = TRACE_HEADER_BYTES as u64;

const TEXT_HEADER_BYTES: usize = LINES * LINE_BYTES;
const BINARY_HEADER_BYTES: usize = 400;
const TRACE_HEADER_BYTES: usize = 240;

/// Returns the samples of `size` bytes in an area of a file that have some of `bytes`, which begin in it: their own
/// bytes, and their numbers in the area.
pub(super) fn samples_in(bytes: &Range<u64>, area: &Range<u64>, size: u64) -> (Range<u64>, Range<u64>) {
    let first = (bytes.start - area.start) / size;
    let end = (bytes.end.min(area.end) - area.start).div_ceil(size);
    (area.start + first * size..area.start + end * size, first..end)
}

const LINES: usize = 40;
const LINE_BYTES: usize = 80;
/// Characters of a line after its number: `C 1 `, `C40 `.
const TEXT_BYTES: usize = LINE_BYTES - 4;

/// Returns the textual header of a layer, in EBCDIC.
pub(super) fn text_header(layer: LayerRef<'_>, survey: &Survey) -> Vec<u8> {
    let mut lines: Vec<String> = text(layer, survey).iter().flat_map(|text| wrapped(text)).collect();
    // the standard's own last lines
    lines.resize(LINES - 2, String::new());
    lines.extend(["SEG Y REV1".to_owned(), "END TEXTUAL HEADER".to_owned()]);
    let mut header = vec![BLANK; TEXT_HEADER_BYTES];
    for (at, (line, to)) in lines.iter().zip(header.chunks_mut(LINE_BYTES)).enumerate() {
        let numbered = format!("C{:>2} {line}", at + 1);
        to.iter_mut().zip(numbered.chars()).for_each(|(to, character)| *to = byte(character));
    }
    header
}

/// Returns the lines without their numbers. Those that are too long go on in the next line.
fn text(layer: LayerRef<'_>, survey: &Survey) -> Vec<String> {
    let (open, info) = (layer.open, survey.array.info());
    let mut lines = Vec::new();
    lines.push(format!("VOLFS {}: LOD 0 OF A VOLUME AS SEG-Y", env!("CARGO_PKG_VERSION")));
    lines.push(format!("DATASET: {}", open.name));
    lines.push(format!("LAYER: {}, FORMAT: {}", layer.name(), open.format.to_uppercase()));
    lines.push(String::new());
    lines.push(format!("SAMPLES: IEEE FLOAT, BIG-ENDIAN; STORED AS {}", info.dtype.name().to_uppercase()));
    if let Some((low, high)) = info.value_range {
        lines.push(format!("VALUE RANGE: {} TO {}", number(low), number(high)));
    }
    if let Some(scaling) = info.scaling {
        let (scale, offset) = (number(scaling.scale), number(scaling.offset));
        lines.push(format!("VALUE = STORED * {scale} + {offset}"));
    }
    if let Some(no_value) = info.no_value {
        lines.push(format!("SAMPLES WITHOUT A VALUE (STORED AS {}) ARE 0", number(no_value)));
    }
    if matches!(info.dtype, Dtype::Float64 | Dtype::Int32 | Dtype::UInt32 | Dtype::Int64 | Dtype::UInt64) {
        lines.push("VALUES ARE ROUNDED TO FLOAT32".to_owned());
    }
    lines.push(String::new());
    for (what, line) in ["INLINES", "CROSSLINES"].into_iter().zip(survey.lines) {
        lines.push(format!("{what}: {} FROM {} STEP {}", line.count, line.first, line.step));
    }
    let samples = survey.samples;
    let SampleUnit(unit, thousandth) = samples.unit;
    let axis = info.axes.last().map_or("", |axis: &Axis| axis.name.as_str());
    lines.push(format!(
        "SAMPLES OF A TRACE ({}): {} FROM {} {unit} STEP {} {thousandth}",
        axis.to_uppercase(),
        samples.count,
        samples.delay,
        samples.interval
    ));
    let order = if survey.inline_first { "CROSSLINES" } else { "INLINES" };
    lines.push(format!("ORDER OF TRACES: {order} FASTEST, {} TRACES", survey.traces()));
    lines.push(String::new());
    position(&mut lines, layer, survey);
    lines.push(String::new());
    lines.push("BYTES OF THE TRACE HEADER:".to_owned());
    lines.push("INLINE 189-192 (AND 9-12), CROSSLINE 193-196 (AND 21-24)".to_owned());
    lines.push("CDP X 181-184, CDP Y 185-188 (AND 73-88), SCALAR 71-72".to_owned());
    lines.push("FIRST SAMPLE 109-110, SAMPLES 115-116, INTERVAL 117-118".to_owned());
    lines
}

/// Adds what is said of world coordinates.
fn position(lines: &mut Vec<String>, layer: LayerRef<'_>, survey: &Survey) {
    let geometry = layer.open.dataset.info().geometry.as_ref();
    let Some(world) = survey.world else {
        lines.push("CDP X AND Y: UNKNOWN, 0 IN ALL TRACES".to_owned());
        return;
    };
    let unit = match world.unit {
        3 => "DEGREES".to_owned(),
        _ => geometry.and_then(|g| g.horizontal_unit.clone()).unwrap_or_else(|| "UNIT UNKNOWN".to_owned()),
    };
    lines.push(format!("CDP X AND Y: {unit}, ROUNDED TO {} (SCALAR {})", number(world.rounding()), world.scalar));
    for (what, position) in ["FIRST", "LAST"].into_iter().zip([0, survey.traces() - 1]) {
        let [x, y] = survey.trace(position).position.map(|place| number(world.coordinate(place)));
        lines.push(format!("{what} TRACE AT X {x} Y {y}"));
    }
    if let Some(system) = geometry.and_then(|g| g.coordinate_system.as_deref()) {
        // descriptions in well-known text are long
        lines.push("COORDINATE SYSTEM: ".chars().chain(system.chars()).take(2 * TEXT_BYTES).collect());
    }
}

/// Returns a text as one or more lines of a bounded length.
fn wrapped(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    match &characters[..] {
        [] => vec![String::new()],
        all => all.chunks(TEXT_BYTES).map(|line| line.iter().collect()).collect(),
    }
}

pub(super) fn binary_header(survey: &Survey) -> [u8; BINARY_HEADER_BYTES] {
    let mut header = [0; BINARY_HEADER_BYTES];
    let mut put = |byte: usize, value: &[u8]| {
        // the standard numbers bytes from the beginning of the file
        let at = byte - 1 - TEXT_HEADER_BYTES;
        header[at..at + value.len()].copy_from_slice(value);
    };
    let samples = survey.samples;
    // line and reel
    put(3205, &1i32.to_be_bytes());
    put(3209, &1i32.to_be_bytes());
    // traces in an ensemble
    put(3213, &1i16.to_be_bytes());
    // interval and samples, here and in the field
    put(3217, &samples.interval.to_be_bytes());
    put(3219, &samples.interval.to_be_bytes());
    put(3221, &samples.count.to_be_bytes());
    put(3223, &samples.count.to_be_bytes());
    // IEEE float
    put(3225, &5i16.to_be_bytes());
    // fold
    put(3227, &1i16.to_be_bytes());
    // horizontally stacked
    put(3229, &4i16.to_be_bytes());
    // metres or feet
    put(3255, &survey.measurement_system.to_be_bytes());
    put(3501, &0x0100u16.to_be_bytes());
    // all traces have one length
    put(3503, &1i16.to_be_bytes());
    // extended textual headers
    put(3505, &0i16.to_be_bytes());
    header
}

/// Returns the header of trace `number`, counted from 0 in the order of the file.
pub(super) fn trace_header(survey: &Survey, number: u64) -> [u8; TRACE_HEADER_BYTES] {
    let mut header = [0; TRACE_HEADER_BYTES];
    let mut put = |byte: usize, value: &[u8]| header[byte - 1..byte - 1 + value.len()].copy_from_slice(value);
    let trace = survey.trace(number);
    let long = |value: i64| (value as i32).to_be_bytes();
    // number in the line, number in the file
    put(1, &long(number as i64 + 1));
    put(5, &long(number as i64 + 1));
    // field record and ensemble, by habit
    put(9, &long(trace.inline));
    put(21, &long(trace.crossline));
    // live
    put(29, &1i16.to_be_bytes());
    // the offset of all traces is 0
    put(37, &0i32.to_be_bytes());
    // scalars of elevations and of coordinates
    put(69, &1i16.to_be_bytes());
    put(71, &survey.world.map_or(1, |world| world.scalar).to_be_bytes());
    // source, group and ensemble
    for (at_x, at_y) in [(73, 77), (81, 85), (181, 185)] {
        put(at_x, &trace.position[0].to_be_bytes());
        put(at_y, &trace.position[1].to_be_bytes());
    }
    put(89, &survey.world.map_or(1, |world| world.unit).to_be_bytes());
    put(109, &survey.samples.delay.to_be_bytes());
    put(115, &survey.samples.count.to_be_bytes());
    put(117, &survey.samples.interval.to_be_bytes());
    put(189, &long(trace.inline));
    put(193, &long(trace.crossline));
    header
}

/// The byte of each Latin-1 character.
#[rustfmt::skip]
const OF_LATIN_1: [u8; 256] = [
    0x00, 0x01, 0x02, 0x03, 0x37, 0x2d, 0x2e, 0x2f, 0x16, 0x05, 0x25, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
    0x10, 0x11, 0x12, 0x13, 0x3c, 0x3d, 0x32, 0x26, 0x18, 0x19, 0x3f, 0x27, 0x1c, 0x1d, 0x1e, 0x1f,
    0x40, 0x5a, 0x7f, 0x7b, 0x5b, 0x6c, 0x50, 0x7d, 0x4d, 0x5d, 0x5c, 0x4e, 0x6b, 0x60, 0x4b, 0x61,
    0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0x7a, 0x5e, 0x4c, 0x7e, 0x6e, 0x6f,
    0x7c, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xd1, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6,
    0xd7, 0xd8, 0xd9, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xba, 0xe0, 0xbb, 0xb0, 0x6d,
    0x79, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96,
    0x97, 0x98, 0x99, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xc0, 0x4f, 0xd0, 0xa1, 0x07,
    0x20, 0x21, 0x22, 0x23, 0x24, 0x15, 0x06, 0x17, 0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x09, 0x0a, 0x1b,
    0x30, 0x31, 0x1a, 0x33, 0x34, 0x35, 0x36, 0x08, 0x38, 0x39, 0x3a, 0x3b, 0x04, 0x14, 0x3e, 0xff,
    0x41, 0xaa, 0x4a, 0xb1, 0x9f, 0xb2, 0x6a, 0xb5, 0xbd, 0xb4, 0x9a, 0x8a, 0x5f, 0xca, 0xaf, 0xbc,
    0x90, 0x8f, 0xea, 0xfa, 0xbe, 0xa0, 0xb6, 0xb3, 0x9d, 0xda, 0x9b, 0x8b, 0xb7, 0xb8, 0xb9, 0xab,
    0x64, 0x65, 0x62, 0x66, 0x63, 0x67, 0x9e, 0x68, 0x74, 0x71, 0x72, 0x73, 0x78, 0x75, 0x76, 0x77,
    0xac, 0x69, 0xed, 0xee, 0xeb, 0xef, 0xec, 0xbf, 0x80, 0xfd, 0xfe, 0xfb, 0xfc, 0xad, 0xae, 0x59,
    0x44, 0x45, 0x42, 0x46, 0x43, 0x47, 0x9c, 0x48, 0x54, 0x51, 0x52, 0x53, 0x58, 0x55, 0x56, 0x57,
    0x8c, 0x49, 0xcd, 0xce, 0xcb, 0xcf, 0xcc, 0xe1, 0x70, 0xdd, 0xde, 0xdb, 0xdc, 0x8d, 0x8e, 0xdf,
];

const BLANK: u8 = OF_LATIN_1[b' ' as usize];

/// Returns the byte of a printable character; that of a question mark for one that the code does not have.
pub(super) fn byte(character: char) -> u8 {
    let latin_1 = u8::try_from(u32::from(character)).ok().filter(|_| !character.is_control());
    OF_LATIN_1[usize::from(latin_1.unwrap_or(b'?'))]
}

#[cfg(test)]
mod tests {
    use super::super::tests::{self, AXES, Known, geometry};
    use super::*;
    use crate::volume::{Geometry, Scaling};

    const TRACE: usize = 240 + 11 * 4;

    #[test]
    fn letters_digits_and_punctuation() {
        let bytes: Vec<u8> = "C 1 az![]|~^_Ä\u{e9}".chars().map(byte).collect();
        let expected = [0xc3, 0x40, 0xf1, 0x40, 0x81, 0xa9, 0x5a, 0xba, 0xbb, 0x4f, 0xa1, 0xb0, 0x6d, 0x63, 0x51];
        assert_eq!(bytes, expected);
        let mut sorted = OF_LATIN_1;
        sorted.sort_unstable();
        assert!(sorted.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at), "a byte is there twice");
    }

    #[test]
    fn what_the_code_does_not_have_is_a_question_mark() {
        assert_eq!("\n\u{1b}λ".chars().map(byte).collect::<Vec<_>>(), [0x6f; 3]);
    }

    /// The big-endian number of `length` bytes at a byte that the standard numbers from 1.
    fn field(of: &[u8], byte: usize, length: usize) -> i64 {
        let number = of[byte - 1..byte - 1 + length].iter().fold(0i64, |number, byte| number << 8 | i64::from(*byte));
        let bits = 64 - 8 * length as u32;
        number << bits >> bits
    }

    #[test]
    fn fields_are_at_their_bytes() {
        let open = tests::survey(&AXES, Dtype::Float32, None);
        let whole = tests::whole(&open);
        assert_eq!(whole.len(), 3600 + 35 * TRACE);
        // byte, length, value; whatever is not named is 0
        let binary = [
            (3205, 4, 1),
            (3209, 4, 1),
            (3213, 2, 1),
            (3217, 2, 4000),
            (3219, 2, 4000),
            (3221, 2, 11),
            (3223, 2, 11),
            (3225, 2, 5),
            (3227, 2, 1),
            (3229, 2, 4),
            (3255, 2, 1),
            (3501, 2, 0x0100),
            (3503, 2, 1),
            (3505, 2, 0),
        ];
        check(&whole[..3600], 3200, &binary);
        for (number, inline, crossline, x, y) in [
            (0, 100, 2000, 43_196_475, 634_856_525),
            (1, 100, 2003, 43_195_250, 634_856_825),
            (7, 98, 2000, 43_196_825, 634_857_738),
            (34, 92, 2018, 43_190_525, 634_863_175),
        ] {
            let trace = [
                (1, 4, number + 1),
                (5, 4, number + 1),
                (9, 4, inline),
                (21, 4, crossline),
                (29, 2, 1),
                (37, 4, 0),
                (69, 2, 1),
                (71, 2, -100),
                (73, 4, x),
                (77, 4, y),
                (81, 4, x),
                (85, 4, y),
                (89, 2, 1),
                (109, 2, -12),
                (115, 2, 11),
                (117, 2, 4000),
                (181, 4, x),
                (185, 4, y),
                (189, 4, inline),
                (193, 4, crossline),
            ];
            check(&whole[3600 + number as usize * TRACE..][..240], 0, &trace);
        }
    }

    /// Checks the fields of a header from byte `before` on, and that all other bytes are 0.
    fn check(header: &[u8], before: usize, fields: &[(usize, usize, i64)]) {
        let mut others = header.to_vec();
        for &(byte, length, value) in fields {
            assert_eq!(field(header, byte, length), value, "byte {byte}");
            others[byte - 1..byte - 1 + length].fill(0);
        }
        assert!(others[before..].iter().all(|byte| *byte == 0), "there is another field");
    }

    #[test]
    fn the_textual_header_says_where_it_comes_from() {
        let scaling = Scaling { no_value: Some(7.0), ..Scaling::of_codes(0.25, -3.0) };
        let mut array = Known::new(Dtype::Int16, &AXES);
        (array.info.scaling, array.info.no_value, array.info.value_range) =
            (Some(scaling), Some(7.0), Some((-1.5, 2.0)));
        let system = "PROJCS[".to_owned() + &"λ".repeat(500);
        let open = tests::open("zgy", Some(Geometry { coordinate_system: Some(system), ..geometry() }), array);
        let whole = tests::whole(&open);
        let decoded = decode(&whole[..3200]);
        let lines: Vec<&str> = decoded.as_bytes().chunks(80).map(|line| str::from_utf8(line).unwrap()).collect();
        for (at, line) in lines.iter().enumerate() {
            assert!(line.starts_with(&format!("C{:>2} ", at + 1)), "{line}");
        }
        let text: Vec<&str> = lines.iter().map(|line| line[4..].trim_end()).collect();
        for expected in [
            concat!("VOLFS ", env!("CARGO_PKG_VERSION"), ": LOD 0 OF A VOLUME AS SEG-Y"),
            "DATASET: north.zgy",
            "LAYER: amplitude, FORMAT: ZGY",
            "SAMPLES: IEEE FLOAT, BIG-ENDIAN; STORED AS INT16",
            "VALUE RANGE: -1.5 TO 2",
            "VALUE = STORED * 0.25 + -3",
            "SAMPLES WITHOUT A VALUE (STORED AS 7) ARE 0",
            "INLINES: 5 FROM 100 STEP -2",
            "CROSSLINES: 7 FROM 2000 STEP 3",
            "SAMPLES OF A TRACE (SAMPLE): 11 FROM -12 ms STEP 4000 us",
            "ORDER OF TRACES: CROSSLINES FASTEST, 35 TRACES",
            "CDP X AND Y: m, ROUNDED TO 0.01 (SCALAR -100)",
            "LAST TRACE AT X 431905.25 Y 6348631.75",
            "INLINE 189-192 (AND 9-12), CROSSLINE 193-196 (AND 21-24)",
        ] {
            assert!(text.contains(&expected), "{expected} is not in {text:#?}");
        }
        assert!(text.iter().any(|line| line.starts_with("COORDINATE SYSTEM: PROJCS[???")));
        assert_eq!(text[38..], ["SEG Y REV1", "END TEXTUAL HEADER"]);
    }

    /// Decodes the letters, digits and marks of EBCDIC that the header has.
    fn decode(bytes: &[u8]) -> String {
        let of = |byte: &u8| (' '..='~').find(|character| super::byte(*character) == *byte);
        bytes.iter().map(|byte| of(byte).unwrap()).collect()
    }

    #[test]
    fn names_that_are_long_take_more_lines_and_leave_the_last_ones() {
        let mut open = tests::survey(&AXES, Dtype::Float32, None);
        open.name = "a".repeat(255);
        assert_eq!(decode(&tests::whole(&open)[..3200]).matches("aaaaaa").count(), 41);
        open.name = "a".repeat(9000);
        assert!(decode(&tests::whole(&open)[..3200]).trim_end().ends_with("C40 END TEXTUAL HEADER"));
    }

    #[test]
    fn crosslines_may_come_first() {
        let [inlines, crosslines, samples] = AXES;
        let open = tests::survey(&[crosslines, inlines, samples], Dtype::Float32, None);
        let whole = tests::whole(&open);
        for (number, inline, crossline, x) in
            [(0, 100, 2000, 43_196_475), (1, 98, 2000, 43_196_825), (5, 100, 2003, 43_195_250)]
        {
            let header = &whole[3600 + number * TRACE..][..240];
            assert_eq!([189, 193, 181].map(|byte| field(header, byte, 4)), [inline, crossline, x], "{number}");
        }
        assert!(decode(&whole[..3200]).contains("ORDER OF TRACES: INLINES FASTEST"));
    }

    #[test]
    fn without_positions_there_are_zeros() {
        let array = Known::new(Dtype::Float32, &AXES);
        let whole = tests::whole(&tests::open("vds", None, array));
        assert_eq!([71, 89].map(|byte| field(&whole[3600..], byte, 2)), [1, 1]);
        assert_eq!([181, 185, 73].map(|byte| field(&whole[3600..], byte, 4)), [0; 3]);
        assert!(decode(&whole[..3200]).contains("CDP X AND Y: UNKNOWN"));
    }
}
