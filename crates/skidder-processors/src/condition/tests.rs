//! Every operator as Filebeat has it, read from YAML and tried on an event.

use super::*;
use skidder_config::{Problems, Settings};
use skidder_event::{Base, Batch, Map, Provenance, Row, SourceId, Text, Value};
use std::sync::Arc;

/// Half of the fields are the source's, half are the event's own: a condition sees no difference.
fn event() -> Batch {
    let mut fields = Map::new();
    fields.insert_path("log.file.path", "/var/log/nginx/access.log");
    fields.insert_path("agent.name", "web");
    fields.insert_path("port", 443);
    fields.insert_path("tags", Value::List(vec!["web".into(), "prod eu".into(), Value::Int(5)]));
    fields.insert_path("secure", true);
    fields.insert_path("nothing", Value::Null);
    fields.insert_path("ip", Value::List(vec!["10.1.2.3".into(), "2001:db8::1".into()]));
    let base = Arc::new(Base::new(&fields, &Map::new()));
    let message = "error: disk full";
    let provenance = Provenance::new(SourceId(1), 0..17);
    let mut batch = Batch::new(message.into(), true, Arc::clone(&base), provenance);
    batch.push(Row::new(7, 17, Text { start: 0, len: message.len() as u32 }, 1_000));
    let mut event = batch.event_mut(0, &base);
    let mut put = |name: &str, value: Value| {
        event.put(&Path::parse(name).unwrap(), &value).unwrap();
    };
    put("http.response.status_code", Value::Int(404));
    put("http.bytes", "1024".into());
    put("negative", Value::Int(-1));
    put("large", Value::UInt(u64::MAX));
    put("load", Value::Float(1.5));
    put("source.ip", "192.168.7.9".into());
    put("mapped", "::ffff:127.0.0.1".into());
    put("words", Value::List(vec!["alpha".into(), "beta".into()]));
    put("@metadata.pipeline", "p".into());
    batch
}

fn read(text: &str) -> (Option<Condition>, String) {
    let settings = Settings::parse("c.yml", &format!("when: {text}")).unwrap();
    let problems = Problems::new();
    let root = settings.root(&problems);
    let condition = root.item("when").and_then(|item| Condition::read(&item));
    drop(root);
    (condition, problems.to_string())
}

