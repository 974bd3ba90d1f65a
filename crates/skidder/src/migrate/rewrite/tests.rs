//! Older configurations, and what becomes of them.

use super::*;

#[test]
fn what_is_of_today_need_not_change() {
    let text = "filebeat.inputs:\n- {type: filestream, id: a, paths: [/a]}\noutput.file.path: /x\n";
    assert_eq!(rewrite(text), None);
}

#[test]
fn an_old_configuration_is_written_anew_and_its_comments_stay() {
    let text = "# mine\nfilebeat:\n  prospectors:\n    - input_type: log   # all of them\n      paths:\n        - /a\n\
                \x20     json.keys_under_root: true\n      json.message_key: log\n      scan_frequency: 5s\n      # last\n\
                \x20     multiline:\n        pattern: '^\\['\n        match: after\n  registry_file: /r\n  spool_size: 2048\n\
                output:\n  elasticsearch:\n    hosts: [a]\n    template:\n      name: n\n      path: p.json\n";
    let expected = "# mine
filebeat:
  # skidder migrate: they are inputs since Filebeat 6.3
  inputs:
    # skidder migrate: `log` inputs are `filestream` inputs since Filebeat 7.14; it takes their files over
    - type: filestream # all of them
      paths:
        - /a
      # skidder migrate: `json` is the parser `ndjson`
      # json.keys_under_root: true
      # skidder migrate: `json` is the parser `ndjson`
      # json.message_key: log
      # skidder migrate: `scan_frequency` of `log` inputs
      prospector.scanner.check_interval: 5s
      # last
      # skidder migrate: `multiline` is the parser `multiline`
      # multiline:
        # pattern: '^\\['
        # match: after
      # skidder migrate: each `filestream` input has an `id` of its own; never change it
      id: log-1
      take_over.enabled: true
      # skidder migrate: what was said of lines and records is done by parsers
      parsers:
        - ndjson:
            target: ''
            message_key: log
        - multiline:
            pattern: '^\\['
            match: after
  # skidder migrate: the registry is a folder since Filebeat 7, `filebeat.registry.path`
  # registry_file: /r
  # skidder migrate: it went with Filebeat 6: `queue.mem.events` bounds what waits
  # spool_size: 2048
output:
  elasticsearch:
    hosts: [a]
    # skidder migrate: the template that it names is of an older Filebeat; `setup.template` makes one
    # template:
      # skidder migrate: since Filebeat 6 templates are in `setup`
      # name: n
      # path: p.json
# skidder migrate: since Filebeat 6 templates are in `setup`
setup.template.name: n
";
    assert_eq!(rewrite(text).unwrap(), expected.replace("\\\\", "\\"));
}

#[test]
fn options_in_braces_come_along() {
    let text = "filebeat.inputs:\n- type: log\n  json: {keys_under_root: true, message_key: 'a, b',\n    add_error_key: true}\n  multiline: {pattern: \"^[a,b]\", match: after}\n";
    let new = rewrite(text).unwrap();
    let expected = "  parsers:\n    - ndjson:\n        target: ''\n        message_key: 'a, b'\n        add_error_key: true\n    - multiline:\n        \
                    pattern: \"^[a,b]\"\n        match: after\n";
    assert!(new.ends_with(expected), "{new}");
}

#[test]
fn monitoring_loses_its_xpack_however_it_is_written() {
    let why = "# skidder migrate: since Filebeat 7 without `xpack`\n";
    let nested = "xpack:\n  monitoring:\n    enabled: true\n    elasticsearch:\n      hosts: [a]\n      # of u\n      username: u\nname: n\n";
    let moved = format!(
        "{why}# xpack:\n  # monitoring:\n    # enabled: true\n    # elasticsearch:\n      # hosts: [a]\n      # # of u\n      # username: u\n\
         {why}monitoring:\n  enabled: true\n  elasticsearch:\n    hosts: [a]\n    # of u\n    username: u\nname: n\n"
    );
    assert_eq!(rewrite(nested).unwrap(), moved);
    let dotted = "xpack.monitoring.enabled: true\nxpack.monitoring.elasticsearch:\n  hosts: [a]\n";
    let renamed =
        format!("{why}monitoring.enabled: true\n{why}monitoring.elasticsearch:\n  hosts: [a]\n");
    assert_eq!(rewrite(dotted).unwrap(), renamed);
    let block = "xpack.monitoring:\n  enabled: true\n";
    assert_eq!(rewrite(block).unwrap(), format!("{why}monitoring:\n  enabled: true\n"));
    // What else is below `xpack` stays.
    let mixed = "xpack:\n  monitoring.enabled: true\n  other: 1\n";
    let expected = format!(
        "xpack:\n  {why}  # monitoring.enabled: true\n  other: 1\n{why}monitoring.enabled: true\n"
    );
    assert_eq!(rewrite(mixed).unwrap(), expected);
    let twice = "monitoring.enabled: false\nxpack.monitoring.enabled: true\n";
    let (line, message) = given_twice(twice).unwrap();
    assert!(line == 2 && message.contains("`monitoring` (line 1)"), "{message}");
    let same = "monitoring.enabled: false\nxpack.monitoring.enabled: false\n";
    assert!(given_twice(same).is_none());
    let expected = format!("monitoring.enabled: false\n{why}# xpack.monitoring.enabled: false\n");
    assert_eq!(rewrite(same).unwrap(), expected);
}

