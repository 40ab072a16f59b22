//! A webhook over HTTPS on loopback. It records the reviews that it receives.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// The path and the body of each review, in the order of arrival.
type Reviews = Arc<Mutex<Vec<(String, Value)>>>;

/// A webhook. It ends with the test.
pub(super) struct Endpoint {
    port: u16,
    authority: String,
    reviews: Reviews,
    _tasks: JoinSet<()>,
}

impl Endpoint {
    pub(super) async fn start() -> Self {
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = authority.self_signed(&authority_key).unwrap().pem();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap();
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(vec![leaf.der().clone()], private).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let reviews = Reviews::default();
        let seen = reviews.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, seen) = (acceptor.clone(), seen.clone());
                connections.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(move |request| answer(request, seen.clone()));
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { port, authority: BASE64_STANDARD.encode(pem), reviews, _tasks: tasks }
    }

    /// Returns the `clientConfig` of this webhook with a path.
    pub(super) fn client_config(&self, path: &str) -> Value {
        json!({"url": format!("https://127.0.0.1:{}/{path}", self.port), "caBundle": self.authority})
    }

    /// Returns the reviews since the last call.
    pub(super) fn take_reviews(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.reviews.lock().unwrap())
    }
}

async fn answer(request: Request<Incoming>, seen: Reviews) -> Result<Response<Full<Bytes>>, Infallible> {
    let name = request.uri().path().trim_start_matches('/').to_owned();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    seen.lock().unwrap().push((name.clone(), review.clone()));
    if name.starts_with("slow") {
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    let (code, body) = match name.as_str() {
        "error500" => (500, "no".to_owned()),
        "no-json" => (200, "no".to_owned()),
        "empty" => (200, json!({"kind": "AdmissionReview", "apiVersion": review["apiVersion"]}).to_string()),
        "convert" => (200, converted(&review).to_string()),
        name => (200, reviewed(name, &review).to_string()),
    };
    Ok(Response::builder().status(code).header("content-type", "application/json").body(body.into()).unwrap())
}

/// Returns the answer of an admission webhook.
fn reviewed(name: &str, review: &Value) -> Value {
    let request = &review["request"];
    let patch = |operations: Value| {
        let patch = BASE64_STANDARD.encode(operations.to_string());
        json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
    };
    let mut response = match name {
        "label" => patch(json!([{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}])),
        "data" => patch(json!([{"op": "add", "path": "/data", "value": {"added": "1"}}])),
        "again" => {
            let count = request["object"]["metadata"]["labels"]["again"].as_str().map_or(0, str::len);
            patch(json!([{"op": "add", "path": "/metadata/labels/again", "value": "x".repeat(count + 1)}]))
        }
        "bad-patch" => patch(json!([{"op": "replace", "path": "/nothing/here", "value": 1}])),
        "refuse" => json!({"allowed": false, "status": {"message": "not today"}}),
        "refuse-silently" => json!({"allowed": false}),
        "refuse-invalid" => json!({"allowed": false, "status": {"code": 422, "reason": "Invalid", "message": "wrong",
            "details": {"causes": [{"reason": "FieldValueInvalid", "field": "data.a", "message": "odd"}]}}}),
        "warn" => json!({"allowed": true, "warnings": ["careful", "with \"that\""]}),
        "no-delete" => json!({"allowed": request["operation"] != "DELETE"}),
        _ => json!({"allowed": true}),
    };
    response["uid"] = if name == "wrong-uid" { json!("other") } else { request["uid"].clone() };
    json!({"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response})
}

/// Returns the answer of a conversion webhook: version 2 has `spec.size`, version 1 has `spec.length`.
fn converted(review: &Value) -> Value {
    let request = &review["request"];
    let desired = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = request["objects"].as_array().cloned().unwrap_or_default();
    let converted = objects.into_iter().map(|mut object| {
        let (from, to) = if desired.ends_with("v2") { ("length", "size") } else { ("size", "length") };
        if let Some(value) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
            object["spec"][to] = value;
        }
        object["apiVersion"] = desired.into();
        object
    });
    let response = json!({"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": converted.collect::<Vec<_>>()});
    json!({"kind": "ConversionReview", "apiVersion": review["apiVersion"], "response": response})
}
