//! `cargo xtask package`: a Debian package of the program, and the checks of all that is in `packaging/`.

use crate::{process, repository};
use anyhow::{Context, Result, bail};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The maintainer in the package.
const MAINTAINER: &str = "skidder maintainers <maintainers@skidder.invalid>";

/// The exposure that `systemd-analyze security` may find in the unit, in tenths: 0 is none, 100 all.
const EXPOSURE_MAX: &str = "25";

/// Lints the container file and the Helm chart.
pub(crate) const LINTERS: &str = "linters.sh";

/// Checks manifests for Kubernetes.
pub(crate) const MANIFESTS: &str = "manifests.sh";

/// Where things go in the package, and their modes.
const FILES: [(&str, &str, u32); 3] = [
    ("skidder.service", "lib/systemd/system/skidder.service", 0o644),
    ("debian/filebeat.yml", "etc/skidder/filebeat.yml", 0o600),
    ("debian/lintian-overrides", "usr/share/lintian/overrides/skidder", 0o644),
];

/// Where completions go.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/skidder"),
    ("zsh", "usr/share/zsh/vendor-completions/_skidder"),
    ("fish", "usr/share/fish/vendor_completions.d/skidder.fish"),
];

/// Builds the program and its package, and checks it.
pub(crate) fn run() -> Result<()> {
    let built = repository::build_release(&["skidder"], &[])?;
    of(&built.join("skidder"))
}

