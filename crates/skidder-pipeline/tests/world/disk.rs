//! What other programs do to the files: writers, log rotation, an operator.

use crate::truth::{Story, Truth};
use flate2::Compression;
use flate2::write::GzEncoder;
use skidder_os::Clock;
use skidder_testkit::{Random, SimClock, SimFs};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longer than the program promises to remember a file that is not there.
const FORGETFUL: Duration = Duration::from_mins(1);

/// The names of one log and its rotated files.
struct Family {
    base: &'static str,
    /// Every content of it begins with these lines, more than a fingerprint covers.
    header: Vec<u8>,
    /// The file is copied and will be truncated.
    truncating: bool,
}

/// A file in `/logs` or away from it.
#[derive(Clone, Debug)]
struct Held {
    content: usize,
    compressed: bool,
    /// The last line has no end yet.
    half: bool,
}

/// A compressed file that is being written.
struct Growing {
    original: PathBuf,
    target: PathBuf,
    rest: Vec<u8>,
}

/// A file outside of all patterns.
struct Away {
    from: PathBuf,
    at: PathBuf,
    held: Held,
    since: skidder_os::Monotonic,
}

/// All files of the other programs.
pub(crate) struct Disk {
    fs: SimFs,
    clock: SimClock,
    families: Vec<Family>,
    files: BTreeMap<PathBuf, Held>,
    growing: Vec<Growing>,
    /// Compressed files beside their originals, which will be removed.
    doubled: Vec<(PathBuf, PathBuf)>,
    away: Vec<Away>,
    /// When a content left its place first: nobody may have looked before it left again.
    left: BTreeMap<usize, skidder_os::Monotonic>,
    links: BTreeMap<PathBuf, PathBuf>,
    names: u32,
    pub(crate) story: Story,
}

impl Disk {
    pub(crate) fn new(fs: SimFs, clock: SimClock, random: &mut Random, story: Story) -> Self {
        let bases =
            ["/logs/a/app.log", "/logs/a/web.log", "/logs/a/db.log", "/logs/b/x/y/deep.log"];
        let mut families = Vec::new();
        for base in bases {
            let mut header = Vec::new();
            if random.one_in(3) {
                let lines = 1 + random.below(4);
                for _ in 0..lines {
                    header.extend_from_slice(b"# header ");
                    header.resize(header.len() + 1100 / lines as usize, b'h');
                    header.push(b'\n');
                }
            }
            families.push(Family { base, header, truncating: false });
        }
        Self {
            fs,
            clock,
            families,
            files: BTreeMap::new(),
            growing: Vec::new(),
            doubled: Vec::new(),
            away: Vec::new(),
            left: BTreeMap::new(),
            links: BTreeMap::new(),
            names: 0,
            story,
        }
    }

    fn tell(&mut self, text: String) {
        self.story.push(text);
    }

    /// One action.
    pub(crate) fn act(&mut self, random: &mut Random, truth: &mut Truth) {
        for growing in &self.growing {
            // Its writer never rests for long.
            self.fs.set_modified_as_other(&growing.target, self.clock.wall());
        }
        let family = random.below(self.families.len() as u64) as usize;
        match random.below(100) {
            0..50 => self.append(family, random, truth),
            50..58 => self.rotate(family, random, truth),
            58..64 => self.compress(family, random, truth),
            64..74 => self.go_on(random),
            74..79 => self.copytruncate(family, random, truth),
            79..82 => self.rewrite(family, random, truth),
            82..86 => self.delete(random, truth),
            86..90 => self.rename_away(random),
            90..95 => self.come_back(random, truth),
            95..97 => self.touch(random),
            97..99 => self.link(random),
            _ => self.append_rotated(random, truth),
        }
    }

