//! Random operations on [`SimFs`] and on [`RealFs`] in a temporary directory must agree.

use super::*;
use skidder_os::RealFs;
use std::collections::BTreeMap;

/// Few names, so that they meet often: files, directories, links, and paths through links.
const PATHS: [&str; 12] =
    ["a", "b", "c", "d/a", "d/b", "d/e/a", "d", "d/e", "link", "d/up", "d/up/a", "missing/a"];

/// Where the operations go: deep enough that no moved `..` leads out of the temporary directory.
const INSIDE: &str = "1/2/3/4";

/// The same directory in both worlds.
struct Pair {
    /// What is `/` in the simulation.
    temporary: PathBuf,
    sim: SimFs,
    open: Vec<(Box<dyn File>, Box<dyn File>)>,
}

/// Everything of a result that both worlds must share.
fn outcome<T>(result: &io::Result<T>) -> Result<(), ErrorKind> {
    result.as_ref().map(drop).map_err(io::Error::kind)
}

fn shape(metadata: Metadata) -> (FileKind, u64, u64) {
    match metadata.kind {
        FileKind::Directory => (FileKind::Directory, 0, 0),
        kind => (kind, metadata.size, metadata.links),
    }
}

impl Pair {
    fn new(temporary: &Path) -> Self {
        let real = temporary.join(INSIDE);
        let sim = SimFs::new(&SimClock::new());
        RealFs.create_dir_all(&real.join("d/e"), 0o755).unwrap();
        sim.create_dir_all(&Path::new("/").join(INSIDE).join("d/e"), 0o755).unwrap();
        std::os::unix::fs::symlink("d/b", real.join("link")).unwrap();
        std::os::unix::fs::symlink("..", real.join("d/up")).unwrap();
        sim.symlink_as_other("d/b", Path::new("/").join(INSIDE).join("link"));
        sim.symlink_as_other("..", Path::new("/").join(INSIDE).join("d/up"));
        Self { temporary: temporary.to_path_buf(), sim, open: Vec::new() }
    }

    fn both<T>(
        &self,
        path: &str,
        operation: impl Fn(&dyn Fs, &Path) -> io::Result<T>,
    ) -> (io::Result<T>, io::Result<T>) {
        let real = operation(&RealFs, &self.temporary.join(INSIDE).join(path));
        let sim = operation(&self.sim, &Path::new("/").join(INSIDE).join(path));
        assert_eq!(outcome(&real), outcome(&sim), "{path}");
        (real, sim)
    }

    fn step(&mut self, random: &mut Random) {
        let path = PATHS[random.below(PATHS.len() as u64) as usize];
        let to = PATHS[random.below(PATHS.len() as u64) as usize];
        match random.below(12) {
            0..=2 => {
                let modes = [OpenMode::Keep, OpenMode::Truncate, OpenMode::New];
                let mode = modes[random.below(3) as usize];
                if let (Ok(real), Ok(sim)) =
                    self.both(path, |fs, path| fs.open_write(path, mode, 0o644))
                {
                    self.open.push((real, sim));
                }
            }
            3 => {
                if let (Ok(real), Ok(sim)) = self.both(path, |fs, path| fs.open(path)) {
                    self.open.push((real, sim));
                }
            }
            4 if !self.open.is_empty() => {
                self.open.swap_remove(random.below(self.open.len() as u64) as usize);
            }
            5 | 6 => self.change_content(random),
            7 => {
                let root = self.temporary.clone();
                self.both(path, |fs, from| {
                    let to = if from.starts_with(&root) {
                        root.join(INSIDE).join(to)
                    } else {
                        Path::new("/").join(INSIDE).join(to)
                    };
                    fs.rename(from, &to)
                })
                .0
                .ok();
            }
            8 => drop(self.both(path, |fs, path| fs.remove_file(path))),
            9 => drop(self.both(path, |fs, path| fs.create_dir_all(path, 0o755))),
            10 => {
                let (real, sim) = self.both(path, |fs, path| fs.canonicalize(path));
                if let (Ok(real), Ok(sim)) = (real, sim) {
                    assert_eq!(
                        real.strip_prefix(&self.temporary).unwrap(),
                        sim.strip_prefix("/").unwrap()
                    );
                }
            }
            _ => {
                let (real, sim) = self.both(path, |fs, path| fs.metadata(path));
                assert_eq!(real.ok().map(shape), sim.ok().map(shape), "{path}");
            }
        }
    }

    fn change_content(&mut self, random: &mut Random) {
        if self.open.is_empty() {
            return;
        }
        let (real, sim) = &self.open[random.below(self.open.len() as u64) as usize];
        let mut bytes = vec![0; random.below(6000) as usize];
        random.fill(&mut bytes);
        let offset = random.below(10_000);
        let outcomes = [real, sim].map(|file| {
            if bytes.len().is_multiple_of(3) {
                outcome(&file.set_len(offset))
            } else {
                outcome(&write_all_at(&**file, &bytes, offset))
            }
        });
        // A read-only handle is refused; the two calls differ in the error of the real one.
        assert_eq!(outcomes[0].is_ok(), outcomes[1].is_ok());
    }

    fn compare(&self) {
        for (real, sim) in &self.open {
            assert_eq!(shape(real.metadata().unwrap()), shape(sim.metadata().unwrap()));
            let contents =
                [real, sim].map(|file| read_to_end(&**file, usize::MAX).map_err(|e| e.kind()));
            assert!(contents[0] == contents[1], "contents differ");
        }
        let found = tree(&RealFs, &self.temporary, Path::new(""));
        assert_eq!(found, tree(&self.sim, Path::new("/"), Path::new("")));
    }
}

fn tree(fs: &dyn Fs, root: &Path, below: &Path) -> BTreeMap<PathBuf, (FileKind, u64, u64)> {
    let mut found = BTreeMap::new();
    fs.scan_dir(&root.join(below), &mut |_| true, &mut |name, metadata| {
        found.insert(below.join(name), shape(metadata));
    })
    .unwrap();
    let mut kinds = BTreeMap::new();
    fs.read_dir(&root.join(below), &mut |entry| {
        kinds.insert(below.join(entry.name), entry.kind);
    })
    .unwrap();
    assert!(found.iter().map(|(path, shape)| (path, &shape.0)).eq(&kinds));
    for (path, _) in kinds.iter().filter(|(_, kind)| **kind == FileKind::Directory) {
        found.extend(tree(fs, root, path));
    }
    found
}

#[test]
fn random_operations_agree_with_the_real_file_system() {
    for seed in 0..60 {
        let temporary = tempfile::tempdir().unwrap();
        let real = temporary.path().canonicalize().unwrap();
        let mut pair = Pair::new(&real);
        let mut random = Random::new(seed);
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for step in 0..150 {
                pair.step(&mut random);
                if step % 10 == 0 {
                    pair.compare();
                }
            }
            pair.compare();
        }));
        assert!(ran.is_ok(), "seed {seed}");
    }
}
