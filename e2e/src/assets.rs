//! Finds or builds the programs that the tests run.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use tokio::time::Instant;

/// The Go module that pins the versions of the servers and client-go.
const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/go");
/// The Go module that pins client-go's sample controller.
const SAMPLE_MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/go-sample");

/// `kube-apiserver`, `etcd`, `kubectl`, a program of ours with client-go, and client-go's sample controller.
#[derive(Debug, Clone)]
pub struct Assets {
    /// The folder of the servers: in the cache, or from `KUBEBUILDER_ASSETS`.
    servers: PathBuf,
    /// Our client-go program; `None` without Go.
    follow: Option<PathBuf>,
    /// client-go's sample controller; `None` without Go.
    sample_controller: Option<PathBuf>,
}

/// Why the programs are not available.
#[derive(Debug, thiserror::Error)]
pub enum AssetsError {
    /// The servers do not exist and cannot be built.
    #[error("go is not installed, and KUBEBUILDER_ASSETS does not name a folder with kube-apiserver and etcd")]
    NoGo,
    /// The cache folder is unknown.
    #[error("neither XDG_CACHE_HOME nor HOME is set, so there is no folder for builds")]
    NoCache,
    /// The folder in `KUBEBUILDER_ASSETS` lacks a server.
    #[error("KUBEBUILDER_ASSETS names {0}, which has no {1}")]
    Missing(PathBuf, &'static str),
    /// A build failed.
    #[error("building {0} failed: {1}")]
    Build(&'static str, String),
    /// A file could not be read or written.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
}

impl Assets {
    /// Finds the programs, or builds them. A build takes minutes; its result is kept.
    ///
    /// # Errors
    ///
    /// [`AssetsError::NoGo`] if the servers are missing and Go is not installed; other variants if a build fails.
    pub fn ready() -> Result<Self, AssetsError> {
        let go = Command::new("go").arg("version").output().is_ok_and(|output| output.status.success());
        let given = std::env::var_os("KUBEBUILDER_ASSETS").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let pins = Pins::read()?;
        let servers = match given {
            Some(folder) => folder,
            None if go => pins.build_servers()?,
            None => return Err(AssetsError::NoGo),
        };
        for name in ["kube-apiserver", "etcd"] {
            if !servers.join(name).exists() {
                return Err(AssetsError::Missing(servers, name));
            }
        }
        let follow = if go { Some(pins.build_follow()?) } else { None };
        let sample_controller = if go { Some(pins.build_sample_controller()?) } else { None };
        Ok(Self { servers, follow, sample_controller })
    }

    /// Returns the path of kube-apiserver.
    pub fn kube_apiserver(&self) -> PathBuf {
        self.servers.join("kube-apiserver")
    }

    /// Returns the path of etcd.
    pub fn etcd(&self) -> PathBuf {
        self.servers.join("etcd")
    }

    /// Returns the path of kubectl; `None` if the given folder has none.
    pub fn kubectl(&self) -> Option<PathBuf> {
        Some(self.servers.join("kubectl")).filter(|path| path.exists())
    }

    /// Returns the path of our client-go program, `go/follow`; `None` without Go.
    pub fn follow(&self) -> Option<&Path> {
        self.follow.as_deref()
    }

    /// Returns the path of client-go's unmodified sample controller; `None` without Go.
    pub fn sample_controller(&self) -> Option<&Path> {
        self.sample_controller.as_deref()
    }
}

/// Describes the programs in one line.
impl fmt::Display for Assets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "servers from {}", self.servers.display())?;
        match &self.follow {
            Some(_) => Ok(()),
            None => f.write_str("; no client-go programs, because go is not installed"),
        }
    }
}

/// The versions that the Go module pins.
struct Pins {
    kubernetes: String,
    etcd: String,
    cache: PathBuf,
}

impl Pins {
    fn read() -> Result<Self, AssetsError> {
        let path = Path::new(MODULE).join("go.mod");
        let text = fs::read_to_string(&path).map_err(|error| AssetsError::File(path, error))?;
        let required = |module: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(module)?.strip_prefix(' '));
            line.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default().to_owned()
        };
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
        let cache = cache.ok_or(AssetsError::NoCache)?.join("kube-informer").join("e2e");
        Ok(Self { kubernetes: required("k8s.io/kubernetes"), etcd: required("go.etcd.io/etcd/server/v3"), cache })
    }

    fn build_servers(&self) -> Result<PathBuf, AssetsError> {
        let folder = self.cache.join(format!("kubernetes-{}-etcd-{}", self.kubernetes, self.etcd));
        build("etcd", MODULE, "go.etcd.io/etcd/server/v3", "", &folder.join("etcd"))?;
        let version = self.version_flags();
        for name in ["kube-apiserver", "kubectl"] {
            build(name, MODULE, &format!("k8s.io/kubernetes/cmd/{name}"), &version, &folder.join(name))?;
        }
        Ok(folder)
    }

    /// Returns flags that set the version, which Kubernetes does not know when it is built outside its repository.
    fn version_flags(&self) -> String {
        let mut numbers = self.kubernetes.trim_start_matches('v').split('.');
        let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        let version = [("gitVersion", self.kubernetes.as_str()), ("gitMajor", major), ("gitMinor", minor)];
        version.map(|(name, value)| format!(" -X k8s.io/component-base/version.{name}={value}")).concat()
    }

    fn build_follow(&self) -> Result<PathBuf, AssetsError> {
        let path = self.path_by_content("follow", MODULE, &["follow/main.go", "go.mod", "go.sum"])?;
        build("the client-go program", MODULE, "./follow", "", &path)?;
        Ok(path)
    }

    fn build_sample_controller(&self) -> Result<PathBuf, AssetsError> {
        let path = self.path_by_content("sample-controller", SAMPLE_MODULE, &["go.mod", "go.sum"])?;
        build("client-go's sample controller", SAMPLE_MODULE, "k8s.io/sample-controller", "", &path)?;
        Ok(path)
    }

    /// Returns a path that depends on the content of the sources, which change more often than the versions of the
    /// servers.
    fn path_by_content(&self, name: &str, module: &str, files: &[&str]) -> Result<PathBuf, AssetsError> {
        let mut content = DefaultHasher::new();
        for file in files {
            let path = Path::new(module).join(file);
            content.write(&fs::read(&path).map_err(|error| AssetsError::File(path, error))?);
        }
        Ok(self.cache.join(format!("{name}-{:016x}", content.finish())))
    }
}

/// Builds a program of a module, unless it exists.
#[allow(clippy::print_stderr, reason = "a build takes minutes")]
fn build(name: &'static str, module: &str, package: &str, link_flags: &str, path: &Path) -> Result<(), AssetsError> {
    if path.exists() {
        return Ok(());
    }
    eprintln!("building {name}; the result is kept");
    let start = Instant::now();
    // Built under another name first, so that an interrupted build does not look complete.
    let mut partial = OsString::from(path);
    partial.push(format!(".{}", std::process::id()));
    let built = Command::new("go")
        .args(["build", "-trimpath", "-buildvcs=false", "-ldflags"])
        .arg(format!("-s -w{link_flags}"))
        .arg("-o")
        .arg(&partial)
        .arg(package)
        .current_dir(module)
        .env("CGO_ENABLED", "0")
        .status()
        .map_err(|error| AssetsError::Build(name, error.to_string()))?;
    if !built.success() {
        return Err(AssetsError::Build(name, built.to_string()));
    }
    fs::rename(&partial, path).map_err(|error| AssetsError::File(path.to_owned(), error))?;
    eprintln!("built {name} in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}
