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
/// The standard's own last lines.
const END: [&str; 2] = ["SEG Y REV1", "END TEXTUAL HEADER"];

/// Returns the textual header of a layer, in EBCDIC.
pub(super) fn text_header(layer: LayerRef<'_>, survey: &Survey) -> Vec<u8> {
    let mut header = vec![BLANK; TEXT_HEADER_BYTES];
    for (at, (line, to)) in text(layer, survey).iter().zip(header.chunks_mut(LINE_BYTES)).enumerate() {
        let numbered = format!("C{:>2} {line}", at + 1);
        to.iter_mut().zip(numbered.chars()).for_each(|(to, character)| *to = byte(character).unwrap_or(UNKNOWN));
    }
    header
}

/// The most lines of a text, unless it comes last.
const SOME: usize = 4;

/// Returns the lines without their numbers.
fn text(layer: LayerRef<'_>, survey: &Survey) -> Vec<String> {
    let (open, info) = (layer.open, survey.array.info());
    let mut lines = Vec::new();
    let mut add = |text: String| lines.extend(wrapped(&text, SOME));
    add(format!("VOLFS {}: LOD {} OF A VOLUME AS SEG-Y", env!("CARGO_PKG_VERSION"), info.lod));
    add(format!("DATASET: {}", open.name));
    add(format!("LAYER: {}, FORMAT: {}", layer.name(), open.format.to_uppercase()));
    add(String::new());
    add(format!("SAMPLES: IEEE FLOAT, BIG-ENDIAN; STORED AS {}", info.dtype.name().to_uppercase()));
    if let Some((low, high)) = info.value_range {
        add(format!("VALUE RANGE: {} TO {}", number(low), number(high)));
    }
    if let Some(scaling) = info.scaling {
        let (scale, offset) = (number(scaling.scale), number(scaling.offset));
        add(format!("VALUE = STORED * {scale} + {offset}"));
    }
    if let Some(no_value) = info.no_value {
        add(format!("SAMPLES WITHOUT A VALUE (STORED AS {}) ARE 0", number(no_value)));
    }
    if matches!(info.dtype, Dtype::Float64 | Dtype::Int32 | Dtype::UInt32 | Dtype::Int64 | Dtype::UInt64) {
        add("VALUES ARE ROUNDED TO FLOAT32".to_owned());
    }
    add(String::new());
    for (what, line) in ["INLINES", "CROSSLINES"].into_iter().zip(survey.lines) {
        add(format!("{what}: {} FROM {} STEP {}", line.count, line.first, line.step));
    }
    let samples = survey.samples;
    let SampleUnit(unit, thousandth) = samples.unit;
    let axis = info.axes.last().map_or("", |axis: &Axis| axis.name.as_str());
    add(format!(
        "SAMPLES OF A TRACE ({}): {} FROM {} {unit} STEP {} {thousandth}",
        axis.to_uppercase(),
        samples.count,
        samples.delay,
        samples.interval
    ));
    if samples.is_rounded() {
        add(format!(
            "THE STEP IS {} {thousandth}, AND ROUNDED IN HEADERS",
            number((samples.exact * 1e6).round() / 1e6)
        ));
    }
    if matches!((samples.unit, survey.measurement_system), (SampleUnit::METRES, 2) | (SampleUnit::FEET, 1)) {
        add(format!("DEPTHS ARE IN {unit}; BYTES 3255-3256 ARE THE UNIT OF X AND Y"));
    }
    let order = if survey.inline_first { "CROSSLINES" } else { "INLINES" };
    let (fastest, traces) = (if survey.gather > 1 { "OFFSETS, THEN " } else { "" }, survey.traces());
    add(format!("ORDER OF TRACES: {fastest}{order} FASTEST, {traces} TRACES"));
    if survey.gather > 1 {
        add(format!("GATHERS OF {} TRACES: OFFSET 37-40, NUMBER IN THE GATHER 25-28", survey.gather));
    }
    if survey.of_traces[0].is_some() {
        add("MISSING TRACES ARE MARKED AS DEAD (2 IN BYTES 29-30)".to_owned());
    }
    add(String::new());
    position(&mut add, layer, survey);
    add(String::new());
    add("BYTES OF THE TRACE HEADER:".to_owned());
    add("INLINE 189-192 (AND 9-12), CROSSLINE 193-196 (AND 21-24)".to_owned());
    add("CDP X 181-184, CDP Y 185-188 (AND 73-88), SCALAR 71-72".to_owned());
    add("FIRST SAMPLE 109-110, SAMPLES 115-116, INTERVAL 117-118".to_owned());
    let room = LINES - END.len();
    let geometry = open.dataset.info().geometry.as_ref();
    if let Some(system) = geometry.and_then(|geometry| geometry.coordinate_system.as_deref()) {
        // descriptions in well-known text are long
        lines.extend(wrapped(&format!("COORDINATE SYSTEM: {system}"), room.saturating_sub(lines.len())));
    }
    lines.resize(room, String::new());
    lines.extend(END.map(str::to_owned));
    lines
}

