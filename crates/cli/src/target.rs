//! The arguments that `get` and `watch` share, and the informer for them.

use std::sync::Arc;

use kube_informer::{
    Index, InformerError, InformerRequest, ReflectorError, ResourceType, Selection, SelectionError, Selector,
    SharedInformer, SharedInformerFactory, SourceError,
};
use tokio::sync::mpsc;

use crate::cluster::{self, Cluster};
use crate::discover::{self, ServedResource};
use crate::failure::Failure;
use crate::line::Line;
use crate::object::Wire;
use crate::path::Lookup;

#[derive(Clone, clap::Args)]
pub(crate) struct TargetArguments {
    /// A plural, singular, kind or short name, with or without a group: pods, deploy, widgets.demo.example.com.
    pub(crate) resource: String,
    /// Only the object of this name. RESOURCE/NAME means the same.
    name: Option<String>,
    /// The namespace; can be repeated [default: that of the context].
    #[arg(long = "namespace", short, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    namespaces: Vec<String>,
    /// Use all namespaces.
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Only objects with these labels, such as app=web,tier!=back.
    #[arg(long = "selector", short = 'l', value_name = "SELECTOR")]
    labels: Option<Selector>,
    /// Only objects with these fields, such as status.phase=Running; the server decides which fields it supports.
    #[arg(long = "field-selector", value_name = "SELECTOR")]
    fields: Option<String>,
    /// Only objects that an index by this path has under this value, such as spec.nodeName=worker-7 or
    /// /metadata/labels/app=web; any path works.
    #[arg(long, value_name = "PATH=VALUE")]
    index: Option<Lookup>,
    #[command(flatten)]
    cluster: cluster::Choice,
}

/// An informer for the arguments, and everything that is needed to show its objects.
pub(crate) struct TargetInformer {
    pub(crate) cluster: Cluster,
    pub(crate) offered: ServedResource,
    pub(crate) informer: SharedInformer<Wire>,
    pub(crate) factory: SharedInformerFactory,
    /// The selected namespaces; empty for all, and in cluster scope.
    pub(crate) namespaces: Vec<String>,
    /// The selected name.
    pub(crate) name: Option<String>,
    /// True if a name or selector was given.
    pub(crate) selected: bool,
    pub(crate) index: Option<(Lookup, Index<Wire>)>,
    /// For messages: `pods in namespace "web"`.
    pub(crate) title: String,
    verb: &'static str,
    /// Errors of the informer. It backs off after each, so that the channel stays short.
    failures: mpsc::UnboundedReceiver<InformerError>,
}

impl TargetArguments {
    /// Returns the selection of namespaces, labels, name and fields.
    fn selection(&self) -> Result<Selection, Failure> {
        let select = || {
            let mut selection = Selection::new();
            if !self.namespaces.is_empty() {
                selection = selection.namespaces(&self.namespaces)?;
            }
            if let Some(labels) = &self.labels {
                selection = selection.labels(labels.to_string())?;
            }
            let name = self.name.as_ref().map(|name| format!("metadata.name={name}"));
            let fields: Vec<&str> = name.as_deref().into_iter().chain(self.fields.as_deref()).collect();
            if !fields.is_empty() {
                selection = selection.fields(fields.join(","))?;
            }
            Ok(selection)
        };
        select().map_err(|error| cannot_select(&error))
    }

    /// Finds the resource, and creates an informer that is not started yet.
    pub(crate) async fn open(mut self, verb: &'static str) -> Result<TargetInformer, Failure> {
        self.split_name()?;
        let mut selection = self.selection()?;
        let selected = self.name.is_some() || self.labels.is_some() || self.fields.is_some();
        let cluster = self.cluster.connect().await?;
        let offered = discover::find(&cluster, &self.resource).await?;
        let resource = &offered.resource;
        let mut namespaces = self.namespaces;
        if resource.namespaced && !self.all_namespaces && namespaces.is_empty() {
            namespaces = vec![cluster.client.default_namespace().to_owned()];
            selection = selection.namespaces(&namespaces).map_err(|error| cannot_select(&error))?;
        }
        if !resource.namespaced {
            namespaces.clear();
        }
        let title = title(resource, &namespaces);
        let cannot =
            |error: Box<dyn std::error::Error + Send + Sync>| Failure::new(format!("cannot {verb} {title}"), error);

        let factory = SharedInformerFactory::new(cluster.client.clone());
        let request = InformerRequest::<Wire>::new().select(selection);
        let informer = factory.dynamic_with(resource.clone(), request).map_err(|error| cannot(error.into()))?;
        let (failed, failures) = mpsc::unbounded_channel();
        informer.on_error(move |error| {
            let _ = failed.send(error.clone());
        });
        let index = match self.index {
            Some(lookup) => {
                let path = lookup.path.clone();
                let index = informer.add_index("path", move |object: &Wire| path.values(&object.0));
                Some((lookup, index.map_err(|error| cannot(error.into()))?))
            }
            None => None,
        };
        let (name, title) = (self.name, title.clone());
        Ok(TargetInformer {
            cluster,
            offered,
            informer,
            factory,
            namespaces,
            name,
            selected,
            index,
            title,
            verb,
            failures,
        })
    }

