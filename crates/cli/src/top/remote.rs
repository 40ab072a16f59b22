//! Informers of another program, read over HTTP.

use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube_informer_inspect::model;
use tokio::time::timeout;

use super::{Answer, NoAnswer, ProgramState};
use crate::failure::Failure;
use crate::view::{Handler, Progress, Reading, State, Work};

/// How long a response may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest response in bytes: far more than any program needs.
const LARGEST: usize = 64 << 20;

type Body = Empty<&'static [u8]>;
type Error = Box<dyn std::error::Error + Send + Sync>;

/// A program with the inspection router.
pub(super) struct RemoteInformers {
    client: Client<HttpConnector, Body>,
    uri: Uri,
    token: Option<HeaderValue>,
    /// The address that the user gave.
    address: String,
}

impl RemoteInformers {
    pub(super) fn new(address: &str, token: Option<&str>) -> Result<Self, Failure> {
        let wrong = |why: &str| Failure::usage(format!("{address:?} is not the address of a program: {why}"));
        let hint = "write it as `--connect 127.0.0.1:8080`";
        if address.starts_with("https://") {
            return Err(wrong("only plain HTTP is supported").hint("forward its port to this machine"));
        }
        let place = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
        let uri: Uri =
            format!("http://{place}/api/informers").parse().map_err(|_| wrong("it cannot be read").hint(hint))?;
        if uri.port_u16().is_none() && !address.starts_with("http://") || uri.host().is_none_or(str::is_empty) {
            return Err(wrong("it needs a host and a port").hint(hint));
        }
        let token = token.map(|token| HeaderValue::from_str(&format!("Bearer {token}"))).transpose();
        let mut token =
            token.map_err(|_| Failure::usage("the token has characters that an HTTP header cannot have"))?;
        if let Some(token) = &mut token {
            token.set_sensitive(true);
        }
        let client = Client::builder(TokioExecutor::new()).build_http();
        Ok(Self { client, uri, token, address: place.to_owned() })
    }

    pub(super) async fn read(&self) -> Answer {
        let what = || format!("cannot ask {} for its informers", self.address);
        let answer = timeout(PATIENCE, self.ask()).await;
        let (status, body) = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(NoAnswer::NotNow(Failure::new(what(), error))),
            Err(_) => {
                let late = format!("{}: no answer within {PATIENCE:?}", what());
                return Err(NoAnswer::NotNow(Failure::plain(late)));
            }
        };
        if !status.is_success() {
            let said: Option<model::Failure> = serde_json::from_slice(&body).ok();
            let answered = format!("{}: it answered {status}", what());
            let failure = match &said {
                Some(said) => Failure::new(answered, said.error.clone()),
                None => Failure::plain(answered),
            };
            let failure = match (status, said) {
                (StatusCode::UNAUTHORIZED, _) => failure.hint("the program requires a token: set it with --token"),
                (StatusCode::NOT_FOUND, _) => {
                    failure.hint("if the router is mounted below a path, add the path: HOST:PORT/PATH")
                }
                (_, Some(said)) => failure.hint(said.hint),
                _ => failure,
            };
            let lasting = status.is_client_error();
            return Err(if lasting { NoAnswer::Refused(failure) } else { NoAnswer::NotNow(failure) });
        }
        let overview: model::Overview = serde_json::from_slice(&body).map_err(|error| {
            let failure = Failure::new(what(), error);
            NoAnswer::Refused(failure.hint("the response is not from the inspection router: check the address"))
        })?;
        Ok(ProgramState {
            title: format!("{} at {}", overview.title, self.address),
            informers: overview.informers.into_iter().map(reading).collect(),
            queues: overview.queues.into_iter().map(work).collect(),
        })
    }

    async fn ask(&self) -> Result<(StatusCode, Vec<u8>), Error> {
        let mut request = Request::get(self.uri.clone()).header(ACCEPT, "application/json");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        let answer = self.client.request(request.body(Body::new())?).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), LARGEST).collect().await?;
        Ok((status, body.to_bytes().to_vec()))
    }
}

fn reading(informer: model::Informer) -> Reading {
    let model::Informer { id, parts, live, synced, age_ms, objects, queued, counts, handlers, indexes, .. } = informer;
    let worst = parts.into_iter().map(condition).max_by_key(|(state, ..)| state.rank());
    let (state, why, progress) = worst.unwrap_or_default();
    let handlers = handlers.into_iter().map(|handler| Handler {
        name: handler.name,
        backlog: handler.backlog,
        lag: Duration::try_from_secs_f64(handler.lag_ms / 1e3).unwrap_or_default(),
        folds: handler.folds,
    });
    Reading {
        name: id,
        state: if live || state == State::New { state } else { State::Stopped },
        why,
        synced,
        objects,
        queued,
        events: counts.events,
        wire_bytes: counts.wire_bytes,
        watches: counts.watches,
        failures: counts.failures + counts.undecodable,
        lists: counts.lists,
        contact: age_ms.map(Duration::from_millis),
        handlers: handlers.collect(),
        indexes,
        progress,
    }
}

fn condition(part: model::Part) -> (State, Option<String>, Option<Progress>) {
    let (state, why, progress) = match part.phase {
        model::Phase::New => (State::New, None, None),
        model::Phase::Listing { received, remaining } => (State::Listing, None, Some(Progress { received, remaining })),
        model::Phase::Streaming { received } => (State::Listing, None, Some(Progress { received, remaining: None })),
        model::Phase::Watching => (State::Watching, None, None),
        model::Phase::BackingOff { why, .. } => (State::BackingOff, Some(why), None),
        model::Phase::Absent { .. } => (State::Absent, None, None),
        model::Phase::Parked { why, .. } => (State::Parked, Some(why), None),
        model::Phase::Stopped => (State::Stopped, None, None),
        _ => (State::Unknown, None, None),
    };
    (state, why.or(part.last_error), progress)
}

fn work(queue: model::Queue) -> Work {
    Work {
        name: queue.name,
        waiting: queue.waiting,
        processing: queue.processing,
        delayed: queue.delayed,
        parked: queue.parked,
        worked: queue.worked,
        failures: queue.failures,
    }
}
