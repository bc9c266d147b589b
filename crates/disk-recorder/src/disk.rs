//! A file system that tracks which changes are durable.

use std::collections::{BTreeMap, HashMap};

use crate::content::{Change, Content, State};
use crate::image::Image;
use crate::survival::{Names, Survival};
use crate::trace::{Event, Handle};

type NodeNumber = usize;
const ROOT: NodeNumber = 0;

#[derive(Debug, Default)]
pub struct Disk {
    nodes: Vec<Node>,
    /// All changes of names so far, and whether each is durable.
    names: Vec<(NameChange, bool)>,
    /// How many changes of names precede the start of the last sync of anything. A journaling file
    /// system keeps these.
    journaled: usize,
    open: HashMap<Handle, NodeNumber>,
    /// What each running sync will cover.
    syncs: HashMap<(u32, u64), Covered>,
    /// Files whose syncs don't count, by their path when opened. This is how a test builds a faulty
    /// program.
    ignored_syncs: Option<fn(&str) -> bool>,
    ignored: Vec<Handle>,
}

#[derive(Debug)]
enum Node {
    Directory { durable: Entries, now: Entries },
    File(Content),
}

type Entries = BTreeMap<String, NodeNumber>;

#[derive(Debug, Clone)]
struct NameChange {
    directory: NodeNumber,
    removed: Option<String>,
    added: Option<(String, NodeNumber)>,
}

#[derive(Debug)]
struct Covered {
    node: NodeNumber,
    changes: usize,
    names: usize,
}

impl Disk {
    /// A disk on which this image is durable.
    pub fn new(image: &Image) -> Disk {
        let directory = || Node::Directory { durable: Entries::new(), now: Entries::new() };
        let mut disk = Disk { nodes: vec![directory()], ..Disk::default() };
        for (path, content) in &image.entries {
            let node = match content {
                None => directory(),
                Some(bytes) => Node::File(Content::durable(bytes.clone())),
            };
            let number = disk.add_node(node);
            let (parent, name) = disk.parent_of(path);
            let (durable, now) = disk.directory(parent);
            durable.insert(name.clone(), number);
            now.insert(name, number);
        }
        disk
    }

    /// Ignores the syncs of files and directories with matching paths, as if the program had
    /// forgotten them.
    #[must_use]
    pub fn ignoring_syncs(self, fits: fn(&str) -> bool) -> Disk {
        Disk { ignored_syncs: Some(fits), ..self }
    }