    /// Returns the arguments for each kind of `pods,svc`.
    pub(crate) fn each_kind(self) -> Vec<Self> {
        let kinds: Vec<String> = self.resource.split(',').map(|kind| kind.trim().to_owned()).collect();
        kinds.into_iter().map(|resource| Self { resource, ..self.clone() }).collect()
    }

    /// Splits `pod/a` into `pod` and `a`.
    fn split_name(&mut self) -> Result<(), Failure> {
        if let Some((resource, name)) = self.resource.split_once('/') {
            if self.name.is_some() {
                let what = format!("{:?} already has a name", self.resource);
                return Err(Failure::usage(what).hint("use RESOURCE NAME or RESOURCE/NAME"));
            }
            (self.resource, self.name) = (resource.to_owned(), Some(name.to_owned()));
        }
        let odd = |name: &&String| name.is_empty() || name.contains(|letter| " ,=!\\/%".contains(letter));
        match self.name.as_ref().filter(odd) {
            Some(name) => Err(Failure::usage(format!("no object can have the name {name:?}"))),
            None => Ok(()),
        }
    }
}

impl TargetInformer {
    pub(crate) fn resource(&self) -> &ResourceType {
        &self.offered.resource
    }

    /// Returns true if objects of several namespaces may be shown together.
    pub(crate) fn many_namespaces(&self) -> bool {
        self.resource().namespaced && self.namespaces.len() != 1
    }

    pub(crate) fn start(&self) -> Result<(), Failure> {
        self.factory.start().map_err(|error| self.cannot(error))
    }

    pub(crate) fn cannot(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
        Failure::new(format!("cannot {} {}", self.verb, self.title), error)
    }

    /// Returns the objects in the cache that match the index, sorted by namespace and name.
    pub(crate) fn objects(&self) -> Vec<Arc<Wire>> {
        let mut objects = match &self.index {
            Some((lookup, index)) => index.get(&lookup.value),
            None => self.informer.store().iter().collect(),
        };
        objects.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
        objects
    }

    /// Waits until the server refuses the first list for good. All other errors are printed as warnings, because the
    /// informer retries.
    pub(crate) async fn refused(&mut self, line: &Line) -> Failure {
        while let Some(error) = self.failures.recv().await {
            match refusal(&error).filter(|_| !self.informer.health().is_ready()) {
                Some(refusal) => return self.refusal(refusal),
                // A list follows, with the same objects or with an error of its own.
                None if is_not_streamed(&error) => {}
                None => {
                    let text = error.to_string().replace('\n', " ");
                    line.remark(&format!("warning: {}: {text}", self.resource()));
                }
            }
        }
        std::future::pending().await
    }

    fn refusal(&self, refusal: &SourceError) -> Failure {
        let failure = self.cannot(refusal.clone());
        match refusal.status().map(|status| status.code) {
            Some(400) => failure.hint("the server does not support one of the selected fields or labels"),
            Some(403) => failure.hint(format!(
                "this user needs the verbs `list` and `watch` on {}; a cluster administrator can grant them with a role",
                self.resource()
            )),
            Some(401) => failure.hint(discover::CREDENTIALS),
            _ => failure,
        }
    }
}

fn title(resource: &ResourceType, namespaces: &[String]) -> String {
    match namespaces {
        [one] if resource.namespaced => format!("{resource} in namespace {one:?}"),
        [_, _, ..] if resource.namespaced => format!("{resource} in namespaces {}", namespaces.join(", ")),
        _ => resource.to_string(),
    }
}

fn cannot_select(error: &SelectionError) -> Failure {
    let failure = Failure::usage(error.to_string());
    match error {
        SelectionError::Namespace(_) => failure.hint("`informer get namespaces` lists all namespaces"),
        SelectionError::Fields(_) => {
            failure.hint("write it as `--field-selector status.phase=Running,spec.nodeName!=worker-7`")
        }
        _ => failure.hint("`informer get --help` describes the selectors"),
    }
}

fn is_not_streamed(error: &InformerError) -> bool {
    matches!(error, InformerError::Reflector { error: ReflectorError::NotStreamed(_), .. })
}

/// Returns the server's error, if a retry will not change it.
fn refusal(error: &InformerError) -> Option<&SourceError> {
    let InformerError::Reflector { error, .. } = error else { return None };
    let (error, final_codes): (_, &[u16]) = match error {
        // A watch may be refused with 400, and a list of the same objects succeed.
        ReflectorError::List(error) => (error, &[400, 401, 403, 404, 405]),
        ReflectorError::Watch(error) => (error, &[401, 403, 404, 405]),
        _ => return None,
    };
    error.status().filter(|status| final_codes.contains(&status.code)).map(|_| error)
}
