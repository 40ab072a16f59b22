//! `informer serve`: an API server with no cluster behind it.

mod documents;
mod faults;
mod load;

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

const EXAMPLES: &str = "\
Examples:
  informer serve --workload 10 --kubeconfig-out demo.kubeconfig
  informer watch pods -A --kubeconfig demo.kubeconfig      from another shell, or by kubectl
  informer serve --load manifests/ --listen 127.0.0.1:8001
  informer serve --faults faults.yaml --workload 5

A file of faults, in YAML or JSON:
  - {action: status, code: 503, verb: list, resource: pods, nth: 2}
  - {action: reset_after_events, events: 20, verb: watch, probability: 0.1}";

/// Serve a Kubernetes API from memory, with no cluster.
///
/// It is empty, or has what is loaded. kubectl, informers, kube-rs and client-go can talk to it; nothing runs in it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Write a kubeconfig for this server here, before the first request is answered.
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,
    /// Answer only who knows this token.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    token: Option<String>,
    /// Listen here for requests that control the server: faults, compaction, restarts. They need a token.
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<SocketAddr>,
    /// The token for --admin; otherwise one is made up. Both are printed.
    #[arg(long, value_name = "TOKEN", requires = "admin", value_parser = NonEmptyStringValueParser::new())]
    admin_token: Option<String>,
    /// Give it a life: so many writes a second to nodes, deployments and pods.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    workload: Option<f64>,
    /// Objects to begin with: a file of YAML or JSON, or a directory of them.
    #[arg(long, value_name = "FILE|DIRECTORY")]
    load: Option<PathBuf>,
    /// What is to go wrong: a file of faults in YAML or JSON, as POST /faults of --admin takes them.
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,
    /// Encrypt connections, with a certificate made on the spot; the kubeconfig holds its authority.
    #[arg(long)]
    tls: bool,
    /// How long to go on, such as 5s or 2m; otherwise until Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().map_err(|error| error.to_string())?;
    let sensible = 0.0..=1e6;
    if sensible.contains(&rate) { Ok(rate) } else { Err("a rate is between 0 and 1000000 writes a second".to_owned()) }
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { listen, token, .. } = &arguments;
    if !listen.ip().is_loopback() && token.is_none() {
        let what = format!("without --token anybody who reaches {listen} could change everything");
        return Err(Failure::usage(what).hint("listen on 127.0.0.1, or set a token"));
    }
    let end = ending::after(arguments.duration);
    let mut builder = ApiServer::builder();
    if let Some(token) = token {
        builder = builder.token(token.clone());
    }
    if let Some(token) = &arguments.admin_token {
        builder = builder.admin_token(token.clone());
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
        remark(format!("planted {count} faults"));
    }
    if let Some(admin) = &admin {
        remark(format!("controlled on {} with the token {}", admin.url(), admin.token().unwrap_or_default()));
    }

    let life = async {
        match arguments.workload {
            // Nobody cancels it: it ends by being dropped.
            Some(rate) => Workload::new(7).run(server.clone(), rate, CancellationToken::new()).await,
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
    if in_use { failure.hint("another program listens there; port 0 takes a free one") } else { failure }
}

/// Writes a file that nobody else can read, also if it was there already: it may hold a token.
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
