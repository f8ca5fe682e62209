//! Descriptions for tests, tests of their bounds, and of mutated texts.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::format::vds::{describe, native};

/// Returns a `VolumeDataLayout` with every property.
pub(crate) fn full_layout() -> Value {
    json!({
        "axisDescriptors": [
            {"name": "Sample", "unit": "ms", "numSamples": 100, "coordinateMin": 4.0, "coordinateMax": 400.0},
            {"name": "Crossline", "unit": "unitless", "numSamples": 50, "coordinateMin": 1, "coordinateMax": 99},
            {"name": "Inline", "unit": "unitless", "numSamples": 20, "coordinateMin": 30.5, "coordinateMax": 11.5},
        ],
        "channelDescriptors": [
            {"allowLossyCompression": true, "channelMapping": "Direct", "components": "Components_1",
             "discrete": false, "format": "Format_U16", "integerOffset": -2.5, "integerScale": 0.5,
             "mappedValues": 0, "name": "Amplitude", "noValue": -999.25, "renderable": true, "unit": "mV",
             "useNoValue": true, "valueRange": [-0.07938297837972641, 0.07938297837972641]},
            {"channelMapping": "PerTrace", "components": "Components_2", "format": "Format_U8",
             "mappedValues": 240, "name": "Amplitude", "discrete": true, "noValue": 1.0, "later": [1]},
        ],
        "layoutDescriptor": {"brickSize": "BrickSize_64", "brickSize2DMultiplier": 4, "create2DLODs": true,
            "forceFullResolutionDimension": false, "fullResolutionDimension": -1, "lodLevels": "LODLevels_3",
            "negativeMargin": 4, "positiveMargin": 3},
        "metadata": [
            {"category": "", "name": "i", "type": "Int", "value": -7},
            {"category": "c", "name": "iv", "type": "IntVector3", "value": [1, 2, 3]},
            {"category": "c", "name": "f", "type": "Float", "value": 0.1},
            {"category": "c", "name": "dv", "type": "DoubleVector2", "value": [431964.7387048737, null]},
            {"category": "c", "name": "s", "type": "String", "value": "täxt"},
            {"category": "SEGY", "name": "b", "type": "BLOB", "value": "AAEC/w=="},
        ],
        "later": {}
    })
}

