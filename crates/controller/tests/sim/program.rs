//! The simulated program: it gives every deployment one config map, which holds the number of its replicas. When a
//! deployment is deleted, the program deletes its config map.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{DeleteParams, PostParams, Preconditions};
use kube_client::{Api, Client, Resource as _};
use kube_controller::limiter::ItemExponential;
use kube_controller::{Action, Controller, LeaderElector, Manager, Request, RunError, Term};
use kube_informer::{CancellationToken, Index, InformerOptions, Selection, SharedInformer, SharedInformerFactory};

use crate::truth::NAMESPACE;

/// The settings of a program.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) seed: u64,
    pub(crate) streaming: bool,
    pub(crate) warm: bool,
    pub(crate) workers: usize,
    pub(crate) timeout: Option<Duration>,
    /// True if the informers follow single namespaces, which may change.
    pub(crate) scoped: bool,
    /// True if a handler of the program waits for hours.
    pub(crate) hangs: bool,
}

/// A process. Its caches are filled whether it leads or not.
pub(crate) struct Program {
    factory: SharedInformerFactory,
    owners: SharedInformer<Deployment>,
    controller: Arc<Controller<Deployment>>,
    context: Arc<Context>,
    run: Option<(CancellationToken, tokio::task::JoinSet<()>)>,
}

struct Context {
    client: Client,
    children: SharedInformer<ConfigMap>,
    /// By the uid of the owner.
    by_owner: Index<ConfigMap>,
    /// By the name of the owner.
    by_owner_name: Index<ConfigMap>,
}

impl Program {
    pub(crate) fn new(client: Client, settings: &Settings) -> Self {
        let (factory, owners, controller, context) = Self::parts(client, settings);
        // The informers start before the program leads. The caches may be in any state when it begins to lead.
        if settings.warm {
            factory.start().unwrap();
        }
        Self { factory, owners, controller: Arc::new(controller), context: Arc::new(context), run: None }
    }

    /// Makes a program that leads when it is elected.
    pub(crate) fn elected(client: Client, settings: &Settings, elector: LeaderElector) -> Manager {
        let (factory, _, controller, context) = Self::parts(client, settings);
        Manager::new(factory).elect(elector).control(controller, reconcile, Arc::new(context))
    }

    fn parts(
        client: Client,
        settings: &Settings,
    ) -> (SharedInformerFactory, SharedInformer<Deployment>, Controller<Deployment>, Context) {
        let options = InformerOptions::new().seed(settings.seed).streaming(settings.streaming);
        let namespaces = settings.scoped.then_some(NAMESPACE);
        let selection = Selection::new().namespaces(namespaces).unwrap();
        let factory = SharedInformerFactory::builder(client.clone()).options(options).select(selection).build();
        let owners = factory.informer::<Deployment>().unwrap();
        let children = factory.informer::<ConfigMap>().unwrap();
        let uids = |map: &ConfigMap| {
            let owners = map.metadata.owner_references.iter().flatten();
            owners.map(|owner| owner.uid.clone()).collect::<Vec<_>>()
        };
        let names = |map: &ConfigMap| {
            let owners = map.metadata.owner_references.iter().flatten();
            owners.map(|owner| owner.name.clone()).collect::<Vec<_>>()
        };
        let (by_owner, by_owner_name) =
            (children.add_index("owner", uids).unwrap(), children.add_index("owner name", names).unwrap());
        if settings.hangs {
            children.register().name("hangs").on_event_async(|_| tokio::time::sleep(Duration::from_secs(10_000)));
        }
        let mut controller = Controller::new(&owners)
            .owns(&children)
            .workers(settings.workers)
            .limiter(ItemExponential::new(Duration::from_millis(100), Duration::from_secs(30)))
            .write_deadline(Duration::from_secs(100_000));
        if let Some(timeout) = settings.timeout {
            controller = controller.timeout(timeout);
        }
        (factory, owners, controller, Context { client, children, by_owner, by_owner_name })
    }

