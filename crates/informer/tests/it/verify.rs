//! `verify` compares the cache with the server and finds every difference.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use kube_informer::parts::{ListEnd, ListOptions, ListStream, ListWatch, WatchOptions, WatchStream};
use kube_informer::{Difference, SharedInformer, SourceError, VerifyError};
use parking_lot::Mutex;

use crate::script::{Thing, options, thing, within};

/// A source whose objects change without watch events.
#[derive(Clone)]
struct Quiet(Arc<Mutex<(String, Vec<Thing>, bool)>>);

impl Quiet {
    fn new(version: &str, things: &[&str]) -> Self {
        let quiet = Self(Arc::default());
        quiet.set(version, things);
        quiet
    }

    fn set(&self, version: &str, things: &[&str]) {
        *self.0.lock() = (version.to_owned(), things.iter().map(|text| thing(text)).collect(), false);
    }

    fn hang(&self) {
        self.0.lock().2 = true;
    }
}

impl ListWatch<Thing> for Quiet {
    async fn list(&self, _: ListOptions) -> Result<ListStream<Thing>, SourceError> {
        let (version, things, hangs) = self.0.lock().clone();
        if hangs {
            std::future::pending::<()>().await;
        }
        Ok(ListStream::complete(things, ListEnd { version: Some(version.into()), ..ListEnd::default() }))
    }

    async fn watch(&self, _: WatchOptions) -> Result<WatchStream<Thing>, SourceError> {
        Ok(WatchStream::new(stream::pending()))
    }

    fn supports_streaming_lists(&self) -> bool {
        false
    }
}

async fn started(server: &Quiet) -> SharedInformer<Thing> {
    let informer = SharedInformer::builder(server.clone()).options(options()).build();
    informer.start().unwrap();
    within("the first list", informer.synced()).await.unwrap();
    informer
}

/// Returns the differences that `verify` finds if the cache holds `here` and the server has `there`.
async fn found(here: (&str, &[&str]), there: (&str, &[&str])) -> Vec<String> {
    let server = Quiet::new(here.0, here.1);
    let informer = started(&server).await;
    assert_eq!(informer.verify().await.unwrap(), []);
    server.set(there.0, there.1);
    let found = informer.verify().await.unwrap();
    informer.stop().await;
    let text = |difference: &Difference| match difference {
        Difference::Missing { key, version } => format!("{key} missing {version}"),
        Difference::Different { key, cached, version } => format!("{key} is {cached}, should be {version}"),
        Difference::Extra { key, cached } => format!("{key} extra {cached}"),
        other => format!("{other:?}"),
    };
    found.iter().map(text).collect()
}

#[tokio::test(start_paused = true)]
async fn verify_finds_missing_stale_and_extra_objects() {
    let here: (&str, &[&str]) = ("10", &["web/a@1", "web/b@2"]);
    assert_eq!(found(here, ("12", &["web/a@1", "web/b@2", "web/c@11"])).await, ["web/c missing 11"]);
    assert_eq!(found(here, ("12", &["web/a@11", "web/b@2"])).await, ["web/a is 1, should be 11"]);
    assert_eq!(found(here, ("12", &["web/a@1"])).await, ["web/b extra 2"]);
}

// Hole 4: a restore that the reflector did not notice.
#[tokio::test(start_paused = true)]
async fn verify_finds_a_cache_that_is_newer_than_its_server() {
    let here: (&str, &[&str]) = ("30", &["web/a@25", "web/b@26"]);
    let there: (&str, &[&str]) = ("20", &["web/a@5"]);
    assert_eq!(found(here, there).await, ["web/a is 25, should be 5", "web/b extra 26"]);
    assert_eq!(found(here, ("40", &["web/a@24", "web/b@26"])).await, ["web/a is 25, should be 24"]);
}

#[tokio::test(start_paused = true)]
async fn verify_finds_another_object_with_the_same_name() {
    let here: (&str, &[&str]) = ("10", &["web/a@5#one"]);
    assert_eq!(found(here, ("10", &["web/a@5#two"])).await, ["web/a is 5, should be 5"]);
}

#[tokio::test(start_paused = true)]
async fn verify_finds_different_versions_that_cannot_be_compared() {
    let here: (&str, &[&str]) = ("v1", &["web/a@abc", "web/b@def"]);
    assert_eq!(found(here, ("v2", &["web/a@xyz", "web/b@def"])).await, ["web/a is abc, should be xyz"]);
}

#[tokio::test(start_paused = true)]
async fn verify_has_a_deadline_for_a_server_that_does_not_answer() {
    let server = Quiet::new("10", &["web/a@1"]);
    let informer = started(&server).await;
    server.hang();
    let outcome = tokio::time::timeout(Duration::from_secs(120), informer.verify()).await.expect("a deadline");
    assert!(matches!(outcome, Err(VerifyError::List(SourceError::Unreachable(_)))), "{outcome:?}");
    informer.stop().await;
}

// The continue tokens repeat in a cycle.
#[tokio::test(start_paused = true)]
async fn a_list_whose_continue_tokens_repeat_ends() {
    #[derive(Clone)]
    struct Circle;
    impl ListWatch<Thing> for Circle {
        async fn list(&self, options: ListOptions) -> Result<ListStream<Thing>, SourceError> {
            let next = match options.continue_token.as_deref() {
                _ if options.limit != 5000 => None,
                Some("a") => Some("b".to_owned()),
                _ => Some("a".to_owned()),
            };
            let end = ListEnd { version: Some("10".into()), continue_token: next, ..ListEnd::default() };
            Ok(ListStream::complete(vec![thing("web/a@1")], end))
        }

        async fn watch(&self, _: WatchOptions) -> Result<WatchStream<Thing>, SourceError> {
            Ok(WatchStream::new(stream::pending()))
        }

        fn supports_streaming_lists(&self) -> bool {
            false
        }
    }
    let informer = SharedInformer::builder(Circle).options(options()).build();
    informer.start().unwrap();
    within("the first list", informer.synced()).await.unwrap();
    let verified = within("the end", informer.verify()).await;
    assert!(matches!(verified, Err(VerifyError::Incomplete)), "{verified:?}");
    informer.stop().await;
}
