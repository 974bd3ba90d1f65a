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

    fn decode(&self, text: &[u8], from: &Path) -> Result<Vec<u8>, String> {
        unpack(text, OUTPUT_BYTES_MAX)
            .map_err(|reason| format!("error decompressing field {from}: {reason}"))
    }
}

/// All members of a gzip file, at most `bytes_max` bytes.
fn unpack(packed: &[u8], bytes_max: u64) -> Result<Vec<u8>, String> {
    if packed.is_empty() {
        return Err("EOF".to_owned());
    }
    let mut unpacked = Vec::new();
    let mut decoder = MultiGzDecoder::new(packed).take(bytes_max + 1);
    decoder.read_to_end(&mut unpacked).map_err(|error| format!("gzip: {error}"))?;
    if unpacked.len() as u64 > bytes_max {
        return Err(format!("it has more than {bytes_max} bytes when it is unpacked"));
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
        assert_eq!(unpack(&packed, 100).as_deref(), Ok(&b"one two"[..]));
    }

    #[test]
    fn what_is_larger_than_the_bound_fails() {
        let packed = pack(&[b'x'; 1000]);
        assert_eq!(unpack(&packed, 1000).map(|bytes| bytes.len()), Ok(1000));
        let refused = Err("it has more than 999 bytes when it is unpacked".to_owned());
        assert_eq!(unpack(&packed, 999), refused);
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
