//! The initial state of a round: by a streaming watch, or by a list.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::debug;

use super::error::IncompleteReason;
use super::page::{next_within, read_page};
use super::progress::Pace;
use super::{OpenWatch, Phase, Reflector, ReflectorError, Sink, VERY_SHORT};
use crate::object::{Object, ObjectKey, ResourceVersion};
use crate::queue::{ListMark, Replacement};
use crate::representation::DecodeError;
use crate::source::{BadObject, Decoded, ListEnd, ListOptions, SourceError, WatchEvent};
use crate::time::after;

/// How many objects a page has, where pages are used.
const PAGE: usize = 500;
/// A list may have at most this many pages, and the next constant limits the empty ones in a row.
pub(crate) const MOST_PAGES: usize = 100_000;
const EMPTY_PAGES: usize = 16;
/// The phase is updated after each such number of objects.
const PROGRESS: u64 = 256;
/// After this many streams in a row that end early, the reflector lists instead.
const EARLY_ENDS: u32 = 3;
/// For how long the reflector lists after a server has shown that it does not stream.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Whether to get the initial state by a streaming watch.
#[derive(Debug)]
pub(super) struct Streaming {
    wanted: bool,
    /// The reflector lists until then.
    lists_until: Option<Instant>,
    early_ends: u32,
}

impl Streaming {
    pub(super) fn new(wanted: bool) -> Self {
        Self { wanted, lists_until: None, early_ends: 0 }
    }

    fn is_on(&self) -> bool {
        self.wanted && self.lists_until.is_none_or(|until| until <= Instant::now())
    }

    fn use_lists(&mut self) {
        self.lists_until = Some(after(Instant::now(), REMEMBERED));
        self.early_ends = 0;
    }
}

/// Objects that are collected for a [`Replacement`], in the order of the API server.
struct Collected<T: ?Sized> {
    objects: Vec<Option<Arc<T>>>,
    /// The position of each key. It is built when a change arrives before the end of the initial state, which is rare.
    places: Option<HashMap<ObjectKey, usize>>,
    undecodable: Vec<BadObject>,
    /// True if the known `Arc` may be kept instead of an equal copy.
    reuse: bool,
    /// True if an object is older than its known state. That only happens if the API server was restored.
    contradicts: bool,
    bytes: u64,
}

impl<T: Object + ?Sized> Collected<T> {
    fn new(reuse: bool) -> Self {
        let (objects, undecodable) = (Vec::new(), Vec::new());
        Self { objects, places: None, undecodable, reuse, contradicts: false, bytes: 0 }
    }

    fn len(&self) -> u64 {
        (self.objects.len() + self.undecodable.len()) as u64
    }

    fn add(&mut self, item: Decoded<Arc<T>>, sink: &impl Sink<T>) {
        match item {
            Decoded::Object(object) => {
                if let Some(places) = &mut self.places
                    && let Some(before) = places.insert(object.id().key.into(), self.objects.len())
                {
                    self.objects[before] = None; // The object arrived twice; the last state counts.
                }
                let known = if self.reuse { sink.known(&object) } else { None };
                self.contradicts |= known.as_ref().is_some_and(|known| object.id().is_older_than(&known.id()));
                // An equal copy is dropped at once, so that a list of known objects takes no memory.
                let same = known.filter(|known| known.id().same_state(&object.id()));
                self.objects.push(Some(same.unwrap_or(object)));
            }
            Decoded::Bad(bad) => self.undecodable.push(bad),
        }
    }

    /// Removes an object, decoded or not.
    fn forget(&mut self, key: &ObjectKey) {
        let objects = &mut self.objects;
        let places = self.places.get_or_insert_with(|| {
            let mut places = HashMap::with_capacity(objects.len());
            for at in 0..objects.len() {
                let key = objects[at].as_ref().map(|object| ObjectKey::from(object.id().key));
                if let Some(before) = key.and_then(|key| places.insert(key, at)) {
                    objects[before] = None; // The object arrived twice; the last state counts.
                }
            }
            places
        });
        if let Some(at) = places.remove(key) {
            objects[at] = None;
        }
        self.undecodable.retain(|bad| bad.key.as_ref() != Some(key));
    }

