//! One API server and its database, on loopback.

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

/// How long a server may take until it answers; it takes a few seconds where nothing else runs.
const START: Duration = Duration::from_secs(90);
/// The token of whoever writes. It is always accepted.
const OPERATOR: &str = "operator-token";
/// Who wrote what and what was answered, without the objects: one line each, before the answer is sent.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: \
                            Metadata\n  verbs: [create, update, patch, delete]\n";

/// What changes objects on their way.
const CHANGING: &str = ",DefaultTolerationSeconds,Priority,StorageObjectInUseProtection,TaintNodesByCondition,\
                        DefaultStorageClass,DefaultIngressClass,RuntimeClass,PodTopologyLabels";

/// A `kube-apiserver` and an `etcd`, with TLS and tokens, that end with the test.
///
/// There are two users, both of whom may do everything: the operator, whose token never changes, and the reader, whose token
/// can expire.
#[derive(Debug)]
pub struct Cluster {
    assets: Assets,
    /// Certificates, tokens, data and logs.
    home: PathBuf,
    ports: Ports,
    /// Whether all writes are kept in [`audit_log`](Self::audit_log).
    is_audited: bool,
    /// Whether objects are stored as they are written, with defaults and no more.
    is_plain: bool,
    /// How often the reader's token expired.
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

/// What the database held at some time.
#[derive(Debug)]
pub struct Saved(PathBuf);

/// Why a cluster does not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A file or process could not be handled.
    #[error("{0}")]
    System(#[from] io::Error),
    /// Keys or certificates could not be made.
    #[error("no certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A client could not be made.
    #[error("no client: {0}")]
    Kubeconfig(#[from] KubeconfigError),
    /// A request could not be sent, or was not answered.
    #[error("no answer: {0}")]
    Request(#[from] kube_client::Error),
    /// A request could not be made.
    #[error("no request: {0}")]
    Http(#[from] http::Error),
    /// A server is asked for something while it is down.
    #[error("{0} does not run")]
    Down(&'static str),
    /// A server did not start.
    #[error("{0} does not answer; it said\n{1}")]
    NotStarted(&'static str, String),
    /// A server answered something unexpected.
    #[error("unexpected answer of {0}: {1}")]
    Unexpected(&'static str, String),
}

impl Cluster {
    /// Starts a fresh one and waits until it answers.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NotStarted`] with the last words of what did not start.
    pub async fn start(assets: &Assets) -> Result<Self, ClusterError> {
        Self::start_as(assets, false, false).await
    }

    /// The same, without what changes objects on their way: tolerations, priorities and finalizers that nobody wrote.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NotStarted`] with the last words of what did not start.
    pub async fn start_plain(assets: &Assets) -> Result<Self, ClusterError> {
        Self::start_as(assets, false, true).await
    }

    /// The same, and keeps who wrote what in [`audit_log`](Self::audit_log).
    ///
    /// # Errors
    ///
    /// [`ClusterError::NotStarted`] with the last words of what did not start.
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

    /// The port of the API server. It stays the same through restarts.
    pub fn port(&self) -> u16 {
        self.ports.api
    }

    /// A kubeconfig of the operator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.home.join("operator.kubeconfig")
    }

    /// A kubeconfig of the operator, who acts as somebody else: whom the audit log then names.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn kubeconfig_as(&self, user: &str) -> Result<PathBuf, ClusterError> {
        let lines = format!("token: {OPERATOR}\n    as: {user}");
        self.write_kubeconfig(&format!("as-{user}.kubeconfig"), self.ports.api, &lines)
    }

    /// Where what others say can be kept, beside the logs of the servers.
    pub fn log(&self, name: &str) -> PathBuf {
        self.home.join(format!("{name}.log"))
    }

    /// One `audit.k8s.io/v1` event a line for each write, if the cluster was started so.
    pub fn audit_log(&self) -> PathBuf {
        self.log("audit")
    }

    /// How the operator reaches the API server.
    ///
    /// # Errors
    ///
    /// The kubeconfig cannot be read.
    pub async fn operator(&self) -> Result<Config, ClusterError> {
        read_kubeconfig(&self.kubeconfig()).await
    }

    /// How the reader reaches the API server, through a port that leads there. The token is in a file.
    ///
    /// # Errors
    ///
    /// The kubeconfig cannot be written.
    pub async fn reader(&self, port: u16) -> Result<Config, ClusterError> {
        read_kubeconfig(&self.reader_kubeconfig(port)?).await
    }

    /// The same as a file.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn reader_kubeconfig(&self, port: u16) -> Result<PathBuf, ClusterError> {
        let user = format!("tokenFile: {}", self.home.join("reader.token").display());
        self.write_kubeconfig(&format!("reader-{port}.kubeconfig"), port, &user)
    }

    /// Starts the API server again and waits until it answers.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NotStarted`] with its last words.
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
            // Whoever has no valid token is refused: otherwise everybody would be let in as anonymous.
            "--anonymous-auth=false".to_owned(),
            "--authorization-mode=AlwaysAllow".to_owned(),
            // There is nobody who makes a service account per namespace, and pods would wait for theirs.
            format!("--disable-admission-plugins=ServiceAccount{}", if self.is_plain { CHANGING } else { "" }),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", file("accounts.pub")),
            format!("--service-account-signing-key-file={}", file("accounts.key")),
            "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
            // Nobody reaches this server by its service.
            "--endpoint-reconciler-type=none".to_owned(),
            // The test says when old versions are forgotten.
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

    /// Kills the API server, as if its machine had lost power.
    ///
    /// # Errors
    ///
    /// It cannot be waited for.
    pub async fn kill_apiserver(&mut self) -> Result<(), ClusterError> {
        match self.apiserver.take() {
            Some(process) => Ok(process.kill().await?),
            None => Ok(()),
        }
    }

    /// Freezes the API server: connections stay open, and nothing is answered.
    ///
    /// # Errors
    ///
    /// It does not run.
    pub async fn pause_apiserver(&self) -> Result<(), ClusterError> {
        Ok(self.apiserver.as_ref().ok_or(ClusterError::Down("kube-apiserver"))?.pause().await?)
    }

    /// Lets the API server go on.
    ///
    /// # Errors
    ///
    /// It does not run.
    pub async fn resume_apiserver(&self) -> Result<(), ClusterError> {
        Ok(self.apiserver.as_ref().ok_or(ClusterError::Down("kube-apiserver"))?.resume().await?)
    }

    /// Makes the database forget all versions but the present one.
    ///
    /// The API server keeps a while of history of its own, and forgets that only when it is started again.
    ///
    /// # Errors
    ///
    /// The database does not answer.
    pub async fn compact(&self) -> Result<u64, ClusterError> {
        let revision = self.revision().await?;
        let body = json!({"revision": revision.to_string(), "physical": true});
        match ask(&self.etcd_client()?, "POST", "/v3/kv/compaction", body).await? {
            (200, _) => Ok(revision),
            (_, text) => Err(ClusterError::Unexpected("etcd", text)),
        }
    }

    /// The version the database is at.
    ///
    /// # Errors
    ///
    /// The database does not answer.
    pub async fn revision(&self) -> Result<u64, ClusterError> {
        let (_, text) = ask(&self.etcd_client()?, "POST", "/v3/kv/range", json!({"key": "AA=="})).await?;
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        let revision = answer["header"]["revision"].as_str().and_then(|text| text.parse().ok());
        revision.ok_or(ClusterError::Unexpected("etcd", text))
    }

    /// Keeps what the database holds now.
    ///
    /// # Errors
    ///
    /// Files cannot be copied.
    pub async fn save(&self) -> Result<Saved, ClusterError> {
        let saved = self.home.join("etcd.saved");
        let _ = fs::remove_dir_all(&saved);
        let etcd = self.etcd.as_ref().ok_or(ClusterError::Down("etcd"))?;
        // Frozen, its files are what a loss of power would leave behind: it starts from those.
        etcd.pause().await?;
        let copied = copy(&self.data(), &saved);
        etcd.resume().await?;
        copied?;
        Ok(Saved(saved))
    }

    /// Puts back what the database held, as after a disaster: both servers go down for it.
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

    /// The reader's token is no longer accepted, and a new one will be. Tokens are read at start only: the API server is
    /// started again for it.
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

    /// Puts the token that is accepted into the reader's file.
    ///
    /// # Errors
    ///
    /// It cannot be written.
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
            // What is written survives its process, which is all that is killed here.
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

/// What is left of a test that failed stays, to be looked at.
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
    /// Three that nobody listens on.
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

/// Sends one request and reads the answer to its end.
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