/// Adds what is said of world coordinates.
fn position(add: &mut dyn FnMut(String), layer: LayerRef<'_>, survey: &Survey) {
    let Some(world) = survey.world else {
        return add("CDP X AND Y: UNKNOWN, 0 IN ALL TRACES".to_owned());
    };
    let unit = match (world.unit, survey.measurement_system) {
        (3, _) => "DEGREES",
        (1, 1) => "m",
        _ => layer
            .open
            .dataset
            .info()
            .geometry
            .as_ref()
            .and_then(|g| g.horizontal_unit.as_deref())
            .unwrap_or("UNIT UNKNOWN"),
    };
    add(format!("CDP X AND Y: {unit}, ROUNDED TO {} (SCALAR {})", number(world.rounding()), world.scalar));
    for (what, position) in ["FIRST", "LAST"].into_iter().zip([0, survey.traces() - 1]) {
        let [x, y] = survey.trace(position).position.map(|place| number(world.coordinate(place)));
        add(format!("{what} TRACE AT X {x} Y {y}"));
    }
}

/// Returns a text as lines that break between words where there are any, and that end in `...` if they are cut.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let text = plain(text);
    let (mut lines, mut rest) = (Vec::new(), text.as_str());
    while rest.len() > TEXT_BYTES && lines.len() < most {
        let (mut line, after) = match rest[..TEXT_BYTES].rfind([' ', ',']) {
            Some(at) if at > TEXT_BYTES / 2 => rest.split_at(at + 1),
            _ => rest.split_at(TEXT_BYTES),
        };
        let cut = format!("{}...", &rest[..TEXT_BYTES - 3]);
        if lines.len() + 1 == most {
            line = &cut;
        }
        lines.push(line.trim_end().to_owned());
        rest = after.trim_start();
    }
    if lines.len() < most {
        lines.push(rest.to_owned());
    }
    lines
}

pub(super) fn binary_header(survey: &Survey) -> [u8; BINARY_HEADER_BYTES] {
    let mut header = [0; BINARY_HEADER_BYTES];
    let mut put = |byte: usize, value: &[u8]| {
        // the standard numbers bytes from the beginning of the file
        let at = byte - 1 - TEXT_HEADER_BYTES;
        header[at..at + value.len()].copy_from_slice(value);
    };
    let (samples, gather) = (survey.samples, (survey.gather as i16).to_be_bytes());
    // line and reel
    put(3205, &1i32.to_be_bytes());
    put(3209, &1i32.to_be_bytes());
    // traces in an ensemble
    put(3213, &gather);
    // interval and samples, here and in the field
    put(3217, &samples.interval.to_be_bytes());
    put(3219, &samples.interval.to_be_bytes());
    put(3221, &samples.count.to_be_bytes());
    put(3223, &samples.count.to_be_bytes());
    // IEEE float
    put(3225, &5i16.to_be_bytes());
    // fold
    put(3227, &gather);
    // by ensemble, or horizontally stacked
    put(3229, &(if survey.gather > 1 { 2i16 } else { 4 }).to_be_bytes());
    // metres or feet
    put(3255, &survey.measurement_system.to_be_bytes());
    put(3501, &0x0100u16.to_be_bytes());
    // all traces have one length
    put(3503, &1i16.to_be_bytes());
    // extended textual headers
    put(3505, &0i16.to_be_bytes());
    header
}

/// What [arrays](Survey::of_traces) say of a trace.
#[derive(Clone, Copy)]
pub(super) struct OfTrace {
    pub is_live: bool,
    pub offset: i32,
}