    /// Replaces an object by a newer state. If the new state cannot be decoded, the last good one stays.
    fn change(&mut self, item: Decoded<Arc<T>>, sink: &impl Sink<T>) {
        if let Decoded::Object(object) = &item {
            self.forget(&object.id().key.into());
        }
        self.add(item, sink);
    }

    fn into_replacement(self, mark: ListMark) -> Replacement<T> {
        Replacement { mark, objects: self.objects.into_iter().flatten().collect(), undecodable: self.undecodable }
    }
}

fn key_of<T: Object + ?Sized>(item: &Decoded<Arc<T>>) -> Option<ObjectKey> {
    match item {
        Decoded::Object(object) => Some(object.id().key.into()),
        Decoded::Bad(bad) => bad.key.clone(),
    }
}

/// The outcome of an attempt to stream.
enum Attempt<T: ?Sized> {
    Complete(OpenWatch<T>),
    /// Retry the stream after a delay.
    Again(ReflectorError),
    /// Retry at once without a version.
    Otherwise,
    /// List instead.
    List(ReflectorError),
}

impl<T: Object + ?Sized, S: Sink<T>> Reflector<T, S> {
    /// Gets the initial state. Returns the watch that it began with, if it was streamed.
    pub(super) async fn initial_state(&mut self) -> Result<Option<OpenWatch<T>>, ReflectorError> {
        while self.streaming.is_on() {
            match self.stream().await {
                Attempt::Complete(watch) => {
                    self.streaming.early_ends = 0;
                    return Ok(Some(watch));
                }
                Attempt::Otherwise => {}
                Attempt::Again(error) => {
                    self.report(&error);
                    return Err(error);
                }
                Attempt::List(error) => {
                    self.report(&error);
                    break;
                }
            }
        }
        while !self.list().await.inspect_err(|error| self.report(error))? {}
        Ok(None)
    }

    /// Checks whether the API server was restored: a version is older than a known one. Then all known objects are
    /// outdated, and so is this state, because equal known objects were kept in it.
    async fn is_restored(&mut self, collected: &Collected<T>, version: Option<&ResourceVersion>) -> bool {
        let restored = self.place.is_contradicted_by(version) || collected.contradicts;
        if restored {
            self.restart().await;
            self.begin_list();
        }
        restored
    }

    /// Returns false if all known objects are outdated.
    fn may_reuse(&self) -> bool {
        self.place != super::Position::Restored
    }

