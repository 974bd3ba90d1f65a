//! The simulated world, real-server helpers and builders, for tests only
