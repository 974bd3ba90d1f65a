//! Blocks of a file that were read: objects that stand near each other cost one read.

use crate::JournalError;
use skidder_os::File;
use std::io;

/// Bytes of a block.
const BLOCK: usize = 16 << 10;

/// A block that was read; the file may have ended within it.
#[derive(Default)]
struct Block {
    number: u64,
    bytes: Box<[u8]>,
    /// Bytes that the file had; 0: nothing was read.
    len: usize,
}

/// Some blocks of a file, each in the place that its number says.
pub(crate) struct Blocks {
    blocks: Vec<Block>,
    /// Bytes that stand in two blocks, or in more.
    joined: Vec<u8>,
}

impl Blocks {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            blocks: std::iter::repeat_with(Block::default).take(count).collect(),
            joined: Vec::new(),
        }
    }

    /// Forgets what was read: the file may have changed.
    pub(crate) fn forget(&mut self) {
        for block in &mut self.blocks {
            block.len = 0;
        }
    }

    /// The same, and frees the memory.
    pub(crate) fn release(&mut self) {
        self.blocks.fill_with(Block::default);
        self.joined = Vec::new();
    }

    /// These bytes of the file.
    #[inline]
    pub(crate) fn get(
        &mut self,
        file: &dyn File,
        offset: u64,
        len: usize,
    ) -> Result<&[u8], JournalError> {
        let within = (offset % BLOCK as u64) as usize;
        if within + len > BLOCK {
            return self.join(file, offset, len);
        }
        let block = self.block(file, offset / BLOCK as u64)?;
        block.get(within..within + len).ok_or(JournalError::Damaged { offset, what: BEYOND })
    }

    fn block(&mut self, file: &dyn File, number: u64) -> Result<&[u8], JournalError> {
        let count = self.blocks.len() as u64;
        let block = &mut self.blocks[(number % count) as usize];
        if block.number != number || block.len == 0 {
            if block.bytes.is_empty() {
                block.bytes = vec![0; BLOCK].into();
            }
            block.len = 0;
            block.len = read(file, &mut block.bytes, number * BLOCK as u64)?;
            block.number = number;
        }
        Ok(&block.bytes[..block.len])
    }

    fn join(&mut self, file: &dyn File, offset: u64, len: usize) -> Result<&[u8], JournalError> {
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        if len <= 2 * BLOCK {
            let mut at = offset;
            let end = offset + len as u64;
            while at < end {
                let within = (at % BLOCK as u64) as usize;
                let count = (BLOCK - within).min((end - at) as usize);
                let block = self.block(file, at / BLOCK as u64)?;
                let part = block.get(within..within + count);
                joined
                    .extend_from_slice(part.ok_or(JournalError::Damaged { offset, what: BEYOND })?);
                at += count as u64;
            }
        } else {
            joined.resize(len, 0);
            if read(file, &mut joined, offset)? < len {
                return Err(JournalError::Damaged { offset, what: BEYOND });
            }
        }
        self.joined = joined;
        Ok(&self.joined)
    }
}

const BEYOND: &str = "an object ends beyond the end of the file";

/// Reads as much as there is.
pub(crate) fn read(file: &dyn File, buffer: &mut [u8], offset: u64) -> Result<usize, io::Error> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
