//! Line splitting and compressed streams with checkpoints
