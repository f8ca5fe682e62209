//! Decodes arbitrary bytes as a chunk of a VDS whose description is valid: the input has the shape, the type and the
//! compression method, and then the bytes of the chunk.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::bricks::Kept;
use super::bytes::Bytes;
use super::vds_open;

const FORMATS: [(&str, i32); 7] = [
    ("Format_R32", 3),
    ("Format_U8", 1),
    ("Format_U16", 2),
    ("Format_1Bit", 0),
    ("Format_U32", 4),
    ("Format_R64", 5),
    ("Format_U64", 6),
];
const METHODS: [&str; 7] =
    ["RLE", "Zip", "None", "Wavelet", "WaveletNormalizeBlock", "WaveletLossless", "WaveletNormalizeBlockLossless"];

/// Reads one input, and returns the number of bricks.
#[must_use]
pub fn run(input: &[u8]) -> u64 {
    let mut input = Bytes(input);
    let (format, code) = input.one(&FORMATS);
    let method = input.one(&METHODS);
    let flags = input.u8();
    let components = [1, 2, 4][usize::from(flags & 3) % 3];
    let size = [0; 3].map(|_| 1 + input.below(32));
    let axes: Vec<Value> = size
        .iter()
        .zip(["Sample", "Crossline", "Inline"])
        .map(|(n, name)| json!({"name": name, "unit": "", "numSamples": n, "coordinateMin": 0, "coordinateMax": n}))
        .collect();
    let layout = json!({
        "axisDescriptors": axes,
        "channelDescriptors": [{
            "allowLossyCompression": true, "channelMapping": "Direct", "components": format!("Components_{components}"),
            "discrete": false, "format": format, "integerOffset": -2.5, "integerScale": 0.5, "mappedValues": 0,
            "name": "Amplitude", "noValue": -999.25, "renderable": true, "unit": "mV",
            "useNoValue": flags & 4 != 0 && code != 0, "valueRange": [-1.0, 1.0],
        }],
        "layoutDescriptor": {
            "brickSize": "BrickSize_32", "brickSize2DMultiplier": 4, "create2DLODs": false,
            "forceFullResolutionDimension": false, "fullResolutionDimension": -1, "lodLevels": "LODLevels_None",
            "negativeMargin": 0, "positiveMargin": 0,
        },
        "metadata": [],
    });
    let status = json!([{
        "channelName": "Amplitude", "chunkCount": 1, "chunkMetadataByteSize": 8, "chunkMetadataPageSize": 4,
        "compressionMethod": method, "compressionTolerance": 0.01, "dimensionGroup": "Dimensions_012",
        "hasChunkMetadataPages": true, "layerName": "Dimensions_012LOD0", "lod": 0, "pageDirectory": [0],
        "produceStatus": "Normal",
    }]);
    let chunk = match method {
        "RLE" | "Zip" | "None" => {
            let header = [3, size[0] as i32, size[1] as i32, size[2] as i32, code, components];
            let mut chunk: Vec<u8> = header.iter().flat_map(|n| n.to_le_bytes()).collect();
            chunk.extend(input.0);
            chunk
        }
        _ => wavelet(size, &input),
    };
    // a hash that is not one of those with a meaning
    let page = [7u64.to_le_bytes().to_vec(), vec![0; 24]].concat();
    let files = BTreeMap::from([
        ("VolumeDataLayout".to_owned(), layout.to_string().into_bytes()),
        ("LayerStatus".to_owned(), status.to_string().into_bytes()),
        ("Dimensions_012LOD0/ChunkMetadata/0".to_owned(), page),
        ("Dimensions_012LOD0/0".to_owned(), chunk),
    ]);
    vds_open::read(files, Kept::InObjects)
}

/// Returns a wavelet chunk with a valid header.
fn wavelet(size: [usize; 3], input: &Bytes<'_>) -> Vec<u8> {
    let (flags, body) = input.0.split_first().unwrap_or((&0, &[]));
    let version = 671 + i32::from(flags >> 6) % 3;
    let header = [version, 24 + body.len() as i32, size[0] as i32, size[1] as i32, size[2] as i32];
    let mut chunk: Vec<u8> = header.iter().flat_map(|n| n.to_le_bytes()).collect();
    chunk.extend([3, flags & 15, 0, 0]);
    chunk.extend(body);
    chunk
}
