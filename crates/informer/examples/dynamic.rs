//! A custom resource without a Rust type: its name is given at run time, and its objects are JSON.
//!
//! `cargo run -p kube-informer --example dynamic`, or for a real cluster, for example:
//! `--kubeconfig ~/.kube/config --group cert-manager.io --api-version v1 --kind Certificate --plural certificates`

#![allow(missing_docs, unreachable_pub, reason = "an example is read as a whole")]

#[macro_use]
mod connect;

use std::time::Duration;

use clap::Parser;
use kube_client::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube_embedded_apiserver::ApiServer;
use kube_informer::{Event, SharedInformerFactory};
use serde_json::json;

/// Prints the events of one custom resource.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    connection: connect::Connection,
    /// The group of the resource.
    #[arg(long, default_value = "demo.example.com")]
    group: String,
    /// Its version.
    #[arg(long, default_value = "v1")]
    api_version: String,
    /// Its kind.
    #[arg(long, default_value = "Widget")]
    kind: String,
    /// Its plural.
    #[arg(long, default_value = "widgets")]
    plural: String,
}

#[tokio::main]
async fn main() -> connect::Outcome {
    let Arguments { connection, group, api_version, kind, plural } = Arguments::parse();
    let connected = connection.connect().await?;

    let kind = GroupVersionKind::gvk(&group, &api_version, &kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &plural);
    let factory = SharedInformerFactory::new(connected.client.clone());
    let objects = factory.dynamic(resource)?;
    let by_size =
        objects.add_index("size", |object: &DynamicObject| Some(object.data["spec"]["size"].as_u64()?.to_string()))?;
    objects.on_error(|error| say!("! {error}"));
    objects.on_event(|event| match event {
        Event::Added { object, .. } => say!("+ {} {}", key(&object), object.data["spec"]),
        Event::Updated { old, new } => say!("~ {} {} -> {}", key(&new), old.data["spec"], new.data["spec"]),
        Event::Deleted(gone) => say!("- {}", gone.key()),
        Event::Resynced(_) => {}
    });
    factory.start()?;

    // The error names each resource that is missing or forbidden, with the reason. The informer keeps trying.
    if let Err(missing) = factory.synced().within(Duration::from_secs(5)).await {
        say!("! {missing}");
    }
    tokio::select! {
        refused = live(connected.server.as_ref()) => refused?,
        () = connection.until_the_end() => {}
    }
    for size in by_size.values() {
        say!("size {size}: {} objects", by_size.count(&size));
    }
    factory.stop().await;
    Ok(())
}

fn key(object: &DynamicObject) -> String {
    let metadata = &object.metadata;
    [&metadata.namespace, &metadata.name].into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join("/")
}

/// Creates, changes and deletes widgets, if the server is the embedded one.
async fn live(server: Option<&ApiServer>) -> connect::Outcome {
    let Some(server) = server else { return std::future::pending().await };
    let (resource, namespace) = ("widgets.demo.example.com", Some("default"));
    let widget = |name: &str, size: usize| {
        let (api_version, kind) = ("demo.example.com/v1", "Widget");
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": {"size": size}})
    };
    let names = ["bolt", "cog", "gear", "nut"];
    loop {
        for (size, name) in names.iter().enumerate() {
            server.create(resource, namespace, widget(name, size))?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        for name in names {
            server.update(resource, namespace, widget(name, 7))?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        for name in names {
            server.delete(resource, namespace, name)?;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
