//! Random histories are compared with a plain map: watches and lists always agree with the stored objects.

use crate::support::*;
use kube_embedded_apiserver::ApiServer;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The label and the version of each object, by key.
type Objects = BTreeMap<String, (String, u64)>;

fn key(object: &Value) -> String {
    let text = |member: &str| object["metadata"][member].as_str().unwrap();
    format!("{}/{}", text("namespace"), text("name"))
}

fn entry(object: &Value) -> (String, u64) {
    (object["metadata"]["labels"]["t"].as_str().unwrap().to_owned(), version(object))
}

fn stored(server: &ApiServer) -> Objects {
    server.list("configmaps").unwrap().1.iter().map(|object| (key(object), entry(object))).collect()
}

/// A client that maintains a copy with a watch, and resumes when the watch ends.
struct Copy {
    selector: &'static str,
    objects: Objects,
    resume: u64,
    watch: Option<Watch>,
}

impl Copy {
    fn new(selector: &'static str) -> Self {
        Self { selector, objects: Objects::new(), resume: 0, watch: None }
    }

    fn path(&self) -> String {
        format!(
            "/api/v1/configmaps?watch=1&allowWatchBookmarks=1&labelSelector={}&resourceVersion={}",
            self.selector, self.resume
        )
    }

    /// Reads all events that are ready.
    async fn catch_up(&mut self, server: &ApiServer) {
        loop {
            let mut watch = match self.watch.take() {
                Some(watch) => watch,
                None => {
                    if self.resume == 0 {
                        self.objects.clear();
                    }
                    Watch::open(server, &self.path()).await
                }
            };
            match watch.next_within(Duration::from_millis(1)).await {
                Seen::Silence => {
                    self.watch = Some(watch);
                    return;
                }
                Seen::Event(event) => {
                    self.apply(&event);
                    if event["type"] != "ERROR" {
                        self.watch = Some(watch);
                    }
                }
                Seen::Garbage => panic!("garbage"),
                Seen::End(_) | Seen::Broken(_) => {}
            }
        }
    }

    fn apply(&mut self, event: &Value) {
        let object = &event["object"];
        match event["type"].as_str().unwrap() {
            "ADDED" | "MODIFIED" => {
                self.objects.insert(key(object), entry(object));
            }
            "DELETED" => {
                assert!(self.objects.remove(&key(object)).is_some(), "{event}");
            }
            "ERROR" => {
                assert_eq!(object["code"], 410);
                self.resume = 0;
                return;
            }
            _ => {}
        }
        // Initial events are sorted by key, so a watch can resume only after their end.
        if self.resume > 0 || event["type"] == "BOOKMARK" {
            assert!(version(object) >= self.resume, "{event}");
            self.resume = version(object);
        }
    }
}

async fn run(seed: u64) -> (u64, Objects) {
    let mut random = StdRng::seed_from_u64(seed);
    let server = ApiServer::builder().seed(seed).history(40).build();
    let mut copies = [Copy::new(""), Copy::new("t%3D0"), Copy::new("t%20in%20(0,1)"), Copy::new("t!%3D2")];
    let mut past: Vec<(u64, Objects)> = Vec::new();
    for _ in 0..300 {
        let namespace = ["a", "a-b", "b"][random.random_range(0..3)];
        let name = format!("n{}", random.random_range(0..6));
        let mut object = config_map(&name);
        object["metadata"]["labels"] = json!({"t": random.random_range(0..3).to_string()});
        match random.random_range(0..20) {
            0..6 => drop(server.create("configmaps", Some(namespace), object)),
            6..12 => drop(server.update("configmaps", Some(namespace), object)),
            12..15 => drop(server.delete("configmaps", Some(namespace), &name)),
            15 => server.disconnect_watches(),
            16 if random.random_bool(0.3) => server.compact(),
            _ => {
                let copy = random.random_range(0..copies.len());
                copies[copy].catch_up(&server).await;
            }
        }
        past.push((server.revision(), stored(&server)));
        check_past(&server, &past[random.random_range(0..past.len())]).await;
    }
    let expected = stored(&server);
    for copy in &mut copies {
        copy.catch_up(&server).await;
        let matches = |label: &str| match copy.selector {
            "" => true,
            "t%3D0" => label == "0",
            _ => label != "2",
        };
        let selected: Objects = expected
            .iter()
            .filter(|(_, (label, _))| matches(label))
            .map(|(key, entry)| (key.clone(), entry.clone()))
            .collect();
        assert_eq!(copy.objects, selected, "seed {seed}, selector {}", copy.selector);
    }
    (server.revision(), expected)
}

/// Checks that a list of an older state shows exactly that state, page by page, or reports that it has expired.
async fn check_past(server: &ApiServer, (revision, objects): &(u64, Objects)) {
    let mut query = format!("limit=4&resourceVersion={revision}");
    let mut listed = Objects::new();
    loop {
        let page = get(server, &format!("/api/v1/configmaps?{query}")).await;
        if page.code == 410 {
            return;
        }
        let page = page.json();
        assert_eq!(version(&page), *revision);
        listed.extend(page["items"].as_array().unwrap().iter().map(|object| (key(object), entry(object))));
        match page["metadata"]["continue"].as_str() {
            Some(token) => query = format!("limit=4&continue={token}"),
            None => break,
        }
    }
    assert_eq!(&listed, objects, "at {revision}");
}

#[tokio::test(start_paused = true)]
async fn watches_and_lists_agree_with_the_stored_objects() {
    for seed in 0..40 {
        run(seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_history_can_be_repeated() {
    assert_eq!(run(7).await, run(7).await);
}
