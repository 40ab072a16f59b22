//! `informer watch`: one event a line, as the API itself writes them.

use std::io::{self, Write as _};
use std::time::Duration;

use kube_informer::object::{Id, KeyRef, ResourceType};
use kube_informer::reflector::ReflectorError;
use kube_informer::representation::{Decode, DecodeError, Raw};
use kube_informer::settings::SelectionError;
use kube_informer::source::SourceError;
use kube_informer::{
    Event, InformerError, InformerRequest, Object, Removal, Selection, Selector, SharedInformerFactory,
};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::discover::Offered;
use crate::failure::Failure;
use crate::{cluster, discover, ending};

/// How long what has come may take to be written at the end.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Follows one resource. Each change is one line of JSON on stdout, such as {"type":"ADDED","object":{…}}, also what
/// changed while the connection was broken. All else goes to stderr.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A plural, singular, kind or short name, with or without a group: pods, deploy, widgets.demo.example.com.
    resource: String,
    /// The namespace to follow; can be given more than once. Otherwise that of the context.
    #[arg(long = "namespace", short, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    namespaces: Vec<String>,
    /// Follow all namespaces.
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Only objects with these labels, such as app=web,tier!=back.
    #[arg(long = "selector", short = 'l', value_name = "SELECTOR")]
    labels: Option<Selector>,
    /// Only objects with these fields, such as spec.nodeName=worker-7.
    #[arg(long = "field-selector", value_name = "SELECTOR")]
    fields: Option<String>,
    /// How events are written.
    #[arg(long, short, value_enum, default_value_t = Output::Json)]
    output: Output,
    /// How long to go on, such as 5s or 2m; otherwise until Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
    #[command(flatten)]
    cluster: cluster::Choice,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Output {
    /// One JSON object a line.
    Json,
}

impl Arguments {
    /// What was asked for by name.
    fn selection(&self) -> Result<Selection, SelectionError> {
        let mut selection = Selection::new();
        if !self.namespaces.is_empty() {
            selection = selection.namespaces(&self.namespaces)?;
        }
        if let Some(labels) = &self.labels {
            selection = selection.labels(labels.to_string())?;
        }
        if let Some(fields) = &self.fields {
            selection = selection.fields(fields)?;
        }
        Ok(selection)
    }
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Output::Json = arguments.output;
    let mut selection = arguments.selection().map_err(|error| cannot_select(&error))?;
    let end = ending::after(arguments.duration);
    tokio::pin!(end);
    let cluster = arguments.cluster.connect().await?;
    let Offered { resource, .. } = tokio::select! {
        () = &mut end => return Ok(()),
        found = discover::find(&cluster, &arguments.resource) => found?,
    };
    let mut namespaces = arguments.namespaces;
    if resource.namespaced && !arguments.all_namespaces && namespaces.is_empty() {
        namespaces = vec![cluster.client.default_namespace().to_owned()];
        selection = selection.namespaces(&namespaces).map_err(|error| cannot_select(&error))?;
    }
    let title = title(&resource, &namespaces);

    let cannot = |error: Box<dyn std::error::Error + Send + Sync>| Failure::new(format!("cannot watch {title}"), error);
    let factory = SharedInformerFactory::new(cluster.client);
    let request = InformerRequest::<Wire>::new().select(selection);
    let informer = factory.dynamic_with(resource.clone(), request).map_err(|error| cannot(error.into()))?;
    let (failed, mut failures) = mpsc::unbounded_channel();
    let (closed, mut write_errors) = mpsc::unbounded_channel();
    informer.on_error(move |error| {
        let _ = failed.send(error.clone());
    });
    // On a thread of its own: whoever reads stdout may take any time.
    let printer = informer.register().name("printer").on_event_blocking(move |event| {
        if let Err(error) = print(&event) {
            let _ = closed.send(error);
        }
    });
    factory.start().map_err(|error| cannot(error.into()))?;

    let outcome = loop {
        tokio::select! {
            biased;
            () = &mut end => break Ok(()),
            Some(error) = write_errors.recv() => break match error.kind() {
                io::ErrorKind::BrokenPipe => Ok(()),
                _ => Err(Failure::new("cannot write to stdout", error)),
            },
            Some(error) = failures.recv() => match refusal(&error).filter(|_| !informer.health().is_ready()) {
                Some(refusal) => break Err(refused(&title, refusal)),
                None => eprintln!("warning: {resource}: {}", error.to_string().replace('\n', " ")),
            },
        }
    };
    // Both wait for a write that may be stuck for good.
    let _ = timeout(LAST_LINES, printer.remove(Removal::Drain)).await;
    let _ = factory.stop_within(LAST_LINES).await;
    outcome
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
        SelectionError::Namespace(_) => failure.hint("`informer watch namespaces` lists those there are"),
        SelectionError::Fields(_) => {
            failure.hint("write it as `--field-selector status.phase=Running,spec.nodeName!=worker-7`")
        }
        _ => failure.hint("`informer watch --help` says what can be selected"),
    }
}

/// An object as the server wrote it, whatever its kind.
struct Wire(Map<String, Value>);

impl Object for Wire {
    fn id(&self) -> Id<'_> {
        let metadata = self.0.get("metadata");
        let text = |name: &str| metadata.and_then(|metadata| metadata.get(name)?.as_str()).unwrap_or_default();
        Id { key: KeyRef::new(text("namespace"), text("name")), uid: text("uid"), version: text("resourceVersion") }
    }
}

impl Decode for Wire {
    type Decoder = ();

    fn decoder(_: &ResourceType) {}

    fn decode((): &(), raw: Raw<'_>) -> Result<Self, DecodeError> {
        raw.deserialize().map(Self)
    }
}

fn print(event: &Event<Wire>) -> io::Result<()> {
    let (verb, object) = match event {
        Event::Added { object, .. } => ("ADDED", object),
        Event::Updated { new, .. } => ("MODIFIED", new),
        Event::Deleted(gone) => ("DELETED", gone.object()),
        Event::Resynced(_) => return Ok(()),
    };
    let mut line = format!(r#"{{"type":"{verb}","object":"#).into_bytes();
    serde_json::to_writer(&mut line, &object.0)?;
    line.extend_from_slice(b"}\n");
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    stdout.flush()
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

fn refused(title: &str, refusal: &SourceError) -> Failure {
    let failure = Failure::new(format!("cannot watch {title}"), refusal.clone());
    match refusal.status().map(|status| status.code) {
        Some(403) => failure.hint("this user needs the verbs `list` and `watch` on this resource"),
        Some(401) => failure.hint("the server does not accept these credentials; check the user of the kubeconfig"),
        _ => failure,
    }
}
