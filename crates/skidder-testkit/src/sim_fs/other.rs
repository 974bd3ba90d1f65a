//! What other programs do: the applications that write logs, and the operator.
//!
//! Their operations do not count, do not fail on purpose, ignore the size of the disk, and are durable
//! at once: the tests are about *our* state. (Changes of ours that wait for a sync of a directory in which
//! they add or remove a name become durable with them.) A mistake of the workload panics.

use super::SimFs;
use super::content::Content;
use super::state::{Body, Edit, NodeId, Place, State};
use skidder_os::{FileKind, Metadata, Timestamp};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl SimFs {
    /// Replaces the content of a file, or creates it with its directories.
    #[track_caller]
    pub fn write_as_other(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        self.as_other(path.as_ref(), |state, path| {
            let node = state.file(path);
            state.set_len(node, 0).expect("it is a file");
            state.append(node, bytes);
        });
    }

    /// Appends to a file, or creates it with its directories.
    #[track_caller]
    pub fn append_as_other(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        self.as_other(path.as_ref(), |state, path| {
            let node = state.file(path);
            state.append(node, bytes);
        });
    }

    /// Cuts a file to `size`, or extends it with zeros.
    #[track_caller]
    pub fn truncate_as_other(&self, path: impl AsRef<Path>, size: u64) {
        self.as_other(path.as_ref(), |state, path| {
            let node = state.existing(path);
            state.set_len(node, size).expect("it is a file");
            state.settle_content(node);
        });
    }

    /// Copies a file and empties it, as `logrotate` does with `copytruncate`.
    #[track_caller]
    pub fn copytruncate_as_other(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) {
        let bytes = self.peek(from.as_ref()).expect("the workload copies what is there");
        self.write_as_other(to, &bytes);
        self.truncate_as_other(from, 0);
    }

    /// Renames a file or directory, replacing the target.
    #[track_caller]
    pub fn rename_as_other(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) {
        let from = from.as_ref();
        self.as_other(to.as_ref(), |state, to| {
            state
                .rename(from, to)
                .unwrap_or_else(|e| panic!("rename {} to {}: {e}", from.display(), to.display()));
        });
    }

    /// Removes a file's name.
    #[track_caller]
    pub fn remove_as_other(&self, path: impl AsRef<Path>) {
        self.as_other(path.as_ref(), |state, path| {
            state.remove_file(path).unwrap_or_else(|e| panic!("remove {}: {e}", path.display()));
        });
    }

    /// Removes a directory with all that is in it.
    #[track_caller]
    pub fn remove_dir_as_other(&self, path: impl AsRef<Path>) {
        self.as_other(path.as_ref(), |state, path| {
            let (directory, name) = state.spelled(path).expect("the parent is there");
            let node = *state
                .names(directory)
                .expect("it is a directory")
                .get(&name)
                .expect("it is there");
            state.empty(node);
            state.edit(vec![Edit { directory, name, target: None }]);
        });
    }

    /// Creates a directory and its parents.
    #[track_caller]
    pub fn create_dir_as_other(&self, path: impl AsRef<Path>) {
        self.as_other(path.as_ref(), |state, path| {
            state
                .create_dir_all(path, 0o755)
                .unwrap_or_else(|e| panic!("mkdir {}: {e}", path.display()));
        });
    }

    /// Creates a symbolic link, or replaces the file or link there.
    #[track_caller]
    pub fn symlink_as_other(&self, target: impl AsRef<Path>, link: impl AsRef<Path>) {
        let body = Body::Symlink(target.as_ref().into());
        self.as_other(link.as_ref(), |state, link| state.place(link, body));
    }

    /// Creates a named pipe, or replaces the file or link there.
    #[track_caller]
    pub fn pipe_as_other(&self, path: impl AsRef<Path>) {
        self.as_other(path.as_ref(), |state, path| state.place(path, Body::Pipe));
    }

    /// Gives a file a further name.
    #[track_caller]
    pub fn hard_link_as_other(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) {
        let from = from.as_ref();
        self.as_other(to.as_ref(), |state, to| {
            let target = state.find(from, false).expect("the workload links what is there");
            let (directory, name) = state.spelled(to).expect("the directory is there");
            assert!(
                !state.names(directory).expect("it is a directory").contains_key(&name),
                "{} is there",
                to.display()
            );
            state.edit(vec![Edit { directory, name, target: Some(target) }]);
        });
    }

    /// Sets the time of the last change.
    #[track_caller]
    pub fn set_modified_as_other(&self, path: impl AsRef<Path>, modified: Timestamp) {
        let mut state = self.lock();
        let node = state.existing(path.as_ref());
        state.node_mut(node).modified = modified;
    }

    /// Opens a file as a log writer does that keeps it open over rotations; creates it if missing.
    #[track_caller]
    pub fn open_as_other(&self, path: impl AsRef<Path>) -> OtherHandle {
        let (mut node, mut boot) = (0, 0);
        self.as_other(path.as_ref(), |state, path| {
            node = state.file(path);
            state.node_mut(node).others += 1;
            boot = state.boot;
        });
        OtherHandle { fs: self.clone(), node, boot }
    }

    /// The content of a file as all readers see it; `None` if there is no such file.
    pub fn peek(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let state = self.lock();
        let node = state.find(path.as_ref(), true).ok()?;
        match &state.node(node).body {
            Body::File(content) => Some(content.bytes().to_vec()),
            _ => None,
        }
    }

    /// What a path names, links not followed; `None` if there is nothing.
    pub fn peek_metadata(&self, path: impl AsRef<Path>) -> Option<Metadata> {
        let state = self.lock();
        state.find(path.as_ref(), false).ok().map(|node| state.metadata(node))
    }

    /// The names in a directory, sorted; empty if there is no such directory.
    pub fn peek_names(&self, path: impl AsRef<Path>) -> Vec<OsString> {
        let state = self.lock();
        let names = state.find(path.as_ref(), true).and_then(|node| state.names(node));
        names.map_or_else(|_| Vec::new(), |names| names.keys().map(|name| name.into()).collect())
    }

    /// Runs `change` on `path`, whose directories are there then, and makes all of it durable.
    #[track_caller]
    fn as_other(&self, path: &Path, change: impl FnOnce(&mut State, &Path)) {
        let mut state = self.lock();
        let waiting = state.waiting();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent: PathBuf = parent.map_or_else(|| "/".into(), Path::to_path_buf);
        state
            .create_dir_all(&parent, 0o755)
            .unwrap_or_else(|e| panic!("mkdir {}: {e}", parent.display()));
        change(&mut state, path);
        state.settle_after(waiting);
    }
}

