//! The classic queue: all changes of one object together, objects in the order in which they first changed.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::{Delta, ListMark, Queue, Replacement, Scope, in_scope};
use crate::object::{KeyRef, Object, ObjectKey};
use crate::processor::Deleted;
use crate::store::{Snapshot, Store};

/// One change of one object.
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::source::Identity;
/// # let thing = |key: &str, version: &str| {
/// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
/// # };
/// use kube_informer::Delta;
/// use kube_informer::queue::KeyDelta;
///
/// let delta = KeyDelta::Replaced(thing("web/a", "2"));
/// assert_eq!(delta.object().version, "2");
/// assert_eq!(format!("{delta:?}"), "Replaced(web/a@2)");
/// assert!(matches!(Delta::from(delta), Delta::Updated(_)), "what an informer makes of it");
/// ```
pub enum KeyDelta<T> {
    /// It appeared.
    Added(Arc<T>),
    /// It changed.
    Updated(Arc<T>),
    /// It was listed; see [`DeltaFifo::emit_replaced`].
    Replaced(Arc<T>),
    /// It is to be looked at again, though nothing changed.
    Sync(Arc<T>),
    /// It is gone.
    Deleted(Deleted<T>),
}

/// The changes of one object, oldest first. There is at least one.
pub type Deltas<T> = Vec<KeyDelta<T>>;

/// Changes waiting to be applied, all of one object together, objects in the order in which they first changed.
///
/// client-go's `DeltaFIFO`, with its order and its rules. Two deletions in a row become one; nothing else is merged. What
/// differs: synced is true only once what was popped is also processed, and what the store knows is passed in.
///
/// ```
/// # use std::sync::Arc;
/// # use kube_informer::source::Identity;
/// # let thing = |key: &str, version: &str| {
/// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
/// # };
/// use kube_informer::{Deleted, DeltaFifo, Store};
/// use kube_informer::queue::KeyDelta;
///
/// let (store, _writer) = Store::new(0);
/// let mut queue = DeltaFifo::new();
/// queue.add(thing("web/a", "1"));
/// queue.add(thing("web/b", "2"));
/// queue.update(thing("web/a", "3"));
/// queue.delete(Deleted::Final(thing("web/a", "4")), &store.snapshot());
/// assert_eq!(queue.len(), 2, "objects, not changes");
///
/// let (key, deltas) = queue.pop().unwrap();
/// assert_eq!(key.as_str(), "web/a");
/// assert!(matches!(deltas[..], [KeyDelta::Added(_), KeyDelta::Updated(_), KeyDelta::Deleted(_)]));
/// assert_eq!(queue.pop().unwrap().0.as_str(), "web/b");
/// queue.processed();
/// assert!(queue.is_empty() && queue.has_synced());
/// ```
pub struct DeltaFifo<T> {
    order: VecDeque<Place<T>>,
    deltas: HashMap<ObjectKey, Deltas<T>>,
    emit_replaced: bool,
    /// How many objects of the first population are not yet processed; `None` before it.
    initial: Option<usize>,
    /// How many of those were popped and are not yet processed.
    in_hand: usize,
    closed: bool,
}

/// One place in the line.
enum Place<T> {
    Key(ObjectKey),
    /// Something about many objects or none, in line with the changes before and behind it.
    Mark(Delta<T>),
}

impl<T: Object> DeltaFifo<T> {
    /// An empty queue. What is listed comes out as [`KeyDelta::Sync`] unless told otherwise.
    pub fn new() -> Self {
        Self {
            order: VecDeque::new(),
            deltas: HashMap::new(),
            emit_replaced: false,
            initial: None,
            in_hand: 0,
            closed: false,
        }
    }

