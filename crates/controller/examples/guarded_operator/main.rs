//! An operator that reports invalid objects to their authors, with a webhook server and a controller on every replica
//! beside a controller that runs only on the leader.
//!
//! `cargo run -p kube-controller --example guarded_operator -- --for 10s` plays a short story on a server in this
//! process. With `--kubeconfig ~/.kube/config` it reconciles the Backups of a real cluster.

#![allow(missing_docs, unreachable_pub, reason = "an example is read as a whole")]

mod backup;
#[macro_use]
#[path = "../../../informer/examples/connect/mod.rs"]
mod connect;
mod operator;
mod story;
mod webhook;

use std::sync::Arc;

use clap::Parser;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Api;
use kube_client::api::PostParams;
use kube_controller::{Controller, ElectionSettings, EventRecorder, LeaderElector, Manager};
use kube_informer::{CancellationToken, SharedInformerFactory};
use tokio::net::TcpListener;

use backup::{Backup, crd};
use operator::{Context, MANAGER, Outcomes, observe, write_plan};

/// Writes a plan for each Backup, and reports the invalid ones.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    connection: connect::Connection,
    /// The identity of this copy of the program in the election.
    #[arg(long, default_value = "guarded-operator-1")]
    identity: String,
    /// The address of the webhook.
    #[arg(long, default_value = "127.0.0.1:0")]
    webhook: String,
}

#[tokio::main]
async fn main() -> connect::Outcome {
    let arguments = Arguments::parse();
    let connected = arguments.connection.connect().await?;
    let client = connected.client.clone();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    match crds.create(&PostParams::default(), &crd()).await {
        Err(kube_client::Error::Api(status)) if status.code == 409 => {}
        created => drop(created?),
    }

    let factory = SharedInformerFactory::new(client.clone());
    let (backups, plans) = (factory.informer::<Backup>()?, factory.informer::<ConfigMap>()?);
    let by_schedule = backups.add_index("schedule", |backup: &Backup| Some(backup.spec.schedule.clone()))?;
    let outcomes = Arc::new(Outcomes::default());
    let counts = outcomes.clone();
    let leads = Controller::new(&backups)
        .owns(&plans)
        .name("plans")
        .reconcile_invalid()
        .on_outcome(move |outcome| counts.count(outcome));
    let watches = Controller::new(&backups).name("observer").ignore_undecodable();
    let recorder = EventRecorder::new(client.clone(), MANAGER, arguments.identity.as_str());
    let context = Arc::new(Context { client: client.clone(), plans: plans.clone(), recorder });
    let settings = ElectionSettings::default();
    let elector = LeaderElector::new(client.clone(), "default/guarded-operator", &*arguments.identity, settings)?;
    let listener = TcpListener::bind(&arguments.webhook).await?;
    let webhook = listener.local_addr()?;
    let index = by_schedule.clone();
    let manager = Manager::new(factory)
        .elect(elector)
        .control(leads, write_plan, context.clone())
        .control_on_every_replica(watches, observe, Arc::new(by_schedule))
        .task("webhook", move |stop| webhook::serve(listener, index, stop));

    let cancel = CancellationToken::new();
    let end = async {
        let _ended = cancel.clone().drop_guard(); // Cancels the other tasks, however this one ends.
        if connected.server.is_some() {
            tokio::select! {
                played = story::play(&client, &backups, &plans, webhook, &outcomes) => played?,
                () = arguments.connection.until_the_end() => say!("time is up"),
            }
        } else {
            arguments.connection.until_the_end().await;
        }
        connect::Outcome::Ok(())
    };
    let (outcome, ended) = tokio::join!(manager.run(cancel.clone()), end);
    ended?;
    outcome?;
    context.recorder.flush().await?;
    Ok(())
}
