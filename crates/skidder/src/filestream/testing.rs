//! For tests of inputs that are read with the parsers of `filestream`.

use skidder_config::{Problems, Section, Settings};
use skidder_input::Input;
use skidder_inputs::{Context, Wanted};
use skidder_net::Sockets;
use skidder_os::{RealFs, SystemClock};
use std::sync::Arc;

/// What reads an input.
type Read = fn(&Section<'_>, &Context) -> Option<Box<dyn Input>>;

/// Reads an input from its settings; returns it, and the problems.
pub(super) fn read_text(text: &str, read: Read) -> (Option<Box<dyn Input>>, String) {
    let settings = Settings::parse("f.yml", text).unwrap();
    let problems = Problems::new();
    let root = settings.root(&problems);
    let context = Context {
        fs: Arc::new(RealFs),
        clock: Arc::new(SystemClock::new()),
        sockets: Sockets::default(),
        servers: skidder_inputs::http_endpoint::Servers::default(),
        wanted: Wanted::default(),
        data: None,
    };
    let input = read(&root, &context);
    root.finish();
    (input, problems.to_string())
}
