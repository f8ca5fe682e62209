//! NumPy files.

/// A NumPy file.
#[derive(Debug, PartialEq)]
pub struct Npy {
    /// Type of a sample: `<f4`.
    pub descr: String,
    /// Whether the first axis is the fastest.
    pub fortran_order: bool,
    /// Samples along each axis.
    pub shape: Vec<u64>,
    /// The samples' bytes.
    pub samples: Vec<u8>,
}

impl Npy {
    /// Parses a file of version 1.0, and checks that the samples are aligned.
    pub fn parse(file: &[u8]) -> Self {
        assert_eq!(&file[..8], b"\x93NUMPY\x01\x00");
        let length = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
        assert_eq!(length % 64, 0);
        let header = std::str::from_utf8(&file[10..length]).unwrap();
        assert!(header.ends_with('\n'));
        let value = |key: &str, until: &str| {
            let rest = header.split_once(&format!("'{key}': ")).unwrap().1;
            rest.split_once(until).unwrap().0.to_owned()
        };
        let shape = value("shape", ")");
        Self {
            descr: value("descr", ",").trim_matches('\'').to_owned(),
            fortran_order: value("fortran_order", ",") == "True",
            shape: shape
                .trim_start_matches('(')
                .split(',')
                .map(str::trim)
                .filter(|n| !n.is_empty())
                .map(|n| n.parse().unwrap())
                .collect(),
            samples: file[length..].to_vec(),
        }
    }
}
