//! How a round gets its initial state: by a watch that starts with it, or by a list.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::error::IncompleteReason;
use super::{OpenWatch, Reflector, ReflectorError, Sink, VERY_SHORT};
use crate::health::Phase;
use crate::object::{Object, ObjectKey, ResourceVersion};
use crate::queue::{ListMark, Replacement};
use crate::source::{BadObject, Decoded, ListEnd, ListOptions, ListPart, ListWatch, SourceError, WatchEvent};

/// How many objects a page holds, where pages are wanted.
const PAGE: usize = 500;
/// Progress is told every so many objects.
const PROGRESS: u64 = 256;
/// How often in a row an initial stream may end early before lists are used instead.
const EARLY_ENDS: u32 = 3;
/// How long lists are used instead, once a server has shown that it does not stream.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Whether to ask for the initial state by a watch, and what became of it so far.
#[derive(Debug)]
pub(super) struct Streaming {
    wanted: bool,
    /// Lists are used until then.
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
        self.lists_until = Some(Instant::now() + REMEMBERED);
        self.early_ends = 0;
    }
}

/// Objects on their way to a [`Replacement`], in the server's order.
struct Collected<T> {
    objects: Vec<Option<Arc<T>>>,
    /// Where each key stands; made when the first change comes before the end, which is rare.
    places: Option<HashMap<ObjectKey, usize>>,
    undecodable: Vec<BadObject>,
}

impl<T: Object> Collected<T> {
    fn new() -> Self {
        Self { objects: Vec::new(), places: None, undecodable: Vec::new() }
    }

    fn len(&self) -> u64 {
        (self.objects.len() + self.undecodable.len()) as u64
    }

    fn add(&mut self, item: Decoded<T>) {
        match item {
            Decoded::Object(object) => {
                if let Some(places) = &mut self.places {
                    places.insert(object.id().key.into(), self.objects.len());
                }
                self.objects.push(Some(object));
            }
            Decoded::Bad(bad) => self.undecodable.push(bad),
        }
    }

    /// Takes one away again, whatever became of it.
    fn forget(&mut self, key: &ObjectKey) {
        let objects = &mut self.objects;
        let places = self.places.get_or_insert_with(|| {
            let keys = objects.iter().enumerate();
            keys.filter_map(|(at, object)| Some((object.as_ref()?.id().key.into(), at))).collect()
        });
        if let Some(at) = places.remove(key) {
            objects[at] = None;
        }
        self.undecodable.retain(|bad| bad.key.as_ref() != Some(key));
    }

    /// Takes a newer state. One that cannot be read leaves the last good one in place.
    fn change(&mut self, item: Decoded<T>) {
        if let Decoded::Object(object) = &item {
            self.forget(&object.id().key.into());
        }
        self.add(item);
    }

    fn into_replacement(self, mark: ListMark) -> Replacement<T> {
        Replacement { mark, objects: self.objects.into_iter().flatten().collect(), undecodable: self.undecodable }
    }
}

fn key_of<T: Object>(item: &Decoded<T>) -> Option<ObjectKey> {
    match item {
        Decoded::Object(object) => Some(object.id().key.into()),
        Decoded::Bad(bad) => bad.key.clone(),
    }
}

/// What became of an attempt to stream.
enum Attempt<T> {
    Complete(OpenWatch<T>),
    /// Stream once more, after a delay.
    Again(ReflectorError),
    /// Stream once more at once, without a version.
    WithoutVersion,
    /// List instead.
    List(ReflectorError),
}

