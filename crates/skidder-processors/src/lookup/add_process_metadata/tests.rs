//! A process of a simulated machine, and of another one under a path.

use super::*;
use skidder_testkit::{SimClock, SimFs};
use std::path::Path as FilePath;

fn add_process(fs: &SimFs, host: &str) {
    for folder in ["proc/42", "etc", "usr/bin"] {
        fs.create_dir_as_other(format!("{host}{folder}"));
    }
    let write =
        |name: &str, text: &str| fs.write_as_other(format!("{host}{name}"), text.as_bytes());
    write(
        "proc/42/stat",
        "42 (odd) name) S 7 42 42 0 -1 4194560 1 0 0 0 1 2 3 4 20 0 1 0 12345 1 2\n",
    );
    write("proc/stat", "cpu 1 2 3\nbtime 1700000000\n");
    write("proc/42/cmdline", "/usr/bin/odd\0--flag\0two words\0");
    write("proc/42/environ", "HOME=/root\0A.B=c=d\0broken\0");
    write(
        "proc/42/status",
        "Name:\todd\nUid:\t1000\t0\t0\t0\nGid:\t100\t0\t0\t0\nCapPrm:\t0000000000000001\nCapEff:\t0000000000000000\n",
    );
    write("etc/passwd", "root:x:0:0::/root:/bin/sh\nann:x:1000:100::/:/bin/sh\n");
    write("etc/group", "users:x:100:\n");
    write("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    write("usr/bin/odd", "");
    fs.symlink_as_other(format!("{host}usr/bin/odd"), format!("{host}proc/42/exe"));
}

#[test]
fn a_process_is_described_as_filebeat_does() {
    for host in ["/", "/hostfs/"] {
        let fs = SimFs::new(&SimClock::new());
        add_process(&fs, host);
        let all = process::read(&fs, FilePath::new(host), 42).expect("it is there");
        let get = |name: &str| all.get_path(&format!("process.{name}")).cloned();
        let texts = |items: &[&str]| Some(list(items.iter().copied()));
        assert_eq!(get("pid"), Some(42.into()));
        assert_eq!(get("parent.pid"), Some(7.into()));
        assert_eq!(get("name"), Some("odd) name".into()));
        assert_eq!(get("title"), Some("/usr/bin/odd --flag two words".into()));
        assert_eq!(get("args"), texts(&["/usr/bin/odd", "--flag", "two words"]));
        assert_eq!(get("executable"), Some(format!("{host}usr/bin/odd").into()));
        assert_eq!(get("start_time"), Some(Value::Time(1_700_000_123_450_000_000)));
        assert_eq!((get("owner.id"), get("owner.name")), (Some("1000".into()), Some("ann".into())));
        assert_eq!(
            (get("group.id"), get("group.name")),
            (Some("100".into()), Some("users".into()))
        );
        assert_eq!(get("thread.capabilities.permitted"), texts(&["CAP_CHOWN"]));
        assert_eq!(get("thread.capabilities.effective"), None);
        let Some(Value::Map(environment)) = get("env") else { panic!("no environment") };
        assert_eq!(
            (environment.get("HOME"), environment.get("A.B")),
            (Some(&"/root".into()), Some(&"c=d".into()))
        );
        let Some(Value::Str(id)) = get("entity_id") else { panic!("no id") };
        assert_eq!(id.len(), 16);
        assert_eq!(process::read(&fs, FilePath::new(host), 43), None);
    }
}
