//! List and watch requests without an informer: list, watch over chunked HTTP, split the answer into lines, decode each
//! line.
//!
//! An informer does this internally. This example lacks: deadlines for dead connections, backoff, lists in pages,
//! undecodable objects, a server restored from a backup, handlers, indexes.
//!
//! `cargo run -p kube-informer --example raw_watch`, or with `--kubeconfig ~/.kube/config` for a real cluster. Without
//! options, the embedded server listens on a port of 127.0.0.1, so that the bytes go over a socket.

#![allow(missing_docs, unreachable_pub, reason = "an example is read as a whole")]

#[macro_use]
mod connect;

use std::collections::BTreeMap;
use std::error::Error;

use clap::Parser;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube_client::Client;
use kube_client::client::Body;
use serde_json::Value;

/// Follows all pods by list and watch requests made by hand.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    connection: connect::Connection,
}

/// The version of each object by namespace and name: the whole cache of this program.
type Cache = BTreeMap<String, String>;

/// Why a watch ended.
enum End {
    /// The server closed it, as it does every few minutes. The next watch continues from the last version.
    Closed,
    /// The server no longer has this version. The program must list again.
    Expired,
}

#[tokio::main]
async fn main() -> connect::Outcome {
    let arguments = Arguments::parse();
    let connected = arguments.connection.connect_over_http().await?;
    tokio::select! {
        outcome = follow(&connected.client) => outcome,
        () = arguments.connection.until_the_end() => Ok(()),
    }
}

/// Lists and watches, watches again when a watch ends, and lists again when the version has expired.
async fn follow(client: &Client) -> Result<(), Box<dyn Error>> {
    let mut cache = Cache::new();
    loop {
        let mut version = list(client, &mut cache).await?;
        say!("listed {} pods at version {version}", cache.len());
        while let End::Closed = watch(client, &mut cache, &mut version).await? {
            say!("the watch is over; the next one goes on from version {version}");
        }
        say!("version {version} has expired");
    }
}

/// Fills the cache from a list, and returns the version of the list.
async fn list(client: &Client, cache: &mut Cache) -> Result<String, Box<dyn Error>> {
    let response = get(client, "/api/v1/pods").await?;
    // The whole list in one response: with 100,000 pods that is a gigabyte.
    let body = response.into_body().collect().await?.to_bytes();
    let list: Value = serde_json::from_slice(&body)?;
    let listed: Cache = list["items"].as_array().into_iter().flatten().map(|pod| (key(pod), version(pod))).collect();
    // The server sends no event for objects that were deleted between two watches. They are missing from the list.
    for gone in cache.keys().filter(|key| !listed.contains_key(*key)) {
        say!("- {gone} (missing from the list)");
    }
    *cache = listed;
    Ok(version(&list))
}

/// Applies the changes after a version until the watch ends.
async fn watch(client: &Client, cache: &mut Cache, last: &mut String) -> Result<End, Box<dyn Error>> {
    let path = format!("/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion={last}");
    let mut body = get(client, &path).await?.into_body();
    let mut buffer = Vec::new();
    // A frame is a part of the response. It may contain half an event, or many.
    while let Some(frame) = body.frame().await {
        // A broken connection counts as closed. If it broke at once every time, this would need a delay.
        let Ok(frame) = frame else { return Ok(End::Closed) };
        let Ok(data) = frame.into_data() else { continue };
        buffer.extend_from_slice(&data);
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line)?;
            let object = &event["object"];
            match event["type"].as_str().unwrap_or_default() {
                "ADDED" | "MODIFIED" => {
                    let sign = if cache.insert(key(object), version(object)).is_some() { '~' } else { '+' };
                    say!("{sign} {} at {}", key(object), version(object));
                }
                "DELETED" => {
                    cache.remove(&key(object));
                    say!("- {}", key(object));
                }
                "BOOKMARK" => {}
                // Usually 410 Gone, in a response that started with 200 OK.
                _ => return Ok(End::Expired),
            }
            *last = version(object);
        }
    }
    Ok(End::Closed)
}

async fn get(client: &Client, path: &str) -> Result<Response<Body>, Box<dyn Error>> {
    let request = Request::get(path).header("Accept", "application/json").body(Body::empty())?;
    let response = client.send(request).await?;
    if response.status().is_success() { Ok(response) } else { Err(format!("{path}: {}", response.status()).into()) }
}

fn key(object: &Value) -> String {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

fn version(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
}
