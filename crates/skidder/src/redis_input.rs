//! Reading the settings of a `redis` input.

use skidder_config::{Group, Section};
use skidder_input::Input;
use skidder_input_redis::REDIS_INPUT;
use skidder_inputs::Context;

/// Settings of `redis`.
pub(crate) static REDIS: Group =
    Group::new("input.redis", "The slow log, lists or streams of servers of Redis.")
        .include(&[&REDIS_INPUT, &skidder_inputs::EVERY_INPUT]);

/// Reads one input; the section reports mistakes.
pub(crate) fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    section.declared_by(&REDIS);
    skidder_inputs::read_common(section);
    let host = crate::agent::hostname();
    let input = skidder_input_redis::read(section, &context.fs, &host)?;
    if let Some((name, read)) = input.consumes() {
        context.wanted.consume(section, name, read.into_iter(), input.consumer());
    }
    Some(Box::new(input))
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_config::{Problems, Settings};
    use skidder_inputs::Wanted;
    use skidder_net::Sockets;
    use skidder_os::{RealFs, SystemClock};
    use std::sync::Arc;

    /// Reads two inputs of one configuration; returns the problems.
    fn read_both(one: &str, other: &str) -> String {
        let text = format!("a: {{hosts: [h], {one}}}\nb: {{hosts: [h], {other}}}");
        let settings = Settings::parse("f.yml", &text).unwrap();
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
        for name in ["a", "b"] {
            let section = root.section(name);
            assert!(read(&section, &context).is_some(), "{text}: {problems}");
        }
        root.skip();
        problems.to_string()
    }

    #[test]
    fn two_inputs_that_read_the_same_need_their_own_consumers() {
        for (one, other) in [
            ("lists: [l]", "lists: [l], consumer: other"),
            ("lists: [l]", "lists: [m]"),
            ("lists: [l]", "streams: [l], group: g"),
            ("streams: [s], group: g", "streams: [s], group: h"),
            ("scan_frequency: 1s", "scan_frequency: 1s"),
        ] {
            assert_eq!(read_both(one, other), "", "{one} {other}");
        }
        for (one, expected) in [
            ("lists: [l]", "reads the list `l` of h:6379"),
            ("streams: [s], group: g, consumer: c", "in the group `g` as the consumer `c`, too"),
        ] {
            let problems = read_both(one, one);
            assert!(problems.starts_with("error: f.yml:2:"), "{problems}");
            assert!(problems.contains(expected), "{problems}");
        }
    }
}
