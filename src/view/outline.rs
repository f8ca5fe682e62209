//! `outline.geojson`: the outline of a survey in its own coordinates.

use serde_json::{Value, json};

use crate::catalog::OpenDataset;
use crate::volume::Geometry;

/// Returns the outline through the first and the last lines; `None` for what has no world coordinates.
///
/// RFC 7946 has no coordinates but those of WGS 84. The member `crs` is that of the standard before it: what is made with
/// GDAL understands it, and takes coordinates for those of WGS 84 without a system that it knows.
pub(super) fn outline(open: &OpenDataset) -> Option<Value> {
    let geometry = open.dataset.info().geometry.as_ref()?;
    let [first, last_inline, last_crossline, last] = &geometry.corners;
    let mut ring = Vec::new();
    for corner in [first, last_inline, last, last_crossline] {
        ring.push(corner.world.filter(|world| world.iter().all(|x| x.is_finite()))?);
    }
    ring.push(ring[0]);
    let area: f64 = ring.windows(2).map(|pair| pair[0][0] * pair[1][1] - pair[1][0] * pair[0][1]).sum();
    if area < 0.0 {
        // the outer ring of a polygon is counterclockwise
        ring.reverse();
    }
    let shape = match (first.index == last.index, first.index.iter().zip(last.index).all(|(a, b)| *a != b)) {
        (true, _) => json!({"type": "Point", "coordinates": ring[0]}),
        (_, true) => json!({"type": "Polygon", "coordinates": [ring]}),
        _ => json!({"type": "LineString", "coordinates": [first.world, last.world]}),
    };
    let system = geometry.coordinate_system.as_deref();
    let properties = json!({
        "name": open.name,
        "inlines": [first.annotation[0], last.annotation[0]],
        "crosslines": [first.annotation[1], last.annotation[1]],
        "unit": geometry.horizontal_unit,
        "coordinate_system": system,
    });
    Some(json!({
        "type": "FeatureCollection",
        "crs": {"type": "name", "properties": {"name": name_of(geometry)}},
        "features": [{"type": "Feature", "properties": properties, "geometry": shape}],
    }))
}

/// Returns the name by which GDAL knows the coordinate system, or that of a plane somewhere.
fn name_of(geometry: &Geometry) -> String {
    let text = geometry.coordinate_system.as_deref().unwrap_or_default();
    // a text that is cut off says nothing
    if text.matches('[').count() == text.matches(']').count() {
        if let Some(code) = epsg(text) {
            return format!("urn:ogc:def:crs:EPSG::{code}");
        }
        if ["PROJECTION[", "METHOD["].iter().any(|part| text.contains(part)) {
            return text.to_owned();
        }
    }
    let plain = |text: &str| text.replace('"', "'");
    let unit = plain(geometry.horizontal_unit.as_deref().unwrap_or("unknown"));
    let factor = Some(geometry.horizontal_factor).filter(|factor| factor.is_normal() && *factor > 0.0);
    format!(
        "LOCAL_CS[\"{}\",UNIT[\"{unit}\",{}]]",
        plain(if text.is_empty() { "unknown" } else { text }),
        factor.unwrap_or(1.0)
    )
}

/// Returns the code of a coordinate system: `EPSG:23031`, or well-known text that ends in it.
fn epsg(system: &str) -> Option<&str> {
    let (_, rest) = system.rsplit_once("EPSG")?;
    let rest = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (code, rest) = rest.split_at(digits);
    // deeper within it is the code of a part, such as a unit
    let is_of_whole = matches!(rest.replace(['"', ' '], "").as_str(), "" | "]]");
    (is_of_whole && !code.is_empty()).then_some(code)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Layers, dataset};
    use super::*;
    use crate::volume::{Corner, DatasetInfo};

    fn of(corners: [[f64; 2]; 4], last: [u64; 2], system: Option<&str>) -> Option<Value> {
        let index = [[0, 0], [last[0], 0], [0, last[1]], last];
        let corner = |n: usize| Corner { index: index[n], annotation: [n as f64; 2], world: Some(corners[n]) };
        let geometry = Geometry {
            corners: [0, 1, 2, 3].map(corner),
            coordinate_system: system.map(str::to_owned),
            horizontal_unit: Some("ft".to_owned()),
            horizontal_factor: 0.3048,
            ..Geometry::default()
        };
        let info = DatasetInfo { geometry: Some(geometry), ..DatasetInfo::default() };
        outline(&dataset("zgy", Layers(info, Vec::new(), None)))
    }

    #[test]
    fn the_ring_is_counterclockwise_whichever_way_lines_go() {
        let [a, b, c, d] = [[5.0, 5.0], [9.0, 6.0], [4.0, 9.0], [8.0, 10.0]];
        for corners in [[a, b, c, d], [a, c, b, d]] {
            let ring = &of(corners, [3, 4], None).unwrap()["features"][0]["geometry"];
            assert_eq!(ring, &json!({"type": "Polygon", "coordinates": [[a, b, d, c, a]]}));
        }
        let line = of([a, b, a, b], [3, 0], None).unwrap();
        assert_eq!(line["features"][0]["geometry"], json!({"type": "LineString", "coordinates": [a, b]}));
        let point = of([a; 4], [0, 0], None).unwrap();
        assert_eq!(point["features"][0]["geometry"], json!({"type": "Point", "coordinates": a}));
        assert_eq!(of([a, b, c, [f64::NAN; 2]], [3, 4], None), None);
        assert_eq!(outline(&dataset("wkw", Layers(DatasetInfo::default(), Vec::new(), None))), None);
    }

    #[test]
    fn a_system_has_a_name_that_gdal_knows() {
        let unit = r#"UNIT["metre",1,AUTHORITY["EPSG","9001"]]"#;
        let esri = format!(r#"PROJCS["ED_1950_UTM",GEOGCS["GCS"],PROJECTION["Transverse_Mercator"],{unit}]"#);
        let code = "urn:ogc:def:crs:EPSG::23031";
        for (text, name) in [
            (Some("EPSG:23031"), code),
            (Some(&*format!(r#"PROJCS["ED50 / UTM 31N",{unit},AUTHORITY["EPSG","23031"]]"#)), code),
            (Some(r#"PROJCRS["ED50 / UTM 31N", ID["EPSG", 23031] ]"#), code),
            (Some(&esri), &esri),
            (
                Some(&esri[..esri.len() - 1]),
                &format!("LOCAL_CS[\"{}\",UNIT[\"ft\",0.3048]]", &esri[..esri.len() - 1].replace('"', "'")),
            ),
            (Some("\"ED50\" EPSG"), r#"LOCAL_CS["'ED50' EPSG",UNIT["ft",0.3048]]"#),
            (None, r#"LOCAL_CS["unknown",UNIT["ft",0.3048]]"#),
        ] {
            let crs = &of([[0.0; 2]; 4], [0, 0], text).unwrap()["crs"];
            assert_eq!(crs["properties"]["name"].as_str(), Some(name));
        }
    }
}
