//! A kube-apiserver with its etcd, on loopback.

use std::fmt;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kube_client::client::Body;
use kube_client::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube_client::{Client, Config};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{Assets, Process};

/// The time limit for the start of a server, which takes a few seconds on an idle machine.
const START: Duration = Duration::from_secs(90);
/// The token of the user `operator`; it never expires.
const OPERATOR: &str = "operator-token";
/// The audit policy: one line for each write, without the objects, before the response is sent.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: \
                            Metadata\n  verbs: [create, update, patch, delete]\n";

/// Admission plugins that modify objects.
const CHANGING: &str = ",DefaultTolerationSeconds,Priority,StorageObjectInUseProtection,TaintNodesByCondition,\
                        DefaultStorageClass,DefaultIngressClass,RuntimeClass,PodTopologyLabels";

/// A kube-apiserver and an etcd, with TLS and tokens, that end with the test.
///
/// There are two users with all rights: the operator, whose token never expires, and the reader, whose token can
/// expire.
#[derive(Debug)]
pub struct Cluster {
    assets: Assets,
    /// The folder of certificates, tokens, data and logs.
    home: PathBuf,
    ports: Ports,
    /// True if all writes are recorded in [`audit_log`](Self::audit_log).
    is_audited: bool,
    /// True if no admission plugin modifies objects.
    is_plain: bool,
    /// How often the reader's token has expired.
    expired: u32,
    etcd: Option<Process>,
    apiserver: Option<Process>,
}

#[derive(Debug)]
struct Ports {
    api: u16,
    etcd: u16,
    peer: u16,
}

/// A copy of etcd's data.
#[derive(Debug)]
pub struct Saved(PathBuf);

