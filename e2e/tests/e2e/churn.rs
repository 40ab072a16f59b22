//! Writers that create, change and delete objects without a pause.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};
use tokio::task::JoinSet;

use crate::server::{Collection, Server};

pub(crate) const NAMESPACES: [&str; 8] = ["e0", "e1", "e2", "e3", "e4", "e4-b", "e5", "e6"];
const WRITERS: u64 = 6;
/// The pause between two writes of a writer, because clients and servers share the machine.
const PAUSE: Duration = Duration::from_millis(8);
/// The time limit for a write. A write that exceeds it may still succeed later.
const PATIENCE: Duration = Duration::from_secs(3);

/// The largest number of objects of each collection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) config_maps: u32,
    pub(crate) widgets: u32,
}

/// The writers. They write until they are paused or stopped.
pub(crate) struct Churn {
    server: Server,
    size: Size,
    /// Locked for reading during each write; a lock for writing stops all writes.
    gate: Arc<RwLock<()>>,
    writes: Arc<AtomicU64>,
    writers: JoinSet<()>,
}

/// No write happens while this guard exists.
pub(crate) type WritesPaused = OwnedRwLockWriteGuard<()>;

impl Churn {
    /// Creates every object, and starts the writers in a paused state.
    pub(crate) async fn start(server: Server, size: Size, seed: u64) -> (Self, WritesPaused) {
        for namespace in NAMESPACES {
            server.create_namespace(namespace).await;
        }
        let gate = Arc::new(RwLock::new(()));
        let silence = gate.clone().write_owned().await;
        let mut churn = Self { server, size, gate, writes: Arc::default(), writers: JoinSet::new() };
        churn.fill(Collection::ConfigMaps, size.config_maps).await;
        churn.fill(Collection::Widgets, size.widgets).await;
        for writer in 0..WRITERS {
            let random = StdRng::seed_from_u64(seed.wrapping_add(writer));
            let (server, gate, writes) = (churn.server.clone(), churn.gate.clone(), churn.writes.clone());
            churn.writers.spawn(write_forever(server, size, gate, writes, random));
        }
        (churn, silence)
    }

    /// Creates all widgets again, after their CRD was deleted.
    pub(crate) async fn fill_widgets(&self) {
        self.fill(Collection::Widgets, self.size.widgets).await;
    }

    /// Waits for the current writes, and stops further ones.
    pub(crate) async fn pause(&self) -> WritesPaused {
        self.gate.clone().write_owned().await
    }

    /// Returns the number of successful writes.
    pub(crate) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    pub(crate) async fn stop(mut self) {
        self.writers.shutdown().await;
    }

    async fn fill(&self, collection: Collection, count: u32) {
        let mut fillers = JoinSet::new();
        for filler in 0..8 {
            let (server, writes) = (self.server.clone(), self.writes.clone());
            fillers.spawn(async move {
                for number in (filler..count).step_by(8) {
                    let (namespace, name) = place(number);
                    let body = body(collection, &name, 0);
                    let (code, answer) = server.send("POST", &collection.path(Some(namespace)), &body).await;
                    assert!(code == 201 || code == 409, "{answer}");
                    writes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while let Some(ended) = fillers.join_next().await {
            ended.unwrap();
        }
    }
}

async fn write_forever(server: Server, size: Size, gate: Arc<RwLock<()>>, writes: Arc<AtomicU64>, mut random: StdRng) {
    loop {
        let turn = gate.read().await;
        let number = random.random_range(0..size.config_maps + size.widgets);
        let (collection, number) = match number.checked_sub(size.config_maps) {
            None => (Collection::ConfigMaps, number),
            Some(number) => (Collection::Widgets, number),
        };
        let done = write(&server, collection, number, &mut random).await;
        writes.fetch_add(u64::from(done), Ordering::Relaxed);
        drop(turn);
        // Wait longer if the server is down.
        tokio::time::sleep(if done { PAUSE } else { PAUSE * 20 }).await;
    }
}

/// Changes, deletes or creates an object. Returns false if there is no successful response.
async fn write(server: &Server, collection: Collection, number: u32, random: &mut StdRng) -> bool {
    let (namespace, name) = place(number);
    let content = random.random();
    let object = body(collection, &name, content);
    let path = format!("{}/{name}", collection.path(Some(namespace)));
    let (method, change) = match random.random_range(0..100) {
        0..12 => ("DELETE", Value::Null),
        // Labels change, so that objects start or stop to match a selector.
        12..50 => ("PATCH", json!({"metadata": {"labels": object["metadata"]["labels"]}})),
        _ if collection == Collection::ConfigMaps => ("PUT", object.clone()),
        _ => ("PATCH", object.clone()),
    };
    match server.try_send(method, &path, &change, PATIENCE).await {
        Some((404, _)) => {
            let created = server.try_send("POST", &collection.path(Some(namespace)), &object, PATIENCE).await;
            matches!(created, Some((201, _)))
        }
        answer => matches!(answer, Some((200, _))),
    }
}

fn place(number: u32) -> (&'static str, String) {
    (NAMESPACES[number as usize % NAMESPACES.len()], format!("n{number}"))
}

fn body(collection: Collection, name: &str, content: u32) -> Value {
    let metadata = json!({"name": name, "labels": {"l": (content % 3).to_string(), "app": "churn"}});
    let text = format!("{content:08x}").repeat(1 + content as usize % 40);
    match collection {
        Collection::ConfigMaps => json!({"metadata": metadata, "data": {"text": text, "content": content.to_string()}}),
        Collection::Widgets => json!({
            "kind": "Widget", "apiVersion": "demo.example.com/v1",
            "metadata": metadata, "spec": {"size": content % 10, "text": text},
        }),
    }
}
