//! A vector of small chunks that can be cloned in constant time.
//!
//! Chunks are in wide nodes, and nodes in a root. Each node and the root is an `Arc`, and a chunk is a value that is
//! cheap to clone, such as an `Arc`. A clone shares the root. A writer changes unshared nodes in place. It copies a
//! path of two small vectors the first time it changes a node that a clone still shares.

use std::sync::Arc;

/// How many chunks a node holds.
const NODE: usize = 64;

type Node<C> = Vec<C>;

#[derive(Debug, Clone)]
pub(super) struct Chunks<C> {
    nodes: Arc<Vec<Arc<Node<C>>>>,
    len: usize,
}

impl<C: Clone> Chunks<C> {
    pub(super) fn new() -> Self {
        Self { nodes: Arc::default(), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, at: usize) -> Option<&C> {
        self.nodes.get(at / NODE)?.get(at % NODE)
    }

    /// Returns a chunk for writing.
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut C> {
        if at >= self.len {
            return None;
        }
        let node = Arc::make_mut(Arc::make_mut(&mut self.nodes).get_mut(at / NODE)?);
        node.get_mut(at % NODE)
    }

    pub(super) fn push(&mut self, chunk: C) {
        let nodes = Arc::make_mut(&mut self.nodes);
        match nodes.last_mut().filter(|node| node.len() < NODE) {
            Some(node) => Arc::make_mut(node).push(chunk),
            None => nodes.push(Arc::new(vec![chunk])),
        }
        self.len += 1;
    }

    pub(super) fn pop(&mut self) -> Option<C> {
        let nodes = Arc::make_mut(&mut self.nodes);
        let chunk = Arc::make_mut(nodes.last_mut()?).pop()?;
        nodes.pop_if(|node| node.is_empty());
        self.len -= 1;
        Some(chunk)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &C> {
        self.nodes.iter().flat_map(|node| node.iter())
    }
}
