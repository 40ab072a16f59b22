//! A short story on a server in this process: other clients change objects, and the controller reacts.

use std::error::Error;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::events::v1::Event;
use kube_client::api::{Patch, PatchParams, PostParams};
use kube_client::{Api, Client};
use kube_informer::SharedInformer;
use serde_json::json;

use crate::connect;
use crate::foo::{Foo, FooSpec};

const NAMESPACE: &str = "default";
/// Longer than any step of the story takes.
const SOON: Duration = Duration::from_secs(10);

/// Plays the story from its start to its end.
pub async fn play(
    client: &Client,
    foos: &SharedInformer<Foo>,
    deployments: &SharedInformer<Deployment>,
) -> Result<(), Box<dyn Error>> {
    let api: Api<Foo> = Api::namespaced(client.clone(), NAMESPACE);
    let owned: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let has = |replicas: i32| {
        move |deployment: Option<&Deployment>| deployment.is_some_and(|found| found.spec.replicas == Some(replicas))
    };

    say!("1. a user creates a Foo with two replicas");
    api.create(&PostParams::default(), &foo("shop", "shop-backend", 2)).await?;
    deployments.wait_for("default/shop-backend", has(2)).within(SOON).await?;

    say!("2. two replicas come up");
    let status = Patch::Merge(json!({"status": {"replicas": 2, "availableReplicas": 2}}));
    owned.patch_status("shop-backend", &PatchParams::default(), &status).await?;
    let available =
        |foo: Option<&Foo>| foo.and_then(|foo| foo.status.as_ref()).is_some_and(|it| it.available_replicas == 2);
    foos.wait_for("default/shop", available).within(SOON).await?;
    say!("the status of the Foo shows two available replicas");

    say!("3. a user scales the deployment to nine");
    let nine = Patch::Merge(json!({"spec": {"replicas": 9}}));
    let written = owned.patch("shop-backend", &PatchParams::default(), &nine).await?;
    deployments.wait_for_version(&written.metadata.resource_version.unwrap_or_default().into()).within(SOON).await?;
    deployments.wait_for("default/shop-backend", has(2)).within(SOON).await?;

    say!("4. the user changes the Foo to three replicas");
    api.patch("shop", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 3}}))).await?;
    deployments.wait_for("default/shop-backend", has(3)).within(SOON).await?;

    say!("5. a user deletes the deployment");
    let uid = owned.get("shop-backend").await?.metadata.uid;
    owned.delete("shop-backend", &Default::default()).await?;
    let anew = |found: Option<&Deployment>| found.is_some_and(|found| found.metadata.uid != uid);
    deployments.wait_for("default/shop-backend", anew).within(SOON).await?;

    say!("6. another Foo asks for a deployment that has another owner");
    let mut foreign = owned.get("shop-backend").await?;
    foreign.metadata = Default::default();
    foreign.metadata.name = Some("taken".to_owned());
    let foreign = owned.create(&PostParams::default(), &foreign).await?;
    api.create(&PostParams::default(), &foo("thief", "taken", 5)).await?;
    let event = warning(client).await?;
    say!("it gets the event: {event}");
    assert_eq!(owned.get("taken").await?.metadata.resource_version, foreign.metadata.resource_version);
    say!("the deployment is not changed");

    say!("7. both Foos are deleted");
    for name in ["shop", "thief"] {
        api.delete(name, &Default::default()).await?;
        foos.wait_for(&format!("default/{name}"), |foo| foo.is_none()).within(SOON).await?;
    }
    assert!(owned.get_opt("shop-backend").await?.is_none() && owned.get_opt("taken").await?.is_some());
    say!("their deployments are deleted, too");
    Ok(())
}

fn foo(name: &str, deployment: &str, replicas: i32) -> Foo {
    let mut foo = Foo::new(name, FooSpec { deployment_name: deployment.to_owned(), replicas: Some(replicas) });
    foo.metadata.namespace = Some(NAMESPACE.to_owned());
    foo
}

/// Waits for the first warning event, and returns its text.
async fn warning(client: &Client) -> Result<String, Box<dyn Error>> {
    let events: Api<Event> = Api::namespaced(client.clone(), NAMESPACE);
    let waiting = async {
        loop {
            let all = events.list(&Default::default()).await?;
            if let Some(event) = all.items.into_iter().find(|event| event.type_.as_deref() == Some("Warning")) {
                return Ok::<_, kube_client::Error>(event.note.unwrap_or_default());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    Ok(tokio::time::timeout(SOON, waiting).await??)
}