    /// Gets the initial state by a streaming watch.
    async fn stream(&mut self) -> Attempt<T> {
        self.sink.phase(Phase::Streaming { received: 0 });
        let mut watch = match self.open(true).await {
            Ok(watch) => watch,
            Err(error) => return self.stream_failed(error),
        };
        let mut collected = Collected::new(self.may_reuse());
        let (meter, mut over) = (watch.events.meter().clone(), None);
        let mut pace = Pace::new(self.progress_deadline, &meter);
        let version = loop {
            let next = next_within(&mut watch.events, &mut pace, &meter, collected.len()).await;
            let next = next.and_then(|next| pace.check(&meter, collected.len()).map(|()| next));
            if over.is_some_and(|over| after(over, self.progress_deadline) <= Instant::now()) {
                return self.never_streams(IncompleteReason::NoEnd(self.progress_deadline));
            }
            let event = match next {
                // The API server accepts the request and then sends too little: a retry would do the same.
                Err(stalled) => return self.never_streams(IncompleteReason::Stalled(stalled)),
                Ok(None) => return self.ended_early(&watch),
                Ok(Some(Err(error))) if error.is_interruption() => return self.ended_early(&watch),
                Ok(Some(Err(error))) => return self.stream_failed(error),
                Ok(Some(Ok(event))) => event,
            };
            let bytes = watch.bytes(&event);
            collected.bytes += bytes;
            self.sink.contact(bytes);
            watch.record(&event, &mut self.rhythm, Instant::now());
            if !matches!(event, WatchEvent::Added(_)) {
                // The initial events are over, even if the API server has not sent the bookmark.
                over.get_or_insert_with(Instant::now);
            }
            match event {
                // A collection holds objects of one kind, so this is not the requested state.
                WatchEvent::Added(Decoded::Bad(BadObject {
                    error: DecodeError::WrongKind { expected, got }, ..
                })) => {
                    return self.stream_failed(SourceError::WrongKind { expected, got });
                }
                WatchEvent::Added(item) if collected.places.is_none() => collected.add(item, &self.sink),
                WatchEvent::Added(item) | WatchEvent::Modified(item) => collected.change(item, &self.sink),
                WatchEvent::Deleted(item) => match key_of(&item) {
                    Some(key) => collected.forget(&key),
                    None => collected.add(item, &self.sink),
                },
                WatchEvent::Bookmark { version, initial_events_end: true } if version.as_str().is_empty() => {
                    // A watch cannot continue without a version.
                    return self.never_streams(IncompleteReason::NoVersion);
                }
                WatchEvent::Bookmark { version, initial_events_end: true } => break version,
                WatchEvent::Bookmark { .. } => {}
            }
            if collected.len().is_multiple_of(PROGRESS) {
                self.sink.phase(Phase::Streaming { received: collected.len() });
            }
            crate::yield_point::maybe_yield().await;
        };
        if self.is_restored(&collected, Some(&version)).await {
            return Attempt::Otherwise;
        }
        self.rhythm.expect();
        self.succeeded(super::RequestKind::Watch);
        watch.initial_state_is_over();
        let (mark, bytes) = (self.mark(Some(version)), collected.bytes);
        self.replace(collected.into_replacement(mark), bytes).await;
        Attempt::Complete(watch)
    }

    fn stream_failed(&mut self, error: SourceError) -> Attempt<T> {
        if error.is_version_unavailable() && matches!(self.place, super::Position::At(_) | super::Position::Doubtful(_))
        {
            self.place.give_up();
            return Attempt::Otherwise;
        }
        // A list would be refused in the same way.
        if error.is_unavailable() || error.is_unreachable() || error.is_refusal() {
            return Attempt::Again(ReflectorError::Watch(error));
        }
        // Servers that do not support streaming lists answer with these codes.
        if error.has_code(&[400, 405, 415, 422]) {
            self.streaming.use_lists();
        }
        Attempt::List(ReflectorError::NotStreamed(error))
    }

    /// Handles a server that accepts the request but does not stream.
    fn never_streams(&mut self, reason: IncompleteReason) -> Attempt<T> {
        self.streaming.use_lists();
        Attempt::List(ReflectorError::Incomplete(reason))
    }

    /// Handles a stream that ended before the initial state was complete.
    fn ended_early(&mut self, watch: &OpenWatch<T>) -> Attempt<T> {
        let lasted = watch.began.elapsed();
        if watch.received == 0 && lasted < VERY_SHORT {
            return Attempt::List(ReflectorError::VeryShortWatch { lasted });
        }
        let error = ReflectorError::Incomplete(IncompleteReason::Ended);
        self.streaming.early_ends += 1;
        if self.streaming.early_ends < EARLY_ENDS {
            return Attempt::Again(error);
        }
        self.streaming.use_lists();
        Attempt::List(error)
    }

    /// Gets the initial state by a list. Returns false if the caller must list once more, in another way.
    async fn list(&mut self) -> Result<bool, ReflectorError> {
        self.sink.phase(Phase::Listing { received: 0, remaining: None });
        let version = self.place.at_least();
        let (collected, end) = match self.list_all(version.clone()).await {
            Err(ReflectorError::List(error)) if version.is_some() && error.is_about_version() => {
                debug!(%error, "listing the most recent state instead");
                self.place.give_up();
                return Ok(false);
            }
            outcome => outcome?,
        };
        if self.is_restored(&collected, end.version.as_ref()).await {
            return Ok(false);
        }
        let (mark, bytes) = (self.mark(end.version), collected.bytes);
        self.replace(collected.into_replacement(mark), bytes).await;
        Ok(true)
    }

