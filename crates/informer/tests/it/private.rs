//! Errors, health, hooks and the live page show no values of objects.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_embedded_apiserver::{Action, ApiServer, Fault};
use kube_informer::parts::{ListEnd, ListOptions, ListStream, ListWatchFns, WatchOptions, WatchStream};
use kube_informer::{BackoffOptions, EventKind, InformerOptions, InformerRequest, SharedInformerFactory};
use parking_lot::Mutex;
use serde_json::json;

use crate::script::on_the_real_clock;

const VALUE: &str = "hunter2";

/// Counts the errors about undecodable lines of a watch.
fn unread(said: &[String]) -> usize {
    said.iter().filter(|said| said.contains("not a watch event")).count()
}

// Hole 15: serde's messages quote the value that does not fit.
#[tokio::test]
async fn errors_and_health_do_not_show_a_value_that_does_not_fit() {
    on_the_real_clock(async {
        let server = ApiServer::new();
        server.create("configmaps", Some("web"), json!({"metadata": {"name": "a"}, "data": {"n": "fine"}})).unwrap();
        let factory = SharedInformerFactory::new(server.client());
        let soon = Duration::from_millis(1);
        let backoff = BackoffOptions { initial: soon, max: soon, ..BackoffOptions::default() };
        let request = InformerRequest::new().options(InformerOptions::new().backoff(backoff));
        let maps = factory.informer_with::<ConfigMap>(request).unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let hook = said.clone();
        maps.on_error(move |error| hook.lock().push(format!("{error} {error:?}")));
        factory.start().unwrap();
        factory.synced().await.unwrap();
        let bad = json!({"metadata": {"name": "a"}, "data": VALUE});
        server.put_as_is("configmaps", Some("web"), bad).unwrap();
        maps.health_changes().wait_for(|health| !health.undecodable.is_empty()).await.unwrap();
        let lines = [
            format!(r#"{{"type":"{VALUE}","object":{{"metadata":{{"name":"x"}}}}}}"#),
            format!(r#"{{"type":"BOOKMARK","object":"{VALUE}"}}"#),
            format!("{VALUE} is not JSON"),
        ];
        for line in lines {
            let before = unread(&said.lock());
            server
                .faults()
                .add(Fault::new(Action::InsertLine { after_events: 0, line }).resource("configmaps").times(1));
            server.disconnect_watches();
            while unread(&said.lock()) == before {
                tokio::time::sleep(soon).await;
            }
        }
        assert_eq!(server.faults().count("insert_line"), 3);
        let said = said.lock().clone();
        assert!(said.iter().any(|said| said.contains("does not fit its type")), "{said:?}");
        assert!(said.iter().any(|said| said.contains("not a watch event")), "{said:?}");
        let health = maps.health();
        assert!(health.undecodable.contains_key(&"web/a".parse().unwrap()));
        let health = format!("{health} {health:?}");
        assert!(!said.iter().any(|said| said.contains(VALUE)) && !health.contains(VALUE), "{said:?} {health}");
        factory.stop().await;
    })
    .await;
}

// Decision 26.
#[tokio::test]
async fn the_data_of_secrets_is_not_shown() {
    on_the_real_clock(async {
        let server = ApiServer::new();
        let applied = json!({"kubectl.kubernetes.io/last-applied-configuration": VALUE, "other": "kept"});
        let secret = json!({"metadata": {"name": "a", "annotations": applied}, "data": {"p": "aHVudGVyMg=="}});
        server.create("secrets", Some("web"), secret).unwrap();
        let factory = SharedInformerFactory::new(server.client());
        let secrets = factory.informer::<Secret>().unwrap();
        factory.start().unwrap();
        factory.synced().await.unwrap();
        let [any] = &factory.informers()[..] else { panic!("the factory has one informer") };
        let object = any.object("web/a").unwrap();
        assert_eq!(object["metadata"]["annotations"], json!({"other": "kept"}));
        let event = any.events().next().await.unwrap();
        assert_eq!((event.kind, event.key.as_str()), (EventKind::Added, "web/a"));
        for shown in [object.to_string(), format!("{event:?}"), format!("{:?}", any.health())] {
            assert!(!shown.contains("aHVudGVyMg") && !shown.contains(VALUE), "{shown}");
        }
        assert!(secrets.store().get("web/a").unwrap().data.is_some(), "the cache itself has it");
        factory.stop().await;
    })
    .await;
}

// An informer that is built without a factory does not know its resource. Its objects have their kind.
#[tokio::test]
async fn the_data_of_secrets_is_not_shown_by_an_informer_without_a_factory() {
    on_the_real_clock(async {
        let server = ApiServer::new();
        server
            .create("secrets", Some("web"), json!({"metadata": {"name": "a"}, "data": {"p": "aHVudGVyMg=="}}))
            .unwrap();
        let source = kube_informer::parts::KubeSource::<Secret>::new(server.client());
        let secrets = kube_informer::SharedInformer::builder(source).build();
        secrets.start().unwrap();
        secrets.synced().await.unwrap();
        let shown = secrets.any().object("web/a").unwrap().to_string();
        assert!(shown.contains("web") && !shown.contains("aHVudGVyMg"), "{shown}");
        secrets.stop().await;
    })
    .await;
}

/// A Secret whose JSON does not contain its kind.
#[derive(Debug, Clone, PartialEq)]
struct Nameless(Secret);

impl kube_informer::Object for Nameless {
    fn id(&self) -> kube_informer::Id<'_> {
        self.0.id()
    }

    fn to_json(&self) -> Option<serde_json::Value> {
        Some(json!({"metadata": self.0.metadata, "data": self.0.data}))
    }
}

#[tokio::test]
async fn no_data_is_shown_of_objects_of_unknown_kind() {
    on_the_real_clock(async {
        let list = |_: ListOptions| async {
            let secret = json!({"metadata": {"name": "a", "namespace": "web"}, "data": {"p": "aHVudGVyMg=="}});
            let end = ListEnd { version: Some("1".into()), ..ListEnd::default() };
            Ok(ListStream::complete([Nameless(serde_json::from_value(secret).unwrap())], end))
        };
        let watch = |_: WatchOptions| async { Ok(WatchStream::new(futures_util::stream::pending())) };
        let secrets = kube_informer::SharedInformer::builder(ListWatchFns::new(list, watch)).build();
        secrets.start().unwrap();
        secrets.synced().await.unwrap();
        let shown = secrets.any().object("web/a").unwrap().to_string();
        assert!(shown.contains("web") && !shown.contains("aHVudGVyMg"), "{shown}");
        secrets.stop().await;
    })
    .await;
}
