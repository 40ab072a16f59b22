//! Connects every example to an API server: to an embedded one with changing objects, or to a real cluster on request.

#![allow(dead_code, reason = "no example uses all of it")]

use std::error::Error;
use std::fmt;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kube_client::Client;
use kube_client::config::{Config, KubeConfigOptions, Kubeconfig};
use kube_embedded_apiserver::{ApiServer, HttpServer, Resource, Workload};
use kube_informer::CancellationToken;
use tokio::task::JoinSet;

/// The result of every `main`.
pub type Outcome = Result<(), Box<dyn Error>>;

/// `println!` for a program whose output may be piped into `head`.
macro_rules! say {
    ($($text:tt)*) => { connect::write_line(format_args!($($text)*)) };
}

/// Writes one line. A closed output ends the example, and is no failure.
pub fn write_line(line: fmt::Arguments<'_>) {
    if let Err(error) = writeln!(io::stdout().lock(), "{line}") {
        std::process::exit(i32::from(error.kind() != io::ErrorKind::BrokenPipe));
    }
}

/// The server of the objects. With neither option an API server is embedded, and no cluster is needed.
#[derive(Args)]
pub struct Connection {
    /// Use the cluster of this kubeconfig, usually ~/.kube/config.
    #[arg(long, value_name = "FILE", conflicts_with = "in_cluster")]
    pub kubeconfig: Option<PathBuf>,
    /// Use the cluster that this program runs in.
    #[arg(long)]
    pub in_cluster: bool,
    /// How long to run, such as 5s or 2m; otherwise until Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    pub duration: Option<Duration>,
}

/// A client, and the tasks that keep the embedded server running.
pub struct Connected {
    pub client: Client,
    /// The embedded server, if the example uses it.
    pub server: Option<ApiServer>,
    _life: JoinSet<()>,
    _http: Option<HttpServer>,
}

impl Connection {
    /// Returns a client of the requested cluster, or of a server in this process without port and socket.
    pub async fn connect(&self) -> Result<Connected, Box<dyn Error>> {
        match self.cluster().await? {
            Some(client) => Ok(Connected { client, server: None, _life: JoinSet::new(), _http: None }),
            None => {
                let (server, life) = embed();
                Ok(Connected { client: server.client(), server: Some(server), _life: life, _http: None })
            }
        }
    }

    /// As [`connect`](Self::connect), but the embedded server uses a real socket.
    pub async fn connect_over_http(&self) -> Result<Connected, Box<dyn Error>> {
        if self.is_embedded() {
            let (server, life) = embed();
            let http = server.serve("127.0.0.1:0").await?;
            let client = client_of(Kubeconfig::from_yaml(&http.kubeconfig())?).await?;
            return Ok(Connected { client, server: Some(server), _life: life, _http: Some(http) });
        }
        self.connect().await
    }

    /// Waits until the time of `--for` is over, or for Ctrl-C.
    pub async fn until_the_end(&self) {
        let time = async {
            match self.duration {
                Some(duration) => tokio::time::sleep(duration).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = time => {}
        }
    }

    fn is_embedded(&self) -> bool {
        self.kubeconfig.is_none() && !self.in_cluster
    }

    /// Returns a client of a real cluster, if one was requested.
    async fn cluster(&self) -> Result<Option<Client>, Box<dyn Error>> {
        Ok(match &self.kubeconfig {
            Some(file) => Some(client_of(Kubeconfig::read_from(file)?).await?),
            None if self.in_cluster => Some(kube_informer::client_from(Config::incluster()?)?),
            None => None,
        })
    }
}

async fn client_of(kubeconfig: Kubeconfig) -> Result<Client, Box<dyn Error>> {
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(kube_informer::client_from(config)?)
}

/// Starts a server with a custom resource, and with nodes, deployments and pods that are created, changed and deleted all the time.
fn embed() -> (ApiServer, JoinSet<()>) {
    let widgets = Resource::custom("demo.example.com", "v1", "widgets", "Widget");
    let server = ApiServer::builder().with_custom_resource(widgets).build();
    let mut workload = Workload::new(7).nodes(3).pods(12).namespaces(["default"]);
    for _ in 0..40 {
        workload.step(&server);
    }
    let mut life = JoinSet::new();
    life.spawn(workload.run(server.clone(), 10.0, CancellationToken::new()));
    (server, life)
}
