//! `informer demo`: everything in one process, with no cluster.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_embedded_apiserver::{ApiServer, Fault, Verb};
use kube_informer::{Event, SharedInformerFactory};
use serde_json::json;
use tokio::time::Instant;

use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How long to go on, such as 5s or 2m; otherwise until Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
}

pub(crate) async fn run(arguments: Arguments) -> Outcome {
    let server = ApiServer::new();
    let factory = SharedInformerFactory::new(server.client());
    let pods = factory.informer::<Pod>()?;
    let by_node = pods.add_index("node", |pod: &Pod| pod.spec.as_ref()?.node_name.clone())?;

    let start = Instant::now();
    let at = move || format!("{:6.2} s", start.elapsed().as_secs_f64());
    pods.on_error(move |error| println!("{}  ! {error}", at()));
    pods.on_event(move |event| match event {
        Event::Added { object, initial } => {
            println!(
                "{}  + {} is {}{}",
                at(),
                name(&object),
                phase(&object),
                if initial { " (from the start)" } else { "" }
            );
        }
        Event::Updated { old, new } => println!("{}  ~ {} was {}, is {}", at(), name(&new), phase(&old), phase(&new)),
        Event::Deleted(gone) if gone.is_final() => println!("{}  - {}", at(), gone.key()),
        Event::Deleted(gone) => println!("{}  - {} (noticed by asking again)", at(), gone.key()),
        Event::Resynced(_) => {}
    });

    write(&server, "web-0", "Running", 0);
    factory.start()?;
    factory.synced().await?;
    println!(
        "{}    synced with {} pods at version {}",
        at(),
        pods.store().len(),
        pods.last_sync_version().map_or_else(String::new, |version| version.to_string())
    );

    let life = live(&server, at);
    let end = async {
        match arguments.duration {
            Some(duration) => tokio::time::sleep_until(start + duration).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = life => {}
        () = end => {}
        _ = tokio::signal::ctrl_c() => {}
    }

    println!("{}    the cache holds {} pods:", at(), pods.store().len());
    for node in by_node.values() {
        let mut names: Vec<String> = by_node.get(&node).iter().map(|pod| name(pod).to_owned()).collect();
        names.sort_unstable();
        println!("             {node}: {}", names.join(", "));
    }
    factory.stop().await;
    Ok(())
}

/// Pods come, run and go; now and then something breaks.
async fn live(server: &ApiServer, at: impl Fn() -> String) {
    for round in 1u64.. {
        let pod = format!("web-{}", round % 6);
        write(server, &pod, "Pending", round);
        tokio::time::sleep(Duration::from_millis(250)).await;
        write(server, &pod, "Running", round);
        tokio::time::sleep(Duration::from_millis(250)).await;
        match round % 6 {
            2 => {
                println!("{}    the connection breaks", at());
                server.disconnect_watches();
            }
            4 => {
                println!("{}    the server forgets its history while the connection is broken, and web-1 goes", at());
                server.faults().add(Fault::status(503).verb(Verb::Watch).times(1));
                server.disconnect_watches();
                // It may be gone already.
                let _ = server.delete("pods", Some("default"), "web-1");
                server.compact();
            }
            _ => {}
        }
    }
}

fn write(server: &ApiServer, name: &str, phase: &str, round: u64) {
    let pod = json!({
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {"nodeName": format!("worker-{}", round % 2), "containers": [{"name": "web", "image": "web:1"}]},
        "status": {"phase": phase},
    });
    let exists = server.get("pods", Some("default"), name).is_ok();
    let written = match exists {
        true => server.update("pods", Some("default"), pod),
        false => server.create("pods", Some("default"), pod),
    };
    if let Err(status) = written {
        println!("           the server refused {name}: {status}");
    }
}

fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Unknown")
}
