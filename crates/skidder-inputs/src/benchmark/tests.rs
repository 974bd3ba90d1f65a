//! Its settings; `crates/skidder/tests/tasks.rs` runs it in the program.

use super::*;
use skidder_config::{Problems, Settings};

fn read(text: &str) -> Result<Benchmark, String> {
    let settings = Settings::parse("t.yml", text).expect("YAML");
    let problems = Problems::new();
    let root = settings.root(&problems);
    let read = Benchmark::read(&root);
    root.finish();
    let all = problems.to_string();
    read.filter(|_| all.is_empty()).ok_or(all)
}

#[test]
fn settings_are_those_of_filebeat() {
    let default = Benchmark { message: MESSAGE.into(), threads: 1, count: None, eps: None };
    assert_eq!(read("{}"), Ok(default.clone()));
    let given = Benchmark { message: "m".into(), threads: 3, count: Some(7), ..default.clone() };
    assert_eq!(read("{message: m, threads: 3, count: 7, eps: 0}"), Ok(given));
    assert_eq!(read("eps: 9"), Ok(Benchmark { eps: Some(9), ..default }));
    for (wrong, why) in [
        ("{count: 1, eps: 1}", "`count` and `eps` cannot both be set"),
        ("threads: 0", "`threads` is `0`"),
        ("threads: 300", "`threads` is `300`"),
    ] {
        let error = read(wrong).unwrap_err();
        assert!(error.contains(why), "{wrong}: {error}");
    }
}
