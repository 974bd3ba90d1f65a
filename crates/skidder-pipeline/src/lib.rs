//! Queue, settle, ledger and dead letters