    /// Makes one of its informers follow the namespace of all objects, or another one.
    pub(crate) fn follow(&self, owners: bool, namespace: &str) {
        let change = match owners {
            true => self.owners.set_namespaces([namespace]),
            false => self.context.children.set_namespaces([namespace]),
        };
        drop(change.unwrap());
    }

    /// Begins a term.
    pub(crate) fn lead(&mut self) {
        let cancel = CancellationToken::new();
        let (controller, term) = (self.controller.clone(), Term::from(cancel.clone()));
        let context = self.context.clone();
        let mut run = tokio::task::JoinSet::new();
        run.spawn(async move {
            loop {
                match controller.run(term.clone(), reconcile, context.clone()).await {
                    // A permission is missing. The program is started again.
                    Err(RunError::NotSynced { .. }) => {}
                    outcome => return outcome.unwrap(),
                }
            }
        });
        self.run = Some((cancel, run));
    }

    /// Ends the term, and drops all work at once.
    pub(crate) async fn lose(&mut self) {
        if let Some((_, mut run)) = self.run.take() {
            run.shutdown().await;
        }
    }

    /// Ends the term in order.
    pub(crate) async fn step_down(&mut self) {
        if let Some((cancel, mut run)) = self.run.take() {
            cancel.cancel();
            while let Some(ended) = run.join_next().await {
                ended.unwrap();
            }
        }
    }

    /// Returns the status of the program, for the message of a failed test.
    pub(crate) fn status(&self) -> String {
        let health = |health: kube_informer::Health| format!("{health}, age {:?}", health.age());
        let caches: Vec<_> = self.factory.informers().iter().map(|informer| health(informer.health())).collect();
        format!("{:?}, caches {caches:?}", self.controller.status())
    }

    /// Returns true if its run, if there is one, has not ended.
    pub(crate) fn is_sound(&mut self) -> bool {
        self.run.as_mut().is_none_or(|(_, run)| run.try_join_next().is_none())
    }
}

async fn reconcile(request: Request<Deployment>, context: Arc<Context>) -> Result<Action, kube_client::Error> {
    let Some(owner) = request.object() else { return delete_children(&request, &context).await };
    let uid = owner.metadata.uid.as_deref().unwrap_or_default();
    let replicas = owner.spec.replicas.unwrap_or_default().to_string();
    let data = BTreeMap::from([("replicas".to_owned(), replicas)]);
    let api: Api<ConfigMap> = Api::namespaced(context.client.clone(), request.key().namespace().unwrap_or_default());
    let parameters = PostParams::default();
    match context.by_owner.get(uid).first() {
        None => {
            let mut child = ConfigMap { data: Some(data), ..ConfigMap::default() };
            child.metadata.generate_name = Some(format!("{}-", request.key().name()));
            child.metadata.owner_references = Some(owner.controller_owner_ref(&()).into_iter().collect());
            request.write(&context.children, api.create(&parameters, &child)).await?;
        }
        Some(child) if child.data.as_ref() != Some(&data) => {
            let changed = ConfigMap { data: Some(data), ..ConfigMap::clone(child) };
            let name = child.metadata.name.clone().unwrap_or_default();
            request.write(&context.children, api.replace(&name, &parameters, &changed)).await?;
        }
        Some(_) => {}
    }
    Ok(Action::await_change())
}

/// Deletes the children of an owner that was deleted.
async fn delete_children(request: &Request<Deployment>, context: &Context) -> Result<Action, kube_client::Error> {
    let api: Api<ConfigMap> = Api::namespaced(context.client.clone(), request.key().namespace().unwrap_or_default());
    for child in context.by_owner_name.get(request.key().name()) {
        let preconditions = Preconditions { uid: child.metadata.uid.clone(), resource_version: None };
        let parameters = DeleteParams::default().preconditions(preconditions);
        let name = child.metadata.name.clone().unwrap_or_default();
        match request.delete(&context.children, &*child, api.delete(&name, &parameters)).await {
            Err(error) if error.code() == Some(404) => {}
            outcome => drop(outcome?),
        }
    }
    Ok(Action::await_change())
}
