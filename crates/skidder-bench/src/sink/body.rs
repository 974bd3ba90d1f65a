//! Bodies of requests: passed on in pieces as they come, so that counting needs no copy of them.

use super::http::{Coding, Connection, Framing, invalid};
use flate2::read::MultiGzDecoder;
use std::io::{self, Read};
use zstd_safe::{DCtx, InBuffer, OutBuffer};

/// Reads the body of a request and gives it to `each` piece by piece. Returns its length in bytes.
pub(super) fn read(
    connection: &mut Connection,
    framing: Framing,
    each: &mut dyn FnMut(&[u8]),
) -> io::Result<u64> {
    match framing {
        Framing::Length(length) => {
            read_exactly(connection, length, each)?;
            Ok(length)
        }
        Framing::Chunked => read_chunked(connection, each),
    }
}

fn read_exactly(
    connection: &mut Connection,
    length: u64,
    each: &mut dyn FnMut(&[u8]),
) -> io::Result<()> {
    let mut left = length;
    while left > 0 {
        let buffered = connection.buffered();
        let piece = buffered.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if piece > 0 {
            each(&buffered[..piece]);
            connection.consume(piece);
            left -= piece as u64;
        } else if !connection.fill_body(left)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// Chunked coding (RFC 9112, section 7.1); extensions and trailers are skipped.
fn read_chunked(connection: &mut Connection, each: &mut dyn FnMut(&[u8])) -> io::Result<u64> {
    let mut total = 0;
    loop {
        let line = connection.line()?;
        let text = std::str::from_utf8(&line).map_err(|_| invalid("a chunk has no size"))?;
        let digits = text.split(';').next().unwrap_or_default().trim();
        let size =
            u64::from_str_radix(digits, 16).map_err(|_| invalid("a chunk's size is no number"))?;
        if size == 0 {
            while !connection.line()?.is_empty() {}
            return Ok(total);
        }
        read_exactly(connection, size, each)?;
        if !connection.line()?.is_empty() {
            return Err(invalid("a chunk is longer than it said"));
        }
        total += size;
    }
}

/// Decompresses `body` behind what `out` holds.
pub(super) fn decompress(coding: Coding, body: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    match coding {
        Coding::Identity => out.extend_from_slice(body),
        Coding::Gzip => {
            MultiGzDecoder::new(body).read_to_end(out)?;
        }
        Coding::Zstd => unzstd(body, out)?,
    }
    Ok(())
}

fn unzstd(body: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let mut context = DCtx::create();
    let mut input = InBuffer::around(body);
    let mut piece = vec![0; DCtx::out_size()];
    loop {
        let mut output = OutBuffer::around(piece.as_mut_slice());
        let left = context
            .decompress_stream(&mut output, &mut input)
            .map_err(|code| io::Error::other(zstd_safe::get_error_name(code)))?;
        let written = output.pos();
        out.extend_from_slice(&piece[..written]);
        if input.pos() == body.len() && written < piece.len() {
            return if left == 0 { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
    }
}
