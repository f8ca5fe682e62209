//! A description with every property, in both syntaxes, for tests.

use serde_json::{Value, json};

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