/// Why an operation of the cluster failed.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A file or a process could not be used.
    #[error("{0}")]
    System(#[from] io::Error),
    /// A key or certificate could not be created.
    #[error("no certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A client could not be created.
    #[error("no client: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    /// A request failed without a response.
    #[error("no answer: {0}")]
    Request(#[from] kube_client::Error),
    /// A request is invalid.
    #[error("no request: {0}")]
    Http(#[from] http::Error),
    /// The server is not running.
    #[error("{0} does not run")]
    Down(&'static str),
    /// A server did not start.
    #[error("{0} does not answer; its log ends with\n{1}")]
    NotStarted(&'static str, String),
    /// A server sent an unexpected response.
    #[error("unexpected response of {0}: {1}")]
    Unexpected(&'static str, String),
}

impl Cluster {
    /// Starts a new cluster, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NotStarted`] with the end of the server's log.
    pub async fn start(assets: &Assets) -> Result<Self, ClusterError> {
        Self::start_as(assets, false, false).await
    }

    /// Starts a cluster without admission plugins that modify objects (tolerations, priorities, finalizers).
    ///
    /// # Errors
    ///
    /// [`ClusterError::NotStarted`] with the end of the server's log.
    pub async fn start_plain(assets: &Assets) -> Result<Self, ClusterError> {
        Self::start_as(assets, false, true).await
    }

    /// Starts a cluster that records all writes in [`audit_log`](Self::audit_log).
    ///
    /// # Errors
    ///
    /// [`ClusterError::NotStarted`] with the end of the server's log.
    pub async fn start_audited(assets: &Assets) -> Result<Self, ClusterError> {
        Self::start_as(assets, true, false).await
    }

    async fn start_as(assets: &Assets, is_audited: bool, is_plain: bool) -> Result<Self, ClusterError> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let home = std::env::temp_dir().join(format!("kube-informer-e2e-{}-{number}", std::process::id()));
        fs::create_dir_all(&home)?;
        let ports = Ports::free()?;
        let assets = assets.clone();
        let mut cluster = Self { assets, home, ports, is_audited, is_plain, expired: 0, etcd: None, apiserver: None };
        fs::write(cluster.home.join("audit.yaml"), AUDIT_POLICY)?;
        cluster.write_certificates()?;
        cluster.write_tokens()?;
        cluster.hand_out_token()?;
        let token = |token: &str| format!("token: {token}");
        cluster.write_kubeconfig("operator.kubeconfig", cluster.ports.api, &token(OPERATOR))?;
        cluster.start_etcd().await?;
        cluster.start_apiserver().await?;
        Ok(cluster)
    }

    /// Returns the port of the API server, which does not change after a restart.
    pub fn port(&self) -> u16 {
        self.ports.api
    }

    /// Returns the path of the operator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.home.join("operator.kubeconfig")
    }

    /// Writes a kubeconfig of the operator that impersonates a user, so that the audit log names this user.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn kubeconfig_as(&self, user: &str) -> Result<PathBuf, ClusterError> {
        let lines = format!("token: {OPERATOR}\n    as: {user}");
        self.write_kubeconfig(&format!("as-{user}.kubeconfig"), self.ports.api, &lines)
    }

    /// Returns a path for the log of another program, in the folder of the servers' logs.
    pub fn log(&self, name: &str) -> PathBuf {
        self.home.join(format!("{name}.log"))
    }

    /// Returns the path of the audit log: one `audit.k8s.io/v1` event per line, if the cluster was started with it.
    pub fn audit_log(&self) -> PathBuf {
        self.log("audit")
    }

    /// Returns the client configuration of the operator.
    ///
    /// # Errors
    ///
    /// The kubeconfig cannot be read.
    pub async fn operator(&self) -> Result<Config, ClusterError> {
        read_kubeconfig(&self.kubeconfig()).await
    }

    /// Returns the client configuration of the reader, for a port that forwards to the API server. The token is in a
    /// file.
    ///
    /// # Errors
    ///
    /// The kubeconfig cannot be written.
    pub async fn reader(&self, port: u16) -> Result<Config, ClusterError> {
        read_kubeconfig(&self.reader_kubeconfig(port)?).await
    }

    /// Writes the kubeconfig of the reader for such a port.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn reader_kubeconfig(&self, port: u16) -> Result<PathBuf, ClusterError> {
        let user = format!("tokenFile: {}", self.home.join("reader.token").display());
        self.write_kubeconfig(&format!("reader-{port}.kubeconfig"), port, &user)
    }

    /// Starts the API server again, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NotStarted`] with the end of its log.
    pub async fn start_apiserver(&mut self) -> Result<(), ClusterError> {
        let file = |name: &str| self.home.join(name).display().to_string();
        let mut arguments = vec![
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.ports.api),
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd),
            format!("--tls-cert-file={}", file("server.crt")),
            format!("--tls-private-key-file={}", file("server.key")),
            format!("--cert-dir={}", file("certificates")),
            format!("--token-auth-file={}", file("tokens.csv")),
            // Requests without a valid token are refused, and not accepted as anonymous.
            "--anonymous-auth=false".to_owned(),
            "--authorization-mode=AlwaysAllow".to_owned(),
            // No controller creates service accounts here, and pods would wait for them.
            format!("--disable-admission-plugins=ServiceAccount{}", if self.is_plain { CHANGING } else { "" }),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", file("accounts.pub")),
            format!("--service-account-signing-key-file={}", file("accounts.key")),
            "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
            // The service `kubernetes` is not used here.
            "--endpoint-reconciler-type=none".to_owned(),
            // Only the test compacts.
            "--etcd-compaction-interval=0".to_owned(),
            "--profiling=false".to_owned(),
        ];
        if self.is_audited {
            arguments.push(format!("--audit-policy-file={}", file("audit.yaml")));
            arguments.push(format!("--audit-log-path={}", file("audit.log")));
        }
        let process =
            Process::start(&self.assets.kube_apiserver(), arguments, &self.home.join("apiserver.log")).await?;
        self.apiserver = Some(process);
        let client = self.client().await?;
        self.wait_until(
            "kube-apiserver",
            async || matches!(ask(&client, "GET", "/readyz", Value::Null).await, Ok((200, text)) if text == "ok"),
        )
        .await
    }

    /// Kills the API server with SIGKILL.
    ///
    /// # Errors
    ///
    /// The process cannot be waited for.
    pub async fn kill_apiserver(&mut self) -> Result<(), ClusterError> {
        match self.apiserver.take() {
            Some(process) => Ok(process.kill().await?),
            None => Ok(()),
        }
    }

    /// Stops the API server with SIGSTOP: connections stay open, and requests are not answered.
    ///
    /// # Errors
    ///
    /// The API server is not running.
    pub async fn pause_apiserver(&self) -> Result<(), ClusterError> {
        Ok(self.apiserver.as_ref().ok_or(ClusterError::Down("kube-apiserver"))?.pause().await?)
    }

    /// Continues the API server.
    ///
    /// # Errors
    ///
    /// The API server is not running.
    pub async fn resume_apiserver(&self) -> Result<(), ClusterError> {
        Ok(self.apiserver.as_ref().ok_or(ClusterError::Down("kube-apiserver"))?.resume().await?)
    }

    /// Compacts etcd to its current revision, and returns the revision.
    ///
    /// The API server keeps some history in its watch cache until it is restarted.
    ///
    /// # Errors
    ///
    /// etcd does not answer.
    pub async fn compact(&self) -> Result<u64, ClusterError> {
        let revision = self.revision().await?;
        let body = json!({"revision": revision.to_string(), "physical": true});
        match ask(&self.etcd_client()?, "POST", "/v3/kv/compaction", body).await? {
            (200, _) => Ok(revision),
            (_, text) => Err(ClusterError::Unexpected("etcd", text)),
        }
    }

    /// Returns the current revision of etcd.
    ///
    /// # Errors
    ///
    /// etcd does not answer.
    pub async fn revision(&self) -> Result<u64, ClusterError> {
        let (_, text) = ask(&self.etcd_client()?, "POST", "/v3/kv/range", json!({"key": "AA=="})).await?;
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        let revision = answer["header"]["revision"].as_str().and_then(|text| text.parse().ok());
        revision.ok_or(ClusterError::Unexpected("etcd", text))
    }

    /// Copies etcd's data.
    ///
    /// # Errors
    ///
    /// A file cannot be copied.
    pub async fn save(&self) -> Result<Saved, ClusterError> {
        let saved = self.home.join("etcd.saved");
        let _ = fs::remove_dir_all(&saved);
        let etcd = self.etcd.as_ref().ok_or(ClusterError::Down("etcd"))?;
        // While etcd is stopped, its files are like those after a loss of power, from which it can start.
        etcd.pause().await?;
        let copied = copy(&self.data(), &saved);
        etcd.resume().await?;
        copied?;
        Ok(Saved(saved))
    }

    /// Restores etcd's data; both servers are restarted.
    ///
    /// # Errors
    ///
    /// A server does not start again.
    pub async fn restore(&mut self, saved: &Saved) -> Result<(), ClusterError> {
        self.kill_apiserver().await?;
        if let Some(etcd) = self.etcd.take() {
            etcd.kill().await?;
        }
        fs::remove_dir_all(self.data())?;
        copy(&saved.0, &self.data())?;
        self.start_etcd().await?;
        self.start_apiserver().await
    }

    /// Expires the reader's token. The API server reads tokens only when it starts, so it is restarted.
    ///
    /// # Errors
    ///
    /// The API server does not start again.
    pub async fn expire_token(&mut self) -> Result<(), ClusterError> {
        self.expired += 1;
        self.write_tokens()?;
        self.kill_apiserver().await?;
        self.start_apiserver().await
    }

    /// Writes the valid token into the reader's file.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn hand_out_token(&self) -> Result<(), ClusterError> {
        Ok(fs::write(self.home.join("reader.token"), self.reader_token())?)
    }

    async fn start_etcd(&mut self) -> Result<(), ClusterError> {
        let client_url = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peer_url = format!("http://127.0.0.1:{}", self.ports.peer);
        let arguments = [
            format!("--data-dir={}", self.data().display()),
            format!("--listen-client-urls={client_url}"),
            format!("--advertise-client-urls={client_url}"),
            format!("--listen-peer-urls={peer_url}"),
            format!("--initial-advertise-peer-urls={peer_url}"),
            format!("--initial-cluster=default={peer_url}"),
            // Written data survive a killed process, and the machine itself is never killed.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        self.etcd = Some(Process::start(&self.assets.etcd(), arguments, &self.home.join("etcd.log")).await?);
        self.wait_until("etcd", async || self.revision().await.is_ok()).await
    }

    async fn wait_until(&self, name: &'static str, ready: impl AsyncFn() -> bool) -> Result<(), ClusterError> {
        let process = if name == "etcd" { &self.etcd } else { &self.apiserver };
        let process = process.as_ref().ok_or(ClusterError::Down(name))?;
        let deadline = Instant::now() + START;
        while Instant::now() < deadline && process.is_alive().await {
            if tokio::time::timeout(Duration::from_secs(5), ready()).await.unwrap_or(false) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(ClusterError::NotStarted(name, process.last_words()))
    }

    async fn client(&self) -> Result<Client, ClusterError> {
        let mut config = self.operator().await?;
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    fn etcd_client(&self) -> Result<Client, ClusterError> {
        let url = format!("http://127.0.0.1:{}", self.ports.etcd);
        let mut config = Config::new(url.parse().map_err(http::Error::from)?);
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    fn data(&self) -> PathBuf {
        self.home.join("etcd")
    }

    fn reader_token(&self) -> String {
        format!("reader-token-{}", self.expired)
    }

    fn write_tokens(&self) -> io::Result<()> {
        let reader = self.reader_token();
        let tokens = format!("{OPERATOR},operator,1,system:masters\n{reader},reader,2,system:masters\n");
        fs::write(self.home.join("tokens.csv"), tokens)
    }

    fn write_certificates(&self) -> Result<(), ClusterError> {
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "e2e authority");
        fs::write(self.home.join("authority.crt"), authority.self_signed(&authority_key)?.pem())?;
        let issuer = Issuer::new(authority, authority_key);
        let key = KeyPair::generate()?;
        let mut server = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
        server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        fs::write(self.home.join("server.crt"), server.signed_by(&key, &issuer)?.pem())?;
        fs::write(self.home.join("server.key"), key.serialize_pem())?;
        let accounts = KeyPair::generate()?;
        fs::write(self.home.join("accounts.key"), accounts.serialize_pem())?;
        fs::write(self.home.join("accounts.pub"), accounts.public_key_pem())?;
        Ok(())
    }

    fn write_kubeconfig(&self, name: &str, port: u16, user: &str) -> Result<PathBuf, ClusterError> {
        let authority = self.home.join("authority.crt");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: e2e\nclusters:\n- name: e2e\n  cluster:\n    server: \
             https://127.0.0.1:{port}\n    certificate-authority: {}\ncontexts:\n- name: e2e\n  context:\n    cluster: \
             e2e\n    user: e2e\nusers:\n- name: e2e\n  user:\n    {user}\n",
            authority.display()
        );
        let path = self.home.join(name);
        fs::write(&path, text)?;
        Ok(path)
    }
}

/// Keeps the files of a failed test.
impl Drop for Cluster {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.home);
        }
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://127.0.0.1:{}, files in {}", self.ports.api, self.home.display())
    }
}

impl Ports {
    /// Returns three free ports.
    fn free() -> io::Result<Self> {
        let listeners =
            [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
        let port = |at: usize| listeners[at].local_addr().map(|address| address.port());
        Ok(Self { api: port(0)?, etcd: port(1)?, peer: port(2)? })
    }
}

async fn read_kubeconfig(path: &Path) -> Result<Config, ClusterError> {
    Ok(Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &KubeConfigOptions::default()).await?)
}

/// Sends a request, and returns code and body of the response.
async fn ask(client: &Client, method: &str, path: &str, body: Value) -> Result<(u16, String), ClusterError> {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(Body::from(body))?;
    let (parts, body) = client.send(request).await?.into_parts();
    let bytes = body.collect_bytes().await?;
    Ok((parts.status.as_u16(), String::from_utf8_lossy(&bytes).into_owned()))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => fs::copy(entry.path(), target).map(drop)?,
        }
    }
    Ok(())
}