    fn lines(&mut self, content: usize, random: &mut Random, truth: &mut Truth) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        let count = 1 + random.below(6);
        for _ in 0..count {
            match random.below(24) {
                0 => bytes.extend_from_slice(b"x\n"),
                1 => bytes.extend_from_slice(b"\n"),
                2 => bytes.extend_from_slice(b"\r\n"),
                kind => {
                    let length = match random.below(400) {
                        0 => 270_000 + random.below(300_000),
                        1..5 => random.below(40_000),
                        5..40 => random.below(1200),
                        _ => random.below(60),
                    };
                    // No two lines have the same bytes for long.
                    let first = random.below(90) as usize;
                    let letter = |at: usize| b'!' + ((first + at + at / 90) % 90) as u8;
                    let mut padding: Vec<u8> = (0..length as usize).map(letter).collect();
                    if kind == 3 {
                        padding.fill(0xff);
                    }
                    let line = truth.line(content, &padding);
                    bytes.extend_from_slice(&line);
                    if random.one_in(12) {
                        return (bytes, true);
                    }
                    truth.complete(content);
                    bytes.extend_from_slice(if kind == 4 { b"\r\n" } else { b"\n" });
                }
            }
        }
        (bytes, false)
    }

    fn append_to(&mut self, path: &Path, random: &mut Random, truth: &mut Truth) {
        let Some(held) = self.files.get(path).cloned() else { return };
        let mut bytes = Vec::new();
        if held.half {
            bytes.push(b'\n');
            truth.complete(held.content);
        }
        let (more, half) = self.lines(held.content, random, truth);
        bytes.extend(more);
        self.fs.append_as_other(path, &bytes);
        self.tell(format!(
            "append {} bytes to {} (c{})",
            bytes.len(),
            path.display(),
            held.content
        ));
        if let Some(held) = self.files.get_mut(path) {
            held.half = half;
        }
    }

    fn append(&mut self, family: usize, random: &mut Random, truth: &mut Truth) {
        if self.families[family].truncating {
            return;
        }
        let path = PathBuf::from(self.families[family].base);
        if !self.files.contains_key(&path) {
            let content = truth.content();
            let header = self.families[family].header.clone();
            // Files of one beginning may be taken for each other where nothing else was read of them.
            truth.contents[content].forgotten = !header.is_empty();
            if self.fs.peek(&path).is_some_and(|bytes| !bytes.is_empty()) {
                return;
            }
            if !header.is_empty() {
                self.fs.append_as_other(&path, &header);
            }
            self.files.insert(path.clone(), Held { content, compressed: false, half: false });
            if !header.is_empty() && random.one_in(2) {
                self.tell(format!("new {} (c{content}) with a header", path.display()));
                return;
            }
        }
        self.append_to(&path, random, truth);
    }

    /// A writer that still has the rotated file open.
    fn append_rotated(&mut self, random: &mut Random, truth: &mut Truth) {
        // A copy that is about to become the only one is not written to before.
        if self.families.iter().any(|family| family.truncating) {
            return;
        }
        let plain: Vec<PathBuf> = self
            .files
            .iter()
            .filter(|(path, held)| !held.compressed && !self.is_busy(path))
            .map(|(path, _)| path.clone())
            .collect();
        if let Some(path) = pick(&plain, random) {
            self.append_to(&path, random, truth);
        }
    }

    fn is_busy(&self, path: &Path) -> bool {
        self.growing.iter().any(|growing| growing.original == *path || growing.target == *path)
            || self.doubled.iter().any(|(one, other)| one == path || other == path)
    }

    fn family_is_busy(&self, family: usize) -> bool {
        let base = self.families[family].base;
        let of_family = |path: &Path| path.to_string_lossy().starts_with(base);
        self.families[family].truncating
            || self.growing.iter().any(|growing| of_family(&growing.original))
            || self.doubled.iter().any(|(one, _)| of_family(one))
            || self.away.iter().any(|away| of_family(&away.from))
    }

    /// Moves `.1` to `.2` and so on; says whether `.1` is free.
    fn shift(&mut self, family: usize, truth: &Truth) -> bool {
        let base = self.families[family].base;
        let names = |number: u32| {
            [format!("{base}.{number}"), format!("{base}.{number}.gz")].map(PathBuf::from)
        };
        for oldest in names(4) {
            if let Some(held) = self.files.get(&oldest) {
                if !truth.is_read(held.content) {
                    return false;
                }
                self.remove(&oldest);
            }
        }
        for number in (1..4).rev() {
            for (from, to) in names(number).into_iter().zip(names(number + 1)) {
                self.rename(&from, &to);
            }
        }
        true
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        if let Some(held) = self.files.remove(from) {
            self.fs.rename_as_other(from, to);
            self.tell(format!("rename {} to {} (c{})", from.display(), to.display(), held.content));
            self.files.insert(to.to_owned(), held);
            for of in self.links.values_mut() {
                if *of == from {
                    to.clone_into(of);
                }
            }
        }
    }

    fn remove(&mut self, path: &Path) {
        if let Some(held) = self.files.remove(path) {
            self.fs.remove_as_other(path);
            self.unlink(path);
            self.tell(format!("remove {} (c{})", path.display(), held.content));
        }
    }

    fn rotate(&mut self, family: usize, random: &mut Random, truth: &mut Truth) {
        let base = PathBuf::from(self.families[family].base);
        if self.family_is_busy(family) || !self.files.contains_key(&base) {
            return;
        }
        if !self.shift(family, truth) {
            return;
        }
        let first = PathBuf::from(format!("{}.1", base.display()));
        self.rename(&base, &first);
        if random.one_in(2) {
            self.append(family, random, truth);
        }
    }

    /// The bytes of a compressed file, in one member or several.
    fn compressed(bytes: &[u8], random: &mut Random) -> Vec<u8> {
        let mut out = Vec::new();
        // The first members of a file that is being written look like the whole of a short one.
        let members = if bytes.len() < 4096 { 1 } else { 1 + random.below(3) as usize };
        for piece in bytes.chunks(bytes.len().div_ceil(members).max(1)) {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(piece).expect("memory takes everything");
            out.extend(encoder.finish().expect("memory takes everything"));
        }
        out
    }

    fn compress(&mut self, family: usize, random: &mut Random, truth: &mut Truth) {
        if self.family_is_busy(family) {
            return;
        }
        let base = self.families[family].base;
        let plain: Vec<PathBuf> = (1..5)
            .map(|number| PathBuf::from(format!("{base}.{number}")))
            .filter(|path| self.files.contains_key(path))
            .collect();
        let Some(original) = pick(&plain, random) else { return };
        let target = PathBuf::from(format!("{}.gz", original.display()));
        let held = self.files[&original].clone();
        let bytes = self.fs.peek(&original).unwrap_or_default();
        if bytes.is_empty() || self.files.contains_key(&target) {
            return;
        }
        let compressed = Self::compressed(&bytes, random);
        // What a line lacks at the end of a compressed file will never come.
        truth.complete(held.content);
        // A short file is never seen half compressed: its compressed form is written at once.
        let way = random.below(if bytes.len() < 2048 { 2 } else { 3 });
        self.tell(format!("compress {} (c{}) way {way}", original.display(), held.content));
        match way {
            0 => {
                // At once, and the original is gone before anybody looks.
                self.fs.write_as_other(&target, &compressed);
                self.files.insert(target, Held { compressed: true, half: false, ..held.clone() });
                self.remove(&original);
            }
            1 => {
                self.fs.write_as_other(&target, &compressed);
                self.doubled.push((original, target));
            }
            _ => {
                self.fs.write_as_other(&target, &[]);
                self.growing.push(Growing { original, target, rest: compressed });
            }
        }
    }

    /// Something that was begun goes on.
    fn go_on(&mut self, random: &mut Random) {
        if let Some(mut growing) = self.growing.pop() {
            let count = (1 + random.below(growing.rest.len() as u64)) as usize;
            let rest = growing.rest.split_off(count);
            self.fs.append_as_other(&growing.target, &growing.rest);
            growing.rest = rest;
            self.tell(format!("{} grows, {} to go", growing.target.display(), growing.rest.len()));
            if growing.rest.is_empty() {
                self.doubled.push((growing.original, growing.target));
            } else {
                self.growing.insert(0, growing);
            }
        } else if let Some((original, target)) = self.doubled.pop() {
            let held = Held { compressed: true, half: false, ..self.files[&original].clone() };
            self.files.insert(target, held);
            self.remove(&original);
        }
        for family in 0..self.families.len() {
            if self.families[family].truncating {
                self.families[family].truncating = false;
                self.truncate_copied(family);
            }
        }
    }

    fn copytruncate(&mut self, family: usize, random: &mut Random, truth: &mut Truth) {
        let base = PathBuf::from(self.families[family].base);
        if self.family_is_busy(family) || !self.files.contains_key(&base) {
            return;
        }
        if self.links.values().any(|of| *of == base) || !self.shift(family, truth) {
            return;
        }
        let copy = PathBuf::from(format!("{}.1", base.display()));
        let bytes = self.fs.peek(&base).unwrap_or_default();
        self.fs.write_as_other(&copy, &bytes);
        let held = self.files[&base].clone();
        self.tell(format!("copy {} to {} (c{})", base.display(), copy.display(), held.content));
        self.files.insert(copy, held);
        if random.one_in(2) {
            self.families[family].truncating = true;
            return;
        }
        self.truncate_copied(family);
        if random.one_in(2) {
            self.append(family, random, truth);
        }
    }

    fn truncate_copied(&mut self, family: usize) {
        let base = PathBuf::from(self.families[family].base);
        if self.files.remove(&base).is_some() {
            self.fs.truncate_as_other(&base, 0);
            self.tell(format!("truncate {}", base.display()));
        }
    }

    /// Destroys what is in a file, and perhaps writes something else.
    fn rewrite(&mut self, family: usize, random: &mut Random, truth: &mut Truth) {
        let base = PathBuf::from(self.families[family].base);
        if self.family_is_busy(family) || self.links.values().any(|of| *of == base) {
            return;
        }
        let Some(held) = self.files.remove(&base) else { return };
        truth.excuse_unread(held.content);
        self.fs.truncate_as_other(&base, 0);
        self.tell(format!("destroy {} (c{})", base.display(), held.content));
        for _ in 0..random.below(4) {
            self.append(family, random, truth);
        }
    }

    fn delete(&mut self, random: &mut Random, truth: &Truth) {
        let read: Vec<PathBuf> = self
            .files
            .iter()
            .filter(|(path, held)| truth.is_read(held.content) && !self.is_busy(path))
            .map(|(path, _)| path.clone())
            .collect();
        if let Some(path) = pick(&read, random)
            && !self.families.iter().any(|family| family.truncating)
        {
            self.remove(&path);
        }
    }

    fn rename_away(&mut self, random: &mut Random) {
        let names: Vec<PathBuf> =
            self.files.keys().filter(|path| !self.is_busy(path)).cloned().collect();
        let Some(from) = pick(&names, random) else { return };
        if self.links.values().any(|of| *of == from)
            || self.families.iter().any(|family| family.truncating)
        {
            return;
        }
        self.names += 1;
        let at = PathBuf::from(format!("/away/{}", self.names));
        self.fs.create_dir_as_other("/away");
        self.fs.rename_as_other(&from, &at);
        self.tell(format!("{} goes away", from.display()));
        let Some(held) = self.files.remove(&from) else { return };
        let since = *self.left.entry(held.content).or_insert(self.clock.monotonic());
        self.away.push(Away { from, at, held, since });
    }

    fn come_back(&mut self, random: &mut Random, truth: &mut Truth) {
        let Some(at) = (0..self.away.len()).nth(random.below(self.away.len() as u64) as usize)
        else {
            return;
        };
        let away = &self.away[at];
        if self.fs.peek(&away.from).is_some() {
            return;
        }
        let away = self.away.swap_remove(at);
        self.fs.rename_as_other(&away.at, &away.from);
        self.tell(format!("{} comes back", away.from.display()));
        if self.clock.monotonic().since(away.since) >= FORGETFUL {
            truth.contents[away.held.content].forgotten = true;
        }
        self.files.insert(away.from, away.held);
    }

    fn touch(&mut self, random: &mut Random) {
        let names: Vec<PathBuf> = self.files.keys().cloned().collect();
        if let Some(path) = pick(&names, random) {
            self.fs.set_modified_as_other(&path, self.clock.wall());
        }
    }

    /// A second name for a file, or the end of one.
    fn link(&mut self, random: &mut Random) {
        if let Some(link) = self.links.keys().next().cloned() {
            self.fs.remove_as_other(&link);
            self.links.remove(&link);
            self.tell(format!("unlink {}", link.display()));
            return;
        }
        let plain: Vec<PathBuf> = self
            .files
            .iter()
            .filter(|(path, held)| !held.compressed && !self.is_busy(path))
            .map(|(path, _)| path.clone())
            .collect();
        if let Some(of) = pick(&plain, random) {
            self.names += 1;
            // In the reach of the same input, and with a name that looks like one of the same log.
            let link = PathBuf::from(format!("{}.9{}", of.display(), self.names));
            self.fs.hard_link_as_other(&of, &link);
            self.tell(format!("link {} to {}", link.display(), of.display()));
            self.links.insert(link, of);
        }
    }

    fn unlink(&mut self, of: &Path) {
        let link = self.links.iter().find(|(_, path)| *path == of).map(|(link, _)| link.clone());
        if let Some(link) = link {
            self.fs.remove_as_other(&link);
            self.links.remove(&link);
        }
    }

    /// Contents that no file in reach of the program holds.
    pub(crate) fn gone(&self, contents: usize) -> Vec<usize> {
        let mut here = vec![false; contents];
        for held in self.files.values().chain(self.away.iter().map(|away| &away.held)) {
            here[held.content] = true;
        }
        (0..contents).filter(|content| !here[*content]).collect()
    }

    /// Brings everything that was begun to its end.
    pub(crate) fn finish(&mut self, random: &mut Random, truth: &mut Truth) {
        while !self.growing.is_empty() || !self.doubled.is_empty() {
            self.go_on(random);
        }
        self.go_on(random);
        for _ in 0..100 {
            self.come_back(random, truth);
        }
        // What found its place taken comes back under another name.
        for away in std::mem::take(&mut self.away) {
            self.names += 1;
            let name = format!(
                "{}.{}{}",
                away.from.display(),
                100 + self.names,
                if away.held.compressed { ".gz" } else { "" }
            );
            self.fs.rename_as_other(&away.at, &name);
            self.tell(format!("{} comes back as {name}", away.from.display()));
            truth.contents[away.held.content].forgotten = true;
            self.files.insert(PathBuf::from(name), away.held);
        }
    }
}

fn pick(paths: &[PathBuf], random: &mut Random) -> Option<PathBuf> {
    paths.get(random.below(paths.len() as u64) as usize).cloned()
}
