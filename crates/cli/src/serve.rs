//! `informer serve`: an API server in memory, without a cluster.

mod documents;
mod faults;
mod load;

use std::env::{self, VarError};
use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use kube_embedded_apiserver::{ApiServer, HttpServer, Tls, Workload};
use tokio_util::sync::CancellationToken;

use crate::ending;
use crate::failure::Failure;
use crate::say::remark;

/// The environment variable with the token.
const TOKEN: &str = "INFORMER_TOKEN";

const EXAMPLES: &str = "\
Examples:
  informer serve --workload 10 --kubeconfig-out demo.kubeconfig
  informer watch pods -A --kubeconfig demo.kubeconfig      from another shell, or by kubectl
  informer serve --load manifests/ --listen 127.0.0.1:8001
  informer serve --faults faults.yaml --workload 5

A file of faults, in YAML or JSON:
  - {action: status, code: 503, verb: list, resource: pods, nth: 2}
  - {action: reset_after_events, events: 20, verb: watch, probability: 0.1}";

/// How often kube-apiserver renews its own Lease.
const LEASE_RENEWAL: Duration = Duration::from_secs(10);

/// Serve the Kubernetes API from memory, without a cluster.
///
/// The server starts with the objects that every cluster has, such as namespaces and Service default/kubernetes, and with
/// loaded ones. kubectl, informers, kube-rs and client-go can use it; no pods run.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The address to listen on; port 0 takes a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Write a kubeconfig for this server to this file, before the first request is answered.
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,
    /// Refuse requests without this token. Other users of this machine can see arguments; --token-file and
    /// $INFORMER_TOKEN hide the token from them.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    token: Option<String>,
    /// A file with the token.
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,
    /// Listen here for requests that control the server: faults, compaction, restarts. They need a token.
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<SocketAddr>,
    /// The token for --admin [default: a random one]. The command prints both.
    #[arg(long, value_name = "TOKEN", requires = "admin", value_parser = NonEmptyStringValueParser::new())]
    admin_token: Option<String>,
    /// Write to nodes, deployments, replica sets and pods, at this number of writes per second.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    workload: Option<f64>,
    /// Objects to start with: a file of YAML or JSON, or a directory of such files.
    #[arg(long, value_name = "FILE|DIRECTORY")]
    load: Option<PathBuf>,
    /// Inject faults: a file in YAML or JSON, with the same content as POST /faults of --admin.
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,
    /// Delete objects together with their owners, as the garbage collector of a cluster does.
    #[arg(long)]
    garbage_collection: bool,
    /// Encrypt connections, with a generated certificate; the kubeconfig has its authority.
    #[arg(long)]
    tls: bool,
    /// Where the Service of an admission or conversion webhook runs, such as system/webhook=127.0.0.1:9443. May be
    /// repeated. A webhook with a `url` on this machine needs no entry.
    #[arg(long = "webhook-service", value_name = "NAMESPACE/NAME=ADDRESS", value_parser = webhook_service)]
    webhook_services: Vec<(String, SocketAddr)>,
    /// How long to run, such as 5s or 2m [default: until Ctrl-C].
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().map_err(|error| error.to_string())?;
    let sensible = 0.0..=1e6;
    if sensible.contains(&rate) {
        Ok(rate)
    } else {
        Err("a rate is between 0 and 1000000 writes per second".to_owned())
    }
}

fn webhook_service(text: &str) -> Result<(String, SocketAddr), String> {
    let known =
        text.split_once('=').filter(|(service, _)| service.split('/').filter(|part| !part.is_empty()).count() == 2);
    let Some((service, address)) = known else {
        return Err("write it as namespace/name=127.0.0.1:9443".to_owned());
    };
    let address: SocketAddr = address.parse().map_err(|error| format!("{address:?}: {error}"))?;
    if !address.ip().is_loopback() {
        return Err(format!("{address} is not a loopback address; the server calls no other machine"));
    }
    Ok((service.to_owned(), address))
}

