//! A complete controller: a custom resource `Foo` owns a deployment.
//!
//! `cargo run -p kube-controller --example sample_controller -- --for 10s` plays a short story on a server in this
//! process. With `--kubeconfig ~/.kube/config` it reconciles the Foos of a real cluster. Several copies may run, and
//! one of them leads.

#![allow(missing_docs, unreachable_pub, reason = "an example is read as a whole")]
#![allow(clippy::disallowed_names, reason = "Foo is the name of the resource")]

#[macro_use]
#[path = "../../../informer/examples/connect/mod.rs"]
mod connect;
mod foo;
mod reconcile;
mod story;

use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;
use kube_client::api::{ListParams, PostParams};
use kube_client::{Api, Client};
use kube_controller::{Controller, ElectionSettings, EventRecorder, LeaderElector, Manager};
use kube_informer::{CancellationToken, SharedInformerFactory};

use foo::Foo;
use reconcile::{Context, MANAGER, reconcile};

/// Reconciles Foos: each gets its deployment.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    connection: connect::Connection,
    /// The identity of this copy of the program in the election.
    #[arg(long, default_value = "sample-controller-1")]
    identity: String,
    /// The lease of the election.
    #[arg(long, default_value = "default/sample-controller")]
    lease: String,
    /// How many Foos are reconciled at the same time.
    #[arg(long, default_value_t = 2)]
    workers: usize,
}

#[tokio::main]
async fn main() -> connect::Outcome {
    let arguments = Arguments::parse();
    let connected = arguments.connection.connect().await?;
    let client = connected.client.clone();
    define(&client).await?;

    let factory = SharedInformerFactory::new(client.clone());
    let (foos, deployments) = (factory.informer::<Foo>()?, factory.informer::<Deployment>()?);
    foos.on_error(|error| say!("! foos: {error}"));
    deployments.on_error(|error| say!("! deployments: {error}"));
    let settings = ElectionSettings::default();
    let elector = LeaderElector::new(client.clone(), &arguments.lease, arguments.identity.as_str(), settings)?
        .on_new_leader(|leader| say!("{leader} leads"));
    let controller =
        Controller::new(&foos).owns(&deployments).workers(arguments.workers).timeout(Duration::from_secs(30));
    let context = Arc::new(Context {
        client: client.clone(),
        foos: foos.clone(),
        deployments: deployments.clone(),
        recorder: EventRecorder::new(client.clone(), MANAGER, arguments.identity.as_str()),
    });
    let manager = Manager::new(factory).elect(elector).control(controller, reconcile, context.clone());

    let cancel = CancellationToken::new();
    let end = async {
        let _ended = cancel.clone().drop_guard(); // Cancels the other tasks, however this one ends.
        if connected.server.is_some() {
            let story = story::play(&client, &foos, &deployments);
            tokio::select! {
                outcome = story => outcome?,
                () = arguments.connection.until_the_end() => say!("time is up"),
            }
        } else {
            arguments.connection.until_the_end().await;
        }
        say!("ending");
        connect::Outcome::Ok(())
    };
    let (outcome, ended) = tokio::join!(manager.run(cancel.clone()), end);
    ended?;
    outcome?;
    context.recorder.flush().await?;
    Ok(())
}

/// Installs the CRD of `Foo`, unless it exists, and waits until the API server serves it.
async fn define(client: &Client) -> Result<(), kube_client::Error> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    match definitions.create(&PostParams::default(), &Foo::crd()).await {
        Err(kube_client::Error::Api(status)) if status.code == 409 => {}
        outcome => drop(outcome?),
    }
    let foos: Api<Foo> = Api::all(client.clone());
    while let Err(error) = foos.list(&ListParams::default().limit(1)).await {
        match error {
            kube_client::Error::Api(status) if status.code == 404 => {
                tokio::time::sleep(Duration::from_millis(100)).await
            }
            error => return Err(error),
        }
    }
    Ok(())
}