#[test]
fn name_and_tags_of_a_shipper_are_moved() {
    let text = "shipper:\n  name: me\n  tags:\n    - a\n    - b\n  refresh_topology_freq: 10\n";
    let new = rewrite(text).unwrap();
    let why = "# skidder migrate: `shipper` went with Filebeat 5\n";
    let end = format!("{why}name: me\n{why}tags:\n  - a\n  - b\n");
    assert!(new.ends_with(&end) && new.contains("\n# shipper:\n  # name: me\n"), "{new}");
    let new = rewrite("shipper.name: me\nshipper.tags: [a]\nshipper.ignore_outgoing: true\n");
    let new = new.unwrap();
    assert!(new.starts_with(&format!("{why}name: me\n{why}tags: [a]\n")), "{new}");
    assert!(new.ends_with("\n# shipper.ignore_outgoing: true\n"), "{new}");
    // A `name` that is there wins.
    let new = rewrite("name: mine\nshipper:\n  name: me\n").unwrap();
    assert!(!new.contains("\nname: me") && new.starts_with("name: mine\n"), "{new}");
}

#[test]
fn a_dash_alone_in_its_line_begins_an_input() {
    let text = "filebeat:\n  prospectors:\n    # Each - is a prospector\n    -\n      paths:\n        - /a\n      input_type: log\n\
                \x20     document_type: syslog\n      close_older: 1h\n      multiline:\n        pattern: '^x'\n    - # the second\n      paths: [/b]\n\
                \x20     input_type: stdin\n";
    let new = rewrite(text).unwrap();
    for part in [
        "    -\n      paths:\n        - /a\n",
        "      type: filestream\n",
        "      # document_type: syslog\n",
        "      close.on_state_change.inactive: 1h\n",
        "      parsers:\n        - multiline:\n            pattern: '^x'\n",
        "      id: log-1\n",
        "    - # the second\n      paths: [/b]\n",
        "      type: stdin\n",
    ] {
        assert!(new.contains(part), "{part} in {new}");
    }
}

#[test]
fn inputs_of_templates_and_of_hints_are_written_anew_with_an_id_for_each_container() {
    let text = "filebeat.autodiscover:
  providers:
    - type: kubernetes
      hints.enabled: true
      hints:
        default_config:
          type: container
          paths: ['/var/log/containers/*${data.kubernetes.container.id}.log']
      templates:
        - condition.equals.kubernetes.labels.app: web
          config:
            - type: container
              stream: stdout
              paths:
                - /l/${data.container.id}.log
              multiline.pattern: '^x'
            - module: nginx
              access.enabled: true
            - type: log
              paths: [/none]
";
    let new = rewrite(text).unwrap();
    for part in [
        "          type: filestream\n          paths: ['/var/log/containers/*${data.kubernetes.container.id}.log']\n",
        "          id: container-1-${data.kubernetes.container.id}\n          take_over.enabled: true\n          \
         prospector.scanner.symlinks: true\n          # skidder migrate: what was said of lines and records is done by \
         parsers\n          parsers:\n            - container: ~\n      templates:\n",
        "            - type: filestream\n              # skidder migrate: it is an option of the parser `container`\n              \
         # stream: stdout\n              paths:\n                - /l/${data.container.id}.log\n",
        "              id: container-2-${data.container.id}\n",
        "                - container:\n                    stream: stdout\n                - multiline:\n                    \
         pattern: '^x'\n            - module: nginx\n              access.enabled: true\n            - type: log\n",
    ] {
        assert!(new.contains(part), "{part}\nis not in\n{new}");
    }
    assert_eq!(new.matches("type: filestream").count(), 2, "{new}");
    assert_eq!(rewrite(&new), None, "it is of today");
}

#[test]
fn the_links_of_container_inputs_are_followed_on() {
    let of = |more: &str| {
        rewrite(&format!("filebeat.inputs:\n- type: container\n  paths: [/a]\n{more}")).unwrap()
    };
    assert!(of("").contains("\n  prospector.scanner.symlinks: true\n"));
    let own = of("  symlinks: false\n");
    assert!(own.contains("\n  prospector.scanner.symlinks: false\n"), "{own}");
    assert_eq!(own.matches("symlinks: ").count(), 1, "{own}");
}

#[test]
fn a_new_id_is_no_other_inputs() {
    let text = "filebeat.inputs:\n- type: log\n  paths: [/a]\n- type: log\n  id: log-1\n  paths: [/b]\n- type: log\n  paths: [/c]\n";
    let new = rewrite(text).unwrap();
    let ids: Vec<&str> = new.lines().filter_map(|line| line.trim().strip_prefix("id: ")).collect();
    assert_eq!(ids, ["log-4", "log-1", "log-3"], "{new}");
}

#[test]
fn inputs_that_are_not_rewritten_are_found_by_their_line() {
    let table = [
        ("filebeat.inputs:\n- type: filestream\n- {type: log, paths: [/a]}\n", Some(3)),
        ("filebeat:\n  inputs:\n    -   {type: log,\n     paths: [/a]}\n", Some(3)),
        ("filebeat.inputs: [{type: log, paths: [/a]}]\n", Some(1)),
        ("filebeat.inputs: []\n", None),
        ("filebeat.inputs:\n- {type: filestream, id: a, paths: [/a]}\n", None),
        ("filebeat.inputs:\n- type: log\n  json: {keys_under_root: true}\n", None),
        ("filebeat.inputs:\n- type: log\n  paths:\n  - /a\noutput: {file: {path: /x}}\n", None),
    ];
    for (text, expected) in table {
        assert_eq!(in_braces(text), expected, "{text}");
        assert_eq!(given_twice(text), None);
    }
    let twice = "filebeat.prospectors:\n- type: log\nfilebeat.inputs:\n- type: log\n";
    let (line, message) = given_twice(twice).unwrap();
    assert!(line == 1 && message.contains("(line 3)"), "{message}");
}