    /// Says whether what is listed comes out as [`KeyDelta::Replaced`], told apart from a resync.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{DeltaFifo, Store, queue::KeyDelta};
    /// let (store, _writer) = Store::new(0);
    /// let mut queue = DeltaFifo::new().emit_replaced(true);
    /// queue.replace(vec![thing("web/a", "1")], &store.snapshot());
    /// assert!(matches!(queue.pop().unwrap().1[..], [KeyDelta::Replaced(_)]), "and not `Sync`");
    /// ```
    #[must_use]
    pub fn emit_replaced(mut self, emit_replaced: bool) -> Self {
        self.emit_replaced = emit_replaced;
        self
    }

    /// An object appeared.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{DeltaFifo, queue::KeyDelta};
    /// let mut queue = DeltaFifo::new();
    /// queue.add(thing("web/a", "1"));
    /// assert!(matches!(queue.get("web/a"), Some([KeyDelta::Added(_)])));
    /// ```
    pub fn add(&mut self, object: Arc<T>) {
        self.populate();
        self.enqueue(object.id().key.into(), KeyDelta::Added(object));
    }

    /// An object changed.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{DeltaFifo, queue::KeyDelta};
    /// let mut queue = DeltaFifo::new();
    /// queue.update(thing("web/a", "1"));
    /// queue.update(thing("web/a", "2"));
    /// assert!(matches!(queue.get("web/a"), Some([KeyDelta::Updated(_), KeyDelta::Updated(_)])), "both are kept");
    /// ```
    pub fn update(&mut self, object: Arc<T>) {
        self.populate();
        self.enqueue(object.id().key.into(), KeyDelta::Updated(object));
    }

    /// An object is gone. Ignored if it is neither queued nor known.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{Deleted, DeltaFifo, Store, object::KeyRef};
    /// let (store, mut writer) = Store::new(0);
    /// writer.put(thing("web/a", "1"));
    /// let mut queue = DeltaFifo::new();
    /// queue.delete(Deleted::Unknown(thing("web/a", "1")), &store.snapshot());
    /// queue.delete(Deleted::Final(thing("web/a", "2")), &store.snapshot());
    /// queue.delete(Deleted::Final(thing("web/b", "3")), &store.snapshot());
    /// assert_eq!(queue.keys(), [KeyRef::from("web/a")], "nobody knows b");
    /// assert_eq!(queue.get("web/a").unwrap().len(), 1, "two deletions are one");
    /// ```
    pub fn delete(&mut self, object: Deleted<T>, known: &Snapshot<T>) {
        self.populate();
        let key = object.key();
        if self.deltas.contains_key(&key) || known.get(&key).is_some() {
            self.enqueue(key, KeyDelta::Deleted(object));
        }
    }

    /// The server was asked for everything again: what is missing from the list, queued or known, is gone.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{Deleted, DeltaFifo, Store, queue::KeyDelta};
    /// let (store, mut writer) = Store::new(0);
    /// writer.put(thing("web/a", "1"));
    /// let mut queue = DeltaFifo::new();
    /// queue.replace(vec![thing("web/b", "2")], &store.snapshot());
    /// assert!(matches!(queue.get("web/b"), Some([KeyDelta::Sync(_)])));
    /// assert!(matches!(queue.get("web/a"), Some([KeyDelta::Deleted(Deleted::Unknown(last))]) if last.version == "1"));
    /// ```
    pub fn replace(&mut self, objects: Vec<Arc<T>>, known: &Snapshot<T>) {
        let replacement = Replacement { mark: ListMark::default(), objects, undecodable: Vec::new() };
        self.replace_scope(replacement, known);
    }

