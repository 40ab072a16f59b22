//! What is asked for: the arguments that `get` and `watch` share, and the informer they mean.

use std::sync::Arc;

use kube_informer::{
    Index, InformerError, InformerRequest, ReflectorError, ResourceType, Selection, SelectionError, Selector,
    SharedInformer, SharedInformerFactory, SourceError,
};
use tokio::sync::mpsc;

use crate::cluster::{self, Cluster};
use crate::discover::{self, Offered};
use crate::failure::Failure;
use crate::line::Line;
use crate::object::Wire;
use crate::path::Lookup;

#[derive(clap::Args)]
pub(crate) struct Which {
    /// A plural, singular, kind or short name, with or without a group: pods, deploy, widgets.demo.example.com.
    pub(crate) resource: String,
    /// Only the object of this name. RESOURCE/NAME means the same.
    name: Option<String>,
    /// The namespace to look in; can be given more than once. Otherwise that of the context.
    #[arg(long = "namespace", short, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    namespaces: Vec<String>,
    /// Look in all namespaces.
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Only objects with these labels, such as app=web,tier!=back.
    #[arg(long = "selector", short = 'l', value_name = "SELECTOR")]
    labels: Option<Selector>,
    /// Only objects with these fields, such as status.phase=Running; the server decides which fields it knows.
    #[arg(long = "field-selector", value_name = "SELECTOR")]
    fields: Option<String>,
    /// Only objects that an index by this path finds under this value, such as spec.nodeName=worker-7 or
    /// /metadata/labels/app=web; any path will do.
    #[arg(long, value_name = "PATH=VALUE")]
    index: Option<Lookup>,
    #[command(flatten)]
    cluster: cluster::Choice,
}

/// An informer of what was asked for, and what is needed to show it.
pub(crate) struct Followed {
    pub(crate) cluster: Cluster,
    pub(crate) offered: Offered,
    pub(crate) informer: SharedInformer<Wire>,
    pub(crate) factory: SharedInformerFactory,
    /// The namespaces it is about; empty for all, and for what lives in none.
    pub(crate) namespaces: Vec<String>,
    /// The one name it is about.
    pub(crate) name: Option<String>,
    /// True if only some of the collection was asked for.
    pub(crate) selected: bool,
    pub(crate) index: Option<(Lookup, Index<Wire>)>,
    /// For messages: `pods in namespace "web"`.
    pub(crate) title: String,
    verb: &'static str,
    /// What goes wrong: the informer pauses after each, so that few wait.
    failures: mpsc::UnboundedReceiver<InformerError>,
}

impl Which {
    /// What was asked for by name.
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

    /// Finds the resource, and makes an informer of it that is not started yet.
    pub(crate) async fn open(mut self, verb: &'static str) -> Result<Followed, Failure> {
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
        Ok(Followed { cluster, offered, informer, factory, namespaces, name, selected, index, title, verb, failures })
    }

    /// `pod/a` is `pod a`.
    fn split_name(&mut self) -> Result<(), Failure> {
        if let Some((resource, name)) = self.resource.split_once('/') {
            if self.name.is_some() {
                let what = format!("{:?} names an object already", self.resource);
                return Err(Failure::usage(what).hint("say RESOURCE NAME or RESOURCE/NAME"));
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

impl Followed {
    pub(crate) fn resource(&self) -> &ResourceType {
        &self.offered.resource
    }

    /// True if objects of several namespaces may be shown side by side.
    pub(crate) fn many_namespaces(&self) -> bool {
        self.resource().namespaced && self.namespaces.len() != 1
    }

    pub(crate) fn start(&self) -> Result<(), Failure> {
        self.factory.start().map_err(|error| self.cannot(error))
    }

    pub(crate) fn cannot(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Failure {
        Failure::new(format!("cannot {} {}", self.verb, self.title), error)
    }

    /// What the cache holds of it now, in order.
    pub(crate) fn objects(&self) -> Vec<Arc<Wire>> {
        let mut objects = match &self.index {
            Some((lookup, index)) => index.get(&lookup.value),
            None => self.informer.store().iter().collect(),
        };
        objects.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
        objects
    }

    /// Waits until the server refuses what was asked for before it ever gave it. All else that goes wrong is told as a warning,
    /// as the informer goes on.
    pub(crate) async fn refused(&mut self, line: &Line) -> Failure {
        while let Some(error) = self.failures.recv().await {
            match refusal(&error).filter(|_| !self.informer.health().is_ready()) {
                Some(refusal) => return self.refusal(refusal),
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
            Some(400) => failure.hint("the server does not know one of the fields or labels that were asked for"),
            Some(403) => failure.hint(format!(
                "this user needs the verbs `list` and `watch` on {}; whoever looks after the cluster grants them with a role",
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
        SelectionError::Namespace(_) => failure.hint("`informer get namespaces` lists those there are"),
        SelectionError::Fields(_) => {
            failure.hint("write it as `--field-selector status.phase=Running,spec.nodeName!=worker-7`")
        }
        _ => failure.hint("`informer get --help` says what can be selected"),
    }
}

/// The server's answer, if asking again will not change it.
fn refusal(error: &InformerError) -> Option<&SourceError> {
    let InformerError::Reflector { error, .. } = error else { return None };
    let (error, final_codes): (_, &[u16]) = match error {
        // A watch may be refused with 400 for what a list then gets.
        ReflectorError::List(error) => (error, &[400, 401, 403, 404, 405]),
        ReflectorError::Watch(error) => (error, &[401, 403, 404, 405]),
        _ => return None,
    };
    error.status().filter(|status| final_codes.contains(&status.code)).map(|_| error)
}
