# Thin names for `cargo xtask VERB`; all logic is in xtask/, in Rust.

.PHONY: help run test test-all bench simulate fuzz package ci tidy

help:
	@cargo xtask help

# Build the release binary, ship a small set of rotated logs to ./run/out, check that no line is lost.
run:
	@cargo xtask run

# Tests, also those against real servers, which it starts and stops.
test:
	@cargo xtask test

# All tests: these and those with a real API server of Kubernetes, whose first build takes minutes.
test-all:
	@cargo xtask test-all

# The end-to-end benchmark and its table of goals.
bench:
	@cargo xtask bench

# Whole runs in a simulated world, from seeds.
simulate:
	@cargo xtask simulate

# Damaged files and checkpoints, from seeds, for a minute.
fuzz:
	@cargo xtask fuzz

# A Debian package, checked.
package:
	@cargo xtask package

# What the continuous integration runs.
ci:
	@cargo xtask ci

tidy:
	@cargo xtask tidy