    /// The same for one part of the collection. Answers which it was.
    fn replace_scope(&mut self, replacement: Replacement<T>, known: &Snapshot<T>) -> ListMark {
        let listed: HashSet<ObjectKey> = replacement.keys().map(ObjectKey::from).collect();
        let scope = &replacement.mark.scope;
        let (mut gone, inconclusive) = (Vec::new(), !replacement.is_conclusive());
        if !inconclusive {
            let is_gone = |key: KeyRef<'_>| in_scope(scope, key) && !listed.contains(&key.into());
            // The newest state queued is the last one known.
            let queued = self.order.iter().filter_map(|place| self.deltas_at(place)).filter_map(<[_]>::last);
            gone.extend(queued.map(KeyDelta::object).filter(|object| is_gone(object.id().key)).cloned());
            let only_known = |object: &&Arc<T>| !self.deltas.contains_key(&ObjectKey::from(object.id().key));
            gone.extend(known.iter().filter(|object| is_gone(object.id().key)).filter(only_known).cloned());
        }
        if self.initial.is_none() {
            // What could not be read is never popped as an object, and so is not waited for.
            let readable: HashSet<KeyRef<'_>> = replacement.objects.iter().map(|object| object.id().key).collect();
            self.initial = Some(readable.len() + gone.len());
        }
        for object in replacement.objects {
            let key = object.id().key.into();
            let delta = if self.emit_replaced { KeyDelta::Replaced(object) } else { KeyDelta::Sync(object) };
            self.enqueue(key, delta);
        }
        for object in gone {
            self.enqueue(object.id().key.into(), KeyDelta::Deleted(Deleted::Unknown(object)));
        }
        ListMark { inconclusive, ..replacement.mark }
    }

    /// Queues everything known to be looked at again, but for what has changes waiting.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{DeltaFifo, Store, queue::KeyDelta};
    /// let (store, mut writer) = Store::new(0);
    /// writer.put(thing("web/a", "1"));
    /// writer.put(thing("web/b", "2"));
    /// let mut queue = DeltaFifo::new();
    /// queue.update(thing("web/a", "3"));
    /// queue.resync(&store.snapshot());
    /// assert!(matches!(queue.get("web/a"), Some([KeyDelta::Updated(_)])), "it is looked at anyway");
    /// assert!(matches!(queue.get("web/b"), Some([KeyDelta::Sync(_)])));
    /// ```
    pub fn resync(&mut self, known: &Snapshot<T>) {
        for object in known.iter() {
            let key = ObjectKey::from(object.id().key);
            if !self.deltas.contains_key(&key) {
                self.enqueue(key, KeyDelta::Sync(object.clone()));
            }
        }
    }

    /// Takes out the changes of the object that has waited longest; `None` if nothing waits.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{DeltaFifo, object::KeyRef};
    /// let mut queue = DeltaFifo::new();
    /// queue.add(thing("web/a", "1"));
    /// queue.add(thing("web/b", "2"));
    /// queue.update(thing("web/a", "3"));
    /// let (key, deltas) = queue.pop().unwrap();
    /// assert_eq!((key.as_str(), deltas.len()), ("web/a", 2));
    /// assert_eq!(queue.keys(), [KeyRef::from("web/b")]);
    /// ```
    pub fn pop(&mut self) -> Option<(ObjectKey, Deltas<T>)> {
        while let Some(place) = self.order.pop_front() {
            if let Place::Key(key) = place {
                self.count_popped();
                let deltas = self.deltas.remove(&key).unwrap_or_default();
                return Some((key, deltas));
            }
        }
        None
    }

    /// Says that everything popped so far is processed.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::{DeltaFifo, Store};
    /// let (store, _writer) = Store::new(0);
    /// let mut queue = DeltaFifo::new();
    /// queue.replace(vec![thing("web/a", "1")], &store.snapshot());
    /// queue.pop();
    /// assert!(!queue.has_synced(), "popped is not processed");
    /// queue.processed();
    /// assert!(queue.has_synced());
    /// ```
    pub fn processed(&mut self) {
        if let Some(initial) = &mut self.initial {
            *initial = initial.saturating_sub(self.in_hand);
        }
        self.in_hand = 0;
    }

