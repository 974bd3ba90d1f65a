//! Cursors and checkpoints on disk