    /// Lists everything at one version, page by page.
    async fn list_all(&mut self, version: Option<ResourceVersion>) -> Result<(Collected<T>, ListEnd), ReflectorError> {
        let any = version.as_ref().is_some_and(|version| version.as_str() == "0");
        let limit = self.page_size.unwrap_or(match &version {
            // At a known version the API server can answer from memory, if all objects are requested at once.
            Some(_) if !any && !self.paginated => 0,
            _ => PAGE,
        });
        // Otherwise a limit with a version means exactly that version.
        let not_older_than = version.is_some() && limit > 0;
        let first = ListOptions { version: version.clone(), not_older_than, limit, continue_token: None };
        match self.list_pages(first, any).await {
            Err(PagesError::ExpiredBetweenPages(error)) => {
                debug!(%error, "listing all at once instead");
                let all = ListOptions { version, ..ListOptions::default() };
                self.list_pages(all, any).await.map_err(PagesError::into_error)
            }
            outcome => outcome.map_err(PagesError::into_error),
        }
    }

    /// Lists the page that `first` requests, and then all following pages. `at_any_version` is true for a list at version
    /// 0.
    async fn list_pages(
        &mut self,
        first: ListOptions,
        at_any_version: bool,
    ) -> Result<(Collected<T>, ListEnd), PagesError> {
        let (mut collected, mut seen) = (Collected::new(self.may_reuse()), HashSet::new());
        let limit = first.limit;
        let mut end = self.list_into(&mut collected, first).await.map_err(PagesError::list)?;
        let list_version = end.version.clone();
        let (mut pages, mut empty_in_a_row) = (1, usize::from(collected.len() == 0));
        while let Some(token) = end.continue_token.take() {
            self.paginated |= at_any_version;
            if !seen.insert(token.clone()) {
                return Err(PagesError::Other(ReflectorError::RepeatedContinue));
            }
            if pages >= MOST_PAGES || empty_in_a_row >= EMPTY_PAGES {
                return Err(PagesError::Other(ReflectorError::EndlessList { pages, empty: empty_in_a_row }));
            }
            let page = ListOptions { limit, continue_token: Some(token), ..ListOptions::default() };
            let before = collected.len();
            end = self.list_into(&mut collected, page).await.map_err(|error| match error.is_expired() {
                true => PagesError::ExpiredBetweenPages(error),
                false => PagesError::list(error),
            })?;
            pages += 1;
            empty_in_a_row = if collected.len() == before { empty_in_a_row + 1 } else { 0 };
        }
        // All pages show the state at the version of the first one.
        Ok((collected, ListEnd { version: list_version, ..end }))
    }

    async fn list_into(&mut self, collected: &mut Collected<T>, options: ListOptions) -> Result<ListEnd, SourceError> {
        let (list, mut counted, before) = (self.source.list(options), 0, collected.bytes);
        let sink = &mut self.sink;
        let end = read_page(self.progress_deadline, list, |item, meter| {
            collected.add(item, sink);
            if collected.len().is_multiple_of(PROGRESS) {
                sink.contact(meter.received() - counted);
                counted = meter.received();
                sink.phase(Phase::Listing { received: collected.len(), remaining: None });
            }
            collected.bytes = before + meter.received();
        })
        .await?;
        self.sink.contact(collected.bytes - before - counted);
        self.sink.phase(Phase::Listing { received: collected.len(), remaining: end.remaining });
        crate::yield_point::maybe_yield().await;
        Ok(end)
    }
}

/// Why the pages could not be listed.
enum PagesError {
    /// The version expired after the first page.
    ExpiredBetweenPages(SourceError),
    Other(ReflectorError),
}

impl PagesError {
    fn list(error: SourceError) -> Self {
        Self::Other(ReflectorError::List(error))
    }

    fn into_error(self) -> ReflectorError {
        match self {
            Self::ExpiredBetweenPages(error) => ReflectorError::List(error),
            Self::Other(error) => error,
        }
    }
}
