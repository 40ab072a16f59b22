//! A log agent of one node: it adds namespace, pod, container and labels to each line of a log.
//!
//! `cargo run -p kube-informer --example log_enricher -- --for 10s` runs on a server in this process, and each container
//! writes a line when its pod is made and another one after its pod was deleted. On a node of a real cluster:
//! `tail -F /var/log/pods/*/*/*.log | log_enricher --kubeconfig ~/.kube/config --node worker-7 --stdin`.

#![allow(missing_docs, unreachable_pub, reason = "an example is read as a whole")]

#[macro_use]
#[path = "../connect/mod.rs"]
mod connect;
mod enricher;

use std::time::Duration;

use clap::Parser;
use enricher::{Enricher, LogSource};
use kube_informer::{Event, Object as _, SharedInformerFactory};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader, stdin};
use tokio::sync::mpsc;

/// Adds namespace, pod, container and labels to each line of a log.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    connection: connect::Connection,
    /// The node whose pods are followed.
    #[arg(long, default_value = "node-0")]
    node: String,
    /// Read the output of `tail -F` on several log files.
    #[arg(long)]
    stdin: bool,
}

/// A line of a log, and the path of its file.
type Line = (String, String);

#[tokio::main]
async fn main() -> connect::Outcome {
    let arguments = Arguments::parse();
    let connected = arguments.connection.connect().await?;
    let factory = SharedInformerFactory::new(connected.client.clone());
    let enricher = Enricher::new(&factory, &arguments.node)?;
    enricher.pods().on_error(|error| say!("! {error}"));
    let (sender, mut lines) = mpsc::unbounded_channel();
    if !arguments.stdin {
        invent_lines(&enricher, sender.clone());
    }
    factory.start()?;
    factory.synced().within(Duration::from_secs(30)).await?;
    say!("synced: {} pods on {}", enricher.pods().store().len(), arguments.node);

    let enrich = async {
        while let Some((path, text)) = lines.recv().await {
            let origin = LogSource::of(&path).and_then(|source| enricher.find(&source));
            say!("{}", json!({"line": text, "origin": origin}));
        }
    };
    let read = async {
        match arguments.stdin {
            true => read_lines(sender).await,
            false => std::future::pending().await,
        }
    };
    tokio::select! {
        () = arguments.connection.until_the_end() => {}
        () = enrich => {}
        read = read => read?,
    }
    if let Some(lingering) = enricher.pods().health().lingering {
        say!("{} deleted pods can still be found", lingering.objects);
    }
    factory.stop().await;
    Ok(())
}

/// Sends a line for each container when its pod is made, and another one after the pod was deleted.
fn invent_lines(enricher: &Enricher, lines: mpsc::UnboundedSender<Line>) {
    enricher.pods().on_event(move |event| {
        let text = match &event {
            Event::Added { .. } => "the server is ready",
            Event::Deleted(_) => "the last connection is closed",
            Event::Updated { .. } | Event::Resynced(_) => return,
        };
        let (pod, id) = (event.object(), event.object().id());
        for container in &pod.spec.containers {
            let (namespace, name) = (id.key.namespace().unwrap_or_default(), id.key.name());
            let path = format!("/var/log/pods/{namespace}_{name}_{}/{}/0.log", id.uid, container.name);
            // The receiver is gone at the end of the program.
            let _ = lines.send((path, text.to_owned()));
        }
    });
}

/// Reads what `tail -F` writes: lines, and before those of another file a line with its path.
async fn read_lines(lines: mpsc::UnboundedSender<Line>) -> std::io::Result<()> {
    let (mut input, mut path) = (BufReader::new(stdin()).lines(), String::new());
    while let Some(line) = input.next_line().await? {
        match line.strip_prefix("==> ").and_then(|line| line.strip_suffix(" <==")) {
            Some(header) => header.clone_into(&mut path),
            None => _ = lines.send((path.clone(), line)),
        }
    }
    Ok(())
}
