//! Faults of single chunks in a folder of objects.

use crate::format::FormatError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{LAYER, cloud_chunk_fails};
use crate::test_support::naive;
use crate::test_support::vds_dataset::{Cloud, find};

#[test]
fn missing_objects() {
    for (name, chunk) in [("pages", 0), ("no-directory", 2), ("no-pages", 3), ("tagged", 2)] {
        cloud_chunk_fails(name, chunk, &[], |cloud| drop(cloud.0.remove(&format!("{LAYER}/{chunk}"))));
    }
}

#[test]
fn objects_of_a_wrong_length() {
    for (name, chunk) in [("pages", 0), ("no-directory", 2), ("no-pages", 3), ("tagged", 2)] {
        let object = format!("{LAYER}/{chunk}");
        cloud_chunk_fails(name, chunk, &[], |cloud| cloud.object(&object).truncate(100));
        cloud_chunk_fails(name, chunk, &[], |cloud| cloud.object(&object).clear());
        cloud_chunk_fails(name, chunk, &[], |cloud| cloud.object(&object).truncate(10));
        cloud_chunk_fails(name, chunk, &[], |cloud| cloud.object(&object).resize(1 << 20, 0));
    }
    cloud_chunk_fails("no-directory", 2, &["bytes"], |cloud| cloud.object(&format!("{LAYER}/2")).push(0));
}

/// Each page has the metadata of two chunks.
#[test]
fn missing_and_truncated_pages() {
    let page = format!("{LAYER}/ChunkMetadata/0");
    let failing = |change: &dyn Fn(&mut Cloud)| {
        let mut cloud = Cloud::read("pages");
        change(&mut cloud);
        let array = find(&*cloud.open().unwrap(), LAYER);
        let (_, damaged) = naive::read_what_can_be(&*array);
        assert!(damaged.iter().all(|(_, error)| error.to_string().contains(&page)), "{damaged:?}");
        damaged.iter().map(|(at, _)| array.info().grid.count().linear_of(at)).collect::<Vec<_>>()
    };
    assert_eq!(failing(&|cloud| drop(cloud.0.remove(&page))), [0, 1]);
    assert_eq!(failing(&|cloud| cloud.object(&page).clear()), [0, 1]);
    assert_eq!(failing(&|cloud| cloud.object(&page).truncate(15)), [1]);
    assert_eq!(failing(&|cloud| cloud.object(&page).extend([0xff; 100])), [0; 0]);
}

#[test]
fn metadata_that_differs_between_page_and_object() {
    let object = format!("{LAYER}/0");
    let hash = Cloud::read("pages").0[&format!("{LAYER}/ChunkMetadata/0")][..8].to_vec();
    // as raw bytes, and in base64, as an object store keeps it
    for tag in [hash.clone(), STANDARD.encode(&hash).into_bytes()] {
        let mut cloud = Cloud::read("pages");
        cloud.tag(&object, &tag);
        naive::read_all(&*find(&*cloud.open().unwrap(), LAYER)).unwrap();
    }
    let mut other = hash;
    other[3] ^= 1;
    cloud_chunk_fails("pages", 0, &["not the same"], |cloud| cloud.tag(&object, &other));
    cloud_chunk_fails("pages", 0, &["no metadata"], |cloud| cloud.tag(&object, b"not base64!"));
}

#[test]
fn invalid_metadata_of_objects() {
    let whole = |text: &str| {
        let mut cloud = Cloud::read("no-pages");
        cloud.0.insert("ObjectMetadata.json".into(), text.into());
        let array = find(&*cloud.open().unwrap(), LAYER);
        let (_, damaged) = naive::read_what_can_be(&*array);
        assert!(damaged.iter().all(|(_, error)| matches!(error, FormatError::Damaged(_))), "{damaged:?}");
        damaged.len()
    };
    assert_eq!(whole("{"), 6);
    assert_eq!(whole("[]"), 6);
    assert_eq!(whole(r#"{"Dimensions_012LOD0/1": {"vdschunkmetadata": "AA"}}"#), 6);
    // constants and NoValue are lost
    assert_eq!(whole("{}"), 2);
    assert_eq!(whole(r#"{"Dimensions_012LOD0/1": {"x-amz-meta-VDS-Chunk-Metadata": "AAAAAAAAAAA="}}"#), 1);
}
