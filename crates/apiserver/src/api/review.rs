//! Tokens of service accounts, and reviews of tokens and access: creates that store no object.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::Response;
use serde_json::{Value, json};
use std::time::Duration;

use crate::api::write::WriteFailure;
use crate::hub::Hub;
use crate::hub::tokens::IssuedToken;
use crate::kinds::Resource;
use crate::kinds::user::user;
use crate::message::reply::{Body, value_reply};
use crate::status::{Status, StatusCause};
use crate::storage::key::StoreKey;

/// For how long a token is valid, in seconds, unless the request says.
const TOKEN_SECONDS: i64 = 3600;

/// The issuer of tokens, and their audience unless the request names others.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Issues a token for a service account.
pub(super) fn token(
    hub: &Hub,
    accounts: &Resource,
    key: &StoreKey,
    mut request: Value,
) -> Result<Response<Body>, WriteFailure> {
    let account = hub.storage.lock().object(accounts, key);
    let Some(account) = account else { return Err(WriteFailure::not_found(accounts, key.name())) };
    let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(TOKEN_SECONDS);
    if seconds < 600 {
        let why = format!("{seconds}: may not specify a duration less than 10 minutes");
        let cause = StatusCause::invalid("spec.expirationSeconds", why);
        return Err(Status::invalid("authentication.k8s.io", "TokenRequest", "", vec![cause]).into());
    }
    let lifetime = Duration::from_secs(seconds.unsigned_abs().min(1 << 32));
    let now = hub.clock.now();
    let namespace = key.namespace().unwrap_or_default();
    let mut audiences = strings(&request["spec"]["audiences"]);
    if audiences.is_empty() {
        audiences.push(ISSUER.to_owned());
    }
    let uid = account.metadata()["uid"].as_str().unwrap_or_default().to_owned();
    let issued =
        IssuedToken { account: key.clone(), uid, audiences, expires: hub.clock.after(lifetime), id: hub.chance.uid() };
    let claims = json!({
        "aud": issued.audiences, "exp": issued.expires.as_second(), "iat": now.as_second(), "nbf": now.as_second(),
        "iss": ISSUER, "jti": issued.id, "sub": username(key),
        "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": key.name(), "uid": issued.uid}},
    });
    let part = |value: Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let token = format!("{}.{}.", part(json!({"alg": "none"})), part(claims));
    request["kind"] = "TokenRequest".into();
    request["apiVersion"] = "authentication.k8s.io/v1".into();
    request["metadata"] =
        json!({"name": key.name(), "namespace": namespace, "creationTimestamp": hub.clock.now_text()});
    request["spec"]["audiences"] = json!(issued.audiences);
    request["spec"]["expirationSeconds"] = seconds.into();
    request["status"] = json!({"token": token, "expirationTimestamp": hub.clock.text_after(lifetime)});
    hub.tokens.add(token, issued);
    Ok(value_reply(201, &request))
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn username(account: &StoreKey) -> String {
    format!("system:serviceaccount:{}:{}", account.namespace().unwrap_or_default(), account.name())
}

/// Answers a review. Every client of this server is the same user, and may do everything.
pub(crate) fn review(hub: &Hub, resource: &Resource, mut sent: Value) -> Result<Response<Body>, Status> {
    let user = user();
    sent["status"] = match resource.kind.as_str() {
        "TokenReview" => match token_review(hub, &user, &sent["spec"])? {
            Ok(authenticated) => authenticated,
            Err(error) if error.is_empty() => json!({"user": {}}),
            Err(error) => json!({"user": {}, "error": error}),
        },
        "SelfSubjectReview" => json!({"userInfo": user}),
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        kind => {
            let mut spec = sent["spec"].clone();
            if kind == "SelfSubjectAccessReview" {
                spec["user"] = user["username"].clone();
                spec["groups"] = user["groups"].clone();
            }
            json!({"allowed": hub.settings.access.as_ref().is_none_or(|access| access.allows(&spec))})
        }
    };
    Ok(value_reply(201, &sent))
}

/// Returns the status of a token review, or why the token is not authenticated: empty for a token that this server does
/// not know.
fn token_review(hub: &Hub, admin: &Value, spec: &Value) -> Result<Result<Value, String>, Status> {
    let token = spec["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    if hub.settings.token.as_deref() == Some(token) {
        return Ok(Ok(json!({"authenticated": true, "user": admin})));
    }
    let Some(issued) = hub.tokens.find(token) else { return Ok(Err(String::new())) };
    Ok(service_account(hub, &issued, &strings(&spec["audiences"]))
        .map_err(|why| format!("[invalid bearer token, {why}]")))
}

/// Returns the status for the token of a service account, or why it is not valid.
fn service_account(hub: &Hub, issued: &IssuedToken, wanted: &[String]) -> Result<Value, String> {
    let default = [ISSUER.to_owned()];
    let wanted = if wanted.is_empty() { &default[..] } else { wanted };
    let audiences: Vec<&String> = wanted.iter().filter(|audience| issued.audiences.contains(audience)).collect();
    if audiences.is_empty() {
        let held = issued.audiences.join("\" \"");
        let wanted = wanted.join("\" \"");
        return Err(format!("token audiences [\"{held}\"] is invalid for the target audiences [\"{wanted}\"]"));
    }
    if issued.expires <= hub.clock.now() {
        return Err("service account token has expired".to_owned());
    }
    let account = &issued.account;
    let (name, namespace) = (account.name(), account.namespace().unwrap_or_default());
    let found = {
        let state = hub.storage.lock();
        let accounts = state.catalog.named("serviceaccounts").cloned();
        accounts.and_then(|accounts| state.object(&accounts, account))
    };
    let found = found.ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
    let uid = found.metadata()["uid"].as_str().unwrap_or_default().to_owned();
    if uid != issued.uid {
        return Err(format!("service account UID ({uid}) does not match claim ({})", issued.uid));
    }
    let namespace_group = format!("system:serviceaccounts:{namespace}");
    let user = json!({
        "username": username(account), "uid": uid,
        "groups": ["system:serviceaccounts", namespace_group, "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [format!("JTI={}", issued.id)]},
    });
    Ok(json!({"authenticated": true, "user": user, "audiences": audiences}))
}