impl State {
    #[track_caller]
    fn existing(&self, path: &Path) -> NodeId {
        self.find(path, true).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The file that `path` names; created if missing.
    #[track_caller]
    fn file(&mut self, path: &Path) -> NodeId {
        let missing = match self.walk(path, true, &mut Vec::new()) {
            Ok(Place::Node(node)) => return node,
            Ok(Place::Missing { directory, name }) => (directory, Arc::from(name)),
            Err(error) => panic!("{}: {error}", path.display()),
        };
        let node = self.create(Body::File(Content::default()), 0o644);
        self.edit(vec![Edit { directory: missing.0, name: missing.1, target: Some(node) }]);
        node
    }

    #[track_caller]
    fn append(&mut self, node: NodeId, bytes: &[u8]) {
        let end = self.metadata(node).size;
        self.settle_content(node);
        self.write(node, bytes, end, u64::MAX)
            .expect("it is a file, and the disk has no limit here");
        self.settle_content(node);
    }

    fn settle_content(&mut self, node: NodeId) {
        self.content_mut(node).expect("it is a file").settle();
    }

    /// Puts a new node at `path`, replacing what is there.
    fn place(&mut self, path: &Path, body: Body) {
        let (directory, name) = self.spelled(path).expect("the directory is there");
        let target = Some(self.create(body, 0o777));
        self.edit(vec![Edit { directory, name, target }]);
    }

    /// Removes everything in a directory.
    fn empty(&mut self, directory: NodeId) {
        let names = self.names(directory).expect("it is a directory").clone();
        for (name, node) in names {
            if self.kind(node) == FileKind::Directory {
                self.empty(node);
            }
            self.edit(vec![Edit { directory, name, target: None }]);
        }
    }
}

/// A file that another program keeps open: it goes on writing there whatever happens to the name.
/// A crash of the machine ends it: appending panics then.
#[derive(Debug)]
pub struct OtherHandle {
    fs: SimFs,
    node: NodeId,
    boot: u64,
}

impl OtherHandle {
    /// Appends to the file, whatever its name is now.
    #[track_caller]
    pub fn append(&self, bytes: &[u8]) {
        let mut state = self.fs.lock();
        assert_eq!(state.boot, self.boot, "the machine has crashed since this handle was opened");
        state.append(self.node, bytes);
    }

    /// What the file is now; `links` is 0 if it was deleted.
    #[track_caller]
    pub fn metadata(&self) -> Metadata {
        let state = self.fs.lock();
        assert_eq!(state.boot, self.boot, "the machine has crashed since this handle was opened");
        state.metadata(self.node)
    }
}

impl Drop for OtherHandle {
    fn drop(&mut self) {
        let mut state = self.fs.lock();
        if state.boot == self.boot {
            state.node_mut(self.node).others -= 1;
            state.release(self.node);
        }
    }
}