/// Returns the token of the arguments, or otherwise of the environment.
fn token(arguments: &Arguments) -> Result<Option<String>, Failure> {
    let (token, place) = match (&arguments.token, &arguments.token_file) {
        (Some(token), _) => return Ok(Some(token.clone())),
        (None, Some(file)) => {
            let cannot = |error| Failure::new(format!("cannot read the token in {}", file.display()), error);
            (fs::read_to_string(file).map_err(cannot)?.trim().to_owned(), file.display().to_string())
        }
        (None, None) => match env::var(TOKEN) {
            Ok(token) => (token, format!("${TOKEN}")),
            Err(VarError::NotPresent) => return Ok(None),
            Err(error) => return Err(Failure::new(format!("cannot use ${TOKEN}"), error)),
        },
    };
    // Without a token the server would be open to every client, which is not what the user asked for.
    if token.is_empty() {
        return Err(Failure::usage(format!("the token in {place} is empty")).hint("write a token, or leave it out"));
    }
    Ok(Some(token))
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let (listen, token) = (&arguments.listen, token(&arguments)?);
    if !listen.ip().is_loopback() && token.is_none() {
        let what = format!("without a token, every client that reaches {listen} can change all objects");
        return Err(Failure::usage(what).hint("listen on 127.0.0.1, or set a token with --token-file"));
    }
    let end = ending::after(arguments.duration);
    let mut builder = ApiServer::builder()
        .cluster_objects(*listen)
        .garbage_collection(arguments.garbage_collection)
        .lease_renewal(LEASE_RENEWAL);
    if let Some(token) = token {
        builder = builder.token(token);
    }
    if let Some(token) = &arguments.admin_token {
        builder = builder.admin_token(token.clone());
    }
    for (service, address) in &arguments.webhook_services {
        builder = builder.webhook_address(service, *address);
    }
    let server = builder.build();
    let loaded = arguments.load.as_deref().map(|path| load::all(&server, path)).transpose()?;
    let planted = arguments.faults.as_deref().map(|file| faults::add(server.faults(), file)).transpose()?;
    let http = open(&server, *listen, arguments.tls).await?;
    let admin = match arguments.admin {
        Some(address) => Some(server.serve_admin(address).await.map_err(|error| cannot_listen(address, error))?),
        None => None,
    };
    if let Some(file) = &arguments.kubeconfig_out {
        let cannot = |error| Failure::new(format!("cannot write the kubeconfig {}", file.display()), error);
        write_private(file, &http.kubeconfig()).map_err(cannot)?;
    }
    remark(format!("serving on {}", http.url()));
    if let Some(count) = loaded {
        remark(format!("loaded {count} objects"));
    }
    if let Some(count) = planted {
        remark(format!("added {count} faults"));
    }
    if let Some(admin) = &admin {
        remark(format!("admin requests on {} with the token {}", admin.url(), admin.token().unwrap_or_default()));
    }

    let life = async {
        match arguments.workload {
            // It ends when it is dropped, so the token is never cancelled.
            Some(rate) => Workload::new(7).replica_sets(true).run(server.clone(), rate, CancellationToken::new()).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = end => {}
        () = life => {}
    }
    if let Some(admin) = admin {
        admin.stop().await;
    }
    http.stop().await;
    Ok(())
}

async fn open(server: &ApiServer, listen: SocketAddr, tls: bool) -> Result<HttpServer, Failure> {
    let opened = if tls {
        let tls = Tls::generate().map_err(|error| Failure::new("cannot encrypt connections", error))?;
        server.serve_tls(listen, tls).await
    } else {
        server.serve(listen).await
    };
    opened.map_err(|error| cannot_listen(listen, error))
}

fn cannot_listen(address: SocketAddr, error: io::Error) -> Failure {
    let in_use = error.kind() == io::ErrorKind::AddrInUse;
    let failure = Failure::new(format!("cannot listen on {address}"), error);
    if in_use { failure.hint("another program uses this address; port 0 takes a free port") } else { failure }
}

/// Writes a file that only its owner can read, because it may hold a token. An existing file gets these permissions
/// too.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    #[cfg(unix)]
    if file.metadata()?.is_file() {
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    }
    file.write_all(text.as_bytes())
}
