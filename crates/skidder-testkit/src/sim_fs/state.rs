//! The simulated disk: nodes, the names that lead to them, and which of those names a power cut leaves.
//!
//! A node is known inside by a number that is never used twice; the inode number it shows is the lowest
//! one that was free when it was created. A change of names is one atomic edit, as a journal makes it.
//! Edits wait in order until a sync makes them durable; a power cut keeps none of the waiting ones or, if
//! asked for a random loss, the first few.

use super::content::{BLOCK, Content};
use super::faults::Faults;
use super::notify::Notices;
use crate::{Random, SimClock};
use skidder_os::{Clock, FileKind, Metadata, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

pub(super) type NodeId = u64;
type Names = BTreeMap<Arc<OsStr>, NodeId>;

pub(super) const ROOT: NodeId = 0;
/// As Linux has it.
const LINKS_FOLLOWED_MAX: u32 = 40;
const DEVICE: u64 = 0x0801;

#[derive(Debug)]
pub(super) enum Body {
    File(Content),
    Directory { names: Names, durable: Names },
    Symlink(PathBuf),
    Pipe,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) body: Body,
    inode: u64,
    pub(super) modified: Timestamp,
    mode: u32,
    /// Names as the running system sees them.
    links: u32,
    /// Open handles of the program under test.
    pub(super) ours: u32,
    /// Open handles of other programs.
    pub(super) others: u32,
    /// Durable names, and waiting edits that would make one.
    kept: u32,
    /// The handle that holds the lock.
    pub(super) lock: Option<u64>,
}

/// `name` in `directory` becomes `target`, or nothing.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) directory: NodeId,
    pub(super) name: Arc<OsStr>,
    pub(super) target: Option<NodeId>,
}

/// Where a path leads.
pub(super) enum Place<'a> {
    /// To a node; the trail leads to it from the root, by names.
    Node(NodeId),
    /// To a name that does not exist in a directory that does.
    Missing { directory: NodeId, name: &'a OsStr },
}

#[derive(Debug)]
pub(super) struct State {
    nodes: HashMap<NodeId, Node>,
    next: NodeId,
    free_inodes: BinaryHeap<Reverse<u64>>,
    next_inode: u64,
    /// Atomic edits that are not durable, in order.
    waiting: Vec<Vec<Edit>>,
    clock: SimClock,
    pub(super) faults: Faults,
    pub(super) notices: Notices,
    /// Size of the disk and its use, in blocks.
    pub(super) blocks_max: u64,
    pub(super) blocks_used: u64,
    /// Grows when the program under test dies: older handles of it are dead.
    pub(super) process: u64,
    /// Grows when the machine dies: all older handles are dead.
    pub(super) boot: u64,
    pub(super) next_handle: u64,
}

impl State {
    pub(super) fn new(clock: SimClock) -> Self {
        let mut state = Self {
            nodes: HashMap::new(),
            next: ROOT,
            free_inodes: BinaryHeap::new(),
            next_inode: 2,
            waiting: Vec::new(),
            clock,
            faults: Faults::default(),
            notices: Notices::default(),
            blocks_max: u64::MAX,
            blocks_used: 0,
            process: 0,
            boot: 0,
            next_handle: 0,
        };
        let root =
            state.create(Body::Directory { names: Names::new(), durable: Names::new() }, 0o755);
        state.node_mut(root).links = 1;
        state
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(&id).expect("a node lives as long as something refers to it")
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        self.nodes.get_mut(&id).expect("a node lives as long as something refers to it")
    }

    pub(super) fn content_mut(&mut self, id: NodeId) -> io::Result<&mut Content> {
        match &mut self.node_mut(id).body {
            Body::File(content) => Ok(content),
            Body::Directory { .. } => Err(io::ErrorKind::IsADirectory.into()),
            Body::Symlink(_) | Body::Pipe => Err(io::ErrorKind::NotSeekable.into()),
        }
    }