    /// Puts changes back that could not be processed, unless newer ones of the same object wait.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::DeltaFifo;
    /// let mut queue = DeltaFifo::new();
    /// queue.add(thing("web/a", "1"));
    /// let (key, deltas) = queue.pop().unwrap();
    /// queue.update(thing("web/a", "2"));
    /// queue.add_if_absent(key, deltas);
    /// assert_eq!(queue.get("web/a").unwrap().len(), 1, "what came meanwhile is newer");
    /// ```
    pub fn add_if_absent(&mut self, key: ObjectKey, deltas: Deltas<T>) {
        if !deltas.is_empty() && !self.deltas.contains_key(&key) {
            self.order.push_back(Place::Key(key.clone()));
            self.deltas.insert(key, deltas);
        }
    }

    /// The changes of one object that wait, oldest first.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::DeltaFifo;
    /// let mut queue = DeltaFifo::new();
    /// queue.add(thing("web/a", "1"));
    /// queue.update(thing("web/a", "2"));
    /// let versions: Vec<_> = queue.get("web/a").unwrap().iter().map(|delta| &delta.object().version).collect();
    /// assert_eq!(versions, ["1", "2"]);
    /// assert!(queue.get("web/b").is_none());
    /// ```
    pub fn get<'k>(&self, key: impl Into<KeyRef<'k>>) -> Option<&[KeyDelta<T>]> {
        self.deltas.get(&ObjectKey::from(key.into())).map(Vec::as_slice)
    }

    /// The newest change of every object that waits, in order.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::DeltaFifo;
    /// let mut queue = DeltaFifo::new();
    /// queue.add(thing("web/a", "1"));
    /// queue.add(thing("web/b", "2"));
    /// queue.update(thing("web/a", "3"));
    /// let versions: Vec<_> = queue.list().iter().map(|delta| delta.object().version.clone()).collect();
    /// assert_eq!(versions, ["3", "2"]);
    /// ```
    pub fn list(&self) -> Vec<&KeyDelta<T>> {
        self.order.iter().filter_map(|place| self.deltas_at(place)?.last()).collect()
    }

    /// The keys of every object that waits, in order.
    pub fn keys(&self) -> Vec<ObjectKey> {
        let key = |place: &Place<T>| if let Place::Key(key) = place { Some(key.clone()) } else { None };
        self.order.iter().filter_map(key).collect()
    }

    /// How many objects wait.
    pub fn len(&self) -> usize {
        self.deltas.len()
    }

    /// True if no object waits.
    pub fn is_empty(&self) -> bool {
        self.deltas.is_empty()
    }

    /// True once the first population is popped and processed.
    ///
    /// ```
    /// # use kube_informer::source::Identity;
    /// # use kube_informer::{DeltaFifo, Store};
    /// # let (store, _writer) = Store::<Identity>::new(0);
    /// let mut queue = DeltaFifo::new();
    /// assert!(!queue.has_synced(), "nothing is known yet");
    /// queue.replace(Vec::new(), &store.snapshot());
    /// assert!(queue.has_synced(), "there is nothing");
    /// ```
    pub fn has_synced(&self) -> bool {
        self.initial == Some(0)
    }

    /// Takes nothing in from now on. What waits may still be taken out.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use kube_informer::source::Identity;
    /// # let thing = |key: &str, version: &str| {
    /// #     Arc::new(Identity { key: key.parse().unwrap(), uid: String::new(), version: version.to_owned() })
    /// # };
    /// # use kube_informer::DeltaFifo;
    /// let mut queue = DeltaFifo::new();
    /// queue.add(thing("web/a", "1"));
    /// queue.close();
    /// queue.add(thing("web/b", "2"));
    /// assert!(queue.is_closed());
    /// assert_eq!(queue.pop().unwrap().0.as_str(), "web/a");
    /// assert!(queue.pop().is_none());
    /// ```
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// True if nothing is taken in any more.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// A change before any list: there is no first population to wait for.
    fn populate(&mut self) {
        self.initial.get_or_insert(0);
    }

    fn count_popped(&mut self) {
        if self.initial.is_some_and(|initial| initial > self.in_hand) {
            self.in_hand += 1;
        }
    }

    fn deltas_at(&self, place: &Place<T>) -> Option<&[KeyDelta<T>]> {
        if let Place::Key(key) = place { self.deltas.get(key).map(Vec::as_slice) } else { None }
    }

    fn enqueue(&mut self, key: ObjectKey, delta: KeyDelta<T>) {
        if self.closed {
            return;
        }
        match self.deltas.get_mut(&key) {
            None => {
                self.order.push_back(Place::Key(key.clone()));
                self.deltas.insert(key, vec![delta]);
            }
            Some(deltas) => match (deltas.last(), &delta) {
                // Of two deletions the one that knows the final state says more.
                (Some(KeyDelta::Deleted(Deleted::Final(_))), KeyDelta::Deleted(_)) => {}
                (Some(KeyDelta::Deleted(Deleted::Unknown(_))), KeyDelta::Deleted(_)) => {
                    deltas.pop();
                    deltas.push(delta);
                }
                _ => deltas.push(delta),
            },
        }
    }

    /// Drops what waits of a scope whose server was restored: it is from a history that is no more, and what comes next must
    /// not join it. The list that follows tells what is there and what is gone.
    fn forget(&mut self, scope: &Scope) {
        for place in std::mem::take(&mut self.order) {
            match place {
                Place::Key(key) if in_scope(scope, (&key).into()) => {
                    self.deltas.remove(&key);
                    self.count_popped();
                }
                Place::Mark(Delta::Listed(ListMark { scope: of, .. }) | Delta::Bookmark { scope: of, .. })
                    if of == *scope => {}
                place => self.order.push_back(place),
            }
        }
    }

    fn mark(&mut self, delta: Delta<T>) {
        if !self.closed {
            self.order.push_back(Place::Mark(delta));
        }
    }
}

