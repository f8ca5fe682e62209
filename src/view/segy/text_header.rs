//! The textual header: 40 lines of 80 characters that say where the file comes from. (SEG-Y revision 1, section 3)

use std::fmt::Write;

use super::ebcdic;
use super::survey::Survey;
use crate::view::spatial_transform::number;
use crate::view::virtual_file::LayerRef;
use crate::volume::{Axis, Dtype};

/// Bytes of the header.
pub(crate) const BYTES: usize = LINES * LINE_BYTES;

const LINES: usize = 40;
const LINE_BYTES: usize = 80;
/// Characters of a line after its number: `C 1 `, `C40 `.
const TEXT_BYTES: usize = LINE_BYTES - 4;

/// Returns the header of a layer, in EBCDIC.
pub(crate) fn header(layer: LayerRef<'_>, survey: &Survey) -> Vec<u8> {
    let mut lines = text(layer, survey);
    // the standard's own last lines
    lines.resize(LINES - 2, String::new());
    lines.extend(["SEG Y REV1".to_owned(), "END TEXTUAL HEADER".to_owned()]);
    let mut header = vec![ebcdic::BLANK; BYTES];
    for (at, (line, to)) in lines.iter().zip(header.chunks_mut(LINE_BYTES)).enumerate() {
        let numbered = format!("C{:>2} {line}", at + 1);
        to.iter_mut().zip(numbered.chars()).for_each(|(to, character)| *to = ebcdic::byte(character));
    }
    header
}

/// Returns the lines without their numbers; those that are too long go on in the next line.
fn text(layer: LayerRef<'_>, survey: &Survey) -> Vec<String> {
    let (open, info) = (layer.open, survey.array.info());
    let mut lines = Lines::default();
    lines.add(format!("VOLFS {}: LOD 0 OF A VOLUME AS SEG-Y", env!("CARGO_PKG_VERSION")));
    lines.add(format!("DATASET: {}", open.name));
    lines.add(format!("LAYER: {}, FORMAT: {}", layer.name(), open.format.to_uppercase()));
    lines.add(String::new());
    lines.add(format!("SAMPLES: IEEE FLOAT, BIG-ENDIAN; STORED AS {}", info.dtype.name().to_uppercase()));
    if let Some((low, high)) = info.value_range {
        lines.add(format!("VALUE RANGE: {} TO {}", number(low), number(high)));
    }
    if let Some(scaling) = info.scaling {
        let (scale, offset) = (number(scaling.scale), number(scaling.offset));
        lines.add(format!("VALUE = STORED * {scale} + {offset}"));
    }
    if let Some(no_value) = info.no_value {
        lines.add(format!("SAMPLES WITHOUT A VALUE (STORED AS {}) ARE 0", number(no_value)));
    }
    if matches!(info.dtype, Dtype::Float64 | Dtype::Int32 | Dtype::UInt32 | Dtype::Int64 | Dtype::UInt64) {
        lines.add("VALUES ARE ROUNDED TO FLOAT32".to_owned());
    }
    lines.add(String::new());
    for (what, line) in ["INLINES", "CROSSLINES"].into_iter().zip(survey.lines()) {
        lines.add(format!("{what}: {} FROM {} STEP {}", line.count, line.first, line.step));
    }
    let samples = survey.samples;
    let (unit, thousandth) = samples.unit.names();
    let axis = info.axes.last().map_or("", |axis: &Axis| axis.name.as_str());
    lines.add(format!(
        "SAMPLES OF A TRACE ({}): {} FROM {} {unit} STEP {} {thousandth}",
        axis.to_uppercase(),
        samples.count,
        samples.delay,
        samples.interval
    ));
    let order = if survey.inline_first { "CROSSLINES" } else { "INLINES" };
    lines.add(format!("ORDER OF TRACES: {order} FASTEST, {} TRACES", survey.traces()));
    lines.add(String::new());
    position(&mut lines, layer, survey);
    lines.add(String::new());
    lines.add("BYTES OF THE TRACE HEADER:".to_owned());
    lines.add("INLINE 189-192 (AND 9-12), CROSSLINE 193-196 (AND 21-24)".to_owned());
    lines.add("CDP X 181-184, CDP Y 185-188 (AND 73-88), SCALAR 71-72".to_owned());
    lines.add("FIRST SAMPLE 109-110, SAMPLES 115-116, INTERVAL 117-118".to_owned());
    lines.list
}

/// Adds what is said of world coordinates.
fn position(lines: &mut Lines, layer: LayerRef<'_>, survey: &Survey) {
    let geometry = layer.open.dataset.info().geometry.as_ref();
    let Some(world) = survey.world else {
        lines.add("CDP X AND Y: UNKNOWN, 0 IN ALL TRACES".to_owned());
        return;
    };
    let unit = match world.unit {
        3 => "DEGREES".to_owned(),
        _ => geometry.and_then(|g| g.horizontal_unit.clone()).unwrap_or_else(|| "UNIT UNKNOWN".to_owned()),
    };
    lines.add(format!("CDP X AND Y: {unit}, ROUNDED TO {} (SCALAR {})", number(world.rounding()), world.scalar));
    for (what, position) in ["FIRST", "LAST"].into_iter().zip([0, survey.traces() - 1]) {
        let [x, y] = survey.trace(position).position.map(|place| number(world.coordinate(place)));
        lines.add(format!("{what} TRACE AT X {x} Y {y}"));
    }
    if let Some(system) = geometry.and_then(|g| g.coordinate_system.as_deref()) {
        let mut text = "COORDINATE SYSTEM: ".to_owned();
        // descriptions in well-known text are long
        let room = 2 * TEXT_BYTES - text.len();
        let _ = write!(text, "{}", system.chars().take(room).collect::<String>());
        lines.add(text);
    }
}

/// Lines of a bounded length.
#[derive(Default)]
struct Lines {
    list: Vec<String>,
}

impl Lines {
    /// Adds a text as one or more lines.
    fn add(&mut self, text: String) {
        let characters: Vec<char> = text.chars().collect();
        self.list.extend(characters.chunks(TEXT_BYTES).map(|line| line.iter().collect()));
        if characters.is_empty() {
            self.list.push(text);
        }
    }
}
