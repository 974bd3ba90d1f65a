//! Tests of loading: files, permissions, paths, keystore, overrides. Over a file system in memory.

use super::*;
use skidder_os::{DirEntry, File, OpenMode, Timestamp};
use std::collections::HashMap;
use std::ffi::OsStr;

/// A file system of a few files that can only be read.
struct Files(HashMap<PathBuf, Memory>);

#[derive(Clone)]
struct Memory {
    bytes: Vec<u8>,
    mode: u32,
    uid: u32,
}

impl File for Memory {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = self.bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn metadata(&self) -> io::Result<Metadata> {
        let kind = if self.mode == 0 { FileKind::Directory } else { FileKind::Regular };
        let size = self.bytes.len() as u64;
        let (mode, uid) = (self.mode, self.uid);
        let modified = Timestamp::default();
        Ok(Metadata { kind, size, modified, device: 1, inode: 1, links: 1, mode, uid, gid: 0 })
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn try_lock(&self) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Fs for Files {
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let found = self.0.get(path).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(found))
    }

    fn open_write(&self, _: &Path, _: OpenMode, _: u32) -> io::Result<Box<dyn File>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.0.get(path).ok_or(io::ErrorKind::NotFound)?.metadata()
    }

    fn symlink_metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.metadata(path)
    }

    fn read_dir(&self, _: &Path, _: &mut dyn FnMut(DirEntry<'_>)) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn scan_dir(
        &self,
        _: &Path,
        _: &mut dyn FnMut(&OsStr) -> bool,
        _: &mut dyn FnMut(&OsStr, Metadata),
    ) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove_file(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn create_dir_all(&self, _: &Path, _: u32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn files(list: &[(&str, &str, u32, u32)]) -> Files {
    let file = |&(path, text, mode, uid): &(&str, &str, u32, u32)| {
        (PathBuf::from(path), Memory { bytes: text.as_bytes().to_vec(), mode, uid })
    };
    Files(list.iter().map(file).collect())
}

/// Loads `names` with `overrides`, home `/home`, user 7, strict; `change` may alter the options.
fn load_files<'a>(
    fs: &'a Files,
    names: &[&str],
    overrides: &[&str],
    change: impl FnOnce(&mut LoadOptions<'a>),
) -> Result<Settings, String> {
    // Leaked, so that `change` may put anything of the test's own lifetime beside it.
    let names: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    let mut options = LoadOptions {
        files: names.leak(),
        overrides: overrides.leak(),
        directory: Path::new("/cwd"),
        home: Path::new("/home"),
        path_home: None,
        path_config: None,
        path_data: None,
        path_logs: None,
        strict_permissions: true,
        user_id: 7,
        fs,
        pipes: Box::leak(Box::default()),
        environment: &|_| None,
        keystore: None,
    };
    change(&mut options);
    load(options).map_err(|problems| problems.to_string())
}

#[test]
fn files_and_overrides_become_one_tree() {
    let fs = files(&[
        ("/home/a.yml", "name: a\noutput.console: {pretty: true}", 0o600, 7),
        ("/etc/b.yml", "name: b", 0o644, 0),
    ]);
    let settings =
        load_files(&fs, &["a.yml", "/etc/b.yml"], &["output.console.pretty=false"], |_| {})
            .unwrap();
    let problems = Problems::new();
    let root = settings.root(&problems);
    assert_eq!(root.string("name").required(), "b");
    assert!(!root.bool("output.console.pretty").or(true));
    root.finish();
    assert!(problems.is_empty(), "{problems}");
    assert_eq!(settings.paths().data, Path::new("/home/data"));
}

#[test]
fn paths_come_from_flags_files_and_defaults() {
    let fs = files(&[("/etc/f/a.yml", "path.logs: ${path.data}/l\nx: ${path.config}", 0o600, 0)]);
    let settings = load_files(&fs, &["a.yml"], &["path.data=/d"], |options| {
        options.path_config = Some(Path::new("/etc/f"));
        options.path_home = Some(Path::new("/odd$$${home}"));
    })
    .unwrap();
    let paths = settings.paths();
    assert_eq!(paths.home, Path::new("/odd$$${home}"));
    assert_eq!(paths.config, Path::new("/etc/f"));
    assert_eq!(paths.data, Path::new("/d"));
    assert_eq!(paths.logs, Path::new("/d/l"));
}

#[test]
fn relative_places_are_below_the_working_directory() {
    let fs = files(&[("/a.yml", "x: '${path.config}/modules.d/*.yml'\npath.logs: l", 0o600, 0)]);
    let settings = load_files(&fs, &["/a.yml"], &["path.data=./d"], |options| {
        options.path_home = Some(Path::new("."));
        options.path_config = Some(Path::new("conf"));
    })
    .unwrap();
    let paths = settings.paths();
    assert_eq!(settings.node().at("x").unwrap().text(), Some("/cwd/conf/modules.d/*.yml"));
    let expected = ["/cwd", "/cwd/conf", "/cwd/d", "/cwd/l"].map(Path::new);
    assert_eq!([&paths.home, &paths.config, &paths.data, &paths.logs], expected);
}

#[test]
fn without_a_home_relative_files_are_beside_the_configuration() {
    let fs = files(&[
        ("/etc/f/a.yml", "x: ${path.config}", 0o600, 0),
        ("/home/a.yml", "", 0o600, 0),
        ("here.yml", "", 0o600, 0),
        ("etc/there.yml", "", 0o600, 0),
        ("/etc/f/home.yml", "path.home: /opt", 0o600, 0),
        ("/etc/f/config.yml", "path.config: /opt", 0o600, 0),
    ]);
    for (names, overrides, expected) in [
        (&["/etc/f/a.yml", "here.yml"][..], &[][..], "/etc/f"),
        (&["a.yml"], &[], "/home"),
        (&["here.yml"], &[], "/cwd"),
        (&["etc/there.yml"], &[], "/cwd/etc"),
        (&["/etc/f/home.yml"], &[], "/opt"),
        (&["/etc/f/a.yml", "/etc/f/home.yml"], &[], "/opt"),
        (&["/etc/f/config.yml"], &[], "/opt"),
        (&["/etc/f/a.yml"], &["path.home=/opt"], "/opt"),
        (&["/etc/f/a.yml"], &["path.config=/opt"], "/opt"),
        (&["/etc/f/a.yml"], &["path.data=/opt"], "/etc/f"),
    ] {
        let settings = load_files(&fs, names, overrides, |_| {}).unwrap();
        assert_eq!(settings.paths().config, Path::new(expected), "{names:?} {overrides:?}");
        assert_eq!(
            settings.has_home(),
            expected == "/opt"
                && !names[0].contains("config")
                && !overrides.contains(&"path.config=/opt")
        );
    }
    let settings = load_files(&fs, &["/etc/f/a.yml"], &[], |_| {}).unwrap();
    assert_eq!(settings.node().at("x").unwrap().text(), Some("/etc/f"));
    let flagged = load_files(&fs, &["/etc/f/a.yml"], &[], |options| {
        options.path_home = Some(Path::new("/opt"));
    });
    assert_eq!(flagged.unwrap().paths().config, Path::new("/opt"));
}

#[test]
fn a_place_that_is_no_text_is_an_error_and_not_the_default() {
    for (text, expected) in [
        ("path.data: [/d]", "error: /a.yml:1:12: `path.data` is a list; expected a path"),
        ("path.home: {a: 1}", "error: /a.yml:1:12: `path.home` is a map; expected a path"),
        ("path: abc", "error: /a.yml:1:7: `path` is `abc`; expected a map of settings"),
        ("path: [a]", "error: /a.yml:1:7: `path` is a list; expected a map of settings"),
        ("keystore: abc", "error: /a.yml:1:11: `keystore` is `abc`; expected a map of settings"),
        ("keystore.path: [a]", "error: /a.yml:1:16: `keystore.path` is a list; expected a path"),
        ("path.data:", ""),
        ("path:", ""),
        ("keystore:", ""),
    ] {
        let fs = files(&[("/a.yml", text, 0o600, 7)]);
        let settings = load_files(&fs, &["/a.yml"], &[], |_| {}).unwrap();
        let problems = Problems::new();
        settings.root(&problems).skip();
        assert_eq!(problems.to_string(), expected, "{text}");
    }
}

#[test]
fn a_relative_file_is_also_looked_for_where_we_are() {
    let fs = files(&[("here.yml", "a: 1", 0o600, 7)]);
    load_files(&fs, &["here.yml"], &[], |_| {}).unwrap();
    assert_eq!(
        load_files(&fs, &["gone.yml", "/gone.yml"], &[], |_| {}).unwrap_err(),
        "error: gone.yml: there is no such file, neither here nor in `/home`\n\
         hint: give the path with `-c FILE` or its folder with `--path.config DIR`\n\
         error: /gone.yml: there is no such file\n\
         hint: give the path with `-c FILE` or its folder with `--path.config DIR`"
    );
}

#[test]
fn files_that_others_can_change_are_refused_unless_told_otherwise() {
    let fs = files(&[("/w.yml", "a: 1", 0o666, 0), ("/o.yml", "a: 1", 0o600, 8), ("/d", "", 0, 0)]);
    assert_eq!(
        load_files(&fs, &["/w.yml", "/o.yml", "/d"], &[], |_| {}).unwrap_err(),
        "error: /w.yml: `/w.yml` can be written by others than its owner (mode 0666)\n\
         hint: run `chmod go-w /w.yml`, or turn the check off with `--strict.perms=false`\n\
         error: /o.yml: `/o.yml` belongs to user 8; it must belong to root or to the user that \
         runs skidder (7)\n\
         hint: run `chown root /o.yml`, or turn the check off with `--strict.perms=false`\n\
         error: /d: `/d` is a directory; expected a file"
    );
    load_files(&fs, &["/w.yml"], &[], |options| options.strict_permissions = false).unwrap();
    let environment = |name: &str| (name == "BEAT_STRICT_PERMS").then(|| "false".to_owned());
    load_files(&fs, &["/o.yml"], &[], |options| options.environment = &environment).unwrap();
}

#[test]
fn secrets_come_from_the_keystore_at_its_configured_place() {
    let fs = files(&[("/a.yml", "keystore.path: ${KS}/k\npassword: ${PW}\n", 0o600, 0)]);
    let open = |path: &Path| {
        assert_eq!(path, Path::new("/ks/k"));
        Ok(std::iter::once(("PW".to_owned(), Secret::new("p,w"))).collect())
    };
    let environment = |name: &str| (name == "KS").then(|| "/ks".to_owned());
    let settings = load_files(&fs, &["/a.yml"], &[], |options| {
        options.keystore = Some(&open);
        options.environment = &environment;
    })
    .unwrap();
    let problems = Problems::new();
    assert_eq!(settings.root(&problems).secret("password").required().reveal(), "p,w");
    assert!(settings.export_yaml().contains("password: xxxxx"));
    assert!(!format!("{settings:?}").contains("p,w"));
}

#[test]
fn a_broken_keystore_and_mistakes_of_the_tree_are_told_with_those_of_the_readers() {
    let fs = files(&[("/a.yml", "a: 1\na: 2\nb: x\n", 0o600, 0)]);
    let open = |_: &Path| Err("wrong checksum".to_owned());
    let settings =
        load_files(&fs, &["/a.yml"], &[], |options| options.keystore = Some(&open)).unwrap();
    let problems = Problems::new();
    let root = settings.root(&problems);
    root.accept("a");
    root.u64("b").or(0);
    root.finish();
    assert_eq!(
        problems.to_string(),
        "error: the keystore `/home/data/filebeat.keystore` cannot be opened: wrong checksum\n\
         error: /a.yml:2:1: `a` is already set at /a.yml:1:1\n\
         hint: remove one of the two; YAML does not add them up\n\
         error: /a.yml:3:4: `b` is `x`; expected a whole number"
    );
}

#[test]
fn what_is_not_a_configuration_is_told() {
    let mut fs = files(&[("/l.yml", "- a\n", 0o600, 0), ("/t.yml", "a:\n\tb: 1\n", 0o600, 0)]);
    let bytes = b"a: 1\nb: \xff\xfe\n".to_vec();
    fs.0.insert(PathBuf::from("/u.yml"), Memory { bytes, mode: 0o600, uid: 0 });
    assert_eq!(
        load_files(&fs, &["/l.yml", "/t.yml", "/u.yml"], &[], |_| {}).unwrap_err(),
        "error: /l.yml:1:1: the file is a list; expected a map of settings\n\
         hint: settings are lines like `key: value`\n\
         error: /t.yml:2:1: invalid YAML: a tab is used for indentation; YAML allows only spaces\n\
         hint: replace it by spaces\n\
         error: /u.yml:2:4: the file is not UTF-8 text from here on\n\
         hint: save it as UTF-8; Windows editors may use UTF-16 or a code page"
    );
    assert_eq!(
        load_files(&fs, &[], &[], |_| {}).unwrap_err(),
        "error: no configuration file is given\nhint: use `-c FILE`"
    );
}

#[test]
fn a_part_is_a_list_that_may_name_settings_of_the_main_file() {
    let fs = files(&[
        ("/a.yml", "path.data: /d", 0o600, 0),
        ("/part.yml", "- id: one\n  file: ${path.data}/x\n- id: two\n", 0o600, 0),
    ]);
    let main = load_files(&fs, &["/a.yml"], &[], |_| {}).unwrap();
    let options = LoadOptions {
        files: &[],
        overrides: &[],
        directory: Path::new("/"),
        home: Path::new("/"),
        path_home: None,
        path_config: None,
        path_data: None,
        path_logs: None,
        strict_permissions: true,
        user_id: 0,
        fs: &fs,
        pipes: &Pipes::default(),
        environment: &|_| None,
        keystore: None,
    };
    let part = load_part(options, Path::new("/part.yml"), &main).unwrap();
    let problems = Problems::new();
    let items = part.items(&problems);
    let first = items[0].section();
    assert_eq!(first.path(), "[0]");
    assert_eq!(first.string("file").required(), "/d/x");
    first.string("id").required();
    first.finish();
    assert!(part.is_list() && items.len() == 2 && problems.is_empty());
}
