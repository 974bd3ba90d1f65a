//! Processors, conditions and the compiled plan
