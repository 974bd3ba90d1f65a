//! A server of streams over a simulated network.