#[test]
fn conditions_hold_as_in_filebeat() {
    let table = [
        // equals: of the same kind and exact.
        ("{equals: {agent.name: web}}", true),
        ("{equals: {agent: {name: web}}}", true),
        ("{equals.agent.name: web}", true),
        ("{equals: {agent.name: we}}", false),
        ("{equals: {agent.name: WEB}}", false),
        ("{equals: {port: 443}}", true),
        ("{equals: {port: '443'}}", false),
        ("{equals: {http.bytes: 1024}}", false),
        ("{equals: {http.bytes: '1024'}}", true),
        ("{equals: {negative: -1}}", true),
        ("{equals: {large: 18446744073709551615}}", true),
        ("{equals: {load: 1}}", false),
        ("{equals: {secure: true}}", true),
        ("{equals: {secure: 'true'}}", false),
        ("{equals: {secure: false}}", false),
        ("{equals: {tags: web}}", false),
        ("{equals: {agent: web}}", false),
        ("{equals: {agent.name: web, port: 443}}", true),
        ("{equals: {agent.name: web, port: 80}}", false),
        ("{equals: {no.such: web}}", false),
        ("{equals: {agent.name.deeper: web}}", false),
        ("{equals: {nothing: ''}}", false),
        ("{equals: {log.offset: 7}}", true),
        ("{equals: {'@metadata.pipeline': p}}", true),
        // contains: text, or an element.
        ("{contains: {message: disk}}", true),
        ("{contains: {message: Disk}}", false),
        ("{contains: {message: ''}}", true),
        ("{contains: {tags: prod}}", true),
        ("{contains: {tags: nothing}}", false),
        ("{contains: {words: bet}}", true),
        ("{contains: {port: '4'}}", false),
        ("{contains: {agent: web}}", false),
        ("{contains: {no.such: ''}}", false),
        // regexp: unanchored.
        ("{regexp: {message: '^err.r:'}}", true),
        ("{regexp: {message: 'r$'}}", false),
        ("{regexp: {words: '^b'}}", true),
        ("{regexp: {log.file.path: 'nginx/.*\\.log$'}}", true),
        ("{regexp: {port: '4'}}", false),
        // range: numbers, and text that is one; all bounds.
        ("{range: {http.response.status_code: {gte: 400, lt: 500}}}", true),
        ("{range: {http.response.status_code.gte: 400, http.response.status_code.lt: 404}}", false),
        ("{range: {http.response.status_code.gt: 404}}", false),
        ("{range: {http.response.status_code.lte: 404}}", true),
        ("{range: {http.bytes.gt: 1000}}", true),
        ("{range: {load: {gt: 1.4, lte: '1.5'}}}", true),
        ("{range: {negative.lt: 0}}", true),
        ("{range: {large.gt: 0}}", true),
        ("{range: {agent.name.gt: 0}}", false),
        ("{range: {secure.gt: 0}}", false),
        ("{range: {no.such.gt: 0}}", false),
        ("{range: {load.gt: 1, port.lt: 1000}}", true),
        // network: names and prefixes; any of several addresses, any of several networks.
        ("{network: {source.ip: private}}", true),
        ("{network: {source.ip: public}}", false),
        ("{network: {source.ip: 192.168.0.0/16}}", true),
        ("{network: {source.ip: 192.168.7.77/24}}", true),
        ("{network: {source.ip: [10.0.0.0/8, 192.168.7.0/28]}}", true),
        ("{network: {source: {ip: [loopback, multicast]}}}", false),
        ("{network: {mapped: loopback}}", true),
        ("{network: {ip: '2001:db8::/32'}}", true),
        ("{network: {ip: [10.0.0.0/8]}}", true),
        ("{network: {ip: 172.16.0.0/12}}", false),
        ("{network: {agent.name: public}}", false),
        ("{network: {no.such: public}}", false),
        // has_fields: all of them; null is a value.
        ("{has_fields: [agent.name, port, nothing]}", true),
        ("{has_fields: [agent, no.such]}", false),
        ("{has_fields: message}", true),
        ("{has_fields: ['@timestamp', log.offset]}", true),
        // and, or, not.
        ("{and: [{equals: {port: 443}}, {contains: {message: disk}}]}", true),
        ("{and: [{equals: {port: 443}}, {contains: {message: net}}]}", false),
        ("{or: [{equals: {port: 80}}, {contains: {message: disk}}]}", true),
        ("{or: [{equals: {port: 80}}]}", false),
        ("{not: {equals: {port: 80}}}", true),
        ("{not: {equals: {no.such: 80}}}", true),
        ("{not: {or: [{equals: {port: 443}}, {has_fields: [x]}]}}", false),
    ];
    let batch = event();
    for (text, expected) in table {
        let (condition, problems) = read(text);
        assert_eq!(problems, "", "{text}");
        assert_eq!(condition.expect(text).check(batch.event(0)), expected, "{text}");
    }
}

