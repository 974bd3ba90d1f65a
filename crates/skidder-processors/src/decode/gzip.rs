//! `decompress_gzip_field`: unpacks a field that holds a gzip file.

use super::in_place::Decoder;
use flate2::bufread::MultiGzDecoder;
use skidder_event::Path;
use std::io::Read;

/// Most bytes that a field may have when it is unpacked, as many as a line may have (`message_max_bytes`). A
/// few bytes of gzip can become gigabytes; beyond this the processor fails.
const OUTPUT_BYTES_MAX: u64 = 10 << 20;

/// A gzip file.
#[derive(Debug)]
pub(super) struct Gzip;

impl Decoder for Gzip {
    const NAME: &'static str = "decompress_gzip_field";
    const FAILED: &'static str = "Failed to decompress field in decompress_gzip_field processor";
    const NOUN: &'static str = "value";
    type Decoded = Vec<u8>;
    type Refused = NotUnpacked;

    fn decode(&self, text: &[u8]) -> Result<Vec<u8>, NotUnpacked> {
        unpack(text, OUTPUT_BYTES_MAX)
    }

    fn say(reason: &NotUnpacked, _: &[u8], from: &Path) -> String {
        format!("error decompressing field {from}: {reason}")
    }
}

/// Why a field could not be unpacked.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotUnpacked {
    #[error("EOF")]
    Empty,
    #[error("gzip: {0}")]
    Damaged(std::io::Error),
    #[error("it has more than {0} bytes when it is unpacked")]
    TooLarge(u64),
}

/// All members of a gzip file, at most `bytes_max` bytes.
fn unpack(packed: &[u8], bytes_max: u64) -> Result<Vec<u8>, NotUnpacked> {
    if packed.is_empty() {
        return Err(NotUnpacked::Empty);
    }
    let mut unpacked = Vec::new();
    let mut decoder = MultiGzDecoder::new(packed).take(bytes_max + 1);
    decoder.read_to_end(&mut unpacked).map_err(NotUnpacked::Damaged)?;
    if unpacked.len() as u64 > bytes_max {
        return Err(NotUnpacked::TooLarge(bytes_max));
    }
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::read::GzEncoder;

    fn pack(text: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        GzEncoder::new(text, Compression::fast()).read_to_end(&mut packed).expect("a slice");
        packed
    }

    #[test]
    fn all_members_are_unpacked() {
        let packed = [pack(b"one "), pack(b"two")].concat();
        assert_eq!(unpack(&packed, 100).unwrap(), b"one two");
    }

    #[test]
    fn what_is_larger_than_the_bound_fails() {
        let packed = pack(&[b'x'; 1000]);
        assert_eq!(unpack(&packed, 1000).unwrap().len(), 1000);
        let refused = unpack(&packed, 999).unwrap_err().to_string();
        assert_eq!(refused, "it has more than 999 bytes when it is unpacked");
    }

    #[test]
    fn damaged_and_cut_files_fail() {
        let packed = pack(b"some text that is packed");
        for end in 0..packed.len() {
            assert!(unpack(&packed[..end], 100).is_err(), "cut at {end}");
        }
        assert!(unpack(b"no gzip", 100).is_err());
        let behind = [packed, b"garbage".to_vec()].concat();
        assert!(unpack(&behind, 100).is_err());
    }
}
