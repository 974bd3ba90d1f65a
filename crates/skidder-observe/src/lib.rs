//! Metric names and the HTTP endpoint
