use crate::support::*;
use http::Request;
use http_body_util::Full;
use kube_embedded_apiserver::{ApiServer, Verb};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// Sends one request over a connection, and reads the code and the body of the response.
async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, String) {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let text =
        format!("{request} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len());
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A TLS connection may end without a close notification.
    let _ = stream.read_to_end(&mut answer).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

#[tokio::test(start_paused = true)]
async fn curl_and_browsers_receive_indented_responses_and_errors() {
    let server = server();
    let ask = async |path: &str, agent: &str| {
        let request = Request::get(path).header("user-agent", agent).body(Full::default()).unwrap();
        send(&server, request).await.text
    };
    for path in [CONFIG_MAPS, &format!("{CONFIG_MAPS}/zzz"), "/api/v1/nopes", "/apis", "/api/v1"] {
        for agent in ["curl/8.5.0", "Mozilla/5.0 (X11)", "Wget/1.2"] {
            assert!(ask(path, agent).await.starts_with("{\n  \""), "{path} {agent}");
        }
        assert!(!ask(path, "conf/1").await.trim_end().contains('\n'), "{path}");
        let separator = if path.contains('?') { '&' } else { '?' };
        assert!(ask(&format!("{path}{separator}pretty=true"), "conf/1").await.starts_with("{\n  \""), "{path}");
    }
    let refused = ask(&format!("{CONFIG_MAPS}?watch=1&resourceVersionMatch=Exact"), "curl/8.5.0").await;
    assert_eq!(refused.lines().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn requests_without_the_token_are_refused() {
    let server = ApiServer::builder().seed(1).token("secret").build();
    let refused = get(&server, CONFIG_MAPS).await;
    let expected = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#;
    assert_eq!((refused.code, refused.text.trim_end()), (401, expected));
    for (token, code) in [("Bearer other", 401), ("secret", 401), ("Bearer secret", 200), ("bearer secret", 200)] {
        let request = Request::builder().uri(CONFIG_MAPS).header("authorization", token).body(Full::default()).unwrap();
        assert_eq!(send(&server, request).await.code, code, "{token}");
    }
    assert_eq!(get(&server, "/readyz").await.code, 200);
    let api: kube_client::Api<k8s_openapi::api::core::v1::ConfigMap> = kube_client::Api::all(server.client());
    assert!(api.list(&Default::default()).await.is_ok());
}

#[tokio::test]
async fn a_kubeconfig_leads_to_the_server() {
    let server = ApiServer::builder().token("secret").build();
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let config: kube_client::config::Kubeconfig = serde_saphyr::from_str(&listening.kubeconfig()).unwrap();
    let config = kube_client::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap();
    assert_eq!(config.default_namespace, "default");
    let client = kube_client::Client::try_from(config).unwrap();
    let api: kube_client::Api<k8s_openapi::api::core::v1::Namespace> = kube_client::Api::all(client);
    assert_eq!(api.list(&Default::default()).await.unwrap().items.len(), 4);
    listening.stop().await;
}

#[tokio::test]
async fn faults_are_controlled_over_an_address_of_their_own() {
    let server = server();
    let admin = server.serve_admin("127.0.0.1:0").await.unwrap();
    let bearer = format!("Bearer {}", admin.token().unwrap());
    let ask = async |request: &str, body: &str| {
        let headers = [("host", "localhost"), ("authorization", bearer.as_str()), ("content-type", "application/json")];
        let (code, text) = exchange(TcpStream::connect(admin.addr()).await.unwrap(), request, &headers, body).await;
        (code, serde_json::from_str::<Value>(&text).unwrap_or(Value::Null))
    };
    let fault = json!({"action": "status", "code": 503, "verb": "list", "resource": "configmaps", "times": 1});
    assert_eq!(ask("POST /faults", &fault.to_string()).await, (201, json!({"id": 1})));
    assert_eq!(get(&server, CONFIG_MAPS).await.code, 503);
    let (_, fired) = ask("GET /faults", "").await;
    assert_eq!((&fired["counts"], &fired["fired"][0]["verb"]), (&json!({"status": 1}), &json!("list")));
    assert_eq!(ask("POST /faults", "{\"action\": \"explode\"}").await.0, 400);
    assert_eq!(ask("POST /faults", "nonsense").await.0, 400);
    assert_eq!(ask("DELETE /faults", "").await.0, 200);
    for path in ["/compact", "/disconnect", "/restart"] {
        assert_eq!(ask(&format!("POST {path}"), "").await.0, 200);
    }
    get(&server, CONFIG_MAPS).await;
    let requests = ask("GET /requests", "").await.1;
    assert_eq!((&requests[0]["resource"], &requests[0]["status"]), (&json!("configmaps"), &json!(503)));
    assert_eq!(requests[1]["answeredFrom"], "cache");
    assert_eq!(ask("GET /api/v1/pods", "").await.0, 404);
    assert_eq!(server.requests()[0].verb, Verb::List);
    admin.stop().await;
}

#[tokio::test]
async fn the_admin_address_answers_requests_with_its_token() {
    let server = ApiServer::builder().seed(1).token("secret").build();
    let admin = server.serve_admin("127.0.0.1:0").await.unwrap();
    let token = admin.token().unwrap().to_owned();
    assert!(token.len() >= 32 && token != "secret", "{token}");
    let other = server.serve_admin("127.0.0.1:0").await.unwrap();
    assert_ne!(other.token(), Some(token.as_str()), "the token does not depend on the seed");
    other.stop().await;
    let right = format!("Bearer {token}");
    for (value, code) in [("Bearer other", 401), ("Bearer secret", 401), (&token, 401), ("", 401), (&right, 200)] {
        let headers = [("host", "localhost"), ("authorization", value)];
        let stream = TcpStream::connect(admin.addr()).await.unwrap();
        assert_eq!(exchange(stream, "GET /requests", &headers, "").await.0, code, "{value}");
    }
    for path in ["/faults", "/readyz", "/nothing"] {
        let stream = TcpStream::connect(admin.addr()).await.unwrap();
        assert_eq!(exchange(stream, &format!("GET {path}"), &[("host", "localhost")], "").await.0, 401, "{path}");
    }
    admin.stop().await;
    let server = ApiServer::builder().admin_token("known").build();
    let admin = server.serve_admin("127.0.0.1:0").await.unwrap();
    assert_eq!(admin.token(), Some("known"));
    let headers = [("host", "localhost"), ("authorization", "Bearer known")];
    let stream = TcpStream::connect(admin.addr()).await.unwrap();
    assert_eq!(exchange(stream, "GET /faults", &headers, "").await.0, 200);
    admin.stop().await;
}

#[tokio::test]
async fn the_admin_address_refuses_requests_that_a_web_page_could_send() {
    let server = ApiServer::builder().seed(1).admin_token("known").build();
    let admin = server.serve_admin("127.0.0.1:0").await.unwrap();
    let own = admin.addr().to_string();
    let json = ("content-type", "application/json");
    let ask = async |request: &str, host: &str, more: (&str, &str)| {
        let headers = [("host", host), ("authorization", "Bearer known"), more];
        exchange(TcpStream::connect(admin.addr()).await.unwrap(), request, &headers, "").await.0
    };
    for (host, code) in [("localhost", 200), (&own, 200), ("evil.example.com", 403), ("localhost.evil.com:80", 403)] {
        assert_eq!(ask("GET /faults", host, json).await, code, "{host}");
        assert_eq!(ask("POST /compact", host, json).await, code, "{host}");
    }
    for origin in ["http://evil.example.com", "null", "http://localhost"] {
        for request in ["GET /faults", "POST /compact", "OPTIONS /faults"] {
            assert_eq!(ask(request, &own, ("origin", origin)).await, 403, "{request} from {origin}");
        }
    }
    for (content_type, code) in [
        ("application/json; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
    ] {
        assert_eq!(ask("POST /compact", &own, ("content-type", content_type)).await, code, "{content_type}");
    }
    assert_eq!(ask("POST /compact", &own, ("accept", "*/*")).await, 415, "no content type");
    assert_eq!(
        ask("DELETE /faults", &own, ("accept", "*/*")).await,
        200,
        "a web page cannot send this without a preflight"
    );
    assert_eq!(server.faults().count("compact"), 3, "refused requests have no effect");
    admin.stop().await;
}

#[tokio::test]
async fn a_server_without_a_token_refuses_requests_that_a_web_page_could_send() {
    let server = server();
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let own = listening.addr().to_string();
    let own_site = format!("http://{own}");
    let map = config_map("a").to_string();
    let create = format!("POST {CONFIG_MAPS}?dryRun=All");
    let ask = async |request: &str, host: &str, more: (&str, &str)| {
        let body = if request.starts_with("POST") { map.as_str() } else { "" };
        exchange(TcpStream::connect(listening.addr()).await.unwrap(), request, &[("host", host), more], body).await.0
    };
    let json = ("content-type", "application/json");
    for (host, read, write) in [("localhost", 200, 201), (&own, 200, 201), ("evil.example.com", 403, 403)] {
        assert_eq!(ask("GET /api/v1/pods", host, json).await, read, "{host}");
        assert_eq!(ask(&create, host, json).await, write, "{host}");
    }
    for (origin, code) in
        [("http://evil.example.com", 403), ("null", 403), ("http://localhost:1", 403), (own_site.as_str(), 200)]
    {
        assert_eq!(ask("GET /api/v1/pods", &own, ("origin", origin)).await, code, "{origin}");
    }
    for (content_type, code) in [
        ("application/json", 201),
        ("application/yaml", 201),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("", 415),
    ] {
        assert_eq!(ask(&create, &own, ("content-type", content_type)).await, code, "{content_type}");
    }
    assert_eq!(ask(&create, &own, ("accept", "*/*")).await, 415, "no content type");
    listening.stop().await;
}

#[tokio::test]
async fn a_server_with_a_token_answers_to_any_host_name() {
    let server = ApiServer::builder().seed(1).token("secret").build();
    let listening = server.serve("127.0.0.1:0").await.unwrap();
    let headers = [("host", "cluster.example.com"), ("authorization", "Bearer secret")];
    let create = format!("POST {CONFIG_MAPS}?dryRun=All");
    let stream = TcpStream::connect(listening.addr()).await.unwrap();
    assert_eq!(exchange(stream, &create, &headers, &config_map("a").to_string()).await.0, 201);
    listening.stop().await;
}

#[cfg(feature = "tls")]
pub(crate) mod tls {
    use super::*;
    use kube_embedded_apiserver::{HttpServer, Tls};
    use std::sync::Arc;
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;
    use tokio_rustls::rustls::crypto::ring;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    pub(crate) async fn connect(listening: &HttpServer, authority: &str) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots).with_no_client_auth();
        let stream = TcpStream::connect(listening.addr()).await?;
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    #[tokio::test]
    async fn a_client_trusts_a_tls_server_through_its_certificate_authority() {
        let server = server();
        put_config_map(&server, "a");
        let listening = server.serve_tls("127.0.0.1:0", Tls::generate().unwrap()).await.unwrap();
        assert!(listening.url().starts_with("https://"));
        assert!(listening.kubeconfig().contains("certificate-authority-data: "));
        let stream = connect(&listening, listening.authority().unwrap()).await.unwrap();
        let (code, body) = exchange(stream, &format!("GET {CONFIG_MAPS}"), &[("host", "localhost")], "").await;
        assert_eq!((code, body.contains("ConfigMapList")), (200, true));
        let other = Tls::generate().unwrap();
        assert!(connect(&listening, other.authority()).await.is_err());
        listening.stop().await;
    }
}