    /// # Panics
    /// If the event is impossible on this disk, which means that the recorder has missed something.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Start { process } => self.open.retain(|(owner, _), _| owner != process),
            Event::Mark { .. } => {}
            Event::Open { handle, path, is_created, is_truncated } => {
                self.open_file(*handle, path, *is_created, *is_truncated);
            }
            Event::Write { handle, offset, data } => {
                self.change(*handle, Change::Write { offset: *offset, data: data.clone() });
            }
            Event::Truncate { handle, length } => {
                self.change(*handle, Change::Truncate { length: *length });
            }
            Event::Allocate { handle, length } => {
                self.change(*handle, Change::Allocate { length: *length });
            }
            Event::SyncBegin { handle, number } => self.begin_sync(*handle, *number),
            Event::SyncEnd { handle, number } => self.end_sync(handle.0, *number, State::Durable),
            Event::SyncFailed { handle, number } => {
                self.end_sync(handle.0, *number, State::GivenUp);
            }
            Event::Rename { from, to } => self.rename(from, to),
            Event::Link { from, to } => {
                let node = self.find(from);
                let (directory, name) = self.parent_of(to);
                self.change_name(directory, None, Some((name, node)));
            }
            Event::Unlink { path } | Event::RemoveDirectory { path } => {
                let (directory, name) = self.parent_of(path);
                self.change_name(directory, Some(name), None);
            }
            Event::MakeDirectory { path } => {
                let node = Node::Directory { durable: Entries::new(), now: Entries::new() };
                let number = self.add_node(node);
                let (directory, name) = self.parent_of(path);
                self.change_name(directory, None, Some((name, number)));
            }
        }
    }

    /// What would be left if power failed now.
    pub fn after_power_cut(&self, survival: &Survival) -> Image {
        let mut directories: HashMap<NodeNumber, Entries> = HashMap::new();
        for (number, node) in self.nodes.iter().enumerate() {
            if let Node::Directory { durable, .. } = node {
                directories.insert(number, durable.clone());
            }
        }
        let pending = self.names.len() - self.journaled;
        let journaled = self.journaled + survival.choose(&[u64::MAX], pending + 1);
        let mut allowance: HashMap<NodeNumber, usize> = HashMap::new();
        for (change, _) in self.names.iter().filter(|(_, is_durable)| !is_durable) {
            *allowance.entry(change.directory).or_default() += 1;
        }
        for (directory, allowance) in &mut allowance {
            *allowance = survival.choose(&[u64::MAX - 1, *directory as u64], *allowance + 1);
        }
        for (number, (change, is_durable)) in self.names.iter().enumerate() {
            let survives = match survival.names {
                Names::Synced => false,
                Names::All => true,
                Names::Prefix => !is_durable && take_allowance(&mut allowance, change.directory),
                Names::Journaled => number < journaled,
            };
            if *is_durable || survives {
                change.apply(directories.get_mut(&change.directory).expect("a directory"));
            }
        }
        let mut image = Image::default();
        self.collect(ROOT, "", &directories, survival, &mut image);
        image
    }

    fn collect(
        &self,
        directory: NodeNumber,
        prefix: &str,
        directories: &HashMap<NodeNumber, Entries>,
        survival: &Survival,
        image: &mut Image,
    ) {
        for (name, number) in &directories[&directory] {
            let path = format!("{prefix}{name}");
            match &self.nodes[*number] {
                Node::Directory { .. } => {
                    image.entries.insert(path.clone(), None);
                    self.collect(*number, &format!("{path}/"), directories, survival, image);
                }
                Node::File(content) => {
                    let bytes = content.surviving(survival, *number as u64);
                    image.entries.insert(path, Some(bytes));
                }
            }
        }
    }

    fn open_file(&mut self, handle: Handle, path: &str, is_created: bool, is_truncated: bool) {
        if is_created {
            let number = self.add_node(Node::File(Content::default()));
            let (directory, name) = self.parent_of(path);
            self.change_name(directory, None, Some((name, number)));
        }
        let node = self.find(path);
        self.open.insert(handle, node);
        if self.ignored_syncs.is_some_and(|fits| fits(path)) {
            self.ignored.push(handle);
        }
        if is_truncated {
            self.change(handle, Change::Truncate { length: 0 });
        }
    }

    fn change(&mut self, handle: Handle, change: Change) {
        let node = self.open[&handle];
        match &mut self.nodes[node] {
            Node::File(content) => content.add(change),
            Node::Directory { .. } => panic!("{change:?} of a directory"),
        }
    }

    fn begin_sync(&mut self, handle: Handle, number: u64) {
        if self.ignored.contains(&handle) {
            return;
        }
        let node = self.open[&handle];
        let changes = match &self.nodes[node] {
            Node::File(content) => content.change_count(),
            Node::Directory { .. } => 0,
        };
        self.syncs.insert((handle.0, number), Covered { node, changes, names: self.names.len() });
    }

    fn end_sync(&mut self, process: u32, number: u64, state: State) {
        let Some(Covered { node, changes, names }) = self.syncs.remove(&(process, number)) else {
            assert!(self.ignored_syncs.is_some(), "a sync ended that never began");
            return;
        };
        match &mut self.nodes[node] {
            Node::File(content) => content.settle(changes, state),
            // A directory whose sync failed just stays unsynced.
            Node::Directory { .. } if state == State::Durable => {
                for (change, is_durable) in &mut self.names[..names] {
                    *is_durable |= change.directory == node;
                }
            }
            Node::Directory { .. } => {}
        }
        if state == State::Durable {
            self.journaled = self.journaled.max(names);
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        let node = self.find(from);
        let (directory, name) = self.parent_of(from);
        let (other, new_name) = self.parent_of(to);
        assert_eq!(directory, other, "moving {from} to {to} changes two directories");
        self.change_name(directory, Some(name), Some((new_name, node)));
    }

    fn change_name(
        &mut self,
        directory: NodeNumber,
        removed: Option<String>,
        added: Option<(String, NodeNumber)>,
    ) {
        let change = NameChange { directory, removed, added };
        let (_, now) = self.directory(directory);
        if let Some(removed) = &change.removed {
            assert!(now.contains_key(removed), "{removed} was removed before");
        }
        change.apply(now);
        self.names.push((change, false));
    }

    fn add_node(&mut self, node: Node) -> NodeNumber {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn directory(&mut self, number: NodeNumber) -> (&mut Entries, &mut Entries) {
        match &mut self.nodes[number] {
            Node::Directory { durable, now } => (durable, now),
            Node::File(_) => panic!("a file is used as a directory"),
        }
    }

    fn find(&self, path: &str) -> NodeNumber {
        path.split('/').filter(|name| !name.is_empty()).fold(ROOT, |directory, name| {
            let Node::Directory { now, .. } = &self.nodes[directory] else {
                panic!("{path} goes through a file");
            };
            *now.get(name).unwrap_or_else(|| panic!("{path} was never created"))
        })
    }

    fn parent_of(&self, path: &str) -> (NodeNumber, String) {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        (self.find(parent), name.to_owned())
    }
}

/// Whether one more change of a directory survives.
fn take_allowance(allowance: &mut HashMap<NodeNumber, usize>, directory: NodeNumber) -> bool {
    let Some(left) = allowance.get_mut(&directory).filter(|left| **left > 0) else { return false };
    *left -= 1;
    true
}

impl NameChange {
    /// Does nothing if the name to remove does not exist, because an earlier change was lost.
    fn apply(&self, entries: &mut Entries) {
        if let Some(name) = &self.removed
            && entries.remove(name).is_none()
        {
            return;
        }
        if let Some((name, node)) = &self.added {
            entries.insert(name.clone(), *node);
        }
    }
}
