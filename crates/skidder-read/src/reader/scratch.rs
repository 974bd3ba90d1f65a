//! Memory of a worker, which has no state of any source.

use super::InputContext;
use skidder_decode::Codec;
use skidder_os::File;

/// Compressed bytes that are read at once.
const SCRATCH_BYTES: usize = 64 << 10;

/// Memory that a worker lends to every reader that it gives a turn.
#[derive(Debug)]
pub struct Scratch {
    pub(super) compressed: Vec<u8>,
    pub(super) skipped: Vec<u8>,
    /// The chunk of content that is no lines, unless its source still needs it.
    pub(super) chunk: Vec<u8>,
    pub(super) lines: Vec<crate::given_lines::Span>,
    /// For sources that keep nothing of theirs between two turns.
    pub(super) parsing: Option<Box<skidder_parse::chain::State>>,
}

impl Default for Scratch {
    fn default() -> Self {
        let (skipped, chunk, lines) = (Vec::new(), Vec::new(), Vec::new());
        Self { compressed: vec![0; SCRATCH_BYTES], skipped, chunk, lines, parsing: None }
    }
}

impl Scratch {
    /// The first bytes of a compressed file; how many there are.
    pub(crate) fn head_of(
        &mut self,
        file: &dyn File,
        codec: Codec,
        head: &mut [u8],
        context: &InputContext,
    ) -> usize {
        let read = skidder_decode::head(file, codec, &mut self.compressed, head, &context.decoders);
        read.map_or(0, |(count, _)| count)
    }
}