/// Returns the header of trace `number`, counted from 0 in the order of the file.
pub(super) fn trace_header(survey: &Survey, number: u64, of_trace: OfTrace) -> [u8; TRACE_HEADER_BYTES] {
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
    // number in the ensemble
    put(25, &long(trace.in_gather as i64 + 1));
    // live or dead
    put(29, &(if of_trace.is_live { 1i16 } else { 2 }).to_be_bytes());
    put(37, &survey.offsets.map_or(of_trace.offset, |offsets| offsets.at(trace.in_gather) as i32).to_be_bytes());
    // scalars of elevations and of coordinates
    put(69, &1i16.to_be_bytes());
    put(71, &survey.world.map_or(1, |world| world.scalar).to_be_bytes());
    // source, group and ensemble
    for (at_x, at_y) in [(73, 77), (81, 85), (181, 185)] {
        put(at_x, &trace.position[0].to_be_bytes());
        put(at_y, &trace.position[1].to_be_bytes());
    }
    put(89, &survey.world.map_or(0, |world| world.unit).to_be_bytes());
    put(109, &survey.samples.delay.to_be_bytes());
    put(115, &survey.samples.count.to_be_bytes());
    put(117, &survey.samples.interval.to_be_bytes());
    put(189, &long(trace.inline));
    put(193, &long(trace.crossline));
    header
}

/// Characters that have the same byte in all code pages of EBCDIC that programs take a header for (037, 500, 1047):
/// runs of them, each with the byte of its first.
const BYTES: [(&str, u8); 14] = [
    (" ", BLANK),
    (".<(+", 0x4b),
    ("&", 0x50),
    ("$*);", 0x5b),
    ("-/", 0x60),
    (",%_>?", 0x6b),
    (":#@'=\"", 0x7a),
    ("abcdefghi", 0x81),
    ("jklmnopqr", 0x91),
    ("stuvwxyz", 0xa2),
    ("ABCDEFGHI", 0xc1),
    ("JKLMNOPQR", 0xd1),
    ("STUVWXYZ", 0xe2),
    ("0123456789", 0xf0),
];
const BLANK: u8 = 0x40;
/// The byte of the question mark.
const UNKNOWN: u8 = 0x6f;

/// Other characters, each group behind the one that stands for them.
const ALIKE: &str = "([{ )]} /\\| -~–— '`´’ AÀÁÂÃÄÅ aàáâãäå CÇ cç EÈÉÊË eèéêë IÌÍÎÏ iìíîï NÑ nñ OÒÓÔÕÖØ oòóôõöø UÙÚÛÜ \
                     uùúûüµμ YÝ yýÿ";

/// Returns the byte of a character.
pub(super) fn byte(character: char) -> Option<u8> {
    BYTES.iter().find_map(|(run, first)| Some(first + run.find(character)? as u8))
}

