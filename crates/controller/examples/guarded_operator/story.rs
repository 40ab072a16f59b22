//! A short story on a server in this process: users make good and bad backups.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube_client::api::{ListParams, Patch, PatchParams, PostParams};
use kube_client::core::{ApiResource, DynamicObject};
use kube_client::{Api, Client, Config};
use kube_informer::SharedInformer;
use serde_json::{Value, json};

use crate::backup::Backup;
use crate::connect;
use crate::operator::Outcomes;

const NAMESPACE: &str = "default";
/// Longer than any step of the story takes.
const SOON: Duration = Duration::from_secs(10);

/// Plays the story from its start to its end.
pub async fn play(
    client: &Client,
    backups: &SharedInformer<Backup>,
    plans: &SharedInformer<ConfigMap>,
    webhook: SocketAddr,
    outcomes: &Outcomes,
) -> Result<(), Box<dyn Error>> {
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), NAMESPACE, &ApiResource::erase::<Backup>(&()));
    backups.synced().within(SOON).await?;

    say!("1. a user makes two backups");
    for name in ["shop", "cart"] {
        api.create(&PostParams::default(), &backup(name, json!({"schedule": "0 3 * * *", "keep": 7}))?).await?;
        plans.wait_for((NAMESPACE, name), |plan| plan.is_some()).within(SOON).await?;
    }

    say!("2. the webhook refuses a third one at the same time");
    let review = json!({"request": {"uid": "1", "name": "blog", "object": {"spec": {"schedule": "0 3 * * *"}}}});
    let config = Config::new(format!("http://{webhook}").parse()?);
    let request = http::Request::post("/validate").header("content-type", "application/json");
    let request = request.body(review.to_string().into_bytes())?;
    let answer: Value = Client::try_from(config)?.request(request).await?;
    assert_eq!(answer["response"]["allowed"], false);
    say!("{}", answer["response"]["status"]["message"].as_str().unwrap_or_default());

    say!("3. a user writes a number as words");
    api.create(&PostParams::default(), &backup("wiki", json!({"schedule": "0 4 * * *", "keep": "seven"}))?).await?;
    until_ready(&api, "wiki", "False").await?;
    let events = Api::<Event>::namespaced(client.clone(), NAMESPACE);
    let told = async || -> Result<bool, kube_client::Error> {
        let events = events.list(&ListParams::default()).await?.items;
        Ok(events.iter().any(|event| event.reason.as_deref() == Some("InvalidSpec")))
    };
    while !told().await? {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    say!("its condition and an Event say so");

    say!("4. the user corrects it");
    let correct = Patch::Merge(json!({"spec": {"keep": 7}}));
    api.patch("wiki", &PatchParams::default(), &correct).await?;
    plans.wait_for((NAMESPACE, "wiki"), |plan| plan.is_some()).within(SOON).await?;
    until_ready(&api, "wiki", "True").await?;

    let (succeeded, failed) = (outcomes.succeeded.load(Ordering::Relaxed), outcomes.failed.load(Ordering::Relaxed));
    assert!(succeeded >= 4, "{succeeded} reconciles");
    say!("done; {failed} reconciles failed");
    Ok(())
}

fn backup(name: &str, spec: Value) -> Result<DynamicObject, serde_json::Error> {
    let (api_version, kind) = ("guarded.example.com/v1", "Backup");
    serde_json::from_value(json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}))
}

/// Waits until the condition `Ready` of a backup has this status.
async fn until_ready(api: &Api<DynamicObject>, name: &str, status: &str) -> Result<(), Box<dyn Error>> {
    let waits = async {
        while api.get(name).await?.data["status"]["conditions"][0]["status"] != status {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok::<_, kube_client::Error>(())
    };
    Ok(tokio::time::timeout(SOON, waits).await??)
}