/// As the queue of an informer: marks keep their place in the line, behind everything that came before them.
impl<T: Object> Queue<T> for DeltaFifo<T> {
    fn push(&mut self, delta: Delta<T>, known: &Store<T>) {
        match delta {
            Delta::Added(object) => self.add(object),
            Delta::Updated(object) => self.update(object),
            Delta::Deleted(object) => self.delete(Deleted::Final(object), &known.snapshot()),
            Delta::Tombstone(object) => self.delete(Deleted::Unknown(object), &known.snapshot()),
            Delta::Vanished { key, version } => {
                let queued = self.deltas.get(&key).and_then(|deltas| Some(deltas.last()?.object().clone()));
                match queued.or_else(|| known.get(&key)) {
                    Some(last) => {
                        self.enqueue(key.clone(), KeyDelta::Deleted(Deleted::Unknown(last)));
                        // Behind it, for its version. What was made since is newer, and stays.
                        if version.is_some() {
                            self.mark(Delta::Vanished { key, version });
                        }
                    }
                    None => self.mark(Delta::Vanished { key, version }),
                }
            }
            Delta::Replaced(mut replacement) => {
                for bad in std::mem::take(&mut replacement.undecodable) {
                    self.mark(Delta::Undecodable(bad.clone()));
                    replacement.undecodable.push(bad);
                }
                let newest = |key: KeyRef<'_>| {
                    let queued = self.deltas.get(&ObjectKey::from(key)).and_then(|deltas| deltas.last());
                    queued.map(|delta| delta.object().clone()).or_else(|| known.get(key))
                };
                if replacement.contradicts(newest) {
                    self.forget(&replacement.mark.scope);
                    self.mark(Delta::Restarted { scope: replacement.mark.scope.clone() });
                }
                let mark = self.replace_scope(replacement, &known.snapshot());
                self.mark(Delta::Listed(mark));
            }
            Delta::Resync => {
                self.resync(&known.snapshot());
                self.mark(Delta::ResyncDone);
            }
            Delta::Resynced(object) => self.enqueue(object.id().key.into(), KeyDelta::Sync(object)),
            Delta::Restarted { scope } => {
                self.forget(&scope);
                self.mark(Delta::Restarted { scope });
            }
            mark @ (Delta::Undecodable(_) | Delta::Listed(_) | Delta::Bookmark { .. } | Delta::ResyncDone) => {
                self.mark(mark)
            }
        }
    }

    fn pop_batch(&mut self) -> Vec<Delta<T>> {
        match self.order.front() {
            None => Vec::new(),
            Some(Place::Mark(_)) => match self.order.pop_front() {
                Some(Place::Mark(delta)) => vec![delta],
                _ => Vec::new(),
            },
            Some(Place::Key(_)) => {
                let deltas = self.pop().map(|(_, deltas)| deltas).unwrap_or_default();
                deltas.into_iter().map(Delta::from).collect()
            }
        }
    }

    fn processed(&mut self) {
        Self::processed(self);
    }

    fn put_back(&mut self, batch: Vec<Delta<T>>) {
        let mut deltas: HashMap<ObjectKey, Deltas<T>> = HashMap::new();
        for delta in batch.into_iter().rev() {
            match KeyDelta::from_delta(delta) {
                Ok(delta) => deltas.entry(delta.object().id().key.into()).or_default().insert(0, delta),
                // In front, where it was: what came later must still come later.
                Err(mark) => self.order.push_front(Place::Mark(mark)),
            }
        }
        deltas.into_iter().for_each(|(key, deltas)| self.add_if_absent(key, deltas));
    }

    fn len(&self) -> usize {
        self.order.len()
    }

    fn has_synced(&self) -> bool {
        Self::has_synced(self)
    }

    fn is_settled(&self) -> bool {
        self.order.is_empty()
    }
}