/// The package of a program that is built.
pub(crate) fn of(program: &Path) -> Result<()> {
    crate::servers::install_programs()?;
    let place = repository::target()?.join("package");
    if place.is_dir() {
        fs::remove_dir_all(&place).context("cannot remove what was built before")?;
    }
    let tree = place.join("skidder");
    check_unit(program, &place)?;
    check_manifests(program, &place)?;
    let version = lay_out(program, &place, &tree)?;
    let architecture = line_of(Command::new("dpkg").arg("--print-architecture"))?;
    let package = place.join(format!("skidder_{version}_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    build.args(["--root-owner-group", "--build"]).arg(&tree).arg(&package);
    process::run(&mut build)?;
    let mut check = Command::new("lintian");
    // There is no request for a package in Debian, so there is no number of it.
    check.args(["--fail-on", "error,warning", "--suppress-tags", "initial-upload-closes-no-bugs"]);
    process::run(check.args(["--allow-root", "--tag-display-limit", "0"]).arg(&package))?;
    let mut tried = Command::new(tree.join("usr/bin/skidder"));
    tried.args(["test", "config", "-c"]).arg(tree.join("etc/skidder/filebeat.yml"));
    process::run(tried.arg("--path.data").arg(place.join("data")))?;
    process::print(&package.display().to_string());
    Ok(())
}

/// Asks systemd whether it understands the unit, and how much it leaves open.
fn check_unit(program: &Path, place: &Path) -> Result<()> {
    let folder = place.join("unit");
    let unit = repository::root().join("packaging/skidder.service");
    let text = fs::read_to_string(&unit).context("cannot read the unit")?;
    // The program need not be installed here.
    let text = text.replace("/usr/bin/skidder", &program.to_string_lossy());
    let copy = folder.join("skidder.service");
    write(&copy, text.as_bytes(), 0o644)?;
    process::run(Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&copy))?;
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--no-pager", "--offline=true", "--threshold", EXPOSURE_MAX]);
    // It prints a table of everything.
    process::output(security.arg(&copy)).map(|_| ())
}

/// Lints the container file and the Helm chart; checks the manifests for Kubernetes, those that the chart makes, and every configuration that is in them.
fn check_manifests(program: &Path, place: &Path) -> Result<()> {
    let folder = place.join("manifests");
    fs::create_dir_all(&folder).context("cannot make the folder of the manifests")?;
    let (scripts, packaging) =
        (repository::root().join("tests/servers"), repository::root().join("packaging"));
    let mut lint = Command::new(scripts.join(LINTERS));
    process::run(lint.arg("start").arg(&folder).arg(&packaging))?;
    // The chart with its own values first: it must be what the manifest is.
    let mut more: Vec<PathBuf> = with_ending(&folder, "yaml")?;
    more.sort_by_key(|path| (!path.ends_with("values.yaml"), path.clone()));
    more.push(packaging.join("Dockerfile"));
    let more: Vec<String> = more.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let mut check = Command::new(scripts.join(MANIFESTS));
    check.arg("start").arg(&folder).arg(packaging.join("kubernetes/skidder.yaml"));
    process::run(check.env("MORE", more.join("\n")).env("ALIKE", "1"))?;
    let configurations = with_ending(&folder, "yml")?;
    if configurations.len() != more.len() {
        bail!("of {} manifests {} have a configuration", more.len(), configurations.len());
    }
    for file in configurations {
        let mut tried = Command::new(program);
        tried.args(["test", "config", "-c"]).arg(file).arg("--path.data").arg(place.join("data"));
        process::run(&mut tried)?;
    }
    Ok(())
}

/// The files of a folder whose names end so.
fn with_ending(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let shown = || format!("cannot list `{}`", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(shown)? {
        let path = entry.with_context(shown)?.path();
        if path.extension().is_some_and(|end| end == ending) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Puts everything where it belongs; gives the version.
fn lay_out(program: &Path, place: &Path, tree: &Path) -> Result<String> {
    let packaging = repository::root().join("packaging");
    for (from, to, mode) in FILES {
        let bytes = fs::read(packaging.join(from)).with_context(|| format!("no `{from}`"))?;
        write(&tree.join(to), &bytes, mode)?;
    }
    let own = repository::root().join("crates/skidder-modules/own");
    copy_folder(&own, &tree.join("usr/share/skidder/module"))?;
    let installed = tree.join("usr/bin/skidder");
    write(&installed, &fs::read(program).context("the program is not built")?, 0o755)?;
    // The names of functions stay: profiles show them.
    let mut strip = Command::new("strip");
    process::run(strip.args(["--strip-debug", "--remove-section=.comment"]).arg(&installed))?;
    for (shell, to) in COMPLETIONS {
        let script = process::output(Command::new(program).args(["completion", shell]))?;
        let file = tree.join(to);
        write(&file, &script, 0o644)?;
        // The shell reads it and runs nothing of it.
        process::run(Command::new(shell).arg("-n").arg(file))?;
    }
    let pages = tree.join("usr/share/man/man1");
    fs::create_dir_all(&pages).context("cannot make the folder of the pages")?;
    process::run(Command::new(program).arg("man").arg(&pages))?;
    for page in with_ending(&pages, "1")? {
        // Paragraphs that the generator of the pages leaves empty are below that level.
        let mut lint = Command::new("mandoc");
        process::run(lint.args(["-T", "lint", "-W", "error"]).arg(&page))?;
        process::run(Command::new("gzip").args(["-9", "-n"]).arg(page))?;
    }
    let metadata = repository::metadata(false)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let own = packages.iter().find(|package| package["name"] == "skidder");
    let version = own.and_then(|own| own["version"].as_str()).context("no version")?.to_owned();
    documents(tree, &version)?;
    control(place, tree, &version)?;
    Ok(version)
}

/// Copies a folder with all that is in it.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    let shown = || format!("cannot list `{}`", from.display());
    for entry in fs::read_dir(from).with_context(shown)? {
        let entry = entry.with_context(shown)?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_folder(&path, &to)?;
        } else {
            let bytes = fs::read(&path).with_context(|| format!("no `{}`", path.display()))?;
            write(&to, &bytes, 0o644)?;
        }
    }
    Ok(())
}

/// The documents of every package.
fn documents(tree: &Path, version: &str) -> Result<()> {
    let folder = tree.join("usr/share/doc/skidder");
    let date = line_of(Command::new("git").args(["log", "-1", "--format=%cD"]))?;
    let changes = format!(
        "skidder ({version}) unstable; urgency=medium\n\n  * See https://github.com/skidder/skidder.\n\n -- \
         {MAINTAINER}  {date}\n"
    );
    let file = folder.join("changelog");
    write(&file, changes.as_bytes(), 0o644)?;
    process::run(Command::new("gzip").args(["-9", "-n"]).arg(&file))?;
    let copyright = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
                     Upstream-Name: skidder\nSource: https://github.com/skidder/skidder\n\n\
                     Files: *\nCopyright: 2026 The skidder authors\nLicense: Apache-2.0\n \
                     On Debian systems, the text of this license is in\n \
                     /usr/share/common-licenses/Apache-2.0.\n";
    write(&folder.join("copyright"), copyright.as_bytes(), 0o644)
}

/// What dpkg wants to know.
fn control(place: &Path, tree: &Path, version: &str) -> Result<()> {
    // The tool that finds out about libraries wants a source package.
    let source = place.join("source");
    write(
        &source.join("debian/control"),
        b"Source: skidder\n\nPackage: skidder\nArchitecture: any\n",
        0o644,
    )?;
    let mut libraries = Command::new("dpkg-shlibdeps");
    libraries.current_dir(&source).args(["-O", "-e"]).arg(tree.join("usr/bin/skidder"));
    let libraries = line_of(&mut libraries)?;
    let libraries = libraries.strip_prefix("shlibs:Depends=").context("no libraries")?;
    let architecture = line_of(Command::new("dpkg").arg("--print-architecture"))?;
    let text = format!(
        "Package: skidder\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: {MAINTAINER}\n\
         Section: admin\nPriority: optional\nHomepage: https://github.com/skidder/skidder\n\
         Depends: {libraries}, adduser, init-system-helpers (>= 1.54~)\nDescription: log shipper that proves that nothing was lost\n \
         It finds log files, reads them as they grow and rotate (compressed ones too),\n \
         and delivers their lines to Elasticsearch, OpenSearch, Logstash, Kafka,\n \
         Redis, S3 or files. Its configuration is that of Filebeat.\n"
    );
    let debian = tree.join("DEBIAN");
    write(&debian.join("control"), text.as_bytes(), 0o644)?;
    write(&debian.join("conffiles"), b"/etc/skidder/filebeat.yml\n", 0o644)?;
    for script in ["postinst", "prerm", "postrm"] {
        let from = repository::root().join("packaging/debian").join(script);
        let bytes = fs::read(&from).with_context(|| format!("no `{script}`"))?;
        write(&debian.join(script), &bytes, 0o755)?;
    }
    let mut sums = Command::new("sh");
    sums.current_dir(tree).args(["-c", "find usr lib -type f -print0 | sort -z | xargs -0 md5sum"]);
    let sums = process::output(&mut sums)?;
    write(&debian.join("md5sums"), &sums, 0o644)
}

/// Writes a file, with its folder.
fn write(path: &PathBuf, bytes: &[u8], mode: u32) -> Result<()> {
    let folder = path.parent().context("a path has a folder")?;
    let shown = || format!("cannot write `{}`", path.display());
    fs::create_dir_all(folder).with_context(shown)?;
    for folder in folder.ancestors().take_while(|folder| !folder.ends_with("package")) {
        // The umask of the build may differ.
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).with_context(shown)?;
    }
    fs::write(path, bytes).with_context(shown)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).with_context(shown)
}

/// The output of a command, one line.
fn line_of(command: &mut Command) -> Result<String> {
    let output = String::from_utf8(process::output(command)?).context("no UTF-8")?;
    let line = output.trim().to_owned();
    if line.is_empty() {
        bail!("`{}` says nothing", command.get_program().to_string_lossy());
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of a file, without the signs of its lists.
    fn words(file: &str) -> String {
        let path = repository::root().join("packaging").join(file);
        let text = fs::read_to_string(&path).unwrap();
        let text = text.lines().map(|line| line.trim_start().trim_start_matches("- "));
        let text = text.collect::<Vec<_>>().join(" ").replace(['[', ']', ',', '"'], " ");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_container_starts_the_program_alike() {
        // `-e` would override the configuration of the log.
        let line =
            "--environment container -c /etc/skidder/filebeat.yml --path.data /var/lib/skidder";
        for file in
            ["Dockerfile", "kubernetes/skidder.yaml", "helm/skidder/templates/daemonset.yaml"]
        {
            let words = words(file);
            assert!(words.contains(line), "{file}: {words}");
            assert!(!words.contains(" -e "), "{file}");
        }
    }
}
