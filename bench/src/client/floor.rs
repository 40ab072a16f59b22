//! The floor: reads the same bytes as the other clients, with the same HTTP client, and drops them.

use http::{Request, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;

use super::cache::PAGE;
use super::connection::Connection;
use super::measure::{cpu, micros, print};
use super::{Error, Options, Scenario};

/// The end of the bookmark after the initial events, which no object has.
const MARK: &[u8] = br#""k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}}}
"#;
const EVENTS: usize = 50_000;

pub(super) async fn run(options: &Options) -> Result<(), Error> {
    let connection = Connection::new(&options.server)?;
    let client = connection.ours()?;
    let (path, start) = (options.kind.path(), cpu());
    match options.scenario {
        Scenario::Streamed => {
            let query = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
            let mut body = get(&client, format!("{path}?{query}")).await?;
            let mut last = Vec::new();
            while !last.ends_with(MARK) {
                let piece = next(&mut body).await?.ok_or("the initial events ended early")?;
                // The bookmark may arrive in two pieces.
                last.extend_from_slice(&piece[piece.len().saturating_sub(MARK.len())..]);
                last.drain(..last.len().saturating_sub(MARK.len()));
            }
            print("sync_cpu", micros(cpu() - start) / options.objects as f64, "us/object");
            let (start, count) = (cpu(), options.events.unwrap_or(EVENTS));
            let mut left = connection.events(count, 0).await?.bytes;
            while left > 0 {
                left -= next(&mut body).await?.ok_or("the events ended early")?.len();
            }
            print("event_cpu", micros(cpu() - start) / count as f64, "us/event");
            Ok(())
        }
        Scenario::Listed => {
            for first in (0..options.objects).step_by(PAGE) {
                let mut body = get(&client, format!("{path}?limit={PAGE}&continue={first}")).await?;
                while next(&mut body).await?.is_some() {}
            }
            print("sync_cpu", micros(cpu() - start) / options.objects as f64, "us/object");
            Ok(())
        }
        Scenario::Ten | Scenario::Stuck | Scenario::Latency => Err("the floor has no handlers".into()),
        Scenario::Reads => Err("the floor has no cache".into()),
    }
}

async fn get(client: &Client, uri: String) -> Result<Body, Error> {
    let request = Request::get(uri).header(header::ACCEPT, "application/json").body(Body::empty())?;
    Ok(client.send(request).await?.into_body())
}

async fn next(body: &mut Body) -> Result<Option<bytes::Bytes>, Error> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}
