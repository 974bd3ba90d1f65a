//! The body of a request: read, counted and decompressed, within limits.

use super::in_flight::{Counted, Over};
use crate::stream::buffers::Buffers;
use flate2::read::MultiGzDecoder;
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use skidder_event::Parts;
use std::io::Read as _;
use std::time::Duration;
use tokio::time::timeout;

/// Decompressed at once.
const INFLATED_BYTES: usize = 64 << 10;

/// The largest window of zstd is 2 to the power of this: what RFC 9659 allows in HTTP, 8 MiB.
const WINDOW_LOG_MAX: u32 = 23;

/// Reserved at once for a body: a client may declare more than it sends.
const RESERVED_BYTES_MAX: usize = 4 << 20;

/// How long nothing of a body may come.
pub(super) const BODY_PAUSE_MAX: Duration = Duration::from_mins(1);

/// Why a request is not taken.
#[derive(Debug)]
pub(super) enum BodyError {
    /// Answer with this status and message.
    Refused(StatusCode, String),
    /// It breaks off, or is not packed as it says, behind so many bytes.
    Damaged(usize, String),
    /// Too many bytes are in flight.
    InFlight(Over),
    /// It contradicts the headers of its request.
    Contradiction(String),
}

/// How the body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Plain,
    Gzip,
    Zstd,
}

