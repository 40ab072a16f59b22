//! The server of a story: kube-apiserver, or the embedded server.

use std::fmt;
use std::path::PathBuf;

use kube_client::Config;
use kube_embedded_apiserver::{ApiServer, History, HttpServer};
use kube_informer_e2e::{Assets, Cluster};

/// A server for a story.
pub(crate) enum TestServer {
    Real(Box<Cluster>),
    Embedded { server: ApiServer, listening: HttpServer, home: PathBuf },
}

impl TestServer {
    pub(crate) async fn real(assets: &Assets) -> Self {
        Self::Real(Box::new(Cluster::start_audited(assets).await.unwrap()))
    }

    pub(crate) async fn embedded(name: &str) -> Self {
        let home = std::env::temp_dir().join(format!("kube-informer-embedded-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        let server = ApiServer::new();
        let listening = server.serve("127.0.0.1:0").await.unwrap();
        Self::Embedded { server, listening, home }
    }

    pub(crate) async fn operator(&self) -> Config {
        match self {
            Self::Real(cluster) => cluster.operator().await.unwrap(),
            Self::Embedded { listening, .. } => Config::new(listening.url().parse().unwrap()),
        }
    }

    /// Returns a kubeconfig for a user, through a proxy if one is given by its port.
    pub(crate) fn kubeconfig_as(&self, user: &str, via: Option<u16>) -> PathBuf {
        let file = self.kubeconfig_of(user);
        let Some(via) = via else { return file };
        let text = std::fs::read_to_string(&file).unwrap();
        let slow = file.with_extension("proxied");
        std::fs::write(&slow, text.replace(&format!(":{}", self.port()), &format!(":{via}"))).unwrap();
        slow
    }

    /// Returns the port of the server.
    pub(crate) fn port(&self) -> u16 {
        match self {
            Self::Real(cluster) => cluster.port(),
            Self::Embedded { listening, .. } => listening.addr().port(),
        }
    }

    fn kubeconfig_of(&self, user: &str) -> PathBuf {
        match self {
            Self::Real(cluster) => cluster.kubeconfig_as(user).unwrap(),
            Self::Embedded { listening, home, .. } => {
                let file = home.join("kubeconfig");
                std::fs::write(&file, listening.kubeconfig()).unwrap();
                file
            }
        }
    }

    pub(crate) fn log(&self, name: &str) -> PathBuf {
        match self {
            Self::Real(cluster) => cluster.log(name),
            Self::Embedded { home, .. } => home.join(format!("{name}.log")),
        }
    }

    /// Returns the path of the audit log, if there is one.
    pub(crate) fn audit_log(&self) -> Option<PathBuf> {
        if let Self::Real(cluster) = self { Some(cluster.audit_log()) } else { None }
    }

    /// Restarts the server.
    pub(crate) async fn restart(&mut self) {
        match self {
            Self::Real(cluster) => {
                cluster.kill_apiserver().await.unwrap();
                cluster.start_apiserver().await.unwrap();
            }
            Self::Embedded { server, .. } => server.restart(History::Lost),
        }
    }

    /// Stops the server. Its files stay if the test fails.
    pub(crate) async fn end(&mut self) {
        match self {
            Self::Real(cluster) => cluster.kill_apiserver().await.unwrap(),
            Self::Embedded { server, .. } => server.disconnect_watches(),
        }
    }
}

impl fmt::Display for TestServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real(cluster) => cluster.fmt(out),
            Self::Embedded { listening, .. } => write!(out, "the embedded server at {}", listening.url()),
        }
    }
}