impl<T, L, S> Reflector<T, L, S>
where
    T: Object,
    L: ListWatch<T>,
    S: Sink<T>,
{
    /// Gets everything, one way or the other. A watch that started with it goes on being used.
    pub(super) async fn initial_state(&mut self) -> Result<Option<OpenWatch<T>>, ReflectorError> {
        while self.streaming.is_on() {
            match self.stream().await {
                Attempt::Complete(watch) => {
                    self.streaming.early_ends = 0;
                    return Ok(Some(watch));
                }
                Attempt::WithoutVersion => {}
                Attempt::Again(error) => {
                    self.sink.failed(&error);
                    return Err(error);
                }
                Attempt::List(error) => {
                    self.sink.failed(&error);
                    break;
                }
            }
        }
        self.list().await.inspect_err(|error| self.sink.failed(error))?;
        Ok(None)
    }

    /// Asks for the initial state by a watch.
    async fn stream(&mut self) -> Attempt<T> {
        self.sink.phase(Phase::Streaming { received: 0 });
        let mut watch = match self.open(true).await {
            Ok(watch) => watch,
            Err(error) => return self.stream_failed(error),
        };
        let mut collected = Collected::new();
        let version = loop {
            match timeout(self.options.progress_deadline, watch.events.next()).await {
                Err(_) => {
                    // It accepts the request and then stands still: another attempt would do the same.
                    self.streaming.use_lists();
                    let stalled = IncompleteReason::Stalled(self.options.progress_deadline);
                    return Attempt::List(ReflectorError::Incomplete(stalled));
                }
                Ok(None) => return self.ended_early(&watch),
                Ok(Some(Err(error))) if error.is_interruption() => return self.ended_early(&watch),
                Ok(Some(Err(error))) => return self.stream_failed(error),
                Ok(Some(Ok(event))) => {
                    self.sink.contact();
                    watch.heard(&event);
                    match event {
                        WatchEvent::Added(item) if collected.places.is_none() => collected.add(item),
                        WatchEvent::Added(item) | WatchEvent::Modified(item) => collected.change(item),
                        WatchEvent::Deleted(item) => match key_of(&item) {
                            Some(key) => collected.forget(&key),
                            None => collected.add(item),
                        },
                        WatchEvent::Bookmark { version, initial_events_end: true } if version.as_str().is_empty() => {
                            // It cannot be gone on from.
                            self.streaming.use_lists();
                            return Attempt::List(ReflectorError::Incomplete(IncompleteReason::NoVersion));
                        }
                        WatchEvent::Bookmark { version, initial_events_end: true } => break version,
                        WatchEvent::Bookmark { .. } => {}
                    }
                    if collected.len().is_multiple_of(PROGRESS) {
                        self.sink.phase(Phase::Streaming { received: collected.len() });
                    }
                }
            }
        };
        let mark = self.mark(Some(version));
        self.replace(collected.into_replacement(mark)).await;
        Attempt::Complete(watch)
    }

    fn stream_failed(&mut self, error: SourceError) -> Attempt<T> {
        if error.is_version_unavailable() && !self.version_unavailable && self.last_version.is_some() {
            self.version_unavailable = true;
            return Attempt::WithoutVersion;
        }
        if error.is_overload() || error.is_unreachable() {
            return Attempt::Again(ReflectorError::Watch(error));
        }
        // A server that does not know what it is asked says so with these.
        if error.status().is_some_and(|status| matches!(status.code, 400 | 405 | 415 | 422)) {
            self.streaming.use_lists();
        }
        Attempt::List(ReflectorError::NotStreamed(error))
    }

    /// The stream ended before everything had come.
    fn ended_early(&mut self, watch: &OpenWatch<T>) -> Attempt<T> {
        let lasted = watch.opened.elapsed();
        if watch.heard == 0 && lasted < VERY_SHORT {
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

    /// Asks for everything by a list.
    async fn list(&mut self) -> Result<(), ReflectorError> {
        self.sink.phase(Phase::Listing { received: 0, remaining: None });
        let version = match (&self.last_version, self.version_unavailable) {
            (_, true) => None,
            (None, false) => Some(ResourceVersion::from("0")),
            (Some(last), false) => Some(last.clone()),
        };
        let outcome = match self.list_all(version.clone()).await {
            Err(ReflectorError::List(error)) if version.is_some() && error.is_about_version() => {
                debug!(%error, "listing the most recent state instead");
                self.version_unavailable = true;
                self.list_all(None).await
            }
            outcome => outcome,
        };
        let (collected, end) = outcome?;
        let mark = self.mark(end.version);
        self.replace(collected.into_replacement(mark)).await;
        Ok(())
    }

    /// Lists at one version, page by page.
    async fn list_all(&mut self, version: Option<ResourceVersion>) -> Result<(Collected<T>, ListEnd), ReflectorError> {
        let any = version.as_ref().is_some_and(|version| version.as_str() == "0");
        let limit = self.options.page_size.unwrap_or(match &version {
            // At a known version the server answers from memory, if it is asked for all at once.
            Some(_) if !any && !self.paginated => 0,
            _ => PAGE,
        });
        let mut collected = Collected::new();
        // Without this a limit and a version together mean exactly that version.
        let not_older_than = version.is_some() && limit > 0;
        let first = ListOptions { version: version.clone(), not_older_than, limit, continue_token: None };
        let mut end = self.list_into(&mut collected, first).await?;
        let (list_version, mut seen) = (end.version.clone(), HashSet::new());
        while let Some(token) = end.continue_token.take() {
            if any {
                self.paginated = true;
            }
            if !seen.insert(token.clone()) {
                return Err(ReflectorError::RepeatedContinue);
            }
            let page = ListOptions { limit, continue_token: Some(token), ..ListOptions::default() };
            end = match self.list_into(&mut collected, page).await {
                Err(ReflectorError::List(error)) if error.is_expired() => {
                    debug!(%error, "listing all at once instead");
                    collected = Collected::new();
                    let all = ListOptions { version, ..ListOptions::default() };
                    let end = self.list_into(&mut collected, all).await?;
                    return Ok((collected, end));
                }
                outcome => outcome?,
            };
        }
        Ok((collected, ListEnd { version: list_version, ..end }))
    }

    async fn list_into(
        &mut self,
        collected: &mut Collected<T>,
        options: ListOptions,
    ) -> Result<ListEnd, ReflectorError> {
        let end = self.list_page(options, |item| collected.add(item)).await.map_err(ReflectorError::List)?;
        self.sink.phase(Phase::Listing { received: collected.len(), remaining: end.remaining });
        Ok(end)
    }

    /// Lists one page, and hands over each item as it comes.
    pub(super) async fn list_page(
        &mut self,
        options: ListOptions,
        mut each: impl FnMut(Decoded<T>),
    ) -> Result<ListEnd, SourceError> {
        // A stalled list is as good as a lost connection.
        let deadline = self.options.progress_deadline;
        let stalled = |after: Duration| {
            let text = format!("nothing came for {after:?}");
            SourceError::Interrupted(Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(text)))
        };
        let mut items = timeout(deadline * 2, self.source.list(options)).await.map_err(|_| stalled(deadline * 2))??;
        loop {
            match timeout(deadline, items.next()).await.map_err(|_| stalled(deadline))? {
                None => return Err(SourceError::CutOff),
                Some(part) => match part? {
                    ListPart::Item(item) => each(item),
                    ListPart::End(end) => {
                        self.sink.contact();
                        return Ok(end);
                    }
                },
            }
        }
    }
}