    pub(super) fn names(&self, id: NodeId) -> io::Result<&Names> {
        match &self.node(id).body {
            Body::Directory { names, .. } => Ok(names),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    pub(super) fn kind(&self, id: NodeId) -> FileKind {
        match self.node(id).body {
            Body::File(_) => FileKind::Regular,
            Body::Directory { .. } => FileKind::Directory,
            Body::Symlink(_) => FileKind::Symlink,
            Body::Pipe => FileKind::Other,
        }
    }

    pub(super) fn metadata(&self, id: NodeId) -> Metadata {
        let node = self.node(id);
        let size = match &node.body {
            Body::File(content) => content.bytes().len(),
            Body::Symlink(target) => target.as_os_str().len(),
            Body::Directory { .. } | Body::Pipe => 0,
        };
        Metadata {
            kind: self.kind(id),
            size: size as u64,
            modified: node.modified,
            device: DEVICE,
            inode: node.inode,
            links: u64::from(node.links),
            mode: node.mode,
            uid: 0,
            gid: 0,
        }
    }

    /// Creates a node that nothing refers to yet.
    pub(super) fn create(&mut self, body: Body, mode: u32) -> NodeId {
        let id = self.next;
        self.next += 1;
        let inode = match self.free_inodes.pop() {
            Some(Reverse(inode)) => inode,
            None => {
                self.next_inode += 1;
                self.next_inode - 1
            }
        };
        let modified = self.now();
        let node =
            Node { body, inode, modified, mode, links: 0, ours: 0, others: 0, kept: 0, lock: None };
        self.nodes.insert(id, node);
        id
    }

    /// Forgets a node that nothing leads to any more.
    pub(super) fn release(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if node.links > 0 || node.ours > 0 || node.others > 0 {
            return;
        }
        if node.inode != 0 {
            self.free_inodes.push(Reverse(node.inode));
            node.inode = 0;
            if let Body::File(content) = &node.body {
                self.blocks_used -= content.blocks();
            }
        }
        if node.kept == 0 {
            self.nodes.remove(&id);
        }
    }

    /// Follows `path` from the root, and leaves in `trail` the nodes and names it went through.
    pub(super) fn walk<'a>(
        &'a self,
        path: &'a Path,
        follow_last: bool,
        trail: &mut Vec<(NodeId, &'a OsStr)>,
    ) -> io::Result<Place<'a>> {
        trail.clear();
        trail.push((ROOT, OsStr::new("")));
        if path.as_os_str().is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.walk_on(path, follow_last, trail, &mut 0)
    }

    fn walk_on<'a>(
        &'a self,
        path: &'a Path,
        follow_last: bool,
        trail: &mut Vec<(NodeId, &'a OsStr)>,
        links: &mut u32,
    ) -> io::Result<Place<'a>> {
        let mut components = path.components().peekable();
        while let Some(component) = components.next() {
            let name = match component {
                Component::Normal(name) => name,
                Component::RootDir => {
                    trail.truncate(1);
                    continue;
                }
                Component::ParentDir => {
                    self.names(top(trail))?;
                    if trail.len() > 1 {
                        trail.pop();
                    }
                    continue;
                }
                Component::CurDir | Component::Prefix(_) => continue,
            };
            let last = components.peek().is_none();
            let directory = top(trail);
            let Some(&node) = self.names(directory)?.get(name) else {
                if last {
                    return Ok(Place::Missing { directory, name });
                }
                return Err(io::ErrorKind::NotFound.into());
            };
            match &self.node(node).body {
                Body::Symlink(target) if !last || follow_last => {
                    *links += 1;
                    if *links > LINKS_FOLLOWED_MAX {
                        return Err(io::Error::from_raw_os_error(40)); // ELOOP; its kind is unstable
                    }
                    match self.walk_on(target, true, trail, links)? {
                        Place::Node(_) => {}
                        missing if last => return Ok(missing),
                        Place::Missing { .. } => return Err(io::ErrorKind::NotFound.into()),
                    }
                }
                _ => trail.push((node, name)),
            }
        }
        Ok(Place::Node(top(trail)))
    }

    /// The node that `path` names.
    pub(super) fn find(&self, path: &Path, follow_last: bool) -> io::Result<NodeId> {
        match self.walk(path, follow_last, &mut Vec::with_capacity(8))? {
            Place::Node(node) => Ok(node),
            Place::Missing { .. } => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// The directory and the name in it that `path` spells, links in the last part not followed.
    pub(super) fn spelled(&self, path: &Path) -> io::Result<(NodeId, Arc<OsStr>)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("/"),
        };
        let directory = self.find(parent, true)?;
        self.names(directory)?;
        Ok((directory, name.into()))
    }

    /// Changes names at once for all readers; durable only after [`Self::settle`].
    pub(super) fn edit(&mut self, edits: Vec<Edit>) {
        let now = self.now();
        // First what gains a name, so that a renamed node is never without one.
        for target in edits.iter().filter_map(|edit| edit.target) {
            let node = self.node_mut(target);
            node.links += 1;
            node.kept += 1;
        }
        for edit in &edits {
            let directory = self.node_mut(edit.directory);
            directory.modified = now;
            let Body::Directory { names, .. } = &mut directory.body else {
                unreachable!("only directories are edited");
            };
            let replaced = match edit.target {
                Some(target) => names.insert(edit.name.clone(), target),
                None => names.remove(&edit.name),
            };
            let named = edit.target.or(replaced);
            let is_directory = named.is_some_and(|node| self.kind(node) == FileKind::Directory);
            self.notices.notify_name(edit.directory, &edit.name, is_directory);
            if let Some(replaced) = replaced {
                self.notices.notify_gone(replaced);
                self.node_mut(replaced).links -= 1;
                self.release(replaced);
            }
        }
        self.waiting.push(edits);
    }

