//! Settings as they are read.

use crate::netflow::read;
use crate::testing::{context, read_with};
use skidder_net::Sockets;

fn problems(text: &str) -> (bool, String) {
    let (input, problems) = read_with(text, |section| read(section, &context(&Sockets::default())));
    (input.is_some(), problems)
}

#[test]
fn all_settings_are_read() {
    let custom = concat!(env!("CARGO_MANIFEST_DIR"), "/../skidder-netflow/testdata/custom.yml");
    let text = format!(
        "{{host: 'localhost:0', network: udp4, max_message_size: 64KiB, read_buffer: 1MiB, \
         protocols: [V1, v5, v6, v7, v8, v9, ipfix, sflow], expiration_timeout: 5m, \
         detect_sequence_reset: false, share_templates: true, custom_definitions: ['{custom}'], \
         internal_networks: [private, 100.64.0.0/10], keep_null: true}}"
    );
    assert_eq!(problems(&text), (true, String::new()));
    assert_eq!(problems("{}"), (true, String::new()));
    let (is_read, said) = problems("{workers: 4, queue_size: 100000, timeout: 1m}");
    assert!(is_read);
    for name in ["workers", "queue_size", "timeout"] {
        assert!(said.contains(&format!("`{name}` has no effect")), "{said}");
    }
}

#[test]
fn wrong_settings_are_refused_with_what_to_do() {
    for (text, expected) in [
        ("{host: 2055}", "expected"),
        ("{hosts: ['a:1']}", "did you mean `host`?"),
        ("{protocols: []}", "`protocols` is empty"),
        ("{protocols: [v5, v4, sflow4]}", "there is no protocol `v4`"),
        ("{protocols: [v5, v4, sflow4]}", "there is no protocol `sflow4`"),
        ("{internal_networks: [home]}", "`internal_networks`: `home` is no network"),
        ("{custom_definitions: [/nowhere/f.yml]}", "`custom_definitions`: `/nowhere/f.yml`: "),
        ("{max_message_size: 1MiB}", "1 to 65536"),
        ("{network: tcp}", "`udp4`"),
    ] {
        let (is_read, said) = problems(text);
        assert!(said.contains(expected), "{text}: {said}");
        assert!(!said.is_empty() && (!is_read || said.contains("error")), "{text}: {said}");
    }
}
