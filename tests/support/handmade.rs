//! Test support: builds small ZGY files from the tables of the format. Has no dependencies, so that integration tests
//! can include it too.
#![allow(dead_code)]

/// The content of a file. All versions have their parts in the order of versions 2 to 4.
pub(crate) struct Handmade {
    pub version: u32,
    pub code: u8,
    pub size: [i32; 3],
    /// Not in version 1.
    pub brick: [i32; 3],
    pub range: [f32; 2],
    /// Not in version 1.
    pub strings: Vec<u8>,
    /// Number of entries of the alpha table.
    pub alpha: usize,
    /// Entries of the brick table.
    pub entries: Vec<u64>,
    /// The bytes after the header.
    pub body: Vec<u8>,
}

impl Handmade {
    /// Creates a file with as many alpha entries as bricks, which is correct if all levels are one brick high.
    pub(crate) fn new(version: u32, code: u8, size: [i32; 3], brick: [i32; 3], entries: &[u64]) -> Self {
        Self {
            version,
            code,
            size,
            brick,
            range: [-28.0, 227.0],
            strings: b"by hand\0no source\0\0m\0ms\0".to_vec(),
            alpha: entries.len(),
            entries: entries.to_vec(),
            body: Vec::new(),
        }
    }

    /// Returns the offset of the body.
    pub(crate) fn body_at(&self) -> u64 {
        let parts = if self.version == 1 { 40 + 146 + 1032 } else { 9 + 337 + self.strings.len() + 2064 };
        (parts + 8 * (self.alpha + self.entries.len())) as u64
    }

    /// Returns the bytes of the file.
    pub(crate) fn build(&self) -> Vec<u8> {
        let mut file = [&b"VBS\0"[..], &self.version.to_le_bytes()].concat();
        if self.version == 1 {
            self.head_v1(&mut file);
        } else {
            self.head_v2(&mut file);
        }
        for entry in std::iter::repeat_n(&0, self.alpha).chain(&self.entries) {
            let swapped = if self.version == 1 { entry.rotate_left(32) } else { *entry };
            file.extend(swapped.to_le_bytes());
        }
        assert_eq!(file.len() as u64, self.body_at());
        file.extend(&self.body);
        file
    }

    fn head_v1(&self, file: &mut Vec<u8>) {
        let alpha = 40 + 146 + 1032;
        for offset in [40, alpha, alpha + 8 * self.alpha as u64, 40 + 146] {
            file.extend(offset.rotate_left(32).to_le_bytes());
        }
        put(file, &self.size.map(i32::to_le_bytes));
        put(file, &[10, 20, 0, 1, 2, 4, 0, 0, 0].map(i32::to_le_bytes)); // orig, inc, incfactor
        put(file, &[10, 11, 10, 0, 20, 20, 22, 0].map(i32::to_le_bytes));
        put(file, &[0.0, 25.0, 0.0, 0.0, 0.0, 0.0, 12.5, 0.0].map(f64::to_le_bytes));
        file.extend([self.code, 2]);
        put(file, &[self.range[1], self.range[0]].map(f32::to_le_bytes));
        put(file, &[[1, 0, 0, 0]; 256]);
    }

    fn head_v2(&self, file: &mut Vec<u8>) {
        file.push(0);
        put(file, &self.brick.map(i32::to_le_bytes));
        file.push(self.code);
        put(file, &self.range.map(f32::to_le_bytes));
        file.extend((0..48).chain([self.code]));
        put(file, &[10.0, 20.0, 0.0, 1.0, 2.0, 4.0].map(f32::to_le_bytes));
        put(file, &self.size.map(i32::to_le_bytes));
        file.extend([0; 24]);
        put(file, &[7i64.to_le_bytes(), 1.5f64.to_le_bytes(), 2.5f64.to_le_bytes()]);
        put(file, &[-1f32, 3.0].map(f32::to_le_bytes));
        file.extend([0; 24 + 1 + 32]);
        put(file, &[10.0, 11.0, 10.0, 0.0, 20.0, 20.0, 22.0, 0.0].map(f32::to_le_bytes));
        put(file, &[0.0, 25.0, 0.0, 0.0, 0.0, 0.0, 12.5, 0.0].map(f64::to_le_bytes));
        file.push(1);
        file.extend(1f64.to_le_bytes());
        file.push(2);
        file.extend(0.001f64.to_le_bytes());
        file.extend((self.strings.len() as u32).to_le_bytes());
        file.extend(&self.strings);
        file.extend(256i64.to_le_bytes());
        put(file, &self.range.map(f32::to_le_bytes));
        put(file, &[1i64.to_le_bytes(); 256]);
    }
}

fn put<const N: usize>(file: &mut Vec<u8>, numbers: &[[u8; N]]) {
    file.extend(numbers.as_flattened());
}

/// Returns the header of a ZFP stream of float32 for a brick of `shape`, slowest axis first. Any bits may follow as
/// samples.
pub(crate) fn zfp_header(shape: [i32; 3], mode: u16) -> Vec<u8> {
    let [nz, ny, nx] = shape.map(|n| n as u64 - 1);
    let meta = 2 | 2 << 2 | nx << 4 | ny << 20 | nz << 36 | u64::from(mode) << 52;
    [&b"zfp\x05"[..], &meta.to_le_bytes()].concat()
}

/// Pseudo-random bytes that are the same in every run (xorshift).
pub(crate) struct Noise(pub u64);

impl Noise {
    /// Returns a 64-bit number.
    pub(crate) fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.number() % n.max(1) as u64) as usize
    }

    /// Returns `n` bytes.
    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.number() as u8).collect()
    }
}