    /// Makes the names in `directory` durable, and all edits these depend on.
    pub(super) fn settle(&mut self, directory: NodeId) {
        if self.waiting.is_empty() {
            return;
        }
        let mut touched = vec![directory];
        let mut chosen = vec![false; self.waiting.len()];
        for (index, edits) in self.waiting.iter().enumerate().rev() {
            if edits.iter().any(|edit| touched.contains(&edit.directory)) {
                chosen[index] = true;
                touched.extend(edits.iter().map(|edit| edit.directory));
            }
        }
        for (edits, chosen) in std::mem::take(&mut self.waiting).into_iter().zip(chosen) {
            if chosen {
                self.make_durable(edits);
            } else {
                self.waiting.push(edits);
            }
        }
    }

    /// The number of edits that are not durable.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Makes all edits durable that came after there were `waiting`, and those they depend on.
    pub(super) fn settle_after(&mut self, waiting: usize) {
        let directories: Vec<NodeId> =
            self.waiting[waiting..].iter().flatten().map(|edit| edit.directory).collect();
        for directory in directories {
            self.settle(directory);
        }
    }

    fn make_durable(&mut self, edits: Vec<Edit>) {
        for edit in edits {
            let Body::Directory { durable, .. } = &mut self.node_mut(edit.directory).body else {
                unreachable!("only directories are edited");
            };
            let replaced = match edit.target {
                Some(target) => durable.insert(edit.name, target),
                None => durable.remove(&edit.name),
            };
            if let Some(replaced) = replaced {
                self.node_mut(replaced).kept -= 1;
                self.release(replaced);
            }
        }
    }

    /// All handles and locks of the program under test are gone; the system goes on.
    pub(super) fn kill(&mut self) {
        self.process += 1;
        self.notices.clear();
        self.faults.halt_at = None;
        let mut idle: Vec<NodeId> = Vec::new();
        for (id, node) in &mut self.nodes {
            node.ours = 0;
            node.lock = None;
            if node.links == 0 {
                idle.push(*id);
            }
        }
        // In order, so that a seed decides everything.
        idle.sort_unstable();
        for id in idle {
            self.release(id);
        }
    }

    /// The power goes: what is not durable is lost, or a random part of it.
    pub(super) fn crash(&mut self, mut random: Option<&mut Random>) {
        self.process += 1;
        self.boot += 1;
        self.notices.clear();
        self.faults.halt_at = None;
        let waiting = std::mem::take(&mut self.waiting);
        let kept = match random.as_deref_mut() {
            None => 0,
            Some(random) => random.below(waiting.len() as u64 + 1) as usize,
        };
        for edits in waiting.into_iter().take(kept) {
            self.make_durable(edits);
        }
        self.keep_only_durable();
        let mut ids: Vec<NodeId> = self.nodes.keys().copied().collect();
        ids.sort_unstable();
        for id in &ids {
            if let Body::File(content) = &mut self.node_mut(*id).body {
                content.crash(random.as_deref_mut());
            }
        }
        self.number_inodes(&ids);
        self.blocks_used = self.nodes.values().map(blocks).sum();
    }

    /// Names become the durable ones; nodes that no durable name leads to are dropped.
    fn keep_only_durable(&mut self) {
        let mut links: HashMap<NodeId, u32> = HashMap::from([(ROOT, 1)]);
        let mut directories = vec![ROOT];
        while let Some(directory) = directories.pop() {
            let Body::Directory { names, durable } = &mut self.node_mut(directory).body else {
                continue;
            };
            names.clone_from(durable);
            for target in durable.values() {
                *links.entry(*target).or_default() += 1;
                directories.push(*target);
            }
        }
        self.nodes.retain(|id, _| links.contains_key(id));
        for (id, node) in &mut self.nodes {
            node.links = links[id];
            node.kept = links[id];
            (node.ours, node.others, node.lock) = (0, 0, None);
        }
    }

    /// Gives every node an inode number of its own again: a resurrected file may find its old one in use.
    fn number_inodes(&mut self, ids: &[NodeId]) {
        let mut used = std::collections::BTreeSet::new();
        let mut without = Vec::new();
        for id in ids {
            let inode = self.node(*id).inode;
            if inode == 0 || !used.insert(inode) {
                without.push(*id);
            }
        }
        self.next_inode = used.last().map_or(2, |last| last + 1);
        self.free_inodes =
            (2..self.next_inode).filter(|n| !used.contains(n)).map(Reverse).collect();
        for id in without {
            let inode = match self.free_inodes.pop() {
                Some(Reverse(inode)) => inode,
                None => {
                    self.next_inode += 1;
                    self.next_inode - 1
                }
            };
            self.node_mut(id).inode = inode;
        }
    }

    pub(super) fn blocks_free(&self) -> u64 {
        self.blocks_max.saturating_sub(self.blocks_used)
    }
}

/// The size of the disk in blocks for a size in bytes.
pub(super) fn blocks_in(bytes: u64) -> u64 {
    bytes / BLOCK as u64
}

fn blocks(node: &Node) -> u64 {
    match &node.body {
        Body::File(content) => content.blocks(),
        _ => 0,
    }
}

fn top(trail: &[(NodeId, &OsStr)]) -> NodeId {
    trail.last().expect("a trail begins at the root").0
}
