//! Reading from the file with what every codec does the same way.

use crate::progress::DecodeError;
use skidder_os::File;
use std::io;

/// Reads up to `buffer.len()` bytes at `offset`, again if interrupted; 0 means end of file.
pub(crate) fn read_some(
    file: &dyn File,
    buffer: &mut [u8],
    offset: u64,
) -> Result<usize, DecodeError> {
    loop {
        match file.read_at(buffer, offset) {
            Ok(count) => return Ok(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(DecodeError::Read { offset, source }),
        }
    }
}

/// Fills `buffer` from `offset`, or as much of it as the file has.
pub(crate) fn read_full(
    file: &dyn File,
    buffer: &mut [u8],
    offset: u64,
) -> Result<usize, DecodeError> {
    let mut done = 0;
    while done < buffer.len() {
        match read_some(file, &mut buffer[done..], offset + done as u64)? {
            0 => break,
            count => done += count,
        }
    }
    Ok(done)
}
