//! What zstd and lz4 share: frames one behind the other, skippable ones among them.

use super::Stop;
use super::input::Input;
use crate::codec::{Codec, SKIPPABLE_HEAD_BYTES, SKIPPABLE_MAGIC, is_skippable};
use crate::progress::Damage;

/// What comes behind a frame, or at the start of a file.
pub(super) enum Next {
    /// The end of the file.
    End,
    /// A skippable frame, whose head is consumed; this much of it follows.
    Skippable(u64),
    /// A frame, of which nothing is consumed.
    Frame,
    /// No frame.
    Garbage,
}

/// Looks at what comes between two frames that begin with `magic`.
pub(super) fn next(input: &mut Input<'_>, codec: Codec, magic: u32) -> Result<Next, Stop> {
    if input.is_at_end()? {
        return if input.offset() == 0 { Err(Stop::Short) } else { Ok(Next::End) };
    }
    let first_of_magic = |first| first == magic as u8 || first & 0xf0 == SKIPPABLE_MAGIC as u8;
    let found = input.peek_if(first_of_magic)?.map_or(0, u32::from_le_bytes);
    if is_skippable(found) {
        let [_, _, _, _, length @ ..] = input.peek::<8>()?;
        input.advance(SKIPPABLE_HEAD_BYTES);
        return Ok(Next::Skippable(u64::from(u32::from_le_bytes(length))));
    }
    if found == magic {
        Ok(Next::Frame)
    } else if input.offset() == 0 {
        Err(Stop::Damaged(Damage::NotOf { codec }))
    } else {
        Ok(Next::Garbage)
    }
}

/// Passes over a piece of the `left` bytes of a skippable frame; returns how many are left then.
pub(super) fn skip(input: &mut Input<'_>, left: u64) -> Result<u64, Stop> {
    let passed = input.piece(usize::try_from(left).unwrap_or(usize::MAX))?.len() as u64;
    if passed == 0 {
        return Err(Stop::Short);
    }
    input.advance(passed);
    Ok(left - passed)
}