impl Coding {
    /// Of the header `Content-Encoding`. Only for faces it is any that HTTP allows: Filebeat knows no zstd, and no other
    /// spelling.
    ///
    /// # Errors
    /// It is none that is known.
    pub(super) fn of(header: Option<&[u8]>, is_face: bool) -> Result<Self, BodyError> {
        let written = header.unwrap_or_default();
        let name = if is_face { written.to_ascii_lowercase() } else { written.to_owned() };
        match &*name {
            b"" => Ok(Self::Plain),
            b"gzip" | b"x-gzip" => Ok(Self::Gzip),
            b"zstd" if is_face => Ok(Self::Zstd),
            b"identity" if is_face => Ok(Self::Plain),
            _ => {
                let name = String::from_utf8_lossy(written);
                let message = format!("unsupported Content-Encoding type {name:?}");
                Err(BodyError::Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
            }
        }
    }
}

fn too_long(bytes_max: usize) -> BodyError {
    let message = format!("the body is longer than max_body_bytes, {bytes_max} bytes");
    BodyError::Refused(StatusCode::PAYLOAD_TOO_LARGE, message)
}

fn damaged(position: usize, why: &dyn std::fmt::Display) -> BodyError {
    BodyError::Damaged(position, why.to_string())
}

/// An empty buffer for a body of this length, if it is known.
fn buffer_for(length: Option<u64>, buffers: &Buffers) -> Parts {
    let known = length.and_then(|length| usize::try_from(length).ok());
    match known {
        Some(length) if !buffers.suit(length) => {
            let bytes = Vec::with_capacity(length.min(RESERVED_BYTES_MAX));
            Parts { bytes, ..Parts::default() }
        }
        _ => buffers.take(),
    }
}

/// Reads a body as it was sent, into a buffer that suits it.
///
/// # Errors
/// It is too long, breaks off, or does not come.
pub(super) async fn read(
    mut body: Incoming,
    bytes_max: usize,
    mut counted: Option<&mut Counted>,
    buffers: &Buffers,
) -> Result<Parts, BodyError> {
    let hint = body.size_hint();
    if hint.lower() > bytes_max as u64 {
        return Err(too_long(bytes_max));
    }
    let mut parts = buffer_for(hint.exact(), buffers);
    let bytes = &mut parts.bytes;
    loop {
        let Ok(frame) = timeout(BODY_PAUSE_MAX, body.frame()).await else {
            let message = format!("nothing of the body came for {} s", BODY_PAUSE_MAX.as_secs());
            return Err(BodyError::Refused(StatusCode::REQUEST_TIMEOUT, message));
        };
        let piece = match frame {
            None => return Ok(parts),
            // The client is gone, or its chunks make no sense.
            Some(Err(error)) => return Err(damaged(bytes.len(), &error)),
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        if bytes.len() + piece.len() > bytes_max {
            return Err(too_long(bytes_max));
        }
        if let Some(counted) = counted.as_deref_mut() {
            counted.add(piece.len()).map_err(BodyError::InFlight)?;
        }
        bytes.extend_from_slice(&piece);
    }
}

/// Decompresses a body.
///
/// # Errors
/// It is not packed so, or too long.
pub(super) fn unpack(
    coding: Coding,
    packed: &[u8],
    bytes_max: usize,
    counted: &mut Counted,
    buffers: &Buffers,
) -> Result<Parts, BodyError> {
    let mut parts = buffers.take();
    let bytes = &mut parts.bytes;
    let grown = |more: usize, bytes: &[u8]| {
        if bytes.len() > bytes_max {
            return Err(too_long(bytes_max));
        }
        counted.add(more).map_err(BodyError::InFlight)
    };
    match coding {
        Coding::Plain => bytes.extend_from_slice(packed),
        Coding::Gzip => inflate(packed, bytes, grown)?,
        Coding::Zstd => unpack_zstd(packed, bytes, grown)?,
    }
    Ok(parts)
}

fn inflate(
    packed: &[u8],
    bytes: &mut Vec<u8>,
    mut grown: impl FnMut(usize, &[u8]) -> Result<(), BodyError>,
) -> Result<(), BodyError> {
    if packed.len() < 2 || packed[..2] != [0x1f, 0x8b] {
        let why = if packed.is_empty() { "EOF" } else { "gzip: invalid header" };
        let message = format!("failed to create gzip reader: {why}");
        return Err(BodyError::Refused(StatusCode::INTERNAL_SERVER_ERROR, message));
    }
    let mut decoder = MultiGzDecoder::new(packed);
    loop {
        let before = bytes.len();
        bytes.resize(before + INFLATED_BYTES, 0);
        let read = decoder.read(&mut bytes[before..]);
        let read = read.map_err(|error| damaged(before, &error))?;
        bytes.truncate(before + read);
        if read == 0 {
            return Ok(());
        }
        grown(read, bytes)?;
    }
}

fn unpack_zstd(
    packed: &[u8],
    bytes: &mut Vec<u8>,
    mut grown: impl FnMut(usize, &[u8]) -> Result<(), BodyError>,
) -> Result<(), BodyError> {
    let failed = |at, code| damaged(at, &format_args!("zstd: {}", zstd_safe::get_error_name(code)));
    let mut context = zstd_safe::DCtx::create();
    context
        .set_parameter(zstd_safe::DParameter::WindowLogMax(WINDOW_LOG_MAX))
        .map_err(|code| failed(0, code))?;
    let mut input = zstd_safe::InBuffer::around(packed);
    loop {
        let before = bytes.len();
        bytes.reserve(INFLATED_BYTES);
        let mut output = zstd_safe::OutBuffer::around_pos(bytes, before);
        let missing = context.decompress_stream(&mut output, &mut input);
        let missing = missing.map_err(|code| failed(before, code))?;
        let more = bytes.len() - before;
        grown(more, bytes)?;
        let is_read = input.pos() == packed.len();
        if is_read && missing == 0 {
            return Ok(());
        }
        if is_read && more == 0 {
            return Err(damaged(before, &"zstd: unexpected end"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_take_codings_in_any_case_and_filebeat_does_not() {
        for (written, of_face, of_filebeat) in [
            ("", Some(Coding::Plain), Some(Coding::Plain)),
            ("gzip", Some(Coding::Gzip), Some(Coding::Gzip)),
            ("GZIP", Some(Coding::Gzip), None),
            ("X-GZip", Some(Coding::Gzip), None),
            ("ZSTD", Some(Coding::Zstd), None),
            ("Identity", Some(Coding::Plain), None),
            ("br", None, None),
        ] {
            let of = |is_face| match Coding::of(Some(written.as_bytes()), is_face) {
                Ok(coding) => Some(coding),
                Err(BodyError::Refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)) => {
                    assert!(message.contains(written), "{message}");
                    None
                }
                Err(other) => panic!("{written}: {other:?}"),
            };
            assert_eq!((of(true), of(false)), (of_face, of_filebeat), "{written}");
        }
    }
}