/// Writes a text in characters that have a byte.
fn plain(text: &str) -> String {
    let of = |character: char| match ALIKE.split(' ').find(|group| group.contains(character)) {
        Some(group) => group.chars().next(),
        None => byte(character).map(|_| character),
    };
    let text = text.replace('Æ', "AE").replace('æ', "ae").replace('ß', "ss");
    text.chars().map(|character| of(character).unwrap_or('?')).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{self, AXES, Known, field, geometry};
    use super::*;
    use crate::volume::{Geometry, Scaling};

    const TRACE: usize = 240 + 11 * 4;

    #[test]
    fn letters_digits_and_punctuation() {
        let bytes: Vec<u8> = "C 1 az(./_?\"9".chars().map(|character| byte(character).unwrap()).collect();
        assert_eq!(bytes, [0xc3, 0x40, 0xf1, 0x40, 0x81, 0xa9, 0x4d, 0x4b, 0x61, 0x6d, 0x6f, 0x7f, 0xf9]);
        // the characters that differ between code pages are not there, and no byte is there twice
        let mut known: Vec<u8> = (' '..='~').filter_map(byte).collect();
        assert_eq!((' '..='~').filter(|character| byte(*character).is_none()).collect::<String>(), "![\\]^`{|}~");
        known.sort_unstable();
        known.dedup();
        assert_eq!(known.len(), 95 - 10);
        assert!(BYTES.iter().all(|(run, _)| run.is_ascii()));
    }

    #[test]
    fn what_code_pages_do_not_agree_on_is_written_otherwise() {
        for (text, written) in [
            ("UNIT[\"metre\",1]", "UNIT(\"metre\",1)"),
            ("Æ ø~^|\\{å}", "AE o-?//(a)"),
            ("Großfläche! µm", "Grossflache? um"),
            ("\n\u{1b}λ´", "???'"),
        ] {
            assert_eq!(plain(text), written);
            assert!(plain(text).chars().all(|character| byte(character).is_some()), "{text}");
        }
    }

    #[test]
    fn lines_break_between_words() {
        let words = "seismic survey ".repeat(8);
        let lines = wrapped(&words, 4);
        assert_eq!(lines, [&"seismic survey ".repeat(5)[..74], &"seismic survey ".repeat(3)]);
        // well-known text has commas, and names of files may have no breaks
        assert_eq!(wrapped(&format!("{},{}", "a".repeat(60), "b".repeat(60)), 4)[0].len(), 61);
        assert_eq!(wrapped(&"a".repeat(100), 4).iter().map(String::len).collect::<Vec<_>>(), [76, 24]);
        let cut = wrapped(&"a".repeat(1000), 2);
        assert_eq!(cut, ["a".repeat(76), "a".repeat(73) + "..."]);
        assert_eq!([wrapped("", 4), wrapped("a b", 1)], [[""], ["a b"]]);
        assert_eq!(wrapped("a", 0), Vec::<String>::new());
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
                (25, 4, 1),
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
        let system = "PROJCS[\"UTM 31\",".to_owned() + &"AXIS[\"Easting\",EAST],".repeat(500);
        let open = tests::open("zgy", Some(Geometry { coordinate_system: Some(system), ..geometry() }), array);
        let decoded = tests::text_of(&open);
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
        let system =
            text.iter().position(|line| line.starts_with("COORDINATE SYSTEM: PROJCS(\"UTM 31\",AXIS(")).unwrap();
        assert!(text[system].ends_with(',') && text[37].ends_with("..."), "{text:#?}");
        assert_eq!(text[38..], ["SEG Y REV1", "END TEXTUAL HEADER"]);
    }

    #[test]
    fn names_that_are_long_leave_the_lines_after_them() {
        let mut open = tests::survey(&AXES, Dtype::Float32, None);
        open.name = "a".repeat(255);
        assert_eq!(tests::text_of(&open).matches('a').count(), 255 + "amplitude".matches('a').count());
        open.name = "a".repeat(9000);
        let text = tests::text_of(&open);
        assert!(text.trim_end().ends_with("C40 END TEXTUAL HEADER") && text.contains("a..."));
        assert!(text.contains("INLINE 189-192"));
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
        assert!(tests::text_of(&open).contains("ORDER OF TRACES: INLINES FASTEST"));
    }

    #[test]
    fn without_positions_there_are_zeros() {
        let array = Known::new(Dtype::Float32, &AXES);
        let open = tests::open("vds", None, array);
        let whole = tests::whole(&open);
        assert_eq!([71, 89].map(|byte| field(&whole[3600..], byte, 2)), [1, 0]);
        assert_eq!([181, 185, 73].map(|byte| field(&whole[3600..], byte, 4)), [0; 3]);
        assert_eq!(field(&whole, 3255, 2), 0);
        assert!(tests::text_of(&open).contains("CDP X AND Y: UNKNOWN"));
    }

    #[test]
    fn the_measurement_system_is_that_of_coordinates_or_else_of_depths() {
        let of = |horizontal_kind, horizontal_factor, vertical_kind, vertical_factor| {
            let more = Geometry { vertical_kind, vertical_factor, horizontal_kind, horizontal_factor, ..geometry() };
            let open = tests::open("vds", Some(more), Known::new(Dtype::Float32, &AXES));
            let whole = tests::whole(&open);
            let numbers = [(3255, 2), (3600 + 89, 2), (3600 + 71, 2), (3600 + 181, 4)];
            (numbers.map(|(byte, length)| field(&whole, byte, length)), tests::text_of(&open))
        };
        let mixed = |text: &str| text.contains("DEPTHS ARE IN");
        for (coordinates, depths, expected, is_mixed) in [
            (("length", 1.0), ("time", 1e-3), [1, 1, -100, 43_196_475], false),
            (("length", 0.3048), ("time", 1e-3), [2, 1, -100, 43_196_475], false),
            (("length", 1.0), ("depth", 0.3048), [1, 1, -100, 43_196_475], true),
            (("length", 0.3048), ("depth", 1.0), [2, 1, -100, 43_196_475], true),
            // kilometres are written in metres
            (("length", 1e3), ("time", 1e-3), [1, 1, 10, 43_196_475], false),
            (("unknown", 1.0), ("time", 1e-3), [0, 0, -100, 43_196_475], false),
            (("unknown", 1.0), ("depth", 1.0), [1, 0, -100, 43_196_475], false),
            (("unknown", 1.0), ("depth", 0.3048), [2, 0, -100, 43_196_475], false),
            (("length", 0.0), ("unknown", 1.0), [0, 0, -100, 43_196_475], false),
            (("angle", 3600.0 / 1e5), ("time", 1e-3), [0, 3, -10_000, 43_196], false),
        ] {
            let (found, text) = of(coordinates.0, coordinates.1, depths.0, depths.1);
            assert_eq!((found, mixed(&text)), (expected, is_mixed), "{coordinates:?} {depths:?}");
        }
    }
}