/// A `VDSObject` with every property.
pub(crate) const FULL_OBJECT: &str = r#"CreateObj("Volume", "", 77)
{
Name="\"Sub\\set\"";
InputChannelDescriptor0:{1,{Format=-1;}}
VoxelFormat="HUEVOXELFORMAT_U8";
VoxelComponents="HUEVOXELCOMPONENTS_1";
DiscreteData="FALSE";
ValueName="Amplitude";
ValueUnit="mV";
ValueRange:{Min=-1.5;Max=100.5;}
UseNoValue="FALSE";
NoValue=0;
FullVCSize="HUEVCSIZE_128";
NegativeMargin=4;
PositiveMargin=3;
LODLevels="LODLevel2";
Create2DLODs="TRUE";
ForceFullResolutionDimension="FALSE";
FullResolutionDimension=-1;
Dimensions="HUEDIMENSION_3";
Dimension0Name="Sample";
Dimension0Unit="ms";
Dimension0Size=100;
Dimension0Coordinate:{Min=2052;Max=2448;}
Dimension1Name="Crossline";
Dimension1Size=50;
Dimension1Coordinate:{Min=1;Max=50;}
Dimension2Name="Inline";
Dimension2Size=20;
Dimension2Coordinate:{Min=30.5;Max=11.5;}
Dimension3Name="T";
Dimension3Size=0;
VolumeDataChannelDescriptor:{2,
 {Format="HUEVOXELFORMAT_1BIT";Components="HUEVOXELCOMPONENTS_1";Name="Trace";ValueRange:{Min=0;Max=1;}
  Renderable="TRUE";AllowLossyCompression="FALSE";ChannelMapping=1976800267773298824;},
 {Format="HUEVOXELFORMAT_U16";Components="HUEVOXELCOMPONENTS_2";Name="Trace";ValueRange:{Min=1;Max=65535;}
  UseNoValue="TRUE";NoValue=-9.25;ChannelMapping=-1;MappedValues=240;IntegerOffset=7;}
}
CreateObj("MetadataDoubleVector2", "MetadataList", 1)
{Name="Origin";Category="SurveyCoordinateSystem";Type="DoubleVector2";Value:{X=431964.7387048737145960330963134765625;Y=1.#QNAN;}}
CreateObj("MetadataBLOB", "VDSMetadataList", 2){Name="SEGYTextHeader";Category="";Type="BLOB";Value=N:3:00 01fF;}
CreateObj("MetadataString", "MetadataList", 3){Name="s";Category="c";Type="String";Value="täxt";}
CreateObj("MetadataInt", "MetadataList", 4){Name="i";Category="c";Type="Int";Value=-7;}
CreateObj("MetadataOther", "MetadataList", 5){Name="o";Category="c";Type="Matrix";Value:{b=1;a="t";c:{1,{}}}}
CreateObj("Elsewhere", "OtherList", 6){Name="no";Category="c";Type="Int";Value=8;}
}
"#;

/// Returns a valid description: 3 axes of 100, 50 and 20 samples, one channel.
pub(crate) fn sound() -> Description {
    let axis = |name: &str, samples| AxisDescriptor {
        name: name.into(),
        samples,
        max: samples as f32,
        ..AxisDescriptor::default()
    };
    let channel = Channel { name: "Amplitude".into(), components: 1, integer_scale: 1.0, ..Channel::default() };
    Description {
        layout: LayoutDescriptor { brick: 64, multiplier_2d: 4, ..LayoutDescriptor::default() },
        axes: vec![axis("Sample", 100), axis("Crossline", 50), axis("Inline", 20)],
        channels: vec![channel],
        ..Description::default()
    }
}

fn fault(spoil: impl Fn(&mut Description)) -> String {
    let mut description = sound();
    spoil(&mut description);
    description.checked().map_or_else(|fault| fault, |_| "none".into())
}

#[test]
fn values_at_the_bounds_are_accepted_and_those_beyond_refused() {
    type Spoil = fn(&mut Description);
    let sides: [(Spoil, bool); 24] = [
        (|_| {}, true),
        (|d| d.layout.brick = 16, false),
        (|d| d.layout.brick = 96, false),
        (|d| d.layout.brick = 8192, false),
        (|d| (d.layout.brick, d.layout.multiplier_2d) = (4096, 1), true),
        (|d| d.layout.negative_margin = 31, true),
        (|d| d.layout.negative_margin = 32, false),
        (|d| d.layout.positive_margin = 32, false),
        (|d| d.layout.multiplier_2d = 64, true),
        (|d| d.layout.multiplier_2d = 65, false),
        (|d| d.layout.multiplier_2d = 0, false),
        (|d| d.layout.lods = 12, true),
        (|d| d.layout.lods = 13, false),
        (|d| d.layout.full_resolution = Some(2), true),
        (|d| d.layout.full_resolution = Some(3), false),
        (|d| d.axes.truncate(1), false),
        (|d| d.axes.resize(7, d.axes[0].clone()), false),
        (|d| d.axes[1].samples = 0x7fff_ffff, true),
        (|d| d.axes[1].samples = 0x8000_0000, false),
        (|d| d.channels.clear(), false),
        (|d| d.channels.resize(MAX_LAYERS, d.channels[0].clone()), true),
        (|d| d.channels.resize(MAX_LAYERS + 1, d.channels[0].clone()), false),
        (|d| d.channels[0].per_trace = Some(240), true),
        (|d| d.channels[0].per_trace = Some(0), false),
    ];
    for (number, (change, good)) in sides.into_iter().enumerate() {
        assert_eq!(fault(change) == "none", good, "{number}: {:?}", fault(change));
    }
}

#[test]
fn errors_name_the_key() {
    let starts = |spoil: fn(&mut Description), text: &str| assert!(fault(spoil).starts_with(text), "{}", fault(spoil));
    starts(|d| d.axes[1].samples = 0, "axisDescriptors[1].numSamples is 0: there must be at least 1");
    starts(|d| d.layout.negative_margin = 40, "layoutDescriptor.negativeMargin is 40");
    let odd = |d: &mut Description| d.channels.push(Channel { components: 3, ..d.channels[0].clone() });
    starts(odd, "channelDescriptors[1].components is 3");
}

#[test]
fn texts_that_levels_repeat_are_short() {
    let text = |length: usize| "x".repeat(length);
    assert_eq!(fault(|d| d.axes[1].unit = text(MAX_TEXT)), "none");
    let rest = "has 1025 bytes: there must be at most 1024";
    assert_eq!(fault(|d| d.axes[1].unit = text(MAX_TEXT + 1)), format!("axisDescriptors[1].unit {rest}"));
    assert_eq!(fault(|d| d.axes[0].name = text(MAX_TEXT + 1)), format!("axisDescriptors[0].name {rest}"));
    assert_eq!(fault(|d| d.channels[0].name = text(MAX_TEXT)), "none");
    assert_eq!(fault(|d| d.channels[0].name = text(MAX_TEXT + 1)), format!("channelDescriptors[0].name {rest}"));
    assert_eq!(fault(|d| d.channels[0].unit = text(MAX_TEXT + 1)), format!("channelDescriptors[0].unit {rest}"));
}

#[test]
fn single_bits_cannot_have_a_no_value() {
    let json = fault(|d| (d.channels[0].format, d.channels[0].no_value) = (SampleFormat::Bit, Some(1.0)));
    assert!(json.starts_with("channelDescriptors[0].useNoValue"), "{json}");
}

#[test]
fn channels_fit_in_63_bits() {
    let of = |format, dims: [u64; 4]| {
        fault(|d| {
            d.axes.push(d.axes[0].clone());
            d.axes.iter_mut().zip(dims).for_each(|(axis, samples)| axis.samples = samples);
            d.channels[0].format = format;
        })
    };
    assert_eq!(of(SampleFormat::U8, [1 << 30, 1 << 30, 2, 1]), "none");
    assert!(of(SampleFormat::U8, [1 << 30, 1 << 30, 8, 1]).contains("too many samples"));
    assert!(of(SampleFormat::U16, [1 << 30, 1 << 30, 4, 1]).contains("too many samples"));
    assert!(of(SampleFormat::R64, [0x7fff_ffff; 4]).contains("too many samples"));
    let few = fault(|d| {
        d.axes[0].samples = 0x7fff_ffff;
        d.channels[0].per_trace = Some(1);
    });
    assert_eq!(few, "none");
}

#[test]
fn the_number_of_warnings_is_bounded() {
    let mut warnings = Vec::new();
    (0..100).for_each(|number| warn(&mut warnings, || number.to_string()));
    assert_eq!(warnings.len(), MAX_WARNINGS + 1);
    assert_eq!(warnings[..2], ["0", "1"]);
}

/// A change to a text.
#[derive(Clone, Debug)]
enum Change {
    Put(usize, u8),
    Remove(usize, usize),
    Copy(usize, usize, usize),
    Insert(usize, &'static str),
}

/// Tokens of the two syntaxes.
const TOKENS: [&str; 16] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    ";",
    "=",
    "N:9:",
    "-1",
    "0",
    "1e999",
    "99999999999",
    "CreateObj(\"\",\"\",1){",
    "null",
];

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let index = any::<prop::sample::Index>().prop_map(|index| index.index(1 << 20));
    let change = prop_oneof![
        (index.clone(), any::<u8>()).prop_map(|(at, byte)| Change::Put(at, byte)),
        (index.clone(), 1..60_usize).prop_map(|(at, length)| Change::Remove(at, length)),
        (index.clone(), index.clone(), 1..200_usize).prop_map(|(from, to, length)| Change::Copy(from, to, length)),
        (index, prop::sample::select(&TOKENS[..])).prop_map(|(at, text)| Change::Insert(at, text)),
    ];
    prop::collection::vec(change, 1..6)
}

fn changed(text: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut text = text.to_vec();
    for change in changes {
        let end = text.len();
        let index = |at: usize| at % (end + 1);
        match *change {
            Change::Put(at, byte) if index(at) < end => text[index(at)] = byte,
            Change::Put(_, byte) => text.push(byte),
            Change::Remove(at, length) => drop(text.drain(index(at)..(index(at) + length).min(end))),
            Change::Copy(from, to, length) => {
                let copy = text[index(from)..(index(from) + length).min(end)].to_vec();
                text.splice(index(to)..index(to), copy);
            }
            Change::Insert(at, new) => drop(text.splice(index(at)..index(at), new.bytes())),
        }
    }
    text
}

/// Makes all JSON of a description that is valid.
fn make_json(description: Result<Description, String>) {
    let json = |d: &Description| (describe::geometry(d), describe::metadata(d), native(d));
    std::hint::black_box(description.as_ref().map(json)).ok();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn changed_json_never_panics(changes in changes()) {
        let text = changed(full_layout().to_string().as_bytes(), &changes);
        make_json(from_json(&text));
    }

    #[test]
    fn changed_objects_never_panic(changes in changes()) {
        let text = changed(FULL_OBJECT.as_bytes(), &changes);
        make_json(from_object(&text));
    }

    #[test]
    fn every_truncated_object_is_refused(end in any::<prop::sample::Index>()) {
        // the closing brace is the last byte but one
        let text = &FULL_OBJECT.as_bytes()[..end.index(FULL_OBJECT.len() - 2)];
        prop_assert!(from_object(text).is_err());
    }
}