impl<T> KeyDelta<T> {
    /// The state this change is about.
    pub fn object(&self) -> &Arc<T> {
        match self {
            Self::Added(object) | Self::Updated(object) | Self::Replaced(object) | Self::Sync(object) => object,
            Self::Deleted(Deleted::Final(object) | Deleted::Unknown(object)) => object,
        }
    }

    /// What is not about the state of one object is given back.
    fn from_delta(delta: Delta<T>) -> Result<Self, Delta<T>> {
        match delta {
            Delta::Added(object) => Ok(Self::Added(object)),
            Delta::Updated(object) => Ok(Self::Updated(object)),
            Delta::Resynced(object) => Ok(Self::Sync(object)),
            Delta::Deleted(object) => Ok(Self::Deleted(Deleted::Final(object))),
            Delta::Tombstone(object) => Ok(Self::Deleted(Deleted::Unknown(object))),
            mark => Err(mark),
        }
    }
}

impl<T> From<KeyDelta<T>> for Delta<T> {
    fn from(delta: KeyDelta<T>) -> Self {
        match delta {
            KeyDelta::Added(object) => Self::Added(object),
            KeyDelta::Updated(object) | KeyDelta::Replaced(object) => Self::Updated(object),
            KeyDelta::Sync(object) => Self::Resynced(object),
            KeyDelta::Deleted(Deleted::Final(object)) => Self::Deleted(object),
            KeyDelta::Deleted(Deleted::Unknown(object)) => Self::Tombstone(object),
        }
    }
}

impl<T: Object> Default for DeltaFifo<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Object> fmt::Debug for KeyDelta<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, id) = match self {
            Self::Added(object) => ("Added", object.id()),
            Self::Updated(object) => ("Updated", object.id()),
            Self::Replaced(object) => ("Replaced", object.id()),
            Self::Sync(object) => ("Sync", object.id()),
            Self::Deleted(gone) => return fmt::Debug::fmt(gone, f),
        };
        write!(f, "{what}({}@{})", id.key, id.version)
    }
}

impl<T: Object> fmt::Debug for DeltaFifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaFifo")
            .field("deltas", &self.deltas)
            .field("synced", &self.has_synced())
            .finish_non_exhaustive()
    }
}
