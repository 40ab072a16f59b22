//! The changes of Foos, and the state that a controller must reach.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::end_state::EndState;
use super::replicas::Replicas;
use super::server_under_test::TestServer;
use crate::server::Server;

pub(crate) const FOOS: &str = "/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos";
pub(crate) const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
pub(crate) const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.samplecontroller.k8s.io";
/// The time limit for a step: an informer may back off for a minute, and a lease must expire.
const SETTLED: Duration = Duration::from_secs(120);

/// The CRD of Foos.
pub(crate) struct Definition(Value);

/// A story on a server.
pub(crate) struct Story {
    server: Server,
    /// The expected state of each Foo, by name.
    wanted: BTreeMap<&'static str, Wanted>,
    /// The deployment without an owner, as it was created.
    taken: Value,
}

#[derive(Debug)]
struct Wanted {
    replicas: i64,
    available: i64,
}

impl Story {
    /// Creates a deployment without an owner, and the CRD if the controller does not install it.
    pub(crate) async fn begin(server_under_test: &TestServer, definition: Option<&Definition>) -> Self {
        let server = Server::connect(server_under_test.operator().await);
        let mut story = Self { server, wanted: BTreeMap::new(), taken: Value::Null };
        if let Some(Definition(definition)) = definition {
            story.send("POST", DEFINITIONS, definition).await;
        }
        let labels = json!({"app": "other"});
        let container = json!({"name": "web", "image": "httpd:2"});
        let taken = json!({"metadata": {"name": "taken", "labels": labels}, "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        }});
        story.taken = story.send("POST", DEPLOYMENTS, &taken).await;
        story
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the CRD of this server.
    pub(crate) async fn definition(&self) -> Definition {
        let found = self.send("GET", DEFINITION, &Value::Null).await;
        let metadata = json!({"name": found["metadata"]["name"], "annotations": found["metadata"]["annotations"]});
        let fields = ["apiVersion", "kind", "spec"].map(|field| (field.to_owned(), found[field].clone()));
        Definition(Value::Object(fields.into_iter().chain([("metadata".to_owned(), metadata)]).collect()))
    }

    /// Plays the whole story.
    pub(crate) async fn play(&mut self, server_under_test: &mut TestServer, replicas: &mut Replicas) {
        self.served().await;
        for (name, replicas) in [("plain", 2), ("resized", 1), ("scaled", 2), ("deleted", 3), ("available", 2)] {
            self.create(name, json!({"deploymentName": deployment(name), "replicas": replicas})).await;
            self.wanted.insert(name, Wanted { replicas, available: 0 });
        }
        // The server's default is one replica.
        self.create("unsized", json!({"deploymentName": deployment("unsized")})).await;
        self.wanted.insert("unsized", Wanted { replicas: 1, available: 0 });
        self.create("thief", json!({"deploymentName": "taken", "replicas": 5})).await;
        self.create("nameless", json!({"deploymentName": "", "replicas": 1})).await;
        self.settled("Foos were created", replicas).await;

        self.meddle(4, 9, 2).await;
        self.settled("other clients wrote", replicas).await;

        server_under_test.restart().await;
        self.served().await;
        self.meddle(5, 8, 1).await;
        self.create("late", json!({"deploymentName": deployment("late"), "replicas": 1})).await;
        self.wanted.insert("late", Wanted { replicas: 1, available: 0 });
        self.settled("the server was restarted", replicas).await;

        let killed = replicas.kill_acting().await;
        self.meddle(6, 7, 2).await;
        self.create("orphan", json!({"deploymentName": deployment("orphan"), "replicas": 2})).await;
        self.wanted.insert("orphan", Wanted { replicas: 2, available: 0 });
        if replicas.has_standby() {
            self.settled("a standby took over", replicas).await;
            replicas.start_replica(&killed, server_under_test).await;
            replicas.knows_leader(&killed).await;
        } else {
            replicas.start_replica(&killed, server_under_test).await;
            self.settled("the controller was restarted", replicas).await;
        }

        self.meddle(3, 1, 0).await;
        self.settled("other clients wrote again", replicas).await;
        self.quiet().await;
        let taken = self.send("GET", &format!("{DEPLOYMENTS}/taken"), &Value::Null).await;
        assert_eq!(taken, self.taken, "the deployment without an owner has changed");
    }

    /// Plays a short story, for a slow server.
    pub(crate) async fn play_slowly(&mut self, replicas: &Replicas) {
        self.served().await;
        for (name, replicas) in [("plain", 2), ("scaled", 2)] {
            self.create(name, json!({"deploymentName": deployment(name), "replicas": replicas})).await;
            self.wanted.insert(name, Wanted { replicas, available: 0 });
        }
        self.create("thief", json!({"deploymentName": "taken", "replicas": 5})).await;
        self.settled("Foos were created on a slow server", replicas).await;
        let scaled = format!("{DEPLOYMENTS}/{}", deployment("scaled"));
        self.send("PATCH", &scaled, &json!({"spec": {"replicas": 7}})).await;
        self.settled("other clients wrote on a slow server", replicas).await;
        self.quiet().await;
    }

    /// Resizes a Foo, scales and deletes deployments directly, and changes the number of available pods.
    async fn meddle(&mut self, resized: i64, scaled: i64, available: i64) {
        self.send("PATCH", &format!("{FOOS}/resized"), &json!({"spec": {"replicas": resized}})).await;
        self.wanted.get_mut("resized").unwrap().replicas = resized;
        let deployment = |name| format!("{DEPLOYMENTS}/{}", deployment(name));
        self.send("PATCH", &deployment("scaled"), &json!({"spec": {"replicas": scaled}})).await;
        self.send("DELETE", &deployment("deleted"), &Value::Null).await;
        let status = json!({"replicas": available, "readyReplicas": available, "availableReplicas": available});
        self.send("PATCH", &format!("{}/status", deployment("available")), &json!({"status": status})).await;
        self.wanted.get_mut("available").unwrap().available = available;
    }

    async fn create(&self, name: &str, spec: Value) {
        let (api_version, metadata) = ("samplecontroller.k8s.io/v1alpha1", json!({"name": name}));
        let foo = json!({"apiVersion": api_version, "kind": "Foo", "metadata": metadata, "spec": spec});
        self.send("POST", FOOS, &foo).await;
    }

    /// Waits until every Foo has its expected state.
    async fn settled(&self, after: &str, replicas: &Replicas) {
        let start = Instant::now();
        while let Some(missing) = self.missing().await {
            assert!(start.elapsed() < SETTLED, "after {after}: {missing}\n{}", replicas.last_words());
            replicas.all_alive().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        println!("sample controller: settled after {after}, in {:.1} s", start.elapsed().as_secs_f64());
    }

    /// Returns the first difference from the expected state.
    async fn missing(&self) -> Option<String> {
        for (name, wanted) in &self.wanted {
            let (_, foo) = self.server.send("GET", &format!("{FOOS}/{name}"), &Value::Null).await;
            let path = format!("{DEPLOYMENTS}/{}", deployment(name));
            let (_, deployment) = self.server.send("GET", &path, &Value::Null).await;
            let is_owned = deployment["metadata"]["ownerReferences"][0]["uid"] == foo["metadata"]["uid"];
            let is_sized = deployment["spec"]["replicas"] == wanted.replicas;
            if !is_owned || !is_sized || foo["status"]["availableReplicas"] != wanted.available {
                return Some(format!("{name} should have {wanted:?}: {foo} {deployment}"));
            }
        }
        let (_, events) = self.server.send("GET", EVENTS, &Value::Null).await;
        let events = events["items"].as_array().into_iter().flatten();
        let found: Vec<_> = events.map(|event| (&event["regarding"]["name"], &event["reason"])).collect();
        let mut expected = self.wanted.keys().map(|name| (*name, "Synced")).chain([("thief", "ErrResourceExists")]);
        let missing = expected.find(|(name, reason)| !found.iter().any(|event| event.0 == name && event.1 == reason));
        missing.map(|(name, reason)| format!("no event {reason} about {name}"))
    }

    /// Waits until the state no longer changes, so that superfluous or late writes are noticed.
    async fn quiet(&self) {
        let mut before = EndState::of(&self.server).await;
        loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let now = EndState::of(&self.server).await;
            if now == before {
                return;
            }
            before = now;
        }
    }

    /// Waits until Foos are served, which takes some time after a start or a new CRD.
    async fn served(&self) {
        while self.server.send("GET", "/apis/samplecontroller.k8s.io/v1alpha1", &Value::Null).await.0 != 200
            || self.server.send("GET", FOOS, &Value::Null).await.0 != 200
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Sends a request that must succeed.
    async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let (code, answer) = self.server.send(method, path, body).await;
        assert!(code < 300, "{method} {path}: {code} {answer}");
        answer
    }
}

fn deployment(foo: &str) -> String {
    format!("{foo}-deployment")
}