#[test]
fn mistakes_are_told_at_their_key() {
    let table = [
        (
            "{equals: {a: 1}, contains: {b: x}}",
            "error: c.yml:1:7: `when` has several operators: equals, contains\n\
             hint: make each an item of a list under `and`; Filebeat would use only one of them",
        ),
        (
            "{equal: {a: 1}}",
            "error: c.yml:1:8: unknown setting `when.equal`\nhint: did you mean `equals`?",
        ),
        (
            "{equals: {a: 1.5}}",
            "error: c.yml:1:20: `when.equals.a` is `1.5`; expected a whole number, a text or \
             `true` or `false`",
        ),
        (
            "{contains: {a: 1}}",
            "error: c.yml:1:22: `when.contains.a` is `1`; expected a text\n\
             hint: put it in quotes",
        ),
        (
            "{regexp: {a: '(b'}}",
            "error: c.yml:1:20: `when.regexp.a`: `(b` is not a regular expression: unclosed group",
        ),
        (
            "{range: {a: 1}}",
            "error: c.yml:1:19: `when.range.a` does not end with `gte`, `gt`, `lte` or `lt`\n\
             hint: write `a.gte: 1`, or `a: {gte: 1}`",
        ),
        (
            "{range: {a.gt: much}}",
            "error: c.yml:1:22: `when.range.a.gt` is `much`; expected a number",
        ),
        (
            "{network: {a: [10.0.0.0/8, 10.0.0.1]}}",
            "error: c.yml:1:34: `when.network.a[1]`: `10.0.0.1` is no network; use an address with \
             a prefix length as in `192.0.2.0/24` or `2001:db8::/32`, or one of loopback, \
             global_unicast, unicast, link_local_unicast, interface_local_multicast, \
             link_local_multicast, multicast, unspecified, private, public",
        ),
        ("{and: []}", "error: c.yml:1:13: `when.and` is empty"),
        ("{equals: {}}", "error: c.yml:1:16: `when.equals` is empty"),
        (
            "{has_fields: [a..b]}",
            "error: c.yml:1:20: field name `a..b` has an empty part between its dots",
        ),
        (
            "{not: {range: {x.lt: a}}}",
            "error: c.yml:1:28: `when.not.range.x.lt` is `a`; expected a number",
        ),
    ];
    for (text, expected) in table {
        let (condition, problems) = read(text);
        assert_eq!(problems, expected, "{text}");
        assert!(condition.is_none(), "{text}");
    }
}

#[test]
fn named_networks_are_those_of_go() {
    let table = [
        ("127.8.0.1", "loopback"),
        ("::1", "loopback"),
        ("8.8.8.8", "public unicast global_unicast"),
        ("10.0.0.1", "private unicast global_unicast"),
        ("172.31.255.255", "private unicast global_unicast"),
        ("fd12::1", "private unicast global_unicast"),
        ("fc00::1", "public unicast global_unicast"),
        ("169.254.1.1", "link_local_unicast"),
        ("fe80::1", "link_local_unicast"),
        ("224.0.0.251", "link_local_multicast multicast"),
        ("239.1.1.1", "multicast public"),
        ("ff01::1", "interface_local_multicast multicast"),
        ("ff02::1", "link_local_multicast multicast"),
        ("ff05::1", "multicast public"),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("255.255.255.255", ""),
    ];
    for (text, expected) in table {
        let address = network::address(text.as_bytes()).unwrap();
        for name in Network::NAMES {
            let wanted = expected.split(' ').any(|word| word == name);
            assert_eq!(Network::parse(name).unwrap().contains(address), wanted, "{text} {name}");
        }
    }
}

#[test]
fn what_cannot_vary_is_decided_and_the_rest_is_left() {
    let batch = event();
    let decide = |text: &str| {
        let condition = read(text).0.expect(text);
        match condition.decide(batch.event(0), &|path| path.is_message()) {
            Ok(truth) => truth.to_string(),
            Err(open) => open.to_string(),
        }
    };
    assert_eq!(decide("{equals: {port: 443}}"), "true");
    assert_eq!(decide("{contains: {message: x}}"), "message contains `x`");
    let and =
        "{and: [{equals: {port: 443}}, {contains: {message: x}}, {not: {regexp: {message: why}}}]}";
    assert_eq!(decide(and), "and(message contains `x`, not(message matches `why`))");
    assert_eq!(decide("{and: [{contains: {message: x}}, {equals: {port: 1}}]}"), "false");
    assert_eq!(decide("{or: [{contains: {message: x}}, {equals: {port: 443}}]}"), "true");
    assert_eq!(decide("{not: {range: {port: {gte: 1, lt: 9}}}}"), "true");
}
