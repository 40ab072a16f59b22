//! Our informers and other clients, each with its cache of the same collections.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DynamicObject};
use kube::runtime::reflector::store::Writer;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube_client::Client;
use kube_core::{ApiResource, Resource};
use kube_informer::{Object, ObjectKey, SharedInformer, SharedInformerFactory};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;

use crate::follower::resource;

/// The version and uid of each object, by key.
pub(crate) type Cache = BTreeMap<String, String>;

/// Caches by name; the name ends with the collection.
pub(crate) type Caches = BTreeMap<String, Cache>;

/// The collections, as arguments of the client-go program.
const COLLECTIONS: [&str; 2] = ["/v1/configmaps", "demo.example.com/v1/widgets"];

const SYNCED: Duration = Duration::from_secs(60);

/// Informers of kube-informer.
pub(crate) struct Informers {
    factory: SharedInformerFactory,
    config_maps: SharedInformer<ConfigMap>,
    widgets: SharedInformer<DynamicObject>,
}

impl Informers {
    pub(crate) async fn start(client: Client) -> Self {
        let factory = SharedInformerFactory::new(client);
        let config_maps = factory.informer::<ConfigMap>().unwrap();
        let widgets = factory.dynamic(widgets()).unwrap();
        factory.start().unwrap();
        factory.synced().within(SYNCED).await.unwrap();
        Self { factory, config_maps, widgets }
    }

    pub(crate) fn caches(&self) -> Caches {
        fn cache<T: Object>(informer: &SharedInformer<T>) -> Cache {
            let entry = |object: &T| {
                let id = object.id();
                (ObjectKey::of(object).unwrap().to_string(), format!("{} {}", id.version, id.uid))
            };
            informer.store().snapshot().iter().map(entry).collect()
        }
        [("ours, configmaps", cache(&self.config_maps)), ("ours, widgets", cache(&self.widgets))]
            .map(|(name, cache)| (name.to_owned(), cache))
            .into()
    }

    pub(crate) async fn stop(self) {
        self.factory.stop().await;
    }
}

fn widgets() -> ApiResource {
    resource("demo.example.com", "Widget", "widgets")
}

/// Reflectors of kube-rs.
pub(crate) struct Reflectors {
    config_maps: reflector::Store<ConfigMap>,
    widgets: reflector::Store<DynamicObject>,
    /// The tasks that poll the streams.
    _readers: JoinSet<()>,
}

impl Reflectors {
    pub(crate) async fn start(client: Client) -> Self {
        let mut readers = JoinSet::new();
        let (config_maps, writer) = reflector::store::<ConfigMap>();
        let all = watcher(Api::<ConfigMap>::all(client.clone()), watcher::Config::default()).default_backoff();
        readers.spawn(reflector(writer, all).for_each(async |_| {}));
        let writer = Writer::<DynamicObject>::new(widgets());
        let store = writer.as_reader();
        let all = Api::<DynamicObject>::all_with(client, &widgets());
        let all = watcher(all, watcher::Config::default()).default_backoff();
        readers.spawn(reflector(writer, all).for_each(async |_| {}));
        config_maps.wait_until_ready().await.unwrap();
        store.wait_until_ready().await.unwrap();
        Self { config_maps, widgets: store, _readers: readers }
    }

    pub(crate) fn caches(&self) -> Caches {
        fn cache<K: Resource>(objects: &[Arc<K>]) -> Cache {
            let entry = |object: &Arc<K>| {
                let meta = object.meta();
                let [namespace, name, version, uid] = [&meta.namespace, &meta.name, &meta.resource_version, &meta.uid]
                    .map(|text| text.as_deref().unwrap());
                (format!("{namespace}/{name}"), format!("{version} {uid}"))
            };
            objects.iter().map(entry).collect()
        }
        [("kube-rs, configmaps", cache(&self.config_maps.state())), ("kube-rs, widgets", cache(&self.widgets.state()))]
            .map(|(name, cache)| (name.to_owned(), cache))
            .into()
    }
}

/// Informers of client-go, in a child process that ends when its stdin ends.
pub(crate) struct ClientGo {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    child: Child,
}

impl ClientGo {
    /// Starts the program, and waits until it is synced.
    pub(crate) async fn start(program: &Path, kubeconfig: &Path) -> Self {
        let mut child = Command::new(program)
            .arg("-kubeconfig")
            .arg(kubeconfig)
            .args(COLLECTIONS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut client_go = Self { input: child.stdin.take().unwrap(), output, child };
        let synced = tokio::time::timeout(SYNCED, client_go.line()).await;
        assert_eq!(synced.expect("client-go syncs in time"), "synced");
        client_go
    }

    pub(crate) async fn caches(&mut self) -> Caches {
        self.input.write_all(b"show\n").await.unwrap();
        let caches: Caches = serde_json::from_str(&self.line().await).unwrap();
        caches.into_iter().map(|(name, cache)| (format!("client-go {name}"), cache)).collect()
    }

    pub(crate) async fn stop(mut self) {
        drop(self.input);
        assert!(self.child.wait().await.unwrap().success());
    }

    async fn line(&mut self) -> String {
        self.output.next_line().await.unwrap().expect("the client-go program has ended")
    }
}

/// Returns the output of `kubectl get`.
pub(crate) async fn kubectl(program: &Path, kubeconfig: &Path) -> Caches {
    let mut caches = Caches::new();
    for collection in ["configmaps", "widgets"] {
        let line = "{range .items[*]}{.metadata.namespace}/{.metadata.name} {.metadata.resourceVersion} {.metadata.uid}{\"\\n\"}{end}";
        let output = Command::new(program)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["get", collection, "--all-namespaces", "--output", &format!("jsonpath={line}")])
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let entries = text.lines().map(|line| line.split_once(' ').unwrap());
        let cache = entries.map(|(key, rest)| (key.to_owned(), rest.to_owned())).collect();
        caches.insert(format!("kubectl, {collection}"), cache);
    }
    caches
}
